"""Timing, memory and tables. Machines are noisy: baselines are interleaved with what they are compared to."""

import json
import subprocess
import sys
import time
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
print(_json.dumps([globals().get("result"), _peak_mib()]))
"""


def in_fresh_process(code, env=None, argv=()):
    """Run Python code in a new process; returns (what it left in ``result``, its peak memory in MiB)."""
    command = [sys.executable, "-W", "ignore", "-c", code + PEAK, *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    result, peak = json.loads(done.stdout.strip().splitlines()[-1])
    return result, peak


def markdown(rows):
    lines = ["| suite | measured | result | promise | |", "|---|---|---|---|---|"]
    lines += [f"| {r.suite} | {r.what} | {r.result} | {r.promise} | {r.verdict} |" for r in rows]
    return "\n".join(lines) + "\n"
