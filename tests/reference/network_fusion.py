"""NEMO and similarity network fusion with plain loops, from distances to the fused network."""

import numpy as np


def standardized(X):
    """Return columns of deviation one; constant ones become zero."""
    spread = X.std(axis=0)
    return np.where(spread > 1e-12, (X - X.mean(axis=0)) / np.where(spread > 1e-12, spread, 1.0), 0.0)


def distances(X):
    """Return Euclidean distances, those of rounding taken for zero."""
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=-1))
    return np.where(D < 1e-7, 0.0, D)


def neighbors(D, i, m):
    """Return the nearest others of sample i; of those as far as the last one, all."""
    others = [j for j in range(len(D)) if j != i]
    last = sorted(D[i, j] for j in others)[m - 1]
    return [j for j in others if D[i, j] <= last * (1 + 1e-9)]


def mean_distance(D, i, m):
    """Return the mean distance of sample i to its m nearest others."""
    return float(np.mean(sorted(D[i, j] for j in range(len(D)) if j != i)[:m]))


def affinity(D, i, j, m, mu):
    """Return exp(-d^2 / (mu e)); one between equal samples."""
    width = mu * (mean_distance(D, i, m) + mean_distance(D, j, m) + D[i, j]) / 3
    return float(np.exp(-(D[i, j] ** 2) / width)) if width > 0 else 1.0


def local_shares(D, m, mu):
    """Return affinities with the nearest others, rows divided by their sums."""
    n = len(D)
    S = np.zeros((n, n))
    for i in range(n):
        for j in neighbors(D, i, m):
            S[i, j] = affinity(D, i, j, m, mu)
        S[i] /= S[i].sum()
    return S


def halved(P):
    """Return a matrix whose rows have 1/2 on the diagonal and 1/2 in all other places together, made symmetric."""
    n = len(P)
    Q = np.empty((n, n))
    for i in range(n):
        others = P[i].sum() - P[i, i]
        for j in range(n):
            Q[i, j] = 0.5 if i == j else P[i, j] / (2 * others)
    return (Q + Q.T) / 2


def full_shares(D, m, mu):
    """Return affinities with all others, halved."""
    n = len(D)
    return halved(np.array([[affinity(D, i, j, m, mu) for j in range(n)] for i in range(n)]))


def fused(blocks, m, mu=0.5, rounds=20):
    """Return the network that similarity network fusion makes of complete views."""
    Ds = [distances(standardized(X)) for X in blocks]
    S = [local_shares(D, m, mu) for D in Ds]
    P = [full_shares(D, m, mu) for D in Ds]
    for _ in range(rounds):
        following = []
        for v in range(len(P)):
            others = [P[u] for u in range(len(P)) if u != v] or [P[v]]
            following.append(halved(S[v] @ (sum(others) / len(others)) @ S[v].T))
        P = following
    return sum(P) / len(P)


def average_similarity(blocks, counts, mu=0.5):
    """Return NEMO's affinities; a row of NaN is a sample that the view lacks, ``counts`` are neighbours by view."""
    n = len(blocks[0])
    total = np.zeros((n, n))
    together = np.zeros((n, n))
    for X, m in zip(blocks, counts, strict=True):
        present = [i for i in range(n) if not np.isnan(X[i]).all()]
        D = distances(standardized(X[present]))
        near = [set(neighbors(D, i, m)) for i in range(len(present))]
        sums = [sum(affinity(D, i, r, m, mu) for r in near[i]) for i in range(len(present))]
        for i, first in enumerate(present):
            for j, second in enumerate(present):
                together[first, second] += 1
                if j in near[i]:
                    total[first, second] += affinity(D, i, j, m, mu) / sums[i]
                if i in near[j]:
                    total[first, second] += affinity(D, i, j, m, mu) / sums[j]
    return np.where(together > 0, total / np.maximum(together, 1), 0.0)
