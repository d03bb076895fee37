"""Models that estimators hold: they assign and measure new samples like formulas written out on dense arrays."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances, linear_kernel, rbf_kernel

from kernelweave.estimators.shared.models import (
    CenterModel,
    MeanModel,
    ObservedCenters,
    cluster_means,
    feature_offset,
    nearest_centers,
    shifted_features,
)
from kernelweave.estimators.shared.view_kernels import ViewKernel, ViewKernels, WeightedViewKernels
from kernelweave.inputs import Views
from kernelweave.kernels.spec.fitting import fit_kernel

RNG = np.random.default_rng(0)
N, K = 40, 3
X = RNG.normal(size=(N, 4)) + 3.0
NEW = RNG.normal(size=(15, 4)) + 3.0
LABELS = np.arange(N) % K
WEIGHTS = RNG.uniform(0.5, 2.0, N) * (np.arange(N) % 7 > 0)
GAMMA = 0.2


def centre_distances(cross, diag, K_train, labels, weights, n_clusters):
    """Return ||phi(x) - m_c||^2 from dense kernels."""
    columns = []
    for c in range(n_clusters):
        share = np.where(labels == c, weights, 0.0)
        total = share.sum()
        if total == 0:
            columns.append(np.full(len(cross), np.inf))
            continue
        share = share / total
        columns.append(diag - 2 * cross @ share + share @ K_train @ share)
    return np.stack(columns, axis=1)


def center_model(labels=LABELS, n_clusters=K, factors=None):
    """Return the model of clusters under a Gaussian kernel, with totals and norms from dense matrices."""
    kernel = fit_kernel(X, "rbf", {"gamma": GAMMA}).for_new_samples()
    matrix = rbf_kernel(X, gamma=GAMMA)
    totals = np.bincount(labels, WEIGHTS, n_clusters)
    within = [np.where(labels == c, WEIGHTS, 0.0) for c in range(n_clusters)]
    norms = np.array(
        [share @ matrix @ share / total**2 if total else np.inf for share, total in zip(within, totals, strict=True)]
    )
    return CenterModel(kernel, labels, WEIGHTS, totals, norms, factors)


def wanted(labels=LABELS, n_clusters=K):
    return centre_distances(
        rbf_kernel(NEW, X, gamma=GAMMA), np.ones(len(NEW)), rbf_kernel(X, gamma=GAMMA), labels, WEIGHTS, n_clusters
    )


def test_distances_to_centres_in_feature_space_are_those_of_dense_matrices():
    np.testing.assert_allclose(center_model().squared_distances(NEW), wanted(), atol=1e-12)


def test_samples_go_to_the_nearest_centre_in_feature_space():
    np.testing.assert_array_equal(center_model().assign(NEW), wanted().argmin(axis=1))


def test_factors_multiply_squared_distances_before_a_centre_is_chosen_but_are_no_part_of_them():
    factors = np.array([1.0, 0.6, 0.2])
    model = center_model(factors=factors)
    np.testing.assert_array_equal(model.assign(NEW), (factors * wanted()).argmin(axis=1))
    assert (model.assign(NEW) != center_model().assign(NEW)).any()
    np.testing.assert_allclose(model.squared_distances(NEW), wanted(), atol=1e-12)


def test_an_empty_cluster_is_infinitely_far_and_gets_no_samples():
    labels = np.arange(N) % 2 * 2  # clusters 0 and 2 of three
    model = center_model(labels=labels)
    distances = model.squared_distances(NEW)
    assert np.isinf(distances[:, 1]).all()
    np.testing.assert_allclose(distances[:, [0, 2]], wanted(labels)[:, [0, 2]], atol=1e-12)
    assert set(model.assign(NEW)) <= {0, 2}


def test_no_squared_distance_is_negative_and_that_of_a_sample_to_itself_is_zero():
    kernel = fit_kernel(X, "linear", centre_features=True)
    labels = np.arange(N)
    diag = np.einsum("ij,ij->i", X - X.mean(axis=0), X - X.mean(axis=0))
    model = CenterModel(kernel.for_new_samples(), labels, np.ones(N), np.ones(N), diag)
    distances = model.squared_distances(X)
    assert (distances >= 0).all()
    assert (np.diag(distances) == 0).all()
    np.testing.assert_allclose(distances, euclidean_distances(X, squared=True), atol=1e-10)
    means = MeanModel(X, X.mean(axis=0), np.ones(N, dtype=bool))
    assert (np.diag(means.squared_distances(X)) == 0).all()


def test_the_kernels_of_views_can_stand_in_for_one_kernel():
    views = [X[:, :2], X[:, 2:]]
    coefficients = np.array([0.3, 2.0])
    kernels = ViewKernels(
        tuple(
            ViewKernel(fit_kernel(view, "linear").for_new_samples(), factor)
            for view, factor in zip(views, (2.0, 1.0), strict=True)
        )
    )
    factors = np.array([0.3 * 2.0] * 2 + [2.0 * 1.0] * 2)
    matrix = linear_kernel(X * factors, X)
    totals = np.bincount(LABELS, WEIGHTS, K)
    shares = [np.where(c == LABELS, WEIGHTS, 0.0) / totals[c] for c in range(K)]
    norms = np.array([share @ matrix @ share for share in shares])
    model = CenterModel(WeightedViewKernels(kernels, coefficients), LABELS, WEIGHTS, totals, norms)
    new = [NEW[:, :2], NEW[:, 2:]]
    expected = centre_distances(
        linear_kernel(NEW * factors, X), np.sum(NEW * factors * NEW, axis=1), matrix, LABELS, WEIGHTS, K
    )
    np.testing.assert_allclose(model.squared_distances(new), expected, atol=1e-10)
    np.testing.assert_array_equal(model.assign(new), expected.argmin(axis=1))


def test_where_samples_are_absent_an_empty_cluster_is_infinitely_far_and_gets_no_samples():
    labels = np.arange(N) % 2 * 2  # clusters 0 and 2 of three
    blocks = (X[:, :2], X[:, 2:])
    observed = np.ones((N, 2), dtype=bool)
    kernels = ViewKernels(tuple(ViewKernel(fit_kernel(block, "linear").for_new_samples(), 1.0) for block in blocks))
    means = np.stack([np.average(X[labels == c], axis=0, weights=WEIGHTS[labels == c]) for c in (0, 2)])
    norms = np.full((2, K), np.inf)
    norms[:, [0, 2]] = np.square(means.reshape(2, 2, 2)).sum(axis=2).T
    model = ObservedCenters(kernels, observed, labels, WEIGHTS, np.array([1.0, 3.0]), norms)
    there = np.arange(len(NEW)) % 2 == 0  # in the second view
    mask = np.stack([np.ones_like(there), there], axis=1)
    new = Views(("a", "b"), (NEW[:, :2], np.where(there[:, None], NEW[:, 2:], np.nan)), mask)
    squared = np.square(NEW[:, None] - means)
    expected = squared[..., :2].sum(axis=2) + 3.0 * there[:, None] * squared[..., 2:].sum(axis=2)
    distances = model.squared_distances(new)
    assert np.isinf(distances[:, 1]).all()
    np.testing.assert_allclose(distances[:, [0, 2]], expected, atol=1e-10)
    np.testing.assert_array_equal(model.assign(new), 2 * expected.argmin(axis=1))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("factors", [None, np.array([1.0, 0.5, 0.1])], ids=["nearest", "weighted"])
def test_means_of_vectors_are_met_like_points(form, factors):
    totals = np.bincount(LABELS, WEIGHTS, K)
    centers = cluster_means(form(X), WEIGHTS, LABELS, totals)
    expected = [np.average(X[c == LABELS], axis=0, weights=WEIGHTS[c == LABELS]) for c in range(K)]
    np.testing.assert_allclose(centers, expected)
    model = MeanModel(centers, feature_offset(form(X)), totals > 0, factors)
    squared = euclidean_distances(NEW, centers, squared=True)
    for new in (NEW, sp.csr_array(NEW)):
        np.testing.assert_allclose(model.squared_distances(new), squared, atol=1e-10)
        rule = squared if factors is None else factors * squared
        np.testing.assert_array_equal(model.assign(new), rule.argmin(axis=1))


def test_means_far_from_the_origin_lose_no_digits():
    far = X + 1e8
    offset = feature_offset(far)
    centers = cluster_means(far, np.ones(N), LABELS, np.bincount(LABELS).astype(float))
    model = MeanModel(centers, offset, np.ones(K, dtype=bool))
    squared = euclidean_distances(X, centers - 1e8, squared=True)
    np.testing.assert_allclose(model.squared_distances(far), squared, rtol=1e-6)


def test_a_mean_of_no_samples_gets_none():
    labels = np.arange(N) % 2 * 2
    totals = np.bincount(labels, minlength=K).astype(float)
    centers = cluster_means(X, np.ones(N), labels, totals)
    assert (centers[1] == 0).all()
    model = MeanModel(centers, feature_offset(X), totals > 0)
    assert np.isinf(model.squared_distances(X)[:, 1]).all()
    assert set(model.assign(X)) == {0, 2}
    assert set(model.assign(np.zeros((3, 4)))) <= {0, 2}


def test_sparse_samples_are_not_made_dense_for_nothing():
    assert (feature_offset(sp.csr_array(X)) == 0).all()
    assert sp.issparse(shifted_features(sp.csr_array(X), np.zeros(4)).Phi)
    assert isinstance(shifted_features(sp.csr_array(X), X.mean(axis=0)).Phi, np.ndarray)


def test_the_first_of_centres_equal_but_for_rounding_is_taken():
    points = np.array([[1.0, 0.0], [-1.0, 0.0]])
    centers = np.array([[0.0, 1.0], [0.0, -1.0 + 1e-15], [0.0, 1.0]])
    assert nearest_centers(shifted_features(points, np.zeros(2)), centers, None).tolist() == [0, 0]
    nearer = np.array([[0.0, 1.0], [0.0, -1.0 + 1e-9], [0.0, 1.0]])
    assert nearest_centers(shifted_features(points, np.zeros(2)), nearer, None).tolist() == [1, 1]


@pytest.mark.parametrize("model", [center_model(), MeanModel(np.zeros((3, 4)), np.zeros(4), np.ones(3, dtype=bool))])
def test_models_cannot_be_changed(model):
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.factors = np.ones(3)
