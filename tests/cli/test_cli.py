import json
import subprocess
import sys
from importlib import metadata

import pytest
from typer.testing import CliRunner

from kernelweave.cli import build_app, main
from reproduction import Cell, Experiment, Printed, experiments


def good(restarts, seed):
    return {"error": 10.0 + 0.0 * seed, "restarts": restarts}


def bad(restarts, seed):
    return {"error": 11.0}


def broken(restarts, seed):
    raise ZeroDivisionError("no cluster left")


def declare(name, run, **options):
    printed = {} if run is broken else {"error": Printed(10.0, 0.5)}
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


def run(capsys, *arguments):
    """Run the command line; return exit code, standard output and the lines of standard error."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err.splitlines()


def test_the_application_answers_through_typers_own_runner(toys):
    result = CliRunner().invoke(build_app(), ["reproduce", "good", "--no-cache"])
    assert result.exit_code == 0
    assert "match" in result.output
    assert CliRunner().invoke(build_app(), ["reproduce", "bad", "--no-cache"]).exit_code == 1
    assert CliRunner().invoke(build_app(), ["reproduce", "nonsense"]).exit_code == 2


def test_version_and_help(capsys):
    assert run(capsys, "--version") == (0, f"kernelweave {metadata.version('kernelweave')}\n", [])
    for arguments in ([], ["--help"]):
        code, out, _ = run(capsys, *arguments)
        assert code == 0
        assert "reproduce" in out
        assert "demo" in out


def test_the_help_of_reproduce_explains_the_exit_codes(capsys):
    code, out, _ = run(capsys, "reproduce", "--help")
    assert code == 0
    assert "Exit code: 0" in out


def test_demo_is_imported_when_it_is_called(capsys, monkeypatch):
    called = []
    stand_in = type(sys)("kernelweave.cli.demo")
    stand_in.demo = lambda quiet=False: called.append(quiet)
    monkeypatch.setitem(sys.modules, "kernelweave.cli.demo", stand_in)
    assert run(capsys, "demo", "--quiet")[0] == run(capsys, "demo")[0] == 0
    assert called == [True, False]


def test_list_shows_every_experiment_of_the_catalogue(capsys):
    code, out, err = run(capsys, "reproduce", "list")
    assert (code, err) == (0, [])
    listed = run(capsys, "reproduce", "list", "--format", "json")[1]
    for each in experiments.catalogue().values():
        assert each.id in out
        assert json.dumps(each.source)[1:-1] in listed  # the table wraps long ones
    assert len(json.loads(listed)) == len(experiments.catalogue())
    assert run(capsys, "reproduce", "list", "--format", "markdown")[1].startswith("| id | source |")


def test_a_figure_that_differs_gives_exit_code_one_and_the_whole_table(capsys, toys):
    code, out, err = run(capsys, "reproduce", "good", "bad")
    assert (code, err) == (1, [])
    assert "Table good" in out
    assert "differs" in out


def test_restarts_quick_and_seed_reach_the_cells(capsys, toys):
    def cell(*options):
        out = run(capsys, "reproduce", "good", "--format", "json", *options)[1]
        return json.loads(out)["experiments"][0]["cells"][0]

    assert cell()["figures"][1]["ours"] == 7
    assert cell("--quick")["figures"][1]["ours"] == 2
    assert cell("--restarts", "3", "--seed", "8")["figures"][1]["ours"] == 3
    assert cell("--restarts", "3", "--seed", "8")["seed"] == 8


def test_markdown_goes_to_the_file_with_date_and_commit(capsys, toys, tmp_path):
    file = tmp_path / "results.md"
    code, out, err = run(capsys, "reproduce", "good", "--format", "markdown", "--output", file, "--commit", "abc123")
    assert (code, out, err) == (0, "", [])
    text = file.read_text(encoding="utf-8")
    assert "Commit: `abc123`" in text
    assert "Date: " in text
    assert "| error | 10.000 | 10.00 | ±0.5 | match |" in text


def test_a_table_in_a_file_is_plain_text(capsys, toys, tmp_path):
    run(capsys, "reproduce", "good", "--output", tmp_path / "table.txt")
    text = (tmp_path / "table.txt").read_text(encoding="utf-8")
    assert "match" in text
    assert "\x1b" not in text


def test_finished_cells_are_kept_in_the_users_cache_unless_told_otherwise(capsys, toys, cache, tmp_path):
    run(capsys, "reproduce", "good", "--no-cache")
    assert not cache.exists()
    run(capsys, "reproduce", "good")
    assert len(list((cache / "kernelweave" / "reproduce" / "good").iterdir())) == 1
    assert "computed" in run(capsys, "reproduce", "good")[1]
    assert "computed" not in run(capsys, "reproduce", "good", "--force")[1]
    run(capsys, "reproduce", "good", "--cache-dir", tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / "good").is_dir()


@pytest.mark.parametrize(
    "arguments",
    [
        ["reproduce", "nonsense"],
        ["reproduce", "good", "list"],
        ["reproduce", "bad", "--quick"],
        ["reproduce", "good", "--restarts", "0"],
        ["reproduce", "good", "--restarts", "many"],
        ["reproduce", "good", "--jobs", "0"],
        ["reproduce", "good", "--format", "xml"],
        ["reproduce", "good", "--output", "no/such/folder/file"],
        ["reproduce", "good", "--unknown"],
        ["reproduce"],
        ["nonsense"],
    ],
    ids=" ".join,
)
def test_bad_input_gives_one_line_exit_code_two_and_writes_nothing(capsys, toys, cache, arguments):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert len(err) == 1
    assert err[0].startswith("kernelweave")
    assert not cache.exists()


def test_a_cache_that_is_a_file_gives_one_line_and_exit_code_two(capsys, toys, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = run(capsys, "reproduce", "good", "--cache-dir", tmp_path / "file")
    assert (code, out, len(err)) == (2, "", 1)


def test_missing_data_gives_one_line_exit_code_two_and_writes_nothing(capsys, cache, tmp_path, monkeypatch):
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    file = tmp_path / "out.json"
    code, out, err = run(capsys, "reproduce", "all", "--quick", "--format", "json", "--output", file)
    assert (code, out, len(err)) == (2, "", 1)
    assert "KERNELWEAVE_DATA" in err[0]
    assert not file.exists()
    assert not cache.exists()


def test_a_cell_that_fails_gives_exit_code_three_its_traceback_and_no_report(capsys, toys, cache, tmp_path):
    file = tmp_path / "out.json"
    code, out, err = run(capsys, "reproduce", "broken", "good", "--format", "json", "--output", file)
    assert (code, out) == (3, "")
    assert err[-1] == "kernelweave reproduce: broken/row failed: ZeroDivisionError: no cluster left"
    assert any("in broken" in line for line in err)
    assert not file.exists()
    assert len(list((cache / "kernelweave" / "reproduce" / "good").iterdir())) == 1


def test_importing_the_command_line_brings_in_no_heavy_package():
    probe = (
        "import sys, kernelweave; before = set(sys.modules); import kernelweave.cli;"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert not {"numba", "sklearn", "scipy", "numpy", "joblib", "rich", "typer"} & set(loaded.stdout.split())
