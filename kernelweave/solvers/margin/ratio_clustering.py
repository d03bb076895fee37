"""Ratio-based multiple kernel clustering: two clusters and the parameters of a kernel, in turn.

Objective   J(theta, y) = min over w, b, xi of E(theta, y) ||w||^2 / 2 + C sum xi, a support vector machine on the
            labels y whose margin is measured in units of the clusters' variance E; |sum y| <= ``limit``
Input       a family of kernels with parameters theta, labels +1 and -1
Cost        an outer step solves up to 2 ``n_moves`` duals that differ by one label, each from the last one's solution,
            and a few that differ by a gradient step
Guarantee   J never rises; the balance holds at every step; every J is known to ``dual_tol``, relatively
Source      PhD 5.1, Alg. 5.1 and 5.2; Tzortzis and Likas, ECML PKDD 2014
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.threads import parallel_map
from kernelweave.solvers.margin.dual import MarginProblem, MarginSolution

# The share of the promised fall of J that a gradient step must reach, and halvings before it is given up.
ARMIJO = 1e-4
HALVINGS = 30
# Starts are equally good if their objectives differ by less than this, relatively.
EQUAL_STARTS = 1e-3
# Draws for every pair wanted, where some have to be drawn again.
DRAWS_PER_PAIR = 10


class KernelFamily(Protocol):
    """Kernels with parameters theta."""

    def matrix(self, theta: Floats) -> Floats:
        """Return the kernel matrix."""

    def slopes(self, theta: Floats, multipliers: Floats, labels: Floats) -> tuple[Floats, Floats]:
        """Return the derivatives of b^T K b and of E by each parameter."""

    def project(self, theta: Floats) -> Floats:
        """Return the nearest admissible parameters."""

    def step_length(self, theta: Floats) -> float:
        """Return the length of a first step."""


@dataclass(frozen=True)
class RatioRun:
    """The end of one run."""

    labels: Floats  # (n,) +1 and -1
    theta: Floats
    solution: MarginSolution
    history: tuple[float, ...]  # J at the start and after every outer step
    converged: bool
    n_duals: int  # problems solved

    @property
    def objective(self) -> float:
        """J at the end."""
        return self.history[-1]

    @property
    def n_iter(self) -> int:
        """Outer steps."""
        return len(self.history) - 1


def ratio_clustering(
    family: KernelFamily,
    theta: Floats,
    labels: Floats,
    *,
    C: float,
    limit: float,
    n_moves: int = 30,
    learned: bool = True,
    max_iter: int = 100,
    tol: float = 1e-4,
    dual_tol: float = 1e-5,
    on_step: Callable[[float], object] | None = None,
) -> RatioRun:
    """Descend from ``theta`` and ``labels`` until labels stay and J falls by at most ``tol * J``.

    The first sample ends on the side of -1.
    """
    problem = MarginProblem(family.matrix(theta), C, labels)
    here = problem.solve(dual_tol)
    history = [here.objective]
    n_duals = 1
    converged = False
    length = 1.0
    while not converged and len(history) <= max_iter:
        if learned:
            theta, problem, here, length, solved = _gradient_step(family, theta, problem, here, length, dual_tol)
            n_duals += solved
        moved, solution, solved = _best_labels(problem, here, limit, n_moves, dual_tol)
        n_duals += solved
        stayed = moved is problem
        problem = moved
        here = solution
        fall = history[-1] - here.objective
        history.append(min(here.objective, history[-1]))
        converged = stayed and fall <= tol * abs(here.objective)
        if on_step is not None:
            on_step(history[-1])
    ends = np.array(problem.labels)
    if ends[0] > 0:  # labels and decision change sides together
        ends = -ends
        here = replace(here, multipliers=-here.multipliers, scores=-here.scores, bias=-here.bias)
    return RatioRun(ends, theta, here, tuple(history), converged, n_duals)


def _gradient_step(
    family: KernelFamily, theta: Floats, problem: MarginProblem, here: MarginSolution, length: float, dual_tol: float
) -> tuple[Floats, MarginProblem, MarginSolution, float, int]:
    """Return parameters after one projected gradient step that lowers J enough, or the same ones."""
    gradient = ratio_gradient(family, theta, problem, here)
    size = float(np.linalg.norm(gradient))
    if size == 0.0:
        return theta, problem, here, length, 0
    for tried in range(HALVINGS):
        step = length * family.step_length(theta) / size
        ahead = family.project(theta - step * gradient)
        expected = float(gradient @ (theta - ahead))
        if not expected > 0:
            return theta, problem, here, length, tried
        there = MarginProblem(family.matrix(ahead), problem.C, problem.labels, problem.multipliers)
        solution = there.solve(dual_tol)
        if solution.objective + solution.gap <= here.objective - ARMIJO * expected:
            return ahead, there, solution, 2.0 * length, tried + 1
        length *= 0.5
    return theta, problem, here, length, HALVINGS


def ratio_gradient(family: KernelFamily, theta: Floats, problem: MarginProblem, at: MarginSolution) -> Floats:
    """Return the derivatives of J by the parameters, PhD (5.13)."""
    quadratic = float(problem.multipliers @ problem.products)
    by_kernel, by_variance = family.slopes(theta, problem.multipliers, problem.labels)
    return (quadratic * by_variance / at.variance - by_kernel) / (2.0 * at.variance)


def _best_labels(
    problem: MarginProblem, here: MarginSolution, limit: float, n_moves: int, dual_tol: float
) -> tuple[MarginProblem, MarginSolution, int]:
    """Return the best labelling on two paths, each moving samples out of one cluster (Alg. 5.2)."""
    total = float(problem.labels.sum())
    tasks = [(sign, min(n_moves, int((limit + sign * total) // 2))) for sign in (1.0, -1.0)]
    paths = parallel_map(lambda task: _path(problem, here, *task, dual_tol), tasks)
    best = problem
    solution = here
    solved = 0
    for end, at_end, count in paths:
        solved += count
        if at_end.objective + at_end.gap < solution.objective:
            best = end
            solution = at_end
    return best, solution, solved


def _path(
    start: MarginProblem, here: MarginSolution, sign: float, n_moves: int, dual_tol: float
) -> tuple[MarginProblem, MarginSolution, int]:
    """Move samples out of the cluster ``sign`` one by one, the least confident first; return the best labelling."""
    problem = start.copy()
    now = here
    best = start
    solution = here
    may_move = problem.labels == sign
    for _ in range(n_moves):
        confidence = np.where(may_move, problem.labels * now.scores, np.inf)
        sample = int(np.argmin(confidence))
        if not may_move[sample]:
            break
        may_move[sample] = False
        problem.flip(sample)
        now = problem.solve(dual_tol)
        if now.objective < solution.objective:
            best = problem.copy()
            solution = now
    return best, solution, n_moves


def best_start(K: Floats, candidates: Sequence[Floats], C: float, dual_tol: float = 1e-5) -> Floats:
    """Return the labelling of least J, the first of those that are nearly as good."""
    distinct = list({labels.tobytes(): labels for labels in candidates}.values())
    values = np.array(list(parallel_map(lambda y: MarginProblem(K, C, y).solve(dual_tol).objective, distinct)))
    return distinct[int(np.argmax(values <= values.min() * (1.0 + EQUAL_STARTS)))]


def balanced_pairs(K: Floats, rng: np.random.Generator, count: int, limit: float) -> list[Floats]:
    """Return labellings by the nearer of two samples: the first drawn at random, the second far from it.

    A pair whose clusters differ in size by more than ``limit`` is drawn again, some times; then its border moves to
    where they do not. Labellings with a border that was moved can look good and end badly, so that they are used only
    where there are no others.
    """
    n = len(K)
    diag = np.diagonal(K)
    least = int(np.ceil((n - limit) / 2.0))
    balanced: list[Floats] = []
    shifted: list[Floats] = []
    for _ in range(DRAWS_PER_PAIR * count):
        first = int(rng.integers(n))
        distances = np.sqrt(np.maximum(diag + diag[first] - 2.0 * K[first], 0.0))
        cumulative = np.cumsum(distances)
        second = min(int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")), n - 1)
        # Difference of squared distances, positive where a sample is nearer to the first.
        preference = (diag[second] - 2.0 * K[second]) - (diag[first] - 2.0 * K[first])
        natural = int(np.count_nonzero(preference > 0))
        size = int(np.clip(natural, least, n - least))
        labels = -np.ones(n)
        labels[np.argsort(-np.round(preference, 12), kind="stable")[:size]] = 1.0
        # The first sample is always on the same side.
        (balanced if size == natural else shifted).append(-labels * labels[0])
        if len(balanced) == count:
            break
    return balanced or shifted[:count]
