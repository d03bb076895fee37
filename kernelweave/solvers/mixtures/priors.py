"""Priors of a convex mixture: the components are fixed, only their shares are sought.

Objective   maximise L(q) = sum_r w_r log (S q)_r over the simplex, row weights w adding up to 1
Input       Similarities (rows: samples, in every view; columns: components) and row weights
Cost        a pass or two over S per step; a second-order step also O(R m^2 + m^3) with m priors above zero
Guarantee   L never falls; rows with less than 1e-14 of the weight are left out of it. max_j g_j - 1, with
            g = S^T (w / S q) the gradient, bounds how far L is from its maximum; it is at most ``tol`` where
            ``converged`` and the gap was to decide. Second-order steps end without that where nothing raises L by more
            than rounding any more
Source      EM: PhD (3.5), (3.9), (3.16), MSc (3.8) and 4.2.3; Lashkari and Golland, NIPS 2007. Second order: Wang,
            JRSS B 2007; Kim, Carbonetto, Stephens and Anitescu, JCGS 2020
"""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper, State
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.kernels.similarities import Similarities
from kernelweave.solvers.mixtures.nonnegative import minimize_nonnegative

Solver = Literal["em", "newton", "auto"]
Stopping = Literal["gap", "order", "change"]

# Steps of EM before the first of second order: by then most components that will go have little left.
EM_STEPS = 20
# Samples at least this similar are neighbours.
NEIGHBOR_SIMILARITY = 0.5
# A neighbourhood enters the first second-order step if it has at least this share of the uniform prior, or
# if some row's mixture would fall below that share of itself without it.
KEPT_SHARE = 0.5
COVERED_SHARE = 0.01
# Priors below this share of the uniform one are dropped by EM, as in the source, every so many steps.
DROPPED_SHARE = 1e-3
DROP_INTERVAL = 10
# With more priors above zero than this "auto" stays with EM.
LARGEST_SUPPORT = 4000
# Similarities of a view below this number are worked on by one thread.
ONE_THREAD_ENTRIES = 4_000_000
# Consecutive steps of EM the order of the largest priors must hold.
STEADY_STEPS = 10
# A rise of the likelihood by less than this, relatively, is rounding.
NEGLIGIBLE_RISE = 1e-14
# Priors below this are zero, and so are the weights of rows that could ask for no more.
NEGLIGIBLE_SHARE = 1e-14


@dataclass(frozen=True)
class Priors:
    """The priors at the end of a search, and how good they are."""

    values: Floats  # (n,) add up to 1
    gap: float  # max gradient - 1
    history: tuple[float, ...]  # L of the start and after every step, what rows were divided by included
    converged: bool
    mixture: Floats  # (R,) S @ values
    gradient: Floats  # (n,) at most 1 + gap, and 1 on average

    @property
    def log_likelihood(self) -> float:
        """L of the priors."""
        return self.history[-1]

    @property
    def n_iter(self) -> int:
        """Steps taken."""
        return len(self.history) - 1


class _Point:
    """Priors with the mixture, likelihood and gradient they lead to."""

    def __init__(self, S: Similarities, weights: Floats, priors: Floats) -> None:
        self.S = S
        self.weights = weights
        self.priors = priors
        self.mixture = S.product(priors)
        counted = weights > 0
        with np.errstate(divide="ignore"):
            logs = np.log(self.mixture[counted]) + S.offsets[counted]
        self.likelihood = float(weights[counted] @ logs)
        self._gradient: Floats | None = None

    @property
    def gradient(self) -> Floats:
        if self._gradient is None:
            ratios = np.zeros_like(self.mixture)
            np.divide(self.weights, self.mixture, out=ratios, where=self.weights > 0)
            self._gradient = self.S.transposed_product(ratios)
        return self._gradient

    @property
    def gap(self) -> float:
        return float(self.gradient.max()) - 1.0

    def with_priors(self, priors: Floats) -> "_Point":
        return _Point(self.S, self.weights, priors)


@dataclass
class _Run:
    """A search under way: the present point, what was visited, and when to stop."""

    point: _Point
    tol: float
    max_iter: int
    deadline: float
    on_step: Callable[[float], object] | None
    keeper: Keeper
    history: list[float] = field(default_factory=list)
    trim: bool = False  # the first second-order step is to leave components out

    def move_to(self, point: _Point) -> None:
        self.point = point
        self.history.append(point.likelihood)
        if self.on_step is not None:
            self.on_step(point.gap)

    def state(self, **more: Any) -> State:
        """Return what the search goes on from."""
        return {"priors": self.point.priors, "history": self.history, "trim": self.trim, **more}

    @property
    def solved(self) -> bool:
        return self.point.gap <= self.tol

    @property
    def out_of_time(self) -> bool:
        return len(self.history) > self.max_iter or time.monotonic() > self.deadline


