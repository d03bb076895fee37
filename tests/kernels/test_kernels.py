"""From a kernel's name, object or function to numbers: against scikit-learn, the printed formula or slow loops."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as process
from sklearn.metrics import pairwise

from kernelweave.foundation.errors import KernelError, ParameterError
from kernelweave.kernels.blockwise import BlockwiseKernel
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.spec import fitting
from kernelweave.kernels.spec.fitting import KERNELS, approximate_kernel, fit_kernel
from tests.strategies import samples

quick = settings(max_examples=25, deadline=None)
ALL = slice(None)

# Parameters other than the defaults, so that a parameter that is not passed on shows.
PARAMS = {
    "linear": {},
    "cosine": {},
    "rbf": {"gamma": 0.7},
    "poly": {"gamma": 0.3, "coef0": 0.5, "degree": 2},
    "normalized_poly": {"degree": 3, "t": 0.5},
    "sigmoid": {"gamma": 0.2, "coef0": -0.5},
    "laplacian": {"gamma": 0.6},
    "chi2": {"gamma": 0.4},
    "gower": {"categorical": [1]},
    "intensity_histogram": {"sigma": 0.4},
    "nearest_neighbors": {"n_neighbors": 4},
    "self_tuning": {"n_neighbors": 3},
}
IN_SCIKIT_LEARN = {
    "linear": pairwise.linear_kernel,
    "cosine": pairwise.cosine_similarity,
    "rbf": pairwise.rbf_kernel,
    "poly": pairwise.polynomial_kernel,
    "sigmoid": pairwise.sigmoid_kernel,
    "laplacian": pairwise.laplacian_kernel,
    "chi2": pairwise.chi2_kernel,
}
FEATURE_KERNELS = sorted(PARAMS)
TAKE_SPARSE = sorted(set(PARAMS) - {"chi2", "gower", "intensity_histogram"})


def positive_samples(n=20, d=3, seed=0):
    """Return samples in general position that every kernel takes, chi2 included."""
    return np.random.default_rng(seed).random((n, d)) + 0.1


def matrix(op):
    return np.asarray(op.block(ALL, ALL))


def fitted_matrix(X, kernel, params=None, **options):
    return matrix(fit_kernel(X, kernel, params).operator(**options))


# --- plain oracles ---------------------------------------------------------------------------------------------------


def normalized_poly(X, Y, degree, t):
    """Write ((x.y + t^2)^d / sqrt((x.x + t^2)^d (y.y + t^2)^d)) out in loops."""
    K = np.empty((len(X), len(Y)))
    for i, x in enumerate(X):
        for j, y in enumerate(Y):
            K[i, j] = (x @ y + t**2) ** degree / np.sqrt((x @ x + t**2) ** degree * (y @ y + t**2) ** degree)
    return K


def distance(x, y):
    return float(np.sqrt(((x - y) ** 2).sum()))


def own_scale(X, i, n_neighbors):
    """Return the distance from sample i to its n_neighbors-th other sample."""
    return sorted(distance(X[i], X[j]) for j in range(len(X)) if j != i)[n_neighbors - 1]


def self_tuning(X, n_neighbors):
    K = np.empty((len(X), len(X)))
    for i in range(len(X)):
        for j in range(len(X)):
            scales = own_scale(X, i, n_neighbors) * own_scale(X, j, n_neighbors)
            K[i, j] = np.exp(-(distance(X[i], X[j]) ** 2) / scales)
    return K


def neighbor_graph(X, n_neighbors, weights, symmetrize):
    A = np.eye(len(X))
    for i in range(len(X)):
        for j in range(len(X)):
            if i != j:
                separation = distance(X[i], X[j])
                forth = float(separation <= own_scale(X, i, n_neighbors))
                back = float(separation <= own_scale(X, j, n_neighbors))
                share = max(forth, back) if symmetrize == "max" else (forth + back) / 2
                scales = own_scale(X, i, n_neighbors) * own_scale(X, j, n_neighbors)
                A[i, j] = share * (np.exp(-(separation**2) / scales) if weights == "self_tuning" else 1.0)
    return A


# --- every name gives the matrix it promises -------------------------------------------------------------------------


def test_every_name_is_tested_here():
    assert set(KERNELS) == set(PARAMS) | {"precomputed"}


@pytest.mark.parametrize("storage", ["auto", "dense", "blockwise"])
@pytest.mark.parametrize("name", sorted(IN_SCIKIT_LEARN))
def test_named_kernel_agrees_with_scikit_learn(name, storage):
    X = positive_samples()
    result = fitted_matrix(X, name, PARAMS[name], storage=storage)
    np.testing.assert_allclose(result, IN_SCIKIT_LEARN[name](X, **PARAMS[name]), rtol=1e-12)


@pytest.mark.parametrize("name", ["poly", "sigmoid", "laplacian", "chi2"])
def test_defaults_are_those_of_scikit_learn(name):
    X = positive_samples()
    np.testing.assert_allclose(fitted_matrix(X, name), IN_SCIKIT_LEARN[name](X), rtol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("t", [0.5, 1.0, 2.0])
def test_normalized_poly_is_the_printed_formula(degree, t):
    X = np.random.default_rng(1).standard_normal((8, 3))
    result = fitted_matrix(X, "normalized_poly", {"degree": degree, "t": t})
    np.testing.assert_allclose(result, normalized_poly(X, X, degree, t), rtol=1e-12, atol=1e-14)


@quick
@given(X=samples(), degree=st.integers(1, 4))
def test_normalized_poly_puts_every_sample_on_the_unit_sphere(X, degree):
    fitted = fit_kernel(X, "normalized_poly", {"degree": degree})
    np.testing.assert_allclose(fitted.operator().diag(), 1.0, rtol=1e-12)
    assert np.abs(matrix(fitted.operator())).max() <= 1 + 1e-12


@pytest.mark.parametrize("n_neighbors", [1, 3, 7])
def test_self_tuning_equals_its_definition_in_loops(n_neighbors):
    X = np.random.default_rng(2).standard_normal((12, 3))
    result = fitted_matrix(X, "self_tuning", {"n_neighbors": n_neighbors})
    np.testing.assert_allclose(result, self_tuning(X, n_neighbors), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("symmetrize", ["mean", "max"])
@pytest.mark.parametrize("weights", ["connectivity", "self_tuning"])
@pytest.mark.parametrize("n_neighbors", [1, 3, 8])
def test_nearest_neighbors_equals_its_definition_in_loops(n_neighbors, weights, symmetrize):
    X = np.random.default_rng(3).standard_normal((12, 2))
    params = {"n_neighbors": n_neighbors, "weights": weights, "symmetrize": symmetrize}
    op = fit_kernel(X, "nearest_neighbors", params).operator()
    assert isinstance(op, GraphKernel)
    wanted = neighbor_graph(X, n_neighbors, weights, symmetrize)
    np.testing.assert_allclose(matrix(op), wanted, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "manhattan", "cosine"])
@pytest.mark.parametrize("name", ["self_tuning", "nearest_neighbors"])
def test_neighbor_kernels_take_the_metrics_of_scikit_learn(name, metric):
    X = positive_samples()
    K = fitted_matrix(X, name, {"n_neighbors": 3, "metric": metric})
    distances = pairwise.pairwise_distances(X, metric=metric)
    scales = np.sort(distances, axis=1)[:, 3]
    if name == "self_tuning":
        np.testing.assert_allclose(K, np.exp(-(distances**2) / np.outer(scales, scales)), rtol=1e-6, atol=1e-12)
    else:
        near = (distances <= scales[:, None] * (1 + 1e-9)).astype(float)
        np.testing.assert_allclose(K, (near + near.T) / 2)


def test_precomputed_is_the_matrix_itself_and_not_a_copy():
    K = fitted_matrix(positive_samples(), "rbf")
    op = fit_kernel(K, "precomputed").operator()
    assert isinstance(op, DenseKernel)
    assert np.shares_memory(op.K, K)


def test_a_given_kernel_is_not_kept_for_new_samples():
    kept = fit_kernel(np.eye(3), "precomputed").for_new_samples()
    assert kept.K is None
    np.testing.assert_array_equal(matrix(kept.cross(np.ones((2, 3)))), np.ones((2, 3)))
    with pytest.raises(KernelError, match="not kept"):
        kept.operator()


# --- bandwidths ------------------------------------------------------------------------------------------------------


def test_rbf_defaults_to_the_scale_rule():
    X = positive_samples()
    gamma = 1.0 / (X.shape[1] * X.var())
    np.testing.assert_allclose(fitted_matrix(X, "rbf"), pairwise.rbf_kernel(X, gamma=gamma), rtol=1e-12)


@pytest.mark.parametrize("read", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_scale_rule_divides_by_features_times_variance(read):
    X = np.array([[0.0, 3.0], [1.0, 0.0], [0.0, 0.0], [2.0, 2.0]])  # entries: mean 1, variance 18/8 - 1 = 1.25
    result = matrix(fit_kernel(read(X), "rbf", {"gamma": "scale"}).operator())
    np.testing.assert_allclose(result, pairwise.rbf_kernel(X, gamma=1 / 2.5), rtol=1e-12)


@pytest.mark.parametrize("read", [np.asarray, sp.csr_array])
def test_median_rule_takes_the_median_distance_as_sigma(read):
    X = np.array([[0.0], [1.0], [3.0]])  # distances 1, 2, 3
    result = matrix(fit_kernel(read(X), "rbf", {"gamma": "median"}).operator())
    np.testing.assert_allclose(result[0], np.exp([0.0, -1 / 8, -9 / 8]), rtol=1e-12)


@pytest.mark.parametrize("rule", ["scale", "median"])
@pytest.mark.parametrize("name", ["rbf", "poly", "sigmoid", "laplacian"])
def test_bandwidth_rules_work_for_every_kernel_with_a_gamma(name, rule):
    X = positive_samples()
    distances = pairwise.euclidean_distances(X)[np.triu_indices(len(X), 1)]
    gamma = 1 / (3 * X.var()) if rule == "scale" else 1 / (2 * np.median(distances) ** 2)
    wanted = fitted_matrix(X, name, {"gamma": gamma})
    np.testing.assert_allclose(fitted_matrix(X, name, {"gamma": rule}), wanted, rtol=1e-10)


@pytest.mark.parametrize("read", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", ["rbf", "poly", "sigmoid", "laplacian"])
def test_the_scale_rule_takes_a_whole_weight_for_a_repetition(name, read):
    X, weights = positive_samples(), np.arange(20) % 3
    wanted = fit_kernel(read(np.repeat(X, weights, axis=0)), name, {"gamma": "scale"}).formula.gamma
    result = fit_kernel(read(X), name, {"gamma": "scale"}, weights=weights.astype(float)).formula.gamma
    assert result == pytest.approx(wanted, rel=1e-9)


def test_the_median_rule_leaves_samples_without_weight_out():
    X, weights = positive_samples(), np.arange(20) % 3 * 1.0
    wanted = fit_kernel(X[weights > 0], "rbf", {"gamma": "median"}).formula.gamma
    result = fit_kernel(X, "rbf", {"gamma": "median"}, weights=weights).formula.gamma
    assert result == pytest.approx(wanted, rel=1e-9)


def test_sigma_is_another_name_of_the_bandwidth():
    X = positive_samples()
    distances = pairwise.euclidean_distances(X) ** 2
    np.testing.assert_allclose(fitted_matrix(X, "rbf", {"sigma": 2.1}), np.exp(-distances / (2 * 2.1**2)), rtol=1e-10)


def test_a_rule_is_settled_on_the_training_samples():
    X, new = positive_samples(), 100.0 * positive_samples(seed=1)
    gamma = 1 / (3 * X.var())
    result = matrix(fit_kernel(X, "rbf").cross(new[:4] / 100.0))
    np.testing.assert_allclose(result, pairwise.rbf_kernel(new[:4] / 100.0, X, gamma=gamma), rtol=1e-10)


# --- objects and functions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["dense", "blockwise"])
def test_process_rbf_is_the_gaussian_of_its_length_scale(storage):
    X = positive_samples()
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    result = fitted_matrix(X, process.RBF(length_scale=2.1), storage=storage)
    np.testing.assert_allclose(result, np.exp(-distances / (2 * 2.1**2)), rtol=1e-12)


@pytest.mark.parametrize("storage", ["dense", "blockwise"])
def test_white_noise_is_on_the_diagonal_of_training_samples_alone(storage):
    X = np.repeat(positive_samples(6), 2, axis=0)  # equal samples do not share their noise
    kernel = process.ConstantKernel(2.0) * process.RBF(1.5) + process.WhiteKernel(0.3) + process.DotProduct(0.5)
    fitted = fit_kernel(X, kernel)
    np.testing.assert_allclose(matrix(fitted.operator(storage)), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(fitted.operator(storage).diag(), kernel.diag(X), rtol=1e-12)
    np.testing.assert_allclose(matrix(fitted.cross(X)), kernel(X, X.copy()), rtol=1e-12)
    np.testing.assert_allclose(fitted.cross(X).diag(), kernel.diag(X), rtol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        process.RBF() * process.DotProduct() + process.Matern(),
        process.ExpSineSquared(),  # positive semidefinite on a line, not in space
        process.ConstantKernel(1e-3) * process.RBF() + process.ExpSineSquared(),
        process.ExpSineSquared() + process.ConstantKernel(1e-3) * process.RBF(),
        process.PairwiseKernel(metric="sigmoid"),
    ],
)
def test_a_kernel_object_is_not_called_psd_when_it_is_not(kernel):
    X = np.random.default_rng(0).standard_normal((30, 3))
    smallest = np.linalg.eigvalsh(kernel(X))[0]
    claim = fit_kernel(X, kernel).operator().psd
    assert not (claim and smallest < -1e-8), f"psd={claim}, smallest eigenvalue {smallest:.3g}"


def intersection(X, Y, power=1.0):
    return np.minimum(X[:, None], Y[None]).sum(axis=2) ** power


@pytest.mark.parametrize("storage", ["dense", "blockwise"])
@pytest.mark.parametrize("params", [None, {"power": 2.0}])
def test_a_function_is_called_with_its_parameters(storage, params):
    X, new = positive_samples(), positive_samples(5, seed=1)
    fitted = fit_kernel(X, intersection, params)
    np.testing.assert_allclose(matrix(fitted.operator(storage)), intersection(X, X, **(params or {})), rtol=1e-12)
    np.testing.assert_allclose(matrix(fitted.cross(new)), intersection(new, X, **(params or {})), rtol=1e-12)
    np.testing.assert_allclose(fitted.operator(storage).diag(), X.sum(axis=1) ** (params or {}).get("power", 1.0))


def test_parameters_given_are_left_alone():
    params = {"gamma": "median"}
    fit_kernel(positive_samples(), "rbf", params)
    fit_kernel(positive_samples(), "linear", empty := {}, centre_features=True)
    assert params == {"gamma": "median"}
    assert empty == {}


# --- storage ---------------------------------------------------------------------------------------------------------


def test_the_memory_limit_decides_between_stored_and_blockwise():
    fitted = fit_kernel(positive_samples(200), "rbf")  # 200^2 * 8 bytes are 0.31 MiB
    assert isinstance(fitted.operator(memory_limit=1.0), DenseKernel)
    assert isinstance(fitted.operator(memory_limit=0.3), BlockwiseKernel)
    assert isinstance(fitted.operator("dense", memory_limit=0.0), DenseKernel)
    assert isinstance(fitted.operator("blockwise"), BlockwiseKernel)


def test_linear_kernels_stay_features_unless_there_are_more_of_them_than_samples():
    assert isinstance(fit_kernel(positive_samples(20, 3), "linear").operator(), FeatureKernel)
    assert isinstance(fit_kernel(positive_samples(3, 20), "linear").operator(), DenseKernel)
    assert isinstance(fit_kernel(positive_samples(3, 20), "linear").operator("blockwise"), FeatureKernel)
    assert isinstance(fit_kernel(sp.csr_array(positive_samples(3, 20)), "linear").operator(), FeatureKernel)


# --- new samples -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "read"),
    [*((name, np.asarray) for name in FEATURE_KERNELS), *((name, sp.csr_array) for name in TAKE_SPARSE)],
)
def test_training_samples_given_again_meet_their_own_rows(name, read):
    X = positive_samples()
    fitted = fit_kernel(read(X), name, PARAMS[name])
    op, cross = fitted.operator(), fitted.cross(read(X.copy()))
    np.testing.assert_allclose(matrix(cross), matrix(op), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(cross.diag(), op.diag(), rtol=1e-7)


@pytest.mark.parametrize("read", [np.asarray, sp.csr_array])
def test_rows_of_a_given_kernel_are_those_of_new_samples(read):
    K = fitted_matrix(positive_samples(), "rbf")
    np.testing.assert_array_equal(matrix(fit_kernel(read(K), "precomputed").cross(read(K[:5]))), K[:5])


@pytest.mark.parametrize("weights", ["connectivity", "self_tuning"])
@pytest.mark.parametrize("symmetrize", ["mean", "max"])
def test_training_samples_meet_their_own_rows_of_every_neighbor_graph(weights, symmetrize):
    X = np.random.default_rng(4).standard_normal((30, 20))  # so many features are searched by brute force
    fitted = fit_kernel(X, "nearest_neighbors", {"n_neighbors": 5, "weights": weights, "symmetrize": symmetrize})
    np.testing.assert_allclose(matrix(fitted.cross(X.copy())), matrix(fitted.operator()), rtol=1e-7, atol=1e-12)


def test_training_samples_on_a_grid_meet_their_own_rows_of_the_neighbor_graph():
    X = np.array([[i, j] for i in range(4) for j in range(4)], dtype=float)  # most neighbours are tied
    fitted = fit_kernel(X, "nearest_neighbors", {"n_neighbors": 3})
    np.testing.assert_allclose(matrix(fitted.cross(X.copy())), matrix(fitted.operator()))


@pytest.mark.parametrize("name", sorted(set(FEATURE_KERNELS) - {"nearest_neighbors", "self_tuning"}))
def test_new_samples_meet_the_same_function(name):
    X = positive_samples(25)
    together = fitted_matrix(X, name, PARAMS[name])
    apart = matrix(fit_kernel(X[:20], name, PARAMS[name]).cross(X[20:]))
    np.testing.assert_allclose(apart, together[20:, :20], rtol=1e-12, atol=1e-14)


def test_a_new_sample_far_away_has_finite_affinities():
    X = positive_samples()
    for name in ("self_tuning", "nearest_neighbors"):
        assert np.isfinite(matrix(fit_kernel(X, name, PARAMS[name]).cross(X[:2] + 1e3))).all()


# --- sparse samples --------------------------------------------------------------------------------------------------


def sparse_samples(n=20, d=8, seed=5):
    rng = np.random.default_rng(seed)
    return rng.random((n, d)) * (rng.random((n, d)) < 0.5)


@pytest.mark.parametrize("storage", ["dense", "blockwise"])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("name", TAKE_SPARSE)
def test_sparse_samples_give_the_matrix_of_dense_ones(name, form, storage):
    X, new = sparse_samples(), sparse_samples(4, seed=6)
    on_sparse, on_dense = fit_kernel(form(X), name, PARAMS[name]), fit_kernel(X, name, PARAMS[name])
    result, wanted = on_sparse.operator(storage), on_dense.operator(storage)
    np.testing.assert_allclose(matrix(result), matrix(wanted), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(result.diag(), wanted.diag(), rtol=1e-10)
    np.testing.assert_allclose(matrix(on_sparse.cross(form(new))), matrix(on_dense.cross(new)), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("trained_on", ["sparse", "dense"])
@pytest.mark.parametrize("name", TAKE_SPARSE)
def test_new_samples_may_be_dense_where_the_training_samples_were_sparse_and_the_reverse(name, trained_on):
    X, new = sparse_samples(), sparse_samples(4, seed=6)
    wanted = matrix(fit_kernel(X, name, PARAMS[name]).cross(new))
    read, read_new = (sp.csr_array, np.asarray) if trained_on == "sparse" else (np.asarray, sp.csr_array)
    result = matrix(fit_kernel(read(X), name, PARAMS[name]).cross(read_new(new)))
    np.testing.assert_allclose(result, wanted, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("kernel", ["chi2", process.RBF()])
def test_kernels_of_dense_samples_refuse_sparse_ones(kernel):
    with pytest.raises(KernelError, match=r"takes dense features.*toarray"):
        fit_kernel(sp.csr_array(positive_samples()), kernel)


def test_a_sparse_matrix_given_as_kernel_stays_sparse():
    K = sp.csr_array(np.eye(4) + np.eye(4)[::-1])
    op = fit_kernel(K, "precomputed").operator()
    assert isinstance(op, GraphKernel)
    np.testing.assert_array_equal(matrix(op), K.toarray())


def test_a_zero_sample_is_far_from_all_others_in_cosine_distance_sparse_or_dense():
    X = sparse_samples()
    X[3] = 0.0
    params = {"metric": "cosine", "n_neighbors": 3}
    result, wanted = fitted_matrix(X, "self_tuning", params), fitted_matrix(sp.csr_array(X), "self_tuning", params)
    np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=1e-10)


# --- degenerate samples ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FEATURE_KERNELS)
def test_duplicates_and_constant_features_give_finite_symmetric_kernels(name):
    X = np.repeat(positive_samples(4), 6, axis=0)
    X[:, 1] = 0.7
    fitted = fit_kernel(X, name, PARAMS[name])
    K = matrix(fitted.operator())
    assert np.isfinite(K).all()
    np.testing.assert_allclose(K, K.T, rtol=1e-14)
    assert np.isfinite(matrix(fitted.cross(X[::3]))).all()


@pytest.mark.parametrize("name", ["self_tuning", "rbf", "laplacian", "chi2"])
def test_equal_samples_have_affinity_one(name):
    X = np.repeat(positive_samples(4), 6, axis=0)
    np.testing.assert_allclose(fitted_matrix(X, name, PARAMS[name])[:6, :6], 1.0, rtol=1e-12)


def test_sparse_samples_that_differ_by_rounding_have_affinity_one_and_others_zero():
    # Their distances are below the rounding of squared lengths, and so are their scales.
    rng = np.random.default_rng(0)
    X = np.repeat(0.1 + rng.random((3, 12)), 6, axis=0)
    X *= 1.0 + np.finfo(float).eps * rng.integers(-2, 3, X.shape)
    K = fitted_matrix(sp.csr_array(X), "self_tuning", {"n_neighbors": 2})
    np.testing.assert_array_equal(K, np.kron(np.eye(3), np.ones((6, 6))))


@pytest.mark.parametrize("weights", ["connectivity", "self_tuning"])
def test_a_sample_is_its_own_neighbour_even_among_many_duplicates(weights):
    X = np.repeat(positive_samples(3), 8, axis=0)
    fitted = fit_kernel(X, "nearest_neighbors", {"n_neighbors": 2, "weights": weights})
    np.testing.assert_array_equal(fitted.operator().diag(), 1.0)
    np.testing.assert_array_equal(fitted.cross(X).diag(), 1.0)


@quick
@given(n=st.integers(8, 40), d=st.integers(1, 5), value=st.sampled_from([0.1, 0.7, 1 / 3]), sparse=st.booleans())
def test_samples_that_all_agree_have_affinity_one_under_both_rules(n, d, value, sparse):
    X = np.full((n, d), value)
    X = sp.csr_array(X) if sparse else X
    for rule in ("scale", "median"):
        np.testing.assert_allclose(fitted_matrix(X, "rbf", {"gamma": rule}), 1.0, rtol=1e-9)


@pytest.mark.parametrize("name", FEATURE_KERNELS)
def test_a_zero_sample_gives_no_nan(name):
    X = positive_samples()
    X[0] = 0.0
    assert np.isfinite(fitted_matrix(X, name, PARAMS[name])).all()


def test_normalized_poly_of_a_zero_sample_without_constant_is_zero():
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    op = fit_kernel(X, "normalized_poly", {"degree": 2, "t": 0.0}).operator()
    np.testing.assert_allclose(matrix(op), [[0.0, 0.0], [0.0, 1.0]], atol=1e-15)


def test_a_large_offset_leaves_rbf_accurate():
    rng = np.random.default_rng(6)
    X, new = rng.standard_normal((20, 20)) + 1e6, rng.standard_normal((5, 20)) + 1e6
    near, near_new = X - 1e6, new - 1e6  # exact: what the shifted numbers really hold
    fitted = fit_kernel(X, "rbf", {"gamma": 0.05})
    np.testing.assert_allclose(matrix(fitted.operator()), pairwise.rbf_kernel(near, gamma=0.05), rtol=1e-8)
    np.testing.assert_allclose(matrix(fitted.cross(new)), pairwise.rbf_kernel(near_new, near, gamma=0.05), rtol=1e-8)


@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_a_large_offset_leaves_distances_of_centred_features_accurate(name):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((20, 3)) + 1e6
    fitted = fit_kernel(X, name, centre_features=True)
    K, diag = matrix(fitted.operator()), fitted.operator().diag()
    features = X - 1e6 if name == "linear" else X / np.linalg.norm(X, axis=1, keepdims=True)
    wanted = ((features[:, None] - features[None]) ** 2).sum(axis=2)
    result = diag[:, None] + diag[None] - 2 * K
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-8 * wanted.max())
    again = matrix(fitted.cross(X[:4].copy()))
    np.testing.assert_allclose(again, K[:4], rtol=0, atol=1e-8 * np.abs(K).max())


def test_a_large_offset_leaves_self_tuning_accurate_where_neighbours_are_searched_by_brute_force():
    X = np.random.default_rng(8).standard_normal((60, 20)) + 1e6
    np.testing.assert_allclose(fitted_matrix(X, "self_tuning"), fitted_matrix(X - 1e6, "self_tuning"), rtol=1e-6)


# --- what cannot be used is refused with a sentence ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "params", "says"),
    [
        ("gauss", None, r"kernel='gauss' is unknown.*rbf"),
        (5, None, r"kernel=5 is not valid"),
        (None, None, r"kernel=None is not valid"),
        (process.RBF, None, r"kernel=.*RBF"),  # the class, where an object was meant
        ("rbf", {"gama": 1.0}, r"kernel_params holds gama, unknown to kernel='rbf'.*gamma, sigma"),
        ("linear", {"gamma": 1.0}, r"gamma, unknown to kernel='linear': it takes none"),
        (process.RBF(), {"gamma": 1.0}, r"gamma, unknown to a kernel object"),
        ("rbf", {"gamma": 1.0, "sigma": 2.0}, r"gamma=1.0 and sigma=2.0; give one"),
        ("rbf", {"gamma": -1.0}, r"gamma=-1.0.*positive"),
        ("rbf", {"gamma": 0}, r"gamma=0.*positive"),
        ("rbf", {"gamma": np.nan}, r"gamma=nan.*positive"),
        ("rbf", {"gamma": np.inf}, r"gamma=inf.*positive"),
        ("rbf", {"gamma": "auto"}, r"gamma='auto' is unknown.*'scale' or 'median'"),
        ("rbf", {"gamma": np.array([1.0, 2.0])}, r"gamma=.*positive"),
        ("rbf", {"gamma": True}, r"gamma=True.*positive"),
        ("rbf", {"sigma": -2.0}, r"sigma=-2.0.*positive"),
        ("rbf", {"sigma": "scale"}, r"sigma='scale'.*positive"),
        ("laplacian", {"gamma": -0.5}, r"gamma=-0.5.*positive"),
        ("chi2", {"gamma": -0.5}, r"gamma=-0.5.*positive"),
        ("poly", {"degree": 0}, r"degree=0.*positive"),
        ("poly", {"degree": 2.5}, r"degree=2.5"),  # a negative base has no such power
        ("poly", {"coef0": np.nan}, r"coef0=nan"),
        ("poly", {"coef0": "one"}, r"coef0='one'"),
        ("sigmoid", {"coef0": np.inf}, r"coef0=inf"),
        ("normalized_poly", {"degree": -2}, r"degree=-2.*positive"),
        ("normalized_poly", {"degree": 2.5}, r"degree=2.5"),
        ("normalized_poly", {"t": np.nan}, r"t=nan"),
        ("self_tuning", {"n_neighbors": 20}, r"n_neighbors=20.*below the number of samples, 20"),
        ("nearest_neighbors", {"n_neighbors": 25}, r"n_neighbors=25.*below the number of samples, 20"),
        ("nearest_neighbors", {"n_neighbors": 0}, r"n_neighbors=0.*at least 1"),
        ("nearest_neighbors", {"n_neighbors": 2.5}, r"n_neighbors=2.5"),
        ("self_tuning", {"n_neighbors": "5"}, r"n_neighbors='5'"),
        ("nearest_neighbors", {"weights": "distance"}, r"weights='distance'.*'connectivity', 'self_tuning'"),
        ("nearest_neighbors", {"symmetrize": "min"}, r"symmetrize='min'.*'mean', 'max'"),
    ],
)
def test_bad_specifications_are_refused_by_name_and_value(kernel, params, says):
    X = np.random.default_rng(9).standard_normal((20, 3))
    with pytest.raises(ParameterError, match=says):
        fit_kernel(X, kernel, params)


@pytest.mark.parametrize("metric", ["nonsense", 3])
@pytest.mark.parametrize("name", ["self_tuning", "nearest_neighbors"])
def test_an_unknown_metric_is_refused_by_name(name, metric):
    with pytest.raises(ValueError, match="metric"):
        fit_kernel(positive_samples(), name, {"metric": metric})


@pytest.mark.parametrize("when", ["training", "new"])
def test_chi2_refuses_negative_features_and_shows_the_worst(when):
    X, bad = positive_samples(), positive_samples()
    bad[3, 1] = -0.25
    with pytest.raises(KernelError, match=r"chi2.*>= 0.*-0.25"):
        fit_kernel(bad, "chi2") if when == "training" else fit_kernel(X, "chi2").cross(bad)


@pytest.mark.parametrize("storage", ["dense", "blockwise"])
def test_a_function_that_returns_the_wrong_shape_is_refused(storage):
    fitted = fit_kernel(positive_samples(), lambda X, Y: np.ones(len(X)))
    with pytest.raises(KernelError, match=r"callable kernel returned shape \(20,\) for 20 and 20 samples"):
        fitted.operator(storage).matmat(np.ones((20, 1)))


@pytest.mark.parametrize("storage", ["dense", "blockwise"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_function_that_returns_non_finite_values_is_refused(storage, value):
    fitted = fit_kernel(positive_samples(), lambda X, Y: np.full((len(X), len(Y)), value))
    with pytest.raises(KernelError, match="callable kernel returned NaN or infinite"):
        fitted.operator(storage).matmat(np.ones((20, 1)))


def test_a_function_that_is_not_symmetric_is_refused():
    fitted = fit_kernel(positive_samples(), lambda X, Y: X[:, :1] - 2 * Y[:, :1].T)
    with pytest.raises(KernelError, match="callable kernel is not symmetric"):
        fitted.operator()


@pytest.mark.parametrize("K", [np.ones((3, 2)), np.triu(np.ones((3, 3))), np.full((3, 3), np.nan)])
def test_a_given_matrix_that_is_no_kernel_is_refused(K):
    with pytest.raises(KernelError):
        fit_kernel(K, "precomputed").operator()


# --- approximations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "chi2"])
def test_nystroem_with_every_sample_reproduces_the_kernel(name):
    X = positive_samples()
    wanted = fit_kernel(X, name, PARAMS[name])
    result = approximate_kernel(X, name, PARAMS[name], method="nystroem", n_components=len(X), random_state=0)
    assert isinstance(result.operator("blockwise"), FeatureKernel)
    np.testing.assert_allclose(matrix(result.operator()), matrix(wanted.operator()), atol=1e-6)
    new = positive_samples(5, seed=1)
    assert result.cross(new).shape == (5, 20)
    np.testing.assert_allclose(matrix(result.cross(X)), matrix(result.operator()), atol=1e-6)


@pytest.mark.parametrize(("limit", "times"), [(1.0, 2), (np.inf, 0)])
def test_what_features_were_computed_from_is_given_back_where_it_is_a_part_of_the_limit(limit, times, monkeypatch):
    returned = []
    monkeypatch.setattr(fitting, "return_freed_memory", lambda: returned.append(True))
    X = np.random.default_rng(0).standard_normal((300, 3))
    approximate_kernel(X, "rbf", None, method="nystroem", n_components=60, random_state=0, memory_limit=limit)
    assert len(returned) == times


def test_nystroem_uses_no_more_components_than_samples():
    X = positive_samples(10)
    result = approximate_kernel(X, "rbf", None, method="nystroem", n_components=500, random_state=0)
    np.testing.assert_allclose(matrix(result.operator()), fitted_matrix(X, "rbf"), atol=1e-6)


def test_random_features_come_close_to_the_gaussian():
    X = positive_samples(15)
    result = approximate_kernel(X, "rbf", {"gamma": 2.0}, method="random_features", n_components=4000, random_state=0)
    # A mean of 4000 cosines of variance at most 1 has standard error 0.016; five of those.
    np.testing.assert_allclose(matrix(result.operator()), fitted_matrix(X, "rbf", {"gamma": 2.0}), atol=0.08)


@pytest.mark.parametrize("method", ["nystroem", "random_features"])
def test_approximations_follow_their_seed(method):
    options = {"method": method, "n_components": 6}
    first, again, other = (
        matrix(approximate_kernel(positive_samples(), "rbf", None, random_state=seed, **options).operator())
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-6


@pytest.mark.parametrize(
    ("method", "kernel"),
    [("nystroem", "linear"), ("nystroem", "self_tuning"), ("random_features", "laplacian")],
)
def test_an_approximation_that_does_not_exist_is_refused_by_name(method, kernel):
    with pytest.raises(ParameterError, match=f"approximation='{method}'.*kernel='{kernel}'"):
        approximate_kernel(positive_samples(), kernel, None, method=method, n_components=5)
