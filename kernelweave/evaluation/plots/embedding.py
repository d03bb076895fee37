"""Samples of any kernel in the plane, with the regions of the clusters, as a picture."""

from typing import Any

import numpy as np

from kernelweave.evaluation.plots.look import COLOURS, cluster_look, last_of, new_axes, seen_by_last
from kernelweave.evaluation.principal import centred, principal_components
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import is_multi_view

# Points of the grid along each side, and neighbours that decide the colour of a point.
GRID = 200
NEIGHBOURS = 15


class EmbeddingDisplay:
    """The samples in the plane of the two leading kernel principal components, and the regions of the clusters.

    Near points have similar kernel rows. The plane shows only part of the distances: the axes say how much of the
    variance. Regions are drawn by the clusters of the nearest samples in the picture, not by ``predict``: points of the
    plane are not samples.

    Make one with :meth:`from_estimator` or :meth:`from_predictions`; draw it again elsewhere with :meth:`plot`. Drawing
    needs matplotlib, which ``kernelweave[plots]`` installs.

    Parameters
    ----------
    points : ndarray of shape (n_drawn, 2)
        Samples in the plane.
    labels : ndarray of shape (n_drawn,)
        Their clusters.
    shares : tuple of two float or None, default=None
        Shares of the variance along the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the samples.
    figure_ : matplotlib Figure
        Figure with the axes.
    scatters_ : list of matplotlib PathCollection
        The samples, one entry per cluster.
    regions_ : matplotlib AxesImage or None
        The regions.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelweave import KernelKMeans
    >>> from kernelweave.datasets import make_two_rings
    >>> from kernelweave.plots import EmbeddingDisplay
    >>> X, _ = make_two_rings(random_state=0)
    >>> model = KernelKMeans(2, kernel_params={"sigma": 0.5}, n_init=20, random_state=0).fit(X)
    >>> display = EmbeddingDisplay.from_estimator(model, X, ax=Figure().subplots())
    >>> display.points.shape
    (500, 2)
    """

    def __init__(self, points: Floats, *, labels: Any, shares: tuple[float, float] | None = None) -> None:
        self.points = points
        self.labels = labels
        self.shares = shares

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        max_samples: int = 2000,
        regions: bool = True,
        random_state: Any = 0,
        ax: Any = None,
    ) -> "EmbeddingDisplay":
        """Draw the samples of a fitted estimator by its own kernel.

        Parameters
        ----------
        estimator : fitted estimator
            A kernel method of this library (of several views, the weighted sum of kernels is used), or any clusterer of
            one table, whose columns then serve as they are.
        X : array-like or views, as in ``fit``
            The training samples.
        max_samples : int, default=2000
            So many are drawn at random where there are more: the cost grows with the cube of it.
        regions : bool, default=True
            Whether to colour the regions of the clusters.
        random_state : int, RandomState instance or None, default=0
            Seed of the draw.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : EmbeddingDisplay
            The display, drawn.
        """
        final = last_of(estimator)
        if not hasattr(final, "labels_"):
            raise ParameterError(f"estimator={type(final).__name__}(...) has no labels_. Fit it first.")
        X = seen_by_last(estimator, X)
        labels = np.asarray(final.labels_)
        rows = _drawn(len(labels), max_samples, random_state)
        points, shares = kernel_plane(_kernel_of(final, X, rows))
        return cls(points, labels=labels[rows], shares=shares).plot(ax, regions=regions)

    @classmethod
    def from_predictions(cls, K: Any, labels: Any, *, regions: bool = True, ax: Any = None) -> "EmbeddingDisplay":
        """Draw samples given by a kernel matrix.

        Parameters
        ----------
        K : array-like of shape (n_samples, n_samples)
            The kernel, symmetric.
        labels : array-like of shape (n_samples,)
            Clusters.
        regions : bool, default=True
            Whether to colour the regions of the clusters.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : EmbeddingDisplay
            The display, drawn.
        """
        matrix = np.asarray(K, dtype=np.float64)
        codes = np.asarray(labels)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] != len(codes):
            raise ParameterError(f"K of shape {matrix.shape} and {len(codes)} labels do not belong together.")
        if not np.isfinite(matrix).all():
            raise ParameterError("K holds values that are not finite.")
        points, shares = kernel_plane(matrix)
        return cls(points, labels=codes, shares=shares).plot(ax, regions=regions)

    def plot(self, ax: Any = None, *, regions: bool = True, **scatter_kwargs: Any) -> "EmbeddingDisplay":
        """Draw samples and regions.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        regions : bool, default=True
            Whether to colour the regions of the clusters.
        **scatter_kwargs : dict
            Passed to ``Axes.scatter``.

        Returns
        -------
        display : EmbeddingDisplay
            This display, with ``ax_``, ``figure_``, ``scatters_`` and ``regions_`` set.
        """
        ax = new_axes(self) if ax is None else ax
        found, codes = np.unique(self.labels, return_inverse=True)
        self.regions_ = self._colour(ax, codes, len(found)) if regions and len(found) > 1 else None
        style = {"s": 14, "linewidths": 0.4, "edgecolors": "white", **scatter_kwargs}
        self.scatters_ = []
        for c, name in enumerate(found):
            look = cluster_look(c)
            own = self.points[codes == c]
            self.scatters_.append(ax.scatter(*own.T, label=str(name), **{**look, **style}))
        along = ["", ""] if self.shares is None else [f", {share:.0%} of the variance" for share in self.shares]
        ax.set_xlabel(f"component 1{along[0]}")
        ax.set_ylabel(f"component 2{along[1]}")
        if len(found) <= 15:
            ax.legend(title="cluster", frameon=False, fontsize=8, loc="best")
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _colour(self, ax: Any, codes: Ints, k: int) -> Any:
        """Colour the plane by the clusters of the nearest samples."""
        from matplotlib.colors import to_rgb
        from sklearn.neighbors import KNeighborsClassifier

        low = self.points.min(axis=0)
        high = self.points.max(axis=0)
        pad = 0.06 * np.maximum(high - low, 1e-12)
        low = low - pad
        high = high + pad
        side = [np.linspace(a, b, GRID) for a, b in zip(low, high, strict=True)]
        grid = np.stack(np.meshgrid(*side), axis=-1).reshape(-1, 2)
        scale = np.maximum(high - low, 1e-12)
        near = KNeighborsClassifier(min(NEIGHBOURS, len(codes))).fit(self.points / scale, codes)
        shades = np.array([to_rgb(COLOURS[c % len(COLOURS)]) for c in range(k)])
        picture = shades[near.predict(grid / scale)].reshape(GRID, GRID, 3)
        extent = (low[0], high[0], low[1], high[1])
        image = ax.imshow(picture, extent=extent, origin="lower", aspect="auto", alpha=0.18, zorder=0)
        ax.set_xlim(low[0], high[0])
        ax.set_ylim(low[1], high[1])
        return image


