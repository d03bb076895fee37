"""The quick subset of the catalogue on real data, and a control that shows it can fail."""

import os
from dataclasses import replace
from functools import partial

import pytest

from reproduction import Verdict, catalogue, run_experiment

pytestmark = [
    pytest.mark.golden,
    pytest.mark.skipif(not os.environ.get("KERNELWEAVE_DATA"), reason="KERNELWEAVE_DATA is not set"),
]
QUICK = [each for each in catalogue().values() if each.selected(quick=True)]


@pytest.mark.parametrize("experiment", QUICK, ids=lambda each: each.id)
def test_the_quick_subset_meets_the_printed_figures(experiment):
    result = run_experiment(experiment, quick=True)
    off = [figure for cell in result.cells for figure in cell.figures if figure.verdict == Verdict.DIFFERS]
    assert not off
    assert Verdict.MATCH in result.verdicts


def test_a_kernel_three_percent_too_wide_is_caught_by_the_quick_subset():
    experiment = catalogue()["phd-2.13a-kernel-kmeans"]
    (name, cell) = next(iter(experiment.cells.items()))
    wider = replace(cell, run=partial(cell.run.func, **{**cell.run.keywords, "sigma": 15 * 1.03}))
    result = run_experiment(replace(experiment, cells={name: wider}), quick=True)
    assert Verdict.DIFFERS in result.verdicts
