"""Whole fits by threads, as far as the machine has them, each number in a process of its own.

``python -m benchmarks.cores --what stored`` (the default) is kernel k-means on a stored kernel, checks included,
against the textbook loop and one read of the matrix. ``--what global blockwise`` are the exact global search and kernel
k-means on a kernel that is computed tile by tile, against themselves on one thread. BLAS and our loops are allowed as
many threads. ``python -m benchmarks cores`` has all three, at sizes that end within a few minutes.

Processors of virtual machines are often two halves of a core, of which the machine says nothing. ``--apart`` finds
those that slow each other down and leaves one of them out, so that as many threads have as many cores.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks._harness import Row

SUITE = "cores"
K = 10
SIZES = (1000, 1500, 3500, 5000, 10_000)
THREADS = (1, 2, 8, 16)
#: Sizes of the suite, and what it holds fits to: so many times the speed of the textbook loop from so many samples on,
#: and this efficiency on eight threads.
SUITE_SIZES = (1500, 5000)
TIMES_TEXTBOOK = 5.0
PROMISED_FROM = 5000
EFFICIENCY = 0.7
EFFICIENCY_THREADS = 8


def run():
    """Return rows for every number of threads that the machine has."""
    counts = available(THREADS)
    rows = [stored_row(found) for threads in counts for found in stored(threads, SUITE_SIZES, "float64")]
    return rows + [case_row(found) for what in CASES for found in efficiency(what, counts)]


def stored_row(found):
    """Return what is said of a fit on a stored kernel."""
    ratio = found["theirs"] / found["ours"]
    promised = found["n"] >= PROMISED_FROM and found["same"]
    return Row(
        SUITE,
        f"KernelKMeans on a stored kernel, {found['name']}, {found['n']:,} samples, threads: {found['threads']}",
        f"{ratio:.1f} x as fast as the textbook loop ({1e3 * found['ours']:.0f} and {1e3 * found['theirs']:.0f} ms, "
        f"{'the same' if found['same'] else 'another'} end)",
        f">= {TIMES_TEXTBOOK:g} x" if promised else "",
        ratio >= TIMES_TEXTBOOK if promised else None,
    )


def case_row(found):
    """Return what is said of a fit by threads."""
    counted = found["threads"] == EFFICIENCY_THREADS
    share = found["efficiency"]
    return Row(
        SUITE,
        f"{TITLES[found['what']]}, threads: {found['threads']}",
        f"{found['seconds']:.2f} s, efficiency {share:.2f} (the machine allows {found['allowed']:.2f}), "
        f"{'the same' if found['same'] else 'OTHER'} labels",
        f"the same labels, efficiency >= {EFFICIENCY}" if counted else "the same labels",
        found["same"] and (share >= EFFICIENCY or not counted),
    )


def available(counts):
    """Return the numbers of threads that the machine has."""
    return [threads for threads in counts if threads <= len(processors())]


def processors():
    """Return the processors that this process may use, where the system tells."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def synthetic(n):
    """Return a Gaussian kernel of 25 clusters that overlap, as in the benchmark of kernel k-means."""
    from sklearn.datasets import make_blobs

    return gaussian(make_blobs(n, n_features=10, centers=25, cluster_std=4.0, random_state=0)[0])


def pendigits(n):
    """Return a Gaussian kernel of handwritten digits, None where they are not at hand."""
    path = os.path.join(os.environ.get("KERNELWEAVE_DATA", ""), "pendigits", "pendigits.npz")
    if not os.path.exists(path):
        return None
    with np.load(path) as file:
        order = np.argsort(~file["is_test"], kind="stable")  # the 3,498 of the test set first
        X = file["X"][order].astype(np.float64)
    return gaussian(X[:n])


def gaussian(X):
    squares = np.einsum("ij,ij->i", X, X)
    D = np.maximum(squares[:, None] + squares - 2.0 * X @ X.T, 0.0)
    D = 0.5 * (D + D.T)
    return np.exp(-D / (2.0 * np.median(D[:500, :500])))


def best_seconds(function, repeats=7):
    """Return the least seconds and the last result; what takes seconds is not repeated."""
    taken = []
    while len(taken) < repeats and sum(taken) < 2.0:
        began = time.perf_counter()
        result = function()
        taken.append(time.perf_counter() - began)
    return min(taken), result


