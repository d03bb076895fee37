"""Affinity propagation for a given preference, or for the preference that gives a wanted number of exemplars.

Objective   sum_i ||phi(x_i) - phi(e_i)||^2 - p |E|, e_i the exemplar of sample i in E and p the preference, below zero
Input       the squared distances of all pairs
Cost        some hundred steps of O(m^2) for each preference tried, m the number of distinct samples
Guarantee   none: messages on a graph with cycles. A run that settles is a good, not always the best, solution
Source      MSc 1.3.3, Alg. 7; Frey and Dueck, Science 315, 2007; the messages are those of scikit-learn

Equal samples are one sample that counts several times: the similarities of its row are multiplied by their number. The
messages then have no ties to circle in, and the solutions are the same.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.cluster import affinity_propagation

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ConvergenceWarning
from kernelweave.partitions.algebra import TIE_TOLERANCE
from kernelweave.solvers.comparators.k_medoids import Medoids, build_medoids

# Preferences tried at most for a wanted number of exemplars, how many without an end, and how close two may come.
RUNS = 16
UNSETTLED = 3
CLOSEST = 1.0001
# The first and the largest step of the search: steps grow until the number wanted is enclosed.
FACTOR = 3.0
LARGEST_STEP = 1e4


@dataclass(frozen=True)
class Messages:
    """How messages are passed."""

    damping: float
    max_iter: int
    convergence_iter: int
    seed: int


@dataclass(frozen=True)
class Exemplars:
    """What was found."""

    indices: Ints  # (k,) the exemplars, in the order of the samples
    labels: Ints  # (n,) position of each sample's exemplar
    history: tuple[float, ...]  # squared distances to the exemplars, summed, after every run; those of ``labels`` last
    preference: float
    n_iter: int  # steps of the run the exemplars come from
    converged: bool  # it settled

    @property
    def objective(self) -> float:
        """The squared distances to the exemplars, summed."""
        return self.history[-1]


@dataclass(frozen=True)
class _Run:
    chosen: Ints
    preference: float
    n_iter: int
    converged: bool


def median_preference(D: Floats) -> float:
    """Return the median of the similarities of different samples, the usual preference."""
    return -float(np.median(D[~np.eye(len(D), dtype=bool)]))


def find_exemplars(
    D: Floats,
    slack: float,
    messages: Messages,
    *,
    n_clusters: int | None = None,
    preference: float | None = None,
    on_run: Callable[[float], object] = lambda value: None,
) -> Exemplars:
    """Return the exemplars for ``preference`` (None: the median), or ``n_clusters`` of them, or all distinct samples.

    With ``n_clusters`` the preference is where the search for it begins.
    """
    heads, member = distinct_samples(D, slack)
    counts = np.bincount(member).astype(np.float64)
    part = D[np.ix_(heads, heads)]
    history: list[float] = []

    def run(value: float) -> _Run:
        found = _settle(part, counts, value, messages)
        history.append(_cost(part, counts, found.chosen))
        on_run(value)
        return found

    if n_clusters is None and len(heads) > 1:
        best = run(median_preference(D) if preference is None else preference)
    elif n_clusters in (None, 1) or len(heads) == 1:
        best = _Run(_centre(part, counts), -np.inf, 0, True)
    elif n_clusters is not None and n_clusters >= len(heads):
        best = _Run(np.arange(len(heads)), 0.0, 0, True)
    else:
        best = _search(part, counts, n_clusters, preference, run)
    return _stored(part, counts, heads, member, best, history, slack)


def distinct_samples(D: Floats, slack: float) -> tuple[Ints, Ints]:
    """Return the first of every group of equal samples, and the group of every sample.

    Equal means at distance zero and at the same distances from all others, which in a feature space is the same.
    """
    first = (slack >= D).argmax(axis=1)
    alike = np.abs(D - D[first]).max(axis=1) <= 4.0 * slack
    first = np.where(alike & (first[first] == first), first, np.arange(len(D)))
    heads, member = np.unique(first, return_inverse=True)
    return heads, member


def _settle(D: Floats, counts: Floats, preference: float, messages: Messages) -> _Run:
    """Pass messages until the exemplars stay the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chosen, _, n_iter = affinity_propagation(
            -counts[:, None] * D,
            preference=preference,
            damping=messages.damping,
            max_iter=messages.max_iter,
            convergence_iter=messages.convergence_iter,
            return_n_iter=True,
            random_state=messages.seed,
        )
    lost = any(issubclass(entry.category, ConvergenceWarning) for entry in caught)
    chosen = np.asarray(chosen, dtype=np.intp)
    return _Run(chosen if len(chosen) else _centre(D, counts), preference, n_iter, not lost)


