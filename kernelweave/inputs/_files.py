"""Views from files: tables of numbers with the names of their rows, checked, and brought into one order.

``read_tables`` reads a file into one or more tables; ``align_tables`` matches the rows of several by their ids;
``read_label_lines`` reads labels. Nothing is repaired: a cell that is no number, a row of another length, an id that
occurs twice or in one file alone is an error that gives file and line.
"""

import csv
import gzip
import io
import math
import re
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation._errors import DataError, ParameterError
from kernelweave.foundation._typing import Array

#: Names of a first column that holds ids.
ID_NAMES = frozenset({"", "id", "ids", "index", "key", "name", "row", "sample", "sample_id", "sampleid", "barcode"})
#: Names of a column that holds labels.
LABEL_NAMES = frozenset(
    {"label", "labels", "class", "classes", "cluster", "clusters", "group", "category", "target", "truth", "type", "y"}
)
# Cells that say a value is missing.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
TEXT = (".csv", ".tsv", ".txt")
DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t", "-": ","}
# How many examples a message gives.
EXAMPLES = 3
# Numbers with commas for decimals or thousands: meant as numbers, not as names.
COMMAS = re.compile(r"\s*[+-]?[0-9.]*(,[0-9]+)+[0-9.]*([eE][+-]?[0-9]+)?\s*")

TextRows = list[tuple[int, list[str]]]  # line number and cells
Rows = Literal["same", "common"]


@dataclass(frozen=True)
class Table:
    """Numbers of samples: one row each."""

    name: str
    values: Array  # ndarray or csr_array
    ids: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    source: str = ""
    part: str = ""  # its name in a file of several

    @property
    def place(self) -> str:
        """The file, and the table's name in it where there are several."""
        return f"{self.source}:{self.part}" if self.part else self.source

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])


@dataclass(frozen=True)
class TextFormat:
    """How text files are to be read; None leaves it to the file's name and first line."""

    delimiter: str | None = None
    header: bool | None = None
    ids: str | None = None  # name or number of the column, or "none"

    def __post_init__(self) -> None:
        mark = self.delimiter
        if mark is not None and (len(mark) != 1 or mark in '"\r\n\0'):
            raise ParameterError(f"--delimiter {mark!r}: give one character, such as ';', or tab for a tab.")


def read_tables(place: str, text: TextFormat | None = None) -> list[Table]:
    """Return the tables of a file, given as ``FILE``, ``NAME=FILE``, or ``FILE:KEY`` for one array of several."""
    name, path, key = _parted(place)
    suffix = "-" if path == "-" else "".join(Path(path).suffixes[-2:] if path.endswith(".gz") else [Path(path).suffix])
    _check_file(path)
    reader = _READERS.get(suffix.lower())
    if reader is None:
        known = ", ".join(sorted(set(_READERS) - {"-"}))
        raise DataError(f"{path}: files of type {suffix or 'without ending'!r} are not read; use one of {known}.")
    try:
        found = list(reader(path, text or TextFormat(), key))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    if len(found) > 1 or key is not None:
        found = [replace(table, part=table.name) for table in found]
    if key is not None:
        found = [table for table in found if table.name == key]
        if not found:
            raise DataError(f"{path}: there is no table called {key!r} in it.")
    if not found:
        raise DataError(f"{path}: there is no table of numbers in it.")
    if name is not None:
        found = [replace(table, name=name if len(found) == 1 else f"{name}.{table.name}") for table in found]
    return found


def _check_file(path: str) -> None:
    if path != "-" and Path(path).is_dir():
        raise DataError(f"{path}: this is a folder; name a file in it.")
    if path != "-" and not Path(path).is_file():
        raise DataError(f"{path}: there is no such file.")


def _parted(place: str) -> tuple[str | None, str, str | None]:
    """Part ``NAME=FILE:KEY``; a file of that very name goes first."""
    if place == "-" or Path(place).exists():
        return None, place, None
    name, equals, rest = place.partition("=")
    path, key = (rest, None) if equals else (place, None)
    if not Path(path).exists() and ":" in path:
        front, _, back = path.rpartition(":")
        if Path(front).exists():
            path, key = front, back
    return (name if equals else None), path, key


# Text


