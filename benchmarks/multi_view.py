"""Multi-view methods: against mvlearn, a step against Lloyd's k-means and its floors, time and memory against n."""

import sys
import time
import types
import warnings

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from benchmarks._harness import Row, in_fresh_process, seconds
from benchmarks.minmax import per_step
from kernelweave import MultiViewKernelKMeans, MultiViewSpectralClustering
from kernelweave.datasets import load_benchmark, standardize
from kernelweave.foundation.errors import DataError
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.weighted_sum import composite
from kernelweave.metrics import normalized_mutual_info

SUITE = "multi-view"
DIGITS = "Multiple features (2,000 digits, five views without mor), z-scores"
#: The setting recommended where nothing is known of the views: chosen without labels, as the guide says why.
RECOMMENDED = {
    "kernel": "nearest_neighbors",
    "kernel_params": {"weights": "self_tuning", "symmetrize": "max"},
    "normalize": "degrees",
    "view_weights": "uniform",
}
SIZES = (62_500, 250_000, 1_000_000)

LARGE = """
import sys, time
import numpy as np
from kernelweave import MultiViewKernelKMeans
n, k = int(sys.argv[1]), 10
rng = np.random.default_rng(0)
y = rng.integers(k, size=n)
views = [rng.normal(0, 1.0, (k, 20))[y] + rng.normal(0, 1.5 + 0.5 * v, (n, 20)) for v in range(5)]
start = time.perf_counter()
model = MultiViewKernelKMeans(k, kernel="linear", random_state=0).fit(views)
result = [time.perf_counter() - start, model.n_iter_, bool(model.converged_)]
"""


def run():
    return [*against_mvlearn(), *one_step(), new_weights(), *scale()]


# --- Against mvlearn --------------------------------------------------------------------------------------------------


def digits():
    try:
        data = load_benchmark("mfeat")
    except DataError:
        return None
    return [standardize(X) for name, X in data.views.items() if name != "mor"], data.target


def mvlearn():
    """Return mvlearn's clusterers, None where it is not installed; its plotting imports packages it does not need."""
    for name in ("seaborn", "graspologic"):
        try:
            __import__(name)
        except ImportError:
            sys.modules[name] = types.ModuleType(name)
    try:
        from mvlearn import cluster
    except ImportError:
        return None
    return cluster


def against_mvlearn():
    what = f"{DIGITS}: MultiViewSpectralClustering as recommended"
    result = digits()
    theirs = mvlearn()
    if result is None or theirs is None:
        yield Row(SUITE, what, "data missing" if result is None else "mvlearn missing")
        return
    views, y = result

    def ours():
        return MultiViewSpectralClustering(10, random_state=0, **RECOMMENDED).fit(views).labels_

    took = seconds({"ours": ours}, repeats=5)["ours"]
    nmi = normalized_mutual_info(y, ours())
    for name, least in (("MultiviewCoRegSpectralClustering", 5), ("MultiviewSpectralClustering", 50)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            labels = getattr(theirs, name)(n_clusters=10, random_state=0).fit_predict([X.copy() for X in views])
            ratio = (time.perf_counter() - start) / took
        other = normalized_mutual_info(y, labels)
        text = f"{ratio:.0f} x as fast ({took * 1e3:.0f} ms), NMI {nmi:.3f} against {other:.3f}"
        kept = ratio >= least and nmi >= other
        yield Row(SUITE, f"{what}, beside mvlearn's {name}", text, f">= {least} x, NMI not lower", kept)


# --- One step ---------------------------------------------------------------------------------------------------------


def blobs(n=200_000, k=10, n_views=5, d=20):
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n)
    return [rng.normal(0, 1.0, (k, d))[y] + rng.normal(0, 2.0 + 0.5 * v, (n, d)) for v in range(n_views)]


def both_fits(views, k):
    """Return k-means on the joined features, ours with equal weights and scikit-learn's, as functions of the steps."""
    X = np.hstack(views)
    centres = X[np.random.default_rng(0).choice(len(X), k, replace=False)]
    start = np.linalg.norm(X[:, None, :5] - centres[None, :, :5], axis=2).argmin(axis=1)
    ours = {"kernel": "linear", "view_weights": "uniform", "normalize": False, "init": start}
    return X, {
        "ours": lambda steps: MultiViewKernelKMeans(k, max_iter=steps, **ours).fit(views),
        "lloyd": lambda steps: KMeans(k, init=centres, n_init=1, algorithm="lloyd", tol=0.0, max_iter=steps).fit(X),
    }


def one_step(k=10, steps=25):
    views = blobs()
    X, fits = both_fits(views, k)
    transposed = np.ascontiguousarray(X[:k].T)
    out = np.empty((len(X), k))
    floors = {"product": lambda: np.dot(X, transposed, out=out), "sum": X.sum}
    taken = per_step(fits, steps, floors=floors)
    ratio = taken["ours"] / taken["lloyd"]
    what = "a step of MultiViewKernelKMeans, 200,000 x 5 linear views of 20 columns, k = 10"
    text = f"{ratio:.2f} x ({taken['ours'] * 1e3:.1f} and {taken['lloyd'] * 1e3:.1f} ms of processor time)"
    yield Row(SUITE, f"{what}, beside scikit-learn's Lloyd on all columns", text, "at most 1.5 x", ratio <= 1.5)
    note = f"{taken['ours'] / taken['product']:.1f} x the product X @ C.T, {taken['ours'] / taken['sum']:.1f} x X.sum()"
    yield Row(SUITE, "the same step, beside its floors", note)


def new_weights(k=10):
    """Compare a change of the view weights with one pass over the data."""
    views = blobs()
    op = composite([fit_kernel(X, "linear").operator() for X in views], np.full(len(views), 0.2))
    weights = np.ones(len(views[0]))
    partition = op.view_partition(np.random.default_rng(0).integers(k, size=len(weights)), weights, k)
    with threadpool_limits(1):
        taken = seconds(
            {
                "reweigh": lambda: (partition.view_scatters(), partition.reweigh(np.full(len(views), 0.2))),
                "pass": partition.nearest,
            },
            repeats=7,
        )
    share = taken["reweigh"] / taken["pass"]
    what = "new view weights, 200,000 x 5 linear views, beside one pass over the data"
    return Row(SUITE, what, f"{share:.2f} of it", "at most 0.5", share <= 0.5)


# --- Scale ------------------------------------------------------------------------------------------------------------


def scale():
    result = {n: in_fresh_process(LARGE, argv=(str(n),)) for n in SIZES}
    times = np.array([result[n][0][0] for n in SIZES])
    steps = [result[n][0][1] for n in SIZES]
    slope = float(np.polyfit(np.log(SIZES), np.log(times), 1)[0])
    what = "MultiViewKernelKMeans, default start, n x 5 linear views of 20 columns, k = 10"
    pairs = zip(SIZES, times, steps, strict=True)
    text = ", ".join(f"{n:,}: {took:.1f} s ({step} outer steps)" for n, took, step in pairs)
    yield Row(SUITE, f"{what}: time against n", f"{text}; exponent {slope:.2f}", "exponent <= 1.1", slope <= 1.1)
    took = times[-1]
    peak = result[SIZES[-1]][1]
    kept = took <= 300 and peak * 1.048576 <= 6000
    yield Row(SUITE, f"{what}: {SIZES[-1]:,} samples", f"{took:.0f} s, peak {peak:.0f} MiB", "<= 300 s, <= 6 GB", kept)
