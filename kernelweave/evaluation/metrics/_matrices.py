"""Kernels and affinities as the measures see them: checked once, then read row block by row block.

A stored matrix may be dense or sparse; anything with the methods of a kernel operator is taken as it is.
Nothing here builds a second n x n array.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from kernelweave.evaluation.metrics._checks import (
    as_float64,
    canonical,
    check_length,
    one_hot,
    refuse_non_finite,
    refuse_non_numbers,
    row_blocks,
    totals,
)
from kernelweave.foundation._errors import KernelError


class Kernel(Protocol):
    """What the measures ask of a kernel."""

    n_samples: int

    def diag(self) -> np.ndarray:
        """Return K_ii, shape (n,)."""

    def own_sums(self, codes: np.ndarray, weights: np.ndarray, n_clusters: int) -> np.ndarray:
        """Return sum_j w_j K_ij over the cluster that holds i, shape (n,)."""

    def rows(self, picked: np.ndarray) -> np.ndarray:
        """Return K[picked] as a new float64 array, shape (len(picked), n)."""


class DenseKernel:
    """A kernel stored as an ndarray of any real dtype; sums are taken in float64."""

    def __init__(self, K: np.ndarray):
        self.K, self.n_samples = K, len(K)

    def diag(self) -> np.ndarray:
        return self.K.diagonal().astype(np.float64)

    def own_sums(self, codes: np.ndarray, weights: np.ndarray, n_clusters: int) -> np.ndarray:
        own = np.empty(self.n_samples)
        for rows, sums in _cluster_sums_by_block(self.K, one_hot(codes, n_clusters, weights)):
            own[rows] = np.take_along_axis(sums, codes[rows, None], axis=1)[:, 0]
        return own

    def rows(self, picked: np.ndarray) -> np.ndarray:
        return as_float64(self.K[picked])


class SparseKernel:
    """A kernel stored as a CSR array; entries that are not stored are 0."""

    def __init__(self, K: sp.csr_array):
        self.K, self.n_samples = K, K.shape[0]

    def diag(self) -> np.ndarray:
        return as_float64(self.K.diagonal())

    def own_sums(self, codes: np.ndarray, weights: np.ndarray, n_clusters: int) -> np.ndarray:
        entries = self.K.tocoo()
        inside = np.where(codes[entries.row] == codes[entries.col], weights[entries.col], 0.0)
        return totals(entries.row, entries.data * inside, self.n_samples)

    def rows(self, picked: np.ndarray) -> np.ndarray:
        return as_float64(self.K[picked].toarray())


class OperatorKernel:
    """A kernel operator with ``diag`` and, by the measure, ``cluster_sums`` or ``block``."""

    def __init__(self, operator: Any):
        self.operator = operator
        self.n_samples = len(self.diag())

    def diag(self) -> np.ndarray:
        return np.asarray(self.operator.diag(), dtype=np.float64)

    def own_sums(self, codes: np.ndarray, weights: np.ndarray, n_clusters: int) -> np.ndarray:
        sums = np.asarray(self.operator.cluster_sums(codes, weights, n_clusters))
        return as_float64(sums[codes, np.arange(self.n_samples)])

    def rows(self, picked: np.ndarray) -> np.ndarray:
        return np.array(self.operator.block(picked, np.arange(self.n_samples)), dtype=np.float64)


def as_kernel(K: Any, codes: np.ndarray, *, method: str, name: str = "K", hint: str = "") -> Kernel:
    """Wrap a stored kernel, or an operator that has ``method``, after checking it against the labels."""
    kernel: Kernel
    if hasattr(K, "diag") and hasattr(K, method):
        _refuse_cross_kernel(K, name)
        kernel = OperatorKernel(K)
    else:
        matrix = check_symmetric(K, name, hint)
        kernel = SparseKernel(matrix) if sp.issparse(matrix) else DenseKernel(matrix)
    check_length(codes, kernel.n_samples, name)
    return kernel


def check_affinity(A: Any, codes: np.ndarray) -> np.ndarray | sp.csr_array:
    """Return a symmetric affinity matrix without negative entries that goes with the labels."""
    matrix = check_symmetric(A, "A")
    check_length(codes, matrix.shape[0], "A")
    lowest = matrix.min()
    if lowest < 0:
        raise KernelError(
            f"A holds the negative affinity {lowest.item()!r}. Edge weights must be 0 or more; "
            "clip them at 0 or shift them first."
        )
    return matrix


def cluster_links(A: Any, codes: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return links(V_c, V_c) and links(V_c, V minus V_c) of every cluster, shape (2, k).

    Each is summed by itself: taking one from the degree would leave rounding where the answer is 0.
    """
    if not sp.issparse(A):
        return _dense_links(A, codes, n_clusters)
    entries = A.tocoo()
    start, between = codes[entries.row], codes[entries.row] != codes[entries.col]
    return totals(start + n_clusters * between, entries.data, 2 * n_clusters).reshape(2, n_clusters)


