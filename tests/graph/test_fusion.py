"""Fused graphs, their eigenvectors and cuts, beside a slow implementation of the formulas."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from kernelweave import metrics
from kernelweave.estimators.graph.fusion_views import mean_graph
from kernelweave.foundation import threads as threads_module
from kernelweave.kernels.neighbors import nearest_others, self_tuned_graph
from kernelweave.solvers.graph import fusion
from kernelweave.solvers.graph.fusion import (
    GraphClusters,
    cut_clusters,
    damping,
    fuse_graphs,
    graph_eigenvectors,
    join_copies,
    kmeans_on,
    normalized,
    unit_rows,
    weighted_sum,
)
from tests.reference import graph_cuts
from tests.reference import graph_fusion as oracle

SEEDS = (0, 1, 2)
seeds = pytest.mark.parametrize("seed", SEEDS)
RNG = np.random.default_rng(0)  # exact searches draw nothing


def groups(seed, n=30, k=3, d=3, apart=5.0):
    """Return samples around k centres, and their groups."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return apart * rng.standard_normal((k, d))[y] + rng.standard_normal((n, d)), y


def neighbour_graphs(seed, n_views=3):
    """Return graphs of views, the last of which has nothing to do with the groups."""
    rng = np.random.default_rng(100 + seed)
    tables = [groups(seed + 10 * v)[0] for v in range(n_views - 1)]
    tables.append(rng.standard_normal((30, 3)))
    return [self_tuned_graph(nearest_others(X, 6, RNG)) for X in tables]


def dense(graphs):
    return [graph.toarray() for graph in graphs]


def generators(count, seed=0):
    return [np.random.default_rng([seed, i]) for i in range(count)]


# --- graphs ----------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(5, 14), st.integers(1, 4))
def test_the_self_tuned_graph_is_that_of_the_formula(seed, n, m):
    X = np.random.default_rng(seed).standard_normal((n, 3))
    A = self_tuned_graph(nearest_others(X, m, RNG)).toarray()
    np.testing.assert_allclose(A, oracle.self_tuned_graph(oracle.distances(X), m), atol=1e-9)


@seeds
def test_graphs_are_averaged_over_representations_and_sizes(seed):
    X, _ = groups(seed)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    near = [nearest_others(Z, 8, RNG) for Z in (X, unit)]
    np.testing.assert_allclose(mean_graph(near, (4, 8)).toarray(), oracle.mean_graph((X, unit), (4, 8)), atol=1e-12)


@seeds
def test_degrees_are_normalised(seed):
    W = neighbour_graphs(seed)[0]
    np.testing.assert_allclose(normalized(W).toarray(), oracle.normalized(W.toarray()), atol=1e-14)


