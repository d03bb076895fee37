"""Tables that are not in memory as a whole: Dask arrays and DataFrames, Zarr arrays, files mapped into memory.

``as_chunks`` says how such a table falls into blocks of rows and what loads each of them. Nothing is loaded here.
``map_rows`` writes down what a function makes of the rows of a Dask table, and ``refuse_dask`` is for readers that need
all rows in memory.
"""

import itertools
import mmap
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Array
from kernelweave.foundation.errors import ParameterError, ViewError
from kernelweave.foundation.threads import thread_count

#: Bytes of a block of all views as float64: small enough for several copies on the way, large enough for a loop.
BLOCK_BYTES = 2**26


@dataclass(frozen=True)
class Rows:
    """Loads some rows of an array that can be sliced."""

    array: Any
    lo: int
    hi: int

    def __call__(self) -> Array:
        """Return the rows."""
        return np.asarray(self.array[self.lo : self.hi])

    def __reduce__(self) -> Any:
        """Have only these rows of an array in memory travel."""
        if not isinstance(self.array, np.ndarray):
            return Rows, (self.array, self.lo, self.hi)
        return Rows, (self.array[self.lo : self.hi], 0, self.hi - self.lo)


@dataclass(frozen=True)
class FileRows:
    """Maps some rows of an array in a file, so that no more than these are in memory, and only what is read of them."""

    path: str
    dtype: str
    offset: int  # bytes before the first entry
    shape: tuple[int, int]
    order: str
    lo: int
    hi: int

    def __call__(self) -> Array:
        """Return the rows, which lie in memory no longer than what is returned."""
        kind: Any = {"mode": "r", "dtype": self.dtype, "offset": self.offset, "shape": self.shape, "order": self.order}
        return np.asarray(np.memmap(self.path, **kind)[self.lo : self.hi])


