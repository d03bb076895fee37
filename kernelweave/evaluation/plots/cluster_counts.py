"""Scores over the number of clusters as a plot."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from kernelweave.evaluation.model_selection import ChosenClusters, choose_n_clusters
from kernelweave.evaluation.plots.style import LABEL_SIZE, counts, dress, line_style, new_axes, numbers, shades_of
from kernelweave.evaluation.plots.words import legend_below
from kernelweave.evaluation.sampling import MOST_JUDGED
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import RandomState

# Height of the marks of refused numbers, as a share of the panel.
BOTTOM = 0.03


class ClusterCountDisplay:
    """Scores over the number of clusters, with the chosen number marked.

    Numbers that the estimator refused are shown as crosses at the bottom.

    Create one with :meth:`from_estimator` or :meth:`from_choice`; redraw it elsewhere with :meth:`plot`. Drawing
    needs matplotlib, which ``kernelweave[plots]`` installs.

    Parameters
    ----------
    choice : ChosenClusters
        What :func:`~kernelweave.model_selection.choose_n_clusters` returned.
    name : str, default=None
        Name of the curve, shown in a legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curve.
    figure_ : matplotlib Figure
        Figure with the axes.
    line_ : matplotlib Line2D
        The curve.
    refused_ : matplotlib Line2D
        The crosses.
    mark_ : matplotlib Line2D
        Ring around the chosen number.
    text_ : matplotlib Annotation
        The words beside it.

    See Also
    --------
    kernelweave.model_selection.choose_n_clusters : The choice.
    InertiaPathDisplay : The objective over the number of clusters.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import make_blobs
    >>> from kernelweave import KernelKMeans
    >>> from kernelweave.plots import ClusterCountDisplay
    >>> X, _ = make_blobs(90, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    >>> model = KernelKMeans(random_state=0)
    >>> display = ClusterCountDisplay.from_estimator(model, X, range(2, 6), ax=Figure().subplots())
    >>> display.text_.get_text()
    'k = 3 (silhouette)'
    """

    def __init__(self, choice: ChosenClusters, *, name: str | None = None) -> None:
        self.choice = choice
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        n_clusters: Iterable[int] = range(2, 11),
        *,
        criterion: Any = "silhouette",
        eta: float = 0.75,
        metric: str = "euclidean",
        sample_size: int | None = MOST_JUDGED,
        random_state: RandomState = None,
        name: str | None = None,
        ax: Any = None,
        **line_kwargs: Any,
    ) -> "ClusterCountDisplay":
        """Fit an estimator with several numbers of clusters, and draw their scores.

        Parameters
        ----------
        estimator, X, n_clusters, criterion, eta, metric, sample_size, random_state
            As in :func:`~kernelweave.model_selection.choose_n_clusters`.
        name : str, default=None
            Name of the curve, shown in a legend.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **line_kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ClusterCountDisplay
            The display, drawn.
        """
        options: dict[str, Any] = {"criterion": criterion, "eta": eta, "metric": metric}
        options |= {"sample_size": sample_size, "random_state": random_state}
        choice = choose_n_clusters(estimator, X, n_clusters, **options)
        return cls(choice, name=name).plot(ax, **line_kwargs)

    @classmethod
    def from_choice(
        cls, choice: ChosenClusters, *, name: str | None = None, ax: Any = None, **line_kwargs: Any
    ) -> "ClusterCountDisplay":
        """Draw an existing choice.

        Parameters
        ----------
        choice : ChosenClusters
            What :func:`~kernelweave.model_selection.choose_n_clusters` returned.
        name, ax, **line_kwargs
            As in :meth:`from_estimator`.

        Returns
        -------
        display : ClusterCountDisplay
            The display, drawn.
        """
        if not isinstance(choice, ChosenClusters):
            raise ParameterError(f"choice={choice!r} is not what choose_n_clusters returns; pass that.")
        return cls(choice, name=name).plot(ax, **line_kwargs)

    def plot(self, ax: Any = None, **line_kwargs: Any) -> "ClusterCountDisplay":
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **line_kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ClusterCountDisplay
            This display, with ``ax_``, ``figure_``, ``line_``, ``refused_``, ``mark_`` and ``text_`` set.
        """
        self.ax_ = new_axes(self) if ax is None else ax
        self.figure_ = self.ax_.figure
        ks = self.choice.candidates
        scores = self.choice.scores
        known = np.isfinite(scores)
        style = line_style(
            line_kwargs, color=shades_of(self.ax_).line, linewidth=1.8, marker="o", markersize=4, label=self.name
        )
        (self.line_,) = self.ax_.plot(ks[known], scores[known], **style)
        colour = self.line_.get_color()
        cross = {"marker": "x", "color": colour, "markersize": 6, "linestyle": "", "label": "_refused"}
        (self.refused_,) = self.ax_.plot(
            ks[~known], np.full((~known).sum(), BOTTOM), transform=self.ax_.get_xaxis_transform(), **cross
        )
        self._mark()
        counts(self.ax_.xaxis)
        numbers(self.ax_.yaxis)
        self.ax_.set_xlabel("number of clusters k")
        # Curves of different criteria may share the axes.
        shared = self.ax_.get_ylabel() not in ("", self.choice.criterion)
        self.ax_.set_ylabel("score" if shared else self.choice.criterion)
        self.ax_.margins(y=0.16)
        dress(self.ax_, grid="both")
        if not str(self.line_.get_label()).startswith("_"):  # matplotlib's mark of curves without a name
            legend_below(self.ax_)
        return self

    def _mark(self) -> None:
        k = self.choice.n_clusters
        best = float(np.nanmax(self.choice.scores))
        shades = shades_of(self.ax_)
        ring = {"color": shades.mark, "markersize": 10, "markerfacecolor": "none", "markeredgewidth": 2.0, "zorder": 3}
        (self.mark_,) = self.ax_.plot([k], [best], "o", label="_chosen", **ring)
        self.ax_.axvline(k, color=shades.mark, linewidth=1.0, linestyle=(0, (4, 3)), alpha=0.7, zorder=1)
        # To the left of a mark at the right edge.
        ks = self.choice.candidates
        side, away = ("right", -9) if k > 0.5 * (ks[0] + ks[-1]) else ("left", 9)
        above = 5 + 12 * len(self.ax_.texts)  # over the words of other curves
        style = {
            "textcoords": "offset points",
            "color": shades.edge,
            "fontsize": LABEL_SIZE,
            "ha": side,
            "va": "bottom",
        }
        self.text_ = self.ax_.annotate(f"k = {k} ({self.choice.criterion})", (k, best), (away, above), **style)
