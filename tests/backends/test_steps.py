"""Steps on a stored kernel by threads that stay: to the last bit moves, norms and nearest clusters."""

import itertools
import time
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.backends import get_backend
from kernelweave.backends.compiled import step_team, steps
from kernelweave.backends.compiled.row_loops import PART
from kernelweave.backends.compiled.step_team import StepTeam
from kernelweave.foundation import threads as threads_module
from kernelweave.partitions import algebra
from tests.strategies import generators

BACKEND = get_backend("numba")


@st.composite
def cases(draw):
    """Draw a kernel, labels before and after two steps, weights some of which are zero, and the number of clusters."""
    rng, n, k = draw(generators()), draw(st.integers(1, 4 * PART)), draw(st.integers(1, 5))
    X = rng.standard_normal((n, 2))
    K = (X @ X.T).astype(draw(st.sampled_from([np.float32, np.float64])))
    labels = [rng.integers(k, size=n)]
    for share in (draw(st.sampled_from([0.01, 0.3, 1.0])), 0.2):
        labels.append(np.where(rng.random(n) < share, rng.integers(k, size=n), labels[-1]))
        if draw(st.booleans()):
            labels[-1][labels[-1] == 0] = k - 1  # the first cluster is left without samples
    return K, labels, rng.random(n) * (rng.random(n) < 0.9), k


