"""The correlational spectral clustering estimator."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from kernelweave.estimators.shared.embedding import EmbeddingPlacer, view_numbers, view_rules
from kernelweave.estimators.shared.kernel_estimator import warn_if_indefinite
from kernelweave.estimators.shared.multi_view import MultiViewKernelEstimator
from kernelweave.estimators.spectral.multi_view_kernel_spectral import TrainedView
from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.sklearn_internals import Interval, fit_context
from kernelweave.inputs import Views, check_cluster_count, per_view, read_views
from kernelweave.kernels.spec.fitting import FittedKernel
from kernelweave.kernels.transforms import CentredKernel
from kernelweave.solvers.comparators.correlational import kernel_cca, has_small_factor

# Matrices of size n x n that a kernel takes at the most, the stored one and its eigenvectors among them; measured.
MATRICES = 3.5


class CorrelationalSpectralClustering(EmbeddingPlacer, MultiViewKernelEstimator):
    """Correlational spectral clustering: k-means on the projections that kernel canonical correlation analysis finds.

    Looks for directions in the feature spaces of the views along which the projections of the samples go together,
    puts the projections of all views side by side and clusters them by k-means. A comparator: views count the same.
    One view gives k-means on its kernel principal components, all scaled to nearly the same spread.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    regularization : float, list or dict, default=0.1
        kappa, between 0 and 1, for all views or one for each: variances are (1 - kappa) K_v^2 + kappa K_v, K_v centred
        and of trace 1. Directions that hold a smaller share of a view's variance than kappa count little; with 0, views
        of as many features as samples agree in everything.
    n_components : int, default=None
        Number of directions; None takes ``n_clusters``. Fewer are kept where no more correlations are above zero.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    kernel : str, kernel object or callable, list or dict, default="linear"
        Kernel of all views, as in :class:`KernelKMeans`, or one per view.
    kernel_params : dict, or list or dict of dicts, default=None
        Parameters of named kernels; a dict whose keys are the names of the views gives one for each.
    n_init : int, default=10
        Starts of k-means.
    memory_limit : float, default=2048
        MiB that the kernels and their decompositions, which are stored, may take.
    random_state : int, RandomState instance or None, default=None
        Seed of k-means. The same seed gives the same labels at any number of threads.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, 0..n_clusters-1.
    correlations_ : ndarray of shape (n_directions,)
        Mean regularised correlation of the projections of two views, largest first, at most 1.
    embedding_ : ndarray of shape (n_samples, n_views * n_directions)
        Projections of all views side by side: what k-means worked on.
    objective_ : float
        Sum of the correlations; it is maximised.
    objective_path_, n_iter_, converged_ : ndarray of one value, 1, True
        There are no steps.
    view_weights_ : ndarray of shape (n_views,)
        All the same.
    view_names_ : list of str
        Names of the views.
    warnings_ : tuple of str
        Warnings of the fit, each once; empty where there were none.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, where X was a table with string column names.

    See Also
    --------
    MultiViewKernelSpectralClustering : A weighted form of the same problem, clusters from signs.
    CoRegularizedSpectralClustering : Eigenvectors of affinities made to agree.

    Notes
    -----
    Cost: for linear kernels of d < n columns O(n d^2), else one eigenproblem of size n for every view; then one of the
    size of all numerical ranks together. Rows are not scaled. A kernel that is not positive semidefinite loses its
    negative directions. PhD 3.4.1 finds kappa by a grid search and clusters the projections of each view by themselves;
    here they are taken together, and kernels are divided by their traces, so that one kappa suits all.

    Source: M. Blaschko and C. Lampert, "Correlational spectral clustering", CVPR 2008; PhD 1.2.3 and 3.4.1.

    Examples
    --------
    >>> from kernelweave import CorrelationalSpectralClustering
    >>> from kernelweave.datasets import make_corrupted_views
    >>> from kernelweave.metrics import normalized_mutual_info
    >>> data = make_corrupted_views(3, 0, n_samples=210, n_corrupted=15, random_state=0)
    >>> model = CorrelationalSpectralClustering(3, random_state=0).fit(data.views)
    >>> normalized_mutual_info(data.target, model.labels_) > 0.6
    True
    >>> bool((model.predict(data.views) == model.labels_).all())
    True
    """

    #: Kernels are brought to one scale; a view in which all samples are alike is an error.
    normalize = True

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **view_rules("n_clusters", "views", "kernel", "kernel_params", "n_init"),
        **view_rules("memory_limit", "random_state", "verbose"),
        "regularization": [Interval(Real, 0, 1, closed="both"), list, tuple, dict],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        regularization: Any = 0.1,
        n_components: int | None = None,
        views: Any = None,
        kernel: Any = "linear",
        kernel_params: Any = None,
        n_init: int = 10,
        memory_limit: float = 2048,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.regularization = regularization
        self.n_components = n_components
        self.views = views
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.n_init = n_init
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "CorrelationalSpectralClustering":
        """Find the directions, then cluster the projections.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``. With ``kernel="precomputed"``, kernel matrices.
        y : None
            Ignored.

        Returns
        -------
        self : CorrelationalSpectralClustering
            The fitted estimator.
        """
        views = read_views(self, X, reset=True)
        ones = np.ones(views.n_samples)
        check_cluster_count(self.n_clusters, ones)
        kappas = view_numbers(self.regularization, views.names, "regularization", highest=1.0)
        fitted, centred = self._centred(views, ones)
        self._factors([op.base for op in centred], ones, views.names)
        self._check_memory(centred)
        found = kernel_cca(centred, kappas, self.n_components or self.n_clusters)
        self._trained = [
            TrainedView(kernel.for_new_samples(), op.shares, op.column_means, op.grand_mean, alphas)
            for kernel, op, alphas in zip(fitted, centred, found.alphas, strict=True)
        ]
        self.correlations_ = found.correlations
        self.objective_ = float(found.correlations.sum())
        self.objective_path_ = np.array([self.objective_])
        self.n_iter_ = 1
        self.converged_ = True
        self.view_weights_ = np.full(len(views), 1.0 / len(views))
        parts = [op.matmat(alphas) for op, alphas in zip(centred, found.alphas, strict=True)]
        self._keep_centers(self._round(np.hstack(parts), X, y))
        return self

    def _centred(self, views: Views, ones: Floats) -> tuple[list[FittedKernel], list[CentredKernel]]:
        """Return the kernel of every view, settled, and as a centred operator."""
        kernels = per_view(self.kernel, views.names, "kernel")
        params = per_view(self.kernel_params, views.names, "kernel_params")
        fitted = []
        centred = []
        for name, block, kernel, settings in zip(views.names, views.blocks, kernels, params, strict=True):
            fitted.append(self._fit_kernel(block, kernel, settings, ones, name))
            op = fitted[-1].operator("auto", self.memory_limit)
            warn_if_indefinite(op, f" of view {name!r}")
            centred.append(CentredKernel(op))
        return fitted, centred

    def _check_memory(self, centred: Sequence[CentredKernel]) -> None:
        """Raise where decompositions of kernels that are not made of few features would not fit."""
        n = centred[0].n_samples
        whole = [op for op in centred if not has_small_factor(op)]
        needed = MATRICES * len(whole) * n**2 * 8 / 2**20
        if needed > self.memory_limit:
            raise ParameterError(
                f"The decompositions of {len(whole)} kernels of {n} samples take {needed:.0f} MiB, more than "
                f"memory_limit={self.memory_limit}. Cluster a part of the samples and predict the others, use linear "
                "kernels of few columns, or raise memory_limit."
            )

    def _embed(self, X: Any) -> Floats:
        blocks = read_views(self, X, reset=False)
        return np.hstack([trained.scores(block) for trained, block in zip(self._trained, blocks, strict=True)])
