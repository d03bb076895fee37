"""Eigenpairs by LAPACK's address against those that SciPy returns, and several at the same time."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh

from kernelweave.backends import eigenpairs
from kernelweave.backends.eigenpairs import lapack_routine, last_eigenpairs
from kernelweave.foundation.threads import single_threaded_blas
from tests.strategies import generators


def nearly_symmetric(rng, n):
    """Return a matrix whose two halves differ by rounding, of which only one is read."""
    A = rng.standard_normal((n, n))
    return A + A.T + 1e-14 * rng.standard_normal((n, n))


@settings(max_examples=40, deadline=None)
@given(generators(), st.integers(1, 70), st.data())
def test_eigenpairs_are_those_of_scipy_to_the_last_bit(rng, n, data):
    count = data.draw(st.integers(1, n))
    A = nearly_symmetric(rng, n)
    if data.draw(st.booleans()):
        A = np.asfortranarray(A)
    before = A.copy()
    with single_threaded_blas():
        values, vectors = last_eigenpairs(A, count)
        wanted_values, wanted_vectors = eigh(A, subset_by_index=[n - count, n - 1])
    np.testing.assert_array_equal(values, wanted_values)
    np.testing.assert_array_equal(vectors, wanted_vectors)
    np.testing.assert_array_equal(A, before)


def test_repeated_eigenvalues_have_as_many_vectors():
    values, vectors = last_eigenpairs(np.diag([1.0, 3.0, 3.0, 2.0]), 3)
    np.testing.assert_allclose(values, [2.0, 3.0, 3.0])
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_kernel_whose_eigenvalues_are_nearly_all_1_has_as_many_vectors_as_asked_for(dtype):
    # OpenBLAS's routine for a part of the eigenvalues finds fewer in some of these.
    rng = np.random.default_rng(0)
    precision = 100 * np.finfo(dtype).eps
    for _ in range(150):
        n, count, clusters = rng.integers((20, 1, 2), (90, 20, 12))
        X = 3 * rng.standard_normal((clusters, 4))[rng.integers(clusters, size=n)] + rng.standard_normal((n, 4))
        K = np.exp(-rng.choice([20, 50, 200]) * np.square(X[:, None] - X).sum(axis=2)).astype(dtype)
        values, vectors = last_eigenpairs(K, count)
        assert vectors.shape == (n, count)
        assert vectors.flags.f_contiguous
        np.testing.assert_allclose(values, np.linalg.eigvalsh(K)[n - count :], rtol=0, atol=precision)
        np.testing.assert_allclose(K @ vectors, vectors * values, rtol=0, atol=precision)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), rtol=0, atol=precision)


@pytest.mark.parametrize(("way", "dtype"), [("_by_address", np.float64), ("_by_scipy", np.float32)])
def test_where_lapack_finds_fewer_the_matrix_is_decomposed_as_a_whole(monkeypatch, way, dtype):
    A = nearly_symmetric(np.random.default_rng(0), 30).astype(dtype)
    wanted = last_eigenpairs(A, 7)
    monkeypatch.setattr(eigenpairs, way, lambda *_: tuple(part[..., :4] for part in wanted))
    values, vectors = last_eigenpairs(A, 7)
    np.testing.assert_allclose(values, wanted[0], rtol=100 * np.finfo(dtype).eps)
    np.testing.assert_allclose(np.abs(vectors.T @ wanted[1]), np.eye(7), atol=1000 * np.finfo(dtype).eps)


def test_what_scipy_reports_of_lapack_is_no_end(monkeypatch):
    A = nearly_symmetric(np.random.default_rng(0), 30).astype(np.float32)
    wanted, _ = last_eigenpairs(A, 7)
    asked = []

    def failing(matrix, **options):
        asked.append(options)
        if "subset_by_index" in options:
            raise np.linalg.LinAlgError("Internal Error.")
        return eigh(matrix, **options)

    monkeypatch.setattr(eigenpairs, "eigh", failing)
    np.testing.assert_allclose(last_eigenpairs(A, 7)[0], wanted, rtol=1e-4)
    assert len(asked) == 2


def test_single_precision_and_other_builds_of_lapack_are_left_to_scipy(monkeypatch):
    A = nearly_symmetric(np.random.default_rng(0), 9)
    single = last_eigenpairs(A.astype(np.float32), 2)
    assert single[1].dtype == np.float32
    usual = last_eigenpairs(A, 2)
    monkeypatch.setattr(eigenpairs, "WHOLE_NUMBER", b"long long *")
    lapack_routine.cache_clear()
    try:
        assert lapack_routine(eigenpairs.ROUTINE, eigenpairs.N_ARGUMENTS) is None
        for one, other in zip(usual, last_eigenpairs(A, 2), strict=True):
            np.testing.assert_array_equal(one, other)
    finally:
        lapack_routine.cache_clear()


def test_this_build_of_lapack_is_called_by_its_address():
    assert lapack_routine(eigenpairs.ROUTINE, eigenpairs.N_ARGUMENTS) is not None


def test_what_lapack_cannot_decompose_is_an_error():
    with pytest.raises(np.linalg.LinAlgError, match="4 rows"):
        last_eigenpairs(np.full((4, 4), np.nan), 2)


def test_other_threads_go_on_meanwhile():
    A = nearly_symmetric(np.random.default_rng(0), 1000)  # takes a tenth of a second
    began = threading.Event()
    ended = threading.Event()

    def decompose():
        began.set()
        last_eigenpairs(A, 10)
        ended.set()

    thread = threading.Thread(target=decompose)
    turns = 0
    with single_threaded_blas():
        thread.start()
        began.wait()
        while not ended.wait(0.001):
            turns += 1
        thread.join()
    assert turns > 8  # one that waits for the interpreter has a turn before the decomposition and one after it
