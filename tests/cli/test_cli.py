import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import kernelweave
from kernelweave.cli import main
from tests.command_server import programs

ROOT = Path(__file__).parents[2]


def run(capsys, *arguments):
    """Run the command line; return exit code, standard output and the lines of standard error."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err.splitlines()


def test_version_and_help(capsys):
    assert run(capsys, "--version") == (0, f"kernelweave {metadata.version('kernelweave')}\n", [])
    for arguments in ([], ["--help"]):
        code, out, _ = run(capsys, *arguments)
        assert code == 0
        assert "reproduce" in out
        assert "scoreboard" in out
        assert "demo" in out


def test_demo_is_imported_when_it_is_called(capsys, monkeypatch):
    called = []
    stand_in = type(sys)("kernelweave.cli.demo")
    stand_in.demo = lambda quiet=False: called.append(quiet)
    monkeypatch.setitem(sys.modules, "kernelweave.cli.demo", stand_in)
    assert run(capsys, "demo", "--quiet")[0] == run(capsys, "demo")[0] == 0
    assert called == [True, False]


def test_importing_the_command_line_brings_in_no_heavy_package():
    probe = (
        "import sys, kernelweave; before = set(sys.modules); import kernelweave.cli;"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert not {"numba", "sklearn", "scipy", "numpy", "joblib", "rich", "typer"} & set(loaded.stdout.split())


@pytest.mark.parametrize("arguments", [["nonsense"], ["cluster", "--unknown"], ["--unknown"]], ids=" ".join)
def test_bad_usage_gives_one_line_and_exit_code_two(capsys, arguments):
    code, out, err = run(capsys, *arguments)
    assert (code, out, len(err)) == (2, "", 1)
    assert err[0].startswith("kernelweave")


# Published experiments: part of a checkout, not of an installed package


@pytest.fixture
def installed(tmp_path):
    """Run a copy of the package without what lies beside it in a checkout, as an installed one."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(kernelweave.__file__).parent, tmp_path / "site" / "kernelweave", ignore=ignored)

    def start(*arguments, also=()):
        path = os.pathsep.join(map(str, (tmp_path / "site", *also)))
        return subprocess.run(
            [sys.executable, "-m", "kernelweave", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path, "COLUMNS": "120"},
            check=False,
        )

    return start


@pytest.mark.parametrize("arguments", [("list",), (), ("--help",), ("all", "--quick", "--jobs", "-1")], ids=" ".join)
def test_an_installed_package_says_in_one_line_where_the_experiments_are(installed, arguments):
    done = installed("reproduce", *arguments, also=[ROOT])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "kernelweave reproduce: The published experiments are part of the source repository, not of the installed "
        "package; in a checkout of it, run 'python -m reproduction'.\n"
    )


@pytest.mark.parametrize("arguments", [("--list",), (), ("--help",)], ids=" ".join)
def test_an_installed_package_says_in_one_line_where_the_scoreboard_is(installed, arguments):
    done = installed("scoreboard", *arguments, also=[ROOT])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "kernelweave scoreboard: The scoreboard is part of the source repository, not of the installed package; in a "
        "checkout of it, install it with 'pip install -e .' and run the command again.\n"
    )


def test_an_installed_package_lists_the_commands_and_runs_the_others(installed):
    done = installed("--help")
    assert done.returncode == 0
    assert re.search(r"scoreboard +Run and rank .*\(in a checkout\)", done.stdout)
    assert re.search(r"reproduce +Recompute published tables .*\(in a checkout\)", done.stdout)
    assert "kernel-kmeans" in installed("methods").stdout


def test_both_doors_list_the_same_experiments(capsys):
    code, out, err = run(capsys, "reproduce", "list", "--format", "json")
    assert (code, err) == (0, [])
    code = (  # python -m reproduction list --format json
        "import runpy, sys; sys.path.insert(0, ''); sys.argv[1:] = ['list', '--format', 'json']\n"
        "runpy.run_module('reproduction', run_name='__main__', alter_sys=True)"
    )
    command = [programs() / "python", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert json.loads(done.stdout) == json.loads(out)
