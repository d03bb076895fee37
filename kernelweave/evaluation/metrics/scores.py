"""Balanced line fit and balanced angular fit: criteria on the scores of kernel spectral clustering.

Formula     eta * fit + (1 - eta) * balance, balance = smallest / largest cluster size
Input       score vectors, shape (n, k - 1), and their labels
Cost        O(n k^2)
Source      BLF: Alzate and Suykens, IEEE TPAMI 32, 2010; BAF: Mall, Langone and Suykens, Entropy 15, 2013;
            both described in Houthuys, Langone and Suykens, Information Fusion 44, 2018, section 3.4

In well separated clusters the scores of a cluster lie on a line through the origin. A cluster whose scores
are all zero, or that is empty, has no direction: its fit is 0, the lowest line fit.
"""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.preprocessing import normalize

from kernelweave.evaluation.metrics.checks import (
    check_fraction,
    check_rows,
    check_vector,
    encode_labels,
)
from kernelweave.foundation.errors import ParameterError


def balanced_line_fit(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    eta: float = 0.75,
    n_clusters: int | None = None,
    kernel_row_sums: ArrayLike | None = None,
) -> float:
    r"""How close the scores of each cluster are to a line through the origin, and how equal the sizes are.

    .. math:: \mathrm{BLF} = \eta\, \frac{1}{k} \sum_c \frac{d}{d - 1}
              \Bigl( \frac{\zeta_1^{(c)}}{\sum_l \zeta_l^{(c)}} - \frac{1}{d} \Bigr)
              + (1 - \eta)\, \frac{\min_c n_c}{\max_c n_c}

    with :math:`\zeta^{(c)}` the eigenvalues, largest first, of the uncentred covariance of the cluster's
    points. For k > 2 the points are the d = k - 1 scores. For k = 2 a single score always lies on a
    line, so it is paired with the row sum of the kernel: d = 2.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_clusters - 1)
        Score vectors, of training or validation samples.
    labels : array-like of shape (n_samples,)
        The clusters, integers or strings.
    eta : float, default=0.75
        Weight of the fit against the balance, from 0 to 1.
    n_clusters : int, default=None
        None for the number of distinct labels. Give it if a cluster of the model may be empty; the
        labels must then be integers 0..n_clusters-1.
    kernel_row_sums : array-like of shape (n_samples,), default=None
        Sum over the training samples of the kernel with each sample. Required for two clusters, not
        used for more.

    Returns
    -------
    float
        In [0, 1]; higher is better. A cluster whose points are all zero, or that is empty, has fit 0.

    See Also
    --------
    balanced_angular_fit : needs no row sums and notices points on the opposite side of the origin.

    References
    ----------
    C. Alzate and J. A. K. Suykens, *Multiway spectral clustering with out-of-sample extensions through
    weighted kernel PCA*, IEEE TPAMI 32, 2010. L. Houthuys, R. Langone and J. A. K. Suykens, *Multi-view
    kernel spectral clustering*, Information Fusion 44, 2018, section 3.4.

    Examples
    --------
    Three clusters on three lines, of 2, 2 and 1 samples: fit 1, balance 1/2.

    >>> from kernelweave.metrics import balanced_line_fit
    >>> scores = [[1, 0], [2, 0], [0, 1], [0, 3], [-1, -1]]
    >>> round(balanced_line_fit(scores, [0, 0, 1, 1, 2], eta=0.75), 4)
    0.875
    """
    points, codes, k = _check_scores(scores, labels, n_clusters)
    eta = check_fraction(eta, "eta")
    if k == 2:
        points = np.column_stack([points[:, 0], _check_row_sums(kernel_row_sums, len(codes))])
    fit = np.mean([_line_fit(points[codes == c]) for c in range(k)])
    return float(eta * fit + (1 - eta) * _balance(codes, k))


