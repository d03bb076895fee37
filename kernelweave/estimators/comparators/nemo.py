"""The NEMO estimator."""

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.comparators.networks import Propagation, cut_network, fit_network, spread
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.clusterer import Clusterer
from kernelweave.estimators.shared.elsewhere import answers_lazily
from kernelweave.estimators.shared.fit_warnings import warn_if_clusters_follow_absence
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.foundation.array_types import Bools, Ints
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import MISSING, check_cluster_count, read_views
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.solvers.comparators.network_fusion import average_similarity
from kernelweave.solvers.graph.fusion import Overlap

#: The least number of neighbours where it is not given.
FEWEST_NEIGHBORS = 10


@answers_lazily("predict")
class NEMO(Clusterer):
    """NEMO: neighbourhoods of every view, averaged over the views that have both samples, then spectral clustering.

    In every view the affinities of a sample with its nearest neighbours are divided by their sum. The affinity of two
    samples is the sum of both shares, averaged over the views that have both: a sample that is absent from a
    view is compared in the others. A baseline: all views have equal weight, and there are no iterations.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of eigenvectors.
    n_neighbors : int, default=None
        Neighbours of every sample, at most all others of the view. None means the number of samples of a view divided
        by ``n_clusters``, but at least 10: the rule of the source if the number of clusters is known. The programs of
        the authors and others use a sixth of the samples.
    mu : float, default=0.5
        Width of affinities as a share of the distances to neighbours; 0.3 to 0.8 are usual.
    standardize : bool or "auto", default="auto"
        True divides the columns of every view by their standard deviations, False compares views as they are.
        ``"auto"`` divides, except in views of counts or links (non-negative values, most of them zero): their rows
        are compared at unit length, since otherwise the rarest word would count most.
    missing : {"error", "drop", "mean", "median", "knn"}, default="error"
        How to treat NaN cells. ``"error"`` refuses them, ``"drop"`` removes these samples from the view, and the other
        options fill them from the training samples, as scikit-learn's imputers do. A row that is NaN throughout does
        not count as missing cells: the sample is absent from this view.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    n_init : int, default=10
        Number of starts of k-means on the embedding.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error. Requires an integer ``random_state``.
    random_state : int, RandomState instance or None, default=None
        Seed for k-means. The same seed gives the same labels with any number of threads.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, 0..n_clusters-1.
    affinity_ : sparse array of shape (n_samples, n_samples)
        Average relative similarities; no entry between samples that are neighbours in no view.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Leading eigenvalues of the affinities divided by degrees, largest first; at most 1.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Their eigenvectors, rows scaled to unit length; the input of k-means.
    objective_ : float
        The relaxed normalized cut: the number of clusters less the sum of the eigenvalues; it is minimised.
    objective_path_, n_iter_ : ndarray of one value, 1
        There are no outer iterations.
    converged_ : bool
        Whether the best run of k-means converged.
    n_neighbors_ : ndarray of shape (n_views,)
        Neighbours of a sample in every view.
    observed_ : ndarray of shape (n_samples, n_views), bool
        Which samples each view had.
    view_weights_ : ndarray of shape (n_views,)
        Equal weights for all views.
    view_names_ : list of str
        Names of the views.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a table with string column names.

    See Also
    --------
    SimilarityNetworkFusion : The same affinities, networks that are made similar round by round; complete views only.
    GraphFusionClustering : Graphs of neighbours with weights of views, absent samples and the number of clusters.
    NgSpectralClustering : What makes clusters of the affinities.

    Notes
    -----
    The affinity of two samples of a view is exp(-d^2 / (mu e)), e the mean of their distance d and of the mean
    distances of both to their neighbours; d is Euclidean. Samples at equal distance are all neighbours, so that their
    order does not matter. Samples that no view has together have the mean affinity of all others, as in the authors'
    program; ``affinity_`` leaves them out.
    Samples that are all equally similar to each other, as two always are, form one cluster.

    Cost: O(n^2 d) time for the distances and O(n^2) memory, one view at a time; then a few dozen products with the
    neighbour graph of all views.

    New samples get the label with the largest share among their nearest training samples, averaged over the views that
    they have; a sample that equals a training sample gets its label.

    Source: N. Rappoport and R. Shamir, "NEMO: cancer subtyping by integration of partial multi-omic data",
    Bioinformatics 35, 2019; affinities of B. Wang et al., Nature Methods 11, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import NEMO
    >>> from kernelweave.datasets import make_corrupted_views
    >>> from kernelweave.metrics import normalized_mutual_info
    >>> data = make_corrupted_views(3, 0, n_samples=210, n_corrupted=15, random_state=0)
    >>> views = [view.copy() for view in data.views.values()]
    >>> views[0][::4] = np.nan  # every fourth sample is absent from the first view
    >>> model = NEMO(3, random_state=0).fit(views)
    >>> normalized_mutual_info(data.target, model.labels_) > 0.8
    True
    >>> model.predict(views)[:5].tolist() == model.labels_[:5].tolist()
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **view_rules("n_clusters", "views", "n_init", "checkpoint", "random_state", "verbose"),
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
        "mu": [Interval(Real, 0, None, closed="neither")],
        "standardize": ["boolean", StrOptions({"auto"})],
        "missing": [StrOptions(set(MISSING))],
    }

    _takes_absent = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int | None = None,
        mu: float = 0.5,
        standardize: bool | str = "auto",
        missing: str = "error",
        views: Any = None,
        n_init: int = 10,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.standardize = standardize
        self.missing = missing
        self.views = views
        self.n_init = n_init
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def _set_input_tags(self, tags: Any) -> None:
        tags.sparse = True
        tags.allow_nan = self.missing != "error"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "NEMO":
        """Cluster the samples.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``. A row of NaN means that the sample is absent from the view.
        y : None
            Ignored.

        Returns
        -------
        self : NEMO
            The fitted estimator.
        """
        views = read_views(self, X, reset=True)
        n = views.n_samples
        check_cluster_count(self.n_clusters, np.ones(n))
        keep_run(self, views)
        fitted = []
        shares = []
        for v in range(len(views)):
            network = fit_network(
                views, v, self._neighbors(len(views.present(v))), self.mu, standardize=self.standardize
            )
            fitted.append(network.view)
            samples = network.view.samples
            shares.append(spread(network.shares(), samples, samples, (n, n)))
        self.affinity_: sp.csr_array = average_similarity(shares, views.observed)
        self.n_neighbors_: Ints = np.array([view.n_neighbors for view in fitted])
        self.view_weights_ = np.full(len(views), 1.0 / len(views))
        self.n_iter_ = 1
        cut_network(self, self._network(views.observed), X, y)
        self._model = Propagation.of_training(fitted, views, self.labels_, self.n_clusters)
        if views.observed is not None:
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            warn_if_clusters_follow_absence(self.labels_, views.observed, seed)
        return self

    def _network(self, observed: Bools | None) -> KernelOperator:
        """Return the affinities of all samples, the mean one where nothing is known about two."""
        background = None if observed is None else Overlap.of(observed).background(self.affinity_)
        if background is None:
            return GraphKernel(self.affinity_)
        return DenseKernel(self.affinity_.toarray() + background.dense())

    def _neighbors(self, n_present: int) -> int:
        if self.n_neighbors is not None:
            return int(self.n_neighbors)
        return max(FEWEST_NEIGHBORS, n_present // self.n_clusters)

    def predict(self, X: Any) -> Ints:
        """Return the cluster whose training samples are most like new samples.

        Parameters
        ----------
        X : views, as in ``fit``
            Samples; of a dict of views some may be missing.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the cluster; a sample that equals a training sample has its label.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        return self._model.assign(read_views(self, X, reset=False).blocks)
