"""What graph fusion makes of views whose rows are in blocks elsewhere.

Neighbours are searched where the rows are. Their lists, the graphs and everything after are in this process.
"""

from copy import deepcopy
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.estimators.graph.fusion_memory import searched_in_cells
from kernelweave.estimators.graph.fusion_views import (
    ComparedView,
    NeighborSearch,
    ViewType,
    joined_view,
    neighborhood_sizes,
)
from kernelweave.foundation.array_types import Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import Views, per_view
from kernelweave.kernels.chunked_neighbors import compared_rows, nearest_in_blocks, recall_in_blocks
from kernelweave.kernels.chunked_representations import (
    PresentRows,
    digests_in_blocks,
    kind_in_blocks,
    present_in_blocks,
    representations_in_blocks,
)
from kernelweave.kernels.neighbors import EXACT_LIMIT, Neighbors
from kernelweave.kernels.representations import Representation


def types_in_blocks(choice: Any, views: Views) -> list[ViewType]:
    """Return the type of every view, which has to be a table."""
    types: list[ViewType] = []
    for name, block, wanted in zip(views.names, views.blocks, per_view(choice, views.names, "view_types"), strict=True):
        kind = kind_in_blocks(block) if wanted == "auto" else wanted  # type: ignore[arg-type]
        if kind != "table":
            what = "is mostly zeros, as counts are" if wanted == "auto" else f"is named {wanted!r} by view_types"
            raise ParameterError(
                f"view {name!r} {what}, and in blocks only views of numbers can be compared. Pass all views in "
                "memory, or declare it a table with view_types='table'."
            )
        types.append("table")
    return types


def check_search_in_blocks(search: str, n_samples: int) -> None:
    """Refuse the search that has no counterpart in blocks, instead of another one that nobody asked for."""
    if searched_in_cells(search, n_samples):
        raise ParameterError(
            f"neighbor_search='auto' searches nearby cells beyond {EXACT_LIMIT:,} samples, "
            "which is not possible for tables in "
            f"blocks, and there are {n_samples:,}. Set neighbor_search='approximate' (extra neighbors), or 'exact', "
            "which compares all pairs."
        )


def fit_views_in_blocks(
    views: Views, n_clusters: int, search: NeighborSearch, *, keep_rows: bool
) -> tuple[list[ComparedView], list[sp.csr_array], list[float]]:
    """Return every view with the graph of its samples, and the share of neighbours that were found."""
    found = [_fit_view(block, n_clusters, search, keep_rows) for block in views.blocks]
    fitted, graphs, recalls = (list(column) for column in zip(*found, strict=True))
    return fitted, graphs, recalls


def _fit_view(
    block: Any, n_clusters: int, search: NeighborSearch, keep_rows: bool
) -> tuple[ComparedView, sp.csr_array, float]:
    n = block.shape[0]
    sizes = neighborhood_sizes(n, n_clusters, "table", search.n_neighbors)
    present = present_in_blocks(block)
    fitted = representations_in_blocks(present)
    near = [nearest_in_blocks(present, each, max(sizes), deepcopy(search.rng), search.kind) for each in fitted]
    recall = min(_recall(present, each, found, search) for each, found in zip(fitted, near, strict=True))
    rows = tuple(compared_rows(present, each) if keep_rows else np.empty((0, block.shape[1])) for each in fitted)
    view, graph = joined_view("table", fitted, rows, near, sizes, present.samples, n)
    return view, graph, recall


def _recall(present: PresentRows, representation: Representation, near: Neighbors, search: NeighborSearch) -> float:
    if search.kind != "approximate" or search.recall_rng is None:
        return 1.0
    return recall_in_blocks(present, representation, near, deepcopy(search.recall_rng))


def digests_and_copies(views: Views) -> tuple[Ints, Ints]:
    """Return the digest of every sample, and a number that is the same for equal ones, in order of first occurrence."""
    digests = digests_in_blocks(views.blocks)  # type: ignore[arg-type]
    _, first, number = np.unique(digests, return_index=True, return_inverse=True)
    return digests, np.unique(first[number.ravel()], return_inverse=True)[1]
