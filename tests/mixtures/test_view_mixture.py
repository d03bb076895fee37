"""The weighted multi-view mixture: against Algorithm 3.1 run to its end, its fixed points, laws and limits."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from kernelweave.kernels.divergences import DivergenceMatrix
from kernelweave.kernels.similarities import similarities
from kernelweave.solvers.mixtures.priors import solve_priors
from kernelweave.solvers.mixtures.view_mixture import log_of_sum, solve_view_mixture
from tests.reference import convex_mixture as oracle
from tests.strategies import generators, sample_weights, samples

cases = settings(max_examples=25, deadline=None)
SOLVERS = ("em", "newton", "auto")
solvers = pytest.mark.parametrize("solver", SOLVERS)


def squares(X):
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


def stored(D, beta, limit=2048):
    return similarities(DivergenceMatrix(np.asarray(D)), beta, np.arange(len(D)), limit)


def prepared(views, scale=1.0, limit=2048):
    """Return the similarities of views and the components the oracle takes, with beta_0 times ``scale`` in each."""
    per_view, components = [], []
    for X in views:
        D = squares(X)
        beta = scale * oracle.reference_beta(D) if D.any() else 1.0
        per_view.append(stored(D, beta, limit))
        components.append(oracle.components(D, beta))
    return per_view, components


def solve(per_view, shares=None, weights=None, normalizers=None, **options):
    n_views, n = len(per_view), per_view[0].n_columns
    return solve_view_mixture(
        per_view,
        oracle.uniform(n) if shares is None else shares,
        np.zeros(n_views) if normalizers is None else normalizers,
        view_weights=oracle.uniform(n_views) if weights is None else np.asarray(weights),
        **options,
    )


def grouped(seed, n=18, k=3, n_views=2, noise=0, spread=0.6):
    """Return views in which the same groups can be seen, then views of noise."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % k)
    views = [4 * rng.permutation(np.eye(k))[labels] + spread * rng.standard_normal((n, k)) for _ in range(n_views)]
    return views + [rng.standard_normal((n, k)) for _ in range(noise)], labels


@st.composite
def problems(draw, max_n=9, max_views=3):
    """Draw similarities of views, their components, and shares that are all above zero, as estimators pass them."""
    n = draw(st.integers(3, max_n))
    views = [draw(samples(min_n=n, max_n=n, n_features=2)) for _ in range(draw(st.integers(1, max_views)))]
    per_view, components = prepared(views, draw(st.sampled_from([0.3, 1.0, 3.0])), draw(st.sampled_from([2048, 1e-9])))
    weights = draw(sample_weights(n)) + 0.05
    return per_view, components, weights / weights.sum(), draw(generators())


def never_falls(history):
    assert (np.diff(history) >= -1e-10).all(), np.diff(history).min()


def is_distribution(values):
    assert (values >= 0).all()
    assert values.sum() == pytest.approx(1.0, abs=1e-9)


# --- laws ------------------------------------------------------------------------------------------------------------


@cases
@given(problem=problems(), solver=st.sampled_from(SOLVERS), tol=st.sampled_from([1e-3, 1e-6]))
def test_the_likelihood_never_falls_and_priors_and_weights_add_up_to_one(problem, solver, tol):
    per_view, components, shares, rng = problem
    first = rng.dirichlet(np.ones(len(per_view)))
    result = solve(per_view, shares, first, solver=solver, tol=tol, max_iter=15, inner_max_iter=60)
    never_falls(result.history)
    is_distribution(result.values)
    is_distribution(result.view_weights)
    assert result.view_weights.shape == (len(per_view),)
    ones = np.ones(len(per_view))
    start = oracle.weighted_likelihood(components, shares, oracle.uniform(len(shares)), first, ones)
    end = oracle.weighted_likelihood(components, shares, result.values, result.view_weights, ones)
    assert result.history[0] == pytest.approx(start, abs=1e-9)
    assert result.log_likelihood == result.history[-1] == pytest.approx(end, abs=1e-9)
    assert result.n_iter == len(result.history) - 1
    assert result.converged == (result.history[-1] - result.history[-2] <= tol)