def _read_text(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    shown, delimiter, rows = _text_rows(path, text)
    name = "stdin" if path == "-" else Path(path.removesuffix(".gz")).stem
    yield _table(shown, name, rows, text, delimiter)


def _text_rows(path: str, text: TextFormat) -> tuple[str, str, TextRows]:
    """Return how messages call a text file, what parts its cells, and its rows."""
    shown = "standard input" if path == "-" else path
    raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    if path == "-" and not raw.strip():
        raise DataError(f"{shown}: there is nothing in it; note that it can be given once.")
    if path.endswith(".gz"):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise _unreadable(path, "gzip file", error) from error
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
    found: TextRows = []
    empty: list[int] = []
    begun = 1
    try:
        for row in reader:
            if len(row) > 1 or last[0].strip():
                if empty and found and len(found[0][1]) == 1:
                    found += [(line, [""]) for line in empty]
                found.append((begun, row))
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
        raise DataError(f"{shown}:{reader.line_num}: {error}.") from error
    return found


def _open_quote(lines: str, delimiter: str, begun: int, ended: int) -> int | None:
    """Return the line of the quote that a row, broken off at line ``ended``, does not close."""
    opened, state = 0, "start"
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
                opened, state = number, "quoted"
            elif state == "start" and mark != " ":
                state = "plain"
    return opened if state == "quoted" else None


def _table(shown: str, name: str, rows: TextRows, text: TextFormat, delimiter: str) -> Table:
    line, first = rows[0]
    if len(first) == 1:
        _complain_of_delimiter(shown, line, first[0], delimiter)
    header = _is_header(first, text.ids) if text.header is None else text.header
    names = [cell.strip() for cell in first] if header else None
    body = rows[1:] if header else rows
    if not body:
        raise DataError(f"{shown}:{line}: there is a header of {len(first)} column(s) and no rows.")
    width = len(first)
    for line, row in body:
        if len(row) != width:
            raise DataError(f"{shown}:{line}: this row has {len(row)} cell(s), the first one has {width}.")
    place = _id_column(shown, names, body[0][1], text.ids)
    ids = None
    if place is not None:
        ids = _ids(shown, [(line, row[place]) for line, row in body])
    keep = [column for column in range(width) if column != place]
    if not keep:
        raise DataError(
            f"{shown}:{body[0][0]}: there is a column of ids and no column of numbers; add some, or say --ids none if "
            "it is data."
        )
    if width == 1 and not any(_is_number(row[0]) or row[0].strip().lower() in MISSING for _, row in body):
        raise DataError(
            f"{shown}:{body[0][0]}: there is no column of numbers: the only one holds {_short(body[0][1][0])}."
        )
    values = np.empty((len(body), len(keep)))
    for i, (line, row) in enumerate(body):
        cells = row if place is None else [row[column] for column in keep]
        try:
            values[i] = [float(cell) for cell in cells]
        except ValueError:
            _complain_of_cell(shown, line, row, keep, names)
        whole = "".join(cells)
        if "_" in whole or not whole.isascii():  # Python takes some of these for numbers
            _complain_of_cell(shown, line, row, keep, names)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        i, j = bad[0]
        _complain_of_cell(shown, body[i][0], body[i][1], [keep[j]], names)
    columns = None if names is None else tuple(names[column] for column in keep)
    return Table(name, values, ids, columns, shown)


def _is_number(cell: str) -> bool:
    """Whether a cell is meant as a number, be it one that is refused."""
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


def _is_header(first: list[str], ids: str | None) -> bool:
    """Whether a line holds names: ids, or some text where numbers belong."""
    place = int(ids) - 1 if ids is not None and ids.isascii() and ids.isdigit() else 0
    if first[0].strip().lower() in ID_NAMES and len(first) > 1:
        return True
    rest = [cell for i, cell in enumerate(first) if i != place] if len(first) > 1 else first
    return any(not _is_number(cell) and cell.strip().lower() not in MISSING for cell in rest)


def _id_column(shown: str, names: list[str] | None, row: list[str], asked: str | None) -> int | None:
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
    named = names is not None and names[0].lower() in ID_NAMES
    if len(row) == 1:
        return 0 if named else None
    return 0 if named or (not _is_number(row[0]) and row[0].strip().lower() not in MISSING) else None


def _ids(shown: str, found: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    """Return the ids of lines without the spaces around them."""
    seen: dict[str, tuple[int, str]] = {}
    for line, cell in found:
        name = cell.strip()
        if not name:
            raise DataError(f"{shown}:{line}: the id of this row is empty.")
        if name in seen:
            before, other = seen[name]
            spaces = "" if cell == other else "; spaces around ids do not count"
            raise DataError(f"{shown}:{line}: the id {_short(name)} was already that of line {before}{spaces}.")
        seen[name] = (line, cell)
    return tuple(seen)


def _complain_of_delimiter(shown: str, line: int, cell: str, delimiter: str) -> None:
    counts = {mark: cell.count(mark) for mark in (",", ";", "\t", "|") if mark != delimiter}
    mark = max(counts, key=lambda each: counts[each])
    if counts[mark]:
        raise DataError(
            f"{shown}:{line}: there is no {delimiter!r} in the first line but {counts[mark]} {mark!r}; say so with "
            f"--delimiter {_typed(mark)}."
        )


def _typed(mark: str) -> str:
    return "tab" if mark == "\t" else f"'{mark}'"


def _complain_of_cell(shown: str, line: int, row: list[str], columns: Iterable[int], names: list[str] | None) -> None:
    for column in columns:
        cell = row[column]
        if _is_plain_number(cell):
            continue
        where = f"column {column + 1}" + (f" ({_short(names[column])})" if names is not None else "")
        if cell.strip().lower() in MISSING:
            raise DataError(f"{shown}:{line}: {where} has no value; fill it in or leave the row out.")
        remedy = ", which is no finite number"
        if COMMAS.fullmatch(cell):
            remedy = "; write a point for the decimal comma, and nothing between thousands"
        elif _is_number(cell) and "_" in cell:
            remedy = f"; write it without '_', as {cell.strip().replace('_', '')}"
        elif _is_number(cell) and not cell.isascii():
            remedy = "; write numbers in the digits 0 to 9, with '-' for minus"
        raise DataError(f"{shown}:{line}: {where} holds {_short(cell)}{remedy}.")


def _short(text: str, most: int = 40) -> str:
    return repr(text if len(text) <= most else f"{text[:most]}...")


# Labels


def read_label_lines(place: str, text: TextFormat, n_samples: int) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return ids, or None, and labels of a text file with lines ``id,label``, or ``label`` for each of the samples."""
    _check_file(place)
    try:
        shown, delimiter, rows = _text_rows(place, text)
    except OSError as error:
        raise DataError(f"{place}: {error.strerror or error}") from error
    width = len(rows[0][1])
    if width == 1:
        _complain_of_label_delimiter(shown, rows, delimiter)
    for line, row in rows:
        if width not in (1, 2) or len(row) != width:
            raise DataError(f"{shown}:{line}: lines of true labels are 'label' or 'id,label', all of them alike.")
    header = _is_label_header(rows, n_samples) if text.header is None else text.header
    body = rows[1:] if header else rows
    ids = None if width == 1 else _ids(shown, [(line, row[0]) for line, row in body])
    for line, row in body:
        if not row[-1].strip():
            of = "" if ids is None else f" of {_short(row[0].strip())}"
            raise DataError(f"{shown}:{line}: the label{of} is empty; fill it in.")
    if ids is None and len(body) != n_samples:
        said = f" below the header {_short(rows[0][1][0])}" if header else ""
        raise DataError(
            f"{shown}: there are {len(body)} labels{said} for {n_samples} samples; write one for each, or lines "
            "'id,label'."
        )
    return ids, tuple(row[-1].strip() for _, row in body)


def _is_label_header(rows: TextRows, n_samples: int) -> bool:
    """Whether the first line names columns: by a known name, by text above numbers, or because it is one too many."""
    first, others = rows[0][1], [row[-1].strip() for _, row in rows[1:]]
    if len(first) == 2 and first[0].strip().lower() in ID_NAMES:
        return True
    name = first[-1].strip()
    if not others or name in others:
        return False
    if len(first) == 1 and (name.lower() in LABEL_NAMES or len(others) == n_samples):
        return True
    return not _is_number(name) and all(map(_is_number, others))


def _complain_of_label_delimiter(shown: str, rows: TextRows, delimiter: str) -> None:
    """Refuse labels most of which look like an id and a label."""
    for mark in (",", ";", "\t", "|"):
        if mark != delimiter and 2 * sum(row[0].count(mark) == 1 for _, row in rows) > len(rows):
            raise DataError(
                f"{shown}:{rows[0][0]}: there is no {delimiter!r} in the first line but {mark!r}; say so with "
                f"--delimiter {_typed(mark)}, which holds for all text files, or part id and label by {delimiter!r}."
            )


# Arrays


def _read_npy(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    try:
        with open(path, "rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:
        raise _unreadable(path, "NumPy array", error) from error
    yield _numbers(path, Path(path).stem, array)


def _read_npz(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    content = io.BytesIO(member.read())
                arrays[name.removesuffix(".npy")] = np.lib.format.read_array(content, allow_pickle=False)
        matrix = _saved_sparse(path) if {"format", "shape", "data"} <= set(arrays) else None
    except Exception as error:
        raise _unreadable(path, "NumPy archive", error) from error
    if matrix is not None:
        yield _numbers(path, Path(path).stem, matrix)
    else:
        yield from _arrays(path, arrays, key)


def _saved_sparse(path: str) -> Any:
    """Return the matrix of ``scipy.sparse.save_npz``, its indices checked."""
    matrix = sp.load_npz(path)
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    return matrix


def _read_mat(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    from scipy.io import loadmat

    try:
        arrays = loadmat(path)
    except NotImplementedError as error:
        raise DataError(f"{path}: MATLAB files of version 7.3 are not read; save with -v7.") from error
    except Exception as error:
        raise _unreadable(path, "MATLAB file", error) from error
    known = {name: array for name, array in arrays.items() if not name.startswith("__")}
    yield from _arrays(path, known, key, vectors_are_matrices=True)


def _read_mtx(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    from scipy.io import mmread

    try:
        matrix = mmread(path)
    except Exception as error:
        raise _unreadable(path, "Matrix Market file", error) from error
    yield _numbers(path, Path(path).name.split(".")[0], matrix)


def _arrays(
    path: str, arrays: dict[str, Any], key: str | None, *, vectors_are_matrices: bool = False
) -> Iterator[Table]:
    """Yield a table for every matrix, or for that of the key; a list called ids names the rows of all of them."""
    ids = _id_list(path, arrays["ids"]) if "ids" in arrays and key != "ids" else None
    wanted = (
        [name for name in arrays if name != "ids" or ids is None] if key is None else [key] if key in arrays else []
    )
    for name in wanted:
        array = arrays[name]
        numeric = sp.issparse(array) or np.asarray(array).dtype.kind in "fiub"
        vector = vectors_are_matrices and key is None and 1 in np.shape(array)
        if np.ndim(array) != 2 or not numeric or vector:
            example = next((each for each in wanted if np.ndim(arrays[each]) == 2 and each != name), None)
            remedy = "" if example is None else f", or name the tables that are wanted, as {path}:{example}"
            raise DataError(
                f"{path}: the array {name!r} of shape {np.shape(array)} and type {array.dtype} is no table of numbers; "
                f"take it out{remedy}."
            )
        table = _numbers(path, name, array)
        if ids is not None and len(ids) != table.n_samples:
            raise DataError(f"{path}: there are {len(ids)} ids for the {table.n_samples} rows of {name!r}.")
        yield replace(table, ids=ids)


def _id_list(path: str, array: Any) -> tuple[str, ...]:
    """Return the ids of an array: text or whole numbers, one for each row."""
    found = np.asarray(array)
    flat = found.ravel() if found.ndim == 2 and 1 in found.shape else found  # MATLAB has no lists
    if flat.ndim == 1 and flat.dtype.kind == "O":  # MATLAB's cells
        flat = np.array([np.squeeze(each) if np.size(each) == 1 else np.nan for each in flat])
    if flat.ndim != 1 or flat.dtype.kind not in "UiuS":
        raise DataError(
            f"{path}: the array 'ids' of shape {found.shape} and type {found.dtype} holds no ids; make it a list of "
            "text or of whole numbers."
        )
    return _unique(path, [name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in flat])


def _unique(path: str, ids: Sequence[str]) -> tuple[str, ...]:
    """Return ids without the spaces around them, if none is empty and none occurs twice."""
    seen: dict[str, int] = {}
    for row, name in enumerate(map(str.strip, ids), 1):
        if not name:
            raise DataError(f"{path}: the id of row {row} is empty.")
        if name in seen:
            spaces = "" if ids[row - 1] == ids[seen[name] - 1] else "; spaces around ids do not count"
            raise DataError(
                f"{path}: the id {_short(name)} occurs more than once, in rows {seen[name]} and {row}{spaces}."
            )
        seen[name] = row
    return tuple(seen)


def _numbers(path: str, name: str, array: Any, ids: Any = None, columns: Any = None) -> Table:
    """Check a matrix of numbers."""
    shown = f"{path} ({name})"
    if np.ndim(array) != 2:
        raise DataError(f"{shown}: this array has shape {np.shape(array)}; a table has rows and columns.")
    if sp.issparse(array):
        values: Any = sp.csr_array(array, dtype=np.float64)
        numbers = values.data
    else:
        if np.asarray(array).dtype.kind not in "fiub":
            raise DataError(f"{shown}: this array holds {np.asarray(array).dtype}, no numbers.")
        values = numbers = np.ascontiguousarray(array, dtype=np.float64)
    if not all(values.shape):
        raise DataError(f"{shown}: this table of shape {values.shape} is empty.")
    if not np.isfinite(numbers).all():
        row = int(np.argwhere(~np.isfinite(numbers))[0][0]) + 1 if not sp.issparse(values) else None
        where = f" in row {row}" if row else ""
        raise DataError(f"{shown}: there are missing or infinite values{where}; fill them in or leave the rows out.")
    return Table(name, values, ids, columns, path)


def _unreadable(path: str, kind: str, error: Exception) -> DataError:
    """Return the error for a file whose reader gave up, in whatever way: parsers of other projects have many."""
    reason = " ".join(str(error).split())[:120]
    return DataError(f"{path}: this is no readable {kind} ({reason}).")


# Other programs


def _read_parquet(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    pandas = _wanted("pandas", path)
    _wanted("pyarrow", path)
    try:
        frame = pandas.read_parquet(path)
    except Exception as error:
        raise _unreadable(path, "Parquet file", error) from error
    ids, frame = _parquet_ids(path, frame, text.ids)
    for name in frame.columns:
        if frame[name].dtype.kind not in "fiub":
            raise DataError(f"{path}: column {_short(str(name))} holds {frame[name].dtype}, no numbers.")
    if not len(frame.columns):
        raise DataError(f"{path}: there is no column of numbers.")
    values = frame.to_numpy(np.float64, na_value=np.nan)
    yield _numbers(path, Path(path).stem, values, ids, tuple(map(str, frame.columns)))


def _parquet_ids(path: str, frame: Any, asked: str | None) -> tuple[tuple[str, ...] | None, Any]:
    """Return the ids of a frame, from its index or a column, and the frame without that column."""
    index = frame.index
    levels = {str(name): place for place, name in enumerate(index.names) if name is not None}
    if asked == "none":
        return None, frame
    if asked is not None:
        if asked in frame.columns:
            return _present_ids(path, frame[asked]), frame.drop(columns=[asked])
        if asked in levels:
            return _present_ids(path, index.get_level_values(levels[asked])), frame
        raise DataError(f"{path}: there is no column {asked!r} for ids.")
    if index.nlevels > 1:
        shown = ", ".join(map(repr, levels)) or "without names"
        raise DataError(
            f"{path}: the index has {index.nlevels} levels ({shown}); name one column of ids with --ids COLUMN."
        )
    counted = hasattr(index, "step") and (index.start, index.step) == (0, 1)  # as it is where nobody made one
    if not (counted and index.name is None):
        return _present_ids(path, index), frame
    if len(frame.columns):
        first = frame.columns[0]
        texts = frame[first].dtype.kind in "OTU" or str(frame[first].dtype).startswith(("str", "string"))
        if str(first).lower() in ID_NAMES or texts:
            return _present_ids(path, frame[first]), frame.drop(columns=[first])
    return None, frame


def _present_ids(path: str, names: Any) -> tuple[str, ...]:
    missing = np.flatnonzero(np.asarray(names.isna()))
    if len(missing):
        called = "" if names.name is None else f" ({_short(str(names.name))})"
        raise DataError(f"{path}: the id of row {missing[0] + 1}{called} is missing; fill it in or leave the row out.")
    return _unique(path, [str(name) for name in names])


def _read_h5ad(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    anndata = _wanted("anndata", path)
    _check_hdf5(path, "AnnData", ("obs", "var"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # names that occur twice are an error below
            data = anndata.read_h5ad(path)
    except Exception as error:
        raise _unreadable(path, "h5ad file", error) from error
    yield _annotated(path, path, Path(path).stem, data)


def _read_h5mu(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    mudata = _wanted("mudata", path)
    _check_hdf5(path, "MuData", ("mod",))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about defaults of later versions
            warnings.simplefilter("ignore", UserWarning)  # names that occur twice are an error below
            data = mudata.read_h5mu(path)
    except Exception as error:
        raise _unreadable(path, "h5mu file", error) from error
    for name, part in data.mod.items():
        if key in (None, name):
            yield _annotated(path, f"{path}:{name}", str(name), part)


def _check_hdf5(path: str, kind: str, groups: tuple[str, ...]) -> None:
    """Refuse an HDF5 file of another program."""
    h5py = _wanted("h5py", path)
    try:
        with h5py.File(path, "r") as file:
            missing = [name for name in groups if name not in file]
    except Exception as error:
        raise _unreadable(path, f"{kind} file", error) from error
    if missing:
        raise DataError(f"{path}: this is no {kind} file: there is no {missing[0]!r} in it.")


def _annotated(path: str, shown: str, name: str, data: Any) -> Table:
    if data.X is None:
        raise DataError(f"{shown}: there are no numbers: X is missing.")
    ids = _unique(shown, [str(each) for each in data.obs_names])
    return _numbers(path, name, data.X, ids, tuple(map(str, data.var_names)))


def _wanted(package: str, path: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError as error:
        raise DataError(f"{path}: reading this needs {package}; install it with kernelweave[io].") from error


_READERS: dict[str, Callable[[str, TextFormat, str | None], Iterator[Table]]] = {
    **dict.fromkeys((*TEXT, *(f"{suffix}.gz" for suffix in TEXT), "-"), _read_text),
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".mtx": _read_mtx,
    ".mtx.gz": _read_mtx,
    ".parquet": _read_parquet,
    ".h5ad": _read_h5ad,
    ".h5mu": _read_h5mu,
}


# Several tables


def align_tables(tables: Sequence[Table], rows: Rows = "same") -> list[Table]:
    """Return the tables with their rows in the order of the first.

    ``rows="same"`` wants the same ids in all; ``"common"`` keeps those that occur in all of them. Tables without ids
    have to be of one length.
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
            f"{named[0].place} has ids and {bare.place} has none, so their rows cannot be matched; give all files "
            "ids, or none (--ids none)."
        )
    first = named[0]
    wanted = list(first.ids or ())
    if rows == "common":
        shared = set.intersection(*(set(table.ids or ()) for table in named))
        wanted = [name for name in wanted if name in shared]
        if not wanted:
            raise DataError(f"No id occurs in all files: {first.place} begins with {_short((first.ids or ('',))[0])}.")
    else:
        for other in named[1:]:
            _same_ids(first, other)
    return [_in_order(table, wanted) for table in named]


def _same_ids(first: Table, other: Table) -> None:
    ours, theirs = set(first.ids or ()), set(other.ids or ())
    for one, missing in ((first, ours - theirs), (other, theirs - ours)):
        if missing:
            where = other if one is first else first
            examples = ", ".join(_short(name) for name in [n for n in one.ids or () if n in missing][:EXAMPLES])
            raise DataError(
                f"{len(missing)} id(s) of {one.place} are missing in {where.place}, such as {examples}; complete the "
                "files, or keep what all have with --rows common."
            )


def _in_order(table: Table, wanted: Sequence[str]) -> Table:
    place = {name: i for i, name in enumerate(table.ids or ())}
    order = np.array([place[name] for name in wanted], dtype=np.intp)
    return replace(table, values=table.values[order], ids=tuple(wanted))


def _check_view_names(tables: Sequence[Table]) -> None:
    seen: dict[str, str] = {}
    for table in tables:
        if table.name in seen:
            raise DataError(
                f"{seen[table.name]} and {table.place} would both be view {table.name!r}; name them: "
                f"{table.name}_2={table.place}."
            )
        seen[table.name] = table.place
