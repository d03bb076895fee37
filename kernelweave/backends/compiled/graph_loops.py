"""Compiled loops over rows of distances and of graphs, each the fast twin of the function in ``numpy_loops``.

Serial functions that release the interpreter lock, as in ``row_loops``: a caller lays threads over ranges of rows. A
row is written by one thread, and what it adds up does not depend on the ranges.
"""

from typing import Any

import numpy as np
from numba import njit

from kernelweave.backends.compiled.copies import copy_into
from kernelweave.foundation.array_types import Array, Bools, Floats, Ints

# Values compared with the worst of the least ones at a time: few blocks have a smaller one.
COMPARED = 64


@njit(nogil=True, cache=True)
def least_columns(products: Array, offsets: Array, out: Ints) -> None:
    """Write the columns of the least offsets[j] - 2 products[i, j] of every row, least first; see the twin."""
    m = out.shape[1]
    two = products.dtype.type(2.0)
    least = np.empty(m, products.dtype)
    for i in range(products.shape[0]):
        row = products[i]
        least[:] = np.inf
        out[i] = -1
        filled = 0
        worst = least[m - 1]
        for start in range(0, offsets.size, COMPARED):
            # Slices: places in them are never negative, so that the processor compares several at once.
            here = offsets[start : start + COMPARED]
            there = row[start : start + COMPARED]
            smaller = 0
            for t in range(here.size):
                smaller += here[t] - two * there[t] < worst
            if smaller == 0 and filled == m:
                continue
            for t in range(here.size):
                value = here[t] - two * there[t]
                if filled == m and not value < worst:
                    continue
                place = min(filled, m - 1)
                while place > 0 and value < least[place - 1]:
                    least[place] = least[place - 1]
                    out[i, place] = out[i, place - 1]
                    place -= 1
                least[place] = value
                out[i, place] = start + t
                filled = min(filled + 1, m)
                worst = least[m - 1]


@njit(nogil=True, cache=True)
def row_distances(Z: Array, known: Array, chosen: Ints, out: Floats) -> None:
    """Write the distances of every row from the known ones that are chosen for it; four sums that wait for no other."""
    d = Z.shape[1]
    whole = d - d % 4
    for i in range(chosen.shape[0]):
        row = Z[i]
        for t in range(chosen.shape[1]):
            other = known[chosen[i, t]]
            first = 0.0
            second = 0.0
            third = 0.0
            fourth = 0.0
            for c in range(0, whole, 4):
                first += (np.float64(other[c]) - row[c]) ** 2
                second += (np.float64(other[c + 1]) - row[c + 1]) ** 2
                third += (np.float64(other[c + 2]) - row[c + 2]) ** 2
                fourth += (np.float64(other[c + 3]) - row[c + 3]) ** 2
            for c in range(whole, d):
                first += (np.float64(other[c]) - row[c]) ** 2
            out[i, t] = np.sqrt((first + second) + (third + fourth))


@njit(nogil=True, cache=True)
def largest_finite(values: Floats, out: Floats, lo: int, hi: int) -> None:
    """Write the largest finite value of rows lo:hi, or zero."""
    for i in range(lo, hi):
        largest = 0.0
        for t in range(values.shape[1]):
            if largest < values[i, t] < np.inf:
                largest = values[i, t]
        out[i] = largest


@njit(nogil=True, cache=True)
def list_callers(by_rank: Ints, fresh: Bools, callers: Ints, new: Bools, counts: Ints, lo: int, hi: int) -> None:
    """Write who has row j among its neighbours, for lo <= j < hi, while there is room; see the twin."""
    counts[lo:hi] = 0
    room = callers.shape[1]
    for t in range(by_rank.shape[0]):
        for i in range(by_rank.shape[1]):
            j = by_rank[t, i]
            if lo <= j < hi and counts[j] < room:
                callers[j, counts[j]] = i
                new[j, counts[j]] = fresh[t, i]
                counts[j] += 1


@njit(nogil=True, cache=True)
def list_known(
    neighbors: Ints, fresh: Bools, callers: Ints, new: Bools, counts: Ints, known: Ints, ends: Ints, lo: int, hi: int
) -> None:
    """Write whom rows lo:hi know, fresh ones first; see the twin."""
    breadth = min(neighbors.shape[1], callers.shape[1])
    alone = np.empty(callers.shape[1], np.bool_)  # callers that are not neighbours
    both = np.empty(breadth, np.bool_)  # neighbours that are fresh, in both ways where they are callers, too
    for i in range(lo, hi):
        copy_into(both, fresh[i, :breadth])
        for c in range(counts[i]):
            alone[c] = True
            for t in range(breadth):
                if neighbors[i, t] == callers[i, c]:
                    alone[c] = False
                    both[t] = both[t] and new[i, c]
        place = 0
        for kind in (True, False):
            for t in range(breadth):
                if both[t] == kind:
                    known[i, place] = neighbors[i, t]
                    place += 1
            for c in range(counts[i]):
                if alone[c] and new[i, c] == kind:
                    known[i, place] = callers[i, c]
                    place += 1
            ends[i, 0 if kind else 1] = place


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _squared_distance(row: Floats, other: Floats) -> Any:
    """Return the squared distance of two rows, several columns at a time."""
    total = row.dtype.type(0.0)
    for c in range(row.size):
        total += (other[c] - row[c]) * (other[c] - row[c])
    return total


