"""The sharpness beta_0 of a convex mixture: how steep components have to be for divergences of their size.

beta_0 = m H(p) / sum_ij p_i d(x_i, x_j) over the m samples that have a share p_i above zero, with H the entropy: PhD
(3.6), with weights MSc (4.11). Equal shares give n^2 log n over the sum of all divergences.
"""

from functools import singledispatch

import numpy as np

from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.memory import rows_within
from kernelweave.kernels.divergences import Divergence, KernelDivergence
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.operator import KernelOperator

# Rows of divergences added up at a time.
BLOCK_ROWS = 1024
# Arrays of that many rows that are alive at a time.
ROWS_HELD = 4


def reference_beta(divergence: Divergence, shares: Floats, room: float = np.inf) -> float:
    """Return beta_0 from the divergences themselves: 0 where one is infinite, infinity where all are zero.

    ``room`` MiB may be taken by rows of divergences.
    """
    counted = np.flatnonzero(shares > 0)
    if len(counted) == 1:
        return np.inf  # a single sample is its own exemplar at any beta
    total = 0.0
    held = rows_within(room, ROWS_HELD * 8 * len(counted), BLOCK_ROWS)
    for start in range(0, len(counted), held):
        rows = counted[start : start + held]
        total += float(shares[rows] @ divergence.block(rows, counted).sum(axis=1))
    return len(counted) * _entropy(shares[counted]) / total if total > 0 else np.inf


@singledispatch
def feature_space_beta(op: KernelOperator, shares: Floats, room: float = np.inf) -> float:
    """Return beta_0 in the feature space of a kernel, finite in any case; ``room`` as above.

    A kind of kernel that has a cheaper way registers its own function here.
    """
    if op.psd:
        return kernel_beta(op, shares)
    # Squared distances below zero, as an indefinite kernel may have, count as zero: products cannot say where they are.
    beta = reference_beta(KernelDivergence(op), shares, room)
    return beta if np.isfinite(beta) else _beta_without_scatter(op)


def kernel_beta(op: KernelOperator, shares: Floats) -> float:
    """Return beta_0 from one product with the kernel; no squared distance may be negative."""
    counted = shares > 0
    n = int(counted.sum())
    diag = op.backend.host(op.diag())
    cross = op.backend.dot(op.backend.array(shares), op.matmat(counted.astype(np.float64)[:, None])[:, 0])
    total = n * float(shares @ diag) + float(diag[counted].sum()) - 2.0 * cross
    return n * _entropy(shares[counted]) / total if total > 0 else _beta_without_scatter(op)


@feature_space_beta.register
def graph_beta(op: GraphKernel, shares: Floats, room: float = np.inf) -> float:
    """Return beta_0 on a graph from its edges alone; squared distances below zero count as zero."""
    counted = shares > 0
    n = int(counted.sum())
    diag = np.maximum(op.diag(), 0.0)
    edges = op.A.tocoo()
    without_edge = diag[edges.row] + diag[edges.col]
    saved = np.minimum(2.0 * edges.data, without_edge)  # by which the edge brings its nodes together
    saved[~counted[edges.col]] = 0.0
    total = n * float(shares @ diag) + float(diag[counted].sum()) - float(shares[edges.row] @ saved)
    return n * _entropy(shares[counted]) / total if total > 0 else _beta_without_scatter(op)


def _beta_without_scatter(op: KernelOperator) -> float:
    """Return a sharpness for samples that are all equal, where any will do."""
    return 1.0 / (op.scale() or 1.0)


def _entropy(shares: Floats) -> float:
    return -float(shares @ np.log(shares))
