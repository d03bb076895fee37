"""Plain twins of the compiled loops: the reference engine, and the oracle in tests.

Shapes: K (m, n) holds one row per source sample; out and sums are (k, n), one row per cluster, so that every
update runs along contiguous memory.
"""

import threading
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Array, Bools, Floats, Ints

# Samples whose sums inside of clusters are added up by themselves.
PART = 128

_TAKING = threading.Lock()  # while a piece is taken


def scatter_rows(K: Array, rows: Ints, groups: Ints, weights: Floats, out: Floats, lo: int, hi: int, left: int) -> None:
    """Add weights[t] * K[rows[t], lo - left : hi - left] to out[groups[t], lo:hi]."""
    for row, group, weight in zip(rows, groups, weights, strict=True):
        out[group, lo:hi] += weight * K[row, lo - left : hi - left].astype(np.float64)


def move_rows(
    K: Array, rows: Ints, old: Ints, new: Ints, weights: Floats, out: Floats, lo: int, hi: int, left: int
) -> None:
    """Take weights[t] * K[rows[t], lo - left : hi - left] from out[old[t]] and add it to out[new[t]]."""
    for row, source, target, weight in zip(rows, old, new, weights, strict=True):
        part = weight * K[row, lo - left : hi - left].astype(np.float64)
        out[source, lo:hi] -= part
        out[target, lo:hi] += part


def scatter_pieces(
    K: Array, rows: Ints, groups: Ints, weights: Floats, out: Floats, pieces: Ints, tickets: Ints, waits: bool
) -> bool:
    """Take pieces of ``scatter_rows`` as long as there are any that nobody has begun.

    Of each piece its first row, the one after its last, its first column and the one after its last are given.
    ``tickets`` counts the pieces that are begun and those that are done. Returns whether all are done, for which
    whoever ``waits`` looks for a short while.
    """
    for piece, _ in _pieces(tickets, len(pieces), 1):
        first, last, lo, hi = pieces[piece]
        scatter_rows(K, rows[first:last], groups[first:last], weights[first:last], out, lo, hi, 0)
    return waits and tickets[1] >= len(pieces)


def move_pieces(
    K: Array, rows: Ints, old: Ints, new: Ints, weights: Floats, out: Floats, tickets: Ints, width: int, waits: bool
) -> bool:
    """Take pieces of ``move_rows``, each ``width`` columns, likewise."""
    for lo, hi in _pieces(tickets, out.shape[1], width):
        move_rows(K, rows, old, new, weights, out, lo, hi, 0)
    return waits and tickets[1] * width >= out.shape[1]


