"""Compiled steps on the dual of a two-class support vector machine, from any feasible point.

Signed multipliers b_i = y_i alpha_i lie in [0, C] for y_i = 1 and in [-C, 0] for y_i = -1 and add up to zero. With
f = K b and a kernel divided by ``scale``, v_i = y_i - f_i / scale is the direction in which b_i wants to go; a step
takes ``step`` from one sample and gives it to another. At the optimum no sample that can go up has a larger v than one
that can go down.
"""

import numpy as np
from numba import njit

from kernelweave.foundation.array_types import Floats

# A pair of samples this near, relatively, is the same sample twice.
TINY = 1e-12
# Added to v where a sample cannot move.
FAR = 1e30
# Samples this far from where they would leave a bound take part in the first round.
BAND = 0.1


@njit(nogil=True, cache=True)
def _highest(y: Floats, b: Floats, f: Floats, C: float, scale: float) -> tuple[int, float]:
    """Return the sample with the largest v among those that can go up."""
    best = -np.inf
    at = -1
    for t in range(len(y)):
        if (b[t] < C) if y[t] > 0 else (b[t] < 0.0):
            v = y[t] - f[t] / scale
            if v > best:
                best = v
                at = t
    return at, best


@njit(nogil=True, cache=True)
def _lowest(y: Floats, b: Floats, f: Floats, C: float, scale: float) -> tuple[int, float]:
    """Return the sample with the smallest v among those that can go down."""
    best = np.inf
    at = -1
    for t in range(len(y)):
        if (b[t] > 0.0) if y[t] > 0 else (b[t] > -C):
            v = y[t] - f[t] / scale
            if v < best:
                best = v
                at = t
    return at, best


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz", "arcp", "reassoc", "contract"})
def _gains(
    row: Floats, diag: Floats, v: Floats, down: Floats, own: float, inverse: float, top: float, gains: Floats
) -> tuple[float, float]:
    """Fill in the second-order gain of a step with every sample that can go down; return the lowest v and the best."""
    floor = TINY * (abs(own) + 1e-300) * inverse
    bottom = np.inf
    best = 0.0
    for t in range(len(row)):
        w = v[t] + down[t]  # far above top where the sample cannot go down
        bottom = min(bottom, w)
        a = max((own + diag[t] - 2.0 * row[t]) * inverse, floor)
        d = max(top - w, 0.0)
        g = d * d / a
        gains[t] = g
        best = max(best, g)
    return bottom, best


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz", "arcp", "reassoc", "contract"})
def _move(row: Floats, third: Floats, step: float, inverse: float, f: Floats, v: Floats, up: Floats) -> float:
    """Move f and v along a step; return the largest v among those that can go up."""
    top = -np.inf
    for t in range(len(row)):
        change = step * (row[t] - third[t])
        f[t] += change
        w = v[t] - change * inverse
        v[t] = w
        top = max(top, w + up[t])
    return top


@njit(nogil=True, cache=True)
def descend(
    K: Floats, y: Floats, b: Floats, f: Floats, C: float, scale: float, tol: float, max_steps: int
) -> tuple[int, float, float]:
    """Take steps until no pair gains more than ``tol``; changes ``b`` and ``f``, returns steps and both ends of v.

    Pairs are chosen by second-order gain (Fan, Chen and Lin, JMLR 2005).
    """
    n = len(y)
    inverse = 1.0 / scale
    v = np.empty(n)
    up = np.empty(n)
    down = np.empty(n)
    gains = np.empty(n)
    diag = np.empty(n)
    for t in range(n):
        v[t] = y[t] - f[t] * inverse
        diag[t] = K[t, t]
        up[t] = 0.0 if ((b[t] < C) if y[t] > 0 else (b[t] < 0.0)) else -FAR
        down[t] = 0.0 if ((b[t] > 0.0) if y[t] > 0 else (b[t] > -C)) else FAR
    top = -np.inf
    for t in range(n):
        top = max(top, v[t] + up[t])
    steps = 0
    while True:
        i = 0
        while i < n - 1 and v[i] + up[i] != top:
            i += 1
        bottom, best = _gains(K[i], diag, v, down, diag[i], inverse, top, gains)
        if best <= 0.0 or top - bottom <= tol or steps >= max_steps:
            return steps, top, bottom
        j = 0
        while j < n - 1 and gains[j] != best:
            j += 1
        curve = max((diag[i] + diag[j] - 2.0 * K[i, j]) * inverse, TINY * (abs(diag[i]) + 1e-300) * inverse)
        step = (top - v[j]) / curve
        room = C - b[i] if y[i] > 0 else -b[i]
        other = b[j] if y[j] > 0 else C + b[j]
        step = min(step, room, other)
        b[i] += step
        b[j] -= step
        # Ends are met exactly, so that a sample at its bound is seen to be there.
        if step == room:
            b[i] = C if y[i] > 0 else 0.0
        if step == other:
            b[j] = 0.0 if y[j] > 0 else -C
        up[i] = -FAR if step == room else 0.0
        down[i] = 0.0
        up[j] = 0.0
        down[j] = FAR if step == other else 0.0
        top = _move(K[i], K[j], step, inverse, f, v, up)
        steps += 1


