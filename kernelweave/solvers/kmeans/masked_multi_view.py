"""Multi-view kernel k-means of samples that are absent from some views.

Objective   J(labels, w) = sum_v w_v^p D_v / W_v, D_v = sum_{i in v} s_i ||phi_v(x_i) - m_cv||^2 over the samples that
            view v has, s_i their weights and W_v the sum of these; w on the simplex. The centre of a cluster that
            nobody of a view is in is the mean of the view
Input       the kernel of every view among its samples (ObservedViews), a starting partition and view weights
Cost        as without absence: one pass over each kernel at the start, where labels settle and where as many
            samples have moved as there are, otherwise the rows of samples that move; O(k n_v) memory beside each kernel
Guarantee   J never rises: a sample moves to the cluster that costs least over the views it is in, and every centre is
            then a mean again; without ``tol`` the run ends where neither labels nor weights change
Source      none; with every sample in every view J is 1 / n times that of ``multi_view_kernel_kmeans``, and the run is
            the same
"""

from collections.abc import Callable

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.kernels.observed_views import ObservedViews
from kernelweave.partitions.observed import ObservedPartition
from kernelweave.solvers.kmeans.multi_view_kernel_kmeans import MultiViewDescent, alternate
from kernelweave.solvers.shared.view_weights import start_of_weights


def masked_multi_view_kernel_kmeans(
    views: ObservedViews,
    labels: Ints,
    weights: Floats,
    *,
    n_clusters: int,
    p: float,
    view_weights: Floats,
    learned: bool = True,
    max_iter: int = 100,
    max_steps: int = 300,
    tol: float = 0.0,
    keeper: Keeper = NOTHING,
    on_step: Callable[[float], object] | None = None,
) -> MultiViewDescent:
    """Descend from ``labels`` and ``view_weights``; options as in ``multi_view_kernel_kmeans``.

    Every view must have a sample of weight above zero.
    """
    p, view_weights, learned = start_of_weights(p, view_weights, learned)
    partition = ObservedPartition(views, labels, weights, n_clusters, view_weights**p)
    return alternate(
        partition,
        view_weights,
        p=p,
        learned=learned,
        max_iter=max_iter,
        max_steps=max_steps,
        tol=tol,
        keeper=keeper,
        on_step=on_step,
    )


def extended_observed_labels(
    views: ObservedViews, known: Ints, chosen: Ints, weights: Floats, n_clusters: int, coefficients: Floats
) -> Ints:
    """Return labels of all samples: each goes where it costs least among the clusters that ``known`` makes of some."""
    if len(chosen) == len(weights):
        return known
    labels = np.zeros(len(weights), dtype=np.intp)
    labels[chosen] = known
    counted = np.zeros(len(weights))
    counted[chosen] = weights[chosen]
    partition = ObservedPartition(views, labels, counted, n_clusters, coefficients)
    return partition.backend.host(partition.nearest().labels)
