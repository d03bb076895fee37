"""Convex mixtures of views that lack samples: beside sums written as loops, laws, and cases worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.kernels.divergences import DivergenceMatrix
from kernelweave.kernels.similarities import ObservedSimilarities, StackedSimilarities, similarities
from kernelweave.solvers.mixtures.priors import solve_priors
from kernelweave.solvers.mixtures.view_mixture import solve_view_mixture
from tests.reference import convex_mixture as complete
from tests.reference import observed_mixture as oracle
from tests.strategies import generators

SOLVERS = ("em", "newton", "auto")
cases = settings(max_examples=6, deadline=None)


def squares(X):
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


def among(D, beta, there, limit=2048):
    """Return the similarities of a view that has these samples."""
    known = similarities(DivergenceMatrix(D[np.ix_(there, there)]), beta, np.arange(len(there)), limit)
    return ObservedSimilarities(known, there, len(D))


def prepared(features, mask, scale=1.0, limit=2048):
    """Return the similarities of views that lack samples, and the components that the oracle takes."""
    per_view, components = [], []
    for v, X in enumerate(features):
        there = np.flatnonzero(mask[:, v])
        beta = scale * complete.reference_beta(squares(X[there]))
        per_view.append(among(squares(X), beta, there, limit))
        components.append(complete.components(squares(X), beta))
    return per_view, components


def drawn(rng, n, n_views, rate=0.4):
    """Return grouped features, who is where (two views have everybody in common at least twice), and shares."""
    groups = rng.integers(3, size=n)
    features = [3 * rng.standard_normal((3, 2))[groups] + rng.standard_normal((n, 2)) for _ in range(n_views)]
    mask = rng.random((n, n_views)) >= rate
    mask[~mask.any(axis=1), 0] = True
    mask[:2] = True
    return features, mask, rng.dirichlet(np.full(n, 3.0))


@st.composite
def problems(draw, max_n=9):
    rng = draw(generators())
    n = draw(st.integers(4, max_n))
    features, mask, shares = drawn(rng, n, draw(st.integers(2, 3)), draw(st.sampled_from([0.2, 0.5])))
    scale, limit = draw(st.sampled_from([0.5, 3.0])), draw(st.sampled_from([2048, 1e-9]))
    return *prepared(features, mask, scale, limit), mask, shares, rng


def solve(per_view, shares, mask, weights=None, **options):
    n_views = len(per_view)
    first = complete.uniform(n_views) if weights is None else np.asarray(weights)
    return solve_view_mixture(per_view, shares, np.zeros(n_views), view_weights=first, observed=mask, **options)


def fixed(per_view, shares, mask, weights, **options):
    rows = (np.outer(weights, shares) * mask.T).ravel()
    return solve_priors(StackedSimilarities(per_view), rows / rows.sum(), **options)


def never_falls(history):
    assert (np.diff(history) >= -1e-10).all(), np.diff(history).min()


# --- similarities ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [2048, 1e-9])
def test_rows_and_columns_of_absent_samples_are_zero(limit):
    rng = np.random.default_rng(0)
    D = squares(rng.standard_normal((7, 2)))
    there = np.array([0, 2, 3, 6])
    S = among(D, 1.0, there, limit)
    plain = np.zeros((7, 7))
    plain[np.ix_(there, there)] = np.exp(-D[np.ix_(there, there)])
    q, ratios, everyone = rng.dirichlet(np.ones(7)), rng.random(7), np.arange(7)
    np.testing.assert_allclose(S.product(q), plain @ q)
    np.testing.assert_allclose(S.transposed_product(ratios), plain.T @ ratios)
    np.testing.assert_array_equal(S.offsets, 0.0)
    for start, stop in ((0, 7), (1, 2), (2, 5), (4, 6)):
        for columns in (everyone, np.array([5, 3]), np.array([1, 4])):
            np.testing.assert_allclose(S.block(start, stop, columns), plain[start:stop][:, columns])
    np.testing.assert_array_equal(S.component_views, [1, 0, 1, 1, 0, 0, 1])
    both = StackedSimilarities([S, among(D, 2.0, everyone, limit)])
    np.testing.assert_array_equal(both.component_views, [2, 1, 2, 2, 1, 1, 2])
    whole = np.vstack([plain, np.exp(-2.0 * D)])
    chosen = np.array([0, 1, 6])
    np.testing.assert_allclose(both.gram(chosen, np.ones(14)), (whole.T @ whole)[np.ix_(chosen, chosen)])
    nearest = (plain + np.exp(-2.0 * D))[:, chosen].argmax(axis=1)
    np.testing.assert_array_equal(both.most_similar(chosen), nearest)


# --- fixed view weights ----------------------------------------------------------------------------------------------


@cases
@given(problem=problems(), solver=st.sampled_from(SOLVERS))
def test_fixed_weights_have_the_plain_likelihood_and_a_gap_that_bounds_it(problem, solver):
    per_view, f, mask, shares, rng = problem
    weights = rng.dirichlet(np.ones(len(per_view)))
    result = fixed(per_view, shares, mask, weights, solver=solver, max_iter=100)
    never_falls(result.history)
    uniform = complete.uniform(len(shares))
    assert result.history[0] == pytest.approx(oracle.fixed_likelihood(f, mask, shares, uniform, weights))
    assert result.log_likelihood == pytest.approx(oracle.fixed_likelihood(f, mask, shares, result.values, weights))
    gradient = oracle.fixed_gradient(f, mask, shares, result.values, weights)
    np.testing.assert_allclose(result.gradient, gradient, rtol=1e-6)
    assert result.gap == pytest.approx(result.gradient.max() - 1.0)
    assert result.converged or solver == "em"
    for other in rng.dirichlet(np.ones(len(shares)), 5):
        assert oracle.fixed_likelihood(f, mask, shares, other, weights) <= result.log_likelihood + result.gap + 1e-9


def test_one_view_is_the_mixture_of_the_samples_it_has():
    features, mask, shares = drawn(np.random.default_rng(3), 20, 2)
    per_view, _ = prepared(features, mask)
    there = np.flatnonzero(mask[:, 1])
    X = features[1][there]
    S = similarities(DivergenceMatrix(squares(X)), complete.reference_beta(squares(X)), np.arange(len(X)))
    alone = solve_priors(S, shares[there] / shares[there].sum())
    result = fixed(per_view, shares, mask, np.array([0.0, 1.0]))
    np.testing.assert_allclose(result.values[there], alone.values, atol=1e-7)
    assert result.values.sum() == pytest.approx(result.values[there].sum())
    assert result.log_likelihood == pytest.approx(alone.log_likelihood)


# --- learned view weights --------------------------------------------------------------------------------------------


@cases
@given(problem=problems(), solver=st.sampled_from(SOLVERS))
def test_the_likelihood_never_falls_and_is_that_of_the_formula(problem, solver):
    per_view, f, mask, shares, rng = problem
    first = rng.dirichlet(np.ones(len(per_view)))
    result = solve(per_view, shares, mask, first, solver=solver, tol=1e-6, max_iter=12, inner_max_iter=60)
    never_falls(result.history)
    for values in (result.values, result.view_weights):
        assert (values >= 0).all()
        assert values.sum() == pytest.approx(1.0)
    start = oracle.likelihood(f, mask, shares, complete.uniform(len(shares)), first)
    assert result.history[0] == pytest.approx(start)
    end = oracle.likelihood(f, mask, shares, result.values, result.view_weights)
    assert result.log_likelihood == pytest.approx(end)


@cases
@given(problem=problems())
def test_a_step_takes_the_best_view_weights_and_the_best_priors(problem):
    per_view, f, mask, shares, rng = problem
    first, uniform = rng.dirichlet(np.full(len(per_view), 3.0)), complete.uniform(len(shares))
    result = solve(per_view, shares, mask, first, max_iter=1, inner_tol=1e-8, inner_max_iter=200)
    belongs = oracle.view_posteriors(f, mask, uniform, first)
    # No step of the source of these weights moves them, and no other weights are better.
    again = oracle.weight_update(mask, shares, belongs, result.view_weights)
    np.testing.assert_allclose(again, result.view_weights, atol=1e-4)
    best = oracle.weight_value(mask, shares, belongs, result.view_weights)
    for other in [first, *rng.dirichlet(np.ones(len(first)), 5)]:
        assert oracle.weight_value(mask, shares, belongs, other) <= best + 1e-6
    ascent = oracle.prior_update(f, mask, shares, result.values, belongs)
    np.testing.assert_allclose(result.gradient * result.values, ascent, atol=1e-7)
    assert result.gap == pytest.approx(result.gradient.max() - 1.0, abs=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_at_the_end_one_more_plain_step_raises_next_to_nothing(seed):
    features, mask, shares = drawn(np.random.default_rng(seed), 14, 3)
    per_view, f = prepared(features, mask, 3.0)
    result = solve(per_view, shares, mask, tol=1e-6, inner_tol=1e-8)
    assert result.converged
    belongs = oracle.view_posteriors(f, mask, result.values, result.view_weights)
    weights = oracle.weight_update(mask, shares, belongs, result.view_weights)
    priors = oracle.prior_update(f, mask, shares, result.values, belongs)
    gain = oracle.likelihood(f, mask, shares, priors, weights) - result.log_likelihood
    assert -1e-9 <= gain <= 1e-6
    np.testing.assert_allclose(weights, result.view_weights, atol=1e-3)
    np.testing.assert_allclose(priors, result.values, atol=1e-3)


@cases
@given(problem=problems())
def test_with_everybody_in_every_view_it_is_the_mixture_of_complete_views(problem):
    _, f, mask, shares, rng = problem
    everywhere = np.ones_like(mask)
    n = len(shares)
    plain = [similarities(DivergenceMatrix(-np.log(components)), 1.0, np.arange(n)) for components in f]
    embedded = [ObservedSimilarities(S, np.arange(n), n) for S in plain]
    first = rng.dirichlet(np.ones(len(f)))
    options = {"tol": 1e-5, "max_iter": 30}
    result = solve(embedded, shares, everywhere, first, **options)
    expected = solve_view_mixture(plain, shares, np.zeros(len(f)), view_weights=first, **options)
    np.testing.assert_allclose(result.history, expected.history, atol=1e-9)
    np.testing.assert_allclose(result.view_weights, expected.view_weights, atol=1e-8)
    np.testing.assert_allclose(result.values, expected.values, atol=1e-7)


@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_samples_and_views_plays_no_part(seed):
    rng = np.random.default_rng(seed)
    features, mask, shares = drawn(rng, 14, 3)
    rows, order = rng.permutation(14), rng.permutation(3)
    one = solve(prepared(features, mask)[0], shares, mask, tol=1e-6)
    mixed = [features[v][rows] for v in order]
    other = solve(prepared(mixed, mask[np.ix_(rows, order)])[0], shares[rows], mask[np.ix_(rows, order)], tol=1e-6)
    np.testing.assert_allclose(other.view_weights, one.view_weights[order], atol=1e-4)
    assert other.log_likelihood == pytest.approx(one.log_likelihood, abs=1e-5)


# --- worked out by hand ----------------------------------------------------------------------------------------------


def test_a_rare_view_keeps_its_weight_where_all_views_are_as_good():
    # Every sample is its own component: Q_v is the prior of the sample in all its views, and no view explains more.
    D = 1e6 * (1.0 - np.eye(8))
    mask = np.ones((8, 2), dtype=bool)
    mask[2:, 1] = False
    mask[7] = [False, True]
    per_view = [among(D, 1.0, np.flatnonzero(mask[:, v])) for v in range(2)]
    result = solve(per_view, complete.uniform(8), mask, [0.7, 0.3], tol=1e-9)
    np.testing.assert_allclose(result.view_weights, [0.7, 0.3], atol=1e-9)
    assert result.log_likelihood == pytest.approx(np.log(1 / 8))


def test_samples_in_one_view_alone_say_nothing_about_the_weights():
    # Two samples in both views, 1 apart in the first and 0 apart in the second: Q_0 is (1 + e^-1) / 2 of what Q_1 is.
    # The third, in the first view alone and far from all, is explained by itself, whatever the weights.
    D = np.array([[0.0, 1.0, 1e6], [1.0, 0.0, 1e6], [1e6, 1e6, 0.0]])
    mask = np.array([[1, 1], [1, 1], [1, 0]], dtype=bool)
    per_view = [among(D, 1.0, np.arange(3)), among(0.0 * D, 1.0, np.array([0, 1]))]
    result = solve(per_view, complete.uniform(3), mask, [0.8, 0.2], max_iter=1)
    smaller = 0.8 * (1 + np.exp(-1)) / 2
    np.testing.assert_allclose(result.view_weights, np.array([smaller, 0.2]) / (smaller + 0.2), atol=1e-9)
    np.testing.assert_allclose(result.values, [1 / 3, 1 / 3, 1 / 3], atol=1e-6)


def test_samples_of_next_to_no_share_leave_the_likelihood_finite():
    # Sample 3 is in the second view alone, where nothing but itself explains it, and its prior is not sought.
    D = 1e6 * (1.0 - np.eye(4))
    mask = np.array([[1, 1], [1, 1], [1, 0], [0, 1]], dtype=bool)
    shares = np.array([1.0, 1.0, 1.0, 1e-18]) / 3.0
    result = solve([among(D, 1.0, np.flatnonzero(mask[:, v])) for v in range(2)], shares, mask, tol=1e-9)
    assert result.values[3] < 1e-12
    assert result.log_likelihood == pytest.approx(np.log(1 / 3))
    never_falls(result.history)
    np.testing.assert_allclose(result.view_weights, [0.5, 0.5])
