"""Copies of vectors in compiled loops.

``out[:] = source`` does the same, but numba compiles the message for arrays of different lengths into the loop, text
formatting included: about a second of a first fit.
"""

from numba import njit

from kernelweave.foundation.array_types import Array


@njit(nogil=True, cache=True)
def copy_into(out: Array, source: Array) -> None:
    """Write the entries of ``source`` into as many of ``out``."""
    for i in range(source.size):
        out[i] = source[i]
