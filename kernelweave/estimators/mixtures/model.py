"""What a fitted convex mixture keeps: components, priors and view weights, enough to measure and assign new samples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from kernelweave.estimators.mixtures.exemplar_choice import Exemplars
from kernelweave.estimators.mixtures.fitted_views import FittedView
from kernelweave.foundation.array_types import Bools, Floats, Ints, Matrix
from kernelweave.inputs import Views
from kernelweave.kernels.divergences import ObservedPlacement, Placement


@dataclass(frozen=True)
class MixtureModel:
    """A convex mixture of one view or several that share their priors.

    With ``mixes_views`` the views are components of a mixture themselves, sum_v w_v Q_v(x); otherwise every view has a
    likelihood to itself, and the mean of the logarithms with weights w is what was maximised. Divergences are infinite
    where a view lacks the sample or the component: the view then says nothing of the two.
    """

    placements: tuple[Placement, ...]  # components with a prior, and exemplars, in every view
    betas: Floats  # (V,)
    log_normalizers: Floats  # (V,) logarithm of what exp(-beta d) is multiplied by
    view_weights: Floats  # (V,)
    mixes_views: bool
    priors: Floats  # (m,) of the components
    columns: Ints  # (k,) which components are exemplars
    exemplar_priors: Floats  # (k,) with those of equal samples added

    @property
    def compares_views(self) -> bool:
        """Whether divergences must be known as such, not only up to a constant for each sample, to assign it."""
        return self.mixes_views and len(self.placements) > 1

    @property
    def absolute(self) -> bool:
        """Whether the divergences of new samples are known as such in every view."""
        return all(placement.absolute for placement in self.placements)

    def divergences(self, samples: Sequence[Matrix] | Views) -> list[Floats]:
        """Return the divergences of new samples from the components, view by view, each of shape (n_new, m)."""
        if observed_in(samples) is None:
            return [placement.divergences(block) for placement, block in zip(self.placements, samples, strict=True)]
        return [self._observed_divergences(samples, v) for v in range(len(self.placements))]  # type: ignore[arg-type]

    def _observed_divergences(self, samples: Views, view: int) -> Floats:
        out = np.full((samples.n_samples, len(self.priors)), np.inf)
        there = samples.present(view)
        if len(there):
            out[there] = self.placements[view].divergences(samples.blocks[view][there])
        return out

    def unrelated(self, observed: Bools) -> Bools:
        """Return which samples share no view of weight above zero with an exemplar that has a prior."""
        leads = [self._has_exemplar(v) for v in range(len(self.placements))]
        return np.asarray(~(self._weights_by_sample(observed) > 0)[leads].any(axis=0))

    def _weights_by_sample(self, observed: Bools) -> Floats:
        """Return the weights of the views that each sample is in, shape (V, n_new).

        Those of a mixture of views are shares of each other, equal ones where all are zero; so a view that lost its
        weight still decides on samples that have no other.
        """
        weights = self.view_weights[:, None] * observed.T
        if not self.mixes_views:
            return weights
        totals = weights.sum(axis=0)
        return np.where(totals > 0, weights, observed.T) / np.where(totals > 0, totals, observed.sum(axis=1))

    def _has_exemplar(self, view: int) -> bool:
        placement = self.placements[view]
        chosen = self.columns[self.exemplar_priors > 0]
        return not isinstance(placement, ObservedPlacement) or bool(placement.known[chosen].any())

    def log_posteriors(self, divergences: Sequence[Floats], observed: Bools | None = None) -> Floats:
        """Return the logarithms of the exemplars' posteriors, up to a constant for each sample, shape (n_new, k).

        ``observed``, of shape (n_new, V), says which views samples are in, None that they are in all.
        """
        with np.errstate(divide="ignore"):
            logs = self._log_similarities(divergences)
            of_exemplars = np.log(self.exemplar_priors)
            if self.mixes_views and len(logs) == 1:
                return of_exemplars + logs[0][:, self.columns]
            if self.mixes_views:
                weights = self.view_weights[:, None] if observed is None else self._weights_by_sample(observed)
                constants = np.log(weights) + self.log_normalizers[:, None]
                joint = [log[:, self.columns] + each[:, None] for log, each in zip(logs, constants, strict=True)]
                return of_exemplars + logsumexp(np.stack(joint), axis=0)
            # Relative to the largest weight: equal weights then leave the posteriors as they are.
            constants = np.log(self.view_weights / self.view_weights.max())
            totals = [np.where(np.isfinite(total), total, 0.0)[:, None] for total in self._log_mixtures(logs)]
            terms = zip(logs, totals, constants, strict=True)
            joint = [log[:, self.columns] - total + constant for log, total, constant in terms]
            return of_exemplars + logsumexp(np.stack(joint), axis=0)

    def log_likelihoods(self, divergences: Sequence[Floats]) -> Floats:
        """Return the log-likelihood of each sample in the terms of the objective; -inf where no component allows it."""
        per_view = self._log_densities(divergences)
        if self.mixes_views:
            with np.errstate(divide="ignore"):
                return np.asarray(logsumexp(per_view + np.log(self.view_weights)[:, None], axis=0))
        counted = self.view_weights > 0
        return self.view_weights[counted] @ per_view[counted]

    def observed_log_likelihoods(self, divergences: Sequence[Floats], observed: Bools) -> tuple[Floats, Floats]:
        """Return the log-likelihoods of what is there, given which views these are, and how much each sample counts.

        ``observed`` has shape (n_new, V). Samples in none of the views that have a fixed weight count nothing.
        """
        per_view = self._log_densities(divergences)
        weights = self._weights_by_sample(observed)
        if self.mixes_views:
            with np.errstate(divide="ignore"):
                return np.asarray(logsumexp(per_view + np.log(weights), axis=0)), np.ones(len(observed))
        totals = weights.sum(axis=0)
        logs = (weights * np.where(weights > 0, per_view, 0.0)).sum(axis=0)
        return logs / np.where(totals > 0, totals, 1.0), totals

    def _log_densities(self, divergences: Sequence[Floats]) -> Floats:
        """Return log Q_v(x), shape (V, n_new)."""
        with np.errstate(divide="ignore"):
            mixtures = self._log_mixtures(self._log_similarities(divergences))
            return np.stack(mixtures) + self.log_normalizers[:, None]

    def _log_similarities(self, divergences: Sequence[Floats]) -> list[Floats]:
        return [-beta * d for beta, d in zip(self.betas, divergences, strict=True)]

    def _log_mixtures(self, log_similarities: Sequence[Floats]) -> list[Floats]:
        """Return log sum_j q_j exp(-beta d_j) of every view, each of shape (n_new,)."""
        log_priors = np.log(self.priors)
        return [logsumexp(log + log_priors, axis=1) for log in log_similarities]


def observed_in(samples: Sequence[Matrix] | Views) -> Bools | None:
    """Return which samples each view has, None where it has all."""
    return samples.observed if isinstance(samples, Views) else None


def mixture_model(
    views: Sequence[FittedView],
    priors: Floats,
    exemplars: Exemplars,
    *,
    log_normalizers: Floats,
    view_weights: Floats,
    mixes_views: bool,
) -> tuple[MixtureModel, Ints]:
    """Return what new samples need of a fitted mixture, and the samples its components are at."""
    support = np.union1d(np.flatnonzero(priors), exemplars.indices)
    model = MixtureModel(
        placements=tuple(view.placement(support) for view in views),
        betas=np.array([view.beta for view in views]),
        log_normalizers=log_normalizers,
        view_weights=view_weights,
        mixes_views=mixes_views,
        priors=priors[support],
        columns=np.searchsorted(support, exemplars.indices),
        exemplar_priors=exemplars.priors,
    )
    return model, support
