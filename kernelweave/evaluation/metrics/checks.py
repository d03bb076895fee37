"""Checks shared by the measures: labels, weights, numbers and plain arrays.

Each returns what the formulas need (integer codes, float64 arrays) and leaves the caller's object as it was.
"""

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches

from kernelweave.foundation.errors import ParameterError
from kernelweave.partitions.silhouettes import BLOCK_ELEMENTS


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Cut ``n_rows`` into slices whose blocks hold about ``BLOCK_ELEMENTS`` entries."""
    yield from gen_batches(n_rows, max(1, BLOCK_ELEMENTS // max(1, n_columns)))


def divide_or_zero(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide entry by entry, with 0 where the denominator is 0."""
    out = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    np.divide(numerator, denominator, out=out, where=denominator != 0)
    return out


def totals(codes: np.ndarray, values: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the sum of the values over every cluster, shape (k,)."""
    return as_float64(np.bincount(codes, values, minlength=n_clusters))


# Labels


def encode_labels(labels: ArrayLike, name: str = "labels", *, n_clusters: int | None = None) -> tuple[np.ndarray, int]:
    """Return the labels as codes 0..k-1, and k.

    Without ``n_clusters`` the clusters are the distinct labels in sorted order; with it the labels
    must be codes already, and clusters that no sample carries count as empty.
    """
    values = _label_array(labels, name)
    if n_clusters is None:
        distinct, codes = np.unique(values, return_inverse=True)
        return codes, len(distinct)
    k = check_integer(n_clusters, "n_clusters", 1)
    return _codes_below(values, k, name), k


def encode_pair(labels_true: ArrayLike, labels_pred: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return both labellings as codes, after checking that they label the same samples."""
    true, _ = encode_labels(labels_true, "labels_true")
    pred, _ = encode_labels(labels_pred, "labels_pred")
    if len(true) != len(pred):
        raise ParameterError(
            f"labels_true has {len(true)} entries and labels_pred has {len(pred)}. "
            "Both must label the same samples in the same order."
        )
    return true, pred


def check_length(codes: np.ndarray, n_samples: int, name: str) -> None:
    """Refuse labels that do not go with the ``n_samples`` samples of argument ``name``."""
    if len(codes) != n_samples:
        raise ParameterError(
            f"labels has {len(codes)} entries but {name} describes {n_samples} samples. "
            "Give one label per sample, in the same order."
        )


def _label_array(labels: ArrayLike, name: str) -> np.ndarray:
    values = np.asarray(labels)
    if values.ndim != 1:
        raise ParameterError(
            f"{name} has shape {values.shape}. Give a one-dimensional array with one label per sample; "
            "a column can be flattened with ravel()."
        )
    if values.size == 0:
        raise ParameterError(f"{name} is empty. Give one label per sample.")
    _refuse_non_labels(values, name)
    return values


def _refuse_non_labels(values: np.ndarray, name: str) -> None:
    if values.dtype.kind == "f":
        bad = ~np.isfinite(values) | (values != np.round(values))
    elif values.dtype.kind == "O":
        kind = str if isinstance(values[0], str) else Integral  # both at once have no common order
        bad = np.array([not isinstance(each, kind) for each in values])
    elif values.dtype.kind in "biuUST":
        return
    else:
        bad = np.ones(len(values), dtype=bool)
    if bad.any():
        raise ParameterError(
            f"{name} holds {values[bad][0]!r} at position {int(np.argmax(bad))}. "
            "Labels must be all integers or all strings; drop the samples that have none."
        )


def _codes_below(values: np.ndarray, n_clusters: int, name: str) -> np.ndarray:
    if values.dtype.kind not in "biuf":
        raise ParameterError(
            f"{name} holds {values[0]!r} while n_clusters={n_clusters} is passed. "
            "With n_clusters the labels must be integers 0..n_clusters-1; leave it out for other labels."
        )
    outside = (values < 0) | (values >= n_clusters)
    if outside.any():
        raise ParameterError(
            f"{name} holds {values[outside][0].item()!r}, outside 0..{n_clusters - 1} for "
            f"n_clusters={n_clusters}. Raise n_clusters or renumber the labels."
        )
    return values.astype(np.intp)


# Numbers


def check_integer(value: Any, name: str, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int in [low, high]."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or int(value) < low or (high is not None and int(value) > high):
        wanted = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"
        raise ParameterError(f"{name}={value!r} cannot be used. Give {wanted}.")
    return int(value)


def check_fraction(value: Any, name: str) -> float:
    """Return ``value`` as a float in [0, 1]."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) <= 1:
        raise ParameterError(f"{name}={value!r} cannot be used. Give a number from 0 to 1.")
    return float(value)


# Arrays


def check_vector(values: ArrayLike, name: str, n_samples: int) -> np.ndarray:
    """Return ``values`` as n_samples finite float64 numbers."""
    vector = np.asarray(values)
    if vector.shape != (n_samples,):
        raise ParameterError(
            f"{name} has shape {vector.shape} for {n_samples} samples. "
            f"Give one number per sample, shape ({n_samples},)."
        )
    refuse_non_numbers(vector, name)
    refuse_non_finite(vector, name)
    return vector.astype(np.float64)


def check_rows(X: Any, name: str, codes: np.ndarray) -> np.ndarray | sp.csr_array:
    """Return a finite 2-D array as it is, or a canonical float64 CSR array, with one row per label."""
    rows = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    if rows.ndim != 2:
        raise ParameterError(
            f"{name} has shape {rows.shape}. Give a two-dimensional array with one row per sample; "
            "a single column can be made with reshape(-1, 1)."
        )
    check_length(codes, rows.shape[0], name)
    refuse_non_numbers(rows, name)
    refuse_non_finite(rows, name)
    return canonical(rows) if sp.issparse(rows) else rows


def canonical(matrix: sp.csr_array) -> sp.csr_array:
    """Return a float64 copy with repeated entries added up."""
    copy = matrix.astype(np.float64, copy=True)
    copy.sum_duplicates()
    return copy


def as_float64(block: np.ndarray) -> np.ndarray:
    """Return the block in float64, itself where it is so already."""
    return np.asarray(block, dtype=np.float64)


def refuse_non_numbers(array: Any, name: str, error: type[ValueError] = ParameterError) -> None:
    """Refuse complex, object, string and other arrays that do not hold real numbers."""
    if array.dtype.kind not in "biuf":
        raise error(f"{name} holds values of type {array.dtype}. Give real numbers.")


def refuse_non_finite(array: Any, name: str, error: type[ValueError] = ParameterError) -> None:
    """Refuse NaN and infinity, naming where the first one stands."""
    values = array.data if sp.issparse(array) else array
    if values.dtype.kind != "f" or values.size == 0:
        return
    for rows in row_blocks(len(values), values[0].size):
        bad = ~np.isfinite(values[rows])
        if bad.any():
            at = np.unravel_index(np.argmax(bad), bad.shape)
            where = "" if sp.issparse(array) else f" at index {_as_text(at, rows.start)}"
            raise error(
                f"{name} holds {values[rows][at].item()!r}{where}. "
                "Every value must be a finite number; fill in or drop the samples concerned."
            )


def _as_text(at: tuple[np.intp, ...], first_row: int) -> str:
    index = [int(at[0]) + first_row, *(int(i) for i in at[1:])]
    return str(index[0]) if len(index) == 1 else str(tuple(index))
