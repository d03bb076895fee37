"""What loops over rows are given: the order in which rows are added, and what distances multiply sums by."""

import numpy as np

from kernelweave.backends.protocol import Moves
from kernelweave.foundation.array_types import Floats, Ints


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
