"""The choice of the best of several runs."""

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TypeVar

Run = TypeVar("Run")

#: Objectives closer than this, relatively, are equal.
EQUAL_OBJECTIVES = 1e-10


def best_of(runs: Iterable[Run], value: Callable[[Run], float] = attrgetter("objective")) -> Run:
    """Return the run of least value, the earliest of equals.

    Starts that meet in one partition differ by rounding only; letting rounding choose among them would number the
    clusters by chance.
    """
    runs = iter(runs)
    best = next(runs)
    least = value(best)
    for run in runs:
        objective = value(run)
        if objective < least - EQUAL_OBJECTIVES * max(abs(objective), abs(least)):
            best = run
            least = objective
    return best
