"""Tables in files of arrays, and of other programs: NumPy, MATLAB, Matrix Market, Excel, Parquet, AnnData, MuData."""

import io
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.errors import Argument, DataError
from kernelweave.foundation.registry import package
from kernelweave.inputs.files.conventions import Note
from kernelweave.inputs.files.tables import (
    RawCells,
    Table,
    TextFormat,
    is_id_name,
    is_repeated,
    short,
    unique_ids,
    unreadable,
)
from kernelweave.inputs.files.text import table_of_cells

# How many names a message lists.
MOST_NAMES = 12


def read_npy(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    """Yield the table of a .npy file."""
    try:
        with open(path, "rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:
        raise unreadable(path, "NumPy array", error) from error
    yield _numbers(path, Path(path).stem, array, text)


def read_npz(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    """Yield the arrays of a .npz archive."""
    arrays: dict[str, Any] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.removesuffix(".npy"): name for name in archive.namelist()}
            sparse = {"format", "shape", "data"} <= set(names)
            for name, entry in names.items():
                if key is None or sparse or name in (key, "ids"):
                    with archive.open(entry) as member:
                        arrays[name] = _saved_array(path, name, io.BytesIO(member.read()))
        matrix = _saved_sparse(path) if sparse else None
    except DataError:
        raise
    except Exception as error:
        raise unreadable(path, "NumPy archive", error) from error
    if matrix is not None:
        yield _numbers(path, Path(path).stem, matrix, text)
    elif key is not None and key not in names:
        _refuse_key(path, key, list(names))
    else:
        yield from _arrays(path, arrays, text, key)


def _saved_array(path: str, name: str, content: io.BytesIO) -> Any:
    try:
        return np.lib.format.read_array(content, allow_pickle=False)
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        remedy = (
            "save ids.astype(str)"
            if name == "ids"
            else f"save {name}.astype(float), remove it, or name the table to read, as in {path}:NAME"
        )
        raise DataError(f"{path}: the array {name!r} is of type object, which cannot be read; {remedy}.") from error


def _refuse_key(path: str, key: str, names: list[str]) -> NoReturn:
    there = ", ".join(map(short, names[:MOST_NAMES])) + (" ..." if len(names) > MOST_NAMES else "")
    raise DataError(f"{path}: there is no table called {key!r} in it; it has {there or 'nothing'}.")


def _saved_sparse(path: str) -> Any:
    """Return the matrix of ``scipy.sparse.save_npz``, its indices checked."""
    matrix = sp.load_npz(path)
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    return matrix


def read_mat(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    """Yield the matrices of a MATLAB file."""
    from scipy.io import loadmat

    try:
        with sparse_matrices_allowed():
            arrays = loadmat(path)
    except NotImplementedError as error:
        raise DataError(f"{path}: MATLAB files of version 7.3 cannot be read; save with -v7.") from error
    except Exception as error:
        raise unreadable(path, "MATLAB file", error) from error
    known = {name: array for name, array in arrays.items() if not name.startswith("__")}
    yield from _arrays(path, known, text, key, vectors_are_matrices=True)


def read_mtx(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    """Yield the matrix of a Matrix Market file."""
    from scipy.io import mmread

    try:
        with sparse_matrices_allowed():
            matrix = mmread(path)
    except Exception as error:
        raise unreadable(path, "Matrix Market file", error) from error
    yield _numbers(path, Path(path).name.split(".")[0], matrix, text)


@contextmanager
def sparse_matrices_allowed() -> Iterator[None]:
    """Take sparse matrices or sparse arrays, whichever this version of SciPy returns, without its advice on them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        yield


def _arrays(
    path: str, arrays: dict[str, Any], text: TextFormat, key: str | None, *, vectors_are_matrices: bool = False
) -> Iterator[Table]:
    """Yield a table for every matrix, or for that of the key; a list called ids names the rows of all of them."""
    ids = _id_list(path, arrays["ids"]) if "ids" in arrays and key != "ids" else None
    if key is not None and key not in arrays:
        _refuse_key(path, key, list(arrays))
    wanted = [name for name in arrays if name != "ids" or ids is None] if key is None else [key]

    def is_table(array: Any) -> bool:
        numeric = sp.issparse(array) or np.asarray(array).dtype.kind in "fiub"
        return np.ndim(array) == 2 and numeric and not (vectors_are_matrices and key is None and 1 in np.shape(array))

    for name in wanted:
        array = arrays[name]
        if not is_table(array):
            example = next((each for each in wanted if is_table(arrays[each])), None)
            cells = [each for each in wanted if arrays[each].dtype.kind == "O"] if vectors_are_matrices else []
            remedy = "" if example is None else f", or name the tables to read, as in {path}:{example}"
            if example is None and cells:
                remedy = f", and save every matrix in the cells of {cells[0]!r} as a variable of its own"
            raise DataError(
                f"{path}: the array {name!r} of shape {np.shape(array)} and type {array.dtype} is not a table of "
                f"numbers; remove it{remedy}."
            )
        table = _numbers(path, name, array, text)
        if ids is not None and len(ids) != table.n_samples:
            raise DataError(f"{path}: there are {len(ids)} ids for the {table.n_samples} rows of {name!r}.")
        yield replace(table, ids=ids)


def _id_list(path: str, array: Any) -> tuple[str, ...]:
    """Return the ids of an array: text or whole numbers, one for each row."""
    stored = np.asarray(array)
    flat = stored.ravel() if stored.ndim == 2 and 1 in stored.shape else stored  # MATLAB has no lists
    if flat.ndim == 1 and flat.dtype.kind == "O":  # MATLAB's cells
        flat = np.array([np.squeeze(each) if np.size(each) == 1 else np.nan for each in flat])
    if flat.ndim != 1 or flat.dtype.kind not in "UiuS":
        raise DataError(
            f"{path}: the array 'ids' of shape {stored.shape} and type {stored.dtype} does not hold ids; "
            "make it a list of "
            "text or of whole numbers."
        )
    return unique_ids(path, [name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in flat])


def _numbers(
    path: str,
    name: str,
    array: Any,
    text: TextFormat,
    ids: Any = None,
    columns: Any = None,
    raw: RawCells | None = None,
) -> Table:
    """Check a matrix of numbers."""
    shown = f"{path} ({name})"
    if np.ndim(array) != 2:
        raise DataError(f"{shown}: this array has shape {np.shape(array)}; a table has rows and columns.")
    if sp.issparse(array):
        values: Any = sp.csr_array(array, dtype=np.float64)
        numbers = values.data
    else:
        if np.asarray(array).dtype.kind not in "fiub":
            raise DataError(f"{shown}: this array holds {np.asarray(array).dtype}, not numbers.")
        values = np.ascontiguousarray(array, dtype=np.float64)
        numbers = values
    if not all(values.shape):
        raise DataError(f"{shown}: this table of shape {values.shape} is empty.")
    refused = np.isinf(numbers) if text.mixed else ~np.isfinite(numbers)
    if refused.any():
        row = int(np.argwhere(refused)[0][0]) + 1 if not sp.issparse(values) else None
        where = f" in row {row}" if row else ""
        raise DataError(f"{shown}: there are missing or infinite values{where}; fill them in or remove the rows.")
    return Table(name, values, ids, columns, path, raw=raw)


# Other programs


def read_parquet(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    """Yield the table of a Parquet file."""
    pandas = _package("pandas", path)
    _package("pyarrow", path)
    try:
        frame = pandas.read_parquet(path)
    except Exception as error:
        raise unreadable(path, "Parquet file", error) from error
    ids, frame = _parquet_ids(path, frame, text)
    texts: dict[int, Any] = {}
    for j, name in enumerate(frame.columns):
        if frame.dtypes.iloc[j].kind not in "fiub" or (text.mixed and frame.dtypes.iloc[j].kind == "b"):
            texts[j] = frame.iloc[:, j]
            if not text.mixed:
                raise DataError(f"{path}: column {short(str(name))} holds {frame.dtypes.iloc[j]}, not numbers.")
    if not len(frame.columns):
        raise DataError(f"{path}: there is no column of numbers.")
    values = np.full(frame.shape, np.nan)
    numbers = [j for j in range(frame.shape[1]) if j not in texts]
    values[:, numbers] = frame.iloc[:, numbers].to_numpy(np.float64, na_value=np.nan)
    raw = RawCells(texts) if text.mixed else None
    yield _numbers(path, Path(path).stem, values, text, ids, tuple(map(str, frame.columns)), raw)


def _parquet_ids(path: str, frame: Any, text: TextFormat) -> tuple[tuple[str, ...] | None, Any]:
    """Return the ids of a frame, from its index or a column, and the frame without that column."""
    asked = text.ids
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
            f"{path}: the index has {index.nlevels} levels ({shown}); name one column of ids with ",
            Argument("ids", "COLUMN"),
            ".",
        )
    counted = hasattr(index, "step") and (index.start, index.step) == (0, 1)  # as it is where nobody made one
    if not (counted and index.name is None):
        return _present_ids(path, index), frame
    if len(frame.columns) and str(frame.columns[0]) not in text.data_columns:
        first = frame.columns[0]
        texts = frame[first].dtype.kind in "OTU" or str(frame[first].dtype).startswith(("str", "string"))
        named = is_id_name(str(first), known=frame[first].dtype.kind == "f")
        if named or (texts and not (text.mixed and is_repeated(frame[first].tolist()))):
            return _present_ids(path, frame[first]), frame.drop(columns=[first])
    return None, frame


def _present_ids(path: str, names: Any) -> tuple[str, ...]:
    missing = np.flatnonzero(np.asarray(names.isna()))
    if len(missing):
        called = "" if names.name is None else f" ({short(str(names.name))})"
        raise DataError(f"{path}: the id of row {missing[0] + 1}{called} is missing; fill it in or remove the row.")
    return unique_ids(path, [str(name) for name in names])


def read_xlsx(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    """Yield the sheet of an Excel file that ``key`` names, or the first."""
    openpyxl = _package("openpyxl", path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about formats and pictures, which are not read
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            sheets = [sheet.title for sheet in book.worksheets]
            chosen = key if key is not None else next(iter(sheets), "")
            rows = [list(row) for row in book[chosen].iter_rows(values_only=True)] if chosen in sheets else []
            book.close()
    except Exception as error:
        raise unreadable(path, "Excel file", error) from error
    if chosen not in sheets:
        _refuse_key(path, chosen, sheets)
    cells = _filled_part([[_cell_text(cell) for cell in row] for row in rows])
    name = Path(path).stem if key is None else key
    shown = path if len(sheets) == 1 else f"{path}:{chosen}"
    notes: list[Note] = []
    if len(sheets) > 1 and key is None:
        notes.append(
            (f"there are {len(sheets)} sheets, of which the first is read; name another with {path}:{sheets[1]}",)
        )
    table = table_of_cells(shown, name, cells, text, notes)
    yield replace(table, source=path)


def _cell_text(cell: Any) -> str:
    """Return a cell of a sheet as text files hold it."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).upper()
    if hasattr(cell, "isoformat"):
        return str(cell.isoformat(" ") if hasattr(cell, "hour") and hasattr(cell, "year") else cell.isoformat())
    return repr(cell) if isinstance(cell, float) else str(cell)


def _filled_part(rows: list[list[str]]) -> list[tuple[int, list[str]]]:
    """Return the rows that are not empty with their numbers, without empty columns after the last one."""
    there = [(number, row) for number, row in enumerate(rows, 1) if any(cell.strip() for cell in row)]
    width = max((i + 1 for _, row in there for i, cell in enumerate(row) if cell.strip()), default=0)
    return [(number, (row + [""] * width)[:width]) for number, row in there]


def read_h5ad(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    """Yield the table of an AnnData file."""
    if key not in (None, Path(path).stem):
        raise DataError(f"{path}: there is no table called {key!r} in it; there is only one, so give {path} alone.")
    anndata = _package("anndata", path)
    _check_hdf5(path, "AnnData", ("obs", "var"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # names that occur twice are an error below
            data = anndata.read_h5ad(path)
    except Exception as error:
        raise unreadable(path, "h5ad file", error) from error
    yield _annotated(path, path, Path(path).stem, data, text)


def read_h5mu(path: str, text: TextFormat, key: str | None) -> Iterator[Table]:
    """Yield every modality of a MuData file."""
    mudata = _package("mudata", path)
    _check_hdf5(path, "MuData", ("mod",))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about defaults of later versions
            warnings.simplefilter("ignore", UserWarning)  # names that occur twice are an error below
            data = mudata.read_h5mu(path)
    except Exception as error:
        raise unreadable(path, "h5mu file", error) from error
    if key is not None and key not in data.mod:
        _refuse_key(path, key, [str(name) for name in data.mod])
    for name, modality in data.mod.items():
        if key in (None, name):
            yield _annotated(path, f"{path}:{name}", str(name), modality, text)


def _check_hdf5(path: str, kind: str, groups: tuple[str, ...]) -> None:
    """Refuse an HDF5 file of another program."""
    h5py = _package("h5py", path)
    try:
        with h5py.File(path, "r") as file:
            missing = [name for name in groups if name not in file]
    except Exception as error:
        raise unreadable(path, f"{kind} file", error) from error
    if missing:
        raise DataError(f"{path}: this is not a {kind} file: there is no {missing[0]!r} in it.")


def _annotated(path: str, shown: str, name: str, data: Any, text: TextFormat) -> Table:
    if data.X is None:
        raise DataError(f"{shown}: there are no numbers: X is missing.")
    ids = unique_ids(shown, [str(each) for each in data.obs_names])
    return _numbers(path, name, data.X, text, ids, tuple(map(str, data.var_names)))


def _package(name: str, path: str) -> Any:
    """Return an optional package, or say which file needs it."""
    try:
        return package(name)
    except ImportError as error:
        raise DataError(f"{path}: reading this needs {name}; install it with kernelweave[io].") from error
