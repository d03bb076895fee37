"""The convex mixture of several views, with or without learned view weights."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from kernelweave.estimators.mixtures.fitted_views import (
    FittedView,
    ViewChoices,
    check_normalizer,
    check_smoothing,
    fit_view,
    log_normalizers,
)
from kernelweave.estimators.mixtures.mixture_clusterer import MIXTURE_RULES, MixtureClusterer, set_mixture_tags
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.fit_warnings import warn_if_clusters_follow_absence
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.estimators.shared.view_weights import start_weights
from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.progress import Meter, track
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import Views, check_cluster_count, per_view, read_views, read_weights
from kernelweave.kernels.divergences import DIVERGENCES
from kernelweave.kernels.similarities import StackedSimilarities
from kernelweave.solvers.mixtures.priors import Priors, Solver, solve_priors
from kernelweave.solvers.mixtures.view_mixture import ViewMixture, solve_view_mixture

#: The default of ``tol``: a rise of the mean log-likelihood where view weights are learned, elsewhere a gap.
LEARNED_TOL = 1e-4
FIXED_TOL = 1e-6


class MultiViewConvexMixture(MixtureClusterer):
    """Convex mixture of several views: exemplars that serve all of them, and how far each view can be trusted.

    Every view has its own convex mixture, with its own divergence, and all share one set of priors: an exemplar is a
    sample, in all its views. With ``view_weights="learned"`` the views are components of a mixture themselves; their
    weights are learned, noisy views get small ones, and the likelihood reaches a local maximum. Such a weight says how
    much likelier a view makes the samples than the other views do, which is meaningful for views of similar dimension
    and scale.
    With ``"uniform"`` or fixed weights the mean of the views' log-likelihoods is maximised, and the best priors
    are certain to be found. With one view all variants are :class:`ConvexMixture`.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters: that many samples of largest prior become exemplars. None keeps every sample whose prior is
        above zero.
    weighted : bool or None, default=None
        Equivalent to ``view_weights="learned"`` (True) or ``view_weights="uniform"`` (False). With None,
        ``view_weights`` decides.
    divergence : str, list or dict, default="sqeuclidean"
        As in :class:`ConvexMixture`, one for all views or one per view; precomputed ones must be finite here.
    beta : float or "auto", list or dict, default="auto"
        Sharpness of the components, for all views or per view.
    beta_scale : float, default=1.0
        Factor that multiplies every beta.
    smoothing : float, default=0.0
        As in :class:`ConvexMixture`; views with kernels or precomputed divergences have no components to move and stay.
    normalizer : {"gaussian"} or None, default=None
        Whether densities of different views are compared as such (``"gaussian"``: multiplied by (beta / pi)^(d / 2),
        for squared Euclidean divergences) or by exp(-beta d) alone, as in the experiments of the source.
    solver : {"auto", "newton", "em"}, default="auto"
        How priors are found, as in :class:`ConvexMixture`; with learned view weights within each step.
    refine : {"kernel_kmeans"} or None, default=None
        Run kernel k-means from the labels, on the sum of the views' kernels times the view weights.
    missing : {"error", "drop", "mean", "median", "knn"}, default="error"
        How to treat NaN cells. ``"error"`` refuses them, ``"drop"`` removes these samples from the view, and the other
        options fill them from the training samples, as scikit-learn's imputers do. A row that is NaN throughout does
        not count as missing cells: the sample is absent from this view, and likelihoods are those of the others.
    view_weights : {"learned", "uniform"}, list or dict, default="learned"
        Weights of the views: learned, equal, or fixed, in the order of the views or by name. Fixed ones are scaled to
        add up to 1 and weigh the views' log-likelihoods; equal fixed ones are ``"uniform"``.
    init_view_weights : list or dict, default=None
        Weights that learning starts from, if something is known about the views; None means equal weights.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    kernel : str, kernel object or callable, list or dict, default="rbf"
        Kernel of views with ``divergence="kernel"``.
    kernel_params : dict, or list or dict of dicts, default=None
        Parameters of named kernels; a dict whose keys are the names of the views gives one for each.
    max_iter : int, default=5000
        Maximum number of iterations.
    tol : float or None, default=None
        With learned view weights, the run ends when an iteration raises the mean log-likelihood by less than this, by
        default 1e-4: noisy views have lost their weight by then, and equally good views have not yet begun to drift
        apart. The source's figures correspond to about 0.015. Otherwise the optimality gap, by default 1e-6.
    memory_limit : float, default=2048
        Memory in MiB that the similarities of one view may take; beyond it they are recomputed in every iteration.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error.
    random_state : int, RandomState instance or None, default=None
        Not used, since nothing here is random; present for consistency with other estimators.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample: the position of its exemplar in ``exemplar_indices_``.
    exemplar_indices_ : ndarray of shape (n_clusters,)
        Exemplars, largest prior first. Samples equal in every view, and absent from the same ones, count as one.
    priors_ : ndarray of shape (n_samples,)
        Priors of all samples; they add up to 1.
    view_weights_ : ndarray of shape (n_views,)
        Weights of the views, learned or fixed; they add up to 1.
    view_names_ : list of str
        Names of the views.
    betas_ : ndarray of shape (n_views,)
        The sharpness used in each view.
    log_likelihood_, objective_ : float
        Mean log-likelihood of the samples, which is maximised; without learned view weights also the weighted mean over
        the views. Without ``normalizer`` it leaves out the factors of the densities.
    objective_path_ : ndarray
        Its value at the start and after every iteration; it never decreases.
    optimality_gap_ : float
        No priors have a log-likelihood larger by more than this; with learned view weights the same for the priors of
        the last step at the views' posteriors.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether ``tol`` was met before ``max_iter``.
    inertia_ : float
        Objective of kernel k-means, with ``refine``; per unit of the weight of each view's samples where some are
        absent.
    observed_ : ndarray of shape (n_samples, n_views), bool
        Which samples each view had.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a table with string column names.

    Notes
    -----
    Cost: that of :class:`ConvexMixture` on the stacked views, V n rows; with learned view weights, that per outer
    iteration, each starting from the result of the last. Memory: 8 V n^2 bytes or, beyond ``memory_limit``,
    O(V n).

    Where samples are absent from views, the components of a view are the samples that it has; one that is absent
    explains nothing there, so that exemplars with more views are favoured. Divergences, betas and smoothing come from
    the samples that are there. With learned view weights each sample has the likelihood of its views given which these
    are, log (sum_v w_v Q_v / sum_v w_v) with both sums over its views: no view loses weight for being rare, and a
    sample in one view alone says nothing about the weights. With fixed ones log-likelihoods are added up over the pairs
    of sample and view that are there, which is concave as before, and divided by the sum of their weights. A sample
    joins the exemplar with the largest posterior over the views that both have; one that shares no view with any
    exemplar gets the first cluster, and a warning counts them. New samples may also lack views.

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
        **view_rules("missing", "view_weights", "init_view_weights", "views", "kernel", "kernel_params"),
        "weighted": ["boolean", None],
        "divergence": [StrOptions(set(DIVERGENCES)), list, tuple, dict],
        "beta": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), list, tuple, dict],
        "tol": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        weighted: bool | None = None,
        divergence: Any = "sqeuclidean",
        beta: Any = "auto",
        beta_scale: float = 1.0,
        smoothing: float = 0.0,
        normalizer: str | None = None,
        solver: Solver = "auto",
        refine: str | None = None,
        missing: str = "error",
        view_weights: Any = "learned",
        init_view_weights: Any = None,
        views: Any = None,
        kernel: Any = "rbf",
        kernel_params: Any = None,
        max_iter: int = 5000,
        tol: float | None = None,
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.weighted = weighted
        self.divergence = divergence
        self.beta = beta
        self.beta_scale = beta_scale
        self.smoothing = smoothing
        self.normalizer = normalizer
        self.solver = solver
        self.refine = refine
        self.missing = missing
        self.view_weights = view_weights
        self.init_view_weights = init_view_weights
        self.views = views
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.max_iter = max_iter
        self.tol = tol
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    _takes_absent = True
    _draws = False

    _takes_device = True

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MultiViewConvexMixture":
        """Find priors, view weights and exemplars.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``. A row of NaN is a sample that is absent from the view (in a matrix of divergences
            or kernel values row and column).
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; a sample of weight 2 counts as two equal samples, except that ``beta="auto"`` counts it
            once.

        Returns
        -------
        self : MultiViewConvexMixture
            The fitted estimator.
        """
        views = read_views(self, X, reset=True)
        weights = read_weights(sample_weight, views.n_samples)
        check_cluster_count(self.n_clusters or 1, weights)
        asked_for = _view_weights_asked_for(self.view_weights, self.weighted)
        start = start_weights(asked_for, self.init_view_weights, views.names)
        learned = start.learned and len(views) > 1
        keep_run(self, views, weights)
        shares = weights / weights.sum()
        counted = shares > 0
        observed = None if views.observed is None else views.observed[counted]
        if learned and observed is not None:
            _check_start(start.values, observed, np.flatnonzero(counted), self.init_view_weights)
        for _ in track(self, [None], total=1, what="mixture", X=X, y=y):
            fitted = self._fit_views(views, shares)
            solve = self._learn_view_weights if learned else self._keep_view_weights
            solution, self.view_weights_ = solve(fitted, shares[counted], start.values, observed)
        self.betas_ = np.array([view.beta for view in fitted])
        self._store_fit(fitted, solution, weights, view_weights=self.view_weights_, mixes_views=learned)
        warn_if_clusters_follow_absence(self.labels_, views.observed, 0)
        return self

    def _fit_views(self, views: Views, shares: Floats) -> list[FittedView]:
        """Return every view with its divergence and sharpness fixed."""
        names = ("divergence", "beta", "kernel", "kernel_params")
        choices = [per_view(getattr(self, name), views.names, name) for name in names]
        check_smoothing(self.smoothing, choices[0])
        fitted = []
        for v, (name, block, *chosen) in enumerate(zip(views.names, views.blocks, *choices, strict=True)):
            _check_divergence(chosen[0], name)
            check_normalizer(self.normalizer, chosen[0], f"view {name!r} has ")
            options: dict[str, Any] = {"smoothing": self.smoothing, "beta_scale": self.beta_scale}
            options |= {"memory_limit": self.memory_limit / len(views), "name": f"view {name!r}"}
            if views.observed is not None and not views.observed[:, v].all():
                options["samples"] = views.present(v)
            fitted.append(fit_view(block, ViewChoices(*chosen), shares, **options))
        return fitted

    def _learn_view_weights(
        self, fitted: Sequence[FittedView], shares: Floats, first: Floats, observed: Bools | None
    ) -> tuple[Priors | ViewMixture, Floats]:
        """Return priors and view weights of a mixture of the views, learned from the first weights."""
        meter = Meter(self, "steps")
        solution = solve_view_mixture(
            [view.similarities for view in fitted],
            shares,
            log_normalizers(fitted, self.normalizer),
            view_weights=first,
            observed=observed,
            solver=self.solver,
            tol=LEARNED_TOL if self.tol is None else self.tol,
            max_iter=self.max_iter,
            keeper=self._keeper.part("priors"),
            on_step=meter,
        )
        meter.close()
        return solution, solution.view_weights

    def _keep_view_weights(
        self, fitted: Sequence[FittedView], shares: Floats, view_weights: Floats, observed: Bools | None
    ) -> tuple[Priors | ViewMixture, Floats]:
        """Return the priors that maximise the mean of the views' log-likelihoods, and the view weights as they are."""
        meter = Meter(self, "steps")
        relative = view_weights / view_weights.max()
        solution = solve_priors(
            StackedSimilarities([view.similarities for view in fitted]),
            _row_weights(relative, shares, observed),
            solver=self.solver,
            tol=FIXED_TOL if self.tol is None else self.tol,
            max_iter=self.max_iter,
            keeper=self._keeper.part("priors"),
            on_step=meter,
        )
        meter.close()
        return solution, view_weights

    def _read_new(self, X: Any) -> Views:
        return read_views(self, X, reset=False)

    def _set_input_tags(self, tags: Any) -> None:
        set_mixture_tags(tags, self.divergence, self.kernel, self.views)
        tags.allow_nan = self.missing != "error"


