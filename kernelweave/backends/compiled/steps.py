"""Steps of kernel k-means on a stored kernel, by threads that stay in compiled loops from one step to the next.

A step has two parts: rows are moved, and the nearest clusters are found; norms of centres, which take the sums of all
samples, lie between them. A thread that has moved its last piece looks until the pieces of the others are done, and
decides for the samples whose sums it has at hand. Then it looks for the next step, which whoever leads prepares within
some hundred microseconds: coming through the interpreter would take each thread as long, one after the other.

What threads tell each other stands on a board of counts: who is there, how many moves the step has and how wide its
pieces are, how many pieces are done (each is done twice, moved and decided), and a ticket. The ticket holds the number
of the step, of its pieces, and of those begun. Who counts it up has a piece of just that step, or none.
"""

import numpy as np
from numba import njit

from kernelweave.backends.compiled.row_loops import PART, add_parts, add_within, move_rows, nearest
from kernelweave.backends.compiled.tickets import LOOKS, count_at, counted_up, reached, set_count
from kernelweave.foundation.array_types import Array, Floats, Ints

# Places on the board; those that many threads change lie in cache lines of their own.
TICKET = 0
DONE = 8
PRESENT = 16  # helpers that are there
WANTED = 17  # and how many there may be
CLOSED = 18
MOVES = 24
WIDTH = 25
BOARD_SIZE = 32
# Bits of a ticket for the pieces begun, and for those there are.
BITS = 16
# Looks for the next step before a helper leaves: about half a millisecond.
PATIENCE = 600_000


@njit(nogil=True, cache=True)
def lead_step(
    moves: int,
    width: int,
    board: Ints,
    K: Array,
    ways: Ints,
    carried: Floats,
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
    """Move rows and write the nearest clusters after, with whoever is there; returns whether all is done.

    The first ``moves`` columns of ``ways`` are rows, old and new labels, and ``labels`` those of all samples after the
    moves; ``clusters`` are W_c and 2 / W_c. Pieces of ``width`` samples begin at multiples of PART. Where others take
    long, what they leave has NaN in ``leads``.
    """
    count = -(-sums.shape[1] // width)
    board[MOVES] = moves
    board[WIDTH] = width
    board[DONE] = 0
    step = (count_at(board, TICKET) >> (2 * BITS)) + 1
    set_count(board, TICKET, (((step << BITS) + count) << BITS))
    most = LOOKS + moves * width
    ticket = _take_part(
        board, K, ways, carried, labels, weights, clusters, tolerance, sums, parts, out, nearest_values, leads
    )
    return ticket >= 0 and reached(board, DONE, 2 * count, most)


@njit(nogil=True, cache=True)
def help_steps(
    board: Ints,
    K: Array,
    ways: Ints,
    carried: Floats,
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
    """Take part in one step after the other, until none comes for a while or the board is closed."""
    stays = counted_up(board, PRESENT, 1) < count_at(board, WANTED) and count_at(board, CLOSED) == 0
    while stays:
        ticket = _take_part(
            board, K, ways, carried, labels, weights, clusters, tolerance, sums, parts, out, nearest_values, leads
        )
        stays = ticket >= 0 and _another(board, ticket)
    counted_up(board, PRESENT, -1)


@njit(nogil=True, cache=True)
def _take_part(
    board: Ints,
    K: Array,
    ways: Ints,
    carried: Floats,
    labels: Ints,
    weights: Floats,
    clusters: Floats,
    tolerance: float,
    sums: Floats,
    parts: Floats,
    out: Ints,
    nearest_values: Floats,
    leads: Floats,
) -> int:
    """Move the pieces that nobody has begun, and decide for their samples when all are moved.

    Returns the ticket that had none, or -1 where others take half as long again as this thread did.
    """
    n = sums.shape[1]
    most = (1 << BITS) - 1
    mine = np.empty(parts.shape[0], dtype=np.int64)
    taken = 0
    ticket = counted_up(board, TICKET, 1)
    count = (ticket >> BITS) & most
    while (ticket & most) < count:
        m = board[MOVES]
        lo = (ticket & most) * board[WIDTH]
        hi = min(lo + board[WIDTH], n)
        move_rows(K, ways[0, :m], ways[1, :m], ways[2, :m], carried, sums, lo, hi, 0)
        add_within(sums, labels, weights, parts, lo, hi)
        counted_up(board, DONE, 1)
        mine[taken] = lo
        taken += 1
        ticket = counted_up(board, TICKET, 1)
        count = (ticket >> BITS) & most
    if taken == 0:
        return ticket
    width = board[WIDTH]
    if not reached(board, DONE, count, LOOKS + taken * width * board[MOVES] // 2):
        return -1
    norms = _center_norms(parts, clusters[0])
    for lo in mine[:taken]:
        hi = min(lo + width, n)
        lead = nearest(sums, clusters[1], norms, labels, tolerance, out, nearest_values, lo, hi)
        leads[lo // PART : -(-hi // PART)] = lead
        counted_up(board, DONE, 1)
    return ticket


@njit(nogil=True, cache=True)
def _another(board: Ints, ticket: int) -> bool:
    """Look for another step than that of the ticket; returns whether one came while the board was open."""
    for _ in range(PATIENCE):
        if count_at(board, CLOSED) != 0:
            return False
        if count_at(board, TICKET) >> BITS != ticket >> BITS:
            return True
    return False


@njit(nogil=True, cache=True)
def decide_rest(
    labels: Ints,
    clusters: Floats,
    tolerance: float,
    sums: Floats,
    parts: Floats,
    out: Ints,
    nearest_values: Floats,
    leads: Floats,
) -> None:
    """Write the nearest clusters of the samples that others have left."""
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
