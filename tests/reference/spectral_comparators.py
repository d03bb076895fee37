"""Comparators as printed, the slow way: Ng spectral clustering, co-regularised, co-trained, correlational, and OKKC.

Every matrix is written out and decomposed whole. Rules the sources leave open are those of the library: a sample that
is like none takes no part, eigenvectors whose eigenvalue is not above zero say nothing and are columns of zeros, a pair
of views has the mean of their strengths, kernels of a correlation analysis have trace one.
"""

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize

from tests.reference import kernel_kmeans as single
from tests.reference.multi_view import unit_rows

# Eigenvalues below this share of the largest are zero.
ZERO = 1e-10


# --- eigenvectors of affinities --------------------------------------------------------------------------------------


def by_degrees(K, absolute=False):
    """Return K_ij / sqrt(d_i d_j), entry by entry; degrees are sums of rows, or of absolute values."""
    degrees = [sum(abs(value) if absolute else value for value in row) for row in K]
    result = np.zeros_like(K)
    for i, j in np.ndindex(K.shape):
        if degrees[i] > 0 and degrees[j] > 0:
            result[i, j] = K[i, j] / np.sqrt(degrees[i] * degrees[j])
    return result


def leading(matrix, k):
    """Return the k largest eigenvalues, largest first, and their vectors; zeros where a value is not above zero."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k].copy()
    vectors[:, values <= max(ZERO * values[0], 0.0)] = 0.0
    return values, vectors


def ng(K, k):
    """Return eigenvalues and unit rows of the eigenvectors (Ng, Jordan and Weiss); A_ii = 0."""
    values, E = leading(by_degrees(K - np.diag(np.diag(K))), k)
    return values, unit_rows(E)


# --- co-regularised --------------------------------------------------------------------------------------------------


def pairwise_objective(laplacians, U, strengths):
    """Return (1.11) with every pair counted once."""
    total = sum(np.trace(u.T @ L @ u) for L, u in zip(laplacians, U, strict=True))
    for v in range(len(U)):
        for u in range(v):
            pair = (strengths[u] + strengths[v]) / 2
            total += pair * np.trace(U[v] @ U[v].T @ U[u] @ U[u].T)
    return total


def pairwise(kernels, k, strengths, n_sweeps):
    """Return the vectors of every view and the objective at the start and after every sweep."""
    laplacians = [by_degrees(K) for K in kernels]
    U = [leading(L, k)[1] for L in laplacians]
    path = [pairwise_objective(laplacians, U, strengths)]
    for _ in range(n_sweeps):
        for v, L in enumerate(laplacians):
            changed = L.copy()
            for u in range(len(U)):
                if u != v:
                    changed += (strengths[u] + strengths[v]) / 2 * U[u] @ U[u].T
            U[v] = leading(changed, k)[1]
        path.append(pairwise_objective(laplacians, U, strengths))
    return U, path


def centroid_objective(laplacians, U, center, strengths):
    """Return the sum of spectral objectives and of weighted agreements with the centroid."""
    total = sum(np.trace(u.T @ L @ u) for L, u in zip(laplacians, U, strict=True))
    return total + sum(s * np.trace(u @ u.T @ center @ center.T) for s, u in zip(strengths, U, strict=True))


def centroid(kernels, k, strengths, n_sweeps):
    """Return the centroid and the objective at the start and after every sweep."""
    laplacians = [by_degrees(K) for K in kernels]
    U = [leading(L, k)[1] for L in laplacians]

    def middle():
        return leading(sum(s * u @ u.T for s, u in zip(strengths, U, strict=True)), k)[1]

    center = middle()
    path = [centroid_objective(laplacians, U, center, strengths)]
    for _ in range(n_sweeps):
        U = [leading(L + s * center @ center.T, k)[1] for L, s in zip(laplacians, strengths, strict=True)]
        center = middle()
        path.append(centroid_objective(laplacians, U, center, strengths))
    return center, path


# --- co-trained ------------------------------------------------------------------------------------------------------


def mean_agreement(E):
    """Return the mean over pairs of views of tr(E_v E_v^T E_u E_u^T) over the number of vectors."""
    ranks = [np.count_nonzero(e.any(axis=0)) for e in E]
    result = [
        np.trace(E[v] @ E[v].T @ E[u] @ E[u].T) / np.sqrt(ranks[u] * ranks[v]) for v in range(len(E)) for u in range(v)
    ]
    return np.mean(result)


def co_trained(kernels, k, n_rounds):
    """Return the vectors of every view and the mean agreement at the start and after every round."""
    E = [leading(by_degrees(K), k)[1] for K in kernels]
    path = [mean_agreement(E)]
    for _ in range(n_rounds):
        changed = []
        for v, K in enumerate(kernels):
            projected = sum(E[u] @ E[u].T for u in range(len(E)) if u != v) @ K
            changed.append(leading(by_degrees((projected + projected.T) / 2, absolute=True), k)[1])
        E = changed
        path.append(mean_agreement(E))
    return E, path


# --- correlational ---------------------------------------------------------------------------------------------------


def centred(K):
    """Return the kernel of features with their mean subtracted."""
    n = len(K)
    M = np.eye(n) - np.ones((n, n)) / n
    return M @ K @ M


def cca(views, kappas, q):
    """Return correlations and projections of linear views, from the problem in the space of the features.

    Weights w_v, projections F_v w_v: the sum over v != u of w_v^T F_v^T F_u w_u is the largest with
    sum_v w_v^T ((1 - kappa) F_v^T F_v + kappa I) w_v = 1.
    """
    features = [X - X.mean(axis=0) for X in views]
    features = [F / np.linalg.norm(F) for F in features]
    ends = np.cumsum([0, *(F.shape[1] for F in features)])
    A, B = np.zeros((ends[-1], ends[-1])), np.zeros((ends[-1], ends[-1]))
    for v, F in enumerate(features):
        rows = slice(ends[v], ends[v + 1])
        B[rows, rows] = (1 - kappas[v]) * F.T @ F + kappas[v] * np.eye(F.shape[1])
        for u, G in enumerate(features):
            if u != v:
                A[rows, ends[u] : ends[u + 1]] = F.T @ G
    values, W = eigh(A, B)
    values, W = values[::-1][:q] / (len(views) - 1), W[:, ::-1][:, :q]
    keep = values > ZERO
    return values[keep], [F @ W[ends[v] : ends[v + 1], keep] for v, F in enumerate(features)]


def cca_residual(kernels, kappas, projections, alphas, correlations):
    """Return how far coefficients are from solving the dual problem, for kernels of trace one.

    sum over u != v of K_v K_u a_u = (V - 1) rho ((1 - kappa) K_v^2 + kappa K_v) a_v
    """
    worst = 0.0
    for v, K in enumerate(kernels):
        others = sum(z for u, z in enumerate(projections) if u != v)
        variance = (1 - kappas[v]) * K @ K @ alphas[v] + kappas[v] * K @ alphas[v]
        left_over = K @ others - (len(kernels) - 1) * variance * correlations
        worst = max(worst, np.abs(left_over).max() / np.abs(K @ others).max())
    return worst


# --- OKKC ------------------------------------------------------------------------------------------------------------


def indicators(labels, k):
    """Return the indicators of the clusters over the roots of their sizes, centred column by column."""
    Y = np.zeros((len(labels), k))
    for c in range(k):
        members = np.flatnonzero(labels == c)
        if len(members):
            Y[members, c] = 1 / np.sqrt(len(members))
            Y[:, c] -= Y[:, c].mean()
    return Y


def unexplained(kernels, theta, labels, k, ridge):
    """Return ridge times the sum of y_c^T (Omega + ridge I)^-1 y_c."""
    Omega = sum(t * K for t, K in zip(theta, kernels, strict=True))
    inverse = np.linalg.inv(Omega + ridge * np.eye(len(Omega)))
    return ridge * sum(y @ inverse @ y for y in indicators(labels, k).T)


def coefficients(kernels, labels, k, ridge, norm):
    """Return the best coefficients, from a general solver started at several points, and their value."""
    n_views = len(kernels)

    def value(theta):
        return unexplained(kernels, theta, labels, k, ridge)

    limit = {
        1: {"type": "eq", "fun": lambda theta: theta.sum() - 1},
        2: {"type": "ineq", "fun": lambda theta: 1 - theta @ theta},
    }[norm]
    starts = [np.full(n_views, n_views ** (-1 / norm)), *(0.9 * np.eye(n_views) + 0.1 / n_views)]
    options = {"method": "SLSQP", "bounds": [(0, None)] * n_views, "options": {"ftol": 1e-13, "maxiter": 500}}
    result = min((minimize(value, start, constraints=[limit], **options) for start in starts), key=lambda run: run.fun)
    return result.x, result.fun


def okkc(kernels, labels, k, ridge, norm, tol=1e-5, max_iter=20):
    """Return labels, coefficients and the value after every round, from given labels."""
    theta, value = coefficients(kernels, labels, k, ridge, norm)
    path = [value]
    while len(path) < max_iter:
        Omega = sum(t * K for t, K in zip(theta, kernels, strict=True))
        result, _ = single.kernel_kmeans(Omega, labels, np.ones(len(labels)), k)
        if np.array_equal(result, labels):
            break
        ahead, value = coefficients(kernels, result, k, ridge, norm)
        if value >= path[-1]:
            break
        labels, theta = result, ahead
        path.append(value)
        if path[-2] - path[-1] <= tol * path[-1]:
            break
    return labels, theta, path
