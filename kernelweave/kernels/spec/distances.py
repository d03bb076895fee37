"""Distances between samples for the kernels of neighbourhoods, dense or sparse, without needless rounding."""

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import pairwise_distances

from kernelweave.foundation.array_types import Floats, Matrix

#: Metrics known to the neighbour search and to both kinds of samples.
METRICS = ("euclidean", "manhattan", "cityblock", "cosine")


def centre(X: Matrix, metric: str) -> Floats | None:
    """Return the mean of dense samples where moving them leaves distances alone and removes cancellation."""
    return None if sp.issparse(X) or metric == "cosine" else X.mean(axis=0, dtype=np.float64)


def moved(X: Matrix, origin: Floats | None) -> Matrix:
    """Return the samples moved to a new origin, dense ones in double precision."""
    if origin is None:
        return X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    return X - origin


def between(X: Matrix, Y: Matrix, metric: str) -> Floats:
    """Return the distances between two sets of samples as a new array."""
    if not sp.issparse(X) and metric != "cosine":
        return cdist(X, Y, "cityblock" if metric == "manhattan" else metric)
    distances = np.array(pairwise_distances(X, Y, metric=metric))
    if metric == "euclidean":
        # Sparse squares are differences of large numbers; what is below their rounding is zero.
        sizes = np.asarray(X.multiply(X).sum(axis=1)).ravel()[:, None] + np.asarray(Y.multiply(Y).sum(axis=1)).ravel()
        distances[distances * distances <= 1e-14 * sizes] = 0.0
    return distances
