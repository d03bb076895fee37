"""What convex mixtures share: views settled, exemplars chosen, samples assigned."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from kernelweave.estimators.shared.kernel_estimator import warn_if_empty
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.errors import ConvergenceWarning, ParameterError
from kernelweave.foundation.notices import warn
from kernelweave.foundation.sklearn_internals import CallbackSupportMixin, Interval, StrOptions
from kernelweave.kernels.divergences import (
    BREGMAN,
    FeatureSpaceDivergence,
    FittedDivergence,
    Placement,
    fit_divergence,
)
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.similarities import Similarities, similarities
from kernelweave.kernels.spec.fitting import FittedKernel, fit_kernel
from kernelweave.kernels.weighted_sum import CompositeKernel
from kernelweave.partitions import algebra
from kernelweave.solvers.kmeans.kernel_kmeans import Descent, kernel_kmeans
from kernelweave.solvers.mixtures.exemplars import reference_beta
from kernelweave.solvers.mixtures.priors import Priors
from kernelweave.solvers.mixtures.view_mixture import ViewMixture

#: Components are equal if they differ by no more than this in beta times the divergence.
SAME = 1e-9

#: Rules of the parameters both mixtures have.
MIXTURE_RULES: dict[str, list[Any]] = {
    "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
    "beta_scale": [Interval(Real, 0, None, closed="neither")],
    "smoothing": [Interval(Real, 0, 1, closed="left")],
    "solver": [StrOptions({"em", "newton", "auto"})],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "refine": [StrOptions({"kernel_kmeans"}), None],
    "memory_limit": [Interval(Real, 0, None, closed="neither")],
    "verbose": ["verbose"],
}


@dataclass(frozen=True)
class ViewSpec:
    """How one view is measured."""

    divergence: str
    beta: Any
    kernel: Any
    kernel_params: Mapping[str, Any] | None


@dataclass(frozen=True)
class SettledView:
    """One view of the training samples with everything fixed; similarities are among the samples that count."""

    block: Matrix
    spec: ViewSpec
    fitted: FittedDivergence
    beta: float
    similarities: Similarities


def _soft(estimator: "MixtureEstimator") -> bool:
    """Whether posteriors are what assigns samples."""
    if estimator.refine is not None:
        raise AttributeError(
            f"After refine={estimator.refine!r} the nearest centre decides and there are no posterior probabilities. "
            "Set refine=None for predict_proba."
        )
    return True


class MixtureEstimator(CallbackSupportMixin, ClusterMixin, BaseEstimator):
    """Base of the convex mixtures."""

    def _check_smoothing(self, divergences: Sequence[str]) -> None:
        if self.smoothing > 0 and not set(divergences) & set(BREGMAN):
            raise ParameterError(
                f"smoothing={self.smoothing} moves components in the space of the features, which "
                f"divergence={divergences[0]!r} does not have. Leave it out."
            )

    def _settle_view(self, block: Matrix, spec: ViewSpec, shares: Floats, name: str) -> SettledView:
        """Return a view with its divergence, beta and similarities."""
        if spec.kernel_params is not None and spec.divergence != "kernel":
            raise ParameterError(
                f"kernel_params={spec.kernel_params!r} has no effect with divergence={spec.divergence!r}. Leave it "
                "out, or set divergence='kernel'."
            )
        fitted = fit_divergence(
            block,
            spec.divergence,
            shares,
            smoothing=self.smoothing,
            kernel=spec.kernel,
            kernel_params=spec.kernel_params,
            memory_limit=self.memory_limit,
            label=name,
        )
        beta = self.beta_scale * _sharpness(spec.beta, fitted, shares, name)
        alive = np.flatnonzero(shares > 0)
        S = similarities(fitted.divergence, beta, alive, self.memory_limit)
        if not np.isfinite(S.offsets).all():
            lost = alive[np.flatnonzero(~np.isfinite(S.offsets))[0]]
            raise ParameterError(
                f"Sample {lost} has an infinite divergence from every component in {name}. Set smoothing (for instance "
                "0.05), or leave the sample out."
            )
        return SettledView(block, spec, fitted, beta, S)

    def _store(self, views: Sequence[SettledView], found: Priors | ViewMixture, weights: Floats) -> None:
        """Choose the exemplars, assign the training samples, and store what all mixtures have."""
        alive = np.flatnonzero(weights > 0)
        self.priors_: Floats = np.zeros(len(weights))
        self.priors_[alive] = found.values
        self.log_likelihood_ = self.objective_ = found.log_likelihood
        self.objective_path_ = np.array(found.history)
        self.optimality_gap_ = found.gap
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        if not found.converged:
            _warn_unfinished(found.n_iter, self.max_iter, found.gap)
        self.exemplar_indices_, self._exemplar_priors = _ranked(views, self.priors_)
        if self.n_clusters is not None:
            self._choose(views, alive[np.argsort(-np.round(found.gradient, 12), kind="stable")])
        self._support = np.union1d(np.flatnonzero(self.priors_), self.exemplar_indices_)
        self._columns = np.searchsorted(self._support, self.exemplar_indices_)
        self._placements: list[Placement] = [view.fitted.at(self._support) for view in views]
        self._betas = np.array([view.beta for view in views])
        scores = self._log_posteriors([view.fitted.divergence.block(slice(None), self._support) for view in views])
        self.labels_: Ints = scores.argmax(axis=1)
        self.labels_[self.exemplar_indices_] = np.arange(len(self.exemplar_indices_))
        lost = ~np.isfinite(scores.max(axis=1)) & (weights > 0)
        lost[self.exemplar_indices_] = False
        if lost.any():
            _warn_lost(int(lost.sum()))

    def _choose(self, views: Sequence[SettledView], likely: Ints) -> None:
        """Keep ``n_clusters`` exemplars, filled up with the likeliest samples where too few have a prior."""
        found = self.exemplar_indices_[: self.n_clusters]
        priors = self._exemplar_priors[: self.n_clusters]
        n_known = len(found)
        for j in likely if n_known < self.n_clusters else ():
            if len(found) == self.n_clusters:
                break
            if not _equal(views, np.array([j]), found).any():
                found = np.append(found, j)
        if len(found) > n_known:
            _warn_filled(n_known, len(found) - n_known)
        warn_if_empty(np.arange(self.n_clusters) < len(found), self.n_clusters)
        self.exemplar_indices_ = found
        self._exemplar_priors = np.append(priors, np.zeros(len(found) - n_known))

    @abstractmethod
    def _log_posteriors(self, gaps: list[Floats]) -> Floats:
        """Return the logarithms of the exemplars' posteriors, up to a constant for each sample.

        ``gaps`` holds for every view the divergences of samples from the support.
        """

    @abstractmethod
    def _blocks(self, X: Any) -> list[Matrix]:
        """Return new samples, view by view."""

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        blocks = self._blocks(X)
        gaps = [place.divergences(block) for place, block in zip(self._placements, blocks, strict=True)]
        scores = self._log_posteriors(gaps)
        lost = np.flatnonzero(~np.isfinite(scores.max(axis=1)))
        if len(lost):
            raise ParameterError(
                f"Sample {lost[0]} of X has an infinite divergence from every exemplar, so no cluster can have "
                f"produced it. {_remedy(self.smoothing)}"
            )
        return scores

    def predict(self, X: Any) -> Ints:
        """Return the most probable cluster of new samples; after ``refine``, the nearest centre.

        Parameters
        ----------
        X : array-like or views, as in ``fit``
            New samples; with ``divergence="precomputed"`` their divergences from the training samples.

        Returns
        -------
        labels : ndarray of shape (n_new,)
            Position of the exemplar in ``exemplar_indices_``.
        """
        if self.refine is None:
            return self._scores(X).argmax(axis=1)
        check_is_fitted(self)
        parts = [kernel.cross(block) for kernel, block in zip(self._refiners, self._blocks(X), strict=True)]
        cross = CompositeKernel(parts, self._refined_weights)
        sums = cross.cluster_sums(self.labels_, self._weights, len(self._refined_totals))
        start = np.zeros(sums.shape[1], dtype=np.intp)
        return algebra.nearest_clusters(sums, self._refined_totals, self._refined_norms, start)[0]

    @available_if(_soft)
    def predict_proba(self, X: Any) -> Floats:
        """Return the posterior probabilities of the clusters for new samples.

        Parameters
        ----------
        X : array-like or views, as in ``fit``
            New samples.

        Returns
        -------
        probabilities : ndarray of shape (n_new, n_clusters)
            They add up to 1 over the exemplars chosen.
        """
        scores = self._scores(X)
        return np.exp(scores - logsumexp(scores, axis=1, keepdims=True))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Ints:
        """Fit, then return the labels of the training samples."""
        return self.fit(X, y, sample_weight=sample_weight).labels_

    def _refine(self, views: Sequence[SettledView], weights: Floats, coefs: Floats) -> None:
        """Run kernel k-means from the labels, on the weighted sum of the views' kernels (PhD 3.4.1)."""
        if self.refine is None:
            return
        kernels = [_refining_kernel(view, self.refine) for view in views]
        parts: list[KernelOperator] = [kernel.operator("auto", self.memory_limit) for kernel in kernels]
        op: KernelOperator = CompositeKernel(parts, coefs)
        found: Descent = kernel_kmeans(op, self.labels_, weights, n_clusters=len(self.exemplar_indices_))
        self._refined_totals = found.totals
        self._refined_norms = found.norms
        self._weights = weights
        self._refined_weights = coefs
        self._refiners = [kernel.for_new_samples() for kernel in kernels]
        self.labels_ = found.labels
        self.inertia_ = found.objective


