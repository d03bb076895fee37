"""MultiViewKernelKMeans and MultiViewSpectralClustering: what they do beyond the promises of every estimator."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from kernelweave import (
    ConvergenceWarning,
    GlobalKernelKMeans,
    KernelError,
    KernelKMeans,
    MultiViewKernelKMeans,
    MultiViewSpectralClustering,
    NotPSDWarning,
    ParameterError,
    ViewError,
)
from kernelweave.estimators.kmeans import multi_view_kernel_kmeans as kernel_kmeans_estimator
from kernelweave.estimators.shared import runs, view_weights
from kernelweave.estimators.shared import view_kernels as shared
from kernelweave.estimators.spectral import multi_view_spectral as spectral_estimator
from kernelweave.foundation.random_streams import streams
from kernelweave.kernels.blockwise import BlockwiseKernel
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.weighted_sum import JoinedFeatures
from kernelweave.solvers.shared.exponent import EXPONENTS, SUBSETS_OF_FEW
from kernelweave.solvers.spectral.multi_view_spectral import multi_view_spectral
from tests.estimators.discovery import blobs, same
from tests.reference import multi_view as oracle

BOTH = [MultiViewKernelKMeans, MultiViewSpectralClustering]
both = pytest.mark.parametrize("cls", BOTH)
SEEDED = {"random_state": 0}
INITS = ["global_fast", "global_exact", "global_exemplars", "k-means++", "random", "random_partition"]
GAMMA = 0.05


def overlapping(n_per_cluster=15, seed=0, spread=1.0):
    """Return two views in which the same overlapping groups show, and one of noise.

    Each has more features than clusters: of fewer, three eigenvectors leave nothing.
    """
    rng = np.random.default_rng([1, seed])
    y = rng.permutation(np.repeat(np.arange(3), n_per_cluster))
    centres = np.random.default_rng(8).standard_normal((2, 3, 5))  # the same for every seed
    shapes = [(centres[0], 1.0), (centres[1], 0.8), (np.zeros((3, 6)), 1.5)]
    return [2.0 * m[y] + spread * s * rng.standard_normal((len(y), m.shape[1])) for m, s in shapes], y


VIEWS, TRUTH = overlapping()
NEW = overlapping(6, seed=5)[0]
N = len(TRUTH)
NAMED = dict(zip(("front", "back", "noise"), VIEWS, strict=True))
CLEAR, CLEAR_TRUTH = blobs(15)
CLEAR = [CLEAR[:, :2], CLEAR[:, 2:]]
START = np.random.default_rng(3).integers(3, size=N)

#: Kernels with the function that fills the plain matrix between samples.
KERNELS = {
    "linear": ({"kernel": "linear"}, linear_kernel),
    "rbf": ({"kernel": "rbf", "kernel_params": {"gamma": GAMMA}}, lambda A, B: rbf_kernel(A, B, gamma=GAMMA)),
}
kernels = pytest.mark.parametrize("kernel", KERNELS)


def matrices(kernel, data, others=None):
    """Return the plain kernel of every view, between the samples or between others and them."""
    fill = KERNELS[kernel][1]
    return [fill(X if others is None else others[v], X) for v, X in enumerate(data)]


def normalised(kernel, data=VIEWS, weights=None):
    """Return the kernels after the normalisation of the thesis, and what each was divided by."""
    plain = matrices(kernel, data)
    spreads = [oracle.mean_squared_distance(K, weights) for K in plain]
    return [K / spread for K, spread in zip(plain, spreads, strict=True)], spreads


def same_partition(one, other):
    return adjusted_rand_score(one, other) == 1.0


def composed(model, grams):
    """Return the weighted sum of plain kernels at the weights of a model."""
    return oracle.composite(grams, model.view_weights_, model.p_)


# --- what is stored --------------------------------------------------------------------------------------------------


@kernels
@pytest.mark.parametrize("p", [1.0, 1.5, 3.0])
def test_multi_view_kernel_k_means_is_the_plain_oracle_from_the_same_start(kernel, p):
    model = MultiViewKernelKMeans(3, p=p, init=START, **KERNELS[kernel][0]).fit(VIEWS)
    grams, _ = normalised(kernel)
    labels, shares, path = oracle.mvkkm(grams, START, np.ones(N), 3, p)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.view_weights_, shares, rtol=1e-7)
    np.testing.assert_allclose(model.objective_path_, path, rtol=1e-8)
    np.testing.assert_allclose(model.view_scatters_, oracle.scatters(grams, labels, np.ones(N)), rtol=1e-8)
    np.testing.assert_allclose(model.kernel_coefficients_, shares**p / (shares**p).sum(), rtol=1e-7)
    assert model.objective_ == model.inertia_ == model.objective_path_[-1]
    assert model.cluster_variances_.sum() == pytest.approx(model.inertia_)
    assert model.n_iter_ == len(path) - 1
    assert model.converged_
    assert model.p_ == p
    assert model.view_names_ == ["view_0", "view_1", "view_2"]
    assert model.n_features_in_ == 16
    assert not hasattr(model, "p_path_")


@kernels
def test_multi_view_spectral_clustering_is_the_plain_oracle(kernel):
    model = MultiViewSpectralClustering(3, p=1.5, tol=1e-10, **SEEDED, **KERNELS[kernel][0]).fit(VIEWS)
    grams, _ = normalised(kernel)
    shares, path, values, Y = oracle.mvspec(grams, np.ones(N), 3, 1.5, tol=1e-10)
    np.testing.assert_allclose(model.view_weights_, shares, atol=1e-5)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-5)
    np.testing.assert_allclose(model.view_scatters_, oracle.relaxed_scatters(grams, np.ones(N), Y), rtol=1e-4)
    assert model.objective_ == model.objective_path_[-1] == pytest.approx(path[-1], rel=1e-7)
    assert (np.diff(model.objective_path_) <= 1e-12 * model.objective_path_[0]).all()
    assert model.n_iter_ == len(model.objective_path_)
    assert model.converged_
    E = oracle.unit_rows(Y)
    np.testing.assert_allclose(model.embedding_ @ model.embedding_.T, E @ E.T, atol=1e-4)
    expected = KMeans(3, n_init=50, random_state=0).fit_predict(E)
    assert same_partition(model.labels_, expected)
    np.testing.assert_allclose(model.kernel_coefficients_, shares**1.5 / (shares**1.5).sum(), atol=1e-4)
    assert not hasattr(model, "inertia_")


def test_degrees_give_the_relaxed_normalized_cut_of_every_view():
    options = {"normalize": "degrees", "tol": 1e-10, **SEEDED, **KERNELS["rbf"][0]}
    model = MultiViewSpectralClustering(3, p=3.0, **options).fit(VIEWS)
    grams = matrices("rbf", VIEWS)
    grams = [K / np.sqrt(np.outer(K.sum(axis=1), K.sum(axis=1))) for K in grams]
    shares, path, values, Y = oracle.mvspec(grams, np.ones(N), 3, 3.0, totals=np.full(3, 3.0), tol=1e-10)
    np.testing.assert_allclose(model.view_weights_, shares, atol=1e-5)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-5)
    assert model.objective_ == pytest.approx(path[-1], rel=1e-6)
    cuts = [3.0 - np.trace(Y.T @ K @ Y) for K in grams]
    np.testing.assert_allclose(model.view_scatters_, cuts, rtol=1e-4)


@kernels
@both
def test_without_normalisation_the_kernels_stay_as_they_are(cls, kernel):
    model = cls(3, normalize=False, **SEEDED, **KERNELS[kernel][0]).fit(VIEWS)
    grams = matrices(kernel, VIEWS)
    if cls is MultiViewKernelKMeans:
        scatters = oracle.scatters(grams, model.labels_, np.ones(N))
    else:
        scatters = oracle.relaxed_scatters(grams, np.ones(N), oracle.leading(composed(model, grams), np.ones(N), 3)[1])
    np.testing.assert_allclose(model.view_scatters_, scatters, rtol=1e-5)


@both
def test_noise_gets_the_least_weight_and_costs_less_than_with_equal_weights(cls):
    gains = []
    for seed in range(4):
        views, y = overlapping(30, seed=seed)
        noisy = [*views, *(np.random.default_rng([seed, i]).standard_normal((len(y), 6)) for i in range(3))]
        noisy = [X - X.mean(axis=0) for X in noisy]
        learned = cls(3, p=1.5, kernel="linear", **SEEDED).fit(noisy)
        uniform = cls(3, view_weights="uniform", kernel="linear", **SEEDED).fit(noisy)
        assert learned.view_weights_[2:].max() < learned.view_weights_[:2].min()
        gains.append(adjusted_rand_score(y, learned.labels_) - adjusted_rand_score(y, uniform.labels_))
    assert np.mean(gains) >= 0.0


# --- laws of the issue -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian", RBF(length_scale=6.0)])
def test_one_view_is_kernel_k_means_from_the_same_start(kernel, normalize):
    X = np.hstack(VIEWS[:2])
    single = KernelKMeans(4, kernel=kernel, init=START).fit(X)
    for p in (1.0, 2.0):
        model = MultiViewKernelKMeans(4, p=p, kernel=kernel, init=START, normalize=normalize).fit(X)
        np.testing.assert_array_equal(model.labels_, single.labels_)
        np.testing.assert_array_equal(model.predict(np.hstack(NEW[:2])), single.predict(np.hstack(NEW[:2])))
        assert model.view_weights_.tolist() == model.kernel_coefficients_.tolist() == [1.0]
        if not normalize:
            assert model.inertia_ == pytest.approx(single.inertia_)


@both
@kernels
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, "auto"])
def test_a_view_given_twice_counts_a_half_each_time_and_leaves_the_labels(cls, kernel, p):
    options = {**SEEDED, **KERNELS[kernel][0]}
    once = cls(3, p=p, **options).fit(VIEWS[:1])
    twice = cls(3, p=p, **options).fit([VIEWS[0], VIEWS[0]])
    np.testing.assert_allclose(twice.view_weights_, [0.5, 0.5], rtol=1e-7)
    assert same_partition(twice.labels_, once.labels_)


@both
@pytest.mark.parametrize("factor", [1e-12, 1e12])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rescaling_a_view_changes_nothing(cls, kernel, factor):
    plain = cls(3, kernel=kernel, **SEEDED).fit(VIEWS)
    scaled = cls(3, kernel=kernel, **SEEDED).fit([VIEWS[0], factor * VIEWS[1], VIEWS[2]])
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    np.testing.assert_allclose(scaled.view_weights_, plain.view_weights_, rtol=1e-7)
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    new = [NEW[0], factor * NEW[1], NEW[2]]
    np.testing.assert_array_equal(scaled.predict(new), plain.predict(NEW))


@both
def test_without_normalisation_rescaling_a_view_decides_its_weight(cls):
    options = {"kernel": "linear", "normalize": False, **SEEDED}
    small = cls(3, **options).fit([VIEWS[0], 1e-3 * VIEWS[1]])
    large = cls(3, **options).fit([VIEWS[0], 1e3 * VIEWS[1]])
    assert small.view_weights_[1] > 0.99
    assert large.view_weights_[1] < 0.01


@both
@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_rescaling_a_given_kernel_changes_nothing(cls, factor):
    grams = matrices("rbf", VIEWS)
    plain = cls(3, kernel="precomputed", **SEEDED).fit(grams)
    scaled = cls(3, kernel="precomputed", **SEEDED).fit([grams[0], grams[1], factor * grams[2]])
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    np.testing.assert_allclose(scaled.view_weights_, plain.view_weights_, rtol=1e-7)


@both
@pytest.mark.parametrize("p", [1.0, 1.0 + 1e-9, 100.0])
def test_weights_survive_the_ends_of_the_exponent_and_add_up_to_one(cls, p):
    model = cls(3, p=p, kernel="linear", **SEEDED).fit(VIEWS)
    assert model.view_weights_.sum() == pytest.approx(1.0, abs=1e-12)
    assert model.kernel_coefficients_.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.isfinite(model.objective_)
    if p < 2:
        assert model.view_weights_.max() == pytest.approx(1.0)
    else:
        assert model.view_weights_.max() < 0.4
    np.testing.assert_array_equal(model.predict(VIEWS), model.labels_)


def test_a_view_without_scatter_in_its_clusters_takes_all_the_weight():
    clean = np.array([[0.0, 1.0], [5.0, 3.0], [-4.0, 6.0]])[TRUTH]
    for p in (1.0, 1.5, 2.0, 100.0):
        with pytest.warns(ConvergenceWarning, match=r"View 'clean' has no scatter.*took all the weight"):
            model = MultiViewKernelKMeans(3, p=p, kernel="linear", init=TRUTH).fit({"noise": VIEWS[2], "clean": clean})
        np.testing.assert_allclose(model.view_weights_, [0.0, 1.0], atol=1e-12)
        assert same_partition(model.labels_, TRUTH)
        assert model.objective_ == pytest.approx(0.0, abs=1e-9)


# --- new samples -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "linear"},
        {"kernel": "rbf"},
        {"kernel": "rbf", "storage": "blockwise"},
        {"kernel": "nearest_neighbors", "kernel_params": {"n_neighbors": 8}},
        {"kernel": ["linear", "rbf", "laplacian"]},
        {"kernel": "rbf", "approximation": "nystroem", "n_components": 20},
        {"kernel": "cosine"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::kernelweave.NotPSDWarning")
@both
def test_training_samples_are_placed_where_they_were(cls, options):
    data = CLEAR if options["kernel"] == "nearest_neighbors" else VIEWS
    model = cls(3, **SEEDED, **options).fit(data)
    np.testing.assert_array_equal(model.predict(data), model.labels_)


@kernels
@pytest.mark.parametrize("weighted", [False, True])
def test_new_samples_go_to_the_nearest_centre_of_the_weighted_sum(kernel, weighted):
    weights = np.random.default_rng(0).uniform(0.0, 2.0, N) * (np.arange(N) % 6 > 0) if weighted else np.ones(N)
    model = MultiViewKernelKMeans(3, p=1.5, **SEEDED, **KERNELS[kernel][0]).fit(VIEWS, sample_weight=weights)
    grams, spreads = normalised(kernel, weights=weights)
    rows = [K / s for K, s in zip(matrices(kernel, VIEWS, NEW), spreads, strict=True)]
    K, cross = composed(model, grams), composed(model, rows)
    np.testing.assert_array_equal(model.predict(NEW), oracle.nearest_centres(cross, K, model.labels_, weights, 3))
    # Samples without weight are placed in the same way, so that labels and predictions agree.
    np.testing.assert_array_equal(model.labels_, oracle.nearest_centres(K, K, model.labels_, weights, 3))
    np.testing.assert_array_equal(model.predict(VIEWS), model.labels_)


@kernels
@pytest.mark.parametrize("weighted", [False, True])
def test_new_samples_are_placed_by_the_nystroem_extension_of_the_eigenvectors(kernel, weighted):
    weights = np.random.default_rng(0).uniform(0.0, 2.0, N) * (np.arange(N) % 6 > 0) if weighted else np.ones(N)
    model = MultiViewSpectralClustering(3, p=1.5, **SEEDED, **KERNELS[kernel][0]).fit(VIEWS, sample_weight=weights)
    grams, spreads = normalised(kernel, weights=weights)
    rows = [K / s for K, s in zip(matrices(kernel, VIEWS, NEW), spreads, strict=True)]
    values, Y = oracle.leading(composed(model, grams), weights, 3)
    E = oracle.unit_rows(oracle.extended(composed(model, rows), weights, values, Y))
    F = oracle.unit_rows(oracle.extended(composed(model, grams), weights, values, Y))
    np.testing.assert_allclose(np.abs(model.transform(NEW)), np.abs(E), atol=1e-6)
    np.testing.assert_allclose(model.transform(NEW) @ model.embedding_.T, E @ F.T, atol=1e-6)
    np.testing.assert_allclose(model.transform(VIEWS), model.embedding_, atol=1e-8)
    centres = np.array([weights[model.labels_ == c] @ F[model.labels_ == c] for c in range(3)])
    centres /= np.array([weights[model.labels_ == c].sum() for c in range(3)])[:, None]
    nearest = ((E[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(NEW), nearest)
    np.testing.assert_array_equal(model.predict(VIEWS), model.labels_)


def test_centres_among_the_eigenvectors_are_weighted_means():
    views, _ = overlapping(20, spread=2.0)
    weights = np.where(np.arange(60) % 4, 0.05, 5.0)
    model = MultiViewSpectralClustering(3, kernel="linear", **SEEDED).fit(views, sample_weight=weights)
    new = overlapping(100, seed=9, spread=2.0)[0]
    E, F, y = model.transform(new), model.embedding_, model.labels_
    centres = np.array([np.average(F[y == c], axis=0, weights=weights[y == c]) for c in range(3)])
    nearest = ((E[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(new), nearest)


@pytest.mark.parametrize("weighted", [False, True])
def test_new_samples_are_divided_by_their_degrees_among_the_training_samples(weighted):
    weights = np.random.default_rng(0).uniform(0.0, 2.0, N) * (np.arange(N) % 6 > 0) if weighted else np.ones(N)
    options = {"normalize": "degrees", **SEEDED, **KERNELS["rbf"][0]}
    model = MultiViewSpectralClustering(3, p=2.0, **options).fit(VIEWS, sample_weight=weights)
    plain, rows = matrices("rbf", VIEWS), matrices("rbf", VIEWS, NEW)
    degrees = [K @ weights for K in plain]
    grams = [K / np.sqrt(np.outer(d, d)) for K, d in zip(plain, degrees, strict=True)]
    rows = [R / np.sqrt(np.outer(R @ weights, d)) for R, d in zip(rows, degrees, strict=True)]
    values, Y = oracle.leading(composed(model, grams), weights, 3)
    E = oracle.unit_rows(oracle.extended(composed(model, rows), weights, values, Y))
    np.testing.assert_allclose(np.abs(model.transform(NEW)), np.abs(E), atol=1e-6)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-6)
    np.testing.assert_array_equal(model.predict(VIEWS), model.labels_)


@kernels
def test_distances_and_scores_are_those_of_the_weighted_sum(kernel):
    model = MultiViewKernelKMeans(3, p=1.5, **SEEDED, **KERNELS[kernel][0]).fit(VIEWS)
    K = composed(model, normalised(kernel)[0])
    distances = model.transform(VIEWS)
    for c in range(3):
        share = np.where(model.labels_ == c, 1.0, 0.0) / (model.labels_ == c).sum()
        squares = np.diagonal(K) - 2.0 * K @ share + share @ K @ share
        np.testing.assert_allclose(distances[:, c] ** 2, squares, atol=1e-9)
    assert model.score(VIEWS) == pytest.approx(-model.inertia_)


def test_given_kernels_place_new_samples_by_their_rows_but_know_no_distances():
    model = MultiViewKernelKMeans(3, kernel="precomputed", **SEEDED).fit(matrices("rbf", VIEWS))
    features = MultiViewKernelKMeans(3, **SEEDED, **KERNELS["rbf"][0]).fit(VIEWS)
    np.testing.assert_array_equal(model.labels_, features.labels_)
    np.testing.assert_array_equal(model.predict(matrices("rbf", VIEWS, NEW)), features.predict(NEW))
    for method in ("transform", "score"):
        with pytest.raises(AttributeError):
            getattr(model, method)(matrices("rbf", VIEWS, NEW))


@both
def test_a_given_kernel_can_stand_beside_features(cls):
    K, rows = rbf_kernel(VIEWS[1], gamma=GAMMA), rbf_kernel(NEW[1], VIEWS[1], gamma=GAMMA)
    kernel = {"a": "linear", "b": "precomputed"}
    mixed = cls(3, kernel=kernel, **SEEDED).fit({"a": VIEWS[0], "b": K})
    plain = cls(3, kernel=["linear", "rbf"], kernel_params=[None, {"gamma": GAMMA}], **SEEDED).fit(VIEWS[:2])
    np.testing.assert_array_equal(mixed.labels_, plain.labels_)
    np.testing.assert_allclose(mixed.view_weights_, plain.view_weights_, rtol=1e-6)
    np.testing.assert_array_equal(mixed.predict({"b": rows, "a": NEW[0]}), plain.predict(NEW[:2]))


@both
def test_what_is_not_fitted_cannot_predict(cls):
    for method in ("predict", "transform"):
        with pytest.raises(NotFittedError):
            getattr(cls(2), method)(np.ones((2, 2)))


# --- forms of the views ----------------------------------------------------------------------------------------------


@both
def test_list_dict_table_and_frame_give_the_same_weights(cls):
    table = np.hstack(VIEWS)
    frame = pd.DataFrame(table, columns=list("abcdefghijklmnop"))
    columns = {"front": list("abcde"), "back": slice("f", "j"), "noise": list("klmnop")}
    models = [
        cls(3, **SEEDED).fit(VIEWS),
        cls(3, **SEEDED).fit(NAMED),
        cls(3, views=[slice(0, 5), [5, 6, 7, 8, 9], slice(10, 16)], **SEEDED).fit(table),
        cls(3, views=columns, **SEEDED).fit(frame),
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.view_weights_, models[0].view_weights_, rtol=1e-12)
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
    assert models[3].view_names_ == list(columns)
    reordered = {name: NAMED[name] for name in ("noise", "back", "front")}
    np.testing.assert_array_equal(models[1].predict(reordered), models[1].predict(NAMED))
    other = cls(3, **SEEDED).fit(reordered)
    assert other.view_names_ == ["noise", "back", "front"]
    np.testing.assert_allclose(other.view_weights_[::-1], models[0].view_weights_, rtol=1e-5)


@both
def test_a_grid_over_the_exponent_works_behind_a_scaler_with_columns_by_name(cls):
    frame = pd.DataFrame(np.hstack(CLEAR), columns=list("abcd"))
    model = cls(3, views={"front": ["a", "b"], "back": ["c", "d"]}, n_init=2, **SEEDED)
    line = Pipeline([("scale", StandardScaler().set_output(transform="pandas")), ("model", model)])
    grid = {"model__p": [1.0, 2.0], "model__view_weights": ["learned", "uniform"]}
    search = GridSearchCV(line, grid, cv=3, scoring="adjusted_rand_score", error_score="raise")
    search.fit(frame, CLEAR_TRUTH)
    assert search.best_score_ == pytest.approx(1.0)
    assert len(search.cv_results_["params"]) == 4
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict(frame), search.predict(frame))
    assert clone(search.best_estimator_).get_params()["model__p"] == search.best_params_["model__p"]


@both
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_sparse_views_give_the_labels_and_weights_of_dense_ones(cls, kernel):
    data = [np.where(np.abs(X) < 1.0, 0.0, X) for X in VIEWS]
    new = [np.where(np.abs(X) < 1.0, 0.0, X) for X in NEW]
    dense = cls(3, kernel=kernel, init=START).fit(data) if cls is BOTH[0] else cls(3, kernel=kernel, **SEEDED).fit(data)
    for forms in ([sp.csr_array] * 3, [sp.csr_array, np.asarray, sp.csc_matrix]):
        model = clone(dense).fit([form(X) for form, X in zip(forms, data, strict=True)])
        assert same_partition(model.labels_, dense.labels_)
        np.testing.assert_allclose(model.view_weights_, dense.view_weights_, rtol=1e-5)
        labels = model.predict([form(X) for form, X in zip(forms, new, strict=True)])
        assert same_partition(np.r_[labels, model.labels_], np.r_[dense.predict(new), dense.labels_])


@both
def test_every_view_can_have_its_own_kernel_and_parameters(cls):
    asked = [rbf_kernel(VIEWS[0], gamma=0.1), linear_kernel(VIEWS[1]), rbf_kernel(VIEWS[2], gamma=0.003)]
    expected = cls(3, kernel="precomputed", **SEEDED).fit(asked)
    kernel, params = ["rbf", "linear", "rbf"], [{"gamma": 0.1}, None, {"gamma": 0.003}]
    by_list = cls(3, kernel=kernel, kernel_params=params, **SEEDED).fit(VIEWS)
    by_name = cls(
        3,
        kernel=dict(zip(reversed(NAMED), reversed(kernel), strict=True)),
        kernel_params=dict(zip(reversed(NAMED), reversed(params), strict=True)),
        **SEEDED,
    ).fit(NAMED)
    for model in (by_list, by_name):
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        np.testing.assert_allclose(model.view_weights_, expected.view_weights_, rtol=1e-6)
        np.testing.assert_allclose(model.view_scatters_, expected.view_scatters_, rtol=1e-6)


@both
@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"kernel": ["rbf", "linear"]}, r"kernel has 2 entries for 3 views"),
        ({"kernel": {"front": "rbf", "back": "rbf"}}, r"kernel names views \['back', 'front'\], but the views are"),
        ({"kernel_params": [{}, {}]}, r"kernel_params has 2 entries for 3 views"),
        ({"kernel_params": {"front": {"gamma": 1.0}}}, r"kernel_params names views \['front'\]"),
        ({"kernel": ["rbf", "linear", "no such kernel"]}, r"no such kernel"),
        ({"kernel": "rbf", "kernel_params": [{}, {"depth": 1}, {}]}, r"depth"),
    ],
)
def test_kernels_that_do_not_fit_the_views_are_refused(cls, options, match):
    with pytest.raises(ValueError, match=match):
        cls(3, **options).fit(NAMED)


# --- view weights ----------------------------------------------------------------------------------------------------


@both
def test_fixed_weights_are_scaled_to_add_up_to_one_and_stay(cls):
    by_list = cls(3, view_weights=[2.0, 1.0, 1.0], **SEEDED).fit(NAMED)
    np.testing.assert_allclose(by_list.view_weights_, [0.5, 0.25, 0.25])
    np.testing.assert_allclose(by_list.kernel_coefficients_, np.array([4.0, 1.0, 1.0]) / 6.0)
    by_name = cls(3, view_weights={"noise": 1, "front": 2, "back": 1}, **SEEDED).fit(NAMED)
    np.testing.assert_array_equal(by_name.view_weights_, by_list.view_weights_)
    np.testing.assert_array_equal(by_name.labels_, by_list.labels_)


@both
def test_weights_all_on_one_view_give_its_clusters(cls):
    alone = cls(3, kernel="linear", **SEEDED).fit(VIEWS[:1])
    model = cls(3, view_weights=[1.0, 0.0, 0.0], kernel="linear", **SEEDED).fit(VIEWS)
    assert same_partition(model.labels_, alone.labels_)
    assert model.kernel_coefficients_.tolist() == [1.0, 0.0, 0.0]
    np.testing.assert_array_equal(model.predict(VIEWS), model.labels_)


@both
def test_equal_weights_are_the_same_for_every_exponent(cls):
    models = [cls(3, view_weights="uniform", p=p, **SEEDED).fit(VIEWS) for p in (1.0, 2.0, 7.0, "auto")]
    models.append(cls(3, view_weights=[1.0, 1.0, 1.0], **SEEDED).fit(VIEWS))
    for model in models:
        np.testing.assert_allclose(model.view_weights_, [1 / 3] * 3)
        np.testing.assert_allclose(model.kernel_coefficients_, [1 / 3] * 3)
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        np.testing.assert_array_equal(model.predict(VIEWS), model.labels_)
        np.testing.assert_array_equal(model.predict(NEW), models[-1].predict(NEW))
    assert models[3].p_ == np.inf
    assert not hasattr(models[3], "p_path_")


@both
def test_learning_can_start_from_given_weights(cls):
    first = [5.0, 3.0, 2.0]
    options = {"kernel": "linear", "p": 1.5, **({"init": START} if cls is BOTH[0] else SEEDED)}
    model = cls(3, init_view_weights=first, **options).fit(NAMED)
    grams, _ = normalised("linear")
    if cls is BOTH[0]:
        labels, shares, path = oracle.mvkkm(grams, START, np.ones(N), 3, 1.5, np.array(first) / 10.0)
        np.testing.assert_array_equal(model.labels_, labels)
        np.testing.assert_allclose(model.objective_path_, path, rtol=1e-8)
        np.testing.assert_allclose(model.view_weights_, shares, rtol=1e-7)
    else:
        _, Y = oracle.leading(oracle.composite(grams, np.array(first) / 10.0, 1.5), np.ones(N), 3)
        left = oracle.relaxed_scatters(grams, np.ones(N), Y)
        expected = oracle.view_objective(left, oracle.view_weights(left, 1.5), 1.5)
        assert model.objective_path_[0] == pytest.approx(expected)
    named = cls(3, init_view_weights={"noise": 0.2, "back": 0.3, "front": 0.5}, **options).fit(NAMED)
    np.testing.assert_allclose(named.objective_path_, model.objective_path_, rtol=1e-12)
    assert cls(3, **options).fit(NAMED).objective_path_[0] != pytest.approx(model.objective_path_[0], rel=1e-6)


@both
@pytest.mark.parametrize("parameter", ["view_weights", "init_view_weights"])
@pytest.mark.parametrize(
    ("value", "match"),
    [
        ([1.0, 1.0], r"has 2 entries for 3 views"),
        ([[1.0, 1.0, 1.0]], r"has 3 entries for 3 views"),
        ([1.0, -0.5, 1.0], r"-0\.5.*not negative"),
        ([1.0, np.nan, 1.0], r"nan.*finite"),
        ([1.0, np.inf, 1.0], r"inf.*finite"),
        ([0.0, 0.0, 0.0], r"not all zero"),
        (["a", "b", "c"], r"one number per view"),
        ({"front": 1.0, "back": 1.0}, r"names views \['back', 'front'\], but the views are"),
        ({"front": 1.0, "back": 1.0, "side": 1.0}, r"'side'.*'noise'"),
        ({"front": 1.0, "back": "much", "noise": 1.0}, r"one number per view"),
    ],
    ids=str,
)
def test_weights_that_are_none_are_refused(cls, parameter, value, match):
    with pytest.raises(ViewError, match=rf"{parameter}.*{match}"):
        cls(3, **{parameter: value}).fit(NAMED)


@both
def test_an_unknown_word_for_weights_is_refused(cls):
    with pytest.raises(ValueError, match=r"weights.*equal"):
        cls(3, view_weights="equal").fit(NAMED)


# --- the exponent ----------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("p", [0.99, 0.0, -1.0, 100.5, np.inf, np.nan, "best"])
def test_an_exponent_below_one_above_a_hundred_or_unknown_is_refused(cls, p):
    with pytest.raises(ValueError, match=rf"'p'.*{p}"):
        cls(3, p=p).fit(VIEWS)


@both
def test_an_exponent_cannot_be_chosen_for_fixed_weights(cls):
    for weights in ([1.0, 1.0, 2.0], {"front": 1.0, "back": 1.0, "noise": 0.0}):
        with pytest.raises(ParameterError, match=r"p='auto'.*view_weights=.*fixed"):
            cls(3, p="auto", view_weights=weights).fit(NAMED)


@both
def test_an_exponent_chosen_is_that_of_the_stability_told_and_the_fit_is_that_of_this_exponent(cls):
    model = cls(3, p="auto", kernel="linear", n_init=2, **SEEDED)
    before = copy.deepcopy(model.get_params())
    data = [X - X.mean(axis=0) for X in VIEWS]
    data_before = copy.deepcopy(data)
    model.fit(data)
    assert same(model.get_params(), before)
    assert same(data, data_before)
    assert set(model.p_path_) == {"p", "stability"}
    np.testing.assert_array_equal(model.p_path_["p"], EXPONENTS)
    stability = model.p_path_["stability"]
    assert stability.shape == (len(EXPONENTS),)
    assert (np.abs(stability) <= 1.0).all()
    close = np.flatnonzero(stability >= stability.max() - 0.05)
    assert model.p_ == EXPONENTS[close[-1]]
    again = clone(model).fit(data)
    np.testing.assert_array_equal(again.p_path_["stability"], stability)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    fixed = {"view_weights": "uniform"} if np.isinf(model.p_) else {"p": model.p_}
    known = cls(3, kernel="linear", n_init=2, **SEEDED, **fixed).fit(data)
    np.testing.assert_array_equal(known.labels_, model.labels_)
    np.testing.assert_allclose(known.view_weights_, model.view_weights_)
    assert not hasattr(model.set_params(p=2.0).fit(data), "p_path_")


def test_an_exponent_is_chosen_that_leaves_noise_out():
    # Four views of noise against one that shows the groups: equal weights are not stable.
    views = [CLEAR[0], *(np.random.default_rng(i).standard_normal((N, 4)) for i in range(4))]
    model = MultiViewKernelKMeans(3, p="auto", kernel="linear", n_init=2, **SEEDED).fit(views)
    assert np.isfinite(model.p_)
    assert same_partition(model.labels_, CLEAR_TRUTH)
    assert model.p_path_["stability"][-1] < model.p_path_["stability"].max() - 0.05


def test_exponents_are_tried_from_the_eigenvectors_of_equal_weights_where_learning_starts_from_them(monkeypatch):
    tried = []

    def recorded(*args, p, first=None, **options):
        tried.append((p, first))
        return multi_view_spectral(*args, p=p, first=first, **options)

    monkeypatch.setattr(spectral_estimator, "multi_view_spectral", recorded)
    MultiViewSpectralClustering(3, p="auto", kernel="linear", n_init=2, **SEEDED).fit(VIEWS)
    assert tried
    assert all(np.isfinite(p) and first is not None for p, first in tried)  # those of equal weights are known
    tried.clear()
    start = [0.9, *[0.1 / (len(VIEWS) - 1)] * (len(VIEWS) - 1)]
    MultiViewSpectralClustering(3, p="auto", kernel="linear", init_view_weights=start, n_init=2, **SEEDED).fit(VIEWS)
    assert np.inf in [p for p, _ in tried]
    assert all(first is None for _, first in tried)


@pytest.mark.parametrize(("max_iter", "steps"), [(100, spectral_estimator.CHOICE_STEPS), (2, 2)])
@pytest.mark.parametrize("absent", [False, True])
def test_runs_that_try_exponents_end_early(absent, max_iter, steps, monkeypatch):
    asked = []
    name = "masked_multi_view_spectral" if absent else "multi_view_spectral"
    solver = getattr(spectral_estimator, name)

    def recorded(*args, **options):
        asked.append((options["max_iter"], options["tol"]))
        return solver(*args, **options)

    monkeypatch.setattr(spectral_estimator, name, recorded)
    views = [X.copy() for X in VIEWS]
    if absent:
        views[0][:3] = np.nan
    MultiViewSpectralClustering(3, p="auto", max_iter=max_iter, n_init=2, **SEEDED).fit(views)
    choice = (steps, spectral_estimator.CHOICE_TOL)
    assert choice in asked
    assert set(asked) <= {choice, (max_iter, 1e-5)}  # the last of them is the fit itself


@both
def test_one_view_leaves_no_exponent_to_choose(cls):
    model = cls(3, p="auto", **SEEDED).fit(VIEWS[0])
    assert model.p_ == np.inf
    assert not hasattr(model, "p_path_")
    np.testing.assert_array_equal(model.labels_, cls(3, **SEEDED).fit(VIEWS[0]).labels_)


def test_samples_without_weight_have_no_part_in_the_choice_of_the_exponent():
    weights = np.r_[np.ones(30), np.zeros(N - 30)]
    far = [np.r_[X[:30], 100.0 + X[30:]] for X in VIEWS]
    options = {"p": "auto", "kernel": "linear", "n_init": 2, **SEEDED}
    one, other = (MultiViewKernelKMeans(3, **options).fit(data, sample_weight=weights) for data in (VIEWS, far))
    np.testing.assert_allclose(one.p_path_["stability"], other.p_path_["stability"])


# --- views that say nothing ------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_view_in_which_all_samples_are_equal_is_refused_by_its_name(cls, kernel, normalize):
    views = {"front": VIEWS[0], "flat": np.full((N, 2), 7.3), "back": VIEWS[1]}
    with pytest.raises(ViewError, match=r"look the same in view 'flat'.*drop it"):
        cls(3, kernel=kernel, normalize=normalize, **SEEDED).fit(views)


@both
def test_a_view_that_differs_only_in_samples_without_weight_is_refused(cls):
    weights = np.r_[np.zeros(3), np.ones(N - 3)]
    flat = np.r_[np.arange(3.0), np.full(N - 3, 2.0)][:, None]
    with pytest.raises(ViewError, match=r"'flat'"):
        cls(3, kernel="linear", **SEEDED).fit({"front": VIEWS[0], "flat": flat}, sample_weight=weights)


@both
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_views_that_are_all_constant_give_one_cluster_with_a_warning(cls, kernel):
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\) found smaller than n_clusters \(3\)"):
        model = cls(3, kernel=kernel, **SEEDED).fit([np.full((9, 2), 7.3), np.ones((9, 3))])
    assert len(set(model.labels_)) == 1
    np.testing.assert_allclose(model.view_weights_, [0.5, 0.5])


def test_a_constant_view_divided_by_degrees_only_loses_weight():
    views = [CLEAR[0], np.ones((N, 2))]
    model = MultiViewSpectralClustering(3, kernel="rbf", normalize="degrees", **SEEDED).fit(views)
    assert same_partition(model.labels_, CLEAR_TRUTH)
    assert model.view_weights_[1] < model.view_weights_[0]


# --- starts of multi-view kernel k-means -----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("init", [*INITS, START])
def test_every_start_finds_clear_groups_and_ends_where_nothing_moves(init, kernel):
    model = MultiViewKernelKMeans(3, kernel=kernel, init=init, **SEEDED).fit(CLEAR)
    if isinstance(init, str):
        assert same_partition(model.labels_, CLEAR_TRUTH)
    again = MultiViewKernelKMeans(3, kernel=kernel, init=model.labels_, init_view_weights=model.view_weights_).fit(
        CLEAR
    )
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_allclose(again.view_weights_, model.view_weights_, rtol=1e-9)


@pytest.mark.parametrize("search", ["fast", "exact", "exemplars"])
@kernels
def test_a_search_by_itself_starts_from_the_labels_of_global_kernel_k_means(kernel, search):
    grams, _ = normalised(kernel)
    for first in (np.full(3, 1 / 3), np.array([0.1, 0.1, 0.8])):
        total = oracle.composite(grams, first, 1.5)
        start = GlobalKernelKMeans(4, kernel="precomputed", search=search).fit(total).labels_
        options = {"p": 1.5, "n_init": 1, "init_view_weights": first, **KERNELS[kernel][0]}
        model = MultiViewKernelKMeans(4, init=f"global_{search}", **options).fit(VIEWS)
        expected = MultiViewKernelKMeans(4, init=start, **options).fit(VIEWS)
        assert same_partition(model.labels_, expected.labels_)
        np.testing.assert_allclose(model.objective_path_, expected.objective_path_, rtol=1e-8)


def test_a_single_view_searched_alone_is_the_global_search_itself():
    X = np.hstack(VIEWS[:2])
    expected = GlobalKernelKMeans(4, search="fast").fit(X)
    model = MultiViewKernelKMeans(4, n_init=1).fit(X)
    np.testing.assert_array_equal(model.labels_, expected.labels_)


def test_a_search_is_the_first_of_the_runs_that_the_best_start_is_taken_from(monkeypatch):
    runs, real = [], kernel_kmeans_estimator.kernel_kmeans
    monkeypatch.setattr(kernel_kmeans_estimator, "kernel_kmeans", lambda *a, **o: runs.append(1) or real(*a, **o))
    for n_init in (1, 2, 5):
        MultiViewKernelKMeans(3, kernel="linear", n_init=n_init, **SEEDED).fit(VIEWS)
        assert len(runs) == n_init - 1
        runs.clear()
    MultiViewKernelKMeans(3, kernel="linear", init="global_exact", n_init=5, **SEEDED).fit(VIEWS)
    assert runs == []


def test_runs_beside_the_search_never_make_the_start_worse_and_need_no_seed():
    views, _ = overlapping(20, seed=2, spread=2.0)
    options = {"kernel": "linear", "view_weights": "uniform"}
    alone = MultiViewKernelKMeans(6, n_init=1, **options).fit(views)
    several = [MultiViewKernelKMeans(6, n_init=20, **options).fit(views) for _ in range(2)]
    assert several[0].objective_ <= alone.objective_ * (1 + 1e-12)
    np.testing.assert_array_equal(several[0].labels_, several[1].labels_)


@pytest.mark.parametrize("init", ["k-means++", "random", "random_partition"])
def test_drawn_starts_follow_the_seed_and_the_best_of_them_is_kept(init):
    views, _ = overlapping(20, seed=2, spread=2.0)
    options = {"kernel": "linear", "init": init, **SEEDED}
    one, two = (MultiViewKernelKMeans(5, n_init=6, **options).fit(views) for _ in range(2))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.objective_ <= MultiViewKernelKMeans(5, n_init=1, **options).fit(views).objective_ * (1 + 1e-12)


def watched_search(monkeypatch):
    """Return the list that the number of samples of every global search goes to."""
    sizes, real = [], kernel_kmeans_estimator.global_kernel_kmeans

    def watch(op, *arguments, **options):
        sizes.append(op.n_samples)
        return real(op, *arguments, **options)

    monkeypatch.setattr(kernel_kmeans_estimator, "global_kernel_kmeans", watch)
    return sizes


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("init", INITS[:3])
def test_a_search_looks_at_no_more_samples_than_asked_for(kernel, init, monkeypatch):
    sizes = watched_search(monkeypatch)
    whole = MultiViewKernelKMeans(3, kernel=kernel, init=init, **SEEDED).fit(CLEAR)
    subset = MultiViewKernelKMeans(3, kernel=kernel, init=init, init_size=20, **SEEDED).fit(CLEAR)
    assert sizes == [N, 20]
    assert same_partition(subset.labels_, whole.labels_)
    np.testing.assert_allclose(subset.view_weights_, whole.view_weights_, rtol=1e-9)
    again = MultiViewKernelKMeans(3, kernel=kernel, init=init, init_size=20, **SEEDED).fit(CLEAR)
    np.testing.assert_array_equal(again.labels_, subset.labels_)


def test_a_search_looks_at_no_fewer_samples_than_clusters_and_leaves_out_none_for_its_weight(monkeypatch):
    sizes = watched_search(monkeypatch)
    MultiViewKernelKMeans(5, kernel="linear", init_size=2, **SEEDED).fit(CLEAR)
    weights = np.where(np.arange(N) % 3 == 0, 0.0, 1.0)
    MultiViewKernelKMeans(3, kernel="linear", **SEEDED).fit(CLEAR, sample_weight=weights)
    assert sizes == [5, N]


def test_samples_of_a_search_are_drawn_from_those_that_have_a_weight():
    views, _ = overlapping(20, seed=2, spread=2.0)
    there = np.arange(60) % 3 > 0
    options = {"kernel": "linear", "init_size": 15, **SEEDED}
    weighted = MultiViewKernelKMeans(5, **options).fit(views, sample_weight=there)
    alone = MultiViewKernelKMeans(5, **options).fit([X[there] for X in views])
    np.testing.assert_array_equal(weighted.labels_[there], alone.labels_)
    np.testing.assert_allclose(weighted.objective_path_, alone.objective_path_)


def watched_purposes(monkeypatch):
    """Return the list of what random streams are asked for, with the seed and the number."""
    asked = []

    def watch(seed, count, purpose="starts"):
        asked.append((purpose, seed, count))
        return streams(seed, count, purpose)

    for module in (kernel_kmeans_estimator, view_weights, runs):
        monkeypatch.setattr(module, "streams", watch)
    return asked


def test_samples_of_a_search_and_runs_beside_it_and_resampling_share_no_randomness(monkeypatch):
    asked = watched_purposes(monkeypatch)
    MultiViewKernelKMeans(3, kernel="linear", init_size=20, n_init=4, random_state=5).fit(CLEAR)
    assert asked == [("search samples", 5, 1), ("starts", 5, 3)]
    asked.clear()
    MultiViewKernelKMeans(3, kernel="linear", n_init=4, init="random", p="auto", random_state=5).fit(CLEAR)
    assert asked == [("resampling", 5, SUBSETS_OF_FEW), ("starts", 5, 4)]
    asked.clear()
    MultiViewKernelKMeans(3, kernel="linear", n_init=4).fit(CLEAR)  # the same without a seed
    assert asked == [("starts", 0, 3)]


@pytest.mark.filterwarnings("ignore::kernelweave.NotPSDWarning")
def test_graphs_are_searched_whole(monkeypatch):
    sizes = watched_search(monkeypatch)
    options = {"kernel": "nearest_neighbors", "kernel_params": {"n_neighbors": 8}}
    model = MultiViewKernelKMeans(3, init_size=10, **SEEDED, **options).fit(CLEAR)
    assert sizes == [N]
    assert same_partition(model.labels_, CLEAR_TRUTH)


# --- weights of samples ----------------------------------------------------------------------------------------------


@both
@kernels
def test_a_whole_weight_is_the_same_as_repeated_rows_in_several_views(cls, kernel):
    counts = np.random.default_rng(0).integers(0, 4, N)
    rows = np.repeat(np.arange(N), counts)
    options = {"tol": 1e-10, **KERNELS[kernel][0]}
    one = {"init": START} if cls is BOTH[0] else SEEDED
    other = {"init": START[rows]} if cls is BOTH[0] else SEEDED
    weighted = cls(3, **options, **one).fit(VIEWS, sample_weight=counts)
    repeated = cls(3, **options, **other).fit([X[rows] for X in VIEWS])
    np.testing.assert_allclose(weighted.view_weights_, repeated.view_weights_, atol=1e-6)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-7)
    assert same_partition(weighted.labels_[rows], repeated.labels_)
    assert weighted.labels_.shape == (N,)


# --- storage and memory ----------------------------------------------------------------------------------------------


def watched_parts(monkeypatch):
    """Return the list that the operators of the views go to, without their scales."""
    kinds, real = [], shared.composite

    def watch(operators, coefficients, held_entries):
        op = real(operators, coefficients, held_entries)
        kinds.append(JoinedFeatures if isinstance(op, JoinedFeatures) else {type(kernel.base) for kernel in operators})
        return op

    monkeypatch.setattr(shared, "composite", watch)
    return kinds


@both
def test_kernels_are_stored_where_they_fit_and_computed_again_where_not(cls, monkeypatch):
    kinds = watched_parts(monkeypatch)
    # Three matrices of 45 x 45 numbers take 0.046 MiB together.
    models = [
        cls(3, **SEEDED, **options).fit(VIEWS)
        for options in ({}, {"storage": "blockwise"}, {"memory_limit": 0.045}, {"memory_limit": 0.047})
    ]
    assert kinds == [{DenseKernel}, {BlockwiseKernel}, {BlockwiseKernel}, {DenseKernel}]
    for model in models[1:]:
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        np.testing.assert_allclose(model.view_weights_, models[0].view_weights_, rtol=1e-6)
        np.testing.assert_array_equal(model.predict(NEW), models[0].predict(NEW))


@both
def test_linear_kernels_are_joined_and_never_stored(cls, monkeypatch):
    kinds = watched_parts(monkeypatch)
    cls(3, kernel="linear", **SEEDED).fit(VIEWS)
    cls(3, kernel="linear", **SEEDED).fit([sp.csr_array(X) for X in VIEWS])
    cls(3, approximation="nystroem", n_components=9, **SEEDED).fit(VIEWS)
    assert kinds == [JoinedFeatures] * 3


@pytest.mark.parametrize("init", ["global_fast", "k-means++"])
def test_features_and_stored_matrices_give_the_same_model(init):
    options = {"kernel": "linear", "init": init, **SEEDED}
    features = MultiViewKernelKMeans(3, **options).fit(VIEWS)
    stored = MultiViewKernelKMeans(3, storage="dense", **options).fit(VIEWS)
    np.testing.assert_array_equal(stored.labels_, features.labels_)
    np.testing.assert_allclose(stored.objective_path_, features.objective_path_, rtol=1e-9)
    np.testing.assert_allclose(stored.view_weights_, features.view_weights_, rtol=1e-8)


@both
def test_an_approximation_comes_close_to_the_kernels(cls):
    exact = cls(3, **SEEDED).fit(CLEAR)
    for method in ("nystroem", "random_features"):
        model = cls(3, approximation=method, n_components=40, **SEEDED).fit(CLEAR)
        assert same_partition(model.labels_, exact.labels_)
        np.testing.assert_allclose(model.view_weights_, exact.view_weights_, atol=0.1)


# --- how a fit ends --------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("weights", ["learned", "uniform"])
def test_the_bound_on_steps_gives_a_warning(cls, weights):
    if cls is MultiViewSpectralClustering and weights == "uniform":
        return  # one decomposition is all
    start = {"init": START} if cls is BOTH[0] else SEEDED
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1\b"):
        model = cls(3, view_weights=weights, max_iter=1, p=1.2, **start).fit(VIEWS)
    assert not model.converged_
    assert model.n_iter_ == 1


def test_a_tolerance_ends_a_fit_early():
    views, _ = overlapping(60, seed=2, spread=2.0)
    start = np.random.default_rng(0).integers(8, size=180)
    strict, loose = (MultiViewKernelKMeans(8, init=start, tol=tol).fit(views) for tol in (0.0, 1e-2))
    assert loose.converged_
    assert loose.n_iter_ < strict.n_iter_
    assert loose.objective_ > strict.objective_
    strict, loose = (MultiViewSpectralClustering(3, tol=tol, p=1.2, **SEEDED).fit(views) for tol in (1e-10, 1e-2))
    assert loose.converged_
    assert loose.n_iter_ < strict.n_iter_


@both
def test_a_kernel_that_is_not_semidefinite_is_named_and_the_fit_ends(cls):
    A = np.random.default_rng(0).standard_normal((N, N))
    views = {"fine": rbf_kernel(VIEWS[0]), "odd": A + A.T + 5.0 * np.eye(N)}
    with pytest.warns(NotPSDWarning, match=r"kernel of view 'odd' is not positive semidefinite") as caught:
        model = cls(3, kernel="precomputed", **SEEDED).fit(views)
    assert not any("'fine'" in str(warning.message) for warning in caught)
    assert model.view_weights_.sum() == pytest.approx(1.0)
    assert (np.diff(model.objective_path_) <= 1e-9).all()


@both
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.filterwarnings("ignore:View 'odd' has no scatter")
def test_a_negative_mean_distance_is_not_the_same_as_none(cls, normalize):
    A = np.random.default_rng(0).standard_normal((N, N))
    views = {"odd": A + A.T, "fine": rbf_kernel(VIEWS[0], gamma=GAMMA)}
    assert oracle.mean_squared_distance(views["odd"]) < 0
    with pytest.warns(NotPSDWarning) as caught:
        model = cls(3, kernel="precomputed", normalize=normalize, **SEEDED).fit(views)
    assert "of view 'odd'" in str(caught[0].message)
    assert model.view_weights_.sum() == pytest.approx(1.0)
    assert (np.diff(model.objective_path_) <= 1e-9 * np.abs(model.objective_path_).max()).all()


@both
def test_warnings_point_at_the_line_that_called_fit(cls):
    A = np.random.default_rng(0).standard_normal((N, N))
    with pytest.warns(NotPSDWarning) as caught:
        cls(3, kernel="precomputed", **SEEDED).fit([A + A.T + 5.0 * np.eye(N), rbf_kernel(VIEWS[0])])
    assert {warning.filename for warning in caught if "of view" in str(warning.message)} == {__file__}


@pytest.mark.parametrize(
    "cls",
    [
        MultiViewKernelKMeans,
        pytest.param(MultiViewSpectralClustering),
    ],
)
def test_the_warning_about_steps_points_at_the_line_that_called_fit(cls):
    start = {"init": START} if cls is MultiViewKernelKMeans else SEEDED
    with pytest.warns(ConvergenceWarning) as caught:
        cls(3, max_iter=1, p=1.2, **start).fit(VIEWS)
    assert caught[0].filename == __file__


def test_similarities_below_zero_cannot_be_divided_by_degrees():
    with pytest.raises(KernelError, match=r"degree.*at least 0"):
        MultiViewSpectralClustering(3, kernel="linear", normalize="degrees").fit(VIEWS)


def test_there_are_no_more_eigenvectors_than_features():
    model = MultiViewSpectralClustering(4, kernel="linear", **SEEDED).fit([CLEAR[0], CLEAR[0][:, :1]])
    assert model.embedding_.shape == (N, 3)
    assert model.eigenvalues_.shape == (3,)
    np.testing.assert_array_equal(model.predict([CLEAR[0], CLEAR[0][:, :1]]), model.labels_)


def test_rows_of_the_embedding_have_unit_length_and_a_single_vector_is_left_as_it_is():
    model = MultiViewSpectralClustering(3, **SEEDED).fit(VIEWS)
    np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=1), 1.0)
    single = MultiViewSpectralClustering(1, **SEEDED).fit(VIEWS)
    assert single.embedding_.shape == (N, 1)
    assert set(single.labels_) == {0}
    np.testing.assert_allclose(np.linalg.norm(single.embedding_), 1.0)


# --- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"kernel": "linear"}, {"kernel": "rbf"}, {"kernel": "linear", "p": "auto"}])
@both
def test_the_same_seed_gives_the_same_labels_of_several_views_with_one_thread_and_two(cls, options):
    views, _ = overlapping(240, spread=1.5)
    labels = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            labels.append(cls(4, n_init=4, **SEEDED, **options).fit(views).labels_)
    np.testing.assert_array_equal(labels[0], labels[1])


# --- faults that are known -------------------------------------------------------------------------------------------


@both
def test_weights_named_by_numbers_and_text_get_a_clear_error(cls):
    with pytest.raises(ViewError, match="view_weights names views"):
        cls(3, view_weights={"front": 1.0, 1: 1.0, "noise": 1.0}).fit(NAMED)


@both
def test_the_warning_about_a_view_without_scatter_points_at_the_line_that_called_fit(cls):
    clean = np.eye(3)[TRUTH]
    with pytest.warns(ConvergenceWarning, match="no scatter") as caught:
        cls(3, kernel="linear", **SEEDED).fit([clean, VIEWS[2]])
    assert caught[0].filename == __file__


@both
def test_a_view_without_scatter_that_was_given_all_the_weight_is_no_surprise(cls):
    model = cls(3, kernel="linear", view_weights=[1.0, 0.0], **SEEDED).fit([np.eye(3)[TRUTH], VIEWS[2]])
    assert same_partition(model.labels_, TRUTH)
