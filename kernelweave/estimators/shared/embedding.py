"""Estimators that embed the samples and make clusters of the embedding by k-means.

round_embedding ──▶ Descent          clusters of the embedding
EmbeddingModel  ──▶ .embed(views)    new samples in the space of the embedding
                ──▶ .nearest(views)  the centre they go to
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.shared.clusterer import Clusterer
from kernelweave.estimators.shared.elsewhere import answers_lazily
from kernelweave.estimators.shared.fit_warnings import warn_if_empty
from kernelweave.estimators.shared.runs import run_starts
from kernelweave.estimators.shared.view_kernels import ViewKernels, WeightedViewKernels
from kernelweave.foundation.array_types import Bools, Floats, Ints, Matrix
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.foundation.random_streams import streams
from kernelweave.inputs import Views, read_weights
from kernelweave.kernels.device import place_features
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.weighted_sum import MultiViewKernel
from kernelweave.partitions import algebra
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers.kmeans.starts import start_labels
from kernelweave.solvers.shared.best_run import best_of
from kernelweave.solvers.spectral.eigenvectors import spectrum
from kernelweave.solvers.spectral.masked_multi_view import shares_in_common
from kernelweave.solvers.spectral.multi_view_spectral import MultiViewSpectrum, multi_view_spectral

# New samples whose affinities to all training samples are held at once.
ROWS_TOGETHER = 512

# --- eigenvectors ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RelaxedClusters:
    """Relaxed clusters of a sum of kernels, and what extends them to new samples."""

    result: MultiViewSpectrum
    embedding: Floats  # (n, k) of the training samples
    sources: Floats  # (n, k): the embedding of a new sample is its kernel row times this


def relaxed_clusters(
    op: MultiViewKernel, weights: Floats, totals: Floats, room: float = np.inf, work: float = np.inf, **options: Any
) -> RelaxedClusters:
    """Return the leading eigenvectors of a sum of kernels, its coefficients learned or not.

    ``room`` is what may be stored besides the kernels, in MiB, and ``work`` what the search may take.
    """
    result = multi_view_spectral(spectrum(op, weights, room, work), totals, **options)
    return RelaxedClusters(result, op.backend.host(result.embedding()), op.backend.host(result.sources()))


def unit_rows(E: Floats) -> Floats:
    """Return rows scaled to unit length; a single column stays as it is, or all its values would be 1 or -1."""
    if E.shape[1] < 2:
        return E
    lengths = np.sqrt(np.einsum("ij,ij->i", E, E))
    return np.asarray(E / np.where(lengths > algebra.EPS, lengths, 1.0)[:, None])


# --- clusters of an embedding ----------------------------------------------------------------------------------------


def _kmeans_run(rows: FeatureKernel, weights: Floats, n_clusters: int, **options: Any) -> Callable[..., Descent]:
    """Return the function that clusters embedded samples by k-means from one drawn start."""

    def run(rng: np.random.Generator, keeper: Keeper = NOTHING) -> Descent:
        rng = deepcopy(rng)  # a generator may serve several embeddings
        start = start_labels(rows, "k-means++", weights, n_clusters, rng)
        return kernel_kmeans(rows, start, weights, n_clusters=n_clusters, keeper=keeper, **options)

    return run


def kmeans_labels(embedding: Floats, weights: Floats, n_clusters: int, rngs: Sequence[np.random.Generator]) -> Ints:
    """Return the best labels of an embedding by k-means, one start from each generator."""
    return best_of(map(_kmeans_run(FeatureKernel(embedding), weights, n_clusters), rngs)).labels


def round_embedding(
    estimator: Any,
    embedding: Floats,
    X: Any,
    y: Any,
    *,
    n_clusters: int,
    n_init: int,
    random_state: Any,
    weights: Floats | None = None,
    **options: Any,
) -> Descent:
    """Return the best clusters of an embedding by k-means; ``estimator``, ``X`` and ``y`` are for callbacks."""
    rows = place_features(embedding) or FeatureKernel(embedding)
    run = _kmeans_run(rows, np.ones(len(embedding)) if weights is None else weights, n_clusters, **options)
    clusters = best_of(run_starts(estimator, rows, run, streams(random_state, n_init), X, y, Descent))
    warn_if_empty(clusters.totals, n_clusters)
    return clusters


# --- new samples -----------------------------------------------------------------------------------------------------


class Extension(ABC):
    """A way to embed new samples."""

    @abstractmethod
    def embed(self, views: Iterable[Matrix]) -> Floats:
        """Return the embedding of samples, given view by view."""


@dataclass(frozen=True)
class EigenvectorExtension(Extension):
    """The Nystroem extension of eigenvectors of a weighted sum of kernels, rows scaled to unit length."""

    kernel: WeightedViewKernels
    sources: Floats  # (n, k)

    def embed(self, views: Iterable[Matrix]) -> Floats:
        """Return the extended eigenvectors."""
        if isinstance(views, Views) and views.observed is not None:
            everyone = np.ones((len(self.sources), len(views)), dtype=bool)
            kernels = self.kernel.kernels
            return ObservedExtension(kernels, self.kernel.coefficients, everyone, self.sources, 0.0).embed(views)
        return unit_rows(self.kernel.cross(views).matmat(self.sources))


@dataclass(frozen=True)
class ObservedExtension(Extension):
    """The same of a sum of kernels that is averaged over the views that two samples have in common."""

    kernels: ViewKernels
    coefficients: Floats  # (V,)
    observed: Bools  # (n, V) which training samples each view has
    sources: Floats  # (n, k)
    level: float  # the affinity of samples that no view has together

    def embed(self, views: Iterable[Matrix]) -> Floats:
        """Return the extended eigenvectors, some samples after others: rows of affinities are of all training ones."""
        assert isinstance(views, Views)
        starts = range(0, views.n_samples, ROWS_TOGETHER)
        blocks = [self.affinities(views.take(slice(start, start + ROWS_TOGETHER))) @ self.sources for start in starts]
        return unit_rows(np.concatenate(blocks) if blocks else np.empty((0, self.sources.shape[1])))

    def affinities(self, views: Views) -> Floats:
        """Return the affinities between new samples and the training samples, shape (n_new, n)."""
        total = np.zeros((views.n_samples, len(self.observed)))
        for v, (kernel, coefficient) in enumerate(zip(self.kernels.kernels, self.coefficients.tolist(), strict=True)):
            new = views.present(v)
            if len(new) and coefficient != 0.0:
                cross = kernel.cross(views.blocks[v][new])
                places = np.ix_(new, np.flatnonzero(self.observed[:, v]))
                total[places] += coefficient * cross.block(slice(None), slice(None))
        shares = shares_in_common(views.mask(), self.observed, self.coefficients)
        return np.asarray(np.divide(total, shares, out=np.full_like(total, self.level), where=shares > 0))


@dataclass(frozen=True)
class EmbeddingModel:
    """How samples are embedded, and the centres of the clusters there."""

    extension: Extension
    centers: Floats  # (k, d)
    norms: Floats  # (k,) squared lengths of the centres, infinite for an empty cluster

    @classmethod
    def of_clusters(
        cls, extension: Extension, embedding: Floats, clusters: Descent, weights: Floats | None = None
    ) -> "EmbeddingModel":
        """Return the model of a clustered embedding."""
        counted = np.ones(len(embedding)) if weights is None else weights
        sums = FeatureKernel(embedding).feature_sums(clusters.labels, counted, len(clusters.totals))
        totals = np.where(clusters.totals > 0, clusters.totals, 1.0)
        return cls(extension, sums / totals[:, None], clusters.norms)

    def embed(self, views: Iterable[Matrix]) -> Floats:
        """Return the embedding of samples."""
        return self.extension.embed(views)

    def nearest(self, views: Iterable[Matrix]) -> tuple[Ints, Floats]:
        """Return the nearest centre of every sample, and its squared distance."""
        rows = FeatureKernel(self.embed(views))
        start = np.zeros(rows.n_samples, dtype=np.intp)
        ones = np.ones(len(self.norms))
        assignment = rows.nearest_means(self.centers, self.norms, ones, rows.diag(), start, 0.0)
        return assignment.labels, np.maximum(assignment.distances, 0.0)


@answers_lazily("predict", "transform", "score")
class EmbeddingClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """Base of estimators whose clusters are those of k-means on an embedding that new samples also have.

    ``fit`` calls ``_round``, which sets ``labels_``, ``embedding_`` and ``_model``.
    """

    n_clusters: int
    n_init: int
    random_state: Any
    labels_: Ints
    embedding_: Floats
    _model: EmbeddingModel

    @abstractmethod
    def _read_new(self, X: Any) -> Sequence[Matrix] | Views:
        """Return new samples, checked, view by view; one table is one view."""

    def _round(
        self,
        extension: Extension,
        embedding: Floats,
        X: Any,
        y: Any,
        weights: Floats | None = None,
        n_clusters: int | None = None,
        **options: Any,
    ) -> Descent:
        """Make clusters of the embedding, as many as asked for by default; keep both, and the model for new samples."""
        k = self.n_clusters if n_clusters is None else n_clusters
        choices = {"n_clusters": k, "n_init": self.n_init, "random_state": self.random_state}
        clusters = round_embedding(self, embedding, X, y, weights=weights, **choices, **options)
        self.embedding_ = embedding
        self.labels_ = clusters.labels
        self._model = EmbeddingModel.of_clusters(extension, embedding, clusters, weights)
        return clusters

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

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
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        return self._model.embed(self._read_new(X))

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
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        return self._model.nearest(self._read_new(X))[0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective of k-means on the embedding of samples, so that larger is better.

        Parameters
        ----------
        X : samples or views, as in ``fit``
            Samples; for precomputed kernels their rows of kernel values with the training samples.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_new,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            Minus the squared distances of the embedded samples to the nearest centres, summed.
        """
        check_is_fitted(self)
        squared = self._model.nearest(self._read_new(X))[1]
        return -float(read_weights(sample_weight, len(squared)) @ squared)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Floats:
        """Fit, then return the embedding of the training samples.

        Parameters
        ----------
        X : samples or views, as in ``fit``
            Samples.
        y : None
            Ignored.
        **fit_params : dict
            Further arguments of ``fit``, such as ``sample_weight`` where it is supported.

        Returns
        -------
        embedding : ndarray of shape (n_samples, n_columns)
            ``embedding_``.
        """
        return self.fit(X, y, **fit_params).embedding_
