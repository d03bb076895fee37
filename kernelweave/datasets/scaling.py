"""The two scalings behind published figures: z-scores with n - 1, and rows of unit length."""

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from kernelweave.datasets.checks import check_count
from kernelweave.foundation.errors import ParameterError


def standardize(X, ddof=1):
    """Shift every column to mean 0 and scale it to standard deviation 1.

    The figures of the source theses were made with MATLAB's z-score, which divides by n - 1. That is the
    default here; :class:`sklearn.preprocessing.StandardScaler` divides by n.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite numbers; not modified.
    ddof : int, default=1
        The variance is the sum of squares divided by ``n_samples - ddof``.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        The scores, float64. A constant column becomes 0.

    Examples
    --------
    >>> from kernelweave.datasets import standardize
    >>> standardize([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    array([[-1.,  0.],
           [ 0.,  0.],
           [ 1.,  0.]])
    """
    if sparse.issparse(X):
        raise ParameterError(
            "X is sparse and centring would fill it: pass X.toarray(), or scale rows with unit_rows(X) instead."
        )
    X = _as_matrix(X)
    ddof = check_count("ddof", ddof, least=0)
    if len(X) <= ddof:
        raise ParameterError(f"X has {len(X)} rows, too few for ddof={ddof}: pass at least {ddof + 1} rows.")
    # The extremes decide, for the standard deviation of equal floats need not round to 0.
    constant = X.max(axis=0) == X.min(axis=0)
    X = np.where(constant, 0.0, X)
    return (X - X.mean(axis=0)) / np.where(constant, 1.0, X.std(axis=0, ddof=ddof))


def unit_rows(X):
    """Scale every row to Euclidean length 1; rows of zeros stay as they are.

    Parameters
    ----------
    X : array-like or sparse of shape (n_samples, n_features)
        Finite numbers; not modified.

    Returns
    -------
    ndarray or sparse of shape (n_samples, n_features)
        The scaled rows, float64, sparse where ``X`` is.

    Examples
    --------
    >>> from kernelweave.datasets import unit_rows
    >>> unit_rows([[3.0, 4.0], [0.0, 0.0]])
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    if not sparse.issparse(X):
        return normalize(_as_matrix(X))
    if not np.isfinite(X.data).all():
        raise ParameterError("X holds values that are not finite: drop or fill them first.")
    return normalize(X.astype(np.float64))


def _as_matrix(X):
    """Return ``X`` as a finite float64 matrix, or raise."""
    try:
        X = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        raise ParameterError(f"X does not hold numbers ({reason}): encode it as numbers first.") from reason
    if X.ndim != 2 or X.size == 0:
        raise ParameterError(f"X has shape {X.shape}: pass a matrix with one row per sample.")
    bad = np.flatnonzero(~np.isfinite(X).all(axis=0))
    if len(bad):
        listed = ", ".join(str(column) for column in bad[:5]) + (", ..." if len(bad) > 5 else "")
        raise ParameterError(
            f"X holds values that are not finite in column {listed}: drop those rows or fill the values first."
        )
    return X