def solve_priors(
    S: Similarities,
    weights: Floats,
    *,
    solver: Solver = "auto",
    start: Floats | None = None,
    tol: float = 1e-6,
    max_iter: int = 5000,
    stopping: Stopping = "gap",
    n_leaders: int = 0,
    min_gain: float = 0.0,
    deadline: float = np.inf,
    keeper: Keeper = NOTHING,
    on_step: Callable[[float], object] | None = None,
) -> Priors:
    """Maximise the likelihood from ``start`` (uniform by default) until the gap is at most ``tol``.

    ``"em"`` can stop earlier: with ``stopping="order"`` when the ``n_leaders`` largest priors have kept their order
    for some steps, with ``"change"`` when all priors together change by less than ``tol`` in a step. ``"newton"``
    begins with steps of EM from a uniform start; ``"auto"`` is ``"newton"`` where few enough priors are above zero,
    else EM. Both end early where a second-order step raises L by no more than ``min_gain``.
    """
    n = S.n_columns
    weights = np.where(weights < NEGLIGIBLE_SHARE, 0.0, weights)
    # Waking threads for small products takes longer than the products.
    with single_threaded_blas() if n * n < ONE_THREAD_ENTRIES else nullcontext():
        point = _Point(S, weights, np.full(n, 1.0 / n) if start is None else start)
        run = _Run(point, tol, max_iter, deadline, on_step, keeper, [point.likelihood], start is None)
        known = keeper.known()
        if known is not None:
            run.point = _Point(S, weights, known["priors"])
            run.history = known["history"]
            run.trim = known["trim"]
        if solver == "em":
            done = _em(run, stopping, n_leaders)
        else:
            limit = LARGEST_SUPPORT if solver == "auto" else n
            done = _second_order(run, uniform=start is None, limit=limit, min_gain=min_gain)
    return Priors(run.point.priors, run.point.gap, tuple(run.history), done, run.point.mixture, run.point.gradient)


def _em(run: _Run, stopping: Stopping, n_leaders: int) -> bool:
    """Take steps of EM, with small priors dropped now and then, until the stopping rule holds."""
    known = run.keeper.known()
    leaders = np.empty(0, dtype=np.intp) if known is None else known["leaders"]
    held = 0 if known is None else known["held"]
    done = stopping == "gap" and run.solved if known is None else known["done"]
    while not done and not run.out_of_time:
        before = run.point.priors
        run.move_to(_em_step(run.point, drop=len(run.history) % DROP_INTERVAL == 0))
        if stopping == "change":
            done = float(np.abs(run.point.priors - before).sum()) < run.tol
        elif stopping == "order":
            now = np.argsort(-run.point.priors, kind="stable")[:n_leaders]
            held = held + 1 if np.array_equal(now, leaders) else 0
            leaders = now
            done = held >= STEADY_STEPS
        else:
            done = run.solved
        run.keeper.keep(run.state, leaders=leaders, held=held, done=done)
    return done


def _em_step(point: _Point, *, drop: bool) -> _Point:
    """Return the point after q_j <- q_j g_j; dropped components come back where their gradient is above 1."""
    priors = point.priors * point.gradient
    least = DROPPED_SHARE / len(priors)
    missed = (point.priors == 0) & (point.gradient > 1.0)
    if missed.any():
        revived = point.with_priors(_normed(np.where(missed, least, priors)))
        if revived.likelihood >= point.likelihood:
            return revived
    after = point.with_priors(_normed(priors))
    if drop and ((priors > 0) & (priors < least)).any():
        fewer = after.with_priors(_normed(np.where(priors < least, 0.0, priors)))
        if fewer.likelihood >= point.likelihood:
            return fewer
    return after