def _centre(D: Floats, counts: Floats) -> Ints:
    """Return the sample that alone serves all best."""
    return build_medoids(lambda chosen: D[chosen], counts, 1)


def _cost(D: Floats, counts: Floats, chosen: Ints) -> float:
    return float((counts * D[:, chosen].min(axis=1)).sum())


# --- a wanted number -------------------------------------------------------------------------------------------------


def _search(D: Floats, counts: Floats, k: int, start: float | None, run: Callable[[float], _Run]) -> _Run:
    """Return k exemplars: halve the interval of preferences, on a logarithmic scale, until a run gives k of them.

    Where none does and settles, the settled run with the fewest exemplars above k loses, one by one, those whose
    samples suffer least.
    """
    size = -start if start is not None and start < 0 else _typical(D, counts, k)
    low = 0.0
    high = np.inf
    step = FACTOR
    least = TIE_TOLERANCE * float(D.max())
    enough: list[_Run] = []
    unsettled = 0
    for _ in range(RUNS):
        found = run(-size)
        n_found = len(found.chosen)
        unsettled = unsettled + (not found.converged)
        if n_found == k and found.converged:
            return found
        if n_found >= k:
            enough.append(found)
        low, high = (size, high) if n_found > k else (low, size)
        if low == 0.0 or high == np.inf:
            size = size / step if low == 0.0 else size * step
            step = min(step**2, LARGEST_STEP)
        else:
            size = float(np.sqrt(low * high))
        if unsettled == UNSETTLED or high < CLOSEST * low or size < least:
            break
    everyone = _Run(np.arange(len(D)), 0.0, 0, True)
    more = min(enough, key=lambda each: (not each.converged, len(each.chosen)), default=everyone)
    return _Run(_dropped(D, counts, more.chosen, k), more.preference, more.n_iter, more.converged)


def _typical(D: Floats, counts: Floats, k: int) -> float:
    """Return what an exemplar may cost where k are best: between the gains of the k-th and of the next one.

    The gains are those of samples chosen one by one, each for the largest gain.
    """
    n_chosen = min(k + 1, len(D))
    chosen = build_medoids(lambda samples: D[samples], counts, n_chosen)
    costs = [_cost(D, counts, chosen[:count]) for count in range(k - 1, n_chosen + 1)]
    gains = -np.diff(costs)
    gains = gains[gains > 0]
    return float(np.exp(np.log(gains).mean())) if len(gains) else max(float(D.max()), np.finfo(np.float64).tiny)


def _dropped(D: Floats, counts: Floats, chosen: Ints, k: int) -> Ints:
    """Return k of the chosen exemplars, the others dropped, and each moved to the middle of its cluster."""
    state = Medoids(D[chosen], chosen, counts)
    while len(state.medoids) > k:
        losses = state.losses()
        state.drop(int(np.argmax(losses <= losses.min() + state.noise)))
    labels = state.labels()
    kept = state.medoids.copy()
    for c in range(k):
        inside = np.flatnonzero(labels == c)
        sums = (counts[inside, None] * D[np.ix_(inside, inside)]).sum(axis=0)
        kept[c] = inside[np.argmax(sums <= sums.min() + state.noise)]
    return np.sort(kept)


def _stored(
    D: Floats, counts: Floats, heads: Ints, member: Ints, best: _Run, history: list[float], slack: float
) -> Exemplars:
    """Return the exemplars as samples; an exemplar stands for itself, and equal samples share one."""
    chosen = np.sort(best.chosen)
    gaps = D[:, chosen]
    labels = (gaps <= gaps.min(axis=1, keepdims=True) + slack).argmax(axis=1)
    labels[chosen] = np.arange(len(chosen))
    own = float((counts * D[np.arange(len(D)), chosen[labels]]).sum())
    return Exemplars(heads[chosen], labels[member], (*history, own), best.preference, best.n_iter, best.converged)
