"""A weighted sum of kernels, one per view.

Cluster sums are linear in the kernels: S = sum_v c_v S_v. Keep the per-view sums (``view_sums``), and new
coefficients need only ``combine``, which touches V x k x n numbers and no data. Where every kernel is an inner
product of features, all features stand side by side in one array and a coefficient per column does the same.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Array, Floats, Index, Ints, Matrix
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.transforms import ScaledKernel, ShiftedKernel, TwoSidedKernel


class CompositeKernel(KernelOperator):
    """sum_v coefficients[v] * K_v. Works for cross-kernels too."""

    def __init__(self, parts: Sequence[KernelOperator], coefficients: Array | Sequence[float]) -> None:
        self.parts = tuple(parts)
        self.coefficients = np.asarray(coefficients, dtype=np.float64)
        self.shape = self.parts[0].shape
        if any(part.shape != self.shape for part in self.parts) or len(self.parts) != len(self.coefficients):
            shapes = [part.shape for part in self.parts]
            raise ValueError(f"Kernels of shapes {shapes} and {len(self.coefficients)} coefficients do not add up.")
        used = [part.psd for part, c in zip(self.parts, self.coefficients, strict=True) if c != 0]
        self.psd = True if all(used) and (self.coefficients >= 0).all() else None

    def with_weights(self, coefficients: Array | Sequence[float]) -> "CompositeKernel":
        """Return the sum with other coefficients; the parts are shared."""
        return CompositeKernel(self.parts, coefficients)

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
        """Whether the features of all views are at hand: not in general."""
        return False

    def view_features(self) -> None:
        """Return None: not every view is made of features."""
        return None

    def diag(self) -> Floats:
        """Return the weighted sum of the diagonals."""
        return self.combine(np.stack([part.diag() for part in self.parts]))

    def scale(self) -> float:
        """Return the weighted sum of the parts' scales."""
        return float(sum(abs(c) * part.scale() for part, c in self._used()))

    def matmat(self, H: Array) -> Floats:
        """Return the weighted sum of the products."""
        out = np.zeros((self.shape[0], np.shape(H)[1]))
        for part, c in self._used():
            out += c * part.matmat(H)
        return out

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the weighted sum of the blocks."""
        return np.asarray(sum(c * part.block(rows, cols) for part, c in self._used()))

    def view_traces(self, weights: Floats) -> Floats:
        """Return the weighted trace of every kernel, shape (V,)."""
        return np.array([weights @ part.diag() for part in self.parts])

    def view_sums(self, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the cluster sums of every kernel on its own, shape (V, k, n)."""
        return np.stack([part.cluster_sums(labels, weights, n_clusters) for part in self.parts])

    def combine(self, per_view: Floats) -> Floats:
        """Return sum_v coefficients[v] * per_view[v]."""
        return np.tensordot(self.coefficients, per_view, axes=1)

    def cluster_sums(self, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the weighted sum of the cluster sums, one kernel at a time."""
        sums = np.zeros((n_clusters, self.shape[0]))
        for part, c in self._used():
            sums += c * part.cluster_sums(labels, weights, n_clusters)
        return sums

    def move_sums(self, sums: Floats, moved: Ints, old: Ints, new: Ints, weights: Floats) -> None:
        """Update the sums kernel by kernel, the coefficient folded into the weights."""
        for part, c in self._used():
            part.move_sums(sums, moved, old, new, c * weights)

    def _used(self) -> list[tuple[KernelOperator, float]]:
        pairs = list(zip(self.parts, self.coefficients.tolist(), strict=True))
        return [(part, c) for part, c in pairs if c != 0.0] or pairs[:1]


class JoinedFeatures(FeatureKernel):
    """sum_v coefficients[v] * Phi_v Phi_v^T, from all features side by side; sums of features carry no coefficients."""

    def __init__(self, Phi: Matrix, widths: Sequence[int], factors: Floats, diags: Floats, coefs: Floats) -> None:
        super().__init__(Phi)
        self.widths = tuple(widths)
        self.factors = factors
        self._diags = diags
        self.coefficients = np.asarray(coefs, dtype=np.float64)
        #: What every column counts.
        self.columns = np.repeat(self.coefficients * factors, widths)

    def with_weights(self, coefficients: Array | Sequence[float]) -> "JoinedFeatures":
        """Return the sum with other coefficients; the features are shared."""
        coefs = np.asarray(coefficients, dtype=np.float64)
        return JoinedFeatures(self.Phi, self.widths, self.factors, self._diags, coefs)

    def take(self, samples: Ints) -> "JoinedFeatures":
        """Return the kernel among chosen samples."""
        return JoinedFeatures(self.Phi[samples], self.widths, self.factors, self._diags[:, samples], self.coefficients)

    @property
    def explicit_features(self) -> bool:
        """Whether the features of all views are at hand: they are."""
        return True

    def view_features(self) -> list[Matrix]:
        """Return the features of every view, which share their memory with all of them where they are dense."""
        ends = np.cumsum(self.widths)
        return [self.Phi[:, low:high] for low, high in zip(ends - self.widths, ends, strict=True)]

    @property
    def view_diags(self) -> Floats:
        """The diagonal of every view's kernel, shape (V, n)."""
        return self._diags

    def view_traces(self, weights: Floats) -> Floats:
        """Return the weighted trace of every kernel, shape (V,)."""
        return np.asarray(self._diags @ weights)

    def gram_factor(self) -> Floats:
        """Return the features, each times the root of what its column counts."""
        return super().gram_factor() * np.sqrt(self.columns)

    def diag(self) -> Floats:
        """Return the weighted sum of the views' diagonals."""
        return np.asarray(self.coefficients @ self._diags)

    def matmat(self, H: Array) -> Floats:
        """Return the product through the features."""
        inner = self.Phi.T @ np.asarray(H, dtype=np.float64)
        return np.asarray(self.Phi @ (self.columns[:, None] * inner))

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the weighted inner products of the chosen rows."""
        part = _scaled_columns(self.Phi[rows], self.columns) @ self.Phi[cols].T
        return part.toarray() if sp.issparse(part) else part

    def lengths(self, sums: Floats) -> Floats:
        """Return the squared lengths of sums of features."""
        return np.asarray(np.square(sums) @ self.columns)

    def inner(self, sums: Floats) -> Floats:
        """Return the inner products among sums of features."""
        return (sums * self.columns) @ sums.T

    def view_lengths(self, sums: Floats) -> Floats:
        """Return the squared lengths of sums of features view by view, without coefficients, shape (V, k)."""
        starts = np.concatenate([[0], np.cumsum(self.widths)[:-1]])
        return np.add.reduceat(np.square(sums), starts, axis=1).T * self.factors[:, None]

    def nearest_means(
        self, means: Floats, norms: Floats, coefs: Floats, diag: Floats, labels: Ints, slack: float
    ) -> tuple[Ints, Floats, float]:
        """Return the nearest means, as for plain features."""
        return super().nearest_means(means * self.columns, norms, coefs, diag, labels, slack)

    def _spread(self, feature_sums: Floats) -> Floats:
        return super()._spread(feature_sums * self.columns)


def composite(parts: Sequence[KernelOperator], coefficients: Array | Sequence[float]) -> KernelOperator:
    """Return the weighted sum in the form that is cheapest: of features where every part is made of them."""
    found = [_features(part) for part in parts]
    kinds = {None if pair is None else sp.issparse(pair[0].Phi) for pair in found}
    if None in kinds or len(kinds) > 1:
        return CompositeKernel(parts, coefficients)
    pairs = [pair for pair in found if pair is not None]
    blocks = [op.Phi for op, _ in pairs]
    Phi = sp.hstack(blocks, format="csr") if True in kinds else (np.hstack(blocks) if len(blocks) > 1 else blocks[0])
    factors = np.array([factor for _, factor in pairs])
    diags = np.stack([part.diag() for part in parts])
    return JoinedFeatures(Phi, [block.shape[1] for block in blocks], factors, diags, np.asarray(coefficients))


def merged_graph(op: KernelOperator) -> GraphKernel | None:
    """Return a weighted sum of graphs as one graph, None where some part is no graph."""
    if not isinstance(op, CompositeKernel):
        return None
    graphs = [sparse_form(part) for part in op.parts]
    if any(graph is None for graph in graphs):
        return None
    terms = [c * graph for c, graph in zip(op.coefficients.tolist(), graphs, strict=True)]
    return GraphKernel(sp.csr_array(sum(terms[1:], terms[0])))


def _features(op: KernelOperator) -> tuple[FeatureKernel, float] | None:
    if isinstance(op, ScaledKernel):
        inner = _features(op.base)
        return None if inner is None or op.factor <= 0 else (inner[0], inner[1] * op.factor)
    return (op, 1.0) if type(op) is FeatureKernel and op.source is op.Phi else None


def sparse_form(op: KernelOperator) -> sp.csr_array | None:
    """Return a graph, scaled as it may be, as one sparse matrix; None for other kernels."""
    if isinstance(op, ScaledKernel):
        inner = sparse_form(op.base)
        return None if inner is None else op.factor * inner
    if isinstance(op, TwoSidedKernel):
        inner = sparse_form(op.base)
        return None if inner is None else sp.csr_array(_diagonal(op.row_scale) @ inner @ _diagonal(op.column_scale))
    if isinstance(op, ShiftedKernel):
        inner = sparse_form(op.base)
        return None if inner is None else sp.csr_array(inner + _diagonal(op.shift))
    return op.A if isinstance(op, GraphKernel) else None


def _scaled_columns(Phi: Matrix, columns: Floats) -> Matrix:
    return Phi @ _diagonal(columns) if sp.issparse(Phi) else Phi * columns


def _diagonal(values: Floats) -> sp.dia_array:
    return sp.dia_array((values[None], [0]), shape=(len(values),) * 2)
