"""Estimators whose clusters are sign patterns of scores, linear in the kernel with the samples trained on.

ScoreModel ──▶ .scores(views), .assign(views)   of new samples, through the kernel with those trained on
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.shared.clusterer import Clusterer
from kernelweave.estimators.shared.elsewhere import answers_lazily
from kernelweave.estimators.shared.single_kernel import is_precomputed
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import is_multi_view, take_rows
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import FittedKernel
from kernelweave.kernels.transforms import CentredKernel
from kernelweave.solvers.spectral.kernel_spectral import codebook, decode, score_floor

#: Samples read and scored at a time.
CHUNK = 8192

# --- scores of new samples -------------------------------------------------------------------------------------------


# Rows of a precomputed kernel whose columns are chosen at a time.
COPIED_ROWS = 512


@dataclass(frozen=True)
class TrainedKernel:
    """The kernel between new samples and those trained on."""

    kernel: FittedKernel
    columns: Ints | None = None  # of the rows of a precomputed kernel: the samples trained on; None for all

    @classmethod
    def of(cls, fitted: FittedKernel, spec: Any, indices: Ints, n_samples: int) -> "TrainedKernel":
        """Return what new samples need of a kernel fitted on the samples ``indices`` of all."""
        some = is_precomputed(spec) and len(indices) < n_samples
        return cls(fitted.for_new_samples(), indices if some else None)

    def cross(self, X: Matrix) -> KernelOperator:
        """Return the kernel between new samples (rows) and those trained on."""
        return self.kernel.cross(X if self.columns is None else X[:, self.columns])

    def over_rows(self, X: Matrix, work: Callable[[KernelOperator], Floats]) -> Floats:
        """Return what ``work`` makes of the kernel of new samples; columns are copied for some rows at a time."""
        n = X.shape[0]
        if self.columns is None or n <= COPIED_ROWS:
            return work(self.cross(X))
        starts = range(0, n, COPIED_ROWS)
        return np.concatenate([work(self.cross(X[start : start + COPIED_ROWS])) for start in starts])

    def row_sums(self, X: Matrix) -> Floats:
        """Return the sums of the kernel rows of new samples."""
        return self.over_rows(X, lambda cross: cross.matmat(np.ones((cross.shape[1], 1)))[:, 0])


class ViewScores(ABC):
    """Scores of new samples from the kernel of one view."""

    trained: TrainedKernel

    @abstractmethod
    def scores(self, X: Matrix) -> Floats:
        """Return the scores of new samples, one column per eigenvector."""

    def row_sums(self, X: Matrix) -> Floats:
        """Return the sums of the kernel rows of new samples."""
        return self.trained.row_sums(X)


@dataclass(frozen=True)
class BiasedScores(ViewScores):
    """Scores k(x) alpha + bias."""

    trained: TrainedKernel
    alphas: Floats  # (m, q)
    bias: Floats  # (q,)

    def scores(self, X: Matrix) -> Floats:
        """Return the scores of new samples."""
        return self.trained.over_rows(X, lambda cross: np.asarray(cross.matmat(self.alphas) + self.bias))


@dataclass(frozen=True)
class CentredScores(ViewScores):
    """Scores of kernel rows centred by the (weighted) mean of the samples trained on."""

    trained: TrainedKernel
    shares: Floats  # (m,) weights of the samples in the mean
    column_means: Floats  # (m,)
    grand_mean: float
    alphas: Floats  # (m, q)

    @classmethod
    def of(cls, trained: TrainedKernel, centred: CentredKernel, alphas: Floats) -> "CentredScores":
        """Return the scores whose centring is that of the kernel of the samples trained on."""
        return cls(trained, centred.shares, centred.column_means, centred.grand_mean, alphas)

    def scores(self, X: Matrix) -> Floats:
        """Return the scores of new samples."""
        means: dict[str, Any] = {"column_means": self.column_means, "grand_mean": self.grand_mean}
        return self.trained.over_rows(X, lambda cross: CentredKernel(cross, self.shares, **means).matmat(self.alphas))


@dataclass(frozen=True)
class Codebook:
    """The sign patterns of the clusters."""

    patterns: Floats  # (k, q) of -1 and 1, most frequent first
    floor: Floats  # (q,) what a score has to exceed to be positive

    @classmethod
    def of(cls, scores: Floats, n_clusters: int) -> "Codebook":
        """Return the most frequent patterns of the samples trained on; fewer where they have fewer."""
        floor = score_floor(scores)
        return cls(codebook(scores, n_clusters, floor), floor)

    def labels(self, scores: Floats) -> Ints:
        """Return the nearest pattern of every row of scores."""
        return decode(scores, self.patterns, self.floor)


@dataclass(frozen=True)
class ScoreModel:
    """Scores of every view, how they are averaged, and the patterns of the clusters."""

    views: tuple[ViewScores, ...]
    shares: Floats  # (V,) of the views in the average
    codebook: Codebook  # of the average
    view_codebooks: tuple[Codebook, ...] = ()  # of each view, where there are any

    def view_scores(self, views: Iterable[Matrix]) -> Floats:
        """Return the scores of new samples view by view, shape (V, n, q)."""
        return np.stack([model.scores(X) for model, X in zip(self.views, views, strict=True)])

    def row_sums(self, views: Iterable[Matrix]) -> Floats:
        """Return the sums of kernel rows view by view, shape (V, n)."""
        return np.stack([model.row_sums(X) for model, X in zip(self.views, views, strict=True)])

    def scores(self, views: Iterable[Matrix]) -> Floats:
        """Return the averaged scores of new samples, shape (n, q)."""
        return averaged(self.view_scores(views), self.shares)

    def assign(self, views: Iterable[Matrix]) -> Ints:
        """Return the clusters of new samples."""
        return self.codebook.labels(self.scores(views))

    def assign_by_view(self, views: Iterable[Matrix]) -> Ints:
        """Return the clusters of new samples view by view, shape (V, n)."""
        pairs = zip(self.view_codebooks, self.view_scores(views), strict=True)
        return np.stack([book.labels(scores) for book, scores in pairs])


def averaged(scores: Floats, shares: Floats) -> Floats:
    """Return the weighted average of the scores of several views."""
    return np.asarray(np.tensordot(shares, scores, axes=1))


def distinct_codebook(scores: Floats, n_clusters: int, name: str = "") -> Codebook:
    """Return the codebook of the samples trained on; fewer patterns than clusters are an error."""
    book = Codebook.of(scores, n_clusters)
    n_patterns = len(book.patterns)
    if n_patterns < n_clusters:
        raise ParameterError(
            f"n_clusters={n_clusters}, but the scores{name} show only {n_patterns} distinct sign pattern(s), and every "
            f"cluster needs one. Ask for at most {n_patterns} clusters, or choose another kernel, such as a smaller "
            "width; samples that are equal or similar to the kernel share their pattern."
        )
    return book


# --- the base class --------------------------------------------------------------------------------------------------


@answers_lazily("predict", "transform")
class ScoreClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """Base of estimators whose clusters are sign patterns of scores.

    ``fit`` sets ``labels_``, ``codebook_`` and ``_model``. New samples may come block by block.
    """

    codebook_: Floats
    _model: ScoreModel

    @abstractmethod
    def _read_new(self, X: Any) -> Sequence[Matrix]:
        """Return new samples, checked, view by view; one table is one view."""

    @property
    def _n_features_out(self) -> int:
        return int(self.codebook_.shape[1])

    def _by_blocks(self, answer: Callable[[Sequence[Matrix]], Any], X: Any, axis: int = 0) -> Any:
        """Return the model's answers for all blocks of samples as one array."""
        return joined((answer(self._read_new(block)) for block in chunks(X)), axis)

    def kernel_row_sums(self, X: Any) -> Floats:
        """Return how much every sample resembles the training samples together: the sums of its kernel rows.

        Scores of samples whose sum is almost zero are meaningless. The balanced line fit of two clusters
        also uses the sums.

        Parameters
        ----------
        X : array-like or views as in ``fit``, or an iterator of such blocks
            Samples.

        Returns
        -------
        sums : ndarray of shape (n_views, n_new)
            Sums over the training samples, view by view.
        """
        check_is_fitted(self)
        return self._by_blocks(self._model.row_sums, X, axis=1)

    def transform(self, X: Any) -> Floats:
        """Return the scores of samples.

        Parameters
        ----------
        X : array-like or views as in ``fit``, or an iterator of such blocks
            Samples. Arrays mapped from disk are read a few thousand rows at a time, and so are long ones.

        Returns
        -------
        scores : ndarray of shape (n_new, n_clusters - 1)
            Their signs tell the cluster.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        return self._by_blocks(self._model.scores, X)

    def predict(self, X: Any) -> Ints:
        """Return the clusters of new samples, by the codeword nearest to the signs of their scores.

        Parameters
        ----------
        X : array-like or views as in ``fit``, or an iterator of such blocks
            Samples. Arrays mapped from disk are read a few thousand rows at a time, and so are long ones.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the codeword.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        return self._by_blocks(self._model.assign, X)