@cases
@given(problem=problems())
def test_the_first_step_is_one_e_step_and_the_best_priors_for_it(problem):
    per_view, components, shares, rng = problem
    first, n = rng.dirichlet(np.ones(len(per_view))), len(shares)
    posteriors = oracle.view_posteriors(components, oracle.uniform(n), first, np.ones(len(per_view)))
    np.testing.assert_allclose(posteriors.sum(axis=0), 1.0)
    result = solve(per_view, shares, first, max_iter=1, inner_tol=1e-8, inner_max_iter=100)
    assert result.n_iter == 1
    np.testing.assert_allclose(result.view_weights, posteriors @ shares, rtol=1e-9)
    # The M-step raises sum_v sum_i P(z_i = v) P(x_i) log Q^v(x_i); the gap says by how much it might be missed.
    ratios = [row * shares / (f @ result.values) for row, f in zip(posteriors, components, strict=True)]
    gradient = np.sum([ratio @ f for ratio, f in zip(ratios, components, strict=True)], axis=0)
    np.testing.assert_allclose(result.gradient, gradient, rtol=1e-6)
    assert result.gap == pytest.approx(gradient.max() - 1.0, abs=1e-9)


@pytest.mark.parametrize("solver", ["newton", "auto"])
@pytest.mark.parametrize("seed", range(4))
def test_at_the_end_one_more_step_of_the_source_changes_nothing(seed, solver):
    per_view, components = prepared(grouped(seed, noise=seed % 2)[0], 3.0)
    shares = np.random.default_rng(seed).dirichlet(np.full(18, 5.0))
    result = solve(per_view, shares, solver=solver, tol=1e-12, inner_tol=1e-8, max_iter=3000)
    assert result.converged
    posteriors = oracle.view_posteriors(components, result.values, result.view_weights, np.ones(len(per_view)))
    np.testing.assert_allclose(posteriors @ shares, result.view_weights, atol=2e-5)  # (3.15)
    again = oracle.prior_update(components, shares, result.values, posteriors)  # (3.16)
    np.testing.assert_allclose(again, result.values, atol=2e-4)
    never_falls(result.history)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_views_and_samples_does_not_matter(seed):
    views, rng = grouped(seed, noise=1)[0], np.random.default_rng(seed)
    order, shares = rng.permutation(18), rng.dirichlet(np.full(18, 5.0))
    plain = solve(prepared(views, 3.0)[0], shares, tol=1e-9)
    mixed = solve(prepared([views[v][order] for v in (2, 0, 1)], 3.0)[0], shares[order], tol=1e-9)
    np.testing.assert_allclose(mixed.view_weights, plain.view_weights[[2, 0, 1]], atol=1e-4)
    np.testing.assert_allclose(mixed.values, plain.values[order], atol=1e-3)
    assert mixed.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-7)


def test_similarities_computed_again_at_every_pass_lead_to_the_same_end():
    views = grouped(0, noise=1)[0]
    one, other = (solve(prepared(views, limit=limit)[0], tol=1e-6) for limit in (2048, 1e-9))
    np.testing.assert_allclose(one.view_weights, other.view_weights, atol=1e-5)
    np.testing.assert_allclose(one.history, other.history, rtol=1e-7)


@pytest.mark.parametrize("weighted", [None, "views", "samples"])
@pytest.mark.parametrize("spread", [0.1, 30.0, 700.0])
def test_logarithms_of_sums_are_those_of_scipy(spread, weighted):
    rng = np.random.default_rng(0)
    for n_views in (1, 2, 5):
        logs = rng.uniform(-spread, spread, (n_views, 50))
        logs[:, :10] = logs[:1, :10]  # several are the largest
        logs[rng.random(logs.shape) < 0.2] = -np.inf
        weights = {None: None, "views": rng.random((n_views, 1)), "samples": rng.random((n_views, 50))}[weighted]
        if weights is not None:
            weights[1:][rng.random(weights[1:].shape) < 0.3] = 0.0
        before = logs.copy()
        np.testing.assert_allclose(log_of_sum(logs, weights), logsumexp(logs, axis=0, b=weights), rtol=1e-13)
        np.testing.assert_array_equal(logs, before)


