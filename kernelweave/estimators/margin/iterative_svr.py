"""The iterative support vector regression estimator."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from kernelweave.estimators.margin.basis_kernels import BasisKernels
from kernelweave.estimators.margin.dividing_clusterer import DividingClusterer
from kernelweave.estimators.margin.division import Cut, DivisionModel, check_division, divide, largest_difference
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.fit_warnings import warn_if_empty, warn_if_indefinite, warn_if_unfinished
from kernelweave.estimators.shared.parameters import rules
from kernelweave.estimators.shared.runs import kept_run
from kernelweave.estimators.shared.single_kernel import (
    fit_or_approximate,
    is_precomputed,
    read_kernel_input,
    set_kernel_tags,
)
from kernelweave.estimators.shared.view_kernels import ViewKernel, ViewKernels
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.checkpoints import Keeper
from kernelweave.foundation.errors import ConvergenceWarning, ParameterError
from kernelweave.foundation.logged_warnings import warn
from kernelweave.foundation.memory import check_matrices
from kernelweave.foundation.progress import track
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import read_labels
from kernelweave.kernels.dense import DenseKernel, stored
from kernelweave.kernels.spec.fitting import FittedKernel
from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
from kernelweave.solvers.kmeans.starts import start_labels
from kernelweave.solvers.margin.iterative_svr import SvrRun, iterative_svr
from kernelweave.solvers.shared.best_run import best_of

#: Most steps of one regression for every sample. Regressions of published experiments, with C up to 100, take at most
#: half as many; with kernel values in the millions they would take hours.
STEPS_PER_SAMPLE = 25_000
# The kernel, the centred one, a copy of a cluster that is divided again, and what libsvm keeps in single precision.
MATRICES = 4


class IterativeSVR(DividingClusterer):
    """Iterative support vector regression (iterSVR): maximum margin clustering on one kernel.

    Alternates between a support vector regression on the present labels +1 and -1 and new labels by its sign, the bias
    set so that the clusters keep their balance. A baseline for :class:`RatioMultipleKernelClustering`, which weighs the
    margin against the clusters' variance and learns the kernel too.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters. The method finds two; more are found by dividing the cluster with the largest scatter again
        (experimental, not in the source).
    C : float, default=1.0
        Penalty of errors of the regression.
    balance : float, default=0.5
        Largest difference in size of the two clusters, as a share of the samples; the source uses 0.03 for balanced and
        0.3 for unbalanced data.
    epsilon : float, default=0.0
        Errors of the regression below this cost nothing.
    kernel : str, kernel object or callable, default="rbf"
        As in :class:`KernelKMeans`.
    kernel_params : dict, default=None
        Parameters of a named kernel.
    init : "k-means" or array-like of two clusters, default="k-means"
        Initialisation: kernel k-means from random samples as centres, or labels 0 and 1 for the first division.
    n_init : int, default=10
        Number of starts; the run with the lowest objective is kept.
    max_iter : int, default=100
        Maximum number of iterations of one run.
    tol : float, default=1e-5
        Violation of the optimality conditions at which a regression is solved; 1e-3, libsvm's own default, is much
        faster where ``C`` is large.
    storage : {"auto", "dense", "blockwise"}, default="auto"
        Accepted as in other estimators; the kernel matrix is always stored.
    memory_limit : float, default=2048
        Memory in MiB that the kernel matrix may take.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error. Requires an integer ``random_state``.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    verbose : int, default=0
        1 shows a progress bar over the divisions.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, 0..n_clusters-1.
    objective_ : float
        Objective of the best iteration of the best run (of the first division), which is minimised.
    objective_path_ : ndarray
        Objective after every iteration of that run; it may increase, and the best iteration is kept.
    n_iter_ : int
        Number of iterations of the best run.
    converged_ : bool
        Whether labels repeated before ``max_iter``, every regression solved.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if X had string column names.

    See Also
    --------
    RatioMultipleKernelClustering : Variance over margin, with learned kernels.

    Notes
    -----
    Needs at least four samples. Cost: one support vector regression per iteration, O(n^2) to O(n^3), and the kernel
    matrix. A regression takes longer for larger ``C`` and kernel values; one that is not solved after 25,000 n steps
    ends its run with a :class:`kernelweave.ConvergenceWarning`.

    There is no ``score``: the margin is that of the training samples.

    Source: PhD 1.3.2 and 5.2; K. Zhang, I. Tsang and J. Kwok, "Maximum margin clustering made practical", ICML 2007.

    Examples
    --------
    >>> from kernelweave import IterativeSVR
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(60, centers=[[0, 0], [6, 0]], random_state=0)
    >>> model = IterativeSVR(random_state=0).fit(X)
    >>> abs(int(model.labels_.sum()) - int(y.sum())), bool((model.predict(X) == model.labels_).all())
    (0, True)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **rules("n_clusters", "kernel", "kernel_params", "n_init", "max_iter", "storage", "memory_limit"),
        **rules("checkpoint", "random_state", "verbose"),
        "C": [Interval(Real, 0, None, closed="neither")],
        "balance": [Interval(Real, 0, 1, closed="both")],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "init": [StrOptions({"k-means"}), "array-like"],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        C: float = 1.0,
        balance: float = 0.5,
        epsilon: float = 0.0,
        kernel: Any = "rbf",
        kernel_params: dict[str, Any] | None = None,
        init: Any = "k-means",
        n_init: int = 10,
        max_iter: int = 100,
        tol: float = 1e-5,
        storage: str = "auto",
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.C = C
        self.balance = balance
        self.epsilon = epsilon
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.storage = storage
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "IterativeSVR":
        """Find the clusters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or the kernel matrix if ``kernel="precomputed"``.
        y : None
            Ignored.

        Returns
        -------
        self : IterativeSVR
            The fitted estimator.
        """
        X = read_kernel_input(self, X, reset=True)
        n = X.shape[0]
        if n < 4:
            raise ParameterError(f"X has {n} sample(s) while a minimum of 4 is required by IterativeSVR.")
        check_division(self.n_clusters, self.balance, n)
        check_matrices(
            MATRICES - is_precomputed(self.kernel),
            n,
            self.memory_limit,
            what="The kernel, a centred copy and the cache of the regressions",
            remedy="cluster a part of the samples and predict the others",
        )
        keep_run(self, X)
        kernel = fit_or_approximate(
            X, self.kernel, self.kernel_params, centre_features=True, weights=np.ones(n), memory_limit=self.memory_limit
        )
        op = kernel.operator("dense", np.inf)
        warn_if_indefinite(op)
        K = np.ascontiguousarray(stored(op).K, dtype=np.float64)
        runs: list[SvrRun] = []

        def cut(members: Ints, new: int) -> Cut:
            best = self._best_run(K, members, new)
            runs.append(best)
            return Cut(best.labels, np.ones(1), best.multipliers, best.bias)

        total = self.n_clusters - 1
        division = divide(
            K, self.n_clusters, cut, progress=lambda order: track(self, order, total=total, what="divisions", X=X, y=y)
        )
        self.labels_ = division.labels
        self._model = DivisionModel(division.splits, _of_one_view(kernel))
        self._store_runs(runs)
        return self

    def _best_run(self, K: Floats, members: Ints, new: int) -> SvrRun:
        """Return the run of least objective on one cluster; ``new`` counts the divisions from 1."""
        K = K if new == 1 else np.ascontiguousarray(K[np.ix_(members, members)])
        options: dict[str, Any] = {"C": self.C, "epsilon": self.epsilon, "max_iter": self.max_iter, "tol": self.tol}
        options |= {"limit": largest_difference(self.balance, len(members), first=new == 1)}
        options |= {"regression_steps": STEPS_PER_SAMPLE * len(members)}
        # Kernel k-means often ends where it did before, and a run depends on its start alone.
        starts = {start.tobytes(): np.where(start == 1, 1.0, -1.0) for start in self._starts(K, new)}
        part = self._keeper.part(f"division {new}")

        def run(signs: Floats, _: Keeper) -> SvrRun:
            return iterative_svr(K, signs, **options)

        return part.once(SvrRun, lambda: best_of(map(kept_run(part, run, SvrRun), enumerate(starts.values()))))

    def _starts(self, K: Floats, new: int) -> list[Ints]:
        """Return the labels that runs start from."""
        if not isinstance(self.init, str) and new == 1:
            return [read_labels(self.init, len(K), 2)]
        op = DenseKernel(K)
        weights = np.ones(len(K))
        rngs = streams(self.random_state, new * self.n_init)[-self.n_init :]
        return [
            kernel_kmeans(op, start_labels(op, "random", weights, 2, rng), weights, n_clusters=2).labels for rng in rngs
        ]

    def _store_runs(self, runs: Sequence[SvrRun]) -> None:
        """Store what the first division says; with a single cluster there is none."""
        best = runs[0] if runs else None
        self.objective_ = best.objective if best else 0.0
        self.objective_path_ = np.array(best.history) if best else np.zeros(1)
        self.n_iter_ = best.n_iter if best else 0
        self.converged_ = best.converged if best else True
        solved = all(run.solved for run in runs)
        if best and best.solved:
            warn_if_unfinished(best.converged, self.max_iter)
        _warn_if_unsolved(solved)
        warn_if_empty(np.bincount(self.labels_, minlength=self.n_clusters), self.n_clusters)

    def _read_new(self, X: Any) -> Sequence[Matrix]:
        return [read_kernel_input(self, X, reset=False)]

    def _set_input_tags(self, tags: Any) -> None:
        set_kernel_tags(tags, self.kernel)


def _of_one_view(kernel: FittedKernel) -> BasisKernels:
    return BasisKernels(ViewKernels((ViewKernel(kernel.for_new_samples()),)), (0,))


def _warn_if_unsolved(solved: bool) -> None:
    if not solved:
        warn(
            f"A support vector regression was not solved after {STEPS_PER_SAMPLE} steps for every sample, which ended "
            "the best run: C times the values of the kernel is large. Scale the features or the kernel, lower C, or "
            "raise tol.",
            ConvergenceWarning,
        )
