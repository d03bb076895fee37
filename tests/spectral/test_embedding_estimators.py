"""What estimators on an embedding share: transform, predict, score, fit_transform, and the model behind them."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave import CorrelationalSpectralClustering, MultiViewSpectralClustering, NgSpectralClustering
from kernelweave.estimators.shared.embedding import EmbeddingModel, Extension, kmeans_labels, unit_rows
from kernelweave.estimators.shared.view_numbers import view_numbers
from kernelweave.foundation.errors import ParameterError, ViewError
from kernelweave.foundation.random_streams import streams
from kernelweave.kernels.features import FeatureKernel
from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
from tests.estimators.discovery import blobs

X, TRUTH = blobs(spread=4.0)
NEW = blobs(6, seed=1, spread=4.0)[0]
CLASSES = [MultiViewSpectralClustering, NgSpectralClustering, CorrelationalSpectralClustering]
embedding_classes = pytest.mark.parametrize("cls", CLASSES)


def form(cls, table):
    """Return samples as a class takes them: one table, or two views."""
    return table if cls is NgSpectralClustering else [table[:, :2], table[:, 2:]]


def plain_centers(model, weights):
    """Return the weighted means of the embedded samples of every cluster."""
    return np.stack(
        [
            np.average(model.embedding_[model.labels_ == c], axis=0, weights=weights[model.labels_ == c])
            for c in range(3)
        ]
    )


@embedding_classes
def test_scores_and_labels_follow_the_means_of_the_embedding(cls):
    model = cls(3, random_state=0).fit(form(cls, X))
    centers = plain_centers(model, np.ones(len(X)))
    np.testing.assert_allclose(model._model.centers, centers, atol=1e-10)
    squared = ((model.transform(form(cls, NEW))[:, None] - centers) ** 2).sum(axis=2)
    np.testing.assert_array_equal(model.predict(form(cls, NEW)), squared.argmin(axis=1))
    assert model.score(form(cls, NEW)) == pytest.approx(-squared.min(axis=1).sum())
    counts = np.arange(len(NEW)) % 3
    assert model.score(form(cls, NEW), sample_weight=counts) == pytest.approx(-(counts @ squared.min(axis=1)))


@pytest.mark.parametrize("cls", [MultiViewSpectralClustering, CorrelationalSpectralClustering])
def test_the_score_of_the_training_samples_is_minus_the_objective_of_k_means(cls):
    model = cls(3, random_state=0).fit(form(cls, X))
    rows = FeatureKernel(model.embedding_)
    again = kernel_kmeans(rows, model.labels_, np.ones(len(X)), n_clusters=3)
    np.testing.assert_array_equal(again.labels, model.labels_)
    assert model.score(form(cls, X)) == pytest.approx(-again.objective)


def test_weights_of_samples_enter_centres_and_scores():
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(X))
    views = form(MultiViewSpectralClustering, X)
    model = MultiViewSpectralClustering(3, random_state=0).fit(views, sample_weight=weights)
    np.testing.assert_allclose(model._model.centers, plain_centers(model, weights), atol=1e-10)
    squared = ((model.embedding_[:, None] - model._model.centers) ** 2).sum(axis=2).min(axis=1)
    assert model.score(views, sample_weight=weights) == pytest.approx(-(weights @ squared))
    plain = MultiViewSpectralClustering(3, random_state=0).fit(views)
    assert model.score(views) != pytest.approx(plain.score(views))
    np.testing.assert_array_equal(
        MultiViewSpectralClustering(3, random_state=0).fit_transform(views, sample_weight=weights), model.embedding_
    )


@embedding_classes
def test_rows_of_a_precomputed_kernel_are_embedded_and_scored(cls):
    kernels = [rbf_kernel(part, gamma=0.01) for part in ([X] if cls is NgSpectralClustering else form(cls, X))]
    rows = [
        rbf_kernel(part, base, gamma=0.01)
        for part, base in zip(
            [NEW] if cls is NgSpectralClustering else form(cls, NEW),
            [X] if cls is NgSpectralClustering else form(cls, X),
            strict=True,
        )
    ]
    single = cls is NgSpectralClustering
    given = cls(3, kernel="precomputed", random_state=0).fit(kernels[0] if single else kernels)
    plain = cls(3, kernel="rbf", kernel_params={"gamma": 0.01}, random_state=0).fit(form(cls, X))
    assert given.score(rows[0] if single else rows) == pytest.approx(plain.score(form(cls, NEW)), rel=1e-6)
    np.testing.assert_array_equal(given.predict(rows[0] if single else rows), plain.predict(form(cls, NEW)))


@embedding_classes
@pytest.mark.parametrize("method", ["predict", "transform", "score", "get_feature_names_out"])
def test_nothing_is_answered_before_fit(cls, method):
    with pytest.raises(NotFittedError):
        getattr(cls(3), method)(*([] if method.startswith("get") else [form(cls, X)]))


@embedding_classes
def test_weights_are_refused_where_the_method_has_none(cls):
    if cls is MultiViewSpectralClustering:
        return
    with pytest.raises(TypeError, match=f"{cls.__name__} does not support sample_weight"):
        cls(3).fit_transform(form(cls, X), sample_weight=np.ones(len(X)))


def test_names_of_columns_follow_the_embedding_and_not_the_clusters():
    model = CorrelationalSpectralClustering(3, n_components=2, random_state=0).fit(form(None, X))
    assert model.embedding_.shape == (60, 4)
    assert model.get_feature_names_out().tolist() == [f"correlationalspectralclustering{i}" for i in range(4)]


class Scaled(Extension):
    """Embeds samples by a factor."""

    def embed(self, views):
        return 2.0 * next(iter(views))


def test_a_model_leaves_empty_clusters_alone():
    points = np.array([[0.0, 0.0], [0.0, 2.0], [8.0, 0.0]])
    clusters = kernel_kmeans(FeatureKernel(points[[0, 0, 0]]), np.zeros(3, dtype=np.intp), np.ones(3), n_clusters=2)
    model = EmbeddingModel.of_clusters(Scaled(), points[[0, 0, 0]], clusters)
    labels, squared = model.nearest([points])
    assert labels.tolist() == [0, 0, 0]
    np.testing.assert_allclose(squared, [0.0, 16.0, 256.0])
    np.testing.assert_array_equal(model.embed([points]), 2.0 * points)


def test_generators_serve_one_embedding_after_another():
    points = np.random.default_rng(0).normal(size=(40, 3))  # without groups: starts lead to different ends
    rngs = streams(0, 1)
    once, again = (kmeans_labels(points, np.ones(40), 5, rngs) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert (kmeans_labels(points, np.ones(40), 5, streams(1, 1)) != once).any()


def test_rows_get_unit_length_but_single_columns_stay():
    E = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    np.testing.assert_allclose(unit_rows(E), [[0.6, 0.8], [0.0, 0.0], [0.0, -1.0]])
    np.testing.assert_array_equal(unit_rows(E[:, :1]), E[:, :1])


# --- learned, uniform and fixed weights of views ---------------------------------------------------------------------


def test_fixed_view_weights_stay_and_others_are_learned_from_a_start():
    views = form(MultiViewSpectralClustering, X)
    fixed = MultiViewSpectralClustering(3, view_weights=[3, 1], random_state=0).fit(views)
    np.testing.assert_allclose(fixed.view_weights_, [0.75, 0.25])
    assert fixed.n_iter_ == 1
    learned = MultiViewSpectralClustering(3, init_view_weights=[3, 1], random_state=0).fit(views)
    assert learned.n_iter_ > 1
    assert not np.allclose(learned.view_weights_, [0.75, 0.25], atol=1e-3)
    named = MultiViewSpectralClustering(3, view_weights={"q": 1, "p": 3}, random_state=0).fit(
        {"p": views[0], "q": views[1]}
    )
    np.testing.assert_array_equal(named.labels_, fixed.labels_)
    np.testing.assert_allclose(fixed.kernel_coefficients_, np.array([9, 1]) / 10)


# --- numbers of views ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "numbers"),
    [(0.5, [0.5, 0.5]), ([1, 2.0], [1.0, 2.0]), ((0, 3), [0.0, 3.0]), ({"b": 1, "a": 2}, [2.0, 1.0])],
    ids=str,
)
def test_numbers_are_for_all_views_or_one_per_view(values, numbers):
    np.testing.assert_array_equal(view_numbers(values, ["a", "b"], "strength"), numbers)


@pytest.mark.parametrize(
    ("values", "error", "match"),
    [
        (-1.0, ParameterError, r"strength=-1\.0 must hold finite numbers that are not negative nor above 2\."),
        ([1.0, 2.5], ParameterError, r"strength=\[1\.0, 2\.5\] must hold finite numbers"),
        ([1.0, np.nan], ParameterError, "finite"),
        ([1.0, True], ParameterError, r"must hold numbers, one for all views or one per view, \['a', 'b'\]"),
        ([1.0, "1"], ParameterError, "must hold numbers"),
        ([1.0, "one"], ParameterError, "must hold numbers"),
        ([1.0, None], ParameterError, "must hold numbers"),
        ([1.0], ViewError, "strength has 1 entries for 2 views"),
        ({"a": 1.0}, ViewError, r"strength names views \['a'\]"),
    ],
    ids=str,
)
def test_what_is_no_number_for_a_view_is_named(values, error, match):
    with pytest.raises(error, match=match):
        view_numbers(values, ["a", "b"], "strength", highest=2.0)
