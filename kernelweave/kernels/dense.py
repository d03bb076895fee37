"""Kernels held as a matrix: float32 or float64, in memory or mapped from disk."""

from contextlib import nullcontext

import numpy as np

from kernelweave.backends.registry import get_engine
from kernelweave.foundation.array_types import Array, Floats, Index, Ints
from kernelweave.foundation.errors import KernelError
from kernelweave.foundation.threads import for_ranges, single_threaded_blas
from kernelweave.kernels.operator import NO_DIAGONAL, KernelOperator, indices

# Rows multiplied together, and entries from which on a product could leave one thread of BLAS by itself.
PRODUCT_ROWS = 512
LARGE_PRODUCT = 2**16


class DenseKernel(KernelOperator):
    """A stored symmetric kernel matrix. The matrix is read, never copied or changed.

    ``cluster_sums`` reads it once along its rows; ``move_sums`` reads one row per moved sample.
    """

    def __init__(self, K: Array, *, psd: bool | None = None, engine: str = "numba") -> None:
        # A symmetric matrix in column order is the same matrix in row order.
        self.K = K if K.flags.c_contiguous else (K.T if K.T.flags.c_contiguous else np.ascontiguousarray(K))
        self.shape = (K.shape[0], K.shape[1])
        self.psd = psd
        self._engine = engine
        self._scale: float | None = None

    def diag(self) -> Floats:
        """Return the stored diagonal."""
        return np.diagonal(self.K).astype(np.float64)

    def scale(self) -> float:
        """Return the size of the largest entry, read once where the kernel may be indefinite."""
        if self._scale is None:
            self._scale = super().scale() if self.psd else float(max(self.K.max(), -self.K.min()))
        return self._scale

    def matmat(self, H: Array) -> Floats:
        """Return K @ H."""
        return _float64_product(self.K, H)

    def block(self, rows: Index, cols: Index) -> Array:
        """Return a copy of the block."""
        return _dense_block(self.K, rows, cols)

    def cluster_sums(self, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the (k, n) cluster sums in one pass over the matrix."""
        order = np.argsort(labels, kind="stable")
        groups = labels[order]
        w = weights[order]
        sums = np.zeros((n_clusters, self.shape[0]))
        scatter = get_engine(self._engine).scatter_rows
        for_ranges(
            lambda lo, hi: scatter(self.K, order, groups, w, sums, lo, hi, 0),
            self.shape[0],
            elements=self.K.size,
        )
        return sums

    def move_sums(self, sums: Floats, moved: Ints, old: Ints, new: Ints, weights: Floats) -> None:
        """Update ``sums`` in place from the rows of the moved samples."""
        move = get_engine(self._engine).move_rows
        for_ranges(
            lambda lo, hi: move(self.K, moved, old, new, weights, sums, lo, hi, 0),
            self.shape[0],
            elements=3 * len(moved) * self.shape[0],
        )


class DenseCross(KernelOperator):
    """A given matrix between new samples (rows) and the training samples (columns)."""

    def __init__(self, K: Array, diag: Floats | None = None) -> None:
        self.K = K
        self.shape = (K.shape[0], K.shape[1])
        self._diag = diag

    def diag(self) -> Floats:
        """Return k(x, x) of the new samples, where it was given."""
        if self._diag is None:
            raise KernelError(NO_DIAGONAL)
        return self._diag.copy()

    def matmat(self, H: Array) -> Floats:
        """Return K @ H."""
        return _float64_product(self.K, H)

    def block(self, rows: Index, cols: Index) -> Array:
        """Return a copy of the block."""
        return _dense_block(self.K, rows, cols)


def _dense_block(K: Array, rows: Index, cols: Index) -> Array:
    if isinstance(rows, slice) and isinstance(cols, slice):
        return np.array(K[rows, cols])
    return K[np.ix_(indices(rows, K.shape[0]), indices(cols, K.shape[1]))]


def _float64_product(K: Array, H: Array) -> Floats:
    """Return K @ H with float64 sums; a float32 kernel is widened a few rows at a time.

    Parts of fixed size, each by one thread, so that the last bit does not depend on the number of threads.
    """
    H = np.asarray(H, dtype=np.float64)
    out = np.empty((K.shape[0], H.shape[1]))

    def work(lo: int, hi: int) -> None:
        np.matmul(K[lo:hi].astype(np.float64, copy=False), H, out=out[lo:hi])

    with single_threaded_blas() if K.size >= LARGE_PRODUCT else nullcontext():
        for_ranges(work, K.shape[0], width=PRODUCT_ROWS, elements=K.size)
    return out
