"""Fits while workers are killed: every one must end with the labels of an undisturbed fit.

``python scripts/kill_workers.py [--kills N] [--workers N] [--samples N] [--seed N]`` starts a Dask cluster of processes
on this machine and fits KernelKMeans and MultiViewKernelKMeans in turn, over and over. Random workers that keep blocks
of the fit are killed (SIGKILL) at random moments, until N kills have hit a fit: it noticed that a worker was gone and
had its blocks loaded elsewhere. Nannies start the workers again; the last one that is alive is spared, and a fit begins
when all are back. At the end all workers of another cluster, without nannies, are killed during a fit, which must end
with WorkersLostError within a minute.

It prints a line per fit and exits with status 1 if labels differ or the error does not come in time.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from kernelweave import KernelKMeans, MultiViewKernelKMeans, WorkersLostError, config_context
from kernelweave.backends.blocks.dask_workers import blocks_kept

N_CLUSTERS = 6
N_BLOCKS = 12
# Seconds that all workers may take to come back: each needs two of processor time, much longer where cores are busy.
RETURN = 300.0
# Seconds within which a fit without workers must end.
MINUTE = 60.0


@dataclass(frozen=True)
class Fit:
    """What came of one fit."""

    method: str
    seconds: float
    kills: int  # of workers that the fit lost
    missed: int  # kills that came after the last round
    rounds: int
    equal: bool


class Killer:
    """Kills workers that keep blocks, one at each of some moments of a fit."""

    def __init__(self, client: Any, rng: np.random.Generator) -> None:
        self.count = 0
        self._client = client
        self._rng = rng
        self._end = threading.Event()

    @contextmanager
    def at_work(self, moments: Sequence[float]) -> Iterator[None]:
        """Kill while the block runs; moments are seconds from now."""
        self._end.clear()
        thread = threading.Thread(target=self._run, args=(moments,))
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()

    def _run(self, moments: Sequence[float]) -> None:
        start = time.monotonic()
        for moment in sorted(moments):
            self._end.wait(max(0.0, start + moment - time.monotonic()))
            while not self._end.is_set() and not self._kill_one():
                self._end.wait(0.05)

    def _kill_one(self) -> bool:
        """Kill a random worker with blocks; False where there is none, or no other worker."""
        blocks = self._client.run(blocks_kept, on_error="ignore")
        processes = self._client.run(os.getpid, on_error="ignore")
        victims = [process for place, process in processes.items() if blocks.get(place, 0) > 0]
        if not victims or len(processes) < 2 or self._end.is_set():
            return False
        os.kill(int(self._rng.choice(victims)), signal.SIGKILL)
        self.count += 1
        return True


def methods(n_samples: int) -> dict[str, tuple[Any, Any]]:
    """Return estimators and the data they are fitted on."""
    rng = np.random.default_rng(0)
    truth = rng.integers(N_CLUSTERS, size=n_samples)
    first = 1.5 * rng.standard_normal((N_CLUSTERS, 8))[truth] + rng.standard_normal((n_samples, 8))
    second = 1.5 * rng.standard_normal((N_CLUSTERS, 5))[truth] + rng.standard_normal((n_samples, 5))
    single = KernelKMeans(N_CLUSTERS, kernel="linear", n_init=2, random_state=0)
    several = MultiViewKernelKMeans(N_CLUSTERS, kernel="linear", init="k-means++", n_init=2, random_state=0)
    return {"KernelKMeans": (single, first), "MultiViewKernelKMeans": (several, {"first": first, "second": second})}


def lazy(data: Any) -> Any:
    """Return arrays as Dask collections in blocks."""
    if isinstance(data, dict):
        return {name: lazy(view) for name, view in data.items()}
    return da.from_array(data, chunks=(-(-len(data) // N_BLOCKS), data.shape[1]))


def disturbed_fits(client: Any, *, kills: int, n_samples: int, seed: int = 0, length: float = 5.0) -> Iterator[Fit]:
    """Yield fits during which workers were killed, until enough kills have hit one; every method has its turn.

    ``length`` is how long a fit takes, roughly, in seconds; moments of kills are drawn from it, and from less where a
    fit of the same method took less.
    """
    models = methods(n_samples)
    expected = {name: model.fit(data).labels_ for name, (model, data) in models.items()}
    lengths = dict.fromkeys(models, length)
    n_workers = len(client.nthreads())
    rng = np.random.default_rng(seed)
    killer = Killer(client, rng)
    hits = 0
    while hits < kills:
        for name, (model, data) in models.items():
            client.cluster.scale(n_workers)  # a nanny gives up where a worker takes too long to start
            client.wait_for_workers(n_workers, timeout=RETURN)
            count = min(max(1, kills - hits), int(rng.integers(1, max(2, n_workers))))
            before = killer.count
            start = time.perf_counter()
            with config_context(client=client), killer.at_work(lengths[name] * rng.random(count)):
                fitted = model.fit(lazy(data))
            seconds = time.perf_counter() - start
            lengths[name] = min(lengths[name], seconds)
            told = fitted.communication_
            hits += told["workers_lost"]
            missed = killer.count - before - told["workers_lost"]
            equal = np.array_equal(fitted.labels_, expected[name])
            yield Fit(name, seconds, told["workers_lost"], missed, told["rounds"], equal)


@contextmanager
def cluster(n_workers: int) -> Iterator[Any]:
    """Yield the client of a cluster on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0, "silence_logs": 50}
        with (
            LocalCluster(n_workers=n_workers, local_directory=folder, **options) as workers,
            Client(workers, set_as_default=False) as client,
        ):
            yield client


