"""k-medoids by eager swaps: a candidate is weighed against all medoids at once, and taken as soon as it helps.

Objective   J(M) = sum_i w_i min over m in M of d(x_i, m), M being k of the samples
Input       a function that gives the distances of all samples to some of them, and starting medoids
Cost        O(n) per candidate whatever k, so O(n^2) per pass; O(n) more per swap; memory O(n k) and the distances
Guarantee   J falls with every swap. A run that converges ends where no exchange of one medoid for one sample lowers J
Source      PhD 1.1.1 (1.1); Kaufman and Rousseeuw, 1987 (PAM, BUILD); Schubert and Rousseeuw, Information Systems 101,
            2021 (FastPAM1, FasterPAM: the change of J for all k removals from one pass over a candidate's distances)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.partitions import algebra
from kernelweave.partitions.algebra import TIE_TOLERANCE

#: Distances (m, n) of m chosen samples to all samples.
Distances = Callable[[Ints], Floats]
#: How starting medoids may be chosen by name.
MEDOID_INITS = ("k-medoids++", "build", "random")
# Candidates weighed together: few after a swap, which makes the rest of a batch worthless, then more and more. Never
# fewer: to measure the distances of one sample takes as long as to measure those of several.
SMALLEST_BATCH = 4
# Distances of a batch held at a time.
MOST_DISTANCES = 2**20


@dataclass(frozen=True)
class MedoidRun:
    """Medoids and clusters of one run."""

    medoids: Ints  # (k,) sample that stands for each cluster
    labels: Ints  # (n,)
    history: tuple[float, ...]  # J at the start and after every pass
    converged: bool  # no swap lowers J
    totals: Floats  # (k,) weight of each cluster
    slack: float  # distances that differ by no more are equal

    @property
    def objective(self) -> float:
        """J of the medoids."""
        return self.history[-1]

    @property
    def n_iter(self) -> int:
        """Passes begun."""
        return len(self.history) - 1


def k_medoids(
    distances: Distances,
    medoids: Ints,
    weights: Floats,
    *,
    max_iter: int = 100,
    most_distances: int = MOST_DISTANCES,
) -> MedoidRun:
    """Swap medoids for samples until no swap lowers J, at most ``max_iter`` passes over the samples.

    At most ``most_distances`` are looked at together, which changes nothing but memory and time.
    """
    state = Medoids(distances(medoids), medoids, weights)
    candidates = np.flatnonzero(weights > 0)
    history = [state.objective]
    idle = 0
    while idle < len(candidates) and len(history) <= max_iter:
        idle = _pass(state, distances, candidates, idle, most_distances)
        history.append(state.objective)
    labels = state.labels()
    totals = algebra.cluster_weights(labels, weights, len(medoids))
    return MedoidRun(state.medoids, labels, tuple(history), idle >= len(candidates), totals, state.slack)


def _pass(state: "Medoids", distances: Distances, candidates: Ints, idle: int, most_distances: int) -> int:
    """Try every candidate once; return how many in a row, with those of the pass before, did not help."""
    at = 0
    size = SMALLEST_BATCH
    most = max(SMALLEST_BATCH, most_distances // len(state.weights))
    while at < len(candidates) and idle < len(candidates):
        batch = candidates[at : at + size]
        rows = distances(batch)
        changes, slots = state.changes(rows)
        useful = np.flatnonzero(changes < -state.noise)
        if len(useful) == 0:
            at = at + len(batch)
            idle = idle + len(batch)
            size = min(2 * size, most)
        else:
            taken = int(useful[0])
            state.swap(int(slots[taken]), int(batch[taken]), rows[taken])
            at = at + taken + 1
            idle = 0
            size = SMALLEST_BATCH
    return idle


class Medoids:
    """Medoids, and for every sample the nearest and the second nearest of them."""

    def __init__(self, rows: Floats, medoids: Ints, weights: Floats) -> None:
        self.rows = np.array(rows)
        self.medoids = np.array(medoids, dtype=np.intp)
        self.weights = weights
        self.near = np.zeros(rows.shape[1], dtype=np.intp)
        self.second = np.zeros(rows.shape[1], dtype=np.intp)
        self.near_distance = np.zeros(rows.shape[1])
        self.second_distance = np.zeros(rows.shape[1])
        self._find_nearest(np.ones(rows.shape[1], dtype=bool))
        #: Distances that differ by no more than this are equal.
        self.slack = TIE_TOLERANCE * float(rows.max())
        #: J is known no better than this.
        self.noise = self.slack * float(weights.sum())

    @property
    def objective(self) -> float:
        """J of the medoids."""
        return float((self.weights * self.near_distance).sum())

    def changes(self, rows: Floats) -> tuple[Floats, Ints]:
        """Return how J changes with each candidate in the place of the medoid it replaces best, and that medoid.

        A sample of another cluster comes over where the candidate is nearer than its medoid. One of the medoid removed
        goes to the candidate or to its second nearest medoid, whichever is nearer.
        """
        k = len(self.medoids)
        n_candidates = len(rows)
        won = (self.weights * np.minimum(rows - self.near_distance, 0.0)).sum(axis=1)
        lost = self.weights * (np.clip(rows, self.near_distance, self.second_distance) - self.near_distance)
        places = (self.near + k * np.arange(n_candidates)[:, None]).ravel()
        losses = np.bincount(places, lost.ravel(), k * n_candidates).reshape(n_candidates, k)
        changes = won[:, None] + losses
        least = changes.min(axis=1)
        slots = (changes <= least[:, None] + self.noise).argmax(axis=1)  # the first of those equal except for rounding
        return least, slots

    def losses(self) -> Floats:
        """Return how much J grows when each medoid is dropped; there must be two or more."""
        growth = self.weights * (self.second_distance - self.near_distance)
        return algebra.cluster_weights(self.near, growth, len(self.medoids))

    def swap(self, slot: int, sample: int, row: Floats) -> None:
        """Put a sample in the place of a medoid."""
        self.medoids[slot] = sample
        self.rows[slot] = row
        self._find_nearest((self.near == slot) | (self.second == slot) | (row < self.second_distance))

    def drop(self, slot: int) -> None:
        """Take a medoid away; the last one takes its place."""
        touched = (self.near == slot) | (self.second == slot)
        last = len(self.medoids) - 1
        self.medoids[slot] = self.medoids[last]
        self.rows[slot] = self.rows[last]
        self.medoids = self.medoids[:last]
        self.rows = self.rows[:last]
        self.near[self.near == last] = slot
        self.second[self.second == last] = slot
        self._find_nearest(touched)

    def labels(self) -> Ints:
        """Return the nearest medoid of every sample, the first of those equal except for rounding."""
        return np.asarray((self.rows <= self.near_distance + self.slack).argmax(axis=0))

    def _find_nearest(self, touched: np.ndarray) -> None:
        """Find the nearest and second nearest medoids of the ``touched`` samples."""
        rows = self.rows[:, touched]
        at = np.arange(rows.shape[1])
        near = rows.argmin(axis=0)
        self.near[touched] = near
        self.near_distance[touched] = rows[near, at]
        rows[near, at] = np.inf
        second = rows.argmin(axis=0)
        self.second[touched] = second
        self.second_distance[touched] = rows[second, at]


# --- starting medoids ------------------------------------------------------------------------------------------------


def start_medoids(
    distances: Distances,
    init: str,
    weights: Floats,
    k: int,
    rng: np.random.Generator,
    most_distances: int = MOST_DISTANCES,
) -> Ints:
    """Return k starting medoids: drawn far apart, built one by one for the largest gain, or drawn at random."""
    if init == "random":
        return rng.choice(len(weights), k, replace=False, p=weights / weights.sum())
    if init == "build":
        return build_medoids(distances, weights, k, most_distances)
    return _far_apart(distances, weights, k, rng)


def build_medoids(distances: Distances, weights: Floats, k: int, most_distances: int = MOST_DISTANCES) -> Ints:
    """Return k medoids, each the sample that lowers J most beside those before it (the BUILD phase of PAM)."""
    candidates = np.flatnonzero(weights > 0)
    step = max(SMALLEST_BATCH, most_distances // len(weights))
    batches = [candidates[at : at + step] for at in range(0, len(candidates), step)]
    costs = np.concatenate([(weights * distances(batch)).sum(axis=1) for batch in batches])
    medoids = [int(candidates[_first_least(costs)])]
    closest = distances(np.array(medoids))[0]
    while len(medoids) < k:
        costs = np.concatenate([(weights * np.minimum(closest, distances(batch))).sum(axis=1) for batch in batches])
        costs[np.searchsorted(candidates, medoids)] = np.inf
        medoids.append(int(candidates[_first_least(costs)]))
        closest = np.minimum(closest, distances(np.array(medoids[-1:]))[0])
    return np.array(medoids, dtype=np.intp)


def _first_least(costs: Floats) -> int:
    """Return the first of the least costs, equal except for rounding."""
    low = costs.min()
    return int(np.argmax(costs <= low + TIE_TOLERANCE * abs(low)))


def _far_apart(distances: Distances, weights: Floats, k: int, rng: np.random.Generator) -> Ints:
    """Return k medoids, each the best of a few draws with probability w * distance, as k-means++ does with squares."""
    trials = 2 + int(np.log(k))
    medoids = [int(_draw(weights, 1, rng)[0])]
    closest = distances(np.array(medoids))[0]
    while len(medoids) < k:
        mass = weights * closest
        if not mass.sum() > 0:  # every sample equals a medoid
            mass = weights.copy()
            mass[medoids] = 0.0
        drawn = _draw(mass, trials, rng)
        after = np.minimum(closest, distances(drawn))
        best = int(np.argmin((weights * after).sum(axis=1)))
        medoids.append(int(drawn[best]))
        closest = after[best]
    return np.array(medoids, dtype=np.intp)


def _draw(mass: Floats, count: int, rng: np.random.Generator) -> Ints:
    """Return samples drawn with probability proportional to ``mass``."""
    cumulative = np.cumsum(mass)
    drawn = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
    return np.minimum(drawn, np.flatnonzero(mass)[-1])
