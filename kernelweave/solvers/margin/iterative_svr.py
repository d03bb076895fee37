"""Iterative support vector regression: maximum margin clustering on one kernel, labels and regression in turn.

Objective   ||w||^2 / 2 + C sum_i max(0, |y_i - w . phi(x_i) - b| - epsilon) over w, b and labels with |sum y| <= limit
Input       a stored kernel matrix, labels +1 and -1
Cost        one support vector regression (libsvm, through scikit-learn) a step
Guarantee   ends where labels repeat, at ``max_iter``, or where a regression was not solved in ``regression_steps``; the
            step of least objective is kept
Source      PhD 1.3.2 and 5.2; Zhang, Tsang and Kwok, ICML 2007
"""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning as UnsolvedRegression
from sklearn.svm import SVR

from kernelweave.foundation.array_types import Floats

# Borders whose loss is computed together.
BORDERS_HELD = 512


@dataclass(frozen=True)
class SvrRun:
    """The end of one run."""

    labels: Floats  # (n,) +1 and -1
    multipliers: Floats  # (n,) w . phi(x) is the kernel row times these
    bias: float
    history: tuple[float, ...]  # objective after every step
    objective: float  # the least of them
    converged: bool
    solved: bool = True  # whether every regression was solved to its tolerance

    @property
    def n_iter(self) -> int:
        """Steps taken."""
        return len(self.history)


@dataclass(frozen=True)
class _Regression:
    """Multipliers of a support vector regression on a centred kernel."""

    multipliers: Floats  # (n,) they add up to zero
    solved: bool


def iterative_svr(
    K: Floats,
    labels: Floats,
    *,
    C: float,
    limit: float,
    epsilon: float = 0.0,
    max_iter: int = 100,
    tol: float = 1e-5,
    regression_steps: int | None = None,
) -> SvrRun:
    """Alternate from ``labels`` until they repeat; the first sample ends on the side of -1.

    ``tol`` is the violation of the optimality conditions at which a regression is solved. One that is not solved after
    ``regression_steps`` steps of libsvm (None: any number) ends the run: labels that follow from it mean little.
    """
    y = np.array(labels, dtype=np.float64)
    visited = {labels.tobytes()}
    history: list[float] = []
    # Multipliers add up to zero, so that moving the origin changes the bias alone; libsvm keeps kernel values in single
    # precision, which large ones would not survive.
    means = K.mean(axis=0)
    centred = K - means
    centred -= means[:, None]
    centred += means.mean()
    best: tuple[float, Floats, Floats, float] | None = None
    converged = False
    solved = True
    while solved and not converged and len(history) < max_iter:
        regression = _regression(centred, y, SVR(kernel="precomputed", C=C, epsilon=epsilon, tol=tol), regression_steps)
        solved = regression.solved
        multipliers = regression.multipliers
        scores = centred @ multipliers
        bias = balanced_bias(scores, limit, epsilon)
        y = np.where(scores + bias > 0, 1.0, -1.0)
        loss = np.maximum(np.abs(y - scores - bias) - epsilon, 0.0)
        history.append(0.5 * float(multipliers @ scores) + C * float(loss.sum()))
        if best is None or history[-1] < best[0]:
            best = history[-1], y, multipliers, bias
        converged = solved and y.tobytes() in visited
        visited.add(y.tobytes())
    assert best is not None
    objective, y, multipliers, bias = best
    side = -1.0 if y[0] > 0 else 1.0
    bias -= float(means @ multipliers)
    return SvrRun(side * y, side * multipliers, side * bias, tuple(history), objective, converged, solved)


def _regression(centred: Floats, y: Floats, machine: SVR, most_steps: int | None) -> _Regression:
    """Return the regression of labels on a centred kernel, as far as it got."""
    machine.random_state = 0  # not used by the solver, but drawn from the global generator otherwise
    machine.max_iter = -1 if most_steps is None else most_steps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsolvedRegression)
        machine.fit(centred, y)
    multipliers = np.zeros(len(y))
    multipliers[machine.support_] = machine.dual_coef_[0]
    multipliers -= multipliers.mean()  # rounding
    return _Regression(multipliers, machine.fit_status_ == 0)


def balanced_bias(scores: Floats, limit: float, epsilon: float = 0.0) -> float:
    """Return the border halfway between two scores, of those that keep the balance, with the least loss."""
    n = len(scores)
    rising = np.sort(scores)
    least = max(1, int(np.ceil((n - limit) / 2.0)))
    places = np.arange(least, n - least + 1)
    borders = -0.5 * (rising[places - 1] + rising[places])
    losses = np.empty(len(borders))
    for start in range(0, len(borders), BORDERS_HELD):
        stop = start + BORDERS_HELD
        distances = np.abs(rising[None, :] + borders[start:stop, None])
        losses[start:stop] = np.maximum(np.abs(1.0 - distances) - epsilon, 0.0).sum(axis=1)
    return float(borders[int(np.argmin(losses))])
