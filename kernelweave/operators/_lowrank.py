"""Kernels that are inner products of explicit features: exact for linear kernels, or an approximation.

K = Phi Phi^T with Phi of shape (n, d), dense or sparse. Cluster sums go through the (k, d) sums of features and
cost O(n d k); nothing of size n x n is ever formed.
"""

import numpy as np
import scipy.sparse as sp

from kernelweave.engines import get_engine
from kernelweave.foundation._typing import Array, Floats, Index, Ints, Matrix
from kernelweave.operators._base import KernelOperator


class FeatureKernel(KernelOperator):
    """Inner products between the rows of ``Phi`` and the rows of ``source`` (by default ``Phi`` itself)."""

    def __init__(self, Phi: Matrix, source: Matrix | None = None, *, engine: str = "numba") -> None:
        self.Phi = Phi
        self.source = Phi if source is None else source
        self.shape = (Phi.shape[0], self.source.shape[0])
        self.psd = True if source is None else None
        self._engine = engine

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
        everyone = np.arange(self.shape[1])
        return self._spread(self._feature_sums(everyone, labels, weights, n_clusters))

    def move_sums(self, sums: Floats, moved: Ints, old: Ints, new: Ints, weights: Floats) -> None:
        """Update the sums of the clusters that lost or won a sample."""
        rows = np.concatenate([moved, moved])
        signed = np.concatenate([weights, -weights])
        change = self._feature_sums(rows, np.concatenate([new, old]), signed, sums.shape[0])
        touched = np.union1d(old, new)
        sums[touched] += self._spread(change[touched])

    def _spread(self, feature_sums: Floats) -> Floats:
        """Return the (k, n) inner products of summed features with every row."""
        if sp.issparse(self.Phi):
            return np.ascontiguousarray((self.Phi @ feature_sums.T).T)
        return feature_sums @ self.Phi.T

    def _feature_sums(self, rows: Ints, groups: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the weighted sums of the features of ``rows`` by group, shape (n_clusters, d)."""
        if sp.issparse(self.source):
            pick = sp.csr_array((weights, (groups, rows)), shape=(n_clusters, self.shape[1]))
            return np.asarray((pick @ self.source).todense())
        order = np.argsort(groups, kind="stable")
        out = np.zeros((n_clusters, self.source.shape[1]))
        scatter = get_engine(self._engine).scatter_rows
        scatter(self.source, rows[order], groups[order], weights[order], out, 0, out.shape[1], 0)
        return out
