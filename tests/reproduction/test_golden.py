"""The quick subset on real data beside the verdicts it is pinned to, and a control that shows it can fail.

Also what is written from stored results: the page ``docs/results.md`` and the counts in the README.
"""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from reproduction import Verdict, catalogue, run_experiment
from reproduction.experiments import by_module
from reproduction.page import END, START, counts_for_readme, results_page, waiting_cells
from reproduction.stored import pinned, stored_result, verdicts_of
from reproduction.stored_files import stored_cells

ROOT = Path(__file__).parents[2]
QUICK = [each for each in catalogue().values() if each.selected(quick=True)]
needs_data = pytest.mark.skipif(not os.environ.get("KERNELWEAVE_DATA"), reason="KERNELWEAVE_DATA is not set")
STORE = "kernelweave reproduce all --store --commit COMMIT"
PIN = "kernelweave reproduce all --quick --store"
WRITE = "kernelweave reproduce page"


def named(experiment):
    return {f"{experiment.id}/{name}" for name in experiment.selected(quick=True)}


# --- what is stored --------------------------------------------------------------------------------------------------


def test_results_of_every_cell_are_stored():
    waiting = waiting_cells(stored_result(each) for each in catalogue().values())
    assert not waiting, f"run '{STORE}'"


def test_the_quick_subset_is_pinned_cell_by_cell():
    chosen = {name for experiment in QUICK for name in named(experiment)}
    assert chosen, f"the quick subset is empty, as nothing is stored; run '{STORE}'"
    assert set(pinned()) == chosen, f"reproduction/stored/quick.json is not that of the quick subset; run '{PIN}'"


def test_the_pinned_verdicts_are_of_figures_that_are_printed():
    assert pinned(), f"reproduction/stored/quick.json is missing or empty; run '{PIN}'"
    for name, verdicts in pinned().items():
        experiment, _, cell = name.partition("/")
        assert set(verdicts) == set(catalogue()[experiment].cells[cell].printed)
        assert set(verdicts.values()) <= {str(verdict) for verdict in Verdict if verdict != Verdict.NO_FIGURE}


def test_the_page_is_what_the_stored_results_give_today():
    assert any(map(stored_cells, catalogue())), f"reproduction/stored is empty; run '{STORE}'"
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page == results_page(by_module()), f"docs/results.md is not up to date; run '{WRITE}'"


def test_the_counts_in_the_readme_are_what_the_stored_results_give_today():
    assert any(map(stored_cells, catalogue())), f"reproduction/stored is empty; run '{STORE}'"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.count(START) == readme.count(END) == 1, "README.md does not mark where its counts begin and end"
    counts = counts_for_readme(catalogue().values())
    assert counts in readme, f"the counts in README.md are not up to date; run '{WRITE}'"


# --- the quick subset ------------------------------------------------------------------------------------------------


@pytest.mark.golden
@pytest.mark.usefixtures("one_thread")
@needs_data
@pytest.mark.parametrize("experiment", QUICK or [None], ids=lambda each: each.id if each else "nothing stored")
def test_the_quick_subset_has_the_verdicts_it_is_pinned_to(experiment):
    assert experiment is not None, f"the quick subset is empty, as nothing is stored; run '{STORE}' and '{PIN}'"
    expected = {name: verdicts for name, verdicts in pinned().items() if name in named(experiment)}
    assert expected.keys() == named(experiment), f"reproduction/stored/quick.json lacks cells; run '{PIN}'"
    result = run_experiment(experiment, quick=True)
    assert {f"{experiment.id}/{cell.cell}": verdicts_of(cell) for cell in result.cells} == expected


@pytest.mark.golden
@needs_data
def test_a_kernel_three_percent_too_wide_is_caught_by_a_quick_run():
    experiment = catalogue()["phd-2.13a-kernel-kmeans"]
    ((name, cell),) = experiment.cells.items()

    def verdicts(sigma):
        changed = replace(cell, quick=True, run=partial(cell.run.func, **{**cell.run.keywords, "sigma": sigma}))
        (result,) = run_experiment(replace(experiment, cells={name: changed}), quick=True).cells
        return verdicts_of(result)

    assert cell.run.keywords["sigma"] == 15
    right = verdicts(15)
    wide = verdicts(15 * 1.03)
    assert right["e_sum_mean"] == "agrees"
    assert wide["e_sum_mean"] == "differs"
    assert right == pinned().get(f"{experiment.id}/{name}", right) != wide
