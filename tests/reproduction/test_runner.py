import json
import math
import os
from functools import partial
from pathlib import Path

import pytest

import kernelweave
from kernelweave.foundation.errors import ParameterError
from reproduction import (
    CacheWarning,
    Cell,
    CellError,
    Experiment,
    Printed,
    Verdict,
    default_cache_dir,
    run_experiment,
    run_experiments,
    runner,
)
from reproduction.experiment import ERRORS


def counted(restarts, seed, *, log=None, offset=0.0):
    """A cell whose figures show what it was called with, and which counts its calls in a file."""
    if log is not None:
        with open(log, "a") as file:
            file.write(f"{os.getpid()}\n")
    return {"error": 10.0 + offset, "restarts": restarts, "seed": seed}


def broken(restarts, seed):
    raise ZeroDivisionError("no cluster left\nsecond line")


def forgetful(restarts, seed):
    return {"something else": 1.0}


PRINTED = {"error": Printed(10.0, rule="at most")}


@pytest.fixture
def log(tmp_path):
    return tmp_path / "calls"


def calls(log):
    return len(log.read_text().splitlines()) if log.exists() else 0


def toy(name="toy", **cells):
    return Experiment(id=name, title="Toy", source="Toy table 1", cells=cells)


def row(log=None, offset=0.0, **options):
    return Cell("Row", partial(counted, log=log, offset=offset), printed=PRINTED, restarts=4, **options)


def test_results_set_ours_beside_the_printed_figure():
    result = run_experiment(toy(a=row(), b=row(offset=-3.0), c=row(offset=3.0)), seed=5)
    first = result.cells[0]
    assert [cell.cell for cell in result.cells] == ["a", "b", "c"]
    assert [figure.metric for figure in first.figures] == ["error", "restarts", "seed"]
    assert [figure.ours for figure in first.figures] == [10.0, 4, 5]
    assert [cell.figures[0].verdict for cell in result.cells] == [
        Verdict.AGREES,
        Verdict.BETTER,
        Verdict.DIFFERS,
    ]
    assert first.figures[1].verdict == Verdict.NO_FIGURE
    assert first.restarts == 4
    assert first.seconds >= 0
    assert {"python", "kernelweave", "numpy"} <= set(first.versions)


def test_a_finished_cell_is_not_computed_again(tmp_path, log):
    experiment = toy(a=row(log))
    fresh = run_experiment(experiment, cache_dir=tmp_path / "cache")
    again = run_experiment(experiment, cache_dir=tmp_path / "cache")
    assert calls(log) == 1
    assert [fresh.cells[0].cached, again.cells[0].cached] == [False, True]
    assert fresh.cells[0].figures == again.cells[0].figures


def test_without_a_cache_nothing_is_kept_and_force_computes_again(tmp_path, log):
    experiment, cache = toy(a=row(log)), tmp_path / "cache"
    run_experiment(experiment)
    assert not cache.exists()
    run_experiment(experiment, cache_dir=cache)
    assert not run_experiment(experiment, cache_dir=cache, force=True).cells[0].cached
    assert calls(log) == 3


def test_the_cache_separates_restarts_seeds_cells_experiments_and_versions(tmp_path, monkeypatch):
    def files(experiment, **options):
        run_experiment(experiment, cache_dir=tmp_path, **options)
        return len(list(tmp_path.rglob("*.json")))

    one = toy(a=row())
    counts = [files(one), files(one), files(one, restarts=2), files(one, seed=1)]
    counts += [files(toy(b=row())), files(toy("other", a=row()))]
    monkeypatch.setattr(runner, "library_version", lambda: "99.0")
    counts += [files(one), files(one)]
    assert counts == [1, 1, 2, 3, 4, 5, 6, 6]


def test_the_digest_covers_the_library_and_not_its_command_line(tmp_path, monkeypatch):
    assert Path(kernelweave.__file__).parent == runner._LIBRARY
    (tmp_path / "cli").mkdir()
    (tmp_path / "solver.py").write_text("a = 1")
    monkeypatch.setattr(runner, "_LIBRARY", tmp_path)
    digest = runner._library_digest.__wrapped__
    before = digest()
    (tmp_path / "cli" / "command.py").write_text("b = 1")
    assert digest() == before
    (tmp_path / "solver.py").write_text("a = 2")
    assert digest() != before


