"""``memory_limit`` holds for every estimator that has it, or the fit is refused beforehand."""

import re
import sys
from functools import cache

import pytest

from benchmarks import memory
from kernelweave.foundation.errors import ParameterError
from tests.estimators.discovery import all_estimators, for_estimators

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a peak can be set back on Linux alone")


def has_limit(case):
    return case.has("memory_limit")


@cache
def peaks():
    """Return the peaks of all estimators by name, measured in one process."""
    names = [repr(case) for case in all_estimators() if has_limit(case)]
    found = {name: [] for name in names}
    for peak in memory.measured(names):
        found[peak.estimator].append(peak)
    return found


@for_estimators(has_limit)
def test_a_fit_takes_inputs_and_limit_or_is_refused_beforehand(case):
    sizes = peaks()[repr(case)]
    assert len(sizes) >= 2
    assert any(not peak.refused for peak in sizes)
    for peak in sizes:
        assert peak.peak <= peak.allowed, peak


@for_estimators(has_limit)
def test_a_refusal_names_the_limit_and_what_would_fit(case):
    refused = [peak for peak in peaks()[repr(case)] if peak.refused]
    assert all(f"memory_limit={memory.LIMIT}" in peak.outcome for peak in refused)
    assert all(0 < peak.fitting < peak.n_samples for peak in refused)


def test_the_limit_that_a_refusal_asks_for_is_enough():
    case = next(case for case in all_estimators() if repr(case) == "OptimizedKernelKMeans")
    X = memory.inputs(case.cls, "table", 120)
    with pytest.raises(ParameterError, match=r"more than memory_limit=0\.1\. Raise it to") as refusal:
        case.make(memory_limit=0.1).fit(X)
    enough = float(re.search(r"Raise it to ([\d.]+),", str(refusal.value)).group(1))
    assert len(case.make(memory_limit=enough).fit(X).labels_) == 120
