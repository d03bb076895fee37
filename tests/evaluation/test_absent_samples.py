"""Reports, scores and pictures of clusters whose views lack samples."""

import re

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.metrics import silhouette_samples

from kernelweave import GraphFusionClustering
from kernelweave.evaluation.describe import describe
from kernelweave.evaluation.describe.distances import distances_as_given, mean_of_views, scaled
from kernelweave.evaluation.describe.views import given_views
from kernelweave.model_selection import score_clustering
from kernelweave.plots import EmbeddingDisplay, SilhouetteDisplay
from kernelweave.report import ReportFacts, write_report

N = 90
GROUPS = np.arange(N) % 3
RNG = np.random.default_rng(0)
OBSERVED = RNG.random((N, 2)) > 0.25
OBSERVED[~OBSERVED.any(axis=1), 0] = True
WHOLE = [6.0 * np.eye(d)[GROUPS] + RNG.standard_normal((N, d)) for d in (3, 5)]
VIEWS = {name: np.where(OBSERVED[:, [v]], WHOLE[v], np.nan) for v, name in enumerate(("left", "right"))}
MODEL = GraphFusionClustering(3, check_views=False, random_state=0).fit(VIEWS)


def test_distances_are_those_of_present_samples_and_nan_for_others():
    (left, _) = given_views(MODEL, VIEWS)
    rows = np.arange(0, N, 3)
    D = distances_as_given(left, rows)
    there = OBSERVED[rows, 0]
    X = WHOLE[0][rows]
    plain = np.linalg.norm(X[:, None] - X, axis=2)
    np.testing.assert_allclose(D[np.ix_(there, there)], plain[np.ix_(there, there)], atol=1e-9)
    assert np.isnan(D[~there]).all()
    assert np.isnan(D[:, ~there]).all()


def test_views_are_averaged_over_those_that_have_both_samples():
    nan = np.nan
    first = np.array([[0.0, 2.0, nan], [2.0, 0.0, nan], [nan, nan, nan]])
    second = np.array([[nan, nan, nan], [nan, 0.0, 4.0], [nan, 4.0, 0.0]])
    together = mean_of_views([first, second])
    np.testing.assert_allclose(together, [[0.0, 2.0, 3.0], [2.0, 0.0, 4.0], [3.0, 4.0, 0.0]])
    whole = [np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0, 3.0], [3.0, 0.0]])]
    np.testing.assert_allclose(mean_of_views(whole), [[0.0, 2.0], [2.0, 0.0]])


def test_scaled_distances_have_mean_one_over_the_pairs_that_are_known():
    squares = np.array([[0.0, 2.0, np.nan], [2.0, 0.0, np.nan], [np.nan, np.nan, np.nan]])
    np.testing.assert_allclose(scaled(squares)[:2, :2], [[0.0, 1.0], [1.0, 0.0]])


def test_the_silhouette_is_the_mean_over_views_of_the_samples_they_have():
    means = []
    for v, X in enumerate(WHOLE):
        there = OBSERVED[:, v]
        means.append(silhouette_samples(X[there], MODEL.labels_[there]).mean())
    assert score_clustering(MODEL, VIEWS) == pytest.approx(np.mean(means))


def test_a_report_and_pictures_are_made(tmp_path):
    path = tmp_path / "report.html"
    write_report(path, MODEL, VIEWS)
    text = path.read_text()
    assert "NaN" not in text.split("<script", 1)[0]
    assert np.isfinite(EmbeddingDisplay.from_estimator(MODEL, VIEWS).points).all()
    assert SilhouetteDisplay.from_estimator(MODEL, VIEWS) is not None


def test_filled_cells_are_measured_as_the_model_filled_them():
    holed = {name: X.copy() for name, X in VIEWS.items()}
    row = int(np.flatnonzero(OBSERVED[:, 0])[0])
    holed["left"][row, 1] = np.nan
    model = GraphFusionClustering(3, check_views=False, random_state=0, missing="mean").fit(holed)
    (left, _) = given_views(model, holed)
    there = OBSERVED[:, 0] & (np.arange(N) != row)
    assert left.block[row, 1] == pytest.approx(WHOLE[0][there, 1].mean())


@pytest.fixture(scope="module")
def fitted():
    """Return a model of two views that lack samples and cells, and the views."""
    rng = np.random.default_rng(0)
    group = np.repeat([0.0, 7.0, 14.0], 20)
    views = {"a": rng.normal(size=(60, 3)) + group[:, None], "b": rng.normal(size=(60, 2)) - group[:, None]}
    views["a"][::10] = np.nan
    views["b"][5::10] = np.nan
    views["a"][[1, 31], [0, 2]] = np.nan
    return GraphFusionClustering(3, missing="median", random_state=0).fit(views), views


def test_the_silhouette_is_the_mean_over_views_of_that_of_their_samples(fitted):
    model, views = fitted
    values = np.full((60, 2), np.nan)
    for v, block in enumerate(views.values()):
        there = ~np.isnan(block).all(axis=1)
        filled = SimpleImputer(strategy="median").fit_transform(block[there])
        values[there, v] = silhouette_samples(filled, model.labels_[there])
    description = describe(model, views)
    assert description.silhouette == pytest.approx(np.nanmean(values, axis=0).mean(), abs=1e-10)
    np.testing.assert_allclose(description.silhouettes.values, np.nanmean(values, axis=1), atol=1e-10)
    assert score_clustering(model, views) == pytest.approx(description.silhouette)


def test_the_report_counts_absent_samples_and_has_numbers_for_all(fitted, tmp_path):
    model, views = fitted
    facts = ReportFacts.from_estimator(model, views)
    assert [view.n_absent for view in facts.views] == [6, 6]
    assert np.isfinite(facts.picture.points).all()
    assert np.isfinite(facts.model_silhouettes.values).all()
    assert len(facts.view_nmi) == 2
    page = write_report(tmp_path / "r.html", model, views).read_text(encoding="utf-8")
    assert "samples that a view lacks" in page
    assert not re.search(r"\bnan\b", page)
