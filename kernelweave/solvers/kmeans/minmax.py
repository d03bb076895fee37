"""MinMax k-means: clusters of large variance weigh more, step by step, so that a bad start is left behind.

Objective   E_w = sum_c w_c^p V_c, smallest over partitions and largest over the weights w of clusters (sum 1), with
            V_c the weighted squared distances to the mean of cluster c; p rises from ``p_init`` to ``p_max``
Input       a KernelOperator (stored features or any kernel) and a starting partition
Cost        that of kernel k-means for every step; some 50 steps while p rises, then until E_w rests
Guarantee   no cluster without variance survives: p goes back a step, to the partition stored for it. Where even
            ``p_init`` leaves such a cluster the result is that of k-means from the same start, and says so. E_w need
            not fall, and a run may go round in circles; it ends where ``max_iter`` steps would have ended
Source      PhD Alg. 2.1 and 2.5; Tzortzis and Likas, Pattern Recognition 2014
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import numpy as np

from kernelweave.backends import BackendArray
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper, made
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions.algebra import TIE_TOLERANCE
from kernelweave.partitions.partition import Partition
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, kernel_kmeans, labels_to_go_on_from
from kernelweave.solvers.shared.best_run import best_of

# How often a start is drawn that leaves a cluster without variance at once.
DRAWS = 10


@dataclass(frozen=True)
class MinMaxRun:
    """The end of one run of MinMax k-means; everything describes the same partition."""

    labels: Ints  # (n,)
    history: tuple[float, ...]  # E_w after every step
    converged: bool  # E_w converged
    circling: bool  # the partitions came round again: more steps would find nothing new
    collapsed: bool  # a cluster had no variance at p_init already: the solution of k-means
    rose: bool  # see Descent; only where collapsed
    p: float
    cluster_weights: Floats  # (k,)
    scatter: Floats  # (k,) V_c
    totals: Floats  # (k,) weight of the samples of each cluster
    norms: Floats  # (k,) ||m_c||^2

    @property
    def objective(self) -> float:
        """E_w of the labels."""
        return self.history[-1]

    @property
    def ended(self) -> bool:
        """Whether more steps would find nothing new; going round in circles is how the method often ends."""
        return self.converged or self.circling

    @property
    def inertia(self) -> float:
        """E_sum, the objective of k-means."""
        return float(self.scatter.sum())

    @property
    def max_variance(self) -> float:
        """E_max, the largest V_c."""
        return float(self.scatter.max())

    @property
    def n_iter(self) -> int:
        """Steps taken."""
        return len(self.history)

    @property
    def coefs(self) -> Floats:
        """w_c^p divided by the largest: what distances are multiplied by."""
        return coefficients(self.cluster_weights, self.p)


def minmax_kmeans(
    op: KernelOperator,
    labels: Ints,
    weights: Floats,
    *,
    n_clusters: int,
    p_init: float = 0.0,
    p_max: float = 0.5,
    p_step: float = 0.01,
    memory: float = 0.3,
    tol: float = 1e-6,
    max_iter: int = 500,
    keeper: Keeper = NOTHING,
) -> MinMaxRun:
    """Run from ``labels``, the assignment to the first centres, until E_w changes by at most ``tol * E_w``."""
    partition = op.partition(labels_to_go_on_from(keeper, labels), weights, n_clusters)
    schedule = ExponentSchedule(p_init, p_max, p_step)
    known = keeper.known()
    at = _Progress(np.full(n_clusters, 1.0 / n_clusters), max_iter) if known is None else made(_Progress, known["at"])
    history = at.history
    while len(history) < at.last and not at.converged:
        proposal = _assign(partition, coefficients(at.shares, schedule.p(at.level))) if history else partition.labels
        variances = _go_to(partition, proposal)
        if variances is None:
            at.rising = False
            at.level -= 1
            if at.level < 0:
                return _collapsed(op, labels, weights, n_clusters, p_init, max_iter)
            at.shares = at.stored_shares[at.level]
            at.cycle = _Cycle()
            partition.restore(at.stored_labels[at.level])
            variances = partition.scatter()
        if at.rising and at.level < schedule.top:
            at.stored_labels = (*at.stored_labels, partition.snapshot())
            at.stored_shares = (*at.stored_shares, at.shares)
            at.level += 1
        p = schedule.p(at.level)
        at.shares = memory * at.shares + (1.0 - memory) * balanced_weights(variances, p)
        history.append(float(np.sum(at.shares**p * variances)))
        at.converged = len(history) > 1 and abs(history[-1] - history[-2]) <= tol * abs(history[-1])
        if not (at.rising and at.level < schedule.top) and at.last == max_iter:
            period = at.cycle.period(partition.fingerprint(), at.shares)
            at.last = max_iter if period is None else len(history) + (max_iter - len(history)) % period
        keeper.keep(lambda: {"labels": partition.host_labels(), "at": at.on_host(partition)})
    return MinMaxRun(
        labels=partition.host_labels(),
        history=tuple(history),
        converged=at.converged,
        circling=not at.converged and at.cycle.closed,
        collapsed=False,
        rose=False,
        p=schedule.p(at.level),
        cluster_weights=at.shares,
        scatter=partition.scatter(),
        totals=partition.totals,
        norms=partition.norms,
    )


@dataclass(frozen=True)
class ExponentSchedule:
    """The values p takes, counted in whole steps so that stored states are found again exactly."""

    p_init: float
    p_max: float
    p_step: float

    @property
    def top(self) -> int:
        """The step at which ``p_max`` is reached."""
        return max(0, int(np.ceil((self.p_max - self.p_init) / self.p_step - 1e-9)))

    def p(self, level: int) -> float:
        """Return p after ``level`` steps."""
        return self.p_max if level >= self.top else self.p_init + level * self.p_step


def balanced_weights(variances: Floats, p: float) -> Floats:
    """Return the weights that make E_w largest (2.7), through logarithms so that nothing overflows."""
    powers = np.log(variances) / (1.0 - p)
    shares = np.exp(powers - powers.max())
    return np.asarray(shares / shares.sum())


def coefficients(shares: Floats, p: float) -> Floats:
    """Return w_c^p divided by the largest of them."""
    return np.asarray((shares / shares.max()) ** p)


def _assign(partition: Partition, coefs: Floats) -> BackendArray:
    """Return the labels of least weighted distance, from sums recomputed where rounding could decide."""
    scaled = None if (coefs == 1.0).all() else coefs
    assignment = partition.nearest(scaled)
    if not partition.certain(assignment.lead) and partition.moves_to(assignment.labels).count == 0:
        partition.refresh()
        assignment = partition.nearest(scaled)
    return assignment.labels


def _go_to(partition: Partition, labels: BackendArray) -> Floats | None:
    """Go to ``labels`` and return the V_c; None where a cluster has none: empty, a singleton, or equal samples."""
    partition.go_to(labels)
    if partition.members.min() <= 1:
        return None
    variances = partition.scatter()
    return variances if (variances > partition.tolerance * partition.totals).all() else None


def _collapsed(
    op: KernelOperator, labels: Ints, weights: Floats, n_clusters: int, p_init: float, max_iter: int
) -> MinMaxRun:
    """Return the solution of k-means from the start, as a run."""
    descent = kernel_kmeans(op, labels, weights, n_clusters=n_clusters, max_iter=max_iter)
    return MinMaxRun(
        labels=descent.labels,
        history=descent.history,
        converged=descent.converged,
        circling=False,
        collapsed=True,
        rose=descent.rose,
        p=p_init,
        cluster_weights=np.full(n_clusters, 1.0 / n_clusters),
        scatter=descent.scatter,
        totals=descent.totals,
        norms=descent.norms,
    )


@dataclass
class _Cycle:
    """Partitions visited since p last changed, to notice that they come round again.

    A step follows from the partition and the weights alone. Where both return, so does everything after them, and
    the steps left can be counted instead of made.
    """

    visited: tuple[str, ...] = ()  # fingerprints of the partitions
    shares: tuple[Floats, ...] = ()
    closed: bool = False

    def period(self, fingerprint: bytes, shares: Floats) -> int | None:
        """Take note of a step; return after how many steps it came back, or None."""
        here = fingerprint.hex()
        if here in self.visited:
            for steps, (visited, before) in enumerate(zip(self.visited[::-1], self.shares[::-1], strict=True), start=1):
                if visited == here and np.abs(before - shares).max() <= TIE_TOLERANCE:
                    self.closed = True
                    return steps
        self.visited = (*self.visited, here)
        self.shares = (*self.shares, shares)
        return None


@dataclass
class _Progress:
    """Where a run stands besides its partition."""

    shares: Floats  # (k,) the weights of clusters
    last: int  # the step at which the run ends
    level: int = 0  # of p
    rising: bool = True
    stored_labels: tuple[BackendArray, ...] = ()  # of every level of p, to come back to
    stored_shares: tuple[Floats, ...] = ()
    history: list[float] = field(default_factory=list)
    cycle: _Cycle = field(default_factory=_Cycle)
    converged: bool = False

    def on_host(self, partition: Partition) -> "_Progress":
        """Return the same with all arrays on the host."""
        return replace(self, stored_labels=tuple(map(partition.backend.host, self.stored_labels)))


def drawn_minmax(
    op: KernelOperator, draw: Callable[[], Ints], weights: Floats, keeper: Keeper = NOTHING, **options: Any
) -> MinMaxRun:
    """Run from drawn labels; a start that leaves a cluster without variance at once is drawn again, up to ``DRAWS``.

    Where all of them do, the best of the k-means solutions is returned.
    """
    failed: list[MinMaxRun] = []
    for number in range(DRAWS):
        part = keeper.part(f"draw {number}")
        run = _kept_minmax(op, draw(), weights, part, **options)
        if not run.collapsed:
            return run
        failed.append(run)
    return best_of(failed, attrgetter("inertia"))


def _kept_minmax(op: KernelOperator, labels: Ints, weights: Floats, keeper: Keeper, **options: Any) -> MinMaxRun:
    return keeper.once(MinMaxRun, lambda: minmax_kmeans(op, labels, weights, keeper=keeper, **options))


def best_minmax(runs: Iterable[tuple[MinMaxRun, Descent | None]]) -> tuple[MinMaxRun, Descent | None]:
    """Return the run of least largest variance, or of least objective after refinement; the earliest of equals.

    A run that fell back on k-means counts only where all did.
    """

    def value(pair: tuple[MinMaxRun, Descent | None]) -> float:
        return pair[0].max_variance if pair[1] is None else pair[1].objective

    best: dict[bool, tuple[MinMaxRun, Descent | None]] = {}
    for pair in runs:
        group = pair[0].collapsed and pair[1] is None
        best[group] = best_of((best[group], pair), value) if group in best else pair
    return best.get(False) or best[True]
