"""What the pictures share: colours, markers, sizes of type, frames, numbers along the axes, and where to draw.

Everything is set on the artists of one picture. The settings of matplotlib, which belong to the caller, are left alone.
"""

from typing import Any

import numpy as np

from kernelweave.evaluation.palette import LIGHT, MARKERS, colour_index, shape_index
from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.errors import ParameterError

#: Colours of what is no cluster: curves and bars, a choice that is marked, text, lines in the background, frames.
LINE = LIGHT[0]
SECOND_LINE = LIGHT[1]
MARK = LIGHT[5]
EDGE = "#1a1a1a"
INK = "#404040"
QUIET = "#8a8a8a"
FRAME = "#cccccc"
#: Sizes of type, in points.
TITLE_SIZE = 10.0
LABEL_SIZE = 9.0
SMALL_SIZE = 8.0
#: Width and height of a picture with one panel, and of one that shows a matrix, in inches.
SIZE = (5.8, 3.9)
MATRIX_SIZE = (5.6, 4.7)
#: From light to dark throughout: it reads the same in grey.
COLOUR_MAP = "Blues"
# Panels keep the shape of the data unless one axis is longer than the other by more than this.
LONGEST = 4.0
# Numbers along an axis; more would run into each other in a narrow panel.
MOST_TICKS = 6


def cluster_colour(c: int) -> str:
    """Return the colour of a cluster."""
    return LIGHT[colour_index(c)]


def cluster_style(c: int) -> dict[str, str]:
    """Return the colour and the marker of a cluster."""
    return {"color": cluster_colour(c), "marker": MARKERS[shape_index(c)]}


def scatter_style(options: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return how to draw samples: the caller's options, under whatever alias, and defaults for the rest."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.collections import PathCollection

    options = normalize_kwargs(options, PathCollection)
    if "c" in options:
        options["color"] = options.pop("c")
    # Markers moved to whole pixels lose their shape, and small plus signs all of it.
    return {"snap": False, **defaults, **options}


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


def marker_area(n: int) -> float:
    """Return the area of the markers of ``n`` samples, in square points: the more there are, the smaller."""
    return float(np.clip(8000.0 / max(n, 1), 8.0, 24.0))


def dress(ax: Any, *, box: bool = False, grid: str | None = None) -> None:
    """Give a panel the type and the light frame that all have, once its labels and its title are written.

    Curves and bars have lines to the left and below; planes and matrices (``box``) have them all around. ``grid`` is
    ``"x"``, ``"y"`` or ``"both"``.
    """
    ax.tick_params(length=2.5, color=QUIET, labelsize=SMALL_SIZE, labelcolor=INK)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set(size=LABEL_SIZE, color=EDGE)
        axis.get_offset_text().set(size=SMALL_SIZE, color=INK)
    ax.title.set(size=TITLE_SIZE, color=EDGE)
    ax.spines[:].set_color(FRAME)
    if not box:
        ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(True, axis=grid, color=QUIET, alpha=0.25, linewidth=0.6)
        ax.set_axisbelow(True)


def frame(ax: Any, points: Floats) -> None:
    """Dress a plane of samples: axes as long as the samples reach, and distances as they are where that is possible."""
    spans = np.ptp(points, axis=0)
    if spans.max() <= LONGEST * spans.min():
        ax.set_aspect("equal")
    ax.margins(0.06)
    dress(ax, box=True)
    numbers(ax.xaxis)
    numbers(ax.yaxis)


def numbers(axis: Any) -> None:
    """Write thousands separators along an axis, and no more numbers than there is room for."""
    from kernelweave.evaluation.plots.ticks import Separated

    axis.set_major_formatter(Separated())
    axis.get_major_locator().set_params(nbins=MOST_TICKS)


def counts(axis: Any) -> None:
    """Put the ticks of an axis at whole numbers, with thousands separators."""
    from matplotlib.ticker import MaxNLocator

    from kernelweave.evaluation.plots.ticks import Separated

    axis.set_major_locator(MaxNLocator(nbins=MOST_TICKS, integer=True, min_n_ticks=1))
    axis.set_major_formatter(Separated())


def as_percentages(axis: Any) -> None:
    """Write shares along an axis as percentages."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(xmax=1.0))


def colour_bar(ax: Any, image: Any, label: str, **options: Any) -> Any:
    """Draw a colour bar beside a matrix, as high as the matrix whatever the layout, and return it."""
    beside = ax.inset_axes((1.04, 0.0, 0.05, 1.0))
    bar = ax.figure.colorbar(image, cax=beside, **options)
    bar.set_label(label, size=LABEL_SIZE, color=EDGE)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2.5, color=QUIET, labelsize=SMALL_SIZE, labelcolor=INK)
    return bar


def new_axes(display: object, columns: int = 1, **options: Any) -> Any:
    """Return the Axes of a new figure of pyplot, one or several in a row."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{type(display).__name__} needs matplotlib to draw, and it is not installed: install kernelweave[plots]."
        ) from error
    options = {"figsize": (SIZE[0] if columns == 1 else 4.2 * columns + 0.4, SIZE[1]), **options}
    return pyplot.subplots(1, columns, layout="constrained", **options)[1]


def as_many_axes(axes: Any, count: int) -> Array:
    """Return the caller's Axes as an array, or say how many there should be."""
    panels = np.asarray(axes, dtype=object).ravel()
    if len(panels) != count:
        raise ParameterError(
            f"axes holds {len(panels)} Axes; this picture has {count}. Pass Figure().subplots(1, {count})."
        )
    return panels


def fitted_attributes(model: Any, *names: str) -> tuple[Any, ...]:
    """Return fitted attributes of a model, or say which is missing."""
    missing = [name for name in names if not hasattr(model, name)]
    if missing:
        raise ParameterError(
            f"model={type(model).__name__}(...) has no {missing[0]}. Fit it first; this picture is for models with "
            f"{', '.join(names)}."
        )
    return tuple(getattr(model, name) for name in names)
