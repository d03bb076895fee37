"""A part of a kernel matrix that is read where it lies: rows and columns of some samples, without a copy of them.

For matrices that also have rows and columns of NaN, of samples that are absent from a view.
"""

from typing import Any

import numpy as np

from kernelweave.backends import BackendArray, Moves, get_backend
from kernelweave.backends.host import indices
from kernelweave.backends.tiling import ROWS, Tiling
from kernelweave.foundation.array_types import Array, Floats, Index, Ints
from kernelweave.kernels.operator import GAIN_ENTRIES, KernelOperator


class PartKernel(KernelOperator):
    """The kernel among chosen samples of a stored matrix of the host, which is read tile by tile."""

    def __init__(self, K: Array, samples: Ints, *, largest: float, tiling: Tiling) -> None:
        self.backend = get_backend()
        self.K = K
        self.samples = samples
        self.shape = (len(samples), len(samples))
        self.tiling = tiling
        self.held_entries = min(GAIN_ENTRIES, ROWS * tiling.columns * tiling.most_at_once // 4)
        self.resolution = 1e-4 if K.dtype == np.float32 else 1e-9
        self._largest = largest

    @property
    def recomputed(self) -> bool:
        """True: tiles are gathered at every pass."""
        return True

    @property
    def reads_a_matrix(self) -> bool:
        """True: the one it is a part of."""
        return True

    @property
    def largest_is_known(self) -> bool:
        """True: the check found it."""
        return True

    def diag(self) -> Floats:
        """Return the diagonal of the part."""
        return np.asarray(self.K[self.samples, self.samples], dtype=np.float64)

    def scale(self) -> float:
        """Return the size of the largest entry."""
        return self._largest

    def matmat(self, H: BackendArray) -> BackendArray:
        """Return K @ H, a tile at a time."""
        return self.backend.tiled_product(self._tile, self.shape, H, self.tiling)

    def block(self, rows: Index, cols: Index) -> Array:
        """Return a copy of the block."""
        n = len(self.samples)
        return self.K[np.ix_(self.samples[indices(rows, n)], self.samples[indices(cols, n)])]

    def cluster_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> BackendArray:
        """Return the (k, n) cluster sums, a tile at a time."""
        return self.backend.tiled_cluster_sums(self._tile, self.shape, labels, weights, n_clusters, self.tiling)

    def move_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update ``sums`` in place from the rows of the moved samples."""
        self.backend.tiled_move_sums(sums, self._tile, moves, weights, self.tiling)

    def _tile(self, sources: Any, rows: Any) -> Floats:
        return np.asarray(self.block(sources, rows), dtype=np.float64)