@contextmanager
def workers_without_nannies(client: Any, n_workers: int) -> Iterator[list[Any]]:
    """Yield the processes of workers that nobody starts again."""
    address = client.cluster.scheduler_address
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1"]
    with tempfile.TemporaryDirectory() as folder:
        options = ["--no-dashboard", "--memory-limit", "0", "--local-directory", folder]
        processes = [subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL) for _ in range(n_workers)]
        try:
            client.wait_for_workers(n_workers, timeout=RETURN)
            yield processes
        finally:
            for process in processes:
                process.kill()
                process.wait()


def seconds_to_the_error(n_workers: int, n_samples: int) -> tuple[float, str]:
    """Kill all workers during a fit; return how long it went on, and with what words it ended."""
    model, data = methods(n_samples)["MultiViewKernelKMeans"]
    died = []

    def kill_all(client: Any, processes: list[Any]) -> None:
        while sum(client.run(blocks_kept).values()) < N_BLOCKS:
            time.sleep(0.05)
        for process in processes:
            process.kill()
        died.append(time.perf_counter())

    with cluster(0) as client, workers_without_nannies(client, n_workers) as processes:
        thread = threading.Thread(target=kill_all, args=(client, processes))
        thread.start()
        try:
            with config_context(client=client):
                model.fit(lazy(data))
            message = "the fit ended before all workers were dead"
        except WorkersLostError as error:
            message = str(error)
        thread.join()
        return time.perf_counter() - died[0], message


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fits while workers are killed.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    print("| fit | method | seconds | workers lost | killed too late | rounds | labels |")
    print("|---:|---|---:|---:|---:|---:|---|")
    fits = []
    with cluster(options.workers) as client:
        for fit in disturbed_fits(client, kills=options.kills, n_samples=options.samples, seed=options.seed):
            fits.append(fit)
            outcome = "equal" if fit.equal else "DIFFERENT"
            row = (len(fits), fit.method, f"{fit.seconds:.1f}", fit.kills, fit.missed, fit.rounds, outcome)
            print("| " + " | ".join(map(str, row)) + " |", flush=True)
    kills = sum(fit.kills for fit in fits)
    hit = sum(fit.kills > 0 for fit in fits)
    equal = sum(fit.equal for fit in fits)
    print(
        f"\n{len(fits)} fits on {options.workers} workers, {hit} of them lost {kills} workers; {equal} ended with the"
    )
    print("labels of one process.")
    seconds, message = seconds_to_the_error(options.workers, options.samples)
    print(f"All workers killed: after {seconds:.1f} s, {message}")
    return 0 if equal == len(fits) and seconds < MINUTE and message.startswith("No Dask worker") else 1


if __name__ == "__main__":
    sys.exit(main())
