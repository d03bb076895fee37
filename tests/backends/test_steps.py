"""Steps on a stored kernel in one: what moves, norms and nearest clusters are one by one, to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.backends import get_backend
from kernelweave.backends.compiled import steps
from kernelweave.backends.compiled.row_loops import PART
from kernelweave.foundation import threads as threads_module
from kernelweave.partitions import algebra
from tests.strategies import generators

BACKEND = get_backend("numba")


@st.composite
def cases(draw):
    """Draw a kernel, labels before and after a step, weights some of which are zero, and the number of clusters."""
    rng, n, k = draw(generators()), draw(st.integers(1, 4 * PART)), draw(st.integers(1, 5))
    X = rng.standard_normal((n, 2))
    K = (X @ X.T).astype(draw(st.sampled_from([np.float32, np.float64])))
    old = rng.integers(k, size=n)
    moved = rng.random(n) < draw(st.sampled_from([0.01, 0.3, 1.0]))
    new = np.where(moved, rng.integers(k, size=n), old)
    if draw(st.booleans()):
        new[new == 0] = k - 1  # the first cluster is left without samples
    return K, old, new, rng.random(n) * (rng.random(n) < 0.9), k


def before(case):
    """Return the sums of the labels before the step, its moves, weights of clusters after it, and the diagonal."""
    K, old, new, weights, k = case
    sums = BACKEND.cluster_sums(K, old, weights, k)
    return sums, BACKEND.moves(old, new), algebra.cluster_weights(new, weights, k), BACKEND.diagonal(K)


def one_by_one(case, tolerance):
    """Return sums, sums inside of clusters and nearest clusters after a step, by the verbs that it puts together."""
    K, _, _, weights, _ = case
    sums, moves, totals, diag = before(case)
    BACKEND.move_sums(sums, K, moves, weights)
    within = BACKEND.within_sums(sums, moves.labels, weights)
    norms = algebra.center_norms(within, totals)
    return sums, within, BACKEND.nearest(sums, totals, norms, moves.labels, tolerance, diag)


def in_one(case, tolerance):
    K, _, _, weights, _ = case
    sums, moves, totals, diag = before(case)
    within, assignment = BACKEND.move_and_assign(sums, K, moves, weights, totals, tolerance, diag)
    return sums, within, assignment


def same(found, wanted):
    for mine, theirs in zip(found[:2], wanted[:2], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(found[2].labels, wanted[2].labels)
    np.testing.assert_array_equal(found[2].distances, wanted[2].distances)
    assert found[2].lead == wanted[2].lead


@settings(max_examples=60, deadline=None)
@given(case=cases(), tolerance=st.sampled_from([1e-9, 0.5]), threads=st.integers(1, 4))
def test_a_step_is_its_verbs_one_by_one_on_any_number_of_threads(case, tolerance, threads):
    wanted = one_by_one(case, tolerance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads_module, "thread_count", lambda: threads)
        patch.setattr(threads_module, "WORTH_A_THREAD", 1)
        patch.setattr(threads_module, "PIECE_WIDTH", 1)
        same(in_one(case, tolerance), wanted)


@settings(max_examples=30, deadline=None)
@given(case=cases(), threads=st.integers(2, 4))
def test_what_threads_that_gave_up_have_left_is_decided_by_the_caller(case, threads):
    wanted = one_by_one(case, 1e-9)
    usual = steps.step_pieces
    left = []

    def gives_up(*args):
        """Move what there is to move, and leave the nearest clusters of every other part."""
        usual(*args)
        out, values, leads = args[-3:]
        for part in range(0, len(leads), 2):
            here = slice(part * PART, (part + 1) * PART)
            left.append(part)
            leads[part], out[here], values[here] = np.nan, -1, np.nan
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads_module, "thread_count", lambda: threads)
        patch.setattr(threads_module, "WORTH_A_THREAD", 1)
        patch.setattr(steps, "step_pieces", gives_up)
        same(in_one(case, 1e-9), wanted)
    assert left


def pieces_of(case, tickets, width, waits):
    """Call ``step_pieces`` as a thread that finds such tickets; returns what it says and what it has written."""
    K, _, _, weights, k = case
    sums, moves, totals, _ = before(case)
    n = len(moves.labels)
    order = np.lexsort((moves.new, moves.old))
    ways = np.stack([moves.samples[order], moves.old[order], moves.new[order]])
    clusters = np.stack([totals, np.where(totals > 0, 2.0 / np.where(totals > 0, totals, 1.0), 0.0)])
    parts, leads = np.full((-(-n // PART), k), np.nan), np.full(-(-n // PART), np.nan)
    out, values = np.full(n, -1), np.full(n, np.nan)
    decided = (moves.labels, weights, clusters, 1e-9, sums, parts, out, values, leads)
    said = steps.step_pieces(K, ways, weights[ways[0]], tickets, width, waits, *decided)
    return said, sums, parts, out, leads


def test_nobody_decides_before_every_piece_is_moved():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4 * PART, 2))
    old, new = rng.integers(3, size=len(X)), rng.integers(3, size=len(X))
    case = X @ X.T, old, new, np.ones(len(X)), 3
    moved = one_by_one(case, 1e-9)[0]
    # Another thread has begun the first piece and does not end: the others are moved, and nothing is decided.
    tickets = np.array([1, 0])
    said, sums, parts, out, leads = pieces_of(case, tickets, PART, True)
    assert not said
    assert tickets.tolist() == [5, 3]
    np.testing.assert_array_equal(sums[:, PART:], moved[:, PART:])
    assert np.isnan(parts[0]).all()
    assert np.isfinite(parts[1:]).all()
    assert (out == -1).all()
    assert np.isnan(leads).all()
    # Who comes when all pieces have been begun does nothing, and looks for nobody.
    tickets = np.array([4, 4])
    said, sums, _, out, _ = pieces_of(case, tickets, PART, False)
    assert not said
    assert tickets.tolist() == [5, 4]
    np.testing.assert_array_equal(sums, before(case)[0])
    assert (out == -1).all()
    # Alone: every piece is counted twice, moved and decided.
    tickets = np.array([0, 0])
    said, sums, _, out, leads = pieces_of(case, tickets, PART, True)
    assert said
    assert tickets.tolist() == [5, 8]
    np.testing.assert_array_equal(out, one_by_one(case, 1e-9)[2].labels)
    assert np.isfinite(leads).all()
    # As a helper: the same work, and nothing said.
    tickets = np.array([0, 0])
    said, _, _, out, _ = pieces_of(case, tickets, PART, False)
    assert not said
    assert (out >= 0).all()
