"""What `make bench` runs: every suite is there, and those of cores are judged by what was measured."""

import os
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import __main__ as bench
from benchmarks import cores

FOLDER = Path(bench.__file__).parent
FOUND = {
    "name": "synthetic",
    "n": 5000,
    "threads": 2,
    "ours": 0.1,
    "theirs": 1.0,
    "read": 0.01,
    "steps": 9,
    "same": True,
}
CASE = {
    "what": "global",
    "threads": 8,
    "seconds": 1.0,
    "processor": 8.0,
    "efficiency": 0.7,
    "allowed": 0.75,
    "same": True,
}


def test_every_file_with_a_run_is_a_suite():
    files = {path.stem for path in FOLDER.glob("*.py") if "\ndef run():" in path.read_text()}
    assert files == set(bench.SUITES)
    assert len(set(bench.SUITES)) == len(bench.SUITES)
    assert {"cores", "quick", "graph_fusion", "memory"} <= files


@pytest.mark.parametrize("name", bench.SUITES)
def test_a_suite_names_itself(name):
    assert isinstance(import_module(f"benchmarks.{name}").SUITE, str)


@pytest.mark.parametrize(
    ("changed", "kept"),
    [({}, True), ({"theirs": 0.4}, False), ({"n": 1500, "theirs": 0.4}, None), ({"same": False, "theirs": 0.4}, None)],
)
def test_a_fit_on_a_stored_kernel_is_held_to_five_times_the_textbook_loop_that_ends_alike(changed, kept):
    row = cores.stored_row(FOUND | changed)
    assert row.kept is kept
    assert bool(row.promise) == (kept is not None)


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        ({}, True),
        ({"efficiency": 0.5}, False),
        ({"efficiency": 0.5, "threads": 2}, True),
        ({"same": False, "threads": 2}, False),
    ],
)
def test_threads_must_not_change_labels_and_eight_must_be_of_use(changed, kept):
    assert cores.case_row(CASE | changed).kept is kept


def test_efficiency_is_told_beside_what_the_machine_allows(monkeypatch):
    seconds = {1: "2.0 2.0 labels", 4: "1.0 4.0 labels"}

    def run(command, env, **options):
        return subprocess.CompletedProcess(command, 0, stdout=seconds[int(env["OMP_NUM_THREADS"])])

    monkeypatch.setattr(cores.subprocess, "run", run)
    monkeypatch.setattr(cores, "allowed", lambda threads: 1.0 / threads)
    alone, four = cores.efficiency("global", [1, 4])
    assert (alone["efficiency"], alone["allowed"]) == (1.0, 1.0)
    assert (four["efficiency"], four["allowed"]) == (0.5, 0.25)
    assert "efficiency 0.50 (the machine allows 0.25)" in cores.case_line(four)
    assert "efficiency 0.50 (the machine allows 0.25)" in cores.case_row(four).result


def test_a_machine_allows_the_share_of_their_speed_that_threads_keep(monkeypatch):
    seconds = {1: [3.0, 2.0, 3.0, 3.0, 3.0], 4: [4.0, 9.0, 5.0, 4.0, 4.0]}
    monkeypatch.setattr(cores, "seconds_of_powers", lambda threads: seconds[threads].pop())
    assert cores.allowed(4) == 0.5


def test_threads_take_powers_at_the_same_time(monkeypatch):
    monkeypatch.setattr(cores, "POWERS", 1)
    assert 0.0 < cores.seconds_of_powers(2) < 10.0


def test_processors_that_slow_each_other_down_are_not_used_together(monkeypatch):
    monkeypatch.setattr(cores, "processors", lambda: {0, 1, 2, 3, 6, 7})
    same_core = {(0, 6), (1, 7), (2, 3)}

    def took(threads, pinned):
        assert len(pinned) == threads
        return 1.6 if tuple(sorted(pinned)) in same_core else 1.1

    monkeypatch.setattr(cores, "seconds_of_powers", took)
    assert cores.processors_apart() == [0, 1, 2]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system binds no threads to processors")
def test_only_the_threads_that_take_powers_are_bound_to_processors(monkeypatch):
    monkeypatch.setattr(cores, "POWERS", 1)
    before = os.sched_getaffinity(0)
    assert cores.slowdown(*sorted(before)[:1] * 2) > 0.0
    assert os.sched_getaffinity(0) == before


def test_rows_come_from_as_many_threads_as_there_are(monkeypatch):
    asked = []
    monkeypatch.setattr(cores, "processors", lambda: {0, 1})
    monkeypatch.setattr(
        cores, "stored", lambda threads, sizes, _: [FOUND | {"threads": threads, "n": n} for n in sizes]
    )
    monkeypatch.setattr(
        cores, "efficiency", lambda what, counts: asked.append((what, counts)) or [CASE | {"what": what}]
    )
    rows = cores.run()
    assert asked == [("global", [1, 2]), ("blockwise", [1, 2])]
    assert len(rows) == 2 * len(cores.SUITE_SIZES) + 2
    assert all(row.suite == cores.SUITE for row in rows)
