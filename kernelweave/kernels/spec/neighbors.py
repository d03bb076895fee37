"""The k-nearest-neighbour graph as a sparse kernel, and its extension to new samples.

a(x, y) = s(x, y) * ([y is among the nearest of x] and [x is among the nearest of y], averaged or the larger),
with s = 1 or the self-tuned weight. "Among the nearest" counts ``n_neighbors`` samples besides the sample itself;
a sample is joined to itself with weight 1. For a new sample the second bracket is decided by the radius of the
training sample's own neighbourhood; one that equals a training sample gets that sample's row of the graph.

Of samples at the same distance those that come first in the data are nearest. Search trees and parallel searches leave
that to chance, or to the number of threads.
"""

from typing import Literal

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import row_norms

from kernelweave.foundation.array_types import Array, Floats, Matrix
from kernelweave.foundation.errors import ViewWarning
from kernelweave.foundation.logged_warnings import warn
from kernelweave.kernels.device import device_backend
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.neighbors import ENOUGH_RECALL, distances_to, measured_recall, nearest_others
from kernelweave.kernels.spec import distances as distances_

# Rounding allowance when a distance is compared with a radius that was computed another way.
RADIUS_TOLERANCE = 1.0 + 1e-9
# Distances between vectors of length one that come from rounding alone: the root of what is left of 1 - 1.
NO_DISTANCE = 3e-8
# The same as a share of the largest distance, for other metrics.
RELATIVE_TIE = 1e-12
# Samples searched beyond those wanted: that many equally distant ones need no second search.
SPARE = 5
# Samples whose equally distant neighbours are searched at a time.
CHUNK = 256


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
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.symmetrize = symmetrize
        self.sparse = sp.issparse(X)
        self._centre = distances_.centre(X, metric)
        X = distances_.moved(X, self._centre)
        self._index = NearestNeighbors(n_neighbors=n_neighbors + 1, metric=metric).fit(X)
        self.n_samples = X.shape[0]
        self.recall = 1.0  # the share of the nearest neighbours that were found
        if search == "exact":
            distances, neighbors = nearest(self._index, X)
        else:
            distances, neighbors, self.recall = _nearly_nearest(X, n_neighbors)
        self.radii = distances[:, -1]
        self._directed = self._matrix(distances, neighbors)

    def operator(self) -> GraphKernel:
        """Return the symmetric graph of the training samples."""
        return GraphKernel(self._symmetric())

    def _symmetric(self) -> sp.csr_array:
        A = self._join(self._directed, self._directed.T.tocsr())
        A.setdiag(1.0)
        return A

    def cross(self, X: Matrix) -> GraphKernel:
        """Return the affinities between new samples (rows) and training samples."""
        X = distances_.moved(X, self._centre)
        distances, neighbors = nearest(self._index, X)
        A = self._join(self._matrix(distances, neighbors, distances[:, -1]), self._inward(X, distances[:, -1]))
        known = distances[:, 0] == 0.0
        if known.any():
            keep = sp.dia_array((np.where(known, 0.0, 1.0)[None], [0]), shape=(len(known), len(known)))
            rows = np.flatnonzero(known)
            pick = sp.csr_array((np.ones(len(rows)), (rows, neighbors[rows, 0])), shape=A.shape)
            A = keep @ A + pick @ self._symmetric()
        return GraphKernel(sp.csr_array(A), cross=True, diag=np.ones(X.shape[0]))

    def _join(self, outward: sp.csr_array, inward: sp.csr_array) -> sp.csr_array:
        joined = outward.maximum(inward) if self.symmetrize == "max" else (outward + inward) * 0.5
        return sp.csr_array(joined)

    def _inward(self, X: Matrix, radii: Floats) -> sp.csr_array:
        """Return the edges from training samples whose neighbourhood reaches as far as the new sample."""
        near = self._index.radius_neighbors(X, radius=float(self.radii.max()) * RADIUS_TOLERANCE)
        rows = np.repeat(np.arange(X.shape[0]), [len(neighbors) for neighbors in near[1]])
        cols = np.concatenate(near[1]).astype(np.intp)
        lengths = np.concatenate(near[0])
        keep = lengths <= self.radii[cols] * RADIUS_TOLERANCE
        rows = rows[keep]
        cols = cols[keep]
        values = self._affinity(lengths[keep], radii[rows], self.radii[cols])
        return sp.csr_array((values, (rows, cols)), shape=(X.shape[0], self.n_samples))

    def _matrix(self, distances: Floats, neighbors: Array, radii: Floats | None = None) -> sp.csr_array:
        rows = np.repeat(np.arange(len(neighbors)), neighbors.shape[1])
        cols = neighbors.ravel()
        row_radii = self.radii if radii is None else radii
        values = self._affinity(distances.ravel(), row_radii[rows], self.radii[cols])
        return sp.csr_array((values, (rows, cols)), shape=(len(neighbors), self.n_samples))

    def _affinity(self, lengths: Floats, here: Floats, there: Floats) -> Floats:
        if self.weights == "connectivity":
            return np.ones_like(lengths)
        with np.errstate(divide="ignore", invalid="ignore"):
            exponent = lengths * lengths / (here * there)
        return np.exp(-np.nan_to_num(exponent, nan=0.0, posinf=np.inf))


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


def nearest(index: NearestNeighbors, X: Matrix) -> tuple[Floats, Array]:
    """Return distances and indices of the nearest samples; of those equally far away the first ones."""
    count = index.n_neighbors
    known = index.n_samples_fit_
    distances, neighbors = _near(index, X, min(known, count + SPARE))
    order = np.lexsort((neighbors, distances), axis=-1)
    distances, neighbors = (np.take_along_axis(values, order, axis=1) for values in (distances, neighbors))
    tolerance = (
        NO_DISTANCE * float(row_norms(X).max())
        if index.effective_metric_ == "euclidean"
        else RELATIVE_TIE * float(distances.max())
    )
    farthest = distances[:, count - 1] * RADIUS_TOLERANCE + tolerance
    nearest_distances = distances[:, :count].copy()
    nearest_samples = neighbors[:, :count].copy()
    if count == known:
        return nearest_distances, nearest_samples
    for row in np.flatnonzero(distances[:, count] <= farthest):
        nearest_distances[row], nearest_samples[row] = _first(distances[row], neighbors[row], count, tolerance)
    open_ended = np.flatnonzero(distances[:, -1] <= farthest) if distances.shape[1] < known else np.empty(0, np.intp)
    for start in range(0, len(open_ended), CHUNK):  # more may lie just as far away
        chunk = open_ended[start : start + CHUNK]
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
