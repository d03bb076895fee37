"""Kernels with parameters: derivatives against finite differences, projections against their definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, RationalQuadratic, WhiteKernel

from kernelweave.kernels.parametric import ProcessFamily, WeightedKernels, onto_simplex
from kernelweave.solvers.margin.dual import MarginProblem
from kernelweave.solvers.margin.ratio_clustering import ratio_gradient
from tests.reference import ratio_mkc as oracle

quick = settings(max_examples=30, deadline=None)
X = np.random.default_rng(0).normal(size=(24, 3))
Y = np.where(X[:, 0] + 0.4 * X[:, 1] > 0, 1.0, -1.0)


def weighted(norm=1):
    squared = np.square(X[:, None] - X[None]).sum(axis=2)
    return WeightedKernels([np.exp(-squared / width) + 1e-8 * np.eye(24) for width in (0.5, 2.0, 8.0)], norm)


FAMILIES = {
    "weights": (weighted(), np.array([0.5, 0.3, 0.2])),
    "rbf": (ProcessFamily(RBF(1.3), X, 1e-8), np.log([1.3])),
    "one width per feature": (ProcessFamily(RBF([1.0, 2.0, 3.0]), X, 1e-8), np.log([1.0, 2.0, 3.0])),
    "sum": (ProcessFamily(ConstantKernel(2.0) * RBF(1.0) + RationalQuadratic(1.5, 0.7), X, 1e-6), None),
    "with noise": (ProcessFamily(RBF(1.0) + WhiteKernel(0.1), X, 1e-6), None),
    "raised diagonal": (ProcessFamily(ConstantKernel(2.0) * RBF(1.0), X, 0.3), None),
}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_the_gradient_is_that_of_finite_differences(name, C):
    family, theta = FAMILIES[name]
    theta = family.first() if theta is None else theta

    def value(at):
        return MarginProblem(family.matrix(at), C, Y).solve(1e-12).objective

    problem = MarginProblem(family.matrix(theta), C, Y)
    result = ratio_gradient(family, theta, problem, problem.solve(1e-12))
    step = 1e-5
    expected = [(value(theta + step * unit) - value(theta - step * unit)) / (2 * step) for unit in np.eye(len(theta))]
    np.testing.assert_allclose(result, expected, rtol=2e-3, atol=2e-5 * max(1.0, value(theta)))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_slope_of_the_variance_is_that_of_finite_differences(name):
    family, theta = FAMILIES[name]
    theta = family.first() if theta is None else theta
    _, result = family.slopes(theta, np.zeros(24), Y)
    step = 1e-6
    for i, unit in enumerate(np.eye(len(theta))):
        ends = [oracle.variance(family.matrix(theta + s * step * unit), Y) for s in (1, -1)]
        assert result[i] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-8)


def test_scaling_the_weights_changes_nothing():
    family, theta = FAMILIES["weights"]
    value = MarginProblem(family.matrix(theta), 1.0, Y).solve(1e-10).objective
    for a in (1e-6, 1e-3, 1e3, 1e6):
        assert MarginProblem(family.matrix(a * theta), 1.0, Y).solve(1e-10).objective == pytest.approx(value, rel=1e-6)


@quick
@given(theta=st.lists(st.floats(-5, 5), min_size=1, max_size=6).map(np.array))
def test_the_projection_onto_the_simplex_is_the_nearest_point(theta):
    result = onto_simplex(theta)
    assert result.min() >= 0
    assert result.sum() == pytest.approx(1)
    n = len(theta)
    best = minimize(
        lambda x: np.square(x - theta).sum(),
        np.full(n, 1 / n),
        bounds=[(0, None)] * n,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        options={"ftol": 1e-12},
    )
    assert np.square(result - theta).sum() <= best.fun + 1e-7


@quick
@given(theta=st.lists(st.floats(-5, 5), min_size=1, max_size=6).map(np.array), norm=st.sampled_from([1, 2, None]))
def test_projections_keep_signs_and_norms(theta, norm):
    family = WeightedKernels([np.eye(2)] * len(theta), norm)
    result = family.project(theta)
    assert (result >= 0).all()
    assert result.sum() > 0
    if norm is not None:
        assert np.linalg.norm(result, norm) == pytest.approx(1)
    np.testing.assert_allclose(family.project(result), result, atol=1e-12)


def test_a_family_on_part_of_the_samples_is_the_part_of_the_family():
    chosen = np.array([1, 4, 7, 9])
    for family, theta in FAMILIES.values():
        theta = family.first() if theta is None else theta
        subset = family.take(chosen).matrix(theta)
        whole = family.matrix(theta)[np.ix_(chosen, chosen)]
        np.testing.assert_allclose(subset, whole, atol=1e-5 * np.abs(whole).max())


def test_hyperparameters_stay_within_their_bounds():
    family = ProcessFamily(RBF(1.0, (0.5, 2.0)), X)
    np.testing.assert_allclose(np.exp(family.project(np.log([10.0]))), 2.0)
    np.testing.assert_allclose(np.exp(family.project(np.log([0.01]))), 0.5)
