"""Multi-view spectral clustering of samples that are absent from views: the solver beside its oracle, and its laws."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.observed_views import ObservedViews
from kernelweave.kernels.weighted_sum import composite
from kernelweave.solvers.spectral import masked_multi_view
from kernelweave.solvers.spectral.eigenvectors import spectrum
from kernelweave.solvers.spectral.masked_multi_view import (
    ObservedSpectrum,
    masked_multi_view_spectral,
    shares_in_common,
)
from kernelweave.solvers.spectral.multi_view_spectral import multi_view_spectral
from tests.kmeans.test_masked_multi_view import drawn_mask
from tests.reference import masked_multi_view as oracle
from tests.reference import multi_view
from tests.strategies import generators

cases = settings(max_examples=20, deadline=None)
FORMS = {"dense": DenseKernel, "graph": lambda K: GraphKernel(sp.csr_array(K))}
forms = pytest.mark.parametrize("form", FORMS)


def gaussian(X):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 4.0)


@st.composite
def problems(draw):
    """Draw kernels of several views, a mask and weights."""
    rng = draw(generators())
    n = draw(st.integers(12, 20))
    n_views = draw(st.integers(2, 3))
    y = rng.integers(3, size=n)
    kernels = [gaussian(rng.normal(size=(n, 2)) + 2.0 * rng.normal(size=(3, 2))[y]) for _ in range(n_views)]
    mask = drawn_mask(rng, n, n_views)
    for v in range(n_views):
        mask[rng.permutation(n)[:6], v] = True  # more than clusters
    return kernels, mask, draw(st.sampled_from([np.ones(n), rng.uniform(0.5, 2.0, size=n)]))


def observed(kernels, mask, make=DenseKernel):
    samples = tuple(np.flatnonzero(mask[:, v]) for v in range(len(kernels)))
    operators = tuple(make(K[np.ix_(there, there)]) for K, there in zip(kernels, samples, strict=True))
    return ObservedViews(operators, samples, len(mask))


def run(views, weights, p=2.0, by_degrees=False, **options):
    options = {"view_weights": np.full(views.n_views, 1.0 / views.n_views), "n_vectors": 3} | options
    spectrum_of = ObservedSpectrum(views, weights)
    totals = views.totals(weights)
    return masked_multi_view_spectral(spectrum_of, totals=totals, by_degrees=by_degrees, p=p, **options)


@forms
@cases
@given(problem=problems(), by_degrees=st.booleans())
def test_affinities_eigenvalues_and_scatters_equal_the_plain_ones(form, problem, by_degrees):
    kernels, mask, weights = problem
    result = run(observed(kernels, mask, FORMS[form]), weights, by_degrees=by_degrees)
    A, level = oracle.affinity(kernels, mask, weights, result.view_weights**2)
    np.testing.assert_allclose(result.pairs.affinity.dense(), A, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.pairs.level, level, rtol=1e-9)
    H = np.random.default_rng(0).normal(size=(len(mask), 2))
    np.testing.assert_allclose(result.pairs.affinity.times(H), A @ H, rtol=1e-9, atol=1e-10)
    values, Y = multi_view.leading(A, weights, 3)
    np.testing.assert_allclose(result.eigenvalues, values, rtol=1e-8)
    if values[2] - np.sort(np.linalg.eigvalsh(multi_view.weighted_matrix(A, weights)))[-4] > 1e-3:
        expected = oracle.relaxed_scatters(kernels, mask, weights, Y, by_degrees)
        np.testing.assert_allclose(result.view_scatters, expected, rtol=1e-6, atol=1e-9)


@cases
@given(problem=problems(), p=st.sampled_from([1.0, 1.5, 2.0, 8.0]))
def test_the_objective_never_rises_and_the_run_ends(problem, p):
    kernels, mask, weights = problem
    result = run(observed(kernels, mask), weights, p)
    assert (np.diff(result.history) <= 0).all()
    assert result.converged
    assert result.view_weights.sum() == pytest.approx(1.0)
    assert np.isfinite(result.embedding()).all()


@cases
@given(problem=problems(), p=st.sampled_from([1.5, 2.0, np.inf]), by_degrees=st.booleans())
def test_with_everybody_in_every_view_the_run_is_that_of_complete_views(problem, p, by_degrees):
    kernels, mask, weights = problem
    n_views = len(kernels)
    first = np.full(n_views, 1.0 / n_views)
    op = composite([DenseKernel(K) for K in kernels], first)
    totals = np.full(n_views, 3.0) if by_degrees else op.view_traces(weights)
    options = {"p": p, "tol": 1e-9, "max_iter": 500}
    expected = multi_view_spectral(spectrum(op, weights), totals, n_vectors=3, view_weights=first, **options)
    result = run(observed(kernels, np.ones_like(mask)), weights, by_degrees=by_degrees, **options)
    np.testing.assert_allclose(result.view_weights, expected.view_weights, rtol=1e-2)
    np.testing.assert_allclose(result.eigenvalues, expected.eigenvalues, rtol=2e-2)
    scale = 1.0 if by_degrees else weights.sum()
    np.testing.assert_allclose(scale * result.history[0], expected.history[0], rtol=1e-8)


@cases
@given(problem=problems(), seed=st.integers(0, 1000))
def test_the_order_of_samples_and_views_plays_no_part(problem, seed):
    kernels, mask, weights = problem
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(mask))
    order = rng.permutation(len(kernels))
    first = run(observed(kernels, mask), weights)
    shuffled = observed([kernels[v][np.ix_(rows, rows)] for v in order], mask[np.ix_(rows, order)])
    second = run(shuffled, weights[rows])
    np.testing.assert_allclose(second.view_weights, first.view_weights[order], rtol=1e-6)
    np.testing.assert_allclose(second.eigenvalues, first.eigenvalues, rtol=1e-7)


@cases
@given(problem=problems())
def test_a_weight_equals_repetition(problem):
    kernels, mask, _ = problem
    times = np.arange(len(mask)) % 2 + 1
    weighted = run(observed(kernels, mask), times.astype(float))
    again = [np.repeat(np.repeat(K, times, axis=0), times, axis=1) for K in kernels]
    plain = run(observed(again, np.repeat(mask, times, axis=0)), np.ones(times.sum()))
    np.testing.assert_allclose(plain.eigenvalues, weighted.eigenvalues, rtol=1e-7)
    np.testing.assert_allclose(plain.view_weights, weighted.view_weights, rtol=1e-6)
    np.testing.assert_allclose(plain.history, weighted.history, rtol=1e-7)


@forms
def test_products_give_the_eigenvectors_of_large_sums(form, monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    kernels = [gaussian(4.0 * rng.normal(size=(3, 2))[y] + 0.5 * rng.normal(size=(90, 2))) for _ in range(2)]
    views = observed(kernels, drawn_mask(rng, 90, 2, 0.3), FORMS[form])
    direct = run(views, np.ones(90))
    monkeypatch.setattr(masked_multi_view, "SMALL", 0)
    iterated = run(views, np.ones(90))
    np.testing.assert_allclose(iterated.eigenvalues, direct.eigenvalues, rtol=1e-6)
    np.testing.assert_allclose(iterated.view_weights, direct.view_weights, rtol=1e-4)
    assert iterated.residual < 1e-4


def test_shares_are_of_the_coefficients_of_common_views():
    patterns = np.array([[True, True, False], [False, True, True], [True, False, False]])
    shares = shares_in_common(patterns, patterns, np.array([1.0, 2.0, 5.0]))
    np.testing.assert_allclose(shares, np.array([[3, 2, 1], [2, 7, 0], [1, 0, 1]]) / 8.0)


def test_a_view_of_fewer_samples_than_vectors_keeps_the_run_finite():
    rng = np.random.default_rng(1)
    kernels = [gaussian(rng.normal(size=(12, 2))) for _ in range(2)]
    mask = np.ones((12, 2), dtype=bool)
    mask[2:, 1] = False
    result = run(observed(kernels, mask), np.ones(12), learned=False)
    assert np.isfinite(result.view_scatters).all()
    assert result.view_scatters[1] == pytest.approx(0.0, abs=1e-12)  # two samples, three vectors: nothing is left
