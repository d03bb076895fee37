"""What a fitted model measured: views, distances, kernels and results, asked in one place."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import kernelweave
from kernelweave import (
    ConvexMixture,
    GraphCut,
    KernelError,
    KernelKMeans,
    KernelSpectralClustering,
    KMedoids,
    MinMaxKMeans,
    MultiViewKernelKMeans,
    NgSpectralClustering,
    ParameterError,
    RatioMultipleKernelClustering,
)
from kernelweave.evaluation.describe import describe, final_step, read_clustering, samples_for_final_step
from kernelweave.evaluation.describe.clustering import steps_before
from kernelweave.evaluation.describe.distances import (
    distances_as_given,
    metric_distances,
    scaled,
    squared_distances,
    squares_of_divergences,
    squares_of_kernel,
)
from kernelweave.evaluation.describe.kernels import has_fitted_kernel, kernel_among, training_samples
from kernelweave.evaluation.describe.results import progress_of, sizes_of, warnings_of, weights_of
from kernelweave.evaluation.describe.views import View, given_views, measured_views, takes_graph
from kernelweave.evaluation.sampling import LEAST_OF_A_CLUSTER, draw, judged_samples, shown_samples
from kernelweave.foundation.random_streams import streams
from tests.estimators.discovery import blobs

X, Y = blobs(spread=3.0)
VIEWS = {"left": X[:, :2], "right": X[:, 2:]}
ALL = np.arange(len(X))


# --- the estimator that clusters --------------------------------------------------------------------------------------


def test_the_final_step_is_found_through_pipelines_and_searches():
    model = KMeans(3, n_init=1)
    inner = make_pipeline(MinMaxScaler(), model)
    whole = make_pipeline(StandardScaler(), "passthrough", SimpleNamespace(fit=None, best_estimator_=inner))
    assert final_step(model) is model
    assert final_step(SimpleNamespace(best_estimator_=whole)) is model
    assert [type(step).__name__ for step in steps_before(whole)] == ["StandardScaler", "str", "MinMaxScaler"]
    assert steps_before(model) == ()


def test_samples_reach_the_final_step_through_all_fitted_steps():
    inner = make_pipeline(MinMaxScaler(), KMeans(3, n_init=1)).fit(StandardScaler().fit_transform(X))
    whole = make_pipeline(StandardScaler(), None, inner)
    whole.steps[0][1].fit(X)
    expected = MinMaxScaler().fit_transform(StandardScaler().fit_transform(X))
    np.testing.assert_allclose(samples_for_final_step(whole, X), expected)
    assert samples_for_final_step(whole, None) is None
    assert samples_for_final_step(inner[-1], X) is X


def test_what_is_not_fitted_or_no_clusterer_or_of_other_samples_is_refused():
    with pytest.raises(ParameterError, match="has no labels_"):
        read_clustering(StandardScaler().fit(X), X)
    with pytest.raises(ParameterError, match="X has 10 samples, but the model was fitted on 60"):
        read_clustering(KernelKMeans(3, random_state=0).fit(X), X[:10])


def test_clusters_that_stayed_empty_are_counted():
    model = KernelKMeans(3, random_state=0).fit(X)
    model.labels_ = np.minimum(model.labels_, 1)
    description = describe(model, X)
    assert description.clustering.n_clusters == 3
    assert description.sizes.tolist() == [*np.bincount(model.labels_).tolist(), 0]


# --- views ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (KernelKMeans(), "features"),
        (KernelKMeans(kernel="precomputed"), "kernel"),
        (KernelKMeans(kernel=rbf_kernel), "features"),
        (MinMaxKMeans(), "features"),
        (KMedoids(), "features"),
        (KMedoids(metric="precomputed"), "distances"),
        (ConvexMixture(divergence="precomputed", kernel="precomputed"), "divergences"),
        (ConvexMixture(divergence="kernel", kernel="precomputed"), "kernel"),
        (ConvexMixture(divergence="sqeuclidean", kernel="precomputed"), "features"),
        (RatioMultipleKernelClustering(kernel=["linear", "rbf"]), "features"),
        (RatioMultipleKernelClustering(kernel=["precomputed"]), "kernel"),
        (GraphCut(), "graph"),
        (KMeans(), "features"),
        (AgglomerativeClustering(metric="precomputed", linkage="average"), "distances"),
        (DBSCAN(metric="precomputed"), "distances"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_a_view_holds_follows_from_the_parameters_before_and_after_a_fit(model, kind):
    square = rbf_kernel(X)
    views = given_views(model, square)
    assert [view.kind for view in views] == [kind]
    assert takes_graph(model) == (kind == "graph")


def test_views_are_in_the_order_of_the_fit_unless_they_have_other_names():
    model = MultiViewKernelKMeans(3, random_state=0).fit(VIEWS)
    backwards = dict(reversed(VIEWS.items()))
    assert [view.name for view in given_views(model, backwards)] == ["left", "right"]
    assert [view.name for view in given_views(model, list(VIEWS.values()))] == ["view_0", "view_1"]
    assert [view.name for view in given_views(MultiViewKernelKMeans(3), backwards)] == ["right", "left"]


def test_views_may_differ_in_what_they_hold_and_how_they_are_compared():
    data = {"left": X[:, :2], "right": rbf_kernel(X[:, 2:], gamma=0.02)}
    model = MultiViewKernelKMeans(3, kernel={"left": "rbf", "right": "precomputed"}, random_state=0).fit(data)
    left, right = measured_views(model, data)
    assert (left.kind, left.compared_by, left.measured_as_given) == ("features", "kernel", False)
    assert (right.kind, right.compared_by, right.measured_as_given) == ("kernel", "kernel", True)


@pytest.mark.parametrize(
    ("model", "compared_by", "as_given"),
    [
        (KernelKMeans(2, kernel="linear"), "kernel", True),
        (KernelKMeans(2, kernel="rbf"), "kernel", False),
        (KernelKMeans(2, kernel="cosine"), "kernel", False),
        (MinMaxKMeans(2), "features", True),
        (KMedoids(2), "metric", True),
        (KMedoids(2, metric="manhattan"), "metric", False),
        (NgSpectralClustering(2, kernel="nearest_neighbors"), "features", True),
        (
            NgSpectralClustering(2, kernel="nearest_neighbors", kernel_params={"metric": "cosine"}),
            "metric",
            False,
        ),
        (RatioMultipleKernelClustering(kernel=["linear", "rbf"]), "kernel", False),
        (RatioMultipleKernelClustering(kernel=["linear"]), "kernel", True),
    ],
    ids=lambda value: str(value) if isinstance(value, str | bool) else type(value).__name__,
)
def test_a_model_measures_samples_as_given_or_by_its_kernel_or_metric(model, compared_by, as_given):
    model.set_params(**({"random_state": 0} if "random_state" in model.get_params() else {}))
    (view,) = measured_views(model.fit(X), X)
    assert (view.compared_by, view.measured_as_given) == (compared_by, as_given)
    assert describe(model, X).one_geometry == as_given
    if as_given:
        np.testing.assert_allclose(squared_distances(view, ALL), distances_as_given(view, ALL) ** 2, atol=1e-8)


# --- distances --------------------------------------------------------------------------------------------------------


def test_distances_as_given_are_those_worked_out_by_hand():
    line = np.array([[0.0], [1.0], [3.0]])
    D = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
    rows = np.arange(3)
    np.testing.assert_allclose(distances_as_given(View("X", line, "features"), rows), D)
    np.testing.assert_allclose(distances_as_given(View("X", sp.csr_array(line), "features"), rows), D)
    np.testing.assert_allclose(distances_as_given(View("X", line @ line.T, "kernel"), rows), D)
    np.testing.assert_allclose(distances_as_given(View("X", sp.csr_array(line @ line.T), "kernel"), rows), D)
    np.testing.assert_allclose(distances_as_given(View("X", D, "distances"), rows), D)
    np.testing.assert_allclose(distances_as_given(View("X", D**2, "divergences"), rows), D)
    some = np.array([2, 0])
    np.testing.assert_allclose(distances_as_given(View("X", D, "distances"), some), D[np.ix_(some, some)])


def test_divergences_are_averaged_over_both_directions_and_infinite_ones_count_as_the_largest():
    D = np.array([[0.0, 2.0, np.inf], [4.0, 0.0, 6.0], [1.0, 6.0, 0.0]])
    np.testing.assert_allclose(squares_of_divergences(D), [[0, 3, 3.5], [3, 0, 6], [3.5, 6, 0]])
    none = np.full((2, 2), np.inf)
    np.testing.assert_allclose(squares_of_divergences(none), 0)


def test_distances_of_an_indefinite_kernel_are_not_negative():
    K = np.array([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(squares_of_kernel(K), 0)


@pytest.mark.parametrize("metric", ["euclidean", "l2", "manhattan", "cosine", "jaccard", "chebyshev"])
def test_metrics_are_those_of_scikit_learn_and_raise_no_warning(metric):
    data = np.abs(X) * (np.abs(X) > 1.0)
    known = pairwise_distances(data != 0 if metric == "jaccard" else data, metric=metric)
    np.testing.assert_allclose(metric_distances(data, metric), known, atol=1e-7)
    np.testing.assert_allclose(
        metric_distances(data, "minkowski", {"p": 3}), pairwise_distances(data, metric="minkowski", p=3), atol=1e-7
    )
    with pytest.raises(ParameterError, match="metric='nonsense' cannot be used"):
        metric_distances(data, "nonsense")


def test_samples_far_from_the_origin_keep_the_distances_between_them():
    far = X / 1000.0 + 1e6
    exact = pairwise_distances(far - far.mean(axis=0))
    np.testing.assert_allclose(metric_distances(far, "euclidean"), exact, rtol=1e-6, atol=1e-9)
    equal = np.full((5, 3), 0.1)
    np.testing.assert_array_equal(metric_distances(equal, "euclidean"), 0.0)


def test_measuring_leaves_the_samples_as_they_were():
    before = X.copy()
    view = View("X", X, "features")
    distances_as_given(view, ALL)
    squared_distances(view, ALL)
    metric_distances(X, "euclidean")
    np.testing.assert_array_equal(X, before)


def test_squares_are_scaled_to_a_mean_of_one_over_pairs():
    squares = scaled(pairwise_distances(X, metric="sqeuclidean"))
    assert squares.sum() / (len(X) * (len(X) - 1)) == pytest.approx(1.0)
    np.testing.assert_array_equal(scaled(np.zeros((3, 3))), 0.0)


def test_a_matrix_between_other_samples_is_refused():
    with pytest.raises(KernelError, match=r"shape \(60, 4\).*Pass a square one"):
        distances_as_given(View("X", X, "kernel"), ALL)


def test_kernels_of_many_samples_are_fitted_on_those_that_are_compared(monkeypatch):
    model = KernelKMeans(3, kernel_params={"gamma": 0.02}, random_state=0).fit(X)
    (view,) = measured_views(model, X)
    rows = np.array([3, 10, 40, 55])
    whole = squared_distances(view, rows)
    monkeypatch.setattr("kernelweave.evaluation.describe.distances.MOST_FITTED", 10)
    np.testing.assert_allclose(squared_distances(view, rows), whole, atol=1e-12)


# --- kernels ----------------------------------------------------------------------------------------------------------


def test_kernel_values_are_those_of_the_fit():
    model = KernelKMeans(3, kernel_params={"gamma": 0.02}, random_state=0).fit(X)
    rows = np.array([4, 20, 33])
    np.testing.assert_allclose(kernel_among(model, X, rows), rbf_kernel(X[rows], gamma=0.02))
    assert not has_fitted_kernel(KernelKMeans(3))
    assert not has_fitted_kernel(MinMaxKMeans(3, random_state=0).fit(X))


def test_models_trained_on_some_samples_know_the_kernel_of_those():
    model = KernelSpectralClustering(2, kernel_params={"sigma": 3.0}, n_train_samples=30, random_state=0).fit(X)
    trained = training_samples(model)
    assert len(trained) == 30
    positions = np.array([0, 7, 29])
    expected = rbf_kernel(X[trained[positions]], gamma=1 / 18)
    np.testing.assert_allclose(kernel_among(model, X, positions), expected)


# --- results ----------------------------------------------------------------------------------------------------------


def test_weights_have_the_names_of_what_they_weigh():
    model = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(VIEWS)
    views, shares = weights_of(model)
    assert views.attribute == "view_weights_"
    assert views.items == tuple(zip(["left", "right"], model.view_weights_.tolist(), strict=True))
    assert shares.title == "Shares of the kernels in the sum"
    assert weights_of(KernelKMeans(2, random_state=0).fit(X)) == []
    assert weights_of(SimpleNamespace(kernel_weights_=[0.25, 0.75]))[0].items == (("0", 0.25), ("1", 0.75))


def test_progress_says_none_of_what_a_model_does_not_say():
    model = KernelKMeans(3, random_state=0).fit(X)
    progress = progress_of(model)
    assert (progress.objective, progress.n_iter, progress.converged) == (model.objective_, model.n_iter_, True)
    assert progress.path_of == "steps"
    nothing = progress_of(SimpleNamespace())
    assert nothing.objective is nothing.objective_path is nothing.n_iter is nothing.converged is None
    assert sizes_of(SimpleNamespace(labels_=[0, 0, 2])).tolist() == [2, 0, 1]
    assert warnings_of(SimpleNamespace(warnings_=[UserWarning("look out")])) == ("look out",)


def test_a_description_holds_what_the_model_says():
    model = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(VIEWS)
    description = describe(model, VIEWS)
    np.testing.assert_array_equal(description.clustering.labels, model.labels_)
    assert description.progress.objective == model.objective_
    assert [weights.attribute for weights in description.weights] == ["view_weights_", "kernel_coefficients_"]
    assert description.warnings == model.warnings_
    assert not description.one_geometry


# --- samples that are drawn -------------------------------------------------------------------------------------------


def test_judged_samples_depend_on_the_seed_and_its_purpose_alone():
    rows = judged_samples(100, 30, 7)
    expected = np.sort(streams(7, 1, "judged samples")[0].choice(100, 30, replace=False))
    np.testing.assert_array_equal(rows, expected)
    assert rows.tolist() != draw(100, 30, 7, "displayed samples").tolist()
    for count in (None, 100, 101):
        np.testing.assert_array_equal(judged_samples(100, count, 7), np.arange(100))


@pytest.mark.parametrize("seed", range(5))
def test_some_of_every_cluster_are_shown_as_far_as_there_is_room(seed):
    labels = np.repeat([0, 1, 2], [970, 25, 5])
    judged = judged_samples(1000, 100, seed)
    rows, drawn = shown_samples(labels, judged, 150, seed)
    assert set(judged) <= set(rows) <= set(drawn)
    assert len(drawn) == len(set(drawn)) == 150
    counts = np.bincount(labels[rows], minlength=3)
    assert counts[0] == np.bincount(labels[judged])[0]
    assert counts[1:].tolist() == [LEAST_OF_A_CLUSTER, 5]
    assert (np.diff(rows) > 0).all()
    assert (np.diff(drawn) > 0).all()
    same = shown_samples(labels, judged, 150, seed)
    np.testing.assert_array_equal(same[1], drawn)


def test_all_are_shown_where_there_are_few_and_no_more_than_there_is_room():
    labels = np.repeat([0, 1], [30, 30])
    rows, drawn = shown_samples(labels, np.arange(60), 3000, 0)
    np.testing.assert_array_equal(rows, np.arange(60))
    np.testing.assert_array_equal(drawn, np.arange(60))
    many = np.arange(1000)  # as many clusters as samples
    rows, drawn = shown_samples(many, judged_samples(1000, 100, 0), 120, 0)
    assert len(rows) == len(drawn) == 120


# --- one place --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "where"),
    [
        (r"\._cross\(", ("evaluation/describe/", "estimators/")),
        (r"\bbasis_choices\(", ("evaluation/describe/", "estimators/")),
        (r"import .*\bsilhouette_(score|samples)\b", ()),
        (r"import .*\bcoefficients\b", ("partitions/",)),
        (r"isfinite\(D\)", ("evaluation/describe/", "kernels/", "estimators/")),
        (r"os\.replace\(", ("foundation/", "cli/cluster.py")),
    ],
)
def test_one_thing_is_done_in_one_place(code, where):
    package = Path(kernelweave.__file__).parent
    files = {file.relative_to(package).as_posix(): file for file in package.rglob("*.py")}
    result = [name for name, file in files.items() if re.search(code, file.read_text(encoding="utf-8"))]
    assert [name for name in result if not name.startswith(where or "nowhere")] == []
