"""Runs of k-means on rows of features, from the draw of centres to the end, without a turn at the interpreter.

For many runs on few rows: their steps are so short that they would take most of the time to be called. What is rare,
such as a cluster that lost all its rows, is left to the general solver.
"""

import numpy as np
from numba import njit

from kernelweave.backends.compiled.copies import copy_into
from kernelweave.backends.compiled.row_loops import FIRST, nearest_means
from kernelweave.foundation.array_types import Floats, Ints


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _product(row: Floats, other: Floats) -> float:
    """Return the product of two rows, several columns at a time."""
    total = 0.0
    for j in range(row.size):
        total += row[j] * other[j]
    return total


@njit(nogil=True, cache=True)
def spread_out(Phi: Floats, diag: Floats, uniforms: Floats, tie: float, labels: Ints) -> None:
    """Write labels by centres drawn far apart: the first by uniforms[0, 0], each other one the best of a row of draws.

    A draw takes a row with a probability in proportion to its squared distance from the nearest centre. Where all rows
    are centres already, whichever is drawn changes nothing.
    """
    n = Phi.shape[0]
    closest = np.ones(n)
    cumulated = np.cumsum(closest)
    distances = np.empty(n)
    best = np.empty(n)
    labels[:] = 0
    for c in range(uniforms.shape[0]):
        least = np.inf
        for trial in range(1 if c == 0 else uniforms.shape[1]):
            drawn = np.searchsorted(cumulated, uniforms[c, trial] * cumulated[n - 1], side="right")
            sample = min(drawn, n - 1)
            total = 0.0
            for i in range(n):
                distances[i] = max((diag[i] + diag[sample]) - 2.0 * _product(Phi[i], Phi[sample]), 0.0)
                total += distances[i] if c == 0 else min(distances[i], closest[i])
            if total < least - tie * n:  # of equal ones the first: rounding must not decide
                least = total
                copy_into(best, distances)
        mass = 0.0
        for i in range(n):
            if c == 0:
                closest[i] = best[i]
            elif best[i] < closest[i] - tie:
                labels[i] = c
                closest[i] = best[i]
            mass += closest[i]
            cumulated[i] = mass


@njit(nogil=True, cache=True)
def descend(
    Phi: Floats, diag: Floats, n_clusters: int, tolerance: float, noise: float, steps: int, patience: int, labels: Ints
) -> bool:
    """Take rows to their nearest means for at most so many steps; whether the labels are those of the general solver.

    They are not where a cluster has no rows, two centres coincide, or the scatter rises by more than ``noise``. The run
    also ends after ``patience`` steps in a row that do not lower the scatter.
    """
    n, d = Phi.shape
    sums = np.empty((n_clusters, d))
    sizes = np.empty(n_clusters)
    columns = np.empty((d, n_clusters))
    norms = np.empty(n_clusters)
    ones = np.ones(n_clusters)
    nearest = np.empty_like(labels)
    values = np.empty(n)
    before = np.inf
    idle = 0
    for step in range(steps + 1):
        sums[:] = 0.0
        sizes[:] = 0.0
        for i in range(n):
            total = sums[labels[i]]
            for j in range(d):
                total[j] += Phi[i, j]
            sizes[labels[i]] += 1.0
        kept = 0.0
        for c in range(n_clusters):
            if sizes[c] == 0.0:
                return False
            within = 0.0
            for j in range(d):
                within += sums[c, j] * sums[c, j]
                columns[j, c] = sums[c, j] / sizes[c]
            norms[c] = within / sizes[c] ** 2
            kept += within / sizes[c]
        if step > 0:
            if -kept > before + noise:
                return False
            idle = idle + 1 if -kept >= before - noise else 0
        before = -kept
        if step == steps or idle >= patience:
            return True
        nearest_means(Phi, diag, columns, norms, ones, labels, tolerance, nearest, values, FIRST, n)
        moved = 0
        for i in range(n):
            moved += nearest[i] != labels[i]
            labels[i] = nearest[i]
        if moved == 0:
            return not _coincide(columns, norms, tolerance)
    return True


@njit(nogil=True, cache=True)
def _coincide(columns: Floats, norms: Floats, tolerance: float) -> bool:
    """Whether two centres, columns of a matrix, are equal."""
    for c in range(norms.size):
        for other in range(c):
            product = 0.0
            for j in range(columns.shape[0]):
                product += columns[j, c] * columns[j, other]
            if abs((norms[c] + norms[other]) - 2.0 * product) <= tolerance:
                return True
    return False
