"""Kernel k-means: against the textbook loop and tslearn, against reading the matrix once, and its memory."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs

from benchmarks._harness import Row, in_fresh_process, seconds
from benchmarks.baselines import textbook_kernel_kmeans, tslearn_kernel_kmeans
from kernelweave.foundation.threads import thread_count
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
from kernelweave.solvers.kmeans.starts import start_labels

SUITE = "kernel k-means"


def problem(n=5000, k=10):
    X, _ = make_blobs(n, n_features=10, centers=25, cluster_std=4.0, random_state=0)
    op = fit_kernel(X, "rbf", {"gamma": "median"}).operator()
    return op, start_labels(op, "random", np.ones(n), k, np.random.default_rng(0)), np.ones(n), k


def run():
    return [*speed(), *first_pass(), *memory()]


def speed(peers=True, repeats=5):
    op, labels, weights, k = problem()
    ours = kernel_kmeans(op, labels, weights, n_clusters=k)
    theirs = []
    times = seconds(
        {
            "ours": lambda: kernel_kmeans(op, labels, weights, n_clusters=k),
            "textbook": lambda: theirs.append(textbook_kernel_kmeans(op.K, labels, k)[0]),
        },
        repeats,
    )
    same = np.array_equal(ours.labels, theirs[0])
    ratio = times["textbook"] / times["ours"]
    note = f"{ratio:.1f} x faster ({ours.n_iter} steps, labels {'equal' if same else 'DIFFER'})"
    rows = [Row(SUITE, "n = 5,000, k = 10, against the textbook loop", note, "at least 5 x", ratio >= 5 and same)]
    if not peers:
        return rows
    if (made := tslearn_kernel_kmeans(op.K, labels, k)) is None:
        return [*rows, Row(SUITE, "against tslearn", "tslearn is not installed", "at least 50 x")]
    peer = seconds({"tslearn": lambda: tslearn_kernel_kmeans(op.K, labels, k)}, repeats=1)["tslearn"]
    ratio = peer / times["ours"]
    note = f"{ratio:.0f} x faster (tslearn made {made} steps)"
    return [*rows, Row(SUITE, "the same, against tslearn's loop", note, "at least 50 x", ratio >= 50)]


def first_pass():
    op, labels, weights, k = problem()
    K = op.K
    threads = thread_count()
    chunks = np.array_split(K, threads)

    def read_once():
        with ThreadPoolExecutor(threads) as pool:
            return sum(pool.map(np.sum, chunks))

    op.cluster_sums(labels, weights, k)
    times = seconds({"pass": lambda: op.cluster_sums(labels, weights, k), "sum": read_once}, repeats=15)
    ratio = times["pass"] / times["sum"]
    rate = K.nbytes / times["pass"] / 1e9
    note = f"{ratio:.2f} x the time of K.sum() on {threads} threads ({rate:.0f} GB/s)"
    return [Row(SUITE, "first full pass, n = 5,000", note, "at most 2 x", ratio <= 2)]


RBF = """
import numpy as np, sys
from sklearn.datasets import make_blobs
from kernelweave import KernelKMeans
X, _ = make_blobs(int(sys.argv[3]), n_features=16, centers=12, cluster_std=3.0, random_state=0)
model = KernelKMeans(10, kernel="rbf", kernel_params={"sigma": 6.0}, init="random", n_init=1, storage=sys.argv[1],
                     max_iter=3, memory_limit=8192, random_state=0).fit(X)
np.save(sys.argv[2], model.labels_)
result = model.n_iter_
"""

LINEAR = """
import numpy as np
from sklearn.datasets import make_blobs
from kernelweave import KernelKMeans
X, _ = make_blobs(500000, n_features=50, centers=10, cluster_std=6.0, random_state=0)
model = KernelKMeans(10, kernel="linear", init="k-means++", n_init=1, random_state=0).fit(X)
result = [model.n_iter_, bool(model.converged_)]
"""


def memory():
    with tempfile.TemporaryDirectory() as scratch:
        paths = {kind: str(Path(scratch, f"{kind}.npy")) for kind in ("blockwise", "dense")}
        result = {kind: in_fresh_process(RBF, argv=(kind, path, "20000")) for kind, path in paths.items()}
        same = np.array_equal(*(np.load(path) for path in paths.values()))
    lazy = result["blockwise"][1]
    dense = result["dense"][1]
    note = f"peak {lazy:.0f} MiB (dense {dense:.0f}), labels {'equal' if same else 'DIFFER'}"
    rows = [Row(SUITE, "20,000 samples, RBF, blockwise", note, "under 600 MB", same and lazy * 1.048576 < 600)]
    (steps, converged), peak = in_fresh_process(LINEAR)
    note = f"peak {peak:.0f} MiB, {steps} steps, {'converged' if converged else 'not converged'}"
    return [*rows, Row(SUITE, "500,000 x 50, linear kernel", note, "under 2 GB", peak * 1.048576 < 2000)]
