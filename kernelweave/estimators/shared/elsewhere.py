"""Tables that are not in memory as a whole: how estimators read them, let go of them, and answer about new ones."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelweave.foundation.config import get_config
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.sklearn_internals import get_feature_names
from kernelweave.inputs import Views, as_views
from kernelweave.inputs.arrays.chunks import as_chunks, has_dask, is_chunked, is_dask, map_rows
from kernelweave.kernels.chunked import in_blocks, placed

C = TypeVar("C", bound=type)

#: MiB that tables may take in memory, of estimators without a limit of their own.
DEFAULT_LIMIT = 2048.0


def is_elsewhere(estimator: Any, X: Any) -> bool:
    """Whether a table, or several views, are read block by block, here or on the workers of a cluster."""
    if not estimator._takes_blocks:
        return False
    return get_config().client is not None or is_chunked(X, limit_of(estimator))


def limit_of(estimator: Any) -> float:
    """Return the MiB that tables may take in memory."""
    limit = getattr(estimator, "memory_limit", None)
    return DEFAULT_LIMIT if limit is None else float(limit)


def placed_samples(estimator: Any, X: Any) -> Any:
    """Return one table as an array in blocks; records the number of features, as reading a table in memory does."""
    if isinstance(X, Mapping | list | tuple) and is_chunked(X):
        raise ParameterError(f"X holds several tables, and {type(estimator).__name__} takes one; see X in its fit.")
    in_memory = not is_chunked(X, 0.0)
    _, (table,) = as_chunks(np.asarray(X) if in_memory and not sp.issparse(X) else X)
    (array,) = placed([table], ["X"], limit_of(estimator))
    names = get_feature_names(X) if in_memory else table.columns
    _record(estimator, table.width, names)
    return array


def placed_views(estimator: Any, X: Any) -> Views:
    """Return several tables as arrays in blocks of the same rows."""
    named = None
    if not is_chunked(X, 0.0):  # in memory, to be spread over the workers of a client
        named = get_feature_names(X)
        views = as_views(X, estimator.views)
        names, tables = as_chunks(dict(zip(views.names, views.blocks, strict=True)))
    else:
        names, tables = as_chunks(X, estimator.views)
    arrays = placed(tables, [f"view {name!r}" for name in names], limit_of(estimator))
    _record(estimator, sum(table.width for table in tables), tables[0].columns if len(tables) == 1 else named)
    estimator.view_names_ = list(names)
    estimator._view_widths = tuple(table.width for table in tables)
    estimator._fillers = [None] * len(names)
    blocks: Any = tuple(arrays)
    return Views(names, blocks)


@contextmanager
def letting_go(X: Any) -> Iterator[None]:
    """Give back what is elsewhere at the end, also where an error ends the block."""
    array: Any = X.blocks[0] if isinstance(X, Views) else X
    try:
        yield
    finally:
        if in_blocks(array):
            array.backend.close()


def all_labels(estimator: Any, X: Any) -> Any:
    """Return the labels of all samples of a fitted estimator as NumPy, computed where they lie."""
    if has_dask(X):
        return np.asarray(estimator.predict(X))
    if not is_chunked(X, 0.0):
        return estimator.predict(X)
    names, tables = as_chunks(X)
    loaders = zip(*(table.loaders for table in tables), strict=True)
    several = isinstance(X, Mapping | list | tuple)
    parts = []
    for rows in loaders:
        views = [load() for load in rows]
        parts.append(estimator.predict(dict(zip(names, views, strict=True)) if several else views[0]))
    return np.concatenate(parts)


def store_communication(estimator: Any, op: Any) -> None:
    """Store what travelled in a fit, where data were elsewhere; ``op`` is a kernel or an array."""
    vars(estimator).pop("communication_", None)
    places = getattr(getattr(op, "backend", None), "places", None)
    if places is None:
        return
    traffic = places.traffic
    estimator.communication_ = {
        "rounds": traffic.rounds,
        "bytes_sent": traffic.sent,
        "bytes_received": traffic.received,
        "bytes_of_a_round": int(np.median(traffic.by_round)) if traffic.by_round else 0,
        "blocks": len(places.blocks),
        "workers": len(places.where()),
        "workers_lost": len(places.lost),
    }


def _record(estimator: Any, width: int, columns: Any) -> None:
    estimator.n_features_in_ = width
    vars(estimator).pop("feature_names_in_", None)
    if columns is not None:
        estimator.feature_names_in_ = np.array(columns, dtype=object)


# --- new samples in Dask collections ---------------------------------------------------------------------------------


def answers_lazily(*names: str) -> Callable[[C], C]:
    """Have methods of a class answer about Dask collections with Dask arrays, block by block when they are computed.

    ``predict`` and other methods of one row for every sample return Dask arrays; ``_n_columns`` of the class says how
    wide they are. ``score``, where it is a sum over samples, is computed at once. It decorates classes and not methods
    because scikit-learn wraps ``transform`` for set_output when a class is made, and would load the answer.
    """

    def decorate(cls: C) -> C:
        for name in names:
            method = vars(cls)[name]
            check = getattr(method, "check", None)  # of available_if
            lazy = _lazy(name, method if check is None else method.fn)
            setattr(cls, name, lazy if check is None else available_if(check)(lazy))
        return cls

    return decorate


def _lazy(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    others: dict[str, Callable[..., Any]] = {"score": _summed_scores, "fit_transform": _fit_then_transform}
    answer = others.get(name, partial(_rows_answered, name))

    @wraps(method)
    def lazy(estimator: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        return answer(estimator, X, *args, **kwargs) if has_dask(X) else method(estimator, X, *args, **kwargs)

    return lazy


def _rows_answered(name: str, estimator: Any, X: Any) -> Any:
    """Return the answers to all samples as a Dask array; of the model as it is now, also if it is fitted again."""
    columns = _checked_columns(name, estimator, X)
    dtype = np.intp if name == "predict" else np.float64
    return map_rows(partial(_answer, name, columns, dtype), copy(estimator), X, columns, dtype)


def _checked_columns(name: str, estimator: Any, X: Any) -> int | None:
    """Return the number of columns of an answer; features that training did not have are an error right away."""
    check_is_fitted(estimator)
    if is_dask(X) and X.ndim == 2:
        named = X._meta if hasattr(X, "columns") else X  # an empty data frame
        validate_data(estimator, named, reset=False, skip_check_array=True)
    columns: int | None = estimator._n_columns(name)
    return columns


def _answer(name: str, columns: int | None, dtype: Any, estimator: Any, rows: Any) -> Any:
    """Return the answers to the samples of one block, which may have none."""
    if _n_rows(rows) == 0:
        return np.empty((0,) if columns is None else (0, columns), dtype=dtype)
    return np.asarray(getattr(estimator, name)(rows), dtype=dtype)


def _n_rows(rows: Any) -> int:
    if isinstance(rows, Mapping):
        rows = list(rows.values())
    return max(int(view.shape[0]) for view in (rows if isinstance(rows, list) else [rows]))


def _summed_scores(estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
    """Return the sum of the scores of all blocks."""
    check_is_fitted(estimator)
    if sample_weight is not None:
        raise ParameterError(
            "sample_weight cannot be combined with a Dask collection. Leave it out, "
            "or score blocks of samples in memory "
            "and add up the scores."
        )
    return float(map_rows(_block_score, copy(estimator), X, None, np.float64).sum().compute())


def _block_score(estimator: Any, rows: Any) -> Any:
    """Return the score of one block as that of its first sample, and zeros for the others."""
    scores = np.zeros(_n_rows(rows))
    if len(scores):
        scores[0] = estimator.score(rows)
    return scores


def _fit_then_transform(estimator: Any, X: Any, y: Any = None, **fit_params: Any) -> Any:
    return estimator.fit(X, y, **fit_params).transform(X)
