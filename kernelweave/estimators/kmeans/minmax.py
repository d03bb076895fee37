"""MinMax k-means on feature vectors and on kernels."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from sklearn.utils.metaestimators import available_if

from kernelweave.estimators.shared.center_clusterer import KernelClusterer
from kernelweave.estimators.shared.kernel_estimator import (
    KERNEL_RULES,
    first_labels,
    run_starts,
    warn_if_collapsed,
    warn_if_indefinite,
)
from kernelweave.estimators.shared.vector_clusterer import VECTOR_INITS, VectorClusterer
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import check_cluster_count, read_labels, read_weights
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import Storage
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers.kmeans.minmax import MinMaxRun, best_minmax, drawn_minmax, minmax_kmeans

#: Rules of the parameters both forms have.
MINMAX_RULES: dict[str, list[Any]] = {
    "n_clusters": [Interval(Integral, 1, None, closed="left")],
    "n_init": [Interval(Integral, 1, None, closed="left")],
    "p_init": [Interval(Real, 0, 1, closed="left")],
    "p_max": [Interval(Real, 0, 1, closed="left")],
    "p_step": [Interval(Real, 0, None, closed="neither")],
    "memory": [Interval(Real, 0, 1, closed="both")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "refine": ["boolean"],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


class _MinMax:
    """What both forms share: the runs, the choice among them, and what is stored of the best."""

    n_clusters: int
    init: Any
    p_init: float
    p_max: float
    max_iter: int
    refine: bool
    cluster_variances_: Floats

    def _search(
        self, op: KernelOperator, weights: Floats, starts: Sequence[Any], X: Any, y: Any
    ) -> tuple[MinMaxRun, Descent | None]:
        """Run from every start and return the best run, with its refinement where asked for."""
        if self.p_init > self.p_max:
            raise ParameterError(
                f"p_init={self.p_init} is above p_max={self.p_max}: p rises from the one to the other. Lower p_init or "
                "raise p_max."
            )
        names = ("n_clusters", "p_init", "p_max", "p_step", "memory", "tol", "max_iter")
        options = {name: getattr(self, name) for name in names}
        first = first_labels(op, self.init, weights, self.n_clusters)

        collapsed = []

        def run(start: Any) -> tuple[MinMaxRun, Descent | None]:
            if isinstance(self.init, str):
                found = drawn_minmax(op, lambda: first(start), weights, **options)
            else:
                found = minmax_kmeans(op, first(start), weights, **options)
            collapsed.append(found.collapsed)
            if not self.refine:
                return found, None
            refined = kernel_kmeans(op, found.labels, weights, n_clusters=self.n_clusters, max_iter=self.max_iter)
            return found, refined

        best = best_minmax(run_starts(self, op, run, starts, X, y))
        warn_if_collapsed(all(collapsed), self.p_init, drawn=isinstance(self.init, str))
        return best

    def _settle(self, run: MinMaxRun, refined: Descent | None) -> None:
        """Store what is MinMax's own."""
        self.p_ = run.p
        self.cluster_weights_ = run.cluster_weights
        self.max_variance_ = float(self.cluster_variances_.max())
        if refined is not None:
            self.n_iter_ = run.n_iter + refined.n_iter
        self._coefs = run.coefs if refined is None and run.p > 0 else None


