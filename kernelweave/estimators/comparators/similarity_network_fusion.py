"""The similarity network fusion estimator."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.comparators.networks import NetworkView, Propagation, cut_network, fit_network
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.clusterer import Clusterer
from kernelweave.estimators.shared.elsewhere import answers_lazily
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.progress import Meter
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import Views, check_cluster_count, read_views
from kernelweave.kernels.dense import DenseKernel
from kernelweave.solvers.comparators.network_fusion import full_shares, fuse_networks

#: The number of neighbours where it is not given and samples are not few.
USUAL_NEIGHBORS = 20


@answers_lazily("predict")
class SimilarityNetworkFusion(Clusterer):
    """Similarity network fusion: networks of the views become similar round by round, then spectral clustering.

    Every view has a network of affinities between all samples, and one of nearest neighbours alone. In a round the
    full network of a view is replaced by the mean of those of the others, spread along its neighbours: similarities
    that several views share are strengthened, those of a single view fade. The mean network is clustered. A
    baseline: all views have equal weight.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of eigenvectors.
    n_neighbors : int, default=None
        Neighbours of every sample, at most all others. None means 20, or half of the others if that is less: with
        few samples, 20 would be all of them and the network would become uniform.
    mu : float, default=0.5
        Width of affinities as a share of the distances to neighbours; 0.3 to 0.8 are usual.
    standardize : bool or "auto", default="auto"
        True divides the columns of every view by their standard deviations, False compares views as they are.
        ``"auto"`` divides, except in views of counts or links (non-negative values, most of them zero): their rows
        are compared at unit length, since otherwise the rarest word would count most.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    n_init : int, default=10
        Number of starts of k-means on the embedding.
    max_iter : int, default=20
        Number of rounds, all of which are carried out; the networks hardly change after about ten.
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
    affinity_ : ndarray of shape (n_samples, n_samples)
        The fused network: symmetric, 1/2 on the diagonal.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Leading eigenvalues of the network divided by degrees, its diagonal left out, largest first; at most 1.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Their eigenvectors, rows scaled to unit length; the input of k-means.
    objective_ : float
        The relaxed normalized cut of the fused network: the number of clusters less the sum of the eigenvalues; it is
        minimised, but not by the rounds.
    objective_path_ : ndarray of one value
        The same.
    n_iter_ : int
        Number of rounds.
    converged_ : bool
        Whether the best run of k-means converged.
    n_neighbors_ : int
        Neighbours of a sample.
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
    NEMO : The same affinities averaged, without rounds; takes samples that are absent from some views.
    GraphFusionClustering : Graphs of neighbours with weights of views, absent samples and the number of clusters.
    CoTrainedSpectralClustering : Affinities of a view projected on the eigenvectors of the others.

    Notes
    -----
    The affinity of two samples of a view is exp(-d^2 / (mu e)), e the mean of their distance d and of the mean
    distances of both to their neighbours; d is Euclidean. P_v holds affinities as shares, 1/2 for all others together
    and 1/2 for the sample itself, S_v shares over the neighbours; a round is P_v <- S_v (mean of the other P) S_v^T,
    normalised and made symmetric again. Samples at equal distance are all neighbours. A single view is used
    twice. Samples that are all equally similar to each other, as two always are, form one cluster.

    Every sample must be in every view: a round assumes that the networks of all views have the same samples, and
    the source does not treat other cases. :class:`NEMO` takes samples that are absent from some views.

    Cost: O(n^2 d) time for the distances, O(V n^2 n_neighbors) for a round; memory for about 2 V + 4 matrices of n x n
    numbers. New samples take no part in the rounds: they get the label with the largest share among their nearest
    training samples, averaged over the views; a sample that equals a training sample gets its label.

    Source: B. Wang et al., "Similarity network fusion for aggregating data types on a genomic scale", Nature Methods
    11, 2014.

    Examples
    --------
    >>> from kernelweave import SimilarityNetworkFusion
    >>> from kernelweave.datasets import make_corrupted_views
    >>> from kernelweave.metrics import normalized_mutual_info
    >>> data = make_corrupted_views(3, 0, n_samples=210, n_corrupted=15, random_state=0)
    >>> model = SimilarityNetworkFusion(3, random_state=0).fit(data.views)
    >>> normalized_mutual_info(data.target, model.labels_) > 0.8
    True
    >>> model.affinity_.shape
    (210, 210)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **view_rules("n_clusters", "views", "n_init", "max_iter", "checkpoint", "random_state", "verbose"),
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
        "mu": [Interval(Real, 0, None, closed="neither")],
        "standardize": ["boolean", StrOptions({"auto"})],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int | None = None,
        mu: float = 0.5,
        standardize: bool | str = "auto",
        views: Any = None,
        n_init: int = 10,
        max_iter: int = 20,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.standardize = standardize
        self.views = views
        self.n_init = n_init
        self.max_iter = max_iter
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "SimilarityNetworkFusion":
        """Cluster the samples.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``.
        y : None
            Ignored.

        Returns
        -------
        self : SimilarityNetworkFusion
            The fitted estimator.
        """
        views = read_views(self, X, reset=True)
        check_cluster_count(self.n_clusters, np.ones(views.n_samples))
        keep_run(self, views)
        fitted, self.affinity_ = self._fused(views)
        self.view_weights_ = np.full(len(views), 1.0 / len(views))
        self.n_neighbors_ = fitted[0].n_neighbors
        self.n_iter_ = self.max_iter
        cut_network(self, DenseKernel(self.affinity_), X, y)
        self._model = Propagation.of_training(fitted, views, self.labels_, self.n_clusters)
        return self

    def _fused(self, views: Views) -> tuple[list[NetworkView], Floats]:
        """Return the models of the views, and the network that they become."""
        neighbors = self._neighbors(views.n_samples)
        fitted = []
        shares = []
        networks = []
        for v in range(len(views)):
            network = fit_network(views, v, neighbors, self.mu, standardize=self.standardize)
            fitted.append(network.view)
            shares.append(network.shares())
            networks.append(full_shares(network.distances, network.view.means, self.mu))
            del network  # its distances are no longer needed
        meter = Meter(self, "rounds")
        fused = fuse_networks(networks, shares, self.max_iter, on_round=meter)
        meter.close()
        return fitted, fused

    def _neighbors(self, n_samples: int) -> int:
        if self.n_neighbors is not None:
            return int(self.n_neighbors)
        return min(USUAL_NEIGHBORS, max(1, (n_samples - 1) // 2))

    def predict(self, X: Any) -> Ints:
        """Return the cluster whose training samples are most like new samples.

        Parameters
        ----------
        X : views, as in ``fit``
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the cluster; a sample that equals a training sample has its label.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        return self._model.assign(read_views(self, X, reset=False).blocks)
