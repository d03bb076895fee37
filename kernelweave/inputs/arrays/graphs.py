"""Graphs as affinity matrices or networkx graphs: one gate, nothing made dense."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from kernelweave.foundation.errors import KernelError
from kernelweave.inputs.arrays.chunks import refuse_dask
from kernelweave.inputs.arrays.finiteness import raise_if_not_finite
from kernelweave.inputs.arrays.samples import raise_if_text

#: Difference between X[i, j] and X[j, i], as a share of the largest edge weight, that rounding explains.
ASYMMETRY_TOLERANCE = 1e-10


def read_affinity(estimator: Any, X: Any, *, min_nodes: int = 2) -> sp.csr_array:
    """Return X as a symmetric CSR matrix of edge weights >= 0; dense input is made sparse, never the reverse."""
    refuse_dask(X, type(estimator).__name__)
    given = X
    try:
        X = _from_networkx(X) if hasattr(X, "adjacency") and hasattr(X, "nodes") else X
        X = validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=min_nodes)
    except ValueError as error:
        raise_if_text(error, "X")
        raise_if_not_finite(error, given, "X", "Remove edges whose weight is unknown.")
        raise
    if X.shape[0] != X.shape[1]:
        raise KernelError(
            f"X must be a square affinity matrix, one row and one column per node; its shape is {X.shape}. "
            "For features build a graph first, for instance with sklearn.neighbors.kneighbors_graph."
        )
    return as_edges(X)


def as_edges(X: Any, name: str = "X") -> sp.csr_array:
    """Return a square matrix as symmetric edge weights >= 0 in CSR form; ``name`` is what messages call it."""
    if X.shape[0] != X.shape[1]:
        raise KernelError(f"{name} is a graph and must be square, one row and one column per node, but is {X.shape}.")
    A = sp.csr_array(X, copy=True)
    A.sum_duplicates()
    A.eliminate_zeros()
    A.sort_indices()
    _check_edges(A, name)
    return _with_small_indices(A)


def _with_small_indices(A: sp.csr_array) -> sp.csr_array:
    """Return a graph with indices of 32 bits where they are enough: half the memory, and loops are compiled for them.

    Files and other libraries give 64 bits to graphs of any size.
    """
    kind = np.int32 if max(A.shape[0], A.nnz) <= np.iinfo(np.int32).max else np.int64
    if A.indices.dtype == kind:
        return A
    small = sp.csr_array((A.data, A.indices.astype(kind), A.indptr.astype(kind)), shape=A.shape)
    small.has_canonical_format = True
    return small


def _check_edges(A: sp.csr_array, name: str) -> None:
    if A.nnz and A.data.min() < 0:
        at = int(A.data.argmin())
        row = int(np.searchsorted(A.indptr, at, side="right")) - 1
        raise KernelError(
            f"Negative values in data: {name}[{row}, {A.indices[at]}] = {A.data[at]:.6g}. Edge weights must be >= 0. "
            "Clip them at 0, or shift them all."
        )
    differences = abs(A - A.T).tocoo()
    if differences.nnz and differences.data.max() > ASYMMETRY_TOLERANCE * A.data.max():
        at = int(differences.data.argmax())
        i = int(differences.row[at])
        j = int(differences.col[at])
        raise KernelError(
            f"{name} is not symmetric: {name}[{i}, {j}] = {A[i, j]:.9g} but {name}[{j}, {i}] = {A[j, i]:.9g}. For a "
            "directed graph pass (X + X.T) / 2."
        )


def _from_networkx(graph: Any) -> sp.csr_array:
    """Return the adjacency of a networkx graph, nodes in the order of the graph; a directed one is refused."""
    if graph.is_directed():
        raise KernelError("X is a directed graph; make it undirected first, with X.to_undirected().")
    place = {node: i for i, node in enumerate(graph.nodes)}
    edges = [(place[u], place[v], d.get("weight", 1.0)) for u, v, d in graph.edges(data=True)]
    if not edges:
        return sp.csr_array((len(place), len(place)))
    rows, cols, data = (np.array(column) for column in zip(*edges, strict=True))
    between = rows != cols  # a self-loop is stored once, every other edge in both directions
    entries = np.r_[data, data[between]], (np.r_[rows, cols[between]], np.r_[cols, rows[between]])
    return sp.csr_array(entries, shape=(len(place), len(place)), dtype=np.float64)
