import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave.datasets import (
    make_corrupted_views,
    make_mvksc_synth1,
    make_mvksc_synth2,
    make_two_view_toy,
)
from kernelweave.foundation.errors import ParameterError


def partition(X, k=3):
    return KMeans(k, n_init=5, random_state=0).fit_predict(X)


def average_entropy(target, labels):
    """PhD (3.19)."""
    total = 0.0
    for cluster in np.unique(labels):
        shares = np.bincount(target[labels == cluster]) / np.sum(labels == cluster)
        shares = shares[shares > 0]
        total -= np.mean(labels == cluster) * np.sum(shares * np.log(shares))
    return total


def nearest_mean(K, y):
    averaging = (y[:, None] == np.unique(y)) / np.bincount(y)
    K_means = K @ averaging
    return ((averaging * K_means).sum(axis=0) - 2.0 * K_means).argmin(axis=1)


def test_corrupted_views_come_in_order_with_the_sizes_of_the_source():
    data = make_corrupted_views(random_state=0)
    assert list(data.views) == [f"corrupted_{v}" for v in range(5)] + ["noisy_0", "noisy_1"]
    assert all(view.shape == (700, 2) for view in data.views.values())
    assert np.bincount(data.target).tolist() == [300, 200, 200]


@pytest.mark.parametrize("seed", range(3))
def test_the_original_separates_without_error(seed):
    data = make_corrupted_views(random_state=seed)
    assert average_entropy(data.target, partition(data.original)) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_single_views_are_as_hard_as_in_phd_tables_3_1_and_3_3(seed):
    data = make_corrupted_views(random_state=seed)
    entropies = {name: average_entropy(data.target, partition(view)) for name, view in data.views.items()}
    assert entropies["corrupted_0"] == pytest.approx(0.299, abs=0.03)  # best single view
    assert entropies["noisy_0"] == pytest.approx(0.94, abs=0.1)  # worst single view, a noisy one


def test_a_corrupted_view_is_a_translation_but_for_the_replaced_samples():
    data = make_corrupted_views(translation=4.0, random_state=0)
    for name, rows in data.corrupted.items():
        shift = data.views[name] - data.original
        kept = np.setdiff1d(np.arange(700), rows)
        assert len(rows) == 50
        assert np.linalg.norm(shift[kept], axis=1) == pytest.approx(4.0)
        assert np.ptp(shift[kept], axis=0) == pytest.approx(0.0, abs=1e-12)


def test_every_replaced_sample_lands_in_another_class():
    data = make_corrupted_views(n_views=1, n_noisy=0, translation=0.0, random_state=0)
    means = np.array([data.original[data.target == c].mean(axis=0) for c in range(3)])
    rows = data.corrupted["corrupted_0"]
    landed = np.linalg.norm(data.views["corrupted_0"][rows, None] - means, axis=2).argmin(axis=1)
    assert (landed != data.target[rows]).all()
    assert set(landed.tolist()) == {0, 1, 2}


def test_views_replace_different_samples():
    data = make_corrupted_views(random_state=0)
    assert not np.array_equal(data.corrupted["corrupted_0"], data.corrupted["corrupted_1"])


def test_noisy_views_have_the_asked_noise():
    data = make_corrupted_views(n_views=0, n_noisy=2, noise_std=2.5, random_state=0)
    noise = np.hstack([view - data.original for view in data.views.values()])
    assert noise.std() == pytest.approx(2.5, rel=0.05)
    assert noise.mean() == pytest.approx(0.0, abs=0.25)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"n_views": -1}, "n_views=-1"),
        ({"n_views": 0, "n_noisy": 0}, "n_noisy=0"),
        ({"n_samples": 6}, "n_samples=6"),
        ({"n_corrupted": 701}, "n_corrupted=701"),
        ({"noise_std": -1.0}, "noise_std=-1.0"),
        ({"translation": np.inf}, "translation=inf"),
        ({"random_state": -1}, "random_state=-1"),
    ],
)
def test_corrupted_views_refuse_bad_arguments_by_name(arguments, named):
    with pytest.raises(ParameterError, match=named):
        make_corrupted_views(**arguments)


