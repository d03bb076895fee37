"""Kernels whose samples are prepared tile by tile: the same values, each pair computed once, whatever the threads."""

from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from kernelweave.foundation import threads
from kernelweave.foundation.memory import Batches
from kernelweave.kernels.lean import LeanKernel, rounds, tiles_within
from kernelweave.kernels.spec import formulas
from kernelweave.kernels.spec.fitting import FormulaKernel, fit_kernel
from tests.kernels.contract import NeverStoresTheMatrix, OperatorContract
from tests.kernels.test_operators import gaussian

TINY = 0.01  # MiB: tiles of the fewest samples
FORMULAS = [
    ("rbf", {}),
    ("poly", {"degree": 3}),
    ("normalized_poly", {"degree": 2}),
    ("sigmoid", {"gamma": 0.01}),
    ("intensity_histogram", {}),
]


class TestLeanKernel(OperatorContract, NeverStoresTheMatrix):
    n_large = 1000  # in tiles of 16 rows

    def make(self, X):
        return LeanKernel(formulas.Gaussian(0.3, X.mean(axis=0)), X, TINY)

    def dense(self, X):
        return gaussian(X, X)


def positive(n, n_features, dtype):
    return np.random.default_rng(0).random((n, n_features)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "params"), FORMULAS)
def test_values_are_those_of_prepared_samples(name, params, dtype):
    X = positive(75, 30, dtype)
    kernel = fit_kernel(X, name, params)
    usual = kernel.operator("blockwise")
    lean = kernel.unprepared(X, TINY).operator()
    assert isinstance(lean, LeanKernel)
    H = np.random.default_rng(1).standard_normal((75, 3))
    np.testing.assert_allclose(lean.matmat(H), usual.matmat(H), rtol=0, atol=1e-12 * 75 * usual.scale())
    np.testing.assert_allclose(lean.diag(), usual.diag(), rtol=1e-14)
    assert lean.scale() == pytest.approx(usual.scale(), rel=1e-14)
    some = np.array([3, 70, 8])
    np.testing.assert_allclose(lean.block(some, slice(5, 20)), usual.block(some, slice(5, 20)), rtol=1e-13)
    assert lean.psd == usual.psd


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "params"), FORMULAS)
def test_products_leave_the_samples_as_they_are(name, params, dtype):
    X = positive(40, 6, dtype)
    kept = X.copy()
    fit_kernel(X, name, params).unprepared(X, TINY).operator().matmat(np.ones((40, 1)))
    np.testing.assert_array_equal(X, kept)


def test_samples_are_prepared_for_new_ones_once_the_fit_is_over():
    X = positive(40, 6, np.float32)
    kernel = fit_kernel(X, "rbf")
    later = kernel.unprepared(X, 2048)
    assert later.kept_mib == 0.0
    kept = later.after_fit()
    assert isinstance(kept, FormulaKernel)
    np.testing.assert_array_equal(kept.prepared, kernel.prepared)
    ones = np.ones((40, 1))
    np.testing.assert_array_equal(later.cross(X[:7]).matmat(ones), kernel.cross(X[:7]).matmat(ones))


@pytest.mark.parametrize("kernel", ["self_tuning", "laplacian", "precomputed", lambda X, Y: X @ Y.T])
def test_kernels_whose_samples_are_not_cheap_to_prepare_stay_as_they_are(kernel):
    X = positive(40, 40, np.float64)
    X = X + X.T
    fitted = fit_kernel(X, kernel)
    assert fitted.unprepared(X, 2048) is fitted


@pytest.mark.parametrize("count", [0, 1, 2, 5, 8])
def test_all_parts_meet_once_and_none_twice_in_a_round(count):
    met = rounds(count)
    together = Counter(pair for pairs in met for pair in pairs)
    assert together == Counter(combinations_with_replacement(range(count), 2))
    for pairs in met:
        parts = [part for pair in pairs for part in set(pair)]
        assert len(parts) == len(set(parts))


def test_products_are_the_same_on_any_number_of_threads(monkeypatch):
    X = positive(150, 400, np.float64)
    lean = LeanKernel(formulas.Gaussian(0.01, X.mean(axis=0)), X, 4.0)
    lean._tiles = Batches(size=16, at_once=8)  # ten parts
    H = np.random.default_rng(1).standard_normal((150, 5))
    products = []
    for count in (1, 2, 7):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        with threadpool_limits(2, user_api="blas"):
            products.append(lean.matmat(H))
    np.testing.assert_array_equal(products[1], products[0])
    np.testing.assert_array_equal(products[2], products[0])


@pytest.mark.parametrize("limit", [8, 64, 512])
@pytest.mark.parametrize("n_columns", [300, 1000, 5000])
def test_tiles_of_two_threads_fit_into_their_share(limit, n_columns):
    tiles = tiles_within(limit, n_columns)
    arrays = 2 * tiles.size * (n_columns + 2) + tiles.size**2
    assert tiles.at_once * arrays * 8 / 2**20 <= limit
    assert tiles.at_once >= 2
