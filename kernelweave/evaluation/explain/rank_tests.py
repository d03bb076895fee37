"""Every column inside each cluster compared with outside: ranks, means and shares, for all clusters from one sort.

Effect      Cliff's delta: the chance that a value inside is larger than one outside, less the chance that it is
            smaller. It is 2 U / (n m) - 1 with the Mann-Whitney statistic U, and for a column of two values the
            difference of the shares
Test        Mann-Whitney: the normal approximation with ties counted and half a rank taken off, two-sided
Input       samples by columns, dense or sparse, NaN where a value is missing; a label for every sample
Cost        O(n log n) for a dense column, whatever the number of clusters; of a sparse table only what is stored is
            sorted, and the zeros are counted
Guarantee   the order of the samples changes nothing, to the last bit
Source      H. B. Mann and D. R. Whitney, Annals of Mathematical Statistics 18, 1947;
            N. Cliff, Psychological Bulletin 114, 1993
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr

from kernelweave.foundation.array_types import Array, Bools, Floats, Ints, Matrix

# Entries of a block of columns that is sorted at a time.
BLOCK_ENTRIES = 2**20
# Added to counts before their odds are taken, so that words that never occur have some (Haldane and Anscombe).
HALF_A_COUNT = 0.5


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """Columns inside clusters compared with outside: arrays of shape (columns, clusters), or (columns,) where noted.

    NaN where nothing was observed inside, or nothing outside.
    """

    inside: Ints  # values observed
    outside: Ints
    effects: Floats  # Cliff's delta, in [-1, 1]
    differences: Floats  # of the means, in standard deviations of the column
    p_values: Floats
    means_inside: Floats
    means_outside: Floats
    present_inside: Floats  # share of values that are not zero
    present_outside: Floats
    high_inside: Floats  # share of values that are the column's largest
    high_outside: Floats
    log_odds: Floats  # natural logarithm of the ratio of the odds of not being zero
    distinct: Ints  # (columns,) different values
    means: Floats  # (columns,)
    deviations: Floats  # (columns,) with n in the denominator


@dataclass(frozen=True, eq=False)
class _Entries:
    """Values of some columns in order of column and value, and how many zeros are not listed."""

    columns: Ints
    values: Floats
    labels: Ints
    zeros: Ints  # (columns, clusters)


def column_statistics(block: Matrix, labels: Ints, n_clusters: int) -> ColumnStatistics:
    """Compare every column inside each cluster with outside."""
    parts = [_statistics(entries) for entries in _sorted_entries(block, labels, n_clusters)]
    joined = {each.name: np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(parts[0])}
    return ColumnStatistics(**joined)


def _sorted_entries(block: Matrix, labels: Ints, n_clusters: int) -> Iterator[_Entries]:
    """Yield the columns in blocks; an empty block where there are no columns."""
    n, width = block.shape
    table = sp.csc_array(block) if sp.issparse(block) else block
    step = max(1, BLOCK_ENTRIES // max(1, n))
    for first in range(0, max(1, width), step):
        some = table[:, first : first + step]
        yield (
            _sparse_entries(some, labels, n_clusters) if sp.issparse(some) else _dense_entries(some, labels, n_clusters)
        )


def _dense_entries(block: Floats, labels: Ints, n_clusters: int) -> _Entries:
    rows = np.ascontiguousarray(block.T, dtype=np.float64)
    order = np.argsort(rows, axis=1, kind="stable")
    values = np.take_along_axis(rows, order, axis=1).ravel()
    columns = np.repeat(np.arange(len(rows)), rows.shape[1])
    there = ~np.isnan(values)
    zeros = np.zeros((len(rows), n_clusters), dtype=np.int64)
    return _Entries(columns[there], values[there], labels[order.ravel()[there]], zeros)


def _sparse_entries(block: sp.csc_array, labels: Ints, n_clusters: int) -> _Entries:
    block = sp.csc_array(block, copy=True)
    block.sum_duplicates()
    block.eliminate_zeros()
    width = block.shape[1]
    columns = np.repeat(np.arange(width), np.diff(block.indptr))
    stored = _counts(columns, labels[block.indices], (width, n_clusters))
    zeros = np.bincount(labels, minlength=n_clusters) - stored
    there = ~np.isnan(block.data)
    columns = columns[there]
    values = block.data[there]
    order = np.lexsort((values, columns))
    return _Entries(columns[order], values[order], labels[block.indices[there]][order], zeros)


def _statistics(entries: _Entries) -> ColumnStatistics:
    shape = entries.zeros.shape
    columns = entries.columns
    values = entries.values
    clusters = entries.labels
    hidden = entries.zeros.sum(axis=1)  # zeros that are not listed
    inside = _counts(columns, clusters, shape) + entries.zeros
    total = inside.sum(axis=1)
    outside = total[:, None] - inside
    rank_sums, ties, distinct = _ranks(entries, hidden)
    sums = _sums(columns, clusters, values, shape)
    column_sums = np.bincount(columns, values, minlength=shape[0])
    means = _ratio(column_sums, total)
    squares = np.bincount(columns, (values - means[columns]) ** 2, minlength=shape[0])
    squares = squares + np.where(hidden > 0, hidden * np.nan_to_num(means) ** 2, 0.0)
    # the mean of equal values may be another number in its last digit
    deviations = np.where(distinct > 1, np.sqrt(_ratio(squares, total)), 0.0)
    means_inside = _ratio(sums, inside)
    means_outside = _ratio(column_sums[:, None] - sums, outside)
    effects, p_values = _mann_whitney(rank_sums, ties, inside, outside)
    present = _counts(columns, clusters, shape, values != 0)
    present_outside = present.sum(axis=1)[:, None] - present
    high = _highest(entries, hidden)
    gaps = np.divide(
        means_inside - means_outside, deviations[:, None], out=np.zeros(shape), where=deviations[:, None] > 0
    )
    return ColumnStatistics(
        inside=inside,
        outside=outside,
        effects=effects,
        differences=np.where((inside > 0) & (outside > 0), gaps, np.nan),
        p_values=p_values,
        means_inside=means_inside,
        means_outside=means_outside,
        present_inside=_ratio(present, inside),
        present_outside=_ratio(present_outside, outside),
        high_inside=_ratio(high, inside),
        high_outside=_ratio(high.sum(axis=1)[:, None] - high, outside),
        log_odds=_log_odds(present, inside, present_outside, outside),
        distinct=distinct,
        means=means,
        deviations=deviations,
    )


def _ranks(entries: _Entries, hidden: Ints) -> tuple[Floats, Floats, Ints]:
    """Return the rank sums of every cluster, the sum of t^3 - t over ties of t values, and the distinct values."""
    width = len(hidden)
    columns = entries.columns
    values = entries.values
    negative = np.bincount(columns, values < 0, minlength=width)
    zero_rank = negative + (hidden + 1) / 2
    ties = hidden.astype(np.float64) ** 3 - hidden
    distinct = (hidden > 0).astype(np.intp)
    if len(columns) == 0:
        return entries.zeros * zero_rank[:, None], ties, distinct
    starts = np.searchsorted(columns, np.arange(width))
    places = np.arange(len(columns)) - starts[columns] + np.where(values > 0, hidden[columns], 0)
    opens = np.ones(len(columns), dtype=bool)
    opens[1:] = (columns[1:] != columns[:-1]) | (values[1:] != values[:-1])
    first = np.flatnonzero(opens)
    sizes = np.diff(np.append(first, len(columns)))
    ranks = np.repeat(places[first] + (sizes + 1) / 2, sizes)
    sums = _sums(columns, entries.labels, ranks, entries.zeros.shape) + entries.zeros * zero_rank[:, None]
    ties = ties + np.bincount(columns[first], sizes.astype(np.float64) ** 3 - sizes, minlength=width)
    return sums, ties, distinct + np.bincount(columns[first], minlength=width)


def _mann_whitney(rank_sums: Floats, ties: Floats, inside: Ints, outside: Ints) -> tuple[Floats, Floats]:
    """Return Cliff's delta and the p-value of every column and cluster; 0 and 1 where all values are equal."""
    pairs = inside.astype(np.float64) * outside
    U = rank_sums - inside * (inside + 1.0) / 2.0
    total = (inside + outside).astype(np.float64)
    spread = total + 1.0 - _ratio(np.broadcast_to(ties[:, None], total.shape), total * (total - 1.0))
    scale = np.sqrt(np.maximum(pairs / 12.0 * np.nan_to_num(spread), 0.0))
    beyond = np.maximum(np.abs(U - pairs / 2.0) - 0.5, 0.0)
    z = np.divide(beyond, scale, out=np.zeros(pairs.shape), where=scale > 0)
    effects = np.divide(2.0 * U, pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0) - 1.0
    return effects, np.where(pairs > 0, np.minimum(1.0, 2.0 * ndtr(-z)), np.nan)


