"""What the pictures share: colours, markers, sizes of type, frames, numbers along the axes, and where to draw.

Everything is set on the artists of one picture. The settings of matplotlib, which belong to the caller, are left alone.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelweave.evaluation.palette import DARK, LIGHT, MARKERS, colour_index, shape_index
from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.errors import ParameterError

#: The colour of lines and figures on the light cells of a matrix, whatever is around it.
ON_LIGHT = "#1a1a1a"
# Light from 0 to 1, weighted as an eye does, below which a ground is dark.
DARK_BELOW = 0.4


@dataclass(frozen=True)
class Shades:
    """The colours of a picture on its ground."""

    ground: str  # what is between marks
    edge: str  # text, and lines that are to be seen first
    ink: str  # numbers along axes
    quiet: str  # lines in the background
    frame: str
    unknown: str  # areas of which nothing is known
    clusters: tuple[str, ...]

    @property
    def line(self) -> str:
        """Curves and bars."""
        return self.clusters[0]

    @property
    def second_line(self) -> str:
        """Another curve."""
        return self.clusters[1]

    @property
    def mark(self) -> str:
        """A choice that is marked."""
        return self.clusters[5]


ON_WHITE = Shades("white", ON_LIGHT, "#404040", "#8a8a8a", "#cccccc", "#c4c4c4", LIGHT)
ON_BLACK = Shades("black", "#f2f2f2", "#cfcfcf", "#8f8f8f", "#5a5a5a", "#3a3a3a", DARK)


def shades_of(ax: Any) -> Shades:
    """Return the colours that are seen on the ground of a panel, light or dark as the style of the caller has it."""
    from matplotlib.colors import to_hex, to_rgba

    grounds = (to_rgba(ax.get_facecolor()), to_rgba(ax.figure.get_facecolor()))
    red, green, blue, opacity = next((each for each in grounds if each[3] > 0), (1.0, 1.0, 1.0, 1.0))
    dark = 1.0 - opacity * (1.0 - (0.2126 * red + 0.7152 * green + 0.0722 * blue)) < DARK_BELOW
    ground = to_hex((red, green, blue)) if dark else ON_WHITE.ground
    return replace(ON_BLACK, ground=ground) if dark else ON_WHITE


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


def cluster_colour(ax: Any, c: int) -> str:
    """Return the colour of a cluster in a panel."""
    return shades_of(ax).clusters[colour_index(c)]


def cluster_style(ax: Any, c: int) -> dict[str, str]:
    """Return the colour and the marker of a cluster in a panel."""
    return {"color": cluster_colour(ax, c), "marker": MARKERS[shape_index(c)]}


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
    shades = shades_of(ax)
    ax.tick_params(length=2.5, color=shades.quiet, labelsize=SMALL_SIZE, labelcolor=shades.ink)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set(size=LABEL_SIZE, color=shades.edge)
        axis.get_offset_text().set(size=SMALL_SIZE, color=shades.ink)
    ax.title.set(size=TITLE_SIZE, color=shades.edge)
    ax.spines[:].set_color(shades.frame)
    if not box:
        ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(True, axis=grid, color=shades.quiet, alpha=0.25, linewidth=0.6)
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
    shades = shades_of(ax)
    bar.set_label(label, size=LABEL_SIZE, color=shades.edge)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2.5, color=shades.quiet, labelsize=SMALL_SIZE, labelcolor=shades.ink)
    return bar


def new_axes(display: object, columns: int = 1, **options: Any) -> Any:
    """Return the Axes of a new figure of pyplot, one or several in a row."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{type(display).__name__} needs matplotlib, which is not installed: install kernelweave[plots]."
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
