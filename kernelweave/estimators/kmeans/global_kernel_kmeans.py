"""The global kernel k-means estimator."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelweave.estimators.shared.center_clusterer import CenterClusterer
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.fit_warnings import warn_if_plainly_indefinite, warn_if_unfinished
from kernelweave.estimators.shared.models import CenterModel
from kernelweave.estimators.shared.parameters import rules
from kernelweave.estimators.shared.single_kernel import (
    fit_or_approximate,
    neighbor_recall,
    read_kernel_input,
    room_beside_kernels,
    set_kernel_tags,
    why_without_distances,
)
from kernelweave.foundation.array_types import Array
from kernelweave.foundation.errors import ConvergenceWarning, ParameterError
from kernelweave.foundation.logged_warnings import warn
from kernelweave.foundation.progress import track
from kernelweave.foundation.sklearn_internals import StrOptions, fit_context
from kernelweave.inputs import check_cluster_count, read_weights
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import FittedKernel, Storage
from kernelweave.solvers.kmeans.global_search import Path, global_kernel_kmeans


class GlobalKernelKMeans(CenterClusterer):
    """Global kernel k-means: kernel k-means that needs no starting partition.

    Solves for 1, 2, ..., ``n_clusters`` clusters in turn. Each stage starts from the clusters of the
    previous one, tries samples as the centre of one more cluster, runs kernel k-means from each and keeps the best
    result. The objective is that of :class:`KernelKMeans` and usually ends lower; the result is deterministic, and
    comes with a solution for every smaller number of clusters. Use it where restarts of kernel k-means disagree, or to
    choose the number of clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        Largest number of clusters.
    search : {"fast", "exact", "exemplars"}, default="fast"
        Which samples each stage tries: the one with the largest guaranteed gain (``"fast"``, one run per stage), every
        sample (``"exact"``), or the ``n_exemplars`` most likely exemplars of a convex mixture (``"exemplars"``).
    n_exemplars : int, default=None
        Number of exemplars tried by ``search="exemplars"``; twice ``n_clusters`` by default.
    kernel : str, kernel object or callable, default="rbf"
        As in :class:`KernelKMeans`.
    kernel_params : dict, default=None
        Parameters of a named kernel.
    max_iter : int, default=300
        Maximum number of iterations of one run of kernel k-means.
    time_budget : float, default=None
        Seconds after which no further candidate is tried. The current stage takes the best one so far, and later stages
        take one fast step each; ``converged_`` is then False and a warning is issued.
    storage : {"auto", "dense", "blockwise"}, default="auto"
        As in :class:`KernelKMeans`. The exact search is fast only on a stored matrix, and also stores that of a
        linear kernel if it fits.
    memory_limit : float, default=2048
        Memory in MiB for a stored kernel matrix, and for the similarities that ``search="exemplars"`` works on.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error.
    random_state : int, RandomState instance or None, default=None
        Not used, since nothing here is random; present for consistency with other estimators.
    verbose : int, default=0
        1 shows a progress bar over the stages.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster label of every sample in the solution with ``n_clusters`` clusters.
    inertia_, objective_ : float
        Objective of that solution, as in kernel k-means; it is minimised.
    labels_path_ : ndarray of shape (n_clusters, n_samples)
        Labels of every solution; row ``k - 1`` has k clusters.
    inertia_path_ : ndarray of shape (n_clusters,)
        Objective of every solution.
    objective_path_ : ndarray
        Objective of every partition visited by the last run of kernel k-means.
    cluster_variances_ : ndarray of shape (n_clusters,)
        Contribution of every cluster to the objective.
    exemplar_indices_ : ndarray
        The exemplars tried, most likely first (``search="exemplars"`` only).
    n_iter_ : int
        Number of iterations of the last run of kernel k-means.
    converged_ : bool
        Whether every stage tried all its candidates and its run converged.
    neighbor_recall_ : float or None
        Share of the nearest neighbours that the search of ``kernel="nearest_neighbors"`` found, below 1 only for
        ``"neighbor_search": "approximate"`` in ``kernel_params``; None for other kernels.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if X had string column names.

    See Also
    --------
    KernelKMeans : One solution from random starts; cheaper than the exact search.
    kernelweave.model_selection.suggest_n_clusters : Reads a number of clusters off ``inertia_path_``.

    Notes
    -----
    Cost: the fast search takes one pass over the kernel and one run of kernel k-means per stage. The exact search takes
    n runs per stage; a run that reaches a partition visited by another run is cut short, which does not change the
    result and makes the search about a hundred times faster. Among equally good candidates the first is taken.

    Source: PhD 1.1.4 (Alg. 1.3), MSc Alg. 10, 11 and 12 and section 4.2 for weights; G. Tzortzis and A. Likas, "The
    global kernel k-means algorithm for clustering in feature space", IEEE TNN 2009.

    Examples
    --------
    >>> from kernelweave import GlobalKernelKMeans
    >>> from kernelweave.datasets import make_two_rings
    >>> from kernelweave.metrics import normalized_mutual_info
    >>> X, y = make_two_rings(random_state=0)
    >>> model = GlobalKernelKMeans(2, kernel_params={"sigma": 1.0}).fit(X)
    >>> normalized_mutual_info(y, model.labels_)
    1.0
    >>> model.labels_path_.shape
    (2, 500)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's convention
        **rules("n_clusters", "n_exemplars", "kernel", "kernel_params", "max_iter", "time_budget"),
        **rules("storage", "memory_limit", "checkpoint", "random_state", "verbose"),
        "search": [StrOptions({"exact", "fast", "exemplars"})],
    }

    _draws = False

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        search: str = "fast",
        n_exemplars: int | None = None,
        kernel: Any = "rbf",
        kernel_params: dict[str, Any] | None = None,
        max_iter: int = 300,
        time_budget: float | None = None,
        storage: Storage = "auto",
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.search = search
        self.n_exemplars = n_exemplars
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.max_iter = max_iter
        self.time_budget = time_budget
        self.storage = storage
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    _takes_device = True

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "GlobalKernelKMeans":
        """Cluster the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or the kernel matrix if ``kernel="precomputed"``.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; a sample of weight 2 counts as two equal samples, and one of weight 0 only gets a label.

        Returns
        -------
        self : GlobalKernelKMeans
            The fitted estimator.
        """
        began = time.monotonic()
        X = read_kernel_input(self, X, reset=True, whole=True)
        weights = read_weights(sample_weight, X.shape[0])
        check_cluster_count(self.n_clusters, weights)
        count = self._exemplar_count(weights)
        keeper = keep_run(self, X, weights)
        kernel = fit_or_approximate(
            X, self.kernel, self.kernel_params, centre_features=True, weights=weights, memory_limit=self.memory_limit
        )
        self.neighbor_recall_ = neighbor_recall(kernel)
        op = self._operator(kernel, len(weights))
        warn_if_plainly_indefinite(op)
        path = global_kernel_kmeans(
            op,
            weights,
            n_clusters=self.n_clusters,
            how=self.search,  # type: ignore[arg-type]
            n_exemplars=count,
            max_iter=self.max_iter,
            memory_limit=room_beside_kernels([kernel], [op], self.memory_limit),
            deadline=np.inf if self.time_budget is None else began + self.time_budget,
            keeper=keeper,
            on_stage=lambda stages: self._watched(stages, X, y),
        )
        last = path.stages[-1]
        self._model = CenterModel(kernel.for_new_samples(), last.labels, weights, last.totals, last.norms)
        self._store_path(path)
        return self

    def _operator(self, kernel: FittedKernel, n: int) -> KernelOperator:
        """Return the kernel stored where the exact search gains by it."""
        stored = self.search == "exact" and self.storage == "auto" and n**2 * 8 <= self.memory_limit * 2**20
        return kernel.operator("dense" if stored else self.storage, self.memory_limit)

    def _exemplar_count(self, weights: Array) -> int:
        usable = int(np.count_nonzero(weights))
        if self.n_exemplars is None:
            return min(2 * self.n_clusters, usable)
        if self.n_exemplars > usable:
            raise ParameterError(
                f"n_exemplars={self.n_exemplars} is more than the {usable} samples of positive weight; lower it."
            )
        return self.n_exemplars

    def _watched(self, stages: Iterator[int], X: Array, y: Any) -> Iterator[int]:
        return track(self, stages, total=max(0, self.n_clusters - 1), what="clusters", X=X, y=y)

    def _store_path(self, path: Path) -> None:
        self._store_run(path.stages[-1])
        self.labels_path_ = np.stack([stage.labels for stage in path.stages])
        self.inertia_path_ = np.array([stage.objective for stage in path.stages])
        self.converged_ = path.complete and all(stage.converged for stage in path.stages)
        if path.exemplars is not None:
            self.exemplar_indices_ = path.exemplars
        if path.stages[-1].converged and not all(stage.converged for stage in path.stages):
            warn_if_unfinished(False, self.max_iter)
        if not path.complete:
            warn(
                f"time_budget={self.time_budget} seconds ran out before every candidate was tried; the result is the "
                "best found so far. Raise it, or use search='fast'.",
                ConvergenceWarning,
            )

    def _read_new(self, X: Any) -> Array:
        return read_kernel_input(self, X, reset=False)

    def _why_without(self, method: str) -> str | None:
        return None if method == "predict" else why_without_distances(self.kernel)

    def _set_input_tags(self, tags: Any) -> None:
        set_kernel_tags(tags, self.kernel)
