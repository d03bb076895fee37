"""The exponent of view weights, chosen by how well clusters survive resampling; no labels are involved.

Rule        for every exponent, cluster subsets of the samples and compare the clusters of any two where they overlap
            (adjusted Rand index, mean over all pairs). Of the exponents within ``EQUAL_STABILITIES`` of the most stable
            one the largest is taken: it discards least. p = 1 is not tried: a single view is stable whether it tells
            the clusters apart or not
Cost        at most ``SUBSETS`` subsets of at most ``SIZE`` samples, or ``SAMPLES_A_CLUSTER`` for each cluster, of
            ``SIZE / SHARE`` drawn beforehand where there are more. After two subsets, exponents whose clusters are the
            same on both count as one, the largest of them. After ``FIRST_SUBSETS`` those that are ``HOPELESS`` are
            given up, and one that is left alone is chosen. So the work does not grow with the data: it is at most 35
            descents on subsets, and 14 where all exponents agree
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.solvers.shared.rand_index import rand_index

#: Exponents tried; infinity stands for equal weights.
EXPONENTS = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, np.inf)
# Subsets drawn, those that all exponents are tried on, their share of the samples, and the most samples of one.
SUBSETS = 5
FIRST_SUBSETS = 3
SHARE = 0.7
SIZE = 500
SAMPLES_A_CLUSTER = 8
# An exponent so much less stable than the best is not tried any more.
HOPELESS = 0.1
# Stabilities closer than this are equal.
EQUAL_STABILITIES = 0.01


@dataclass(frozen=True)
class ExponentChoice:
    """The exponent chosen and the stability of every one tried."""

    p: float
    exponents: Floats
    stabilities: Floats


def stable_exponent(
    labels_of: Callable[[Ints, np.random.Generator, Sequence[float]], Sequence[Ints]],
    samples: Ints,
    rngs: Sequence[np.random.Generator],
    n_clusters: int,
) -> ExponentChoice:
    """Choose among ``EXPONENTS``; ``labels_of`` returns the labels of a subset of the samples for some of them."""
    most = max(SIZE, SAMPLES_A_CLUSTER * n_clusters)
    pool = int(most / SHARE)
    if len(samples) > pool:  # subsets of more samples than this would have too few in common
        samples = np.sort(rngs[0].choice(samples, pool, replace=False))
    size = max(int(np.ceil(SHARE * len(samples))), min(n_clusters, len(samples)))
    subsets = [np.sort(rng.choice(samples, size, replace=False)) for rng in rngs]
    tried = list(range(len(EXPONENTS)))
    stands_for = np.arange(len(EXPONENTS))
    stabilities = np.ones(len(EXPONENTS))
    clusterings: list[dict[int, Ints]] = []
    agreements: list[list[float]] = [[] for _ in EXPONENTS]
    for subset, rng in zip(subsets, rngs, strict=True):
        clusterings.append(dict(zip(tried, labels_of(subset, rng, [EXPONENTS[i] for i in tried]), strict=True)))
        here = len(clusterings) - 1
        for there in range(here):
            _, one, other = np.intersect1d(subset, subsets[there], assume_unique=True, return_indices=True)
            for i in tried:
                agreements[i].append(rand_index(clusterings[here][i][one], clusterings[there][i][other]))
        if here > 0:
            stabilities[tried] = [np.mean(agreements[i]) for i in tried]
        if here == 1:
            stands_for = _largest_of_the_same(clusterings)
            tried = sorted(set(stands_for.tolist()))
        if here + 1 >= FIRST_SUBSETS:
            best = stabilities[tried].max()
            tried = [i for i in tried if stabilities[i] >= best - HOPELESS]
        if here > 0 and len(tried) == 1:
            break
    chosen = max(i for i in tried if stabilities[i] >= stabilities[tried].max() - EQUAL_STABILITIES)
    return ExponentChoice(float(EXPONENTS[chosen]), np.array(EXPONENTS), stabilities[stands_for])


def _largest_of_the_same(clusterings: Sequence[dict[int, Ints]]) -> Ints:
    """Return for every exponent the largest one whose clusters are the same in all of these clusterings."""
    largest = np.arange(len(EXPONENTS))
    for i in reversed(range(len(EXPONENTS))):
        candidates = sorted(set(largest[i + 1 :].tolist()), reverse=True)
        largest[i] = next((j for j in candidates if _same_clusters(clusterings, i, j)), i)
    return largest


def _same_clusters(clusterings: Sequence[dict[int, Ints]], i: int, j: int) -> bool:
    """Whether the clusters of two exponents differ by no more than stabilities that are equal."""
    return all(rand_index(labels[i], labels[j]) >= 1.0 - EQUAL_STABILITIES for labels in clusterings)
