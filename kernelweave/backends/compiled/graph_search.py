"""Searches on graphs, compiled loops laid over threads."""

import numpy as np

from kernelweave.backends.compiled.graph_moves import farthest, grow, inner_links, sweep
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.threads import for_ranges

__all__ = ["best_splits", "farthest", "grow", "inner_links", "sweep"]

# Seeds a thread takes at a time.
BLOCK = 32


def best_splits(
    edges: tuple[Ints, Ints, Floats],
    nodes: tuple[Floats, Floats, Floats],
    labels: Ints,
    stats: Floats,
    inner: Floats,
    cut_share: float,
    seeds: Ints,
) -> Floats:
    """Return the least change of the cost that each seed reaches by growing a cluster inside its own.

    ``edges`` are indptr, indices and weights of the graph, ``nodes`` degrees, masses and self-loops.
    """
    n_nodes = len(labels)
    changes = np.empty(len(seeds))
    sizes = np.empty(len(seeds), np.int64)

    def work(lo: int, hi: int) -> None:
        order = np.empty(n_nodes, np.int64)
        grow(*edges, *nodes, labels, stats, inner, cut_share, seeds, changes, sizes, order, lo, hi)

    largest = int(stats[3].max()) // 2 + 1
    for_ranges(work, len(seeds), width=BLOCK, elements=8 * len(seeds) * largest)
    return changes
