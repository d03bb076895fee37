"""What a model says about every sample: silhouette, runner-up, confidence, and the view that disagrees.

silhouette        as everywhere (:mod:`~kernelweave.evaluation.describe.silhouettes`): between the samples as they are
                  given, the mean over the views that have the sample; of a graph, in its spectral embedding. Up to
                  2,000 samples each is compared with all others, beyond with the same 1,000 reference samples and a
                  few of every small cluster.
runner-up         the cluster that the sample would be in otherwise.
confidence        the probability of the sample's cluster, where the method has probabilities (``predict_proba``);
                  otherwise the margin (d2 - d1) / max(d1, d2), with d1 the distance to the sample's cluster and d2
                  that to the runner-up. It is 1 at the middle of a cluster, 0 half-way between two, and negative for a
                  sample nearer to the runner-up than to its cluster.
disagreeing view  the view in which the sample is nearer to the mean of another cluster, with the largest margin.

Distances to clusters are those of the model: to its centres or medoids where it has some (``transform``), to the means
of the clusters in its embedding or its scores, and otherwise to their means in the feature space of its kernel or
metric, every view counting the same. In single views they are those to the means of the clusters, as the model measures
this view.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kernelweave.estimators.comparators.k_medoids import KMedoids
from kernelweave.estimators.shared.center_clusterer import CenterClusterer
from kernelweave.estimators.shared.scores import ScoreClusterer
from kernelweave.evaluation.describe.clustering import Clustering, read_clustering
from kernelweave.evaluation.describe.distances import node_places
from kernelweave.evaluation.describe.references import ClusterSums, cluster_sums, reference_samples, squares_to_means
from kernelweave.evaluation.describe.silhouettes import WORST, Yardstick, labels_by_view, silhouettes_as_given
from kernelweave.evaluation.describe.views import View
from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import RandomState
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.partitions.silhouettes import silhouettes_from_sums

#: In place of a cluster where there is none.
NO_CLUSTER = -1


@dataclass(frozen=True, eq=False)
class SampleDescriptions:
    """What a model says about every sample.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        Clusters.
    silhouettes : ndarray of shape (n_samples,)
        Silhouettes; NaN where there is one cluster.
    runners_up : ndarray of shape (n_samples,)
        The next best cluster of every sample; -1 if there is no other.
    confidences : ndarray of shape (n_samples,)
        Probabilities or margins; NaN where there is one cluster.
    confidence_is : {"probability", "margin"}
        Which of them.
    disagreeing_views : tuple of str
        The view that disagrees most with the cluster of every sample; empty where none does.
    n_references : int
        Number of samples that each was compared with.
    """

    labels: Ints
    silhouettes: Floats
    runners_up: Ints
    confidences: Floats
    confidence_is: Literal["probability", "margin"]
    disagreeing_views: tuple[str, ...]
    n_references: int


def describe_samples(estimator: Any, X: Any, *, random_state: RandomState = 0) -> SampleDescriptions:
    """Return what a fitted model says about every training sample.

    Parameters
    ----------
    estimator : fitted estimator
        A clusterer, or a pipeline or search that ends in one.
    X : as in the fit
        The samples of the fit.
    random_state : int, default=0
        Seed for drawing reference samples if there are more than 2,000.

    Returns
    -------
    samples : SampleDescriptions
        ``silhouettes``, ``runners_up``, ``confidences`` and ``disagreeing_views``.

    Notes
    -----
    The confidence is the probability of the sample's cluster where the model has ``predict_proba``. Otherwise it is the
    margin (d2 - d1) / max(d1, d2) of the distances to its cluster and to the runner-up, in the geometry of the model:
    centres, medoids, embedding or scores, and the feature space of its kernel or metric for models without those.

    A view disagrees where the sample lies nearer to the mean of another cluster in it. For clusters that are not round
    in a view this is only a hint.

    The cost is O(n) distances to at most 2,000 reference samples in every view.

    Examples
    --------
    >>> from kernelweave import GraphFusionClustering
    >>> from kernelweave.datasets import load_multiview_digits
    >>> from kernelweave.explain import describe_samples
    >>> digits = load_multiview_digits(n_classes=3)
    >>> model = GraphFusionClustering(3, random_state=0).fit(digits.views)
    >>> samples = describe_samples(model, digits.views)
    >>> samples.confidence_is, len(samples.silhouettes) == len(digits.target)
    ('margin', True)
    """
    return samples_of(read_clustering(estimator, X), random_state)


def samples_of(clustering: Clustering, random_state: RandomState = 0) -> SampleDescriptions:
    """Return the same for a clustering that was read."""
    with single_threaded_blas():  # sums in the same order on any machine
        return _described(clustering, random_state)


def _described(clustering: Clustering, random_state: RandomState) -> SampleDescriptions:
    labels = clustering.labels
    k = clustering.n_clusters
    references = reference_samples(labels, random_state)
    views = _with_places(clustering)
    probabilities = _probabilities(clustering)
    distances = None if probabilities is not None else _distances_of_model(clustering)
    by_view = len(views) > 1 or (probabilities is None and distances is None)
    sums = [cluster_sums(view, references, labels, k, squares=by_view) for view in views]
    squares = [squares_to_means(each.squares, references, labels, each.sizes) for each in sums] if by_view else []
    if probabilities is None and distances is None:
        distances = np.sqrt(_mean_over_views(squares, references))
    if probabilities is not None:
        runners_up, confidences = _by_probability(probabilities, labels)
    else:
        runners_up, confidences = _by_margin(np.asarray(distances), labels)
    return SampleDescriptions(
        labels=labels,
        silhouettes=_silhouettes(clustering, views, sums, references),
        runners_up=runners_up,
        confidences=confidences,
        confidence_is="margin" if probabilities is None else "probability",
        disagreeing_views=_disagreeing(clustering, squares),
        n_references=len(references),
    )


def _with_places(clustering: Clustering) -> tuple[View, ...]:
    """Return the views, a graph as the places of its nodes."""
    places = node_places(clustering)
    return clustering.views if places is None else (View(clustering.views[0].name, places, "features"),)


def joint_coordinates(model: Any, samples: Any) -> Floats:
    """Return the coordinates in which a fitted model sees its samples, all views together: embedding or scores.

    Raises ParameterError for models that have none.
    """
    coordinates = _coordinates(model, samples)
    if coordinates is None:
        raise ParameterError(
            f"{type(model).__name__} has no joint coordinates of its samples: it compares them by a kernel, by "
            "distances or by probabilities. Spectral methods and graph fusion have them, "
            "for example GraphFusionClustering."
        )
    return coordinates


def _coordinates(model: Any, samples: Any) -> Floats | None:
    if hasattr(model, "embedding_"):
        return np.asarray(model.embedding_, dtype=np.float64)
    if isinstance(model, ScoreClusterer):
        return np.asarray(model.transform(samples), dtype=np.float64)
    return None


# Confidence


def _probabilities(clustering: Clustering) -> Floats | None:
    model = clustering.model
    if not hasattr(model, "predict_proba"):
        return None
    return np.asarray(model.predict_proba(clustering.samples), dtype=np.float64)


def _distances_of_model(clustering: Clustering) -> Floats | None:
    """Return the distances to centres, medoids or means in an embedding; None for models without."""
    model = clustering.model
    if isinstance(model, CenterClusterer | KMedoids) or hasattr(model, "cluster_centers_"):
        return np.asarray(model.transform(clustering.samples)) if hasattr(model, "transform") else None
    coordinates = _coordinates(model, clustering.samples)
    if coordinates is None or not np.isfinite(coordinates).all():  # of views that lack samples
        return None
    sizes = np.bincount(clustering.labels, minlength=clustering.n_clusters)
    distances = np.full((clustering.n_samples, clustering.n_clusters), np.inf)
    for c in np.flatnonzero(sizes):
        center = coordinates[clustering.labels == c].mean(axis=0)
        distances[:, c] = np.sqrt(((coordinates - center) ** 2).sum(axis=1))
    return distances


def _mean_over_views(squares: list[Floats], references: Ints) -> Floats:
    """Return squared distances to clusters over all views, each divided by its mean, of those that have the sample."""
    scaled = []
    for each in squares:
        known = each[references]
        known = known[np.isfinite(known)]
        scatter = float(known.mean()) if known.size else 0.0
        scaled.append(each / scatter if scatter > 0 else each)
    if len(scaled) == 1:
        return scaled[0]
    known = np.sum([~np.isnan(each) for each in scaled], axis=0)
    total = np.sum([np.nan_to_num(each, nan=0.0, posinf=np.inf) for each in scaled], axis=0)
    return np.divide(total, known, out=np.full(total.shape, np.inf), where=known > 0)


def _by_probability(probabilities: Floats, labels: Ints) -> tuple[Ints, Floats]:
    rows = np.arange(len(labels))
    others = probabilities.copy()
    others[rows, labels] = -np.inf
    alone = probabilities.shape[1] < 2
    runners_up = np.full(len(labels), NO_CLUSTER) if alone else others.argmax(axis=1)
    return runners_up, probabilities[rows, labels]


def _by_margin(distances: Floats, labels: Ints) -> tuple[Ints, Floats]:
    rows = np.arange(len(labels))
    own = distances[rows, labels]
    others = distances.copy()
    others[rows, labels] = np.inf
    nearest = others.argmin(axis=1)
    margins = margin(own, others[rows, nearest])
    defined = np.isfinite(others[rows, nearest])
    return np.where(defined, nearest, NO_CLUSTER), np.where(defined, margins, np.nan)


def margin(own: Floats, other: Floats) -> Floats:
    """Return (d2 - d1) / max(d1, d2) of distances to a sample's cluster and to another; 0 where both are 0."""
    larger = np.maximum(own, other)
    usable = (larger > 0) & np.isfinite(larger)
    return np.divide(other - own, larger, out=np.zeros(len(larger)), where=usable)


