"""What a precomputed kernel matrix must be before a solver sees it."""

import numpy as np
import scipy.sparse as sp

from kernelweave.backends import get_backend
from kernelweave.foundation.array_types import Array, Ints, Matrix
from kernelweave.foundation.errors import KernelError

# Entries may differ from their mirror image by this much of the largest entry: the rounding of a product.
RELATIVE_ASYMMETRY = {"float32": 1e-5, "float64": 1e-10}
# Entries of a part of a matrix that are looked at together.
CHECKED_ENTRIES = 2**17


def check_kernel_matrix(K: Matrix, name: str = "X") -> float:
    """Raise KernelError unless ``K`` is square, finite and symmetric; return its largest absolute value.

    Dense or sparse, in one pass, and nothing is copied.
    """
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.shape[0] == 0:
        raise KernelError(
            f"{name} must be a square kernel matrix, one row and one column per sample; its shape is {K.shape}. "
            "Pass features with a kernel name instead, or the matrix between all pairs of samples."
        )
    difference, peak, i, j = _sparse_asymmetry(K) if sp.issparse(K) else _dense_asymmetry(K)
    _judge(K, name, difference, peak, i, j)
    return peak


def check_kernel_part(K: Array, samples: Ints, name: str = "X") -> float:
    """Check the rows and columns of some samples as ``check_kernel_matrix`` does, of which few are copied at a time."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        return check_kernel_matrix(K, name)
    difference = 0.0
    peak = 0.0
    place = (0, 0)
    step = max(1, CHECKED_ENTRIES // max(1, len(samples)))
    for start in range(0, len(samples), step):
        some = samples[start : start + step]
        later = samples[start:]  # a pair is looked at once
        part = K[np.ix_(some, later)]
        largest = float(np.abs(part).max())
        if not np.isfinite(largest):
            i, j = np.argwhere(~np.isfinite(part))[0].tolist()
            _judge(K, name, np.inf, np.inf, int(some[i]), int(later[j]))
        peak = max(peak, largest)
        part -= K[np.ix_(later, some)].T
        gap = float(np.abs(part, out=part).max())
        if not gap <= difference:  # NaN, too: the mirror image may be that
            difference = gap
            i, j = divmod(int(np.argmax(part)), part.shape[1])
            place = (int(some[i]), int(later[j]))
            if not np.isfinite(gap):
                _judge(K, name, np.inf, np.inf, place[1], place[0])
    _judge(K, name, difference, peak, *place)
    return peak


def _judge(K: Matrix, name: str, difference: float, peak: float, i: int, j: int) -> None:
    """Raise KernelError for a largest value that is not finite, or a difference that rounding does not explain."""
    if not np.isfinite(peak):
        raise KernelError(f"{name} holds NaN or infinity at row {i}, column {j}. Remove or impute such samples.")
    if difference > RELATIVE_ASYMMETRY.get(str(K.dtype), 1e-10) * peak:
        raise KernelError(
            f"{name} is not symmetric: {name}[{i}, {j}] = {K[i, j]:.9g} but {name}[{j}, {i}] = {K[j, i]:.9g}. "
            f"A kernel is the same in both directions; for a directed similarity pass ({name} + {name}.T) / 2."
        )


def _dense_asymmetry(K: Array) -> tuple[float, float, int, int]:
    """Return the largest difference from the transpose, the largest absolute value, and where the first of them is.

    Where columns lie one after another they are read as rows, for which the loop is compiled already.
    """
    if not K.flags.fnc:
        return get_backend().asymmetry(K)
    difference, peak, j, i = get_backend().asymmetry(K.T)
    return difference, peak, i, j


def _sparse_asymmetry(A: sp.csr_array) -> tuple[float, float, int, int]:
    if A.nnz == 0:
        return 0.0, 0.0, 0, 0
    coo = A.tocoo()
    bad = np.flatnonzero(~np.isfinite(coo.data))
    if len(bad):
        return np.inf, np.inf, int(coo.row[bad[0]]), int(coo.col[bad[0]])
    differences = abs(A - A.T).tocoo()
    peak = float(abs(A.data).max())
    if differences.nnz == 0:
        return 0.0, peak, 0, 0
    place = int(differences.data.argmax())
    return float(differences.data[place]), peak, int(differences.row[place]), int(differences.col[place])
