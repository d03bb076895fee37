"""Weights of views: where they start, whether they are learned, and the exponent that shapes them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import streams
from kernelweave.inputs import read_view_weights
from kernelweave.solvers.shared.exponent import SUBSETS_OF_FEW, Trial, stable_exponent


@dataclass(frozen=True)
class StartWeights:
    """The view weights to begin with, and whether they are learned from there."""

    values: Floats
    learned: bool
    uniform: bool = False  # asked for by name, so that the exponent does not matter


@dataclass(frozen=True)
class Exponent:
    """The exponent p of the view weights; infinity stands for equal weights."""

    value: float
    path: dict[str, Floats] | None = None  # the exponents that "auto" tried, and the stability of each

    @property
    def power(self) -> float:
        """The exponent to raise weights to; equal weights are taken as they are."""
        return 1.0 if np.isinf(self.value) else self.value


def start_weights(view_weights: Any, init_view_weights: Any, names: Sequence[str]) -> StartWeights:
    """Return the weights that ``view_weights`` and ``init_view_weights`` ask for.

    ``view_weights`` is ``"learned"``, ``"uniform"`` or fixed weights; ``init_view_weights`` is what learning starts
    from, equal weights where it is None.
    """
    named = view_weights if isinstance(view_weights, str) else None
    if init_view_weights is not None and named != "learned":
        raise ParameterError(
            f"init_view_weights={init_view_weights!r} is what learning starts from and has no effect with "
            f"view_weights={view_weights!r}. Leave it out, or set view_weights='learned'."
        )
    if named is None:
        return StartWeights(read_view_weights(view_weights, names, "view_weights"), learned=False)
    if init_view_weights is not None:
        return StartWeights(read_view_weights(init_view_weights, names, "init_view_weights"), learned=True)
    equal = np.full(len(names), 1.0 / len(names))
    return StartWeights(equal, learned=named == "learned", uniform=named == "uniform")


def choose_exponent(
    p: float | str,
    start: StartWeights,
    trial_of: Callable[[Ints, np.random.Generator], Trial],
    sample_weights: Floats,
    n_clusters: int,
    random_state: Any,
) -> Exponent:
    """Return p, or the exponent that ``p="auto"`` chooses: the one whose clusters are the most stable.

    ``trial_of`` takes a subset of the samples and a generator, and returns what clusters it with some exponents.
    """
    if start.uniform:
        return Exponent(np.inf)
    if p != "auto":
        return Exponent(float(p))
    if not start.learned:
        raise ParameterError(
            f"p='auto' chooses how far learned weights may differ, but view_weights={start.values.tolist()} are fixed. "
            "Give p a number, or set view_weights='learned'."
        )
    if len(start.values) == 1:
        return Exponent(np.inf)
    rngs = streams(random_state, SUBSETS_OF_FEW, "resampling")
    choice = stable_exponent(trial_of, np.flatnonzero(sample_weights > 0), rngs, n_clusters)
    return Exponent(choice.p, {"p": choice.exponents, "stability": choice.stabilities})


def kernel_coefficients(view_weights: Floats, exponent: Exponent) -> Floats:
    """Return the shares of the kernels in their sum, w_v^p scaled to add up to 1."""
    powers = (view_weights / view_weights.max()) ** exponent.power
    return np.asarray(powers / powers.sum())


def shares_of(view_weights: Floats, views: Sequence[int]) -> Floats:
    """Return the weights of some views, scaled to add up to 1; equal ones where they are all zero."""
    chosen = view_weights[list(views)]
    return np.asarray(chosen / chosen.sum() if chosen.any() else np.full(len(chosen), 1.0 / len(chosen)))
