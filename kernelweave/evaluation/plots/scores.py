"""Scores of kernel spectral clustering as a plot: where samples lie, and which signs make a cluster."""

from numbers import Integral
from typing import Any

import numpy as np

from kernelweave.evaluation.describe import final_step, samples_for_final_step
from kernelweave.evaluation.plots.style import (
    as_many_axes,
    cluster_style,
    counts,
    dress,
    marker_area,
    new_axes,
    numbers,
    scatter_style,
    shades_of,
)
from kernelweave.evaluation.plots.words import LISTED, legend_beside, name_clusters, wrapped
from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.errors import ParameterError
from kernelweave.solvers.spectral.kernel_spectral import decode

SIGNS = {1.0: "+", -1.0: "\N{MINUS SIGN}"}
# Longer patterns of signs are left out of the legend: nobody reads them.
LONGEST_PATTERN = 6


class ScoreDisplay:
    """Scores of samples by cluster: the first against the second, or, with two clusters, the only one in order.

    A cluster is a sign pattern of the scores, so that lines at zero separate the clusters. The legend gives every
    cluster its pattern and its number of samples. Where clusters are well formed their scores lie on lines from the
    origin; with two clusters, on two steps.

    A joint model of several views has one panel with the averaged scores, one with ``assignment="per_view"`` has a
    panel for each view.

    Create one with :meth:`from_estimator` or :meth:`from_scores`; redraw it elsewhere with :meth:`plot`. Drawing
    needs matplotlib, which ``kernelweave[plots]`` installs.

    Parameters
    ----------
    scores : list of ndarray of shape (n_samples, n_clusters - 1)
        Scores, panel by panel.
    labels : list of ndarray of shape (n_samples,)
        Clusters of the samples, panel by panel.
    codebooks : list of ndarray of shape (n_clusters, n_clusters - 1), default=None
        Sign patterns of the clusters, panel by panel.
    titles : sequence of str, default=("",)
        Names of the panels.
    components : pair of int, default=(0, 1)
        Which scores to draw where there are more than two.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        The panels.
    figure_ : matplotlib Figure
        Figure with the panels.
    points_ : list of ndarray of shape (n_samples, 2)
        Position of every sample, panel by panel.
    texts_ : list of matplotlib Annotation
        Numbers of the clusters on their samples, where there are more than the legends list.

    See Also
    --------
    BoundaryDisplay : Clusters in the plane of two features.
    kernelweave.metrics.balanced_line_fit : How well the scores keep to lines.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import make_blobs
    >>> from kernelweave import KernelSpectralClustering
    >>> from kernelweave.plots import ScoreDisplay
    >>> X, _ = make_blobs(90, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    >>> model = KernelSpectralClustering(3, kernel_params={"sigma": 1.0}).fit(X)
    >>> display = ScoreDisplay.from_estimator(model, axes=Figure().subplots())
    >>> len(display.axes_[0].get_legend().get_texts()), display.points_[0].shape
    (3, (90, 2))
    """

    def __init__(
        self, scores: Any, *, labels: Any, codebooks: Any = None, titles: Any = ("",), components: Any = (0, 1)
    ) -> None:
        self.scores = scores
        self.labels = labels
        self.codebooks = codebooks
        self.titles = titles
        self.components = components

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, components: Any = (0, 1), axes: Any = None, **scatter_kwargs: Any
    ) -> "ScoreDisplay":
        """Draw the scores of a fitted kernel spectral model.

        Parameters
        ----------
        estimator : fitted KernelSpectralClustering or MultiViewKernelSpectralClustering
            The model, or a pipeline or a search that ends in one.
        X : array-like or views, as in ``fit``, default=None
            Samples to score; None means the scores of the training samples.
        components : pair of int, default=(0, 1)
            Which scores to draw where there are more than two. Clusters may lie on top of each other if the signs of
            these two do not separate them.
        axes : matplotlib Axes or array of them, default=None
            Where to draw, one for each panel; a new figure by default.
        **scatter_kwargs : dict
            Passed to ``Axes.scatter``.

        Returns
        -------
        display : ScoreDisplay
            The display, drawn.
        """
        model = final_step(estimator)
        if not hasattr(model, "codebook_"):
            raise ParameterError(
                f"estimator={type(model).__name__}(...) has no codebook_. Fit it first; this picture is for kernel "
                "spectral clustering, of one view or several."
            )
        X = samples_for_final_step(estimator, X)
        separate = hasattr(model, "view_codebooks_")
        if X is None:
            values = model.scores_ if separate or model.scores_.ndim == 2 else _averaged(model)
        else:
            values = model.transform_views(X) if separate else model.transform(X)
        scores = list(values) if separate else [values]
        books = list(model.view_codebooks_) if separate else [model.codebook_]
        _check_components(components, books[0].shape[1])
        labels = [decode(each, book) for each, book in zip(scores, books, strict=True)]
        titles = list(model.view_names_) if separate else [""]
        return cls(scores, labels=labels, codebooks=books, titles=titles, components=components).plot(
            axes, **scatter_kwargs
        )

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        labels: Any,
        *,
        codebook: Any = None,
        components: Any = (0, 1),
        axes: Any = None,
        **scatter_kwargs: Any,
    ) -> "ScoreDisplay":
        """Draw existing scores.

        Parameters
        ----------
        scores : array-like of shape (n_samples, n_clusters - 1)
            Scores of samples.
        labels : array-like of shape (n_samples,)
            Their clusters, numbers from 0 on; true classes in the place of clusters show where these lie.
        codebook : array-like of shape (n_clusters, n_clusters - 1), default=None
            Sign patterns of the clusters; None leaves them out of the legend.
        components, axes, **scatter_kwargs
            As in :meth:`from_estimator`.

        Returns
        -------
        display : ScoreDisplay
            The display, drawn.
        """
        values = np.asarray(scores, dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or not len(values) or not np.isfinite(values).all():
            raise ParameterError(f"scores has shape {values.shape}; give finite numbers, one row for each sample.")
        clusters = np.asarray(labels)
        if clusters.shape != (len(values),) or clusters.dtype.kind not in "iu" or clusters.min() < 0:
            raise ParameterError(
                f"labels must hold a cluster number from 0 on for each of the {len(values)} samples; it has shape "
                f"{clusters.shape} and values such as {clusters.ravel()[:3].tolist()}."
            )
        books = None if codebook is None else [_read_book(codebook, values.shape[1], int(clusters.max()) + 1)]
        _check_components(components, values.shape[1])
        display = cls([values], labels=[clusters.astype(np.intp)], codebooks=books, components=components)
        return display.plot(axes, **scatter_kwargs)

    def plot(self, axes: Any = None, **scatter_kwargs: Any) -> "ScoreDisplay":
        """Draw the panels.

        Parameters
        ----------
        axes : matplotlib Axes or array of them, default=None
            Where to draw, one for each panel; a new figure by default.
        **scatter_kwargs : dict
            Passed to ``Axes.scatter``.

        Returns
        -------
        display : ScoreDisplay
            This display, with ``axes_``, ``figure_``, ``points_`` and ``texts_`` set.
        """
        count = len(self.scores)
        self.axes_ = self._new_axes(count) if axes is None else as_many_axes(axes, count)
        self.figure_ = self.axes_[0].figure
        self.points_ = [self._places(each) for each in self.scores]
        style = scatter_style(scatter_kwargs, s=marker_area(len(self.scores[0])), alpha=0.8, linewidth=0)
        for p, ax in enumerate(self.axes_):
            self._draw_lines(ax)
            for c in np.unique(self.labels[p]):
                members = self.labels[p] == c
                text = self._legend_text(p, c, int(members.sum()))
                ax.scatter(*self.points_[p][members].T, **{**cluster_style(ax, c), "label": text, **style})
            ax.set_title(wrapped(self.titles[p], 34))
            self._dress(ax)
        self.texts_ = []
        for ax, points, labels in zip(self.axes_, self.points_, self.labels, strict=True):
            if len(np.unique(labels)) > LISTED:
                self.texts_ += name_clusters(ax, points, labels, range(int(labels.max()) + 1))
        return self

    def _new_axes(self, count: int) -> Array:
        return np.atleast_1d(np.asarray(new_axes(self, count, figsize=(4.8 * count + 0.5, 3.9)), dtype=object))

    def _alone(self) -> bool:
        """Whether there is one score only."""
        return self.scores[0].shape[1] == 1

    def _places(self, scores: Floats) -> Floats:
        if not self._alone():
            return scores[:, list(self.components)]
        order = np.empty(len(scores))
        order[np.argsort(scores[:, 0], kind="stable")] = np.arange(1, len(scores) + 1)
        return np.column_stack([order, scores[:, 0]])

    def _draw_lines(self, ax: Any) -> None:
        ax.axhline(0.0, color=shades_of(ax).edge, linewidth=0.9, zorder=1)
        if not self._alone():
            ax.axvline(0.0, color=shades_of(ax).edge, linewidth=0.9, zorder=1)

    def _legend_text(self, panel: int, cluster: int, size: int) -> str:
        """Return the text of a cluster in the legend."""
        signs = () if self.codebooks is None else self.codebooks[panel][cluster]
        pattern = " ".join(SIGNS[sign] for sign in signs) if len(signs) <= LONGEST_PATTERN else ""
        return f"cluster {cluster}: {size:,}" if not pattern else f"cluster {cluster} ({pattern}): {size:,}"

    def _dress(self, ax: Any) -> None:
        if self._alone():
            ax.set_xlabel("samples, ordered by score")
            ax.set_ylabel("score")
        else:
            ax.set_xlabel(f"score {self.components[0] + 1}")
            ax.set_ylabel(f"score {self.components[1] + 1}")
        ax.margins(0.06)
        (counts if self._alone() else numbers)(ax.xaxis)
        numbers(ax.yaxis)
        dress(ax, box=True)
        legend_beside(ax)


def _averaged(model: Any) -> Floats:
    """Return the training scores of a joint model of several views."""
    return np.asarray(np.tensordot(model.view_weights_, model.scores_, axes=1))


def _check_components(components: Any, count: int) -> None:
    if count == 0:
        raise ParameterError("A model of one cluster has no scores to draw. Fit it with n_clusters=2 or more.")
    if count == 1:
        return
    whole = isinstance(components, list | tuple) and all(
        isinstance(c, Integral) and not isinstance(c, bool) and 0 <= int(c) < count for c in components
    )
    if not whole or len(components) != 2 or components[0] == components[1]:
        raise ParameterError(f"components={components!r} must be two different numbers from 0 to {count - 1}.")


def _read_book(codebook: Any, n_scores: int, n_clusters: int) -> Floats:
    book = np.asarray(codebook, dtype=np.float64)
    if book.ndim != 2 or book.shape[1] != n_scores or len(book) < n_clusters or not np.isin(book, (-1, 1)).all():
        raise ParameterError(
            f"codebook has shape {book.shape}; give {n_scores} signs, -1 or 1, for each of the {n_clusters} clusters."
        )
    return book
