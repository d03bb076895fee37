"""Two clusters of a method with learned kernels as a plot: kernel weights and decision values."""

import re
from typing import Any

import numpy as np

from kernelweave.evaluation.describe import final_step, samples_for_final_step
from kernelweave.evaluation.plots.style import (
    as_many_axes,
    bar_style,
    cluster_colour,
    counts,
    dress,
    new_axes,
    numbers,
    shades_of,
)
from kernelweave.evaluation.plots.view_weights import ViewWeightsDisplay
from kernelweave.evaluation.plots.words import legend_below, shortened
from kernelweave.foundation.array_types import Array, Floats, Ints
from kernelweave.foundation.errors import ParameterError

# Names of kernels are shortened to so many characters.
LONGEST_NAME = 24
# Samples this close to the margin lie on it, not inside: the machine is solved to about this.
ON_THE_MARGIN = 0.01
# Bars of a histogram, and their largest number where decision values reach far.
BINS = 40
MOST_BINS = 200
HATCHES = ("", "////")


class DecisionDisplay:
    """Weights of the basis kernels as bars, and the samples' decision values as two histograms, one for each cluster.

    Decision values are 0 at the border between the clusters and -1 and 1 at the margin, which is shaded in between. The
    legend counts the samples of each cluster and those inside the margin.

    Create one with :meth:`from_estimator`; redraw it elsewhere with :meth:`plot`. Drawing needs matplotlib, which
    ``kernelweave[plots]`` installs.

    Parameters
    ----------
    names : sequence of str
        Names of the basis kernels.
    weights : ndarray of shape (n_kernels,)
        Their weights.
    decisions : ndarray of shape (n_samples,)
        Decision values.
    labels : ndarray of shape (n_samples,)
        Clusters of the samples, 0 and 1.

    Attributes
    ----------
    axes_ : ndarray of two matplotlib Axes
        The weights, the first kernel on top, and the decision values.
    figure_ : matplotlib Figure
        Figure with the axes.
    bars_ : matplotlib BarContainer
        The weights.
    texts_ : list of matplotlib Annotation
        The weights in figures, beside the bars.
    histograms_ : list of two matplotlib BarContainer
        The histograms of cluster 0 and of cluster 1.
    lines_ : list of three matplotlib Line2D
        The lines at -1, 0 and 1.
    inside_ : ndarray of two int
        Samples of each cluster inside the margin.

    See Also
    --------
    kernelweave.RatioMultipleKernelClustering : The estimator it is for.
    ViewWeightsDisplay : Weights of views alone.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import make_blobs
    >>> from kernelweave import RatioMultipleKernelClustering
    >>> from kernelweave.plots import DecisionDisplay
    >>> X, y = make_blobs([30, 40], centers=[[0, 0], [6, 0]], random_state=0)
    >>> model = RatioMultipleKernelClustering(C=10.0, kernel=["linear", "rbf"], random_state=0).fit(X)
    >>> display = DecisionDisplay.from_estimator(model, X, axes=Figure().subplots(1, 2))
    >>> [label.get_text() for label in display.axes_[0].get_yticklabels()]
    ['linear', 'rbf']
    """

    def __init__(self, names: Any, weights: Any, *, decisions: Any, labels: Any) -> None:
        self.names = names
        self.weights = weights
        self.decisions = decisions
        self.labels = labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        labels: Any = None,
        axes: Any = None,
        bar_kwargs: dict[str, Any] | None = None,
        hist_kwargs: dict[str, Any] | None = None,
    ) -> "DecisionDisplay":
        """Draw the kernel weights and the decision values of a fitted estimator.

        Parameters
        ----------
        estimator : fitted RatioMultipleKernelClustering of two clusters
            The model, or a pipeline or a search that ends in one.
        X : array-like or views, as in ``fit``
            Samples, new ones or those of ``fit``; of a pipeline, what goes into its first step.
        labels : array-like of shape (n_samples,), default=None
            Clusters 0 and 1 of the samples, by which they are divided between the histograms. By default the side of
            the border they are on, by ``predict``. ``labels_`` may differ from that at small ``C``; pass it to learn
            where.
        axes : array of two matplotlib Axes, default=None
            Where to draw; a new figure by default.
        bar_kwargs : dict, default=None
            Passed to ``Axes.barh`` for the weights.
        hist_kwargs : dict, default=None
            Passed to ``Axes.hist`` for the decision values.

        Returns
        -------
        display : DecisionDisplay
            The display, drawn.
        """
        model = final_step(estimator)
        names, weights = _kernels(model)
        decisions = np.asarray(model.decision_function(samples_for_final_step(estimator, X)))
        if decisions.ndim != 1:
            raise ParameterError(
                f"The plot shows one border, but the estimator has {decisions.shape[1]} (n_clusters="
                f"{model.n_clusters}). Fit it with n_clusters=2, on samples that differ."
            )
        sides = (decisions > 0).astype(np.intp) if labels is None else _two_clusters(labels, len(decisions))
        display = cls(names, weights, decisions=decisions, labels=sides)
        return display.plot(axes, bar_kwargs=bar_kwargs, hist_kwargs=hist_kwargs)

    def plot(
        self,
        axes: Any = None,
        *,
        bar_kwargs: dict[str, Any] | None = None,
        hist_kwargs: dict[str, Any] | None = None,
    ) -> "DecisionDisplay":
        """Draw both panels.

        Parameters
        ----------
        axes : array of two matplotlib Axes, default=None
            Where to draw; a new figure by default.
        bar_kwargs : dict, default=None
            Passed to ``Axes.barh`` for the weights.
        hist_kwargs : dict, default=None
            Passed to ``Axes.hist`` for the decision values.

        Returns
        -------
        display : DecisionDisplay
            This display, with ``axes_``, ``figure_``, ``bars_``, ``texts_``, ``histograms_``, ``lines_`` and
            ``inside_`` set.
        """
        self.axes_ = self._new_axes() if axes is None else as_many_axes(axes, 2)
        self.figure_ = self.axes_[0].figure
        left = ViewWeightsDisplay.from_weights(_short(self.names), self.weights, ax=self.axes_[0], **(bar_kwargs or {}))
        self.bars_ = left.bars_
        self.texts_ = left.texts_
        self.axes_[0].set_xlabel("kernel weight (dashed: all kernels equal)")
        self._draw_decisions(self.axes_[1], hist_kwargs or {})
        return self

    def _new_axes(self) -> Array:
        options = {"figsize": (9.6, max(3.2, 1.0 + 0.3 * len(self.names))), "width_ratios": (1.0, 1.3)}
        return np.asarray(new_axes(self, 2, **options), dtype=object)

    def _draw_decisions(self, ax: Any, options: dict[str, Any]) -> None:
        shades = shades_of(ax)
        edges = _edges(self.decisions)
        ax.axvspan(-1.0, 1.0, color=shades.quiet, alpha=0.15, linewidth=0)
        self.histograms_ = []
        inside = []
        for c in (0, 1):
            values = self.decisions[self.labels == c]
            inside.append(int(np.count_nonzero(np.abs(values) < 1.0 - ON_THE_MARGIN)))
            style: dict[str, Any] = {
                "color": cluster_colour(ax, c),
                "hatch": HATCHES[c],
                "edgecolor": shades.ground,
                "linewidth": 0.4,
            }
            style |= {"bins": edges, "alpha": 0.85, "label": _legend_text(c, values, inside[-1])}
            self.histograms_.append(ax.hist(_outward(values), **bar_style(options, **style))[2])
        self.inside_ = np.array(inside)
        styles = ((-1.0, (0, (4, 3))), (0.0, "-"), (1.0, (0, (4, 3))))
        self.lines_ = [ax.axvline(at, color=shades.edge, linewidth=1.0, linestyle=style) for at, style in styles]
        ax.set_xlabel("decision value (shaded: inside the margin)")
        ax.set_ylabel("samples")
        numbers(ax.xaxis)
        counts(ax.yaxis)
        dress(ax)
        legend_below(ax, ncols=1)


