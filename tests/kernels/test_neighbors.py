"""The nearest samples: of those equally far away the first ones, at any number of threads."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from kernelweave import (
    CoRegularizedSpectralClustering,
    GlobalKernelKMeans,
    KernelKMeans,
    MinMaxKernelKMeans,
    MultiViewKernelKMeans,
    MultiViewSpectralClustering,
    NgSpectralClustering,
)
from kernelweave.backends import neighbor_index
from kernelweave.foundation import threads as threading_rules
from kernelweave.foundation.errors import MissingPackageError, ParameterError, ViewWarning
from kernelweave.kernels import neighbors as fusion_neighbors
from kernelweave.kernels.neighbors import (
    Neighbors,
    check_search,
    is_exact,
    measured_recall,
    nearest_by_distances,
    nearest_in_all,
    nearest_known,
    nearest_others,
    recall_by_distances,
    self_tuned_graph,
)
from kernelweave.kernels.spec import neighbors as spec_neighbors
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.spec.neighbors import CHUNK, nearest
from tests.peak_memory import peak_of

GRID = np.stack(np.meshgrid(*[np.arange(5.0)] * 3), axis=-1).reshape(-1, 3)


def plainly(X, Y, count, metric):
    """Sort all samples by distance, then by place; distances that rounding moved apart are the same."""
    D = np.round(pairwise_distances(Y, X, metric=metric), 6)
    order = np.lexsort((np.broadcast_to(np.arange(len(X)), D.shape), D), axis=-1)[:, :count]
    return np.sort(order, axis=1)


def neighbors(X, Y, count, metric, **options):
    index = NearestNeighbors(n_neighbors=count, metric=metric, **options).fit(X)
    return nearest(index, Y)


@pytest.mark.parametrize("count", [1, 2, 5, 7, 20, 124, 125])
@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree"])
def test_of_samples_equally_far_away_the_first_are_nearest(count, algorithm):
    distances, others = neighbors(GRID, GRID, count, "euclidean", algorithm=algorithm)
    np.testing.assert_array_equal(np.sort(others, axis=1), plainly(GRID, GRID, count, "euclidean"))
    assert (np.diff(distances, axis=1) >= 0).all()
    wanted = np.linalg.norm(GRID[:, None] - GRID[others], axis=2)
    np.testing.assert_allclose(distances, wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("metric", "sparse"),
    [("chebyshev", False), *((name, kind) for name in ("manhattan", "cosine", "euclidean") for kind in (False, True))],
)
def test_every_metric_breaks_ties_in_the_same_way(metric, sparse):
    X = GRID + 1.0
    given_ = sp.csr_array(X) if sparse else X
    _, others = neighbors(given_, given_, 6, metric)
    np.testing.assert_array_equal(np.sort(others, axis=1), plainly(X, X, 6, metric))


@settings(deadline=None, max_examples=45)
@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from([1.0, 1e-6, 1e6]))
def test_few_distinct_values_give_what_a_plain_sort_gives(seed, count, unit):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(40, 2)).astype(float)
    Y = rng.integers(0, 3, size=(9, 2)).astype(float)
    _, others = neighbors(X * unit, Y * unit, count, "euclidean")
    np.testing.assert_array_equal(np.sort(others, axis=1), plainly(X, Y, count, "euclidean"))


def test_equal_samples_without_end_have_the_first_ones_as_neighbours():
    X = np.zeros((CHUNK + 50, 2))
    distances, others = neighbors(X, X, 4, "euclidean")
    np.testing.assert_array_equal(others, np.broadcast_to(np.arange(4), (len(X), 4)))
    np.testing.assert_array_equal(distances, 0.0)


def test_the_graph_of_digits_is_the_same_at_any_number_of_threads():
    X = load_digits().data
    graphs = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            graphs.append(fit_kernel(X, "nearest_neighbors", {"n_neighbors": 10}).operator().A)
    for other in graphs[1:]:
        assert (abs(graphs[0] - other)).sum() == 0.0


@pytest.mark.parametrize("name", ["nearest_neighbors", "self_tuning"])
def test_few_samples_are_neighbours_of_all_others_unless_a_number_is_asked_for(name):
    X = np.arange(8.0).reshape(4, 2)
    usual, all_others = (
        fit_kernel(X, name, params).operator().block(slice(None), slice(None)) for params in ({}, {"n_neighbors": 3})
    )
    np.testing.assert_array_equal(usual, all_others)
    with pytest.raises(
        ParameterError, match=r"n_neighbors=4 in kernel_params must be .* below the number of samples, 4"
    ):
        fit_kernel(X, name, {"n_neighbors": 4})
    with pytest.raises(ParameterError, match="below the number of samples, 1"):
        fit_kernel(X[:1], name)


def test_edges_of_the_neighbour_graph_that_one_end_has_only_count_half_in_the_mean_and_whole_in_the_maximum():
    X = np.array([[0.0], [1.0], [3.0]])  # 0 and 1 have each other, 2 has 1
    graphs = {}
    for symmetrize in ("mean", "max"):
        fitted = fit_kernel(X, "nearest_neighbors", {"n_neighbors": 1, "symmetrize": symmetrize})
        graphs[symmetrize] = fitted.operator().A.toarray()
    np.testing.assert_array_equal(graphs["mean"], [[1.0, 1.0, 0.0], [1.0, 1.0, 0.5], [0.0, 0.5, 1.0]])
    np.testing.assert_array_equal(graphs["max"], [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])


def test_self_tuned_edges_of_the_neighbour_graph_are_measured_by_the_radii_of_both_ends():
    X = np.array([[0.0], [1.0], [3.0]])  # of radius 1, 1 and 2
    fitted = fit_kernel(X, "nearest_neighbors", {"n_neighbors": 1, "weights": "self_tuning"})
    A = fitted.operator().A.toarray()
    assert A[0, 1] == pytest.approx(np.exp(-1.0))
    assert A[1, 2] == A[2, 1] == pytest.approx(np.exp(-4.0 / (1.0 * 2.0)) / 2)


def test_a_new_sample_is_a_neighbour_of_training_samples_within_their_own_radius():
    # The two nearest of 2.5 are 3 and 1. It lies within the radius 2 of the former, not within the radius 1 of the
    # latter.
    X = np.array([[0.0], [1.0], [3.0]])
    params = {"n_neighbors": 1}
    plain = fit_kernel(X, "nearest_neighbors", params).cross(np.array([[2.5]]))
    np.testing.assert_array_equal(plain.A.toarray(), [[0.0, 0.5, 1.0]])
    tuned = fit_kernel(X, "nearest_neighbors", params | {"weights": "self_tuning"}).cross(np.array([[2.5]]))
    wanted = [0.0, np.exp(-(1.5**2) / (1.5 * 1.0)) / 2, np.exp(-(0.5**2) / (1.5 * 2.0))]
    np.testing.assert_allclose(tuned.A.toarray(), [wanted])


# --- neighbours of graph fusion ---------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)


def others_plainly(X, m):
    """Return the m nearest others by a plain sort, first by distance and then by place, and their distances."""
    D = np.array([[np.sqrt(np.square(a - b).sum()) for b in X] for a in X])
    np.fill_diagonal(D, np.inf)
    order = np.lexsort((np.broadcast_to(np.arange(len(X)), D.shape), np.round(D, 9)), axis=-1)[:, :m]
    return order, np.take_along_axis(D, order, axis=1)


def clustered(n=1500, n_groups=12, d=5, seed=0):
    """Return samples around several centres."""
    rng = np.random.default_rng(seed)
    return 6.0 * rng.standard_normal((n_groups, d))[rng.integers(n_groups, size=n)] + rng.standard_normal((n, d))


def unit_counts(n=90, d=60, share=0.06, seed=0):
    """Return sparse rows >= 0 of unit length, some of them empty."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < share)
    X[[4, 40]] = 0.0
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return sp.csr_array(np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0))


