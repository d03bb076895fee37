"""The pifs k-means estimator."""

from typing import Any

import numpy as np

from kernelweave.estimators.kmeans.vectors import VECTOR_INITS, center_starts
from kernelweave.estimators.shared.center_clusterer import CenterClusterer
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.models import MeanModel, cluster_means, feature_offset, shifted_features
from kernelweave.estimators.shared.parameters import rules
from kernelweave.estimators.shared.runs import first_labels, run_starts
from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.checkpoints import Keeper
from kernelweave.foundation.sklearn_internals import StrOptions, fit_context
from kernelweave.inputs import check_cluster_count, read_samples, read_weights
from kernelweave.solvers.kmeans.kernel_kmeans import Descent
from kernelweave.solvers.kmeans.pifs import pifs_kmeans
from kernelweave.solvers.shared.best_run import best_of


class PifsKMeans(CenterClusterer):
    """Partially incremental frequency-sensitive k-means: k-means with clusters of similar size.

    A sample goes to the cluster with the least size * squared distance, so that large clusters repel it. The sizes
    are updated after every sample, the centres after every pass over all samples. A baseline for methods that balance
    clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : {"random", "k-means++"} or array of shape (n_clusters, n_features), default="random"
        Initial centres: random samples, samples far apart, or the given ones (one run).
    n_init : int, default=10
        Number of starts; the run with the lowest sum of squared distances is kept.
    max_iter : int, default=300
        Maximum number of passes of one run.
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
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Weight of the samples of every cluster.
    cluster_variances_ : ndarray of shape (n_clusters,)
        Squared distances to the centre of every cluster, summed.
    max_variance_ : float
        The largest of them.
    inertia_, objective_ : float
        Their sum; lower is better, but the method follows no known objective and the sum may increase.
    objective_path_ : ndarray
        That sum at the start and after every pass.
    n_iter_ : int
        Number of passes of the best run that changed a label.
    converged_ : bool
        Whether the best run converged before ``max_iter``.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if X had string column names.

    See Also
    --------
    MinMaxKMeans : Balances the variances of clusters instead of their sizes.

    Notes
    -----
    Cost: O(n d k) per pass; starts run in parallel. The result depends on the order of the samples, and a sample of
    weight 2 is not quite two samples, which would be assigned one after the other. ``predict`` multiplies squared
    distances by the final sizes, as the passes do.

    Source: PhD (2.10); A. Banerjee and J. Ghosh, "Frequency-sensitive competitive learning for scalable balanced
    clustering on high-dimensional hyperspheres", IEEE Transactions on Neural Networks 15, 2004, without the term
    d ln(size), as in the thesis.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import PifsKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (150, 2)), rng.normal(3, 1, (50, 2))])
    >>> sizes = PifsKMeans(2, random_state=0).fit(X).cluster_sizes_
    >>> bool(sizes.min() > 60)
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's convention
        **rules("n_clusters", "n_init", "max_iter", "checkpoint", "random_state", "verbose"),
        "init": [StrOptions(set(VECTOR_INITS)), "array-like"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "random",
        n_init: int = 10,
        max_iter: int = 300,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "PifsKMeans":
        """Cluster the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; they count in sizes and means. A sample of weight 0 only gets a label.

        Returns
        -------
        self : PifsKMeans
            The fitted estimator.
        """
        X = read_samples(self, X, reset=True)
        weights = read_weights(sample_weight, X.shape[0])
        check_cluster_count(self.n_clusters, weights)
        keep_run(self, X, weights)
        offset = feature_offset(X)
        op = shifted_features(X, offset)
        first = first_labels(op, self.init, weights, self.n_clusters)
        starts = center_starts(self.init, self.n_init, self.random_state, op, offset, self.n_clusters)

        def run(start: Any, keeper: Keeper) -> Descent:
            options = {"n_clusters": self.n_clusters, "max_iter": self.max_iter}
            return pifs_kmeans(op, first(start), weights, keeper=keeper, **options)

        best = best_of(run_starts(self, op, run, starts, X, y, Descent))
        factors = np.where(best.totals > 0, best.totals / best.totals.max(), 1.0)
        self.cluster_centers_: Floats = cluster_means(X, weights, best.labels, best.totals)
        self._model = MeanModel(self.cluster_centers_, offset, best.totals > 0, factors)
        self._store_run(best)
        self.cluster_sizes_: Floats = best.totals
        self.max_variance_ = float(best.scatter.max())
        return self

    def _read_new(self, X: Any) -> Array:
        return read_samples(self, X, reset=False)
