"""Ranges laid over threads: every row once, results in order, errors raised, the same numbers on any number of them."""

import os
import subprocess
import sys
import threading
import time
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from kernelweave.backends import get_backend
from kernelweave.foundation import pool
from kernelweave.foundation import threads as threads_module
from kernelweave.foundation.threads import (
    MIN_WIDTH,
    WORTH_A_THREAD,
    for_ranges,
    parallel_map,
    share_pieces,
    single_threaded_blas,
    thread_count,
)
from kernelweave.kernels.blockwise import BlockwiseKernel
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.spec import formulas
from kernelweave.kernels.transforms import CentredKernel, UnitDiagonalKernel
from kernelweave.kernels.weighted_sum import CompositeKernel
from kernelweave.partitions import algebra

quick = settings(max_examples=50, deadline=None)
MUCH = 100 * WORTH_A_THREAD


@pytest.fixture(params=[1, 2, 3])
def threads(request, monkeypatch):
    """Run the test as if the user had allowed so many threads, whatever the machine has."""
    monkeypatch.setattr(threads_module, "thread_count", lambda: request.param)
    return request.param


@quick
@given(
    n=st.integers(0, 3000),
    width=st.one_of(st.none(), st.integers(1, 700)),
    elements=st.sampled_from([0, WORTH_A_THREAD - 1, WORTH_A_THREAD, 10**9]),
)
def test_ranges_cover_everything_once_and_results_come_in_order(n, width, elements):
    visits = np.zeros(n, dtype=int)

    def work(start, stop):
        visits[start:stop] += 1
        return start, stop

    result = for_ranges(work, n, elements=elements, width=width)
    assert (visits == 1).all()
    assert [i for start, stop in result for i in range(start, stop)] == list(range(n))
    assert all(stop - start <= (width or n) for start, stop in result)


def test_results_come_in_order_even_when_later_ranges_end_first(threads):
    def work(start, stop):
        time.sleep(0.02 if start == 0 else 0.0)
        return start

    assert for_ranges(work, 50, elements=MUCH, width=10) == [0, 10, 20, 30, 40]


def test_given_widths_do_not_follow_the_number_of_threads(threads):
    result = for_ranges(lambda start, stop: (start, stop), 1000, elements=MUCH, width=400)
    assert result == [(0, 400), (400, 800), (800, 1000)]


def test_without_a_width_each_thread_gets_one_range_of_useful_length(threads):
    result = for_ranges(lambda start, stop: (start, stop), 6000, elements=MUCH)
    assert len(result) == threads
    assert for_ranges(lambda start, stop: (start, stop), MIN_WIDTH, elements=MUCH) == [(0, MIN_WIDTH)]


@quick
@given(n=st.integers(0, 9000), multiple=st.sampled_from([1, 7, 256, 1000]), count=st.integers(1, 5))
def test_ranges_begin_at_multiples_where_asked_to_and_cover_everything_once(n, multiple, count):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads_module, "thread_count", lambda: count)
        result = for_ranges(lambda start, stop: (start, stop), n, elements=MUCH, multiple=multiple)
    assert [i for start, stop in result for i in range(start, stop)] == list(range(n))
    assert all(start % multiple == 0 for start, _ in result)
    assert len(result) <= count


def test_little_work_stays_on_the_calling_thread(threads):
    def work(start, stop):
        return threading.get_ident()

    here = threading.get_ident()
    assert set(for_ranges(work, 100, elements=WORTH_A_THREAD - 1, width=10)) == {here}
    together = threading.Barrier(threads, timeout=10)

    def meet(start, stop):
        together.wait()  # passes only where so many run side by side
        return threading.get_ident()

    assert len(set(for_ranges(meet, 10 * threads, elements=MUCH, width=10))) == threads


def test_work_wakes_as_many_threads_as_it_keeps_busy(monkeypatch):
    monkeypatch.setattr(threads_module, "thread_count", lambda: 16)

    def ranges(elements):
        return len(for_ranges(lambda start, stop: None, 100 * MIN_WIDTH, elements=elements))

    assert ranges(WORTH_A_THREAD - 1) == 1
    assert ranges(WORTH_A_THREAD) == 2
    assert ranges(3 * WORTH_A_THREAD) == 6
    assert ranges(100 * WORTH_A_THREAD) == 16


