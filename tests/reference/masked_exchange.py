"""k-means and EM of views that hand on partitions or posteriors and lack samples, sample by sample.

``views`` are tables of all samples, rows of absent ones unread; ``mask`` says who is where. Rules that the documents
leave open are those of the library, and those of ``tests.reference.comparators``:

- samples that a view lacks keep what the last view that has them said;
- samples of which nothing is known at the start learn it first, from the view with unknown samples whose known ones
  weigh most, again and again;
- a cluster is empty where no sample has it, in the view or outside; a view cannot choose a cluster that none of its
  samples came in with, and in joint distances its centre there is the mean of the view;
- the log-likelihood is the mean over pairs of a sample and a view that has it, by the weights of the samples.
"""

import math

import numpy as np

from tests.reference import comparators

SLACK = 1e-12
LOST = 1e-12


def in_turn(n_views):
    """Return the views in the order of a round."""
    return [*range(1, n_views), 0]


def teacher(mask, known, weights):
    """Return the view that samples learn from of which nothing is known yet, None if there are none."""
    best, most = None, 0.0
    for v in range(mask.shape[1]):
        there = [i for i in range(len(mask)) if mask[i, v]]
        if all(known[i] for i in there):
            continue
        weight = sum(weights[i] for i in there if known[i])
        if weight > most:
            best, most = v, weight
    return best


# --- k-means ---------------------------------------------------------------------------------------------------------


def members(mask, labels, weights, v, c):
    """Return the samples of positive weight that view v has in cluster c; -1 for any view or cluster."""
    everyone = range(len(labels))
    return [i for i in everyone if (v < 0 or mask[i, v]) and (c < 0 or labels[i] == c) and weights[i] > 0]


def mean(X, samples, weights):
    return sum(weights[i] * X[i] for i in samples) / sum(weights[i] for i in samples)


def centres(X, mask, labels, weights, k, v):
    """Return the means of the clusters in one view, None where it has no sample of a cluster."""
    inside = [members(mask, labels, weights, v, c) for c in range(k)]
    return [mean(X, samples, weights) if samples else None for samples in inside]


def nearest(x, at):
    """Return the first of the nearest centres, and the squared distance to it."""
    row = [math.inf if m is None else comparators.squared(x, m) for m in at]
    c = next(c for c, gap in enumerate(row) if gap <= min(row) + SLACK)
    return c, row[c]


def started(views, mask, labels, weights, k):
    """Return labels of all samples."""
    labels = labels.copy()
    while (v := teacher(mask, labels >= 0, weights)) is not None:
        at = centres(views[v], mask, labels, weights, k, v)
        for i in range(len(labels)):
            if mask[i, v] and labels[i] < 0:
                labels[i] = nearest(views[v][i], at)[0]
    return labels


def kmeans_round(views, mask, labels, weights, k):
    """Return the centres of every view for joint distances, the scatters, and the partition after the last view."""
    found, scatters = [None] * len(views), np.zeros(len(views))
    for v in in_turn(len(views)):
        X, there = views[v], [i for i in range(len(labels)) if mask[i, v]]
        at = centres(X, mask, labels, weights, k, v)
        scatters[v] = sum(weights[i] * comparators.squared(X[i], at[labels[i]]) for i in there if weights[i] > 0)
        overall = mean(X, members(mask, labels, weights, v, -1), weights)
        some = [bool(members(mask, labels, weights, -1, c)) for c in range(k)]
        found[v] = [overall if at[c] is None and some[c] else at[c] for c in range(k)]
        labels, gaps = labels.copy(), {}
        for i in there:
            labels[i], gaps[i] = nearest(X[i], at)
        refill(mask, labels, gaps, weights, k, v)
    return found, scatters, labels


def refill(mask, labels, gaps, weights, k, v):
    """Give clusters that nobody has the farthest samples of a view that can be spared."""
    order = sorted(members(mask, labels, weights, v, -1), key=lambda i: (-round(gaps[i], 9), i))
    for c in [c for c in range(k) if not members(mask, labels, weights, -1, c)]:
        for i in order:
            if gaps[i] > SLACK and len(members(mask, labels, weights, -1, labels[i])) > 1:
                labels[i], gaps[i] = c, 0.0
                break


