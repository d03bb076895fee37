"""Kernels on a torch device: the contract of operators, by torch on the processor."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel

from kernelweave import config_context
from kernelweave.backends import Moves, get_backend, get_device_backend
from kernelweave.kernels.definiteness import negative_eigenvalue
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.device import DeviceKernel, place_formula
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
from kernelweave.solvers.kmeans.minmax import minmax_kmeans
from kernelweave.solvers.kmeans.starts import INITS, start_labels
from tests.kernels.contract import OperatorContract
from tests.strategies import generators, partitions, sample_weights, samples
from tests.torch_devices import needs_torch

torch = needs_torch()

from kernelweave.backends.torch import pairs as pairs_module  # noqa: E402 - only where torch is
from kernelweave.backends.torch.pairs import PairForm, Pairs  # noqa: E402

few = settings(max_examples=15, deadline=None)


class Hosted(KernelOperator):
    """An operator elsewhere that takes arrays of the host and returns such."""

    def __init__(self, op):
        self.op = op
        self.shape = op.shape
        self.psd = op.psd
        self.backend = get_backend("numba")

    def _there(self, values):
        return self.op.backend.array(values, values.dtype)

    def _here(self, values):
        return np.array(self.op.backend.host(values))

    def scale(self):
        return self.op.scale()

    def diag(self):
        return self._here(self.op.diag())

    def matmat(self, H):
        return self._here(self.op.matmat(self._there(H)))

    def block(self, rows, cols):
        return self.op.block(rows, cols)

    def columns(self, samples):
        return self._here(self.op.columns(samples))

    def cluster_sums(self, labels, weights, n_clusters):
        sums = self.op.cluster_sums(self.op.backend.labels(labels), self._there(weights), n_clusters)
        return np.ascontiguousarray(self._here(sums))

    def move_sums(self, sums, moves, weights):
        there = Moves(moves.count, *map(self.op.backend.labels, (moves.samples, moves.old, moves.new, moves.labels)))
        changed = self._there(sums.copy())
        self.op.move_sums(changed, there, self._there(weights))
        sums[:] = self._here(changed)

    def candidate_gains(self, distances, weights, diag):
        return self._here(self.op.candidate_gains(*map(self._there, (distances, weights, diag))))


def placed(X, kernel, params, storage="blockwise"):
    with config_context(device="cpu"):
        return fit_kernel(X, kernel, params).operator(storage)


class DeviceContract(OperatorContract):
    """An operator that the settings place on a device."""

    kernel = "rbf"
    params = {"gamma": 0.3}  # noqa: RUF012
    storage = "blockwise"

    def make(self, X):
        op = placed(X, self.kernel, self.params, self.storage)
        assert op.backend is get_device_backend("cpu")
        return Hosted(op)


class TestGaussianPairs(DeviceContract):
    def dense(self, X):
        return rbf_kernel(X, gamma=0.3)


class TestStoredGaussian(DeviceContract):
    storage = "dense"

    def dense(self, X):
        return rbf_kernel(X, gamma=0.3)


class TestLaplacianPairs(DeviceContract):
    kernel = "laplacian"

    def dense(self, X):
        return laplacian_kernel(X, gamma=0.3)


class TestPolynomialPairs(DeviceContract):
    kernel = "poly"
    params = {"gamma": 0.5, "coef0": 1.0, "degree": 2}  # noqa: RUF012

    def dense(self, X):
        return polynomial_kernel(X, gamma=0.5, coef0=1.0, degree=2)


class TestSigmoidPairs(DeviceContract):
    kernel = "sigmoid"
    params = {"gamma": 0.2, "coef0": 0.1}  # noqa: RUF012

    def dense(self, X):
        return sigmoid_kernel(X, gamma=0.2, coef0=0.1)


class TestFeatures(DeviceContract):
    kernel = "linear"
    params = None

    def dense(self, X):
        return X @ X.T


class SparseContract(DeviceContract):
    """Features that are given as entries, some of them absent: small values are none."""

    def make(self, X):
        op = placed(sp.csr_array(self.cut(X)), self.kernel, self.params, self.storage)
        assert op.backend is get_device_backend("cpu")
        return Hosted(op)

    def cut(self, X):
        return np.where(np.abs(X) > 0.5, X, 0.0)


class TestSparseFeatures(SparseContract):
    kernel = "linear"
    params = None

    def dense(self, X):
        return self.cut(X) @ self.cut(X).T


class TestSparseGaussian(SparseContract):
    def dense(self, X):
        return rbf_kernel(self.cut(X), gamma=0.3)


class TestStoredSparsePolynomial(SparseContract):
    kernel = "poly"
    params = {"gamma": 0.5, "coef0": 1.0, "degree": 2}  # noqa: RUF012
    storage = "dense"

    def dense(self, X):
        return polynomial_kernel(self.cut(X), gamma=0.5, coef0=1.0, degree=2)


class TestGraph(DeviceContract):
    """Entries below a tenth are not edges."""

    def make(self, X):
        with config_context(device="cpu"):
            op = fit_kernel(sp.csr_array(self.dense(X)), "precomputed").operator()
        assert op.backend is get_device_backend("cpu")
        return Hosted(op)

    def dense(self, X):
        K = rbf_kernel(X, gamma=0.3)
        K = 0.5 * (K + K.T)
        return np.where(K > 0.1, K, 0.0)


class TestGivenMatrix(DeviceContract):
    kernel = "precomputed"
    params = None
    storage = "auto"
    dtype = np.float64

    def make(self, X):
        with config_context(device="cpu"):
            return Hosted(fit_kernel(self.dense(X).astype(self.dtype), "precomputed").operator())

    def dense(self, X):
        K = rbf_kernel(X, gamma=0.3)
        return 0.5 * (K + K.T)


class TestGivenMatrixInSinglePrecision(TestGivenMatrix):
    tolerance = 1e-6
    dtype = np.float32

    def candidate_gains_are_sums_over_pairs(self, case):
        """The law is tested on one case: a difference that is rounded may be on the other side of zero."""

    def test_candidate_gains_are_sums_over_pairs_of_rounded_entries(self):
        X = np.random.default_rng(0).standard_normal((9, 3))
        hosted = self.make(X)
        weights = np.linspace(0.5, 1.5, 9)
        distances = np.full(9, 0.7)
        K = self.dense(X).astype(np.float32).astype(np.float64)
        gaps = np.diagonal(K)[:, None] + np.diagonal(K) - 2.0 * K
        wanted = np.maximum(distances - gaps, 0.0) @ weights
        np.testing.assert_allclose(hosted.candidate_gains(distances, weights, hosted.diag()), wanted, rtol=1e-12)


def test_negative_eigenvalues_of_many_samples_are_found_there_as_here():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((450, 3))  # more than the rows that are looked at
    K = X @ X.T
    K[5, :] -= 40.0
    K[:, 5] -= 40.0
    wanted = negative_eigenvalue(DenseKernel(K))
    backend = get_device_backend("cpu")
    assert wanted is not None
    found = negative_eigenvalue(DenseKernel(backend.array(K), backend=backend))
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


# Sums in single precision


def gaussian(X, gamma=0.5, precision="tf32x3"):
    """Return a kernel on the device whose partitions use rough sums, however few samples there are."""
    with config_context(device="cpu", precision=precision):
        op = placed_formula(X, gamma)
    op.rough_from = 0
    return op


def placed_formula(X, gamma):
    fitted = fit_kernel(X, "rbf", {"gamma": gamma})
    op = place_formula(fitted.formula, fitted.prepared, stored=False)
    assert isinstance(op, DeviceKernel)
    return op


@few
@given(samples(min_n=2, max_n=40), st.data())
def test_rough_sums_are_off_by_less_than_their_bound(X, data):
    labels, k = data.draw(partitions(len(X)))
    weights = data.draw(sample_weights(len(X)))
    op = gaussian(X, data.draw(st.sampled_from([0.01, 0.5, 20.0])))
    there = (op.backend.labels(labels), op.backend.array(weights))
    rough = op.backend.host(op.rough_sums(*there, k))
    exact = op.backend.host(op.cluster_sums(*there, k))
    assert (np.abs(rough - exact) <= op.largest_error() * exact + 1e-30).all()


@few
@given(samples(min_n=3, max_n=40), st.data())
def test_what_clusters_know_of_themselves_is_exact_after_a_pass_and_after_moves(X, data):
    labels, k = data.draw(partitions(len(X)))
    weights = data.draw(sample_weights(len(X)))
    rng = data.draw(generators())
    op = gaussian(X)
    partition = op.partition(labels, weights, k)
    after = labels.copy()
    moved = rng.permutation(len(X))[: max(1, len(X) // (2 * k))]  # few: their rows are computed, not all pairs
    after[moved] = rng.integers(k, size=len(moved))
    K = rbf_kernel(X, gamma=0.5)
    for current in (labels, after):
        partition.go_to(op.backend.labels(current))
        wanted = [np.where(current == c, weights, 0.0) @ K @ np.where(current == c, weights, 0.0) for c in range(k)]
        np.testing.assert_allclose(partition.within, wanted, atol=1e-12 * weights.sum() ** 2)


@pytest.mark.parametrize(
    "form", [PairForm("gaussian"), PairForm("laplacian", 0.3), PairForm("polynomial", 0.5, 1.0, 3.0)]
)
def test_sums_of_many_tiles_are_those_of_the_whole_kernel(form, monkeypatch):
    monkeypatch.setattr(pairs_module, "TILE_ROWS", 4)
    monkeypatch.setattr(pairs_module, "TILE_COLS", 5)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((23, 3))
    backend = get_device_backend("cpu")
    pairs = Pairs(backend, form, X)
    K = form.values(pairs.X, pairs.X).numpy()
    labels = rng.integers(3, size=23)
    weights = rng.uniform(0.5, 2.0, 23)
    H = np.stack([np.where(labels == c, weights, 0.0) for c in range(3)])
    there = (backend.labels(labels), backend.array(weights))
    np.testing.assert_allclose(backend.host(pairs.matrix()), K, rtol=1e-12)
    np.testing.assert_allclose(backend.host(pairs.columns(np.array([3, 1]))), K[:, [3, 1]], rtol=1e-12)
    np.testing.assert_allclose(backend.host(pairs.exact_sums(*there, 3)), H @ K, rtol=1e-11)
    np.testing.assert_allclose(pairs.within_sums(*there, 3), np.einsum("ci,ij,cj->c", H, K, H), rtol=1e-11)
    after = (labels + (rng.random(23) < 0.6)) % 3
    sums = backend.array(H @ K)
    pairs.move_exact_sums(sums, backend.moves(there[0], backend.labels(after)), there[1])
    H = np.stack([np.where(after == c, weights, 0.0) for c in range(3)])
    np.testing.assert_allclose(backend.host(sums), H @ K, rtol=1e-10)
    distances = rng.random(23)
    diag = np.diagonal(K)
    wanted = np.maximum(distances - (diag[:, None] + diag - 2.0 * K), 0.0) @ weights
    gains = pairs.candidate_gains(backend.array(distances), there[1], pairs.diagonal())
    np.testing.assert_allclose(backend.host(gains), wanted, rtol=1e-9, atol=1e-9)


@few
@given(samples(min_n=3, max_n=40), st.data())
def test_fused_sums_in_double_precision_are_those_of_tiles(X, data):
    labels, k = data.draw(partitions(len(X)))
    weights = data.draw(sample_weights(len(X)))
    backend = get_device_backend("cpu")
    plain, fused = (Pairs(backend, PairForm("gaussian"), X, fused=yes) for yes in (False, True))
    there = (backend.labels(labels), backend.array(weights))
    rows = torch.arange(0, len(X), 2)
    size = 1e-12 * max(weights.sum(), 1.0)
    sums = [backend.host(pairs.exact_sums(*there, k)) for pairs in (plain, fused)]
    np.testing.assert_allclose(*sums, rtol=0, atol=size)
    some = [pairs.exact_sums_of(rows, *there, k).numpy() for pairs in (plain, fused)]
    np.testing.assert_allclose(*some, rtol=0, atol=size)
    within = [pairs.within_sums(*there, k) for pairs in (plain, fused)]
    np.testing.assert_allclose(*within, rtol=0, atol=size * max(weights.sum(), 1.0))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("spread", [0.05, 1.0, 30.0])
def test_runs_on_rough_sums_visit_the_partitions_of_exact_ones(seed, spread):
    rng = np.random.default_rng(seed)
    n, k = 150, 5
    X = spread * rng.standard_normal((k, 4))[rng.integers(k, size=n)] + rng.standard_normal((n, 4))
    weights = rng.uniform(0.5, 2.0, n) * (rng.random(n) < 0.95)
    labels = rng.integers(k + 2, size=n)
    here = fit_kernel(X, "rbf", {"gamma": 0.1}).operator("dense")
    ends = [kernel_kmeans(op, labels, weights, n_clusters=k + 2) for op in (here, gaussian(X, 0.1))]
    np.testing.assert_array_equal(ends[1].labels, ends[0].labels)
    np.testing.assert_allclose(ends[1].history, ends[0].history, rtol=1e-12)
    np.testing.assert_allclose(ends[1].norms, ends[0].norms, rtol=1e-11)
    assert (ends[1].converged, ends[1].rose) == (ends[0].converged, ends[0].rose)
    ends = [minmax_kmeans(op, labels % k, weights, n_clusters=k) for op in (here, gaussian(X, 0.1))]
    np.testing.assert_array_equal(ends[1].labels, ends[0].labels)


TURN = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])


def lattice(side=12, turn=TURN):
    """Return a square lattice around the origin: many samples are as far from one centre as from another.

    It is turned a little, so that single precision breaks the ties.
    """
    steps = np.arange(side) - (side - 1) / 2
    return np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2) @ turn


@pytest.mark.parametrize("init", INITS)
def test_samples_that_rough_sums_cannot_decide_go_where_exact_ones_send_them(init):
    X = lattice()
    weights = np.ones(len(X))
    here = fit_kernel(X, "rbf", {"gamma": 0.02}).operator("dense")
    there = gaussian(X, 0.02)
    for seed in range(4):
        start = start_labels(here, init, weights, 4, np.random.default_rng(seed))
        np.testing.assert_array_equal(start_labels(there, init, weights, 4, np.random.default_rng(seed)), start)
        ends = [kernel_kmeans(op, start, weights, n_clusters=4) for op in (here, there)]
        np.testing.assert_array_equal(ends[1].labels, ends[0].labels)


def test_undecided_samples_are_computed_again_and_others_are_not():
    """A lattice in four quarters: the samples on the axes between them are of weight 0, and undecided."""
    plain = lattice(11, np.eye(2))
    labels = 2 * (plain[:, 0] > 0) + (plain[:, 1] > 0)
    op = gaussian(plain @ TURN, 0.02)
    partition = op.partition(labels.astype(np.intp), (plain != 0).all(axis=1).astype(float), 4)
    exact = op.backend.host(op.cluster_sums(partition.labels, partition.weights, 4))
    before = op.backend.host(partition.sums).copy()
    partition.nearest()
    after = op.backend.host(partition.sums)
    changed = (after != before).any(axis=0)
    assert changed.any()
    assert (plain[changed] == 0).any(axis=1).all()
    assert changed.sum() > 15
    np.testing.assert_allclose(after[:, changed], exact[:, changed], rtol=1e-14)


def test_empty_and_coinciding_clusters_end_as_on_the_host():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((7, 3)), 9, axis=0)
    weights = np.ones(len(X))
    here = fit_kernel(X, "rbf", {"gamma": 0.5}).operator("dense")
    for seed in range(5):
        labels = np.random.default_rng(seed).integers(3, size=len(X))
        ends = [kernel_kmeans(op, labels, weights, n_clusters=9) for op in (here, gaussian(X))]
        np.testing.assert_array_equal(ends[1].labels, ends[0].labels)
        np.testing.assert_allclose(ends[1].totals, ends[0].totals)


def test_who_is_farthest_is_decided_by_exact_sums():
    X = np.random.default_rng(0).standard_normal((30, 3))
    op = gaussian(X)
    partition = op.partition(np.arange(30) % 2, np.ones(30), 3)  # the third cluster is empty
    rough = op.backend.host(partition.sums).copy()
    labels = op.backend.host(partition.reseeded(partition.nearest()))
    assert (labels == 2).sum() == 1
    exact = op.backend.host(op.cluster_sums(partition.labels, partition.weights, 3))
    assert (rough != exact).any()
    np.testing.assert_array_equal(op.backend.host(partition.sums), exact)


def test_plain_tf32_corrects_nothing_and_double_precision_needs_no_correction():
    X = lattice(6)
    rough = gaussian(X, 0.02, "tf32")
    partition = rough.partition(np.arange(36) % 3, np.ones(36), 3)
    before = rough.backend.host(partition.sums).copy()
    partition.nearest()
    np.testing.assert_array_equal(rough.backend.host(partition.sums), before)
    exact = gaussian(X, 0.02, "float64")
    assert type(exact.partition(np.arange(36) % 3, np.ones(36), 3)).__name__ == "SumsPartition"


# Neighbours


@pytest.mark.parametrize("kind", ["samples in general position", "a grid", "few distinct samples"])
@pytest.mark.parametrize("weights", ["connectivity", "self_tuning"])
def test_neighbour_graphs_of_the_device_are_those_of_the_processor(kind, weights):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    if kind == "a grid":
        X = np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0)), axis=-1).reshape(-1, 2)
    elif kind == "few distinct samples":
        X = X[rng.integers(6, size=80)]
    new = X[::7] + 0.25

    def graphs():
        fitted = fit_kernel(X, "nearest_neighbors", {"n_neighbors": 5, "weights": weights})
        return [op.block(slice(None), slice(None)) for op in (fitted.operator(), fitted.cross(new))]

    wanted = graphs()
    with config_context(device="cpu"):
        found = graphs()
    for here, there in zip(wanted, found, strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-12, atol=1e-12)
