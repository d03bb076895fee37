"""The kernel matrix as a picture, ordered by cluster."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np

from kernelweave.evaluation.describe import final_step, samples_for_final_step
from kernelweave.evaluation.describe.kernels import has_fitted_kernel, kernel_among, training_samples
from kernelweave.evaluation.plots.style import EDGE, QUIET, new_axes
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import is_multi_view

# From light to dark without a turn: it reads the same in grey.
COLOUR_MAP = "Blues"
# The colours span all but this share, in percent, of the values between clusters (below) and within them (above).
OUTSIDE = 5.0
# Clusters that take up less than this share of the picture get no number.
NUMBERED = 0.02


class KernelMatrixDisplay:
    """A kernel matrix with its samples ordered by cluster: dark squares along the diagonal are clusters.

    Of several views the sum is drawn that the clusters were formed in: the kernels, normalised as in ``fit``, times
    ``kernel_coefficients_``. A square with lighter areas may be more than one cluster; two squares with a dark
    rectangle between them may be one. The colours leave out the few largest and smallest values, so that these do not
    flatten the rest; pointed ends of the colour bar say so.

    Make one with :meth:`from_estimator`; draw it again elsewhere with :meth:`plot`. Drawing needs matplotlib, which
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

    def __init__(self, K: Any, *, labels: Any, indices: Any = None, name: str = "kernel") -> None:
        self.K = K
        self.labels = labels
        self.indices = indices
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, max_samples: int = 1000, ax: Any = None, **imshow_kwargs: Any
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
            Where there are more samples, so many are drawn: the same share of every cluster, evenly spaced in the order
            of X, and at least one of each. No more of the kernel is computed.
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
            raise ParameterError(f"max_samples={max_samples!r} must be a whole number from 1 on.")
        labels = np.asarray(model.labels_)
        samples = samples_for_final_step(estimator, X)
        _check_length(samples, len(labels))
        trained = training_samples(model)
        positions = _by_cluster(labels[trained], int(max_samples))
        shown = trained[positions]
        K = kernel_among(model, samples, positions)
        several = hasattr(model, "kernel_coefficients_") and len(model.view_names_) > 1
        name = "weighted sum of kernels" if several else "kernel"
        return cls(K, labels=labels[shown], indices=shown, name=name).plot(ax, **imshow_kwargs)

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
            This display, with ``ax_``, ``figure_``, ``image_``, ``borders_`` and ``colorbar_`` set.
        """
        self.ax_ = new_axes(self, figsize=(5.4, 4.6)) if ax is None else ax
        self.figure_ = self.ax_.figure
        style: dict[str, Any] = {"cmap": COLOUR_MAP, **imshow_kwargs}
        if "norm" not in style:
            low, high = _limits(self.K, self.labels)
            style = {"vmin": low, "vmax": high, **style}
        self.image_ = self.ax_.imshow(self.K, **style)
        self._draw_borders()
        beside = self.ax_.inset_axes((1.04, 0.0, 0.05, 1.0))  # as high as the matrix, whatever the layout
        self.colorbar_ = self.figure_.colorbar(self.image_, cax=beside, extend=self._ends(), label=self.name)
        self.colorbar_.outline.set_visible(False)
        self.colorbar_.ax.tick_params(length=2, color=QUIET, labelsize=8)
        return self

    def _draw_borders(self) -> None:
        n = len(self.labels)
        ends = np.flatnonzero(np.diff(self.labels)) + 1
        draws = (self.ax_.axhline, self.ax_.axvline)
        self.borders_ = [draw(end - 0.5, color=EDGE, linewidth=0.8) for draw in draws for end in ends]
        starts = np.append(0, ends)
        stops = np.append(ends, n)
        wide = stops - starts >= NUMBERED * n
        middles = ((starts + stops - 1) / 2)[wide]
        names = self.labels[starts][wide]
        self.ax_.set_xticks(middles, names)
        self.ax_.set_yticks(middles, names)
        self.ax_.tick_params(length=0, labelsize=8)
        self.ax_.set_xlabel("cluster")
        self.ax_.set_ylabel("cluster")
        self.ax_.spines[:].set_color(QUIET)

    def _ends(self) -> str:
        """Return at which ends of the colour bar values are left out."""
        low, high = self.image_.get_clim()
        names = {(True, True): "both", (True, False): "min", (False, True): "max"}
        return names.get((float(np.min(self.K)) < low, float(np.max(self.K)) > high), "neither")


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
