"""Synthetic multi-view data: several descriptions of the same samples, some of them corrupted or noisy.

Output      a Bunch with ``views`` (name to array, in order), ``target``, ``target_names`` and ``DESCR``
Guarantee   row i of every view is the same sample; one seed gives one data set
Source      corrupted and noisy views: PhD 3.4.2; two-view toy: PhD 4.3.1; synth 1 and 2: MVKSC 4.1
"""

import numpy as np
from sklearn.utils import Bunch

from kernelweave.datasets.checks import as_generator, check_amount, check_count, proportional_sizes

# 3 : 2 : 2 because a partition that ignores the classes has entropy 1.079 then, which is the worst entropy
# (1.078) of PhD table 3.3; classes of equal size would allow 1.099.
_CLASS_SHARES = (3, 2, 2)
_CLASS_MEANS = np.array([[0.0, 0.0], [3.2, 0.0], [1.6, 2.8]])
_CLASS_COVARIANCES = np.array(
    [[[0.12, 0.03], [0.03, 0.10]], [[0.10, -0.02], [-0.02, 0.12]], [[0.14, 0.0], [0.0, 0.08]]]
)

_TOY_SIZES = (3, 2, 2)
_ARC_CENTRE = (0.0, -1.3)
_ARC_RADII = (1.395, 0.887)
_ARC_HALF_ANGLE = np.deg2rad(94.0)
_BLOB_CENTRES = np.array([[0.30, -0.80], [0.39, -1.80]])
_BLOB_SCALE = np.array([0.095, 0.05])
_NOISY_BLOB_CENTRES = np.array([[0.09, -0.34], [0.37, -2.05]])

_SYNTH1 = (
    (((1.0, 1.0), ((1.0, 0.5), (0.5, 1.5))), ((2.0, 2.0), ((0.3, 0.0), (0.0, 0.6)))),
    (((2.0, 2.0), ((0.3, 0.0), (0.0, 0.6))), ((1.0, 1.0), ((1.0, 0.5), (0.5, 1.5)))),
)
_SYNTH2 = (
    (((1.0, 1.0), ((1.0, 0.5), (0.5, 1.5))), ((3.0, 4.0), ((0.3, 0.2), (0.2, 0.6)))),
    (((1.0, 2.0), ((1.0, -0.2), (-0.2, 1.0))), ((2.0, 2.0), ((0.6, 0.1), (0.1, 0.5)))),
    (((1.0, 1.0), ((1.2, 0.2), (0.2, 1.0))), ((3.0, 3.0), ((1.0, 0.4), (0.4, 0.7)))),
)


def make_corrupted_views(
    n_views=5,
    n_noisy=2,
    *,
    n_samples=700,
    n_corrupted=50,
    noise_std=2.5,
    translation=1.0,
    random_state=None,
):
    """Make views that each misplace some samples, and views that are mostly noise (PhD 3.4.2).

    Three Gaussian classes in the plane, far enough apart that clustering the original separates them
    without error. A corrupted view is a translated copy in which ``n_corrupted`` samples are drawn again
    from one of the other classes; no single such view can place them correctly, but several together can. A noisy
    view is the original plus Gaussian noise. Means and covariances are not printed in the source. Those
    used here have their means at (0, 0), (3.2, 0) and (1.6, 2.8) and standard deviations near 0.33.

    Parameters
    ----------
    n_views : int, default=5
        Number of corrupted views (2 to 5 in the source).
    n_noisy : int, default=2
        Number of noisy views (0 or 2 in the source). At least one view must remain in all.
    n_samples : int, default=700
        Number of samples, split 3 : 2 : 2 over the classes; at least 7.
    n_corrupted : int, default=50
        Samples replaced in each corrupted view, chosen independently for each.
    noise_std : float, default=2.5
        Standard deviation of the noise in the noisy views.
    translation : float, default=1.0
        Distance by which each corrupted view is moved as a whole, in a random direction.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    Bunch
        ``views`` ("corrupted_0", ..., "noisy_0", ...), ``target``, ``target_names``, ``original`` (the
        data before any change), ``corrupted`` (name to the sorted indices of the replaced samples) and
        ``DESCR``.

    Examples
    --------
    >>> from kernelweave.datasets import make_corrupted_views
    >>> data = make_corrupted_views(n_views=2, n_noisy=1, random_state=0)
    >>> {name: view.shape for name, view in data.views.items()}
    {'corrupted_0': (700, 2), 'corrupted_1': (700, 2), 'noisy_0': (700, 2)}
    """
    n_views = check_count("n_views", n_views, least=0)
    n_noisy = check_count("n_noisy", n_noisy, least=1 if n_views == 0 else 0)
    n_samples = check_count("n_samples", n_samples, least=sum(_CLASS_SHARES))
    n_corrupted = check_count("n_corrupted", n_corrupted, least=0, most=n_samples)
    noise_std = check_amount("noise_std", noise_std)
    translation = check_amount("translation", translation)
    rng = as_generator(random_state)
    target = _shuffled_labels(n_samples, _CLASS_SHARES, rng)
    original = _draw_classes(target, rng)
    views = {}
    corrupted = {}
    for v in range(n_views):
        name = f"corrupted_{v}"
        views[name], corrupted[name] = _corrupt(original, target, n_corrupted, translation, rng)
    for v in range(n_noisy):
        views[f"noisy_{v}"] = original + noise_std * rng.standard_normal(original.shape)
    return _bunch(
        views,
        target,
        f"Three Gaussian classes; {n_views} views misplace {n_corrupted} samples, {n_noisy} are noisy.",
        original=original,
        corrupted=corrupted,
    )


