"""The kernel k-means estimator."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelweave.estimators.graph.structure import judged_within, settle_n_clusters
from kernelweave.estimators.shared.center_clusterer import CenterClusterer
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.elsewhere import letting_go, store_communication
from kernelweave.estimators.shared.fit_warnings import warn_if_plainly_indefinite
from kernelweave.estimators.shared.models import CenterModel
from kernelweave.estimators.shared.parameters import N_CLUSTERS_OR_AUTO, rules
from kernelweave.estimators.shared.runs import first_labels, label_starts, run_starts
from kernelweave.estimators.shared.single_kernel import (
    fit_or_approximate,
    neighbor_recall,
    read_kernel_input,
    room_beside_kernels,
    set_kernel_tags,
    why_without_distances,
)
from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.checkpoints import Keeper
from kernelweave.foundation.memory import PASSING
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import StrOptions, fit_context
from kernelweave.inputs import Views, check_cluster_count, read_weights
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import Storage
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers.kmeans.starts import INITS
from kernelweave.solvers.shared.best_run import best_of


class KernelKMeans(CenterClusterer):
    """Kernel k-means, weighted or not: k-means in the feature space of a kernel.

    Minimises J = sum_i w_i ||phi(x_i) - m(labels_i)||^2 over partitions, with m the weighted mean of each cluster in
    the feature space of the kernel. Use it for similarities instead of vectors, or for clusters that straight lines
    cannot separate; with ``kernel="linear"`` it is k-means. It finds a local minimum that depends on the
    initialisation.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters; ``"auto"`` chooses it as :class:`GraphFusionClustering` does, from neighbours in the feature
        space of the kernel.
    kernel : str, kernel object or callable, default="rbf"
        ``"linear"``, ``"rbf"``, ``"poly"``, ``"sigmoid"``, ``"laplacian"``, ``"cosine"``, ``"chi2"``,
        ``"normalized_poly"``, ``"nearest_neighbors"``, ``"self_tuning"`` or ``"precomputed"`` (X is then the kernel
        matrix, dense or sparse); an object of ``sklearn.gaussian_process.kernels``; or a function of two sample arrays
        that returns the matrix between them.
    kernel_params : dict, default=None
        Parameters of a named kernel, for instance ``{"sigma": 2.1}`` or ``{"gamma": "median"}`` for ``"rbf"``. The
        default width of ``"rbf"`` is ``gamma="scale"``, 1 / (n_features * X.var()).
    init : {"k-means++", "random", "random_partition", "minmax"} or array of shape (n_samples,), default="k-means++"
        Initialisation: centres drawn far apart, random samples as centres, random labels, the result of MinMax kernel
        k-means from random samples (more expensive, but rarely poor), or given labels (one run).
    n_init : int, default=10
        Number of starts; the run with the lowest objective is kept.
    max_iter : int, default=300
        Maximum number of iterations of one run.
    tol : float, default=0.0
        A run ends when an iteration lowers the objective by at most ``tol`` times its value. With 0 it continues until
        no sample moves. The published results of the authors' code correspond to 1e-4.
    approximation : {"nystroem", "random_features"}, default=None
        Approximate the kernel by inner products of ``n_components`` explicit features, for very many samples.
    n_components : int, default=200
        Number of features of the approximation.
    storage : {"auto", "dense", "blockwise"}, default="auto"
        Store the kernel matrix, or recompute it tile by tile whenever it is needed. ``"auto"`` stores it if it fits
        into ``memory_limit``. Linear kernels and graphs need neither.
    memory_limit : float, default=2048
        Memory in MiB that a stored kernel matrix may take.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error. Requires an integer ``random_state``.
    random_state : int, RandomState instance or None, default=None
        Seed for the starts. The same seed gives the same labels with any number of threads.
    verbose : int, default=0
        1 shows a progress bar over the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, 0..n_clusters_-1.
    n_clusters_ : int
        Number of clusters; with ``n_clusters="auto"`` 1 means that no clusters were found.
    confidence_ : {"high", "moderate", "low", "none", "given"}
        How certain the chosen number of clusters is.
    verdict_ : str
        A sentence with the number of clusters and the evidence for it.
    inertia_, objective_ : float
        The objective at ``labels_``; it is minimised.
    objective_path_ : ndarray
        The objective of every partition the best run visited, ending with ``objective_``.
    cluster_variances_ : ndarray of shape (n_clusters,)
        Contribution of every cluster to the objective (sums, not means).
    n_iter_ : int
        Number of iterations of the best run.
    converged_ : bool
        Whether the best run converged before ``max_iter``.
    neighbor_recall_ : float or None
        Share of the nearest neighbours that the search of ``kernel="nearest_neighbors"`` found, below 1 only for
        ``"neighbor_search": "approximate"`` in ``kernel_params``; None for other kernels.
    communication_ : dict
        Data transferred in a fit of tables in blocks (Dask, Zarr, mapped files): ``"rounds"`` to all workers,
        ``"bytes_sent"``, ``"bytes_received"``, ``"bytes_of_a_round"`` (the median), ``"blocks"``, ``"workers"`` and
        ``"workers_lost"``, those that died during the fit. Absent after fits in memory.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if X had string column names.

    See Also
    --------
    sklearn.cluster.KMeans : k-means on plain vectors, which is faster there.

    Notes
    -----
    Cost: one pass over the kernel per start (O(n^2), or O(n d k) for linear kernels), then only the rows of samples
    that move. Memory: the kernel matrix (8 n^2 bytes) or, blockwise, O(n (d + k)). A cluster that becomes empty
    gets the sample farthest from its centre. A kernel that is not positive semidefinite raises a
    :class:`kernelweave.NotPSDWarning`; the objective still never increases.

    Source: PhD 1.1.3 (Alg. 1.2), MSc 2.2 and 4.1; I. Dhillon, Y. Guan and B. Kulis, "Kernel k-means, spectral
    clustering and normalized cuts", KDD 2004.

    Examples
    --------
    >>> from kernelweave import KernelKMeans
    >>> from kernelweave.datasets import make_two_rings
    >>> from kernelweave.metrics import normalized_mutual_info
    >>> X, y = make_two_rings(random_state=0)
    >>> model = KernelKMeans(2, kernel_params={"sigma": 1.0}, init="random_partition", n_init=20, random_state=0)
    >>> normalized_mutual_info(y, model.fit(X).labels_)
    1.0
    >>> model.predict(X[:3]).tolist() == model.labels_[:3].tolist()
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's convention
        "n_clusters": N_CLUSTERS_OR_AUTO,
        **rules("kernel", "kernel_params", "n_init", "max_iter", "tol", "approximation", "n_components"),
        **rules("storage", "memory_limit", "checkpoint", "random_state", "verbose"),
        "init": [StrOptions(set(INITS)), "array-like"],
    }

    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        kernel: Any = "rbf",
        kernel_params: dict[str, Any] | None = None,
        init: Any = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 0.0,
        approximation: str | None = None,
        n_components: int = 200,
        storage: Storage = "auto",
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.approximation = approximation
        self.n_components = n_components
        self.storage = storage
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    _takes_blocks = True
    _takes_device = True

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "KernelKMeans":
        """Cluster the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or the kernel matrix if ``kernel="precomputed"``.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; a sample of weight 2 counts as two equal samples, and one of weight 0 only gets a label.
            Kernels of neighbourhoods (``"nearest_neighbors"``, ``"self_tuning"``) look at all samples equally.

        Returns
        -------
        self : KernelKMeans
            The fitted estimator.
        """
        X = read_kernel_input(self, X, reset=True, whole=True)
        with letting_go(X):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Cluster samples that were read."""
        weights = read_weights(sample_weight, X.shape[0])
        if not isinstance(self.n_clusters, str):
            check_cluster_count(self.n_clusters, weights)
        keep_run(self, X, weights)
        kernel = fit_or_approximate(
            X,
            self.kernel,
            self.kernel_params,
            centre_features=True,
            weights=weights,
            approximation=self.approximation,
            n_components=self.n_components,
            random_state=self.random_state,
            memory_limit=self.memory_limit,
        )
        self.neighbor_recall_ = neighbor_recall(kernel)
        op = kernel.operator(self.storage, self.memory_limit)
        warn_if_plainly_indefinite(op)
        left = max(PASSING * self.memory_limit, room_beside_kernels([kernel], [op], self.memory_limit))
        settle_n_clusters(self, lambda: (self._judged(op, left), ["kernel"]), left)
        best = best_of(self._runs(op, weights, X, y))
        known = kernel.at_means(op, best.labels, weights, best.totals)
        self._model = CenterModel(*known, best.totals, best.norms)
        self._store_run(best)
        store_communication(self, op)

    def _judged(self, op: KernelOperator, room: float) -> Views:
        """Return the kernel among samples that the number of clusters is read off, within ``room`` MiB."""
        rng = streams(self.random_state, 1, "judged samples")[0]
        n = op.n_samples
        count = judged_within(n, [n], ["kernel"], room)
        samples = np.sort(rng.choice(n, count, replace=False)) if n > count else np.arange(n)
        return Views(("kernel",), (np.asarray(op.block(samples, samples), dtype=np.float64),))

    def _runs(self, op: KernelOperator, weights: Floats, X: Array, y: Any) -> Iterator[Descent]:
        """Return one descent per start, as they end."""
        options: dict[str, Any] = {"n_clusters": self.n_clusters_, "max_iter": self.max_iter, "tol": self.tol}
        first = first_labels(op, self.init, weights, self.n_clusters_)
        starts = label_starts(self.init, self.n_init, self.random_state, len(weights), self.n_clusters_)

        def run(start: Any, keeper: Keeper) -> Descent:
            labels = keeper.part("labels").once(np.ndarray, lambda: first(start))
            return kernel_kmeans(op, labels, weights, keeper=keeper.part("descent"), **options)

        return run_starts(self, op, run, starts, X, y, Descent)

    def _read_new(self, X: Any) -> Array:
        return read_kernel_input(self, X, reset=False)

    def _why_without(self, method: str) -> str | None:
        return None if method == "predict" else why_without_distances(self.kernel)

    def _set_input_tags(self, tags: Any) -> None:
        set_kernel_tags(tags, self.kernel)