def test_a_development_version_notices_that_its_source_has_changed(tmp_path, log, monkeypatch):
    monkeypatch.setattr(runner, "library_version", lambda: "1.0.dev3")
    run_experiment(toy(a=row(log)), cache_dir=tmp_path / "cache")
    monkeypatch.setattr(runner, "_library_digest", lambda: b"edited")
    run_experiment(toy(a=row(log)), cache_dir=tmp_path / "cache")
    assert calls(log) == 2
    monkeypatch.setattr(runner, "library_version", lambda: "1.0")
    for digest in (b"edited", b"edited again"):
        monkeypatch.setattr(runner, "_library_digest", lambda digest=digest: digest)
        run_experiment(toy(a=row(log)), cache_dir=tmp_path / "cache")
    assert calls(log) == 3


def test_verdicts_follow_the_declaration_not_the_cache(tmp_path):
    run_experiment(toy(a=row(offset=3.0)), cache_dir=tmp_path)
    for printed, verdict in (
        (Printed(13.0), Verdict.AGREES),
        (Printed(13.0, fitted=True), Verdict.FITTED),
        (Printed(10.0, rule="at least"), Verdict.BETTER),
    ):
        declared = Cell("Row", partial(counted, offset=3.0), printed={"error": printed}, restarts=4)
        result = run_experiment(toy(a=declared), cache_dir=tmp_path)
        assert result.cells[0].cached
        assert result.cells[0].figures[0].verdict == verdict


def spread_out(restarts, seed):
    return {"error_mean": 10.5, "error_std": 0.4, "error_std_error": 0.9, "share": 0.5}


def test_the_spread_of_our_runs_stands_in_where_none_is_printed_and_is_not_shown():
    printed = {
        "error_mean": Printed(10.0, statistic="mean", runs=25),
        "error_std": Printed(0.4, statistic="deviation", runs=25),
    }
    (cell,) = run_experiment(toy(a=Cell("Row", spread_out, printed=printed, restarts=25))).cells
    mean, deviation, share = cell.figures
    assert [figure.metric for figure in cell.figures] == ["error_mean", "error_std", "share"]
    assert mean.allowed == pytest.approx(0.005 + ERRORS * 0.4 * math.sqrt(2 / 25))
    assert deviation.allowed == pytest.approx(0.005 + ERRORS * 0.4 * 0.9 * math.sqrt(2 / 25))
    assert [mean.verdict, deviation.verdict, share.verdict] == [Verdict.DIFFERS, Verdict.AGREES, Verdict.NO_FIGURE]
    assert cell.ours == spread_out(25, 0)


def test_a_failing_cell_leaves_the_others_finished_and_on_disk(tmp_path, log):
    experiment = toy(a=row(log), b=Cell("Broken", broken), c=row(log))
    reported = []
    with pytest.raises(CellError, match=r"toy/b failed: ZeroDivisionError") as caught:
        run_experiment(experiment, cache_dir=tmp_path / "cache", on_cell=lambda cell: reported.append(cell.cell))
    assert reported == ["a", "c"]
    assert str(caught.value) == "toy/b failed: ZeroDivisionError: no cluster left"
    assert "in broken" in caught.value.__notes__[0]
    mended = run_experiment(toy(a=row(log), b=row(log), c=row(log)), cache_dir=tmp_path / "cache")
    assert [cell.cached for cell in mended.cells] == [True, False, True]
    assert calls(log) == 3


def test_an_interrupted_run_keeps_what_was_finished_and_leaves_no_partial_file(tmp_path, log):
    def interrupt(restarts, seed):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(toy(a=row(log), b=Cell("Killed", interrupt), c=row(log)), cache_dir=tmp_path / "cache")
    assert [file.name.split("-")[0] for file in (tmp_path / "cache" / "toy").iterdir()] == ["a"]
    run_experiment(toy(a=row(log), b=row(log), c=row(log)), cache_dir=tmp_path / "cache")
    assert calls(log) == 3


