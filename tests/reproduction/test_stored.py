"""Results kept with the code: written, read again, judged by the declarations of the day."""

import json
import math

import pytest

from reproduction import Cell, Experiment, Printed, Verdict, run_experiment, stored_files
from reproduction.stored import pin, pinned, store, stored_result, verdicts_of
from reproduction.stored_files import stored_cells

FIGURES = {
    "error_mean": 10.123456789012345,
    "error_std": math.nan,
    "error_std_error": 0.5,
    "bound": math.inf,
    "nmi": 0.7,
}


def row(restarts, seed):
    return FIGURES


PRINTED = {"nmi": Printed(0.75), "error_mean": Printed(10.12, statistic="mean", runs=5)}


def toy(printed=PRINTED, name="toy", cells=("first", "second")):
    declared = {cell: Cell(cell.title(), row, printed=printed, restarts=7) for cell in cells}
    return Experiment(id=name, title="Toy", source="PhD table 2.5", cells=declared)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_files, "FOLDER", tmp_path / "stored")
    return tmp_path / "stored"


def test_nothing_is_known_before_something_is_stored():
    assert stored_cells("toy") == {}
    assert stored_result(toy()).cells == ()
    assert pinned() == {}


def test_what_is_stored_comes_back_with_its_date_seed_and_commit():
    computed = run_experiment(toy(), seed=3)
    store([computed], "abc123")
    back = stored_result(toy())
    assert [cell.cell for cell in back.cells] == ["first", "second"]
    for fresh, kept in zip(computed.cells, back.cells, strict=True):
        assert verdicts_of(kept) == verdicts_of(fresh)
        assert (kept.restarts, kept.seed, kept.finished, kept.versions) == (7, 3, fresh.finished, fresh.versions)
        assert kept.label == fresh.label
        assert list(kept.ours) == list(fresh.ours)
        assert kept.ours["error_mean"] == pytest.approx(FIGURES["error_mean"], rel=1e-9)
        assert kept.ours["nmi"] == 0.7
        assert math.isnan(kept.ours["error_std"])
        assert kept.seconds == pytest.approx(fresh.seconds, abs=0.005)
    assert stored_cells("toy")["first"].commit == "abc123"


def test_files_are_json_that_any_reader_takes(folder):
    store([run_experiment(toy())], "abc123")
    text = (folder / "toy.json").read_text(encoding="utf-8")

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    content = json.loads(text, parse_constant=refuse)
    assert content["first"]["figures"]["error_std"] is None
    assert content["first"]["figures"]["bound"] is None
    assert "verdict" not in text


def test_a_cell_that_is_stored_again_replaces_the_old_one_and_leaves_the_others():
    store([run_experiment(toy())], "old")
    store([run_experiment(toy(cells=("second",)))], "new")
    store([run_experiment(toy(name="other"))], "other")
    # Storing a part with the declaration of a part forgets the rest; with the whole declaration it does not.
    assert {name: cell.commit for name, cell in stored_cells("toy").items()} == {"second": "new"}
    whole = toy()
    store([run_experiment(whole)], "old")
    part = run_experiment(whole)
    store([type(part)(whole, part.cells[1:])], "newer")
    assert {name: cell.commit for name, cell in stored_cells("toy").items()} == {"first": "old", "second": "newer"}
    assert list(stored_cells("other")) == ["first", "second"]


def test_cells_that_nobody_declares_any_more_are_ignored_and_dropped_when_stored_again(folder):
    store([run_experiment(toy(cells=("second", "gone", "first")))], "old")
    assert [cell.cell for cell in stored_result(toy()).cells] == ["first", "second"]
    store([run_experiment(toy())], "new")
    assert list(json.loads((folder / "toy.json").read_text())) == ["first", "second"]


def test_a_stored_cell_that_lacks_a_figure_now_printed_is_ignored():
    store([run_experiment(toy())], "abc")
    assert stored_result(toy(printed={**PRINTED, "ari": Printed(0.5)})).cells == ()


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [
        (Printed(0.75), Verdict.DIFFERS),
        (Printed(0.7), Verdict.AGREES),
        (Printed(0.7, fitted=True), Verdict.FITTED),
        (Printed(0.6, rule="at least"), Verdict.BETTER),
        (Printed(0.6, rule="at most"), Verdict.DIFFERS),
        (Printed(0.5, statistic="share", runs=7), Verdict.AGREES),
    ],
)
def test_verdicts_follow_the_present_declaration(printed, verdict):
    store([run_experiment(toy())], "abc")
    (first, _) = stored_result(toy(printed={"nmi": printed})).cells
    assert first.figures[0].verdict == verdict


def test_a_folder_may_be_named(tmp_path, folder):
    store([run_experiment(toy())], "abc")
    assert stored_cells("toy", tmp_path / "elsewhere") == {}
    assert list(stored_cells("toy", folder)) == ["first", "second"]


def test_the_verdicts_of_the_quick_subset_come_back_also_those_that_differ(folder):
    pin([run_experiment(toy()), run_experiment(toy(name="other", cells=("only",)))])
    expected = {"nmi": "differs", "error_mean": "agrees"}
    assert pinned() == {"toy/first": expected, "toy/second": expected, "other/only": expected}
    assert pinned(folder) == pinned()
    pin([run_experiment(toy(name="other", cells=("only",)))])
    assert list(pinned()) == ["other/only"]
