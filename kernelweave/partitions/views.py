"""Partitions of several views, whose coefficients can change without a pass over the data."""

from abc import abstractmethod

import numpy as np

from kernelweave.backends import Moves
from kernelweave.foundation.array_types import Floats
from kernelweave.partitions import algebra
from kernelweave.partitions.kernel import ViewFeatures, ViewKernels
from kernelweave.partitions.means import MeansPartition
from kernelweave.partitions.partition import Partition
from kernelweave.partitions.sums import SumsPartition

#: Scatters within this many roundings of the sums they come from are zero.
SCATTER_ROUNDINGS = 64.0


class ViewPartition(Partition):
    """What both kinds have: the clusters of a weighted sum of views."""

    op: ViewKernels

    def reweigh(self, coefficients: Floats) -> None:
        """Change the coefficients of the views, from the sums alone."""
        self._measure(self.op.with_weights(coefficients))
        self._cluster_masses = self.backend.segment_sums(self.labels, self._masses, self.n_clusters)
        self._combine()
        self._update_norms()

    def view_scatters(self) -> Floats:
        """Return the objective of the partition in every view, zero where rounding is all that is left."""
        masses = self.op.view_traces(self.weights)
        filled = self.totals > 0
        shares = self._view_within()[:, filled] / self.totals[filled]
        return without_rounding(masses - shares.sum(axis=1), np.abs(masses) + np.abs(shares).sum(axis=1))

    def view_norms(self) -> Floats:
        """Return ||m_c||^2 in every view, infinite for a cluster without weight, shape (V, k)."""
        return np.stack([algebra.center_norms(within, self.totals) for within in self._view_within()])

    @abstractmethod
    def _combine(self) -> None:
        """Make the sums follow the coefficients."""

    @abstractmethod
    def _view_within(self) -> Floats:
        """Return Q_c of every view, shape (V, k)."""


class ViewSumsPartition(ViewPartition, SumsPartition):
    """Clusters of any kernels, through the cluster sums of every view."""

    def _compute(self) -> None:
        views = [op.cluster_sums(self.labels, self.weights, self.n_clusters) for op in self.op.view_operators()]
        self._view_sums = self.backend.stack(views)
        self._combine()

    def _update(self, moves: Moves) -> None:
        for v, op in enumerate(self.op.view_operators()):
            op.move_sums(self._view_sums[v], moves, self.weights)
        self._combine()

    def _combine(self) -> None:
        self.sums = self.backend.weighted_sum(self.op.coefficients, self._view_sums)

    def _view_within(self) -> Floats:
        n_views = len(self.op.coefficients)
        sums = [self._view_sums[v] for v in range(n_views)]
        return np.stack([self.backend.within_sums(view, self.labels, self.weights) for view in sums])


class ViewMeansPartition(ViewPartition, MeansPartition):
    """Clusters of features of several views, through their means; sums of features carry no coefficients."""

    op: ViewFeatures

    def _combine(self) -> None:
        """Do nothing: the kernel weighs the columns."""

    def _view_within(self) -> Floats:
        return self.op.view_lengths(self.sums)


def without_rounding(scatters: Floats, sizes: Floats) -> Floats:
    """Return scatters, zero where they are no more than the rounding of the sums of ``sizes`` they come from."""
    return np.where(np.abs(scatters) <= SCATTER_ROUNDINGS * np.finfo(np.float64).eps * sizes, 0.0, scatters)
