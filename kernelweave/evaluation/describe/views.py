"""What every view of the samples holds, and how a model compares samples in it.

What a view holds follows from the parameters that say it is given ("precomputed"), and is the same before and after a
fit. How a model compares samples follows from its kernels or its metric as well.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from kernelweave.estimators.margin.basis_kernels import basis_choices
from kernelweave.estimators.margin.ratio_clustering import RatioMultipleKernelClustering
from kernelweave.foundation.array_types import Bools, Floats, Ints, Matrix
from kernelweave.inputs import Views, is_multi_view, per_view, read_affinity, takes_missing_cells, views_as_seen
from kernelweave.kernels.spec.fitting import kernel_with_gaps

Kind = Literal["features", "kernel", "distances", "divergences", "graph"]
#: Kernels under which far samples are all equally far: distances of their metric say more.
LOCAL_KERNELS = ("nearest_neighbors", "self_tuning")
EUCLIDEAN = ("euclidean", "l2")


@dataclass(frozen=True)
class Measure:
    """How a model compares the samples of a view: by kernels, by a metric, or, without either, as they are given."""

    kernels: tuple[tuple[Any, Any], ...] = ()  # kernel and its parameters
    shares: Floats | None = None  # of the kernels in their sum; None for one kernel
    metric: tuple[Any, Any] | None = None  # and its parameters


AS_GIVEN = Measure()


@dataclass(frozen=True)
class View:
    """One view: its name, its samples, what it holds, and how a model compares samples in it."""

    name: str
    block: Matrix
    kind: Kind
    measure: Measure = AS_GIVEN
    observed: Bools | None = None  # (n,) which samples it has; None: all

    @property
    def n_absent(self) -> int:
        """Number of samples that it lacks."""
        return 0 if self.observed is None else int((~self.observed).sum())

    def present(self, rows: Ints) -> Ints:
        """Return the positions among ``rows`` of the samples that the view has."""
        return np.arange(len(rows)) if self.observed is None else np.flatnonzero(self.observed[rows])

    @property
    def compared_by(self) -> Literal["kernel", "metric", "features"]:
        """What decides distances in this view."""
        if self.kind == "kernel" or self.measure.kernels:
            return "kernel"
        return "metric" if self.kind == "distances" or self.measure.metric is not None else "features"

    @property
    def measured_as_given(self) -> bool:
        """Whether the model's distances are those between the samples as they are."""
        if self.kind == "graph" or len(self.measure.kernels) > 1:
            return False
        if self.measure.metric is not None:
            metric, params = self.measure.metric
            return isinstance(metric, str) and metric in EUCLIDEAN and not params
        return all(
            is_text(kernel, "precomputed") or _is_linear(kernel, params) for kernel, params in self.measure.kernels
        )


def is_text(choice: Any, text: str) -> bool:
    """Whether a parameter is this text; arrays and functions are not."""
    return isinstance(choice, str) and choice == text


def _is_linear(kernel: Any, params: Any) -> bool:
    return is_text(kernel, "linear") and not params


def takes_graph(model: Any) -> bool:
    """Whether X is a graph."""
    is_kernel = hasattr(model, "kernel") or hasattr(model, "metric") or is_text(_types_of(model), "kernel")
    return bool(get_tags(model).input_tags.pairwise) and not is_kernel


def _types_of(model: Any) -> Any:
    """Return what a model was told that its views are."""
    return getattr(model, "view_types", None)


def given_views(model: Any, X: Any) -> tuple[View, ...]:
    """Return the views of X and what each holds, by the parameters of a model, fitted or not."""
    views = held_views(model, X)
    alone = len(views) == 1 and views[0].kind in ("graph", "divergences")
    return views if alone else _with_compared_cells(model, list(views))


def held_views(model: Any, X: Any) -> tuple[View, ...]:
    """Return the same, with features also where a kernel compares samples without their missing cells."""
    if takes_graph(model):
        return (View("graph", read_affinity(clone(model), X), "graph"),)
    columns = getattr(model, "views", None)
    several = is_multi_view(X)
    if not several and columns is None and is_text(getattr(model, "divergence", None), "precomputed"):
        # divergences may be infinite, which no other table may be
        return (View("X", np.asarray(X, dtype=np.float64), "divergences"),)
    views = in_order_of_fit(model, views_as_seen(model, X, None if several else columns))
    kinds = _kinds(model, views)
    observed = [None] * len(views) if views.observed is None else list(views.observed.T)
    given = zip(views.names, views.blocks, kinds, observed, strict=True)
    return tuple(View(name, block, kind, observed=there) for name, block, kind, there in given)


