"""Tables in blocks: Parquet files on the workers of a cluster, and a file larger than memory in one process.

``python -m benchmarks.blocks workers`` clusters views from Parquet on 1 and 2 worker processes, ``python -m
benchmarks.blocks file`` a mapped file in one. Both print seconds, memory, and what travels; sizes are arguments. Files
are made in ``--folder`` and stay there.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

SUITE = "tables in blocks"
WIDTH = 20
ROWS_PER_FILE = 250_000
K = 10


def make_parquet(folder, n, n_views, seed=0):
    """Write views as Parquet, one folder each: float32, ten clusters, ``ROWS_PER_FILE`` rows a file."""
    import pandas as pd

    centres = np.random.default_rng(seed).standard_normal((n_views, K, WIDTH)).astype(np.float32)
    for start in range(0, n, ROWS_PER_FILE):
        rng = np.random.default_rng([seed, start])
        rows = min(ROWS_PER_FILE, n - start)
        classes = rng.integers(K, size=rows)
        for v in range(n_views):
            path = folder / f"view{v}" / f"part-{start // ROWS_PER_FILE:05d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            table = centres[v, classes] + 4.0 * rng.standard_normal((rows, WIDTH), dtype=np.float32)
            pd.DataFrame(table, columns=[f"x{j}" for j in range(WIDTH)]).to_parquet(path, index=False)


class Watch:
    """The largest resident set of some processes, looked at every tenth of a second."""

    def __init__(self, pids):
        self.peak = dict.fromkeys(pids, 0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self):
        while not self._stop.wait(0.1):
            for pid in self.peak:
                with suppress(psutil.Error):  # it ended
                    self.peak[pid] = max(self.peak[pid], psutil.Process(pid).memory_info().rss)

    def close(self):
        self._stop.set()
        self._thread.join()
        return max(self.peak.values()) / 2**20


def on_workers(folder, n, n_views, workers, memory_limit, method="kernelweave"):
    """Fit on a fresh cluster; return seconds, the largest resident set of a worker in MiB, and what travelled."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import kernelweave as kw

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        views = {f"view{v}": dd.read_parquet(folder / f"view{v}") for v in range(n_views)}
        before = max(client.run(lambda: psutil.Process().memory_info().rss).values()) / 2**20
        watch = Watch(client.run(os.getpid).values())
        began = time.perf_counter()
        if method == "kernelweave":
            model = kw.MultiViewKernelKMeans(K, kernel="linear", random_state=0, memory_limit=memory_limit)
            model.fit(views)
            told = model.communication_ | {"steps": model.n_iter_, "inertia": model.inertia_}
            labels = model.labels_
        else:
            labels, told = peer(method, views)
        seconds = time.perf_counter() - began
    return seconds, watch.close(), before, told, labels


def peer(method, views):
    """Cluster the views side by side with dask-ml; return labels and what is known of the run."""
    import dask.array as da
    from dask_ml import cluster

    X = da.concatenate([view.to_dask_array(lengths=True) for view in views.values()], axis=1)
    X = X.rechunk({1: -1}).persist()
    if method == "KMeans":
        model = cluster.KMeans(K, random_state=0, init="k-means||", max_iter=20).fit(X)
        return model.labels_.compute(), {"steps": model.n_iter_, "inertia": model.inertia_}
    gamma = 1.0 / (X.shape[1] * float(X.var().compute()))
    model = cluster.SpectralClustering(K, random_state=0, gamma=gamma, n_components=100, persist_embedding=True).fit(X)
    labels = model.assign_labels_.labels_
    return labels.compute() if hasattr(labels, "compute") else labels, {}


