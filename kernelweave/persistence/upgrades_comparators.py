"""Models of other comparators in files of version 1: medoids, exemplars, centres and mixtures of several views."""

import numpy as np

from kernelweave.persistence.fields import assembled
from kernelweave.persistence.steps import Fields, Upgrade, composed, renamed, taken, without


def _affinity_propagation(fields: Fields) -> Fields:
    """Distances to the exemplars, and so their number as that of columns, are new."""
    (indices,) = taken(fields, "exemplar_indices_")
    sources = {"kernel": "_kernel", "indices": "exemplar_indices_", "norms": "_norms", "slack": "_slack"}
    fields = composed(fields, "_model", "model/Exemplars", kept=("exemplar_indices_",), **sources)
    return fields | {"_n_features_out": len(indices)}


def _k_medoids(fields: Fields) -> Fields:
    """Medoids were called ``medoid_indices_`` alone."""
    fields = without(renamed(fields, medoid_indices_="exemplar_indices_"), "_n_features_out")
    kept = {"metric": "metric", "metric_params": "metric_params", "indices": "exemplar_indices_"}
    kept |= {"centers": "cluster_centers_"}
    return composed(fields, "_model", "model/Medoids", kept=kept.values(), slack="_slack", **kept)


def _multi_view_kmeans(fields: Fields) -> Fields:
    """Distances to the centres, and so the number of columns, are new; scatters of views were not kept."""
    origins, means, n_clusters = taken(fields, "_offsets", "_means", "n_clusters")
    fields = without(fields, "_offsets") | {"_origins": tuple(origins), "_means": tuple(means)}
    sources = {"origins": "_origins", "means": "_means", "filled": "_filled", "slack": "_slack"}
    return composed(fields, "_model", "model/JointCenters", **sources) | {"_n_features_out": n_clusters}


def _multi_view_em(fields: Fields) -> Fields:
    names = ("log_weights", "centres", "variances")
    origins, *columns = taken(fields, "_offsets", "_log_weights", "_centres", "cluster_spreads_")
    rows = zip(*columns, strict=True)
    densities = tuple(assembled("model/Density", dict(zip(names, row, strict=True))) for row in rows)
    model = assembled("model/ViewMixtures", {"origins": tuple(origins), "densities": densities})
    return without(fields, "_offsets", "_log_weights", "_centres") | {"_model": model}


def _optimized_kernel_kmeans(fields: Fields) -> Fields:
    """Coefficients of kernels had a norm of 1; now they add up to 1."""
    (coefficients,) = taken(fields, "kernel_coefficients_")
    return fields | {"kernel_coefficients_": coefficients / np.sum(coefficients)}


COMPARATORS: dict[str, Upgrade] = {
    "estimator/AffinityPropagation": _affinity_propagation,
    "estimator/KMedoids": _k_medoids,
    "estimator/MultiViewEM": _multi_view_em,
    "estimator/MultiViewKMeans": _multi_view_kmeans,
    "estimator/OptimizedKernelKMeans": _optimized_kernel_kmeans,
}
