"""Means of stored features: their sums, the nearest of them, and assignment one sample after the other."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from kernelweave.backends import get_backend, host
from kernelweave.foundation import threads
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.partitions import algebra
from tests.strategies import generators, moves, partitions, sample_weights, samples

laws = settings(max_examples=25, deadline=None)
FORMS = {
    "dense": FeatureKernel,
    "column order": lambda X: FeatureKernel(np.asfortranarray(X)),
    "plain loops": lambda X: FeatureKernel(X, backend=get_backend("numpy")),
    "sparse array": lambda X: FeatureKernel(sp.csr_array(X)),
    "sparse matrix": lambda X: FeatureKernel(sp.csr_matrix(X)),
}
forms = pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())


def indicators(labels, weights, k):
    return weights[:, None] * (labels[:, None] == np.arange(k))


@forms
@laws
@given(data=st.data())
def test_sums_of_features_and_their_change_are_products_with_weighted_indicators(make, data):
    X = data.draw(samples())
    labels, k = data.draw(partitions(len(X)))
    weights = data.draw(sample_weights(len(X)))
    op = make(X)
    sums = op.feature_sums(labels, weights, k + 1)
    np.testing.assert_allclose(sums, indicators(labels, weights, k + 1).T @ X, rtol=0, atol=1e-12)
    assert not sums[k].any()
    moved, new = data.draw(moves(labels, k))
    after = labels.copy()
    after[moved] = new
    change = op.moved_features(op.backend.moves(labels, after), weights, k + 1)
    np.testing.assert_allclose(sums + change, op.feature_sums(after, weights, k + 1), rtol=0, atol=1e-12)
    assert isinstance(sums, np.ndarray)
    assert isinstance(change, np.ndarray)


@forms
@laws
@given(X=samples(), rng=generators(), k=st.integers(1, 5), empty=st.booleans())
def test_the_nearest_mean_is_that_of_least_scaled_distance(make, X, rng, k, empty):
    means, coefs = rng.standard_normal((k, 3)), rng.uniform(0.2, 1.0, k)
    norms, labels = (means**2).sum(axis=1), rng.integers(k, size=len(X))
    norms[: int(empty and k > 1)] = np.inf
    op = make(X)
    nearest = op.nearest_means(means, norms, coefs, op.diag(), labels, 0.0)
    values = coefs * ((X[:, None] - means[None]) ** 2).sum(axis=2)
    values[:, np.isinf(norms)] = np.inf
    np.testing.assert_array_equal(nearest.labels, values.argmin(axis=1))
    np.testing.assert_allclose(nearest.distances, values.min(axis=1), rtol=0, atol=1e-12)
    stayed = nearest.labels == labels
    others = values[stayed]
    others[np.arange(stayed.sum()), labels[stayed]] = np.inf
    least = np.min(others.min(axis=1) - nearest.distances[stayed], initial=np.inf)
    assert nearest.lead == pytest.approx(least, abs=1e-11)


@forms
@pytest.mark.parametrize("chunk", [1, 3, 4096])
@laws
@given(X=samples(), rng=generators(), k=st.integers(1, 5))
def test_distances_to_means_are_those_to_the_mean_of_the_cluster_each_sample_is_in(make, chunk, X, rng, k):
    means, labels = rng.standard_normal((k, 3)), rng.integers(k, size=len(X))
    norms = (means**2).sum(axis=1)
    op = make(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "SEQUENTIAL_ROWS", chunk)
        distances = op.distances_to_means(means, norms, op.diag(), labels)
    np.testing.assert_allclose(distances, ((X - means[labels]) ** 2).sum(axis=1), rtol=0, atol=1e-12)
    norms[0] = np.inf  # a cluster without weight is infinitely far
    assert np.isinf(op.distances_to_means(means, norms, op.diag(), labels)[labels == 0]).all()


@forms
def test_ties_keep_the_label_and_a_sample_that_leaves_takes_the_first_of_equals(make):
    x = np.array([[0.0, 1.0], [0.0, -1.0], [4.0, 0.0]])
    means = np.array([[9.0, 9.0], [1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
    op = make(x)
    nearest = op.nearest_means(means, (means**2).sum(axis=1), np.ones(4), op.diag(), np.array([2, 0, 3]), 1e-12)
    assert nearest.labels.tolist() == [2, 1, 3]
    np.testing.assert_allclose(nearest.distances, [2.0, 2.0, 9.0])
    assert nearest.lead == pytest.approx(0.0, abs=1e-11)


def test_arguments_are_left_as_they_were():
    rng = np.random.default_rng(0)
    X, means, labels = rng.standard_normal((20, 3)), rng.standard_normal((4, 3)), rng.integers(4, size=20)
    weights = rng.uniform(0.5, 1.5, 20)
    totals, norms, coefs = np.bincount(labels, weights, 4), (means**2).sum(axis=1), np.full(4, 0.5)
    for make in FORMS.values():
        op = make(X)
        diag = op.diag()
        everything = (means, norms, coefs, diag, labels, weights, totals)
        before = [one.copy() for one in everything]
        op.nearest_means(means, norms, coefs, diag, labels, 0.0)
        op.distances_to_means(means, norms, diag, labels)
        op.assign_by_size(means, norms, diag, labels, weights, totals, 0.0)
        for one, copy in zip(everything, before, strict=True):
            np.testing.assert_array_equal(one, copy)


@pytest.mark.parametrize("d", [3, 60])
@pytest.mark.parametrize("form", ["dense", "sparse array"])
def test_nearest_means_are_bit_identical_on_any_number_of_threads(d, form, monkeypatch):
    rng = np.random.default_rng(0)
    X, means = rng.standard_normal((20000, d)), rng.standard_normal((22, d))
    op = FORMS[form](X * (X > 0.5))
    coefs, labels = rng.uniform(0.2, 1.0, 22), rng.integers(22, size=20000)
    arguments = (means, (means**2).sum(axis=1), coefs, op.diag(), labels, 1e-12)
    with threadpool_limits(1):
        alone = op.nearest_means(*arguments)
    for count in (1, 2, 3, 5):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        with threadpool_limits(2, user_api="blas"):
            assert_identical(op.nearest_means(*arguments), alone)


def assert_identical(one, other):
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.distances, other.distances)
    assert one.lead == other.lead


def test_the_nearest_mean_needs_no_room_for_samples_times_clusters():
    rng = np.random.default_rng(0)
    X, means = rng.standard_normal((20000, 4)), rng.standard_normal((64, 4))
    op, labels = FeatureKernel(X), np.zeros(20000, dtype=np.intp)
    arguments = (means, (means**2).sum(axis=1), np.ones(64), op.diag(), labels, 0.0)
    op.nearest_means(*arguments)
    tracemalloc.start()
    op.nearest_means(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20000 * 64 * 8 / 10


@laws
@given(X=samples(), rng=generators(), data=st.data())
def test_scaled_nearest_clusters_of_a_kernel_are_those_of_its_features(X, rng, data):
    labels, k = data.draw(partitions(len(X)))
    weights, coefs = data.draw(sample_weights(len(X))), rng.choice([0.25, 0.5, 1.0], size=k)
    op = DenseKernel(X @ X.T)
    sums, totals = op.cluster_sums(labels, weights, k), algebra.cluster_weights(labels, weights, k)
    norms = algebra.center_norms(algebra.within_sums(sums, labels, weights), totals)
    tolerance = 1e-12 * max(op.scale(), 1e-300)
    nearest = op.backend.nearest(sums, totals, norms, labels, tolerance, op.diag(), coefs)
    means = FeatureKernel(X).feature_sums(labels, weights, k) / np.where(totals > 0, totals, 1.0)[:, None]
    wanted = FeatureKernel(X).nearest_means(means, norms, coefs, op.diag(), labels, tolerance)
    np.testing.assert_array_equal(nearest.labels, wanted.labels)
    np.testing.assert_allclose(nearest.distances, wanted.distances, rtol=0, atol=1e-11)
    assert nearest.lead == pytest.approx(wanted.lead, abs=1e-11)


def test_scaled_nearest_clusters_are_bit_identical_on_any_number_of_threads(monkeypatch):
    rng = np.random.default_rng(0)
    sums, totals, norms = rng.standard_normal((6, 90000)), rng.uniform(1.0, 2.0, 6), rng.uniform(0.0, 1.0, 6)
    labels, coefs = rng.integers(6, size=90000), rng.uniform(0.2, 1.0, 6)
    for scaled in (coefs, None):
        results = []
        for count in (1, 2, 3):
            monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
            results.append(get_backend().nearest(sums, totals, norms, labels, 1e-3, np.ones(90000), scaled))
        for result in results[1:]:
            assert_identical(result, results[0])
