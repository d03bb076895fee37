"""Backends by name, made on first use, so that importing the library stays quick."""

from functools import cache

from kernelweave.backends.host import HostBackend
from kernelweave.backends.protocol import Backend

#: Backends of the library: compiled loops, the default, and their plain twins.
BACKENDS = ("numba", "numpy")


def get_backend(name: str = "numba") -> Backend:
    """Return the backend called ``name``, always the same object."""
    return _made(name)


@cache
def _made(name: str) -> Backend:
    return HostBackend(name)
