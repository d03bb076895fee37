"""The optimised kernel k-means estimator: clusters and coefficients of kernels in turn."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh

from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.clusterer import Clusterer
from kernelweave.estimators.shared.fit_warnings import warn_if_empty, warn_if_unfinished
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.estimators.shared.runs import run_starts
from kernelweave.estimators.shared.view_kernels import fit_view_kernels, scale_factors, set_view_kernel_tags
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.checkpoints import Keeper
from kernelweave.foundation.memory import check_matrices
from kernelweave.foundation.progress import Meter
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, fit_context
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.inputs import Views, check_cluster_count, read_views
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.parametric import WeightedKernels
from kernelweave.kernels.transforms import CentredKernel
from kernelweave.solvers.comparators.optimized_kernel_kmeans import Fusion, optimized_kernel_kmeans
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers.kmeans.starts import start_labels
from kernelweave.solvers.shared.best_run import best_of

# Eigenvalues below this share of the largest are what rounding leaves of zero.
ZERO_EIGENVALUE = 1e-9

# Matrices besides the kernels: their sum, and the one that is factored.
BESIDE = 2


class OptimizedKernelKMeans(Clusterer):
    """Optimised kernel k-means (OKKC): kernel k-means on a sum of kernels, coefficients learned in turn.

    Kernels are centred and divided by the mean squared distance of the samples, as in :class:`MultiViewKernelKMeans`.
    Clusters are those of kernel k-means on Omega = sum_v theta_v K_v; coefficients are those with the largest
    regularised ratio of scatter between clusters to all scatter, as in a discriminant analysis with the clusters as
    classes: they minimise F = lambda sum_c y_c^T (Omega + lambda I)^-1 y_c, a convex problem, with y_c the centred
    indicator of cluster c over the square root of its size. A baseline.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    norm : {1, 2}, default=2
        Norm in which the coefficients have length one during the optimisation. 1 tends to keep few views, 2 keeps all
        that help.
    regularization : float, default=0.01
        lambda divided by the number of samples, above 0. The smaller it is, the more directions of small variance
        matter.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    kernel : str, kernel object or callable, list or dict, default="rbf"
        Kernel of all views, as in :class:`KernelKMeans`, or one per view.
    kernel_params : dict, or list or dict of dicts, default=None
        Parameters of named kernels; a dict whose keys are the names of the views gives one for each.
    n_init : int, default=10
        Number of starts of kernel k-means with equal coefficients; the rounds begin with the best one.
    max_iter : int, default=100
        Maximum number of rounds.
    tol : float, default=1e-5
        The run ends when a round lowers F by at most ``tol`` times its value.
    memory_limit : float, default=2048
        Memory in MiB that the stored kernel matrices may take, together with two more matrices.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error. Requires an integer ``random_state``.
    random_state : int, RandomState instance or None, default=None
        Seed for the starts. The same seed gives the same labels with any number of threads.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, 0..n_clusters-1.
    kernel_coefficients_ : ndarray of shape (n_views,)
        The coefficients theta, scaled to add up to 1.
    view_weights_ : ndarray of shape (n_views,)
        The same.
    objective_ : float
        F at the end, between 0 and n_clusters - 1: what ridge regression on Omega leaves unexplained of the clusters.
        It is minimised.
    objective_path_ : ndarray
        Its value after every round; it never increases.
    n_iter_ : int
        Rounds kept, the one from the starts among them.
    converged_ : bool
        Whether the run converged before ``max_iter``.
    view_names_ : list of str
        Names of the views.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a table with string column names.

    See Also
    --------
    MultiViewKernelKMeans : Weights in closed form that follow one objective with the clusters.
    RatioMultipleKernelClustering : Two clusters, coefficients from a margin.
    KernelKMeans : What one view gives.

    Notes
    -----
    Cost: O(V n^2) memory; a round is kernel k-means and a few dozen Cholesky factorisations of size n. The source
    alternates in the same way, but solves a semi-infinite program for the coefficients; that a round is kept only if F
    falls, so that the run ends, is added here. There is no embedding. Clusters and coefficients of the last round kept
    need not be a fixed point of kernel k-means, so that new samples cannot be assigned. Where a kernel is not positive
    semidefinite, F takes it with a constant added to its diagonal.

    Source: in the spirit of S. Yu, L.-C. Tranchevent, X. Liu, W. Glanzel, J. Suykens, B. De Moor and Y. Moreau,
    "Optimized data fusion for kernel k-means clustering", IEEE TPAMI 34, 2012.

    Examples
    --------
    >>> from kernelweave import OptimizedKernelKMeans
    >>> from kernelweave.datasets import make_corrupted_views
    >>> data = make_corrupted_views(3, 1, n_samples=210, n_corrupted=15, random_state=0)
    >>> model = OptimizedKernelKMeans(3, random_state=0).fit(data.views)
    >>> int(model.view_weights_.argmin()) == 3  # the last view is noise
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **view_rules("n_clusters", "views", "kernel", "kernel_params", "n_init", "max_iter", "tol"),
        **view_rules("memory_limit", "checkpoint", "random_state", "verbose"),
        "norm": [Interval(Integral, 1, 2, closed="both")],
        "regularization": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        norm: int = 2,
        regularization: float = 0.01,
        views: Any = None,
        kernel: Any = "rbf",
        kernel_params: Any = None,
        n_init: int = 10,
        max_iter: int = 100,
        tol: float = 1e-5,
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.norm = norm
        self.regularization = regularization
        self.views = views
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "OptimizedKernelKMeans":
        """Cluster the samples and weigh the views.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``. Kernel matrices if ``kernel="precomputed"``.
        y : None
            Ignored.

        Returns
        -------
        self : OptimizedKernelKMeans
            The fitted estimator.
        """
        views = read_views(self, X, reset=True)
        check_cluster_count(self.n_clusters, np.ones(views.n_samples))
        self._check_memory(views)
        keep_run(self, views)
        fusion = self._fusion(views)
        first = self._first_labels(fusion.kernels, X, y)
        meter = Meter(self, "rounds")
        options: dict[str, Any] = {"n_clusters": self.n_clusters, "max_iter": self.max_iter, "tol": self.tol}
        result = optimized_kernel_kmeans(fusion, first, keeper=self._keeper.part("rounds"), on_step=meter, **options)
        meter.close()
        self.labels_: Ints = result.labels
        self.kernel_coefficients_: Floats = result.coefficients / result.coefficients.sum()
        self.view_weights_: Floats = self.kernel_coefficients_.copy()
        self.objective_ = result.objective
        self.objective_path_ = np.array(result.history)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        warn_if_unfinished(result.converged, self.max_iter)
        warn_if_empty(result.totals, self.n_clusters)
        return self

    def _set_input_tags(self, tags: Any) -> None:
        set_view_kernel_tags(tags, self.kernel, self.views)

    def _check_memory(self, views: Views) -> None:
        count = len(views)
        check_matrices(
            count + BESIDE,
            views.n_samples,
            self.memory_limit,
            what=f"{count} kernels and {BESIDE} matrices more",
            remedy="cluster fewer samples",
        )

    def _fusion(self, views: Views) -> Fusion:
        """Return the kernels, centred and on one scale."""
        ones = np.ones(views.n_samples)
        operators = fit_view_kernels(
            views, self.kernel, self.kernel_params, centre_features=True, weights=ones, memory_limit=self.memory_limit
        ).operators("dense", np.inf)
        factors = scale_factors(operators, ones, views.names)
        matrices = []
        shifts = []
        for factor in factors:
            op = operators.pop(0)  # given up as soon as it is centred
            matrices.append(_centred(op, factor))
            shifts.append(0.0 if op.psd else _shift(matrices[-1]))
        family = WeightedKernels(matrices, self.norm)  # type: ignore[arg-type]
        return Fusion(family, np.array(shifts), float(self.regularization) * views.n_samples)

    def _first_labels(self, kernels: WeightedKernels, X: Any, y: Any) -> Ints:
        """Return the best clusters of kernel k-means with equal coefficients."""
        op = DenseKernel(kernels.matrix(kernels.first()))
        weights = np.ones(op.n_samples)
        k = self.n_clusters

        def run(rng: np.random.Generator, keeper: Keeper) -> Descent:
            labels = start_labels(op, "k-means++", weights, k, rng)
            return kernel_kmeans(op, labels, weights, n_clusters=k, keeper=keeper)

        return best_of(run_starts(self, op, run, streams(self.random_state, self.n_init), X, y, Descent)).labels


def _centred(op: KernelOperator, factor: float) -> Floats:
    """Return the matrix of a centred kernel times a factor, with no other matrix besides it."""
    means = CentredKernel(op)
    K = np.asarray(op.block(slice(None), slice(None)), dtype=np.float64)
    K -= means.row_means[:, None]
    K -= means.column_means
    K += means.grand_mean
    K *= factor
    return K


def _shift(K: Floats) -> float:
    """Return the number that makes a matrix semidefinite when added to its diagonal."""
    n = len(K)
    if _is_semidefinite(K):
        return 0.0
    with single_threaded_blas():
        values = eigh(K, eigvals_only=True, check_finite=False)
    lowest = float(values[0])
    largest = float(np.abs(values[[0, n - 1]]).max())
    return -lowest if lowest < -ZERO_EIGENVALUE * largest else 0.0


def _is_semidefinite(K: Floats) -> bool:
    """Return whether a matrix has a Cholesky factor except for rounding, which costs a fraction of its eigenvalues."""
    shifted = K.copy()
    shifted.flat[:: len(K) + 1] += 0.5 * ZERO_EIGENVALUE * float(np.diagonal(K).max(initial=0.0))
    try:
        with single_threaded_blas():
            cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True
