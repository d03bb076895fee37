"""Compiled loops, each the fast twin of the function of the same name in ``numpy_loops``.

Plain serial functions that release the interpreter lock: threads are laid over ranges by the caller, which
compiles in a fraction of the time of numba's own parallel mode. Sums are kept in float64 for every input type.
Importing this module compiles nothing; the first call does, and the result is kept on disk.
"""

from typing import Any

import numpy as np
from numba import njit

from kernelweave.backends import numpy_loops
from kernelweave.backends.compiled.symmetry import asymmetry_pieces as asymmetry_pieces
from kernelweave.backends.compiled.symmetry import worst_asymmetry as worst_asymmetry
from kernelweave.backends.compiled.tickets import all_done, next_piece, piece_is_done
from kernelweave.foundation.array_types import Array, Floats, Ints

# Samples whose sums inside of clusters are added up by themselves: pieces of threads are multiples of it.
PART = numpy_loops.PART
# The column that whole rows begin with. A literal 0 would have the loops compiled once more, for this one number.
FIRST: Any = np.int64(0)
# Samples handled together in `nearest`: their running minima stay in the first-level cache.
TILE = 256


@njit(nogil=True, cache=True)
def scatter_rows(K: Array, rows: Ints, groups: Ints, weights: Floats, out: Floats, lo: int, hi: int, left: int) -> None:
    """Add weights[t] * K[rows[t], lo - left : hi - left] to out[groups[t], lo:hi]; ``groups`` must be sorted.

    Eight rows of one group are added in one sweep: the totals are then read and written once for every eight
    rows of K, which brings the pass close to the time of reading K.
    """
    n = rows.size
    width = hi - lo
    t = 0
    while t < n:
        total = out[groups[t], lo:hi]
        if t + 7 < n and groups[t + 7] == groups[t]:
            a = K[rows[t], lo - left : hi - left]
            b = K[rows[t + 1], lo - left : hi - left]
            c = K[rows[t + 2], lo - left : hi - left]
            d = K[rows[t + 3], lo - left : hi - left]
            e = K[rows[t + 4], lo - left : hi - left]
            f = K[rows[t + 5], lo - left : hi - left]
            g = K[rows[t + 6], lo - left : hi - left]
            h = K[rows[t + 7], lo - left : hi - left]
            wa = weights[t]
            wb = weights[t + 1]
            wc = weights[t + 2]
            wd = weights[t + 3]
            we = weights[t + 4]
            wf = weights[t + 5]
            wg = weights[t + 6]
            wh = weights[t + 7]
            for i in range(width):
                total[i] += ((wa * a[i] + wb * b[i]) + (wc * c[i] + wd * d[i])) + (
                    (we * e[i] + wf * f[i]) + (wg * g[i] + wh * h[i])
                )
            t += 8
        else:
            a = K[rows[t], lo - left : hi - left]
            wa = weights[t]
            for i in range(width):
                total[i] += wa * a[i]
            t += 1


@njit(nogil=True, cache=True)
def move_rows(
    K: Array, rows: Ints, old: Ints, new: Ints, weights: Floats, out: Floats, lo: int, hi: int, left: int
) -> None:
    """Take weights[t] * K[rows[t], lo - left : hi - left] from out[old[t]] and add it to out[new[t]].

    Four rows with the same way are carried in one sweep: sort moves by ``old`` and ``new``.
    """
    t = 0
    width = hi - lo
    while t < rows.size:
        source = out[old[t], lo:hi]
        target = out[new[t], lo:hi]
        a = K[rows[t], lo - left : hi - left]
        wa = weights[t]
        alike = t + 3 < rows.size
        for s in range(t + 1, t + 4 if alike else t + 1):
            alike &= old[s] == old[t] and new[s] == new[t]
        if alike:
            b = K[rows[t + 1], lo - left : hi - left]
            c = K[rows[t + 2], lo - left : hi - left]
            d = K[rows[t + 3], lo - left : hi - left]
            wb = weights[t + 1]
            wc = weights[t + 2]
            wd = weights[t + 3]
            for i in range(width):
                part = (wa * a[i] + wb * b[i]) + (wc * c[i] + wd * d[i])
                source[i] -= part
                target[i] += part
            t += 4
        else:
            for i in range(width):
                part = wa * a[i]
                source[i] -= part
                target[i] += part
            t += 1


