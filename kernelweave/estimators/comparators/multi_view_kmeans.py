"""k-means of several views that exchange their partitions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave.estimators.comparators.view_features import (
    VIEW_INITS,
    Origins,
    best_run,
    known_rows,
    moved_back,
    moved_to,
    origins,
    spread_start,
    starting_view,
    weights_of_rows,
)
from kernelweave.estimators.shared.center_clusterer import CenterClusterer
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.fit_warnings import (
    warn_if_clusters_follow_absence,
    warn_if_empty,
    warn_if_unfinished,
)
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.estimators.shared.runs import first_labels, label_starts
from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.foundation.checkpoints import Keeper
from kernelweave.foundation.sklearn_internals import StrOptions, fit_context
from kernelweave.inputs import Views, check_cluster_count, read_views, read_weights
from kernelweave.kernels.features import FeatureKernel
from kernelweave.solvers.comparators.multi_view_kmeans import (
    ExchangedMeans,
    exchange_kmeans,
    joint_distances,
    joint_slack,
    nearest_joint,
)


@dataclass(frozen=True)
class JointCenters:
    """Centres of every cluster in every view; samples go where the distances of their views add up to the least."""

    origins: Origins
    means: tuple[Floats, ...]  # per view (k, d_v), measured from the origin
    filled: Bools  # (k,) whether the cluster has centres
    slack: float  # squared distances that differ by no more are equal

    def squared_distances(self, views: Views) -> Floats:
        """Return the squared distances to the centres, added up over the views, infinite where there are none."""
        known = known_rows(views)
        ops = [FeatureKernel(block) for block in moved_to(known.blocks, self.origins)]
        return joint_distances(ops, self.means, self.filled, known.samples, views.n_samples)

    def assign(self, views: Views) -> Ints:
        """Return the cluster of every sample."""
        return nearest_joint(self.squared_distances(views), self.slack)


class MultiViewKMeans(CenterClusterer):
    """Multi-view k-means of Bickel and Scheffer: views teach each other their partitions.

    Samples go to the nearest centre of a view; the centres of the next view are the means of the resulting clusters;
    and so on in every round. A baseline for methods that weight views. With one view it is k-means.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    missing : {"error", "drop", "mean", "median", "knn"}, default="error"
        How to treat NaN cells. ``"error"`` refuses them, ``"drop"`` removes these samples from the view, and the other
        options fill them from the training samples, as scikit-learn's imputers do. A row that is NaN throughout does
        not count as missing cells: the sample is absent from this view, and its distances are added up over the others.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    init : {"k-means++", "random"} or array of shape (n_samples,), default="k-means++"
        First partition: that of the first view by samples drawn far apart or at random, or given labels (one run).
        Where samples are absent, it is drawn in the first view that has at least ``n_clusters`` of them; the others
        get the cluster of the nearest mean in a view that has them, step by step.
    n_init : int, default=10
        Number of starts; the run with the lowest objective is kept.
    max_iter : int, default=100
        Maximum number of rounds of one run.
    tol : float, default=0.0
        Share of the objective that a new minimum must lie below the old one to count.
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
        Cluster of every sample: least squared distance to its centres, added up over the views that it is in.
    cluster_centers_ : list of ndarray of shape (n_clusters, n_features_v)
        Centres, view by view: the means of the partition that came from the view before.
    view_names_ : list of str
        Names of the views.
    view_weights_ : ndarray of shape (n_views,)
        Equal weights for all views.
    view_scatters_ : ndarray of shape (n_views,)
        The share of every view in ``objective_``.
    objective_ : float
        Squared distances to the centres under the partitions exchanged, summed over samples and the views that they
        are in; the smaller the better.
    objective_path_ : ndarray
        Its value after every round up to the one kept, which has the least. With one view it falls; with more it may
        rise.
    n_iter_ : int
        Number of rounds of the best run, including those after the one kept.
    converged_ : bool
        Whether the best run ended because partitions repeat or no minimum came for ten rounds, rather than at
        ``max_iter``.
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
    MultiViewKernelKMeans : One partition and learned weights of the views.
    MultiViewEM : The same exchange with probabilities.

    Notes
    -----
    Cost: O(n d k) per iteration, where d is the number of features of all views; starts run in parallel. Sparse views
    stay sparse.

    The method does not follow one objective and need not converge (PhD 1.2.3). Views of larger scale count more in the
    final assignment: bring them to one scale first, for instance with :class:`~kernelweave.preprocessing.ViewScaler`.
    The source's final assignment adds up cosines, which for samples of unit length are squared distances, as here.

    Where samples are absent from views, every view works on the samples that it has: its centres are their means, and
    it passes their clusters on. The others keep the cluster from the last view that has them; nothing is
    filled in. A view cannot choose a cluster that none of its samples came in with. In distances added up over the
    views the centre of such a cluster is the mean of the view, as in :class:`MultiViewKernelKMeans`. New samples may
    also lack views. ``transform`` and ``score`` add up over the views that a sample is in, so that samples in fewer
    views are nearer to all centres.

    Source: PhD 1.2.3; S. Bickel and T. Scheffer, "Multi-view clustering", ICDM 2004. There are two views there; here
    any number, each of which passes its partition to the next.

    Examples
    --------
    >>> from kernelweave import MultiViewKMeans
    >>> from kernelweave.datasets import make_corrupted_views
    >>> from kernelweave.metrics import adjusted_rand_index
    >>> data = make_corrupted_views(3, 0, n_samples=210, n_corrupted=15, random_state=0)
    >>> model = MultiViewKMeans(3, random_state=0).fit(data.views)
    >>> bool(adjusted_rand_index(data.target, model.labels_) > 0.9)
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **view_rules(
            "n_clusters", "missing", "views", "n_init", "max_iter", "tol", "checkpoint", "random_state", "verbose"
        ),
        "init": [StrOptions(set(VIEW_INITS)), "array-like"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        missing: str = "error",
        views: Any = None,
        init: Any = "k-means++",
        n_init: int = 10,
        max_iter: int = 100,
        tol: float = 0.0,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MultiViewKMeans":
        """Cluster the samples.

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
        self : MultiViewKMeans
            The fitted estimator.
        """
        views = read_views(self, X, reset=True)
        weights = read_weights(sample_weight, views.n_samples)
        check_cluster_count(self.n_clusters, weights)
        keep_run(self, views, weights)
        known = known_rows(views)
        own = weights_of_rows(views, weights)
        centre = origins(known.blocks)
        ops = [FeatureKernel(block) for block in moved_to(known.blocks, centre)]
        v = starting_view(views, own, self.n_clusters) if isinstance(self.init, str) else 0
        drawn = first_labels(ops[v], self.init, own[v], self.n_clusters)
        first = spread_start(drawn, known.samples[v], views.n_samples)
        options: dict[str, Any] = {"n_clusters": self.n_clusters, "max_iter": self.max_iter, "tol": self.tol}

        def run(start: Any, _: Keeper) -> ExchangedMeans:
            return exchange_kmeans(ops, first(start), weights, samples=known.samples, **options)

        starts = label_starts(self.init, self.n_init, self.random_state, views.n_samples, self.n_clusters)
        best = best_run(self, run, starts, X, y, ExchangedMeans)
        self._model = JointCenters(centre, best.means, best.filled, joint_slack(ops))
        self.labels_: Ints = best.labels
        self.cluster_centers_ = moved_back(best.means, centre)
        self.view_weights_: Floats = np.full(len(views), 1.0 / len(views))
        self.view_scatters_: Floats = best.view_scatters
        self.objective_ = best.objective
        self.objective_path_ = np.array(best.history)
        self.n_iter_ = best.n_iter
        self.converged_ = best.converged
        self._n_features_out = self.n_clusters
        warn_if_unfinished(best.converged, self.max_iter, "partitions")
        warn_if_empty(np.bincount(best.labels, minlength=self.n_clusters), self.n_clusters)
        warn_if_clusters_follow_absence(best.labels, views.observed, 0)
        return self

    def _read_new(self, X: Any) -> Views:
        return read_views(self, X, reset=False)
