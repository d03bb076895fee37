"""The tables of the sources: which one a printed figure stands in, and how ours stand to those of each.

``tally``      verdicts by table of the source: the scoreboard of ``docs/results.md`` and the README
``foreign``    how often the figure that a table prints for one method would pass for that of another
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reproduction.experiment import Printed, Verdict, spread_of
from reproduction.runner import CellResult, ExperimentResult

_TABLE = re.compile(r"(MSc|PhD|MVKSC)\b.*?\b(table|figure)s? (\d+(?:\.\d+)?)")
_SECTION = re.compile(r"(MSc|PhD|MVKSC) (\d+(?:\.\d+)*)")
OURS = "ours, not from a publication"
CLAIMS = ", claims of the text"


def table_of(source: str) -> str:
    """Return the table or figure of a source, or its section where it names none."""
    found = _TABLE.search(source)
    if found:
        return f"{found[1]} {found[2]} {found[3]}"
    section = _SECTION.search(source)
    return f"{section[1]} {section[2]}" if section else OURS


def tally(results: Iterable[ExperimentResult]) -> dict[str, Counter[Verdict]]:
    """Return how many figures of every table have which verdict, claims apart from figures."""
    counts: dict[str, Counter[Verdict]] = {}
    for result in results:
        for figure in (figure for cell in result.cells for figure in cell.figures):
            if figure.printed is not None:
                table = table_of(figure.printed.source or result.experiment.source)
                table += CLAIMS if figure.printed.statistic == "claim" else ""
                counts.setdefault(table, Counter())[figure.verdict] += 1
    return dict(sorted(counts.items(), key=lambda item: table_order(item[0])))


def table_order(table: str) -> tuple[str, str, list[int]]:
    """Return what tables are sorted by: source, figures before claims, number."""
    source, _, rest = table.partition(" ")
    return source, "claims" if table.endswith(CLAIMS) else "", [int(number) for number in re.findall(r"\d+", rest)]


# --- figures of other methods ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Foreign:
    """Pairs of methods whose printed figures differ, and those of which one passes for the other."""

    pairs: int
    accepted: int

    @property
    def share(self) -> float:
        """Accepted pairs as a share of all."""
        return self.accepted / self.pairs if self.pairs else math.nan


def foreign(results: Iterable[ExperimentResult]) -> dict[str, Foreign]:
    """Return for every table with several methods how often the figure of one would be accepted as that of another.

    Pairs count whose printed figures differ by more than rounding and their standard errors.
    """
    counts: dict[str, list[bool]] = {}
    for result in results:
        for ours, theirs in _pairs(result):
            if _differ(ours, theirs):
                passes = ours.printed.judge(theirs.printed.value, restarts=ours.restarts, spread=ours.spread)
                table = table_of(ours.printed.source or result.experiment.source)
                counts.setdefault(table, []).append(passes in (Verdict.AGREES, Verdict.FITTED))
    return {
        table: Foreign(len(each), sum(each)) for table, each in sorted(counts.items(), key=lambda i: table_order(i[0]))
    }


@dataclass(frozen=True)
class _Entry:
    """A printed figure, with the number and the spread of our runs."""

    printed: Printed
    restarts: int
    spread: float | None

    @property
    def error(self) -> float:
        """Standard error of the printed figure."""
        if self.printed.runs is None:
            return 0.0
        single = self.printed.single_spread(self.printed.value, self.restarts, self.spread)
        return single / math.sqrt(self.printed.runs) if math.isfinite(single) else 0.0


def _pairs(result: ExperimentResult) -> Iterator[tuple[_Entry, _Entry]]:
    """Return the pairs of figures of one column of a table, in both orders."""
    columns: dict[tuple[str, str], list[_Entry]] = {}
    for cell in result.cells:
        for metric, printed in result.experiment.cells[cell.cell].printed.items():
            if printed.statistic in ("exact", "mean"):
                key = result.experiment.cells[cell.cell].column, _column(metric)
                columns.setdefault(key, []).append(_entry(cell, metric, printed))
    for entries in columns.values():
        yield from itertools.permutations(entries, 2)


def _entry(cell: CellResult, metric: str, printed: Printed) -> _Entry:
    return _Entry(printed, cell.restarts, cell.ours.get(spread_of(metric)))


def _column(metric: str) -> str:
    """Return the column of a metric: means of a best and an average kernel stand beside other accuracies."""
    name = metric.removesuffix("_mean")
    return "accuracy" if name in ("best", "average") else name


def _differ(first: _Entry, second: _Entry) -> bool:
    apart = abs(first.printed.value - second.printed.value)
    return apart > first.printed.rounding + second.printed.rounding + math.hypot(first.error, second.error)
