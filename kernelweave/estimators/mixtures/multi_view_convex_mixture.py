"""The convex mixture of several views, with or without learned view weights."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import logsumexp

from kernelweave.estimators.mixtures.mixture import MIXTURE_RULES, MixtureEstimator, SettledView, ViewSpec
from kernelweave.foundation.array_types import Floats, Matrix
from kernelweave.foundation.errors import KernelError, ParameterError
from kernelweave.foundation.progress import Meter, track
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import Views, check_cluster_count, per_view, read_view_weights, read_views, read_weights
from kernelweave.kernels.divergences import DIVERGENCES
from kernelweave.kernels.similarities import StackedSimilarities
from kernelweave.kernels.spec.fitting import KERNELS
from kernelweave.solvers.mixtures.priors import Priors, solve_priors
from kernelweave.solvers.mixtures.view_mixture import ViewMixture, solve_view_mixture


class MultiViewConvexMixture(MixtureEstimator):
    """Convex mixture of several views: exemplars that serve all of them, and how far each view can be trusted.

    Every view has its own convex mixture, with its own divergence, and all share one set of priors: an exemplar is a
    sample, in all its views. With ``weighted=False`` all views count alike and the best priors are found for certain.
    With ``weighted=True`` the views are components of a mixture themselves; their weights are learned, noisy views
    get small ones, and the likelihood reaches a local maximum. Such a weight says how much likelier a view makes the
    samples than the other views do, which compares views of like dimension and scale. With one view both
    are :class:`ConvexMixture`.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters: that many samples of largest prior become exemplars. None keeps every sample whose prior is
        above zero.
    weighted : bool, default=True
        Whether the weights of the views are learned.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    divergence : str, list or dict, default="sqeuclidean"
        As in :class:`ConvexMixture`, one for all views or one per view; precomputed ones must be finite here.
    beta : float or "auto", list or dict, default="auto"
        Sharpness of the components, for all views or per view.
    beta_scale : float, default=1.0
        Factor of every beta.
    smoothing : float, default=0.0
        As in :class:`ConvexMixture`; views with kernels or given divergences have no components to move and stay.
    kernel : str, kernel object or callable, list or dict, default="rbf"
        Kernel of views with ``divergence="kernel"``.
    kernel_params : dict, or list or dict of dicts, default=None
        Parameters of named kernels; a dict whose keys are the names of the views gives one for each.
    view_weights : list or dict, default=None
        First view weights of ``weighted=True``, for what is known of the views beforehand; None is equal weights.
    normalizer : {"gaussian"} or None, default=None
        Whether densities of different views are compared as such (``"gaussian"``: divided by (pi / beta)^(d / 2), for
        squared Euclidean divergences) or by exp(-beta d) alone, as in the experiments of the source.
    solver : {"auto", "newton", "em"}, default="auto"
        How priors are found, as in :class:`ConvexMixture`; with ``weighted=True`` within each step.
    tol : float or None, default=None
        Optimality gap of ``weighted=False``, by default 1e-6. With ``weighted=True``, the rise of the mean
        log-likelihood in a step at which it ends, by default 1e-4: noisy views have lost their weight by then, and the
        slow drift apart of equally good views has not begun. The source's figures belong to about 0.015.
    max_iter : int, default=5000
        Most steps.
    refine : {"kernel_kmeans"} or None, default=None
        Run kernel k-means from the labels, on the sum of the views' kernels times the view weights.
    memory_limit : float, default=2048
        MiB the similarities of one view may take; beyond it they are computed again at every step.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample: the position of its exemplar in ``exemplar_indices_``.
    exemplar_indices_ : ndarray of shape (n_clusters,)
        Exemplars, largest prior first. Samples equal in every view count as one.
    priors_ : ndarray of shape (n_samples,)
        Priors of all samples; they add up to 1.
    view_weights_ : ndarray of shape (n_views,)
        Weights of the views; they add up to 1, and are equal with ``weighted=False``.
    view_names_ : list of str
        Names of the views.
    betas_ : ndarray of shape (n_views,)
        The sharpness used in each view.
    log_likelihood_, objective_ : float
        Mean log-likelihood; with ``weighted=False`` also the mean over the views.
    objective_path_ : ndarray
        Its value at the start and after every step; it never falls.
    optimality_gap_ : float
        With ``weighted=False``: no priors have a log-likelihood larger by more than this. With ``weighted=True``: the
        same for the priors of the last step, given the views' posteriors.
    n_iter_ : int
        Steps taken.
    converged_ : bool
        Whether ``tol`` was met before ``max_iter``.
    inertia_ : float
        Objective of kernel k-means, with ``refine``.
    warnings_ : tuple of str
        Warnings of the fit, each once; empty where there were none.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, where X was a table with string column names.

    Notes
    -----
    Cost: as :class:`ConvexMixture` for the views one below the other, V n rows; with ``weighted=True`` that for every
    step of an outer loop, each from where the last one ended. Memory: 8 V n^2 bytes or, beyond ``memory_limit``,
    O(V n).

    Source: PhD 3.2 and 3.3, Alg. 3.1; G. Tzortzis and A. Likas, "Multiple view clustering using a weighted combination
    of exemplar-based mixture models", IEEE Transactions on Neural Networks 21, 2010.

    Examples
    --------
    >>> from kernelweave import MultiViewConvexMixture
    >>> from kernelweave.datasets import make_corrupted_views
    >>> data = make_corrupted_views(3, 1, n_samples=210, n_corrupted=15, random_state=0)
    >>> model = MultiViewConvexMixture(3).fit(data.views)
    >>> bool(model.view_weights_[-1] < 0.1)  # the last view is noise
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **MIXTURE_RULES,
        "weighted": ["boolean"],
        "views": ["array-like", dict, None],
        "divergence": [StrOptions(set(DIVERGENCES)), list, tuple, dict],
        "beta": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), list, tuple, dict],
        "kernel": [StrOptions(set(KERNELS)), callable, list, tuple, dict],
        "kernel_params": [dict, list, tuple, None],
        "view_weights": ["array-like", dict, None],
        "normalizer": [StrOptions({"gaussian"}), None],
        "tol": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        weighted: bool = True,
        views: Any = None,
        divergence: Any = "sqeuclidean",
        beta: Any = "auto",
        beta_scale: float = 1.0,
        smoothing: float = 0.0,
        kernel: Any = "rbf",
        kernel_params: Any = None,
        view_weights: Any = None,
        normalizer: str | None = None,
        solver: Any = "auto",
        tol: float | None = None,
        max_iter: int = 5000,
        refine: str | None = None,
        memory_limit: float = 2048,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.weighted = weighted
        self.views = views
        self.divergence = divergence
        self.beta = beta
        self.beta_scale = beta_scale
        self.smoothing = smoothing
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.view_weights = view_weights
        self.normalizer = normalizer
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.refine = refine
        self.memory_limit = memory_limit
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        single = self.divergence if isinstance(self.divergence, str) else None
        tags.input_tags.sparse = single in ("sqeuclidean", "kernel")
        given = single == "kernel" and isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise = (given or single == "precomputed") and self.views is None
        tags.input_tags.positive_only = single in ("poisson", "exponential", "bernoulli")
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MultiViewConvexMixture":
        """Find priors, view weights and exemplars.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a sample of weight 2 counts as two equal samples, except that ``beta="auto"`` counts it once.

        Returns
        -------
        self : MultiViewConvexMixture
            The fitted estimator.
        """
        views = read_views(self, X, reset=True)
        weights = read_weights(sample_weight, views.n_samples)
        check_cluster_count(self.n_clusters or 1, weights)
        shares = weights / weights.sum()
        for _ in track(self, [None], total=1, what="mixture", X=X, y=y):
            settled = self._settle(views, shares)
            start = self._first_weights(views.names)
            found = self._solve(settled, shares[shares > 0], start)
        self.betas_ = np.array([view.beta for view in settled])
        n_views = len(settled)
        self.view_weights_ = found.view_weights if isinstance(found, ViewMixture) else np.full(n_views, 1.0 / n_views)
        self._store(settled, found, weights)
        self._refine(settled, weights, self.view_weights_)
        return self

    def _settle(self, views: Views, shares: Floats) -> list[SettledView]:
        """Return every view with its divergence fixed."""
        choices = [
            per_view(getattr(self, name), views.names, name)
            for name in ("divergence", "beta", "kernel", "kernel_params")
        ]
        self._check_smoothing(choices[0])
        settled = []
        for name, block, *chosen in zip(views.names, views.blocks, *choices, strict=True):
            if chosen[0] not in DIVERGENCES:
                known = ", ".join(map(repr, DIVERGENCES))
                raise ParameterError(f"divergence={chosen[0]!r} of view {name!r} is unknown. Choose one of {known}.")
            if self.normalizer is not None and chosen[0] != "sqeuclidean":
                raise ParameterError(
                    f"normalizer={self.normalizer!r} belongs to divergence='sqeuclidean', but view {name!r} has "
                    f"divergence={chosen[0]!r}. Set normalizer=None."
                )
            settled.append(self._settle_view(block, ViewSpec(*chosen), shares, f"view {name!r}"))
        self._log_normalizers = np.array(
            [
                0.0 if self.normalizer is None else 0.5 * view.block.shape[1] * np.log(view.beta / np.pi)
                for view in settled
            ]
        )
        return settled

    def _solve(self, settled: Sequence[SettledView], shares: Floats, start: Floats) -> Priors | ViewMixture:
        meter = Meter(self, "steps")
        parts = [view.similarities for view in settled]
        learned = self.weighted and len(parts) > 1
        tol = (1e-4 if learned else 1e-6) if self.tol is None else self.tol
        options: dict[str, Any] = {"tol": tol, "max_iter": self.max_iter, "on_step": meter}
        if learned:
            found: Any = solve_view_mixture(
                parts, shares, self._log_normalizers, view_weights=start, solver=self.solver, **options
            )
        else:
            rows = np.tile(shares, len(parts)) / len(parts)
            found = solve_priors(StackedSimilarities(parts), rows, solver=self.solver, **options)
        meter.close()
        return found

    def _first_weights(self, names: Sequence[str]) -> Floats:
        if self.view_weights is None:
            return np.full(len(names), 1.0 / len(names))
        return read_view_weights(self.view_weights, names, "view_weights")

    def _blocks(self, X: Any) -> list[Matrix]:
        blocks = list(read_views(self, X, reset=False))
        absolute = all(place.absolute for place in self._placements)
        if self.weighted and len(blocks) > 1 and self.refine is None and not absolute:
            raise KernelError(
                "Rows of precomputed kernels do not hold k(x, x) of new samples, which comparing views with learned "
                "weights needs. Pass features and a kernel name, or use weighted=False or refine='kernel_kmeans'."
            )
        return blocks

    def _log_posteriors(self, gaps: list[Floats]) -> Floats:
        with np.errstate(divide="ignore"):
            logs = [-beta * gap for beta, gap in zip(self._betas, gaps, strict=True)]
            own = np.log(self._exemplar_priors)
            if self.weighted and len(gaps) > 1:
                views = np.log(self.view_weights_) + self._log_normalizers
                joint = np.stack([log[:, self._columns] + view for log, view in zip(logs, views, strict=True)])
            else:
                support = np.log(self.priors_[self._support])
                totals = [logsumexp(log + support, axis=1, keepdims=True) for log in logs]
                totals = [np.where(np.isfinite(total), total, 0.0) for total in totals]
                joint = np.stack([log[:, self._columns] - total for log, total in zip(logs, totals, strict=True)])
            return own + logsumexp(joint, axis=0)
