"""Views of a convex mixture as fitted on the training samples: divergence, sharpness and similarities of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from kernelweave.foundation.array_types import Floats, Matrix
from kernelweave.foundation.errors import ParameterError
from kernelweave.kernels.divergences import BREGMAN, FittedDivergence, fit_divergence
from kernelweave.kernels.sharpness import reference_beta
from kernelweave.kernels.similarities import Similarities, similarities


@dataclass(frozen=True)
class ViewChoices:
    """How divergences are measured in one view, as the parameters say."""

    divergence: str
    beta: Any
    kernel: Any
    kernel_params: Mapping[str, Any] | None


@dataclass(frozen=True)
class FittedView:
    """One view of the training samples with everything fixed; similarities are among the samples that count."""

    block: Matrix
    choices: ViewChoices
    fitted: FittedDivergence
    beta: float
    similarities: Similarities

    @property
    def log_gaussian(self) -> float:
        """The logarithm of (beta / pi)^(d / 2), which makes exp(-beta d) of squared distances a density."""
        return 0.5 * self.block.shape[1] * float(np.log(self.beta / np.pi))


def fit_view(
    block: Matrix,
    choices: ViewChoices,
    shares: Floats,
    *,
    smoothing: float,
    beta_scale: float,
    memory_limit: float,
    name: str,
) -> FittedView:
    """Fix divergence and sharpness on one view, which errors call ``name``, and compute its similarities."""
    if choices.kernel_params is not None and choices.divergence != "kernel":
        raise ParameterError(
            f"kernel_params={choices.kernel_params!r} has no effect with divergence={choices.divergence!r}. Leave it "
            "out, or set divergence='kernel'."
        )
    fitted = fit_divergence(
        block,
        choices.divergence,
        shares,
        smoothing=smoothing,
        kernel=choices.kernel,
        kernel_params=choices.kernel_params,
        memory_limit=memory_limit,
        label=name,
    )
    beta = beta_scale * _sharpness(choices.beta, fitted, shares, name)
    counted = np.flatnonzero(shares > 0)
    S = similarities(fitted.divergence, beta, counted, memory_limit)
    excluded = ~np.isfinite(S.offsets)
    if excluded.any():
        sample = counted[int(np.argmax(excluded))]
        raise ParameterError(
            f"Sample {sample} has an infinite divergence from every component in {name}. Set smoothing (for instance "
            "0.05), or leave the sample out."
        )
    return FittedView(block, choices, fitted, beta, S)


def _sharpness(beta: Any, fitted: FittedDivergence, shares: Floats, name: str) -> float:
    """Return beta as a number; beta_0 where it is "auto"."""
    if isinstance(beta, str) and beta == "auto":
        value = reference_beta(fitted.divergence, shares)
        if value == 0.0:
            raise ParameterError(
                f"beta='auto' divides by the sum of all divergences, but some in {name} are infinite: these samples "
                "have values that other components exclude. Set smoothing (for instance 0.05), or give beta."
            )
        return value if np.isfinite(value) else 1.0
    if isinstance(beta, bool | str) or not isinstance(beta, Real) or not 0 < float(beta) < np.inf:
        raise ParameterError(f"beta={beta!r} must be a positive number or 'auto'.")
    return float(beta)


def check_smoothing(smoothing: float, divergences: Sequence[str]) -> None:
    """Raise where ``smoothing`` has no components to move in any view."""
    if smoothing > 0 and not set(divergences) & set(BREGMAN):
        raise ParameterError(
            f"smoothing={smoothing} moves components in the space of the features, which "
            f"divergence={divergences[0]!r} does not have. Leave it out."
        )


def check_normalizer(normalizer: str | None, divergence: str, where: str = "") -> None:
    """Raise where a normaliser is asked for that the divergence does not have; ``where`` names the view."""
    if normalizer is not None and divergence != "sqeuclidean":
        raise ParameterError(
            f"normalizer={normalizer!r} belongs to divergence='sqeuclidean', but {where}divergence={divergence!r}. Set "
            "normalizer=None."
        )


def log_normalizers(views: Sequence[FittedView], normalizer: str | None) -> Floats:
    """Return the logarithm of what exp(-beta d) of every view is multiplied by; zeros where nothing is asked for."""
    return np.array([0.0 if normalizer is None else view.log_gaussian for view in views])
