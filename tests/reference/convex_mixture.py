"""Convex mixtures (PhD 3.1 to 3.3 and appendix A; MSc 3.2.2 and 4.2.3), plain and slow.

Divergences are written from phi and its slope, entry by entry. A view is the matrix of its components' values f[i, j] =
exp(-beta d(x_i, x_j)); the factor of (3.2) that does not depend on the component is left out, as in the experiments of
the source. ``shares`` is the empirical distribution, uniform or that of MSc (4.4). Rules that the documents leave open
are those of the library:

- log-likelihoods are means over the samples, and without view weights over the views too: (3.8) divided by -V;
- samples of no share are not components, and do not count in N of MSc (4.11);
- of equal priors, and of equal posteriors, the first is taken.
"""

import math

import numpy as np
from scipy.optimize import minimize

# --- divergences -----------------------------------------------------------------------------------------------------


def _xlogx(t):
    return t * math.log(t) if t > 0 else 0.0


#: phi and its slope for one feature; at the ends of a range the slope is infinite.
PHI = {
    "sqeuclidean": (lambda t: t * t, lambda t: 2.0 * t),
    "poisson": (lambda t: _xlogx(t) - t, lambda t: math.log(t) if t > 0 else -math.inf),
    "bernoulli": (
        lambda t: _xlogx(t) + _xlogx(1.0 - t),
        lambda t: -math.inf if t == 0 else math.inf if t == 1 else math.log(t / (1.0 - t)),
    ),
    "exponential": (lambda t: -math.log(t) - 1.0, lambda t: -1.0 / t),
}


def bregman(name, x, y):
    """Return phi(x) - phi(y) - <phi'(y), x - y>; a feature in which both are equal adds nothing."""
    phi, slope = PHI[name]
    return sum(phi(s) - phi(t) - slope(t) * (s - t) for s, t in zip(x, y, strict=True) if s != t)


def divergences(name, X, Y=None):
    """Return d(x_i, y_j) for all rows of X and Y."""
    Y = X if Y is None else Y
    return np.array([[bregman(name, x.tolist(), y.tolist()) for y in Y] for x in X])


def feature_space(K):
    """Return the squared distances (MSc 3.7) in the feature space of a kernel matrix."""
    n = len(K)
    return np.array([[K[i, i] + K[j, j] - 2.0 * K[i, j] for j in range(n)] for i in range(n)])


def smoothed(X, shares, smoothing):
    """Return every row moved the share ``smoothing`` of the way to the weighted mean."""
    mean = sum(share * row for share, row in zip(shares, X, strict=True))
    mean = np.clip(mean, X.min(axis=0), X.max(axis=0))  # rounding may not lead out of a range
    return np.array([row + smoothing * (mean - row) for row in X])


def reference_beta(D, weights=None):
    """Return beta_0 of (3.6), with weights that of MSc (4.11)."""
    weights = np.ones(len(D)) if weights is None else weights
    used = [i for i in range(len(D)) if weights[i] > 0]
    total = sum(weights[i] for i in used)
    entropy = -sum(weights[i] / total * math.log(weights[i] / total) for i in used)
    distortion = sum(weights[i] / total * D[i, j] for i in used for j in used)
    return len(used) * entropy / distortion


def components(D, beta):
    """Return f_j(x_i) of (3.2)."""
    return np.exp(-beta * np.asarray(D))


# --- one set of priors for all views ---------------------------------------------------------------------------------


def uniform(n):
    return np.full(n, 1.0 / n)


def likelihood(views, shares, priors):
    """Return the mean over the views of sum_i P(x_i) log Q^v(x_i), (3.3) and (3.8)."""
    counted = shares > 0
    with np.errstate(divide="ignore"):
        return float(np.mean([shares[counted] @ np.log((f @ priors)[counted]) for f in views]))


def gradient(views, shares, priors):
    """Return what (3.9) multiplies every prior with: the derivatives of the likelihood."""
    n_components, counted = views[0].shape[1], np.flatnonzero(shares > 0)
    result = np.zeros(n_components)
    for f in views:
        for i in counted:
            result += shares[i] * f[i] / (f[i] @ priors) / len(views)
    return result


def em(views, shares, *, steps, start=None):
    """Return the priors after so many updates (3.9), with one view (3.5), and the likelihood after each."""
    priors = uniform(views[0].shape[1]) if start is None else np.array(start)
    path = [likelihood(views, shares, priors)]
    for _ in range(steps):
        priors = priors * gradient(views, shares, priors)
        path.append(likelihood(views, shares, priors))
    return priors, path