def test_an_error_in_any_range_reaches_the_caller(threads):
    def work(start, stop):
        if start == 30:
            raise ZeroDivisionError("range 30")

    with pytest.raises(ZeroDivisionError, match="range 30"):
        for_ranges(work, 50, elements=MUCH, width=10)


def test_thread_limits_are_obeyed():
    allowed = thread_count()
    with threadpool_limits(1):
        assert thread_count() == 1
    assert thread_count() == allowed >= 1


@pytest.fixture(params=[2, 3])
def allowed(request, monkeypatch):
    """Allow so many threads as the operating system or the user would; tasks of a map still see one."""
    monkeypatch.setattr(threads_module, "openmp_threads", lambda: request.param)
    return request.param


def test_mapped_results_come_in_the_order_of_the_tasks(allowed):
    def work(task):
        time.sleep(0.02 if task == 0 else 0.0)
        return 10 * task

    assert list(parallel_map(work, range(12))) == [10 * task for task in range(12)]


@pytest.mark.parametrize("count", [0, 1])
def test_a_map_over_no_tasks_or_one_is_the_plain_map(count, allowed):
    assert list(parallel_map(str, range(count))) == [str(task) for task in range(count)]


def test_every_task_runs_once_on_as_many_threads_as_allowed_and_never_on_more(allowed):
    together, lock, running, most, ran = threading.Barrier(allowed, timeout=10), threading.Lock(), 0, 0, []

    def work(task):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            ran.append(task)
        if task < allowed:
            together.wait()  # passes only where so many run side by side
        with lock:
            running -= 1
        return threading.get_ident()

    idents = list(parallel_map(work, range(4 * allowed)))
    assert most == allowed
    assert sorted(ran) == list(range(4 * allowed))
    assert len(set(idents)) == allowed


def test_a_task_of_a_map_has_one_thread_to_itself_and_shares_out_no_more_work(allowed):
    def work(task):
        here = threading.get_ident()
        inner = set(for_ranges(lambda start, stop: threading.get_ident(), 50, elements=MUCH, width=10))
        nested = set(parallel_map(lambda other: threading.get_ident(), range(9)))
        return thread_count(), inner == {here} == nested

    assert thread_count() == allowed
    assert set(parallel_map(work, range(8))) == {(1, True)}
    assert thread_count() == allowed  # what holds inside a task ends with it


def test_fewer_tasks_than_threads_stay_on_the_calling_thread_and_share_out_their_own_work(allowed):
    tasks = range(allowed - 1)
    result = list(parallel_map(lambda task: (threading.get_ident(), thread_count()), tasks))
    assert result == [(threading.get_ident(), allowed)] * len(tasks)
    as_many = list(parallel_map(lambda task: (threading.get_ident(), thread_count()), range(allowed)))
    assert [count for _, count in as_many] == [1] * allowed


def test_the_threads_of_the_pool_stay():
    def wait(task):
        time.sleep(0.0002)

    def names():
        return {thread.name for thread in threading.enumerate() if thread.name.startswith("kernelweave")}

    pool.run(wait, range(30), 3)
    first = names()
    for _ in range(50):
        pool.run(wait, range(6), 3)
        list(pool.mapped(wait, range(6), 3))
    assert names() == first


@pytest.mark.parametrize("threads", [2, 3, 7, 16])
def test_all_threads_of_a_region_are_woken(threads):
    together = threading.Barrier(threads, timeout=10)

    def meet(task):
        together.wait()  # passes only where so many run side by side
        return threading.get_ident()

    assert len(set(pool.run(meet, range(threads), threads))) == threads


def test_the_caller_waits_for_begun_tasks_alone_and_sees_their_errors():
    ended = []

    def work(task):
        if task == 0:
            together.wait()
            return 0
        together.wait()
        time.sleep(0.02)
        ended.append(task)
        raise ZeroDivisionError("of a helper")

    for _ in range(5):
        together = threading.Barrier(2, timeout=10)
        ended.clear()
        with pytest.raises(ZeroDivisionError, match="of a helper"):
            pool.run(work, range(2), 2)
        assert ended == [1]


