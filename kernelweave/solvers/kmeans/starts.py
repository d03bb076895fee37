"""Starting partitions for kernel k-means."""

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions import algebra
from kernelweave.partitions.empty import TIE
from kernelweave.partitions.state import cluster_state
from kernelweave.solvers.kmeans.minmax import drawn_minmax

INITS = ("k-means++", "random", "random_partition", "minmax")


def start_labels(op: KernelOperator, init: str, weights: Floats, n_clusters: int, rng: np.random.Generator) -> Ints:
    """Return a starting partition.

    ``"k-means++"``, ``"random"`` samples as centres, ``"random_partition"``, or ``"minmax"``: where MinMax k-means ends
    from random samples.
    """
    if init == "minmax":

        def draw() -> Ints:
            return start_labels(op, "random", weights, n_clusters, rng)

        return drawn_minmax(op, draw, weights, n_clusters=n_clusters).labels
    if init == "random_partition":
        return random_partition(len(weights), n_clusters, rng)
    if init == "random":
        chosen = rng.choice(len(weights), n_clusters, replace=False, p=weights / weights.sum())
        gaps = algebra.distances_to_samples(op, chosen, op.diag())
        # The first of those equal but for rounding, so that the storage of the kernel does not decide.
        return np.asarray(gaps <= gaps.min(axis=1, keepdims=True) + TIE * op.scale()).argmax(axis=1)
    return kmeans_plusplus(op, weights, n_clusters, rng)


def extended_labels(op: KernelOperator, found: Ints, chosen: Ints, weights: Floats, n_clusters: int) -> Ints:
    """Return labels of all samples: each goes to the nearest centre of those ``found`` for the ``chosen``."""
    labels = np.zeros(len(weights), dtype=np.intp)
    part = np.zeros(len(weights))
    labels[chosen] = found
    part[chosen] = weights[chosen]
    return cluster_state(op, labels, part, n_clusters).nearest()[0]


def random_partition(n: int, n_clusters: int, rng: np.random.Generator) -> Ints:
    """Return random labels in which every cluster has a member."""
    labels = rng.integers(n_clusters, size=n)
    labels[rng.permutation(n)[:n_clusters]] = np.arange(n_clusters)
    return labels


def kmeans_plusplus(op: KernelOperator, weights: Floats, n_clusters: int, rng: np.random.Generator) -> Ints:
    """Return labels by centres drawn far apart: each the best of a few draws with probability w * distance^2.

    Arthur and Vassilvitskii (2007), with the greedy draws that scikit-learn uses too.
    """
    diag = op.diag()
    trials = 2 + int(np.log(n_clusters))
    first = _draw(weights, weights, 1, rng)
    closest = np.maximum(algebra.distances_to_samples(op, first, diag)[:, 0], 0.0)
    labels = np.zeros(len(weights), dtype=np.intp)
    for c in range(1, n_clusters):
        drawn = _draw(weights * closest, weights, trials, rng)
        gaps = np.maximum(algebra.distances_to_samples(op, drawn, diag), 0.0)
        best = int(np.argmin(weights @ np.minimum(closest[:, None], gaps)))
        nearer = gaps[:, best] < closest
        labels[nearer] = c
        closest[nearer] = gaps[nearer, best]
    return labels


def _draw(mass: Floats, fallback: Floats, count: int, rng: np.random.Generator) -> Ints:
    """Return samples drawn with probability proportional to ``mass``, or ``fallback`` where there is none."""
    cumulative = np.cumsum(mass if mass.sum() > 0 else fallback)
    drawn = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
    return np.minimum(drawn, len(mass) - 1)
