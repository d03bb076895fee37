"""The multi-view kernel k-means estimator."""

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from kernelweave.estimators.graph.fusion_views import views_for_graphs
from kernelweave.estimators.graph.graph_start import graph_labels
from kernelweave.estimators.shared.center_clusterer import CenterClusterer
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.elsewhere import is_elsewhere, letting_go, placed_views, store_communication
from kernelweave.estimators.shared.embedding import ObservedExtension
from kernelweave.estimators.shared.fit_warnings import warn_if_clusters_follow_absence, warn_if_one_view_decides
from kernelweave.estimators.shared.models import CenterModel, ObservedCenters
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.estimators.shared.runs import kept_run, run_starts
from kernelweave.estimators.shared.single_kernel import why_without_distances
from kernelweave.estimators.shared.view_kernels import (
    FittedViewKernels,
    SummedKernels,
    WeightedViewKernels,
    fit_view_kernels,
    normalized_views,
    read_kernel_views,
    set_view_kernel_tags,
    sum_view_kernels,
)
from kernelweave.estimators.shared.view_weights import (
    Exponent,
    StartWeights,
    choose_exponent,
    kernel_coefficients,
    shares_of,
    start_weights,
)
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.foundation.memory import PASSING, matrices_mib
from kernelweave.foundation.progress import Meter, track
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context, renamed_parameters
from kernelweave.foundation.threads import parallel_map
from kernelweave.inputs import Views, check_cluster_count, read_labels, read_weights, takes_missing_cells
from kernelweave.kernels.dense import DenseCross, DenseKernel
from kernelweave.kernels.observed_views import AveragedDistances, ObservedViews
from kernelweave.kernels.operator import KernelOperator, entries_within
from kernelweave.kernels.spec.fitting import Storage
from kernelweave.kernels.weighted_sum import MultiViewKernel, merged_graph
from kernelweave.solvers.kmeans.global_search import global_kernel_kmeans
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers.kmeans.masked_multi_view import (
    extended_observed_labels,
    masked_multi_view_kernel_kmeans,
)
from kernelweave.solvers.kmeans.multi_view_kernel_kmeans import (
    MultiViewDescent,
    multi_view_kernel_kmeans,
)
from kernelweave.solvers.kmeans.starts import extended_labels, start_labels
from kernelweave.solvers.shared.best_run import best_of
from kernelweave.solvers.shared.exponent import Trial

SEARCHES = {"global_fast": "fast", "global_exact": "exact", "global_exemplars": "exemplars"}
DRAWN = ("k-means++", "random", "random_partition")
GRAPH = "graph"
#: The search, the default, that the clusters of a graph stand for where samples are absent from views.
GRAPH_INSTEAD = "global_fast"
# Starts on each subset of the samples that p="auto" looks at.
DRAWS = 10
# The share of the memory left by the kernels that the kernel of a search may take.
SEARCHED = 0.8


