"""Samples that stand for a cluster: those nearest to its mean."""

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from kernelweave.evaluation.describe.clustering import Clustering
from kernelweave.evaluation.describe.distances import mean_of_views, node_places, scaled, squares_by_view
from kernelweave.evaluation.describe.results import joint_embedding
from kernelweave.evaluation.sampling import MOST_JUDGED, judged_samples, shown_samples
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.random_streams import RandomState

#: Most samples that are compared with each other.
MOST_COMPARED = 3_000
# Samples named for every cluster.
TYPICAL = 5
# Distances to a cluster's mean that differ by less than this many decimals, where 1 is the mean over pairs, are equal.
EQUAL_DISTANCES = 9


def typical_samples(clustering: Clustering, random_state: RandomState = 0) -> list[Ints]:
    """Return the typical samples of every cluster, in the space in which the model found the clusters.

    That is its joint embedding, where it has one. Otherwise distances are those of the model, and views count the same.
    Where there are many samples they are chosen among some of them, the same as in the report.
    """
    judged = judged_samples(clustering.n_samples, MOST_JUDGED, random_state)
    rows = shown_samples(clustering.labels, judged, MOST_COMPARED, random_state)[1]
    places = node_places(clustering)
    embedding = joint_embedding(clustering.model) if places is None else None
    if embedding is not None:
        squares = scaled(euclidean_distances(embedding[rows], squared=True))
    else:
        squares = mean_of_views([scaled(each) for each in squares_by_view(clustering, rows, places)])
    return typical(squares, rows, clustering.labels, clustering.n_clusters)


def typical(squares: Floats, rows: Ints, labels: Ints, n_clusters: int) -> list[Ints]:
    """Return the samples nearest to the mean of their cluster in feature space, nearest first."""
    clusters = labels[rows]
    sums = squares @ np.eye(n_clusters)[clusters]
    within = sums[np.arange(len(rows)), clusters]  # orders members like their distance to the mean
    nearest = []
    for c in range(n_clusters):
        members = np.flatnonzero(clusters == c)
        order = np.argsort(np.round(within[members], EQUAL_DISTANCES), kind="stable")
        nearest.append(rows[members[order[:TYPICAL]]])
    return nearest
