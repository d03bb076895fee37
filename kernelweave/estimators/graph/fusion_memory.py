"""What graph fusion takes of this process's memory, by the number of samples, and what a limit leaves for its steps.

Counts are in bytes, room and limits in MiB.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from kernelweave.estimators.graph.fusion_views import NeighborSearch, ViewType, neighborhood_sizes
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.memory import PASSING
from kernelweave.inputs import Views
from kernelweave.kernels.neighbors import EXACT_LIMIT, Search, cells_bytes, indexes_bytes, least_tile_bytes
from kernelweave.kernels.representations import FEW_COLUMNS
from kernelweave.solvers.graph.fusion import VECTORS_PER_CLUSTER
from kernelweave.solvers.spectral.eigenvectors import GUARD, SHORTEST, SMALL, search_mib

# Bytes that each neighbour of a sample takes in lists and graphs, by every representation, with copies on the way.
NEIGHBOR_BYTES = 140
# The same of a list while a graph is made of it, and of the graph (60 and 12 where most neighbours are mutual).
LIST_BYTES = 70
GRAPH_BYTES = 20
# Matrices that the decomposition of a small graph takes.
DECOMPOSED = 2
# Numbers of each sample for each eigenvector: those of a search that is restarted.
EIGEN_NUMBERS = 16
# Graphs that are alive for each of a view while eigenvectors are found: its own, and its share of two sums.
GRAPHS_HELD = 3
# What helps beside a larger limit.
FEWER_NEIGHBORS = "use fewer neighbours (n_neighbors)"


def searched_in_cells(search: str, n_samples: int) -> bool:
    """Whether neighbours are searched in cells."""
    return search == "auto" and n_samples > EXACT_LIMIT


def graph_bytes(n_samples: int, widths: Sequence[int], n_clusters: int, n_neighbors: int | None) -> float:
    """Return the bytes that neighbours, graphs and eigenvectors of tables take in this process."""
    return _bytes_of_lists(n_samples, sum(map(_n_representations, widths)), n_clusters, n_neighbors)


def _bytes_of_lists(n_samples: int, n_lists: int, n_clusters: int, n_neighbors: int | None) -> float:
    """Return the same by the number of lists of neighbours."""
    m = max(neighborhood_sizes(n_samples, n_clusters, "table", n_neighbors))
    edges = NEIGHBOR_BYTES * m * n_lists
    return float(n_samples) * (edges + 8 * EIGEN_NUMBERS * (n_clusters + GUARD))


def row_bytes(n_samples: int, widths: Sequence[int]) -> float:
    """Return the bytes of the training samples by all representations, which new samples are compared with."""
    return 8.0 * n_samples * sum(width * _n_representations(width) for width in widths)


def search_bytes(n_samples: int, widths: Sequence[int], n_neighbors: int, search: Search) -> float:
    """Return the bytes that a search in this process takes at least: some rows of distances, cells, or indexes."""
    if searched_in_cells(search, n_samples):
        return cells_bytes(n_samples, max(widths, default=0), n_neighbors)
    if search == "approximate":  # those of all views are built side by side
        return indexes_bytes(n_samples, [width for width in widths for _ in range(_n_representations(width))])
    return least_tile_bytes(n_samples)


def bytes_here(
    n_samples: int, views: Views, types: Sequence[ViewType], n_clusters: int, search: NeighborSearch
) -> float:
    """Return the bytes of a fit of so many samples in memory, where a small graph is decomposed as a matrix."""
    compared = compared_widths(views, types)
    m = max(neighborhood_sizes(n_samples, n_clusters, "table", search.n_neighbors))
    beside = _bytes_beside_search(n_samples, views, types, n_clusters, search)
    found = beside + search_bytes(n_samples, compared, m, search.kind)
    if n_samples <= SMALL:
        return found
    # The search for eigenvectors comes after that for neighbours.
    edges = beside - float(n_samples) * 8 * EIGEN_NUMBERS * (n_clusters + GUARD)
    shortest = search_mib(n_samples, VECTORS_PER_CLUSTER * n_clusters, SHORTEST) * 2**20
    return max(found, edges + shortest)


def room_for_distances(
    views: Views, types: Sequence[ViewType], n_clusters: int, search: NeighborSearch, memory_limit: float
) -> float:
    """Return the MiB that a limit leaves for distances while neighbours are searched."""
    beside = _bytes_beside_search(views.n_samples, views, types, n_clusters, search)
    return max(PASSING * memory_limit, memory_limit - beside / 2**20)


def kept_bytes(
    n_samples: int, views: Views, types: Sequence[ViewType], n_clusters: int, n_neighbors: int | None
) -> float:
    """Return the bytes of rows and graphs that are there when a fit has its clusters."""
    m = max(neighborhood_sizes(n_samples, n_clusters, "table", n_neighbors))
    graphs = float(n_samples) * GRAPHS_HELD * GRAPH_BYTES * m * sum(_lists(views, types))
    return graphs + row_bytes(n_samples, compared_widths(views, types))


def start_bytes(
    n_samples: int, views: Views, types: Sequence[ViewType], n_clusters: int, search: NeighborSearch
) -> float:
    """Return the bytes of a graph of so many samples that is cut and not kept: one view after the other is searched."""
    m = max(neighborhood_sizes(n_samples, n_clusters, "table", search.n_neighbors))
    beside, graphs = _start_parts(n_samples, views, types, m)
    found = beside + search_bytes(n_samples, compared_widths(views, types), m, search.kind)
    if n_samples <= SMALL:
        return max(found, 2 * graphs + _decomposed_bytes(n_samples, views))
    return max(found, 2 * graphs + search_mib(n_samples, VECTORS_PER_CLUSTER * n_clusters, SHORTEST) * 2**20)


def room_for_start(
    views: Views, types: Sequence[ViewType], n_clusters: int, search: NeighborSearch, memory_limit: float
) -> float:
    """Return the MiB that a limit leaves for distances while such a graph is made."""
    m = max(neighborhood_sizes(views.n_samples, n_clusters, "table", search.n_neighbors))
    beside, _ = _start_parts(views.n_samples, views, types, m)
    return max(PASSING * memory_limit, memory_limit - beside / 2**20)


def _start_parts(n_samples: int, views: Views, types: Sequence[ViewType], m: int) -> tuple[float, float]:
    """Return the bytes of rows, lists and graphs while neighbours are searched, and those of the graphs alone."""
    lists = _lists(views, types)
    graphs = float(n_samples) * GRAPH_BYTES * m * sum(lists)
    listed = float(n_samples) * LIST_BYTES * m * max(lists)
    return row_bytes(n_samples, compared_widths(views, types)) + graphs + listed, graphs


def _decomposed_bytes(n_samples: int, views: Views) -> float:
    """Return the bytes that a small graph takes to be decomposed; pairs that no view has are one matrix more."""
    return 8.0 * (DECOMPOSED + (views.observed is not None)) * n_samples**2


def _lists(views: Views, types: Sequence[ViewType]) -> list[int]:
    """Return how many lists of neighbours every view has."""
    pairs = zip(views.widths, types, strict=True)
    return [_n_representations(width) if kind in ("table", "counts") else 1 for width, kind in pairs]


def _bytes_beside_search(
    n_samples: int, views: Views, types: Sequence[ViewType], n_clusters: int, search: NeighborSearch
) -> float:
    """Return the bytes of rows, graphs and eigenvectors, without what the search for neighbours takes."""
    whole = _decomposed_bytes(n_samples, views) if n_samples <= SMALL else 0.0
    graphs = _bytes_of_lists(n_samples, sum(_lists(views, types)), n_clusters, search.n_neighbors)
    return graphs + row_bytes(n_samples, compared_widths(views, types)) + whole


def compared_widths(views: Views, types: Sequence[ViewType]) -> list[int]:
    """Return the columns of the views whose rows are compared."""
    return [width for width, kind in zip(views.widths, types, strict=True) if kind == "table"]


def mib_for_eigenvectors(graphs: Sequence[sp.csr_array], memory_limit: float | None, held: float = 0.0) -> float:
    """Return the MiB that a limit leaves for eigenvectors beside the graphs, their sum and the one before.

    ``held`` bytes are taken besides.
    """
    if memory_limit is None:
        return np.inf
    stored = sum(graph.data.nbytes + graph.indices.nbytes for graph in graphs)
    return memory_limit - (GRAPHS_HELD * stored + held) / 2**20


def check_room_here(
    needed: Callable[[int], float], memory_limit: float, n_samples: int, remedy: str = FEWER_NEIGHBORS
) -> None:
    """Refuse a fit of tables in memory that takes more than the limit; ``needed`` has the bytes of so many samples.

    It rises up to each of the numbers where another way is taken, and may fall there.
    """
    limit = memory_limit * 2**20
    if needed(n_samples) <= limit:
        return
    turns = [0, *sorted(turn for turn in (SMALL, EXACT_LIMIT) if turn < n_samples), n_samples]
    fitting = 0
    for least, most in pairwise(turns):
        fits = bisect_right(range(least + 1, most + 1), limit, key=needed)
        fitting = least + fits if fits else fitting
    _refuse(needed(n_samples), memory_limit, n_samples, fitting, remedy)


def check_room(needed: float, memory_limit: float, n_samples: int) -> None:
    """Refuse a fit whose graphs do not fit, before anything is searched."""
    if needed > memory_limit * 2**20:
        _refuse(needed, memory_limit, n_samples, int(n_samples * memory_limit * 2**20 / needed))


def _refuse(needed: float, memory_limit: float, n_samples: int, fitting: int, remedy: str = FEWER_NEIGHBORS) -> None:
    raise ParameterError(
        f"the graphs of {n_samples:,} samples take about {needed / 2**20:,.0f} MiB in this process, more than "
        f"memory_limit={memory_limit:g}. Raise it, {remedy}, or fit on a sample of at most "
        f"{fitting} and predict the others: {fitting:,} samples would fit."
    )


def _n_representations(width: int) -> int:
    return 1 if width < FEW_COLUMNS else 2
