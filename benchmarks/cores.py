"""Whole fits by threads, as far as the machine has them, each number in a process of its own.

``python -m benchmarks.cores --what stored`` (the default) is kernel k-means on a stored kernel, checks included,
against the textbook loop and one read of the matrix. ``--what global blockwise`` are the exact global search and kernel
k-means on a kernel that is computed tile by tile, against themselves on one thread. BLAS and our loops are allowed as
many threads. ``python -m benchmarks cores`` has all three, at sizes that end within a few minutes.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import warnings

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
    apart = "" if found["apart"] is None else f" (fits apart keep {found['apart']:.2f})"
    return Row(
        SUITE,
        f"{TITLES[found['what']]}, threads: {found['threads']}",
        f"{found['seconds']:.2f} s, efficiency {share:.2f}{apart}, {'the same' if found['same'] else 'OTHER'} labels",
        f"the same labels, efficiency >= {EFFICIENCY}" if counted else "the same labels",
        found["same"] and (share >= EFFICIENCY or not counted),
    )


def available(counts):
    """Return the numbers of threads that the machine has."""
    return [threads for threads in counts if threads <= (os.cpu_count() or 1)]


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
CASES = {"global": global_search, "blockwise": blockwise}
TITLES = {
    "global": "exact global search, 1,500 samples on a stored kernel, k = 6",
    "blockwise": "KernelKMeans, 15,000 samples, the kernel computed in tiles",
}


def efficiency(what, counts):
    """Yield seconds of a fit by threads, and how far these speed it up: 1 is as many times as there are threads.

    Processors that share a core, or that slow down when others are busy, allow less than 1. As many fits on one thread
    each, in processes of their own, share nothing else: the share of their speed that they keep is said beside it.
    """
    alone = None
    for threads in counts:
        ((took, processor, digest),) = side_by_side(what, 1, threads)
        alone = alone or (threads, took, digest)
        result = {"what": what, "threads": threads, "seconds": took, "processor": processor}
        result |= {"efficiency": alone[0] * alone[1] / (threads * took), "same": digest == alone[2]}
        kept = [alone[1] / seconds for seconds, *_ in side_by_side(what, threads, 1)] if alone[0] == 1 < threads else []
        yield result | {"apart": sum(kept) / len(kept) if kept else None}


def side_by_side(what, processes, threads):
    """Return seconds, seconds of processors and a digest of the labels from processes that run at the same time."""
    command = [sys.executable, "-m", "benchmarks.cores", "--here", "--what", what]
    options = {"env": os.environ | limits(threads), "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, **options) for _ in range(processes)]
    answers = [process.communicate()[0] for process in running]
    for process in running:
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
    return [(float(took), float(processor), digest) for took, processor, digest in map(str.split, answers)]


def case_line(found):
    labels = "same labels" if found["same"] else "OTHER LABELS"
    apart = "" if found["apart"] is None else f" ({found['apart']:.2f} for as many fits in processes of one thread)"
    return (
        f"{found['what']} {found['threads']} threads: {found['seconds']:.2f} s, "
        f"{found['processor']:.2f} s of processors, efficiency {found['efficiency']:.2f}{apart}, {labels}"
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
    parser.add_argument("--here", action="store_true", help="in this process, with the threads it has")
    options = parser.parse_args()
    if options.here and options.what != ["stored"]:
        measure_case(options.what[0])
        return
    if options.here:
        measure(options.threads[0], options.sizes, options.dtype, options.alone)
        return
    counts = available(options.threads)
    if len(counts) < len(options.threads):
        print(f"this machine has {os.cpu_count()} threads")
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
