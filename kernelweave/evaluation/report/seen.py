"""What a fitted model was given: its views, what it measures in each of them, its labels, and names of the samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted

from kernelweave.evaluation.metrics.checks import encode_labels
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import Views, as_views, is_multi_view, per_view, read_affinity

# Kernels under which far samples are all equally far.
LOCAL = ("nearest_neighbors", "self_tuning")
Kind = Literal["features", "kernel", "distances", "divergences", "graph"]


@dataclass(frozen=True)
class SeenView:
    """One view and how samples are compared in it: by kernels, by a metric, or by Euclidean distances."""

    name: str
    block: Matrix
    kind: Kind
    kernels: tuple[tuple[Any, Any], ...] = ()  # kernel and its parameters
    shares: Floats | None = None  # of the kernels in their sum; None for one kernel
    metric: tuple[Any, Any] | None = None  # and its parameters


@dataclass(frozen=True)
class Seen:
    """A fitted model, the data as its last step saw them, and the clusters."""

    model: Any  # the estimator itself, without the steps before it
    steps: tuple[Any, ...]  # what stands before it in a pipeline
    given: Any  # the data after these steps
    views: tuple[SeenView, ...]
    labels: Ints
    n_clusters: int
    ids: tuple[str, ...]

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.labels)

    def take(self, rows: Ints) -> Any:
        """Return samples in the form the model was given."""
        if not is_multi_view(self.given):
            return _taken(self.given, rows)
        if isinstance(self.given, list | tuple):
            return [_taken(part, rows) for part in self.given]
        return {name: _taken(part, rows) for name, part in self.given.items()}


def _taken(table: Any, rows: Ints) -> Any:
    return table.tocsr()[rows] if sp.issparse(table) else _safe_indexing(table, rows)


def look(estimator: Any, X: Any, ids: Any = None) -> Seen:
    """Return what ``estimator``, a fitted model or a pipeline or search that ends in one, was given."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    check_is_fitted(model)
    if not hasattr(model, "labels_"):
        raise ParameterError(f"estimator={type(model).__name__}(...) has no labels_; a report is about a clustering.")
    steps = tuple(step for _, step in estimator.steps[:-1]) if isinstance(estimator, Pipeline) else ()
    given = estimator[:-1].transform(X) if steps else X
    views = _seen_views(model, given)
    n = views[0].block.shape[0]
    found = np.asarray(model.labels_)
    if len(found) != n:
        raise ParameterError(
            f"X has {n} samples, but the model was fitted on {len(found)}. Pass the samples it was fitted on."
        )
    asked = getattr(model, "n_clusters", None)
    labels, k = encode_labels(found, "labels_", n_clusters=max(int(found.max()) + 1, int(asked or 1)))
    return Seen(model, steps, given, views, labels, k, read_ids(ids, X, n))


def read_ids(ids: Any, X: Any, n_samples: int) -> tuple[str, ...]:
    """Return the names of the samples: those given, those of a table's index, or numbers from 0 on."""
    if ids is None:
        ids = _index(X)
    found = range(n_samples) if ids is None else list(ids)
    if len(found) != n_samples:
        raise ParameterError(f"ids has {len(found)} entries for {n_samples} samples; give one name for each.")
    return tuple(str(name) for name in found)


def _index(X: Any) -> Any:
    """Return the row labels of a table, or of the first view that has any; None where they are plain numbers."""
    parts: Sequence[Any] = [X]
    if is_multi_view(X):
        parts = list(X.values()) if hasattr(X, "values") else list(X)
    indexed = [part.index for part in parts if hasattr(part, "iloc")]
    return indexed[0] if indexed and type(indexed[0]).__name__ != "RangeIndex" else None


def _seen_views(model: Any, given: Any) -> tuple[SeenView, ...]:
    if takes_graph(model):
        return (SeenView("graph", read_affinity(clone(model), given), "graph"),)
    one = not is_multi_view(given) and getattr(model, "views", None) is None
    if one and _is(getattr(model, "divergence", None), "precomputed"):  # may hold infinite values
        return (SeenView("X", np.asarray(given, dtype=np.float64), "divergences"),)
    if hasattr(model, "metric"):
        kind: Kind = "distances" if _is(model.metric, "precomputed") else "features"
        return (SeenView("X", as_views(given).blocks[0], kind, metric=(model.metric, model.metric_params)),)
    views = as_views(given, None if is_multi_view(given) else getattr(model, "views", None))
    order = getattr(model, "view_names_", views.names)
    views = Views(tuple(order), tuple(views[name] for name in order))
    if hasattr(model, "_specifications"):
        return _by_basis(model, views)
    measures = _measures(model, views)
    return tuple(
        SeenView(name, block, *measure)
        for name, block, measure in zip(views.names, views.blocks, measures, strict=True)
    )


def takes_graph(model: Any) -> bool:
    """Whether X is a graph."""
    return bool(get_tags(model).input_tags.pairwise) and not (hasattr(model, "kernel") or hasattr(model, "metric"))


def _measures(model: Any, views: Views) -> list[tuple[Any, ...]]:
    """Return kind, kernels, shares and metric of every view, as far as it has them.

    Kernels that know near neighbours alone make all other samples equally far: distances of their metric say more.
    """
    if not hasattr(model, "kernel"):
        return [("features", ())] * len(views)
    kernels = per_view(model.kernel, views.names, "kernel")
    params = per_view(getattr(model, "kernel_params", None), views.names, "kernel_params")
    divergences = per_view(getattr(model, "divergence", "kernel"), views.names, "divergence")
    found: list[tuple[Any, ...]] = []
    for kernel, settings, divergence in zip(kernels, params, divergences, strict=True):
        if divergence == "precomputed":
            found.append(("divergences", ()))
        elif divergence != "kernel":
            found.append(("features", ()))
        elif isinstance(kernel, str) and kernel in LOCAL:
            metric = (settings or {}).get("metric", "euclidean")
            found.append(("features", ()) if metric == "euclidean" else ("features", (), None, (metric, None)))
        else:
            found.append(("kernel" if _is(kernel, "precomputed") else "features", ((kernel, settings),)))
    return found


def _by_basis(model: Any, views: Views) -> tuple[SeenView, ...]:
    """Return the views of a model on a sum of basis kernels, with those kernels and their weights."""
    if hasattr(model, "kernel_"):  # its parameters were learned
        return (SeenView(views.names[0], views.blocks[0], "features", ((model.kernel_, None),)),)
    basis = model._specifications(views)
    found = []
    for v, (name, block) in enumerate(zip(views.names, views.blocks, strict=True)):
        own = [i for i, item in enumerate(basis) if item[1] == v]
        kernels = tuple((basis[i][2], basis[i][3]) for i in own)
        kind: Kind = "kernel" if all(_is(kernel, "precomputed") for kernel, _ in kernels) else "features"
        found.append(SeenView(name, block, kind, kernels, model.kernel_weights_[own]))
    return tuple(found)


def _is(choice: Any, name: str) -> bool:
    return isinstance(choice, str) and choice == name
