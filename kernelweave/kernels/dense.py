"""Kernels held as a matrix: float32 or float64, in memory or mapped from disk, or wherever a backend keeps it."""

from typing import Any

import numpy as np

from kernelweave.backends import Backend, BackendArray, Moves, get_backend
from kernelweave.foundation.array_types import Array, Floats, Index, Ints
from kernelweave.foundation.errors import KernelError
from kernelweave.kernels.operator import NO_DIAGONAL, KernelOperator


class DenseKernel(KernelOperator):
    """A stored symmetric kernel matrix. The matrix is read, never copied or changed.

    ``cluster_sums`` reads it once along its rows; ``move_sums`` reads one row per moved sample.
    """

    cheap_products = True

    def __init__(
        self, K: Any, *, psd: bool | None = None, backend: Backend | None = None, largest: float | None = None
    ) -> None:
        self.backend = get_backend() if backend is None else backend
        self.K = _by_rows(K) if isinstance(K, np.ndarray) else K
        self.shape = (K.shape[0], K.shape[1])
        self.psd = psd
        self.resolution = 1e-4 if K.dtype == np.float32 else 1e-9
        #: The largest absolute value, where a check has found it already.
        self._scale: float | None = largest
        self._checked = largest is not None

    @property
    def largest_is_known(self) -> bool:
        """Whether ``scale`` is the largest absolute value, found by a check that read all values."""
        return self._checked

    def diag(self) -> BackendArray:
        """Return the stored diagonal."""
        return self.backend.diagonal(self.K)

    def scale(self) -> float:
        """Return the size of the largest entry, read once where the kernel may be indefinite."""
        if self._scale is None:
            self._scale = super().scale() if self.psd else self.backend.largest_entry(self.K)
        return self._scale

    def matmat(self, H: BackendArray) -> BackendArray:
        """Return K @ H."""
        return self.backend.product(self.K, H)

    def block(self, rows: Index, cols: Index) -> Array:
        """Return a copy of the block."""
        return self.backend.block(self.K, rows, cols)

    def columns(self, samples: Ints) -> BackendArray:
        """Return some columns."""
        return self.backend.columns(self.K, samples)

    def cluster_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> BackendArray:
        """Return the (k, n) cluster sums in one pass over the matrix."""
        return self.backend.cluster_sums(self.K, labels, weights, n_clusters)

    def move_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update ``sums`` in place from the rows of the moved samples."""
        self.backend.move_sums(sums, self.K, moves, weights)

    def candidate_gains(self, distances: BackendArray, weights: BackendArray, diag: BackendArray) -> BackendArray:
        """Return the gains of all candidates in one pass over the matrix."""
        return self.backend.candidate_gains(self.K, diag, distances, weights)

    def stored_matrix(self) -> BackendArray:
        """Return the matrix."""
        return self.K


class DenseCross(KernelOperator):
    """A given matrix between new samples (rows) and the training samples (columns)."""

    cheap_products = True

    def __init__(self, K: Array, diag: Floats | None = None, *, backend: Backend | None = None) -> None:
        self.backend = get_backend() if backend is None else backend
        self.K = K
        self.shape = (K.shape[0], K.shape[1])
        self._diag = diag

    def diag(self) -> BackendArray:
        """Return k(x, x) of the new samples, where it was given."""
        if self._diag is None:
            raise KernelError(NO_DIAGONAL)
        return self._diag.copy()

    def matmat(self, H: BackendArray) -> BackendArray:
        """Return K @ H."""
        return self.backend.product(self.K, H)

    def block(self, rows: Index, cols: Index) -> Array:
        """Return a copy of the block."""
        return self.backend.block(self.K, rows, cols)


def stored(op: KernelOperator) -> DenseKernel:
    """Return a kernel as a matrix on the host; one that is stored already is not copied."""
    matrix = op.stored_matrix()
    if isinstance(matrix, np.ndarray):
        return DenseKernel(matrix, psd=op.psd, backend=op.backend)
    block = np.ascontiguousarray(op.block(slice(None), slice(None)), dtype=np.float64)
    return DenseKernel(block, psd=op.psd)


def _by_rows(K: Array) -> Array:
    """Return the matrix in row order; a symmetric one in column order is its own transpose."""
    if K.flags.c_contiguous:
        return K
    return K.T if K.T.flags.c_contiguous else np.ascontiguousarray(K)
