"""What sets clusters apart: tests against scipy and by hand, laws on generated cases, names, kinds of input."""

import csv
import sys
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import GraphCut, GraphFusionClustering, KernelKMeans, MultiViewKernelKMeans, ParameterError, ViewError
from kernelweave.evaluation.explain import rank_tests
from kernelweave.evaluation.explain.explanation import CAUTION
from kernelweave.evaluation.explain.graphs import explain_graph
from kernelweave.evaluation.explain.rank_tests import adjusted_for_many, column_statistics
from kernelweave.explain import explain_clusters
from kernelweave.preprocessing import TableEncoder
from kernelweave.report import ReportFacts

WINE = load_wine(as_frame=True)


class Labelled:
    """A clusterer that is told the clusters, of as many views as X has."""

    def __init__(self, labels, n_clusters=None):
        self.labels_ = np.asarray(labels)
        self.n_clusters = int(self.labels_.max()) + 1 if n_clusters is None else n_clusters

    def fit(self, X, y=None):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        return KernelKMeans().__sklearn_tags__()


@pytest.fixture(scope="module")
def wine():
    model = make_pipeline(StandardScaler(), KernelKMeans(3, kernel="linear", random_state=0))
    return explain_clusters(model.fit(WINE.data), WINE.data)


def random_case(seed, n=30, d=4, k=3):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, d)), 1)
    X[rng.random((n, d)) < 0.1] = np.nan
    return X, rng.integers(k, size=n)


# Tests


@pytest.mark.parametrize("seed", range(5))
def test_effects_and_p_values_are_those_of_scipy_with_ties_and_missing_values(seed):
    X, labels = random_case(seed)
    result = column_statistics(X, labels, 3)
    for j in range(X.shape[1]):
        there = ~np.isnan(X[:, j])
        for c in range(3):
            inside = X[there & (labels == c), j]
            outside = X[there & (labels != c), j]
            expected = stats.mannwhitneyu(inside, outside, method="asymptotic")
            pairs = len(inside) * len(outside)
            assert result.p_values[j, c] == pytest.approx(expected.pvalue)
            assert result.effects[j, c] == pytest.approx(2 * expected.statistic / pairs - 1)
            assert result.effects[j, c] == pytest.approx(np.sign(inside[:, None] - outside).mean())
            assert result.means_inside[j, c] == pytest.approx(inside.mean())
            assert result.means_outside[j, c] == pytest.approx(outside.mean())
            gap = (inside.mean() - outside.mean()) / X[there, j].std()
            assert result.differences[j, c] == pytest.approx(gap)
            assert (result.inside[j, c], result.outside[j, c]) == (len(inside), len(outside))


@pytest.mark.parametrize("seed", range(3))
def test_a_sparse_table_gives_what_its_dense_copy_gives(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((40, 9)) < 0.3, np.round(rng.standard_normal((40, 9)), 1), 0.0)
    X[:, 0] = 0.0
    X[rng.random((40, 9)) < 0.05] = np.nan
    labels = rng.integers(4, size=40)
    dense = column_statistics(X, labels, 4)
    monkeypatch.setattr(rank_tests, "BLOCK_ENTRIES", 80)  # two columns at a time
    sparse = column_statistics(sp.csr_array(X), labels, 4)
    for each in fields(dense):
        np.testing.assert_allclose(getattr(sparse, each.name), getattr(dense, each.name), atol=1e-12, err_msg=each.name)


def test_p_values_are_adjusted_as_by_scipy_and_what_was_not_tested_does_not_count():
    p = np.random.default_rng(0).random((6, 4)) ** 3
    expected = stats.false_discovery_control(p.ravel()).reshape(p.shape)
    np.testing.assert_allclose(adjusted_for_many(p), expected)
    with_holes = np.append(p.ravel(), [np.nan, np.nan])
    np.testing.assert_allclose(adjusted_for_many(with_holes)[:-2], expected.ravel())
    assert np.isnan(adjusted_for_many(with_holes)[-2:]).all()
    assert len(adjusted_for_many(np.empty(0))) == 0