def _kernels(estimator: Any) -> tuple[list[str], Floats]:
    """Return names and weights of the basis kernels, or say what is missing."""
    needed = ("kernel_names_", "kernel_weights_", "decision_function")
    missing = [name for name in needed if not hasattr(estimator, name)]
    if missing:
        raise ParameterError(
            f"estimator={type(estimator).__name__}(...) has no {missing[0]}. Pass a fitted "
            "RatioMultipleKernelClustering."
        )
    # Where hyperparameters were learned, the kernel as it became.
    names = [str(estimator.kernel_)] if hasattr(estimator, "kernel_") else list(estimator.kernel_names_)
    return names, np.asarray(estimator.kernel_weights_, dtype=np.float64)


def _two_clusters(labels: Any, n: int) -> Ints:
    clusters = np.asarray(labels)
    if clusters.shape != (n,) or not np.isin(clusters, (0, 1)).all():
        raise ParameterError(
            f"labels has shape {clusters.shape} and values {np.unique(clusters)[:5].tolist()}; the picture takes one "
            f"cluster for each of the {n} samples, 0 or 1."
        )
    return clusters.astype(np.intp)


def _short(names: Any) -> list[str]:
    """Return names without the view they all begin with, long ones with their middle left out."""
    texts = [re.sub(r"\s+", " ", str(name)) for name in names]
    views = {text.partition(", ")[0] for text in texts if ", " in text}
    if len(views) == 1 and all(text.startswith(f"{next(iter(views))}, ") for text in texts):
        texts = [text.partition(", ")[2] for text in texts]
    return [shortened(text, LONGEST_NAME) for text in texts]


def _edges(decisions: Floats) -> Floats:
    """Return the edges of the bars; -1, 0 and 1 are among them unless values reach very far."""
    low = min(-1.0, float(decisions.min()))
    high = max(1.0, float(decisions.max()))
    if high - low > MOST_BINS:
        return np.linspace(low, high, BINS + 1)
    finer = max(1, round(BINS / (high - low)))  # bars between two whole numbers
    return np.arange(np.floor(low * finer), np.ceil(high * finer) + 1.0) / finer


def _outward(values: Floats) -> Floats:
    """Return values with those on the margin moved into the bar outside it."""
    on = np.abs(np.abs(values) - 1.0) <= ON_THE_MARGIN
    return np.where(on, np.copysign(1.0 + 1e-9, values), values)


def _legend_text(cluster: int, values: Floats, inside: int) -> str:
    """Return the text of a cluster in the legend."""
    words = f"cluster {cluster}: {len(values):,} samples, {inside:,} inside the margin"
    across = int(np.count_nonzero(values > 0 if cluster == 0 else values <= 0))
    return f"{words}, {across:,} across the border" if across else words
