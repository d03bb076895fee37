"""A multi-view estimator for tests alone: kernel k-means on the plain average of one kernel per view.

It stands in for the public multi-view classes until there is one, so that every claim about multi-view input is
tested from the start. It is also the shortest example of how such a class uses the gate, the operators and the solver.
"""

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.shared.kernel_estimator import warn_if_empty
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import check_cluster_count, read_views
from kernelweave.kernels.spec.fitting import KERNELS, fit_kernel
from kernelweave.kernels.weighted_sum import CompositeKernel
from kernelweave.partitions import algebra
from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
from kernelweave.solvers.kmeans.starts import start_labels
from kernelweave.solvers.shared.best_run import best_of

N_STARTS = 4


class MultiViewToy(ClusterMixin, BaseEstimator):
    """Kernel k-means on the average of the views' kernels."""

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "views": ["array-like", dict, None],
        "kernel": [StrOptions(set(KERNELS)), callable, list, tuple, dict],
        "random_state": ["random_state"],
    }

    def __init__(self, n_clusters=3, *, views=None, kernel="linear", random_state=None):
        self.n_clusters = n_clusters
        self.views = views
        self.kernel = kernel
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed" and self.views is None
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        views = read_views(self, X, reset=True)
        weights = np.ones(views.n_samples)
        check_cluster_count(self.n_clusters, weights)
        self.view_weights_ = np.full(len(views), 1.0 / len(views))
        kernels = [fit_kernel(block, kernel) for block, kernel in zip(views, self._kernel_specs(), strict=True)]
        op = CompositeKernel([kernel.operator() for kernel in kernels], self.view_weights_)
        starts = (
            start_labels(op, "k-means++", weights, self.n_clusters, rng) for rng in streams(self.random_state, N_STARTS)
        )
        best = best_of(kernel_kmeans(op, labels, weights, n_clusters=self.n_clusters) for labels in starts)
        self._kernels = [kernel.for_new_samples() for kernel in kernels]
        self._totals, self._norms = best.totals, best.norms
        self.labels_, self.n_iter_, self.converged_ = best.labels, best.n_iter, best.converged
        self.objective_, self.objective_path_ = best.objective, np.array(best.history)
        warn_if_empty(best.totals, self.n_clusters)
        return self

    def _kernel_specs(self):
        """Return one kernel per view: the same for all, or as a list or dict says."""
        if isinstance(self.kernel, dict):
            return [self.kernel[name] for name in self.view_names_]
        return list(self.kernel) if isinstance(self.kernel, list | tuple) else [self.kernel] * len(self.view_names_)

    def predict(self, X):
        check_is_fitted(self)
        views = read_views(self, X, reset=False)
        parts = [kernel.cross(block) for kernel, block in zip(self._kernels, views, strict=True)]
        cross = CompositeKernel(parts, self.view_weights_)
        sums = cross.cluster_sums(self.labels_, np.ones(len(self.labels_)), self.n_clusters)
        return algebra.nearest_clusters(sums, self._totals, self._norms, np.zeros(views.n_samples, dtype=np.intp))[0]
