"""Kernel k-means as printed (PhD Alg. 1.2, MSc 4.1), with nothing kept between iterations.

Distances are computed from (2.3)/(4.2) entry by entry; rules that the documents leave open are those of the library:
a sample keeps its cluster on a tie, an empty cluster gets the farthest sample that can be spared, a step that
would raise the objective (indefinite kernels only) is cut back to its better half until it does not, and three
steps in a row that leave the objective as it is end the run.
"""

import numpy as np


def distance(K, labels, weights, i, c):
    members = np.flatnonzero(labels == c)
    total = weights[members].sum()
    if total <= 0:
        return np.inf
    cross = sum(weights[j] * K[i, j] for j in members)
    within = sum(weights[j] * weights[m] * K[j, m] for j in members for m in members)
    return K[i, i] - 2.0 * cross / total + within / total**2


def objective(K, labels, weights):
    return sum(w * distance(K, labels, weights, i, labels[i]) for i, w in enumerate(weights) if w > 0)


def step(K, labels, weights, k, tolerance):
    """Return the labels after one assignment of every sample, and the distances to the centres assigned."""
    table = np.array([[distance(K, labels, weights, i, c) for c in range(k)] for i in range(len(labels))])
    new = labels.copy()
    for i, row in enumerate(table):
        others = [c for c in range(k) if c != labels[i]]
        low = min((row[c] for c in others), default=np.inf)
        if low < row[labels[i]] - tolerance:
            new[i] = next(c for c in others if row[c] <= low + tolerance)
    reached = table[np.arange(len(labels)), new]
    return fill_empty(new, reached, weights, k, tolerance), reached, table


def fill_empty(labels, reached, weights, k, tolerance):
    labels = labels.copy()
    for c in range(k):
        if weights[labels == c].sum() > 0:
            continue
        spare = [
            i
            for i in range(len(labels))
            if weights[i] > 0 and reached[i] > tolerance and (weights[labels == labels[i]] > 0).sum() > 1
        ]
        if spare:
            labels[max(spare, key=lambda i: (round(reached[i] * (1e-12 / tolerance), 9), -i))] = c
            reached = reached.copy()
            reached[labels == c] = -np.inf  # a sample that opens a cluster is not moved again
    return labels


def merge_equal_centres(K, labels, weights, k, tolerance):
    """Give clusters whose centres coincide the lowest of their numbers."""
    new = labels.copy()
    for c in range(k):
        for d in range(c):
            a, b = (np.where(labels == each, weights, 0.0) for each in (c, d))
            if a.sum() > 0 and b.sum() > 0:
                difference = a / a.sum() - b / b.sum()
                if abs(difference @ K @ difference) <= tolerance:
                    new[labels == c] = d
                    break
    return new


def kernel_kmeans(K, labels, weights, k, max_iter=300):
    """Return (labels, objective of every partition visited)."""
    scale = np.abs(K).max()
    tolerance = 1e-12 * scale
    noise = 16 * np.finfo(float).eps * float(weights.sum()) * scale
    labels = np.array(labels)
    path, idle = [objective(K, labels, weights)], 0
    for _ in range(max_iter):
        new, reached, table = step(K, labels, weights, k, tolerance)
        if np.array_equal(new, labels):
            new = merge_equal_centres(K, labels, weights, k, tolerance)
        moved = np.flatnonzero(new != labels)
        if len(moved) == 0:
            break
        value = objective(K, new, weights)
        if value > path[-1] + noise:
            gains = np.round((reached[moved] - table[moved, labels[moved]]) / scale, 9)
            order = moved[np.argsort(gains, kind="stable")]
            size = len(order) // 2
            while size:
                tried = labels.copy()
                tried[order[:size]] = new[order[:size]]
                value = objective(K, tried, weights)
                if value < path[-1] - noise:
                    break
                size //= 2
            if not size:
                break
            new = tried
        idle = idle + 1 if value >= path[-1] - noise else 0
        labels = new
        path.append(value)
        if idle == 3:
            break
    return labels, path


def nearest_chosen(X, chosen):
    """Return the chosen sample that every sample is nearest to, the first of equals."""
    return np.array([min(range(len(chosen)), key=lambda c: round(squared(x, X[chosen[c]]), 9)) for x in X])


def squared(x, y):
    return float(((x - y) ** 2).sum())


def drawn(masses, uniform):
    """Return the sample whose share of the cumulated mass holds the number."""
    total = 0.0
    for i, mass in enumerate(masses):
        total += mass
        if uniform * sum(masses) < total:
            return i
    return len(masses) - 1


def spread_out(X, weights, k, rng):
    """Return the labels of greedy k-means++: every centre is the best of some samples drawn far from the others."""
    chosen = [drawn(weights, rng.random(1)[0])]
    for _ in range(1, k):
        closest = [min(squared(x, X[c]) for c in chosen) for x in X]
        candidates = [drawn(weights * closest, uniform) for uniform in rng.random(2 + int(np.log(k)))]
        costs = [
            sum(w * min(d, squared(x, X[c])) for w, d, x in zip(weights, closest, X, strict=True)) for c in candidates
        ]
        equal = min(costs) + 1e-10 * max(costs)  # two that are nearest to each other differ by rounding: the first
        chosen.append(next(c for c, cost in zip(candidates, costs, strict=True) if cost <= equal))
    return nearest_chosen(X, chosen)