@njit(nogil=True, cache=True)
def scatter_pieces(
    K: Array, rows: Ints, groups: Ints, weights: Floats, out: Floats, pieces: Ints, tickets: Ints, waits: bool
) -> bool:
    """Take pieces of ``scatter_rows`` as long as there are any; see the twin."""
    count = pieces.shape[0]
    piece = next_piece(tickets)
    while piece < count:
        first = pieces[piece, 0]
        last = pieces[piece, 1]
        lo = pieces[piece, 2]
        hi = pieces[piece, 3]
        scatter_rows(K, rows[first:last], groups[first:last], weights[first:last], out, lo, hi, FIRST)
        piece_is_done(tickets)
        piece = next_piece(tickets)
    return waits and all_done(tickets, count)


@njit(nogil=True, cache=True)
def move_pieces(
    K: Array, rows: Ints, old: Ints, new: Ints, weights: Floats, out: Floats, tickets: Ints, width: int, waits: bool
) -> bool:
    """Take pieces of ``move_rows``, each some columns wide, likewise."""
    n = out.shape[1]
    count = -(-n // width)
    piece = next_piece(tickets)
    while piece < count:
        lo = piece * width
        move_rows(K, rows, old, new, weights, out, lo, min(lo + width, n), FIRST)
        piece_is_done(tickets)
        piece = next_piece(tickets)
    return waits and all_done(tickets, count)


@njit(nogil=True, cache=True)
def add_within(sums: Floats, labels: Ints, weights: Floats, parts: Floats, lo: int, hi: int) -> None:
    """Write the sums of weights[i] * sums[labels[i], i] by cluster, in one row of ``parts`` for every PART samples.

    ``lo`` is a multiple of PART. Parts are the same whatever the range, and so is their sum in ``add_parts``.
    """
    for start in range(lo, hi, PART):
        part = parts[start // PART]
        part[:] = 0.0
        for i in range(start, min(start + PART, hi)):
            label = labels[i]
            part[label] += weights[i] * sums[label, i]


@njit(nogil=True, cache=True)
def add_parts(parts: Floats, out: Floats) -> None:
    """Write the sum of all rows, one after the other."""
    out[:] = 0.0
    for part in range(parts.shape[0]):
        for c in range(out.size):
            out[c] += parts[part, c]


@njit(nogil=True, cache=True)
def nearest(
    sums: Floats,
    slopes: Floats,
    norms: Floats,
    labels: Ints,
    tolerance: float,
    out: Ints,
    nearest_values: Floats,
    lo: int,
    hi: int,
) -> float:
    """Write the nearest cluster and its value for lo <= i < hi; see the twin for the rule on ties.

    The two least values of every sample tell the least among the other clusters, whichever is its own: no label is
    looked at in the loop over clusters.
    """
    low = np.empty(TILE)
    second = np.empty(TILE)
    lead = np.inf
    for start in range(lo, hi, TILE):
        width = min(TILE, hi - start)
        low[:] = np.inf
        second[:] = np.inf
        for c in range(norms.size):
            norm = norms[c]
            if np.isinf(norm):
                continue
            slope = slopes[c]
            row = sums[c, start : start + width]
            for t in range(width):
                value = norm - slope * row[t]
                least = low[t]
                larger = value if value > least else least
                second[t] = larger if larger < second[t] else second[t]
                low[t] = value if value < least else least
        for t in range(width):
            i = start + t
            label = labels[i]
            kept = np.inf
            if not np.isinf(norms[label]):
                kept = norms[label] - slopes[label] * sums[label, i]
            other = second[t] if kept == low[t] else low[t]
            out[i] = label
            nearest_values[i] = kept
            if not other < kept - tolerance:
                gap = other - kept + tolerance
                lead = gap if gap < lead else lead
                continue
            for c in range(norms.size):
                if c != label and not np.isinf(norms[c]):
                    value = norms[c] - slopes[c] * sums[c, i]
                    if value <= other + tolerance:
                        out[i] = c
                        nearest_values[i] = value
                        break
    return lead


@njit(nogil=True, cache=True)
def nearest_scaled(
    sums: Floats,
    slopes: Floats,
    norms: Floats,
    coefs: Floats,
    diag: Floats,
    labels: Ints,
    tolerance: float,
    out: Ints,
    nearest_values: Floats,
    lo: int,
    hi: int,
) -> float:
    """Write the cluster of least scaled distance and that value for lo <= i < hi; see the twin."""
    values = np.empty((norms.size, TILE))
    lead = np.inf
    for start in range(lo, hi, TILE):
        width = min(TILE, hi - start)
        base = diag[start : start + width]
        for c in range(norms.size):
            line = values[c]
            row = sums[c, start : start + width]
            norm = norms[c]
            slope = slopes[c]
            coef = coefs[c]
            for t in range(width):
                line[t] = coef * ((norm - slope * row[t]) + base[t])
        for t in range(width):
            lead = min(lead, _choose(values[:, t], labels, tolerance, out, nearest_values, start + t))
    return lead


@njit(nogil=True, cache=True)
def nearest_means(
    Phi: Array,
    diag: Floats,
    columns: Floats,
    norms: Floats,
    coefs: Floats,
    labels: Ints,
    tolerance: float,
    out: Ints,
    nearest_values: Floats,
    lo: int,
    hi: int,
) -> float:
    """Write the mean of least scaled distance and that value for lo <= i < hi; see the twin."""
    lead = np.inf
    for start in range(lo, hi, TILE):
        width = min(TILE, hi - start)
        values = np.dot(Phi[start : start + width], columns)
        for t in range(width):  # as in `_choose`, written out: a call for every sample takes longer than the choice
            i = start + t
            base = diag[i]
            label = labels[i]
            low = np.inf
            for c in range(norms.size):
                values[t, c] = coefs[c] * ((norms[c] - 2.0 * values[t, c]) + base)
            kept = values[t, label]
            values[t, label] = np.inf
            for c in range(norms.size):
                low = values[t, c] if values[t, c] < low else low
            out[i] = label
            nearest_values[i] = kept
            if low < kept - tolerance:
                for c in range(norms.size):
                    if values[t, c] <= low + tolerance:
                        out[i] = c
                        nearest_values[i] = values[t, c]
                        break
            else:
                gap = low - kept + tolerance
                lead = gap if gap < lead else lead
    return lead


@njit(nogil=True, cache=True)
def add_rows(Phi: Array, labels: Ints, weights: Floats, out: Floats, lo: int, hi: int) -> None:
    """Add weights[i] * Phi[i] to out[labels[i]] for lo <= i < hi."""
    for i in range(lo, hi):
        total = out[labels[i]]
        row = Phi[i]
        weight = weights[i]
        for j in range(row.size):
            total[j] += weight * row[j]


@njit(nogil=True, cache=True)
def shift_rows(Phi: Array, moved: Ints, old: Ints, new: Ints, weights: Floats, out: Floats, lo: int, hi: int) -> None:
    """Take weights[t] * Phi[moved[t]] from out[old[t]] and add it to out[new[t]] for lo <= t < hi."""
    for t in range(lo, hi):
        source = out[old[t]]
        target = out[new[t]]
        row = Phi[moved[t]]
        weight = weights[t]
        for j in range(row.size):
            part = weight * row[j]
            source[j] -= part
            target[j] += part


@njit(nogil=True, cache=True)
def assign_by_size(values: Floats, weights: Floats, sizes: Floats, labels: Ints, tolerance: float, out: Ints) -> None:
    """Assign one row of ``values`` after the other by size times value, sizes changing at once; see the twin."""
    for i in range(values.shape[0]):
        label = labels[i]
        sizes[label] = max(sizes[label] - weights[i], 0.0)
        low = np.inf
        best = label
        for c in range(values.shape[1]):
            value = sizes[c] * values[i, c]
            if value < low:
                low = value
        if not sizes[label] * values[i, label] <= low + tolerance:
            for c in range(values.shape[1]):
                if sizes[c] * values[i, c] <= low + tolerance:
                    best = c
                    break
        out[i] = best
        sizes[best] += weights[i]


@njit(nogil=True, cache=True, inline="always")
def _choose(values: Floats, labels: Ints, tolerance: float, out: Ints, nearest_values: Floats, i: int) -> float:
    """Write the label of sample ``i`` from its value for each cluster, which are overwritten; return its lead."""
    label = labels[i]
    low = np.inf
    kept = values[label]
    values[label] = np.inf
    for c in range(values.size):
        low = values[c] if values[c] < low else low
    out[i] = label
    nearest_values[i] = kept
    if not low < kept - tolerance:
        return low - kept + tolerance
    for c in range(values.size):
        if values[c] <= low + tolerance:
            out[i] = c
            nearest_values[i] = values[c]
            break
    return np.inf


@njit(nogil=True, cache=True)
def candidate_gains(
    K: Array, diag: Floats, distances: Floats, weights: Floats, out: Floats, lo: int, hi: int, left: int
) -> None:
    """Write sum_i w_i max(d_i - (K_nn + K_ii - 2 K_ni), 0) for lo <= n < hi; K holds the rows from ``left`` on."""
    for n in range(lo, hi):
        row = K[n - left]
        self_value = diag[n]
        total = 0.0
        for i in range(row.size):
            total += weights[i] * max(distances[i] - (self_value + diag[i] - 2.0 * row[i]), 0.0)
        out[n] = total