def _highest(entries: _Entries, hidden: Ints) -> Ints:
    """Return how many values of every cluster are the largest of their column."""
    shape = entries.zeros.shape
    largest = np.where(hidden > 0, 0.0, -np.inf)
    np.maximum.at(largest, entries.columns, entries.values)
    listed = _counts(entries.columns, entries.labels, shape, entries.values == largest[entries.columns])
    return np.asarray(listed + np.where(largest[:, None] == 0, entries.zeros, 0))


def _log_odds(present: Ints, inside: Ints, present_outside: Ints, outside: Ints) -> Floats:
    odds_inside = (present + HALF_A_COUNT) / (inside - present + HALF_A_COUNT)
    odds_outside = (present_outside + HALF_A_COUNT) / (outside - present_outside + HALF_A_COUNT)
    return np.where((inside > 0) & (outside > 0), np.log(odds_inside / odds_outside), np.nan)


def _counts(columns: Ints, labels: Ints, shape: tuple[int, ...], which: Bools | None = None) -> Ints:
    """Return how many entries there are of every column and cluster, all or some."""
    if which is not None:
        columns = columns[which]
        labels = labels[which]
    return np.bincount(columns * shape[1] + labels, minlength=shape[0] * shape[1]).reshape(shape)


def _sums(columns: Ints, labels: Ints, values: Floats, shape: tuple[int, ...]) -> Floats:
    sums = np.bincount(columns * shape[1] + labels, values, minlength=shape[0] * shape[1])
    return np.asarray(sums, dtype=np.float64).reshape(shape)


def _ratio(above: Array, below: Array) -> Floats:
    """Return the ratio, NaN where the denominator is 0."""
    return np.divide(above, below, out=np.full(np.shape(below), np.nan), where=np.asarray(below) != 0)


def adjusted_for_many(p_values: Floats) -> Floats:
    """Return p-values adjusted for their number by Benjamini and Hochberg; NaN stays NaN and is not counted.

    Source: Y. Benjamini and Y. Hochberg, J. of the Royal Statistical Society B 57, 1995.
    """
    flat = np.asarray(p_values, dtype=np.float64).ravel()
    adjusted = np.full(len(flat), np.nan)
    tests = np.flatnonzero(~np.isnan(flat))
    if len(tests):
        falling = tests[np.argsort(-flat[tests], kind="stable")]
        ranks = np.arange(len(tests), 0, -1)
        adjusted[falling] = np.minimum(1.0, np.minimum.accumulate(flat[falling] * len(tests) / ranks))
    return adjusted.reshape(np.shape(p_values))
