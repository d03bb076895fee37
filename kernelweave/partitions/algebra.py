"""Formulas about clusters, each written once: fit, predict, measures and tests all call these.

S is the (k, n) matrix of cluster sums, W the total weight of each cluster, Q_c = sum of w_i S[c, i] over the
members i of c. Then ||m_c||^2 = Q_c / W_c^2 and ||phi(x_i) - m_c||^2 = K_ii - 2 S[c, i] / W_c + Q_c / W_c^2.
"""

import numpy as np

from kernelweave.backends import Assignment, BackendArray
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.partitions.kernel import Kernel

EPS = float(np.finfo(np.float64).eps)
#: Relative difference below which two distances are equal.
TIE_TOLERANCE = 1e-12
#: Share of its terms up to which a squared distance is nothing but their rounding.
ROUNDING = 16 * EPS


def cluster_weights(labels: Ints, weights: Floats, n_clusters: int) -> Floats:
    """Return W, the total weight of every cluster."""
    return np.asarray(np.bincount(labels, weights, n_clusters), dtype=np.float64)


def within_sums(sums: Floats, labels: Ints, weights: Floats) -> Floats:
    """Return Q_c, the weighted sum of the kernel over all pairs of members of each cluster."""
    return cluster_weights(labels, weights * sums[labels, np.arange(len(labels))], sums.shape[0])


def center_norms(within: Floats, totals: Floats) -> Floats:
    """Return ||m_c||^2; infinite for a cluster without weight, which is then never the nearest."""
    norms = np.full(len(totals), np.inf)
    filled = totals > 0
    norms[filled] = within[filled] / totals[filled] ** 2
    return norms


def cluster_scatter(within: Floats, totals: Floats, masses: Floats) -> Floats:
    """Return the weighted squared distances to each cluster's mean, summed; ``masses`` are sums of w_i K_ii."""
    filled = totals > 0
    return np.where(filled, masses - within / np.where(filled, totals, 1.0), 0.0)


def squared_distances(op: Kernel, sums: Floats, totals: Floats, norms: Floats) -> Floats:
    """Return ||phi(x_i) - m_c||^2, shape (n_rows, k)."""
    filled = totals > 0
    slopes = np.where(filled, 2.0 / np.where(filled, totals, 1.0), 0.0)
    return op.diag()[:, None] - slopes * sums.T + norms


def without_rounding(squared: Floats, diag: Floats, norms: Floats) -> Floats:
    """Return squared distances, zero where all that is left of k(x, x) and ||m_c||^2 is their rounding.

    The root of what rounding leaves is 1e-8 of the terms, too much for a sample that is the centre.
    """
    terms = np.abs(diag)[:, None] + np.where(np.isfinite(norms), np.abs(norms), 0.0)
    return np.where(squared <= ROUNDING * terms, 0.0, squared)


def distances_to_samples(op: Kernel, samples: Ints, diag: BackendArray) -> BackendArray:
    """Return ||phi(x_i) - phi(x_s)||^2 for the chosen samples s, shape (n, len(samples)), where the data live."""
    return diag[:, None] + op.backend.at(diag, samples)[None, :] - 2.0 * op.columns(samples)


def assign_new(
    cross: Kernel,
    labels: Ints,
    weights: Floats,
    totals: Floats,
    norms: Floats,
    coefs: Floats | None = None,
) -> Ints:
    """Return the nearest cluster of new samples, the rows of ``cross``, from labels and weights of the columns.

    With ``coefs``, one number per cluster, squared distances are multiplied by them, which needs k(x, x).
    """
    backend = cross.backend
    sums = cross.cluster_sums(labels, weights, len(totals))
    start = backend.labels(np.zeros(cross.shape[0], dtype=np.intp))
    diag = backend.array(np.zeros(cross.shape[0])) if coefs is None else cross.diag()
    result: Assignment = backend.nearest(sums, totals, norms, start, 0.0, diag, coefs)
    return backend.host(result.labels)
