"""Exemplars from a convex mixture in the feature space of a kernel.

Objective   maximise sum_i p_i log sum_j q_j s_ij over the simplex, s_ij = exp(-beta ||phi(x_i) - phi(x_j)||^2)
Input       a KernelOperator, sample weights (p is proportional to them)
Cost        that of ``solve_priors`` on the samples that count; on a graph only its edges are kept
Guarantee   the priors are those of the optimum, to a gap of ``RANKING_GAP``, unless time runs out
Source      MSc 3.2.2, 4.2.3 and Alg. 12; Lashkari and Golland, NIPS 2007
"""

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.sharpness import feature_space_beta
from kernelweave.kernels.similarities import feature_space_similarities
from kernelweave.solvers.mixtures.priors import DROPPED_SHARE, solve_priors

# Optimality gap at which priors are known well enough to be ranked.
RANKING_GAP = 1e-6


def exemplars(
    op: KernelOperator,
    weights: Floats,
    count: int,
    *,
    deadline: float = np.inf,
    memory_limit: float = 2048,
    keeper: Keeper = NOTHING,
) -> Ints:
    """Return up to ``count`` samples with the largest priors, most likely first; ``memory_limit`` is in MiB."""
    if not weights.sum() > 0:
        return np.empty(0, dtype=np.intp)
    shares = weights / weights.sum()
    counted = np.flatnonzero(shares > 0)
    beta = feature_space_beta(op, shares, memory_limit / 2)
    S = feature_space_similarities(op, beta, counted, memory_limit)
    priors = solve_priors(S, shares[counted], tol=RANKING_GAP, deadline=deadline, keeper=keeper).values
    # Rounded, so that equal priors keep the order of the samples.
    ranked = np.argsort(-np.round(priors, 12), kind="stable")
    # A sample of almost no weight may keep a prior for itself alone; it is not a candidate.
    likely = np.count_nonzero(priors >= DROPPED_SHARE / len(counted))
    return counted[ranked[: min(count, likely)]]
