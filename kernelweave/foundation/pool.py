"""The threads of this process: one pool that stays, so that handing out work costs little and starts no threads.

Whoever hands out work takes part in it, so a piece that waits for a free thread holds nobody up: pools inside pools
cannot block each other. After a fork the child begins with a pool of its own.
"""

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class _Pool:
    """Threads that stay: as many as anyone asked for so far, none before."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the threads, which a forked child does not have."""
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._size = 0

    def submit(self, threads: int, function: Callable[..., Result], *args: Any) -> "Future[Result]":
        """Have a function called by one of at least so many threads."""
        with self._lock:
            if self._executor is None or self._size < threads:
                if self._executor is not None:
                    self._executor.shutdown(wait=False)  # what was handed out before is still done
                self._size = max(threads, os.cpu_count() or 1)
                self._executor = ThreadPoolExecutor(self._size, thread_name_prefix="kernelweave")
            return self._executor.submit(function, *args)


_POOL = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.begin_anew)


def run(work: Callable[[Task], Result], tasks: Sequence[Task], threads: int) -> list[Result]:
    """Return ``work(task)`` of every task in order, done by this thread and by up to ``threads - 1`` of the pool.

    Each takes the next task that nobody has begun. After an error no more are begun, and it is raised.
    """
    results: list[Any] = [None] * len(tasks)
    numbers = itertools.count()
    failed = threading.Event()

    def take() -> None:
        for number in numbers:
            if number >= len(tasks) or failed.is_set():
                return
            try:
                results[number] = work(tasks[number])
            except BaseException:
                failed.set()
                raise

    helpers = [_POOL.submit(threads, take) for _ in range(min(threads, len(tasks)) - 1)]
    try:
        take()
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]
        errors = [helper.exception() for helper in begun]
    for error in errors:
        if error is not None:
            raise error
    return results


def mapped(work: Callable[[Task], Result], tasks: Sequence[Task], threads: int) -> Iterator[Result]:
    """Yield ``work(task)`` of every task in order, done by this thread and ``threads - 1`` of the pool.

    They begin a few tasks ahead of what was asked for; closing the iterator leaves the rest undone.
    """
    results: list[Future[Result]] = [Future() for _ in tasks]
    numbers = itertools.count()
    ahead = threading.Semaphore(2 * threads)
    closed = threading.Event()

    def take() -> bool:
        """Do the next task that nobody has begun; False where there is none."""
        number = next(numbers)
        if number >= len(tasks) or closed.is_set():
            return False
        try:
            results[number].set_result(work(tasks[number]))
        except BaseException as error:
            results[number].set_exception(error)
        return True

    def take_all() -> None:
        while ahead.acquire() and take():
            pass

    helpers = [_POOL.submit(threads, take_all) for _ in range(threads - 1)]
    try:
        for result in results:
            while not result.done() and ahead.acquire(blocking=False) and take():
                pass
            yield result.result()
            ahead.release()
    finally:
        closed.set()
        ahead.release(len(helpers))
        wait([helper for helper in helpers if not helper.cancel()])
