"""The ratio of cluster variance to margin of a two-cluster labelling, on a stored kernel.

J(y) is the optimum of a support vector machine whose kernel is divided by the variance E(y) of the two clusters
(PhD 5.5, 5.11). Everything a change of one label touches is kept: cluster sums, multipliers, and the product of the
kernel with them. The next problem starts from the last one's solution.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from kernelweave.foundation.array_types import Floats

# Most steps of one solution: for every sample, and at least.
STEPS = 2000
LEAST_STEPS = 2_000_000
# Violation of the optimality conditions that ends the first round, and the smallest that is tried.
FIRST = 1e-3
LAST = 1e-12
# The least variance, as a share of the mean diagonal of the kernel.
FLOOR = 1e-12


@dataclass(frozen=True)
class MarginSolution:
    """The optimum for one labelling, and the proof of it."""

    objective: float  # of the dual: J is at least this
    gap: float  # between primal and dual: J is at most objective + gap
    bias: float
    multipliers: Floats  # (n,) y_i alpha_i
    scores: Floats  # (n,) decision values; y times them is the confidence in a label
    variance: float  # E(y)
    steps: int


class MarginProblem:
    """Labels +1 and -1 on a stored kernel, and the solution of the dual as they change."""

    def __init__(self, K: Floats, C: float, labels: Floats, multipliers: Floats | None = None) -> None:
        self.K = K
        self.C = float(C)
        self.n = len(K)
        self._engine: Any = import_module("kernelweave.backends.compiled.margin_dual")
        self._trace = float(np.trace(K))
        rows = np.asarray(K.sum(axis=1))
        self._rows = rows
        self._total = float(rows.sum())
        self.y = np.array(labels, dtype=np.float64)
        self.b = np.zeros(self.n) if multipliers is None else np.array(multipliers, dtype=np.float64)
        self.f = self.K @ self.b
        inside = self.y > 0
        self.size = int(np.count_nonzero(inside))  # of the cluster +1
        self._sums = self.K @ inside.astype(np.float64)  # over the cluster +1, for every sample
        self._within = float(self._sums[inside].sum())
        self._outward = float(rows[inside].sum())

    @property
    def variance(self) -> float:
        """E(y) of PhD (5.7), kept above zero: clusters of equal samples have none."""
        other = self._total - 2.0 * self._outward + self._within
        parts = self._within / max(self.size, 1) + other / max(self.n - self.size, 1)
        return max((self._trace - parts) / self.n, FLOOR * self._trace / self.n)

    def copy(self) -> "MarginProblem":
        """Return a problem that goes on from here by itself; the kernel is shared."""
        twin = object.__new__(MarginProblem)
        twin.__dict__.update(self.__dict__)
        twin.y = self.y.copy()
        twin.b = self.b.copy()
        twin.f = self.f.copy()
        twin._sums = self._sums.copy()
        return twin

    def flip(self, sample: int) -> None:
        """Move a sample to the other cluster; the multipliers stay feasible."""
        leaving = self.y[sample] > 0
        self._engine.release(self.K, self.y, self.b, self.f, self.C, self.variance, sample)
        sign = -1.0 if leaving else 1.0
        self._within += self.K[sample, sample] + sign * 2.0 * self._sums[sample]
        self._outward += sign * self._rows[sample]
        self._sums += sign * self.K[sample]
        self.size += int(sign)

    def solve(self, tol: float = 1e-6) -> MarginSolution:
        """Solve the dual to a gap of ``tol`` times the objective."""
        scale = self.variance
        aim = FIRST
        steps = 0
        most = max(STEPS * self.n, LEAST_STEPS)
        while True:
            taken, top, bottom = self._engine.descend_near(
                self.K, self.y, self.b, self.f, self.C, scale, aim, most - steps
            )
            steps += taken
            bias = 0.5 * (top + bottom)
            scores = self.f / scale + bias
            half = 0.5 * float(self.b @ self.f) / scale
            dual = float(self.b @ self.y) - half
            gap = 2.0 * half + self.C * float(np.maximum(0.0, 1.0 - self.y * scores).sum()) - float(self.b @ self.y)
            if gap <= tol * abs(dual) or steps >= most or aim <= LAST:
                return MarginSolution(dual, gap, float(bias), self.b.copy(), scores, scale, steps)
            aim *= 0.1
