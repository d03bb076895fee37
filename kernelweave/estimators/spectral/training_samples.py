"""The samples that a kernel spectral model is trained on: all, some at random, or some spread out."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.estimators.shared.single_kernel import is_precomputed
from kernelweave.foundation.array_types import Array, Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.memory import rows_within
from kernelweave.kernels.chunked import in_blocks, some_samples
from kernelweave.kernels.operator import KernelOperator

#: Trials of a swap for each sample to train on.
SWAPS = 4
# Arrays that are alive while rows of a kernel are computed.
ROWS_HELD = 4


def training_rows(X: Array, kernel: Any, indices: Ints) -> Array:
    """Return the samples to train on, or the block of a precomputed kernel that belongs to them."""
    if in_blocks(X):
        return some_samples(X, indices)
    if len(indices) == X.shape[0]:
        return X  # all of them, in their order
    if not is_precomputed(kernel):
        return X[indices]
    square = X.shape[0] == X.shape[1]  # a matrix that is not is reported where kernels are read
    if not square:
        return X
    return X[indices][:, indices] if sp.issparse(X) else X[np.ix_(indices, indices)]


def training_samples(
    n: int,
    wanted: int | None,
    selection: str,
    n_clusters: int,
    operators: Callable[[], Sequence[KernelOperator]],
    rng: np.random.Generator,
    *,
    elsewhere: bool = False,
    memory_limit: float = np.inf,
) -> Ints:
    """Return the samples to train on: all (an error where they are elsewhere), some at random, or some spread out.

    ``"entropy"`` swaps samples while the sum of their kernel values falls, which raises the quadratic Renyi entropy of
    the density they stand for; ``memory_limit`` MiB bound the kernel values that are held for it.
    """
    if wanted is None or wanted >= n:
        if elsewhere:
            raise ParameterError(
                f"n_train_samples={wanted} trains on all {n} samples, which are in blocks elsewhere. Set it to a few "
                "thousand; all samples are still assigned."
            )
        return np.arange(n)
    if wanted < n_clusters:
        raise ParameterError(f"n_train_samples={wanted} is fewer than n_clusters={n_clusters}; raise it.")
    chosen = np.sort(rng.choice(n, wanted, replace=False))
    if selection == "random":
        return chosen
    kernels = operators()
    outside = np.setdiff1d(np.arange(n), chosen)
    sums = np.sum([_sums_among(op, chosen, memory_limit) for op in kernels], axis=0)
    for _ in range(SWAPS * wanted):
        leaving = int(np.argmax(sums))
        place = int(rng.integers(len(outside)))
        entering = outside[place]
        rows = [op.block(np.array([entering, chosen[leaving]]), np.append(chosen, entering)) for op in kernels]
        new = np.sum([row[0] for row in rows], axis=0)
        old = np.sum([row[1] for row in rows], axis=0)
        arriving = float(new[:-1].sum() - new[leaving] + new[-1])
        if arriving >= sums[leaving]:
            continue
        sums += new[:-1] - old[:-1]
        sums[leaving] = arriving
        outside[place] = chosen[leaving]
        chosen[leaving] = entering
    return np.sort(chosen)


def _sums_among(op: KernelOperator, chosen: Ints, memory_limit: float) -> Floats:
    """Return the sums of the kernel's rows among chosen samples, as many rows at a time as the limit allows."""
    sums = np.empty(len(chosen))
    step = rows_within(memory_limit / 2, ROWS_HELD * 8 * len(chosen), len(chosen))
    for start in range(0, len(chosen), step):
        rows = chosen[start : start + step]
        sums[start : start + step] = np.asarray(op.block(rows, chosen), dtype=np.float64).sum(axis=1)
    return sums
