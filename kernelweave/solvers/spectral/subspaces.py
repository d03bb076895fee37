"""Leading eigenvectors of a kernel plus a low-rank matrix, and how far two sets of them agree.

Methods that make the eigenvectors of several views agree change the matrix of one view by products of the vectors of
the others. Such a change is never formed where samples are many: products with it go through its factors.
"""

from dataclasses import dataclass

import numpy as np

from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.kernels.dense import stored
from kernelweave.kernels.operator import KernelOperator
from kernelweave.solvers.spectral.eigenvectors import (
    ZERO_EIGENVALUE,
    decomposed_whole,
    leading_of,
    leading_vectors,
    search_within,
)

# Relative residual of eigenvectors found by products; values are right to about its square.
RESIDUAL = 1e-5
# Matrices besides the kernel where it is decomposed: as stored, as changed with a term of that size, and two of LAPACK.
DECOMPOSED = 5


@dataclass(frozen=True)
class Subspace:
    """Leading eigenvectors. Columns whose eigenvalue is not above zero are zero: they say nothing."""

    vectors: Floats  # (n, k) orthonormal but for columns of zeros
    values: Floats  # (k,) largest first
    residual: float = 0.0
    block: Floats | None = None  # where the next search may start

    @property
    def rank(self) -> int:
        """Number of columns that are not zero."""
        return int(np.count_nonzero(significant(self.values)))


def significant(values: Floats) -> Floats:
    """Return which eigenvalues are above zero, by more than rounding."""
    return np.asarray((values > 0) & (values > ZERO_EIGENVALUE * max(float(values.max(initial=0.0)), 0.0)))


def stored_if_small(op: KernelOperator, room: float = np.inf) -> KernelOperator:
    """Return the kernel as a matrix where samples are few and ``room`` MiB allow: it is then decomposed as it is."""
    return stored(op) if decomposed_whole(op, DECOMPOSED, room) else op


def leading_subspace(
    op: KernelOperator,
    count: int,
    added: Floats | None = None,
    start: Floats | None = None,
    *,
    room: float = np.inf,
    work: float = np.inf,
) -> Subspace:
    """Return the leading ``count`` eigenvectors of K + W W^T, W being ``added``.

    From the block of an earlier search, ``start``, the sum of the eigenvalues is never below what it had there.
    ``room`` MiB may be taken by matrices, ``work`` MiB by a search.
    """
    n = op.n_samples
    W = np.empty((n, 0)) if added is None else added
    if decomposed_whole(op, DECOMPOSED, room):
        matrix = np.asarray(op.block(slice(None), slice(None)), dtype=np.float64)
        with single_threaded_blas():
            matrix += W @ W.T
        values, vectors = leading_of(matrix, count)
        return Subspace(np.where(significant(values), vectors, 0.0), values)

    def product(block: Floats) -> Floats:
        image = op.matmat(block)
        with single_threaded_blas():
            image += W @ (W.T @ block)
        return image

    search = search_within(work, n, count)
    values, block, residual = leading_vectors(product, n, count, RESIDUAL, start, **search.options())
    values = values[:count]
    vectors = block[:, :count]
    return Subspace(np.where(significant(values), vectors, 0.0), values, residual, block)


def gram_subspace(W: Floats, count: int) -> Subspace:
    """Return the leading ``count`` eigenvectors of W W^T, for W with at least as many columns."""
    with single_threaded_blas():
        vectors, lengths, _ = np.linalg.svd(W, full_matrices=False)
    values = lengths[:count] ** 2
    return Subspace(np.where(significant(values), vectors[:, :count], 0.0), values)


def overlap(one: Floats, other: Floats) -> float:
    """Return tr(U U^T W W^T), the number of common directions where U and W are orthonormal."""
    with single_threaded_blas():
        return float(np.square(one.T @ other).sum())
