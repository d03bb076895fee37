"""Cluster sums of a Gaussian kernel that is not stored: products, exponentials and sums of a part stay in the caches.

Tiles that NumPy fills take turns at the interpreter, several for each tile, and pass through memory from one turn to
the next. Here a thread holds ``ROWS`` x ``WIDEST`` numbers at a time and needs no turn until all sums are done.
"""

from contextlib import nullcontext
from functools import partial
from math import factorial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from kernelweave.backends.compiled.row_loops import move_rows, scatter_rows
from kernelweave.backends.compiled.tickets import all_done, next_piece, piece_is_done
from kernelweave.backends.preparing import order_of, order_of_ways, read_only
from kernelweave.backends.protocol import Moves
from kernelweave.backends.tiling import READ_MEANWHILE
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.threads import SMALL_PRODUCT, share_pieces, single_threaded_blas

# Sources whose kernel values are held at a time, and columns: with 256 of these they take a quarter of a MiB.
ROWS = 128
# Columns of a piece. Narrow ones keep many threads busy to the end; multiplying them takes longer.
NARROWEST = 64
WIDEST = 256
# Pieces that keep 16 threads busy. Those of the last quarter are halved: threads that share a core are slower, and the
# others wait for them at the end.
PIECES = 64
# Kernel values after which a signal from outside is heard: a second or two of one thread.
VALUES_AT_ONCE = 2**30

# exp(x) = 2^m exp(r) with m whole and |r| <= log(2) / 2: m log(2) is taken away in two parts, the first of which has
# so few digits that its multiples are exact. Thirteen powers of r leave a fiftieth of the last digit.
LOG2_E = 1.4426950408889634
LOG_2_HIGH = 6.93147180369123816490e-01
LOG_2_LOW = 1.90821492927058770002e-10
POWERS = tuple(1.0 / factorial(power) for power in range(13, -1, -1))
# Added to a number below 2^51, it leaves the nearest whole number in the last bits.
ROUNDING = 1.5 * 2.0**52
# Exponentials of less are not normal numbers, and are zero here.
LEAST_EXPONENT = -708.0
EXPONENT_BIAS = 1023
MANTISSA_BITS = 52

_intrinsic: Any = intrinsic  # takes one argument less than what it decorates


