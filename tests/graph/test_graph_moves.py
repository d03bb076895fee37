import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis.strategies import integers

from kernelweave.backends import get_backend
from kernelweave.kernels.graph import GraphKernel
from kernelweave.partitions.graph_moves import OBJECTIVES, GraphMoves
from tests.reference import graph_cuts as oracle

cases = settings(max_examples=45, deadline=None)
objectives = pytest.mark.parametrize("objective", OBJECTIVES)


def moves_of(A, objective):
    return GraphMoves(GraphKernel(sp.csr_array(A)), objective)


def removed(labels, nodes):
    """Return the labels with the nodes in a cluster of their own."""
    labels = labels.copy()
    labels[nodes] = labels.max() + 1
    return labels


def test_a_path_of_four_nodes_costs_what_was_worked_out_by_hand():
    A, labels = oracle.path(4), np.array([0, 0, 1, 1])
    expected = {  # each half: association 2 (one edge, from both ends), degree 3, two nodes
        "normalized_cut": 2 - 2 / 3 - 2 / 3,
        "ratio_association": 2 / 2 + 2 / 2,
        "ratio_cut": (3 - 2) / 2 + (3 - 2) / 2,
    }
    for objective, value in expected.items():
        moves = moves_of(A, objective)
        assert moves.value(labels, 2) == pytest.approx(value)


@cases
@given(case=oracle.partitioned_graphs())
def test_the_numbers_of_every_cluster_equal_sums_over_its_nodes(case):
    A, objective, labels, k = case
    result = moves_of(A, objective).stats(labels, k)
    np.testing.assert_allclose(result, oracle.stats(A, labels, objective, k), rtol=1e-12, atol=1e-12)


@cases
@given(case=oracle.partitioned_graphs())
def test_the_costs_add_up_to_the_metric_of_the_same_name(case):
    A, objective, labels, k = case
    moves = moves_of(A, objective)
    costs = moves.costs(moves.stats(labels, k))
    assert costs.sum() == pytest.approx(oracle.cost(A, labels, objective), abs=1e-12)
    assert moves.value(labels, k) == pytest.approx(oracle.value(A, labels, objective), abs=1e-10)


@cases
@given(case=oracle.partitioned_graphs())
def test_joining_two_clusters_changes_the_cost_by_what_recomputing_says(case):
    A, objective, labels, k = case
    moves = moves_of(A, objective)
    first, second, changes = moves.merge_costs(labels, moves.stats(labels, k))
    expected = oracle.merge_changes(A, labels, objective, k)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == sorted(expected)
    np.testing.assert_allclose(changes, [expected[pair] for pair in sorted(expected)], rtol=1e-12, atol=1e-12)


@cases
@given(case=oracle.partitioned_graphs(max_clusters=3))
def test_every_seed_reaches_the_best_prefix_of_the_plain_growth(case):
    A, objective, labels, k = case
    moves = moves_of(A, objective)
    result = moves.splits(labels, moves.stats(labels, k), np.arange(len(A)))
    expected = [oracle.split_changes(A, labels, objective, i)[1].min() for i in range(len(A))]
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12)


@cases
@given(case=oracle.partitioned_graphs(max_clusters=3))
def test_the_nodes_grown_begin_the_plain_order_of_growth_and_their_removal_makes_the_change(case):
    A, objective, labels, k = case
    moves = moves_of(A, objective)
    stats = moves.stats(labels, k)
    changes = moves.splits(labels, stats, np.arange(len(A)))
    for seed_node in range(len(A)):
        nodes = moves.grown(labels, stats, seed_node).tolist()
        order = oracle.split_changes(A, labels, objective, seed_node)[0]
        assert nodes == order[: len(nodes)]
        if np.isfinite(changes[seed_node]):
            after = oracle.cost(A, removed(labels, nodes), objective)
            assert after - oracle.cost(A, labels, objective) == pytest.approx(changes[seed_node], abs=1e-12)
        else:
            assert nodes == []


@cases
@given(case=oracle.partitioned_graphs(max_n=12))
def test_polishing_never_raises_the_cost_and_leaves_no_single_move_that_lowers_it(case):
    A, objective, labels, k = case
    moves, before = moves_of(A, objective), labels.copy()
    result, ended = moves.polished(labels, k, 1000)
    assert ended
    np.testing.assert_array_equal(labels, before)
    assert oracle.cost(A, result, objective) <= oracle.cost(A, labels, objective) + 1e-12
    assert min(oracle.single_moves(A, result, objective, k).values(), default=0.0) >= -1e-10


