"""The kernel of one table of samples: how it is read, fitted or approximated, and described to scikit-learn."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernelweave.estimators.shared.elsewhere import is_elsewhere, placed_samples
from kernelweave.foundation.array_types import Array, Floats, Matrix
from kernelweave.foundation.memory import FREE, PASSING, Copies, check_copies, room_beside
from kernelweave.inputs import read_samples, takes_missing_cells
from kernelweave.kernels.chunked import fit_chunked_kernel, in_blocks
from kernelweave.kernels.lean import TILES_SHARE
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import (
    FittedKernel,
    PartOfPrecomputed,
    Precomputed,
    approximate_kernel,
    check_components,
    fit_kernel,
    kept_columns,
)
from kernelweave.solvers.spectral.eigenvectors import DEPTH, check_search, decomposed_whole, search_mib

# A graph of neighbours is kept for new samples and divided by degrees, and sums of such graphs are further ones.
GRAPH_COPIES = 4
# By how much the edges of a sample change at most where there are fewer samples, as a share: where neighbours are less
# often mutual, there are more edges.
EDGES_VARY = 0.02
# Matrices at most, besides one of each view, where a small kernel is decomposed instead of searched.
MATRICES = 7


def is_precomputed(kernel: Any) -> bool:
    """Whether a kernel specification, or one of several, says that X is the kernel matrix."""
    if isinstance(kernel, list | tuple):
        return any(map(is_precomputed, kernel))
    if isinstance(kernel, dict):
        return any(map(is_precomputed, kernel.values()))
    return isinstance(kernel, str) and kernel == "precomputed"


def why_without_distances(kernel: Any) -> str | None:
    """Say why distances of new samples to centres cannot be computed; None where they can."""
    if not is_precomputed(kernel):
        return None
    return (
        "With kernel='precomputed' the rows of new samples do not hold k(x, x), so their distances to the centres "
        "are not known. predict works; for transform and score pass features and a kernel name."
    )


def set_kernel_tags(tags: Any, kernel: Any) -> None:
    """Set the input tags of an estimator on one kernel."""
    tags.sparse = True
    tags.pairwise = is_precomputed(kernel)
    tags.positive_only = isinstance(kernel, str) and kernel == "chi2"
    tags.allow_nan = takes_missing_cells(kernel)


def read_kernel_input(estimator: Any, X: Any, *, reset: bool, whole: bool = False) -> Array:
    """Return samples, or rows of a kernel matrix, as an array; float32 stays: kernels compute in float64 from it.

    Where the caller uses a ``whole`` kernel matrix, the check of its symmetry finds values that are not finite too.
    """
    kernel = estimator.kernel
    if reset and is_elsewhere(estimator, X):
        return placed_samples(estimator, X)
    return read_samples(
        estimator,
        X,
        reset=reset,
        keep_float32=True,
        allow_nan=takes_missing_cells(kernel),
        checked_later=whole and is_precomputed(kernel),
        features=not is_precomputed(kernel),
    )


def neighbor_recall(kernel: FittedKernel) -> float | None:
    """Return the share of the nearest neighbours that a graph was made of; None of kernels that are none."""
    recall = kernel.neighbor_recall
    return None if np.isnan(recall) else recall


def room_beside_kernels(
    kernels: Sequence[FittedKernel], operators: Sequence[KernelOperator], memory_limit: float
) -> float:
    """Return the MiB left within a limit after the stored kernels; a matrix that the caller gave is not counted."""
    return max(0.0, memory_limit - _stored_mib(kernels, operators))


def room_for_search(
    kernels: Sequence[FittedKernel],
    operators: Sequence[KernelOperator],
    n_vectors: int,
    memory_limit: float,
    *,
    n_blocks: int = 0,
) -> float:
    """Return the MiB that a limit leaves for a search for eigenvectors beside kernels; an error where they are too few.

    ``n_blocks`` sets of such vectors are kept meanwhile. A limit is that of this machine's memory: arrays elsewhere and
    on a device are not counted.
    """
    if not all(op.backend.direct_limit for op in operators):
        return np.inf
    graphs = sum(GRAPH_COPIES * _sparse_mib(graph) for op in operators if (graph := op.sparse_matrix()) is not None)
    held = _stored_mib(kernels, operators) + graphs
    n = max(op.n_samples for op in operators)
    held += n_blocks * n * n_vectors * 8 / 2**20
    held += max(op.tiles_mib for op in operators)
    # Wide samples leave less; part of the limit is free for narrow ones.
    held += memory_limit - room_beside(sum(kernel.kept_mib for kernel in kernels), memory_limit)
    if not all(decomposed_whole(op, MATRICES + len(operators), memory_limit - held) for op in operators):
        check_search(n, n_vectors, memory_limit, held, uncertain=EDGES_VARY * graphs)
    return memory_limit - held


def kernel_beside_search(
    kernel: FittedKernel, op: KernelOperator, X: Matrix, n_vectors: int, memory_limit: float
) -> tuple[FittedKernel, KernelOperator]:
    """Return a kernel and its operator as a search for eigenvectors takes them: see ``kernels_beside_search``."""
    if not op.recomputed:
        return kernel, op
    (lean,) = kernels_beside_search([kernel], [X], n_vectors, memory_limit)
    return (kernel, op) if lean is kernel else (lean, lean.operator())


def kernels_beside_search(
    kernels: Sequence[FittedKernel], blocks: Sequence[Matrix], n_vectors: int, memory_limit: float
) -> list[FittedKernel]:
    """Return kernels that are computed again at every product as a search for eigenvectors takes them.

    Where what they keep of the samples leaves no room for a whole Krylov basis, the samples are prepared when they are
    needed instead: a short basis takes many more products.
    """
    n = max(block.shape[0] for block in blocks)
    left = room_beside(sum(kernel.kept_mib for kernel in kernels), memory_limit)
    if search_mib(n, n_vectors, DEPTH) <= max(left, FREE):
        return list(kernels)
    lean = [kernel.unprepared(X, memory_limit) for kernel, X in zip(kernels, blocks, strict=True)]
    freed = room_beside(sum(kernel.kept_mib for kernel in lean), memory_limit) - TILES_SHARE * memory_limit
    every = all(small is not kernel for small, kernel in zip(lean, kernels, strict=True))
    return lean if every and freed > left else list(kernels)


def _stored_mib(kernels: Sequence[FittedKernel], operators: Sequence[KernelOperator]) -> float:
    """Return the MiB of the kernels that are stored as matrices and that the caller did not give."""
    taken = 0
    for kernel, op in zip(kernels, operators, strict=True):
        matrix = op.stored_matrix()
        given = isinstance(kernel, Precomputed) and not isinstance(kernel, PartOfPrecomputed)
        if isinstance(matrix, np.ndarray) and not given:
            taken += matrix.nbytes
    return taken / 2**20


def _sparse_mib(graph: Any) -> float:
    return float(graph.data.nbytes + graph.indices.nbytes + graph.indptr.nbytes) / 2**20


def fit_or_approximate(
    X: Matrix,
    kernel: Any,
    params: Mapping[str, Any] | None,
    *,
    centre_features: bool,
    weights: Floats | None = None,
    approximation: str | None = None,
    n_components: int = 200,
    random_state: Any = None,
    name: str = "X",
    memory_limit: float = np.inf,
    n_kernels: int = 1,
    out: Floats | None = None,
) -> FittedKernel:
    """Return the kernel with every parameter fixed on the training samples, approximated where asked for.

    ``centre_features`` allows features to be moved by their mean, for methods that use distances alone. What is kept of
    the samples must fit into ``memory_limit`` MiB; with ``out``, where features are written, the caller has seen to it.
    Searches of neighbours share the limit, where ``n_kernels`` are fitted.
    """
    drawn: dict[str, Any] = {"n_components": n_components, "random_state": random_state}
    if in_blocks(X):
        return fit_chunked_kernel(
            X,
            kernel,
            params,
            centre_features=centre_features,
            weights=weights,
            approximation=approximation,
            **drawn,
        )
    if out is None:
        kept = copies_of(
            X, kernel, params, centre_features=centre_features, approximation=approximation, n_components=n_components
        )
        check_kept([kept], memory_limit, approximation, n_components)
    if approximation is None:
        within: dict[str, Any] = {"memory_limit": memory_limit, "n_kernels": n_kernels, "out": out}
        return fit_kernel(X, kernel, params, centre_features=centre_features, weights=weights, name=name, **within)
    return approximate_kernel(
        X,
        kernel,
        params,
        method=approximation,  # type: ignore[arg-type]
        weights=weights,
        memory_limit=memory_limit,
        out=out,
        **drawn,
    )


def copies_of(
    X: Matrix,
    kernel: Any,
    params: Mapping[str, Any] | None,
    *,
    centre_features: bool,
    approximation: str | None = None,
    n_components: int = 200,
) -> Copies:
    """Return what a fitted kernel keeps of samples."""
    columns = kept_columns(
        X, kernel, params, centre_features=centre_features, method=approximation, n_components=n_components
    )
    what = "prepared rows" if approximation is None else "features of the approximation"
    # The map of approximation="nystroem" is a matrix of its components.
    beside = 8 * columns**2 if approximation == "nystroem" else 0
    return Copies(what, X.shape[0], 8 * columns, beside)


def check_kept(copied: Sequence[Copies], memory_limit: float, approximation: str | None, n_components: int) -> None:
    """Raise where what fitted kernels keep of samples is more than a limit, before it is there."""
    remedy = "cluster some of the samples and predict the others"
    if approximation is None:
        check_copies(copied, memory_limit, remedy=remedy)
        return
    check_components(max(part.n_samples for part in copied), approximation, n_components, memory_limit)
    # What is free, and as much of the limit, goes to what features are computed from and to runs on them.
    copied = [replace(part, kept=part.kept / (1 - PASSING), beside=part.beside / (1 - PASSING)) for part in copied]
    check_copies(copied, memory_limit, remedy=f"lower n_components, or {remedy}")
