"""Distances between samples: as they are given, and as a model measures them.

As given    Euclidean between features (or of a metric the caller names), of the feature space of a kernel matrix, the
            distances themselves, or roots of divergences with both directions averaged
By a model  those of its kernel's feature space, d_ij^2 = K_ii + K_jj - 2 K_ij, or of its metric; as given without
            either; of the nodes in the spectral embedding of a graph
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS, euclidean_distances

from kernelweave.evaluation.describe.clustering import Clustering
from kernelweave.evaluation.describe.graphs import graph_places
from kernelweave.evaluation.describe.views import EUCLIDEAN, View, is_text
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.errors import KernelError, ParameterError
from kernelweave.kernels.spec.fitting import fit_kernel

# Squared distances below this share of the squared norms they are computed from are rounding errors.
ZERO_SQUARE = 1e-13
# The same for features whose mean was taken away: as far as the numbers themselves are rounded.
ZERO_DIFFERENCE = (8 * np.finfo(np.float64).eps) ** 2
# Kernels are fitted on all samples up to this many, as the model does, and beyond it on the samples compared.
MOST_FITTED = 20_000


def distances_as_given(view: View, rows: Ints, metric: Any = "euclidean") -> Floats:
    """Return the distances among ``rows`` as the view gives them; ``metric`` counts for features alone.

    Those of samples that the view does not have are NaN.
    """
    there = view.present(rows)
    return _among_all(_distances_as_given(view, rows[there], metric), there, len(rows))


def _among_all(among_present: Floats, there: Ints, count: int) -> Floats:
    """Return distances among some of the rows as those among all, NaN for the others."""
    if len(there) == count:
        return among_present
    whole = np.full((count, count), np.nan)
    whole[np.ix_(there, there)] = among_present
    return whole


def _distances_as_given(view: View, rows: Ints, metric: Any) -> Floats:
    if view.kind == "features":
        return metric_distances(view.block[rows], metric)
    if view.kind == "distances":
        return _dense(_among(view.block, rows))
    return _roots(_squares_as_given(view, rows))


def node_places(clustering: Clustering) -> Floats | None:
    """Return where the nodes of a graph lie, one axis fewer than clusters but two at least; None for other data."""
    if clustering.views[0].kind != "graph":
        return None
    return graph_places(clustering.views[0].block, max(2, clustering.n_clusters - 1))


def squares_by_view(clustering: Clustering, rows: Ints, places: Floats | None = None) -> Iterator[Floats]:
    """Yield the squared distances among ``rows`` as the model measures them, view by view.

    ``places`` are those of the nodes of a graph.
    """
    for view in clustering.views:
        if places is None:
            yield squared_distances(view, rows)
        else:
            yield _cleaned(euclidean_distances(places[rows], squared=True), 0.0)


def squared_distances(view: View, rows: Ints) -> Floats:
    """Return the squared distances among ``rows`` as the model measures them, NaN for those the view does not have."""
    there = view.present(rows)
    return _among_all(_squared_distances(view, rows[there]), there, len(rows))


def _squared_distances(view: View, rows: Ints) -> Floats:
    kernels = view.measure.kernels
    if kernels:
        squares = [_squares_by_kernel(view, rows, *kernel) for kernel in kernels]
        if view.measure.shares is None or len(squares) == 1:
            return squares[0]
        return np.asarray(sum(share * scaled(each) for share, each in zip(view.measure.shares, squares, strict=True)))
    if view.measure.metric is not None:
        return metric_distances(view.block[rows], *view.measure.metric) ** 2
    return _squares_as_given(view, rows)


def _squares_as_given(view: View, rows: Ints) -> Floats:
    if view.kind == "features":
        return _euclidean_squares(view.block[rows])
    block = _dense(_among(view.block, rows))
    if view.kind == "kernel":
        return squares_of_kernel(block)
    if view.kind == "divergences":
        return squares_of_divergences(block)
    return _cleaned(np.maximum(block, 0.0) ** 2, 0.0)


def _squares_by_kernel(view: View, rows: Ints, kernel: Any, params: Any) -> Floats:
    block = view.block
    if is_text(kernel, "precomputed"):
        return squares_of_kernel(_dense(_among(block, rows)))
    if view.observed is not None:
        place = np.cumsum(view.observed) - 1
        block = block[np.flatnonzero(view.observed)]
        rows = place[rows]
    whole = block.shape[0] <= MOST_FITTED
    fitted = fit_kernel(block if whole else block[rows], kernel, params, centre_features=True)
    at = rows if whole else np.arange(len(rows))
    return squares_of_kernel(np.asarray(fitted.operator("blockwise").block(at, at), dtype=np.float64))


def squares_of_kernel(K: Floats, least_norm: float = 0.0) -> Floats:
    """Turn a kernel matrix into the squared distances in its feature space, in its memory.

    Rounding errors are set to 0: what is small compared with the largest squared norm, or with ``least_norm``.
    """
    diag = np.diagonal(K).copy()
    K *= -2.0
    K += diag
    K += diag[:, None]
    return _cleaned(K, max(float(np.abs(diag).max()), least_norm))


def squares_of_divergences(D: Floats) -> Floats:
    """Return divergences as squared distances: both directions averaged, infinite ones as the largest of the others."""
    return _cleaned(both_directions(D, D), 0.0)


def both_directions(forth: Floats, back: Floats) -> Floats:
    """Return the mean of divergences forth and back, infinite ones as the largest of the others."""
    finite = np.isfinite(forth)
    largest = max(forth[finite].max(initial=0.0), back[np.isfinite(back)].max(initial=0.0))
    return np.asarray((np.where(finite, forth, largest) + np.where(np.isfinite(back), back, largest).T) / 2.0)


def metric_distances(block: Matrix, metric: Any, params: Any = None) -> Floats:
    """Return the distances between all rows of a block of features."""
    if isinstance(metric, str) and metric in EUCLIDEAN and not params:
        return _roots(_euclidean_squares(block))
    if isinstance(metric, str) and metric in PAIRWISE_BOOLEAN_FUNCTIONS:
        block = block != 0
    try:
        distances = np.asarray(pairwise_distances(block, metric=metric, **(params or {})), dtype=np.float64)
    except ValueError as error:
        raise ParameterError(f"metric={metric!r} cannot be used: {error}") from error
    np.maximum(distances, 0.0, out=distances)
    np.fill_diagonal(distances, 0.0)
    return distances


def _euclidean_squares(block: Matrix) -> Floats:
    """Return squared distances between rows.

    Dense rows are moved to their mean first, because inner products of rows far from the origin hold no digits of the
    distances between them.
    """
    if sp.issparse(block):
        return _cleaned(euclidean_distances(block, squared=True), float(block.multiply(block).sum(axis=1).max()))
    largest = float(np.einsum("ij,ij->i", block, block).max())
    block = block - block.mean(axis=0)
    return squares_of_kernel(block @ block.T, ZERO_DIFFERENCE / ZERO_SQUARE * largest)


def _cleaned(squares: Floats, norm: float) -> Floats:
    """Return squares with rounding errors set to 0, in place."""
    squares *= squares > ZERO_SQUARE * norm
    np.fill_diagonal(squares, 0.0)
    return squares


def _roots(squares: Floats) -> Floats:
    return np.sqrt(squares, out=squares)


def scaled(squares: Floats) -> Floats:
    """Return squared distances divided by their mean over pairs; all zero where samples are equal. NaN stays NaN."""
    absent = int(np.isnan(np.diagonal(squares)).sum())
    present = len(squares) - absent
    mean = (np.nansum(squares) if absent else squares.sum()) / max(1, present * (present - 1))
    return squares / mean if mean > 0 else squares


def mean_of_views(by_view: Sequence[Floats]) -> Floats:
    """Return the mean over views of scaled distances; pairs that no view has together are as far as the mean pair."""
    if not any(np.isnan(np.diagonal(each)).any() for each in by_view):
        return np.asarray(sum(by_view) / len(by_view))
    known = np.zeros(by_view[0].shape)
    total = np.zeros(by_view[0].shape)
    for each in by_view:
        known += ~np.isnan(each)
        total += np.nan_to_num(each)
    mean = total.sum() / max(1.0, known.sum() - np.trace(known))
    whole = np.divide(total, known, out=np.full(total.shape, mean), where=known > 0)
    np.fill_diagonal(whole, 0.0)
    return whole


def _among(matrix: Matrix, rows: Ints) -> Matrix:
    if matrix.shape[0] != matrix.shape[1]:
        raise KernelError(
            f"X has shape {matrix.shape}, but the model takes a matrix of all samples with all samples. Pass a square "
            "one."
        )
    return matrix[rows][:, rows]


def _dense(block: Matrix) -> Floats:
    return np.asarray(block.toarray() if sp.issparse(block) else block, dtype=np.float64)
