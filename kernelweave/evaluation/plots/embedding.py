"""Samples of any kernel in the plane, by cluster, as a plot."""

from numbers import Integral
from typing import Any

import numpy as np

from kernelweave.evaluation.describe import Clustering, final_step, read_clustering
from kernelweave.evaluation.describe.distances import mean_of_views, node_places, scaled, squares_by_view
from kernelweave.evaluation.describe.kernels import has_fitted_kernel, kernel_among, training_samples
from kernelweave.evaluation.describe.views import View
from kernelweave.evaluation.plots.style import (
    cluster_colour,
    cluster_style,
    frame,
    marker_area,
    new_axes,
    scatter_style,
    shades_of,
)
from kernelweave.evaluation.plots.words import LISTED, legend_beside, name_clusters, shortened
from kernelweave.evaluation.principal import kernel_components, scaling_components
from kernelweave.evaluation.sampling import draw
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError

# Points of the grid along each side, and neighbours that decide the colour of a point.
GRID = 200
NEIGHBOURS = 15
# Names of the axes, by what they are; shares of the variance are written beside the first alone.
OF_DATA = "principal component"
OF_KERNEL = "kernel principal component"
OF_DISTANCES = "coordinate"
OF_GRAPH = "spectral component"
NEIGHBOUR_GRAPH = "nearest_neighbors"


