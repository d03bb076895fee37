"""MinMax k-means on feature vectors and on kernels."""

from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any

from kernelweave.estimators.kmeans.vectors import VECTOR_INITS, center_starts
from kernelweave.estimators.shared.center_clusterer import CenterClusterer
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.elsewhere import is_elsewhere, letting_go, placed_samples, store_communication
from kernelweave.estimators.shared.fit_warnings import warn_if_collapsed, warn_if_plainly_indefinite
from kernelweave.estimators.shared.models import (
    CenterModel,
    MeanModel,
    cluster_means,
    feature_offset,
    shifted_features,
)
from kernelweave.estimators.shared.parameters import rules
from kernelweave.estimators.shared.runs import first_labels, label_starts, run_starts
from kernelweave.estimators.shared.single_kernel import (
    fit_or_approximate,
    is_precomputed,
    neighbor_recall,
    read_kernel_input,
    set_kernel_tags,
    why_without_distances,
)
from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.checkpoints import Keeper
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import check_cluster_count, read_samples, read_weights
from kernelweave.kernels.device import on_device
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import Storage
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers.kmeans.minmax import MinMaxRun, best_minmax, drawn_minmax, minmax_kmeans

#: Rules of the parameters both forms have.
MINMAX_RULES: dict[str, list[Any]] = {
    "p_init": [Interval(Real, 0, 1, closed="left")],
    "p_max": [Interval(Real, 0, 1, closed="left")],
    "p_step": [Interval(Real, 0, None, closed="neither")],
    "memory": [Interval(Real, 0, 1, closed="both")],
    "refine": ["boolean"],
    **rules("n_clusters", "n_init", "max_iter", "tol", "checkpoint", "random_state", "verbose"),
}


