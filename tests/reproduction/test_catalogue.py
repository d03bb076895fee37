import ast
import importlib
import pickle
import pkgutil
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from kernelweave.foundation.errors import ParameterError
from reproduction import Printed, catalogue, experiments, select

for_experiments = pytest.mark.parametrize("experiment", list(catalogue().values()), ids=lambda each: each.id)


def test_every_module_of_the_folder_contributes_to_the_catalogue():
    names = [entry.name for entry in pkgutil.iter_modules(experiments.__path__) if not entry.name.startswith("_")]
    modules = [f"{experiments.__name__}.{name}" for name in names]
    declared = [each for name in modules for each in importlib.import_module(name).EXPERIMENTS]
    assert modules
    assert len({each.id for each in declared}) == len(declared)
    assert [each.id for each in catalogue().values()] == [each.id for each in declared]
    for found, as_written in zip(catalogue().values(), declared, strict=True):
        assert (
            replace(found, cells={name: replace(cell, quick=False) for name, cell in found.cells.items()}) == as_written
        )
    assert experiments.by_module().keys() == set(names)
    assert [each for of_module in experiments.by_module().values() for each in of_module] == list(catalogue().values())


@for_experiments
def test_every_cell_states_its_sources_and_travels_to_a_worker(experiment):
    assert experiment.cells
    assert experiment.title
    assert experiment.source
    assert experiment.protocol
    for name, cell in experiment.cells.items():
        assert all(printed.source or experiment.source for printed in cell.printed.values()), name
        pickle.loads(pickle.dumps(cell.run))
        if cell.quick:
            assert cell.printed, f"{name}: a quick run that nothing is held against cannot fail"


def test_no_declaration_says_how_far_a_figure_may_be_off():
    assert {field.name for field in fields(Printed)} == {
        "value", "statistic", "runs", "spread", "rule", "least", "fitted", "source", "decimals",
    }  # fmt: skip
    calls = [call for file in Path(experiments.__file__).parent.glob("*.py") for call in calls_of_printed(file)]
    assert len(calls) > 20
    for call in calls:
        assert len(call.args) == 1, f"{ast.unparse(call)}: a second number would be a tolerance"
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if "least" in given:
            assert ast.literal_eval(given["statistic"]) == "claim"


@for_experiments
def test_a_spread_is_printed_in_the_same_row_or_left_to_our_runs(experiment):
    figures = [(row, cell, name) for row, cell in experiment.cells.items() for name in cell.printed]
    for row, cell, name in figures:
        printed = cell.printed[name]
        if printed.spread is not None:
            assert printed.statistic == "mean", (row, name)
            beside = cell.printed[name.replace("_mean", "_std")]
            # PhD table 5.1 prints means over several pairs of classes, and the mean deviation of one.
            assert beside.value == pytest.approx(printed.spread) or experiment.id == "phd-5.1-norms", (row, name)
        if printed.statistic == "claim":
            assert printed.least >= 0.8, (row, name)


def test_the_only_quick_marks_are_those_of_the_rule():
    modules = experiments.by_module()
    declared = [
        each for name in modules for each in importlib.import_module(f"{experiments.__name__}.{name}").EXPERIMENTS
    ]
    assert not any(cell.quick for each in declared for cell in each.cells.values())


def test_a_new_module_in_the_folder_is_found_without_any_other_change(tmp_path, monkeypatch):
    package = make_package(tmp_path, monkeypatch, table_a=declaration("one"), table_b=declaration("two"), _helpers="")
    assert list(experiments.discover(package)) == ["one", "two"]


def test_two_experiments_of_one_name_are_refused(tmp_path, monkeypatch):
    package = make_package(tmp_path, monkeypatch, table_a=declaration("one"), table_b=declaration("one"))
    with pytest.raises(ValueError, match="Two experiments are called 'one'"):
        experiments.discover(package)


def test_a_module_that_declares_nothing_is_refused(tmp_path, monkeypatch):
    package = make_package(tmp_path, monkeypatch, table_a="")
    with pytest.raises(TypeError, match="does not declare EXPERIMENTS"):
        experiments.discover(package)


def test_selection_keeps_the_order_asked_for_and_names_each_once():
    first, second, *_ = catalogue()
    assert [each.id for each in select([second, first, second])] == [second, first]
    assert [each.id for each in select(["all", first])] == list(catalogue())


def test_an_unknown_id_is_named():
    with pytest.raises(ParameterError, match="'nonsense'"):
        select(["all", "nonsense"])


def test_quick_selection_leaves_out_what_has_no_quick_cell():
    slow = [name for name, each in catalogue().items() if not each.selected(quick=True)]
    assert {each.id for each in select(["all"], quick=True)} == set(catalogue()) - set(slow)
    with pytest.raises(ParameterError, match="quick subset"):
        select(slow[:1], quick=True)


def calls_of_printed(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Printed"]


def declaration(name):
    return (
        "from reproduction import Cell, Experiment\n"
        f"EXPERIMENTS = (Experiment(id={name!r}, title='', source='', cells={{'a': Cell('Row', dict)}}),)\n"
    )


def make_package(folder, monkeypatch, **modules):
    """A package of these modules, forgotten again after the test."""
    name = "declared_tables"
    (folder / name).mkdir()
    for module, text in {"__init__": "", **modules}.items():
        (folder / name / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    for loaded in [each for each in sys.modules if each.split(".")[0] == name]:
        monkeypatch.delitem(sys.modules, loaded)
    return importlib.import_module(name)
