"""Compiled runs of kernel k-means from many candidates, for global search on a stored kernel.

All candidates of a stage start from one partition with one sample moved to a new cluster. A run stops when a step that
lowers its objective leads to a partition that another run has seen: from there both go the same way. What was seen is
kept in a table that threads share without a lock. A lost entry costs a repeated stretch of a run and nothing else: an
entry counts only when its key and its check agree, 127 bits in all, and the check is tied to the rest, so that an
entry written by two threads at once counts for neither.
"""

import numpy as np
from numba import njit

from kernelweave.backends.compiled.copies import copy_into
from kernelweave.foundation.array_types import Array, Floats, Ints

# How a run ended: at a fixed point, on the path of another run, or where the general solver must take over (an empty
# cluster, centres that coincide, an objective that does not fall).
ENDED = 0
MET = 1
LEFT = 2
# Columns updated together: their sums stay in the first-level cache.
STRIP = 512
# Places tried in the table before an entry is given up.
PROBES = 64


@njit(nogil=True, cache=True)
def _mix(x: np.uint64) -> np.uint64:
    """Return a well-mixed 64-bit number (the finaliser of splitmix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(nogil=True, cache=True)
def _mark(i: int, c: int, salt: int) -> np.uint64:
    """Return the Zobrist mark of 'sample i is in cluster c'; a partition's key is the exclusive or of its marks."""
    return _mix(_mix(np.uint64(i)) ^ (np.uint64(c) + np.uint64(1)) * np.uint64(0xD1B54A32D192ED03) ^ np.uint64(salt))


@njit(nogil=True, cache=True)
def _tie(owner: int, step: int, value: float) -> np.uint64:
    """Return a number that binds an entry's check to the rest of it."""
    return _mix(np.uint64(owner)) ^ _mix(np.uint64(step) + np.uint64(1 << 40)) ^ _mix(np.float64(value).view(np.uint64))


@njit(nogil=True, cache=True)
def _place_of(table: Array, owners: Ints, values: Floats, key: np.uint64, check: np.uint64) -> int:
    """Return the place of a partition that a run has entered, or -1."""
    mask = np.uint64(table.shape[0] - 1)
    at = key & mask
    for _ in range(PROBES):
        if table[at, 0] == np.uint64(0):
            return -1
        if table[at, 0] == key and table[at, 1] == check ^ _tie(owners[at, 0], owners[at, 1], values[at]):
            return np.int64(at)  # type: ignore[return-value]
        at = (at + np.uint64(1)) & mask
    return -1


@njit(nogil=True, cache=True)
def _enter(
    table: Array, owners: Ints, values: Floats, key: np.uint64, check: np.uint64, me: int, step: int, value: float
) -> None:
    """Enter a partition that run ``me`` reached in ``step`` with its objective, unless there is no room."""
    mask = np.uint64(table.shape[0] - 1)
    at = key & mask
    for _ in range(PROBES):
        if table[at, 0] == np.uint64(0):
            owners[at, 0] = me
            owners[at, 1] = step
            values[at] = value
            table[at, 1] = check ^ _tie(me, step, value)
            table[at, 0] = key
            return
        at = (at + np.uint64(1)) & mask


@njit(nogil=True, cache=True)
def _objective(sums: Floats, labels: Ints, weights: Floats, totals: Floats, norms: Floats, slopes: Floats) -> float:
    """Set ||m_c||^2 and 2 / W_c; returns the sum of Q_c / W_c, or NaN where a cluster is empty."""
    k = totals.size
    value = 0.0
    within = np.zeros(k)
    counts = np.zeros(k, np.int64)
    for i in range(labels.size):
        c = labels[i]
        within[c] += weights[i] * sums[c, i]
        counts[c] += weights[i] > 0.0
    for c in range(k):
        if counts[c] == 0:
            return np.nan
        value += within[c] / totals[c]
        norms[c] = within[c] / (totals[c] * totals[c])
        slopes[c] = 2.0 / totals[c]
    return value


@njit(nogil=True, cache=True)
def _moves(
    sums: Floats, labels: Ints, norms: Floats, slopes: Floats, slack: float, low: Floats, moved: Ints, target: Ints
) -> int:
    """List the samples that are nearer to another cluster, by the rule of ``nearest``; returns how many."""
    n = labels.size
    k = norms.size
    m = 0
    for start in range(0, n, STRIP):
        width = min(STRIP, n - start)
        here = labels[start : start + width]
        low[:] = np.inf
        for c in range(k):
            norm = norms[c]
            slope = slopes[c]
            row = sums[c, start : start + width]
            for s in range(width):
                value = np.inf if here[s] == c else norm - slope * row[s]
                low[s] = min(low[s], value)
        for s in range(width):
            i = start + s
            label = here[s]
            if low[s] < norms[label] - slopes[label] * sums[label, i] - slack:
                for c in range(k):
                    if c != label and norms[c] - slopes[c] * sums[c, i] <= low[s] + slack:
                        moved[m] = i
                        target[m] = c
                        m += 1
                        break
    return m


