"""From the files that others publish to the arrays of a benchmark file.

Each reader takes the contents of the files and the :class:`Target`, which tells the shapes and digests of the wanted
arrays, and returns those that are in the files. Nothing here decides whether they are right: that is done by digests.
"""

import gzip
import io
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from kernelweave.datasets.digests import array_digest
from kernelweave.datasets.metis import load_metis
from kernelweave.foundation.errors import DataError
from kernelweave.inputs.files.binary import sparse_matrices_allowed

Arrays = dict[str, np.ndarray]
_SPARSE_PARTS = ("data", "indices", "indptr")


@dataclass(frozen=True)
class Wanted:
    """An array as it must be."""

    shape: tuple[int, ...]
    sha256: str


@dataclass(frozen=True)
class Target:
    """What a benchmark file holds: small facts as they are, arrays by shape and digest."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, Wanted]
    sha256: str

    def stored_facts(self) -> Arrays:
        """Return the facts as arrays."""
        return {name: np.array(value) for name, value in self.facts.items()}


def read_table(
    blobs: Sequence[bytes],
    target: Target,
    *,
    label: int = -1,
    drop: Sequence[int] = (),
    labels: Sequence[str] | None = None,
) -> Arrays:
    """Read a table of text: a sample in a line, commas or blanks between entries, ``?`` for a missing one.

    Lines that begin with ``@`` or ``%`` are those of a header. ``label`` is the column of the class, ``drop`` those of
    names, ``labels`` the classes as the file writes them, in the order of ours. Several files are one below the other;
    all but the first are test samples where the set tells these apart.
    """
    tables = [_entries(blob) for blob in blobs]
    rows = [row for table in tables for row in table]
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise DataError("lines differ in their number of entries")
    apart = {column % width for column in (label, *drop)}
    kept = [column for column in range(width) if column not in apart]
    X = np.array([[_number(row[column]) for column in kept] for row in rows])
    arrays = {"X": X, "y": _codes([row[label] for row in rows], labels or target.facts["classes"])}
    if "is_test" in target.arrays:
        arrays["is_test"] = np.repeat(np.arange(len(tables)) > 0, [len(table) for table in tables])
    return arrays


def read_view_tables(blobs: Sequence[bytes], target: Target, *, sizes: Sequence[int]) -> Arrays:
    """Read views, a table of numbers each; ``sizes`` are those of the classes, which follow each other."""
    views = (np.array([[_number(entry) for entry in row] for row in _entries(blob)]) for blob in blobs)
    return {**{f"view_{i}": view for i, view in enumerate(views)}, "y": labels_in_order(sizes)}


def read_metis(blobs: Sequence[bytes], target: Target) -> Arrays:
    """Read a graph in the format of METIS."""
    (blob,) = blobs
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "download.graph")
        file.write_bytes(blob)
        graph = load_metis(file).graph
    graph.sort_indices()
    return {"indptr": graph.indptr, "indices": graph.indices}


def read_matlab(
    blobs: Sequence[bytes], target: Target, *, sizes: Sequence[int] | None = None, turned: bool = False
) -> Arrays:
    """Read a MATLAB file, in which arrays are recognised by what they hold, wherever they are and under any name.

    Matrices may be transposed there, sparse or dense. Classes are numbered by their labels, upwards, downwards or in
    the order in which they appear, or follow each other with these ``sizes`` where the file does not tell them.
    ``turned`` images have their columns one after the other there, and their rows in the set.
    """
    (blob,) = blobs
    stored = list(_matlab_arrays(blob))
    if turned:
        stored += _turned_images(stored, tuple(target.facts["image_shape"]))
    arrays: Arrays = {}
    for name, wanted in target.arrays.items():
        if name == "y":
            candidates: Iterator[Any] = iter([labels_in_order(sizes)]) if sizes else _label_candidates(stored)
        else:
            candidates = _matrix_candidates(stored, wanted.shape)
        match = _first_match(candidates, wanted)
        if match is not None:
            arrays[name] = match
    for name in _sparse_names(target):
        arrays |= _sparse_match(name, (matrix for matrix in stored if matrix.ndim == 2), target)
    return arrays


def read_triplets(blobs: Sequence[bytes], target: Target) -> Arrays:
    """Read sparse views of a MATLAB file that holds them as lists of sample, term and weight, counted from 0 or 1."""
    (blob,) = blobs
    stored = list(_matlab_arrays(blob))
    arrays: Arrays = {}
    labels = _first_match(_label_candidates(stored), target.arrays["y"])
    if labels is not None:
        arrays["y"] = labels
    for name in _sparse_names(target):
        shape = tuple(target.facts[f"{name}_shape"])
        arrays |= _sparse_match(name, _from_triplets(stored, shape), target)
    return arrays


def table_of(X: np.ndarray, y: Sequence[Any] | np.ndarray, labels: Sequence[str], n_train: int | None = None) -> Arrays:
    """Return the arrays of a table that a fetcher of scikit-learn returned; rows from ``n_train`` on are for tests."""
    arrays = {"X": np.asarray(X, dtype=np.float64), "y": _codes([str(label) for label in y], labels)}
    if n_train is not None:
        arrays["is_test"] = np.arange(len(X)) >= n_train
    return arrays


def labels_in_order(sizes: Sequence[int]) -> np.ndarray:
    """Return the labels of classes that follow each other."""
    return np.repeat(np.arange(len(sizes)), sizes)


# --- text -------------------------------------------------------------------------------------------------------------


def _entries(blob: bytes) -> list[list[str]]:
    raw = gzip.decompress(blob) if blob[:2] == b"\x1f\x8b" else blob
    lines = (line.strip() for line in raw.decode("ascii").splitlines())
    rows = [re.split(r"[,\s]+", line.rstrip(", \t")) for line in lines if line and line[0] not in "@%"]
    if not rows:
        raise DataError("the file is empty")
    return rows


def _number(entry: str) -> float:
    return np.nan if entry == "?" else float(entry)


def _codes(entries: Sequence[str], labels: Sequence[str]) -> np.ndarray:
    numbers = {label: code for code, label in enumerate(labels)}
    unknown = sorted(set(entries) - set(numbers))
    if unknown:
        raise DataError(f"{unknown[0][:40]!r} is not a class of this set")
    return np.array([numbers[entry] for entry in entries])


# --- MATLAB -----------------------------------------------------------------------------------------------------------


def _matlab_arrays(blob: bytes) -> Iterator[Any]:
    """Yield all arrays of numbers in the order of the file, those in cells and structures too."""
    with sparse_matrices_allowed():
        content = scipy.io.loadmat(io.BytesIO(blob), appendmat=False)
    for name, value in content.items():
        if not name.startswith("__"):
            yield from _inside(value)


def _inside(value: Any) -> Iterator[Any]:
    if sp.issparse(value):
        yield value
    elif isinstance(value, np.ndarray) and value.dtype.names:
        for name in value.dtype.names:
            yield from _inside(value[name])
    elif isinstance(value, np.ndarray) and value.dtype == object:
        for each in value.ravel(order="F"):
            yield from _inside(each)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        yield value


def _matrix_candidates(stored: Sequence[Any], shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    for array in stored:
        turned = (array, array.T) if array.ndim == 2 else (array, np.moveaxis(array, -1, 0))
        for each in turned:
            if each.shape == shape:
                yield each.toarray() if sp.issparse(each) else each


def _label_candidates(stored: Sequence[Any]) -> Iterator[np.ndarray]:
    for array in stored:
        if not sp.issparse(array) and 0 < array.size == max(array.shape):
            _, first, codes = np.unique(array.ravel(), return_index=True, return_inverse=True)
            yield codes
            yield codes.max() - codes
            yield np.argsort(np.argsort(first))[codes]


def _turned_images(stored: Sequence[Any], shape: tuple[int, int]) -> list[np.ndarray]:
    """Return matrices with an image in each column as matrices with an image in each row, its rows one by one."""
    height, width = shape
    matrices = (array for array in stored if array.ndim == 2 and array.shape[0] == height * width)
    images = (each.T.reshape(-1, width, height).transpose(0, 2, 1) for each in matrices)
    return [each.reshape(len(each), -1) for each in images]


def _first_match(candidates: Iterator[Any], wanted: Wanted) -> np.ndarray | None:
    fitting = (each for each in candidates if each.shape == wanted.shape)
    return next((each for each in fitting if array_digest(each) == wanted.sha256), None)


def _sparse_names(target: Target) -> list[str]:
    return [name.removesuffix("_shape") for name in target.facts if name.endswith("_shape") and name != "image_shape"]


def _sparse_match(name: str, matrices: Iterator[Any], target: Target) -> Arrays:
    shape = tuple(target.facts[f"{name}_shape"])
    wanted = [target.arrays[f"{name}_{part}"] for part in _SPARSE_PARTS]
    for matrix in matrices:
        for each in (matrix, matrix.T):
            if each.shape != shape:
                continue
            rows = sp.csr_array(each)
            rows.sum_duplicates()
            rows.eliminate_zeros()
            parts = [getattr(rows, part) for part in _SPARSE_PARTS]
            if all(array_digest(part) == want.sha256 for part, want in zip(parts, wanted, strict=True)):
                return {f"{name}_{part}": values for part, values in zip(_SPARSE_PARTS, parts, strict=True)}
    return {}


def _from_triplets(stored: Sequence[Any], shape: tuple[int, ...]) -> Iterator[Any]:
    for array in stored:
        if sp.issparse(array) or array.ndim != 2 or 3 not in array.shape:
            continue
        rows, columns, weights = array.T if array.shape[1] == 3 else array
        for first in (0, 1):
            places = (rows.astype(np.int64) - first, columns.astype(np.int64) - first)
            inside = all(place.min() >= 0 and place.max() < size for place, size in zip(places, shape, strict=True))
            if inside:
                yield sp.coo_array((weights.astype(np.float64), places), shape=shape)
