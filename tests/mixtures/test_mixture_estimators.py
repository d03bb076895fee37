"""ConvexMixture and MultiViewConvexMixture: what they promise beyond what every estimator does."""

import pickle
import warnings

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
from threadpoolctl import threadpool_limits

from kernelweave import (
    ConvergenceWarning,
    ConvexMixture,
    GlobalKernelKMeans,
    KernelError,
    KernelKMeans,
    MultiViewConvexMixture,
    NotPSDWarning,
    ParameterError,
    ViewError,
)
from kernelweave.foundation import threads
from kernelweave.solvers.mixtures import exemplars as exemplar_solver
from tests.estimators.discovery import blobs
from tests.reference import convex_mixture as oracle

BOTH = [ConvexMixture, MultiViewConvexMixture]
both = pytest.mark.parametrize("cls", BOTH)
learned = pytest.mark.parametrize("weighted", [False, True])
TIGHT = {"tol": 1e-7}


@pytest.fixture(scope="module")
def overlapping():
    """Groups that overlap: priors, posteriors and numbers of clusters have something to decide."""
    return blobs(20, spread=5.0)[0]


@pytest.fixture(scope="module")
def two_views():
    """Two views in which the same overlapping groups can be seen."""
    X = blobs(20, seed=1, spread=4.0)[0]
    return [X[:, :2], X[:, 2:]]


def squares(X, Y=None):
    return oracle.divergences("sqeuclidean", X, Y)


