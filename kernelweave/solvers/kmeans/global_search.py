"""Global kernel k-means: one cluster more at a time, started by the candidate whose run ends lowest.

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
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions.partition import Partition
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, descend_from, kernel_kmeans
from kernelweave.solvers.mixtures.exemplars import exemplars
from kernelweave.solvers.shared.best_run import EQUAL_OBJECTIVES

Search = Literal["exact", "fast", "exemplars"]


@dataclass(frozen=True)
class Path:
    """Solutions for 1, 2, ... clusters."""

    stages: tuple[Descent, ...]
    complete: bool  # every stage tried all its candidates
    exemplars: Ints | None  # the candidates of an exemplar search, most likely first


@dataclass(frozen=True)
class _Stage:
    """The solution for one number of clusters."""

    descent: Descent
    complete: bool  # all candidates were tried


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
    keeper: Keeper = NOTHING,
    on_stage: Callable[[Iterator[int]], Iterator[int]] = iter,
) -> Path:
    """Solve for 1 to ``n_clusters`` clusters in turn.

    After ``deadline`` (of ``time.monotonic``) a stage takes the best candidate tried so far and the remaining stages
    take one step of the fast search each, so that the path is always whole. ``memory_limit`` (MiB) bounds what the
    search for exemplars may store.
    """
    chosen = None
    if how == "exemplars" and n_clusters > 1:
        options = {"deadline": deadline, "memory_limit": memory_limit}
        chosen = exemplars(op, weights, n_exemplars, keeper=keeper.part("exemplars"), **options)
    pool = np.flatnonzero(weights > 0) if how == "exact" else chosen
    one = kernel_kmeans(op, np.zeros(op.n_samples, dtype=np.intp), weights, n_clusters=1)
    stages = [_Stage(one, complete=True)]

    def one_more(k: int, part: Keeper) -> _Stage:
        partition = op.partition(stages[-1].descent.labels, weights, k - 1)
        return _one_more(partition, pool, max_iter, deadline, part)

    for k in on_stage(iter(range(2, n_clusters + 1))):
        part = keeper.part(f"{k} clusters")
        stages.append(part.once(_Stage, lambda k=k, part=part: one_more(k, part)))  # type: ignore[misc]
    return Path(tuple(stage.descent for stage in stages), all(stage.complete for stage in stages), chosen)


def _one_more(partition: Partition, pool: Ints | None, max_iter: int, deadline: float, keeper: Keeper) -> _Stage:
    """Return the solution with one more cluster, started by the best of the pool, or by the fast search."""
    candidate: int | None = None
    complete = True
    if pool is not None:
        complete = time.monotonic() <= deadline
        if complete:
            candidate, complete = _best_candidate(partition, pool, max_iter, deadline)
    candidate = partition.best_candidate() if candidate is None else candidate
    start = partition.with_candidate(candidate)
    return _Stage(descend_from(start, max_iter=max_iter, keeper=keeper.part("descent")), complete)


def _best_candidate(partition: Partition, candidates: Ints, max_iter: int, deadline: float) -> tuple[int | None, bool]:
    """Return the first of the candidates whose runs end lowest, and whether all of them were tried."""
    ordered = np.sort(candidates)
    objectives = _objectives(partition, ordered, max_iter, deadline)
    tried = np.isfinite(objectives)
    if not tried.any():
        return None, False
    best = float(objectives[tried].min())
    first = int(np.argmax(objectives <= best + EQUAL_OBJECTIVES * abs(best) + partition.noise))
    return int(ordered[first]), bool(tried.all())


def _objectives(partition: Partition, candidates: Ints, max_iter: int, deadline: float) -> Floats:
    """Return where the run from each candidate ends; infinite where time ran out before it."""
    runs = partition.run_candidates(candidates, max_iter, deadline)
    if runs is None:
        return np.array([_objective_unless_late(partition, c, max_iter, deadline) for c in candidates.tolist()])
    ends = runs.objectives.copy()
    for place in np.unique(runs.ends[runs.ends >= 0]):
        if np.isnan(ends[place]):
            ends[place] = _objective_unless_late(partition, int(candidates[place]), max_iter, deadline)
    return np.where(runs.ends >= 0, ends[runs.ends], np.inf)


def _objective_unless_late(partition: Partition, candidate: int, max_iter: int, deadline: float) -> float:
    if time.monotonic() > deadline:
        return np.inf
    return descend_from(partition.with_candidate(candidate), max_iter=max_iter).objective
