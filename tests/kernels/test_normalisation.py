"""Mean distances in feature space and the kernels divided by them, against loops over all pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from kernelweave.foundation.errors import KernelError
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.transforms import feature_space_variance, mean_squared_distance, unit_distance, unit_variance
from tests.strategies import psd_kernels, samples

quick = settings(max_examples=30, deadline=None)
ALL = slice(None)


def looped_distance(K):
    """Return the mean over all ordered pairs, i = j included, of K_ii - 2 K_ij + K_jj."""
    n = len(K)
    return sum(K[i, i] - 2 * K[i, j] + K[j, j] for i in range(n) for j in range(n)) / n**2


def looped_variance(K):
    """Return the mean squared distance of the samples to their mean, by sums over the diagonal and all entries."""
    n = len(K)
    return sum(K[i, i] for i in range(n)) / n - sum(K[i, j] for i in range(n) for j in range(n)) / n**2


def test_two_points_two_apart_have_mean_squared_distance_two():
    op = FeatureKernel(np.array([[-1.0], [1.0]]))  # pairs: 0, 4, 4, 0
    assert mean_squared_distance(op) == pytest.approx(2.0)
    assert feature_space_variance(op) == pytest.approx(1.0)  # each point lies 1 from the mean


@quick
@given(K=psd_kernels())
def test_mean_squared_distance_equals_its_loop(K):
    scale = np.abs(K).max()
    assert mean_squared_distance(DenseKernel(K)) == pytest.approx(looped_distance(K), abs=1e-12 * scale)
    assert feature_space_variance(DenseKernel(K)) == pytest.approx(looped_variance(K), abs=1e-12 * scale)
    assert mean_squared_distance(GraphKernel(sp.csr_array(K))) == pytest.approx(looped_distance(K), abs=1e-12 * scale)


@quick
@given(K=psd_kernels())
def test_unit_distance_makes_the_mean_squared_distance_one(K):
    scaled = unit_distance(DenseKernel(K, psd=True))
    assert mean_squared_distance(scaled) == pytest.approx(1.0)
    np.testing.assert_allclose(scaled.block(ALL, ALL), K / looped_distance(K), rtol=1e-9)
    assert scaled.psd is True


@quick
@given(K=psd_kernels())
def test_unit_variance_divides_by_mean_diagonal_less_mean_entry(K):
    scaled = unit_variance(DenseKernel(K, psd=True))
    assert feature_space_variance(scaled) == pytest.approx(1.0)
    np.testing.assert_allclose(scaled.block(ALL, ALL), K / looped_variance(K), rtol=1e-9)


@quick
@given(X=samples(kinds=("general", "grid", "constant feature")))
def test_variance_of_linear_kernels_is_that_of_the_features(X):
    assert feature_space_variance(FeatureKernel(X)) == pytest.approx(X.var(axis=0).sum(), abs=1e-12)


@pytest.mark.parametrize("factor", [1e-6, 3.0, 1e6])
def test_normalisation_forgets_the_scale_of_the_kernel(factor):
    K = fit_kernel(np.random.default_rng(0).random((9, 2)), "rbf").operator().block(ALL, ALL)
    for normalise in (unit_distance, unit_variance):
        once, again = normalise(DenseKernel(K)), normalise(DenseKernel(factor * K))
        np.testing.assert_allclose(again.block(ALL, ALL), once.block(ALL, ALL), rtol=1e-12)


@pytest.mark.parametrize("normalise", [unit_distance, unit_variance])
def test_samples_that_look_alike_cannot_be_normalised(normalise):
    with pytest.raises(KernelError, match=r"spread 0 in feature space.*look the same"):
        normalise(DenseKernel(np.ones((4, 4))))


@pytest.mark.parametrize("normalise", [unit_distance, unit_variance])
def test_new_samples_are_divided_by_the_spread_of_the_training_samples(normalise):
    rng = np.random.default_rng(1)
    X, new = rng.random((9, 2)), rng.random((4, 2))
    trained = normalise(FeatureKernel(X))
    cross = trained.cross(FeatureKernel(new, X))
    np.testing.assert_allclose(cross.block(ALL, ALL), trained.factor * new @ X.T, rtol=1e-12)
