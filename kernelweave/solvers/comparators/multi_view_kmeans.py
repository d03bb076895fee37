"""k-means of several views that exchange their partitions: the centres of a view follow the partition of another.

Objective   none is minimised for certain; J = sum over the views of the squared distances to the means of the partition
            that came from the view before is what rounds are compared by
Input       the features of every view, which samples it has, and a starting partition, that of the first view
Cost        O(n d k) per iteration, d the features of all views
Guarantee   J of the result is the least of all rounds. With one view this is k-means, and J falls
Source      PhD 1.2.3; Bickel and Scheffer, ICDM 2004, for two views; here any number, each handing on to the next

Samples that a view lacks keep the cluster that the last view that has them gave them, and are not part of its scatter.
A view cannot choose a cluster that none of its samples came in with; where distances are added up over the views, the
centre of such a cluster is the mean of the view. Samples without a starting cluster (-1) get one before the first
round, that of the nearest mean in a view that has them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernelweave.backends import Assignment
from kernelweave.foundation.array_types import Bools, Floats, Index, Ints
from kernelweave.kernels.features import FeatureKernel
from kernelweave.partitions import algebra
from kernelweave.partitions.algebra import TIE_TOLERANCE
from kernelweave.partitions.empty import reseed_empty
from kernelweave.solvers.comparators.exchange import next_to_learn, turns

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
    converged: bool  # before max_iter
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

    def __init__(self, op: FeatureKernel, samples: Index, weights: Floats, n_clusters: int) -> None:
        self.op = op
        self.samples = samples  # which of all samples the rows are
        self.weights = weights[samples]
        self.k = n_clusters
        self.diag = op.diag()
        self.slack = TIE_TOLERANCE * float(self.diag.max(initial=0.0))
        self.mass = float((self.weights * self.diag).sum())
        lacking = weights > 0
        lacking[samples] = False
        self.lacking = np.flatnonzero(lacking)  # of positive weight

    @cached_property
    def mean(self) -> Floats:
        """The mean of the samples that the view has."""
        everyone = np.zeros(len(self.weights), dtype=np.intp)
        return np.asarray(self.op.feature_sums(everyone, self.weights, 1)[0] / self.weights.sum())

    def row(self, sample: int) -> Floats:
        """Return the features of a sample, the mean of the view where it is absent."""
        places = [sample] if isinstance(self.samples, slice) else np.flatnonzero(self.samples == sample)
        if len(places) == 0:
            return self.mean
        row = self.op.Phi[places]
        return np.asarray(row.toarray()[0] if hasattr(row, "toarray") else row[0])

    def means(self, labels: Ints, weights: Floats) -> tuple[Floats, Floats, float]:
        """Return the means of a partition, their squared lengths (infinite where empty), and its scatter."""
        totals = algebra.cluster_weights(labels, weights, self.k)
        filled = totals > 0
        sums = self.op.feature_sums(labels, weights, self.k)
        means = sums / np.where(filled, totals, 1.0)[:, None]
        norms = np.where(filled, self.op.lengths(means), np.inf)
        return means, norms, max(self.mass - float((totals[filled] * norms[filled]).sum()), 0.0)

    def nearest(self, means: Floats, norms: Floats) -> Assignment:
        """Return the nearest mean of every sample."""
        start = np.zeros(len(self.diag), dtype=np.intp)
        if not np.isfinite(norms[0]):
            start += int(np.argmax(np.isfinite(norms)))
        return self.op.nearest_means(means, norms, np.ones(self.k), self.diag, start, self.slack)

    def turn(self, partition: Ints) -> tuple[Floats, Bools, float, Ints]:
        """Take a partition; return its means and which clusters have any, its scatter, and the partition handed on.

        No cluster is left empty that can be filled; one that samples outside the view are in is not empty.
        """
        means, norms, scatter = self.means(partition[self.samples], self.weights)
        elsewhere = np.bincount(partition[self.lacking], minlength=self.k)
        unknown = np.isinf(norms) & (elsewhere > 0)
        if unknown.any():
            means[unknown] = self.mean
        assignment = self.nearest(means, norms)
        handed_on = partition.copy()
        handed_on[self.samples] = reseed_empty(self.op.backend, assignment, self.weights, self.k, self.slack, elsewhere)
        return means, np.isfinite(norms) | unknown, scatter, handed_on

    def completed(self, partition: Ints) -> Ints:
        """Return the partition with samples of the view that have no cluster in that of the nearest mean."""
        labels = partition[self.samples]
        known = labels >= 0
        means, norms, _ = self.means(np.where(known, labels, 0), np.where(known, self.weights, 0.0))
        result = partition.copy()
        result[self.samples] = np.where(known, labels, self.nearest(means, norms).labels)
        return result


def exchange_kmeans(
    ops: Sequence[FeatureKernel],
    labels: Ints,
    weights: Floats,
    *,
    n_clusters: int,
    max_iter: int,
    tol: float = 0.0,
    samples: Sequence[Index] | None = None,
) -> ExchangedMeans:
    """Exchange partitions until they repeat, or J has no new minimum for some rounds; keep the best round.

    ``samples`` says which of all samples the rows of every view are, where it lacks some; ``labels`` are then -1 where
    nothing is known.
    """
    samples = [slice(None)] * len(ops) if samples is None else samples
    views = [_View(op, here, weights, n_clusters) for op, here in zip(ops, samples, strict=True)]
    noise = 16.0 * algebra.EPS * sum(view.mass for view in views)
    partition = np.array(labels, dtype=np.intp)
    while (v := next_to_learn(partition >= 0, samples, weights)) is not None:
        partition = views[v].completed(partition)
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
    means, filled, assigned = _completed(views, best, weights)
    totals = algebra.cluster_weights(assigned, weights, n_clusters)
    path = tuple(history[:kept])
    return ExchangedMeans(assigned, means, filled, path, best.scatters, len(history), converged, totals)


def _round(views: Sequence[_View], partition: Ints) -> _Round:
    """Let every view take the partition of the one before it."""
    means: list[Floats] = [np.empty(0)] * len(views)
    filled = np.ones(views[0].k, dtype=bool)
    scatters = np.zeros(len(views))
    for v in turns(len(views)):
        means[v], known, scatters[v], partition = views[v].turn(partition)
        filled &= known
    return _Round(tuple(means), filled, scatters, partition)


def joint_distances(
    ops: Sequence[FeatureKernel], means: Sequence[Floats], filled: Bools, samples: Sequence[Index], n_samples: int
) -> Floats:
    """Return the squared distances to the centres summed over the views, infinite where a cluster has none.

    Those of a sample are summed over the views that it is in; ``samples`` says which of all the rows of a view are.
    """
    distances = np.zeros((n_samples, len(filled)))
    for op, centres, here in zip(ops, means, samples, strict=True):
        if op.n_samples > 0:
            distances[here] += op.diag()[:, None] - 2.0 * np.asarray(op.Phi @ centres.T) + op.lengths(centres)
    return np.where(filled, np.maximum(distances, 0.0), np.inf)


def joint_slack(ops: Sequence[FeatureKernel]) -> float:
    """Return the difference up to which joint distances are equal."""
    return TIE_TOLERANCE * sum(float(op.diag().max(initial=0.0)) for op in ops)


def nearest_joint(distances: Floats, slack: float) -> Ints:
    """Return the first of the least distances, equal except for rounding."""
    return np.asarray((distances <= distances.min(axis=1, keepdims=True) + slack).argmax(axis=1))


def _completed(views: Sequence[_View], best: _Round, weights: Floats) -> tuple[tuple[Floats, ...], Bools, Ints]:
    """Return centres and labels; a cluster that no sample is nearest to over all views gets new centres.

    As in k-means, the sample farthest from its centres that is not alone with them.
    """
    ops = [view.op for view in views]
    samples = [view.samples for view in views]
    means = [centres.copy() for centres in best.means]
    filled = best.filled.copy()
    slack = joint_slack(ops)
    for _ in range(2 * len(filled)):
        distances = joint_distances(ops, means, filled, samples, len(weights))
        labels = nearest_joint(distances, slack)
        counts = np.bincount(labels, weights > 0, len(filled))
        movable = (weights > 0) & (counts[labels] > 1)
        to_center = np.where(movable, distances[np.arange(len(labels)), labels], -1.0)
        empty = np.flatnonzero(counts == 0)
        if len(empty) == 0 or not to_center.max() > slack:
            break
        far = int(np.argmax(np.round(to_center * (TIE_TOLERANCE / slack), 9)))
        filled[empty[0]] = True
        for view, centres in zip(views, means, strict=True):
            centres[empty[0]] = view.row(far)
    return tuple(means), filled, labels
