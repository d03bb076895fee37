"""Kernels that are inner products of explicit features: exact for linear kernels, or an approximation.

K = Phi Phi^T with Phi of shape (n, d), dense or sparse. Cluster sums go through the (k, d) sums of features and
cost O(n d k); nothing of size n x n is ever formed.
"""

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import scipy.sparse as sp

from kernelweave.backends.registry import get_engine
from kernelweave.foundation.array_types import Array, Floats, Index, Ints, Matrix
from kernelweave.foundation.threads import for_ranges, single_threaded_blas
from kernelweave.kernels.operator import KernelOperator

# Samples handled together in one product with the means: the products stay in the second-level cache. Ranges of
# threads end at multiples of it, so that every product has the same shape whatever the number of threads.
TILE = 256
# Samples whose features are added up by themselves; the parts are added in their order.
ADDED = 16384
# Samples whose distances are held at a time where they are assigned one after the other.
CHUNK = 4096
# Products of fewer multiplications than this never leave one thread of BLAS by themselves.
SMALL_PRODUCT = 2**18


class FeatureKernel(KernelOperator):
    """Inner products between the rows of ``Phi`` and the rows of ``source`` (by default ``Phi`` itself)."""

    def __init__(self, Phi: Matrix, source: Matrix | None = None, *, engine: str = "numba") -> None:
        self.Phi: Matrix = Phi if sp.issparse(Phi) else np.ascontiguousarray(Phi, dtype=np.float64)
        self.source: Matrix = self.Phi if source is None else source
        if not sp.issparse(self.source):
            self.source = np.ascontiguousarray(self.source, dtype=np.float64)
        self.shape = (Phi.shape[0], self.source.shape[0])
        self.psd = True if source is None else None
        self._engine = engine

    @property
    def rank_bound(self) -> int:
        """The number of features, where rows and columns are the same samples."""
        return min(self.Phi.shape) if self.source is self.Phi else self.shape[0]

    def gram_factor(self) -> Floats:
        """Return the features, dense."""
        return np.asarray(self.Phi.toarray() if sp.issparse(self.Phi) else self.Phi)

    def diag(self) -> Floats:
        """Return the squared length of every row of features."""
        if sp.issparse(self.Phi):
            return np.asarray(self.Phi.multiply(self.Phi).sum(axis=1), dtype=np.float64).ravel()
        return np.einsum("ij,ij->i", self.Phi, self.Phi)

    def matmat(self, H: Array) -> Floats:
        """Return Phi (source^T H)."""
        return np.asarray(self.Phi @ (self.source.T @ np.asarray(H, dtype=np.float64)))

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the inner products of the chosen rows."""
        part = self.Phi[rows] @ self.source[cols].T
        return part.toarray() if sp.issparse(part) else part

    def cluster_sums(self, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the (k, n) cluster sums through the sums of features."""
        return self._spread(self.feature_sums(labels, weights, n_clusters))

    def move_sums(self, sums: Floats, moved: Ints, old: Ints, new: Ints, weights: Floats) -> None:
        """Update the sums of the clusters that lost or won a sample."""
        change = self.moved_features(moved, old, new, weights, sums.shape[0])
        touched = np.union1d(old, new)
        sums[touched] += self._spread(change[touched])

    def feature_sums(self, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the weighted sums of features by cluster, shape (n_clusters, d)."""
        if sp.issparse(self.source):
            return self._sparse_sums(np.arange(self.shape[1]), labels, weights, n_clusters)
        add = get_engine(self._engine).add_rows
        return self._added(lambda out, lo, hi: add(self.source, labels, weights, out, lo, hi), len(labels), n_clusters)

    def moved_features(self, moved: Ints, old: Ints, new: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return by how much the sums of features change when ``moved`` go from clusters ``old`` to ``new``."""
        if sp.issparse(self.source):
            rows = np.concatenate([moved, moved])
            signed = np.concatenate([weights, -weights])
            return self._sparse_sums(rows, np.concatenate([new, old]), signed, n_clusters)
        shift = get_engine(self._engine).shift_rows
        return self._added(
            lambda out, lo, hi: shift(self.source, moved, old, new, weights, out, lo, hi), len(moved), n_clusters
        )

    def lengths(self, sums: Floats) -> Floats:
        """Return the squared lengths of sums of features."""
        return np.einsum("ij,ij->i", sums, sums)

    def inner(self, sums: Floats) -> Floats:
        """Return the inner products among sums of features."""
        return sums @ sums.T

    def _added(self, add: Callable[[Floats, int, int], None], n: int, n_clusters: int) -> Floats:
        """Return what ``add`` adds up over fixed parts of ``range(n)``: the same for any number of threads."""
        d = self.source.shape[1]

        def work(lo: int, hi: int) -> Floats:
            out = np.zeros((n_clusters, d))
            add(out, lo, hi)
            return out

        total, *others = for_ranges(work, n, elements=n * d, width=ADDED) or [np.zeros((n_clusters, d))]
        for part in others:
            total += part  # type: ignore[operator]
        return np.asarray(total)

    def nearest_means(
        self, means: Floats, norms: Floats, coefs: Floats, diag: Floats, labels: Ints, slack: float
    ) -> tuple[Ints, Floats, float]:
        """Return the mean with least coefs[c] ||phi_i - m_c||^2 for every row, that value, and the least lead.

        One pass over the features, for dense ones tile by tile, so that nothing of size n x k is stored. ``norms``
        are the squared lengths of the means, infinite where there is none. Ties as in ``algebra.nearest_clusters``.
        """
        out = np.empty_like(labels)
        own = np.empty(len(labels))
        engine = get_engine(self._engine)
        turned = np.ascontiguousarray(means.T)
        if sp.issparse(self.Phi):
            products = np.ascontiguousarray((self.Phi @ turned).T)
            slopes = np.full(len(norms), 2.0)
            lead = engine.nearest_scaled(products, slopes, norms, coefs, diag, labels, slack, out, own, 0, len(labels))
            return out, own, lead
        loop = engine.nearest_means
        large = TILE * means.size > SMALL_PRODUCT
        with single_threaded_blas() if large else nullcontext():
            leads = for_ranges(
                lambda lo, hi: loop(self.Phi, diag, turned, norms, coefs, labels, slack, out, own, lo, hi),
                len(labels),
                elements=self.Phi.size + len(labels) * len(norms),
                multiple=TILE,
            )
        return out, own, min(float(lead) for lead in leads)  # type: ignore[arg-type]

    def assign_by_size(
        self, means: Floats, norms: Floats, diag: Floats, labels: Ints, weights: Floats, totals: Floats, slack: float
    ) -> Ints:
        """Return labels given sample after sample by least size * ||phi_i - m_c||^2, sizes changing with each.

        ``totals`` are the sizes at the start. One thread: every sample waits for the one before it.
        """
        out = np.empty_like(labels)
        sizes = totals.copy()
        loop = get_engine(self._engine).assign_by_size
        turned = np.ascontiguousarray(means.T)
        for start in range(0, len(labels), CHUNK):
            part = slice(start, start + CHUNK)
            values = np.ascontiguousarray((norms - 2.0 * (self.Phi[part] @ turned)) + diag[part, None])
            loop(values, weights[part], sizes, labels[part], slack, out[part])
        return out

    def _spread(self, feature_sums: Floats) -> Floats:
        """Return the (k, n) inner products of summed features with every row."""
        if sp.issparse(self.Phi):
            return np.ascontiguousarray((self.Phi @ feature_sums.T).T)
        return feature_sums @ self.Phi.T

    def _sparse_sums(self, rows: Ints, groups: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the weighted sums of the sparse features of ``rows`` by group, shape (n_clusters, d)."""
        pick = sp.csr_array((weights, (groups, rows)), shape=(n_clusters, self.shape[1]))
        return np.asarray((pick @ self.source).todense())