# --- against Algorithm 3.1 -------------------------------------------------------------------------------------------


# On harder data the plain algorithm may stop where a prior that vanished in one step would have to come back later.
@pytest.mark.parametrize(
    ("seed", "scale"), [(0, 3.0), (1, 3.0), (3, 3.0), (4, 3.0), (6, 3.0), (8, 3.0), (8, 1.0), (9, 1.0)]
)
def test_on_easy_data_the_end_is_that_of_the_plain_algorithm_from_the_same_start(seed, scale):
    per_view, components = prepared(grouped(seed, n=10, k=2, noise=1)[0], scale)
    shares = np.random.default_rng(seed).dirichlet(np.full(10, 5.0))
    first = np.array([0.5, 0.2, 0.3]) if seed % 2 else oracle.uniform(3)
    priors, weights, path = oracle.weighted_em(components, shares, weights=first, outer=1e-9, inner=1e-6)
    result = solve(per_view, shares, first, tol=1e-9, inner_tol=1e-8, max_iter=3000)
    assert result.history[0] == pytest.approx(path[0])
    assert result.log_likelihood == pytest.approx(path[-1], abs=1e-5)
    np.testing.assert_allclose(result.view_weights, weights, atol=5e-3)
    assert set(oracle.exemplars(result.values, 2)) == set(oracle.exemplars(priors, 2))


@pytest.mark.parametrize("seed", [0, 3, 6])
def test_normalisers_enter_as_in_the_plain_algorithm(seed):
    per_view, components = prepared(grouped(seed, n=10, k=2)[0], 3.0)
    shares, factors = oracle.uniform(10), np.array([1.0, 0.9])
    _, weights, path = oracle.weighted_em(components, shares, normalizers=factors, outer=1e-9, inner=1e-6)
    result = solve(per_view, normalizers=np.log(factors), tol=1e-9, inner_tol=1e-8, max_iter=3000)
    assert result.history[0] == pytest.approx(path[0])
    assert result.log_likelihood == pytest.approx(path[-1], abs=1e-5)
    np.testing.assert_allclose(result.view_weights, weights, atol=5e-3)


@pytest.mark.parametrize("seed", [3, 6])
def test_with_em_inside_the_end_is_that_of_the_plain_algorithm_too(seed):
    per_view, components = prepared(grouped(seed, n=10, k=2)[0], 3.0)
    _, weights, path = oracle.weighted_em(components, oracle.uniform(10), outer=1e-5, inner=1e-4)
    result = solve(per_view, solver="em", tol=1e-5, inner_tol=1e-4, max_iter=200)
    assert result.log_likelihood == pytest.approx(path[-1], abs=1e-2)
    np.testing.assert_allclose(result.history[:4], path[:4], atol=1e-3)
    assert result.view_weights.argmax() == weights.argmax()


# --- special cases ---------------------------------------------------------------------------------------------------


@cases
@given(problem=problems(max_views=1))
def test_one_view_is_the_mixture_of_one_view(problem):
    per_view, _, shares, _ = problem
    result, alone = (
        solve(per_view, shares, tol=1e-9, inner_tol=1e-7),
        solve_priors(per_view[0], shares, tol=1e-7),
    )
    np.testing.assert_allclose(result.view_weights, [1.0])
    assert abs(result.log_likelihood - alone.log_likelihood) <= max(result.gap, alone.gap, 1e-9)


