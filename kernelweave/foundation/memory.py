"""Memory that was freed, and that the allocator still holds."""

import ctypes
import sys
from collections.abc import Callable
from functools import cache


def return_freed_memory() -> None:
    """Give memory that was freed back to the system, where the C library can be asked to (glibc)."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    """Return glibc's function, None where there is none."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
