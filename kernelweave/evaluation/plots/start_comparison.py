"""A start as a plot, next to the results of k-means and MinMax k-means from it."""

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_array

from kernelweave.estimators import MinMaxKMeans
from kernelweave.evaluation.metrics import cluster_variances
from kernelweave.evaluation.plots.style import cluster_style, frame, marker_area, new_axes, scatter_style, shades_of
from kernelweave.evaluation.plots.words import shortened
from kernelweave.foundation.array_types import Array, Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import read_centers


class StartComparisonDisplay:
    """A start, and the clusters of k-means and of MinMax k-means from that start, side by side.

    Samples have the colour and the marker of their cluster. Large markers are the centres, and a line connects each
    with its starting position. A cluster keeps its colour and marker in all panels. Titles give the largest variance of
    a cluster, E_max in the guide, and the sum of all, E_sum.

    Create one with :meth:`from_start`; redraw it elsewhere with :meth:`plot`. Drawing needs matplotlib, which
    ``kernelweave[plots]`` installs.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Samples, two features or more. More than two are projected on the first two principal axes of X.
    init : ndarray of shape (n_clusters, n_features)
        Initial centres.
    kmeans : KMeans
        scikit-learn's k-means, fitted from ``init``.
    minmax : MinMaxKMeans
        MinMax k-means, fitted from ``init``.
    feature_names : sequence of two str, default=None
        Labels of the axes where X has two features.

    Attributes
    ----------
    axes_ : ndarray of 3 matplotlib Axes
        The panels: the start, k-means, MinMax k-means.
    figure_ : matplotlib Figure
        Figure with the panels.
    start_labels_ : ndarray of shape (n_samples,)
        The initial centre nearest to each sample.

    See Also
    --------
    kernelweave.MinMaxKMeans : The method.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from kernelweave.plots import StartComparisonDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 0.4, (50, 2)) for centre in ([0, 0], [5, 0], [5, 4])])
    >>> bad = [[-0.5, 0], [0.5, 0], [5, 2]]  # two centres in the first group, one for the other two
    >>> display = StartComparisonDisplay.from_start(X, bad, axes=Figure().subplots(1, 3))
    >>> np.bincount(display.kmeans.labels_).tolist(), np.bincount(display.minmax.labels_).tolist()
    ([27, 23, 100], [50, 50, 50])
    """

    def __init__(
        self, X: Any, init: Any, *, kmeans: KMeans, minmax: MinMaxKMeans, feature_names: Any | None = None
    ) -> None:
        self.X = X
        self.init = init
        self.kmeans = kmeans
        self.minmax = minmax
        self.feature_names = feature_names

    @classmethod
    def from_start(
        cls,
        X: Any,
        init: Any,
        *,
        p_max: float = 0.5,
        memory: float = 0.3,
        feature_names: Any | None = None,
        axes: Any = None,
        **scatter_kwargs: Any,
    ) -> "StartComparisonDisplay":
        """Run both methods from the same centres and draw their clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, two features or more.
        init : array-like of shape (n_clusters, n_features)
            Initial centres.
        p_max, memory : float
            As in :class:`~kernelweave.MinMaxKMeans`.
        feature_names : sequence of two str, default=None
            Labels of the axes where X has two features; by default the column names of a DataFrame.
        axes : array of 3 matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **scatter_kwargs : dict
            Passed to ``Axes.scatter`` for the samples.

        Returns
        -------
        display : StartComparisonDisplay
            The display, drawn.
        """
        names = _column_names(X) if feature_names is None else feature_names
        X = check_array(X, dtype=np.float64, input_name="X")
        if X.shape[1] < 2:
            raise ParameterError("X has 1 feature; the picture needs two or more. Draw a histogram instead.")
        init = read_centers(init, np.shape(init)[0] if np.ndim(init) else 0, X.shape[1])
        kmeans = KMeans(len(init), init=init, n_init=1, tol=0).fit(X)
        minmax = MinMaxKMeans(len(init), init=init, p_max=p_max, memory=memory).fit(X)
        return cls(X, init, kmeans=kmeans, minmax=minmax, feature_names=names).plot(axes, **scatter_kwargs)

    def plot(self, axes: Any = None, **scatter_kwargs: Any) -> "StartComparisonDisplay":
        """Draw the panels.

        Parameters
        ----------
        axes : array of 3 matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **scatter_kwargs : dict
            Passed to ``Axes.scatter`` for the samples.

        Returns
        -------
        display : StartComparisonDisplay
            This display, with ``axes_``, ``figure_`` and ``start_labels_`` set.
        """
        self.axes_ = self._new_axes() if axes is None else _three_axes(axes)
        self.figure_ = self.axes_[0].figure
        self.start_labels_ = pairwise_distances_argmin(self.X, self.init)
        view = _View(self.X, self.feature_names)
        style = scatter_style(scatter_kwargs, s=marker_area(len(self.X)), alpha=0.75, linewidth=0)
        panels = (
            ("Start", self.start_labels_, self.init),
            ("k-means", self.kmeans.labels_, self.kmeans.cluster_centers_),
            ("MinMax k-means", self.minmax.labels_, self.minmax.cluster_centers_),
        )
        for ax, (name, labels, centres) in zip(self.axes_, panels, strict=True):
            _draw_samples(ax, view.points, labels, style)
            _draw_centres(ax, view.place(centres), view.place(self.init))
            variances = cluster_variances(self.X, labels, kernel="linear")
            e_max = _short(variances.max())
            e_sum = _short(variances.sum())
            ax.set_title(f"{name}\nlargest variance {e_max}\nsum of variances {e_sum}")
            ax.set_xlabel(shortened(view.names[0], 48))
            frame(ax, view.points)
        self.axes_[0].set_ylabel(view.names[1])
        return self

    def _new_axes(self) -> Array:
        axes = new_axes(self, 3, figsize=(11.0, 4.3), sharex=True, sharey=True)
        return np.asarray(axes, dtype=object)


