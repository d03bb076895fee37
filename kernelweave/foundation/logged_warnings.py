"""Warnings that point at the user's line, and that a fitted model remembers."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Packages whose frames lie between a warning and the line it should point at.
_INSIDE = ("kernelweave", "sklearn", "joblib", "contextlib")
_messages: ContextVar[list[str] | None] = ContextVar("messages", default=None)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the nearest line outside the library, and add the message to the log that is being kept."""
    messages = _messages.get()
    if messages is not None:
        messages.append(message)
    warnings.warn(message, category, stacklevel=_level())


@contextmanager
def logged_warnings() -> Iterator[list[str]]:
    """Collect the messages of warnings, each once; a log around this one gets them too."""
    messages: list[str] = []
    outer = _messages.get()
    token = _messages.set(messages)
    try:
        yield messages
    finally:
        _messages.reset(token)
        messages[:] = dict.fromkeys(messages)
        if outer is not None:
            outer.extend(messages)


def _level() -> int:
    """Return the stack level, counted from :func:`warn`, of the nearest frame outside the library."""
    frame = sys._getframe(1)
    level = 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        frame = frame.f_back
        level = level + 1
    return level
