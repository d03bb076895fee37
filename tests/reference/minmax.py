"""MinMax k-means (PhD Alg. 2.1), MinMax kernel k-means (PhD 2.5) and pifs k-means (PhD 2.10), plain and slow.

Distances are those of (2.13) with sample weights, computed anew from the kernel matrix in every iteration. Rules that
Algorithm 2.1 leaves open are those of the library:

- p is counted in whole steps above p_init and cut at p_max, so that the stored assignments have exact keys;
- w_k^p is divided by the largest of them; a sample keeps its cluster unless another one is closer by more than 1e-12 of
  the largest diagonal entry, and then takes the first of the closest;
- a cluster of equal samples counts as a singleton: it has no variance, so its weight would be zero as well;
- several such clusters at once lower p by one step only; w_k and E_w are taken with p after its change;
- epsilon is relative to E_w, the change may equal it, and E_w^(0) does not exist: no run ends at t = 1. Consecutive
  values are compared as printed, also where p has changed between them;
- where the printed algorithm returns NULL, the result is that of kernel k-means from the starting labels.

Of (2.10) is open when sizes and means change: here means once per pass, sizes after every sample, or once per pass too.
"""

from dataclasses import dataclass

import numpy as np

from tests.reference.kernel_kmeans import kernel_kmeans


@dataclass
class Result:
    labels: np.ndarray
    path: list  # E_w after every iteration; the path of kernel k-means where collapsed
    weights: np.ndarray  # of the clusters
    p: float
    converged: bool
    collapsed: bool
    variances: np.ndarray
    visited: list  # the labels of every iteration, after going back; where collapsed, those before the collapse


# --- MinMax k-means --------------------------------------------------------------------------------------------------


def squared_distances(K, labels, weights, k):
    """Return the distances (2.13) of every sample to every centre, infinite to clusters without weight."""
    n = len(labels)
    table = np.full((n, k), np.inf)
    for c in range(k):
        members = [j for j in range(n) if labels[j] == c]
        total = sum(weights[j] for j in members)
        if total <= 0:
            continue
        within = sum(weights[j] * weights[m] * K[j, m] for j in members for m in members)
        for i in range(n):
            cross = sum(weights[j] * K[i, j] for j in members)
            table[i, c] = K[i, i] - 2.0 * cross / total + within / total**2
    return table


def cluster_variances(K, labels, weights, k):
    """Return V_k, the weighted sum of the squared distances of a cluster's samples to its centre."""
    table = squared_distances(K, labels, weights, k)
    variances = np.zeros(k)
    for i, c in enumerate(labels):
        if weights[i] > 0:
            variances[c] += weights[i] * table[i, c]
    return variances


def has_degenerate(labels, weights, variances, k, tolerance):
    """Tell whether a cluster is empty, has a single sample (of positive weight) or no variance."""
    for c in range(k):
        inside = [weights[i] for i in range(len(labels)) if labels[i] == c and weights[i] > 0]
        if len(inside) <= 1 or variances[c] <= tolerance * sum(inside):
            return True
    return False


def assign(table, labels, coefficients, tolerance):
    """Return the labels of (2.5): every sample in the cluster of least weighted distance."""
    coefficients = coefficients / coefficients.max()
    new = labels.copy()
    for i in range(len(labels)):
        values = coefficients * table[i]
        others = [c for c in range(len(values)) if c != labels[i]]
        low = min((values[c] for c in others), default=np.inf)
        if low < values[labels[i]] - tolerance:
            new[i] = next(c for c in others if values[c] <= low + tolerance)
    return new


def exponents(p_init, p_max, p_step):
    """Return p of every level: p_init, one step more each, and at last p_max."""
    levels = [min(p_init, p_max)]
    while p_init + (len(levels) - 1) * p_step < p_max - 1e-9:
        levels.append(min(p_init + len(levels) * p_step, p_max))
    return levels