@cases
@given(case=oracle.partitioned_graphs())
def test_polishing_leaves_every_cluster_a_node_with_a_mass_and_nodes_without_one_alone(case):
    A, objective, labels, k = case
    moves = moves_of(A, objective)
    result, _ = moves.polished(labels, k, 1000)
    filled = np.bincount(labels, moves.masses > 0, k) > 0
    assert (np.bincount(result, moves.masses > 0, k) > 0)[filled].all()
    np.testing.assert_array_equal(result[moves.masses == 0], labels[moves.masses == 0])


@objectives
@cases
@given(seed=integers(0, 2**16), n=integers(4, 11), k=integers(2, 4))
def test_polishing_moves_the_nodes_that_the_plain_sweeps_move(objective, seed, n, k):
    # Weights in general position: no two moves are equally good, so that the path is the same on both sides.
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.6))
    A += np.triu(A, 1).T
    A[np.arange(n - 1), np.arange(1, n)] = A[np.arange(1, n), np.arange(n - 1)] = rng.random(n - 1)
    labels = rng.permutation(np.r_[np.arange(k), rng.integers(k, size=n - k)])
    moves = moves_of(A, objective)
    result, _ = moves.polished(labels, k, 1000)
    np.testing.assert_array_equal(result, oracle.polished(A, labels, objective, k, moves.tolerance))


def test_a_sweep_that_moved_a_node_is_not_known_to_be_the_last():
    A, labels = oracle.cliques(4, 4), np.array([0, 0, 0, 1, 1, 1, 1, 1])
    moves = moves_of(A, "normalized_cut")
    once, ended = moves.polished(labels, 2, 1)
    assert once.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert not ended
    again, ended = moves.polished(once, 2, 1)
    assert again.tolist() == once.tolist()
    assert ended


@pytest.mark.parametrize("scale", [2.0**60, 2.0**-60])
@objectives
def test_the_unit_of_the_weights_decides_nothing(objective, scale):
    # The normalized cut has no unit, the others have that of the weights: a power of two changes no rounding.
    rng = np.random.default_rng(0)
    A = np.triu(rng.random((30, 30)) * (rng.random((30, 30)) < 0.3), 1)
    A += A.T
    labels = rng.permutation(np.arange(30) % 3)
    result = [moves_of(factor * A, objective).polished(labels, 3, 1000)[0] for factor in (1.0, scale)]
    np.testing.assert_array_equal(*result)


def test_a_backend_without_moves_on_graphs_is_named():
    graph = GraphKernel(sp.csr_array(oracle.path(4)))
    graph.backend = get_backend("numpy")
    with pytest.raises(NotImplementedError, match="'numpy' has no moves on graphs"):
        GraphMoves(graph, "ratio_cut")


def test_a_stored_zero_is_no_edge():
    # A list of clusters met by edges, as long as there are clusters, would otherwise run over.
    A = sp.csr_array(([1.0, 0.0, 1.0, 1.0, 0.0, 1.0], ([0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2])), shape=(4, 4))
    moves, labels = GraphMoves(GraphKernel(A), "ratio_cut"), np.array([0, 0, 1, 1])
    assert len(moves.merge_costs(labels, moves.stats(labels, 2))[0]) == 0
    assert moves.ends(np.zeros(4, dtype=int), 0).tolist() == [0, 1]


def test_the_ends_of_a_path_are_its_ends():
    order = np.random.default_rng(0).permutation(9)
    A = oracle.path(9)[np.ix_(order, order)]
    ends = moves_of(A, "normalized_cut").ends(np.zeros(9, dtype=int), 4)
    assert sorted(order[ends].tolist()) == [0, 8]


def test_ends_stay_inside_the_cluster():
    labels = np.array([0, 0, 0, 1, 1, 1, 1])
    moves = moves_of(oracle.path(7), "normalized_cut")
    assert moves.ends(labels, 1).tolist() == [0, 2]
    assert moves.ends(labels, 5).tolist() == [3, 6]


@objectives
def test_a_graph_whose_nodes_are_all_seeds_gives_the_same_splits_together_and_one_by_one(objective):
    rng = np.random.default_rng(1)
    A = np.where(rng.random((300, 300)) < 0.03, rng.random((300, 300)), 0.0)
    moves = moves_of(A + A.T, objective)
    labels = np.zeros(300, dtype=int)
    stats = moves.stats(labels, 1)
    together = moves.splits(labels, stats, np.arange(300))
    alone = [moves.splits(labels, stats, np.array([i]))[0] for i in range(300)]
    np.testing.assert_array_equal(together, alone)