def _pieces(tickets: Ints, n: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield pieces that nobody has begun."""
    while True:
        with _TAKING:
            lo = int(tickets[0]) * width
            tickets[0] += 1
        if lo >= n:
            return
        yield lo, min(lo + width, n)
        with _TAKING:
            tickets[1] += 1


def add_within(sums: Floats, labels: Ints, weights: Floats, parts: Floats, lo: int, hi: int) -> None:
    """Write the sums of weights[i] * sums[labels[i], i] by cluster, in one row of ``parts`` for every PART samples."""
    samples = np.arange(lo, hi)
    values = weights[lo:hi] * sums[labels[lo:hi], samples]
    first = lo // PART
    rows, k = parts[first : -(-hi // PART)].shape
    cells = (samples // PART - first) * k + labels[lo:hi]
    parts[first : first + rows] = np.bincount(cells, values, rows * k).reshape(rows, k)


def add_parts(parts: Floats, out: Floats) -> None:
    """Write the sum of all rows."""
    out[:] = parts.sum(axis=0)


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
    """Write the cluster with least norms[c] - slopes[c] * sums[c, i], and that value, for lo <= i < hi.

    Values within ``tolerance`` are equal: a sample keeps its label unless another cluster is nearer by more, and then
    takes the first within ``tolerance`` of the nearest. Clusters with infinite norm are empty. Returns the least lead
    of a kept label over the best other cluster, plus ``tolerance``.
    """
    filled = ~np.isinf(norms)
    values = norms[filled, None] - slopes[filled, None] * sums[filled, lo:hi]
    return _take_least(values, filled, labels, tolerance, out, nearest_values, lo, hi)


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
    """Write the cluster with least coefs[c] (diag[i] + norms[c] - slopes[c] * sums[c, i]), ties as in ``nearest``."""
    filled = ~np.isinf(norms)
    values = (norms[filled, None] - slopes[filled, None] * sums[filled, lo:hi]) + diag[lo:hi]
    return _take_least(coefs[filled, None] * values, filled, labels, tolerance, out, nearest_values, lo, hi)


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
    """Write the mean with least coefs[c] (diag[i] + norms[c] - 2 <phi_i, m_c>), ties as in ``nearest``.

    ``columns`` holds the means as columns.
    """
    filled = ~np.isinf(norms)
    values = (norms[filled, None] - 2.0 * (Phi[lo:hi] @ columns[:, filled]).T) + diag[lo:hi]
    return _take_least(coefs[filled, None] * values, filled, labels, tolerance, out, nearest_values, lo, hi)


def add_rows(Phi: Array, labels: Ints, weights: Floats, out: Floats, lo: int, hi: int) -> None:
    """Add weights[i] * Phi[i] to out[labels[i]] for lo <= i < hi."""
    np.add.at(out, labels[lo:hi], weights[lo:hi, None] * Phi[lo:hi])


def shift_rows(Phi: Array, moved: Ints, old: Ints, new: Ints, weights: Floats, out: Floats, lo: int, hi: int) -> None:
    """Take weights[t] * Phi[moved[t]] from out[old[t]] and add it to out[new[t]] for lo <= t < hi."""
    parts = weights[lo:hi, None] * Phi[moved[lo:hi]]
    np.add.at(out, old[lo:hi], -parts)
    np.add.at(out, new[lo:hi], parts)


def assign_by_size(values: Floats, weights: Floats, sizes: Floats, labels: Ints, tolerance: float, out: Ints) -> None:
    """Assign sample after sample to the cluster with least sizes[c] * values[i, c], its own weight left out.

    ``sizes`` changes with every sample. Values within ``tolerance`` are equal: a sample keeps its label where that is
    among the least, and else takes the first of them. Infinite values mark clusters without a centre.
    """
    for i, row in enumerate(values):
        sizes[labels[i]] = max(sizes[labels[i]] - weights[i], 0.0)
        scaled = np.full(len(sizes), np.inf)
        known = np.isfinite(row)
        scaled[known] = sizes[known] * row[known]
        least = np.flatnonzero(scaled <= scaled.min() + tolerance)
        out[i] = labels[i] if labels[i] in least else least[0]
        sizes[out[i]] += weights[i]


def _take_least(
    found: Floats, filled: Bools, labels: Ints, tolerance: float, out: Ints, nearest_values: Floats, lo: int, hi: int
) -> float:
    """Write the cluster of least value; ``found`` has a row for each of the ``filled`` clusters."""
    values = np.full((len(filled), hi - lo), np.inf)
    values[filled] = found
    at = np.arange(hi - lo)
    kept = values[labels[lo:hi], at]
    values[labels[lo:hi], at] = np.inf
    low = values.min(axis=0)
    moves = low < kept - tolerance
    first = (values <= low + tolerance).argmax(axis=0)
    out[lo:hi] = np.where(moves, first, labels[lo:hi])
    nearest_values[lo:hi] = np.where(moves, values[first, at], kept)
    leads = (low - kept + tolerance)[~moves]
    return float(leads.min(initial=np.inf))


def candidate_gains(
    K: Array, diag: Floats, distances: Floats, weights: Floats, out: Floats, lo: int, hi: int, left: int
) -> None:
    """Write sum_i w_i max(d_i - (K_nn + K_ii - 2 K_ni), 0) for lo <= n < hi; K holds the rows from ``left`` on."""
    gaps = diag[lo:hi, None] + diag[None, :] - 2.0 * K[lo - left : hi - left].astype(np.float64)
    out[lo:hi] = np.maximum(distances[None, :] - gaps, 0.0) @ weights


def worst_asymmetry(K: Array, lo: int, hi: int) -> tuple[float, float, int, int]:
    """Return max |K_ij - K_ji| and the largest absolute value over i in lo:hi and j >= i, with the place of the first.

    Where such a value or its mirror image is not finite both are infinite and the place is that value's.
    """
    part = np.triu(K[lo:hi].astype(np.float64), lo)
    mirror = np.triu(K[:, lo:hi].T.astype(np.float64), lo)
    for values, swapped in ((part, False), (mirror, True)):
        if not np.isfinite(values).all():
            i, j = np.argwhere(~np.isfinite(values))[0].tolist()
            return np.inf, np.inf, *((j, i + lo) if swapped else (i + lo, j))
    gaps = np.where(np.triu(np.ones(part.shape, dtype=bool), lo), np.abs(part - mirror), -1.0)
    i, j = np.unravel_index(int(gaps.argmax()), gaps.shape)
    peak = max(float(np.abs(part).max()), float(np.abs(mirror).max()))
    return float(gaps[i, j]), peak, int(i) + lo, int(j)


def asymmetry_pieces(K: Array, found: Floats, tickets: Ints, width: int, waits: bool) -> bool:
    """Take pieces of ``worst_asymmetry`` likewise and write what is found, one row of ``found`` each."""
    for lo, hi in _pieces(tickets, len(K), width):
        found[lo // width] = worst_asymmetry(K, lo, hi)
    return waits and tickets[1] >= len(found)


# Rows of distances, and graphs: indptr, indices and data are those of a sparse matrix by rows.


def least_columns(products: Array, offsets: Array, out: Ints) -> None:
    """Write the columns of the least offsets[j] - 2 products[i, j] of every row, least first, as many as ``out`` has.

    Between equal values the first column comes first.
    """
    out[:] = np.argsort(offsets - 2 * products, axis=1, kind="stable")[:, : out.shape[1]]


def row_distances(Z: Array, known: Array, chosen: Ints, out: Floats) -> None:
    """Write the distances of every row from the known ones that are chosen for it."""
    for i, row in enumerate(np.asarray(Z, dtype=np.float64)):
        out[i] = np.sqrt(np.square(known[chosen[i]] - row).sum(axis=1))


def largest_finite(values: Floats, out: Floats, lo: int, hi: int) -> None:
    """Write the largest finite value of rows lo:hi, or zero."""
    part = values[lo:hi]
    out[lo:hi] = np.where(np.isfinite(part), part, 0.0).max(axis=1, initial=0.0)


def list_callers(by_rank: Ints, fresh: Bools, callers: Ints, new: Bools, counts: Ints, lo: int, hi: int) -> None:
    """Write who has row j among its neighbours, for lo <= j < hi, while there is room: whom it is nearest to first.

    ``by_rank[t, i]`` is the neighbour of row i at rank t, ``fresh[t, i]`` whether it is one since the last round. The
    callers of row j, as many as ``counts`` says, are in ``callers[j]``, and what is fresh about them in ``new[j]``.
    """
    counts[lo:hi] = 0
    ranks, places = np.nonzero((by_rank >= lo) & (by_rank < hi))
    for t, i in zip(ranks, places, strict=True):
        j = by_rank[t, i]
        if counts[j] < callers.shape[1]:
            callers[j, counts[j]] = i
            new[j, counts[j]] = fresh[t, i]
            counts[j] += 1


def list_known(
    neighbors: Ints, fresh: Bools, callers: Ints, new: Bools, counts: Ints, known: Ints, ends: Ints, lo: int, hi: int
) -> None:
    """Write whom rows lo:hi know: their first neighbours, as many as there is room for callers, and their callers.

    Fresh ones come first: those of row i end at ``ends[i, 0]``, the others at ``ends[i, 1]``. A caller that is a
    neighbour as well counts once, and is fresh if it is in both ways.
    """
    for i in range(lo, hi):
        calls = dict(zip(callers[i, : counts[i]].tolist(), new[i, : counts[i]].tolist(), strict=True))
        breadth = callers.shape[1]
        own = zip(neighbors[i, :breadth].tolist(), fresh[i, :breadth].tolist(), strict=True)
        knows = {j: is_new and calls.get(j, True) for j, is_new in own}
        knows |= {j: is_new for j, is_new in calls.items() if j not in knows}
        first = [j for j, is_new in knows.items() if is_new]
        later = [j for j, is_new in knows.items() if not is_new]
        known[i, : len(knows)] = first + later
        ends[i] = (len(first), len(knows))


def closer_rows(
    rows: Floats,
    neighbors: Ints,
    squares: Floats,
    known: Ints,
    ends: Ints,
    closest: Ints,
    closest_squares: Floats,
    found: Bools,
    lo: int,
    hi: int,
) -> None:
    """Write the nearest of the neighbours that rows lo:hi have and of those whom they meet, nearest first.

    They meet whom those know that they know, where one of the two is fresh: others have met before. ``found`` is who
    was not a neighbour yet. Of rows equally far those that were neighbours come first, then those that were met first.
    """
    m = neighbors.shape[1]
    for i in range(lo, hi):
        met = dict.fromkeys(neighbors[i].tolist())
        for place, j in enumerate(known[i, : ends[i, 1]].tolist()):
            end = ends[j, 1] if place < ends[i, 0] else ends[j, 0]
            met |= dict.fromkeys(other for other in known[j, :end].tolist() if other != i and other not in met)
        others = np.array(list(met))
        later = np.square(rows[others[m:]] - rows[i]).sum(axis=1)
        every = np.concatenate([squares[i], later])
        order = np.argsort(every, kind="stable")[:m]
        closest[i] = others[order]
        closest_squares[i] = every[order]
        found[i] = order >= m


def multiply_rows(indptr: Ints, indices: Ints, data: Floats, H: Floats, out: Floats, lo: int, hi: int) -> None:
    """Write the rows lo:hi of a sparse matrix times H."""
    ends = indptr[lo : hi + 1]
    entries = slice(ends[0], ends[-1])
    rows = (data[entries], indices[entries], ends - ends[0])
    out[lo:hi] = sp.csr_array(rows, shape=(hi - lo, len(H))) @ H


def count_links(indices: Ints, values: Floats, counts: Ints, lo: int, hi: int) -> None:
    """Add to counts[j], for lo <= j < hi, how many rows name j with a value that is not zero."""
    there = indices[(values != 0.0) & (indices >= lo) & (indices < hi)]
    counts[lo:hi] += np.bincount(there - lo, minlength=hi - lo)


def list_links(indices: Ints, values: Floats, starts: Ints, sources: Ints, weights: Floats, lo: int, hi: int) -> None:
    """Write the rows that name j with a value that is not zero, and the values, from starts[j] on for lo <= j < hi."""
    rows, places = np.nonzero((values != 0.0) & (indices >= lo) & (indices < hi))
    order = np.argsort(indices[rows, places], kind="stable")
    part = slice(starts[lo], starts[hi])
    sources[part] = rows[order]
    weights[part] = values[rows, places][order]


def join_links(
    indices: Ints,
    values: Floats,
    starts: Ints,
    sources: Ints,
    weights: Floats,
    ends: Ints,
    columns: Ints,
    data: Floats,
    lo: int,
    hi: int,
    *,
    write: bool,
) -> None:
    """Write half the sum of what rows lo:hi name and of who names them, columns in order, from ends[i] on.

    Without ``write`` only ends[i + 1] is set, to the number of columns that row i will have.
    """
    n = len(indices)
    for i in range(lo, hi):
        own = values[i] != 0.0
        there = slice(starts[i], starts[i + 1])
        line = np.zeros(n)
        np.add.at(line, indices[i, own], values[i, own])
        np.add.at(line, sources[there], weights[there])
        named = np.union1d(indices[i, own], sources[there])
        if write:
            columns[ends[i] : ends[i + 1]] = named
            data[ends[i] : ends[i + 1]] = 0.5 * line[named]
        else:
            ends[i + 1] = len(named)


def add_graph_rows(
    indptr: Ints,
    indices: Ints,
    data: Floats,
    factor: float,
    other_indptr: Ints,
    other_indices: Ints,
    other_data: Floats,
    other_factor: float,
    ends: Ints,
    columns: Ints,
    sums: Floats,
    lo: int,
    hi: int,
    *,
    write: bool,
) -> None:
    """Write the rows lo:hi of factor times one graph plus other_factor times another, from ends[i] on.

    Columns of both graphs are in order, and so are those written. Without ``write`` only ends[i + 1] is set, to the
    number of columns that row i will have.
    """
    for i in range(lo, hi):
        here = slice(indptr[i], indptr[i + 1])
        there = slice(other_indptr[i], other_indptr[i + 1])
        named = np.union1d(indices[here], other_indices[there])
        if not write:
            ends[i + 1] = len(named)
            continue
        line = np.zeros(len(named))
        line[np.searchsorted(named, indices[here])] = data[here] * factor
        line[np.searchsorted(named, other_indices[there])] += other_data[there] * other_factor
        columns[ends[i] : ends[i + 1]] = named
        sums[ends[i] : ends[i + 1]] = line
