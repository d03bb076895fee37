"""From matrices to operators, and what a kernel matrix must be."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.foundation.errors import KernelError
from kernelweave.kernels import checks
from kernelweave.kernels.checks import check_kernel_part
from kernelweave.kernels.conversion import as_operator
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from tests.strategies import indefinite_kernels, psd_kernels

quick = settings(max_examples=30, deadline=None)
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


def every_other(K):
    """Return the matrix as rows and columns of a larger one."""
    wide = np.ones((2 * len(K), 2 * len(K)), dtype=K.dtype)
    wide[::2, ::2] = K
    return wide[::2, ::2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lay", [np.asfortranarray, every_other])
@pytest.mark.parametrize("place", [(1, 2), (2, 1), (3, 290), (290, 3), (290, 130)])
def test_faults_are_found_however_the_matrix_lies_in_memory(place, lay, dtype):
    K = np.ones((300, 300), dtype=dtype)
    assert as_operator(lay(K)).shape == K.shape
    i, j = place
    K[place] += 1.0
    with pytest.raises(KernelError, match=rf"K is not symmetric: K\[({i}, {j}|{j}, {i})\]"):
        as_operator(lay(K))
    K[place] = np.nan
    with pytest.raises(KernelError, match=rf"K holds NaN or infinity at row {i}, column {j}\."):
        as_operator(lay(K))


@pytest.mark.parametrize("held", [2**17, 1000])
@pytest.mark.parametrize("place", [(1, 3), (3, 1), (5, 291), (291, 5), (291, 131)])
def test_faults_are_found_in_a_part_of_a_matrix_and_nowhere_else(place, held, monkeypatch):
    monkeypatch.setattr(checks, "CHECKED_ENTRIES", held)
    K = np.ones((300, 300))
    K[::2] = np.nan
    K[:, ::2] = np.inf
    K[7, 9] = K[9, 7] = -2.0
    samples = np.arange(1, 300, 2)
    assert check_kernel_part(K, samples) == 2.0
    i, j = place
    K[place] += 1.0
    with pytest.raises(KernelError, match=rf"X is not symmetric: X\[({i}, {j}|{j}, {i})\]"):
        check_kernel_part(K, samples)
    K[place] = np.nan
    with pytest.raises(KernelError, match=rf"X holds NaN or infinity at row {i}, column {j}\."):
        check_kernel_part(K, samples)
    with pytest.raises(KernelError, match="must be a square kernel matrix"):
        check_kernel_part(K[:, 1:], samples)


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
