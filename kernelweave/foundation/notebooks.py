"""How notebooks show a model: the summary is drawn by the topmost layer, which tells this one how to get it."""

from collections.abc import Callable
from typing import Any

_summaries: list[Callable[[Any], str]] = []


def show_models_by(summary: Callable[[Any], str]) -> None:
    """Set the function that returns the summary of a model as HTML."""
    _summaries[:] = [summary]


def model_summary(estimator: Any) -> str:
    """Return the summary of a model as HTML, nothing where no function was set."""
    return _summaries[0](estimator) if _summaries else ""