def test_numbers_of_two_values_and_of_words_are_those_counted_by_hand():
    # inside: 1 1 0, outside: 1 0 0 0
    X = np.array([[1.0], [1.0], [0.0], [1.0], [0.0], [0.0], [0.0]])
    labels = np.array([0, 0, 0, 1, 1, 1, 1])
    result = column_statistics(X, labels, 2)
    assert result.effects[0, 0] == pytest.approx(2 / 3 - 1 / 4)
    assert result.high_inside[0].tolist() == pytest.approx([2 / 3, 1 / 4])
    assert result.high_outside[0].tolist() == pytest.approx([1 / 4, 2 / 3])
    assert result.present_inside[0].tolist() == pytest.approx([2 / 3, 1 / 4])
    assert result.log_odds[0, 0] == pytest.approx(np.log((2.5 / 1.5) / (1.5 / 3.5)))
    negative = column_statistics(sp.csr_array(X - 1.0), labels, 2)  # the larger value is the zero that is not stored
    np.testing.assert_allclose(negative.high_inside, result.high_inside)


# Laws


@given(seed=st.integers(0, 2**16), constant=st.floats(-1e6, 1e6))
def test_a_constant_column_has_no_effect_and_p_1(seed, constant):
    labels = np.random.default_rng(seed).integers(3, size=12)
    labels[:3] = (0, 1, 2)
    result = column_statistics(np.full((12, 1), constant), labels, 3)
    assert result.effects.tolist() == [[0.0] * 3]
    assert result.p_values.tolist() == [[1.0] * 3]
    assert result.differences.tolist() == [[0.0] * 3]


@given(seed=st.integers(0, 2**16))
def test_the_order_of_samples_changes_nothing_to_the_last_bit(seed):
    X, labels = random_case(seed)
    order = np.random.default_rng(seed + 1).permutation(len(X))
    first = column_statistics(X, labels, 3)
    second = column_statistics(X[order], labels[order], 3)
    for each in fields(first):
        np.testing.assert_array_equal(getattr(second, each.name), getattr(first, each.name), err_msg=each.name)


@given(seed=st.integers(0, 2**16))
def test_other_names_of_clusters_permute_what_is_said_of_them(seed):
    X, labels = random_case(seed)
    names = np.random.default_rng(seed + 1).permutation(3)
    first = column_statistics(X, labels, 3)
    second = column_statistics(X, names[labels], 3)
    for each in fields(first):
        before = getattr(first, each.name)
        after = getattr(second, each.name)
        np.testing.assert_allclose(after[:, names] if before.ndim == 2 else after, before, atol=1e-12)


@given(seed=st.integers(0, 2**16))
def test_a_growing_function_of_a_column_keeps_its_effect_and_its_p_value(seed):
    X, labels = random_case(seed)
    before = column_statistics(X, labels, 3)
    after = column_statistics(np.exp(X), labels, 3)
    np.testing.assert_array_equal(after.effects, before.effects)
    np.testing.assert_array_equal(after.p_values, before.p_values)


# Cases at the edge


def test_one_cluster_is_compared_with_nothing():
    result = explain_clusters(KernelKMeans(1).fit(WINE.data), WINE.data)
    assert result.rows == ()
    assert len(result.typical[0]) == 5
    assert len(result.borderline[0]) == 0
    assert result.summary().startswith("cluster 0 (178 samples)\n  typical: ")


def test_empty_clusters_and_columns_without_values_have_no_rows():
    X = np.array([[0.0, np.nan], [1.0, np.nan], [5.0, np.nan], [6.0, np.nan]])
    result = column_statistics(X, np.array([0, 0, 2, 2]), 3)
    assert np.isnan(result.p_values[:, 1]).all()
    assert np.isnan(result.p_values[1]).all()
    assert np.isnan(result.effects[1]).all()
    labelled = explain_clusters(Labelled([0, 0, 2, 2], 3), X[:, :1])
    assert {row.cluster for row in labelled.rows} == {0, 2}
    assert "cluster 1 (0 samples): empty" in labelled.summary()