def measure(threads, sizes, dtype, alone):
    """Print what each kernel took, one line of JSON for each; ``alone`` leaves the textbook loop out."""
    from benchmarks.baselines import textbook_kernel_kmeans
    from kernelweave import KernelKMeans

    warnings.simplefilter("ignore")
    for n in sizes:
        for name, make in (("synthetic", synthetic), ("pendigits", pendigits)):
            full = make(n)
            if full is None:
                continue
            matrix = full.astype(dtype)
            start = np.random.default_rng(1).integers(K, size=n)
            model = KernelKMeans(K, kernel="precomputed", init=start)
            model.fit(matrix)
            ours, model = best_seconds(lambda m=matrix, s=start: KernelKMeans(K, kernel="precomputed", init=s).fit(m))
            theirs = None
            same = None
            if not alone:
                theirs, (labels, _) = best_seconds(lambda m=matrix, s=start: textbook_kernel_kmeans(m, s, K))
                same = bool(np.array_equal(labels, model.labels_))
            read, _ = best_seconds(matrix.sum, 5)
            found = {"name": name, "n": n, "threads": threads, "ours": ours, "theirs": theirs, "read": read}
            found |= {"steps": int(model.n_iter_), "same": same}
            print(json.dumps(found), flush=True)


def stored(threads, sizes, dtype, alone=False):
    """Yield what fits on stored kernels took, from a process with so many threads."""
    command = [sys.executable, "-m", "benchmarks.cores", "--here", "--threads", str(threads), "--dtype", dtype]
    command += ["--sizes", *(str(n) for n in sizes), *(["--alone"] if alone else [])]
    with subprocess.Popen(command, env=os.environ | limits(threads), stdout=subprocess.PIPE, text=True) as process:
        yield from map(json.loads, process.stdout)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def stored_line(found, first):
    """Return a line on a fit; ``first`` is what was found with the first number of threads."""
    ours, theirs, read = (found[name] for name in ("ours", "theirs", "read"))
    share = first["threads"] * first["ours"] / (found["threads"] * ours)
    beside = ""
    if theirs is not None:
        end = "same" if found["same"] else "another"
        beside = f"textbook {1e3 * theirs:.0f} ms, ratio {theirs / ours:.1f}, {end} end, "
    return (
        f"{found['name']} {found['n']} {found['threads']} threads: ours {1e3 * ours:.0f} ms, {beside}"
        f"{ours / read:.1f} times K.sum() ({1e3 * read:.1f} ms), efficiency {share:.2f}, {found['steps']} steps"
    )


def global_search():
    """Return the exact global search on a stored kernel, about two seconds on one thread."""
    from kernelweave import GlobalKernelKMeans

    matrix = synthetic(1500)
    return lambda: GlobalKernelKMeans(6, kernel="precomputed", search="exact").fit(matrix)


def blockwise():
    """Return kernel k-means on a kernel of which a small part may be stored."""
    from sklearn.datasets import make_blobs

    from kernelweave import KernelKMeans

    n = 15_000
    X = make_blobs(n, n_features=10, centers=25, cluster_std=4.0, random_state=0)[0]
    start = np.random.default_rng(1).integers(K, size=n)
    return lambda: KernelKMeans(K, kernel="rbf", memory_limit=256, init=start, max_iter=30).fit(X)


#: Fits of which the quickest counts, on any number of threads.
CASE_REPEATS = 3
#: Passes that show how fast threads are at the same time: some 0.05 s.
POWERS = 300
#: Two threads that take this many times as long together as alone are on one core; each pair is tried so often.
SHARED_CORE = 1.25
PAIR_REPEATS = 3
CASES = {"global": global_search, "blockwise": blockwise}
TITLES = {
    "global": "exact global search, 1,500 samples on a stored kernel, k = 6",
    "blockwise": "KernelKMeans, 15,000 samples, the kernel computed in tiles",
}