def exchange_kmeans(views, mask, labels, weights, k, max_iter=100, patience=10, noise=1e-9):
    """Return J of all rounds, the number of the best, its centres and its scatters."""
    labels = started(views, mask, labels, weights, k)
    path, kept, best = [], 0, None
    for _ in range(max_iter):
        found, scatters, after = kmeans_round(views, mask, labels, weights, k)
        path.append(scatters.sum())
        if best is None or path[-1] < path[kept - 1] - noise:
            kept, best = len(path), (found, scatters)
        if np.array_equal(after, labels) or len(path) - kept >= patience:
            break
        labels = after
    return path, kept, *best


def joint_distances(views, mask, at):
    """Return the squared distances to the centres, added up over the views that a sample is in."""
    table = np.zeros((len(mask), len(at[0])))
    for i, c in np.ndindex(*table.shape):
        for v in range(len(views)):
            if mask[i, v]:
                table[i, c] += comparators.squared(views[v][i], at[v][c])
    return table


# --- EM --------------------------------------------------------------------------------------------------------------


def fitted(X, kind, R, weights):
    """Return the mixture of a view as weights, centres and variances, of weight zero where nobody has a share."""
    sizes = [sum(weights[i] * R[i, c] for i in range(len(X))) for c in range(R.shape[1])]
    alive = [c for c, size in enumerate(sizes) if size > LOST * sum(sizes)]
    step = comparators.multinomial_step if kind == "multinomial" else comparators.gaussian_step
    pi, m, s = step(X, R[:, alive], weights, *([] if kind == "multinomial" else [kind]))
    return alive, pi, m, s


def log_joint(X, mixture, k):
    alive, *parameters = mixture
    out = np.full((len(X), k), -math.inf)
    out[:, alive] = comparators.log_joint(X, *parameters)
    return out


def em_turn(X, kind, R, mask, weights, v):
    """Return the mixture of a view, and posteriors and log-likelihoods of its samples."""
    there = np.flatnonzero(mask[:, v])
    mixture = fitted(X[there], kind, R[there], weights[there])
    return there, mixture, *comparators.posteriors(log_joint(X[there], mixture, R.shape[1]))


def mean_posteriors(views, mask, mixtures, k):
    """Return the posteriors, the mean over the views that a sample is in."""
    table = np.zeros((len(mask), k))
    for i in range(len(mask)):
        own = [v for v in range(len(views)) if mask[i, v]]
        for v in own:
            table[i] += comparators.posteriors(log_joint(views[v][[i]], mixtures[v], k))[0][0] / len(own)
    return table


def exchange_em(views, kinds, mask, labels, weights, k, max_iter=200, tol=1e-4):
    """Return L of all rounds, the number of the best, and its mean posteriors.

    ``kinds`` holds a kind of covariance, or "multinomial", for every view.
    """
    R = np.array([[float(label == c) for c in range(k)] for label in labels])
    while (v := teacher(mask, R.sum(axis=1) > 0, weights)) is not None:
        there, _, found, _ = em_turn(views[v], kinds[v], R, mask, weights, v)
        for i, row in zip(there, found, strict=True):
            R[i] = row if R[i].sum() == 0 else R[i]
    path, kept, best, mark, since = [], 0, None, -math.inf, 0
    for _ in range(max_iter):
        total, pairs, mixtures = 0.0, 0.0, [None] * len(views)
        for v in in_turn(len(views)):
            there, mixtures[v], found, logs = em_turn(views[v], kinds[v], R, mask, weights, v)
            R[there] = found
            total += sum(weights[i] * log for i, log in zip(there, logs, strict=True))
            pairs += weights[there].sum()
        path.append(total / pairs)
        if kept == 0 or path[-1] > path[kept - 1]:
            kept, best = len(path), mean_posteriors(views, mask, mixtures, k)
        mark, since = (path[-1], 0) if path[-1] > mark + tol else (mark, since + 1)
        if since >= (1 if len(views) == 1 else 5):
            break
    return path, kept, best
