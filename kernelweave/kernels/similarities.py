"""Similarities exp(-beta d(x_i, x_j)) of a convex mixture: products with them, and chosen columns.

Rows are samples, one after the other for every view; columns are the samples again, as components. A row is divided
by its largest entry, so that none underflows as a whole; ``offsets`` holds the logarithm of what was taken out. A
matrix is stored where it fits and computed again at every pass where it does not. On a graph all pairs without an
edge have u_i u_j, with u = exp(-beta K_ii), so that the edges alone are kept: S = u u^T + C, with C the difference
where there is an edge.

The sharpness beta that the divergences themselves suggest is in ``sharpness``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk

from kernelweave.backends import Backend
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.memory import PASSING, batches_within, matrices_mib, room_beside, rows_within
from kernelweave.foundation.threads import for_ranges, single_threaded_blas
from kernelweave.kernels.device import device_backend
from kernelweave.kernels.divergences import Divergence, KernelDivergence
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.operator import KernelOperator

# Rows of a tile where similarities are filled or computed again.
TILE_ROWS = 256
# Rows whose chosen columns are held at a time.
HELD_ROWS = 2048
# Arrays that are alive while rows are computed, and matrices of chosen columns while a step is solved.
ROWS_HELD = 4
GRAMS_HELD = 5
# So many columns always are: their matrices take less than a MiB, and steps without them are slow.
LEAST_SUPPORT = 128
# Share of the room for the matrices of chosen columns where all that is stored are edges.
EDGE_SHARE = 0.7
# Vectors of tiles that are added up at a time where tiles are small.
MOST_ADDED = 64
# MiB that tiles and steps take at least beside a stored matrix.
WORK = 8.0


class Similarities(ABC):
    """The (V n, n) similarities of the samples in each of V views to all samples as components."""

    n_columns: int
    offsets: Floats  # (V n,) logarithm of what every row was divided by, at most 0
    room: float = np.inf  # MiB that chosen columns, and matrices of their size, may take

    @property
    def stored_bytes(self) -> int:
        """Bytes of a stored matrix."""
        return 0

    @property
    def largest_support(self) -> int:
        """Of how many columns matrices may be formed, within the other half of the room."""
        return int(min(2**31, max(LEAST_SUPPORT, np.sqrt(self.room / 2 * 2**20 / 8 / GRAMS_HELD))))

    @property
    def n_views(self) -> int:
        """How many times the samples stand one below the other."""
        return len(self.offsets) // self.n_columns

    @property
    def component_views(self) -> Ints:
        """In how many views every component has similarities."""
        return np.full(self.n_columns, self.n_views)

    @abstractmethod
    def product(self, priors: Floats) -> Floats:
        """Return S @ priors, the mixture at every row."""

    @abstractmethod
    def transposed_product(self, ratios: Floats) -> Floats:
        """Return S^T @ ratios, one number per component."""

    @abstractmethod
    def block(self, start: int, stop: int, columns: Ints) -> Floats:
        """Return rows start:stop of chosen columns as a new dense array; the rows belong to one view."""

    def gram(self, columns: Ints, scale: Floats) -> Floats:
        """Return R^T R for R = diag(scale) S[:, columns], added up over ranges of rows."""
        out = np.zeros((len(columns), len(columns)), order="F")
        for start, stop in self._row_ranges(self.n_views, len(columns)):
            R = self.block(start, stop, columns)
            R *= scale[start:stop, None]
            out = dsyrk(1.0, R.T, beta=1.0, c=out, lower=1, overwrite_c=1)
        for start in range(0, len(out), TILE_ROWS):  # the upper triangle, without a matrix for it
            stop = start + TILE_ROWS
            out[start:stop, stop:] = out[stop:, start:stop].T
            tile = np.tril(out[start:stop, start:stop])
            out[start:stop, start:stop] = tile + np.tril(tile, -1).T
        return out

    def most_similar(self, columns: Ints) -> Ints:
        """Return for every sample the position in ``columns`` of the component most similar to it, over all views."""
        nearest = np.empty(self.n_columns, dtype=np.intp)
        for start, stop in self._row_ranges(1, len(columns)):
            total = self.block(start, stop, columns)
            for view in range(1, self.n_views):
                total += self.block(view * self.n_columns + start, view * self.n_columns + stop, columns)
            nearest[start:stop] = total.argmax(axis=1)
        return nearest

    def _row_ranges(self, n_views: int, n_columns: int) -> Iterator[tuple[int, int]]:
        """Yield the ends of ranges of the rows of the first views, none of which crosses from one view to the next.

        Rows of ``n_columns`` chosen ones take up to half of the room.
        """
        held = rows_within(self.room / 2, ROWS_HELD * 8 * max(1, n_columns), HELD_ROWS)
        for view in range(n_views):
            first = view * self.n_columns
            for start in range(0, self.n_columns, held):
                yield first + start, first + min(start + held, self.n_columns)


class StoredSimilarities(Similarities):
    """A stored matrix."""

    def __init__(self, S: Floats, offsets: Floats, room: float = np.inf) -> None:
        self.S = S
        self.room = room
        self.offsets = offsets
        self.n_columns = S.shape[1]

    @property
    def stored_bytes(self) -> int:
        """Bytes of the matrix."""
        return self.S.nbytes

    def product(self, priors: Floats) -> Floats:
        """Return S @ priors."""
        return self.S @ priors

    def transposed_product(self, ratios: Floats) -> Floats:
        """Return S^T @ ratios."""
        return self.S.T @ ratios

    def block(self, start: int, stop: int, columns: Ints) -> Floats:
        """Return a copy of the block."""
        return self.S[start:stop].take(columns, axis=1)


class PlacedSimilarities(Similarities):
    """A matrix that is stored on a device; vectors travel."""

    def __init__(self, backend: Backend, S: Floats, offsets: Floats, room: float = np.inf) -> None:
        self._backend = backend
        self._S = backend.array(S)
        self.room = room
        self.offsets = offsets
        self.n_columns = S.shape[1]

    @property
    def stored_bytes(self) -> int:
        """Bytes of the matrix."""
        return 8 * len(self.offsets) * self.n_columns

    def product(self, priors: Floats) -> Floats:
        """Return S @ priors."""
        products = self._backend.product(self._S, self._backend.array(priors[:, None]))
        return np.asarray(self._backend.host(products)[:, 0])

    def transposed_product(self, ratios: Floats) -> Floats:
        """Return S^T @ ratios."""
        return self._backend.feature_products(self._S, self._backend.array(ratios[:, None]))[:, 0]

    def block(self, start: int, stop: int, columns: Ints) -> Floats:
        """Return a copy of the block."""
        return np.asarray(self._backend.block(self._S, slice(start, stop), columns))


class BlockwiseSimilarities(Similarities):
    """Computed again, tile by tile, at every pass."""

    def __init__(self, divergence: Divergence, beta: float, samples: Ints, memory_limit: float = np.inf) -> None:
        self._divergence = divergence
        # Half of the limit is for tiles that all threads compute, the rest for chosen columns.
        row_bytes = ROWS_HELD * 8 * len(samples)
        self._tiles = batches_within(memory_limit / 2, row_bytes, TILE_ROWS, beside=divergence.taken)
        # Rows of tiles of which each gives a vector, before these are added up: with small tiles all of them together
        # would be a matrix. Enough of them that no thread waits.
        tiles = max(self._tiles.at_once, min(MOST_ADDED, self._tiles.size * self._tiles.at_once // 2))
        self._added_rows = tiles * self._tiles.size
        self.room = memory_limit / 2
        self._beta = beta
        self._samples = samples
        self.n_columns = len(samples)
        self.offsets = np.empty(len(samples))
        self._over_rows(self._fill_offsets, 0, self.n_columns)

    def product(self, priors: Floats) -> Floats:
        """Return S @ priors over the components that have a prior."""
        used = np.flatnonzero(priors)
        out = np.empty(self.n_columns)

        def fill(start: int, stop: int) -> None:
            out[start:stop] = self.block(start, stop, used) @ priors[used]

        self._over_rows(fill, 0, self.n_columns)
        return out

    def transposed_product(self, ratios: Floats) -> Floats:
        """Return S^T @ ratios, tiles added in their order."""
        everyone = np.arange(self.n_columns)
        total = np.zeros(self.n_columns)
        for first in range(0, self.n_columns, self._added_rows):
            last = min(first + self._added_rows, self.n_columns)
            for term in self._over_rows(lambda lo, hi: ratios[lo:hi] @ self.block(lo, hi, everyone), first, last):
                total += term
        return total

    def block(self, start: int, stop: int, columns: Ints) -> Floats:
        """Return the block, computed."""
        values = self._divergence.block(self._samples[start:stop], self._samples[columns])
        np.multiply(values, -self._beta, out=values)
        values -= _finite(self.offsets[start:stop])[:, None]
        return np.exp(values, out=values)

    def _fill_offsets(self, start: int, stop: int) -> None:
        values = self._divergence.block(self._samples[start:stop], self._samples)
        self.offsets[start:stop] = -self._beta * values.min(axis=1)

    def _over_rows(self, work: Callable[[int, int], Any], first: int, last: int) -> list[Any]:
        """Call ``work`` on the ends of every tile of some rows, and return the results in their order."""
        n = last - first
        with single_threaded_blas():
            return for_ranges(
                lambda lo, hi: work(first + lo, first + hi),
                n,
                width=self._tiles.size,
                elements=n * self.n_columns,
                most_at_once=self._tiles.at_once,
            )


class EdgeSimilarities(Similarities):
    """The product u u^T plus a sparse matrix."""

    def __init__(self, u: Floats, C: sp.csr_array, room: float = np.inf) -> None:
        self.u = u
        self.C = C
        self.room = room
        self.n_columns = len(u)
        self.offsets = np.zeros(len(u))

    @property
    def largest_support(self) -> int:
        """Of how many columns matrices may be formed: two of them, besides which steps need little."""
        return int(min(2**31, max(LEAST_SUPPORT, np.sqrt(EDGE_SHARE * self.room * 2**20 / 8 / 2))))

    def product(self, priors: Floats) -> Floats:
        """Return u (u . priors) + C @ priors."""
        return self.u * (self.u @ priors) + self.C @ priors

    def transposed_product(self, ratios: Floats) -> Floats:
        """Return u (u . ratios) + C^T @ ratios."""
        return self.u * (self.u @ ratios) + self.C.T @ ratios

    def block(self, start: int, stop: int, columns: Ints) -> Floats:
        """Return the block, dense."""
        return np.outer(self.u[start:stop], self.u[columns]) + self.C[start:stop][:, columns].toarray()


class ObservedSimilarities(Similarities):
    """A view that lacks samples: their rows and columns are zero, since they are neither explained nor explain."""

    def __init__(self, known: Similarities, samples: Ints, n_columns: int) -> None:
        self._known = known
        self._samples = samples  # those the view has, ascending
        self.room = known.room
        self.n_columns = n_columns
        self.offsets = np.zeros(n_columns)
        self.offsets[samples] = known.offsets
        self._place = np.full(n_columns, -1)
        self._place[samples] = np.arange(len(samples))

    @property
    def stored_bytes(self) -> int:
        """Bytes of the matrix of those."""
        return self._known.stored_bytes

    @property
    def component_views(self) -> Ints:
        """One for the samples that the view has."""
        return (self._place >= 0).astype(np.intp)

    def product(self, priors: Floats) -> Floats:
        """Return the mixture of the components that the view has, zero at absent samples."""
        out = np.zeros(self.n_columns)
        out[self._samples] = self._known.product(priors[self._samples])
        return out

    def transposed_product(self, ratios: Floats) -> Floats:
        """Return the sums over the samples that the view has, zero for absent components."""
        out = np.zeros(self.n_columns)
        out[self._samples] = self._known.transposed_product(ratios[self._samples])
        return out

    def block(self, start: int, stop: int, columns: Ints) -> Floats:
        """Return the block with zeros where the view lacks a sample."""
        out = np.zeros((stop - start, len(columns)))
        first, last = np.searchsorted(self._samples, (start, stop)).tolist()
        there = np.flatnonzero(self._place[columns] >= 0)
        if first < last and len(there):
            rows = self._samples[first:last] - start
            out[np.ix_(rows, there)] = self._known.block(first, last, self._place[columns[there]])
        return out


class StackedSimilarities(Similarities):
    """Several views, one below the other."""

    def __init__(self, views: Sequence[Similarities]) -> None:
        self.views = tuple(views)
        self.room = sum(view.room for view in views)
        self.n_columns = views[0].n_columns
        self.offsets = np.concatenate([view.offsets for view in views])

    @property
    def component_views(self) -> Ints:
        """In how many of the views every component has similarities."""
        return np.sum([view.component_views for view in self.views], axis=0)

    def product(self, priors: Floats) -> Floats:
        """Return the mixtures of all views."""
        return np.concatenate([view.product(priors) for view in self.views])

    def transposed_product(self, ratios: Floats) -> Floats:
        """Return the sum over the views."""
        pieces = ratios.reshape(len(self.views), -1)
        return np.sum([view.transposed_product(piece) for view, piece in zip(self.views, pieces, strict=True)], axis=0)

    def block(self, start: int, stop: int, columns: Ints) -> Floats:
        """Return the block of the view it belongs to."""
        view, first = divmod(start, self.n_columns)
        return self.views[view].block(first, first + stop - start, columns)


def _finite(offsets: Floats) -> Floats:
    """Return offsets with zero for rows that have no similarity to anything, and so nothing to be divided by."""
    return np.where(np.isfinite(offsets), offsets, 0.0)


def similarities(divergence: Divergence, beta: float, samples: Ints, memory_limit: float = 2048) -> Similarities:
    """Return the similarities among the chosen samples; ``memory_limit`` in MiB bounds a stored matrix."""
    n = len(samples)
    if matrices_mib(1, n) > room_beside(WORK, memory_limit):
        return BlockwiseSimilarities(divergence, beta, samples, memory_limit)
    room = max(PASSING * memory_limit, memory_limit - matrices_mib(1, n))
    tiles = batches_within(room, ROWS_HELD * 8 * n, TILE_ROWS, beside=divergence.taken)
    S = np.empty((n, n))
    offsets = np.empty(n)

    def fill(start: int, stop: int) -> None:
        tile = divergence.block(samples[start:stop], samples)
        np.multiply(tile, -beta, out=tile)
        offsets[start:stop] = tile.max(axis=1)
        tile -= _finite(offsets[start:stop])[:, None]
        np.exp(tile, out=S[start:stop])

    with single_threaded_blas():
        for_ranges(fill, n, width=tiles.size, elements=S.size, most_at_once=tiles.at_once)
    backend = device_backend()
    if backend is not None:
        return PlacedSimilarities(backend, S, offsets, room)
    return StoredSimilarities(S, offsets, room)


@singledispatch
def feature_space_similarities(
    op: KernelOperator, beta: float, samples: Ints, memory_limit: float = 2048
) -> Similarities:
    """Return the similarities among the chosen samples in the feature space of a kernel.

    A kind of kernel that has a cheaper way than block by block registers its own function here.
    """
    return similarities(KernelDivergence(op), beta, samples, memory_limit)


@feature_space_similarities.register
def graph_similarities(op: GraphKernel, beta: float, samples: Ints, memory_limit: float = 2048) -> Similarities:
    """Return the similarities among chosen nodes of a graph, from its edges alone."""
    # An indefinite kernel may give negative squares of distances; they count as zero.
    diag = np.maximum(op.diag(), 0.0)
    edges = op.A.tocoo()
    without_edge = diag[edges.row] + diag[edges.col]
    values = np.exp(-beta * np.maximum(without_edge - 2.0 * edges.data, 0.0)) - np.exp(-beta * without_edge)
    C = sp.csr_array((values, (edges.row, edges.col)), op.shape)
    among = C[samples][:, samples]
    edges_mib = (among.data.nbytes + among.indices.nbytes) / 2**20
    room = max(PASSING * memory_limit, memory_limit - edges_mib)
    return EdgeSimilarities(np.exp(-beta * diag[samples]), among, room)
