"""The cluster sums of one partition, kept up to date while samples move.

Sums cost a pass over the kernel; moving m samples costs their m rows. Rounding of the updates is bounded as they
happen, and a pass is repeated when as many samples have moved as there are.
"""

import numpy as np

from kernelweave.foundation._typing import Floats, Ints
from kernelweave.operators import KernelOperator, algebra

#: Relative difference below which two distances are equal.
TIE = 1e-12


class ClusterSums:
    """Sums, weights and objective of a partition; the only mutable object of the solvers."""

    def __init__(self, op: KernelOperator, labels: Ints, weights: Floats, n_clusters: int) -> None:
        self.op, self.weights, self.n_clusters = op, weights, n_clusters
        self.diag = op.diag()
        #: Size of kernel values.
        self.scale = op.scale()
        #: Distances that differ by no more than this are equal: well above what sums pick up in rounding, so that
        #: ties are decided by rule and not by the order of additions.
        self.slack = TIE * self.scale
        self._mass = float(weights @ self.diag)
        #: The objective is known no better than this.
        self.noise = 16.0 * algebra.EPS * float(weights.sum()) * self.scale
        self.labels = labels
        self.refresh()

    @property
    def objective(self) -> float:
        """The weighted squared distances to the cluster means, summed."""
        filled = self.totals > 0
        return self._mass - float(np.sum(self.within[filled] / self.totals[filled]))

    @property
    def exact(self) -> bool:
        """Whether the sums come straight from a pass over the kernel."""
        return self._moves == 0

    def scatter(self) -> Floats:
        """Return the objective cluster by cluster."""
        masses = algebra.cluster_weights(self.labels, self.weights * self.diag, self.n_clusters)
        return algebra.cluster_scatter(self.within, self.totals, masses)

    def refresh(self) -> None:
        """Compute the sums anew from the kernel."""
        self.sums = self.op.cluster_sums(self.labels, self.weights, self.n_clusters)
        self._moves, self._rounding = 0, 0.0
        self._settle()

    def move(self, labels: Ints) -> None:
        """Go to another partition, by the rows of the samples that differ or by a pass if that is cheaper."""
        moved = np.flatnonzero(labels != self.labels)
        old, self.labels = self.labels, labels
        if self._moves + len(moved) > self.op.n_samples:
            self.refresh()
            return
        self.op.move_sums(self.sums, moved, old[moved], labels[moved], self.weights[moved])
        self._moves += len(moved)
        self._rounding += algebra.EPS * len(moved) * float(self.totals.max()) * self.scale
        self._settle()

    def nearest(self) -> tuple[Ints, Floats, float]:
        """Return the nearest cluster of every sample, the squared distance to it, and the least lead."""
        labels, values, lead = algebra.nearest_clusters(self.sums, self.totals, self.norms, self.labels, self.slack)
        return labels, self.diag + values, lead

    def certain(self, lead: float) -> bool:
        """Whether sums computed anew would leave every label where it is.

        A distance is off by at most 3 rounding / W; a lead over twice that cannot turn round.
        """
        return self.exact or lead > 6.0 * self._rounding / float(self.totals[self.totals > 0].min())

    def _settle(self) -> None:
        self.totals = algebra.cluster_weights(self.labels, self.weights, self.n_clusters)
        self.within = algebra.within_sums(self.sums, self.labels, self.weights)
        self.norms = algebra.center_norms(self.within, self.totals)
