"""The ratio-based multiple kernel clustering estimator."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from kernelweave.estimators.margin.dividing import Cut, DividingClusterer, Split
from kernelweave.estimators.shared.multi_view import ViewKernelTags
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.errors import ConvergenceWarning, KernelError, ParameterError
from kernelweave.foundation.notices import warn
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import Interval, StrOptions, fit_context
from kernelweave.inputs import Views, per_view, read_labels, read_views
from kernelweave.kernels.definiteness import negative_eigenvalue
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.parametric import ProcessFamily, WeightedKernels
from kernelweave.kernels.spec.bandwidths import rbf_widths
from kernelweave.kernels.spec.fitting import KERNELS, FittedKernel, fit_kernel
from kernelweave.kernels.transforms import FLAT, ScaledKernel, feature_space_variance
from kernelweave.kernels.weighted_sum import CompositeKernel
from kernelweave.partitions import algebra
from kernelweave.solvers.margin.ratio_clustering import RatioRun, balanced_pairs, best_start, ratio_clustering
from kernelweave.solvers.shared.best_run import best_of

Family = WeightedKernels | ProcessFamily

#: Share of the samples that pairs are drawn for at the start.
PAIRS = 0.25
#: A variance of the clusters below this share of the mean diagonal is none.
NO_VARIANCE = 1e-7


@dataclass(frozen=True)
class BasisKernel:
    """One basis kernel: the view it belongs to, settled, and the factor that normalises it."""

    name: str
    view: int
    kernel: FittedKernel
    factor: float = 1.0

    def cross(self, blocks: Sequence[Matrix]) -> KernelOperator:
        """Return the kernel between new samples and the training samples."""
        return ScaledKernel(self.kernel.cross(blocks[self.view]), self.factor)


class RatioMultipleKernelClustering(ViewKernelTags, DividingClusterer):
    """Ratio-based multiple kernel clustering (RMKC): two clusters and a kernel combination, by variance over margin.

    Minimises J = E(theta, y) ||w||^2 / 2 + C sum xi over labels y, kernel weights theta and the support vector machine
    (w, b, xi) trained on y: clusters that are compact (small variance E) and far apart (large margin 1 / ||w||) in the
    feature space of sum_v theta_v K_v. Scaling a kernel changes nothing, so no kernel wins by being large. Use it for
    two clusters when several kernels or views are at hand and it is not known which of them tell the clusters apart.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters. The method is one for two; more are found by dividing in two again the cluster of largest
        scatter (experimental, not in the source).
    C : float, default=1.0
        Price of samples within the margin or beyond it; the source searches 0.01, 0.1, ..., 100.
    balance : float, default=0.5
        Most difference in size of the two clusters, as a share of the samples: 0 asks for equal sizes, 0.5 for no
        cluster below a quarter.
    n_moves : int, default=30
        Samples that change clusters, one after the other, on each of the two paths of a label search.
    norm : {1, 2} or None, default=1
        Norm of the kernel weights; the best objective does not depend on it.
    views : list or dict, default=None
        Columns of each view where X is one table: slices, column numbers or column names. None means one view.
    kernel : str, kernel object, callable, list or dict, default="auto"
        Basis kernels. With several views, one for each (``"auto"``: linear); with one view, any number in a list
        (``"auto"``: Gaussian kernels of ten widths, see :func:`kernelweave.kernels.rbf_widths`).
    learn : {"weights", "hyperparameters"}, default="weights"
        What is learned of the kernel: weights of the basis kernels, or, on one view, the free hyperparameters of one
        kernel object of ``sklearn.gaussian_process.kernels``, within its bounds.
    kernel_params : dict, or list or dict of dicts, default=None
        Parameters of named kernels, for all or one for each.
    normalize : bool, default=True
        Divide every basis kernel by the variance of the samples in its feature space, so that equal weights mean equal
        parts.
    ridge : float, default=1e-8
        Added to the diagonal of each kernel, times its mean: the solution of the support vector machine is then unique
        and the objective has a gradient.
    init : "pairs" or array-like of two clusters, default="pairs"
        Start: samples go to the nearer of two drawn far apart, for ``n_starts`` pairs, the best objective counts; or
        given labels 0 and 1 for the first division.
    n_starts : int, default=None
        Number of pairs; None is a quarter of the samples.
    n_init : int, default=1
        Runs from starts drawn anew; the one of least objective is kept.
    max_iter : int, default=100
        Most outer steps.
    tol : float, default=1e-4
        A run ends when labels stay and a step lowers the objective by at most ``tol`` times its value.
    memory_limit : float, default=2048
        MiB the basis kernels, which are stored, may take together.
    random_state : int, RandomState instance or None, default=None
        Seed of the pairs. The same seed gives the same labels at any number of threads.
    verbose : int, default=0
        1 shows a progress bar over the runs.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every sample, 0..n_clusters-1.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the basis kernels, scaled to add up to 1; of the first division where there are several.
    view_weights_ : ndarray of shape (n_views,)
        The same, added up over the kernels of each view.
    kernel_names_ : list of str
        Names of the basis kernels.
    kernel_ : kernel object
        The learned kernel, where hyperparameters were learned.
    view_names_ : list of str
        Names of the views.
    objective_ : float
        J at the end (of the first division).
    objective_path_ : ndarray
        J at the start and after every outer step; it never rises.
    optimality_gap_ : float
        How far J may be from the true optimum of the support vector machine at the labels and weights found.
    n_iter_ : int
        Outer steps.
    converged_ : bool
        Whether the run ended by itself rather than at ``max_iter``.
    warnings_ : tuple of str
        Warnings of the fit, each once; empty where there were none.
    n_features_in_ : int
        Number of features of all views.
    feature_names_in_ : ndarray of str
        Names of the features, where X was a table with string column names.

    See Also
    --------
    MultiViewKernelKMeans : Kernel weights by variance alone, for any number of clusters.
    IterativeSVR : Margin alone, on one kernel.

    Notes
    -----
    Takes four samples or more. Cost: O(V n^2) memory and for each gradient step; up to 2 ``n_moves`` support vector
    machines an outer step, each from the solution of the last, and a quarter of n of them for the start.

    Source: PhD chapter 5, Alg. 5.1 and 5.2; G. Tzortzis and A. Likas, "Ratio-based multiple kernel clustering", ECML
    PKDD 2014.

    Examples
    --------
    >>> from kernelweave import RatioMultipleKernelClustering
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(100, noise=0.05, random_state=0)
    >>> model = RatioMultipleKernelClustering(C=10.0, random_state=0).fit(X)
    >>> len(model.kernel_weights_), bool((model.predict(X) == model.labels_).all())
    (10, True)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 - scikit-learn's own convention
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "balance": [Interval(Real, 0, 1, closed="both")],
        "n_moves": [Interval(Integral, 1, None, closed="left")],
        "norm": [Interval(Integral, 1, 2, closed="both"), None],
        "views": ["array-like", dict, None],
        "kernel": [StrOptions({*KERNELS, "auto", "rbf_widths"}), callable, list, tuple, dict],
        "kernel_params": [dict, list, tuple, None],
        "learn": [StrOptions({"weights", "hyperparameters"})],
        "normalize": ["boolean"],
        "ridge": [Interval(Real, 0, 1, closed="left")],
        "init": [StrOptions({"pairs"}), "array-like"],
        "n_starts": [Interval(Integral, 1, None, closed="left"), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "memory_limit": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        C: float = 1.0,
        balance: float = 0.5,
        n_moves: int = 30,
        norm: int | None = 1,
        views: Any = None,
        kernel: Any = "auto",
        kernel_params: Any = None,
        learn: str = "weights",
        normalize: bool = True,
        ridge: float = 1e-8,
        init: Any = "pairs",
        n_starts: int | None = None,
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-4,
        memory_limit: float = 2048,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.C = C
        self.balance = balance
        self.n_moves = n_moves
        self.norm = norm
        self.views = views
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.learn = learn
        self.normalize = normalize
        self.ridge = ridge
        self.init = init
        self.n_starts = n_starts
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "RatioMultipleKernelClustering":
        """Find the clusters and the kernel weights.

        Parameters
        ----------
        X : list, tuple or dict of arrays of shape (n_samples, n_features_v), or one table
            The views, or one; see ``views``. With ``kernel="precomputed"``, kernel matrices.
        y : None
            Ignored.

        Returns
        -------
        self : RatioMultipleKernelClustering
            The fitted estimator.
        """
        views = read_views(self, X, reset=True, min_samples=4)
        self._check_counts(views.n_samples)
        family = self._settle(views)
        self._store_weights(family, family.first())
        self.objective_ = 0.0
        self.objective_path_ = np.zeros(1)
        self.optimality_gap_ = 0.0
        self.n_iter_ = 0
        self.converged_ = True
        self._family: Family | None = family
        self._divide_all(family.matrix(family.first()), X, y)
        self._family = None  # the kernel matrices are not kept
        return self

    # --- kernels ------------------------------------------------------------------------------------------------------

    def _settle(self, views: Views) -> Family:
        """Settle the basis kernels; keep what new samples need, return the family that is learned."""
        self.__dict__.pop("kernel_", None)
        self._views = views if self._parametric(views) else None
        if self._views is not None:
            block = views.blocks[0]
            self.kernel_names_ = [str(self.kernel)]
            if not isinstance(block, np.ndarray):
                raise KernelError("A kernel object takes dense features, but X is sparse. Convert it with toarray().")
            self._check_memory(views.n_samples, 1 + len(self.kernel.theta))
            return ProcessFamily(self.kernel, block, self.ridge)
        basis = self._specifications(views)
        self._check_memory(views.n_samples, len(basis))
        self.kernel_names_ = [name for name, *_ in basis]
        kernels = []
        operators = []
        for name, view, kernel, params in basis:
            fitted = fit_kernel(views.blocks[view], kernel, params, centre_features=True, name=f"view {name!r}")
            op = fitted.operator("dense", np.inf)
            self._check_definite(op, name)
            kernels.append(BasisKernel(name, view, fitted.for_new_samples()))
            operators.append(op)
        factors = self._factors(operators, self.kernel_names_)
        self._basis = [replace(item, factor=factor) for item, factor in zip(kernels, factors, strict=True)]
        matrices = [self._matrix(op, factor) for op, factor in zip(operators, factors, strict=True)]
        return WeightedKernels(matrices, self.norm)  # type: ignore[arg-type]

    def _parametric(self, views: Views) -> bool:
        """Whether hyperparameters of a kernel object are learned."""
        if self.learn == "weights":
            return False
        if len(views) > 1 or not hasattr(self.kernel, "clone_with_theta") or len(self.kernel.theta) == 0:
            raise ParameterError(
                f"learn='hyperparameters' takes one view and a kernel object with free hyperparameters, for instance "
                f"RBF(1.0) of sklearn.gaussian_process.kernels; got {len(views)} view(s) and kernel={self.kernel!r}."
            )
        return True

    def _specifications(self, views: Views) -> list[tuple[str, int, Any, Any]]:
        """Return name, view, kernel and parameters of every basis kernel."""
        single = len(views) == 1
        kernel = self.kernel
        if isinstance(kernel, str) and kernel == "auto":
            kernel = "rbf_widths" if single else "linear"
        if single and isinstance(kernel, list | tuple):
            params = per_view(self.kernel_params, [str(i) for i in range(len(kernel))], "kernel_params")
            pairs = [(0, spec, given) for spec, given in zip(kernel, params, strict=True)]
        else:
            specs = per_view(kernel, views.names, "kernel")
            params = per_view(self.kernel_params, views.names, "kernel_params")
            pairs = [(v, spec, given) for v, (spec, given) in enumerate(zip(specs, params, strict=True))]
        found: list[tuple[str, int, Any, Any]] = []
        for view, spec, given in pairs:
            name = views.names[view]
            if isinstance(spec, str) and spec == "rbf_widths":
                if given:
                    raise ParameterError(f"kernel_params={given!r} has no effect with kernel={self.kernel!r}; drop it.")
                found += [
                    (f"{name}, rbf sigma={sigma:.4g}", view, "rbf", {"sigma": sigma})
                    for sigma in rbf_widths(views.blocks[view])
                ]
            else:
                called = spec if isinstance(spec, str) else getattr(spec, "__name__", str(spec))
                found.append((name if not single else f"{name}, {called}", view, spec, given))
        if not found:
            raise ParameterError("kernel=[] holds no kernel; give at least one.")
        return found

    def _check_memory(self, n: int, count: int) -> None:
        needed = count * n**2 * 8 / 2**20
        if needed > self.memory_limit:
            raise ParameterError(
                f"{count} kernels of {n} samples take {needed:.0f} MiB, more than memory_limit={self.memory_limit}. "
                "Cluster a part of the samples and predict the others, use fewer kernels, or raise memory_limit."
            )

    @staticmethod
    def _check_definite(op: KernelOperator, name: str) -> None:
        lowest = negative_eigenvalue(op)
        if lowest is not None:
            raise KernelError(
                f"Kernel {name!r} is not positive semidefinite (it has an eigenvalue of {lowest:.3g} or lower): a "
                "margin needs a feature space. Add a constant to its diagonal, or choose another kernel."
            )

    def _factors(self, operators: Sequence[KernelOperator], names: Sequence[str]) -> list[float]:
        spreads = np.array([feature_space_variance(op) for op in operators])
        flat = spreads <= FLAT * np.array([op.scale() for op in operators])
        if flat.any() and not flat.all():
            raise KernelError(
                f"All samples look alike to kernel {names[int(np.argmax(flat))]!r}: their variance in feature space is "
                f"{spreads[flat][0]:.3g}. Drop the kernel or choose another."
            )
        return (1.0 / spreads).tolist() if self.normalize and not flat.any() else [1.0] * len(spreads)

    def _matrix(self, op: KernelOperator, factor: float) -> Floats:
        K = factor * np.asarray(op.block(slice(None), slice(None)), dtype=np.float64)
        K[np.diag_indices_from(K)] += self.ridge * float(np.trace(K)) / len(K)
        return np.ascontiguousarray(K)

    # --- clusters -----------------------------------------------------------------------------------------------------

    def _cut(self, members: Ints, new: int) -> Cut:
        """Return the best of ``n_init`` runs on one cluster."""
        family = self._family if new == 1 else self._family.take(members)  # type: ignore[union-attr]
        assert family is not None
        n = len(members)
        limit = self._limit_of(members, new)
        options: dict[str, Any] = {"C": self.C, "limit": limit, "n_moves": self.n_moves, "max_iter": self.max_iter}
        theta = family.first()
        options |= {"tol": self.tol, "learned": len(theta) > 1 or isinstance(family, ProcessFamily)}
        if not isinstance(self.init, str) and new == 1:
            starts = [self._given(n, limit)]
        else:
            K = family.matrix(theta)
            count = max(1, round(PAIRS * n)) if self.n_starts is None else self.n_starts
            rngs = streams(self.random_state, new * self.n_init)[-self.n_init :]
            starts = [best_start(K, balanced_pairs(K, rng, count, limit), self.C) for rng in rngs]
        run = best_of(ratio_clustering(family, theta, start, **options) for start in starts)
        if new == 1:
            self._store(run, family)
        return Cut(run.labels, run.theta, run.solution.multipliers / run.solution.variance, run.solution.bias)

    def _given(self, n: int, limit: float) -> Floats:
        labels = read_labels(self.init, n, 2)
        start = np.where(labels == 1, 1.0, -1.0)
        if abs(start.sum()) > limit:
            sizes = np.bincount(labels, minlength=2).tolist()
            raise ParameterError(
                f"init has clusters of {sizes} samples, which balance={self.balance} does not allow. Raise balance or "
                "give other labels."
            )
        return start

    def _store(self, run: RatioRun, family: Family) -> None:
        self.objective_ = run.objective
        self.objective_path_ = np.array(run.history)
        self.optimality_gap_ = run.solution.gap
        self.n_iter_ = run.n_iter
        self.converged_ = run.converged
        self._store_weights(family, run.theta)
        if run.solution.variance <= NO_VARIANCE * float(np.trace(family.matrix(run.theta))) / family.n:
            warn(
                "The clusters have no variance left under the kernel learned, so that any margin will do: samples take "
                f"few values in {self.kernel_names_[int(np.argmax(run.theta))]!r}. If that is not what the clusters "
                "should follow, drop that kernel.",
                ConvergenceWarning,
            )
        if not run.converged:
            warn(
                f"The run stopped at max_iter={self.max_iter} before labels and weights settled. Raise max_iter or "
                "tol.",
                ConvergenceWarning,
            )

    def _store_weights(self, family: Family, theta: Floats) -> None:
        """Keep what was learned in readable form."""
        if isinstance(family, ProcessFamily):
            self.kernel_weights_ = self.view_weights_ = np.ones(1)
            self.kernel_ = family.at(theta)
            return
        self.kernel_weights_ = theta / theta.sum()
        views = [item.view for item in self._basis]
        self.view_weights_ = algebra.cluster_weights(np.array(views), self.kernel_weights_, len(self.view_names_))

    # --- new samples --------------------------------------------------------------------------------------------------

    def _blocks(self, X: Any) -> Sequence[Matrix]:
        return read_views(self, X, reset=False).blocks

    def _decide(self, split: Split, blocks: Sequence[Matrix]) -> Floats:
        if self._views is not None:
            learned = self.kernel.clone_with_theta(split.theta)
            cross: KernelOperator = fit_kernel(self._views.blocks[0], learned).cross(blocks[0])
        else:
            cross = CompositeKernel([item.cross(blocks) for item in self._basis], split.theta)
        return np.asarray(cross.matmat(split.sources[:, None])[:, 0] + split.bias)

    def fit_predict(self, X: Any, y: Any = None) -> Ints:
        """Fit, then return the labels of the training samples."""
        return self.fit(X, y).labels_
