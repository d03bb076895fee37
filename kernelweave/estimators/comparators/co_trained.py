"""The co-trained multi-view spectral clustering estimator."""

from typing import Any

import numpy as np

from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.clusterer import Clusterer
from kernelweave.estimators.shared.embedding import round_embedding, unit_rows
from kernelweave.estimators.shared.fit_warnings import warn_if_inexact
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.estimators.shared.view_kernels import (
    divide_by_degrees,
    fit_view_kernels,
    scale_factors,
    set_view_kernel_tags,
)
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.memory import PASSING, room_beside
from kernelweave.foundation.progress import Meter
from kernelweave.foundation.sklearn_internals import fit_context
from kernelweave.inputs import check_cluster_count, read_views
from kernelweave.kernels.spec.fitting import Storage
from kernelweave.solvers.comparators.co_trained import co_trained
from kernelweave.solvers.spectral.eigenvectors import work_mib


class CoTrainedSpectralClustering(Clusterer):
    """Co-trained spectral clustering: the affinities of every view are projected onto the eigenvectors of the others.

    Starts from the eigenvectors E_v of every view, as in :class:`NgSpectralClustering`. In a round the affinities K_v
    of every view, always the first ones, are replaced by the symmetric part of sum_{u != v} E_u E_u^T K_v, divided by
    degrees (sums of absolute values: entries may be negative), and its leading eigenvectors become E_v. A baseline:
    there is no objective, and all views have equal weight.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of eigenvectors of every view.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    kernel : str, kernel object or callable, list or dict, default="rbf"
        Kernel of all views, as in :class:`KernelKMeans`, or one per view; its row sums must not be negative.
    kernel_params : dict, or list or dict of dicts, default=None
        Parameters of named kernels; a dict whose keys are the names of the views gives one for each.
    n_init : int, default=10
        Number of starts of k-means on the embedding.
    max_iter : int, default=5
        Maximum number of rounds. More rounds are not always better.
    tol : float, default=1e-4
        The rounds end when the subspaces of the views turn by less than this: one minus the mean share of directions
        kept.
    storage : {"auto", "dense", "blockwise"}, default="auto"
        As in :class:`KernelKMeans`, for every view.
    memory_limit : float, default=2048
        Memory in MiB that the stored kernel matrices of all views may take together.
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
    embedding_ : ndarray of shape (n_samples, n_views * n_clusters)
        Eigenvectors of all views side by side, rows scaled to unit length; the input of k-means.
    objective_ : float
        Mean agreement of two views, tr(E_v E_v^T E_u E_u^T) over the number of vectors: 1 where they span the same;
        the larger the better. The rounds do not follow it, and it may fall.
    objective_path_ : ndarray
        Its value at the start and after every round.
    n_iter_ : int
        Number of rounds.
    converged_ : bool
        Whether the subspaces stopped moving. This is not guaranteed, so there is no warning if they do not.
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
    CoRegularizedSpectralClustering : The same idea with an objective.
    MultiViewSpectralClustering : Weights of the views learned.
    NgSpectralClustering : What one view gives.

    Notes
    -----
    Cost: a round is one product of every kernel with the vectors of the other views and O(n^2 V n_clusters) for the
    degrees; the projected affinities have low rank and are never formed. A view in which all samples are equal is an
    error: the others would be projected on nothing. The source takes the vectors of the most informative view, where
    that is known beforehand, else those of all views side by side: nothing is known here. New samples cannot be
    assigned.

    Source: A. Kumar and H. Daume III, "A co-training approach for multi-view spectral clustering", ICML 2011; PhD
    1.2.3.

    Examples
    --------
    >>> from kernelweave import CoTrainedSpectralClustering
    >>> from kernelweave.datasets import make_corrupted_views
    >>> from kernelweave.metrics import normalized_mutual_info
    >>> data = make_corrupted_views(3, 0, n_samples=210, n_corrupted=15, random_state=0)
    >>> model = CoTrainedSpectralClustering(3, random_state=0).fit(data.views)
    >>> model.embedding_.shape, normalized_mutual_info(data.target, model.labels_) > 0.8
    ((210, 9), True)
    """

    _objective = "maximize"

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **view_rules("n_clusters", "views", "kernel", "kernel_params", "n_init", "max_iter", "tol"),
        **view_rules("storage", "memory_limit", "checkpoint", "random_state", "verbose"),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        views: Any = None,
        kernel: Any = "rbf",
        kernel_params: Any = None,
        n_init: int = 10,
        max_iter: int = 5,
        tol: float = 1e-4,
        storage: Storage = "auto",
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.views = views
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.storage = storage
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "CoTrainedSpectralClustering":
        """Cluster the samples.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``. With ``kernel="precomputed"``, matrices of affinities.
        y : None
            Ignored.

        Returns
        -------
        self : CoTrainedSpectralClustering
            The fitted estimator.
        """
        views = read_views(self, X, reset=True)
        ones = np.ones(views.n_samples)
        check_cluster_count(self.n_clusters, ones)
        keep_run(self, views)
        limit = room_beside(work_mib(len(ones), self.n_clusters), self.memory_limit)
        fitted = fit_view_kernels(
            views, self.kernel, self.kernel_params, centre_features=False, weights=ones, memory_limit=self.memory_limit
        )
        kernels = fitted.operators(self.storage, limit / len(views), check_definite=False)
        room = max(fitted.room_beside(kernels, limit), PASSING * limit)
        del fitted  # no new samples will come, and a neighbour graph keeps more than its edges for them
        normalised = divide_by_degrees(kernels, ones, views.names)
        scale_factors(kernels, ones, views.names)  # refuses a view in which all samples are equal
        meter = Meter(self, "rounds")
        options: dict[str, Any] = {"n_vectors": self.n_clusters, "max_iter": self.max_iter, "tol": self.tol}
        options["room"] = room
        result = co_trained(kernels, normalised, keeper=self._keeper.part("rounds"), on_step=meter, **options)
        meter.close()
        self.view_weights_: Floats = np.full(len(views), 1.0 / len(views))
        self.objective_ = result.history[-1]
        self.objective_path_ = np.array(result.history)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        warn_if_inexact(result.residual)
        self.embedding_: Floats = unit_rows(result.embedding)
        choices = {"n_clusters": self.n_clusters, "n_init": self.n_init, "random_state": self.random_state}
        self.labels_: Ints = round_embedding(self, self.embedding_, X, y, **choices).labels
        return self

    def _set_input_tags(self, tags: Any) -> None:
        set_view_kernel_tags(tags, self.kernel, self.views)
