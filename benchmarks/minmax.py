"""MinMax k-means: against scikit-learn's Lloyd and the textbook loop, its floors, both cores, memory, circles."""

import hashlib
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_limits

from benchmarks._harness import Row, in_fresh_process, seconds
from benchmarks.baselines import textbook_kernel_kmeans
from benchmarks.kernel_kmeans import problem
from kernelweave import KernelKMeans, MinMaxKMeans
from kernelweave.datasets import load_benchmark, standardize
from kernelweave.foundation.errors import ConvergenceWarning, DataError
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.threads import thread_count
from kernelweave.kernels.features import FeatureKernel
from kernelweave.solvers.kmeans.minmax import minmax_kmeans
from kernelweave.solvers.kmeans.starts import start_labels

SUITE = "MinMax k-means"
DIGITS = "Pendigits (10,992 x 16), z-scores"
LARGE = "200,000 x 50"
MISSING = "data missing: KERNELWEAVE_DATA does not hold it"
#: A step may take this much longer than one of Lloyd's k-means.
PER_STEP = 1.5
#: Of the processor time that loops without anything in common get on two cores, restarts must get this much.
SHARE = 0.65
#: Times by the clock count where loops without anything in common got this much of the cores.
QUIET = 0.9


def run():
    X = pendigits()
    B = blobs()
    rows = [*on_digits(X)] if X is not None else [Row(SUITE, DIGITS, MISSING)]
    for k, steps in ((10, 25), (50, 25)):
        rows += step_rows(B, k, f"{LARGE}, k = {k}", steps)
    return [*rows, linear_kernel(B), kernel_step(), memory()]


def on_digits(X):
    yield from step_rows(X, 10, f"{DIGITS}, k = 10", steps=50, repeats=15)
    yield from restarts(X)
    for kept in (0.0, 0.3):
        yield circles(X, kept)


# --- Data -------------------------------------------------------------------------------------------------------------


def pendigits():
    try:
        return standardize(load_benchmark("pendigits").data)
    except DataError:
        return None


def like_pendigits():
    """Return overlapping groups of the shape of Pendigits, for where the file is not at hand."""
    return standardize(make_blobs(10992, n_features=16, centers=30, cluster_std=4.0, random_state=0)[0])


def blobs():
    return make_blobs(200_000, n_features=50, centers=100, cluster_std=6.0, random_state=0)[0]


# --- One step ---------------------------------------------------------------------------------------------------------