def _refining_kernel(view: SettledView, refine: str) -> FittedKernel:
    if isinstance(view.fitted, FeatureSpaceDivergence):
        return view.fitted.kernel
    if view.spec.divergence == "sqeuclidean":
        return fit_kernel(view.block, "linear", centre_features=True)
    raise ParameterError(
        f"refine={refine!r} works with distances in a kernel's feature space, not with "
        f"divergence={view.spec.divergence!r}. Set refine=None."
    )


def _remedy(smoothing: float) -> str:
    if smoothing > 0:
        return "A feature that was the same in all training samples excludes other values; leave that feature out."
    return "Fit with smoothing above 0, which leaves every component some probability for any value."


def _sharpness(beta: Any, fitted: FittedDivergence, shares: Floats, name: str) -> float:
    """Return beta as given, or beta_0 where it is "auto"."""
    if isinstance(beta, str) and beta == "auto":
        found = reference_beta(fitted.divergence, shares)
        if found == 0.0:
            raise ParameterError(
                f"beta='auto' divides by the sum of all divergences, but some in {name} are infinite: these samples "
                "have values that other components exclude. Set smoothing (for instance 0.05), or give beta."
            )
        return found if np.isfinite(found) else 1.0
    if isinstance(beta, bool | str) or not isinstance(beta, Real) or not 0 < float(beta) < np.inf:
        raise ParameterError(f"beta={beta!r} must be a positive number or 'auto'.")
    return float(beta)


