"""A weighted sum of kernels, one per view.

Cluster sums are linear in the kernels: S = sum_v c_v S_v. A partition of several views keeps the sums of every view,
and new coefficients touch V x k x n numbers and no data. Where every kernel is an inner product of features, all
features stand side by side in one array and a coefficient per column does the same.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.backends import Backend, BackendArray, Moves
from kernelweave.foundation.array_types import Array, Floats, Index, Ints, Matrix
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel, sparse_entries
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.transforms import ScaledKernel, diagonal_matrix
from kernelweave.partitions.views import ViewMeansPartition, ViewPartition, ViewSumsPartition

# Rows of stored matrices added up together.
SUMMED_ROWS = 256


class CompositeKernel(KernelOperator):
    """sum_v coefficients[v] * K_v. Works for cross-kernels too."""

    def __init__(
        self, parts: Sequence[KernelOperator], coefficients: Array | Sequence[float], held_entries: int | None = None
    ) -> None:
        self.parts = tuple(parts)
        self.held_entries = min(part.held_entries for part in parts) if held_entries is None else held_entries
        self.backend = self.parts[0].backend
        self.spare_vectors = min(part.spare_vectors for part in parts)
        self.coefficients = np.asarray(coefficients, dtype=np.float64)
        self.shape = self.parts[0].shape
        if any(part.shape != self.shape for part in self.parts) or len(self.parts) != len(self.coefficients):
            shapes = [part.shape for part in self.parts]
            raise ValueError(f"Kernels of shapes {shapes} and {len(self.coefficients)} coefficients do not match.")
        used = [part.psd for part, c in zip(self.parts, self.coefficients, strict=True) if c != 0]
        self.psd = True if all(used) and (self.coefficients >= 0).all() else None

    #: Number of features, where all kernels are inner products of stored dense ones.
    gram_size: int | None = None

    @property
    def n_views(self) -> int:
        """Number of kernels."""
        return len(self.parts)

    def with_weights(self, coefficients: Array | Sequence[float]) -> "CompositeKernel":
        """Return the sum with other coefficients; the kernels are shared."""
        return CompositeKernel(self.parts, coefficients, self.held_entries)

    def take(self, samples: Ints) -> "CompositeKernel":
        """Return the kernels among chosen samples, stored."""
        blocks = [np.ascontiguousarray(part.block(samples, samples), dtype=np.float64) for part in self.parts]
        parts = [DenseKernel(K, psd=part.psd) for K, part in zip(blocks, self.parts, strict=True)]
        return CompositeKernel(parts, self.coefficients)

    @property
    def recomputed(self) -> bool:
        """Whether those of any view are."""
        return any(part.recomputed for part in self.parts)

    @property
    def explicit_features(self) -> bool:
        """Whether the features of all views are available: not in general."""
        return False

    def view_features(self) -> None:
        """Return None: not every view is made of features."""
        return None

    def diag(self) -> BackendArray:
        """Return the weighted sum of the diagonals."""
        return self.backend.weighted_sum(self.coefficients, self.backend.stack([part.diag() for part in self.parts]))

    def view_traces(self, weights: BackendArray) -> Floats:
        """Return sum_i w_i K_v(x_i, x_i) of every view."""
        return np.array([self.backend.dot(weights, part.diag()) for part in self.parts])

    def scale(self) -> float:
        """Return the weighted sum of the kernels' scales."""
        return float(sum(abs(c) * part.scale() for part, c in self._used()))

    def matmat(self, H: BackendArray) -> BackendArray:
        """Return the weighted sum of the products."""
        (first, c), *others = self._used()
        total = c * first.matmat(H)
        for part, c in others:
            total += c * part.matmat(H)
        return total

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the weighted sum of the blocks."""
        return np.asarray(sum(c * part.block(rows, cols) for part, c in self._used()))

    def columns(self, samples: Ints) -> BackendArray:
        """Return the weighted sum of some columns."""
        (first, c), *others = self._used()
        total = c * first.columns(samples)
        for part, c in others:
            total += c * part.columns(samples)
        return total

    def cluster_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> BackendArray:
        """Return the weighted sum of the cluster sums, one kernel at a time."""
        (first, c), *others = self._used()
        sums = c * first.cluster_sums(labels, weights, n_clusters)
        for part, c in others:
            sums += c * part.cluster_sums(labels, weights, n_clusters)
        return sums

    def move_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update the sums kernel by kernel, the coefficient folded into the weights."""
        for part, c in self._used():
            part.move_sums(sums, moves, c * weights)

    def view_partition(self, labels: Any, weights: Any, n_clusters: int) -> ViewPartition:
        """Return the clusters through the sums of every view, so that coefficients can change."""
        return ViewSumsPartition(self, labels, weights, n_clusters)

    def sparse_matrix(self) -> sp.csr_array | None:
        """Return a weighted sum of graphs as one sparse matrix, None where some kernel is not a graph."""
        graphs = [part.sparse_matrix() for part in self.parts]
        if any(graph is None for graph in graphs):
            return None
        terms = [c * graph for c, graph in zip(self.coefficients.tolist(), graphs, strict=True)]
        return sp.csr_array(sum(terms[1:], terms[0]))

    def view_operators(self) -> list[KernelOperator]:
        """Return the kernel of every view, without coefficients."""
        return list(self.parts)

    def for_products(self) -> KernelOperator:
        """Return the sum as one matrix where all kernels are stored on the host, dense or sparse."""
        matrices = [part.stored_matrix() for part in self.parts]
        if all(isinstance(K, np.ndarray) for K in matrices):
            return DenseKernel(_summed(self.coefficients, matrices))  # type: ignore[arg-type]
        graph = self.sparse_matrix()
        return self if graph is None else GraphKernel(graph)

    def _used(self) -> list[tuple[KernelOperator, float]]:
        pairs = list(zip(self.parts, self.coefficients.tolist(), strict=True))
        return [(part, c) for part, c in pairs if c != 0.0] or pairs[:1]


