"""Exemplars from a convex mixture in the feature space of a kernel.

Objective   maximise sum_i p_i log sum_j q_j s_ij over the simplex, s_ij = exp(-beta ||phi(x_i) - phi(x_j)||^2)
Input       a KernelOperator, sample weights (p is proportional to them)
Cost        that of ``solve_priors`` on the samples that count; on a graph only its edges are kept
Guarantee   the priors are those of the optimum, to a gap of ``TOL``, unless time runs out
Source      MSc 3.2.2, 4.2.3 and Alg. 12; Lashkari and Golland, NIPS 2007
"""

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.kernels.divergences import Divergence, KernelDivergence
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.similarities import graph_similarities, similarities
from kernelweave.solvers.mixtures.priors import DROP, solve_priors

# Gap at which the priors are settled well enough to be ranked.
TOL = 1e-6
# Rows of divergences added up at a time.
STEP = 1024


def exemplars(
    op: KernelOperator, weights: Floats, count: int, *, deadline: float = np.inf, memory_limit: float = 2048
) -> Ints:
    """Return up to ``count`` samples with the largest priors, most likely first; ``memory_limit`` is in MiB."""
    if not weights.sum() > 0:
        return np.empty(0, dtype=np.intp)
    shares = weights / weights.sum()
    alive = np.flatnonzero(shares > 0)
    if isinstance(op, GraphKernel):
        S = graph_similarities(op, graph_beta(op, shares), alive)
    else:
        # Squares below zero, as an indefinite kernel may have, count as zero; only the divergences themselves tell.
        beta = kernel_beta(op, shares) if op.psd else _finite_beta(op, shares)
        S = similarities(KernelDivergence(op), beta, alive, memory_limit)
    found = solve_priors(S, shares[alive], tol=TOL, deadline=deadline).values
    # Rounded, so that equal priors keep the order of the samples.
    ranked = np.argsort(-np.round(found, 12), kind="stable")
    # A sample of next to no weight may keep a prior of its own; it is no candidate.
    return alive[ranked[: min(count, np.count_nonzero(found >= DROP / len(alive)))]]


def kernel_beta(op: KernelOperator, shares: Floats) -> float:
    """Return beta_0 of MSc (4.11) over the samples that count, from one product with the kernel.

    Their number times the entropy of the shares, over the weighted sum of squared distances.
    """
    counted = shares > 0
    n = int(counted.sum())
    diag = op.diag()
    cross = float(shares @ op.matmat(counted.astype(np.float64)[:, None])[:, 0])
    total = n * float(shares @ diag) + float(diag[counted].sum()) - 2.0 * cross
    return n * _entropy(shares[counted]) / total if total > 0 else 1.0 / (op.scale() or 1.0)


def graph_beta(op: GraphKernel, shares: Floats) -> float:
    """Return the same on a graph, from its edges alone; squares below zero count as zero."""
    counted = shares > 0
    n = int(counted.sum())
    diag = np.maximum(op.diag(), 0.0)
    edges = op.A.tocoo()
    apart = diag[edges.row] + diag[edges.col]
    saved = np.minimum(2.0 * edges.data, apart)  # by which the edge brings its nodes together
    saved[~counted[edges.col]] = 0.0
    total = n * float(shares @ diag) + float(diag[counted].sum()) - float(shares[edges.row] @ saved)
    return n * _entropy(shares[counted]) / total if total > 0 else 1.0 / (op.scale() or 1.0)


def reference_beta(divergence: Divergence, shares: Floats) -> float:
    """Return beta_0 of PhD (3.6), with weights MSc (4.11), from the divergences themselves; 0 where one is infinite."""
    counted = np.flatnonzero(shares > 0)
    if len(counted) == 1:
        return np.inf  # a single sample is its own exemplar at any beta
    total = 0.0
    for lo in range(0, len(counted), STEP):
        rows = counted[lo : lo + STEP]
        total += float(shares[rows] @ divergence.block(rows, counted).sum(axis=1))
    return len(counted) * _entropy(shares[counted]) / total if total > 0 else np.inf


def _finite_beta(op: KernelOperator, shares: Floats) -> float:
    found = reference_beta(KernelDivergence(op), shares)
    return found if np.isfinite(found) else 1.0 / (op.scale() or 1.0)


def _entropy(shares: Floats) -> float:
    return -float(shares @ np.log(shares))
