"""View weights in closed form: the minimum of sum_v w_v^p D_v over weights that add up to 1 (PhD 4.9 and 4.10)."""

import numpy as np

from kernelweave.foundation.array_types import Floats

#: Scatters closer than this, relatively, are equal.
EQUAL_SCATTERS = 1e-12
#: Exponents above this leave nothing but uniform weights, and powers of them underflow.
LARGEST_P = 100.0


def start_of_weights(p: float, view_weights: Floats, learned: bool) -> tuple[float, Floats, bool]:
    """Return exponent, first weights and whether they are learned; infinite p stands for equal weights that stay."""
    if np.isinf(p):
        return 1.0, np.full(len(view_weights), 1.0 / len(view_weights)), False
    return p, view_weights, learned


def best_view_weights(scatters: Floats, p: float) -> Floats:
    """Return the weights that minimise sum_v w_v^p D_v on the simplex, for p >= 1.

    With logarithms, so that no power overflows. A scatter of zero takes all the weight, several share it. Of negative
    ones, which kernels that are not positive semidefinite can have, the least takes all: the minimum lies there.
    """
    least = float(scatters.min())
    if least < 0 and p > 1:
        return np.eye(len(scatters))[int(np.argmin(scatters))]
    if least <= 0:
        first = scatters <= least + EQUAL_SCATTERS * abs(least)
        return np.asarray(first / np.count_nonzero(first))
    behind = np.log(scatters) - np.log(least)
    behind[behind <= EQUAL_SCATTERS] = 0.0
    if p == 1:
        logs = np.where(behind > 0, -np.inf, 0.0)
    else:
        with np.errstate(over="ignore"):
            logs = -behind / (p - 1.0)
    weights = np.exp(logs)
    return np.asarray(weights / weights.sum())
