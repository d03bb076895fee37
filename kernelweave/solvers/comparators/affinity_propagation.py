"""Affinity propagation for one preference, or for the preference that gives a wanted number of exemplars.

Objective   sum_i ||phi(x_i) - phi(e_i)||^2 - p |E|, e_i the exemplar of sample i in E and p the preference, below zero
Input       the squared distances of all pairs
Cost        about a hundred iterations of O(m^2) per preference tried, m the number of distinct samples
Guarantee   none: messages on a graph with cycles. A run that converges is a good, not always the best, solution
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
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.foundation.errors import ConvergenceWarning
from kernelweave.partitions.algebra import TIE_TOLERANCE
from kernelweave.solvers.comparators.k_medoids import Medoids, build_medoids

# Preferences tried at most for a wanted number of exemplars, how many that do not converge, and how close two may come.
MOST_RUNS = 16
MOST_UNCONVERGED = 3
CLOSEST = 1.0001
# The first and the largest step of the search: steps grow until the number wanted is enclosed.
FIRST_STEP = 3.0
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
    """The exemplars, and which of them each sample has."""

    indices: Ints  # (k,) the exemplars, in the order of the samples
    labels: Ints  # (n,) position of each sample's exemplar
    history: tuple[float, ...]  # squared distances to the exemplars, summed, after every run; those of ``labels`` last
    preference: float
    n_iter: int  # steps of the run the exemplars come from
    converged: bool  # that run converged

    @property
    def objective(self) -> float:
        """The squared distances to the exemplars, summed."""
        return self.history[-1]


@dataclass(frozen=True)
class _Run:
    """The exemplars of one preference."""

    exemplars: Ints
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
    keeper: Keeper = NOTHING,
    on_run: Callable[[float], object] = lambda value: None,
) -> Exemplars:
    """Return the exemplars for ``preference`` (None: the median), or ``n_clusters`` of them, or all distinct samples.

    With ``n_clusters`` the preference is where the search for it begins.
    """
    representatives, group = distinct_samples(D, slack)
    counts = np.bincount(group).astype(np.float64)
    n_distinct = len(representatives)
    distinct = D if n_distinct == len(D) else D[np.ix_(representatives, representatives)]
    history: list[float] = []

    def run(value: float) -> _Run:
        part = keeper.part(f"run {len(history)}")
        result = part.once(_Run, lambda: _pass_messages(distinct, counts, value, messages))
        history.append(_cost(distinct, counts, result.exemplars))
        on_run(value)
        return result

    if n_clusters is None and n_distinct > 1:
        best = run(median_preference(D) if preference is None else preference)
    elif n_clusters in (None, 1) or n_distinct == 1:
        best = _Run(_center(distinct, counts), -np.inf, 0, True)
    elif n_clusters is not None and n_clusters >= n_distinct:
        best = _Run(np.arange(n_distinct), 0.0, 0, True)
    else:
        best = _search(distinct, counts, n_clusters, preference, run)
    exemplars = np.sort(best.exemplars)
    labels, cost = _assigned(distinct, counts, exemplars, slack)
    return Exemplars(
        representatives[exemplars], labels[group], (*history, cost), best.preference, best.n_iter, best.converged
    )


def distinct_samples(D: Floats, slack: float) -> tuple[Ints, Ints]:
    """Return the first of every group of equal samples, and the group of every sample.

    Equal means at distance zero and at the same distances from all others, which in a feature space is the same.
    """
    first = (slack >= D).argmax(axis=1)
    equal = np.abs(D - D[first]).max(axis=1) <= 4.0 * slack
    first = np.where(equal & (first[first] == first), first, np.arange(len(D)))
    representatives, group = np.unique(first, return_inverse=True)
    return representatives, group


def _pass_messages(D: Floats, counts: Floats, preference: float, messages: Messages) -> _Run:
    """Pass messages until the exemplars stay the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exemplars, _, n_iter = affinity_propagation(
            -counts[:, None] * D,
            preference=preference,
            damping=messages.damping,
            max_iter=messages.max_iter,
            convergence_iter=messages.convergence_iter,
            return_n_iter=True,
            random_state=messages.seed,
        )
    unconverged = any(issubclass(entry.category, ConvergenceWarning) for entry in caught)
    exemplars = np.asarray(exemplars, dtype=np.intp)
    return _Run(exemplars if len(exemplars) else _center(D, counts), preference, n_iter, not unconverged)


