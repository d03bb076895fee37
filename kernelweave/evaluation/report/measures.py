"""Figures of the report: distances of the model, doubtful samples, single views, known classes."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans

from kernelweave.evaluation.describe.clustering import Clustering
from kernelweave.evaluation.describe.distances import mean_of_views, scaled, squares_by_view
from kernelweave.evaluation.describe.silhouettes import Silhouettes
from kernelweave.evaluation.describe.views import View
from kernelweave.evaluation.metrics import adjusted_rand_index, clustering_accuracy, normalized_mutual_info
from kernelweave.evaluation.principal import scaling_components
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.threads import single_threaded_libraries

# Samples named among the doubtful.
DOUBTFUL = 10


@dataclass(frozen=True, eq=False)
class ModelDistances:
    """Distances among some samples as the model measures them, over all views, and what single views say."""

    squares: Floats  # mean over the views, each divided by its mean
    distances: Floats | None  # the same of the distances; None where they are not asked for
    nmi: list[float]  # of the clusters with k-means on each view, where there are several
    of_few: list[Floats]  # squares among a few of the samples, view by view; NaN where a view lacks one


@dataclass(frozen=True, eq=False)
class Truth:
    """How the clusters compare with known classes."""

    nmi: float
    ari: float
    accuracy: float
    classes: tuple[str, ...]
    table: Ints  # (clusters, classes)


def model_distances(
    clustering: Clustering, rows: Ints, few: Ints, places: Floats | None, random_state: Any, *, roots: bool
) -> ModelDistances:
    """Measure view by view, and compare the clusters with k-means on each where there are several.

    ``few`` are positions in ``rows``; ``roots`` says whether distances are wanted beside their squares.
    """
    if any(view.observed is not None for view in clustering.views):
        return _distances_of_present(clustering, rows, few, random_state, roots=roots)
    shape = (len(rows), len(rows))
    count = len(clustering.views)
    result = ModelDistances(np.zeros(shape), np.zeros(shape) if roots else None, [], [])
    for view, squares in zip(clustering.views, squares_by_view(clustering, rows, places), strict=True):
        squares = scaled(squares)
        np.add(result.squares, squares / count, out=result.squares)
        if result.distances is not None:
            np.add(result.distances, np.sqrt(squares) / count, out=result.distances)
        result.of_few.append(squares[np.ix_(few, few)])
        if count > 1:
            result.nmi.append(_nmi_with_kmeans(view, squares, rows, clustering.labels[rows], random_state))
    return result


def _distances_of_present(
    clustering: Clustering, rows: Ints, few: Ints, random_state: Any, *, roots: bool
) -> ModelDistances:
    """Measure pairs in the views that have both, and compare the clusters with k-means on the samples of each."""
    by_view = [scaled(squares) for squares in squares_by_view(clustering, rows)]
    nmi = []
    for view, squares in zip(clustering.views, by_view, strict=True):
        there = view.present(rows)
        among = squares[np.ix_(there, there)]
        nmi.append(_nmi_with_kmeans(view, among, rows[there], clustering.labels[rows[there]], random_state))
    distances = mean_of_views([np.sqrt(squares) for squares in by_view]) if roots else None
    return ModelDistances(mean_of_views(by_view), distances, nmi, [each[np.ix_(few, few)] for each in by_view])


def _nmi_with_kmeans(view: View, squares: Floats, rows: Ints, labels: Ints, random_state: Any) -> float:
    """Return the NMI of the clusters with those of k-means on one view by itself."""
    k = len(np.unique(labels))
    block = view.block[rows] if view.kind == "features" else scaling_components(squares, k)[0]
    block = _short_indices(block) if sp.issparse(block) else block
    with warnings.catch_warnings(), single_threaded_libraries():  # sums in the same order on any machine
        warnings.simplefilter("ignore")  # of fewer distinct samples than clusters
        alone = KMeans(k, n_init=4, random_state=random_state).fit(block).labels_
    return normalized_mutual_info(labels, alone)


def _short_indices(block: Any) -> sp.csr_array:
    """Return a sparse block with the short indices scikit-learn's k-means wants."""
    return sp.csr_array((block.data, block.indices.astype(np.int32), block.indptr.astype(np.int32)), shape=block.shape)


def by_cluster(silhouettes: Silhouettes | None, labels: Ints, n_clusters: int) -> tuple[Floats, Floats]:
    """Return mean silhouette and share of negative ones of every cluster, NaN where there is none."""
    if silhouettes is None:
        return np.full(n_clusters, np.nan), np.full(n_clusters, np.nan)
    values = silhouettes.values
    clusters = labels[silhouettes.rows]
    sizes = np.bincount(clusters, minlength=n_clusters)
    sums = (np.bincount(clusters, weights, minlength=n_clusters) for weights in (values, values < 0))
    means, negative = (np.divide(s, sizes, out=np.full(n_clusters, np.nan), where=sizes > 0) for s in sums)
    return means, negative


def doubtful(silhouettes: Silhouettes | None) -> Ints:
    """Return the positions, among the silhouettes, of the lowest ones."""
    if silhouettes is None:
        return np.empty(0, dtype=np.intp)
    return np.argsort(silhouettes.values, kind="stable")[:DOUBTFUL]


def truth(labels_true: Any, labels: Ints, n_clusters: int) -> Truth:
    """Compare the clusters with known classes."""
    known = np.asarray(labels_true)
    there = np.array([label is not None for label in known.tolist()], dtype=bool)
    if known.ndim != 1 or len(known) != len(labels):
        raise ParameterError(
            f"labels_true has shape {known.shape}; give one class for each of the {len(labels)} samples."
        )
    if not there.all():  # what is unknown is not compared
        known = np.array(known[there].tolist())
        labels = labels[there]
    classes, codes = np.unique(known, return_inverse=True)
    table = np.zeros((n_clusters, len(classes)), dtype=np.intp)
    np.add.at(table, (labels, codes), 1)
    return Truth(
        nmi=normalized_mutual_info(known, labels),
        ari=adjusted_rand_index(known, labels),
        accuracy=clustering_accuracy(known, labels),
        classes=tuple(str(name) for name in classes),
        table=table,
    )
