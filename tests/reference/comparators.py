"""k-medoids, exemplars, and k-means, EM and NMF of several views (PhD 1.2.3, MVKSC 4.2), plain and slow.

Rules that the documents leave open are those of the library:

- k-medoids takes samples in their order, each in the place of the medoid it replaces best, as soon as that helps;
- with V views, view v learns from view v - 1 and the first from the last; a round begins with the second view, because
  a run begins with a partition of the first;
- rounds are compared by the sum of squared distances, or the mean log-likelihood, of every view under what came from
  the view before; k-means ends when partitions repeat or after ten rounds without a new minimum, EM after five (with
  one view: one) without a gain of more than tol;
- an empty cluster takes the sample farthest from its centre, unless it is the last of its own cluster;
- joint distances are squared; of equal ones, and of equal posteriors, the first is taken;
- variances stay above a thousandth of those of the view; the average sample is added to multinomial clusters;
- NMF updates the common factor after every sweep over the views.
"""

import itertools
import math

import numpy as np

# --- k-medoids and exemplars -----------------------------------------------------------------------------------------


def cost(D, medoids, weights):
    """Return the weighted distances to the nearest medoid, summed."""
    return sum(w * min(row[m] for m in medoids) for w, row in zip(weights, D, strict=True))


def changes(D, medoids, weights, sample):
    """Return how the cost changes with ``sample`` in the place of each medoid."""
    before = cost(D, medoids, weights)
    return [cost(D, [*medoids[:c], sample, *medoids[c + 1 :]], weights) - before for c in range(len(medoids))]


def best_swap(D, medoids, weights):
    """Return the least change of the cost by any swap (the SWAP phase of PAM looks for it)."""
    return min(min(changes(D, list(medoids), weights, j)) for j in range(len(D)) if weights[j] > 0)


def eager_swaps(D, medoids, weights, noise):
    """Return the medoids after swaps, each taken as soon as it lowers the cost, until none does."""
    medoids, idle, n_swaps = [int(m) for m in medoids], 0, 0
    candidates = [j for j in range(len(D)) if weights[j] > 0]
    for j in itertools.cycle(candidates):
        found = np.array(changes(D, medoids, weights, j))
        slot = int(np.argmax(found <= found.min() + noise))  # the first of equal ones
        idle += 1
        if found.min() < -noise:
            medoids[slot], idle, n_swaps = j, 0, n_swaps + 1
        if idle >= len(candidates):
            return medoids, n_swaps


def build(D, weights, k):
    """Return k medoids, each the sample that lowers the cost most beside those before it."""
    medoids = []
    for _ in range(k):
        left = [j for j in range(len(D)) if weights[j] > 0 and j not in medoids]
        medoids.append(min(left, key=lambda j: round(cost(D, [*medoids, j], weights), 9)))
    return medoids


def best_medoids(D, weights, k):
    """Return the least cost of any k samples."""
    alive = [j for j in range(len(D)) if weights[j] > 0]
    return min(cost(D, chosen, weights) for chosen in itertools.combinations(alive, k))


def dropped(D, exemplars, counts, k):
    """Return k of the exemplars: the one whose absence costs least is dropped, again and again."""
    kept = [int(e) for e in exemplars]
    while len(kept) > k:
        kept.remove(min(kept, key=lambda e: round(cost(D, [o for o in kept if o != e], counts), 9)))
    return kept


# --- k-means of several views ----------------------------------------------------------------------------------------


def squared(x, y):
    return float(((x - y) ** 2).sum())


def means(X, labels, weights, k):
    """Return the weighted mean of every cluster, None where it is empty."""
    found = []
    for c in range(k):
        inside = np.flatnonzero((labels == c) & (weights > 0))
        found.append(weights[inside] @ X[inside] / weights[inside].sum() if len(inside) else None)
    return found


def nearest(X, centres, slack):
    """Return the nearest centre of every sample, and the squared distance to it."""
    labels, gaps = [], []
    for x in X:
        row = [math.inf if m is None else squared(x, m) for m in centres]
        labels.append(next(c for c, gap in enumerate(row) if gap <= min(row) + slack))
        gaps.append(row[labels[-1]])
    return np.array(labels), np.array(gaps)


