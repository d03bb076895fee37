"""How tables are read from files: which columns, what of missing cells, and an account of what was done to them."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelweave.foundation.array_types import Bools
from kernelweave.foundation.errors import Argument, DataError
from kernelweave.inputs import Table
from kernelweave.preprocessing.file_tables import CHOICES, EncodedTable, set_aside_notes
from kernelweave.preprocessing.table_encoder import A_DATE, AN_ID, COUNTS_ROWS, MANY, ColumnCode

# Columns, and values of one, that a note lists.
MOST_NAMES = 5
#: What to do about columns that were set aside, by the beginning of the reason.
REMEDIES = {
    COUNTS_ROWS: "--columns naming it keeps it",
    AN_ID: "--categorical {} makes categories of it",
    A_DATE: "--dates {} makes days of it",
    MANY: "--categorical {} makes categories of it",
}


@dataclass(frozen=True)
class Reading:
    """What the user says about the columns and cells of tables."""

    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    missing: str = "error"
    as_it_is: bool = False  # a table of distances or similarities, of which no column is set aside

    @property
    def choices(self) -> dict[str, tuple[str, ...]]:
        """What is said about columns, by argument."""
        return {name: getattr(self, name) for name in CHOICES}


@dataclass(frozen=True)
class ViewAccount:
    """What was done to the rows and cells of one file."""

    rows: int  # in the file
    used: int  # of these, samples that are clustered
    absent: int  # samples without this view
    filled: int  # cells
    notes: tuple[str, ...] = ()  # on columns
    left_out: tuple[str, ...] = ()  # ids of the file that are not clustered


@dataclass(frozen=True)
class Account:
    """What was done to the rows and cells of all files."""

    views: dict[str, ViewAccount] = field(default_factory=dict)
    samples: int = 0
    left_out: int = 0  # samples of the files that are not clustered
    missing: str = "error"
    assumed: tuple[str, ...] = ()  # what was assumed of files

    @property
    def plain(self) -> bool:
        """Whether all rows of all files are used, complete and as they are."""
        same = all(each.rows == each.used == self.samples for each in self.views.values())
        return same and not any(each.absent or each.filled or each.notes for each in self.views.values())

    def summary(self) -> dict[str, Any]:
        """Return the account as JSON holds it."""
        if not self.views:
            return {"assumed": list(self.assumed)} if self.assumed else {}
        views = {name: {**vars(each), "notes": list(each.notes)} for name, each in self.views.items()}
        for each in views.values():
            gone = each.pop("left_out")
            each.update({"left_out": list(gone)} if gone else {})
        assumed = {"assumed": list(self.assumed)} if self.assumed else {}
        return {"views": views, "left_out": self.left_out, "missing": self.missing, **assumed}

    def lines(self) -> list[str]:
        """Return the account in sentences."""
        if self.plain:
            return [*([self.complete()] if self.views else []), *self.assumed]
        told = []
        for name, each in self.views.items():
            cells = f", {count(each.filled, 'missing cell')} filled ({self.missing})" if each.filled else ""
            told.append(f"{name}: {count(each.rows, 'row')} read, {each.used:,} used, {each.absent:,} absent{cells}.")
        if self.left_out:
            told.append(f"{count(self.left_out, 'sample')} left out.")
        return [*told, *self.notes(), *self.assumed]

    def complete(self) -> str:
        """Return the account of files of which everything is used."""
        each = "" if len(self.views) == 1 else f" in each of {len(self.views)} files"
        return f"{self.samples:,}{each}, all used and complete"

    def notes(self) -> list[str]:
        """Return the notes on columns, and on rows that are not used."""
        told = [f"{name}: {note}" for name, each in self.views.items() for note in each.notes]
        for name, each in self.views.items():
            if each.left_out:
                told.append(f"{name}: {count(len(each.left_out), 'row')} left out ({_some(each.left_out)})")
        return told


def count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def names(values: Sequence[str]) -> tuple[str, ...]:
    """Return the names in comma separated lists; those with commas are in double quotes."""
    cells = (cell.strip() for row in csv.reader(values, skipinitialspace=True) for cell in row)
    return tuple(cell for cell in cells if cell)


# Missing cells


def check_cells(encoded: EncodedTable, missing: str, *, absent_allowed: bool, whose: str = "") -> None:
    """Refuse a missing cell where nothing says what to do with it; a row without any value may mean an absent sample.

    ``whose`` says who decided so, where it was not this command.
    """
    if missing != "error":
        return
    nan = encoded.missing_cells()
    refused = nan & ~np.asarray(nan.all(axis=1))[:, None] if absent_allowed else nan
    at = np.argwhere(refused)
    if len(at):
        row, column = (int(each) for each in at[0])
        where = encoded.source.cell(row, encoded.place_of(column))
        if whose:
            raise DataError(f"{where} has no value, and {whose}; fill it in or remove the row.")
        raise DataError(
            f"{where} has no value; fill it in, or choose how to treat missing cells with ",
            Argument("missing", "median"),
            " (or mean, knn, drop).",
        )


def samples_without_view(table: Table, encoded: EncodedTable, missing: str) -> Bools:
    """Return which samples of an aligned table count as absent."""
    nan = encoded.missing_cells(table.values)
    return np.asarray(nan.any(axis=1) if missing == "drop" else nan.all(axis=1))


def account_for(encoded: Mapping[str, EncodedTable], tables: Sequence[Table], missing: str, n_ids: int) -> Account:
    """Return what was done to the rows and cells of files; ``tables`` hold the samples that are clustered."""
    views = {}
    for table in tables:
        before = encoded[table.name]
        absent = samples_without_view(table, before, missing)
        cells = before.missing_cells(table.values)[~absent].sum() if missing not in ("error", "drop") else 0
        there = set(table.ids or ()) & set(before.source.ids or ())
        used = len(there) if table.ids is not None else table.n_samples
        views[table.name] = ViewAccount(
            rows=before.source.n_samples,
            used=used,
            absent=int(absent.sum()),
            filled=int(cells),
            notes=tuple(column_notes(before)),
            left_out=_unused_ids(before.source.ids, table.ids),
        )
    n_samples = tables[0].n_samples
    return Account(views, n_samples, n_ids - n_samples, missing)


def _unused_ids(before: Sequence[str] | None, after: Sequence[str] | None) -> tuple[str, ...]:
    """Return the ids of a file that are not among those of the samples."""
    kept = set(after or ())
    return tuple(name for name in before or () if name not in kept) if after is not None else ()


# Columns


def column_notes(encoded: EncodedTable) -> list[str]:
    """Return what columns became, and which were set aside."""
    if encoded.encoder is None:
        return []
    notes = [_code_note(code) for code in encoded.encoder.columns_ if code.kind != "number"]
    for columns, reason in set_aside_notes(encoded):
        remedy = next((text for begin, text in REMEDIES.items() if reason.startswith(begin)), "")
        advice = f"; {remedy.format(columns[0])}" if remedy else ""
        what = _some(columns) if encoded.source.columns is not None else f"column {_some(columns)}"
        notes.append(f"{what} set aside ({reason}{advice})")
    return notes


def _code_note(code: ColumnCode) -> str:
    if code.kind == "category":
        return f"{code.name} as categories ({_some(code.categories)})"
    if code.kind == "ordered":
        return f"{code.name} by the order of its categories ({_some(code.categories)})"
    if code.kind == "date":
        return f"{code.name} as days since {code.earliest.replace('T', ' ').removesuffix(' 00:00:00.000000')}"
    return f"{code.name} as 1 (true) and 0 (false)"


def _some(values: Sequence[str]) -> str:
    more = len(values) - MOST_NAMES
    return ", ".join(values[:MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def without_rows(table: Table, left_out: Bools) -> Table:
    """Return a table without some of its rows."""
    kept = np.flatnonzero(~left_out)
    ids = None if table.ids is None else tuple(table.ids[i] for i in kept)
    return replace(table, values=table.values[kept], ids=ids, raw=None)
