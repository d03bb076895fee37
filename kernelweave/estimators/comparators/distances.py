"""Distances by name, by a function or precomputed, measured without needless rounding and checked."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS

from kernelweave.foundation.array_types import Array, Floats, Matrix
from kernelweave.foundation.errors import KernelError, ParameterError
from kernelweave.kernels.spec.distances import between

#: Metrics that sparse samples can be measured by.
SPARSE_METRICS = ("cityblock", "cosine", "euclidean", "l1", "l2", "manhattan", "sqeuclidean")
#: Metrics of ``sklearn.metrics.pairwise_distances``.
METRICS = (
    *SPARSE_METRICS,
    *("braycurtis", "canberra", "chebyshev", "correlation", "dice", "hamming", "haversine", "jaccard", "mahalanobis"),
    *("minkowski", "rogerstanimoto", "russellrao", "seuclidean", "sokalsneath", "yule"),
)
_ALIASES = {"l1": "manhattan", "l2": "euclidean", "cityblock": "manhattan"}
# What these metrics need and would otherwise take from the given samples, differently for new ones.
_NEEDED = {"seuclidean": "V", "mahalanobis": "VI"}
# Metrics of the form 1 - similarity, and the distance up to which two samples are equal except for its rounding.
_ANGLES = ("cosine", "correlation")
_EQUAL_ANGLES = 1e-14
# Precomputed distances may differ from their mirror image, or from zero, by this much of the largest.
_ASYMMETRY = {"float32": 1e-5, "float64": 1e-10}
#: Rows of a matrix of distances measured or checked at a time.
ROWS = 512


def measured(A: Matrix, B: Matrix, metric: Any, params: Mapping[str, Any] | None = None) -> Floats:
    """Return the distances between two sets of samples; equal samples have distance zero."""
    params = dict(params or {})
    name = _ALIASES.get(metric, metric) if isinstance(metric, str) else "callable"
    if name in _NEEDED and _NEEDED[name] not in params:
        raise ParameterError(
            f"metric={metric!r} needs metric_params={{{_NEEDED[name]!r}: ...}}, so that new samples are measured as "
            "those of training."
        )
    if name in SPARSE_METRICS and not params:
        squared = name == "sqeuclidean" and sp.issparse(A)
        distances = between(A, B, "euclidean" if squared else name)
        distances = distances**2 if squared else distances
    else:
        if name in PAIRWISE_BOOLEAN_FUNCTIONS:
            A = A != 0
            B = B != 0
        distances = np.asarray(pairwise_distances(A, B, metric=metric, **params), dtype=np.float64)
    if name in _ANGLES:
        distances = np.where(np.abs(distances) <= _EQUAL_ANGLES, 0.0, distances)
    if not (distances.min(initial=0.0) >= 0 and distances.max(initial=0.0) < np.inf):  # NaN fails both
        odd = distances[~((distances >= 0) & (distances < np.inf))][0]
        raise ParameterError(f"metric={metric!r} gives a distance of {odd}; distances must be finite and not negative.")
    return distances


def measured_among(X: Matrix, metric: Any, params: Mapping[str, Any] | None = None, rows: int = ROWS) -> Floats:
    """Return the distances between all pairs of samples, so many ``rows`` at a time."""
    n = X.shape[0]
    if callable(metric):  # half of the calls are saved where both sets are one
        return measured(X, X, metric, params)
    D = np.empty((n, n))
    for start in range(0, n, rows):
        D[start : start + rows] = measured(X[start : start + rows], X, metric, params)
    return D


def check_distance_matrix(D: Array, *, square: bool) -> None:
    """Raise for values that are not distances; those among the training samples must be ``square`` and symmetric."""
    if square and D.shape[0] != D.shape[1]:
        raise KernelError(
            f"X must be a square matrix of distances, one row and one column per sample; its shape is {D.shape}. Pass "
            "features with another metric, or the distances between all pairs of samples."
        )
    lowest = float(D.min())
    allowed = _ASYMMETRY.get(str(D.dtype), 1e-10) * max(float(D.max()), -lowest)
    if lowest < -allowed:
        i, j = np.argwhere(D + allowed < 0)[0]
        raise KernelError(
            f"Negative values in data passed as distances: X[{i}, {j}] = {D[i, j]:.9g}. For similarities use "
            "KernelKMeans or AffinityPropagation with kernel='precomputed'."
        )
    if square:
        for start in range(0, len(D), ROWS):
            rows = slice(start, start + ROWS)
            odd = np.argwhere(np.abs(D[rows] - D[:, rows].T) > allowed)
            if len(odd):
                _raise_for(D, start + odd[0, 0], odd[0, 1], "differs from its mirror entry: X is not symmetric")
        on = np.flatnonzero(np.abs(np.diag(D)) > allowed)
        if len(on):
            _raise_for(D, on[0], on[0], "on the diagonal; a sample has distance 0 to itself")


def given_distances(D: Array) -> Floats:
    """Return some rows or columns of a checked matrix as float64, without what rounding left below zero."""
    return np.maximum(D, 0.0, dtype=np.float64)


def _raise_for(D: Array, i: int, j: int, why: str) -> None:
    raise KernelError(f"X[{i}, {j}] = {D[i, j]:.9g} {why}.")
