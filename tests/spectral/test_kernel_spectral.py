"""Kernel spectral clustering: against the dense problems of the source, and the codebook."""

import numpy as np
import pytest
from scipy.linalg import eig

from kernelweave import KernelError, ParameterError
from kernelweave.backends.host import HostBackend
from kernelweave.estimators.spectral.faults import explained
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.transforms import CentredKernel
from kernelweave.solvers.spectral import kernel_spectral as kernel_spectral_module
from kernelweave.solvers.spectral.kernel_spectral import (
    FlatViewError,
    NoDegreesError,
    RegularizationError,
    codebook,
    coupled_kernel_spectral,
    decode,
    degree_weights,
    kernel_spectral,
)


def kernel(seed, n=40, sigma=1.5, groups=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) + 4.0 * np.eye(2, groups)[:, np.arange(n) % groups].T
    return fit_kernel(X, "rbf", {"sigma": sigma}).operator("dense")


def centred(op):
    inverse = degree_weights(op)
    return np.ascontiguousarray(CentredKernel(op, inverse).block(slice(None), slice(None))), inverse


@pytest.mark.parametrize("small", [10, 1200])
def test_one_view_solves_the_problem_of_the_source(small, monkeypatch):
    monkeypatch.setattr(HostBackend, "direct_limit", small)
    op = kernel(0, n=120)
    K, n = op.K, 120
    inverse = 1.0 / K.sum(axis=1)
    M = np.eye(n) - np.outer(np.ones(n), inverse) / inverse.sum()
    values, vectors = np.linalg.eig(inverse[:, None] * (M @ K))
    order = np.argsort(-values.real)[:2]
    result = kernel_spectral(op, 2)
    np.testing.assert_allclose(result.eigenvalues, values.real[order], rtol=1e-8)
    for i, column in enumerate(order):
        assert abs(np.corrcoef(result.alphas[:, i], vectors[:, column].real)[0, 1]) == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(result.scores, K @ result.alphas + result.bias, atol=1e-12)
    # At the optimum the scores are lambda D alpha, and their mean weighted by D^-1 is zero.
    np.testing.assert_allclose(result.scores, result.eigenvalues * result.alphas / inverse[:, None], atol=1e-6)
    np.testing.assert_allclose(inverse @ result.scores, 0.0, atol=1e-10)


@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("small", [10, 1200])
def test_several_views_solve_the_coupled_problem_of_the_source(n_views, small, monkeypatch):
    monkeypatch.setattr(kernel_spectral_module, "SMALL", small)
    n = 40
    kernels, inverses = zip(*(centred(kernel(seed, n)) for seed in range(n_views)), strict=True)
    gammas = np.linspace(0.5, 3.0, n_views)
    A, B = np.zeros((n_views * n, n_views * n)), np.zeros((n_views * n, n_views * n))
    for v in range(n_views):
        rows = slice(v * n, (v + 1) * n)
        for u in range(n_views):
            if u != v:
                A[rows, u * n : (u + 1) * n] = np.sqrt(inverses[v] * inverses[u])[:, None] * kernels[u]
        B[rows, rows] = np.eye(n) - gammas[v] / n * inverses[v][:, None] * kernels[v]
    values, vectors = eig(A, B)
    order = np.argsort(-values.real)[:2]
    result = coupled_kernel_spectral(kernels, inverses, gammas, 2)
    np.testing.assert_allclose(result.eigenvalues, values.real[order], rtol=1e-7)
    for i, column in enumerate(order):
        for v, model in enumerate(result.models):
            scores = kernels[v] @ vectors[v * n : (v + 1) * n, column].real
            assert abs(np.corrcoef(model.scores[:, i], scores)[0, 1]) == pytest.approx(1.0, abs=1e-6)
            np.testing.assert_allclose(model.scores, kernels[v] @ model.alphas, atol=1e-12)


