"""What kernel spectral models share: samples to train on, scores of new samples, sign patterns as clusters."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.shared.center_clusterer import is_precomputed
from kernelweave.foundation.array_types import Array, Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import is_multi_view
from kernelweave.kernels.operator import KernelOperator
from kernelweave.solvers.spectral.kernel_spectral import codebook, decode, score_floor

#: Samples read and scored at a time.
CHUNK = 8192
#: Trials of a swap for each sample to train on.
SWAPS = 4


class ScoreClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin):
    """Estimators whose clusters are sign patterns of scores."""

    @abstractmethod
    def _scores(self, X: Any) -> Floats:
        """Return the scores of a block of samples, as many columns as the codebook."""

    @abstractmethod
    def _row_sums(self, X: Any) -> Floats:
        """Return the sums of a block's kernel rows, samples last."""

    def kernel_row_sums(self, X: Any) -> Floats:
        """Return how much every sample resembles the training samples together: the sums of its kernel rows.

        Scores of samples whose sum is next to nothing say nothing about them. The balanced line fit of two clusters
        uses the sums, too.

        Parameters
        ----------
        X : array-like or views as in ``fit``, or an iterator of such blocks
            Samples.

        Returns
        -------
        sums : ndarray of shape (n_new,), or (n_views, n_new) for several views
            Sums over the training samples.
        """
        check_is_fitted(self)
        return joined((self._row_sums(block) for block in chunks(X)), axis=-1)

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
        """
        check_is_fitted(self)
        return joined(self._scores(block) for block in chunks(X))

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
        """
        check_is_fitted(self)
        return joined(decode(self._scores(block), self.codebook_, self._floor) for block in chunks(X))

    def fit_predict(self, X: Any, y: Any = None) -> Ints:
        """Fit, then return the labels of all samples."""
        return self.fit(X, y).labels_

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Fit, then return the scores of all samples."""
        return self.fit(X, y).transform(X)

    def _codebook(self, scores: Floats, name: str = "") -> Floats:
        """Return the codebook of the training samples' scores."""
        found = codebook(scores, self.n_clusters, score_floor(scores))
        if len(found) < self.n_clusters:
            raise ParameterError(
                f"n_clusters={self.n_clusters}, but the scores{name} show only {len(found)} distinct sign pattern(s), "
                f"and every cluster needs one of its own. Ask for at most {len(found)} clusters, or choose another "
                "kernel, such as a smaller width; samples that are equal or alike to the kernel share their pattern."
            )
        return found


def chunks(X: Any) -> Iterator[Any]:
    """Yield samples block by block: those of an iterator as they come, others in slices."""
    if hasattr(X, "__next__"):
        yield from X
        return
    if is_multi_view(X):
        parts = X if isinstance(X, dict) else dict(enumerate(X))
        n = {part.shape[0] if hasattr(part, "shape") else len(part) for part in parts.values()}
        if len(n) != 1 or max(n) <= CHUNK:  # views that disagree are reported where they are read
            yield X
            return
        for lo in range(0, max(n), CHUNK):
            cut = {name: _safe_indexing(part, slice(lo, lo + CHUNK)) for name, part in parts.items()}
            yield cut if isinstance(X, dict) else list(cut.values())
        return
    n_samples = X.shape[0] if hasattr(X, "shape") and len(X.shape) else None
    if n_samples is None or n_samples <= CHUNK:
        yield X
        return
    for lo in range(0, n_samples, CHUNK):
        yield _safe_indexing(X, slice(lo, lo + CHUNK))


def joined(parts: Iterator[Any], axis: int = 0) -> Any:
    """Return the answers for all blocks as one array."""
    found = list(parts)
    if not found:
        raise ParameterError("X is an iterator that yields no blocks, so there are no samples.")
    return np.concatenate(found, axis=axis)


def refuse_iterators(X: Any) -> None:
    """Say that training needs arrays, where only new samples may come block by block."""
    if hasattr(X, "__next__"):
        raise ParameterError("X is an iterator, which can be read once only; fit on arrays, and predict on iterators.")


def training_part(X: Array, kernel: Any, chosen: Ints) -> Array:
    """Return the samples to train on, or the part of a given kernel matrix that belongs to them."""
    if not is_precomputed(kernel):
        return X[chosen]
    square = X.shape[0] == X.shape[1]  # a matrix that is not is reported where kernels are read
    return X[chosen][:, chosen] if square else X


def chosen_samples(
    n: int,
    wanted: int | None,
    selection: str,
    n_clusters: int,
    operators: Callable[[], Sequence[KernelOperator]],
    rng: np.random.Generator,
) -> Ints:
    """Return the samples to train on: all, some at random, or some spread out.

    ``"entropy"`` swaps samples while the sum of their kernel values falls, which raises the quadratic Renyi entropy of
    the density they stand for.
    """
    if wanted is None or wanted >= n:
        return np.arange(n)
    if wanted < n_clusters:
        raise ParameterError(f"n_train_samples={wanted} is fewer than n_clusters={n_clusters}; raise it.")
    chosen = np.sort(rng.choice(n, wanted, replace=False))
    if selection == "random":
        return chosen
    kernels = operators()
    outside = np.setdiff1d(np.arange(n), chosen)
    sums = np.sum([_sums(op, chosen) for op in kernels], axis=0)
    for _ in range(SWAPS * wanted):
        leaving = int(np.argmax(sums))
        place = int(rng.integers(len(outside)))
        entering = outside[place]
        rows = [op.block(np.array([entering, chosen[leaving]]), np.append(chosen, entering)) for op in kernels]
        new = np.sum([row[0] for row in rows], axis=0)
        old = np.sum([row[1] for row in rows], axis=0)
        arriving = float(new[:-1].sum() - new[leaving] + new[-1])
        if arriving >= sums[leaving]:
            continue
        sums += new[:-1] - old[:-1]
        sums[leaving] = arriving
        outside[place] = chosen[leaving]
        chosen[leaving] = entering
    return np.sort(chosen)


def _sums(op: KernelOperator, chosen: Ints) -> Floats:
    return np.asarray(op.block(chosen, chosen), dtype=np.float64).sum(axis=1)
