"""The kernel spectral clustering estimator."""

from numbers import Integral
from typing import Any

import numpy as np

from kernelweave.estimators.shared.center_clusterer import is_precomputed
from kernelweave.estimators.shared.kernel_estimator import KERNEL_RULES, KernelEstimator
from kernelweave.estimators.shared.scores import ScoreClusterer, chosen_samples, refuse_iterators, training_part
from kernelweave.estimators.spectral.faults import explained
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.progress import track
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import check_cluster_count
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import Storage
from kernelweave.solvers.spectral.kernel_spectral import decode, kernel_spectral, score_floor


class KernelSpectralClustering(ScoreClusterer, KernelEstimator):
    """Kernel spectral clustering (KSC): spectral clustering as a model, with scores for samples it has not seen.

    The leading eigenvectors of D^-1 M_D Omega (Omega the kernel matrix, D its row sums, M_D centring) give every sample
    k - 1 scores that are linear in its kernel row; the signs of the scores are a pattern, and the k most frequent
    patterns of the training samples are the clusters. Equivalent to spectral clustering with the random walk Laplacian,
    but new samples need no new eigenproblem: train on a part of the data and assign the rest.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : str, kernel object or callable, default="rbf"
        As in :class:`KernelKMeans`; values must not be negative on the whole.
    kernel_params : dict, default=None
        Parameters of a named kernel. The width matters: see the guide for how to tune it without labels.
    n_train_samples : int, default=None
        Number of samples to train on; the others are assigned afterwards. None takes all.
    selection : {"random", "entropy"}, default="random"
        How these are chosen: at random, or spread out by swaps that raise their quadratic Renyi entropy.
    storage : {"auto", "dense", "blockwise"}, default="auto"
        As in :class:`KernelKMeans`, for the training samples.
    memory_limit : float, default=2048
        MiB a stored kernel matrix may take.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples trained on.
    verbose : int, default=0
        Taken for likeness with other estimators; there is nothing to wait for.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, 0..n_clusters-1, most frequent pattern first.
    codebook_ : ndarray of shape (n_clusters, n_clusters - 1)
        Sign pattern of every cluster.
    eigenvalues_ : ndarray of shape (n_clusters - 1,)
        Leading eigenvalues, largest first.
    objective_ : float
        Their sum.
    objective_path_, n_iter_, converged_ : ndarray of one value, 1, True
        There are no steps.
    dual_coef_ : ndarray of shape (n_train, n_clusters - 1)
        Coefficients alpha: scores are kernel rows times these, plus the bias.
    bias_ : ndarray of shape (n_clusters - 1,)
        The bias.
    scores_ : ndarray of shape (n_train, n_clusters - 1)
        Scores of the samples trained on.
    degrees_ : ndarray of shape (n_train,)
        Sums of their kernel rows; 0 where a sample is like none.
    train_indices_ : ndarray of shape (n_train,)
        Which samples these are.
    warnings_ : tuple of str
        Warnings of the fit, each once; empty where there were none.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Their names, where X had string column names.

    See Also
    --------
    MultiViewKernelSpectralClustering : The same for several views.
    kernelweave.model_selection.AnnealingSearch : Finds kernel parameters and the number of clusters without labels.

    Notes
    -----
    Cost: some tens of products of the m x m kernel with n_clusters vectors, then O(n m) kernel values for the labels of
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

    _distances_only = False

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **KERNEL_RULES,
        "n_train_samples": [Interval(Integral, 1, None, closed="left"), None],
        "selection": [StrOptions({"random", "entropy"})],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        kernel_params: dict[str, Any] | None = None,
        n_train_samples: int | None = None,
        selection: str = "random",
        storage: Storage = "auto",
        memory_limit: float = 2048,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.n_train_samples = n_train_samples
        self.selection = selection
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
            Samples, or the kernel matrix with ``kernel="precomputed"``.
        y : None
            Ignored.

        Returns
        -------
        self : KernelSpectralClustering
            The fitted estimator.
        """
        refuse_iterators(X)
        given = self._read(X, reset=True)
        n = given.shape[0]
        check_cluster_count(self.n_clusters, np.ones(n))
        self.train_indices_: Ints = chosen_samples(
            n,
            self.n_train_samples,
            self.selection,
            self.n_clusters,
            lambda: [self._settle_kernel(given, np.ones(n)).operator("blockwise", self.memory_limit)],
            streams(self.random_state, 1)[0],
        )
        part = training_part(given, self.kernel, self.train_indices_)
        kernel = self._settle_kernel(part, np.ones(len(self.train_indices_)))
        op = kernel.operator(self.storage, self.memory_limit)
        for _ in track(self, range(1), total=1, what="eigenproblem", X=X):
            with explained():
                found = kernel_spectral(op, self.n_clusters - 1)
        self._kernel = kernel.for_new_samples()
        self.dual_coef_ = found.alphas
        self.bias_ = found.bias
        self.scores_ = found.scores
        self.degrees_ = found.degrees
        self.eigenvalues_ = found.eigenvalues
        self.objective_ = float(found.eigenvalues.sum())
        self.objective_path_ = np.array([self.objective_])
        self.n_iter_ = 1
        self.converged_ = True
        self._floor = score_floor(found.scores)
        self._n_features_out = self.n_clusters - 1
        self.codebook_ = self._codebook(found.scores)
        whole = len(self.train_indices_) == n
        self.labels_: Ints = decode(found.scores, self.codebook_, self._floor) if whole else self.predict(X)
        return self

    def _scores(self, X: Any) -> Floats:
        return np.asarray(self._cross(X).matmat(self.dual_coef_) + self.bias_)

    def _row_sums(self, X: Any) -> Floats:
        cross = self._cross(X)
        return cross.matmat(np.ones((cross.shape[1], 1)))[:, 0]

    def _cross(self, X: Any) -> KernelOperator:
        X = self._read(X, reset=False)
        if is_precomputed(self.kernel):
            X = X[:, self.train_indices_]
        return self._kernel.cross(X)