def large():
    """Return a case of four parts."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4 * PART, 2))
    return X @ X.T, [rng.integers(3, size=len(X)) for _ in range(4)], np.ones(len(X)), 3


def one_by_one(case, tolerance=1e-9):
    """Yield sums, sums inside of clusters and nearest clusters after every step, by the verbs that it puts together."""
    K, labels, weights, k = case
    sums, diag = BACKEND.cluster_sums(K, labels[0], weights, k), BACKEND.diagonal(K)
    for old, new in itertools.pairwise(labels):
        totals = algebra.cluster_weights(new, weights, k)
        BACKEND.move_sums(sums, K, BACKEND.moves(old, new), weights)
        within = BACKEND.within_sums(sums, new, weights)
        norms = algebra.center_norms(within, totals)
        yield sums.copy(), within, BACKEND.nearest(sums, totals, norms, new, tolerance, diag)


def by_a_team(case, tolerance=1e-9, between=lambda team: None):
    """Yield the same by a team; ``between`` is called with it after every step."""
    K, labels, weights, k = case
    sums, diag = BACKEND.cluster_sums(K, labels[0], weights, k), BACKEND.diagonal(K)
    team = BACKEND.steps(K, weights, sums)
    for old, new in itertools.pairwise(labels):
        within, assignment = team.step(
            BACKEND.moves(old, new), algebra.cluster_weights(new, weights, k), tolerance, diag
        )
        yield sums.copy(), within, assignment
        between(team)


def same(found, wanted):
    for (sums, within, mine), (other_sums, other_within, theirs) in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(sums, other_sums)
        np.testing.assert_array_equal(within, other_within)
        np.testing.assert_array_equal(mine.labels, theirs.labels)
        np.testing.assert_array_equal(mine.distances, theirs.distances)
        assert mine.lead == theirs.lead


@pytest.fixture
def allow(monkeypatch):
    """Return what allows so many threads, worth it for any work, with pieces of one part."""

    def allow(threads):
        monkeypatch.setattr(threads_module, "thread_count", lambda: threads)
        monkeypatch.setattr(threads_module, "WORTH_A_THREAD", 1)
        monkeypatch.setattr(threads_module, "PIECE_WIDTH", 1)

    return allow


def present(team):
    return int(team._board[steps.PRESENT])


def until(condition):
    """Wait until a condition holds, for ten seconds at most."""
    end = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(1e-3)


@settings(max_examples=60, deadline=None)
@given(case=cases(), tolerance=st.sampled_from([1e-9, 0.5]), threads=st.integers(1, 4))
def test_a_step_is_its_verbs_one_by_one_on_any_number_of_threads(case, tolerance, threads):
    wanted = list(one_by_one(case, tolerance))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads_module, "thread_count", lambda: threads)
        patch.setattr(threads_module, "WORTH_A_THREAD", 1)
        patch.setattr(threads_module, "PIECE_WIDTH", 1)
        same(list(by_a_team(case, tolerance)), wanted)


def test_helpers_are_called_when_they_are_missing_and_nobody_who_left_holds_on_to_anything(allow, monkeypatch):
    allow(3)
    calls = []
    usual = step_team.pool.call
    monkeypatch.setattr(step_team.pool, "call", lambda work, helpers: calls.append(helpers) or usual(work, helpers))
    K, labels, weights, k = large()
    sums, diag = BACKEND.cluster_sums(K, labels[0], weights, k), BACKEND.diagonal(K)
    team = StepTeam(K, weights, sums)

    def step(number):
        moves = BACKEND.moves(labels[number], labels[number + 1])
        team.step(moves, algebra.cluster_weights(labels[number + 1], weights, k), 1e-9, diag)

    step(0)
    assert calls == [2]
    until(lambda: present(team) == 0)  # no step came
    team._board[steps.PRESENT] = 1  # as if one were there
    step(1)
    assert calls == [2, 1]
    team._called()  # nobody comes any more
    team._board[steps.PRESENT] = 2
    step(2)
    assert calls == [2, 1]
    left = weakref.ref(team._out)
    team = None
    until(lambda: left() is None)


def test_many_steps_by_threads_that_come_and_go_are_those_of_one(allow):
    K, labels, weights, k = large()
    rng = np.random.default_rng(1)
    many = K, [*labels, *(rng.integers(k, size=len(K)) for _ in range(150))], weights, k
    wanted = list(one_by_one(many))
    allow(4)
    same(list(by_a_team(many, between=lambda team: time.sleep(rng.choice([0.0, 0.0, 1e-3])))), wanted)


def test_a_helper_by_itself_does_all_of_a_step():
    case = large()
    team, m = prepared(case)
    sums, _, wanted = next(one_by_one(case))
    team._board[[steps.TICKET, steps.MOVES, steps.WIDTH, steps.WANTED]] = ticket(5, 4, 0), m, PART, 1
    steps.take_steps(False, 0, 0, team._board, *team._arrays(1e-9))
    assert team._board[steps.TICKET] == ticket(5, 4, 5)
    assert team._board[steps.DONE] == 8
    assert present(team) == 0  # no other step came
    np.testing.assert_array_equal(team._sums, sums)
    np.testing.assert_array_equal(team._out, wanted.labels)
    assert team._leads.min() == wanted.lead


def test_a_step_is_another_by_its_number_alone_and_none_comes_on_a_closed_board():
    board = np.zeros(steps.BOARD_SIZE, dtype=np.int64)
    board[steps.TICKET] = ticket(3, 4, 6)
    assert not steps._another(board, ticket(3, 4, 5))
    assert steps._another(board, ticket(2, 4, 5))
    assert steps._another(board, ticket(0, 0, 0))
    board[steps.CLOSED] = 1
    assert not steps._another(board, ticket(2, 4, 5))


def test_more_helpers_than_wanted_leave_at_once_and_so_do_those_of_a_closed_board():
    K, labels, weights, k = large()
    team = StepTeam(K, weights, BACKEND.cluster_sums(K, labels[0], weights, k))
    arrays = team._arrays(1e-9)
    for wanted, there, closed in ((2, 2, 0), (2, 0, 1), (0, 0, 0)):
        board = np.zeros(steps.BOARD_SIZE, dtype=np.int64)
        board[[steps.WANTED, steps.PRESENT, steps.CLOSED]] = wanted, there, closed
        before = board.copy()
        steps.take_steps(False, 0, 0, board, *arrays)
        np.testing.assert_array_equal(board, before)  # not even a ticket was taken


def prepared(case):
    """Return a team with its first step laid out, and the number of its moves."""
    K, labels, weights, k = case
    team = StepTeam(K, weights, BACKEND.cluster_sums(K, labels[0], weights, k))
    moves = BACKEND.moves(labels[0], labels[1])
    order = np.lexsort((moves.new, moves.old))
    team._ways[:, : moves.count] = moves.samples[order], moves.old[order], moves.new[order]
    team._carried[: moves.count] = weights[moves.samples[order]]
    team._labels[:] = moves.labels
    team._clusters[0] = algebra.cluster_weights(labels[1], weights, k)
    team._clusters[1] = 2.0 / team._clusters[0]
    for array in (team._parts, team._values, team._leads):
        array[:] = np.nan
    team._out[:] = -1
    return team, moves.count


def ticket(step, count, begun):
    return (((step << steps.BITS) + count) << steps.BITS) + begun


def test_nobody_decides_before_every_piece_is_moved():
    case = large()
    team, m = prepared(case)
    moved = next(one_by_one(case))
    # Another thread has begun the first of four pieces and does not end: the rest is moved, and nothing is decided.
    team._board[[steps.TICKET, steps.MOVES, steps.WIDTH]] = ticket(1, 4, 1), m, PART
    team._board[steps.WANTED] = 1
    steps.take_steps(False, 0, 0, team._board, *team._arrays(1e-9))
    assert team._board[steps.TICKET] == ticket(1, 4, 5)
    assert team._board[steps.DONE] == 3
    assert present(team) == 0
    np.testing.assert_array_equal(team._sums[:, PART:], moved[0][:, PART:])
    assert np.isnan(team._parts[0]).all()
    assert np.isfinite(team._parts[1:]).all()
    assert (team._out == -1).all()
    assert np.isnan(team._leads).all()


def test_steps_are_numbered_and_every_piece_is_done_twice():
    team, m = prepared(large())
    team._board[steps.TICKET] = ticket(7, 3, 9)
    assert steps.take_steps(True, m, PART, team._board, *team._arrays(1e-9))
    assert team._board[steps.TICKET] == ticket(8, 4, 5)
    assert team._board[steps.DONE] == 8
    assert np.isfinite(team._leads).all()
    assert (team._out >= 0).all()


@settings(max_examples=30, deadline=None)
@given(case=cases())
def test_what_others_have_left_is_decided_by_the_caller_on_a_new_board(case):
    wanted = list(one_by_one(case))
    usual = steps.take_steps
    boards = []

    def gives_up(leading, moves, width, board, *arrays):
        """Move what there is to move, and leave the nearest clusters of every other part as they were."""
        out, values, leads = arrays[-3:]
        before = leads.copy()
        usual(leading, moves, width, board, *arrays)
        for part in range(0, len(leads), 2):
            here = slice(part * PART, (part + 1) * PART)
            leads[part], out[here], values[here] = before[part], -1, np.nan
        boards.append(board)
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "take_steps", gives_up)
        same(list(by_a_team(case)), wanted)
    assert all(board[steps.CLOSED] == 1 for board in boards)
    assert boards[0] is not boards[1]


def test_helpers_have_left_before_the_caller_decides_what_they_leave(monkeypatch):
    K, labels, weights, k = large()
    team = StepTeam(K, weights, BACKEND.cluster_sums(K, labels[0], weights, k))
    board = team._board
    board[steps.PRESENT] = 1
    seen = []

    def nap(seconds):
        seen.append((int(board[steps.CLOSED]), team._board is board))
        if len(seen) == 3:
            board[steps.PRESENT] = 0

    monkeypatch.setattr(step_team.time, "sleep", nap)
    team._dismiss()
    assert seen == [(1, True)] * 3
    assert team._board is not board
    assert not team._board.any()


def test_a_fork_that_goes_on_has_no_helpers(monkeypatch):
    case = large()
    K, labels, weights, k = case
    sums = BACKEND.cluster_sums(K, labels[0], weights, k)
    team = StepTeam(K, weights, sums)
    board = team._board
    board[steps.PRESENT] = 3
    monkeypatch.setattr(step_team.os, "getpid", lambda: -1)
    totals = algebra.cluster_weights(labels[1], weights, k)
    _, assignment = team.step(BACKEND.moves(labels[0], labels[1]), totals, 1e-9, BACKEND.diagonal(K))
    assert team._board is not board
    assert present(team) == 0
    np.testing.assert_array_equal(assignment.labels, next(one_by_one(case))[2].labels)
