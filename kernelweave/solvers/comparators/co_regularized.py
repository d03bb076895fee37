"""Co-regularised spectral clustering: eigenvectors of every view, drawn to those of the others.

Objective   pairwise: sum_v tr(U_v^T L_v U_v) + sum over pairs v < u of l_vu tr(U_v U_v^T U_u U_u^T), l_vu the mean of
            l_v and l_u. Centroid: the second sum is that of l_v tr(U_v U_v^T U* U*^T). Maximised over U_v, and U*, with
            at most k orthonormal columns
Input       matrices L_v as operators, a strength l_v for each
Cost        a sweep is one set of leading eigenvectors for each view, of L_v plus a matrix of rank k, or (V - 1) k
Guarantee   the objective never falls
Source      Kumar, Rai and Daume, NIPS 2011; PhD 1.2.3, (1.11)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelweave.foundation.array_types import Floats
from kernelweave.kernels.operator import KernelOperator
from kernelweave.solvers.spectral.subspaces import Subspace, gram_subspace, leading_subspace, overlap, stored_if_small

#: Vectors that a view is drawn to, each set with its strength.
Targets = list[tuple[float, Floats]]


@dataclass(frozen=True)
class CoRegularized:
    """Eigenvectors of every view, and the common ones of the centroid variant."""

    vectors: tuple[Floats, ...]  # V of shape (n, k)
    centroid: Floats | None  # (n, k)
    history: tuple[float, ...]  # the objective at the start and after every sweep
    converged: bool
    residual: float  # of the eigenvectors

    @property
    def embedding(self) -> Floats:
        """The centroid, or the vectors of all views side by side."""
        return np.hstack(self.vectors) if self.centroid is None else self.centroid

    @property
    def objective(self) -> float:
        """The objective at the end."""
        return self.history[-1]

    @property
    def n_iter(self) -> int:
        """Sweeps."""
        return len(self.history) - 1


def co_regularized(
    ops: Sequence[KernelOperator],
    strengths: Floats,
    *,
    n_vectors: int,
    centroid: bool = False,
    max_iter: int = 100,
    tol: float = 1e-5,
    on_step: Callable[[float], object] | None = None,
) -> CoRegularized:
    """Sweep over the views, from the eigenvectors of each by itself, until the objective rises by ``tol`` or less.

    ``tol`` is a share of the objective.
    """
    ops = [stored_if_small(op) for op in ops]
    subspaces = [leading_subspace(op, n_vectors) for op in ops]
    center = _consensus(subspaces, strengths, n_vectors) if centroid else None
    history = [_objective(ops, subspaces, strengths, center)]
    converged = False
    while not converged and len(history) <= max_iter:
        for v, op in enumerate(ops):
            added = _low_rank_factor(_targets(v, subspaces, strengths, center))
            subspaces[v] = leading_subspace(op, n_vectors, added, subspaces[v].block)
        if centroid:
            center = _consensus(subspaces, strengths, n_vectors)
        history.append(_objective(ops, subspaces, strengths, center))
        converged = history[-1] - history[-2] <= tol * abs(history[-1])
        if on_step is not None:
            on_step(history[-1])
    vectors = tuple(subspace.vectors for subspace in subspaces)
    residual = max(subspace.residual for subspace in subspaces)
    return CoRegularized(vectors, center, tuple(history), converged, residual)


def _targets(v: int, subspaces: Sequence[Subspace], strengths: Floats, center: Floats | None) -> Targets:
    """Return the vectors that view v is drawn to: the centroid, or those of every other view."""
    if center is not None:
        return [(float(strengths[v]), center)]
    pairs = 0.5 * (strengths[v] + strengths)
    return [(float(pairs[u]), subspace.vectors) for u, subspace in enumerate(subspaces) if u != v]


def _low_rank_factor(targets: Targets) -> Floats | None:
    """Return W with W W^T the sum of the targets' projections, each times its strength."""
    factors = [np.sqrt(strength) * vectors for strength, vectors in targets if strength > 0]
    return np.hstack(factors) if factors else None


def _consensus(subspaces: Sequence[Subspace], strengths: Floats, n_vectors: int) -> Floats:
    """Return U*, the leading eigenvectors of sum_v l_v U_v U_v^T; all views count the same where every l_v is zero."""
    shares = strengths if strengths.any() else np.ones_like(strengths)
    factors = [np.sqrt(share) * subspace.vectors for share, subspace in zip(shares, subspaces, strict=True)]
    return gram_subspace(np.hstack(factors), n_vectors).vectors


def _objective(
    ops: Sequence[KernelOperator], subspaces: Sequence[Subspace], strengths: Floats, center: Floats | None
) -> float:
    traces = sum(
        float(np.sum(subspace.vectors * op.matmat(subspace.vectors)))
        for op, subspace in zip(ops, subspaces, strict=True)
    )
    agreement = sum(
        strength * overlap(subspace.vectors, vectors)
        for v, subspace in enumerate(subspaces)
        for strength, vectors in _targets(v, subspaces, strengths, center)
    )
    return traces + (agreement if center is not None else 0.5 * agreement)  # every pair was met twice
