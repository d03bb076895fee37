"""What graph fusion makes of one view: a graph of its samples, and edges from new samples to them.

view        of a table or counts   ComparedView   neighbours by one or two representations, at two or three sizes
            of a kernel            KernelView     neighbours by the distances in its feature space
            that is a graph        LinkedView     the edges as they are

All three know ``edges(block)``, the weights from new samples to the training samples.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.errors import KernelError, ParameterError
from kernelweave.foundation.memory import check_matrices
from kernelweave.foundation.threads import parallel_map
from kernelweave.inputs import Views, absent_rows, as_edges, per_view, takes_missing_cells
from kernelweave.kernels.checks import check_kernel_matrix, check_kernel_part
from kernelweave.kernels.neighbors import (
    EXACT_LIMIT,
    Neighbors,
    Search,
    is_exact,
    measured_recall,
    nearest_by_distances,
    nearest_in_all,
    nearest_known,
    self_tuned_edges,
    self_tuned_graph,
)
from kernelweave.kernels.representations import (
    FEW_COLUMNS,
    Hellinger,
    Representation,
    entries,
    representations,
    view_kind,
)
from kernelweave.kernels.spec.fitting import kernel_with_gaps
from kernelweave.solvers.graph.fusion import weighted_sum

ViewType = Literal["table", "counts", "kernel", "graph"]
VIEW_TYPES = ("auto", "table", "counts", "kernel", "graph")

#: Neighbours are a quarter of the samples of a mean cluster, within these bounds (chosen on the benchmark sets).
FEWEST_NEIGHBORS = 10
MOST_NEIGHBORS = 40
#: Sizes of the neighbourhoods whose graphs are averaged, as shares of that number. Rows of counts share few columns
#: with each other, so their distances are noisier and more neighbours are needed.
SIZES = {"table": (0.5, 1.0), "counts": (0.5, 1.0, 1.5), "kernel": (0.5, 1.0)}
#: The one size beyond ``EXACT_LIMIT`` samples, where edges cost more than they tell.
NEIGHBORS_OF_MANY = 15
# Matrices that are there while the kernel of a view is computed as a whole, besides those that are kept.
MATRICES_HELD = 2


@dataclass(frozen=True)
class ComparedView:
    """A view whose samples are joined to their nearest neighbours."""

    kind: str
    representations: tuple[Representation, ...]
    rows: tuple[Matrix, ...]  # the training samples that are present, by representation; none where too many to keep
    sizes: tuple[int, ...]  # of the neighbourhoods
    radii: tuple[Floats, ...]  # (n_sizes, n_present) of every representation
    samples: Ints  # (n_present,) which training samples these are
    n_samples: int  # all training samples

    def edges(self, block: Matrix) -> sp.csr_array:
        """Return the mean of the edges by every representation and size; samples that are absent have none."""
        new = np.flatnonzero(~absent_rows(block))
        # Whether zeros are an empty histogram was seen in the training samples; the other new ones have no say in it.
        if any(isinstance(each, Hellinger) for each in self.representations):
            new = new[_filled_rows(block[new])]
        shape = (block.shape[0], self.n_samples)
        if len(new) == 0 or len(self.samples) == 0:
            return sp.csr_array(shape)
        if any(rows.shape[0] < len(self.samples) for rows in self.rows):
            raise KernelError(
                "New samples would have to be compared with all training samples, which are in blocks and exceed "
                "memory_limit. Raise it and fit again."
            )
        total = sp.csr_array((len(new), len(self.samples)))
        for representation, rows, radii in zip(self.representations, self.rows, self.radii, strict=True):
            near = nearest_known(representation.transform(block[new]), rows, max(self.sizes))
            total = total + _summed_edges(near, self.sizes, radii)
        return _spread(total / (len(self.representations) * len(self.sizes)), new, self.samples, shape)


@dataclass(frozen=True)
class KernelView:
    """A view given by a kernel matrix; new samples by their rows of kernel values."""

    diag: Floats
    sizes: tuple[int, ...]
    radii: Floats  # (n_sizes, n_present)
    samples: Ints | None = None  # (n_present,) the training samples that are present; None: all

    kind = "kernel"

    def edges(self, block: Matrix) -> sp.csr_array:
        """Return the mean of the edges of every size; samples that are absent have none."""
        new, values = _pairs_present(block, self.samples)
        near = self._nearest(values, max(self.sizes))
        edges = sp.csr_array(_summed_edges(near, self.sizes, self.radii) / len(self.sizes))
        return _spread(edges, new, self.samples, block.shape)

    def _nearest(self, block: Matrix, m: int) -> Neighbors:
        # K(x, x) is not known. The least value that puts no sample at a negative squared distance makes the nearest
        # training sample coincide with x, which is right for samples of the training set.
        squares = self.diag - 2.0 * np.asarray(block.toarray() if sp.issparse(block) else block)
        squares -= squares.min(axis=1, keepdims=True)
        order = np.argsort(squares, axis=1, kind="stable")[:, :m]
        return Neighbors(order, np.sqrt(np.take_along_axis(squares, order, axis=1)))


@dataclass(frozen=True)
class LinkedView:
    """A view that is a graph; new samples by their edges to the training samples."""

    scale: float  # what edge weights are multiplied by, so that edges of all views weigh the same in the mean
    samples: Ints | None = None  # (n_present,) the training samples that are present; None: all

    kind = "graph"

    def edges(self, block: Matrix) -> sp.csr_array:
        """Return the edges in the scale of the other views; samples that are absent have none."""
        new, links = _pairs_present(block, self.samples)
        links = sp.csr_array(links) * self.scale
        return _spread(links, new, self.samples, block.shape)


def _pairs_present(block: Matrix, samples: Ints | None) -> tuple[Ints, Matrix]:
    """Return which new samples are present, and their values with the training samples that are."""
    new = np.flatnonzero(~absent_rows(block))
    kept = block if len(new) == block.shape[0] else block[new]
    return new, kept if samples is None else kept[:, samples]


FusionView = ComparedView | KernelView | LinkedView


def comparable(fitted: Sequence[FusionView], blocks: Sequence[Matrix]) -> list[Matrix]:
    """Return the blocks in which a sample can be recognised: not kernels and graphs, whose rows are about others."""
    return [block for view, block in zip(fitted, blocks, strict=True) if isinstance(view, ComparedView)]


def view_types(choice: Any, views: Views) -> list[ViewType]:
    """Return the type of every view, those left to us decided from the values."""
    types = per_view(choice, views.names, "view_types")
    for name, wanted in zip(views.names, types, strict=True):
        if wanted not in VIEW_TYPES:
            raise ParameterError(f"view_types gives {wanted!r} for view {name!r}; choose one of {list(VIEW_TYPES)}.")
    return [view_kind(of_present(views, v, "table")) if wanted == "auto" else wanted for v, wanted in enumerate(types)]


def views_for_graphs(
    views: Views, kernel: Any, kernel_params: Any, memory_limit: float = np.inf
) -> tuple[Views, list[ViewType]]:
    """Return views and what each is to a graph, where ``kernel`` names kernels, for all views or one per view.

    Kernels that compare samples by the columns that both have stand for their views: other comparisons need all cells.
    They are matrices, which must fit into ``memory_limit`` MiB.
    """
    kernels = per_view(kernel, views.names, "kernel")
    params = per_view(kernel_params, views.names, "kernel_params")
    compared = [takes_missing_cells(each) for each in kernels]
    types = ["kernel" if isinstance(each, str) and each == "precomputed" else "auto" for each in kernels]
    if any(compared):
        check_matrices(
            MATRICES_HELD + sum(compared),
            views.n_samples,
            memory_limit,
            what="Kernels that compare samples by the columns that both have",
            remedy="choose another kernel",
        )
        blocks = list(views.blocks)
        for v in np.flatnonzero(compared).tolist():
            blocks[v] = kernel_with_gaps(views.blocks[v], views.present(v), kernels[v], params[v])
            types[v] = "kernel"
        views = replace(views, blocks=tuple(blocks))
    return views, view_types(types, views)


def of_present(views: Views, view: int, kind: str) -> Matrix:
    """Return the samples that a view has; of kernels and graphs rows and columns."""
    block = views.blocks[view]
    if views.observed is None:
        return block
    there = views.present(view)
    if kind not in ("kernel", "graph"):
        return block[there]
    return block[there][:, there] if sp.issparse(block) else block[np.ix_(there, there)]


def check_pairs(views: Views, types: Sequence[ViewType]) -> None:
    """Raise KernelError unless kernels and graphs are square and symmetric; whole, so that messages name their rows."""
    for v, (name, kind) in enumerate(zip(views.names, types, strict=True)):
        if kind == "kernel" and views.observed is not None and not sp.issparse(views.blocks[v]):
            check_kernel_part(views.blocks[v], views.present(v), f"view {name!r}")
        elif kind == "kernel":
            check_kernel_matrix(of_present(views, v, kind), f"view {name!r}")
        elif kind == "graph":
            as_edges(of_present(views, v, kind), f"view {name!r}")


def neighborhood_sizes(n_samples: int, n_clusters: int, kind: str, n_neighbors: int | None = None) -> tuple[int, ...]:
    """Return the sizes of the neighbourhoods of a view."""
    if n_neighbors is not None:
        return (min(n_neighbors, n_samples - 1),)
    if n_samples > EXACT_LIMIT:
        return (NEIGHBORS_OF_MANY,)
    quarter = round(n_samples / (4 * n_clusters))
    m = min(max(quarter, FEWEST_NEIGHBORS), MOST_NEIGHBORS)
    return tuple(sorted({min(max(1, round(share * m)), n_samples - 1) for share in SIZES[kind]}))


@dataclass(frozen=True)
class NeighborSearch:
    """How the nearest neighbours of samples are searched."""

    rng: (
        np.random.Generator
    )  # draws turns, cells and orders; the same for all views, so that their order does not matter
    n_neighbors: int | None = None
    kind: Search = "auto"
    recall_rng: np.random.Generator | None = None  # draws the samples that recall is measured on; None: not measured
    room: float = np.inf  # MiB for distances from all samples


@dataclass(frozen=True)
class _Rows:
    """The rows of a view that are searched for neighbours."""

    kind: str
    representations: tuple[Representation, ...]
    rows: tuple[Matrix, ...]  # by every representation
    sizes: tuple[int, ...]
    samples: Ints  # which of all samples these are


def fit_views(
    views: Views, types: Sequence[ViewType], n_clusters: int, search: NeighborSearch
) -> tuple[list[FusionView], list[sp.csr_array], list[float]]:
    """Return every view with the graph of its samples, edges of all views on one scale, and the share of neighbours."""
    every = range(len(types))

    def fit(v: int) -> _Rows | tuple[FusionView, sp.csr_array, float]:
        return _fit_view(views, v, types[v], n_clusters, search)

    # Few samples are ready before other threads are awake.
    found = list(parallel_map(fit, every, even_few=True) if views.n_samples > EXACT_LIMIT else map(fit, every))
    compared = [each for each in found if isinstance(each, _Rows)]
    tables = [Z for each in compared for Z in each.rows]
    counts = [max(each.sizes) for each in compared for _ in each.rows]
    near = nearest_in_all(tables, counts, search.rng, search.kind, search.room)
    complete = [_joined(each, near, search, views.n_samples) if isinstance(each, _Rows) else each for each in found]
    fitted, graphs, recalls = (list(column) for column in zip(*complete, strict=True))
    usual = np.mean(
        [g.data.mean() for g, kind in zip(graphs, types, strict=True) if kind != "graph" and g.nnz] or [1.0]
    )
    for position, (graph, kind) in enumerate(zip(graphs, types, strict=True)):
        if kind == "graph" and graph.nnz:
            scale = float(usual / graph.data.mean())
            fitted[position] = replace(fitted[position], scale=scale)
            graphs[position] = graph * scale
    return fitted, graphs, recalls


def _fit_view(
    views: Views, position: int, kind: ViewType, n_clusters: int, search: NeighborSearch
) -> _Rows | tuple[FusionView, sp.csr_array, float]:
    """Return the rows of a view that are compared; of a kernel or graph the view, its graph and the share."""
    n = views.n_samples
    there = None if views.observed is None else views.present(position)
    block = views.blocks[position]
    if kind == "kernel" and not sp.issparse(block):
        known = np.arange(n) if there is None else there
        kernel, graph = _fit_kernel(block, known, neighborhood_sizes(len(known), n_clusters, kind, search.n_neighbors))
        return replace(kernel, samples=there), _spread(graph, known, known, (n, n)), 1.0
    block = of_present(views, position, kind)
    if kind == "graph":
        links = as_edges(block, f"view {views.names[position]!r}")
        return LinkedView(1.0, there), links if there is None else _spread(links, there, there, (n, n)), np.nan
    sizes = neighborhood_sizes(block.shape[0], n_clusters, kind, search.n_neighbors)
    if kind == "kernel":
        kernel, graph = _fit_kernel(block.toarray(), np.arange(block.shape[0]), sizes)
        return replace(kernel, samples=there), graph if there is None else _spread(graph, there, there, (n, n)), 1.0
    samples = present_rows(block, kind)
    if len(samples) < 2:
        samples = np.arange(block.shape[0])  # nothing to tell: all rows are equal
    present = block if len(samples) == block.shape[0] else block[samples]
    fitted = representations(present, kind)
    rows = tuple(representation.transform(present) for representation in fitted)
    return _Rows(kind, fitted, rows, sizes, samples if there is None else there[samples])


def _joined(
    found: _Rows, near: Iterator[Neighbors], search: NeighborSearch, n_samples: int
) -> tuple[FusionView, sp.csr_array, float]:
    """Return a view with its graph from the next neighbours, one search for each representation."""
    theirs = [next(near) for _ in found.rows]
    recall = min(_recall(Z, each, search) for Z, each in zip(found.rows, theirs, strict=True))
    parts = (found.kind, found.representations, found.rows)
    view, graph = joined_view(*parts, theirs, found.sizes, found.samples, n_samples)
    return view, graph, recall


def _recall(Z: Matrix, near: Neighbors, search: NeighborSearch) -> float:
    """Return the share of the nearest neighbours that were found, NaN where it is not to be measured."""
    if is_exact(Z, search.kind):
        return 1.0
    return np.nan if search.recall_rng is None else measured_recall(Z, near, deepcopy(search.recall_rng))


def joined_view(
    kind: str,
    fitted: tuple[Representation, ...],
    rows: tuple[Matrix, ...],
    near: Sequence[Neighbors],
    sizes: tuple[int, ...],
    samples: Ints,
    n_samples: int,
) -> tuple[ComparedView, sp.csr_array]:
    """Return a view and its graph from the neighbours of its samples by every representation."""
    radii = tuple(np.stack([neighbors.first(m).radii for m in sizes]) for neighbors in near)
    graph = _spread(mean_graph(near, sizes), samples, samples, (n_samples, n_samples))
    return ComparedView(kind, fitted, rows, sizes, radii, samples, n_samples), graph


def present_rows(block: Matrix, kind: str) -> Ints:
    """Return the samples that a view describes: an empty histogram, a row of zeros among values >= 0, says nothing.

    Counts know by themselves which rows have entries; in few columns zeros are a place like any other.
    """
    n, d = block.shape
    values = block.data if sp.issparse(block) else block
    if kind == "counts" or d < FEW_COLUMNS or (values.size and values.min() < 0):
        return np.arange(n)
    return _filled_rows(block)


def _filled_rows(block: Matrix) -> Ints:
    filled = np.diff(entries(block).indptr) > 0 if sp.issparse(block) else (block != 0).any(axis=1)
    return np.flatnonzero(filled)


def _spread(A: sp.csr_array, rows: Ints, columns: Ints | None, shape: tuple[int, int]) -> sp.csr_array:
    """Return a matrix between some rows and columns (None: all of these) as one between all."""
    if A.shape == shape:
        return sp.csr_array(A)
    edges = sp.coo_array(A)
    ends = edges.col if columns is None else columns[edges.col]
    return sp.csr_array((edges.data, (rows[edges.row], ends)), shape=shape)


def _fit_kernel(K: Floats, samples: Ints, sizes: tuple[int, ...]) -> tuple[KernelView, sp.csr_array]:
    """Return the view of some samples of a kernel matrix, which is read some rows at a time, and its graph."""
    diag = np.asarray(K[samples, samples], dtype=np.float64)

    def distances(rows: slice) -> Floats:
        products = np.asarray(K[np.ix_(samples[rows], samples)], dtype=np.float64)
        return np.sqrt(np.maximum(diag[rows, None] + diag - 2.0 * products, 0.0))

    near = nearest_by_distances(distances, len(samples), max(sizes))
    return KernelView(diag, sizes, np.stack([near.first(m).radii for m in sizes])), mean_graph([near], sizes)


def mean_graph(near: Sequence[Neighbors], sizes: Sequence[int]) -> sp.csr_array:
    """Return the mean of the self-tuned graphs of every representation and size; a constant view has no edges."""
    n = len(near[0].indices)
    graphs = [self_tuned_graph(each.first(m)) for each in near if each.radii.any() for m in sizes]
    if not graphs:
        return sp.csr_array((n, n))
    total = weighted_sum(graphs, np.ones(len(graphs)))
    total.data /= len(near) * len(sizes)
    return total


def _summed_edges(near: Neighbors, sizes: Sequence[int], radii: Floats) -> sp.csr_array:
    """Return the edges from new samples, summed over sizes: found from the new end, and within the other's radius."""
    shape = (len(near.indices), radii.shape[1])
    total = sp.csr_array(shape)
    for m, there in zip(sizes, radii, strict=True):
        edges = self_tuned_edges(near.first(m), there, shape)
        rows = np.repeat(np.arange(shape[0]), near.first(m).indices.shape[1])
        within = (near.first(m).distances <= there[near.first(m).indices]).ravel()
        both = sp.csr_array((within.astype(np.float64), (rows, near.first(m).indices.ravel())), shape=shape)
        total = total + (edges + edges.multiply(both)) * 0.5
    return sp.csr_array(total)
