"""What a fitted convex mixture keeps: components, priors and view weights, enough to measure and assign new samples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from kernelweave.estimators.mixtures.exemplar_choice import Exemplars
from kernelweave.estimators.mixtures.fitted_views import FittedView
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.kernels.divergences import Placement


@dataclass(frozen=True)
class MixtureModel:
    """A convex mixture of one view or several that share their priors.

    With ``mixes_views`` the views are components of a mixture themselves, sum_v w_v Q_v(x); otherwise every view has a
    likelihood to itself, and the mean of the logarithms with weights w is what was maximised.
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

    def divergences(self, blocks: Sequence[Matrix]) -> list[Floats]:
        """Return the divergences of new samples from the components, view by view, each of shape (n_new, m)."""
        return [placement.divergences(block) for placement, block in zip(self.placements, blocks, strict=True)]

    def log_posteriors(self, divergences: Sequence[Floats]) -> Floats:
        """Return the logarithms of the exemplars' posteriors, up to a constant for each sample, shape (n_new, k)."""
        with np.errstate(divide="ignore"):
            logs = self._log_similarities(divergences)
            of_exemplars = np.log(self.exemplar_priors)
            if self.mixes_views and len(logs) == 1:
                return of_exemplars + logs[0][:, self.columns]
            if self.mixes_views:
                constants = np.log(self.view_weights) + self.log_normalizers
                joint = [log[:, self.columns] + constant for log, constant in zip(logs, constants, strict=True)]
                return of_exemplars + logsumexp(np.stack(joint), axis=0)
            # Relative to the largest weight: equal weights then leave the posteriors as they are.
            constants = np.log(self.view_weights / self.view_weights.max())
            totals = [np.where(np.isfinite(total), total, 0.0)[:, None] for total in self._log_mixtures(logs)]
            terms = zip(logs, totals, constants, strict=True)
            joint = [log[:, self.columns] - total + constant for log, total, constant in terms]
            return of_exemplars + logsumexp(np.stack(joint), axis=0)

    def log_likelihoods(self, divergences: Sequence[Floats]) -> Floats:
        """Return the log-likelihood of each sample in the terms of the objective; -inf where no component allows it."""
        with np.errstate(divide="ignore"):
            mixtures = self._log_mixtures(self._log_similarities(divergences))
            per_view = np.stack(mixtures) + self.log_normalizers[:, None]
            if self.mixes_views:
                return np.asarray(logsumexp(per_view + np.log(self.view_weights)[:, None], axis=0))
        counted = self.view_weights > 0
        return self.view_weights[counted] @ per_view[counted]

    def _log_similarities(self, divergences: Sequence[Floats]) -> list[Floats]:
        return [-beta * d for beta, d in zip(self.betas, divergences, strict=True)]

    def _log_mixtures(self, log_similarities: Sequence[Floats]) -> list[Floats]:
        """Return log sum_j q_j exp(-beta d_j) of every view, each of shape (n_new,)."""
        log_priors = np.log(self.priors)
        return [logsumexp(log + log_priors, axis=1) for log in log_similarities]


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
        placements=tuple(view.fitted.placement(support) for view in views),
        betas=np.array([view.beta for view in views]),
        log_normalizers=log_normalizers,
        view_weights=view_weights,
        mixes_views=mixes_views,
        priors=priors[support],
        columns=np.searchsorted(support, exemplars.indices),
        exemplar_priors=exemplars.priors,
    )
    return model, support