def balanced_angular_fit(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    eta: float = 0.75,
    n_clusters: int | None = None,
) -> float:
    r"""How well the scores of each cluster point in the direction of their mean, and how equal the sizes are.

    .. math:: \mathrm{BAF} = \eta\, \frac{1}{k} \sum_c \frac{1}{n_c} \sum_{i \in c} \cos(e_i, \bar e_c)
              + (1 - \eta)\, \frac{\min_c n_c}{\max_c n_c}

    with :math:`\bar e_c` the mean score vector of the cluster.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_clusters - 1)
        Score vectors, of training or validation samples.
    labels : array-like of shape (n_samples,)
        The clusters, integers or strings.
    eta : float, default=0.75
        Weight of the fit against the balance, from 0 to 1.
    n_clusters : int, default=None
        None for the number of distinct labels. Give it if a cluster of the model may be empty; the
        labels must then be integers 0..n_clusters-1.

    Returns
    -------
    float
        In [-eta, 1]; higher is better. A zero score vector has cosine 0, as has every sample of a
        cluster whose mean is zero; an empty cluster has fit 0.

    See Also
    --------
    balanced_line_fit : fits a line through the origin, whichever side its points are on.

    References
    ----------
    R. Mall, R. Langone and J. A. K. Suykens, *Kernel spectral clustering for big data networks*, Entropy
    15, 2013. L. Houthuys, R. Langone and J. A. K. Suykens, *Multi-view kernel spectral clustering*,
    Information Fusion 44, 2018, section 3.4.

    Examples
    --------
    Two clusters on the two sides of the origin, of 2 and 1 samples: fit 1, balance 1/2.

    >>> from kernelweave.metrics import balanced_angular_fit
    >>> balanced_angular_fit([[1.0], [2.0], [-1.0]], [0, 0, 1], eta=0.75)
    0.875
    """
    points, codes, k = _check_scores(scores, labels, n_clusters)
    eta = check_fraction(eta, "eta")
    fit = np.mean([_angular_fit(points[codes == c]) for c in range(k)])
    return float(eta * fit + (1 - eta) * _balance(codes, k))


def _line_fit(points: np.ndarray) -> float:
    """Return d/(d-1) (z_1 / sum z - 1/d), in [0, 1]."""
    d = points.shape[1]
    # the eigenvalues of the uncentred covariance are the squared singular values, up to a factor
    z = np.linalg.svd(_unit_scale(points), compute_uv=False) ** 2
    if z.sum() == 0:
        return 0.0
    return float(np.clip(d / (d - 1) * (z[0] / z.sum() - 1 / d), 0.0, 1.0))


def _angular_fit(points: np.ndarray) -> float:
    """Return the mean cosine between the points and their mean, in [-1, 1]."""
    if len(points) == 0:
        return 0.0
    points = _unit_scale(points)
    direction = normalize(points.mean(axis=0, keepdims=True))[0]
    return float(np.clip((normalize(points) @ direction).mean(), -1.0, 1.0))


def _unit_scale(points: np.ndarray) -> np.ndarray:
    """Divide by the largest entry, so that squares neither overflow nor vanish."""
    largest = np.abs(points).max(initial=0.0)
    return points / largest if largest > 0 else points


def _balance(codes: np.ndarray, k: int) -> float:
    sizes = np.bincount(codes, minlength=k)
    return float(sizes.min() / sizes.max())


def _check_scores(scores: ArrayLike, labels: ArrayLike, n_clusters: int | None) -> tuple[np.ndarray, np.ndarray, int]:
    codes, k = encode_labels(labels, n_clusters=n_clusters)
    points = check_rows(np.asarray(scores), "scores", codes).astype(np.float64)
    if k < 2:
        raise ParameterError(
            f"The number of clusters is {k}, taken from {'labels' if n_clusters is None else 'n_clusters'}. "
            "The balanced fits compare at least two clusters; pass n_clusters if some are empty."
        )
    if points.shape[1] != k - 1:
        raise ParameterError(
            f"scores has {points.shape[1]} columns for {k} clusters. Give the {k - 1} scores of a model with "
            f"{k} clusters, or pass n_clusters={points.shape[1] + 1} if some clusters are empty."
        )
    return points, codes, k


def _check_row_sums(kernel_row_sums: ArrayLike | None, n_samples: int) -> np.ndarray:
    if kernel_row_sums is None:
        raise ParameterError(
            "kernel_row_sums=None cannot be used with two clusters, whose only score lies on a line in any "
            "case. Give the row sums of the kernel, K.sum(axis=1), or use balanced_angular_fit."
        )
    return check_vector(kernel_row_sums, "kernel_row_sums", n_samples)
