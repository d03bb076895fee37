"""Objective paths, silhouettes, confusion tables and embeddings as pictures."""

import numpy as np
import pytest
from sklearn.decomposition import PCA, KernelPCA
from sklearn.metrics import pairwise_distances, silhouette_samples
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    ConvexMixture,
    GraphCut,
    GraphFusionClustering,
    KernelKMeans,
    KMedoids,
    MinMaxKMeans,
    MultiViewKernelKMeans,
    MultiViewKernelSpectralClustering,
    ParameterError,
)
from kernelweave.metrics import clustering_accuracy
from kernelweave.model_selection import score_clustering
from kernelweave.plots import ConfusionDisplay, EmbeddingDisplay, ObjectivePathDisplay, SilhouetteDisplay
from tests.estimators.discovery import blobs

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

X, Y = blobs(15, spread=3.0)
VIEWS = {"front": X[:, :2], "back": X[:, 2:]}
MODEL = KernelKMeans(3, kernel="linear", random_state=0).fit(X)
MULTI = MultiViewKernelKMeans(3, kernel="linear", random_state=0).fit(VIEWS)


def axes():
    return Figure().subplots()


# The objective


def test_the_path_is_that_of_the_estimator():
    display = ObjectivePathDisplay.from_estimator(MULTI, ax=axes())
    np.testing.assert_array_equal(display.line_.get_ydata(), MULTI.objective_path_)
    assert display.line_.get_xdata()[-1] == MULTI.n_iter_
    assert "converged after" in display.ax_.get_title()
    pipeline = make_pipeline(StandardScaler(), KernelKMeans(3, random_state=0)).fit(X)
    np.testing.assert_array_equal(
        ObjectivePathDisplay.from_estimator(pipeline, ax=axes()).line_.get_ydata(), pipeline[-1].objective_path_
    )


def test_a_run_that_was_cut_off_says_so():
    stopped = ObjectivePathDisplay([3.0, 2.0], converged=False).plot(axes())
    assert stopped.ax_.get_title() == "stopped by max_iter after 2 iterations"
    assert ObjectivePathDisplay([3.0]).plot(axes()).ax_.get_title() == ""


def test_an_estimator_must_be_fitted():
    for display, more in ((ObjectivePathDisplay, ()), (SilhouetteDisplay, (X,)), (EmbeddingDisplay, (X,))):
        with pytest.raises(ParameterError, match=r"KernelKMeans\(\.\.\.\) has no .*Fit it first"):
            display.from_estimator(KernelKMeans(3), *more)
    with pytest.raises(ParameterError, match="has no labels_"):
        ConfusionDisplay.from_estimator(KernelKMeans(3), Y)


# Silhouettes


def test_silhouettes_are_those_of_scikit_learn_in_falling_order():
    display = SilhouetteDisplay.from_estimator(MODEL, X, ax=axes())
    np.testing.assert_allclose(display.silhouettes, silhouette_samples(X, MODEL.labels_), atol=1e-12)
    assert len(display.bars_) == 3
    assert display.line_.get_xdata()[0] == pytest.approx(display.silhouettes.mean())
    vertices = display.bars_[0].get_paths()[0].vertices
    assert vertices[:, 0].max() == pytest.approx(display.silhouettes[MODEL.labels_ == 0].max())


def test_several_views_give_the_mean_over_the_views():
    display = SilhouetteDisplay.from_estimator(MULTI, VIEWS, ax=axes())
    each = [silhouette_samples(view, MULTI.labels_) for view in VIEWS.values()]
    np.testing.assert_allclose(display.silhouettes, np.mean(each, axis=0), atol=1e-12)


def test_few_samples_are_drawn_where_that_is_asked_and_one_cluster_has_none():
    display = SilhouetteDisplay.from_estimator(MODEL, X, sample_size=20, ax=axes())
    assert len(display.silhouettes) == 20
    one = KernelKMeans(1).fit(X)
    assert SilhouetteDisplay.from_estimator(one, X, ax=axes()).silhouettes.tolist() == [0.0] * len(X)


def test_known_silhouettes_are_drawn_and_bad_ones_refused():
    display = SilhouetteDisplay.from_predictions([0.5, -0.2, 0.9], ["b", "a", "b"], ax=axes())
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["a (1)", "b (2)"]
    with pytest.raises(ParameterError, match="do not match"):
        SilhouetteDisplay.from_predictions([0.5], [0, 1])
    with pytest.raises(ParameterError, match="from -1 to 1"):
        SilhouetteDisplay.from_predictions([0.5, 2.0], [0, 1])


