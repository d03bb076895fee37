"""What runs inside one checkout for compare_checkouts.py: models to fit and compare, and work to time.

The package is the one that PYTHONPATH names; this file has its own data, so that both checkouts see the same numbers.
Commands: ``describe`` prints what the estimators take, ``fit PLAN RESULTS`` fits the cases of a plan, ``names`` lists
the workloads, and ``time NAME`` runs a workload once for every line that arrives.
"""

import gc
import inspect
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.base import ClusterMixin
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.neighbors import kneighbors_graph
from sklearn.utils import get_tags

import kernelweave as kw

Views = dict[str, Any]


def groups(n: int, n_columns: int, n_groups: int, seed: int = 0) -> np.ndarray:
    """Return samples of overlapping groups. Centres follow from the shape, so that other seeds give new samples."""
    centres = 3 * np.random.default_rng(n_columns).standard_normal((n_groups, n_columns))
    rng = np.random.default_rng([n_columns, seed])
    return centres[np.arange(n) % n_groups] + 1.5 * rng.standard_normal((n, n_columns))


def rings(n: int, seed: int) -> Views:
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, 2 * np.pi, n)
    plane = np.column_stack([np.cos(angles), np.sin(angles)]) * (1 + 2 * (np.arange(n) % 2))[:, None]
    plane += 0.2 * rng.standard_normal((n, 2))
    return {"plane": plane, "radius": np.linalg.norm(plane, axis=1, keepdims=True)}


@cache
def pixels_of_digits() -> np.ndarray:
    return load_digits().data


def digits(rows: slice) -> Views:
    pixels = pixels_of_digits()[rows]
    return {"upper": pixels[:, :32], "lower": pixels[:, 32:], "columns": pixels.reshape(-1, 8, 8).sum(axis=1)}


def shares(rows: slice) -> Views:
    """Return halves of digits as values strictly between 0 and 1, which every kernel and divergence takes."""
    return {name: (view + 0.5) / 17 for name, view in digits(rows).items() if name != "columns"}


def sparse(rows: slice) -> Views:
    return {name: sp.csr_array(view) for name, view in digits(rows).items()}


#: Name: (views to fit, views of new samples, number of clusters).
DATA: dict[str, Callable[[], tuple[Views, Views, int]]] = {
    "blobs": lambda: (
        {"front": groups(120, 3, 4), "back": groups(120, 2, 4)},
        {"front": groups(40, 3, 4, seed=1), "back": groups(40, 2, 4, seed=1)},
        4,
    ),
    "rings": lambda: (rings(120, 0), rings(40, 1), 2),
    "digits": lambda: (digits(slice(0, 300)), digits(slice(300, 400)), 10),
    "shares": lambda: (shares(slice(0, 120)), shares(slice(120, 160)), 4),
    "sparse": lambda: (sparse(slice(0, 150)), sparse(slice(150, 200)), 5),
}


def joined(views: Views) -> Any:
    tables = list(views.values())
    return sp.csr_array(sp.hstack(tables)) if sp.issparse(tables[0]) else np.hstack(tables)


def similarities(A: Any, B: Any) -> np.ndarray:
    return rbf_kernel(A, B, gamma=2.0 / np.median(euclidean_distances(B, squared=True)))


def neighbours(A: Any, B: Any) -> sp.csr_array:
    graph = kneighbors_graph(B, 10)
    return sp.csr_array(graph.maximum(graph.T))


#: What becomes of a table of samples, given the table that is fitted.
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "features": lambda A, B: A,
    "positive": lambda A, B: A if sp.issparse(A) else np.maximum(A - B.min(), 0),
    "kernel": similarities,
    "graph": neighbours,
    "metric": cdist,
    "divergence": lambda A, B: cdist(A, B, "sqeuclidean"),
}


def describe() -> dict[str, Any]:
    """Return for every estimator its parameters with their options, and what it takes."""
    exported = [getattr(kw, name) for name in sorted(kw.__all__)]
    clusterers = [item for item in exported if inspect.isclass(item) and issubclass(item, ClusterMixin)]
    described = {}
    for cls in clusterers:
        tags = get_tags(cls()).input_tags
        described[cls.__name__] = {
            "options": {name: options(cls, name) for name in inspect.signature(cls).parameters},
            "weights": "sample_weight" in inspect.signature(cls.fit).parameters,
            "form": ("kernel" if tags.pairwise else "positive") if tags.positive_only else "features",
            "sparse": bool(tags.sparse),
        }
    return described


def options(cls: type, parameter: str) -> list[Any]:
    """Return the named values that a parameter may take."""
    values: list[Any] = []
    for rule in getattr(cls, "_parameter_constraints", {}).get(parameter, []):
        values += [False, True] if isinstance(rule, str) and rule == "boolean" else sorted(getattr(rule, "options", []))
    return values