def make_two_view_toy(n_samples=700, *, random_state=None):
    """Make three clusters that are clear but not linearly separable in one view, mixed in the other.

    Similar to PhD 4.3.1, whose data are ``load_benchmark("mvkkm_synthetic")``: an open arc
    around two compact groups. The second view is a noisy version of the first, in which the two groups
    are spread out and lie over the ends of the arc. Sizes, places and spreads follow that file.

    Parameters
    ----------
    n_samples : int, default=700
        Number of samples, split 3 : 2 : 2 over arc, upper and lower group; at least 7.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    Bunch
        ``views`` ("clean" and "noisy"), ``target`` (0 arc, 1 upper group, 2 lower group),
        ``target_names`` and ``DESCR``.

    Examples
    --------
    >>> from kernelweave.datasets import make_two_view_toy
    >>> toy = make_two_view_toy(random_state=0)
    >>> [int((toy.target == cluster).sum()) for cluster in range(3)]
    [300, 200, 200]
    """
    n_samples = check_count("n_samples", n_samples, least=sum(_TOY_SIZES))
    rng = as_generator(random_state)
    target = _shuffled_labels(n_samples, _TOY_SIZES, rng)
    clean = np.empty((n_samples, 2))
    noisy = np.empty((n_samples, 2))
    arc = _arc(np.count_nonzero(target == 0), rng)
    clean[target == 0] = arc
    noisy[target == 0] = arc + 0.075 * rng.standard_normal(arc.shape)
    for group, (centre, noisy_centre) in enumerate(zip(_BLOB_CENTRES, _NOISY_BLOB_CENTRES, strict=True), 1):
        offset = _BLOB_SCALE * _bounded_normal(np.count_nonzero(target == group), 2.8, rng)
        clean[target == group] = centre + offset
        noisy[target == group] = noisy_centre + (2.0, 1.0) * offset + 0.135 * rng.standard_normal(offset.shape)
    return _bunch(
        {"clean": clean, "noisy": noisy},
        target,
        "An arc around two groups, and a noisy version of it.",
        target_names=np.array(["arc", "upper", "lower"]),
    )


