"""Multi-view clustering of samples that are absent from views, the slow way: centres as vectors, sums as loops.

``features`` are the vectors behind the kernels, one table per view, rows of absent samples unread; ``mask`` says who is
where. Rules that the formulas leave open are those of the library: ties stay, a cluster that nobody of a view is in has
the mean of the view as its centre, and a cluster without any weight has none.
"""

import numpy as np

from tests.reference import multi_view

TIE = 1e-12


def centers(features, mask, labels, weights, k):
    """Return the centres of all clusters in every view."""
    result = []
    for v, X in enumerate(features):
        there = [i for i in range(len(X)) if mask[i, v]]
        mean = sum(weights[i] * X[i] for i in there) / sum(weights[i] for i in there)
        of_view = []
        for c in range(k):
            members = [i for i in there if labels[i] == c]
            total = sum(weights[i] for i in members)
            of_view.append(sum(weights[i] * X[i] for i in members) / total if total > 0 else mean)
        result.append(of_view)
    return result


def scatters(features, mask, labels, weights, k):
    """Return D_v / W_v of every view."""
    at = centers(features, mask, labels, weights, k)
    result = []
    for v, X in enumerate(features):
        there = [i for i in range(len(X)) if mask[i, v]]
        squared = sum(weights[i] * ((X[i] - at[v][labels[i]]) ** 2).sum() for i in there)
        result.append(squared / sum(weights[i] for i in there))
    return np.array(result)


def objective(features, mask, labels, weights, k, view_weights, p):
    """Return J."""
    return multi_view.view_objective(scatters(features, mask, labels, weights, k), view_weights, p)


def costs(features, mask, labels, weights, k, view_weights, p, new=None, new_mask=None):
    """Return what samples (new ones, if there are any) cost in every cluster, infinite where nobody has weight."""
    at = centers(features, mask, labels, weights, k)
    samples, there = (features, mask) if new is None else (new, new_mask)
    result = np.zeros((len(there), k))
    for v, coefficient in enumerate(multi_view.coefficients(view_weights, p)):
        total = sum(weights[i] for i in range(len(mask)) if mask[i, v])
        for i in range(len(there)):
            if there[i, v]:
                for c in range(k):
                    result[i, c] += coefficient / total * ((samples[v][i] - at[v][c]) ** 2).sum()
    for c in range(k):
        if not sum(weights[i] for i in range(len(mask)) if labels[i] == c) > 0:
            result[:, c] = np.inf
    return result


def step(features, mask, labels, weights, k, view_weights, p):
    """Return the labels after every sample went where it costs least."""
    table = costs(features, mask, labels, weights, k, view_weights, p)
    size = max(np.abs(X[mask[:, v]]).max() ** 2 for v, X in enumerate(features))
    result = labels.copy()
    for i, row in enumerate(table):
        if row.min() < row[labels[i]] - TIE * size:
            result[i] = int(np.argmin(row))
    return result


# --- spectral --------------------------------------------------------------------------------------------------------


def affinity(kernels, mask, weights, coefficients):
    """Return the sum averaged over common views, and the mean that pairs without one get; pair by pair.

    ``kernels`` are of all samples, values of absent ones unread.
    """
    n = len(mask)
    A = np.zeros((n, n))
    unknown = []
    total, pairs = 0.0, 0.0
    for i in range(n):
        for j in range(n):
            common = [v for v in range(len(kernels)) if mask[i, v] and mask[j, v]]
            share = sum(coefficients[v] for v in common) / sum(coefficients)
            if share == 0:
                unknown.append((i, j))
                continue
            A[i, j] = sum(coefficients[v] * kernels[v][i, j] for v in common) / share
            total += weights[i] * weights[j] * A[i, j]
            pairs += weights[i] * weights[j]
    for i, j in unknown:
        A[i, j] = total / pairs
    return A, total / pairs


def relaxed_scatters(kernels, mask, weights, Y, by_degrees):
    """Return D_v of eigenvectors Y in every view."""
    result = []
    for v, K in enumerate(kernels):
        there = np.flatnonzero(mask[:, v])
        B = multi_view.weighted_matrix(K[np.ix_(there, there)], weights[there])
        Q = np.linalg.qr(Y[there])[0]
        if by_degrees:
            result.append(Y.shape[1] - np.trace(Q.T @ B @ Q))
        else:
            result.append((np.trace(B) - np.trace(Q.T @ B @ Q)) / weights[there].sum())
    return np.array(result)