def test_a_write_that_is_cut_short_leaves_neither_a_partial_nor_an_old_file_behind(tmp_path, monkeypatch):
    target = tmp_path / "cell.json"
    runner._write(target, "old")

    def cut_short(source, destination):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", cut_short)
    with pytest.raises(KeyboardInterrupt):
        runner._write(target, "new")
    assert [file.name for file in tmp_path.iterdir()] == ["cell.json"]
    assert target.read_text() == "old"


def without(name):
    return lambda record: {key: value for key, value in record.items() if key != name}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda record: "{ cut sho",
        lambda record: "[1, 2]",
        lambda record: "",
        without("ours"),
        lambda record: {**record, "ours": {"error": "ten"}},
        lambda record: {**record, "ours": {}},
        lambda record: {**record, "ours": 3.0},
        lambda record: {**record, "key": {**record["key"], "cell": "z"}},
        lambda record: {**record, "unknown": 1},
    ],
)
def test_a_spoilt_or_foreign_cache_file_is_told_and_replaced(tmp_path, log, spoil):
    experiment, cache = toy(a=row(log)), tmp_path / "cache"
    run_experiment(experiment, cache_dir=cache)
    (file,) = cache.rglob("*.json")
    spoilt = spoil(json.loads(file.read_text()))
    file.write_text(spoilt if isinstance(spoilt, str) else json.dumps(spoilt))
    with pytest.warns(CacheWarning, match="computed again"):
        result = run_experiment(experiment, cache_dir=cache)
    assert result.cells[0].figures[0].ours == 10.0
    assert run_experiment(experiment, cache_dir=cache).cells[0].cached
    assert calls(log) == 2


def test_bytes_that_are_no_text_are_told_and_replaced(tmp_path):
    run_experiment(toy(a=row()), cache_dir=tmp_path)
    (file,) = tmp_path.rglob("*.json")
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.warns(CacheWarning, match="computed again"):
        run_experiment(toy(a=row()), cache_dir=tmp_path)


def test_a_cell_must_give_every_figure_its_table_prints():
    with pytest.raises(CellError, match="no figure error"):
        run_experiment(toy(a=Cell("Forgetful", forgetful, printed=PRINTED)))


def test_workers_give_the_same_figures_and_report_each_cell_once(tmp_path, log):
    experiments = [
        toy("first", a=row(log), b=row(log, offset=1.0)),
        toy("second", a=row(log, offset=2.0), b=Cell("Broken", broken)),
    ]
    reported = []
    with pytest.raises(CellError, match="second/b failed: ZeroDivisionError"):
        run_experiments(experiments, cache_dir=tmp_path / "cache", n_jobs=2, on_cell=reported.append)
    assert sorted((cell.experiment, cell.cell) for cell in reported) == [
        ("first", "a"),
        ("first", "b"),
        ("second", "a"),
    ]
    assert str(os.getpid()) not in log.read_text().split()
    alone = run_experiment(experiments[0])
    kept = run_experiment(experiments[0], cache_dir=tmp_path / "cache")
    assert [cell.figures for cell in alone.cells] == [cell.figures for cell in kept.cells]
    assert all(cell.cached for cell in kept.cells)


def test_quick_runs_the_quick_cells_alone_with_few_restarts():
    experiment = toy(slow=row(), fast=row(quick=True, quick_restarts=2))
    result = run_experiment(experiment, quick=True)
    assert [(cell.cell, cell.restarts) for cell in result.cells] == [("fast", 2)]


@pytest.mark.parametrize("options", [{"restarts": 0}, {"n_jobs": 0}])
def test_options_that_leave_nothing_to_run_are_refused(options):
    with pytest.raises(ParameterError, match=r"at least 1|no worker"):
        run_experiment(toy(a=row()), **options)


def test_a_cache_that_cannot_be_written_is_found_before_the_work(tmp_path, log):
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="cannot be written to"):
        run_experiment(toy(a=row(log)), cache_dir=tmp_path / "file")
    assert calls(log) == 0


def test_the_default_cache_lies_in_the_users_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / "kernelweave" / "reproduce"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_cache_dir() == tmp_path / "home" / ".cache" / "kernelweave" / "reproduce"
