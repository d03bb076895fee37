"""Tables that were read from files, with text, dates and missing cells, as tables of numbers."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Bools
from kernelweave.foundation.errors import Argument, DataError, ParameterError, ViewError, ViewWarning
from kernelweave.inputs.files.tables import Table, short
from kernelweave.inputs.files.text import check_text_columns
from kernelweave.preprocessing.table_encoder import LEFT_OUT, TableEncoder, matches

#: What the user may say about columns.
CHOICES = ("columns", "drop", "categorical", "dates", "ordered")


@dataclass(frozen=True)
class EncodedTable:
    """A table as numbers, what was learned to make it, and how it was read."""

    table: Table
    source: Table
    encoder: TableEncoder | None  # None: a table of numbers as it is

    @property
    def used_columns(self) -> list[str] | None:
        """Names in the file of the columns in use; None where it has none."""
        if self.source.columns is None:
            return None
        if self.encoder is None:
            return list(self.source.columns)
        return [code.name for code in self.encoder.columns_]

    def missing_cells(self, values: Any = None) -> Bools:
        """Return which cells of the columns in use have no value, a column for each in the file.

        ``values`` are those of the table, unless rows of it were chosen since.
        """
        values = self.table.values if values is None else values
        if sp.issparse(values):
            return np.isnan(values.toarray()) if np.isnan(values.data).any() else np.zeros((values.shape[0], 1), bool)
        nan = np.isnan(values)
        if self.encoder is None:
            return nan
        starts = np.cumsum([0, *(len(code.features) for code in self.encoder.columns_)])[:-1]
        return nan[:, starts]

    def place_of(self, column: int) -> int:
        """Return where a column in use is among those of the table as it was read."""
        if self.encoder is None:
            return column
        names = _names_as_fitted(self.source, self.encoder)
        used = [j for j, name in enumerate(names) if name not in self.encoder.set_aside_]
        return used[column]


def column_names(table: Table) -> list[str]:
    """Return the names of the columns of a table, or their numbers in its file, from 1."""
    if table.columns is not None:
        return list(table.columns)
    places = table.raw.places if table.raw is not None and len(table.raw.places) else range(table.values.shape[1])
    return [str(place + 1) for place in places]


def encode_tables(
    tables: Sequence[Table],
    *,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    dates: Sequence[str] = (),
    ordered: Sequence[str] = (),
) -> list[EncodedTable]:
    """Return tables of numbers, and what was learned to make them.

    Arguments are names or patterns as in :class:`TableEncoder`, for all tables, or for one as ``view:column``. In
    ``ordered`` the categories follow: ``stage=I<II<III``. Tables that hold nothing but numbers by the type of their
    file, such as NPY, stay as they are.
    """
    choices = {"columns": columns, "drop": drop, "categorical": categorical, "dates": dates, "ordered": ordered}
    _check_choices(tables, choices)
    return [_encoded(table, _of_table(table, tables, choices)) for table in tables]


def encode_as_fitted(table: Table, encoder: TableEncoder | None) -> tuple[EncodedTable, list[str]]:
    """Return new samples as numbers, by what was learned from others, and warnings."""
    if encoder is None:
        return EncodedTable(table, table, None), []
    texts = {j for j, name in enumerate(_names_as_fitted(table, encoder)) if not _is_number_column(encoder, name)}
    check_text_columns(table, texts)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoded = _transformed(table, encoder)
    return encoded, [f"{table.place}: {each.message}" for each in caught]


def _is_number_column(encoder: TableEncoder, name: str) -> bool:
    return any(code.name == name and code.kind == "number" for code in encoder.columns_)


def _encoded(table: Table, choices: dict[str, list[str] | None]) -> EncodedTable:
    if table.raw is None:
        if any(choices.values()):
            raise ParameterError(
                f"{table.place} holds a matrix of numbers, of which all columns are used: columns can be chosen in "
                "text and Parquet files."
            )
        return EncodedTable(table, table, None)
    names = column_names(table)
    orders = dict(_order(each) for each in choices["ordered"] or ())
    encoder = TableEncoder(**{**choices, "ordered": orders or None})  # type: ignore[arg-type]
    taken = {j for j, name in enumerate(names) if not _decided_by_values(name, choices)}
    check_text_columns(table, taken)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ViewWarning)  # what is set aside is in the result
            encoder.fit(_pairs(table, names))
        return _transformed(table, encoder)
    except ViewError as error:
        raise DataError(f"{table.place}: {error}") from error


def _decided_by_values(name: str, choices: Mapping[str, list[str] | None]) -> bool:
    """Whether the values of a column decide what it is, as the user says nothing of it."""
    if choices["columns"] and not any(matches(name, each) for each in choices["columns"]):
        return False
    others = [each for what in CHOICES if what != "columns" for each in choices[what] or ()]
    return not any(matches(name, _column(each)) for each in others)


def _names_as_fitted(table: Table, encoder: TableEncoder) -> list[str]:
    """Return names of columns; where the file has none, those of as many columns in training."""
    names = column_names(table)
    if table.columns is None and len(names) == encoder.n_features_in_:
        return [str(name) for name in encoder.feature_names_in_]
    return names


def named_cells(table: Table) -> list[tuple[str, Any]]:
    """Return the names and the cells of the columns of a table as it was read: numbers, or text where there is some."""
    return _pairs(table, column_names(table))


def _pairs(table: Table, names: Sequence[str]) -> list[tuple[str, Any]]:
    texts = {} if table.raw is None else table.raw.texts
    return [(name, texts.get(j, table.values[:, j])) for j, name in enumerate(names)]


def _transformed(table: Table, encoder: TableEncoder) -> EncodedTable:
    try:
        values = np.ascontiguousarray(encoder.transform(_pairs(table, _names_as_fitted(table, encoder))))
    except ViewError as error:
        raise DataError(f"{table.place}: {error}") from error
    columns = None if table.columns is None else tuple(encoder.get_feature_names_out().tolist())
    return EncodedTable(replace(table, values=values, columns=columns), table, encoder)


# Names with views in front


def _of_table(table: Table, tables: Sequence[Table], choices: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the names and patterns for one table."""
    views = [each.name for each in tables]
    chosen: dict[str, Any] = {}
    for parameter, patterns in choices.items():
        own = [column for view, column in (_split(each, views) for each in patterns) if view in (None, table.name)]
        names = column_names(table)
        chosen[parameter] = [each for each in own if any(matches(name, _column(each)) for name in names)] or None
        if parameter == "columns" and own and chosen[parameter] is None:
            raise DataError(f"{table.place}: none of its columns is among ", Argument("columns", ",".join(own)), ".")
    return chosen


