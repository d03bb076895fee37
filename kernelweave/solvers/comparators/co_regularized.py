"""Co-regularised spectral clustering: eigenvectors of every view, drawn to those of the others.

Objective   pairwise: sum_v tr(U_v^T L_v U_v) + sum over pairs v < u of l_vu tr(U_v U_v^T U_u U_u^T), l_vu the mean of
            l_v and l_u. Centroid: the second sum is that of l_v tr(U_v U_v^T U* U*^T). Maximised over U_v, and U*, with
            at most k orthonormal columns. Where views lack samples, U_v has the rows of those it has, and each product
            of the second sum goes over the samples that both have
Input       matrices L_v as operators among the samples of each view, a strength l_v for each
Cost        a sweep is one set of leading eigenvectors for each view, of L_v plus a matrix of rank k, or (V - 1) k
Guarantee   the objective never falls
Source      Kumar, Rai and Daume, NIPS 2011; PhD 1.2.3, (1.11)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper, made
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.observed_views import ObservedViews
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions.algebra import EPS
from kernelweave.solvers.comparators.observed_starts import SharedDistances, masked_start
from kernelweave.solvers.kmeans.masked_multi_view import masked_multi_view_kernel_kmeans
from kernelweave.solvers.kmeans.multi_view_kernel_kmeans import MultiViewDescent
from kernelweave.solvers.spectral.subspaces import Subspace, gram_subspace, leading_subspace, overlap, stored_if_small

#: Vectors that a view is drawn to, each set with its strength.
Targets = list[tuple[float, Floats]]


@dataclass(frozen=True)
class Placement:
    """Which of all samples the rows of each view are."""

    samples: tuple[Ints, ...]
    n_samples: int
    n_vectors: int

    def spread(self, vectors: Floats, view: int) -> Floats:
        """Return the vectors of a view with rows of zeros for absent samples; missing columns are zero as well."""
        full = np.zeros((self.n_samples, self.n_vectors))
        full[self.samples[view], : vectors.shape[1]] = vectors
        return full


@dataclass(frozen=True)
class CoRegularized:
    """Eigenvectors of every view, and the common ones of the centroid variant."""

    vectors: tuple[Floats, ...]  # V of shape (n_v, k)
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
    samples: Sequence[Ints] | None = None,
    *,
    n_vectors: int,
    centroid: bool = False,
    max_iter: int = 100,
    tol: float = 1e-5,
    room: float = np.inf,
    work: float = np.inf,
    keeper: Keeper = NOTHING,
    on_step: Callable[[float], object] | None = None,
) -> CoRegularized:
    """Sweep over the views, from the eigenvectors of each by itself, until the objective rises by ``tol`` or less.

    ``tol`` is a share of the objective. ``samples`` says which samples the rows of every view are, None that all views
    have all; every sample must be in a view. ``room`` MiB of matrices may be stored besides the kernels, and ``work``
    MiB are for the search for the eigenvectors of one view.
    """
    room = room / len(ops)
    ops = [stored_if_small(op, room) for op in ops]
    placed = None if samples is None else _placement(samples, n_vectors)
    counts = [min(n_vectors, op.n_samples) for op in ops]
    known = keeper.known()
    if known is None:
        subspaces = [leading_subspace(op, count, room=room, work=work) for op, count in zip(ops, counts, strict=True)]
        center = _consensus(subspaces, strengths, n_vectors, placed) if centroid else None
        history = [_objective(ops, subspaces, strengths, center, placed)]
    else:
        subspaces = [made(Subspace, each) for each in known["subspaces"]]
        center = known["center"]
        history = known["history"]
    converged = known is not None and known["converged"]
    while not converged and len(history) <= max_iter:
        for v, op in enumerate(ops):
            added = _low_rank_factor(_targets(v, subspaces, strengths, center, placed))
            subspaces[v] = leading_subspace(op, counts[v], added, subspaces[v].block, room=room, work=work)
        if centroid:
            center = _consensus(subspaces, strengths, n_vectors, placed)
        history.append(_objective(ops, subspaces, strengths, center, placed))
        converged = history[-1] - history[-2] <= tol * abs(history[-1])
        keeper.keep(dict, subspaces=subspaces, center=center, history=history, converged=converged)
        if on_step is not None:
            on_step(history[-1])
    vectors = tuple(subspace.vectors for subspace in subspaces)
    residual = max(subspace.residual for subspace in subspaces)
    return CoRegularized(vectors, center, tuple(history), converged, residual)


def _placement(samples: Sequence[Ints], n_vectors: int) -> Placement:
    return Placement(tuple(samples), 1 + max(int(known.max()) for known in samples), n_vectors)


def _targets(
    v: int, subspaces: Sequence[Subspace], strengths: Floats, center: Floats | None, placed: Placement | None
) -> Targets:
    """Return the vectors that view v is drawn to, at its samples: the centroid, or those of every other view."""
    if center is not None:
        return [(float(strengths[v]), center if placed is None else center[placed.samples[v]])]
    pairs = 0.5 * (strengths[v] + strengths)
    targets = []
    for u, subspace in enumerate(subspaces):
        if u != v:
            vectors = subspace.vectors
            seen = vectors if placed is None else placed.spread(vectors, u)[placed.samples[v]]
            targets.append((float(pairs[u]), seen))
    return targets


def _low_rank_factor(targets: Targets) -> Floats | None:
    """Return W with W W^T the sum of the targets' projections, each times its strength."""
    factors = [np.sqrt(strength) * vectors for strength, vectors in targets if strength > 0]
    return np.hstack(factors) if factors else None