def _row_weights(view_weights: Floats, shares: Floats, observed: Bools | None) -> Floats:
    """Return the weights of samples in views, view after view: those of the pairs that are there add up to 1."""
    if observed is None:
        return np.outer(view_weights, shares).ravel() / view_weights.sum()
    weights = (np.outer(view_weights, shares) * observed.T).ravel()
    return np.asarray(weights / weights.sum())


def _check_start(view_weights: Floats, observed: Bools, samples: Ints, init_view_weights: Any) -> None:
    """Raise where learning starts from weights of zero for all views that some sample is in."""
    lost = ~observed[:, view_weights > 0].any(axis=1)
    if lost.any():
        raise ParameterError(
            f"init_view_weights={init_view_weights!r} gives a weight of 0, which stays 0, to every view that "
            f"{np.count_nonzero(lost)} samples are in (the first is sample {samples[int(np.argmax(lost))]}). Give one "
            "of these views a weight, or leave the samples out."
        )


def _view_weights_asked_for(view_weights: Any, weighted: bool | None) -> Any:
    """Return ``view_weights``, or what ``weighted`` says in its place where the two do not contradict each other."""
    if weighted is None:
        return view_weights
    meant = "learned" if weighted else "uniform"
    if not isinstance(view_weights, str) or view_weights not in ("learned", meant):
        raise ParameterError(
            f"weighted={weighted!r} means view_weights={meant!r}, which contradicts view_weights={view_weights!r}. "
            "Leave weighted out."
        )
    return meant


def _check_divergence(divergence: Any, view: str) -> None:
    if divergence not in DIVERGENCES:
        known = ", ".join(map(repr, DIVERGENCES))
        raise ParameterError(f"divergence={divergence!r} of view {view!r} is unknown. Choose one of {known}.")
