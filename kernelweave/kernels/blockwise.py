"""Kernels computed from the features whenever they are needed, tile by tile.

Memory is O(n d + tiles); time is one evaluation of the kernel per pass. BLAS and NumPy fill a tile (their
vectorised ``exp`` is three times as fast as a compiled loop's), the engine only sums it.
"""

import numpy as np

from kernelweave.backends.registry import get_engine
from kernelweave.foundation.array_types import Array, Floats, Index, Ints
from kernelweave.foundation.threads import for_ranges, single_threaded_blas
from kernelweave.kernels.operator import KernelOperator, indices
from kernelweave.kernels.spec.formulas import Formula

# A tile of 512 x 2048 float64 numbers takes 8 MiB; each thread holds two or three at a time.
TILE_ROWS = 512
TILE_COLS = 2048


class BlockwiseKernel(KernelOperator):
    """k(x_i, y_j) for prepared rows X and prepared columns Y of a formula; Y is X unless rows are new samples."""

    def __init__(self, formula: Formula, X: Array, Y: Array | None = None, *, engine: str = "numba") -> None:
        self.formula = formula
        self.X = X
        self.Y = X if Y is None else Y
        self._square = Y is None
        self.shape = (self.X.shape[0], self.Y.shape[0])
        self.psd = formula.psd if Y is None else None
        self._engine = engine

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

    def matmat(self, H: Array) -> Floats:
        """Return K @ H, a tile at a time."""
        H = np.asarray(H, dtype=np.float64)
        out = np.zeros((self.shape[0], H.shape[1]))

        def work(lo: int, hi: int) -> None:
            for start in range(0, self.shape[1], TILE_ROWS):
                part = slice(start, min(start + TILE_ROWS, self.shape[1]))
                out[lo:hi] += self._tile(part, slice(lo, hi)).T @ H[part]

        with single_threaded_blas():
            for_ranges(work, self.shape[0], width=TILE_COLS, elements=self.shape[0] * self.shape[1])
        return out

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the kernel between the chosen rows and columns."""
        return np.ascontiguousarray(self._tile(cols, rows).T)

    def dense(self, dtype: np.dtype[np.floating] | type = np.float64) -> Array:
        """Return the whole matrix, filled tile by tile on all threads."""
        out = np.empty(self.shape, dtype=dtype)

        def work(lo: int, hi: int) -> None:
            for start in range(0, self.shape[1], TILE_COLS):
                cols = slice(start, min(start + TILE_COLS, self.shape[1]))
                out[lo:hi, cols] = self.formula.tile(self.X[lo:hi], self.Y[cols])

        with single_threaded_blas():
            for_ranges(work, self.shape[0], width=TILE_ROWS, elements=out.size)
        if self._square:
            np.fill_diagonal(out, self.diag())
        return out

    def cluster_sums(self, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the (k, n) cluster sums; every tile is computed once and added at once."""
        order = np.argsort(labels, kind="stable")
        sums = np.zeros((n_clusters, self.shape[0]))
        scatter = get_engine(self._engine).scatter_rows

        def add(part: Ints, lo: int, hi: int) -> None:
            tile = self._tile(part, slice(lo, hi))
            scatter(tile, np.arange(len(part)), labels[part], weights[part], sums, lo, hi, lo)

        self._over_tiles(order, add)
        return sums

    def move_sums(self, sums: Floats, moved: Ints, old: Ints, new: Ints, weights: Floats) -> None:
        """Update ``sums`` in place; computes the kernel rows of the moved samples only."""
        move = get_engine(self._engine).move_rows

        def add(part: Ints, lo: int, hi: int) -> None:
            tile = self._tile(moved[part], slice(lo, hi))
            move(tile, np.arange(len(part)), old[part], new[part], weights[part], sums, lo, hi, lo)

        self._over_tiles(np.arange(len(moved)), add)

    def _tile(self, sources: Index, rows: Index) -> Array:
        """Return k(y, x) for the chosen columns (along axis 0) and rows (along axis 1)."""
        tile = self.formula.tile(self.Y[sources], self.X[rows])
        if self._square and self.formula.fixes_diagonal:
            self._fix_diagonal(tile, sources, rows)
        return tile

    def _fix_diagonal(self, tile: Array, sources: Index, rows: Index) -> None:
        """Write k(x, x) where a sample meets itself: white-noise kernels differ there."""
        here = indices(sources, self.shape[0])
        there = indices(rows, self.shape[0])
        met, own = np.nonzero(here[:, None] == there[None, :])
        tile[met, own] = self.formula.diag(self.X[here[met]])

    def _over_tiles(self, sources: Ints, add: object) -> None:
        """Call ``add(part of sources, lo, hi)`` for every tile; one thread owns a range of rows."""

        def work(lo: int, hi: int) -> None:
            for start in range(0, len(sources), TILE_ROWS):
                add(sources[start : start + TILE_ROWS], lo, hi)  # type: ignore[operator]

        with single_threaded_blas():
            for_ranges(work, self.shape[0], width=TILE_COLS, elements=len(sources) * self.shape[0])