@njit(nogil=True, cache=True)
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
    """Write the nearest of the neighbours that rows lo:hi have and of those whom they meet; see the twin.

    Who is met is listed before anything is compared: a list without a branch, since nobody can foretell who was met.
    """
    m = neighbors.shape[1]
    last_met = np.full(rows.shape[0], -1, neighbors.dtype)  # the row that has met another one last
    met = np.empty(known.shape[1] ** 2 + 1, neighbors.dtype)
    for i in range(lo, hi):
        near = closest[i]
        least = closest_squares[i]
        newer = found[i]
        copy_into(near, neighbors[i])
        copy_into(least, squares[i])
        newer[:] = False
        last_met[i] = i
        for t in range(m):
            last_met[near[t]] = i
        count = 0
        for place in range(ends[i, 1]):
            j = known[i, place]
            theirs = known[j, : ends[j, 1 if place < ends[i, 0] else 0]]
            for b in range(theirs.size):
                other = theirs[b]
                met[count] = other
                count += last_met[other] != i
                last_met[other] = i
        row = rows[i]
        for place in range(count):
            square = _squared_distance(row, rows[met[place]])
            if not square < least[m - 1]:
                continue
            t = m - 1
            while t > 0 and square < least[t - 1]:
                least[t] = least[t - 1]
                near[t] = near[t - 1]
                newer[t] = newer[t - 1]
                t -= 1
            least[t] = square
            near[t] = met[place]
            newer[t] = True


@njit(nogil=True, cache=True)
def multiply_rows(indptr: Ints, indices: Ints, data: Floats, H: Floats, out: Floats, lo: int, hi: int) -> None:
    """Write the rows lo:hi of a sparse matrix times H; four entries at a time, so that sums are written seldom."""
    width = H.shape[1]
    for i in range(lo, hi):
        total = out[i]
        total[:] = 0.0
        e = indptr[i]
        stop = indptr[i + 1]
        while e + 3 < stop:
            a = H[indices[e]]
            b = H[indices[e + 1]]
            c = H[indices[e + 2]]
            d = H[indices[e + 3]]
            va = data[e]
            vb = data[e + 1]
            vc = data[e + 2]
            vd = data[e + 3]
            for t in range(width):
                total[t] += (va * a[t] + vb * b[t]) + (vc * c[t] + vd * d[t])
            e += 4
        while e < stop:
            a = H[indices[e]]
            va = data[e]
            for t in range(width):
                total[t] += va * a[t]
            e += 1


@njit(nogil=True, cache=True)
def count_links(indices: Ints, values: Floats, counts: Ints, lo: int, hi: int) -> None:
    """Add to counts[j], for lo <= j < hi, how many rows name j with a value that is not zero."""
    for i in range(indices.shape[0]):
        for t in range(indices.shape[1]):
            j = indices[i, t]
            if lo <= j < hi and values[i, t] != 0.0:
                counts[j] += 1


@njit(nogil=True, cache=True)
def list_links(indices: Ints, values: Floats, starts: Ints, sources: Ints, weights: Floats, lo: int, hi: int) -> None:
    """Write the rows that name j with a value that is not zero, and the values, from starts[j] on for lo <= j < hi."""
    places = starts[lo:hi].copy()
    for i in range(indices.shape[0]):
        for t in range(indices.shape[1]):
            j = indices[i, t]
            if lo <= j < hi and values[i, t] != 0.0:
                sources[places[j - lo]] = i
                weights[places[j - lo]] = values[i, t]
                places[j - lo] += 1


@njit(nogil=True, cache=True)
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
    write: bool,
) -> None:
    """Write half the sum of what rows lo:hi name and of who names them, from ends[i] on; see the twin.

    Who names a row is listed in order already, so that only the few that it names have to be sorted.
    """
    m = indices.shape[1]
    names = np.empty(m, np.int64)
    carried = np.empty(m)
    for i in range(lo, hi):
        count = 0
        for t in range(m):
            value = values[i, t]
            if value == 0.0:
                continue
            j = indices[i, t]
            place = count
            while place > 0 and names[place - 1] > j:
                names[place] = names[place - 1]
                carried[place] = carried[place - 1]
                place -= 1
            names[place] = j
            carried[place] = value
            count += 1
        at = ends[i]
        size = 0
        last = -1
        here = 0
        there = starts[i]
        while here < count or there < starts[i + 1]:
            if there == starts[i + 1] or (here < count and names[here] <= sources[there]):
                j = names[here]
                value = carried[here]
                here += 1
            else:
                j = sources[there]
                value = weights[there]
                there += 1
            if j != last:
                size += 1
                last = j
                if write:
                    columns[at + size - 1] = j
                    data[at + size - 1] = 0.5 * value
            elif write:
                data[at + size - 1] += 0.5 * value
        if not write:
            ends[i + 1] = size


@njit(nogil=True, cache=True)
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
    write: bool,
) -> None:
    """Write the rows lo:hi of factor times one graph plus other_factor times another, from ends[i] on; see the twin."""
    for i in range(lo, hi):
        here = indptr[i]
        there = other_indptr[i]
        at = ends[i]
        size = 0
        while here < indptr[i + 1] or there < other_indptr[i + 1]:
            first = here < indptr[i + 1]
            second = there < other_indptr[i + 1]
            if first and second:
                j = indices[here]
                other = other_indices[there]
                first = j <= other
                second = other <= j
            if write:
                columns[at + size] = indices[here] if first else other_indices[there]
                value = 0.0
                if first:
                    value = data[here] * factor
                if second:
                    value += other_data[there] * other_factor
                sums[at + size] = value
            here += first
            there += second
            size += 1
        if not write:
            ends[i + 1] = size
