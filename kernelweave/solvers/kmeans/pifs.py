"""Partially incremental frequency-sensitive k-means: clusters repel samples in proportion to their size.

Objective   none is known; the rule sends sample i to the cluster with least |C_c| ||x_i - m_c||^2
Input       stored features and a starting partition
Cost        O(n d k) for every pass over the samples
Guarantee   no cluster loses its last sample. Sizes follow every sample, so the order of the samples matters
Source      PhD (2.10); Banerjee and Ghosh, IEEE TNN 2004, without the logarithmic term, as there
"""

from dataclasses import replace

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.kernels.features import FeatureKernel
from kernelweave.partitions.means import MeansPartition
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, labels_to_go_on_from


def pifs_kmeans(
    op: FeatureKernel,
    labels: Ints,
    weights: Floats,
    *,
    n_clusters: int,
    max_iter: int = 300,
    keeper: Keeper = NOTHING,
) -> Descent:
    """Run from ``labels`` until a pass changes no label; the history holds the objective of k-means, which may rise."""
    partition = MeansPartition(op, labels_to_go_on_from(keeper, labels), weights, n_clusters)
    assignment = partition.nearest()
    partition.go_to(partition.reseeded(replace(assignment, labels=partition.labels)))
    known = keeper.known()
    history = [partition.objective] if known is None else known["history"]
    converged = False
    while not converged and len(history) <= max_iter:
        moves = partition.moves_to(partition.assign_by_size())
        converged = moves.count == 0
        if not converged:
            partition.move(moves)
            history.append(partition.objective)
            keeper.keep(lambda: {"labels": partition.host_labels(), "history": history})
    return Descent(
        partition.host_labels(),
        tuple(history),
        converged,
        False,
        partition.scatter(),
        partition.totals,
        partition.norms,
    )
