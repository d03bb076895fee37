"""Runs of kernel k-means from every candidate of a stage of global search, on a stored kernel.

Candidates are worked on in blocks over threads; which run is followed to its end and which one meets it depends on
timing, where the runs end does not.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from kernelweave.foundation._threads import thread_count
from kernelweave.foundation._typing import Floats, Ints
from kernelweave.operators._base import KernelOperator
from kernelweave.operators._dense import DenseKernel

# Candidates a thread takes at a time, and blocks between two looks at the clock.
BLOCK, BLOCKS = 8, 16
UNDONE, LEFT = -1, 2


@dataclass(frozen=True)
class CandidateRuns:
    """Where the runs of a stage ended."""

    ends: Ints  # for each candidate the position of the one whose end it shares; -1 where time ran out
    objectives: Floats  # at the end of each followed run; NaN where it has to be run by the general solver


def can_follow(op: KernelOperator) -> bool:
    """Whether compiled runs exist for this kind of operator."""
    return isinstance(op, DenseKernel)


def run_candidates(
    op: DenseKernel,
    labels: Ints,
    weights: Floats,
    sums: Floats,
    totals: Floats,
    candidates: Ints,
    *,
    mass: float,
    slack: float,
    noise: float,
    max_iter: int,
    deadline: float = np.inf,
) -> CandidateRuns:
    """Run kernel k-means from ``labels`` with each candidate in turn as the founder of one more cluster."""
    follow = import_module("kernelweave.engines._numba_search").follow
    n = len(candidates)
    table, owners = np.zeros((_table_size(n), 2), np.uint64), np.full(_table_size(n), -1)
    objectives, parents, states = np.full(n, np.nan), np.full(n, -1), np.full(n, UNDONE)

    def work(start: int) -> None:
        common = (op.K, mass, weights, labels, sums, totals, candidates, slack, noise, max_iter, table, owners)
        follow(*common, objectives, parents, states, start, min(start + BLOCK, n))

    with ThreadPoolExecutor(thread_count()) as pool:
        starts = list(range(0, n, BLOCK))
        for first in range(0, len(starts), BLOCKS):
            if time.monotonic() > deadline:
                break
            list(pool.map(work, starts[first : first + BLOCKS]))
    objectives[states == LEFT] = np.nan
    ends = _ends(candidates, parents, states)
    return CandidateRuns(ends, np.where(ends == np.arange(n), objectives, np.nan))


def _table_size(n_candidates: int) -> int:
    """Return a power of two with room for the partitions seen: some ten a candidate, at most half filled."""
    return 1 << max(10, int(n_candidates * 32 - 1).bit_length())


def _ends(candidates: Ints, parents: Ints, states: Ints) -> Ints:
    """Return for each candidate the position of the run that reached its end, along the chain of meetings.

    A chain that leads nowhere, which no run of falling objectives makes, stands for itself.
    """
    place = np.full(int(candidates.max()) + 1, -1)
    place[candidates] = np.arange(len(candidates))
    ends = np.where(parents >= 0, place[parents], np.arange(len(candidates)))
    for _ in range(len(candidates).bit_length()):
        ends = ends[ends]
    ends = np.where(parents[ends] >= 0, np.arange(len(candidates)), ends)
    return np.where((states == UNDONE) | (states[ends] == UNDONE), -1, ends)
