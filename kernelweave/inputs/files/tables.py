"""Tables of numbers with the ids of their rows, and several of them put into the same order."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Array
from kernelweave.foundation.errors import Argument, DataError, ParameterError

#: Names of a first column that holds ids.
ID_NAMES = frozenset({"", "id", "ids", "index", "key", "name", "row", "sample", "sample_id", "sampleid", "barcode"})
# How other names of such a column end, as patient_id or Sample ID do.
ID_ENDINGS = re.compile(r".*[ _.-](ids?|key|index|barcode)", re.IGNORECASE)
# Text in fewer rows is taken for ids, whatever repeats in it.
FEWEST_REPEATED = 5
# How many examples a message gives.
EXAMPLES = 3

Rows = Literal["same", "common", "all"]


@dataclass(frozen=True)
class RawCells:
    """What a table holds besides numbers, and where in its file."""

    texts: dict[int, Any] = field(default_factory=dict)  # columns that are not of numbers, by their place in the table
    lines: Sequence[int] = ()  # of the rows in a text file
    places: Sequence[int] = ()  # of the columns in the file, from 0


@dataclass(frozen=True)
class Table:
    """Numbers of samples: one row each."""

    name: str
    values: Array  # ndarray or csr_array
    ids: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    source: str = ""
    key: str = ""  # its name in a file of several tables
    notes: tuple[tuple[str | Argument, ...], ...] = ()  # what was assumed of its file, each in pieces
    raw: RawCells | None = None  # of files that may hold more than numbers; their missing cells are NaN in ``values``

    @property
    def place(self) -> str:
        """The file, and the table's name in it where there are several."""
        return f"{self.source}:{self.key}" if self.key else self.source

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    def cell(self, row: int, column: int) -> str:
        """Return where a cell is in its file, as messages put it."""
        raw = self.raw
        line = f":{raw.lines[row]}" if raw is not None and len(raw.lines) else f": row {row + 1}"
        place = raw.places[column] if raw is not None and len(raw.places) else column
        name = "" if self.columns is None else f" ({short(self.columns[column])})"
        comma = ":" if line.startswith(":") and " " not in line else ","
        return f"{self.place}{line}{comma} column {place + 1}{name}"


@dataclass(frozen=True)
class TextFormat:
    """How to read text files; None means that the file's name and first line decide."""

    delimiter: str | None = None
    header: bool | None = None
    ids: str | None = None  # name or number of the column, or "none"
    mixed: bool | None = None  # whether text and missing cells are taken as they are, not refused
    data_columns: frozenset[str] = frozenset()  # names of columns that are known to hold no ids
    decimal: str | None = None  # "." or ","; where it is named, the other one may be between thousands
    transpose: bool | tuple[str, ...] = False  # whether samples are columns, in all files or in those of some views

    def __post_init__(self) -> None:
        mark = self.delimiter
        if mark is not None and (len(mark) != 1 or mark in '"\r\n\0'):
            raise ParameterError(
                Argument("delimiter", mark),
                ": give one character, such as ",
                Argument("delimiter", ";"),
                " or ",
                Argument("delimiter", "\t"),
                ".",
            )
        if self.decimal not in (None, ".", ","):
            raise ParameterError(
                Argument("decimal", self.decimal), ": give ", Argument("decimal", ","), " or ", Argument("decimal", ".")
            )
        if mark is not None and mark == self.decimal:
            raise ParameterError(
                Argument("decimal", self.decimal),
                " cannot be combined with ",
                Argument("delimiter", mark),
                "; change one.",
            )

    def is_transposed(self, name: str) -> bool:
        """Whether samples are the columns of the table of a name."""
        return name in self.transpose if isinstance(self.transpose, tuple) else self.transpose


# Several tables


def align_tables(tables: Sequence[Table], rows: Rows = "same") -> list[Table]:
    """Return the tables with their rows in the order of the first.

    ``rows="same"`` requires the same ids in all; ``"common"`` keeps those that occur in all of them, and ``"all"``
    those that occur in any, in order of first occurrence: the rows of samples that a table lacks are NaN. Tables
    without ids must have the same number of rows.
    """
    named = [table for table in tables if table.ids is not None]
    _check_view_names(tables)
    if not named:
        counts = {table.n_samples for table in tables}
        if len(counts) > 1:
            sizes = ", ".join(f"{table.place} has {table.n_samples}" for table in tables)
            raise DataError(
                f"The files have no ids and differ in the number of rows: {sizes}. Give them a column of ids."
            )
        return list(tables)
    if len(named) < len(tables):
        bare = next(table for table in tables if table.ids is None)
        raise DataError(
            f"{named[0].place} has ids and {bare.place} has none, so their rows cannot be matched: this needs ids in "
            "all files. ",
            *_how_to_add_ids(bare),
        )
    first = named[0]
    wanted = list(first.ids or ())
    if rows == "all":
        wanted = list(dict.fromkeys(name for table in named for name in table.ids or ()))
        _check_shared(named)
    elif rows == "common":
        shared = set.intersection(*(set(table.ids or ()) for table in named))
        wanted = [name for name in wanted if name in shared]
        if not wanted:
            raise DataError(f"No id occurs in all files: {first.place} begins with {short((first.ids or ('',))[0])}.")
    else:
        for other in named[1:]:
            _check_same_ids(first, other)
    return [_in_order(table, wanted) for table in named]


