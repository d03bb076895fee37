"""Runs of kernel k-means from every candidate of a stage of global search, on a stored kernel.

Candidates are worked on in blocks over threads; which run is followed to its end and which one meets it depends on
timing, where the runs end does not.
"""

import time

import numpy as np

from kernelweave.backends.compiled.candidate_runs import follow
from kernelweave.backends.meetings import ENDED, UNDONE, ends_of_runs
from kernelweave.backends.preparing import read_only
from kernelweave.backends.protocol import CandidateRuns
from kernelweave.foundation.array_types import Array, Floats, Ints
from kernelweave.foundation.pool import run
from kernelweave.foundation.threads import thread_count

# Candidates a thread takes at a time, between two looks at the clock.
BLOCK = 8


def run_candidates(
    K: Array,
    labels: Ints,
    weights: Floats,
    sums: Floats,
    totals: Floats,
    candidates: Ints,
    *,
    mass: float,
    tolerance: float,
    noise: float,
    max_iter: int,
    deadline: float = np.inf,
) -> CandidateRuns:
    """Run kernel k-means from ``labels`` with each candidate in turn as the centre of one more cluster."""
    n = len(candidates)
    given = read_only(K)
    size = _table_size(n)
    table = np.zeros((size, 2), np.uint64)
    owners = np.zeros((size, 2), np.int64)
    values = np.full(size, np.inf)
    objectives = np.full(n, np.nan)
    meetings = np.full((n, 3), -1)
    states = np.full(n, UNDONE)

    def work(start: int) -> None:
        if time.monotonic() > deadline:
            return
        common = (given, mass, weights, labels, sums, totals, candidates, tolerance, noise, max_iter)
        visited = (table, owners, values)
        follow(*common, *visited, objectives, meetings, states, start, min(start + BLOCK, n))

    run(work, range(0, n, BLOCK), thread_count())
    ends = ends_of_runs(candidates, meetings, states, max_iter)
    followed = (ends == np.arange(n)) & (states == ENDED)
    return CandidateRuns(ends, np.where(followed, objectives, np.nan))


def _table_size(n_candidates: int) -> int:
    """Return a power of two with room for the partitions seen: about ten per candidate, at most half filled."""
    return 1 << max(10, int(n_candidates * 32 - 1).bit_length())
