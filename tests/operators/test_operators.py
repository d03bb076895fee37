"""Every operator against its plain matrix; the plain side uses explicit features, differences and loops alone."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from kernelweave.foundation._errors import KernelError
from kernelweave.operators import (
    BlockwiseKernel,
    CentredKernel,
    CompositeKernel,
    DenseCross,
    DenseKernel,
    FeatureKernel,
    GraphKernel,
    ScaledKernel,
    ShiftedKernel,
    UnitDiagonalKernel,
    fit_kernel,
    formulas,
)
from tests.operators.contract import CrossContract, NeverStoresTheMatrix, OperatorContract


def squared_gaps(X, Y):
    return ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2)


def gaussian(X, Y):
    return np.exp(-0.3 * squared_gaps(X, Y))


def with_constant(X):
    """Return features none of which is all zero, so that every k(x, x) is positive."""
    return np.column_stack([X, np.ones(len(X))])


# --- stored matrices -------------------------------------------------------------------------------------------------


class TestDenseKernel(OperatorContract):
    def make(self, X):
        return DenseKernel(gaussian(X, X), psd=True)

    def dense(self, X):
        return gaussian(X, X)


class TestDenseKernelOfAnIndefiniteMatrix(TestDenseKernel):
    def make(self, X):
        return DenseKernel(self.dense(X), psd=False)

    def dense(self, X):
        return -X @ X.T - 0.5 * np.eye(len(X))


class TestDenseKernelFloat32(OperatorContract):
    # The tolerance is that of float64: entries are float32, sums are not.
    def make(self, X):
        return DenseKernel(gaussian(X, X).astype(np.float32))

    def dense(self, X):
        return gaussian(X, X).astype(np.float32).astype(np.float64)


class TestDenseKernelInColumnOrder(TestDenseKernel):
    def make(self, X):
        return DenseKernel(np.asfortranarray(gaussian(X, X)))


class TestDenseKernelOfAStridedView(TestDenseKernel):
    def make(self, X):
        n = len(X)
        wide = np.full((2 * n, 3 * n), np.nan)
        wide[::2, ::3] = gaussian(X, X)
        return DenseKernel(wide[::2, ::3])


class TestDenseKernelOnDisk(OperatorContract):
    @pytest.fixture(autouse=True, scope="class")
    def folder(self, request, tmp_path_factory):
        request.cls.path = tmp_path_factory.mktemp("kernel") / "K.bin"

    def make(self, X):
        K = gaussian(X, X)
        K.tofile(self.path)
        return DenseKernel(np.memmap(self.path, dtype=np.float64, mode="r", shape=K.shape))

    def dense(self, X):
        return gaussian(X, X)


class TestDenseKernelPlainEngine(TestDenseKernel):
    def make(self, X):
        return DenseKernel(gaussian(X, X), engine="numpy")


class TestDenseCross(CrossContract):
    def make(self, X, Y):
        return DenseCross(gaussian(X, Y), np.ones(len(X)))

    def dense(self, X, Y):
        return gaussian(X, Y)

    def self_values(self, X, Y):
        return np.ones(len(X))


class TestDenseCrossFloat32WithoutSelfValues(CrossContract):
    def make(self, X, Y):
        return DenseCross(np.asfortranarray(gaussian(X, Y), dtype=np.float32))

    def dense(self, X, Y):
        return gaussian(X, Y).astype(np.float32).astype(np.float64)

    def self_values(self, X, Y):
        return None


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_stored_kernel_shares_the_memory_of_its_matrix(order, dtype):
    K = np.asarray(gaussian(np.eye(5), np.eye(5)), order=order, dtype=dtype)
    assert np.shares_memory(DenseKernel(K).K, K)


def test_an_infinite_entry_next_to_a_float32_kernel_product_is_not_needed_to_widen_it_whole():
    n = 3000
    K = np.ones((n, n), dtype=np.float32)
    peak = traced_peak(lambda: DenseKernel(K).matmat(np.ones((n, 2))))
    assert peak < 0.6 * n * n * 8


# --- kernels computed tile by tile -----------------------------------------------------------------------------------


class GaussianCase:
    def formula(self, X):
        return formulas.Gaussian(0.3, X.mean(axis=0))

    def plain(self, X, Y):
        return gaussian(X, Y)

    def plain_diag(self, X, Y):
        return np.ones(len(X))


class SparseGaussianCase(GaussianCase):
    def formula(self, X):
        return formulas.Gaussian(0.3, None)

    def read(self, X):
        return sp.csr_array(X)


class PolynomialCase:
    def formula(self, X):
        return formulas.Polynomial(0.5, 1.0, 3)

    def plain(self, X, Y):
        return (0.5 * X @ Y.T + 1.0) ** 3

    def plain_diag(self, X, Y):
        return (0.5 * (X**2).sum(axis=1) + 1.0) ** 3


class SparsePolynomialCase(PolynomialCase):
    def read(self, X):
        return sp.csr_array(X)


class NegativeOffsetPolynomialCase(PolynomialCase):
    def formula(self, X):
        return formulas.Polynomial(1.0, -2.0, 3)

    def plain(self, X, Y):
        return (X @ Y.T - 2.0) ** 3

    def plain_diag(self, X, Y):
        return ((X**2).sum(axis=1) - 2.0) ** 3


class NormalizedPolynomialCase:
    def formula(self, X):
        return formulas.NormalizedPolynomial(2, 0.5)

    def plain(self, X, Y):
        own, other = (X**2).sum(axis=1) + 0.25, (Y**2).sum(axis=1) + 0.25
        return (X @ Y.T + 0.25) ** 2 / np.sqrt(own[:, None] ** 2 * other[None, :] ** 2)

    def plain_diag(self, X, Y):
        return np.ones(len(X))


class SigmoidCase:
    def formula(self, X):
        return formulas.Sigmoid(0.2, -0.1)

    def plain(self, X, Y):
        return np.tanh(0.2 * X @ Y.T - 0.1)

    def plain_diag(self, X, Y):
        return np.tanh(0.2 * (X**2).sum(axis=1) - 0.1)


class LaplacianCase:
    def formula(self, X):
        return formulas.Laplacian(0.4)

    def plain(self, X, Y):
        return np.exp(-0.4 * np.abs(X[:, None, :] - Y[None, :, :]).sum(axis=2))

    def plain_diag(self, X, Y):
        return np.ones(len(X))


class ChiSquaredCase:
    def formula(self, X):
        return formulas.ChiSquared(0.5)

    def read(self, X):
        return np.abs(X)

    def plain(self, X, Y):
        X, Y = np.abs(X)[:, None, :], np.abs(Y)[None, :, :]
        both = X + Y
        parts = np.divide((X - Y) ** 2, both, out=np.zeros(both.shape), where=both > 0)
        return np.exp(-0.5 * parts.sum(axis=2))

    def plain_diag(self, X, Y):
        return np.ones(len(X))


class SelfTuningCase:
    def formula(self, X):
        return formulas.SelfTuning(X, 2, "euclidean")

    def plain(self, X, Y):
        scales = [np.sqrt(np.sort(squared_gaps(Z, Y), axis=1)[:, 2]) for Z in (X, Y)]
        gaps, scale = squared_gaps(X, Y), scales[0][:, None] * scales[1][None, :]
        ratio = np.divide(gaps, scale, out=np.full(gaps.shape, np.inf), where=scale > 0)
        return np.where(gaps == 0, 1.0, np.exp(-ratio))

    def plain_diag(self, X, Y):
        return np.ones(len(X))


def rational(X, Y):
    return 1.0 / (1.0 + squared_gaps(X, Y))


class GivenCase:
    def formula(self, X):
        return formulas.Given(rational)

    def plain(self, X, Y):
        return rational(X, Y)

    def plain_diag(self, X, Y):
        return np.ones(len(X))


class ProcessCase:
    def formula(self, X):
        return formulas.ProcessKernel(2.0 * RBF(1.5) + WhiteKernel(0.3))

    def plain(self, X, Y):
        return 2.0 * np.exp(-squared_gaps(X, Y) / (2 * 1.5**2))

    def plain_square(self, X):
        return self.plain(X, X) + 0.3 * np.eye(len(X))  # a sample meets its own noise only

    def plain_diag(self, X, Y):
        return np.full(len(X), 2.3)


class BlockwiseContract(NeverStoresTheMatrix, OperatorContract):
    def make(self, X):
        X = self.read(X)
        formula = self.formula(X)
        return BlockwiseKernel(formula, formula.prepare(X))

    def dense(self, X):
        return self.plain_square(X)

    def read(self, X):
        return X

    def plain_square(self, X):
        return self.plain(X, X)


class BlockwiseCrossContract(CrossContract):
    def make(self, X, Y):
        X, Y = self.read(X), self.read(Y)
        formula = self.formula(Y)
        return BlockwiseKernel(formula, formula.prepare(X), formula.prepare(Y))

    def dense(self, X, Y):
        return self.plain(X, Y)

    def self_values(self, X, Y):
        return self.plain_diag(X, Y)

    def read(self, X):
        return X


class TestBlockwiseGaussian(GaussianCase, BlockwiseContract): ...


class TestBlockwiseSparseGaussian(SparseGaussianCase, BlockwiseContract): ...


class TestBlockwisePolynomial(PolynomialCase, BlockwiseContract): ...


class TestBlockwiseSparsePolynomial(SparsePolynomialCase, BlockwiseContract): ...


class TestBlockwiseNegativeOffsetPolynomial(NegativeOffsetPolynomialCase, BlockwiseContract): ...


class TestBlockwiseNormalizedPolynomial(NormalizedPolynomialCase, BlockwiseContract): ...


class TestBlockwiseSigmoid(SigmoidCase, BlockwiseContract): ...


class TestBlockwiseLaplacian(LaplacianCase, BlockwiseContract): ...


class TestBlockwiseChiSquared(ChiSquaredCase, BlockwiseContract): ...


class TestBlockwiseSelfTuning(SelfTuningCase, BlockwiseContract): ...


class TestBlockwiseGiven(GivenCase, BlockwiseContract):
    n_large = 1500  # the function itself forms an array of all differences of a tile

    def test_peak_memory_stays_below_half_of_one_square_matrix(self):
        pytest.skip("the room a given function takes is its own affair")


class TestBlockwiseProcess(ProcessCase, BlockwiseContract): ...


class TestBlockwiseGaussianCross(GaussianCase, BlockwiseCrossContract): ...


class TestBlockwiseSparseGaussianCross(SparseGaussianCase, BlockwiseCrossContract): ...


class TestBlockwisePolynomialCross(PolynomialCase, BlockwiseCrossContract): ...


class TestBlockwiseNormalizedPolynomialCross(NormalizedPolynomialCase, BlockwiseCrossContract): ...


class TestBlockwiseSigmoidCross(SigmoidCase, BlockwiseCrossContract): ...


class TestBlockwiseLaplacianCross(LaplacianCase, BlockwiseCrossContract): ...


class TestBlockwiseChiSquaredCross(ChiSquaredCase, BlockwiseCrossContract): ...


class TestBlockwiseSelfTuningCross(SelfTuningCase, BlockwiseCrossContract): ...


class TestBlockwiseGivenCross(GivenCase, BlockwiseCrossContract): ...


class TestBlockwiseProcessCross(ProcessCase, BlockwiseCrossContract): ...