def test_a_node_without_edges_keeps_an_empty_row():
    W = sp.csr_array(np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    np.testing.assert_allclose(normalized(W).toarray(), [[0, 1, 0], [1, 0, 0], [0, 0, 0]], atol=1e-12)


# --- fusion ----------------------------------------------------------------------------------------------------------


@seeds
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("start", [None, [3.0, 1.0, 2.0]])
def test_weights_are_those_of_one_round_by_the_formula(seed, k, start):
    graphs = neighbour_graphs(seed)
    first = np.ones(3) if start is None else np.array(start) / 2
    weights, W = oracle.fuse(dense(graphs), k, first)
    fused = fuse_graphs(graphs, k, None if start is None else np.array(start))
    np.testing.assert_allclose(fused.view_weights, weights, rtol=1e-8)
    np.testing.assert_allclose(fused.affinity.toarray(), W, atol=1e-10)


@seeds
def test_the_view_without_groups_weighs_least(seed):
    fused = fuse_graphs(neighbour_graphs(seed), 3)
    assert fused.view_weights.argmin() == 2
    assert fused.view_weights.mean() == pytest.approx(1.0)


def test_fixed_weights_stay_in_their_proportions():
    graphs = neighbour_graphs(0)
    fused = fuse_graphs(graphs, 3, np.array([1.0, 0.0, 3.0]), learned=False)
    np.testing.assert_allclose(fused.view_weights, [0.75, 0.0, 2.25])
    np.testing.assert_allclose(fused.affinity.toarray(), 0.75 * dense(graphs)[0] + 2.25 * dense(graphs)[2])


def test_a_view_without_edges_keeps_a_weight_above_zero():
    graphs = [neighbour_graphs(0)[0], sp.csr_array((30, 30))]
    weights = fuse_graphs(graphs, 3).view_weights
    assert 0 < weights[1] < 1e-5


@seeds
def test_eigenvectors_span_what_a_dense_decomposition_spans(seed):
    W = fuse_graphs(neighbour_graphs(seed), 3).affinity
    ours = graph_eigenvectors(W, 3)
    values, vectors = oracle.leading(W.toarray(), 3)
    np.testing.assert_allclose(ours.values, values, atol=1e-10)
    np.testing.assert_allclose(ours.vectors @ ours.vectors.T, vectors @ vectors.T, atol=1e-8)


def test_large_graphs_go_through_products_and_agree(monkeypatch):
    W = neighbour_graphs(1)[0]
    whole = graph_eigenvectors(W, 3)
    monkeypatch.setattr(fusion, "SMALL", 10)
    ours = graph_eigenvectors(W, 3)
    assert ours.block is not None
    assert ours.residual < fusion.EIGEN_TOLERANCE
    np.testing.assert_allclose(ours.values, whole.values, atol=1e-4)
    np.testing.assert_allclose(ours.vectors @ ours.vectors.T, whole.vectors @ whole.vectors.T, atol=1e-2)


def test_every_copy_of_a_repeated_eigenvalue_is_there(monkeypatch):
    monkeypatch.setattr(fusion, "SMALL", 10)
    W = sp.csr_array(graph_cuts.cliques(9, 9, 9, 9, chain=False))
    values = graph_eigenvectors(W, 5).values
    np.testing.assert_allclose(values[:4], 1.0, atol=1e-6)
    assert values[4] < 0.5


def test_more_eigenvectors_than_nodes_are_as_many_as_nodes():
    W = sp.csr_array(graph_cuts.path(4))
    assert graph_eigenvectors(W, 9).vectors.shape == (4, 4)


# --- embedding -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[1.0, 0.8, 0.4, 0.1], [1.0, 1.0, 0.9, -0.5], [0.9, 0.5, 0.5, 0.5]])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_vectors_beyond_the_first_k_are_damped_by_the_fourth_power(values, k):
    np.testing.assert_allclose(damping(np.array(values), k), oracle.damping(values, k))


def test_a_graph_of_zeros_is_not_divided_by_zero():
    np.testing.assert_array_equal(damping(np.zeros(4), 2), [1, 1, 0, 0])


@seeds
def test_inner_products_of_the_embedding_are_those_of_the_formula(seed):
    W = fuse_graphs(neighbour_graphs(seed), 3).affinity
    vectors = graph_eigenvectors(W, 6)
    E = unit_rows(vectors.vectors * damping(vectors.values, 3))
    wanted = oracle.embedding(W.toarray(), 3)
    np.testing.assert_allclose(E @ E.T, wanted @ wanted.T, atol=1e-8)


def test_rows_of_zeros_stay_and_others_have_unit_length():
    E = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0], [1e-20, 0.0]]))
    np.testing.assert_allclose(E, [[0.6, 0.8], [0.0, 0.0], [0.0, 0.0]])


# --- cuts ------------------------------------------------------------------------------------------------------------


