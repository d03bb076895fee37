"""The affinity propagation estimator."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from kernelweave.estimators.shared.center_clusterer import CenterClusterer
from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.fit_warnings import warn_if_empty, warn_if_indefinite
from kernelweave.estimators.shared.parameters import rules
from kernelweave.estimators.shared.single_kernel import (
    fit_or_approximate,
    read_kernel_input,
    set_kernel_tags,
    why_without_distances,
)
from kernelweave.foundation.array_types import Array, Floats, Ints, Matrix
from kernelweave.foundation.errors import ConvergenceWarning
from kernelweave.foundation.logged_warnings import warn
from kernelweave.foundation.memory import check_matrices
from kernelweave.foundation.progress import Meter, track
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, fit_context
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.inputs import check_cluster_count
from kernelweave.kernels.divergences import KernelDivergence
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import FittedKernel
from kernelweave.partitions.algebra import TIE_TOLERANCE
from kernelweave.solvers.comparators.affinity_propagation import Exemplars, Messages, find_exemplars

# Square matrices held at a time: kernel, distances, similarities, two kinds of messages and what they are made from.
MATRICES = 8


@dataclass(frozen=True)
class ExemplarModel:
    """The exemplars, in the feature space of a kernel."""

    kernel: FittedKernel
    indices: Ints  # (k,) among the training samples
    norms: Floats  # (k,) k(e, e) of the exemplars
    slack: float  # squared distances that differ by no more are equal

    def assign(self, X: Matrix) -> Ints:
        """Return the nearest exemplar of every sample, for which k(x, x) is not needed."""
        distances = self._distances(self.kernel.cross(X))
        return np.asarray((distances <= distances.min(axis=1, keepdims=True) + self.slack).argmax(axis=1))

    def squared_distances(self, X: Matrix) -> Floats:
        """Return the squared distances of samples to the exemplars."""
        cross = self.kernel.cross(X)
        return np.maximum(cross.diag()[:, None] + self._distances(cross), 0.0)

    def _distances(self, cross: KernelOperator) -> Floats:
        """Return the squared distances less k(x, x)."""
        return np.asarray(self.norms - 2.0 * cross.block(slice(None), self.indices))


class AffinityPropagation(CenterClusterer):
    """Affinity propagation: exemplars chosen by messages between samples, in the feature space of a kernel.

    Samples send each other messages about how well one would serve as the exemplar of the other, until a set of
    exemplars emerges. Their number follows from the preference, the value of a sample as an exemplar before any
    message; or a preference is searched for that gives the requested number. A baseline for methods that choose
    exemplars.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters. With None, ``preference`` decides.
    preference : float or None, default=None
        Similarity of a sample to itself: lower values give fewer clusters. None means the median similarity of
        different samples. With ``n_clusters``, the value where the search starts.
    damping : float, default=0.9
        Share of the old messages kept in each iteration. With 0.5, scikit-learn's default, messages often oscillate,
        even on three clear groups; 0.9 takes twice the iterations where 0.5 converges.
    convergence_iter : int, default=50
        Number of iterations without a change of the exemplars after which a run ends. Fewer may end a run too early if
        there are many small clusters.
    kernel : str, kernel object or callable, default="linear"
        Kernel whose feature space distances are measured in; the similarity of two samples is minus their squared
        distance there. The linear kernel gives Euclidean distances. With ``"precomputed"`` X is the kernel matrix.
    kernel_params : dict, default=None
        Parameters of a named kernel.
    max_iter : int, default=1000
        Maximum number of iterations per preference.
    memory_limit : float, default=2048
        Memory in MiB that the square matrices may take; more samples than fit (about 6,000 by default) are refused.
    checkpoint : str or path-like, default=None
        File for the state of the fit, written every few seconds. A fit that was interrupted resumes from it when it is
        repeated with the same data and parameters, and gives the same labels. The file is removed when the fit ends
        without an error. Requires an integer ``random_state``.
    random_state : int, RandomState instance or None, default=None
        Seed for the tiny noise that breaks ties between equally good solutions.
    verbose : int, default=0
        1 shows the preferences tried.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample: the position of its exemplar in ``exemplar_indices_``.
    exemplar_indices_ : ndarray of shape (n_clusters,)
        The exemplars, in the order of the samples.
    preference_ : float
        The preference that led to them; minus infinity for one cluster and 0 for one per sample, which need no
        messages.
    objective_ : float
        Squared distances in feature space of the samples to their exemplars, summed; it is minimised.
    objective_path_ : ndarray
        That sum for every preference tried and, last, for the exemplars kept.
    n_iter_ : int
        Number of iterations of the run that gave the exemplars.
    converged_ : bool
        Whether the exemplars were stable for ``convergence_iter`` iterations before ``max_iter``.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if X had string column names.

    See Also
    --------
    KMedoids : A fixed number of exemplars by swaps, with a sum of distances that only decreases.
    ConvexMixture : Exemplars as the components of a mixture with a single best solution.
    sklearn.cluster.AffinityPropagation : The messages used here.

    Notes
    -----
    Cost: O(m^2) per iteration for m distinct samples; about a hundred iterations per preference, and up to 16
    preferences to reach a given number of clusters. Memory: 56 n^2 bytes.

    The number of clusters falls with the preference, but not one by one and not always: a wanted number may be given
    by no preference. The search begins between the gains that the k-th and the next exemplar bring when exemplars are
    chosen greedily, encloses the number and halves the interval. If no run gives it, the run with the fewest exemplars
    above it loses those whose samples suffer least by going to their second best, one by one, and each of those kept
    moves to the middle of its cluster.

    Equal samples are taken as one that counts several times, which changes no solution and lets the messages converge.

    Source: MSc 1.3.3 and Alg. 7, compared with in MSc 5.4 with a number of clusters reached by the preference, as
    here; B. J. Frey and D. Dueck, "Clustering by passing messages between data points", Science 315, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import AffinityPropagation
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 0.0], [4.0, 2.0], [4.0, 4.0], [4.0, 0.0]])
    >>> model = AffinityPropagation(2, random_state=0).fit(X)
    >>> model.exemplar_indices_.tolist(), model.labels_.tolist()
    ([0, 3], [0, 0, 0, 1, 1, 1])
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "preference": [Interval(Real, None, None, closed="neither"), None],
        "damping": [Interval(Real, 0.5, 1.0, closed="left")],
        "convergence_iter": [Interval(Integral, 1, None, closed="left")],
        **rules("kernel", "kernel_params", "max_iter", "memory_limit", "checkpoint", "random_state", "verbose"),
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        preference: float | None = None,
        damping: float = 0.9,
        convergence_iter: int = 50,
        kernel: Any = "linear",
        kernel_params: dict[str, Any] | None = None,
        max_iter: int = 1000,
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.preference = preference
        self.damping = damping
        self.convergence_iter = convergence_iter
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "AffinityPropagation":
        """Find the exemplars.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or the kernel matrix if ``kernel="precomputed"``.
        y : None
            Ignored.

        Returns
        -------
        self : AffinityPropagation
            The fitted estimator.
        """
        table = read_kernel_input(self, X, reset=True)
        ones = np.ones(table.shape[0])
        check_cluster_count(self.n_clusters or 1, ones)
        self._check_memory(len(ones))
        keep_run(self, table)
        kernel = fit_or_approximate(
            table, self.kernel, self.kernel_params, centre_features=True, weights=ones, memory_limit=self.memory_limit
        )
        op = kernel.operator("auto", self.memory_limit)
        warn_if_indefinite(op)
        slack = TIE_TOLERANCE * op.scale()
        for _ in track(self, [None], total=1, what="messages", X=table, y=y):
            result = self._find_exemplars(op, slack)
        norms = np.maximum(op.diag()[result.indices], 0.0)
        self._model = ExemplarModel(kernel.for_new_samples(), result.indices, norms, slack)
        self.exemplar_indices_: Ints = result.indices
        self.labels_: Ints = result.labels
        self.preference_ = result.preference
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.objective_ = result.objective
        self.objective_path_ = np.array(result.history)
        self._n_features_out = len(result.indices)
        self._warn(result)
        return self

    def _find_exemplars(self, op: KernelOperator, slack: float) -> Exemplars:
        (rng,) = streams(self.random_state, 1, "initialization")
        messages = Messages(self.damping, self.max_iter, self.convergence_iter, int(rng.integers(2**31 - 1)))
        with single_threaded_blas():  # the same last bit whatever the number of threads
            D = KernelDivergence(op).block(slice(None), slice(None))
        meter = Meter(self, "preferences")
        options: dict[str, Any] = {"n_clusters": self.n_clusters, "preference": self.preference}
        result = find_exemplars(D, slack, messages, keeper=self._keeper, on_run=meter, **options)
        meter.close()
        return result

    def _warn(self, result: Exemplars) -> None:
        if not result.converged:
            warn(
                f"The messages did not converge within max_iter={self.max_iter} iterations; "
                "the exemplars may be poor. Raise "
                f"max_iter, damping={self.damping} or convergence_iter.",
                ConvergenceWarning,
            )
        if self.n_clusters is not None:
            warn_if_empty(np.arange(self.n_clusters) < len(result.indices), self.n_clusters)

    def _check_memory(self, n: int) -> None:
        check_matrices(
            MATRICES,
            n,
            self.memory_limit,
            what=f"The {MATRICES} matrices of affinity propagation",
            remedy="use KMedoids, which needs none",
        )

    def _set_input_tags(self, tags: Any) -> None:
        set_kernel_tags(tags, self.kernel)

    def _read_new(self, X: Any) -> Array:
        return read_kernel_input(self, X, reset=False)

    def _why_without(self, method: str) -> str | None:
        return None if method == "predict" else why_without_distances(self.kernel)

    def _cross(self, X: Any) -> KernelOperator:
        """Return the kernel between samples and the training samples, which pictures draw."""
        return self._model.kernel.cross(self._read_new(X))  # type: ignore[attr-defined]
