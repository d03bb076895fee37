"""The sharpness beta_0: by definition, by one product, from edges, and where it has no value."""

import numpy as np
import pytest
import scipy.sparse as sp

from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.divergences import DivergenceMatrix, KernelDivergence
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.sharpness import feature_space_beta, graph_beta, kernel_beta, reference_beta
from tests.reference import convex_mixture as oracle

X = np.random.default_rng(0).normal(size=(9, 2))
K = X @ X.T


def test_equal_shares_give_n_squared_log_n_over_the_sum_of_divergences():
    D = oracle.divergences("sqeuclidean", X)
    assert reference_beta(DivergenceMatrix(D), np.full(9, 1 / 9)) == pytest.approx(81 * np.log(9) / D.sum())


def test_samples_without_a_share_do_not_count():
    shares = np.array([0.5, 0.25, 0.25, 0, 0, 0, 0, 0, 0])
    D = oracle.divergences("sqeuclidean", X[:3])
    entropy = 0.5 * np.log(2) + 0.5 * np.log(4)
    expected = 3 * entropy / (shares[:3] @ D.sum(axis=1))
    assert reference_beta(KernelDivergence(DenseKernel(K)), shares) == pytest.approx(expected)
    assert kernel_beta(DenseKernel(K), shares) == pytest.approx(expected)
    assert graph_beta(GraphKernel(sp.csr_array(K)), shares) == pytest.approx(expected)


def test_a_single_sample_equal_samples_and_infinite_divergences_have_no_beta_of_their_own():
    assert reference_beta(DivergenceMatrix(np.ones((2, 2))), np.array([0.0, 1.0])) == np.inf
    assert reference_beta(DivergenceMatrix(np.zeros((2, 2))), np.full(2, 0.5)) == np.inf
    assert reference_beta(DivergenceMatrix(np.array([[0.0, np.inf], [1.0, 0.0]])), np.full(2, 0.5)) == 0.0


@pytest.mark.parametrize("psd", [True, None])
def test_a_kernel_has_a_finite_beta_even_where_all_samples_are_equal(psd):
    op = DenseKernel(np.full((3, 3), 4.0), psd=psd)
    assert feature_space_beta(op, np.full(3, 1 / 3)) == 0.25
    assert feature_space_beta(DenseKernel(np.zeros((3, 3)), psd=psd), np.full(3, 1 / 3)) == 1.0


def test_negative_squares_of_an_indefinite_kernel_count_as_zero():
    indefinite = np.array([[1.0, 3.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    shares = np.full(3, 1 / 3)
    expected = 9 * np.log(3) / 8.0  # two pairs, counted both ways, have a square of 2; the others 0
    assert feature_space_beta(DenseKernel(indefinite), shares) == pytest.approx(expected)
    assert feature_space_beta(GraphKernel(sp.csr_array(indefinite)), shares) == pytest.approx(expected)