def workers_report(options):
    folder = options.folder / f"parquet-{options.n}-{options.views}"
    if not folder.exists():
        make_parquet(folder, options.n, options.views)
    truth = np.concatenate(
        [
            np.random.default_rng([0, start]).integers(K, size=min(ROWS_PER_FILE, options.n - start))
            for start in range(0, options.n, ROWS_PER_FILE)
        ]
    )
    from sklearn.metrics import adjusted_rand_score

    some = np.random.default_rng(0).choice(options.n, min(options.n, 200_000), replace=False)
    known = None
    print(f"{options.n:,} samples, {options.views} views of {WIDTH} columns, float32 Parquet, k = {K}")
    runs = [("kernelweave", count) for count in options.workers]
    runs += [(name, max(options.workers)) for name in options.peer]
    for method, count in runs:
        try:
            seconds, peak, before, told, labels = on_workers(
                folder, options.n, options.views, count, options.memory_limit, method
            )
        except Exception as error:
            if method == "kernelweave":
                raise
            print(f"dask-ml {method}, views side by side: {type(error).__name__}: {error}", flush=True)
            continue
        same = "" if known is None or method != "kernelweave" else f", labels equal: {np.array_equal(known, labels)}"
        known = labels if method == "kernelweave" else known
        agreement = adjusted_rand_score(truth[some], labels[some])
        name = method if method == "kernelweave" else f"dask-ml {method}, views side by side"
        print(f"{name}, {count} workers: {seconds:.1f} s, peak {peak:.0f} MiB a worker ({before:.0f} before), ", end="")
        print(f"adjusted Rand index {agreement:.3f}, {told}{same}", flush=True)


def fit_file(path, n, width, memory_limit, max_iter):
    """Cluster a mapped file in this process and print seconds and the largest resident set."""
    import kernelweave as kw

    X = np.memmap(path, dtype=np.float32, mode="r", shape=(n, width))
    watch = Watch([os.getpid()])
    began = time.perf_counter()
    options = {"kernel": "linear", "n_init": 1, "max_iter": max_iter, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kw.ConvergenceWarning)
        model = kw.KernelKMeans(K, memory_limit=memory_limit, **options).fit(X)
    seconds = time.perf_counter() - began
    print(f"{n * width * 4 / 2**30:.1f} GiB: {seconds:.0f} s, peak {watch.close():.0f} MiB, ", end="")
    print(f"{model.n_iter_} steps, {model.communication_['rounds']} rounds, {len(np.unique(model.labels_))} clusters")


def file_report(options):
    width = options.width
    n = int(options.gib * 2**30 / 4 / width)
    path = options.folder / f"features-{options.gib:g}-{width}.f32"
    if not path.exists():
        options.folder.mkdir(parents=True, exist_ok=True)
        centres = np.random.default_rng(0).standard_normal((K, width)).astype(np.float32)
        with open(path, "wb") as file:
            for start in range(0, n, ROWS_PER_FILE):
                rng = np.random.default_rng([0, start])
                rows = min(ROWS_PER_FILE, n - start)
                noise = rng.standard_normal((rows, width), dtype=np.float32)
                (centres[rng.integers(K, size=rows)] + 4.0 * noise).tofile(file)
    limits = f"{options.memory_limit}, {options.max_iter}"
    code = f"from benchmarks.blocks import fit_file; fit_file({str(path)!r}, {n}, {width}, {limits})"
    subprocess.run([sys.executable, "-c", code], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["workers", "file"])
    parser.add_argument("--folder", type=Path, default=Path("blocks-benchmark"))
    parser.add_argument("--n", type=int, default=5_000_000)
    parser.add_argument("--views", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--memory-limit", type=float, default=1024.0)
    parser.add_argument("--gib", type=float, default=20.0)
    parser.add_argument("--width", type=int, default=768, help="columns of the file")
    parser.add_argument("--max-iter", type=int, default=300, help="steps on a file, each of which reads it")
    parser.add_argument("--peer", nargs="*", default=[], choices=["KMeans", "SpectralClustering"], help="of dask-ml")
    options = parser.parse_args()
    (workers_report if options.what == "workers" else file_report)(options)


if __name__ == "__main__":
    main()