def per_step(fits, steps, threads=1, repeats=3, floors=()):
    """Return the seconds a step takes in each of ``fits``, and those of each of ``floors``, taken in turns.

    A fit is called with the number of steps to make. What it costs beside its steps cancels: the time of one step is
    taken from that of many. On one thread it is processor time, which other work on the machine leaves alone.
    """
    made = {}

    def case(name, most):
        def work():
            made[name, most] = fits[name](most).n_iter_

        return work

    cases = {(name, most): case(name, most) for name in fits for most in (1, steps)}
    with threadpool_limits(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name in fits:
            fits[name](2)  # compiles
        taken = seconds({**cases, **dict(floors)}, repeats, time.process_time if threads == 1 else time.perf_counter)
    steady = {name: (taken[name, steps] - taken[name, 1]) / (made[name, steps] - made[name, 1]) for name in fits}
    return {**steady, **{name: taken[name] for name in dict(floors)}}


def both_fits(X, k):
    """Return MinMax and Lloyd's k-means from the same centres, as functions of the steps to make."""
    centres = X[np.random.default_rng(0).choice(len(X), k, replace=False)]
    return {
        "ours": lambda steps: MinMaxKMeans(k, init=centres, tol=0.0, max_iter=steps).fit(X),
        "lloyd": lambda steps: KMeans(k, init=centres, n_init=1, algorithm="lloyd", tol=0.0, max_iter=steps).fit(X),
    }


def step_rows(X, k, what, steps, repeats=5):
    fits = both_fits(X, k)
    transposed = np.ascontiguousarray(X[:k].T)
    out = np.empty((len(X), k))
    floors = {"sum": X.sum, "product": lambda: np.dot(X, transposed, out=out)}
    one = per_step(fits, steps, repeats=repeats, floors=floors)
    yield step_row(one, f"a step, {what}, beside scikit-learn's Lloyd, one thread each")
    note = (
        f"{one['ours'] / one['product']:.1f} x the product X @ C.T ({2 * X.size * k / one['ours'] / 1e9:.1f} GFLOP/s), "
        f"{one['ours'] / one['sum']:.1f} x X.sum() ({X.nbytes / one['ours'] / 1e9:.1f} GB/s)"
    )
    yield Row(SUITE, "the same step, beside its floors", note)
    if (threads := thread_count()) > 1:
        yield on_all_threads(fits, steps, threads, repeats)


def step_row(taken, what, clock="of processor time"):
    ratio = taken["ours"] / taken["lloyd"]
    note = f"{ratio:.2f} x ({taken['ours'] * 1e3:.2f} and {taken['lloyd'] * 1e3:.2f} ms {clock})"
    return Row(SUITE, what, note, f"at most {PER_STEP} x", ratio <= PER_STEP)


def on_all_threads(fits, steps, threads, repeats):
    """Time a step by the clock; no verdict where other work had the cores, which holds up OpenMP's loops the most."""
    before, _ = occupied(plain_loops, threads)
    taken = per_step(fits, steps, threads, repeats)
    after, _ = occupied(plain_loops, threads)
    row = step_row(taken, f"the same step, {threads} threads each", "by the clock")
    free = min(before, after)
    if free >= QUIET * threads:
        return row
    return Row(SUITE, row.what, f"{row.result}; no verdict, plain loops got {free:.1f} cores", row.promise)


def linear_kernel(X, k=10, steps=25):
    """Time a step of k-means through a linear kernel; both begin at the means of the same labels."""
    op = FeatureKernel(X)
    labels = start_labels(op, "random", np.ones(len(X)), k, np.random.default_rng(0))
    means = op.feature_sums(labels, np.ones(len(X)), k) / np.bincount(labels)[:, None]
    fits = {
        "ours": lambda most: KernelKMeans(k, kernel="linear", init=labels, max_iter=most).fit(X),
        "lloyd": lambda most: KMeans(k, init=means, n_init=1, algorithm="lloyd", tol=0.0, max_iter=most).fit(X),
    }
    row = step_row(per_step(fits, steps), f"kernel k-means, linear kernel, {LARGE}, k = {k}, one thread each")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Lloyd's k-means assigns once more when its steps are used up.
        same = np.array_equal(fits["ours"](steps + 1).labels_, fits["lloyd"](steps).labels_)
    return Row(SUITE, row.what, f"{row.result}, labels {'equal' if same else 'DIFFER'}", row.promise, row.kept and same)


def kernel_step():
    """Time a step of MinMax kernel k-means, the first pass over the kernel shared out among all, and the textbook's."""
    op, labels, weights, k = problem()
    run = minmax_kmeans(op, labels, weights, n_clusters=k)
    _, plain = textbook_kernel_kmeans(op.K, labels, k)
    taken = seconds(
        {
            "ours": lambda: minmax_kmeans(op, labels, weights, n_clusters=k),
            "textbook": lambda: textbook_kernel_kmeans(op.K, labels, k),
        }
    )
    ratio = (taken["textbook"] / plain) / (taken["ours"] / run.n_iter)
    note = f"{ratio:.1f} x faster ({run.n_iter} steps, plain kernel k-means {plain})"
    what = "a step on a kernel matrix, n = 5,000, k = 10, beside a step of the textbook loop"
    return Row(SUITE, what, note, "at least 5 x", ratio >= 5)


# --- Restarts ---------------------------------------------------------------------------------------------------------


def restarts(X, n_init=500, compared=100):
    busy, wall, possible, _ = both_cores(X, n_init)
    result = (
        f"{busy:.2f} cores busy; two loops with nothing in common got {possible:.2f} "
        f"({wall:.0f} s, {wall / n_init * 1e3:.0f} ms a restart)"
    )
    what = f"{n_init} restarts, {DIGITS}, k = 10, two threads"
    promise = f"at least {SHARE} of what such loops get"
    yield Row(SUITE, what, result, promise, busy >= SHARE * possible)
    labels = {}
    best = {1: np.inf, 2: np.inf}
    free = []
    for _ in range(2):
        for threads in best:
            _, wall, possible, labels[threads] = both_cores(X, compared, threads)
            best[threads] = min(best[threads], wall)
            free += [possible] * (threads == 2)
    same = np.array_equal(labels[1], labels[2])
    note = (
        f"{best[1] / best[2]:.2f} x the speed where plain loops got {max(free):.2f} cores, "
        f"labels {'equal' if same else 'DIFFER'}"
    )
    yield Row(SUITE, f"{compared} such restarts, two threads beside one", note, "the same labels", same)


def both_cores(X, n_init, threads=2):
    """Return the cores that restarts keep busy, their wall-clock time, the cores that plain loops get, and labels."""
    model = MinMaxKMeans(10, n_init=n_init, random_state=0)
    with threadpool_limits(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        MinMaxKMeans(10, n_init=1, max_iter=2).fit(X)  # compiles
        before, _ = occupied(plain_loops, threads)
        busy, wall = occupied(model.fit, X)
        after, _ = occupied(plain_loops, threads)
    return busy, wall, (before + after) / 2, model.labels_


def occupied(work, *args):
    """Return how many cores ``work`` kept busy, on average, and its wall-clock time."""
    wall = time.perf_counter()
    processor = time.process_time()
    work(*args)
    wall = time.perf_counter() - wall
    processor = time.process_time() - processor
    return processor / wall, wall


def plain_loops(threads, rounds=600):
    """Hash on every thread: no lock, no memory traffic, nothing that one would have to wait for."""
    block = bytes(2**20)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: [hashlib.blake2b(block).digest() for _ in range(rounds)], range(threads)))


