"""Clusters of a graph's nodes and what moves between them cost, from the edges alone.

The cost of a cluster is (share * degree - association) / mass:

    normalized cut      mass = degree, share 0    the cut is the number of clusters plus the cost
    ratio association   mass = nodes,  share 0    the association is minus the cost
    ratio cut           mass = nodes,  share 1    the cut is the cost
"""

import numpy as np
from scipy.sparse.csgraph import connected_components

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.threads import for_ranges
from kernelweave.partitions.kernel import Graph

OBJECTIVES = ("normalized_cut", "ratio_association", "ratio_cut")


class GraphMoves:
    """A graph with an objective. Holds no partition: labels come in, numbers or new labels go out."""

    def __init__(self, graph: Graph, objective: str) -> None:
        A = graph.sparse_matrix()
        if not np.all(A.data):
            A = A.copy()
            A.eliminate_zeros()  # an edge of weight zero is none
        self.n_nodes = graph.n_samples
        self.degrees = np.asarray(A.sum(axis=1), dtype=np.float64).ravel()
        self.loops = np.asarray(A.diagonal(), dtype=np.float64)
        self.masses = self.degrees if objective == "normalized_cut" else np.ones(self.n_nodes)
        self.objective = objective
        self._cut_share = 1.0 if objective == "ratio_cut" else 0.0
        # Large graphs are not copied; the loops take indices of any width.
        self._edges = (A.indptr, A.indices, A.data.astype(np.float64, copy=False))
        # Differences of cost below this are rounding; the normalized cut has no unit.
        self.tolerance = 1e-12 * (1.0 if self.masses is self.degrees else float(np.abs(A.data).max(initial=0.0)))
        self._pattern = A
        self._nodes = (self.degrees, self.masses, self.loops)
        search = graph.backend.graph_moves
        if search is None:
            raise NotImplementedError(f"The backend {graph.backend.name!r} has no moves on graphs.")
        self._search = search

    def stats(self, labels: Ints, n_clusters: int) -> Floats:
        """Return association, degree, mass and number of nodes with a mass of every cluster, shape (4, k)."""
        within = np.bincount(labels, self.inner_links(labels) + self.loops, n_clusters)
        numbers = (self.degrees, self.masses, (self.masses > 0).astype(np.float64))
        return np.stack([within, *(np.bincount(labels, values, n_clusters) for values in numbers)])

    def inner_links(self, labels: Ints) -> Floats:
        """Return the edges of every node to other nodes of its own cluster."""
        links = np.empty(self.n_nodes)
        for_ranges(
            lambda lo, hi: self._search.inner_links(*self._edges, labels, links, lo, hi),
            self.n_nodes,
            elements=len(self._edges[1]),
        )
        return links

    def costs(self, stats: Floats) -> Floats:
        """Return the cost of every cluster; one without mass costs nothing."""
        filled = stats[2] > 0
        return np.where(filled, (self._cut_share * stats[1] - stats[0]) / np.where(filled, stats[2], 1.0), 0.0)

    def value(self, labels: Ints, n_clusters: int) -> float:
        """Return the objective as it is usually written; a cluster without edges cuts nothing."""
        stats = self.stats(labels, n_clusters)
        cost = float(self.costs(stats).sum())
        if self.objective == "normalized_cut":
            return int(np.count_nonzero(stats[2] > 0)) + cost
        return 0.0 - cost if self.objective == "ratio_association" else cost

    def merge_costs(self, labels: Ints, stats: Floats) -> tuple[Ints, Ints, Floats]:
        """Return the pairs of clusters that share an edge and how much joining each changes the cost."""
        indptr, indices, data = self._edges
        k = stats.shape[1]
        a = np.repeat(labels, np.diff(indptr))
        b = labels[indices]
        pairs, place = np.unique((a * k + b)[a < b], return_inverse=True)
        links = np.bincount(place, data[a < b], len(pairs))
        first = pairs // k
        second = pairs % k
        joined = stats[:, first] + stats[:, second]
        joined[0] += 2.0 * links
        costs = self.costs(stats)
        return first, second, self.costs(joined) - costs[first] - costs[second]

    def splits(self, labels: Ints, stats: Floats, seeds: Ints) -> Floats:
        """Return the least change of the cost that each seed reaches by growing a cluster inside its own."""
        inner = self.inner_links(labels)
        return np.asarray(
            self._search.best_splits(self._edges, self._nodes, labels, stats, inner, self._cut_share, seeds)
        )

    def grown(self, labels: Ints, stats: Floats, seed: int) -> Ints:
        """Return the nodes that the seed's cluster takes in until it is best."""
        changes = np.empty(1)
        sizes = np.empty(1, np.int64)
        order = np.empty(self.n_nodes, np.int64)
        inner = self.inner_links(labels)
        outputs = (changes, sizes, order, 0, 1)
        seeds = np.array([seed])
        self._search.grow(*self._edges, *self._nodes, labels, stats, inner, self._cut_share, seeds, *outputs)
        return order[: sizes[0]].copy()

    def components(self, members: Ints) -> Ints:
        """Return one node of every connected component of a cluster, the first of each."""
        _, component = connected_components(self._pattern[members][:, members], directed=False)
        return members[np.unique(component, return_index=True)[1]]

    def ends(self, labels: Ints, start: int) -> Ints:
        """Return two nodes of a cluster that lie far apart, by two breadth-first searches."""
        indptr, indices, _ = self._edges
        one = self._search.farthest(indptr, indices, labels, start)
        return np.unique([one, self._search.farthest(indptr, indices, labels, one)])

    def polished(self, labels: Ints, n_clusters: int, max_sweeps: int) -> tuple[Ints, bool]:
        """Return labels after moving single nodes while the cost falls, and whether no such move is left."""
        labels, stats = labels.astype(np.int64, copy=True), self.stats(labels, n_clusters)
        done, _ = self._search.sweep(
            *self._edges, self.degrees, self.masses, labels, stats, self._cut_share, self.tolerance, max_sweeps
        )
        return labels, bool(done < max_sweeps)
