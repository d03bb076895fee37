"""Convex mixtures as a plot: samples with their priors, and the exemplars."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.utils import check_array

from kernelweave.evaluation.describe import final_step, samples_for_final_step
from kernelweave.evaluation.plots.style import (
    LABEL_SIZE,
    cluster_style,
    fitted_attributes,
    frame,
    new_axes,
    scatter_style,
    shades_of,
)
from kernelweave.evaluation.plots.words import shortened, write_apart
from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import Views, views_as_seen

# Area of the marker of the largest prior, in square points; other priors get their share of it.
LARGEST = 420.0
# So many exemplars, those of the largest priors, have their number written beside them.
NUMBERED = 40


class ExemplarDisplay:
    """Samples in the plane, with their priors as the size of markers and the exemplars outlined and numbered.

    Samples have the colour and the marker of their cluster. The area of a marker grows with the prior: a sample without
    one is a dot, others have a thin outline, exemplars a thick one. The number beside an exemplar is its cluster, as in
    ``labels_``; no more than 40 are written, and none that would cover another.

    Create one with :meth:`from_estimator`; redraw it elsewhere with :meth:`plot`. Drawing needs matplotlib, which
    ``kernelweave[plots]`` installs.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
        Positions of the samples in the plot.
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
        The numbers next to them.

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
            The training samples; of a pipeline, what goes into its first step; what its last step receives is drawn.
            Two features are drawn as they are. More are projected on their first two principal axes; several views are
            put side by side for that, each brought to variance 1, and sparse ones are not centred. May be None where
            ``embedding`` is passed.
        embedding : array-like of shape (n_samples, 2), default=None
            Positions of the samples, for instance from t-SNE. Needed where X holds divergences or kernel values,
            and where samples are absent from views.
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
        labels, priors, exemplars = fitted_attributes(final, "labels_", "priors_", "exemplar_indices_")
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
        self.ax_ = new_axes(self, figsize=(5.8, 4.6)) if ax is None else ax
        self.figure_ = self.ax_.figure
        areas = self._areas()
        plain = scatter_style(scatter_kwargs, alpha=0.7, linewidth=0)
        likely = scatter_style(scatter_kwargs, edgecolor=shades_of(self.ax_).edge, linewidth=0.6, zorder=2)
        others = np.ones(len(self.labels), dtype=bool)
        others[self.exemplar_indices] = False
        for c in np.unique(self.labels):
            for style, some in ((plain, self.priors == 0), (likely, self.priors > 0)):
                members = others & some & (self.labels == c)
                self.ax_.scatter(
                    *self.points[members].T, **{**cluster_style(self.ax_, c), "s": areas[members], **style}
                )
        outlined = self._draw_exemplars(areas)
        self.ax_.set_xlabel(shortened(self.axis_names[0], 48))
        self.ax_.set_ylabel(shortened(self.axis_names[1], 48))
        self.ax_.set_title("numbers: exemplars; area of a marker: its prior")
        frame(self.ax_, self.points)
        numbers = [str(c) for c in range(len(self.exemplar_indices))][:NUMBERED]
        places = self.points[self.exemplar_indices][:NUMBERED]
        apart = 0.5 * np.sqrt(outlined)[:NUMBERED]
        self.texts_ = write_apart(self.ax_, numbers, places, apart, fontsize=LABEL_SIZE)
        return self

    def _areas(self) -> Floats:
        """Return the areas of the markers: a dot, and more with the prior."""
        dot = float(np.clip(4000.0 / len(self.priors), 4.0, 12.0))
        largest = float(self.priors.max())
        return dot + (LARGEST - dot) * (self.priors / largest if largest > 0 else self.priors)

    def _draw_exemplars(self, areas: Floats) -> Floats:
        """Draw the outlined markers, and return their areas."""
        self.exemplars_ = []
        outlined = np.maximum(areas[self.exemplar_indices], 30.0)
        # The largest first, so that they do not hide smaller ones.
        for c, j in enumerate(self.exemplar_indices):
            style = {**cluster_style(self.ax_, self.labels[j]), "edgecolors": shades_of(self.ax_).edge}
            drawn = self.ax_.scatter(*self.points[j], s=outlined[c], linewidths=1.8, zorder=3, **style)
            self.exemplars_.append(drawn)
        return outlined


def _projected(model: Any, X: Any) -> tuple[Floats, tuple[str, str]]:
    """Return samples in the plane and the names of its axes."""
    if X is None:
        raise ParameterError("X=None leaves nothing to draw: pass the training samples, or embedding=.")
    if _holds_no_features(model):
        raise ParameterError(
            "The model was fitted on divergences or kernel values, which do not say where samples lie. Pass "
            "embedding=, for instance from sklearn.manifold.MDS."
        )
    views = views_as_seen(model, X, getattr(model, "views", None))
    if views.observed is not None:
        raise ParameterError(
            f"{np.count_nonzero(~views.observed.all(axis=1))} samples of X are absent from a view, so that features do "
            "not say where they lie. Pass embedding=, for instance EmbeddingDisplay.from_estimator(model, X).points."
        )
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
    """Whether a view of the model is a matrix of divergences or kernel values."""
    divergences = _choices(model.divergence)
    kernels = _choices(model.kernel)
    return "precomputed" in divergences or ("kernel" in divergences and "precomputed" in kernels)


def _choices(choice: Any) -> list[str]:
    """Return the names among the choices for one view or several."""
    choices = choice.values() if isinstance(choice, Mapping) else choice
    several = isinstance(choice, Mapping | list | tuple)
    return [name for name in (choices if several else [choice]) if isinstance(name, str)]


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
