"""The kernel matrix as a plot, ordered by cluster."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np

from kernelweave.evaluation.describe import final_step, samples_for_final_step
from kernelweave.evaluation.describe.kernels import has_fitted_kernel, kernel_among, training_samples
from kernelweave.evaluation.plots.style import (
    COLOUR_MAP,
    MATRIX_SIZE,
    ON_LIGHT,
    as_percentages,
    colour_bar,
    dress,
    new_axes,
)
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import is_multi_view

# The colours span all but this share, in percent, of the values between clusters (below) and within them (above).
OUTSIDE = 5.0
# Clusters that take up less than this share of the picture get no number.
NUMBERED = 0.02
# Lines between clusters keep this distance, as a share of the picture; many tiny clusters would be a black area.
LEAST_ROOM = 0.004
# A matrix with at most this share of links among its pairs is drawn by densities: single links are too fine to see.
SPARSE = 0.2
# Bins along each side of such a picture, about; clusters begin and end with a bin.
BINS = 60


class KernelMatrixDisplay:
    """A kernel matrix with its samples ordered by cluster: dark squares along the diagonal are clusters.

    For several views, it shows the sum that the clusters were formed in: the kernels, normalised as in ``fit``, times
    ``kernel_coefficients_``. A square with lighter areas may be more than one cluster; two squares with a dark
    rectangle between them may be one. The colours leave out the few largest and smallest values, so that these do not
    flatten the rest; pointed ends of the colour bar show it.

    In a sparse graph most pairs of samples have no link, and single links are finer than the eye can see. There the
    picture is divided into bins, and a bin has the share of its pairs that are linked.

    Create one with :meth:`from_estimator`; redraw it elsewhere with :meth:`plot`. Drawing needs matplotlib, which
    ``kernelweave[plots]`` installs.

    Parameters
    ----------
    K : ndarray of shape (n_drawn, n_drawn)
        Kernel values of the samples drawn, in the order of the picture.
    labels : ndarray of shape (n_drawn,)
        Their clusters, one cluster after the other.
    indices : ndarray of shape (n_drawn,), default=None
        Which of all samples they are.
    name : str, default="kernel"
        What the values are, written beside the colour bar.
    binned : bool, default=None
        Whether to draw the density of links (values other than 0) by bins instead of the values. By default where at
        most a fifth of the pairs are linked and there are more than 60 samples.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the matrix.
    figure_ : matplotlib Figure
        Figure with the axes.
    image_ : matplotlib AxesImage
        The matrix.
    borders_ : list of matplotlib Line2D
        Lines between clusters, first across, then down.
    colorbar_ : matplotlib Colorbar
        The colour bar.
    links_ : ndarray of shape (n_bins, n_bins) or None
        Links in every bin, without those of a sample with itself; they add up to the number of links in ``K``, each
        counted from both ends. None where the values themselves are drawn.

    See Also
    --------
    ViewWeightsDisplay : The weights behind a sum of kernels.
    ExponentDisplay : What the exponent does to them.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kernelweave import MultiViewKernelKMeans
    >>> from kernelweave.datasets import make_corrupted_views
    >>> from kernelweave.plots import KernelMatrixDisplay
    >>> data = make_corrupted_views(2, 1, n_samples=150, n_corrupted=10, random_state=0)
    >>> model = MultiViewKernelKMeans(3, random_state=0).fit(data.views)
    >>> display = KernelMatrixDisplay.from_estimator(model, data.views, max_samples=60, ax=Figure().subplots())
    >>> display.K.shape
    (60, 60)
    """

    def __init__(
        self, K: Any, *, labels: Any, indices: Any = None, name: str = "kernel", binned: bool | None = None
    ) -> None:
        self.K = K
        self.labels = labels
        self.indices = indices
        self.name = name
        self.binned = binned

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        max_samples: int = 1000,
        binned: bool | None = None,
        ax: Any = None,
        **imshow_kwargs: Any,
    ) -> "KernelMatrixDisplay":
        """Draw the kernel of a fitted estimator between its training samples.

        Parameters
        ----------
        estimator : fitted estimator
            A multi-view method with ``kernel_coefficients_``, or a kernel method such as
            :class:`~kernelweave.KernelKMeans`; or a pipeline or a search that ends in one.
        X : array-like, sparse matrix or views, as in ``fit``
            The training samples; of a pipeline, what goes into its first step.
        max_samples : int, default=1000
            Largest number of samples; if there are more, the same share of every cluster is drawn, evenly spaced in the
            order of X, and at least one of each. Only this part of the kernel is computed.
        binned : bool, default=None
            Whether to draw the density of links by bins; by default that is done for sparse graphs.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **imshow_kwargs : dict
            Passed to ``Axes.imshow``.

        Returns
        -------
        display : KernelMatrixDisplay
            The display, drawn.
        """
        model = final_step(estimator)
        if not has_fitted_kernel(model):
            raise ParameterError(
                f"estimator={type(model).__name__}(...) has no labels_ or no kernel. Fit it first; this picture is "
                "for kernel k-means, its variants, and the multi-view methods on kernels."
            )
        if not isinstance(max_samples, Integral) or max_samples < 1:
            raise ParameterError(f"max_samples={max_samples!r} must be a whole number of at least 1.")
        labels = np.asarray(model.labels_)
        samples = samples_for_final_step(estimator, X)
        _check_length(samples, len(labels))
        trained = training_samples(model)
        positions = _by_cluster(labels[trained], int(max_samples))
        shown = trained[positions]
        K = kernel_among(model, samples, positions)
        several = hasattr(model, "kernel_coefficients_") and len(model.view_names_) > 1
        name = "weighted sum of kernels" if several else "kernel"
        return cls(K, labels=labels[shown], indices=shown, name=name, binned=binned).plot(ax, **imshow_kwargs)

    def plot(self, ax: Any = None, **imshow_kwargs: Any) -> "KernelMatrixDisplay":
        """Draw the matrix.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **imshow_kwargs : dict
            Passed to ``Axes.imshow``.

        Returns
        -------
        display : KernelMatrixDisplay
            This display, with ``ax_``, ``figure_``, ``image_``, ``borders_``, ``colorbar_`` and ``links_``
            set.
        """
        self.ax_ = new_axes(self, figsize=MATRIX_SIZE) if ax is None else ax
        self.figure_ = self.ax_.figure
        style: dict[str, Any] = {"cmap": COLOUR_MAP, **imshow_kwargs}
        K = np.asarray(self.K)
        bins = self._bins(K)
        values = K
        self.links_ = None
        if bins is not None:
            self.links_, values = _densities(K, bins)
        if "norm" not in style:
            low, high = _limits(values, self.labels) if bins is None else (0.0, _upper_density(values, self.labels))
            style = {"vmin": low, "vmax": high, **style}
        self.image_ = self.ax_.imshow(values, **style)
        self._draw_borders()
        name = self.name if bins is None else f"share of pairs that are linked ({self.name})"
        self.colorbar_ = colour_bar(self.ax_, self.image_, name, extend=self._ends(values))
        if bins is not None:
            as_percentages(self.colorbar_.ax.yaxis)
        return self

    def _bins(self, K: Floats) -> Ints | None:
        """Return where bins begin, the first of every cluster with it; None where single values are drawn."""
        n = len(K)
        linked = np.count_nonzero(K) - np.count_nonzero(np.diagonal(K))
        sparse = n > BINS and 0 < linked <= SPARSE * n * (n - 1)
        if not (sparse if self.binned is None else self.binned):
            return None
        starts = np.append(0, np.flatnonzero(np.diff(self.labels)) + 1)
        stops = np.append(starts[1:], n)
        counts = np.maximum(1, np.round(BINS * (stops - starts) / n)).astype(np.intp)
        cuts = [np.linspace(a, b, count, endpoint=False) for a, b, count in zip(starts, stops, counts, strict=True)]
        return np.unique(np.concatenate(cuts).astype(np.intp))

    def _draw_borders(self) -> None:
        n = len(self.labels)
        ends = np.flatnonzero(np.diff(self.labels)) + 1
        draws = (self.ax_.axhline, self.ax_.axvline)
        style = {"color": ON_LIGHT, "linewidth": 0.8 if len(ends) < 10 else 0.4}
        self.borders_ = [draw(end - 0.5, **style) for draw in draws for end in _spaced(ends, LEAST_ROOM * n)]
        starts = np.append(0, ends)
        stops = np.append(ends, n)
        wide = stops - starts >= NUMBERED * n
        middles = ((starts + stops - 1) / 2)[wide]
        names = self.labels[starts][wide]
        self.ax_.set_xticks(middles, names)
        self.ax_.set_yticks(middles, names)
        self.ax_.set_xlabel("cluster")
        self.ax_.set_ylabel("cluster")
        dress(self.ax_, box=True)
        self.ax_.tick_params(length=0)

    def _ends(self, values: Floats) -> str:
        """Return at which ends of the colour bar values are left out."""
        low, high = self.image_.get_clim()
        names = {(True, True): "both", (True, False): "min", (False, True): "max"}
        return names.get((float(np.min(values)) < low, float(np.max(values)) > high), "neither")


def _spaced(ends: Ints, room: float) -> list[int]:
    """Return the ends of clusters that lie this far from the one before."""
    kept: list[int] = []
    for end in ends:
        if not kept or end - kept[-1] >= room:
            kept.append(int(end))
    return kept


def _densities(K: Floats, bins: Ints) -> tuple[Floats, Floats]:
    """Return the links in every bin, and for every pair of samples the share of linked pairs in its bin."""
    linked = K != 0
    np.fill_diagonal(linked, False)
    links = np.add.reduceat(np.add.reduceat(linked, bins, axis=0, dtype=np.intp), bins, axis=1)
    sizes = np.diff(np.append(bins, len(K)))
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    shares = links / np.maximum(pairs, 1)
    return links, np.repeat(np.repeat(shares, sizes, axis=0), sizes, axis=1)


def _upper_density(shares: Floats, labels: Ints) -> float:
    """Return the density at the dark end: most of those within clusters lie below."""
    within = shares[(labels[:, None] == labels) & (shares > 0)]
    found = within if len(within) else shares[shares > 0]
    return float(np.percentile(found, 100.0 - OUTSIDE)) if len(found) else 1.0


def _check_length(X: Any, n: int) -> None:
    tables = (list(X.values()) if isinstance(X, Mapping) else list(X)) if is_multi_view(X) else [X]
    for table in tables:
        length = table.shape[0] if hasattr(table, "shape") else len(table)
        if length != n:
            raise ParameterError(
                f"X has {length} samples, but the estimator was fitted on {n}: pass the samples of fit, in their order."
            )


def _by_cluster(labels: Ints, max_samples: int) -> Ints:
    """Return samples ordered by cluster: all, or the same share of every cluster, evenly spaced."""
    clusters, sizes = np.unique(labels, return_counts=True)
    shares = sizes * min(1.0, max_samples / len(labels))
    counts = np.maximum(1, np.floor(shares + 1e-9).astype(np.intp))
    missing = max(0, min(max_samples, len(labels)) - int(counts.sum()))
    counts[np.argsort(counts - shares, kind="stable")[:missing]] += 1
    shown = []
    for c, size, count in zip(clusters, sizes, counts, strict=True):
        evenly = ((np.arange(count) + 0.5) * size / count).astype(np.intp)
        shown.append(np.flatnonzero(labels == c)[evenly])
    return np.concatenate(shown)


def _limits(K: Floats, labels: Ints) -> tuple[float, float]:
    """Return the values at both ends of the colours: most of those between and within clusters lie inside.

    The diagonal is left out; a sample is always like itself. In a graph most values are zero, and the upper end
    is a middling edge where that leaves nothing else.
    """
    inside = labels[:, None] == labels
    np.fill_diagonal(inside, False)
    outside = labels[:, None] != labels
    within = K[inside] if inside.any() else K.ravel()
    between = K[outside] if outside.any() else within
    low = float(np.percentile(between, OUTSIDE))
    high = float(np.percentile(within, 100.0 - OUTSIDE))
    if high <= low:
        above = K[low < K]
        high = float(np.median(above)) if len(above) else low + 1.0
    return low, high
