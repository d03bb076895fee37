"""How a published table is declared: figures as printed, cells that recompute them, experiments.

An experiment is one table (or its rows on one data set), a cell is one of its rows, computed as a whole.
Declarations hold no results: the runner computes them, the report shows ours beside theirs.

Tolerance   Two figures of the same method differ by rounding and by chance, and by no more. Rounding is half a unit of
            the last printed digit. Chance is ERRORS standard errors of the difference between print and ours, which
            follow from the spread of a single run and the two numbers of runs:
                mean       spread * sqrt(1 / runs + 1 / restarts)
                share      the same with the spread of a coin that falls as often as both together
                deviation  its own relative error in our runs, which the fourth moment tells, for both numbers of runs
            Where print gives no spread, that of our runs stands for both. A method without chance has none.
Verdict     "agrees" within the tolerance on both sides; beyond it on the good side of a bound "better", else "differs".
            A figure that something was chosen by cannot count for us: where it agrees, it is "fitted".
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

#: Standard errors of a difference that chance explains: one figure of the same method in a hundred lies beyond.
ERRORS = 2.576
RULES = ("within", "at most", "at least")
STATISTICS = ("exact", "mean", "share", "deviation", "claim")
#: A claim of the text holds where it does in this share of our draws, unless it says less; the threshold is ours.
CLAIMED = 0.9
#: Ends the name of a figure that is only there to judge others, and is not shown.
HIDDEN = "_error"
_EDGE_TOLERANCE = 1e-12  # relative slack for the subtraction, so that a figure on the edge counts as inside
#: With fewer values the fourth moment says nothing.
FEWEST_FOR_KURTOSIS = 20
#: Restarts of a quick run where a cell does not say.
QUICK_RESTARTS = 5
_SLUG = re.compile(r"[a-z0-9][a-z0-9.-]*")

CellFunction = Callable[..., Mapping[str, float]]


class Verdict(StrEnum):
    """The result of comparing our figure with the printed one."""

    AGREES = "agrees"
    BETTER = "better"
    DIFFERS = "differs"
    FITTED = "fitted"
    NO_FIGURE = "not printed"


@dataclass(frozen=True)
class Printed:
    """A figure as a source document prints it, and what is known of the chance in it.

    Parameters
    ----------
    value : float
        The printed figure.
    statistic : {"exact", "mean", "share", "deviation", "claim"}
        What it is: the result of a method without chance, a mean or share over runs, a standard deviation of runs, or a
        claim of the text, which holds (1) in some share of our draws.
    runs : int or None
        Number of runs behind a mean, share or deviation.
    spread : float or None
        Standard deviation of a single run behind a mean; None where ours is to stand for it.
    rule : {"within", "at most", "at least"}
        ``"at most"``: a value lower than printed by more than the tolerance is better, not different.
        ``"at least"``: the same for higher values.
    least : float
        Share of our draws in which a claim must hold.
    fitted : bool
        Whether something of the experiment was chosen with this figure in sight.
    source : str or None
        Document, table, row and column; None where the source of the experiment is precise enough.
    decimals : int
        Digits after the point in print.

    Examples
    --------
    >>> mean = Printed(937.04, statistic="mean", spread=7.13, runs=500)
    >>> round(mean.allowed(937.5, restarts=500), 2), round(mean.allowed(937.5, restarts=20), 2)
    (1.17, 4.19)
    >>> mean.judge(940.0, restarts=500), mean.judge(940.0, restarts=20)
    (<Verdict.DIFFERS: 'differs'>, <Verdict.AGREES: 'agrees'>)
    """

    value: float
    _: KW_ONLY
    statistic: str = "exact"
    runs: int | None = None
    spread: float | None = None
    rule: str = "within"
    least: float = CLAIMED
    fitted: bool = False
    source: str | None = None
    decimals: int = 2

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"A printed figure needs a finite value; got {self}.")
        if self.rule not in RULES:
            raise ValueError(f"rule={self.rule!r} must be one of {', '.join(map(repr, RULES))}.")
        if self.statistic not in STATISTICS:
            raise ValueError(f"statistic={self.statistic!r} must be one of {', '.join(map(repr, STATISTICS))}.")
        if (self.runs is not None) != (self.statistic in ("mean", "share", "deviation")):
            raise ValueError(f"runs is required for means, shares and deviations, and only for these; got {self}.")

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed digit."""
        return 0.5 * 10.0**-self.decimals

    def allowed(self, ours: float, *, restarts: int, spread: float | None = None) -> float:
        """Return the largest distance from the printed value that rounding and chance explain.

        ``spread`` is the standard deviation of a run of ours or, of a deviation, its relative error for one run; it is
        used where print says nothing.
        """
        if self.statistic == "claim":
            return 1.0 - self.least
        return self.rounding + ERRORS * self.standard_error(ours, restarts=restarts, spread=spread)

    def standard_error(self, ours: float, *, restarts: int, spread: float | None = None) -> float:
        """Return the standard error of the difference between print and ours."""
        if self.runs is None:
            return 0.0
        single = self.single_spread(ours, restarts, spread)
        # Nothing that is unknown may excuse a difference.
        return single * math.sqrt(1.0 / restarts + 1.0 / self.runs) if math.isfinite(single) else 0.0

    def single_spread(self, ours: float, restarts: int, spread: float | None) -> float:
        """Return the standard deviation of what a single run adds to the figure."""
        assert self.runs is not None
        if self.statistic == "share":
            if not 0.0 <= ours <= 1.0:
                return 0.0
            # One run more than was made on either side, so that shares of none and of all are not without error.
            together = (self.value * self.runs + ours * restarts + 0.5) / (self.runs + restarts + 1.0)
            return math.sqrt(together * (1.0 - together))
        if self.statistic == "deviation":
            return self.value * (math.nan if spread is None else spread)
        if self.spread is not None:
            return self.spread
        return math.nan if spread is None else spread

    def judge(self, ours: float, *, restarts: int, spread: float | None = None) -> Verdict:
        """Compare our figure, from ``restarts`` restarts, with the printed one."""
        difference = ours - self.value
        allowed = self.allowed(ours, restarts=restarts, spread=spread)
        if abs(difference) <= allowed + _EDGE_TOLERANCE * (abs(self.value) + allowed):
            return Verdict.FITTED if self.fitted else Verdict.AGREES
        return Verdict.BETTER if self._surpassed_by(difference) else Verdict.DIFFERS

    def _surpassed_by(self, difference: float) -> bool:
        if not math.isfinite(difference):
            return False
        return (self.rule == "at most" and difference < 0) or (self.rule == "at least" and difference > 0)


