"""Sums of a Gaussian kernel that is not stored: exponentials, agreement with the plain formula, and threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.backends import get_backend
from kernelweave.backends.compiled import gaussian_sums
from kernelweave.backends.compiled.gaussian_sums import NARROWEST, PIECES, ROWS, WIDEST, piece_borders
from kernelweave.backends.preparing import read_only
from kernelweave.backends.tiling import FEW_FEATURES
from kernelweave.foundation import threads
from kernelweave.kernels.blockwise import BlockwiseKernel
from kernelweave.kernels.spec.formulas import Gaussian, Polynomial
from tests.strategies import generators


def exponentials(exponents):
    """Return what the compiled loop makes of exponents."""
    values = np.array(exponents, dtype=np.float64)
    gaussian_sums._exponentials(values)
    return values


def prepared(X, gamma=0.3):
    """Return samples as the formula of the kernel lays them out."""
    return Gaussian(gamma, None).prepare(X)


def plain(Y, X, gamma=0.3):
    """Return the kernel between Y and X from differences."""
    return np.exp(-gamma * ((Y[:, None] - X) ** 2).sum(axis=2))


def indicators(labels, weights, k):
    return weights[:, None] * (labels[:, None] == np.arange(k))


@st.composite
def cases(draw):
    """Draw sources and samples, some of them the same, over several parts and pieces; labels before and after."""
    rng, k, d = draw(generators()), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    Y = rng.standard_normal((draw(st.integers(1, 2 * ROWS + 9)), d))
    X = np.vstack([Y[: draw(st.integers(0, 3))], rng.standard_normal((draw(st.integers(1, 2 * NARROWEST + 9)), d))])
    labels = rng.integers(k, size=len(Y))
    new = np.where(rng.random(len(Y)) < draw(st.sampled_from([0.02, 0.3, 1.0])), rng.integers(k, size=len(Y)), labels)
    return Y, X, labels, new, rng.random(len(Y)) * (rng.random(len(Y)) < 0.9), k


@settings(max_examples=30, deadline=None)
@given(case=cases())
def test_sums_are_those_of_the_plain_formula_before_and_after_moves(case):
    Y, X, labels, new, weights, k = case
    K = plain(Y, X)
    given_to_loops = (prepared(Y), prepared(X))
    sums = gaussian_sums.cluster_sums(*given_to_loops, labels, weights, k)
    np.testing.assert_allclose(sums, indicators(labels, weights, k).T @ K, rtol=0, atol=1e-13 * len(Y))
    gaussian_sums.move_sums(sums, *given_to_loops, get_backend().moves(labels, new), weights)
    np.testing.assert_allclose(sums, indicators(new, weights, k).T @ K, rtol=0, atol=1e-13 * len(Y))


def test_exponentials_are_wrong_by_less_than_one_in_the_last_digit():
    rng = np.random.default_rng(0)
    x = np.concatenate([-rng.exponential(3.0, 20_000), rng.uniform(-708.0, 0.0, 20_000), -(2.0 ** np.arange(-60, 9))])
    truth = np.exp(x.astype(np.longdouble))
    assert np.finfo(np.longdouble).eps < np.finfo(np.float64).eps
    assert (np.abs(exponentials(x) - truth) / np.spacing(truth.astype(np.float64))).max() < 1.0


def test_exponentials_never_exceed_one_nor_fall_below_zero():
    assert exponentials([0.0, -0.0, 1e-17, 3.0, np.inf]).tolist() == [1.0] * 5
    assert exponentials([-708.5, -745.0, -1e300, -np.inf]).tolist() == [0.0] * 4
    assert exponentials([-708.0])[0] == pytest.approx(np.exp(-708.0), rel=1e-15)
    steps = exponentials(np.linspace(-3.0, 0.0, 1001))
    assert (np.diff(steps) > 0).all()


def test_what_is_no_number_stays_none():
    assert np.isnan(exponentials([np.nan, -1.0])).tolist() == [True, False]


@pytest.mark.parametrize("n_features", [1, 7, 40], ids="{} features".format)
def test_sums_are_the_same_to_the_last_bit_on_any_number_of_threads_and_in_any_parts(n_features, monkeypatch):
    rng = np.random.default_rng(0)
    n, k = 5 * NARROWEST + 7, 3
    X = prepared(rng.standard_normal((n, n_features)), 1.0 / n_features)
    labels = rng.integers(k, size=n)
    changes = get_backend().moves(labels, rng.integers(k, size=n))
    weights = rng.uniform(0.5, 2.0, n)
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    results = []
    for count, at_once in ((1, 2**30), (2, 2**30), (3, 2**30), (3, 1), (1, 2 * ROWS * n)):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        monkeypatch.setattr(gaussian_sums, "VALUES_AT_ONCE", at_once)
        sums = gaussian_sums.cluster_sums(X, X, labels, weights, k)
        moved = sums.copy()
        gaussian_sums.move_sums(moved, X, X, changes, weights)
        results.append((sums, moved))
    for sums, moved in results[1:]:
        np.testing.assert_array_equal(sums, results[0][0])
        np.testing.assert_array_equal(moved, results[0][1])


def test_signals_are_listened_to_between_parts(monkeypatch):
    X = prepared(np.random.default_rng(0).standard_normal((3 * ROWS + 1, 2)))
    calls = []
    monkeypatch.setattr(gaussian_sums, "VALUES_AT_ONCE", ROWS * len(X))
    monkeypatch.setattr(gaussian_sums, "share_pieces", lambda work, n, **options: calls.append(options["elements"]))
    gaussian_sums.cluster_sums(X, X, np.zeros(len(X), dtype=np.intp), np.ones(len(X)), 1)
    assert [elements // (gaussian_sums.READ_MEANWHILE * len(X)) for elements in calls] == [ROWS, ROWS, ROWS, 1]


def test_whoever_waits_says_whether_others_have_done_their_pieces():
    X = read_only(prepared(np.ones((2 * NARROWEST, 2))))
    labels = np.zeros(len(X), dtype=np.intp)
    sums = np.zeros((1, len(X)))
    borders = np.array([0, NARROWEST, 2 * NARROWEST])

    def done(begun, ended, waits):
        given = (X, X, np.arange(len(X)), labels[:0], labels, np.ones(len(X)), np.arange(ROWS), borders, sums)
        return gaussian_sums._take_pieces(*given, np.array([begun, ended]), NARROWEST, waits)

    assert done(0, 0, True)
    assert (sums == len(X)).all()
    assert not done(1, 0, True)
    assert not done(2, 1, True)
    assert not done(0, 0, False)


def test_no_samples_add_nothing():
    X = prepared(np.ones((3, 2)))
    none = np.empty(0, dtype=np.intp)
    np.testing.assert_array_equal(gaussian_sums.cluster_sums(X[:0], X, none, np.empty(0), 2), np.zeros((2, 3)))
    assert gaussian_sums.cluster_sums(X, X[:0], np.array([0, 1, 0]), np.ones(3), 2).shape == (2, 0)


@pytest.mark.parametrize("n", [0, 1, NARROWEST, 500, 5000, 10_000, 15_000, 100_000])
def test_pieces_cover_all_columns_and_are_narrower_at_the_end(n):
    borders = piece_borders(n)
    widths = np.diff(borders)
    assert borders[-1] == n
    assert borders[0] == 0
    assert (widths > 0).all()
    assert widths.max(initial=0) <= WIDEST
    assert (widths[:-1] >= NARROWEST).all()
    if n >= 5000:
        assert len(widths) >= PIECES
        late = borders[1:] > 0.8 * n
        assert widths[late].max() <= max(NARROWEST, widths.max() // 2)
        assert widths[late].sum() < 0.3 * n


def test_one_thread_of_blas_where_it_could_use_more(monkeypatch):
    entered = []
    original = gaussian_sums.single_threaded_blas

    def watched():
        entered.append(True)
        return original()

    monkeypatch.setattr(gaussian_sums, "single_threaded_blas", watched)
    for n_features, wanted in ((8, 0), (200, 1)):
        X = prepared(np.random.default_rng(0).standard_normal((20, n_features)))
        gaussian_sums.cluster_sums(X, X, np.zeros(20, dtype=np.intp), np.ones(20), 1)
        assert len(entered) == wanted


# --- the kernel that uses them ---------------------------------------------------------------------------------------


def sums_of(kernel, labels, weights):
    return kernel.cluster_sums(labels, weights, 2)


def test_dense_gaussian_kernels_are_summed_here_and_others_in_tiles(monkeypatch):
    X = np.random.default_rng(0).standard_normal((12, 3))
    labels = np.arange(12) % 2
    weights = np.ones(12)
    gaussian = Gaussian(0.3, None)
    polynomial = Polynomial(1.0, 1.0, 2)
    asked = []
    original = gaussian_sums.cluster_sums

    def watched(*arguments):
        asked.append(True)
        return original(*arguments)

    monkeypatch.setattr(gaussian_sums, "cluster_sums", watched)
    compiled = sums_of(BlockwiseKernel(gaussian, gaussian.prepare(X)), labels, weights)
    assert len(asked) == 1
    in_tiles = sums_of(BlockwiseKernel(gaussian, gaussian.prepare(X), backend=get_backend("numpy")), labels, weights)
    sparse = sums_of(BlockwiseKernel(gaussian, gaussian.prepare(sp.csr_array(X))), labels, weights)
    sums_of(BlockwiseKernel(polynomial, polynomial.prepare(X)), labels, weights)
    sums_of(BlockwiseKernel(gaussian, gaussian.prepare(np.ones((12, FEW_FEATURES + 1)))), labels, weights)
    assert len(asked) == 1
    np.testing.assert_allclose(compiled, in_tiles, rtol=1e-13)
    np.testing.assert_allclose(compiled, sparse, rtol=1e-13)
    sums_of(BlockwiseKernel(gaussian, gaussian.prepare(np.ones((12, FEW_FEATURES)))), labels, weights)
    assert len(asked) == 2


def test_new_samples_meet_the_training_samples_as_in_tiles():
    rng = np.random.default_rng(1)
    X, new = rng.standard_normal((40, 3)), rng.standard_normal((5, 3))
    formula = Gaussian(0.3, X.mean(axis=0))
    labels, weights = np.arange(40) % 2, rng.random(40)
    kernel = BlockwiseKernel(formula, formula.prepare(new), formula.prepare(X))
    np.testing.assert_allclose(
        sums_of(kernel, labels, weights), indicators(labels, weights, 2).T @ plain(X, new), rtol=1e-13
    )
