"""What estimators on several kernels share: views read, kernels settled and normalised, view weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from kernelweave.estimators.shared.center_clusterer import is_precomputed
from kernelweave.estimators.shared.kernel_estimator import warn_if_indefinite
from kernelweave.foundation.array_types import Array, Floats, Ints, Matrix
from kernelweave.foundation.errors import ConvergenceWarning, ParameterError, ViewError
from kernelweave.foundation.logged_warnings import warn
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.sklearn_internals import CallbackSupportMixin, Interval, StrOptions
from kernelweave.inputs import Views, per_view, read_view_weights, read_views
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import KERNELS, FeatureMap, FittedKernel, approximate_kernel, fit_kernel
from kernelweave.kernels.transforms import FLAT, DegreeKernel, ScaledKernel, mean_squared_distance
from kernelweave.kernels.weighted_sum import CompositeKernel, JoinedFeatures, MultiViewKernel, composite
from kernelweave.solvers.shared.exponent import SUBSETS, stable_exponent
from kernelweave.solvers.shared.view_weights import LARGEST_P

#: Rules of the parameters both multi-view methods have.
MULTI_VIEW_RULES: dict[str, list[Any]] = {
    "n_clusters": [Interval(Integral, 1, None, closed="left")],
    "p": [Interval(Real, 1, LARGEST_P, closed="both"), StrOptions({"auto"})],
    "weights": [StrOptions({"learned", "uniform"}), "array-like", dict],
    "view_weights": ["array-like", dict, None],
    "views": ["array-like", dict, None],
    "kernel": [StrOptions(set(KERNELS)), callable, list, tuple, dict],
    "kernel_params": [dict, list, tuple, None],
    "n_init": [Interval(Integral, 1, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "approximation": [StrOptions({"nystroem", "random_features"}), None],
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "storage": [StrOptions({"auto", "dense", "blockwise"})],
    "memory_limit": [Interval(Real, 0, None, closed="neither")],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


@dataclass(frozen=True)
class ViewKernel:
    """One view's kernel as it meets new samples: settled, then scaled or divided by degrees."""

    kernel: FittedKernel
    factor: float = 1.0
    degree_weights: Floats | None = None
    column_scale: Floats | None = None

    def cross(self, X: Matrix) -> KernelOperator:
        """Return the kernel between new samples and the training samples."""
        cross = self.kernel.cross(X)
        if self.degree_weights is not None:
            return DegreeKernel(cross, self.degree_weights, self.column_scale)
        return cross if self.factor == 1.0 else ScaledKernel(cross, self.factor)


