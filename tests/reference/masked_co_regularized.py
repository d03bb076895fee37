"""Co-regularised spectral clustering of views that lack samples, the slow way: sums over the samples that two have.

Vectors of a view are kept as a dict from sample to row, so that nothing is said of absent samples.
"""

import math

import numpy as np


def there(mask, v):
    """Return the samples that view v has."""
    return [i for i in range(len(mask)) if mask[i, v]]


def affinities(X, samples, gamma):
    """Return Gaussian affinities among the samples, divided by degrees."""
    K = np.array([[math.exp(-gamma * ((X[i] - X[j]) ** 2).sum()) for j in samples] for i in samples])
    degrees = [sum(row) for row in K]
    size = range(len(samples))
    return np.array([[K[i, j] / math.sqrt(degrees[i] * degrees[j]) for j in size] for i in size])


def leading(matrix, k):
    """Return the leading eigenvectors, as rows."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors[:, np.argsort(-values)[:k]]


def as_rows(samples, vectors):
    return dict(zip(samples, vectors, strict=True))


def agreement(one, other):
    """Return tr(U U^T W W^T) over the samples that both have."""
    both = [i for i in one if i in other]
    return sum((one[i] @ one[j]) * (other[i] @ other[j]) for i in both for j in both)


def objective(Ls, Us, mask, strengths, center=None):
    """Return the objective: against the centre, or pair by pair."""
    total = 0.0
    for v, L in enumerate(Ls):
        U = np.array([Us[v][i] for i in there(mask, v)])
        total += np.trace(U.T @ L @ U)
        if center is not None:
            total += strengths[v] * agreement(Us[v], center)
        else:
            total += sum(0.5 * (strengths[v] + strengths[u]) * agreement(Us[v], Us[u]) for u in range(v))
    return total


def drawn_to(L, samples, targets, k):
    """Return the best vectors of a view: those of its matrix plus the projections of the targets."""
    matrix = L.copy()
    for strength, rows in targets:
        for a, i in enumerate(samples):
            for b, j in enumerate(samples):
                if i in rows and j in rows:
                    matrix[a, b] += strength * (rows[i] @ rows[j])
    return as_rows(samples, leading(matrix, k))


def centre_of(Us, n, strengths, k):
    """Return the leading eigenvectors of the sum of all projections."""
    matrix = np.zeros((n, n))
    for strength, rows in zip(strengths, Us, strict=True):
        for i in rows:
            for j in rows:
                matrix[i, j] += strength * (rows[i] @ rows[j])
    return as_rows(range(n), leading(matrix, k))


def sweeps(Ls, mask, strengths, k, count, *, centroid):
    """Return the vectors of every view, the centre and the objective at the start and after every sweep."""
    n, n_views = mask.shape
    samples = [there(mask, v) for v in range(n_views)]
    Us = [as_rows(samples[v], leading(Ls[v], k)) for v in range(n_views)]
    center = centre_of(Us, n, strengths, k) if centroid else None
    path = [objective(Ls, Us, mask, strengths, center)]
    for _ in range(count):
        for v in range(n_views):
            targets = [(0.5 * (strengths[v] + strengths[u]), Us[u]) for u in range(n_views) if u != v]
            Us[v] = drawn_to(Ls[v], samples[v], [(strengths[v], center)] if centroid else targets, k)
        center = centre_of(Us, n, strengths, k) if centroid else None
        path.append(objective(Ls, Us, mask, strengths, center))
    return Us, center, path


def rows_of(Us, mask):
    """Return the vectors side by side with NaN for absent views, a row as long as its share of the views allows."""
    n, n_views = mask.shape
    result = []
    for i in range(n):
        own = [v for v in range(n_views) if mask[i, v]]
        scaled = {v: Us[v][i] * math.sqrt(len(there(mask, v)) / n) for v in own}
        length = math.sqrt(sum((scaled[v] ** 2).sum() for v in own) / (len(own) / n_views))
        k = len(next(iter(scaled.values())))
        result.append(np.concatenate([scaled[v] / length if v in own else np.full(k, np.nan) for v in range(n_views)]))
    return np.array(result)


def scatter(rows, labels):
    """Return the sum of squares around the means of clusters, over the entries that are there."""
    total = 0.0
    for c in set(labels.tolist()):
        for column in rows[labels == c].T:
            known = [x for x in column if not math.isnan(x)]
            if known:
                mean = sum(known) / len(known)
                total += sum((x - mean) ** 2 for x in known)
    return total