def _with_compared_cells(model: Any, views: list[View]) -> tuple[View, ...]:
    """Return the views, those with missing cells as the kernel that compares samples without them."""
    kernel = getattr(model, "kernel", None)
    if isinstance(kernel, list | tuple) and len(kernel) != len(views):  # several kernels of one view
        return tuple(views)
    names = [view.name for view in views]
    kernels = per_view(kernel, names, "kernel")
    if not any(map(takes_missing_cells, kernels)):
        return tuple(views)
    params = per_view(getattr(model, "kernel_params", None), names, "kernel_params")
    return tuple(map(_with_kernel, views, kernels, params))


def _with_kernel(view: View, kernel: Any, params: Any) -> View:
    there = view.present(np.arange(view.block.shape[0]))
    if not takes_missing_cells(kernel) or not np.isnan(view.block[there]).any():
        return view
    return replace(view, block=kernel_with_gaps(view.block, there, kernel, params), kind="kernel")


def in_order_of_fit(model: Any, views: Views) -> Views:
    """Return the views in the order of the fit, where they have the names of it."""
    order = getattr(model, "view_names_", views.names)
    if set(order) != set(views.names):
        return views
    places = [views.names.index(name) for name in order]
    observed = None if views.observed is None else views.observed[:, places]
    return Views(tuple(order), tuple(views.blocks[place] for place in places), observed)


def _kinds(model: Any, views: Views) -> list[Kind]:
    if _types_of(model) is not None:
        types = per_view(_types_of(model), views.names, "view_types")
        return ["kernel" if is_text(each, "kernel") else "features" for each in types]
    names = ("divergence", "metric", "kernel")
    settings = [_setting_of_views(getattr(model, name, None), views, name) for name in names]
    return [_kind(*each) for each in zip(*settings, strict=True)]


def _setting_of_views(setting: Any, views: Views, parameter: str) -> list[Any]:
    if len(views) == 1 and isinstance(setting, list | tuple) and len(setting) != 1:  # several kernels of one view
        return ["precomputed" if setting and all(is_text(each, "precomputed") for each in setting) else None]
    return per_view(setting, views.names, parameter)


def _kind(divergence: Any, metric: Any, kernel: Any) -> Kind:
    if is_text(divergence, "precomputed"):
        return "divergences"
    if is_text(metric, "precomputed"):
        return "distances"
    uses_kernel = divergence is None or is_text(divergence, "kernel")
    return "kernel" if uses_kernel and is_text(kernel, "precomputed") else "features"


def measured_views(model: Any, X: Any) -> tuple[View, ...]:
    """Return the views of X with what a fitted model measures in each of them."""
    views = given_views(model, X)
    if views[0].kind == "graph":
        return views
    if hasattr(model, "metric"):
        return tuple(replace(view, measure=_by_metric(model, view)) for view in views)
    if isinstance(model, RatioMultipleKernelClustering):
        return _by_basis_kernels(model, views)
    if not hasattr(model, "kernel"):
        return views
    names = [view.name for view in views]
    kernels = per_view(model.kernel, names, "kernel")
    params = per_view(getattr(model, "kernel_params", None), names, "kernel_params")
    divergences = per_view(getattr(model, "divergence", "kernel"), names, "divergence")
    settings = zip(views, kernels, params, divergences, strict=True)
    return tuple(replace(setting[0], measure=_by_kernel(*setting)) for setting in settings)


def _by_metric(model: Any, view: View) -> Measure:
    if view.kind == "distances":
        return AS_GIVEN
    return Measure(metric=(model.metric, getattr(model, "metric_params", None)))


def _by_kernel(view: View, kernel: Any, params: Any, divergence: Any) -> Measure:
    if not is_text(divergence, "kernel"):
        return AS_GIVEN
    if view.kind == "kernel":
        return Measure(kernels=(("precomputed", None),))
    if isinstance(kernel, str) and kernel in LOCAL_KERNELS:
        metric = (params or {}).get("metric", "euclidean")
        return AS_GIVEN if is_text(metric, "euclidean") else Measure(metric=(metric, None))
    return Measure(kernels=((kernel, params),))


def _by_basis_kernels(model: Any, views: tuple[View, ...]) -> tuple[View, ...]:
    """Return the views of a model on a sum of basis kernels, with those kernels and their weights."""
    if hasattr(model, "kernel_"):  # its parameters were learned
        return (replace(views[0], measure=Measure(kernels=((model.kernel_, None),))),)
    table = Views(tuple(view.name for view in views), tuple(view.block for view in views))
    choices = basis_choices(table, model.kernel, model.kernel_params)
    measured = []
    for v, view in enumerate(views):
        numbers = [i for i, choice in enumerate(choices) if choice.view == v]
        kernels = tuple((choices[i].kernel, choices[i].params) for i in numbers)
        measured.append(replace(view, measure=Measure(kernels, model.kernel_weights_[numbers])))
    return tuple(measured)
