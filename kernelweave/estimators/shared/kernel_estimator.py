"""What estimators on one kernel share: reading input, settling the kernel, warnings, tags."""

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from kernelweave.foundation.array_types import Array, Floats, Ints
from kernelweave.foundation.errors import ConvergenceWarning, NotPSDWarning
from kernelweave.foundation.logged_warnings import warn
from kernelweave.foundation.progress import track
from kernelweave.foundation.sklearn_internals import CallbackSupportMixin, Interval, StrOptions
from kernelweave.foundation.threads import parallel_map
from kernelweave.inputs import read_samples
from kernelweave.kernels.definiteness import negative_eigenvalue
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import KERNELS, FittedKernel, approximate_kernel, fit_kernel
from kernelweave.solvers.kmeans.starts import start_labels

#: Rules of the parameters every kernel estimator has.
KERNEL_RULES: dict[str, list[Any]] = {
    "n_clusters": [Interval(Integral, 1, None, closed="left")],
    "kernel": [StrOptions(set(KERNELS)), callable],
    "kernel_params": [dict, None],
    "storage": [StrOptions({"auto", "dense", "blockwise"})],
    "memory_limit": [Interval(Real, 0, None, closed="neither")],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


Start = TypeVar("Start")
Result = TypeVar("Result")


def run_starts(
    estimator: Any, op: KernelOperator, run: Callable[[Start], Result], starts: Sequence[Start], X: Any, y: Any
) -> Iterator[Result]:
    """Yield the result of every start in order, computed side by side, with progress reported.

    Kernels computed again at every pass use all threads for one start already, and hold a tile for each.
    """
    results = map(run, starts) if op.recomputed else parallel_map(run, starts)
    return track(estimator, results, total=len(starts), what="starts", X=X, y=y)


def first_labels(
    op: KernelOperator, init: Any, weights: Floats, n_clusters: int
) -> Callable[[np.random.Generator | Ints], Ints]:
    """Return the function that turns what a run starts from, a generator or given labels, into labels."""

    def labels(start: np.random.Generator | Ints) -> Ints:
        if isinstance(start, np.random.Generator):
            return start_labels(op, init, weights, n_clusters, start)
        return start

    return labels


class KernelEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of estimators that see the data through one kernel."""

    #: Whether the objective depends on feature-space distances alone, so that features may be centred.
    _distances_only = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.positive_only = isinstance(self.kernel, str) and self.kernel == "chi2"
        return tags

    def _read(self, X: Any, *, reset: bool) -> Array:
        precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return read_samples(self, X, reset=reset, keep_float32=precomputed)

    def _settle_kernel(self, X: Array, weights: Floats) -> FittedKernel:
        """Return the kernel with every parameter fixed on the training samples, approximated if asked for."""
        method = getattr(self, "approximation", None)
        if method is None:
            options: dict[str, Any] = {"centre_features": self._distances_only, "weights": weights}
            return fit_kernel(X, self.kernel, self.kernel_params, **options)
        return approximate_kernel(
            X,
            self.kernel,
            self.kernel_params,
            method=method,
            n_components=self.n_components,
            random_state=self.random_state,
            weights=weights,
        )


def warn_if_indefinite(op: KernelOperator, name: str = "") -> None:
    """Warn where the kernel can be shown to have a negative eigenvalue."""
    lowest = negative_eigenvalue(op)
    if lowest is not None:
        warn(
            f"The kernel{name} is not positive semidefinite (it has an eigenvalue of {lowest:.3g} or lower), so there "
            "is no feature space behind it and distances may be negative. The result is still a local minimum of the "
            "objective; adding a constant to the kernel's diagonal makes it valid.",
            NotPSDWarning,
        )


def warn_if_rose() -> None:
    """Warn that a step would have raised the objective, which proves a negative eigenvalue."""
    warn(
        "A full step would have raised the objective: the kernel is not positive semidefinite. Steps were cut back so "
        "that the objective still fell; adding a constant to the kernel's diagonal makes the kernel valid.",
        NotPSDWarning,
    )


def warn_if_unfinished(converged: bool, max_iter: int, what: str = "labels") -> None:
    """Warn that the labels, or what else was sought, had not settled."""
    if not converged:
        warn(
            f"The best run stopped at max_iter={max_iter} before its {what} settled. Raise max_iter or tol.",
            ConvergenceWarning,
        )


def warn_if_collapsed(collapsed: bool, p_init: float, *, drawn: bool) -> None:
    """Warn that MinMax k-means could not begin and k-means took its place."""
    if collapsed:
        remedy = "Lower n_clusters, raise n_init, or remove outliers." if drawn else "Choose another init."
        warn(
            "Every start left a cluster without variance (empty, a single sample, or equal samples) already at "
            f"p_init={p_init}, so the result is that of k-means. {remedy}",
            ConvergenceWarning,
        )


def warn_if_empty(totals: Array, n_clusters: int) -> None:
    """Warn that some clusters stayed empty."""
    filled = int(np.count_nonzero(totals > 0))
    if filled < n_clusters:
        warn(
            f"Number of distinct clusters ({filled}) found smaller than n_clusters ({n_clusters}). Possibly due to "
            "duplicate points in X.",
            ConvergenceWarning,
        )