def fit(case: dict[str, Any]) -> dict[str, Any]:
    """Fit one case of a plan and return what is compared; an error is a result too."""
    results: dict[str, Any] = {}
    views, new_views, n_clusters = DATA[case["data"]]()
    params = dict(case["params"])
    if "n_clusters" in params:
        params["n_clusters"] = n_clusters
    if "views" in params:
        ends = np.cumsum([view.shape[1] for view in views.values()])
        params["views"] = {name: slice(end - views[name].shape[1], end) for name, end in zip(views, ends, strict=True)}
    form = FORMS[case["form"]]
    if case["as_views"]:
        X = {name: form(view, view) for name, view in views.items()}
        new = {name: form(view, views[name]) for name, view in new_views.items()}
    else:
        X = form(joined(views), joined(views))
        new = form(joined(new_views), joined(views))
    weights = np.random.default_rng(2).integers(1, 4, next(iter(views.values())).shape[0]).astype(float)
    try:
        model = getattr(kw, case["estimator"])(**params)
        model.fit(X, **({"sample_weight": weights} if case["weights"] else {}))
        results["labels"] = model.labels_
        for attribute in ("objective_", "view_weights_"):
            if hasattr(model, attribute):
                results[attribute] = np.asarray(getattr(model, attribute), dtype=float)
        if hasattr(model, "predict"):
            results["predictions"] = model.predict(new)
    except Exception as error:  # whatever it is, it is compared and shown
        results["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return results


def three_views(n: int) -> Views:
    return {f"view {columns}": groups(n, columns, 8) for columns in (5, 8, 12)}


def grid(height: int, width: int) -> sp.csr_array:
    nodes = np.arange(height * width).reshape(height, width)
    start = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    end = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    edges = sp.coo_array((np.ones(len(start)), (start, end)), shape=(nodes.size, nodes.size)).tocsr()
    return sp.csr_array(edges + edges.T)


def fitting(estimator: str, X: Any, n_clusters: int, **params: Any) -> Callable[[], Any]:
    cls = getattr(kw, estimator)
    if "random_state" in inspect.signature(cls).parameters:
        params["random_state"] = 0
    return lambda: cls(n_clusters, **params).fit(X)


def fit_then_predict() -> Callable[[], Any]:
    X = groups(5000, 8, 6)
    train = fitting("KernelSpectralClustering", X, 6, n_train_samples=800)
    return lambda: train().predict(X)


def predict_new() -> Callable[[], Any]:
    model = fitting("KernelKMeans", groups(3000, 10, 10), 10, n_init=1)()
    new = groups(20_000, 10, 10, seed=1)
    return lambda: model.predict(new)


#: Every workload prepares its data and returns what is timed.
WORKLOADS: dict[str, Callable[[], Callable[[], Any]]] = {
    "kernel k-means, dense, 3000": lambda: fitting("KernelKMeans", groups(3000, 10, 10), 10, n_init=5),
    "kernel k-means, linear, 100000 x 20": lambda: fitting(
        "KernelKMeans", groups(100_000, 20, 10), 10, kernel="linear", n_init=1
    ),
    "kernel k-means, blockwise, 6000": lambda: fitting(
        "KernelKMeans", groups(6000, 10, 10), 10, storage="blockwise", n_init=1
    ),
    "kernel k-means, sparse graph, 10000": lambda: fitting(
        "KernelKMeans", neighbours(None, groups(10_000, 10, 10)), 10, kernel="precomputed", n_init=3
    ),
    "kernel k-means, predict 20000": predict_new,
    "global search, exact, 400": lambda: fitting("GlobalKernelKMeans", groups(400, 5, 8), 8, search="exact"),
    "global search, fast, 2000": lambda: fitting("GlobalKernelKMeans", groups(2000, 5, 10), 10, search="fast"),
    "minmax k-means, 20000 x 16": lambda: fitting("MinMaxKMeans", groups(20_000, 16, 10), 10, n_init=2),
    "minmax kernel k-means, 1500": lambda: fitting("MinMaxKernelKMeans", groups(1500, 8, 8), 8, n_init=2),
    "multi-view kernel k-means, rbf, 1500": lambda: fitting("MultiViewKernelKMeans", three_views(1500), 8),
    "multi-view kernel k-means, linear, 20000": lambda: fitting(
        "MultiViewKernelKMeans", three_views(20_000), 8, kernel="linear"
    ),
    "multi-view spectral, rbf, 2500": lambda: fitting("MultiViewSpectralClustering", three_views(2500), 8),
    "multi-view spectral, linear, 20000": lambda: fitting(
        "MultiViewSpectralClustering", three_views(20_000), 8, kernel="linear"
    ),
    "kernel spectral, 800 of 5000, and predict": fit_then_predict,
    "convex mixture, 1500": lambda: fitting("ConvexMixture", groups(1500, 5, 8), 8),
    "ratio clustering, 150": lambda: fitting("RatioMultipleKernelClustering", groups(150, 4, 2), 2),
    "graph cut, grid of 5000": lambda: fitting("GraphCut", grid(50, 100), 8),
}


def answer(reply: Any) -> None:
    print(json.dumps(reply), flush=True)


def time_on_request(name: str) -> None:
    """Answer every line of the input with the seconds of one run; the data is prepared at the first."""
    work = None
    answer("ready")
    for _ in sys.stdin:
        try:
            work = work or WORKLOADS[name]()
            gc.collect()
            clock = time.perf_counter()
            processor = time.process_time()
            work()
            answer([time.perf_counter() - clock, time.process_time() - processor])
        except Exception as error:  # shown in the table instead of a time
            answer(f"{type(error).__name__}: {' '.join(str(error).split())}")


def main(command: str, *arguments: str) -> None:
    warnings.simplefilter("ignore")
    if not Path(kw.__file__).is_relative_to(Path.cwd()):
        raise SystemExit(f"The package comes from {kw.__file__} and not from the checkout {Path.cwd()}.")
    if command == "describe":
        answer(describe())
    elif command == "fit":
        cases = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
        results = {f"{at}:{name}": value for at, case in enumerate(cases) for name, value in fit(case).items()}
        np.savez(arguments[1], **results)
    elif command == "names":
        print("\n".join(WORKLOADS))
    elif command == "time":
        time_on_request(arguments[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