def minmax(K, labels, weights, k, *, p_init=0.0, p_max=0.5, p_step=0.01, memory=0.3, tol=1e-6, max_iter=500):
    """Run Algorithm 2.1 on a kernel matrix; ``labels`` are the assignments of t = 1."""
    tolerance = 1e-12 * np.abs(np.diagonal(K)).max()
    levels = exponents(p_init, p_max, p_step)
    start = np.array(labels)
    stored_labels, stored_shares = {}, {}
    labels, shares = start, np.full(k, 1.0 / k)
    level, empty, converged = 0, False, False
    path, visited = [], []

    for t in range(1, max_iter + 1):
        if t > 1:
            table = squared_distances(K, labels, weights, k)
            labels = assign(table, labels, shares ** levels[level], tolerance)
        variances = cluster_variances(K, labels, weights, k)

        if has_degenerate(labels, weights, variances, k, tolerance):
            empty = True
            level -= 1
            if level < 0:
                return collapse(K, start, weights, k, p_init, max_iter, visited)
            labels, shares = stored_labels[level], stored_shares[level]
            variances = cluster_variances(K, labels, weights, k)

        if level < len(levels) - 1 and not empty:
            stored_labels[level], stored_shares[level] = labels, shares
            level += 1

        p = levels[level]
        powers = (variances / variances.max()) ** (1.0 / (1.0 - p))
        shares = memory * shares + (1.0 - memory) * powers / powers.sum()
        path.append(float((shares**p * variances).sum()))
        visited.append(labels)
        if t > 1 and abs(path[-1] - path[-2]) <= tol * abs(path[-1]):
            converged = True
            break

    return Result(labels, path, shares, levels[level], converged, False, variances, visited)


def collapse(K, start, weights, k, p_init, max_iter, visited):
    """Return kernel k-means from the starting labels; converged if it ended before the last iteration allowed."""
    labels, path = kernel_kmeans(K, start, weights, k, max_iter)
    variances = cluster_variances(K, labels, weights, k)
    converged = len(path) <= max_iter
    return Result(labels, path, np.full(k, 1.0 / k), p_init, converged, True, variances, visited)


def nearest_centres(X, centres):
    """Return the nearest centre of every sample, the first of equally near ones."""
    tolerance = 1e-12 * max(x @ x for x in X)
    labels = np.zeros(len(X), dtype=int)
    for i, x in enumerate(X):
        distances = [(x - m) @ (x - m) for m in centres]
        labels[i] = next(c for c, distance in enumerate(distances) if distance <= min(distances) + tolerance)
    return labels


def minmax_vectors(X, centres, weights, **options):
    """Run Algorithm 2.1 on vectors from starting centres."""
    return minmax(X @ X.T, nearest_centres(X, centres), weights, len(centres), **options)


# --- pifs k-means ----------------------------------------------------------------------------------------------------


def pifs(X, labels, weights, *, k, max_iter=300, incremental=True):
    """Return (labels, passes made, converged) of pifs k-means (2.10).

    In a pass every sample in turn goes to the cluster of least size times squared distance, where means are those at
    the start of the pass. Sizes are those of the moment, without the sample itself, or (``incremental=False``) those at
    the start of the pass, with it. An emptied cluster keeps its mean; one that never had a mean is not chosen.
    """
    n = len(X)
    labels = np.array(labels)
    tolerance = 1e-12 * max(x @ x for x in X) * sum(weights)
    means = [None] * k
    for passes in range(1, max_iter + 1):
        before = labels.copy()
        for c in range(k):
            total = sum(weights[j] for j in range(n) if before[j] == c)
            if total > 0:
                means[c] = sum(weights[j] * X[j] for j in range(n) if before[j] == c) / total
        for i in range(n):
            values = np.full(k, np.inf)
            for c in range(k):
                if means[c] is None:
                    continue
                if incremental:
                    size = sum(weights[j] for j in range(n) if labels[j] == c and j != i)
                else:
                    size = sum(weights[j] for j in range(n) if before[j] == c)
                values[c] = size * ((X[i] - means[c]) @ (X[i] - means[c]))
            minima = [c for c in range(k) if values[c] <= values.min() + tolerance]
            if labels[i] not in minima:
                labels[i] = minima[0]
        if np.array_equal(labels, before):
            return labels, passes, True
    return labels, max_iter, False