@pytest.mark.parametrize("n", [2, 5])
def test_as_many_clusters_as_samples_are_explained(n):
    X = np.arange(float(n))[:, None] ** 2
    result = explain_clusters(Labelled(np.arange(n)), X)
    assert [row.effect for row in result.rows] == pytest.approx(np.linspace(-1, 1, n))
    assert all(row.n_inside == 1 for row in result.rows)
    assert "no column distinguishes it" in result.summary()


# What people read


def test_the_table_of_wines_says_what_the_columns_hold(wine):
    row = wine.top(0, 1)[0]
    labels = wine.samples.labels
    inside = WINE.data.loc[labels == 0, row.column]
    outside = WINE.data.loc[labels != 0, row.column]
    assert row.median_inside == pytest.approx(inside.median())  # values as passed, not as scaled
    assert row.median_outside == pytest.approx(outside.median())
    assert row.mean_outside == pytest.approx(outside.mean())
    assert wine.values_taken == "as passed"
    every = [stats.mannwhitneyu(WINE.data.loc[labels == c, name], WINE.data.loc[labels != c, name]).pvalue
             for name in WINE.data.columns for c in range(3)]  # fmt: skip
    adjusted = stats.false_discovery_control(every).reshape(-1, 3)
    assert row.adjusted_p == pytest.approx(adjusted[list(WINE.data.columns).index(row.column), 0])
    assert row.direction == ("high" if inside.median() > outside.median() else "low")
    assert f"{row.direction} {row.column} (median {row.median_inside:.3g} against" in wine.summary()
    assert CAUTION in wine.summary()


def test_columns_that_separate_come_first_and_large_effects_before_small_ones(wine):
    for c in range(3):
        rows = wine.top(c, 50)
        keys = [(not row.separates, -abs(row.effect)) for row in rows]
        assert keys == sorted(keys)
        assert len(rows) == WINE.data.shape[1]
    with pytest.raises(ParameterError, match="cluster=3 is not one of the 3 clusters"):
        wine.top(3)
    with pytest.raises(ParameterError, match="view='genes' is not one of the views"):
        wine.top(0, view="genes")


