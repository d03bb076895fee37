"""Pictures of the board, as SVG: the critical-difference diagram, NMI against seconds, a heat map.

The same board gives the same files: nothing of the date or of random names is written into them.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduction.scoreboard.board import Board, Row
from reproduction.scoreboard.methods import OURS
from reproduction.scoreboard.ranking import alike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RANKS = "scoreboard_ranks.svg"
TIMES = "scoreboard_times.svg"
HEAT = "scoreboard_heat.svg"

_OUR_COLOUR = "#0072b2"
_THEIR_COLOUR = "#b35900"
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "scoreboard",
    "svg.fonttype": "none",
    "font.size": 8.0,
    "font.family": "sans-serif",
}
_NAME_SIZE = 7.0


def draw_all(board: Board, folder: Path) -> None:
    """Write the three pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    drawings = {RANKS: draw_ranks, TIMES: draw_times, HEAT: draw_heat}
    for name, draw in drawings.items():
        _save(draw, board, folder / name)


def _save(draw: "Callable[[Board], Figure]", board: Board, path: Path) -> None:
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        draw(board).savefig(path, format="svg", metadata={"Date": None}, bbox_inches="tight")
    # matplotlib ends lines with spaces
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


def _figure(width: float, height: float) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    return figure, figure.add_subplot()


def _colour(row: Row) -> str:
    return _OUR_COLOUR if row.library == OURS else _THEIR_COLOUR


# --- ranks ------------------------------------------------------------------------------------------------------------


def draw_ranks(board: Board) -> "Figure":
    """Draw mean ranks on a line, names beside it, and bars over methods that do not differ."""
    rows = board.rows
    runs = alike([row.rank for row in rows], board.difference) if len(board.ranked_sets) else []
    half = math.ceil(len(rows) / 2)
    depth = 1.2 + 0.3 * len(runs)
    figure, axes = _figure(8.0, 1.0 + 0.16 * (half + len(runs)))
    axes.set_xlim(-0.55 * len(rows), 1.55 * len(rows) + 1)
    axes.set_ylim(depth + 0.7 * half + 0.5, -2.5)
    axes.axis("off")
    _draw_rank_axis(axes, len(rows))
    _draw_difference(axes, board.difference)
    for at, (first, last) in enumerate(runs):
        ends = [rows[first].rank - 0.1, rows[last].rank + 0.1]
        axes.plot(ends, [0.6 + 0.3 * at] * 2, color="black", linewidth=2.0, solid_capstyle="butt")
    for at, row in enumerate(rows):
        on_left = at < half
        level = depth + 0.7 * (at if on_left else len(rows) - 1 - at)
        _draw_name(axes, row, level, len(rows), on_left=on_left)
    return figure


def _draw_rank_axis(axes: "Axes", n_methods: int) -> None:
    axes.plot([1, n_methods], [0, 0], color="black", linewidth=1.0)
    step = max(1, n_methods // 10)
    for tick in [*range(1, n_methods - step // 2, step), n_methods]:
        axes.plot([tick, tick], [0, -0.25], color="black", linewidth=1.0)
        axes.text(tick, -0.4, str(tick), ha="center", va="bottom")


def _draw_difference(axes: "Axes", difference: float) -> None:
    if math.isnan(difference):
        return
    axes.plot([1, 1 + difference], [-1.6, -1.6], color="black", linewidth=1.5, marker="|")
    axes.text(1 + difference / 2, -1.75, f"critical difference {difference:.2f}", ha="center", va="bottom")


def _draw_name(axes: "Axes", row: Row, level: float, n_methods: int, *, on_left: bool) -> None:
    if math.isnan(row.rank):
        return
    end = 0.5 if on_left else n_methods + 0.5
    axes.plot([row.rank, row.rank, end], [0, level, level], color=_colour(row), linewidth=0.6)
    text = f"{row.method} {row.rank:.1f}" if on_left else f"{row.rank:.1f} {row.method}"
    place: dict[str, Any] = {"ha": "right" if on_left else "left", "va": "center"}
    axes.text(end + (-0.2 if on_left else 0.2), level, text, color=_colour(row), fontsize=_NAME_SIZE, **place)


# --- times ------------------------------------------------------------------------------------------------------------


def draw_times(board: Board) -> "Figure":
    """Draw mean NMI against mean seconds, one point per method."""
    figure, axes = _figure(8.0, 6.0)
    rows = [row for row in board.rows if row.seconds > 0]
    axes.set_xscale("log")
    axes.set_xlabel("mean seconds of a fit on one thread, over the sets where it has labels")
    axes.set_ylabel("mean NMI, failures as 0")
    axes.grid(True, linewidth=0.3)
    if rows:
        # room for names on the right
        axes.set_xlim(min(row.seconds for row in rows) / 2, max(row.seconds for row in rows) * 8)
    for row in rows:
        axes.plot(row.seconds, row.nmi, marker="o", markersize=4, color=_colour(row))
    for row, level in _label_levels(rows):
        axes.annotate(
            row.method,
            (row.seconds, row.nmi),
            xytext=(row.seconds * 1.08, level),
            fontsize=6.0,
            color=_colour(row),
            va="center",
            arrowprops={"arrowstyle": "-", "linewidth": 0.3, "color": _colour(row)},
        )
    return figure


def _label_levels(rows: list[Row]) -> list[tuple[Row, float]]:
    """Return a height for every name, moved up where names of neighbours would cover each other."""
    if not rows:
        return []
    room = max(0.02, max(row.nmi for row in rows) - min(row.nmi for row in rows)) / 38
    placed: list[tuple[Row, float]] = []
    for row in sorted(rows, key=lambda each: each.nmi):
        beside = [level for other, level in placed if abs(math.log10(other.seconds / row.seconds)) < 1.0]
        placed.append((row, max([row.nmi, *(level + room for level in beside if level + room > row.nmi)])))
    return placed


# --- heat map ---------------------------------------------------------------------------------------------------------


def draw_heat(board: Board) -> "Figure":
    """Draw NMI of every method on every set, failures crossed out, fits that are missing left white."""
    import numpy as np

    sets = list(board.sets)
    values = np.full((len(board.rows), len(sets)), np.nan)
    figure, axes = _figure(2.5 + 0.28 * len(sets), 1.5 + 0.18 * len(board.rows))
    for i, row in enumerate(board.rows):
        for j, name in enumerate(sets):
            cell = board.cells.get((row.method, name))
            if cell is not None and cell.failed:
                axes.plot(j, i, marker="x", color="#999999", markersize=4)
            elif cell is not None:
                values[i, j] = cell.nmi
    picture = axes.imshow(values, aspect="auto", cmap="viridis", vmin=0.0, vmax=1.0)
    axes.set_xticks(range(len(sets)), sets, rotation=90)
    axes.set_yticks(range(len(board.rows)), [row.method for row in board.rows])
    for label, row in zip(axes.get_yticklabels(), board.rows, strict=True):
        label.set_color(_colour(row))
    figure.colorbar(picture, ax=axes, label="NMI")
    return figure