class MultiViewKernelKMeans(CenterClusterer):
    """Multi-view kernel k-means (MVKKM): one clustering of several views, and a weight for each of them.

    Minimises J = sum_v w_v^p D_v over partitions and view weights, D_v the kernel k-means objective in view v and the
    weights a distribution: kernel k-means on the sum of the kernels w_v^p K_v. A view in which the clusters are tight
    gets a large weight. Use it when the same samples are described in several ways (text and links, several
    descriptors, omics) that need not be equally good.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    p : float or "auto", default=2.0
        Exponent of the weights, at least 1. 1 keeps only one view, larger values make weights more similar; 1.5 and
        2 did best in the source. ``"auto"`` takes the exponent whose clusters are most stable under resampling, and the
        largest one in case of ties.
    missing : {"error", "drop", "mean", "median", "knn"}, default="error"
        How to treat NaN cells. ``"error"`` refuses them, ``"drop"`` removes these samples from the view, and the other
        options fill them from the training samples, as scikit-learn's imputers do. A row that is NaN throughout does
        not count as missing cells: the sample is absent from this view, and costs are summed over the others.
    view_weights : {"learned", "uniform"} or array-like or dict, default="learned"
        Whether view weights are learned, equal, or fixed at these values (scaled to add up to 1).
    init_view_weights : array-like or dict, default=None
        Weights that learning starts from, if something is known about the views; None means equal weights.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    kernel : str, kernel object or callable, list or dict, default="rbf"
        Kernel of all views, as in :class:`KernelKMeans`, or one per view.
    kernel_params : dict, or list or dict of dicts, default=None
        Parameters of named kernels; a dict whose keys are the names of the views gives one for each.
    normalize : bool, default=True
        Divide every kernel by the mean squared distance of the samples in its feature space. Without it, views with
        large values lose their weight for that reason alone.
    init : {"global_fast", "global_exact", "global_exemplars", "graph", "k-means++", "random", "random_partition"} or \
array of shape (n_samples,), default="global_fast"
        Initialisation: global kernel k-means on the weighted sum of the views (``"global_exact"`` is more expensive and
        often better), the clusters of the fused neighbour graph (see :class:`GraphFusionClustering`; it ignores sample
        weights), centres drawn far apart, random samples as centres, random labels, or given labels. If samples are
        absent from views, ``"global_fast"`` means ``"graph"``, which did far better there, and the others use
        distances averaged over the views that two samples have in common.
    n_init : int, default=10
        Number of random starts; the run with the lowest objective is kept. With ``"global_fast"``, which can
        end in poor clusters where there are many features, the search counts as one of them and the others are kernel
        k-means from centres drawn far apart; the best of their partitions is the start. 1 means the search alone. With
        ``"graph"`` there is only one start.
    init_size : int, default=5000
        Largest number of samples that global search uses (and no more than a stored kernel within ``memory_limit`` can
        hold), drawn at random if there are more; the others start in the cluster of the nearest centre. Graph kernels
        are always searched in full.
    max_iter : int, default=300
        Maximum number of outer iterations, and of iterations of kernel k-means within each.
    tol : float, default=0.0
        The run ends when an iteration lowers the objective by at most ``tol`` times its value. With 0 it continues
        until neither labels nor weights change. The published results of the authors' code correspond to 1e-4.
    approximation : {"nystroem", "random_features"}, default=None
        Approximate every kernel by inner products of ``n_components`` explicit features, for very many samples.
    n_components : int, default=200
        Number of features of the approximation, in each view.
    storage : {"auto", "dense", "blockwise"}, default="auto"
        As in :class:`KernelKMeans`, for every view.
    memory_limit : float, default=2048
        Memory in MiB that the stored kernel matrices of all views may take together.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error. Requires an integer ``random_state``.
    random_state : int, RandomState instance or None, default=None
        Seed for random starts, for the samples of a global search beyond ``init_size``, and for ``p="auto"``. The same
        seed gives the same labels with any number of threads. Runs beside a global search are the same without it.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, 0..n_clusters-1.
    view_weights_ : ndarray of shape (n_views,)
        Weights of the views; they add up to 1.
    kernel_coefficients_ : ndarray of shape (n_views,)
        Coefficients of the kernels in the sum: w_v^p scaled to add up to 1.
    view_scatters_ : ndarray of shape (n_views,)
        D_v of the clusters, after normalisation; per unit of the weight of the view's samples where some are absent.
    view_names_ : list of str
        Names of the views.
    p_ : float
        The exponent used; infinity stands for equal weights, which ``p="auto"`` can choose.
    p_path_ : dict of str to ndarray
        With ``p="auto"``: the exponents tried (``"p"``) and their ``"stability"``.
    neighbor_recall_ : ndarray of shape (n_views,)
        Share of the nearest neighbours that the search of ``kernel="nearest_neighbors"`` found in each view, below 1
        only for ``"neighbor_search": "approximate"`` in ``kernel_params``; NaN for other kernels.
    inertia_, objective_ : float
        J at the end; it is minimised.
    objective_path_ : ndarray
        J at the start and after every outer iteration; it never increases.
    cluster_variances_ : ndarray of shape (n_clusters,)
        Contribution of every cluster to the objective (sums, not means).
    n_iter_ : int
        Number of outer iterations of the best run.
    converged_ : bool
        Whether the best run converged before ``max_iter``.
    observed_ : ndarray of shape (n_samples, n_views), bool
        Which samples each view had.
    communication_ : dict
        Data transferred in a fit of tables in blocks (Dask, Zarr, mapped files): ``"rounds"`` to all workers,
        ``"bytes_sent"``, ``"bytes_received"``, ``"bytes_of_a_round"`` (the median), ``"blocks"``, ``"workers"`` and
        ``"workers_lost"``, those that died during the fit. Absent after fits in memory.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a table with string column names.

    See Also
    --------
    MultiViewSpectralClustering : The same objective, relaxed.
    MultiViewConvexMixture : View weights in a mixture model.

    Notes
    -----
    Cost: that of :class:`KernelKMeans` on each view once. Sums of every view are kept, so that new weights need no pass
    over the data: O(n d k) per iteration for linear kernels of d columns in all, and only the rows of samples that move
    for others. Global search adds, for ``"global_fast"``, n_clusters passes over the kernels of ``init_size`` samples.
    Memory: one copy of all features (linear), or V stored kernels, and O(V k n); the weighted sum is never formed,
    except among the samples of an exact search.

    Where samples are absent from views, J = sum_v w_v^p D_v / n_v, with D_v over the n_v samples that view v has (their
    weights, where there are any): kernels are fitted, centred and normalised on these only, and nothing is filled in.
    A cluster that contains none of them has the mean of the view as its centre there. New samples may also lack views;
    they go where they cost least over the views they have, and ``transform`` returns the roots of these costs. This
    adds a pass over the kernels per outer iteration, and k n_v numbers per view. A view with hardly more samples than
    clusters has no scatter left and takes all the weight; leave it out.

    If a kernel is not positive semidefinite, D_v of its view can be negative; the view then takes all the weight, since
    that is where the minimum lies, and a :class:`kernelweave.NotPSDWarning` is issued.

    Source: PhD 4.2, (4.4)-(4.10); G. Tzortzis and A. Likas, "Kernel-based weighted multi-view clustering", ICDM 2012.

    Examples
    --------
    >>> from kernelweave import MultiViewKernelKMeans
    >>> from kernelweave.datasets import make_corrupted_views
    >>> data = make_corrupted_views(3, 1, n_samples=210, n_corrupted=15, random_state=0)
    >>> model = MultiViewKernelKMeans(3, kernel="linear").fit(data.views)
    >>> int(model.view_weights_.argmin()) == 3  # the last view is noise
    True
    >>> model.predict({name: view[:4] for name, view in data.views.items()}).tolist() == model.labels_[:4].tolist()
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's convention
        **view_rules("n_clusters", "p", "missing", "view_weights", "init_view_weights", "views"),
        **view_rules("kernel", "kernel_params"),
        **view_rules("n_init", "max_iter", "tol", "approximation", "n_components", "storage", "memory_limit"),
        **view_rules("checkpoint", "random_state", "verbose"),
        "normalize": ["boolean"],
        "init": [StrOptions({*SEARCHES, *DRAWN, GRAPH}), "array-like"],
        "init_size": [Interval(Integral, 1, None, closed="left")],
    }

    @renamed_parameters(weights="use view_weights, and init_view_weights for what learning starts from")
    def __init__(
        self,
        n_clusters: int = 8,
        *,
        p: Any = 2.0,
        missing: str = "error",
        view_weights: Any = "learned",
        init_view_weights: Any = None,
        views: Any = None,
        kernel: Any = "rbf",
        kernel_params: Any = None,
        normalize: bool = True,
        init: Any = "global_fast",
        n_init: int = 10,
        init_size: int = 5000,
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
        self.p = p
        self.missing = missing
        self.view_weights = view_weights
        self.init_view_weights = init_view_weights
        self.views = views
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.normalize = normalize
        self.init = init
        self.n_init = n_init
        self.init_size = init_size
        self.max_iter = max_iter
        self.tol = tol
        self.approximation = approximation
        self.n_components = n_components
        self.storage = storage
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    _takes_absent = True
    _keeps_float32 = True
    _takes_blocks = True
    _takes_device = True
    _compares_by_kernel = True

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MultiViewKernelKMeans":
        """Cluster the samples and weigh the views.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``. Kernel matrices if ``kernel="precomputed"``. A row of NaN means that the sample
            is absent from the view (in a kernel matrix, its row and column).
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; a sample of weight 2 counts as two equal samples, and one of weight 0 only gets a label.

        Returns
        -------
        self : MultiViewKernelKMeans
            The fitted estimator.
        """
        views = placed_views(self, X) if is_elsewhere(self, X) else read_kernel_views(self, X, reset=True)
        with letting_go(views):
            self._fit(views, X, y, sample_weight)
        return self

    def _fit(self, views: Views, X: Any, y: Any, sample_weight: Any) -> None:
        """Cluster views that were read."""
        weights = read_weights(sample_weight, views.n_samples)
        check_cluster_count(self.n_clusters, weights)
        start = start_weights(self.view_weights, self.init_view_weights, views.names)
        keep_run(self, views, weights)
        graph = self._graph_start(views)
        fitted = self._fit_kernels(views, weights)
        self.neighbor_recall_ = fitted.neighbor_recalls
        if views.observed is not None:
            self._fit_observed(fitted, views, weights, start, graph, X, y)
            return
        summed = sum_view_kernels(
            fitted, weights, normalize=self.normalize, storage=self.storage, memory_limit=self.memory_limit
        )
        op = summed.operator
        p = self._exponent(
            start,
            lambda chosen, rng: self._trial(op.take(chosen), weights[chosen], start.values, rng),
            weights,
        )
        best = best_of(self._runs(summed, graph, weights, start, p.value, X, y))
        kernels, labels, known = summed.at_means(best.labels, weights, best.totals)
        kernel = WeightedViewKernels(kernels, best.view_weights**p.power)
        self._model = CenterModel(kernel, labels, known, best.totals, best.norms, view_norms=best.view_norms)
        self._store_views(best, p)
        self._store_run(best)
        store_communication(self, op)

    def _fit_kernels(self, views: Views, weights: Floats) -> FittedViewKernels:
        return fit_view_kernels(
            views,
            self.kernel,
            self.kernel_params,
            centre_features=True,
            weights=weights,
            approximation=self.approximation,
            n_components=self.n_components,
            random_state=self.random_state,
            memory_limit=self.memory_limit,
            side_by_side=True,
        )

    def _store_views(self, best: MultiViewDescent, p: Exponent) -> None:
        """Store what the best run says about the views."""
        self.view_weights_ = best.view_weights
        self.view_scatters_ = best.view_scatters
        self.kernel_coefficients_ = kernel_coefficients(best.view_weights, p)
        self.p_ = p.value
        self.__dict__.pop("p_path_", None)
        if p.path is not None:
            self.p_path_ = p.path
        if isinstance(self.view_weights, str):
            warn_if_one_view_decides(self.view_names_, best.view_weights, best.view_scatters)

    def _runs(
        self,
        summed: SummedKernels,
        graph: Ints | None,
        weights: Floats,
        first: StartWeights,
        p: float,
        X: Any,
        y: Any,
    ) -> Iterator[MultiViewDescent]:
        """Return one descent per start; ``graph`` are labels of the start from the graph, None with other starts."""
        options = self._options(first, p)
        room = max(summed.room, PASSING * self.memory_limit)  # a search among few samples is better than none
        op = summed.operator.with_weights(first.values ** (1.0 if np.isinf(p) else p))
        if isinstance(self.init, str) and self.init in DRAWN:

            def drawn(rng: np.random.Generator, keeper: Keeper) -> MultiViewDescent:
                labels = start_labels(op, self.init, weights, self.n_clusters, rng)
                return multi_view_kernel_kmeans(op, labels, weights, keeper=keeper, **options)

            yield from run_starts(self, op, drawn, streams(self.random_state, self.n_init), X, y, MultiViewDescent)
            return

        def first_labels() -> Ints:
            if isinstance(self.init, str):
                return self._search(op, weights, room, X, y) if graph is None else graph
            return read_labels(self.init, len(weights), self.n_clusters)

        labels = self._keeper.part("search").once(np.ndarray, first_labels)
        meter = Meter(self, "steps")
        yield multi_view_kernel_kmeans(op, labels, weights, keeper=self._keeper.part("run"), on_step=meter, **options)
        meter.close()

    def _options(self, first: StartWeights, p: float) -> dict[str, Any]:
        """Return what a run of multi-view kernel k-means is told besides where it starts."""
        bounds = {"max_iter": self.max_iter, "max_steps": self.max_iter, "tol": self.tol}
        weights = {"p": p, "view_weights": first.values, "learned": first.learned}
        return {"n_clusters": self.n_clusters} | weights | bounds

    def _graph_start(self, views: Views) -> Ints | None:
        """Return the clusters of the views' fused neighbour graph, None where ``init`` does not ask for them.

        They are found before there are kernels, which may take all of the limit.
        """
        asked = self.init if isinstance(self.init, str) else ""
        if asked != GRAPH and (asked != GRAPH_INSTEAD or views.observed is None):
            return None

        def labels() -> Ints:
            compared = views_for_graphs(views, self.kernel, self.kernel_params, self.memory_limit)
            return graph_labels(*compared, self.n_clusters, self.random_state, self.memory_limit)

        return self._keeper.part("search").once(np.ndarray, labels)

    def _search(self, op: MultiViewKernel, weights: Floats, room: float, X: Any, y: Any) -> Ints:
        """Return the labels of global kernel k-means on the weighted sum, or on a subset extended to all samples."""
        how = SEARCHES[self.init]
        searched, chosen = self._searched(op, weights, how, room)
        chosen_weights = weights[chosen]
        matrix = searched.stored_matrix() if searched is not op else None
        taken = 0 if matrix is None else matrix.nbytes / 2**20
        best = self._global(searched, chosen_weights, how, max(room - taken, PASSING * room), X, y)
        if how == "fast":
            seed = 0 if self.random_state is None else self.random_state
            rngs = streams(seed, self.n_init - 1)
            best = best_of([best, *self._drawn(searched, chosen_weights, rngs, self._search_keeper(searched))])
        if len(chosen) == len(weights):
            return best.labels
        return extended_labels(op, best.labels, chosen, weights, self.n_clusters)

    def _global(self, op: KernelOperator, weights: Floats, how: str, room: float, X: Any, y: Any) -> Descent:
        """Return the end of a global search; ``room`` is what it may store, in MiB."""
        path = global_kernel_kmeans(
            op,
            weights,
            n_clusters=self.n_clusters,
            how=how,  # type: ignore[arg-type]
            n_exemplars=min(2 * self.n_clusters, int(np.count_nonzero(weights))),
            max_iter=self.max_iter,
            memory_limit=room,
            keeper=self._search_keeper(op),
            on_stage=lambda stages: track(self, stages, total=max(0, self.n_clusters - 1), what="clusters", X=X, y=y),
        )
        return path.stages[-1]

    def _search_keeper(self, op: KernelOperator) -> Keeper:
        """Return the keeper of a search; another ``memory_limit`` may lead to one among other samples."""
        return self._keeper.part("search").part(f"{op.n_samples} samples")

    def _searched(self, op: MultiViewKernel, weights: Floats, how: str, room: float) -> tuple[KernelOperator, Ints]:
        """Return the kernel that a global search works on, and the samples it holds."""
        everyone = np.arange(len(weights))
        graph = merged_graph(op)
        if graph is not None:
            return graph, everyone
        size = self.init_size if op.explicit_features else min(self.init_size, _stored_samples(SEARCHED * room))
        chosen = self._search_samples(weights, size)
        if np.count_nonzero(weights) <= size and how != "exact":
            # Samples that are elsewhere are few enough to be searched here.
            return (op.take(everyone) if op.backend.one_run_at_a_time else op), everyone
        if op.explicit_features and how != "exact":
            return op.take(chosen), chosen
        return DenseKernel(_block(op, chosen), psd=op.psd), chosen

    def _search_samples(self, weights: Floats, size: int) -> Ints:
        """Return the samples that a start is sought among: all, or so many drawn at random."""
        usable = np.flatnonzero(weights > 0)
        if len(usable) <= size:
            return np.arange(len(weights))
        rng = streams(self.random_state, 1, "search samples")[0]
        return np.sort(rng.choice(usable, max(size, self.n_clusters), replace=False))

    def _drawn(
        self,
        op: KernelOperator,
        weights: Floats,
        rngs: Sequence[np.random.Generator],
        keeper: Keeper = NOTHING,
    ) -> Iterator[Descent]:
        """Yield runs of kernel k-means from centres drawn far apart."""
        bounds: dict[str, Any] = {"n_clusters": self.n_clusters, "max_iter": self.max_iter}

        def run(rng: np.random.Generator, part: Keeper) -> Descent:
            start = start_labels(op, "k-means++", weights, self.n_clusters, rng)
            return kernel_kmeans(op, start, weights, keeper=part, **bounds)

        each = map if op.backend.one_run_at_a_time else parallel_map
        return each(kept_run(keeper, run, Descent), list(enumerate(rngs)))

    def _exponent(self, start: StartWeights, trial_of: Callable[..., Trial], weights: Floats) -> Exponent:
        """Return the exponent of the view weights."""
        choices = (weights, self.n_clusters, self.random_state)
        part = self._keeper.part("exponent")
        return part.once(Exponent, lambda: choose_exponent(self.p, start, trial_of, *choices))

    def _trial(self, op: MultiViewKernel, weights: Floats, first: Floats, rng: np.random.Generator) -> Trial:
        """Return what clusters samples with exponents that ``p="auto"`` tries, all from one start."""
        start = best_of(self._drawn(op.with_weights(first), weights, rng.spawn(DRAWS))).labels
        options: dict[str, Any] = {"view_weights": first, "max_iter": self.max_iter, "max_steps": self.max_iter}

        def run(p: float) -> Ints:
            return multi_view_kernel_kmeans(op, start, weights, n_clusters=self.n_clusters, p=p, **options).labels

        return lambda exponents: list(parallel_map(run, exponents))

    # --- samples that are absent from some views ----------------------------------------------------------------------

    def _fit_observed(
        self,
        fitted: FittedViewKernels,
        views: Views,
        weights: Floats,
        start: StartWeights,
        graph: Ints | None,
        X: Any,
        y: Any,
    ) -> None:
        """Cluster samples over the views that each is in."""
        kernels = normalized_views(
            fitted, views, weights, normalize=self.normalize, storage=self.storage, memory_limit=self.memory_limit
        )
        among = kernels.among
        p = self._exponent(
            start,
            lambda chosen, rng: self._observed_trial(among.take(chosen), weights[chosen], start.values, rng),
            weights,
        )
        room = max(kernels.room, PASSING * self.memory_limit)  # a search among few samples is better than none
        best = best_of(self._observed_runs(among, graph, weights, start, p, room, X, y))
        prices = best.view_weights**p.power / among.totals(weights)
        self._model = ObservedCenters(
            kernels.new_samples, among.observed, best.labels, weights, prices, best.view_norms
        )
        self._store_views(best, p)
        self._store_run(best)
        warn_if_clusters_follow_absence(best.labels, views.observed, 0)

    def _observed_runs(
        self,
        among: ObservedViews,
        graph: Ints | None,
        weights: Floats,
        first: StartWeights,
        p: Exponent,
        room: float,
        X: Any,
        y: Any,
    ) -> Iterator[MultiViewDescent]:
        """Return one descent per start."""
        options = self._options(first, p.value)
        coefficients = first.values**p.power
        if isinstance(self.init, str) and self.init in DRAWN:
            chosen = self._search_samples(weights, _stored_samples(self.memory_limit))
            near = self._averaged(among, coefficients, chosen, room)

            def drawn(rng: np.random.Generator, keeper: Keeper) -> MultiViewDescent:
                known = start_labels(near, self.init, weights[chosen], self.n_clusters, rng)
                labels = extended_observed_labels(among, known, chosen, weights, self.n_clusters, coefficients)
                return masked_multi_view_kernel_kmeans(among, labels, weights, keeper=keeper, **options)

            starts = streams(self.random_state, self.n_init)
            yield from run_starts(self, among.operators[0], drawn, starts, X, y, MultiViewDescent)
            return

        def first_labels() -> Ints:
            if not isinstance(self.init, str):
                return read_labels(self.init, len(weights), self.n_clusters)
            if graph is not None:
                return graph
            chosen = self._search_samples(weights, min(self.init_size, _stored_samples(SEARCHED * room)))
            near = self._averaged(among, coefficients, chosen, room)
            left = max(room - matrices_mib(1, len(chosen)), PASSING * self.memory_limit)
            known = self._global(near, weights[chosen], SEARCHES[self.init], left, X, y).labels
            return extended_observed_labels(among, known, chosen, weights, self.n_clusters, coefficients)

        labels = self._keeper.part("search").once(np.ndarray, first_labels)
        meter = Meter(self, "steps")
        steps: dict[str, Any] = {"keeper": self._keeper.part("run"), "on_step": meter}
        yield masked_multi_view_kernel_kmeans(among, labels, weights, **steps, **options)
        meter.close()

    def _averaged(self, among: ObservedViews, coefficients: Floats, chosen: Ints, room: float) -> KernelOperator:
        """Return the distances that a start is sought by, stored where ``room`` MiB allow for it."""
        held = entries_within(PASSING * self.memory_limit)
        near = AveragedDistances(among, coefficients, chosen, held)
        return near.stored() if matrices_mib(1, len(chosen)) <= SEARCHED * room else near

    def _observed_trial(self, among: ObservedViews, weights: Floats, first: Floats, rng: np.random.Generator) -> Trial:
        """Return what clusters samples with exponents that ``p="auto"`` tries, all from one start."""
        telling = among.telling(weights, self.n_clusters)
        among = among.only(telling)
        first = shares_of(first, telling)
        near = AveragedDistances(among, first, held=entries_within(PASSING * self.memory_limit)).stored()
        start = best_of(self._drawn(near, weights, rng.spawn(DRAWS))).labels
        options: dict[str, Any] = {"view_weights": first, "max_iter": self.max_iter, "max_steps": self.max_iter}

        def run(p: float) -> Ints:
            result = masked_multi_view_kernel_kmeans(among, start, weights, n_clusters=self.n_clusters, p=p, **options)
            return result.labels

        return lambda exponents: list(parallel_map(run, exponents))

    # --- new samples --------------------------------------------------------------------------------------------------

    def _read_new(self, X: Any) -> Views:
        return read_kernel_views(self, X, reset=False)

    def _cross(self, X: Any) -> KernelOperator:
        """Return the sum of the kernels between samples and the training samples, which pictures draw.

        Where samples are absent, it is averaged over the views that two have in common; unknown pairs have the mean.
        """
        model: Any = self._model
        views = self._read_new(X)
        if not isinstance(model, ObservedCenters):
            return model.kernel.cross(views)
        averaged = ObservedExtension(
            model.kernels, self.kernel_coefficients_, model.observed, np.empty((len(model.labels), 0)), np.nan
        )
        K = averaged.affinities(views)
        return DenseCross(np.where(np.isnan(K), np.nanmean(K), K))

    def _why_without(self, method: str) -> str | None:
        return None if method == "predict" else why_without_distances(self.kernel)

    def _set_input_tags(self, tags: Any) -> None:
        set_view_kernel_tags(tags, self.kernel, self.views)
        tags.allow_nan = self.missing != "error" or takes_missing_cells(self.kernel)


def _block(op: KernelOperator, chosen: Ints) -> Floats:
    """Return the kernel among chosen samples, some rows at a time: a sum of kernels takes several blocks of a size."""
    K = np.empty((len(chosen), len(chosen)))
    step = max(1, op.held_entries // len(chosen))
    for start in range(0, len(chosen), step):
        K[start : start + step] = op.block(chosen[start : start + step], chosen)
    return K


def _stored_samples(room: float) -> int:
    """Return of how many samples a kernel fits into ``room`` MiB."""
    return max(1, int(np.sqrt(room * 2**20 / 8)))
