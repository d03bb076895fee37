"""What happens to a cluster that lost all its samples, or whose centre lies on another one's.

Policy: the sample farthest from its centre founds the cluster anew, unless it is the last of its own cluster.
This lowers the objective further, so descent stays monotone. Where no sample lies away from its centre there are
fewer distinct samples than clusters, and the cluster stays empty: it has no centre and is never the nearest.
Clusters whose centres coincide (equal samples, split by the start) become one, and the freed one is founded anew in
the same way.
"""

import numpy as np

from kernelweave.foundation._typing import Floats, Ints


def reseed_empty(labels: Ints, distances: Floats, weights: Floats, n_clusters: int, slack: float) -> Ints:
    """Return labels in which every empty cluster got the farthest sample that can be spared."""
    totals = np.bincount(labels, weights, n_clusters)
    counts = np.bincount(labels, weights > 0, n_clusters)
    empty = np.flatnonzero(totals <= 0)
    if len(empty) == 0:
        return labels
    labels = labels.copy()
    far = np.argsort(-np.where(weights > 0, distances, -np.inf), kind="stable")
    waiting = iter(empty.tolist())
    target = next(waiting)
    for sample in far:
        if not distances[sample] > slack or weights[sample] <= 0:
            break
        if counts[labels[sample]] <= 1:
            continue
        counts[labels[sample]] -= 1
        labels[sample] = target
        if (target := next(waiting, -1)) < 0:
            break
    return labels


def merge_coinciding(sums: Floats, totals: Floats, norms: Floats, labels: Ints, weights: Floats, slack: float) -> Ints:
    """Return labels in which clusters with equal centres carry the lowest of their numbers."""
    filled = np.flatnonzero(totals > 0)
    if len(filled) < 2:
        return labels
    products = np.stack([np.bincount(labels, weights * row, len(totals)) for row in sums[filled]])[:, filled]
    scale = totals[filled][:, None] * totals[filled][None, :]
    gaps = norms[filled][:, None] + norms[filled][None, :] - 2.0 * products / scale
    first = filled[np.argmax(np.abs(gaps) <= slack, axis=1)]
    if np.array_equal(first, filled):
        return labels
    target = np.arange(len(totals))
    target[filled] = np.minimum(first, filled)
    return target[labels]