def cluster_sums(Y: Floats, X: Floats, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
    """Return the cluster sums of samples Y at samples X, both prepared by the formula of the kernel."""
    sums = np.zeros((n_clusters, len(X)))
    order = order_of(labels, n_clusters)
    _add(sums, Y, X, order, np.empty(0, dtype=np.intp), labels[order], weights[order])
    return sums


def move_sums(sums: Floats, Y: Floats, X: Floats, moves: Moves, weights: Floats) -> None:
    """Update cluster sums; computes the rows of the moved samples only."""
    order = order_of_ways(moves, len(sums))
    samples = moves.samples[order]
    _add(sums, Y, X, samples, moves.old[order], moves.new[order], weights[samples])


def _add(sums: Floats, Y: Floats, X: Floats, samples: Ints, old: Ints, new: Ints, weights: Floats) -> None:
    """Add the kernel rows of samples to their new clusters and take them from the old ones, if there are any.

    Threads share out the columns, for some samples after the others: Python listens to signals in between.
    """
    n, n_features = X.shape
    borders = piece_borders(n)
    widest = int(np.diff(borders).max(initial=0))
    most = max(1, VALUES_AT_ONCE // (ROWS * max(n, 1))) * ROWS
    numbers = np.arange(ROWS)
    large = ROWS * widest * n_features > SMALL_PRODUCT
    with single_threaded_blas() if large else nullcontext():
        for start in range(0, len(samples), most):
            part = slice(start, min(start + most, len(samples)))
            ways = (samples[part], old[part], new[part], weights[part])
            work = partial(_take_pieces, read_only(Y), read_only(X), *ways, numbers, borders, sums)
            elements = READ_MEANWHILE * (part.stop - part.start) * n
            share_pieces(work, n, elements=elements, width=widest)


def piece_borders(n: int) -> Ints:
    """Return where the pieces of columns begin that threads take, and where the last one ends.

    They depend on the number of columns alone: products of other shapes may be rounded in another way.
    """
    wide = min(max(-(-n // (16 * PIECES)) * 16, NARROWEST), WIDEST)
    narrow = max(wide // 2, NARROWEST)
    turn = 3 * n // 4 // wide * wide
    return np.concatenate([np.arange(0, turn, wide), np.arange(turn, n, narrow), [n]])


@njit(nogil=True, cache=True)
def _take_pieces(
    Y: Floats,
    X: Floats,
    samples: Ints,
    old: Ints,
    new: Ints,
    weights: Floats,
    numbers: Ints,
    borders: Ints,
    sums: Floats,
    tickets: Ints,
    widest: int,
    waits: bool,
) -> bool:
    """Take pieces of the columns as long as there are any; see `share_pieces`."""
    count = borders.size - 1
    turned = np.empty(X.shape[1] * widest)
    rows = np.empty((ROWS, X.shape[1]))
    values = np.empty(ROWS * widest)
    piece = next_piece(tickets)
    while piece < count:
        lo = borders[piece]
        hi = borders[piece + 1]
        factors = turned[: X.shape[1] * (hi - lo)].reshape((X.shape[1], hi - lo))
        _turn(X, lo, hi, factors)
        for start in range(0, samples.size, ROWS):
            stop = min(start + ROWS, samples.size)
            m = stop - start
            held = values[: m * (hi - lo)]
            K = held.reshape((m, hi - lo))
            _take_rows(Y, samples[start:stop], rows)
            np.dot(rows[:m], factors, K)
            _exponentials(held)
            if old.size:
                there = old[start:stop]
                move_rows(K, numbers[:m], there, new[start:stop], weights[start:stop], sums, lo, hi, lo)
            else:
                scatter_rows(K, numbers[:m], new[start:stop], weights[start:stop], sums, lo, hi, lo)
        piece_is_done(tickets)
        piece = next_piece(tickets)
    return waits and all_done(tickets, count)


@njit(nogil=True, cache=True)
def _turn(X: Floats, lo: int, hi: int, factors: Floats) -> None:
    """Write what prepared samples [x, -gamma |x|^2, 1] are multiplied with: columns [y, 1, -gamma |y|^2]."""
    d = X.shape[1] - 2
    for j in range(hi - lo):
        for feature in range(d):
            factors[feature, j] = X[lo + j, feature]
        factors[d, j] = X[lo + j, d + 1]
        factors[d + 1, j] = X[lo + j, d]


@njit(nogil=True, cache=True)
def _take_rows(Y: Floats, samples: Ints, rows: Floats) -> None:
    """Copy the rows of some samples."""
    for i in range(samples.size):
        for feature in range(Y.shape[1]):
            rows[i, feature] = Y[samples[i], feature]


@njit(nogil=True, cache=True, fastmath={"contract"})
def _exponentials(values: Floats) -> None:
    """Replace exponents by exponentials, wrong by less than one in the last digit.

    Rounding may push an exponent above 0, where it is cut.
    """
    for i in range(values.size):
        exponent = min(values[i], 0.0)
        x = LEAST_EXPONENT if exponent < LEAST_EXPONENT else exponent  # NaN stays
        rounded = x * LOG2_E + ROUNDING
        whole = rounded - ROUNDING
        r = (x - whole * LOG_2_HIGH) - whole * LOG_2_LOW
        series = POWERS[0]
        series = series * r + POWERS[1]
        series = series * r + POWERS[2]
        series = series * r + POWERS[3]
        series = series * r + POWERS[4]
        series = series * r + POWERS[5]
        series = series * r + POWERS[6]
        series = series * r + POWERS[7]
        series = series * r + POWERS[8]
        series = series * r + POWERS[9]
        series = series * r + POWERS[10]
        series = series * r + POWERS[11]
        series = series * r + POWERS[12]
        series = series * r + POWERS[13]
        power_of_two = _number_of((_bits_of(rounded) + EXPONENT_BIAS) << MANTISSA_BITS)
        values[i] = 0.0 if exponent < LEAST_EXPONENT else series * power_of_two


@_intrinsic
def _bits_of(context: Any, number: Any) -> Any:
    """Return the bits of a number."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


@_intrinsic
def _number_of(context: Any, bits: Any) -> Any:
    """Return the number that has these bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate
