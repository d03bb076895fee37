"""The order of methods in PhD tables 2.5 to 2.16, beside the order in a run of ours.

Rows of a table are ordered where their means differ by more than twice the standard error of the difference, which
follows from the printed deviations.
"""

import itertools
import math
from dataclasses import dataclass

from reproduction.experiment import Printed
from reproduction.experiments.minmax import RUNS
from reproduction.runner import CellResult, ExperimentResult

STANDARD_ERRORS = 2.0  # differences of more than so many count


@dataclass(frozen=True)
class Ordering:
    """One row of a table clearly below another: by how much in print, and in our run."""

    metric: str
    lower: str
    higher: str
    printed: float
    ours: float
    error: float  # standard error of ours

    @property
    def reproduced(self) -> bool:
        """Whether ours is below too."""
        return self.ours > 0

    @property
    def contradicted(self) -> bool:
        """Whether ours is above by more than so many standard errors."""
        return self.ours < -STANDARD_ERRORS * self.error


def orderings(result: ExperimentResult) -> list[Ordering]:
    """Return the pairs of rows that a table orders by E_max in (a) or by E_sum in (b), with our differences."""
    ordered = []
    for metric, elsewhere in (("e_max_mean", "e_max_mean"), ("refined_e_sum_mean", "e_sum_mean")):
        rows = [(cell, *_both(cell, metric, elsewhere)) for cell in result.cells]
        for (low, theirs_low, our_low), (high, theirs_high, our_high) in itertools.permutations(rows, 2):
            difference = theirs_high.value - theirs_low.value
            spread = _spread(theirs_low, theirs_high)
            if difference > STANDARD_ERRORS * spread / math.sqrt(RUNS):
                error = spread / math.sqrt(min(low.restarts, high.restarts))
                ordered.append(Ordering(metric, low.cell, high.cell, difference, our_high - our_low, error))
    return ordered


def _both(cell: CellResult, metric: str, elsewhere: str) -> tuple[Printed, float]:
    """Return a printed figure and ours; that of k-means, which has no row in (b), is called ``elsewhere``."""
    figures = {figure.metric: figure for figure in cell.figures}
    figure = figures.get(metric) or figures[elsewhere]
    assert figure.printed is not None
    return figure.printed, figure.ours


def _spread(*printed: Printed) -> float:
    """Return the deviation of a difference between single starts."""
    return math.hypot(*(each.spread or 0.0 for each in printed))