class MinMaxKMeans(CenterClusterer):
    """MinMax k-means: k-means that recovers from poor starts by weighting clusters by their variance.

    From a poor start, k-means merges some groups and splits others. Here every cluster has a weight that grows with
    its variance V, the sum of the squared distances to its centre, and the squared distances to its centre are
    multiplied by weight^p: clusters of large variance lose samples to the others. The exponent p starts at ``p_init``,
    where this is k-means, and increases in every iteration, so that the variances become more similar; it is reduced
    again when a cluster would be left without variance. Use it where k-means gives different results from every start,
    and with ``refine=True`` as an initialisation of k-means. Avoid it where groups truly differ in variance: see the
    guide.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    p_init : float, default=0.0
        Exponent in the first iteration, at least 0 and below 1. With 0 that iteration is one of k-means.
    p_max : float, default=0.5
        Largest exponent. It is lowered automatically where a cluster would be lost. With 0 every run is one of k-means.
    p_step : float, default=0.01
        Increase of the exponent per iteration.
    memory : float, default=0.3
        Share of the old weights kept in each iteration (the beta of the source), from 0 to 1. Some memory means fewer
        lost clusters and more balance; 1 keeps all weights equal, which is k-means.
    refine : bool, default=False
        Whether to run k-means from the result.
    init : {"random", "k-means++"} or array of shape (n_clusters, n_features), default="random"
        Initial centres: random samples, samples far apart, or the given ones (one run).
    n_init : int, default=10
        Number of starts. The run with the smallest maximum variance is kept; with ``refine`` the one with the
        lowest sum of variances. A start that immediately leaves a cluster without variance is drawn again, up to ten
        times.
    max_iter : int, default=500
        Maximum number of iterations of one run. A run need not converge: it may cycle through partitions. It is then
        cut short, with the result that ``max_iter`` iterations would have given.
    tol : float, default=1e-6
        A run ends when the objective changes by at most ``tol`` times its value in an iteration.
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
        Cluster of every sample, 0..n_clusters-1.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Mean of every cluster.
    cluster_weights_ : ndarray of shape (n_clusters,)
        Weight of every cluster at the end of the MinMax run; they add up to 1.
    p_ : float
        Exponent at the end of the MinMax run.
    cluster_variances_ : ndarray of shape (n_clusters,)
        Squared distances to the centre of every cluster, summed.
    max_variance_ : float
        The largest of them (E_max).
    inertia_ : float
        Their sum (E_sum), the objective of k-means.
    objective_ : float
        The objective, sum of weight^p * V over the clusters, or with ``refine`` that of k-means; it is minimised.
    objective_path_ : ndarray
        The objective after every iteration; with ``refine`` that of the iterations of k-means.
    n_iter_ : int
        Number of iterations of the best run, including those of k-means.
    converged_ : bool
        Whether the objective of the best run settled; with ``refine``, whether k-means converged.
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
    MinMaxKernelKMeans : The same in the feature space of a kernel.
    PifsKMeans : Balances the sizes of clusters instead of their variances.

    Notes
    -----
    Cost: O(n d k) per iteration, as for k-means, and about 60 to 150 iterations per start, of which 50 pass while p
    rises. Starts run in parallel. Memory: a centred copy of X and the labels of each value of p.

    ``predict`` multiplies distances by weight^p as the run did, so that training samples keep their labels,
    except for the few that would move in one more iteration; with ``refine`` it takes the nearest centre.
    scikit-learn's ``KMeans(k, init=model.cluster_centers_)`` continues from the result.

    Source: PhD Alg. 2.1 and 2.2-2.3; G. Tzortzis and A. Likas, "The MinMax k-Means clustering algorithm", Pattern
    Recognition 47, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MinMaxKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 0.4, (50, 2)) for centre in ([0, 0], [4, 0], [0, 4])])
    >>> bad = X[[0, 1, 50]]  # two of the first centres in one group
    >>> model = MinMaxKMeans(3, init=bad).fit(X)
    >>> np.bincount(model.labels_).tolist(), round(model.p_, 2)
    ([50, 50, 50], 0.5)
    >>> model.predict(X[:2]).tolist() == model.labels_[:2].tolist()
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's convention
        **MINMAX_RULES,
        "init": [StrOptions(set(VECTOR_INITS)), "array-like"],
    }

    _takes_blocks = True
    _takes_device = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        p_init: float = 0.0,
        p_max: float = 0.5,
        p_step: float = 0.01,
        memory: float = 0.3,
        refine: bool = False,
        init: Any = "random",
        n_init: int = 10,
        max_iter: int = 500,
        tol: float = 1e-6,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.p_init = p_init
        self.p_max = p_max
        self.p_step = p_step
        self.memory = memory
        self.refine = refine
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MinMaxKMeans":
        """Cluster the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; a sample of weight 2 counts as two equal samples, and one of weight 0 only gets a label.

        Returns
        -------
        self : MinMaxKMeans
            The fitted estimator.
        """
        X = placed_samples(self, X) if is_elsewhere(self, X) else read_samples(self, X, reset=True)
        with letting_go(X):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Cluster samples that were read."""
        weights = read_weights(sample_weight, X.shape[0])
        check_cluster_count(self.n_clusters, weights)
        keep_run(self, X, weights)
        offset = feature_offset(X)
        op = on_device(shifted_features(X, offset))
        starts = center_starts(self.init, self.n_init, self.random_state, op, offset, self.n_clusters)
        run, refined = _best_run(self, op, weights, starts, X, y)
        best = refined or run
        self.cluster_centers_: Floats = cluster_means(X, weights, best.labels, best.totals)
        self._model = MeanModel(self.cluster_centers_, offset, best.totals > 0, _distance_factors(run, refined))
        _store_minmax(self, run, refined)
        store_communication(self, op)

    def _read_new(self, X: Any) -> Array:
        return read_samples(self, X, reset=False)


