"""Convex mixtures as pictures: samples with their priors and exemplars, and the weights of views."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.utils import check_array

from kernelweave.evaluation.describe import final_step, samples_for_final_step
from kernelweave.evaluation.plots.style import COLOURS, EDGE, QUIET, cluster_style, frame, new_axes, scatter_style
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import Views, as_views

# Area of the marker of the largest prior, in square points; other priors get their share of it.
LARGEST = 420.0
# So many exemplars, those of the largest priors, have their number written beside them.
NUMBERED = 40


class ExemplarDisplay:
    """Samples in the plane, with their priors as the size of markers and the exemplars outlined and numbered.

    Samples have the colour and the marker of their cluster. The area of a marker grows with the prior: a sample without
    one is a dot, others have a thin outline, exemplars a thick one. The number beside an exemplar is its cluster, as in
    ``labels_``; no more than 40 are written.

    Make one with :meth:`from_estimator`; draw it again elsewhere with :meth:`plot`. Drawing needs matplotlib, which
    ``kernelweave[plots]`` installs.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
        Where the samples lie in the picture.
    labels : ndarray of shape (n_samples,)
        Their clusters.
    priors : ndarray of shape (n_samples,)
        Their priors.
    exemplar_indices : ndarray of shape (n_clusters,)
        Samples that are exemplars.
    axis_names : sequence of two str, default=("", "")
        Labels of the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the samples.
    figure_ : matplotlib Figure
        Figure with the axes.
    exemplars_ : list of matplotlib PathCollection
        The outlined markers, one for each exemplar.
    texts_ : list of matplotlib Annotation
        The numbers beside them.

    See Also
    --------
    kernelweave.ConvexMixture : The model of one view.
    kernelweave.MultiViewConvexMixture : The model of several views.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from kernelweave import ConvexMixture
    >>> from kernelweave.plots import ExemplarDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 0.5, (40, 2)) for centre in ([0, 0], [5, 0], [0, 5])])
    >>> model = ConvexMixture(3).fit(X)
    >>> display = ExemplarDisplay.from_estimator(model, X, ax=Figure().subplots())
    >>> [text.get_text() for text in display.texts_]
    ['0', '1', '2']
    """

    def __init__(
        self, points: Any, *, labels: Any, priors: Any, exemplar_indices: Any, axis_names: Any = ("", "")
    ) -> None:
        self.points = points
        self.labels = labels
        self.priors = priors
        self.exemplar_indices = exemplar_indices
        self.axis_names = axis_names

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, *, embedding: Any = None, ax: Any = None, **scatter_kwargs: Any
    ) -> "ExemplarDisplay":
        """Draw the training samples of a fitted convex mixture.

        Parameters
        ----------
        model : fitted ConvexMixture or MultiViewConvexMixture
            The model, or a pipeline or a search that ends in one.
        X : array-like, sparse matrix or views, as in ``fit``
            The training samples; of a pipeline, what goes into its first step, and what its last step sees is drawn.
            Two features are drawn as they are. More are projected on their first two principal axes; several views are
            put side by side for that, each brought to variance 1, and sparse ones are not centred. May be None where
            ``embedding`` is given.
        embedding : array-like of shape (n_samples, 2), default=None
            Where the samples lie instead, for instance from t-SNE. Needed where X holds divergences or kernel values.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **scatter_kwargs : dict
            Passed to ``Axes.scatter`` for the samples.

        Returns
        -------
        display : ExemplarDisplay
            The display, drawn.
        """
        final = final_step(model)
        if not (hasattr(final, "priors_") or hasattr(final, "divergence")):
            raise ParameterError(
                f"model={type(final).__name__}(...) has no priors_: this picture draws convex mixtures. Pass a fitted "
                "ConvexMixture or MultiViewConvexMixture."
            )
        labels, priors, exemplars = _fitted(final, "labels_", "priors_", "exemplar_indices_")
        if embedding is None:
            points, names = _projected(final, samples_for_final_step(model, X))
            where = "X"
        else:
            points = check_array(embedding, dtype=np.float64, input_name="embedding")
            names = ("", "")
            where = "embedding"
            if points.shape[1] != 2:
                raise ParameterError(f"embedding has {points.shape[1]} columns; a picture needs two.")
        if len(points) != len(labels):
            raise ParameterError(
                f"{where} has {len(points)} samples, but the model was fitted on {len(labels)}: pass the samples of "
                "fit, in their order."
            )
        display = cls(points, labels=labels, priors=priors, exemplar_indices=exemplars, axis_names=names)
        return display.plot(ax, **scatter_kwargs)

    def plot(self, ax: Any = None, **scatter_kwargs: Any) -> "ExemplarDisplay":
        """Draw the samples.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **scatter_kwargs : dict
            Passed to ``Axes.scatter`` for the samples.

        Returns
        -------
        display : ExemplarDisplay
            This display, with ``ax_``, ``figure_``, ``exemplars_`` and ``texts_`` set.
        """
        self.ax_ = new_axes(self, figsize=(6.0, 4.6)) if ax is None else ax
        self.figure_ = self.ax_.figure
        areas = self._areas()
        plain = scatter_style(scatter_kwargs, alpha=0.7, linewidth=0)
        likely = scatter_style(scatter_kwargs, edgecolor=EDGE, linewidth=0.6, zorder=2)
        others = np.ones(len(self.labels), dtype=bool)
        others[self.exemplar_indices] = False
        for c in np.unique(self.labels):
            for style, some in ((plain, self.priors == 0), (likely, self.priors > 0)):
                mine = others & some & (self.labels == c)
                self.ax_.scatter(*self.points[mine].T, **{**cluster_style(c), "s": areas[mine], **style})
        self._draw_exemplars(areas)
        self.ax_.set_xlabel(self.axis_names[0])
        self.ax_.set_ylabel(self.axis_names[1])
        frame(self.ax_, self.points)
        return self

    def _areas(self) -> Floats:
        """Return the areas of the markers: a dot, and more with the prior."""
        dot = float(np.clip(4000.0 / len(self.priors), 4.0, 12.0))
        largest = float(self.priors.max())
        return dot + (LARGEST - dot) * (self.priors / largest if largest > 0 else self.priors)

    def _draw_exemplars(self, areas: Floats) -> None:
        from matplotlib.patheffects import withStroke

        self.exemplars_ = []
        self.texts_ = []
        # The largest first, so that they do not hide smaller ones.
        for c, j in enumerate(self.exemplar_indices):
            look = cluster_style(self.labels[j])
            area = max(float(areas[j]), 30.0)
            drawn = self.ax_.scatter(*self.points[j], s=area, **look, edgecolors=EDGE, linewidths=1.8, zorder=3)
            self.exemplars_.append(drawn)
            if c < NUMBERED:
                away = 0.45 * np.sqrt(area) + 2.0
                text = self.ax_.annotate(
                    str(c),
                    self.points[j],
                    (away, away),
                    textcoords="offset points",
                    color=EDGE,
                    fontsize=10,
                    fontweight="bold",
                    zorder=4,
                    path_effects=[withStroke(linewidth=2.5, foreground="white")],
                )
                self.texts_.append(text)


class ViewWeightsDisplay:
    """Weights of views as bars, with a line where all views would count alike.

    Make one with :meth:`from_estimator` or :meth:`from_weights`; draw it again elsewhere with :meth:`plot`. Drawing
    needs matplotlib, which ``kernelweave[plots]`` installs.

    Parameters
    ----------
    names : sequence of str
        Names of the views.
    weights : ndarray of shape (n_views,)
        Their weights, or the means over several runs.
    errors : ndarray of shape (n_views,), default=None
        Deviations, drawn as lines about the ends of the bars.

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
        weights, names = _fitted(final_step(model), "view_weights_", "view_names_")
        return cls.from_weights(names, weights, ax=ax, **bar_kwargs)

    @classmethod
    def from_weights(
        cls, names: Any, weights: Any, errors: Any = None, *, ax: Any = None, **bar_kwargs: Any
    ) -> "ViewWeightsDisplay":
        """Draw weights given as numbers, for instance means and deviations over runs.

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
        self.ax_ = new_axes(self, figsize=(5.6, 1.0 + 0.34 * n_views)) if ax is None else ax
        self.figure_ = self.ax_.figure
        places = np.arange(n_views)
        self.bars_ = self.ax_.barh(places, self.weights, xerr=self.errors, **_bar_style(bar_kwargs))
        self.line_ = self.ax_.axvline(float(np.mean(self.weights)), color=EDGE, linewidth=1.0, linestyle=(0, (4, 3)))
        self.texts_ = self._write_figures(places)
        self.ax_.set_yticks(places, self.names)
        self.ax_.set_ylim(n_views - 0.4, -0.6)
        self.ax_.set_xlabel("view weight (dashed: all views alike)")
        self._dress()
        return self

    def _write_figures(self, places: Ints) -> list[Any]:
        from matplotlib.patheffects import withStroke

        errors = np.zeros(len(self.names)) if self.errors is None else self.errors
        figures = [f"{weight:.2f}" for weight in self.weights]
        if self.errors is not None:
            figures = [f"{figure} ± {error:.2f}" for figure, error in zip(figures, errors, strict=True)]
        halo = [withStroke(linewidth=3.0, foreground="white")]
        style = {"textcoords": "offset points", "va": "center", "fontsize": 9, "color": "#333333", "path_effects": halo}
        ends = zip(figures, self.weights + errors, places, strict=True)
        return [self.ax_.annotate(figure, (end, place), (5, 0), **style) for figure, end, place in ends]

    def _dress(self) -> None:
        ends = self.weights if self.errors is None else self.weights + self.errors
        largest = float(ends.max())
        # Figures stand to the right of the bars.
        self.ax_.set_xlim(0.0, largest * (1.18 if self.errors is None else 1.4) if largest > 0 else 1.0)
        self.ax_.tick_params(length=2, color=QUIET, labelsize=9)
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.spines[["top", "right"]].set_visible(False)
        self.ax_.spines[["left", "bottom"]].set_color("#cccccc")


def _fitted(model: Any, *names: str) -> tuple[Any, ...]:
    """Return fitted attributes of a model, or say which is missing."""
    missing = [name for name in names if not hasattr(model, name)]
    if missing:
        raise ParameterError(
            f"model={type(model).__name__}(...) has no {missing[0]}. Fit it first; this picture is for models with "
            f"{', '.join(names)}."
        )
    return tuple(getattr(model, name) for name in names)


def _projected(model: Any, X: Any) -> tuple[Floats, tuple[str, str]]:
    """Return samples in the plane and the names of its axes."""
    if X is None:
        raise ParameterError("X=None leaves nothing to draw: pass the training samples, or embedding=.")
    if _holds_no_features(model):
        raise ParameterError(
            "The model was fitted on divergences or kernel values, which do not say where samples lie. Pass "
            "embedding=, for instance from sklearn.manifold.MDS."
        )
    views = as_views(X, getattr(model, "views", None))
    width = sum(views.widths)
    if width != model.n_features_in_:
        raise ParameterError(
            f"X has {width} features, but the model was fitted on {model.n_features_in_}. Pass the training samples."
        )
    if width == 1:
        raise ParameterError("X has 1 feature; the picture needs two or more. Pass embedding=.")
    if width == 2:
        table: Any = views.joined()
        return (table.toarray() if sp.issparse(table) else table), _feature_names(model)
    return _principal(views)


def _holds_no_features(model: Any) -> bool:
    """Whether a view of the model is a given matrix of divergences or kernel values."""
    divergences = _choices(model.divergence)
    kernels = _choices(model.kernel)
    return "precomputed" in divergences or ("kernel" in divergences and "precomputed" in kernels)


def _choices(choice: Any) -> list[str]:
    """Return the names among the choices for one view or several."""
    found = choice.values() if isinstance(choice, Mapping) else choice if isinstance(choice, list | tuple) else [choice]
    return [name for name in found if isinstance(name, str)]


def _feature_names(model: Any) -> tuple[str, str]:
    known = getattr(model, "feature_names_in_", None)
    return ("feature 0", "feature 1") if known is None else (str(known[0]), str(known[1]))


def _principal(views: Views) -> tuple[Floats, tuple[str, str]]:
    """Return the samples on two principal axes, of the views side by side."""
    table = (
        Views(views.names, tuple(_to_unit_variance(block) for block in views)).joined() if len(views) > 1 else views[0]
    )
    sparse = sp.issparse(table)
    axes = TruncatedSVD(2, random_state=0) if sparse else PCA(2, random_state=0)
    points = np.asarray(axes.fit_transform(table))
    kind = "singular" if sparse else "principal"
    first, second = (
        f"{kind} axis {i} ({share:.0%} of variance)" for i, share in enumerate(axes.explained_variance_ratio_, start=1)
    )
    return points, (first, second)


def _to_unit_variance(block: Any) -> Any:
    """Return a view divided by one number, so that the variances of its features add up to 1."""
    if sp.issparse(block):
        squares = block.multiply(block).mean(axis=0)
        means = block.mean(axis=0)
        variance = float(np.sum(squares) - np.sum(np.square(means)))
    else:
        variance = float(block.var(axis=0).sum())
    return block / np.sqrt(variance) if variance > 0 else block


def _amounts(name: str, values: Any, count: int) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (count,) or not count:
        raise ParameterError(f"{name} has shape {found.shape} for {count} views; give one number per view.")
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise ParameterError(f"{name}={found.tolist()} must be finite and not negative.")
    return found


def _bar_style(given: dict[str, Any]) -> dict[str, Any]:
    """Return how to draw bars: ours where the caller says nothing, under whatever alias."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.patches import Rectangle

    lines = {"ecolor": EDGE, "elinewidth": 1.2, "capsize": 2.5}
    return {"color": COLOURS[0], "height": 0.68, "error_kw": lines, **normalize_kwargs(given, Rectangle)}
