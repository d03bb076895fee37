"""Which cells the golden tests run: a rule that looks at what a cell costs and at its name, never at what it gives.

A cell costs what its stored run took, times the share of its restarts that a quick run makes. Cells that share work
are not cheap because another one did it: claims on a table, which take what its rows gave, cost what the whole
experiment took, and one column of a row what all its columns took. Of the cells of an experiment that cost no more than
``LIMIT`` seconds and print a figure, the ``CELLS`` first ones by a hash of their names are taken, as long as all
together cost no more than ``BUDGET``; experiments take turns, so that none is left out for another's sake.
"""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256

from reproduction.experiment import Cell, Experiment
from reproduction.stored_files import StoredCell, stored_cells

#: Seconds of one cell and of all, and cells of one experiment.
LIMIT = 4.0
BUDGET = 60.0
CELLS = 2


def with_quick_cells(experiments: Iterable[Experiment]) -> list[Experiment]:
    """Return the experiments with the cells of the quick subset marked."""
    known = list(experiments)
    chosen = _chosen({each.id: _candidates(each) for each in known})
    return [_marked(each, chosen.get(each.id, set())) for each in known]


def _candidates(experiment: Experiment) -> list[tuple[str, float]]:
    """Return the cells that may be taken with what they cost, in the order in which they are taken."""
    stored = stored_cells(experiment.id)
    costs = {name: _cost(cell, stored[name]) for name, cell in experiment.cells.items() if name in stored}
    whole = sum(costs.values())
    rows = {name: name.removesuffix(f"-{experiment.cells[name].column}") for name in costs}
    shared = {row: sum(cost for name, cost in costs.items() if rows[name] == row) for row in set(rows.values())}
    costs = {name: whole if _claims(experiment.cells[name]) else shared[rows[name]] for name in costs}
    names = [name for name, cost in costs.items() if cost <= LIMIT and experiment.cells[name].printed]
    names.sort(key=lambda name: sha256(f"{experiment.id}/{name}".encode()).hexdigest())
    return [(name, costs[name]) for name in names[:CELLS]]


def _claims(cell: Cell) -> bool:
    """Whether a cell holds nothing but claims of the text."""
    return all(printed.statistic == "claim" for printed in cell.printed.values())


def _cost(cell: Cell, stored: StoredCell) -> float:
    return stored.seconds * cell.planned_restarts(quick=True) / stored.restarts


def _chosen(candidates: dict[str, list[tuple[str, float]]]) -> dict[str, set[str]]:
    """Return the cells taken: the first of every experiment, then the second, until the budget is spent."""
    chosen: dict[str, set[str]] = {}
    spent = 0.0
    for turn in range(CELLS):
        for experiment, cells in candidates.items():
            if turn < len(cells) and spent + cells[turn][1] <= BUDGET:
                spent += cells[turn][1]
                chosen.setdefault(experiment, set()).add(cells[turn][0])
    return chosen


def _marked(experiment: Experiment, quick: set[str]) -> Experiment:
    cells = {name: replace(cell, quick=name in quick) for name, cell in experiment.cells.items()}
    return replace(experiment, cells=cells)
