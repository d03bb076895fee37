"""How clearly clusters stand apart, in a word.

confidence   of a model that chose the number of clusters: it compared the data with data without clusters itself
silhouettes  the mean silhouette compared with that of one cloud without clusters: normally distributed, with the
covariance
             of the samples, cut by k-means into as many parts. A silhouette by itself says little. Such a cloud cut
             into four has 0.33 in two dimensions and 0.03 in thirty, so that no bound serves both. Silhouettes of the
             samples as they are given and those of the model's kernels are both compared, and the better one counts:
             rings stand apart by a kernel alone.
edges        of a graph: the weight of edges between clusters compared with what is expected by chance, with the same
             degrees

Twice the silhouette of the cloud is clear, and less than 1.25 times is faint: noise stays below that bound. Of edges, a
quarter of chance is clear and more than half is faint. These are round numbers, settled after a look at 16 tables and
at noise; docs/guide/report.md shows them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import euclidean_distances

from kernelweave.evaluation.describe.distances import distances_as_given, scaled, squared_distances
from kernelweave.evaluation.describe.views import View
from kernelweave.evaluation.explain import GraphExplanation
from kernelweave.evaluation.principal import scaling_components
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.random_streams import RandomState, streams
from kernelweave.foundation.threads import single_threaded_libraries
from kernelweave.partitions.silhouettes import silhouettes_from_distances

Level = Literal["clear", "overlapping", "faint", "none"]
#: Times the silhouette of one cloud that make clusters clear, and below which they are faint.
CLEAR_TIMES = 2.0
FAINT_TIMES = 1.25
#: Shares of the edges that chance would put between clusters: up to this clear, beyond that faint.
CLEAR_EDGES = 0.25
FAINT_EDGES = 0.5
#: What the confidence of a model in the number that it chose is called here.
CONFIDENCE: dict[str, Level] = {"high": "clear", "moderate": "overlapping", "low": "faint", "none": "none"}
# Fewer samples than this for each cluster say nothing.
LEAST_PER_CLUSTER = 5


@dataclass(frozen=True)
class Clearness:
    """How clearly clusters stand apart.

    Attributes
    ----------
    level : {"clear", "overlapping", "faint", "none"}
        The word; "none" where a model that looked for clusters found none.
    judged_by : {"confidence", "silhouette", "model silhouette", "edges"}
        What the word comes from.
    value : float
        The silhouette, or the weight of the edges between clusters as a share of what chance gives; NaN for confidence.
    reference : float
        The silhouette of one cloud without groups; 1 for edges, NaN for confidence.
    """

    level: Level
    judged_by: Literal["confidence", "silhouette", "model silhouette", "edges"]
    value: float = np.nan
    reference: float = np.nan


def by_confidence(model: Any) -> Clearness | None:
    """Return the word of a model that chose the number of clusters; None where it was given."""
    level = CONFIDENCE.get(getattr(model, "confidence_", "given"))
    return None if level is None else Clearness(level, "confidence")


def by_edges(graph: GraphExplanation) -> Clearness | None:
    """Return the word of the edges of a graph; None where there is one cluster or no edge."""
    share = edges_beside_chance(graph)
    if not np.isfinite(share):
        return None
    level: Level = "clear" if share <= CLEAR_EDGES else "overlapping" if share <= FAINT_EDGES else "faint"
    return Clearness(level, "edges", share, 1.0)


def edges_beside_chance(graph: GraphExplanation) -> float:
    """Return the weight of the edges between clusters as a share of what chance gives with the same degrees."""
    within = float(np.trace(graph.links))
    total = float(np.triu(graph.links).sum())
    degrees = graph.links.sum(axis=1) + np.diagonal(graph.links)
    if total <= 0:
        return np.nan
    by_chance = 1.0 - float(((degrees / degrees.sum()) ** 2).sum())
    return float((total - within) / total / by_chance) if by_chance > 0 else np.nan


def by_silhouettes(as_given: tuple[float, float] | None, of_model: tuple[float, float] | None) -> Clearness | None:
    """Return the word of mean silhouettes, each beside that of one cloud; None where there is none to go by."""
    known = []
    if as_given is not None:
        known.append(Clearness(_level(*as_given), "silhouette", *as_given))
    if of_model is not None:
        known.append(Clearness(_level(*of_model), "model silhouette", *of_model))
    return max(known, key=lambda each: each.value / each.reference, default=None)


def _level(value: float, reference: float) -> Level:
    if value >= CLEAR_TIMES * reference:
        return "clear"
    return "overlapping" if value >= FAINT_TIMES * reference else "faint"


def one_cloud(views: Sequence[View], rows: Ints, random_state: RandomState) -> list[Floats] | None:
    """Return one normal cloud with the covariance of some samples, its coordinates in every view.

    None where no two of the samples are in all views.
    """
    by_view = [distances_as_given(view, rows) ** 2 for view in views]
    complete = np.flatnonzero(~np.any([np.isnan(np.diagonal(each)) for each in by_view], axis=0))
    if len(complete) < 2:
        return None
    rng = streams(random_state, 1, "reference data")[0]
    mixing = rng.standard_normal((len(complete), len(complete))) / np.sqrt(len(complete))
    return [mixing @ scaling_components(each[np.ix_(complete, complete)], len(complete))[0] for each in by_view]


def silhouette_as_given(clouds: Sequence[Floats], n_clusters: int) -> float | None:
    """Return the mean silhouette of a cloud cut into clusters, the mean over its views."""
    squares = [euclidean_distances(cloud, squared=True) for cloud in clouds]
    labels = _cut(squares, n_clusters)
    return None if labels is None else _mean([np.sqrt(each) for each in squares], labels, n_clusters)


def silhouette_of_kernels(clouds: Sequence[Floats], views: Sequence[View], n_clusters: int) -> float | None:
    """Return the same with the distances of the views' kernels, over all views together.

    None where a view has no kernel, or one that does not take the cloud: some take no negative numbers.
    """
    if not all(view.kind == "features" and view.measure.kernels for view in views):
        return None
    rows = np.arange(len(clouds[0]))
    try:
        squares = [
            squared_distances(replace(view, block=cloud, observed=None), rows)
            for view, cloud in zip(views, clouds, strict=True)
        ]
    except ValueError:
        return None
    squares = [scaled(each) for each in squares]
    labels = _cut(squares, n_clusters)
    return None if labels is None else _mean([np.mean(np.sqrt(squares), axis=0)], labels, n_clusters)


def _cut(squares: Sequence[Floats], n_clusters: int) -> Ints | None:
    """Return clusters of k-means with these distances, every view on one scale; None where samples are too few."""
    n = len(squares[0])
    if n_clusters < 2 or n < LEAST_PER_CLUSTER * n_clusters:
        return None
    joint = np.mean([scaled(each) for each in squares], axis=0)
    if not joint.any():
        return None
    points = scaling_components(joint, n)[0]
    with single_threaded_libraries():  # sums in the same order on any machine
        return np.asarray(KMeans(n_clusters, n_init=2, random_state=0).fit(points).labels_)


def _mean(distances: Sequence[Floats], labels: Ints, n_clusters: int) -> float | None:
    mean = float(np.mean([silhouettes_from_distances(each, labels, n_clusters).mean() for each in distances]))
    return mean if mean > 0 else None
