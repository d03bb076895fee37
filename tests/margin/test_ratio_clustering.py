"""Ratio-based multiple kernel clustering and iterative regression: laws, and the truth on small cases."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

from kernelweave.kernels.parametric import ProcessFamily, WeightedKernels
from kernelweave.solvers.margin.dual import MarginProblem
from kernelweave.solvers.margin.iterative_svr import balanced_bias, iterative_svr
from kernelweave.solvers.margin.ratio_clustering import balanced_pairs, best_start, ratio_clustering
from tests.reference import ratio_mkc as oracle

quick = settings(max_examples=25, deadline=None)


def samples(seed, n=40, apart=3.0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, -1.0, 1.0)
    return rng.normal(size=(n, 2)) + apart * np.c_[y, np.zeros(n)] / 2, y


def kernels(X, widths=(0.5, 1.0, 2.0, 4.0)):
    squared = np.square(X[:, None] - X[None]).sum(axis=2)
    result = [np.exp(-squared / (2 * w * w)) + 1e-8 * np.eye(len(X)) for w in widths]
    return [K / (np.trace(K) / len(K) - K.mean()) for K in result]


def run(family, y, C=1.0, limit=None, **options):
    limit = 0.5 * len(y) if limit is None else limit
    return ratio_clustering(family, family.first(), y, C=C, limit=limit, **options)


@quick
@given(
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.1, 1.0, 10.0]),
    norm=st.sampled_from([1, 2, None]),
    limit=st.sampled_from([0.0, 0.1, 0.5]),
)
def test_the_objective_never_rises_and_the_balance_holds(seed, C, norm, limit):
    X, _ = samples(seed, n=24, apart=1.5)
    rng = np.random.default_rng(seed)
    start = np.where(rng.permutation(24) < 12, 1.0, -1.0)
    visited = []

    def watch(_):
        visited.append(None)

    result = run(WeightedKernels(kernels(X), norm), start, C, limit * 24, n_moves=5, on_step=watch)
    assert (np.diff(result.history) <= 0).all()
    assert len(visited) == result.n_iter
    assert abs(result.labels.sum()) <= limit * 24
    assert result.labels[0] == -1
    assert (result.theta >= 0).all()
    K = WeightedKernels(kernels(X), norm).matrix(result.theta)
    fresh = MarginProblem(K, C, result.labels).solve(1e-9)
    assert result.objective == pytest.approx(fresh.objective, rel=1e-4)


@pytest.mark.parametrize("limit", [0.0, 0.25, 0.5])
def test_every_labelling_on_the_way_keeps_the_balance(limit, monkeypatch):
    X, _ = samples(3, n=30, apart=0.5)
    sums = []
    real = MarginProblem.flip

    def watched(self, sample):
        real(self, sample)
        sums.append(self.labels.sum())

    monkeypatch.setattr(MarginProblem, "flip", watched)
    start = np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    run(WeightedKernels(kernels(X)), start, limit=limit * 30)
    assert limit == 0.0 or len(sums) > 10
    assert all(abs(total) <= limit * 30 for total in sums)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_labelling_of_a_small_set_is_never_beaten_and_often_found(seed):
    X, _ = samples(seed, n=8, apart=2.0)
    K = kernels(X, (1.5,))[0]
    best, _ = oracle.best_by_enumeration(K, 1.0, 4.0)
    ends, rng = [], np.random.default_rng(0)
    drawn = [np.where(rng.permutation(8) < 4, 1.0, -1.0) for _ in range(10)]
    for start in [*balanced_pairs(K, rng, 6, 4.0), *drawn]:
        ends.append(run(WeightedKernels([K]), start, limit=4.0, n_moves=4, learned=False, dual_tol=1e-8).objective)
    assert min(ends) >= best * (1 - 1e-5)
    assert min(ends) <= best * (1 + 1e-5)


def test_separated_groups_are_found_from_poor_starts():
    X, y = samples(0, n=40, apart=8.0)
    start = np.where(np.random.default_rng(1).permutation(40) < 20, 1.0, -1.0)
    result = run(WeightedKernels(kernels(X)), start, n_moves=20)
    assert abs(result.labels @ y) == 40
    assert result.converged


def test_learning_weights_lowers_the_objective_below_that_of_equal_ones():
    X, y = samples(5, n=40, apart=3.0)
    noise = np.random.default_rng(5).normal(size=(40, 5))
    family = WeightedKernels([*kernels(X, (2.0,)), *kernels(noise, (2.0,))])
    learned, fixed = run(family, y), run(family, y, learned=False)
    assert learned.objective < fixed.objective
    assert learned.theta[0] > learned.theta[1]
    np.testing.assert_allclose(fixed.theta, 0.5)


def test_the_norm_of_the_weights_hardly_matters():
    X, y = samples(6, n=40, apart=4.0)
    ends = [run(WeightedKernels(kernels(X), norm), y, tol=1e-7).objective for norm in (1, 2, None)]
    np.testing.assert_allclose(ends, ends[0], rtol=0.02)


def test_hyperparameters_of_a_kernel_object_are_learned():
    X, y = samples(7, n=40, apart=4.0)
    family = ProcessFamily(RBF(0.05, (1e-3, 1e3)), X, 1e-8)
    result = run(family, y, tol=1e-6)
    assert (np.diff(result.history) <= 0).all()
    assert result.objective < 0.5 * result.history[0]
    assert np.exp(result.theta[0]) > 0.3


def uncertain_after_the_start(monkeypatch, fall, gap):
    """Let every problem but the first seem to have a lower objective, known up to a gap."""
    real = MarginProblem.solve
    starts = []

    def solve(self, tol=1e-6):
        solution = real(self, tol)
        if not starts:
            starts.append(solution.objective)
            return solution
        return replace(solution, objective=starts[0] - fall, gap=gap)

    monkeypatch.setattr(MarginProblem, "solve", solve)


@pytest.mark.parametrize(("gap", "moves"), [(0.2, False), (0.05, True)])
def test_labels_move_only_where_the_fall_is_larger_than_the_gap(gap, moves, monkeypatch):
    X, _ = samples(3, n=20, apart=1.0)
    start = np.where(np.arange(20) < 10, -1.0, 1.0)
    uncertain_after_the_start(monkeypatch, fall=0.1, gap=gap)
    result = run(WeightedKernels(kernels(X, (1.5,))), start, learned=False, max_iter=1)
    assert ((result.labels != start).any()) == moves
    assert (result.history[1] < result.history[0]) == moves


@pytest.mark.parametrize(("gap", "moves"), [(0.2, False), (0.05, True)])
def test_weights_move_only_where_the_fall_is_larger_than_the_gap(gap, moves, monkeypatch):
    X, y = samples(3, n=20, apart=1.0)
    family = WeightedKernels(kernels(X))
    uncertain_after_the_start(monkeypatch, fall=0.1, gap=gap)
    result = run(family, y, limit=0.0, max_iter=1)
    assert (not np.array_equal(result.theta, family.first())) == moves


@pytest.mark.parametrize(("fall", "moves"), [(-1e-9, False), (0.0, False), (0.1, True)])
def test_weights_move_only_where_the_objective_falls(fall, moves, monkeypatch):
    X, y = samples(3, n=20, apart=1.0)
    family = WeightedKernels(kernels(X))
    uncertain_after_the_start(monkeypatch, fall=fall, gap=0.0)
    result = run(family, y, limit=0.0, max_iter=1)
    assert (not np.array_equal(result.theta, family.first())) == moves


class Draws:
    """A generator that gives what it was told to."""

    def __init__(self, first, uniform):
        self.first = first
        self.uniform = uniform

    def integers(self, n):
        return self.first

    def random(self):
        return self.uniform


@pytest.mark.parametrize(
    ("uniform", "labels"),
    [(0.0, [-1, 1, 1]), (0.05, [-1, 1, 1]), (0.099, [-1, 1, 1]), (0.101, [-1, -1, 1]), (0.9, [-1, -1, 1])],
)
def test_the_second_sample_of_a_pair_is_drawn_by_its_distance_from_the_first(uniform, labels):
    x = np.array([[0.0], [1.0], [9.0]])  # at distances 0, 1 and 9 from the first: shares 0, 0.1 and 0.9
    (result,) = balanced_pairs(x @ x.T, Draws(0, uniform), 1, 1.0)
    assert result.tolist() == labels


@quick
@given(seed=st.integers(0, 10**6), limit=st.sampled_from([0.0, 4.0, 11.0, 22.0]), n=st.sampled_from([8, 24]))
def test_pairs_give_labellings_within_the_balance(seed, limit, n):
    limit = min(limit, n - 2)
    X, _ = samples(seed, n=n)
    for labels in balanced_pairs(kernels(X)[1], np.random.default_rng(seed), 5, limit):
        assert set(np.unique(labels)) == {-1.0, 1.0}
        assert abs(labels.sum()) <= limit
        assert labels[0] == -1


def test_pairs_that_break_the_balance_are_drawn_again():
    X = np.concatenate([np.random.default_rng(0).normal(size=(20, 2)), [[40.0, 0.0]]])
    K = X @ X.T
    squared = np.square(X[:, None] - X[None]).sum(axis=2)
    natural = set()
    for first in range(21):
        for second in range(21):
            labels = np.where(squared[second] > squared[first], 1.0, -1.0)
            natural.add((-labels * labels[0]).tobytes())
    result = balanced_pairs(K, np.random.default_rng(1), 8, 10.0)
    assert len(result) == 8
    assert all(labels.tobytes() in natural for labels in result)  # no border was moved


def test_no_border_moves_where_some_pairs_keep_the_balance():
    x = np.repeat([0.0, 1.0, 100.0], [10, 10, 1])[:, None]
    groups = np.repeat([-1.0, 1.0], [10, 11]).tolist()  # a pair with the last sample would leave it alone
    assert [labels.tolist() for labels in balanced_pairs(x @ x.T, np.random.default_rng(0), 8, 2.0)] == [groups] * 8


def test_where_no_pair_keeps_the_balance_the_border_moves():
    X = np.concatenate([np.zeros((10, 1)), [[1.0], [1.1]]]) + 1e-3 * np.arange(12)[:, None]
    result = balanced_pairs(X @ X.T, np.random.default_rng(0), 3, 0.0)
    assert len(result) == 3
    assert all(labels.sum() == 0 for labels in result)


def test_the_best_start_is_the_one_of_least_objective():
    X, y = samples(8, n=20, apart=6.0)
    K = kernels(X)[2]
    wrong = np.where(np.arange(20) < 10, 1.0, -1.0)
    assert best_start(K, [wrong, y, -wrong], 1.0) is y


@quick
@given(seed=st.integers(0, 10**6), limit=st.sampled_from([0.0, 2.0, 6.0, 18.0]))
def test_the_bias_is_the_best_of_all_that_keep_the_balance(seed, limit):
    scores = np.random.default_rng(seed).normal(size=20)
    result = balanced_bias(scores, limit)

    def loss(b):
        return np.abs(1.0 - np.abs(scores + b)).sum()

    rising = np.sort(scores)
    borders = [-0.5 * (rising[m - 1] + rising[m]) for m in range(1, 20) if abs(20 - 2 * m) <= limit]
    assert loss(result) == pytest.approx(min(map(loss, borders)))
    assert abs(np.where(scores + result > 0, 1, -1).sum()) <= limit


@pytest.mark.parametrize(("limit", "sizes"), [(4.0, {9, 12}), (4.5, {9, 12}), (5.0, {8, 13})])
def test_the_bias_keeps_the_balance_of_an_odd_number_of_samples(limit, sizes):
    scores = np.repeat([-1.0, 1.0], [13, 8]) + 1e-3 * np.arange(21)
    positive = np.count_nonzero(scores + balanced_bias(scores, limit) > 0)
    assert {positive, 21 - positive} == sizes


def test_iterative_regression_finds_separated_groups_and_its_decision_repeats_them():
    X, y = samples(9, n=40, apart=8.0)
    K = (X + 100.0) @ (X + 100.0).T  # far from the origin: only the bias changes
    start = y.copy()
    start[:8] *= -1
    result = iterative_svr(K, start, C=1.0, limit=4.0)
    assert abs(result.labels @ y) == 40
    assert result.converged
    assert result.objective == min(result.history)
    np.testing.assert_array_equal(np.where(K @ result.multipliers + result.bias > 0, 1.0, -1.0), result.labels)


def test_iterative_regression_stops_when_steps_run_out():
    X, _ = samples(10, n=30, apart=0.0)
    result = iterative_svr(X @ X.T, np.where(np.arange(30) < 15, 1.0, -1.0), C=1.0, limit=2.0, max_iter=1)
    assert result.n_iter == 1


def test_a_regression_that_is_not_solved_ends_the_run():
    X, _ = samples(10, n=30, apart=0.5)
    start = np.where(np.arange(30) < 15, 1.0, -1.0)
    cut_short = iterative_svr(X @ X.T, start, C=10.0, limit=2.0, regression_steps=5)
    assert not cut_short.solved
    assert not cut_short.converged
    assert cut_short.n_iter == 1
    assert np.isfinite(cut_short.objective)
    whole = iterative_svr(X @ X.T, start, C=10.0, limit=2.0)
    assert whole.solved
    assert whole.objective <= cut_short.objective


def test_enough_steps_for_a_regression_change_nothing():
    X, _ = samples(11, n=30, apart=1.0)
    start = np.where(np.arange(30) < 15, 1.0, -1.0)
    plain = iterative_svr(X @ X.T, start, C=1.0, limit=4.0)
    limited = iterative_svr(X @ X.T, start, C=1.0, limit=4.0, regression_steps=25_000 * 30)
    assert limited.history == plain.history
    np.testing.assert_array_equal(limited.multipliers, plain.multipliers)
