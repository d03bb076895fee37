"""Weights of views as a plot."""

from typing import Any

import numpy as np

from kernelweave.evaluation.describe import final_step
from kernelweave.evaluation.plots.style import (
    SIZE,
    SMALL_SIZE,
    bar_style,
    dress,
    fitted_attributes,
    new_axes,
    numbers,
    shades_of,
)
from kernelweave.evaluation.plots.words import wrapped
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError

# Names of views are broken into two lines of so many characters at most.
LONGEST_LINE = 24


class ViewWeightsDisplay:
    """Weights of views as bars, with a line at equal weights.

    Create one with :meth:`from_estimator` or :meth:`from_weights`; redraw it elsewhere with :meth:`plot`. Drawing
    needs matplotlib, which ``kernelweave[plots]`` installs.

    Parameters
    ----------
    names : sequence of str
        Names of the views.
    weights : ndarray of shape (n_views,)
        Their weights, or the means over several runs.
    errors : ndarray of shape (n_views,), default=None
        Deviations, drawn as lines around the ends of the bars.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the bars, the first view on top.
    figure_ : matplotlib Figure
        Figure with the axes.
    bars_ : matplotlib BarContainer
        The bars.
    line_ : matplotlib Line2D
        The line at the mean weight, 1 / V where the weights add up to 1.
    texts_ : list of matplotlib Annotation
        The weights in figures, beside the bars.

    See Also
    --------
    kernelweave.MultiViewConvexMixture : An estimator that learns such weights.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelweave.plots import ViewWeightsDisplay
    >>> axes = Figure().subplots()
    >>> display = ViewWeightsDisplay.from_weights(["text", "links"], [0.25, 0.75], [0.05, 0.05], ax=axes)
    >>> [text.get_text() for text in display.texts_]
    ['0.25 ± 0.05', '0.75 ± 0.05']
    """

    def __init__(self, names: Any, weights: Any, *, errors: Any = None) -> None:
        self.names = names
        self.weights = weights
        self.errors = errors

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None, **bar_kwargs: Any) -> "ViewWeightsDisplay":
        """Draw the view weights of a fitted estimator.

        Parameters
        ----------
        model : fitted estimator
            Anything with ``view_weights_`` and ``view_names_``, or a pipeline or a search that ends in it.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **bar_kwargs : dict
            Passed to ``Axes.barh``.

        Returns
        -------
        display : ViewWeightsDisplay
            The display, drawn.
        """
        weights, names = fitted_attributes(final_step(model), "view_weights_", "view_names_")
        return cls.from_weights(names, weights, ax=ax, **bar_kwargs)

    @classmethod
    def from_weights(
        cls, names: Any, weights: Any, errors: Any = None, *, ax: Any = None, **bar_kwargs: Any
    ) -> "ViewWeightsDisplay":
        """Draw existing weights, for instance means and deviations over several runs.

        Parameters
        ----------
        names : sequence of str
            Names of the views.
        weights : array-like of shape (n_views,)
            Their weights.
        errors : array-like of shape (n_views,), default=None
            Their deviations.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **bar_kwargs : dict
            Passed to ``Axes.barh``.

        Returns
        -------
        display : ViewWeightsDisplay
            The display, drawn.
        """
        names = [str(name) for name in names]
        weights = _amounts("weights", weights, len(names))
        errors = None if errors is None else _amounts("errors", errors, len(names))
        return cls(names, weights, errors=errors).plot(ax, **bar_kwargs)

    def plot(self, ax: Any = None, **bar_kwargs: Any) -> "ViewWeightsDisplay":
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **bar_kwargs : dict
            Passed to ``Axes.barh``.

        Returns
        -------
        display : ViewWeightsDisplay
            This display, with ``ax_``, ``figure_``, ``bars_``, ``line_`` and ``texts_`` set.
        """
        n_views = len(self.names)
        self.ax_ = new_axes(self, figsize=(SIZE[0], 1.0 + 0.34 * n_views)) if ax is None else ax
        self.figure_ = self.ax_.figure
        places = np.arange(n_views)
        shades = shades_of(self.ax_)
        lines = {"ecolor": shades.edge, "elinewidth": 1.2, "capsize": 2.5}
        style = bar_style(bar_kwargs, color=shades.line, height=0.68, error_kw=lines)
        self.bars_ = self.ax_.barh(places, self.weights, xerr=self.errors, **style)
        self.line_ = self.ax_.axvline(
            float(np.mean(self.weights)), color=shades.edge, linewidth=1.0, linestyle=(0, (4, 3))
        )
        self.texts_ = self._write_figures(places)
        self.ax_.set_yticks(places, [wrapped(name, LONGEST_LINE) for name in self.names])
        self.ax_.set_ylim(n_views - 0.4, -0.6)
        self.ax_.set_xlabel("view weight (dashed: all views equal)")
        self._dress()
        return self

    def _write_figures(self, places: Ints) -> list[Any]:
        errors = np.zeros(len(self.names)) if self.errors is None else self.errors
        figures = [f"{weight:.2f}" for weight in self.weights]
        if self.errors is not None:
            figures = [f"{figure} ± {error:.2f}" for figure, error in zip(figures, errors, strict=True)]
        style = {
            "textcoords": "offset points",
            "va": "center",
            "fontsize": SMALL_SIZE,
            "color": shades_of(self.ax_).edge,
            "bbox": {"facecolor": shades_of(self.ax_).ground, "edgecolor": "none", "pad": 0.8},
        }
        ends = zip(figures, self.weights + errors, places, strict=True)
        return [self.ax_.annotate(figure, (end, place), (5, 0), **style) for figure, end, place in ends]

    def _dress(self) -> None:
        ends = self.weights if self.errors is None else self.weights + self.errors
        largest = float(ends.max())
        # Figures stand to the right of the bars.
        self.ax_.set_xlim(0.0, largest * (1.18 if self.errors is None else 1.4) if largest > 0 else 1.0)
        numbers(self.ax_.xaxis)
        dress(self.ax_)
        self.ax_.tick_params(axis="y", length=0)


def _amounts(name: str, values: Any, count: int) -> Floats:
    amounts = np.asarray(values, dtype=np.float64)
    if amounts.shape != (count,) or not count:
        raise ParameterError(f"{name} has shape {amounts.shape} for {count} views; give one number per view.")
    if not (np.isfinite(amounts).all() and (amounts >= 0).all()):
        raise ParameterError(f"{name}={amounts.tolist()} must be finite and not negative.")
    return amounts
