"""What the pictures share: colours, markers, frames, and where to draw."""

from typing import Any

import numpy as np

from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.errors import ParameterError

# Distinct for people who do not see all colours (Okabe and Ito). The numbers of colours and markers have no common
# divisor, so that a pair comes back after 56 clusters only.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#6b6b6b")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
EDGE = "#1a1a1a"
QUIET = "#8a8a8a"
# Panels keep the shape of the data unless one axis is longer than the other by more than this.
LONGEST = 4.0


def cluster_style(c: int) -> dict[str, str]:
    """Return the colour and the marker of a cluster."""
    return {"color": COLOURS[c % len(COLOURS)], "marker": MARKERS[c % len(MARKERS)]}


def scatter_style(options: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return how to draw samples: the caller's options, under whatever alias, and defaults for the rest."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.collections import PathCollection

    options = normalize_kwargs(options, PathCollection)
    if "c" in options:
        options["color"] = options.pop("c")
    return {**defaults, **options}


def line_style(options: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return the same for lines."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return {**defaults, **normalize_kwargs(options, Line2D)}


def bar_style(options: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return the same for bars."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.patches import Rectangle

    return {**defaults, **normalize_kwargs(options, Rectangle)}


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
    """Return the caller's Axes as an array, or say how many there should be."""
    panels = np.asarray(axes, dtype=object).ravel()
    if len(panels) != count:
        raise ParameterError(
            f"axes holds {len(panels)} Axes; this picture has {count}. Pass Figure().subplots(1, {count})."
        )
    return panels