def _second_order(run: _Run, *, uniform: bool, limit: int, min_gain: float) -> bool:
    """Take second-order steps on the priors above zero, after some of EM where the start is uniform."""
    while uniform and len(run.history) <= EM_STEPS and not run.solved and not run.out_of_time:
        run.move_to(_em_step(run.point, drop=False))
        run.keeper.keep(run.state)
    while not run.solved and not run.out_of_time:
        first = _thinned(run.point) if run.trim else run.point
        if np.count_nonzero(first.priors) <= min(limit, run.point.S.largest_support):
            after = _newton_step(first)
            gain = -np.inf if after is None else after.likelihood - run.point.likelihood
            if after is not None and gain > 0:
                run.trim = False
                run.move_to(after)
            if min_gain > 0 and not run.trim and gain <= min_gain:
                break
            if gain > 0:
                run.keeper.keep(run.state)
                continue
            run.trim = False  # thinning cost more than a step gained: go on with all components
        before = run.point.likelihood
        for _ in range(EM_STEPS // 2):
            run.move_to(_em_step(run.point, drop=False))
            if run.solved or run.out_of_time:
                break
        if run.point.likelihood - before <= NEGLIGIBLE_RISE * max(1.0, abs(before)):
            break  # a row of almost no weight keeps the gap open; what it could still add is below rounding
        run.keeper.keep(run.state)
    return run.solved


def _thinned(point: _Point) -> _Point:
    """Return the point with one component for each neighbourhood: that of largest prior, which gets all of it.

    Neighbourhoods with little are left out as far as every row keeps some of its mixture. Where components are so sharp
    that samples have no neighbours, nearly all of them stay.
    """
    S = point.S
    n = len(point.priors)
    left = point.priors > 0
    gathered = np.zeros(n)
    everyone = np.arange(n)
    n_views = np.maximum(S.component_views, 1)  # a component is replaced where it is near in most views that it has
    for j in np.argsort(-point.priors, kind="stable"):
        if not left[j]:
            continue
        rows = [S.block(view * n + j, view * n + j + 1, everyone)[0] for view in range(S.n_views)]
        near = left & (sum(rows) / n_views >= NEIGHBOR_SIMILARITY)
        near[j] = True
        gathered[j] = point.priors[near].sum()
        left &= ~near
    keep = gathered >= KEPT_SHARE / n
    covered = S.product(np.where(keep, gathered, 0.0))
    keep[np.flatnonzero((covered < COVERED_SHARE * point.mixture) & (point.weights > 0)) % n] = True
    return point.with_priors(_normed(np.where(keep, np.maximum(gathered, NEGLIGIBLE_SHARE), 0.0)))


def _newton_step(point: _Point) -> _Point | None:
    """Return the point after one constrained second-order step on the support and the best candidates around it.

    With R = S / (S q) the problem without the sum, sum_r w_r log (R x)_r - sum_j x_j over x >= 0, has the same
    solution, and at q its model is x^T (2 g - 1) - x^T G x / 2 with G = R^T diag(w) R.
    """
    support = np.flatnonzero(point.priors)
    chosen = np.union1d(support, _candidates(point, support))
    if len(chosen) > point.S.largest_support:
        chosen = support
    scale = np.zeros_like(point.mixture)
    np.divide(np.sqrt(point.weights), point.mixture, out=scale, where=point.weights > 0)
    G = point.S.gram(chosen, scale)
    gradient = point.gradient[chosen]
    here = point.priors[chosen]
    target = minimize_nonnegative(G, 2.0 * gradient - 1.0, here, overwrite=True)
    if target is None:
        return None
    direction = np.zeros_like(point.priors)
    direction[chosen] = target - here
    return _line_search(point, direction)


def _candidates(point: _Point, support: Ints) -> Ints:
    """Return the sample of largest gradient among those nearest to each component of the support, where above 1."""
    nearest = point.S.most_similar(support)
    order = np.lexsort((-point.gradient, nearest))
    best = order[np.concatenate([[True], np.diff(nearest[order]) > 0])]
    return best[point.gradient[best] > 1.0]


def _line_search(point: _Point, direction: Floats) -> _Point | None:
    """Return the first of the points 1, 1/2, 1/4, ... of the way that raises the likelihood enough."""
    slope = float((point.gradient - 1.0) @ direction)
    counted = point.weights > 0
    change = point.S.product(direction)[counted] / point.mixture[counted]
    length = 1.0
    total = float(direction.sum())
    while length > 1e-10:
        factors = 1.0 + length * change
        if factors.min() > 0.01:  # a mixture that vanishes would stand in the way of the steps after this one
            gain = float(point.weights[counted] @ np.log(factors)) - length * total
            if gain >= 1e-4 * length * slope:
                moved = np.maximum(point.priors + length * direction, 0.0)
                return point.with_priors(_normed(np.where(moved < NEGLIGIBLE_SHARE, 0.0, moved)))
        length /= 2.0
    return None


def _normed(priors: Floats) -> Floats:
    return np.asarray(priors / priors.sum())