def make_mvksc_synth1(n_samples=1000, *, random_state=None):
    """Make synthetic set 1 of MVKSC 4.1: two views, two overlapping Gaussian clusters.

    Means and covariances are the printed ones; the second view swaps the roles of the clusters. The
    source says that 1000 points are sampled for each data source and lists 1000 points in two views.
    That is read as ``n_samples`` samples in all, half from each cluster, the views of a sample drawn
    independently given its cluster. An odd sample falls to the first cluster.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples, at least 2.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    Bunch
        ``views`` ("view_0", "view_1"), ``target``, ``target_names`` and ``DESCR``.

    See Also
    --------
    make_mvksc_synth2 : Three views, better separated.

    Examples
    --------
    >>> from kernelweave.datasets import make_mvksc_synth1
    >>> data = make_mvksc_synth1(random_state=0)
    >>> [view.shape for view in data.views.values()], int(data.target.sum())
    ([(1000, 2), (1000, 2)], 500)
    """
    return _gaussian_views(_SYNTH1, n_samples, random_state, "Synthetic set 1 of MVKSC 4.1.")


def make_mvksc_synth2(n_samples=1000, *, random_state=None):
    """Make synthetic set 2 of MVKSC 4.1: three views, two Gaussian clusters.

    Means and covariances are the printed ones, read as in :func:`make_mvksc_synth1`.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples, at least 2; half of them from each cluster.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    Bunch
        ``views`` ("view_0", "view_1", "view_2"), ``target``, ``target_names`` and ``DESCR``.

    See Also
    --------
    make_mvksc_synth1 : Two views, with more overlap.

    Examples
    --------
    >>> from kernelweave.datasets import make_mvksc_synth2
    >>> list(make_mvksc_synth2(100, random_state=0).views)
    ['view_0', 'view_1', 'view_2']
    """
    return _gaussian_views(_SYNTH2, n_samples, random_state, "Synthetic set 2 of MVKSC 4.1.")


def _shuffled_labels(n_samples, shares, rng):
    sizes = proportional_sizes(n_samples, shares)
    return rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


def _draw_classes(labels, rng):
    """Draw one point of the class distribution named by each label."""
    factors = np.linalg.cholesky(_CLASS_COVARIANCES)[labels]
    return _CLASS_MEANS[labels] + np.einsum("nij,nj->ni", factors, rng.standard_normal((len(labels), 2)))


def _corrupt(original, target, n_corrupted, translation, rng):
    """Return a translated copy with ``n_corrupted`` rows redrawn from another class, and those rows."""
    angle = rng.uniform(0.0, 2.0 * np.pi)
    view = original.copy()
    rows = np.sort(rng.choice(len(target), n_corrupted, replace=False))
    n_classes = len(_CLASS_SHARES)
    other = (target[rows] + rng.integers(1, n_classes, size=n_corrupted)) % n_classes
    view[rows] = _draw_classes(other, rng)
    return view + translation * np.array([np.cos(angle), np.sin(angle)]), rows


def _arc(n, rng):
    angles = rng.uniform(-_ARC_HALF_ANGLE, _ARC_HALF_ANGLE, n)
    ellipse = np.array(_ARC_CENTRE) + np.array(_ARC_RADII) * np.column_stack([np.cos(angles), np.sin(angles)])
    return ellipse + 0.038 * rng.standard_normal((n, 2))


def _bounded_normal(n, bound, rng):
    """Draw from the standard normal of the plane within ``bound`` of 0: an outlier would belong to the arc."""
    radius = np.sqrt(-2.0 * np.log1p(-rng.random(n) * (1.0 - np.exp(-(bound**2) / 2.0))))
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    return radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])


def _gaussian_views(parameters, n_samples, random_state, description):
    """Draw every view's clusters from the (mean, covariance) pairs of ``parameters``."""
    n_samples = check_count("n_samples", n_samples, least=2)
    rng = as_generator(random_state)
    target = _shuffled_labels(n_samples, (1, 1), rng)
    views = {}
    for v, clusters in enumerate(parameters):
        view = np.empty((n_samples, 2))
        views[f"view_{v}"] = view
        for cluster, (mean, covariance) in enumerate(clusters):
            rows = np.flatnonzero(target == cluster)
            view[rows] = rng.multivariate_normal(mean, covariance, size=len(rows), method="cholesky")
    return _bunch(views, target, description)


def _bunch(views, target, description, *, target_names=None, **extra):
    if target_names is None:
        target_names = np.array([str(label) for label in range(target.max() + 1)])
    return Bunch(views=views, target=target, target_names=target_names, DESCR=description, **extra)
