"""Clusters of the points of a plane, by panels: one for two features, or one for each view of two features."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.pipeline import Pipeline

from kernelweave.estimators.shared.scores import chunks
from kernelweave.estimators.shared.single_kernel import is_precomputed
from kernelweave.evaluation.describe import final_step, samples_for_final_step
from kernelweave.evaluation.describe.kernels import models_of_views
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import as_views, is_multi_view, read_views, split_columns
from kernelweave.solvers.spectral.kernel_spectral import decode

#: Region of points the model knows nothing of.
NOWHERE = -1
# The grid goes beyond the samples by this share of their span. It is a square, and distances are as they are, unless
# one span is longer than the other by more than LONGEST.
BEYOND = 0.08
LONGEST = 2.0


class Panel:
    """One panel: samples, what they are called, and a function that places points of the plane."""

    def __init__(
        self, points: Any, labels: Ints, place: Callable[[Floats], Ints], names: tuple[str, str], title: str = ""
    ) -> None:
        self.points: Floats = np.asarray(points.toarray() if sp.issparse(points) else points, dtype=np.float64)
        self.labels = labels
        self.place = place
        self.names = names
        self.title = title


def panels_of(estimator: Any, X: Any, least: float) -> list[Panel]:
    """Return the panels of a fitted estimator: one for two features, or one for each view of two features.

    Points whose kernel rows add up to less than the share ``least`` of the median degree belong to no cluster.
    """
    model = final_step(estimator)
    if is_precomputed(getattr(model, "kernel", None)):
        raise ParameterError(
            "The model was fitted on a kernel matrix, which points between the samples are not in. Fit it on "
            "features and a kernel name."
        )
    if not is_multi_view(X):
        views = as_views(X)
        if views.widths[0] == 2:
            return [_single(estimator, model, X, views.blocks[0], least)]
        if getattr(model, "views", None) is None:
            raise ParameterError(
                f"X has {views.widths[0]} features; the picture shows two. Fit a model on two of them, or on the first "
                "two principal axes."
            )
    return _several(estimator, X, least)


def _single(estimator: Any, model: Any, X: Any, points: Any, least: float) -> Panel:
    """Return the only panel of a model of two features."""

    def as_table(grid: Floats) -> Any:
        return type(X)(grid, columns=X.columns) if hasattr(X, "iloc") else grid

    def place(grid: Floats) -> Ints:
        clusters = _clusters(estimator, as_table(grid))
        if least > 0 and hasattr(model, "kernel_row_sums"):
            sums = np.atleast_2d(model.kernel_row_sums(samples_for_final_step(estimator, as_table(grid))))
            views = zip(sums, np.atleast_2d(model.degrees_), strict=True)
            faint = [_vanishes(each, degrees, least) for each, degrees in views]
            clusters[np.all(faint, axis=0)] = NOWHERE
        return clusters

    return Panel(points, _clusters(estimator, X), place, _two_names(X))


def _several(estimator: Any, X: Any, least: float) -> list[Panel]:
    """Return the panels of a multi-view kernel spectral model, one for each view."""
    name = type(estimator).__name__
    if isinstance(estimator, Pipeline):
        raise ParameterError(
            "The estimator is a pipeline that ends in a method for several views. Pass its last step, with the samples "
            "as the steps before leave them: from_estimator(pipe[-1], pipe[:-1].transform(X))."
        )
    if not hasattr(estimator, "transform_views"):
        raise ParameterError(
            f"estimator={name}(...) assigns a sample by all of its views together, but a point of the plane belongs to "
            "one. Of the methods for several views, this plot supports only MultiViewKernelSpectralClustering."
        )
    if not hasattr(estimator, "codebook_"):
        raise ParameterError(f"estimator={name}(...) is not fitted yet. Fit it first.")
    views = read_views(estimator, X, reset=False)
    wide = [(name, width) for name, width in zip(views.names, views.widths, strict=True) if width != 2]
    if wide:
        raise ParameterError(
            f"View {wide[0][0]!r} has {wide[0][1]} feature(s); the picture shows two of every view. Fit the model on "
            "views of two features, such as principal axes."
        )
    separate = hasattr(estimator, "view_codebooks_")
    books = estimator.view_codebooks_ if separate else [estimator.codebook_] * len(views)
    labels = estimator.predict_views(X) if separate else [estimator.predict(X)] * len(views)

    def placing(trained: Any, book: Floats, degrees: Floats) -> Callable[[Floats], Ints]:
        def place(grid: Floats) -> Ints:
            clusters = []
            for block in chunks(grid):
                codes = decode(trained.scores(block), book)
                if least > 0:
                    codes[_vanishes(trained.row_sums(block), degrees, least)] = NOWHERE
                clusters.append(codes)
            return np.concatenate(clusters)

        return place

    rows = zip(views.names, views.blocks, labels, books, models_of_views(estimator), estimator.degrees_, strict=True)
    return [
        Panel(block, clusters, placing(trained, book, degrees), _view_columns(estimator, X, name), name)
        for name, block, clusters, book, trained, degrees in rows
    ]


def _clusters(estimator: Any, X: Any) -> Ints:
    """Return the clusters of samples by ``predict``, a few thousand samples at a time."""
    clusters = np.concatenate([np.asarray(estimator.predict(block)) for block in chunks(X)])
    if clusters.ndim != 1 or clusters.dtype.kind not in "iu" or clusters.min() < 0:
        raise ParameterError(
            f"estimator={type(estimator).__name__}(...) predicts {clusters[:3].tolist()}...; the picture takes cluster "
            "numbers from 0 on."
        )
    return clusters.astype(np.intp)


def _vanishes(sums: Floats, degrees: Floats, least: float) -> Any:
    """Return which kernel rows are negligible compared with those of the training samples."""
    positive = degrees[degrees > 0]
    return np.abs(sums) < least * (float(np.median(positive)) if len(positive) else 0.0)


def grid_around(points: Floats, n_grid: int) -> tuple[Floats, Floats]:
    """Return left, right, bottom and top of a grid around the samples, and its points row by row."""
    low = points.min(axis=0)
    high = points.max(axis=0)
    spans = np.where(high > low, high - low, max(float((high - low).max()), 1.0))
    middle = 0.5 * (low + high)
    wide = (1.0 + 2.0 * BEYOND) * spans
    if wide.max() <= LONGEST * wide.min():
        wide = np.full(2, wide.max())
    low = middle - 0.5 * wide
    high = middle + 0.5 * wide
    xs, ys = (np.linspace(low[i], high[i], n_grid) for i in (0, 1))
    across, up = np.meshgrid(xs, ys)
    return np.array([low[0], high[0], low[1], high[1]]), np.column_stack([across.ravel(), up.ravel()])


def leading_panel(estimator: Any, count: int) -> int:
    """Return the panel whose clusters keep their colours."""
    best = getattr(estimator, "best_view_", None)
    return estimator.view_names_.index(best) if best is not None and count > 1 else 0


def same_numbers(
    labels: list[Ints], regions: list[Ints], classes: Any, lead: int
) -> tuple[list[Ints], list[str], list[Ints]]:
    """Return samples and regions with the same numbers in all panels, and the names of the numbers."""
    count = max(int(each.max()) for each in (*labels, *regions)) + 1
    if classes is None:
        names = [f"cluster {c}" for c in range(count)]
        reference = labels[lead]
    else:
        known = np.asarray(classes)
        if known.shape != labels[0].shape:
            raise ParameterError(
                f"labels has shape {known.shape}; give one class for each of the {len(labels[0])} samples."
            )
        distinct, reference = np.unique(known, return_inverse=True)
        names = [name if isinstance(name, str) else f"class {name}" for name in distinct]
        count = max(count, len(distinct))
    renumber = [_best_numbers(reference, each, count) for each in labels]
    pairs = zip(renumber, labels, strict=True)
    shown = [numbers[each] if classes is None else reference for numbers, each in pairs]
    pairs = zip(renumber, regions, strict=True)
    return shown, names, [np.where(region < 0, region, numbers[region]) for numbers, region in pairs]


def _best_numbers(reference: Ints, labels: Ints, count: int) -> Ints:
    """Return for every cluster the number of the class it shares most samples with, each class taken once."""
    shared = np.zeros((count, count))
    np.add.at(shared, (labels, reference), 1.0)
    rows, columns = linear_sum_assignment(-shared - 1e-9 * np.eye(count))  # of equals the same number
    numbers = np.empty(count, dtype=np.intp)
    numbers[rows] = columns
    return numbers


def _view_columns(estimator: Any, X: Any, name: str) -> tuple[str, str]:
    """Return the names of the two columns of a view."""
    if is_multi_view(X):
        tables = X.items() if isinstance(X, Mapping) else ((f"view_{i}", table) for i, table in enumerate(X))
        return _two_names({str(key): table for key, table in tables}[name])
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        return _two_names(None)
    numbers = split_columns(np.arange(len(known))[None], estimator.views, known)[name]
    first, second = known[numbers.ravel()]
    return str(first), str(second)


def _two_names(table: Any) -> tuple[str, str]:
    """Return the names of two columns."""
    columns: Any = getattr(table, "columns", ())
    return (str(columns[0]), str(columns[1])) if len(columns) == 2 else ("feature 0", "feature 1")