class RecentChunks:
    """The chunks that Dask computed last, for blocks that are parts of one chunk and read one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chunks: dict[str, Future[Array]] = {}

    def rows(self, chunk: Any, lo: int, hi: int) -> Array:
        """Return rows of a chunk, computed in this thread unless it was or another one is at it."""
        with self._lock:
            known = self._chunks.pop(chunk.key, None)
            values: Future[Array] = Future() if known is None else known
            self._chunks[chunk.key] = values
            while len(self._chunks) > thread_count():
                self._chunks.pop(next(iter(self._chunks)))
        if known is None:
            try:
                values.set_result(np.asarray(chunk.compute(scheduler="synchronous")))
            except BaseException as error:
                values.set_exception(error)
                with self._lock:
                    self._chunks.pop(chunk.key, None)
        return values.result()[lo:hi].copy()

    def __reduce__(self) -> Any:
        return RecentChunks, ()


@dataclass(frozen=True)
class DaskRows:
    """Some rows of a chunk that Dask computes, here or on a worker."""

    chunk: Any  # dask.delayed.Delayed
    lo: int
    hi: int
    recent: RecentChunks

    def __call__(self) -> Array:
        """Return the rows, computed in this thread."""
        return self.recent.rows(self.chunk, self.lo, self.hi)


@dataclass(frozen=True)
class Chunks:
    """A table of rows that are loaded block by block."""

    sizes: tuple[int, ...]  # rows of every block
    width: int
    dtype: np.dtype[Any]
    loaders: tuple[Any, ...]  # one for every block
    columns: tuple[str, ...] | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return sum(self.sizes)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows as they are stored."""
        return self.n_samples * self.width * self.dtype.itemsize


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array or DataFrame."""
    if sys.modules.get("dask") is None:
        return False
    from dask.base import is_dask_collection

    return bool(is_dask_collection(X)) and isinstance(getattr(X, "ndim", None), int)


def has_dask(X: Any) -> bool:
    """Whether X is a Dask array or DataFrame, or one of several views is."""
    if isinstance(X, Mapping):
        return any(map(is_dask, X.values()))
    return any(map(is_dask, X)) if isinstance(X, list | tuple) else is_dask(X)


def refuse_dask(X: Any, reader: str) -> None:
    """Say what to do with a Dask table where all of it is needed in memory, instead of loading it silently."""
    if has_dask(X):
        raise ParameterError(
            f"X is a Dask collection, and {reader} needs all samples in memory. Pass X.compute() if they fit, or fit "
            "on a sample of them and call predict with the collection, which is then computed in blocks. KernelKMeans, "
            "MinMaxKMeans, MinMaxKernelKMeans, MultiViewKernelKMeans, GraphFusionClustering and kernel spectral "
            "clustering are fitted in blocks."
        )


def is_chunked(X: Any, memory_limit: float = np.inf) -> bool:
    """Whether X, or a view of it, is a table to be read block by block.

    Mapped files are if all of them together are larger than the limit.
    """
    several = isinstance(X, Mapping | list | tuple)
    tables = list(X.values() if isinstance(X, Mapping) else X) if several else [X]
    mapped = [table.nbytes for table in tables if isinstance(table, np.memmap) and table.ndim == 2]
    too_large = bool(mapped) and sum(mapped) > memory_limit * 2**20
    return too_large or any(is_dask(table) or _is_zarr(table) for table in tables)


def _is_zarr(X: Any) -> bool:
    return "zarr" in sys.modules and isinstance(X, sys.modules["zarr"].Array)


def as_chunks(X: Any, views: Any = None) -> tuple[tuple[str, ...], list[Chunks]]:
    """Return the names of all views and their rows in blocks of the same sizes; one table is one view."""
    if isinstance(X, Mapping | list | tuple):
        if views is not None:
            raise ViewError(f"views={views!r} divides the columns of one table, but X holds {len(X)} views: drop it.")
        names = tuple(map(str, X)) if isinstance(X, Mapping) else tuple(f"view_{v}" for v in range(len(X)))
        tables = list(X.values()) if isinstance(X, Mapping) else list(X)
    else:
        if views is not None:
            raise ParameterError(
                "views= divides the columns of a table in memory. Give Dask, Zarr and mapped tables as a list or dict "
                "of one table per view."
            )
        names = ("X",)
        tables = [X]
    if not tables:
        raise ViewError("X holds no views.")
    tables = [table if is_chunked(table, -1.0) else _in_memory(table) for table in tables]
    rows = _row_sizes(tables, names)
    if sum(rows) < 2:
        raise ParameterError(f"Found {sum(rows)} sample(s) while a minimum of 2 is required.")
    width = sum(int(table.shape[1]) for table in tables)
    sizes = _split(rows, max(1, BLOCK_BYTES // (8 * width)))
    return names, [_chunks(table, name, sizes) for table, name in zip(tables, names, strict=True)]


def _in_memory(table: Any) -> Array:
    """Return a table in memory as an array that can be cut into blocks."""
    if sp.issparse(table):
        raise ParameterError("Sparse tables cannot be cut into blocks yet. Convert them with toarray() if they fit.")
    return np.asarray(table)


def _row_sizes(tables: list[Any], names: Sequence[str]) -> list[int]:
    """Return the rows of the chunks of the first Dask table, which all follow; tables of another length are an error.

    Dask tables are replaced by arrays with the same chunks of rows and all columns in one.
    """
    for v, table in enumerate(tables):
        if is_dask(table) and hasattr(table, "to_dask_array"):
            array = table.to_dask_array(lengths=True)
            array._kernelweave_columns = tuple(map(str, table.columns)) if table.ndim == 2 else None
            tables[v] = array
        elif is_dask(table) and np.isnan(table.shape[0]):
            tables[v] = table.copy().compute_chunk_sizes()  # which changes its array
        if tables[v].ndim != 2:
            raise ParameterError(f"{names[v]} has {tables[v].ndim} dimensions; a table has two: samples and features.")
        if tables[v].shape[1] == 0:
            raise ParameterError(f"{names[v]} has 0 feature(s) while a minimum of 1 is required.")
    n = int(tables[0].shape[0])
    for name, table in zip(names, tables, strict=True):
        if table.shape[0] != n:
            raise ViewError(
                f"View {name!r} has {table.shape[0]} samples, view {names[0]!r} has {n}. All views must hold the same "
                "samples in the same order."
            )
    chunked = next((table for table in tables if is_dask(table)), None)
    rows = [n] if chunked is None else [int(size) for size in chunked.chunks[0] if size] or [0]
    for v, table in enumerate(tables):
        if is_dask(table) and (table.numblocks[1] > 1 or list(table.chunks[0]) != rows):
            columns = getattr(table, "_kernelweave_columns", None)
            tables[v] = table.rechunk((tuple(rows), (table.shape[1],)))
            tables[v]._kernelweave_columns = columns
    return rows


def _split(rows: Sequence[int], most: int) -> list[tuple[int, int, int]]:
    """Return for every block the number of its chunk and where it begins and ends in there."""
    blocks = []
    for number, size in enumerate(rows):
        pieces = -(-size // most)
        ends = [size * piece // pieces for piece in range(pieces + 1)]
        blocks += [(number, lo, hi) for lo, hi in itertools.pairwise(ends)]
    return blocks


def _chunks(table: Any, name: str, blocks: Sequence[tuple[int, int, int]]) -> Chunks:
    sizes = tuple(hi - lo for _, lo, hi in blocks)
    if table.dtype.kind not in "fiub":
        raise ParameterError(f"{name} holds values of type {table.dtype} where numbers are expected.")
    known = Chunks(sizes, int(table.shape[1]), np.dtype(table.dtype), ())
    if is_dask(table):
        parts = table.to_delayed().ravel()
        recent = RecentChunks()
        loaders: list[Any] = [DaskRows(parts[number], lo, hi, recent) for number, lo, hi in blocks]
        return replace(known, loaders=tuple(loaders), columns=getattr(table, "_kernelweave_columns", None))
    ends = np.cumsum([0, *sizes]).tolist()
    return replace(known, loaders=tuple(_rows(table, lo, hi) for lo, hi in itertools.pairwise(ends)))


def _rows(table: Any, lo: int, hi: int) -> Any:
    """Return what loads some rows; of a mapped file by its name, so that neither this process nor a copy holds it."""
    whole = isinstance(table, np.memmap) and isinstance(table.base, np.memmap | mmap.mmap)
    if whole and table.filename is not None and table.mode != "c":  # what was changed in a copy is not in the file
        order = "C" if table.flags.c_contiguous else "F"
        if table.flags.c_contiguous or table.flags.f_contiguous:
            return FileRows(str(table.filename), table.dtype.str, _file_offset(table), table.shape, order, lo, hi)
    return Rows(table, lo, hi)


def _file_offset(table: np.memmap) -> int:
    """Return the bytes in the file before the first entry."""
    whole: Any = table
    while isinstance(whole.base, np.memmap):
        whole = whole.base
    here = table.__array_interface__["data"][0]
    there = whole.__array_interface__["data"][0]
    return int(whole.offset + here - there)


# --- functions of rows, computed when asked for ----------------------------------------------------------------------


def map_rows(function: Callable[..., Array], model: Any, X: Any, n_columns: int | None, dtype: Any) -> Any:
    """Return the Dask array of what ``function(model, rows)`` makes of the rows of every chunk of X.

    Nothing is computed yet. ``rows`` has the form of X: a table, or a list or dict of views. Views follow the chunks of
    the first Dask table. ``n_columns`` is that of the result; None for one value for every row.
    """
    import dask
    import dask.array as da

    names = list(X) if isinstance(X, Mapping) else None
    several = isinstance(X, Mapping | list | tuple)
    tables = (list(X.values()) if isinstance(X, Mapping) else list(X)) if several else [X]
    labels = list(map(str, names or range(len(tables)))) if several else ["X"]
    arrays = _with_equal_rows(tables, labels)
    form = None if not several else names or len(tables)

    def of_blocks(*blocks: Any, known: Any) -> Array:
        rows = [block[0] if isinstance(block, list) else block for block in blocks]
        return function(known, _in_form(rows, form))

    shape = (0,) if n_columns is None else (0, n_columns)
    return da.blockwise(
        of_blocks,
        "i" if n_columns is None else "ij",
        *itertools.chain.from_iterable((array, ("i", f"columns {v}")) for v, array in enumerate(arrays)),
        new_axes=None if n_columns is None else {"j": n_columns},
        known=dask.delayed(model, traverse=False),
        dtype=dtype,
        meta=np.empty(shape, dtype=dtype),
        align_arrays=False,
    )


def _in_form(rows: list[Any], form: Any) -> Any:
    if form is None:
        return rows[0]
    return dict(zip(form, rows, strict=True)) if isinstance(form, list) else rows


def _with_equal_rows(tables: Sequence[Any], labels: Sequence[str]) -> list[Any]:
    """Return Dask arrays with all columns in one chunk, and chunks of rows as the first Dask table has them."""
    for table, label in zip(tables, labels, strict=True):
        if np.ndim(table) != 2:
            raise ParameterError(f"{label} has {np.ndim(table)} dimensions; a table has two: samples and features.")
    arrays = [_whole_rows(table) if is_dask(table) else table for table in tables]
    rows = next(array.chunks[0] for array in arrays if is_dask(array))
    return [_followed(array, rows, label) for array, label in zip(arrays, labels, strict=True)]


def _whole_rows(table: Any) -> Any:
    """Return a Dask array whose chunks hold whole rows; those of a DataFrame stay data frames, with their names."""
    import dask.array as da

    if not hasattr(table, "to_dask_array"):
        return table.rechunk({1: -1}) if table.numblocks[1] > 1 else table
    shape = (np.nan, len(table.columns))
    parts = [da.from_delayed(part, shape=shape, dtype=np.float64) for part in table.to_delayed()]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _followed(table: Any, rows: tuple[Any, ...], label: str) -> Any:
    """Return a table as a Dask array with these chunks of rows."""
    import dask.array as da

    theirs = table.chunks[0] if is_dask(table) else (len(table),)
    unknown = bool(np.isnan([*rows, *theirs]).any())
    if not unknown and sum(rows) != sum(theirs):
        raise ViewError(
            f"View {label!r} has {sum(theirs)} samples, the first Dask view has {sum(rows)}. All views must hold the "
            "same samples in the same order."
        )
    if theirs == rows or (unknown and is_dask(table) and len(theirs) == len(rows)):
        return table  # rows of chunks of unknown size are compared when they are there
    if unknown:
        raise ParameterError(
            f"The rows of view {label!r} cannot be matched with those of the first Dask view: its chunk sizes are "
            "unknown. Give all views as Dask collections with the same partitions, or as arrays, for instance with "
            "to_dask_array(lengths=True)."
        )
    if is_dask(table):
        return table.rechunk((rows, table.shape[1]))
    values = np.asarray(table)
    return da.from_array(values, chunks=(rows, values.shape[1]))