class _View:
    """Where samples and centres lie in the picture: their features, or their first two principal axes."""

    def __init__(self, X: Floats, names: Any | None) -> None:
        if X.shape[1] == 2:
            self._axes = None
            self.points = X
            self.names = _two_names(names)
            return
        self._axes = PCA(2, random_state=0).fit(X)
        self.points = self._axes.transform(X)
        shares = self._axes.explained_variance_ratio_
        self.names = tuple(f"principal axis {i} ({share:.0%} of variance)" for i, share in enumerate(shares, start=1))

    def place(self, centres: Floats) -> Floats:
        return centres if self._axes is None else np.asarray(self._axes.transform(centres))


def _draw_samples(ax: Any, points: Floats, labels: Ints, style: dict[str, Any]) -> None:
    for c in np.unique(labels):
        ax.scatter(*points[labels == c].T, **{**cluster_style(ax, c), **style})


def _draw_centres(ax: Any, centres: Floats, starts: Floats) -> None:
    shades = shades_of(ax)
    area = float(np.clip(1200.0 / len(centres), 40.0, 95.0))
    for c, (centre, start) in enumerate(zip(centres, starts, strict=True)):
        style = cluster_style(ax, c)
        if not np.array_equal(centre, start):
            ax.plot(*np.transpose([start, centre]), color=shades.edge, linewidth=1.0, zorder=3)
            ax.plot(*start, ".", color=shades.edge, markersize=4, zorder=3)
        # A ring of the ground separates the centre from the samples under it.
        ax.scatter(*centre, s=2.0 * area, linewidths=0, zorder=4, **{**style, "color": shades.ground})
        ax.scatter(*centre, s=area, **style, edgecolors=shades.edge, linewidths=0.16 * np.sqrt(area), zorder=5)


def _column_names(X: Any) -> Any:
    """Return the names of the columns of a DataFrame, or None."""
    columns = getattr(X, "columns", ())
    return list(columns) if len(columns) == 2 and all(isinstance(name, str) for name in columns) else None


def _two_names(names: Any | None) -> tuple[str, ...]:
    if names is None:
        return "feature 0", "feature 1"
    if isinstance(names, str) or len(names) != 2:
        raise ParameterError(f"feature_names={names!r} must hold two names, one for each column of X.")
    return tuple(str(name) for name in names)


def _short(value: float) -> str:
    """Return a number in three digits or, from 100 on, as a whole one."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _three_axes(axes: Any) -> Array:
    panels = np.asarray(axes, dtype=object).ravel()
    if len(panels) != 3:
        raise ParameterError(f"axes holds {len(panels)} Axes; there are three panels. Pass Figure().subplots(1, 3).")
    return panels
