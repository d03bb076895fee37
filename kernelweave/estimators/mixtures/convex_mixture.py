"""The convex mixture of one view."""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from kernelweave.estimators.mixtures.fitted_views import (
    FittedView,
    ViewChoices,
    check_normalizer,
    check_smoothing,
    fit_view,
)
from kernelweave.estimators.mixtures.mixture_clusterer import MIXTURE_RULES, MixtureClusterer, set_mixture_tags
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.parameters import rules
from kernelweave.foundation.array_types import Array, Floats, Matrix
from kernelweave.foundation.progress import Meter, track
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import check_cluster_count, read_samples, read_weights
from kernelweave.kernels.divergences import DIVERGENCES
from kernelweave.kernels.similarities import Similarities
from kernelweave.solvers.mixtures.priors import Priors, Solver, Stopping, solve_priors


class ConvexMixture(MixtureClusterer):
    """Convex mixture model: exemplars among the samples, without initialisation.

    A mixture with one component at every sample, f_j(x) proportional to exp(-beta d(x, x_j)), of which only the shares
    q_j, the priors, are learned. Their likelihood is concave, so the best priors are certain to be found, and few of
    them stay above zero: these samples are the exemplars. Use it when a cluster should be represented by one of its
    members, when only divergences between samples are known, or to find candidates for other methods.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters: that many samples of largest prior become exemplars. None keeps every sample whose prior is
        above zero; their number then follows from ``beta``.
    divergence : {"sqeuclidean", "bernoulli", "poisson", "exponential", "kernel", "precomputed"}, default="sqeuclidean"
        What d measures: the Bregman divergence of the Gaussian, Bernoulli, Poisson or exponential family; squared
        distances in the feature space of ``kernel``; or X itself, d(x_i, x_j) in row i and column j, which need not be
        symmetric and may hold inf.
    beta : float or "auto", default="auto"
        Sharpness of the components; larger values give more clusters. ``"auto"`` is n^2 log n divided by the sum of all
        divergences.
    beta_scale : float, default=1.0
        Factor that multiplies beta; values around 1 (0.5 to 4) are worth trying.
    smoothing : float, default=0.0
        Moves every component this share of the way to the mean of the samples, for families whose divergence is
        infinite where a component has a 0 or 1 and the sample does not (``"bernoulli"`` and ``"poisson"``).
    normalizer : {"gaussian"} or None, default=None
        Whether ``objective_`` and ``score`` are those of densities (``"gaussian"``: exp(-beta d) is multiplied by
        (beta / pi)^(d / 2), for squared Euclidean divergences), which are comparable between values of beta. It
        has no other effect.
    solver : {"auto", "newton", "em"}, default="auto"
        ``"newton"``: some EM iterations, then second-order steps on the priors above zero. ``"em"``: only EM, with the
        pruning of the source. ``"auto"``: ``"newton"`` if at most 4,000 priors are above zero, otherwise EM.
    stopping : {"gap", "order", "change"}, default="gap"
        When EM stops: at an optimality gap of ``tol``; when the order of the largest ``n_clusters`` priors has been
        stable for ten iterations; or when the priors change by less than ``tol`` in total. Other solvers always stop at
        the gap.
    refine : {"kernel_kmeans"} or None, default=None
        Run kernel k-means from the labels, with a linear kernel or that of ``divergence="kernel"``.
    kernel : str, kernel object or callable, default="rbf"
        Kernel of ``divergence="kernel"``, as in :class:`KernelKMeans`.
    kernel_params : dict, default=None
        Parameters of a named kernel.
    max_iter : int, default=5000
        Maximum number of iterations.
    tol : float, default=1e-6
        See ``stopping``.
    memory_limit : float, default=2048
        Memory in MiB that the n x n similarities may take; beyond it they are recomputed in every iteration.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error.
    random_state : int, RandomState instance or None, default=None
        Not used, since nothing here is random; present for consistency with other estimators.
    verbose : int, default=0
        1 shows a progress bar with the optimality gap.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample: the position of its exemplar in ``exemplar_indices_``.
    exemplar_indices_ : ndarray of shape (n_clusters,)
        Exemplars, largest prior first. Equal samples count as one, with the sum of their priors.
    priors_ : ndarray of shape (n_samples,)
        Priors of all samples; they add up to 1.
    beta_ : float
        The sharpness used.
    log_likelihood_, objective_ : float
        Mean log-likelihood of the samples, which is maximised. Without ``normalizer`` it leaves out the factor of the
        densities, which does not depend on the priors.
    objective_path_ : ndarray
        Its value at the start and after every iteration; it never decreases.
    optimality_gap_ : float
        Certificate of optimality: no priors have a log-likelihood that is larger by more than this.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the stopping rule was met before ``max_iter``.
    inertia_ : float
        Objective of kernel k-means, with ``refine``.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if X had string column names.

    See Also
    --------
    MultiViewConvexMixture : The same for several views, with learned weights.
    GlobalKernelKMeans : ``search="exemplars"`` uses the same priors.

    Notes
    -----
    Cost: O(n^2 d) for the divergences, then O(n^2) per iteration for about 25 iterations, and O(n m^2 + m^3) for each
    of about five second-order steps with m priors above zero. Memory: 8 n^2 bytes, or O(n m) beyond
    ``memory_limit``. A sample of weight 0 is not a component and only gets a label.

    Source: PhD 1.1.5 and 3.1, MSc 3.2.2 and 4.2.3; D. Lashkari and P. Golland, "Convex clustering with exemplar-based
    models", NIPS 2007; second-order steps after Y. Wang, JRSS B 69, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import ConvexMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 0.5, (40, 2)) for centre in ([0, 0], [5, 0], [0, 5])])
    >>> model = ConvexMixture(3).fit(X)
    >>> np.bincount(model.labels_).tolist(), model.optimality_gap_ <= 1e-6
    ([40, 40, 40], True)
    >>> bool(model.predict_proba([[0.1, 0.1]]).max() > 0.9)
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **MIXTURE_RULES,
        **rules("kernel", "kernel_params"),
        "divergence": [StrOptions(set(DIVERGENCES))],
        "beta": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "stopping": [StrOptions({"gap", "order", "change"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    _draws = False

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        divergence: str = "sqeuclidean",
        beta: Any = "auto",
        beta_scale: float = 1.0,
        smoothing: float = 0.0,
        normalizer: str | None = None,
        solver: Solver = "auto",
        stopping: Stopping = "gap",
        refine: str | None = None,
        kernel: Any = "rbf",
        kernel_params: dict[str, Any] | None = None,
        max_iter: int = 5000,
        tol: float = 1e-6,
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.divergence = divergence
        self.beta = beta
        self.beta_scale = beta_scale
        self.smoothing = smoothing
        self.normalizer = normalizer
        self.solver = solver
        self.stopping = stopping
        self.refine = refine
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.max_iter = max_iter
        self.tol = tol
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    _takes_device = True

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "ConvexMixture":
        """Find the priors and the exemplars.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or a matrix of divergences or kernel values; see ``divergence``.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; a sample of weight 2 counts as two equal samples, except that ``beta="auto"`` counts it
            once.

        Returns
        -------
        self : ConvexMixture
            The fitted estimator.
        """
        X = self._read(X, reset=True)
        weights = read_weights(sample_weight, X.shape[0])
        check_cluster_count(self.n_clusters or 1, weights)
        check_smoothing(self.smoothing, [self.divergence])
        check_normalizer(self.normalizer, self.divergence)
        keep_run(self, X, weights)
        shares = weights / weights.sum()
        for _ in track(self, [None], total=1, what="mixture", X=X, y=y):
            view = self._fit_view(X, shares)
            solution = self._solve(view.similarities, shares[shares > 0])
        self.beta_ = view.beta
        self._store_fit([view], solution, weights, view_weights=np.ones(1), mixes_views=True)
        return self

    def _fit_view(self, X: Array, shares: Floats) -> FittedView:
        return fit_view(
            X,
            ViewChoices(self.divergence, self.beta, self.kernel, self.kernel_params),
            shares,
            smoothing=self.smoothing,
            beta_scale=self.beta_scale,
            memory_limit=self.memory_limit,
            name="X",
        )

    def _solve(self, S: Similarities, shares: Floats) -> Priors:
        meter = Meter(self, "steps")
        solution = solve_priors(
            S,
            shares,
            solver=self.solver,
            stopping=self.stopping,
            tol=self.tol,
            max_iter=self.max_iter,
            n_leaders=self.n_clusters or len(shares),
            keeper=self._keeper.part("priors"),
            on_step=meter,
        )
        meter.close()
        return solution

    def _read(self, X: Any, *, reset: bool) -> Array:
        if self.divergence != "precomputed":
            dense = self.divergence not in ("sqeuclidean", "kernel")
            return read_samples(self, X, reset=reset, keep_float32=True, dense=dense)
        # Infinite divergences are allowed; where they are read, other faults are reported.
        dtypes = [np.float64, np.float32]  # blocks of them become float64
        return validate_data(self, X, reset=reset, dtype=dtypes, ensure_all_finite=False, ensure_min_samples=1 + reset)

    def _read_new(self, X: Any) -> list[Matrix]:
        return [self._read(X, reset=False)]

    def _set_input_tags(self, tags: Any) -> None:
        set_mixture_tags(tags, self.divergence, self.kernel)
