"""Starting partitions by samples drawn far apart, also where views lack samples.

Distances are computed for the samples that are drawn, so that nothing of size n x n is formed.
"""

from collections.abc import Sequence

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.kernels.features import FeatureKernel
from kernelweave.partitions import algebra
from kernelweave.partitions.algebra import TIE_TOLERANCE
from kernelweave.solvers.comparators.k_medoids import Distances, start_medoids


class SharedDistances:
    """Squared distances averaged over the views that two samples have in common; the mean of all where they have none.

    ``samples`` are those of every view, ascending.
    """

    def __init__(self, ops: Sequence[FeatureKernel], samples: Sequence[Ints]) -> None:
        n = 1 + max(int(known[-1]) for known in samples)
        self._ops = ops
        self._diags = [np.asarray(op.diag()) for op in ops]
        self._samples = samples
        self.n_views: Floats = np.bincount(np.concatenate(samples), minlength=n).astype(np.float64)
        self.slack = TIE_TOLERANCE * max(op.scale() for op in ops)
        pairs = np.array([len(known) ** 2 for known in samples], dtype=np.float64)
        means = [_mean_distance(op, diag) for op, diag in zip(ops, self._diags, strict=True)]
        self._level = float(pairs @ np.array(means) / pairs.sum())

    def __call__(self, chosen: Ints) -> Floats:
        """Return the distances of chosen samples to all, shape (len(chosen), n)."""
        total = np.zeros((len(chosen), len(self.n_views)))
        shared = np.zeros(total.shape)
        for op, diag, known in zip(self._ops, self._diags, self._samples, strict=True):
            there = np.flatnonzero(np.isin(chosen, known))
            places = np.searchsorted(known, chosen[there])
            squared = algebra.distances_to_samples(op, places, diag).T
            pairs = np.ix_(there, known)
            total[pairs] += np.where(squared > self.slack, squared, 0.0)
            shared[pairs] += 1.0
        return np.divide(total, shared, out=np.full(total.shape, self._level), where=shared > 0)


def _mean_distance(op: FeatureKernel, diag: Floats) -> float:
    """Return the mean squared distance over all pairs of samples."""
    sums = op.cluster_sums(np.zeros(len(diag), dtype=np.intp), np.full(len(diag), 1.0 / len(diag)), 1)
    return 2.0 * (float(diag.mean()) - float(np.asarray(sums).mean()))


def masked_start(distances: SharedDistances, n_clusters: int, rng: np.random.Generator) -> Ints:
    """Return a starting partition where views lack samples, by samples drawn far apart.

    A sample is drawn the more likely, the more views it has. Equal samples are never separated.
    """
    return around_drawn(distances, distances.slack, distances.n_views, n_clusters, rng)


def around_drawn(
    distances: Distances, slack: float, weights: Floats, n_clusters: int, rng: np.random.Generator
) -> Ints:
    """Return for every sample the nearest of some drawn far apart, the first of those equal except for rounding."""
    medoids = start_medoids(distances, "k-medoids++", weights, n_clusters, rng)
    to_medoids = distances(medoids)
    return np.asarray((to_medoids <= to_medoids.min(axis=0) + slack).argmax(axis=0))
