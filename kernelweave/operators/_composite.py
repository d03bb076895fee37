"""A weighted sum of kernels, one per view.

Cluster sums are linear in the kernels: S = sum_v c_v S_v. Keep the per-view sums (``view_sums``), and new
coefficients need only ``combine``, which touches V x k x n numbers and no data.
"""

from collections.abc import Sequence

import numpy as np

from kernelweave.foundation._typing import Array, Floats, Index, Ints
from kernelweave.operators._base import KernelOperator


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
