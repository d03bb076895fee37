"""The multi-view kernel spectral clustering estimator."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.shared.center_clusterer import is_precomputed
from kernelweave.estimators.shared.multi_view import ViewKernelTags
from kernelweave.estimators.shared.scores import (
    ScoreClusterer,
    chosen_samples,
    chunks,
    joined,
    refuse_iterators,
    training_part,
)
from kernelweave.estimators.spectral.faults import explained
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.progress import track
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import CallbackSupportMixin, Interval, StrOptions, fit_context
from kernelweave.inputs import Views, check_cluster_count, per_view, read_view_weights, read_views
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import KERNELS, FittedKernel, fit_kernel
from kernelweave.kernels.transforms import CentredKernel
from kernelweave.partitions.silhouettes import silhouettes
from kernelweave.solvers.spectral.kernel_spectral import (
    CoupledScores,
    codebook,
    committee_weights,
    coupled_kernel_spectral,
    decode,
    degree_weights,
    kernel_spectral,
    score_floor,
)


@dataclass(frozen=True)
class TrainedView:
    """What new samples need of a view: its kernel, how it is centred, and the coefficients of the scores."""

    kernel: FittedKernel
    shares: Floats
    column_means: Floats
    grand_mean: float
    alphas: Floats

    def scores(self, X: Matrix) -> Floats:
        """Return the scores of new samples, centred by the training mean."""
        cross = self.kernel.cross(X)
        centred = CentredKernel(cross, self.shares, column_means=self.column_means, grand_mean=self.grand_mean)
        return centred.matmat(self.alphas)

    def row_sums(self, X: Matrix) -> Floats:
        """Return the sums of the kernel rows of new samples."""
        cross = self.kernel.cross(X)
        return cross.matmat(np.ones((cross.shape[1], 1)))[:, 0]


class MultiViewKernelSpectralClustering(ScoreClusterer, ViewKernelTags, CallbackSupportMixin, BaseEstimator):
    """Multi-view kernel spectral clustering (MVKSC): one kernel spectral model per view, made to agree.

    Every view has scores as in kernel spectral clustering; a coupling term rewards scores of different views that go
    together, so that all views are trained at once and still have models of their own. Clusters are sign patterns of
    the scores, averaged over the views or view by view. New samples need no new eigenproblem: train on a part of the
    data and assign the rest.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    gamma : float, list or dict, default=1.0
        Weight of each view's own spread of scores against agreement, for all views or one for each. It has an upper
        limit, which ``gamma_limits_`` reports and the error gives when it is passed.
    assignment : {"joint", "per_view"}, default="joint"
        Clusters from the averaged scores, or from those of each view (``view_labels_``).
    view_weights : "silhouette", array-like or dict, default=None
        Weights of the views in the average of ``assignment="joint"``; None is equal weights. ``"silhouette"`` takes
        those of a committee of least error: the error of a view at a sample is one minus its silhouette, brought to
        [0, 1], among the clusters of that view's own scores.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    kernel : str, kernel object or callable, list or dict, default="rbf"
        Kernel of all views, as in :class:`KernelKMeans`, or one per view; values must not be negative on the whole.
    kernel_params : dict, or list or dict of dicts, default=None
        Parameters of named kernels; a dict whose keys are the names of the views gives one for each.
    n_train_samples : int, default=None
        Number of samples to train on; the others are assigned afterwards. None takes all.
    selection : {"random", "entropy"}, default="random"
        How these are chosen: at random, or spread out by swaps that raise their quadratic Renyi entropy.
    memory_limit : float, default=2048
        MiB the kernel matrices of the training samples, which are stored, may take together.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples trained on.
    verbose : int, default=0
        Taken for likeness with other estimators; there is nothing to wait for.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, most frequent pattern first; with ``assignment="per_view"`` those of ``best_view_``.
    view_labels_ : ndarray of shape (n_views, n_samples)
        Clusters view by view, with ``assignment="per_view"``; each view numbers them by itself.
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
        Their sum.
    objective_path_, n_iter_, converged_ : ndarray of one value, 1, True
        There are no steps.
    gamma_limits_ : ndarray of shape (n_views,)
        What gamma has to stay below.
    view_weights_ : ndarray of shape (n_views,)
        Weights of the views in the average.
    view_names_ : list of str
        Names of the views.
    scores_ : ndarray of shape (n_views, n_train, n_clusters - 1)
        Scores of the samples trained on.
    degrees_ : ndarray of shape (n_views, n_train)
        Sums of their kernel rows; 0 where a sample is like none in that view.
    train_indices_ : ndarray of shape (n_train,)
        Which samples these are.
    warnings_ : tuple of str
        Warnings of the fit, each once; empty where there were none.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, where X was a table with string column names.

    See Also
    --------
    KernelSpectralClustering : The same for one view; a single view here gives its clusters.
    MultiViewSpectralClustering : Several views in one sum of kernels, weights learned.
    kernelweave.model_selection.AnnealingSearch : Finds kernel parameters and gamma without labels.

    Notes
    -----
    Cost: an eigenproblem of size m for each view, one of the size of their ranks together, then O(n m) kernel values
    for the labels of all samples, a few thousand samples at a time. Memory: V m^2. Fewer sign patterns than clusters
    are an error.

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

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="left"), list, tuple, dict],
        "assignment": [StrOptions({"joint", "per_view"})],
        "view_weights": [StrOptions({"silhouette"}), "array-like", dict, None],
        "views": ["array-like", dict, None],
        "kernel": [StrOptions(set(KERNELS)), callable, list, tuple, dict],
        "kernel_params": [dict, list, tuple, None],
        "n_train_samples": [Interval(Integral, 1, None, closed="left"), None],
        "selection": [StrOptions({"random", "entropy"})],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gamma: Any = 1.0,
        assignment: str = "joint",
        view_weights: Any = None,
        views: Any = None,
        kernel: Any = "rbf",
        kernel_params: Any = None,
        n_train_samples: int | None = None,
        selection: str = "random",
        memory_limit: float = 2048,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.assignment = assignment
        self.view_weights = view_weights
        self.views = views
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.n_train_samples = n_train_samples
        self.selection = selection
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "MultiViewKernelSpectralClustering":
        """Train on (some of) the samples, then assign all of them.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views; see ``views``. With ``kernel="precomputed"``, kernel matrices.
        y : None
            Ignored.

        Returns
        -------
        self : MultiViewKernelSpectralClustering
            The fitted estimator.
        """
        refuse_iterators(X)
        given = read_views(self, X, reset=True)
        n = given.n_samples
        check_cluster_count(self.n_clusters, np.ones(n))
        self._specs = list(
            zip(
                per_view(self.kernel, given.names, "kernel"),
                per_view(self.kernel_params, given.names, "kernel_params"),
                strict=True,
            )
        )
        gammas = self._gammas(given.names)
        weights = self._given_weights(given.names)
        rng = streams(self.random_state, 1)[0]
        self.train_indices_: Ints = chosen_samples(
            n, self.n_train_samples, self.selection, self.n_clusters, lambda: self._all_operators(given), rng
        )
        for _ in track(self, range(1), total=1, what="eigenproblem", X=X):
            kernels = self._train(given, gammas)
        for name in ("view_codebooks_", "view_labels_", "best_view_"):
            self.__dict__.pop(name, None)
        self._n_features_out = self.n_clusters - 1
        if self.assignment == "joint":
            self.view_weights_ = self._committee(kernels) if weights is None else weights
            joint = self._average(self.scores_)
            self.codebook_ = self._codebook(joint)
            self._floor = score_floor(joint)
            self.labels_: Ints = decode(joint, self.codebook_, self._floor) if self._whole(n) else self.predict(X)
            return self
        self.view_weights_ = np.full(len(given), 1.0 / len(given))
        self.view_codebooks_ = [
            self._codebook(own, f" of view {name!r}") for name, own in zip(given.names, self.scores_, strict=True)
        ]
        clear = [float(own.mean()) for own in self._silhouettes(kernels, self.view_codebooks_)]
        best = int(np.argmax(clear))
        self.best_view_ = given.names[best]
        self.codebook_ = self.view_codebooks_[best]
        self._floor = score_floor(self.scores_[best])
        self.view_labels_ = self._decoded(self.scores_) if self._whole(n) else self.predict_views(X)
        self.labels_ = self.view_labels_[best]
        return self

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
        return joined((self._view_scores(block) for block in chunks(X)), axis=1)

    def predict_views(self, X: Any) -> Ints:
        """Return the clusters of samples view by view, for models with ``assignment="per_view"``.

        Parameters
        ----------
        X : views as in ``fit``, or an iterator of such blocks
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_views, n_new)
            Index of the codeword; each view numbers them by itself.
        """
        check_is_fitted(self)
        if not hasattr(self, "view_codebooks_"):
            raise ParameterError(
                f"assignment={self.assignment!r} makes one codebook for all views. Fit with assignment='per_view' for "
                "labels of every view, or call predict."
            )
        return joined((self._decoded(self._view_scores(block)) for block in chunks(X)), axis=1)

    def _whole(self, n: int) -> bool:
        """Whether all samples were trained on."""
        return len(self.train_indices_) == n

    def _given_weights(self, names: Sequence[str]) -> Floats | None:
        """Return the weights of the views, or None where silhouettes decide."""
        if self.view_weights is None:
            return np.full(len(names), 1.0 / len(names))
        if self.assignment == "per_view":
            raise ParameterError(
                f"view_weights={self.view_weights!r} has no effect with assignment='per_view', which averages nothing. "
                "Leave it out, or set assignment='joint'."
            )
        if isinstance(self.view_weights, str):
            return None
        return read_view_weights(self.view_weights, names, "view_weights")

    def _committee(self, kernels: Sequence[KernelOperator]) -> Floats:
        """Return the weights of least error, the error taken from silhouettes."""
        books = [codebook(own, self.n_clusters, score_floor(own)) for own in self.scores_]
        return committee_weights(np.stack([0.5 - 0.5 * own for own in self._silhouettes(kernels, books)]))

    def _silhouettes(self, kernels: Sequence[KernelOperator], books: Sequence[Floats]) -> list[Floats]:
        """Return the silhouettes of the training samples, view by view; -1 where all are in one cluster."""
        found = []
        for op, own, book in zip(kernels, self.scores_, books, strict=True):
            labels = decode(own, book, score_floor(own))
            alone = labels.min() == labels.max()
            found.append(np.full(len(labels), -1.0) if alone else silhouettes(op, labels, len(book)))
        return found

    def _decoded(self, scores: Floats) -> Ints:
        floors = map(score_floor, self.scores_)
        return np.stack([decode(*each) for each in zip(scores, self.view_codebooks_, floors, strict=True)])

    def _average(self, scores: Floats) -> Floats:
        return np.asarray(np.tensordot(self.view_weights_, scores, axes=1))

    def _gammas(self, names: Sequence[str]) -> Floats:
        given = per_view(self.gamma, names, "gamma")
        try:
            if any(isinstance(value, str | bool) for value in given):
                raise TypeError("text is no number")
            found = np.array([float(value) for value in given])
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"gamma={self.gamma!r} must hold numbers, one for all views or one per view."
            ) from error
        if not (np.isfinite(found).all() and (found >= 0).all()):
            raise ParameterError(f"gamma={self.gamma!r} must hold finite numbers that are not negative.")
        return found

    def _all_operators(self, given: Views) -> list[KernelOperator]:
        return [
            fit_kernel(block, kernel, params, name=f"view {name!r}").operator("blockwise", self.memory_limit)
            for name, block, (kernel, params) in zip(given.names, given.blocks, self._specs, strict=True)
        ]

    def _train(self, given: Views, gammas: Floats) -> list[KernelOperator]:
        """Solve the coupled problem on the training samples; return their kernels."""
        m = len(self.train_indices_)
        needed = len(given) * m**2 * 8 / 2**20
        if needed > self.memory_limit:
            raise ParameterError(
                f"{len(given)} kernels of {m} samples take {needed:.3g} MiB, more than "
                f"memory_limit={self.memory_limit}. Set n_train_samples, or raise memory_limit."
            )
        kernels = []
        inverses = []
        fitted = []
        centred = []
        for name, block, (spec, params) in zip(given.names, given.blocks, self._specs, strict=True):
            part = training_part(block, spec, self.train_indices_)
            kernel = fit_kernel(part, spec, params, name=f"view {name!r}")
            op = kernel.operator("dense", np.inf)
            kernels.append(op)
            fitted.append(kernel.for_new_samples())
            with explained(where=f" of view {name!r}"):
                inverses.append(degree_weights(op, f" of view {name!r}"))
            centred.append(CentredKernel(op, inverses[-1]))
        if len(given) == 1:  # nothing to couple
            model = kernel_spectral(kernels[0], self.n_clusters - 1)
            found = CoupledScores((model,), model.eigenvalues, np.array([np.inf]))
        else:
            every = slice(None)
            matrices = [np.ascontiguousarray(part.block(every, every), dtype=np.float64) for part in centred]
            with explained(given.names):
                found = coupled_kernel_spectral(matrices, inverses, gammas, self.n_clusters - 1)
        self.eigenvalues_ = found.eigenvalues
        self.objective_ = float(found.eigenvalues.sum())
        self.gamma_limits_ = found.limits
        self.objective_path_ = np.array([self.objective_])
        self.n_iter_ = 1
        self.converged_ = True
        self.scores_ = np.stack([model.scores for model in found.models])
        self.degrees_ = np.stack([model.degrees for model in found.models])
        self._trained = [
            TrainedView(kernel, part.shares, part.column_means, part.grand_mean, model.alphas)
            for kernel, part, model in zip(fitted, centred, found.models, strict=True)
        ]
        return kernels

    def _parts(self, X: Any) -> Iterator[tuple[TrainedView, Matrix]]:
        """Yield every trained view with the new samples as it sees them."""
        blocks = read_views(self, X, reset=False)
        for trained, block, (spec, _) in zip(self._trained, blocks, self._specs, strict=True):
            yield trained, (block[:, self.train_indices_] if is_precomputed(spec) else block)

    def _view_scores(self, X: Any) -> Floats:
        return np.stack([trained.scores(block) for trained, block in self._parts(X)])

    def _row_sums(self, X: Any) -> Floats:
        return np.stack([trained.row_sums(block) for trained, block in self._parts(X)])

    def _scores(self, X: Any) -> Floats:
        scores = self._view_scores(X)
        if not hasattr(self, "best_view_"):
            return self._average(scores)
        return np.asarray(scores[self.view_names_.index(self.best_view_)])
