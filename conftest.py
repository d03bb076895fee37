"""Who runs which test, what the collector of garbage and the disk do, and that continuous integration skips none.

Where ``.ci/run`` has set KERNELWEAVE_CI, a test that is skipped has failed.
"""

import gc
import importlib
import os
from importlib.util import find_spec

import joblib
import pytest
from _pytest.doctest import DoctestModule
from _pytest.runner import runtestprotocol
from threadpoolctl import threadpool_limits

#: Reasons for which a test may be skipped there, too: what the machine is, not what is missing on it.
MAY_SKIP = ("there is one core only", "torch is not installed: no build for the processor was available")

#: Modules whose examples cannot be collected where what they import is missing: the programs of a GPU need Triton.
collect_ignore_glob = [
    *([] if find_spec("torch") else ["kernelweave/backends/torch/*", "tests/backends/watched_torch.py"]),
    *([] if find_spec("triton") else ["kernelweave/backends/torch/triton_*.py"]),
]

#: Seconds that a set-up or a tear-down takes at least where it is reported although it passed.
WORTH_TELLING = 0.005
#: Files whose tests share nothing, and some of which take long: any worker takes the next one.
SPREAD = ("tests/test_docs.py", "tests/reproduction/test_golden.py")
#: Files whose tests start clusters of processes: one worker runs them all, so that no two are there at a time.
CLUSTERS = (
    "tests/backends/test_dask_workers.py",
    "tests/graph/test_fusion_blocks.py",
    "tests/estimators/test_blocks.py",
    "tests/estimators/test_blocks_further.py",
    "tests/test_scripts.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let one worker of pytest-xdist run all tests of a file: what they share is made once, not by every worker.

    ``--dist loadgroup`` with marks would do, but finds no group under pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            if file in SPREAD:
                return nodeid
            return "clusters" if file in CLUSTERS else file

    return ByFile(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Return a worker more than there are cores: some tests wait, for a browser, a cluster or a command to end."""
    return joblib.cpu_count() + 1


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Let a worker of pytest-xdist say one thing of a test that passes, not five: that takes longer than small ones.

    Set-ups and tear-downs are told where they fail, are skipped, or take long enough for the list of durations.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if report.when == "call" or not report.passed or report.duration >= WORTH_TELLING:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


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


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Look for doctests in files that have a prompt: to go through all others takes a sixth of the collection."""
    collectors = yield
    if file_path.suffix == ".py" and b">>>" not in file_path.read_bytes():
        return [each for each in collectors if not isinstance(each, DoctestModule)]
    return collectors


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk(request):
    """Let files be written without waiting until the disk has them: no test cuts the power, and thousands of them wait.

    Times that are measured keep what they measure.
    """
    with pytest.MonkeyPatch.context() as patch:
        if request.config.option.markexpr != "timing":
            patch.setattr(os, "fsync", lambda handle: None)
        yield


def pytest_addoption(parser):
    """Add what the main part of ``make test`` runs with."""
    parser.addoption("--one-thread", action="store_true", help="run tests that choose no number of threads on one")


@pytest.fixture(autouse=True, scope="session")
def _one_thread_a_worker(request):
    """Let loops and linear algebra run on one thread where several workers share the cores: more would only wait.

    Tests about threads choose their number themselves. Processes that tests start have as many threads as a user's.
    """
    importlib.import_module("sklearn.utils._openmp_helpers")  # brings OpenMP: what is loaded later is not limited
    importlib.import_module("scipy.linalg")  # brings the BLAS of SciPy, beside that of NumPy
    with threadpool_limits(1 if request.config.option.one_thread else None):
        yield


@pytest.fixture
def one_thread():
    """Let long tests of figures run on one thread: results do not depend on it, and workers would only wait in turn.

    For tests that say nothing about threads; those that do choose their number themselves.
    """
    with threadpool_limits(1):
        yield


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
