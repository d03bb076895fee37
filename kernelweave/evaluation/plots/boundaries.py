"""Where clusters end, as a plot: regions of the plane by cluster, one panel for each view."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from kernelweave.evaluation.palette import LIGHT, colour_index
from kernelweave.evaluation.plots.regions import NOWHERE, grid_around, leading_panel, panels_of, same_numbers
from kernelweave.evaluation.plots.style import (
    SIZE,
    as_many_axes,
    cluster_colour,
    cluster_style,
    dress,
    marker_area,
    new_axes,
    numbers,
    scatter_style,
    shades_of,
)
from kernelweave.evaluation.plots.words import LISTED, legend_beside, name_clusters, shortened, wrapped
from kernelweave.foundation.array_types import Array, Floats, Ints
from kernelweave.foundation.errors import ParameterError

# Place in the palette of the colour that is grey itself.
GREY_CLUSTER = LIGHT.index("#6b6b6b")
HATCH = "///"
LIKE_NONE = "like no sample"
# How much of a cluster's colour its region has; the rest is the ground.
TINT = 0.3


class BoundaryDisplay:
    """Regions of the plane, coloured by the cluster that a sample there would get, with samples on top.

    A model of one view with two features has one panel, a multi-view kernel spectral model with views of two features
    has one for each view. A point in a panel is known only in that view, so only the scores of that view decide: by the
    codebook of the view with ``assignment="per_view"``, otherwise by the joint one. Samples have the clusters that all
    views together give them, or known classes.

    Regions are grey where the model has no information: far from all training samples, kernel rows vanish and scores
    are meaningless.

    Create one with :meth:`from_estimator`; redraw it elsewhere with :meth:`plot`. Drawing needs matplotlib, which
    ``kernelweave[plots]`` installs.

    Parameters
    ----------
    points : list of ndarray of shape (n_samples, 2)
        Positions of the samples, panel by panel.
    regions : list of ndarray of shape (n_grid, n_grid)
        Regions at the points of a grid, rows from bottom to top; -1 is grey.
    extents : list of ndarray of four float
        Left, right, bottom and top of every grid.
    labels : list of ndarray of shape (n_samples,)
        What the samples are coloured by, panel by panel. Numbers mean the same in all panels and in ``regions``.
    label_names : sequence of str
        What these numbers stand for in the legend.
    titles : sequence of str, default=("",)
        Names of the panels.
    axis_names : list of pairs of str, default=None
        Labels of the axes, panel by panel.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        The panels.
    figure_ : matplotlib Figure
        Figure with the panels.
    images_ : list of matplotlib AxesImage
        The regions, one image for each panel.
    legend_ : matplotlib Legend
        The legend, beside the last panel. With more than 12 clusters it lists only the first ones.
    texts_ : list of matplotlib Annotation
        If there are more, the numbers or classes of the clusters, written on their samples.

    See Also
    --------
    ScoreDisplay : The scores of the samples.
    kernelweave.MultiViewKernelSpectralClustering : The model of several views.

    Notes
    -----
    Cost: ``predict``, or the scores of every view, for ``n_grid`` squared samples.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelweave import KernelSpectralClustering
    >>> from kernelweave.datasets import make_two_rings
    >>> from kernelweave.plots import BoundaryDisplay
    >>> X, y = make_two_rings(random_state=0)
    >>> model = KernelSpectralClustering(2, kernel_params={"sigma": 0.3}).fit(X)
    >>> display = BoundaryDisplay.from_estimator(model, X, n_grid=50, axes=Figure().subplots())
    >>> [text.get_text() for text in display.legend_.get_texts()]
    ['cluster 0', 'cluster 1', 'like no sample']
    """

    def __init__(
        self,
        points: Any,
        *,
        regions: Any,
        extents: Any,
        labels: Any,
        label_names: Any,
        titles: Any = ("",),
        axis_names: Any = None,
    ) -> None:
        self.points = points
        self.regions = regions
        self.extents = extents
        self.labels = labels
        self.label_names = label_names
        self.titles = titles
        self.axis_names = axis_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        labels: Any = None,
        n_grid: int = 200,
        least_degree: float = 1e-3,
        axes: Any = None,
        **scatter_kwargs: Any,
    ) -> "BoundaryDisplay":
        """Draw the regions of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            Anything with ``predict``, including a pipeline, for two features; for several views a
            :class:`~kernelweave.MultiViewKernelSpectralClustering`. For a search, its best estimator is used.
        X : array-like or sparse matrix of shape (n_samples, 2), or views of two features each, as in ``fit``
            The samples to draw, new ones or those of ``fit``.
        labels : array-like of shape (n_samples,), default=None
            Classes to colour the samples by, such as true ones. By default the clusters that ``predict``, or
            ``predict_views``, finds for them. A cluster has the colour of the class that it shares most samples with,
            each class taken once, and likewise from panel to panel.
        n_grid : int, default=200
            Points of the grid in each direction.
        least_degree : float, default=1e-3
            For kernel spectral models: points whose kernel row adds up to less than this share of the median degree of
            the training samples are grey. With 0 none are grey.
        axes : matplotlib Axes or array of them, default=None
            Where to draw, one for each panel; a new figure by default.
        **scatter_kwargs : dict
            Passed to ``Axes.scatter`` for the samples.

        Returns
        -------
        display : BoundaryDisplay
            The display, drawn.
        """
        if isinstance(n_grid, bool) or not isinstance(n_grid, Integral) or n_grid < 2:
            raise ParameterError(f"n_grid={n_grid!r} must be a whole number of at least 2.")
        if isinstance(least_degree, bool) or not isinstance(least_degree, Real) or not 0 <= float(least_degree) < 1:
            raise ParameterError(f"least_degree={least_degree!r} must be a number from 0 to below 1.")
        estimator = getattr(estimator, "best_estimator_", estimator)
        if not hasattr(estimator, "predict"):
            raise ParameterError(
                f"estimator={type(estimator).__name__}(...) has no predict, so that points between the samples belong "
                "to no cluster."
            )
        panels = panels_of(estimator, X, float(least_degree))
        grids = [grid_around(panel.points, int(n_grid)) for panel in panels]
        regions = [panel.place(grid).reshape(n_grid, n_grid) for panel, (_, grid) in zip(panels, grids, strict=True)]
        lead = leading_panel(estimator, len(panels))
        shown, names, regions = same_numbers([panel.labels for panel in panels], regions, labels, lead)
        display = cls(
            [panel.points for panel in panels],
            regions=regions,
            extents=[extent for extent, _ in grids],
            labels=shown,
            label_names=names,
            titles=[panel.title for panel in panels],
            axis_names=[panel.names for panel in panels],
        )
        return display.plot(axes, **scatter_kwargs)

    def plot(self, axes: Any = None, **scatter_kwargs: Any) -> "BoundaryDisplay":
        """Draw the panels.

        Parameters
        ----------
        axes : matplotlib Axes or array of them, default=None
            Where to draw, one for each panel; a new figure by default.
        **scatter_kwargs : dict
            Passed to ``Axes.scatter`` for the samples.

        Returns
        -------
        display : BoundaryDisplay
            This display, with ``axes_``, ``figure_``, ``images_`` and ``legend_`` set.
        """
        count = len(self.points)
        self.axes_ = self._new_axes(count) if axes is None else as_many_axes(axes, count)
        self.figure_ = self.axes_[0].figure
        edge = shades_of(self.axes_[0]).edge
        style = scatter_style(scatter_kwargs, s=marker_area(len(self.points[0])), linewidth=0.25, edgecolor=edge)
        names = self.axis_names or [("", "")] * count
        self.images_ = []
        for p, ax in enumerate(self.axes_):
            self.images_.append(self._draw_regions(ax, self.regions[p], self.extents[p]))
            for c in np.unique(self.labels[p]):
                ax.scatter(*self.points[p][self.labels[p] == c].T, **{**cluster_style(ax, c), **style})
            ax.set_title(wrapped(self.titles[p], 34))
            ax.set_xlabel(shortened(names[p][0], 40))
            ax.set_ylabel(shortened(names[p][1], 40))
            self._dress(ax, self.extents[p])
        self.legend_ = self._legend()
        self.texts_ = self._names()
        return self

    def _new_axes(self, count: int) -> Array:
        longest = max(len(shortened(name)) for name in (*self.label_names, LIKE_NONE))
        size = (4.0 * count + 0.6 + 0.065 * longest, SIZE[1])  # square panels, and the legend
        return np.atleast_1d(np.asarray(new_axes(self, count, figsize=size), dtype=object))

    def _draw_regions(self, ax: Any, regions: Ints, extent: Floats) -> Any:
        from matplotlib.colors import to_rgb

        image = np.empty((*regions.shape, 3))
        shades = shades_of(ax)
        ground = np.array(to_rgb(shades.ground))
        image[regions == NOWHERE] = to_rgb(shades.unknown)
        for c in np.unique(regions[regions != NOWHERE]):
            image[regions == c] = ground - TINT * (ground - np.array(to_rgb(cluster_colour(ax, c))))
        places = [np.linspace(extent[i], extent[i + 1], regions.shape[0]) for i in (0, 2)]
        half = [0.5 * (along[1] - along[0]) for along in places]
        edges = (extent[0] - half[0], extent[1] + half[0], extent[2] - half[1], extent[3] + half[1])
        drawn = ax.imshow(image, origin="lower", extent=edges, aspect="auto", interpolation="nearest", zorder=0)
        if self._grey_cluster():
            nowhere = (regions == NOWHERE).astype(float)
            if nowhere.any():
                lines = ax.contourf(*places, nowhere, levels=[0.5, 1.5], colors="none", hatches=[HATCH], zorder=0.5)
                lines.set(edgecolor=shades.quiet, linewidth=0)
        # A line around every region but the grey one tells clusters apart where colours do not.
        for c in np.unique(regions[regions != NOWHERE]):
            mask = (regions == c).astype(float)
            if 0 < mask.sum() < mask.size:
                ax.contour(*places, mask, levels=[0.5], colors=shades.edge, linewidths=0.8, zorder=3)
        return drawn

    def _grey_cluster(self) -> bool:
        """Whether a cluster is grey itself, so that grey alone does not show where nothing is known."""
        used = np.unique(np.concatenate([np.unique(region) for region in self.regions]))
        return any(colour_index(int(c)) == GREY_CLUSTER for c in used[used != NOWHERE])

    def _dress(self, ax: Any, extent: Floats) -> None:
        ax.set_box_aspect(1)
        ax.set_xlim(extent[0], extent[1])
        ax.set_ylim(extent[2], extent[3])
        dress(ax, box=True)
        numbers(ax.xaxis)
        numbers(ax.yaxis)

    def _names(self) -> list[Any]:
        """Write the names of clusters on their samples where the legend does not list them all."""
        if len(np.unique(np.concatenate(self.labels))) <= LISTED:
            return []
        names = [str(name).removeprefix("cluster ").removeprefix("class ") for name in self.label_names]
        panels = zip(self.axes_, self.points, self.labels, strict=True)
        return [text for ax, points, labels in panels for text in name_clusters(ax, points, labels, names)]

    def _legend(self) -> Any:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        used = np.unique(np.concatenate([np.unique(labels) for labels in self.labels]))
        signs: list[Any] = []
        for c in used:
            marker: dict[str, Any] = {**cluster_style(self.axes_[-1], c), "linestyle": "", "markersize": 6}
            signs.append(Line2D([], [], label=shortened(self.label_names[c]), **marker))
        last = []
        if any((region == NOWHERE).any() for region in self.regions):
            hatch = HATCH if self._grey_cluster() else None
            shades = shades_of(self.axes_[-1])
            grey: dict[str, Any] = {"facecolor": shades.unknown, "edgecolor": shades.quiet, "linewidth": 0.5}
            last.append(Patch(hatch=hatch, label=LIKE_NONE, **grey))
        return legend_beside(self.axes_[-1], signs, last=last)
