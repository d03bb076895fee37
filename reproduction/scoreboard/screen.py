"""The board and the list of methods as tables for a terminal."""

import math
from collections.abc import Iterable, Sequence

from rich.table import Table

from reproduction.scoreboard.board import Board, Row
from reproduction.scoreboard.data_sets import Size
from reproduction.scoreboard.methods import Method, why_missing

_COLUMNS = ("method", "library", "NMI", "ARI", "ACC", "rank", "best", "failed", "seconds", "MiB")
_TEXT_COLUMNS = 2


def board_table(board: Board) -> Table:
    """Return the means of every method over the ranked sets."""
    table = Table(*_COLUMNS, title=f"Means over {len(board.ranked_sets)} sets, in the order of mean ranks")
    for column in table.columns[_TEXT_COLUMNS:]:
        column.justify = "right"
    for column in table.columns:
        column.no_wrap = True
    for row in board.rows:
        table.add_row(*row_texts(row))
    return table


def row_texts(row: Row) -> tuple[str, ...]:
    """Return a row as it is printed."""
    scores = (number(row.nmi, 3), number(row.ari, 3), number(row.acc, 3), number(row.rank, 2))
    costs = (number(row.seconds, 2), number(row.memory_mib, 0))
    return row.method, row.library, *scores, str(row.n_best), str(row.n_failed), *costs


def number(value: float, digits: int) -> str:
    """Return a number with so many decimals, a dash where there is none."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def methods_table(methods: Iterable[Method]) -> Table:
    """Return what there is to run."""
    table = Table("method", "library", "setting", "here")
    table.columns[0].no_wrap = True
    table.columns[1].no_wrap = True
    for method in methods:
        table.add_row(method.name, method.library, method.setting, why_missing(method) or "yes")
    return table


def sets_table(sizes: Sequence[Size]) -> Table:
    """Return the sets of the data folder."""
    table = Table("set", "samples", "views", "clusters")
    for size in sizes:
        table.add_row(size.name, str(size.n_samples), str(size.n_views), str(size.n_clusters))
    return table
