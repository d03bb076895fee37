"""Peaks under ``memory_limit`` where ``memory`` does not look: wide tables, single precision, approximations, many
clusters, graphs of neighbours, absent samples, searches for exemplars, and predictions.

These are fits that exceeded the limit once, found among some 250 (November 2026). Each runs in a fresh process, after a
small fit of the same kind; what counts is explained in ``memory``. Where a fit is refused, as many samples are fitted
as the refusal says would fit.

``python -m benchmarks.memory_options`` prints the rows as they come; names of estimators choose among them.
"""

import argparse
import contextlib
import gc
import re
import subprocess
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import kernelweave
from benchmarks._harness import Row, in_fresh_process
from benchmarks.memory import SLACK, _matrix, _reset_peak, _status, _warm_up_linear_algebra
from kernelweave.foundation.errors import DataError, KernelError, ParameterError

SUITE = "memory_limit, options"
WARM_UP = 240  # samples
LONGEST = 40  # seconds of a case
COMMON = {"n_init": 1, "max_iter": 3, "random_state": 0}
NEIGHBORS = {"kernel": "nearest_neighbors"}
BY_INDEX = NEIGHBORS | {"kernel_params": {"neighbor_search": "approximate"}}
EXEMPLARS = {"search": "exemplars"}
CODE = """
import sys, json
from benchmarks.memory_options import measured_here
result = measured_here(*map(int, sys.argv[1:]))
"""
NAMED = re.compile(r"([\d,]+) (?:samples )?would fit")


@dataclass(frozen=True)
class Case:
    """One fit, and what is asked of the model afterwards."""

    estimator: str
    n: int
    widths: tuple[int, ...]  # of the views; one for a single table
    limit: float
    params: dict[str, Any]
    kind: str = "table"  # or "kernel", "distances"
    marks: tuple[str, ...] = ()  # "float32", "absent", "holes", "sparse", "positive", "binary"
    calls: tuple[str, ...] = field(default=())

    @property
    def title(self):
        values = ", ".join(f"{key}={value!r}" for key, value in self.params.items())
        shape = " and ".join(f"{self.n:,} x {d if self.kind == 'table' else self.n}" for d in self.widths)
        return f"{self.estimator}({values}), {', '.join([self.kind, shape, *self.marks])}, limit {self.limit:g}"


def nystroem(count):
    return {"approximation": "nystroem", "n_components": count}


def features(count):
    return {"approximation": "random_features", "n_components": count}


