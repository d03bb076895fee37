"""Warnings that point at the user's line, and that a fitted model remembers."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Packages whose frames lie between a warning and the line it should point at.
_INSIDE = ("kernelweave", "sklearn", "joblib", "contextlib")
_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the nearest line outside the library, and tell whoever listens."""
    heard = _heard.get()
    if heard is not None:
        heard.append(text)
    warnings.warn(text, category, stacklevel=_level())


@contextmanager
def listening() -> Iterator[list[str]]:
    """Collect the texts of warnings, each once; an outer listener hears them too."""
    own: list[str] = []
    outer = _heard.get()
    token = _heard.set(own)
    try:
        yield own
    finally:
        _heard.reset(token)
        own[:] = dict.fromkeys(own)
        if outer is not None:
            outer.extend(own)


def _level() -> int:
    """Return the stack level, seen from :func:`warn`, of the nearest frame outside the library."""
    frame = sys._getframe(1)
    level = 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        frame = frame.f_back
        level = level + 1
    return level
