"""What clusters with means in the space of the features can do once fitted: predict, transform, score."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.shared.kernel_estimator import warn_if_empty, warn_if_unfinished
from kernelweave.foundation.array_types import Array, Floats, Ints, Matrix
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import CallbackSupportMixin
from kernelweave.inputs import read_centers, read_samples, read_weights
from kernelweave.kernels.features import FeatureKernel
from kernelweave.partitions.algebra import TIE_TOLERANCE
from kernelweave.solvers.kmeans.kernel_kmeans import Descent
from kernelweave.solvers.kmeans.minmax import MinMaxRun

#: How ``init`` may be given by name.
VECTOR_INITS = ("random", "k-means++")


class VectorClusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, CallbackSupportMixin, BaseEstimator
):
    """Base of estimators whose clusters are means of feature vectors, dense or sparse."""

    #: What the squared distance to each mean is multiplied by in predict; None for ones.
    _coefs: Floats | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _operator(self, X: Matrix) -> FeatureKernel:
        """Return the inner products of the samples; dense ones are centred first, for the sake of rounding."""
        self._offset = np.zeros(X.shape[1]) if sp.issparse(X) else X.mean(axis=0)
        return self._shifted(X)

    def _shifted(self, X: Matrix) -> FeatureKernel:
        if sp.issparse(X) and not self._offset.any():
            return FeatureKernel(X)
        return FeatureKernel((X.toarray() if sp.issparse(X) else X) - self._offset)

    def _starts(self, op: FeatureKernel) -> list[Any]:
        """Return what each run starts from: a generator, or the labels that given centres lead to."""
        if isinstance(self.init, str):
            return list(streams(self.random_state, self.n_init))
        centres = read_centers(self.init, self.n_clusters, op.Phi.shape[1])
        return [_assign(op, centres - self._offset, None)]

    def _store(self, X: Matrix, weights: Floats, best: Descent | MinMaxRun) -> None:
        self.labels_: Ints = best.labels
        self.objective_ = best.objective
        self.inertia_ = best.inertia
        self.objective_path_ = np.array(best.history)
        self.cluster_variances_ = best.scatter
        self._filled = best.totals > 0
        self.cluster_centers_: Floats = _centres(X, weights, best.labels, best.totals)
        self.n_iter_ = best.n_iter
        self.converged_ = best.converged
        self._n_features_out = self.n_clusters
        warn_if_unfinished(best.ended, self.max_iter)
        warn_if_empty(best.totals, self.n_clusters)

    def _read(self, X: Any, *, reset: bool) -> Array:
        return read_samples(self, X, reset=reset)

    def predict(self, X: Any) -> Ints:
        """Return the cluster of new samples, by the rule that assigned the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            New samples.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the cluster.
        """
        check_is_fitted(self)
        op = self._shifted(self._read(X, reset=False))
        return _assign(op, self.cluster_centers_ - self._offset, self._coefs, self._filled)

    def transform(self, X: Any) -> Floats:
        """Return the distances of samples to the centres.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            Samples.

        Returns
        -------
        distances : ndarray of shape (n_new, n_clusters)
            Euclidean distances, infinite to clusters that stayed empty.
        """
        check_is_fitted(self)
        op = self._shifted(self._read(X, reset=False))
        centres = self.cluster_centers_ - self._offset
        squared = op.diag()[:, None] - 2.0 * (op.Phi @ centres.T) + np.einsum("ij,ij->i", centres, centres)
        return np.sqrt(np.where(self._filled, np.maximum(squared, 0.0), np.inf))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Floats:
        """Fit, then return the distances of the training samples to the centres."""
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Ints:
        """Fit, then return the labels of the training samples."""
        return self.fit(X, y, sample_weight=sample_weight).labels_

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective of k-means of new samples with the fitted centres, so that larger is better."""
        squared = self.transform(X).min(axis=1) ** 2
        return -float(read_weights(sample_weight, len(squared)) @ squared)


def _assign(op: FeatureKernel, centres: Floats, coefs: Floats | None, filled: Array | None = None) -> Ints:
    """Return the nearest of the centres, the first of those equal but for rounding."""
    norms = np.einsum("ij,ij->i", centres, centres)
    norms = norms if filled is None else np.where(filled, norms, np.inf)
    coefs = np.ones(len(norms)) if coefs is None else coefs
    diag = op.diag()
    slack = TIE_TOLERANCE * max(float(diag.max(initial=0.0)), float(norms[np.isfinite(norms)].max(initial=0.0)))
    return op.nearest_means(centres, norms, coefs, diag, np.zeros(op.n_samples, dtype=np.intp), slack).labels


def _centres(X: Matrix, weights: Floats, labels: Ints, totals: Floats) -> Floats:
    """Return the weighted means of the samples of each cluster; zeros where there are none."""
    sums = FeatureKernel(X).feature_sums(labels, weights, len(totals))
    return sums / np.where(totals > 0, totals, 1.0)[:, None]
