"""What a model says of every sample: silhouettes, runners-up, confidence, views that disagree."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_samples
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    ConvexMixture,
    CoRegularizedSpectralClustering,
    GraphCut,
    GraphFusionClustering,
    KernelKMeans,
    KernelSpectralClustering,
    KMedoids,
    MultiViewKernelKMeans,
    MultiViewKernelSpectralClustering,
    ParameterError,
    RatioMultipleKernelClustering,
)
from kernelweave.evaluation.describe import describe, describe_samples, references
from kernelweave.evaluation.describe.samples import joint_coordinates, margin
from tests.estimators.discovery import blobs

X, Y = blobs(20, spread=3.0)
VIEWS = {"left": X[:, :2], "right": X[:, 2:]}


def few_references(monkeypatch, drawn=40):
    """Let few samples count as many, so that references are drawn."""
    monkeypatch.setattr(references, "MOST_JUDGED", 30)
    monkeypatch.setattr(references, "MOST_REFERENCES", drawn)


def margins(distances, labels):
    rows = np.arange(len(labels))
    own = distances[rows, labels]
    rest = distances.copy()
    rest[rows, labels] = np.inf
    return rest.argmin(axis=1), (rest.min(axis=1) - own) / np.maximum(own, rest.min(axis=1))


def test_silhouettes_of_one_table_are_those_of_scikit_learn():
    model = KernelKMeans(3, kernel="linear", random_state=0).fit(X)
    result = describe_samples(model, X)
    np.testing.assert_allclose(result.silhouettes, silhouette_samples(X, model.labels_), atol=1e-9)
    assert result.silhouettes.mean() == pytest.approx(describe(model, X).silhouette)
    assert result.n_references == len(X)
    assert result.disagreeing_views == ("",) * len(X)


@pytest.mark.parametrize("model", [KernelKMeans(3, kernel="linear", random_state=0), KMedoids(3), KMeans(3, n_init=2)])
def test_the_confidence_of_models_with_centres_is_the_margin_of_distances_to_them(model):
    pipeline = make_pipeline(StandardScaler(), model).fit(X)
    result = describe_samples(pipeline, X)
    other, expected = margins(pipeline.transform(X), model.labels_)
    assert result.confidence_is == "margin"
    np.testing.assert_array_equal(result.runners_up, other)
    np.testing.assert_allclose(result.confidences, expected)


def test_margins_are_between_minus_1_and_1_and_negative_where_the_runner_up_is_nearer():
    own = np.array([0.0, 1.0, 2.0, 2.0, 0.0])
    other = np.array([3.0, 2.0, 2.0, 1.0, 0.0])
    assert margin(own, other).tolist() == [1.0, 0.5, 0.0, -0.5, 0.0]


def test_without_centres_the_distances_are_those_to_the_means_in_feature_space():
    features = KernelKMeans(3, kernel="linear", random_state=0).fit(X)
    K = X @ X.T
    given = KernelKMeans(3, kernel="precomputed", init=features.labels_).fit(K)
    result = describe_samples(given, K)
    other, expected = margins(features.transform(X), given.labels_)
    np.testing.assert_array_equal(result.runners_up, other)
    np.testing.assert_allclose(result.confidences, expected, atol=1e-6)


def test_the_confidence_of_mixtures_is_the_probability_of_the_cluster():
    model = ConvexMixture(3).fit(X)
    result = describe_samples(model, X)
    probabilities = model.predict_proba(X)
    rows = np.arange(len(X))
    assert result.confidence_is == "probability"
    np.testing.assert_array_equal(result.confidences, probabilities[rows, model.labels_])
    second = np.argsort(-probabilities, axis=1)
    np.testing.assert_array_equal(
        result.runners_up, np.where(second[:, 0] == model.labels_, second[:, 1], second[:, 0])
    )


def test_the_confidence_of_spectral_methods_is_that_of_their_embedding():
    model = GraphFusionClustering(3, random_state=0).fit(VIEWS)
    U = model.embedding_
    centers = np.array([U[model.labels_ == c].mean(axis=0) for c in range(3)])
    other, expected = margins(np.linalg.norm(U[:, None] - centers, axis=2), model.labels_)
    result = describe_samples(model, VIEWS)
    np.testing.assert_array_equal(result.runners_up, other)
    np.testing.assert_allclose(result.confidences, expected)


def test_the_view_that_disagrees_is_the_one_in_which_a_sample_lies_elsewhere():
    left = np.repeat([0.0, 10.0], 10)[:, None] + np.linspace(0, 1, 20)[:, None]
    right = left.copy()
    third = left.copy()
    right[3] = 9.0  # near the other cluster
    third[3] = 6.5  # a little nearer to the other cluster
    third[12] = 0.5
    views = {"left": left, "right": right, "third": third}
    model = MultiViewKernelKMeans(2, kernel="linear", init=np.repeat([0, 1], 10), p=2)
    result = describe_samples(model.fit(views), views)
    assert np.array_equal(result.labels, np.repeat([0, 1], 10))
    assert result.disagreeing_views[3] == "right"
    assert result.disagreeing_views[12] == "third"
    assert sum(name == "" for name in result.disagreeing_views) == 18


def test_absent_samples_disagree_in_no_view_and_have_the_silhouette_of_the_others():
    views = {name: block.copy() for name, block in VIEWS.items()}
    views["left"][7] = np.nan
    model = GraphFusionClustering(3, random_state=0).fit(views)
    result = describe_samples(model, views)
    assert result.disagreeing_views[7] != "left"
    assert result.silhouettes[7] == pytest.approx(silhouette_samples(VIEWS["right"], model.labels_)[7])


MODELS = {
    "features": (KernelKMeans(3, kernel="linear", random_state=0), X),
    "kernel": (KernelKMeans(3, kernel="rbf", random_state=0), X),
    "matrix": (KernelKMeans(3, kernel="precomputed", random_state=0), X @ X.T),
    "metric": (KMedoids(3, metric="manhattan"), X),
    "distances": (KMedoids(3, metric="precomputed"), np.abs(X[:, None] - X).sum(axis=2)),
    "divergences": (ConvexMixture(3, divergence="precomputed"), ((X[:, None] - X) ** 2).sum(axis=2)),
    "views": (MultiViewKernelKMeans(3, kernel="rbf", random_state=0), VIEWS),
    "basis kernels": (
        RatioMultipleKernelClustering(2, kernel=["linear", "rbf"], random_state=0),
        X[Y < 2],
    ),
    "scores": (MultiViewKernelSpectralClustering(3, random_state=0), VIEWS),
    "one view each": (MultiViewKernelSpectralClustering(3, assignment="per_view", random_state=0), VIEWS),
}


@pytest.mark.filterwarnings("ignore")  # of kernels and runs, which is not the point here
@pytest.mark.parametrize("kind", sorted(MODELS))
def test_with_all_samples_as_references_distances_in_blocks_say_the_same(kind, monkeypatch):
    model, samples = MODELS[kind]
    model = model.fit(samples)
    whole = describe_samples(model, samples)
    few_references(monkeypatch, drawn=len(whole.labels) - 1)
    monkeypatch.setattr(references, "BLOCK_DISTANCES", 500)
    close = describe_samples(model, samples)
    assert close.n_references == len(whole.labels) - 1
    # a single reference fewer of some twenty in its cluster
    np.testing.assert_allclose(close.silhouettes, whole.silhouettes, atol=0.06)
    np.testing.assert_allclose(close.confidences, whole.confidences, atol=0.06)
    assert np.mean(np.array(close.disagreeing_views) == np.array(whole.disagreeing_views)) > 0.9


def test_silhouettes_by_drawn_references_are_the_means_worked_out_plainly(monkeypatch):
    model = KernelKMeans(3, kernel="linear", random_state=0).fit(X)
    few_references(monkeypatch)
    result = describe_samples(model, X)
    chosen = references.reference_samples(model.labels_, 0)
    assert result.n_references == len(chosen) < len(X)
    D = np.linalg.norm(X[:, None] - X[chosen], axis=2)
    for i in range(0, len(X), 7):
        means = []
        for c in range(3):
            members = [j for j, r in enumerate(chosen) if model.labels_[r] == c and r != i]
            means.append(D[i, members].mean())
        own = means.pop(model.labels_[i])
        assert result.silhouettes[i] == pytest.approx((min(means) - own) / max(own, min(means)))


def test_every_cluster_has_references_however_small_it_is(monkeypatch):
    few_references(monkeypatch, drawn=20)
    labels = np.append(np.zeros(500, dtype=int), [1, 1, 2])
    chosen = references.reference_samples(labels, 0)
    assert set(labels[chosen]) == {0, 1, 2}
    assert len(chosen) < 30


def test_one_cluster_has_no_runner_up_and_no_silhouette():
    result = describe_samples(KernelKMeans(1, kernel="linear").fit(X), X)
    assert np.isnan(result.silhouettes).all()
    assert np.isnan(result.confidences).all()
    assert (result.runners_up == -1).all()


def test_a_graph_is_judged_in_its_spectral_embedding():
    A = np.kron(np.eye(2), np.ones((6, 6))) - np.eye(12)
    A[0, 6] = A[6, 0] = 1.0
    result = describe_samples(GraphCut(2, random_state=0).fit(A), A)
    assert result.silhouettes.min() > 0.5
    assert set(result.confidences.argsort()[:2]) == {0, 6}  # the ends of the only edge between the clusters


def test_coordinates_are_those_of_embeddings_and_scores():
    fusion = GraphFusionClustering(3, random_state=0).fit(VIEWS)
    np.testing.assert_array_equal(joint_coordinates(fusion, VIEWS), fusion.embedding_)
    scores = KernelSpectralClustering(3, random_state=0).fit(X)
    np.testing.assert_array_equal(joint_coordinates(scores, X), scores.transform(X))
    spectral = CoRegularizedSpectralClustering(3, random_state=0).fit(VIEWS)
    assert joint_coordinates(spectral, VIEWS).shape[0] == len(X)
    with pytest.raises(ParameterError, match="KernelKMeans has no joint coordinates"):
        joint_coordinates(KernelKMeans(3).fit(X), X)