CASES = (
    Case("KernelKMeans", 5000, (20,), 64, NEIGHBORS | {"n_clusters": 10}, calls=("predict", "transform")),
    Case("KernelKMeans", 8000, (1000,), 64, {"n_clusters": 10}),
    Case("KernelKMeans", 8000, (1000,), 64, {"n_clusters": 10}, marks=("float32",)),
    Case("KernelKMeans", 8000, (1000,), 64, {"n_clusters": 10, "kernel": "cosine"}, marks=("float32",)),
    Case("KernelKMeans", 8000, (1000,), 64, NEIGHBORS | {"n_clusters": 10}, marks=("sparse",)),
    Case("KernelKMeans", 40_000, (200,), 40, BY_INDEX | {"n_clusters": 5}),
    Case("KernelKMeans", 20_000, (10,), 64, nystroem(200) | {"n_clusters": 10}),
    Case("KernelKMeans", 20_000, (10,), 64, nystroem(1000) | {"n_clusters": 10}),
    Case("KernelKMeans", 20_000, (10,), 64, features(1000) | {"n_clusters": 10}),
    Case("KernelKMeans", 20_000, (10,), 400, nystroem(1000) | {"n_clusters": 10}, calls=("predict", "transform")),
    Case("KernelKMeans", 5000, (20,), 64, {"n_clusters": "auto"}),
    Case("KernelKMeans", 7000, (20,), 400, {"n_clusters": "auto"}),
    Case("KernelKMeans", 8000, (500,), 64, {"n_clusters": 5, "kernel": "intensity_histogram"}, marks=("positive",)),
    Case("KernelKMeans", 8000, (500,), 64, {"n_clusters": 5, "kernel": "self_tuning"}),
    Case(
        "KernelKMeans",
        8000,
        (20,),
        64,
        {"n_clusters": 5, "kernel": "self_tuning", "kernel_params": {"metric": "cosine"}},
    ),
    Case("KernelKMeans", 15_000, (20,), 64, NEIGHBORS | {"n_clusters": 5, "kernel_params": {"n_neighbors": 200}}),
    Case("KernelKMeans", 8000, (20,), 64, NEIGHBORS | {"n_clusters": 5, "kernel_params": {"metric": "cosine"}}),
    Case("MinMaxKernelKMeans", 20_000, (10,), 64, nystroem(500) | {"n_clusters": 10}),
    Case("GlobalKernelKMeans", 10_000, (4,), 64, NEIGHBORS | EXEMPLARS | {"n_clusters": 5}),
    Case("GlobalKernelKMeans", 2890, (10,), 64, EXEMPLARS | {"n_clusters": 10}),
    Case(
        "MultiViewKernelKMeans",
        8000,
        (10, 10),
        64,
        {"n_clusters": 5, "missing": "knn", "init": "random"},
        marks=("holes",),
    ),
    Case("MultiViewKernelKMeans", 5000, (10, 10), 100, {"n_clusters": 3, "init": "global_exemplars"}),
    Case("MultiViewKernelKMeans", 8000, (10, 10), 64, {"n_clusters": 10, "init": "k-means++"}, marks=("absent",)),
    Case("MultiViewKernelKMeans", 8000, (10, 10), 64, {"n_clusters": 10, "init": "graph"}, marks=("absent",)),
    Case(
        "MultiViewKernelKMeans", 5000, (10, 10), 200, {"n_clusters": 10, "init": "global_exemplars"}, marks=("absent",)
    ),
    Case("MultiViewKernelKMeans", 5000, (1000, 1000), 64, {"n_clusters": 10, "init": "k-means++"}),
    Case("MultiViewKernelKMeans", 5000, (1000, 1000), 64, {"n_clusters": 10, "init": "k-means++"}, marks=("float32",)),
    Case("MultiViewKernelKMeans", 5000, (1000, 1000), 64, {"n_clusters": 10, "init": "k-means++", "kernel": "linear"}),
    Case(
        "MultiViewKernelKMeans",
        5000,
        (1000, 1000),
        64,
        {"n_clusters": 10, "init": "k-means++", "kernel": "linear"},
        marks=("float32", "absent"),
    ),
    Case("MultiViewKernelKMeans", 15_000, (10, 10), 64, nystroem(400) | {"n_clusters": 10, "init": "k-means++"}),
    Case("MultiViewKernelKMeans", 15_000, (10, 10), 200, features(400) | {"n_clusters": 10}),
    Case("MultiViewKernelKMeans", 4000, (4, 4, 4), 64, {"n_clusters": 50}, kind="kernel", marks=("float32",)),
    Case("MultiViewKernelKMeans", 4000, (4, 4), 64, {"n_clusters": 10}, kind="kernel", marks=("absent",)),
    Case("MultiViewSpectralClustering", 9000, (10, 10), 64, {"n_clusters": 50}),
    Case("MultiViewSpectralClustering", 5000, (10, 10), 400, {"n_clusters": 10}, marks=("absent",)),
    Case("MultiViewSpectralClustering", 4000, (4, 4), 64, {"n_clusters": 10}, kind="kernel", marks=("absent",)),
    Case("MultiViewSpectralClustering", 15_000, (10, 10), 100, nystroem(300) | {"n_clusters": 10}),
    Case("MultiViewSpectralClustering", 12_000, (10, 10), 100, NEIGHBORS | {"n_clusters": 50}),
    Case("MultiViewSpectralClustering", 30_000, (30, 30, 30), 100, NEIGHBORS | {"n_clusters": 5}),
    Case("MultiViewSpectralClustering", 5000, (1000, 1000), 64, {"n_clusters": 10}, marks=("float32",)),
    Case("MultiViewSpectralClustering", 5000, (1000, 1000), 64, {"n_clusters": 10, "kernel": "linear"}),
    Case("ConvexMixture", 7000, (10,), 400, {"n_clusters": 10}, calls=("predict", "predict_proba")),
    Case("ConvexMixture", 6000, (300,), 64, {"divergence": "bernoulli", "smoothing": 0.1}, marks=("binary",)),
    Case("ConvexMixture", 5000, (4,), 200, {"divergence": "precomputed"}, kind="distances", marks=("float32",)),
    Case("ConvexMixture", 5000, (1000,), 64, {}, marks=("float32",)),
    Case("ConvexMixture", 12_000, (4,), 64, NEIGHBORS | {"divergence": "kernel"}),
    Case("ConvexMixture", 20_000, (10,), 64, {"n_clusters": 50}, calls=("predict_proba",)),
    Case("KernelSpectralClustering", 9000, (10,), 64, {"n_clusters": 50}),
    Case(
        "KernelSpectralClustering",
        20_000,
        (10,),
        64,
        {"n_clusters": 10, "n_train_samples": 2500, "selection": "entropy"},
    ),
    Case("KernelSpectralClustering", 5000, (4,), 64, {"n_clusters": 10, "n_train_samples": 2800}, kind="kernel"),
    Case("KernelSpectralClustering", 8000, (1000,), 64, {"n_clusters": 10}, marks=("float32",)),
    Case(
        "MultiViewKernelSpectralClustering",
        8000,
        (1000, 1000),
        64,
        {"n_clusters": 10, "n_train_samples": 1000},
        marks=("float32",),
    ),
    Case("CoRegularizedSpectralClustering", 10_000, (10, 10), 100, NEIGHBORS | {"n_clusters": 50}),
    Case("CoTrainedSpectralClustering", 4000, (4, 4), 64, {"n_clusters": 10}, kind="kernel", marks=("float32",)),
    Case(
        "CorrelationalSpectralClustering",
        5000,
        (1000, 1000),
        64,
        {"n_clusters": 10, "kernel": "linear"},
        marks=("float32",),
    ),
    Case("KMedoids", 5000, (4,), 64, {"n_clusters": 10, "init": "build"}, kind="distances", marks=("float32",)),
    Case("NgSpectralClustering", 9000, (10,), 64, {"n_clusters": 50}),
    Case("NgSpectralClustering", 20_000, (10,), 64, NEIGHBORS | {"n_clusters": 50}),
    Case("NgSpectralClustering", 7000, (1000,), 64, {"n_clusters": 10}, marks=("float32",)),
    Case("GraphFusionClustering", 8000, (10, 10), 100, {"n_clusters": 5, "missing": "knn"}, marks=("holes",)),
    Case("GraphFusionClustering", 6000, (1000, 1000), 64, {"n_clusters": 10}),
    Case(
        "GraphFusionClustering",
        8000,
        (1000, 1000),
        200,
        {"n_clusters": 5, "n_neighbors": 5, "neighbor_search": "approximate"},
    ),
    Case("GraphFusionClustering", 1858, (10, 10), 64, {"n_clusters": 50}),
    Case("GraphFusionClustering", 20_000, (10, 10), 400, {"n_clusters": 10}),
)


