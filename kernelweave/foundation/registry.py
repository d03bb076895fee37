"""What lower layers use of upper ones, without knowing them, and packages that need not be installed.

A lower layer asks for something by what it is for; the top of the package, which alone knows all layers, says where it
is. Nothing is imported before it is asked for.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

_places: dict[str, str] = {}


def provide(purpose: str, place: str) -> None:
    """Say where a function is, as ``"package.module:name"``."""
    module, colon, name = place.partition(":")
    if not (module and colon and name):
        raise ValueError(f"place={place!r} must be 'package.module:name'.")
    _places[purpose] = place


def provided(purpose: str) -> Callable[..., Any]:
    """Return the function provided for a purpose; its module is imported now."""
    if purpose not in _places:
        known = ", ".join(map(repr, sorted(_places))) or "nothing"
        raise LookupError(f"Nothing is provided for {purpose!r}; known purposes: {known}.")
    module, _, name = _places[purpose].partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def package(name: str) -> Any:
    """Return an optional package by its name, imported now; ImportError where it is not installed."""
    return import_module(name)
