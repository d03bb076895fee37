"""Scatter of the clusters around their means, in feature space or in the space of the vectors.

Objective   V_c = sum_{i in c} w_i ||phi(x_i) - m_c||^2 = sum_{i in c} w_i K_ii - Q_c / W_c
            with W_c = sum_{i in c} w_i and Q_c = sum_{i, j in c} w_i w_j K_ij
Input       a kernel (dense, sparse or operator) or vectors (dense or sparse), and labels
Cost        one pass over the kernel, O(n) further memory; O(n d) for vectors
Source      G. Tzortzis, PhD thesis, 2014, (2.1), (2.2); MSc thesis, 2008, (4.1) for the weights
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from kernelweave.evaluation.metrics.checks import (
    as_float64,
    check_rows,
    divide_or_zero,
    encode_labels,
    row_blocks,
    totals,
)
from kernelweave.evaluation.metrics.matrices import as_kernel
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import read_weights
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions import algebra

_HINT = ' For vectors pass kernel="linear".'


def cluster_variances(
    X: Any,
    labels: ArrayLike,
    *,
    kernel: str = "precomputed",
    sample_weight: ArrayLike | None = None,
    n_clusters: int | None = None,
) -> np.ndarray:
    r"""Scatter of every cluster around its mean.

    .. math:: V_c = \sum_{i \in c} w_i \|\phi(x_i) - m_c\|^2
              = \sum_{i \in c} w_i K_{ii} - \frac{1}{W_c} \sum_{i, j \in c} w_i w_j K_{ij}

    where :math:`W_c` is the weight of the cluster. As in the sources, the sum is not divided by
    the size of the cluster.

    Parameters
    ----------
    X : array-like, sparse matrix or kernel operator
        The kernel, shape (n_samples, n_samples) and symmetric; an operator offers ``diag()`` and
        ``cluster_sums(labels, weights, n_clusters)``. With ``kernel="linear"`` the vectors, shape
        (n_samples, n_features).
    labels : array-like of shape (n_samples,)
        The clusters, integers or strings.
    kernel : {"precomputed", "linear"}, default="precomputed"
        What ``X`` is: the kernel itself, or vectors used as they are. This cannot be told from a
        square array, so it is never guessed.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights, not negative; None for ones.
    n_clusters : int, default=None
        None for one cluster per distinct label, in sorted order. Given, the labels must be integers
        0..n_clusters-1 and clusters without samples appear with variance 0.

    Returns
    -------
    ndarray of shape (n_clusters,)
        In [0, inf), up to rounding, for a positive semidefinite kernel; an indefinite one can give
        negative values, which are returned as they are. A cluster without weight has variance 0.

    See Also
    --------
    sum_of_variances : their sum, the objective of (kernel) k-means.
    max_variance : the largest of them, the objective MinMax k-means relaxes.

    References
    ----------
    G. Tzortzis, PhD thesis, *Clustering Using Similarity and Kernel Matrices*, 2014, (2.1).

    Examples
    --------
    Two pairs on a line: 0 and 2 lie 1 from their mean, 10 and 14 lie 2 from theirs.

    >>> import numpy as np
    >>> from kernelweave.metrics import cluster_variances
    >>> X = np.array([[0.0], [2.0], [10.0], [14.0]])
    >>> cluster_variances(X @ X.T, [0, 0, 1, 1])
    array([2., 8.])
    >>> cluster_variances(X, [0, 0, 1, 1], kernel="linear", n_clusters=3)
    array([2., 8., 0.])
    """
    codes, k = encode_labels(labels, n_clusters=n_clusters)
    weights = read_weights(sample_weight, len(codes))
    if kernel == "precomputed":
        return _kernel_scatter(as_kernel(X, codes, "X", hint=_HINT), codes, weights, k)
    if kernel == "linear":
        vectors = check_rows(X, "X", codes)
        scatter = _sparse_scatter if sp.issparse(vectors) else _dense_scatter
        return scatter(vectors, codes, weights, k)
    raise ParameterError(
        f"kernel={kernel!r} cannot be used. "
        'Give "precomputed" where X is the kernel, or "linear" where X holds vectors.'
    )


def sum_of_variances(
    X: Any, labels: ArrayLike, *, kernel: str = "precomputed", sample_weight: ArrayLike | None = None
) -> float:
    r"""Clustering error E_sum: the scatter of all clusters together.

    .. math:: E_{sum} = \sum_c V_c

    It is what k-means and kernel k-means minimise, and their ``inertia_``.

    Parameters
    ----------
    X : array-like, sparse matrix or kernel operator
        The kernel, or the vectors with ``kernel="linear"``; see :func:`cluster_variances`.
    labels : array-like of shape (n_samples,)
        The clusters, integers or strings.
    kernel : {"precomputed", "linear"}, default="precomputed"
        What ``X`` is: the kernel itself, or vectors used as they are.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights, not negative; None for ones.

    Returns
    -------
    float
        In [0, inf) for a positive semidefinite kernel; lower is better.

    References
    ----------
    G. Tzortzis, PhD thesis, *Clustering Using Similarity and Kernel Matrices*, 2014, (2.1).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.metrics import sum_of_variances
    >>> X = np.array([[0.0], [2.0], [10.0], [14.0]])
    >>> sum_of_variances(X @ X.T, [0, 0, 1, 1])
    10.0
    """
    return float(cluster_variances(X, labels, kernel=kernel, sample_weight=sample_weight).sum())


def max_variance(
    X: Any, labels: ArrayLike, *, kernel: str = "precomputed", sample_weight: ArrayLike | None = None
) -> float:
    r"""Largest scatter of a cluster, E_max.

    .. math:: E_{max} = \max_c V_c

    Parameters
    ----------
    X : array-like, sparse matrix or kernel operator
        The kernel, or the vectors with ``kernel="linear"``; see :func:`cluster_variances`.
    labels : array-like of shape (n_samples,)
        The clusters, integers or strings.
    kernel : {"precomputed", "linear"}, default="precomputed"
        What ``X`` is: the kernel itself, or vectors used as they are.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights, not negative; None for ones.

    Returns
    -------
    float
        In [E_sum / n_clusters, E_sum] for a positive semidefinite kernel; lower is better.

    References
    ----------
    G. Tzortzis, PhD thesis, *Clustering Using Similarity and Kernel Matrices*, 2014, (2.2).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.metrics import max_variance
    >>> X = np.array([[0.0], [2.0], [10.0], [14.0]])
    >>> max_variance(X, [0, 0, 1, 1], kernel="linear")
    8.0
    """
    return float(cluster_variances(X, labels, kernel=kernel, sample_weight=sample_weight).max())


def _kernel_scatter(kernel: KernelOperator, codes: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    within = algebra.within_sums(kernel.cluster_sums(codes, weights, k), codes, weights)
    self_similarities = algebra.cluster_weights(codes, weights * kernel.diag(), k)
    return algebra.cluster_scatter(within, algebra.cluster_weights(codes, weights, k), self_similarities)


def _dense_scatter(X: np.ndarray, codes: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    centres = _centres(X, codes, weights, k)
    squared = np.empty(len(X))
    for rows in row_blocks(*X.shape):
        off = as_float64(X[rows]) - centres[codes[rows]]
        squared[rows] = np.einsum("ij,ij->i", off, off)
    return totals(codes, weights * squared, k)


def _sparse_scatter(X: sp.csr_array, codes: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    """Add (x - m)^2 over the stored entries and m^2 over the others: no difference of large sums."""
    centres = _centres(X, codes, weights, k)
    entries = X.tocoo()
    clusters = codes[entries.row]
    stored = totals(clusters, weights[entries.row] * (entries.data - centres[clusters, entries.col]) ** 2, k)
    pattern = sp.csr_array((np.ones_like(X.data), X.indices, X.indptr), shape=X.shape)
    stored_weight = (_indicator(codes, weights, k) @ pattern).toarray()
    absent_weight = np.maximum(totals(codes, weights, k)[:, None] - stored_weight, 0.0)
    scatter: np.ndarray = stored + (centres**2 * absent_weight).sum(axis=1)
    return scatter


def _centres(X: np.ndarray | sp.csr_array, codes: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    sums = _indicator(codes, weights, k) @ X
    sums = sums.toarray() if sp.issparse(sums) else sums
    return divide_or_zero(sums, totals(codes, weights, k)[:, None])


def _indicator(codes: np.ndarray, weights: np.ndarray, k: int) -> sp.csr_array:
    """Return the (k, n) matrix with weight i in row ``codes[i]``."""
    n = len(codes)
    return sp.csr_array((weights, (codes, np.arange(n))), shape=(k, n))