@solvers
def test_a_view_without_a_first_weight_never_gets_one(solver):
    tol = 1e-3 if solver == "em" else 1e-7
    per_view, _ = prepared([*grouped(1)[0], np.random.default_rng(0).standard_normal((18, 2))])
    with_it = solve(per_view, weights=[0.5, 0.5, 0.0], solver=solver, tol=tol)
    without = solve(per_view[:2], solver=solver, tol=tol)
    assert with_it.view_weights[2] == 0.0
    np.testing.assert_allclose(with_it.view_weights[:2], without.view_weights, atol=1e-5)
    np.testing.assert_allclose(with_it.history, without.history, atol=1e-8)
    only = solve(per_view, weights=[0.0, 1.0, 0.0], solver=solver, tol=tol)
    np.testing.assert_allclose(only.view_weights, [0.0, 1.0, 0.0])
    alone = solve_priors(per_view[1], oracle.uniform(18), tol=1e-7)
    assert only.log_likelihood == pytest.approx(alone.log_likelihood, abs=2e-3 if solver == "em" else 1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_a_view_of_noise_ends_with_little_weight(seed):
    per_view, _ = prepared(grouped(seed, n=60, noise=1)[0])
    result = solve(per_view, tol=1e-6)
    assert result.view_weights[2] < 0.1
    assert result.view_weights[:2].sum() > 0.9


def test_a_view_given_twice_shares_its_weight():
    X = grouped(2)[0][0]
    per_view, _ = prepared([X, X])
    twice, alone = solve(per_view, tol=1e-9), solve_priors(per_view[0], oracle.uniform(18))
    np.testing.assert_allclose(twice.view_weights, [0.5, 0.5], atol=1e-9)
    assert twice.log_likelihood == pytest.approx(alone.log_likelihood, abs=1e-6)
    uneven = solve(per_view, weights=[0.8, 0.2], tol=1e-9)  # nothing separates them: the first weights stay
    np.testing.assert_allclose(uneven.view_weights, [0.8, 0.2], atol=1e-9)


def test_first_view_weights_decide_between_views_that_disagree():
    one, other = grouped(5, n_views=1, spread=0.3)[0][0], grouped(6, n_views=1, spread=0.3)[0][0]
    per_view, _ = prepared([one, other])
    left, right = solve(per_view, weights=[0.95, 0.05]), solve(per_view, weights=[0.05, 0.95])
    assert left.view_weights[0] > 0.9
    assert right.view_weights[1] > 0.9


@pytest.mark.parametrize("shift", [-700.0, 3.0, 1e4])
def test_a_common_factor_of_all_densities_shifts_the_likelihood_alone(shift):
    per_view, _ = prepared(grouped(0, noise=1)[0])
    plain = solve(per_view, tol=1e-7)
    moved = solve(per_view, normalizers=np.full(3, shift), tol=1e-7)
    np.testing.assert_allclose(moved.view_weights, plain.view_weights, atol=1e-6)
    np.testing.assert_allclose(np.array(moved.history) - shift, plain.history, atol=1e-6)


def test_a_view_whose_density_is_made_small_loses_its_weight():
    per_view, _ = prepared(grouped(0)[0])
    result = solve(per_view, normalizers=np.array([0.0, -60.0]))
    assert result.view_weights[1] < 1e-6
    assert np.isfinite(result.history).all()


@solvers
@pytest.mark.parametrize("beta", [1e-6, 1e6])
def test_betas_of_any_size_leave_no_overflow_behind(solver, beta):
    views = grouped(3)[0]
    per_view = [stored(squares(X), beta * (v + 1)) for v, X in enumerate(views)]
    result = solve(per_view, solver=solver, max_iter=50, inner_max_iter=200)
    is_distribution(result.values)
    is_distribution(result.view_weights)
    assert np.isfinite(result.history).all()


@pytest.mark.parametrize("seed", [1, 13, 98, 205, 358])
def test_views_of_very_different_sharpness_and_uneven_shares_leave_no_overflow_behind(seed):
    # A row that almost no component reaches in one view, and that has next to no share in it.
    rng = np.random.default_rng(seed)
    n, n_views, k = (int(rng.integers(low, high)) for low, high in ((6, 25), (2, 4), (2, 4)))
    views, _ = grouped(
        seed, n=n, k=k, n_views=n_views, noise=int(rng.integers(0, 2)), spread=rng.choice([0.2, 0.6, 1.2])
    )
    per_view = [prepared([X], rng.choice([0.3, 1.0, 3.0, 30.0, 100.0]))[0][0] for X in views]
    result = solve(per_view, rng.dirichlet(np.full(n, rng.choice([0.3, 5.0]))), tol=1e-5, max_iter=200)
    is_distribution(result.values)
    is_distribution(result.view_weights)
    never_falls(result.history)


def test_samples_that_a_view_excludes_from_each_other_belong_to_other_views():
    D = np.full((8, 8), np.inf)
    np.fill_diagonal(D, 0.0)
    X = np.repeat([[0.0], [5.0]], 4, axis=0) + np.linspace(0, 0.3, 8)[:, None]
    result = solve([stored(D, 1.0), stored(squares(X), 1.0)], tol=1e-8)
    assert result.view_weights[1] > 0.9
    assert np.isfinite(result.log_likelihood)


def test_samples_without_similarity_to_the_rest_end_with_priors_of_their_own():
    X = np.concatenate([grouped(0, n_views=1)[0][0], [[1e3, 1e3, 1e3]]])
    per_view = [stored(squares(X), 1.0), stored(squares(X[:, :1]), 1.0)]
    result = solve(per_view, tol=1e-8)
    assert result.values[-1] == pytest.approx(1 / 19, abs=1e-3)


# --- where it ends ---------------------------------------------------------------------------------------------------


@solvers
def test_no_more_steps_are_taken_than_allowed(solver):
    per_view, _ = prepared(grouped(0, noise=1)[0])
    for most in (1, 2, 5):
        result = solve(per_view, solver=solver, tol=1e-15, max_iter=most)
        assert result.n_iter == most
        assert not result.converged


def test_a_deadline_in_the_past_returns_the_start():
    per_view, _ = prepared(grouped(0)[0])
    result = solve(per_view, weights=[0.3, 0.7], deadline=time.monotonic() - 1.0)
    assert result.n_iter == 0
    assert not result.converged
    np.testing.assert_array_equal(result.values, oracle.uniform(18))
    np.testing.assert_allclose(result.view_weights, [0.3, 0.7])


def test_a_deadline_ends_the_search_soon():
    per_view, _ = prepared(grouped(0, noise=1)[0])
    result = solve(
        per_view,
        tol=1e-15,
        deadline=time.monotonic() + 0.05,
        on_step=lambda value: time.sleep(0.03),
        max_iter=1000,
    )
    assert 1 <= result.n_iter <= 5
    never_falls(result.history)


def test_every_step_is_reported_with_its_likelihood():
    per_view, _ = prepared(grouped(0, noise=1)[0])
    reported = []
    result = solve(per_view, on_step=reported.append)
    assert tuple(reported) == result.history[1:]


def test_a_smaller_tolerance_takes_more_steps_and_ends_no_lower():
    per_view, _ = prepared(grouped(0, noise=1)[0])
    loose, tight = solve(per_view, tol=1e-2), solve(per_view, tol=1e-9)
    assert loose.n_iter < tight.n_iter
    assert loose.log_likelihood <= tight.log_likelihood


def test_what_is_given_is_left_as_it_was():
    per_view, _ = prepared(grouped(0)[0])
    shares, weights, factors = oracle.uniform(18), np.array([0.3, 0.7]), np.array([0.1, 0.2])
    kept = shares.copy(), weights.copy(), factors.copy()
    solve_view_mixture(per_view, shares, factors, view_weights=weights)
    for now, before in zip((shares, weights, factors), kept, strict=True):
        np.testing.assert_array_equal(now, before)
