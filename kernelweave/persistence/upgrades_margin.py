"""Models of margins in files of version 1: divisions and the kernels they decide by."""

from typing import Any

from kernelweave.persistence.fields import assembled
from kernelweave.persistence.steps import Fields, Upgrade, renamed, taken, view_kernel, without


def _basis_kernels(kernels: Any, views: Any) -> Any:
    every = assembled("kernel/ViewKernels", {"kernels": tuple(kernels)})
    return assembled("kernel/BasisKernels", {"kernels": every, "views": tuple(views)})


def _division(fields: Fields, kernel: Any) -> Fields:
    """Return the fields with divisions and kernels in a model."""
    (splits,) = taken(fields, "_splits")
    model = assembled("model/Division", {"splits": tuple(splits), "kernel": kernel})
    return without(fields, "_splits", "_kernel", "_basis", "_views", "_family") | {"_model": model}


def _basis_kernel(fields: Fields) -> Fields:
    """Every kernel was kept by itself; the estimator puts them together. Their names are in ``kernel_names_``."""
    kernel, factor, view = taken(fields, "kernel", "factor", "view")
    alone = assembled("kernel/ViewKernels", {"kernels": (view_kernel(kernel, factor),)})
    return {"kernels": alone, "views": (view,)}


def _iterative_svr(fields: Fields) -> Fields:
    (kernel,) = taken(fields, "_kernel")
    return _division(fields, _basis_kernels([view_kernel(kernel)], [0]))


def _ratio_clustering(fields: Fields) -> Fields:
    """Models whose kernel has learned hyperparameters could not be saved, so that there are basis kernels."""
    fields = renamed(fields, ridge="regularization", n_starts="n_pairs")
    (basis,) = taken(fields, "_basis")
    kernels = [kernel for one in basis for kernel in one.kernels.kernels]
    return _division(fields, _basis_kernels(kernels, [view for one in basis for view in one.views]))


MARGIN: dict[str, Upgrade] = {
    "estimator/IterativeSVR": _iterative_svr,
    "estimator/RatioMultipleKernelClustering": _ratio_clustering,
    "kernel/BasisKernel": _basis_kernel,
}
