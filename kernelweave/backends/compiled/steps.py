"""Steps of kernel k-means on a stored kernel: threads are woken once for moved rows and nearest clusters.

A step has two parts, and the norms of centres, which take the sums of all samples, lie between them. A thread that has
moved its last piece looks until the pieces of the others are done, and then decides for the samples whose sums it has
at hand.
"""

import numpy as np
from numba import njit

from kernelweave.backends.compiled.row_loops import PART, add_parts, add_within, move_rows, nearest
from kernelweave.backends.compiled.tickets import LOOKS, all_done, next_piece, piece_is_done
from kernelweave.foundation.array_types import Array, Floats, Ints


@njit(nogil=True, cache=True)
def step_pieces(
    K: Array,
    ways: Ints,
    carried: Floats,
    tickets: Ints,
    width: int,
    waits: bool,
    labels: Ints,
    weights: Floats,
    clusters: Floats,
    tolerance: float,
    sums: Floats,
    parts: Floats,
    out: Ints,
    nearest_values: Floats,
    leads: Floats,
) -> bool:
    """Take pieces of ``move_rows``; when the last is done, write the nearest clusters of the samples in them.

    ``ways`` are rows, old and new labels of the moves and ``labels`` those of all samples after them; ``clusters`` are
    W_c and 2 / W_c. Pieces begin at multiples of PART. What a thread moves it decides, too, while it is at hand; where
    others take half as long again as it did, it returns and leaves ``leads`` at NaN.
    """
    n = sums.shape[1]
    count = -(-n // width)
    mine = np.empty(count, dtype=np.int64)
    taken = 0
    piece = next_piece(tickets)
    while piece < count:
        lo = piece * width
        hi = min(lo + width, n)
        move_rows(K, ways[0], ways[1], ways[2], carried, sums, lo, hi, 0)
        add_within(sums, labels, weights, parts, lo, hi)
        piece_is_done(tickets)
        mine[taken] = piece
        taken += 1
        piece = next_piece(tickets)
    if taken == 0 and not waits:
        return False
    if not all_done(tickets, count, LOOKS + taken * width * carried.size // 2):
        return False
    norms = _center_norms(parts, clusters[0])
    for piece in mine[:taken]:
        lo = piece * width
        hi = min(lo + width, n)
        lead = nearest(sums, clusters[1], norms, labels, tolerance, out, nearest_values, lo, hi)
        leads[lo // PART : -(-hi // PART)] = lead
        piece_is_done(tickets)
    return waits and all_done(tickets, 2 * count)


@njit(nogil=True, cache=True)
def decide_rest(
    labels: Ints,
    weights: Floats,
    clusters: Floats,
    tolerance: float,
    sums: Floats,
    parts: Floats,
    out: Ints,
    nearest_values: Floats,
    leads: Floats,
) -> None:
    """Write the nearest clusters of the samples that ``step_pieces`` has left, with the same arguments."""
    norms = _center_norms(parts, clusters[0])
    for part in range(leads.size):
        if np.isnan(leads[part]):
            lo = part * PART
            hi = min(lo + PART, labels.size)
            leads[part] = nearest(sums, clusters[1], norms, labels, tolerance, out, nearest_values, lo, hi)


@njit(nogil=True, cache=True)
def _center_norms(parts: Floats, totals: Floats) -> Floats:
    """Return ||m_c||^2 of every cluster, infinite where it has no weight."""
    within = np.empty(totals.size)
    add_parts(parts, within)
    for c in range(totals.size):
        within[c] = within[c] / (totals[c] * totals[c]) if totals[c] > 0.0 else np.inf
    return within
