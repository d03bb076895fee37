"""Solvers of the spectral comparators and of OKKC: laws on generated cases, and ways to the same answer."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from kernelweave.backends.host import HostBackend
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.parametric import WeightedKernels
from kernelweave.kernels.transforms import CentredKernel, DegreeKernel, ScaledKernel
from kernelweave.kernels.weighted_sum import composite
from kernelweave.solvers.comparators import correlational
from kernelweave.solvers.comparators.co_regularized import co_regularized
from kernelweave.solvers.comparators.co_trained import absolute_degrees, co_trained
from kernelweave.solvers.comparators.correlational import kernel_cca
from kernelweave.solvers.comparators.optimized_kernel_kmeans import (
    Fusion,
    best_coefficients,
    indicators,
    optimized_kernel_kmeans,
)
from kernelweave.solvers.spectral import subspaces
from kernelweave.solvers.spectral.subspaces import gram_subspace, leading_subspace
from tests import strategies
from tests.reference import spectral_comparators as oracle

variants = pytest.mark.parametrize("centroid", [False, True], ids=["pairwise", "centroid"])
norms = pytest.mark.parametrize("norm", [1, 2])
quick = settings(max_examples=30, deadline=None)


def affinities(data):
    """Return D^-1/2 K D^-1/2 of Gaussian kernels as operators."""
    return [DegreeKernel(DenseKernel(rbf_kernel(X, gamma=0.5))) for X in data]


def fusion(data, norm, ridge=0.5):
    """Return centred linear kernels to be weighed."""
    kernels = [oracle.centred(linear_kernel(X)) for X in data]
    return Fusion(WeightedKernels(kernels, norm), np.zeros(len(kernels)), ridge)


# --- subspaces -------------------------------------------------------------------------------------------------------


def test_the_change_of_low_rank_is_part_of_the_matrix(monkeypatch):
    rng = np.random.default_rng(0)
    K, W = linear_kernel(rng.standard_normal((40, 60))), 3.0 * rng.standard_normal((40, 2))
    values, vectors = oracle.leading(K + W @ W.T, 3)
    whole = leading_subspace(DenseKernel(K), 3, W)
    monkeypatch.setattr(HostBackend, "direct_limit", 10)
    by_products = leading_subspace(DenseKernel(K), 3, W)
    for result in (whole, by_products):
        np.testing.assert_allclose(result.values, values, rtol=1e-9)
        np.testing.assert_allclose(result.vectors @ result.vectors.T, vectors @ vectors.T, atol=1e-5)
        assert result.rank == 3
    assert by_products.residual <= subspaces.RESIDUAL


def test_directions_of_no_weight_are_columns_of_zeros():
    W = np.zeros((6, 4))
    W[:3, 0], W[3:, 1] = 1.0, 2.0
    result = gram_subspace(W, 3)
    np.testing.assert_allclose(result.values, [12.0, 3.0, 0.0], atol=1e-12)
    assert result.rank == 2
    assert not result.vectors[:, 2].any()


# --- factors of kernels ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@quick
@given(X=strategies.samples(min_n=4, max_n=9), drawn=st.data())
def test_the_factor_of_features_gives_back_the_kernel_centred_or_not(form, X, drawn):
    weights = drawn.draw(strategies.generators()).uniform(0.1, 2.0, len(X))
    every = slice(None)
    plain = FeatureKernel(form(X))
    joined = composite([plain, ScaledKernel(plain, 3.0)], [0.5, 0.2])
    for op in (plain, CentredKernel(plain), CentredKernel(plain, weights), joined):
        F = op.gram_factor()
        assert F.shape[1] >= op.rank_bound >= np.linalg.matrix_rank(F)
        np.testing.assert_allclose(F @ F.T, op.block(every, every), atol=1e-9 * max(1.0, op.scale()))


def test_other_kernels_have_no_factor_and_any_rank():
    K = np.eye(5)
    for op in (DenseKernel(K), CentredKernel(DenseKernel(K)), FeatureKernel(K[:, :2], K[:3, :2])):
        assert op.rank_bound == 5
    with pytest.raises(NotImplementedError, match="DenseKernel is not made of features"):
        DenseKernel(K).gram_factor()


# --- co-regularised --------------------------------------------------------------------------------------------------


@variants
@quick
@given(
    data=strategies.views(min_views=1, min_n=6), k=st.integers(1, 3), strength=st.sampled_from([0.0, 0.01, 0.5, 5.0])
)
def test_the_co_regularised_objective_never_falls(centroid, data, k, strength):
    result = co_regularized(affinities(data), np.full(len(data), strength), n_vectors=k, centroid=centroid, max_iter=15)
    path = np.array(result.history)
    assert (np.diff(path) >= -1e-10 * np.abs(path[1:])).all()
    for U in result.vectors:
        inner = U.T @ U
        np.testing.assert_allclose(inner, np.diag(np.round(np.diag(inner))), atol=1e-8)


@variants
def test_products_and_matrices_lead_to_the_same_subspaces(centroid, monkeypatch):
    rng = np.random.default_rng(1)
    groups = np.repeat([0.0, 4.0, 8.0], 15)[:, None]
    data = [groups + rng.standard_normal((45, 2)) for _ in range(3)]
    options = {"n_vectors": 3, "centroid": centroid, "tol": 1e-12}
    whole = co_regularized(affinities(data), np.full(3, 0.3), **options)
    monkeypatch.setattr(HostBackend, "direct_limit", 10)
    steps = []
    by_products = co_regularized(affinities(data), np.full(3, 0.3), on_step=steps.append, **options)
    assert by_products.objective == pytest.approx(whole.objective, rel=1e-8)
    assert steps == list(by_products.history[1:])
    assert (np.diff(by_products.history) >= -1e-12).all()
    np.testing.assert_allclose(
        by_products.embedding @ by_products.embedding.T, whole.embedding @ whole.embedding.T, atol=1e-4
    )


# --- co-trained ------------------------------------------------------------------------------------------------------


def test_degrees_of_a_low_rank_matrix_are_sums_of_absolute_values():
    rng = np.random.default_rng(2)
    E, A = rng.standard_normal((2, 700, 3))
    S = (E @ A.T + A @ E.T) / 2
    np.testing.assert_allclose(absolute_degrees(E, A), np.abs(S).sum(axis=1), rtol=1e-12)


@quick
@given(data=strategies.views(min_views=2, max_views=3, min_n=6), k=st.integers(1, 3))
def test_agreement_lies_between_zero_and_one(data, k):
    by_degrees = affinities(data)
    result = co_trained([op.base for op in by_degrees], by_degrees, n_vectors=k, max_iter=3)
    assert all(-1e-12 <= value <= 1 + 1e-9 for value in result.history)
    assert 1 <= result.n_iter <= 3
    for E in result.vectors:
        inner = E.T @ E
        np.testing.assert_allclose(inner, np.diag(np.round(np.diag(inner))), atol=1e-6)


# --- correlations ----------------------------------------------------------------------------------------------------


@quick
@given(
    data=strategies.views(min_views=1, min_n=6),
    kappa=st.sampled_from([0.01, 0.1, 0.5, 1.0]),
    q=st.integers(1, 4),
)
def test_correlations_fall_from_at_most_one_and_stay_above_zero(data, kappa, q):
    result = kernel_cca([CentredKernel(FeatureKernel(X)) for X in data], np.full(len(data), kappa), q)
    rho = result.correlations
    assert (np.diff(rho) <= 1e-12).all()
    assert ((rho >= 0) & (rho <= 1 + 1e-9)).all()
    assert all(alphas.shape == (len(data[0]), len(rho)) for alphas in result.alphas)


@quick
@given(data=strategies.views(min_views=2, max_views=3, min_n=8), kappa=st.sampled_from([0.05, 0.5]))
def test_features_and_kernels_give_the_same_correlations(data, kappa):
    kappas = np.full(len(data), kappa)
    features = kernel_cca([CentredKernel(FeatureKernel(X)) for X in data], kappas, 3)
    kernels = kernel_cca([CentredKernel(DenseKernel(linear_kernel(X))) for X in data], kappas, 3)
    rho = min((features.correlations, kernels.correlations), key=len)
    for result in (features.correlations, kernels.correlations):  # one may keep a correlation that is next to zero
        np.testing.assert_allclose(result[: len(rho)], rho, atol=1e-7)
        assert (result[len(rho) :] < 1e-6).all()


def test_products_and_a_matrix_lead_to_the_same_correlations(monkeypatch):
    rng = np.random.default_rng(3)
    kernels = [CentredKernel(DenseKernel(rbf_kernel(rng.standard_normal((30, 2))))) for _ in range(3)]
    whole = kernel_cca(kernels, np.full(3, 0.1), 4)
    monkeypatch.setattr(correlational, "SMALL", 10)
    by_products = kernel_cca(kernels, np.full(3, 0.1), 4)
    np.testing.assert_allclose(by_products.correlations, whole.correlations, rtol=1e-8)
    for one, other in zip(by_products.alphas, whole.alphas, strict=True):
        signs = np.sign((one * other).sum(axis=0))
        np.testing.assert_allclose(one * signs, other, atol=1e-4 * np.abs(other).max())


# --- coefficients of kernels -----------------------------------------------------------------------------------------


@norms
@quick
@given(data=strategies.views(min_views=1, max_views=4, min_n=5), drawn=st.data())
def test_the_gradient_matches_finite_differences(norm, data, drawn):
    labels, k = drawn.draw(strategies.partitions(len(data[0])))
    theta = np.array(drawn.draw(st.lists(st.floats(0.1, 1.0), min_size=len(data), max_size=len(data))))
    given_kernels = fusion(data, norm)
    given_kernels = Fusion(given_kernels.kernels, np.linspace(0.0, 0.3, len(data)), given_kernels.ridge)
    Y = indicators(labels, k)
    _, gradient = given_kernels.unexplained(theta, Y)
    for v in range(len(data)):
        step = 1e-5 * np.eye(len(data))[v]
        above, below = (given_kernels.unexplained(theta + sign * step, Y)[0] for sign in (1, -1))
        assert gradient[v] == pytest.approx((above - below) / 2e-5, rel=1e-4, abs=1e-7)


@norms
@quick
@given(data=strategies.views(min_views=2, max_views=4, min_n=5), drawn=st.data())
def test_coefficients_are_the_best_of_their_norm(norm, data, drawn):
    labels, k = drawn.draw(strategies.partitions(len(data[0])))
    problem, Y = fusion(data, norm), indicators(labels, k)
    theta, value = best_coefficients(problem, Y, problem.kernels.first())
    assert (theta >= 0).all()
    assert np.linalg.norm(theta, norm) == pytest.approx(1.0)
    others = np.abs(drawn.draw(strategies.generators()).standard_normal((20, len(data))))
    for other in [*others, *np.eye(len(data))]:  # a convex problem: no other point is better
        assert value <= problem.unexplained(other / np.linalg.norm(other, norm), Y)[0] * (1 + 1e-5) + 1e-12
    np.testing.assert_allclose(value, oracle.unexplained(problem.kernels.kernels, theta, labels, k, 0.5), atol=1e-9)


@norms
@pytest.mark.parametrize("seed", range(3))
def test_coefficients_are_those_of_a_general_solver(norm, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=24)
    data = [rng.standard_normal((24, 4)) + s * np.eye(3, 4)[labels] for s in (3.0, 2.5, 0.0)]
    problem = fusion(data, norm, ridge=2.0)
    theta, value = best_coefficients(problem, indicators(labels, 3), problem.kernels.first())
    expected, least = oracle.coefficients(problem.kernels.kernels, labels, 3, 2.0, norm)
    assert value == pytest.approx(least, rel=2e-6)
    np.testing.assert_allclose(theta, expected, atol=5e-3)


@norms
@quick
@given(data=strategies.views(min_views=1, max_views=3, min_n=5), drawn=st.data())
def test_rounds_never_raise_what_is_left_unexplained(norm, data, drawn):
    labels, k = drawn.draw(strategies.partitions(len(data[0])))
    result = optimized_kernel_kmeans(fusion(data, norm), labels, n_clusters=k)
    assert (np.diff(result.history) < 0).all()
    assert -1e-12 <= result.objective <= k - 1 + 1e-9
    assert result.n_iter == len(result.history)
    assert result.totals.sum() == len(labels)
