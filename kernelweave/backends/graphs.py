"""Graphs and rows of distances on this machine: compiled loops laid over threads.

Results do not depend on the number of threads: a row is written by one of them, in an order that is always the same.
Indices take four bytes as long as these are enough.
"""

from collections.abc import Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.backends.preparing import read_only
from kernelweave.foundation.array_types import Array, Bools, Floats, Ints
from kernelweave.foundation.threads import for_ranges, worthwhile

# Rows that a thread takes at a time: rows of a graph are of very different length.
GRAPH_ROWS = 2048
# The same where a row is read once, and all take about as long.
PRODUCT_ROWS = 1024
# The same where rows are compared with many others.
DISTANCE_ROWS = 32
# The same where rows meet others, which takes longer; for each piece a number is noted for every row.
MEETING_ROWS = 1024
# Pieces that keep many threads busy to the end, where these are not too small.
MANY_PIECES = 256
FEWEST_MEETING = 256
# Numbers that a link costs as much as: it is read, compared and written here and there.
A_LINK = 4


def _loops() -> ModuleType:
    """Return the compiled loops, imported on first use: numba takes a second to load."""
    from kernelweave.backends.compiled import graph_loops

    return graph_loops


def least_columns(products: Array, offsets: Array, m: int) -> Ints:
    """Return the columns of the m least offsets[j] - 2 products[i, j] of every row, least first; see the plain loop."""
    out = np.empty((len(products), m), dtype=np.intp)
    _loops().least_columns(products, offsets, out)
    return out


def row_distances(Z: Array, known: Array, chosen: Ints) -> Floats:
    """Return the distances of every row from its chosen known ones."""
    out = np.empty(chosen.shape)
    rows = read_only(np.ascontiguousarray(Z))
    known = read_only(known)
    loop = _loops().row_distances

    def work(lo: int, hi: int) -> None:
        loop(rows[lo:hi], known, chosen[lo:hi], out[lo:hi])

    elements = chosen.size * known.shape[1]
    width = DISTANCE_ROWS if worthwhile(elements) > 1 else max(1, len(chosen))
    for_ranges(work, len(chosen), width=width, elements=elements)
    return out


def largest_finite(values: Floats) -> Floats:
    """Return the largest finite value of every row, zero where none is above zero."""
    out = np.empty(len(values))
    largest = _loops().largest_finite
    for_ranges(lambda lo, hi: largest(values, out, lo, hi), len(values), width=GRAPH_ROWS, elements=values.size)
    return out