def _disagreeing(clustering: Clustering, squares: list[Floats]) -> tuple[str, ...]:
    """Return the view in which each sample is nearer to another cluster, by the largest margin."""
    labels = clustering.labels
    names = np.array(["", *(view.name for view in clustering.views)], dtype=object)
    if len(clustering.views) < 2:
        return ("",) * len(labels)
    against = np.zeros((len(labels), len(squares)))
    for v, each in enumerate(squares):
        there = ~np.isnan(each).any(axis=1)
        against[there, v] = -_by_margin(np.sqrt(each[there]), labels[there])[1]
    against = np.nan_to_num(against)
    worst = against.argmax(axis=1)
    most = against[np.arange(len(labels)), worst]
    return tuple(names[np.where(most > 0, worst + 1, 0)].tolist())


# Silhouettes


def _silhouettes(clustering: Clustering, views: tuple[View, ...], sums: list[ClusterSums], references: Ints) -> Floats:
    n = clustering.n_samples
    if len(references) == n and clustering.views is views:
        yardstick = Yardstick.for_views(views, "euclidean", None, 0)
        silhouettes = silhouettes_as_given(clustering, yardstick)
        return np.full(n, np.nan) if silhouettes is None else silhouettes.values
    if len(np.unique(clustering.labels)) < 2:
        return np.full(n, np.nan)
    counted = np.zeros(n, dtype=bool)
    counted[references] = True
    values = []
    for view, each, labels in zip(views, sums, labels_by_view(clustering.model, views), strict=True):
        if not np.array_equal(labels, clustering.labels):  # a model for each view by itself
            k = max(clustering.n_clusters, int(labels.max()) + 1)
            each = cluster_sums(view, references, labels, k, squares=False)
        values.append(_of_view(each, labels, counted))
    known = np.sum([~np.isnan(each) for each in values], axis=0)
    return np.asarray(np.sum([np.nan_to_num(each) for each in values], axis=0) / np.maximum(known, 1))


def _of_view(sums: ClusterSums, labels: Ints, counted: Bools) -> Floats:
    """Return the silhouettes in one view, NaN for samples that it does not have."""
    values = np.full(len(labels), np.nan)
    there = ~np.isnan(sums.given[:, 0])
    several = np.count_nonzero(sums.sizes) > 1
    values[there] = (
        silhouettes_from_sums(sums.given[there], labels[there], sums.sizes, counted[there]) if several else WORST
    )
    return values