def _consensus(subspaces: Sequence[Subspace], strengths: Floats, n_vectors: int, placed: Placement | None) -> Floats:
    """Return U*, the leading eigenvectors of sum_v l_v U_v U_v^T; all views count the same where every l_v is zero."""
    shares = strengths if strengths.any() else np.ones_like(strengths)
    factors = []
    for v, (share, subspace) in enumerate(zip(shares, subspaces, strict=True)):
        vectors = subspace.vectors if placed is None else placed.spread(subspace.vectors, v)
        factors.append(np.sqrt(share) * vectors)
    return gram_subspace(np.hstack(factors), n_vectors).vectors


def _objective(
    ops: Sequence[KernelOperator],
    subspaces: Sequence[Subspace],
    strengths: Floats,
    center: Floats | None,
    placed: Placement | None,
) -> float:
    traces = sum(
        float(np.sum(subspace.vectors * op.matmat(subspace.vectors)))
        for op, subspace in zip(ops, subspaces, strict=True)
    )
    agreement = sum(
        strength * overlap(subspace.vectors, vectors)
        for v, subspace in enumerate(subspaces)
        for strength, vectors in _targets(v, subspaces, strengths, center, placed)
    )
    return traces + (agreement if center is not None else 0.5 * agreement)  # every pair was met twice


# --- clusters where views lack samples -------------------------------------------------------------------------------


def observed_rows(vectors: Sequence[Floats], samples: Sequence[Ints], n_samples: int) -> list[Floats]:
    """Return the rows of every view, those of a sample scaled to a squared length that is its share of the views.

    That is unit length where nothing is absent. Before, the vectors of a view are multiplied by the root of the share
    of samples it has, so that a sample is as heavy in one view as in another.
    """
    rows = [U * np.sqrt(len(known) / n_samples) for U, known in zip(vectors, samples, strict=True)]
    squared = np.zeros(n_samples)
    n_views = np.zeros(n_samples)
    for U, known in zip(rows, samples, strict=True):
        squared[known] += np.einsum("ij,ij->i", U, U)
        n_views[known] += 1.0
    lengths = np.sqrt(squared * len(rows) / n_views)
    scales = 1.0 / np.where(lengths > EPS, lengths, 1.0)
    return [U * scales[known, None] for U, known in zip(rows, samples, strict=True)]


class ObservedRows:
    """k-means of rows of which some views are absent: squared distances are summed over the views that are there."""

    def __init__(self, rows: Sequence[Floats], samples: Sequence[Ints], n_samples: int) -> None:
        ops = tuple(FeatureKernel(block) for block in rows)
        self._views = ObservedViews(ops, tuple(samples), n_samples)
        self._distances = SharedDistances(ops, samples)
        counts = np.array([len(known) for known in samples], dtype=np.float64)
        self._view_weights = counts / counts.sum()  # a sample costs the same in every view

    def clusters(self, n_clusters: int, rng: np.random.Generator, keeper: Keeper = NOTHING) -> MultiViewDescent:
        """Return the clusters of one start, by samples drawn far apart."""
        start = masked_start(self._distances, n_clusters, rng)
        ones = np.ones(self._views.n_samples)
        fixed: dict[str, Any] = {"p": 1.0, "view_weights": self._view_weights, "learned": False}
        return masked_multi_view_kernel_kmeans(self._views, start, ones, n_clusters=n_clusters, keeper=keeper, **fixed)
