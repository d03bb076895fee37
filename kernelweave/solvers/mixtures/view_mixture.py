"""The weighted multi-view convex mixture: shared priors of components, and a weight for every view.

Objective   maximise L = sum_i p_i log sum_v pi_v Q_v(x_i), with Q_v = sum_j q_j f_j^v the convex mixture of view v.
            Where samples are absent from views, L = sum_i p_i log (sum_v pi_v Q_v(x_i) / sum_v pi_v), both sums over
            the views that i is in: the likelihood given which these are, so that no view is the worse for being rare.
            Q_v is then over the samples that v has
Input       Similarities of every view, shares p of the samples, logarithms of the views' normalisers, and who is where
Cost        an E-step is one pass over the similarities; an M-step is one solution of the priors from where they were
Guarantee   L never falls; a local maximum, since the problem is not convex
Source      PhD Alg. 3.1 and (3.12)-(3.18); TNN IV. With absent samples the M-step of pi is that of a Luce model:
            Hunter, "MM algorithms for generalized Bradley-Terry models", Annals of Statistics 2004
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper, made
from kernelweave.kernels.similarities import Similarities, StackedSimilarities
from kernelweave.solvers.mixtures.priors import NEGLIGIBLE_SHARE, Solver, solve_priors

# Views with less weight than this no longer take part.
NEGLIGIBLE_WEIGHT = 1e-12
# An M-step ends where a step within it raises L by less than this share of what ends the whole. Rows that hardly
# belong to a view any more would keep the gap open for ever.
INNER_SHARE = 0.01
# Most steps towards the view weights of an M-step where samples are absent, and the change at which they end.
WEIGHT_STEPS = 100
WEIGHT_CHANGE = 1e-12


@dataclass(frozen=True)
class ViewMixture:
    """The priors and view weights at the end of a search."""

    values: Floats  # (n,) priors, add up to 1
    view_weights: Floats  # (V,)
    gap: float  # of the priors in the last M-step
    gradient: Floats  # (n,) likewise
    history: tuple[float, ...]  # L of the start and after every step
    converged: bool

    @property
    def log_likelihood(self) -> float:
        """L of priors and view weights."""
        return self.history[-1]

    @property
    def n_iter(self) -> int:
        """Pairs of E- and M-steps."""
        return len(self.history) - 1


@dataclass(frozen=True)
class _Patterns:
    """Which views samples are in: the weights of these decide among themselves."""

    views: Bools  # (M, V) the views of every pattern
    member: Ints  # (n,) pattern of every sample
    shares: Floats  # (n,) of the samples; zero for those in one view alone, where weights decide nothing

    @classmethod
    def of(cls, observed: Bools, shares: Floats) -> "_Patterns":
        views, member = np.unique(observed, axis=0, return_inverse=True)
        return cls(views, member.ravel(), np.where(observed.sum(axis=1) > 1, shares, 0.0))

    def weights_by_sample(self, weights: Floats) -> Floats:
        """Return pi_v over the sum of the weights of a sample's views, shape (V, n); 1 where there is one view."""
        kept = np.where(self.views, weights, 0.0)
        totals = kept.sum(axis=1, keepdims=True)
        shares = np.divide(kept, totals, out=self.views.astype(np.float64), where=totals > 0)
        return shares.T[:, self.member]

    def best_weights(self, posteriors: Floats, weights: Floats) -> Floats:
        """Return the weights that maximise sum_v r_v log pi_v - sum_m P_m log sum_{v in m} pi_v.

        r_v is what belongs to view v, P_m the share of pattern m. Step by step from ``weights``: with
        -log s >= 1 - log s_0 - s / s_0, of which the best weights are known, the value never falls. With one pattern of
        all views the first step ends at r. Views without a sample in another one keep their weight.
        """
        belongs = posteriors @ self.shares
        of_patterns = np.bincount(self.member, self.shares, len(self.views))
        together = of_patterns > 0
        views = self.views[together]
        tied = views.any(axis=0)
        for _ in range(WEIGHT_STEPS if tied.any() else 0):
            before = weights
            slopes = views[:, tied].T @ (of_patterns[together] / (views @ before))
            moved = belongs[tied] / slopes
            weights = before.copy()
            weights[tied] = moved * (before[tied].sum() / moved.sum())
            if np.abs(weights - before).max() <= WEIGHT_CHANGE:
                break
        return weights


