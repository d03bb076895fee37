"""What distinguishes clusters, as a plot."""

from typing import Any

import numpy as np

from kernelweave.evaluation.explain import ClusterExplanation, explain_clusters
from kernelweave.evaluation.plots.style import ON_LIGHT, new_axes
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError

COLOUR_MAP = "RdBu_r"
# Deviations from the mean at which colours are fullest.
FULL = 2.0
# Signs of a name that are shown; longer ones lose their middle.
LONGEST_NAME = 28
LONGEST_OF_SIMILAR = 60
# Rows that a picture of its own size has room for; what is asked for in ``n_columns`` comes first.
MOST_ROWS = 60
# Pictures with more cells than this get no numbers.
NUMBERED = 120


class ClusterHeatmapDisplay:
    """Columns that distinguish clusters: cluster means in standard deviations from the mean of all samples.

    Red is above the mean, blue below. Columns are those with the largest effects in each cluster, in the
    order of the clusters that they distinguish.

    Create one with :meth:`from_estimator` or :meth:`from_explanation`; redraw it elsewhere with :meth:`plot`. Drawing
    needs matplotlib, which ``kernelweave[plots]`` installs.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_clusters)
        Standardised means; NaN where a cluster has no values.
    columns : sequence of str
        Names of the rows.
    clusters : sequence
        Names of the clusters.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the heat map.
    figure_ : matplotlib Figure
        Figure with the axes.
    image_ : matplotlib AxesImage
        The colours.
    colorbar_ : matplotlib Colorbar
        Their scale.
    texts_ : list of matplotlib Text
        The numbers, row by row; empty where there are many.

    See Also
    --------
    kernelweave.explain.explain_clusters : The same as a table.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelweave import KernelKMeans
    >>> from kernelweave.plots import ClusterHeatmapDisplay
    >>> wine = load_wine(as_frame=True)
    >>> model = make_pipeline(StandardScaler(), KernelKMeans(3, kernel="linear", random_state=0)).fit(wine.data)
    >>> display = ClusterHeatmapDisplay.from_estimator(model, wine.data, n_columns=2, ax=Figure().subplots())
    >>> display.values.shape[1], "alcohol" in display.columns
    (3, True)
    """

    def __init__(self, values: Floats, *, columns: Any, clusters: Any) -> None:
        self.values = values
        self.columns = columns
        self.clusters = clusters

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        *,
        n_columns: int = 4,
        view: str | None = None,
        feature_names: Any = None,
        ax: Any = None,
    ) -> "ClusterHeatmapDisplay":
        """Explain the clusters of a fitted estimator, and draw the columns that distinguish them.

        Parameters
        ----------
        model : fitted estimator
            A clusterer, or a pipeline or search that ends in one.
        X : as in the fit
            The samples of the fit.
        n_columns : int, default=4
            Columns of every cluster; there are fewer where clusters share them or where there are many clusters.
        view : str, default=None
            Columns of this view only; of all views by default.
        feature_names : sequence of str, or dict of view to sequence of str, default=None
            Names of the columns, as in :func:`~kernelweave.explain.explain_clusters`.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : ClusterHeatmapDisplay
            The display, drawn.
        """
        explanation = explain_clusters(model, X, feature_names=feature_names)
        return cls.from_explanation(explanation, n_columns=n_columns, view=view, ax=ax)

    @classmethod
    def from_explanation(
        cls, explanation: ClusterExplanation, *, n_columns: int = 4, view: str | None = None, ax: Any = None
    ) -> "ClusterHeatmapDisplay":
        """Draw the columns of an existing explanation.

        Parameters
        ----------
        explanation : ClusterExplanation
            What :func:`~kernelweave.explain.explain_clusters` returned.
        n_columns : int, default=4
            Columns of every cluster; there are fewer where clusters share them or where there are many clusters.
        view : str, default=None
            Columns of this view only; of all views by default.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : ClusterHeatmapDisplay
            The display, drawn.
        """
        if n_columns < 1:
            raise ParameterError(f"n_columns={n_columns!r} must be at least 1.")
        chosen = _chosen(explanation, n_columns, view)
        if not chosen:
            raise ParameterError(
                "There is no column to draw: the samples are a graph, a kernel or distances, or all in one cluster."
            )
        by_name = {each.name: each for each in explanation.views}
        means = {name: each.standardized_means() for name, each in by_name.items()}
        places = {name: {column: j for j, column in enumerate(each.columns)} for name, each in by_name.items()}
        values = np.array([means[name][places[name][column]] for name, column in chosen])
        several = len({name for name, _ in chosen}) > 1
        names = [f"{name}: {column}" if several else column for name, column in chosen]
        filled = np.flatnonzero(explanation.sizes)
        return cls(values[:, filled], columns=names, clusters=filled).plot(ax)

    def plot(self, ax: Any = None) -> "ClusterHeatmapDisplay":
        """Draw the heat map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : ClusterHeatmapDisplay
            This display, with ``ax_``, ``figure_``, ``image_``, ``colorbar_`` and ``texts_`` set.
        """
        rows, count = self.values.shape
        size = (min(14.0, 3.4 + 0.42 * max(count, 4)), min(16.0, 1.4 + 0.24 * max(rows, 4)))
        ax = new_axes(self, figsize=size) if ax is None else ax
        self.image_ = ax.imshow(self.values, cmap=COLOUR_MAP, vmin=-FULL, vmax=FULL, aspect="auto")
        ax.set_facecolor("#eeeeee")  # where there are no values
        self.colorbar_ = ax.figure.colorbar(self.image_, ax=ax, extend="both", fraction=0.04, pad=0.02)
        self.colorbar_.set_label("mean, in deviations of the column", fontsize=8)
        self.colorbar_.ax.tick_params(labelsize=8, length=2)
        self.colorbar_.outline.set_visible(False)
        self.texts_ = self._write_numbers(ax) if self.values.size <= NUMBERED else []
        ax.set_xticks(range(count), [str(name) for name in self.clusters])
        ax.set_yticks(range(rows), short_names([str(name) for name in self.columns]))
        ax.set_xticks(np.arange(count + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=0.8)
        ax.tick_params(which="both", length=0)
        ax.tick_params(axis="y", labelsize=8)
        ax.tick_params(axis="x", labelsize=9 if count <= 16 else 8)
        ax.set_xlabel("cluster")
        ax.spines[:].set_visible(False)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _write_numbers(self, ax: Any) -> list[Any]:
        style = {"ha": "center", "va": "center", "fontsize": 8}
        return [
            ax.text(j, i, f"{value:.1f}", color="white" if abs(value) > 0.65 * FULL else ON_LIGHT, **style)
            for (i, j), value in np.ndenumerate(self.values)
            if not np.isnan(value)
        ]


def short_names(names: list[str]) -> list[str]:
    """Return names with an ellipsis in place of their middle where they are long, longer where they look the same."""
    for most in range(LONGEST_NAME, LONGEST_OF_SIMILAR, 6):
        shown = [_cut(name, most) for name in names]
        if len(set(shown)) == len(set(names)):
            return shown
    return [_cut(name, LONGEST_OF_SIMILAR) for name in names]


def _cut(name: str, most: int) -> str:
    if len(name) <= most:
        return name
    tail = (most - 1) // 2
    return f"{name[: most - 1 - tail]}…{name[len(name) - tail :]}"


def _chosen(explanation: ClusterExplanation, n_columns: int, view: str | None) -> list[tuple[str, str]]:
    """Return views and columns, each once: the best of all clusters first, then the second of all, as there is room."""
    tops = [explanation.top(c, n_columns, view) for c in range(explanation.n_clusters)]
    first: dict[tuple[str, str], int] = {}
    for rank in range(n_columns):
        for c, top in enumerate(tops):
            if rank < len(top) and len(first) < MOST_ROWS:
                first.setdefault((top[rank].view, top[rank].column), c)
    order: Ints = np.argsort(list(first.values()), kind="stable")
    keys = list(first)
    return [keys[i] for i in order]
