"""One partition and what is known of its clusters, kept up to date while samples move.

Computing anew costs a pass over the data; moving m samples costs their m rows. Rounding of the updates is bounded as
they happen, and a pass is repeated when as many samples have moved as there are. There are two kinds: cluster sums
over any kernel, and cluster means where the kernel is an inner product of stored features, which needs nothing of
size n x k.
"""

from abc import ABC, abstractmethod

import numpy as np

from kernelweave.foundation.array_types import Array, Floats, Ints
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions import algebra
from kernelweave.partitions.empty import TIE


class ClusterState(ABC):
    """Weights, centres and objective of a partition; the only mutable object of the solvers."""

    within: Floats  # (k,) Q_c, the weighted sum of the kernel over all pairs of members
    totals: Floats  # (k,) weight of each cluster
    members: Ints  # (k,) number of samples with weight
    norms: Floats  # (k,) ||m_c||^2, infinite for a cluster without weight
    #: With a larger share of samples moving at once a pass is cheaper than their rows.
    _dear = 1.0

    def __init__(self, op: KernelOperator, labels: Ints, weights: Floats, n_clusters: int) -> None:
        self.weights = weights
        self.n_clusters = n_clusters
        self._counted = weights > 0
        self._measure(op)
        self.labels = labels
        self.refresh()

    def _measure(self, op: KernelOperator) -> None:
        """Take what follows from the kernel alone."""
        self.op = op
        self.diag = op.diag()
        #: Size of kernel values.
        self.scale = op.scale()
        #: Distances that differ by no more than this are equal: well above what sums pick up in rounding, so that
        #: ties are decided by rule and not by the order of additions.
        self.slack = TIE * self.scale
        self._masses = self.weights * self.diag
        self._mass = float(self._masses.sum())
        #: The objective is known no better than this.
        self.noise = 16.0 * algebra.EPS * float(self.weights.sum()) * self.scale

    @property
    def objective(self) -> float:
        """The weighted squared distances to the cluster means, summed."""
        filled = self.totals > 0
        return self._mass - float(np.sum(self.within[filled] / self.totals[filled]))

    @property
    def exact(self) -> bool:
        """Whether everything comes straight from a pass over the data."""
        return self._moves == 0

    def scatter(self) -> Floats:
        """Return the objective cluster by cluster."""
        return algebra.cluster_scatter(self.within, self.totals, self._cluster_masses)

    def refresh(self) -> None:
        """Compute everything anew."""
        self._compute()
        self._moves = 0
        self._churn = 0.0
        self.members = np.bincount(self.labels, self._counted, self.n_clusters).astype(np.intp)
        self.totals = algebra.cluster_weights(self.labels, self.weights, self.n_clusters)
        self._cluster_masses = algebra.cluster_weights(self.labels, self._masses, self.n_clusters)
        self._settle()

    def move(self, labels: Ints) -> None:
        """Go to another partition, by the rows of the samples that differ or by a pass if that is cheaper."""
        moved = np.flatnonzero(labels != self.labels)
        old = self.labels
        self.labels = labels
        if self._moves + len(moved) > self.op.n_samples or len(moved) > self._dear * self.op.n_samples:
            self.refresh()
            return
        if len(moved) == 0:
            return
        before = old[moved]
        after = labels[moved]
        self._update(moved, before, after)
        self.members = self.members + _shift(before, after, self._counted[moved], self.n_clusters).astype(np.intp)
        filled = self.members > 0
        self.totals = np.where(filled, self.totals + _shift(before, after, self.weights[moved], self.n_clusters), 0.0)
        change = _shift(before, after, self._masses[moved], self.n_clusters)
        self._cluster_masses = np.where(filled, self._cluster_masses + change, 0.0)
        self._moves += len(moved)
        self._churn += len(moved) * float(self.totals.max())
        self._settle()

    @property
    def _rounding(self) -> float:
        """What the sums may be off by since the last pass over the data."""
        return algebra.EPS * self._churn * self.scale

    def certain(self, lead: float) -> bool:
        """Whether everything computed anew would leave every label where it is.

        A distance is off by at most 3 rounding / W; a lead over twice that cannot turn round.
        """
        return self.exact or lead > 6.0 * self._rounding / float(self.totals[self.totals > 0].min())

    @abstractmethod
    def nearest(self, coefs: Floats | None = None) -> tuple[Ints, Floats, float]:
        """Return the nearest cluster of every sample, the squared distance to it, and the least lead.

        With ``coefs``, one positive number per cluster and none above 1, distances are multiplied by them.
        """

    @abstractmethod
    def merged(self, labels: Ints) -> Ints:
        """Return ``labels``, those of this state, with clusters whose centres coincide under their lowest number."""

    @abstractmethod
    def _compute(self) -> None: ...

    @abstractmethod
    def _update(self, moved: Ints, old: Ints, new: Ints) -> None: ...

    @abstractmethod
    def _within(self) -> Floats: ...

    def _settle(self) -> None:
        self.within = self._within()
        self.norms = algebra.center_norms(self.within, self.totals)


