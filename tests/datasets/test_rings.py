import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave.datasets import make_ten_rings, make_two_rings
from kernelweave.foundation.errors import ParameterError


def gaussian(X, sigma):
    return rbf_kernel(X, gamma=1.0 / (2.0 * sigma**2))


def ring_error(X, y, sigma):
    """Kernel k-means error of the rings: sum_c |c| (1 - mean of K within c), as K_ii = 1."""
    return sum(np.sum(y == c) * (1.0 - gaussian(X[y == c], sigma).mean()) for c in np.unique(y))


def distances_to_means(K, y):
    """Squared feature-space distances to the cluster means, less K_ii, shape (n, k)."""
    averaging = (y[:, None] == np.unique(y)) / np.bincount(y)
    K_means = K @ averaging
    return (averaging * K_means).sum(axis=0) - 2.0 * K_means


def descend(K, y):
    """Plain kernel k-means from labels ``y`` to a fixed point."""
    for _ in range(200):
        moved = distances_to_means(K, y).argmin(axis=1)
        if np.array_equal(moved, y):
            return y
        y = moved
    return y


@pytest.mark.parametrize("seed", range(4))
def test_two_rings_have_the_error_printed_in_msc_table_5_1(seed):
    X, y = make_two_rings(random_state=seed)
    assert ring_error(X, y, sigma=1.0) == pytest.approx(320.17, abs=2.0)


def test_ten_rings_have_the_error_printed_in_msc_table_5_1():
    X, y = make_ten_rings(random_state=0)
    assert ring_error(X, y, sigma=1.8) == pytest.approx(966.87, abs=4.0)


def test_two_rings_match_the_printed_error_on_average():
    errors = [ring_error(*make_two_rings(random_state=seed), sigma=1.0) for seed in range(40)]
    assert np.mean(errors) == pytest.approx(320.17, abs=0.4)


@pytest.mark.parametrize("seed", range(4))
def test_two_rings_are_a_fixed_point_of_kernel_kmeans(seed):
    X, y = make_two_rings(random_state=seed)
    assert np.array_equal(distances_to_means(gaussian(X, 1.0), y).argmin(axis=1), y)


def test_ten_rings_are_a_fixed_point_of_kernel_kmeans():
    X, y = make_ten_rings(random_state=0)
    assert np.array_equal(distances_to_means(gaussian(X, 1.8), y).argmin(axis=1), y)


def test_restarts_seldom_find_the_two_rings_and_never_beat_them():
    X, y = make_two_rings(random_state=0)
    K, rng, truth = gaussian(X, 1.0), np.random.default_rng(0), ring_error(*make_two_rings(random_state=0), 1.0)
    result = [descend(K, rng.integers(2, size=len(y))) for _ in range(40)]
    assert np.mean([adjusted_rand_score(y, labels) == 1.0 for labels in result]) < 0.5
    assert min(ring_error(X, labels, 1.0) for labels in result) >= truth - 1e-9


def test_k_means_cannot_part_the_rings():
    X, y = make_two_rings(random_state=0)
    assert adjusted_rand_score(y, KMeans(2, n_init=5, random_state=0).fit_predict(X)) < 0.2


def test_without_noise_every_point_lies_on_its_circle():
    X, y = make_two_rings(50, inner_radius=1.0, outer_radius=3.0, noise=0.0, random_state=0)
    assert np.hypot(*X.T) == pytest.approx(np.where(y == 0, 1.0, 3.0))


def test_every_arc_of_a_ring_holds_one_point():
    X, y = make_two_rings(100, inner_fraction=0.5, noise=0.0, random_state=0)
    angles = np.arctan2(X[y == 0, 1], X[y == 0, 0]) % (2 * np.pi)
    assert np.array_equal(np.sort((angles * 50 / (2 * np.pi)).astype(int)), np.arange(50))


@pytest.mark.parametrize("n_samples", [2, 3, 501])
def test_two_rings_have_the_asked_size_and_no_ring_is_empty(n_samples):
    X, y = make_two_rings(n_samples, random_state=0)
    assert X.shape == (n_samples, 2)
    assert set(y.tolist()) == {0, 1}


def test_ten_rings_have_the_sizes_of_the_source():
    X, y = make_ten_rings(random_state=0)
    assert X.shape == (5000, 2)
    assert np.bincount(y).tolist() == [700, 300] * 5


@pytest.mark.parametrize("n_copies", [1, 5, 7, 12])
def test_copies_do_not_overlap(n_copies):
    X, y = make_ten_rings(n_inner=40, n_outer=40, n_copies=n_copies, random_state=0)
    centres = np.array([X[y // 2 == c].mean(axis=0) for c in range(n_copies)])
    distances = np.linalg.norm(X[:, None] - centres, axis=2)
    assert np.array_equal(distances.argmin(axis=1), y // 2)
    assert distances.min(axis=1).max() < 11.5 / 2


def test_five_copies_lie_like_the_five_of_a_die():
    X, y = make_ten_rings(n_inner=50, n_outer=50, noise=0.0, spacing=np.sqrt(2) * 10, random_state=0)
    centres = [X[y == 2 * c].mean(axis=0).round().astype(int).tolist() for c in range(5)]
    assert sorted(centres) == [[-10, -10], [-10, 10], [0, 0], [10, -10], [10, 10]]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"n_samples": 1}, "n_samples=1"),
        ({"n_samples": 10.0}, "n_samples=10.0"),
        ({"noise": -0.1}, "noise=-0.1"),
        ({"noise": np.nan}, "noise=nan"),
        ({"noise": "some"}, "noise='some'"),
        ({"inner_radius": 3.0}, "inner_radius=3"),
        ({"outer_radius": 0.0}, "outer_radius=0.0"),
        ({"inner_fraction": 1.0}, "inner_fraction=1.0"),
        ({"random_state": "seed"}, "random_state='seed'"),
    ],
)
def test_two_rings_refuse_bad_arguments_by_name(arguments, named):
    with pytest.raises(ParameterError, match=named):
        make_two_rings(**arguments)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"n_inner": 0}, "n_inner=0"),
        ({"n_outer": True}, "n_outer=True"),
        ({"n_copies": 0}, "n_copies=0"),
        ({"spacing": 4.0}, "spacing=4"),
        ({"inner_radius": 5.0}, "inner_radius=5"),
    ],
)
def test_ten_rings_refuse_bad_arguments_by_name(arguments, named):
    with pytest.raises(ParameterError, match=named):
        make_ten_rings(**arguments)
