"""Several views of the same samples: named, aligned, sliceable by sample.

``as_views`` is the one gate. It takes a list or tuple of (n, d_v) arrays, a dict name -> array, or one 2-D array or
DataFrame whose columns ``views=`` divides; the last form lets multi-view estimators live inside scikit-learn's tools.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from kernelweave.foundation.array_types import Array, Bools, Floats, Ints
from kernelweave.foundation.errors import ParameterError, ViewError, ViewWarning
from kernelweave.foundation.logged_warnings import warn
from kernelweave.foundation.sklearn_internals import get_feature_names, safe_indexing
from kernelweave.foundation.tensors import without_tensors
from kernelweave.inputs.arrays.absence import (
    KEEP,
    MISSING,
    CellFiller,
    check_new_samples,
    check_observed,
    find_holes,
    keeps_nan,
    takes_absent,
    takes_missing_cells,
    weak_links,
    without_cells,
)
from kernelweave.inputs.arrays.chunks import refuse_dask
from kernelweave.inputs.arrays.finiteness import raise_if_not_finite, refuse_large_values
from kernelweave.inputs.arrays.samples import FILL_CELLS, raise_if_text

# An odd number with bits all over: keys of several views, each times a power of it, add up to one key.
KEY_FACTOR = np.uint64(0x9E3779B97F4A7C15)
# Entries of samples whose keys are computed together: 2 MiB of them.
KEYED = 2**18


@dataclass(frozen=True)
class Views:
    """Several descriptions of the same samples; each block is a float array or CSR matrix with n_samples rows."""

    names: tuple[str, ...]
    blocks: tuple[Array, ...]
    observed: Bools | None = None  # (n_samples, n_views) which samples each view has; None: all

    @property
    def n_samples(self) -> int:
        """Number of samples, the same in every view."""
        return int(self.blocks[0].shape[0])

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of features of every view."""
        return tuple(int(block.shape[1]) for block in self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    def __iter__(self) -> Iterator[Array]:
        return iter(self.blocks)

    def __getitem__(self, view: int | str) -> Array:
        return self.blocks[self.names.index(view) if isinstance(view, str) else view]

    def take(self, samples: Any) -> "Views":
        """Return the chosen samples of every view."""
        observed = None if self.observed is None else self.observed[samples]
        return Views(self.names, tuple(take_rows(block, samples) for block in self.blocks), observed)

    def mask(self) -> Bools:
        """Return which samples each view has, also where it has all."""
        return np.ones((self.n_samples, len(self)), dtype=bool) if self.observed is None else self.observed

    def present(self, view: int) -> Ints:
        """Return the samples that a view has."""
        return np.arange(self.n_samples) if self.observed is None else np.flatnonzero(self.observed[:, view])

    def _comparable(self, rows: Any) -> list[Array]:
        """Return some rows of blocks in which equal samples have equal rows; absent ones have a column of their own."""
        if self.observed is None:
            return [take_rows(block, rows) for block in self.blocks]
        observed = self.observed[rows]
        blocks: list[Array] = [observed.astype(np.float64)]
        for v, block in enumerate(self.blocks):
            there = observed[:, v]
            some = take_rows(block, rows)
            blocks.append(some if there.all() else _blanked(some, there))
        return blocks

    def _row_keys(self) -> Ints:
        """Return a number of every sample; rows of absent samples are copied, some at a time."""
        if self.observed is None:
            return _joint_key(self.blocks)
        step = max(1, KEYED // max(1, sum(self.widths)))
        ranges = [slice(lo, lo + step) for lo in range(0, self.n_samples, step)]
        return np.concatenate([_joint_key(self._comparable(rows)) for rows in ranges])

    def copies(self) -> Ints:
        """Return a number for every sample, 0, 1, ... in order of first occurrence, the same for equal samples."""
        _, number, sizes = np.unique(self._row_keys(), return_inverse=True, return_counts=True)
        shared = np.flatnonzero(sizes[number] > 1)  # alone in its key: equal to no other
        first = np.arange(self.n_samples)
        if len(shared) == 0:
            return first
        digests = row_digests(self._comparable(shared))
        _, earliest, place = np.unique(digests, return_index=True, return_inverse=True)
        first[shared] = shared[earliest[place]]
        return np.unique(first, return_inverse=True)[1]

    def joined(self) -> Array:
        """Return all features side by side."""
        if any(sp.issparse(block) for block in self.blocks):
            return sp.hstack(self.blocks, format="csr")
        return np.hstack(self.blocks)


def _blanked(block: Array, there: Bools) -> Array:
    """Return a copy in which absent samples are rows of zeros."""
    if not sp.issparse(block):
        return np.where(there[:, None], block, 0.0)
    blank = sp.csr_array(block, copy=True)
    blank.data[np.repeat(~there, np.diff(blank.indptr))] = 0.0
    blank.eliminate_zeros()
    return blank


def _joint_key(blocks: Sequence[Array]) -> Ints:
    """Return one number for the rows of blocks side by side: whole numbers are sorted faster than rows of numbers."""
    keys: Ints = np.zeros(blocks[0].shape[0], dtype=np.uint64)
    for block in blocks:
        keys = keys * KEY_FACTOR + _row_key(block)
    return keys


def _row_key(block: Array) -> Ints:
    """Return the bits of a sum over every row, short of its last digits, which may differ; if bits differ, rows do."""
    weights = np.cos(np.arange(block.shape[1]))
    sums = sp.csr_array(block) @ weights if sp.issparse(block) else np.einsum("ij,j->i", block, weights)
    largest = np.finfo(np.float32).max  # beyond it all sums are the same
    short = np.asarray(np.clip(sums, -largest, largest), dtype=np.float32)
    return (short + np.float32(0.0)).view(np.uint32)  # there are two zeros, and they are equal


def row_digests(blocks: Sequence[Array]) -> Ints:
    """Return a number for every row of blocks side by side, the same for equal rows, dense or sparse, in any process.

    Rows that differ have the same number with a chance of 2^-64.
    """
    rows = zip(*(_row_contents(block) for block in blocks), strict=True)
    digests = (blake2b(b"".join(row), digest_size=8).digest() for row in rows)
    return np.array([int.from_bytes(digest, "little", signed=True) for digest in digests], dtype=np.int64)


def _row_contents(block: Array) -> Iterator[bytes]:
    """Yield what every row holds, zeros left out."""
    if not sp.issparse(block):
        whole = (block != 0).all(axis=1) & ~np.isnan(block).any(axis=1)
        places = np.arange(block.shape[1])
        front = _packed(places, block[0])[: 8 + places.nbytes] if len(block) else b""
        for row, plain in zip(block, whole.tolist(), strict=True):
            if plain:
                yield front + row.tobytes()
            else:
                found = np.flatnonzero(row)
                yield _packed(found, row[found])
        return
    rows = sp.csr_array(block, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    for start, stop in pairwise(rows.indptr):
        yield _packed(rows.indices[start:stop], rows.data[start:stop])


def _packed(places: Ints, values: Floats) -> bytes:
    """Return values and their places as bytes, with their number in front, so that rows of blocks can be joined."""
    values = np.where(np.isnan(values), np.nan, values)  # there are many NaN, and they are all the same here
    return len(places).to_bytes(8, "little") + places.astype(np.int64).tobytes() + values.tobytes()


def is_multi_view(X: Any) -> bool:
    """Whether X is a dict or sequence of 2-D views rather than one table."""
    if sp.issparse(X):  # some sparse formats are mappings, too
        return False
    return isinstance(X, Mapping) or (isinstance(X, list | tuple) and any(_ndim(view) == 2 for view in X))


def take_rows(X: Any, rows: Any) -> Any:
    """Return the chosen samples of X in the form that X has: one table, or a list or dict of views.

    ``rows`` is a slice, an array of row numbers or a boolean mask. A table may be an array, a data frame, a sparse
    matrix (which comes back as CSR) or a nested list.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.inputs import take_rows
    >>> views = {"text": np.eye(3), "links": np.arange(3.0)[:, None]}
    >>> {name: view.tolist() for name, view in take_rows(views, [2, 0]).items()}
    {'text': [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], 'links': [[2.0], [0.0]]}
    """
    if not is_multi_view(X):
        return X.tocsr()[rows] if sp.issparse(X) else safe_indexing(X, rows)
    if isinstance(X, Mapping):
        return {name: take_rows(view, rows) for name, view in X.items()}
    return [take_rows(view, rows) for view in X]


def as_table(views: Any) -> tuple[Array, dict[str, slice]]:
    """Return views side by side in one table, and which columns belong to each.

    scikit-learn's searches and pipelines divide their input by rows, which a list or dict of tables does not allow.
    Pass them the table, and the columns to the estimator as ``views``. Absent samples stay rows of NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.inputs import as_table
    >>> table, columns = as_table({"text": np.eye(3), "links": np.arange(3.0)[:, None]})
    >>> table.shape, columns
    ((3, 4), {'text': slice(0, 3, None), 'links': slice(3, 4, None)})
    """
    checked = as_views(views, allow_nan=True)
    ends = np.cumsum((0, *checked.widths)).tolist()
    return checked.joined(), {name: slice(*ends[v : v + 2]) for v, name in enumerate(checked.names)}


def as_views(
    X: Any, views: Any = None, *, allow_nan: bool = False, keep_float32: bool = False, kernel: Any = None
) -> Views:
    """Return X as checked, aligned views; ``allow_nan`` leaves NaN where it is, ``keep_float32`` single precision.

    Where ``kernel``, for all views or one per view, says that a view is a kernel matrix, it may stay float32.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.inputs import as_views
    >>> documents = as_views(np.arange(12.0).reshape(3, 4), views={"text": [0, 1, 2], "links": [3]})
    >>> documents.names, documents.widths
    (('text', 'links'), (3, 1))
    """
    refuse_dask(X, "this function")
    if is_multi_view(X):
        if views is not None:
            raise ViewError(
                f"views={views!r} divides the columns of one table, but X already holds {len(X)} views: drop it."
            )
        return _from_tables(X, allow_nan, keep_float32, kernel)
    names = get_feature_names(X)
    table = _checked(X, "X", allow_nan, keep_float32)
    return split_columns(table, views, names)


def observed_views(X: Any, views: Any = None, *, missing: str = "error") -> Views:
    """Return X as views of which some may lack samples: rows that are NaN throughout.

    ``missing`` says what becomes of other NaN, as it does in estimators.
    """
    checked = as_views(X, views, allow_nan=True)
    return _without_holes(checked, [missing] * len(checked), [None] * len(checked), None)[0]


def views_as_seen(model: Any, X: Any, views: Any = None) -> Views:
    """Return X as a model, fitted or not, sees it: with what is absent marked, and cells filled as it fills them."""
    if not takes_absent(model):
        return as_views(X, views, allow_nan=takes_missing_cells(getattr(model, "kernel", None)))
    checked = as_views(X, views, allow_nan=True)
    names = getattr(model, "view_names_", checked.names)
    fillers = dict(zip(names, getattr(model, "_fillers", [None] * len(names)), strict=True))
    missing = _missing_by_view(model, names)
    chosen = [dict(zip(names, missing, strict=True)).get(name, model.missing) for name in checked.names]
    known = [fillers.get(name) for name in checked.names]
    return _without_holes(checked, chosen, known, None, getattr(model, "memory_limit", None))[0]


def read_views(estimator: Any, X: Any, *, reset: bool, min_samples: int = 2, keep_float32: bool = False) -> Views:
    """Return X as views for ``estimator``; remembers names and widths when ``reset``, else compares with them.

    ``keep_float32`` is for callers that compute in float64 from dense tables of single precision: they get no copy.
    Estimators that say so take samples that are absent from some views; ``observed_`` keeps which were there in fit.
    """
    X, _ = without_tensors(X)  # of a GPU, too
    refuse_dask(X, type(estimator).__name__)
    nan_allowed = takes_absent(estimator) or keeps_nan(estimator)
    if is_multi_view(X):
        kernel = estimator.kernel if getattr(estimator, "_keeps_float32", False) else None
        views = as_views(X, estimator.views, allow_nan=True, keep_float32=keep_float32, kernel=kernel)
        if reset:
            estimator.n_features_in_ = sum(views.widths)
            vars(estimator).pop("feature_names_in_", None)  # of an earlier fit on a table
    else:
        try:
            table = validate_data(
                estimator,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=_kept_dtype(X, keep_float32),
                ensure_min_samples=min_samples if reset else 1,
                ensure_all_finite="allow-nan" if nan_allowed else True,
            )
        except ValueError as error:
            raise_if_text(error, "X")
            raise_if_not_finite(error, X, "X", FILL_CELLS)
            raise
        refuse_large_values(table, "X", ViewError)
        table = sp.csr_array(table) if sp.issparse(table) else table
        views = split_columns(table, estimator.views, getattr(estimator, "feature_names_in_", None))
    if reset:
        if views.n_samples < min_samples:
            raise ViewError(
                f"Found {views.n_samples} sample(s) in every view while a minimum of {min_samples} is required."
            )
        estimator.view_names_ = list(views.names)
        estimator._view_widths = views.widths
    some_views = isinstance(X, Mapping) and not reset and takes_absent(estimator)
    return _as_observed(estimator, _as_in_training(estimator, views, some_views), reset)


def _as_observed(estimator: Any, views: Views, reset: bool) -> Views:
    """Return the views with what is not there marked, missing cells filled as the estimator says."""
    if keeps_nan(estimator):
        return views
    if not takes_absent(estimator):
        _refuse_nan(estimator, views)
        return views
    missing = estimator.missing
    if missing not in MISSING:
        raise ParameterError(f"missing={missing!r} is not known: use one of {', '.join(MISSING)}.")
    # Models of older files have neither.
    fillers = [None] * len(views) if reset else getattr(estimator, "_fillers", [None] * len(views))
    known = None if reset else getattr(estimator, "observed_", None)
    limit = getattr(estimator, "memory_limit", None)
    views, fillers = _without_holes(views, _missing_by_view(estimator, views.names), fillers, known, limit)
    if not reset:
        if views.observed is not None:
            check_new_samples(views.observed)
        return views
    estimator._fillers = _with_fillers(views, missing, fillers)
    estimator.observed_ = views.mask()
    if views.observed is not None:
        check_observed(views.observed, views.names)
        for message in weak_links(views.observed, views.names):
            warn(message, ViewWarning)
    return views


def _missing_by_view(estimator: Any, names: Sequence[str]) -> list[str]:
    """Return what becomes of missing cells in every view: they stay where a kernel compares samples without them."""
    if estimator.missing != "error" or not getattr(estimator, "_compares_by_kernel", False):
        return [estimator.missing] * len(names)
    kernels = per_view(estimator.kernel, names, "kernel")
    return [KEEP if takes_missing_cells(kernel) else estimator.missing for kernel in kernels]


def _without_holes(
    views: Views,
    missing: Sequence[str],
    fillers: Sequence[CellFiller | None],
    known: Bools | None,
    memory_limit: float | None = None,
) -> tuple[Views, list[CellFiller | None]]:
    """Return the views without missing cells, with what is absent marked, and what filled the cells of each."""
    blocks = []
    kept = []
    observed = np.ones((views.n_samples, len(views)), dtype=bool)
    for v, (name, block, filler) in enumerate(zip(views.names, views.blocks, fillers, strict=True)):
        holes = find_holes(block, None if known is None else known[:, v])
        if holes is not None:
            block, observed[:, v], filler = without_cells(name, block, holes, missing[v], filler, memory_limit)
        blocks.append(block)
        kept.append(filler)
    return Views(views.names, tuple(blocks), None if observed.all() else observed), kept


def _with_fillers(views: Views, missing: str, fillers: Sequence[CellFiller | None]) -> list[CellFiller | None]:
    """Return what fills the cells of new samples, also of views that were complete in training."""
    if missing in ("error", "drop"):
        return list(fillers)
    learned = list(fillers)
    for v, filler in enumerate(fillers):
        if filler is None and not sp.issparse(views.blocks[v]):
            present = views.blocks[v][views.present(v)].astype(np.float64, copy=False)
            if not np.isnan(present).any():  # a kernel has NaN in the columns of absent samples
                learned[v] = CellFiller.fitted(missing, present, views.names[v])
    return learned


def _refuse_nan(estimator: Any, views: Views) -> None:
    for name, block in zip(views.names, views.blocks, strict=True):
        holes = find_holes(block)
        if holes is not None:
            absent = int(holes.absent.sum())
            what = f"{absent} absent samples (rows of NaN)" if absent else f"{int(holes.cells.sum())} NaN"
            raise ViewError(
                f"View {name!r} contains NaN: {what} of {views.n_samples} rows, and {type(estimator).__name__} takes "
                "complete views only. GraphFusionClustering takes samples that are absent from some views."
            )


def split_columns(table: Array, views: Any, feature_names: Any = None) -> Views:
    """Return the columns of ``table`` divided as ``views`` says; None means one view."""
    if views is None:
        return Views(("X",), (table,))
    if not isinstance(views, Mapping | list | tuple):
        raise ViewError(
            f"views={views!r} does not say which columns belong together; give a list or a dict of slices, column "
            "numbers or column names."
        )
    items = list(views.items()) if isinstance(views, Mapping) else [(f"view_{i}", v) for i, v in enumerate(views)]
    _check_names([str(name) for name, _ in items])
    if not items:
        raise ViewError("views is empty; give the columns of at least one view, or None for a single view.")
    blocks = [_taken(table, _columns(name, which, table.shape[1], feature_names)) for name, which in items]
    return Views(tuple(str(name) for name, _ in items), tuple(blocks))


def _taken(table: Array, columns: Array) -> Array:
    """Return some columns, laid out by rows as a table of its own: sums over another layout round differently."""
    return np.take(table, columns, axis=1) if isinstance(table, np.ndarray) else table[:, columns]


def _columns(name: Any, which: Any, n_features: int, feature_names: Any) -> Array:
    """Return the column numbers of one view: from a slice, integers, booleans or column names."""
    if isinstance(which, slice):
        columns = np.arange(n_features)[_numbered(name, which, feature_names)]
    else:
        columns = np.atleast_1d(np.asarray(which))
        if columns.dtype.kind in "UO":
            columns = _named_columns(name, [str(column) for column in columns], feature_names)
        elif columns.dtype.kind == "b":
            if len(columns) != n_features:
                raise ViewError(f"View {name!r} has a mask of length {len(columns)}, but X has {n_features} columns.")
            columns = np.flatnonzero(columns)
    if len(columns) == 0:
        raise ViewError(f"View {name!r} has no columns; give at least one, or leave the view out.")
    if columns.dtype.kind not in "iu" or columns.min() < -n_features or columns.max() >= n_features:
        raise ViewError(
            f"View {name!r} asks for columns {np.asarray(which).tolist()}, but X has columns 0..{n_features - 1}."
        )
    return columns.astype(np.intp)


def _numbered(name: Any, which: slice, feature_names: Any) -> slice:
    """Return a slice of column numbers; one of column names includes its last column, as in pandas."""
    ends = [end for end in (which.start, which.stop) if isinstance(end, str)]
    if not ends:
        return which
    place = dict(zip(ends, _named_columns(name, ends, feature_names).tolist(), strict=True))
    start = place.get(which.start, which.start)
    stop = place[which.stop] + 1 if isinstance(which.stop, str) else which.stop
    return slice(start, stop, which.step)


def _check_names(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ViewError(f"Several views are called {twice[0]!r}; give each view a name of its own.")


def _named_columns(name: Any, columns: Sequence[str], feature_names: Any) -> Array:
    if feature_names is None:
        raise ViewError(
            f"View {name!r} names columns {list(columns)[:5]}, but X has no column names. Pass a DataFrame, or give "
            "column numbers."
        )
    place = {str(column): i for i, column in enumerate(feature_names)}
    missing = [column for column in columns if column not in place]
    if missing:
        raise ViewError(f"View {name!r} names columns {missing[:5]} that X does not have; it has {list(place)[:8]}...")
    return np.array([place[column] for column in columns], dtype=np.intp)


def _from_tables(
    X: Mapping[Any, Any] | Sequence[Any], allow_nan: bool = False, keep_float32: bool = False, kernel: Any = None
) -> Views:
    items = list(X.items()) if isinstance(X, Mapping) else [(f"view_{i}", table) for i, table in enumerate(X)]
    if not items:
        raise ViewError("X holds no views; give at least one.")
    names = tuple(str(name) for name, _ in items)
    _check_names(names)
    tables = [table for _, table in items]
    kept = [keep_float32 or _is_matrix(kernel, name, place) for place, name in enumerate(names)]
    triples = zip(names, tables, kept, strict=True)
    blocks = tuple(_checked(table, f"view {name!r}", allow_nan, single) for name, table, single in triples)
    _check_aligned(names, blocks, tables)
    return Views(names, blocks)


def _check_aligned(names: Sequence[str], blocks: Sequence[Array], tables: Sequence[Any]) -> None:
    """Refuse views that differ in their number of rows, or data frames that differ in their index."""
    sizes = [block.shape[0] for block in blocks]
    if len(set(sizes)) > 1:
        counts = ", ".join(f"{name!r} has {size}" for name, size in zip(names, sizes, strict=True))
        raise ViewError(
            f"Views disagree on the number of samples: {counts}. "
            "Every view must hold the same samples in the same order."
        )
    indexed = [(name, table.index) for name, table in zip(names, tables, strict=True) if hasattr(table, "iloc")]
    for name, index in indexed[1:]:
        if not index.equals(indexed[0][1]):
            raise ViewError(
                f"Views {indexed[0][0]!r} and {name!r} have different row labels. Sort or reindex them so row i is "
                "the same sample in every view, or pass plain arrays if the order is already right."
            )


def _as_in_training(estimator: Any, views: Views, some_views: bool) -> Views:
    """Return the views in the order of training, or raise where they are not those of training.

    ``some_views`` takes new samples without some of the views, which are then absent from these.
    """
    known = tuple(estimator.view_names_)
    if some_views and set(views.names) < set(known):
        views = _with_absent_views(views, known, estimator._view_widths)
    if set(views.names) != set(known):
        raise ViewError(
            f"The model was fitted on views {list(known)}, but X has {list(views.names)}. Pass the same views."
        )
    for name, width in zip(known, estimator._view_widths, strict=True):
        if views[name].shape[1] != width:
            raise ViewError(f"View {name!r} has {views[name].shape[1]} features, but the model was fitted on {width}.")
    return Views(known, tuple(views[name] for name in known))


def _with_absent_views(views: Views, names: Sequence[str], widths: Sequence[int]) -> Views:
    """Return the views with those that are not there as NaN."""
    blocks = [
        views[name] if name in views.names else np.full((views.n_samples, width), np.nan)
        for name, width in zip(names, widths, strict=True)
    ]
    return Views(tuple(names), tuple(blocks))


_FILL = "Fill the cells first, for instance with scikit-learn's SimpleImputer, or remove the rows."


def _is_matrix(kernel: Any, name: str, place: int) -> bool:
    """Whether a view is a kernel matrix, by the kernel of all views or of each; faults are found where it is fitted."""
    if isinstance(kernel, Mapping):
        kernel = {str(key): value for key, value in kernel.items()}.get(name)
    elif isinstance(kernel, list | tuple):
        kernel = kernel[place] if place < len(kernel) else None
    return isinstance(kernel, str) and kernel == "precomputed"


def _checked(table: Any, name: str, allow_nan: bool = False, keep_float32: bool = False) -> Array:
    """Return one view as float64, dense or CSR; the error names the view."""
    dtype = _kept_dtype(table, keep_float32)
    finite = "allow-nan" if allow_nan else True
    try:
        block = check_array(table, accept_sparse="csr", dtype=dtype, input_name=name, ensure_all_finite=finite)
    except ValueError as error:
        raise_if_text(error, name, ViewError)
        raise_if_not_finite(error, table, f"{name[0].upper()}{name[1:]}", _FILL, ViewError)
        raise ViewError(f"{name}: {error}") from error
    refuse_large_values(block, f"{name[0].upper()}{name[1:]}", ViewError)
    return sp.csr_array(block, dtype=np.float64) if sp.issparse(block) else block


def _kept_dtype(table: Any, keep_float32: bool) -> Any:
    """Return what numbers of a table become: float32 stays where it may, in dense tables."""
    return [np.float64, np.float32] if keep_float32 and not sp.issparse(table) else np.float64


def _ndim(table: Any) -> int:
    """Return the number of dimensions; -1 for ragged nested lists."""
    if hasattr(table, "shape"):
        return len(table.shape)
    try:
        return np.ndim(table)
    except ValueError:
        return -1


def per_view(choice: Any, names: Sequence[str], parameter: str) -> list[Any]:
    """Return one value per view: from a list, a dict by view name, or one value for all.

    A dict whose keys are not the names of the views is itself the value for all, as parameters of a kernel are.
    """
    named = {str(name): value for name, value in choice.items()} if isinstance(choice, Mapping) else {}
    if set(named) & set(names):
        if set(named) != set(names):
            raise ViewError(f"{parameter} names views {sorted(named)}, but the views are {list(names)}.")
        return [named[name] for name in names]
    if isinstance(choice, list | tuple):
        if len(choice) != len(names):
            raise ViewError(f"{parameter} has {len(choice)} entries for {len(names)} views; give one per view.")
        return list(choice)
    return [choice] * len(names)


def read_view_weights(weights: Any, names: Sequence[str], parameter: str) -> Floats:
    """Return the view weights that a user passed, divided by their sum."""
    if isinstance(weights, Mapping):
        named = {str(name): value for name, value in weights.items()}
        if set(named) != set(names):
            raise ViewError(f"{parameter} names views {sorted(named)}, but the views are {list(names)}.")
        weights = [named[name] for name in names]
    try:
        numbers = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ViewError(f"{parameter}={weights!r} must hold one number per view.") from error
    if numbers.shape != (len(names),):
        raise ViewError(f"{parameter} has {numbers.size} entries for {len(names)} views; give one per view.")
    if not (np.isfinite(numbers).all() and (numbers >= 0).all() and numbers.sum() > 0):
        raise ViewError(f"{parameter}={numbers.tolist()} must be finite, not negative and not all zero.")
    return np.asarray(numbers / numbers.sum())
