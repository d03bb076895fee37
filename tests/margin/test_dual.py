"""The dual of the ratio objective: against general solvers, from warm starts, and with a proof of its optimum."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from kernelweave.solvers.margin.dual import MarginProblem
from tests.reference import ratio_mkc as oracle

quick = settings(max_examples=30, deadline=None)


def problem(seed, n=None, C=None):
    """Return a random kernel, labels that are no better than chance, and C."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 40)) if n is None else n
    X = rng.normal(size=(n, 3)) * 10.0 ** rng.uniform(-1, 1)
    squared = np.square(X[:, None] - X[None]).sum(axis=2)
    if rng.random() < 0.5:
        K = np.exp(-squared / np.median(squared + np.eye(n)))
    else:
        K = X @ X.T + 0.02 * np.square(X).mean() * np.eye(n)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return K, y, float(10.0 ** rng.uniform(-2, 2)) if C is None else C


def svc(K, y, C, scale):
    machine = SVC(C=C, kernel="precomputed", tol=1e-6).fit(K / scale, y)
    b = np.zeros(len(K))
    b[machine.support_] = machine.dual_coef_[0]
    return float(np.abs(b).sum() - 0.5 * b @ K @ b / scale)


def feasible(P):
    bounds = np.where(
        P.labels > 0, (P.multipliers >= 0) & (P.multipliers <= P.C), (P.multipliers <= 0) & (P.multipliers >= -P.C)
    )
    return bool(bounds.all()) and abs(P.multipliers.sum()) <= 1e-9 * P.C * P.n_samples


@pytest.mark.parametrize("seed", range(200))
def test_the_optimum_is_that_of_libsvm(seed):
    K, y, C = problem(seed)
    result = MarginProblem(K, C, y).solve(1e-9)
    assert result.objective == pytest.approx(svc(K, y, C, result.variance), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_that_of_a_general_solver(seed):
    K, y, C = problem(seed, n=9)
    result = MarginProblem(K, C, y).solve(1e-9)
    assert result.objective == pytest.approx(oracle.objective(K, y, C), rel=1e-6)


@quick
@given(seed=st.integers(0, 2**32 - 1))
def test_the_gap_is_the_distance_between_primal_and_dual(seed):
    K, y, C = problem(seed)
    P = MarginProblem(K, C, y)
    result = P.solve(1e-4)
    w = P.multipliers @ K @ P.multipliers / result.variance
    primal = 0.5 * w + C * np.maximum(0.0, 1.0 - y * result.scores).sum()
    dual = np.abs(P.multipliers).sum() - 0.5 * w
    assert result.objective == pytest.approx(dual)
    assert result.gap == pytest.approx(primal - dual, abs=1e-9 * abs(primal))
    assert -1e-9 * primal <= result.gap <= 1e-4 * dual * (1 + 1e-9)
    assert (
        result.objective <= svc(K, y, C, result.variance) * (1 + 1e-7) <= (result.objective + result.gap) * (1 + 1e-6)
    )


@quick
@given(seed=st.integers(0, 2**32 - 1))
def test_the_variance_is_that_of_loops(seed):
    K, y, C = problem(seed)
    assert MarginProblem(K, C, y).variance == pytest.approx(oracle.variance(K, y), rel=1e-8, abs=1e-10 * np.trace(K))


@quick
@given(seed=st.integers(0, 2**32 - 1))
def test_flipped_labels_lead_where_a_fresh_start_leads(seed):
    K, y, C = problem(seed)
    rng, warm = np.random.default_rng(seed), MarginProblem(K, C, y)
    for sample in rng.integers(2, len(K), 6):
        warm.solve(1e-6)
        warm.flip(int(sample))
        assert feasible(warm)
        np.testing.assert_allclose(warm.products, K @ warm.multipliers, atol=1e-9 * np.abs(K).max() * C * len(K))
    fresh = MarginProblem(K, C, warm.labels)
    assert warm.variance == pytest.approx(fresh.variance, rel=1e-8, abs=1e-12 * np.trace(K))
    assert warm.n_positive == fresh.n_positive
    assert warm.solve(1e-9).objective == pytest.approx(fresh.solve(1e-9).objective, rel=1e-6)


@quick
@example(seed=350, power=-4)
@given(seed=st.integers(0, 2**32 - 1), power=st.integers(-6, 6))
def test_the_unit_of_the_kernel_does_not_matter(seed, power):
    K, y, C = problem(seed)
    here = MarginProblem(K, C, y).solve(1e-9)
    there = MarginProblem(K * 10.0**power, C, y).solve(1e-9)
    assert there.objective == pytest.approx(here.objective, rel=1e-6)
    # Where every margin is at its bound, the offset may be any number of an interval: scores are compared without it.
    np.testing.assert_allclose(there.scores - there.scores.mean(), here.scores - here.scores.mean(), atol=1e-2)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_clusters_that_change_names_change_the_sign_of_the_decision(C):
    K, _, _ = problem(8, n=20)
    y = np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
    here = MarginProblem(K, C, y).solve(1e-9)
    there = MarginProblem(K, C, -y).solve(1e-9)
    assert there.bias == pytest.approx(-here.bias, abs=1e-3)  # also where all of an interval are equally good
    np.testing.assert_allclose(there.scores, -here.scores, atol=1e-3)


def test_a_copy_goes_its_own_way():
    K, y, C = problem(3, n=20)
    P = MarginProblem(K, C, y)
    before = P.solve(1e-9).objective
    twin = P.copy()
    twin.flip(5)
    twin.solve(1e-9)
    np.testing.assert_array_equal(P.labels, y)
    assert P.solve(1e-9).objective == pytest.approx(before, rel=1e-12)


def test_clusters_of_equal_samples_have_no_variance_and_still_an_objective():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    y = np.repeat([-1.0, 1.0], 5)
    result = MarginProblem(X @ X.T, 1.0, y).solve()
    assert 0 <= result.objective < 1e-6
    assert (np.sign(result.scores) == y).all()


def test_what_a_problem_shows_of_itself_cannot_be_changed():
    K, y, C = problem(4, n=12)
    P = MarginProblem(K, C, y)
    P.solve()
    for shown in (P.labels, P.multipliers, P.products):
        with pytest.raises(ValueError, match="read-only"):
            shown[0] = 5.0
    y[0] = -y[0]  # labels were copied
    assert P.labels[0] == -y[0]


def test_a_flip_is_undone_by_another():
    K, y, C = problem(5, n=16)
    P = MarginProblem(K, C, y)
    variance, before = P.variance, P.solve(1e-9).objective
    P.flip(3)
    assert P.labels[3] == -y[3]
    P.flip(3)
    np.testing.assert_array_equal(P.labels, y)
    assert P.variance == pytest.approx(variance)
    assert P.n_positive == np.count_nonzero(y > 0)
    assert P.solve(1e-9).objective == pytest.approx(before, rel=1e-6)


def test_a_problem_goes_on_from_other_multipliers():
    K, y, C = problem(6, n=30)
    first = MarginProblem(K, C, y)
    solution = first.solve(1e-9)
    again = MarginProblem(1.0001 * K, C, y, first.multipliers)
    np.testing.assert_allclose(again.products, 1.0001 * K @ solution.multipliers)
    assert again.solve(1e-6).steps < MarginProblem(1.0001 * K, C, y).solve(1e-6).steps
