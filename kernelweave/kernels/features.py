"""Kernels that are inner products of explicit features: exact for linear kernels, or an approximation.

K = Phi Phi^T with Phi of shape (n, d), dense or sparse. Cluster sums go through the (k, d) sums of features and
cost O(n d k); nothing of size n x n is ever formed.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.backends import Assignment, Backend, BackendArray, Moves, get_backend
from kernelweave.foundation.array_types import Array, Floats, Index, Ints, Matrix
from kernelweave.kernels.blockwise import PIECE_ENTRIES
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions.means import MeansPartition
from kernelweave.partitions.partition import Partition

# Entries of features of new samples that are computed together: 2 MiB of them.
MAPPED_ENTRIES = 2**18


class FeatureKernel(KernelOperator):
    """Inner products between the rows of ``Phi`` and the rows of ``source`` (by default ``Phi`` itself)."""

    def __init__(
        self, Phi: Any, source: Any | None = None, *, backend: Backend | None = None, in_place: bool = False
    ) -> None:
        self.backend = get_backend() if backend is None else backend
        # Some columns of an array stay where they are: ``in_place`` is for products, loops would be compiled once more.
        self.Phi: Matrix = Phi if in_place else _by_rows(Phi)
        self.source: Matrix = self.Phi if source is None else _by_rows(source)
        self.shape = (self.Phi.shape[0], self.source.shape[0])
        self.psd = True if source is None else None

    @property
    def rank_bound(self) -> int:
        """The number of features, where rows and columns are the same samples."""
        return min(self.Phi.shape) if self.source is self.Phi else self.shape[0]

    def gram_factor(self) -> Floats:
        """Return the features, dense."""
        return np.asarray(self.Phi.toarray() if sp.issparse(self.Phi) else self.Phi)

    def diag(self) -> BackendArray:
        """Return the squared length of every row of features."""
        return self.backend.squared_lengths(self.Phi)

    def matmat(self, H: BackendArray) -> BackendArray:
        """Return Phi (source^T H)."""
        return self.backend.spread(self.Phi, self._weigh_rows(self.backend.feature_products(self.source, H)))

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the inner products of the chosen rows."""
        step = max(1, PIECE_ENTRIES // max(1, self.Phi.shape[1]))
        if not _many(rows, self.Phi, step) or isinstance(rows, slice):
            return self._products(self._weighed(self._taken(self.Phi, rows)), cols)
        # Rows of many samples would be another table.
        width = len(range(*cols.indices(self.shape[1]))) if isinstance(cols, slice) else len(cols)
        products = np.empty((len(rows), width))
        for lo in range(0, len(rows), step):
            some = self._weighed(self._taken(self.Phi, rows[lo : lo + step]))
            products[lo : lo + step] = self._products(some, cols)
        return products

    def _weighed(self, features: Any) -> Any:
        """Return rows of features as they enter inner products with rows."""
        return features

    def _products(self, features: Any, cols: Index) -> Array:
        """Return inner products with the rows of some samples, piece by piece where many would be copied."""
        step = max(1, PIECE_ENTRIES // max(1, self.source.shape[1]))
        if not _many(cols, self.source, step) or isinstance(cols, slice):
            products = features @ self._taken(self.source, cols).T
            return products.toarray() if sp.issparse(products) else products
        products = np.empty((features.shape[0], len(cols)))
        for lo in range(0, len(cols), step):
            np.matmul(features, self.source[cols[lo : lo + step]].T, out=products[:, lo : lo + step])
        return products

    def columns(self, samples: Ints) -> BackendArray:
        """Return the inner products of every row with those of some samples."""
        if sp.issparse(self.Phi):  # products of sparse rows stay sparse until they are few
            return self.block(slice(None), samples)
        if sparse_entries(self.source) is None:
            return self.backend.spread(self.Phi, self._dual(self.backend.at(self.source, samples)).T)
        # Rows of sparse features are made dense to be multiplied with, and are wide: some at a time.
        step = max(1, self.held_entries // max(1, self.source.shape[1]))
        chunks = [samples[start : start + step] for start in range(0, len(samples), step)] or [samples]
        rows = [self._dual(self.backend.at(self.source, chunk)) for chunk in chunks]
        return self.backend.join([self.backend.spread(self.Phi, some.T) for some in rows])

    def cluster_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> BackendArray:
        """Return the (k, n) cluster sums through the sums of features."""
        return self.backend.spread_rows(self.Phi, self._dual(self.feature_sums(labels, weights, n_clusters)))

    def move_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update the sums of the clusters that lost or won a sample."""
        change = self.moved_features(moves, weights, sums.shape[0])
        touched = np.flatnonzero(change.any(axis=1))
        self.backend.add_to_clusters(sums, touched, self.backend.spread_rows(self.Phi, self._dual(change[touched])))

    def partition(self, labels: Any, weights: Any, n_clusters: int) -> Partition:
        """Return the clusters through the means of their features."""
        return MeansPartition(self, labels, weights, n_clusters)

    def feature_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> Floats:
        """Return the weighted sums of features by cluster, shape (n_clusters, d)."""
        return self.backend.feature_sums(self.source, labels, weights, n_clusters)

    def moved_features(self, moves: Moves, weights: BackendArray, n_clusters: int) -> Floats:
        """Return by how much the sums of features change with the moves."""
        return self.backend.moved_features(self.source, moves, weights, n_clusters)

    def lengths(self, sums: Floats) -> Floats:
        """Return the squared lengths of sums of features."""
        return np.einsum("ij,ij->i", sums, sums)

    def inner(self, sums: Floats) -> Floats:
        """Return the inner products among sums of features."""
        return sums @ sums.T

    def nearest_means(
        self, means: Floats, norms: Floats, coefs: Floats, diag: BackendArray, labels: BackendArray, tolerance: float
    ) -> Assignment:
        """Return the mean with least coefs[c] ||phi_i - m_c||^2 for every row; ``norms`` are infinite where none is."""
        return self.backend.nearest_means(self.Phi, self._dual(means), norms, labels, tolerance, diag, coefs)

    def distances_to_means(
        self, means: Floats, norms: Floats, diag: BackendArray, labels: BackendArray
    ) -> BackendArray:
        """Return the squared distance of every row to the mean of its cluster."""
        return self.backend.distances_to_means(self.Phi, self._dual(means), norms, labels, diag)

    def assign_by_size(
        self,
        means: Floats,
        norms: Floats,
        diag: BackendArray,
        labels: BackendArray,
        weights: BackendArray,
        totals: Floats,
        tolerance: float,
    ) -> BackendArray:
        """Return labels given sample after sample by least size * ||phi_i - m_c||^2, sizes changing with each."""
        means = self._dual(means)
        return self.backend.assign_by_size(self.Phi, means, norms, labels, tolerance, diag, weights, totals)

    def _taken(self, features: Any, index: Index) -> Any:
        """Return some rows of features, which may be elsewhere."""
        entries = sparse_entries(features)
        if entries is not None:
            return entries[index]
        if isinstance(features, np.ndarray):
            return features[index]
        rows = np.arange(features.shape[0])[index] if isinstance(index, slice) else np.asarray(index)
        return self.backend.at(features, rows)

    def _dual(self, vectors: Floats) -> Floats:
        """Return vectors of features as they enter inner products with rows."""
        return vectors

    def _weigh_rows(self, products: Floats) -> Floats:
        """Return products of features with something, one row per feature, as they enter inner products."""
        return self._dual(products.T).T


class MappedCross(KernelOperator):
    """Inner products between features of new samples and those of the training samples.

    Features of new samples are computed when they are read, some rows at a time, and are not kept.
    """

    def __init__(self, transform: Callable[[Array], Floats], X: Array, source: Floats) -> None:
        self.backend = get_backend()
        self.transform = transform
        self.X = X
        self.source = source
        self.shape = (X.shape[0], source.shape[0])

    def diag(self) -> Floats:
        """Return the squared length of the features of every new sample."""
        return np.concatenate([self.backend.squared_lengths(Phi) for Phi in self._mapped()])

    def matmat(self, H: BackendArray) -> Floats:
        """Return Phi (source^T H)."""
        products = self.backend.feature_products(self.source, H)
        return np.concatenate([self.backend.spread(Phi, products) for Phi in self._mapped()])

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the inner products of chosen new samples and training samples."""
        return np.asarray(self.transform(self.X[rows]) @ self.source[cols].T)

    def cluster_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> Floats:
        """Return the (k, n) cluster sums through the sums of features."""
        sums = np.zeros((n_clusters, self.source.shape[1]))
        # Features of several views are kept side by side, and loops take rows that follow each other.
        step = len(self.source) if self.source.flags.c_contiguous else self._step
        for lo in range(0, len(self.source), step):
            some = slice(lo, lo + step)
            rows = np.ascontiguousarray(self.source[some])
            sums += self.backend.feature_sums(rows, labels[some], weights[some], n_clusters)
        return np.hstack([self.backend.spread_rows(Phi, sums) for Phi in self._mapped()])

    @property
    def _step(self) -> int:
        return max(1, MAPPED_ENTRIES // self.source.shape[1])

    def _mapped(self) -> Iterator[Floats]:
        """Return the features of new samples, some at a time."""
        for lo in range(0, self.shape[0], self._step):
            yield np.ascontiguousarray(self.transform(self.X[lo : lo + self._step]), dtype=np.float64)


def sparse_entries(features: Any) -> Any:
    """Return the entries of sparse features, which stay on the host wherever products are computed; None of others."""
    return features if sp.issparse(features) else getattr(features, "entries", None)


def _many(samples: Index, features: Any, step: int) -> bool:
    """Whether more than ``step`` rows of dense features are chosen by their numbers, which copies them."""
    numbered = isinstance(samples, np.ndarray) and samples.dtype.kind in "iu" and isinstance(features, np.ndarray)
    return numbered and len(samples) > step  # type: ignore[arg-type]


def _by_rows(features: Any) -> Matrix:
    """Return features of the host as they are read fastest; other arrays and sparse ones as they are."""
    if sp.issparse(features) or not isinstance(features, np.ndarray | list | tuple):
        return features
    return np.ascontiguousarray(features, dtype=np.float64)
