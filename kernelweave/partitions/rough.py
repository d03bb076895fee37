"""Partitions of kernels whose sums are computed in single precision, with decisions and objectives in double.

A rough pass is many times faster on a GPU. Its sums come with a bound on their error, sample by sample: where the lead
of the nearest cluster is within the bound, the sums of the sample are computed again in double precision before it is
decided. What clusters know about themselves, and with it the objective, is always in double precision: it takes the
pairs inside clusters alone, and then those of samples that move.
"""

from typing import Any

import numpy as np

from kernelweave.backends import Assignment, BackendArray, Moves
from kernelweave.foundation.array_types import Floats
from kernelweave.partitions.kernel import RoughKernel
from kernelweave.partitions.sums import SumsPartition


class RoughPartition(SumsPartition):
    """Clusters through (k, n) sums that may be rough; every answer is that of exact ones."""

    op: RoughKernel

    def __init__(self, op: RoughKernel, labels: Any, weights: Any, n_clusters: int) -> None:
        self._rough = False  # sums have errors of single precision
        self._change: Floats | None = None  # of ``within`` by the last moves, where these were few
        super().__init__(op, labels, weights, n_clusters)

    def nearest(self, coefs: Floats | None = None) -> Assignment:
        """Return the nearest cluster of every sample; those within the bound on errors are decided exactly."""
        if self._rough:
            carried = self._n_moves * self._heaviest()
            self.op.correct_sums(self.sums, self.labels, self.weights, self.totals, self.norms, self.tolerance, carried)
        return super().nearest(coefs)

    def certain(self, lead: float) -> bool:
        """Return True: nobody within the bound on errors was left undecided."""
        return True

    def reseeded(self, assignment: Assignment) -> BackendArray:
        """Return labels without empty clusters; who is farthest is decided by exact distances."""
        held = self.backend.segment_sums(assignment.labels, self.weights, self.n_clusters) > 0
        if self._rough and not held.all():
            self._make_exact()
            assignment = super().nearest()
        return super().reseeded(assignment)

    def distances_to_centers(self) -> BackendArray:
        """Return exact distances of every sample to its centre."""
        self._make_exact()
        return super().distances_to_centers()

    def _make_exact(self) -> None:
        if self._rough:
            self.sums = self.op.cluster_sums(self.labels, self.weights, self.n_clusters)
            self._rough = False

    def _heaviest(self) -> float:
        return self.backend.extremes(self.weights)[1]

    def _compute(self) -> None:
        self.sums = self.op.rough_sums(self.labels, self.weights, self.n_clusters)
        self._rough = True
        self._change = None

    def _update(self, moves: Moves) -> None:
        self.op.move_rough_sums(self.sums, moves, self.weights)
        self._rough = True
        few = 2 * moves.count * self.n_clusters <= self.op.n_samples  # their rows have fewer pairs than clusters
        self._change = self.op.within_change(moves, self.weights, self.n_clusters) if few else None

    def _within(self) -> Floats:
        if self._change is None:
            return self.op.within_sums(self.labels, self.weights, self.n_clusters)
        return self.within + self._change

    def _products(self) -> Floats:
        """Return the products of clusters: exact ones where rough ones leave open whether two centres coincide."""
        filled = self.totals > 0
        scale = np.outer(self.totals, self.totals)
        products = self.backend.cluster_products(self.sums, self.labels, self.weights)
        if self._rough and filled.sum() > 1:
            norms = self.norms[filled]
            shares = products[np.ix_(filled, filled)] / scale[np.ix_(filled, filled)]
            gaps = norms[:, None] + norms[None, :] - 2.0 * shares
            np.fill_diagonal(gaps, np.inf)
            open_ends = 2.0 * self.op.largest_error() * (np.abs(shares) + 1.0 / len(filled)) + self.tolerance
            if (np.abs(gaps) <= open_ends).any():
                self._make_exact()
                products = self.backend.cluster_products(self.sums, self.labels, self.weights)
        # Both were added up in another order; a centre coincides with itself.
        np.fill_diagonal(products, self.within)
        return products
