"""scikit-learn's checks of an instance as one test.

Thousands of tests of milliseconds take as long to be collected and handed out as to run, and pytest formats the
traceback of every expected failure.
"""

import re
from collections.abc import Mapping
from traceback import format_exception
from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator


def in_one_line(estimator: Any) -> str:
    """Return the name of an instance for a test."""
    return re.sub(r"\s+", "", repr(estimator))


def faults(estimator: Any, expected: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what the checks find, by name: failures without a reason, and reasons of checks that pass.

    ``expected`` has the reasons of checks that fail. Where a check was skipped the test is, after all others have run.
    """
    results = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    found = {}
    for result in results:
        if result["status"] == "failed":
            found[result["check_name"]] = "".join(format_exception(result["exception"]))
        elif result["status"] == "passed" and result["expected_to_fail"]:
            found[result["check_name"]] = f"passes, although {result['expected_to_fail_reason']}"
    skipped = [f"{result['check_name']}: {result['exception']}" for result in results if result["status"] == "skipped"]
    if skipped and not found:
        pytest.skip("; ".join(skipped))
    return found
