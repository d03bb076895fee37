"""Which samples are judged or shown where there are too many for all.

Samples are judged without a look at their clusters, so that all models of a search, the command line and the report
judge the same ones: with one seed there is one draw. What is shown may be chosen by cluster.
"""

import numpy as np

from kernelweave.foundation.array_types import Bools, Ints
from kernelweave.foundation.random_streams import RandomState, streams

#: Most samples a silhouette is computed on unless the caller says otherwise: 32 MB of distances for each view.
MOST_JUDGED = 2_000
# Samples of every cluster that are shown, however small its share.
LEAST_OF_A_CLUSTER = 10


def draw(n_samples: int, count: int | None, random_state: RandomState, purpose: str) -> Ints:
    """Return ``count`` of the samples in their order, drawn without replacement; all where there are no more."""
    if count is None or count >= n_samples:
        return np.arange(n_samples)
    return np.sort(streams(random_state, 1, purpose)[0].choice(n_samples, count, replace=False))


def judged_samples(n_samples: int, count: int | None, random_state: RandomState) -> Ints:
    """Return the samples a criterion is computed on."""
    return draw(n_samples, count, random_state, "judged samples")


def shown_samples(labels: Ints, judged: Ints, most: int, random_state: RandomState) -> tuple[Ints, Ints]:
    """Return the samples to show with their silhouettes, and those to draw in a plane, both in their order.

    The first are the judged ones and, of clusters with few among them, some more. The second are those and others at
    random, ``most`` in all.
    """
    others = np.setdiff1d(np.arange(len(labels)), judged)
    others = streams(random_state, 1, "displayed samples")[0].permutation(others)
    room = max(0, most - len(judged))
    missing = _fills_small_clusters(labels, judged, others)
    added = others[missing][:room]
    rest = others[~missing][: room - len(added)]
    with_silhouettes = np.concatenate([judged, added])
    return np.sort(with_silhouettes), np.sort(np.concatenate([with_silhouettes, rest]))


def _fills_small_clusters(labels: Ints, judged: Ints, others: Ints) -> Bools:
    """Return which of the others bring their cluster, in this order, to the least number that is shown of it."""
    counts = np.bincount(labels[judged], minlength=int(labels.max()) + 1)
    least = max(1, min(LEAST_OF_A_CLUSTER, len(judged) // len(counts)))
    by_cluster = np.argsort(labels[others], kind="stable")
    sizes = np.bincount(labels[others], minlength=len(counts))
    first = np.cumsum(sizes) - sizes
    rank = np.empty(len(others), dtype=np.intp)
    rank[by_cluster] = np.arange(len(others)) - first[labels[others][by_cluster]]
    return np.asarray(rank + counts[labels[others]] < least)