def solve_view_mixture(
    views: Sequence[Similarities],
    shares: Floats,
    log_normalizers: Floats,
    *,
    view_weights: Floats,
    observed: Bools | None = None,
    solver: Solver = "auto",
    tol: float = 1e-4,
    inner_tol: float = 1e-6,
    max_iter: int = 1000,
    inner_max_iter: int = 5000,
    deadline: float = np.inf,
    keeper: Keeper = NOTHING,
    on_step: Callable[[float], object] | None = None,
) -> ViewMixture:
    """Run EM from uniform priors and ``view_weights`` until L rises by at most ``tol`` in a step.

    ``observed``, of shape (n, V), says which samples each view has, None that it has all. Every sample must be in a
    view with a weight, and every view must have a sample.
    """
    S = StackedSimilarities(views)
    n = views[0].n_columns
    patterns = None if observed is None else _Patterns.of(observed, shares)

    def of_samples(weights: Floats) -> Floats:
        return weights[:, None] if patterns is None else patterns.weights_by_sample(weights)

    known = keeper.known()
    if known is None:
        uniform = np.full(n, 1.0 / n)
        logs = _log_mixtures(S, S.product(uniform), log_normalizers)
        first = (_likelihood(logs, of_samples(view_weights), shares),)
        at = ViewMixture(uniform, view_weights, np.inf, np.ones(n), first, False)
    else:
        logs = known["logs"]
        at = made(ViewMixture, known["at"])
    while not at.converged and at.n_iter < max_iter and time.monotonic() <= deadline:
        posteriors = _posteriors(logs, of_samples(at.view_weights))
        weights = posteriors @ shares if patterns is None else patterns.best_weights(posteriors, at.view_weights)
        solution = solve_priors(
            S,
            (posteriors * shares).ravel(),
            solver=solver,
            start=at.values if at.n_iter else None,
            tol=inner_tol,
            max_iter=inner_max_iter,
            deadline=deadline,
            min_gain=INNER_SHARE * tol,
            stopping="change" if solver == "em" else "gap",
        )
        logs = _log_mixtures(S, solution.mixture, log_normalizers)
        likelihood = _likelihood(logs, of_samples(weights), shares)
        converged = likelihood - at.log_likelihood <= tol
        history = (*at.history, likelihood)
        at = ViewMixture(solution.values, weights, solution.gap, solution.gradient, history, converged)
        keeper.keep(dict, at=at, logs=logs)
        if on_step is not None:
            on_step(likelihood)
    return at


def _log_mixtures(S: StackedSimilarities, mixture: Floats, log_normalizers: Floats) -> Floats:
    """Return log Q_v(x_i), shape (V, n); -inf where a view lacks the sample."""
    with np.errstate(divide="ignore"):
        return (np.log(mixture) + S.offsets).reshape(len(log_normalizers), -1) + log_normalizers[:, None]


def _posteriors(logs: Floats, weights: Floats) -> Floats:
    """Return P(z_i = v | x_i) of (3.14), shape (V, n); weights are those of all samples, or of each."""
    with np.errstate(divide="ignore"):
        joint = logs + np.log(np.where(weights > NEGLIGIBLE_WEIGHT, weights, 0.0))
    total = log_of_sum(joint)
    return np.exp(joint - np.where(np.isfinite(total), total, 0.0))


def log_of_sum(logs: Floats, weights: Floats | None = None) -> Floats:
    """Return log sum_v weights_v exp(logs_v), -inf where nothing is added up; weights are not negative.

    As scipy's ``logsumexp``, for few numbers in a fraction of its time. The largest terms are kept out of the sum: it
    then loses no figures to them.
    """
    if weights is None:
        weights = np.ones((len(logs), 1))
    counted = np.where(weights == 0, -np.inf, logs)
    largest = counted.max(axis=0)
    at = counted == largest
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = (weights * np.exp(np.where(at, -np.inf, counted) - largest)).sum(axis=0)
        many = (weights * at).sum(axis=0)
        total = np.log1p(np.where(rest == 0, rest, rest / many)) + np.log(many) + largest
    return np.where(largest == -np.inf, -np.inf, total)


def _likelihood(logs: Floats, weights: Floats, shares: Floats) -> float:
    values = log_of_sum(logs, weights)
    # The priors leave out samples of almost no share, and no component may be left that explains them.
    values[(shares < NEGLIGIBLE_SHARE) & ~np.isfinite(values)] = 0.0
    return float(shares @ values)
