import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from kernelweave import GraphCut
from kernelweave.foundation.errors import KernelError, ParameterError
from kernelweave.inputs import read_affinity
from tests.reference import graph_cuts as oracle


class Graph:
    """The members of a networkx graph that are used: nodes in order, edges once each, with their data."""

    def __init__(self, nodes, edges, directed=False):
        self.nodes, self._edges, self._directed = list(nodes), list(edges), directed

    @classmethod
    def of(cls, A, names):
        """Return the graph of a symmetric matrix; edges of weight 1 carry no weight, as networkx leaves it."""
        upper = np.argwhere(np.triu(A) > 0)
        return cls(names, [(names[i], names[j], {} if A[i, j] == 1 else {"weight": A[i, j]}) for i, j in upper])

    def adjacency(self):
        raise AssertionError("the edges are enough")

    def edges(self, data=False):
        return [(u, v, d) for u, v, d in self._edges] if data else [(u, v) for u, v, _ in self._edges]

    def is_directed(self):
        return self._directed


FORMS = {
    "array": np.asarray,
    "list": lambda A: A.tolist(),
    "frame": pd.DataFrame,
    "float32": lambda A: A.astype(np.float32),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "lil": sp.lil_array,
    "csr matrix": sp.csr_matrix,
    "networkx": lambda A: Graph.of(A, [f"node {i}" for i in range(len(A))]),
}


@settings(max_examples=25, deadline=None)
@given(A=oracle.graphs())
def test_every_form_gives_the_same_sparse_matrix_of_float64(A):
    for make in FORMS.values():
        result = read_affinity(GraphCut(), make(A))
        assert isinstance(result, sp.csr_array)
        assert result.dtype == np.float64
        assert result.has_canonical_format
        assert (result.data > 0).all()
        np.testing.assert_array_equal(result.toarray(), A)  # multiples of 1/16 are exact in float32 too


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.uint16])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_array])
def test_whole_numbers_and_truth_values_are_weights(dtype, form):
    A = oracle.cliques(3, 4).astype(dtype)
    result = read_affinity(GraphCut(), form(A))
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result.toarray(), A)


@pytest.mark.parametrize("form", [np.array, sp.csr_array, sp.csc_array, sp.coo_array])
def test_the_argument_stays_as_it_was_and_is_not_shared(form):
    A = form(oracle.cliques(3, 4))
    before = A.copy()
    result = read_affinity(GraphCut(), A)
    result.data[:] = 7.0
    assert type(A) is type(before)
    assert abs(A - before).sum() == 0


def test_stored_zeros_and_unsorted_or_repeated_entries_are_tidied_in_a_copy():
    A = sp.csr_array((np.array([2.0, 0.0, 0.5, 0.5, 1.0, 0.0]), np.array([2, 1, 1, 0, 0, 2]), np.array([0, 2, 4, 6])))
    A.data[2:4], A.data[4] = [0.0, 0.0], 2.0  # 0-2 with weight 2 is the only edge
    data, indices = A.data.copy(), A.indices.copy()
    result = read_affinity(GraphCut(), A)
    assert result.nnz == 2
    np.testing.assert_array_equal(result.toarray(), [[0, 0, 2], [0, 0, 0], [2, 0, 0]])
    np.testing.assert_array_equal(A.data, data)
    np.testing.assert_array_equal(A.indices, indices)
    twice = sp.coo_array((np.ones(4), ([0, 1, 0, 1], [1, 0, 1, 0])), shape=(2, 2))
    np.testing.assert_array_equal(read_affinity(GraphCut(), twice).toarray(), [[0, 2], [2, 0]])


def test_a_graph_keeps_the_order_of_its_nodes_and_counts_a_loop_once():
    graph = Graph(["c", "a", "b"], [("a", "b", {"weight": 2.5}), ("c", "c", {"weight": 3}), ("b", "c", {})])
    expected = [[3, 0, 1], [0, 0, 2.5], [1, 2.5, 0]]  # c, a, b
    np.testing.assert_array_equal(read_affinity(GraphCut(), graph).toarray(), expected)


def test_parallel_edges_of_a_graph_add_up():
    graph = Graph("ab", [("a", "b", {"weight": 2.0}), ("a", "b", {"weight": 0.5})])
    np.testing.assert_array_equal(read_affinity(GraphCut(), graph).toarray(), [[0, 2.5], [2.5, 0]])


def test_a_graph_without_edges_is_a_matrix_of_zeros():
    result = read_affinity(GraphCut(), Graph(range(3), []))
    assert result.shape == (3, 3)
    assert result.nnz == 0


def test_rounding_between_the_two_ends_of_an_edge_is_accepted():
    A = oracle.cliques(3, 4) * 0.3
    A[0, 1] = np.nextafter(A[0, 1], 1.0)
    assert read_affinity(GraphCut(), A).nnz == np.count_nonzero(A)


def spoilt(i, j, value):
    A = oracle.cliques(3, 4)
    A[i, j] = A[j, i] = value
    return A


def one_way(value):
    A = oracle.cliques(3, 4)
    A[5, 1] = value
    return A


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_array])
@pytest.mark.parametrize(
    ("A", "error", "match"),
    [
        (np.ones((3, 4)), KernelError, r"square.*\(3, 4\)"),
        (spoilt(1, 2, -0.25), KernelError, r"Negative.*X\[(1, 2|2, 1)\] = -0\.25"),
        (one_way(0.75), KernelError, r"not symmetric: X\[(5, 1|1, 5)\] = (0\.75|0) but X\[(1, 5|5, 1)\] = (0|0\.75)"),
        (spoilt(1, 2, np.nan), ValueError, "X contains NaN"),
        (spoilt(1, 2, np.inf), ValueError, "X contains infinity"),
        (np.zeros((1, 1)), ValueError, r"1 sample\(s\).*minimum of 2"),
    ],
    ids=["not square", "negative", "asymmetric", "NaN", "infinite", "one node"],
)
def test_a_bad_matrix_is_refused_with_its_fault(A, error, match, form):
    with pytest.raises(error, match=match):
        read_affinity(GraphCut(), form(A))


def test_text_is_refused_by_name():
    with pytest.raises(ParameterError, match=r"X holds text.*'near'"):
        read_affinity(GraphCut(), [[0, "near"], ["near", 0]])


def test_text_as_a_weight_of_a_graph_is_refused_by_name():
    with pytest.raises(ParameterError, match=r"X holds text.*'near'"):
        read_affinity(GraphCut(), Graph("ab", [("a", "b", {"weight": "near"})]))


def test_a_directed_graph_is_refused_with_the_way_out():
    with pytest.raises(KernelError, match=r"directed graph.*to_undirected"):
        read_affinity(GraphCut(), Graph("ab", [("a", "b", {})], directed=True))


@pytest.mark.parametrize("X", [None, 3.0, np.zeros(4), np.zeros((2, 2, 2)), np.zeros((0, 0)), Graph([], [])])
def test_what_is_no_matrix_is_refused(X):
    with pytest.raises(ValueError, match=r"2D|dim|0 sample|0 feature|None|scalar"):
        read_affinity(GraphCut(), X)


def test_complex_weights_are_refused():
    with pytest.raises(ValueError, match=r"[Cc]omplex"):
        read_affinity(GraphCut(), np.ones((3, 3), dtype=complex))
