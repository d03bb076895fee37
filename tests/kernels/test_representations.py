"""How the rows of a view are compared: read off its values, learned on the training samples."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.kernels.representations import FEW_COLUMNS, Counts, Hellinger, kind_sums, representations, view_kind
from tests.peak_memory import peak_of

WIDE = FEW_COLUMNS + 2


def table(seed=0, n=40, d=WIDE, low=None):
    """Return a table of normal numbers, moved up to be no less than ``low``."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X if low is None else X - X.min() + low


def counts(seed=0, n=40, d=60, share=0.05):
    """Return a sparse table of small whole numbers."""
    rng = np.random.default_rng(seed)
    return sp.csr_array(rng.integers(1, 6, (n, d)) * (rng.random((n, d)) < share), dtype=np.float64)


def filled(n_entries, shape, value=1.0):
    """Return zeros but for the first entries."""
    X = np.zeros(shape)
    X.ravel()[:n_entries] = value
    return X


# --- counts or other numbers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("n_entries", "shape", "kind"),
    [
        (99, (10, 100), "counts"),
        (100, (10, 100), "table"),  # a tenth
        (4999, (10, 1000), "counts"),  # a thousand columns may be half full
        (5000, (10, 1000), "table"),
        (4999, (10, 999), "table"),
    ],
)
def test_few_entries_make_counts_and_wide_tables_may_have_more(form, n_entries, shape, kind):
    assert view_kind(form(filled(n_entries, shape))) == kind


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("negative", "kind"), [(-0.99, "counts"), (-1.01, "table")])
def test_negative_values_may_have_a_twentieth_of_the_squares(form, negative, kind):
    X = filled(20, (10, 100))
    X[0, 0] = negative  # next to 19 ones
    assert view_kind(form(X)) == kind


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_view_of_zeros_is_a_table(form):
    assert view_kind(form(np.zeros((5, 50)))) == "table"


def test_stored_zeros_do_not_make_a_table_of_counts():
    X = counts()
    stored = X + sp.csr_array(np.ones(X.shape))
    stored.data[:] = X.toarray().ravel()
    assert stored.nnz == 40 * 60
    assert view_kind(stored) == view_kind(X) == "counts"


# --- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, FEW_COLUMNS - 1])
@pytest.mark.parametrize("low", [None, 0.0])
def test_few_columns_have_one_representation(d, low):
    (only,) = representations(table(d=d, low=low), "table")
    assert only.name == "z-scores"


@pytest.mark.parametrize(
    ("low", "names"), [(None, ["z-scores", "z-scores of unit length"]), (0.0, ["z-scores", "Hellinger"])]
)
def test_from_ten_columns_on_the_sign_of_values_decides_the_second_representation(low, names):
    assert [each.name for each in representations(table(d=FEW_COLUMNS, low=low), "table")] == names


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.sampled_from([1e-6, 1.0, 1e6]), st.floats(-100, 100))
def test_z_scores_have_mean_zero_and_variance_one_in_any_unit(seed, unit, offset):
    X = table(seed, d=3)
    Z = representations(unit * (X + offset), "table")[0].transform(unit * (X + offset))
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(Z.var(axis=0), 1.0, rtol=1e-6)
    np.testing.assert_allclose(Z, (X - X.mean(axis=0)) / X.std(axis=0), atol=1e-8)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9])
def test_a_constant_column_becomes_zero_also_where_rounding_gives_it_a_spread(constant):
    X = table(d=3)
    X[:, 1] = constant
    Z = representations(X, "table")[0].transform(X)
    np.testing.assert_array_equal(Z[:, 1], 0.0)
    np.testing.assert_allclose(Z[:, [0, 2]].var(axis=0), 1.0)


def test_a_table_of_zeros_stays_zero():
    for each in representations(np.zeros((6, WIDE)), "table"):
        np.testing.assert_array_equal(each.transform(np.zeros((6, WIDE))), 0.0)


def test_the_second_representation_has_rows_of_unit_length():
    for low in (None, 0.0):
        X = table(low=low)
        Z = representations(X, "table")[1].transform(X)
        np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0)


def test_z_scores_of_unit_length_are_z_scores_scaled():
    X = table()
    plain, unit = (each.transform(X) for each in representations(X, "table"))
    np.testing.assert_allclose(unit * np.linalg.norm(plain, axis=1, keepdims=True), plain)


def test_hellinger_is_the_root_of_shares_centred():
    X = table(low=0.0)
    roots = np.array([[np.sqrt(value / sum(row)) for value in row] for row in X])
    wanted = roots - roots.mean(axis=0)
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    np.testing.assert_allclose(representations(X, "table")[1].transform(X), wanted)


def test_hellinger_does_not_see_the_total_of_a_row():
    X = table(low=0.1)
    hellinger = representations(X, "table")[1]
    factors = np.random.default_rng(0).uniform(0.1, 10, (len(X), 1))
    np.testing.assert_allclose(hellinger.transform(X * factors), hellinger.transform(X))


