"""The exponent of view weights, chosen by how well clusters survive resampling; no labels are involved.

Rule        for every exponent, cluster subsets of the samples and compare the clusters of any two where they overlap
            (adjusted Rand index, mean over all pairs). Of the exponents within ``EQUAL_STABILITIES`` of the most stable
            one the largest is taken: it discards least. p = 1 is not tried: a single view is stable whether it tells
            the clusters apart or not
Cost        at most ``SUBSETS`` subsets of at most ``SIZE`` samples, or ``SAMPLES_A_CLUSTER`` for each cluster, of
            ``SIZE / SHARE`` drawn beforehand where there are more. Weights go from equal ones to a corner as the
            exponent falls, so where two exponents have the same clusters, those between them are taken to have them,
            too, and are not tried. After two subsets, exponents whose clusters are the same on both count as one, the
            largest of them, those that are ``HOPELESS`` are given up, and one that is left alone is chosen. So the work
            does not grow with the data: it is at most 21 descents on subsets, and 4 where all exponents agree
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.solvers.shared.rand_index import rand_index

#: Exponents tried; infinity stands for equal weights.
EXPONENTS = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, np.inf)
# Subsets drawn, their share of the samples, and the most samples of one. With five subsets the choice takes twice as
# long and was no better on the multi-view sets of the benchmarks; with two it was worse.
SUBSETS = 3
SHARE = 0.7
SIZE = 500
SAMPLES_A_CLUSTER = 8
# An exponent so much less stable than the best on two subsets is not tried any more.
HOPELESS = 0.2
# Stabilities closer than this are equal.
EQUAL_STABILITIES = 0.01


@dataclass(frozen=True)
class ExponentChoice:
    """The exponent chosen and the stability of every one tried."""

    p: float
    exponents: Floats
    stabilities: Floats


#: Returns the labels of one subset for some exponents.
Trial = Callable[[Sequence[float]], Sequence[Ints]]


def stable_exponent(
    trial_of: Callable[[Ints, np.random.Generator], Trial],
    samples: Ints,
    rngs: Sequence[np.random.Generator],
    n_clusters: int,
) -> ExponentChoice:
    """Choose among ``EXPONENTS``; ``trial_of`` takes a subset of the samples and returns what clusters it."""
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
    ends = [0, len(EXPONENTS) - 1]
    for here, (subset, rng) in enumerate(zip(subsets, rngs, strict=True)):
        trial = trial_of(subset, rng)
        # Those left after two subsets have different clusters.
        clusterings.append(_from_ends(trial, ends) if here < 2 else _tried(trial, tried))
        for there in range(here):
            _, one, other = np.intersect1d(subset, subsets[there], assume_unique=True, return_indices=True)
            for i in tried:
                agreements[i].append(rand_index(clusterings[here][i][one], clusterings[there][i][other]))
        if here == 0:
            ends = _ends(clusterings[0])
            continue
        stabilities[tried] = [np.mean(agreements[i]) for i in tried]
        if here == 1:
            stands_for = _largest_of_the_same(clusterings)
            tried = sorted(set(stands_for.tolist()))
        best = stabilities[tried].max()
        tried = [i for i in tried if stabilities[i] >= best - HOPELESS]
        if len(tried) == 1:
            break
    chosen = max(i for i in tried if stabilities[i] >= stabilities[tried].max() - EQUAL_STABILITIES)
    return ExponentChoice(float(EXPONENTS[chosen]), np.array(EXPONENTS), stabilities[stands_for])


def _tried(trial: Trial, places: Sequence[int]) -> dict[int, Ints]:
    """Return the labels of a subset for the exponents at these places."""
    return dict(zip(places, trial([EXPONENTS[i] for i in places]), strict=True))


def _from_ends(trial: Trial, ends: Sequence[int]) -> dict[int, Ints]:
    """Return the labels of a subset for all exponents; between two with the same clusters none is tried."""
    known: dict[int, Ints] = {}
    wanted = list(ends)
    while wanted:
        known |= _tried(trial, wanted)
        wanted = []
        for lo, hi in pairwise(sorted(known)):
            if hi - lo > 1 and _same(known[lo], known[hi]):
                known |= dict.fromkeys(range(lo + 1, hi), known[hi])
            elif hi - lo > 1:
                wanted.append((lo + hi) // 2)
    return known


def _ends(labels: dict[int, Ints]) -> list[int]:
    """Return the first and the last exponent, and those on both sides of where clusters change."""
    changes = [i for i in range(len(labels) - 1) if not _same(labels[i], labels[i + 1])]
    return sorted({0, len(labels) - 1, *changes, *(i + 1 for i in changes)})


def _largest_of_the_same(clusterings: Sequence[dict[int, Ints]]) -> Ints:
    """Return for every exponent the largest one whose clusters are the same in all of these clusterings."""
    largest = np.arange(len(EXPONENTS))
    for i in reversed(range(len(EXPONENTS))):
        candidates = sorted(set(largest[i + 1 :].tolist()), reverse=True)
        largest[i] = next((j for j in candidates if _same_clusters(clusterings, i, j)), i)
    return largest


def _same_clusters(clusterings: Sequence[dict[int, Ints]], i: int, j: int) -> bool:
    """Whether the clusters of two exponents differ by no more than stabilities that are equal."""
    return all(_same(labels[i], labels[j]) for labels in clusterings)


def _same(one: Ints, other: Ints) -> bool:
    """Whether clusters differ by no more than stabilities that are equal."""
    return rand_index(one, other) >= 1.0 - EQUAL_STABILITIES
