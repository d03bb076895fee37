"""Kernels computed from the features whenever they are needed, tile by tile.

Memory is O(n d + tiles); time is one evaluation of the kernel per pass. BLAS and NumPy fill a tile, the backend only
sums it. A Gaussian of few features is summed in one compiled loop, which does without the interpreter.
"""

from typing import Any

import numpy as np

from kernelweave.backends import Backend, BackendArray, Moves, get_backend
from kernelweave.backends.host import indices
from kernelweave.backends.tiling import FEW_FEATURES, ROWS, Tiling
from kernelweave.foundation.array_types import Array, Floats, Index, Matrix
from kernelweave.kernels.operator import GAIN_ENTRIES, KernelOperator
from kernelweave.kernels.spec.formulas import Formula, Gaussian

# Entries of samples that are taken to compute a tile: 2 MiB of them.
PIECE_ENTRIES = 2**18


class BlockwiseKernel(KernelOperator):
    """k(x_i, y_j) for prepared rows X and prepared columns Y of a formula; Y is X unless rows are new samples."""

    def __init__(
        self,
        formula: Formula,
        X: Array,
        Y: Array | None = None,
        *,
        backend: Backend | None = None,
        tiling: Tiling | None = None,
    ) -> None:
        self.tiling = tiling
        if tiling is not None:
            self.held_entries = min(GAIN_ENTRIES, ROWS * tiling.columns * tiling.most_at_once // 4)
        self.backend = get_backend() if backend is None else backend
        self.formula = formula
        self.X = X
        self.Y = X if Y is None else Y
        self._square = Y is None
        self.shape = (self.X.shape[0], self.Y.shape[0])
        self.psd = formula.psd if Y is None else None

    @property
    def recomputed(self) -> bool:
        """True: no value is stored."""
        return True

    def diag(self) -> Floats:
        """Return k(x_i, x_i)."""
        return self.formula.diag(self.X)

    def scale(self) -> float:
        """Return the formula's bound; a callable kernel that may be indefinite is judged by its diagonal."""
        return self.formula.bound(self.X)

    def matmat(self, H: BackendArray) -> BackendArray:
        """Return K @ H, a tile at a time."""
        return self.backend.tiled_product(self._tile, self.shape, H, self.tiling)

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the kernel between the chosen rows and columns."""
        return np.ascontiguousarray(self._tile(cols, rows).T)

    def dense(self, dtype: Any = np.float64) -> Array:
        """Return the whole matrix, filled tile by tile on all threads."""
        matrix = self.backend.filled(self._plain_tile, self.shape, dtype, self.tiling)
        if self._square:
            np.fill_diagonal(matrix, self.diag())
        return np.asarray(matrix)

    def cluster_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> BackendArray:
        """Return the (k, n) cluster sums; every tile is computed once and added at once."""
        if self._gaussian is not None:
            return self._gaussian.cluster_sums(self.Y, self.X, labels, weights, n_clusters)
        return self.backend.tiled_cluster_sums(self._tile, self.shape, labels, weights, n_clusters, self.tiling)

    def move_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update ``sums`` in place; computes the kernel rows of the moved samples only."""
        if self._gaussian is not None:
            self._gaussian.move_sums(sums, self.Y, self.X, moves, weights)
            return
        self.backend.tiled_move_sums(sums, self._tile, moves, weights, self.tiling)

    @property
    def _gaussian(self) -> Any | None:
        """Compiled sums of a Gaussian of dense samples with few features, where the backend has them."""
        dense = isinstance(self.X, np.ndarray) and isinstance(self.Y, np.ndarray)
        suited = dense and isinstance(self.formula, Gaussian) and self.X.shape[1] <= FEW_FEATURES + 2  # as prepared
        return self.backend.gaussian_sums if suited else None

    def _plain_tile(self, rows: Index, cols: Index) -> Array:
        return self.formula.tile(self.X[rows], self.Y[cols])

    def _tile(self, sources: Index, rows: Index) -> Array:
        """Return k(y, x) for the chosen columns (along axis 0) and rows (along axis 1)."""
        tile = self._computed(sources, rows)
        if self._square and self.formula.fixes_diagonal:
            self._fix_diagonal(tile, sources, rows)
        return tile

    def _computed(self, sources: Index, rows: Index) -> Array:
        """Return a tile, piece by piece where samples of many entries would be copied to compute it as a whole."""
        step = max(1, PIECE_ENTRIES // max(1, self.X.shape[1]))
        here = pieces(sources, self.Y, step)
        there = pieces(rows, self.X, step)
        if len(here) == len(there) == 1:
            return self.formula.tile(chosen_rows(self.Y, sources), self.X[rows])
        tile = np.empty((here[-1][0].stop, there[-1][0].stop))
        for place, chosen in here:
            held = chosen_rows(self.Y, chosen)
            for other, met in there:
                tile[place, other] = self.formula.tile(held, self.X[met])
        return tile

    def _fix_diagonal(self, tile: Array, sources: Index, rows: Index) -> None:
        """Write k(x, x) where a sample meets itself: white-noise kernels differ there."""
        here = indices(sources, self.shape[0])
        there = indices(rows, self.shape[0])
        met, place = np.nonzero(here[:, None] == there[None, :])
        tile[met, place] = self.formula.diag(self.X[here[met]])


def pieces(samples: Index, values: Matrix, step: int) -> list[tuple[slice, Index]]:
    """Return samples in pieces of so many, each with its place; one piece where they cannot be divided."""
    whole = isinstance(samples, slice) and samples.step in (None, 1)
    counted = isinstance(samples, np.ndarray) and samples.dtype.kind in "iu"
    if not isinstance(values, np.ndarray) or not (whole or counted):
        return [(slice(None), samples)]
    if isinstance(samples, slice):
        first, last, _ = samples.indices(values.shape[0])
        count = max(0, last - first)
        starts = range(0, max(1, count), step)
        return [(slice(lo, min(lo + step, count)), slice(first + lo, min(first + lo + step, last))) for lo in starts]
    count = len(samples)
    return [(slice(lo, min(lo + step, count)), samples[lo : lo + step]) for lo in range(0, max(1, count), step)]


def chosen_rows(values: Matrix, samples: Index) -> Matrix:
    """Return some rows; taking whole rows by their numbers is much faster than indexing, which asks for every entry."""
    if isinstance(values, np.ndarray) and isinstance(samples, np.ndarray):
        return values.take(samples, axis=0)
    return values[samples]