@njit(nogil=True, cache=True)
def _carry_out(
    K: Array, weights: Floats, sums: Floats, totals: Floats, labels: Ints, moved: Ints, target: Ints
) -> None:
    """Move the samples: update sums, strip by strip, then weights and labels."""
    n = labels.size
    for start in range(0, n, STRIP):
        stop = min(start + STRIP, n)
        for s in range(moved.size):
            i = moved[s]
            row = K[i, start:stop]
            gone = sums[labels[i], start:stop]
            come = sums[target[s], start:stop]
            weight = weights[i]
            for j in range(stop - start):
                part = weight * row[j]
                gone[j] -= part
                come[j] += part
    for s in range(moved.size):
        i = moved[s]
        totals[labels[i]] -= weights[i]
        totals[target[s]] += weights[i]
        labels[i] = target[s]


@njit(nogil=True, cache=True)
def _coincide(sums: Floats, labels: Ints, weights: Floats, totals: Floats, norms: Floats, slack: float) -> bool:
    """Whether two centres lie within the slack of each other."""
    k = totals.size
    products = np.zeros((k, k))
    for i in range(labels.size):
        for c in range(k):
            products[c, labels[i]] += weights[i] * sums[c, i]
    for c in range(k):
        for d in range(c):
            if abs(norms[c] + norms[d] - 2.0 * products[c, d] / (totals[c] * totals[d])) <= slack:
                return True
    return False


@njit(nogil=True, cache=True)
def follow(
    K: Array,
    mass: float,
    weights: Floats,
    base: Ints,
    base_sums: Floats,
    base_totals: Floats,
    candidates: Ints,
    slack: float,
    noise: float,
    max_iter: int,
    table: Array,
    owners: Ints,
    values: Floats,
    objectives: Floats,
    meetings: Ints,
    states: Ints,
    lo: int,
    hi: int,
) -> None:
    """Run kernel k-means from candidates[lo:hi], each of which founds cluster k - 1 of the partition ``base``.

    Writes how each run ended and the last objective it saw; ``meetings`` holds the candidate whose path it met (-1 for
    none), the step in which that one had been there, and the steps made.
    """
    n = base.size
    k = base_totals.size + 1
    labels = np.empty(n, np.int64)
    moved = np.empty(n, np.int64)
    target = np.empty(n, np.int64)
    sums = np.empty((k, n))
    low = np.empty(STRIP)
    totals = np.empty(k)
    norms = np.empty(k)
    slopes = np.empty(k)
    base_key = np.uint64(0)
    base_check = np.uint64(0)
    for i in range(n):
        base_key ^= _mark(i, base[i], 1)
        base_check ^= _mark(i, base[i], 2)
    for t in range(lo, hi):
        me = candidates[t]
        key = base_key
        check = base_check
        copy_into(labels, base)
        for c in range(k - 1):
            copy_into(sums[c], base_sums[c])
        sums[k - 1] = 0.0
        copy_into(totals, base_totals)
        totals[k - 1] = 0.0
        moved[0] = me
        target[0] = k - 1
        m = 1
        before = np.inf
        states[t] = LEFT
        meetings[t, 0] = -1
        meetings[t, 2] = 0
        for step in range(max_iter + 1):
            for s in range(m):
                i = moved[s]
                old = labels[moved[s]]
                new = target[s]
                key ^= _mark(i, old, 1) ^ _mark(i, new, 1)
                check ^= _mark(i, old, 2) ^ _mark(i, new, 2)
            place = _place_of(table, owners, values, key | np.uint64(1), check) if step > 0 else -1
            if place >= 0:
                # A step onto a path counts only if it lowers the objective: else the general solver cuts it back.
                if owners[place, 0] != me and values[place] < before - noise:
                    states[t] = MET
                    meetings[t, 0] = owners[place, 0]
                    meetings[t, 1] = owners[place, 1]
                    meetings[t, 2] = step
                break
            _carry_out(K, weights, sums, totals, labels, moved[:m], target[:m])
            objective = mass - _objective(sums, labels, weights, totals, norms, slopes)
            if not objective < before - noise:
                break
            before = objective
            meetings[t, 2] = step
            if step > 0:
                _enter(table, owners, values, key | np.uint64(1), check, me, step, objective)
            m = _moves(sums, labels, norms, slopes, slack, low, moved, target)
            if m == 0:
                states[t] = LEFT if _coincide(sums, labels, weights, totals, norms, slack) else ENDED
                break
        objectives[t] = before
