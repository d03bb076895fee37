"""Where a fit on a stored kernel spends its time, verb by verb: ``python -m benchmarks.phases --threads 1 8 16``.

Seconds of a verb are those of the calling thread, best of a few fits; what is left is Python between them. For whoever
wants to know why more threads do not help.
"""

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections import Counter

import numpy as np

from benchmarks.cores import K, limits, pendigits, synthetic

VERBS = (
    "asymmetry",
    "cluster_sums",
    "move_sums",
    "nearest",
    "within_sums",
    "moves",
    "moved_sums_of",
    "segment_sums",
)
FITS = 7


def measure(n, name):
    """Print milliseconds and calls of every verb in the quickest of some fits."""
    from kernelweave import KernelKMeans
    from kernelweave.backends.compiled.step_team import StepTeam
    from kernelweave.backends.host import HostBackend

    warnings.simplefilter("ignore")
    matrix = {"synthetic": synthetic, "pendigits": pendigits}[name](n)
    if matrix is None:
        print(f"{name}: not at hand")
        return
    spent = Counter()
    calls = Counter()

    def timed(owner, verb):
        usual = getattr(owner, verb)

        def call(*args, **kwargs):
            began = time.perf_counter()
            result = usual(*args, **kwargs)
            spent[verb] += time.perf_counter() - began
            calls[verb] += 1
            return result

        return call

    for verb in VERBS:
        setattr(HostBackend, verb, timed(HostBackend, verb))
    StepTeam.step = timed(StepTeam, "step")
    start = np.random.default_rng(1).integers(K, size=n)
    best = (np.inf, {}, {})
    for _ in range(FITS):
        spent.clear()
        calls.clear()
        began = time.perf_counter()
        KernelKMeans(K, kernel="precomputed", init=start).fit(matrix)
        best = min(best, (time.perf_counter() - began, dict(spent), dict(calls)), key=lambda found: found[0])
    whole, verbs, often = best
    parts = [f"{verb} {1e3 * verbs[verb]:.1f} ({often[verb]})" for verb in (*VERBS, "step") if verb in verbs]
    # segment_sums is called by within_sums as well.
    left = whole - sum(seconds for verb, seconds in verbs.items() if verb != "segment_sums")
    print(
        f"{name} {n}, {limited()} threads, {1e3 * whole:.1f} ms: {', '.join(parts)}, left {1e3 * left:.1f}", flush=True
    )


def limited():
    return os.environ.get("OMP_NUM_THREADS", str(os.cpu_count()))


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.phases", description=__doc__)
    parser.add_argument("--n", type=int, nargs="+", default=[5000, 10_000])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--data", nargs="+", choices=["synthetic", "pendigits"], default=["synthetic", "pendigits"])
    parser.add_argument("--here", action="store_true", help="in this process, with the threads it has")
    options = parser.parse_args()
    if options.here:
        for n in options.n:
            for name in options.data:
                measure(n, name)
        return
    for threads in options.threads:
        command = [sys.executable, "-m", "benchmarks.phases", "--here", "--n", *map(str, options.n)]
        subprocess.run([*command, "--data", *options.data], env=os.environ | limits(threads), check=True)


if __name__ == "__main__":
    main()
