"""Tables and labels in text files: cells separated by a delimiter, with or without names of rows and columns."""

import csv
import gzip
import io
import math
import re
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.errors import Argument, DataError
from kernelweave.inputs.files.tables import (
    RawCells,
    Table,
    TextFormat,
    check_file,
    is_id_name,
    is_repeated,
    short,
    unreadable,
)

#: Names of a column that holds labels.
LABEL_NAMES = frozenset(
    {"label", "labels", "class", "classes", "cluster", "clusters", "group", "category", "target", "truth", "type", "y"}
)
# Cells that mean that a value is missing.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
# The same as programs write them, for files of many cells.
PLAIN_MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"})
# Labels that mean that there is none.
NO_LABEL = frozenset({"", "na", "n/a", "nan", "null"})
DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t", "-": ","}
NO_NUMBER = ", which is no finite number"
# A line that begins with a quoted cell, and the mark after it.
QUOTED = re.compile(r'\s*"(?:[^"]|"")*"([;,\t| ])')
# A first line that counts at least this many cells is no sample; with fewer it may be one.
COUNTED = 8
# Numbers with commas for decimals or thousands: meant as numbers, not as names.
COMMAS = re.compile(r"\s*[+-]?[0-9.]*(,[0-9]+)+[0-9.]*([eE][+-]?[0-9]+)?\s*")

TextRows = list[tuple[int, list[str]]]  # line number and cells


