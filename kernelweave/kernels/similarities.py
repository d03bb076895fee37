"""Similarities exp(-beta d(x_i, x_j)) of a convex mixture: products with them, and chosen columns.

Rows are samples, one after the other for every view; columns are the samples again, as components. A row is divided
by its largest entry, so that none underflows as a whole; ``offsets`` holds the logarithm of what was taken out. A
matrix is stored where it fits and computed again at every pass where it does not. On a graph all pairs without an
edge have u_i u_j, with u = exp(-beta K_ii), so that the edges alone are kept: S = u u^T + C, with C the difference
where there is an edge.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.threads import for_ranges, single_threaded_blas
from kernelweave.kernels.divergences import Divergence
from kernelweave.kernels.graph import GraphKernel

# Rows of a tile where similarities are filled or computed again.
TILE = 256
# Rows whose chosen columns are held at a time.
PART = 2048


class Similarities(ABC):
    """The (V n, n) similarities of the samples in each of V views to all samples as components."""

    n_columns: int
    offsets: Floats  # (V n,) logarithm of what every row was divided by, at most 0

    @property
    def n_views(self) -> int:
        """How many times the samples stand one below the other."""
        return len(self.offsets) // self.n_columns

    @abstractmethod
    def mix(self, priors: Floats) -> Floats:
        """Return S @ priors, the mixture at every row."""

    @abstractmethod
    def pull(self, ratios: Floats) -> Floats:
        """Return S^T @ ratios, one number per component."""

    @abstractmethod
    def part(self, lo: int, hi: int, chosen: Ints) -> Floats:
        """Return rows lo:hi of chosen columns as a new dense array; the rows belong to one view."""

    def gram(self, chosen: Ints, scale: Floats) -> Floats:
        """Return R^T R for R = diag(scale) S[:, chosen], added up part by part."""
        out = np.zeros((len(chosen), len(chosen)), order="F")
        for lo, hi in self._parts():
            R = self.part(lo, hi, chosen)
            R *= scale[lo:hi, None]
            out = dsyrk(1.0, R.T, beta=1.0, c=out, lower=1, overwrite_c=1)
        for lo in range(0, len(out), TILE):  # the upper triangle, without a matrix for it
            hi = lo + TILE
            out[lo:hi, hi:] = out[hi:, lo:hi].T
            tile = np.tril(out[lo:hi, lo:hi])
            out[lo:hi, lo:hi] = tile + np.tril(tile, -1).T
        return out

    def strongest(self, chosen: Ints) -> Ints:
        """Return for every sample the position in ``chosen`` of the component it is most similar to, over all views."""
        out = np.empty(self.n_columns, dtype=np.intp)
        for lo, hi in self._parts(views=1):
            total = self.part(lo, hi, chosen)
            for view in range(1, self.n_views):
                total += self.part(view * self.n_columns + lo, view * self.n_columns + hi, chosen)
            out[lo:hi] = total.argmax(axis=1)
        return out

    def _parts(self, views: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield the ends of parts of the rows of every view, or of the first few."""
        for view in range(self.n_views if views is None else views):
            for lo in range(0, self.n_columns, PART):
                first = view * self.n_columns
                yield first + lo, first + min(lo + PART, self.n_columns)


class StoredSimilarities(Similarities):
    """A stored matrix."""

    def __init__(self, S: Floats, offsets: Floats) -> None:
        self.S = S
        self.offsets = offsets
        self.n_columns = S.shape[1]

    def mix(self, priors: Floats) -> Floats:
        """Return S @ priors."""
        return self.S @ priors

    def pull(self, ratios: Floats) -> Floats:
        """Return S^T @ ratios."""
        return self.S.T @ ratios

    def part(self, lo: int, hi: int, chosen: Ints) -> Floats:
        """Return a copy of the part."""
        return self.S[lo:hi].take(chosen, axis=1)