def recall(found, wanted):
    """Return the share of wanted neighbours that were found."""
    return np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, wanted, strict=True)])


def in_cells(X, m, seed=0):
    """Return neighbours by the approximate search, whatever the number of rows."""
    return nearest_others(X, m, np.random.default_rng(seed), exact_limit=0)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n", [40, 300])  # one tile, and two
def test_exact_search_finds_what_scikit_learn_finds(seed, n):
    X = np.random.default_rng(seed).standard_normal((n, 4))
    distances, others = NearestNeighbors(n_neighbors=8, algorithm="brute").fit(X).kneighbors()
    near = nearest_others(X, 7, RNG)
    np.testing.assert_array_equal(near.indices, others[:, :7])
    np.testing.assert_allclose(near.distances, distances[:, :7], atol=1e-7)
    np.testing.assert_array_equal(near.first(3).indices, others[:, :3])


@pytest.mark.parametrize("m", [1, 4, 7, 123, 124])
@pytest.mark.parametrize("scale", [1.0, 1 / 3])
def test_ties_change_who_is_a_neighbour_but_not_how_far(m, scale):
    _, distances = others_plainly(scale * GRID, m)
    near = nearest_others(scale * GRID, m, np.random.default_rng(0))
    np.testing.assert_allclose(near.distances, distances)
    assert all(len(set(row)) == m for row in near.indices.tolist())


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from([1e-6, 1.0, 1e6]))
def test_copies_are_as_far_away_in_any_unit(seed, m, unit):
    rng = np.random.default_rng(seed)
    X = unit * rng.standard_normal((6, 3))[rng.integers(6, size=40)]
    _, distances = others_plainly(X / unit, m)
    near = nearest_others(X, m, np.random.default_rng(0))
    np.testing.assert_allclose(near.distances, unit * distances, rtol=1e-9)


@pytest.mark.parametrize("X", [np.zeros((60, 2)), sp.csr_array(np.ones((60, 1)))], ids=["dense", "sparse"])
def test_equal_samples_share_out_their_ties_so_that_none_becomes_a_hub(X):
    near = nearest_others(X, 5, np.random.default_rng(0))
    assert np.bincount(near.indices.ravel(), minlength=60).tolist() == [5] * 60