def test_the_table_is_a_frame_and_a_file(wine, tmp_path, monkeypatch):
    frame = wine.to_frame()
    assert list(frame.columns[:7]) == [
        *("cluster", "view", "column", "effect", "mean_inside", "mean_outside", "adjusted_p"),
    ]
    assert len(frame) == len(wine.rows) == 39
    with open(wine.to_csv(tmp_path / "clusters.csv"), encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [float(line["effect"]) for line in lines] == frame["effect"].tolist()
    assert lines[0]["share_inside"] == ""
    with pytest.raises(FrozenInstanceError):
        wine.rows = ()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas"):
        wine.to_frame()


def test_rows_keep_the_best_columns_and_the_arrays_keep_all(wine):
    model = KernelKMeans(3, kernel="linear", random_state=0).fit(WINE.data)
    few = explain_clusters(model, WINE.data, n_columns=2)
    every = explain_clusters(model, WINE.data, n_columns=None)
    assert len(few.rows) == 6
    assert few.top(1, 2) == every.top(1, 2)
    assert few.views[0].statistics.effects.shape == (13, 3)
    with pytest.raises(ParameterError, match="n_columns=0 must be at least 1"):
        explain_clusters(model, WINE.data, n_columns=0)


def test_typical_and_borderline_samples_are_the_nearest_and_the_least_sure(wine):
    sure = wine.samples.confidences
    for c in range(3):
        members = np.flatnonzero(wine.samples.labels == c)
        assert wine.borderline[c][0] == members[sure[members].argmin()]
        assert set(wine.typical[c]) <= set(members)
    Z = StandardScaler().fit_transform(WINE.data)
    members = np.flatnonzero(wine.samples.labels == 0)
    distances = np.linalg.norm(Z[members] - Z[members].mean(axis=0), axis=1)
    assert wine.typical[0].tolist() == members[np.argsort(distances)[:5]].tolist()


def test_typical_samples_lie_in_the_middle_of_their_cluster_in_the_embedding():
    X = WINE.data.to_numpy()  # columns that differ in scale by a thousand, which graph fusion evens out
    model = GraphFusionClustering(3, random_state=0).fit(X)
    result = explain_clusters(model, X)
    for c, rows in enumerate(result.typical):
        members = np.flatnonzero(model.labels_ == c)
        places = model.embedding_[members]
        order = np.argsort(np.linalg.norm(places - places.mean(axis=0), axis=1))
        assert rows.tolist() == members[order[:5]].tolist()
    facts = ReportFacts.from_estimator(model, X)
    assert [rows.tolist() for rows in facts.typical] == [rows.tolist() for rows in result.typical]


# Names, steps, kinds of input


def test_names_come_from_frames_from_steps_and_from_the_caller():
    X = WINE.data.to_numpy()
    model = KernelKMeans(2, kernel="linear", random_state=0).fit(X)
    assert {row.column for row in explain_clusters(model, X).rows} == {f"x{j}" for j in range(13)}
    named = explain_clusters(model, X, feature_names=WINE.feature_names)
    assert {row.column for row in named.rows} == set(WINE.feature_names)
    assert named.rows == explain_clusters(model, X, feature_names={"X": WINE.feature_names}).rows
    with pytest.raises(ParameterError, match="feature_names has 1 names for view 'X', which has 13 columns"):
        explain_clusters(model, X, feature_names=["alcohol"])
    pipeline = make_pipeline(StandardScaler(), PCA(2), StandardScaler(), model).fit(WINE.data)
    reduced = explain_clusters(pipeline, WINE.data)
    assert {row.column for row in reduced.rows} == {"pca0", "pca1"}
    assert reduced.values_taken == "after PCA"
    assert np.nanmax([abs(row.mean_inside) for row in reduced.rows]) > 1.0  # not on the scale of the step after


def test_encoded_columns_are_shown_before_they_are_scaled():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": np.repeat(["male", "female"], 20), "size": np.repeat([0.0, 9.0], 20) + rng.random(40)})
    pipeline = make_pipeline(TableEncoder(), StandardScaler(), KernelKMeans(2, kernel="linear", random_state=0))
    result = explain_clusters(pipeline.fit(frame), frame)
    assert result.values_taken == "after TableEncoder"
    row = next(row for row in result.rows if row.column == "sex=male")
    assert row.kind == "two values"
    assert {row.share_inside, row.share_outside} == {0.0, 1.0}
    assert "(100% against 0%)" in row.text() or "(0% against 100%)" in row.text()


def test_views_keep_their_names_and_absent_samples_are_left_out():
    rng = np.random.default_rng(0)
    centers = np.repeat([0.0, 6.0], 20)[:, None]
    genes = pd.DataFrame(centers + rng.standard_normal((40, 2)), columns=["g1", "g2"])
    other = pd.DataFrame(centers + rng.standard_normal((40, 3)), columns=["g1", "p2", "p3"])
    genes.iloc[5] = np.nan
    views = {"genes": genes, "proteins": other}
    model = GraphFusionClustering(2, random_state=0).fit(views)
    result = explain_clusters(model, views)
    assert [(view.name, view.columns) for view in result.views] == [
        ("genes", ("g1", "g2")),
        ("proteins", ("g1", "p2", "p3")),
    ]
    rows = [row for row in result.rows if row.view == "genes"]
    assert {row.n_inside + row.n_outside for row in rows} == {39}
    assert {row.view for row in result.top(0, view="proteins")} == {"proteins"}
    assert "g1 of " in result.summary()
    assert " p2 (" in result.summary()
    with pytest.raises(ViewError, match="feature_names names the view 'text'"):
        explain_clusters(model, views, feature_names={"text": ["a"]})
    with pytest.raises(ParameterError, match="feature_names must be a dict of view to names for 2 views"):
        explain_clusters(model, views, feature_names=["a", "b"])


def test_columns_of_one_table_are_divided_among_its_views():
    frame = WINE.data.iloc[:, [2, 0, 1, 3]]
    columns = {"late": ["magnesium", "alcalinity_of_ash"], "early": ["alcohol"]}
    frame = WINE.data[["alcohol", "malic_acid", "magnesium", "alcalinity_of_ash"]]
    model = MultiViewKernelKMeans(2, kernel="linear", views=columns, random_state=0).fit(frame)
    result = explain_clusters(model, frame)
    assert {view.name: view.columns for view in result.views} == {
        "late": ("magnesium", "alcalinity_of_ash"),
        "early": ("alcohol",),
    }
    inside = frame["alcohol"][model.labels_ == 0]
    row = next(row for row in result.rows if row.column == "alcohol" and row.cluster == 0)
    assert row.mean_inside == pytest.approx(inside.mean())


def test_words_of_a_sparse_view_are_told_by_the_share_of_documents():
    rng = np.random.default_rng(0)
    X = (rng.random((60, 30)) < 0.1).astype(float)
    X[:30, 4] = (np.arange(30) % 10 < 8) * 2.0  # in 80 % of the first half
    X[30:, 4] = 0.0
    result = explain_clusters(
        Labelled(np.repeat([0, 1], 30)), sp.csr_array(X), feature_names=[f"w{j}" for j in range(30)]
    )
    row = result.top(0, 1)[0]
    assert (row.column, row.kind) == ("w4", "counts")
    assert (row.share_inside, row.share_outside) == (0.8, 0.0)
    assert row.log_odds == pytest.approx(np.log((24.5 / 6.5) / (0.5 / 30.5)))
    assert row.text() == "high w4 (80% against 0%)"


def test_a_graph_has_hubs_conductance_and_links():
    # a triangle with a loop at node 0, joined by one edge of weight 2 to a path of three nodes
    A = np.zeros((6, 6))
    for i, j, weight in [(0, 1, 1), (0, 2, 1), (1, 2, 1), (2, 3, 2), (3, 4, 1), (4, 5, 1)]:
        A[i, j] = A[j, i] = weight
    A[0, 0] = 1.0
    result = explain_graph(sp.csr_array(A), np.array([0, 0, 0, 1, 1, 1]), 3)
    assert result.links.tolist() == [[4, 2, 0], [2, 2, 0], [0, 0, 0]]
    assert result.conductance[:2].tolist() == pytest.approx([2 / 6, 2 / 6])  # degrees 3 + 2 + 4 and 3 + 2 + 1
    assert np.isnan(result.conductance[2])
    assert result.hubs[0].tolist() == [0, 1, 2]
    assert result.hubs[1].tolist() == [4, 3, 5]
    assert result.hub_degrees[0].tolist() == [3, 2, 2]
    np.fill_diagonal(A, 0.0)
    whole = explain_clusters(GraphCut(2, random_state=0).fit(A), A)
    assert whole.graph is not None
    assert whole.rows == ()
    assert "hubs" in whole.summary()
    assert f"; most edges to cluster {1 - whole.samples.labels[0]} (weight 1)" in whole.summary()  # between 3 and 4


def test_a_kernel_has_typical_samples_and_no_columns():
    Z = StandardScaler().fit_transform(WINE.data)
    K = Z @ Z.T
    ids = [f"w{i}" for i in range(len(K))]
    result = explain_clusters(KernelKMeans(3, kernel="precomputed", random_state=0).fit(K), K, ids=ids)
    assert result.rows == ()
    assert result.views == ()
    assert all(len(each) == 5 for each in result.typical)
    assert "  typical: w" in result.summary()
    assert CAUTION not in result.summary()
