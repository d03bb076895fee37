"""The least value of a convex quadratic where no variable may be negative.

Objective   minimise x^T G x / 2 - c^T x over x >= 0
Input       G of shape (m, m), positive semidefinite with a positive diagonal, and c
Cost        a Cholesky factor of the variables above zero, O(m^3), for each of a few rounds
Guarantee   the minimum up to rounding, or None where rounding stands in the way
"""

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.optimize import nnls

from kernelweave.foundation.array_types import Floats, Ints

# Rounds of the active-set method before the slower one that always ends.
ACTIVE_SET_ROUNDS = 40
# Columns of a matrix that are copied at a time.
COPIED = 256


def minimize_nonnegative(G: Floats, c: Floats, start: Floats, *, overwrite: bool = False) -> Floats | None:
    """Return the x >= 0 that minimises x^T G x / 2 - c^T x, or None where rounding stands in the way.

    With ``overwrite`` G is used up, which saves a matrix of its size.
    Primal-dual active sets: solve on the set, drop what became negative, add what would gain, until nothing changes.
    That takes a few rounds but need not end; scipy's nnls on the factor of G then does.
    """
    if not np.isfinite(G).all() or not (np.diagonal(G) > 0).all():
        return None
    size = np.sqrt(np.diagonal(G))  # a unit diagonal, so that components of any size bear the same jitter
    G = np.divide(G, size, out=G if overwrite else None)
    G /= size[:, None]
    c = c / size
    start = start * size
    G[np.diag_indices_from(G)] += 1e-13
    active = (start > 0) | (c - G @ start > 0)
    tiny = 1e-13 * np.abs(c).max()
    visited = set()
    try:
        for _ in range(ACTIVE_SET_ROUNDS):
            if active.tobytes() in visited or not active.any():
                break
            visited.add(active.tobytes())
            chosen = np.flatnonzero(active)
            x = np.zeros(len(c))
            # What cho_factor and cho_solve call: for a few variables their checks take longer than the factor.
            factor, failed = dpotrf(_among(G, chosen), clean=False, overwrite_a=True)
            if failed:
                raise LinAlgError
            x[chosen] = dpotrs(factor, c[chosen])[0]
            after = np.where(active, x > 0, c - G @ x > tiny)
            if np.array_equal(after, active):
                return np.asarray(x / size)
            active = after
        factor = cholesky(G, lower=False, check_finite=False)
        return np.asarray(nnls(factor, solve_triangular(factor, c, trans=1))[0] / size)
    except (LinAlgError, RuntimeError):
        return None


def _among(G: Floats, chosen: Ints) -> Floats:
    """Return the matrix among chosen variables, in the order of LAPACK, which then makes no copy of its own."""
    out = np.empty((len(chosen), len(chosen)), order="F")
    for start in range(0, len(chosen), COPIED):
        out[:, start : start + COPIED] = G[np.ix_(chosen, chosen[start : start + COPIED])]
    return out
