"""Tables and labels in text files: cells separated by a delimiter, with or without names of rows and columns."""

import csv
import gzip
import io
import math
import re
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.errors import Argument, DataError
from kernelweave.inputs.files.conventions import (
    DECIMAL_POINT,
    MARK_NAMES,
    Note,
    TextRows,
    decimal_of,
    decoded,
    delimiter_of,
    is_short_header,
    with_points,
)
from kernelweave.inputs.files.tables import (
    EXAMPLES,
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
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-", "#n/a", "n.a.", "missing"})
# The same as programs write them, for files of many cells.
PLAIN_MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"})
_NO_HEADER = Argument("header", False)
_NO_IDS = Argument("ids", "none")
_TRANSPOSE = Argument("transpose", True)
# Names of a last row that adds up or averages those above it.
SUMMARIES = frozenset({"total", "totals", "sum", "sums", "subtotal", "mean", "average", "median"})
# Labels that mean that there is none.
NO_LABEL = frozenset({"", "na", "n/a", "nan", "null"})
DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t", "-": ","}
NO_NUMBER = ", which is not a finite number"
# A line that begins with a quoted cell, and the mark after it.
QUOTED = re.compile(r'\s*"(?:[^"]|"")*"([;,\t| ])')
# Numbers with a percent sign, or with blanks or apostrophes between thousands: meant as numbers.
PERCENT = re.compile(r"\s*[+-]?[0-9.,]+\s*%\s*")
SPACED = re.compile(r"\s*[+-]?[0-9]{1,3}([ '\u00a0\u2009\u202f\u2019][0-9]{3})+([.,][0-9]+)?\s*")
# A number with a unit after it or a currency sign before it.
AMOUNT_SIGNS = re.compile("[$\u20ac\u00a3\u00a5\u00b0]")
AMOUNT = re.compile(
    r"(?P<sign>[$\u20ac\u00a3\u00a5]?)\s*[+-]?[0-9]+([.,][0-9]{3})*([.,][0-9]+)?\s*"
    r"(?P<unit>[^\W\d_][\w/\u00b0\u00b2\u00b3]{0,7}|[$\u20ac\u00a3\u00a5\u00b0]\w?|)"
)
# A first line that counts at least this many cells is not a sample; with fewer it may be one.
COUNTED = 8
# With fewer than this it may well be a sample, and nobody can tell.
SURELY_COUNTED = 3
# Ids of genes, transcripts, probes and sites of methylation or variation.
FEATURE_IDS = re.compile(
    r"ENS[A-Z]*[GTP]\d+(\.\d+)?|gene[_ -]?\d+|[NX][MR]_\d+|cg\d{6,}|rs\d{4,}|\d+_([a-z]_)?at", re.I
)
# Names of rows that are features rather than samples, without digits and endings.
FEATURE_WORDS = frozenset(
    {
        "gene",
        "genesymbol",
        "symbol",
        "hugosymbol",
        "probe",
        "probeset",
        "feature",
        "ensembl",
        "ensemblgene",
        "transcript",
        "protein",
        "cpg",
        "snp",
        "metabolite",
        "peptide",
        "otu",
        "taxon",
    }
)
# Numbers with commas for decimals or thousands: meant as numbers, not as names.
COMMAS = re.compile(r"\s*[+-]?[0-9.]*(,[0-9]+)+[0-9.]*([eE][+-]?[0-9]+)?\s*")


@dataclass(frozen=True)
class _TextFile:
    """A text file in cells, and what was assumed of it."""

    shown: str  # its name in messages
    delimiter: str
    rows: TextRows
    notes: list[Note]
    commas: bool  # whether cells may hold commas


def read_text(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    """Yield the table of a text file."""
    file = _text_file(path, text)
    name = "stdin" if path == "-" else Path(path.removesuffix(".gz")).stem
    yield _table(file, name, text)


def table_of_cells(shown: str, name: str, rows: TextRows, text: TextFormat, notes: Sequence[Note] = ()) -> Table:
    """Return the table of cells that another kind of file holds as text."""
    if not rows:
        raise DataError(f"{shown}: it is empty.")
    return _table(_TextFile(shown, "", rows, list(notes), False), name, text)


def _text_file(path: str, text: TextFormat, *, blanks: bool = True) -> _TextFile:
    """Read a text file; without ``blanks`` these separate no cells unless the format says so."""
    shown = "standard input" if path == "-" else path
    raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    if path == "-" and not raw.strip():
        raise DataError(f"{shown}: it is empty; note that it can be used only once.")
    if path.endswith(".gz"):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise unreadable(path, "gzip file", error) from error
    lines, notes = decoded(shown, raw)
    usual = DELIMITERS.get("-" if path == "-" else Path(path.removesuffix(".gz")).suffix.lower(), ",")
    delimiter = text.delimiter or delimiter_of(lines, usual, blanks=blanks)
    if text.delimiter is None and delimiter == " ":
        lines = "\n".join(line.strip(" ") for line in lines.splitlines())
    if delimiter != usual and text.delimiter is None:
        notes.append((f"cells are separated by {MARK_NAMES[delimiter]}; if not, use ", Argument("delimiter", usual)))
    rows = _cells(shown, lines, delimiter)
    if not rows:
        raise DataError(f"{shown}:1: the file is empty; give a table.")
    commas = "," in lines and (delimiter != "," or '"' in lines)
    return _TextFile(shown, delimiter, rows, notes, commas)


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
                f"{shown}:{quoted}: a quoted cell starts here and is never closed; add the closing quote."
            ) from error
        after = QUOTED.match(last[0])
        mark = delimiter if after is None or (after[1] == " " and delimiter in last[0]) else after[1]
        if mark != delimiter:
            raise DataError(
                f"{shown}:{reader.line_num}: there is {mark!r} after a quoted cell, where {delimiter!r} separates "
                "cells; if that is the delimiter, use ",
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


def _table(file: _TextFile, name: str, text: TextFormat) -> Table:
    shown = file.shown
    notes = list(file.notes)
    rows = _transposed(shown, file.rows) if text.is_transposed(name) else file.rows
    rows, more = _of_one_width(rows, text)
    notes += more
    line, first = rows[0]
    if text.header is None and len(rows) > 1 and _is_title(first):
        raise DataError(
            f"{shown}:{line}: the first line has one cell, {short(first[0].strip())}, and {len(first) - 1} empty "
            "ones; if it is a title, remove it, and if it is a sample, use ",
            _NO_HEADER,
            ".",
        )
    if text.header is None and len(first) < SURELY_COUNTED and _counts(first):
        raise DataError(
            f"{shown}:{line}: the first line counts its cells (0, 1, ...): use ",
            Argument("header", True),
            " if it names the columns, or ",
            Argument("header", False),
            " if it is a sample.",
        )
    header = _is_header(first, text.ids) if text.header is None else text.header
    if text.header is None and len(first) < COUNTED and _counts(first):
        notes.append(("the first line numbers the columns and is not a sample; if it is one, use ", _NO_HEADER))
    names = [cell.strip() for cell in first] if header else None
    body = rows[1:] if header else rows
    if not body:
        raise DataError(f"{shown}:{line}: there is a header of {len(first)} column(s) and no rows; add some.")
    width = len(first)
    for line, row in body:
        if len(row) != width:
            comments = (
                "remove the lines that begin with '#'" if first[0].startswith("#") else "give all rows the same number"
            )
            raise DataError(
                f"{shown}:{line}: this row has {len(row)} cell(s), the first one has {width}; {comments}, and put "
                "cells that hold a delimiter in quotes."
            )
    place = _id_column(shown, names, [row for _, row in body], text, named=text.is_transposed(name))
    ids = None
    if place is not None:
        ids = _ids(shown, [(line, row[place]) for line, row in body])
    keep = [column for column in range(width) if column != place]
    if not keep:
        raise DataError(
            f"{shown}:{body[0][0]}: there is a column of ids and no column of numbers; add some, or use ",
            Argument("ids", "none"),
            " if it is data.",
        )
    body, more = _without_percent_signs(body, keep, names)
    notes += more
    body, more = _with_decimal_points(file, body, keep, names, text)
    notes += more
    if width == 1 and not any(_is_number(row[0]) or row[0].strip().lower() in MISSING for _, row in body):
        raise DataError(
            f"{shown}:{body[0][0]}: there is no column of numbers: the only one holds {short(body[0][1][0])}; name the "
            "separator with ",
            Argument("delimiter", "," if file.delimiter == ";" else ";"),
            ", or add numbers.",
        )
    columns = None if names is None else tuple(names[column] for column in keep)
    over_ids = "" if names is None or place is None else names[place]
    if ids is not None and not text.is_transposed(name) and _are_features(over_ids, ids):
        notes.append(
            (f"its rows seem to be features, such as {ids[0]!r}; if samples are the columns, use ", _TRANSPOSE)
        )
    notes += _doubtful_names(ids, columns)
    if text.mixed:
        values, texts = _mixed_values(body, keep)
        if names is not None and text.header is None and not is_id_name(names[0]):
            _check_header(shown, rows[0][0], columns or (), values, texts)
        raw = RawCells(texts, [line for line, _ in body], keep)
        return Table(name, values, ids, columns, shown, raw=raw, notes=tuple(notes))
    values = _numbers(shown, body, place, keep, names)
    return Table(name, values, ids, columns, shown, notes=tuple(notes))


def _doubtful_names(ids: Sequence[str] | None, columns: Sequence[str] | None) -> list[Note]:
    """Return notes on names that suggest that a row is not a sample, or that a column occurs twice."""
    notes: list[Note] = []
    if ids is not None and ids[-1].lower().strip(" :") in SUMMARIES:
        notes.append((f"the last row is called {ids[-1]!r} and counts as a sample; if it is not one, remove it",))
    twice = next((name for i, name in enumerate(columns or ()) if name in (columns or ())[:i]), None)
    if twice is not None:
        notes.append((f"several columns are called {twice!r}, and all of them count",))
    return notes


def _transposed(shown: str, rows: TextRows) -> TextRows:
    """Return the columns as rows; they are counted as lines are, from 1."""
    cells = [row for _, row in rows]
    if len(cells) > 1 and is_short_header(cells):
        cells[0] = ["", *cells[0]]
    for line, row in rows:
        if len(row) not in (len(cells[0]), len(rows[0][1])):
            raise DataError(f"{shown}:{line}: this row has {len(row)} cell(s), the first one has {len(cells[0])}.")
    return [(i, list(column)) for i, column in enumerate(zip(*cells, strict=True), 1)]


def _of_one_width(rows: TextRows, text: TextFormat) -> tuple[TextRows, list[Note]]:
    """Return rows without an empty last cell, and with a cell above ids if the first line lacks it, as R writes it."""
    cells = [row for _, row in rows]
    short_header = len(rows) > 1 and text.header is not False and is_short_header(cells)
    body = cells[1:] if short_header else cells
    if len(rows) > 1 and len(cells[-1]) > 2 and {len(row) for row in body} == {len(cells[-1])}:
        last = [row[-1].strip() for row in body]
        if not any(last):
            trimmed = [(line, row if short_header and i == 0 else row[:-1]) for i, (line, row) in enumerate(rows)]
            return trimmed, [("all lines end in a delimiter, so the empty column after it is ignored",)]
    if short_header and any(not _is_number(cell) for cell in cells[0]):
        note = ("the first line lacks a name for the first column, which is read as ids; if not, use ", _NO_IDS)
        return [(rows[0][0], ["", *cells[0]]), *rows[1:]], [note]
    return rows, []


def _without_percent_signs(body: TextRows, keep: list[int], names: list[str] | None) -> tuple[TextRows, list[Note]]:
    """Return rows in which columns of percentages alone are numbers: 12.5 for 12.5 %."""
    columns = [column for column in keep if _holds_percentages(body, column)]
    if not columns:
        return body, []
    changed: TextRows = []
    for line, row in body:
        cells = list(row)
        for column in columns:
            cells[column] = _without_percent_sign(cells[column])
        changed.append((line, cells))
    called = [str(column + 1) if names is None else names[column] for column in columns]
    example = next(row[columns[0]] for _, row in body if "%" in row[columns[0]]).strip()
    told = ", ".join(called[:EXAMPLES]) + (f" and {len(called) - EXAMPLES:,} more" if len(called) > EXAMPLES else "")
    which = f"{'column' if len(called) == 1 else 'columns'} {told}"
    return changed, [(f"{which}: percentages are read as numbers ({example!r} as {_without_percent_sign(example)})",)]


def _without_percent_sign(cell: str) -> str:
    return cell.strip().removesuffix("%").rstrip()


def _holds_percentages(body: TextRows, column: int) -> bool:
    """Whether all cells of a column that are not missing are numbers with a percent sign."""
    there = (row[column] for _, row in body if not _is_missing(row[column]))
    first = next(there, "")
    return PERCENT.fullmatch(first) is not None and all(PERCENT.fullmatch(cell) is not None for cell in there)


def _with_decimal_points(
    file: _TextFile, body: TextRows, keep: list[int], names: list[str] | None, text: TextFormat
) -> tuple[TextRows, list[Note]]:
    """Return rows whose numbers have a decimal point, by the sign that was named or that the file has."""
    if text.decimal is None and not file.commas:
        return body, []
    data = [(line, [row[column] for column in keep]) for line, row in body]
    decimal = text.decimal or decimal_of(file.shown, data)
    asked = text.decimal is not None
    if decimal == "." and not asked:
        return body, []
    changed: TextRows = []
    for line, row in body:
        cells = with_points(row, decimal, grouped=asked)
        if decimal == ",":
            for column in keep:
                if cells[column] == row[column] and DECIMAL_POINT.fullmatch(row[column]):
                    where = f"column {column + 1}" + (f" ({short(names[column])})" if names is not None else "")
                    raise DataError(
                        f"{file.shown}:{line}: {where} holds {short(row[column])}, which has a decimal point; write a "
                        "comma, or use ",
                        Argument("decimal", "."),
                        ".",
                    )
        kept = set(keep)
        changed.append((line, [cell if i in kept else row[i] for i, cell in enumerate(cells)]))
    return changed, [] if asked else [("numbers have a decimal comma; if not, use ", Argument("decimal", "."))]


def _are_features(name: str, ids: Sequence[str]) -> bool:
    """Whether rows are rather features than samples, by the name of their column or by their ids."""
    if 2 * sum(FEATURE_IDS.fullmatch(each) is not None for each in ids) > len(ids):
        return True
    return re.sub("[^a-z]", "", name.lower().removesuffix("id").removesuffix("s")) in FEATURE_WORDS


def _numbers(shown: str, body: TextRows, place: int | None, keep: list[int], names: list[str] | None) -> Floats:
    """Return the numbers of all rows, or raise at the first cell that is not a number."""
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
                f"{shown}:{line}: the first line may be a sample, because {why}; use ",
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
        _check_units(table, j, cells)
        if not any(_is_number(cell) and not _is_missing(cell) for cell in cells):
            continue
        row = next(i for i, cell in enumerate(cells) if not _is_number_or_missing(cell))
        fault = _fault(cells[row])
        pieces: Note = (f"{table.cell(row, j)} holds {short(cells[row])}", *fault)
        if fault == (NO_NUMBER,) and cells[row].lower().lstrip("+-") in ("inf", "infinity"):
            pieces += ("; leave the cell empty and use ", Argument("missing", "median"))
        elif fault == (NO_NUMBER,):
            name = str(j + 1) if table.columns is None else table.columns[j]
            pieces += ("; leave the cell empty if its value is missing; if the column holds categories, use ",)
            pieces += (Argument("categorical", name),)
        raise DataError(*pieces, ".")


def _check_units(table: Table, j: int, cells: Any) -> None:
    """Refuse a column of amounts, numbers with one unit that hardly repeat: as text they would not count."""
    there = [cell for cell in cells if not _is_missing(cell)]
    found = [AMOUNT.fullmatch(cell) for cell in there]
    units = {(each["sign"], each["unit"]) for each in found if each is not None}
    if not there or None in found or len(units) != 1 or ("", "") in units or is_repeated(there):
        return
    if not any(re.search(r"[\s.,]", cell) or AMOUNT_SIGNS.search(cell) for cell in there):
        return  # names such as 1A, 2A
    row = next(i for i, cell in enumerate(cells) if not _is_missing(cell))
    name = str(j + 1) if table.columns is None else table.columns[j]
    raise DataError(
        f"{table.cell(row, j)} holds {short(cells[row])}, a number with a unit; write only the numbers, or use ",
        Argument("drop", name),
        " or ",
        Argument("categorical", name),
        ".",
    )


def _is_number(cell: str) -> bool:
    """Whether a cell is meant as a number, even if in a form that is refused."""
    try:
        float(cell.replace("\u2212", "-"))  # the minus sign of typesetters
    except ValueError:
        return any(form.fullmatch(cell) is not None for form in (COMMAS, PERCENT, SPACED))
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


def _is_title(first: list[str]) -> bool:
    """Whether a line of three or more cells has text in the first and nothing in the others, as a title has."""
    return len(first) > 2 and not _is_number_or_missing(first[0]) and not any(cell.strip() for cell in first[1:])


def _counts(first: list[str]) -> bool:
    """Whether a line of two or more cells counts them from 0, as pandas does where columns have no names."""
    return len(first) > 1 and [cell.strip() for cell in first] == [str(i) for i in range(len(first))]


def _id_column(
    shown: str, names: list[str] | None, rows: list[list[str]], text: TextFormat, *, named: bool = False
) -> int | None:
    """Return the column of ids; ``named`` where the first one holds them because the table was transposed."""
    row = rows[0]
    asked = text.ids
    if named and names is not None and asked is None:
        return 0
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
    if named and names is not None and not is_id_name(names[0], known=True):  # body_mass_index is not an id
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
            raise DataError(f"{shown}:{line}: the id of this row is empty; fill it in, or remove the row.")
        if name in origins:
            before, other = origins[name]
            spaces = "" if cell == other else "; spaces around ids do not count"
            raise DataError(
                f"{shown}:{line}: the id {short(name)} was already that of line {before}{spaces}; give each row one of "
                "its own."
            )
        origins[name] = (line, cell)
    return tuple(origins)


def _refuse_cell(shown: str, line: int, row: list[str], columns: Iterable[int], names: list[str] | None) -> None:
    for column in columns:
        cell = row[column]
        if _is_plain_number(cell):
            continue
        where = f"column {column + 1}" + (f" ({short(names[column])})" if names is not None else "")
        if cell.strip().lower() in MISSING:
            raise DataError(f"{shown}:{line}: {where} has no value; fill it in or remove the row.")
        raise DataError(f"{shown}:{line}: {where} holds {short(cell)}", *_fault(cell), ".")


def _fault(cell: str) -> Note:
    """Return what is wrong with a cell that is not a number, and what to do about it, in pieces."""
    if COMMAS.fullmatch(cell):
        return (
            "; write a point for the decimal comma and nothing between thousands, or use ",
            Argument("decimal", ","),
            " or ",
            Argument("decimal", "."),
        )
    if PERCENT.fullmatch(cell):
        return ("; other cells of the column have no percent sign: write it in all of them, or in none",)
    if SPACED.fullmatch(cell):
        return ("; write nothing between thousands",)
    if _is_number(cell) and "_" in cell:
        return (f"; write it without '_', as in {cell.strip().replace('_', '')}",)
    if _is_number(cell) and not cell.isascii():
        return ("; write numbers in the digits 0 to 9, with '-' for minus",)
    return (NO_NUMBER,)


# Labels


@dataclass(frozen=True)
class LabelLines:
    """Labels of a text file: ids, or None where labels are in the order of the rows, and None for what is unknown."""

    ids: tuple[str, ...] | None
    labels: tuple[str | None, ...]
    notes: tuple[Note, ...] = ()


def read_label_lines(place: str, text: TextFormat, n_samples: int) -> LabelLines:
    """Return the labels of a text file with lines ``id,label``, or ``label`` for each of the samples."""
    check_file(place)
    try:
        file = _text_file(place, text, blanks=False)  # labels may be of two words
    except OSError as error:
        raise DataError(f"{place}: {error.strerror or error}") from error
    shown = file.shown
    rows = _without_further_columns(file.rows)
    width = len(rows[0][1])
    if width == 1:
        _check_label_delimiter(shown, rows, file.delimiter)
    for line, row in rows:
        if width not in (1, 2) or len(row) != width:
            raise DataError(
                f"{shown}:{line}: lines of true labels are 'label' or 'id,label', all of the same kind; remove other "
                "columns."
            )
    header = _is_label_header(rows, n_samples) if text.header is None else text.header
    body = rows[1:] if header else rows
    ids = None if width == 1 else _ids(shown, [(line, row[0]) for line, row in body])
    if ids is None and len(body) != n_samples:
        below = f" below the header {short(rows[0][1][0])}" if header else ""
        raise DataError(
            f"{shown}: there are {len(body)} labels{below} for {n_samples} samples; write one for each, or lines "
            "'id,label'."
        )
    cells = [row[-1].strip() for _, row in body]
    labels = tuple(None if cell.lower() in NO_LABEL else cell for cell in cells)
    return LabelLines(ids, labels, tuple(file.notes))


def _without_further_columns(rows: TextRows) -> TextRows:
    """Return lines of labels as ``cluster`` writes them, ``id,label,silhouette,...``, with the first two cells only."""
    first = [cell.strip() for cell in rows[0][1]]
    if first[:3] != ["id", "label", "silhouette"]:
        return rows
    return [(line, row[:2] if len(row) == len(first) else row) for line, row in rows]


def _is_label_header(rows: TextRows, n_samples: int) -> bool:
    """Whether the first line names columns: by a known name, by text above numbers, or because it is one too many."""
    first = rows[0][1]
    others = [row[-1].strip() for _, row in rows[1:] if row[-1].strip().lower() not in NO_LABEL]
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
    pairs = [row[0].split() for _, row in rows if row]
    if delimiter != " " and len({pair[0] for pair in pairs if len(pair) == 2}) == len(rows) > 1:
        raise DataError(
            f"{shown}:{rows[0][0]}: there is no {delimiter!r} in the first line, and a blank seems to separate id and "
            "label in all of them; use ",
            Argument("delimiter", " "),
            f", which applies to all text files, or separate them with {delimiter!r}.",
        )
