"""Global kernel k-means: one cluster more at a time, founded by the candidate whose run ends lowest.

Objective   that of kernel k-means, for every number of clusters up to the one asked for
Input       a KernelOperator, weights, and the candidates tried at each stage: all samples (exact), the one with the
            largest guaranteed gain (fast), or a few exemplars of a convex mixture
Cost        exact: n runs per stage, of which most soon meet another and stop there; fast: one pass and one run
Guarantee   exact: every stage ends as if kernel k-means had been run from every sample, the first of equally good ones
Source      PhD 1.1.4 and Alg. 1.3; MSc Alg. 10 to 12 and 4.2; Tzortzis and Likas, IEEE TNN 2009
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions import algebra
from kernelweave.partitions import candidates as search
from kernelweave.partitions.state import ClusterSums
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers.mixtures.exemplars import exemplars
from kernelweave.solvers.shared.best_run import SAME

Search = Literal["exact", "fast", "exemplars"]
# Gains closer than this, relatively, are equal; the first sample is taken.
SAME_GAIN = 1e-12


@dataclass(frozen=True)
class Path:
    """Solutions for 1, 2, ... clusters."""

    stages: tuple[Descent, ...]
    complete: bool  # every stage tried all its candidates
    exemplars: Ints | None  # the candidates of an exemplar search, most likely first


def global_kernel_kmeans(
    op: KernelOperator,
    weights: Floats,
    *,
    n_clusters: int,
    how: Search = "fast",
    n_exemplars: int = 0,
    max_iter: int = 300,
    memory_limit: float = 2048,
    deadline: float = np.inf,
    on_stage: Callable[[Iterator[int]], Iterator[int]] = iter,
) -> Path:
    """Solve for 1 to ``n_clusters`` clusters in turn.

    After ``deadline`` (of ``time.monotonic``) a stage takes the best candidate tried so far and the remaining stages
    take one step of the fast search each, so that the path is always whole. ``memory_limit`` (MiB) bounds what the
    search for exemplars may store.
    """
    chosen = None
    if how == "exemplars" and n_clusters > 1:
        chosen = exemplars(op, weights, n_exemplars, deadline=deadline, memory_limit=memory_limit)
    pool = np.flatnonzero(weights > 0) if how == "exact" else chosen
    stages = [kernel_kmeans(op, np.zeros(op.n_samples, dtype=np.intp), weights, n_clusters=1)]
    complete = True
    for k in on_stage(iter(range(2, n_clusters + 1))):
        state = ClusterSums(op, stages[-1].labels, weights, k - 1)
        late = time.monotonic() > deadline
        if pool is None or late:
            founder: int | None = best_founder(state)
        else:
            founder, all_tried = _best_candidate(state, pool, max_iter, deadline)
            complete &= all_tried
        complete &= not (late and how != "fast")
        founder = best_founder(state) if founder is None else founder
        stages.append(_run_from(state, founder, max_iter))
    return Path(tuple(stages), complete, chosen)


def best_founder(state: ClusterSums) -> int:
    """Return the sample whose own cluster is sure to lower the objective most (MSc 3.1 and 4.3)."""
    everyone = np.arange(len(state.labels))
    filled = np.where(state.totals > 0, state.totals, 1.0)
    own = state.diag - 2.0 * state.sums[state.labels, everyone] / filled[state.labels] + state.norms[state.labels]
    own = np.where(state.weights > 0, own, 0.0)  # without weight a sample may sit in a cluster without a centre
    gains = algebra.founding_gains(state.op, own, state.weights, state.diag)
    gains = np.where(state.weights > 0, gains, -np.inf)
    return int(np.argmax(gains >= gains.max() - SAME_GAIN * abs(gains.max())))


def _run_from(state: ClusterSums, founder: int, max_iter: int) -> Descent:
    """Run kernel k-means with ``founder`` moved to a new cluster."""
    labels = state.labels.copy()
    labels[founder] = state.n_clusters
    return kernel_kmeans(state.op, labels, state.weights, n_clusters=state.n_clusters + 1, max_iter=max_iter)


def _best_candidate(state: ClusterSums, candidates: Ints, max_iter: int, deadline: float) -> tuple[int | None, bool]:
    """Return the first of the candidates whose runs end lowest, and whether all of them were tried."""
    objectives = _objectives(state, np.sort(candidates), max_iter, deadline)
    tried = np.isfinite(objectives)
    if not tried.any():
        return None, False
    best = float(objectives[tried].min())
    first = int(np.argmax(objectives <= best + SAME * abs(best) + state.noise))
    return int(np.sort(candidates)[first]), bool(tried.all())


def _objectives(state: ClusterSums, candidates: Ints, max_iter: int, deadline: float) -> Floats:
    """Return where the run from each candidate ends; infinite where time ran out before it."""
    if not (isinstance(state.op, DenseKernel) and search.can_follow(state.op)):
        return np.array([_objective_unless_late(state, c, max_iter, deadline) for c in candidates.tolist()])
    runs = search.run_candidates(
        state.op,
        state.labels,
        state.weights,
        state.sums,
        state.totals,
        candidates,
        mass=float(state.weights @ state.diag),
        slack=state.slack,
        noise=state.noise,
        max_iter=max_iter,
        deadline=deadline,
    )
    ends = runs.objectives.copy()
    for place in np.unique(runs.ends[runs.ends >= 0]):
        if np.isnan(ends[place]):
            ends[place] = _objective_unless_late(state, int(candidates[place]), max_iter, deadline)
    return np.where(runs.ends >= 0, ends[runs.ends], np.inf)


def _objective_unless_late(state: ClusterSums, candidate: int, max_iter: int, deadline: float) -> float:
    return np.inf if time.monotonic() > deadline else _run_from(state, candidate, max_iter).objective
