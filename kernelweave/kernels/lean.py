"""Kernels of wide samples where memory is short: nothing is kept of the samples beside the table they come from.

The samples of a tile are prepared when it is computed, and a tile serves both sides of the diagonal. Samples are
prepared more than once then, which takes little beside the products of many columns that fill a tile.
"""

from functools import partial

import numpy as np

from kernelweave.backends import get_backend
from kernelweave.foundation.array_types import Array, Floats, Index, Matrix
from kernelweave.foundation.memory import Batches, batches_within
from kernelweave.foundation.threads import for_ranges, single_threaded_blas
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.formulas import Formula

# Most samples on a side of a tile, and fewest.
MOST_ROWS = 512
LEAST_ROWS = 16
# Arrays of prepared samples while a tile is computed: one for each side.
PREPARED_HELD = 2
# Tiles alive meanwhile.
TILES_HELD = 2
#: Share of a limit that is for tiles.
TILES_SHARE = 1 / 3
# A product takes along a vector for every so many columns of the samples, which makes it an eighth longer, and no more
# than so many: the small eigenproblems within a basis grow with the cube of them.
COLUMNS_A_VECTOR = 16
MOST_SPARE = 64


def tiles_within(limit: float, n_columns: int) -> Batches:
    """Return the samples on a side of a tile, and how many tiles are computed at a time, within ``limit`` MiB."""
    row_bytes = 8.0 * (PREPARED_HELD * n_columns + TILES_HELD * MOST_ROWS)
    return batches_within(limit, row_bytes, MOST_ROWS, LEAST_ROWS)


class LeanKernel(KernelOperator):
    """k(x_i, x_j) of samples that are prepared tile by tile; ``memory_limit`` MiB bound the tiles."""

    def __init__(self, formula: Formula, X: Array, memory_limit: float) -> None:
        self.backend = get_backend()
        self.formula = formula
        self.X = X
        self.shape = (X.shape[0], X.shape[0])
        self.psd = formula.psd
        self.tiles_mib = TILES_SHARE * memory_limit
        self._tiles = tiles_within(self.tiles_mib, X.shape[1])
        self.spare_vectors = min(MOST_SPARE, X.shape[1] // COLUMNS_A_VECTOR)

    @property
    def recomputed(self) -> bool:
        """True: no value is stored."""
        return True

    def diag(self) -> Floats:
        """Return k(x_i, x_i)."""
        return np.concatenate([self.formula.diag(self._prepared(part)) for part in self._parts()])

    def scale(self) -> float:
        """Return the formula's bound."""
        return max((self.formula.bound(self._prepared(part)) for part in self._parts()), default=0.0)

    def matmat(self, H: Array) -> Floats:
        """Return K @ H; a tile is computed once, for its place and for the one across the diagonal.

        No two tiles of a round have rows or columns in common, so that sums are added up in the same order on any
        number of threads.
        """
        H = np.asarray(H, dtype=np.float64)
        out = np.zeros((self.shape[0], H.shape[1]))
        parts = self._parts()

        def add(first: int, second: int) -> None:
            here = parts[first]
            there = parts[second]
            prepared = self._prepared(here)
            if first == second:
                out[here] += self.formula.tile(prepared, prepared) @ H[here]
                return
            tile = self.formula.tile_in_place(prepared, self._owned(there))
            out[here] += tile @ H[there]
            out[there] += tile.T @ H[here]

        def take(pairs: list[tuple[int, int]], lo: int, hi: int) -> None:
            for first, second in pairs[lo:hi]:
                add(first, second)

        with single_threaded_blas():
            for pairs in rounds(len(parts)):
                for_ranges(
                    partial(take, pairs),
                    len(pairs),
                    elements=len(pairs) * self._tiles.size**2 * self.X.shape[1],
                    width=1,
                    most_at_once=self._tiles.at_once,
                )
        return out

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the kernel between the chosen rows and columns."""
        return self.formula.tile(self._prepared(rows), self._prepared(cols))

    def _parts(self) -> list[slice]:
        """Return the samples in parts of the size of a tile."""
        n = self.shape[0]
        return [slice(lo, min(lo + self._tiles.size, n)) for lo in range(0, n, self._tiles.size)]

    def _prepared(self, samples: Index) -> Matrix:
        return self.formula.prepare(self.X[samples]).astype(np.float64, copy=False)

    def _owned(self, samples: Index) -> Matrix:
        """Return prepared samples that may be overwritten."""
        prepared = self._prepared(samples)
        return prepared.copy() if np.may_share_memory(prepared, self.X) else prepared


def rounds(count: int) -> list[list[tuple[int, int]]]:
    """Return all pairs of ``count`` parts, each with itself too, in rounds that have every part once at most.

    The parts are seated in two rows, opposite ones meet, and all but the first move on by a seat.
    """
    seats = list(range(count + count % 2))  # an odd number is made even by one that nobody meets
    half = len(seats) // 2
    found = [[(part, part) for part in range(count)]]
    for _ in range(len(seats) - 1):
        pairs = [(min(pair), max(pair)) for pair in zip(seats[:half], reversed(seats[half:]), strict=True)]
        found.append([pair for pair in pairs if pair[1] < count])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return found
