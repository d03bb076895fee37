"""Silhouettes and reports of clusterings whose views lack samples: every view is judged by the samples that it has."""

import re

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.metrics import silhouette_samples

from kernelweave import GraphFusionClustering
from kernelweave.evaluation.describe import describe
from kernelweave.evaluation.describe.distances import averaged, scaled
from kernelweave.model_selection import score_clustering
from kernelweave.report import ReportFacts, write_report

NAN = np.nan


@pytest.fixture(scope="module")
def fitted():
    """Return a model of two views that lack samples and cells, and the views."""
    rng = np.random.default_rng(0)
    group = np.repeat([0.0, 7.0, 14.0], 20)
    views = {"a": rng.normal(size=(60, 3)) + group[:, None], "b": rng.normal(size=(60, 2)) - group[:, None]}
    views["a"][::10] = NAN
    views["b"][5::10] = NAN
    views["a"][[1, 31], [0, 2]] = NAN
    return GraphFusionClustering(3, missing="median", random_state=0).fit(views), views


def test_the_silhouette_is_the_mean_over_views_of_that_of_their_samples(fitted):
    model, views = fitted
    values = np.full((60, 2), NAN)
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


def test_distances_are_averaged_over_the_views_that_have_both_samples():
    one = np.array([[0.0, 2.0, NAN], [2.0, 0.0, NAN], [NAN, NAN, NAN]])
    two = np.array([[0.0, 4.0, 3.0], [4.0, 0.0, NAN], [3.0, NAN, 0.0]])
    unknown = (3.0 + 3.0 + 3.0 + 3.0) / 4  # the mean of the known pairs
    np.testing.assert_allclose(averaged([one, two]), [[0.0, 3.0, 3.0], [3.0, 0.0, unknown], [3.0, unknown, 0.0]])


def test_scaled_distances_have_a_mean_of_one_over_the_known_pairs():
    squares = np.array([[0.0, 2.0, NAN], [2.0, 0.0, 6.0], [NAN, 6.0, 0.0]])
    np.testing.assert_allclose(scaled(squares)[[0, 1], [1, 2]], [0.5, 1.5])