def _dense_links(A: np.ndarray, codes: np.ndarray, n_clusters: int) -> np.ndarray:
    links = np.zeros((2, n_clusters))
    for rows, sums in _cluster_sums_by_block(A, one_hot(codes, n_clusters)):
        own = codes[rows]
        links[0] += totals(own, np.take_along_axis(sums, own[:, None], axis=1)[:, 0], n_clusters)
        np.put_along_axis(sums, own[:, None], 0.0, axis=1)
        links[1] += totals(own, sums.sum(axis=1), n_clusters)
    return links


def _cluster_sums_by_block(K: np.ndarray, H: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    for rows in row_blocks(*K.shape):
        yield rows, as_float64(K[rows]) @ H


# Checks


def _refuse_cross_kernel(operator: Any, name: str) -> None:
    shape = getattr(operator, "shape", (0, 0))
    if shape[0] != shape[1]:
        raise KernelError(
            f"{name} is an operator of shape {shape}, between two sets of samples. "
            "Give the kernel of the labelled samples with themselves."
        )


def check_symmetric(K: Any, name: str, hint: str = "") -> np.ndarray | sp.csr_array:
    """Return a square, finite, symmetric real matrix: dense as given, or CSR in float64."""
    matrix = sp.csr_array(K) if sp.issparse(K) else np.asarray(K)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise KernelError(
            f"{name} has shape {matrix.shape}. Give a square matrix with one row and one column per sample{hint}."
        )
    refuse_non_numbers(matrix, name, KernelError)
    refuse_non_finite(matrix, name, KernelError)
    dtype = matrix.dtype
    if sp.issparse(matrix):
        matrix = canonical(matrix)
    _refuse_asymmetry(matrix, dtype, name)
    return matrix


def _refuse_asymmetry(K: np.ndarray | sp.csr_array, dtype: np.dtype, name: str) -> None:
    gap, scale = _sparse_asymmetry(K) if sp.issparse(K) else _dense_asymmetry(K)
    # half the digits of the dtype: products such as X @ X.T round differently on the two sides
    allowed = np.sqrt(np.finfo(dtype).eps) * scale if dtype.kind == "f" else 0.0
    if gap > allowed:
        raise KernelError(
            f"{name} is not symmetric: entries across the diagonal differ by up to {gap:.3g}. "
            f"Symmetrise it first, for example ({name} + {name}.T) / 2."
        )


def _sparse_asymmetry(K: sp.csr_array) -> tuple[float, float]:
    return float(abs(K - K.T).max()), float(abs(K).max())


def _dense_asymmetry(K: np.ndarray) -> tuple[float, float]:
    gap = scale = 0.0
    for rows in row_blocks(*K.shape):
        block = as_float64(K[rows])
        gap = max(gap, float(np.abs(block - as_float64(K[:, rows]).T).max()))
        scale = max(scale, float(np.abs(block).max()))
    return gap, scale
