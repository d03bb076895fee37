"""The command that computes published tables again, through both of its doors."""

import json
import os

import pytest
from typer.testing import CliRunner

import kernelweave.cli
from kernelweave.cli import build_app
from reproduction import Cell, Experiment, Printed, command, experiments

DOORS = {"kernelweave reproduce": (kernelweave.cli.main, ["reproduce"]), "python -m reproduction": (command.main, [])}


def good(restarts, seed):
    return {"error": 10.0 + 0.0 * seed, "restarts": restarts}


def bad(restarts, seed):
    return {"error": 11.0}


def broken(restarts, seed):
    raise ZeroDivisionError("no cluster left")


def declare(name, run, **options):
    printed = {} if run is broken else {"error": Printed(10.0)}
    cell = Cell("Row", run, printed=printed, restarts=7, quick_restarts=2, **options)
    return Experiment(id=name, title=f"Title of {name}", source=f"Table {name}", cells={"row": cell})


TOYS = (declare("good", good, quick=True), declare("bad", bad), declare("broken", broken))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def toys(monkeypatch):
    monkeypatch.setattr(experiments, "catalogue", lambda: {each.id: each for each in TOYS})


@pytest.fixture(params=DOORS)
def run(capsys, request):
    """Run the command; return exit code, standard output and the lines of standard error."""
    main, first = DOORS[request.param]

    def start(*arguments):
        code = main([*first, *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err.splitlines()

    return start


def test_the_application_answers_through_typers_own_runner(toys):
    result = CliRunner().invoke(build_app(), ["reproduce", "good", "--no-cache"])
    assert result.exit_code == 0
    assert "agrees" in result.output
    assert CliRunner().invoke(build_app(), ["reproduce", "bad", "--no-cache"]).exit_code == 1
    assert CliRunner().invoke(build_app(), ["reproduce", "nonsense"]).exit_code == 2


def test_the_help_of_reproduce_explains_the_exit_codes(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "Exit code: 0" in out


def test_list_shows_every_experiment_of_the_catalogue(run):
    code, out, err = run("list")
    assert (code, err) == (0, [])
    listed = run("list", "--format", "json")[1]
    for each in experiments.catalogue().values():
        assert each.id in out
        assert json.dumps(each.source)[1:-1] in listed  # the table wraps long ones
    assert len(json.loads(listed)) == len(experiments.catalogue())
    assert run("list", "--format", "markdown")[1].startswith("| id | source |")


def test_a_figure_that_differs_gives_exit_code_one_and_the_whole_table(run, toys):
    code, out, err = run("good", "bad")
    assert (code, err) == (1, [])
    assert "Table good" in out
    assert "differs" in out


def test_restarts_quick_and_seed_reach_the_cells(run, toys):
    def cell(*options):
        out = run("good", "--format", "json", *options)[1]
        return json.loads(out)["experiments"][0]["cells"][0]

    assert cell()["figures"][1]["ours"] == 7
    assert cell("--quick")["figures"][1]["ours"] == 2
    assert cell("--restarts", "3", "--seed", "8")["figures"][1]["ours"] == 3
    assert cell("--restarts", "3", "--seed", "8")["seed"] == 8


def test_markdown_goes_to_the_file_with_date_and_commit(run, toys, tmp_path):
    file = tmp_path / "results.md"
    code, out, err = run("good", "--format", "markdown", "--output", file, "--commit", "abc123")
    assert (code, out, err) == (0, "", [])
    text = file.read_text(encoding="utf-8")
    assert "Commit: `abc123`" in text
    assert "Date: " in text
    assert "| error | 10.000 | 10.00 | ±0.005 | agrees |" in text


def test_a_table_in_a_file_is_plain_text(run, toys, tmp_path):
    run("good", "--output", tmp_path / "table.txt")
    text = (tmp_path / "table.txt").read_text(encoding="utf-8")
    assert "agrees" in text
    assert "\x1b" not in text


def test_finished_cells_are_kept_in_the_users_cache_unless_told_otherwise(run, toys, cache, tmp_path):
    run("good", "--no-cache")
    assert not cache.exists()
    run("good")
    assert len(list((cache / "kernelweave" / "reproduce" / "good").iterdir())) == 1
    assert "computed" in run("good")[1]
    assert "computed" not in run("good", "--force")[1]
    run("good", "--cache-dir", tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / "good").is_dir()


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["good", "list"],
        ["bad", "--quick"],
        ["good", "--restarts", "0"],
        ["good", "--restarts", "many"],
        ["good", "--jobs", "0"],
        ["good", "--format", "xml"],
        ["good", "--output", "no/such/folder/file"],
        ["good", "--unknown"],
        ["good", "--store"],
        ["good", "--quick", "--store"],
        ["good", "page"],
        [],
    ],
    ids=" ".join,
)
def test_bad_input_gives_one_line_exit_code_two_and_writes_nothing(run, toys, cache, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert len(err) == 1
    assert err[0].startswith("kernelweave")
    assert not cache.exists()


def test_an_empty_quick_subset_is_told(run, monkeypatch):
    slow = declare("slow", good)
    monkeypatch.setattr(experiments, "catalogue", lambda: {"slow": slow})
    code, out, err = run("all", "--quick", "--no-cache")
    assert (code, out, len(err)) == (2, "", 1)
    assert "quick subset is empty" in err[0]


def test_a_cache_that_is_a_file_gives_one_line_and_exit_code_two(run, toys, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = run("good", "--cache-dir", tmp_path / "file")
    assert (code, out, len(err)) == (2, "", 1)


def test_missing_data_gives_one_line_exit_code_two_and_writes_nothing(run, cache, tmp_path, monkeypatch):
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    file = tmp_path / "out.json"
    code, out, err = run("all", "--format", "json", "--output", file)
    assert (code, out, len(err)) == (2, "", 1)
    assert "KERNELWEAVE_DATA" in err[0]
    assert not file.exists()
    assert not cache.exists()


def test_missing_data_tell_exactly_what_to_run(run, tmp_path, monkeypatch):
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    ids = ("phd-2.13a-kernel-kmeans", "msc-5.3-kernel-kmeans-test-digits", "msc-5.1-two-rings")
    code, out, err = run(*ids)
    assert (code, out, len(err)) == (2, "", 1)
    assert "run 'kernelweave data fetch mfeat pendigits', or" in err[0]
    assert "--data DIR" in err[0]
    (tmp_path / "mfeat.npz").write_bytes(b"")
    code, out, err = run(*ids, "--data", tmp_path)
    assert (code, out, len(err)) == (2, "", 1)
    assert f"'kernelweave data fetch pendigits --data {tmp_path}'" in err[0]


def test_data_names_the_folder_for_this_run_only(run, monkeypatch, tmp_path):
    seen = []

    def reading(restarts, seed):
        seen.append(os.environ["KERNELWEAVE_DATA"])
        return {"error": 10.0}

    toy = declare("reading", reading)
    monkeypatch.setattr(experiments, "catalogue", lambda: {"reading": toy})
    monkeypatch.setenv("KERNELWEAVE_DATA", "before")
    assert run("reading", "--no-cache", "--data", tmp_path)[0] == 0
    assert seen == [str(tmp_path)]
    assert os.environ["KERNELWEAVE_DATA"] == "before"
    code, out, err = run("reading", "--no-cache", "--data", tmp_path / "nowhere")
    assert (code, out, len(err)) == (2, "", 1)
    assert "is not a folder" in err[0]


def test_a_cell_that_fails_gives_exit_code_three_its_traceback_and_no_report(run, toys, cache, tmp_path):
    file = tmp_path / "out.json"
    code, out, err = run("broken", "good", "--format", "json", "--output", file)
    assert (code, out) == (3, "")
    assert err[-1] == "kernelweave reproduce: broken/row failed: ZeroDivisionError: no cluster left"
    assert any("in broken" in line for line in err)
    assert not file.exists()
    assert len(list((cache / "kernelweave" / "reproduce" / "good").iterdir())) == 1


def test_options_may_stand_before_and_after_the_ids(run, toys):
    for arguments in (
        ("--quick", "--jobs", "-1", "good"),
        ("--jobs=-1", "good", "--quick"),
        ("good", "--quick", "--jobs", "-1"),
    ):
        code, out, err = run("--format", "json", *arguments, "--no-cache")
        assert (code, err) == (0, [])
        assert json.loads(out)["experiments"][0]["cells"][0]["restarts"] == 2