class ClusterSums(ClusterState):
    """Clusters of any kernel, through the (k, n) sums of its rows."""

    sums: Floats

    def nearest(self, coefs: Floats | None = None) -> tuple[Ints, Floats, float]:
        """Return the nearest cluster of every sample, from the sums."""
        given = (self.sums, self.totals, self.norms, self.labels, self.slack)
        if coefs is not None:
            return algebra.nearest_scaled(*given, coefs, self.diag)
        labels, values, lead = algebra.nearest_clusters(*given)
        return labels, self.diag + values, lead

    def merged(self, labels: Ints) -> Ints:
        """Return the labels with equal centres found from the sums."""
        products = np.stack([algebra.cluster_weights(labels, self.weights * row, self.n_clusters) for row in self.sums])
        return merge_coinciding(products, self.totals, self.norms, labels, self.slack)

    def _compute(self) -> None:
        self.sums = self.op.cluster_sums(self.labels, self.weights, self.n_clusters)

    def _update(self, moved: Ints, old: Ints, new: Ints) -> None:
        self.op.move_sums(self.sums, moved, old, new, self.weights[moved])

    def _within(self) -> Floats:
        return algebra.within_sums(self.sums, self.labels, self.weights)


class ClusterMeans(ClusterState):
    """Clusters of stored features, through the (k, d) sums of their rows."""

    op: FeatureKernel
    sums: Floats
    _dear = 1.0 / 6.0

    def nearest(self, coefs: Floats | None = None) -> tuple[Ints, Floats, float]:
        """Return the nearest cluster of every sample, in one pass over the features."""
        coefs = np.ones(self.n_clusters) if coefs is None else coefs
        return self.op.nearest_means(self.means, self.norms, coefs, self.diag, self.labels, self.slack)

    def merged(self, labels: Ints) -> Ints:
        """Return the labels with equal centres found from the sums of features."""
        return merge_coinciding(self.op.inner(self.sums), self.totals, self.norms, labels, self.slack)

    @property
    def means(self) -> Floats:
        """The centres, shape (k, d); zero for a cluster without weight."""
        return self.sums / np.where(self.totals > 0, self.totals, 1.0)[:, None]

    def _compute(self) -> None:
        self.sums = self.op.feature_sums(self.labels, self.weights, self.n_clusters)

    def _update(self, moved: Ints, old: Ints, new: Ints) -> None:
        self.sums += self.op.moved_features(moved, old, new, self.weights[moved], self.n_clusters)

    def _within(self) -> Floats:
        return self.op.lengths(self.sums)


def _shift(old: Ints, new: Ints, values: Array, n_clusters: int) -> Floats:
    """Return what each cluster wins less what it loses when ``values`` go from ``old`` to ``new``."""
    return algebra.cluster_weights(new, values, n_clusters) - algebra.cluster_weights(old, values, n_clusters)


def cluster_state(op: KernelOperator, labels: Ints, weights: Floats, n_clusters: int) -> ClusterState:
    """Return the state of a partition in the form that is cheapest for this kernel."""
    labels = np.array(labels, dtype=np.intp)
    if isinstance(op, FeatureKernel):
        return ClusterMeans(op, labels, weights, n_clusters)
    return ClusterSums(op, labels, weights, n_clusters)


def merge_coinciding(products: Floats, totals: Floats, norms: Floats, labels: Ints, slack: float) -> Ints:
    """Return labels in which clusters with equal centres carry the lowest of their numbers.

    ``products`` holds the kernel summed over all pairs of members of two clusters.
    """
    filled = np.flatnonzero(totals > 0)
    if len(filled) < 2:
        return labels
    scale = totals[filled][:, None] * totals[filled][None, :]
    gaps = norms[filled][:, None] + norms[filled][None, :] - 2.0 * products[np.ix_(filled, filled)] / scale
    first = filled[np.argmax(np.abs(gaps) <= slack, axis=1)]
    if np.array_equal(first, filled):
        return labels
    target = np.arange(len(totals))
    target[filled] = np.minimum(first, filled)
    return target[labels]
