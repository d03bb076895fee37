"""Ratio-based multiple kernel clustering by the book: variances by loops, the dual by a general solver."""

from itertools import product

import numpy as np
from scipy.optimize import minimize


def variance(K, y):
    """Return E(y) of PhD (5.6), by explicit distances to the two means."""
    total = 0.0
    for i in range(len(K)):
        members = np.flatnonzero(y == y[i])
        total += K[i, i] - 2.0 * K[i, members].mean() + K[np.ix_(members, members)].mean()
    return total / len(K)


def objective(K, y, C, scale=None):
    """Return J(y) as the maximum of the dual (5.11), by sequential least squares."""
    n, scale = len(K), variance(K, y) if scale is None else scale
    Q = np.outer(y, y) * K / scale
    result = minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(),
        np.full(n, 1e-3 * C),
        jac=lambda a: Q @ a - 1.0,
        bounds=[(0.0, C)] * n,
        constraints={"type": "eq", "fun": lambda a: a @ y, "jac": lambda a: y},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return -result.fun


def best_by_enumeration(K, C, limit):
    """Return the least J over all labellings that keep the balance, and one that reaches it."""
    n, best, at = len(K), np.inf, None
    for signs in product((-1.0, 1.0), repeat=n - 1):
        y = np.array((-1.0, *signs))
        if abs(y.sum()) <= min(limit, n - 2):
            value = objective(K, y, C)
            if value < best:
                best, at = value, y
    return best, at
