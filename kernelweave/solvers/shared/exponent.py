"""The exponent of view weights, chosen by how well clusters survive resampling; no labels are involved.

Rule        for every exponent, cluster subsets of the samples and compare the clusters of any two where they overlap
            (adjusted Rand index, mean over all pairs). Of the exponents within ``EQUAL_STABILITIES`` of the most stable
            one the largest is taken: it discards least. p = 1 is not tried: a single view is stable whether it tells
            the clusters apart or not
Cost        ``SUBSETS`` subsets of at most ``SIZE`` samples (of ``SIZE / SHARE`` drawn beforehand where there are more),
            one start each, and one descent for each exponent
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from sklearn.metrics import adjusted_rand_score

from kernelweave.foundation.array_types import Floats, Ints

#: Exponents tried; infinity stands for equal weights.
EXPONENTS = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, np.inf)
# Subsets drawn, their share of the samples, and the most samples of one.
SUBSETS = 10
SHARE = 0.7
SIZE = 1000
# Stabilities closer than this are equal.
EQUAL_STABILITIES = 0.01


@dataclass(frozen=True)
class ExponentChoice:
    """The exponent chosen and the stability of every one tried."""

    p: float
    exponents: Floats
    stabilities: Floats


def stable_exponent(
    labels_of: Callable[[Ints, np.random.Generator], Sequence[Ints]],
    samples: Ints,
    rngs: Sequence[np.random.Generator],
    n_clusters: int,
) -> ExponentChoice:
    """Choose among ``EXPONENTS``; ``labels_of`` returns the labels of a subset of the samples for each of them."""
    pool = int(SIZE / SHARE)
    if len(samples) > pool:  # subsets of more samples than this would have too few in common
        samples = np.sort(rngs[0].choice(samples, max(pool, n_clusters), replace=False))
    size = max(int(np.ceil(SHARE * len(samples))), min(n_clusters, len(samples)))
    subsets = [np.sort(rng.choice(samples, size, replace=False)) for rng in rngs]
    clusterings = [labels_of(subset, rng) for subset, rng in zip(subsets, rngs, strict=True)]
    scores = np.zeros((len(EXPONENTS), len(subsets) * (len(subsets) - 1) // 2))
    for pair, (a, b) in enumerate(combinations(range(len(subsets)), 2)):
        _, here, there = np.intersect1d(subsets[a], subsets[b], assume_unique=True, return_indices=True)
        for i in range(len(EXPONENTS)):
            scores[i, pair] = adjusted_rand_score(clusterings[a][i][here], clusterings[b][i][there])
    stabilities = scores.mean(axis=1)
    best = int(np.flatnonzero(stabilities >= stabilities.max() - EQUAL_STABILITIES)[-1])
    return ExponentChoice(float(EXPONENTS[best]), np.array(EXPONENTS), stabilities)
