"""What clusters with means in feature space can do once fitted: predict, transform, score."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.shared.kernel_estimator import (
    KernelEstimator,
    warn_if_empty,
    warn_if_rose,
    warn_if_unfinished,
)
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.inputs import read_weights
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions import algebra
from kernelweave.solvers.kmeans.kernel_kmeans import Descent
from kernelweave.solvers.kmeans.minmax import MinMaxRun

Found = Descent | MinMaxRun


def is_precomputed(kernel: Any) -> bool:
    """Whether a kernel specification, or one of several, says that the matrix is given."""
    if isinstance(kernel, list | tuple):
        return any(map(is_precomputed, kernel))
    if isinstance(kernel, dict):
        return any(map(is_precomputed, kernel.values()))
    return isinstance(kernel, str) and kernel == "precomputed"


def _knows_features(estimator: "CenterClusterer") -> bool:
    """Whether k(x, x) of new samples can be computed, which distances to the centres need."""
    if is_precomputed(estimator.kernel):
        raise AttributeError(
            "With kernel='precomputed' the rows of new samples do not hold k(x, x), so their distances to the centres "
            "are not known. predict works; for transform and score pass features and a kernel name."
        )
    return True


class CenterClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin):
    """Estimators whose clusters are means in a feature space.

    What ``fit`` stores through ``_store``, and the weights of the samples, are enough to place new samples.
    """

    #: What the distance to each cluster is multiplied by in predict; None for ones.
    _coefs: Floats | None = None

    def _store(self, best: Found) -> None:
        self.labels_: Ints = best.labels
        self.objective_ = best.objective
        self.inertia_ = best.inertia
        self.objective_path_ = np.array(best.history)
        self.cluster_variances_ = best.scatter
        self.n_iter_ = best.n_iter
        self.converged_ = best.converged
        self._totals = best.totals
        self._norms = best.norms
        self._n_features_out = self.n_clusters
        warn_if_unfinished(best.ended, self.max_iter)
        warn_if_empty(best.totals, self.n_clusters)
        if best.rose:
            warn_if_rose()

    if TYPE_CHECKING:  # the other base of a class defines it

        def _cross(self, X: Any) -> KernelOperator:
            """Return the kernel between new samples (rows) and the training samples."""

    def _cross_sums(self, X: Any) -> tuple[KernelOperator, Floats]:
        check_is_fitted(self)
        cross = self._cross(X)
        return cross, cross.cluster_sums(self.labels_, self._weights, len(self._totals))

    def predict(self, X: Any) -> Ints:
        """Return the nearest cluster of new samples, through the kernel between them and the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features) or (n_new, n_training)
            New samples, or their kernel values with the training samples with ``kernel="precomputed"``.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the nearest centre.
        """
        check_is_fitted(self)
        cross = self._cross(X)
        return algebra.assign_new(cross, self.labels_, self._weights, self._totals, self._norms, self._coefs)

    @available_if(_knows_features)
    def transform(self, X: Any) -> Floats:
        """Return the feature-space distances of samples to the centres.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            Samples. Not available for precomputed kernels, which do not hold k(x, x) of new samples.

        Returns
        -------
        distances : ndarray of shape (n_new, n_clusters)
            Distances, infinite to clusters that stayed empty.
        """
        cross, sums = self._cross_sums(X)
        squared = algebra.squared_distances(cross, sums, self._totals, self._norms)
        return np.sqrt(np.maximum(squared, 0.0))

    @available_if(_knows_features)
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Floats:
        """Fit, then return the distances of the training samples to the centres."""
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Ints:
        """Fit, then return the labels of the training samples."""
        return self.fit(X, y, sample_weight=sample_weight).labels_

    @available_if(_knows_features)
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective of new samples with the fitted centres, so that larger is better."""
        squared = self.transform(X).min(axis=1) ** 2
        return -float(read_weights(sample_weight, len(squared)) @ squared)


class KernelClusterer(CenterClusterer, KernelEstimator):
    """Base of estimators whose clusters are means in the feature space of one kernel."""

    def _cross(self, X: Any) -> KernelOperator:
        return self._kernel.cross(self._read(X, reset=False))
