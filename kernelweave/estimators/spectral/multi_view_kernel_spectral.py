"""The multi-view kernel spectral clustering estimator."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.shared.elsewhere import all_labels, is_elsewhere, letting_go, placed_views
from kernelweave.estimators.shared.parameters import view_rules
from kernelweave.estimators.shared.scores import (
    CentredScores,
    Codebook,
    ScoreClusterer,
    ScoreModel,
    TrainedKernel,
    averaged,
    distinct_codebook,
    refuse_iterators,
)
from kernelweave.estimators.shared.single_kernel import copies_of, is_precomputed
from kernelweave.estimators.shared.view_kernels import (
    FittedViewKernels,
    fit_view_kernels,
    read_kernel_views,
    set_view_kernel_tags,
)
from kernelweave.estimators.shared.view_numbers import view_numbers
from kernelweave.estimators.spectral.faults import explained
from kernelweave.estimators.spectral.training_samples import training_rows, training_samples
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.config import config_context
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.memory import check_matrices, matrices_mib
from kernelweave.foundation.progress import track
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import Views, check_cluster_count, per_view, read_view_weights
from kernelweave.kernels.chunked import in_blocks
from kernelweave.kernels.device import device_backend
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.transforms import CentredKernel
from kernelweave.partitions.silhouettes import silhouettes
from kernelweave.solvers.spectral.kernel_spectral import (
    CoupledScores,
    committee_weights,
    coupled_kernel_spectral,
    degree_weights,
    kernel_spectral,
)

# Matrices besides kernels, centred kernels and eigenvectors: those that pass while a kernel is centred and decomposed.
DECOMPOSED = 4
# Those of the last view that are still there when the views are coupled.
LAST = 2


@dataclass(frozen=True)
class _Training:
    """The coupled problem solved on the samples trained on."""

    solution: CoupledScores
    kernels: list[KernelOperator]  # of every view, among these samples
    views: tuple[CentredScores, ...]

    @property
    def scores(self) -> Floats:
        """Scores of these samples, shape (V, m, q)."""
        return np.stack([model.scores for model in self.solution.models])

    @property
    def degrees(self) -> Floats:
        """Sums of their kernel rows, shape (V, m)."""
        return np.stack([model.degrees for model in self.solution.models])


class MultiViewKernelSpectralClustering(ScoreClusterer):
    """Multi-view kernel spectral clustering (MVKSC): one kernel spectral model per view, made to agree.

    Every view has scores as in kernel spectral clustering; a coupling term rewards agreement
    between the scores of different views, so that all views are trained jointly and every view still has a model.
    Clusters are sign patterns of the scores, averaged over the views or view by view. New samples need no new
    eigenproblem: train on some of the samples and assign the rest.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    gamma : float, list or dict, default=1.0
        Weight of the spread of each view's scores against agreement, for all views or one for each. It has an upper
        limit, which ``gamma_limits_`` reports and the error message states when it is exceeded.
    assignment : {"joint", "per_view"}, default="joint"
        Clusters from the averaged scores, or from those of each view (``view_labels_``).
    n_train_samples : int, default=None
        Number of samples to train on; the others are assigned afterwards. None means all.
    selection : {"random", "entropy"}, default="random"
        How these are chosen: at random, or spread out by swaps that raise their quadratic Renyi entropy.
    view_weights : {"uniform", "silhouette"}, array-like or dict, default="uniform"
        Weights of the views in the average of ``assignment="joint"``: all equal, those of a committee of least error,
        or fixed numbers, one per view. The error of a view at a sample is one minus its silhouette, brought to [0, 1],
        among the clusters of that view's scores.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    kernel : str, kernel object or callable, list or dict, default="rbf"
        Kernel of all views, as in :class:`KernelKMeans`, or one per view; its row sums must not be negative.
    kernel_params : dict, or list or dict of dicts, default=None
        Parameters of named kernels; a dict whose keys are the names of the views gives one for each.
    memory_limit : float, default=2048
        Memory in MiB that the stored kernel matrices of the training samples may take together.
    random_state : int, RandomState instance or None, default=None
        Seed for the choice of training samples.
    verbose : int, default=0
        Not used, since the only step is one eigenproblem; present for consistency with other estimators.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, most frequent pattern first; with ``assignment="per_view"`` those of ``best_view_``.
    view_labels_ : ndarray of shape (n_views, n_samples)
        Clusters view by view, with ``assignment="per_view"``; each view has its own numbering.
    best_view_ : str
        The view whose clusters have the largest mean silhouette, with ``assignment="per_view"``; ``predict`` and
        ``transform`` follow it.
    codebook_ : ndarray of shape (n_clusters, n_clusters - 1)
        Sign pattern of every cluster (of ``best_view_`` with ``assignment="per_view"``).
    view_codebooks_ : list of ndarray
        Those of every view, with ``assignment="per_view"``.
    eigenvalues_ : ndarray of shape (n_clusters - 1,)
        Leading eigenvalues 1 / rho of the coupled problem.
    objective_ : float
        Their sum; it is maximised.
    objective_path_, n_iter_, converged_ : ndarray of one value, 1, True
        There are no iterations.
    gamma_limits_ : ndarray of shape (n_views,)
        Upper limit of gamma; infinity for a single view, which has no limit.
    view_weights_ : ndarray of shape (n_views,)
        Weights of the views in the average.
    view_names_ : list of str
        Names of the views.
    scores_ : ndarray of shape (n_views, n_train, n_clusters - 1)
        Scores of the samples trained on.
    degrees_ : ndarray of shape (n_views, n_train)
        Sums of their kernel rows; 0 where a sample resembles no other in that view.
    train_indices_ : ndarray of shape (n_train,)
        Which samples these are.
    warnings_ : tuple of str
        Warnings issued during the fit, each listed once.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a table with string column names.

    See Also
    --------
    KernelSpectralClustering : The same for one view; a single view here gives its clusters.
    MultiViewSpectralClustering : Several views in one sum of kernels, weights learned.
    kernelweave.model_selection.AnnealingSearch : Finds kernel parameters and gamma without labels.

    Notes
    -----
    Cost: a few dozen products of every kernel with n_clusters vectors. Where a kernel has negative eigenvalues or
    gamma is above half of its limit, and for up to 1,200 samples, an eigenproblem of size m for each view and one of
    the size of their ranks together. Then O(n m) kernel values for the labels of all samples, a few thousand samples
    at a time. Memory: V m^2. Fewer sign patterns than clusters are an error.

    Source: L. Houthuys, R. Langone and J. Suykens, "Multi-view kernel spectral clustering", Information Fusion 44,
    2018, section 3, solved in symmetric form.

    Examples
    --------
    >>> from kernelweave import MultiViewKernelSpectralClustering
    >>> from kernelweave.datasets import make_mvksc_synth2
    >>> data = make_mvksc_synth2(400, random_state=0)
    >>> model = MultiViewKernelSpectralClustering(2, kernel_params={"sigma": 1.0}, n_train_samples=200, random_state=0)
    >>> labels = model.fit(data.views).labels_
    >>> bool((model.predict(data.views) == labels).all()), model.scores_.shape
    (True, (3, 200, 1))
    """

    _objective = "maximize"

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        "gamma": [Interval(Real, 0, None, closed="left"), list, tuple, dict],
        "assignment": [StrOptions({"joint", "per_view"})],
        "n_train_samples": [Interval(Integral, 1, None, closed="left"), None],
        "selection": [StrOptions({"random", "entropy"})],
        "view_weights": [StrOptions({"uniform", "silhouette"}), "array-like", dict],
        **view_rules("n_clusters", "views", "kernel", "kernel_params", "memory_limit", "random_state", "verbose"),
    }

    _takes_blocks = True
    _takes_device = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gamma: Any = 1.0,
        assignment: str = "joint",
        n_train_samples: int | None = None,
        selection: str = "random",
        view_weights: Any = "uniform",
        views: Any = None,
        kernel: Any = "rbf",
        kernel_params: Any = None,
        memory_limit: float = 2048,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.assignment = assignment
        self.n_train_samples = n_train_samples
        self.selection = selection
        self.view_weights = view_weights
        self.views = views
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "MultiViewKernelSpectralClustering":
        """Train on (some of) the samples, then assign all of them.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``. Kernel matrices if ``kernel="precomputed"``.
        y : None
            Ignored.

        Returns
        -------
        self : MultiViewKernelSpectralClustering
            The fitted estimator.
        """
        refuse_iterators(X)
        views = placed_views(self, X) if is_elsewhere(self, X) else read_kernel_views(self, X, reset=True)
        if in_blocks(views.blocks[0]) and self.assignment == "per_view":
            raise ParameterError(
                "assignment='per_view' is not available for tables in blocks; use 'joint', or fit on a sample in "
                "memory."
            )
        with letting_go(views):
            self._fit(views, X)
        return self

    def _fit(self, views: Views, X: Any) -> None:
        """Train on views that were read."""
        n = views.n_samples
        check_cluster_count(self.n_clusters, np.ones(n))
        gammas = view_numbers(self.gamma, views.names, "gamma")
        fixed = self._fixed_weights(views.names)
        indices = training_samples(
            n,
            self.n_train_samples,
            self.selection,
            self.n_clusters,
            lambda: self._fit_kernels(views).operators("blockwise", self.memory_limit, check_definite=False),
            streams(self.random_state, 1, "training samples")[0],
            elsewhere=in_blocks(views.blocks[0]),
            memory_limit=self.memory_limit,
        )
        for _ in track(self, range(1), total=1, what="eigenproblem", X=X):
            training = self._train(views, indices, gammas)
        self.train_indices_: Ints = indices
        self.scores_: Floats = training.scores
        self.degrees_: Floats = training.degrees
        self.eigenvalues_: Floats = training.solution.eigenvalues
        self.gamma_limits_: Floats = training.solution.limits
        self.objective_ = float(self.eigenvalues_.sum())
        self.objective_path_ = np.array([self.objective_])
        self.n_iter_ = 1
        self.converged_ = True
        for name in ("view_codebooks_", "view_labels_", "best_view_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if self.assignment == "joint":
            self.view_weights_: Floats = _committee(training, self.n_clusters) if fixed is None else fixed
            self._assign_jointly(training, X, whole=len(indices) == n)
        else:
            self.view_weights_ = np.full(len(views), 1.0 / len(views))
            self._assign_by_view(training, views.names, X, whole=len(indices) == n)

    def _assign_jointly(self, training: _Training, X: Any, *, whole: bool) -> None:
        """Make clusters of the averaged scores; ``whole`` where all samples were trained on."""
        scores = averaged(training.scores, self.view_weights_)
        book = distinct_codebook(scores, self.n_clusters)
        self._model = ScoreModel(training.views, self.view_weights_, book)
        self.codebook_ = book.patterns
        self.labels_: Ints = book.labels(scores) if whole else all_labels(self, X)

    def _assign_by_view(self, training: _Training, names: Sequence[str], X: Any, *, whole: bool) -> None:
        """Make clusters of the scores of every view, and take those of the view with the clearest ones."""
        pairs = zip(names, training.scores, strict=True)
        books = [distinct_codebook(scores, self.n_clusters, f" of view {name!r}") for name, scores in pairs]
        best = int(np.argmax([float(values.mean()) for values in _view_silhouettes(training, books)]))
        self._model = ScoreModel(training.views, np.eye(len(names))[best], books[best], tuple(books))
        self.best_view_ = names[best]
        self.codebook_ = books[best].patterns
        self.view_codebooks_ = [book.patterns for book in books]
        self.view_labels_: Ints = _view_labels(training, books) if whole else self.predict_views(X)
        self.labels_ = self.view_labels_[best]

    def transform_views(self, X: Any) -> Floats:
        """Return the scores of samples view by view.

        Parameters
        ----------
        X : views as in ``fit``, or an iterator of such blocks
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_views, n_new, n_clusters - 1)
            The scores of every view; ``transform`` has their weighted average.
        """
        check_is_fitted(self)
        return self._by_blocks(self._model.view_scores, X, axis=1)

    def predict_views(self, X: Any) -> Ints:
        """Return the clusters of samples view by view, for models with ``assignment="per_view"``.

        Parameters
        ----------
        X : views as in ``fit``, or an iterator of such blocks
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_views, n_new)
            Index of the codeword; each view has its own numbering.
        """
        check_is_fitted(self)
        if not hasattr(self, "view_codebooks_"):
            raise ParameterError(
                f"assignment={self.assignment!r} makes one codebook for all views. Fit with assignment='per_view' for "
                "labels of every view, or call predict."
            )
        return self._by_blocks(self._model.assign_by_view, X, axis=1)

    def _set_input_tags(self, tags: Any) -> None:
        set_view_kernel_tags(tags, self.kernel, self.views)

    def _read_new(self, X: Any) -> Sequence[Matrix]:
        return read_kernel_views(self, X, reset=False).blocks

    def _fixed_weights(self, names: Sequence[str]) -> Floats | None:
        """Return the weights of the views, or None where silhouettes decide."""
        if isinstance(self.view_weights, str) and self.view_weights == "uniform":
            return np.full(len(names), 1.0 / len(names))
        if self.assignment == "per_view":
            raise ParameterError(
                f"view_weights={self.view_weights!r} has no effect with assignment='per_view', which averages nothing. "
                "Leave it out, or set assignment='joint'."
            )
        if isinstance(self.view_weights, str):
            return None
        return read_view_weights(self.view_weights, names, "view_weights")

    def _fit_kernels(self, views: Views) -> FittedViewKernels:
        return fit_view_kernels(
            views, self.kernel, self.kernel_params, centre_features=False, memory_limit=self.memory_limit
        )

    def _train(self, views: Views, indices: Ints, gammas: Floats) -> _Training:
        """Solve the coupled problem on the samples trained on."""
        self._check_memory(views, len(indices))
        specs = per_view(self.kernel, views.names, "kernel")
        pairs = zip(views.blocks, specs, strict=True)
        blocks = tuple(training_rows(block, spec, indices) for block, spec in pairs)
        fitted = self._fit_kernels(Views(views.names, blocks))
        with config_context(device=None):  # kernels are centred here, and then placed
            kernels = fitted.operators("dense", np.inf, check_definite=False)
        named = zip(kernels, views.names, strict=True)
        inverses = []
        for op, name in named:
            with explained(where=f" of view {name!r}"):
                inverses.append(degree_weights(op, f" of view {name!r}"))
        centred = [CentredKernel(op, inverse) for op, inverse in zip(kernels, inverses, strict=True)]
        room = fitted.room_beside(kernels, self.memory_limit)
        if len(views) == 1:  # nothing to couple
            alone = kernel_spectral(kernels[0], self.n_clusters - 1, room=room)
            solution = CoupledScores((alone,), alone.eigenvalues, np.array([np.inf]))
        else:
            every = slice(None)
            matrices = [np.ascontiguousarray(op.block(every, every), dtype=np.float64) for op in centred]
            room -= matrices_mib(2 * len(views) + LAST, len(indices))
            with explained(views.names):
                solution = coupled_kernel_spectral(
                    matrices,
                    inverses,
                    gammas,
                    self.n_clusters - 1,
                    [bool(op.psd) for op in kernels],
                    room,
                    device_backend(),
                )
        trained = [
            TrainedKernel.of(kernel, spec, indices, views.n_samples)
            for kernel, spec in zip(fitted.kernels, specs, strict=True)
        ]
        scores = tuple(
            CentredScores.of(kernel, op, model.alphas)
            for kernel, op, model in zip(trained, centred, solution.models, strict=True)
        )
        return _Training(solution, kernels, scores)

    def _check_memory(self, views: Views, n_samples: int) -> None:
        """Refuse kernels that do not fit: as they are, centred, and their eigenvectors."""
        n_views = len(views)
        specs = per_view(self.kernel, views.names, "kernel")
        # What is trained on of a given matrix or table is copied, unless it is all of it.
        some = n_samples < views.n_samples
        stored = n_views if some else n_views - sum(map(is_precomputed, specs))
        beside = 2 * n_views + DECOMPOSED if n_views > 1 else 0
        check_matrices(
            stored + beside,
            n_samples,
            self.memory_limit,
            what=f"{n_views} kernels and their eigenvectors",
            remedy="set n_train_samples",
            row_bytes=self._row_bytes(views, some=some),
        )

    def _row_bytes(self, views: Views, *, some: bool) -> float:
        """Return what is kept of every sample trained on; where these are ``some`` of all, they are copied before."""
        specs = per_view(self.kernel, views.names, "kernel")
        params = per_view(self.kernel_params, views.names, "kernel_params")
        total = 0.0
        for block, spec, own_params in zip(views.blocks, specs, params, strict=True):
            if isinstance(block, np.ndarray) and not is_precomputed(spec):
                total += copies_of(block, spec, own_params, centre_features=False).kept
                total += block.shape[1] * block.itemsize if some else 0.0
        return total


def _view_labels(training: _Training, books: Sequence[Codebook]) -> Ints:
    """Return the clusters of the samples trained on, view by view."""
    return np.stack([book.labels(scores) for book, scores in zip(books, training.scores, strict=True)])


def _view_silhouettes(training: _Training, books: Sequence[Codebook]) -> list[Floats]:
    """Return the silhouettes of the samples trained on, view by view; -1 where all are in one cluster."""
    values = []
    for op, labels, book in zip(training.kernels, _view_labels(training, books), books, strict=True):
        alone = labels.min() == labels.max()
        values.append(np.full(len(labels), -1.0) if alone else silhouettes(op, labels, len(book.patterns)))
    return values


def _committee(training: _Training, n_clusters: int) -> Floats:
    """Return the weights of least error, the error taken from silhouettes."""
    books = [Codebook.of(scores, n_clusters) for scores in training.scores]
    return committee_weights(np.stack([0.5 - 0.5 * values for values in _view_silhouettes(training, books)]))
