"""Proofs that a kernel has a negative eigenvalue."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from kernelweave.kernels.definiteness import negative_eigenvalue
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.transforms import ScaledKernel
from tests.strategies import indefinite_kernels, psd_kernels

quick = settings(max_examples=30, deadline=None)


@quick
@given(K=indefinite_kernels())
def test_a_planted_negative_eigenvalue_is_found(K):
    smallest = np.linalg.eigvalsh(K)[0]
    assert negative_eigenvalue(DenseKernel(K)) == pytest.approx(smallest, rel=1e-6)
    assert negative_eigenvalue(GraphKernel(sp.csr_array(K))) == pytest.approx(smallest, rel=1e-6)
    assert negative_eigenvalue(DenseKernel(K.astype(np.float32))) == pytest.approx(smallest, rel=1e-3)


@quick
@given(K=psd_kernels())
def test_nothing_is_found_in_a_positive_semidefinite_kernel(K):
    assert negative_eigenvalue(DenseKernel(K)) is None
    assert negative_eigenvalue(DenseKernel(K.astype(np.float32))) is None
    assert negative_eigenvalue(GraphKernel(sp.csr_array(K))) is None
    assert negative_eigenvalue(ScaledKernel(FeatureKernel(K), 0.5)) is None


def hidden_negative(n=700, n_rows=400):
    """Return a kernel with eigenvalues 1 (fifty times), 0 and -0.5, the last on samples outside the block looked at."""
    rng = np.random.default_rng(7)
    looked_at = np.unique(np.linspace(0, n - 1, n_rows).astype(np.intp))
    directions = rng.standard_normal((n, 51))
    directions[looked_at, 0] = 0.0
    basis = np.linalg.qr(directions)[0]
    K = (basis * np.array([-0.5] + [1.0] * 50)) @ basis.T
    return (K + K.T) / 2


@pytest.mark.parametrize("read", [DenseKernel, lambda K: GraphKernel(sp.csr_array(K))], ids=["dense", "graph"])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_negative_eigenvalue_outside_the_block_is_found_by_products_at_any_scale(scale, read):
    result = negative_eigenvalue(read(scale * hidden_negative()))
    assert result is not None
    assert result == pytest.approx(-0.5 * scale, rel=1e-6, abs=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_in_a_large_kernel_of_low_rank_is_not_taken_for_a_proof(dtype):
    features = np.random.default_rng(1).standard_normal((700, 2))
    assert negative_eigenvalue(DenseKernel((features @ features.T).astype(dtype))) is None


@pytest.mark.parametrize(("share", "proof"), [(0.2, False), (5.0, True)])
def test_an_eigenvalue_is_rounding_beside_the_largest_one_not_beside_the_entries(share, proof):
    op = DenseKernel(np.ones((60, 60)))
    lowest = -share * op.resolution * 60.0  # the largest eigenvalue is 60, the entries are 1
    result = negative_eigenvalue(DenseKernel(op.K + lowest * np.eye(60)))
    assert (result is not None) == proof
    assert not proof or result == pytest.approx(lowest, rel=0.1)


def test_a_kernel_known_to_be_positive_semidefinite_is_not_looked_at():
    assert negative_eigenvalue(DenseKernel(-np.eye(3), psd=True)) is None
