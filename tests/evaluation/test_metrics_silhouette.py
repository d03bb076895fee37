import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import silhouette_samples, silhouette_score

from kernelweave.evaluation.metrics import checks
from kernelweave.foundation.errors import KernelError, ParameterError
from kernelweave.kernels.dense import DenseKernel
from kernelweave.metrics import kernel_silhouette, kernel_silhouette_samples
from tests.reference import metrics as oracle

quick = settings(max_examples=30, deadline=None)
cases = given(seed=st.integers(0, 2**16), n=st.integers(3, 18), k=st.integers(2, 5))


def case(seed, n, k):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    labels = rng.integers(k, size=n)
    labels[:2] = 0, 1  # never a single cluster
    return X, labels


@quick
@cases
def test_every_form_of_kernel_gives_the_silhouette_of_the_definition(seed, n, k):
    X, labels = case(seed, n, k)
    K = X @ X.T
    expected = oracle.kernel_silhouette_samples(K, labels)
    for form in (K, sp.csr_array(K), sp.coo_matrix(K), DenseKernel(K)):
        assert kernel_silhouette_samples(form, labels) == pytest.approx(expected, abs=1e-7)
        assert kernel_silhouette(form, labels) == pytest.approx(np.mean(expected), abs=1e-7)


@quick
@cases
def test_linear_kernel_agrees_with_scikit_learn_on_euclidean_distances(seed, n, k):
    X, labels = case(seed, n, k)
    if len(set(labels)) == n:
        return  # scikit-learn refuses one sample per cluster
    assert kernel_silhouette_samples(X @ X.T, labels) == pytest.approx(silhouette_samples(X, labels), abs=1e-6)


def test_rbf_kernel_agrees_with_scikit_learn_on_precomputed_distances():
    rng = np.random.default_rng(3)
    X, labels = rng.standard_normal((60, 4)), rng.integers(4, size=60)
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    D = np.sqrt(np.maximum(2 - 2 * K, 0))
    np.fill_diagonal(D, 0)
    assert kernel_silhouette(K, labels) == pytest.approx(silhouette_score(D, labels, metric="precomputed"))


@quick
@cases
def test_renaming_and_reordering_change_nothing(seed, n, k):
    X, labels = case(seed, n, k)
    order = np.random.default_rng(seed).permutation(n)
    words = np.array(["oak", "elm", "ash", "fir", "yew"])
    moved = kernel_silhouette(X[order] @ X[order].T, words[labels[order]])
    assert moved == pytest.approx(kernel_silhouette(X @ X.T, labels), abs=1e-7)


@quick
@cases
def test_small_row_blocks_give_the_same_values(seed, n, k):
    X, labels = case(seed, n, k)
    whole = kernel_silhouette_samples(X @ X.T, labels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "BLOCK_ELEMENTS", 2 * n)
        assert kernel_silhouette_samples(X @ X.T, labels) == pytest.approx(whole, abs=1e-12)


def test_two_pairs_on_a_line_have_the_values_worked_out_by_hand():
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    # outer points: a = 1, b = (10 + 11) / 2; inner points: a = 1, b = (9 + 10) / 2
    outer, inner = 1 - 1 / 10.5, 1 - 1 / 9.5
    assert kernel_silhouette_samples(X @ X.T, [0, 0, 1, 1]) == pytest.approx([outer, inner, inner, outer])


def test_the_only_sample_of_a_cluster_scores_zero():
    X = np.array([[0.0], [1.0], [10.0]])
    assert kernel_silhouette_samples(X @ X.T, [0, 0, 1])[2] == 0.0
    assert kernel_silhouette(X @ X.T, [0, 1, 2]) == 0.0


def test_coinciding_samples_score_zero():
    assert kernel_silhouette_samples(np.ones((4, 4)), [0, 0, 1, 1]).tolist() == [0, 0, 0, 0]


def test_negative_squared_distances_count_as_zero():
    # d^2 within pairs is 0 + 0 - 2 * 1 < 0, across pairs 0 + 0 + 2 * 2
    K = np.kron(np.array([[1.0, -2.0], [-2.0, 1.0]]), np.ones((2, 2))) - np.eye(4)
    assert kernel_silhouette(K, [0, 0, 1, 1]) == 1.0


def test_a_block_that_rounds_its_diagonal_otherwise_changes_nothing():
    K = np.ones((2, 2)) - 1e-15
    rounded = DenseKernel(K)
    rounded.diag = lambda: np.ones(2)
    assert kernel_silhouette_samples(rounded, [0, 1]).tolist() == [0, 0]


def test_a_full_draw_is_the_exact_mean_and_a_part_is_a_mean_of_the_same_values():
    X, labels = case(5, 40, 3)
    K = X @ X.T
    values = kernel_silhouette_samples(K, labels)
    assert kernel_silhouette(K, labels, sample_size=40, random_state=0) == pytest.approx(values.mean())
    single = kernel_silhouette(K, labels, sample_size=1, random_state=0)
    assert np.abs(values - single).min() < 1e-12


def test_draws_repeat_with_their_seed_and_average_to_the_exact_mean():
    X, labels = case(7, 40, 3)
    K = X @ X.T
    draws = [kernel_silhouette(K, labels, sample_size=10, random_state=seed) for seed in range(200)]
    assert draws[3] == kernel_silhouette(K, labels, sample_size=10, random_state=3)
    assert np.mean(draws) == pytest.approx(kernel_silhouette(K, labels), abs=0.03)


def test_no_second_square_array_is_made():
    n = 2500
    x = np.linspace(0, 1, n)
    K, labels = np.outer(x, x), np.arange(n) % 3
    tracemalloc.start()
    kernel_silhouette(K, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < K.nbytes / 2


def test_a_read_only_kernel_is_enough():
    K = np.eye(4)
    K.setflags(write=False)
    assert kernel_silhouette(K, [0, 0, 1, 1]) == pytest.approx(0.0)  # all distances are equal
    assert kernel_silhouette(DenseKernel(K), [0, 0, 1, 1]) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("K", "labels", "error", "fault"),
    [
        (np.eye(3), [0, 0, 0], ParameterError, "labels puts all samples in one cluster"),
        (np.eye(3), [0, 1], ParameterError, "labels has 2 entries but K describes 3 samples"),
        (np.ones((3, 2)), [0, 0, 1], KernelError, r"K must be a square kernel matrix.*\(3, 2\)"),
        ([[1, 0, 0], [1, 1, 0], [0, 0, 1]], [0, 0, 1], KernelError, "K is not symmetric"),
        (np.full((3, 3), np.inf), [0, 0, 1], KernelError, "K holds NaN or infinity at row 0, column 0"),
    ],
)
def test_input_that_cannot_be_used_is_named(K, labels, error, fault):
    with pytest.raises(error, match=fault):
        kernel_silhouette(K, labels)


@pytest.mark.parametrize("size", [0, 4, 1.5, True])
def test_a_draw_larger_than_the_data_or_empty_is_refused(size):
    with pytest.raises(ParameterError, match=r"sample_size=.*from 1 to 3"):
        kernel_silhouette(np.eye(3), [0, 0, 1], sample_size=size)
