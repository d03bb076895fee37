import itertools
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis.strategies import booleans, integers, sampled_from
from threadpoolctl import threadpool_limits

from kernelweave.kernels.graph import GraphKernel
from kernelweave.partitions.graph_moves import OBJECTIVES, GraphMoves
from kernelweave.solvers.graph import cut_search
from kernelweave.solvers.graph.cut_search import CutPath, polish_cut, search_beside_rivals, search_cuts
from tests.reference import graph_cuts as oracle

cases = settings(max_examples=50, deadline=None)
SEARCHES = ("exact", "fast", "exemplars")
searches = pytest.mark.parametrize("how", SEARCHES)
objectives = pytest.mark.parametrize("objective", OBJECTIVES)


def moves_of(A, objective="normalized_cut"):
    return GraphMoves(GraphKernel(sp.csr_array(A)), objective)


def searched(A, objective, k, how, **options):
    moves = moves_of(A, objective)
    exemplars = np.flatnonzero(moves.masses > 0)[::3] if how == "exemplars" else None
    return search_cuts(moves, n_clusters=k, how=how, exemplars=exemplars, **options)


def general_graph(rng, n, density=1.0):
    """Return a graph with weights in general position: no two nodes, seeds or moves are equally good."""
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 1)
    return A + A.T


@cases
@given(
    A=oracle.graphs(),
    objective=sampled_from(OBJECTIVES),
    how=sampled_from(SEARCHES),
    k=integers(1, 5),
    polish=booleans(),
)
def test_every_stage_has_as_many_clusters_each_with_a_mass_and_the_value_of_the_metric(A, objective, how, k, polish):
    weight = oracle.masses(A, objective)
    assume(np.count_nonzero(weight) >= k)
    result = searched(A, objective, k, how, polish=polish)
    assert len(result.labels) == len(result.values) == k
    assert result.complete
    for stage, (labels, value) in enumerate(zip(result.labels, result.values, strict=True), start=1):
        assert np.unique(labels[weight > 0]).tolist() == list(range(stage))
        assert (labels[weight == 0] == 0).all()
        assert value == pytest.approx(oracle.value(A, labels, objective), abs=1e-9)


@cases
@given(A=oracle.graphs(max_n=10), objective=sampled_from(OBJECTIVES), k=integers(2, 4))
def test_exact_search_makes_the_best_split_that_any_seed_grows(A, objective, k):
    assume(np.count_nonzero(oracle.masses(A, objective)) >= k)
    path = searched(A, objective, k, "exact", polish=False).labels
    for before, after in itertools.pairwise(path):
        best = min(oracle.split_changes(A, before, objective, i)[1].min() for i in range(len(A)))
        change = oracle.cost(A, after, objective) - oracle.cost(A, before, objective)
        assert change == pytest.approx(best, abs=1e-10)


@cases
@given(A=oracle.graphs(max_n=10), objective=sampled_from(OBJECTIVES), how=sampled_from(["fast", "exemplars"]))
def test_with_two_clusters_and_no_polish_no_search_ends_below_the_exact_one(A, objective, how):
    assume(np.count_nonzero(oracle.masses(A, objective)) >= 2)
    exact, other = (searched(A, objective, 2, each, polish=False).labels[-1] for each in ("exact", how))
    assert oracle.cost(A, exact, objective) <= oracle.cost(A, other, objective) + 1e-10


@cases
@given(A=oracle.graphs(max_n=10), objective=sampled_from(OBJECTIVES), how=sampled_from(SEARCHES), k=integers(2, 4))
def test_after_polish_no_single_move_lowers_the_cost_at_any_stage(A, objective, how, k):
    assume(np.count_nonzero(oracle.masses(A, objective)) >= k)
    for stage, labels in enumerate(searched(A, objective, k, how).labels, start=1):
        assert min(oracle.single_moves(A, labels, objective, stage).values(), default=0.0) >= -1e-10


@cases
@given(case=oracle.partitioned_graphs(max_n=12), how=sampled_from(["exact", "fast"]))
def test_a_polished_partition_is_never_worse_and_keeps_its_number_of_clusters(case, how):
    A, objective, labels, k = case
    assume(np.count_nonzero(oracle.masses(A, objective)) >= k)
    result = polish_cut(moves_of(A, objective), labels, n_clusters=k, how=how, deadline=np.inf)
    after = result.labels[-1]
    assert oracle.cost(A, after, objective) <= oracle.cost(A, labels, objective) + 1e-12
    assert (np.bincount(after, oracle.masses(A, objective) > 0, k) > 0).all()
    assert result.values[-1] == pytest.approx(oracle.value(A, after, objective), abs=1e-9)
    assert result.complete


