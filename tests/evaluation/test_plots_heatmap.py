"""The heat map of columns by cluster: which columns, which numbers, which names."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_wine

from kernelweave import KernelKMeans, MultiViewKernelKMeans, ParameterError
from kernelweave.evaluation.plots import cluster_heatmap
from kernelweave.explain import explain_clusters
from kernelweave.plots import ClusterHeatmapDisplay

WINE = load_wine(as_frame=True).data
MODEL = KernelKMeans(3, kernel="linear", random_state=0).fit(WINE)


def test_cells_are_means_of_clusters_in_deviations_of_the_column():
    display = ClusterHeatmapDisplay.from_estimator(MODEL, WINE, n_columns=2, ax=Figure().subplots())
    Z = (WINE - WINE.mean()) / WINE.std(ddof=0)
    for i, column in enumerate(display.columns):
        expected = [Z.loc[MODEL.labels_ == c, column].mean() for c in range(3)]
        np.testing.assert_allclose(display.values[i], expected, atol=1e-12)
    explanation = explain_clusters(MODEL, WINE)
    tops = {row.column for c in range(3) for row in explanation.top(c, 2)}
    assert set(display.columns) == tops
    assert len(display.texts_) == display.values.size
    assert display.texts_[0].get_text() == f"{display.values[0, 0]:.1f}"
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["0", "1", "2"]


def test_columns_stand_in_the_order_of_the_clusters_that_they_set_apart():
    explanation = explain_clusters(MODEL, WINE)
    display = ClusterHeatmapDisplay.from_explanation(explanation, n_columns=1, ax=Figure().subplots())
    first = [explanation.top(c, 1)[0].column for c in range(3)]
    assert display.columns == list(dict.fromkeys(first))
    more = ClusterHeatmapDisplay.from_explanation(explanation, n_columns=4, ax=Figure().subplots())
    owners = {}
    for rank in range(4):
        for c in range(3):
            owners.setdefault(explanation.top(c, 4)[rank].column, c)
    clusters = [owners[column] for column in more.columns]
    assert clusters == sorted(clusters)
    assert list(owners.values()) != sorted(owners.values())  # or the order of ranks would do


def test_views_are_named_where_there_are_several_and_one_can_be_chosen():
    views = {"a": WINE.iloc[:, :6], "b": WINE.iloc[:, 6:]}
    model = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(views)
    display = ClusterHeatmapDisplay.from_estimator(model, views, ax=Figure().subplots())
    assert {name.split(": ")[0] for name in display.columns} == {"a", "b"}
    alone = ClusterHeatmapDisplay.from_estimator(model, views, view="b", ax=Figure().subplots())
    assert set(alone.columns) <= set(WINE.columns[6:])


def test_many_clusters_have_no_more_rows_than_there_is_room_for_and_no_numbers(monkeypatch):
    monkeypatch.setattr(cluster_heatmap, "MOST_ROWS", 7)
    monkeypatch.setattr(cluster_heatmap, "NUMBERED", 20)
    display = ClusterHeatmapDisplay.from_estimator(MODEL, WINE, n_columns=9, ax=Figure().subplots())
    assert display.values.shape == (7, 3)
    assert display.texts_ == []


def test_long_names_lose_their_middle_and_stay_different():
    names = ["short", "a" * 20 + "_1_" + "b" * 20, "a" * 20 + "_2_" + "b" * 20]
    shown = cluster_heatmap.short_names(names)
    assert shown[0] == "short"
    assert shown[1] != shown[2]
    assert cluster_heatmap.short_names(names[:2])[1] == "a" * 14 + "…" + "b" * 13
    assert len(set(cluster_heatmap.short_names(["x" * 90, "x" * 45 + "y" + "x" * 44]))) == 1  # there is no room


def test_without_columns_there_is_no_picture():
    K = WINE.to_numpy() @ WINE.to_numpy().T
    with pytest.raises(ParameterError, match="There is no column to draw"):
        ClusterHeatmapDisplay.from_estimator(KernelKMeans(2, kernel="precomputed").fit(K), K)
    with pytest.raises(ParameterError, match="n_columns=0 must be at least 1"):
        ClusterHeatmapDisplay.from_estimator(MODEL, WINE, n_columns=0)
