"""Graph fusion: clusters beside the best of scikit-learn on toys and digits, time beside its parts, large data.

``python -m benchmarks.graph_fusion --sizes 10000 30000 100000 --search auto --threads 1 2`` prints how time and memory
of a fit of three views grow, stage by stage, and with ``--spectral`` those of scikit-learn's spectral clustering of the
joined columns. Each fit runs in a process of its own that is ended at ``--limit`` seconds.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections import defaultdict

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph
from threadpoolctl import threadpool_limits

from benchmarks._harness import PEAK, Row, in_fresh_process, seconds
from kernelweave import GraphFusionClustering
from kernelweave.datasets import load_multiview_digits, standardize
from kernelweave.estimators.graph import fusion_views, graph_fusion
from kernelweave.metrics import normalized_mutual_info

SUITE = "graph fusion"
SEEDS = range(5)
#: Round and of one width: what k-means assumes, so that nothing is promised beside it.
OVERLAPPING = "blobs that overlap"
#: One sample of 500 on the other side of a border.
ONE_SAMPLE = 0.005

LARGE = """
import time
import numpy as np
from kernelweave import GraphFusionClustering
from kernelweave.metrics import normalized_mutual_info
n, k = 100_000, 10
rng = np.random.default_rng(0)
y = rng.integers(k, size=n)
views = [rng.normal(size=(k, d))[y] * s + rng.normal(size=(n, d)) for d, s in ((50, 1.0), (30, 1.2), (20, 1.0))]
start = time.perf_counter()
model = GraphFusionClustering(k, random_state=0).fit(views)
result = [time.perf_counter() - start, float(normalized_mutual_info(y, model.labels_))]
"""


def run():
    return [*beside_scikit_learn(), *beside_its_parts(), choice_of_the_number(), large()]


# --- Clusters ---------------------------------------------------------------------------------------------------------


def tables():
    """Yield tables with clusters of other shapes than k-means finds, and two where it does well."""
    for seed in SEEDS:
        yield "two moons", *make_moons(500, noise=0.06, random_state=seed)
        yield "rings", *make_circles(500, noise=0.04, factor=0.5, random_state=seed)
        yield "blobs", *make_blobs(500, centers=5, cluster_std=0.5, random_state=seed)
        yield OVERLAPPING, *make_blobs(500, centers=5, random_state=seed)
    yield "digits", *load_digits(return_X_y=True)


def rivals(k):
    return {
        "KMeans": KMeans(k, n_init=10, random_state=0),
        "SpectralClustering": SpectralClustering(k, affinity="nearest_neighbors", random_state=0),
        "HDBSCAN": HDBSCAN(copy=True),
    }


def score(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return normalized_mutual_info(y, model.fit(X).labels_)


def beside_scikit_learn():
    ours, theirs = {}, {}
    for name, X, y in tables():
        k = len(np.unique(y))
        ours.setdefault(name, []).append(score(GraphFusionClustering(k, random_state=0), X, y))
        for rival, model in rivals(k).items():
            for shown, table in ((rival, X), (f"{rival} on z-scores", standardize(X))):
                theirs.setdefault(name, {}).setdefault(shown, []).append(score(model, table, y))
    for name, scores in ours.items():
        best = max(theirs[name], key=lambda rival: np.mean(theirs[name][rival]))
        mine = float(np.mean(scores))
        other = float(np.mean(theirs[name][best]))
        what = f"{name}, mean NMI of class defaults, k given, beside the best of KMeans, SpectralClustering and HDBSCAN"
        text = f"{mine:.3f} and {other:.3f} ({best}, chosen with the classes)"
        promised = name != OVERLAPPING
        kept = mine >= other - ONE_SAMPLE if promised else None
        yield Row(SUITE, what, text, "not below, but for one sample" if promised else "", kept)


# --- Time -------------------------------------------------------------------------------------------------------------


def beside_its_parts():
    """Compare a fit with scikit-learn's neighbours and spectral clustering, at one thread and two."""
    rng = np.random.default_rng(0)
    made = rng.normal(size=(10, 30))[rng.integers(10, size=5000)] + rng.normal(size=(5000, 30))
    for name, X in (("1,797 digits", load_digits().data), ("5,000 x 30", made)):
        for threads in (1, 2):
            cases = {
                "fusion": lambda X=X: GraphFusionClustering(10, random_state=0).fit(X),
                "spectral": lambda X=X: SpectralClustering(10, affinity="nearest_neighbors", random_state=0).fit(X),
                "neighbours": lambda X=X: kneighbors_graph(X, 40),
            }
            with threadpool_limits(threads), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                took = seconds(cases, repeats=3)
            text = (
                f"{took['fusion'] / took['spectral']:.1f} x scikit-learn's neighbour-graph spectral clustering, "
                f"{took['fusion'] / took['neighbours']:.1f} x the 40 neighbours alone ({took['fusion'] * 1e3:.0f} ms)"
            )
            yield Row(SUITE, f"one table, {name}, k = 10 given, threads: {threads}", text)


def choice_of_the_number():
    views = load_multiview_digits().views
    cases = {
        "auto": lambda: GraphFusionClustering("auto", check_views=False, random_state=0).fit(views),
        "given": lambda: GraphFusionClustering(10, check_views=False, random_state=0).fit(views),
    }
    took = seconds(cases, repeats=2)
    text = f"{took['auto'] / took['given']:.1f} x a fit with the number given ({took['auto']:.1f} s)"
    return Row(SUITE, 'n_clusters="auto", 1,797 digits in several views', text)


def large():
    (took, nmi), peak = in_fresh_process(LARGE)
    text = f"{took:.1f} s, peak {peak:.0f} MiB, NMI {nmi:.4f}"
    return Row(SUITE, "100,000 samples, views of 50, 30 and 20 columns, k = 10", text, "under a minute", took < 60)


