"""The k-nearest-neighbour graph as a sparse kernel, and its extension to new samples.

a(x, y) = s(x, y) * ([y is among the nearest of x] and [x is among the nearest of y], averaged or the larger),
with s = 1 or the self-tuned weight. "Among the nearest" counts ``n_neighbors`` samples besides the sample itself;
a sample is joined to itself with weight 1. For a new sample the second bracket is decided by the radius of the
training sample's own neighbourhood; one that equals a training sample gets that sample's row of the graph.

Of samples at the same distance those that come first in the data are nearest. Search trees and parallel searches leave
that to chance, or to the number of threads.
"""

import math
from typing import Literal

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import row_norms

from kernelweave.foundation.array_types import Array, Floats, Matrix
from kernelweave.foundation.errors import ParameterError, ViewWarning
from kernelweave.foundation.logged_warnings import warn
from kernelweave.foundation.memory import FREE, PASSING, return_freed_memory, room_beside, rows_within
from kernelweave.kernels.device import device_backend
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.neighbors import (
    ENOUGH_RECALL,
    distances_to,
    indexes_bytes,
    measured_recall,
    nearest_others,
)
from kernelweave.kernels.spec import distances as distances_
from kernelweave.kernels.spec.searches import CHUNK, chunks, mib_of, part, passing_room, searched_rows

# Rounding allowance when a distance is compared with a radius that was computed another way.
RADIUS_TOLERANCE = 1.0 + 1e-9
# Distances between vectors of length one that come from rounding alone: the root of what is left of 1 - 1.
NO_DISTANCE = 3e-8
# The same as a share of the largest distance, for other metrics.
RELATIVE_TIE = 1e-12
# Samples searched beyond those wanted: that many equally distant ones need no second search.
SPARE = 5
# Bytes of an edge, an index and a value. What is kept has up to three times as many as samples have neighbours: once
# in one direction, and twice where the graph is symmetric. The transpose passes.
EDGE_BYTES = 12
KEPT_GRAPHS = 3
# Bytes of a pair within a radius: as it is found, in lists that grow, and as it is compared with radii.
LISTED_BYTES = 80


