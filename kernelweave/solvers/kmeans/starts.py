"""Starting partitions for kernel k-means."""

import numpy as np

from kernelweave.backends import BackendArray
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions import algebra
from kernelweave.partitions.algebra import TIE_TOLERANCE
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
        return random_partition(op.n_samples, n_clusters, rng)
    draw_labels = random_samples if init == "random" else _spread_out
    return op.backend.host(draw_labels(op, weights, n_clusters, rng))


def extended_labels(op: KernelOperator, known: Ints, samples: Ints, weights: Floats, n_clusters: int) -> Ints:
    """Return labels of all samples: each goes to the nearest centre of the clusters that ``known`` makes of some."""
    labels = np.zeros(len(weights), dtype=np.intp)
    counted = np.zeros(len(weights))
    labels[samples] = known
    counted[samples] = weights[samples]
    return op.backend.host(op.partition(labels, counted, n_clusters).nearest().labels)


def random_partition(n: int, n_clusters: int, rng: np.random.Generator) -> Ints:
    """Return random labels in which every cluster has a member."""
    labels = rng.integers(n_clusters, size=n)
    labels[rng.permutation(n)[:n_clusters]] = np.arange(n_clusters)
    return labels


def random_samples(op: KernelOperator, weights: Floats, n_clusters: int, rng: np.random.Generator) -> BackendArray:
    """Return labels by the nearest of samples drawn as centres."""
    backend = op.backend
    chosen = backend.draw_distinct(backend.array(weights), n_clusters, rng)
    distances = algebra.distances_to_samples(op, chosen, op.diag())
    # The first of those equal except for rounding, so that the storage of the kernel does not decide.
    return backend.first_nearest(distances, TIE_TOLERANCE * op.scale())


def _spread_out(op: KernelOperator, sample_weights: Floats, n_clusters: int, rng: np.random.Generator) -> BackendArray:
    """Return labels by centres drawn far apart: each the best of a few draws with probability w * distance^2.

    Arthur and Vassilvitskii (2007), with the greedy draws that scikit-learn uses too.
    """
    backend = op.backend
    weights = backend.array(sample_weights)
    diag = op.diag()
    # Distances that are equal except for rounding leave a sample where it is, so that storage and device do not decide.
    tie = TIE_TOLERANCE * op.scale()
    total_weight = backend.total(weights)
    trials = draws_of_a_center(n_clusters)
    first = backend.draw(weights, rng.random(1))
    closest = backend.maximum(algebra.distances_to_samples(op, first, diag)[:, 0], 0.0)
    labels = backend.labels(np.zeros(op.n_samples, dtype=np.intp))
    for c in range(1, n_clusters):
        mass = weights * closest
        drawn = backend.draw(mass if backend.total(mass) > 0 else weights, rng.random(trials))
        distances = backend.maximum(algebra.distances_to_samples(op, drawn, diag), 0.0)
        totals = backend.dot(weights, backend.minimum(distances, closest[:, None]))
        best = distances[:, _first_least(totals, tie * total_weight)]
        nearer = best < closest - tie
        labels = backend.where(nearer, c, labels)
        closest = backend.where(nearer, best, closest)
        del distances, best, nearer  # or they would lie beside those of the next draw
    return labels


def _first_least(totals: Floats, tie: float) -> int:
    """Return the place of the least number, the first of those that differ by no more than ``tie``.

    Two samples that are nearest to each other leave the same total, and rounding must not decide between them.
    """
    best = 0
    for place, total in enumerate(totals):
        if total < totals[best] - tie:
            best = place
    return best


def draws_of_a_center(n_clusters: int) -> int:
    """Return how many samples are drawn for every centre but the first, of which the best is taken."""
    return 2 + int(np.log(n_clusters))