def templates(seed, n=30, d=24, flipped=0.1):
    """Return bits of two random templates, a tenth of them flipped, and which template each row comes from."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(2 * n) % 2)
    bits = rng.integers(0, 2, (2, d))
    return np.abs(bits[y] - (rng.random((2 * n, d)) < flipped)).astype(float), y


def same_partition(one, other):
    return adjusted_rand_score(one, other) == 1.0


def others(model):
    """Return the samples that are not exemplars."""
    return np.setdiff1d(np.arange(len(model.labels_)), model.exemplar_indices_)


def components(model, views):
    """Return the components of a mixture of squared distances, view by view."""
    betas = [model.beta_] if isinstance(model, ConvexMixture) else model.betas_
    return [oracle.components(squares(X), beta) for X, beta in zip(views, betas, strict=True)]


# --- what is stored --------------------------------------------------------------------------------------------------


def test_the_attributes_describe_priors_exemplars_and_the_way_to_them(overlapping):
    model = ConvexMixture(4).fit(overlapping)
    assert model.labels_.shape == model.priors_.shape == (60,)
    assert model.priors_.sum() == pytest.approx(1.0)
    assert (model.priors_ >= 0).all()
    assert model.exemplar_indices_.shape == (4,)
    assert (np.diff(model.priors_[model.exemplar_indices_]) <= 0).all()
    assert model.priors_[model.exemplar_indices_].min() >= np.sort(model.priors_)[-4]
    np.testing.assert_array_equal(model.labels_[model.exemplar_indices_], np.arange(4))
    assert set(model.labels_) == set(range(4))
    assert model.log_likelihood_ == model.objective_ == model.objective_path_[-1]
    assert (np.diff(model.objective_path_) >= -1e-12).all()
    assert len(model.objective_path_) == model.n_iter_ + 1
    assert model.converged_
    assert model.optimality_gap_ <= 1e-6
    assert model.n_features_in_ == 4
    assert not hasattr(model, "inertia_")
    assert model.beta_ == pytest.approx(oracle.reference_beta(squares(overlapping)))
    expected = oracle.likelihood(components(model, [overlapping]), oracle.uniform(60), model.priors_)
    assert model.log_likelihood_ == pytest.approx(expected)


@learned
def test_the_attributes_of_several_views_describe_them_too(weighted, two_views):
    model = MultiViewConvexMixture(3, weighted=weighted).fit(two_views)
    assert model.view_names_ == ["view_0", "view_1"]
    assert model.view_weights_.shape == model.betas_.shape == (2,)
    assert model.view_weights_.sum() == pytest.approx(1.0)
    assert model.priors_.sum() == pytest.approx(1.0)
    assert model.n_features_in_ == 4
    assert model.converged_
    assert model.log_likelihood_ == model.objective_ == model.objective_path_[-1]
    assert (np.diff(model.objective_path_) >= -1e-12).all()
    assert len(model.objective_path_) == model.n_iter_ + 1
    np.testing.assert_allclose(model.betas_, [oracle.reference_beta(squares(X)) for X in two_views])
    views, shares = components(model, two_views), oracle.uniform(60)
    if weighted:
        expected = oracle.weighted_likelihood(views, shares, model.priors_, model.view_weights_, np.ones(2))
    else:
        expected = oracle.likelihood(views, shares, model.priors_)
        np.testing.assert_array_equal(model.view_weights_, [0.5, 0.5])
    assert model.log_likelihood_ == pytest.approx(expected)


def test_names_of_columns_and_views_are_kept(two_views):
    frame = pd.DataFrame(np.hstack(two_views), columns=["a", "b", "c", "d"])
    assert ConvexMixture(3).fit(frame).feature_names_in_.tolist() == ["a", "b", "c", "d"]
    columns = {"one": ["a", "b"], "two": ["c", "d"]}
    table = MultiViewConvexMixture(3, views=columns).fit(frame)
    assert table.view_names_ == ["one", "two"]
    separate = MultiViewConvexMixture(3).fit(dict(zip(columns, two_views, strict=True)))
    np.testing.assert_array_equal(table.labels_, separate.labels_)
    np.testing.assert_array_equal(table.predict(frame), separate.predict({"two": two_views[1], "one": two_views[0]}))


@pytest.mark.parametrize("weights", [None, "uneven"])
@pytest.mark.parametrize("seed", range(3))
def test_beta_is_that_of_the_source_times_its_scale(seed, weights):
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, 1.0, (15, 3))
    weights = None if weights is None else rng.uniform(0.1, 2.0, 15) * (np.arange(15) > 2)
    for name in ("sqeuclidean", "poisson", "exponential"):
        model = ConvexMixture(divergence=name, beta_scale=0.7).fit(X, sample_weight=weights)
        expected = 0.7 * oracle.reference_beta(oracle.divergences(name, X), weights)
        assert model.beta_ == pytest.approx(expected)
    assert ConvexMixture(beta=0.3, beta_scale=2.0).fit(X).beta_ == 0.6
    pair = MultiViewConvexMixture(beta=["auto", 0.5], beta_scale=2.0).fit([X, X[:, :1]], sample_weight=weights)
    np.testing.assert_allclose(pair.betas_, [2 * oracle.reference_beta(squares(X), weights), 1.0])


def test_fitting_again_forgets_the_earlier_fit(overlapping):
    model = ConvexMixture(2, refine="kernel_kmeans").fit(overlapping)
    again = model.set_params(n_clusters=5, refine=None).fit(overlapping)
    fresh = ConvexMixture(5).fit(overlapping)
    np.testing.assert_array_equal(again.labels_, fresh.labels_)
    np.testing.assert_array_equal(again.predict(overlapping), fresh.predict(overlapping))
    np.testing.assert_array_equal(fresh.fit_predict(overlapping), fresh.labels_)


# --- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 5])
def test_labels_of_one_view_follow_the_posteriors_of_the_source(n_clusters, overlapping):
    model = ConvexMixture(n_clusters, beta_scale=2.0).fit(overlapping)
    chosen = model.exemplar_indices_
    assert chosen.tolist() == oracle.exemplars(model.priors_.round(12), n_clusters)
    table = oracle.summed_posteriors(components(model, [overlapping]), model.priors_, chosen)
    np.testing.assert_array_equal(model.labels_, oracle.assign(table, chosen))
    np.testing.assert_allclose(model.predict_proba(overlapping), table / table.sum(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
def test_labels_without_view_weights_follow_the_sum_of_posteriors(n_clusters, two_views):
    model = MultiViewConvexMixture(n_clusters, weighted=False, beta_scale=2.0).fit(two_views)
    chosen = model.exemplar_indices_
    assert chosen.tolist() == oracle.exemplars(model.priors_.round(12), n_clusters)
    table = oracle.summed_posteriors(components(model, two_views), model.priors_, chosen)
    np.testing.assert_array_equal(model.labels_, oracle.assign(table, chosen))
    np.testing.assert_allclose(model.predict_proba(two_views), table / table.sum(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("normalizer", [None, "gaussian"])
@pytest.mark.parametrize("n_clusters", [2, 4])
def test_labels_with_view_weights_follow_the_posterior_of_the_mixture(n_clusters, normalizer, two_views):
    model = MultiViewConvexMixture(n_clusters, normalizer=normalizer, beta_scale=2.0).fit(two_views)
    chosen = model.exemplar_indices_
    assert chosen.tolist() == oracle.exemplars(model.priors_.round(12), n_clusters)
    factors = np.ones(2) if normalizer is None else model.betas_ / np.pi  # two features each
    views = components(model, two_views)
    table = oracle.weighted_posteriors(views, model.priors_, model.view_weights_, factors, chosen)
    np.testing.assert_array_equal(model.labels_, oracle.assign(table, chosen))
    np.testing.assert_allclose(model.predict_proba(two_views), table / table.sum(axis=1, keepdims=True), rtol=1e-6)
    shares = oracle.uniform(60)
    expected = oracle.weighted_likelihood(views, shares, model.priors_, model.view_weights_, factors)
    assert model.log_likelihood_ == pytest.approx(expected)


@both
def test_without_a_number_of_clusters_every_sample_with_a_prior_is_an_exemplar(cls, overlapping):
    model = cls(None, beta_scale=3.0).fit(overlapping)
    np.testing.assert_array_equal(np.sort(model.exemplar_indices_), np.flatnonzero(model.priors_))
    assert (np.diff(model.priors_[model.exemplar_indices_].round(12)) <= 0).all()
    assert set(model.labels_) == set(range(len(model.exemplar_indices_)))


def test_a_larger_beta_gives_more_clusters(overlapping):
    sizes = [len(ConvexMixture(beta_scale=s).fit(overlapping).exemplar_indices_) for s in (0.01, 1.0, 5.0, 1e3)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 1
    assert sizes[-1] == 60


def test_the_groups_are_found():
    X, y = blobs(20)
    assert same_partition(ConvexMixture(3).fit(X).labels_, y)
    for weighted in (False, True):
        model = MultiViewConvexMixture(3, weighted=weighted, views=[[0, 1], [2, 3]]).fit(X)
        assert same_partition(model.labels_, y)


@both
@pytest.mark.parametrize("solver", ["em", "newton", "auto"])
def test_every_solver_finds_the_same_clusters(cls, solver):
    X, y = blobs(10)
    model = cls(3, solver=solver, tol=1e-3).fit(X)
    assert same_partition(model.labels_, y)
    assert model.optimality_gap_ <= 1e-3


@pytest.mark.parametrize("stopping", ["order", "change"])
def test_em_stops_by_the_rules_of_the_source(stopping):
    X, y = blobs(10)
    model = ConvexMixture(3, solver="em", stopping=stopping, tol=1e-4).fit(X)
    assert model.converged_
    assert same_partition(model.labels_, y)
    whole = ConvexMixture(3, solver="em", tol=1e-4, max_iter=50_000).fit(X)
    assert model.n_iter_ < whole.n_iter_


# --- new samples -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"divergence": "kernel"}, {"divergence": "kernel", "kernel": "linear"}])
def test_training_samples_are_placed_where_they_were_but_for_exemplars(options, overlapping):
    model = ConvexMixture(4, beta_scale=2.0, **options).fit(overlapping)
    rest = others(model)
    np.testing.assert_array_equal(model.predict(overlapping)[rest], model.labels_[rest])
    for weighted in (False, True):
        views = [overlapping[:, :2], overlapping[:, 2:]]
        model = MultiViewConvexMixture(4, weighted=weighted, beta_scale=2.0, **options).fit(views)
        rest = others(model)
        np.testing.assert_array_equal(model.predict(views)[rest], model.labels_[rest])


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_new_samples_are_placed_by_posteriors_over_the_exemplars(smoothing, overlapping):
    new = blobs(15, seed=5, spread=7.0)[0]
    model = ConvexMixture(4, beta_scale=2.0, smoothing=smoothing).fit(overlapping)
    moved = oracle.smoothed(overlapping, oracle.uniform(60), smoothing)[model.exemplar_indices_]
    expected = model.priors_[model.exemplar_indices_] * oracle.components(squares(new, moved), model.beta_)
    proba = model.predict_proba(new)
    assert proba.shape == (45, 4)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(proba, expected / expected.sum(axis=1, keepdims=True), rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(model.predict(new), proba.argmax(axis=1))
    np.testing.assert_array_equal(model.predict(new[7:8]), model.predict(new)[7:8])


@learned
def test_new_samples_of_several_views_have_probabilities_that_add_up(weighted, two_views):
    new = blobs(15, seed=5, spread=7.0)[0]
    model = MultiViewConvexMixture(3, weighted=weighted, beta_scale=2.0).fit(two_views)
    proba = model.predict_proba([new[:, :2], new[:, 2:]])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict([new[:, :2], new[:, 2:]]), proba.argmax(axis=1))
    chosen, values = model.exemplar_indices_, np.zeros((45, 3))
    for v, (X, view) in enumerate(zip(two_views, (new[:, :2], new[:, 2:]), strict=True)):
        f = oracle.components(squares(view, X), model.betas_[v])
        joint = model.priors_[chosen] * f[:, chosen]
        values += model.view_weights_[v] * joint if weighted else joint / (f @ model.priors_)[:, None]
    np.testing.assert_allclose(proba, values / values.sum(axis=1, keepdims=True), rtol=1e-6, atol=1e-12)


def test_a_sample_far_from_everything_still_has_probabilities():
    X = blobs(10)[0]
    for model in (ConvexMixture(3, beta=50.0).fit(X), MultiViewConvexMixture(3, views=[[0, 1], [2, 3]]).fit(X)):
        proba = model.predict_proba(np.full((1, 4), 1e4))
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)


@both
def test_what_is_not_fitted_cannot_predict(cls):
    for method in ("predict", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(cls(2), method)(np.ones((2, 2)))


# --- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sqeuclidean", "poisson", "kernel"])
def test_a_whole_weight_is_the_same_as_repeated_rows(name):
    X, y = blobs(8)
    X = np.abs(X) + 0.5
    counts = np.random.default_rng(0).integers(1, 4, len(X))
    # beta_0 of the source counts rows: with weights and with copies it is not the same.
    options = {"divergence": name, "beta": 8.0 if name == "kernel" else 0.1, **TIGHT}
    options |= {"kernel_params": {"sigma": 8.0}} if name == "kernel" else {"smoothing": 0.1}
    weighted = ConvexMixture(3, **options).fit(X, sample_weight=counts)
    repeated = ConvexMixture(3, **options).fit(np.repeat(X, counts, axis=0))
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, abs=1e-7)
    np.testing.assert_allclose(X[weighted.exemplar_indices_], np.repeat(X, counts, axis=0)[repeated.exemplar_indices_])
    np.testing.assert_array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)
    assert same_partition(weighted.labels_, y)


@learned
def test_a_whole_weight_is_the_same_as_repeated_rows_of_every_view(weighted):
    X, _ = blobs(8)
    counts = np.random.default_rng(0).integers(1, 4, len(X))
    options = {"weighted": weighted, "views": [[0, 1], [2, 3]], "beta": 0.1, **TIGHT}
    model = MultiViewConvexMixture(3, **options).fit(X, sample_weight=counts)
    repeated = MultiViewConvexMixture(3, **options).fit(np.repeat(X, counts, axis=0))
    assert model.log_likelihood_ == pytest.approx(repeated.log_likelihood_, abs=1e-6)
    np.testing.assert_allclose(model.view_weights_, repeated.view_weights_, atol=1e-3)
    np.testing.assert_array_equal(np.repeat(model.labels_, counts), repeated.labels_)


@both
def test_samples_of_weight_zero_are_no_components_and_only_get_a_label(cls, overlapping):
    weights = np.ones(60)
    weights[::4] = 0.0
    alone = cls(4).fit(overlapping[weights > 0])
    far = overlapping.copy()
    far[::4] += 100.0  # wherever they lie
    model = cls(4).fit(far, sample_weight=weights)
    assert model.log_likelihood_ == pytest.approx(alone.log_likelihood_)
    assert (model.priors_[::4] == 0).all()
    np.testing.assert_allclose(model.priors_[weights > 0], alone.priors_, atol=1e-5)
    np.testing.assert_array_equal(model.labels_[weights > 0], alone.labels_)
    np.testing.assert_array_equal(np.flatnonzero(weights)[alone.exemplar_indices_], model.exemplar_indices_)
    np.testing.assert_array_equal(model.labels_[::4], model.predict(far[::4]))


@both
def test_one_sample_with_a_weight_is_the_only_exemplar(cls, overlapping):
    weights = np.zeros(60)
    weights[7] = 2.0
    model = cls(None).fit(overlapping, sample_weight=weights)
    assert model.exemplar_indices_.tolist() == [7]
    assert model.priors_[7] == 1.0
    assert (model.labels_ == 0).all()
    with pytest.raises(ParameterError, match="Only 1 samples have a positive weight"):
        cls(2).fit(overlapping, sample_weight=weights)


def test_one_sample_with_a_weight_needs_no_beta_even_if_its_own_divergence_is_above_zero():
    D = squares(blobs(3)[0]) + 0.5
    model = ConvexMixture(divergence="precomputed").fit(D, sample_weight=np.eye(9)[2])
    assert model.exemplar_indices_.tolist() == [2]


def test_the_scale_of_all_weights_does_not_matter(overlapping):
    weights = np.random.default_rng(0).uniform(0.1, 2.0, 60)
    one, other = (ConvexMixture(4).fit(overlapping, sample_weight=c * weights) for c in (1.0, 1e6))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_)


def test_the_order_of_the_samples_does_not_matter(overlapping):
    order = np.random.default_rng(0).permutation(60)
    plain, mixed = ConvexMixture(4, **TIGHT).fit(overlapping), ConvexMixture(4, **TIGHT).fit(overlapping[order])
    np.testing.assert_array_equal(plain.labels_[order], mixed.labels_)
    np.testing.assert_array_equal(order[mixed.exemplar_indices_], plain.exemplar_indices_)


def test_equal_samples_are_one_exemplar_with_all_of_their_priors():
    rng = np.random.default_rng(0)
    X = rng.permutation(np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], [6, 3, 4], axis=0))
    for model in (ConvexMixture(), MultiViewConvexMixture(views=[[0], [1]], weighted=False)):
        model.fit(X)
        assert len(model.exemplar_indices_) == 3
        np.testing.assert_array_equal(X[model.exemplar_indices_], [[0.0, 0.0], [0.0, 9.0], [9.0, 0.0]])
        for x, e in zip(X, X[model.exemplar_indices_][model.labels_], strict=True):
            np.testing.assert_array_equal(x, e)
    np.testing.assert_allclose(ConvexMixture(3).fit(X).predict_proba([[0.0, 0.0]])[0].argmax(), 0)


def test_samples_equal_in_one_view_are_not_yet_one_exemplar():
    one = np.repeat([[0.0], [5.0]], 4, axis=0)
    other = np.tile([[0.0], [5.0]], (4, 1))
    model = MultiViewConvexMixture(weighted=False).fit([one, other])
    assert len(model.exemplar_indices_) == 4


# --- divergences -----------------------------------------------------------------------------------------------------


@both
def test_squared_distances_are_the_divergence_of_a_linear_kernel(cls, overlapping):
    options = {"n_clusters": 4, "beta_scale": 2.0, **TIGHT}
    plain = cls(**options).fit(overlapping)
    kernel = cls(divergence="kernel", kernel="linear", **options).fit(overlapping)
    K = linear_kernel(overlapping)
    precomputed = cls(divergence="kernel", kernel="precomputed", **options).fit(K)
    D = cls(divergence="precomputed", **options).fit(squares(overlapping))
    new = blobs(10, seed=4, spread=6.0)[0]
    rows = {"kernel": new, "given": linear_kernel(new, overlapping), "D": squares(new, overlapping)}
    for other, X in zip((kernel, precomputed, D), rows.values(), strict=True):
        np.testing.assert_array_equal(other.labels_, plain.labels_)
        np.testing.assert_array_equal(other.exemplar_indices_, plain.exemplar_indices_)
        assert other.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-7)
        np.testing.assert_array_equal(other.predict(X), plain.predict(new))
        np.testing.assert_allclose(other.predict_proba(X), plain.predict_proba(new), atol=1e-5)


@pytest.mark.parametrize("name", ["sqeuclidean", "poisson", "bernoulli", "exponential"])
def test_given_divergences_are_those_of_the_features(name):
    X, new = (np.random.default_rng(seed).uniform(0.05, 0.95, (20, 3)) for seed in (0, 1))
    features = ConvexMixture(3, divergence=name, **TIGHT).fit(X)
    precomputed = ConvexMixture(3, divergence="precomputed", **TIGHT).fit(oracle.divergences(name, X))
    assert precomputed.beta_ == pytest.approx(features.beta_)
    np.testing.assert_array_equal(precomputed.exemplar_indices_, features.exemplar_indices_)
    np.testing.assert_array_equal(precomputed.labels_, features.labels_)
    D = oracle.divergences(name, new, X)
    np.testing.assert_array_equal(precomputed.predict(D), features.predict(new))
    np.testing.assert_allclose(precomputed.predict_proba(D), features.predict_proba(new), atol=1e-5)


def test_divergences_go_from_rows_to_columns():
    # Every sample is near to the second column, as a component; the second row is far from all others.
    D = np.full((4, 4), 3.0)
    np.fill_diagonal(D, 0.0)
    D[:, 1] = [0.1, 0.0, 0.1, 0.1]
    model = ConvexMixture(1, divergence="precomputed", beta=1.0).fit(D)
    assert model.exemplar_indices_.tolist() == [1]
    assert ConvexMixture(1, divergence="precomputed", beta=1.0).fit(D.T).priors_[1] < 0.5


def test_infinite_divergences_keep_samples_apart():
    D = np.full((6, 6), np.inf)
    for group in ([0, 3], [1, 4], [2, 5]):
        D[np.ix_(group, group)] = [[0.0, 0.4], [0.3, 0.0]]
    model = ConvexMixture(3, divergence="precomputed", beta=1.0).fit(D)
    assert same_partition(model.labels_, [0, 1, 2, 0, 1, 2])
    np.testing.assert_array_equal(model.predict(D), model.labels_)
    new = np.array([[np.inf, np.inf, 1.0, np.inf, np.inf, 0.1]])
    assert model.predict(new) == model.labels_[2]
    assert model.predict_proba(new).max() == 1.0


def test_a_component_may_exclude_its_own_sample():
    D = np.full((5, 5), 4.0)
    np.fill_diagonal(D, 0.0)
    D[:, 3], D[3, 3], D[3, 0] = 0.1, np.inf, 1.0  # the best component for all others
    model = ConvexMixture(divergence="precomputed", beta=1.0).fit(D)
    assert 3 in model.exemplar_indices_
    assert np.isfinite(model.log_likelihood_)


def test_sparse_features_give_the_clusters_of_dense_ones(overlapping):
    X = np.where(np.abs(overlapping) < 3.0, 0.0, overlapping)
    new = np.where(np.abs(blobs(5, seed=2)[0]) < 3.0, 0.0, blobs(5, seed=2)[0])
    for options in ({}, {"divergence": "kernel"}, {"divergence": "kernel", "kernel": "linear"}, {"smoothing": 0.2}):
        dense = ConvexMixture(4, **TIGHT, **options).fit(X)
        sparse = ConvexMixture(4, **TIGHT, **options).fit(sp.csr_array(X))
        assert sparse.log_likelihood_ == pytest.approx(dense.log_likelihood_, abs=1e-7)
        np.testing.assert_array_equal(sparse.labels_, dense.labels_)
        for fitted in (dense, sparse):
            np.testing.assert_array_equal(fitted.predict(sp.csr_array(new)), dense.predict(new))
    views = [sp.csr_array(X[:, :2]), X[:, 2:]]
    model = MultiViewConvexMixture(4).fit(views)
    np.testing.assert_array_equal(model.labels_, MultiViewConvexMixture(4).fit([X[:, :2], X[:, 2:]]).labels_)
    np.testing.assert_array_equal(model.predict(views)[others(model)], model.labels_[others(model)])


@pytest.mark.parametrize("name", ["poisson", "bernoulli", "exponential"])
def test_sparse_features_of_other_families_are_refused_with_a_sentence(name):
    X = np.random.default_rng(0).uniform(0.1, 0.9, (12, 3))
    for model in (ConvexMixture(2, divergence=name), MultiViewConvexMixture(2, divergence=name)):
        with pytest.raises((TypeError, ValueError), match=r"(?i)sparse.*dense"):
            model.fit(sp.csr_array(X))
    with pytest.raises((TypeError, ValueError), match=r"(?i)(sparse.*dense|dense.*sparse)"):
        MultiViewConvexMixture(2, divergence=["sqeuclidean", name]).fit([X, sp.csr_array(X)])


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "self_tuning", RBF(5.0), linear_kernel])
def test_any_kernel_can_be_used_and_places_new_samples(kernel):
    X, y = blobs(12)
    model = ConvexMixture(3, divergence="kernel", kernel=kernel).fit(X)
    assert kernel in ("poly", "self_tuning") or same_partition(model.labels_, y)
    np.testing.assert_array_equal(model.predict(X)[others(model)], model.labels_[others(model)])
    np.testing.assert_allclose(model.predict_proba(X + 0.1).sum(axis=1), 1.0)


def test_a_precomputed_kernel_gives_the_labels_of_its_features(overlapping):
    K = rbf_kernel(overlapping, gamma=1.0 / 72.0)
    options = {"n_clusters": 4, "divergence": "kernel", **TIGHT}
    features = ConvexMixture(kernel_params={"sigma": 6.0}, **options).fit(overlapping)
    new = blobs(10, seed=4, spread=6.0)[0]
    for form in (K, sp.csr_array(K)):
        precomputed = ConvexMixture(kernel="precomputed", **options).fit(form)
        np.testing.assert_array_equal(precomputed.labels_, features.labels_)
        cross = rbf_kernel(new, overlapping, gamma=1.0 / 72.0)
        np.testing.assert_array_equal(precomputed.predict(cross), features.predict(new))
        np.testing.assert_allclose(precomputed.predict_proba(cross), features.predict_proba(new), atol=1e-6)


# --- binary data -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_two_templates_with_flipped_bits_are_told_apart(seed):
    X, y = templates(seed, n=60)
    model = ConvexMixture(2, divergence="bernoulli", smoothing=0.1).fit(X[:80])
    assert adjusted_rand_score(model.labels_, y[:80]) > 0.9
    assert adjusted_rand_score(model.predict(X[80:]), y[80:]) > 0.85


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_with_smoothing_a_value_that_training_never_had_is_placed_or_refused_without_asking_for_smoothing(value):
    X, _ = templates(0)
    X[:, 0] = value
    model = ConvexMixture(2, divergence="bernoulli", smoothing=0.1).fit(X)
    new = X[:1].copy()
    new[0, 0] = 1.0 - value
    complaint = ""
    try:
        model.predict(new)
    except ParameterError as error:
        complaint = str(error)
    assert "smoothing above 0" not in complaint


def test_without_smoothing_beta_cannot_be_set_by_itself():
    X, _ = templates(0)
    match = r"beta='auto'.*in X are infinite.*Set smoothing \(for instance 0\.05\), or give beta"
    with pytest.raises(ParameterError, match=match):
        ConvexMixture(2, divergence="bernoulli").fit(X)
    with pytest.raises(ParameterError, match=r"view 'bits' are infinite"):
        MultiViewConvexMixture(2, divergence="bernoulli").fit({"bits": X, "more": X})
    # With a beta no sample but an equal one can be of the same component.
    model = ConvexMixture(divergence="bernoulli", beta=1.0).fit(X)
    assert len(model.exemplar_indices_) == len(np.unique(X, axis=0))


def test_a_new_sample_that_no_exemplar_allows_is_refused_with_a_remedy():
    X = np.repeat(np.eye(3), 5, axis=0)
    alien = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    message = r"Sample 1 of X has an infinite divergence from every exemplar.*smoothing above 0"
    plain = ConvexMixture(3, divergence="bernoulli", beta=1.0).fit(X)
    for method in (plain.predict, plain.predict_proba):
        with pytest.raises(ParameterError, match=message):
            method(alien)
    smooth = ConvexMixture(3, divergence="bernoulli", beta=1.0, smoothing=0.05).fit(X)
    assert smooth.predict(alien).shape == (2,)
    for weighted in (False, True):
        model = MultiViewConvexMixture(3, divergence="bernoulli", beta=1.0, weighted=weighted).fit([X, X])
        with pytest.raises(ParameterError, match=message):
            model.predict([alien, alien])


def test_a_new_sample_that_one_view_excludes_is_placed_by_the_other():
    X = np.repeat(np.eye(3), 5, axis=0)
    model = MultiViewConvexMixture(3, divergence="bernoulli", beta=1.0).fit([X, X])
    labels = model.predict([np.ones((1, 3)), X[:1]])
    assert labels == model.labels_[0]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_training_sample_without_weight_may_be_excluded_by_every_component(weighted):
    X = np.concatenate([np.repeat(np.eye(3), 5, axis=0), np.ones((1, 3))])
    weights = np.append(np.ones(15), 0.0)
    for model, data in (
        (ConvexMixture(3, divergence="bernoulli", beta=1.0), X),
        (MultiViewConvexMixture(3, divergence="bernoulli", beta=1.0, weighted=weighted), [X, X]),
    ):
        model.fit(data, sample_weight=weights)
        assert same_partition(model.labels_[:15], np.repeat([0, 1, 2], 5))


def test_a_row_of_infinite_divergences_is_refused_with_its_number():
    D = squares(blobs(4)[0])
    D[5] = np.inf
    with pytest.raises(ParameterError, match=r"\b5\b"):
        ConvexMixture(2, divergence="precomputed", beta=1.0).fit(D)


def test_a_training_sample_that_every_chosen_exemplar_excludes_is_not_labelled_in_silence():
    X = np.repeat(np.eye(3), 5, axis=0)
    # Two exemplars for three groups: the third cannot come from either. Predict says so; fit must not be silent.
    with pytest.raises((ParameterError, ConvergenceWarning), match="infinite"):
        ConvexMixture(2, divergence="bernoulli", beta=1.0).fit(X)


# --- several views ---------------------------------------------------------------------------------------------------


@learned
def test_one_view_is_the_mixture_of_one_view(weighted, overlapping):
    plain = ConvexMixture(4, **TIGHT).fit(overlapping)
    for X in (overlapping, [overlapping], {"only": overlapping}):
        model = MultiViewConvexMixture(4, weighted=weighted, **TIGHT).fit(X)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_array_equal(model.priors_, plain.priors_)
        np.testing.assert_array_equal(model.view_weights_, [1.0])
        assert model.log_likelihood_ == plain.log_likelihood_
        assert model.betas_.tolist() == [plain.beta_]
        new = blobs(10, seed=4, spread=6.0)[0]
        again = new if isinstance(X, np.ndarray) else [new] if isinstance(X, list) else {"only": new}
        np.testing.assert_allclose(model.predict_proba(again), plain.predict_proba(new), rtol=1e-6, atol=1e-12)


@learned
def test_a_view_given_twice_is_that_view(weighted, overlapping):
    plain = ConvexMixture(4, **TIGHT).fit(overlapping)
    model = MultiViewConvexMixture(4, weighted=weighted, **TIGHT).fit([overlapping, overlapping])
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_allclose(model.view_weights_, [0.5, 0.5])
    assert model.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-7)


def test_without_view_weights_the_likelihood_is_the_best_there_is(two_views):
    model = MultiViewConvexMixture(3, weighted=False, tol=1e-7).fit(two_views)
    views, shares = components(model, two_views), oracle.uniform(60)
    gradient = oracle.gradient(views, shares, model.priors_)
    assert model.optimality_gap_ == pytest.approx(gradient.max() - 1.0, abs=1e-9)
    assert model.optimality_gap_ <= 1e-7
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = rng.dirichlet(np.full(60, 0.05))
        assert oracle.likelihood(views, shares, other) <= model.log_likelihood_ + model.optimality_gap_


@pytest.mark.parametrize("seed", range(3))
def test_a_view_of_noise_gets_little_weight(seed):
    X, y = blobs(25, seed=seed, spread=2.0)
    noise = np.random.default_rng(seed).standard_normal((75, 2))
    model = MultiViewConvexMixture(3).fit({"good": X[:, :2], "noise": noise, "fair": X[:, 2:]})
    assert model.view_weights_[1] < 0.1
    assert same_partition(model.labels_, y)


@pytest.mark.parametrize("form", [list, tuple, dict])
def test_divergence_beta_and_kernel_can_be_chosen_for_every_view(form):
    X, _ = blobs(12)
    views = {"a": X[:, :2], "b": np.abs(X[:, 2:]) + 1.0, "c": (X[:, :2] > 5).astype(float)}

    def per_view(*values):
        return dict(zip(views, values, strict=True)) if form is dict else form(values)

    model = MultiViewConvexMixture(
        divergence=per_view("kernel", "exponential", "bernoulli"),
        beta=per_view("auto", 0.7, "auto"),
        kernel=per_view("rbf", "linear", "linear"),
        kernel_params=per_view({"sigma": 4.0}, None, None),
        smoothing=0.05,
    ).fit(views)
    shares = oracle.uniform(36)
    D = [
        oracle.feature_space(rbf_kernel(views["a"], gamma=1 / 32)),
        oracle.divergences("exponential", views["b"], oracle.smoothed(views["b"], shares, 0.05)),
        oracle.divergences("bernoulli", views["c"], oracle.smoothed(views["c"], shares, 0.05)),
    ]
    np.testing.assert_allclose(model.betas_, [oracle.reference_beta(D[0]), 0.7, oracle.reference_beta(D[2])])
    f = [oracle.components(d, beta) for d, beta in zip(D, model.betas_, strict=True)]
    expected = oracle.weighted_likelihood(f, shares, model.priors_, model.view_weights_, np.ones(3))
    assert model.log_likelihood_ == pytest.approx(expected, abs=1e-8)
    np.testing.assert_allclose(model.predict_proba(views).sum(axis=1), 1.0)


def test_one_choice_holds_for_all_views(two_views):
    params = {"sigma": 5.0}
    one = MultiViewConvexMixture(3, divergence="kernel", kernel_params=params, beta=2.0).fit(two_views)
    many = MultiViewConvexMixture(
        3, divergence=["kernel"] * 2, kernel=["rbf"] * 2, kernel_params=[params] * 2, beta=[2.0, 2.0]
    ).fit(two_views)
    np.testing.assert_array_equal(one.labels_, many.labels_)
    assert one.log_likelihood_ == many.log_likelihood_


@learned
def test_a_gaussian_view_and_a_bernoulli_view_find_the_groups_together(weighted):
    bits, y = templates(0, n=50, flipped=0.15)
    points = np.random.default_rng(0).normal(3.0 * y[:, None], 1.0, (100, 2))
    model = MultiViewConvexMixture(2, divergence=["sqeuclidean", "bernoulli"], smoothing=0.1, weighted=weighted)
    model.fit([points[:70], bits[:70]])
    assert adjusted_rand_score(y[:70], model.labels_) > 0.8
    assert adjusted_rand_score(y[70:], model.predict([points[70:], bits[70:]])) > 0.7


def test_first_view_weights_decide_where_views_disagree():
    rng = np.random.default_rng(0)
    y = [rng.permutation(np.arange(40) % 2) for _ in range(2)]
    views = {"one": rng.normal(6.0 * y[0][:, None], 0.5), "two": rng.normal(6.0 * y[1][:, None], 0.5)}
    for weights, right in (([0.95, 0.05], 0), ([0.05, 0.95], 1), ({"two": 9.0, "one": 1.0}, 1), ([1, 0], 0)):
        model = MultiViewConvexMixture(2, init_view_weights=weights).fit(views)
        assert same_partition(model.labels_, y[right])
        assert model.view_weights_[right] > 0.9
    assert model.view_weights_.tolist() == pytest.approx([1.0, 0.0], abs=1e-15)


def test_the_normaliser_compares_views_as_densities():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    # The same view in another unit: the same divergences times beta, but other densities.
    views = [X, 100.0 * X]
    plain = MultiViewConvexMixture(2).fit(views)
    np.testing.assert_allclose(plain.view_weights_, [0.5, 0.5], atol=1e-6)
    dense = MultiViewConvexMixture(2, normalizer="gaussian").fit(views)
    assert dense.view_weights_[0] > 0.99
    np.testing.assert_allclose(dense.betas_, plain.betas_)
    one = MultiViewConvexMixture(2, normalizer="gaussian", beta=3.0).fit([X, X])
    without = MultiViewConvexMixture(2, beta=3.0).fit([X, X])
    assert one.log_likelihood_ - without.log_likelihood_ == pytest.approx(np.log(3.0 / np.pi))


def test_rows_of_precomputed_kernels_are_placed_where_the_views_need_no_comparison(two_views):
    kernels = [rbf_kernel(X, gamma=0.01) for X in two_views]
    options = {"n_clusters": 3, "divergence": "kernel"}
    features = {"kernel_params": {"gamma": 0.01}}
    for choice in ({"weighted": False}, {"refine": "kernel_kmeans"}):
        precomputed = MultiViewConvexMixture(kernel="precomputed", **options, **choice).fit(kernels)
        plain = MultiViewConvexMixture(**features, **options, **choice).fit(two_views)
        np.testing.assert_array_equal(precomputed.labels_, plain.labels_)
        np.testing.assert_array_equal(precomputed.predict(kernels), plain.predict(two_views))
    learned_weights = MultiViewConvexMixture(kernel="precomputed", **options).fit(kernels)
    plain = MultiViewConvexMixture(**features, **options).fit(two_views)
    np.testing.assert_array_equal(learned_weights.labels_, plain.labels_)
    with pytest.raises(KernelError, match=r"k\(x, x\).*view_weights='uniform' or refine='kernel_kmeans'"):
        learned_weights.predict(kernels)


@learned
def test_given_divergences_of_several_views_are_those_of_the_features(weighted, two_views):
    options = {"n_clusters": 3, "weighted": weighted}
    plain = MultiViewConvexMixture(**options).fit(two_views)
    precomputed = MultiViewConvexMixture(divergence="precomputed", **options).fit([squares(X) for X in two_views])
    np.testing.assert_array_equal(precomputed.labels_, plain.labels_)
    new = [view for X in [blobs(6, seed=9, spread=6.0)[0]] for view in (X[:, :2], X[:, 2:])]
    rows = [squares(view, X) for view, X in zip(new, two_views, strict=True)]
    np.testing.assert_allclose(precomputed.predict_proba(rows), plain.predict_proba(new), atol=1e-5)


# --- k-means afterwards ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_refinement_lowers_the_objective_of_k_means_and_places_by_the_nearest_centre(seed):
    X = blobs(25, seed=seed, spread=5.0)[0]
    start = ConvexMixture(5, beta_scale=2.0).fit(X)
    model = ConvexMixture(5, beta_scale=2.0, refine="kernel_kmeans").fit(X)
    np.testing.assert_array_equal(model.exemplar_indices_, start.exemplar_indices_)
    means = np.stack([X[start.labels_ == c].mean(axis=0) for c in range(5)])
    lloyd = KMeans(5, init=means, n_init=1, tol=0.0, algorithm="lloyd").fit(X)
    assert model.inertia_ == pytest.approx(lloyd.inertia_)
    np.testing.assert_array_equal(model.labels_, lloyd.labels_)
    before = sum(((X[start.labels_ == c] - means[c]) ** 2).sum() for c in range(5))
    assert model.inertia_ < before
    new = blobs(20, seed=seed + 10, spread=7.0)[0]
    np.testing.assert_array_equal(model.predict(new), lloyd.predict(new))
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_refinement_in_a_feature_space_is_kernel_k_means_from_the_labels(overlapping):
    options = {"divergence": "kernel", "kernel_params": {"sigma": 6.0}}
    start = ConvexMixture(5, **options).fit(overlapping)
    model = ConvexMixture(5, refine="kernel_kmeans", **options).fit(overlapping)
    plain = KernelKMeans(5, init=start.labels_, kernel_params={"sigma": 6.0}).fit(overlapping)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.inertia_ == pytest.approx(plain.inertia_)
    new = blobs(10, seed=3, spread=6.0)[0]
    np.testing.assert_array_equal(model.predict(new), plain.predict(new))


def test_refinement_of_several_views_works_on_the_sum_of_their_kernels_times_the_weights(two_views):
    for weighted in (False, True):
        start = MultiViewConvexMixture(4, weighted=weighted).fit(two_views)
        model = MultiViewConvexMixture(4, weighted=weighted, refine="kernel_kmeans").fit(two_views)
        scaled = np.hstack([np.sqrt(w) * X for w, X in zip(start.view_weights_, two_views, strict=True)])
        plain = KernelKMeans(4, kernel="linear", init=start.labels_).fit(scaled)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        assert model.inertia_ == pytest.approx(plain.inertia_)
        np.testing.assert_array_equal(model.predict(two_views), model.labels_)


def test_refinement_uses_the_bandwidth_of_the_mixture(overlapping):
    # The usual bandwidth follows from the samples that count.
    far, weights = np.concatenate([overlapping, np.full((1, 4), 1e3)]), np.append(np.ones(60), 0.0)
    options = {"n_clusters": 4, "divergence": "kernel", "refine": "kernel_kmeans"}
    alone = ConvexMixture(**options).fit(overlapping)
    model = ConvexMixture(**options).fit(far, sample_weight=weights)
    assert model.beta_ == pytest.approx(alone.beta_)
    assert model.inertia_ == pytest.approx(alone.inertia_)
    np.testing.assert_array_equal(model.labels_[:60], alone.labels_)


@pytest.mark.parametrize("place", [1e4, 1e6])
def test_refinement_does_not_depend_on_where_the_data_lie(place, overlapping):
    near = ConvexMixture(5, refine="kernel_kmeans").fit(overlapping)
    far = ConvexMixture(5, refine="kernel_kmeans").fit(overlapping + place)
    assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-6)
    np.testing.assert_array_equal(far.labels_, near.labels_)
    np.testing.assert_array_equal(far.predict(overlapping + place), far.labels_)


def test_refinement_with_weights_is_that_of_repeated_rows():
    X, _ = blobs(10, spread=4.0)
    counts = np.random.default_rng(0).integers(1, 4, 30)
    options = {"refine": "kernel_kmeans", "beta": 0.05, **TIGHT}
    weighted = ConvexMixture(4, **options).fit(X, sample_weight=counts)
    repeated = ConvexMixture(4, **options).fit(np.repeat(X, counts, axis=0))
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)
    heavy = 1.0 + 50.0 * (np.arange(30) % 7 == 0)  # far from the plain means
    model = ConvexMixture(4, **options).fit(X, sample_weight=heavy)
    masses = np.eye(4)[model.labels_] * heavy[:, None]
    new = blobs(60, seed=2, spread=8.0)[0]
    np.testing.assert_array_equal(
        model.predict(new), squares(new, masses.T @ X / masses.sum(axis=0)[:, None]).argmin(axis=1)
    )


@both
def test_after_refinement_there_are_no_probabilities(cls, overlapping):
    model = cls(3, refine="kernel_kmeans").fit(overlapping)
    assert not hasattr(model, "predict_proba")
    assert hasattr(cls(3), "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba") as error:
        model.predict_proba(overlapping)
    assert "Set refine=None for predict_proba" in str(error.value.__cause__)


@pytest.mark.parametrize("name", ["poisson", "bernoulli", "exponential", "precomputed"])
def test_refinement_needs_a_feature_space(name):
    X = np.random.default_rng(0).uniform(0.1, 0.9, (10, 10))
    match = rf"refine='kernel_kmeans'.*divergence='{name}'.*Set refine=None"
    with pytest.raises(ParameterError, match=match):
        ConvexMixture(2, divergence=name, refine="kernel_kmeans").fit(X)
    with pytest.raises(ParameterError, match=match):
        MultiViewConvexMixture(2, divergence=["sqeuclidean", name], refine="kernel_kmeans").fit([X, X])


# --- warnings --------------------------------------------------------------------------------------------------------


@both
def test_too_few_priors_are_filled_up_with_a_warning(cls, overlapping):
    model = cls(4, beta_scale=0.01)
    with pytest.warns(ConvergenceWarning, match=r"Only 1 samples have a prior above zero.*n_clusters=4.*beta_scale"):
        model.fit(overlapping)
    assert len(model.exemplar_indices_) == len(set(model.exemplar_indices_.tolist())) == 4
    np.testing.assert_array_equal(np.bincount(model.labels_), [57, 1, 1, 1])
    np.testing.assert_array_equal(model.labels_[model.exemplar_indices_], np.arange(4))
    assert (model.predict(overlapping) == 0).all()
    np.testing.assert_allclose(model.predict_proba(overlapping), np.tile([1.0, 0.0, 0.0, 0.0], (60, 1)))
    gradient = oracle.gradient(components(model, [overlapping]), oracle.uniform(60), model.priors_)
    assert gradient[model.exemplar_indices_[1]] == pytest.approx(np.sort(gradient)[-2])


@both
def test_a_limit_that_is_too_small_gives_a_warning_and_a_whole_result(cls, overlapping):
    model = cls(3, max_iter=2)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2"):
        model.fit(overlapping)
    assert not model.converged_
    assert model.n_iter_ == 2
    assert set(model.labels_) == {0, 1, 2}
    assert model.optimality_gap_ > 1e-6


def test_a_limit_on_the_steps_of_learned_weights_gives_a_warning(two_views):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1"):
        model = MultiViewConvexMixture(3, max_iter=1).fit(two_views)
    assert model.n_iter_ == 1


@both
def test_fewer_distinct_samples_than_clusters_give_a_warning(cls):
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) found smaller than n_clusters \(4\)"):
        model = cls(4).fit(X)
    assert len(model.exemplar_indices_) == 2
    assert same_partition(model.labels_, np.repeat([0, 1], 5))


@both
def test_warnings_point_at_the_call_of_fit(cls, overlapping):
    alike = np.repeat([[0.0, 0.0], [5.0, 5.0]], 5, axis=0)
    for model, X in ((cls(3, max_iter=2), overlapping), (cls(4, beta_scale=0.01), overlapping), (cls(4), alike)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X)
        assert caught
        assert {warning.filename for warning in caught} == {__file__}


# --- what is refused -------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("beta", [0, -1.0, np.nan, np.inf, True])
def test_a_beta_that_is_not_positive_is_refused(cls, beta):
    with pytest.raises(ValueError, match="beta"):
        cls(2, beta=beta).fit(blobs(3)[0])


@pytest.mark.parametrize("beta", [[1.0, 0.0], [1.0, "large"], [1.0, None], {"view_0": -1, "view_1": 1}])
def test_a_beta_of_one_view_that_is_not_positive_is_refused(beta, two_views):
    with pytest.raises(ParameterError, match=r"beta=.* must be a positive number or 'auto'"):
        MultiViewConvexMixture(2, beta=beta).fit(two_views)


@both
@pytest.mark.parametrize("kind", [np.int64, np.float32, np.float64])
def test_a_beta_of_any_number_type_is_taken(cls, kind, overlapping):
    model = cls(2, beta=kind(2)).fit(overlapping)
    result = model.beta_ if cls is ConvexMixture else model.betas_[0]
    assert result == 2.0


@both
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_clusters", 0),
        ("n_clusters", 2.5),
        ("beta_scale", 0.0),
        ("smoothing", 1.0),
        ("smoothing", -0.1),
        ("solver", "fast"),
        ("tol", 0.0),
        ("max_iter", 0),
        ("refine", "k-means"),
        ("memory_limit", 0),
        ("divergence", "manhattan"),
        ("kernel", "gauss"),
        ("beta", "big"),
    ],
)
def test_values_that_make_no_sense_are_refused_by_name(cls, name, value):
    with pytest.raises(ValueError, match=name):
        cls(**{name: value}).fit(blobs(3)[0])


@both
@pytest.mark.parametrize("name", ["sqeuclidean", "poisson", "precomputed"])
def test_kernel_parameters_without_a_kernel_are_refused(cls, name):
    X = np.abs(blobs(3)[0][:, :1] - blobs(3)[0][:, :1].T)
    with pytest.raises(ParameterError, match=r"kernel_params=.*no effect.*divergence='kernel'"):
        cls(2, divergence=name, kernel_params={"sigma": 1.0}).fit(X)


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ([1.0], "1 entries for 2 views"),
        ([1.0, 1.0, 1.0], "3 entries for 2 views"),
        ([1.0, -1.0], "not negative"),
        ([0.0, 0.0], "not all zero"),
        ([1.0, np.nan], "finite"),
        ({"view_0": 1.0, "other": 1.0}, r"names views \['other', 'view_0'\]"),
        ({"view_0": 1.0}, "names views"),
    ],
)
def test_view_weights_that_do_not_fit_are_refused(weights, match, two_views):
    for name in ("view_weights", "init_view_weights"):
        with pytest.raises(ViewError, match=rf"^{name}.*{match}"):
            MultiViewConvexMixture(2, **{name: weights}).fit(two_views)


@pytest.mark.parametrize("name", ["poisson", "kernel", "precomputed"])
def test_the_normaliser_belongs_to_squared_distances(name):
    X = np.random.default_rng(0).random((6, 6))
    with pytest.raises(ParameterError, match=rf"normalizer='gaussian'.*view 'view_1' has divergence='{name}'"):
        MultiViewConvexMixture(2, divergence=["sqeuclidean", name], normalizer="gaussian").fit([X, X])


def test_an_unknown_divergence_in_a_list_is_refused_with_the_view_and_the_choice(two_views):
    with pytest.raises(ParameterError, match=r"divergence='cosine' of view 'view_1' is unknown.*'sqeuclidean'"):
        MultiViewConvexMixture(2, divergence=["sqeuclidean", "cosine"]).fit(two_views)


@pytest.mark.parametrize("name", ["divergence", "beta", "kernel", "kernel_params"])
def test_lists_and_dicts_that_do_not_match_the_views_are_refused_by_name(name, two_views):
    value = {"divergence": "kernel", "beta": 1.0, "kernel": "rbf", "kernel_params": {}}[name]
    for choice, match in (([value] * 3, "3 entries for 2 views"), ({"view_0": value, "x": value}, "names views")):
        with pytest.raises(ViewError, match=rf"{name} .*{match}"):
            MultiViewConvexMixture(2, **({"divergence": "kernel"} | {name: choice})).fit(two_views)


@pytest.mark.parametrize("bad", [-1.0, np.nan])
def test_given_divergences_that_cannot_be_any_are_refused_with_their_place(bad):
    D = squares(blobs(3)[0])
    D[2, 4] = bad
    with pytest.raises(ParameterError, match=rf"X\[2, 4\] = {bad}"):
        ConvexMixture(2, divergence="precomputed").fit(D)
    good = ConvexMixture(2, divergence="precomputed", beta=1.0).fit(squares(blobs(3)[0]))
    with pytest.raises(ParameterError, match=rf"X\[2, 4\] = {bad}"):
        good.predict(D)
    with pytest.raises(ParameterError, match=r"X has shape \(9, 8\)"):
        ConvexMixture(2, divergence="precomputed").fit(squares(blobs(3)[0])[:, :8])


def test_a_value_out_of_range_is_named_with_its_view_and_place(two_views):
    with pytest.raises(ParameterError, match=r"view 'view_1'\[\d+, \d\] = .*divergence='poisson'"):
        MultiViewConvexMixture(2, divergence=["sqeuclidean", "poisson"]).fit(two_views)
    with pytest.raises(ParameterError, match=r"X\[\d+, \d\] = .*between 0 and 1"):
        ConvexMixture(2, divergence="bernoulli").fit(two_views[0])


def test_views_that_do_not_fit_together_are_refused(two_views):
    with pytest.raises(ViewError, match="disagree on the number of samples"):
        MultiViewConvexMixture(2).fit([two_views[0], two_views[1][:-1]])
    model = MultiViewConvexMixture(2).fit({"a": two_views[0], "b": two_views[1]})
    with pytest.raises(ViewError, match=r"fitted on views \['a', 'b'\]"):
        model.predict({"a": two_views[0], "c": two_views[1]})
    with pytest.raises(ViewError, match="'b' has 1 features"):
        model.predict({"a": two_views[0], "b": two_views[1][:, :1]})


@both
def test_more_clusters_than_samples_are_refused(cls):
    with pytest.raises(ParameterError, match=r"n_samples=9 should be >= n_clusters=10"):
        cls(10).fit(blobs(3)[0])


# --- resources -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"divergence": "kernel"}, {"divergence": "precomputed"}])
def test_similarities_that_are_not_stored_give_the_same_labels(options, overlapping):
    X = squares(overlapping) if options.get("divergence") == "precomputed" else overlapping
    stored = ConvexMixture(4, **options).fit(X)
    again = ConvexMixture(4, memory_limit=1e-6, **options).fit(X)
    np.testing.assert_array_equal(again.labels_, stored.labels_)
    np.testing.assert_allclose(again.priors_, stored.priors_, atol=1e-4)
    new = X[:10] * 0.9
    np.testing.assert_array_equal(again.predict(new), stored.predict(new))
    if options.get("divergence") != "precomputed":
        views = [X[:, :2], X[:, 2:]]
        stored = MultiViewConvexMixture(3, **options).fit(views)
        again = MultiViewConvexMixture(3, memory_limit=1e-6, **options).fit(views)
        np.testing.assert_array_equal(again.labels_, stored.labels_)


@pytest.mark.parametrize("limit", [2048, 0.5])  # 0.5 MiB hold some of the 700 rows at a time
def test_labels_do_not_depend_on_the_number_of_threads(limit, monkeypatch):
    X = np.random.default_rng(0).standard_normal((700, 3)) + 3.0 * np.random.default_rng(1).integers(0, 3, (700, 1))
    result = []
    for count in (1, 2):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        with threadpool_limits(count):
            result.append(ConvexMixture(5, memory_limit=limit, tol=1e-4).fit(X))
    np.testing.assert_array_equal(result[0].labels_, result[1].labels_)
    np.testing.assert_array_equal(result[0].exemplar_indices_, result[1].exemplar_indices_)


@pytest.mark.parametrize(
    "model",
    [
        ConvexMixture(3, beta_scale=2.0),
        ConvexMixture(3, divergence="kernel", kernel_params={"sigma": 5.0}),
        ConvexMixture(3, refine="kernel_kmeans"),
        MultiViewConvexMixture(3, views={"a": [0, 1], "b": [2, 3]}, divergence={"a": "kernel", "b": "sqeuclidean"}),
        MultiViewConvexMixture(3, views=[[0, 1], [2, 3]], weighted=False, refine="kernel_kmeans"),
    ],
    ids=lambda model: f"{type(model).__name__} {model.divergence} {model.refine}",
)
def test_pickled_copies_predict_alike_and_clones_fit_alike(model, overlapping):
    model = clone(model).fit(overlapping)
    copy = pickle.loads(pickle.dumps(model))
    new = blobs(10, seed=3, spread=6.0)[0]
    np.testing.assert_array_equal(copy.predict(new), model.predict(new))
    again = clone(model)
    assert not hasattr(again, "labels_")
    np.testing.assert_array_equal(again.fit(overlapping).labels_, model.labels_)


def test_a_bar_goes_to_standard_error_when_asked_for(overlapping, capsys):
    views = [overlapping[:, :2], overlapping[:, 2:]]
    for model, X in ((ConvexMixture(3, verbose=1), overlapping), (MultiViewConvexMixture(3, verbose=1), views)):
        model.fit(X)
        out, err = capsys.readouterr()
        assert out == ""
        assert "steps" in err
        model.set_params(verbose=0).fit(X)
        assert capsys.readouterr() == ("", "")


# --- as the first half of global kernel k-means ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "params"),
    [("rbf", {"sigma": 6.0}), ("rbf", None), ("linear", None), ("laplacian", None), ("self_tuning", None)],
)
def test_global_kernel_k_means_tries_the_exemplars_of_the_mixture(kernel, params, overlapping):
    options = {"kernel": kernel, "kernel_params": params}
    mixture = ConvexMixture(divergence="kernel", **options).fit(overlapping)
    search = GlobalKernelKMeans(4, search="exemplars", n_exemplars=5, **options).fit(overlapping)
    count = min(5, len(mixture.exemplar_indices_))
    np.testing.assert_array_equal(search.exemplar_indices_, mixture.exemplar_indices_[:count])


def test_global_kernel_k_means_tries_the_exemplars_of_the_mixture_with_weights(overlapping):
    weights = np.random.default_rng(0).uniform(0.0, 2.0, 60) * (np.arange(60) % 5 > 0)
    mixture = ConvexMixture(divergence="kernel").fit(overlapping, sample_weight=weights)
    search = GlobalKernelKMeans(3, search="exemplars").fit(overlapping, sample_weight=weights)
    count = len(search.exemplar_indices_)
    np.testing.assert_array_equal(search.exemplar_indices_, mixture.exemplar_indices_[:count])


def test_global_kernel_k_means_tries_the_exemplars_of_the_mixture_on_an_indefinite_kernel():
    X = blobs(15)[0]
    options = {"kernel": "nearest_neighbors", "kernel_params": {"n_neighbors": 6}}
    mixture = ConvexMixture(divergence="kernel", **options).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPSDWarning)
        search = GlobalKernelKMeans(3, search="exemplars", n_exemplars=4, **options).fit(X)
    # Squares below zero make unlike samples equal; the mixture adds up their priors, the search takes them one by one.
    likeliest = np.argsort(-np.round(mixture.priors_, 12), kind="stable")[:4]
    np.testing.assert_array_equal(search.exemplar_indices_, likeliest)


def test_the_search_for_exemplars_keeps_to_the_memory_limit(overlapping, monkeypatch):
    limits = []
    real = exemplar_solver.feature_space_similarities

    def watched(op, beta, samples, memory_limit):
        limits.append(memory_limit)
        return real(op, beta, samples, memory_limit)

    monkeypatch.setattr(exemplar_solver, "feature_space_similarities", watched)
    small = GlobalKernelKMeans(4, search="exemplars", memory_limit=0.001).fit(overlapping)
    large = GlobalKernelKMeans(4, search="exemplars").fit(overlapping)
    # A kernel that is stored leaves less.
    assert limits == [0.001, pytest.approx(2048, abs=0.1)]
    assert limits[1] < 2048
    np.testing.assert_array_equal(small.exemplar_indices_, large.exemplar_indices_)
    np.testing.assert_array_equal(small.labels_, large.labels_)


@pytest.mark.parametrize("divergence", ["kernel", "precomputed"])
def test_smoothing_is_refused_where_it_could_do_nothing(divergence, overlapping):
    D = np.square(overlapping[:, None] - overlapping[None]).sum(axis=2)
    X = D if divergence == "precomputed" else overlapping
    match = rf"smoothing=0\.1 moves components.*divergence='{divergence}'"
    with pytest.raises(ParameterError, match=match):
        ConvexMixture(3, divergence=divergence, smoothing=0.1).fit(X)
    with pytest.raises(ParameterError, match=match):
        MultiViewConvexMixture(3, divergence=divergence, smoothing=0.1).fit([X, X])


def test_smoothing_is_welcome_where_one_view_uses_it(overlapping):
    binary = (overlapping > np.median(overlapping, axis=0)).astype(float)
    options = {"divergence": ["kernel", "bernoulli"], "smoothing": 0.1}
    assert len(MultiViewConvexMixture(3, **options).fit([overlapping, binary]).labels_) == len(overlapping)


def test_the_warning_says_whether_steps_ran_out_or_rounding_ended_the_search(overlapping):
    with pytest.warns(ConvergenceWarning, match=r"before it settled \(max_iter=3\)\. Raise max_iter"):
        ConvexMixture(3, max_iter=3).fit(overlapping)
    with pytest.warns(
        ConvergenceWarning,
        match=r"no step raises the likelihood by more than "
        r"rounding errors\. Raise tol",
    ):
        ConvexMixture(3, tol=1e-300).fit(overlapping)


def test_the_search_over_exemplars_is_the_same_every_time(overlapping):
    paths = [GlobalKernelKMeans(5, search="exemplars").fit(overlapping) for _ in range(3)]
    for other in paths[1:]:
        np.testing.assert_array_equal(other.exemplar_indices_, paths[0].exemplar_indices_)
        np.testing.assert_array_equal(other.labels_path_, paths[0].labels_path_)
        np.testing.assert_array_equal(other.inertia_path_, paths[0].inertia_path_)
