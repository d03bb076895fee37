"""Leading eigenvectors of a weighted sum of kernels, for weights that change.

Two ways. Where all kernels are inner products of features, fewer than there are samples, the Gram matrix of the
features holds everything: it is computed once, and new weights cost an eigenproblem of its size. Otherwise a restarted
block Krylov method works on products alone. ARPACK and LOBPCG do the latter too, but the first misses copies of a
repeated eigenvalue, as graphs of several components have them, and takes no block to start from, and the second stalls
without a preconditioner; a block that starts from the eigenvectors of the last weights needs a few products.

With sample weights w the matrix is W^1/2 K W^1/2. Vectors are reported as they extend to new samples:
f(x) = sum_j k(x, x_j) w_j^1/2 Y_j / lambda, which is w_i^-1/2 Y_i on the training samples.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import eigh, qr

from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.threads import for_ranges, single_threaded_blas
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.transforms import ScaledKernel
from kernelweave.kernels.weighted_sum import CompositeKernel, JoinedFeatures, merged_graph, sparse_form

# Eigenvalues below this share of the largest are zero: their vectors say nothing.
ZERO = 1e-10
# Vectors of a block beyond those asked for, blocks of a Krylov basis, and most restarts.
GUARD = 4
DEPTH = 12
RESTARTS = 60
# With fewer samples than this the matrix itself is decomposed.
SMALL = 1200
# Rows of a stored matrix added up together.
ROWS = 256
# Rows of features whose products are added up by themselves.
PART = 16384


@dataclass(frozen=True)
class Eigenpairs:
    """Leading eigenvalues, largest first, and what each view's kernel makes of their vectors."""

    values: Floats  # (k,)
    traces: Floats  # (V,) tr(Y^T K_v Y)
    residual: float  # ||K Y - Y values|| / largest |value|


class Spectrum(Protocol):
    """Eigenvectors of sum_v c_v K_v, for one set of coefficients after another."""

    def leading(self, coefficients: Floats, count: int, tol: float) -> Eigenpairs:
        """Return the leading ``count`` pairs; ``embedding`` then refers to them."""

    def embedding(self) -> Floats:
        """Return f at every sample, shape (n, count); zero in columns whose eigenvalue is."""

    def sources(self) -> Floats:
        """Return w^1/2 Y / lambda, shape (n, count): f(x) of a new sample is its kernel row times this."""


def spectrum(op: CompositeKernel | JoinedFeatures, weights: Floats) -> Spectrum:
    """Return the cheapest way to the leading eigenvectors of W^1/2 (sum_v c_v K_v) W^1/2."""
    if isinstance(op, JoinedFeatures) and isinstance(op.Phi, np.ndarray) and op.Phi.shape[1] <= op.n_samples:
        return GramSpectrum(op, weights)
    return KrylovSpectrum(op, weights)


def extension(values: Floats) -> Floats:
    """Return 1 / lambda, zero where lambda is."""
    keep = values > ZERO * max(float(values.max(initial=0.0)), 0.0)
    return np.divide(1.0, values, out=np.zeros_like(values), where=keep & (values > 0))


class GramSpectrum:
    """Eigenvectors through the Gram matrix of all features, which is computed once."""

    def __init__(self, op: JoinedFeatures, weights: Floats) -> None:
        self._op = op
        self._weights = weights
        self._gram = _gram(op.Phi, weights)
        self._view = np.repeat(np.arange(len(op.widths)), op.widths)

    def leading(self, coefficients: Floats, count: int, tol: float) -> Eigenpairs:
        """Return the leading pairs from a matrix of the size of the features; exact but for rounding."""
        self._op = self._op.with_weights(coefficients)
        root = np.sqrt(self._op.columns)
        d = len(self._gram)
        inner = root[:, None] * self._gram * root
        count = min(count, d)
        self._values, U = leading_of(inner, count)
        # Y = W^1/2 Phi C^1/2 U lambda^-1/2
        self._directions = root[:, None] * U * np.sqrt(extension(self._values))
        seen = np.square(self._gram @ self._directions).sum(axis=1)  # of Phi^T W^1/2 Y, by column
        traces = np.bincount(self._view, self._op.factors[self._view] * seen, len(self._op.widths))
        return Eigenpairs(self._values, np.asarray(traces, dtype=np.float64), 0.0)

    def embedding(self) -> Floats:
        """Return f = Phi C^1/2 U lambda^-1/2."""
        return np.asarray(self._op.Phi @ self._directions)

    def sources(self) -> Floats:
        """Return W f / lambda."""
        return self._weights[:, None] * self.embedding() * extension(self._values)


