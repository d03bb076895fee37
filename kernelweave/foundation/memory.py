"""What a limit of memory leaves room for, and memory that was freed and that the allocator still holds.

``memory_limit`` is in MiB everywhere.
"""

import ctypes
import math
import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from kernelweave.foundation.errors import ParameterError

#: Work that passes, as tiles and vectors, may exceed a limit by this share of it.
PASSING = 0.1
#: MiB that a fit may take whatever the limit: what few samples need.
FREE = 1.0


def matrices_mib(count: float, n: int) -> float:
    """Return the MiB that so many n x n matrices of float64 take."""
    return count * n * n * 8 / 2**20


@dataclass(frozen=True)
class Batches:
    """How many rows are worked on together, and how many such batches at a time."""

    size: int
    at_once: int


@dataclass(frozen=True)
class Copies:
    """What is kept of every sample beside a table, in bytes."""

    what: str
    n_samples: int
    kept: float
    beside: float = 0.0  # bytes that are kept whatever the number of samples


def rows_within(limit: float, row_bytes: float, most: int) -> int:
    """Return how many rows of so many bytes, at most ``most``, fit into ``limit`` MiB; at least one."""
    return int(min(most, max(1.0, limit * 2**20 / row_bytes)))


def batches_within(limit: float, row_bytes: float, most: int, least: int = 1, beside: float = 0.0) -> Batches:
    """Return batches of ``least`` to ``most`` rows that fit into ``limit`` MiB; always one batch at a time, or more.

    Each takes ``beside`` bytes whatever its rows. Their size follows from the limit alone and not from the number of
    threads, so that results do not depend on it. Batches become smaller before there is only one at a time: that costs
    less than a core that waits.
    """
    size = int(min(most, max(least, (limit * 2**19 - beside) / row_bytes)))
    return Batches(size, max(1, int(min(limit * 2**20 / (size * row_bytes + beside), 2**31))))


def room_beside(work: float, memory_limit: float) -> float:
    """Return what a limit leaves for matrices beside ``work`` MiB that passes, part of which is free."""
    return max(0.0, memory_limit - max(0.0, work - max(FREE, PASSING * memory_limit)))


def check_matrices(
    count: float,
    n_samples: int,
    memory_limit: float,
    *,
    what: str,
    remedy: str,
    row_bytes: float = 0.0,
    beside: float = 0.0,
) -> None:
    """Raise where so many n x n matrices are more than the limit, before any of them is there.

    ``what`` names them, ``remedy`` says what helps beside a larger limit. There are ``row_bytes`` of every sample and
    ``beside`` bytes whatever the number of samples, too; a share of the limit is free for these.
    """

    def taken(n: int) -> float:
        more = (n * row_bytes + beside) / 2**20
        return matrices_mib(count, n) + max(0.0, more - max(FREE, PASSING * memory_limit))

    needed = taken(n_samples)
    if needed <= memory_limit:
        return
    fitting = bisect_right(range(1, n_samples + 1), memory_limit, key=taken)
    size = f"{needed:,.0f}" if needed >= 100 else f"{needed:.3g}"
    enough = math.ceil(needed) if needed >= 10 else math.ceil(100 * needed) / 100
    raise ParameterError(
        f"{what} of {n_samples:,} samples take {size} MiB, more than memory_limit={memory_limit:g}. Raise it to "
        f"{enough:g}, or {remedy}{f': {fitting:,} samples would fit' if fitting else ''}."
    )


def check_copies(copied: Sequence[Copies], memory_limit: float, *, remedy: str) -> None:
    """Raise where what a fit keeps of every sample is more than the limit, before any of it is there."""
    n_samples = max(part.n_samples for part in copied)
    beside = sum(part.beside for part in copied) / 2**20
    needed = beside + sum(part.n_samples * part.kept for part in copied) / 2**20
    if needed <= max(FREE, memory_limit):
        return
    room = max(0.0, max(FREE, memory_limit) - beside)
    fitting = int(room / (needed - beside) * n_samples)
    size = f"{needed:,.0f}" if needed >= 100 else f"{needed:.3g}"
    enough = math.ceil(needed) if needed >= 10 else math.ceil(100 * needed) / 100
    what = " and ".join(dict.fromkeys(part.what for part in copied))
    # What is kept whatever the number of samples comes from the columns.
    advice = f"{remedy}: {fitting:,} samples would fit." if fitting else "use fewer columns."
    raise ParameterError(
        f"The {what} of {n_samples:,} samples take {size} MiB, more than memory_limit={memory_limit:g}. Raise it to "
        f"{enough:g}, or {advice}"
    )


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