@njit(nogil=True, cache=True)
def descend_near(
    K: Floats, y: Floats, b: Floats, f: Floats, C: float, scale: float, tol: float, max_steps: int
) -> tuple[int, float, float]:
    """Do what ``descend`` does, on the samples near the margin first: those between their bounds, and those that want
    to leave a bound or nearly do. Others are looked at again after each round.
    """  # noqa: D205
    n = len(y)
    inverse = 1.0 / scale
    steps = 0
    band = BAND
    while True:
        _, top = _highest(y, b, f, C, scale)
        _, bottom = _lowest(y, b, f, C, scale)
        if top - bottom <= tol or steps >= max_steps:
            return steps, top, bottom
        middle = 0.5 * (top + bottom)
        near = np.empty(n, np.int64)
        m = 0
        for t in range(n):
            v = y[t] - f[t] * inverse
            up = (b[t] < C) if y[t] > 0 else (b[t] < 0.0)
            down = (b[t] > 0.0) if y[t] > 0 else (b[t] > -C)
            if (up and down) or (up and v > middle - band) or (down and v < middle + band):
                near[m] = t
                m += 1
        if 2 * m > n:
            taken, top, bottom = descend(K, y, b, f, C, scale, tol, max_steps - steps)
            return steps + taken, top, bottom
        part = np.empty((m, m))
        y_part = np.empty(m)
        b_part = np.empty(m)
        f_part = np.empty(m)
        for r in range(m):
            s = near[r]
            y_part[r] = y[s]
            b_part[r] = b[s]
            f_part[r] = f[s]
            for c in range(m):
                part[r, c] = K[s, near[c]]
        taken, _, _ = descend(part, y_part, b_part, f_part, C, scale, 0.5 * tol, max_steps - steps)
        steps += taken
        for r in range(m):
            s = near[r]
            change = b_part[r] - b[s]
            if change != 0.0:
                b[s] = b_part[r]
                row = K[s]
                for t in range(n):
                    f[t] += change * row[t]
        band *= 2.0
        if taken == 0:
            band = np.inf  # rounding stands between the part and the whole


@njit(nogil=True, cache=True)
def release(K: Floats, y: Floats, b: Floats, f: Floats, C: float, scale: float, sample: int) -> None:
    """Change the class of ``sample``: set its multiplier to zero and hand what it had to those who want it most."""
    left = b[sample]
    if left != 0.0:
        row = K[sample]
        for t in range(len(y)):
            f[t] -= left * row[t]
    b[sample] = 0.0
    y[sample] = -y[sample]
    while left != 0.0:
        if left > 0.0:
            at, _ = _highest(y, b, f, C, scale)
            if at < 0:
                return
            room = C - b[at] if y[at] > 0 else -b[at]
            given = left if left < room else room
            end = C if y[at] > 0 else 0.0
        else:
            at, _ = _lowest(y, b, f, C, scale)
            if at < 0:
                return
            room = b[at] if y[at] > 0 else C + b[at]
            given = left if -left < room else -room
            end = 0.0 if y[at] > 0 else -C
        b[at] = end if abs(given) == room else b[at] + given  # a bound is met exactly
        row = K[at]
        for t in range(len(y)):
            f[t] += given * row[t]
        left -= given
