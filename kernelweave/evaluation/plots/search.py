"""What a search without labels tried, as pictures: scores in order, over a parameter, over the number of clusters."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from kernelweave.evaluation.model_selection import ChosenClusters, choose_n_clusters
from kernelweave.evaluation.plots.style import COLOURS, QUIET, as_many_axes, new_axes, scatter_style
from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import RandomState

MARK = COLOURS[5]
REFUSED = COLOURS[6]
# Values of a parameter whose largest is this many times the smallest are drawn on a logarithmic axis.
DECADES = 20.0
# Height of the marks of refused points, as a share of the panel.
BOTTOM = 0.03


class SearchTraceDisplay:
    """Scores of all points that a search tried, in order, with the best so far as a line.

    Points the estimator refused are crosses at the bottom. The best point has a ring. With ``param`` a second panel
    has the scores over one of the parameters, on a logarithmic axis where its values span decades.

    Make one with :meth:`from_estimator` or :meth:`from_trace`; draw it again elsewhere with :meth:`plot`. Drawing needs
    matplotlib, which ``kernelweave[plots]`` installs.

    Parameters
    ----------
    scores : ndarray of shape (n_points,)
        Scores in order, NaN where a point was refused.
    values : list, default=None
        Values of the parameter, one for each point.
    param : str, default=None
        Its name.
    criterion : str, default="score"
        What the scores are.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One panel, or two with ``param``.
    figure_ : matplotlib Figure
        Figure with the panels.
    points_ : list of matplotlib PathCollection
        The scores, one collection for each panel.
    refused_ : list of matplotlib Line2D
        The crosses, one line for each panel.
    line_ : matplotlib Line2D
        The best score so far.
    marks_ : list of matplotlib Line2D
        The ring around the best point, one for each panel.
    text_ : matplotlib Annotation
        The words beside it in the first panel.

    See Also
    --------
    kernelweave.model_selection.AnnealingSearch : The search.
    ClusterCountDisplay : Scores over the number of clusters.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from scipy.stats import loguniform
    >>> from kernelweave import KernelSpectralClustering
    >>> from kernelweave.datasets import make_two_rings
    >>> from kernelweave.model_selection import AnnealingSearch
    >>> from kernelweave.plots import SearchTraceDisplay
    >>> X, _ = make_two_rings(random_state=0)
    >>> space = {"kernel_params": {"sigma": loguniform(0.05, 5.0)}}
    >>> search = AnnealingSearch(KernelSpectralClustering(2), space, criterion="blf", n_iter=20, random_state=0).fit(X)
    >>> panels = Figure().subplots(1, 2)
    >>> display = SearchTraceDisplay.from_estimator(search, param="kernel_params.sigma", axes=panels)
    >>> display.axes_[1].get_xscale(), bool(display.line_.get_ydata()[-1] == search.best_score_)
    ('log', True)
    """

    def __init__(self, scores: Any, *, values: Any = None, param: str | None = None, criterion: str = "score") -> None:
        self.scores = scores
        self.values = values
        self.param = param
        self.criterion = criterion

    @classmethod
    def from_estimator(
        cls, search: Any, *, param: str | None = None, axes: Any = None, **scatter_kwargs: Any
    ) -> "SearchTraceDisplay":
        """Draw what a fitted search tried.

        Parameters
        ----------
        search : fitted AnnealingSearch
            The search, or anything with ``trace_``.
        param : str, default=None
            A parameter to draw the scores over, such as ``"n_clusters"``. A full stop leads into dicts and lists:
            ``"kernel_params.sigma"``, ``"gamma.0"``.
        axes : matplotlib Axes or array of them, default=None
            Where to draw, two with ``param``; a new figure by default.
        **scatter_kwargs : dict
            Passed to ``Axes.scatter`` for the scores.

        Returns
        -------
        display : SearchTraceDisplay
            The display, drawn.
        """
        if not hasattr(search, "trace_"):
            raise ParameterError(f"search={type(search).__name__}(...) has no trace_. Pass a fitted AnnealingSearch.")
        criterion = getattr(search, "criterion", "score")
        name = criterion if isinstance(criterion, str) else getattr(criterion, "__name__", "score")
        return cls.from_trace(search.trace_, param=param, criterion=name, axes=axes, **scatter_kwargs)

    @classmethod
    def from_trace(
        cls,
        trace: Mapping[str, Any],
        *,
        param: str | None = None,
        criterion: str = "score",
        axes: Any = None,
        **scatter_kwargs: Any,
    ) -> "SearchTraceDisplay":
        """Draw a trace by itself, such as one kept from an earlier search.

        Parameters
        ----------
        trace : dict
            ``"score"``, and ``"params"`` where ``param`` is given, as in ``trace_`` of a search.
        criterion : str, default="score"
            What the scores are.
        param, axes, **scatter_kwargs
            As in :meth:`from_estimator`.

        Returns
        -------
        display : SearchTraceDisplay
            The display, drawn.
        """
        if not isinstance(trace, Mapping) or "score" not in trace:
            raise ParameterError("trace must be a dict with 'score' and 'params', as trace_ of a search is.")
        scores = np.asarray(trace["score"], dtype=np.float64)
        if scores.ndim != 1 or not np.isfinite(scores).any():
            raise ParameterError(f"trace['score'] has shape {scores.shape} and no score that is a number.")
        values = None
        if param is not None:
            settings = list(trace.get("params", ()))
            if len(settings) != len(scores):
                raise ParameterError(f"trace has {len(settings)} 'params' for {len(scores)} scores; give one for each.")
            values = [_value(setting, param) for setting in settings]
        return cls(scores, values=values, param=param, criterion=criterion).plot(axes, **scatter_kwargs)

    def plot(self, axes: Any = None, **scatter_kwargs: Any) -> "SearchTraceDisplay":
        """Draw the panels.

        Parameters
        ----------
        axes : matplotlib Axes or array of them, default=None
            Where to draw, two with a parameter; a new figure by default.
        **scatter_kwargs : dict
            Passed to ``Axes.scatter`` for the scores.

        Returns
        -------
        display : SearchTraceDisplay
            This display, with ``axes_``, ``figure_``, ``points_``, ``refused_``, ``line_``, ``marks_`` and ``text_``
            set.
        """
        count = 1 if self.values is None else 2
        self.axes_ = self._new_axes(count) if axes is None else as_many_axes(axes, count)
        self.figure_ = self.axes_[0].figure
        self.points_: list[Any] = []
        self.refused_: list[Any] = []
        self.marks_: list[Any] = []
        order = np.arange(1, len(self.scores) + 1)
        best = np.fmax.accumulate(self.scores)
        style = {"color": COLOURS[1], "linewidth": 1.8, "drawstyle": "steps-post", "zorder": 1}
        (self.line_,) = self.axes_[0].plot(order, best, label="best so far", **style)
        self._draw_points(self.axes_[0], order, scatter_kwargs)
        self._mark_best(order)
        _whole_numbers(self.axes_[0])
        self.axes_[0].set_xlabel("points tried")
        if self.values is not None:
            self._draw_over_param(self.axes_[1], scatter_kwargs)
        for ax in self.axes_:
            ax.set_ylabel(self.criterion)
            _dress(ax)
        signs = [self.points_[0], self.line_, *([self.refused_[0]] if np.isnan(self.scores).any() else [])]
        # Above the panel: the best so far runs along its top, and refused points along its bottom.
        above = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 3, "borderaxespad": 0.2}
        self.axes_[0].legend(handles=signs, frameon=False, fontsize=8, **above)
        return self

    def _new_axes(self, count: int) -> Array:
        options: dict[str, Any] = {"figsize": (4.8 * count + 0.6, 3.6)}
        return np.atleast_1d(np.asarray(new_axes(self, count, **options), dtype=object))

    def _draw_points(self, ax: Any, places: Any, given: dict[str, Any]) -> None:
        known = np.isfinite(self.scores)
        size = float(np.clip(3000.0 / len(self.scores), 8.0, 24.0))
        style = scatter_style(given, color=COLOURS[0], s=size, alpha=0.85, linewidth=0, zorder=2, label="score")
        self.points_.append(ax.scatter(places[known], self.scores[known], **style))
        across = {"transform": ax.get_xaxis_transform(), "zorder": 2}
        look = {"marker": "x", "color": REFUSED, "markersize": 5, "linestyle": "", "label": "refused"}
        refused = places[~known]
        self.refused_ += ax.plot(refused, np.full(len(refused), BOTTOM), **look, **across)
        # Room below the scores for the crosses, above them for the ring.
        low = float(self.scores[known].min())
        high = float(self.scores[known].max())
        span = high - low if high > low else max(abs(high), 1e-3)
        ax.set_ylim(low - 0.16 * span, high + 0.12 * span)

    def _mark_best(self, order: Any) -> None:
        at = int(np.nanargmax(self.scores))
        self._ring(self.axes_[0], order[at])
        side, away = ("right", -8) if at > len(order) / 2 else ("left", 8)
        style = {"textcoords": "offset points", "color": "#333333", "fontsize": 8, "ha": side, "va": "top"}
        words = f"{self.scores[at]:.4g}, point {order[at]}"
        self.text_ = self.axes_[0].annotate(words, (order[at], self.scores[at]), (away, -7), **style)

    def _ring(self, ax: Any, place: Any) -> None:
        look = {"color": MARK, "markersize": 10, "markerfacecolor": "none", "markeredgewidth": 2.0, "zorder": 3}
        self.marks_ += ax.plot([place], [np.nanmax(self.scores)], "o", label="best", **look)

    def _draw_over_param(self, ax: Any, given: dict[str, Any]) -> None:
        places, names = _places(self.values)
        self._draw_points(ax, places, given)
        self._ring(ax, places[int(np.nanargmax(self.scores))])
        if names is not None:
            ax.set_xticks(np.arange(len(names)), names)
            ax.set_xlim(-0.5, len(names) - 0.5)
        elif places.min() > 0 and places.max() >= DECADES * places.min():
            ax.set_xscale("log")
        elif all(float(place).is_integer() for place in places):
            _whole_numbers(ax)
        ax.set_xlabel(self.param)


class ClusterCountDisplay:
    """Scores over the number of clusters, with the chosen number marked.

    Numbers the estimator refused are crosses at the bottom.

    Make one with :meth:`from_estimator` or :meth:`from_choice`; draw it again elsewhere with :meth:`plot`. Drawing
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
        sample_size: int | None = 2000,
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
        """Draw a choice made before.

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
        self.ax_ = new_axes(self, figsize=(6.0, 3.8)) if ax is None else ax
        self.figure_ = self.ax_.figure
        ks = self.choice.candidates
        scores = self.choice.scores
        known = np.isfinite(scores)
        (self.line_,) = self.ax_.plot(ks[known], scores[known], **self._line_style(line_kwargs))
        colour = self.line_.get_color()
        look = {"marker": "x", "color": colour, "markersize": 6, "linestyle": "", "label": "_refused"}
        (self.refused_,) = self.ax_.plot(
            ks[~known], np.full((~known).sum(), BOTTOM), transform=self.ax_.get_xaxis_transform(), **look
        )
        self._mark()
        _whole_numbers(self.ax_)
        self.ax_.set_xlabel("number of clusters k")
        # Curves of different criteria may share the axes.
        shared = self.ax_.get_ylabel() not in ("", self.choice.criterion)
        self.ax_.set_ylabel("score" if shared else self.choice.criterion)
        self.ax_.margins(y=0.16)
        _dress(self.ax_)
        if not str(self.line_.get_label()).startswith("_"):  # matplotlib's mark of curves without a name
            self.ax_.legend(frameon=False, fontsize=8)
        return self

    def _line_style(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return how to draw the curve: ours where the caller says nothing, under whatever alias."""
        from matplotlib.cbook import normalize_kwargs
        from matplotlib.lines import Line2D

        ours = {"color": COLOURS[0], "linewidth": 1.8, "marker": "o", "markersize": 4, "label": self.name}
        return {**ours, **normalize_kwargs(given, Line2D)}

    def _mark(self) -> None:
        k = self.choice.n_clusters
        best = float(np.nanmax(self.choice.scores))
        look = {"color": MARK, "markersize": 10, "markerfacecolor": "none", "markeredgewidth": 2.0, "zorder": 3}
        (self.mark_,) = self.ax_.plot([k], [best], "o", label="_chosen", **look)
        self.ax_.axvline(k, color=MARK, linewidth=1.0, linestyle=(0, (4, 3)), alpha=0.7, zorder=1)
        # To the left of a mark at the right edge.
        ks = self.choice.candidates
        side, away = ("right", -9) if k > 0.5 * (ks[0] + ks[-1]) else ("left", 9)
        above = 5 + 12 * len(self.ax_.texts)  # over the words of other curves
        style = {"textcoords": "offset points", "color": "#333333", "ha": side, "va": "bottom"}
        self.text_ = self.ax_.annotate(f"k = {k} ({self.choice.criterion})", (k, best), (away, above), **style)


def _value(setting: Any, param: str) -> Any:
    """Return a parameter of a point, looked up through dicts and lists."""
    found = setting
    for part in param.split("."):
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, Sequence) and not isinstance(found, str) and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        else:
            has = sorted(map(str, found)) if isinstance(found, Mapping) else found
            raise ParameterError(f"param={param!r} leads nowhere at {part!r}: the points tried have {has}.")
    if isinstance(found, Mapping | list | tuple):
        raise ParameterError(
            f"param={param!r} is {found!r}, not one value. Lead into it with a full stop, as in 'kernel_params.sigma'."
        )
    return found


def _places(values: Sequence[Any]) -> tuple[Floats, list[str] | None]:
    """Return where values lie on an axis, and the names of the places where they are not numbers."""
    if all(isinstance(value, Real) and not isinstance(value, bool | np.bool_) for value in values):
        return np.array(values, dtype=np.float64), None
    names = [str(value) for value in values]
    known = list(dict.fromkeys(sorted(names)))
    return np.array([known.index(name) for name in names], dtype=np.float64), known


def _whole_numbers(ax: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _dress(ax: Any) -> None:
    """Draw a light grid and a light frame."""
    ax.grid(True, color=QUIET, alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=2, color=QUIET, labelsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color("#cccccc")