def _center(D: Floats, counts: Floats) -> Ints:
    """Return the sample that alone serves all best."""
    return build_medoids(lambda samples: D[samples], counts, 1)


def _cost(D: Floats, counts: Floats, exemplars: Ints) -> float:
    return float((counts * D[:, exemplars].min(axis=1)).sum())


def _assigned(D: Floats, counts: Floats, exemplars: Ints, slack: float) -> tuple[Ints, float]:
    """Return the exemplar of every distinct sample and the cost; an exemplar stands for itself."""
    distances = D[:, exemplars]
    labels = (distances <= distances.min(axis=1, keepdims=True) + slack).argmax(axis=1)
    labels[exemplars] = np.arange(len(exemplars))
    return labels, float((counts * D[np.arange(len(D)), exemplars[labels]]).sum())


# --- a wanted number -------------------------------------------------------------------------------------------------


def _search(D: Floats, counts: Floats, k: int, start: float | None, run: Callable[[float], _Run]) -> _Run:
    """Return k exemplars: halve the interval of preferences, on a logarithmic scale, until a run gives k of them.

    Where no converged run does, the converged run with the fewest exemplars above k loses, one by one, those whose
    samples suffer least.
    """
    size = -start if start is not None and start < 0 else _typical_cost(D, counts, k)
    low, high = 0.0, np.inf
    step = FIRST_STEP
    smallest = TIE_TOLERANCE * float(D.max())
    enough: list[_Run] = []
    n_unconverged = 0
    for _ in range(MOST_RUNS):
        result = run(-size)
        n_exemplars = len(result.exemplars)
        n_unconverged = n_unconverged + (not result.converged)
        if n_exemplars == k and result.converged:
            return result
        if n_exemplars >= k:
            enough.append(result)
        low, high = (size, high) if n_exemplars > k else (low, size)
        if low == 0.0 or high == np.inf:
            size = size / step if low == 0.0 else size * step
            step = min(step**2, LARGEST_STEP)
        else:
            size = float(np.sqrt(low * high))
        if n_unconverged == MOST_UNCONVERGED or high < CLOSEST * low or size < smallest:
            break
    everyone = _Run(np.arange(len(D)), 0.0, 0, True)
    more = min(enough, key=lambda each: (not each.converged, len(each.exemplars)), default=everyone)
    return _Run(reduce_exemplars(D, counts, more.exemplars, k), more.preference, more.n_iter, more.converged)


def _typical_cost(D: Floats, counts: Floats, k: int) -> float:
    """Return what an exemplar may cost where k are best: between the gains of the k-th and of the next one.

    The gains are those of samples chosen one by one, each for the largest gain.
    """
    n_chosen = min(k + 1, len(D))
    chosen = build_medoids(lambda samples: D[samples], counts, n_chosen)
    costs = [_cost(D, counts, chosen[:count]) for count in range(k - 1, n_chosen + 1)]
    gains = -np.diff(costs)
    gains = gains[gains > 0]
    return float(np.exp(np.log(gains).mean())) if len(gains) else max(float(D.max()), np.finfo(np.float64).tiny)


def reduce_exemplars(D: Floats, counts: Floats, exemplars: Ints, k: int) -> Ints:
    """Return k of the exemplars, the others dropped, and each moved to the middle of its cluster."""
    state = Medoids(D[exemplars], exemplars, counts)
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
