"""Fits while workers are killed: every one must end with the labels of an undisturbed fit.

``python scripts/kill_workers.py [--kills N] [--workers N] [--samples N] [--seed N]`` starts a Dask cluster of processes
on this machine and fits KernelKMeans and MultiViewKernelKMeans in turn, over and over, while random workers are killed
(SIGKILL) at random moments, until there were N kills. It prints a line per fit and exits with status 1 if labels
differ. Nannies start the workers again; the last one that is alive is spared.
"""

import argparse
import os
import signal
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

from kernelweave import KernelKMeans, MultiViewKernelKMeans, config_context

N_CLUSTERS = 6
N_BLOCKS = 12


@dataclass(frozen=True)
class Fit:
    """What came of one fit."""

    method: str
    seconds: float
    kills: int  # while it ran
    rounds: int
    equal: bool


class Killer:
    """Kills a random worker after a random time, again and again, while it is switched on."""

    def __init__(self, client: Any, rng: np.random.Generator, most: int, pause: float) -> None:
        self.count = 0
        self._client = client
        self._rng = rng
        self._most = most
        self._pause = pause
        self._end = threading.Event()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Kill while the block runs."""
        self._end.clear()
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()

    def _run(self) -> None:
        while self.count < self._most and not self._end.wait(self._rng.exponential(self._pause)):
            processes = list(self._client.run(os.getpid, on_error="ignore").values())
            if len(processes) > 1 and not self._end.is_set():  # one stays, however long nannies take
                os.kill(int(self._rng.choice(processes)), signal.SIGKILL)
                self.count += 1


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


def disturbed_fits(
    client: Any, *, kills: int, n_samples: int, seed: int = 0, pause: float = 1.0, least_fits: int = 2
) -> Iterator[Fit]:
    """Yield fits during which workers were killed, until there were enough kills."""
    models = methods(n_samples)
    expected = {name: model.fit(data).labels_ for name, (model, data) in models.items()}
    n_workers = len(client.nthreads())
    killer = Killer(client, np.random.default_rng(seed), kills, pause)
    n_fits = 0
    while killer.count < kills or n_fits < least_fits:
        for name, (model, data) in models.items():
            client.cluster.scale(n_workers)  # a nanny gives up where a worker takes too long to start
            before = killer.count
            start = time.perf_counter()
            with config_context(client=client), killer.at_work():
                fitted = model.fit(lazy(data))
            equal = np.array_equal(fitted.labels_, expected[name])
            seconds = time.perf_counter() - start
            n_fits += 1
            yield Fit(name, seconds, killer.count - before, fitted.communication_["rounds"], equal)


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


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fits while workers are killed.")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    print("| fit | method | seconds | workers killed | rounds | labels |")
    print("|---:|---|---:|---:|---:|---|")
    fits = []
    with cluster(options.workers) as client:
        for fit in disturbed_fits(client, kills=options.kills, n_samples=options.samples, seed=options.seed):
            fits.append(fit)
            outcome = "equal" if fit.equal else "DIFFERENT"
            row = (len(fits), fit.method, f"{fit.seconds:.1f}", fit.kills, fit.rounds, outcome)
            print("| " + " | ".join(map(str, row)) + " |", flush=True)
    kills = sum(fit.kills for fit in fits)
    equal = sum(fit.equal for fit in fits)
    print(f"\n{len(fits)} fits on {options.workers} workers, {kills} killed; {equal} with the labels of one process.")
    return 0 if equal == len(fits) else 1


if __name__ == "__main__":
    sys.exit(main())