class EmbeddingDisplay:
    """The samples in the plane of the two leading kernel principal components, by cluster.

    Nearby points have similar kernel rows. The plane does not show distances completely. Where the axes are principal
    components of the data they give their shares of the variance; shares of a kernel's or a graph's spectrum say little
    about the data and are not shown.

    Regions of the clusters are drawn on request, by the clusters of the nearest samples in the picture, not by
    ``predict``: points of the plane are not samples, and most of the plane holds none.

    Clusters beyond 12 are named on their samples, and the legend lists the first ones.

    Create one with :meth:`from_estimator` or :meth:`from_predictions`; redraw it elsewhere with :meth:`plot`. Drawing
    needs matplotlib, which ``kernelweave[plots]`` installs.

    Parameters
    ----------
    points : ndarray of shape (n_drawn, 2)
        Samples in the plane.
    labels : ndarray of shape (n_drawn,)
        Their clusters.
    shares : tuple of two float or None, default=None
        Shares of the variance along the axes, written where ``axis_name`` is the default.
    axis_name : str, default="principal component"
        What the axes are.

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
    legend_ : matplotlib Legend or None
        The legend, beside the samples; None where there is one cluster.
    texts_ : list of matplotlib Annotation
        Names of the clusters on their samples, where there are more than 12.

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

    def __init__(
        self, points: Floats, *, labels: Any, shares: tuple[float, float] | None = None, axis_name: str = OF_DATA
    ) -> None:
        self.points = points
        self.labels = labels
        self.shares = shares
        self.axis_name = axis_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        max_samples: int = 2000,
        regions: bool = False,
        random_state: Any = 0,
        ax: Any = None,
    ) -> "EmbeddingDisplay":
        """Draw the samples of a fitted estimator by the distances it works with.

        Parameters
        ----------
        estimator : fitted estimator
            A kernel method of this library (of several views, the weighted sum of kernels is used), or any other
            clusterer: of distances or divergences the axes are those of classical scaling, of a graph two eigenvectors
            of its random walk, and several views without a sum of kernels have equal weight.
        X : array-like or views, as in ``fit``
            The training samples.
        max_samples : int, default=2000
            Largest number of samples, drawn at random if there are more; the cost grows with its cube.
        regions : bool, default=False
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
            raise ParameterError(f"max_samples={max_samples!r} must be a whole number of at least 2.")
        clustering = read_clustering(estimator, X)
        rows = draw(clustering.n_samples, int(max_samples), random_state, "displayed samples")
        points, shares, name = _plane(clustering, rows)
        display = cls(points, labels=np.asarray(final.labels_)[rows], shares=shares, axis_name=name)
        return display.plot(ax, regions=regions)

    @classmethod
    def from_predictions(cls, K: Any, labels: Any, *, regions: bool = False, ax: Any = None) -> "EmbeddingDisplay":
        """Draw the samples of a kernel matrix.

        Parameters
        ----------
        K : array-like of shape (n_samples, n_samples)
            The kernel, symmetric.
        labels : array-like of shape (n_samples,)
            Clusters.
        regions : bool, default=False
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
            raise ParameterError(f"K of shape {matrix.shape} and {len(codes)} labels do not match.")
        if not np.isfinite(matrix).all():
            raise ParameterError("K holds values that are not finite.")
        points, shares = kernel_components(matrix, 2)
        return cls(points, labels=codes, shares=_pair(shares), axis_name=OF_KERNEL).plot(ax, regions=regions)

    def plot(self, ax: Any = None, *, regions: bool = False, **scatter_kwargs: Any) -> "EmbeddingDisplay":
        """Draw the samples, and the regions where they are asked for.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        regions : bool, default=False
            Whether to colour the regions of the clusters.
        **scatter_kwargs : dict
            Passed to ``Axes.scatter``.

        Returns
        -------
        display : EmbeddingDisplay
            This display, with ``ax_``, ``figure_``, ``scatters_``, ``regions_``, ``legend_`` and ``texts_`` set.
        """
        ax = new_axes(self) if ax is None else ax
        clusters, codes = np.unique(self.labels, return_inverse=True)
        self.regions_ = self._colour(ax, codes, len(clusters)) if regions and len(clusters) > 1 else None
        area = marker_area(len(codes))
        style = scatter_style(scatter_kwargs, s=area, linewidth=0.25, edgecolor=shades_of(ax).ground)
        self.scatters_ = []
        for c, name in enumerate(clusters):
            members = self.points[codes == c]
            self.scatters_.append(ax.scatter(*members.T, label=shortened(name), **{**cluster_style(ax, c), **style}))
        along = ["", ""]
        if self.shares is not None and self.axis_name == OF_DATA:
            along = [f", {share:.0%} of the variance" for share in self.shares]
        ax.set_xlabel(f"{self.axis_name} 1{along[0]}")
        ax.set_ylabel(f"{self.axis_name} 2{along[1]}")
        frame(ax, self.points)
        if self.regions_ is not None:
            left, right, bottom, top = self.regions_.get_extent()
            ax.set_xlim(left, right)
            ax.set_ylim(bottom, top)
        self.legend_ = None
        if len(clusters) > 1:
            self.legend_ = legend_beside(ax, self.scatters_, title="cluster")
        self.texts_ = name_clusters(ax, self.points, codes, list(clusters)) if len(clusters) > LISTED else []
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
        shades = np.array([to_rgb(cluster_colour(ax, c)) for c in range(k)])
        picture = shades[near.predict(grid / scale)].reshape(GRID, GRID, 3)
        extent = (low[0], high[0], low[1], high[1])
        return ax.imshow(picture, extent=extent, origin="lower", aspect="auto", alpha=0.18, zorder=0)


def _plane(clustering: Clustering, rows: Ints) -> tuple[Floats, tuple[float, float] | None, str]:
    """Return the samples in the plane, the shares of the variance along its axes, and what these are.

    A graph has no shares.
    """
    model = clustering.model
    if has_fitted_kernel(model) and len(training_samples(model)) == clustering.n_samples:
        points, shares = kernel_components(kernel_among(model, clustering.samples, rows), 2)
        return points, _pair(shares), _components_of(clustering)
    places = node_places(clustering)
    if places is not None:
        return places[rows, :2], None, OF_GRAPH
    squares = list(squares_by_view(clustering, rows))
    together = squares[0] if len(squares) == 1 else len(squares) * mean_of_views([scaled(each) for each in squares])
    points, shares = scaling_components(together, 2)
    ways = {view.compared_by for view in clustering.views}
    if "kernel" in ways:
        return points, _pair(shares), _components_of(clustering)
    return points, _pair(shares), OF_DISTANCES if "metric" in ways else OF_DATA


def _components_of(clustering: Clustering) -> str:
    """Return what the components of a model's kernel are: those of the data where all of its kernels are linear."""
    if all(view.kind == "graph" or _by_kernels(view, NEIGHBOUR_GRAPH) for view in clustering.views):
        return OF_GRAPH
    linear = all(view.kind == "features" and _by_kernels(view, "linear") for view in clustering.views)
    return OF_DATA if linear else OF_KERNEL


def _by_kernels(view: View, name: str) -> bool:
    """Whether a view is compared by kernels of this name alone. A view without any has become a graph in the model."""
    kernels = [kernel for kernel, _ in view.measure.kernels]
    if not kernels:
        return name == NEIGHBOUR_GRAPH and view.kind != "kernel"
    return all(isinstance(kernel, str) and kernel == name for kernel in kernels)


def _pair(shares: Floats) -> tuple[float, float]:
    return float(shares[0]), float(shares[1])
