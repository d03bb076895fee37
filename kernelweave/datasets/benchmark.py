"""Benchmark data kept as ``.npz`` files in a directory that the user names.

Input       ``X``, ``view_0`` ... with ``view_names``, kernels ``K``, or a graph (``indptr`` and ``indices``,
            or ``edges``); ``<name>_data, _indices, _indptr, _shape`` hold a sparse array; beside them ``y``,
            ``classes``, ``is_test``, ``image_shape``, ``feature_names``, ``node_ids``
Guarantee   values are the stored ones, as float64; nothing is rescaled, and nothing is ever unpickled
"""

import difflib
import re

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from kernelweave.datasets import sources
from kernelweave.datasets.folders import data_directory
from kernelweave.datasets.npz import read_arrays
from kernelweave.foundation.errors import DataError

_VIEW_KEY = re.compile(r"view_(\d+)(_data)?")


def list_benchmarks(data_dir=None):
    """List the names that :func:`load_benchmark` accepts.

    Parameters
    ----------
    data_dir : path-like or None, default=None
        Directory that holds the ``.npz`` files, at any depth. None means the directory named by the
        environment variable ``KERNELWEAVE_DATA``, or that of :func:`fetch` where it is not set.

    Returns
    -------
    list of str
        Sorted names: the name of the file, preceded by its folder only where two files share a name.

    Examples
    --------
    >>> from kernelweave.datasets import list_benchmarks
    >>> list_benchmarks("path/to/data")  # doctest: +SKIP
    ['3elt', '3sources', 'add20', ...]
    """
    paths = _find_files(data_directory(data_dir))
    stems = [_stem(path) for path in paths]
    return sorted(path if stems.count(_stem(path)) > 1 else _stem(path) for path in paths)


def load_benchmark(name, *, data_dir=None):
    """Load one benchmark data set.

    Parameters
    ----------
    name : str
        A name of :func:`list_benchmarks`, with or without its folder: ``"pendigits"`` and
        ``"pendigits/pendigits"`` are the same.
    data_dir : path-like or None, default=None
        Directory that holds the ``.npz`` files. None means the directory named by the environment
        variable ``KERNELWEAVE_DATA``, or that of :func:`fetch` where it is not set.

    Returns
    -------
    Bunch
        ``name``, ``DESCR`` and, of the following, what the file holds:

        - ``data``: (n, d) float64 array, or a sparse ``csr_array``;
        - ``views``: dict from view name to such an array, in the order of the file;
        - ``kernels``: (n_kernels, n, n) float64 array;
        - ``graph``: (n, n) symmetric ``csr_array`` with unit weights, ``node_ids`` beside it;
        - ``target``: (n,) labels from 0, and ``target_names``;
        - ``is_test``: (n,) True in the published test set;
        - ``image_shape``: (height, width); some sets store images column by column and need
          ``reshape(..., order="F")``;
        - ``feature_names``: one per column of ``data``.

    Raises
    ------
    DataError
        When the directory or the name is unknown, or the file does not hold a data set.

    Examples
    --------
    >>> from kernelweave.datasets import load_benchmark
    >>> load_benchmark("pendigits").data.shape  # doctest: +SKIP
    (10992, 16)
    """
    root = data_directory(data_dir)
    path = _resolve(name, _find_files(root))
    bunch = _assemble(path, read_arrays(root / f"{path}.npz"))
    _check_rows(bunch)
    bunch.DESCR = _describe(bunch)
    return bunch


def _assemble(path, arrays):
    try:
        return Bunch(name=path, **_contents(path, arrays), **_annotations(arrays))
    except DataError:
        raise
    except (ValueError, TypeError, IndexError) as reason:
        raise DataError(
            f"The file {path}.npz does not follow the format ({reason}): store numbers in the shapes that "
            "load_benchmark describes."
        ) from reason


