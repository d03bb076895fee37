"""Distances of all samples to some of them, the reference samples: what is said about every sample costs O(n).

Up to :data:`~kernelweave.evaluation.sampling.MOST_JUDGED` samples all are references, and distances are those of
:mod:`~kernelweave.evaluation.describe.distances`. Beyond, references are drawn, a few of every cluster at least, and
distances to them are measured in the same way, a block of samples at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS, euclidean_distances
from sklearn.utils import gen_batches

from kernelweave.evaluation.describe.distances import (
    MOST_FITTED,
    ZERO_SQUARE,
    both_directions,
    distances_as_given,
    squared_distances,
)
from kernelweave.evaluation.describe.views import EUCLIDEAN, View, is_text
from kernelweave.evaluation.sampling import MOST_JUDGED, judged_samples, shown_samples
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.random_streams import RandomState
from kernelweave.kernels.spec.fitting import fit_kernel

#: References where not all samples are, and with those added for small clusters.
MOST_REFERENCES = 1_000
MOST_WITH_SMALL_CLUSTERS = 2_000
# Distances in memory at a time.
BLOCK_DISTANCES = 2**21


def reference_samples(labels: Ints, random_state: RandomState) -> Ints:
    """Return all samples where there are few, else some drawn at random and a few of every cluster."""
    n = len(labels)
    if n <= MOST_JUDGED:
        return np.arange(n)
    drawn = judged_samples(n, MOST_REFERENCES, random_state)
    return shown_samples(labels, drawn, MOST_WITH_SMALL_CLUSTERS, random_state)[0]


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums of distances, and of their squares, from every sample to the references of every cluster, in one view."""

    given: Floats  # (n, k) distances as they are given
    squares: Floats  # (n, k) squared distances as the model measures them
    sizes: Ints  # (k,) references that the view has


def cluster_sums(view: View, references: Ints, labels: Ints, n_clusters: int, squares: bool = True) -> ClusterSums:
    """Return the sums for all samples, NaN for those that the view does not have; ``squares`` may be left out."""
    n = int(view.block.shape[0])
    there = references[view.present(references)]
    members = np.eye(n_clusters)[labels[there]]
    sums = ClusterSums(
        np.full((n, n_clusters), np.nan),
        np.full((n, n_clusters), np.nan),
        np.bincount(labels[there], minlength=n_clusters),
    )
    if len(there) == 0:
        return sums
    samples = np.arange(n) if view.observed is None else np.flatnonzero(view.observed)
    for rows, given, squared in _measured(view, samples, there, squares):
        sums.given[rows] = given @ members
        if squares:
            sums.squares[rows] = squared @ members
    return sums


def squares_to_means(sums: Floats, references: Ints, labels: Ints, sizes: Ints) -> Floats:
    """Return squared distances to the mean of every cluster's references, infinite where it has none.

    ||x - m_c||^2 is the mean squared distance to the members of c, less half the mean one between them.
    """
    k = len(sizes)
    own = np.nan_to_num(sums[references, labels[references]])
    among = np.bincount(labels[references], own, minlength=k)
    counts = np.maximum(sizes, 1)
    squares = np.maximum(sums / counts - among / (2.0 * counts**2), 0.0)
    squares[:, sizes == 0] = np.where(np.isnan(squares[:, sizes == 0]), np.nan, np.inf)
    return squares


