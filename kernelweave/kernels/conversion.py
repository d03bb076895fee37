"""Kernel matrices and operators given by a caller, checked."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.errors import KernelError
from kernelweave.kernels.checks import check_kernel_matrix
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.operator import KernelOperator


def as_operator(kernel: Any, name: str = "K") -> KernelOperator:
    """Return an operator as it is, or a checked dense or sparse kernel matrix as one."""
    if isinstance(kernel, KernelOperator):
        return kernel
    K = sp.csr_array(kernel) if sp.issparse(kernel) else np.asarray(kernel)
    if K.dtype.kind not in "biuf":
        raise KernelError(f"{name} holds values of type {K.dtype}; a kernel holds real numbers.")
    K = K if K.dtype in (np.float32, np.float64) else K.astype(np.float64)
    check_kernel_matrix(K, name)
    return GraphKernel(K) if sp.issparse(K) else DenseKernel(K)