@cases
@given(case=oracle.partitioned_graphs(max_n=12), how=sampled_from(["exact", "fast"]))
def test_polishing_twice_is_polishing_once(case, how):
    A, objective, labels, k = case
    assume(np.count_nonzero(oracle.masses(A, objective)) >= k)
    moves = moves_of(A, objective)
    once = polish_cut(moves, labels, n_clusters=k, how=how, deadline=np.inf)
    twice = polish_cut(moves, once.labels[-1], n_clusters=k, how=how, deadline=np.inf)
    np.testing.assert_array_equal(once.labels[-1], twice.labels[-1])


@searches
@pytest.mark.parametrize("polish", [True, False])
@cases
@given(A=oracle.graphs(kinds=("random", "components", "isolated")))
def test_components_of_a_graph_are_split_off_before_any_edge_is_cut(how, polish, A):
    components = oracle.n_components(A)
    assume(components >= 2)
    values = searched(A, "normalized_cut", components, how, polish=polish).values
    np.testing.assert_allclose(values, 0.0, atol=1e-10)


@searches
def test_a_short_path_beside_a_long_one_is_split_off_at_no_cost(how):
    A = oracle.path(35)
    A[29, 30] = A[30, 29] = 0.0
    assert searched(A, "normalized_cut", 2, how).values[-1] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_two_components_of_equal_weight_are_split_off_whole_whatever_the_rounding(seed):
    # Each component has half the mass, up to the last bit of sums in different orders.
    block = general_graph(np.random.default_rng(seed), 7)
    A = np.kron(np.eye(2), block)
    assert searched(A, "normalized_cut", 2, "exact", polish=False).values[-1] == pytest.approx(0.0, abs=1e-10)


@objectives
@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_the_nodes_does_not_matter_where_nothing_is_equally_good(objective, seed):
    rng = np.random.default_rng(seed)
    A, order = general_graph(rng, 16), rng.permutation(16)
    one, other = (searched(each, objective, 4, "exact", polish=False).values for each in (A, A[np.ix_(order, order)]))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@searches
@pytest.mark.parametrize("seed", range(5))
def test_cliques_in_a_chain_are_found_in_any_order_of_the_nodes(how, seed):
    A, order = oracle.cliques(6, 7, 8, 9), np.random.default_rng(seed).permutation(30)
    result = searched(A[np.ix_(order, order)], "normalized_cut", 4, how)
    labels = np.repeat(np.arange(4), [6, 7, 8, 9])  # the end cliques lose one edge, those between lose two
    assert oracle.value(A, labels, "normalized_cut") == pytest.approx(1 / 31 + 2 / 44 + 2 / 58 + 1 / 73)
    assert result.values[-1] == pytest.approx(oracle.value(A, labels, "normalized_cut"))


@objectives
def test_the_outcome_does_not_depend_on_threads_or_on_the_run(objective):
    rng = np.random.default_rng(0)
    n = 700  # enough seeds and nodes for more than one thread
    offsets = np.arange(1, 5)
    near = (np.arange(n)[:, None] + offsets) % n
    ring = sp.csr_array((rng.random(4 * n) + 0.5, (np.repeat(np.arange(n), 4), near.ravel())), shape=(n, n))
    A = ring + ring.T
    paths = []
    for threads in (1, 2, 2):
        with threadpool_limits(threads):
            paths.append(searched(A, objective, 4, "exact"))
    for path in paths[1:]:
        np.testing.assert_array_equal(np.stack(path.labels), np.stack(paths[0].labels))
        assert path.values == paths[0].values


@pytest.mark.parametrize("how", ["exact", "fast"])
def test_fewer_clusters_are_the_beginning_of_the_path_to_more(how):
    A = general_graph(np.random.default_rng(3), 40, density=0.2)
    longer = searched(A, "normalized_cut", 6, how)
    for k in range(1, 6):
        shorter = searched(A, "normalized_cut", k, how)
        assert shorter.values == longer.values[:k]
        np.testing.assert_array_equal(shorter.labels[-1], longer.labels[k - 1])


@searches
def test_after_the_deadline_the_search_still_ends_with_all_clusters_and_says_so(how):
    A = general_graph(np.random.default_rng(0), 60, density=0.2)
    result = searched(A, "normalized_cut", 5, how, deadline=time.monotonic() - 1.0)
    assert not result.complete
    assert len(np.unique(result.labels[-1])) == 5
    assert result.values[-1] == pytest.approx(oracle.value(A, result.labels[-1], "normalized_cut"))


def test_after_the_deadline_only_single_moves_polish_a_partition():
    A = general_graph(np.random.default_rng(0), 60, density=0.2)
    labels = np.arange(60) % 5
    result = polish_cut(moves_of(A), labels, n_clusters=5, how="exact", deadline=time.monotonic() - 1.0)
    assert not result.complete
    np.testing.assert_array_equal(result.labels[-1], moves_of(A).polished(labels, 5, 1000)[0])


