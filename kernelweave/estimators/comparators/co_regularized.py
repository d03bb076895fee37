"""The co-regularised multi-view spectral clustering estimator."""

from collections.abc import Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from kernelweave.estimators.comparators.view_features import best_run
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.clusterer import Clusterer
from kernelweave.estimators.shared.embedding import round_embedding, unit_rows
from kernelweave.estimators.shared.fit_warnings import (
    warn_if_clusters_follow_absence,
    warn_if_empty,
    warn_if_inexact,
    warn_if_unfinished,
)
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.estimators.shared.view_kernels import fit_view_kernels, normalized_views, set_view_kernel_tags
from kernelweave.estimators.shared.view_numbers import view_numbers
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.memory import room_beside
from kernelweave.foundation.progress import Meter
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import check_cluster_count, read_views
from kernelweave.kernels.spec.fitting import Storage
from kernelweave.solvers.comparators.co_regularized import ObservedRows, co_regularized, observed_rows
from kernelweave.solvers.kmeans.multi_view_kernel_kmeans import MultiViewDescent
from kernelweave.solvers.spectral.eigenvectors import work_mib


class CoRegularizedSpectralClustering(Clusterer):
    """Co-regularised spectral clustering: eigenvectors of every view, pulled towards those of the others.

    Every view keeps an embedding U_v, as in :class:`NgSpectralClustering`; a term added to the objective
    rewards subspaces that agree, view against view (``"pairwise"``) or with a common one (``"centroid"``). A
    baseline: all views have equal weight, however good they are.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of eigenvectors of every view.
    variant : {"pairwise", "centroid"}, default="pairwise"
        Maximise sum_v tr(U_v^T L_v U_v) plus lambda times the sum over pairs of views of tr(U_v U_v^T U_u U_u^T), or
        plus the sum of lambda_v tr(U_v U_v^T U* U*^T), L_v the affinities divided by degrees.
    regularization : float, list or dict, default=0.01
        lambda, for all views or one for each; a pair of views has the mean of theirs. 0.01 to 0.05 are usual.
    missing : {"error", "drop", "mean", "median", "knn"}, default="error"
        How to treat NaN cells. ``"error"`` refuses them, ``"drop"`` removes these samples from the view, and the other
        options fill them from the training samples, as scikit-learn's imputers do. A row that is NaN throughout does
        not count as missing cells: the sample is absent from this view, and views are compared on the samples that both
        have.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    kernel : str, kernel object or callable, list or dict, default="rbf"
        Kernel of all views, as in :class:`KernelKMeans`, or one per view; its row sums must not be negative.
    kernel_params : dict, or list or dict of dicts, default=None
        Parameters of named kernels; a dict whose keys are the names of the views gives one for each.
    n_init : int, default=10
        Number of starts of k-means on the embedding.
    max_iter : int, default=100
        Maximum number of sweeps over the views.
    tol : float, default=1e-5
        The run ends when a sweep raises the objective by at most ``tol`` times its value.
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
    embedding_ : ndarray of shape (n_samples, n_views * n_clusters) or (n_samples, n_clusters)
        The U_v side by side, or U*, rows scaled to unit length; the input of k-means. Columns whose eigenvalue is
        zero are zero. Of the U_v side by side, those of views that a sample is absent from are NaN, and the squared
        length of a row is the share of views that the sample is in.
    objective_ : float
        The objective at the end; it is maximised.
    objective_path_ : ndarray
        Its value for the separate views and after every sweep; it never decreases.
    n_iter_ : int
        Number of sweeps.
    converged_ : bool
        Whether the run converged before ``max_iter``.
    observed_ : ndarray of shape (n_samples, n_views), bool
        Which samples each view had.
    view_weights_ : ndarray of shape (n_views,)
        Equal weights for all views.
    view_names_ : list of str
        Names of the views.
    neighbor_recall_ : ndarray of shape (n_views,)
        Share of the nearest neighbours that the search of ``kernel="nearest_neighbors"`` found in each view, below 1
        only for ``"neighbor_search": "approximate"`` in ``kernel_params``; NaN for other kernels.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a table with string column names.

    See Also
    --------
    CoTrainedSpectralClustering : Views that project each other's affinities, without an objective.
    MultiViewSpectralClustering : Weights of the views learned.
    NgSpectralClustering : What one view gives.

    Notes
    -----
    Cost: a sweep computes the leading eigenvectors of every view, with a few dozen products with its kernel, starting
    from those of the last sweep; with up to 1,200 samples it is a dense eigenproblem. With more samples, nothing of
    size n x n is formed besides the kernels. Views are processed in order, so that with ``"pairwise"`` a different
    order may end in a different local maximum. New samples cannot be assigned.

    Where samples are absent, U_v has rows for the samples that view v has, and the term of two views, or of a view and
    U*, goes over the samples that both have. k-means on the U_v side by side sums squared distances over the views that
    a sample is in.

    Source: A. Kumar, P. Rai and H. Daume III, "Co-regularized multi-view spectral clustering", NIPS 2011; PhD 1.2.3,
    (1.11). There every view has every sample.

    Examples
    --------
    >>> from kernelweave import CoRegularizedSpectralClustering
    >>> from kernelweave.datasets import make_corrupted_views
    >>> from kernelweave.metrics import normalized_mutual_info
    >>> data = make_corrupted_views(3, 0, n_samples=210, n_corrupted=15, random_state=0)
    >>> model = CoRegularizedSpectralClustering(3, regularization=0.05, random_state=0).fit(data.views)
    >>> model.embedding_.shape, normalized_mutual_info(data.target, model.labels_) > 0.8
    ((210, 9), True)
    """

    _objective = "maximize"

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **view_rules("n_clusters", "missing", "views", "kernel", "kernel_params", "n_init", "max_iter", "tol"),
        **view_rules("storage", "memory_limit", "checkpoint", "random_state", "verbose"),
        "variant": [StrOptions({"pairwise", "centroid"})],
        "regularization": [Interval(Real, 0, None, closed="left"), list, tuple, dict],
    }

    _takes_absent = True
    _keeps_float32 = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        variant: str = "pairwise",
        regularization: Any = 0.01,
        missing: str = "error",
        views: Any = None,
        kernel: Any = "rbf",
        kernel_params: Any = None,
        n_init: int = 10,
        max_iter: int = 100,
        tol: float = 1e-5,
        storage: Storage = "auto",
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.variant = variant
        self.regularization = regularization
        self.missing = missing
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
    def fit(self, X: Any, y: Any = None) -> "CoRegularizedSpectralClustering":
        """Cluster the samples.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``. With ``kernel="precomputed"``, matrices of affinities. A row of NaN means that the
            sample is absent from the view; in a matrix of affinities its row and column are NaN.
        y : None
            Ignored.

        Returns
        -------
        self : CoRegularizedSpectralClustering
            The fitted estimator.
        """
        views = read_views(self, X, reset=True)
        ones = np.ones(views.n_samples)
        check_cluster_count(self.n_clusters, ones)
        keep_run(self, views)
        strengths = view_numbers(self.regularization, views.names, "regularization")
        fitted = fit_view_kernels(
            views, self.kernel, self.kernel_params, centre_features=False, weights=ones, memory_limit=self.memory_limit
        )
        self.neighbor_recall_ = fitted.neighbor_recalls
        limit = room_beside(work_mib(len(ones), self.n_clusters), self.memory_limit)
        options: dict[str, Any] = {"normalize": "degrees", "storage": self.storage, "memory_limit": limit}
        kernels = normalized_views(fitted, views, ones, **options)
        # The vectors of every view, the block that they come from, and those that a view is drawn to.
        work = kernels.room_for_search(self.n_clusters, self.memory_limit, n_blocks=3 * len(views))
        among = kernels.among
        samples = None if views.observed is None else among.samples
        meter = Meter(self, "sweeps")
        result = co_regularized(
            among.operators,
            strengths,
            samples,
            n_vectors=self.n_clusters,
            centroid=self.variant == "centroid",
            max_iter=self.max_iter,
            tol=self.tol,
            room=kernels.room,
            work=work,
            keeper=self._keeper.part("sweeps"),
            on_step=meter,
        )
        meter.close()
        self.view_weights_: Floats = np.full(len(views), 1.0 / len(views))
        self.objective_ = result.objective
        self.objective_path_ = np.array(result.history)
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        warn_if_unfinished(result.converged, self.max_iter, "eigenvectors")
        warn_if_inexact(result.residual)
        if samples is None or result.centroid is not None:
            self.embedding_: Floats = unit_rows(result.embedding)
            choices = {"n_clusters": self.n_clusters, "n_init": self.n_init, "random_state": self.random_state}
            self.labels_: Ints = round_embedding(self, self.embedding_, X, y, **choices).labels
        else:
            self._round_observed(result.vectors, samples, X, y)
        warn_if_clusters_follow_absence(self.labels_, views.observed, 0)
        return self

    def _round_observed(self, vectors: Sequence[Floats], samples: Sequence[Ints], X: Any, y: Any) -> None:
        """Set embedding and labels where samples have the eigenvectors of some views only."""
        n = len(self.observed_)
        rows = observed_rows(vectors, samples, n)
        run = partial(ObservedRows(rows, samples, n).clusters, self.n_clusters)
        clusters = best_run(self, run, streams(self.random_state, self.n_init), X, y, MultiViewDescent)
        warn_if_empty(clusters.totals, self.n_clusters)
        self.labels_ = clusters.labels
        self.embedding_ = np.full((n, len(rows) * self.n_clusters), np.nan)
        for v, (block, known) in enumerate(zip(rows, samples, strict=True)):
            first = v * self.n_clusters
            self.embedding_[known, first : first + self.n_clusters] = 0.0
            self.embedding_[known, first : first + block.shape[1]] = block

    def _set_input_tags(self, tags: Any) -> None:
        set_view_kernel_tags(tags, self.kernel, self.views)
        tags.allow_nan = self.missing != "error"
