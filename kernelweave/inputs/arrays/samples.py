"""Samples of one view, and what goes with them: weights, starting labels, starting centres."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from kernelweave.foundation.array_types import Array, Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.tensors import without_tensors
from kernelweave.inputs.arrays.chunks import refuse_dask
from kernelweave.inputs.arrays.finiteness import raise_if_not_finite, refuse_large_values

#: What to do about missing cells of one table.
FILL_CELLS = (
    "Fill the cells (scikit-learn's SimpleImputer in a pipeline), remove the rows, or use "
    "GraphFusionClustering(missing='median')."
)


def read_samples(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    keep_float32: bool = False,
    dense: bool = False,
    allow_nan: bool = False,
    checked_later: bool = False,
    features: bool = True,
) -> Array:
    """Return X as a checked float array or CSR matrix; records the number of features when ``reset``.

    Features become float64 (every sum is kept in it); kernel matrices may stay float32. ``dense`` refuses sparse X;
    ``allow_nan`` accepts missing cells, but no row without any value. ``checked_later`` leaves it to the
    caller to look for values that are not finite. ``features`` says that X is compared by squares of its values, so
    that very large ones are refused; a kernel matrix is not.
    """
    X, _ = without_tensors(X)  # of a GPU, too
    refuse_dask(X, type(estimator).__name__)
    dtype = [np.float64, np.float32] if keep_float32 else np.float64
    given = X
    try:
        X = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse=False if dense else "csr",
            dtype=dtype,
            ensure_min_samples=2 if reset else 1,
            ensure_all_finite="allow-nan" if allow_nan else not checked_later,
        )
    except ValueError as error:
        raise_if_text(error, "X")
        raise_if_not_finite(error, given, "X", FILL_CELLS)
        raise
    if features:
        refuse_large_values(X, "X")
    if allow_nan and not sp.issparse(X):
        empty = np.flatnonzero(np.isnan(X).all(axis=1))
        if len(empty):
            raise ParameterError(
                f"{len(empty)} samples have no value at all (the first is row {empty[0]}): NaN is all they have. Leave "
                "them out."
            )
    return sp.csr_array(X) if sp.issparse(X) else X


def raise_if_text(error: ValueError, name: str, kind: type[ValueError] = ParameterError) -> None:
    """Replace NumPy's error about a string by one that says what to do."""
    if "could not convert string to float" in str(error):
        text = str(error).split(":", 1)[-1].strip()
        raise kind(
            f"{name} holds text ({text}) where numbers are expected. Encode it first, for instance with scikit-learn's "
            "OneHotEncoder or TfidfVectorizer, or drop the column."
        ) from error


def read_weights(sample_weight: Any, n_samples: int) -> Floats:
    """Return the sample weights as float64, ones by default; refuses negative, non-finite and all-zero ones."""
    if sample_weight is None:
        return np.ones(n_samples)
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except ValueError as error:
        raise_if_text(error, "sample_weight")
        raise
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise ParameterError(
            f"sample_weight.shape == {weights.shape}, expected ({n_samples},): give one weight per sample."
        )
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise ParameterError(
            f"sample_weight[{bad[0]}] = {weights[bad[0]]}: weights must be finite and not negative. "
            "Use 0 to leave a sample out."
        )
    if not weights.sum() > 0:
        raise ParameterError("sample_weight is zero for every sample; at least one must be positive.")
    return weights


def check_cluster_count(n_clusters: int, weights: Floats) -> None:
    """Raise ParameterError where fewer samples have a positive weight than there are clusters."""
    n = len(weights)
    if n_clusters > n:
        raise ParameterError(
            f"n_samples={n} should be >= n_clusters={n_clusters}: there cannot be more clusters than samples."
        )
    positive = int(np.count_nonzero(weights))
    if n_clusters > positive:
        raise ParameterError(
            f"Only {positive} samples have a positive weight, fewer than n_clusters={n_clusters}. "
            "Lower n_clusters or give more samples a weight."
        )


def read_labels(labels: Any, n_samples: int, n_clusters: int, name: str = "init") -> Ints:
    """Return starting labels as integers in 0..n_clusters-1."""
    labels = np.asarray(labels)
    if labels.shape != (n_samples,):
        raise ParameterError(
            f"{name} has shape {labels.shape}; starting labels need one entry per sample, ({n_samples},)."
        )
    if not np.issubdtype(labels.dtype, np.number) or not np.array_equal(labels, np.floor(labels)):
        raise ParameterError(f"{name} must hold whole numbers 0..{n_clusters - 1}, one label per sample.")
    if labels.min() < 0 or labels.max() >= n_clusters:
        raise ParameterError(
            f"{name} holds labels from {labels.min()} to {labels.max()}; with n_clusters={n_clusters} they must be "
            f"0..{n_clusters - 1}."
        )
    return labels.astype(np.intp)


def read_centers(centers: Any, n_clusters: int, n_features: int, name: str = "init") -> Floats:
    """Return starting centres as a float64 array of shape (n_clusters, n_features)."""
    try:
        centers = np.asarray(centers.toarray() if sp.issparse(centers) else centers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, ValueError):
            raise_if_text(error, name)
        raise ParameterError(f"{name} is not a table of numbers ({error}). {_CENTERS}") from error
    if centers.shape != (n_clusters, n_features):
        raise ParameterError(f"{name} has shape {centers.shape}, expected ({n_clusters}, {n_features}). {_CENTERS}")
    if not np.isfinite(centers).all():
        what = "NaN" if np.isnan(centers).any() else "infinity"
        raise ParameterError(f"{name} contains {what}; every coordinate of a centre must be finite.")
    return centers


_CENTERS = "Starting centres need one row per cluster and one column per feature."
