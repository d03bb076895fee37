"""Distances between samples for the kernels of neighbourhoods, dense or sparse, without needless rounding."""

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import pairwise_distances

from kernelweave.foundation.array_types import Floats, Matrix

#: Metrics known to the neighbour search and to both kinds of samples.
METRICS = ("euclidean", "manhattan", "cityblock", "cosine")
# Rows that are compared with their rounding at a time, so that there is no second array of all distances.
FEW_ROWS = 64


def moves(X: Matrix, metric: str) -> bool:
    """Return whether samples are moved: where they are dense, that leaves distances alone and removes cancellation."""
    return not sp.issparse(X) and metric != "cosine"


def centre(X: Matrix, metric: str) -> Floats | None:
    """Return the mean of samples that are moved there, None for others."""
    return X.mean(axis=0, dtype=np.float64) if moves(X, metric) else None


def moved(X: Matrix, origin: Floats | None) -> Matrix:
    """Return the samples moved to a new origin, dense ones in double precision."""
    if origin is None:
        return X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    return X - origin


def between(X: Matrix, Y: Matrix, metric: str) -> Floats:
    """Return the distances between two sets of samples as a new array."""
    if not sp.issparse(X) and metric != "cosine":
        return cdist(X, Y, "cityblock" if metric == "manhattan" else metric)
    distances: Floats = pairwise_distances(X, Y, metric=metric)
    if metric == "euclidean":
        # Sparse squares are differences of large numbers; what is below their rounding is zero.
        of_x = np.asarray(X.multiply(X).sum(axis=1)).reshape(-1, 1)
        of_y = np.asarray(Y.multiply(Y).sum(axis=1)).ravel()
        for start in range(0, len(distances), FEW_ROWS):
            part = distances[start : start + FEW_ROWS]
            part[part * part <= 1e-14 * (of_x[start : start + FEW_ROWS] + of_y)] = 0.0
    return distances
