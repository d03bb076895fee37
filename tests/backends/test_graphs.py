"""Loops over graphs and rows of distances: compiled ones against their plain twins, and both against SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from kernelweave.backends import graphs, numpy_loops
from kernelweave.backends.compiled import graph_loops
from kernelweave.backends.preparing import read_only
from kernelweave.foundation import threads as threads_module
from tests.strategies import generators

quick = settings(max_examples=60, deadline=None)
LOOPS = (
    "least_columns",
    "row_distances",
    "largest_finite",
    "list_callers",
    "list_known",
    "closer_rows",
    "multiply_rows",
    "count_links",
    "list_links",
    "join_links",
    "add_graph_rows",
)
BOTH = (numpy_loops, graph_loops)
DTYPES = st.sampled_from([np.float32, np.float64])


def random_graph(rng, n, columns, share=0.3):
    dense = rng.standard_normal((n, columns)) * (rng.random((n, columns)) < share)
    return sp.csr_array(dense)


def random_neighbors(rng, n, m):
    """Return different neighbours of every row, some of them without a weight."""
    indices = np.array([rng.permutation(n)[:m] for _ in range(n)])
    return indices, rng.random((n, m)) * (rng.random((n, m)) < 0.8)


def matrix_of(indices, values):
    n, m = indices.shape
    return sp.csr_array((values.ravel(), (np.repeat(np.arange(n), m), indices.ravel())), shape=(n, n)).toarray()


def test_every_loop_has_its_twin():
    for name in LOOPS:
        assert callable(getattr(graph_loops, name))
        assert callable(getattr(numpy_loops, name))
    assert graphs._loops() is graph_loops


@quick
@given(generators(), st.integers(1, 5), st.integers(1, 300), DTYPES, st.booleans())
def test_the_least_columns_are_those_of_a_stable_sort(rng, n, columns, dtype, ties):
    products = rng.standard_normal((n, columns)).astype(dtype)
    offsets = rng.standard_normal(columns).astype(dtype)
    if ties:
        products = np.round(products)
        offsets = np.round(offsets)
    products[0, rng.integers(columns)] = -np.inf
    m = int(rng.integers(1, columns + 1))
    wanted = np.argsort(offsets - 2 * products, axis=1, kind="stable")[:, :m]
    for loops in BOTH:
        found = np.empty((n, m), dtype=np.intp)
        loops.least_columns(products, offsets, found)
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(graphs.least_columns(products, offsets, m), wanted)


@quick
@given(generators(), st.integers(1, 6), st.integers(1, 11), st.integers(1, 9), DTYPES)
def test_distances_are_those_of_differences(rng, n, columns, n_known, dtype):
    known = (1e6 + rng.standard_normal((n_known, columns))).astype(dtype)  # products would lose all digits
    Z = (1e6 + rng.standard_normal((n, columns))).astype(dtype)
    Z[0] = known[0]
    chosen = rng.integers(n_known, size=(n, 4))
    chosen[0, 0] = 0
    wanted = np.array([[np.linalg.norm(known[j].astype(float) - Z[i]) for j in chosen[i]] for i in range(n)])
    for loops in BOTH:
        found = np.empty(chosen.shape)
        loops.row_distances(read_only(Z), read_only(known), chosen, found)
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=0)
        assert found[0, 0] == 0.0
    np.testing.assert_allclose(graphs.row_distances(Z, known, chosen), wanted, rtol=1e-14, atol=0)


@quick
@given(generators(), st.integers(1, 8), st.integers(1, 5))
def test_the_largest_finite_values_are_those_of_numpy(rng, n, width):
    values = rng.choice([-1.0, 0.0, 0.5, 2.0, np.inf, -np.inf, np.nan], size=(n, width + 1))
    lo, hi = sorted(rng.integers(0, n + 1, size=2).tolist())
    for part in (values, values[:, :width]):
        wanted = [max([0.0, *(value for value in row if np.isfinite(value))]) for row in part.tolist()]
        for loops in BOTH:
            out = np.full(n, 7.0)
            loops.largest_finite(part, out, lo, hi)
            np.testing.assert_array_equal(out, [7.0] * lo + wanted[lo:hi] + [7.0] * (n - hi))
        np.testing.assert_array_equal(graphs.largest_finite(part), wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_scaled_in_double_precision_and_rounded_once(dtype, monkeypatch):
    monkeypatch.setattr(graphs, "PRODUCT_ROWS", 7)
    rng = np.random.default_rng(0)
    scale = rng.standard_normal(50)
    block = rng.standard_normal((50, 3))
    out = np.empty((50, 3), dtype)
    assert graphs.scale_rows(scale, block, out) is out
    np.testing.assert_array_equal(out, (scale[:, None] * block).astype(dtype))
    graphs.scale_rows(scale, block, block)  # in place
    np.testing.assert_array_equal(block.astype(dtype), out)


def random_acquaintances(rng, n, m):
    """Return rows of whole numbers, m different neighbours of each, nearest first, and which of these are fresh."""
    rows = rng.integers(-3, 4, size=(n, 3)).astype(np.float32)
    others = [rng.permutation(np.delete(np.arange(n), i))[:m] for i in range(n)]
    squares = [np.square(rows[near] - rows[i]).sum(axis=1) for i, near in enumerate(others)]
    order = [np.argsort(values, kind="stable") for values in squares]
    neighbors = np.array([near[places] for near, places in zip(others, order, strict=True)], dtype=np.int32)
    squares = np.array([values[places] for values, places in zip(squares, order, strict=True)])
    return rows, neighbors, squares, rng.random((n, m)) < 0.5


def one_round(loops, rows, neighbors, squares, fresh, breadth):
    """Return what one set of loops makes of neighbours in a round, rows in two ranges, and whom the rows know."""
    n = len(rows)
    parts = ((0, n // 2), (n // 2, n))
    callers = np.full((n, breadth), -1, dtype=np.int32)
    new = np.zeros((n, breadth), dtype=bool)
    counts = np.full(n, 7, dtype=np.int32)
    for lo, hi in parts:
        loops.list_callers(neighbors.T.copy(), fresh.T.copy(), callers, new, counts, lo, hi)
    known = np.full((n, 2 * breadth), -1, dtype=np.int32)
    ends = np.full((n, 2), 7, dtype=np.int32)
    for lo, hi in parts:
        loops.list_known(neighbors, fresh, callers, new, counts, known, ends, lo, hi)
    closest = (np.empty_like(neighbors), np.empty_like(squares), np.empty_like(fresh))
    for lo, hi in parts:
        loops.closer_rows(rows, neighbors, squares, known, ends, *closest, lo, hi)
    return *closest, callers, new, counts, known, ends


def after_a_round(rows, neighbors, squares, fresh, breadth):
    """Return neighbours, squares and who is fresh after a round."""
    rounds = graphs.NeighborRounds(rows, neighbors, squares, breadth)
    rounds.fresh = fresh
    rounds.take()
    return rounds.neighbors, rounds.squares, rounds.fresh


@quick
@given(generators(), st.integers(3, 14), st.integers(1, 5), st.data())
def test_a_round_of_neighbours_is_that_of_the_plain_loops(rng, n, breadth, data):
    given_ = random_acquaintances(rng, n, data.draw(st.integers(1, n - 1)))
    plain, compiled = (one_round(loops, *given_, breadth) for loops in BOTH)
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(plain, after_a_round(*given_, breadth), strict=False):
        np.testing.assert_array_equal(one, other)


@quick
@given(generators(), st.integers(3, 14), st.data())
def test_a_second_round_goes_on_from_the_first(rng, n, data):
    given_ = random_acquaintances(rng, n, data.draw(st.integers(1, n - 1)))
    rounds = graphs.NeighborRounds(*given_[:3], 4)
    rounds.take()
    first = (rounds.neighbors.copy(), rounds.squares.copy(), rounds.fresh.copy())
    rounds.take()
    wanted = one_round(graph_loops, given_[0], *first, 4)
    for one, other in zip((rounds.neighbors, rounds.squares, rounds.fresh), wanted, strict=False):
        np.testing.assert_array_equal(one, other)


@quick
@given(generators(), st.integers(3, 14), st.data())
def test_after_a_round_rows_have_the_nearest_of_all_that_their_acquaintances_know(rng, n, data):
    m = data.draw(st.integers(1, n - 1))
    rows, neighbors, squares, _ = random_acquaintances(rng, n, m)
    closest, least, found = after_a_round(rows, neighbors, squares, np.ones((n, m), dtype=bool), n)
    knows = np.zeros((n, n), dtype=bool)
    knows[np.arange(n)[:, None], neighbors] = True
    acquainted = knows | knows.T
    for i in range(n):
        met = knows[i] | acquainted[acquainted[i]].any(axis=0)
        met[i] = False
        wanted = np.sort(np.square(rows[met] - rows[i]).sum(axis=1))[:m]
        np.testing.assert_array_equal(least[i], wanted)
        np.testing.assert_array_equal(np.square(rows[closest[i]] - rows[i]).sum(axis=1), wanted)
        np.testing.assert_array_equal(found[i], ~knows[i, closest[i]])
        assert len(set(closest[i].tolist())) == m


@quick
@given(
    generators(), st.integers(1, 20), st.integers(1, 20), st.integers(1, 6), st.sampled_from([np.float32, np.float64])
)
def test_products_are_those_of_the_dense_matrix(rng, n, columns, width, dtype):
    A = random_graph(rng, n, columns, 0.6)
    H = rng.standard_normal((columns, width)).astype(dtype)
    wanted = A.toarray() @ H.astype(np.float64)
    lo, hi = sorted(rng.integers(0, n + 1, size=2).tolist())
    for loops in BOTH:
        out = np.full((n, width), 7.0)
        loops.multiply_rows(A.indptr, A.indices, A.data, H, out, lo, hi)
        np.testing.assert_allclose(out[lo:hi], wanted[lo:hi], rtol=0, atol=1e-13)
        assert (out[:lo] == 7.0).all()
        assert (out[hi:] == 7.0).all()
    np.testing.assert_allclose(graphs.product(A, H), wanted, rtol=0, atol=1e-13)


@quick
@given(generators(), st.integers(2, 12), st.data())
def test_the_graph_of_neighbours_is_the_mean_of_both_directions(rng, n, data):
    indices, values = random_neighbors(rng, n, data.draw(st.integers(1, n)))
    A = matrix_of(indices, values)
    graph = graphs.mutual_graph(indices, values)
    np.testing.assert_array_equal(graph.toarray(), (A + A.T) * 0.5)
    assert graph.nnz == np.count_nonzero(A + A.T)
    assert graph.indices.dtype == graph.indptr.dtype == np.int32
    checked = sp.csr_array((graph.data, graph.indices, graph.indptr), shape=graph.shape)
    assert checked.has_canonical_format
    for loops in BOTH:
        np.testing.assert_array_equal(by_loops(loops, indices, values).toarray(), graph.toarray())


def by_loops(loops, indices, values):
    """Return the graph of neighbours by one set of loops, rows in two ranges."""
    n = len(indices)
    parts = ((0, n // 2), (n // 2, n))
    counts = np.zeros(n, dtype=np.int64)
    for lo, hi in parts:
        loops.count_links(indices, values, counts, lo, hi)
    starts = np.concatenate([[0], np.cumsum(counts)])
    sources = np.empty(starts[-1], dtype=np.int32)
    weights = np.empty(starts[-1])
    for lo, hi in parts:
        loops.list_links(indices, values, starts, sources, weights, lo, hi)
    ends = np.zeros(n + 1, dtype=np.int64)
    given_ = (indices, values, starts, sources, weights)
    for lo, hi in parts:
        loops.join_links(*given_, ends, np.empty(0, dtype=np.int32), np.empty(0), lo, hi, write=False)
    ends = np.cumsum(ends)
    columns = np.empty(ends[-1], dtype=np.int32)
    data = np.empty(ends[-1])
    for lo, hi in parts:
        loops.join_links(*given_, ends, columns, data, lo, hi, write=True)
    return sp.csr_array((data, columns, ends), shape=(n, n))


@quick
@given(generators(), st.integers(1, 12), st.integers(1, 12), st.integers(1, 4))
def test_weighted_sums_of_graphs_are_added_in_their_order(rng, n, columns, count):
    several = [random_graph(rng, n, columns, rng.random()) for _ in range(count)]
    weights = rng.standard_normal(count).tolist()
    total = several[0] * weights[0]
    for graph, weight in zip(several[1:], weights[1:], strict=True):
        total = total + graph * weight
    found = graphs.weighted_sum(several, weights)
    np.testing.assert_array_equal(found.toarray(), total.toarray())
    if count > 1:
        first, second = several[:2]
        sizes = np.zeros(n + 1, dtype=np.int64)
        arrays = (first.indptr, first.indices, first.data, weights[0])
        arrays += (second.indptr, second.indices, second.data, weights[1])
        numpy_loops.add_graph_rows(*arrays, sizes, np.empty(0, dtype=np.int32), np.empty(0), 0, n, write=False)
        ends = np.cumsum(sizes)
        indices = np.empty(ends[-1], dtype=np.int32)
        data = np.empty(ends[-1])
        numpy_loops.add_graph_rows(*arrays, ends, indices, data, 0, n, write=True)
        pair = graphs.weighted_sum([first, second], weights[:2])
        np.testing.assert_array_equal(pair.indptr, ends)
        np.testing.assert_array_equal(pair.indices, indices)
        np.testing.assert_array_equal(pair.data, data)


def test_columns_out_of_order_are_summed_right_and_left_as_they_are():
    A = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    B = sp.csr_array(np.array([[0.0, 1.0, 1.0]]))
    total = graphs.weighted_sum([A, B], [1.0, 10.0])
    np.testing.assert_array_equal(total.indices, [0, 1, 2])  # each column once, in order
    np.testing.assert_array_equal(total.data, [2.0, 10.0, 15.0])
    np.testing.assert_array_equal(A.indices, [2, 0, 2])


@pytest.mark.parametrize("rows", [7, 4096])
def test_graphs_are_the_same_to_the_last_bit_at_any_number_of_threads(rows, monkeypatch):
    monkeypatch.setattr(threads_module, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(graphs, "GRAPH_ROWS", rows)
    monkeypatch.setattr(graphs, "PRODUCT_ROWS", rows)
    monkeypatch.setattr(graphs, "MEETING_ROWS", rows)
    rng = np.random.default_rng(0)
    indices, values = random_neighbors(rng, 700, 9)
    H = rng.standard_normal((700, 5))
    acquaintances = random_acquaintances(rng, 700, 9)
    results = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads_module, "openmp_threads", lambda count=count: count)
        with threadpool_limits(count):
            graph = graphs.mutual_graph(indices, values)
            total = graphs.weighted_sum([graph, graphs.mutual_graph(indices, values**2), graph], [0.3, 1.0, 2.0])
            results.append((graph.data, total.indptr, total.indices, total.data, graphs.product(total, H)))
            results[-1] += (graphs.scale_rows(values[:, 0], H, np.empty(H.shape)), graphs.largest_finite(values))
            results[-1] += (graphs.row_distances(H, H, indices),)
            results[-1] += after_a_round(*acquaintances, 6)
    for other in results[1:]:
        for one, another in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, another)