# --- Growth -----------------------------------------------------------------------------------------------------------

N_CLUSTERS = 10
N_COLUMNS = 30
#: Stages of a fit, and what is called for each: names in the module or class that calls them.
STAGES = {
    "neighbours": (fusion_views, "nearest_in_all"),
    "recall": (fusion_views, "_recall"),
    "graphs": (fusion_views, "joined_view"),
    "fusion": (graph_fusion, "fuse_graphs"),
    "clusters": (GraphFusionClustering, "_cut"),
    "check of views": (GraphFusionClustering, "_keep_agreement"),
}


def three_views(n):
    """Return three views of clusters that each of them shows."""
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLUSTERS, size=n)
    scales = (1.0, 1.2, 1.0)
    return [rng.normal(size=(N_CLUSTERS, N_COLUMNS))[y] * s + rng.normal(size=(n, N_COLUMNS)) for s in scales], y


def watch_stages():
    """Have the stages of fits measured from now on; returns the table of their seconds."""
    spent = defaultdict(float)

    def watched(name, function):
        def call(*args, **kwargs):
            began = time.perf_counter()
            result = function(*args, **kwargs)
            if hasattr(result, "__next__"):
                result = watched_steps(name, result)
            spent[name] += time.perf_counter() - began
            return result

        return call

    def watched_steps(name, steps):
        while True:
            began = time.perf_counter()
            step = next(steps, None)
            spent[name] += time.perf_counter() - began
            if step is None:
                return
            yield step

    for name, (owner, attribute) in STAGES.items():
        setattr(owner, attribute, watched(name, getattr(owner, attribute)))
    return spent


def measure_fit(n, search):
    """Return what a fit took, after a small one that loads compiled loops."""
    warnings.simplefilter("ignore")
    views, y = three_views(n)
    options = {"random_state": 0, "neighbor_search": search}
    GraphFusionClustering(N_CLUSTERS, **options).fit([view[:12_000] for view in views])
    spent = watch_stages()
    began = time.perf_counter(), time.process_time()
    model = GraphFusionClustering(N_CLUSTERS, **options).fit(views)
    took = time.perf_counter() - began[0], time.process_time() - began[1]
    stages = {name: spent[name] for name in STAGES}
    stages["rest"] = took[0] - sum(stages.values())
    return {
        "seconds": took[0],
        "processor": took[1],
        "recall": float(model.neighbor_recall_.min()),
        "ari": float(adjusted_rand_score(y, model.labels_)),
        "stages": stages,
    }


def measure_spectral(n):
    """Return what scikit-learn's spectral clustering of the joined columns took."""
    warnings.simplefilter("ignore")
    views, y = three_views(n)
    model = SpectralClustering(N_CLUSTERS, affinity="nearest_neighbors", random_state=0, n_jobs=-1)
    began = time.perf_counter(), time.process_time()
    labels = model.fit(np.hstack(views)).labels_
    took = time.perf_counter() - began[0], time.process_time() - began[1]
    return {"seconds": took[0], "processor": took[1], "ari": float(adjusted_rand_score(y, labels))}


def within(limit, threads, call):
    """Return what a call in a process of its own left, None where it was ended at the limit."""
    code = f"from benchmarks import graph_fusion\nresult = graph_fusion.{call}\n{PEAK}"
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
    env = os.environ | dict.fromkeys(names, str(threads))
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=limit, env=env
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        print(done.stderr[-600:])
        return None
    result, peak = json.loads(done.stdout.strip().splitlines()[-1])
    return result | {"peak": peak}


def line(name, n, threads, found, limit):
    if found is None:
        return f"| {name} | {n:,} | {threads} | no end within {limit:.0f} s | | | | | |"
    recall = f"{found['recall']:.3f}" if "recall" in found else ""
    stages = ", ".join(f"{stage} {took:.1f}" for stage, took in found.get("stages", {}).items())
    return (
        f"| {name} | {n:,} | {threads} | {found['seconds']:.1f} | {found['processor']:.1f} | {found['peak']:,.0f} "
        f"| {recall} | {found['ari']:.4f} | {stages} |"
    )


def growth(options):
    """Print a row for every size and number of threads, and how fast time grows."""
    print("| | samples | threads | seconds | of processors | peak MiB | least recall | ARI | seconds by stage |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|", flush=True)
    for threads in options.threads:
        seen = []
        for n in options.sizes:
            found = within(options.limit, threads, f"measure_fit({n}, {options.search!r})")
            print(line(f"graph fusion, {options.search}", n, threads, found, options.limit), flush=True)
            if found is None:
                break  # larger ones would not end either
            seen.append((n, found["seconds"], found["processor"]))
        for n in options.sizes if options.spectral else ():
            found = within(options.limit, threads, f"measure_spectral({n})")
            print(line("scikit-learn's spectral clustering", n, threads, found, options.limit), flush=True)
            if found is None:
                break
        if len(seen) > 1:
            sizes, clock, processor = np.log(np.array(seen)).T
            exponents = [np.polyfit(sizes, values, 1)[0] for values in (clock, processor)]
            print(
                f"\n{threads} threads: time grows as n^{exponents[0]:.2f}, that of processors as n^{exponents[1]:.2f}\n"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--search", choices=["auto", "exact", "approximate"], default="auto")
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count() or 1])
    parser.add_argument("--limit", type=float, default=300.0, help="seconds after which a fit is ended")
    parser.add_argument("--spectral", action="store_true", help="scikit-learn's spectral clustering as well")
    growth(parser.parse_args())


if __name__ == "__main__":
    main()