def refilled(labels, gaps, weights, k, slack):
    """Return labels in which empty clusters got the farthest samples that can be spared."""
    labels = labels.copy()
    order = sorted(np.flatnonzero(weights > 0), key=lambda i: (-round(gaps[i], 9), i))
    for c in range(k):
        if not ((labels == c) & (weights > 0)).any():
            for i in order:
                mates = (labels == labels[i]) & (weights > 0)
                if gaps[i] > slack and mates.sum() > 1:
                    labels[i], gaps = c, np.where(np.arange(len(gaps)) == i, 0.0, gaps)
                    break
    return labels


def exchange_round(views, labels, weights, k, slack=1e-12):
    """Return the centres of every view, J, and the partition of the view that came last."""
    centres, value = [None] * len(views), 0.0
    for v in [*range(1, len(views)), 0]:
        centres[v] = means(views[v], labels, weights, k)
        value += sum(w * squared(x, centres[v][c]) for x, c, w in zip(views[v], labels, weights, strict=True) if w > 0)
        labels, gaps = nearest(views[v], centres[v], slack)
        labels = refilled(labels, gaps, weights, k, slack)
    return centres, value, labels


def exchange_kmeans(views, labels, weights, k, max_iter=100, patience=10, noise=1e-9):
    """Return J of the rounds up to the best, the best centres, and the number of rounds."""
    path, kept, best = [], 0, None
    for _ in range(max_iter):
        centres, value, found = exchange_round(views, labels, weights, k)
        path.append(value)
        if best is None or value < path[kept - 1] - noise:
            kept, best = len(path), centres
        if np.array_equal(found, labels) or len(path) - kept >= patience:
            break
        labels = found
    return path[:kept], best, len(path)


def joint_labels(views, centres):
    """Return the cluster of least squared distance added up over the views."""
    labels = []
    for i in range(len(views[0])):
        row = [sum(squared(X[i], m[c]) for X, m in zip(views, centres, strict=True)) for c in range(len(centres[0]))]
        labels.append(next(c for c, gap in enumerate(row) if gap <= min(row) + 1e-9))
    return np.array(labels)


# --- EM of several views ---------------------------------------------------------------------------------------------


def gaussian_step(X, R, weights, covariance):
    """Return the weights, means and variances of Gaussian clusters for posteriors R."""
    n, d = X.shape
    k, total = R.shape[1], weights.sum()
    mean = weights @ X / total
    spread = np.array([weights @ (X[:, j] - mean[j]) ** 2 / total for j in range(d)])
    sizes = np.array([sum(weights[i] * R[i, c] for i in range(n)) for c in range(k)])
    m = np.array([sum(weights[i] * R[i, c] * X[i] for i in range(n)) / sizes[c] for c in range(k)])
    s = np.array([sum(weights[i] * R[i, c] * (X[i] - m[c]) ** 2 for i in range(n)) / sizes[c] for c in range(k)])
    floor = np.tile(spread, (k, 1))
    if "spherical" in covariance:
        s, floor = np.tile(s.mean(axis=1)[:, None], (1, d)), np.full((k, d), spread.mean())
    if "shared" in covariance:
        s = np.tile(sizes @ s / sizes.sum(), (k, 1))
    return sizes / sizes.sum(), m, np.maximum(s, 1e-3 * floor)


def multinomial_step(X, R, weights):
    """Return the weights and probabilities of multinomial clusters for posteriors R."""
    k = R.shape[1]
    mean = weights @ X / weights.sum()
    sizes = np.array([sum(weights[i] * R[i, c] for i in range(len(X))) for c in range(k)])
    counts = np.array([sum(weights[i] * R[i, c] * X[i] for i in range(len(X))) + mean for c in range(k)])
    return sizes / sizes.sum(), counts / counts.sum(axis=1, keepdims=True), None


