"""What loops over rows are given: arrays to read, the order in which rows are added, and the slopes of distances."""

import numpy as np

from kernelweave.backends.protocol import Moves
from kernelweave.foundation.array_types import Array, Floats, Ints

# Pieces of cluster sums for each thread: whoever ends early takes another.
PIECES_EACH = 4
# Fewer columns than this are not read by themselves.
NARROW = 256


def read_only(values: Array) -> Array:
    """Return an array as one that may only be read: loops are compiled once, for this one and for mapped files."""
    if not values.flags.writeable:
        return values
    view = values.view()
    view.flags.writeable = False
    return view


def writable(values: Floats) -> Floats:
    """Return a few numbers as an array that may be written: loops that take them are compiled once, for this one.

    Numbers of saved models may only be read.
    """
    return values if values.flags.writeable else values.copy()


def order_of(values: Ints, count: int) -> Ints:
    """Return the order of integers below ``count``, equal ones as they stand; small ones are sorted much faster."""
    return np.argsort(values.astype(np.uint16) if count <= 2**16 else values, kind="stable")


def order_of_ways(moves: Moves, n_clusters: int) -> Ints:
    """Return moves ordered by the cluster that they leave and the one that they lead to."""
    return order_of(moves.old * n_clusters + moves.new, n_clusters**2)


def slopes_of(totals: Floats) -> Floats:
    """Return 2 / W_c, zero for a cluster without weight."""
    filled = totals > 0
    return np.where(filled, 2.0 / np.where(filled, totals, 1.0), 0.0)


def cluster_pieces(groups: Ints, n_columns: int, threads: int) -> Ints:
    """Return the pieces of cluster sums that so many threads take, the largest first; ``groups`` are sorted.

    A piece is the first row of a cluster, the one after its last, and some columns likewise; pieces have much the same
    size. Processors read long rows faster than short ones, so clusters are told apart before columns are. One thread
    takes all rows in one piece: whatever the pieces, a number is added up within one of them, in the same order.
    """
    n = len(groups)
    if threads <= 1 or n == 0:
        return np.array([[0, n, 0, n_columns]])
    first = 0
    pieces = []
    for last in [*(np.flatnonzero(groups[1:] != groups[:-1]) + 1).tolist(), n]:
        parts = min(-(-PIECES_EACH * threads * (last - first) // n), max(n_columns // NARROW, 1))
        width = max(-(-n_columns // parts), 1)
        pieces += [(first, last, lo, min(lo + width, n_columns)) for lo in range(0, n_columns, width)]
        first = last
    pieces.sort(key=lambda piece: (piece[0] - piece[1]) * (piece[3] - piece[2]))
    return np.array(pieces).reshape(-1, 4)
