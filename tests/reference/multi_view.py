"""Multi-view kernel k-means (MVKKM) and multi-view spectral clustering (MVSpec) as printed (PhD 4.2), the slow way.

Every kernel is a matrix, the composite (4.4) is formed anew in every step, and nothing is kept between steps. Rules
that the thesis leaves open are those of the library: clusters move as in ``reference/kernel_kmeans.py``, a view without
scatter takes all the weight, several of them share it, and a negative scatter (indefinite kernels) takes it too.
"""

import decimal

import numpy as np

from tests.reference import kernel_kmeans as single

# A scatter below this share of the kernel's values is rounding.
ROUNDING = 1e-13
# Numbers with 50 digits and next to no limit on their exponent: powers of ratios do not overflow.
EXACT = decimal.Context(prec=50, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


# --- views and their weights -----------------------------------------------------------------------------------------


def composite(kernels, view_weights, p):
    """Return the sum of w_v^p K_v, (4.4); infinite p stands for equal weights."""
    total = np.zeros(kernels[0].shape)
    for K, w in zip(kernels, coefficients(view_weights, p), strict=True):
        total += w * K
    return total


def coefficients(view_weights, p):
    """Return w_v^p; infinite p stands for equal weights."""
    if np.isinf(p):
        return [1.0 / len(view_weights)] * len(view_weights)
    return [w**p for w in view_weights]


def mean_squared_distance(K, weights=None):
    """Return what 4.2.3 divides a kernel by, pair by pair."""
    n = len(K)
    weights = np.ones(n) if weights is None else weights
    total = 0.0
    for i in range(n):
        for j in range(n):
            total += weights[i] * weights[j] * (K[i, i] - 2.0 * K[i, j] + K[j, j])
    return total / sum(weights) ** 2


def normalised(kernels, weights=None):
    """Return the kernels after the normalisation of 4.2.3."""
    return [K / mean_squared_distance(K, weights) for K in kernels]


def scatter(K, labels, weights):
    """Return D_v of (4.9), sample by sample; zero where only rounding is left."""
    result = single.objective(K, labels, weights)
    return 0.0 if abs(result) <= ROUNDING * weights.sum() * np.abs(K).max() else result


def view_weights(scatters, p):
    """Return the weights of (4.9), for p = 1 of (4.10), with enough digits for any scatters and any p."""
    scatters = [float(d) for d in scatters]
    least = min(scatters)
    if least <= 0 or p == 1:
        first = [d == least for d in scatters]
        return np.array(first) / sum(first)
    with decimal.localcontext(EXACT):
        power = 1 / (decimal.Decimal(p) - 1)
        result = [
            1 / sum((decimal.Decimal(one) / decimal.Decimal(other)) ** power for other in scatters) for one in scatters
        ]
        return np.array([float(w) for w in result])


def view_objective(scatters, weights, p):
    """Return the sum of w_v^p D_v, (4.7)."""
    return sum(c * d for c, d in zip(coefficients(weights, p), scatters, strict=True))


# --- multi-view kernel k-means ---------------------------------------------------------------------------------------


def scatters(kernels, labels, weights):
    """Return D_v of every view."""
    return np.array([scatter(K, labels, weights) for K in kernels])


def mvkkm(kernels, labels, weights, k, p, first=None, max_iter=100):
    """Return labels, view weights and the objective at the start and after every outer step.

    A step is kernel k-means on the composite to its end, then new view weights; the last one changes nothing.
    """
    n_views = len(kernels)
    shares = np.full(n_views, 1.0 / n_views) if first is None else np.array(first)
    labels, weighted = np.array(labels), None
    path = [view_objective(scatters(kernels, labels, weights), shares, p)]
    for _ in range(max_iter):
        labels, _ = single.kernel_kmeans(composite(kernels, shares, p), labels, weights, k)
        result = scatters(kernels, labels, weights)
        ended = weighted is not None and np.array_equal(labels, weighted)
        weighted = labels
        if not ended:
            shares = view_weights(result, p)
        path.append(view_objective(result, shares, p))
        if ended:
            break
    return labels, shares, path


def nearest_centres(rows, K, labels, weights, k):
    """Return the nearest centre of new samples by (4.2), less k(x, x); ``rows`` are their kernel values."""
    table = np.full((len(rows), k), np.inf)
    for c in range(k):
        members = np.flatnonzero(labels == c)
        total = sum(weights[j] for j in members)
        if total > 0:
            within = sum(weights[j] * weights[m] * K[j, m] for j in members for m in members)
            for i, row in enumerate(rows):
                table[i, c] = within / total**2 - 2.0 * sum(weights[j] * row[j] for j in members) / total
    return table.argmin(axis=1)


# --- multi-view spectral clustering ----------------------------------------------------------------------------------


def weighted_matrix(K, weights):
    """Return W^1/2 K W^1/2."""
    return np.diag(np.sqrt(weights)) @ K @ np.diag(np.sqrt(weights))


def leading(K, weights, m):
    """Return the m largest eigenvalues of W^1/2 K W^1/2, largest first, and their vectors."""
    values, vectors = np.linalg.eigh(weighted_matrix(K, weights))
    order = np.argsort(-values, kind="stable")[:m]
    return values[order], vectors[:, order]


def relaxed_scatters(kernels, weights, Y, totals=None):
    """Return D_v = tr(K_v) - tr(Y^T K_v Y) of every view, or with other totals in place of the traces."""
    matrices = [weighted_matrix(K, weights) for K in kernels]
    totals = [np.trace(B) for B in matrices] if totals is None else totals
    result = np.array([t - np.trace(Y.T @ B @ Y) for t, B in zip(totals, matrices, strict=True)])
    return np.where(np.abs(result) <= ROUNDING * len(Y) * np.abs(totals), 0.0, result)


def mvspec(kernels, weights, m, p, first=None, totals=None, tol=1e-6, max_iter=100):
    """Return view weights, the objective after every outer step, and eigenvalues and vectors at the weights found."""
    n_views = len(kernels)
    shares = np.full(n_views, 1.0 / n_views) if first is None else np.array(first)
    path = []
    for _ in range(max_iter):
        _, Y = leading(composite(kernels, shares, p), weights, m)
        result = relaxed_scatters(kernels, weights, Y, totals)
        shares = shares if np.isinf(p) else view_weights(result, p)
        path.append(view_objective(result, shares, p))
        if np.isinf(p) or (len(path) > 1 and path[-2] - path[-1] <= tol * abs(path[-1])):
            break
    values, Y = leading(composite(kernels, shares, p), weights, m)
    return shares, path, values, Y


def extended(rows, weights, values, Y):
    """Return the eigenvectors at new samples: f(x) = sum_j k(x, x_j) w_j^1/2 Y_j / lambda, number by number."""
    result = np.zeros((len(rows), len(values)))
    for i, row in enumerate(rows):
        for m, value in enumerate(values):
            if value > 1e-10 * values[0]:
                result[i, m] = sum(row[j] * np.sqrt(weights[j]) * Y[j, m] for j in range(len(Y))) / value
    return result


def unit_rows(E):
    """Return rows scaled to unit length (Ng, Jordan and Weiss); a single column stays."""
    return E if E.shape[1] == 1 else np.array([row / np.sqrt(sum(x * x for x in row)) for row in E])
