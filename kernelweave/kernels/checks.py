"""What a precomputed kernel matrix must be before a solver sees it."""

import numpy as np
import scipy.sparse as sp

from kernelweave.backends import get_backend
from kernelweave.foundation.array_types import Array, Matrix
from kernelweave.foundation.errors import KernelError

# Entries may differ from their mirror image by this much of the largest entry: the rounding of a product.
RELATIVE_ASYMMETRY = {"float32": 1e-5, "float64": 1e-10}


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
    if not np.isfinite(peak):
        raise KernelError(f"{name} holds NaN or infinity at row {i}, column {j}. Remove or impute such samples.")
    if difference > RELATIVE_ASYMMETRY.get(str(K.dtype), 1e-10) * peak:
        raise KernelError(
            f"{name} is not symmetric: {name}[{i}, {j}] = {K[i, j]:.9g} but {name}[{j}, {i}] = {K[j, i]:.9g}. "
            f"A kernel is the same in both directions; for a directed similarity pass ({name} + {name}.T) / 2."
        )
    return peak


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
