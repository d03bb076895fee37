"""Figures of the report: silhouettes, typical and doubtful samples, what single views say, agreement with classes."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from kernelweave.evaluation.metrics import adjusted_rand_index, clustering_accuracy, normalized_mutual_info
from kernelweave.evaluation.report.geometry import main_axes, scaled, squared_distances
from kernelweave.evaluation.report.seen import Seen, SeenView
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.partitions.silhouettes import coefficients

#: Most samples whose silhouettes are computed, and most that are drawn.
MOST_SILHOUETTES = 2_000
MOST_POINTS = 3_000
# Samples of every cluster that are looked at, however small its share.
LEAST = 10
# Samples named for every cluster, and in all among the doubtful.
TYPICAL = 5
DOUBTFUL = 10


@dataclass(frozen=True, eq=False)
class Silhouettes:
    """Silhouettes of some samples and the cluster each would be in otherwise."""

    rows: Ints
    values: Floats
    others: Ints


@dataclass(frozen=True, eq=False)
class Compared:
    """Distances among the samples drawn, over all views and, where there are several, what each of them says."""

    distances: Floats  # mean over the views, each divided by its root mean square
    squares: Floats
    each: list[Silhouettes | None]
    nmi: list[float]


@dataclass(frozen=True, eq=False)
class Truth:
    """How the clusters compare with known classes."""

    nmi: float
    ari: float
    accuracy: float
    classes: tuple[str, ...]
    table: Ints  # (clusters, classes)


def drawn(labels: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the samples to draw and, among them, those to compute silhouettes of: all, or some of every cluster."""
    n = len(labels)
    k = int(labels.max()) + 1
    order = rng.permutation(n)
    by_cluster = order[np.argsort(labels[order], kind="stable")]
    starts = np.cumsum(np.bincount(labels, minlength=k)) - np.bincount(labels, minlength=k)
    rank = np.empty(n, dtype=np.intp)
    rank[by_cluster] = np.arange(n) - starts[labels[by_cluster]]
    first = rank[order] < max(1, min(LEAST, MOST_SILHOUETTES // k))
    order = np.concatenate([order[first], order[~first]])
    return np.sort(order[:MOST_POINTS]), np.sort(order[:MOST_SILHOUETTES])


def silhouettes(distances: Floats, rows: Ints, labels: Ints, n_clusters: int) -> Silhouettes | None:
    """Return the silhouettes of ``rows`` among each other; None where they are in one cluster."""
    own = labels[rows]
    sizes = np.bincount(own, minlength=n_clusters)
    if np.count_nonzero(sizes) < 2:
        return None
    sums = distances @ np.eye(n_clusters)[own]
    means = np.divide(sums, sizes, out=np.full(sums.shape, np.inf), where=sizes > 0)
    means[np.arange(len(own)), own] = np.inf
    return Silhouettes(rows, coefficients(sums, own, sizes), means.argmin(axis=1))


def by_cluster(found: Silhouettes | None, labels: Ints, n_clusters: int) -> tuple[Floats, Floats]:
    """Return mean silhouette and share of negative ones of every cluster, NaN where there is none."""
    if found is None:
        return np.full(n_clusters, np.nan), np.full(n_clusters, np.nan)
    own = labels[found.rows]
    sizes = np.bincount(own, minlength=n_clusters)
    sums = (np.bincount(own, weights, minlength=n_clusters) for weights in (found.values, found.values < 0))
    means, negative = (np.divide(s, sizes, out=np.full(n_clusters, np.nan), where=sizes > 0) for s in sums)
    return means, negative


def overall(means: Floats, sizes: Ints) -> float | None:
    """Return the mean over all samples from the means of the clusters."""
    known = np.isfinite(means) & (sizes > 0)
    return float(means[known] @ sizes[known] / sizes[known].sum()) if known.any() else None


def typical(squares: Floats, rows: Ints, labels: Ints, n_clusters: int) -> list[Ints]:
    """Return the samples nearest to the mean of their cluster in feature space, nearest first."""
    own = labels[rows]
    sums = squares @ np.eye(n_clusters)[own]
    to_own = sums[np.arange(len(own)), own]  # the mean distance to the members orders like that to their mean
    found = []
    for c in range(n_clusters):
        members = np.flatnonzero(own == c)
        found.append(rows[members[np.argsort(np.round(to_own[members], 9), kind="stable")[:TYPICAL]]])
    return found


def doubtful(found: Silhouettes | None) -> Ints:
    """Return the positions, among the silhouettes, of the lowest ones."""
    if found is None:
        return np.empty(0, dtype=np.intp)
    return np.argsort(found.values, kind="stable")[:DOUBTFUL]


def compared(seen: Seen, shown: Ints, rows: Ints, places: Floats | None, random_state: Any) -> Compared:
    """Measure distances view by view, and what each view alone says where there are several."""
    at = np.searchsorted(shown, rows)
    n = len(shown)
    found = Compared(np.zeros((n, n)), np.zeros((n, n)), [], [])
    for view in seen.views:
        squared = scaled(squared_distances(view, shown, places))
        distances = np.sqrt(squared)
        np.add(found.squares, squared / len(seen.views), out=found.squares)
        np.add(found.distances, distances / len(seen.views), out=found.distances)
        if len(seen.views) > 1:
            found.each.append(silhouettes(distances[np.ix_(at, at)], rows, seen.labels, seen.n_clusters))
            found.nmi.append(_alone(view, squared, shown, seen.labels[shown], random_state))
    return found


def _alone(view: SeenView, squared: Floats, rows: Ints, labels: Ints, random_state: Any) -> float:
    """Return the NMI of the clusters with those of k-means on one view by itself."""
    k = len(np.unique(labels))
    block = view.block[rows] if view.kind == "features" else main_axes(squared, k)[0]
    block = _short_indices(block) if sp.issparse(block) else block
    with warnings.catch_warnings(), threadpool_limits(1):  # sums in the same order on any machine
        warnings.simplefilter("ignore")  # of fewer distinct samples than clusters
        found = KMeans(k, n_init=4, random_state=random_state).fit(block).labels_
    return normalized_mutual_info(labels, found)


def _short_indices(block: Any) -> sp.csr_array:
    """Return a sparse block with the short indices scikit-learn's k-means wants."""
    return sp.csr_array((block.data, block.indices.astype(np.int32), block.indptr.astype(np.int32)), shape=block.shape)


def truth(labels_true: Any, labels: Ints, n_clusters: int) -> Truth:
    """Compare the clusters with known classes."""
    given = np.asarray(labels_true)
    if given.ndim != 1 or len(given) != len(labels):
        raise ParameterError(
            f"labels_true has shape {given.shape}; give one class for each of the {len(labels)} samples."
        )
    classes, codes = np.unique(given, return_inverse=True)
    table = np.zeros((n_clusters, len(classes)), dtype=np.intp)
    np.add.at(table, (labels, codes), 1)
    return Truth(
        nmi=normalized_mutual_info(given, labels),
        ari=adjusted_rand_index(given, labels),
        accuracy=clustering_accuracy(given, labels),
        classes=tuple(str(name) for name in classes),
        table=table,
    )