def read_text(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    """Yield the table of a text file."""
    shown, delimiter, rows = _text_rows(path, text)
    name = "stdin" if path == "-" else Path(path.removesuffix(".gz")).stem
    yield _table(shown, name, rows, text, delimiter)


def _text_rows(path: str, text: TextFormat) -> tuple[str, str, TextRows]:
    """Return the name of a text file in messages, its delimiter and its rows."""
    shown = "standard input" if path == "-" else path
    raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    if path == "-" and not raw.strip():
        raise DataError(f"{shown}: there is nothing in it; note that it can be given once.")
    if path.endswith(".gz"):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise unreadable(path, "gzip file", error) from error
    lines = _decoded(shown, raw)
    usual = DELIMITERS.get("-" if path == "-" else Path(path.removesuffix(".gz")).suffix.lower(), ",")
    delimiter = text.delimiter or usual
    rows = _cells(shown, lines, delimiter)
    if not rows:
        raise DataError(f"{shown}:1: the file is empty.")
    return shown, delimiter, rows


def _decoded(shown: str, raw: bytes) -> str:
    if b"\0" in raw:
        line = raw[: raw.index(b"\0")].count(b"\n") + 1
        raise DataError(f"{shown}:{line}: this is no text file: it holds a zero byte.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DataError(f"{shown}:{line}: byte {raw[error.start]:#04x} is no UTF-8 text; save it as such.") from error


def _cells(shown: str, lines: str, delimiter: str) -> TextRows:
    """Return line number and cells of every line; empty lines count in files of one column, except around the rest."""
    whole = io.StringIO(lines, newline="")
    last = [""]

    def remembered() -> Iterator[str]:
        for line in whole:
            last[0] = line
            yield line

    reader = csv.reader(remembered(), delimiter=delimiter, skipinitialspace=True, strict=True)
    rows: TextRows = []
    empty: list[int] = []
    begun = 1
    try:
        for row in reader:
            if len(row) > 1 or last[0].strip():
                if empty and rows and len(rows[0][1]) == 1:
                    rows += [(line, [""]) for line in empty]
                rows.append((begun, row))
                empty = []
            else:
                empty.append(begun)
            begun = reader.line_num + 1
    except csv.Error as error:
        quoted = _open_quote(lines, delimiter, begun, reader.line_num)
        if quoted is not None:
            raise DataError(
                f"{shown}:{quoted}: a quoted cell begins here and does not end; close its quote."
            ) from error
        after = QUOTED.match(last[0])
        mark = delimiter if after is None or (after[1] == " " and delimiter in last[0]) else after[1]
        if mark != delimiter:
            raise DataError(
                f"{shown}:{reader.line_num}: there is {mark!r} after a quoted cell, where {delimiter!r} separates "
                "cells; say so with ",
                Argument("delimiter", mark),
                ".",
            ) from error
        raise DataError(f"{shown}:{reader.line_num}: {error}.") from error
    return rows


def _open_quote(lines: str, delimiter: str, begun: int, ended: int) -> int | None:
    """Return the line of the quote that is still open where a row breaks off, at line ``ended``."""
    opened = 0
    state = "start"
    for number, line in enumerate(io.StringIO(lines, newline=""), 1):
        for mark in line if begun <= number <= ended else "":
            if state == "quoted":
                state = "closed" if mark == '"' else state
            elif state == "closed" and mark == '"':  # a doubled quote
                state = "quoted"
            elif mark == delimiter:
                state = "start"
            elif state == "closed" and mark not in "\r\n":
                return opened if opened < number else None
            elif state == "start" and mark == '"':
                opened = number
                state = "quoted"
            elif state == "start" and mark != " ":
                state = "plain"
    return opened if state == "quoted" else None


def _table(shown: str, name: str, rows: TextRows, text: TextFormat, delimiter: str) -> Table:
    line, first = rows[0]
    if len(first) == 1:
        _check_delimiter(shown, rows, delimiter)
    if text.header is None and len(first) < COUNTED and _counts(first):
        raise DataError(
            f"{shown}:{line}: the first line counts its cells (0, 1, ...): say ",
            Argument("header", True),
            " if it names the columns, or ",
            Argument("header", False),
            " if it is a sample.",
        )
    header = _is_header(first, text.ids) if text.header is None else text.header
    names = [cell.strip() for cell in first] if header else None
    body = rows[1:] if header else rows
    if not body:
        raise DataError(f"{shown}:{line}: there is a header of {len(first)} column(s) and no rows.")
    width = len(first)
    for line, row in body:
        if len(row) != width:
            raise DataError(f"{shown}:{line}: this row has {len(row)} cell(s), the first one has {width}.")
    place = _id_column(shown, names, [row for _, row in body], text)
    ids = None
    if place is not None:
        ids = _ids(shown, [(line, row[place]) for line, row in body])
    keep = [column for column in range(width) if column != place]
    if not keep:
        raise DataError(
            f"{shown}:{body[0][0]}: there is a column of ids and no column of numbers; add some, or say ",
            Argument("ids", "none"),
            " if it is data.",
        )
    if width == 1 and not any(_is_number(row[0]) or row[0].strip().lower() in MISSING for _, row in body):
        raise DataError(
            f"{shown}:{body[0][0]}: there is no column of numbers: the only one holds {short(body[0][1][0])}."
        )
    columns = None if names is None else tuple(names[column] for column in keep)
    if text.mixed:
        values, texts = _mixed_values(body, keep)
        if names is not None and text.header is None:
            _check_header(shown, rows[0][0], columns or (), values, texts)
        return Table(name, values, ids, columns, shown, raw=RawCells(texts, [line for line, _ in body], keep))
    return Table(name, _numbers(shown, body, place, keep, names), ids, columns, shown)


def _numbers(shown: str, body: TextRows, place: int | None, keep: list[int], names: list[str] | None) -> Floats:
    """Return the numbers of all rows, or raise at the first cell that is none."""
    values = np.empty((len(body), len(keep)))
    for i, (line, row) in enumerate(body):
        cells = row if place is None else [row[column] for column in keep]
        try:
            values[i] = [float(cell) for cell in cells]
        except ValueError:
            _refuse_cell(shown, line, row, keep, names)
        whole = "".join(cells)
        if "_" in whole or not whole.isascii():  # Python takes some of these for numbers
            _refuse_cell(shown, line, row, keep, names)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        i, j = bad[0]
        _refuse_cell(shown, body[i][0], body[i][1], [keep[j]], names)
    return values


def _mixed_values(body: TextRows, keep: list[int]) -> tuple[Floats, dict[int, Any]]:
    """Return the numbers of all rows, NaN where there is none, and the columns of text as they are."""
    values = np.full((len(body), len(keep)), np.nan)
    texts: dict[int, Any] = {}
    for j, column in enumerate(keep):
        cells = [row[column] for _, row in body]
        try:
            values[:, j] = [np.nan if cell in PLAIN_MISSING else float(cell) for cell in cells]
            whole = "".join(cells)
            taken = not np.isinf(values[:, j]).any() and "_" not in whole and whole.isascii()
        except ValueError:
            taken = False
        if not taken:
            numbers = [np.nan if _is_missing(cell) else float(cell) for cell in cells if _is_number_or_missing(cell)]
            if len(numbers) == len(cells):
                values[:, j] = numbers
            else:
                values[:, j] = np.nan
                texts[j] = np.array([cell.strip() for cell in cells], dtype=object)
    return values, texts


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _is_number_or_missing(cell: str) -> bool:
    return _is_missing(cell) or _is_plain_number(cell)


def _check_header(shown: str, line: int, columns: Sequence[str], values: Floats, texts: dict[int, Any]) -> None:
    """Refuse a first line of text and numbers that may be a sample: its text occurs again, or it has fractions."""
    for j, name in enumerate(columns):
        again = j in texts and name in texts[j].tolist()
        if again or (_is_fraction(name) and j not in texts and not np.isnan(values[:, j]).all()):
            why = f"{short(name)} occurs again below" if again else f"{short(name)} is a number like those below"
            raise DataError(
                f"{shown}:{line}: the first line may be a sample, as {why}; say ",
                Argument("header", True),
                " if it names the columns, or ",
                Argument("header", False),
                " if it is a sample.",
            )


def check_text_columns(table: Table, taken: Collection[int]) -> None:
    """Refuse a column of text in which some cells are meant as numbers, unless it is among those ``taken`` as text."""
    raw = table.raw
    for j, cells in (raw.texts if raw is not None else {}).items():
        if j in taken or not isinstance(cells, np.ndarray):
            continue
        if not any(_is_number(cell) and not _is_missing(cell) for cell in cells):
            continue
        row = next(i for i, cell in enumerate(cells) if not _is_number_or_missing(cell))
        fault = _fault(cells[row])
        pieces: tuple[str | Argument, ...] = (f"{table.cell(row, j)} holds {short(cells[row])}{fault}",)
        if table.columns is not None and fault == NO_NUMBER:
            pieces += ("; if the column holds categories, say ", Argument("categorical", table.columns[j]))
        raise DataError(*pieces, ".")


def _is_number(cell: str) -> bool:
    """Whether a cell is meant as a number, even if in a form that is refused."""
    try:
        float(cell.replace("\u2212", "-"))  # the minus sign of typesetters
    except ValueError:
        return COMMAS.fullmatch(cell) is not None
    return True


def _is_plain_number(cell: str) -> bool:
    """Whether a cell is a finite number in digits 0 to 9 with a decimal point."""
    try:
        return math.isfinite(float(cell)) and "_" not in cell and cell.strip().isascii()
    except ValueError:
        return False


def _is_fraction(cell: str) -> bool:
    return _is_plain_number(cell) and not float(cell).is_integer()


def _is_header(first: list[str], ids: str | None) -> bool:
    """Whether a line holds names: ids, some text where numbers belong, or the numbers of the columns."""
    place = int(ids) - 1 if ids is not None and ids.isascii() and ids.isdigit() else 0
    if (is_id_name(first[0]) and len(first) > 1) or _counts(first):
        return True
    rest = [cell for i, cell in enumerate(first) if i != place] if len(first) > 1 else first
    return any(not _is_number(cell) and cell.strip().lower() not in MISSING for cell in rest)


def _counts(first: list[str]) -> bool:
    """Whether a line of two or more cells counts them from 0, as pandas does where columns have no names."""
    return len(first) > 1 and [cell.strip() for cell in first] == [str(i) for i in range(len(first))]


def _id_column(shown: str, names: list[str] | None, rows: list[list[str]], text: TextFormat) -> int | None:
    row = rows[0]
    asked = text.ids
    if asked == "none":
        return None
    if asked is not None:
        if names is not None and asked in names:
            return names.index(asked)
        if asked.isascii() and asked.isdigit() and 1 <= int(asked) <= len(row):
            return int(asked) - 1
        raise DataError(
            f"{shown}:1: there is no column {asked!r} for ids; give a name of the header or a number from 1 to "
            f"{len(row)}."
        )
    if names is not None and names[0] in text.data_columns:
        return None
    named = names is not None and is_id_name(names[0])
    if named and names is not None and not is_id_name(names[0], known=True):  # body_mass_index is no id
        named = len(row) > 1 and not any(_is_fraction(each[0]) for each in rows)
    if len(row) == 1:
        return 0 if named else None
    if named:
        return 0
    if _is_number(row[0]) or _is_missing(row[0]):
        return None
    return None if text.mixed and is_repeated([each[0].strip() for each in rows]) else 0


def _ids(shown: str, cells: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    """Return the ids of lines without the spaces around them."""
    origins: dict[str, tuple[int, str]] = {}
    for line, cell in cells:
        name = cell.strip()
        if not name:
            raise DataError(f"{shown}:{line}: the id of this row is empty.")
        if name in origins:
            before, other = origins[name]
            spaces = "" if cell == other else "; spaces around ids do not count"
            raise DataError(f"{shown}:{line}: the id {short(name)} was already that of line {before}{spaces}.")
        origins[name] = (line, cell)
    return tuple(origins)


def _check_delimiter(shown: str, rows: TextRows, delimiter: str) -> None:
    line, (cell,) = rows[0]
    counts = {mark: cell.count(mark) for mark in (",", ";", "\t", "|") if mark != delimiter}
    mark = max(counts, key=lambda each: counts[each])
    if counts[mark]:
        raise DataError(
            f"{shown}:{line}: there is no {delimiter!r} in the first line but {counts[mark]} {mark!r}; say so with ",
            Argument("delimiter", mark),
            ".",
        )
    below = rows[1][1][0].split()[1:] if len(rows) > 1 and rows[1][1] else []  # there may be an id before
    words = cell.split()
    lines = (words[1:] and words, below)
    if delimiter != " " and any(numbers and all(map(_is_plain_number, numbers)) for numbers in lines):
        raise DataError(
            f"{shown}:{line}: there is no {delimiter!r} in the first line, and blanks separate numbers; say so with ",
            Argument("delimiter", " "),
            ".",
        )


def _refuse_cell(shown: str, line: int, row: list[str], columns: Iterable[int], names: list[str] | None) -> None:
    for column in columns:
        cell = row[column]
        if _is_plain_number(cell):
            continue
        where = f"column {column + 1}" + (f" ({short(names[column])})" if names is not None else "")
        if cell.strip().lower() in MISSING:
            raise DataError(f"{shown}:{line}: {where} has no value; fill it in or leave the row out.")
        raise DataError(f"{shown}:{line}: {where} holds {short(cell)}{_fault(cell)}.")


def _fault(cell: str) -> str:
    """Return what is wrong with a cell that is no number, or what to write in its place."""
    if COMMAS.fullmatch(cell):
        return "; write a point for the decimal comma, and nothing between thousands"
    if _is_number(cell) and "_" in cell:
        return f"; write it without '_', as {cell.strip().replace('_', '')}"
    if _is_number(cell) and not cell.isascii():
        return "; write numbers in the digits 0 to 9, with '-' for minus"
    return NO_NUMBER


# Labels


def read_label_lines(place: str, text: TextFormat, n_samples: int) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return ids, or None, and labels of a text file with lines ``id,label``, or ``label`` for each of the samples."""
    check_file(place)
    try:
        shown, delimiter, rows = _text_rows(place, text)
    except OSError as error:
        raise DataError(f"{place}: {error.strerror or error}") from error
    rows = _without_further_columns(rows)
    width = len(rows[0][1])
    if width == 1:
        _check_label_delimiter(shown, rows, delimiter)
    for line, row in rows:
        if width not in (1, 2) or len(row) != width:
            raise DataError(f"{shown}:{line}: lines of true labels are 'label' or 'id,label', all of the same kind.")
    header = _is_label_header(rows, n_samples) if text.header is None else text.header
    body = rows[1:] if header else rows
    ids = None if width == 1 else _ids(shown, [(line, row[0]) for line, row in body])
    for line, row in body:
        label = row[-1].strip()
        if label.lower() in NO_LABEL:
            of = "" if ids is None else f" of {short(row[0].strip())}"
            state = f"{label!r}, which means that there is none" if label else "empty"
            raise DataError(f"{shown}:{line}: the label{of} is {state}; fill it in.")
    if ids is None and len(body) != n_samples:
        below = f" below the header {short(rows[0][1][0])}" if header else ""
        raise DataError(
            f"{shown}: there are {len(body)} labels{below} for {n_samples} samples; write one for each, or lines "
            "'id,label'."
        )
    return ids, tuple(row[-1].strip() for _, row in body)


def _without_further_columns(rows: TextRows) -> TextRows:
    """Return lines of labels as ``cluster`` writes them, ``id,label,silhouette,...``, with the first two cells only."""
    first = [cell.strip() for cell in rows[0][1]]
    if first[:3] != ["id", "label", "silhouette"]:
        return rows
    return [(line, row[:2] if len(row) == len(first) else row) for line, row in rows]


def _is_label_header(rows: TextRows, n_samples: int) -> bool:
    """Whether the first line names columns: by a known name, by text above numbers, or because it is one too many."""
    first = rows[0][1]
    others = [row[-1].strip() for _, row in rows[1:]]
    if len(first) == 2 and is_id_name(first[0]):
        return True
    name = first[-1].strip()
    if not others or name in others:
        return False
    if len(first) == 1 and (name.lower() in LABEL_NAMES or len(others) == n_samples):
        return True
    return not _is_number(name) and all(map(_is_number, others))


def _check_label_delimiter(shown: str, rows: TextRows, delimiter: str) -> None:
    """Refuse labels most of which look like an id and a label."""
    for mark in (",", ";", "\t", "|"):
        if mark != delimiter and 2 * sum(row[0].count(mark) == 1 for _, row in rows) > len(rows):
            raise DataError(
                f"{shown}:{rows[0][0]}: there is no {delimiter!r} in the first line but {mark!r}; say so with ",
                Argument("delimiter", mark),
                f", which holds for all text files, or separate id and label by {delimiter!r}.",
            )
    pairs = [row[0].split() for _, row in rows if row]
    if delimiter != " " and len({pair[0] for pair in pairs if len(pair) == 2}) == len(rows) > 1:
        raise DataError(
            f"{shown}:{rows[0][0]}: there is no {delimiter!r} in the first line, and a blank seems to separate id and "
            "label in all of them; say so with ",
            Argument("delimiter", " "),
            f", which holds for all text files, or separate them by {delimiter!r}.",
        )
