"""Every operator against its plain matrix; the plain side uses explicit features, differences and loops alone."""

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from kernelweave.backends import get_backend, host
from kernelweave.backends.tiling import tiling_within
from kernelweave.foundation.errors import KernelError
from kernelweave.kernels import operator
from kernelweave.kernels.blockwise import BlockwiseKernel
from kernelweave.kernels.dense import DenseCross, DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.part import PartKernel
from kernelweave.kernels.spec import formulas
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.transforms import (
    CentredKernel,
    DegreeKernel,
    ScaledKernel,
    ShiftedKernel,
    UnitDiagonalKernel,
    mean_squared_distance,
    unit_distance,
)
from kernelweave.kernels.weighted_sum import CompositeKernel, JoinedFeatures, composite, merged_graph
from tests.kernels.contract import CrossContract, NeverStoresTheMatrix, OperatorContract
from tests.reference import multi_view as oracle
from tests.strategies import indefinite_kernels, partitions

ALL = slice(None)


def squared_distances(X, Y):
    return ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2)


def gaussian(X, Y):
    return np.exp(-0.3 * squared_distances(X, Y))


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


@pytest.fixture(scope="class")
def matrix_files(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    request.cls.files = (folder / f"{i}.bin" for i in itertools.count())


@pytest.mark.usefixtures("matrix_files")
class TestDenseKernelOnDisk(OperatorContract):
    def make(self, X):
        K = gaussian(X, X)
        K.tofile(path := next(self.files))
        return DenseKernel(np.memmap(path, dtype=np.float64, mode="r", shape=K.shape))  # read-only

    def dense(self, X):
        return gaussian(X, X)


class TestPartOfAMatrix(OperatorContract):
    def make(self, X):
        places = 1 + 2 * np.arange(len(X))  # every other sample is absent
        K = np.full((2 * len(X) + 1,) * 2, np.nan)
        K[np.ix_(places, places)] = self.dense(X)
        return PartKernel(K, places, largest=float(np.abs(self.dense(X)).max()), tiling=tiling_within(0.0))

    def dense(self, X):
        return gaussian(X, X)


class TestDenseKernelPlainLoops(TestDenseKernel):
    def make(self, X):
        return DenseKernel(gaussian(X, X), backend=get_backend("numpy"))


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


@pytest.mark.parametrize("psd", [False, None])
def test_the_scale_of_a_stored_kernel_that_may_be_indefinite_is_its_largest_entry(psd):
    K = np.array([[0.1, 2.0, 0.0], [2.0, 0.0, -3.0], [0.0, -3.0, 0.5]])
    assert DenseKernel(K, psd=psd).scale() == 3.0


def test_products_of_a_float32_kernel_are_float64_sums_without_a_float64_copy():
    n = 3000
    K = np.full((n, n), np.float32(0.1))
    tracemalloc.start()
    result = DenseKernel(K).matmat(np.ones((n, 2)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(result, n * float(np.float32(0.1)), rtol=1e-13)
    assert peak < 0.6 * n * n * 8


@pytest.fixture(scope="class")
def short_chunks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator, "CHUNK", 2)
        yield


@pytest.mark.usefixtures("short_chunks")
class TestDenseCrossInChunks(TestDenseCross): ...


# --- operators of three methods --------------------------------------------------------------------------------------


class Negated(operator.KernelOperator):
    """Minus the inner products, written with as little as an operator needs."""

    def __init__(self, X):
        self.X = X
        self.shape = (len(X), len(X))

    def diag(self):
        return -(self.X**2).sum(axis=1)

    def matmat(self, H):
        return -self.X @ (self.X.T @ H)

    def block(self, rows, cols):
        return -self.X[rows] @ self.X[cols].T


class TestOperatorOfThreeMethods(OperatorContract):
    def make(self, X):
        return Negated(X)

    def dense(self, X):
        return -X @ X.T


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
        here, there = (X**2).sum(axis=1) + 0.25, (Y**2).sum(axis=1) + 0.25
        return (X @ Y.T + 0.25) ** 2 / np.sqrt(here[:, None] ** 2 * there[None, :] ** 2)

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
        scales = [np.sqrt(np.sort(squared_distances(Z, Y), axis=1)[:, 2]) for Z in (X, Y)]
        distances = squared_distances(X, Y)
        scale = scales[0][:, None] * scales[1][None, :]
        ratio = np.divide(distances, scale, out=np.full(distances.shape, np.inf), where=scale > 0)
        return np.where(distances == 0, 1.0, np.exp(-ratio))

    def plain_diag(self, X, Y):
        return np.ones(len(X))


def rational(X, Y):
    return 1.0 / (1.0 + squared_distances(X, Y))


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
        return 2.0 * np.exp(-squared_distances(X, Y) / (2 * 1.5**2))

    def plain_square(self, X):
        return self.plain(X, X) + 0.3 * np.eye(len(X))  # a sample meets its own noise only

    def plain_diag(self, X, Y):
        return np.full(len(X), 2.3)


class BlockwiseContract(OperatorContract):
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

    def test_the_whole_matrix_can_be_asked_for_in_either_precision(self):
        op, K = self.example()
        full = op.dense()
        assert full.dtype == np.float64
        self.assert_close(full, K, K)
        np.testing.assert_array_equal(np.diagonal(full), op.diag())
        half = op.dense(np.float32)
        assert half.dtype == np.float32
        np.testing.assert_allclose(half, K, rtol=1e-5, atol=1e-6 * np.abs(K).max())


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


class TestBlockwiseGaussian(GaussianCase, NeverStoresTheMatrix, BlockwiseContract): ...


class TestBlockwiseSparseGaussian(SparseGaussianCase, NeverStoresTheMatrix, BlockwiseContract): ...


class TestBlockwisePolynomial(PolynomialCase, NeverStoresTheMatrix, BlockwiseContract): ...


class TestBlockwiseSparsePolynomial(SparsePolynomialCase, NeverStoresTheMatrix, BlockwiseContract): ...


class TestBlockwiseNegativeOffsetPolynomial(NegativeOffsetPolynomialCase, BlockwiseContract): ...


class TestBlockwiseNormalizedPolynomial(NormalizedPolynomialCase, NeverStoresTheMatrix, BlockwiseContract): ...


class TestBlockwiseSigmoid(SigmoidCase, NeverStoresTheMatrix, BlockwiseContract): ...


class TestBlockwiseLaplacian(LaplacianCase, NeverStoresTheMatrix, BlockwiseContract): ...


class TestBlockwiseChiSquared(ChiSquaredCase, NeverStoresTheMatrix, BlockwiseContract): ...


class TestBlockwiseSelfTuning(SelfTuningCase, NeverStoresTheMatrix, BlockwiseContract): ...


class TestBlockwiseProcess(ProcessCase, NeverStoresTheMatrix, BlockwiseContract): ...


class TestBlockwiseGiven(GivenCase, BlockwiseContract): ...  # the room a given function takes is its own affair


@pytest.fixture(scope="class")
def small_tiles():
    """Make tiles so small that every case has several in both directions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "TILE_ROWS", 3)
        patch.setattr(host, "TILE_COLS", 2)
        yield


@pytest.mark.usefixtures("small_tiles")
class TestBlockwiseGaussianAcrossTileBorders(GaussianCase, BlockwiseContract): ...


@pytest.mark.usefixtures("small_tiles")
class TestBlockwiseProcessAcrossTileBorders(ProcessCase, BlockwiseContract): ...


class TestBlockwiseGaussianCross(GaussianCase, BlockwiseCrossContract): ...


class TestBlockwiseSparseGaussianCross(SparseGaussianCase, BlockwiseCrossContract): ...


class TestBlockwisePolynomialCross(PolynomialCase, BlockwiseCrossContract): ...


class TestBlockwiseNormalizedPolynomialCross(NormalizedPolynomialCase, BlockwiseCrossContract): ...


class TestBlockwiseSigmoidCross(SigmoidCase, BlockwiseCrossContract): ...


class TestBlockwiseLaplacianCross(LaplacianCase, BlockwiseCrossContract): ...


class TestBlockwiseChiSquaredCross(ChiSquaredCase, BlockwiseCrossContract): ...


class TestBlockwiseSelfTuningCross(SelfTuningCase, BlockwiseCrossContract): ...


class TestBlockwiseProcessCross(ProcessCase, BlockwiseCrossContract): ...


class TestBlockwiseGivenCross(GivenCase, BlockwiseCrossContract): ...


@pytest.mark.usefixtures("small_tiles")
class TestBlockwiseGaussianCrossAcrossTileBorders(GaussianCase, BlockwiseCrossContract): ...


class TestBlockwisePlainLoops(GaussianCase, BlockwiseContract):
    def make(self, X):
        formula = self.formula(X)
        return BlockwiseKernel(formula, formula.prepare(X), backend=get_backend("numpy"))


# --- explicit features -----------------------------------------------------------------------------------------------


class TestFeatureKernel(NeverStoresTheMatrix, OperatorContract):
    def make(self, X):
        return FeatureKernel(X)

    def dense(self, X):
        return X @ X.T


class TestFeatureKernelInColumnOrder(TestFeatureKernel):
    def make(self, X):
        return FeatureKernel(np.asfortranarray(X))


class TestFeatureKernelPlainLoops(TestFeatureKernel):
    def make(self, X):
        return FeatureKernel(X, backend=get_backend("numpy"))


class TestSparseFeatureKernel(TestFeatureKernel):
    def make(self, X):
        return FeatureKernel(sp.csr_array(X))


class TestSparseMatrixFeatureKernel(TestFeatureKernel):
    def make(self, X):
        return FeatureKernel(sp.csr_matrix(X))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_sums_follow_a_move_that_changes_some_features_only(form):
    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 0.0], [0.0, 5.0, 6.0]])
    op, before, after = FeatureKernel(form(X)), np.array([0, 0, 1, 1]), np.array([1, 0, 1, 1])
    sums = op.cluster_sums(before, np.ones(4), 2)
    op.move_sums(sums, op.backend.moves(before, after), np.ones(4))
    np.testing.assert_allclose(sums, np.array([X[1], X[[0, 2, 3]].sum(axis=0)]) @ X.T)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("shape", [(7, 2), (2, 7)])
def test_the_rank_is_at_most_the_number_of_features_and_that_of_samples(shape, form):
    X = np.random.default_rng(0).standard_normal(shape)
    op = FeatureKernel(form(X))
    assert op.rank_bound == np.linalg.matrix_rank(X @ X.T) == 2
    np.testing.assert_allclose(op.gram_factor() @ op.gram_factor().T, X @ X.T)
    assert FeatureKernel(form(X), form(X[:1])).rank_bound == shape[0]  # new samples: nothing is known


class TestFeatureCross(CrossContract):
    def make(self, X, Y):
        return FeatureKernel(X, Y)

    def dense(self, X, Y):
        return X @ Y.T

    def self_values(self, X, Y):
        return (X**2).sum(axis=1)


class TestSparseFeatureCross(TestFeatureCross):
    def make(self, X, Y):
        return FeatureKernel(sp.csr_array(X), sp.csr_array(Y))


class TestFeatureCrossOfSparseNewSamples(TestFeatureCross):
    def make(self, X, Y):
        return FeatureKernel(sp.csr_array(X), Y)


# --- graphs ----------------------------------------------------------------------------------------------------------


def chain(X, Y):
    """Join each x to the samples y at most two places away from it in the order of the first feature."""
    place = np.argsort(np.argsort(X[:, 0], kind="stable"))
    at = np.argsort(Y[:, 0], kind="stable")
    pairs = [(i, at[place[i] + step]) for i in range(len(X)) for step in range(-2, 3) if 0 <= place[i] + step < len(Y)]
    rows, cols = np.array(pairs).reshape(-1, 2).T
    return rows, cols, np.exp(-((X[rows] - Y[cols]) ** 2).sum(axis=1))


def chain_matrix(X, Y):
    rows, cols, values = chain(X, Y)
    A = np.zeros((len(X), len(Y)))
    A[rows, cols] = values
    return A


def chain_graph(X, Y):
    rows, cols, values = chain(X, Y)
    return sp.csr_array((values, (rows, cols)), shape=(len(X), len(Y)))


class TestGraphKernel(NeverStoresTheMatrix, OperatorContract):
    def make(self, X):
        return GraphKernel(chain_graph(X, X))

    def dense(self, X):
        return chain_matrix(X, X)


class TestGraphKernelFromColumnFormat(TestGraphKernel):
    def make(self, X):
        return GraphKernel(sp.csc_matrix(chain_graph(X, X)))


class TestGraphKernelWithRepeatedEntries(TestGraphKernel):
    def make(self, X):
        rows, cols, values = chain(X, X)
        half = sp.coo_array((np.tile(values / 2, 2), (np.tile(rows, 2), np.tile(cols, 2))), shape=(len(X), len(X)))
        return GraphKernel(half)


class TestGraphKernelFloat32(TestGraphKernel):
    tolerance = 1e-7

    def make(self, X):
        return GraphKernel(chain_graph(X, X).astype(np.float32))


class TestGraphCross(CrossContract):
    def make(self, X, Y):
        return GraphKernel(chain_graph(X, Y), cross=True, diag=np.ones(len(X)))

    def dense(self, X, Y):
        return chain_matrix(X, Y)

    def self_values(self, X, Y):
        return np.ones(len(X))


class TestGivenSparseCross(CrossContract):
    """A sparse matrix between new and training samples says nothing of k(x, x), as little as a dense one does."""

    def make(self, X, Y):
        return fit_kernel(chain_graph(Y, Y), "precomputed").cross(chain_graph(X, Y))

    def dense(self, X, Y):
        return chain_matrix(X, Y)

    def self_values(self, X, Y):
        return None


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_links_within_and_between_clusters_equal_their_loops(data):
    K = np.abs(data.draw(indefinite_kernels()))
    labels, k = data.draw(partitions(len(K)))
    within, between = np.zeros(k), np.zeros(k)
    for i in range(len(K)):
        for j in range(len(K)):
            (within if labels[i] == labels[j] else between)[labels[i]] += K[i, j]
    for op in (DenseKernel(K), GraphKernel(sp.csr_array(K))):
        links = op.cluster_links(labels, k)
        np.testing.assert_allclose(links[0], within, rtol=1e-12)
        np.testing.assert_allclose(links[1], between, rtol=1e-12)


# --- sums over views -------------------------------------------------------------------------------------------------


class TestCompositeKernel(NeverStoresTheMatrix, OperatorContract):
    coefficients = (0.5, 2.0, 0.0, 1.5)

    def parts(self, X):
        lazy = GaussianCase().formula(X)
        return [
            FeatureKernel(X),
            BlockwiseKernel(lazy, lazy.prepare(X)),
            FeatureKernel(X[:, :1]),
            FeatureKernel(sp.csr_array(X[:, 1:])),
        ]

    def plain_parts(self, X):
        return [X @ X.T, gaussian(X, X), X[:, :1] @ X[:, :1].T, X[:, 1:] @ X[:, 1:].T]

    def make(self, X):
        return CompositeKernel(self.parts(X), self.coefficients)

    def dense(self, X):
        return sum(c * K for c, K in zip(self.coefficients, self.plain_parts(X), strict=True))


class TestCompositeKernelWithANegativeCoefficient(TestCompositeKernel):
    coefficients = (-0.5, 2.0, 1.0, 0.0)


class TestCompositeKernelWithoutAnyCoefficient(TestCompositeKernel):
    coefficients = (0.0, 0.0, 0.0, 0.0)


class TestCompositeKernelWithAnIndefinitePart(TestCompositeKernel):
    coefficients = (1.0, 0.0, 0.0, 3.0)

    def parts(self, X):
        return [*super().parts(X)[:3], GraphKernel(chain_graph(X, X), psd=None)]

    def plain_parts(self, X):
        return [*super().plain_parts(X)[:3], chain_matrix(X, X)]


class TestCompositeCross(CrossContract):
    def make(self, X, Y):
        lazy = GaussianCase().formula(Y)
        parts = [
            FeatureKernel(X, Y),
            BlockwiseKernel(lazy, lazy.prepare(X), lazy.prepare(Y)),
            GraphKernel(chain_graph(X, Y), cross=True, diag=np.ones(len(X))),
            DenseCross(gaussian(X, Y), np.ones(len(X))),
        ]
        return CompositeKernel(parts, [0.5, 2.0, 1.0, 0.25])

    def dense(self, X, Y):
        return 0.5 * X @ Y.T + 2.25 * gaussian(X, Y) + chain_matrix(X, Y)

    def self_values(self, X, Y):
        return 0.5 * (X**2).sum(axis=1) + 3.25


def test_new_coefficients_share_the_parts_and_leave_the_old_sum_alone():
    X = np.arange(12.0).reshape(4, 3)
    first = CompositeKernel([FeatureKernel(X), FeatureKernel(X[:, :1])], [1.0, 1.0])
    second = first.with_weights([0.0, 3.0])
    assert second.parts is first.parts
    np.testing.assert_allclose(second.diag(), 3.0 * X[:, 0] ** 2)
    np.testing.assert_allclose(first.diag(), (X**2).sum(axis=1) + X[:, 0] ** 2)


def test_combined_sums_of_the_views_are_the_sums_of_the_combined_kernel():
    rng = np.random.default_rng(0)
    X, labels, weights = rng.standard_normal((7, 3)), np.array([0, 1, 2, 0, 1, 2, 0]), rng.random(7)
    op = CompositeKernel(
        [FeatureKernel(X), DenseKernel(gaussian(X, X)), GraphKernel(chain_graph(X, X))], [0.2, 0.0, 5.0]
    )
    assert op.n_views == 3
    assert op.view_operators() == list(op.parts)
    per_view = op.backend.stack([view.cluster_sums(labels, weights, 3) for view in op.view_operators()])
    assert per_view.shape == (3, 3, 7)
    combined = op.backend.weighted_sum(op.coefficients, per_view)
    np.testing.assert_allclose(combined, op.cluster_sums(labels, weights, 3), rtol=1e-12)
    np.testing.assert_allclose(op.view_partition(labels, weights, 3).sums, combined, rtol=1e-12)
    masses = [weights @ (X**2).sum(axis=1), weights.sum(), weights @ np.diagonal(chain_matrix(X, X))]
    np.testing.assert_allclose(op.view_traces(weights), masses, rtol=1e-12)


@pytest.mark.parametrize("coefficients", [[1.0], [1.0, 1.0, 1.0]])
def test_every_part_of_a_sum_needs_its_coefficient(coefficients):
    parts = [FeatureKernel(np.eye(3)), FeatureKernel(np.eye(3))]
    with pytest.raises(ValueError, match=f"{len(coefficients)} coefficients"):
        CompositeKernel(parts, coefficients)


def test_parts_of_different_shapes_do_not_add_up():
    with pytest.raises(ValueError, match=r"\(3, 3\).*\(4, 4\)"):
        CompositeKernel([FeatureKernel(np.eye(3)), FeatureKernel(np.eye(4))], [1.0, 1.0])


class TestJoinedFeatures(NeverStoresTheMatrix, OperatorContract):
    coefficients, factors = (0.5, 0.0, 2.0), (1.0, 3.0, 0.25)

    def features(self, X):
        return [X, X[:, :1], X[:, 1:]]

    def make(self, X):
        parts = [ScaledKernel(FeatureKernel(Phi), f) for Phi, f in zip(self.features(X), self.factors, strict=True)]
        joined = composite(parts, self.coefficients)
        assert isinstance(joined, JoinedFeatures)
        return joined

    def dense(self, X):
        rows = zip(self.coefficients, self.factors, self.features(X), strict=True)
        return sum(c * f * Phi @ Phi.T for c, f, Phi in rows)


class TestSparseJoinedFeatures(TestJoinedFeatures):
    def make(self, X):
        parts = [FeatureKernel(sp.csr_array(Phi)) for Phi in self.features(X)]
        joined = composite([ScaledKernel(part, f) for part, f in zip(parts, self.factors, strict=True)], np.ones(3))
        assert sp.issparse(joined.Phi)
        return joined.with_weights(self.coefficients)


class TestJoinedFeaturesOfOneView(TestJoinedFeatures):
    coefficients, factors = (1.5,), (2.0,)

    def features(self, X):
        return [X]


class TestJoinedFeaturesOfSomeSamples(TestJoinedFeatures):
    def make(self, X):
        order = np.arange(len(X) + 3) % len(X)
        return super().make(X[::-1][order]).take(np.arange(len(X))[::-1])


class TestCompositeKernelOfSomeSamples(TestCompositeKernel):
    # Chosen samples are few, and their kernels are stored.
    test_peak_memory_stays_below_half_of_one_square_matrix = None

    def make(self, X):
        more = np.vstack([np.ones((2, X.shape[1])), X[::-1]])
        return CompositeKernel(self.parts(more), self.coefficients).take(np.arange(2, len(more))[::-1])


def test_features_of_one_kind_are_joined_and_anything_else_is_summed_up():
    X, A = np.arange(12.0).reshape(4, 3), np.eye(4)
    dense, sparse = FeatureKernel(X), FeatureKernel(sp.csr_array(X))
    for parts in ([dense], [dense, dense], [sparse, sparse], [ScaledKernel(ScaledKernel(dense, 2.0), 3.0), dense]):
        op = composite(parts, np.ones(len(parts)))
        assert isinstance(op, JoinedFeatures)
        np.testing.assert_allclose(op.block(ALL, ALL), sum(part.block(ALL, ALL) for part in parts))
    stored = [DenseKernel(A), GraphKernel(sp.csr_array(A))]
    for other in [*stored, sparse, ScaledKernel(dense, -1.0), FeatureKernel(X, X.copy())]:
        op = composite([dense, other], [1.0, 2.0])
        assert isinstance(op, CompositeKernel)
        np.testing.assert_allclose(op.block(ALL, ALL), dense.block(ALL, ALL) + 2.0 * other.block(ALL, ALL))


def test_joined_features_of_one_view_are_not_copied():
    X = np.arange(12.0).reshape(4, 3)
    joined = composite([ScaledKernel(FeatureKernel(X), 2.0)], [1.0])
    assert np.shares_memory(joined.Phi, X)
    assert np.shares_memory(joined.with_weights([3.0]).Phi, X)


def test_new_coefficients_of_joined_features_leave_the_old_sum_alone():
    X = np.arange(12.0).reshape(4, 3)
    first = composite([FeatureKernel(X), FeatureKernel(X[:, :1])], [1.0, 1.0])
    second = first.with_weights([0.0, 3.0])
    np.testing.assert_allclose(second.diag(), 3.0 * X[:, 0] ** 2)
    np.testing.assert_allclose(first.diag(), (X**2).sum(axis=1) + X[:, 0] ** 2)
    weights = np.array([1.0, 0.0, 2.0, 0.5])
    for op in (first, second):  # masses of views carry no coefficients
        np.testing.assert_allclose(op.view_traces(weights), [weights @ (X**2).sum(axis=1), weights @ X[:, 0] ** 2])


def test_the_views_of_joined_features_are_the_kernels_they_were_made_of():
    X = np.random.default_rng(0).standard_normal((6, 5))
    parts = [FeatureKernel(X[:, :2]), ScaledKernel(FeatureKernel(X[:, 2:]), 4.0)]
    op = composite(parts, [0.5, 3.0])
    assert op.n_views == 2
    assert op.gram_size == 5
    assert composite([FeatureKernel(sp.csr_array(X))], [1.0]).gram_size is None
    assert CompositeKernel(parts, [0.5, 3.0]).gram_size is None
    for view, part in zip(op.view_operators(), parts, strict=True):
        np.testing.assert_allclose(view.block(ALL, ALL), part.block(ALL, ALL), rtol=1e-12)
        np.testing.assert_allclose(view.matmat(X), part.matmat(X), rtol=1e-12)
        assert np.shares_memory(view.base.Phi, op.Phi)  # and no other columns are read
        assert view.base.Phi.shape[1] < op.Phi.shape[1]
    sparse = composite([FeatureKernel(sp.csr_array(part)) for part in (X[:, :2], X[:, 2:])], [0.5, 3.0])
    for view, part in zip(sparse.view_operators(), (X[:, :2], X[:, 2:]), strict=True):
        np.testing.assert_allclose(view.matmat(X), part @ part.T @ X, rtol=1e-12)
    for features, columns in zip(op.view_features(), (X[:, :2], X[:, 2:]), strict=True):
        np.testing.assert_array_equal(features, columns)
    assert CompositeKernel(parts, [0.5, 3.0]).view_features() is None


def test_sums_of_joined_features_are_measured_together_and_view_by_view():
    rng = np.random.default_rng(0)
    X, labels, weights = rng.standard_normal((9, 5)), np.arange(9) % 3, rng.random(9)
    parts = [FeatureKernel(X[:, :2]), ScaledKernel(FeatureKernel(X[:, 2:]), 4.0)]
    op = composite(parts, [0.5, 3.0])
    H = np.zeros((9, 3))
    H[np.arange(9), labels] = weights
    sums = op.feature_sums(labels, weights, 3)
    K, one, two = (H.T @ part.block(ALL, ALL) @ H for part in (op, *parts))
    np.testing.assert_allclose(op.inner(sums), K, rtol=1e-12)
    np.testing.assert_allclose(op.lengths(sums), np.diagonal(K), rtol=1e-12)
    np.testing.assert_allclose(op.view_lengths(sums), [np.diagonal(one), np.diagonal(two)], rtol=1e-12)


def test_a_sum_of_graphs_is_one_graph_and_a_sum_with_anything_else_is_none():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9, 2))
    graph, other = GraphKernel(chain_graph(X, X)), GraphKernel(sp.csr_array(np.diag(np.arange(9.0))))
    parts = [ScaledKernel(graph, 2.0), DegreeKernel(graph), ScaledKernel(DegreeKernel(other, np.arange(9.0)), 0.5)]
    total = CompositeKernel(parts, [1.0, 0.0, 3.0])
    result = merged_graph(total)
    assert isinstance(result, GraphKernel)
    np.testing.assert_allclose(result.block(ALL, ALL), total.block(ALL, ALL), rtol=1e-12)
    assert merged_graph(CompositeKernel([graph, DenseKernel(np.eye(9))], [1.0, 1.0])) is None
    assert merged_graph(composite([FeatureKernel(X)], [1.0])) is None
    np.testing.assert_array_equal(merged_graph(graph).block(ALL, ALL), graph.block(ALL, ALL))


def test_the_sparse_matrix_of_a_graph_keeps_its_scales_and_other_kernels_have_none():
    X = np.random.default_rng(0).standard_normal((9, 2))
    graph = GraphKernel(chain_graph(X, X))
    graphs = (
        graph,
        ScaledKernel(graph, -2.0),
        DegreeKernel(graph),
        ScaledKernel(UnitDiagonalKernel(graph), 3.0),
        ShiftedKernel(graph, np.arange(9.0)),
        CompositeKernel([graph, ScaledKernel(graph, 2.0)], [1.0, 0.5]),
    )
    for op in graphs:
        matrix = op.sparse_matrix()
        assert sp.issparse(matrix)
        np.testing.assert_allclose(matrix.toarray(), op.block(ALL, ALL), rtol=1e-12)
        assert isinstance(op.for_products(), GraphKernel)
        np.testing.assert_allclose(op.for_products().block(ALL, ALL), op.block(ALL, ALL), rtol=1e-12)
    dense = DenseKernel(np.eye(9))
    others = (
        dense,
        FeatureKernel(X),
        DegreeKernel(dense),
        ScaledKernel(dense, 2.0),
        ShiftedKernel(dense, 1.0),
        CentredKernel(graph),
    )
    for op in (*others, CompositeKernel([graph, dense], [1.0, 1.0])):
        assert op.sparse_matrix() is None


def test_products_are_made_with_one_stored_matrix_where_all_kernels_are_stored():
    X = np.random.default_rng(0).standard_normal((9, 2))
    stored = DenseKernel(gaussian(X, X))
    for op in (ScaledKernel(stored, -2.0), CompositeKernel([stored, DenseKernel(np.eye(9))], [0.5, 3.0])):
        merged = op.for_products()
        assert isinstance(merged, DenseKernel)
        np.testing.assert_allclose(merged.K, op.block(ALL, ALL), rtol=1e-12)
    for op in (stored, CompositeKernel([stored, FeatureKernel(X)], [0.5, 3.0]), FeatureKernel(X), lazy_gaussian(X)):
        assert op.for_products() is op
    assert stored.stored_matrix() is stored.K
    for op in (FeatureKernel(X), lazy_gaussian(X), GraphKernel(chain_graph(X, X)), ScaledKernel(stored, 2.0)):
        assert op.stored_matrix() is None


# --- operators made of another ---------------------------------------------------------------------------------------


def lazy_gaussian(X, Y=None):
    formula = GaussianCase().formula(X if Y is None else Y)
    return BlockwiseKernel(formula, formula.prepare(X), None if Y is None else formula.prepare(Y))


class TestScaledKernel(NeverStoresTheMatrix, OperatorContract):
    def make(self, X):
        return ScaledKernel(lazy_gaussian(X), 2.5)

    def dense(self, X):
        return 2.5 * gaussian(X, X)


class TestScaledKernelWithNegativeFactor(TestScaledKernel):
    def make(self, X):
        return ScaledKernel(FeatureKernel(X), -2.0)

    def dense(self, X):
        return -2.0 * X @ X.T


class TestShiftedKernel(NeverStoresTheMatrix, OperatorContract):
    def make(self, X):
        return ShiftedKernel(FeatureKernel(X), 0.75)

    def dense(self, X):
        return X @ X.T + 0.75 * np.eye(len(X))


class TestShiftedKernelBySample(NeverStoresTheMatrix, OperatorContract):
    def make(self, X):
        return ShiftedKernel(GraphKernel(chain_graph(X, X)), np.linspace(-1.0, 2.0, len(X)))

    def dense(self, X):
        return chain_matrix(X, X) + np.diag(np.linspace(-1.0, 2.0, len(X)))


class TestShiftedKernelDownward(NeverStoresTheMatrix, OperatorContract):
    def make(self, X):
        return ShiftedKernel(lazy_gaussian(X), -3.0)

    def dense(self, X):
        return gaussian(X, X) - 3.0 * np.eye(len(X))


class TestCentredKernel(NeverStoresTheMatrix, OperatorContract):
    above_scale = 4.0

    def make(self, X):
        return CentredKernel(lazy_gaussian(X))

    def dense(self, X):
        centring = np.eye(len(X)) - 1.0 / len(X)
        return centring @ gaussian(X, X) @ centring


class TestCentredKernelWithWeights(NeverStoresTheMatrix, OperatorContract):
    above_scale = 4.0

    def weights(self, X):
        return np.arange(len(X)) % 3 * 1.5  # zero, 1.5 and 3

    def make(self, X):
        return CentredKernel(FeatureKernel(X), self.weights(X))

    def dense(self, X):
        moved = X - np.average(X, axis=0, weights=self.weights(X))
        return moved @ moved.T


class TestCentredGraph(NeverStoresTheMatrix, OperatorContract):
    above_scale = 4.0

    def make(self, X):
        return CentredKernel(GraphKernel(chain_graph(X, X)))

    def dense(self, X):
        centring = np.eye(len(X)) - 1.0 / len(X)
        return centring @ chain_matrix(X, X) @ centring


class TestUnitDiagonalKernel(NeverStoresTheMatrix, OperatorContract):
    def make(self, X):
        return UnitDiagonalKernel(FeatureKernel(with_constant(X)))

    def dense(self, X):
        unit = with_constant(X)
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        return unit @ unit.T


class TestDegreeKernel(NeverStoresTheMatrix, OperatorContract):
    def weights(self, X):
        return None

    def make(self, X):
        return DegreeKernel(lazy_gaussian(X), self.weights(X))

    def dense(self, X):
        return by_degrees(gaussian(X, X), self.weights(X))


class TestDegreeKernelWithWeights(TestDegreeKernel):
    def weights(self, X):
        return np.arange(len(X)) % 3 * 1.5  # zero, 1.5 and 3


class TestDegreeKernelOfAGraph(TestDegreeKernel):
    def make(self, X):
        return DegreeKernel(GraphKernel(chain_graph(X, X)), self.weights(X))

    def dense(self, X):
        return by_degrees(chain_matrix(X, X), self.weights(X))


def by_degrees(K, weights=None):
    """Return K_ij / sqrt(d_i d_j), d_i the weighted sum of row i; zero where a sample has no degree."""
    weights = np.ones(len(K)) if weights is None else weights
    degrees = [sum(K[i, j] * weights[j] for j in range(len(K))) for i in range(len(K))]
    result = np.zeros(K.shape)
    for i, j in itertools.product(range(len(K)), repeat=2):
        if degrees[i] > 0 and degrees[j] > 0:
            result[i, j] = K[i, j] / np.sqrt(degrees[i] * degrees[j])
    return result


class TestTransformsOfTransforms(NeverStoresTheMatrix, OperatorContract):
    above_scale = 4.0

    def make(self, X):
        views = CompositeKernel([FeatureKernel(X), lazy_gaussian(X)], [0.5, 2.0])
        return ScaledKernel(CentredKernel(UnitDiagonalKernel(ShiftedKernel(views, 1.0))), 3.0)

    def dense(self, X):
        K = 0.5 * X @ X.T + 2.0 * gaussian(X, X) + np.eye(len(X))
        K /= np.sqrt(np.outer(np.diagonal(K), np.diagonal(K)))
        centring = np.eye(len(X)) - 1.0 / len(X)
        return 3.0 * centring @ K @ centring


class TestScaledCross(CrossContract):
    def make(self, X, Y):
        return ScaledKernel(lazy_gaussian(Y), 2.5).cross(lazy_gaussian(X, Y))

    def dense(self, X, Y):
        return 2.5 * gaussian(X, Y)

    def self_values(self, X, Y):
        return np.full(len(X), 2.5)


class TestShiftedCross(CrossContract):
    def make(self, X, Y):
        return ShiftedKernel(FeatureKernel(Y), 4.0).cross(FeatureKernel(X, Y))

    def dense(self, X, Y):
        return X @ Y.T  # a new sample is not on the diagonal

    def self_values(self, X, Y):
        return (X**2).sum(axis=1)


class TestCentredCross(CrossContract):
    def make(self, X, Y):
        return CentredKernel(FeatureKernel(Y)).cross(FeatureKernel(X, Y))

    def dense(self, X, Y):
        return (X - Y.mean(axis=0)) @ (Y - Y.mean(axis=0)).T

    def self_values(self, X, Y):
        return ((X - Y.mean(axis=0)) ** 2).sum(axis=1)


class TestCentredCrossWithWeights(CrossContract):
    def origin(self, Y):
        return np.average(Y, axis=0, weights=np.arange(len(Y)) % 3)

    def make(self, X, Y):
        return CentredKernel(FeatureKernel(Y), np.arange(len(Y)) % 3).cross(FeatureKernel(X, Y))

    def dense(self, X, Y):
        return (X - self.origin(Y)) @ (Y - self.origin(Y)).T

    def self_values(self, X, Y):
        return ((X - self.origin(Y)) ** 2).sum(axis=1)


class TestUnitDiagonalCross(CrossContract):
    def make(self, X, Y):
        X, Y = with_constant(X), with_constant(Y)
        return UnitDiagonalKernel(FeatureKernel(Y)).cross(FeatureKernel(X, Y))

    def dense(self, X, Y):
        X, Y = with_constant(X), with_constant(Y)
        return (X @ Y.T) / np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Y, axis=1))

    def self_values(self, X, Y):
        return np.ones(len(X))


class TestDegreeCross(CrossContract):
    def weights(self, Y):
        return np.arange(1.0, len(Y) + 1.0)

    def make(self, X, Y):
        return DegreeKernel(lazy_gaussian(Y), self.weights(Y)).cross(lazy_gaussian(X, Y))

    def dense(self, X, Y):
        rows, columns = gaussian(X, Y) @ self.weights(Y), gaussian(Y, Y) @ self.weights(Y)
        return gaussian(X, Y) / np.sqrt(np.outer(rows, columns))

    def self_values(self, X, Y):
        return 1.0 / (gaussian(X, Y) @ self.weights(Y))


def test_a_sample_without_a_degree_is_zero_to_all_others():
    A = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    op = DegreeKernel(GraphKernel(sp.csr_array(A)))
    np.testing.assert_allclose(op.block(ALL, ALL), A / 2.0)


def test_degrees_below_zero_are_refused():
    X = np.array([[1.0, 2.0], [-3.0, 0.5], [3.0, 1.0]])
    with pytest.raises(KernelError, match=r"Sample 1 has a degree.*-1\.25.*at least 0"):
        DegreeKernel(FeatureKernel(X))


def test_a_graph_without_self_loops_divided_by_degrees_has_the_scale_of_its_edges():
    op = DegreeKernel(GraphKernel(sp.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))))
    assert op.scale() >= 1.0


def test_a_unit_diagonal_needs_every_sample_off_the_origin():
    X = np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
    with pytest.raises(KernelError, match="sample 1 has 0"):
        UnitDiagonalKernel(FeatureKernel(X))


def test_a_centred_kernel_does_not_inherit_that_its_base_is_indefinite():
    # The negated squared distances are indefinite; centred they are twice the centred inner products.
    X = np.array([[0.0], [1.0], [3.0]])
    base = DenseKernel(-squared_distances(X, X), psd=False)
    centred = CentredKernel(base)
    values = np.linalg.eigvalsh(centred.block(slice(None), slice(None)))
    assert values[0] >= -1e-12
    assert centred.psd is not False


@pytest.mark.parametrize("storage", [DenseKernel, lambda K: GraphKernel(sp.csr_array(K))])
def test_weights_count_pairs_in_the_mean_distance_of_samples(storage):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((9, 2)), rng.integers(0, 4, 9).astype(float)
    K = X @ X.T
    result = mean_squared_distance(storage(K), weights)
    assert result == pytest.approx(oracle.mean_squared_distance(K, weights))
    rows = np.repeat(np.arange(9), weights.astype(int))
    assert result == pytest.approx(oracle.mean_squared_distance(K[np.ix_(rows, rows)]))
    assert result == pytest.approx(mean_squared_distance(storage(K), 1e-9 * weights))
    scaled = unit_distance(storage(K), weights)
    np.testing.assert_allclose(scaled.block(ALL, ALL), K / result, rtol=1e-12)


def test_a_kernel_that_cannot_be_normalised_is_called_by_its_name():
    with pytest.raises(KernelError, match=r"samples of view 'flat' have spread 0 in feature space"):
        unit_distance(DenseKernel(np.ones((4, 4))), np.arange(4.0), "view 'flat'")