def test_graphs_have_no_silhouettes():
    A = (rbf_kernel(X, gamma=0.01) > 0.3).astype(float)
    np.fill_diagonal(A, 0.0)
    with pytest.raises(ParameterError, match=r"GraphCut\(\.\.\.\) takes a graph.*no distances.*write_report") as caught:
        SilhouetteDisplay.from_estimator(GraphCut(3).fit(A), A)
    assert "criterion" not in str(caught.value)


@pytest.mark.parametrize("squared", [False, True], ids=["distances", "divergences"])
def test_given_distances_and_divergences_have_the_silhouettes_of_scikit_learn(squared):
    D = pairwise_distances(X)
    data = D**2 if squared else D
    model = ConvexMixture(3, divergence="precomputed") if squared else KMedoids(3, metric="precomputed")
    model.fit(data)
    known = silhouette_samples(D, model.labels_, metric="precomputed")
    result = SilhouetteDisplay.from_estimator(model, data, ax=axes())
    np.testing.assert_allclose(np.sort(result.silhouettes), np.sort(known), atol=1e-9)
    assert score_clustering(model, data) == pytest.approx(known.mean())


# Classes


def test_columns_follow_the_best_match_of_clusters_and_classes():
    labels = (MODEL.labels_ + 1) % 3
    display = ConfusionDisplay.from_predictions(Y, labels, ax=axes())
    assert display.counts.sum() == len(Y)
    assert np.trace(display.counts) / len(Y) == pytest.approx(clustering_accuracy(Y, labels))
    assert [int(text.get_text()) for text in display.texts_] == display.counts.ravel().tolist()
    for i, c in enumerate(display.clusters):
        np.testing.assert_array_equal(display.counts[:, i], np.bincount(Y[labels == c], minlength=3))
    same = ConfusionDisplay.from_estimator(MODEL, Y, ax=axes())
    assert np.trace(same.counts) == np.trace(display.counts)


def test_tables_need_not_be_square_and_large_ones_have_no_numbers():
    wide = ConfusionDisplay.from_predictions(["a", "a", "b", "b"], [0, 1, 2, 2], ax=axes())
    assert wide.counts.shape == (2, 3)
    tall = ConfusionDisplay.from_predictions([0, 1, 2, 2], ["a", "a", "b", "b"], ax=axes())
    assert tall.counts.tolist() in ([[1, 0], [1, 0], [0, 2]], [[0, 1], [0, 1], [2, 0]])
    many = ConfusionDisplay.from_predictions(np.arange(50), np.arange(50), ax=axes())
    assert many.texts_ == []
    with pytest.raises(ParameterError, match="3 entries and labels_pred 2"):
        ConfusionDisplay.from_predictions([0, 1, 1], [0, 1])


# Embeddings


def up_to_sign(result, expected):
    for ours, theirs in zip(result.T, expected.T, strict=True):
        scale = np.abs(theirs).max()
        assert min(np.abs(ours - theirs).max(), np.abs(ours + theirs).max()) < 1e-6 * scale


def test_points_are_kernel_principal_components():
    up_to_sign(EmbeddingDisplay.from_estimator(MODEL, X, ax=axes()).points, PCA(2).fit_transform(X))
    K = rbf_kernel(X, gamma=0.02)
    display = EmbeddingDisplay.from_predictions(K, MODEL.labels_, ax=axes())
    up_to_sign(display.points, KernelPCA(2, kernel="precomputed").fit_transform(K))
    assert 0 < display.shares[1] <= display.shares[0] <= 1
    assert display.ax_.get_xlabel() == "kernel principal component 1"


def test_every_cluster_has_its_points_and_the_plane_its_regions_where_they_are_asked_for():
    display = EmbeddingDisplay.from_estimator(MODEL, X, regions=True, ax=axes())
    assert [len(each.get_offsets()) for each in display.scatters_] == np.bincount(MODEL.labels_).tolist()
    assert display.regions_ is not None
    assert EmbeddingDisplay.from_estimator(MODEL, X, ax=axes()).regions_ is None
    assert EmbeddingDisplay.from_predictions(X @ X.T, MODEL.labels_, ax=axes()).regions_ is None
    assert EmbeddingDisplay.from_estimator(KernelKMeans(1).fit(X), X, regions=True, ax=axes()).regions_ is None