@seeds
@pytest.mark.parametrize("polish", [False, True])
def test_the_cut_is_that_of_the_labels(seed, polish):
    graphs = neighbour_graphs(seed)
    fused = fuse_graphs(graphs, 4)
    clusters = cut_clusters(fused.affinity, unit_rows(fused.eigenvectors.vectors), 4, generators(3), polish=polish)
    W = fused.affinity.toarray()
    assert clusters.cut == pytest.approx(oracle.normalized_cut(W, clusters.labels))
    assert clusters.cut == pytest.approx(metrics.normalized_cut(W, clusters.labels))
    assert len(clusters.cuts) == 1 + polish


@seeds
def test_no_single_move_lowers_the_cut_any_more(seed):
    W = neighbour_graphs(seed)[2]
    vectors = graph_eigenvectors(W, 4)
    clusters = cut_clusters(W, unit_rows(vectors.vectors), 4, generators(1))
    assert clusters.converged
    assert clusters.cuts[1] <= clusters.cuts[0]
    changes = graph_cuts.single_moves(W.toarray(), clusters.labels, "normalized_cut", 4)
    assert min(changes.values()) > -1e-9


def test_of_several_runs_the_lowest_cut_is_kept():
    W = neighbour_graphs(0)[2]
    E = unit_rows(graph_eigenvectors(W, 5).vectors)
    alone = [cut_clusters(W, E, 5, [rng], polish=False).cut for rng in generators(6)]
    together = cut_clusters(W, E, 5, generators(6), polish=False).cut
    assert len(set(np.round(alone, 9))) > 1
    assert together == pytest.approx(min(alone))


def test_runs_are_followed_one_by_one_and_may_end_early():
    W = neighbour_graphs(0)[2]
    E = unit_rows(graph_eigenvectors(W, 5).vectors)
    seen = []

    def first_two(results):
        for number, result in enumerate(results):
            seen.append(number)
            yield result
            if number == 1:
                return

    stopped = cut_clusters(W, E, 5, generators(6), polish=False, follow=first_two)
    assert seen == [0, 1]
    np.testing.assert_array_equal(stopped.labels, cut_clusters(W, E, 5, generators(2), polish=False).labels)


@pytest.mark.parametrize("sampled", [10_000, 40])
def test_runs_at_the_same_time_give_the_clusters_of_one_after_another(sampled, monkeypatch):
    monkeypatch.setattr(fusion, "ROUNDED_ROWS", sampled)
    W = neighbour_graphs(0)[2]
    E = unit_rows(graph_eigenvectors(W, 8).vectors)
    results = []
    for count in (1, 3):
        monkeypatch.setattr(threads_module, "openmp_threads", lambda count=count: count)
        results.append(cut_clusters(W, E, 4, generators(6), other=unit_rows(E[:, :4])))
    np.testing.assert_array_equal(results[0].labels, results[1].labels)
    assert results[0].cuts == results[1].cuts


def test_another_embedding_is_preferred_where_it_halves_the_cut():
    W = sp.csr_array(graph_cuts.cliques(6, 6, 6))
    y = np.repeat(np.arange(3), 6)
    right = np.eye(3)[y]
    wrong = np.eye(3)[np.arange(18) % 3]
    for embedding, other in ((wrong, right), (right, wrong)):
        clusters = cut_clusters(W, embedding, 3, generators(1), polish=False, other=other)
        assert metrics.adjusted_rand_index(y, clusters.labels) == 1.0


def test_another_embedding_that_cuts_a_little_less_is_not_preferred():
    W = neighbour_graphs(0)[2]
    better = cut_clusters(W, unit_rows(graph_eigenvectors(W, 3).vectors), 3, generators(3)).labels
    worse = better.copy()
    worse[:3] = (better[:3] + 1) % 3
    assert 0.5 < oracle.normalized_cut(W.toarray(), better) / oracle.normalized_cut(W.toarray(), worse) < 1.0
    clusters = cut_clusters(W, np.eye(3)[worse], 3, generators(1), polish=False, other=np.eye(3)[better])
    assert metrics.adjusted_rand_index(worse, clusters.labels) == 1.0


