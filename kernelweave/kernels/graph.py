"""Sparse kernels: affinities of a graph, with an optional shift of the diagonal. Never made dense.

A sample that moves touches its neighbours only.
"""

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Array, Floats, Index, Ints
from kernelweave.foundation.errors import KernelError
from kernelweave.kernels.operator import NO_DIAGONAL, KernelOperator


class GraphKernel(KernelOperator):
    """A sparse symmetric matrix as a kernel. With ``cross`` the rows are new samples, of self-affinity ``diag``."""

    def __init__(
        self, A: sp.csr_array, *, psd: bool | None = None, cross: bool = False, diag: Floats | None = None
    ) -> None:
        self.A = sp.csr_array(A)
        self._cross = cross
        self.shape = (A.shape[0], A.shape[1])
        self.psd = psd
        self._diag = diag

    def diag(self) -> Floats:
        """Return the diagonal (for new samples: the self-affinities given)."""
        if self._diag is not None:
            return self._diag.copy()
        if self._cross:
            raise KernelError(NO_DIAGONAL)
        return np.asarray(self.A.diagonal(), dtype=np.float64)

    def scale(self) -> float:
        """Return the size of the largest stored entry."""
        return float(np.abs(self.A.data).max(initial=0.0))

    def matmat(self, H: Array) -> Floats:
        """Return A @ H."""
        return np.asarray(self.A @ np.asarray(H, dtype=np.float64))

    def block(self, rows: Index, cols: Index) -> Array:
        """Return a dense block of the sparse matrix."""
        return self.A[rows][:, cols].toarray()

    def cluster_sums(self, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the (k, n) cluster sums from the stored entries."""
        shape = (self.shape[1], n_clusters)
        members = sp.csr_array((weights, (np.arange(shape[0]), labels)), shape=shape)
        return np.ascontiguousarray((self.A @ members).toarray().T, dtype=np.float64)

    def move_sums(self, sums: Floats, moved: Ints, old: Ints, new: Ints, weights: Floats) -> None:
        """Update the sums at the neighbours of the moved samples."""
        part = self.A[:, moved].T.tocsr() if self._cross else self.A[moved]
        source = np.repeat(np.arange(len(moved)), np.diff(part.indptr))
        values = part.data * weights[source]
        np.subtract.at(sums, (old[source], part.indices), values)
        np.add.at(sums, (new[source], part.indices), values)
