"""Timing, memory and tables. Machines are noisy: baselines are interleaved with what they are compared to."""

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One finding: what was measured, against what, and what the project promises."""

    suite: str
    what: str
    result: str
    promise: str = ""
    kept: bool | None = None

    @property
    def verdict(self) -> str:
        return {True: "kept", False: "BROKEN", None: ""}[self.kept]


def seconds(cases, repeats=5, clock=time.perf_counter):
    """Return the least time of every case, taken in turns."""
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(repeats):
        for name, work in cases.items():
            start = clock()
            work()
            best[name] = min(best[name], clock() - start)
    return best


# Peak memory of the process itself: ru_maxrss of a child also counts its parent's size at the fork.
PEAK = """
def _peak_mib():
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        import resource
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
import json as _json
print(_json.dumps([globals().get("result"), _peak_mib() + globals().get("_left_behind", 0.0)]))
"""


def in_fresh_process(code, env=None, argv=(), timeout=None):
    """Run Python code in a new process; returns (what it left in ``result``, its peak memory in MiB)."""
    command = [sys.executable, "-W", "ignore", "-c", code + PEAK, *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env, timeout=timeout)
    result, peak = json.loads(done.stdout.strip().splitlines()[-1])
    return result, peak


# Waits for code and runs each piece in a fork: what all of them import is imported once. A fork begins without the
# pages of libraries that its parent has read, which a process of its own would have: they are added to its peak.
FORKING = """
import json, os, sys
import sklearn.datasets
from kernelweave import ConvexMixture, KernelKMeans, KernelSpectralClustering, MultiViewKernelKMeans
def resident_mib():
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
    except OSError:
        return 0.0
for line in sys.stdin:
    code, *sys.argv[1:] = json.loads(line)
    before = resident_mib()
    child = os.fork()
    if child == 0:
        exec(code, {"__name__": "__main__", "_left_behind": before - resident_mib()})
        sys.stdout.flush()
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(1)
"""


@contextmanager
def forked_processes():
    """Yield a function like ``in_fresh_process`` whose processes have the library from the start."""
    command = [sys.executable, "-W", "ignore", "-c", FORKING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def in_fork(code, argv=()):
            process.stdin.write(json.dumps([code + PEAK, *argv]) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                raise subprocess.CalledProcessError(process.wait(), command)
            result, peak = json.loads(line)
            return result, peak

        yield in_fork


def markdown(rows):
    lines = ["| suite | measured | result | promise | |", "|---|---|---|---|---|"]
    lines += [f"| {r.suite} | {r.what} | {r.result} | {r.promise} | {r.verdict} |" for r in rows]
    return "\n".join(lines) + "\n"
