"""Samples of any kernel in the plane, with the regions of the clusters, as a picture."""

from numbers import Integral
from typing import Any

import numpy as np

from kernelweave.evaluation.describe import Clustering, final_step, read_clustering
from kernelweave.evaluation.describe.distances import mean_of_views, node_places, scaled, squares_by_view
from kernelweave.evaluation.describe.kernels import has_fitted_kernel, kernel_among, training_samples
from kernelweave.evaluation.plots.style import COLOURS, cluster_style, new_axes
from kernelweave.evaluation.principal import kernel_components, scaling_components
from kernelweave.evaluation.sampling import draw
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError

# Points of the grid along each side, and neighbours that decide the colour of a point.
GRID = 200
NEIGHBOURS = 15


class EmbeddingDisplay:
    """The samples in the plane of the two leading kernel principal components, and the regions of the clusters.

    Near points have similar kernel rows. The plane does not show distances in full: the axes give the share of
    the variance. Regions are drawn by the clusters of the nearest samples in the picture, not by ``predict``: points of
    the plane are not samples.

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
        """Draw the samples of a fitted estimator by the distances it works with.

        Parameters
        ----------
        estimator : fitted estimator
            A kernel method of this library (of several views, the weighted sum of kernels is used), or any other
            clusterer: of distances or divergences the axes are those of classical scaling, of a graph two eigenvectors
            of its random walk, and of several views without a sum of kernels every view counts the same.
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
        final = final_step(estimator)
        if not hasattr(final, "labels_"):
            raise ParameterError(f"estimator={type(final).__name__}(...) has no labels_. Fit it first.")
        if isinstance(max_samples, bool) or not isinstance(max_samples, Integral) or int(max_samples) < 2:
            raise ParameterError(f"max_samples={max_samples!r} must be a whole number from 2 on.")
        clustering = read_clustering(estimator, X)
        rows = draw(clustering.n_samples, int(max_samples), random_state, "displayed samples")
        points, shares = _plane(clustering, rows)
        return cls(points, labels=np.asarray(final.labels_)[rows], shares=shares).plot(ax, regions=regions)

    @classmethod
    def from_predictions(cls, K: Any, labels: Any, *, regions: bool = True, ax: Any = None) -> "EmbeddingDisplay":
        """Draw the samples of a kernel matrix.

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
        points, shares = kernel_components(matrix, 2)
        return cls(points, labels=codes, shares=_pair(shares)).plot(ax, regions=regions)

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
        clusters, codes = np.unique(self.labels, return_inverse=True)
        self.regions_ = self._colour(ax, codes, len(clusters)) if regions and len(clusters) > 1 else None
        style = {"s": 14, "linewidths": 0.4, "edgecolors": "white", **scatter_kwargs}
        self.scatters_ = []
        for c, name in enumerate(clusters):
            members = self.points[codes == c]
            self.scatters_.append(ax.scatter(*members.T, label=str(name), **{**cluster_style(c), **style}))
        along = ["", ""] if self.shares is None else [f", {share:.0%} of the variance" for share in self.shares]
        ax.set_xlabel(f"component 1{along[0]}")
        ax.set_ylabel(f"component 2{along[1]}")
        if len(clusters) <= 15:
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


def _plane(clustering: Clustering, rows: Ints) -> tuple[Floats, tuple[float, float] | None]:
    """Return the samples in the plane, and the shares of the variance along its axes; a graph has none."""
    model = clustering.model
    if has_fitted_kernel(model) and len(training_samples(model)) == clustering.n_samples:
        points, shares = kernel_components(kernel_among(model, clustering.samples, rows), 2)
        return points, _pair(shares)
    places = node_places(clustering)
    if places is not None:
        return places[rows, :2], None
    squares = list(squares_by_view(clustering, rows))
    together = squares[0] if len(squares) == 1 else len(squares) * mean_of_views([scaled(each) for each in squares])
    points, shares = scaling_components(together, 2)
    return points, _pair(shares)


def _pair(shares: Floats) -> tuple[float, float]:
    return float(shares[0]), float(shares[1])
