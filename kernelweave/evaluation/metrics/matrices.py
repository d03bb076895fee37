"""Kernels and affinities as the measures see them: an operator, checked against the labels."""

from typing import Any

import numpy as np

from kernelweave.evaluation.metrics.checks import check_length
from kernelweave.foundation.errors import KernelError
from kernelweave.kernels.conversion import as_operator
from kernelweave.kernels.operator import KernelOperator


def as_kernel(K: Any, codes: np.ndarray, name: str = "K", *, hint: str = "") -> KernelOperator:
    """Return a stored kernel or an operator as an operator on the labelled samples."""
    op = _operator(K, name, hint)
    if op.shape[0] != op.shape[1]:
        raise KernelError(
            f"{name} is an operator of shape {op.shape}, between two sets of samples. "
            "Give the kernel of the labelled samples with themselves."
        )
    check_length(codes, op.n_samples, name)
    return op


def _operator(K: Any, name: str, hint: str) -> KernelOperator:
    try:
        return as_operator(K, name)
    except KernelError as error:
        raise KernelError(f"{error}{hint}") from error


def as_affinity(A: Any, codes: np.ndarray) -> KernelOperator:
    """Return a symmetric affinity matrix without negative entries as an operator."""
    op = as_kernel(A, codes, "A")
    graph = op.sparse_matrix()
    matrix = op.stored_matrix() if graph is None else graph
    lowest = np.float64(0.0) if matrix is None else matrix.min()
    if lowest < 0:
        raise KernelError(
            f"A holds the negative affinity {lowest.item()!r}. Edge weights must be 0 or more; "
            "clip them at 0 or shift them first."
        )
    return op
