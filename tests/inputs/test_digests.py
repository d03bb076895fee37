"""Samples recognised by their values: digests of rows, and the numbers of copies."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.foundation.errors import KernelError
from kernelweave.inputs import Views, as_edges, as_views, row_digests

TABLE = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [1.0, 0.0, 2.0], [1.0, 2.0, 0.0], [0.0, 0.0, -0.0]])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 3), st.booleans())
def test_copies_are_numbered_in_order_of_first_occurrence(seed, n_views, sparse):
    rng = np.random.default_rng(seed)
    blocks = [rng.integers(0, 2, (12, 2)).astype(float) for _ in range(n_views)]
    first = {}
    wanted = [first.setdefault(tuple(row), len(first)) for row in np.hstack(blocks).tolist()]
    forms = [sp.csr_array(block) if sparse else block for block in blocks]
    copies = as_views(forms).copies()
    assert copies.tolist() == wanted


def test_samples_are_copies_only_if_all_views_say_so():
    views = Views(("a", "b"), (np.array([[1.0], [1.0], [2.0], [1.0]]), np.array([[3.0], [4.0], [3.0], [3.0]])))
    assert views.copies().tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e40, 1e300])
def test_copies_are_found_in_any_unit(unit, form):
    X = unit * np.random.default_rng(0).standard_normal((9, 3))
    X[[5, 7]] = X[3]
    assert Views(("a",), (form(X),)).copies().tolist() == [0, 1, 2, 3, 4, 3, 5, 3, 6]


def test_minus_zero_and_stored_zeros_are_zero():
    stored = sp.csr_array(TABLE + 1.0)
    stored.data -= 1.0
    assert stored.nnz == TABLE.size
    assert Views(("a",), (TABLE,)).copies().tolist() == [0, 1, 0, 2, 1]
    assert Views(("a",), (stored,)).copies().tolist() == [0, 1, 0, 2, 1]
    np.testing.assert_array_equal(row_digests([stored]), row_digests([TABLE]))


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, lambda X: sp.csr_array(X + 0.0)[::-1][::-1]])
def test_dense_and_sparse_rows_have_the_same_digest(form):
    np.testing.assert_array_equal(row_digests([TABLE]), row_digests([form(TABLE)]))


def test_entries_stored_in_pieces_and_out_of_order_have_the_digest_of_their_sum():
    pieces = sp.csr_array((np.array([5.0, 1.0, 3.0]), np.array([1, 0, 0]), np.array([0, 3])), shape=(1, 2))
    assert row_digests([pieces]) == row_digests([np.array([[4.0, 5.0]])])
    assert pieces.nnz == 3


def test_values_are_not_taken_for_those_of_the_next_view():
    one = row_digests([np.array([[1.0, 2.0]]), np.array([[0.0]])])
    other = row_digests([np.array([[1.0, 0.0]]), np.array([[2.0]])])
    swapped = row_digests([np.array([[2.0, 1.0]]), np.array([[0.0]])])
    assert len({int(one[0]), int(other[0]), int(swapped[0])}) == 3


def test_digests_are_those_of_saved_models():
    digests = row_digests([np.eye(2), np.array([[0.5], [0.0]])])
    assert digests.tolist() == [-8765354768606668714, -7903279344482731454]


# --- edges -----------------------------------------------------------------------------------------------------------


def test_edges_are_a_canonical_copy():
    A = sp.csr_array((np.array([1.0, 2.0, 3.0, 0.0]), np.array([1, 1, 0, 1]), np.array([0, 2, 4])), shape=(2, 2))
    edges = as_edges(A)
    np.testing.assert_array_equal(edges.toarray(), [[0, 3], [3, 0]])
    assert edges.has_canonical_format
    assert edges.nnz == 2
    assert A.nnz == 4


def test_indices_of_64_bits_become_those_of_32():
    A = sp.csr_array(np.array([[0.0, 3.0, 0.5], [3.0, 0.0, 0.0], [0.5, 0.0, 1.0]]))
    wide = sp.csr_array((A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64)), shape=A.shape)
    edges = as_edges(wide)
    assert {edges.indices.dtype, edges.indptr.dtype} == {np.dtype(np.int32)}
    assert edges.has_canonical_format
    np.testing.assert_array_equal(edges.toarray(), A.toarray())
    assert wide.indices.dtype == np.int64


@pytest.mark.parametrize(
    ("A", "words"),
    [
        (np.ones((2, 3)), r"view 'web' is a graph and must be square, .* but is \(2, 3\)"),
        (np.array([[0.0, -2.0], [-2.0, 0.0]]), r"view 'web'\[0, 1\] = -2\. Edge weights must be >= 0"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), r"view 'web' is not symmetric: view 'web'\[0, 1\] = 1 but .* = 2"),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_what_is_no_graph_is_refused_by_name(A, words, form):
    with pytest.raises(KernelError, match=words):
        as_edges(form(A), "view 'web'")
