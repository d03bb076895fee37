"""Kernel k-means: batch descent on the weighted within-cluster scatter in feature space.

Objective   J(labels) = sum_i w_i ||phi(x_i) - m(labels_i)||^2, m the weighted means
Input       a KernelOperator and a starting partition
Cost        one pass over the kernel at the start, then only the rows of the samples that moved:
            O(n^2) dense or blockwise, O(n d k) per iteration on features, O(edges) on a graph
Guarantee   J never rises. With a positive semidefinite kernel the run ends at a fixed point; with an indefinite
            one a step that would raise J is cut back to the half of its moves with the largest gain until J falls
Source      PhD 1.1.3 and Alg. 1.2, MSc 2.2 and 4.1; Dhillon, Guan and Kulis, KDD 2004
"""

from collections.abc import Callable
from dataclasses import dataclass

from kernelweave.backends import BackendArray
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions.observed import ObservedPartition
from kernelweave.partitions.partition import Partition

#: Steps in a row that change labels but not the objective, within its rounding, before the run ends.
PATIENCE = 3


@dataclass(frozen=True)
class Descent:
    """The end of one run of kernel k-means. Labels, objective, totals and norms describe the same partition."""

    labels: Ints  # (n,)
    history: tuple[float, ...]  # J of every partition visited, J(labels) last
    converged: bool  # at a fixed point, within tol, or where no step lowers J
    rose: bool  # a full step would have raised J: the kernel is not positive semidefinite
    scatter: Floats  # (k,) J cluster by cluster
    totals: Floats  # (k,) weight of each cluster
    norms: Floats  # (k,) ||m_c||^2, infinite for an empty cluster

    @property
    def objective(self) -> float:
        """J of the labels."""
        return self.history[-1]

    @property
    def ended(self) -> bool:
        """Whether more steps would find nothing new."""
        return self.converged

    @property
    def inertia(self) -> float:
        """The clustering error, which is J."""
        return self.objective

    @property
    def n_iter(self) -> int:
        """Steps taken."""
        return len(self.history) - 1


def kernel_kmeans(
    op: KernelOperator,
    labels: Ints,
    weights: Floats,
    *,
    n_clusters: int,
    max_iter: int = 300,
    tol: float = 0.0,
    keeper: Keeper = NOTHING,
    on_step: Callable[[float], object] | None = None,
) -> Descent:
    """Descend from ``labels`` until no sample moves, or J falls by at most ``tol * J`` in a step."""
    partition = op.partition(labels_to_go_on_from(keeper, labels), weights, n_clusters)
    return descend_from(partition, max_iter=max_iter, tol=tol, keeper=keeper, on_step=on_step)


def labels_to_go_on_from(keeper: Keeper, labels: Ints) -> Ints:
    """Return the labels that a stopped run had come to, or those it starts from."""
    known = keeper.known()
    return labels if known is None else known["labels"]


def descend_from(
    partition: Partition,
    *,
    max_iter: int = 300,
    tol: float = 0.0,
    keeper: Keeper = NOTHING,
    on_step: Callable[[float], object] | None = None,
) -> Descent:
    """Take a partition down to a fixed point and return the end of the run."""
    path = descend(partition, max_iter=max_iter, tol=tol, keeper=keeper, on_step=on_step)
    return Descent(
        partition.host_labels(),
        tuple(path.history),
        path.converged,
        path.rose,
        partition.scatter(),
        partition.totals,
        partition.norms,
    )


@dataclass
class DescentPath:
    """How a descent went: J of every partition visited, whether it converged and whether J would have risen."""

    history: list[float]
    converged: bool = False
    rose: bool = False
    idle: int = 0  # steps in a row that have not changed J


def descend(
    partition: Partition | ObservedPartition,
    *,
    max_iter: int,
    tol: float = 0.0,
    keeper: Keeper = NOTHING,
    on_step: Callable[[float], object] | None = None,
) -> DescentPath:
    """Move samples to their nearest clusters until none moves, or J falls by at most ``tol * J`` in a step."""
    path = DescentPath([partition.objective])
    known = keeper.known()
    if known is not None:
        partition.move(partition.moves_to(partition.backend.labels(known["labels"])))
        path = DescentPath(**known["path"])
    history = path.history
    while not path.converged and len(history) <= max_iter:
        assignment = partition.nearest()
        moves = partition.moves_to(partition.reseeded(assignment))
        if moves.count == 0:
            if not partition.certain(assignment.lead):
                partition.refresh()
                history[-1] = partition.objective
                continue
            moves = partition.moves_to(partition.merged())
            if moves.count == 0:
                path.converged = True
                continue
        before: BackendArray = partition.labels
        partition.move(moves)
        reached = partition.objective
        if reached > history[-1] + partition.noise:
            path.rose = True
            if not partition.cut_back(before, moves, assignment.distances, history[-1]):
                path.converged = True
                break
            reached = partition.objective
        path.idle = path.idle + 1 if reached >= history[-1] - partition.noise else 0
        small = history[-1] - reached <= tol * abs(reached)
        path.converged = path.idle >= PATIENCE or (tol > 0 and small)
        history.append(reached)
        keeper.keep(lambda: {"labels": partition.host_labels(), "path": path})
        if on_step is not None:
            on_step(history[-1])
    return path
