"""Convex mixtures of several views that lack samples, plain and slow: sums over what is there, as loops.

A view is the matrix of its components' values f[i, j] = exp(-beta d(x_i, x_j)), values of absent samples unread;
``mask`` says who is where. A component that a view lacks explains nothing there. Rules that the formulas leave open are
those of ``convex_mixture``.
"""

import math

import numpy as np


def density(f, mask, view, priors, i):
    """Return Q^v(x_i) over the components that the view has."""
    return sum(priors[j] * f[i, j] for j in range(len(priors)) if mask[j, view])


def views_of(mask, i):
    return [v for v in range(mask.shape[1]) if mask[i, v]]


# --- fixed view weights ----------------------------------------------------------------------------------------------


def fixed_likelihood(views, mask, shares, priors, weights):
    """Return the mean of log Q^v(x_i) over the pairs that are there, with weights w_v p_i."""
    value, total = 0.0, 0.0
    for i in range(len(mask)):
        for v in views_of(mask, i):
            if weights[v] * shares[i] > 0:
                value += weights[v] * shares[i] * math.log(density(views[v], mask, v, priors, i))
                total += weights[v] * shares[i]
    return value / total


def fixed_gradient(views, mask, shares, priors, weights):
    """Return the derivatives of the likelihood by the priors."""
    result, total = np.zeros(len(priors)), 0.0
    for i in range(len(mask)):
        for v in views_of(mask, i):
            total += weights[v] * shares[i]
            if weights[v] * shares[i] > 0:
                q = density(views[v], mask, v, priors, i)
                for j in range(len(priors)):
                    if mask[j, v]:
                        result[j] += weights[v] * shares[i] * views[v][i, j] / q
    return result / total


def fixed_posteriors(views, mask, priors, weights, chosen, rows=None, rows_mask=None):
    """Return for samples and exemplars the sum of posteriors over the views that both have.

    ``rows`` are the values of new samples, view by view, and ``rows_mask`` which views these have.
    """
    rows, there = (views, mask) if rows is None else (rows, rows_mask)
    table = np.zeros((len(there), len(chosen)))
    for i in range(len(there)):
        for v in views_of(there, i):
            total = density(rows[v], mask, v, priors, i)
            for k, e in enumerate(chosen):
                if mask[e, v]:
                    table[i, k] += weights[v] * priors[e] * rows[v][i, e] / total
    return table


# --- learned view weights --------------------------------------------------------------------------------------------


def share(mask, weights, i, view):
    """Return the weight of a view in all that sample i is in: 1 where there is no other, also of weight zero."""
    there = views_of(mask, i)
    return 1.0 if len(there) == 1 else weights[view] / sum(weights[v] for v in there)


def likelihood(views, mask, shares, priors, weights):
    """Return sum_i p_i log (sum_v pi_v Q^v(x_i) / sum_v pi_v), both sums over the views that i is in."""
    value = 0.0
    for i in range(len(mask)):
        terms = [share(mask, weights, i, v) * density(views[v], mask, v, priors, i) for v in views_of(mask, i)]
        value += shares[i] * math.log(sum(terms))
    return value


def view_posteriors(views, mask, priors, weights):
    """Return P(z_i = v | x_i, the views of i), a row for every view."""
    result = np.zeros((len(views), len(mask)))
    for i in range(len(mask)):
        for v in views_of(mask, i):
            result[v, i] = share(mask, weights, i, v) * density(views[v], mask, v, priors, i)
        result[:, i] /= result[:, i].sum()
    return result


def weight_value(mask, shares, posteriors, weights):
    """Return what the view weights of an M-step maximise: sum_i p_i sum_v P(z_i = v) log pi_v / sum of i's weights."""
    value = 0.0
    for i in range(len(mask)):
        for v in views_of(mask, i):
            if posteriors[v, i] > 0:
                value += shares[i] * posteriors[v, i] * math.log(share(mask, weights, i, v))
    return value


def weight_update(mask, shares, posteriors, weights):
    """Return the view weights after one step that does not lower ``weight_value``."""
    several = [i for i in range(len(mask)) if len(views_of(mask, i)) > 1]
    result = np.zeros(len(weights))
    for v in range(len(weights)):
        belongs = sum(shares[i] * posteriors[v, i] for i in several)
        slope = sum(shares[i] / sum(weights[u] for u in views_of(mask, i)) for i in several if mask[i, v])
        result[v] = belongs / slope
    return result / result.sum()


def prior_update(views, mask, shares, priors, posteriors):
    """Return the priors after one step of EM."""
    result = np.zeros(len(priors))
    for i in range(len(mask)):
        for v in views_of(mask, i):
            q = density(views[v], mask, v, priors, i)
            for j in range(len(priors)):
                if mask[j, v] and posteriors[v, i] > 0:
                    result[j] += shares[i] * posteriors[v, i] * priors[j] * views[v][i, j] / q
    return result


def posteriors(views, mask, priors, weights, chosen, rows=None, rows_mask=None):
    """Return for samples and exemplars q_j sum_v pi_v f_j^v(x) over the views that both have."""
    rows, there = (views, mask) if rows is None else (rows, rows_mask)
    table = np.zeros((len(there), len(chosen)))
    for i in range(len(there)):
        for k, e in enumerate(chosen):
            values = [share(there, weights, i, v) * rows[v][i, e] for v in views_of(there, i) if mask[e, v]]
            table[i, k] = priors[e] * sum(values)
    return table