def log_joint(X, pi, m, s):
    """Return log p(x, c), entry by entry."""
    out = np.zeros((len(X), len(pi)))
    for i, x in enumerate(X):
        for c in range(len(pi)):
            if s is None:
                out[i, c] = sum(x[j] * math.log(m[c, j]) for j in range(len(x)) if x[j] > 0)
            else:
                terms = [
                    -0.5 * ((x[j] - m[c, j]) ** 2 / s[c, j] + math.log(2 * math.pi * s[c, j])) for j in range(len(x))
                ]
                out[i, c] = sum(terms)
            out[i, c] += math.log(pi[c]) if pi[c] > 0 else -math.inf
    return out


def posteriors(joint):
    """Return the posteriors and the logarithms of the densities."""
    logs = np.array([max(row) + math.log(sum(math.exp(v - max(row)) for v in row)) for row in joint])
    return np.exp(joint - logs[:, None]), logs


def exchange_em(views, kinds, labels, weights, k, max_iter=200, tol=1e-4):
    """Return L of the rounds up to the best, the mean posteriors there, and the number of rounds.

    ``kinds`` holds a kind of covariance, or "multinomial", for every view.
    """
    R = np.array([[float(label == c) for c in range(k)] for label in labels])
    path, kept, best, mark, since = [], 0, None, -math.inf, 0
    for _ in range(max_iter):
        value, found = 0.0, [None] * len(views)
        for v in [*range(1, len(views)), 0]:
            step = multinomial_step if kinds[v] == "multinomial" else gaussian_step
            found[v] = step(views[v], R, weights, *([] if kinds[v] == "multinomial" else [kinds[v]]))
            R, logs = posteriors(log_joint(views[v], *found[v]))
            value += weights @ logs / weights.sum() / len(views)
        path.append(value)
        if kept == 0 or value > path[kept - 1]:
            kept = len(path)
            best = sum(posteriors(log_joint(X, *each))[0] for X, each in zip(views, found, strict=True)) / len(views)
        mark, since = (value, 0) if value > mark + tol else (mark, since + 1)
        if since >= (1 if len(views) == 1 else 5):
            break
    return path[:kept], best, len(path)


# --- NMF of several views --------------------------------------------------------------------------------------------


def nmf_objective(views, Us, Vs, common, weights):
    """Return the errors of the products and the distances of V Q from the common factor, entry by entry."""
    total = 0.0
    for X, U, V, weight in zip(views, Us, Vs, weights, strict=True):
        Q = [sum(U[:, c]) for c in range(U.shape[1])]
        total += sum((X[i, j] - V[i] @ U[j]) ** 2 for i in range(X.shape[0]) for j in range(X.shape[1]))
        total += weight * sum((V[i, c] * Q[c] - common[i, c]) ** 2 for i in range(len(V)) for c in range(len(Q)))
    return total


def nmf_round(views, Us, Vs, common, weights):
    """Return the factors after one round of the updates of Liu et al., (10), (14) and (15), entry by entry."""
    Us, Vs = [U.copy() for U in Us], [V.copy() for V in Vs]
    for v, (X, weight) in enumerate(zip(views, weights, strict=True)):
        U, V = Us[v], Vs[v]
        n, d, k = *X.shape, U.shape[1]
        new = U.copy()
        for j in range(d):
            for c in range(k):
                top = sum(X[i, j] * V[i, c] + weight * V[i, c] * common[i, c] for i in range(n))
                bottom = sum(U[j, b] * (V[:, b] @ V[:, c]) for b in range(k))
                bottom += weight * U[:, c].sum() * (V[:, c] @ V[:, c])
                new[j, c] = U[j, c] * top / bottom
        Q = new.sum(axis=0)
        U, V = new / Q, V * Q
        new = V.copy()
        for i in range(n):
            for c in range(k):
                bottom = sum(V[i, b] * (U[:, b] @ U[:, c]) for b in range(k)) + weight * V[i, c]
                new[i, c] = V[i, c] * (X[i] @ U[:, c] + weight * common[i, c]) / bottom
        Us[v], Vs[v] = U, new
    common = sum(weight * V * U.sum(axis=0) for weight, U, V in zip(weights, Us, Vs, strict=True)) / sum(weights)
    return Us, Vs, common
