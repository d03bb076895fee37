"""Words in a picture: legends beside the data, names on the data that do not cover each other, long names cut short."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelweave.evaluation.plots.style import SMALL_SIZE, shades_of
from kernelweave.foundation.array_types import Floats, Ints

#: Legends list so many clusters at most; beyond that the last entry says how many were left out.
LISTED = 12
#: Names in legends and along axes have so many characters at most.
LONGEST_NAME = 28
# Area of a marker in a legend, in square points, however small those of the samples are.
SIGN = 28.0
# Points from a panel down to the legend below it: the numbers and the words along the axis stand in between.
BELOW = 32.0
# Least share of its width or height that a panel keeps beside a legend.
NARROWEST = 0.4
# Where a name may stand, in heights of its line from the point it names, in this order.
AROUND = ((0, 0), (0, 1), (0, -1), (1.2, 0), (-1.2, 0), (1, 1), (-1, 1), (1, -1), (-1, -1), (0, 2), (0, -2))


def shortened(name: object, longest: int = LONGEST_NAME) -> str:
    """Return a name with its middle left out where it is long: beginnings and ends of names tell most."""
    text = str(name)
    if len(text) <= longest:
        return text
    begin = (longest - 1) // 2
    return f"{text[:begin].rstrip()}…{text[begin + 1 - longest :].lstrip()}"


def wrapped(name: object, width: int) -> str:
    """Return a name on two lines at most."""
    lines = textwrap.wrap(str(name), width)
    longest = 2 * width
    while len(lines) > 2:
        lines = textwrap.wrap(shortened(name, longest), width)
        longest -= 1
    return "\n".join(lines)


def legend_beside(ax: Any, handles: Sequence[Any] | None = None, *, last: Sequence[Any] = (), **options: Any) -> Any:
    """Draw a legend to the right of a panel, and return it. Of more than 12 entries the rest are counted.

    ``last`` are entries that stand below these in any case.
    """
    shown = [*_entries(ax, handles), *last]
    place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0, "handletextpad": 0.5}
    legend = ax.legend(handles=shown, **place, **_type(), **options)
    for handle in legend.legend_handles:
        if hasattr(handle, "set_sizes"):
            handle.set_sizes([SIGN])
    ax.set_anchor("W")  # a panel that keeps its shape leaves the room it does not need to the legend
    _make_room(ax, legend)
    return legend


def legend_below(ax: Any, handles: Sequence[Any] | None = None, **options: Any) -> Any:
    """Draw a legend of a few entries below a panel, and return it. Above the panel the caller may write a title."""
    from matplotlib.transforms import ScaledTranslation

    shown = _entries(ax, handles)
    down = ScaledTranslation(0.0, -BELOW / 72.0, ax.figure.dpi_scale_trans)
    place = {"loc": "upper left", "bbox_to_anchor": (0.0, 0.0), "bbox_transform": ax.transAxes + down}
    place |= {"borderaxespad": 0.0, "ncols": 3, "columnspacing": 1.4}
    legend = ax.legend(handles=shown, **{**place, **_type(), **options})
    _make_room(ax, legend, below=True)
    return legend


def _type() -> dict[str, Any]:
    return {"frameon": False, "fontsize": SMALL_SIZE, "title_fontsize": SMALL_SIZE, "alignment": "left"}


def _entries(ax: Any, handles: Sequence[Any] | None) -> list[Any]:
    """Return the entries of a legend, the last a count of those left out."""
    from matplotlib.lines import Line2D

    every = list(ax.get_legend_handles_labels()[0] if handles is None else handles)
    if len(every) <= LISTED:
        return every
    rest = Line2D([], [], linestyle="", label=f"and {len(every) - LISTED + 1:,} more")
    return [*every[: LISTED - 1], rest]


def _make_room(ax: Any, legend: Any, *, below: bool = False) -> None:
    """Shrink a panel by its legend, as a colour bar would, where the figure has no layout that does."""
    if ax.figure.get_layout_engine() is not None:
        return
    spec = ax.get_subplotspec()
    place = ax.get_position(original=True) if spec is None else spec.get_position(ax.figure)
    room = legend.get_window_extent().transformed(ax.figure.transSubfigure.inverted())
    if below:
        height = max(NARROWEST * place.height, place.height - 1.2 * room.height)
        ax.set_position((place.x0, place.y1 - height, place.width, height))
    else:
        width = max(NARROWEST * place.width, place.width - 1.05 * room.width)
        ax.set_position((place.x0, place.y0, width, place.height))


def name_clusters(ax: Any, points: Floats, codes: Ints, names: Sequence[Any]) -> list[Any]:
    """Write the names of clusters on their samples, and return the texts; names without room are left out.

    Larger clusters come first. A name stands on the sample nearest to the median of its cluster.
    """
    sizes = np.bincount(codes, minlength=len(names))
    order = np.argsort(-sizes, kind="stable")[: int(np.count_nonzero(sizes))]
    places = []
    for c in order:
        members = points[codes == c]
        away = ((members - np.median(members, axis=0)) ** 2).sum(axis=1)
        places.append(members[away.argmin()])
    return write_apart(ax, [shortened(names[c], 12) for c in order], places)


def write_apart(ax: Any, words: Sequence[str], places: Any, distances: Any = None, **options: Any) -> list[Any]:
    """Write words at or near places of the data, and return the texts; those that would cover others are left out.

    ``distances``, in points, keep words away from what is drawn at their places. The panel must be complete: what
    changes its size later moves words closer to each other.
    """
    from matplotlib.patheffects import withStroke

    ax.figure.canvas.figure.draw_without_rendering()  # where words stand is known when the layout is
    shades = shades_of(ax)
    halo = [withStroke(linewidth=2.5, foreground=shades.ground)]
    style: dict[str, Any] = {
        "fontsize": SMALL_SIZE,
        "color": shades.edge,
        "fontweight": "bold",
        "path_effects": halo,
        "zorder": 6,
    }
    style |= options
    style |= {"textcoords": "offset points", "ha": "center", "va": "center"}
    line = 1.25 * style["fontsize"]
    pixels = ax.figure.dpi / 72.0
    taken = np.empty((0, 4))
    texts = []
    for i, (word, place) in enumerate(zip(words, places, strict=True)):
        text = ax.annotate(word, place, (0, 0), **style)
        box = text.get_window_extent().extents
        away = 0.0 if distances is None else distances[i] + 0.5 * line
        for offset in _offsets(away, line):
            moved = box + pixels * np.tile(offset, 2)
            if not _overlaps(moved, taken).any():
                text.set_position(tuple(offset))
                texts.append(text)
                taken = np.vstack([taken, moved])
                break
        else:
            text.remove()
    return texts


def _offsets(away: float, line: float) -> Floats:
    """Return where a word may stand, in points: at its place, or around what is drawn there."""
    if away == 0.0:
        return line * np.array(AROUND, dtype=np.float64)
    angles = np.deg2rad([45, 0, 90, 135, 180, 225, 270, 315])
    ring = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.concatenate([ring * (away + further) for further in (0.0, line, 2.0 * line)])


def _overlaps(box: Floats, others: Floats) -> Any:
    """Return which boxes, given by left, bottom, right and top, have a point in common with one."""
    across = (box[0] < others[:, 2]) & (others[:, 0] < box[2])
    return across & (box[1] < others[:, 3]) & (others[:, 1] < box[3])
