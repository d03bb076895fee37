"""The multi-view kernel spectral clustering estimator."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from kernelweave.estimators._clusterer import is_precomputed
from kernelweave.estimators._multi_view import ViewKernelTags
from kernelweave.estimators._scores import ScoreClusterer, chosen_samples
from kernelweave.foundation._errors import ParameterError
from kernelweave.foundation._random import streams
from kernelweave.foundation._sklearn import CallbackSupportMixin, Interval, StrOptions, fit_context
from kernelweave.foundation._typing import Floats, Ints, Matrix
from kernelweave.inputs import Views, check_cluster_count, per_view, read_view_weights, read_views
from kernelweave.operators import KERNELS, CentredKernel, FittedKernel, KernelOperator, fit_kernel
from kernelweave.solvers import codebook, coupled_kernel_spectral, decode, inverse_degrees


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
    view_weights : array-like or dict, default=None
        Weights of the views in the average of ``assignment="joint"``; None is equal weights.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    kernel : str, kernel object or callable, list or dict, default="rbf"
        Kernel of all views, as in :class:`KernelKMeans`, or one per view.
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
        Cluster of every sample, most frequent pattern first; with ``assignment="per_view"`` those of the first view.
    view_labels_ : ndarray of shape (n_views, n_samples)
        Clusters view by view, with ``assignment="per_view"``; each view numbers them by itself.
    codebook_ : ndarray of shape (n_clusters, n_clusters - 1)
        Sign pattern of every cluster (of the first view with ``assignment="per_view"``).
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
    train_indices_ : ndarray of shape (n_train,)
        Which samples these are.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, where X was a table with string column names.

    See Also
    --------
    MultiViewSpectralClustering : Several views in one sum of kernels, weights learned.

    Notes
    -----
    Cost: an eigenproblem of size m for each view, one of the size of their ranks together, then O(n m) kernel values
    for the labels of all samples, a few thousand samples at a time. Memory: V m^2.

    Source: L. Houthuys, R. Langone and J. Suykens, "Multi-view kernel spectral clustering", Information Fusion 44,
    2018, section 3, solved in symmetric form.

    Examples
    --------
    >>> from kernelweave.estimators._multi_view_kernel_spectral import MultiViewKernelSpectralClustering
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
        "view_weights": ["array-like", dict, None],
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
        self.view_weights_ = (
            np.full(len(given), 1.0 / len(given))
            if self.view_weights is None
            else read_view_weights(self.view_weights, given.names, "view_weights")
        )
        rng = streams(self.random_state, 1)[0]
        self.train_indices_: Ints = chosen_samples(
            n, self.n_train_samples, self.selection, self.n_clusters, lambda: self._all_operators(given), rng
        )
        self._train(given, gammas)
        whole = len(self.train_indices_) == n
        self._label(list(self.scores_) if whole else None, X)
        return self

    def _gammas(self, names: Sequence[str]) -> Floats:
        given = per_view(self.gamma, names, "gamma")
        try:
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

    def _train(self, given: Views, gammas: Floats) -> None:
        """Solve the coupled problem on the training samples."""
        m = len(self.train_indices_)
        needed = len(given) * m**2 * 8 / 2**20
        if needed > self.memory_limit:
            raise ParameterError(
                f"{len(given)} kernels of {m} samples take {needed:.0f} MiB, more than "
                f"memory_limit={self.memory_limit}. Set n_train_samples, or raise memory_limit."
            )
        kernels, inverses, fitted = [], [], []
        for name, block, (spec, params) in zip(given.names, given.blocks, self._specs, strict=True):
            part = block[self.train_indices_]
            if is_precomputed(spec):
                part = part[:, self.train_indices_]
            kernel = fit_kernel(part, spec, params, name=f"view {name!r}")
            op = kernel.operator("dense", np.inf)
            inverse = inverse_degrees(op, f" of view {name!r}")
            centred = CentredKernel(op, inverse)
            kernels.append(np.ascontiguousarray(centred.block(slice(None), slice(None)), dtype=np.float64))
            inverses.append(inverse)
            fitted.append((kernel.for_new_samples(), centred))
        found = coupled_kernel_spectral(kernels, inverses, gammas, self.n_clusters - 1, given.names)
        self.eigenvalues_, self.objective_ = found.eigenvalues, float(found.eigenvalues.sum())
        self.gamma_limits_ = found.limits
        self.objective_path_, self.n_iter_, self.converged_ = np.array([self.objective_]), 1, True
        self.scores_ = np.stack([model.scores for model in found.models])
        self._trained = [
            TrainedView(kernel, centred.shares, centred.column_means, centred.grand_mean, model.alphas)
            for (kernel, centred), model in zip(fitted, found.models, strict=True)
        ]

    def _label(self, scores: list[Floats] | None, X: Any) -> None:
        """Make the codebooks, then the labels of all samples: from the scores where all were trained on."""
        joint = np.tensordot(self.view_weights_, self.scores_, axes=1)
        self._encode(joint if self.assignment == "joint" else self.scores_[0])
        for name in ("view_codebooks_", "view_labels_"):
            self.__dict__.pop(name, None)
        if self.assignment == "joint":
            self.labels_: Ints = self.predict(X) if scores is None else decode(joint, self.codebook_)
            return
        self.view_codebooks_ = [codebook(own, self.n_clusters) for own in self.scores_]
        every = self._view_scores(X) if scores is None else scores
        self.view_labels_ = np.stack([decode(own, book) for own, book in zip(every, self.view_codebooks_, strict=True)])
        self.labels_ = self.view_labels_[0]

    def _view_scores(self, X: Any) -> list[Floats]:
        """Return the scores of new samples view by view."""
        blocks = read_views(self, X, reset=False)
        found = []
        for trained, block, (spec, _) in zip(self._trained, blocks, self._specs, strict=True):
            found.append(trained.scores(block[:, self.train_indices_] if is_precomputed(spec) else block))
        return found

    def _scores(self, X: Any) -> Floats:
        scores = self._view_scores(X)
        if self.assignment == "per_view":
            return scores[0]
        return np.asarray(np.tensordot(self.view_weights_, np.stack(scores), axes=1))
