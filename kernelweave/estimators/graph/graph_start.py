"""A start for methods that descend from labels: the clusters of the fused neighbour graph.

For samples that are absent from some views, where drawn centres are poor starts: a centre says nothing about the views
that its sample is absent from.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernelweave.estimators.graph.fusion_memory import (
    check_room_here,
    mib_for_eigenvectors,
    room_for_start,
    start_bytes,
)
from kernelweave.estimators.graph.fusion_views import NeighborSearch, ViewType, fit_views
from kernelweave.foundation.array_types import Ints
from kernelweave.foundation.memory import FREE
from kernelweave.foundation.random_streams import streams
from kernelweave.inputs import Views
from kernelweave.solvers.graph.fusion import cut_clusters, damping, fuse_graphs, unit_rows

# Runs of k-means on the eigenvectors, as many as GraphFusionClustering makes.
RUNS = 20
# What helps where a graph does not fit.
OTHER_START = "choose another start (init='k-means++')"


def graph_labels(
    views: Views, types: Sequence[ViewType], n_clusters: int, random_state: Any, memory_limit: float = np.inf
) -> Ints:
    """Return the clusters of the views' fused graph; without a seed always the same.

    A graph that takes more than ``memory_limit`` MiB is refused before neighbours are searched.
    """
    if n_clusters == 1:
        return np.zeros(views.n_samples, dtype=np.intp)
    seed = 0 if random_state is None else random_state
    search = NeighborSearch(streams(seed, 1, "cells")[0])
    memory_limit = max(FREE, memory_limit)
    n = views.n_samples
    check_room_here(lambda n: start_bytes(n, views, types, n_clusters, search), memory_limit, n, remedy=OTHER_START)
    room = room_for_start(views, types, n_clusters, search, memory_limit)
    graphs = fit_views(views, types, n_clusters, replace(search, room=room))[1]
    work = mib_for_eigenvectors(graphs, memory_limit)
    fused = fuse_graphs(graphs, n_clusters, observed=views.observed, work=work)
    vectors = fused.eigenvectors.vectors
    embedding = unit_rows(vectors * damping(fused.eigenvectors.values, n_clusters))
    first = unit_rows(vectors[:, :n_clusters])
    return cut_clusters(fused.affinity, embedding, n_clusters, streams(seed, RUNS), other=first).labels