class MinMaxKMeans(_MinMax, VectorClusterer):
    """MinMax k-means: k-means that leaves bad starts behind by weighting clusters by their variance.

    After a bad start k-means merges some groups and splits others. Here every cluster has a weight that grows with
    its variance V, the sum of the squared distances to its centre, and the squared distances to its centre are
    multiplied by weight^p: clusters of large variance lose samples to the others. The exponent p begins at ``p_init``,
    where this is k-means, and rises with every step, so that the variances become more alike; it goes back a step
    when a cluster would be left without variance. Use it where k-means gives other results at every start, and with
    ``refine=True`` as the start of k-means. Leave it where groups truly differ in variance: see the guide.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : {"random", "k-means++"} or array of shape (n_clusters, n_features), default="random"
        First centres: random samples, samples far apart, or given ones (one run).
    n_init : int, default=10
        Number of starts. The run with the least largest variance is kept; with ``refine`` the one with the least
        sum of variances. A start that leaves a cluster without variance at once is drawn again, up to ten times.
    p_init : float, default=0.0
        Exponent at the first step, at least 0 and below 1. With 0 that step is one of k-means.
    p_max : float, default=0.5
        Largest exponent. It is lowered by itself where it would cost a cluster. With 0 every run is one of k-means.
    p_step : float, default=0.01
        How much the exponent rises at each step.
    memory : float, default=0.3
        Share of the old weights kept at each step (the beta of the source), from 0 to 1. Some memory means fewer
        clusters lost and more balance; 1 keeps all weights equal, which is k-means.
    tol : float, default=1e-6
        A run ends when the objective changes by at most ``tol`` times its value in a step.
    max_iter : int, default=500
        Most steps of one run. A run need not come to rest: it may go round in a circle of partitions. It is then not
        followed further, and ends where ``max_iter`` steps would have ended.
    refine : bool, default=False
        Whether to run k-means from the result.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. The same seed gives the same labels at any number of threads.
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
        The objective, sum of weight^p * V over the clusters; with ``refine`` that of k-means.
    objective_path_ : ndarray
        The objective after every step; with ``refine`` that of the steps of k-means.
    n_iter_ : int
        Steps of the best run, those of k-means included.
    converged_ : bool
        Whether the objective of the best run came to rest; with ``refine``, whether k-means ended by itself.
    warnings_ : tuple of str
        Warnings of the fit, each once; empty where there were none.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Their names, where X had string column names.

    See Also
    --------
    MinMaxKernelKMeans : The same in the feature space of a kernel.
    PifsKMeans : Balances the sizes of clusters instead of their variances.

    Notes
    -----
    Cost: O(n d k) a step, as for k-means, and about 60 to 150 steps a start, of which 50 go by while p rises. Starts
    run side by side. Memory: a centred copy of X and the labels of each value of p.

    ``predict`` multiplies distances by weight^p as the run did, so that training samples get their own labels, but for
    the few that would move in one more step; with ``refine`` it takes the nearest centre.
    ``KMeans(k, init=model.cluster_centers_)`` of scikit-learn goes on from the result.

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

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **MINMAX_RULES,
        "init": [StrOptions(set(VECTOR_INITS)), "array-like"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "random",
        n_init: int = 10,
        p_init: float = 0.0,
        p_max: float = 0.5,
        p_step: float = 0.01,
        memory: float = 0.3,
        tol: float = 1e-6,
        max_iter: int = 500,
        refine: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.p_init = p_init
        self.p_max = p_max
        self.p_step = p_step
        self.memory = memory
        self.tol = tol
        self.max_iter = max_iter
        self.refine = refine
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
            Weights; a sample of weight 2 counts as two equal samples, one of weight 0 only gets a label.

        Returns
        -------
        self : MinMaxKMeans
            The fitted estimator.
        """
        X = self._read(X, reset=True)
        weights = read_weights(sample_weight, X.shape[0])
        check_cluster_count(self.n_clusters, weights)
        op = self._operator(X)
        run, refined = self._search(op, weights, self._starts(op), X, y)
        self._store(X, weights, refined or run)
        self._settle(run, refined)
        return self


def _can_place(estimator: "MinMaxKernelKMeans") -> bool:
    """Whether the weighted distances of new samples can be computed."""
    if isinstance(estimator.kernel, str) and estimator.kernel == "precomputed" and not estimator.refine:
        raise AttributeError(
            "With kernel='precomputed' the rows of new samples do not hold k(x, x), which the weighted distances of "
            "MinMax kernel k-means need. Set refine=True, where the nearest centre decides, or pass features and a "
            "kernel name."
        )
    return True