class BlockwiseSimilarities(Similarities):
    """Computed again, tile by tile, at every pass."""

    def __init__(self, divergence: Divergence, beta: float, samples: Ints) -> None:
        self._divergence = divergence
        self._beta = beta
        self._samples = samples
        self.n_columns = len(samples)
        self.offsets = np.empty(len(samples))
        self._over_rows(self._measure)

    def mix(self, priors: Floats) -> Floats:
        """Return S @ priors over the components that have a prior."""
        used = np.flatnonzero(priors)
        out = np.empty(self.n_columns)

        def work(lo: int, hi: int) -> None:
            out[lo:hi] = self.part(lo, hi, used) @ priors[used]

        self._over_rows(work)
        return out

    def pull(self, ratios: Floats) -> Floats:
        """Return S^T @ ratios, tiles added in their order."""
        parts = self._over_rows(lambda lo, hi: ratios[lo:hi] @ self.part(lo, hi, np.arange(self.n_columns)))
        return np.sum(np.stack(parts), axis=0)

    def part(self, lo: int, hi: int, chosen: Ints) -> Floats:
        """Return the part, computed."""
        gaps = self._divergence.block(self._samples[lo:hi], self._samples[chosen])
        np.multiply(gaps, -self._beta, out=gaps)
        gaps -= _finite(self.offsets[lo:hi])[:, None]
        return np.exp(gaps, out=gaps)

    def _measure(self, lo: int, hi: int) -> None:
        gaps = self._divergence.block(self._samples[lo:hi], self._samples)
        self.offsets[lo:hi] = -self._beta * gaps.min(axis=1)

    def _over_rows(self, work: object) -> list[Floats]:
        with single_threaded_blas():
            return for_ranges(work, self.n_columns, width=TILE, elements=self.n_columns**2)  # type: ignore[arg-type, return-value]


class EdgeSimilarities(Similarities):
    """The product u v^T plus a sparse part."""

    def __init__(self, u: Floats, C: sp.csr_array) -> None:
        self.u = u
        self.C = C
        self.n_columns = len(u)
        self.offsets = np.zeros(len(u))

    def mix(self, priors: Floats) -> Floats:
        """Return u (u . priors) + C @ priors."""
        return self.u * (self.u @ priors) + self.C @ priors

    def pull(self, ratios: Floats) -> Floats:
        """Return u (u . ratios) + C^T @ ratios."""
        return self.u * (self.u @ ratios) + self.C.T @ ratios

    def part(self, lo: int, hi: int, chosen: Ints) -> Floats:
        """Return the part, dense."""
        return np.outer(self.u[lo:hi], self.u[chosen]) + self.C[lo:hi][:, chosen].toarray()


class StackedSimilarities(Similarities):
    """Several views, one below the other."""

    def __init__(self, parts: Sequence[Similarities]) -> None:
        self.parts = tuple(parts)
        self.n_columns = parts[0].n_columns
        self.offsets = np.concatenate([part.offsets for part in parts])

    def mix(self, priors: Floats) -> Floats:
        """Return the mixtures of all views."""
        return np.concatenate([part.mix(priors) for part in self.parts])

    def pull(self, ratios: Floats) -> Floats:
        """Return the sum over the views."""
        pieces = np.split(ratios, len(self.parts))
        return np.sum([part.pull(piece) for part, piece in zip(self.parts, pieces, strict=True)], axis=0)

    def part(self, lo: int, hi: int, chosen: Ints) -> Floats:
        """Return the part from the view it belongs to."""
        view, first = divmod(lo, self.n_columns)
        return self.parts[view].part(first, first + hi - lo, chosen)


def _finite(offsets: Floats) -> Floats:
    """Return offsets with zero for rows that have no similarity to anything, and so nothing to be divided by."""
    return np.where(np.isfinite(offsets), offsets, 0.0)


def similarities(divergence: Divergence, beta: float, samples: Ints, memory_limit: float = 2048) -> Similarities:
    """Return the similarities among the chosen samples; ``memory_limit`` in MiB bounds a stored matrix."""
    n = len(samples)
    if n**2 * 8 > memory_limit * 2**20:
        return BlockwiseSimilarities(divergence, beta, samples)
    S = np.empty((n, n))
    offsets = np.empty(n)

    def work(lo: int, hi: int) -> None:
        tile = divergence.block(samples[lo:hi], samples)
        np.multiply(tile, -beta, out=tile)
        offsets[lo:hi] = tile.max(axis=1)
        tile -= _finite(offsets[lo:hi])[:, None]
        np.exp(tile, out=S[lo:hi])

    with single_threaded_blas():
        for_ranges(work, n, width=TILE, elements=S.size)
    return StoredSimilarities(S, offsets)


def graph_similarities(op: GraphKernel, beta: float, samples: Ints) -> Similarities:
    """Return the similarities among chosen nodes of a graph, from its edges alone."""
    # An indefinite kernel may give negative squares of distances; they count as zero.
    diag = np.maximum(op.diag(), 0.0)
    edges = op.A.tocoo()
    apart = diag[edges.row] + diag[edges.col]
    values = np.exp(-beta * np.maximum(apart - 2.0 * edges.data, 0.0)) - np.exp(-beta * apart)
    C = sp.csr_array((values, (edges.row, edges.col)), op.shape)
    return EdgeSimilarities(np.exp(-beta * diag[samples]), C[samples][:, samples])
