"""Where clusters end, as a picture: regions of the plane by cluster, one panel for each view."""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.pipeline import Pipeline

from kernelweave.estimators.shared.scores import chunks
from kernelweave.estimators.shared.single_kernel import is_precomputed
from kernelweave.evaluation.plots.style import (
    COLOURS,
    EDGE,
    QUIET,
    as_many_axes,
    cluster_style,
    new_axes,
    scatter_style,
)
from kernelweave.foundation.array_types import Array, Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import as_views, is_multi_view, read_views, split_columns
from kernelweave.solvers.spectral.kernel_spectral import decode

# Region of points the model knows nothing of, and its colour.
NOWHERE = -1
GREY = "#c4c4c4"
HATCH = "///"
# The grid goes beyond the samples by this share of their span. It is a square, and distances are as they are, unless
# one span is longer than the other by more than LONGEST.
BEYOND = 0.08
LONGEST = 2.0
# How much of a cluster's colour its region has; the rest is white.
TINT = 0.3


class BoundaryDisplay:
    """Regions of the plane by the cluster a sample there would get, with samples on top.

    A model of one view with two features has one panel, a multi-view kernel spectral model with views of two features
    has one for each view. Of a point in one panel only that view is known, so the scores of that view alone decide: by
    the view's own codebook with ``assignment="per_view"``, else by the joint one. Samples have the clusters that all
    views together give them, or classes of your own.

    Regions are grey where the model knows nothing: kernel rows vanish far from all training samples, and the scores
    there are those of no sample at all.

    Make one with :meth:`from_estimator`; draw it again elsewhere with :meth:`plot`. Drawing needs matplotlib, which
    ``kernelweave[plots]`` installs.

    Parameters
    ----------
    points : list of ndarray of shape (n_samples, 2)
        Where the samples lie, panel by panel.
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
        The legend, below the panels; in the first one where the caller gave the axes.

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
            Anything with ``predict``, a pipeline too, for two features; for several views a
            :class:`~kernelweave.MultiViewKernelSpectralClustering`. Of a search its best estimator is taken.
        X : array-like or sparse matrix of shape (n_samples, 2), or views of two features each, as in ``fit``
            The samples to draw, new ones or those of ``fit``.
        labels : array-like of shape (n_samples,), default=None
            Classes to colour the samples by, such as true ones. By default the clusters that ``predict``, or
            ``predict_views``, finds for them. A cluster has the colour of the class that it shares most samples with,
            each class given once, and likewise from panel to panel.
        n_grid : int, default=200
            Points of the grid in each direction.
        least_degree : float, default=1e-3
            Of kernel spectral models: points are grey whose kernel row adds up to less than this share of the median
            degree of the training samples. 0 leaves none grey.
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
            raise ParameterError(f"n_grid={n_grid!r} must be a whole number from 2 on.")
        if isinstance(least_degree, bool) or not isinstance(least_degree, Real) or not 0 <= float(least_degree) < 1:
            raise ParameterError(f"least_degree={least_degree!r} must be a number from 0 to below 1.")
        estimator = getattr(estimator, "best_estimator_", estimator)
        if not hasattr(estimator, "predict"):
            raise ParameterError(
                f"estimator={type(estimator).__name__}(...) has no predict, so that points between the samples belong "
                "to no cluster."
            )
        panels = _panels(estimator, X, float(least_degree))
        grids = [_grid(panel.points, int(n_grid)) for panel in panels]
        regions = [panel.place(grid).reshape(n_grid, n_grid) for panel, (_, grid) in zip(panels, grids, strict=True)]
        lead = _leading(estimator, len(panels))
        shown, names, regions = _coloured([panel.labels for panel in panels], regions, labels, lead)
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
        size = float(np.clip(8000.0 / len(self.points[0]), 6.0, 26.0))
        style = scatter_style(scatter_kwargs, s=size, linewidth=0.25, edgecolor=EDGE)
        names = self.axis_names or [("", "")] * count
        self.images_ = []
        for p, ax in enumerate(self.axes_):
            self.images_.append(self._draw_regions(ax, self.regions[p], self.extents[p]))
            for c in np.unique(self.labels[p]):
                ax.scatter(*self.points[p][self.labels[p] == c].T, **{**cluster_style(c), **style})
            ax.set_title(self.titles[p], fontsize=10)
            ax.set_xlabel(names[p][0])
            ax.set_ylabel(names[p][1])
            self._dress(ax, self.extents[p])
        self.legend_ = self._legend(axes is None)
        return self

    def _new_axes(self, count: int) -> Array:
        return np.atleast_1d(np.asarray(new_axes(self, count, figsize=(3.3 * count + 0.5, 3.9)), dtype=object))

    def _draw_regions(self, ax: Any, regions: Ints, extent: Floats) -> Any:
        from matplotlib.colors import to_rgb

        image = np.empty((*regions.shape, 3))
        image[regions == NOWHERE] = to_rgb(GREY)
        for c in np.unique(regions[regions != NOWHERE]):
            image[regions == c] = 1.0 - TINT * (1.0 - np.array(to_rgb(COLOURS[c % len(COLOURS)])))
        places = [np.linspace(extent[i], extent[i + 1], regions.shape[0]) for i in (0, 2)]
        half = [0.5 * (along[1] - along[0]) for along in places]
        edges = (extent[0] - half[0], extent[1] + half[0], extent[2] - half[1], extent[3] + half[1])
        drawn = ax.imshow(image, origin="lower", extent=edges, aspect="auto", interpolation="nearest", zorder=0)
        if self._grey_cluster():
            nowhere = (regions == NOWHERE).astype(float)
            if nowhere.any():
                lines = ax.contourf(*places, nowhere, levels=[0.5, 1.5], colors="none", hatches=[HATCH], zorder=0.5)
                lines.set(edgecolor=QUIET, linewidth=0)
        # A line around every region but the grey one tells clusters apart where colours do not.
        for c in np.unique(regions[regions != NOWHERE]):
            mask = (regions == c).astype(float)
            if 0 < mask.sum() < mask.size:
                ax.contour(*places, mask, levels=[0.5], colors=EDGE, linewidths=0.8, zorder=3)
        return drawn

    def _grey_cluster(self) -> bool:
        """Whether a cluster is grey itself, so that grey alone does not say where nothing is known."""
        used = np.unique(np.concatenate([np.unique(own) for own in self.regions]))
        return bool((used[used != NOWHERE] % len(COLOURS) == len(COLOURS) - 1).any())

    def _dress(self, ax: Any, extent: Floats) -> None:
        ax.set_box_aspect(1)
        ax.set_xlim(extent[0], extent[1])
        ax.set_ylim(extent[2], extent[3])
        ax.tick_params(length=2, color=QUIET, labelsize=8, labelcolor="#555555")
        ax.spines[:].set_color("#cccccc")

    def _legend(self, ours: bool) -> Any:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        used = np.unique(np.concatenate([np.unique(own) for own in self.labels]))
        signs: list[Any] = []
        for c in used:
            look: dict[str, Any] = {**cluster_style(c), "linestyle": "", "markersize": 6}
            signs.append(Line2D([], [], label=self.label_names[c], **look))
        if any((own == NOWHERE).any() for own in self.regions):
            hatch = HATCH if self._grey_cluster() else None
            signs.append(Patch(facecolor=GREY, edgecolor=QUIET, linewidth=0.5, hatch=hatch, label="like no sample"))
        if ours:
            style: dict[str, Any] = {"frameon": False, "fontsize": 8, "ncols": min(len(signs), 3 * len(self.axes_))}
            return self.figure_.legend(handles=signs, loc="outside lower center", **style)
        # The caller's figure may have no room below the panels.
        return self.axes_[0].legend(handles=signs, framealpha=0.85, edgecolor="none", fontsize=8, loc="best")


class _Panel:
    """One panel: samples, what they are called, and a function that places points of the plane."""

    def __init__(
        self, points: Any, labels: Ints, place: Callable[[Floats], Ints], names: tuple[str, str], title: str = ""
    ) -> None:
        self.points: Floats = np.asarray(points.toarray() if sp.issparse(points) else points, dtype=np.float64)
        self.labels = labels
        self.place = place
        self.names = names
        self.title = title


def _panels(estimator: Any, X: Any, least: float) -> list[_Panel]:
    model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if is_precomputed(getattr(model, "kernel", None)):
        raise ParameterError(
            "The model was fitted on given similarities, which points between the samples do not have. Fit it on "
            "features and a kernel name."
        )
    if not is_multi_view(X):
        views = as_views(X)
        if views.widths[0] == 2:
            return [_single(estimator, model, X, views.blocks[0], least)]
        if getattr(model, "views", None) is None:
            raise ParameterError(
                f"X has {views.widths[0]} features; the picture shows two. Fit a model on two of them, or on the first "
                "two principal axes."
            )
    return _several(estimator, X, least)


def _single(estimator: Any, model: Any, X: Any, points: Any, least: float) -> _Panel:
    """Return the only panel of a model of two features."""

    def as_given(grid: Floats) -> Any:
        return type(X)(grid, columns=X.columns) if hasattr(X, "iloc") else grid

    def place(grid: Floats) -> Ints:
        found = _clusters(estimator, as_given(grid))
        if least > 0 and hasattr(model, "kernel_row_sums"):
            before = estimator[:-1].transform if isinstance(estimator, Pipeline) else lambda Z: Z
            sums = np.atleast_2d(model.kernel_row_sums(before(as_given(grid))))
            faint = [
                _vanishes(own, degrees, least) for own, degrees in zip(sums, np.atleast_2d(model.degrees_), strict=True)
            ]
            found[np.all(faint, axis=0)] = NOWHERE
        return found

    return _Panel(points, _clusters(estimator, X), place, _two_names(X))


def _several(estimator: Any, X: Any, least: float) -> list[_Panel]:
    """Return the panels of a multi-view kernel spectral model, one for each view."""
    name = type(estimator).__name__
    if isinstance(estimator, Pipeline):
        raise ParameterError(
            "The estimator is a pipeline that ends in a method for several views. Pass its last step, with the samples "
            "as the steps before leave them: from_estimator(pipe[-1], pipe[:-1].transform(X))."
        )
    if not hasattr(estimator, "transform_views"):
        raise ParameterError(
            f"estimator={name}(...) places a sample by all of its views together, and a point of the plane is seen in "
            "one. Of several views this picture shows MultiViewKernelSpectralClustering alone."
        )
    if not hasattr(estimator, "codebook_"):
        raise ParameterError(f"estimator={name}(...) is not fitted yet. Fit it first.")
    views = read_views(estimator, X, reset=False)
    wide = [(name, width) for name, width in zip(views.names, views.widths, strict=True) if width != 2]
    if wide:
        raise ParameterError(
            f"View {wide[0][0]!r} has {wide[0][1]} feature(s); the picture shows two of every view. Fit the model on "
            "views of two features, such as principal axes."
        )
    apart = hasattr(estimator, "view_codebooks_")
    books = estimator.view_codebooks_ if apart else [estimator.codebook_] * len(views)
    labels = estimator.predict_views(X) if apart else [estimator.predict(X)] * len(views)

    def placing(trained: Any, book: Floats, degrees: Floats) -> Callable[[Floats], Ints]:
        def place(grid: Floats) -> Ints:
            found = []
            for block in chunks(grid):
                codes = decode(trained.scores(block), book)
                if least > 0:
                    codes[_vanishes(trained.row_sums(block), degrees, least)] = NOWHERE
                found.append(codes)
            return np.concatenate(found)

        return place

    rows = zip(views.names, views.blocks, labels, books, estimator._model.views, estimator.degrees_, strict=True)
    return [
        _Panel(block, own, placing(trained, book, degrees), _view_columns(estimator, X, name), name)
        for name, block, own, book, trained, degrees in rows
    ]


def _clusters(estimator: Any, X: Any) -> Ints:
    """Return what predict says, some thousand samples at a time."""
    found = np.concatenate([np.asarray(estimator.predict(block)) for block in chunks(X)])
    if found.ndim != 1 or found.dtype.kind not in "iu" or found.min() < 0:
        raise ParameterError(
            f"estimator={type(estimator).__name__}(...) predicts {found[:3].tolist()}...; the picture takes cluster "
            "numbers from 0 on."
        )
    return found.astype(np.intp)


def _vanishes(sums: Floats, degrees: Floats, least: float) -> Any:
    """Return which kernel rows add up to next to nothing beside those of the training samples."""
    positive = degrees[degrees > 0]
    return np.abs(sums) < least * (float(np.median(positive)) if len(positive) else 0.0)


def _grid(points: Floats, n_grid: int) -> tuple[Floats, Floats]:
    """Return left, right, bottom and top of a grid around the samples, and its points row by row."""
    low = points.min(axis=0)
    high = points.max(axis=0)
    spans = np.where(high > low, high - low, max(float((high - low).max()), 1.0))
    middle = 0.5 * (low + high)
    wide = (1.0 + 2.0 * BEYOND) * spans
    if wide.max() <= LONGEST * wide.min():
        wide = np.full(2, wide.max())
    low = middle - 0.5 * wide
    high = middle + 0.5 * wide
    xs, ys = (np.linspace(low[i], high[i], n_grid) for i in (0, 1))
    across, up = np.meshgrid(xs, ys)
    return np.array([low[0], high[0], low[1], high[1]]), np.column_stack([across.ravel(), up.ravel()])


def _leading(estimator: Any, count: int) -> int:
    """Return the panel whose clusters keep their colours."""
    best = getattr(estimator, "best_view_", None)
    return estimator.view_names_.index(best) if best is not None and count > 1 else 0


def _coloured(
    found: list[Ints], regions: list[Ints], classes: Any, lead: int
) -> tuple[list[Ints], list[str], list[Ints]]:
    """Return samples and regions numbered alike in all panels, and the names of the numbers."""
    count = max(int(own.max()) for own in (*found, *regions)) + 1
    if classes is None:
        names = [f"cluster {c}" for c in range(count)]
        reference = found[lead]
    else:
        given = np.asarray(classes)
        if given.shape != found[0].shape:
            raise ParameterError(
                f"labels has shape {given.shape}; give one class for each of the {len(found[0])} samples."
            )
        known, reference = np.unique(given, return_inverse=True)
        names = [_said(name) for name in known]
        count = max(count, len(known))
    turns = [_matched(reference, own, count) for own in found]
    shown = [turn[own] if classes is None else reference for turn, own in zip(turns, found, strict=True)]
    return shown, names, [np.where(own < 0, own, turn[own]) for turn, own in zip(turns, regions, strict=True)]


def _said(name: Any) -> str:
    """Return what the legend says of a class: its name, or its number."""
    return str(name) if isinstance(name, str) else f"class {name}"


def _matched(reference: Ints, found: Ints, count: int) -> Ints:
    """Return for every cluster the number of the class it shares most samples with, each class given once."""
    shared = np.zeros((count, count))
    np.add.at(shared, (found, reference), 1.0)
    rows, columns = linear_sum_assignment(-shared - 1e-9 * np.eye(count))  # of equals the same number
    turn = np.empty(count, dtype=np.intp)
    turn[rows] = columns
    return turn


def _view_columns(estimator: Any, X: Any, name: str) -> tuple[str, str]:
    """Return the names of the two columns of a view."""
    if is_multi_view(X):
        parts = X.items() if isinstance(X, Mapping) else ((f"view_{i}", part) for i, part in enumerate(X))
        return _two_names({str(key): part for key, part in parts}[name])
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        return _two_names(None)
    numbers = split_columns(np.arange(len(known))[None], estimator.views, known)[name]
    first, second = known[numbers.ravel()]
    return str(first), str(second)


def _two_names(part: Any) -> tuple[str, str]:
    """Return the names of two columns."""
    columns: Any = getattr(part, "columns", ())
    return (str(columns[0]), str(columns[1])) if len(columns) == 2 else ("feature 0", "feature 1")
