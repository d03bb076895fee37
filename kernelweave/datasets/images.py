"""Pixels of an image as samples: their intensity and the histogram of a window around them (MSc 5.2)."""

import numpy as np
from scipy.ndimage import gaussian_filter, uniform_filter
from sklearn.utils import Bunch

from kernelweave.datasets.checks import as_generator, check_amount, check_count
from kernelweave.foundation.errors import ParameterError

# Mean intensities of the tissues of the synthetic slice; fluid also fills the ventricles.
_TISSUES = {"background": 0.05, "skull": 0.25, "fluid": 0.35, "grey matter": 0.6, "white matter": 0.85}


def pixel_features(image, *, window=31, n_bins=70, mask=None):
    """Describe every pixel by its intensity and the histogram of intensities in a window around it.

    Use it with ``kernel="intensity_histogram"``, the kernel of MSc (5.1).

    Parameters
    ----------
    image : array-like of shape (height, width)
        Intensities.
    window : int, default=31
        Side of the square window, odd. Outside the image the nearest pixel is repeated.
    n_bins : int, default=70
        Equally wide bins over the range of the whole image.
    mask : array-like of bool of shape (height, width), default=None
        Pixels to describe; None means all. Windows still cover the whole image.

    Returns
    -------
    features : ndarray of shape (n_pixels, 1 + n_bins)
        Intensity scaled to standard deviation 1, then the shares of the bins; pixels row by row.

    Notes
    -----
    Cost: one pass over the image per bin, whatever the window. MSc 5.2 used a window of 31 and 70 bins on slices of
    181 x 217 pixels, with sigma = 0.7.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.datasets import pixel_features
    >>> pixel_features(np.arange(12.0).reshape(3, 4), window=3, n_bins=5).shape
    (12, 6)
    """
    image = np.asarray(image, dtype=np.float64)
    if image.ndim != 2 or not image.size or not np.isfinite(image).all():
        raise ParameterError(f"image has shape {image.shape}: give a matrix of finite intensities.")
    window = check_count("window", window, least=1)
    n_bins = check_count("n_bins", n_bins, least=1)
    if window % 2 == 0:
        raise ParameterError(f"window={window} must be odd, so that the pixel is in its middle.")
    chosen = np.ones(image.shape, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
    if chosen.shape != image.shape or not chosen.any():
        raise ParameterError(f"mask of shape {chosen.shape} must choose pixels of an image of shape {image.shape}.")
    low = image.min()
    high = image.max()
    width = (high - low) / n_bins or 1.0
    bins = np.minimum(((image - low) / width).astype(int), n_bins - 1)
    features = np.empty((int(chosen.sum()), 1 + n_bins))
    features[:, 0] = image[chosen] / (image.std() or 1.0)
    for b in range(n_bins):
        shares = uniform_filter((bins == b).astype(np.float64), window, mode="nearest")
        features[:, 1 + b] = np.maximum(shares[chosen], 0.0)  # running sums leave rounding below zero
    return features


def make_tissue_image(shape=(60, 70), *, noise=0.03, non_uniformity=0.2, random_state=None):
    """Make a synthetic slice of a head: nested tissues with folds, noise and uneven brightness.

    A stand-in for the simulated slices of MSc 5.2, which are not available here.

    Parameters
    ----------
    shape : tuple of two int, default=(60, 70)
        Height and width, each at least 16.
    noise : float, default=0.03
        Standard deviation of the noise, as a share of the brightest tissue.
    non_uniformity : float, default=0.2
        How much brightness varies over the image: 0.2 is from 0.9 to 1.1 of its value.
    random_state : int, Generator, RandomState or None, default=None
        Seed of folds, noise and brightness.

    Returns
    -------
    Bunch
        - ``image``: (height, width) intensities;
        - ``target``: (height, width) number of the tissue of every pixel;
        - ``target_names``: names of the tissues;
        - ``DESCR``: a line that describes the image.

    Examples
    --------
    >>> from kernelweave.datasets import make_tissue_image
    >>> slice_ = make_tissue_image(random_state=0)
    >>> slice_.image.shape, len(slice_.target_names)
    ((60, 70), 5)
    """
    height, width = (check_count("shape", side, least=16) for side in shape)
    noise = check_amount("noise", noise)
    non_uniformity = check_amount("non_uniformity", non_uniformity)
    rng = as_generator(random_state)
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    radius = np.hypot(y / 0.92, x / 0.85)
    angle = np.arctan2(y, x)
    folds = 0.05 * np.sin(9 * angle + rng.uniform(0, 2 * np.pi)) + 0.03 * np.sin(17 * angle + rng.uniform(0, 2 * np.pi))
    names = list(_TISSUES)
    target = np.zeros((height, width), dtype=int)
    for limit, tissue in ((1.0, "skull"), (0.88, "fluid"), (0.8, "grey matter")):
        target[radius < limit] = names.index(tissue)
    target[radius < 0.58 + folds] = names.index("white matter")
    target[np.hypot(y / 0.28, (np.abs(x) - 0.14) / 0.09) < 1] = names.index("fluid")
    image = np.array(list(_TISSUES.values()))[target]
    field = gaussian_filter(rng.standard_normal((height, width)), min(height, width) / 4)
    field /= np.abs(field).max() or 1.0
    image = image * (1 + 0.5 * non_uniformity * field)
    image = image + noise * max(_TISSUES.values()) * rng.standard_normal(image.shape)
    about = f"A synthetic slice of {height} x {width} pixels with {len(names)} tissues."
    return Bunch(image=image, target=target, target_names=names, DESCR=about)