def efficiency(what, counts):
    """Yield seconds of a fit by threads, and how far these speed it up: 1 is as many times as there are threads.

    Processors that share a core, or that slow down when others are busy, allow less than 1: see :func:`allowed`.
    """
    alone = None
    for threads in counts:
        found = subprocess.run(
            [sys.executable, "-m", "benchmarks.cores", "--here", "--what", what],
            env=os.environ | limits(threads),
            check=True,
            capture_output=True,
            text=True,
        )
        took, processor, digest = found.stdout.split()
        alone = alone or (threads, float(took), digest)
        share = alone[0] * alone[1] / (threads * float(took))
        result = {"what": what, "threads": threads, "seconds": float(took), "processor": float(processor)}
        yield result | {"efficiency": share, "allowed": allowed(threads), "same": digest == alone[2]}


def allowed(threads):
    """Return the share of its speed that a thread keeps while as many take powers of numbers in their own caches."""
    alone = min(seconds_of_powers(1) for _ in range(5))
    return alone / float(np.median([seconds_of_powers(threads) for _ in range(5)]))


def seconds_of_powers(threads, pinned=None):
    """Return the mean time that threads take who begin together and share nothing, each on its processor."""
    ready = threading.Barrier(threads)

    def work(place):
        if pinned is not None:
            os.sched_setaffinity(0, {pinned[place]})  # of this thread alone
        values = np.linspace(0.5, 1.5, 2**16)
        powers = np.empty_like(values)
        ready.wait()
        began = time.perf_counter()
        for _ in range(POWERS):
            np.power(values, 0.37, out=powers)
        return time.perf_counter() - began

    with ThreadPoolExecutor(threads) as pool:
        return float(np.mean(list(pool.map(work, range(threads)))))


def processors_apart():
    """Return processors that do not slow each other down, the first of each core."""
    apart = []
    for processor in sorted(processors()):
        if all(slowdown(processor, other) < SHARED_CORE for other in apart):
            apart.append(processor)
    return apart


def slowdown(one, other):
    """Return how many times as long powers take on two processors at once as on the first one alone."""
    alone = min(seconds_of_powers(1, (one,)) for _ in range(PAIR_REPEATS))
    return min(seconds_of_powers(2, (one, other)) for _ in range(PAIR_REPEATS)) / alone


def case_line(found):
    labels = "same labels" if found["same"] else "OTHER LABELS"
    return (
        f"{found['what']} {found['threads']} threads: {found['seconds']:.2f} s, "
        f"{found['processor']:.2f} s of processors, "
        f"efficiency {found['efficiency']:.2f} (the machine allows {found['allowed']:.2f}), {labels}"
    )


def measure_case(what):
    warnings.simplefilter("ignore")
    fit = CASES[what]()
    fit()
    best = (np.inf, 0.0)
    for _ in range(CASE_REPEATS):
        began = time.process_time()
        took, model = best_seconds(fit, 1)
        best = min(best, (took, time.process_time() - began))
    print(*best, hashlib.blake2b(model.labels_.tobytes(), digest_size=8).hexdigest())


def limits(threads):
    return dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", nargs="+", choices=["stored", *CASES], default=["stored"])
    parser.add_argument("--threads", type=int, nargs="+", default=THREADS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument("--alone", action="store_true", help="without the textbook loop, which is slow in float32")
    parser.add_argument("--apart", action="store_true", help="on one processor of each core")
    parser.add_argument("--here", action="store_true", help="in this process, with the threads it has")
    options = parser.parse_args()
    if options.here and options.what != ["stored"]:
        measure_case(options.what[0])
        return
    if options.here:
        measure(options.threads[0], options.sizes, options.dtype, options.alone)
        return
    if options.apart:
        os.sched_setaffinity(0, processors_apart())
        print("processors:", *sorted(processors()), flush=True)
    counts = available(options.threads)
    if len(counts) < len(options.threads):
        print(f"this machine has {len(processors())} threads")
    firsts = {}
    for threads in counts if "stored" in options.what else ():
        for found in stored(threads, options.sizes, options.dtype, options.alone):
            first = firsts.setdefault((found["name"], found["n"]), found)
            print(stored_line(found, first), flush=True)
    for what in options.what:
        for found in efficiency(what, counts) if what in CASES else ():
            print(case_line(found), flush=True)


if __name__ == "__main__":
    main()
