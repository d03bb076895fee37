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

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions.empty import reseed_empty
from kernelweave.partitions.state import ClusterState, ClusterSums, cluster_state

# Steps in a row that change labels but not the objective, within its rounding, before the run ends.
PATIENCE = 3


@dataclass(frozen=True)
class Descent:
    """What one run of kernel k-means found. Labels, objective, totals and within describe the same partition."""

    labels: Ints  # (n,)
    history: tuple[float, ...]  # J of every partition visited, J(labels) last
    converged: bool  # ended by itself: at a fixed point, within tol, or where no step lowers J
    rose: bool  # a full step would have raised J: the kernel is not positive semidefinite
    scatter: Floats  # (k,) J cluster by cluster
    totals: Floats  # (k,) weight of each cluster
    norms: Floats  # (k,) ||m_c||^2, infinite for an empty cluster

    @property
    def objective(self) -> float:
        """J of the labels found."""
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
    on_step: Callable[[float], object] | None = None,
) -> Descent:
    """Descend from ``labels`` until no sample moves, or J falls by at most ``tol * J`` in a step."""
    state = cluster_state(op, labels, weights, n_clusters)
    history, converged, rose = descend(state, max_iter=max_iter, tol=tol, on_step=on_step)
    return Descent(state.labels, tuple(history), converged, rose, state.scatter(), state.totals, state.norms)


def descend(
    state: ClusterState, *, max_iter: int, tol: float = 0.0, on_step: Callable[[float], object] | None = None
) -> tuple[list[float], bool, bool]:
    """Take ``state`` down; return J of every partition visited, whether the run ended by itself, and whether J rose."""
    history = [state.objective]
    converged = False
    rose = False
    idle = 0
    while not converged and len(history) <= max_iter:
        found, distances, lead = state.nearest()
        found = reseed_empty(found, distances, state.weights, state.n_clusters, state.slack)
        if np.array_equal(found, state.labels):
            if not state.certain(lead):
                state.refresh()
                history[-1] = state.objective
                continue
            found = state.merged(found)
            if np.array_equal(found, state.labels):
                converged = True
                continue
        before = state.labels
        state.move(found)
        if state.objective > history[-1] + state.noise:
            rose = True
            if not _cut_back(state, before, found, distances, history[-1]):
                converged = True
                break
        idle = idle + 1 if state.objective >= history[-1] - state.noise else 0
        small = history[-1] - state.objective <= tol * abs(state.objective)
        converged = idle >= PATIENCE or (tol > 0 and small)
        history.append(state.objective)
        if on_step is not None:
            on_step(history[-1])
    return history, converged, rose


def _cut_back(state: ClusterState, before: Ints, found: Ints, distances: Floats, objective: float) -> bool:
    """Keep the most useful half of the moves, then a quarter, ... until J falls; else go back to ``before``."""
    at_start = ClusterSums(state.op, before, state.weights, state.n_clusters)
    filled = np.where(at_start.totals > 0, at_start.totals, 1.0)
    everyone = np.arange(len(before))
    kept = at_start.diag - 2.0 * at_start.sums[before, everyone] / filled[before] + at_start.norms[before]
    moved = np.flatnonzero(found != before)
    # Rounded, so that equal gains keep the order of the samples whatever the storage of the kernel.
    gains = np.round((distances[moved] - kept[moved]) / (state.scale or 1.0), 9)
    order = moved[np.argsort(gains, kind="stable")]
    size = len(order) // 2
    while size:
        part = before.copy()
        part[order[:size]] = found[order[:size]]
        state.move(part)
        if state.objective < objective - state.noise:
            return True
        size //= 2
    state.move(before)
    return False
