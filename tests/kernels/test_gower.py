"""Gower's similarity: mixed columns, weights, missing cells, new samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from kernelweave import (
    KernelKMeans,
    MultiViewKernelKMeans,
    MultiViewSpectralClustering,
    NotPSDWarning,
    ParameterError,
    ViewError,
    load_model,
    save_model,
)
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.report import write_report

ALL = slice(None)


def plain(X, Y, training, categorical, weights):
    """Write the definition out in loops."""
    K = np.empty((len(X), len(Y)))
    for i, x in enumerate(X):
        for j, y in enumerate(Y):
            total = 0.0
            known = 0.0
            for f in range(X.shape[1]):
                if np.isnan(x[f]) or np.isnan(y[f]):
                    continue
                values = training[:, f][~np.isnan(training[:, f])]
                width = values.max() - values.min()
                if f in categorical or width == 0:
                    alike = float(x[f] == y[f])
                else:
                    alike = max(0.0, 1.0 - abs(x[f] - y[f]) / width)
                total += weights[f] * alike
                known += weights[f]
            K[i, j] = total / known if known else 0.5
    return K


def mixed(seed, n=12, missing=0.0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(3, size=n), rng.random(n), np.full(n, 7.0)])
    X[rng.random(X.shape) < missing] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 0.5
    return X


@given(seed=st.integers(0, 10_000), missing=st.sampled_from([0.0, 0.2, 0.6]))
@settings(max_examples=30, deadline=None)
def test_values_are_those_of_the_definition(seed, missing):
    X = mixed(seed, missing=missing)
    new = mixed(seed + 1, 5, missing)
    weights = np.random.default_rng(seed).random(4) + 0.1
    fitted = fit_kernel(X, "gower", {"categorical": [1], "weights": weights})
    K = plain(X, X, X, {1}, weights)
    np.fill_diagonal(K, 1.0)
    np.testing.assert_allclose(fitted.operator("dense").block(ALL, ALL), K, atol=1e-12)
    np.testing.assert_allclose(fitted.cross(new).block(ALL, ALL), plain(new, X, X, {1}, weights), atol=1e-12)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_without_missing_cells_it_is_positive_semidefinite(seed):
    X = mixed(seed, 15)
    K = np.asarray(fit_kernel(X, "gower", {"categorical": [1]}).operator("dense").block(ALL, ALL))
    assert np.linalg.eigvalsh(K).min() > -1e-9


def test_columns_are_named_by_numbers_or_booleans():
    X = mixed(0)
    by_number = fit_kernel(X, "gower", {"categorical": [-3]}).operator("dense").block(ALL, ALL)
    by_mask = fit_kernel(X, "gower", {"categorical": [False, True, False, False]}).operator("dense").block(ALL, ALL)
    np.testing.assert_array_equal(by_number, by_mask)


@pytest.mark.parametrize("params", [{"categorical": [4]}, {"categorical": ["sex"]}, {"categorical": [True]}])
def test_columns_that_are_not_there_are_refused(params):
    with pytest.raises(ParameterError, match="column numbers from 0 to 3"):
        fit_kernel(mixed(0), "gower", params)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0, 1.0, 1.0], [0.0] * 4, [np.nan] * 4])
def test_weights_are_one_number_per_column(weights):
    with pytest.raises(ParameterError, match="for each of the 4 columns"):
        fit_kernel(mixed(0), "gower", {"weights": weights})


def test_mixed_tables_with_missing_cells_are_clustered_saved_and_predicted(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = np.column_stack([3.0 * y + rng.normal(0, 0.4, 90), y, rng.random(90)])
    X[rng.random(X.shape) < 0.1] = np.nan
    X[np.isnan(X).all(axis=1), 2] = 0.5
    model = KernelKMeans(3, kernel="gower", kernel_params={"categorical": [1]}, n_init=5, random_state=0)
    with pytest.warns(NotPSDWarning):  # means over different columns have no feature space
        model.fit(X)
    assert adjusted_rand_score(model.labels_, y) > 0.8
    save_model(model, tmp_path / "model.kwm")
    new = X[:30] + np.array([0.01, 0.0, 0.0])
    np.testing.assert_array_equal(load_model(tmp_path / "model.kwm").predict(new), model.predict(new))


def test_a_sample_without_any_value_is_refused():
    X = mixed(0)
    X[4] = np.nan
    with pytest.raises(ParameterError, match=r"1 samples have no value at all \(the first is row 4\)"):
        KernelKMeans(2, kernel="gower").fit(X)


def test_other_kernels_refuse_missing_cells():
    X = mixed(0)
    X[4, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        KernelKMeans(2, kernel="rbf").fit(X)


def mixed_views(absent):
    """Return a mixed table with missing cells and a table of numbers, of three groups, and the groups."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    table = np.column_stack([3.0 * y + rng.normal(0, 0.5, 120), y, rng.random(120)])
    table[rng.random(table.shape) < 0.15] = np.nan
    table[np.isnan(table).all(axis=1), 2] = 0.5
    views = {"clinic": table, "genes": np.column_stack([2.0 * y, -y]) + rng.normal(0, 0.7, (120, 2))}
    if absent:
        views["clinic"][::4] = np.nan
        views["genes"][1::4] = np.nan
    return views, y


