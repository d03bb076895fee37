"""Leading eigenpairs of small symmetric matrices, those of several matrices at the same time.

SciPy keeps the interpreter while LAPACK decomposes a matrix, so that threads with a matrix each wait for one another.
Here LAPACK is called by the address that SciPy publishes for compiled code: the same routine with the same arguments,
and so the same numbers, while other threads go on.
"""

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.linalg import cython_lapack, eigh

from kernelweave.foundation.array_types import Array, Floats

ROUTINE = "dsyevr"
# Arguments of the routine: letters, numbers and arrays, all by their addresses.
N_ARGUMENTS = 21
# How its signature speaks of whole numbers of four bytes.
WHOLE_NUMBER = b" int *"


def last_eigenpairs(matrix: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the largest ``count`` eigenvalues of a symmetric matrix, in ascending order, and their vectors.

    They are those of ``scipy.linalg.eigh``, to the last bit. Where many eigenvalues are equal but for rounding, as
    those of a kernel too narrow for its samples, LAPACK may find fewer than it was asked for: then the matrix is
    decomposed as a whole, by another routine.
    """
    n = len(matrix)
    routine = lapack_routine(ROUTINE, N_ARGUMENTS)
    if routine is None or n == 0 or matrix.dtype != np.float64:
        values, vectors = _by_scipy(matrix, count)
    else:
        values, vectors = _by_address(routine, matrix, count)
    return (values, vectors) if len(values) == count else _of_whole(matrix, count)


def _by_scipy(matrix: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the pairs that SciPy finds, which may be fewer."""
    n = len(matrix)
    try:
        values, vectors = eigh(matrix, subset_by_index=[n - count, n - 1], check_finite=False)
    except np.linalg.LinAlgError:  # what LAPACK reports in some of these cases
        return np.empty(0), np.empty((n, 0))
    return values, vectors


def _of_whole(matrix: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the same by divide and conquer, which finds every eigenvalue."""
    if not np.isfinite(matrix).all():
        raise np.linalg.LinAlgError(f"A matrix of {len(matrix)} rows that is not finite has no eigenvectors.")
    values, vectors = eigh(matrix, driver="evd", check_finite=False)
    first = len(matrix) - count
    return values[first:], vectors[:, first:].copy(order="F")


def _by_address(routine: Callable[..., None], matrix: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the pairs that LAPACK's routine finds, which may be fewer."""
    n = len(matrix)
    A = np.array(matrix, order="F")  # the routine overwrites it
    found = np.zeros((), dtype=np.intc)
    info = np.zeros((), dtype=np.intc)
    values = np.empty(n)
    vectors = np.empty((n, count), order="F")
    support = np.empty(2 * count, dtype=np.intc)

    def decompose(work: Floats, whole_work: Array, size: int, whole_size: int) -> None:
        asked = (b"V", b"I", b"L", n, A, n, 0.0, 1.0, n - count + 1, n, 0.0)
        room = (work, size, whole_work, whole_size)
        _call(routine, *asked, found, values, vectors, n, support, *room, info)

    work = np.empty(1)
    whole_work = np.empty(1, dtype=np.intc)
    decompose(work, whole_work, -1, -1)  # asks how much room it would like to have
    size = int(work[0])
    whole_size = int(whole_work[0])
    decompose(np.empty(size), np.empty(whole_size, dtype=np.intc), size, whole_size)
    pairs = int(found) if info == 0 else 0
    return values[:pairs], vectors[:, :pairs]


@cache
def lapack_routine(name: str, n_arguments: int) -> Callable[..., None] | None:
    """Return a routine of SciPy's LAPACK, which lets go of the interpreter; None where whole numbers are longer."""
    capsule = ctypes.py_object(cython_lapack.__pyx_capi__[name])
    tell_name = ctypes.pythonapi.PyCapsule_GetName
    tell_name.restype = ctypes.c_char_p
    signature = tell_name(capsule)
    if WHOLE_NUMBER not in signature:
        return None
    tell_address = ctypes.pythonapi.PyCapsule_GetPointer
    tell_address.restype = ctypes.c_void_p
    address = tell_address(capsule, ctypes.c_char_p(signature))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(address)


def _call(routine: Callable[..., None], *arguments: object) -> None:
    """Call a routine with the addresses of letters, numbers and arrays."""
    held = [np.asarray(each, dtype=np.intc if isinstance(each, int) else None) for each in arguments]
    routine(*(each.ctypes.data for each in held))
