"""Kernel k-means after a convex mixture, from the clusters of its exemplars."""

from collections.abc import Sequence

import numpy as np

from kernelweave.estimators.mixtures.fitted_views import FittedView
from kernelweave.estimators.shared.models import CenterModel, ObservedCenters
from kernelweave.estimators.shared.view_kernels import ViewKernel, ViewKernels, WeightedViewKernels
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.kernels.observed_views import ObservedViews
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import FittedKernel, fit_kernel
from kernelweave.kernels.weighted_sum import CompositeKernel
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers.kmeans.masked_multi_view import masked_multi_view_kernel_kmeans


def refine_by_kernel_kmeans(
    views: Sequence[FittedView],
    labels: Ints,
    weights: Floats,
    coefficients: Floats,
    *,
    n_clusters: int,
    memory_limit: float,
) -> tuple[Descent, CenterModel | ObservedCenters]:
    """Run kernel k-means from ``labels`` on the weighted sum of the views' kernels (PhD 3.4.1).

    Where samples are absent, on the weighted sum of the costs in the views that each is in.
    """
    kernels = [_kernel_of(view) for view in views]
    room = memory_limit - sum(view.similarities.stored_bytes for view in views) / 2**20
    share = max(0.0, room) / len(views)
    operators: list[KernelOperator] = [kernel.operator("auto", share) for kernel in kernels]
    for_new = ViewKernels(tuple(ViewKernel(kernel.for_new_samples()) for kernel in kernels))
    if any(view.samples is not None for view in views):
        everyone = np.arange(len(weights))
        samples = tuple(everyone if view.samples is None else view.samples for view in views)
        among = ObservedViews(tuple(operators), samples, len(weights))
        return _refine_observed(among, for_new.of_samples(samples), labels, weights, coefficients, n_clusters)
    descent = kernel_kmeans(CompositeKernel(operators, coefficients), labels, weights, n_clusters=n_clusters)
    kernel = WeightedViewKernels(for_new, coefficients)
    view_norms = None
    if len(views) > 1:  # new samples may be absent from some
        view_norms = np.stack([op.partition(descent.labels, weights, n_clusters).norms for op in operators])
    return descent, CenterModel(kernel, descent.labels, weights, descent.totals, descent.norms, view_norms=view_norms)


def _refine_observed(
    among: ObservedViews,
    for_new: ViewKernels,
    labels: Ints,
    weights: Floats,
    coefficients: Floats,
    n_clusters: int,
) -> tuple[Descent, ObservedCenters]:
    """Run multi-view kernel k-means from ``labels`` with view weights that stay."""
    descent = masked_multi_view_kernel_kmeans(
        among, labels, weights, n_clusters=n_clusters, p=1.0, view_weights=coefficients, learned=False
    )
    prices = coefficients / among.totals(weights)
    model = ObservedCenters(for_new, among.observed, descent.labels, weights, prices, descent.view_norms)
    return descent, model


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
