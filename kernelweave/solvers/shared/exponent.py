"""The exponent of view weights, chosen by how well clusters survive resampling; no labels are involved.

Rule        for every exponent, cluster subsets of the samples and compare the clusters of any two where they overlap
            (adjusted Rand index, mean over all pairs). Of the exponents within ``EQUAL_STABILITIES`` of the most stable
            one the largest is taken: it discards least. p = 1 is not tried: a single view is stable whether it tells
            the clusters apart or not
Cost        at most one descent for each exponent on each of two subsets: half of the samples, but at most ``SIZE``, or
            ``SAMPLES_A_CLUSTER`` for each cluster where that is more. Fewer than ``FEW`` samples have three subsets, of
            more than half. Weights go from equal ones to a corner as the exponent falls, so where the least and the
            largest exponent have the same clusters, no other is tried
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.solvers.shared.rand_index import rand_index

#: Exponents tried; infinity stands for equal weights. Seven of them from 1.25 took twice as long and chose worse on the
#: multi-view sets of the benchmarks: neighbours differ by less than two subsets can tell.
EXPONENTS = (1.5, 3.0, np.inf)
# Subsets drawn, their share of the samples, and the most samples of one.
SUBSETS = 2
SHARE = 0.5
SIZE = 500
SAMPLES_A_CLUSTER = 8
# Two subsets of half of so few samples would have too few in common: the share grows as they become fewer, up to the
# largest, and there is a subset more.
FEW = 200
SUBSETS_OF_FEW = 3
LARGEST_SHARE = 0.7
# Stabilities closer than this are equal: so far the difference between two exponents varies from draw to draw of the
# subsets (standard deviation 0.047, the mean over 62 cases of benchmarks/RESULTS.md).
EQUAL_STABILITIES = 0.05
# Clusters of one subset whose adjusted Rand index is at least this are the same.
SAME_CLUSTERS = 0.99


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
    """Choose among ``EXPONENTS``; ``trial_of`` takes a subset of the samples and returns what clusters it.

    There are ``SUBSETS_OF_FEW`` generators, one for each subset that may be drawn.
    """
    subsets = _drawn(samples, rngs, n_clusters)
    clusterings = [_clusterings(trial_of(subset, rng)) for subset, rng in zip(subsets, rngs, strict=False)]
    agreements = []
    for one, other in combinations(range(len(subsets)), 2):
        _, here, there = np.intersect1d(subsets[one], subsets[other], assume_unique=True, return_indices=True)
        pairs = zip(clusterings[one], clusterings[other], strict=True)
        agreements.append([rand_index(labels[here], others[there]) for labels, others in pairs])
    stabilities = np.mean(agreements, axis=0)
    stable = np.flatnonzero(stabilities >= stabilities.max() - EQUAL_STABILITIES)
    return ExponentChoice(float(EXPONENTS[stable[-1]]), np.array(EXPONENTS), stabilities)


def _drawn(samples: Ints, rngs: Sequence[np.random.Generator], n_clusters: int) -> list[Ints]:
    """Return subsets of the samples, each in order, one from each of the first generators."""
    pool = int(max(SIZE, SAMPLES_A_CLUSTER * n_clusters) / SHARE)
    if len(samples) > pool:  # subsets of more samples than this would have too few in common
        samples = np.sort(rngs[0].choice(samples, pool, replace=False))
    n = len(samples)
    size = max(SHARE * n, min(LARGEST_SHARE * n, SHARE * FEW), min(n_clusters, n))
    count = SUBSETS if n >= FEW else SUBSETS_OF_FEW
    return [np.sort(rng.choice(samples, int(np.ceil(size)), replace=False)) for rng in rngs[:count]]


def _clusterings(trial: Trial) -> list[Ints]:
    """Return the labels of a subset for all exponents; between two with the same clusters none is tried."""
    known: dict[int, Ints] = {}
    wanted = [0, len(EXPONENTS) - 1]
    while wanted:
        known |= zip(wanted, trial([EXPONENTS[i] for i in wanted]), strict=True)
        wanted = []
        for lo, hi in pairwise(sorted(known)):
            if hi - lo > 1 and rand_index(known[lo], known[hi]) >= SAME_CLUSTERS:
                known |= dict.fromkeys(range(lo + 1, hi), known[hi])
            elif hi - lo > 1:
                wanted.append((lo + hi) // 2)
    return [known[i] for i in range(len(EXPONENTS))]
