"""The ratio-based multiple kernel clustering estimator."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from kernelweave.estimators.margin.basis_kernels import FittedBasis, fit_basis, fit_kernel_object
from kernelweave.estimators.margin.dividing_clusterer import DividingClusterer
from kernelweave.estimators.margin.division import Cut, DivisionModel, check_division, divide, largest_difference
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.fit_warnings import warn_if_empty
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.estimators.shared.runs import kept_run
from kernelweave.estimators.shared.view_kernels import set_view_kernel_tags
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.checkpoints import Keeper
from kernelweave.foundation.errors import ConvergenceWarning, ParameterError
from kernelweave.foundation.logged_warnings import warn
from kernelweave.foundation.progress import track
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context, renamed_parameters
from kernelweave.inputs import Views, read_labels, read_views
from kernelweave.kernels.parametric import Norm
from kernelweave.kernels.spec.fitting import KERNELS
from kernelweave.solvers.margin.ratio_clustering import RatioRun, balanced_pairs, best_start, ratio_clustering
from kernelweave.solvers.shared.best_run import best_of

#: Pairs drawn for the start of a run where their number is not set, as a share of the samples.
PAIRS_SHARE = 0.25
#: A variance of the clusters below this share of the mean diagonal is none.
NO_VARIANCE = 1e-7


class RatioMultipleKernelClustering(DividingClusterer):
    """Ratio-based multiple kernel clustering (RMKC): two clusters and a kernel combination, by variance over margin.

    Minimises J = E(theta, y) ||w||^2 / 2 + C sum xi over labels y, kernel weights theta and the support vector machine
    (w, b, xi) trained on y: clusters that are compact (small variance E) and far apart (large margin 1 / ||w||) in the
    feature space of sum_v theta_v K_v. Scaling a kernel changes nothing, so no kernel wins by being large. Use it for
    two clusters when there are several kernels or views and it is not known which of them separate the clusters.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters. The method finds two; more are found by dividing the cluster with the largest scatter again
        (experimental, not in the source).
    C : float, default=1.0
        Penalty of samples inside the margin or beyond it; the source searches 0.01, 0.1, ..., 100.
    balance : float, default=0.5
        Largest difference in size of the two clusters, as a share of the samples: 0 requires equal sizes, with 0.5
        every cluster has at least a quarter of the samples.
    n_moves : int, default=30
        Samples that change clusters, one after the other, on each of the two paths of a label search.
    norm : {1, 2} or None, default=1
        Norm of the kernel weights; the best objective does not depend on it.
    learn : {"weights", "hyperparameters"}, default="weights"
        What is learned of the kernel: weights of the basis kernels, or, on one view, the free hyperparameters of one
        kernel object of ``sklearn.gaussian_process.kernels``, within its bounds.
    regularization : float, default=1e-8
        Added to the diagonal of each kernel, times its mean: the solution of the support vector machine is then unique
        and the objective has a gradient.
    n_pairs : int, default=None
        Number of pairs of samples that ``init="pairs"`` tries for the start of a run; None means a quarter of the
        samples.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    kernel : str, kernel object, callable, list or dict, default="auto"
        Basis kernels. With several views, one for each (``"auto"``: linear); with one view, any number in a list
        (``"auto"``: Gaussian kernels of ten widths, see :func:`kernelweave.kernels.rbf_widths`).
    kernel_params : dict, or list or dict of dicts, default=None
        Parameters of named kernels, for all or one for each.
    normalize : bool, default=True
        Divide every basis kernel by the variance of the samples in its feature space, so that equal weights mean equal
        shares.
    init : "pairs" or array-like of two clusters, default="pairs"
        Initialisation: samples go to the nearer of two samples drawn far apart, for ``n_pairs`` pairs, of which the one
        with the best objective is used; or labels 0 and 1 for the first division.
    n_init : int, default=1
        Number of runs from different starts; the one with the lowest objective is kept.
    max_iter : int, default=100
        Maximum number of outer iterations.
    tol : float, default=1e-4
        A run ends when labels no longer change and an iteration lowers the objective by at most ``tol`` times its
        value.
    memory_limit : float, default=2048
        Memory in MiB that the stored basis kernels may take together.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error. Requires an integer ``random_state``.
    random_state : int, RandomState instance or None, default=None
        Seed of the pairs. The same seed gives the same labels with any number of threads.
    verbose : int, default=0
        1 shows a progress bar over the divisions.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, 0..n_clusters-1.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the basis kernels in their sum, scaled to add up to 1; of the first division where there are several.
    view_weights_ : ndarray of shape (n_views,)
        The same, added up over the kernels of each view.
    kernel_names_ : list of str
        Names of the basis kernels.
    kernel_ : kernel object
        The learned kernel, where hyperparameters were learned.
    view_names_ : list of str
        Names of the views.
    objective_ : float
        J at the end (of the first division), which is minimised.
    objective_path_ : ndarray
        J at the start and after every outer iteration; it never increases.
    optimality_gap_ : float
        How far J may be from the true optimum of the support vector machine at these labels and weights.
    n_iter_ : int
        Number of outer iterations.
    converged_ : bool
        Whether the run converged before ``max_iter``.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a table with string column names.

    See Also
    --------
    MultiViewKernelKMeans : Kernel weights by variance alone, for any number of clusters.
    IterativeSVR : Margin alone, on one kernel.

    Notes
    -----
    Needs at least four samples; a kernel that is not positive semidefinite is an error.

    Cost: O(V n^2) memory, and as much time per gradient step; up to 2 ``n_moves`` support vector machines per outer
    iteration, each warm-started from the last, and n / 4 of them for the initialisation.

    There is no ``score``: J weighs the variance of all training samples against their margin, and no new sample has
    either.

    Source: PhD chapter 5, Alg. 5.1 and 5.2; G. Tzortzis and A. Likas, "Ratio-based multiple kernel clustering", ECML
    PKDD 2014.

    Examples
    --------
    >>> from kernelweave import RatioMultipleKernelClustering
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(100, noise=0.05, random_state=0)
    >>> model = RatioMultipleKernelClustering(C=10.0, random_state=0).fit(X)
    >>> len(model.kernel_weights_), bool((model.predict(X) == model.labels_).all())
    (10, True)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **view_rules("n_clusters", "views", "kernel_params", "n_init", "max_iter", "tol", "memory_limit"),
        **view_rules("checkpoint", "random_state", "verbose"),
        "C": [Interval(Real, 0, None, closed="neither")],
        "balance": [Interval(Real, 0, 1, closed="both")],
        "n_moves": [Interval(Integral, 1, None, closed="left")],
        "norm": [Interval(Integral, 1, 2, closed="both"), None],
        "learn": [StrOptions({"weights", "hyperparameters"})],
        "regularization": [Interval(Real, 0, 1, closed="left")],
        "n_pairs": [Interval(Integral, 1, None, closed="left"), None],
        "kernel": [StrOptions({*KERNELS, "auto", "rbf_widths"}), callable, list, tuple, dict],
        "normalize": ["boolean"],
        "init": [StrOptions({"pairs"}), "array-like"],
    }

    @renamed_parameters(ridge="use regularization", n_starts="use n_pairs")
    def __init__(
        self,
        n_clusters: int = 2,
        *,
        C: float = 1.0,
        balance: float = 0.5,
        n_moves: int = 30,
        norm: Norm = 1,
        learn: str = "weights",
        regularization: float = 1e-8,
        n_pairs: int | None = None,
        views: Any = None,
        kernel: Any = "auto",
        kernel_params: Any = None,
        normalize: bool = True,
        init: Any = "pairs",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-4,
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.C = C
        self.balance = balance
        self.n_moves = n_moves
        self.norm = norm
        self.learn = learn
        self.regularization = regularization
        self.n_pairs = n_pairs
        self.views = views
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.normalize = normalize
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "RatioMultipleKernelClustering":
        """Find the clusters and the kernel weights.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views, or one; see ``views``. With ``kernel="precomputed"``, kernel matrices.
        y : None
            Ignored.

        Returns
        -------
        self : RatioMultipleKernelClustering
            The fitted estimator.
        """
        views = read_views(self, X, reset=True, min_samples=4)
        check_division(self.n_clusters, self.balance, views.n_samples)
        keep_run(self, views)
        basis = self._fit_basis(views)
        first = basis.family.first()
        runs: list[RatioRun] = []

        def cut(members: Ints, new: int) -> Cut:
            best = self._best_run(basis, members, new)
            runs.append(best)
            decision = best.solution
            return Cut(best.labels, best.theta, decision.multipliers / decision.variance, decision.bias)

        total = self.n_clusters - 1
        division = divide(
            basis.family.matrix(first),
            self.n_clusters,
            cut,
            progress=lambda order: track(self, order, total=total, what="divisions", X=X, y=y),
            regularization=self.regularization,
        )
        self.labels_ = division.labels
        self._model = DivisionModel(division.splits, basis.new_samples)
        self._store_kernel(basis, runs[0].theta if runs else first)
        self._store_runs(basis, runs)
        return self

    def _fit_basis(self, views: Views) -> FittedBasis:
        """Return the kernels, fitted, and the family of those that can be learned."""
        options: dict[str, Any] = {"regularization": self.regularization, "memory_limit": self.memory_limit}
        if self.learn == "hyperparameters":
            return fit_kernel_object(views, self.kernel, **options)
        n = views.n_samples
        most = 0.5 * (n + largest_difference(self.balance, n, first=True)) if self.n_clusters > 2 else 0.0
        options |= {"norm": self.norm, "normalize": self.normalize, "largest_share": most / n}
        return fit_basis(views, self.kernel, self.kernel_params, **options)

    def _best_run(self, basis: FittedBasis, members: Ints, new: int) -> RatioRun:
        """Return the run of least objective on one cluster; ``new`` counts the divisions from 1."""
        family = basis.family if new == 1 else basis.family.take(members)
        theta = family.first()
        limit = largest_difference(self.balance, len(members), first=new == 1)
        options: dict[str, Any] = {"C": self.C, "limit": limit, "n_moves": self.n_moves, "learned": basis.learnable}
        options |= {"max_iter": self.max_iter, "tol": self.tol}
        part = self._keeper.part(f"division {new}")

        def run(start: Floats, _: Keeper) -> RatioRun:
            return ratio_clustering(family, theta, start, **options)

        def best() -> RatioRun:
            if not isinstance(self.init, str) and new == 1:
                starts = [self._labels_of_init(len(members), limit)]
            else:
                starts = part.part("starts").once(list, lambda: self._drawn_starts(family.matrix(theta), limit, new))
            return best_of(map(kept_run(part, run, RatioRun), enumerate(starts)))

        return part.once(RatioRun, best)

    def _drawn_starts(self, K: Floats, limit: float, new: int) -> list[Floats]:
        """Return the start of every run, the best of the labellings drawn for it."""
        count = max(1, round(PAIRS_SHARE * len(K))) if self.n_pairs is None else self.n_pairs
        rngs = streams(self.random_state, new * self.n_init)[-self.n_init :]
        return [best_start(K, balanced_pairs(K, rng, count, limit), self.C) for rng in rngs]

    def _labels_of_init(self, n_samples: int, limit: float) -> Floats:
        """Return the labels that ``init`` holds, as +1 and -1."""
        labels = read_labels(self.init, n_samples, 2)
        start = np.where(labels == 1, 1.0, -1.0)
        if abs(start.sum()) > limit:
            sizes = np.bincount(labels, minlength=2).tolist()
            raise ParameterError(
                f"init has clusters of {sizes} samples, which balance={self.balance} does not allow. Raise balance or "
                "give other labels."
            )
        return start

    def _store_runs(self, basis: FittedBasis, runs: Sequence[RatioRun]) -> None:
        """Store what the first division says; with a single cluster there is none."""
        best = runs[0] if runs else None
        self.objective_ = best.objective if best else 0.0
        self.objective_path_ = np.array(best.history) if best else np.zeros(1)
        self.optimality_gap_ = best.solution.gap if best else 0.0
        self.n_iter_ = best.n_iter if best else 0
        self.converged_ = best.converged if best else True
        if best:
            _warn_if_flat(basis, best)
            _warn_if_unfinished(best.converged, self.max_iter)
        warn_if_empty(np.bincount(self.labels_, minlength=self.n_clusters), self.n_clusters)

    def _store_kernel(self, basis: FittedBasis, theta: Floats) -> None:
        """Store what was learned of the kernels in readable form."""
        self.kernel_names_ = basis.names
        self.kernel_weights_ = basis.kernel_weights(theta)
        self.view_weights_ = basis.view_weights(theta, len(self.view_names_))
        self.__dict__.pop("kernel_", None)
        if self.learn == "hyperparameters":
            self.kernel_ = self.kernel.clone_with_theta(theta)

    def _read_new(self, X: Any) -> Sequence[Matrix]:
        return read_views(self, X, reset=False).blocks

    def _set_input_tags(self, tags: Any) -> None:
        set_view_kernel_tags(tags, self.kernel, self.views)


def _warn_if_flat(basis: FittedBasis, run: RatioRun) -> None:
    """Warn where the learned kernel leaves the clusters no variance, so that any margin will do."""
    mean_diagonal = float(np.trace(basis.family.matrix(run.theta))) / basis.family.n
    if run.solution.variance <= NO_VARIANCE * mean_diagonal:
        warn(
            "The clusters have no variance left under the learned kernel, so that any margin is optimal: samples take "
            f"few values in {basis.names[int(np.argmax(run.theta))]!r}. If that is not what the clusters "
            "should follow, drop that kernel.",
            ConvergenceWarning,
        )


def _warn_if_unfinished(converged: bool, max_iter: int) -> None:
    if not converged:
        warn(
            f"The run stopped at max_iter={max_iter} before labels and weights settled. Raise max_iter or tol.",
            ConvergenceWarning,
        )
