"""What happens to a cluster that lost all its samples, or whose centre lies on another one's.

Policy: the sample farthest from its centre founds the cluster anew, unless it is the last of its own cluster.
This lowers the objective further, so descent stays monotone. Where no sample lies away from its centre there are
fewer distinct samples than clusters, and the cluster stays empty: it has no centre and is never the nearest.
Clusters whose centres coincide (equal samples, split by the start) are merged by the solvers, and the freed one is
founded anew in the same way.
"""

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints

#: Relative difference below which two distances are equal.
TIE = 1e-12


def reseed_empty(labels: Ints, distances: Floats, weights: Floats, n_clusters: int, slack: float) -> Ints:
    """Return labels in which every empty cluster got the farthest sample that can be spared."""
    totals = np.bincount(labels, weights, n_clusters)
    counts = np.bincount(labels, weights > 0, n_clusters)
    empty = np.flatnonzero(totals <= 0)
    if len(empty) == 0:
        return labels
    labels = labels.copy()
    # Rounded, so that of samples equally far the first is taken whatever the storage of the kernel.
    rounded = np.round(distances * (TIE / slack), 9) if slack > 0 else distances
    far = np.argsort(-np.where(weights > 0, rounded, -np.inf), kind="stable")
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
