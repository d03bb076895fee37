"""Models of the k-means family in files of version 1.

What ``predict`` needs was kept in private attributes of the estimator; now it is kept in its model.
"""

from kernelweave.persistence.steps import Fields, Upgrade, composed, renamed, taken, weighted_kernels, without

_CENTERS = {
    "labels": "labels_",
    "weights": "_weights",
    "totals": "_totals",
    "norms": "_norms",
    "factors": "_coefs",
    "view_norms": "_view_norms",
}
_MEANS = {"centers": "cluster_centers_", "offset": "_offset", "filled": "_filled", "factors": "_coefs"}


def _kernel_means(fields: Fields) -> Fields:
    """Only MinMax k-means multiplied distances by factors, and centres in single views were not kept."""
    fields = {"_coefs": None, "_view_norms": None} | fields
    return composed(fields, "_model", "model/Centers", kept=("labels_",), kernel="_kernel", **_CENTERS)


def _feature_means(fields: Fields) -> Fields:
    return composed({"_coefs": None} | fields, "_model", "model/Means", kept=("cluster_centers_",), **_MEANS)


def _global_search(fields: Fields) -> Fields:
    """Nothing is random in a global search; the seed is new."""
    return _kernel_means({"random_state": None} | fields)


def learned_weights(fields: Fields) -> Fields:
    """Weights of views, and what learning starts from, were called ``weights`` and ``view_weights``."""
    return renamed(fields, weights="view_weights", view_weights="init_view_weights")


def _multi_view_means(fields: Fields) -> Fields:
    fields = learned_weights(fields)
    kernels, coefficients = taken(fields, "_kernels", "_coefficients")
    rest = without(fields, "_kernels", "_coefficients")
    return _kernel_means(rest | {"_kernel": weighted_kernels(kernels, coefficients)})


KMEANS: dict[str, Upgrade] = {
    "estimator/GlobalKernelKMeans": _global_search,
    "estimator/KernelKMeans": _kernel_means,
    "estimator/MinMaxKMeans": _feature_means,
    "estimator/MinMaxKernelKMeans": _kernel_means,
    "estimator/MultiViewKernelKMeans": _multi_view_means,
    "estimator/PifsKMeans": _feature_means,
}
