"""How a fit went and how clear its clusters are, as pictures: the objective over the steps, silhouettes by cluster."""

from typing import Any

import numpy as np

from kernelweave.evaluation.describe import final_step, samples_for_final_step
from kernelweave.evaluation.describe.silhouettes import Yardstick
from kernelweave.evaluation.describe.views import takes_graph
from kernelweave.evaluation.plots.style import (
    SIZE,
    cluster_colour,
    counts,
    dress,
    line_style,
    new_axes,
    numbers,
    shades_of,
)
from kernelweave.evaluation.plots.words import legend_below, shortened
from kernelweave.evaluation.sampling import MOST_JUDGED
from kernelweave.foundation.errors import ParameterError

# Names of clusters are so far apart at least, as a share of the height of the picture.
LEAST_ROOM = 0.035


class ObjectivePathDisplay:
    """The objective after every outer iteration of a fit.

    A path that is still moving at its end shows that ``max_iter`` was too small; one that ends at once shows that the
    start decided everything.

    Create one with :meth:`from_estimator`; redraw it elsewhere with :meth:`plot`. Drawing needs matplotlib, which
    ``kernelweave[plots]`` installs.

    Parameters
    ----------
    path : ndarray of shape (n_steps,)
        The objective after every iteration.
    converged : bool or None, default=None
        Whether the fit converged; None leaves it out.
    first : int, default=1
        Number of the first entry: 0 where it is the objective of the start.
    name : str, default="objective"
        What the values are.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the path.
    figure_ : matplotlib Figure
        Figure with the axes.
    line_ : matplotlib Line2D
        The path.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelweave import MultiViewKernelKMeans
    >>> from kernelweave.datasets import make_corrupted_views
    >>> from kernelweave.plots import ObjectivePathDisplay
    >>> data = make_corrupted_views(2, 1, n_samples=150, n_corrupted=10, random_state=0)
    >>> model = MultiViewKernelKMeans(3, random_state=0).fit(data.views)
    >>> display = ObjectivePathDisplay.from_estimator(model, ax=Figure().subplots())
    >>> bool(display.line_.get_ydata()[-1] == model.objective_)
    True
    """

    def __init__(self, path: Any, *, converged: bool | None = None, first: int = 1, name: str = "objective") -> None:
        self.path = path
        self.converged = converged
        self.first = first
        self.name = name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **line_kwargs: Any) -> "ObjectivePathDisplay":
        """Draw the path of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            Any estimator of this library, or a pipeline that ends in one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **line_kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ObjectivePathDisplay
            The display, drawn.
        """
        final = final_step(estimator)
        if not hasattr(final, "objective_path_"):
            raise ParameterError(f"estimator={type(final).__name__}(...) has no objective_path_. Fit it first.")
        path = np.asarray(final.objective_path_)
        first = 0 if len(path) == final.n_iter_ + 1 else 1
        return cls(path, converged=bool(final.converged_), first=first).plot(ax, **line_kwargs)

    def plot(self, ax: Any = None, **line_kwargs: Any) -> "ObjectivePathDisplay":
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **line_kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ObjectivePathDisplay
            This display, with ``ax_``, ``figure_`` and ``line_`` set.
        """
        ax = new_axes(self) if ax is None else ax
        steps = np.arange(self.first, self.first + len(self.path))
        style = line_style(
            line_kwargs, color=shades_of(ax).line, linewidth=1.8, marker="o" if len(steps) <= 50 else "", markersize=4
        )
        (self.line_,) = ax.plot(steps, self.path, **style)
        ax.set_xlabel("iteration")
        ax.set_ylabel(self.name)
        counts(ax.xaxis)
        numbers(ax.yaxis)
        if self.converged is not None:
            ends = "converged" if self.converged else "stopped by max_iter"
            ax.set_title(f"{ends} after {steps[-1]:,} iteration{'' if steps[-1] == 1 else 's'}")
        dress(ax, grid="both")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


class SilhouetteDisplay:
    """Silhouettes of the samples, sorted within their clusters.

    A silhouette near 1 belongs to a sample deep inside its cluster, one near 0 to a sample between two clusters, and
    one below 0 to a sample that is nearer to another cluster. Distances are those between the samples as they are
    given, whatever kernel the model has, and of several views the mean over the views is drawn: the mean is that of
    :func:`~kernelweave.model_selection.score_clustering` and of the report.

    Create one with :meth:`from_estimator` or :meth:`from_predictions`; redraw it elsewhere with :meth:`plot`. Drawing
    needs matplotlib, which ``kernelweave[plots]`` installs.

    Parameters
    ----------
    silhouettes : ndarray of shape (n_drawn,)
        Silhouettes.
    labels : ndarray of shape (n_drawn,)
        Clusters of the samples drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the silhouettes.
    figure_ : matplotlib Figure
        Figure with the axes.
    bars_ : list of matplotlib PolyCollection
        One shape per cluster, the first on top.
    line_ : matplotlib Line2D
        The mean over all samples.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelweave import KernelKMeans
    >>> from kernelweave.datasets import make_two_rings
    >>> from kernelweave.plots import SilhouetteDisplay
    >>> X, _ = make_two_rings(random_state=0)
    >>> model = KernelKMeans(2, random_state=0).fit(X)
    >>> display = SilhouetteDisplay.from_estimator(model, X, ax=Figure().subplots())
    >>> len(display.bars_)
    2
    """

    def __init__(self, silhouettes: Any, *, labels: Any) -> None:
        self.silhouettes = silhouettes
        self.labels = labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        metric: str = "euclidean",
        sample_size: int | None = MOST_JUDGED,
        random_state: Any = 0,
        ax: Any = None,
    ) -> "SilhouetteDisplay":
        """Draw the silhouettes of a fitted estimator's labels.

        Parameters
        ----------
        estimator : fitted estimator
            Any estimator of this library except those for graphs, or a pipeline that ends in one.
        X : array-like or views, as in ``fit``
            The training samples, or the kernel matrix; of a pipeline, what goes into its first step, and what its last
            step receives is measured.
        metric : str, default="euclidean"
            Distance between samples.
        sample_size : int or None, default=2000
            Number of samples drawn, since the cost grows with its square; None means all.
        random_state : int, RandomState instance or None, default=0
            Seed of the draw.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : SilhouetteDisplay
            The display, drawn.
        """
        final = final_step(estimator)
        if not hasattr(final, "labels_"):
            raise ParameterError(f"estimator={type(final).__name__}(...) has no labels_. Fit it first.")
        if takes_graph(final):
            raise ParameterError(
                f"estimator={type(final).__name__}(...) takes a graph, and graphs have no distances between samples. "
                "Use kernelweave.report.write_report, which measures silhouettes in a spectral embedding of the graph."
            )
        samples = samples_for_final_step(estimator, X)
        yardstick = Yardstick.for_estimator(final, samples, metric, sample_size, random_state)
        by_view = yardstick.by_view(final)
        values = np.zeros(len(yardstick.rows)) if by_view is None else np.mean(by_view, axis=0)
        return cls(values, labels=np.asarray(final.labels_)[yardstick.rows]).plot(ax)

    @classmethod
    def from_predictions(cls, silhouettes: Any, labels: Any, *, ax: Any = None) -> "SilhouetteDisplay":
        """Draw existing silhouettes, such as those of :func:`kernelweave.metrics.kernel_silhouette_samples`.

        Parameters
        ----------
        silhouettes : array-like of shape (n_samples,)
            Silhouettes, from -1 to 1.
        labels : array-like of shape (n_samples,)
            Clusters.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : SilhouetteDisplay
            The display, drawn.
        """
        values = np.asarray(silhouettes, dtype=np.float64)
        codes = np.asarray(labels)
        if values.ndim != 1 or values.shape != codes.shape or not len(values):
            raise ParameterError(f"silhouettes of shape {values.shape} and labels of shape {codes.shape} do not match.")
        if not np.isfinite(values).all() or np.abs(values).max() > 1 + 1e-9:
            raise ParameterError("silhouettes must be finite and from -1 to 1.")
        return cls(values, labels=codes).plot(ax)

    def plot(self, ax: Any = None) -> "SilhouetteDisplay":
        """Draw the silhouettes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : SilhouetteDisplay
            This display, with ``ax_``, ``figure_``, ``bars_`` and ``line_`` set.
        """
        clusters = np.unique(self.labels)
        height = max(SIZE[1], 1.0 + 0.2 * len(clusters))
        ax = new_axes(self, figsize=(SIZE[0], height)) if ax is None else ax
        self.bars_ = []
        gap = max(1, len(self.labels) // 60)
        top = 0
        places = []
        for c, name in enumerate(clusters):
            members = np.sort(self.silhouettes[self.labels == name])[::-1]
            rows = np.arange(top, top + len(members) + 1)
            values = np.append(members, members[-1])
            self.bars_.append(ax.fill_betweenx(rows, 0.0, values, step="post", color=cluster_colour(ax, c), lw=0))
            places.append(top + len(members) / 2)
            top += len(members) + gap
        mean = float(self.silhouettes.mean())
        self.line_ = ax.axvline(mean, color=shades_of(ax).edge, lw=1, ls="--", label=f"mean {mean:.2f}")
        ax.axvline(0.0, color=shades_of(ax).quiet, lw=0.8)
        sizes = [int((self.labels == name).sum()) for name in clusters]
        named = _apart(places, sizes, LEAST_ROOM * top)
        names = [f"{shortened(clusters[c], 20)} ({sizes[c]:,})" for c in named]
        ax.set_yticks([places[c] for c in named], names)
        ax.set_ylim(top - gap, 0)
        low = min(-0.1, float(self.silhouettes.min()) - 0.05)
        ax.set_xlim(low, min(1.0, max(0.2, float(self.silhouettes.max()) + 0.05)))
        ax.set_xlabel("silhouette (below 0: nearer to another cluster)")
        unnamed = len(clusters) - len(named)
        ax.set_ylabel(f"cluster (samples){f'; {unnamed} small ones unnamed' if unnamed else ''}")
        numbers(ax.xaxis)
        dress(ax, grid="x")
        legend_below(ax, [self.line_])
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def _apart(places: list[float], sizes: list[int], room: float) -> list[int]:
    """Return the clusters that get a name, from top to bottom: the largest first, while there is room between them."""
    named: list[int] = []
    for c in np.argsort(-np.array(sizes), kind="stable"):
        if all(abs(places[c] - places[other]) >= room for other in named):
            named.append(int(c))
    return sorted(named)
