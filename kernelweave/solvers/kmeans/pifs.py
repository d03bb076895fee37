"""Partially incremental frequency-sensitive k-means: clusters repel samples in proportion to their size.

Objective   none is known; the rule sends sample i to the cluster with least |C_c| ||x_i - m_c||^2
Input       stored features and a starting partition
Cost        O(n d k) for every pass over the samples
Guarantee   no cluster loses its last sample. Sizes follow every sample, so the order of the samples matters
Source      PhD (2.10); Banerjee and Ghosh, IEEE TNN 2004, without the logarithmic term, as there
"""

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.kernels.features import FeatureKernel
from kernelweave.partitions.empty import reseed_empty
from kernelweave.partitions.state import ClusterMeans
from kernelweave.solvers.kmeans.kernel_kmeans import Descent


def pifs_kmeans(op: FeatureKernel, labels: Ints, weights: Floats, *, n_clusters: int, max_iter: int = 300) -> Descent:
    """Run from ``labels`` until a pass changes no label; the history holds the objective of k-means, which may rise."""
    state = ClusterMeans(op, np.array(labels, dtype=np.intp), weights, n_clusters)
    _, distances, _ = state.nearest()
    state.move(reseed_empty(state.labels, distances, weights, n_clusters, state.slack))
    slack = state.slack * float(weights.sum())
    history = [state.objective]
    converged = False
    while not converged and len(history) <= max_iter:
        found = op.assign_by_size(state.means, state.norms, state.diag, state.labels, weights, state.totals, slack)
        converged = np.array_equal(found, state.labels)
        if not converged:
            state.move(found)
            history.append(state.objective)
    return Descent(state.labels, tuple(history), converged, False, state.scatter(), state.totals, state.norms)