def largest_likelihood(views, shares):
    """Return the maximum of the likelihood over the simplex, from a general solver: for few samples."""
    n = views[0].shape[1]
    result = minimize(
        lambda q: -likelihood(views, shares, np.maximum(q, 0.0)),
        uniform(n),
        jac=lambda q: -gradient(views, shares, np.maximum(q, 0.0)),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * n,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1.0, "jac": lambda q: np.ones(n)},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    priors = np.maximum(result.x, 0.0)
    return likelihood(views, shares, priors / priors.sum())


# --- weighted views --------------------------------------------------------------------------------------------------


def view_mixtures(views, priors, normalizers):
    """Return Q^v(x_i), a row for every view."""
    return np.array([factor * (f @ priors) for f, factor in zip(views, normalizers, strict=True)])


def view_posteriors(views, priors, weights, normalizers):
    """Return P(z_i = v | x_i) of (3.14), a row for every view."""
    joint = weights[:, None] * view_mixtures(views, priors, normalizers)
    return joint / joint.sum(axis=0)


def weighted_likelihood(views, shares, priors, weights, normalizers):
    """Return (3.13) as a mean."""
    return float(shares @ np.log(weights @ view_mixtures(views, priors, normalizers)))


def prior_update(views, shares, priors, posteriors):
    """Return the priors after one update (3.16)."""
    result = np.zeros(len(priors))
    for f, posterior in zip(views, posteriors, strict=True):
        result += ((shares * posterior) / (f @ priors)) @ f
    return priors * result


def weighted_em(views, shares, *, weights=None, normalizers=None, outer=1e-12, inner=1e-9, most=20_000):
    """Return priors, view weights and the likelihood after every step of Algorithm 3.1.

    ``outer`` and ``inner`` are its epsilon and epsilon'; neither loop takes more than ``most`` steps.
    """
    n_views = len(views)
    normalizers = np.ones(n_views) if normalizers is None else np.asarray(normalizers)
    weights = uniform(n_views) if weights is None else np.array(weights)  # lines 1, 2
    priors = uniform(views[0].shape[1])
    path = [weighted_likelihood(views, shares, priors, weights, normalizers)]
    for _ in range(most):
        posteriors = view_posteriors(views, priors, weights, normalizers)  # lines 6 to 10
        weights = posteriors @ shares  # lines 12 to 14, (3.15)
        for _ in range(most):  # lines 16 to 21
            before, priors = priors, prior_update(views, shares, priors, posteriors)
            if np.abs(priors - before).sum() < inner:
                break
        path.append(weighted_likelihood(views, shares, priors, weights, normalizers))
        if abs(path[-1] - path[-2]) < outer:  # line 24
            break
    return priors, weights, path


# --- clusters --------------------------------------------------------------------------------------------------------


def exemplars(priors, count):
    """Return the samples of largest prior, largest first."""
    return sorted(range(len(priors)), key=lambda j: -priors[j])[:count]


def summed_posteriors(views, priors, chosen):
    """Return for every sample and exemplar the sum over the views of (3.10)."""
    table = np.zeros((len(views[0]), len(chosen)))
    for f in views:
        for i in range(len(f)):
            total = sum(priors[j] * f[i, j] for j in range(len(priors)))
            for k, e in enumerate(chosen):
                table[i, k] += priors[e] * f[i, e] / total
    return table


def weighted_posteriors(views, priors, weights, normalizers, chosen):
    """Return P(C_k | x_i) of (3.17) for every sample and exemplar."""
    table = np.zeros((len(views[0]), len(chosen)))
    for i in range(len(views[0])):
        scaled = [w * c * f[i] for w, c, f in zip(weights, normalizers, views, strict=True)]
        total = sum(priors[j] * row[j] for row in scaled for j in range(len(priors)))
        for k, e in enumerate(chosen):
            table[i, k] = priors[e] * sum(row[e] for row in scaled) / total
    return table


def assign(table, chosen):
    """Return the labels of (3.10) and (3.18): exemplars have their own, others that of the largest posterior."""
    labels = np.array([int(np.argmax(row)) for row in table])
    for k, e in enumerate(chosen):
        labels[e] = k
    return labels


def medoid(D, shares):
    """Return the sample of least mean divergence, the only exemplar as beta goes to zero."""
    return int(np.argmin([sum(shares[i] * D[i, j] for i in range(len(D))) for j in range(len(D))]))