def settings(case):
    """Return the arguments of a fit."""
    cls = getattr(kernelweave, case.estimator)
    known = cls().get_params() if "n_clusters" not in case.params else cls(case.params["n_clusters"]).get_params()
    chosen = {key: value for key, value in COMMON.items() if key in known} | case.params
    if case.kind != "table" and "divergence" not in case.params:
        chosen["metric" if case.estimator == "KMedoids" else "kernel"] = "precomputed"
    return chosen


def block(case, n, width, seed):
    """Return one view of a case, with as few copies on the way as can be."""
    dtype = np.float32 if "float32" in case.marks else np.float64
    rng = np.random.default_rng(seed)
    if case.kind != "table":
        return _matrix(n, seed, case.kind == "distances").astype(dtype, copy=False)
    if "sparse" in case.marks:
        return sp.random_array((n, width), density=0.05, format="csr", rng=rng, dtype=np.float64)
    X = np.empty((n, width), dtype=dtype)
    for start in range(0, n, 2000):
        part = rng.standard_normal(X[start : start + 2000].shape)
        part[np.arange(len(part)), np.arange(len(part)) % min(3, width)] += 6.0
        if "positive" in case.marks:
            part = np.abs(part) + 0.01
        if "binary" in case.marks:
            part = part > 0.0
        X[start : start + 2000] = part
    return X


