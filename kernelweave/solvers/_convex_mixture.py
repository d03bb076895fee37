"""Exemplars from a convex mixture: one component per sample, only the priors to learn.

Objective   maximise sum_i p_i log sum_j q_j s_ij over the simplex, s_ij = exp(-beta ||phi(x_i) - phi(x_j)||^2)
Input       a KernelOperator, sample weights (p is proportional to them)
Cost        O(n^2) per iteration while all priors live, O(n m) once m are left; stores the (n, m)
            similarities, or on a graph those of its edges
Guarantee   the likelihood never falls; priors below 1e-3 / n are dropped, as in the source
Source      MSc 3.2.2, 4.2.3 and Alg. 12; Lashkari and Golland, NIPS 2007
"""

import numpy as np

from kernelweave.foundation._typing import Floats, Ints
from kernelweave.operators import KernelOperator
from kernelweave.operators.similarity import similarities

# Priors below this share of the uniform prior are dropped.
DROP = 1e-3
# The order of the largest priors must hold for this many iterations.
STEADY = 10
# Relative change of every kept prior below which the priors have settled.
SETTLED = 1e-6


def exemplars(op: KernelOperator, weights: Floats, count: int, *, max_iter: int = 2000) -> Ints:
    """Return up to ``count`` samples with the largest priors, most likely first.

    Runs until the order of the ``count`` largest priors has held for some iterations (the stopping rule of MSc
    3.2.2) and the priors have nearly settled.
    """
    shares = weights / weights.sum()
    alive = np.flatnonzero(shares > 0)
    S = similarities(op, reference_beta(op, shares), alive)
    priors = np.full(len(alive), 1.0 / len(alive))
    leaders, held = np.empty(0, dtype=np.intp), 0
    for _ in range(max_iter):
        updated = priors * S.pull(shares / S.mix(priors))
        change = float(np.max(np.abs(updated - priors) / updated.max()))
        keep = updated >= DROP / len(shares)
        if not keep.all():
            S, alive, updated = S.keep(keep), alive[keep], updated[keep]
        priors = updated / updated.sum()
        now = alive[np.argsort(-priors, kind="stable")[:count]]
        held = held + 1 if np.array_equal(now, leaders) else 0
        leaders = now
        if held >= STEADY and change < SETTLED:
            break
    return leaders


def reference_beta(op: KernelOperator, shares: Floats) -> float:
    """Return beta_0 of MSc (4.11): n times the entropy of the shares over the weighted sum of squared distances."""
    used = shares[shares > 0]
    n, diag = len(shares), op.diag()
    entropy = -float(used @ np.log(used))
    cross = float(shares @ op.matmat(np.ones((n, 1)))[:, 0])
    total = n * float(shares @ diag) + float(diag.sum()) - 2.0 * cross
    return n * entropy / total if total > 0 else 1.0
