"""Who runs which test, what the collector of garbage looks at, and that continuous integration skips none.

Where ``.ci/run`` has set KERNELWEAVE_CI, a test that is skipped has failed.
"""

import gc
import os

import pytest

#: Reasons for which a test may be skipped there, too: what the machine is, not what is missing on it.
MAY_SKIP = ("there is one core only",)

#: Files whose tests share nothing, and some of which take long: any worker takes the next one.
SPREAD = ("tests/test_docs.py", "tests/reproduction/test_golden.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Let one worker of pytest-xdist run all tests of a file: what they share is made once, not by every worker.

    Fewer, larger pieces also keep pytest-xdist itself quick: after each test it looks through all pieces handed out.
    """
    if not config.getoption("loadgroup", False):
        return
    for item in items:
        file = item.nodeid.partition("::")[0]
        if file not in SPREAD and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(file))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage among tests: they are many objects, all of which stay, and looking takes a third of the time.

    While tests run it is looked for among what they make.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


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
