"""Pixels as samples, the synthetic slice, and the kernel made for them."""

import numpy as np
import pytest

from kernelweave import GlobalKernelKMeans, KernelError, ParameterError
from kernelweave.datasets import make_tissue_image, pixel_features
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.metrics import misclassification_error


def test_histograms_are_those_of_the_window():
    rng = np.random.default_rng(0)
    image = rng.random((9, 11))
    result = pixel_features(image, window=5, n_bins=4)
    edges = np.linspace(image.min(), image.max(), 5)
    padded = np.pad(image, 2, mode="edge")
    for place, (i, j) in enumerate(np.ndindex(image.shape)):
        counts, _ = np.histogram(padded[i : i + 5, j : j + 5], edges)
        np.testing.assert_allclose(result[place, 1:], counts / 25, atol=1e-12)
    np.testing.assert_allclose(result[:, 0], image.ravel() / image.std())
    np.testing.assert_allclose(result[:, 1:].sum(axis=1), 1.0)


def test_a_mask_chooses_pixels_and_windows_see_the_whole_image():
    image = make_tissue_image((20, 24), random_state=0).image
    mask = image > 0.5
    np.testing.assert_array_equal(
        pixel_features(image, window=7, mask=mask), pixel_features(image, window=7)[mask.ravel()]
    )


def test_a_constant_image_has_one_bin():
    result = pixel_features(np.full((4, 4), 2.0), window=3, n_bins=3)
    np.testing.assert_array_equal(result[:, 1:], np.tile([1.0, 0.0, 0.0], (16, 1)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"image": np.ones(4)}, "image has shape"),
        ({"image": [[np.nan]]}, "finite"),
        ({"image": np.ones((3, 3)), "window": 4}, "window=4 must be odd"),
        ({"image": np.ones((3, 3)), "window": 0}, "window"),
        ({"image": np.ones((3, 3)), "n_bins": 0}, "n_bins"),
        ({"image": np.ones((3, 3)), "mask": np.ones((2, 2))}, "mask of shape"),
        ({"image": np.ones((3, 3)), "mask": np.zeros((3, 3))}, "mask of shape"),
    ],
)
def test_bad_images_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        pixel_features(**arguments)


def test_the_slice_is_repeatable_and_has_every_tissue():
    one, two = make_tissue_image(random_state=3), make_tissue_image(random_state=3)
    np.testing.assert_array_equal(one.image, two.image)
    assert set(np.unique(one.target)) == set(range(len(one.target_names)))
    assert not np.array_equal(one.image, make_tissue_image(random_state=4).image)
    plain = make_tissue_image(noise=0.0, non_uniformity=0.0, random_state=0)
    assert len(np.unique(plain.image)) == 5


def test_the_kernel_is_the_product_of_both_likenesses():
    X = pixel_features(make_tissue_image((16, 16), random_state=0).image, window=5, n_bins=6)[:40]
    kernel = fit_kernel(X, "intensity_histogram", {"sigma": 0.5})
    K = np.asarray(kernel.operator("dense").block(slice(None), slice(None)))
    expected = np.array(
        [[np.exp(-((x[0] - y[0]) ** 2) / (2 * 0.5**2)) * np.sqrt(x[1:] * y[1:]).sum() for y in X] for x in X]
    )
    np.testing.assert_allclose(K, expected, atol=1e-12)
    np.testing.assert_allclose(np.diag(K), 1.0)
    assert np.linalg.eigvalsh(K).min() > -1e-10
    cross = kernel.cross(X[:7]).block(slice(None), slice(None))
    np.testing.assert_allclose(cross, expected[:7], atol=1e-12)
    scaled = np.column_stack([X[:, 0], 50.0 * X[:, 1:]])  # counts instead of shares
    same = fit_kernel(scaled, "intensity_histogram", {"sigma": 0.5}).operator("blockwise")
    np.testing.assert_allclose(same.block(slice(None), slice(None)), expected, atol=1e-12)


def test_the_kernel_refuses_what_is_no_histogram():
    with pytest.raises(KernelError, match=r"histograms, all entries >= 0; X holds -1"):
        fit_kernel(np.array([[0.5, -1.0, 2.0], [0.1, 1.0, 1.0]]), "intensity_histogram")
    with pytest.raises(ParameterError, match=r"n_intensities=1 .* leaves no histogram: X has 1 column"):
        fit_kernel(np.ones((3, 1)), "intensity_histogram")
    with pytest.raises(ParameterError, match="sigma"):
        fit_kernel(np.ones((3, 2)), "intensity_histogram", {"sigma": 0.0})


def test_in_noise_windows_tell_tissues_apart_better_than_intensities_alone():
    data = make_tissue_image((30, 36), noise=0.1, random_state=0)
    X = pixel_features(data.image, window=5, n_bins=30)
    truth = data.target.ravel()
    both = GlobalKernelKMeans(5, search="fast", kernel="intensity_histogram", kernel_params={"sigma": 0.7}).fit(X)
    alone = GlobalKernelKMeans(5, search="fast", kernel="rbf", kernel_params={"sigma": 0.7}).fit(X[:, :1])
    assert misclassification_error(truth, both.labels_) < misclassification_error(truth, alone.labels_)
