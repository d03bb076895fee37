"""Mixtures of several views that exchange posteriors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.comparators.view_features import (
    VIEW_INITS,
    Origins,
    best_run,
    check_not_negative,
    known_rows,
    moved_back,
    moved_to,
    origins,
    spread_start,
    starting_view,
    weights_of_rows,
)
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.clusterer import Clusterer
from kernelweave.estimators.shared.elsewhere import answers_lazily
from kernelweave.estimators.shared.fit_warnings import (
    warn_if_clusters_follow_absence,
    warn_if_empty,
    warn_if_unfinished,
)
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.estimators.shared.runs import first_labels, label_starts
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.checkpoints import Keeper
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.sklearn_internals import StrOptions, fit_context
from kernelweave.inputs import Views, check_cluster_count, per_view, read_views, read_weights
from kernelweave.kernels.features import FeatureKernel
from kernelweave.solvers.comparators.multi_view_em import (
    COVARIANCES,
    Density,
    ExchangedMixtures,
    GaussianView,
    MultinomialView,
    ViewModel,
    exchange_em,
    likeliest,
    mean_log_likelihood,
    mean_posteriors,
)

#: Kinds of distributions.
DISTRIBUTIONS = ("gaussian", "multinomial")


@dataclass(frozen=True)
class ViewMixtures:
    """The mixture of every view."""

    origins: Origins
    densities: tuple[Density, ...]

    def posteriors(self, views: Views) -> Floats:
        """Return the posteriors of the clusters, averaged over the views that a sample is in."""
        known = known_rows(views)
        blocks = moved_to(known.blocks, self.origins)
        return mean_posteriors(self.densities, blocks, known.samples, views.n_samples)

    def log_likelihood(self, views: Views, weights: Floats) -> float:
        """Return the mean log-likelihood over samples and the views that they are in."""
        known = known_rows(views)
        own = [weights[here] for here in known.samples]
        return mean_log_likelihood(self.densities, moved_to(known.blocks, self.origins), own)


@answers_lazily("predict", "predict_proba")
class MultiViewEM(Clusterer):
    """Multi-view EM of Bickel and Scheffer: views teach each other the posteriors of their mixtures.

    Every view has a mixture. It is fitted to the posteriors that the mixture of another view gives the samples; the
    posteriors of the new mixture go to the next view; and so on in every round. A baseline for methods that weight
    views. With one view it is EM.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, the components of every mixture.
    distribution : {"gaussian", "multinomial"}, or list or dict of them, default="gaussian"
        Distribution of the clusters, for all views or per view: Gaussian without correlations, or multinomial for
        counts, which must not be negative.
    covariance : {"diagonal", "spherical", "shared_diagonal", "shared_spherical"}, default="diagonal"
        Variances of Gaussian clusters: one per feature or one for all features, of each cluster or shared by them.
    missing : {"error", "drop", "mean", "median", "knn"}, default="error"
        How to treat NaN cells. ``"error"`` refuses them, ``"drop"`` removes these samples from the view, and the other
        options fill them from the training samples, as scikit-learn's imputers do. A row that is NaN throughout does
        not count as missing cells: the sample is absent from this view, and its posteriors are those of the others.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    init : {"k-means++", "random"} or array of shape (n_samples,), default="k-means++"
        First partition: that of the first view by samples drawn far apart or at random, or given labels (one run).
        Where samples are absent, it is drawn in the first view that has at least ``n_clusters`` of them; the others
        get posteriors from a view that has them, step by step.
    n_init : int, default=10
        Number of starts; the run with the largest objective is kept.
    max_iter : int, default=200
        Maximum number of rounds of one run.
    tol : float, default=1e-4
        Gain of the objective that counts. A run ends after five rounds without one, with one view after the first.
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
        Cluster of every sample: the largest posterior, averaged over the views that it is in.
    cluster_centers_ : list of ndarray of shape (n_clusters, n_features_v)
        Means of the clusters, view by view; for a multinomial the probabilities of the features.
    cluster_spreads_ : list of ndarray of shape (n_clusters, n_features_v) or None
        Variances of the clusters, view by view; None for a multinomial.
    mixing_weights_ : ndarray of shape (n_views, n_clusters)
        Weights of the components of every mixture.
    view_names_ : list of str
        Names of the views.
    view_weights_ : ndarray of shape (n_views,)
        Equal weights for all views.
    objective_ : float
        Mean log-likelihood over samples and the views that they are in, each mixture fitted to the posteriors of the
        view before; without the multinomial coefficients, which no parameter changes. It is maximised.
    objective_path_ : ndarray
        Its value after every round up to the one kept, which has the largest. With one view it rises; with more it may
        fall.
    n_iter_ : int
        Number of rounds of the best run, including those after the one kept.
    converged_ : bool
        Whether the best run ended because gains were below ``tol`` rather than at ``max_iter``.
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
    MultiViewKMeans : The same exchange with partitions.
    MultiViewConvexMixture : Mixtures of several views with common exemplars and learned view weights.

    Notes
    -----
    Cost: O(n d k) per iteration, where d is the number of features of all views; starts run in parallel. Sparse views
    stay sparse.

    With several views the method does not follow the objective and need not converge (PhD 1.2.3). Variances stay above
    a thousandth of those of the view, so that no cluster shrinks to a point; one average sample is added to every
    multinomial cluster. A cluster that loses all its samples stays empty, with a warning.

    Where samples are absent from views, the mixture of every view is fitted to the samples that it has, and it passes
    their posteriors on. The others keep those of the last view that has them; nothing is filled in. A cluster that none
    of a view's samples has a share in is not in its mixture, so that the view gives it no probability. New samples may
    also lack views.

    Source: PhD 1.2.3; S. Bickel and T. Scheffer, "Multi-view clustering", ICDM 2004. There are two views there; here
    any number, each of which passes its posteriors to the next.

    Examples
    --------
    >>> from kernelweave import MultiViewEM
    >>> from kernelweave.datasets import make_corrupted_views
    >>> data = make_corrupted_views(2, 0, n_samples=210, n_corrupted=0, random_state=0)
    >>> model = MultiViewEM(3, covariance="shared_spherical", random_state=0).fit(data.views)
    >>> model.predict_proba(data.views).shape
    (210, 3)
    """

    _objective = "maximize"

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        "distribution": [StrOptions(set(DISTRIBUTIONS)), list, tuple, dict],
        "covariance": [StrOptions(set(COVARIANCES))],
        **view_rules(
            "n_clusters", "missing", "views", "n_init", "max_iter", "tol", "checkpoint", "random_state", "verbose"
        ),
        "init": [StrOptions(set(VIEW_INITS)), "array-like"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        distribution: Any = "gaussian",
        covariance: str = "diagonal",
        missing: str = "error",
        views: Any = None,
        init: Any = "k-means++",
        n_init: int = 10,
        max_iter: int = 200,
        tol: float = 1e-4,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.distribution = distribution
        self.covariance = covariance
        self.missing = missing
        self.views = views
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    _takes_absent = True

    def _set_input_tags(self, tags: Any) -> None:
        tags.sparse = True
        tags.allow_nan = self.missing != "error"
        tags.positive_only = isinstance(self.distribution, str) and self.distribution == "multinomial"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MultiViewEM":
        """Fit the mixtures.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``. A row of NaN means that the sample is absent from the view.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; a sample of weight 2 counts as two equal samples. One of weight 0 only gets a label.

        Returns
        -------
        self : MultiViewEM
            The fitted estimator.
        """
        views = read_views(self, X, reset=True)
        weights = read_weights(sample_weight, views.n_samples)
        check_cluster_count(self.n_clusters, weights)
        keep_run(self, views, weights)
        known = known_rows(views)
        own = weights_of_rows(views, weights)
        kinds = self._kinds(views.names, known.blocks)
        # Dense Gaussian views are moved to their means for the sake of rounding; counts must stay counts.
        pairs = zip(origins(known.blocks), kinds, strict=True)
        centre = tuple(origin if kind == "gaussian" else None for origin, kind in pairs)
        models = self._models(moved_to(known.blocks, centre), kinds, own)
        v = starting_view(views, own, self.n_clusters) if isinstance(self.init, str) else 0
        drawn = first_labels(FeatureKernel(models[v].start_features()), self.init, own[v], self.n_clusters)
        first = spread_start(drawn, known.samples[v], views.n_samples)
        options: dict[str, Any] = {"n_clusters": self.n_clusters, "max_iter": self.max_iter, "tol": self.tol}

        def run(start: Any, _: Keeper) -> ExchangedMixtures:
            return exchange_em(models, first(start), samples=known.samples, **options)

        starts = label_starts(self.init, self.n_init, self.random_state, views.n_samples, self.n_clusters)
        best = best_run(self, run, starts, X, y, ExchangedMixtures, value=lambda result: -result.objective)
        self._model = ViewMixtures(centre, best.densities)
        self.labels_: Ints = best.labels
        self.cluster_centers_ = moved_back([density.centres for density in best.densities], centre)
        self.cluster_spreads_ = [density.variances for density in best.densities]
        self.mixing_weights_: Floats = np.exp(np.stack([density.log_weights for density in best.densities]))
        self.view_weights_: Floats = np.full(len(views), 1.0 / len(views))
        self.objective_ = best.objective
        self.objective_path_ = np.array(best.history)
        self.n_iter_ = best.n_iter
        self.converged_ = best.converged
        warn_if_unfinished(best.converged, self.max_iter, "posteriors")
        warn_if_empty(np.bincount(best.labels, minlength=self.n_clusters), self.n_clusters)
        warn_if_clusters_follow_absence(best.labels, views.observed, 0)
        return self

    def _kinds(self, names: Sequence[str], blocks: Sequence[Matrix]) -> list[str]:
        """Return the distribution of every view; counts must not be negative."""
        kinds = per_view(self.distribution, names, "distribution")
        for name, block, kind in zip(names, blocks, kinds, strict=True):
            if not isinstance(kind, str) or kind not in DISTRIBUTIONS:
                known = " or ".join(map(repr, DISTRIBUTIONS))
                raise ParameterError(f"distribution={kind!r} of view {name!r} is unknown. Choose {known}.")
            if kind == "multinomial":
                check_not_negative(name, block, "MultiViewEM with distribution='multinomial'")
        return kinds

    def _models(self, blocks: Sequence[Matrix], kinds: Sequence[str], weights: Sequence[Floats]) -> list[ViewModel]:
        """Return every view with its distribution."""
        return [
            GaussianView(block, own, self.covariance) if kind == "gaussian" else MultinomialView(block, own)
            for block, kind, own in zip(blocks, kinds, weights, strict=True)
        ]

    def predict_proba(self, X: Any) -> Floats:
        """Return the posterior probabilities of the clusters, averaged over the views that a sample is in.

        Parameters
        ----------
        X : list, tuple or dict of arrays, or one table, as in ``fit``
            New samples.

        Returns
        -------
        probabilities : ndarray of shape (n_new, n_clusters)
            They add up to 1.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        return self._model.posteriors(read_views(self, X, reset=False))

    def _n_columns(self, method: str) -> int | None:
        return None if method == "predict" else int(self.n_clusters)

    def predict(self, X: Any) -> Ints:
        """Return the most probable cluster of new samples.

        Parameters
        ----------
        X : list, tuple or dict of arrays, or one table, as in ``fit``
            New samples.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the cluster with the largest posterior, averaged over the views that a sample is in.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        return likeliest(self.predict_proba(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of samples, as ``objective_`` is that of the training samples.

        Parameters
        ----------
        X : list, tuple or dict of arrays, or one table, as in ``fit``
            Samples.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_new,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            Mean over samples and the views that they are in of log p(x), without the multinomial coefficients.
        """
        check_is_fitted(self)
        views = read_views(self, X, reset=False)
        return self._model.log_likelihood(views, read_weights(sample_weight, views.n_samples))