def test_ties_do_not_follow_the_order_of_the_file():
    near = nearest_others(np.zeros((200, 2)), 5, np.random.default_rng(0))
    steps = np.abs(near.indices - np.arange(200)[:, None])
    assert np.median(steps) > 30


@pytest.mark.parametrize("m", [4, 9])
def test_rounding_does_not_decide_between_others_equally_far_away(m):
    near = [nearest_others(GRID * unit, m, np.random.default_rng(0)) for unit in (1.0, 1 / 3, 0.7)]
    for other in near[1:]:
        np.testing.assert_array_equal(np.sort(other.indices, axis=1), np.sort(near[0].indices, axis=1))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_neighbours_equally_near_come_in_the_order_of_the_data(form):
    near = nearest_others(form(np.repeat(np.eye(3), 8, axis=0)), 5, np.random.default_rng(0))
    assert (np.diff(near.indices, axis=1) > 0).all()


def test_no_sample_is_its_own_neighbour():
    for X in (np.zeros((300, 2)), sp.csr_array(np.ones((300, 1)))):
        near = nearest_others(X, 5, RNG)
        assert not (near.indices == np.arange(300)[:, None]).any()


def test_no_more_neighbours_than_others_there_are():
    near = nearest_others(np.arange(4.0)[:, None], 9, RNG)
    assert near.indices.tolist() == [[1, 2, 3], [0, 2, 3], [1, 3, 0], [2, 1, 0]]
    assert nearest_others(sp.csr_array(np.ones((4, 1))), 9, RNG).indices.shape == (4, 3)


def test_distances_of_samples_close_together_keep_their_digits():
    X = 1e3 + 1e-7 * np.arange(6.0)[:, None]  # squares of differences are lost beside squares of 1e3
    near = nearest_others(X, 3, RNG)
    np.testing.assert_array_equal(near.distances, np.abs(X[near.indices] - X[:, None])[:, :, 0])


def test_new_samples_have_the_nearest_training_samples_and_may_equal_one():
    X = np.random.default_rng(0).standard_normal((60, 3))
    new = np.vstack([X[7], np.random.default_rng(1).standard_normal((9, 3))])
    near = nearest_known(new, X, 5)
    distances, others = NearestNeighbors(n_neighbors=5, algorithm="brute").fit(X).kneighbors(new)
    np.testing.assert_array_equal(near.indices, others)
    np.testing.assert_allclose(near.distances, distances, atol=1e-7)
    assert near.indices[0, 0] == 7
    assert near.distances[0, 0] == 0.0
    assert nearest_known(new, X[:3], 5).indices.shape == (10, 3)


def test_neighbours_by_a_matrix_of_distances_are_those_of_the_samples():
    X = GRID[::2]
    wanted, distances = others_plainly(X, 6)
    near = nearest_by_distances(pairwise_distances(X).__getitem__, len(X), 6)
    np.testing.assert_allclose(near.distances, distances)
    D = np.round(np.square(pairwise_distances(X)))  # whole numbers: ties are equal
    np.testing.assert_array_equal(nearest_by_distances(D.__getitem__, len(D), 6).indices, wanted)


# --- sparse rows


def test_sparse_search_by_cosine_finds_what_dense_search_finds():
    Z = unit_counts(share=0.5)[5:40]  # no empty rows, and all share a column
    sparse = nearest_others(Z, 6, RNG)
    dense = nearest_others(Z.toarray(), 6, RNG)
    np.testing.assert_array_equal(sparse.indices, dense.indices)
    np.testing.assert_allclose(sparse.distances, dense.distances, atol=1e-7)


@pytest.mark.parametrize("m", [3, 40])
def test_sparse_search_finds_the_largest_cosines(m):
    Z = unit_counts()
    near = nearest_others(Z, m, RNG)
    cosines = (Z @ Z.T).toarray()
    np.fill_diagonal(cosines, 0.0)
    for row, values in enumerate(cosines):
        order = np.lexsort((np.arange(len(values)), -np.round(values, 12)))
        wanted = [j for j in order if values[j] > 0][:m]
        found = near.indices[row][np.isfinite(near.distances[row])]
        assert sorted(found.tolist()) == sorted(wanted)
        apart = np.linalg.norm(Z.toarray()[row] - Z.toarray()[found], axis=1)
        np.testing.assert_allclose(near.distances[row, : len(found)], apart, atol=1e-7)


def test_sparse_rows_searched_some_at_a_time_have_the_same_neighbours(monkeypatch):
    Z = unit_counts(share=0.2)
    at_once = nearest_others(Z, 4, np.random.default_rng(0))
    monkeypatch.setattr(fusion_neighbors, "SPARSE_ROWS", 7)
    in_parts = nearest_others(Z, 4, np.random.default_rng(0))
    np.testing.assert_array_equal(in_parts.indices, at_once.indices)
    np.testing.assert_array_equal(in_parts.distances, at_once.distances)
    known = np.isfinite(in_parts.distances)
    assert not (known & (in_parts.indices == np.arange(90)[:, None])).any()


