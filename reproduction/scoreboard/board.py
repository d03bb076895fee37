"""From records to the board: a score for every method and set, means over sets, ranks, best or tied.

Score       mean NMI over the seeds; a method that failed with any seed on a set has failed there
Ranked      sets that every method has a record of. Scores that agree to three decimals are equal. Failures are last,
            and count as NMI, ARI and ACC of 0 in means; times and memory are means over the sets where there are labels
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from reproduction.scoreboard.ranking import Floats, Friedman, critical_difference, friedman, ranks
from reproduction.scoreboard.records import Record, of_largest_sets

DIGITS = 3  # scores that agree to so many decimals are equal


@dataclass(frozen=True)
class Cell:
    """A method on a set: means over the seeds, or why it failed."""

    nmi: float
    ari: float
    acc: float
    seconds: float
    memory_mib: float
    n_seeds: int
    error: str

    @property
    def failed(self) -> bool:
        """Whether a seed gave no labels."""
        return bool(self.error)


@dataclass(frozen=True)
class Row:
    """A method over the ranked sets."""

    method: str
    library: str
    nmi: float
    ari: float
    acc: float
    rank: float
    n_best: int
    n_failed: int
    seconds: float
    memory_mib: float


@dataclass(frozen=True)
class SetFacts:
    """The size of a set."""

    n_samples: int
    n_views: int
    n_clusters: int


@dataclass(frozen=True)
class Board:
    """All that is shown; rows are in the order of their ranks."""

    rows: tuple[Row, ...]
    sets: dict[str, SetFacts]
    ranked_sets: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    difference: float  # critical difference of mean ranks
    test: Friedman | None
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Shortfall:
    """A set on which a method is behind the best one."""

    set: str
    nmi: float
    failed: bool
    best: float
    best_method: str


def build_board(records: Iterable[Record]) -> Board:
    """Return the board of these records."""
    kept = of_largest_sets(records)
    cells = _cells(kept)
    sets = _sets(kept)
    libraries = {record.method: record.library for record in kept}
    ranked_sets = tuple(name for name in sets if all((method, name) in cells for method in libraries))
    scores = _scores(cells, list(libraries), ranked_sets)
    ranked = ranks(scores)
    rows = [
        _row(method, library, [cells[method, name] for name in ranked_sets], ranked[:, at], _is_best(scores)[:, at])
        for at, (method, library) in enumerate(libraries.items())
    ]
    return Board(
        rows=tuple(sorted(rows, key=lambda row: (row.rank, -row.nmi, row.method))),
        sets=sets,
        ranked_sets=ranked_sets,
        cells=cells,
        difference=critical_difference(len(libraries), len(ranked_sets)),
        test=friedman(ranked),
        records=tuple(kept),
    )


def best_score(board: Board, name: str) -> tuple[float, str]:
    """Return the best score on a set and who has it, the first by rank of equals; minus infinity where all failed."""
    best = (-math.inf, "")
    for row in board.rows:
        cell = board.cells.get((row.method, name))
        if cell is not None and not cell.failed and cell.nmi > best[0]:
            best = (cell.nmi, row.method)
    return best


def shortfalls(board: Board, method: str, least: float) -> list[Shortfall]:
    """Return the sets on which a method is more than ``least`` below the best, the worst first."""
    behind = []
    for name in board.sets:
        best, best_method = best_score(board, name)
        cell = board.cells.get((method, name))
        if cell is not None and best - cell.nmi > least:
            behind.append(Shortfall(name, cell.nmi, cell.failed, best, best_method))
    return sorted(behind, key=lambda each: each.nmi - each.best)


# --- parts ------------------------------------------------------------------------------------------------------------


def _cells(records: Iterable[Record]) -> dict[tuple[str, str], Cell]:
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        groups[record.method, record.set].append(record)
    return {key: _cell(group) for key, group in groups.items()}


def _cell(records: Sequence[Record]) -> Cell:
    failures = [record for record in records if record.failed]
    if failures:
        return Cell(0.0, 0.0, 0.0, math.nan, math.nan, len(records), failures[0].error)
    return Cell(
        nmi=_mean(record.nmi for record in records),
        ari=_mean(record.ari for record in records),
        acc=_mean(record.acc for record in records),
        seconds=_mean(record.seconds for record in records),
        memory_mib=_mean(record.memory_mib for record in records),
        n_seeds=len(records),
        error="",
    )


def _sets(records: Iterable[Record]) -> dict[str, SetFacts]:
    """Return the sets, the smallest first."""
    sets = {each.set: SetFacts(each.n_samples, each.n_views, each.n_clusters) for each in records}
    return dict(sorted(sets.items(), key=lambda item: (item[1].n_samples, item[0])))


def _scores(cells: dict[tuple[str, str], Cell], methods: Sequence[str], sets: Sequence[str]) -> Floats:
    """Return one row per set and one column per method."""
    scores = np.empty((len(sets), len(methods)))
    for i, name in enumerate(sets):
        for j, method in enumerate(methods):
            cell = cells[method, name]
            scores[i, j] = -math.inf if cell.failed else round(cell.nmi, DIGITS)
    return scores


def _is_best(scores: Floats) -> Floats:
    best = scores.max(axis=1, keepdims=True, initial=-math.inf)
    return (scores == best) & np.isfinite(scores)


def _row(method: str, library: str, cells: Sequence[Cell], ranked: Floats, is_best: Floats) -> Row:
    with_labels = [cell for cell in cells if not cell.failed]
    return Row(
        method=method,
        library=library,
        nmi=_mean(cell.nmi for cell in cells),
        ari=_mean(cell.ari for cell in cells),
        acc=_mean(cell.acc for cell in cells),
        rank=_mean(ranked.tolist()),
        n_best=int(is_best.sum()),
        n_failed=len(cells) - len(with_labels),
        seconds=_mean(cell.seconds for cell in with_labels),
        memory_mib=_mean(cell.memory_mib for cell in with_labels),
    )


def _mean(values: Iterable[float | None]) -> float:
    """Return the mean of what is known, not a number where nothing is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else math.nan