class ViewKernelTags(BaseEstimator):
    """What estimators with ``views`` and a ``kernel`` tell scikit-learn about their input."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(self.kernel) and self.views is None
        tags.input_tags.positive_only = isinstance(self.kernel, str) and self.kernel == "chi2"
        return tags


class MultiViewKernelEstimator(ViewKernelTags, CallbackSupportMixin, BaseEstimator):
    """Base of estimators that see the data through a weighted sum of kernels, one per view."""

    #: Whether the objective depends on feature-space distances alone, so that features may be centred.
    _distances_only = True

    def _settle(self, views: Views, weights: Floats) -> MultiViewKernel:
        """Settle and normalise every view's kernel; return their sum and keep what new samples need."""
        n_views = len(views)
        kernels = per_view(self.kernel, views.names, "kernel")
        params = per_view(self.kernel_params, views.names, "kernel_params")
        parts: list[KernelOperator] = []
        self._kernels: list[ViewKernel] = []
        for name, block, kernel, settings in zip(views.names, views.blocks, kernels, params, strict=True):
            fitted = self._fit_kernel(block, kernel, settings, weights, name)
            op = fitted.operator(self.storage, self.memory_limit / n_views)
            if self.normalize != "degrees":  # eigenvectors of affinities need no feature space
                warn_if_indefinite(op, f" of view {name!r}")
            parts.append(op)
            self._kernels.append(ViewKernel(fitted.for_new_samples()))
        if self.normalize == "degrees":
            by_degree = [
                DegreeKernel(part, weights, name=f" of view {name!r}")
                for part, name in zip(parts, views.names, strict=True)
            ]
            self._kernels = [
                replace(kept, degree_weights=weights, column_scale=part.column_scale)
                for kept, part in zip(self._kernels, by_degree, strict=True)
            ]
            parts = list(by_degree)
        else:
            factors = self._factors(parts, weights, views.names)
            self._kernels = [replace(kept, factor=factor) for kept, factor in zip(self._kernels, factors, strict=True)]
            parts = [ScaledKernel(part, factor) for part, factor in zip(parts, factors, strict=True)]
        op = composite(parts, np.full(n_views, 1.0 / n_views))
        if isinstance(op, JoinedFeatures):  # the features are kept once
            ends = np.cumsum(op.widths)
            for v, (lo, hi) in enumerate(zip(ends - op.widths, ends, strict=True)):
                kept = self._kernels[v]
                if isinstance(kept.kernel, FeatureMap):
                    self._kernels[v] = replace(kept, kernel=replace(kept.kernel, features=op.Phi[:, lo:hi]))
        return op

    def _fit_kernel(self, block: Array, kernel: Any, params: Any, weights: Floats, name: str) -> FittedKernel:
        if getattr(self, "approximation", None) is None:
            options: dict[str, Any] = {"centre_features": self._distances_only, "weights": weights}
            return fit_kernel(block, kernel, params, name=f"view {name!r}", **options)
        return approximate_kernel(
            block,
            kernel,
            params,
            method=self.approximation,
            n_components=self.n_components,
            random_state=self.random_state,
            weights=weights,
        )

    def _factors(self, parts: Sequence[KernelOperator], weights: Floats, names: Sequence[str]) -> list[float]:
        """Return what every kernel is multiplied by.

        A view in which all samples are equal has no scatter and would take all the weight, whatever the clusters.
        """
        spreads = np.array([mean_squared_distance(part, weights) for part in parts])
        # What rounding leaves of nothing. A kernel that is not positive semidefinite may have a negative spread.
        flat = np.abs(spreads) <= FLAT * np.array([part.scale() for part in parts])
        if flat.any() and not flat.all():
            raise ViewError(
                f"All samples look alike in view {names[int(np.argmax(flat))]!r}: their mean squared distance in "
                f"feature space is {spreads[flat][0]:.3g}. It can tell no clusters; drop it or choose another kernel."
            )
        return (1.0 / np.abs(spreads)).tolist() if self.normalize and not flat.any() else [1.0] * len(parts)

    def _first_weights(self, names: Sequence[str]) -> tuple[Floats, bool]:
        """Return the view weights to begin with, and whether they are learned."""
        if self.view_weights is not None and not (isinstance(self.weights, str) and self.weights == "learned"):
            raise ParameterError(
                f"view_weights={self.view_weights!r} is what learning starts from and has no effect with "
                f"weights={self.weights!r}. Leave it out, or set weights='learned'."
            )
        if isinstance(self.weights, str):
            uniform = np.full(len(names), 1.0 / len(names))
            if self.weights == "uniform" or self.view_weights is None:
                return uniform, self.weights == "learned"
            return read_view_weights(self.view_weights, names, "view_weights"), True
        return read_view_weights(self.weights, names, "weights"), False

    def _exponent(
        self,
        labels_of: Callable[[Ints, np.random.Generator], Sequence[Ints]],
        weights: Floats,
        n_views: int,
        *,
        learned: bool,
    ) -> float:
        """Return p, or the one that ``"auto"`` chooses; infinity stands for equal weights."""
        self.__dict__.pop("p_path_", None)
        if isinstance(self.weights, str) and self.weights == "uniform":
            return np.inf
        if self.p != "auto":
            return float(self.p)
        if not learned:
            raise ParameterError(
                f"p='auto' chooses how far learned weights may differ, but weights={self.weights!r} are fixed. "
                "Give p a number, or set weights='learned'."
            )
        if n_views == 1:
            return np.inf
        rngs = streams(self.random_state, SUBSETS)
        choice = stable_exponent(labels_of, np.flatnonzero(weights > 0), rngs, self.n_clusters)
        self.p_path_ = {"p": choice.exponents, "stability": choice.stabilities}
        return choice.p

    def _store_weights(self, weights: Floats, scatters: Floats, p: float) -> None:
        self.view_weights_ = weights
        self.view_scatters_ = scatters
        self.p_ = p
        p = 1.0 if np.isinf(p) else p
        powers = (weights / weights.max()) ** p
        self.kernel_coefficients_ = powers / powers.sum()
        self._coefficients = weights**p
        if isinstance(self.weights, str):
            self._warn_of_certainty()

    def _warn_of_certainty(self) -> None:
        """Warn where a view has no scatter and took all the weight, whatever the others say."""
        empty = self.view_scatters_ == 0
        if empty.any() and not empty.all() and self.view_weights_[empty].sum() > 1.0 - FLAT:
            name = self.view_names_[int(np.argmax(empty))]
            warn(
                f"View {name!r} has no scatter left, so it took all the weight: its samples take few values, it has "
                "few columns, or its graph falls apart. If that is not what the clusters should follow, drop the view "
                "or set weights='uniform'.",
                ConvergenceWarning,
            )

    def _cross(self, X: Any) -> KernelOperator:
        blocks = read_views(self, X, reset=False)
        parts = [kernel.cross(block) for kernel, block in zip(self._kernels, blocks, strict=True)]
        return CompositeKernel(parts, self._coefficients)