def _find_files(root):
    """Return the paths below ``root`` of all data files, with forward slashes and without the suffix."""
    return sorted(path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.npz"))


def _stem(path):
    return path.rpartition("/")[2]


def _resolve(name, paths):
    """Return the one path that ``name`` means; only listed files are ever opened, whatever the name holds."""
    wanted = str(name).removesuffix(".npz")
    matches = [path for path in paths if path == wanted] or [path for path in paths if _stem(path) == wanted]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise DataError(f"The name {name!r} is shared by {', '.join(matches)}: pass one of these.")
    if wanted in sources.catalogue():
        raise DataError(
            f"The benchmark {name!r} is not among the {len(paths)} files: download it with "
            f"kernelweave.datasets.fetch({wanted!r}) or 'kernelweave data fetch {wanted}'."
        )
    known = sorted({*paths, *map(_stem, paths)})
    close = difflib.get_close_matches(wanted, known, n=3)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "list_benchmarks() gives all names."
    raise DataError(f"There is no benchmark named {name!r} among {len(paths)} files: {hint}")


def _contents(path, arrays):
    """Return the data proper: one matrix, views, kernels or a graph."""
    contents = {}
    if "X" in arrays or "X_data" in arrays:
        contents["data"] = _matrix("X", arrays)
    if indices := sorted({int(hit[1]) for hit in map(_VIEW_KEY.fullmatch, arrays) if hit}):
        names = _view_names(path, indices, arrays.get("view_names"))
        contents["views"] = {name: _matrix(f"view_{i}", arrays) for name, i in zip(names, indices, strict=True)}
    if "K" in arrays:
        contents["kernels"] = _kernels(path, arrays["K"])
    if "edges" in arrays or "indptr" in arrays:
        contents["graph"] = _graph(path, arrays)
    if not contents:
        raise DataError(
            f"The file {path}.npz holds no data set, only {sorted(arrays)}: it needs X, view_0, K, indptr or edges."
        )
    return contents


def _matrix(key, arrays):
    """Return the array stored as ``key``, or the sparse one stored in four arrays under that name."""
    if key in arrays:
        return _two_dimensional(key, arrays[key].astype(np.float64))
    try:
        data, indices, indptr, shape = (arrays[f"{key}_{suffix}"] for suffix in ("data", "indices", "indptr", "shape"))
        return sparse.csr_array((data.astype(np.float64), indices, indptr), shape=tuple(map(int, shape)))
    except (KeyError, ValueError) as reason:
        raise DataError(
            f"The sparse array {key!r} is incomplete ({reason}): store {key}_data, _indices, _indptr and _shape."
        ) from reason


def _two_dimensional(key, array):
    if array.ndim != 2:
        raise DataError(f"The array {key!r} has shape {array.shape}: store one row per sample.")
    return array


def _kernels(path, stored):
    kernels = stored.astype(np.float64)
    if kernels.ndim != 3 or kernels.shape[1] != kernels.shape[2]:
        raise DataError(f"K in {path}.npz has shape {kernels.shape}: store (n_kernels, n_samples, n_samples).")
    return kernels


def _view_names(path, indices, stored):
    """Return one name per view; repeats and blanks become or gain the view's number."""
    if stored is None:
        return [f"view_{i}" for i in indices]
    if len(stored) != len(indices):
        raise DataError(f"The file {path}.npz has {len(indices)} views but {len(stored)} view_names: store one each.")
    names = []
    for i, name in zip(indices, map(str, stored), strict=True):
        name = name or f"view_{i}"
        while name in names:
            name = f"{name}_{i}"
        names.append(name)
    return names


def _graph(path, arrays):
    """Return the adjacency: symmetric, unit weights, an edge stored twice counted once."""
    if "indptr" in arrays:
        n = len(arrays["indptr"]) - 1
        entries = (np.ones(len(arrays["indices"])), arrays["indices"], arrays["indptr"])
        graph = sparse.csr_array(entries, shape=(n, n))
    else:
        rows, columns = arrays["edges"].reshape(-1, 2).T
        n = int(arrays["n"]) if "n" in arrays else int(arrays["edges"].max(initial=-1)) + 1
        one_way = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
        graph = sparse.csr_array(one_way + one_way.T)
    graph.sum_duplicates()
    graph.data[:] = 1.0
    if (graph != graph.T).nnz:
        raise DataError(f"The graph in {path}.npz is not symmetric: store every edge in both directions.")
    return graph


def _annotations(arrays):
    """Return labels and everything else that describes the samples."""
    annotations = {}
    if "y" in arrays:
        annotations["target"] = arrays["y"].astype(np.int64)
    if "classes" in arrays:
        annotations["target_names"] = arrays["classes"].astype(str)
    if "is_test" in arrays:
        annotations["is_test"] = arrays["is_test"].astype(bool)
    if "image_shape" in arrays:
        annotations["image_shape"] = tuple(int(side) for side in arrays["image_shape"])
    if "feature_names" in arrays:
        annotations["feature_names"] = [str(name) for name in arrays["feature_names"]]
    if "node_ids" in arrays:
        annotations["node_ids"] = arrays["node_ids"]
    return annotations


def _row_counts(bunch):
    single = {key: bunch[key].shape[0] for key in ("data", "graph", "target", "is_test") if key in bunch}
    views = {f"view {name!r}": view.shape[0] for name, view in bunch.get("views", {}).items()}
    kernels = {"kernels": bunch.kernels.shape[1]} if "kernels" in bunch else {}
    return {**views, **kernels, **single}


def _check_rows(bunch):
    counts = _row_counts(bunch)
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise DataError(f"The arrays of {bunch.name}.npz disagree on the number of samples: {listed}.")


def _describe(bunch):
    n = next(iter(_row_counts(bunch).values()))
    facts = [f"{n} samples"]
    if "data" in bunch:
        facts.append(f"{bunch.data.shape[1]} features")
    if "views" in bunch:
        facts.append("views " + ", ".join(f"{name} ({view.shape[1]})" for name, view in bunch.views.items()))
    if "kernels" in bunch:
        facts.append(f"{len(bunch.kernels)} kernels")
    if "graph" in bunch:
        loops = int(np.count_nonzero(bunch.graph.diagonal()))
        facts.append(f"a graph of {(bunch.graph.nnz + loops) // 2} edges")
    if "target" in bunch:
        facts.append(f"{len(np.unique(bunch.target))} classes")
    return f"{bunch.name}: " + "; ".join(facts) + "."
