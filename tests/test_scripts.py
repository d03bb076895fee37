"""The scripts that watch over the structure: every count has something that is counted and something that is not."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from tests.dask_clusters import forked_workers

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"

#: Two families of solvers, one with a module per name and one behind its own ``__init__``; a comment says what counts.
FILES = {
    "__init__.py": """
        from importlib import import_module
        __all__ = ["Kept", "Lazy", "helper"]
        def __getattr__(name):
            return import_module("kernelweave.estimators")  # not counted: the package's lazy imports
        """,
    "kernels/__init__.py": "from kernelweave.kernels._base import Dense",  # not counted: the same folder
    "kernels/_base.py": """
        class KernelOperator: ...
        class Stored(KernelOperator): ...
        class Dense(Stored): ...
        class Table: ...
        def own_part(op):
            return isinstance(op, Dense)  # counted nowhere: the folder of KernelOperator
        """,
    "backends/registry.py": """
        from importlib import import_module
        module = import_module("json")  # not counted: a registry
        """,
    "solvers/__init__.py": "from kernelweave.solvers.search import search",
    "solvers/search.py": """
        import kernelweave.kernels as kernels
        from kernelweave.kernels._base import Dense, Stored, Table  # counted: a module of another folder
        def search(op):
            if isinstance(op, Table) or isinstance(op, (int, str)):  # not counted
                return 0
            match op:
                case Stored():  # counted
                    return 1
            return isinstance(op, (int, kernels.Dense)) + isinstance(op, int | Dense)  # counted, counted
        """,
    "solvers/family/__init__.py": "from kernelweave.solvers.family.descent import descend as run",
    "solvers/family/descent.py": '''
        from importlib import import_module as load
        def descend(x):
            """Go down.

            This docstring is not counted.
            """
            return load("json").dumps(x)  # counted
        def _hidden(): ...
        ''',
    "estimators/__init__.py": "from kernelweave.estimators.shared import Base",
    "estimators/shared.py": """
        from sklearn.base import BaseEstimator
        from kernelweave.kernels._base import KernelOperator  # counted: a module of another folder
        class Root(BaseEstimator): ...
        class Base(Root):
            def takes(self, op):
                return isinstance(op, KernelOperator)  # counted outside, not in solvers
        class Unused(Base): ...
        """,
    "estimators/kept.py": """
        from kernelweave.estimators import Base
        from kernelweave.solvers import search
        from kernelweave.solvers.family import run
        from kernelweave.solvers.family.descent import _hidden  # counted: an underscored name
        class Kept(Base):
            def fit(self, found):
                a, b = 1, found  # counted
                c = d = a  # counted
                e, f = divmod(a, b)  # not counted: unpacking
                g: int
                h: int = 1
                h += 1
                self.found_path = [e, f]
        """,
    "estimators/lazy.py": "class Lazy: ...\n",
}


@pytest.fixture
def checkout(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "kernelweave" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).strip() + "\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def script(monkeypatch):
    """Import a script as it is imported when run: its folder comes first on the path."""
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module


@pytest.fixture
def counts(script, checkout):
    return script("house").survey(checkout)


def lines_of(count):
    return [place.split(" ")[0].removeprefix("kernelweave/") for place in count.places]


def test_tests_for_kernel_operators_are_counted_in_tuples_unions_and_patterns(counts):
    in_solvers = ["solvers/search.py:7", "solvers/search.py:9", "solvers/search.py:9"]
    assert lines_of(counts["isinstance on kernel operators in solvers"]) == in_solvers
    outside = counts["isinstance on kernel operators outside the folder of KernelOperator"]
    assert sorted(lines_of(outside)) == ["estimators/shared.py:6", *in_solvers]


def test_a_package_without_the_operator_class_is_not_counted_as_free_of_tests(script, checkout):
    (checkout / "kernelweave/kernels/_base.py").write_text("class Other: ...\n", encoding="utf-8")
    count = script("house").survey(checkout)["isinstance on kernel operators in solvers"]
    assert count.value == "no class KernelOperator"


def test_dynamic_imports_are_counted_outside_registries(counts):
    assert lines_of(counts["import_module outside registries"]) == ["solvers/family/descent.py:7"]


def test_classes_between_public_estimators_and_scikit_learn_are_named(counts):
    assert counts["public estimators"].places == ["Kept", "Lazy"]
    assert counts["intermediate estimator classes"].places == ["Base", "Root"]


def test_a_method_spans_the_files_of_its_classes_and_of_its_solvers(counts):
    count = counts["files a method spans, median / most"]
    assert count.value == "2.5 / 4"
    files = "estimators.kept, estimators.shared, solvers.family.descent, solvers.search"
    assert count.places[0].replace("kernelweave.", "") == f"Kept: 4 ({files})"


def test_packed_assignments_are_a_share_of_all_assignments(counts):
    count = counts["packed assignments (`a, b = x, y`, `a = b = x`)"]
    assert count.value == "25.0 % (2 of 8)"
    assert lines_of(count) == ["estimators/kept.py:7", "estimators/kept.py:8"]
    assert counts["unpacking (`a, b = f()`), for information"].value == "1"


def test_private_imports_are_counted_across_folders_and_modules(counts):
    modules = lines_of(counts["underscored modules imported from other folders"])
    assert modules == ["estimators/shared.py:2", "solvers/search.py:2"]
    assert lines_of(counts["underscored names imported from other modules"]) == ["estimators/kept.py:4"]


def test_functions_and_files_are_measured_without_docstrings(script, checkout, counts):
    assert counts["functions"].value == "7"
    assert counts["lines of a function, median / 95th percentile / most"].value == "2 / 8 / 8"
    assert counts["functions over 60 lines"].value == "0"
    assert counts["largest file"].value == "13 lines (kernelweave/estimators/kept.py)"
    text = '"""Docstring."""\n\n# A comment.\ndef long():\n' + "    pass\n" * 60
    (checkout / "kernelweave/long.py").write_text(text, encoding="utf-8")
    longer = script("house").survey(checkout)
    assert longer["functions over 60 lines"].places == ["kernelweave/long.py:4 long: 61 lines"]
    assert int(longer["lines"].value) - int(counts["lines"].value) == 64
    assert int(longer["lines of code"].value) - int(counts["lines of code"].value) == 61


def test_words_are_counted_in_identifiers_and_not_in_text(counts):
    assert counts["word: found"].value == "3"
    assert counts["word: own"].value == "1"
    assert counts["word: part"].value == "1"
    assert counts["word: said"].value == "0"


def test_the_table_has_a_column_for_each_checkout(checkout):
    copy = checkout / "copy"
    shutil.copytree(checkout / "kernelweave", copy / "kernelweave")
    (copy / "kernelweave/solvers/search.py").write_text("def search(): ...\n", encoding="utf-8")
    command = [sys.executable, SCRIPTS / "house.py", checkout, copy, "--verbose"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f"| | {checkout} | {copy} |" in text
    assert "| isinstance on kernel operators in solvers | 3 | 0 |" in text
    assert "- Base\n- Root" in text


def test_results_of_two_checkouts_are_compared_by_labels_and_within_rounding(script):
    differences = script("compare_checkouts").differences
    result = {"labels": np.array([0, 0, 1, 1]), "objective_": np.array(2.0)}
    assert differences(result, result | {"objective_": np.array(2.0 + 1e-12)}) == []
    assert differences(result, result | {"objective_": np.array(2.2)}) == ["objective differs by rel 1.0e-01"]
    assert differences(result, result | {"labels": np.array([1, 1, 0, 0])}) == ["labels differ (ARI 1.0000)"]
    assert differences(result, {"error": "ValueError: no"}) == ["fails in the new checkout only: ValueError: no"]
    assert differences({"error": "ValueError: no"}, {"error": "ValueError: in other words"}) == []


def test_plans_leave_out_what_only_one_checkout_takes(script):
    module = script("compare_checkouts")
    old = {
        "options": {"n_clusters": [], "kernel": ["rbf", "poly"]},
        "weights": True,
        "sparse": True,
        "form": "features",
    }
    new = {"options": {"n_clusters": [], "kernel": ["rbf"]}, "weights": False, "sparse": False, "form": "features"}
    keys = [case["key"] for case in module.cases_of("Kept", old, new)]
    assert keys == [f"Kept, {name}, seed 0" for name in ("blobs", "rings", "digits", "shares, kernel=rbf")]
    assert module.unlike(old, new) == ["kernel=poly in the old checkout only, not compared"]


def test_fits_during_which_workers_are_killed_end_with_the_labels_of_others(script):
    module = script("kill_workers")
    with forked_workers(), module.cluster(2) as client:
        fits = list(module.disturbed_fits(client, kills=2, n_samples=1500, length=0.5))
    assert sum(fit.kills for fit in fits) >= 2
    assert all(fit.equal for fit in fits)
    assert {fit.method for fit in fits} == {"KernelKMeans", "MultiViewKernelKMeans"}


# --- killed fits -----------------------------------------------------------------------------------------------------


def test_fits_that_are_killed_end_with_the_labels_of_those_that_are_not():
    command = [sys.executable, str(SCRIPTS / "kill_checkpoints.py"), "--kills", "3", "--only", "^convex mixture, EM$"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = done.stdout.splitlines()[2:]
    name, _, kills, _, ended, equal, _ = [cell.strip() for cell in row.strip("|").split("|")]
    assert name == "convex mixture, EM"
    assert int(kills) == 3
    assert int(ended) == int(equal) >= 1
