"""What estimators share that embed the samples and make clusters of the embedding by k-means."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.shared.kernel_estimator import run_starts, warn_if_empty
from kernelweave.estimators.shared.multi_view import MULTI_VIEW_RULES, MultiViewKernelEstimator
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ConvergenceWarning, ParameterError
from kernelweave.foundation.notices import warn
from kernelweave.foundation.random_streams import streams
from kernelweave.inputs import Views, check_cluster_count, per_view, read_views
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.transforms import DegreeKernel
from kernelweave.partitions import algebra
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers.kmeans.starts import start_labels
from kernelweave.solvers.shared.best_run import best_of

#: Eigenvectors with a larger residual are worth a warning.
INEXACT = 1e-4


def unit_rows(E: Floats) -> Floats:
    """Return rows scaled to unit length; a single column is left as it is, or nothing would be left of it."""
    if E.shape[1] < 2:
        return E
    lengths = np.sqrt(np.einsum("ij,ij->i", E, E))
    return np.asarray(E / np.where(lengths > algebra.EPS, lengths, 1.0)[:, None])


def rounding(
    rows: FeatureKernel, weights: Floats, n_clusters: int, **options: Any
) -> Callable[[np.random.Generator], Descent]:
    """Return the function that clusters embedded samples by k-means from one drawn start."""

    def run(rng: np.random.Generator) -> Descent:
        rng = deepcopy(rng)  # a generator may serve several embeddings
        start = start_labels(rows, "k-means++", weights, n_clusters, rng)
        return kernel_kmeans(rows, start, weights, n_clusters=n_clusters, **options)

    return run


def view_rules(*names: str) -> dict[str, list[Any]]:
    """Return the rules of parameters that multi-view methods have in common."""
    return {name: MULTI_VIEW_RULES[name] for name in names}


class EmbeddingClusterer(ClusterMixin):
    """Estimators whose clusters are those of k-means on an embedding."""

    def _round(self, embedding: Floats, X: Any, y: Any, weights: Floats | None = None, **options: Any) -> Descent:
        """Make clusters of the embedding; keep both."""
        rows = FeatureKernel(embedding)
        run = rounding(rows, np.ones(len(embedding)) if weights is None else weights, self.n_clusters, **options)
        best = best_of(run_starts(self, rows, run, streams(self.random_state, self.n_init), X, y))
        self.embedding_ = embedding
        self.labels_ = best.labels
        warn_if_empty(best.totals, self.n_clusters)
        return best


class EmbeddingPlacer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, EmbeddingClusterer):
    """The same where new samples can be embedded, too: they go to the nearest centre."""

    @abstractmethod
    def _embed(self, X: Any) -> Floats:
        """Return the embedding of new samples."""

    def _keep_centers(self, best: Descent, weights: Floats | None = None) -> None:
        rows = FeatureKernel(self.embedding_)
        counted = np.ones(len(self.labels_)) if weights is None else weights
        totals = np.where(best.totals > 0, best.totals, 1.0)
        self._centers = rows.feature_sums(self.labels_, counted, self.n_clusters) / totals[:, None]
        self._norms = best.norms
        self._n_features_out = self.embedding_.shape[1]

    def transform(self, X: Any) -> Floats:
        """Return the embedding of samples.

        Parameters
        ----------
        X : samples or views, as in ``fit``
            Samples; for precomputed kernels their rows of kernel values with the training samples.

        Returns
        -------
        embedding : ndarray of shape (n_new, n_columns)
            Rows as in ``embedding_``.
        """
        check_is_fitted(self)
        return self._embed(X)

    def predict(self, X: Any) -> Ints:
        """Return the nearest cluster of samples in the space of the embedding.

        Parameters
        ----------
        X : samples or views, as in ``fit``
            Samples; for precomputed kernels their rows of kernel values with the training samples.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the cluster.
        """
        check_is_fitted(self)
        rows = FeatureKernel(self._embed(X))
        start = np.zeros(rows.n_samples, dtype=np.intp)
        ones = np.ones(len(self._norms))
        return rows.nearest_means(self._centers, self._norms, ones, rows.diag(), start, 0.0).labels

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Fit, then return the embedding of the training samples."""
        return self.fit(X, y).embedding_


class ViewAffinities(EmbeddingClusterer, MultiViewKernelEstimator):
    """Base of methods on the affinities of several views, each divided by degrees. They place no new samples."""

    #: What the base class divides kernels by.
    normalize = "degrees"
    _distances_only = False

    def _read_views(self, X: Any) -> Views:
        views = read_views(self, X, reset=True)
        check_cluster_count(self.n_clusters, np.ones(views.n_samples))
        self.view_weights_ = np.full(len(views), 1.0 / len(views))
        return views

    def _affinities(self, views: Views) -> list[DegreeKernel]:
        """Return D^-1/2 K D^-1/2 of every view."""
        parts = self._settle(views, np.ones(views.n_samples)).parts  # type: ignore[union-attr]
        del self._kernels  # of no use without new samples
        return list(parts)


def view_numbers(given: Any, names: Sequence[str], parameter: str, highest: float = np.inf) -> Floats:
    """Return a number for each view, from one for all, a list or a dict; between 0 and ``highest``."""
    values = per_view(given, names, parameter)
    try:
        found = np.array([float(value) for value in values])
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"{parameter}={given!r} must hold numbers, one for all views or one for each of {list(names)}."
        ) from error
    if not (np.isfinite(found).all() and (found >= 0).all() and (found <= highest).all()):
        limit = "" if np.isinf(highest) else f" nor above {highest:g}"
        raise ParameterError(f"{parameter}={given!r} must hold finite numbers that are not negative{limit}.")
    return found


def warn_if_inexact(residual: float) -> None:
    """Warn that eigenvectors could not be told apart."""
    if residual > INEXACT:
        warn(
            f"The eigenvectors are known to a residual of {residual:.1g} only: many eigenvalues lie close together. "
            "Clusters may be unclear; try another n_clusters or kernel.",
            ConvergenceWarning,
        )
