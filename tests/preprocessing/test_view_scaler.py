"""Scaling of views: what it does, in every form of input, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import KernelKMeans, MultiViewKernelKMeans, ParameterError, load_model, save_model
from kernelweave.datasets import standardize, unit_rows
from kernelweave.preprocessing import ViewScaler
from tests.estimators.discovery import blobs, same
from tests.estimators.scikit_checks import faults

X, _ = blobs(10)
NEW = blobs(3, seed=1)[0]


@pytest.mark.parametrize("method", ["auto", "unit_rows", "none"])
def test_scikit_learn_finds_no_fault(method):
    assert faults(ViewScaler(method=method)) == {}


def test_columns_get_mean_zero_and_deviation_one_as_the_data_sets_have_it():
    np.testing.assert_allclose(ViewScaler().fit_transform(X), standardize(X), atol=1e-12)
    scaler = ViewScaler().fit(X)
    np.testing.assert_allclose(scaler.transform(NEW), (NEW - X.mean(axis=0)) / X.std(axis=0, ddof=1))


def test_constant_columns_are_moved_and_not_divided():
    table = np.column_stack([X[:, 0], np.full(len(X), 0.1)])
    scaled = ViewScaler().fit_transform(table)
    np.testing.assert_allclose(scaled[:, 1], 0.0, atol=1e-15)
    assert np.isfinite(ViewScaler().fit(X[:1]).transform(X)).all()


def test_rows_get_unit_length():
    np.testing.assert_allclose(ViewScaler(method="unit_rows").fit_transform(X), unit_rows(X))
    sparse = sp.csr_array(np.where(np.abs(X) > 2, X, 0.0))
    scaled = ViewScaler().fit_transform(sparse)
    assert sp.issparse(scaled)
    np.testing.assert_allclose(np.linalg.norm(scaled.toarray(), axis=1), 1.0)


def test_counts_in_a_dense_table_are_scaled_as_in_a_sparse_one():
    rng = np.random.default_rng(0)
    counts = rng.poisson(3.0, (40, 60)) * (rng.random((40, 60)) < 0.08)
    counts[:, 0] = 1  # no empty row
    scaler = ViewScaler().fit(
        {"words": counts, "numbers": rng.normal(size=(40, 3)), "signed": counts * rng.choice([-1, 1], (40, 60))}
    )
    assert scaler.methods_ == ["unit_rows", "standard", "standard"]
    np.testing.assert_allclose(
        ViewScaler().fit_transform(counts), ViewScaler().fit_transform(sp.csr_array(counts)).toarray()
    )


def test_every_form_comes_back_as_it_came_and_stays_as_it_was():
    front, back = X[:, :2], X[:, 2:]
    expected = standardize(X)
    forms = {
        "list": [front, back],
        "dict": {"p": front, "q": back},
        "table": X,
        "frame": pd.DataFrame(X, columns=list("abcd")),
    }
    for name, form in forms.items():
        before = [front.copy(), back.copy()] if name == "list" else None
        scaled = ViewScaler().fit_transform(form)
        if name == "dict":
            scaled = list(scaled.values())
        joined = scaled if name in ("table", "frame") else np.hstack(scaled)
        np.testing.assert_allclose(joined, expected, atol=1e-12)
        if before is not None:
            assert same(form, before)
    assert list(ViewScaler().fit_transform(forms["dict"])) == ["p", "q"]


def test_columns_of_a_table_stay_in_their_places_and_those_of_no_view_alone():
    scaler = ViewScaler(method={"p": "standard", "q": "none"}, views={"p": [3, 0], "q": [1]})
    scaled = scaler.fit_transform(X)
    np.testing.assert_allclose(scaled[:, [0, 3]], standardize(X[:, [0, 3]]), atol=1e-12)
    np.testing.assert_array_equal(scaled[:, [1, 2]], X[:, [1, 2]])


def test_a_pipeline_with_views_fits_predicts_and_is_saved(tmp_path):
    views = {"p": 100.0 * X[:, :2], "q": X[:, 2:]}
    model = make_pipeline(ViewScaler(), MultiViewKernelKMeans(3, kernel="linear", random_state=0)).fit(views)
    again = load_model(save_model(model, tmp_path / "model.kwm"))
    assert again.predict(views).tolist() == model[-1].labels_.tolist()
    single = make_pipeline(StandardScaler(), KernelKMeans(3, random_state=0)).fit(X)
    assert load_model(save_model(single, tmp_path / "one.kwm")).predict(NEW).tolist() == single.predict(NEW).tolist()


def test_unknown_methods_and_sparse_views_are_refused():
    with pytest.raises(ParameterError, match="method='loud' for view 'X' is not known"):
        ViewScaler(method="loud").fit(X)
    with pytest.raises(ParameterError, match="would fill the zeros of the sparse view 'p'"):
        ViewScaler(method="standard").fit({"p": sp.csr_array(X)})
    with pytest.raises(ValueError, match=r"\['p', 'q'\].*\['p'\]"):
        ViewScaler().fit({"p": X, "q": X}).transform({"p": X})


def with_holes():
    """Return a table with an absent sample and a cell that was not measured."""
    table = X.copy()
    table[3] = np.nan
    table[5, 1] = np.nan
    return table


def test_what_was_not_measured_stays_so_and_columns_are_scaled_by_the_rest():
    table = with_holes()
    kept = table.copy()
    scaled = ViewScaler().fit_transform(table)
    np.testing.assert_array_equal(np.isnan(scaled), np.isnan(table))
    np.testing.assert_allclose(np.nanmean(scaled, axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(scaled, axis=0, ddof=1), 1.0)
    np.testing.assert_array_equal(table, kept)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_length_of_a_row_is_that_of_what_was_measured(sparse):
    table = with_holes()
    scaled = ViewScaler(method="unit_rows").fit_transform(sp.csr_array(table) if sparse else table)
    scaled = scaled.toarray() if sparse else scaled
    np.testing.assert_array_equal(np.isnan(scaled), np.isnan(table))
    lengths = np.sqrt(np.nansum(scaled**2, axis=1))
    np.testing.assert_allclose(np.delete(lengths, 3), 1.0)


def test_counts_are_recognised_by_the_rows_that_are_there():
    rng = np.random.default_rng(0)
    counts = rng.poisson(3.0, (40, 60)) * (rng.random((40, 60)) < 0.08) + 0.0
    counts[::4] = np.nan
    assert ViewScaler().fit([counts]).methods_ == ["unit_rows"]


def test_a_column_without_any_value_is_left_alone():
    table = X.copy()
    table[:, 0] = np.nan
    scaled = ViewScaler().fit_transform(table)
    assert np.isnan(scaled[:, 0]).all()
    np.testing.assert_allclose(scaled[:, 1:], standardize(X[:, 1:]), atol=1e-12)
