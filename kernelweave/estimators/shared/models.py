"""What a fitted estimator with centres keeps: enough to assign new samples and to measure their distances."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from kernelweave.estimators.shared.view_kernels import ViewKernels, WeightedViewKernels
from kernelweave.foundation.array_types import Bools, Floats, Ints, Matrix
from kernelweave.foundation.errors import ViewError
from kernelweave.inputs import Views
from kernelweave.kernels.chunked import column_means, in_blocks, moved_features
from kernelweave.kernels.device import place_cross
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import FittedKernel
from kernelweave.partitions import algebra

#: Samples as a model takes them: one table, or one block per view.
Samples = Matrix | Sequence[Matrix] | Views


class Model(Protocol):
    """What an estimator with centres asks of its model."""

    def assign(self, samples: Any) -> Ints:
        """Return the cluster of every sample."""

    def squared_distances(self, samples: Any) -> Floats:
        """Return the squared distances to the centres, shape (n_new, k); infinite for clusters that stayed empty."""


@dataclass(frozen=True)
class CenterModel:
    """Clusters as means in the feature space of a kernel, known through the training samples."""

    kernel: FittedKernel | WeightedViewKernels
    labels: Ints  # (n,) of the training samples
    weights: Floats  # (n,) of the training samples
    totals: Floats  # (k,) weight of every cluster
    norms: Floats  # (k,) ||m_c||^2, infinite for an empty cluster
    factors: Floats | None = None  # (k,) what squared distances are multiplied by to assign; None for ones
    view_norms: Floats | None = None  # (V, k) ||m_c||^2 in every view, for new samples that are absent from some

    def assign(self, samples: Samples) -> Ints:
        """Return the cluster of every sample, the first of equally near ones."""
        if isinstance(samples, Views) and samples.observed is not None:
            return self._by_view().assign(samples)
        cross = place_cross(self.kernel.cross(samples))
        return algebra.assign_new(cross, self.labels, self.weights, self.totals, self.norms, self.factors)

    def squared_distances(self, samples: Samples) -> Floats:
        """Return the squared distances to the centres; none is negative, and a sample at a centre has zero."""
        if isinstance(samples, Views) and samples.observed is not None:
            return self._by_view().squared_distances(samples)
        cross, sums = self._cross_sums(samples)
        squared = algebra.squared_distances(cross, sums, self.totals, self.norms)
        return algebra.without_rounding(squared, cross.diag(), self.norms)

    def _by_view(self) -> "ObservedCenters":
        """Return the same clusters view by view."""
        if self.view_norms is None or not isinstance(self.kernel, WeightedViewKernels):
            raise ViewError(
                "X has samples that are absent from some views, and the model was saved by a version that kept nothing "
                "of single views. Fit it again, or pass complete samples."
            )
        observed = np.ones((len(self.labels), len(self.view_norms)), dtype=bool)
        prices = self.kernel.coefficients
        return ObservedCenters(self.kernel.kernels, observed, self.labels, self.weights, prices, self.view_norms)

    def _cross_sums(self, samples: Samples) -> tuple[KernelOperator, Floats]:
        cross = self.kernel.cross(samples)
        return cross, cross.cluster_sums(self.labels, self.weights, len(self.totals))


@dataclass(frozen=True)
class ObservedCenters:
    """Clusters as means in the feature space of every view, where samples may be absent from some.

    A sample costs the squared distances to the centre in the views that it is in, each times the price of the view.
    """

    kernels: ViewKernels
    observed: Bools  # (n, V) which training samples each view has
    labels: Ints  # (n,) of the training samples
    weights: Floats  # (n,) of the training samples
    prices: Floats  # (V,) what a squared distance in each view costs
    norms: Floats  # (V, k) ||m_c||^2 in every view; that of the view's mean where none of its samples is in a cluster

    def assign(self, samples: Views) -> Ints:
        """Return the cluster in which every sample costs least, the first of equal ones."""
        return np.asarray(self._costs(samples, distances=False).argmin(axis=1))

    def squared_distances(self, samples: Views) -> Floats:
        """Return what every sample costs in each cluster; nothing is negative."""
        return np.maximum(self._costs(samples, distances=True), 0.0)

    def _costs(self, samples: Views, *, distances: bool) -> Floats:
        """Return the costs, shape (n_new, k); short of what k(x, x) adds to all clusters where not ``distances``."""
        k = self.norms.shape[1]
        total = np.zeros((samples.n_samples, k))
        for v, (kernel, price) in enumerate(zip(self.kernels.kernels, self.prices.tolist(), strict=True)):
            new = samples.present(v)
            if len(new) and price != 0.0:
                block = samples.blocks[v] if len(new) == samples.n_samples else samples.blocks[v][new]
                cross = kernel.cross(block)
                costs = self._view_costs(cross, v)
                total[new] += price * (costs + cross.diag()[:, None] if distances else costs)
        empty = algebra.cluster_weights(self.labels, self.weights, k) <= 0
        total[:, empty] = np.inf
        return total

    def _view_costs(self, cross: KernelOperator, view: int) -> Floats:
        """Return the squared distances in one view less k(x, x), shape (n_new, k)."""
        there = self.observed[:, view]
        k = self.norms.shape[1]
        sums = cross.cluster_sums(self.labels[there], self.weights[there], k)
        totals = algebra.cluster_weights(self.labels[there], self.weights[there], k)
        filled = totals > 0
        mean = sums.sum(axis=0) / totals.sum()
        inner = np.where(filled[:, None], sums / np.where(filled, totals, 1.0)[:, None], mean)
        norms = np.where(np.isfinite(self.norms[view]), self.norms[view], 0.0)  # clusters without any sample
        return np.asarray((norms[:, None] - 2.0 * inner).T)


@dataclass(frozen=True)
class MeanModel:
    """Clusters as means of feature vectors, dense or sparse."""

    centers: Floats  # (k, d)
    offset: Floats  # (d,) taken off samples and centres before they meet, for the sake of rounding
    filled: Bools  # (k,) whether a cluster has samples
    factors: Floats | None = None  # (k,) what squared distances are multiplied by to assign; None for ones

    def assign(self, samples: Matrix) -> Ints:
        """Return the cluster of every sample, the first of those equally near except for rounding."""
        return nearest_centers(shifted_features(samples, self.offset), self._shifted, self.factors, self.filled)

    def squared_distances(self, samples: Matrix) -> Floats:
        """Return the squared distances to the centres; none is negative, and a sample at a centre has zero."""
        op = shifted_features(samples, self.offset)
        centers = self._shifted
        norms = np.einsum("ij,ij->i", centers, centers)
        squared = op.diag()[:, None] - 2.0 * (op.Phi @ centers.T) + norms
        return np.where(self.filled, algebra.without_rounding(squared, op.diag(), norms), np.inf)

    @property
    def _shifted(self) -> Floats:
        return np.asarray(self.centers - self.offset)


def feature_offset(X: Matrix) -> Floats:
    """Return what is taken off samples for the sake of rounding: their mean, nothing where they are sparse."""
    if in_blocks(X):
        return column_means(X)
    return np.zeros(X.shape[1]) if sp.issparse(X) else np.asarray(X.mean(axis=0))


def shifted_features(X: Matrix, offset: Floats) -> FeatureKernel:
    """Return the inner products of samples less the offset; sparse ones become dense only where there is one."""
    if in_blocks(X):
        return moved_features(X, offset)
    if sp.issparse(X) and not offset.any():
        return FeatureKernel(X)
    return FeatureKernel((X.toarray() if sp.issparse(X) else X) - offset)


def nearest_centers(op: FeatureKernel, centers: Floats, factors: Floats | None, filled: Bools | None = None) -> Ints:
    """Return the nearest of the centres for every sample, the first of those equal except for rounding."""
    norms = np.einsum("ij,ij->i", centers, centers)
    norms = norms if filled is None else np.where(filled, norms, np.inf)
    factors = np.ones(len(norms)) if factors is None else factors
    diag = op.diag()
    largest = op.backend.extremes(diag)[1]
    tolerance = algebra.TIE_TOLERANCE * max(0.0, largest, float(norms[np.isfinite(norms)].max(initial=0.0)))
    start = op.backend.labels(np.zeros(op.n_samples, dtype=np.intp))
    return op.backend.host(op.nearest_means(centers, norms, factors, diag, start, tolerance).labels)


def cluster_means(X: Matrix, weights: Floats, labels: Ints, totals: Floats) -> Floats:
    """Return the weighted means of the samples of each cluster; zeros where there are none."""
    op = moved_features(X, np.zeros(X.shape[1])) if in_blocks(X) else FeatureKernel(X)
    sums = op.feature_sums(op.backend.labels(labels), op.backend.array(weights), len(totals))
    return sums / np.where(totals > 0, totals, 1.0)[:, None]
