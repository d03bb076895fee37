"""What distinguishes the clusters of a fitted model."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.evaluation.describe.clustering import read_clustering
from kernelweave.evaluation.describe.names import sample_names, table_index
from kernelweave.evaluation.describe.samples import SampleDescriptions, samples_of
from kernelweave.evaluation.describe.typical import TYPICAL, typical_samples
from kernelweave.evaluation.explain.annotations import AnnotationTable, explain_annotations
from kernelweave.evaluation.explain.columns import NamedView, named_tables
from kernelweave.evaluation.explain.explanation import (
    SIGNIFICANT,
    ClusterExplanation,
    ColumnEffect,
    Kind,
    ViewExplanation,
)
from kernelweave.evaluation.explain.graphs import explain_graph
from kernelweave.evaluation.explain.rank_tests import ColumnStatistics, adjusted_for_many, column_statistics
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import RandomState
from kernelweave.kernels.representations import view_kind

#: Columns kept for every cluster and view.
COLUMNS_KEPT = 20
# Share of entries of a sparse table below which they are counts of words and the like.
MOSTLY_ZERO = 0.5


def explain_clusters(
    model: Any,
    X: Any,
    *,
    feature_names: Any = None,
    n_columns: int | None = COLUMNS_KEPT,
    ids: Any = None,
    annotations: Any = None,
    survival: tuple[str, str] | None = None,
    random_state: RandomState = 0,
) -> ClusterExplanation:
    """Describe what distinguishes every cluster: columns, words, hubs, typical and borderline samples.

    Every column of every view is compared inside each cluster with outside: an effect that does not depend on outliers
    (Cliff's delta, from ranks), a difference of means, medians, and a Mann-Whitney test whose p-values are adjusted by
    Benjamini and Hochberg for all tests together. Values that are missing are left out. Sparse tables stay sparse.

    The clusters were made from these columns. Their p-values therefore describe how clearly a column separates a
    cluster and are *not evidence that the clusters exist*: clusters of noise have small ones as well. It is different
    with ``annotations``, columns that the model never saw: there a small p-value can be taken at face value.

    Parameters
    ----------
    model : fitted estimator
        A clusterer, or a pipeline or search that ends in one.
    X : as in the fit
        The samples the model was fitted on. Values shown are those passed here where the steps of a pipeline keep the
        columns (scalers, imputers), and those after the last step that does not otherwise; ``values_taken`` says which.
    feature_names : sequence of str, or dict of view to sequence of str, default=None
        Names of the columns; by default those of data frames, of the steps before, or of the fit, else x0, x1, ...
    n_columns : int, default=20
        Columns that ``rows`` keeps of every cluster and view; None keeps all. ``views`` has all of them as arrays.
    ids : sequence, default=None
        Names of the samples; by default the index of a data frame, or numbers from 0 on.
    annotations : DataFrame, or dict of str to sequence, default=None
        Columns that were not used for clustering, as in :func:`explain_annotations`. Rows are matched by name where
        the samples have names and the data frame has an index of names, and by their order otherwise.
    survival : tuple of str, default=None
        Names of the columns of ``annotations`` with a survival time and its event (1 happened, 0 censored).
    random_state : int, default=0
        Seed for drawing reference samples if there are more than 2,000.

    Returns
    -------
    explanation : ClusterExplanation
        ``rows``, ``typical``, ``borderline``, ``graph``, ``annotations``; ``summary()`` describes it in words,
        ``to_frame()`` and ``to_csv(path)`` give the table.

    See Also
    --------
    explain_annotations : Columns that were not used.
    kernelweave.plots.ClusterHeatmapDisplay : The columns as a plot.

    Notes
    -----
    One sort for every column serves all clusters: 20,000 columns of 1,000 samples take seconds. Kernels, distances and
    divergences have no columns, only typical and borderline samples. Graphs have hubs, conductance and
    links as well.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelweave import KernelKMeans
    >>> from kernelweave.explain import explain_clusters
    >>> wine = load_wine()
    >>> model = make_pipeline(StandardScaler(), KernelKMeans(3, kernel="linear", random_state=0)).fit(wine.data)
    >>> explanation = explain_clusters(model, wine.data, feature_names=wine.feature_names)
    >>> effect = explanation.top(0, 1)[0]
    >>> effect.view, effect.direction in ("high", "low"), abs(effect.effect) > 0.9
    ('X', True, True)
    """
    if n_columns is not None and (isinstance(n_columns, bool) or n_columns < 1):
        raise ParameterError(f"n_columns={n_columns!r} must be at least 1, or None for all columns.")
    clustering = read_clustering(model, X)
    labels = clustering.labels
    k = clustering.n_clusters
    names = sample_names(ids, X, clustering.n_samples)
    named = ids is not None or table_index(X) is not None
    tables = named_tables(model, X, feature_names)
    views, rows = column_effects(tables.views, labels, k, n_columns)
    samples = samples_of(clustering, random_state)
    graph = clustering.views[0].block if clustering.views[0].kind == "graph" else None
    return ClusterExplanation(
        rows=rows,
        sizes=np.bincount(labels, minlength=k),
        typical=tuple(typical_samples(clustering, random_state)),
        borderline=tuple(_least_confident(samples, c) for c in range(k)),
        samples=samples,
        views=views,
        graph=None if graph is None else explain_graph(graph, labels, k),
        annotations=None if annotations is None else _annotations(labels, k, annotations, survival, named, names),
        ids=names,
        values_taken=tables.taken,
    )


def column_effects(
    tables: tuple[NamedView, ...], labels: Ints, n_clusters: int, n_columns: int | None = COLUMNS_KEPT
) -> tuple[tuple[ViewExplanation, ...], tuple[ColumnEffect, ...]]:
    """Return all columns in all clusters, and of every cluster and view those that distinguish it."""
    views = _views(tables, [column_statistics(view.block, labels, n_clusters) for view in tables])
    by_column = {each.name: sp.csc_array(each.block) if sp.issparse(each.block) else each.block for each in tables}
    rows = (
        row
        for c in range(n_clusters)
        for view in views
        for row in _rows(view, by_column[view.name], labels, c, n_columns)
    )
    return views, tuple(rows)


def _annotations(
    labels: Ints, k: int, table: Any, survival: tuple[str, str] | None, named: bool, names: tuple[str, ...]
) -> AnnotationTable:
    """Return how unused columns are associated with the clusters; rows are matched by name where both have names."""
    by_name = named and table_index(table) is not None
    return explain_annotations(labels, table, ids=names if by_name else None, survival=survival, n_clusters=k)


def _views(tables: tuple[NamedView, ...], statistics: list[ColumnStatistics]) -> tuple[ViewExplanation, ...]:
    """Return the views with p-values adjusted for all of them together."""
    if not tables:
        return ()
    adjusted = adjusted_for_many(np.concatenate([each.p_values for each in statistics]))
    ends = np.cumsum([len(view.columns) for view in tables])[:-1]
    parts = zip(tables, statistics, np.split(adjusted, ends), strict=True)
    return tuple(ViewExplanation(v.name, v.columns, _kinds(v.block, s), s, p) for v, s, p in parts)


def _kinds(block: Matrix, statistics: ColumnStatistics) -> tuple[Kind, ...]:
    """Return what every column holds."""
    whole: Kind = "counts" if _holds_counts(block) else "number"
    two = statistics.distinct == 2
    return tuple("two values" if each and whole == "number" else whole for each in two)


def _holds_counts(block: Matrix) -> bool:
    """Whether a view holds counts of words and the like: never negative, mostly zero."""
    if sp.issparse(block):
        stored = block.data[~np.isnan(block.data)]
        return not (stored < 0).any() and np.count_nonzero(stored) < MOSTLY_ZERO * block.shape[0] * block.shape[1]
    present = block[~np.isnan(block).any(axis=1)]
    return len(present) > 0 and not (present < 0).any() and view_kind(present) == "counts"


def _rows(view: ViewExplanation, block: Matrix, labels: Ints, c: int, n_columns: int | None) -> list[ColumnEffect]:
    """Return the columns of a view that distinguish a cluster most."""
    stats = view.statistics
    tested = np.flatnonzero(~np.isnan(stats.p_values[:, c]))
    keys = (
        -np.abs(stats.differences[tested, c]),
        -np.abs(stats.effects[tested, c]),
        view.adjusted_p[tested, c] >= SIGNIFICANT,
    )
    return [_row(view, block, labels, c, int(j)) for j in tested[np.lexsort(keys)][:n_columns]]


def _row(view: ViewExplanation, block: Matrix, labels: Ints, c: int, j: int) -> ColumnEffect:
    stats = view.statistics
    values = _column(block, j)
    effect = float(stats.effects[j, c])
    kind = view.kinds[j]
    share_inside = np.nan
    share_outside = np.nan
    if kind == "counts":
        share_inside = float(stats.present_inside[j, c])
        share_outside = float(stats.present_outside[j, c])
    elif kind == "two values":
        share_inside = float(stats.high_inside[j, c])
        share_outside = float(stats.high_outside[j, c])
    return ColumnEffect(
        cluster=c,
        view=view.name,
        column=view.columns[j],
        effect=effect,
        mean_inside=float(stats.means_inside[j, c]),
        mean_outside=float(stats.means_outside[j, c]),
        adjusted_p=float(view.adjusted_p[j, c]),
        direction="high" if effect > 0 else "low" if effect < 0 else "same",
        median_inside=float(np.nanmedian(values[labels == c])),
        median_outside=float(np.nanmedian(values[labels != c])),
        difference=float(stats.differences[j, c]),
        share_inside=share_inside,
        share_outside=share_outside,
        log_odds=float(stats.log_odds[j, c]) if kind == "counts" else np.nan,
        p_value=float(stats.p_values[j, c]),
        kind=kind,
        n_inside=int(stats.inside[j, c]),
        n_outside=int(stats.outside[j, c]),
    )


def _column(block: Matrix, j: int) -> Floats:
    column = block[:, [j]]
    return np.asarray(column.toarray() if sp.issparse(column) else column, dtype=np.float64).ravel()


def _least_confident(samples: SampleDescriptions, c: int) -> Ints:
    """Return the members of a cluster with the least confidence; none where there is no other cluster."""
    members = np.flatnonzero((samples.labels == c) & (samples.runners_up >= 0))
    return members[np.argsort(samples.confidences[members], kind="stable")[:TYPICAL]]
