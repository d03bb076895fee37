"""Features that are computed some rows at a time whenever they are read, and never kept.

Samples stay as they are stored, in single precision for instance; a few rows of features fit into the caches, so that
computing them costs less than reading them would. A function of samples that only subtracts a vector says so
(``only_shifts``, and ``shift`` for the vector): it is then done in place.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave.backends.host import FEATURE_TILE, HostBackend
from kernelweave.backends.protocol import Assignment
from kernelweave.foundation.array_types import Array, Floats, Ints

#: Bytes of features that are computed together.
TILE_BYTES = 2**20
Transform = Callable[[Array], Array]


@dataclass(frozen=True)
class Promised:
    """Features of some samples, from several tables side by side."""

    parts: tuple[tuple[Array, Transform, int], ...]  # samples, what makes features of them, and how many

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.parts[0][0]), sum(width for _, _, width in self.parts)

    def rows(self, index: Any) -> Floats:
        """Return the features of some samples."""
        samples = [X[index] for X, _, _ in self.parts]
        return self._written(samples, np.empty((len(samples[0]), self.shape[1])))

    def tiles(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the features some rows at a time, in memory that the next ones overwrite."""
        n, width = self.shape
        step = max(1, TILE_BYTES // (8 * width * FEATURE_TILE)) * FEATURE_TILE
        # Memory of this size goes back to the system when it is freed, and getting it again costs as much as the work.
        room = np.empty((min(step, n), width))
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            yield rows, self._written([X[rows] for X, _, _ in self.parts], room[: rows.stop - start])

    def _written(self, samples: list[Array], out: Floats) -> Floats:
        """Return the features of samples, written into ``out``."""
        if len(out) == 0:
            return out
        shift = np.zeros(out.shape[1])
        end = 0
        for part, (_, transform, width) in zip(samples, self.parts, strict=True):
            columns = slice(end, end + width)
            end += width
            if getattr(transform, "only_shifts", False):
                out[:, columns] = part
                shift[columns] = transform.shift  # type: ignore[attr-defined]
            else:
                out[:, columns] = transform(np.asarray(part, dtype=np.float64))
        if shift.any():  # of all columns together: short rows make a slow loop
            out -= shift
        return out


def _column_sums(host: HostBackend, Phi: Promised) -> Floats:
    return np.asarray(sum(part.sum(axis=0) for _, part in Phi.tiles()))


def _squared_lengths(host: HostBackend, Phi: Promised) -> Floats:
    return np.concatenate([host.squared_lengths(part) for _, part in Phi.tiles()])


def _feature_products(host: HostBackend, Phi: Promised, H: Floats) -> Floats:
    return np.asarray(sum(host.feature_products(part, H[rows]) for rows, part in Phi.tiles()))


def _spread(host: HostBackend, Phi: Promised, vectors: Floats) -> Floats:
    return np.concatenate([host.spread(part, vectors) for _, part in Phi.tiles()])


def _spread_rows(host: HostBackend, Phi: Promised, vectors: Floats) -> Floats:
    return np.concatenate([host.spread_rows(part, vectors) for _, part in Phi.tiles()], axis=1)


def _feature_sums(host: HostBackend, Phi: Promised, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
    sums = (host.feature_sums(part, labels[rows], weights[rows], n_clusters) for rows, part in Phi.tiles())
    return np.asarray(sum(sums))


def _gram(host: HostBackend, Phi: Promised, weights: Floats) -> Floats:
    return np.asarray(sum(host.gram(part, weights[rows]) for rows, part in Phi.tiles()))


def _nearest_means(
    host: HostBackend,
    Phi: Promised,
    means: Floats,
    norms: Floats,
    labels: Ints,
    tolerance: float,
    diag: Floats,
    coefs: Floats,
) -> Assignment:
    found = [
        host.nearest_means(part, means, norms, labels[rows], tolerance, diag[rows], coefs) for rows, part in Phi.tiles()
    ]
    chosen = np.concatenate([each.labels for each in found])
    distances = np.concatenate([each.distances for each in found])
    return Assignment(chosen, distances, min(each.lead for each in found))


def _distances_to_means(
    host: HostBackend, Phi: Promised, means: Floats, norms: Floats, labels: Ints, diag: Floats
) -> Floats:
    parts = [host.distances_to_means(part, means, norms, labels[rows], diag[rows]) for rows, part in Phi.tiles()]
    return np.concatenate(parts)


#: Verbs on features, some rows at a time.
TILED: dict[str, Callable[..., Any]] = {
    "column_sums": _column_sums,
    "squared_lengths": _squared_lengths,
    "feature_products": _feature_products,
    "spread": _spread,
    "spread_rows": _spread_rows,
    "feature_sums": _feature_sums,
    "gram": _gram,
    "nearest_means": _nearest_means,
    "distances_to_means": _distances_to_means,
}