class NeighborRounds:
    """Neighbours of every row, nearest first, that come closer round by round; see the plain loops.

    In a round, a row meets those that its acquaintances know: up to ``breadth`` of its neighbours and of the rows whose
    neighbour it is. Arrays are made once: pages of memory that are new to a process are slow to get on many threads.
    """

    def __init__(self, rows: Floats, neighbors: Ints, squares: Floats, breadth: int) -> None:
        n = len(rows)
        index = neighbors.dtype
        self.neighbors = neighbors
        self.squares = squares
        #: Who became a neighbour in the last round, at first all.
        self.fresh: Bools = np.ones(neighbors.shape, dtype=np.bool_)
        self._rows = read_only(rows)
        self._next = (np.empty_like(neighbors), np.empty_like(squares), np.empty_like(self.fresh))
        self._by_rank = (np.empty(neighbors.shape[::-1], dtype=index), np.empty(neighbors.shape[::-1], dtype=np.bool_))
        self._callers = (np.empty((n, breadth), index), np.empty((n, breadth), np.bool_), np.empty(n, index))
        self._known = (np.empty((n, 2 * breadth), index), np.empty((n, 2), index))

    def take(self) -> None:
        """Take a round."""
        n = len(self._rows)
        loops = _loops()
        now = (self.neighbors, self.squares, self.fresh)
        elements = self.neighbors.size
        for_ranges(self._turn, n, width=GRAPH_ROWS, elements=elements)
        for_ranges(partial(loops.list_callers, *self._by_rank, *self._callers), n, elements=elements)
        known = partial(loops.list_known, self.neighbors, self.fresh, *self._callers, *self._known)
        for_ranges(known, n, width=GRAPH_ROWS, elements=elements)
        meet = partial(loops.closer_rows, self._rows, self.neighbors, self.squares, *self._known, *self._next)
        width = min(MEETING_ROWS, max(FEWEST_MEETING, n // MANY_PIECES))
        for_ranges(meet, n, width=width, elements=elements * self._rows.shape[1])
        self.neighbors, self.squares, self.fresh = self._next
        self._next = now

    def _turn(self, start: int, stop: int) -> None:
        """Write the neighbours of some rows by their ranks."""
        for values, by_rank in zip((self.neighbors, self.fresh), self._by_rank, strict=True):
            by_rank[:, start:stop] = values[start:stop].T


def index_type(n: int) -> type:
    """Return the smallest type of numbers of so many rows."""
    return _index_type(n, 0)


def product(A: sp.csr_array, H: Array) -> Floats:
    """Return a sparse matrix times a block of columns in either precision, added up in double precision."""
    out = np.empty((A.shape[0], H.shape[1]))
    multiply = _loops().multiply_rows
    columns = np.ascontiguousarray(H)

    def work(lo: int, hi: int) -> None:
        multiply(A.indptr, A.indices, A.data, columns, out, lo, hi)

    for_ranges(work, A.shape[0], width=PRODUCT_ROWS, elements=A.nnz * H.shape[1])
    return out


def scale_rows(scale: Floats, block: Array, out: Array) -> Array:
    """Write the rows of a block times a number each to an array of either precision, and return it."""

    def work(lo: int, hi: int) -> None:
        np.multiply(scale[lo:hi, None], block[lo:hi], out=out[lo:hi], dtype=np.float64, casting="same_kind")

    for_ranges(work, len(block), width=PRODUCT_ROWS, elements=block.size)
    return out


def mutual_graph(indices: Ints, values: Floats) -> sp.csr_array:
    """Return (A + A^T) / 2 of the matrix A that has values[i, t] at (i, indices[i, t])."""
    n = len(indices)
    compiled = _loops()
    counts = np.zeros(n, dtype=np.int64)
    elements = A_LINK * values.size
    for_ranges(lambda lo, hi: compiled.count_links(indices, values, counts, lo, hi), n, elements=elements)
    starts = _ends(counts)
    sources = np.empty(starts[-1], dtype=_index_type(n, 0))
    weights = np.empty(starts[-1])
    list_links = compiled.list_links
    for_ranges(lambda lo, hi: list_links(indices, values, starts, sources, weights, lo, hi), n, elements=elements)
    join = partial(compiled.join_links, indices, values, starts, sources, weights)
    return _filled_graph(join, n, n, 2 * elements)


def weighted_sum(graphs: Sequence[sp.csr_array], weights: Sequence[float]) -> sp.csr_array:
    """Return the weighted sum of graphs over the same nodes, added in their order."""
    first, *others = (_sorted(graph) for graph in graphs)
    if not others:
        return first * weights[0]
    total = first
    factor = float(weights[0])
    for graph, weight in zip(others, weights[1:], strict=True):
        here = (total.indptr, total.indices, total.data, factor)
        there = (graph.indptr, graph.indices, graph.data, float(weight))
        add = partial(_loops().add_graph_rows, *here, *there)
        total = _filled_graph(add, graph.shape[0], graph.shape[1], A_LINK * (total.nnz + graph.nnz))
        factor = 1.0
    return total


def _sorted(graph: Any) -> sp.csr_array:
    """Return a graph by rows, each in the order of its columns."""
    # A new object of a graph would not know any more that it is in order, and would look.
    graph = graph if isinstance(graph, sp.csr_array) else sp.csr_array(graph)
    return graph if graph.has_canonical_format else _canonical(graph)


def _canonical(graph: sp.csr_array) -> sp.csr_array:
    graph = graph.copy()
    graph.sum_duplicates()
    return graph


def _filled_graph(fill: Any, n: int, n_columns: int, elements: int) -> sp.csr_array:
    """Return the graph that a loop writes: once over the rows for their sizes, and once to fill them."""
    sizes = np.zeros(n + 1, dtype=np.int64)
    nothing = np.empty(0, dtype=np.int32)
    for_ranges(
        lambda lo, hi: fill(sizes, nothing, np.empty(0), lo, hi, write=False), n, width=GRAPH_ROWS, elements=elements
    )
    ends = np.cumsum(sizes)
    indices = np.empty(ends[-1], dtype=_index_type(n_columns, int(ends[-1])))
    data = np.empty(ends[-1])
    for_ranges(lambda lo, hi: fill(ends, indices, data, lo, hi, write=True), n, width=GRAPH_ROWS, elements=elements)
    graph = sp.csr_array((data, indices, ends.astype(indices.dtype)), shape=(n, n_columns))
    graph.has_canonical_format = True
    return graph


def _ends(counts: Ints) -> Ints:
    """Return where the entries of every row begin, and where the last ones end."""
    ends = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=ends[1:])
    return ends


def _index_type(n: int, n_entries: int) -> type:
    return np.int32 if max(n, n_entries) <= np.iinfo(np.int32).max else np.int64
