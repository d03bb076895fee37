import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.foundation.errors import KernelError, ParameterError
from kernelweave.kernels.dense import DenseCross, DenseKernel
from kernelweave.metrics import cluster_variances, max_variance, sum_of_variances
from tests.reference import metrics as oracle

quick = settings(max_examples=30, deadline=None)


def case(seed, n, k):
    """Draw vectors with many zeros, labels and weights, some of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * (rng.random((n, 3)) < 0.6)
    weights = rng.random(n) * (rng.random(n) < 0.8)
    weights[0] = 1.0  # never all of them
    return X, rng.integers(k, size=n), weights


cases = given(seed=st.integers(0, 2**16), n=st.integers(1, 25), k=st.integers(1, 5))


@quick
@cases
def test_every_form_of_input_gives_the_scatter_around_the_means(seed, n, k):
    X, labels, weights = case(seed, n, k)
    K = X @ X.T
    expected = oracle.cluster_variances(X, labels, weights)
    for form in (K, sp.csr_array(K), sp.coo_matrix(K), DenseKernel(K)):
        assert cluster_variances(form, labels, sample_weight=weights) == pytest.approx(expected, abs=1e-9)
    for form in (X, sp.csc_array(X), sp.coo_matrix(X)):
        result = cluster_variances(form, labels, kernel="linear", sample_weight=weights)
        assert result == pytest.approx(expected, abs=1e-9)


@quick
@cases
def test_a_whole_weight_equals_repetition(seed, n, k):
    X, labels, _ = case(seed, n, k)
    times = np.random.default_rng(seed).integers(1, 4, size=n)
    repeated = np.repeat(X, times, axis=0)
    weighted = sum_of_variances(X @ X.T, labels, sample_weight=times)
    assert weighted == pytest.approx(sum_of_variances(repeated @ repeated.T, np.repeat(labels, times)), abs=1e-9)


@quick
@cases
def test_renaming_and_reordering_leave_sum_and_maximum(seed, n, k):
    X, labels, weights = case(seed, n, k)
    order = np.random.default_rng(seed).permutation(n)
    words = np.array(["oak", "elm", "ash", "fir", "yew"])
    moved = X[order] @ X[order].T
    for measure in (sum_of_variances, max_variance):
        result = measure(moved, words[labels[order]], sample_weight=weights[order])
        assert result == pytest.approx(measure(X @ X.T, labels, sample_weight=weights), abs=1e-9)


def test_weighted_pair_has_the_scatter_worked_out_by_hand():
    # 0 with weight 3 and 4 with weight 1: mean 1, scatter 3 * 1 + 1 * 9 = 12
    X = np.array([[0.0], [4.0]])
    assert cluster_variances(X @ X.T, [0, 0], sample_weight=[3, 1]) == pytest.approx([12.0])


def test_sum_and_maximum_are_those_of_the_clusters():
    X = np.array([[0.0], [2.0], [10.0], [14.0]])  # scatter 2 and 8
    assert sum_of_variances(X, [0, 0, 1, 1], kernel="linear") == 10.0
    assert max_variance(X, [0, 0, 1, 1], kernel="linear") == 8.0


def test_clusters_come_in_sorted_order_of_their_labels():
    X = np.array([[0.0], [2.0], [10.0], [14.0]])
    assert cluster_variances(X, ["b", "b", "a", "a"], kernel="linear").tolist() == [8.0, 2.0]


def test_empty_and_weightless_clusters_have_no_scatter():
    X = np.array([[0.0], [2.0], [10.0], [14.0]])
    result = cluster_variances(X @ X.T, [0, 0, 3, 3], n_clusters=5, sample_weight=[1, 1, 0, 0])
    assert result.tolist() == [2.0, 0.0, 0.0, 0.0, 0.0]


def test_one_sample_per_cluster_has_no_scatter():
    X = np.arange(12.0).reshape(4, 3)
    assert sum_of_variances(X @ X.T, [3, 1, 0, 2]) == 0.0


def test_an_indefinite_kernel_keeps_its_negative_scatter():
    # a single edge: 0 + 0 - (1 + 1) / 2
    assert sum_of_variances([[0, 1], [1, 0]], [0, 0]) == -1.0


def test_vectors_far_from_the_origin_keep_their_digits():
    X = np.array([[0.0], [2.0]]) + 1e9
    assert sum_of_variances(X, [0, 0], kernel="linear") == 2.0
    assert sum_of_variances(sp.csr_array(X), [0, 0], kernel="linear") == 2.0


def test_single_precision_kernels_are_summed_in_double_precision():
    n = 3000
    K = np.full((n, n), np.float32(0.1))
    assert sum_of_variances(K, np.zeros(n, dtype=int)) == pytest.approx(0.0, abs=1e-9)


def test_repeated_sparse_entries_add_up_and_stay_in_place():
    K = sp.csr_array((np.array([1.0, 1.0, 2.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert sum_of_variances(K, [0, 0]) == pytest.approx(4 - 4 / 2)
    assert K.nnz == 3


def test_arguments_are_left_as_they_were():
    X = np.array([[0.0, 1.0], [2.0, 0.0], [5.0, 5.0]])
    K, labels, weights = X @ X.T, np.array([0, 0, 1]), np.array([1.0, 2.0, 3.0])
    arguments = (X, K, labels, weights)
    before = [array.copy() for array in arguments]
    for array in arguments:
        array.setflags(write=False)
    by_matrix = cluster_variances(K, labels, sample_weight=weights)
    by_name = cluster_variances(X, labels, kernel="linear", sample_weight=weights)
    np.testing.assert_allclose(by_matrix, by_name, atol=1e-12)
    for array, copy in zip(arguments, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(
    ("K", "fault"),
    [
        (np.ones((3, 2)), r'X must be a square kernel matrix.*\(3, 2\).*kernel="linear"'),
        (np.ones(3), r"X must be a square kernel matrix.*\(3,\)"),
        (object(), "X holds values of type object"),
        ([[1, 2, 0], [0, 1, 0], [0, 0, 1]], r"X is not symmetric: X\[0, 1\] = 2 but X\[1, 0\] = 0.*\(X \+ X.T\) / 2"),
        (sp.csr_array([[1, 2, 0], [0, 1, 0], [0, 0, 1]]), "X is not symmetric"),
        ([[1, 0, 0], [0, np.nan, 0], [0, 0, 1]], "X holds NaN or infinity at row 1, column 1"),
        (sp.csr_array([[1, 0, 0], [0, np.inf, 0], [0, 0, 1]]), "X holds NaN or infinity at row 1, column 1"),
        (np.eye(3) * 1j, "X holds values of type complex128"),
    ],
)
def test_matrices_that_are_no_kernels_are_refused(K, fault):
    with pytest.raises(KernelError, match=fault):
        cluster_variances(K, [0, 0, 1])


def test_rounding_apart_is_no_asymmetry():
    K = np.eye(3)
    K[0, 1] = 1e-12
    assert sum_of_variances(K, [0, 0, 1]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"labels": [0, 1]}, "labels has 2 entries but X describes 3 samples"),
        ({"labels": [0, 1], "kernel": "linear"}, "labels has 2 entries but X describes 3 samples"),
        ({"sample_weight": [1, 1]}, r"sample_weight.shape == \(2,\), expected \(3,\)"),
        ({"sample_weight": [1, -1, 1]}, r"sample_weight\[1\] = -1.0"),
        ({"sample_weight": [1, np.inf, 1]}, r"sample_weight\[1\] = inf"),
        ({"n_clusters": 1}, "labels holds 1, outside 0..0 for n_clusters=1"),
        ({"n_clusters": 0}, "n_clusters=0 cannot be used"),
        ({"n_clusters": 2.0}, "n_clusters=2.0 cannot be used"),
        ({"labels": ["a", "b", "b"], "n_clusters": 2}, "labels holds .*'a'.* while n_clusters=2"),
        ({"kernel": "rbf"}, "kernel='rbf' cannot be used.*precomputed"),
    ],
)
def test_options_that_do_not_fit_are_named(options, fault):
    options = {"labels": [0, 1, 1], **options}
    with pytest.raises(ParameterError, match=fault):
        cluster_variances(np.eye(3), options.pop("labels"), **options)


def test_an_operator_of_another_size_is_refused():
    with pytest.raises(ParameterError, match="labels has 2 entries but X describes 3 samples"):
        cluster_variances(DenseKernel(np.eye(3)), [0, 1])


def test_an_operator_between_two_sets_of_samples_is_refused():
    cross = DenseCross(np.ones((3, 2)))
    with pytest.raises(KernelError, match=r"X is an operator of shape \(3, 2\)"):
        cluster_variances(cross, [0, 1, 1])