@pytest.mark.filterwarnings("ignore:The kernel is not positive")
def test_shares_of_the_variance_are_written_for_principal_components_of_the_data_alone():
    D = pairwise_distances(X)
    cases = [
        (MODEL, X, "principal component 1, "),
        (MULTI, VIEWS, "principal component 1, "),
        (MinMaxKMeans(3, random_state=0).fit(X), X, "principal component 1, "),
        (KernelKMeans(3, random_state=0).fit(X), X, "kernel principal component 1"),
        (KernelKMeans(3, kernel="precomputed", random_state=0).fit(X @ X.T), X @ X.T, "kernel principal component 1"),
        (KMedoids(3, metric="precomputed").fit(D), D, "coordinate 1"),
        (GraphFusionClustering(3, random_state=0).fit(X), X, "principal component 1, "),
        (KernelKMeans(3, kernel="nearest_neighbors", random_state=0).fit(X), X, "spectral component 1"),
        (MultiViewKernelKMeans(3, kernel=["linear", "rbf"], random_state=0).fit(VIEWS), VIEWS, "kernel principal"),
    ]
    for model, data, words in cases:
        label = EmbeddingDisplay.from_estimator(model, data, ax=axes()).ax_.get_xlabel()
        assert label.startswith(words)
        assert label.endswith("% of the variance") == words.endswith(", ")


@pytest.mark.parametrize(
    "model", [MULTI, make_pipeline(StandardScaler(), KernelKMeans(3, random_state=0)), MinMaxKMeans(3)]
)
def test_views_pipelines_and_vector_methods_have_embeddings(model):
    data = VIEWS if model is MULTI else X
    model = model if model is MULTI else model.fit(X)
    points = EmbeddingDisplay.from_estimator(model, data, max_samples=20, ax=axes()).points
    assert points.shape == (20, 2)
    assert np.ptp(points[:, 0]) > 0


@pytest.mark.parametrize("squared", [False, True], ids=["distances", "divergences"])
def test_distances_and_divergences_are_drawn_where_their_samples_lie(squared):
    D = pairwise_distances(X)
    data = D**2 if squared else D
    model = ConvexMixture(3, divergence="precomputed") if squared else KMedoids(3, metric="precomputed")
    display = EmbeddingDisplay.from_estimator(model.fit(data), data, ax=axes())
    up_to_sign(display.points, PCA(2).fit_transform(X))
    np.testing.assert_allclose(display.shares, PCA(2).fit(X).explained_variance_ratio_, atol=1e-9)


def test_a_graph_is_drawn_by_two_eigenvectors_of_its_random_walk():
    A = rbf_kernel(X, gamma=0.05)
    np.fill_diagonal(A, 0.0)
    display = EmbeddingDisplay.from_estimator(GraphCut(3).fit(A), A, ax=axes())
    walk = A / A.sum(axis=1, keepdims=True)
    images = walk @ display.points
    values = (images * display.points).sum(axis=0) / (display.points**2).sum(axis=0)
    np.testing.assert_allclose(images, display.points * values, atol=1e-6)
    assert display.shares is None
    assert display.ax_.get_xlabel() == "spectral component 1"


def test_models_without_a_kernel_for_new_samples_are_drawn_by_their_kernels():
    model = MultiViewKernelSpectralClustering(3, kernel_params={"gamma": 0.02}, views=[[0, 1], [2, 3]]).fit(X)
    kernels = [rbf_kernel(view, gamma=0.02) for view in VIEWS.values()]
    together = sum(K / (np.trace(K) / len(K) - K.mean()) for K in kernels)
    display = EmbeddingDisplay.from_estimator(model, X, ax=axes())
    expected = KernelPCA(2, kernel="precomputed").fit_transform(together)
    scale = np.abs(display.points).max() / np.abs(expected).max()
    up_to_sign(display.points, scale * expected)


def test_bad_arguments_are_refused():
    with pytest.raises(ParameterError, match="max_samples=1"):
        EmbeddingDisplay.from_estimator(MODEL, X, max_samples=1)
    with pytest.raises(ParameterError, match="do not match"):
        EmbeddingDisplay.from_predictions(np.eye(3), [0, 1])
    with pytest.raises(ParameterError, match="not finite"):
        EmbeddingDisplay.from_predictions(np.full((2, 2), np.nan), [0, 1])


def test_without_axes_a_figure_is_made():
    from matplotlib import pyplot

    before = pyplot.get_backend()
    pyplot.switch_backend("Agg")
    try:
        for display in (
            ObjectivePathDisplay.from_estimator(MODEL),
            SilhouetteDisplay.from_estimator(MODEL, X),
            ConfusionDisplay.from_estimator(MODEL, Y),
            EmbeddingDisplay.from_estimator(MODEL, X),
        ):
            assert display.figure_ is display.ax_.figure
            display.figure_.canvas.draw()
    finally:
        pyplot.close("all")
        pyplot.switch_backend(before)
