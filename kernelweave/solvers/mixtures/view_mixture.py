"""The weighted multi-view convex mixture: shared priors of components, and a weight for every view.

Objective   maximise L = sum_i p_i log sum_v pi_v Q_v(x_i), with Q_v = sum_j q_j f_j^v the convex mixture of view v
Input       Similarities of every view, shares p of the samples, logarithms of the views' normalisers
Cost        an E-step is one pass over the similarities; an M-step is one solution of the priors from where they were
Guarantee   L never falls; a local maximum, since the problem is not convex
Source      PhD Alg. 3.1 and (3.12)-(3.18); TNN IV
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from kernelweave.foundation.array_types import Floats
from kernelweave.kernels.similarities import Similarities, StackedSimilarities
from kernelweave.solvers.mixtures.priors import Solver, solve_priors

# Views with less weight than this no longer take part.
NEGLIGIBLE_WEIGHT = 1e-12
# An M-step ends where a step within it raises L by less than this share of what ends the whole. Rows that hardly
# belong to a view any more would keep the gap open for ever.
INNER_SHARE = 0.01


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


def solve_view_mixture(
    views: Sequence[Similarities],
    shares: Floats,
    log_normalizers: Floats,
    *,
    view_weights: Floats,
    solver: Solver = "auto",
    tol: float = 1e-4,
    inner_tol: float = 1e-6,
    max_iter: int = 1000,
    inner_max_iter: int = 5000,
    deadline: float = np.inf,
    on_step: Callable[[float], object] | None = None,
) -> ViewMixture:
    """Run EM from uniform priors and ``view_weights`` until L rises by at most ``tol`` in a step."""
    S = StackedSimilarities(views)
    n = views[0].n_columns
    weights = view_weights
    uniform = np.full(n, 1.0 / n)
    start: Floats | None = None
    logs = _log_mixtures(S, S.product(uniform), log_normalizers)
    history = [_likelihood(logs, weights, shares)]
    converged = False
    gap = np.inf
    gradient = np.ones(n)
    while not converged and len(history) <= max_iter and time.monotonic() <= deadline:
        posteriors = _posteriors(logs, weights)
        weights = posteriors @ shares
        solution = solve_priors(
            S,
            (posteriors * shares).ravel(),
            solver=solver,
            start=start,
            tol=inner_tol,
            max_iter=inner_max_iter,
            deadline=deadline,
            min_gain=INNER_SHARE * tol,
            stopping="change" if solver == "em" else "gap",
        )
        start = solution.values
        gap = solution.gap
        gradient = solution.gradient
        logs = _log_mixtures(S, solution.mixture, log_normalizers)
        history.append(_likelihood(logs, weights, shares))
        converged = history[-1] - history[-2] <= tol
        if on_step is not None:
            on_step(history[-1])
    return ViewMixture(uniform if start is None else start, weights, gap, gradient, tuple(history), converged)


def _log_mixtures(S: StackedSimilarities, mixture: Floats, log_normalizers: Floats) -> Floats:
    """Return log Q_v(x_i), shape (V, n)."""
    with np.errstate(divide="ignore"):
        return (np.log(mixture) + S.offsets).reshape(len(log_normalizers), -1) + log_normalizers[:, None]


def _posteriors(logs: Floats, weights: Floats) -> Floats:
    """Return P(z_i = v | x_i) of (3.14), shape (V, n)."""
    with np.errstate(divide="ignore"):
        joint = logs + np.log(np.where(weights > NEGLIGIBLE_WEIGHT, weights, 0.0))[:, None]
    return np.exp(joint - logsumexp(joint, axis=0))


def _likelihood(logs: Floats, weights: Floats, shares: Floats) -> float:
    return float(shares @ logsumexp(logs, axis=0, b=weights[:, None]))
