"""Kernel spectral clustering: spectral clustering as weighted kernel PCA, with scores for new samples.

Objective   one view: leading eigenvectors alpha of D^-1 M_D Omega (MVKSC 6). Several: leading eigenvectors of the
            coupled problem (15), in which the scores of the views are made to agree
Input       kernel matrices of the training samples; for several views a regularisation gamma for each
Cost        one view: a few dozen products with the kernel. Several: as many with each kernel, within subspaces; one
            whole eigenproblem per view and one of size V r, r the numerical rank, where samples are few, a kernel
            is indefinite, or gamma is close to its limit
Guarantee   (15) is solved in its symmetric-definite form: real eigenvalues, largest first
Source      Houthuys, Langone and Suykens, Information Fusion 2018, 2.2 and 3; Alzate and Suykens, IEEE TPAMI 2010
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.linalg import eigh, lapack
from scipy.optimize import nnls

from kernelweave.backends import Backend, BackendArray, get_backend
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.transforms import FLAT, inverse_degrees
from kernelweave.solvers.spectral.eigenvectors import (
    DEPTH,
    GUARD,
    RESTARTS,
    SMALL,
    ZERO_EIGENVALUE,
    coupled_mib,
    decomposed_whole,
    leading_of,
    leading_vectors,
    search_within,
)

# Residual of the eigenvectors.
RESIDUAL = 1e-8
# The same of the coupled problem, in its symmetric form. Eigenvalues are then right to its square; less than the root
# of rounding is not found by products. A search whose restarts do not lower it to this share ends after so many.
COUPLED_RESIDUAL = 1e-7
PROGRESS = 0.9
PATIENCE = 3
# Residual of the largest eigenvalue of a view, which is then right to its square.
LIMIT_RESIDUAL = 1e-6
# Share of its limit up to which gamma is dealt with by a series, and how far the series goes.
SERIES_LIMIT = 0.5
SERIES_END = 1e-2
# Blocks of vectors that a restart goes on from: eigenvalues of narrow kernels are all but equal.
KEPT = 4
# Share of the largest below which a direction of a search is rounding. Those that are left out are not searched: at
# 1e-10 searches of two views ended far from the residual, restart after restart.
LEAST_KEPT = 1e-14
SCALED_TIMES = 2
# Scores below this share of the largest are zero.
ZERO_SCORE = 1e-10
# Matrices besides the kernel where it is decomposed: the unit matrix, projected and scaled copies, and those of LAPACK.
DECOMPOSED = 7


class NoDegreesError(ValueError):
    """The similarities of every sample add up to zero."""


class FlatViewError(ValueError):
    """All samples look the same in a view."""

    def __init__(self, view: int) -> None:
        super().__init__(f"All samples look the same in view {view}.")
        self.view = view


class RegularizationError(ValueError):
    """The regularisation of a view is so large that the problem is no longer definite."""

    def __init__(self, view: int, gamma: float, limit: float) -> None:
        super().__init__(f"gamma={gamma:g} of view {view} is not below {limit:.6g}.")
        self.view = view
        self.gamma = gamma
        self.limit = limit


@dataclass(frozen=True)
class ScoreModel:
    """What turns kernel rows into scores: e(x) = (k(x) - mean row) alpha + bias. Arrays live with the data."""

    alphas: BackendArray  # (n, q)
    bias: Floats  # (q,)
    scores: BackendArray  # (n, q) of the training samples
    eigenvalues: Floats  # (q,)
    weights: BackendArray  # (n,) inverse degrees

    def on_host(self, backend: Backend) -> "ScoreModel":
        """Return the same with arrays of NumPy."""
        return replace(
            self,
            alphas=backend.host(self.alphas),
            scores=backend.host(self.scores),
            weights=backend.host(self.weights),
        )

    @property
    def degrees(self) -> Floats:
        """Sums of the kernel rows, 0 for a sample that is like none; on the host."""
        return np.divide(1.0, self.weights, out=np.zeros_like(self.weights), where=self.weights > 0)


def degree_weights(op: KernelOperator, name: str = "") -> BackendArray:
    """Return D^-1, the weights of the samples: zero for one that is like none, which then takes no part."""
    weights = inverse_degrees(op, name=name)
    if op.backend.first(weights != 0) < 0:
        raise NoDegreesError
    return weights


def kernel_spectral(
    op: KernelOperator, n_vectors: int, name: str = "", room: float = np.inf, work: float = np.inf
) -> ScoreModel:
    """Solve (6) through the symmetric matrix P D^-1/2 Omega D^-1/2 P, P without the direction D^-1/2 1.

    Its eigenvalues are at most 1. Vectors whose eigenvalue is zero or less say nothing and get no coefficients.
    ``room`` is what may be stored besides the kernel, in MiB, and ``work`` what the search may take.
    """
    n = op.n_samples
    backend = op.backend
    inverse = degree_weights(op, name)
    root = inverse**0.5
    u = root / backend.dot(root, root) ** 0.5

    def project(block: BackendArray) -> BackendArray:
        return block - u[:, None] * backend.dot(u, block)

    def product(block: BackendArray) -> BackendArray:
        return project(root[:, None] * op.matmat(root[:, None] * project(block)))

    count = min(n_vectors, n)
    if count == 0:
        return nothing(inverse)
    if decomposed_whole(op, DECOMPOSED, room):
        matrix = product(np.eye(n))
        values, vectors = leading_of(0.5 * (matrix + matrix.T), count)
    else:
        search = search_within(work, n, count, KEPT, op.spare_vectors)
        values, vectors, _ = leading_vectors(product, n, count, RESIDUAL, backend=backend, **search.options())
        values = values[:count]
        vectors = vectors[:, :count]
    alphas = root[:, None] * project(vectors) * (values > ZERO_EIGENVALUE)
    plain = op.matmat(alphas)
    bias = -backend.dot(inverse, plain) / backend.total(inverse)
    return ScoreModel(alphas, bias, plain + bias, values, inverse)


def nothing(weights: BackendArray) -> ScoreModel:
    """Return the model of one cluster, which has no scores."""
    n = len(weights)
    return ScoreModel(np.empty((n, 0)), np.empty(0), np.empty((n, 0)), np.empty(0), weights)


@dataclass(frozen=True)
class CoupledScores:
    """Scores of several views."""

    models: tuple[ScoreModel, ...]
    eigenvalues: Floats  # (q,) 1 / rho
    limits: Floats  # (V,) gamma must be below


@dataclass(frozen=True)
class _View:
    """M = D^-1/2 Omega D^-1/2 of a view, Omega centred; its products are those of Omega."""

    number: int
    kernel: Floats  # (n, n) Omega
    root: Floats  # (n,) D^-1/2
    gamma: float
    definite: bool  # whether it is known that no eigenvalue is negative
    backend: Backend  # where products are computed
    placed: BackendArray  # Omega there

    @property
    def share(self) -> float:
        """The factor of M^2 on the right-hand side, gamma / n."""
        return self.gamma / len(self.root)

    def product(self, block: Floats) -> Floats:
        """Return M @ block."""
        return np.asarray(self.root[:, None] * self.unscaled(self.root[:, None] * block))

    def unscaled(self, block: Floats) -> Floats:
        """Return Omega @ block; the block travels."""
        return np.asarray(self.backend.host(self.backend.product(self.placed, self.backend.array(block))))

    def matrix(self) -> Floats:
        """Return M."""
        return self.root[:, None] * self.kernel * self.root

    def limit(self, largest: float) -> float:
        """Return what gamma has to stay below, from the largest eigenvalue; it is checked."""
        if largest <= FLAT:  # the largest possible eigenvalue is 1
            raise FlatViewError(self.number)
        limit = len(self.root) / largest
        if not self.gamma < limit:
            raise RegularizationError(self.number, self.gamma, limit)
        return limit


def coupled_kernel_spectral(
    kernels: Sequence[Floats],
    inverses: Sequence[Floats],
    gammas: Floats,
    n_vectors: int,
    definite: Sequence[bool] | None = None,
    room: float = np.inf,
    backend: Backend | None = None,
) -> CoupledScores:
    """Solve (15) for centred kernels, inverse degrees and gamma of every view.

    With W = D^-1/2 Omega_c^1/2 = Q S (thin), the symmetric form has blocks W_v^T W_u beside zeros on the diagonal and
    I - gamma / N S^2 on the right; scaled by the root of the latter it is an ordinary eigenproblem of size sum_v r_v. A
    small one is decomposed as a matrix where ``room`` MiB hold that besides kernels and bases. Negative eigenvalues of
    a kernel are left out; ``definite`` says which kernels are known to have none. ``backend`` computes the products
    with kernels, which are most of the work.
    """
    backend = get_backend() if backend is None else backend
    known = [False] * len(kernels) if definite is None else definite
    parts = zip(kernels, inverses, gammas.tolist(), known, strict=True)
    views = [
        _View(i, K, np.sqrt(inverse), gamma, yes, backend, backend.array(K))
        for i, (K, inverse, gamma, yes) in enumerate(parts)
    ]
    found = None if len(kernels[0]) <= SMALL else _searched_bases(views, n_vectors)
    bases, limits = _whole_bases(views) if found is None else found
    count = min(n_vectors, sum(basis.shape[1] for basis in bases))
    if count == 0:
        return CoupledScores(tuple(map(nothing, inverses)), np.empty(0), np.array(limits))
    values, coefficients = _coupled_vectors(bases, count, room)
    # D^-1/2 e_v = W_v h_v; the optimality conditions (14) then give alpha without dividing by small eigenvalues.
    telling = values > ZERO_EIGENVALUE * max(float(values[0]), 0.0)
    combine = get_backend().combine
    weighted = [combine([basis], part * telling) for basis, part in zip(bases, coefficients, strict=True)]
    total = np.sum(weighted, axis=0)
    models = []
    for view, inverse, scores in zip(views, inverses, weighted, strict=True):
        others = (total - scores) / np.where(values > 0, values, 1.0)
        alphas = view.root[:, None] * (view.share * scores + others)
        scores = view.unscaled(alphas)
        models.append(ScoreModel(alphas, np.zeros(count), scores, values, inverse))
    return CoupledScores(tuple(models), values, np.array(limits))


def _coupled_vectors(bases: Sequence[Floats], count: int, room: float = np.inf) -> tuple[Floats, list[Floats]]:
    """Return the leading eigenvalues of the blocks W_v^T W_u, zero on the diagonal, and the vectors view by view."""
    ends = np.cumsum([0, *(basis.shape[1] for basis in bases)])
    spans = list(pairwise(ends.tolist()))
    size = int(ends[-1])
    if size <= SMALL and coupled_mib(len(bases[0]), size) <= room:
        joined = np.hstack(bases)
        with single_threaded_blas():
            A = joined.T @ joined
        for lo, hi in spans:
            A[lo:hi, lo:hi] = 0.0
        values, Y = leading_of(A, count)
    else:

        def product(block: Floats) -> Floats:
            images = [basis @ block[lo:hi] for basis, (lo, hi) in zip(bases, spans, strict=True)]
            total = np.sum(images, axis=0)
            return np.vstack([basis.T @ (total - image) for basis, image in zip(bases, images, strict=True)])

        values, Y, _ = leading_vectors(product, size, count, RESIDUAL)
    return values[:count], [Y[lo:hi, :count] for lo, hi in spans]


def _whole_bases(views: Sequence[_View]) -> tuple[list[Floats], list[float]]:
    """Return W (I - gamma / n S^2)^-1/2 of every view from all its eigenvectors, and the limits of gamma."""
    bases = []
    limits = []
    for view in views:
        with single_threaded_blas():
            values, Q = eigh(view.matrix(), overwrite_a=True, check_finite=False, driver="evd")
        keep = values > ZERO_EIGENVALUE * max(float(values[-1]), 0.0)
        limits.append(view.limit(float(values[-1])))
        squares = values[keep]
        bases.append(Q[:, keep] * np.sqrt(squares / (1.0 - view.share * squares)))
    return bases, limits


def _searched_bases(views: Sequence[_View], n_vectors: int) -> tuple[list[Floats], list[float]] | None:
    """Return what ``_whole_bases`` does, within subspaces that hold the leading vectors of the coupled problem.

    They grow by products with the kernels, as Krylov spaces do. A vector of the coupled problem is f_v in every view
    with sum_{u != v} M_u f_u = lambda (f_v - gamma_v / n M_v f_v); its best approximation among F_v in every view is
    the solution for the bases M_v F_v, scaled so that F_v^T (M_v - gamma_v / n M_v^2) F_v is the identity. None where
    this does not serve: negative eigenvalues cannot be left out without knowing them, and a gamma close to its limit
    needs many products per step.
    """
    n = len(views[0].root)
    largest = [float(leading_vectors(view.product, n, 1, LIMIT_RESIDUAL)[0][0]) for view in views]
    limits = [view.limit(value) for view, value in zip(views, largest, strict=True)]
    shares = [view.gamma / limit for view, limit in zip(views, limits, strict=True)]
    if n_vectors == 0 or max(shares) > SERIES_LIMIT:
        return None
    if not all(view.definite or _is_definite(view, value) for view, value in zip(views, largest, strict=True)):
        return None
    terms = [0 if share <= SERIES_END else int(np.log(SERIES_END) / np.log(share)) for share in shares]
    width = min(n_vectors + GUARD, n)
    depth = max(2, min(DEPTH, SMALL // (len(views) * width)))
    factor = 1.0 / np.sqrt(1.0 - max(shares))
    backend = get_backend()
    block = np.vstack([backend.start_block(n, width)] * len(views))
    missing: Floats | None = None
    least = np.inf
    in_vain = 0
    for _ in range(RESTARTS):
        basis = [backend.orthonormal(block, [np.empty((len(block), 0))])]
        images = [_stacked_products(views, basis[0])]
        while len(basis) < depth:
            # What the best vectors miss has all of the inverse in it, of which the series has the first terms alone.
            ahead = missing if missing is not None and len(basis) == 1 else _following(views, images[-1], terms)
            following = backend.orthonormal(ahead, backend.together(basis))
            if following.shape[1] == 0:
                break
            basis.append(following)
            images.append(_stacked_products(views, following))
        block, missing, bases, largest_value = _best_within(views, backend.join(basis), backend.join(images), width)
        residual = factor * _size_in_views(views, missing[:, :n_vectors]) / largest_value
        in_vain = 0 if residual < PROGRESS * least else in_vain + 1
        if residual < least:
            least = residual
            best = bases
        if least <= COUPLED_RESIDUAL or in_vain == PATIENCE:
            break
    return best, limits


def _stacked_products(views: Sequence[_View], block: Floats) -> Floats:
    """Return M_v f_v of every view, one under the other."""
    return np.vstack([view.product(part) for view, part in zip(views, np.split(block, len(views)), strict=True)])


def _size_in_views(views: Sequence[_View], block: Floats) -> float:
    """Return the largest root of sum_v f_v^T M_v f_v among the columns of a block.

    This is the length of a vector in the symmetric form. Directions in which a view has next to no similarity have none
    there, but are all rounding in f.
    """
    squares = np.einsum("ij,ij->j", block, _stacked_products(views, block))
    return float(np.sqrt(np.maximum(squares, 0.0).max()))


def _following(views: Sequence[_View], image: Floats, terms: Sequence[int]) -> Floats:
    """Return (I - gamma_v / n M_v)^-1 sum_{u != v} M_u f_u of every view, the inverse by a few terms of its series."""
    parts = np.split(image, len(views))
    total = np.sum(parts, axis=0)
    blocks = []
    for view, part, count in zip(views, parts, terms, strict=True):
        others = total - part
        block = others
        for _ in range(count):
            block = others + view.share * view.product(block)
        blocks.append(block)
    return np.vstack(blocks)


def _best_within(
    views: Sequence[_View], basis: Floats, images: Floats, width: int
) -> tuple[Floats, Floats, list[Floats], float]:
    """Return the best vectors f_v among those of a basis, what they miss, their bases, and the largest eigenvalue.

    What they miss is sum_{u != v} M_u f_u - lambda (f_v - gamma_v / n M_v f_v), for vectors of unit length in the
    symmetric form.
    """
    backend = get_backend()
    scaled = []
    bases = []
    for view, F, N in zip(views, np.split(basis, len(views)), np.split(images, len(views)), strict=True):
        for _ in range(SCALED_TIMES):  # the first time, rounding is large beside the least of the values kept
            inner = backend.inner([F], [N]) - view.share * backend.inner([N], [N])
            values, U = leading_of(0.5 * (inner + inner.T), len(inner))
            keep = values > LEAST_KEPT * values[0]
            U = U[:, keep] / np.sqrt(values[keep])
            F = backend.combine([F], U)
            N = backend.combine([N], U)
        scaled.append(F)
        bases.append(N)
    values, coefficients = _coupled_vectors(bases, min(width, sum(part.shape[1] for part in bases)))
    vectors = [backend.combine([F], part) for F, part in zip(scaled, coefficients, strict=True)]
    weighted = [backend.combine([N], part) for N, part in zip(bases, coefficients, strict=True)]
    total = np.sum(weighted, axis=0)
    parts = zip(views, vectors, weighted, strict=True)
    missing = [total - g - values * (f - view.share * g) for view, f, g in parts]
    return np.vstack(vectors), np.vstack(missing), bases, float(np.abs(values).max())


def _is_definite(view: _View, largest: float) -> bool:
    """Return whether no eigenvalue is negative by more than what counts as zero."""
    matrix = view.matrix()
    matrix[np.diag_indices_from(matrix)] += ZERO_EIGENVALUE * largest
    with single_threaded_blas():
        return lapack.dpotrf(matrix, overwrite_a=True)[1] == 0


def score_floor(scores: Floats) -> Floats:
    """Return what a score has to exceed to be positive, from those of the training samples: less is rounding."""
    return ZERO_SCORE * np.abs(scores).max(axis=0, initial=0.0)


def codebook(scores: Floats, n_clusters: int, floor: Floats | float = 0.0) -> Floats:
    """Return the ``n_clusters`` sign patterns that occur most, most frequent first, the first met of equals."""
    patterns, first, counts = np.unique(scores > floor, axis=0, return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))[:n_clusters]
    return np.where(patterns[order], 1.0, -1.0)


def decode(scores: Floats, book: Floats, floor: Floats | float = 0.0) -> Ints:
    """Return the nearest codeword of every row by Hamming distance, the most frequent of equals."""
    agreement = np.where(scores > floor, 1.0, -1.0) @ book.T
    return agreement.argmax(axis=1)


def committee_weights(errors: Floats) -> Floats:
    """Return the weights of a committee of least squared error, from the errors of its members, shape (V, n).

    They minimise b^T C b on the simplex, C the mean products of errors; up to scale that is a problem of least squares
    without negative coefficients. Members that err in the same way share their weight.
    """
    largest = max(float(np.abs(errors).max()), np.finfo(float).tiny)
    distinct, group, sizes = np.unique((errors / largest).round(12), axis=0, return_inverse=True, return_counts=True)
    C = distinct @ distinct.T / distinct.shape[1]
    values, vectors = np.linalg.eigh(C)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    size = max(float(np.abs(root).max()), np.finfo(float).tiny)
    solution, _ = nnls(np.vstack([root / size, np.ones((1, len(distinct)))]), np.append(np.zeros(len(distinct)), 1.0))
    return np.asarray((solution / solution.sum() / sizes)[group.ravel()])
