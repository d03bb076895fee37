"""Co-trained spectral clustering: every view's similarities are projected on the eigenvectors of the others.

Objective   none. S_v = sym(sum over u != v of E_u E_u^T K_v), K_v the kernel itself in every round; E_v are then
            the leading eigenvectors of D^-1/2 S_v D^-1/2, D_ii = sum_j |S_ij|. What is recorded is the mean agreement
            of two views, tr(E_v E_v^T E_u E_u^T) over the number of vectors
Input       kernels, and the same divided by degrees, for the first vectors
Cost        a round is one product of every kernel with (V - 1) k vectors, and O(n^2 V k) for the degrees. S_v has rank
            2 (V - 1) k and is kept as factors
Guarantee   none; the order of the views does not matter
Source      Kumar and Daume, ICML 2011; PhD 1.2.3
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.linalg import eigh

from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.checkpoints import NOTHING, Keeper, made
from kernelweave.foundation.memory import batches_within
from kernelweave.foundation.threads import for_ranges, single_threaded_blas
from kernelweave.kernels.operator import KernelOperator
from kernelweave.solvers.spectral.subspaces import Subspace, leading_subspace, overlap, significant, stored_if_small

# Rows of S_v formed together.
ROWS = 256
# Arrays of that many rows that are alive at a time.
ROWS_HELD = 3


@dataclass(frozen=True)
class CoTrained:
    """Eigenvectors of every view after some rounds."""

    vectors: tuple[Floats, ...]  # V of shape (n, k)
    history: tuple[float, ...]  # mean agreement at the start and after every round
    converged: bool
    residual: float  # of the first eigenvectors; later ones are exact except for rounding

    @property
    def embedding(self) -> Floats:
        """The vectors of all views side by side."""
        return np.hstack(self.vectors)

    @property
    def n_iter(self) -> int:
        """Rounds."""
        return len(self.history) - 1


def co_trained(
    kernels: Sequence[KernelOperator],
    normalised: Sequence[KernelOperator],
    *,
    n_vectors: int,
    max_iter: int = 5,
    tol: float = 1e-4,
    room: float = np.inf,
    work: float = np.inf,
    keeper: Keeper = NOTHING,
    on_step: Callable[[float], object] | None = None,
) -> CoTrained:
    """Take rounds until the subspaces turn by at most ``tol``: one less their mean agreement with those before.

    ``room`` MiB may be used besides the kernels, and ``work`` MiB by a search for eigenvectors.
    """
    known = keeper.known()
    if known is None:
        stored = (stored_if_small(op, room) for op in normalised)
        subspaces = [leading_subspace(op, n_vectors, room=room, work=work) for op in stored]
        residual = max(subspace.residual for subspace in subspaces)
        history = [mean_agreement(subspaces)]
    else:
        subspaces = [made(Subspace, each) for each in known["subspaces"]]
        residual = known["residual"]
        history = known["history"]
    converged = known is not None and known["converged"]
    while not converged and len(history) <= max_iter:
        before = subspaces
        if len(subspaces) > 1:
            subspaces = [_projected(op, before[:v] + before[v + 1 :], n_vectors, room) for v, op in enumerate(kernels)]
        history.append(mean_agreement(subspaces))
        kept = [agreement(one, other) for one, other in zip(before, subspaces, strict=True)]
        converged = 1.0 - float(np.mean(kept)) <= tol
        keeper.keep(dict, subspaces=subspaces, residual=residual, history=history, converged=converged)
        if on_step is not None:
            on_step(history[-1])
    return CoTrained(tuple(subspace.vectors for subspace in subspaces), tuple(history), converged, residual)


def agreement(one: Subspace, other: Subspace) -> float:
    """Return the share of directions two subspaces have in common, between 0 and 1."""
    size = float(np.sqrt(one.rank * other.rank))
    return overlap(one.vectors, other.vectors) / size if size else float(one.rank == other.rank)


def mean_agreement(subspaces: Sequence[Subspace]) -> float:
    """Return the mean agreement of two of the subspaces; 1 where there is one."""
    pairs = [agreement(one, other) for one, other in combinations(subspaces, 2)]
    return float(np.mean(pairs)) if pairs else 1.0


def _projected(op: KernelOperator, others: Sequence[Subspace], count: int, room: float) -> Subspace:
    """Return the leading eigenvectors of S = (E A^T + A E^T) / 2 divided by degrees, A = K E."""
    E = np.hstack([other.vectors for other in others])
    A = op.matmat(E)
    degrees = absolute_degrees(E, A, room)
    root = np.sqrt(np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0))
    q = E.shape[1]
    with single_threaded_blas():
        Q, R = np.linalg.qr(root[:, None] * np.hstack([E, A]))
        inner = R[:, :q] @ R[:, q:].T
        values, U = eigh(0.5 * (inner + inner.T), check_finite=False)
        values = values[::-1][:count]
        U = U[:, ::-1][:, :count]
        return Subspace(np.where(significant(values), Q @ U, 0.0), values)


def absolute_degrees(E: Floats, A: Floats, room: float = np.inf) -> Floats:
    """Return the sums of |S| over every row, S = (E A^T + A E^T) / 2, as many rows at a time as ``room`` MiB hold."""
    degrees = np.empty(len(E))
    rows = batches_within(room, ROWS_HELD * 8 * len(E), ROWS)

    def work(lo: int, hi: int) -> None:
        degrees[lo:hi] = 0.5 * np.abs(E[lo:hi] @ A.T + A[lo:hi] @ E.T).sum(axis=1)

    with single_threaded_blas():
        for_ranges(work, len(E), width=rows.size, elements=len(E) * E.size, most_at_once=rows.at_once)
    return degrees