def inputs(case, n):
    blocks = [block(case, n, width, seed) for seed, width in enumerate(case.widths)]
    for v, X in enumerate(blocks):
        if "absent" in case.marks:
            gone = np.arange(n) % (10 * len(blocks)) == v
            X[gone] = np.nan
            if case.kind == "kernel":
                X[:, gone] = np.nan
        if "holes" in case.marks:
            X[np.arange(n), np.arange(n) % X.shape[1]] = np.nan
    return blocks if len(blocks) > 1 else blocks[0]


def _mib(X):
    if isinstance(X, list):
        return sum(map(_mib, X))
    parts = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
    return sum(part.nbytes for part in parts) / 2**20


def measured_here(position, n):
    """Return inputs, peak and outcome of one case with n samples, in this process; MiB above what it held before."""
    case = replace(CASES[position], n=n)
    warnings.simplefilter("ignore")
    cls = getattr(kernelweave, case.estimator)
    _warm_up_linear_algebra()
    stored = settings(case)
    computed = stored | ({"storage": "blockwise"} if "storage" in cls(**stored).get_params() else {})
    for chosen, limit in ((stored, 1024), (computed, 1024), (stored, 1e-2)):
        with contextlib.suppress(ValueError):
            small = inputs(case, WARM_UP)
            model = cls(**chosen, memory_limit=limit).fit(small)
            for call in case.calls:
                getattr(model, call)(small)
    small = None
    model = None
    gc.freeze()
    _reset_peak()
    before = _status("VmRSS")
    X = inputs(case, case.n)
    _reset_peak()
    model = cls(**settings(case), memory_limit=case.limit)
    try:
        model.fit(X)
        for call in case.calls:
            getattr(model, call)(X)
        outcome = "fit"
    except (DataError, KernelError, ParameterError) as refusal:
        outcome = f"refused: {refusal}"
    return {"inputs": _mib(X), "peak": _status("VmHWM") - before, "outcome": outcome}


def measured(position):
    """Yield the row of one case and, where it was refused, that of the samples which the refusal names.

    A fit that takes longer than it may is not judged.
    """
    case = CASES[position]
    while case is not None:
        try:
            found, _ = in_fresh_process(CODE, argv=(str(position), str(case.n)), timeout=LONGEST)
        except subprocess.TimeoutExpired:
            yield Row(SUITE, case.title, f"no end within {LONGEST} s", "", None)
            return
        allowed = (found["inputs"] + case.limit) * (1 + SLACK)
        text = f"{found['outcome'].split(':')[0]}, peak {found['peak']:.1f} MiB"
        yield Row(SUITE, case.title, text, f"at most {allowed:.1f} MiB", bool(found["peak"] <= allowed))
        named = NAMED.search(found["outcome"])
        fewer = 0 if named is None else int(named.group(1).replace(",", ""))
        case = replace(case, n=fewer) if 0 < fewer < case.n else None


def run():
    return [row for position in range(len(CASES)) for row in measured(position)]


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory_options", description=__doc__)
    parser.add_argument("estimators", nargs="*", help="all by default")
    chosen = parser.parse_args().estimators
    for position, case in enumerate(CASES):
        if not chosen or case.estimator in chosen:
            for row in measured(position):
                print(f"{row.verdict:6s} {row.result}, {row.promise}: {row.what}", flush=True)


if __name__ == "__main__":
    main()