class KrylovSpectrum:
    """Eigenvectors through products with the kernels, from those of the last coefficients."""

    def __init__(self, op: CompositeKernel | JoinedFeatures, weights: Floats) -> None:
        self._op = op
        self._root = np.sqrt(weights)
        self._basis: Floats | None = None
        units = np.eye(len(op.coefficients))
        parts = op.parts if isinstance(op, CompositeKernel) else [op.with_weights(unit) for unit in units]
        self._parts: list[KernelOperator] = [_plain(part) for part in parts]
        self._combined: KernelOperator = op

    def leading(self, coefficients: Floats, count: int, tol: float) -> Eigenpairs:
        """Return the leading pairs to a relative residual of ``tol``; never worse than the block it starts from."""
        n = self._op.n_samples
        count = min(count, n)
        self._combined = self._sum(coefficients)
        if n <= SMALL:
            full = self._root[:, None] * self._combined.block(slice(None), slice(None)) * self._root
            residual = 0.0
            (self._values, self._Y) = leading_of(full, count)
        else:
            values, block, residual = leading_vectors(self._product, n, count, tol, self._basis)
            self._values = values[:count]
            self._Y = block[:, :count]
            self._basis = block
        H = self._root[:, None] * self._Y
        return Eigenpairs(self._values, np.array([np.sum(H * part.matmat(H)) for part in self._parts]), residual)

    def _sum(self, coefficients: Floats) -> KernelOperator:
        """Return the weighted sum as one matrix where all kernels are stored, dense or sparse."""
        dense = [part.K for part in self._parts if isinstance(part, DenseKernel)]
        if len(dense) == len(self._parts):
            total = np.zeros(dense[0].shape)
            for c, K in zip(coefficients.tolist(), dense, strict=True):
                for lo in range(0, len(K), ROWS):
                    total[lo : lo + ROWS] += c * K[lo : lo + ROWS]
            return DenseKernel(total)
        together = CompositeKernel(self._parts, coefficients)
        return merged_graph(together) or self._op.with_weights(coefficients)

    def _product(self, block: Floats) -> Floats:
        return self._root[:, None] * self._combined.matmat(self._root[:, None] * block)

    def embedding(self) -> Floats:
        """Return f from one product, so that training and new samples meet the same formula."""
        return self._combined.matmat(self.sources())

    def sources(self) -> Floats:
        """Return w^1/2 Y / lambda."""
        return self._root[:, None] * self._Y * extension(self._values)


def leading_of(matrix: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the leading eigenpairs of a stored matrix, the same to the last bit for any number of threads."""
    n = len(matrix)
    with single_threaded_blas():
        values, vectors = eigh(matrix, subset_by_index=[n - count, n - 1], check_finite=False)
    return values[::-1], vectors[:, ::-1]


def leading_vectors(
    product: Callable[[Floats], Floats], n: int, count: int, tol: float, start: Floats | None = None
) -> tuple[Floats, Floats, float]:
    """Return the leading eigenpairs of a symmetric matrix given by its products with blocks, and their residual.

    ``count`` of them to a relative residual of ``tol`` (or as near as ``RESTARTS`` restarts come: the residual tells),
    and a few more to start from the next time. Restarted block Krylov method; the sum of the values is never below that
    of the ``start``.
    """
    width = min(count + GUARD, n)
    block = start
    if block is None or block.shape[1] != width:
        block = np.linalg.qr(np.random.default_rng(0).standard_normal((n, width)))[0]
    for _ in range(RESTARTS):
        basis = [block]
        images = [product(block)]
        for _ in range(DEPTH - 1):
            following = _orthonormal(images[-1], np.hstack(basis))
            if following.shape[1] == 0:
                break
            basis.append(following)
            images.append(product(following))
        values, block, gap = _ritz(np.hstack(basis), np.hstack(images), width, count)
        if gap <= tol:
            break
    return values, block, gap


def _plain(part: KernelOperator) -> KernelOperator:
    """Return a kernel in the form in which products with it are cheapest."""
    if part.n_samples <= SMALL:
        return DenseKernel(np.ascontiguousarray(part.block(slice(None), slice(None)), dtype=np.float64))
    if isinstance(part, ScaledKernel) and isinstance(part.base, DenseKernel):
        return DenseKernel(part.factor * part.base.K)
    graph = sparse_form(part)
    return part if graph is None else GraphKernel(graph)


def _gram(Phi: Floats, weights: Floats) -> Floats:
    """Return Phi^T W Phi, added up over fixed parts."""

    def work(lo: int, hi: int) -> Floats:
        part = Phi[lo:hi]
        return part.T @ (weights[lo:hi, None] * part)

    with single_threaded_blas():
        total, *others = for_ranges(work, len(Phi), elements=Phi.size, width=PART)
    for other in others:
        total += other  # type: ignore[operator]
    return np.asarray(total)


def _ritz(Q: Floats, Z: Floats, width: int, count: int) -> tuple[Floats, Floats, float]:
    """Return the leading values and vectors within the basis Q (Z its image), and the residual of ``count`` of them."""
    with single_threaded_blas():  # the same vectors, to the last bit, for any number of threads
        inner = Q.T @ Z
        values, U = eigh(0.5 * (inner + inner.T))
        values = values[::-1][:width]
        U = U[:, ::-1][:, :width]
        block = Q @ U
        image = Z @ U
        gaps = np.linalg.norm(image[:, :count] - block[:, :count] * values[:count], axis=0)
        size = max(float(np.abs(values).max()), np.finfo(np.float64).tiny)
        return values, block, float(gaps.max()) / size


def _orthonormal(block: Floats, basis: Floats) -> Floats:
    """Return an orthonormal basis of what ``block`` adds to ``basis``."""
    with single_threaded_blas():
        return _added(block, basis)


def _added(block: Floats, basis: Floats) -> Floats:
    size = np.linalg.norm(block, axis=0).max(initial=0.0)
    for _ in range(2):
        block = block - basis @ (basis.T @ block)
    # With pivots, directions that add nothing come last and spoil no others.
    Q, R, _ = qr(block, mode="economic", pivoting=True, check_finite=False)
    keep = np.abs(np.diagonal(R)) > 1e-10 * size
    if keep.all():
        return Q
    # A direction that adds nothing leaves rounding in its place; once more against the basis tells what is left.
    Q = Q[:, keep] - basis @ (basis.T @ Q[:, keep])
    return np.linalg.qr(Q)[0] if keep.any() else Q
