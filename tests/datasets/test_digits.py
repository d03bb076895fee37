import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors

from kernelweave.datasets import load_multiview_digits, standardize
from kernelweave.datasets.digits import _first_ink, _fourier, _gradients, _moments, _profiles
from kernelweave.foundation.errors import ParameterError


@pytest.fixture(scope="module")
def digits():
    return load_multiview_digits()


def test_views_have_the_documented_widths(digits):
    widths = {"pixels": 64, "fourier": 34, "profiles": 48, "gradients": 72, "moments": 28}
    assert {name: view.shape for name, view in digits.views.items()} == {n: (1797, d) for n, d in widths.items()}
    assert digits.target_names.tolist() == [str(digit) for digit in range(10)]


def test_pixels_are_the_bundled_images(digits):
    assert np.array_equal(digits.views["pixels"], load_digits().data)
    assert np.array_equal(digits.target, load_digits().target)


def test_only_three_border_pixels_are_constant(digits):
    constant = {name: np.flatnonzero(np.ptp(view, axis=0) == 0).tolist() for name, view in digits.views.items()}
    assert constant.pop("pixels") == [0, 32, 39]
    assert not any(constant.values())
    assert all(np.isfinite(view).all() for view in digits.views.values())


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [("pixels", 0.974), ("fourier", 0.905), ("profiles", 0.942), ("gradients", 0.985), ("moments", 0.874)],
)
def test_every_view_knows_the_digit_of_the_nearest_neighbour(digits, name, accuracy):
    X = standardize(digits.views[name])
    nearest = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(X).kneighbors(return_distance=False)[:, 0]
    assert np.mean(digits.target[nearest] == digits.target) == pytest.approx(accuracy, abs=0.005)


def test_loading_is_deterministic(digits):
    again = load_multiview_digits()
    assert all(np.array_equal(again.views[name], digits.views[name]) for name in digits.views)


def test_fewer_classes_keep_the_first_digits():
    few = load_multiview_digits(n_classes=3)
    assert set(few.target.tolist()) == {0, 1, 2}
    assert len(few.target) == len(few.views["moments"]) == np.sum(load_digits().target < 3)


@pytest.mark.parametrize("n_classes", [1, 11, 2.5, None])
def test_bad_class_counts_are_refused(n_classes):
    with pytest.raises(ParameterError, match="n_classes="):
        load_multiview_digits(n_classes=n_classes)


def test_fourier_keeps_every_magnitude_and_ignores_cyclic_shifts(digits):
    images = digits.images[:20]
    kept, full = _fourier(images), np.abs(np.fft.fft2(images)).reshape(20, -1)
    for row, all_of_it in zip(kept, full, strict=True):
        nearest = pairwise_distances_argmin(all_of_it[:, None], row[:, None])
        assert row[nearest] == pytest.approx(all_of_it)
    assert _fourier(np.roll(images, (2, 3), axis=(1, 2))) == pytest.approx(kept)


def test_first_ink_counts_from_the_border_and_blank_lines_give_the_width():
    line = np.zeros((1, 2, 8), dtype=bool)
    line[0, 0, [3, 6]] = True
    assert _first_ink(line).tolist() == [[3.0, 8.0]]


def test_profiles_of_a_single_dot():
    # A dot at row 2, column 5: sums, then distances from left, right, top and bottom.
    sums_rows, sums_columns, left, right, top, bottom = np.split(dot_profiles(), 6)
    assert sums_rows.tolist() == [0, 0, 16, 0, 0, 0, 0, 0]
    assert sums_columns.tolist() == [0, 0, 0, 0, 0, 16, 0, 0]
    assert (left[2], right[2], top[5], bottom[5]) == (5, 2, 2, 5)
    assert (left[0], right[0], top[0], bottom[0]) == (8, 8, 8, 8)


def dot_profiles():
    image = np.zeros((1, 8, 8))
    image[0, 2, 5] = 16.0
    return _profiles(image)[0]


def test_gradients_have_unit_length_and_ignore_contrast(digits):
    images = digits.images[:50]
    assert np.linalg.norm(_gradients(images), axis=1) == pytest.approx(1.0)
    assert _gradients(3.0 * images) == pytest.approx(_gradients(images))


def test_a_step_to_the_right_votes_for_the_first_direction_alone():
    # The middle cell alone is free of the zero border: its inner gradients all point to the right.
    image = np.tile([0.0, 0, 0, 0, 8, 8, 8, 8], (8, 1))[None]
    middle = _gradients(image).reshape(3, 3, 8)[1, 1]
    assert middle[0] > 0
    assert middle[1:] == pytest.approx(0.0)


def test_central_moments_do_not_change_under_a_shift_and_hu_not_under_a_turn(digits):
    small = np.zeros((30, 16, 16))
    small[:, 4:12, 4:12] = digits.images[:30]
    original, shifted = _moments(small), _moments(np.roll(small, (3, -2), axis=(1, 2)))
    rotated = _moments(np.rot90(small, axes=(1, 2)))
    assert shifted[:, 3:] == pytest.approx(original[:, 3:], rel=1e-6, abs=1e-7)
    assert shifted[:, 1:3] - original[:, 1:3] == pytest.approx(np.tile([3.0, -2.0], (30, 1)))
    assert rotated[:, -7:] == pytest.approx(original[:, -7:], rel=1e-4, abs=1e-5)
