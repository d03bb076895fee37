"""Divergences against their definition, what excludes a sample, and what is refused."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave import KernelError, ParameterError
from kernelweave.kernels import divergences
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.divergences import (
    BREGMAN,
    DIVERGENCES,
    BregmanDivergence,
    DivergenceMatrix,
    KernelDivergence,
    check_divergences,
    fit_divergence,
)
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from tests.reference import convex_mixture as oracle
from tests.strategies import generators, psd_kernels, sample_weights, samples

cases = settings(max_examples=30, deadline=None)
everything = slice(None)
families = pytest.mark.parametrize("name", BREGMAN)


def in_range(name, rng, shape, *, ends=False):
    """Draw features inside the range of a family; with ``ends`` many lie at its ends, where a family has any."""
    if name == "sqeuclidean":
        return rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 3)
    if name == "exponential":
        return rng.gamma(1.5, 2.0, shape) + 1e-3
    if name == "poisson":
        values = rng.gamma(1.5, 4.0, shape) + 1e-3
        return np.where(rng.random(shape) < 0.4, 0.0, values) if ends else values
    values = rng.uniform(0.02, 0.98, shape)
    return np.where(rng.random(shape) < 0.5, np.round(values), values) if ends else values


@st.composite
def features(draw, name, ends=False, max_n=10):
    """Draw an array of samples in the range of a family, some of them equal now and then."""
    rng, n, d = draw(generators()), draw(st.integers(2, max_n)), draw(st.integers(1, 4))
    X = in_range(name, rng, (n, d), ends=ends)
    return X[rng.integers(max(1, n // 2), size=n)] if draw(st.booleans()) else X


def largest(D):
    finite = np.asarray(D)[np.isfinite(D)]
    return float(np.abs(finite).max()) if finite.size else 1.0


def close(result, expected, scale=None):
    """Assert that divergences agree up to the rounding of their largest term, infinite ones in the same places."""
    np.testing.assert_array_equal(np.isinf(result), np.isinf(expected))
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-11 * max(1.0, scale or largest(expected)))


def of(X, name, shares=None, **options):
    """Return the divergence of samples, settled as an estimator does."""
    shares = np.full(X.shape[0], 1.0 / X.shape[0]) if shares is None else shares
    return fit_divergence(X, name, shares, **options)


# --- Bregman divergences ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@families
def test_pieces_of_wide_samples_are_those_of_the_whole(name, smoothing, monkeypatch):
    rng = np.random.default_rng(0)
    X = in_range(name, rng, (23, 6), ends=True)
    whole = of(X, name, smoothing=smoothing).divergence
    monkeypatch.setattr(divergences, "PIECE_ENTRIES", 30)  # five samples
    pieces = of(X, name, smoothing=smoothing).divergence
    rows = rng.permutation(23)[:13]
    for chosen in ((everything, everything), (rows, everything), (slice(3, 20), rows), (rows[:4], rows[5:])):
        close(pieces.block(*chosen), whole.block(*chosen), largest(whole.block(everything, everything)))


@families
def test_single_precision_is_read_as_it_is(name):
    X = in_range(name, np.random.default_rng(0), (30, 4)).astype(np.float32)
    single = of(X, name, smoothing=0.1)
    double = of(X.astype(np.float64), name, smoothing=0.1)
    chosen = np.array([3, 7, 20])
    np.testing.assert_array_equal(
        single.divergence.block(everything, everything), double.divergence.block(everything, everything)
    )
    np.testing.assert_array_equal(
        single.placement(chosen).divergences(X[5:9]), double.placement(chosen).divergences(X[5:9].astype(np.float64))
    )


@families
@cases
@given(data=st.data())
def test_a_bregman_divergence_is_phi_of_x_less_its_tangent_at_y(name, data):
    X = data.draw(features(name, ends=True))
    Y = data.draw(features(name, ends=True))[:, :1].repeat(X.shape[1], axis=1)
    scale = float((X**2).sum(axis=1).max() + (Y**2).sum(axis=1).max())
    close(BregmanDivergence(name, X, Y).block(everything, everything), oracle.divergences(name, X, Y), scale)
    close(of(X, name).divergence.block(everything, everything), oracle.divergences(name, X), scale)


@families
@cases
@given(data=st.data(), seed=st.integers(0, 2**16))
def test_a_divergence_is_zero_on_the_diagonal_and_nowhere_negative_and_never_nan(name, data, seed):
    X = data.draw(features(name, ends=True))
    D = of(X, name).divergence
    result = D.block(everything, everything)
    assert not np.isnan(result).any()
    assert (result >= 0).all()
    noise = 1e-12 * max(1.0, float((X**2).sum(axis=1).max()))
    np.testing.assert_allclose(np.diag(result), 0.0, atol=noise)
    np.testing.assert_allclose(D.self_divergence(np.arange(len(X))), np.diag(result), atol=noise)
    some = np.random.default_rng(seed).permutation(len(X))[:3]
    np.testing.assert_allclose(D.self_divergence(some), np.diag(result)[some], atol=noise)


@cases
@given(X=features("poisson", ends=True))
def test_a_poisson_component_excludes_exactly_the_samples_with_a_count_where_it_has_none(X):
    result = of(X, "poisson").divergence.block(everything, everything)
    for i, x in enumerate(X):
        for j, y in enumerate(X):
            assert np.isinf(result[i, j]) == ((y == 0) & (x > 0)).any()


@cases
@given(X=features("bernoulli", ends=True))
def test_a_bernoulli_component_excludes_exactly_the_samples_that_differ_where_it_is_certain(X):
    result = of(X, "bernoulli").divergence.block(everything, everything)
    for i, x in enumerate(X):
        for j, y in enumerate(X):
            assert np.isinf(result[i, j]) == (((y == 0) & (x > 0)) | ((y == 1) & (x < 1))).any()


def test_divergences_worked_out_by_hand():
    one, two = np.array([[0.0, 3.0]]), np.array([[4.0, 0.0]])
    assert BregmanDivergence("sqeuclidean", one, two).block(everything, everything).item() == 25.0
    counts, rates = np.array([[2.0, 0.0]]), np.array([[1.0, 3.0]])
    result = BregmanDivergence("poisson", counts, rates).block(everything, everything).item()
    assert result == pytest.approx((2 * np.log(2) - 2 + 1) + 3)
    bits, chances = np.array([[1.0, 0.0]]), np.array([[0.8, 0.3]])
    result = BregmanDivergence("bernoulli", bits, chances).block(everything, everything).item()
    assert result == pytest.approx(-np.log(0.8) - np.log(0.7))
    waits, means = np.array([[2.0]]), np.array([[4.0]])
    result = BregmanDivergence("exponential", waits, means).block(everything, everything).item()
    assert result == pytest.approx(0.5 - np.log(0.5) - 1)
    assert BregmanDivergence("exponential", means, waits).block(everything, everything).item() == pytest.approx(
        2 - np.log(2) - 1
    )


@families
@cases
@given(data=st.data(), seed=st.integers(0, 2**16))
def test_a_block_is_the_part_of_the_whole_whatever_rows_and_columns_are_asked_for(name, data, seed):
    X, rng = data.draw(features(name, ends=True)), np.random.default_rng(seed)
    D = of(X, name, smoothing=data.draw(st.sampled_from([0.0, 0.3]))).divergence
    whole = D.block(everything, everything)
    rows, cols = rng.integers(len(X), size=5), rng.permutation(len(X))[:3]
    scale = float((X**2).sum(axis=1).max())
    close(D.block(rows, cols), whole[rows][:, cols], scale)
    close(D.block(slice(1, None), cols), whole[1:][:, cols], scale)
    close(D.block(rows, slice(0, 2)), whole[rows][:, :2], scale)
    result = D.block(rows, cols)
    result[:] = -1.0  # a new array every time
    close(D.block(everything, everything), whole, scale)


def test_squared_distances_far_from_the_origin_keep_their_digits():
    X = np.random.default_rng(0).standard_normal((12, 3))
    near = oracle.divergences("sqeuclidean", X)
    far = of(X + 1e6, "sqeuclidean").divergence.block(everything, everything)
    np.testing.assert_allclose(far, near, rtol=1e-7, atol=1e-8)


# --- smoothing -------------------------------------------------------------------------------------------------------


@families
@cases
@given(data=st.data(), smoothing=st.sampled_from([0.01, 0.2, 0.9]))
def test_smoothing_moves_components_towards_the_weighted_mean(name, data, smoothing):
    X = data.draw(features(name, ends=True))
    weights = data.draw(sample_weights(len(X)))
    shares = weights / weights.sum()
    expected = oracle.divergences(name, X, oracle.smoothed(X, shares, smoothing))
    result = of(X, name, shares, smoothing=smoothing).divergence
    # The mean of a feature that is always 1 may miss it by the last digit: infinite or large is then up to rounding.
    finite = np.isfinite(expected) & (expected < 20)
    scale = 1.0 + float((X**2).sum(axis=1).max())
    block = result.block(everything, everything)
    np.testing.assert_allclose(block[finite], expected[finite], rtol=1e-8, atol=1e-10 * scale)
    np.testing.assert_allclose(result.self_divergence(np.arange(len(X))), np.diag(block), rtol=1e-8, atol=1e-10 * scale)


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
@cases
@given(rng=generators(), n=st.integers(2, 10))
def test_smoothing_leaves_no_sample_excluded(name, rng, n):
    X = rng.integers(0, 2, (n, 3)).astype(float)
    X[0], X[1] = 0.0, 1.0  # no feature is constant
    assert np.isinf(of(X, name).divergence.block(everything, everything)).any()
    assert np.isfinite(of(X, name, smoothing=0.05).divergence.block(everything, everything)).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.25])
def test_sparse_squared_distances_are_the_dense_ones(smoothing):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((20, 6)) < 0.6, 0.0, rng.standard_normal((20, 6)))
    shares = rng.dirichlet(np.ones(20))
    dense = of(X, "sqeuclidean", shares, smoothing=smoothing)
    sparse = of(sp.csr_array(X), "sqeuclidean", shares, smoothing=smoothing)
    expected = dense.divergence.block(everything, everything)
    result = sparse.divergence.block(everything, everything)
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12)
    rows, cols = np.array([3, 3, 0]), np.array([7, 1])
    np.testing.assert_allclose(sparse.divergence.block(rows, cols), expected[rows][:, cols], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sparse.divergence.self_divergence(rows), np.diag(expected)[rows], atol=1e-12)
    alone = [sparse.divergence.block(rows[i : i + 1], rows[i : i + 1])[0, 0] for i in range(3)]
    np.testing.assert_array_equal(sparse.divergence.self_divergence(rows), alone)
    for new in (X[4:9], sp.csr_array(X[4:9])):
        for fitted in (dense, sparse):
            placed = fitted.placement(cols).divergences(new)
            np.testing.assert_allclose(placed, expected[4:9][:, cols], rtol=1e-10, atol=1e-12)


# --- kernels ---------------------------------------------------------------------------------------------------------


@cases
@given(K=psd_kernels(max_n=10))
def test_a_kernel_divergence_is_the_squared_distance_in_feature_space(K):
    D = KernelDivergence(DenseKernel(K))
    scale = float(np.abs(K).max())
    result = D.block(everything, everything)
    np.testing.assert_allclose(result, oracle.feature_space(K), rtol=1e-9, atol=1e-12 * scale)
    np.testing.assert_array_equal(np.diag(result), D.self_divergence(np.arange(len(K))))
    assert (result >= 0).all()


@cases
@given(X=samples())
def test_a_linear_kernel_gives_squared_distances_and_any_kernel_those_of_its_features(X):
    expected = oracle.divergences("sqeuclidean", X)
    for divergence in (
        KernelDivergence(FeatureKernel(X)),
        of(X, "kernel", kernel="linear").divergence,
        of(sp.csr_array(X), "kernel", kernel="linear").divergence,
        of(X, "sqeuclidean").divergence,
    ):
        np.testing.assert_allclose(divergence.block(everything, everything), expected, atol=1e-11)
    K = np.exp(-0.3 * expected)
    params = {"kernel": "rbf", "kernel_params": {"gamma": 0.3}}
    for limit in (2048, 1e-9):
        result = of(X, "kernel", memory_limit=limit, **params).divergence.block(everything, everything)
        np.testing.assert_allclose(result, oracle.feature_space(K), atol=1e-12)
    np.testing.assert_allclose(
        of(K, "kernel", kernel="precomputed").divergence.block(everything, everything), 2 - 2 * K, atol=1e-12
    )


def test_an_indefinite_kernel_has_no_negative_divergences():
    K = np.array([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(KernelDivergence(DenseKernel(K)).block(everything, everything), np.zeros((2, 2)))


# --- new samples -----------------------------------------------------------------------------------------------------


@families
@cases
@given(data=st.data(), smoothing=st.sampled_from([0.0, 0.1]))
def test_training_samples_placed_as_new_ones_have_the_divergences_of_training(name, data, smoothing):
    X = data.draw(features(name, ends=True))
    fitted = of(X, name, smoothing=smoothing)
    chosen = np.arange(len(X))[::2]
    placement = fitted.placement(chosen)
    assert placement.absolute
    scale = float((X**2).sum(axis=1).max())
    close(placement.divergences(X), fitted.divergence.block(everything, chosen), scale)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian", "poly", "cosine", "self_tuning"])
def test_training_samples_placed_through_a_kernel_have_the_divergences_of_training(kernel):
    X, chosen = np.random.default_rng(0).uniform(0.5, 2.0, (15, 3)), np.array([4, 0, 9])
    fitted = of(X, "kernel", kernel=kernel)
    placement = fitted.placement(chosen)
    assert placement.absolute
    np.testing.assert_allclose(placement.divergences(X), fitted.divergence.block(everything, chosen), atol=1e-10)


def test_rows_of_a_kernel_matrix_are_placed_up_to_a_constant():
    X, chosen = np.random.default_rng(0).standard_normal((15, 3)), np.array([4, 0, 9])
    K = fit_kernel(X, "rbf", {"gamma": 0.2}).operator("dense").block(everything, everything)
    fitted = of(K, "kernel", kernel="precomputed")
    placement = fitted.placement(chosen)
    assert not placement.absolute
    apart = fitted.divergence.block(everything, chosen) - placement.divergences(K)
    np.testing.assert_allclose(apart, apart[:, :1] * np.ones(3), atol=1e-12)
    np.testing.assert_allclose(apart[:, 0], 1.0)


def test_rows_of_given_divergences_are_placed_by_the_columns_of_the_components():
    D = np.array([[0.0, 1.0, np.inf], [2.0, 0.0, 3.0], [4.0, 5.0, 0.0]])
    fitted = of(D, "precomputed")
    np.testing.assert_array_equal(fitted.divergence.block(everything, everything), D)
    np.testing.assert_array_equal(fitted.divergence.block(np.array([2, 0]), np.array([1])), [[5.0], [1.0]])
    np.testing.assert_array_equal(fitted.divergence.self_divergence(np.array([2, 1])), [0.0, 0.0])
    new = np.array([[7.0, 8.0, np.inf]])
    np.testing.assert_array_equal(fitted.placement(np.array([2, 0])).divergences(new), [[np.inf, 7.0]])


def test_a_stored_divergence_gives_copies():
    D = np.ones((3, 3))
    block = DivergenceMatrix(D).block(everything, everything)
    block[:] = 5.0
    np.testing.assert_array_equal(D, np.ones((3, 3)))


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "bad", "rule"),
    [
        ("poisson", -1.0, "not negative"),
        ("bernoulli", 1.5, "between 0 and 1"),
        ("bernoulli", -0.25, "between 0 and 1"),
        ("exponential", 0.0, "positive"),
        ("exponential", -2.0, "positive"),
    ],
)
def test_a_value_out_of_range_is_named_with_its_place_and_a_remedy(name, bad, rule):
    X = np.full((4, 3), 0.5)
    X[2, 1] = X[3, 0] = bad
    message = rf"{re.escape(f'view one[2, 1] = {bad}')}: divergence='{name}' takes values that are {rule}.*sqeuclidean"
    with pytest.raises(ParameterError, match=message):
        of(X, name, label="view one")
    fitted = of(np.full((4, 3), 0.5), name)
    with pytest.raises(ParameterError, match=rf"X\[2, 1\] = {re.escape(str(bad))}"):
        fitted.placement(np.array([0])).divergences(X)


@pytest.mark.parametrize("name", ["poisson", "bernoulli", "exponential"])
def test_the_ends_of_a_closed_range_are_inside_it(name):
    ends = {"poisson": [0.0, 1.0], "bernoulli": [0.0, 1.0], "exponential": [1e-300, 1.0]}[name]
    X = np.array(ends)[:, None]
    assert of(X, name).divergence.block(everything, everything).shape == (2, 2)


@pytest.mark.parametrize("bad", [-1e-9, np.nan, -np.inf])
def test_given_divergences_that_cannot_be_any_are_named_with_their_place(bad):
    D = np.ones((3, 3))
    D[1, 2] = bad
    message = rf"view 'a'\[1, 2\] = {re.escape(str(bad))}.*non-negative and not NaN.*inf"
    with pytest.raises(ParameterError, match=message):
        of(D, "precomputed", label="view 'a'")
    with pytest.raises(ParameterError, match=r"X\[1, 2\]"):
        of(np.ones((3, 3)), "precomputed").placement(np.array([0])).divergences(D)
    check_divergences(np.array([[0.0, np.inf]]), "X")  # infinite ones are allowed


def test_given_divergences_must_be_square():
    with pytest.raises(ParameterError, match=r"X has shape \(2, 3\).*square"):
        of(np.ones((2, 3)), "precomputed")


def test_a_kernel_matrix_that_is_not_square_is_refused_by_the_name_of_its_view():
    with pytest.raises((KernelError, ParameterError), match="view 'k'"):
        of(np.ones((2, 3)), "kernel", kernel="precomputed", label="view 'k'")


def test_every_name_of_a_divergence_can_be_settled():
    X = np.random.default_rng(0).uniform(0.1, 0.9, (6, 6))
    for name in DIVERGENCES:
        assert of(X, name).divergence.shape == (6, 6)