class MinMaxKernelKMeans(CenterClusterer):
    """MinMax kernel k-means: kernel k-means that recovers from poor starts by weighting clusters by their variance.

    :class:`MinMaxKMeans` in the feature space of a kernel: for similarities instead of vectors, and for clusters that
    straight lines cannot separate. With ``refine=True`` it is kernel k-means with a good initialisation.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    p_init : float, default=0.0
        Exponent in the first iteration, at least 0 and below 1.
    p_max : float, default=0.5
        Largest exponent. It is lowered automatically where a cluster would be lost; 0 is kernel k-means.
    p_step : float, default=0.01
        Increase of the exponent per iteration.
    memory : float, default=0.3
        Share of the old weights kept in each iteration (the beta of the source), from 0 to 1.
    refine : bool, default=False
        Whether to run kernel k-means from the result.
    kernel : str, kernel object or callable, default="rbf"
        As in :class:`KernelKMeans`.
    kernel_params : dict, default=None
        Parameters of a named kernel, as in :class:`KernelKMeans`.
    init : {"random", "k-means++", "random_partition"} or array of shape (n_samples,), default="random"
        Initialisation: random samples as centres, centres drawn far apart, random labels, or given labels (one run).
    n_init : int, default=10
        Number of starts. The run with the smallest maximum variance is kept; with ``refine`` the one with the
        lowest sum of variances. A start that immediately leaves a cluster without variance is drawn again, up to ten
        times.
    max_iter : int, default=500
        Maximum number of iterations of one run; see :class:`MinMaxKMeans`.
    tol : float, default=1e-6
        A run ends when the objective changes by at most ``tol`` times its value in an iteration.
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
        Cluster of every sample, 0..n_clusters-1.
    cluster_weights_ : ndarray of shape (n_clusters,)
        Weight of every cluster at the end of the MinMax run; they add up to 1.
    p_ : float
        Exponent at the end of the MinMax run.
    cluster_variances_ : ndarray of shape (n_clusters,)
        Squared feature-space distances to the centre of every cluster, summed.
    max_variance_ : float
        The largest of them (E_max).
    inertia_ : float
        Their sum (E_sum), the objective of kernel k-means.
    objective_ : float
        The objective, sum of weight^p * V over the clusters, or with ``refine`` that of kernel k-means; it is
        minimised.
    objective_path_ : ndarray
        The objective after every iteration; with ``refine`` that of the iterations of kernel k-means.
    n_iter_ : int
        Number of iterations of the best run, including those of kernel k-means.
    converged_ : bool
        Whether the objective of the best run settled; with ``refine``, whether kernel k-means converged.
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
    MinMaxKMeans : The same for plain vectors; it also gives centres.
    KernelKMeans : Uses this method as its initialisation with ``init="minmax"``.

    Notes
    -----
    Cost: a pass over the kernel per start, then only the rows of samples that move; about 60 to 150 iterations per
    start. Memory: the kernel matrix (8 n^2 bytes) or, blockwise, O(n (d + k)); 8 n k bytes for every start that runs at
    the same time. ``predict`` multiplies distances by weight^p as the run did; with ``refine`` it takes the nearest
    centre. A kernel that is not positive semidefinite raises a :class:`kernelweave.NotPSDWarning`; clusters whose
    variance would be negative count as having none.

    Source: PhD 2.5 with Alg. 2.1; G. Tzortzis and A. Likas, "The MinMax k-Means clustering algorithm", Pattern
    Recognition 47, 2014.

    Examples
    --------
    >>> from kernelweave import MinMaxKernelKMeans
    >>> from kernelweave.datasets import make_two_rings
    >>> from kernelweave.metrics import normalized_mutual_info
    >>> X, y = make_two_rings(random_state=0)
    >>> model = MinMaxKernelKMeans(2, kernel_params={"sigma": 0.5}, refine=True, n_init=20, random_state=0)
    >>> normalized_mutual_info(y, model.fit(X).labels_)
    1.0
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's convention
        **MINMAX_RULES,
        **rules("kernel", "kernel_params", "approximation", "n_components", "storage", "memory_limit"),
        "init": [StrOptions({"random", "k-means++", "random_partition"}), "array-like"],
    }

    _takes_blocks = True
    _takes_device = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        p_init: float = 0.0,
        p_max: float = 0.5,
        p_step: float = 0.01,
        memory: float = 0.3,
        refine: bool = False,
        kernel: Any = "rbf",
        kernel_params: dict[str, Any] | None = None,
        init: Any = "random",
        n_init: int = 10,
        max_iter: int = 500,
        tol: float = 1e-6,
        approximation: str | None = None,
        n_components: int = 200,
        storage: Storage = "auto",
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.p_init = p_init
        self.p_max = p_max
        self.p_step = p_step
        self.memory = memory
        self.refine = refine
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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MinMaxKernelKMeans":
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
        self : MinMaxKernelKMeans
            The fitted estimator.
        """
        X = read_kernel_input(self, X, reset=True, whole=True)
        with letting_go(X):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Cluster samples that were read."""
        weights = read_weights(sample_weight, X.shape[0])
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
        starts = label_starts(self.init, self.n_init, self.random_state, len(weights), self.n_clusters)
        run, refined = _best_run(self, op, weights, starts, X, y)
        best = refined or run
        factors = _distance_factors(run, refined)
        known = kernel.at_means(op, best.labels, weights, best.totals)
        self._model = CenterModel(*known, best.totals, best.norms, factors)
        _store_minmax(self, run, refined)
        store_communication(self, op)

    def _read_new(self, X: Any) -> Array:
        return read_kernel_input(self, X, reset=False)

    def _why_without(self, method: str) -> str | None:
        if method != "predict":
            return why_without_distances(self.kernel)
        if self.refine or not is_precomputed(self.kernel):
            return None
        return (
            "With kernel='precomputed' the rows of new samples do not hold k(x, x), which the weighted distances of "
            "MinMax kernel k-means need. Set refine=True, where the nearest centre decides, or pass features and a "
            "kernel name."
        )

    def _set_input_tags(self, tags: Any) -> None:
        set_kernel_tags(tags, self.kernel)


def _best_run(
    estimator: MinMaxKMeans | MinMaxKernelKMeans,
    op: KernelOperator,
    weights: Floats,
    starts: Sequence[Any],
    X: Any,
    y: Any,
) -> tuple[MinMaxRun, Descent | None]:
    """Run from every start and return the best run, with its refinement where asked for."""
    if estimator.p_init > estimator.p_max:
        raise ParameterError(
            f"p_init={estimator.p_init} is above p_max={estimator.p_max}, but p rises from p_init to p_max. Lower "
            "p_init or raise p_max."
        )
    n_clusters = estimator.n_clusters
    drawn = isinstance(estimator.init, str)
    names = ("n_clusters", "p_init", "p_max", "p_step", "memory", "tol", "max_iter")
    options = {name: getattr(estimator, name) for name in names}
    first = first_labels(op, estimator.init, weights, n_clusters)

    def raised(start: Any, keeper: Keeper) -> MinMaxRun:
        if drawn:
            return drawn_minmax(op, lambda: first(start), weights, keeper=keeper, **options)
        return minmax_kmeans(op, first(start), weights, keeper=keeper, **options)

    def run(start: Any, keeper: Keeper) -> tuple[MinMaxRun, Descent | None]:
        first_part = keeper.part("raised")
        result = first_part.once(MinMaxRun, lambda: raised(start, first_part))
        if not estimator.refine:
            return result, None
        part = keeper.part("refined")
        bounds: dict[str, Any] = {"n_clusters": n_clusters, "max_iter": estimator.max_iter}
        return result, part.once(Descent, lambda: kernel_kmeans(op, result.labels, weights, keeper=part, **bounds))

    collapsed = []

    def ended() -> Iterator[tuple[MinMaxRun, Descent | None]]:
        for pair in run_starts(estimator, op, run, starts, X, y):
            collapsed.append(pair[0].collapsed)
            yield pair

    best = best_minmax(ended())
    warn_if_collapsed(all(collapsed), estimator.p_init, drawn=drawn)
    return best


def _distance_factors(run: MinMaxRun, refined: Descent | None) -> Floats | None:
    """Return what squared distances are multiplied by to assign samples; None where the nearest centre decides."""
    return run.coefs if refined is None and run.p > 0 else None


def _store_minmax(estimator: MinMaxKMeans | MinMaxKernelKMeans, run: MinMaxRun, refined: Descent | None) -> None:
    """Store what both forms report of the best run and its refinement."""
    best = refined or run
    estimator._store_run(best)
    estimator.p_ = run.p
    estimator.cluster_weights_ = run.cluster_weights
    estimator.max_variance_ = float(best.scatter.max())
    if refined is not None:
        estimator.n_iter_ = run.n_iter + refined.n_iter
