"""Numbers given one for all views or one per view, such as regularisations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import per_view


def view_numbers(values: Any, names: Sequence[str], parameter: str, highest: float = np.inf) -> Floats:
    """Return a number for each view, from one for all, a list or a dict; between 0 and ``highest``."""
    try:
        numbers = np.array([_number(value) for value in per_view(values, names, parameter)])
    except TypeError as error:
        raise ParameterError(
            f"{parameter}={values!r} must hold numbers, one for all views or one per view, {list(names)}."
        ) from error
    if not (np.isfinite(numbers).all() and (numbers >= 0).all() and (numbers <= highest).all()):
        limit = "" if np.isinf(highest) else f" nor above {highest:g}"
        raise ParameterError(f"{parameter}={values!r} must hold finite numbers that are not negative{limit}.")
    return numbers


def _number(value: Any) -> float:
    if isinstance(value, str | bool):
        raise TypeError(f"{value!r} is not a number")
    try:
        return float(value)
    except ValueError as error:
        raise TypeError(f"{value!r} is not a number") from error
