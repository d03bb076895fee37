"""How often things happen in a fit: steps, sums recomputed, samples that move.

All of it depends on the data. The figures were counted on noise, on clusters that overlap and on clear ones; a
``Count`` holds the usual one and the two ends.
"""

import math
from typing import Any, NamedTuple

from kernelweave.solvers.kmeans.minmax import ExponentSchedule


class Count(NamedTuple):
    """How often something happens: usually, at least and at most, as far as seen."""

    usual: float
    least: float
    most: float


class Runs(NamedTuple):
    """What happens in a start of kernel k-means."""

    steps: Count
    sweeps: Count  # sums of clusters recomputed
    moved: Count  # samples whose rows update the sums, as a share of all


ONCE = Count(1.0, 1.0, 1.0)
DESCENT = Runs(Count(30, 4, 180), Count(1.1, 1, 2), Count(0.6, 0.02, 1.2))
# Of a stage of the global search.
STAGE = Runs(Count(8, 2, 35), Count(2, 2, 2.2), Count(0.15, 0.04, 0.5))

# MinMax k-means takes a step for each value of p. Then some runs are at rest, and others go round, at worst until
# max_iter: of the steps left, this share for each power of ten in the number of samples above a hundred.
RESTLESS = 0.1
MOST_RESTLESS = 0.4
# Sums recomputed and moved samples while p rises, and in each restless step: where features are summed, and where
# the rows of a kernel are. A pass over features is chosen more often, since it costs as much as the rows of a sixth.
RISING_SWEEPS = Count(2, 1, 4)
RISING_MOVED = Count(1.0, 0.3, 2)
FEATURE_SWEEPS = 0.8
FEATURE_MOVED = 0.01
PAIR_SWEEPS = Count(0.12, 0.05, 0.25)
PAIR_MOVED = Count(0.1, 0.04, 0.2)


def minmax_runs(settings: Any, n: int, pairs: bool) -> Runs:
    """Return what happens in a start of MinMax k-means; ``settings`` has its parameters where they are not defaults."""
    schedule = ExponentSchedule(
        getattr(settings, "p_init", 0.0), getattr(settings, "p_max", 0.5), getattr(settings, "p_step", 0.01)
    )
    last = float(getattr(settings, "max_iter", 500))
    rise = min(schedule.top + 1.0, last)
    share = min(MOST_RESTLESS, RESTLESS * max(0.0, math.log10(n / 100)))
    restless = Count(share * (last - rise), 0.0, last - rise)
    rising = rise / (schedule.top + 1.0)
    sweeps = PAIR_SWEEPS if pairs else Count(FEATURE_SWEEPS, FEATURE_SWEEPS, 1.0)
    moved = PAIR_MOVED if pairs else Count(FEATURE_MOVED, FEATURE_MOVED, FEATURE_MOVED)
    return Runs(
        Count(*(rise + each for each in restless)),
        Count(*(max(1.0, rising * a) + b * c for a, b, c in zip(RISING_SWEEPS, sweeps, restless, strict=True))),
        Count(*(rising * a + b * c for a, b, c in zip(RISING_MOVED, moved, restless, strict=True))),
    )


def both(first: Runs, second: Runs) -> Runs:
    """Return what happens in two runs, one after the other."""
    return Runs(*(Count(*(a + b for a, b in zip(*pair, strict=True))) for pair in zip(first, second, strict=True)))


def capped(runs: Runs, most: float) -> Runs:
    """Return what happens in runs of no more than so many steps."""
    return runs._replace(steps=Count(*(min(steps, float(most)) for steps in runs.steps)))
