"""Memory and threads of this machine and of the workers of a cluster."""

import os
from dataclasses import dataclass
from typing import Any

from kernelweave.foundation.config import get_config
from kernelweave.foundation.errors import ParameterError

# Files that limit the memory of a container, version 2 and 1 of control groups.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
# Rounds to the workers of a client that are timed.
ROUNDS_TIMED = 10


@dataclass(frozen=True)
class Workers:
    """The workers of a cluster."""

    count: int
    threads: int  # of each
    memory: float | None  # bytes of the smallest; None: not known
    round_seconds: float | None = None  # of a task to all of them and back; None: not measured


@dataclass(frozen=True)
class Tables:
    """How samples are stored."""

    value_bytes: int = 8
    on_disk: bool = False
    folder: str | None = None  # where the files are; None for the folder of temporary files
    disk_rate: float | None = None  # bytes per second; None: to be measured


def machine_memory() -> int | None:
    """Return the bytes of memory this process may use, None where the system does not tell."""
    known = [_physical(), *map(_limit, _LIMITS)]
    return min((n_bytes for n_bytes in known if n_bytes), default=None)


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on Windows
        return None


def _limit(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def workers(n_workers: int | None, worker_memory: float | None, worker_threads: int, client: Any) -> Workers | None:
    """Return the workers that a fit will use: those described, those of a client, or None for this process alone."""
    if n_workers is not None:
        if n_workers < 1:
            raise ParameterError(f"n_workers={n_workers!r} must be 1 or more; leave it out for a fit in this process.")
        return Workers(int(n_workers), int(worker_threads), worker_memory)
    if worker_memory is not None:
        raise ParameterError(f"worker_memory={worker_memory!r} is for workers; give their number with n_workers.")
    client = get_config().client if client is None else client
    if client is None:
        return None
    known = client.scheduler_info(n_workers=-1)["workers"].values()
    if not known:
        raise ParameterError("client has no workers yet; wait for them with client.wait_for_workers().")
    limits = [worker.get("memory_limit") or 0 for worker in known]
    threads = min(worker["nthreads"] for worker in known)
    return Workers(len(known), threads, float(min(limits)) or None, _round_seconds(client))


def _round_seconds(client: Any) -> float:
    """Return the seconds of a round: a task to every worker, and its answer."""
    import time

    addresses = list(client.nthreads())
    taken = []
    for number in range(1 + ROUNDS_TIMED):
        begun = time.perf_counter()
        futures = [client.submit(_answer, number, workers=[place], pure=False) for place in addresses]
        client.gather(futures)
        taken.append(time.perf_counter() - begun)
    return sum(taken[1:]) / ROUNDS_TIMED


def _answer(number: int) -> int:
    return number
