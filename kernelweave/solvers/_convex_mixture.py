"""Exemplars from a convex mixture: one component per sample, only the priors to learn.

Objective   maximise sum_i p_i log sum_j q_j s_ij over the simplex, s_ij = exp(-beta ||phi(x_i) - phi(x_j)||^2)
Input       a KernelOperator, sample weights (p is proportional to them)
Cost        O(n^2) per iteration while all priors live, O(n m) once m are left; stores the (n, m)
            similarities, or on a graph those of its edges
Guarantee   the likelihood never falls; priors below 1e-3 / n are dropped, as in the source
Source      MSc 3.2.2, 4.2.3 and Alg. 12; Lashkari and Golland, NIPS 2007
"""

import time

import numpy as np

from kernelweave.foundation._typing import Floats, Ints
from kernelweave.operators import KernelOperator
from kernelweave.operators.similarity import similarities

# Priors below this share of the uniform prior are dropped.
DROP = 1e-3
# The order of the largest priors must hold for this many iterations.
STEADY = 10
# Change of every prior, relative to the largest, below which the priors have settled.
SETTLED = 1e-4


def exemplars(
    op: KernelOperator, weights: Floats, count: int, *, max_iter: int = 2000, deadline: float = np.inf
) -> Ints:
    """Return up to ``count`` samples with the largest priors, most likely first.

    Runs until the order of the ``count`` largest priors has held for some iterations (the stopping rule of MSc
    3.2.2) and the priors have nearly settled, or until ``deadline`` (of ``time.monotonic``).
    """
    if not weights.sum() > 0:
        return np.empty(0, dtype=np.intp)
    shares = weights / weights.sum()
    alive = np.flatnonzero(shares > 0)
    S, least = similarities(op, reference_beta(op, shares), alive), DROP / len(alive)
    priors = np.full(len(alive), 1.0 / len(alive))
    leaders, held = np.empty(0, dtype=np.intp), 0
    for _ in range(max_iter):
        mixture = S.mix(priors)
        ratios = np.divide(shares, mixture, out=np.zeros_like(shares), where=(shares > 0) & (mixture > 0))
        updated = priors * S.pull(ratios)
        change = float(np.max(np.abs(updated - priors)) / updated.max())
        priors = np.where(updated >= least, updated, 0.0)
        priors /= priors.sum()
        now = alive[np.argsort(-priors, kind="stable")[: min(count, np.count_nonzero(priors))]]
        held = held + 1 if np.array_equal(now, leaders) else 0
        leaders = now
        if (held >= STEADY and change < SETTLED) or time.monotonic() > deadline:
            break
        living = priors > 0
        if np.count_nonzero(living) * 2 <= len(living):  # a smaller copy pays only now and then
            S, alive, priors = S.keep(living), alive[living], priors[living]
    return leaders


def reference_beta(op: KernelOperator, shares: Floats) -> float:
    """Return beta_0 of MSc (4.11) over the samples that count.

    Their number times the entropy of the shares, over the weighted sum of squared distances.
    """
    counted = shares > 0
    n, diag = int(counted.sum()), op.diag()
    entropy = -float(shares[counted] @ np.log(shares[counted]))
    cross = float(shares @ op.matmat(counted.astype(np.float64)[:, None])[:, 0])
    total = n * float(shares @ diag) + float(diag[counted].sum()) - 2.0 * cross
    return n * entropy / total if total > 0 else 1.0 / (op.scale() or 1.0)