def kernel_plane(K: Floats) -> tuple[Floats, tuple[float, float]]:
    """Return the two leading kernel principal components and their shares of the variance."""
    points, shares = principal_components(centred(K), 2)
    return points, (float(shares[0]), float(shares[1]))


def _drawn(n: int, most: Any, random_state: Any) -> Ints:
    from numbers import Integral

    from kernelweave.foundation.random_streams import streams

    if isinstance(most, bool) or not isinstance(most, Integral) or int(most) < 2:
        raise ParameterError(f"max_samples={most!r} must be a whole number from 2 on.")
    if n <= int(most):
        return np.arange(n)
    return np.sort(streams(random_state, 1)[0].choice(n, int(most), replace=False))


def _kernel_of(final: Any, X: Any, rows: Ints) -> Floats:
    """Return the kernel of the samples drawn, as the estimator sees it, or inner products of their columns."""
    from kernelweave.evaluation.plots.kernel_matrix import _rows

    part = _rows(X, rows)
    if hasattr(final, "_cross"):
        cross = final._cross(part)
        if hasattr(final, "kernel_coefficients_") and hasattr(cross, "with_weights"):
            cross = cross.with_weights(final.kernel_coefficients_)
        if cross.shape[1] == len(final.labels_):
            return np.asarray(cross.block(slice(None), rows), dtype=np.float64)
    blocks = list(part.values()) if isinstance(part, dict) else list(part) if is_multi_view(part) else [part]
    total = np.zeros((len(rows), len(rows)))
    for block in blocks:
        product = block @ block.T
        K = np.asarray(product.toarray() if hasattr(product, "toarray") else product, dtype=np.float64)
        spread = float(np.trace(K) / len(K) - K.mean())
        total += K / spread if spread > 0 and len(blocks) > 1 else K
    return total
