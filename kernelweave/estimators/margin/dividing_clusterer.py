"""The base of methods for two clusters, which find more by dividing again."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.margin.division import DivisionModel
from kernelweave.estimators.shared.clusterer import Clusterer
from kernelweave.estimators.shared.elsewhere import answers_lazily
from kernelweave.foundation.array_types import Floats, Ints, Matrix


@answers_lazily("predict", "decision_function")
class DividingClusterer(Clusterer):
    """Base of methods for two clusters; ``fit`` stores the ``_model`` that knows every division."""

    _model: DivisionModel

    @abstractmethod
    def _read_new(self, X: Any) -> Sequence[Matrix]:
        """Return new samples, checked, view by view."""

    def decision_function(self, X: Any) -> Floats:
        """Return the signed distance from the border, in margins; positive on the side of the second cluster.

        Parameters
        ----------
        X : array-like or views, as in ``fit``
            New samples; for precomputed kernels their rows of kernel values with the training samples.

        Returns
        -------
        decision : ndarray of shape (n_new,), or (n_new, n_clusters - 1) with more than two clusters
            One column for each division, in the order they were made.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        decisions = self._model.decisions(self._read_new(X))
        return np.ravel(decisions) if self.n_clusters == 2 and decisions.shape[1] else decisions

    def _n_columns(self, method: str) -> int | None:
        n_divisions = len(self._model.splits)
        return None if method == "predict" or (self.n_clusters == 2 and n_divisions) else n_divisions

    def predict(self, X: Any) -> Ints:
        """Return the clusters of new samples, by the decisions of every division in turn.

        Parameters
        ----------
        X : array-like or views, as in ``fit``
            New samples.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the cluster.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        return self._model.assign(self._read_new(X))
