"""What the exponent of view weights does, as pictures: kernel coefficients, NMI and stability over p."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from kernelweave.evaluation.describe import final_step
from kernelweave.evaluation.metrics import normalized_mutual_info
from kernelweave.evaluation.palette import N_COLOURS
from kernelweave.evaluation.plots.style import (
    LABEL_SIZE,
    SIZE,
    as_many_axes,
    bar_style,
    cluster_colour,
    cluster_style,
    dress,
    line_style,
    new_axes,
    numbers,
    shades_of,
)
from kernelweave.evaluation.plots.words import LISTED, legend_below, legend_beside, shortened
from kernelweave.foundation.array_types import Array, Floats
from kernelweave.foundation.errors import ParameterError
from kernelweave.solvers.shared.exponent import EQUAL_STABILITIES

UNIFORM = "uniform"
# Views that share a colour differ in hatching, and all are distinct in grey.
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++", "oo")
LINES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
# Share of the room between two exponents that bars fill.
FILLED = 0.84


class ExponentDisplay:
    """Kernel coefficients over the exponent p as bars, and NMI or stability over p as lines.

    :meth:`from_estimator` fits a multi-view method, or several, for a number of exponents. It draws a panel of bars for
    each method, one bar for each view, and a panel with the NMI where classes are known. :meth:`from_path` shows what
    ``p="auto"`` went by. :meth:`plot` redraws it elsewhere. Drawing needs matplotlib, which ``kernelweave[plots]``
    installs.

    Parameters
    ----------
    p : ndarray of shape (n_exponents,)
        Exponents; infinity stands for equal weights.
    view_names : sequence of str, default=()
        Names of the views.
    coefficients : dict of str to ndarray of shape (n_exponents, n_views), default=None
        Shares of the kernels in their sum, by name of the method.
    nmi : dict of str to ndarray of shape (n_exponents,), default=None
        Agreement with known classes, by name of the method.
    stability : ndarray of shape (n_exponents,), default=None
        How stable clusters are under resampling.
    chosen : float, default=None
        The exponent to mark beside its stability.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        The panels: coefficients of each method, then NMI, then stability, as far as they are known.
    figure_ : matplotlib Figure
        Figure with the axes.
    bars_ : dict of str to list of matplotlib BarContainer
        The bars of each method, one container for each view.
    lines_ : dict of str to matplotlib Line2D
        The curves of NMI by name of the method, or the one called ``"stability"``.
    mark_, text_ : matplotlib Line2D and Annotation, or None
        Marker of the chosen exponent and the words beside it.

    See Also
    --------
    kernelweave.MultiViewKernelKMeans : Weights, coefficients and ``p="auto"``.
    ViewWeightsDisplay : The weights of one fit.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelweave import MultiViewKernelKMeans
    >>> from kernelweave.datasets import make_corrupted_views
    >>> from kernelweave.plots import ExponentDisplay
    >>> data = make_corrupted_views(2, 1, n_samples=150, n_corrupted=10, random_state=0)
    >>> model = MultiViewKernelKMeans(3, kernel="linear", random_state=0)
    >>> display = ExponentDisplay.from_estimator(model, data.views, p=(1.5, 2, "uniform"), axes=Figure().subplots())
    >>> display.coefficients["MultiViewKernelKMeans"].shape
    (3, 3)
    >>> bool(display.coefficients["MultiViewKernelKMeans"][0, 2] < 1 / 3)  # of the noisy view, at p = 1.5
    True
    """

    def __init__(
        self,
        p: Any,
        *,
        view_names: Any = (),
        coefficients: Any = None,
        nmi: Any = None,
        stability: Any = None,
        chosen: float | None = None,
    ) -> None:
        self.p = p
        self.view_names = view_names
        self.coefficients = coefficients
        self.nmi = nmi
        self.stability = stability
        self.chosen = chosen

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        p: Any = (1, 1.5, 2, 3, 4, 5, 6, UNIFORM),
        y: Any = None,
        axes: Any = None,
        bar_kwargs: dict[str, Any] | None = None,
        line_kwargs: dict[str, Any] | None = None,
    ) -> "ExponentDisplay":
        """Fit clones of an estimator for several exponents, and draw their coefficients.

        Parameters
        ----------
        estimator : MultiViewKernelKMeans or MultiViewSpectralClustering, or dict of str to estimator
            What to fit, or a pipeline that ends in it, fitted before or not; it is left as it is. A dict gives several
            methods a name each and draws them side by side. Their weights are learned, whatever ``view_weights`` is,
            except for ``"uniform"``.
        X : views, as in ``fit``
            The samples.
        p : sequence of float or "uniform", default=(1, 1.5, 2, 3, 4, 5, 6, "uniform")
            Exponents; ``"uniform"`` stands for equal weights. Every one is another fit. To compute a costly start only
            once, pass its labels as ``init``.
        y : array-like of shape (n_samples,), default=None
            Known classes, to draw the NMI as well. No fit uses them.
        axes : matplotlib Axes or array of them, default=None
            Where to draw, one for each method and one more with ``y``; a new figure by default.
        bar_kwargs : dict, default=None
            Passed to ``Axes.bar``.
        line_kwargs : dict, default=None
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ExponentDisplay
            The display, drawn.
        """
        methods = _methods(estimator)
        exponents = _exponents(p)
        fitted = {name: [_fitted(method, exponent, X) for exponent in exponents] for name, method in methods.items()}
        display = cls(
            exponents,
            view_names=next(iter(fitted.values()))[0].view_names_,
            coefficients={name: np.array([m.kernel_coefficients_ for m in models]) for name, models in fitted.items()},
        )
        if y is not None:
            display.nmi = {
                name: np.array([normalized_mutual_info(y, model.labels_) for model in models])
                for name, models in fitted.items()
            }
        return display.plot(axes, bar_kwargs=bar_kwargs, line_kwargs=line_kwargs)

    @classmethod
    def from_path(cls, estimator: Any, *, ax: Any = None, **line_kwargs: Any) -> "ExponentDisplay":
        """Draw the stability of every exponent that ``p="auto"`` tried, with the chosen one marked.

        Stabilities within the band below the largest count as equal, and the largest exponent among them is chosen.

        Parameters
        ----------
        estimator : fitted MultiViewKernelKMeans or MultiViewSpectralClustering
            One with ``p_path_``, or a pipeline or a search that ends in one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **line_kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ExponentDisplay
            The display, drawn.
        """
        model = final_step(estimator)
        if not hasattr(model, "p_path_"):
            raise ParameterError(
                f"estimator={type(model).__name__}(...) has no p_path_. Fit it with p='auto', view_weights='learned' "
                "and two views or more."
            )
        path = model.p_path_
        display = cls(path["p"], stability=path["stability"], chosen=model.p_)
        return display.plot(ax, line_kwargs=line_kwargs)

    def plot(
        self,
        axes: Any = None,
        *,
        bar_kwargs: dict[str, Any] | None = None,
        line_kwargs: dict[str, Any] | None = None,
    ) -> "ExponentDisplay":
        """Draw the panels.

        Parameters
        ----------
        axes : matplotlib Axes or array of them, default=None
            Where to draw; a new figure by default.
        bar_kwargs : dict, default=None
            Passed to ``Axes.bar``.
        line_kwargs : dict, default=None
            Passed to ``Axes.plot``.

        Returns
        -------
        display : ExponentDisplay
            This display, with ``axes_``, ``figure_``, ``bars_``, ``lines_``, ``mark_`` and ``text_`` set.
        """
        methods = list(self.coefficients or {})
        widths = [1.5] * len(methods) + [1.0] * sum(values is not None for values in (self.nmi, self.stability))
        if not widths:
            raise ParameterError("The display holds no coefficients, NMI or stability: there is nothing to draw.")
        self.axes_ = self._new_axes(widths) if axes is None else as_many_axes(axes, len(widths))
        self.figure_ = self.axes_[0].figure
        self.bars_: dict[str, list[Any]] = {}
        self.lines_: dict[str, Any] = {}
        self.mark_ = None
        self.text_ = None
        panels = iter(self.axes_)
        for name in methods:
            self._draw_bars(next(panels), name, bar_kwargs or {}, title=len(methods) > 1)
        if methods:
            self.axes_[0].set_ylabel("kernel coefficient (dashed: all equal)")
            legend_beside(self.axes_[len(methods) - 1], self._leading_views(), handlelength=1.6)
        if self.nmi is not None:
            self._draw_lines(next(panels), self.nmi, "NMI", line_kwargs or {})
        if self.stability is not None:
            ax = next(panels)
            self._draw_lines(ax, {"stability": self.stability}, "stability (adjusted Rand index)", line_kwargs or {})
            self._mark_chosen(ax)
        for ax in self.axes_:
            self._dress(ax)
        return self

    def _leading_views(self) -> list[Any]:
        """Return the bars for the legend: in the order of the views where all are listed, else the largest first."""
        bars = next(iter(self.bars_.values()))
        if len(bars) <= LISTED:
            return bars
        largest = np.max([np.max(values, axis=0) for values in self.coefficients.values()], axis=0)
        return [bars[v] for v in np.argsort(-largest, kind="stable")]

    def _new_axes(self, widths: Sequence[float]) -> Array:
        wide = 3.2 * sum(widths) + 0.03 * len(self.view_names) * len(self.p) * len(self.coefficients or {})
        beside = 0.5 + 0.07 * max((len(shortened(name)) for name in self.view_names), default=0)
        options = {"figsize": (wide + beside, SIZE[1]), "width_ratios": widths}
        return np.atleast_1d(np.asarray(new_axes(self, len(widths), **options), dtype=object))

    def _draw_bars(self, ax: Any, name: str, options: dict[str, Any], *, title: bool) -> None:
        coefficients = self.coefficients[name]
        places = np.arange(len(self.p))
        n_views = coefficients.shape[1]
        wide = FILLED / n_views
        self.bars_[name] = []
        for v, view in enumerate(self.view_names):
            at = places - FILLED / 2 + (v + 0.5) * wide
            pattern = v if n_views <= LISTED else v // N_COLOURS  # too fine to see on the narrow bars of many views
            style = {
                "color": cluster_colour(ax, v),
                "hatch": HATCHES[pattern % len(HATCHES)],
                "edgecolor": shades_of(ax).ground,
            }
            style = bar_style(
                options, width=wide, linewidth=0.4 if n_views <= LISTED else 0.0, label=shortened(view), **style
            )
            self.bars_[name].append(ax.bar(at, coefficients[:, v], **style))
        ax.axhline(1.0 / n_views, color=shades_of(ax).edge, linewidth=1.0, linestyle=(0, (4, 3)))
        ax.set_ylim(0.0, min(1.05, 1.15 * max(float(np.max(values)) for values in self.coefficients.values())))
        if title:
            ax.set_title(shortened(name, 40))

    def _draw_lines(self, ax: Any, curves: Mapping[str, Floats], what: str, options: dict[str, Any]) -> None:
        for i, (name, values) in enumerate(curves.items()):
            style: dict[str, Any] = {**cluster_style(ax, i), "linestyle": LINES[i % len(LINES)], "linewidth": 1.8}
            style |= {"markersize": 5, "label": shortened(name, 40)}
            (self.lines_[name],) = ax.plot(np.arange(len(self.p)), values, **line_style(options, **style))
        ax.set_ylabel(what)
        numbers(ax.yaxis)
        if len(curves) > 1:
            legend_below(ax, ncols=1)

    def _mark_chosen(self, ax: Any) -> None:
        shades = shades_of(ax)
        best = float(np.max(self.stability))
        ax.axhspan(best - EQUAL_STABILITIES, best, color=shades.quiet, alpha=0.25, linewidth=0)
        at = np.flatnonzero(np.asarray(self.p) == self.chosen)
        if len(at) == 0:
            return
        place = int(at[0])
        height = self.stability[at[0]]
        ax.axvline(place, color=shades.mark, linewidth=1.0, linestyle=(0, (4, 3)), alpha=0.7, zorder=1)
        (self.mark_,) = ax.plot(
            [place],
            [height],
            "o",
            color=shades.mark,
            markersize=10,
            markerfacecolor=shades.ground,
            markeredgewidth=2.0,
            zorder=3,
        )
        words = "equal weights" if np.isinf(self.p[place]) else f"p = {_written(self.p[place])}"
        # To the left of a mark at the right edge.
        side, away = ("right", -9) if place > len(self.p) / 2 else ("left", 9)
        style = {"textcoords": "offset points", "color": shades.edge, "fontsize": LABEL_SIZE, "ha": side, "va": "top"}
        self.text_ = ax.annotate(f"{words} (chosen)", (place, height), (away, -9), **style)
        ax.margins(y=0.18)

    def _dress(self, ax: Any) -> None:
        ax.set_xticks(np.arange(len(self.p)), [_written(exponent) for exponent in self.p])
        ax.set_xlim(-0.6, len(self.p) - 0.4)
        ax.set_xlabel("exponent p")
        dress(ax, grid="y")


def _methods(estimator: Any) -> dict[str, Any]:
    """Return the estimators by name, or say which is none of those the picture is for."""
    methods = dict(estimator) if isinstance(estimator, Mapping) else {type(final_step(estimator)).__name__: estimator}
    if not methods:
        raise ParameterError("estimator={} holds no method to fit.")
    for name, method in methods.items():
        final = final_step(method)
        settings = final.get_params(deep=False) if hasattr(final, "get_params") else {}
        if not {"p", "view_weights"} <= set(settings):
            raise ParameterError(
                f"estimator {name!r} is a {type(final).__name__}, which has no parameters p and view_weights. Pass a "
                "MultiViewKernelKMeans or a MultiViewSpectralClustering."
            )
    return {str(name): getattr(method, "best_estimator_", method) for name, method in methods.items()}


def _exponents(p: Any) -> Floats:
    """Return exponents as numbers, infinity for equal weights."""
    if isinstance(p, str) or np.ndim(p) != 1 or len(p) == 0:
        raise ParameterError(f"p={p!r} must be a sequence of exponents, such as (1.5, 2, 'uniform').")
    numbers = [np.inf if isinstance(value, str) and value == UNIFORM else value for value in p]
    bad = [value for value in numbers if not (isinstance(value, int | float | np.number) and value >= 1)]
    if bad:
        raise ParameterError(f"p has {bad[0]!r}; exponents are numbers of at least 1, or 'uniform' for equal weights.")
    return np.array(numbers, dtype=np.float64)


def _fitted(method: Any, exponent: float, X: Any) -> Any:
    """Return a clone fitted with one exponent."""
    setting = {"view_weights": UNIFORM} if np.isinf(exponent) else {"p": float(exponent), "view_weights": "learned"}
    copy = clone(method)
    final_step(copy).set_params(**setting)
    return final_step(copy.fit(X))


def _written(exponent: float) -> str:
    return UNIFORM if np.isinf(exponent) else f"{exponent:g}"