class JoinedFeatures(FeatureKernel):
    """sum_v coefficients[v] * Phi_v Phi_v^T, from all features side by side; sums of features carry no coefficients."""

    def __init__(
        self,
        Phi: Matrix,
        widths: Sequence[int],
        factors: Floats,
        diags: Any,
        coefs: Floats,
        *,
        backend: Backend | None = None,
    ) -> None:
        super().__init__(Phi, backend=backend)
        self.widths = tuple(widths)
        self.factors = factors
        self._diags = diags
        self.coefficients = np.asarray(coefs, dtype=np.float64)
        #: What every column counts.
        self.column_weights = np.repeat(self.coefficients * factors, widths)

    @property
    def gram_size(self) -> int | None:
        """Number of features, where they are dense."""
        return int(self.Phi.shape[1]) if sparse_entries(self.Phi) is None else None

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.widths)

    def with_weights(self, coefficients: Array | Sequence[float]) -> "JoinedFeatures":
        """Return the sum with other coefficients; the features are shared."""
        coefs = np.asarray(coefficients, dtype=np.float64)
        return JoinedFeatures(self.Phi, self.widths, self.factors, self._diags, coefs, backend=self.backend)

    def take(self, samples: Ints) -> "JoinedFeatures":
        """Return the kernel among chosen samples."""
        diags = np.stack([self.backend.at(self._diags[v], samples) for v in range(self.n_views)])
        return JoinedFeatures(self._taken(self.Phi, samples), self.widths, self.factors, diags, self.coefficients)

    @property
    def explicit_features(self) -> bool:
        """Whether the features of all views are available: they are."""
        return True

    def view_features(self) -> list[Matrix] | None:
        """Return the features of every view, which share their memory with all of them where they are dense.

        None where they do not lie on the host.
        """
        if not isinstance(self.Phi, np.ndarray) and not sp.issparse(self.Phi):
            return None
        ends = np.cumsum(self.widths)
        return [self.Phi[:, low:high] for low, high in zip(ends - self.widths, ends, strict=True)]

    def view_traces(self, weights: BackendArray) -> Floats:
        """Return sum_i w_i K_v(x_i, x_i) of every view."""
        return np.array([self.backend.dot(weights, self._diags[v]) for v in range(self.n_views)])

    def gram_factor(self) -> Floats:
        """Return the features, each times the root of what its column counts."""
        return super().gram_factor() * np.sqrt(self.column_weights)

    def diag(self) -> BackendArray:
        """Return the weighted sum of the views' diagonals."""
        return self.backend.weighted_sum(self.coefficients, self._diags)

    def _weighed(self, features: Any) -> Any:
        """Return rows of features with every column weighted."""
        return _scaled_columns(features, self.column_weights)

    def lengths(self, sums: Floats) -> Floats:
        """Return the squared lengths of sums of features."""
        return np.asarray(np.square(sums) @ self.column_weights)

    def inner(self, sums: Floats) -> Floats:
        """Return the inner products among sums of features."""
        return (sums * self.column_weights) @ sums.T

    def view_lengths(self, sums: Floats) -> Floats:
        """Return the squared lengths of sums of features view by view, without coefficients, shape (V, k)."""
        starts = np.concatenate([[0], np.cumsum(self.widths)[:-1]])
        return np.add.reduceat(np.square(sums), starts, axis=1).T * self.factors[:, None]

    def view_partition(self, labels: Any, weights: Any, n_clusters: int) -> ViewPartition:
        """Return the clusters through the means of their features, so that coefficients can change."""
        return ViewMeansPartition(self, labels, weights, n_clusters)

    def view_operators(self) -> list[KernelOperator]:
        """Return the kernel of every view, without coefficients, from its own features where they are an array here."""
        features = self.view_features() if isinstance(self.Phi, np.ndarray) else None
        if features is None:  # some columns of sparse features, or of those elsewhere, would be a copy
            return [self.with_weights(unit) for unit in np.eye(self.n_views)]
        own = [FeatureKernel(Phi, backend=self.backend, in_place=True) for Phi in features]
        return [ScaledKernel(kernel, factor) for kernel, factor in zip(own, self.factors.tolist(), strict=True)]

    def _dual(self, vectors: Floats) -> Floats:
        """Return vectors of features with every column weighted."""
        return vectors * self.column_weights


