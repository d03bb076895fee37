"""Tables that are not in memory as a whole: how estimators read them, let go of them, and answer about new ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.config import get_config
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import Views
from kernelweave.inputs.arrays.chunks import Chunks, as_chunks, is_chunked
from kernelweave.kernels.chunked import in_blocks, placed

#: MiB that tables may take in memory, of estimators without a limit of their own.
DEFAULT_LIMIT = 2048.0


def is_elsewhere(estimator: Any, X: Any) -> bool:
    """Whether a table, or several views, are read block by block, here or on the workers of a cluster.

    Estimators that need all samples in memory say so by ``_takes_blocks``; a client of the settings is an error there.
    """
    client = get_config().client
    if getattr(estimator, "_takes_blocks", False):
        return client is not None or is_chunked(X, limit_of(estimator))
    if client is not None:
        raise ParameterError(
            f"{type(estimator).__name__} works in one process and not on the workers of a client. Leave config_context "
            "for this fit, or use KernelKMeans, MinMaxKMeans, MinMaxKernelKMeans or MultiViewKernelKMeans."
        )
    return False


def limit_of(estimator: Any) -> float:
    """Return the MiB that tables may take in memory."""
    return float(getattr(estimator, "memory_limit", DEFAULT_LIMIT))


def placed_samples(estimator: Any, X: Any) -> Any:
    """Return one table as an array in blocks; records the number of features, as reading a table in memory does."""
    _, (table,) = as_chunks(_plain(X))
    _check_samples(table)
    (array,) = placed([table], ["X"], limit_of(estimator))
    _record(estimator, table.width, table.columns)
    return array


def placed_views(estimator: Any, X: Any) -> Views:
    """Return several tables as arrays in blocks of the same rows."""
    views = X
    if not isinstance(X, dict | list | tuple):
        views = [X]
    elif get_config().client is not None:
        views = {name: _plain(view) for name, view in X.items()} if isinstance(X, dict) else [_plain(v) for v in X]
    names, tables = as_chunks(views, estimator.views)
    _check_samples(tables[0])
    arrays = placed(tables, [f"view {name!r}" for name in names], limit_of(estimator))
    estimator.n_features_in_ = sum(table.width for table in tables)
    vars(estimator).pop("feature_names_in_", None)
    estimator.view_names_ = list(names)
    estimator._view_widths = tuple(table.width for table in tables)
    estimator._fillers = [None] * len(names)
    blocks: Any = tuple(arrays)
    return Views(names, blocks)


@contextmanager
def letting_go(X: Any) -> Iterator[None]:
    """Give back what lies elsewhere at the end, also where an error ends the block."""
    array: Any = X.blocks[0] if isinstance(X, Views) else X
    try:
        yield
    finally:
        if in_blocks(array):
            array.backend.close()


def store_communication(estimator: Any, op: Any) -> None:
    """Store what travelled in a fit, where data lay elsewhere."""
    vars(estimator).pop("communication_", None)
    places = getattr(op.backend, "places", None)
    if places is None:
        return
    traffic = places.traffic
    estimator.communication_ = {
        "rounds": traffic.rounds,
        "bytes_sent": traffic.sent,
        "bytes_received": traffic.received,
        "blocks": len(places.blocks),
        "workers": len(places.where()),
    }


def _plain(X: Any) -> Any:
    """Return samples that can be cut into blocks; lists and DataFrames in memory become arrays."""
    if is_chunked(X, 0.0):
        return X
    if sp.issparse(X):
        raise ParameterError("Sparse tables cannot be spread over workers yet. Convert X with X.toarray() if it fits.")
    return np.asarray(X)


def _check_samples(table: Chunks) -> None:
    if table.n_samples < 2:
        raise ParameterError(f"Found {table.n_samples} sample(s) while a minimum of 2 is required.")


def _record(estimator: Any, width: int, columns: tuple[str, ...] | None) -> None:
    estimator.n_features_in_ = width
    vars(estimator).pop("feature_names_in_", None)
    if columns is not None:
        estimator.feature_names_in_ = np.array(columns, dtype=object)
