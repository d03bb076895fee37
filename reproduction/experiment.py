"""How a published table is declared: figures as printed, cells that recompute them, experiments.

An experiment is one table (or its rows on one data set), a cell is one of its rows, computed as a whole.
Declarations hold no results: the runner computes them, the report shows ours beside theirs.

Tolerance   A figure printed from ``runs`` random starts is itself a sample. Give ``deviation``, the standard
            deviation of a single start, and the tolerance is never taken smaller than three standard errors
            of the difference between the printed mean and ours,
                3 * deviation * sqrt(1 / restarts + 1 / runs).
            A short run is thus judged more loosely, by exactly the error of its length, and can still fail.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

STANDARD_ERRORS = 3.0
RULES = ("within", "at most", "at least")
_EDGE_TOLERANCE = 1e-12  # relative slack for the subtraction, so that a figure on the edge counts as inside
_SLUG = re.compile(r"[a-z0-9][a-z0-9.-]*")

CellFunction = Callable[..., Mapping[str, float]]


class Verdict(StrEnum):
    """The result of comparing our figure with the printed one."""

    MATCH = "match"
    BETTER = "better"
    DIFFERS = "differs"
    TOO_FEW = "too few restarts"
    NO_FIGURE = "no printed figure"


@dataclass(frozen=True)
class Printed:
    """A figure as a source document prints it, with the deviation that still counts as the same.

    Parameters
    ----------
    value : float
        The printed figure.
    tolerance : float
        Largest accepted distance from ``value``: absolute, or a fraction of ``value`` where ``relative``.
    relative : bool
        Whether ``tolerance`` is a fraction.
    rule : {"within", "at most", "at least"}
        ``"at most"``: a value lower than printed by more than the tolerance is better, not different.
        ``"at least"``: the same for higher values.
    source : str or None
        Document, table, row and column; None where the source of the experiment is precise enough.
    decimals : int
        Digits after the point in print.
    deviation, runs : float or None, int or None
        Standard deviation of one random start, and the number of starts behind a printed mean.
    min_restarts : int
        With fewer restarts a figure that is off means nothing, as for the best of many starts.

    Examples
    --------
    >>> mean = Printed(937.04, 1.0, deviation=7.13, runs=500)
    >>> round(mean.allowed(500), 2), round(mean.allowed(20), 2)
    (1.35, 4.88)
    >>> mean.judge(940.0, restarts=500), mean.judge(940.0, restarts=20)
    (<Verdict.DIFFERS: 'differs'>, <Verdict.MATCH: 'match'>)
    """

    value: float
    tolerance: float
    _: KW_ONLY
    relative: bool = False
    rule: str = "within"
    source: str | None = None
    decimals: int = 2
    deviation: float | None = None
    runs: int | None = None
    min_restarts: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and 0 <= self.tolerance < math.inf):
            raise ValueError(f"A printed figure needs a finite value and tolerance >= 0; got {self}.")
        if self.rule not in RULES:
            raise ValueError(f"rule={self.rule!r} is none of {', '.join(map(repr, RULES))}.")
        if (self.deviation is None) != (self.runs is None):
            raise ValueError(f"deviation and runs belong together; got {self}.")

    def allowed(self, restarts: int) -> float:
        """Return the largest accepted distance from the printed value for a run of ``restarts``."""
        declared = self.tolerance * (abs(self.value) if self.relative else 1.0)
        if self.deviation is None or self.runs is None:
            return declared
        return max(declared, STANDARD_ERRORS * self.deviation * math.sqrt(1 / restarts + 1 / self.runs))

    def judge(self, ours: float, *, restarts: int) -> Verdict:
        """Compare our figure, from ``restarts`` restarts, with the printed one."""
        difference = ours - self.value
        allowed = self.allowed(restarts)
        if abs(difference) <= allowed + _EDGE_TOLERANCE * (abs(self.value) + allowed):
            return Verdict.MATCH
        if self._surpassed_by(difference):
            return Verdict.BETTER
        return Verdict.TOO_FEW if restarts < self.min_restarts else Verdict.DIFFERS

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
    quick : bool
        Whether the cell belongs to the quick subset, which the golden tests run.
    """

    label: str
    run: CellFunction
    _: KW_ONLY
    printed: Mapping[str, Printed] = field(default_factory=dict)
    restarts: int = 1
    quick_restarts: int | None = None
    quick: bool = False

    def __post_init__(self) -> None:
        if min(self.restarts, self.quick_restarts or 1) < 1:
            raise ValueError(f"Cell {self.label!r}: restarts and quick_restarts must be at least 1.")

    def planned_restarts(self, *, restarts: int | None = None, quick: bool = False) -> int:
        """Return the number of restarts to make: ``restarts``, or that of the full or quick protocol."""
        if restarts is not None:
            return restarts
        return self.quick_restarts if quick and self.quick_restarts else self.restarts


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


def mean_and_std(name: str, values: ArrayLike) -> dict[str, float]:
    """Return the figures ``<name>_mean`` and ``<name>_std`` (n - 1) of ``values``, one per restart."""
    values = np.asarray(values, dtype=float)
    spread = values.std(ddof=1) if len(values) > 1 else math.nan
    return {f"{name}_mean": float(values.mean()), f"{name}_std": float(spread)}
