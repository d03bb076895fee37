"""Silhouette of a partition with the distances of the kernel's feature space.

Formula     d_ij = sqrt(K_ii + K_jj - 2 K_ij), s_i = (b_i - a_i) / max(a_i, b_i)
Input       a kernel (dense, sparse or operator) and labels with at least two clusters
Cost        O(n^2 k) time, one block of rows in memory; O(m n k) when m samples are drawn
Source      P. J. Rousseeuw, J. Computational and Applied Mathematics 20, 1987
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernelweave.evaluation.metrics.checks import check_integer, encode_labels
from kernelweave.evaluation.metrics.matrices import as_kernel
from kernelweave.evaluation.sampling import judged_samples
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import RandomState
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions.silhouettes import silhouettes


def kernel_silhouette(
    K: Any,
    labels: ArrayLike,
    *,
    sample_size: int | None = None,
    random_state: RandomState = None,
) -> float:
    r"""Mean silhouette of the samples, with distances in feature space.

    .. math:: S = \frac{1}{n} \sum_i \frac{b_i - a_i}{\max(a_i, b_i)}, \qquad
              d_{ij} = \sqrt{K_{ii} + K_{jj} - 2 K_{ij}}

    where :math:`a_i` is the mean distance to the other samples of i's cluster and :math:`b_i` the
    smallest mean distance to the samples of another cluster.

    Parameters
    ----------
    K : array-like, sparse matrix or kernel operator
        The kernel, shape (n_samples, n_samples) and symmetric; an operator offers ``diag()`` and
        ``block(rows, columns)``.
    labels : array-like of shape (n_samples,)
        The clusters, integers or strings; at least two.
    sample_size : int, default=None
        Average over that many samples drawn without replacement, each still compared with all others:
        an unbiased estimate at the cost of ``sample_size`` rows of the kernel. None for all samples.
        (:func:`sklearn.metrics.silhouette_score` ignores the samples that were not drawn.)
    random_state : int, RandomState or None, default=None
        Draws the samples.

    Returns
    -------
    float
        In [-1, 1]; higher is better. The only sample of a cluster counts as 0.

    Notes
    -----
    An indefinite kernel can give negative squared distances; they count as 0.

    References
    ----------
    P. J. Rousseeuw, *Silhouettes: a graphical aid to the interpretation and validation of cluster
    analysis*, Journal of Computational and Applied Mathematics 20, 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.metrics import kernel_silhouette
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> round(kernel_silhouette(X @ X.T, [0, 0, 1, 1]), 4)
    0.8997
    """
    kernel, codes, k = _prepare(K, labels)
    size = None if sample_size is None else check_integer(sample_size, "sample_size", 1, len(codes))
    return float(silhouettes(kernel, codes, k, judged_samples(len(codes), size, random_state)).mean())


def kernel_silhouette_samples(K: Any, labels: ArrayLike) -> np.ndarray:
    """Silhouette of every sample, with distances in feature space.

    Parameters
    ----------
    K : array-like, sparse matrix or kernel operator
        The kernel, as in :func:`kernel_silhouette`, which also gives the formula.
    labels : array-like of shape (n_samples,)
        The clusters, integers or strings; at least two.

    Returns
    -------
    ndarray of shape (n_samples,)
        In [-1, 1]; negative where another cluster is nearer on average, 0 for the only sample of a cluster.

    References
    ----------
    P. J. Rousseeuw, *Silhouettes: a graphical aid to the interpretation and validation of cluster
    analysis*, Journal of Computational and Applied Mathematics 20, 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.metrics import kernel_silhouette_samples
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> kernel_silhouette_samples(X @ X.T, [0, 0, 1, 1]).round(4)
    array([0.9048, 0.8947, 0.8947, 0.9048])
    """
    kernel, codes, k = _prepare(K, labels)
    return silhouettes(kernel, codes, k)


def _prepare(K: Any, labels: ArrayLike) -> tuple[KernelOperator, np.ndarray, int]:
    codes, k = encode_labels(labels)
    if k < 2:
        raise ParameterError(
            "labels puts all samples in one cluster, where the silhouette is not defined. "
            "Give labels of at least two clusters."
        )
    return as_kernel(K, codes), codes, k
