"""Formulas about clusters: distances, nearest clusters, and the assignment of new samples."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.backends import get_backend
from kernelweave.foundation.errors import KernelError
from kernelweave.kernels.dense import DenseCross, DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.transforms import ScaledKernel
from kernelweave.partitions import algebra
from tests.strategies import generators, partitions, sample_weights, samples

quick = settings(max_examples=30, deadline=None)


# --- distances -------------------------------------------------------------------------------------------------------


@quick
@given(st.data())
def test_distances_to_samples_are_those_of_the_features(data):
    X = data.draw(samples())
    chosen = data.draw(partitions(len(X)))[0][:3]
    op = FeatureKernel(X)
    wanted = ((X[:, None] - X[chosen][None]) ** 2).sum(axis=2)
    for kernel in (op, DenseKernel(X @ X.T), ScaledKernel(DenseKernel(0.5 * X @ X.T), 2.0)):
        np.testing.assert_allclose(algebra.distances_to_samples(kernel, chosen, kernel.diag()), wanted, atol=1e-11)


@quick
@given(st.data())
def test_squared_distances_are_those_to_the_weighted_means_of_the_features(data):
    X = data.draw(samples())
    labels, k = data.draw(partitions(len(X)))
    weights = data.draw(sample_weights(len(X)))
    op = FeatureKernel(X)
    sums, totals = op.cluster_sums(labels, weights, k), algebra.cluster_weights(labels, weights, k)
    within = algebra.within_sums(sums, labels, weights)
    norms = algebra.center_norms(within, totals)
    result = algebra.squared_distances(op, sums, totals, norms)
    scatter = algebra.cluster_scatter(within, totals, np.bincount(labels, weights * op.diag(), k))
    for c in range(k):
        members = labels == c
        assert totals[c] == pytest.approx(weights[members].sum())
        if totals[c] == 0:  # no weight, no mean: infinitely far
            assert np.isinf(norms[c])
            assert np.isinf(result[:, c]).all()
            assert scatter[c] == 0
            continue
        mean = np.average(X[members], axis=0, weights=weights[members])
        distances = ((X - mean) ** 2).sum(axis=1)
        assert norms[c] == pytest.approx(mean @ mean, abs=1e-11)
        np.testing.assert_allclose(result[:, c], distances, atol=1e-11)
        assert scatter[c] == pytest.approx(weights[members] @ distances[members], abs=1e-10)


def test_squared_distances_are_zero_where_nothing_but_rounding_of_their_terms_is_left():
    diag = np.array([1.0, 1e6, -1.0, np.nan])
    norms = np.array([1.0, np.inf])
    squared = np.array([[9e-16, np.inf], [-1e-10, np.inf], [1e-12, np.inf], [np.nan, np.nan]])
    wanted = [[0.0, np.inf], [0.0, np.inf], [1e-12, np.inf], [np.nan, np.nan]]
    np.testing.assert_array_equal(algebra.without_rounding(squared, diag, norms), wanted)


def test_distances_of_new_samples_use_the_norms_of_training():
    X, new = np.array([[0.0], [2.0], [10.0]]), np.array([[1.0], [9.0]])
    labels, weights = np.array([0, 0, 1]), np.ones(3)
    op = FeatureKernel(X)
    within = algebra.within_sums(op.cluster_sums(labels, weights, 2), labels, weights)
    norms = algebra.center_norms(within, np.array([2.0, 1.0]))
    cross = DenseCross(new @ X.T, (new**2).sum(axis=1))
    result = algebra.squared_distances(cross, cross.cluster_sums(labels, weights, 2), np.array([2.0, 1.0]), norms)
    np.testing.assert_allclose(result, [[0.0, 81.0], [64.0, 1.0]], atol=1e-12)  # means at 1 and 10


# --- nearest clusters ------------------------------------------------------------------------------------------------


BACKENDS = [get_backend(name) for name in ("numba", "numpy")]
backends = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)


def on_a_line(x, labels, n_clusters):
    """Return sums, totals and norms of clusters of numbers."""
    op, weights = FeatureKernel(np.asarray(x, dtype=float)[:, None]), np.ones(len(x))
    sums = op.cluster_sums(labels, weights, n_clusters)
    totals = algebra.cluster_weights(labels, weights, n_clusters)
    return sums, totals, algebra.center_norms(algebra.within_sums(sums, labels, weights), totals)


@backends
def test_samples_go_to_the_nearest_mean_worked_out_by_hand(backend):
    labels = np.array([0, 0, 0, 1])
    clusters = on_a_line([0.0, 1.0, 11.0, 12.0], labels, 2)  # means 4 and 12
    nearest = backend.nearest(*clusters, labels, 0.0, np.zeros(4))
    assert nearest.labels.tolist() == [0, 0, 1, 1]
    # ||m||^2 - 2 x m: 16 - 0, 16 - 8, 144 - 264, 144 - 288; the diagonal is added to it
    np.testing.assert_allclose(nearest.distances, [16.0, 8.0, -120.0, -144.0])
    with_diagonal = backend.nearest(*clusters, labels, 0.0, np.array([0.0, 1.0, 121.0, 144.0]))
    np.testing.assert_allclose(with_diagonal.distances, [16.0, 9.0, 1.0, 0.0])
    # Of the kept labels sample 3 leads least: at distance^2 0 against 64.
    assert nearest.lead == pytest.approx(64.0)


@backends
@pytest.mark.parametrize("label", [0, 1])
def test_a_tie_keeps_the_label(label, backend):
    labels = np.array([0, 0, 1, 1, label])
    sums, totals, norms = on_a_line([-2.0, -2.0, 2.0, 2.0, 0.0], np.array([0, 0, 1, 1, 2]), 3)
    nearest = backend.nearest(sums[:2], totals[:2], norms[:2], labels, 0.0, np.zeros(5))
    assert nearest.labels[4] == label


@backends
@pytest.mark.parametrize(("tolerance", "moves"), [(0.0, True), (3.9, True), (4.0, False), (4.1, False), (100.0, False)])
def test_a_sample_leaves_only_for_a_cluster_nearer_by_more_than_the_tolerance(tolerance, moves, backend):
    # Means at 0 and 4; a sample at 2.5 is nearer to the second by 6.25 - 2.25 = 4.
    sums, totals, norms = on_a_line([0.0, 4.0, 2.5], np.array([0, 1, 2]), 3)
    labels = np.array([0, 1, 0])
    nearest = backend.nearest(sums[:2], totals[:2], norms[:2], labels, tolerance, np.zeros(3))
    assert nearest.labels.tolist() == [0, 1, 1 if moves else 0]
    assert nearest.distances[2] == pytest.approx(16.0 - 20.0 if moves else 0.0)
    # A kept label that is behind by 4 leads by -4, plus the tolerance; otherwise the first two lead by 16.
    assert nearest.lead == pytest.approx(16.0 + tolerance if moves else tolerance - 4.0)


@backends
@quick
@given(data=st.data())
def test_an_empty_cluster_is_never_the_nearest(data, backend):
    # One sample at the origin, where a zero column would lie, and the others far from it.
    X = np.vstack([np.zeros((1, 3)), data.draw(samples()) + 5.0])
    labels, k = data.draw(partitions(len(X)))
    empty = data.draw(st.integers(0, k))
    shifted = labels + (labels >= empty)  # makes room for one cluster without members
    op, weights = FeatureKernel(X), np.ones(len(X))
    sums = op.cluster_sums(shifted, weights, k + 1)
    totals = algebra.cluster_weights(shifted, weights, k + 1)
    norms = algebra.center_norms(algebra.within_sums(sums, shifted, weights), totals)
    for coefs in (None, np.ones(k + 1)):
        nearest = backend.nearest(sums, totals, norms, shifted, 0.0, op.diag(), coefs)
        assert empty not in nearest.labels
        assert np.isfinite(nearest.distances).all()
        from_the_empty_one = backend.nearest(sums, totals, norms, np.full(len(X), empty), 0.0, op.diag(), coefs)
        assert empty not in from_the_empty_one.labels


@backends
@quick
@given(data=st.data())
def test_no_cluster_is_nearer_than_the_one_chosen(data, backend):
    X = data.draw(samples())
    labels, k = data.draw(partitions(len(X)))
    weights = data.draw(sample_weights(len(X)))
    op = FeatureKernel(X)
    sums, totals = op.cluster_sums(labels, weights, k), algebra.cluster_weights(labels, weights, k)
    norms = algebra.center_norms(algebra.within_sums(sums, labels, weights), totals)
    distances = algebra.squared_distances(op, sums, totals, norms)
    nearest = backend.nearest(sums, totals, norms, labels, 0.0, op.diag())
    everyone = np.arange(len(X))
    np.testing.assert_allclose(distances[everyone, nearest.labels], distances.min(axis=1), atol=1e-11)
    np.testing.assert_allclose(nearest.distances, distances[everyone, nearest.labels], atol=1e-11)
    kept = nearest.labels == labels
    others = np.where(np.arange(k) == nearest.labels[:, None], np.inf, distances)
    wanted = (others.min(axis=1) - distances[everyone, nearest.labels])[kept].min(initial=np.inf)
    assert nearest.lead == pytest.approx(wanted, abs=1e-10)


# --- new samples -----------------------------------------------------------------------------------------------------


def crosses(X, new):
    """Return the kernel between new and training samples in every storage that knows k(x, x)."""
    matrix, diag = new @ X.T, (new**2).sum(axis=1)
    return [
        FeatureKernel(new, X),
        FeatureKernel(sp.csr_array(new), sp.csr_array(X)),
        DenseCross(matrix, diag),
        DenseCross(matrix, diag, backend=get_backend("numpy")),
        GraphKernel(sp.csr_array(matrix), cross=True, diag=diag),
    ]


@quick
@given(data=st.data(), scaled=st.booleans())
def test_new_samples_go_to_the_centre_of_least_scaled_distance(data, scaled):
    X, new = data.draw(samples(kinds=("general",))), data.draw(samples(min_n=1, kinds=("general",)))
    labels, k = data.draw(partitions(len(X)))
    weights, rng = data.draw(sample_weights(len(X))), data.draw(generators())
    coefs = rng.choice([0.25, 0.5, 1.0], size=k) if scaled else None
    totals = np.array([weights[labels == c].sum() for c in range(k)])
    means = np.zeros((k, X.shape[1]))
    for c in np.flatnonzero(totals > 0):
        means[c] = weights[labels == c] @ X[labels == c] / totals[c]
    norms = np.where(totals > 0, (means**2).sum(axis=1), np.inf)
    distances = np.where(totals > 0, ((new[:, None] - means[None]) ** 2).sum(axis=2), np.inf)
    distances = distances if coefs is None else coefs * distances
    for cross in crosses(X, new):
        assigned = algebra.assign_new(cross, labels, weights, totals, norms, coefs)
        assert isinstance(assigned, np.ndarray)
        np.testing.assert_array_equal(assigned, distances.argmin(axis=1))


def test_new_samples_without_their_self_similarity_are_assigned_by_plain_distances_alone():
    X = np.array([[0.0], [2.0], [10.0]])
    cross = DenseCross(np.array([[1.0], [9.0], [7.0]]) @ X.T)
    arguments = (np.array([0, 0, 1]), np.ones(3), np.array([2.0, 1.0]), np.array([1.0, 100.0]))  # means at 1 and 10
    assert algebra.assign_new(cross, *arguments).tolist() == [0, 1, 1]
    with pytest.raises(KernelError, match="new samples"):
        algebra.assign_new(cross, *arguments, np.array([1.0, 0.5]))


def test_of_equally_near_centres_a_new_sample_takes_the_first():
    X = np.array([[0.0], [2.0], [2.0]])
    for cross in crosses(X, np.array([[1.0], [2.0]])):
        labels = algebra.assign_new(cross, np.arange(3), np.ones(3), np.ones(3), np.array([0.0, 4.0, 4.0]))
        assert labels.tolist() == [0, 1]
