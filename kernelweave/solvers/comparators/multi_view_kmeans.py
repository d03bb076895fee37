"""k-means of several views that exchange their partitions: the centres of a view follow the partition of another.

Objective   none is minimised for certain; J = sum over the views of the squared distances to the means of the partition
            that came from the view before is what rounds are compared by
Input       the features of every view and a starting partition, that of the first view
Cost        O(n k d) a round, d the features of all views
Guarantee   J of the result is the least of all rounds. With one view this is k-means, and J falls
Source      PhD 1.2.3; Bickel and Scheffer, ICDM 2004, for two views; here any number, each handing on to the next
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.kernels.features import FeatureKernel
from kernelweave.partitions import algebra
from kernelweave.partitions.algebra import TIE_TOLERANCE
from kernelweave.partitions.empty import reseed_empty

# Rounds in a row without a new least J before a run ends.
PATIENCE = 10


@dataclass(frozen=True)
class ExchangedMeans:
    """Centres and clusters of the best round of one run."""

    labels: Ints  # (n,) the cluster whose centres are nearest over all views
    means: tuple[Floats, ...]  # per view (k, d_v)
    filled: Bools  # (k,) whether the cluster has centres
    history: tuple[float, ...]  # J of every round up to the one kept
    view_scatters: Floats  # (V,) share of every view in J of that round
    n_iter: int  # rounds taken
    converged: bool  # ended by itself
    totals: Floats  # (k,) weight of each cluster

    @property
    def objective(self) -> float:
        """J of the round kept."""
        return self.history[-1]


@dataclass(frozen=True)
class _Round:
    means: tuple[Floats, ...]
    filled: Bools
    scatters: Floats  # (V,)
    partition: Ints  # of the last view, which begins the next round

    @property
    def objective(self) -> float:
        """J of the round."""
        return float(self.scatters.sum())


class _View:
    """One view: the centres of a partition, and the partition of centres."""

    def __init__(self, op: FeatureKernel, weights: Floats, n_clusters: int) -> None:
        self.op = op
        self.weights = weights
        self.k = n_clusters
        self.diag = op.diag()
        self.slack = TIE_TOLERANCE * float(self.diag.max(initial=0.0))
        self.mass = float((weights * self.diag).sum())

    def means(self, labels: Ints) -> tuple[Floats, Floats, float]:
        """Return the means of a partition, their squared lengths (infinite where empty), and its scatter."""
        totals = algebra.cluster_weights(labels, self.weights, self.k)
        filled = totals > 0
        sums = self.op.feature_sums(labels, self.weights, self.k)
        means = sums / np.where(filled, totals, 1.0)[:, None]
        norms = np.where(filled, self.op.lengths(means), np.inf)
        return means, norms, max(self.mass - float((totals[filled] * norms[filled]).sum()), 0.0)

    def nearest(self, means: Floats, norms: Floats) -> Ints:
        """Return the nearest mean of every sample, with no cluster left empty that can be filled."""
        start = np.zeros(len(self.diag), dtype=np.intp)
        if not np.isfinite(norms[0]):
            start += int(np.argmax(np.isfinite(norms)))
        assignment = self.op.nearest_means(means, norms, np.ones(self.k), self.diag, start, self.slack)
        return reseed_empty(self.op.backend, assignment, self.weights, self.k, self.slack)


def exchange_kmeans(
    ops: Sequence[FeatureKernel], labels: Ints, weights: Floats, *, n_clusters: int, max_iter: int, tol: float = 0.0
) -> ExchangedMeans:
    """Exchange partitions until they repeat, or J has no new minimum for some rounds; keep the best round."""
    views = [_View(op, weights, n_clusters) for op in ops]
    noise = 16.0 * algebra.EPS * sum(view.mass for view in views)
    partition = np.array(labels, dtype=np.intp)
    kept = 0
    converged = False
    history: list[float] = []
    best: _Round | None = None
    while not converged and len(history) < max_iter:
        latest = _round(views, partition)
        history.append(latest.objective)
        if best is None or latest.objective < best.objective - max(tol * best.objective, noise):
            best = latest
            kept = len(history)
        converged = np.array_equal(latest.partition, partition) or len(history) - kept >= PATIENCE
        partition = latest.partition
    assert best is not None
    means, filled, assigned = _completed(ops, best, weights)
    totals = algebra.cluster_weights(assigned, weights, n_clusters)
    path = tuple(history[:kept])
    return ExchangedMeans(assigned, means, filled, path, best.scatters, len(history), converged, totals)


def _round(views: Sequence[_View], partition: Ints) -> _Round:
    """Let every view take the partition of the one before it; the first view, where runs begin, comes last."""
    means: list[Floats] = [np.empty(0)] * len(views)
    filled = np.ones(views[0].k, dtype=bool)
    scatters = np.zeros(len(views))
    for v in [*range(1, len(views)), 0]:
        means[v], norms, scatters[v] = views[v].means(partition)
        filled &= np.isfinite(norms)
        partition = views[v].nearest(means[v], norms)
    return _Round(tuple(means), filled, scatters, partition)


def joint_distances(ops: Sequence[FeatureKernel], means: Sequence[Floats], filled: Bools) -> Floats:
    """Return the squared distances to the centres summed over the views, infinite where a cluster has none."""
    distances = np.zeros((ops[0].n_samples, len(filled)))
    for op, centres in zip(ops, means, strict=True):
        distances += op.diag()[:, None] - 2.0 * np.asarray(op.Phi @ centres.T) + op.lengths(centres)
    return np.where(filled, np.maximum(distances, 0.0), np.inf)


def joint_slack(ops: Sequence[FeatureKernel]) -> float:
    """Return the difference up to which joint distances are equal."""
    return TIE_TOLERANCE * sum(float(op.diag().max(initial=0.0)) for op in ops)


def nearest_joint(distances: Floats, slack: float) -> Ints:
    """Return the first of the least distances, equal but for rounding."""
    return np.asarray((distances <= distances.min(axis=1, keepdims=True) + slack).argmax(axis=1))


def _completed(ops: Sequence[FeatureKernel], best: _Round, weights: Floats) -> tuple[tuple[Floats, ...], Bools, Ints]:
    """Return centres and labels; a cluster that no sample is nearest to over all views gets new centres.

    As in k-means, the sample farthest from its centres that is not alone with them.
    """
    means = [centres.copy() for centres in best.means]
    filled = best.filled.copy()
    slack = joint_slack(ops)
    for _ in range(2 * len(filled)):
        distances = joint_distances(ops, means, filled)
        labels = nearest_joint(distances, slack)
        counts = np.bincount(labels, weights > 0, len(filled))
        movable = (weights > 0) & (counts[labels] > 1)
        to_center = np.where(movable, distances[np.arange(len(labels)), labels], -1.0)
        empty = np.flatnonzero(counts == 0)
        if len(empty) == 0 or not to_center.max() > slack:
            break
        far = int(np.argmax(np.round(to_center * (TIE_TOLERANCE / slack), 9)))
        filled[empty[0]] = True
        for op, centres in zip(ops, means, strict=True):
            row = op.Phi[[far]]
            centres[empty[0]] = row.toarray()[0] if hasattr(row, "toarray") else row[0]
    return tuple(means), filled, labels
