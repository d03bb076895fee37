"""Graph cuts: time and memory on a large graph, and the cut beside spectral clustering's."""

import os

from benchmarks._harness import Row, in_fresh_process
from kernelweave.datasets import load_benchmark
from kernelweave.foundation.errors import DataError

SUITE = "graph cuts"
GRAPH = "data"
N_CLUSTERS = 64

LARGE = """
import time
from kernelweave import GraphCut
from kernelweave.datasets import load_benchmark
A = load_benchmark("finan512").graph
start = time.perf_counter()
model = GraphCut(64, search="fast").fit(A)
result = [time.perf_counter() - start, model.cut_value_]
"""

# Both in one process, one after the other; what is compared is the cut, the times are there to be read.
BESIDE = f"""
import time
from sklearn.cluster import SpectralClustering
from kernelweave import GraphCut
from kernelweave.datasets import load_benchmark
from kernelweave.metrics import normalized_cut
A, k = load_benchmark("{GRAPH}").graph, {N_CLUSTERS}
start = time.perf_counter()
labels = [SpectralClustering(k, affinity="precomputed", assign_labels=how, random_state=0).fit_predict(A)
          for how in ("kmeans", "cluster_qr")]
spectral_s = (time.perf_counter() - start) / 2
start = time.perf_counter()
ours = GraphCut(k, search="exact", random_state=0).fit(A)
ours_s = time.perf_counter() - start
theirs = min(normalized_cut(A, each) for each in labels)
alone = ours.candidate_objectives_["search"]
result = [normalized_cut(A, ours.labels_), theirs, ours_s, spectral_s, alone, ours.winner_]
"""


def run():
    return [large(), beside_spectral()]


def large():
    what = "finan512 (74,752 nodes), fast search, 64 clusters"
    promise = "under 2 minutes and 1 GB"
    if absent := missing("finan512"):
        return Row(SUITE, what, absent, promise)
    (taken, cut), peak = in_fresh_process(LARGE, env=dict(os.environ))
    note = f"{taken:.1f} s, peak {peak:.0f} MiB, normalized cut {cut:.4f}"
    return Row(SUITE, what, note, promise, taken < 120 and peak * 1.048576 < 1000)


def beside_spectral():
    what = f"{GRAPH}, {N_CLUSTERS} clusters, exact search, normalized cut beside scikit-learn's spectral clustering"
    promise = "at most 1 x"
    if absent := missing(GRAPH):
        return Row(SUITE, what, absent, promise)
    (ours, theirs, ours_s, theirs_s, alone, winner), _ = in_fresh_process(BESIDE, env=dict(os.environ))
    times = f"{ours_s:.1f} and {theirs_s:.1f} s"
    note = f"{ours / theirs:.3f} x ({ours:.2f} and {theirs:.2f}, in {times}; won by {winner}, search alone {alone:.2f})"
    return Row(SUITE, what, note, promise, ours <= theirs)


def missing(name):
    """Return why a graph is not there, or nothing."""
    try:
        load_benchmark(name)
    except DataError as reason:
        return f"not measured: {reason}"
    return ""
