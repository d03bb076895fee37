"""The multi-view spectral clustering estimator."""

from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kernelweave.estimators.graph.fusion_views import views_for_graphs
from kernelweave.estimators.graph.structure import settle_n_clusters
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.embedding import (
    EigenvectorExtension,
    EmbeddingClusterer,
    ObservedExtension,
    RelaxedClusters,
    kmeans_labels,
    relaxed_clusters,
    unit_rows,
)
from kernelweave.estimators.shared.fit_warnings import (
    warn_if_clusters_follow_absence,
    warn_if_inexact,
    warn_if_one_view_decides,
    warn_if_unfinished,
)
from kernelweave.estimators.shared.parameters import N_CLUSTERS_OR_AUTO, view_rules
from kernelweave.estimators.shared.view_kernels import (
    FittedViewKernels,
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
from kernelweave.foundation.config import config_context, get_config
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.memory import matrices_mib, room_beside
from kernelweave.foundation.progress import Meter
from kernelweave.foundation.sklearn_internals import StrOptions, fit_context, renamed_parameters
from kernelweave.foundation.threads import parallel_map
from kernelweave.inputs import Views, check_cluster_count, per_view, read_weights, takes_missing_cells
from kernelweave.kernels.dense import DenseCross
from kernelweave.kernels.device import place_graph
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.observed_views import ObservedViews
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import Storage, is_graph_of
from kernelweave.kernels.weighted_sum import MultiViewKernel
from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
from kernelweave.solvers.shared.exponent import Trial
from kernelweave.solvers.spectral.eigenvectors import found_by_features, spectrum, work_mib
from kernelweave.solvers.spectral.masked_multi_view import ObservedSpectrum, masked_multi_view_spectral
from kernelweave.solvers.spectral.multi_view_spectral import MultiViewSpectrum, multi_view_spectral

# On the subsets of the samples that p="auto" looks at: most starts of k-means, the fall of the objective that ends a
# run, and the residual of its eigenvectors; both are far below the differences between subsets. A run that takes more
# steps than this is on its way to a single view, and its clusters hardly change any more: six choose as well as a
# hundred on the multi-view sets of the benchmarks, four do not.
DRAWS = 3
CHOICE_TOL = 1e-3
CHOICE_RESIDUAL = 1e-3
CHOICE_STEPS = 6
# Matrices of the products of all features with each other: as they are, with weights, and what is left of one.
GRAM_MATRICES = 3.0


class MultiViewSpectralClustering(EmbeddingClusterer):
    """Multi-view spectral clustering (MVSpec): leading eigenvectors of a weighted sum of kernels, weights learned.

    Minimises sum_v w_v^p D_v over orthonormal Y and view weights, D_v = tr(K_v) - tr(Y^T K_v Y): the objective of
    :class:`MultiViewKernelKMeans` with the clusters relaxed to any orthonormal matrix. The best ones are the leading
    eigenvectors of the sum of the kernels w_v^p K_v; they are turned into clusters once, at the end, by k-means on
    their rows scaled to unit length. Needs no starting partition. With graphs of neighbours and ``normalize="degrees"``
    it is a normalized cut of several graphs at once.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters, and of eigenvectors; ``"auto"`` chooses it as :class:`GraphFusionClustering` does.
    p : float or "auto", default=2.0
        Exponent of the weights, at least 1. 1 keeps only one view, larger values bring the weights closer together,
        and are safer here than in :class:`MultiViewKernelKMeans`. ``"auto"`` takes the exponent whose clusters are
        most stable under resampling, and the largest one in case of ties.
    missing : {"error", "drop", "mean", "median", "knn"}, default="error"
        How to treat NaN cells. ``"error"`` refuses them, ``"drop"`` removes these samples from the view, and the other
        options fill them from the training samples, as scikit-learn's imputers do. A row that is NaN throughout does
        not count as missing cells: the sample is absent from this view, and the others decide.
    view_weights : {"learned", "uniform"}, array-like or dict, default="learned"
        Whether view weights are learned, equal, or fixed at these numbers, one per view (scaled to add up to 1).
    init_view_weights : array-like or dict, default=None
        Weights that learning starts from; None means equal weights.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    kernel : str, kernel object or callable, list or dict, default="rbf"
        Kernel of all views, as in :class:`KernelKMeans`, or one per view.
    kernel_params : dict, or list or dict of dicts, default=None
        Parameters of named kernels; a dict whose keys are the names of the views gives one for each.
    normalize : bool or "degrees", default=True
        True divides every kernel by the mean squared distance of the samples in its feature space, as in the source.
        ``"degrees"`` divides entries by the square roots of the samples' degrees, as is usual for graphs; D_v is then
        the number of clusters less tr(Y^T K_v Y), the view's relaxed normalized cut.
    n_init : int, default=10
        Number of starts of k-means on the eigenvectors.
    max_iter : int, default=100
        Maximum number of outer iterations.
    tol : float, default=1e-5
        The run ends when an iteration lowers the objective by at most ``tol`` times its value.
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
        Seed for k-means and for ``p="auto"``. The same seed gives the same labels with any number of threads.
    verbose : int, default=0
        1 shows a progress bar.

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
    view_weights_ : ndarray of shape (n_views,)
        Weights of the views; they add up to 1.
    kernel_coefficients_ : ndarray of shape (n_views,)
        Coefficients of the kernels in the sum: w_v^p scaled to add up to 1.
    view_scatters_ : ndarray of shape (n_views,)
        D_v at the end; per unit of the weight of the view's samples where some are absent.
    view_names_ : list of str
        Names of the views.
    p_ : float
        The exponent used; infinity stands for equal weights, which ``p="auto"`` can choose.
    p_path_ : dict of str to ndarray
        With ``p="auto"``: the exponents tried (``"p"``) and their ``"stability"``.
    neighbor_recall_ : ndarray of shape (n_views,)
        Share of the nearest neighbours that the search of ``kernel="nearest_neighbors"`` found in each view, below 1
        only for ``"neighbor_search": "approximate"`` in ``kernel_params``; NaN for other kernels.
    eigenvalues_ : ndarray of shape (n_vectors,)
        Leading eigenvalues of the weighted sum, largest first.
    embedding_ : ndarray of shape (n_samples, n_vectors)
        Eigenvectors, rows scaled to unit length; the input of k-means. ``n_vectors`` is ``n_clusters``, or fewer
        where there are fewer features than that.
    objective_ : float
        The relaxed objective at the end; it is minimised.
    objective_path_ : ndarray
        Its value after every outer iteration; it never increases.
    n_iter_ : int
        Number of outer iterations.
    converged_ : bool
        Whether the run converged before ``max_iter``.
    observed_ : ndarray of shape (n_samples, n_views), bool
        Which samples each view had.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a table with string column names.

    See Also
    --------
    MultiViewKernelKMeans : The same objective without relaxation.
    GraphCut : Normalized cuts of one graph.

    Notes
    -----
    Cost: for linear kernels of d columns in all, O(n d^2) once and O(d^3) per outer iteration; otherwise a few dozen
    products of the kernels with n_clusters vectors per outer iteration, starting from the last eigenvectors. New
    samples are placed by the Nystroem extension of the eigenvectors. Linear kernels are not centred here: the first
    eigenvector then follows the mean of the samples; subtract the mean from every view first if it carries no
    information. A linear view with no more columns than clusters can be explained completely and then takes all the
    weight, for any p; a warning is issued.

    Where samples are absent from views, kernels are fitted and normalised on the samples that each view has. The sum is
    averaged over the views that two samples have in common, at their coefficients, and a pair without a common view
    gets the mean of all others. D_v is that of the eigenvectors' rows that view v has, made orthonormal, divided by the
    weight of its samples (not with ``normalize="degrees"``); a step that would raise the objective is not taken. The
    averaged sum is stored, n^2 numbers within ``memory_limit``, unless all kernels are graphs; new samples may
    also lack views.

    Source: PhD 4.2.2, (4.8)-(4.10); G. Tzortzis and A. Likas, "Kernel-based weighted multi-view clustering", ICDM 2012;
    rounding after A. Ng, M. Jordan and Y. Weiss, NIPS 2001.

    Examples
    --------
    >>> from kernelweave import MultiViewSpectralClustering
    >>> from kernelweave.datasets import make_corrupted_views
    >>> data = make_corrupted_views(3, 1, n_samples=210, n_corrupted=15, random_state=0)
    >>> model = MultiViewSpectralClustering(3, random_state=0).fit(data.views)
    >>> int(model.view_weights_.argmin()) == 3  # the last view is noise
    True
    >>> model.predict({name: view[:4] for name, view in data.views.items()}).tolist() == model.labels_[:4].tolist()
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **view_rules("p", "missing", "view_weights", "init_view_weights", "views", "kernel", "kernel_params"),
        **view_rules("n_init", "max_iter", "tol", "approximation", "n_components", "storage", "memory_limit"),
        **view_rules("checkpoint", "random_state", "verbose"),
        "n_clusters": N_CLUSTERS_OR_AUTO,
        "normalize": ["boolean", StrOptions({"degrees"})],
    }

    @renamed_parameters(weights="use view_weights, and init_view_weights for what learning starts from")
    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        p: Any = 2.0,
        missing: str = "error",
        view_weights: Any = "learned",
        init_view_weights: Any = None,
        views: Any = None,
        kernel: Any = "rbf",
        kernel_params: Any = None,
        normalize: Any = True,
        n_init: int = 10,
        max_iter: int = 100,
        tol: float = 1e-5,
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

    _takes_absent = True
    _keeps_float32 = True
    _takes_device = True
    _compares_by_kernel = True

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MultiViewSpectralClustering":
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
        self : MultiViewSpectralClustering
            The fitted estimator.
        """
        views = read_kernel_views(self, X, reset=True)
        weights = read_weights(sample_weight, views.n_samples)
        keep_run(self, views, weights)
        compared = partial(views_for_graphs, views, self.kernel, self.kernel_params, self.memory_limit)
        k = settle_n_clusters(self, compared, self.memory_limit)
        check_cluster_count(k, weights)
        start = start_weights(self.view_weights, self.init_view_weights, views.names)
        if views.observed is not None:
            self._check_memory(views, k)
        fitted = self._fit_kernels(views, weights)
        self.neighbor_recall_ = fitted.neighbor_recalls
        if views.observed is not None:
            self._fit_observed(fitted, views, weights, start, X, y)
            return self
        limit = room_beside(work_mib(views.n_samples, k), self.memory_limit)
        fitted = fitted.beside_search(views.blocks, self.storage, limit, k, self.memory_limit)
        kernels = sum_view_kernels(fitted, weights, normalize=self.normalize, storage=self.storage, memory_limit=limit)
        op = kernels.operator
        work = np.inf if found_by_features(op) else kernels.room_for_search(k, self.memory_limit, n_blocks=1)
        exponent = self._exponent(
            start,
            lambda samples, rng: self._trial(op.take(samples), weights[samples], start.values, rng),
            weights,
        )
        meter = Meter(self, "steps")
        steps = {"keeper": self._keeper.part("weights"), "on_step": meter}
        first = {"view_weights": start.values, "learned": start.learned}
        relaxed = self._relax(op, weights, p=exponent.value, room=kernels.room, work=work, **first, **steps)
        meter.close()
        self._keep_relaxed(relaxed.result, exponent)
        shares = relaxed.result.view_weights**exponent.power
        embedding = unit_rows(relaxed.embedding)
        sources = relaxed.sources
        del relaxed  # a basis with its products, in whose place samples may come
        extension = EigenvectorExtension(WeightedViewKernels(kernels.new_samples.after_fit(), shares), sources)
        self._round(extension, embedding, X, y, weights=weights, n_clusters=k)
        return self

    def _keep_relaxed(self, result: MultiViewSpectrum, exponent: Exponent) -> None:
        self.view_weights_: Floats = result.view_weights
        self.view_scatters_: Floats = result.view_scatters
        self.kernel_coefficients_: Floats = kernel_coefficients(result.view_weights, exponent)
        self.p_ = exponent.value
        self.__dict__.pop("p_path_", None)  # of an earlier fit
        if exponent.path is not None:
            self.p_path_ = exponent.path
        self.eigenvalues_: Floats = result.eigenvalues
        self.objective_ = result.objective
        self.objective_path_ = np.array(result.history)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        if isinstance(self.view_weights, str):
            warn_if_one_view_decides(self.view_names_, result.view_weights, result.view_scatters)
        warn_if_unfinished(result.converged, self.max_iter, "view weights")
        warn_if_inexact(result.residual)

    def _set_input_tags(self, tags: Any) -> None:
        set_view_kernel_tags(tags, self.kernel, self.views)
        tags.allow_nan = self.missing != "error" or takes_missing_cells(self.kernel)

    def _read_new(self, X: Any) -> Views:
        return read_kernel_views(self, X, reset=False)

    def _fit_kernels(self, views: Views, weights: Floats) -> FittedViewKernels:
        return fit_view_kernels(
            views,
            self.kernel,
            self.kernel_params,
            centre_features=False,
            weights=weights,
            approximation=self.approximation,
            n_components=self.n_components,
            random_state=self.random_state,
            memory_limit=self.memory_limit,
            side_by_side=self.normalize != "degrees",
            gram_matrices=GRAM_MATRICES,
        )

    def _relax(self, op: MultiViewKernel, weights: Floats, **options: Any) -> RelaxedClusters:
        """Return the relaxed clusters; the options are p, the view weights to begin with, and how they are learned."""
        bounds: dict[str, Any] = {"n_vectors": self.n_clusters_, "max_iter": self.max_iter, "tol": self.tol}
        return relaxed_clusters(op, weights, self._totals(op, weights), **bounds, **options)

    def _totals(self, op: MultiViewKernel, weights: Floats) -> Floats:
        """Return t_v, of which a view's D_v is what the eigenvectors leave."""
        if self.normalize == "degrees":
            return np.full(len(op.coefficients), float(self.n_clusters_))
        return op.view_traces(op.backend.array(weights))

    def _exponent(self, start: StartWeights, trial_of: Callable[..., Trial], weights: Floats) -> Exponent:
        """Return the exponent of the view weights."""
        choices = (weights, self.n_clusters_, self.random_state)
        part = self._keeper.part("exponent")
        return part.once(Exponent, lambda: choose_exponent(self.p, start, trial_of, *choices))

    def _choice_ends(self) -> dict[str, Any]:
        """Return when runs end that only say how stable the clusters of an exponent are."""
        return {"max_iter": min(self.max_iter, CHOICE_STEPS), "tol": CHOICE_TOL}

    def _trial(self, op: MultiViewKernel, weights: Floats, start: Floats, rng: np.random.Generator) -> Trial:
        """Return what clusters samples with exponents that ``p="auto"`` tries, all from the first weights."""
        seeds = rng.spawn(min(self.n_init, DRAWS))
        shared = spectrum(op, weights)
        k = self.n_clusters_
        first = shared.leading(start, k, CHOICE_RESIDUAL)
        labels = kmeans_labels(unit_rows(op.backend.host(first.embedding())), weights, k, seeds)
        equal = bool((start == start[0]).all())
        options: dict[str, Any] = {"n_vectors": k, **self._choice_ends()}
        options |= {"view_weights": start, "first": first if equal else None, "residual": CHOICE_RESIDUAL}
        totals = self._totals(op, weights)

        def run(p: float) -> Ints:
            if equal and np.isinf(p):
                return labels  # equal weights stay
            relaxed = multi_view_spectral(shared, totals, p=p, **options)
            rows = FeatureKernel(unit_rows(op.backend.host(relaxed.embedding())))
            return kernel_kmeans(rows, labels, weights, n_clusters=k).labels

        return lambda exponents: list(parallel_map(run, exponents))

    # --- samples that are absent from some views ----------------------------------------------------------------------

    def _fit_observed(
        self, fitted: FittedViewKernels, views: Views, weights: Floats, start: StartWeights, X: Any, y: Any
    ) -> None:
        """Cluster samples over the views that pairs of them have in common."""
        graphs = all(kernel.is_graph for kernel in fitted.kernels)
        device = None if graphs else get_config().device  # a sum of graphs is made on the host, then placed
        limit = room_beside(work_mib(views.n_samples, self.n_clusters_), self.memory_limit)
        limit -= 0.0 if graphs else matrices_mib(1, views.n_samples)
        with config_context(device=device):
            kernels = normalized_views(
                fitted, views, weights, normalize=self.normalize, storage=self.storage, memory_limit=max(0.0, limit)
            )
        among = kernels.among
        exponent = self._exponent(
            start,
            lambda chosen, rng: self._observed_trial(among.take(chosen), weights[chosen], start.values, rng),
            weights,
        )
        meter = Meter(self, "steps")
        steps = {"keeper": self._keeper.part("weights"), "on_step": meter}
        first = {"view_weights": start.values, "learned": start.learned}
        result = self._relax_observed(among, weights, kernels.room, p=exponent.value, **first, **steps)
        meter.close()
        self._keep_relaxed(result, exponent)
        pairs: Any = result.pairs
        coefficients = result.view_weights**exponent.power
        extension = ObservedExtension(kernels.new_samples, coefficients, among.observed, result.sources(), pairs.level)
        embedding = unit_rows(result.embedding())
        self._round(extension, embedding, X, y, weights=weights, n_clusters=self.n_clusters_)
        warn_if_clusters_follow_absence(self.labels_, views.observed, 0)

    def _check_memory(self, views: Views, n_clusters: int) -> None:
        """Refuse sums that cannot be stored beside the search for their eigenvectors."""
        if self._sums_edges(views):
            return
        limit = self.memory_limit

        def needed(n: int) -> float:
            return matrices_mib(1, n) + limit - room_beside(work_mib(n, n_clusters), limit)

        taken = needed(views.n_samples)
        if taken <= limit:
            return
        fitting = bisect_right(range(1, views.n_samples + 1), limit, key=needed)
        size = f"{taken:,.0f}" if taken >= 100 else f"{taken:.3g}"
        raise ParameterError(
            f"memory_limit={limit:g} is too small: where samples are absent from views, the averaged sum of the "
            f"kernels is stored, and with the search for its eigenvectors it takes {size} MiB for "
            f"{views.n_samples:,} samples. Raise memory_limit, take kernel='nearest_neighbors', whose sum keeps the "
            f"edges alone, or fit on a part of the samples and predict the others: {fitting:,} samples would fit."
        )

    def _sums_edges(self, views: Views) -> bool:
        """Whether the kernels of all views are graphs, of which the edges are kept."""
        pairs = zip(views.blocks, per_view(self.kernel, views.names, "kernel"), strict=True)
        return self.approximation is None and all(is_graph_of(block, kernel) for block, kernel in pairs)

    def _relax_observed(
        self, among: ObservedViews, weights: Floats, room: float = np.inf, **options: Any
    ) -> MultiViewSpectrum:
        """Return the relaxed clusters; the options are p, the view weights to begin with, and how they are learned."""
        return masked_multi_view_spectral(
            ObservedSpectrum(among, weights, place_graph, room),
            totals=among.totals(weights),
            by_degrees=self.normalize == "degrees",
            n_vectors=self.n_clusters_,
            **({"max_iter": self.max_iter, "tol": self.tol} | options),
        )

    def _observed_trial(self, among: ObservedViews, weights: Floats, first: Floats, rng: np.random.Generator) -> Trial:
        """Return what clusters samples with exponents that ``p="auto"`` tries."""
        seeds = rng.spawn(min(self.n_init, DRAWS))
        telling = among.telling(weights, self.n_clusters_)
        among = among.only(telling)
        options: dict[str, Any] = {"view_weights": shares_of(first, telling), **self._choice_ends()}

        def run(p: float) -> Ints:
            relaxed = self._relax_observed(among, weights, p=p, **options)
            return kmeans_labels(unit_rows(relaxed.embedding()), weights, self.n_clusters_, seeds)

        return lambda exponents: list(parallel_map(run, exponents))

    def _cross(self, X: Any) -> KernelOperator:
        """Return the sum of the kernels between samples and the training samples, which pictures draw."""
        extension: Any = self._model.extension
        if isinstance(extension, ObservedExtension):
            return DenseCross(extension.affinities(self._read_new(X)))
        return extension.kernel.cross(self._read_new(X))
