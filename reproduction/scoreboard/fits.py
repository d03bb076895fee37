"""One fit in a process of its own: its peak of memory is its own, and one that hangs can be killed.

Clock       starts after imports, reading, and a run on a few made-up samples that loads compiled code; it covers all
            that the method does with the views, scaling among it
Threads     one, so that times do not depend on how many fits run at once
Memory      the largest resident size of the process, interpreter, libraries and data included
Start       on Linux, processes are forked from one that has done the imports most methods share, which take seconds
"""

import os
import signal
import sys
import threading
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from kernelweave.metrics import adjusted_rand_index, clustering_accuracy, normalized_mutual_info
from reproduction.scoreboard.data_sets import DataSet, load_set
from reproduction.scoreboard.methods import ClusterFunction, Method

START_LIMIT = 120.0  # seconds for imports, reading and the run on made-up samples
_GLANCE = 0.2  # seconds between two looks at whether the run was stopped
_END = 10.0  # seconds that a process has to end after it has sent its result
_READY = "ready"
_SHARED = ["numba", "reproduction.scoreboard.fits"]  # imported once, before processes are forked


@dataclass(frozen=True)
class Job:
    """A fit to be made."""

    method: Method
    set: str
    seed: int
    limit_samples: int
    data_dir: str | None  # None: the one named by KERNELWEAVE_DATA


@dataclass(frozen=True)
class Outcome:
    """What a fit gave, or why it gave nothing."""

    error: str = ""
    nmi: float | None = None
    ari: float | None = None
    acc: float | None = None
    n_found: int | None = None
    seconds: float | None = None
    memory_mib: float | None = None


class StoppedError(Exception):
    """The run was stopped while a fit was under way."""


def run_fit(job: Job, limit_s: float, stop: threading.Event) -> Outcome:
    """Run a fit in a new process; what goes wrong in there is returned, not raised."""
    context = _context()
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(sender, job, limit_s))
    process.start()
    sender.close()
    try:
        outcome = _outcome(receiver, process, limit_s, stop)
        if outcome.seconds is not None:
            process.join(_END)
        return outcome
    finally:
        process.kill()
        process.join()
        receiver.close()


def _context() -> Any:
    if sys.platform != "linux":
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(_SHARED)
    return context


def _outcome(receiver: Connection, process: BaseProcess, limit_s: float, stop: threading.Event) -> Outcome:
    try:
        first = _receive(receiver, START_LIMIT, stop)
        if first is None:
            return Outcome(f"TimeLimit: not ready to begin within {START_LIMIT:g} s")
        if first != _READY:
            return first
        return _receive(receiver, limit_s, stop) or Outcome(f"TimeLimit: no result within {limit_s:g} s")
    except EOFError:
        process.join()
        return Outcome(_how_it_ended(process.exitcode))


def _receive(receiver: Connection, limit_s: float, stop: threading.Event) -> Any:
    """Return what the process sends, or None where nothing comes in time."""
    end = time.monotonic() + limit_s
    while not receiver.poll(min(_GLANCE, max(0.0, end - time.monotonic()))):
        if stop.is_set():
            raise StoppedError
        if time.monotonic() >= end:
            return None
    return receiver.recv()


def _how_it_ended(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return "Killed: the system ended the process, which it does where memory is short"
    return f"Ended: the process broke off with exit code {code}"


# --- in the new process -----------------------------------------------------------------------------------------------


def _work(sender: Connection, job: Job, limit_s: float) -> None:
    """Read the set, fit, and send what came of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one decides
    if hasattr(signal, "setitimer"):
        # The system ends this process should the one that started it have been killed.
        signal.setitimer(signal.ITIMER_REAL, START_LIMIT + limit_s + _END)
    _be_silent()
    warnings.simplefilter("ignore")
    try:
        data = load_set(job.set, job.limit_samples, seed=job.seed, data_dir=job.data_dir)
        _warm_up(job.method.run)
        with threadpool_limits(1):
            sender.send(_READY)
            outcome = _fit(job, data)
    except Exception as error:
        outcome = Outcome(first_line(error))
    sender.send(outcome)


def _fit(job: Job, data: DataSet) -> Outcome:
    n_clusters = data.n_clusters
    begun = time.perf_counter()
    labels = np.asarray(job.method.run(data.views, n_clusters, job.seed))
    seconds = time.perf_counter() - begun
    if labels.shape != (data.n_samples,):
        raise ValueError(f"the labels have shape {labels.shape} for {data.n_samples} samples")
    return Outcome(
        nmi=normalized_mutual_info(data.target, labels),
        ari=adjusted_rand_index(data.target, labels),
        acc=clustering_accuracy(data.target, labels),
        n_found=len(np.unique(labels)),
        seconds=seconds,
        memory_mib=peak_mib(),
    )


def first_line(error: Exception) -> str:
    """Return an error as its name and the first line of its text."""
    text = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _warm_up(run: ClusterFunction) -> None:
    """Load what the method needs; whether it can do these samples does not matter."""
    rng = np.random.default_rng(0)
    groups = np.repeat([0.0, 5.0], 20)[:, None]
    views = [groups + rng.random((40, 3)), groups + rng.random((40, 4))]
    with suppress(Exception):
        run(views, 2, 0)


def _be_silent() -> None:
    """Send what libraries print nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def peak_mib() -> float:
    """Return the largest resident size of this process so far, in MiB."""
    return _from_proc() or _from_usage()


def _from_proc() -> float:
    # The other count also knows the size of the process that started this one.
    with suppress(OSError), open("/proc/self/status", encoding="utf-8") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _from_usage() -> float:
    try:
        import resource
    except ImportError:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if os.uname().sysname == "Darwin" else 2**10)
