"""Kernel k-means after a convex mixture, from the clusters of its exemplars."""

from collections.abc import Sequence

from kernelweave.estimators.mixtures.fitted_views import FittedView
from kernelweave.estimators.shared.models import CenterModel
from kernelweave.estimators.shared.view_kernels import ViewKernel, ViewKernels, WeightedViewKernels
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import FittedKernel, fit_kernel
from kernelweave.kernels.weighted_sum import CompositeKernel
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, kernel_kmeans


def refine_by_kernel_kmeans(
    views: Sequence[FittedView],
    labels: Ints,
    weights: Floats,
    coefficients: Floats,
    *,
    n_clusters: int,
    memory_limit: float,
) -> tuple[Descent, CenterModel]:
    """Run kernel k-means from ``labels`` on the weighted sum of the views' kernels (PhD 3.4.1)."""
    kernels = [_kernel_of(view) for view in views]
    operators: list[KernelOperator] = [kernel.operator("auto", memory_limit) for kernel in kernels]
    descent = kernel_kmeans(CompositeKernel(operators, coefficients), labels, weights, n_clusters=n_clusters)
    for_new = ViewKernels(tuple(ViewKernel(kernel.for_new_samples()) for kernel in kernels))
    kernel = WeightedViewKernels(for_new, coefficients)
    return descent, CenterModel(kernel, descent.labels, weights, descent.totals, descent.norms)


def _kernel_of(view: FittedView) -> FittedKernel:
    """Return the kernel in whose feature space the divergences of a view are squared distances."""
    if view.fitted.kernel is not None:
        return view.fitted.kernel
    if view.choices.divergence == "sqeuclidean":
        return fit_kernel(view.block, "linear", centre_features=True)
    raise ParameterError(
        "refine='kernel_kmeans' works with distances in a kernel's feature space, not with "
        f"divergence={view.choices.divergence!r}. Set refine=None."
    )