def test_sparse_rows_have_equal_rows_as_neighbours():
    rows = np.zeros((30, 6))
    rows[:, 0] = 1.0
    rows[::3] = np.eye(6)[1]
    near = nearest_others(sp.csr_array(rows), 4, np.random.default_rng(0))
    assert (near.indices[::3] % 3 == 0).all()
    assert (near.indices[1::3] % 3 != 0).all()


def test_rows_that_share_no_column_are_infinitely_far_and_empty_rows_have_no_neighbours():
    Z = unit_counts()
    near = nearest_others(Z, 80, RNG)
    shared = ((Z @ Z.T).toarray() > 0) & ~np.eye(90, dtype=bool)
    np.testing.assert_array_equal(np.isfinite(near.distances).sum(axis=1), np.minimum(shared.sum(axis=1), 80))
    assert np.isinf(near.distances[[4, 40]]).all()
    A = self_tuned_graph(near)
    assert np.diff(A.indptr)[[4, 40]].tolist() == [0, 0]
    assert A.nnz <= shared.sum()


def test_new_sparse_rows_find_training_rows_by_cosine():
    Z = unit_counts()
    near = nearest_known(Z[:20], Z, 3)
    full = np.flatnonzero(np.diff(Z[:20].indptr))
    np.testing.assert_array_equal(near.indices[full, 0], full)
    np.testing.assert_allclose(near.distances[full, 0], 0.0, atol=1e-7)
    assert np.isinf(near.distances[4]).all()


# --- cells


def test_approximate_search_finds_nine_of_ten_neighbours(monkeypatch):
    monkeypatch.setattr(fusion_neighbors, "CELL_ROWS", 50)
    X = clustered()
    near = in_cells(X, 10)
    assert recall(near.indices, nearest_others(X, 10, RNG).indices) >= 0.9
    np.testing.assert_allclose(near.distances, np.linalg.norm(X[:, None] - X[near.indices], axis=2))
    assert not (near.indices == np.arange(len(X))[:, None]).any()
    assert near.indices.max() < len(X)


def test_cells_that_are_all_searched_give_the_exact_neighbours(monkeypatch):
    X = np.vstack([clustered(350), clustered(50)[:49]])
    X -= X[7]  # a row at the origin has products of zero with all rows, itself among them
    exact = nearest_others(X, 10, RNG)
    one_cell = in_cells(X, 10)
    np.testing.assert_array_equal(one_cell.indices, exact.indices)
    np.testing.assert_array_equal(one_cell.distances, exact.distances)
    monkeypatch.setattr(fusion_neighbors, "CELL_ROWS", 50)  # eight cells, and twelve are searched
    np.testing.assert_array_equal(in_cells(X, 10).indices, exact.indices)


def cloud(n=3000, d=12):
    """Return rows without clusters, whose neighbours are spread over many cells."""
    return np.random.default_rng(0).standard_normal((n, d))


def test_where_cells_miss_many_neighbours_those_of_neighbours_are_met(monkeypatch):
    monkeypatch.setattr(fusion_neighbors, "CELL_ROWS", 30)
    X = cloud()
    exact = nearest_others(X, 10, RNG).indices
    near = in_cells(X, 10)
    assert recall(near.indices, exact) >= 0.91  # AIM, on 300 rows
    np.testing.assert_allclose(near.distances, np.linalg.norm(X[:, None] - X[near.indices], axis=2))
    assert (np.diff(near.distances, axis=1) >= 0).all()
    assert not (near.indices == np.arange(len(X))[:, None]).any()
    assert all(len(set(row)) == 10 for row in near.indices.tolist())
    monkeypatch.setattr(fusion_neighbors, "ROUNDS", 0)
    assert recall(in_cells(X, 10).indices, exact) < 0.7


def test_rounds_end_when_enough_is_found_or_hardly_anything_changes(monkeypatch):
    monkeypatch.setattr(fusion_neighbors, "CELL_ROWS", 30)
    fresh = []

    class Watched(fusion_neighbors.NeighborRounds):
        def take(self):
            super().take()
            fresh.append(self.fresh[:, :10].mean())

    monkeypatch.setattr(fusion_neighbors, "NeighborRounds", Watched)
    in_cells(clustered(), 10)
    assert fresh == []  # cells are enough
    in_cells(cloud(), 10)
    enough = len(fresh)
    assert 1 < enough < fusion_neighbors.ROUNDS
    monkeypatch.setattr(fusion_neighbors, "AIM", 1.1)
    fresh.clear()
    in_cells(cloud(), 10)
    assert enough < len(fresh) < fusion_neighbors.ROUNDS
    assert min(fresh[:-1]) >= fusion_neighbors.HARDLY > fresh[-1]


@pytest.mark.parametrize("wanted", [10, 40])
def test_a_search_in_cells_takes_no_more_memory_than_is_counted(wanted, monkeypatch):
    monkeypatch.setattr(fusion_neighbors, "CELL_ROWS", 100)
    monkeypatch.setattr(fusion_neighbors, "AIM", 1.1)  # all rounds
    X = cloud(20_000)
    with threadpool_limits(1):
        counted = fusion_neighbors.cells_bytes(*X.shape, wanted)
        tracemalloc.start()
        near = in_cells(X, wanted)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert 0.5 * counted < peak < counted + near.indices.nbytes + near.distances.nbytes


