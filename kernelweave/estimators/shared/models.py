"""What a fitted estimator with centres keeps: enough to assign new samples and to measure their distances."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from kernelweave.estimators.shared.view_kernels import WeightedViewKernels
from kernelweave.foundation.array_types import Bools, Floats, Ints, Matrix
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import FittedKernel
from kernelweave.partitions import algebra

#: Samples as a model takes them: one table, or one block per view.
Samples = Matrix | Sequence[Matrix]


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

    def assign(self, samples: Samples) -> Ints:
        """Return the cluster of every sample, the first of equally near ones."""
        cross = self.kernel.cross(samples)
        return algebra.assign_new(cross, self.labels, self.weights, self.totals, self.norms, self.factors)

    def squared_distances(self, samples: Samples) -> Floats:
        """Return the squared distances to the centres; none is negative."""
        cross, sums = self._cross_sums(samples)
        return np.maximum(algebra.squared_distances(cross, sums, self.totals, self.norms), 0.0)

    def _cross_sums(self, samples: Samples) -> tuple[KernelOperator, Floats]:
        cross = self.kernel.cross(samples)
        return cross, cross.cluster_sums(self.labels, self.weights, len(self.totals))


@dataclass(frozen=True)
class MeanModel:
    """Clusters as means of feature vectors, dense or sparse."""

    centers: Floats  # (k, d)
    offset: Floats  # (d,) taken off samples and centres before they meet, for the sake of rounding
    filled: Bools  # (k,) whether a cluster has samples
    factors: Floats | None = None  # (k,) what squared distances are multiplied by to assign; None for ones

    def assign(self, samples: Matrix) -> Ints:
        """Return the cluster of every sample, the first of those equally near but for rounding."""
        return nearest_centers(shifted_features(samples, self.offset), self._shifted, self.factors, self.filled)

    def squared_distances(self, samples: Matrix) -> Floats:
        """Return the squared distances to the centres; none is negative."""
        op = shifted_features(samples, self.offset)
        centers = self._shifted
        squared = op.diag()[:, None] - 2.0 * (op.Phi @ centers.T) + np.einsum("ij,ij->i", centers, centers)
        return np.where(self.filled, np.maximum(squared, 0.0), np.inf)

    @property
    def _shifted(self) -> Floats:
        return np.asarray(self.centers - self.offset)


def feature_offset(X: Matrix) -> Floats:
    """Return what is taken off samples for the sake of rounding: their mean, nothing where they are sparse."""
    return np.zeros(X.shape[1]) if sp.issparse(X) else np.asarray(X.mean(axis=0))


def shifted_features(X: Matrix, offset: Floats) -> FeatureKernel:
    """Return the inner products of samples less the offset; sparse ones become dense only where there is one."""
    if sp.issparse(X) and not offset.any():
        return FeatureKernel(X)
    return FeatureKernel((X.toarray() if sp.issparse(X) else X) - offset)


def nearest_centers(op: FeatureKernel, centers: Floats, factors: Floats | None, filled: Bools | None = None) -> Ints:
    """Return the nearest of the centres for every sample, the first of those equal but for rounding."""
    norms = np.einsum("ij,ij->i", centers, centers)
    norms = norms if filled is None else np.where(filled, norms, np.inf)
    factors = np.ones(len(norms)) if factors is None else factors
    diag = op.diag()
    tolerance = algebra.TIE_TOLERANCE * max(
        float(diag.max(initial=0.0)), float(norms[np.isfinite(norms)].max(initial=0.0))
    )
    return op.nearest_means(centers, norms, factors, diag, np.zeros(op.n_samples, dtype=np.intp), tolerance).labels


def cluster_means(X: Matrix, weights: Floats, labels: Ints, totals: Floats) -> Floats:
    """Return the weighted means of the samples of each cluster; zeros where there are none."""
    sums = FeatureKernel(X).feature_sums(labels, weights, len(totals))
    return sums / np.where(totals > 0, totals, 1.0)[:, None]
