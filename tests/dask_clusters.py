"""Dask clusters for tests: processes on this machine, one thread each; and data to compute there."""

import os
import signal
import time
from contextlib import contextmanager

import numpy as np
from distributed import Client, LocalCluster


def two_views(n, k, distance):
    """Return five and three columns of the same clusters, whose centres lie ``distance`` times as far as samples do."""
    rng = np.random.default_rng(0)
    truth = rng.integers(k, size=n)
    return tuple(distance * rng.standard_normal((k, d))[truth] + rng.standard_normal((n, d)) for d in (5, 3))


@contextmanager
def local_cluster(n_workers, folder):
    """Yield the client of a cluster; it is not the default one, so that tests say where they compute."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0, "local_directory": str(folder)}
    with (
        LocalCluster(n_workers=n_workers, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def kill(client, count=1):
    """Kill the processes of some workers, as the system does when memory runs out; return how many there were."""
    processes = sorted(client.run(os.getpid).items())
    for _, process in processes[:count]:
        os.kill(process, signal.SIGKILL)
    return len(processes)


def await_workers(client, count, patience=30.0):
    """Wait until so many workers are there."""
    deadline = time.monotonic() + patience
    while len(client.nthreads()) != count and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(client.nthreads()) == count
