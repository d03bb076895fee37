"""Continuous integration skips no test: where ``.ci/run`` has set KERNELWEAVE_CI, a test that is skipped has failed."""

import os

import pytest

#: Reasons for which a test may be skipped there, too: what the machine is, not what is missing on it.
MAY_SKIP = ("there is one core only",)


def _refused(report):
    """Return the report, as one of a failure where it is one of a skip that continuous integration does not allow."""
    if os.environ.get("KERNELWEAVE_CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        if reason not in MAY_SKIP:
            report.outcome = "failed"
            report.longrepr = f"Skipped in continuous integration, where everything must run: {reason}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    """Let no test be skipped."""
    return _refused((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(collector):
    """Let no module be skipped."""
    return _refused((yield))
