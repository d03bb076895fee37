"""Sparse kernels: affinities of a graph, with an optional shift of the diagonal. Never made dense.

A sample that moves touches its neighbours only.
"""

import numpy as np
import scipy.sparse as sp

from kernelweave.backends import Moves
from kernelweave.backends.graphs import product
from kernelweave.foundation.array_types import Array, Floats, Index, Ints
from kernelweave.foundation.errors import KernelError
from kernelweave.kernels.operator import NO_DIAGONAL, KernelOperator


class GraphKernel(KernelOperator):
    """A sparse symmetric matrix as a kernel. With ``cross`` the rows are new samples, of self-affinity ``diag``."""

    cheap_products = True

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
        values = self.A.data
        return float(max(values.max(initial=0.0), -values.min(initial=0.0)))  # without a copy of all of them

    def matmat(self, H: Array) -> Floats:
        """Return A @ H, rows shared out among threads."""
        H = np.ascontiguousarray(H, dtype=np.float64)
        if H.ndim == 1:
            return product(self.A, H[:, None])[:, 0]
        return product(self.A, H)

    def block(self, rows: Index, cols: Index) -> Array:
        """Return a dense block of the sparse matrix."""
        whole = isinstance(rows, slice) and rows == slice(None)
        chosen = self.A if whole else self.A[rows]  # all rows would be a copy
        return chosen[:, cols].toarray()

    def cluster_sums(self, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the (k, n) cluster sums from the stored entries."""
        shape = (self.shape[1], n_clusters)
        kind = self.A.indices.dtype  # with indices of another kind the product makes a copy of all of them
        members = sp.csr_array((weights, labels.astype(kind), np.arange(shape[0] + 1, dtype=kind)), shape=shape)
        return np.ascontiguousarray((self.A @ members).toarray().T, dtype=np.float64)

    def move_sums(self, sums: Floats, moves: Moves, weights: Floats) -> None:
        """Update the sums at the neighbours of the moved samples."""
        rows = self.A[:, moves.samples].T.tocsr() if self._cross else self.A[moves.samples]
        source = np.repeat(np.arange(moves.count), np.diff(rows.indptr))
        values = rows.data * weights[moves.samples][source]
        np.subtract.at(sums, (moves.old[source], rows.indices), values)
        np.add.at(sums, (moves.new[source], rows.indices), values)

    def candidate_gains(self, distances: Floats, weights: Floats, diag: Floats) -> Floats:
        """Return the gains from the edges alone: pairs without one depend on K_nn only.

        They add up to a sum over all i of w_i max(e_i - K_nn, 0) with e = d - diag, read off sorted values; edges then
        replace their own term.
        """
        excess = distances - diag
        order = np.argsort(-excess, kind="stable")
        falling = excess[order]
        weight = np.concatenate([[0.0], np.cumsum(weights[order])])
        mass = np.concatenate([[0.0], np.cumsum(weights[order] * falling)])
        above = np.searchsorted(-falling, -diag, side="left")
        gains = mass[above] - diag * weight[above]
        edges = self.A.tocoo()
        slack = excess[edges.col] - diag[edges.row]
        change = weights[edges.col] * (np.maximum(slack + 2.0 * edges.data, 0.0) - np.maximum(slack, 0.0))
        return gains + np.bincount(edges.row, change, self.n_samples)

    def cluster_links(self, labels: Ints, n_clusters: int) -> tuple[Floats, Floats]:
        """Return the links inside and out of every cluster, from the edges."""
        edges = self.A.tocoo()
        ends = labels[edges.row]
        inside = labels[edges.row] == labels[edges.col]
        within = self.backend.segment_sums(ends, np.where(inside, edges.data, 0.0), n_clusters)
        between = self.backend.segment_sums(ends, np.where(inside, 0.0, edges.data), n_clusters)
        return within, between

    def sparse_matrix(self) -> sp.csr_array:
        """Return the affinities."""
        return self.A
