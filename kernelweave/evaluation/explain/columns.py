"""The tables that clusters are explained by: values as the person knows them, with the names of their columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from kernelweave.evaluation.describe.clustering import final_step, steps_before
from kernelweave.evaluation.describe.views import held_views, in_order_of_fit, takes_graph
from kernelweave.foundation.array_types import Ints, Matrix
from kernelweave.foundation.errors import ParameterError, ViewError
from kernelweave.foundation.sklearn_internals import get_feature_names
from kernelweave.inputs import Views, as_views, is_multi_view, split_columns


@dataclass(frozen=True, eq=False)
class NamedView:
    """A view of features: its name, its values with NaN where one is missing, and the names of its columns."""

    name: str
    block: Matrix
    columns: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class NamedTables:
    """All views of features, and where in a pipeline their values were taken."""

    views: tuple[NamedView, ...]
    taken: str  # "as passed", or "after" and the name of a step


def named_tables(estimator: Any, X: Any, feature_names: Any = None) -> NamedTables:
    """Return the tables that the clusters of a fitted estimator are explained by.

    Values are those of X as it was passed while the steps before the estimator keep columns as they are but for their
    scale; otherwise those after the last step that does not.
    """
    model = final_step(estimator)
    steps = [step for step in steps_before(estimator) if step is not None and not isinstance(step, str)]
    kept = len(steps)
    while kept and _keeps_columns(steps[kept - 1]):
        kept -= 1
    for step in steps[:kept]:
        X = step.transform(X)
    taken = f"after {type(steps[kept - 1]).__name__}" if kept else "as passed"
    if takes_graph(model):
        return NamedTables((), taken)
    received = X
    for step in steps[kept:]:
        received = step.transform(received)
    seen = held_views(model, received)
    if not any(view.kind == "features" for view in seen):
        return NamedTables((), taken)
    columns = None if is_multi_view(X) else getattr(model, "views", None)
    views = in_order_of_fit(model, as_views(X, columns, allow_nan=True))
    names = _column_names(model, X, views, steps[kept - 1] if kept else None)
    if feature_names is not None:
        names |= _given_names(feature_names, views)
    return NamedTables(
        tuple(
            NamedView(view.name, block, names[view.name])
            for view, block in zip(seen, views.blocks, strict=True)
            if view.kind == "features"
        ),
        taken,
    )


def _keeps_columns(step: Any) -> bool:
    """Whether the columns of a step are those it received, on another scale or filled in."""
    if isinstance(step, OneToOneFeatureMixin):
        return True
    try:
        return list(step.get_feature_names_out()) == list(step.feature_names_in_)
    except (AttributeError, ValueError):
        return False


def _column_names(model: Any, X: Any, views: Views, step: Any) -> dict[str, tuple[str, ...]]:
    """Return the names of the columns of every view: those of data frames, of the step before, of the fit, or x0 ..."""
    if is_multi_view(X):
        tables = list(X.items()) if isinstance(X, Mapping) else [(f"view_{i}", table) for i, table in enumerate(X)]
        known = {str(name): get_feature_names(table) for name, table in tables}
        widths = dict(zip(views.names, views.widths, strict=True))
        return {name: _texts(columns, widths[name]) for name, columns in known.items()}
    width = X.shape[1] if hasattr(X, "shape") else sum(views.widths)
    columns = get_feature_names(X)
    for source in (step, model):
        if columns is None:
            columns = _names_of(source)
    texts = np.array(_texts(columns if columns is None or len(columns) == width else None, width), dtype=object)
    places: Ints = np.arange(width)[None, :]
    divided = split_columns(places, getattr(model, "views", None), get_feature_names(X))
    return {name: tuple(texts[block[0]]) for name, block in zip(divided.names, divided.blocks, strict=True)}


def _names_of(source: Any) -> Any:
    """Return the names of the columns that come out of a step, or that a model was fitted on."""
    if hasattr(source, "get_feature_names_out") and not hasattr(source, "labels_"):
        try:
            return source.get_feature_names_out()
        except (AttributeError, ValueError):
            return None
    return getattr(source, "feature_names_in_", None)


def _texts(columns: Any, width: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(width)) if columns is None else tuple(str(name) for name in columns)


def _given_names(feature_names: Any, views: Views) -> dict[str, tuple[str, ...]]:
    """Return the names that the caller gave, checked."""
    if not isinstance(feature_names, Mapping):
        if len(views) > 1:
            raise ParameterError(
                f"feature_names must be a dict of view to names for {len(views)} views; it is a "
                f"{type(feature_names).__name__}. The views are {list(views.names)}."
            )
        feature_names = {views.names[0]: feature_names}
    unknown = sorted(str(name) for name in feature_names if str(name) not in views.names)
    if unknown and len(views) == len(feature_names) == 1:  # the name of an only view need not be known
        feature_names = {views.names[0]: next(iter(feature_names.values()))}
    elif unknown:
        raise ViewError(f"feature_names names the view {unknown[0]!r}, but the views are {list(views.names)}.")
    names = {}
    for name, width in zip(views.names, views.widths, strict=True):
        if feature_names.get(name) is not None:
            given = tuple(str(each) for each in feature_names[name])
            if len(given) != width:
                raise ParameterError(
                    f"feature_names has {len(given)} names for view {name!r}, which has {width} columns; give one each."
                )
            names[name] = given
    return names
