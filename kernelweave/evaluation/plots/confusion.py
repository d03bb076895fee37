"""Clusters compared with known classes, as a plot."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from kernelweave.evaluation.describe import final_step
from kernelweave.evaluation.metrics.checks import encode_labels
from kernelweave.evaluation.plots.style import (
    COLOUR_MAP,
    ON_LIGHT,
    SMALL_SIZE,
    as_percentages,
    colour_bar,
    dress,
    new_axes,
)
from kernelweave.evaluation.plots.words import shortened
from kernelweave.foundation.array_types import Ints
from kernelweave.foundation.errors import ParameterError

# Tables with more cells than this get no numbers.
NUMBERED = 400
# Inches for one row or column of a new picture, and characters that a name of a column may have to stand upright.
CELL = 0.3
UPRIGHT = 3


class ConfusionDisplay:
    """How many samples of every class lie in every cluster, with clusters in the order that matches the classes best.

    Unlike a classifier's, this table need not be square, and the names of clusters mean nothing: columns are ordered so
    that the diagonal is as large as possible (Hungarian method). Shades are shares of the class.

    Create one with :meth:`from_estimator` or :meth:`from_predictions`; redraw it elsewhere with :meth:`plot`. Drawing
    needs matplotlib, which ``kernelweave[plots]`` installs.

    Parameters
    ----------
    counts : ndarray of shape (n_classes, n_clusters)
        Samples of every class in every cluster.
    classes, clusters : sequences
        Their names, in the order of rows and columns.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the table.
    figure_ : matplotlib Figure
        Figure with the axes.
    image_ : matplotlib AxesImage
        The shades.
    texts_ : list of matplotlib Text
        The counts, row by row; empty where the table is large.
    colorbar_ : matplotlib Colorbar
        The colour bar: shares of the class.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelweave.plots import ConfusionDisplay
    >>> truth, clusters = ["x", "x", "y", "y", "y"], [1, 1, 0, 0, 1]
    >>> ConfusionDisplay.from_predictions(truth, clusters, ax=Figure().subplots()).counts
    array([[2, 0],
           [1, 2]])
    """

    def __init__(self, counts: Ints, *, classes: Any, clusters: Any) -> None:
        self.counts = counts
        self.classes = classes
        self.clusters = clusters

    @classmethod
    def from_estimator(cls, estimator: Any, labels_true: Any, *, ax: Any = None) -> "ConfusionDisplay":
        """Compare the labels of a fitted estimator with known classes.

        Parameters
        ----------
        estimator : fitted estimator
            Any clusterer with ``labels_``.
        labels_true : array-like of shape (n_samples,)
            The classes, integers or strings.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : ConfusionDisplay
            The display, drawn.
        """
        final = final_step(estimator)
        if not hasattr(final, "labels_"):
            raise ParameterError(f"estimator={type(final).__name__}(...) has no labels_. Fit it first.")
        return cls.from_predictions(labels_true, final.labels_, ax=ax)

    @classmethod
    def from_predictions(cls, labels_true: Any, labels_pred: Any, *, ax: Any = None) -> "ConfusionDisplay":
        """Compare labels with known classes.

        Parameters
        ----------
        labels_true : array-like of shape (n_samples,)
            The classes, integers or strings.
        labels_pred : array-like of shape (n_samples,)
            The clusters, integers or strings.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : ConfusionDisplay
            The display, drawn.
        """
        truth, n_classes = encode_labels(labels_true)
        codes, n_clusters = encode_labels(labels_pred)
        if len(truth) != len(codes):
            raise ParameterError(f"labels_true has {len(truth)} entries and labels_pred {len(codes)}; give one each.")
        counts = np.zeros((n_classes, n_clusters), dtype=np.intp)
        np.add.at(counts, (truth, codes), 1)
        order = best_columns(counts)
        classes = np.unique(np.asarray(labels_true))
        clusters = np.unique(np.asarray(labels_pred))
        return cls(counts[:, order], classes=classes, clusters=clusters[order]).plot(ax)

    def plot(self, ax: Any = None) -> "ConfusionDisplay":
        """Draw the table.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        display : ConfusionDisplay
            This display, with ``ax_``, ``figure_``, ``image_``, ``texts_`` and ``colorbar_`` set.
        """
        ax = new_axes(self, figsize=self._size()) if ax is None else ax
        shares = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        self.image_ = ax.imshow(shares, cmap=COLOUR_MAP, vmin=0.0, vmax=1.0)
        self.texts_ = []
        if self.counts.size <= NUMBERED:
            size = SMALL_SIZE if max(self.counts.shape) <= 10 else 0.75 * SMALL_SIZE
            for (i, j), count in np.ndenumerate(self.counts):
                colour = "white" if shares[i, j] > 0.6 else ON_LIGHT
                self.texts_.append(ax.text(j, i, f"{count:,}", ha="center", va="center", color=colour, fontsize=size))
        columns = [shortened(name, 20) for name in self.clusters]
        upright = max(map(len, columns)) <= UPRIGHT
        ax.set_xticks(range(len(columns)), columns, rotation=0 if upright else 90)
        ax.set_yticks(range(len(self.classes)), [shortened(name) for name in self.classes])
        ax.set_xlabel("cluster")
        ax.set_ylabel("class")
        dress(ax, box=True)
        ax.tick_params(length=0)
        self.colorbar_ = colour_bar(ax, self.image_, "share of the class")
        as_percentages(self.colorbar_.ax.yaxis)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _size(self) -> tuple[float, float]:
        """Return width and height of a new picture, in inches: larger tables need more."""
        rows, columns = self.counts.shape
        names = 0.07 * max(len(shortened(name)) for name in self.classes)
        height = max(3.4, CELL * max(rows, columns)) + 0.9
        return height + names + 1.2, height


def best_columns(counts: Ints) -> Ints:
    """Return the order of columns that puts as much on the diagonal as it can; those left over follow by size."""
    rows, columns = linear_sum_assignment(counts, maximize=True)
    matched = columns[np.argsort(rows)]
    rest = np.setdiff1d(np.arange(counts.shape[1]), matched)
    return np.concatenate([matched, rest[np.argsort(-counts[:, rest].sum(axis=0), kind="stable")]])
