"""Mixtures of several views that exchange posteriors."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.comparators.multi_view_vectors import (
    INIT_RULE,
    VIEW_RULES,
    MultiViewVectors,
    check_not_negative,
    offsets,
    shifted,
)
from kernelweave.estimators.shared.kernel_estimator import first_labels
from kernelweave.foundation.array_types import Floats, Ints, Matrix
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
    exchange_em,
    likeliest,
    mean_posteriors,
)

#: Kinds of distributions.
DISTRIBUTIONS = ("gaussian", "multinomial")


class MultiViewEM(MultiViewVectors):
    """Multi-view EM of Bickel and Scheffer: views teach each other the posteriors of their mixtures.

    Every view has a mixture of its own. It is fitted to the posteriors that the mixture of another view gives the
    samples; its own posteriors go to the next view; and so on, round after round. A baseline for methods that weigh
    views. With one view it is EM.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, the components of every mixture.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    distribution : {"gaussian", "multinomial"}, or list or dict of them, default="gaussian"
        Distribution of the clusters, for all views or per view: Gaussian without correlations, or multinomial for
        counts, which must not be negative.
    covariance : {"diagonal", "spherical", "shared_diagonal", "shared_spherical"}, default="diagonal"
        Variances of Gaussian clusters: one per feature or one for all features, of each cluster or shared by them.
    init : {"k-means++", "random"} or array of shape (n_samples,), default="k-means++"
        First partition: that of the first view by samples drawn far apart or at random, or given labels (one run).
    n_init : int, default=10
        Number of starts; the run with the largest objective is kept.
    max_iter : int, default=200
        Most rounds of one run.
    tol : float, default=1e-4
        Gain of the objective that counts. A run ends after five rounds without one, with one view after the first.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. The same seed gives the same labels at any number of threads.
    verbose : int, default=0
        1 shows a progress bar over the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample: the largest posterior, averaged over the views.
    cluster_centers_ : list of ndarray of shape (n_clusters, n_features_v)
        Means of the clusters, view by view; for a multinomial the probabilities of the features.
    cluster_spreads_ : list of ndarray of shape (n_clusters, n_features_v) or None
        Variances of the clusters, view by view; None for a multinomial.
    mixing_weights_ : ndarray of shape (n_views, n_clusters)
        Weights of the components of every mixture.
    view_names_ : list of str
        Names of the views.
    view_weights_ : ndarray of shape (n_views,)
        Equal weights: all views count alike.
    objective_ : float
        Mean log-likelihood over samples and views, each mixture fitted to the posteriors of the view before; without
        the multinomial coefficients, which no parameter changes.
    objective_path_ : ndarray
        Its value after every round up to the one kept, which has the largest. With one view it rises; with more it may
        fall.
    n_iter_ : int
        Rounds of the best run, with those after the one kept.
    converged_ : bool
        Whether the best run ended because gains were below ``tol`` rather than at ``max_iter``.
    warnings_ : tuple of str
        Warnings of the fit, each once; empty where there were none.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, where X was a table with string column names.

    See Also
    --------
    MultiViewKMeans : The same exchange with partitions.
    MultiViewConvexMixture : Mixtures of several views with common exemplars and learned view weights.

    Notes
    -----
    Cost: O(n k d) a round, d the number of features of all views; starts run side by side. Sparse views stay sparse.

    The method has no objective of its own and need not converge (PhD 1.2.3). Variances stay above a thousandth of
    those of the view, so that no cluster shrinks to a point; one average sample is added to every multinomial cluster.
    A cluster that loses all its samples stays empty, with a warning.

    Source: PhD 1.2.3; S. Bickel and T. Scheffer, "Multi-view clustering", ICDM 2004. There are two views there; here
    any number, each of which hands its posteriors to the next.

    Examples
    --------
    >>> from kernelweave import MultiViewEM
    >>> from kernelweave.datasets import make_corrupted_views
    >>> data = make_corrupted_views(2, 0, n_samples=210, n_corrupted=0, random_state=0)
    >>> model = MultiViewEM(3, covariance="shared_spherical", random_state=0).fit(data.views)
    >>> model.predict_proba(data.views).shape
    (210, 3)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **VIEW_RULES,
        **INIT_RULE,
        "distribution": [StrOptions(set(DISTRIBUTIONS)), list, tuple, dict],
        "covariance": [StrOptions(set(COVARIANCES))],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        views: Any = None,
        distribution: Any = "gaussian",
        covariance: str = "diagonal",
        init: Any = "k-means++",
        n_init: int = 10,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.views = views
        self.distribution = distribution
        self.covariance = covariance
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = isinstance(self.distribution, str) and self.distribution == "multinomial"
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MultiViewEM":
        """Fit the mixtures.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a sample of weight 2 counts as two equal samples. One of weight 0 only gets a label.

        Returns
        -------
        self : MultiViewEM
            The fitted estimator.
        """
        views = read_views(self, X, reset=True)
        weights = read_weights(sample_weight, views.n_samples)
        check_cluster_count(self.n_clusters, weights)
        models = self._models(views, weights)
        first = first_labels(FeatureKernel(_for_start(models[0])), self.init, weights, self.n_clusters)
        options: dict[str, Any] = {"n_clusters": self.n_clusters, "max_iter": self.max_iter, "tol": self.tol}

        def run(start: Any) -> ExchangedMixtures:
            return exchange_em(models, first(start), **options)

        best = self._best(run, self._starts(views.n_samples), X, y, value=lambda found: -found.objective)
        self._keep(best.densities)
        self._store(best, len(views), "posteriors")
        return self

    def _models(self, views: Views, weights: Floats) -> list[GaussianView | MultinomialView]:
        """Return every view with its distribution; dense Gaussian ones are moved to their means."""
        kinds = per_view(self.distribution, views.names, "distribution")
        for name, block, kind in zip(views.names, views, kinds, strict=True):
            if not isinstance(kind, str) or kind not in DISTRIBUTIONS:
                known = " or ".join(map(repr, DISTRIBUTIONS))
                raise ParameterError(f"distribution={kind!r} of view {name!r} is unknown. Choose {known}.")
            if kind == "multinomial":
                check_not_negative(name, block, "MultiViewEM with distribution='multinomial'")
        gaussian = [kind == "gaussian" for kind in kinds]
        self._offsets: list[Floats | None] = [
            origin if chosen else None for origin, chosen in zip(offsets(views), gaussian, strict=True)
        ]
        return [
            GaussianView(block, weights, self.covariance) if chosen else MultinomialView(block, weights)
            for block, chosen in zip(shifted(views, self._offsets), gaussian, strict=True)
        ]

    def _keep(self, densities: tuple[Density, ...]) -> None:
        self._log_weights = [density.log_weights for density in densities]
        self._centres = [density.centres for density in densities]
        self.cluster_spreads_ = [density.variances for density in densities]
        self.mixing_weights_: Floats = np.exp(np.stack(self._log_weights))
        self.cluster_centers_ = [
            centres if origin is None else centres + origin
            for centres, origin in zip(self._centres, self._offsets, strict=True)
        ]

    def predict_proba(self, X: Any) -> Floats:
        """Return the posterior probabilities of the clusters, averaged over the views.

        Parameters
        ----------
        X : list, tuple or dict of arrays, or one table, as in ``fit``
            New samples.

        Returns
        -------
        probabilities : ndarray of shape (n_new, n_clusters)
            They add up to 1.
        """
        check_is_fitted(self)
        parts = zip(self._log_weights, self._centres, self.cluster_spreads_, strict=True)
        return mean_posteriors([Density(*part) for part in parts], self._new_blocks(X))

    def predict(self, X: Any) -> Ints:
        """Return the most probable cluster of new samples.

        Parameters
        ----------
        X : list, tuple or dict of arrays, or one table, as in ``fit``
            New samples.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the cluster with the largest posterior, averaged over the views.
        """
        return likeliest(self.predict_proba(X))


def _for_start(model: GaussianView | MultinomialView) -> Matrix:
    """Return the features that starting centres are drawn in: of unit variance or, for counts, of unit length."""
    if isinstance(model, MultinomialView):
        return normalize(model.X)
    if model.covariance.endswith("spherical"):
        return model.X
    scale = 1.0 / np.sqrt(model.spread)
    return sp.csr_array(model.X @ sp.diags_array(scale)) if sp.issparse(model.X) else model.X * scale