# --- samples block by block ------------------------------------------------------------------------------------------


def chunks(X: Any) -> Iterator[Any]:
    """Yield samples block by block: those of an iterator as they come, others in slices."""
    if hasattr(X, "__next__"):
        yield from X
        return
    if is_multi_view(X):
        views = X.values() if isinstance(X, Mapping) else X
        sizes = {view.shape[0] if hasattr(view, "shape") else len(view) for view in views}
        n_samples = max(sizes) if len(sizes) == 1 else 0  # views that disagree are reported where they are read
    else:
        n_samples = X.shape[0] if hasattr(X, "shape") and len(X.shape) else 0
    if n_samples <= CHUNK:
        yield X
        return
    for lo in range(0, n_samples, CHUNK):
        yield take_rows(X, slice(lo, lo + CHUNK))


def joined(answers: Iterator[Any], axis: int = 0) -> Any:
    """Return the answers for all blocks as one array."""
    arrays = list(answers)
    if not arrays:
        raise ParameterError("X is an iterator that yields no blocks, so there are no samples.")
    return np.concatenate(arrays, axis=axis)


def refuse_iterators(X: Any) -> None:
    """Say that training needs arrays, where only new samples may come block by block."""
    if hasattr(X, "__next__"):
        raise ParameterError("X is an iterator, which can be read only once; fit on arrays, and predict on iterators.")
