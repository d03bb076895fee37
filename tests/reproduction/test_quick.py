"""The quick subset: chosen by what cells cost and by their names, and by nothing they gave."""

from dataclasses import replace

import pytest

from reproduction import Cell, Experiment, Printed, catalogue, quick
from reproduction.stored_files import StoredCell

PRINTED = {"error": Printed(1.0)}


def toy(name, n_cells=5, printed=PRINTED, **options):
    cells = {
        f"row-{i}": Cell("Row", dict, printed=printed, restarts=100, quick_restarts=10, **options)
        for i in range(n_cells)
    }
    return Experiment(id=name, title="", source="", cells=cells)


def kept(seconds, figures=None, restarts=100):
    return StoredCell(figures or {"error": 1.0}, restarts, 0, seconds, "2031-02-03", {}, "abc")


def chosen(monkeypatch, experiments, stored):
    """The cells of the subset, where this is stored by experiment and cell."""
    monkeypatch.setattr(quick, "stored_cells", lambda name: stored.get(name, {}))
    marked = quick.with_quick_cells(experiments)
    return [(each.id, name) for each in marked for name, cell in each.cells.items() if cell.quick]


def all_at(experiments, seconds, **options):
    return {each.id: dict.fromkeys(each.cells, kept(seconds, **options)) for each in experiments}


def cost(cell, stored):
    return stored.seconds * cell.planned_restarts(quick=True) / stored.restarts


@pytest.fixture
def toys():
    return [toy(name) for name in ("one", "two", "three")]


def test_figures_and_what_is_printed_do_not_matter(toys, monkeypatch):
    before = chosen(monkeypatch, toys, all_at(toys, 1.0))
    assert len(before) == len(toys) * quick.CELLS
    assert chosen(monkeypatch, toys, all_at(toys, 1.0, figures={"error": float("nan"), "more": 7.0})) == before
    other = [toy(each.id, printed={"other": Printed(99.0, fitted=True)}) for each in toys]
    assert chosen(monkeypatch, other, all_at(other, 1.0)) == before


def test_the_whole_catalogue_is_chosen_from_alike_whatever_its_cells_gave(monkeypatch):
    known = list(catalogue().values())
    costs = {
        each.id: {
            name: kept(1.0 + (len(each.id) * 7 + i) % 11, restarts=cell.restarts)
            for i, (name, cell) in enumerate(each.cells.items())
        }
        for each in known
    }
    before = chosen(monkeypatch, known, costs)
    changed = {
        each: {name: replace(cell, figures={"ce": -1e6}) for name, cell in cells.items()}
        for each, cells in costs.items()
    }
    assert before
    assert chosen(monkeypatch, known, changed) == before


def test_names_and_seconds_do_matter(toys, monkeypatch):
    stored = all_at(toys, 1.0)
    before = chosen(monkeypatch, toys, stored)
    experiment, cell = before[0]
    slower = {**stored, experiment: {**stored[experiment], cell: kept(10 * quick.LIMIT + 1.0)}}
    after = chosen(monkeypatch, toys, slower)
    assert (experiment, cell) not in after
    assert [each for each in after if each[0] != experiment] == [each for each in before if each[0] != experiment]
    assert len(after) == len(before)

    places = [{int(name[-1]) for id_, name in before if id_ == each.id} for each in toys]
    renamed = [toy(f"renamed-{i}") for i in range(8)]
    others = chosen(monkeypatch, renamed, all_at(renamed, 1.0))
    places += [{int(name[-1]) for id_, name in others if id_ == each.id} for each in renamed]
    assert len(set(map(frozenset, places))) > 3  # not always the same rows


def test_the_limit_is_that_of_a_quick_run(toys, monkeypatch):
    edge = quick.LIMIT * 100 / 10  # ten of a hundred restarts
    assert len(chosen(monkeypatch, toys, all_at(toys, edge))) == len(toys) * quick.CELLS
    assert not chosen(monkeypatch, toys, all_at(toys, 1.01 * edge))


@pytest.mark.parametrize("seconds", [3.0, 17.0, 40.0])
def test_the_budget_holds_and_experiments_take_turns(seconds, monkeypatch):
    many = [toy(f"e-{i}") for i in range(40)]
    stored = all_at(many, seconds)
    taken = chosen(monkeypatch, many, stored)
    cells = {each.id: each.cells for each in many}
    spent = sum(cost(cells[id_][name], stored[id_][name]) for id_, name in taken)
    assert spent <= quick.BUDGET
    fits = int(quick.BUDGET / (seconds / 10))
    assert len(taken) == min(fits, len(many) * quick.CELLS)
    assert len({id_ for id_, _ in taken}) == min(fits, len(many))  # nobody has a second cell before all have one


def test_every_experiment_with_a_cheap_printed_cell_has_a_place_and_no_other(toys, monkeypatch):
    unprinted = toy("unprinted", printed={})
    stored = all_at([*toys, unprinted], 1.0)
    stored["two"] = {name: kept(20.0 if name == "row-3" else 1e4) for name in stored["two"]}
    stored["three"] = {}  # never stored
    taken = chosen(monkeypatch, [*toys, unprinted], stored)
    assert {id_ for id_, _ in taken} == {"one", "two"}
    assert ("two", "row-3") in taken


def test_marks_of_declarations_are_overwritten(toys, monkeypatch):
    by_hand = toy("by-hand", quick=True)
    assert chosen(monkeypatch, [by_hand], {}) == []
    assert len(chosen(monkeypatch, [by_hand], all_at([by_hand], 1.0))) == quick.CELLS