def test_without_a_generator_there_is_nothing_to_run():
    W = neighbour_graphs(0)[0]
    with pytest.raises(ValueError, match="at least one generator"):
        cut_clusters(W, np.ones((30, 2)), 2, [])


def test_kmeans_on_a_sample_places_the_others_at_the_nearest_centre(monkeypatch):
    X, y = groups(0, n=60, apart=20.0)
    monkeypatch.setattr(fusion, "ROUNDED_ROWS", 25)
    labels = kmeans_on(X, 3)(np.random.default_rng(0))
    assert len(labels) == 60
    assert metrics.adjusted_rand_index(y, labels) == 1.0


def test_weighted_sums_add_up():
    graphs = neighbour_graphs(0)
    total = weighted_sum(graphs, np.array([1.0, 2.0, 0.5])).toarray()
    np.testing.assert_allclose(total, dense(graphs)[0] + 2 * dense(graphs)[1] + 0.5 * dense(graphs)[2])


# --- equal samples ---------------------------------------------------------------------------------------------------


def test_copies_of_a_sample_go_where_most_of_them_are():
    W = neighbour_graphs(0)[0]
    copies = np.arange(30)
    copies[[3, 4]] = copies[2]
    copies = np.unique(copies, return_inverse=True)[1]
    labels = np.arange(30) % 3  # 2, 0 and 1 for the copies 2, 3 and 4
    labels[4] = 2
    joined = join_copies(W, GraphClusters(labels, (0.5, 0.4), True), copies, 3)
    assert joined.labels[2:5].tolist() == [2, 2, 2]
    np.testing.assert_array_equal(np.delete(joined.labels, 3), np.delete(labels, 3))
    assert joined.cut == pytest.approx(oracle.normalized_cut(W.toarray(), joined.labels))


def test_clusters_that_divide_no_copies_stay_as_they_are():
    clusters = GraphClusters(np.arange(30) % 3, (0.5, 0.4), True)
    assert join_copies(neighbour_graphs(0)[0], clusters, np.arange(30), 3) is clusters


def test_as_many_different_samples_as_clusters_have_one_each():
    W = sp.csr_array(1.0 - np.eye(6))
    clusters = GraphClusters(np.array([0, 0, 1, 1, 2, 2]), (0.0,), True)
    joined = join_copies(W, clusters, np.array([0, 1, 0, 2, 1, 2]), 3)
    assert joined.labels.tolist() == [0, 1, 0, 2, 1, 2]


def test_eigenvectors_of_large_graphs_come_within_the_tolerance_at_any_number_of_threads(monkeypatch):
    rng = np.random.default_rng(0)
    n = fusion.SMALL + 100
    own = np.arange(n) // (n // 3 + 1)
    ends = rng.integers(n, size=(2, 12 * n))
    kept = (own[ends[0]] == own[ends[1]]) | (rng.random(12 * n) < 0.05)
    A = sp.csr_array((np.ones(kept.sum()), (ends[0, kept], ends[1, kept])), shape=(n, n))
    W = sp.csr_array(A + A.T)
    wanted = np.linalg.eigvalsh(normalized(W).toarray())[::-1][:3]
    monkeypatch.setattr(fusion, "MANY", 100)
    monkeypatch.setattr(threads_module, "WORTH_A_THREAD", 0)
    results = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads_module, "thread_count", lambda count=count: count)
        with threadpool_limits(2, user_api="blas"):
            results.append(graph_eigenvectors(W, 6, exact=3))
    assert results[0].residual <= fusion.EIGEN_TOLERANCE
    np.testing.assert_allclose(results[0].values[:3], wanted, rtol=0, atol=1e-7)
    gap = normalized(W) @ results[0].vectors[:, :3] - results[0].vectors[:, :3] * wanted
    assert np.linalg.norm(gap, axis=0).max() <= 2.0 * fusion.EIGEN_TOLERANCE
    for other in results[1:]:
        np.testing.assert_array_equal(other.vectors, results[0].vectors)
