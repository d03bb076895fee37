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

from kernelweave.backends.compiled.row_loops import FIRST, PART, add_parts, add_within, move_rows, nearest
from kernelweave.backends.compiled.tickets import count_at, counted_up, reached, set_count
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
# Looks for the end of pieces that others have begun, beside half the time that one's own took: one or two milliseconds.
# Whoever gives up sends all helpers home, and calling them again takes as long.
LOOKS = 2_000_000


@njit(nogil=True, cache=True)
def lay_out(
    samples: Ints,
    old: Ints,
    new: Ints,
    weights: Floats,
    totals: Floats,
    ways: Ints,
    carried: Floats,
    clusters: Floats,
    order: Ints,
) -> None:
    """Write what a step needs: moves ordered by their ways with the weights they carry, W_c and 2 / W_c.

    ``order`` is room for the order by new labels, which that by old ones leaves as it is among equals.
    """
    k = totals.size
    starts = np.zeros((2, k + 1), dtype=np.int64)
    for t in range(samples.size):
        starts[0, new[t] + 1] += 1
        starts[1, old[t] + 1] += 1
    for c in range(k):
        starts[0, c + 1] += starts[0, c]
        starts[1, c + 1] += starts[1, c]
        clusters[0, c] = totals[c]
        clusters[1, c] = 2.0 / totals[c] if totals[c] > 0.0 else 0.0
    for t in range(samples.size):
        order[starts[0, new[t]]] = t
        starts[0, new[t]] += 1
    for t in range(samples.size):
        move = order[t]
        place = starts[1, old[move]]
        starts[1, old[move]] += 1
        ways[0, place] = samples[move]
        ways[1, place] = old[move]
        ways[2, place] = new[move]
        carried[place] = weights[samples[move]]


@njit(nogil=True, cache=True)
def take_steps(
    leading: bool,
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
    """Move rows and write the nearest clusters after, with whoever is there.

    Whoever is ``leading`` announces a step, takes part in it and returns whether all of it is done. A helper takes part
    in one step after the other, until none comes for a while or the board is closed.

    The first ``moves`` columns of ``ways`` are rows, old and new labels, and ``labels`` those of all samples after the
    moves; ``clusters`` are W_c and 2 / W_c. Pieces of ``width`` samples begin at multiples of PART. Where others take
    half as long again as this thread did, it decides nothing: what is left has NaN in ``leads``.
    """
    n = sums.shape[1]
    most = (1 << BITS) - 1
    mine = np.empty(parts.shape[0], dtype=np.int64)
    norms = np.empty(sums.shape[0])
    if leading:
        board[MOVES] = moves
        board[WIDTH] = width
        board[DONE] = 0
        step = (count_at(board, TICKET) >> (2 * BITS)) + 1
        set_count(board, TICKET, ((step << BITS) + -(-n // width)) << BITS)
        stays = True
    else:
        stays = counted_up(board, PRESENT, 1) < count_at(board, WANTED) and count_at(board, CLOSED) == 0
    done = False
    while stays:
        taken = 0
        ticket = counted_up(board, TICKET, 1)
        while (ticket & most) < ((ticket >> BITS) & most):
            m = board[MOVES]
            lo = (ticket & most) * board[WIDTH]
            hi = min(lo + board[WIDTH], n)
            move_rows(K, ways[0, :m], ways[1, :m], ways[2, :m], carried, sums, lo, hi, FIRST)
            add_within(sums, labels, weights, parts, lo, hi)
            counted_up(board, DONE, 1)
            mine[taken] = lo
            taken += 1
            ticket = counted_up(board, TICKET, 1)
        count = (ticket >> BITS) & most
        patience = LOOKS + board[MOVES] * board[WIDTH] * max(taken, 1) // 2
        done = taken == 0 or reached(board, DONE, count, patience)
        if done and taken > 0:
            center_norms(parts, clusters[0], norms)
        for t in range(taken if done else 0):
            lo = mine[t]
            hi = min(lo + board[WIDTH], n)
            lead = nearest(sums, clusters[1], norms, labels, tolerance, out, nearest_values, lo, hi)
            leads[lo // PART : -(-hi // PART)] = lead
            counted_up(board, DONE, 1)
        if leading:
            return done and reached(board, DONE, 2 * count, patience)
        stays = done and _another(board, ticket)
    counted_up(board, PRESENT, -1)
    return done


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
def center_norms(parts: Floats, totals: Floats, out: Floats) -> None:
    """Write ||m_c||^2 of every cluster from its sums in parts, infinite where it has no weight."""
    add_parts(parts, out)
    for c in range(out.size):
        out[c] = out[c] / (totals[c] * totals[c]) if totals[c] > 0.0 else np.inf
