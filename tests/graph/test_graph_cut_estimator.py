import tracemalloc
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis.strategies import booleans, integers, sampled_from
from scipy.sparse.linalg import ArpackError
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from threadpoolctl import threadpool_limits

from kernelweave import ConvergenceWarning, GraphCut, load_model, save_model
from kernelweave.estimators.graph import graph_cut
from kernelweave.foundation.errors import KernelError, ParameterError
from kernelweave.kernels.graph import GraphKernel
from kernelweave.partitions.graph_moves import GraphMoves
from kernelweave.solvers.graph.cut_search import polish_cut, search_cuts
from tests.inputs.test_graphs import FORMS
from tests.reference import graph_cuts as oracle

SEARCHES = ("exact", "fast", "exemplars")
OBJECTIVES = oracle.OBJECTIVES
searches = pytest.mark.parametrize("search", SEARCHES)
objectives = pytest.mark.parametrize("objective", OBJECTIVES)
quick = settings(max_examples=30, deadline=None)


def weighted_graph(seed=0, n=40, density=0.2):
    """Return a connected graph with weights in general position."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density), 2)
    A[np.arange(n - 1), np.arange(1, n)] = rng.random(n - 1)
    return A + A.T


def ring_lattice(n, n_neighbors):
    """Return n nodes in a ring, each tied to its ``n_neighbors`` next on either side, as a sparse matrix."""
    near = (np.arange(n)[:, None] + np.arange(1, n_neighbors + 1)) % n
    one_way = sp.csr_array(
        (np.ones(n * n_neighbors), (np.repeat(np.arange(n), n_neighbors), near.ravel())), shape=(n, n)
    )
    return one_way + one_way.T


# --- results ---------------------------------------------------------------------------------------------------------


@searches
@objectives
def test_the_fitted_attributes_describe_the_largest_solution_and_the_path_to_it(search, objective):
    A = weighted_graph()
    model = GraphCut(6, objective=objective, search=search).fit(A)
    assert model.labels_path_.shape == (6, 40)
    assert model.cut_path_.shape == (6,)
    np.testing.assert_array_equal(model.labels_path_[-1], model.labels_)
    np.testing.assert_array_equal(model.cut_path_, model.objective_path_)
    assert model.cut_value_ == model.objective_ == model.cut_path_[-1]
    assert [np.unique(labels).tolist() for labels in model.labels_path_] == [list(range(k)) for k in range(1, 7)]
    assert model.n_iter_ == 6
    assert model.n_features_in_ == 40
    assert model.converged_
    assert hasattr(model, "exemplar_indices_") == (search == "exemplars")


@quick
@given(
    A=oracle.graphs(),
    k=integers(1, 5),
    objective=sampled_from(OBJECTIVES),
    search=sampled_from(SEARCHES),
    polish=booleans(),
)
def test_every_row_of_the_path_has_the_cut_stored_for_it(A, k, objective, search, polish):
    assume(np.count_nonzero(oracle.masses(A, objective)) >= k)
    model = GraphCut(k, objective=objective, search=search, polish=polish).fit(A)
    assert len(model.labels_path_) == len(model.cut_path_) == k
    for stage, (labels, value) in enumerate(zip(model.labels_path_, model.cut_path_, strict=True), start=1):
        assert (np.bincount(labels, oracle.masses(A, objective) > 0, stage) > 0).all()
        assert value == pytest.approx(oracle.value(A, labels, objective), abs=1e-9)


@searches
def test_friends_in_a_chain_are_found_with_the_cut_worked_out_by_hand(search):
    model = GraphCut(3, search=search).fit(oracle.cliques(4, 4, 4))
    assert sorted(np.bincount(model.labels_).tolist()) == [4, 4, 4]
    assert model.cut_value_ == pytest.approx(1 / 13 + 2 / 14 + 1 / 13)  # edges cut over edge ends of each group


@objectives
def test_a_fast_fit_with_fewer_clusters_is_a_row_of_the_path(objective):
    A = weighted_graph()
    longer = GraphCut(6, objective=objective).fit(A)
    for k in range(1, 6):
        shorter = GraphCut(k, objective=objective).fit(A)
        np.testing.assert_array_equal(shorter.labels_, longer.labels_path_[k - 1])


@pytest.mark.parametrize("n_clusters", [2, 4, 6])
@objectives
def test_the_exact_search_is_at_least_as_good_as_every_other_way(objective, n_clusters):
    A, sign = weighted_graph(), -1.0 if objective == "ratio_association" else 1.0
    exact = GraphCut(n_clusters, objective=objective, search="exact", random_state=0).fit(A)
    for other in ({"search": "fast"}, {"search": "exemplars"}, {"init": "spectral"}):
        model = GraphCut(n_clusters, objective=objective, random_state=0, **other).fit(A)
        assert sign * exact.cut_value_ <= sign * model.cut_value_ + 1e-9


# Seeds of graphs of 40 nodes that one candidate alone cuts best into six clusters.
WINNERS = {
    "normalized_cut": {"spectral": 1, "search": 5, "fast": 6, "combined": 12, "exemplars": 28},
    "ratio_association": {"fast": 2, "spectral": 3, "search": 15, "exemplars": 22, "combined": 32},
}
WON = [(objective, name, seed) for objective, seeds in WINNERS.items() for name, seed in seeds.items()]


def candidates(A, objective):
    """Return what the exact search and each of its rivals reach when they are run one by one; no ``combined``."""
    options = {"n_clusters": 6, "objective": objective, "random_state": 0}
    moves = GraphMoves(GraphKernel(sp.csr_array(A)), objective)
    spectral = [GraphCut(init="spectral", search=how, **options).fit(A).cut_value_ for how in ("fast", "exact")]
    return {
        "search": search_cuts(moves, n_clusters=6, how="exact").values[-1],
        "fast": GraphCut(search="fast", **options).fit(A).cut_value_,
        "exemplars": GraphCut(search="exemplars", **options).fit(A).cut_value_,
        "spectral": max(spectral) if objective == "ratio_association" else min(spectral),
    }


@pytest.mark.parametrize(("objective", "winner", "seed"), WON)
def test_each_candidate_of_the_exact_search_can_win_and_has_what_it_reaches_by_itself(objective, winner, seed):
    A = weighted_graph(seed, density=0.1)
    model = GraphCut(6, objective=objective, search="exact", random_state=0).fit(A)
    reached = dict(model.candidate_objectives_)
    sign = -1.0 if objective == "ratio_association" else 1.0
    assert model.winner_ == winner
    assert model.objective_ == reached[winner]
    assert model.objective_ == pytest.approx(oracle.value(A, model.labels_, objective), abs=1e-9)
    assert all(sign * (value - model.objective_) > 1e-6 for name, value in reached.items() if name != winner)
    reached.pop("combined", None)
    assert reached == pytest.approx(candidates(A, objective), abs=1e-9)


@pytest.mark.parametrize(("how", "other", "seed"), [("fast", "exact", 34), ("exact", "fast", 9)])
def test_the_spectral_start_of_the_exact_search_is_polished_both_ways_and_the_better_counts(how, other, seed):
    A = weighted_graph(seed, density=0.1)
    better, worse = (GraphCut(6, init="spectral", search=each, random_state=0).fit(A) for each in (how, other))
    assert better.cut_value_ < worse.cut_value_ - 1e-6
    model = GraphCut(6, search="exact", random_state=0).fit(A)
    assert model.candidate_objectives_["spectral"] == better.cut_value_


@pytest.mark.parametrize(
    "error", [ArpackError(-1), np.linalg.LinAlgError("singular")], ids=lambda each: type(each).__name__
)
def test_without_eigenvectors_the_exact_search_keeps_what_it_found(monkeypatch, error):
    def fail(*args):
        raise error

    A = weighted_graph(WINNERS["normalized_cut"]["spectral"], density=0.1)
    with_them = GraphCut(6, search="exact", random_state=0).fit(A)
    monkeypatch.setattr(GraphCut, "_spectral_labels", fail)
    model = GraphCut(6, search="exact", random_state=0).fit(A)
    rest = {name: value for name, value in with_them.candidate_objectives_.items() if name != "spectral"}
    assert model.candidate_objectives_ == rest
    assert model.cut_value_ == rest[model.winner_] == min(rest.values())
    assert model.converged_
    np.testing.assert_array_equal(model.labels_path_[:-1], with_them.labels_path_[:-1])


@pytest.mark.parametrize("winner", ["spectral", "search"])
def test_a_spectral_start_that_was_not_polished_to_its_end_counts_where_it_wins(monkeypatch, winner):
    monkeypatch.setattr(
        graph_cut, "polish_cut", lambda *args, **options: replace(polish_cut(*args, **options), complete=False)
    )
    model = GraphCut(6, search="exact", random_state=0)
    with pytest.warns(ConvergenceWarning) if winner == "spectral" else nullcontext():
        model.fit(weighted_graph(WINNERS["normalized_cut"][winner], density=0.1))
    assert model.winner_ == winner
    assert model.converged_ == (winner != "spectral")


def test_without_polish_the_exact_search_tries_no_spectral_start(monkeypatch):
    monkeypatch.delattr(GraphCut, "_spectral")
    model = GraphCut(6, search="exact", polish=False).fit(weighted_graph())
    assert "spectral" not in model.candidate_objectives_


@objectives
def test_rows_of_the_exact_search_are_at_least_as_good_as_those_of_the_searches_it_runs(objective):
    A = weighted_graph(WINNERS["normalized_cut"]["combined"], density=0.1)
    exact = GraphCut(6, objective=objective, search="exact", random_state=0).fit(A)
    for search in ("fast", "exemplars"):
        other = GraphCut(6, objective=objective, search=search).fit(A)
        costs = ([oracle.cost(A, labels, objective) for labels in model.labels_path_] for model in (exact, other))
        assert (np.subtract(*costs) <= 1e-9).all()


def test_what_a_search_leaves_behind_is_gone_after_another():
    A = weighted_graph()
    model = GraphCut(3, search="exact").fit(A)
    assert model.winner_ in model.candidate_objectives_
    model.set_params(search="exemplars").fit(A)
    assert not hasattr(model, "winner_")
    assert not hasattr(model, "candidate_objectives_")
    assert not hasattr(model.set_params(search="exact").fit(A), "exemplar_indices_")
    assert not hasattr(model.set_params(init="spectral").fit(A), "winner_")


def test_the_winner_is_kept_in_a_saved_model(tmp_path):
    model = GraphCut(3, search="exact").fit(weighted_graph())
    save_model(model, tmp_path / "model.kwm")
    again = load_model(tmp_path / "model.kwm")
    assert again.winner_ == model.winner_
    assert again.candidate_objectives_ == model.candidate_objectives_


@searches
@objectives
def test_the_outcome_is_the_same_again_and_with_any_number_of_threads(search, objective):
    A = ring_lattice(400, 4)
    A.data *= 1.0 + np.cos(A.indices + np.repeat(np.arange(400), np.diff(A.indptr))) / 2  # symmetric in the two ends
    labels = []
    for threads in (1, 2, 2):
        with threadpool_limits(threads):
            labels.append(GraphCut(4, objective=objective, search=search).fit_predict(A))
    np.testing.assert_array_equal(labels[0], labels[1])
    np.testing.assert_array_equal(labels[0], labels[2])


def test_the_seed_does_not_touch_the_search():
    A = weighted_graph()
    one, other = (GraphCut(4, random_state=seed).fit(A) for seed in (0, 1))
    np.testing.assert_array_equal(one.labels_path_, other.labels_path_)


@searches
@objectives
def test_one_cluster_holds_all_nodes(search, objective):
    A = weighted_graph(n=10)
    model = GraphCut(1, objective=objective, search=search).fit(A)
    assert model.labels_.tolist() == [0] * 10
    assert model.cut_value_ == pytest.approx(oracle.value(A, model.labels_, objective), abs=1e-12)


@searches
@objectives
def test_as_many_clusters_as_nodes_leave_every_node_alone(search, objective):
    A = weighted_graph(n=7)
    model = GraphCut(7, objective=objective, search=search).fit(A)
    assert sorted(model.labels_.tolist()) == list(range(7))


# --- pieces and nodes without edges -----------------------------------------------------------------------------------


@searches
@objectives
def test_a_graph_without_edges_costs_nothing(search, objective):
    A = sp.csr_array((5, 5))
    k = 1 if objective == "normalized_cut" else 3
    model = GraphCut(k, objective=objective, search=search).fit(A)
    assert len(np.unique(model.labels_)) == k
    np.testing.assert_allclose(model.cut_path_, 0.0, atol=1e-12)


@searches
@pytest.mark.parametrize("seed", range(3))
def test_nodes_without_edges_stay_in_cluster_0_under_the_normalized_cut(search, seed):
    order = np.random.default_rng(seed).permutation(15)
    A = np.zeros((15, 15))
    A[:12, :12] = oracle.cliques(4, 4, 4)
    A = A[np.ix_(order, order)]
    model = GraphCut(3, search=search).fit(A)
    alone = ~A.any(axis=1)
    assert (model.labels_path_[:, alone] == 0).all()
    assert sorted(np.bincount(model.labels_[~alone]).tolist()) == [4, 4, 4]


@searches
@pytest.mark.parametrize("objective", ["normalized_cut", "ratio_cut"])
@pytest.mark.parametrize("sizes", [(6, 3, 3), (12, 3, 3, 2), (3, 3, 12)])
def test_parts_are_split_off_at_no_cost_with_or_without_polish(search, objective, sizes):
    A = oracle.cliques(*sizes, chain=False)
    for polish in (True, False):
        model = GraphCut(len(sizes), objective=objective, search=search, polish=polish).fit(A)
        np.testing.assert_allclose(model.cut_path_, 0.0, atol=1e-10)


# --- starts ----------------------------------------------------------------------------------------------------


@quick
@given(case=oracle.partitioned_graphs(max_n=12), search=sampled_from(["exact", "fast"]))
def test_polish_is_never_worse_than_the_labels_given_and_no_polish_leaves_them(case, search):
    A, objective, labels, k = case
    assume(np.count_nonzero(oracle.masses(A, objective)) >= k)
    start = labels.copy()
    better = GraphCut(k, objective=objective, search=search, init=labels).fit(A)
    same = GraphCut(k, objective=objective, init=labels, polish=False).fit(A)
    np.testing.assert_array_equal(labels, start)
    np.testing.assert_array_equal(same.labels_, labels)
    assert same.cut_value_ == pytest.approx(oracle.value(A, labels, objective), abs=1e-9)
    assert oracle.cost(A, better.labels_, objective) <= oracle.cost(A, labels, objective) + 1e-12
    assert better.labels_path_.shape == (1, len(A))
    assert better.cut_path_.shape == (1,)


@objectives
def test_a_spectral_start_follows_its_seed_and_ends_at_or_below_scikit_learns_cut(objective):
    A = weighted_graph(n=120, density=0.05)
    one, two = (GraphCut(5, objective=objective, init="spectral", random_state=3).fit(A) for _ in range(2))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    spectral = SpectralClustering(5, affinity="precomputed", assign_labels="cluster_qr", random_state=3).fit(A)
    assert oracle.cost(A, one.labels_, objective) <= oracle.cost(A, spectral.labels_, objective) + 1e-10


@objectives
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_a_spectral_start_takes_a_graph_in_parts_without_a_warning(objective, k):
    model = GraphCut(k, objective=objective, init="spectral", random_state=0).fit(oracle.cliques(9, 8, 7, chain=False))
    assert len(np.unique(model.labels_)) == k
    if k <= 3 and objective != "ratio_association":
        assert model.cut_value_ == pytest.approx(0.0, abs=1e-10)


@objectives
@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_spectral_start_takes_a_graph_with_nodes_without_edges(objective, k):
    A = np.zeros((14, 14))
    A[:12, :12] = oracle.cliques(6, 6)
    model = GraphCut(k, objective=objective, init="spectral", random_state=0).fit(A)
    assert len(np.unique(model.labels_[:12] if objective == "normalized_cut" else model.labels_)) == k


def test_a_cluster_that_the_spectral_start_leaves_empty_takes_a_node_of_the_largest(monkeypatch):
    monkeypatch.setattr(GraphCut, "_spectral_labels", lambda self, A: np.array([1, 1, 0, 0, 0, 0, 1]))
    model = GraphCut(4, init="spectral", polish=False).fit(ring_lattice(7, 1))
    assert model.labels_.tolist() == [1, 1, 0, 0, 3, 2, 1]


def test_a_spectral_start_takes_as_many_clusters_as_nodes():
    model = GraphCut(6, init="spectral", random_state=0).fit(oracle.cliques(3, 3))
    assert sorted(model.labels_.tolist()) == list(range(6))


# --- exemplars -------------------------------------------------------------------------------------------------------


@objectives
def test_exemplars_are_distinct_nodes_that_have_edges_and_at_most_as_many_as_asked_for(objective):
    A = np.zeros((30, 30))
    A[:28, :28] = oracle.cliques(7, 7, 7, 7)
    for asked, most in ((None, 8), (3, 3), (20, 20)):
        exemplars = GraphCut(4, objective=objective, search="exemplars", n_exemplars=asked).fit(A).exemplar_indices_
        assert 1 <= len(exemplars) <= most
        assert len(set(exemplars.tolist())) == len(exemplars)
        if objective == "normalized_cut":
            assert set(exemplars.tolist()) <= set(range(28))


@objectives
def test_the_automatic_shift_is_one_for_scaled_degrees_and_the_largest_degree_otherwise(objective):
    rng = np.random.default_rng(0)
    block = np.repeat(np.arange(3), 8)
    A = (rng.random((24, 24)) < np.where(block[:, None] == block, 0.6, 0.1)) * rng.integers(1, 6, (24, 24))
    A = np.triu(A, 1).astype(float)
    A = A + A.T
    largest = float(A.sum(axis=0).max())
    shift, other = (1.0, largest) if objective == "normalized_cut" else (largest, 1.0)

    def exemplars(**options):
        return GraphCut(3, objective=objective, search="exemplars", **options).fit(A).exemplar_indices_.tolist()

    assert exemplars() == exemplars(shift=shift)
    assert exemplars() not in (exemplars(shift=other), exemplars(shift=0.0))


@objectives
@pytest.mark.parametrize("shift", [0.0, 1.0, 100.0, "auto"])
@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_shift_and_unit_of_the_weights_change_no_definition_of_the_cut(objective, shift, unit):
    A = unit * weighted_graph()
    model = GraphCut(3, objective=objective, search="exemplars", shift=shift).fit(A)
    assert model.cut_value_ == pytest.approx(oracle.value(A, model.labels_, objective), rel=1e-9)


@objectives
def test_a_node_tied_by_a_very_light_edge_does_not_stop_the_exemplars(objective):
    A = weighted_graph(n=200, density=0.1)
    A[0] = A[:, 0] = 0.0
    A[0, 1] = A[1, 0] = 1e-6
    model = GraphCut(3, objective=objective, search="exemplars").fit(A)
    assert model.cut_value_ == pytest.approx(oracle.value(A, model.labels_, objective))


# --- time ------------------------------------------------------------------------------------------------------------


@searches
def test_no_time_left_still_gives_all_clusters_and_a_warning(search):
    A = weighted_graph(n=200, density=0.05)
    with pytest.warns(ConvergenceWarning, match=r"time_budget=1e-09"):
        model = GraphCut(5, search=search, time_budget=1e-9).fit(A)
    assert not model.converged_
    assert len(np.unique(model.labels_)) == 5
    assert model.cut_value_ == pytest.approx(oracle.value(A, model.labels_, "normalized_cut"))


def test_no_time_left_for_given_labels_still_gives_nothing_worse():
    A, labels = weighted_graph(n=200, density=0.05), np.arange(200) % 5
    with pytest.warns(ConvergenceWarning, match="time_budget"):
        model = GraphCut(5, init=labels, time_budget=1e-9).fit(A)
    assert not model.converged_
    assert model.cut_value_ <= oracle.value(A, labels, "normalized_cut")


def test_time_enough_changes_nothing():
    A = weighted_graph()
    plain, timed = GraphCut(4).fit(A), GraphCut(4, time_budget=600.0).fit(A)
    np.testing.assert_array_equal(plain.labels_path_, timed.labels_path_)
    assert timed.converged_


# --- input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_graph_gives_the_same_labels(form):
    A = oracle.cliques(4, 5, 6) * 0.5
    plain, other = GraphCut(3).fit(A), GraphCut(3).fit(FORMS[form](A))
    np.testing.assert_array_equal(plain.labels_path_, other.labels_path_)
    assert other.cut_value_ == plain.cut_value_


@searches
def test_graph_parameters_and_start_stay_untouched(search):
    A, labels = sp.csr_array(weighted_graph()), np.arange(40) % 3
    data, start = A.data.copy(), labels.copy()
    model = GraphCut(3, search=search)
    before = model.get_params()
    model.fit(A)
    assert model.get_params() == before
    clone(model).set_params(init=labels).fit(A)
    np.testing.assert_array_equal(A.data, data)
    np.testing.assert_array_equal(labels, start)


@pytest.mark.parametrize(
    ("parameters", "A", "error", "match"),
    [
        ({"n_clusters": 8}, oracle.path(5), ParameterError, r"n_samples=5.*n_clusters=8"),
        ({"n_clusters": 0}, oracle.path(5), ValueError, r"n_clusters.*0"),
        ({"n_clusters": 3}, np.diag([1.0, 1.0, 0.0, 0.0]), ParameterError, r"Only 2 nodes.*n_clusters=3.*ratio_cut"),
        ({"init": [0, 0, 1, 1, 1]}, oracle.path(5), ParameterError, "init.*cluster 2"),
        ({"init": [0, 1, 2]}, oracle.path(5), ParameterError, r"init.*\(3,\).*\(5,\)"),
        ({"init": [0, 1, 2, 3, 0]}, oracle.path(5), ParameterError, r"init.*0 to 3.*n_clusters=3"),
        ({"init": list("abcab")}, oracle.path(5), ParameterError, "init must hold whole numbers"),
        ({"init": "random"}, oracle.path(5), ValueError, "'init'.*'random'"),
        ({"n_exemplars": 6, "search": "exemplars"}, oracle.path(5), ParameterError, "n_exemplars=6.*5 nodes"),
        ({"objective": "mincut"}, oracle.path(5), ValueError, "'objective'.*'mincut'"),
        ({"search": "all"}, oracle.path(5), ValueError, "'search'.*'all'"),
        ({"shift": -1.0}, oracle.path(5), ValueError, "'shift'.*-1.0"),
        ({"time_budget": 0}, oracle.path(5), ValueError, "'time_budget'.*0"),
        ({}, np.ones((5, 4)), KernelError, r"square.*\(5, 4\)"),
        ({}, -oracle.path(5), KernelError, r"Negative.*= -1"),
        ({}, np.triu(oracle.path(5)), KernelError, "not symmetric"),
        ({}, np.full((5, 5), np.nan), ValueError, "NaN"),
        ({}, [["a"] * 5] * 5, ParameterError, "X holds text"),
    ],
)
def test_bad_input_is_refused_with_the_name_or_the_value(parameters, A, error, match):
    with pytest.raises(error, match=match):
        GraphCut(**{"n_clusters": 3, **parameters}).fit(A)


def test_under_the_normalized_cut_a_cluster_of_nodes_without_edges_is_refused_as_a_start():
    A = np.zeros((5, 5))
    A[:4, :4] = oracle.path(4)
    with pytest.raises(ParameterError, match="init leaves cluster 1 without a node that has an edge"):
        GraphCut(2, init=[0, 0, 0, 0, 1]).fit(A)
    assert GraphCut(2, init=[0, 0, 0, 0, 1], objective="ratio_cut").fit(A).cut_value_ == 0.0


# --- memory ----------------------------------------------------------------------------------------------------------


def test_a_large_sparse_graph_is_never_made_dense():
    n = 50_000
    A = ring_lattice(n, 3)
    tracemalloc.start()
    try:
        model = GraphCut(8).fit(A)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * A.nnz * 8  # a hundred numbers per edge are 240 MB; the dense matrix takes 20 GB
    assert len(np.unique(model.labels_)) == 8
    # Eight arcs of 6,250 nodes: each loses 1 + 2 + 3 edges at either end, of 6 edge ends per node.
    assert model.cut_value_ <= 1.5 * 8 * 12 / (6 * n / 8)
