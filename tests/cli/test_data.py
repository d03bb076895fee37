"""The commands on benchmark sets."""

import json

import numpy as np
import pytest

from kernelweave.cli import main
from kernelweave.datasets import download, sources
from tests.datasets.file_server import TABLE, FileServer, at, toy


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setattr(download, "_PAUSE_S", 0.0)
    sets = (toy(at("/toy.csv")), toy(at("/none.csv"), name="gone"), toy(name="secret"))
    monkeypatch.setattr(sources, "catalogue", lambda: {each.name: each for each in sets})
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    files = FileServer()
    files.put("/toy.csv", TABLE)
    monkeypatch.setenv("KERNELWEAVE_MIRROR", files.address)
    yield files
    files.close()


@pytest.fixture
def run(capsys):
    def start(*arguments):
        code = main(["data", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err.splitlines()

    return start


def test_sets_are_fetched_listed_and_checked(server, run, tmp_path):
    file = tmp_path / "share/kernelweave/toy/toy.npz"
    assert run("check", "--json")[0] == 2  # there is no folder yet
    assert run("fetch", "toy") == (0, f"toy: {file}\n", [])
    assert file.exists()
    code, out, err = run("list", "--json")
    assert (code, err) == (0, [])
    assert {each["name"]: each["here"] for each in json.loads(out)} == {"toy": True, "gone": False, "secret": False}
    assert json.loads(out)[0]["addresses"] == ["https://data.example/toy.csv"]
    assert run("check") == (0, "toy: verified\n", [])
    assert json.loads(run("check", "--json")[1]) == {"toy": "verified"}
    assert run("check", "gone")[:2] == (1, "gone: missing\n")


def test_the_list_says_what_is_public_and_fits_80_columns(server, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run("list")
    assert code == 0
    assert "not known to be public" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80


def test_the_list_of_all_sets_fits_80_columns_without_cutting_names(run, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run("list", "--data", tmp_path)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert set(sources.catalogue()) <= set(out.split())
    assert "…" not in out


def test_a_folder_can_be_named_and_quiet_says_nothing(server, run, tmp_path):
    assert run("fetch", "toy", "--data", tmp_path / "mine", "-q") == (0, "", [])
    assert (tmp_path / "mine/toy/toy.npz").exists()
    assert run("check", "--data", tmp_path / "mine") == (0, "toy: verified\n", [])


def test_all_fetches_what_is_public_and_ends_with_code_three_where_one_fails(server, run):
    code, out, err = run("fetch", "--all")
    assert code == 3
    assert out.startswith("toy: ")
    assert "404" in err[0]
    assert "'gone'" in err[0]
    assert err[1] == "kernelweave data fetch: 1 of 2 sets could not be fetched."


def test_a_file_that_holds_something_else_is_reported_and_replaced_by_force(server, run, tmp_path):
    file = tmp_path / "toy.npz"
    np.savez(file, X=np.eye(2))
    code, out, err = run("fetch", "toy", "--data", tmp_path)
    assert (code, out) == (3, "")
    assert "replace it with --force" in err[0]
    code, out, _ = run("check", "--data", tmp_path)
    assert (code, out) == (1, "toy: it lacks the array 'classes' of the set\n")
    assert run("fetch", "toy", "--data", tmp_path, "--force")[0] == 0
    assert run("check", "--data", tmp_path)[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["fetch"],
        ["fetch", "toy", "--all"],
        ["fetch", "nonsense"],
        ["fetch", "toy", "--timeout", "0"],
        ["check", "nonsense"],
        ["check", "--data", "no/such/folder"],
        ["list", "--data", "no/such/folder"],
        ["nonsense"],
    ],
    ids=" ".join,
)
def test_bad_input_gives_one_line_and_exit_code_two(server, run, tmp_path, arguments):
    (tmp_path / "share/kernelweave").mkdir(parents=True)
    code, out, err = run(*arguments)
    assert (code, out, len(err)) == (2, "", 1)
    assert err[0].startswith("kernelweave")
    assert server.asked == []


def test_data_alone_shows_its_commands(run):
    code, out, _ = run()
    assert code == 0
    assert all(name in out for name in ("list", "fetch", "check"))


def test_check_of_an_empty_folder_says_how_to_fill_it(server, run, tmp_path):
    code, out, _ = run("check", "--data", tmp_path)
    assert code == 0
    assert "kernelweave data fetch" in out
