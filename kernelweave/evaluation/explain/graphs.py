"""What the edges of a graph say about clusters: hubs, how separate each cluster is, and who is tied to whom."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Floats, Ints, Matrix

#: Hubs named for every cluster.
HUBS = 5


@dataclass(frozen=True, eq=False)
class GraphExplanation:
    """Clusters of a graph by its edges.

    Attributes
    ----------
    hubs : tuple of ndarray
        For every cluster the nodes with the largest degree within it, largest first.
    hub_degrees : tuple of ndarray
        Their degrees within the cluster.
    conductance : ndarray of shape (n_clusters,)
        Weight of the edges that leave a cluster, divided by the smaller of its degree and that of all others: 0 for a
        cluster without edges to others. NaN for empty clusters.
    links : ndarray of shape (n_clusters, n_clusters)
        Weight of the edges between two clusters, and within one on the diagonal; every edge counts once.
    """

    hubs: tuple[Ints, ...]
    hub_degrees: tuple[Floats, ...]
    conductance: Floats
    links: Floats


def explain_graph(A: Matrix, labels: Ints, n_clusters: int) -> GraphExplanation:
    """Return what the edges of a symmetric graph say about its clusters, in O(edges)."""
    edges = sp.coo_array(A)
    rows = labels[edges.row]
    columns = labels[edges.col]
    ends = np.bincount(rows * n_clusters + columns, edges.data, minlength=n_clusters**2)
    ends = ends.reshape(n_clusters, n_clusters)
    loops = np.bincount(rows, np.where(edges.row == edges.col, edges.data, 0.0), minlength=n_clusters)
    links = (ends + ends.T) / 2.0  # equal except for the order in which they were added
    degrees = links.sum(axis=1)
    leaving = degrees - np.diagonal(links)
    smaller = np.minimum(degrees, degrees.sum() - degrees)
    conductance = np.divide(leaving, smaller, out=np.zeros(n_clusters), where=smaller > 0)
    conductance[np.bincount(labels, minlength=n_clusters) == 0] = np.nan
    np.fill_diagonal(links, (np.diagonal(ends) + loops) / 2.0)
    inner = np.where(rows == columns, edges.data, 0.0)
    within = np.asarray(np.bincount(edges.row, inner, minlength=len(labels)), dtype=np.float64)
    hubs = tuple(_largest(within, np.flatnonzero(labels == c)) for c in range(n_clusters))
    return GraphExplanation(hubs, tuple(within[each] for each in hubs), conductance, links)


def _largest(within: Floats, members: Ints) -> Ints:
    return members[np.argsort(-within[members], kind="stable")[:HUBS]]
