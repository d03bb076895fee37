"""Dask clusters for tests: processes on this machine, one thread each; and data to compute there."""

import multiprocessing
import os
import signal
import sys
import time
from contextlib import contextmanager
from functools import cache
from multiprocessing import forkserver
from unittest import mock

import dask
import numpy as np
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context

# A worker spends four seconds on imports, and tests start a dozen: they are forked from a process that has done these.
# This library is left to the workers.
IMPORTED_FIRST = ["distributed", "pandas", "sklearn.cluster", "sklearn.gaussian_process", "sklearn.neighbors"]
IMPORTED_FIRST += ["tests.ready_compiler"]
QUIET = {"distributed.worker.profile.enabled": False}  # workers look at their own work a hundred times per second
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # as Dask sets them


@cache
def start_method():
    """Return how workers start, and start what they are forked from."""
    if sys.platform != "linux":  # elsewhere a fork may not be safe
        return "spawn"
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context()  # the first call sets a list of its own
    multiprocessing.get_context("forkserver").set_forkserver_preload(IMPORTED_FIRST)
    with mock.patch.dict(os.environ, ONE_THREAD):
        forkserver.ensure_running()
    return "forkserver"


def forked_workers():
    """Return the context in which workers of new clusters, also those that replace others, are forked."""
    return dask.config.set({"distributed.worker.multiprocessing-method": start_method()} | QUIET)


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
        forked_workers(),
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