def test_the_order_of_the_views_does_not_matter():
    views = [centred(kernel(seed)) for seed in range(3)]
    gammas = np.array([0.5, 1.0, 2.0])
    names = ["a", "b", "c"]

    def solved(order):
        kernels, inverses = zip(*(views[i] for i in order), strict=True)
        result = coupled_kernel_spectral(kernels, inverses, gammas[list(order)], 1)
        return {names[i]: np.abs(model.scores[:, 0]) for i, model in zip(order, result.models, strict=True)}

    here, there = solved((0, 1, 2)), solved((2, 0, 1))
    for name in names:
        np.testing.assert_allclose(here[name], there[name], atol=1e-8)


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_gamma_at_its_limit_is_refused_with_the_limit(factor):
    views = [centred(kernel(seed)) for seed in range(2)]
    kernels, inverses = zip(*views, strict=True)
    limit = coupled_kernel_spectral(kernels, inverses, np.ones(2), 1).limits[1]
    with pytest.raises(RegularizationError, match=rf"of view 1 is not below {limit:.6g}") as refused:
        coupled_kernel_spectral(kernels, inverses, np.array([1.0, factor * limit]), 1)
    assert (refused.value.view, refused.value.gamma, refused.value.limit) == (1, factor * limit, limit)
    with (
        pytest.raises(ParameterError, match=r"of view 'b' is at or above its limit of \d"),
        explained(["a", "b"]),
    ):
        coupled_kernel_spectral(kernels, inverses, np.array([1.0, factor * limit]), 1)
    assert coupled_kernel_spectral(kernels, inverses, np.array([1.0, 0.99 * limit]), 1).eigenvalues[0] > 0


def test_a_view_in_which_all_samples_look_the_same_is_refused():
    K, inverse = centred(kernel(0))
    flat = np.zeros_like(K)
    with pytest.raises(FlatViewError) as refused:
        coupled_kernel_spectral([K, flat], [inverse, inverse], np.ones(2), 1)
    assert refused.value.view == 1
    with pytest.raises(ParameterError, match=r"All samples look the same in view 'b'"), explained(["a", "b"]):
        coupled_kernel_spectral([K, flat], [inverse, inverse], np.ones(2), 1)


@pytest.fixture
def searched(monkeypatch):
    """Count the whole decompositions of views; more than ten samples go the way of many."""
    monkeypatch.setattr(kernel_spectral_module, "SMALL", 10)
    whole = []
    plain = kernel_spectral_module._whole_bases
    monkeypatch.setattr(kernel_spectral_module, "_whole_bases", lambda views: whole.append(1) or plain(views))
    return whole


@pytest.mark.parametrize(
    ("share", "decomposed"), [(0.0, False), (0.001, False), (0.3, False), (0.499, False), (0.8, True)]
)
def test_subspaces_find_what_whole_decompositions_do(share, decomposed, searched, monkeypatch):
    kernels, inverses = zip(*(centred(kernel(seed, 150)) for seed in range(3)), strict=True)
    limits = coupled_kernel_spectral(kernels, inverses, np.zeros(3), 2).limits
    searched.clear()
    gammas = share * limits
    found = coupled_kernel_spectral(kernels, inverses, gammas, 2)
    assert bool(searched) == decomposed
    monkeypatch.setattr(kernel_spectral_module, "SMALL", 1200)
    exact = coupled_kernel_spectral(kernels, inverses, gammas, 2)
    np.testing.assert_allclose(found.limits, exact.limits, rtol=1e-9)
    np.testing.assert_allclose(found.eigenvalues, exact.eigenvalues, rtol=1e-10)
    for one, other in zip(found.models, exact.models, strict=True):
        signs = np.sign((one.scores * other.scores).sum(axis=0))
        np.testing.assert_allclose(one.scores * signs, other.scores, atol=1e-6 * np.abs(other.scores).max())
        np.testing.assert_allclose(one.alphas * signs, other.alphas, atol=1e-6 * np.abs(other.alphas).max())


