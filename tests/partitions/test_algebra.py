"""Formulas on operators: distances, nearest clusters, proofs of indefiniteness, and what a kernel matrix must be."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.foundation.errors import KernelError
from kernelweave.kernels.dense import DenseCross, DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.transforms import ScaledKernel
from kernelweave.partitions import algebra
from kernelweave.partitions.algebra import as_operator
from tests.strategies import indefinite_kernels, partitions, psd_kernels, sample_weights, samples

quick = settings(max_examples=40, deadline=None)
ALL = slice(None)
SPARSE_FORMATS = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]


# --- from matrices to operators --------------------------------------------------------------------------------------


def test_an_operator_is_returned_as_it_is():
    op = FeatureKernel(np.eye(3))
    assert as_operator(op) is op


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_float_matrix_becomes_a_dense_kernel_without_a_copy(dtype):
    K = np.eye(3, dtype=dtype)
    op = as_operator(K)
    assert isinstance(op, DenseKernel)
    assert np.shares_memory(op.K, K)


@pytest.mark.parametrize("K", [[[2, 1], [1, 2]], np.array([[2, 1], [1, 2]]), np.array([[True, False], [False, True]])])
def test_whole_numbers_become_float64(K):
    op = as_operator(K)
    assert op.K.dtype == np.float64
    np.testing.assert_array_equal(op.K, K)


@pytest.mark.parametrize("form", SPARSE_FORMATS)
def test_a_sparse_matrix_of_any_format_becomes_a_graph(form):
    A = np.array([[1.0, 0.5, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 2.0]])
    op = as_operator(sp.csr_array(A).asformat(form))
    assert isinstance(op, GraphKernel)
    np.testing.assert_array_equal(op.block(ALL, ALL), A)


@pytest.mark.parametrize("K", [np.array([["a", "b"], ["b", "a"]]), np.eye(2) * 1j, np.array([[None, 1], [1, None]])])
def test_what_does_not_hold_real_numbers_is_refused_with_its_type(K):
    with pytest.raises(KernelError, match=f"K holds values of type {K.dtype}"):
        as_operator(K)


def test_an_empty_graph_is_a_kernel():
    assert as_operator(sp.csr_array((4, 4))).shape == (4, 4)


# --- what a kernel matrix must be ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3,), (2, 3), (3, 2), (2, 2, 2)])
def test_a_matrix_that_is_not_square_is_refused_with_its_shape(shape):
    with pytest.raises(KernelError, match=rf"K must be a square.*shape is \({shape[0]},"):
        as_operator(np.ones(shape))


def test_a_sparse_matrix_that_is_not_square_is_refused_with_its_shape():
    with pytest.raises(KernelError, match=r"K must be a square.*shape is \(2, 3\)"):
        as_operator(sp.csr_array(np.ones((2, 3))))


def test_a_matrix_without_samples_is_refused():
    with pytest.raises(KernelError, match=r"\(0, 0\)"):
        as_operator(np.empty((0, 0)))


# Both halves, within a range of rows looked at together and far from it.
PLACES = [(0, 0), (1, 2), (2, 1), (3, 290), (290, 3), (299, 299)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", PLACES)
def test_a_value_that_is_not_finite_is_named_by_its_place(place, value, dtype):
    K = np.ones((300, 300), dtype=dtype)
    K[place] = value
    with pytest.raises(KernelError, match=rf"K holds NaN or infinity at row {place[0]}, column {place[1]}\."):
        as_operator(K)


@pytest.mark.parametrize("form", SPARSE_FORMATS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_sparse_value_that_is_not_finite_is_named_by_its_place(value, form):
    A = np.eye(5)
    A[3, 1] = value
    with pytest.raises(KernelError, match=r"K holds NaN or infinity at row 3, column 1\."):
        as_operator(sp.csr_array(A).asformat(form))


@pytest.mark.parametrize("place", [(1, 2), (2, 1), (3, 290), (290, 3)])
def test_the_worst_asymmetry_is_named_with_both_values(place):
    K = np.ones((300, 300))
    K[5, 7] += 1e-3
    K[place] = 4.25
    i, j = place
    one_way = rf"K\[{i}, {j}\] = 4.25 but K\[{j}, {i}\] = 1\."
    other_way = rf"K\[{j}, {i}\] = 1 but K\[{i}, {j}\] = 4.25\."
    with pytest.raises(KernelError, match=f"K is not symmetric: ({one_way}|{other_way})"):
        as_operator(K)


@pytest.mark.parametrize("form", SPARSE_FORMATS)
def test_a_directed_graph_is_refused_with_both_values(form):
    A = np.eye(5)
    A[3, 1] = 0.5
    with pytest.raises(KernelError, match=r"K is not symmetric: K\[(3, 1\] = 0.5 but|1, 3\] = 0 but)"):
        as_operator(sp.csr_array(A).asformat(form))


def test_the_name_given_is_the_name_in_the_message():
    with pytest.raises(KernelError, match=r"^affinity is not symmetric: affinity\[0, 1\]"):
        as_operator(np.array([[1.0, 2.0], [3.0, 1.0]]), name="affinity")


@pytest.mark.parametrize(("dtype", "noise"), [(np.float64, 1e-14), (np.float32, 1e-7)])
def test_rounding_is_not_taken_for_asymmetry(dtype, noise):
    K = 1e6 * np.ones((40, 40), dtype=dtype)
    K += (1e6 * noise * np.random.default_rng(0).standard_normal(K.shape)).astype(dtype)
    assert as_operator(K).shape == (40, 40)


@quick
@given(K=st.one_of(psd_kernels(), indefinite_kernels()), seed=st.integers(0, 1000))
def test_any_symmetric_matrix_passes_and_one_altered_entry_is_found(K, seed):
    assert as_operator(K).shape == K.shape
    i, j = np.random.default_rng(seed).permutation(len(K))[:2]
    broken = K.copy()
    broken[i, j] += 1e-3 * np.abs(K).max()
    with pytest.raises(KernelError, match=rf"\[{min(i, j)}, {max(i, j)}\]"):
        as_operator(broken)


# --- proofs of indefiniteness ----------------------------------------------------------------------------------------


@quick
@given(K=indefinite_kernels())
def test_a_planted_negative_eigenvalue_is_found(K):
    smallest = np.linalg.eigvalsh(K)[0]
    assert algebra.negative_eigenvalue(DenseKernel(K)) == pytest.approx(smallest, rel=1e-6)
    assert algebra.negative_eigenvalue(GraphKernel(sp.csr_array(K))) == pytest.approx(smallest, rel=1e-6)
    assert algebra.negative_eigenvalue(DenseKernel(K.astype(np.float32))) == pytest.approx(smallest, rel=1e-3)


@quick
@given(K=psd_kernels())
def test_nothing_is_found_in_a_positive_semidefinite_kernel(K):
    assert algebra.negative_eigenvalue(DenseKernel(K)) is None
    assert algebra.negative_eigenvalue(DenseKernel(K.astype(np.float32))) is None
    assert algebra.negative_eigenvalue(GraphKernel(sp.csr_array(K))) is None
    assert algebra.negative_eigenvalue(ScaledKernel(FeatureKernel(K), 0.5)) is None


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
    found = algebra.negative_eigenvalue(read(scale * hidden_negative()))
    assert found is not None
    assert found == pytest.approx(-0.5 * scale, rel=1e-6, abs=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_in_a_large_kernel_of_low_rank_is_not_taken_for_a_proof(dtype):
    features = np.random.default_rng(1).standard_normal((700, 2))
    assert algebra.negative_eigenvalue(DenseKernel((features @ features.T).astype(dtype))) is None


def test_a_kernel_known_to_be_positive_semidefinite_is_not_looked_at():
    assert algebra.negative_eigenvalue(DenseKernel(-np.eye(3), psd=True)) is None


# --- distances -------------------------------------------------------------------------------------------------------


@quick
@given(st.data())
def test_distances_to_samples_are_those_of_the_features(data):
    X = data.draw(samples())
    chosen = data.draw(partitions(len(X)))[0][:3]
    op = FeatureKernel(X)
    found = algebra.distances_to_samples(op, chosen, op.diag())
    wanted = ((X[:, None] - X[chosen][None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, wanted, atol=1e-11)


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
    found = algebra.squared_distances(op, sums, totals, norms)
    scatter = algebra.cluster_scatter(within, totals, np.bincount(labels, weights * op.diag(), k))
    for c in range(k):
        members = labels == c
        assert totals[c] == pytest.approx(weights[members].sum())
        if totals[c] == 0:  # no weight, no mean: infinitely far
            assert np.isinf(norms[c])
            assert np.isinf(found[:, c]).all()
            assert scatter[c] == 0
            continue
        mean = np.average(X[members], axis=0, weights=weights[members])
        gaps = ((X - mean) ** 2).sum(axis=1)
        assert norms[c] == pytest.approx(mean @ mean, abs=1e-11)
        np.testing.assert_allclose(found[:, c], gaps, atol=1e-11)
        assert scatter[c] == pytest.approx(weights[members] @ gaps[members], abs=1e-10)


def test_distances_of_new_samples_use_the_norms_of_training():
    X, new = np.array([[0.0], [2.0], [10.0]]), np.array([[1.0], [9.0]])
    labels, weights = np.array([0, 0, 1]), np.ones(3)
    op = FeatureKernel(X)
    within = algebra.within_sums(op.cluster_sums(labels, weights, 2), labels, weights)
    norms = algebra.center_norms(within, np.array([2.0, 1.0]))
    cross = DenseCross(new @ X.T, (new**2).sum(axis=1))
    found = algebra.squared_distances(cross, cross.cluster_sums(labels, weights, 2), np.array([2.0, 1.0]), norms)
    np.testing.assert_allclose(found, [[0.0, 81.0], [64.0, 1.0]], atol=1e-12)  # means at 1 and 10


@quick
@given(st.data())
def test_links_within_and_between_clusters_equal_their_loops(data):
    K = np.abs(data.draw(indefinite_kernels()))
    labels, k = data.draw(partitions(len(K)))
    within, between = np.zeros(k), np.zeros(k)
    for i in range(len(K)):
        for j in range(len(K)):
            (within if labels[i] == labels[j] else between)[labels[i]] += K[i, j]
    for op in (DenseKernel(K), GraphKernel(sp.csr_array(K))):
        found = algebra.cluster_links(op, labels, k)
        np.testing.assert_allclose(found[0], within, rtol=1e-12)
        np.testing.assert_allclose(found[1], between, rtol=1e-12)


# --- nearest clusters ------------------------------------------------------------------------------------------------


def on_a_line(x, labels, n_clusters):
    """Return sums, totals and norms of clusters of numbers."""
    op, weights = FeatureKernel(np.asarray(x, dtype=float)[:, None]), np.ones(len(x))
    sums = op.cluster_sums(labels, weights, n_clusters)
    totals = algebra.cluster_weights(labels, weights, n_clusters)
    return sums, totals, algebra.center_norms(algebra.within_sums(sums, labels, weights), totals)


def test_samples_go_to_the_nearest_mean_worked_out_by_hand():
    labels = np.array([0, 0, 0, 1])
    parts = on_a_line([0.0, 1.0, 11.0, 12.0], labels, 2)  # means 4 and 12
    found, own, lead = algebra.nearest_clusters(*parts, labels)
    assert found.tolist() == [0, 0, 1, 1]
    # ||m||^2 - 2 x m: 16 - 0, 16 - 8, 144 - 264, 144 - 288
    np.testing.assert_allclose(own, [16.0, 8.0, -120.0, -144.0])
    # Of the kept labels sample 3 leads least: at distance^2 0 against 64.
    assert lead == pytest.approx(64.0)


@pytest.mark.parametrize("label", [0, 1])
def test_a_tie_keeps_the_label(label):
    labels = np.array([0, 0, 1, 1, label])
    sums, totals, norms = on_a_line([-2.0, -2.0, 2.0, 2.0, 0.0], np.array([0, 0, 1, 1, 2]), 3)
    found = algebra.nearest_clusters(sums[:2], totals[:2], norms[:2], labels)[0]
    assert found[4] == label


@pytest.mark.parametrize(("slack", "moves"), [(0.0, True), (3.9, True), (4.0, False), (4.1, False), (100.0, False)])
def test_a_sample_leaves_only_for_a_cluster_nearer_by_more_than_the_slack(slack, moves):
    # Means at 0 and 4; a sample at 2.5 is nearer to the second by 6.25 - 2.25 = 4.
    sums, totals, norms = on_a_line([0.0, 4.0, 2.5], np.array([0, 1, 2]), 3)
    found, own, lead = algebra.nearest_clusters(sums[:2], totals[:2], norms[:2], np.array([0, 1, 0]), slack)
    assert found.tolist() == [0, 1, 1 if moves else 0]
    assert own[2] == pytest.approx(16.0 - 20.0 if moves else 0.0)
    # A kept label that is behind by 4 leads by -4, plus the slack; otherwise the first two lead by 16.
    assert lead == pytest.approx(16.0 + slack if moves else slack - 4.0)


@quick
@given(st.data())
def test_an_empty_cluster_is_never_the_nearest(data):
    # One sample at the origin, where a zero column would lie, and the others far from it.
    X = np.vstack([np.zeros((1, 3)), data.draw(samples()) + 5.0])
    labels, k = data.draw(partitions(len(X)))
    empty = data.draw(st.integers(0, k))
    shifted = labels + (labels >= empty)  # makes room for one cluster without members
    op, weights = FeatureKernel(X), np.ones(len(X))
    sums = op.cluster_sums(shifted, weights, k + 1)
    totals = algebra.cluster_weights(shifted, weights, k + 1)
    norms = algebra.center_norms(algebra.within_sums(sums, shifted, weights), totals)
    found, own, _ = algebra.nearest_clusters(sums, totals, norms, shifted)
    assert empty not in found
    assert np.isfinite(own).all()
    from_the_empty_one = algebra.nearest_clusters(sums, totals, norms, np.full(len(X), empty))[0]
    assert empty not in from_the_empty_one


@quick
@given(st.data())
def test_no_cluster_is_nearer_than_the_one_chosen(data):
    X = data.draw(samples())
    labels, k = data.draw(partitions(len(X)))
    weights = data.draw(sample_weights(len(X)))
    op = FeatureKernel(X)
    sums, totals = op.cluster_sums(labels, weights, k), algebra.cluster_weights(labels, weights, k)
    norms = algebra.center_norms(algebra.within_sums(sums, labels, weights), totals)
    distances = algebra.squared_distances(op, sums, totals, norms)
    found, own, lead = algebra.nearest_clusters(sums, totals, norms, labels)
    everyone = np.arange(len(X))
    np.testing.assert_allclose(distances[everyone, found], distances.min(axis=1), atol=1e-11)
    np.testing.assert_allclose(own + op.diag(), distances[everyone, found], atol=1e-11)
    kept = found == labels
    others = np.where(np.arange(k) == found[:, None], np.inf, distances)
    wanted = (others.min(axis=1) - distances[everyone, found])[kept].min(initial=np.inf)
    assert lead == pytest.approx(wanted, abs=1e-10)