class MinMaxKernelKMeans(_MinMax, KernelClusterer):
    """MinMax kernel k-means: kernel k-means that leaves bad starts behind by weighting clusters by their variance.

    :class:`MinMaxKMeans` in the feature space of a kernel: for similarities instead of vectors, and for clusters that
    straight lines cannot separate. With ``refine=True`` it is kernel k-means from a good start.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : str, kernel object or callable, default="rbf"
        As in :class:`KernelKMeans`.
    kernel_params : dict, default=None
        Parameters of a named kernel, as in :class:`KernelKMeans`.
    init : {"random", "k-means++", "random_partition"} or array of shape (n_samples,), default="random"
        Start: random samples as centres, centres drawn far apart, random labels, or given labels (one run).
    n_init : int, default=10
        Number of starts. The run with the least largest variance is kept; with ``refine`` the one with the least
        sum of variances. A start that leaves a cluster without variance at once is drawn again, up to ten times.
    p_init : float, default=0.0
        Exponent at the first step, at least 0 and below 1.
    p_max : float, default=0.5
        Largest exponent. It is lowered by itself where it would cost a cluster; 0 is kernel k-means.
    p_step : float, default=0.01
        How much the exponent rises at each step.
    memory : float, default=0.3
        Share of the old weights kept at each step (the beta of the source), from 0 to 1.
    tol : float, default=1e-6
        A run ends when the objective changes by at most ``tol`` times its value in a step.
    max_iter : int, default=500
        Most steps of one run; see :class:`MinMaxKMeans`.
    refine : bool, default=False
        Whether to run kernel k-means from the result.
    approximation : {"nystroem", "random_features"}, default=None
        Replace the kernel by inner products of ``n_components`` explicit features: for very many samples.
    n_components : int, default=200
        Number of features of the approximation.
    storage : {"auto", "dense", "blockwise"}, default="auto"
        Keep the kernel matrix, or compute it again tile by tile whenever it is needed. ``"auto"`` keeps it while it
        fits into ``memory_limit``. Linear kernels and graphs never need either.
    memory_limit : float, default=2048
        MiB a stored kernel matrix may take.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. The same seed gives the same labels at any number of threads.
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
        The objective, sum of weight^p * V over the clusters; with ``refine`` that of kernel k-means.
    objective_path_ : ndarray
        The objective after every step; with ``refine`` that of the steps of kernel k-means.
    n_iter_ : int
        Steps of the best run, those of kernel k-means included.
    converged_ : bool
        Whether the objective of the best run came to rest; with ``refine``, whether kernel k-means ended by itself.
    warnings_ : tuple of str
        Warnings of the fit, each once; empty where there were none.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Their names, where X had string column names.

    See Also
    --------
    MinMaxKMeans : The same for plain vectors, which then gives centres too.
    KernelKMeans : ``init="minmax"`` starts it from here.

    Notes
    -----
    Cost: a pass over the kernel per start, then only the rows of samples that move; about 60 to 150 steps a start.
    Memory: the kernel matrix (8 n^2 bytes) or, blockwise, O(n (d + k)); 8 n k bytes for every start that runs at the
    same time. ``predict`` multiplies distances by weight^p as the run did; with ``refine`` it takes the nearest centre.
    With a kernel that is not positive semidefinite a :class:`kernelweave.NotPSDWarning` is raised; clusters whose
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

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **KERNEL_RULES,
        **MINMAX_RULES,
        "init": [StrOptions({"random", "k-means++", "random_partition"}), "array-like"],
        "approximation": [StrOptions({"nystroem", "random_features"}), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        kernel_params: dict[str, Any] | None = None,
        init: Any = "random",
        n_init: int = 10,
        p_init: float = 0.0,
        p_max: float = 0.5,
        p_step: float = 0.01,
        memory: float = 0.3,
        tol: float = 1e-6,
        max_iter: int = 500,
        refine: bool = False,
        approximation: str | None = None,
        n_components: int = 200,
        storage: Storage = "auto",
        memory_limit: float = 2048,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.init = init
        self.n_init = n_init
        self.p_init = p_init
        self.p_max = p_max
        self.p_step = p_step
        self.memory = memory
        self.tol = tol
        self.max_iter = max_iter
        self.refine = refine
        self.approximation = approximation
        self.n_components = n_components
        self.storage = storage
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MinMaxKernelKMeans":
        """Cluster the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or the kernel matrix with ``kernel="precomputed"``.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a sample of weight 2 counts as two equal samples, one of weight 0 only gets a label. Kernels of
            neighbourhoods (``"nearest_neighbors"``, ``"self_tuning"``) look at all samples alike.

        Returns
        -------
        self : MinMaxKernelKMeans
            The fitted estimator.
        """
        X = self._read(X, reset=True)
        weights = read_weights(sample_weight, X.shape[0])
        check_cluster_count(self.n_clusters, weights)
        kernel = self._settle_kernel(X, weights)
        op = kernel.operator(self.storage, self.memory_limit)
        warn_if_indefinite(op)
        run, refined = self._search(op, weights, self._starts(len(weights)), X, y)
        self._kernel = kernel.for_new_samples()
        self._weights = weights
        self._store(refined or run)
        self._settle(run, refined)
        return self

    def _starts(self, n_samples: int) -> list[Any]:
        """Return what each run starts from: a generator, or given labels."""
        if isinstance(self.init, str):
            return list(streams(self.random_state, self.n_init))
        return [read_labels(self.init, n_samples, self.n_clusters)]

    @available_if(_can_place)
    def predict(self, X: Any) -> Ints:
        """Return the cluster of new samples, by the rule that assigned the training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features) or (n_new, n_training)
            New samples, or, with ``kernel="precomputed"`` and ``refine=True``, their kernel values with the training
            samples.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the cluster.
        """
        return super().predict(X)