def test_rounds_look_for_more_neighbours_than_are_kept_of_few(monkeypatch):
    monkeypatch.setattr(fusion_neighbors, "CELL_ROWS", 30)
    X = cloud(1500)
    near = in_cells(X, 40)
    assert near.indices.shape == (1500, 40)
    assert recall(near.indices, nearest_others(X, 40, RNG).indices) >= 0.91


def test_equal_rows_in_several_cells_meet_as_many_as_are_wanted(monkeypatch):
    monkeypatch.setattr(fusion_neighbors, "CELL_ROWS", 30)
    X = np.vstack([cloud(1500), np.zeros((300, 12)), np.ones((200, 12))])
    near = in_cells(X, 10)
    assert near.distances[1500:].max() == 0.0
    assert all(len(set(row)) == 10 for row in near.indices.tolist())


def test_small_cells_are_joined_until_there_are_enough_neighbours(monkeypatch):
    monkeypatch.setattr(fusion_neighbors, "CELL_ROWS", 4)
    monkeypatch.setattr(fusion_neighbors, "CELLS_SEARCHED", 1)
    near = in_cells(clustered(200), 30)
    assert np.isfinite(near.distances).all()
    assert all(len(set(row)) == 30 for row in near.indices.tolist())


def test_many_equal_samples_in_a_cell_do_not_take_a_square_of_them():
    X = clustered(2400, d=2)
    X[:2000] = 0.0
    tracemalloc.start()
    near = in_cells(X, 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # 2000 x 2000 numbers are 32 MB
    assert near.distances[:2000].max() == 0.0


def test_the_seed_decides_the_cells(monkeypatch):
    monkeypatch.setattr(fusion_neighbors, "CELL_ROWS", 20)
    monkeypatch.setattr(fusion_neighbors, "CELLS_SEARCHED", 2)
    X = clustered(600)
    np.testing.assert_array_equal(in_cells(X, 5, seed=0).indices, in_cells(X, 5, seed=0).indices)
    assert (in_cells(X, 5, seed=0).indices != in_cells(X, 5, seed=1).indices).any()


@pytest.mark.parametrize("search", ["exact", "cells", "rounds", "sparse"])
def test_neighbours_are_the_same_at_any_number_of_threads(search, monkeypatch):
    monkeypatch.setattr(threading_rules, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(fusion_neighbors, "CELL_ROWS", 50)
    monkeypatch.setattr(fusion_neighbors, "SPARSE_ROWS", 100)
    X = {"exact": clustered(1200), "cells": clustered(1200), "rounds": cloud(1200), "sparse": unit_counts(600)}[search]
    results = []
    for count in (1, 2):
        with threadpool_limits(count):
            exact = nearest_others(X, 8, np.random.default_rng(0))
            results.append(in_cells(X, 8) if search in ("cells", "rounds") else exact)
    np.testing.assert_array_equal(results[0].indices, results[1].indices)
    np.testing.assert_array_equal(results[0].distances, results[1].distances)


# --- an index


def by_index(X, m, seed=0):
    return nearest_others(X, m, np.random.default_rng(seed), search="approximate")


@pytest.fixture(params=[1, 4])
def parts(request, monkeypatch):
    """Among how many indexes 1,500 rows are divided; each holds enough not to be compared with all."""
    monkeypatch.setattr(neighbor_index, "PART_ROWS", -(-1500 // request.param))
    monkeypatch.setattr(neighbor_index, "FEW_ROWS", 300)
    return request.param


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("order", ["drawn", "sorted"])
def test_indexes_find_nine_of_ten_neighbours_also_where_rows_are_sorted(order):
    X = clustered(1500, d=8)
    X = X[np.argsort(X[:, 0])] if order == "sorted" else X
    near = by_index(X, 10)
    exact = nearest_others(X, 10, RNG, search="exact")
    assert recall(near.indices, exact.indices) >= 0.95
    assert measured_recall(X, near, np.random.default_rng(0)) >= 0.95
    np.testing.assert_allclose(near.distances, np.linalg.norm(X[:, None] - X[near.indices], axis=2))
    assert not (near.indices == np.arange(len(X))[:, None]).any()
    assert all(len(set(row)) == 10 for row in near.indices.tolist())


@pytest.mark.usefixtures("parts")
def test_indexes_are_the_same_at_any_number_of_threads_and_follow_the_seed(monkeypatch):
    monkeypatch.setattr(threading_rules, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(fusion_neighbors, "ASKED_ROWS", 100)
    X = np.random.default_rng(0).standard_normal((1500, 20))
    found = []
    for count in (1, 2, 4):
        with threadpool_limits(count):
            found.append(by_index(X, 8))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].indices, other.indices)
        np.testing.assert_array_equal(found[0].distances, other.distances)
    assert (by_index(X, 8, seed=1).indices != found[0].indices).any()


@pytest.mark.parametrize("search", ["exact", "approximate"])
@pytest.mark.usefixtures("parts")
def test_several_tables_are_searched_as_each_by_itself(search):
    tables = [clustered(1100), unit_counts(), clustered(60)]
    found = list(nearest_in_all(tables, [5, 4, 99], np.random.default_rng(0), search))
    for Z, m, near in zip(tables, [5, 4, 99], found, strict=True):
        alone = nearest_others(Z, m, np.random.default_rng(0), search=search)
        np.testing.assert_array_equal(near.indices, alone.indices)
        np.testing.assert_array_equal(near.distances, alone.distances)


def test_rows_are_divided_among_indexes_that_each_hold_a_share(monkeypatch):
    monkeypatch.setattr(neighbor_index, "PART_ROWS", 400)
    Z = clustered(1500)
    tables = [Z, unit_counts(), Z[:400]]
    turns = [np.random.default_rng(0).permutation(rows.shape[0]) for rows in tables]
    found = fusion_neighbors._indexes(tables, turns)
    assert [[each.index.ntotal for each in indexes] for indexes in found] == [[375] * 4, [], [400]]
    np.testing.assert_array_equal(np.concatenate([each.rows for each in found[0]]), turns[0])
    np.testing.assert_array_equal(found[2][0].rows, turns[2])


@pytest.mark.parametrize("d", [2, 50])
def test_bytes_of_an_index_and_of_rows_on_the_way_to_it_are_counted(d):
    Z = np.random.default_rng(0).standard_normal((3000, d))
    index = neighbor_index.build_index(Z, np.arange(3000))
    inside = len(neighbor_index.packed(index))
    on_the_way = Z.astype(np.float32).nbytes
    assert inside + on_the_way < neighbor_index.index_bytes(3000, d) < 1.15 * (inside + on_the_way)


def test_rows_are_entered_piece_by_piece_in_their_order(monkeypatch):
    Z = np.random.default_rng(0).standard_normal((25, 3))
    order = np.random.default_rng(1).permutation(25)[:20]
    monkeypatch.setattr(neighbor_index, "ROUNDED_ROWS", 7)
    index = neighbor_index.build_index(Z, order)
    np.testing.assert_array_equal(index.reconstruct_n(0, 20), Z[order].astype(np.float32))


def test_the_number_of_indexes_depends_on_the_rows_alone_and_ends_at_eight():
    counts = {n: neighbor_index.index_count(n) for n in (2, 50_000, 50_001, 200_000, 400_000, 1_000_000, 10**8)}
    assert list(counts.values()) == [1, 1, 2, 4, 8, 8, 8]


def test_an_index_among_several_is_asked_for_as_many_rows_as_it_may_have_of_the_nearest():
    assert [neighbor_index.asked_of_each(16, parts) for parts in (1, 2, 4, 8)] == [16, 14, 10, 6]
    assert neighbor_index.asked_of_each(2, 8) == 2
    # Rows that one of eight indexes has of the nearest 31, drawn many times: hardly ever more.
    shares = np.random.default_rng(0).binomial(31, 1 / 8, 20_000)
    assert (shares > neighbor_index.asked_of_each(31, 8)).mean() < 0.005


@pytest.mark.parametrize(("count", "wanted"), [(16, (48, 24, 48)), (5, (32, 16, 32)), (100, (300, 150, 300))])
def test_one_of_several_indexes_is_searched_as_broadly_as_its_rows_need(count, wanted, monkeypatch):
    class Index:
        hnsw = None

        def __init__(self, ntotal):
            self.ntotal = ntotal

        def search(self, rows, asked, params):
            broad.append(params.efSearch)
            return None, np.zeros((len(rows), asked))

    broad = []
    monkeypatch.setattr(neighbor_index, "BROAD_ROWS", 4000)
    for ntotal, parts in ((10, 1), (1000, 4), (4000, 4)):
        neighbor_index.search_index(Index(ntotal), np.zeros((1, 2)), count, parts)
    assert tuple(broad) == wanted


def test_an_index_is_searched_as_broadly_as_it_is_asked_for_rows_at_least():
    class Index:
        hnsw = None
        ntotal = 100

        def search(self, rows, asked, params):
            assert params.efSearch == asked == 14
            return None, np.zeros((len(rows), asked))

    assert neighbor_index.search_index(Index(), np.zeros((3, 2)), 16, 2).shape == (3, 14)


def test_where_indexes_are_silent_neighbours_are_infinitely_far(monkeypatch):
    Z = np.arange(5.0)[:, None]
    indexes = [fusion_neighbors.RowIndex(None, rows) for rows in (np.array([4, 0]), np.array([2, 1]))]
    monkeypatch.setattr(fusion_neighbors, "search_index", lambda index, rows, count, parts: np.array([[1, -1]]))
    near = fusion_neighbors.answers(indexes, Z[3:4], Z, 3)
    np.testing.assert_array_equal(near.indices[:, :2], [[1, 0]])
    np.testing.assert_array_equal(near.distances, [[2.0, 3.0, np.inf]])


def test_few_rows_have_their_exact_neighbours_by_an_index_too():
    X = clustered(300)
    near = by_index(X, 7)
    np.testing.assert_array_equal(near.indices, nearest_others(X, 7, RNG).indices)
    assert by_index(X[:3], 9).indices.shape == (3, 2)


def test_many_equal_rows_have_each_other_as_neighbours_by_an_index():
    X = np.vstack([np.zeros((1200, 2)), np.ones((50, 2))])
    near = by_index(X, 5)
    assert not (near.indices == np.arange(1250)[:, None]).any()
    assert measured_recall(X, near, np.random.default_rng(0)) > 0.95  # any of the equal ones will do


def test_sparse_rows_are_searched_exactly_whatever_is_asked_for():
    Z = unit_counts()
    for search in ("exact", "approximate"):
        near = nearest_others(Z, 4, np.random.default_rng(0), search=search)
        np.testing.assert_array_equal(near.indices, nearest_others(Z, 4, np.random.default_rng(0)).indices)
        assert is_exact(Z, search)


def test_exact_search_is_exact_beyond_the_limit_of_auto(monkeypatch):
    monkeypatch.setattr(fusion_neighbors, "TILE_ENTRIES", 2**12)  # more than one tile of few rows
    X = clustered(700)
    near = nearest_others(X, 6, np.random.default_rng(0), exact_limit=100, search="exact")
    np.testing.assert_array_equal(near.indices, nearest_others(X, 6, np.random.default_rng(0)).indices)


def test_recall_is_the_share_of_neighbours_that_are_near_enough():
    wanted = np.array([[1.0, 2.0], [1.0, 1.0]])
    assert recall_by_distances(np.array([[1.0, 3.0], [1.0, 1.0]]), wanted) == 0.75
    assert recall_by_distances(np.array([[2.0, 2.0], [np.inf, 2.0]]), wanted) == 0.5
    assert recall_by_distances(np.empty((3, 0)), np.empty((3, 0))) == 1.0
    X = clustered(400)
    wrong = Neighbors(np.zeros((400, 3), dtype=int), np.full((400, 3), 1e9))
    assert measured_recall(X, wrong, np.random.default_rng(0)) == 0.0


@pytest.mark.parametrize("tile", [50, 4096])  # several tiles, and one
def test_recall_is_measured_against_the_nearest_of_all_other_rows(tile, monkeypatch):
    monkeypatch.setattr(fusion_neighbors, "RECALL_TILE_ROWS", tile)
    X = clustered(200)
    X -= X[7]  # a row at the origin has products of zero with all rows, itself among them
    near = nearest_others(X, 6, RNG)
    assert measured_recall(X, near.first(3), np.random.default_rng(0)) == 1.0
    next_ones = Neighbors(near.indices[:, 3:], near.distances[:, 3:])
    assert measured_recall(X, next_ones, np.random.default_rng(0)) == 0.0


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(neighbor_index, "package", absent)
    with pytest.raises(MissingPackageError, match=r"Faiss(.|\n)*kernelweave\[neighbors\](.|\n)*'exact'"):
        check_search("approximate")
    check_search("exact")


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from([1 / 3, 0.7, 1e5]))
def test_rounding_does_not_change_the_order_of_others_equally_far_away(seed, unit):
    rng = np.random.default_rng(seed)
    X = rng.integers(4, size=(40, 3)).astype(float)
    plain = nearest_others(X, 9, np.random.default_rng(0))
    scaled = nearest_others(X * unit, 9, np.random.default_rng(0))
    np.testing.assert_array_equal(scaled.indices, plain.indices)


# --- the neighbour kernel by an index


@pytest.mark.parametrize("weights", ["connectivity", "self_tuning"])
def test_the_neighbour_kernel_by_an_index_is_that_of_exact_search_where_that_finds_all(weights):
    X = clustered(400)
    params = {"n_neighbors": 6, "weights": weights}
    exact = fit_kernel(X, "nearest_neighbors", params)
    near = fit_kernel(X, "nearest_neighbors", params | {"neighbor_search": "approximate"})
    assert (exact.neighbor_recall, near.neighbor_recall) == (1.0, 1.0)
    np.testing.assert_allclose(near.operator().A.toarray(), exact.operator().A.toarray(), atol=1e-6)
    np.testing.assert_allclose(near.cross(X[:9] + 0.1).A.toarray(), exact.cross(X[:9] + 0.1).A.toarray(), atol=1e-6)
    assert np.isnan(fit_kernel(X, "rbf").neighbor_recall)


def test_places_without_a_neighbour_are_no_edges(monkeypatch):
    nothing = Neighbors(np.zeros((50, 3), dtype=int), np.full((50, 3), np.inf))
    monkeypatch.setattr("kernelweave.kernels.spec.neighbors.nearest_others", lambda *args, **options: nothing)
    params = {"n_neighbors": 3, "neighbor_search": "approximate"}
    with pytest.warns(ViewWarning, match="found 0% of the nearest"):
        fitted = fit_kernel(clustered(50), "nearest_neighbors", params)
    np.testing.assert_array_equal(fitted.operator().A.toarray(), np.eye(50))


@pytest.mark.parametrize(
    ("X", "params", "match"),
    [
        (unit_counts(), {}, "compares dense samples"),
        (GRID, {"metric": "manhattan"}, "metric='euclidean'"),
        (GRID, {"neighbor_search": "auto"}, "neighbor_search='auto'"),
    ],
)
def test_other_samples_and_metrics_are_refused_by_an_index(X, params, match):
    with pytest.raises(ParameterError, match=match):
        fit_kernel(X, "nearest_neighbors", {"neighbor_search": "approximate"} | params)


@pytest.mark.filterwarnings("ignore:The kernel .*is not positive semidefinite")
@pytest.mark.parametrize(
    "cls",
    [
        KernelKMeans,
        GlobalKernelKMeans,
        MinMaxKernelKMeans,
        MultiViewKernelKMeans,
        MultiViewSpectralClustering,
        CoRegularizedSpectralClustering,
        NgSpectralClustering,
    ],
)
def test_models_keep_the_recall_of_their_graphs(cls, monkeypatch):
    X = clustered(60)
    several = "views" in cls().get_params()
    data = [X, X[:, ::-1]] if several else X
    settings = {key: value for key, value in {"n_init": 1, "random_state": 0}.items() if key in cls().get_params()}
    params = {"neighbor_search": "approximate"}
    by_index = cls(3, kernel="nearest_neighbors", kernel_params=params, **settings).fit(data)
    assert by_index.neighbor_recall_ == 1.0 if not several else by_index.neighbor_recall_.tolist() == [1.0, 1.0]
    monkeypatch.setattr(spec_neighbors, "measured_recall", lambda *_: 0.95)
    rough = cls(3, kernel="nearest_neighbors", kernel_params=params, **settings).fit(data)
    assert rough.neighbor_recall_ == 0.95 if not several else rough.neighbor_recall_.tolist() == [0.95, 0.95]
    other = cls(3, kernel="rbf", **settings).fit(data).neighbor_recall_
    assert other is None if not several else np.isnan(other).tolist() == [True, True]


# --- the self-tuned graph


def test_the_self_tuned_graph_is_symmetric_with_weights_up_to_one():
    A = self_tuned_graph(nearest_others(clustered(200), 9, RNG))
    assert abs(A - A.T).sum() == 0.0
    assert A.diagonal().sum() == 0.0
    assert 0 < A.data.min() <= A.data.max() <= 1.0
    assert (np.diff(A.indptr) >= 9).all()


def test_edges_found_from_one_end_only_weigh_half():
    near = nearest_others(np.array([[0.0], [1.0], [3.0]]), 1, RNG)  # 2 has 1, but 1 has 0
    A = self_tuned_graph(near).toarray()
    assert A[0, 1] == pytest.approx(np.exp(-1.0))
    assert A[1, 2] == pytest.approx(np.exp(-4.0 / (1.0 * 2.0)) / 2)
    assert A[0, 2] == 0.0


def test_a_radius_is_the_distance_of_the_last_neighbour_there_is():
    near = Neighbors(np.zeros((3, 2), dtype=int), np.array([[1.0, 2.0], [3.0, np.inf], [np.inf, np.inf]]))
    assert near.radii.tolist() == [2.0, 3.0, 0.0]
    assert near.first(1).radii.tolist() == [1.0, 3.0, 0.0]


def test_copies_of_radius_zero_are_joined_with_weight_one_and_not_to_others():
    X = np.vstack([np.zeros((5, 2)), np.ones((1, 2)), 3 * np.ones((1, 2))])
    A = self_tuned_graph(nearest_others(X, 4, RNG)).toarray()
    assert (A[:5, :5][~np.eye(5, dtype=bool)] == 1.0).all()
    assert np.isfinite(A).all()
    assert A[0, 5] < 1e-6  # the copies lie infinitely closer together


def test_samples_that_are_all_equal_have_edges_of_weight_one():
    A = self_tuned_graph(nearest_others(np.zeros((5, 2)), 4, RNG))
    assert A.data.max() == 1.0
    assert np.isfinite(A.data).all()


@pytest.mark.parametrize("room", [0.0, 0.5, 2.0])
def test_small_tiles_find_the_same_neighbours(room):
    X = clustered(900)
    X[:200] = np.round(X[:200])  # ties
    ample = nearest_others(X, 7, np.random.default_rng(0))
    tight, peak = peak_of(lambda: nearest_others(X, 7, np.random.default_rng(0), room=room))
    np.testing.assert_array_equal(tight.indices, ample.indices)
    np.testing.assert_array_equal(tight.distances, ample.distances)
    assert peak < 0.7 + 1.1 * room  # 256 rows of distances take 1.8 MiB


def test_known_rows_are_not_copied_for_every_tile():
    X = np.random.default_rng(0).standard_normal((600, 500))
    nearest_others(X[:50], 5, np.random.default_rng(0))
    with threadpool_limits(1):
        _, peak = peak_of(lambda: nearest_others(X, 5, np.random.default_rng(0), room=1.0))
    assert peak < 2.2  # the table takes 2.3
