"""The catalogue of mutations fits the code of today, and the harness that runs it tells the outcomes apart."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("partitions", "kernels", "solvers", "estimators")

pytestmark = pytest.mark.skipif(not (ROOT / "mutants").is_dir(), reason="the mutations are not part of this copy")

# Modules that decide nothing: declarations, a table of names, and the wording of faults.
WITHOUT_LOGIC = {"partitions/kernel.py", "estimators/registry.py", "estimators/spectral/faults.py"}


@pytest.fixture(scope="module")
def mutants():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        return importlib.import_module("mutants")


@pytest.fixture(scope="module")
def mutations(mutants):
    return mutants.catalogue()


def test_every_mutation_changes_one_line_of_todays_code_into_other_valid_code(mutations):
    for mutation in mutations:
        text = (ROOT / mutation.file).read_text(encoding="utf-8")
        mutated = mutation.applied(text)
        before, after = text.splitlines(), mutated.splitlines()
        assert len(before) == len(after), mutation.name
        changed = [number for number, lines in enumerate(zip(before, after, strict=True), 1) if lines[0] != lines[1]]
        assert changed == [mutation.line(text)], mutation.name
        compile(mutated, mutation.file, "exec")


def test_mutations_have_test_files_and_names_of_their_own(mutations):
    assert all((ROOT / test).is_file() for mutation in mutations for test in mutation.tests)
    names = [mutation.name for mutation in mutations]
    assert len(set(names)) == len(names)
    assert len({(mutation.file, mutation.before, mutation.after) for mutation in mutations}) == len(mutations)


def test_there_are_enough_and_every_module_with_logic_has_some(mutations):
    assert len(mutations) >= 150
    covered = {mutation.file.removeprefix("kernelweave/") for mutation in mutations}
    package = ROOT / "kernelweave"
    modules = {path for layer in LAYERS for path in (package / layer).rglob("*.py") if path.name != "__init__.py"}
    assert {path.relative_to(package).as_posix() for path in modules} - covered == WITHOUT_LOGIC
    assert sum(bool(mutation.survives) for mutation in mutations) <= 0.05 * len(mutations)


def test_a_place_that_is_not_the_only_one_is_an_error(mutants):
    mutation = mutants.Mutation("kernelweave/a.py", "x > 0", "x >= 0", "border", ("tests/a.py",), "")
    assert mutation.applied("if x > 0:\n") == "if x >= 0:\n"
    with pytest.raises(ValueError, match="holds 'x > 0' 2 times, not once"):
        mutation.applied("if x > 0 or max(x > 0):\n")
    with pytest.raises(ValueError, match="0 times"):
        mutation.applied("if x < 0:\n")


# A loop that does not end sleeps until the time limit.
LOOP = """import time


def up(n):
    while n < 3:
        time.sleep(0.01)
        n += 1
    return n * 1
"""


@pytest.fixture
def library(mutants, tmp_path, monkeypatch):
    """Return a library of one function with one test, in the place of the real one."""
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['golden: g', 'timing: t']\n",
        "kernelweave/__init__.py": "",
        "kernelweave/a.py": LOOP,
        "tests/test_a.py": "from kernelweave.a import up\n\n\ndef test_up():\n    assert up(0) == 3\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "SHORTEST_LIMIT", 6.0)
    monkeypatch.setattr(mutants, "SLOWDOWN", 3.0)
    return tmp_path


def test_outcomes_are_killed_timed_out_and_survived(mutants, library):
    def mutation(before, after, survives=""):
        return mutants.Mutation("kernelweave/a.py", before, after, after, ("tests/test_a.py",), survives)

    tried = [
        mutation("n < 3", "n < 4"),
        mutation("n += 1", "n += 0"),
        mutation("n * 1", "n * 1.0", "3.0 equals 3"),
    ]
    outcomes = mutants.run_all(tried, 3)
    assert [outcome.result for outcome in outcomes] == ["killed", "timed out", "survived"]
    assert outcomes[0].noticed == "tests/test_a.py::test_up"
    text = mutants.report(outcomes, "abc", 1.0, 3)
    assert "**2 of 3 mutations killed (66.7 %)**, 1 of them by the time limit." in text
    assert "| kernelweave/a.py | `n * 1` | `n * 1.0` | 3.0 equals 3 |" in text
    assert (library / "kernelweave/a.py").read_text(encoding="utf-8").count("n < 3") == 1


def test_what_a_record_holds_is_not_run_again(mutants, library, tmp_path):
    mutation = mutants.Mutation("kernelweave/a.py", "n < 3", "n < 4", "border", ("tests/test_a.py",), "")
    path = tmp_path / "outcomes.jsonl"
    first = mutants.run_all([mutation], 1, mutants.Record(path))
    (library / "tests/test_a.py").write_text("def test_up():\n    assert False\n", encoding="utf-8")
    again = mutants.run_all([mutation], 1, mutants.Record(path))
    assert [outcome.result for outcome in (*first, *again)] == ["killed", "killed"]
    assert again[0].noticed == "tests/test_a.py::test_up"


def test_tests_that_fail_by_themselves_are_an_error(mutants, library):
    (library / "tests/test_a.py").write_text("def test_up():\n    assert False\n", encoding="utf-8")
    mutation = mutants.Mutation("kernelweave/a.py", "n < 3", "n < 4", "border", ("tests/test_a.py",), "")
    with pytest.raises(SystemExit, match=r"tests/test_a.py fails without any mutation \(exit status 1\)"):
        mutants.run_all([mutation], 1)
