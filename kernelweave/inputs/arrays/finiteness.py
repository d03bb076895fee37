"""Values that no method can work with, named with their number, their place and a remedy."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Array, Bools
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.sklearn_internals import get_feature_names

#: Largest absolute value of a feature: squares reach 1e280 and leave room for sums of any number of them.
LARGEST_VALUE = 1e140


def raise_if_not_finite(
    error: ValueError, X: Any, name: str, remedy: str, kind: type[ValueError] = ParameterError
) -> None:
    """Replace scikit-learn's error about NaN or infinity by one that counts them; ``remedy`` is for NaN."""
    text = str(error)
    if "contains NaN" not in text and "contains infinity" not in text:
        return
    try:
        values = _numbers(X)
    except (TypeError, ValueError):  # no table of numbers: scikit-learn's own words are right
        return
    infinite = np.isinf(values)
    if infinite.any():
        raise kind(
            f"{name} contains infinity in {_counted(X, infinite)}. Replace these values, or remove the rows."
        ) from error
    missing = np.isnan(values)
    if missing.any():
        raise kind(f"{name} contains NaN in {_counted(X, missing)}. {remedy}") from error


def refuse_large_values(X: Array, name: str, kind: type[ValueError] = ParameterError) -> None:
    """Refuse features whose squares overflow; NaN is left to others."""
    values = np.asarray(X.data if sp.issparse(X) else X)
    if values.size == 0:
        return
    largest = max(float(np.fmax.reduce(values, axis=None)), -float(np.fmin.reduce(values, axis=None)))
    if largest > LARGEST_VALUE:
        raise kind(
            f"{name} holds values as large as {largest:.3g}, whose squares overflow: distances need values up to "
            f"{LARGEST_VALUE:g}. Divide the columns by a constant first."
        )


def _numbers(X: Any) -> Any:
    """Return the values as a float array; the stored ones of a sparse matrix."""
    values = X.tocsr().data if sp.issparse(X) else X
    return np.asarray(values, dtype=np.float64)


def _counted(X: Any, bad: Bools) -> str:
    """Return how many cells of how many rows are bad, and where the first one is."""
    if sp.issparse(X):
        entries = X.tocsr()
        rows = np.repeat(np.arange(entries.shape[0]), np.diff(entries.indptr))[bad]
        columns = entries.indices[bad]
    elif bad.ndim == 2:
        rows, columns = np.nonzero(bad)
    else:
        return f"{np.count_nonzero(bad):,} places"
    names = get_feature_names(X)
    column = int(columns[0]) if names is None else repr(str(names[columns[0]]))
    cells = "cell" if len(rows) == 1 else "cells"
    n_rows = len(np.unique(rows))
    place = f"the first is row {int(rows[0])}, column {column}"
    return f"{len(rows):,} {cells} of {n_rows:,} {'row' if n_rows == 1 else 'rows'} ({place})"
