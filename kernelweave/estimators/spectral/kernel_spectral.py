"""The kernel spectral clustering estimator."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from kernelweave.estimators.shared.elsewhere import all_labels, letting_go
from kernelweave.estimators.shared.parameters import rules
from kernelweave.estimators.shared.scores import (
    BiasedScores,
    ScoreClusterer,
    ScoreModel,
    TrainedKernel,
    distinct_codebook,
    refuse_iterators,
)
from kernelweave.estimators.shared.single_kernel import (
    fit_or_approximate,
    kernel_beside_search,
    read_kernel_input,
    room_beside_kernels,
    room_for_search,
    set_kernel_tags,
)
from kernelweave.estimators.spectral.faults import explained
from kernelweave.estimators.spectral.training_samples import training_rows, training_samples
from kernelweave.foundation.array_types import Array, Floats, Ints, Matrix
from kernelweave.foundation.memory import room_beside
from kernelweave.foundation.progress import track
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import check_cluster_count
from kernelweave.kernels.chunked import in_blocks
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import FittedKernel, Storage
from kernelweave.solvers.spectral.eigenvectors import work_mib
from kernelweave.solvers.spectral.kernel_spectral import kernel_spectral


class KernelSpectralClustering(ScoreClusterer):
    """Kernel spectral clustering (KSC): spectral clustering as a model, with scores for samples it has not seen.

    The leading eigenvectors of D^-1 M_D Omega (Omega the kernel matrix, D its row sums, M_D centring) give every sample
    k - 1 scores that are linear in its kernel row; the signs of the scores are a pattern, and the k most frequent
    patterns of the training samples are the clusters. Equivalent to spectral clustering with the random walk Laplacian,
    but new samples need no new eigenproblem: train on some of the samples and assign the rest.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_train_samples : int, default=None
        Number of samples to train on; the others are assigned afterwards. None means all.
    selection : {"random", "entropy"}, default="random"
        How these are chosen: at random, or spread out by swaps that raise their quadratic Renyi entropy.
    kernel : str, kernel object or callable, default="rbf"
        As in :class:`KernelKMeans`; its row sums must not be negative.
    kernel_params : dict, default=None
        Parameters of a named kernel. The width matters: see the guide for how to tune it without labels.
    storage : {"auto", "dense", "blockwise"}, default="auto"
        As in :class:`KernelKMeans`, for the training samples.
    memory_limit : float, default=2048
        Memory in MiB that a stored kernel matrix may take.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of training samples.
    verbose : int, default=0
        Not used, since the only step is one eigenproblem; present for consistency with other estimators.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, 0..n_clusters-1, most frequent pattern first.
    codebook_ : ndarray of shape (n_clusters, n_clusters - 1)
        Sign pattern of every cluster.
    eigenvalues_ : ndarray of shape (n_clusters - 1,)
        Leading eigenvalues, largest first.
    objective_ : float
        Their sum; it is maximised.
    objective_path_, n_iter_, converged_ : ndarray of one value, 1, True
        There are no iterations.
    dual_coef_ : ndarray of shape (n_train, n_clusters - 1)
        Coefficients alpha: scores are kernel rows times these, plus the bias.
    bias_ : ndarray of shape (n_clusters - 1,)
        The bias.
    scores_ : ndarray of shape (n_train, n_clusters - 1)
        Scores of the samples trained on.
    degrees_ : ndarray of shape (n_train,)
        Sums of their kernel rows; 0 where a sample resembles no other.
    train_indices_ : ndarray of shape (n_train,)
        Which samples these are.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if X had string column names.

    See Also
    --------
    MultiViewKernelSpectralClustering : The same for several views.
    kernelweave.model_selection.AnnealingSearch : Finds kernel parameters and the number of clusters without labels.

    Notes
    -----
    Cost: a few dozen products of the m x m kernel with n_clusters vectors, then O(n m) kernel values for the labels of
    all samples, a few thousand samples at a time. A sample whose kernel row is zero gets the scores of the bias. Fewer
    sign patterns than clusters are an error.

    Source: L. Houthuys, R. Langone and J. Suykens, "Multi-view kernel spectral clustering", Information Fusion 44,
    2018, section 2.2; C. Alzate and J. Suykens, IEEE TPAMI 32, 2010.

    Examples
    --------
    >>> from kernelweave import KernelSpectralClustering
    >>> from kernelweave.datasets import make_two_rings
    >>> from kernelweave.metrics import normalized_mutual_info
    >>> X, y = make_two_rings(random_state=0)
    >>> model = KernelSpectralClustering(2, kernel_params={"sigma": 0.4}, n_train_samples=100, random_state=0).fit(X)
    >>> bool((model.predict(X) == model.labels_).all()), model.scores_.shape
    (True, (100, 1))
    """

    _objective = "maximize"

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        "n_train_samples": [Interval(Integral, 1, None, closed="left"), None],
        "selection": [StrOptions({"random", "entropy"})],
        **rules("n_clusters", "kernel", "kernel_params", "storage", "memory_limit", "random_state", "verbose"),
    }

    _takes_blocks = True
    _takes_device = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_train_samples: int | None = None,
        selection: str = "random",
        kernel: Any = "rbf",
        kernel_params: dict[str, Any] | None = None,
        storage: Storage = "auto",
        memory_limit: float = 2048,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_train_samples = n_train_samples
        self.selection = selection
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.storage = storage
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "KernelSpectralClustering":
        """Train on (some of) the samples, then assign all of them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or the kernel matrix if ``kernel="precomputed"``.
        y : None
            Ignored.

        Returns
        -------
        self : KernelSpectralClustering
            The fitted estimator.
        """
        refuse_iterators(X)
        table = read_kernel_input(self, X, reset=True)
        with letting_go(table):
            self._fit(table, X)
        return self

    def _fit(self, table: Any, X: Any) -> None:
        """Train on samples that were read."""
        n = table.shape[0]
        check_cluster_count(self.n_clusters, np.ones(n))
        indices = training_samples(
            n,
            self.n_train_samples,
            self.selection,
            self.n_clusters,
            lambda: [self._fit_kernel(table).operator("blockwise", self.memory_limit)],
            streams(self.random_state, 1, "training samples")[0],
            elsewhere=in_blocks(table),
            memory_limit=self.memory_limit,
        )
        kernel = self._fit_kernel(training_rows(table, self.kernel, indices))
        limit = room_beside(work_mib(len(indices), self.n_clusters), self.memory_limit)
        op = kernel.operator(self.storage, limit)
        if len(indices) == n:  # of some samples the table would be a copy, as large as what is kept
            kernel, op = kernel_beside_search(kernel, op, table, self.n_clusters, self.memory_limit)
        room = room_beside_kernels([kernel], [op], limit)
        work = room_for_search([kernel], [op], self.n_clusters, self.memory_limit)
        for _ in track(self, range(1), total=1, what="eigenproblem", X=X):
            with explained():
                result = kernel_spectral(op, self.n_clusters - 1, room=room, work=work).on_host(op.backend)
        book = distinct_codebook(result.scores, self.n_clusters)
        trained = TrainedKernel.of(kernel.after_fit(), self.kernel, indices, n)
        self._model = ScoreModel((BiasedScores(trained, result.alphas, result.bias),), np.ones(1), book)
        self.train_indices_: Ints = indices
        self.dual_coef_: Floats = result.alphas
        self.bias_: Floats = result.bias
        self.scores_: Floats = result.scores
        self.degrees_: Floats = result.degrees
        self.eigenvalues_: Floats = result.eigenvalues
        self.codebook_ = book.patterns
        self.objective_ = float(result.eigenvalues.sum())
        self.objective_path_ = np.array([self.objective_])
        self.n_iter_ = 1
        self.converged_ = True
        self.labels_: Ints = book.labels(result.scores) if len(indices) == n else all_labels(self, X)

    def kernel_row_sums(self, X: Any) -> Floats:
        """Return how much every sample resembles the training samples together: the sum of its kernel row.

        Scores of samples whose sum is almost zero are meaningless. The balanced line fit of two clusters
        also uses the sums.

        Parameters
        ----------
        X : array-like as in ``fit``, or an iterator of such blocks
            Samples.

        Returns
        -------
        sums : ndarray of shape (n_new,)
            Sums over the training samples.
        """
        return super().kernel_row_sums(X)[0]

    def _set_input_tags(self, tags: Any) -> None:
        set_kernel_tags(tags, self.kernel)

    def _read_new(self, X: Any) -> Sequence[Matrix]:
        return (read_kernel_input(self, X, reset=False),)

    def _fit_kernel(self, table: Array) -> FittedKernel:
        ones = np.ones(table.shape[0])
        return fit_or_approximate(
            table, self.kernel, self.kernel_params, centre_features=False, weights=ones, memory_limit=self.memory_limit
        )

    def _cross(self, X: Any) -> KernelOperator:
        """Return the kernel between samples and those trained on, which pictures draw."""
        return self._model.views[0].trained.cross(self._read_new(X)[0])
