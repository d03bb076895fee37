"""Exact global search: against a plain run from every candidate, and its memory."""

import os
import time

import numpy as np

from benchmarks._harness import Row, in_fresh_process
from benchmarks.baselines import textbook_kernel_kmeans
from kernelweave.datasets import load_benchmark, standardize
from kernelweave.operators import DenseKernel, fit_kernel, search
from kernelweave.solvers import global_kernel_kmeans

SUITE = "global search"
WHAT = "exact, 3,498 test digits, k = 10"
PROMISE = "at least 200 x"


def run():
    if not os.environ.get("KERNELWEAVE_DATA"):
        return [Row(SUITE, WHAT, "data missing: KERNELWEAVE_DATA does not name it", PROMISE)]
    return [*speed(), memory()]


def problem():
    found = load_benchmark("pendigits")
    return fit_kernel(standardize(found.data[found.is_test]), "rbf", {"sigma": 2.8}).operator("dense")


def speed(n_clusters=10, per_stage=12):
    """Time the search, and the plain algorithm by a random sample of its candidates in every stage."""
    op = problem()
    K, n, weights = op.K, op.n_samples, np.ones(op.n_samples)
    global_kernel_kmeans(DenseKernel(K[:60, :60].copy()), np.ones(60), n_clusters=3, how="exact")  # compiles
    started = time.perf_counter()
    path, followed = counted(lambda: global_kernel_kmeans(op, weights, n_clusters=n_clusters, how="exact"))
    ours = time.perf_counter() - started
    stages, rng = path.stages, np.random.default_rng(0)
    plain, steps, below = 0.0, [], 0
    for k in range(2, n_clusters + 1):
        spent = 0.0
        for founder in rng.choice(n, per_stage, replace=False):
            start = stages[k - 2].labels.copy()
            start[founder] = k - 1
            before = time.perf_counter()
            labels, made = textbook_kernel_kmeans(K, start, k)
            spent += time.perf_counter() - before
            steps.append(made)
            below += objective(K, labels, k) < stages[k - 1].objective * (1 - 1e-10)
        plain += spent / per_stage * n
    ratio, tried = plain / ours, n * (n_clusters - 1)
    note = (
        f"{ratio:.0f} x faster ({ours:.1f} s for {tried:,} candidates, {tried / ours:,.0f} a second; plain "
        f"{plain / 3600:.1f} h by {len(steps)} runs, {np.mean(steps):.1f} steps each"
        f"{', SOME OF THEM LOWER' if below else ', none lower'})"
    )
    yield Row(SUITE, f"{WHAT}, against a plain run from every candidate", note, PROMISE, ratio >= 200 and not below)
    yield Row(SUITE, "the same, runs followed to their own end", f"{followed / tried:.1%}; the others met one of them")


def counted(work):
    """Return what ``work`` returns and how many runs of its stages were followed to their own end."""
    usual, ends = search.run_candidates, []

    def watched(*args, **options):
        runs = usual(*args, **options)
        ends.append(len(np.unique(runs.ends)))
        return runs

    search.run_candidates = watched
    try:
        return work(), sum(ends)
    finally:
        search.run_candidates = usual


def objective(K, labels, k):
    Z = np.eye(k)[labels]
    return float(np.trace(K) - (((K @ Z) * Z).sum(axis=0) / Z.sum(axis=0)).sum())


DIGITS = """
from kernelweave import GlobalKernelKMeans
from kernelweave.datasets import load_benchmark, standardize
found = load_benchmark("pendigits")
X = standardize(found.data[found.is_test])
model = GlobalKernelKMeans(10, search="exact", kernel_params={"sigma": 2.8}).fit(X)
result = model.inertia_
"""


def memory():
    error, peak = in_fresh_process(DIGITS)
    return Row(SUITE, f"{WHAT}, in a process of its own", f"peak {peak:.0f} MiB, error {error:.2f}")
