"""Views from files: tables of numbers with the ids of their rows, checked.

What was assumed of a file is among the notes of its table. Nothing is repaired: a cell that is not a number, a row of
another length, an id that occurs twice is an error that names file and line.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.errors import DataError, Remedy
from kernelweave.inputs.files.binary import (
    read_h5ad,
    read_h5mu,
    read_mat,
    read_mtx,
    read_npy,
    read_npz,
    read_parquet,
    read_xlsx,
)
from kernelweave.inputs.files.tables import RawCells, Table, TextFormat, check_file, unique_ids
from kernelweave.inputs.files.text import read_text

TEXT = (".csv", ".tsv", ".txt")
# Endings of files that hold a graph.
GRAPHS = (".graphml", ".metis", ".graph")
# What turns cells round by itself, before it looks for names.
_CELLS = (read_text, read_xlsx)
_READERS: dict[str, Callable[[str, TextFormat, str | None], Iterator[Table]]] = {
    **dict.fromkeys((*TEXT, *(f"{suffix}.gz" for suffix in TEXT), "-"), read_text),
    ".npy": read_npy,
    ".npz": read_npz,
    ".mat": read_mat,
    ".mtx": read_mtx,
    ".mtx.gz": read_mtx,
    ".parquet": read_parquet,
    ".xlsx": read_xlsx,
    ".h5ad": read_h5ad,
    ".h5mu": read_h5mu,
}


def read_tables(place: str, text: TextFormat | None = None) -> list[Table]:
    """Return the tables of a file, given as ``FILE``, ``NAME=FILE``, or ``FILE:KEY`` for one array of several."""
    name, path, key = _split_place(place)
    suffix = "-" if path == "-" else "".join(Path(path).suffixes[-2:] if path.endswith(".gz") else [Path(path).suffix])
    check_file(path)
    reader = _READERS.get(suffix.lower())
    if reader is None:
        known = ", ".join(sorted(set(_READERS) - {"-"}))
        if not suffix:
            raise DataError(f"{path}: its name has no extension that says what it holds; use one of {known}.")
        if suffix.lower().removesuffix(".gz") in GRAPHS:
            raise DataError(f"{path}: this is a graph, not a table. ", Remedy("graph", "Read it with load_graphml."))
        raise DataError(f"{path}: files of type {suffix!r} are not supported; use one of {known}.")
    text = text or TextFormat()
    if isinstance(text.transpose, tuple) and reader in _CELLS:
        stem = "stdin" if path == "-" else Path(path.removesuffix(".gz")).stem
        text = replace(text, transpose=(name or key or stem) in text.transpose)
    try:
        tables = list(reader(path, text, key))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    if len(tables) > 1 or key is not None:
        tables = [replace(table, key=table.name) for table in tables]
    if key is not None:
        tables = [table for table in tables if table.name == key]
        if not tables:
            raise DataError(f"{path}: there is no table called {key!r} in it.")
    if not tables:
        raise DataError(f"{path}: there is no table of numbers in it.")
    if name is not None:
        tables = [replace(table, name=name if len(tables) == 1 else f"{name}.{table.name}") for table in tables]
    return (
        tables
        if reader in _CELLS
        else [_turned(table) if text.is_transposed(table.name) else table for table in tables]
    )


def _turned(table: Table) -> Table:
    """Return a table of numbers with its columns as samples."""
    if table.raw is not None and table.raw.texts:
        raise DataError(f"{table.place}: there is text in it, so it cannot be transposed; save only its numbers.")
    values: Any = table.values.T
    values = sp.csr_array(values) if sp.issparse(values) else np.ascontiguousarray(values)
    ids = None if table.columns is None else unique_ids(table.place, table.columns)
    raw = None if table.raw is None else RawCells()
    return replace(table, values=values, ids=ids, columns=table.ids, raw=raw)


def _split_place(place: str) -> tuple[str | None, str, str | None]:
    """Return name, file and key of ``NAME=FILE:KEY``; a file that is really called so comes first."""
    if place == "-" or Path(place).exists():
        return None, place, None
    name, equals, rest = place.partition("=")
    path, key = (rest, None) if equals else (place, None)
    if not Path(path).exists() and ":" in path:
        front, _, back = path.rpartition(":")
        if Path(front).exists():
            path = front
            key = back
    return (name if equals else None), path, key