def _how_to_add_ids(bare: Table) -> tuple[str | Argument, ...]:
    """Return a sentence on how a table without ids gets some, in pieces."""
    if bare.source.lower().endswith((".npz", ".mat")):
        return (f"Add an array 'ids' to {bare.source}.",)
    if bare.source.lower().endswith((".npy", ".mtx", ".mtx.gz")):
        return (f"Save {bare.source} as CSV with a column of ids, or as NPZ with an array 'ids'.",)
    return f"Give {bare.source} a column of ids, or say which it is with ", Argument("ids", "COLUMN"), "."


def _check_same_ids(first: Table, second: Table) -> None:
    """Refuse two tables one of which has ids that the other lacks."""
    for table, other in ((first, second), (second, first)):
        there = set(other.ids or ())
        missing = [name for name in table.ids or () if name not in there]
        if missing:
            examples = ", ".join(map(short, missing[:EXAMPLES]))
            raise DataError(
                f"{len(missing)} id(s) of {table.place} are missing from {other.place}, "
                f"such as {examples}; complete the "
                "files, keep the samples they have in common with ",
                Argument("rows", "common"),
                ", or keep all samples with ",
                Argument("rows", "all"),
                ".",
            )


def _in_order(table: Table, wanted: Sequence[str]) -> Table:
    place = {name: i for i, name in enumerate(table.ids or ())}
    order = np.array([place.get(name, -1) for name in wanted], dtype=np.intp)
    values = table.values[order]
    absent = order < 0
    if absent.any():
        values = _with_absent(values, absent)
    return replace(table, values=values, ids=tuple(wanted), raw=None)


def _with_absent(values: Any, absent: Any) -> Array:
    """Return new rows in which absent samples are NaN; of a sparse row one NaN is stored."""
    if not sp.issparse(values):
        values[absent] = np.nan
        return values
    there = sp.diags_array((~absent).astype(np.float64), format="csr") @ values
    there.eliminate_zeros()
    rows = np.flatnonzero(absent)
    marks = sp.csr_array((np.full(len(rows), np.nan), (rows, np.zeros(len(rows), dtype=np.intp))), shape=values.shape)
    return sp.csr_array(there + marks)


def _check_shared(tables: Sequence[Table]) -> None:
    """Refuse a table that shares no id with any other one."""
    for table in tables if len(tables) > 1 else ():
        others = [other for other in tables if other is not table]
        if not any(set(table.ids or ()) & set(other.ids or ()) for other in others):
            raise DataError(
                f"{table.place} shares no id with any other file, so its samples cannot be matched: it begins with "
                f"{short((table.ids or ('',))[0])}, and {others[0].place} with {short((others[0].ids or ('',))[0])}. "
                "Write ids the same way in all files."
            )


def _check_view_names(tables: Sequence[Table]) -> None:
    places: dict[str, str] = {}
    for table in tables:
        if table.name in places:
            raise DataError(
                f"{places[table.name]} and {table.place} would both be view {table.name!r}; name them: "
                f"{table.name}_2={table.place}."
            )
        places[table.name] = table.place


# Files and ids


def check_file(path: str) -> None:
    """Raise DataError unless the path is a file that can be read."""
    if path != "-" and Path(path).is_dir():
        raise DataError(f"{path}: this is a folder; name a file in it.")
    if path != "-" and not Path(path).is_file():
        raise DataError(f"{path}: there is no such file; {_near_file(Path(path))}")


def _near_file(path: Path) -> str:
    """Return the question whether a file of a similar name was meant, or advice to check the name."""
    try:
        there = {each.stem: each for each in path.parent.iterdir() if each.is_file()}
    except OSError:
        return f"nor is there a folder {str(path.parent)!r}."
    near = get_close_matches(path.stem, there, n=1, cutoff=0.75)
    return f"is it {there[near[0]]}?" if near else "check its name."


def is_id_name(name: str, *, known: bool = False) -> bool:
    """Whether a column name suggests ids: it is a known one or, unless those alone count, has a known ending."""
    name = name.strip()
    return name.lower() in ID_NAMES or (not known and ID_ENDINGS.fullmatch(name) is not None)


def is_repeated(names: Sequence[Any]) -> bool:
    """Whether text is rather categories than ids, of which one may have slipped in twice."""
    return len(names) >= FEWEST_REPEATED and 2 * len(set(names)) <= len(names)


def unique_ids(path: str, ids: Sequence[str]) -> tuple[str, ...]:
    """Return ids without the spaces around them, if none is empty and none occurs twice."""
    rows: dict[str, int] = {}
    for row, name in enumerate(map(str.strip, ids), 1):
        if not name:
            raise DataError(f"{path}: the id of row {row} is empty.")
        if name in rows:
            spaces = "" if ids[row - 1] == ids[rows[name] - 1] else "; spaces around ids do not count"
            raise DataError(
                f"{path}: the id {short(name)} occurs more than once, in rows {rows[name]} and {row}{spaces}; give "
                "each row one of its own."
            )
        rows[name] = row
    return tuple(rows)


def unreadable(path: str, kind: str, error: Exception) -> DataError:
    """Return the error for a file that its reader refused; parsers of other projects raise many kinds."""
    reason = " ".join(str(error).split())[:120]
    return DataError(f"{path}: this is not a readable {kind} ({reason}); write or copy it again.")


def short(text: str, most: int = 40) -> str:
    """Return a name from a file in quotes, the end of a long one left out."""
    return repr(text if len(text) <= most else f"{text[:most]}...")