class NeighborGraph:
    """A neighbour graph of training samples that can be asked about new ones."""

    def __init__(
        self,
        X: Matrix,
        *,
        n_neighbors: int,
        metric: str,
        weights: Literal["connectivity", "self_tuning"],
        symmetrize: Literal["mean", "max"],
        search: Literal["exact", "approximate"] = "exact",
        memory_limit: float = 2048,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.symmetrize = symmetrize
        self.sparse = sp.issparse(X)
        self.memory_limit = memory_limit  # MiB, for new samples too
        self._centre = distances_.centre(X, metric)
        X = distances_.moved(X, self._centre)
        self._index = NearestNeighbors(n_neighbors=n_neighbors + 1, metric=metric).fit(X)
        self.n_samples = X.shape[0]
        self.recall = 1.0  # the share of the nearest neighbours that were found
        if search == "exact":
            distances, neighbors = nearest(self._index, X, room_beside(mib_of(X), memory_limit))
        else:
            distances, neighbors, self.recall = _nearly_nearest(X, n_neighbors)
        self.radii = distances[:, -1].copy()  # without the other distances, which a part of the array would keep
        searched = mib_of(neighbors) + mib_of(distances)
        lengths = None if weights == "connectivity" else distances
        del distances
        self._trim(searched)
        self._directed = self._matrix(lengths, neighbors, self.radii)

    @property
    def samples_mib(self) -> float:
        """MiB of the training samples where they were moved, and are a copy."""
        return 0.0 if self._centre is None else mib_of(self._index._fit_X)

    def _trim(self, searched: float) -> None:
        """Give back what a search of so many MiB has freed, where that is much: edges come in its place."""
        if searched > PASSING * self.memory_limit:
            return_freed_memory()

    def operator(self) -> GraphKernel:
        """Return the symmetric graph of the training samples."""
        A = self._join(self._directed, self._directed.T.tocsr())
        A.setdiag(1.0)
        return GraphKernel(A)

    def cross(self, X: Matrix) -> GraphKernel:
        """Return the affinities between new samples (rows) and training samples."""
        n_new = X.shape[0]
        X = distances_.moved(X, self._centre)
        kept = mib_of(self._directed) + (mib_of(X) if self._centre is not None else 0.0)
        edges = n_new * (self.n_neighbors + 1) * EDGE_BYTES / 2**20
        self._check_new(kept, edges, n_new, n_new)
        distances, neighbors = nearest(self._index, X, room_beside(kept, self.memory_limit))
        same = np.where(distances[:, 0] == 0.0, neighbors[:, 0], -1)
        radii = distances[:, -1].copy()
        lengths = None if self.weights == "connectivity" else distances
        del distances  # the largest array beside the edges, of which weights of one need nothing
        self._trim(edges)
        kept += mib_of(neighbors) + (0.0 if lengths is None else mib_of(lengths))
        edges_to = None
        if (same >= 0).any():
            edges_to = self._directed.T.tocsr()
            kept += mib_of(edges_to)
        # A graph that is symmetric has at most twice as many edges; new samples rarely have more.
        pieces = _Rows(n_new, self.n_samples, 2 * n_new * (self.n_neighbors + 1))
        room = passing_room(kept + 2 * edges, self.memory_limit)
        for rows in chunks(n_new, rows_within(room, LISTED_BYTES * self.n_samples, n_new)):
            new = rows.start + np.flatnonzero(same[rows] < 0)
            known = rows.start + np.flatnonzero(same[rows] >= 0)
            own = None if lengths is None else lengths[new]
            parts = [self._new_rows(X[new], own, neighbors[new], radii[new])] if len(new) else []
            parts += [self._rows(same[known], edges_to)] if len(known) else []
            order = np.argsort(np.concatenate([new, known]))
            piece = parts[0] if len(parts) == 1 else sp.vstack(parts, format="csr")[order]
            self._check_new(kept, pieces.mib_with(piece), rows.stop, n_new)
            pieces.add(piece)
        return GraphKernel(pieces.joined(), cross=True, diag=np.ones(n_new))

    def _check_new(self, kept: float, edges: float, done: int, n_new: int) -> None:
        """Raise where the edges of ``done`` new samples and what is kept beside them are more than the limit."""
        limit = max(FREE, self.memory_limit)
        if kept + edges > limit:
            raise ParameterError(
                f"The graph between {n_new:,} new samples and the training samples takes more than "
                f"memory_limit={self.memory_limit:g}. Fit with a larger one, or pass fewer samples at a time: about "
                f"{max(1, int(done * max(0.0, limit - kept) / edges)):,} would fit."
            )

    def _new_rows(self, X: Matrix, lengths: Floats | None, neighbors: Array, radii: Floats) -> sp.csr_array:
        """Return the affinities of samples that equal no training sample."""
        return self._join(self._matrix(lengths, neighbors, radii), self._inward(X, radii))

    def _rows(self, samples: Array, edges_to: sp.csr_array) -> sp.csr_array:
        """Return rows of the symmetric graph; ``edges_to`` has the edges by the sample that they lead to."""
        rows = self._join(self._directed[samples], edges_to[samples])
        own = sp.csr_array((np.ones(len(samples)), (np.arange(len(samples)), samples)), shape=rows.shape)
        return sp.csr_array(rows - rows.multiply(own) + own)

    def _join(self, outward: sp.csr_array, inward: sp.csr_array) -> sp.csr_array:
        if self.symmetrize == "max":
            return sp.csr_array(outward.maximum(inward))
        joined = sp.csr_array(outward + inward)
        joined.data *= 0.5
        return joined

    def _inward(self, X: Matrix, radii: Floats) -> sp.csr_array:
        """Return the edges from training samples whose neighbourhood reaches as far as the new sample."""
        near = self._index.radius_neighbors(X, radius=float(self.radii.max()) * RADIUS_TOLERANCE)
        rows = np.repeat(np.arange(X.shape[0]), [len(neighbors) for neighbors in near[1]])
        cols = np.concatenate(near[1]).astype(np.intp, copy=False)
        lengths = np.concatenate(near[0])
        keep = lengths <= self.radii[cols] * RADIUS_TOLERANCE
        rows = rows[keep]
        cols = cols[keep]
        values = self._affinity(lengths[keep], radii[rows], self.radii[cols])
        return sp.csr_array((values, (rows, cols)), shape=(X.shape[0], self.n_samples))

    def _matrix(self, lengths: Floats | None, neighbors: Array, radii: Floats) -> sp.csr_array:
        """Return the edges from samples, of such radii, to the nearest training samples; all of 1 without lengths."""
        n, count = neighbors.shape
        values = np.ones((n, count))
        if lengths is not None:
            for rows in chunks(n, CHUNK):
                values[rows] = self._affinity(lengths[rows], radii[rows, None], self.radii[neighbors[rows]])
        kind = np.int32 if max(n * count, self.n_samples) < 2**31 else np.int64
        ends = np.arange(0, n * count + 1, count, dtype=kind)
        cols = neighbors.astype(kind, order="C").ravel()
        A = sp.csr_array((values.ravel(), cols, ends), shape=(n, self.n_samples))
        A.sum_duplicates()  # and in the order of columns
        return A

    def _affinity(self, lengths: Floats, here: Floats, there: Floats) -> Floats:
        if self.weights == "connectivity":
            return np.ones_like(lengths)
        with np.errstate(divide="ignore", invalid="ignore"):
            exponent = lengths * lengths / (here * there)
        return np.exp(-np.nan_to_num(exponent, nan=0.0, posinf=np.inf))


class _Rows:
    """Rows of a sparse matrix that come in pieces. There is room for the usual number of entries from the start."""

    def __init__(self, n_rows: int, n_columns: int, entries: int) -> None:
        self._entries = 0
        self._shape = (n_rows, n_columns)
        self._values = np.empty(entries)
        self._columns = np.empty(entries, dtype=np.int32 if n_columns < 2**31 else np.int64)
        self._counts: list[Array] = []

    def _grown(self, end: int) -> int:
        """Return for how many entries there will be room when there are so many."""
        room = len(self._values)
        return room if end <= room else max(end, room * 3 // 2)

    def mib_with(self, piece: sp.csr_array) -> float:
        """Return what the rows take with those of a piece; where there is no room for them, all are copied."""
        room = len(self._values)
        end = self._entries + piece.nnz
        return (end if end <= room else self._entries + self._grown(end)) * EDGE_BYTES / 2**20

    def add(self, piece: sp.csr_array) -> None:
        """Append rows."""
        piece.sort_indices()
        end = self._entries + piece.nnz
        grown = self._grown(end)
        for room, values in ((self._values, piece.data), (self._columns, piece.indices)):
            if grown > len(room):
                room.resize(grown, refcheck=False)
            room[self._entries : end] = values
        self._entries = end
        self._counts.append(np.diff(piece.indptr))

    def joined(self) -> sp.csr_array:
        """Return the matrix of all rows."""
        kind = self._columns.dtype if self._entries < 2**31 else np.int64
        ends = np.concatenate([[0], np.cumsum(np.concatenate(self._counts))]).astype(kind)
        return sp.csr_array((self._values[: self._entries], self._columns[: self._entries], ends), shape=self._shape)


def _nearly_nearest(X: Floats, count: int) -> tuple[Floats, Array, float]:
    """Return distances and indices of every sample itself and of others that an index finds, and the recall of these.

    A place without a neighbour has the sample itself. Draws are always the same: a kernel has no seed.
    """
    near = nearest_others(X, count, np.random.default_rng(0), search="approximate")
    recall = measured_recall(X, near, np.random.default_rng(0))
    own = np.arange(len(X))[:, None]
    there = np.isfinite(near.distances)
    distances = np.hstack([np.zeros(own.shape), np.where(there, near.distances, 0.0)])
    neighbors = np.hstack([own, np.where(there, near.indices, own)])
    order = np.argsort(distances, axis=1, kind="stable")
    if recall < ENOUGH_RECALL:
        warn(
            f"The approximate search of kernel='nearest_neighbors' found {recall:.0%} of the nearest neighbours. "
            "kernel_params={'neighbor_search': 'exact'} finds all.",
            ViewWarning,
        )
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(neighbors, order, axis=1), recall


def check_graph(
    X: Matrix, n_neighbors: int, metric: str, memory_limit: float, n_kernels: int = 1, search: str = "exact"
) -> None:
    """Raise where graphs of so many neighbours, one for each of ``n_kernels``, are more than the limit.

    Samples that are moved to another origin are a copy, which passes as far as the limit allows, and so does an index.
    """
    n = X.shape[0]
    edges = (KEPT_GRAPHS * n_kernels + 1) * EDGE_BYTES * (n_neighbors + 1) / 2**20
    both = edges + n_kernels * (mib_of(X) / n if distances_.moves(X, metric) else 0.0)
    index = indexes_bytes(1, X.shape[1:]) / 2**20 if search == "approximate" else 0.0
    both += index
    limit = max(memory_limit, FREE)
    fitting = np.floor(min(limit / edges, max(limit + FREE, limit * (1.0 + PASSING)) / both))
    if n <= fitting:
        return
    needed = max(n * edges, min(n * both - FREE, n * both / (1.0 + PASSING)))
    size = f"{needed:,.0f}" if needed >= 100 else f"{needed:.3g}"
    graphs = "Graphs" if n_kernels == 1 else f"{n_kernels} graphs"
    found = ", and the index that finds them," if index else ""
    other = "neighbor_search='exact' or fewer neighbours (n_neighbors)" if index else "fewer neighbours (n_neighbors)"
    raise ParameterError(
        f"{graphs} of {n_neighbors:,} neighbours of each of {n:,} samples{found} take {size} MiB, more than "
        f"memory_limit={memory_limit:g}. Raise it to {math.ceil(needed)}, use {other} in kernel_params, or fit on some "
        f"of the samples: {fitting:,.0f} samples would fit."
    )


def nearest(index: NearestNeighbors, X: Matrix, memory_limit: float = 2048) -> tuple[Floats, Array]:
    """Return distances and indices of the nearest samples; of those equally far away the first ones.

    The search takes ``memory_limit`` MiB, or as much as it needs for some rows beside what it returns.
    """
    count = index.n_neighbors
    known = index.n_samples_fit_
    wanted = min(known, count + SPARE)
    distances = np.empty((X.shape[0], wanted))
    neighbors = np.empty((X.shape[0], wanted), dtype=np.int32 if known < 2**31 else np.int64)
    room = passing_room((distances.nbytes + neighbors.nbytes) / 2**20, memory_limit)
    for rows in chunks(X.shape[0], searched_rows(index, X, wanted, room)):
        lengths, samples = _near(index, part(X, rows), wanted)
        order = np.lexsort((samples, lengths), axis=-1)
        distances[rows] = np.take_along_axis(lengths, order, axis=1)
        neighbors[rows] = np.take_along_axis(samples, order, axis=1)
    tolerance = (
        NO_DISTANCE * float(row_norms(X).max())
        if index.effective_metric_ == "euclidean"
        else RELATIVE_TIE * float(distances.max())
    )
    farthest = distances[:, count - 1] * RADIUS_TOLERANCE + tolerance
    nearest_distances = distances[:, :count]
    nearest_samples = neighbors[:, :count]
    if count == known:
        return nearest_distances, nearest_samples
    tied = np.flatnonzero(distances[:, count] <= farthest)
    open_ended = np.flatnonzero(distances[:, -1] <= farthest) if wanted < known else np.empty(0, np.intp)
    for row in tied:
        nearest_distances[row], nearest_samples[row] = _first(distances[row], neighbors[row], count, tolerance)
    step = rows_within(room, LISTED_BYTES * known, CHUNK)
    for start in range(0, len(open_ended), step):  # more may lie just as far away
        chunk = open_ended[start : start + step]
        within = index.radius_neighbors(X[chunk], radius=float(farthest[chunk].max()))
        for row, lengths, samples in zip(chunk, *within, strict=True):
            order = np.lexsort((samples, lengths))
            if len(order) >= count:
                chosen = _first(lengths[order], samples[order], count, tolerance)
                nearest_distances[row], nearest_samples[row] = chosen
    return nearest_distances, nearest_samples


def _near(index: NearestNeighbors, X: Matrix, count: int) -> tuple[Floats, Array]:
    """Return distances and indices of the nearest samples, on the device of the settings where there is one."""
    backend = device_backend()
    if backend is None or sp.issparse(X) or index.effective_metric_ != "euclidean":
        found: tuple[Floats, Array] = index.kneighbors(X, count)
        return found
    known = index._fit_X
    # Products leave open which of two is nearer where rounding is all that sets them apart: spare ones see to that.
    neighbors = backend.nearest_rows(X, known, min(len(known), count + SPARE))
    distances = distances_to(X, known, neighbors)
    order = np.lexsort((neighbors, distances), axis=-1)[:, :count]
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(neighbors, order, axis=1)


def _first(distances: Floats, samples: Array, count: int, tolerance: float) -> tuple[Floats, Array]:
    """Return the ``count`` nearest of samples in order of distance; at the last distance those of the lowest index."""
    last = distances[count - 1]
    inner = distances < (last - tolerance) / RADIUS_TOLERANCE
    edge = np.flatnonzero(~inner & (distances <= last * RADIUS_TOLERANCE + tolerance))
    chosen = edge[np.argsort(samples[edge], kind="stable")][: count - int(inner.sum())]
    keep = np.sort(np.concatenate([np.flatnonzero(inner), chosen]))
    return distances[keep], samples[keep]