def _measured(view: View, samples: Ints, references: Ints, squares: bool) -> Iterator[tuple[Ints, Floats, Floats]]:
    """Yield samples with their distances to the references as given, and squared as the model measures them."""
    same = view.measured_as_given
    if len(references) == len(samples):
        given = distances_as_given(view, samples)
        yield samples, given, given**2 if same or not squares else squared_distances(view, samples)
        return
    as_given = _ToReferences(view, references, given=True)
    by_model = as_given if same or not squares else _ToReferences(view, references, given=False)
    for batch in gen_batches(len(samples), max(1, BLOCK_DISTANCES // len(references))):
        rows = samples[batch]
        squared = as_given.squares(rows)
        given = np.sqrt(squared)
        yield rows, given, squared if by_model is as_given else by_model.squares(rows)


class _ToReferences:
    """Squared distances of samples that a view has to references that it has, as given or by the model's measure."""

    def __init__(self, view: View, references: Ints, *, given: bool) -> None:
        self._view = view
        self._references = references
        self._kernels = [] if given else [_Cross(view, references, *kernel) for kernel in view.measure.kernels]
        self._metric = None if given else view.measure.metric
        self._center: Any = None
        if view.kind == "features" and not sp.issparse(view.block):
            self._center = view.block[references].mean(axis=0)
        self._scales = [_mean_of_pairs(kernel.squares(references)) for kernel in self._kernels]

    def squares(self, rows: Ints) -> Floats:
        """Return squared distances, 0 between a sample and itself."""
        squares = np.maximum(self._squares(rows), 0.0)
        squares[rows[:, None] == self._references] = 0.0
        return squares

    def _squares(self, rows: Ints) -> Floats:
        shares = self._view.measure.shares
        if len(self._kernels) > 1 and shares is not None:
            parts = zip(shares, self._kernels, self._scales, strict=True)
            return np.asarray(sum(share * kernel.squares(rows) / scale for share, kernel, scale in parts))
        if self._kernels:
            return self._kernels[0].squares(rows)
        if self._metric is not None:
            return _by_metric(self._view.block[rows], self._view.block[self._references], *self._metric) ** 2
        return self._as_given(rows)

    def _as_given(self, rows: Ints) -> Floats:
        block = self._view.block
        refs = self._references
        if self._view.kind == "features":
            return _euclidean(block[rows], block[refs], self._center)
        forth = _dense(block[rows][:, refs])
        if self._view.kind == "distances":
            return np.maximum(forth, 0.0) ** 2
        if self._view.kind == "divergences":
            return both_directions(forth, _dense(block[refs][:, rows]))
        diagonal = np.asarray(block.diagonal(), dtype=np.float64)
        return _of_inner_products(forth, diagonal[rows], diagonal[refs])


class _Cross:
    """A kernel between samples of a view and the references, fitted as the model's is."""

    def __init__(self, view: View, references: Ints, kernel: Any, params: Any) -> None:
        self._view = view
        self._given = is_text(kernel, "precomputed")
        self._references = references
        if self._given:
            self._diagonal = np.asarray(view.block.diagonal(), dtype=np.float64)
            return
        known = np.arange(view.block.shape[0]) if view.observed is None else np.flatnonzero(view.observed)
        known = known if len(known) <= MOST_FITTED else references
        self._fitted = fit_kernel(view.block[known], kernel, params, centre_features=True)
        self._columns = np.searchsorted(known, references)
        self._diagonal = np.asarray(self._fitted.operator("blockwise").diag(), dtype=np.float64)[self._columns]

    def squares(self, rows: Ints) -> Floats:
        """Return squared distances in the feature space."""
        if self._given:
            values = _dense(self._view.block[rows][:, self._references])
            return _of_inner_products(values, self._diagonal[rows], self._diagonal[self._references])
        cross = self._fitted.cross(self._view.block[rows])
        values = np.asarray(cross.block(np.arange(len(rows)), self._columns), dtype=np.float64)
        return _of_inner_products(values, np.asarray(cross.diag(), dtype=np.float64), self._diagonal)


def _mean_of_pairs(squares: Floats) -> float:
    """Return the mean squared distance between different references, 1 where all are equal."""
    mean = float(squares.sum()) / max(1, len(squares) * (len(squares) - 1))
    return mean if mean > 0 else 1.0


def _euclidean(A: Matrix, B: Matrix, center: Any = None) -> Floats:
    """Return squared distances; dense rows are moved by ``center`` first, so that they keep their digits."""
    if center is not None:
        A = A - center
        B = B - center
    squares = euclidean_distances(A, B, squared=True)
    norms = B.multiply(B).sum(axis=1) if sp.issparse(B) else np.einsum("ij,ij->i", B, B)
    squares *= squares > ZERO_SQUARE * float(np.max(norms))
    return squares


def _of_inner_products(values: Floats, rows: Floats, columns: Floats) -> Floats:
    squares = rows[:, None] + columns - 2.0 * values
    squares *= squares > ZERO_SQUARE * float(np.abs(columns).max())
    return squares


def _by_metric(A: Matrix, B: Matrix, metric: Any, params: Any) -> Floats:
    if isinstance(metric, str) and metric in EUCLIDEAN and not params:
        return np.sqrt(_euclidean(A, B))
    if isinstance(metric, str) and metric in PAIRWISE_BOOLEAN_FUNCTIONS:
        A = A != 0
        B = B != 0
    return np.asarray(pairwise_distances(A, B, metric=metric, **(params or {})), dtype=np.float64)


def _dense(block: Matrix) -> Floats:
    return np.asarray(block.toarray() if sp.issparse(block) else block, dtype=np.float64)