@pytest.mark.parametrize("seed", range(5))
def test_toy_clusters_are_a_fixed_point_in_the_clean_view_only(seed):
    toy = make_two_view_toy(random_state=seed)
    moved = {
        name: np.sum(nearest_mean(rbf_kernel(view, gamma=1 / (2 * 0.2**2)), toy.target) != toy.target)
        for name, view in toy.views.items()
    }
    assert moved["clean"] == 0
    assert moved["noisy"] > 50


def test_toy_clean_view_is_not_linearly_separable_by_k_means():
    toy = make_two_view_toy(random_state=0)
    assert adjusted_rand_score(toy.target, partition(toy.views["clean"])) < 0.8


def test_toy_resembles_the_file_of_the_authors():
    # Means and standard deviations of the three clusters in the two views of that file, per coordinate.
    means = {
        "clean": [[0.858, -1.346], [0.296, -0.802], [0.389, -1.800]],
        "noisy": [[0.854, -1.347], [0.088, -0.339], [0.373, -2.047]],
    }
    spreads = {
        "clean": [[0.460, 0.638], [0.091, 0.049], [0.098, 0.053]],
        "noisy": [[0.458, 0.641], [0.227, 0.152], [0.242, 0.141]],
    }
    toy = make_two_view_toy(random_state=0)
    assert np.bincount(toy.target).tolist() == [300, 200, 200]
    for name, view in toy.views.items():
        clusters = [view[toy.target == c] for c in range(3)]
        assert np.array([X.mean(axis=0) for X in clusters]) == pytest.approx(np.array(means[name]), abs=0.12)
        assert np.array([X.std(axis=0) for X in clusters]) == pytest.approx(np.array(spreads[name]), rel=0.15)


def test_toy_views_are_two_pictures_of_the_same_samples():
    toy = make_two_view_toy(random_state=0)
    for cluster in range(3):
        clean, noisy = (view[toy.target == cluster, 0] for view in toy.views.values())
        assert np.corrcoef(clean, noisy)[0, 1] > 0.7


@pytest.mark.parametrize("make", [make_two_view_toy, make_mvksc_synth1, make_mvksc_synth2])
@pytest.mark.parametrize("n_samples", [1, 0, "many", 12.5])
def test_sample_counts_are_checked(make, n_samples):
    with pytest.raises(ParameterError, match="n_samples="):
        make(n_samples)


def test_synth_1_follows_the_printed_means_and_covariances():
    wide, narrow = [[1.0, 0.5], [0.5, 1.5]], [[0.3, 0.0], [0.0, 0.6]]
    printed = [[([1, 1], wide), ([2, 2], narrow)], [([2, 2], narrow), ([1, 1], wide)]]
    assert_moments(make_mvksc_synth1(100_000, random_state=0), printed)


def test_synth_2_follows_the_printed_means_and_covariances():
    printed = [
        [([1, 1], [[1, 0.5], [0.5, 1.5]]), ([3, 4], [[0.3, 0.2], [0.2, 0.6]])],
        [([1, 2], [[1, -0.2], [-0.2, 1]]), ([2, 2], [[0.6, 0.1], [0.1, 0.5]])],
        [([1, 1], [[1.2, 0.2], [0.2, 1]]), ([3, 3], [[1, 0.4], [0.4, 0.7]])],
    ]
    assert_moments(make_mvksc_synth2(100_000, random_state=0), printed)


def assert_moments(data, printed):
    assert len(data.views) == len(printed)
    for view, clusters in zip(data.views.values(), printed, strict=True):
        for cluster, (mean, covariance) in enumerate(clusters):
            X = view[data.target == cluster]
            assert X.mean(axis=0) == pytest.approx(np.array(mean, dtype=float), abs=0.03)
            assert np.cov(X.T) == pytest.approx(np.array(covariance, dtype=float), abs=0.03)


@pytest.mark.parametrize("make", [make_mvksc_synth1, make_mvksc_synth2])
def test_synth_clusters_are_halves_and_views_independent_given_the_cluster(make):
    data = make(20_001, random_state=0)
    assert np.bincount(data.target).tolist() == [10_001, 10_000]
    views = list(data.views.values())
    for cluster in range(2):
        rows = data.target == cluster
        between = np.corrcoef(views[0][rows].T, views[1][rows].T)[:2, 2:]
        assert np.abs(between).max() < 0.05
