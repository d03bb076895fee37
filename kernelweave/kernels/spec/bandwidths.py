"""Kernel parameters: rules that set a bandwidth from the data, and checks of values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist

from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.errors import ParameterError
from kernelweave.kernels.spec.distances import between

# Samples looked at by the median rule, evenly spaced over the data.
MEDIAN_SAMPLES = 1000
# Shares of the range of distances that set the widths of a family of Gaussian kernels, and rows taken at a time.
WIDTHS = tuple(np.arange(1, 11) / 10.0)
BLOCK = 512
# Entries of a table that are worked on together, 2 MiB of them: a variance takes twice that beside the table.
ENTRIES = 2**18


def gamma(X: Matrix, value: Any, weights: Floats | None = None) -> float:
    """Return gamma: a positive number as it is, or by a rule that uses the weights of the samples.

    ``"scale"`` is 1 / (n_features * variance of all entries), as in scikit-learn's SVC; ``"median"`` is
    1 / (2 median^2), with the median distance between samples of positive weight as sigma.
    Where all samples agree both give 1.
    """
    if isinstance(value, str) and value == "scale":
        spread = X.shape[1] * _variance(X, weights)
        return 1.0 / spread if spread > 0 else 1.0
    if isinstance(value, str) and value == "median":
        middle = _median_distance(X, np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights))
        return 0.5 / middle**2 if middle > 0 else 1.0
    if isinstance(value, str):
        raise ParameterError(f"gamma={value!r} is unknown; give a positive number, 'scale' or 'median'.")
    return positive("gamma", value)


def positive(name: str, value: Any) -> float:
    """Return a positive finite number or raise ParameterError."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
        raise ParameterError(f"{name}={value!r} in kernel_params must be a positive finite number.")
    return float(value)


def whole(name: str, value: Any) -> int:
    """Return a positive whole number or raise ParameterError."""
    number = positive(name, value)
    if number != int(number):
        raise ParameterError(f"{name}={value!r} in kernel_params must be a whole number.")
    return int(number)


def finite(name: str, value: Any) -> float:
    """Return a finite number or raise ParameterError."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not np.isfinite(value):
        raise ParameterError(f"{name}={value!r} in kernel_params must be a finite number.")
    return float(value)


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ParameterError unless ``value`` is one of the choices."""
    if value not in choices:
        raise ParameterError(f"{name}={value!r} in kernel_params must be one of {', '.join(map(repr, choices))}.")


def _variance(X: Matrix, weights: Floats | None) -> float:
    """Return the variance of all entries, each counted with its sample's weight."""
    shares = np.full(X.shape[0], 1.0 / X.shape[0]) if weights is None else weights / weights.sum()
    if sp.issparse(X):
        mean = float(shares @ X.sum(axis=1)) / X.shape[1]
        variance = float(shares @ X.multiply(X).sum(axis=1)) / X.shape[1] - mean**2
        return variance if variance > 1e-14 * mean**2 else 0.0
    mean = float(_column_sums(X, shares, 0.0, 1).mean())
    variance = float(_column_sums(X, shares, mean, 2).mean())
    return variance if variance > 1e-28 * mean**2 else 0.0  # below: rounding of samples that all agree


def _column_sums(X: Floats, shares: Floats, origin: float, power: int) -> Floats:
    """Return sum_i shares_i (x_i - origin)^power of every column, some rows at a time: no copy of the table."""
    total = np.zeros(X.shape[1])
    step = max(1, ENTRIES // X.shape[1])
    for lo in range(0, X.shape[0], step):
        rows = np.subtract(X[lo : lo + step], origin, dtype=np.float64)
        total += shares[lo : lo + step] @ (np.square(rows, out=rows) if power == 2 else rows)
    return total


def _median_distance(X: Matrix, usable: Ints) -> float:
    rows = usable[np.unique(np.linspace(0, len(usable) - 1, min(len(usable), MEDIAN_SAMPLES)).astype(np.intp))]
    sample = X[rows].toarray() if sp.issparse(X) else X[rows]
    return float(np.median(pdist(sample))) if len(rows) > 1 else 0.0


def rbf_widths(X: Matrix, shares: Sequence[float] = WIDTHS) -> list[float]:
    """Return widths sigma for Gaussian kernels: shares of the range of distances between samples (PhD 5.2).

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Samples.
    shares : sequence of float, default=(0.1, 0.2, ..., 1.0)
        Shares of the difference between the largest and the smallest distance of two samples.

    Returns
    -------
    widths : list of float
        Ten by default, ascending. Where all distances are equal they are shares of the distance itself, and of 1
        where it is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import rbf_widths
    >>> rbf_widths(np.array([[0.0], [1.0], [3.0]]), shares=(0.5, 1.0))
    [1.0, 2.0]
    """
    least = np.inf
    largest = 0.0
    for lo in range(0, X.shape[0] - 1, BLOCK):
        hi = min(lo + BLOCK, X.shape[0])
        distances = between(X[lo:hi], X[lo:], "euclidean")
        pairs = distances[np.arange(distances.shape[1])[None, :] > np.arange(hi - lo)[:, None]]
        least = min(least, float(pairs.min()))
        largest = max(largest, float(pairs.max()))
    span = largest - least if largest > least else largest
    return [share * (span or 1.0) for share in shares]