def test_pieces_are_shared_by_as_many_threads_as_are_worth_it(threads):
    calls = []
    together = threading.Barrier(threads, timeout=10)

    def work(tickets, width, waits):
        together.wait()  # passes only where so many come
        calls.append((width, waits, threading.get_ident()))
        return False  # so that all are waited for

    share_pieces(work, 30_000, elements=MUCH)
    assert len({ident for *_, ident in calls}) == threads
    assert [ident for _, waits, ident in calls if waits] == [threading.get_ident()]
    assert {width for width, *_ in calls} == {30_000 // threads}
    calls.clear()
    together = threading.Barrier(1)
    share_pieces(work, 30_000, elements=WORTH_A_THREAD - 1)
    assert calls == [(30_000, True, threading.get_ident())]


def test_pieces_are_not_too_narrow_and_nothing_is_one_piece(monkeypatch):
    widths = []
    for threads, n in ((1, 0), (1, 5), (16, 0), (16, 5)):
        monkeypatch.setattr(threads_module, "thread_count", lambda threads=threads: threads)
        share_pieces(lambda tickets, width, waits: not waits or not widths.append(width), n, elements=MUCH)
        share_pieces(lambda tickets, width, waits: not waits or not widths.append(width), n, elements=MUCH, width=7)
    assert widths == [1, 7, 5, 7, 512, 7, 512, 7]


def test_who_takes_part_is_waited_for_unless_all_is_done():
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()

    def work(waits, done):
        if waits:
            assert begun.wait(10)
            return done
        begun.set()
        assert release.wait(10)
        time.sleep(0.02)
        ended.set()
        return False

    pool.run_together(lambda waits: work(waits, done=True), 2)
    assert not ended.is_set()  # who still has to return holds nobody up
    release.set()
    assert ended.wait(10)
    begun.clear()
    ended.clear()
    pool.run_together(lambda waits: work(waits, done=False), 2)
    assert ended.is_set()


def test_an_error_of_who_takes_part_reaches_the_caller():
    begun = threading.Event()

    def work(waits):
        if waits:
            assert begun.wait(10)
            return False
        begun.set()
        raise ZeroDivisionError("of a helper")

    with pytest.raises(ZeroDivisionError, match="of a helper"):
        pool.run_together(work, 2)


def test_every_column_is_added_once_however_many_threads_take_pieces(monkeypatch):
    rng = np.random.default_rng(0)
    K = rng.standard_normal((40, 5000))
    backend = get_backend()
    moved = np.arange(40)
    before = np.zeros(5000, dtype=np.intp)
    after = before.copy()
    after[moved] = 1
    moves = backend.moves(before, after)
    wanted = np.zeros((2, 5000))
    backend.move_sums(wanted, K, moves, np.ones(5000))
    monkeypatch.setattr(threads_module, "WORTH_A_THREAD", 1)
    monkeypatch.setattr(threads_module, "thread_count", lambda: 6)
    for _ in range(100):
        sums = np.zeros((2, 5000))
        backend.move_sums(sums, K, moves, np.ones(5000))
        np.testing.assert_array_equal(sums, wanted)


def test_finished_work_is_not_held_on_to():
    class Data:
        pass

    data = Data()
    gone = weakref.ref(data)
    pool.run(lambda task, data=data: time.sleep(0.0002), range(8), 4)
    del data
    deadline = time.monotonic() + 10.0
    while gone() is not None and time.monotonic() < deadline:
        time.sleep(0.001)
    assert gone() is None


def test_maps_within_each_other_and_side_by_side_do_not_block(allowed):
    def outer(task):
        return sum(pool.run(lambda inner: sum(pool.mapped(lambda x: x, range(4), 8)), range(5), 8))

    assert pool.run(outer, range(20), 8) == [30] * 20
    pairs = zip(parallel_map(lambda x: x, range(30)), parallel_map(lambda x: -x, range(30)), strict=True)
    assert [a + b for a, b in pairs] == [0] * 30


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_has_a_pool_of_its_own():
    code = """
import os
import threading
from kernelweave.foundation import pool

def together(tasks):
    met = threading.Barrier(tasks, timeout=20)  # nobody goes on before all are there
    return pool.run(lambda task: met.wait() >= 0 and task, range(tasks), tasks)

assert together(3) == [0, 1, 2]
child = os.fork()
if child == 0:
    try:
        os._exit(0 if together(3) == [0, 1, 2] else 1)
    except threading.BrokenBarrierError:
        os._exit(2)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False, timeout=60)
    assert ended.returncode == 0


def test_on_one_thread_a_map_runs_in_the_calling_thread_task_by_task(monkeypatch):
    monkeypatch.setattr(threads_module, "openmp_threads", lambda: 1)
    ran = []
    results = parallel_map(lambda task: ran.append(task) or threading.get_ident(), range(5))
    assert next(results) == threading.get_ident()
    assert ran == [0]
    results.close()
    assert ran == [0]


def test_an_error_in_a_task_reaches_the_caller_after_the_results_before_it(allowed):
    ran = []

    def work(task):
        ran.append(task)
        if task == 3:
            raise ZeroDivisionError("task 3")
        return task

    results = parallel_map(work, range(200))
    assert [next(results), next(results), next(results)] == [0, 1, 2]
    with pytest.raises(ZeroDivisionError, match="task 3"):
        next(results)
    assert list(results) == []
    assert len(ran) < 50  # the rest is left undone
    assert thread_count() == allowed


def test_closing_a_map_leaves_the_remaining_tasks_undone(allowed):
    list(parallel_map(abs, range(allowed)))  # the threads of the pool are there, and stay
    ran, closing, before = [], threading.Event(), threading.active_count()
    here = threading.get_ident()

    def work(task):
        ran.append(task)
        if task and threading.get_ident() != here:
            assert closing.wait(10)
        return task

    results = parallel_map(work, range(1000))
    assert next(results) == 0
    later = threading.Timer(0.1, closing.set)
    later.start()
    results.close()
    later.join()
    assert 0 in ran
    assert len(ran) <= 2 * allowed + 1  # the one asked for, those begun ahead of it, and none that only waited
    assert threading.active_count() == before
    assert thread_count() == allowed


def test_a_map_that_nobody_asks_runs_nothing(allowed):
    ran = []
    parallel_map(ran.append, range(9)).close()
    assert ran == []


def test_blas_keeps_to_one_thread_during_a_map_and_gets_its_threads_back(allowed):
    before = blas_threads()

    def work(task):
        with single_threaded_blas():  # asked for once more inside, it must not lift the limit at its end
            pass
        return tuple(blas_threads())

    assert set(sum(parallel_map(work, range(8)), ())) <= {1}
    assert blas_threads() == before
    results = parallel_map(work, range(8))
    next(results)
    results.close()
    assert blas_threads() == before


def blas_threads():
    """Return the threads of the libraries that NumPy and SciPy call; that of Faiss counts them thread by thread."""
    libraries = [each for each in threadpool_info() if each["user_api"] == "blas" and "faiss" not in each["filepath"]]
    return [each["num_threads"] for each in libraries]


def test_blas_that_is_imported_later_is_kept_to_one_thread():
    code = """
from threadpoolctl import threadpool_info
from kernelweave.foundation.threads import single_threaded_blas
with single_threaded_blas():
    pass
import faiss
with single_threaded_blas():
    raise SystemExit(max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"))
"""
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert ended.returncode == 1


def test_blas_is_kept_to_one_thread_and_gets_its_threads_back():
    before = blas_threads()
    with single_threaded_blas():
        assert set(blas_threads()) <= {1}
    assert blas_threads() == before
    with pytest.raises(KeyError), single_threaded_blas():
        raise KeyError
    assert blas_threads() == before


def test_blas_gets_its_threads_back_from_whoever_limited_it_first():
    before = blas_threads()
    inside, leave = threading.Event(), threading.Event()
    with single_threaded_blas():
        with single_threaded_blas():
            pass
        assert set(blas_threads()) <= {1}

        def overlapping():
            with single_threaded_blas():
                inside.set()
                assert leave.wait(10)

        other = threading.Thread(target=overlapping)
        other.start()
        assert inside.wait(10)
    leave.set()
    other.join()
    assert blas_threads() == before  # one who finds the limit set leaves it to the other to lift


def test_a_library_that_others_have_limited_is_left_to_them(monkeypatch):
    class Library:
        def __init__(self, threads):
            self.num_threads = threads

        def set_num_threads(self, threads):
            self.num_threads = threads

    limited, free = Library(1), Library(2)  # that of Faiss is free in one thread and limited in another
    monkeypatch.setattr(threads_module, "_blas", lambda n_modules: SimpleNamespace(lib_controllers=[limited, free]))
    with single_threaded_blas():
        assert free.num_threads == 1
        limited.set_num_threads(2)  # whoever limited it lifts the limit
    assert limited.num_threads == 2
    assert free.num_threads == 2


def test_blas_and_openmp_are_kept_to_one_thread_and_get_their_threads_back():
    code = """
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_info
from kernelweave.foundation.threads import single_threaded_libraries
def threads():
    return {(each["user_api"], each["filepath"]): each["num_threads"] for each in threadpool_info()}
before = threads()
assert {api for api, _ in before} == {"blas", "openmp"}, before
assert max(before.values()) == 2, before
with single_threaded_libraries():
    assert set(threads().values()) == {1}, threads()
assert threads() == before, (before, threads())
"""
    threads = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60, env=os.environ | threads)
    assert ended.returncode == 0


N, K_CLUSTERS = 2100, 5  # wider than one tile of a blockwise kernel


def dense(X):
    return DenseKernel(X @ X.T)


def dense_float32(X):
    return DenseKernel((X @ X.T).astype(np.float32))


def blockwise(X):
    formula = formulas.Gaussian(0.1, X.mean(axis=0))
    return BlockwiseKernel(formula, formula.prepare(X))


def sparse_features(X):
    return FeatureKernel(sp.csr_array(X * (X > 0)))


def views(X):
    return CompositeKernel([FeatureKernel(X), blockwise(X)], [0.5, 2.0])


def transformed(X):
    return UnitDiagonalKernel(CentredKernel(blockwise(X)))


def step(op):
    """Return everything one iteration of kernel k-means computes."""
    rng = np.random.default_rng(1)
    labels, weights = rng.integers(K_CLUSTERS, size=N), rng.random(N)
    sums = op.cluster_sums(labels, weights, K_CLUSTERS)
    first = sums.copy()
    moved = rng.permutation(N)[: N // 3]
    new = rng.integers(K_CLUSTERS, size=len(moved))
    after = labels.copy()
    after[moved] = new
    op.move_sums(sums, op.backend.moves(labels, after), weights)
    labels = after
    totals = algebra.cluster_weights(labels, weights, K_CLUSTERS)
    norms = algebra.center_norms(algebra.within_sums(sums, labels, weights), totals)
    wide = np.tile(sums, 50)  # as many samples as make several ranges worth their threads
    nearest = op.backend.nearest(wide, totals, norms, np.tile(labels, 50), 0.0, np.zeros(wide.shape[1]))
    return first, sums, nearest.labels, nearest.distances, nearest.lead


MAKERS = [dense, dense_float32, blockwise, FeatureKernel, sparse_features, views, transformed]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_sums_moves_and_nearest_clusters_are_bit_identical_on_one_thread_and_on_two(make, monkeypatch):
    monkeypatch.setattr(threads_module, "WORTH_A_THREAD", N * K_CLUSTERS)  # every step here is worth one
    X = np.random.default_rng(0).standard_normal((N, 6))
    op = make(X)
    with threadpool_limits(1):
        alone = step(op)
    shared = step(op)
    for result, wanted in zip(shared, alone, strict=True):
        np.testing.assert_array_equal(result, wanted)
    for count in (2, 3):
        monkeypatch.setattr(threads_module, "thread_count", lambda count=count: count)
        for result, wanted in zip(step(op), alone, strict=True):
            np.testing.assert_array_equal(result, wanted)


def test_the_whole_blockwise_matrix_is_bit_identical_on_any_number_of_threads(threads):
    op = blockwise(np.random.default_rng(0).standard_normal((1100, 6)))
    result = op.dense()
    with threadpool_limits(1), pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads_module, "thread_count", lambda: 1)
        np.testing.assert_array_equal(op.dense(), result)


@pytest.mark.parametrize("even_few", [False, True])
def test_fewer_tasks_than_threads_run_side_by_side_only_where_that_is_asked_for(even_few, monkeypatch):
    monkeypatch.setattr(threads_module, "openmp_threads", lambda: 4)
    allowed = list(parallel_map(lambda task: (task, thread_count()), range(3), even_few=even_few))
    assert allowed == [(task, 1 if even_few else 4) for task in range(3)]