@pytest.mark.filterwarnings("ignore::kernelweave.NotPSDWarning")
@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("cls", [MultiViewKernelKMeans, MultiViewSpectralClustering])
def test_one_of_several_views_may_be_a_mixed_table_with_missing_cells(cls, absent, tmp_path):
    views, y = mixed_views(absent)
    kernels = {"clinic": "gower", "genes": "rbf"}
    model = cls(3, kernel=kernels, kernel_params={"clinic": {"categorical": [1]}, "genes": {}}, random_state=0)
    model.fit(views)
    assert adjusted_rand_score(model.labels_, y) > 0.75
    assert model.observed_.all() != absent
    save_model(model, tmp_path / "model.kwm")
    np.testing.assert_array_equal(load_model(tmp_path / "model.kwm").predict(views), model.predict(views))
    write_report(tmp_path / "report.html", model, views)
    assert "clinic" in (tmp_path / "report.html").read_text()
    # The same as with the kernel computed beforehand: cells are compared, not filled.
    there = ~np.isnan(views["clinic"]).all(axis=1)
    K = np.full((120, 120), np.nan)
    K[np.ix_(there, there)] = (
        fit_kernel(views["clinic"][there], "gower", {"categorical": [1]}).operator("dense").block(ALL, ALL)
    )
    given = clone(model).set_params(kernel={"clinic": "precomputed", "genes": "rbf"}, kernel_params=None)
    given.fit({"clinic": K, "genes": views["genes"]})
    assert adjusted_rand_score(model.labels_, given.labels_) == 1.0


def test_a_view_with_another_kernel_refuses_missing_cells_and_missing_says_what_to_do():
    views, _ = mixed_views(absent=False)
    with pytest.raises(ViewError, match="'clinic' contains NaN"):
        MultiViewKernelKMeans(3, kernel={"clinic": "rbf", "genes": "gower"}).fit(views)
    filled = MultiViewKernelKMeans(3, kernel="gower", missing="median", random_state=0).fit(views)
    assert [filler.kind for filler in filled._fillers] == ["median", "median"]


@pytest.mark.filterwarnings("ignore::kernelweave.NotPSDWarning")
def test_the_number_of_clusters_is_read_off_the_mixed_kernel():
    views, y = mixed_views(absent=True)
    views["genes"][:, 1] += 6.0 * y
    kernels = {"clinic": "gower", "genes": "rbf"}
    model = MultiViewSpectralClustering("auto", kernel=kernels, random_state=0).fit(views)
    assert model.n_clusters_ == 3
    assert model.verdict_.startswith("3 clusters")
