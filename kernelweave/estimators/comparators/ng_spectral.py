"""The spectral clustering of Ng, Jordan and Weiss."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelweave.estimators.shared.checkpoints import keep_run
from kernelweave.estimators.shared.embedding import (
    EigenvectorExtension,
    EmbeddingClusterer,
    relaxed_clusters,
    unit_rows,
)
from kernelweave.estimators.shared.fit_warnings import warn_if_inexact, warn_if_unfinished
from kernelweave.estimators.shared.parameters import rules
from kernelweave.estimators.shared.single_kernel import (
    fit_or_approximate,
    kernel_beside_search,
    neighbor_recall,
    read_kernel_input,
    room_beside_kernels,
    room_for_search,
    set_kernel_tags,
)
from kernelweave.estimators.shared.view_kernels import ViewKernel, ViewKernels, WeightedViewKernels
from kernelweave.foundation.array_types import Floats, Matrix
from kernelweave.foundation.memory import room_beside
from kernelweave.foundation.sklearn_internals import fit_context
from kernelweave.inputs import check_cluster_count
from kernelweave.kernels.spec.fitting import Storage
from kernelweave.kernels.transforms import DegreeKernel, ShiftedKernel
from kernelweave.kernels.weighted_sum import CompositeKernel
from kernelweave.solvers.spectral.eigenvectors import work_mib


class NgSpectralClustering(EmbeddingClusterer):
    """Spectral clustering after Ng, Jordan and Weiss: leading eigenvectors of affinities, then k-means on their rows.

    The affinities, those of samples with themselves left out, are divided by the square roots of the samples' degrees,
    the leading ``n_clusters`` eigenvectors put side by side and their rows scaled to unit length. Finds clusters that
    are connected rather than compact. A baseline: on a matrix without a diagonal, with one view and
    ``normalize="degrees"``, :class:`MultiViewSpectralClustering` is the same.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of eigenvectors.
    kernel : str, kernel object or callable, default="rbf"
        Kernel, as in :class:`KernelKMeans`; its row sums must not be negative.
    kernel_params : dict, default=None
        Parameters of a named kernel.
    n_init : int, default=10
        Number of starts of k-means.
    max_iter : int, default=300
        Maximum number of iterations of a run of k-means.
    tol : float, default=0.0
        A run of k-means ends when a step lowers its objective by at most ``tol`` times its value.
    storage : {"auto", "dense", "blockwise"}, default="auto"
        As in :class:`KernelKMeans`.
    memory_limit : float, default=2048
        Memory in MiB that the stored kernel matrix may take.
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
    neighbor_recall_ : float or None
        Share of the nearest neighbours that the search of ``kernel="nearest_neighbors"`` found, below 1 only for
        ``"neighbor_search": "approximate"`` in ``kernel_params``; None for other kernels.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Leading eigenvalues, largest first; at most 1.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Eigenvectors, rows scaled to unit length; the input of k-means. Columns whose eigenvalue is not above zero are
        zero: such vectors separate samples that are similar.
    objective_ : float
        The relaxed normalized cut: the number of clusters less the sum of the eigenvalues; it is minimised.
    objective_path_, n_iter_ : ndarray of one value, 1
        There are no outer iterations.
    converged_ : bool
        Whether the best run of k-means converged before ``max_iter``.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a table with string column names.

    See Also
    --------
    MultiViewSpectralClustering : Several views, weights learned.
    CoRegularizedSpectralClustering : Several views whose eigenvectors are made to agree.
    KernelSpectralClustering : Clusters as sign patterns, trained on some of the samples.
    GraphCut : Normalized cuts that are not relaxed.

    Notes
    -----
    Cost: a few dozen products of the kernel with n_clusters vectors; with up to 1,200 samples one dense eigenproblem.
    New samples are placed by the Nystroem extension of the eigenvectors. A sample that resembles no other has a row of
    zeros. A training sample passed to ``predict`` counts as a new sample; near the border between clusters its
    label may differ. Samples that are all equally similar to each other, as two always are, form one cluster.

    Source: A. Ng, M. Jordan and Y. Weiss, "On spectral clustering: analysis and an algorithm", NIPS 2001; PhD 1.1.2.

    Examples
    --------
    >>> from kernelweave import NgSpectralClustering
    >>> from kernelweave.datasets import make_two_rings
    >>> X, y = make_two_rings(random_state=0)
    >>> model = NgSpectralClustering(2, kernel="nearest_neighbors", random_state=0).fit(X)
    >>> bool((model.labels_ == y).all() or (model.labels_ == 1 - y).all())
    True
    >>> bool((model.predict(X) == model.labels_).all())
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        **rules("n_clusters", "kernel", "kernel_params", "n_init", "max_iter", "tol"),
        **rules("storage", "memory_limit", "checkpoint", "random_state", "verbose"),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        kernel_params: dict[str, Any] | None = None,
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 0.0,
        storage: Storage = "auto",
        memory_limit: float = 2048,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
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
    def fit(self, X: Any, y: Any = None) -> "NgSpectralClustering":
        """Cluster the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Samples, or the matrix of affinities with ``kernel="precomputed"``.
        y : None
            Ignored.

        Returns
        -------
        self : NgSpectralClustering
            The fitted estimator.
        """
        table = read_kernel_input(self, X, reset=True)
        ones = np.ones(table.shape[0])
        k = self.n_clusters
        check_cluster_count(k, ones)
        keep_run(self, table)
        kernel = fit_or_approximate(
            table, self.kernel, self.kernel_params, centre_features=False, weights=ones, memory_limit=self.memory_limit
        )
        self.neighbor_recall_ = neighbor_recall(kernel)
        limit = room_beside(work_mib(len(ones), k), self.memory_limit)
        plain = kernel.operator(self.storage, limit)
        kernel, plain = kernel_beside_search(kernel, plain, table, k, self.memory_limit)
        room = room_beside_kernels([kernel], [plain], limit)
        work = room_for_search([kernel], [plain], k, self.memory_limit)
        op = DegreeKernel(ShiftedKernel(plain, -plain.diag()), ones)  # what a sample has with itself says nothing
        # With one kernel there are no weights to learn, and one eigenproblem gives the relaxed clusters.
        relaxed = relaxed_clusters(
            CompositeKernel([op], [1.0]),
            ones,
            np.array([float(k)]),
            room,
            work,
            n_vectors=k,
            p=1.0,
            view_weights=np.ones(1),
            learned=False,
        )
        warn_if_inexact(relaxed.result.residual)
        self.eigenvalues_: Floats = relaxed.result.eigenvalues
        self.objective_ = relaxed.result.objective
        self.objective_path_ = np.array(relaxed.result.history)
        self.n_iter_ = relaxed.result.n_iter
        kernel = kernel.after_fit().for_new_samples()
        new_samples = ViewKernel(kernel, degree_weights=ones, column_scale=op.column_scale)
        only = WeightedViewKernels(ViewKernels((new_samples,)), np.ones(1))
        extension = EigenvectorExtension(only, relaxed.sources)
        options: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
        clusters = self._round(extension, unit_rows(relaxed.embedding), X, y, **options)
        self.converged_ = clusters.converged
        warn_if_unfinished(clusters.converged, self.max_iter)
        return self

    def _set_input_tags(self, tags: Any) -> None:
        set_kernel_tags(tags, self.kernel)

    def _read_new(self, X: Any) -> Sequence[Matrix]:
        return (read_kernel_input(self, X, reset=False),)
