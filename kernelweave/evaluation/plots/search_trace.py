"""What a search without labels tried, as a plot: scores in order, and over a parameter."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from kernelweave.evaluation.plots.style import (
    SIZE,
    SMALL_SIZE,
    as_many_axes,
    counts,
    dress,
    new_axes,
    numbers,
    scatter_style,
    shades_of,
)
from kernelweave.evaluation.plots.words import legend_below, shortened
from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.errors import ParameterError

# Values of a parameter whose largest is this many times the smallest are drawn on a logarithmic axis.
DECADES = 20.0
# Height of the marks of refused points, as a share of the panel.
BOTTOM = 0.03
# Names of values along an axis are slanted where they have more characters than this, taken together.
LEVEL = 40


class SearchTraceDisplay:
    """Scores of all points tried by a search, in order, with the best score so far as a line.

    Points that the estimator refused are shown as crosses at the bottom. The best point has a ring. With ``param``, a
    second panel shows the scores over one of the parameters, on a logarithmic axis where its values span decades.

    Create one with :meth:`from_estimator` or :meth:`from_trace`; redraw it elsewhere with :meth:`plot`. Drawing needs
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
            A parameter to draw the scores over, such as ``"n_clusters"``. A dot reaches into dicts and lists:
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
        """Draw a trace, such as one kept from an earlier search.

        Parameters
        ----------
        trace : dict
            ``"score"``, and ``"params"`` where ``param`` is passed, as in ``trace_`` of a search.
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
        style = {
            "color": shades_of(self.axes_[0]).second_line,
            "linewidth": 1.8,
            "drawstyle": "steps-post",
            "zorder": 1,
        }
        (self.line_,) = self.axes_[0].plot(order, best, label="best so far", **style)
        self._draw_points(self.axes_[0], order, scatter_kwargs)
        self._mark_best(order)
        counts(self.axes_[0].xaxis)
        self.axes_[0].set_xlabel("points tried")
        if self.values is not None:
            self._draw_over_param(self.axes_[1], scatter_kwargs)
        for ax in self.axes_:
            ax.set_ylabel(self.criterion)
            numbers(ax.yaxis)
            dress(ax, grid="both")
        signs = [self.points_[0], self.line_, *([self.refused_[0]] if np.isnan(self.scores).any() else [])]
        # Outside the panel: the best so far runs along its top, and refused points along its bottom.
        legend_below(self.axes_[0], signs)
        return self

    def _new_axes(self, count: int) -> Array:
        options: dict[str, Any] = {"figsize": (4.8 * count + 1.0, SIZE[1])}
        return np.atleast_1d(np.asarray(new_axes(self, count, **options), dtype=object))

    def _draw_points(self, ax: Any, places: Any, options: dict[str, Any]) -> None:
        known = np.isfinite(self.scores)
        size = float(np.clip(3000.0 / len(self.scores), 8.0, 24.0))
        style = scatter_style(
            options, color=shades_of(ax).line, s=size, alpha=0.85, linewidth=0, zorder=2, label="score"
        )
        self.points_.append(ax.scatter(places[known], self.scores[known], **style))
        across = {"transform": ax.get_xaxis_transform(), "zorder": 2}
        style = {"marker": "x", "color": shades_of(ax).quiet, "markersize": 5, "linestyle": "", "label": "refused"}
        refused = places[~known]
        self.refused_ += ax.plot(refused, np.full(len(refused), BOTTOM), **style, **across)
        # Room below the scores for the crosses, above them for the ring.
        low = float(self.scores[known].min())
        high = float(self.scores[known].max())
        span = high - low if high > low else max(abs(high), 1e-3)
        ax.set_ylim(low - 0.16 * span, high + 0.12 * span)

    def _mark_best(self, order: Any) -> None:
        shades = shades_of(self.axes_[0])
        at = int(np.nanargmax(self.scores))
        self._ring(self.axes_[0], order[at])
        side, away = ("right", -8) if at > len(order) / 2 else ("left", 8)
        style = {"textcoords": "offset points", "color": shades.edge, "fontsize": SMALL_SIZE, "ha": side, "va": "top"}
        # Scores just below the best one lie under the words.
        style |= {"bbox": {"facecolor": shades.ground, "edgecolor": "none", "alpha": 0.95, "pad": 1.0}, "zorder": 4}
        words = f"{self.scores[at]:.4g}, point {order[at]}"
        self.text_ = self.axes_[0].annotate(words, (order[at], self.scores[at]), (away, -7), **style)

    def _ring(self, ax: Any, place: Any) -> None:
        style = {
            "color": shades_of(ax).mark,
            "markersize": 10,
            "markerfacecolor": "none",
            "markeredgewidth": 2.0,
            "zorder": 3,
        }
        self.marks_ += ax.plot([place], [np.nanmax(self.scores)], "o", label="best", **style)

    def _draw_over_param(self, ax: Any, options: dict[str, Any]) -> None:
        places, names = _places(self.values)
        self._draw_points(ax, places, options)
        self._ring(ax, places[int(np.nanargmax(self.scores))])
        if names is not None:
            words = [shortened(name, 22) for name in names]
            level = sum(map(len, words)) <= LEVEL
            ax.set_xticks(np.arange(len(words)), words, rotation=0 if level else 35, ha="center" if level else "right")
            ax.tick_params(axis="x", rotation=0 if level else 35)
            ax.set_xlim(-0.5, len(words) - 0.5)
        elif places.min() > 0 and places.max() >= DECADES * places.min():
            ax.set_xscale("log")
        elif all(float(place).is_integer() for place in places):
            counts(ax.xaxis)
        ax.set_xlabel(self.param)


def _value(setting: Any, param: str) -> Any:
    """Return a parameter of a point, looked up through dicts and lists."""
    value = setting
    for step in param.split("."):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, Sequence) and not isinstance(value, str) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            has = sorted(map(str, value)) if isinstance(value, Mapping) else value
            raise ParameterError(f"param={param!r} cannot be found at {step!r}: the points tried have {has}.")
    if isinstance(value, Mapping | list | tuple):
        raise ParameterError(
            f"param={param!r} is {value!r}, not one value. Reach into it with a dot, as in 'kernel_params.sigma'."
        )
    return value


def _places(values: Sequence[Any]) -> tuple[Floats, list[str] | None]:
    """Return where values lie on an axis, and the names of the places where they are not numbers."""
    if all(isinstance(value, Real) and not isinstance(value, bool | np.bool_) for value in values):
        return np.array(values, dtype=np.float64), None
    names = [str(value) for value in values]
    known = list(dict.fromkeys(sorted(names)))
    return np.array([known.index(name) for name in names], dtype=np.float64), known
