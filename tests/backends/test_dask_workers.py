"""Blocks on the workers of a Dask cluster: programs, bytes, and what happens when workers die."""

import gc
import os
import threading
import time

import dask.array as da
import numpy as np
import pytest

from kernelweave import WorkersLostError
from kernelweave.backends.blocks import BlocksBackend, dask_workers, work
from kernelweave.backends.blocks.dask_workers import DaskWorkers
from kernelweave.backends.blocks.places import Task
from kernelweave.inputs.arrays.chunks import as_chunks
from tests.dask_clusters import await_workers, kill, local_cluster

SIZES = [1, 40, 20, 39]
N = sum(SIZES)
VALUES = np.arange(1.0, N + 1.0)
TABLE = np.random.default_rng(0).standard_normal((N, 3))


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with local_cluster(2, tmp_path_factory.mktemp("workers")) as client:
        yield client


@pytest.fixture
def there(client):
    await_workers(client, 2)
    backend = BlocksBackend(DaskWorkers(client, SIZES))
    yield backend
    backend.close()


def loaded(backend):
    """Return the table as blocks that Dask computes at the workers."""
    _, (chunks,) = as_chunks(da.from_array(TABLE, chunks=(tuple(SIZES), 3)))
    array = backend.made(work.brought, shape=TABLE.shape)
    backend.places.bring(chunks.loaders)(array.node.number)
    return array


def fail(block, values):
    raise ZeroDivisionError(f"block {block.index}")


def die(block, values, process):
    """End the process of a worker in the midst of its work, once."""
    if os.getpid() == process:
        os.kill(process, 9)
    return values


def fits(dask_worker):
    """Return how many values a worker keeps of every fit."""
    kept = vars(dask_worker).get("_kernelweave_fits", {}).values()
    return [sum(map(len, each.shard.values.values())) for each in kept]


# Programs


def test_blocks_lie_at_all_workers_and_results_come_in_their_order(there):
    places = there.places.where()
    assert sorted(b for blocks in places.values() for b in blocks) == [0, 1, 2, 3]
    assert len(places) == 2
    x = there.array(VALUES)
    np.testing.assert_array_equal(there.host(x * 2.0 + 1.0), VALUES * 2.0 + 1.0)
    np.testing.assert_array_equal(there.at(x, np.array([99, 0, 41])), [100.0, 1.0, 42.0])
    assert there.total(x) == VALUES.sum()


def test_chunks_of_dask_are_loaded_at_the_workers_and_stay_there(there):
    X = loaded(there)
    np.testing.assert_array_equal(there.host(X), TABLE)
    received = there.places.traffic.received
    sums = sum(there.asked(work.column_sums, X))
    np.testing.assert_allclose(sums, TABLE.sum(axis=0))
    assert there.places.traffic.received - received < 1500, "Sums travel, not the table."


def test_bytes_and_rounds_are_counted(there):
    traffic = there.places.traffic
    x = there.array(VALUES)
    assert (traffic.rounds, traffic.sent, traffic.received) == (0, 0, 0)
    there.total(x)
    assert traffic.rounds == 1
    assert traffic.sent > VALUES.nbytes
    assert 0 < traffic.received < VALUES.nbytes
    sent = traffic.sent
    there.total(x)
    assert traffic.rounds == 2
    assert traffic.sent - sent < VALUES.nbytes, "Values that are there do not travel again."


def test_weights_that_are_small_counts_travel_in_a_byte_each(there):
    counts = np.resize([0.0, 1.0, 255.0], N)

    def sent(values):
        before = there.places.traffic.sent
        assert there.total(there.array(values)) == values.sum()
        return there.places.traffic.sent - before

    sent(VALUES)
    assert sent(counts + 0.5) - sent(counts) > 6 * N
    assert sent(counts + 1.0) - sent(counts) > 6 * N, "256 is not a byte."


def test_large_programs_do_not_travel_in_the_graph(there, monkeypatch):
    monkeypatch.setattr(dask_workers, "LARGE", 100)
    assert there.total(there.array(VALUES)) == VALUES.sum()


