"""How each library is called: views, number of clusters and seed in, labels out.

Scaled      views as ``ViewScaler`` leaves them: columns to mean 0 and deviation 1, rows of counts and of sparse views
            to length 1. It is what the command line does, and baselines and peers get the same, so that a difference
            between rows of the board is one of methods. Where a peer is known to do better on other input, it has a row
            for that too
Dense       peers that take no sparse arrays get the same numbers as dense ones
"""

import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.cluster import KMeans, SpectralClustering, spectral_clustering

import kernelweave
from kernelweave.cli import catalogue, fitting
from kernelweave.cli.names import find_method
from kernelweave.preprocessing import ViewScaler

Labels = npt.NDArray[np.int64]

_STARTS = 10
_OF_TWO_VIEWS = ("MultiviewKMeans", "MultiviewSphericalKMeans")


# --- views ------------------------------------------------------------------------------------------------------------


def scaled(views: Sequence[Any]) -> list[Any]:
    """Return the views on one scale."""
    return list(ViewScaler().fit_transform(list(views)))


def dense(views: Sequence[Any]) -> list[npt.NDArray[np.float64]]:
    """Return the views as dense arrays, which the caller may change."""
    return [view.toarray() if sp.issparse(view) else np.array(view) for view in views]


def joined(views: Sequence[Any]) -> Any:
    """Return the columns of all scaled views as one table, sparse where a view is."""
    blocks = scaled(views)
    if any(sp.issparse(block) for block in blocks):
        return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks]))
    return np.hstack(blocks)


# --- kernelweave ------------------------------------------------------------------------------------------------------


def from_catalogue(views: Sequence[Any], n_clusters: int, seed: int, *, method: str, **parameters: Any) -> Labels:
    """Cluster as ``kernelweave cluster --method`` does; ``parameters`` replace some of its settings."""
    entry = find_method(method)
    if entry is None:
        raise LookupError(f"The command line has no method {method!r}.")
    model = fitting.build(entry, catalogue.VIEWS, n_clusters, parameters, seed)
    samples = list(ViewScaler(method=entry.scale).fit_transform(list(views)))
    return model.fit(samples).labels_


def with_defaults(views: Sequence[Any], n_clusters: int, seed: int, *, estimator: str) -> Labels:
    """Cluster the views as they are by an estimator with its defaults."""
    model = getattr(kernelweave, estimator)(n_clusters=n_clusters, random_state=seed)
    return model.fit(list(views)).labels_


# --- scikit-learn -----------------------------------------------------------------------------------------------------


def joined_kmeans(views: Sequence[Any], n_clusters: int, seed: int) -> Labels:
    """Cluster the joined columns by k-means."""
    return KMeans(n_clusters, n_init=_STARTS, random_state=seed).fit(joined(views)).labels_


def joined_spectral(views: Sequence[Any], n_clusters: int, seed: int) -> Labels:
    """Cluster the graph of neighbours of the joined columns."""
    model = SpectralClustering(n_clusters, affinity="nearest_neighbors", random_state=seed)
    return model.fit(joined(views)).labels_


# --- mvlearn ----------------------------------------------------------------------------------------------------------


def mvlearn_labels(views: Sequence[Any], n_clusters: int, seed: int, *, estimator: str, **parameters: Any) -> Labels:
    """Cluster the scaled views by a class of mvlearn."""
    if estimator in _OF_TWO_VIEWS and len(views) != 2:
        raise ValueError(f"{estimator} takes two views, and there are {len(views)}")  # it would leave out the others
    # Its plots import packages that clustering does not need.
    for name in ("seaborn", "graspologic"):
        _stand_in(name)
    from mvlearn import cluster

    model = getattr(cluster, estimator)(n_clusters=n_clusters, random_state=seed, **parameters)
    return model.fit_predict(dense(scaled(views)))


def _stand_in(name: str) -> None:
    """Put an empty module in place of one that is not installed."""
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = types.ModuleType(name)


# --- imml -------------------------------------------------------------------------------------------------------------


def imml_labels(
    views: Sequence[Any], n_clusters: int, seed: int, *, estimator: str, scale: bool = True, **parameters: Any
) -> Labels:
    """Cluster the views, scaled or as they are, by a class of imml."""
    from imml import cluster

    model = getattr(cluster, estimator)(n_clusters=n_clusters, random_state=seed, **parameters)
    return model.fit_predict(dense(scaled(views) if scale else views))


# --- snfpy ------------------------------------------------------------------------------------------------------------


def fused_networks(views: Sequence[Any], n_clusters: int, seed: int) -> Labels:
    """Fuse the similarity networks of the scaled views and cut the result."""
    from snf import compute

    compute.check_array = _check_array_by_its_old_name
    affinities = compute.make_affinity(dense(scaled(views)))
    return spectral_clustering(compute.snf(affinities), n_clusters=n_clusters, random_state=seed)


def _check_array_by_its_old_name(array: Any, *, force_all_finite: Any = True, **options: Any) -> Any:
    """Call scikit-learn's check, one of whose arguments was renamed after the last release of snfpy."""
    from sklearn.utils import check_array

    return check_array(array, ensure_all_finite=force_all_finite, **options)
