"""The k-medoids estimator."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.comparators.distances import (
    METRICS,
    ROWS,
    SPARSE_METRICS,
    check_distance_matrix,
    given_distances,
    measured,
    measured_among,
)
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.clusterer import Clusterer
from kernelweave.estimators.shared.elsewhere import answers_lazily
from kernelweave.estimators.shared.fit_warnings import warn_if_empty, warn_if_unfinished
from kernelweave.estimators.shared.parameters import rules
from kernelweave.estimators.shared.runs import kept_run
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.checkpoints import Keeper
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.memory import PASSING, matrices_mib, rows_within
from kernelweave.foundation.progress import track
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import StrOptions, fit_context
from kernelweave.foundation.threads import parallel_map, thread_count
from kernelweave.inputs import check_cluster_count, read_samples, read_weights
from kernelweave.solvers.comparators.k_medoids import (
    MEDOID_INITS,
    MOST_DISTANCES,
    MedoidRun,
    k_medoids,
    start_medoids,
)
from kernelweave.solvers.shared.best_run import best_of

# Arrays of the size of a batch of distances, and of rows that are measured, that are alive at a time.
ARRAYS_HELD = 8
ROWS_HELD = 3


@dataclass(frozen=True)
class MedoidModel:
    """The medoids, and how distances to them are measured."""

    metric: Any
    metric_params: dict[str, Any] | None
    indices: Ints  # (k,) among the training samples
    centers: Any  # (k, d) their features; None where distances are precomputed
    slack: float  # distances that differ by no more are equal

    def distances(self, X: Matrix) -> Floats:
        """Return the distances to the medoids of samples, or of rows of distances to all training samples."""
        if self.centers is None:
            return given_distances(X[:, self.indices])
        if sp.issparse(X) != sp.issparse(self.centers):
            X = X.toarray() if sp.issparse(X) else sp.csr_array(X)
        return measured(X, self.centers, self.metric, self.metric_params)

    def assign(self, X: Matrix) -> Ints:
        """Return the nearest medoid of every sample, the first of those equally near."""
        distances = self.distances(X)
        return np.asarray((distances <= distances.min(axis=1, keepdims=True) + self.slack).argmax(axis=1))


@answers_lazily("predict", "transform", "score")
class KMedoids(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """k-medoids: every cluster is represented by one of its samples, for any distance.

    Medoids are swapped with other samples as long as this lowers the sum of the distances of the samples to their
    medoids. At the end, no swap of one medoid lowers it. A baseline for methods that choose exemplars.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    metric : str or callable, default="euclidean"
        A distance of :func:`sklearn.metrics.pairwise_distances`, or a function of two samples that returns a number
        and is the same both ways. With ``"precomputed"`` X is the matrix of distances between the samples.
    metric_params : dict, default=None
        Further arguments of the metric, such as ``{"p": 3}`` of ``"minkowski"``.
    init : {"k-medoids++", "build", "random"} or array of shape (n_clusters,), default="k-medoids++"
        Initial medoids: samples drawn far apart, samples chosen one by one to lower the sum most (the BUILD phase of
        PAM, one run), samples drawn at random, or the samples with these indices (one run).
    n_init : int, default=5
        Number of starts; the run with the lowest sum of distances is kept.
    max_iter : int, default=100
        Maximum number of passes over the samples in one run.
    memory_limit : float, default=2048
        Memory in MiB that the distance matrix may take; beyond it distances are recomputed in every pass.
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
    exemplar_indices_ : ndarray of shape (n_clusters,)
        Index of the sample that represents each cluster.
    medoid_indices_ : ndarray of shape (n_clusters,)
        The same, under the usual name for this method.
    cluster_centers_ : {ndarray, CSR array} of shape (n_clusters, n_features) or None
        Features of the medoids; None with ``metric="precomputed"``.
    inertia_, objective_ : float
        Distances of the samples to their medoids, summed; this is minimised.
    objective_path_ : ndarray
        That sum for the start and after every pass; it never increases.
    n_iter_ : int
        Number of passes of the best run.
    converged_ : bool
        Whether the best run ended because no swap lowers the sum, rather than at ``max_iter``.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if X had string column names.

    See Also
    --------
    AffinityPropagation : Exemplars without initialisation, by messages between samples.
    ConvexMixture : Exemplars as the components of a mixture with a single best solution.

    Notes
    -----
    Cost: O(n^2) per pass, whatever the number of clusters, and a few passes per start, after O(n^2 d) for the
    distances; starts run in parallel. Memory: 8 n^2 bytes or, beyond ``memory_limit``, O(n n_clusters).

    With squared distances (``metric="sqeuclidean"``) this is k-means with samples for centres. Samples of weight 0
    get a label and are never medoids.

    The alternating procedure of PhD 1.1.1, which assigns samples to their nearest medoid and then moves each medoid to
    the middle of its cluster, stops at many points where a swap still helps.

    Source: PhD 1.1.1 (1.1), MSc 1.3.1; L. Kaufman and P. J. Rousseeuw, "Clustering by means of medoids", 1987;
    E. Schubert and P. J. Rousseeuw, "Fast and eager k-medoids clustering", Information Systems 101, 2021, for the
    change of the sum with all exchanges of a candidate in O(n).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import KMedoids
    >>> X = np.array([[0.0], [1.0], [2.0], [50.0], [51.0], [90.0]])
    >>> model = KMedoids(2, metric="manhattan", random_state=0).fit(X)
    >>> sorted(model.exemplar_indices_.tolist()), float(model.inertia_)
    ([1, 4], 42.0)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        "metric": [StrOptions({*METRICS, "precomputed"}), callable],
        "metric_params": [dict, None],
        "init": [StrOptions(set(MEDOID_INITS)), "array-like"],
        **rules("n_clusters", "n_init", "max_iter", "memory_limit", "checkpoint", "random_state", "verbose"),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: Any = "k-medoids++",
        n_init: int = 5,
        max_iter: int = 100,
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.metric_params = metric_params
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def _set_input_tags(self, tags: Any) -> None:
        tags.sparse = isinstance(self.metric, str) and self.metric in SPARSE_METRICS
        tags.pairwise = self._is_precomputed
        tags.positive_only = self._is_precomputed

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "KMedoids":
        """Cluster the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or their distances with ``metric="precomputed"``.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; a sample of weight 2 counts as two equal samples. One of weight 0 only gets a label.

        Returns
        -------
        self : KMedoids
            The fitted estimator.
        """
        X = self._read(X, reset=True)
        weights = read_weights(sample_weight, X.shape[0])
        check_cluster_count(self.n_clusters, weights)
        keep_run(self, X, weights)
        distances = self._distances(X)
        starts = self._starts(weights)
        # Starts run in parallel, and share the memory that the distances leave.
        at_once = min(len(starts), thread_count())
        most = rows_within(self._room(X.shape[0]) / at_once, ARRAYS_HELD * 8, MOST_DISTANCES)

        def run(start: Any, _: Keeper) -> MedoidRun:
            if isinstance(start, np.random.Generator):
                start = start_medoids(distances, self.init, weights, self.n_clusters, start, most)
            return k_medoids(distances, start, weights, max_iter=self.max_iter, most_distances=most)

        runs = parallel_map(kept_run(self._keeper, run, MedoidRun), list(enumerate(starts)))
        best = best_of(track(self, runs, total=len(starts), what="starts", X=X, y=y))
        self.labels_: Ints = best.labels
        self.exemplar_indices_: Ints = best.medoids
        self.cluster_centers_ = None if self._is_precomputed else X[best.medoids]
        self._model = MedoidModel(self.metric, self.metric_params, best.medoids, self.cluster_centers_, best.slack)
        self.objective_ = best.objective
        self.inertia_ = best.objective
        self.objective_path_ = np.array(best.history)
        self.n_iter_ = best.n_iter
        self.converged_ = best.converged
        warn_if_unfinished(best.converged, self.max_iter, "medoids")
        warn_if_empty(best.totals, self.n_clusters)
        return self

    @property
    def medoid_indices_(self) -> Ints:
        """The same as ``exemplar_indices_``."""
        return self.exemplar_indices_

    @property
    def _n_features_out(self) -> int:
        return len(self.exemplar_indices_)

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _read_new(self, X: Any) -> Matrix:
        return self._read(X, reset=False)

    def _read(self, X: Any, *, reset: bool) -> Matrix:
        dense = not (isinstance(self.metric, str) and self.metric in SPARSE_METRICS)
        given = self._is_precomputed
        X = read_samples(self, X, reset=reset, keep_float32=given, dense=dense, features=not given)
        if given:
            check_distance_matrix(X, square=reset)
        return X

    def _distances(self, X: Matrix) -> Callable[[Ints], Floats]:
        """Return the function that gives the distances of some samples to all."""
        n = X.shape[0]
        if self._is_precomputed:
            return lambda chosen: given_distances(X[chosen])
        if matrices_mib(1, n) <= self.memory_limit:
            rows = rows_within(self._room(n), ROWS_HELD * 8 * n, ROWS)
            D = measured_among(X, self.metric, self.metric_params, rows)
            return lambda chosen: D[chosen]
        return lambda chosen: measured(X[chosen], X, self.metric, self.metric_params)

    def _room(self, n: int) -> float:
        """Return the MiB left within the limit after the distances, where they are stored."""
        taken = 0.0 if self._is_precomputed or matrices_mib(1, n) > self.memory_limit else matrices_mib(1, n)
        return max(PASSING * self.memory_limit, (self.memory_limit - taken) / 2)

    def _starts(self, weights: Floats) -> list[Any]:
        """Return what each run starts from: a generator, or given medoids."""
        if isinstance(self.init, str):
            return list(streams(self.random_state, 1 if self.init == "build" else self.n_init))
        return [_read_medoids(self.init, self.n_clusters, weights)]

    def transform(self, X: Any) -> Floats:
        """Return the distances of samples to the medoids.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features) or (n_new, n_training)
            Samples, or their distances to the training samples with ``metric="precomputed"``.

        Returns
        -------
        distances : ndarray of shape (n_new, n_clusters)
            Distances in the metric.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        return self._model.distances(self._read_new(X))

    def predict(self, X: Any) -> Ints:
        """Return the cluster of new samples: that of the nearest medoid.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features) or (n_new, n_training)
            New samples, or their distances to the training samples with ``metric="precomputed"``.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Index of the nearest medoid, the first of those equally near.
            For a Dask collection it is a Dask array, computed when asked for.
        """
        check_is_fitted(self)
        return self._model.assign(self._read_new(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective of samples with the fitted medoids, so that larger is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features) or (n_new, n_training)
            Samples, or their distances to the training samples with ``metric="precomputed"``.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_new,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            Minus the distances to the nearest medoids, summed.
        """
        check_is_fitted(self)
        nearest = self._model.distances(self._read_new(X)).min(axis=1)
        return -float(read_weights(sample_weight, len(nearest)) @ nearest)


def _read_medoids(init: Any, n_clusters: int, weights: Floats) -> Ints:
    """Return starting medoids given by the numbers of their samples."""
    medoids = np.asarray(init)
    n = len(weights)
    if medoids.shape != (n_clusters,):
        raise ParameterError(f"init has shape {medoids.shape}, expected ({n_clusters},): give one sample per cluster.")
    if not np.issubdtype(medoids.dtype, np.integer):
        raise ParameterError(f"init holds values of type {medoids.dtype}; give the numbers of samples, 0..{n - 1}.")
    if medoids.min() < 0 or medoids.max() >= n:
        raise ParameterError(f"init holds numbers from {medoids.min()} to {medoids.max()}; samples are 0..{n - 1}.")
    if len(np.unique(medoids)) < n_clusters:
        raise ParameterError(f"init={medoids.tolist()} names a sample twice; give {n_clusters} different samples.")
    if not (weights[medoids] > 0).all():
        raise ParameterError("init names a sample of weight 0, which cannot be a medoid. Choose another one.")
    return medoids.astype(np.intp)
