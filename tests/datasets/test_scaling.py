import numpy as np
import pytest
from scipy import sparse

from kernelweave.datasets import standardize, unit_rows
from kernelweave.foundation.errors import ParameterError


def test_standardize_divides_by_n_minus_one_as_matlab_does():
    # Mean 2, sum of squares 2, so the deviation is 1 with n - 1 and sqrt(2/3) with n.
    column = np.array([[1.0], [2.0], [3.0]])
    assert standardize(column).ravel() == pytest.approx([-1.0, 0.0, 1.0])
    assert standardize(column, ddof=0).ravel() == pytest.approx(np.array([-1.0, 0.0, 1.0]) * np.sqrt(1.5))


def test_standardized_columns_have_mean_zero_and_deviation_one():
    Z = standardize(np.random.default_rng(0).normal(5.0, 3.0, (200, 4)))
    assert Z.mean(axis=0) == pytest.approx(np.zeros(4), abs=1e-12)
    assert Z.std(axis=0, ddof=1) == pytest.approx(np.ones(4))


@pytest.mark.parametrize("value", [0.0, 0.1, 1e300])
def test_constant_columns_become_zero(value):
    X = np.column_stack([np.full(7, value), np.arange(7)])
    assert np.array_equal(standardize(X)[:, 0], np.zeros(7))


def test_standardize_takes_integers_without_wrapping_and_leaves_its_input_alone():
    X = np.array([[0], [255]], dtype=np.uint8)
    assert standardize(X).ravel() == pytest.approx([-np.sqrt(0.5), np.sqrt(0.5)])
    assert X.ravel().tolist() == [0, 255]


def test_unit_rows_have_length_one_but_for_zero_rows():
    X = np.array([[3, 4], [0, 0], [-5, 0]])
    assert unit_rows(X).tolist() == [[0.6, 0.8], [0.0, 0.0], [-1.0, 0.0]]


def test_unit_rows_of_sparse_data_stay_sparse_and_equal_the_dense_ones():
    X = sparse.random_array((20, 30), density=0.2, rng=np.random.default_rng(0), format="csr")
    scaled = unit_rows(X)
    assert sparse.issparse(scaled)
    assert scaled.toarray() == pytest.approx(unit_rows(X.toarray()))


def test_standardize_refuses_sparse_data_and_names_the_way_out():
    with pytest.raises(ParameterError, match=r"X is sparse.*unit_rows"):
        standardize(sparse.csr_array(np.eye(3)))


@pytest.mark.parametrize("scale", [standardize, unit_rows])
@pytest.mark.parametrize(
    ("X", "complaint"),
    [
        ([1.0, 2.0], "shape"),
        ([["a"], ["b"]], "numbers"),
        ([[1.0, np.nan], [2.0, 3.0]], "column 1"),
        (np.empty((0, 3)), "shape"),
    ],
)
def test_bad_data_is_refused(scale, X, complaint):
    with pytest.raises(ParameterError, match=complaint):
        scale(X)


def test_sparse_rows_must_be_finite():
    with pytest.raises(ParameterError, match="not finite"):
        unit_rows(sparse.csr_array([[1.0, np.inf]]))


@pytest.mark.parametrize("ddof", [-1, 0.5, 3])
def test_bad_ddof_is_refused(ddof):
    with pytest.raises(ParameterError, match="ddof="):
        standardize(np.eye(3), ddof=ddof)
