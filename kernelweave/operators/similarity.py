"""Similarities exp(-beta ||phi(x_i) - phi(x_j)||^2) of a convex mixture: products with them, and fewer columns.

A stored kernel gives a stored matrix. On a graph all pairs without an edge have u_i u_j, with u = exp(-beta K_ii), so
that the edges alone are kept: S = u u^T + C, with C the difference where there is an edge.
"""

from abc import ABC, abstractmethod

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation._typing import Bools, Floats, Ints
from kernelweave.operators._base import KernelOperator
from kernelweave.operators._graph import GraphKernel


class Similarities(ABC):
    """The (n, m) similarities of all samples to the m exemplars still alive."""

    @abstractmethod
    def mix(self, priors: Floats) -> Floats:
        """Return S @ priors, the mixture at every sample."""

    @abstractmethod
    def pull(self, ratios: Floats) -> Floats:
        """Return S^T @ ratios, one number per exemplar."""

    @abstractmethod
    def keep(self, chosen: Bools) -> "Similarities":
        """Return the columns chosen by a mask."""


class StoredSimilarities(Similarities):
    """A stored matrix."""

    def __init__(self, S: Floats) -> None:
        self.S = S

    def mix(self, priors: Floats) -> Floats:
        """Return S @ priors."""
        return self.S @ priors

    def pull(self, ratios: Floats) -> Floats:
        """Return S^T @ ratios."""
        return self.S.T @ ratios

    def keep(self, chosen: Bools) -> "StoredSimilarities":
        """Return the chosen columns."""
        return StoredSimilarities(self.S[:, chosen])


class EdgeSimilarities(Similarities):
    """The product u v^T plus a sparse part."""

    def __init__(self, u: Floats, v: Floats, C: sp.csr_array) -> None:
        self.u, self.v, self.C = u, v, C

    def mix(self, priors: Floats) -> Floats:
        """Return u (v . priors) + C @ priors."""
        return self.u * (self.v @ priors) + self.C @ priors

    def pull(self, ratios: Floats) -> Floats:
        """Return v (u . ratios) + C^T @ ratios."""
        return self.v * (self.u @ ratios) + self.C.T @ ratios

    def keep(self, chosen: Bools) -> "EdgeSimilarities":
        """Return the chosen columns."""
        return EdgeSimilarities(self.u, self.v[chosen], self.C[:, np.flatnonzero(chosen)])


def similarities(op: KernelOperator, beta: float, columns: Ints) -> Similarities:
    """Return the similarities of all samples to the chosen ones."""
    # An indefinite kernel may give negative squares of distances; they count as zero.
    diag = np.maximum(op.diag(), 0.0)
    if isinstance(op, GraphKernel):
        u = np.exp(-beta * diag)
        edges = op.A.tocoo()
        apart = diag[edges.row] + diag[edges.col]
        values = np.exp(-beta * np.maximum(apart - 2.0 * edges.data, 0.0)) - np.exp(-beta * apart)
        return EdgeSimilarities(u, u[columns], sp.csr_array((values, (edges.row, edges.col)), op.shape)[:, columns])
    n, step = op.n_samples, max(1, 2**22 // max(1, len(columns)))
    S = np.empty((n, len(columns)))
    for lo in range(0, n, step):
        part = slice(lo, min(lo + step, n))
        gaps = diag[part][:, None] + diag[columns][None, :] - 2.0 * op.block(part, columns)
        np.maximum(gaps, 0.0, out=gaps)
        np.exp(np.multiply(gaps, -beta, out=gaps), out=S[part])
    return StoredSimilarities(S)
