"""Kernel parameters: rules that set a bandwidth from the data, and checks of given values."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist

from kernelweave.foundation._errors import ParameterError
from kernelweave.foundation._typing import Floats, Matrix

# Samples looked at by the median rule, evenly spaced over the data.
MEDIAN_SAMPLES = 1000


def gamma(X: Matrix, value: Any, weights: Floats | None = None) -> float:
    """Return gamma: a positive number as given, or by rule, which heeds the weights of the samples.

    ``"scale"`` is 1 / (n_features * variance of all entries), as in scikit-learn's SVC; ``"median"`` is
    1 / (2 median^2), with the median distance between samples of positive weight as sigma.
    Where all samples agree both give 1.
    """
    if isinstance(value, str) and value == "scale":
        spread = X.shape[1] * _variance(X, weights)
        return 1.0 / spread if spread > 0 else 1.0
    if isinstance(value, str) and value == "median":
        middle = _median_distance(X if weights is None else X[np.flatnonzero(weights)])
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
        found = float(shares @ X.multiply(X).sum(axis=1)) / X.shape[1] - mean**2
        return found if found > 1e-14 * mean**2 else 0.0
    mean = float((shares @ X).mean())
    found = float((shares @ (X - mean) ** 2).mean())
    return found if found > 1e-28 * mean**2 else 0.0  # below: rounding of samples that all agree


def _median_distance(X: Matrix) -> float:
    rows = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], MEDIAN_SAMPLES)).astype(np.intp))
    part = X[rows].toarray() if sp.issparse(X) else X[rows]
    return float(np.median(pdist(part))) if len(rows) > 1 else 0.0
