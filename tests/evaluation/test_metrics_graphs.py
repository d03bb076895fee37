import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave import metrics
from kernelweave.foundation.errors import KernelError, ParameterError
from tests.reference import metrics as oracle

NAMES = ["normalized_cut", "ratio_cut", "ratio_association"]
PATH = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)  # four nodes in a row

quick = settings(max_examples=30, deadline=None)
objectives = pytest.mark.parametrize("name", NAMES)
cases = given(seed=st.integers(0, 2**16), n=st.integers(1, 20), k=st.integers(1, 5))


def graph(seed, n, k):
    """Draw a sparse weighted graph with self-loops and, often, isolated nodes; and labels."""
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.3))
    return A + np.triu(A, 1).T, rng.integers(k, size=n)


@objectives
@quick
@cases
def test_dense_and_sparse_graphs_give_the_value_of_the_definition(name, seed, n, k):
    A, labels = graph(seed, n, k)
    expected = getattr(oracle, name)(A, labels)
    for form in (A, A.tolist(), sp.csr_array(A), sp.coo_matrix(A), sp.dia_array(A)):
        assert getattr(metrics, name)(form, labels) == pytest.approx(expected, abs=1e-10)


@objectives
@quick
@cases
def test_renaming_and_reordering_change_nothing(name, seed, n, k):
    A, labels = graph(seed, n, k)
    order = np.random.default_rng(seed).permutation(n)
    words = np.array(["oak", "elm", "ash", "fir", "yew"])
    objective = getattr(metrics, name)
    moved = objective(A[np.ix_(order, order)], words[labels[order]])
    assert moved == pytest.approx(objective(A, labels), abs=1e-10)


@quick
@cases
def test_ratio_association_is_trace_minus_the_error_of_kernel_k_means(seed, n, k):
    A, labels = graph(seed, n, k)
    error = metrics.sum_of_variances(A, labels)
    assert metrics.ratio_association(A, labels) == pytest.approx(np.trace(A) - error, abs=1e-10)


@quick
@cases
def test_normalized_cut_is_weighted_kernel_k_means_up_to_a_constant(seed, n, k):
    # w_i = D_ii and K = D^-1 A D^-1: E_sum = sum_i A_ii / D_ii - (k - NC)
    A, labels = graph(seed, n, k)
    A += np.eye(n)  # no node without degree
    degrees = A.sum(axis=1)
    error = metrics.sum_of_variances(A / np.outer(degrees, degrees), labels, sample_weight=degrees)
    expected = error - (np.diag(A) / degrees).sum() + len(set(labels))
    assert metrics.normalized_cut(A, labels) == pytest.approx(expected, abs=1e-10)


def test_path_cut_in_the_middle_has_the_values_worked_out_by_hand():
    labels = [0, 0, 1, 1]  # one edge cut, one kept in each half of degree 3
    assert metrics.normalized_cut(PATH, labels) == pytest.approx(1 / 3 + 1 / 3)
    assert metrics.ratio_cut(PATH, labels) == pytest.approx(1 / 2 + 1 / 2)
    assert metrics.ratio_association(PATH, labels) == pytest.approx(2 / 2 + 2 / 2)


def test_a_self_loop_counts_once():
    A = PATH + np.diag([5.0, 0, 0, 0])
    assert metrics.normalized_cut(A, [0, 0, 1, 1]) == pytest.approx(1 / 8 + 1 / 3)
    assert metrics.ratio_association(A, [0, 0, 1, 1]) == pytest.approx(7 / 2 + 2 / 2)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_components_as_clusters_cut_exactly_nothing(form):
    A = np.kron(np.eye(3), np.full((4, 4), 0.1))
    labels = np.repeat([0, 1, 2], 4)
    assert metrics.normalized_cut(form(A), labels) == 0.0
    assert metrics.ratio_cut(form(A), labels) == 0.0


def test_a_single_cluster_cuts_nothing():
    assert metrics.normalized_cut(PATH, [7, 7, 7, 7]) == 0.0


def test_clusters_without_edges_contribute_nothing():
    A = np.zeros((5, 5))
    A[:4, :4] = PATH
    assert metrics.normalized_cut(A, [0, 0, 1, 1, 2]) == pytest.approx(2 / 3)
    assert metrics.normalized_cut(np.zeros((3, 3)), [0, 1, 2]) == 0.0


def test_every_node_alone_cuts_all_of_a_graph_without_loops():
    assert metrics.normalized_cut(PATH, [0, 1, 2, 3]) == pytest.approx(4.0)


def test_a_large_sparse_graph_is_never_made_dense():
    n = 200_000  # dense: 320 GB
    ring = sp.dia_array((np.ones((2, n)), [1, -1]), shape=(n, n))
    labels = np.arange(n) * 4 // n
    # each quarter is a path of 50,000 nodes; 3 edges are cut, seen from both sides
    assert metrics.ratio_cut(ring, labels) == pytest.approx(6 / 50_000)


@objectives
@pytest.mark.parametrize(
    ("A", "fault"),
    [
        ([[0, 1], [0, 0]], r"A is not symmetric.*\(A \+ A.T\) / 2"),
        (sp.csr_array([[0.0, 1.0], [0.0, 0.0]]), "A is not symmetric"),
        ([[0, -1], [-1, 0]], "A holds the negative affinity -1"),
        (sp.csr_array([[0.0, -1.0], [-1.0, 0.0]]), "A holds the negative affinity -1.0"),
        ([[0, np.nan], [np.nan, 0]], "A holds NaN or infinity at row 0, column 1"),
        (np.ones((2, 3)), r"A must be a square kernel matrix.*\(2, 3\)"),
    ],
)
def test_matrices_that_are_no_affinities_are_refused(name, A, fault):
    with pytest.raises(KernelError, match=fault):
        getattr(metrics, name)(A, [0, 1])


@objectives
def test_labels_of_another_length_are_refused(name):
    with pytest.raises(ParameterError, match="labels has 3 entries but A describes 4 samples"):
        getattr(metrics, name)(PATH, [0, 1, 1])


@objectives
def test_arguments_are_left_as_they_were(name):
    A, labels = sp.csr_array(PATH), np.array([0, 0, 1, 1])
    for array in (A.data, A.indices, A.indptr, labels):
        array.setflags(write=False)
    assert np.isfinite(getattr(metrics, name)(A, labels))
    np.testing.assert_array_equal(A.toarray(), PATH)
    assert labels.tolist() == [0, 0, 1, 1]
