"""Versions of installed packages."""

from functools import cache
from importlib.metadata import version


@cache
def installed_version(package: str) -> str:
    """Return the version of a package. Its files are read once: they say the same for as long as a process runs."""
    return version(package)