def test_searches_end_after_a_few_restarts_where_eigenvalues_of_kernels_fall_fast(searched, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(6, size=400)
    views = [rng.normal(size=(6, 8))[y] + rng.normal(size=(400, 8)) for _ in range(2)]
    kernels, inverses = zip(
        *(centred(fit_kernel(X, "rbf", {"sigma": 6.0}).operator("dense")) for X in views), strict=True
    )
    restarts = []
    best_within = kernel_spectral_module._best_within
    monkeypatch.setattr(kernel_spectral_module, "SMALL", 399)
    monkeypatch.setattr(kernel_spectral_module, "_best_within", lambda *args: restarts.append(1) or best_within(*args))
    found = coupled_kernel_spectral(kernels, inverses, np.ones(2), 5)
    assert not searched
    assert len(restarts) <= 4
    monkeypatch.setattr(kernel_spectral_module, "SMALL", 400)
    exact = coupled_kernel_spectral(kernels, inverses, np.ones(2), 5)
    np.testing.assert_allclose(found.eigenvalues, exact.eigenvalues, rtol=1e-12)


def test_a_search_that_gets_no_better_ends(searched, monkeypatch):
    kernels, inverses = zip(*(centred(kernel(seed, 60)) for seed in range(2)), strict=True)
    restarts = []
    monkeypatch.setattr(kernel_spectral_module, "_size_in_views", lambda *args: restarts.append(1) or 1.0)
    result = coupled_kernel_spectral(kernels, inverses, np.ones(2), 1)
    assert not searched
    assert len(restarts) == 1 + kernel_spectral_module.PATIENCE
    assert result.eigenvalues[0] > 0


@pytest.mark.parametrize("told", [None, [True, True]])
def test_a_kernel_with_negative_eigenvalues_is_decomposed_as_a_whole(told, searched):
    views = [centred(kernel(seed, 60)) for seed in range(2)]
    K, inverse = views[1]
    values, vectors = np.linalg.eigh(K)
    values[:3] = -0.3 * values[-1]
    spoilt = (vectors * values) @ vectors.T
    gammas = np.ones(2)
    coupled_kernel_spectral([views[0][0], K], [views[0][1], inverse], gammas, 1, told)
    assert not searched
    result = coupled_kernel_spectral([views[0][0], spoilt], [views[0][1], inverse], gammas, 1)
    assert searched
    assert result.eigenvalues[0] > 0


@pytest.mark.parametrize("small", [10, 1200])
def test_degrees_are_the_sums_of_the_kernel_rows_and_no_vectors_give_no_scores(small, monkeypatch):
    monkeypatch.setattr(HostBackend, "direct_limit", small)
    K = kernel(0).K.copy()
    K[3, :] = 0.0
    K[:, 3] = 0.0
    model = kernel_spectral(DenseKernel(K), 2)
    np.testing.assert_allclose(model.degrees, K.sum(axis=1), rtol=1e-12)
    nothing = kernel_spectral(DenseKernel(K), 0)
    assert nothing.scores.shape == nothing.alphas.shape == (40, 0)
    np.testing.assert_allclose(nothing.degrees, K.sum(axis=1), rtol=1e-12)


def test_a_sample_like_no_other_takes_no_part_and_still_has_a_score():
    K = kernel(0).K.copy()
    K[3, :] = K[:, 3] = 0.0
    inverse = degree_weights(DenseKernel(K))
    assert inverse[3] == 0
    result = kernel_spectral(DenseKernel(K), 2)
    assert np.isfinite(result.scores).all()
    np.testing.assert_allclose(result.alphas[3], 0.0)


def test_negative_degrees_and_empty_graphs_are_refused():
    with pytest.raises(KernelError, match=r"Sample 0 has a degree .* of -1"):
        degree_weights(DenseKernel(-np.eye(3)))
    with pytest.raises(NoDegreesError):
        degree_weights(DenseKernel(np.zeros((3, 3))))
    with pytest.raises(ParameterError, match="add up to zero"), explained():
        degree_weights(DenseKernel(np.zeros((3, 3))))


def test_the_codebook_holds_the_most_frequent_patterns_and_the_nearest_is_found():
    scores = np.array([[1, 1], [1, 1], [1, 1], [-1, 1], [-1, 1], [-1, -1], [1, -1]], dtype=float)
    book = codebook(scores, 3)
    np.testing.assert_array_equal(book, [[1, 1], [-1, 1], [-1, -1]])
    # The pattern that was left out is as near to the first as to the third: the more frequent one takes it.
    np.testing.assert_array_equal(decode(scores, book), [0, 0, 0, 1, 1, 2, 0])


def test_fewer_patterns_than_clusters_give_a_shorter_codebook():
    assert len(codebook(np.ones((5, 2)), 3)) == 1
