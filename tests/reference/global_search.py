"""Global kernel k-means as printed (MSc Alg. 10 to 12, weighted as in 4.2): every run is made, each to its end.

The runs are those of the entry-wise oracle, written with arrays so that a run from every sample of 200 problems takes
seconds. Rules that the documents leave open are those of the library: of candidates whose objectives are equal (within
1e-10 of the best, relatively, or within the rounding of an objective) the first is taken, of equal gains (within 1e-12)
the first sample.
"""

import itertools
from typing import NamedTuple

import numpy as np

from tests.reference.kernel_kmeans import fill_empty, merge_equal_centres


class Solution(NamedTuple):
    labels: np.ndarray
    objective: float


def tolerances(K, weights):
    """Return the slack of distances and the noise of objectives."""
    scale = np.abs(K).max()
    return 1e-12 * scale, 16 * np.finfo(float).eps * float(weights.sum()) * scale


def distances(K, labels, weights, k):
    """Return the squared distances of (4.2) to every centre, infinite to clusters without weight."""
    members = weights[:, None] * (labels[:, None] == np.arange(k))
    totals = members.sum(axis=0)
    cross = K @ members
    within = (members * cross).sum(axis=0)
    filled = totals > 0
    table = np.full((len(K), k), np.inf)
    table[:, filled] = (
        np.diagonal(K)[:, None] - 2.0 * cross[:, filled] / totals[filled] + within[filled] / totals[filled] ** 2
    )
    return table


def objective(weights, table, labels):
    kept = table[np.arange(len(labels)), labels]
    return float(weights[weights > 0] @ kept[weights > 0])


def step(labels, weights, k, tolerance, table):
    """Return the labels after one assignment of every sample, and the distances to the centres assigned."""
    everyone = np.arange(len(labels))
    others = table.copy()
    others[everyone, labels] = np.inf
    low = others.min(axis=1)
    leaves = low < table[everyone, labels] - tolerance
    new = np.where(leaves, (others <= low[:, None] + tolerance).argmax(axis=1), labels)
    reached = table[everyone, new]
    if (np.bincount(new, weights, k) <= 0).any():
        new = fill_empty(new, reached, weights, k, tolerance)
    return new, reached


def kernel_kmeans(K, labels, weights, k, max_iter=300):
    """Return (labels, objective of every partition visited), as the entry-wise oracle does."""
    tolerance, noise = tolerances(K, weights)
    table = distances(K, labels, weights, k)
    path, idle = [objective(weights, table, labels)], 0
    while len(path) <= max_iter and idle < 3:
        new, reached = step(labels, weights, k, tolerance, table)
        if np.array_equal(new, labels):
            new = merge_equal_centres(K, labels, weights, k, tolerance)
        if np.array_equal(new, labels):
            break
        there = distances(K, new, weights, k)
        if objective(weights, there, new) > path[-1] + noise:
            new = better_part(K, labels, new, weights, reached, table, path[-1] - noise)
            if new is None:
                break
            there = distances(K, new, weights, k)
        value = objective(weights, there, new)
        idle = idle + 1 if value >= path[-1] - noise else 0
        labels, table = new, there
        path.append(value)
    return labels, path


def better_part(K, labels, new, weights, reached, table, bound):
    """Return the labels after the better half of the moves, or a quarter, ..., that end below the bound, or None."""
    moved = np.flatnonzero(new != labels)
    gains = np.round((reached[moved] - table[moved, labels[moved]]) / np.abs(K).max(), 9)
    order = moved[np.argsort(gains, kind="stable")]
    size = len(order) // 2
    while size:
        tried = labels.copy()
        tried[order[:size]] = new[order[:size]]
        if objective(weights, distances(K, tried, weights, table.shape[1]), tried) < bound:
            return tried
        size //= 2
    return None


def run_from(K, labels, weights, k, candidate, max_iter=300):
    """Run kernel k-means with ``candidate`` moved from the partition ``labels`` to the new cluster k - 1."""
    start = labels.copy()
    start[candidate] = k - 1
    result, path = kernel_kmeans(K, start, weights, k, max_iter)
    return Solution(result, path[-1])


def first_of_the_best(solutions, noise=0.0):
    best = min(solution.objective for solution in solutions)
    tie = max(1e-10 * abs(best), noise)
    return next(solution for solution in solutions if solution.objective <= best + tie)


