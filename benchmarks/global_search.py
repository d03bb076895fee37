"""Exact global search: against a plain run from every candidate, and its memory."""

import os
import time

import numpy as np

from benchmarks._harness import Row, in_fresh_process
from benchmarks.baselines import textbook_kernel_kmeans
from kernelweave.backends.compiled import candidate_search
from kernelweave.datasets import load_benchmark, standardize
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.solvers.kmeans.global_search import global_kernel_kmeans

SUITE = "global search"
WHAT = "exact, 3,498 test digits, k = 10"
PROMISE = "at least 200 x"


def run():
    if not os.environ.get("KERNELWEAVE_DATA"):
        return [Row(SUITE, WHAT, "data missing: KERNELWEAVE_DATA does not name it", PROMISE)]
    return [*speed(), memory()]


def problem():
    digits = load_benchmark("pendigits")
    return fit_kernel(standardize(digits.data[digits.is_test]), "rbf", {"sigma": 2.8}).operator("dense")


def speed(n_clusters=10, per_stage=12):
    """Time the search stage by stage, in turns with a random sample of the plain runs of the same stage."""
    op = problem()
    rng = np.random.default_rng(0)
    n = op.n_samples
    tried = op.n_samples * (n_clusters - 1)
    global_kernel_kmeans(DenseKernel(op.K[:60, :60].copy()), np.ones(60), n_clusters=3, how="exact")  # compiles
    bases = []
    ends = []
    ours = []
    plain = []

    def in_turns(stages):
        for k in stages:
            began = time.perf_counter()
            yield k
            ours.append(time.perf_counter() - began)
            plain.append(plain_runs(op.K, bases[-1], k, rng.choice(n, per_stage, replace=False)))

    def watched(K, labels, *args, **options):
        runs = usual(K, labels, *args, **options)
        bases.append(labels)
        ends.append(len(np.unique(runs.ends)))
        return runs

    usual = candidate_search.run_candidates
    candidate_search.run_candidates = watched
    try:
        path = global_kernel_kmeans(op, np.ones(n), n_clusters=n_clusters, how="exact", on_stage=in_turns)
    finally:
        candidate_search.run_candidates = usual
    seconds, steps, least = (np.array(column) for column in zip(*plain, strict=True))
    objectives = np.array([stage.objective for stage in path.stages[1:]])
    below = (least < objectives * (1 - 1e-10)).any()
    spent = sum(ours)
    theirs = seconds.mean(axis=1).sum() * n
    ratio = theirs / spent
    note = (
        f"{ratio:.0f} x faster ({spent:.1f} s for {tried:,} candidates, {tried / spent:,.0f} per second; plain "
        f"{theirs / 3600:.1f} h by {seconds.size} runs, {steps.mean():.1f} steps each, "
        f"{'SOME OF THEM LOWER' if below else 'none lower'})"
    )
    yield Row(SUITE, f"{WHAT}, against a plain run from every candidate", note, PROMISE, ratio >= 200 and not below)
    yield Row(SUITE, "the same, runs followed to their own end", f"{sum(ends) / tried:.1%}; the others met one of them")


def plain_runs(K, labels, k, samples):
    """Return seconds and steps of the textbook loop from each candidate for cluster k - 1, and the least objective."""
    seconds = []
    steps = []
    objectives = []
    for candidate in samples:
        start = labels.copy()
        start[candidate] = k - 1
        began = time.perf_counter()
        end, made = textbook_kernel_kmeans(K, start, k)
        seconds.append(time.perf_counter() - began)
        steps.append(made)
        objectives.append(objective(K, end, k))
    return seconds, steps, min(objectives)


def objective(K, labels, k):
    Z = np.eye(k)[labels]
    return float(np.trace(K) - (((K @ Z) * Z).sum(axis=0) / Z.sum(axis=0)).sum())


DIGITS = """
from kernelweave import GlobalKernelKMeans
from kernelweave.datasets import load_benchmark, standardize
digits = load_benchmark("pendigits")
X = standardize(digits.data[digits.is_test])
model = GlobalKernelKMeans(10, search="exact", kernel_params={"sigma": 2.8}).fit(X)
result = model.inertia_
"""


def memory():
    error, peak = in_fresh_process(DIGITS)
    return Row(SUITE, f"{WHAT}, in a process of its own", f"peak {peak:.0f} MiB, error {error:.2f}")
