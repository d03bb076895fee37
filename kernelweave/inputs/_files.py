"""Views from files: tables of numbers with the names of their rows, checked, and brought into one order.

``read_tables`` reads a file into one or more tables; ``align_tables`` matches the rows of several by their ids. Nothing
is repaired: a cell that is no number, a row of another length, an id that occurs twice or in one file alone is an error
that gives file and line.
"""

import csv
import gzip
import io
import math
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

from kernelweave.foundation._errors import DataError
from kernelweave.foundation._typing import Array

#: Names of a first column that holds ids.
ID_NAMES = frozenset({"", "id", "ids", "index", "key", "name", "row", "sample", "sample_id", "sampleid", "barcode"})
# Cells that say a value is missing.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
TEXT = (".csv", ".tsv", ".txt")
DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t", "-": ","}
# Longest cell, and how many examples a message gives.
LONGEST_CELL, EXAMPLES = 10_000, 3

Rows = Literal["same", "common"]


@dataclass(frozen=True)
class Table:
    """Numbers of samples: one row each."""

    name: str
    values: Array  # ndarray or csr_array
    ids: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    source: str = ""

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


def read_tables(place: str, text: TextFormat | None = None) -> list[Table]:
    """Return the tables of a file, given as ``FILE``, ``NAME=FILE``, or ``FILE:KEY`` for one array of several."""
    name, path, key = _parted(place)
    suffix = "-" if path == "-" else "".join(Path(path).suffixes[-2:] if path.endswith(".gz") else [Path(path).suffix])
    reader = _READERS.get(suffix.lower())
    if reader is None:
        known = ", ".join(sorted(set(_READERS) - {"-"}))
        raise DataError(f"{path}: files of type {suffix or 'without ending'!r} are not read; use one of {known}.")
    if path != "-" and not Path(path).is_file():
        raise DataError(f"{path}: there is no such file.")
    try:
        found = list(reader(path, text or TextFormat()))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    if key is not None:
        found = [table for table in found if table.name == key]
        if not found:
            raise DataError(f"{path}: there is no table called {key!r} in it.")
    if not found:
        raise DataError(f"{path}: there is no table of numbers in it.")
    if name is not None:
        found = [replace(table, name=name if len(found) == 1 else f"{name}.{table.name}") for table in found]
    return found


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


def _read_text(path: str, text: TextFormat) -> Iterator[Table]:
    shown = "standard input" if path == "-" else path
    raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    if path.endswith(".gz"):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise _unreadable(path, "gzip file", error) from error
    lines = _decoded(shown, raw)
    delimiter = text.delimiter or DELIMITERS["-" if path == "-" else Path(path.removesuffix(".gz")).suffix.lower()]
    rows = _cells(shown, lines, delimiter)
    if not rows:
        raise DataError(f"{shown}:1: the file is empty.")
    name = "stdin" if path == "-" else Path(path.removesuffix(".gz")).stem
    yield _table(shown, name, rows, text, delimiter)


