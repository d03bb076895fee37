"""NMF of several views that lack samples, the slow way: entry by entry over what each view has.

``views`` and ``Vs`` have a row for every sample; rows of samples that are absent from a view are never read. ``mask``
says who is where.
"""

import numpy as np


def samples_of(mask, v):
    """Return the samples that view v has."""
    return [i for i in range(len(mask)) if mask[i, v]]


def scaled(views, mask):
    """Return the views divided so that their sums are the shares of samples they have."""
    result = []
    for v, X in enumerate(views):
        there = samples_of(mask, v)
        total = sum(X[i, j] for i in there for j in range(X.shape[1]))
        result.append(X / total * (len(there) / len(mask)))
    return result


def objective(views, mask, Us, Vs, common, weights):
    """Return the errors of the products and the distances of V Q from the common factor."""
    total = 0.0
    for v, (X, U, V, weight) in enumerate(zip(views, Us, Vs, weights, strict=True)):
        d, k = U.shape
        Q = [sum(U[:, c]) for c in range(k)]
        for i in samples_of(mask, v):
            total += sum((X[i, j] - sum(V[i, c] * U[j, c] for c in range(k))) ** 2 for j in range(d))
            total += weight * sum((V[i, c] * Q[c] - common[i, c]) ** 2 for c in range(k))
    return total


def consensus(mask, Us, Vs, weights):
    """Return for every sample the mean of V Q over the views that have it, weighted by lambda."""
    n, k = len(mask), Us[0].shape[1]
    common = np.zeros((n, k))
    for i in range(n):
        there = [v for v in range(len(Us)) if mask[i, v]]
        for c in range(k):
            parts = [weights[v] * Vs[v][i, c] * sum(Us[v][:, c]) for v in there]
            common[i, c] = sum(parts) / sum(weights[v] for v in there)
    return common


def one_round(views, mask, Us, Vs, common, weights):
    """Return the factors after the updates of Liu et al., (10), (14) and (15), over the samples of each view."""
    Us, Vs = [U.copy() for U in Us], [V.copy() for V in Vs]
    for v, (X, weight) in enumerate(zip(views, weights, strict=True)):
        there = samples_of(mask, v)
        U, V = Us[v], Vs[v]
        d, k = U.shape
        new = U.copy()
        for j in range(d):
            for c in range(k):
                top = sum(X[i, j] * V[i, c] + weight * V[i, c] * common[i, c] for i in there)
                bottom = sum(U[j, b] * sum(V[i, b] * V[i, c] for i in there) for b in range(k))
                bottom += weight * sum(U[:, c]) * sum(V[i, c] ** 2 for i in there)
                new[j, c] = U[j, c] * top / bottom
        Q = new.sum(axis=0)
        U, V = new / Q, V * Q
        new = V.copy()
        for i in there:
            for c in range(k):
                bottom = sum(V[i, b] * (U[:, b] @ U[:, c]) for b in range(k)) + weight * V[i, c]
                new[i, c] = V[i, c] * (X[i] @ U[:, c] + weight * common[i, c]) / bottom
        Us[v], Vs[v] = U, new
    return Us, Vs, consensus(mask, Us, Vs, weights)


def shared_distances(rows, mask):
    """Return squared distances, means over the views that have both; the mean of all known ones where none has."""
    n = len(mask)
    known = [
        ((rows[v][i] - rows[v][j]) ** 2).sum()
        for v in range(len(rows))
        for i in samples_of(mask, v)
        for j in samples_of(mask, v)
    ]
    result = np.full((n, n), np.mean(known))
    for i in range(n):
        for j in range(n):
            both = [v for v in range(len(rows)) if mask[i, v] and mask[j, v]]
            if both:
                result[i, j] = np.mean([((rows[v][i] - rows[v][j]) ** 2).sum() for v in both])
    return result
