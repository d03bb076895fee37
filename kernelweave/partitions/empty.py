"""What happens to a cluster that lost all its samples: it takes the sample farthest from its centre."""

import numpy as np

from kernelweave.backends import Assignment, Backend, BackendArray
from kernelweave.foundation.array_types import Ints
from kernelweave.partitions.algebra import TIE_TOLERANCE


def reseed_empty(
    backend: Backend,
    assignment: Assignment,
    weights: BackendArray,
    n_clusters: int,
    tolerance: float,
    elsewhere: Ints | None = None,
) -> BackendArray:
    """Return the labels of an assignment, every empty cluster given the farthest sample that can be spared.

    The last sample of a cluster is not taken from it, and one that lies within ``tolerance`` of its centre is not
    taken at all: there are then fewer distinct samples than clusters, and the cluster stays empty. ``elsewhere`` counts
    the samples of every cluster that are not part of the assignment.
    """
    elsewhere = np.zeros(n_clusters, dtype=np.intp) if elsewhere is None else elsewhere
    held = backend.segment_sums(assignment.labels, weights, n_clusters) > 0
    empty = np.flatnonzero(~held & (elsewhere == 0))
    if len(empty) == 0:
        return assignment.labels
    counts = backend.segment_sums(assignment.labels, weights > 0, n_clusters) + elsewhere
    # Every cluster keeps one sample, so that at most n_clusters of the farthest are passed over.
    most = len(empty) + n_clusters
    samples, distances, clusters = backend.farthest(assignment, weights, tolerance / TIE_TOLERANCE, most)
    chosen: list[int] = []
    for sample, distance, cluster in zip(samples, distances, clusters, strict=True):
        if len(chosen) == len(empty) or not distance > tolerance:
            break
        if counts[cluster] > 1:
            counts[cluster] -= 1
            chosen.append(int(sample))
    return backend.replace(assignment.labels, np.array(chosen, dtype=np.intp), empty[: len(chosen)])