def test_hellinger_of_a_row_of_zeros_is_finite_and_of_unit_length():
    X = table(low=0.0)
    X[3] = 0.0
    Z = representations(X, "table")[1].transform(X)
    assert np.isfinite(Z).all()
    assert np.linalg.norm(Z[3]) == pytest.approx(1.0)
    assert (Z[3] < 0).all()  # no share of anything, less the mean


def test_new_values_below_zero_count_as_zero_for_hellinger():
    hellinger = Hellinger(np.full(3, 0.1))
    np.testing.assert_array_equal(hellinger.transform([[1.0, -5.0, 3.0]]), hellinger.transform([[1.0, 0.0, 3.0]]))


@pytest.mark.parametrize("low", [None, 0.0])
def test_new_samples_are_compared_by_statistics_of_the_training_samples(low):
    X = table(low=low)
    for each in representations(X, "table"):
        together = each.transform(X)
        np.testing.assert_allclose(each.transform(X[5:6]), together[5:6])
        assert not np.allclose(each.transform(X[:9] * 2 + 1), together[:9])


def test_a_sparse_table_is_compared_as_the_dense_one():
    X = table(low=0.0)
    for plain, sparse in zip(representations(X, "table"), representations(sp.csr_array(X), "table"), strict=True):
        np.testing.assert_array_equal(plain.transform(X), sparse.transform(sp.csr_array(X)))


# --- counts ----------------------------------------------------------------------------------------------------------


def test_counts_are_compared_with_and_without_rare_columns_weighing_more():
    assert [each.name for each in representations(counts(), "counts")] == ["cosine with idf", "cosine"]


def test_rare_columns_weigh_log_of_one_plus_n_over_one_plus_rows_plus_one():
    X = np.array([[1.0, 0.0, 2.0], [1.0, 3.0, 0.0], [4.0, 0.0, 0.0], [1.0, 0.0, -1.0]])
    weighted, plain = representations(X, "counts")
    wanted = [np.log(5 / 5) + 1, np.log(5 / 2) + 1, np.log(5 / 2) + 1]  # a value below zero is not an entry
    np.testing.assert_allclose(weighted.column_weights, wanted)
    np.testing.assert_array_equal(plain.column_weights, 1.0)


@pytest.mark.parametrize("form", [sp.csr_array.toarray, sp.csr_array])
def test_rows_of_counts_are_weighted_roots_of_unit_length(form):
    X = counts()
    for each in representations(form(X), "counts"):
        Z = each.transform(form(X))
        wanted = np.sqrt(X.toarray()) * each.column_weights
        lengths = np.linalg.norm(wanted, axis=1, keepdims=True)
        assert sp.issparse(Z)
        np.testing.assert_allclose(Z.toarray(), np.divide(wanted, lengths, where=lengths > 0, out=wanted))


def test_a_row_of_counts_without_entries_stays_empty():
    X = counts().tolil()
    X[7] = 0.0
    X[8] = 0.0
    X[8, 0] = -2.0  # counts as zero
    Z = Counts(np.ones(60)).transform(sp.csr_array(X))
    assert np.diff(Z.indptr)[[7, 8]].tolist() == [0, 0]
    assert np.isfinite(Z.data).all()


def test_entries_stored_in_pieces_are_their_sum():
    pieces = sp.csr_array((np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    whole = sp.csr_array(np.array([[4.0, 0.0], [0.0, 5.0]]))
    for mine, wanted in zip(representations(pieces, "counts"), representations(whole, "counts"), strict=True):
        np.testing.assert_array_equal(mine.column_weights, wanted.column_weights)
        np.testing.assert_array_equal(mine.transform(pieces).toarray(), wanted.transform(whole).toarray())
    assert pieces.nnz == 3  # the argument is left as it was


def test_new_counts_are_weighed_by_the_training_samples():
    X = counts()
    weighted = representations(X, "counts")[0]
    np.testing.assert_array_equal(weighted.transform(X[:4]).toarray(), weighted.transform(X).toarray()[:4])


def test_the_kind_of_a_wide_table_is_told_without_a_copy_of_it():
    X = np.random.default_rng(0).standard_normal((2000, 400))
    sums, peak = peak_of(lambda: kind_sums(X))
    np.testing.assert_allclose(sums, [X.size, (X**2).sum(), (X[X < 0] ** 2).sum()], rtol=1e-12)
    assert peak < 3.5  # of 6.1 MiB


@pytest.mark.parametrize("shift", [0.0, 9.0])
def test_rows_that_are_compared_take_one_table_each(shift):
    X = np.random.default_rng(0).standard_normal((2000, 400)) + shift
    X[7] = 0.0
    for representation in representations(X, "table"):
        Z, peak = peak_of(lambda each=representation: each.transform(X))
        assert peak < 1.4 * X.nbytes / 2**20
        if "unit" in representation.name or representation.name == "Hellinger":
            lengths = np.linalg.norm(Z, axis=1)
            np.testing.assert_allclose(lengths[lengths > 0], 1.0, rtol=1e-12)
        single = representation.transform(X.astype(np.float32))
        assert single.dtype == np.float64
