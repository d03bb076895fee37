"""The threads of this process: one pool that stays, so that handing out work costs little and starts no threads.

Whoever hands out work takes part in it, so a piece that waits for a free thread holds nobody up: pools inside pools
cannot block each other. After a fork the child begins with a pool of its own.
"""

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class _Job:
    """Work that threads of the pool may join in until it is closed."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work: Callable[[], object] | None = work
        self._lock = threading.Lock()
        self._joined = 0
        self._left = threading.Lock()
        self._left.acquire()
        self.error: BaseException | None = None

    def join_in(self) -> None:
        """Take part, unless the job is closed."""
        with self._lock:
            work = self._work
            if work is None:
                return
            self._joined += 1
        try:
            work()
        except BaseException as error:
            self.error = error
        with self._lock:
            self._joined -= 1
            if self._work is None and self._joined == 0:
                self._left.release()

    def close(self, *, wait: bool = True) -> None:
        """Let nobody join any more and wait for those who have."""
        with self._lock:
            self._work = None  # who comes too late holds on to nothing
            waits = wait and self._joined > 0
        if waits:
            self._left.acquire()


class _Pool:
    """Threads that stay: as many as anyone asked for so far, none before."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the threads, which a forked child does not have."""
        self._lock = threading.Lock()
        self._calls: SimpleQueue[tuple[_Job, int]] = SimpleQueue()
        self._size = 0

    def share(self, work: Callable[[], object], helpers: int) -> _Job:
        """Return a job that so many threads are called to."""
        job = _Job(work)
        with self._lock:
            for number in range(self._size, helpers):
                name = f"kernelweave-{number}"
                threading.Thread(target=self._serve, args=(self._calls,), name=name, daemon=True).start()
            self._size = max(self._size, helpers)
        self._call(self._calls, job, helpers)
        return job

    def _serve(self, calls: "SimpleQueue[tuple[_Job, int]]") -> None:
        while True:
            job, others = calls.get()
            self._call(calls, job, others)
            job.join_in()
            del job  # nothing is held on to while waiting for the next one

    @staticmethod
    def _call(calls: "SimpleQueue[tuple[_Job, int]]", job: _Job, helpers: int) -> None:
        """Call threads to a job: two at once, each of which calls half of the others, so that nobody wakes them all."""
        for share in ((helpers + 1) // 2, helpers // 2):
            if share:
                calls.put((job, share - 1))


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

    job = _POOL.share(take, min(threads, len(tasks)) - 1)
    try:
        take()
    finally:
        job.close()
    if job.error is not None:
        raise job.error
    return results


def run_together(work: Callable[[bool], bool], threads: int) -> None:
    """Call ``work(True)`` here and ``work(False)`` on up to ``threads - 1`` of the pool at the same time.

    Where the first returns True nothing is left to be done, and nobody is waited for.
    """
    job = _POOL.share(lambda: work(False), threads - 1)
    done = False
    try:
        done = work(True)
    finally:
        job.close(wait=not done)
    if job.error is not None:
        raise job.error


def call(work: Callable[[], object], helpers: int) -> Callable[[], None]:
    """Call threads of the pool to some work and wait for none of them; returns what lets no more of them begin."""
    job = _POOL.share(work, helpers)
    return lambda: job.close(wait=False)


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

    job = _POOL.share(take_all, threads - 1)
    try:
        for result in results:
            while not result.done() and ahead.acquire(blocking=False) and take():
                pass
            yield result.result()
            ahead.release()
    finally:
        closed.set()
        ahead.release(threads)  # those waiting for room continue, and end
        job.close()
