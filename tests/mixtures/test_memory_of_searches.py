"""Searches for exemplars, and answers of mixtures to new samples, keep to a limit of memory."""

import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from kernelweave import ConvexMixture
from kernelweave.foundation.errors import ParameterError
from kernelweave.kernels import divergences
from kernelweave.kernels.divergences import BregmanDivergence
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.similarities import BlockwiseSimilarities, graph_similarities
from kernelweave.solvers.mixtures.nonnegative import minimize_nonnegative


def peak_of(work):
    """Return the MiB that were allocated at most, beside what was there before, and what the work returned."""
    tracemalloc.start()
    result = work()
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return peak, result


def test_vectors_of_small_tiles_are_added_up_before_they_are_a_matrix():
    n = 1500
    X = np.random.default_rng(0).standard_normal((n, 3))
    few = BlockwiseSimilarities(BregmanDivergence("sqeuclidean", X), 0.5, np.arange(n), 0.1)
    ratios = np.random.default_rng(1).uniform(size=n)
    peak, totals = peak_of(lambda: few.transposed_product(ratios))
    assert peak < 0.1 * n * n * 8 / 2**20
    in_order = np.zeros(n)
    for row in range(n):
        in_order += ratios[row : row + 1] @ few.block(row, row + 1, np.arange(n))
    np.testing.assert_array_equal(totals, in_order)


def test_a_graph_bounds_its_matrices_by_the_limit():
    A = sp.csr_array(sp.eye_array(3000))
    limited = graph_similarities(GraphKernel(A), 1.0, np.arange(3000), 20.0)
    assert 2 * limited.largest_support**2 * 8 <= 20.0 * 2**20
    assert graph_similarities(GraphKernel(A), 1.0, np.arange(3000), 2048.0).largest_support >= 4000
    peak, _ = peak_of(lambda: limited.gram(np.arange(1000), np.ones(3000)))
    assert peak <= 1.15 * 20


def test_the_nonnegative_minimum_takes_one_matrix_beside_its_own():
    n = 700
    R = np.random.default_rng(0).standard_normal((n, n + 50))
    G = np.asfortranarray(R @ R.T)
    c = np.random.default_rng(1).standard_normal(n)
    usual = minimize_nonnegative(G, c, np.zeros(n))
    peak, x = peak_of(lambda: minimize_nonnegative(G, c, np.zeros(n), overwrite=True))
    np.testing.assert_array_equal(x, usual)
    assert peak <= 1.5 * n * n * 8 / 2**20


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score"])
def test_answers_to_new_samples_are_found_some_rows_at_a_time(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2))
    model = ConvexMixture(5, beta=300.0, max_iter=30, tol=1e-2).fit(X)
    new = rng.standard_normal((4000, 2))
    whole = getattr(model, method)(new)
    model.set_params(memory_limit=4)
    peak, pieces = peak_of(lambda: getattr(model, method)(new))
    assert peak <= 1.15 * (4 + new.nbytes / 2**20)
    np.testing.assert_allclose(pieces, whole, rtol=1e-9, atol=1e-12)


def test_logarithms_of_all_samples_are_not_held_together():
    X = (np.random.default_rng(0).uniform(size=(8000, 60)) < 0.5) * 0.8 + 0.1
    peak, divergence = peak_of(lambda: BregmanDivergence("bernoulli", X))
    assert peak <= 2.2 * X.nbytes / 2**20  # what products need, and a few rows
    rows = slice(5000, 5010)
    np.testing.assert_array_equal(BregmanDivergence("bernoulli", X[rows])._a, divergence._a[rows])
    np.testing.assert_array_equal(BregmanDivergence("bernoulli", X[rows])._g, divergence._g[rows])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("divergence", "smoothing", "dtype", "limit"),
    [("sqeuclidean", 0.0, np.float32, 6), ("sqeuclidean", 0.0, np.float64, 6), ("bernoulli", 0.1, np.float64, 9)],
)
def test_tables_of_wide_samples_are_made_once(divergence, smoothing, dtype, limit, monkeypatch):
    monkeypatch.setattr(divergences, "PIECE_ENTRIES", 2**14)
    n = 900
    X = np.random.default_rng(0).standard_normal((n, 400))  # 2.7 MiB in double precision, and so are components
    X[np.arange(n), np.arange(n) % 3] += 30.0
    X = (X > 0).astype(dtype) if divergence == "bernoulli" else X.astype(dtype)
    options = {"divergence": divergence, "smoothing": smoothing, "max_iter": 2, "n_clusters": 3}
    ConvexMixture(**options).fit(X[:60])
    given = X.nbytes / 2**20
    model = ConvexMixture(memory_limit=limit, **options)
    peak, _ = peak_of(lambda: model.fit(X))
    assert peak <= 0.15 * given + 1.15 * limit
    ample = ConvexMixture(**options).fit(X)
    np.testing.assert_allclose(model.objective_, ample.objective_, rtol=1e-9)
    np.testing.assert_array_equal(model.labels_, ample.labels_)
    peak, labels = peak_of(lambda: model.predict(X))
    assert peak <= 0.15 * given + 1.15 * limit
    np.testing.assert_array_equal(labels, model.labels_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_tables_that_do_not_fit_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(divergences, "PIECE_ENTRIES", 2**12)
    X = np.random.default_rng(0).standard_normal((900, 500)).astype(np.float32)
    model = ConvexMixture(3, memory_limit=2, max_iter=1)

    def refused():
        message = r"memory_limit=2\. Raise it to 6.87, or .*: 262 samples would fit"
        with pytest.raises(ParameterError, match=message) as error:
            model.fit(X)
        return int(re.search(r"([\d,]+) samples would fit", str(error.value)).group(1))

    peak, fitting = peak_of(refused)
    assert peak < 0.3
    peak, _ = peak_of(lambda: model.fit(X[:fitting]))
    assert peak <= 0.15 * fitting * 2000 / 2**20 + 1.15 * 2
