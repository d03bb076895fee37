"""Estimators whose clusters have centres: predict, transform and score, written once over the model they hold."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.shared.clusterer import Clusterer
from kernelweave.estimators.shared.elsewhere import answers_lazily
from kernelweave.estimators.shared.fit_warnings import warn_if_empty, warn_if_rose, warn_if_unfinished
from kernelweave.estimators.shared.models import CenterModel, Model, Samples
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.inputs import read_weights
from kernelweave.kernels.operator import KernelOperator
from kernelweave.solvers.kmeans.kernel_kmeans import Descent
from kernelweave.solvers.kmeans.minmax import MinMaxRun


def _offers(method: str) -> Callable[[Any], bool]:
    """Return the check that an estimator offers a method with its present parameters."""

    def check(estimator: "CenterClusterer") -> bool:
        reason = estimator._why_without(method)
        if reason is not None:
            raise AttributeError(reason)
        return True

    return check


def _keeps_a_kernel(estimator: "CenterClusterer") -> bool:
    """Whether a fitted estimator knows its clusters through a kernel with the training samples."""
    return isinstance(estimator._model, CenterModel)


@answers_lazily("predict", "transform", "fit_transform", "score")
class CenterClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """Base of estimators whose clusters have centres; ``fit`` stores the ``_model`` that knows them."""

    _model: Model

    @abstractmethod
    def _read_new(self, X: Any) -> Samples:
        """Return new samples, checked, as the model takes them."""

    def _why_without(self, method: str) -> str | None:
        """Say why the parameters rule out ``predict``, ``transform`` or ``score``; None where they do not."""
        return None

    @available_if(_offers("predict"))
    def predict(self, X: Any) -> Ints:
        """Return the cluster of new samples, by the rule that assigned the training samples.

        Parameters
        ----------
        X : samples or views, as in ``fit``
            New samples; for precomputed kernels or distances their rows of values with the training samples.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the cluster.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        return self._model.assign(self._read_new(X))

    def transform(self, X: Any) -> Floats:
        """Return the distances of samples to the centres.

        Parameters
        ----------
        X : samples or views, as in ``fit``
            Samples. Precomputed kernels do not hold k(x, x) of new samples, so that there is no ``transform`` for them.

        Returns
        -------
        distances : ndarray of shape (n_new, n_clusters)
            Distances, for kernels in their feature space; infinite to clusters that stayed empty.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        return np.sqrt(self._model.squared_distances(self._read_new(X)))

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Floats:
        """Fit, then return the distances of the training samples to the centres.

        Parameters
        ----------
        X : samples or views, as in ``fit``
            What to cluster.
        y : None
            Ignored.
        **fit_params : dict
            Further arguments of ``fit``, such as ``sample_weight``.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            As ``transform`` returns them.
        """
        return self.fit(X, y, **fit_params).transform(X)

    @available_if(_offers("score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective of k-means of samples with the fitted centres, so that larger is better.

        Parameters
        ----------
        X : samples or views, as in ``fit``
            Samples.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_new,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            Minus the weighted sum of the squared distances to the nearest centre.
        """
        check_is_fitted(self)
        squared = self._model.squared_distances(self._read_new(X)).min(axis=1)
        return -float(read_weights(sample_weight, len(squared)) @ squared)

    @available_if(_keeps_a_kernel)
    def _cross(self, X: Any) -> KernelOperator:
        """Return the kernel between samples and the training samples, which pictures draw."""
        model: Any = self._model
        return model.kernel.cross(self._read_new(X))

    def _store_run(self, best: Descent | MinMaxRun) -> None:
        """Store what the best run ended with, and warn where it ended too early or left clusters empty."""
        self.labels_: Ints = best.labels
        self.objective_ = best.objective
        self.inertia_ = best.inertia
        self.objective_path_ = np.array(best.history)
        self.cluster_variances_ = best.scatter
        self.n_iter_ = best.n_iter
        self.converged_ = best.converged
        self._n_features_out = len(best.totals)
        warn_if_unfinished(best.ended, self.max_iter)
        warn_if_empty(best.totals, len(best.totals))
        warn_if_rose(best.rose)


# scikit-learn wraps both for set_output when the class is made; a check inside would be hidden from hasattr.
for _name in ("transform", "fit_transform"):
    setattr(CenterClusterer, _name, available_if(_offers("transform"))(getattr(CenterClusterer, _name)))
