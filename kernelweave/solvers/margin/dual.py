"""The ratio of cluster variance to margin of a two-cluster labelling, on a stored kernel.

J(y) is the optimum of a support vector machine whose kernel is divided by the variance E(y) of the two clusters
(PhD 5.5, 5.11). Everything a change of one label touches is kept: cluster sums, multipliers, and the product of the
kernel with them. The next problem starts from the last one's solution.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave.backends import get_backend
from kernelweave.foundation.array_types import Floats

# Most steps of one solution: for every sample, and at least.
STEPS_PER_SAMPLE = 2000
LEAST_STEPS = 2_000_000
# Violation of the optimality conditions that ends the first round, and the smallest that is tried.
FIRST_VIOLATION = 1e-3
LAST_VIOLATION = 1e-12
# The least variance, as a share of the mean diagonal of the kernel.
LEAST_VARIANCE = 1e-12


def _dual_steps() -> Any:
    """Return the compiled steps on the dual: ``descend_near`` and ``release``."""
    steps = get_backend().margin_dual
    if steps is None:
        raise NotImplementedError("The default backend has no steps on the dual of a support vector machine.")
    return steps


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
    """Labels +1 and -1 on a stored kernel, and the solution of the dual as they change.

    Only ``flip`` changes labels, and only ``flip`` and ``solve`` change multipliers; what others see of them is
    read-only, and the kernel is never written to. A problem belongs to one thread; a ``copy`` may go to another.
    Between calls these hold, up to rounding:

    - multipliers b lie in [0, C] for samples labelled +1 and in [-C, 0] for the others, and add up to 0;
    - ``products`` is K @ b;
    - ``_sums`` is K times the indicator of the cluster +1, which has ``n_positive`` members; ``_within`` adds it up
      over that cluster, and ``_outward`` adds up the row sums of K over it. ``variance`` follows from these.
    """

    def __init__(self, K: Floats, C: float, labels: Floats, multipliers: Floats | None = None) -> None:
        self.K = K
        self.C = float(C)
        self.n_samples = len(K)
        self._steps = _dual_steps()
        self._trace = float(np.trace(K))
        self._row_sums = np.asarray(K.sum(axis=1))
        self._total = float(self._row_sums.sum())
        self._labels = np.array(labels, dtype=np.float64)
        self._multipliers = np.zeros(len(K)) if multipliers is None else np.array(multipliers, dtype=np.float64)
        self._products = self.K @ self._multipliers
        positive = self._labels > 0
        self.n_positive = int(np.count_nonzero(positive))
        self._sums = self.K @ positive.astype(np.float64)
        self._within = float(self._sums[positive].sum())
        self._outward = float(self._row_sums[positive].sum())

    @property
    def labels(self) -> Floats:
        """The labels y, +1 and -1, as they are now; a view that later flips change."""
        return _read_only(self._labels)

    @property
    def multipliers(self) -> Floats:
        """The signed multipliers b_i = y_i alpha_i, likewise."""
        return _read_only(self._multipliers)

    @property
    def products(self) -> Floats:
        """The product K @ b, likewise."""
        return _read_only(self._products)

    @property
    def variance(self) -> float:
        """E(y) of PhD (5.7), kept above zero: clusters of equal samples have none."""
        n = self.n_samples
        within_other = self._total - 2.0 * self._outward + self._within
        explained = self._within / max(self.n_positive, 1) + within_other / max(n - self.n_positive, 1)
        return max((self._trace - explained) / n, LEAST_VARIANCE * self._trace / n)

    def copy(self) -> "MarginProblem":
        """Return a problem that goes on from here by itself; the kernel is shared."""
        twin = object.__new__(MarginProblem)
        twin.__dict__.update(self.__dict__)
        twin._labels = self._labels.copy()
        twin._multipliers = self._multipliers.copy()
        twin._products = self._products.copy()
        twin._sums = self._sums.copy()
        return twin

    def flip(self, sample: int) -> None:
        """Move a sample to the other cluster; what its multiplier had goes to others, so that they stay feasible."""
        sign = -1.0 if self._labels[sample] > 0 else 1.0
        state = (self._labels, self._multipliers, self._products)
        self._steps.release(self.K, *state, self.C, self.variance, sample)
        self._within += self.K[sample, sample] + sign * 2.0 * self._sums[sample]
        self._outward += sign * self._row_sums[sample]
        self._sums += sign * self.K[sample]
        self.n_positive += int(sign)

    def solve(self, tol: float = 1e-6) -> MarginSolution:
        """Solve the dual to a gap of ``tol`` times the objective, from the present multipliers."""
        y = self._labels
        b = self._multipliers
        f = self._products
        scale = self.variance
        violation = FIRST_VIOLATION
        steps = 0
        most = max(STEPS_PER_SAMPLE * self.n_samples, LEAST_STEPS)
        while True:
            taken, top, bottom = self._steps.descend_near(self.K, y, b, f, self.C, scale, violation, most - steps)
            steps += taken
            bias = 0.5 * (top + bottom)
            scores = f / scale + bias
            half = 0.5 * float(b @ f) / scale
            dual = float(b @ y) - half
            gap = 2.0 * half + self.C * float(np.maximum(0.0, 1.0 - y * scores).sum()) - float(b @ y)
            if gap <= tol * abs(dual) or steps >= most or violation <= LAST_VIOLATION:
                return MarginSolution(dual, gap, float(bias), b.copy(), scores, scale, steps)
            violation *= 0.1


def _read_only(array: Floats) -> Floats:
    view = array.view()
    view.flags.writeable = False
    return view
