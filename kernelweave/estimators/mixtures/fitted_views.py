"""Views of a convex mixture as fitted on the training samples: divergence, sharpness and similarities of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from kernelweave.estimators.shared.single_kernel import is_precomputed
from kernelweave.foundation.array_types import Bools, Floats, Ints, Matrix
from kernelweave.foundation.errors import ParameterError, ViewError
from kernelweave.foundation.memory import PASSING, room_beside
from kernelweave.kernels.divergences import (
    BREGMAN,
    FittedDivergence,
    ObservedPlacement,
    Placement,
    check_tables,
    fit_divergence,
)
from kernelweave.kernels.sharpness import reference_beta
from kernelweave.kernels.similarities import ObservedSimilarities, Similarities, similarities


@dataclass(frozen=True)
class ViewChoices:
    """How divergences are measured in one view, as the parameters say."""

    divergence: str
    beta: Any
    kernel: Any
    kernel_params: Mapping[str, Any] | None

    @property
    def compares_pairs(self) -> bool:
        """Whether the view is a matrix with a column for every training sample."""
        return self.divergence == "precomputed" or (self.divergence == "kernel" and is_precomputed(self.kernel))


@dataclass(frozen=True)
class FittedView:
    """One view of the training samples with everything fixed; similarities are among the samples that count.

    Where samples are absent, ``block`` and ``fitted`` are of the others alone.
    """

    block: Matrix
    choices: ViewChoices
    fitted: FittedDivergence
    beta: float
    similarities: Similarities
    samples: Ints | None = None  # those the view has, ascending; None: all

    def divergences(self, rows: Ints, components: Ints) -> Floats:
        """Return the divergences of some samples from components, infinite where the view lacks one of the two."""
        if self.samples is None:
            return self.fitted.divergence.block(rows, components)
        known_rows, row_places = self.places(rows)
        known, place = self.places(components)
        out = np.full((len(rows), len(components)), np.inf)
        out[np.ix_(known_rows, known)] = self.fitted.divergence.block(row_places, place)
        return out

    def places(self, samples: Ints) -> tuple[Bools, Ints]:
        """Return which of some samples the view has, and the rows that these have in it."""
        if self.samples is None:
            return np.ones(len(samples), dtype=bool), samples
        known = np.isin(samples, self.samples)
        return known, np.searchsorted(self.samples, samples[known])

    def placement(self, components: Ints) -> Placement:
        """Return what a model keeps of chosen components."""
        if self.samples is None:
            return self.fitted.placement(components)
        known, place = self.places(components)
        columns = self.samples if self.choices.compares_pairs else None
        return ObservedPlacement(self.fitted.placement(place), known, columns)

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
    samples: Ints | None = None,
) -> FittedView:
    """Fix divergence and sharpness on one view, which errors call ``name``, and compute its similarities.

    ``samples`` are those the view has, None for all; what else the block holds is not read.
    """
    if choices.kernel_params is not None and choices.divergence != "kernel":
        raise ParameterError(
            f"kernel_params={choices.kernel_params!r} has no effect with divergence={choices.divergence!r}. Leave it "
            "out, or set divergence='kernel'."
        )
    everyone = shares
    if samples is not None:
        block = block[samples][:, samples] if choices.compares_pairs else block[samples]
        shares = _shares_among(samples, shares, name)
    check_tables(block, choices.divergence, smoothing, memory_limit)
    fitted = fit_divergence(
        block,
        choices.divergence,
        shares,
        smoothing=smoothing,
        kernel=choices.kernel,
        kernel_params=choices.kernel_params,
        memory_limit=memory_limit / 2,  # similarities come on top of a kernel
        label=name if samples is None else f"{name} (absent samples left out)",
    )
    left = max(PASSING * memory_limit, room_beside(fitted.table_mib, memory_limit - fitted.stored_mib))
    beta = beta_scale * _sharpness(choices.beta, fitted, shares, name, left / 2)
    counted = np.flatnonzero(shares > 0)
    S = similarities(fitted.divergence, beta, counted, left)
    excluded = ~np.isfinite(S.offsets)
    if excluded.any():
        sample = counted[int(np.argmax(excluded))]
        raise ParameterError(
            f"Sample {sample if samples is None else samples[sample]} has an infinite divergence from every component "
            f"in {name}. Set smoothing (for instance 0.05), or leave the sample out."
        )
    if samples is not None:
        among = np.flatnonzero(everyone > 0)
        S = ObservedSimilarities(S, np.searchsorted(among, samples[counted]), len(among))
    return FittedView(block, choices, fitted, beta, S, samples)


def _shares_among(samples: Ints, shares: Floats, name: str) -> Floats:
    """Return the shares of some samples in what they have together."""
    known = shares[samples]
    if not known.any():
        raise ViewError(
            f"All {len(known)} samples that {name} has are of weight 0. Leave the view out, or give one of them a "
            "weight."
        )
    return np.asarray(known / known.sum())


def _sharpness(beta: Any, fitted: FittedDivergence, shares: Floats, name: str, room: float) -> float:
    """Return beta as a number; beta_0 where it is "auto"."""
    if isinstance(beta, str) and beta == "auto":
        value = reference_beta(fitted.divergence, shares, room)
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
