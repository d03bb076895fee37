"""Partitions through cluster means: kernels that are inner products of stored features, nothing of size n x k."""

import numpy as np

from kernelweave.backends import Assignment, BackendArray, Moves
from kernelweave.foundation.array_types import Floats
from kernelweave.partitions.kernel import Features
from kernelweave.partitions.partition import Partition


class MeansPartition(Partition):
    """Clusters of stored features, through the (k, d) sums of their rows."""

    op: Features
    sums: Floats
    _expensive_share = 1.0 / 6.0

    @property
    def means(self) -> Floats:
        """The centres, shape (k, d); zero for a cluster without weight."""
        return self.sums / np.where(self.totals > 0, self.totals, 1.0)[:, None]

    def nearest(self, coefs: Floats | None = None) -> Assignment:
        """Return the nearest cluster of every sample, in one pass over the features."""
        coefs = np.ones(self.n_clusters) if coefs is None else coefs
        return self.op.nearest_means(self.means, self.norms, coefs, self.diag, self.labels, self.tolerance)

    def distances_to_centers(self) -> BackendArray:
        """Return the squared distance of every sample to its centre."""
        return self.op.distances_to_means(self.means, self.norms, self.diag, self.labels)

    def assign_by_size(self) -> BackendArray:
        """Return labels given sample after sample by least size * distance, sizes changing with each."""
        tolerance = self.tolerance * self.backend.total(self.weights)
        return self.op.assign_by_size(
            self.means, self.norms, self.diag, self.labels, self.weights, self.totals, tolerance
        )

    def _compute(self) -> None:
        self.sums = self.op.feature_sums(self.labels, self.weights, self.n_clusters)

    def _update(self, moves: Moves) -> None:
        self.sums += self.op.moved_features(moves, self.weights, self.n_clusters)

    def _within(self) -> Floats:
        return self.op.lengths(self.sums)

    def _products(self) -> Floats:
        return self.op.inner(self.sums)