def test_a_value_that_nobody_holds_is_forgotten_at_the_workers(there, client):
    x = there.array(VALUES)
    y = x * 2.0
    there.total(y)
    assert sum(sum(kept) for kept in client.run(fits).values()) == 2 * len(SIZES)
    del y
    gc.collect()
    there.total(x)
    assert sum(sum(kept) for kept in client.run(fits).values()) == len(SIZES)
    there.close()
    assert [kept for kept in client.run(fits).values() if kept] == []


def test_an_error_in_the_work_is_raised_as_it_is_and_the_next_question_is_answered(there):
    x = there.array(VALUES)
    with pytest.raises(ZeroDivisionError, match="block"):
        there.asked(fail, x)
    assert there.total(x) == VALUES.sum()


def test_room_is_divided_among_workers(client):
    places = DaskWorkers(client, SIZES, room=100.0)
    assert places.has_room_for(150)
    assert not places.has_room_for(150)
    assert places.has_room_for(50)


def test_many_blocks_lie_beside_their_neighbours_and_send_few_sums(client):
    backend = BlocksBackend(DaskWorkers(client, [3] * 64))
    homes = backend.places.where().values()
    assert sorted(homes) == [list(range(32)), list(range(32, 64))]
    x = backend.array(np.arange(192.0))
    before = backend.places.traffic.received
    assert backend.total(x) == np.arange(192.0).sum()
    assert backend.places.traffic.received - before < 600, "One sum of each worker travels, not one of each block."
    backend.close()


# Workers that die


def test_values_of_a_dead_worker_are_computed_again(there, client):
    X = loaded(there)
    lengths = there.squared_lengths(X)
    weights = there.array(VALUES)
    expected = VALUES @ (TABLE**2).sum(axis=1)
    assert there.dot(weights, lengths) == pytest.approx(expected, rel=1e-12)
    assert kill(client) == 2
    assert there.dot(weights, lengths) == pytest.approx(expected, rel=1e-12)
    assert len(there.places.lost) == 1
    np.testing.assert_array_equal(there.host(X), TABLE)
    await_workers(client, 2)
    assert there.dot(weights, lengths) == pytest.approx(expected, rel=1e-12)


def test_a_worker_that_dies_during_its_work_is_replaced(there, client):
    X = loaded(there)
    there.total(there.squared_lengths(X))
    address, process = sorted(client.run(os.getpid).items())[0]
    assert address in there.places.where()
    parts = there.asked(die, X, process)
    np.testing.assert_array_equal(np.concatenate(parts), TABLE)


def test_all_workers_are_restarted_by_their_nannies(there, client):
    X = loaded(there)
    before = there.total(there.squared_lengths(X))
    assert kill(client, 2) == 2
    assert there.total(there.squared_lengths(X)) == pytest.approx(before)


class SilentFuture:
    """The answer of a worker that died."""

    def __init__(self, awaited):
        self.awaited = awaited

    def result(self, timeout):
        self.awaited.append(timeout)
        raise TimeoutError

    def cancel(self, force):
        assert force

    def release(self):
        pass


class DyingClient:
    """A client of three workers; from the first task on, the third is the only one."""

    def __init__(self):
        self.alive = {"first": 1, "second": 1, "third": 1}
        self.awaited = []

    def nthreads(self):
        return self.alive

    def submit(self, *args, **options):
        self.alive = {"third": 1}
        return SilentFuture(self.awaited)


def test_dead_workers_are_waited_for_once_however_many_answers_are_missing():
    client = DyingClient()
    places = DaskWorkers(client, SIZES)
    blocks = places.where()
    tasks = [Task(place, [], [], (), (), blocks[place]) for place in ("first", "second")]
    assert places.send(tasks * 10) == [None] * 20
    assert len(client.awaited) == 1
    assert places.lost == {"first", "second"}
    assert list(places.where()) == ["third"]


def test_without_workers_the_error_comes_when_patience_ends(client, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_workers, "PATIENCE", 2.0)
    with local_cluster(1, tmp_path) as lonely:
        backend = BlocksBackend(DaskWorkers(lonely, SIZES))
        x = backend.array(VALUES)
        assert backend.total(x) == VALUES.sum()
        gone = threading.Thread(target=lonely.cluster.scale, args=(0,))
        gone.start()
        gone.join()
        await_workers(lonely, 0)
        began = time.monotonic()
        with pytest.raises(WorkersLostError, match="none came back within 2 s"):
            backend.total(x)
        assert time.monotonic() - began < 10.0
        backend.close()
