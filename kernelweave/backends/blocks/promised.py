"""Features that are computed some rows at a time whenever they are read, and never kept.

Samples stay as they are stored, in single precision for instance; a few rows of features fit into the caches, so that
computing them costs less than reading them would.
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
        samples = [np.asarray(X[index], dtype=np.float64) for X, _, _ in self.parts]
        if len(samples[0]) == 0:
            return np.empty((0, self.shape[1]))
        blocks = [transform(part) for part, (_, transform, _) in zip(samples, self.parts, strict=True)]
        return np.ascontiguousarray(blocks[0] if len(blocks) == 1 else np.hstack(blocks), dtype=np.float64)

    def tiles(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the features some rows at a time."""
        n, width = self.shape
        step = max(1, TILE_BYTES // (8 * width * FEATURE_TILE)) * FEATURE_TILE
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            yield rows, self.rows(rows)


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
