"""The inertia path as a plot: objective over the number of clusters, the suggested number marked."""

from typing import Any

import numpy as np

from kernelweave.evaluation.describe import final_step
from kernelweave.evaluation.model_selection import SuggestedClusters, suggest_n_clusters
from kernelweave.evaluation.model_selection.number_of_clusters import read_path
from kernelweave.evaluation.plots.style import LABEL_SIZE, counts, dress, line_style, new_axes, numbers, shades_of
from kernelweave.evaluation.plots.words import legend_below
from kernelweave.foundation.errors import ParameterError

# More points than this are drawn as a plain line.
MARKED_POINTS = 40
RULES = {"elbow": "elbow", "gap": "gap", "gap_max": "largest gap"}


class InertiaPathDisplay:
    """Inertia over the number of clusters, with a suggested number marked.

    Create one with :meth:`from_estimator` or :meth:`from_path`; redraw it elsewhere with :meth:`plot`. Drawing needs
    matplotlib, which ``kernelweave[plots]`` installs.

    Parameters
    ----------
    inertia_path : ndarray of shape (n_max,)
        Objectives for 1, 2, ..., ``n_max`` clusters.
    suggestion : SuggestedClusters, default=None
        The number of clusters to mark.
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
    mark_ : matplotlib Line2D or None
        Marker of the suggested number of clusters; None where there is none.
    text_ : matplotlib Annotation or None
        The words beside the marker.

    See Also
    --------
    kernelweave.model_selection.suggest_n_clusters : The suggestion.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import make_blobs
    >>> from kernelweave import GlobalKernelKMeans
    >>> from kernelweave.plots import InertiaPathDisplay
    >>> X, _ = make_blobs(90, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    >>> model = GlobalKernelKMeans(6, kernel="linear").fit(X)
    >>> display = InertiaPathDisplay.from_estimator(model, ax=Figure().subplots())
    >>> display.text_.get_text()
    'k = 3 (elbow)'
    """

    def __init__(
        self, inertia_path: Any, *, suggestion: SuggestedClusters | None = None, name: str | None = None
    ) -> None:
        self.inertia_path = inertia_path
        self.suggestion = suggestion
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        ax: Any = None,
        suggest: bool | SuggestedClusters = True,
        name: str | None = None,
        **line_kwargs: Any,
    ) -> "InertiaPathDisplay":
        """Draw the path of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            One with ``inertia_path_``, such as :class:`~kernelweave.GlobalKernelKMeans`, or a pipeline or a search that
            ends in one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        suggest : bool or SuggestedClusters, default=True
            What to mark: the elbow (where the path has three entries or more), nothing, or what
            :func:`~kernelweave.model_selection.suggest_n_clusters` returned.
        name : str, default=None
            Name of the curve, shown in a legend.
        **line_kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : InertiaPathDisplay
            The display, drawn.
        """
        path = read_path(final_step(estimator), "estimator")
        return cls.from_path(path, ax=ax, suggest=suggest, name=name, **line_kwargs)

    @classmethod
    def from_path(
        cls,
        inertia_path: Any,
        *,
        ax: Any = None,
        suggest: bool | SuggestedClusters = True,
        name: str | None = None,
        **line_kwargs: Any,
    ) -> "InertiaPathDisplay":
        """Draw a path of numbers.

        Parameters
        ----------
        inertia_path : array-like of shape (n_max,)
            Objectives for 1, 2, ..., ``n_max`` clusters.
        ax, suggest, name, **line_kwargs
            As in :meth:`from_estimator`.

        Returns
        -------
        display : InertiaPathDisplay
            The display, drawn.
        """
        path = read_path(inertia_path)
        return cls(path, suggestion=_suggestion(path, suggest), name=name).plot(ax=ax, **line_kwargs)

    def plot(self, ax: Any = None, **line_kwargs: Any) -> "InertiaPathDisplay":
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **line_kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : InertiaPathDisplay
            This display, with ``ax_``, ``figure_``, ``line_``, ``mark_`` and ``text_`` set.
        """
        self.ax_ = new_axes(self) if ax is None else ax
        self.figure_ = self.ax_.figure
        ks = np.arange(1, len(self.inertia_path) + 1)
        marker = "o" if len(ks) <= MARKED_POINTS else None
        style = line_style(
            line_kwargs, color=shades_of(self.ax_).line, linewidth=1.8, marker=marker, markersize=4, label=self.name
        )
        (self.line_,) = self.ax_.plot(ks, self.inertia_path, **style)
        self.ax_.set_xlabel("number of clusters k")
        self.ax_.set_ylabel("inertia")
        counts(self.ax_.xaxis)
        numbers(self.ax_.yaxis)
        dress(self.ax_, grid="both")
        self.mark_, self.text_ = self._mark_suggestion()
        if not str(self.line_.get_label()).startswith("_"):  # matplotlib's mark of curves without a name
            legend_below(self.ax_)
        return self

    def _mark_suggestion(self) -> tuple[Any, Any]:
        if self.suggestion is None or self.suggestion.n_clusters is None:
            return None, None
        k = self.suggestion.n_clusters
        if k > len(self.inertia_path):
            raise ParameterError(
                f"suggestion.n_clusters={k} lies beyond the {len(self.inertia_path)} entries of inertia_path: pass the "
                "suggestion made from this path."
            )
        shades = shades_of(self.ax_)
        height = self.inertia_path[k - 1]
        self.ax_.axvline(k, color=shades.mark, linewidth=1.0, linestyle=(0, (4, 3)), alpha=0.7, zorder=1)
        (mark,) = self.ax_.plot(
            [k],
            [height],
            "o",
            color=shades.mark,
            markersize=9,
            markerfacecolor=shades.ground,
            markeredgewidth=2.0,
            zorder=3,
        )
        text = self.ax_.annotate(
            f"k = {k} ({RULES[self.suggestion.method]})",
            (k, height),
            (9, 9),
            textcoords="offset points",
            color=shades.edge,
            fontsize=LABEL_SIZE,
        )
        return mark, text


def _suggestion(path: Any, suggest: Any) -> SuggestedClusters | None:
    if isinstance(suggest, SuggestedClusters):
        return suggest
    if not isinstance(suggest, bool):
        raise ParameterError(f"suggest={suggest!r} is not known: pass True, False or the result of suggest_n_clusters.")
    return suggest_n_clusters(path) if suggest and len(path) > 2 else None
