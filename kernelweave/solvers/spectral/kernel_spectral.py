"""Kernel spectral clustering: spectral clustering as weighted kernel PCA, with scores for new samples.

Objective   one view: leading eigenvectors alpha of D^-1 M_D Omega (MVKSC 6). Several: leading eigenvectors of the
            coupled problem (15), in which the scores of the views are made to agree
Input       kernel matrices of the training samples; for several views a regularisation gamma for each
Cost        one view: some tens of products with the kernel. Several: one eigenproblem per view, and one of size V r
            with r the numerical rank
Guarantee   (15) is solved in its symmetric-definite form: real eigenvalues, largest first
Source      Houthuys, Langone and Suykens, Information Fusion 2018, 2.2 and 3; Alzate and Suykens, IEEE TPAMI 2010
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import nnls

from kernelweave.backends import BackendArray
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.transforms import FLAT, inverse_degrees
from kernelweave.solvers.spectral.eigenvectors import (
    SMALL,
    ZERO_EIGENVALUE,
    coupled_mib,
    decomposed_whole,
    leading_of,
    leading_vectors,
)

# Residual of the eigenvectors.
RESIDUAL = 1e-8
# Scores below this share of the largest are zero.
ZERO_SCORE = 1e-10
# Matrices beside the kernel where it is decomposed: the unit matrix, projected and scaled copies, and those of LAPACK.
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

    @property
    def degrees(self) -> BackendArray:
        """Sums of the kernel rows, 0 for a sample that is like none."""
        return np.divide(1.0, self.weights, out=np.zeros_like(self.weights), where=self.weights > 0)


def degree_weights(op: KernelOperator, name: str = "") -> BackendArray:
    """Return D^-1, the weights of the samples: zero for one that is like none, which then takes no part."""
    weights = inverse_degrees(op, name=name)
    if op.backend.first(weights != 0) < 0:
        raise NoDegreesError
    return weights


def kernel_spectral(op: KernelOperator, n_vectors: int, name: str = "", room: float = np.inf) -> ScoreModel:
    """Solve (6) through the symmetric matrix P D^-1/2 Omega D^-1/2 P, P without the direction D^-1/2 1.

    Its eigenvalues are at most 1. Vectors whose eigenvalue is zero or less say nothing and get no coefficients.
    ``room`` is what may be stored beside the kernel, in MiB.
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
        values, vectors, _ = leading_vectors(product, n, count, RESIDUAL, backend=backend)
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


def coupled_kernel_spectral(
    kernels: Sequence[Floats], inverses: Sequence[Floats], gammas: Floats, n_vectors: int, room: float = np.inf
) -> CoupledScores:
    """Solve (15) for centred kernels, inverse degrees and gamma of every view.

    With W = D^-1/2 Omega_c^1/2 = Q S (thin), the symmetric form has blocks W_v^T W_u beside zeros on the diagonal and
    I - gamma / N S^2 on the right; scaled by the root of the latter it is an ordinary eigenproblem of size sum_v r_v. A
    small one is decomposed as a matrix where ``room`` MiB hold that beside kernels and bases.
    """
    n = len(kernels[0])
    bases = []
    limits = []
    for view, (K, inverse, gamma) in enumerate(zip(kernels, inverses, gammas.tolist(), strict=True)):
        root = np.sqrt(inverse)
        with single_threaded_blas():
            values, Q = eigh(root[:, None] * K * root, overwrite_a=True, check_finite=False)
        keep = values > ZERO_EIGENVALUE * max(float(values[-1]), 0.0)
        if values[-1] <= FLAT:  # the largest possible eigenvalue is 1
            raise FlatViewError(view)
        squares = values[keep]
        limits.append(n / float(squares[-1]))
        if not gamma < limits[-1]:
            raise RegularizationError(view, gamma, limits[-1])
        bases.append(Q[:, keep] * np.sqrt(squares / (1.0 - gamma * squares / n)))
    ends = np.cumsum([0, *(basis.shape[1] for basis in bases)])
    size = int(ends[-1])
    count = min(n_vectors, int(ends[-1]))
    spans = list(pairwise(ends.tolist()))
    if count == 0:
        return CoupledScores(tuple(map(nothing, inverses)), np.empty(0), np.array(limits))
    if size <= SMALL and coupled_mib(n, size) <= room:
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
        values = values[:count]
        Y = Y[:, :count]
    # D^-1/2 e_v = W_v h_v; the optimality conditions (14) then give alpha without dividing by small eigenvalues.
    Y[:, values <= ZERO_EIGENVALUE * max(float(values[0]), 0.0)] = 0.0
    weighted = [basis @ Y[lo:hi] for basis, (lo, hi) in zip(bases, spans, strict=True)]
    total = np.sum(weighted, axis=0)
    models = []
    for K, inverse, gamma, scores in zip(kernels, inverses, gammas.tolist(), weighted, strict=True):
        root = np.sqrt(inverse)
        alphas = root[:, None] * (gamma / n * scores + (total - scores) / np.where(values > 0, values, 1.0))
        models.append(ScoreModel(alphas, np.zeros(count), K @ alphas, values, inverse))
    return CoupledScores(tuple(models), values, np.array(limits))


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
