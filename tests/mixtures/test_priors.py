"""Priors of convex mixtures: against plain EM and a general solver, with the certificate, laws and limits of both."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.divergences import DivergenceMatrix, KernelDivergence
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.similarities import StackedSimilarities, graph_similarities, similarities
from kernelweave.solvers.mixtures import nonnegative, priors
from kernelweave.solvers.mixtures.nonnegative import minimize_nonnegative
from kernelweave.solvers.mixtures.priors import EM_STEPS, STEADY_STEPS, solve_priors
from tests.reference import convex_mixture as oracle
from tests.reference import graph_cuts
from tests.strategies import generators, sample_weights, samples

cases = settings(max_examples=30, deadline=None)
SOLVERS = ("em", "newton", "auto")
EXACT = 1e-7
# More steps than second-order steps should ever need.
MOST = 400
solvers = pytest.mark.parametrize("solver", SOLVERS)
both = pytest.mark.parametrize("solver", ["em", "newton"])


def squares(X):
    return ((X[:, None] - X[None]) ** 2).sum(axis=2)


def stored(D, beta, limit=2048):
    return similarities(DivergenceMatrix(np.asarray(D)), beta, np.arange(len(D)), limit)


def uneven(rng, n):
    """Return divergences that are not symmetric, none of them zero but on the diagonal, some infinite."""
    D = rng.gamma(1.0, 2.0, (n, n))
    D[rng.random((n, n)) < 0.3] = np.inf
    np.fill_diagonal(D, 0.0)
    return D


def first_beta(D, scale):
    finite = np.where(np.isfinite(D), D, 0.0)
    return scale * oracle.reference_beta(finite) if finite.any() else scale


@st.composite
def problems(draw, max_n=12, max_views=3, scales=(0.03, 0.3, 1.0, 3.0, 30.0), weighted=True):
    """Draw similarities in any storage, the row weights, and the same as the oracle takes it: components and shares.

    Views have equal weights; some samples have no weight but stay as components.
    """
    n, n_views = draw(st.integers(2, max_n)), draw(st.integers(1, max_views))
    views, components = [], []
    for _ in range(n_views):
        if draw(st.integers(0, 3)) == 0:
            D = uneven(draw(generators()), n)
        else:
            D = squares(draw(samples(min_n=n, max_n=n, n_features=2)))
        beta = first_beta(D, draw(st.sampled_from(scales)))
        views.append(stored(D, beta, draw(st.sampled_from([2048, 1e-9]))))
        components.append(oracle.components(D, beta))
    weights = draw(sample_weights(n)) if weighted else np.ones(n)
    shares = weights / weights.sum()
    S = views[0] if n_views == 1 else StackedSimilarities(views)
    return S, np.tile(shares, n_views) / n_views, components, shares


def blobs(seed, n=30, k=3, spread=0.7):
    rng = np.random.default_rng(seed)
    return rng.uniform(-4, 4, (k, 2))[rng.integers(k, size=n)] + spread * rng.standard_normal((n, 2))


def of_samples(X, scale=1.0, weights=None, limit=2048):
    """Return the similarities of samples with beta_0 times ``scale``, and their shares."""
    D, weights = squares(X), np.ones(len(X)) if weights is None else weights
    return stored(D, scale * oracle.reference_beta(D), limit), weights / weights.sum()


def value_at(S, rows, priors):
    """Return what the solver says of priors it may not change."""
    return solve_priors(S, rows, start=np.asarray(priors, dtype=float), max_iter=0)


def exact(S, rows):
    """Return the solution from a start that is given, to which second-order steps are applied at once."""
    return solve_priors(S, rows, solver="newton", start=oracle.uniform(S.n_columns), tol=EXACT, max_iter=MOST)


def never_falls(history):
    assert (np.diff(history) >= -1e-12).all(), np.diff(history).min()


def is_distribution(values):
    assert (values >= 0).all()
    assert values.sum() == pytest.approx(1.0, abs=1e-12)


# --- against plain EM and a general solver ---------------------------------------------------------------------------


@cases
@given(problem=problems(), steps=st.integers(0, 9))
def test_the_first_steps_are_those_of_the_plain_update(problem, steps):
    S, rows, components, shares = problem
    expected, path = oracle.em(components, shares, steps=steps)
    for solver in SOLVERS:
        result = solve_priors(S, rows, solver=solver, tol=-1.0, max_iter=steps)
        np.testing.assert_allclose(result.values, expected, rtol=1e-8, atol=1e-14)
        np.testing.assert_allclose(result.history, path, rtol=1e-9, atol=1e-10)
        assert result.n_iter == steps
        assert not result.converged


@cases
@given(problem=problems(max_n=8))
def test_the_likelihood_is_that_a_general_solver_ends_at(problem):
    S, rows, components, shares = problem
    best = oracle.largest_likelihood(components, shares)
    for solver in ("newton", "auto"):
        result = solve_priors(S, rows, solver=solver, tol=1e-9, max_iter=MOST)
        assert -1e-8 - result.gap <= result.log_likelihood - best <= 1e-6  # the other one may end early
        assert result.log_likelihood == pytest.approx(oracle.likelihood(components, shares, result.values), abs=1e-9)


@cases
@given(problem=problems(max_n=8), rng=generators(), steps=st.sampled_from([0, 1, 5, 30]))
def test_the_gap_bounds_what_is_missing_wherever_the_search_stands(problem, rng, steps):
    S, rows, components, shares = problem
    best = max(oracle.largest_likelihood(components, shares), exact(S, rows).log_likelihood)
    start = rng.dirichlet(np.full(S.n_columns, 0.5)) + 1e-6
    for solver in SOLVERS:
        for first in (None, start / start.sum()):
            result = solve_priors(S, rows, solver=solver, start=first, max_iter=steps, tol=1e-12)
            assert best - result.log_likelihood <= result.gap + 1e-10
            assert result.gap == pytest.approx(result.gradient.max() - 1.0)


@cases
@given(problem=problems(max_n=10))
def test_em_newton_and_auto_end_at_the_same_likelihood(problem):
    S, rows, _, _ = problem
    # EM crawls where one component wins; what it lacks is what it says.
    runs = [solve_priors(S, rows, solver=solver, tol=1e-8, max_iter=MOST) for solver in SOLVERS]
    runs.append(exact(S, rows))
    best = max(run.log_likelihood for run in runs)
    for run in runs:
        assert best - run.log_likelihood <= max(1e-8, run.gap)


def mixed_problem(seed):
    """Return similarities of one to three views, some of them uneven or of few distinct samples, and row weights."""
    rng = np.random.default_rng(seed)
    n, n_views, views = int(rng.integers(2, 13)), int(rng.integers(1, 4)), []
    for _ in range(n_views):
        D = squares(rng.standard_normal((n, 2)))
        if rng.random() < 0.3:
            D = uneven(rng, n)
        elif rng.random() < 0.2:
            D = squares(rng.integers(-1, 2, (n, 2)))
        views.append(stored(D, first_beta(D, rng.choice([0.03, 0.3, 1.0, 3.0, 30.0]))))
    weights = np.ones(n) if rng.random() < 0.4 else rng.random(n) * (rng.random(n) < 0.7)
    weights = weights if weights.any() else np.ones(n)
    return StackedSimilarities(views), np.tile(weights / weights.sum(), n_views) / n_views, rng


def few_steps(S, rows, **options):
    """Return whether second-order steps settle a problem in a hundred steps, with those of EM before them."""
    return solve_priors(S, rows, solver="newton", tol=1e-7, max_iter=100, **options).converged


def test_second_order_steps_settle_small_problems_of_every_kind_in_few_steps():
    unsettled = []
    for seed in range(300):
        S, rows, _ = mixed_problem(seed)
        unsettled += [seed] * (not few_steps(S, rows))
    assert unsettled == []


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0, 10.0])
def test_second_order_steps_settle_views_that_disagree_in_few_steps(scale):
    unsettled = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        weights = rng.uniform(0.1, 3.0, 60)
        weights[: 20 * (seed % 2)] = 0.0
        data = [blobs(seed, n=60, k=4), rng.standard_normal((60, 2)), rng.standard_normal((60, 2))]
        S = StackedSimilarities([of_samples(X, scale)[0] for X in data])
        unsettled += [seed] * (not few_steps(S, np.tile(weights / weights.sum(), 3) / 3))
    assert unsettled == []


def test_second_order_steps_settle_a_problem_from_any_start_in_few_steps():
    # A step may leave a row with next to nothing; the steps after it must find the way back.
    unsettled = []
    for seed in [*range(100), 509, 534, 1031, 1333, 1404, 1574, 1752, 1783, 2659, 3250]:
        S, rows, rng = mixed_problem(seed)
        start = rng.dirichlet(np.full(S.n_columns, rng.choice([0.05, 0.5, 5.0])))
        if S.product(start)[rows > 0].min() < 0.01:
            start = 0.9 * start + 0.1 / S.n_columns
        unsettled += [seed] * (not few_steps(S, rows, start=start))
    assert unsettled == []


@pytest.mark.parametrize("scale", [1.0, 4.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_where_em_arrives_it_arrives_at_the_priors_of_newton(seed, scale):
    S, shares = of_samples(blobs(seed), scale)
    plain = solve_priors(S, shares, solver="em", tol=1e-8, max_iter=40_000)
    second = exact(S, shares)
    assert plain.converged
    assert second.converged
    assert abs(plain.log_likelihood - second.log_likelihood) <= 1e-8
    np.testing.assert_allclose(plain.values, second.values, atol=0.02)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", range(3))
def test_similarities_computed_again_at_every_pass_take_the_same_steps(seed, solver):
    X = blobs(seed)
    one, other = (
        solve_priors(of_samples(X, limit=limit)[0], np.full(30, 1 / 30), solver=solver, max_iter=60)
        for limit in (2048, 1e-9)
    )
    np.testing.assert_allclose(one.history, other.history, rtol=1e-9)
    np.testing.assert_allclose(one.values, other.values, atol=1e-6)


@cases
@given(A=graph_cuts.graphs(max_n=12), beta=st.floats(0.01, 3.0), data=st.data())
def test_on_a_graph_the_likelihood_is_that_of_all_pairs(A, beta, data):
    weights = data.draw(sample_weights(len(A)))
    shares, everyone = weights / weights.sum(), np.arange(len(A))
    edges = graph_similarities(GraphKernel(sp.csr_array(A)), beta, everyone)
    pairs = similarities(KernelDivergence(DenseKernel(A)), beta, everyone)
    for solver in SOLVERS:
        one, other = (solve_priors(S, shares, solver=solver, tol=1e-9, max_iter=MOST) for S in (edges, pairs))
        assert abs(one.log_likelihood - other.log_likelihood) <= max(one.gap, other.gap, 1e-9)
        assert other.gap == pytest.approx(one.gap, abs=1e-5)
        never_falls(one.history)


# --- laws ------------------------------------------------------------------------------------------------------------


@cases
@given(problem=problems(max_n=14), solver=st.sampled_from(SOLVERS), tol=st.sampled_from([1e-3, 1e-6, 1e-10]))
def test_the_likelihood_never_falls_and_priors_add_up_to_one(problem, solver, tol):
    S, rows, _, _ = problem
    result = solve_priors(S, rows, solver=solver, tol=tol, max_iter=120)
    never_falls(result.history)
    is_distribution(result.values)
    assert result.log_likelihood == result.history[-1]
    assert result.n_iter == len(result.history) - 1 <= 120
    assert result.converged == (result.gap <= tol)
    np.testing.assert_allclose(result.mixture, S.product(result.values), rtol=1e-12)


@cases
@given(problem=problems(), rng=generators())
def test_the_gradient_is_that_of_finite_differences_and_averages_to_one(problem, rng):
    S, rows, components, shares = problem
    priors = rng.dirichlet(np.ones(S.n_columns)) + 1e-3
    priors /= priors.sum()
    result = value_at(S, rows, priors)
    np.testing.assert_array_equal(result.values, priors)
    assert result.n_iter == 0
    assert result.values @ result.gradient == pytest.approx(1.0)
    np.testing.assert_allclose(result.gradient, oracle.gradient(components, shares, priors), rtol=1e-8)
    step = 1e-7
    for j in range(S.n_columns):
        nudge = step * np.eye(S.n_columns)[j]
        up, down = (oracle.likelihood(components, shares, priors + sign * nudge) for sign in (1, -1))
        assert result.gradient[j] == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-5)


@cases
@given(problem=problems())
def test_no_prior_worth_mentioning_has_a_gradient_far_below_one_where_the_gap_is_small(problem):
    S, rows, _, _ = problem
    result = solve_priors(S, rows, tol=EXACT, max_iter=100)
    # sum_j q_j (1 - g_j) = 0 with no term below -q_j gap.
    assert (result.values * (1.0 - result.gradient)).max() <= result.gap + 1e-12


@cases
@given(seed=st.integers(0, 2**16), n=st.integers(3, 10), scale=st.sampled_from([0.3, 1.0, 4.0]))
def test_a_sample_of_weight_two_is_two_copies_of_it(seed, n, scale):
    rng = np.random.default_rng(seed)
    X, counts = rng.standard_normal((n, 2)), rng.integers(1, 4, n)
    beta = scale * oracle.reference_beta(squares(X))
    owner = np.repeat(np.arange(n), counts)
    once = solve_priors(stored(squares(X), beta), counts / counts.sum(), tol=EXACT, max_iter=MOST)
    copies = solve_priors(stored(squares(X[owner]), beta), oracle.uniform(len(owner)), tol=EXACT, max_iter=MOST)
    assert abs(copies.log_likelihood - once.log_likelihood) <= max(copies.gap, once.gap, 1e-9)
    if copies.converged and once.converged:
        np.testing.assert_allclose(np.bincount(owner, copies.values), once.values, atol=2e-3)
    split = value_at(stored(squares(X[owner]), beta), oracle.uniform(len(owner)), (once.values / counts)[owner])
    assert split.log_likelihood == pytest.approx(once.log_likelihood, abs=1e-12)
    assert split.gap <= once.gap + 1e-9


@cases
@given(X=samples(min_n=3, max_n=14, n_features=2), data=st.data(), scale=st.sampled_from([0.1, 1.0, 4.0]))
def test_the_order_of_the_samples_does_not_matter(X, data, scale):
    weights, rng = data.draw(sample_weights(len(X))), data.draw(generators())
    shares, beta, order = weights / weights.sum(), first_beta(squares(X), scale), rng.permutation(len(X))
    plain = solve_priors(stored(squares(X), beta), shares, tol=EXACT, max_iter=MOST)
    mixed = solve_priors(stored(squares(X[order]), beta), shares[order], tol=EXACT, max_iter=MOST)
    assert abs(mixed.log_likelihood - plain.log_likelihood) <= max(mixed.gap, plain.gap, 1e-9)
    if mixed.converged and plain.converged:  # what the best mixture gives to every sample is unique
        np.testing.assert_allclose(mixed.mixture[shares[order] > 0], plain.mixture[order][shares[order] > 0], rtol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_priors_of_equal_samples_together_do_not_depend_on_their_order(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 2))[rng.integers(12, size=40)]
    order = rng.permutation(40)
    result = []
    for Z in (X, X[order]):
        S, shares = of_samples(Z, 2.0)
        values = solve_priors(S, shares, tol=EXACT).values
        result.append({tuple(z): values[(z == Z).all(axis=1)].sum() for z in Z})
    for z, prior in result[0].items():
        assert result[1][z] == pytest.approx(prior, abs=1e-4)


@cases
@given(problem=problems(), factor=st.sampled_from([0.01, 0.5, 7.0]))
def test_a_beta_of_half_is_a_divergence_of_half(problem, factor):
    rng = np.random.default_rng(problem[0].n_columns)
    D = squares(rng.standard_normal((problem[0].n_columns, 2)))
    shares = problem[3]
    one, other = solve_priors(stored(D, factor), shares), solve_priors(stored(factor * D, 1.0), shares)
    assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-6)


@solvers
@pytest.mark.parametrize("constant", [5.0, 2000.0])
def test_a_constant_added_to_all_divergences_of_a_sample_shifts_the_likelihood_alone(solver, constant):
    # Rows whose every similarity would underflow are no worse than others.
    D = squares(blobs(1, n=15))
    plain = solve_priors(stored(D, 1.0), np.full(15, 1 / 15), solver=solver, tol=1e-7, max_iter=3000)
    moved = solve_priors(stored(D + constant, 1.0), np.full(15, 1 / 15), solver=solver, tol=1e-7, max_iter=3000)
    assert moved.log_likelihood == pytest.approx(plain.log_likelihood - constant, abs=1e-6)
    np.testing.assert_allclose(moved.values, plain.values, atol=1e-4)


@cases
@given(problem=problems(), rng=generators(), sparsity=st.sampled_from([0.05, 0.5, 5.0]), steps=st.integers(0, 40))
def test_from_a_start_that_is_given_the_likelihood_only_rises_and_the_start_is_left_alone(
    problem, rng, sparsity, steps
):
    S, rows, components, shares = problem
    start = rng.dirichlet(np.full(S.n_columns, sparsity))
    start = np.where(start < 1e-3, 0.0, start)
    start = start / start.sum()
    if S.product(start)[rows > 0].min() < 0.01:
        start = 0.9 * start + 0.1 / S.n_columns
    kept, best = start.copy(), exact(S, rows)
    for solver in SOLVERS:
        warm = solve_priors(S, rows, solver=solver, start=start, tol=1e-9, max_iter=steps)
        assert warm.history[0] == pytest.approx(oracle.likelihood(components, shares, start), abs=1e-9)
        assert best.log_likelihood - warm.log_likelihood <= warm.gap + 1e-9
        never_falls(warm.history)
        is_distribution(warm.values)
    np.testing.assert_array_equal(start, kept)


@both
@pytest.mark.parametrize("distance", [1.0, 10.0, 30.0, 200.0, 700.0])
def test_a_start_that_leaves_next_to_nothing_for_a_sample_leads_to_the_solution(solver, distance):
    S = stored([[0.0, distance], [distance, 0.0]], 1.0)
    result = solve_priors(S, np.full(2, 0.5), solver=solver, start=np.array([1.0, 0.0]), tol=1e-9, max_iter=MOST)
    np.testing.assert_allclose(result.values, [0.5, 0.5], atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_em_finds_components_again_that_a_start_left_out(seed):
    S, shares = of_samples(blobs(seed))
    best = solve_priors(S, shares, tol=1e-9)
    start = np.zeros(30)
    start[np.argsort(best.values)[:3]] = 1 / 3  # three of the worst
    warm = solve_priors(S, shares, solver="em", start=start, tol=1e-4, max_iter=20_000)
    assert warm.converged
    assert best.log_likelihood - warm.log_likelihood <= 1e-4
    never_falls(warm.history)


def test_a_start_at_the_solution_needs_no_step():
    S, shares = of_samples(blobs(0))
    best = solve_priors(S, shares, tol=1e-8)
    for solver in SOLVERS:
        again = solve_priors(S, shares, solver=solver, start=best.values, tol=1e-8)
        assert again.n_iter == 0
        assert again.converged
        np.testing.assert_array_equal(again.values, best.values)


# --- known solutions and extremes ------------------------------------------------------------------------------------


@solvers
def test_one_sample_has_all_of_the_prior(solver):
    result = solve_priors(stored([[0.0]], 1.0), np.ones(1), solver=solver)
    assert (result.values.tolist(), result.log_likelihood, result.n_iter, result.converged) == ([1.0], 0.0, 0, True)


@both
@pytest.mark.parametrize("weight", [0.5, 0.6, 0.75, 0.95, 1.0])
@pytest.mark.parametrize("distance", [0.1, 1.0, 50.0])
def test_two_samples_have_the_priors_worked_out_by_hand(solver, weight, distance):
    near = np.exp(-distance)
    prior = np.clip((weight - (1 - weight) * near) / (1 - near), 0.0, 1.0)
    D, shares = [[0.0, distance], [distance, 0.0]], np.array([weight, 1 - weight])
    result = solve_priors(stored(D, 1.0), shares, solver=solver, tol=1e-9, max_iter=20_000)
    assert result.values[0] == pytest.approx(prior, abs=1e-4)
    mixture = np.array([prior + (1 - prior) * near, prior * near + 1 - prior])
    expected = shares[shares > 0] @ np.log(mixture[shares > 0])
    assert result.log_likelihood == pytest.approx(expected, abs=1e-8)


@cases
@given(X=samples(min_n=3, max_n=12, n_features=2, kinds=("general",)), data=st.data())
def test_with_a_tiny_beta_the_medoid_is_the_only_exemplar(X, data):
    D, weights = squares(X), data.draw(sample_weights(len(X)))
    shares = weights / weights.sum()
    means = np.sort(shares @ D)
    S = stored(D, 1e-6 / D.max())
    result = solve_priors(S, shares, tol=1e-14)
    if means[1] > 1.001 * means[0]:
        best = oracle.medoid(D, shares)
        assert result.values[best] == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(result.log_likelihood, -1e-6 / D.max() * means[0], rtol=1e-3)


@solvers
@pytest.mark.parametrize("beta", [1e2, 1e6, 1e12])
def test_with_a_huge_beta_every_sample_is_its_own_exemplar(solver, beta):
    rng = np.random.default_rng(0)
    X, shares = rng.permutation(25)[:, None] * np.ones((1, 2)), rng.dirichlet(np.ones(25))
    for limit in (2048, 1e-9):
        result = solve_priors(stored(squares(X), beta, limit), shares, solver=solver)
        assert result.converged
        np.testing.assert_allclose(result.values, shares, rtol=1e-9)
        assert result.log_likelihood == pytest.approx(shares @ np.log(shares))


@solvers
@pytest.mark.parametrize("size", [1e-150, 1e-12, 1e12, 1e150])
def test_divergences_of_any_size_leave_no_overflow_behind(solver, size):
    D = size * squares(np.random.default_rng(3).standard_normal((12, 2)))
    for beta in (1.0, 1.0 / size):
        result = solve_priors(stored(D, beta), np.full(12, 1 / 12), solver=solver, max_iter=200)
        is_distribution(result.values)
        assert np.isfinite(result.history).all()
        assert np.isfinite([result.gap, *result.gradient]).all()


@solvers
def test_almost_all_samples_stay_where_components_are_sharp(solver):
    S, shares = of_samples(np.random.default_rng(0).uniform(0, 1, (60, 2)), 60.0)
    result = solve_priors(S, shares, solver=solver, tol=1e-8)
    assert result.converged
    assert np.count_nonzero(result.values > 1e-6) > 50


@solvers
def test_equal_samples_share_what_one_of_them_would_have(solver):
    same = solve_priors(stored(np.zeros((7, 7)), 3.0), np.full(7, 1 / 7), solver=solver)
    assert same.log_likelihood == pytest.approx(0.0, abs=1e-12)
    assert same.n_iter == 0
    X = np.repeat([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]], [5, 3, 2], axis=0)
    S, shares = stored(squares(X), 1.0), np.full(10, 0.1)
    result = solve_priors(S, shares, solver=solver, tol=1e-9)
    assert result.converged
    np.testing.assert_allclose(np.add.reduceat(result.values, [0, 5, 8]), [0.5, 0.3, 0.2], atol=1e-8)


def test_a_sample_without_weight_can_be_the_exemplar_of_others():
    X = np.array([[-1.0], [0.0], [1.0]])
    result = solve_priors(stored(squares(X), 0.1), np.array([0.5, 0.0, 0.5]), tol=1e-12)
    assert result.values[1] == pytest.approx(1.0, abs=1e-6)


@solvers
def test_components_that_exclude_samples_leave_them_to_others(solver):
    D = np.full((6, 6), np.inf)
    for group in ([0, 1], [2, 3], [4, 5]):
        D[np.ix_(group, group)] = 0.5
    np.fill_diagonal(D, 0.0)
    result = solve_priors(stored(D, 1.0), np.full(6, 1 / 6), solver=solver, tol=1e-9)
    np.testing.assert_allclose(np.add.reduceat(result.values, [0, 2, 4]), np.full(3, 1 / 3), atol=1e-8)
    assert np.isfinite(result.log_likelihood)


@pytest.mark.parametrize("share", [1e-9, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-300])
def test_a_far_sample_of_almost_no_weight_does_not_stand_in_the_way(share):
    # Its prior is its share: too small to matter, but the mixture there vanishes without it.
    X = np.concatenate([blobs(0), [[500.0, 500.0]]])
    weights = np.append(np.full(30, 1.0), 30 * share)
    result = solve_priors(stored(squares(X), 1.0), weights / weights.sum(), max_iter=500)
    alone = solve_priors(stored(squares(X[:-1]), 1.0), np.full(30, 1 / 30), max_iter=500)
    assert alone.converged
    assert result.converged
    np.testing.assert_allclose(result.values[:-1], alone.values, atol=1e-4)


def test_em_does_not_drop_the_only_component_of_a_sample_however_little_it_weighs():
    weights = np.array([1.0, 1.0, 1.0, 1e-5])  # the last one is too far away for any other component
    S, shares = stored(squares(np.array([[0.0], [1.0], [2.0], [100.0]])), 1.0), weights / weights.sum()
    result = solve_priors(S, shares, solver="em", tol=1e-12, max_iter=200)
    never_falls(result.history)
    assert result.values[3] == pytest.approx(shares[3])


def test_a_thousand_samples_take_few_steps():
    S, shares = of_samples(blobs(2, n=1000, k=6))
    result = solve_priors(S, shares)
    assert result.converged
    assert result.n_iter < 60


# --- where the search ends -------------------------------------------------------------------------------------------


@solvers
@pytest.mark.parametrize("max_iter", [0, 1, 7, 19, 20, 21, 23])
def test_no_more_steps_are_taken_than_allowed(solver, max_iter):
    S, shares = of_samples(blobs(1, n=60, spread=2.0))
    result = solve_priors(S, shares, solver=solver, tol=1e-13, max_iter=max_iter)
    assert result.n_iter == max_iter
    assert not result.converged
    if solver != "em":
        assert max_iter <= 1 or result.log_likelihood > result.history[0]


@solvers
def test_a_deadline_in_the_past_returns_the_start(solver):
    S, shares = of_samples(blobs(1))
    result = solve_priors(S, shares, solver=solver, deadline=time.monotonic() - 1.0)
    assert result.n_iter == 0
    assert not result.converged
    np.testing.assert_array_equal(result.values, np.full(30, 1 / 30))


@solvers
def test_a_deadline_ends_the_search_at_the_next_step(solver):
    S, shares = of_samples(blobs(1, n=60, spread=2.0))
    result = solve_priors(
        S, shares, solver=solver, tol=1e-15, deadline=time.monotonic() + 0.05, on_step=lambda gap: time.sleep(0.02)
    )
    assert 1 <= result.n_iter <= 5
    assert not result.converged
    never_falls(result.history)


@solvers
def test_every_step_is_reported_with_its_gap(solver):
    S, shares = of_samples(blobs(1))
    reported = []
    result = solve_priors(S, shares, solver=solver, tol=1e-6, on_step=reported.append, max_iter=300)
    assert len(reported) == result.n_iter
    assert reported[-1] == result.gap


def em_after(S, shares, steps):
    return solve_priors(S, shares, solver="em", tol=-1.0, max_iter=steps).values


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_em_can_stop_when_the_priors_hardly_change(tol):
    S, shares = of_samples(blobs(3))
    result = solve_priors(S, shares, solver="em", stopping="change", tol=tol)
    assert result.converged
    assert result.gap > 0
    changes = [
        np.abs(em_after(S, shares, t) - em_after(S, shares, t - 1)).sum() for t in (result.n_iter - 1, result.n_iter)
    ]
    assert changes[1] < tol <= changes[0]


@pytest.mark.parametrize("n_leaders", [1, 3, 6])
def test_em_can_stop_when_the_largest_priors_keep_their_order(n_leaders):
    S, shares = of_samples(blobs(3))
    result = solve_priors(S, shares, solver="em", stopping="order", n_leaders=n_leaders)
    assert result.converged
    assert result.n_iter > STEADY_STEPS
    assert result.gap > 1e-6  # earlier than by the gap
    last = result.n_iter
    orders = [
        np.argsort(-em_after(S, shares, t), kind="stable")[:n_leaders] for t in range(last - STEADY_STEPS - 1, last + 1)
    ]
    for order in orders[1:]:
        np.testing.assert_array_equal(order, orders[-1])
    assert last == STEADY_STEPS + 1 or not np.array_equal(orders[0], orders[1])


@pytest.mark.parametrize("stopping", ["order", "change"])
def test_other_stopping_rules_respect_the_limit_on_steps(stopping):
    S, shares = of_samples(blobs(3, spread=2.0))
    result = solve_priors(S, shares, solver="em", stopping=stopping, n_leaders=30, tol=1e-15, max_iter=8)
    assert result.n_iter == 8
    assert not result.converged


@pytest.mark.parametrize("stopping", ["order", "change"])
def test_newton_stops_at_the_gap_whatever_the_rule(stopping):
    S, shares = of_samples(blobs(3))
    result = solve_priors(S, shares, solver="newton", stopping=stopping, n_leaders=3)
    assert result.gap <= 1e-6
    assert result.converged


def test_auto_stays_with_em_where_too_many_priors_are_above_zero(monkeypatch):
    S, shares = of_samples(blobs(3, n=60, spread=2.0), 2.0)
    quick = solve_priors(S, shares, solver="auto")
    monkeypatch.setattr(priors, "LARGEST_SUPPORT", 1)
    slow = solve_priors(S, shares, solver="auto", max_iter=20_000)
    np.testing.assert_array_equal(solve_priors(S, shares, solver="newton").values, quick.values)
    assert slow.converged
    assert slow.n_iter > quick.n_iter > EM_STEPS
    assert slow.log_likelihood == pytest.approx(quick.log_likelihood, abs=2e-6)


@solvers
def test_similarities_and_weights_are_left_as_they_were(solver):
    S, shares = of_samples(blobs(0))
    before, weights = S.S.copy(), shares.copy()
    solve_priors(S, shares, solver=solver, max_iter=200)
    np.testing.assert_array_equal(S.S, before)
    np.testing.assert_array_equal(shares, weights)


# --- the quadratic problem within a step -----------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    rng=generators(),
    n=st.integers(1, 12),
    rank=st.integers(1, 15),
    size=st.sampled_from([1e-4, 1.0, 1e4]),
    share=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_the_nonnegative_minimum_of_a_quadratic_meets_its_conditions(rng, n, rank, size, share):
    A = rng.standard_normal((rank, n)) if rng.random() < 0.5 else rng.random((rank, n))
    G = size * A.T @ A
    # Bounded from below whatever the rank.
    c = G @ rng.standard_normal(n) - size * rng.random(n) * (rng.random(n) < 0.5)
    start = np.where(rng.random(n) < share, rng.random(n), 0.0)
    kept = G.copy(), c.copy(), start.copy()
    x = minimize_nonnegative(G, c, start)
    for now, before in zip((G, c, start), kept, strict=True):
        np.testing.assert_array_equal(now, before)
    if x is None:
        assert rank < n  # rounding may stand in the way of a singular problem alone
        return
    slope, scale = G @ x - c, np.abs(c).max() + np.abs(G @ x).max() + size
    assert (x >= 0).all()
    assert slope.min() >= -1e-8 * scale
    np.testing.assert_allclose(x * slope, 0.0, atol=1e-7 * scale * max(1.0, x.max()))


@pytest.mark.parametrize("seed", range(20))
def test_the_slower_method_takes_over_where_active_sets_run_in_a_circle(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((8, 8))
    G, c = A.T @ A, rng.standard_normal(8)
    usual = minimize_nonnegative(G, c, np.zeros(8))
    monkeypatch.setattr(nonnegative, "ACTIVE_SET_ROUNDS", 0)
    slower = minimize_nonnegative(G, c, np.zeros(8))
    np.testing.assert_allclose(slower, usual, atol=1e-7 * (1.0 + np.abs(usual).max()))


def test_a_quadratic_that_rises_in_every_direction_has_its_minimum_at_zero():
    np.testing.assert_array_equal(
        minimize_nonnegative(np.eye(3), np.array([-1.0, -2.0, -0.1]), np.ones(3)), np.zeros(3)
    )