@objectives
@pytest.mark.parametrize(("k", "share"), [(2, 0.9), (3, 0.7)])
def test_on_tiny_graphs_the_optimum_is_never_beaten_and_mostly_reached(objective, k, share):
    reached = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = (
            general_graph(rng, 7, density=rng.choice([0.4, 0.7, 1.0]))
            + np.diag(np.ones(6), 1)
            + np.diag(np.ones(6), -1)
        )
        best = oracle.optimum(A, objective, k)
        result = oracle.cost(A, searched(A, objective, k, "exact").labels[-1], objective)
        assert result >= best - 1e-10
        reached.append(result <= best + 1e-10)
    assert np.mean(reached) >= share


# --- beside rivals ---------------------------------------------------------------------------------------------------


def beside(A, objective, k, rivals, **options):
    return search_beside_rivals(moves_of(A, objective), rivals, n_clusters=k, **options)


def given_path(A, objective, *stages):
    """Return these labels of 1, 2, ... clusters as the path of a search."""
    moves = moves_of(A, objective)
    labels = tuple(np.asarray(each, dtype=np.int64) for each in stages)
    return CutPath(labels, tuple(moves.value(each, k) for k, each in enumerate(labels, start=1)), True)


@settings(max_examples=25, deadline=None)
@given(A=oracle.graphs(), objective=sampled_from(OBJECTIVES), k=integers(1, 5), polish=booleans())
def test_beside_rivals_every_stage_is_the_best_and_the_search_alone_is_what_it_is_without_them(A, objective, k, polish):
    assume(np.count_nonzero(oracle.masses(A, objective)) >= k)
    rivals = {how: searched(A, objective, k, how, polish=polish) for how in ("fast", "exemplars")}
    contest = beside(A, objective, k, rivals, polish=polish)
    alone = searched(A, objective, k, "exact", polish=polish)
    np.testing.assert_array_equal(np.stack(contest.alone.labels), np.stack(alone.labels))
    assert contest.alone.values == alone.values
    for stage in range(k):
        paths = (contest.path, alone, *rivals.values())
        best, *others = (oracle.cost(A, path.labels[stage], objective) for path in paths)
        assert best <= min(others) + 1e-10
    assert contest.values["search"] == alone.values[-1]
    assert {name: contest.values[name] for name in rivals} == {name: each.values[-1] for name, each in rivals.items()}
    assert contest.path.values[-1] == contest.values[contest.winner]
    assert contest.path.complete


def astray(objective):
    """Return a graph on which the bare search misses the best three clusters, and those."""
    for seed in itertools.count():
        A = general_graph(np.random.default_rng(seed), 7, density=0.6) + oracle.path(7)
        every = (np.array((0, *rest)) for rest in itertools.product(range(3), repeat=6) if {1, 2} <= set(rest))
        best = min(every, key=lambda labels: oracle.cost(A, labels, objective))
        found = searched(A, objective, 3, "exact", polish=False).labels[-1]
        if oracle.cost(A, best, objective) < oracle.cost(A, found, objective) - 1e-9:
            return A, best


@objectives
def test_the_search_goes_on_from_a_rival_that_is_better_and_alone_as_before(objective):
    A, best = astray(objective)
    alone = searched(A, objective, 4, "exact", polish=False)
    rival = given_path(A, objective, *alone.labels[:2], best, np.arange(7) % 4)
    contest = beside(A, objective, 4, {"given": rival}, polish=False)
    np.testing.assert_array_equal(contest.path.labels[2], best)
    np.testing.assert_array_equal(contest.alone.labels[3], alone.labels[3])
    change = min(oracle.split_changes(A, best, objective, i)[1].min() for i in range(7))
    cost = {"normalized_cut": change + 1, "ratio_association": -change, "ratio_cut": change}[objective]
    assert contest.values["combined"] - rival.values[2] == pytest.approx(cost, abs=1e-10)


def test_a_rival_that_is_as_good_changes_nothing_and_the_search_wins():
    A = oracle.cliques(6, 7, 8, 9)
    alone = searched(A, "normalized_cut", 4, "exact")
    contest = beside(A, "normalized_cut", 4, {"same": alone})
    assert contest.winner == "search"
    assert sorted(contest.values) == ["same", "search"]
    assert contest.path.values == alone.values


def test_a_polish_cut_short_is_told(monkeypatch):
    A = general_graph(np.random.default_rng(0), 20, density=0.3)
    rival = searched(A, "normalized_cut", 3, "fast")
    assert rival.complete
    monkeypatch.setattr(cut_search, "ROUNDS", 0)
    assert not searched(A, "normalized_cut", 3, "fast").complete
    assert not beside(A, "normalized_cut", 3, {"fast": rival}).path.complete


def test_beside_rivals_the_search_says_that_time_ran_out():
    A = general_graph(np.random.default_rng(0), 60, density=0.2)
    rival = searched(A, "normalized_cut", 5, "fast")
    contest = beside(A, "normalized_cut", 5, {"fast": rival}, deadline=time.monotonic() - 1.0)
    assert not contest.path.complete
    assert not contest.alone.complete
    assert contest.path.values[-1] <= rival.values[-1]