def _ranked(views: Sequence[SettledView], priors: Floats) -> tuple[Ints, Floats]:
    """Return the samples with a prior, largest first, and their priors; equal samples are one, the first of them."""
    support = np.flatnonzero(priors)
    first = _equal(views, support, support).argmax(axis=1)
    heads, member = np.unique(first, return_inverse=True)
    totals = algebra.cluster_weights(member, priors[support], len(heads))
    # Rounded, so that equal priors keep the order of the samples.
    order = np.argsort(-np.round(totals, 12), kind="stable")
    return support[heads[order]], totals[order]


def _equal(views: Sequence[SettledView], rows: Ints, cols: Ints) -> Any:
    """Return which samples are equal as components: each as far from the other as from itself, in every view."""
    equal = np.ones((len(rows), len(cols)), dtype=bool)
    with np.errstate(invalid="ignore"):  # a component may exclude its own sample
        for view in views:
            d = view.fitted.divergence
            equal &= view.beta * (d.block(rows, cols) - d.own(rows)[:, None]) <= SAME
            equal &= view.beta * (d.block(cols, rows).T - d.own(cols)[None, :]) <= SAME
    return equal | (rows[:, None] == cols[None, :])


def _warn_lost(n_lost: int) -> None:
    warn(
        f"{n_lost} samples have an infinite divergence from every exemplar and were put into the first cluster. Raise "
        "n_clusters or set smoothing.",
        ConvergenceWarning,
    )


def _warn_unfinished(n_iter: int, max_iter: int, gap: float) -> None:
    if n_iter < max_iter:
        why = f"after {n_iter} steps: no step raises the likelihood by more than rounding. Raise tol to accept this."
    else:
        why = f"before it settled (max_iter={max_iter}). Raise max_iter or tol, or use solver='auto'."
    warn(
        f"The mixture stopped with an optimality gap of {gap:.2g} {why}",
        ConvergenceWarning,
    )


def _warn_filled(n_known: int, n_filled: int) -> None:
    warn(
        f"Only {n_known} samples have a prior above zero, fewer than n_clusters={n_known + n_filled}; the other "
        f"{n_filled} exemplars are those nearest to having one and hold themselves alone. Raise beta_scale for "
        "more clusters.",
        ConvergenceWarning,
    )
