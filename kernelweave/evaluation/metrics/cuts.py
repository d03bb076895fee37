"""How a partition cuts a graph."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Ints


@dataclass(frozen=True)
class Cut:
    """The weight between clusters: as normalized cut, as a share of all weight, and against chance."""

    normalized: float  # sum over clusters of the weight that leaves one, by the degrees of its nodes
    share: float  # weight of edges between clusters, by that of all edges
    modularity: float  # share within clusters, less that in a random graph of the same degrees


def cut_of(graph: Any, labels: Ints) -> Cut:
    """Return how labels cut a symmetric graph; a cluster without edges leaves nothing.

    Cost is one pass over the edges. A self-loop is within its cluster and counts once in the degree of its node, as in
    :class:`kernelweave.GraphCut`.
    """
    edges = sp.coo_array(graph)
    codes = np.unique(labels, return_inverse=True)[1]
    k = int(codes.max()) + 1
    degrees = np.bincount(codes[edges.row], edges.data, k)
    inside = codes[edges.row] == codes[edges.col]
    within = np.bincount(codes[edges.row[inside]], edges.data[inside], k)
    total = float(degrees.sum())
    if total <= 0:
        return Cut(0.0, 0.0, 0.0)
    there = degrees > 0
    normalized = float(np.sum(1.0 - within[there] / degrees[there]))
    shares = degrees / total
    share = 1.0 - float(within.sum()) / total
    return Cut(normalized, share, 1.0 - share - float(shares @ shares))
