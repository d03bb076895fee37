"""Backends by name, made on first use, so that importing the library stays quick."""

from functools import cache

from kernelweave.backends.host import HostBackend
from kernelweave.backends.protocol import Backend

#: Backends of the library: compiled loops, the default, and their plain twins.
BACKENDS = ("numba", "numpy")


@cache
def get_backend(name: str = "numba") -> Backend:
    """Return the backend called ``name``."""
    return HostBackend(name)