@dataclass(frozen=True)
class Cell:
    """A row of a table: a function that recomputes it, and what the table prints.

    Parameters
    ----------
    label : str
        The row's name in reports.
    run : callable
        ``run(restarts=..., seed=...)`` returns a dict of figures by name. A function of a module, or a
        ``functools.partial`` of one, so that it travels to other processes; heavy imports belong inside it.
    printed : mapping of str to Printed
        Printed figures by the names that ``run`` uses; figures of ``run`` that no table prints are shown too.
    restarts, quick_restarts : int
        Number of random starts of the full protocol, and of the quick one.
    column : str
        What the rows of a table have in common that are to be told apart: cells of the same column are methods on the
        same data.
    quick : bool
        Whether the cell belongs to the quick subset; :mod:`reproduction.quick` decides it, no declaration.
    """

    label: str
    run: CellFunction
    _: KW_ONLY
    printed: Mapping[str, Printed] = field(default_factory=dict)
    restarts: int = 1
    quick_restarts: int | None = None
    column: str = ""
    quick: bool = False

    def __post_init__(self) -> None:
        if min(self.restarts, self.quick_restarts or 1) < 1:
            raise ValueError(f"Cell {self.label!r}: restarts and quick_restarts must be at least 1.")

    def planned_restarts(self, *, restarts: int | None = None, quick: bool = False) -> int:
        """Return the number of restarts to make: ``restarts``, or that of the full or quick protocol."""
        if restarts is not None:
            return restarts
        return self.quick_restarts or min(self.restarts, QUICK_RESTARTS) if quick else self.restarts


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A published table, or its rows on one data set, as something that can be run.

    Parameters
    ----------
    id : str
        Name on the command line: lower-case letters, digits, dots and hyphens.
    title, source : str
        What it is about, and the document, table and rows it checks.
    data : tuple of str
        Benchmarks needed, by their names in :func:`kernelweave.datasets.load_benchmark`.
    preprocessing, protocol : str
        One sentence each, for reports.
    cells : mapping of str to Cell
        The rows, by an id made of the same characters as the experiment's.
    """

    id: str
    title: str
    source: str
    data: tuple[str, ...] = ()
    preprocessing: str = ""
    protocol: str = ""
    cells: Mapping[str, Cell]

    def __post_init__(self) -> None:
        for name in (self.id, *self.cells):
            if not _SLUG.fullmatch(name):
                raise ValueError(f"{name!r} cannot be an id: use lower-case letters, digits, '.' and '-'.")
        if not self.cells:
            raise ValueError(f"Experiment {self.id!r} has no cells.")

    def selected(self, *, quick: bool = False) -> dict[str, Cell]:
        """Return the cells of the full protocol, or those of the quick subset."""
        return {name: cell for name, cell in self.cells.items() if cell.quick or not quick}


def spread_of(metric: str) -> str:
    """Return the figure that tells how far a single run of ours moves another one."""
    return f"{metric.removesuffix('_mean')}_std" if metric.endswith("_mean") else f"{metric}{HIDDEN}"


def mean_and_std(name: str, values: ArrayLike) -> dict[str, float]:
    """Return the figures ``<name>_mean`` and ``<name>_std`` (n - 1) of ``values``, one per restart.

    ``<name>_std_error`` is the relative standard error of such a deviation for a single run, from the fourth moment: of
    n runs it is that divided by the root of n.
    """
    values = np.asarray(values, dtype=float)
    spread = values.std(ddof=1) if len(values) > 1 else math.nan
    return {
        f"{name}_mean": float(values.mean()),
        f"{name}_std": float(spread),
        f"{name}_std{HIDDEN}": _relative_error_of_deviation(values),
    }


def _relative_error_of_deviation(values: ArrayLike) -> float:
    """Return sqrt((kurtosis - 1) / 4), that of a normal distribution where there are too few values to tell."""
    values = np.asarray(values, dtype=float)
    squares = (values - values.mean()) ** 2
    if len(values) < FEWEST_FOR_KURTOSIS or not squares.any():
        return math.sqrt(0.5)
    kurtosis = float((squares**2).mean() / squares.mean() ** 2)
    return math.sqrt(max(kurtosis - 1.0, 0.0) / 4.0)