def _decoded(shown: str, raw: bytes) -> str:
    if b"\0" in raw:
        line = raw[: raw.index(b"\0")].count(b"\n") + 1
        raise DataError(f"{shown}:{line}: this is no text file: it holds a zero byte.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DataError(f"{shown}:{line}: byte {raw[error.start]:#04x} is no UTF-8 text; save it as such.") from error


def _cells(shown: str, lines: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Return line number and cells of every line that is not empty."""
    reader = csv.reader(io.StringIO(lines, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    found = []
    begun = 1
    try:
        for row in reader:
            if row and not (len(row) == 1 and not row[0].strip()):
                found.append((begun, row))
            begun = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{shown}:{reader.line_num}: {error}.") from error
    return found


def _table(shown: str, name: str, rows: list[tuple[int, list[str]]], text: TextFormat, delimiter: str) -> Table:
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
        ids = _ids(shown, [(line, row[place].strip()) for line, row in body])
    keep = [column for column in range(width) if column != place]
    if not keep:
        raise DataError(f"{shown}:{body[0][0]}: there is a column of ids and no column of numbers.")
    values = np.empty((len(body), len(keep)))
    for i, (line, row) in enumerate(body):
        try:
            values[i] = [float(row[column]) for column in keep]
        except ValueError:
            _complain_of_cell(shown, line, row, keep, names)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        i, j = bad[0]
        _complain_of_cell(shown, body[i][0], body[i][1], [keep[j]], names)
    columns = None if names is None else tuple(names[column] for column in keep)
    return Table(name, values, ids, columns, shown)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_header(first: list[str], ids: str | None) -> bool:
    """Whether a line holds names: ids, or some text where numbers belong."""
    place = int(ids) - 1 if ids is not None and ids.isdigit() else 0
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
        if asked.isdigit() and 1 <= int(asked) <= len(row):
            return int(asked) - 1
        raise DataError(
            f"{shown}:1: there is no column {asked!r} for ids; give a name of the header or a number from 1 to "
            f"{len(row)}."
        )
    if len(row) == 1:
        return None
    named = names is not None and names[0].lower() in ID_NAMES
    return 0 if named or (not _is_number(row[0]) and row[0].strip().lower() not in MISSING) else None


def _ids(shown: str, found: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    for line, name in found:
        if not name:
            raise DataError(f"{shown}:{line}: the id of this row is empty.")
        if name in seen:
            raise DataError(f"{shown}:{line}: the id {_short(name)} was already that of line {seen[name]}.")
        seen[name] = line
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
        if _is_number(cell) and math.isfinite(float(cell)):
            continue
        where = f"column {column + 1}" + (f" ({_short(names[column])})" if names is not None else "")
        if cell.strip().lower() in MISSING:
            raise DataError(f"{shown}:{line}: {where} has no value; fill it in or leave the row out.")
        raise DataError(f"{shown}:{line}: {where} holds {_short(cell)}, which is no finite number.")


def _short(text: str, most: int = 40) -> str:
    return repr(text if len(text) <= most else f"{text[:most]}...")


# Arrays


def _read_npy(path: str, text: TextFormat) -> Iterator[Table]:
    try:
        with open(path, "rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:
        raise _unreadable(path, "NumPy array", error) from error
    yield _numbers(path, Path(path).stem, array)


def _read_npz(path: str, text: TextFormat) -> Iterator[Table]:
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    content = io.BytesIO(member.read())
                arrays[name.removesuffix(".npy")] = np.lib.format.read_array(content, allow_pickle=False)
    except Exception as error:
        raise _unreadable(path, "NumPy archive", error) from error
    yield from _arrays(path, arrays)


def _read_mat(path: str, text: TextFormat) -> Iterator[Table]:
    from scipy.io import loadmat

    try:
        arrays = loadmat(path)
    except NotImplementedError as error:
        raise DataError(f"{path}: MATLAB files of version 7.3 are not read; save with -v7.") from error
    except Exception as error:
        raise _unreadable(path, "MATLAB file", error) from error
    yield from _arrays(path, {name: array for name, array in arrays.items() if not name.startswith("__")})


def _read_mtx(path: str, text: TextFormat) -> Iterator[Table]:
    from scipy.io import mmread

    try:
        matrix = mmread(path)
    except Exception as error:
        raise _unreadable(path, "Matrix Market file", error) from error
    yield _numbers(path, Path(path).name.split(".")[0], matrix)


def _arrays(path: str, arrays: dict[str, Any]) -> Iterator[Table]:
    """Yield a table for every matrix; a list called ids or labels of rows belongs to all of them."""
    ids = None
    if "ids" in arrays and np.ndim(arrays["ids"]) == 1 and np.asarray(arrays["ids"]).dtype.kind in "UiuS":
        ids = _unique(path, [str(name) for name in arrays["ids"]])
    for name, array in arrays.items():
        if (
            np.ndim(array) == 2
            and (sp.issparse(array) or np.asarray(array).dtype.kind in "fiub")
            and 1 not in array.shape
        ):
            table = _numbers(path, name, array)
            if ids is not None and len(ids) != table.n_samples:
                raise DataError(f"{path}: there are {len(ids)} ids for the {table.n_samples} rows of {name!r}.")
            yield replace(table, ids=ids)


def _unique(path: str, ids: Sequence[str]) -> tuple[str, ...]:
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            raise DataError(f"{path}: the id {_short(name)} occurs more than once.")
        seen.add(name)
    return tuple(ids)


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


def _read_parquet(path: str, text: TextFormat) -> Iterator[Table]:
    pandas = _wanted("pandas", path)
    _wanted("pyarrow", path)
    try:
        frame = pandas.read_parquet(path)
    except Exception as error:
        raise _unreadable(path, "Parquet file", error) from error
    ids = None if isinstance(frame.index, pandas.RangeIndex) else [str(name) for name in frame.index]
    asked = text.ids
    first = frame.columns[0] if len(frame.columns) else None
    if asked not in (None, "none") and asked not in frame.columns:
        raise DataError(f"{path}: there is no column {asked!r} for ids.")
    column = asked if asked not in (None, "none") else None
    if column is None and asked is None and ids is None and first is not None:
        texts = frame[first].dtype.kind in "OTU" or str(frame[first].dtype).startswith(("str", "string"))
        column = first if str(first).lower() in ID_NAMES or texts else None
    if column is not None:
        ids, frame = [str(name) for name in frame[column]], frame.drop(columns=[column])
    for name in frame.columns:
        if frame[name].dtype.kind not in "fiub":
            raise DataError(f"{path}: column {_short(str(name))} holds {frame[name].dtype}, no numbers.")
    known = None if ids is None else _unique(path, ids)
    yield _numbers(path, Path(path).stem, frame.to_numpy(np.float64), known, tuple(map(str, frame.columns)))


def _read_h5ad(path: str, text: TextFormat) -> Iterator[Table]:
    anndata = _wanted("anndata", path)
    try:
        data = anndata.read_h5ad(path)
    except Exception as error:
        raise _unreadable(path, "h5ad file", error) from error
    yield _annotated(path, Path(path).stem, data)


def _read_h5mu(path: str, text: TextFormat) -> Iterator[Table]:
    mudata = _wanted("mudata", path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about defaults of later versions
            data = mudata.read_h5mu(path)
    except Exception as error:
        raise _unreadable(path, "h5mu file", error) from error
    for name, part in data.mod.items():
        yield _annotated(path, str(name), part)


def _annotated(path: str, name: str, data: Any) -> Table:
    ids = _unique(path, [str(each) for each in data.obs_names])
    return _numbers(path, name, data.X, ids, tuple(map(str, data.var_names)))


def _wanted(package: str, path: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError as error:
        raise DataError(f"{path}: reading this needs {package}; install it with kernelweave[io].") from error


_READERS: dict[str, Callable[[str, TextFormat], Iterator[Table]]] = {
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
            sizes = ", ".join(f"{table.source} has {table.n_samples}" for table in tables)
            raise DataError(
                f"The files have no ids and differ in the number of rows: {sizes}. Give them a column of ids."
            )
        return list(tables)
    if len(named) < len(tables):
        bare = next(table for table in tables if table.ids is None)
        raise DataError(
            f"{named[0].source} has ids and {bare.source} has none, so their rows cannot be matched; give all files "
            "ids, or none (--ids none)."
        )
    first = named[0]
    wanted = list(first.ids or ())
    if rows == "common":
        shared = set.intersection(*(set(table.ids or ()) for table in named))
        wanted = [name for name in wanted if name in shared]
        if not wanted:
            raise DataError(f"No id occurs in all files: {first.source} begins with {_short((first.ids or ('',))[0])}.")
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
                f"{len(missing)} id(s) of {one.source} are missing in {where.source}, such as {examples}; complete the "
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
                f"{seen[table.name]} and {table.source} would both be view {table.name!r}; name them: "
                f"{table.name}_2={table.source}."
            )
        seen[table.name] = table.source
