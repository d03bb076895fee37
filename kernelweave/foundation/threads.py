"""Threads for row loops: as many as the user allows, and the same result for any number.

Compiled loops release the interpreter lock and work on fixed ranges, so plain threads are enough: they are safe inside
other pools and after a fork, where the OpenMP layers of compiled loops are not. No two threads add into the same
number, and every number is added up in the same order whatever the ranges.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from kernelweave.foundation import pool
from kernelweave.foundation.array_types import Ints
from kernelweave.foundation.sklearn_internals import openmp_threads

# Below this many touched elements waking threads costs more than it saves: measured on 16 cores, where ranges of moved
# rows that wake all of them for less take longer than on one.
WORTH_A_THREAD = 1_600_000
# Narrower ranges than this make the strides of a row loop too short.
MIN_WIDTH = 256
# Pieces of rows that threads take from within compiled loops are at least as wide as this.
PIECE_WIDTH = 512
# Products of no more multiplications than this never leave one thread of BLAS by themselves.
SMALL_PRODUCT = 2**18


Task = TypeVar("Task")
Result = TypeVar("Result")

# Marks the threads of `parallel_map`, whose work must not be shared out once more.
_inside = threading.local()


def thread_count() -> int:
    """Return how many threads a loop may use: OMP_NUM_THREADS, threadpoolctl limits and affinity decide.

    Inside a task of :func:`parallel_map` or a range of :func:`for_ranges` it is one.
    """
    shared_out = getattr(_inside, "task", False) or getattr(_inside, "ranges", False)
    return 1 if shared_out else openmp_threads()


def parallel_map(work: Callable[[Task], Result], tasks: Sequence[Task], *, even_few: bool = False) -> Iterator[Result]:
    """Yield ``work(task)`` of every task in order, computed on as many threads as allowed.

    Tasks are taken up one by one, a few ahead of what was asked for; closing the iterator leaves the rest undone. Each
    one runs on a single thread with single-threaded BLAS. Fewer tasks than threads are left to share out their own
    work, unless ``even_few`` says that they have little of it to share.
    """
    threads = min(thread_count(), len(tasks)) if even_few else thread_count()
    if not 1 < threads <= len(tasks):
        yield from map(work, tasks)
        return

    with single_threaded_blas():
        yield from pool.mapped(_alone(work), tasks, threads)


def _alone(work: Callable[[Task], Result]) -> Callable[[Task], Result]:
    """Return work that shares out none of itself."""

    def alone(task: Task) -> Result:
        _inside.task = True
        try:
            return work(task)
        finally:
            _inside.task = False

    return alone


def cluster_map(work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
    """Yield ``work(task)`` of every task in order, like :func:`parallel_map`.

    Inside ``joblib.parallel_config("dask")`` tasks run on the workers of the cluster, one thread each.
    """
    backend, _ = get_active_backend()
    if type(backend).__name__ != "DaskDistributedBackend" or len(tasks) < 2:
        yield from parallel_map(work, tasks)
        return
    yield from Parallel(return_as="generator")(delayed(work)(task) for task in tasks)


def for_ranges(
    work: Callable[[int, int], object],
    n: int,
    *,
    elements: int,
    width: int | None = None,
    multiple: int = 1,
    most_at_once: int | None = None,
) -> list[object]:
    """Call ``work(start, stop)`` on ranges that cover ``range(n)`` and return the results in order.

    ``elements`` is the number of array elements the whole call touches: small work stays on one thread or a few. Give
    ``width`` where the result could depend on the ranges; without it they follow the number of threads and begin at
    multiples of ``multiple``. Where their work takes memory, no more than ``most_at_once`` of them are worked on at a
    time.
    """
    threads = worthwhile(elements)
    threads = threads if most_at_once is None else min(threads, most_at_once)
    width = width or -(-max(MIN_WIDTH, -(-n // threads)) // multiple) * multiple
    ranges = [(start, min(start + width, n)) for start in range(0, n, width)]
    if threads <= 1 or len(ranges) <= 1:
        return [work(start, stop) for start, stop in ranges]

    def part(ends: tuple[int, int]) -> object:
        outer = getattr(_inside, "ranges", False)
        _inside.ranges = True
        try:
            return work(*ends)
        finally:
            _inside.ranges = outer

    return pool.run(part, ranges, threads)


def share_pieces(work: Callable[[Ints, int, bool], bool], n: int, *, elements: int, width: int | None = None) -> None:
    """Have threads take pieces of ``range(n)`` from within a compiled loop until none is left.

    ``work(tickets, width, waits)`` takes pieces of ``width`` that nobody has begun, counted by ``tickets``. It returns
    whether all are done, for which the caller, who ``waits``, looks for a short while. Give ``width`` where what is
    written depends on the pieces. For work of a few milliseconds, where turns at the interpreter count.
    """
    tickets = np.zeros(2, dtype=np.int64)
    threads = worthwhile(elements)
    wide = width or piece_width(n, threads)
    if threads <= 1:
        work(tickets, wide, True)
        return
    pool.run_together(lambda waits: work(tickets, wide, waits), threads)


def piece_width(n: int, threads: int, multiple: int = 1) -> int:
    """Return how wide the pieces of ``range(n)`` are that so many threads take, a multiple of ``multiple``."""
    width = max(n, 1) if threads <= 1 else max(PIECE_WIDTH, -(-n // threads))
    return -(-width // multiple) * multiple


def worthwhile(elements: int) -> int:
    """Return how many threads are worth waking for work that touches so many elements, of those allowed."""
    if elements < WORTH_A_THREAD:  # asking how many are allowed takes as long as little work does
        return 1
    return min(thread_count(), max(2, 2 * elements // max(WORTH_A_THREAD, 1)))


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """Return what limits the libraries of linear algebra; a module that is imported later may bring one of its own."""
    return ThreadpoolController()


@lru_cache(maxsize=1)
def _blas(n_modules: int) -> ThreadpoolController:
    """Return what limits BLAS alone."""
    return _controller(n_modules).select(user_api="blas")


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS to one thread while our own threads call it; the earlier limit comes back afterwards.

    Inside a task of :func:`parallel_map`, and inside of itself, that holds already: the limit, which is shared, is left
    alone. To look takes a tenth of the time that it takes to set and to restore it.
    """
    if getattr(_inside, "task", False):
        yield
        return
    # Each library by itself: one at one thread already is left to whoever limited it. Some, as that of Faiss, count
    # their threads for every thread that calls them, and are not limited where the others are.
    limited = [(library, library.num_threads) for library in _blas(len(sys.modules)).lib_controllers]
    limited = [(library, threads) for library, threads in limited if threads > 1]
    try:
        for library, _ in limited:
            library.set_num_threads(1)
        yield
    finally:
        for library, threads in limited:
            library.set_num_threads(threads)


@contextmanager
def single_threaded_libraries() -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread, for functions of other libraries that add up in another order on more.

    ``threadpool_limits(1)`` does the same, but looks for the libraries each time, which takes milliseconds.
    """
    with _controller(len(sys.modules)).limit(limits=1):
        yield