#: What multi-view solvers work on.
MultiViewKernel = CompositeKernel | JoinedFeatures


def composite(
    parts: Sequence[KernelOperator], coefficients: Array | Sequence[float], held_entries: int | None = None
) -> MultiViewKernel:
    """Return the weighted sum in the form that is cheapest: of features where every kernel is made of them.

    ``held_entries`` bounds blocks of rows of a sum that is not; by default the kernels do.
    """
    pairs = [_features(part) for part in parts]
    kinds = {None if pair is None else sparse_entries(pair[0].Phi) is not None for pair in pairs}
    if None in kinds or len(kinds) > 1:
        return CompositeKernel(parts, coefficients, held_entries)
    known = [pair for pair in pairs if pair is not None]
    backend = parts[0].backend
    blocks = [op.Phi for op, _ in known]
    Phi = sp.hstack(blocks, format="csr") if sp.issparse(blocks[0]) else _joined(backend, blocks)
    factors = np.array([factor for _, factor in known])
    diags = backend.stack([part.diag() for part in parts])
    widths = [block.shape[1] for block in blocks]
    return JoinedFeatures(Phi, widths, factors, diags, np.asarray(coefficients), backend=backend)


def merged_graph(op: KernelOperator) -> GraphKernel | None:
    """Return a weighted sum of graphs as one graph, None where some kernel is not a graph."""
    graph = op.sparse_matrix()
    return None if graph is None else GraphKernel(graph)


def _joined(backend: Backend, blocks: Sequence[Any]) -> Any:
    if len(blocks) == 1:
        return blocks[0]
    shared = _array_of(blocks)
    return backend.join(list(blocks)) if shared is None else shared


def _array_of(blocks: Sequence[Any]) -> Floats | None:
    """Return the array of which blocks are all columns in their order, None where there is none."""
    array = getattr(blocks[0], "base", None)
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype != np.float64:
        return None
    ends = np.cumsum([block.shape[1] for block in blocks])
    if not array.flags.c_contiguous or array.shape != (blocks[0].shape[0], ends[-1]):
        return None
    address = array.__array_interface__["data"][0]
    for block, end in zip(blocks, ends.tolist(), strict=True):
        start = address + (end - block.shape[1]) * array.itemsize
        if block.base is not array or block.strides != array.strides or block.ctypes.data != start:
            return None
    return array


def _features(op: KernelOperator) -> tuple[FeatureKernel, float] | None:
    """Return the features behind a kernel and the factor they are multiplied by, None where there are none."""
    if isinstance(op, ScaledKernel):
        inner = _features(op.base)
        return None if inner is None or op.factor <= 0 else (inner[0], inner[1] * op.factor)
    return (op, 1.0) if type(op) is FeatureKernel and op.source is op.Phi else None


def _summed(coefficients: Floats, matrices: Sequence[Array]) -> Floats:
    """Return a weighted sum of matrices, some rows at a time so that they stay near the caches."""
    total = np.zeros(matrices[0].shape)
    for c, K in zip(coefficients.tolist(), matrices, strict=True):
        for lo in range(0, len(K), SUMMED_ROWS):
            total[lo : lo + SUMMED_ROWS] += c * K[lo : lo + SUMMED_ROWS]
    return total


def _scaled_columns(Phi: Matrix, columns: Floats) -> Matrix:
    return Phi @ diagonal_matrix(columns) if sp.issparse(Phi) else Phi * columns