def circles(X, kept, n_init=20, max_iter=500):
    """Count the steps that runs make which go round in circles; without notice of it they would make all."""
    op = FeatureKernel(X - X.mean(axis=0))
    weights = np.ones(len(X))
    runs = [
        minmax_kmeans(
            op, start_labels(op, "random", weights, 10, rng), weights, n_clusters=10, memory=kept, max_iter=max_iter
        )
        for rng in streams(0, n_init)
    ]
    made = {
        "circling": [run.n_iter for run in runs if run.circling],
        "at rest": [run.n_iter for run in runs if run.converged],
        "neither": [run.n_iter for run in runs if not run.ended],
    }
    note = "; ".join(f"{len(steps)} {how}, {np.mean(steps):.0f} steps" for how, steps in made.items() if steps)
    total = sum(map(sum, made.values()))
    without = total + sum(max_iter - steps for steps in made["circling"])
    note += f"; {1 - total / without:.0%} of {without:,} steps saved"
    return Row(SUITE, f"{n_init} restarts, {DIGITS}, memory = {kept}, max_iter = {max_iter}: how they end", note)


# --- Memory -----------------------------------------------------------------------------------------------------------

FIT = """
import sys, warnings
import numpy as np
from sklearn.cluster import KMeans
from kernelweave import MinMaxKMeans
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
MinMaxKMeans(2, n_init=2, random_state=0).fit(rng.standard_normal((5000, 50)))
X = rng.standard_normal((200000, 50))
for part in np.array_split(X, 100):
    part += 3.0 * rng.standard_normal(50)
models = {"none": None, "ours": MinMaxKMeans(10, n_init=2, random_state=0),
          "lloyd": KMeans(10, init="random", n_init=2, random_state=0)}
model = models[sys.argv[1]]
if model is not None:
    model.fit(X)
result = X.nbytes / 2**20
"""


def memory():
    """Take the peak of a process that only made X from that of one that also fitted it."""
    result = {kind: in_fresh_process(FIT, argv=(kind,)) for kind in ("none", "ours", "lloyd")}
    size = result["none"][0]
    peaks = {kind: peak for kind, (_, peak) in result.items()}
    times = {kind: 1 + (peaks[kind] - peaks["none"]) / size for kind in ("ours", "lloyd")}
    note = f"{times['ours']:.1f} x X itself, X included (scikit-learn's KMeans {times['lloyd']:.1f} x)"
    what = f"peak of two starts on {LARGE}, k = 10, in a process of its own ({peaks['ours']:.0f} MiB in all)"
    return Row(SUITE, what, note, "under 4 x", times["ours"] < 4)