def _split(pattern: str, views: Sequence[str]) -> tuple[str | None, str]:
    """Return the view, None for all, and the column of ``view:column``."""
    view, colon, column = pattern.partition(":")
    return (view, column) if colon and view in views else (None, pattern)


def _column(pattern: str) -> str:
    """Return the column that a choice is about: what is left of the order, if it gives one."""
    return pattern.partition("=")[0] if "<" in pattern else pattern


def _order(pattern: str) -> tuple[str, tuple[str, ...]]:
    """Return the column and its categories of ``stage=I<II<III``."""
    column, equals, categories = pattern.partition("=")
    order = tuple(each.strip() for each in categories.split("<"))
    if not (column and equals and len(order) > 1 and all(order)):
        raise ParameterError(
            Argument("ordered", pattern),
            ": write the column and its categories from the first to the last, stage=I<II<III.",
        )
    return column, order


def _check_choices(tables: Sequence[Table], choices: Mapping[str, Sequence[str]]) -> None:
    """Refuse a name that no table has."""
    views = [table.name for table in tables]
    for parameter, patterns in choices.items():
        for pattern in patterns:
            view, column = _split(_order(pattern)[0] if parameter == "ordered" else pattern, views)
            asked = [table for table in tables if view in (None, table.name)]
            if not any(matches(name, column) for table in asked for name in column_names(table)):
                known = [name for table in asked for name in column_names(table)]
                shown = ", ".join(map(short, known[:8])) + (", ..." if len(known) > 8 else "")
                raise ParameterError(
                    Argument(parameter, pattern), f": there is no such column; the columns are {shown}."
                )


def set_aside_notes(encoded: EncodedTable) -> list[tuple[list[str], str]]:
    """Return columns that were set aside though nobody asked for it, by reason."""
    if encoded.encoder is None:
        return []
    by_reason: dict[str, list[str]] = {}
    for name, reason in encoded.encoder.set_aside_.items():
        if reason != LEFT_OUT:
            by_reason.setdefault(reason, []).append(name)
    return [(names, reason) for reason, names in by_reason.items()]
