"""What the pictures share: the model at the end of a pipeline, colours, markers, frames, and where to draw."""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelweave.evaluation.model_selection.criteria import last_step
from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.errors import ParameterError

# Told apart by people who do not see all colours (Okabe and Ito). The numbers of colours and markers have no common
# divisor, so that a pair comes back after 56 clusters only.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#6b6b6b")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
EDGE = "#1a1a1a"
QUIET = "#8a8a8a"
# Panels keep the shape of the data unless one axis is longer than the other by more than this.
LONGEST = 4.0


def last_of(estimator: Any) -> Any:
    """Return the estimator that clusters: the one given, or the last step of a pipeline, or of the best of a search."""
    return last_step(getattr(estimator, "best_estimator_", estimator))


def seen_by_last(estimator: Any, X: Any) -> Any:
    """Return samples as the last step of a fitted pipeline sees them; without a pipeline, as they are."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    if X is None or not isinstance(estimator, Pipeline) or len(estimator.steps) == 1:
        return X
    return estimator[:-1].transform(X)


def cluster_look(c: int) -> dict[str, str]:
    """Return the colour and the marker of a cluster."""
    return {"color": COLOURS[c % len(COLOURS)], "marker": MARKERS[c % len(MARKERS)]}


def scatter_style(given: dict[str, Any], **ours: Any) -> dict[str, Any]:
    """Return how to draw samples: ours where the caller says nothing, under whatever alias."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.collections import PathCollection

    given = normalize_kwargs(given, PathCollection)
    if "c" in given:
        given["color"] = given.pop("c")
    return {**ours, **given}


def frame(ax: Any, points: Floats) -> None:
    """Draw a light frame, and distances as they are where that leaves a picture."""
    spans = np.ptp(points, axis=0)
    if spans.max() <= LONGEST * spans.min():
        ax.set_aspect("equal")
    ax.margins(0.06)
    ax.tick_params(length=2, color=QUIET, labelsize=8, labelcolor="#555555")
    ax.spines[:].set_color("#cccccc")


def new_axes(display: object, columns: int = 1, **options: Any) -> Any:
    """Return the Axes of a new figure of pyplot, one or several in a row."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{type(display).__name__} needs matplotlib to draw, and it is not installed: install kernelweave[plots]."
        ) from error
    return pyplot.subplots(1, columns, layout="constrained", **options)[1]


def as_many_axes(axes: Any, count: int) -> Array:
    """Return the Axes the caller gave as an array, or say how many there should be."""
    found = np.asarray(axes, dtype=object).ravel()
    if len(found) != count:
        raise ParameterError(
            f"axes holds {len(found)} Axes; this picture has {count}. Pass Figure().subplots(1, {count})."
        )
    return found