def search(K, weights, n_clusters, candidates, max_iter=300):
    """Try the given samples at every stage; returns the solutions for 1 to ``n_clusters`` clusters."""
    _, noise = tolerances(K, weights)
    path = [Solution(*one_cluster(K, weights))]
    for k in range(2, n_clusters + 1):
        runs = [run_from(K, path[-1].labels, weights, k, n, max_iter) for n in sorted(candidates)]
        path.append(first_of_the_best(runs, noise))
    return path


def one_cluster(K, weights):
    labels = np.zeros(len(K), dtype=int)
    return labels, objective(weights, distances(K, labels, weights, 1), labels)


def exact_search(K, weights, n_clusters, max_iter=300):
    """Alg. 10: every sample of positive weight is tried."""
    return search(K, weights, n_clusters, np.flatnonzero(weights > 0), max_iter)


def exemplar_search(K, weights, n_clusters, exemplars):
    """Alg. 12 from the exemplars on: they alone are tried."""
    return search(K, weights, n_clusters, exemplars)


def sure_gain(K, kept, weights, n):
    """Return b_n of (3.2) and (4.3): what is sure to be gained when sample n founds a cluster, i joins if nearer."""
    gain = 0.0
    for i in np.flatnonzero(weights > 0):
        gain += weights[i] * max(kept[i] - (K[n, n] - 2.0 * K[n, i] + K[i, i]), 0.0)
    return gain


def fast_search(K, weights, n_clusters):
    """Alg. 11: one run per stage, from the sample of largest b."""
    path = [Solution(*one_cluster(K, weights))]
    for k in range(2, n_clusters + 1):
        labels = path[-1].labels
        kept = distances(K, labels, weights, k - 1)[np.arange(len(K)), labels]
        gains = {n: sure_gain(K, kept, weights, n) for n in np.flatnonzero(weights > 0)}
        best = max(gains.values())
        candidate = next(n for n, gain in gains.items() if gain >= best - 1e-12 * abs(best))
        path.append(run_from(K, labels, weights, k, candidate))
    return path


def reference_beta(K, weights):
    """Return beta_0 of (4.11), entry by entry, over the samples of positive weight.

    Their number times the entropy of the weights, over the weighted sum of squared distances.
    """
    counted = np.flatnonzero(weights > 0)
    shares = weights / weights.sum()
    entropy = -sum(shares[i] * np.log(shares[i]) for i in counted)
    total = sum(shares[i] * (K[i, i] - 2.0 * K[i, j] + K[j, j]) for i in counted for j in counted)
    return len(counted) * entropy / total


def log_likelihood(S, shares, priors):
    used = shares > 0
    return float(shares[used] @ np.log(S[used] @ priors))


def plain_em(K, weights):
    """Yield (priors, slopes) of the convex mixture (MSc 3.2.2) after 0, 1, ... steps of EM; no prior is dropped.

    The slopes g_j = sum_i p_i s_ij / sum_m q_m s_im bound what is missing: the likelihood is concave, so its largest
    value lies at most max_j g_j - 1 above the present one.
    """
    used, diag = weights > 0, np.diagonal(K)
    shares = weights[used] / weights.sum()
    S = np.exp(-reference_beta(K, weights) * (diag[:, None] + diag[None, :] - 2.0 * K))[used]
    priors = used / np.count_nonzero(used)
    while True:
        slopes = (shares / (S @ priors)) @ S
        yield priors, slopes
        priors = priors * slopes


def best_priors(K, weights, shortfall):
    """Return priors whose likelihood lies at most ``shortfall`` below the largest."""
    return next(priors for priors, slopes in plain_em(K, weights) if slopes[weights > 0].max() - 1.0 < shortfall)


def leading_exemplars(K, weights, count, steady_within, steady=10, max_iter=2000):
    """Return the samples of the ``count`` largest priors once their order has held and the priors change little."""
    leaders, held = None, 0
    for priors, slopes in itertools.islice(plain_em(K, weights), max_iter):
        new = priors * slopes
        now = np.argsort(-new, kind="stable")[:count].tolist()
        held = held + 1 if now == leaders else 0
        leaders = now
        if held >= steady and np.abs(new - priors).max() < steady_within * new.max():
            break
    return leaders
