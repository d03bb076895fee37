"""How columns that were not used for clustering are associated with the clusters.

kind      test                                                              effect
number    Kruskal-Wallis                                                    epsilon squared, H / (n - 1)
date      the same, of days                                                 the same
category  chi-squared; where too few are expected (Cochran's rule) Fisher's  Cramer's V
          exact test for two by two, else permutations with fixed margins
survival  log-rank                                                          none; medians by Kaplan and Meier

The model never saw these columns, so that small p-values are evidence: adjusted by Benjamini and Hochberg for all of
them together. Values that are missing are left out and counted.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import stats

from kernelweave.evaluation.explain.rank_tests import adjusted_for_many
from kernelweave.evaluation.explain.records import as_csv, as_frame
from kernelweave.evaluation.explain.survival import log_rank, median_survival
from kernelweave.evaluation.metrics.checks import encode_labels
from kernelweave.foundation.array_types import Array, Bools, Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.files import write_atomically
from kernelweave.foundation.random_streams import streams
from kernelweave.preprocessing.table_encoder import MOST_CATEGORIES, named_columns, read_column

AnnotationKind = Literal["number", "category", "date", "survival"]
#: What p-values of these columns say.
MEANING = (
    "These columns were not used for clustering: small p-values are evidence that they are associated with the "
    "clusters."
)
# Chi-squared is not trusted with fewer expected than this in a fifth of the cells, or fewer than 1 in any (Cochran).
FEW_EXPECTED = 5.0
FEWEST_EXPECTED = 1.0
FEW_CELLS = 0.2
PERMUTATIONS = 9_999
_EVENTS = {"1": True, "0": False, "true": True, "false": False, "yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class Association:
    """How one column is associated with the clusters.

    Attributes
    ----------
    column : str
        Its name; of survival, those of time and event.
    kind : {"number", "category", "date", "survival"}
        What it holds.
    effect : float
        Epsilon squared of numbers and dates, Cramer's V of categories, both in [0, 1]; NaN of survival.
    adjusted_p : float
        p-value, adjusted by Benjamini and Hochberg for all columns.
    clusters : tuple of str
        The median, the most frequent category with its share, or the median survival of every cluster.
    test : str
        Name of the test.
    statistic, p_value : float
        What the test gave.
    n_samples, n_missing : int
        Samples with a value, and without.
    """

    column: str
    kind: AnnotationKind
    effect: float
    adjusted_p: float
    clusters: tuple[str, ...]
    test: str
    statistic: float
    p_value: float
    n_samples: int
    n_missing: int


@dataclass(frozen=True, eq=False)
class AnnotationTable:
    """How columns that were not used are associated with the clusters.

    Attributes
    ----------
    rows : tuple of Association
        One for every column, the smallest p-value first.
    n_clusters : int
        Number of clusters.
    n_samples : int
        Number of samples that were clustered.
    n_without : int
        Of these, samples without a row in the table.
    n_unused : int
        Rows of the table that belong to no sample.
    set_aside : dict of str to str
        Columns without a test, with the reason.
    """

    rows: tuple[Association, ...]
    n_clusters: int
    n_samples: int
    n_without: int
    n_unused: int
    set_aside: dict[str, str]

    def to_frame(self) -> Any:
        """Return ``rows`` as a data frame; needs pandas."""
        return as_frame(self.rows, [each.name for each in fields(Association)])

    def csv_text(self) -> str:
        """Return ``rows`` as CSV, a column for every cluster; cells without a number are empty."""
        names = [each.name for each in fields(Association) if each.name != "clusters"]
        header = [*names, *(f"cluster_{c}" for c in range(self.n_clusters))]
        return as_csv(header, ([*(getattr(row, name) for name in names), *row.clusters] for row in self.rows))

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write ``rows`` as CSV, whole or not at all, and return the path."""
        return write_atomically(path, self.csv_text())

    def summary(self) -> str:
        """Return a line of text about every column, and what was left out."""
        lines = [*(_in_words(row) for row in self.rows), *self.notes()]
        return "\n".join([*lines, MEANING] if self.rows else lines)

    def notes(self) -> list[str]:
        """Return what was left out: samples and rows that do not match, and columns without a test."""
        notes = []
        if self.n_without:
            notes.append(f"{self.n_without:,} of {self.n_samples:,} samples have no row in the table.")
        if self.n_unused:
            notes.append(f"{self.n_unused:,} rows of the table belong to no sample.")
        return notes + [f"{name}: not tested ({reason})" for name, reason in self.set_aside.items()]


def _in_words(row: Association) -> str:
    effect = "" if math.isnan(row.effect) else f", {_EFFECTS[row.kind]} {row.effect:.2f}"
    missing = f", {row.n_missing:,} missing" if row.n_missing else ""
    return f"{row.column}: adjusted p {row.adjusted_p:.2g}{effect} ({row.test}, n = {row.n_samples:,}{missing})"


_EFFECTS = {"number": "epsilon squared", "date": "epsilon squared", "category": "Cramer's V"}


def explain_annotations(
    labels: Any,
    table: Any,
    *,
    ids: Any = None,
    table_ids: Any = None,
    survival: tuple[str, str] | None = None,
    categorical: Sequence[str] = (),
    n_clusters: int | None = None,
) -> AnnotationTable:
    """Test how columns that were not used for clustering are associated with the clusters.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Clusters.
    table : DataFrame, or dict of str to sequence
        Columns of numbers, text, booleans or dates. Numbers of two values are categories.
    ids : sequence, default=None
        Names of the samples. With them, rows of the table are matched by name: samples without a row count as missing,
        rows without a sample are left out, and both are counted. Without them row i belongs to sample i.
    table_ids : sequence, default=None
        Names of the rows; by default the index of a data frame.
    survival : tuple of str, default=None
        Names of two columns: a survival time, and whether the event happened (1) or the time is censored (0).
    categorical : sequence of str, default=()
        Columns of numbers that are codes of categories.
    n_clusters : int, default=None
        Number of clusters, where some are empty.

    Returns
    -------
    table : AnnotationTable
        ``rows``, with ``to_frame()``, ``to_csv(path)`` and ``summary()``.

    Notes
    -----
    These columns had no influence on the clusters, so that p-values can be taken at face value, unlike those of
    :func:`explain_clusters`.

    Examples
    --------
    >>> from kernelweave.explain import explain_annotations
    >>> age = [31, 35, 33, 30, 36, 64, 68, 61, 70, 66]
    >>> table = explain_annotations([0] * 5 + [1] * 5, {"age": age})
    >>> print(table.summary())
    age: adjusted p 0.009, epsilon squared 0.76 (Kruskal-Wallis, n = 10)
    These columns were not used for clustering: small p-values are evidence that they are associated with the clusters.
    """
    codes, k = encode_labels(labels, "labels", n_clusters=n_clusters)
    columns = dict(named_columns(table))
    rows = _matched_rows(len(codes), columns, table, ids, table_ids)
    known = rows[rows >= 0]
    results: list[Association] = []
    set_aside: dict[str, str] = {}
    if survival is not None:
        tested = _survival(columns, survival, rows, codes, k)
        if isinstance(tested, str):
            set_aside[", ".join(survival)] = tested
        else:
            results.append(tested)
    for name, column in columns.items():
        if survival is None or name not in survival:
            result = _association(name, column, rows, codes, k, name in categorical)
            if isinstance(result, str):
                set_aside[name] = result
            else:
                results.append(result)
    adjusted = adjusted_for_many(np.array([each.p_value for each in results]))
    results = [_with_adjusted(each, float(p)) for each, p in zip(results, adjusted, strict=True)]
    length = _length(columns)
    return AnnotationTable(
        rows=tuple(sorted(results, key=lambda each: (math.isnan(each.p_value), each.p_value))),
        n_clusters=k,
        n_samples=len(codes),
        n_without=int((rows < 0).sum()),
        n_unused=length - len(np.unique(known)),
        set_aside=set_aside,
    )


def _with_adjusted(result: Association, adjusted: float) -> Association:
    return Association(**{**asdict(result), "adjusted_p": adjusted, "clusters": result.clusters})


# Rows


def _length(columns: Mapping[str, Any]) -> int:
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1:
        raise ParameterError(f"table has columns of {sorted(lengths)} rows; give columns of one length, at least one.")
    return lengths.pop()


def _matched_rows(n: int, columns: Mapping[str, Any], table: Any, ids: Any, table_ids: Any) -> Ints:
    """Return the row of the table for every sample, -1 where it has none."""
    length = _length(columns)
    if table_ids is None and hasattr(table, "iloc"):
        table_ids = table.index
    if ids is None:
        if length != n:
            raise ParameterError(
                f"table has {length} rows for {n} samples; give one row each, or ids to match rows by name."
            )
        return np.arange(n)
    if table_ids is None:
        raise ParameterError("ids are given, but the rows of table have no names; give table_ids, or a data frame.")
    names = [str(name) for name in table_ids]
    place = {name: i for i, name in enumerate(names)}
    if len(place) < len(names):
        twice = next(name for i, name in enumerate(names) if place[name] != i)
        raise ParameterError(f"table has several rows called {twice!r}; each sample has at most one row.")
    rows = np.array([place.get(str(name), -1) for name in ids], dtype=np.intp)
    if len(rows) != n:
        raise ParameterError(f"ids has {len(rows)} entries for {n} samples; give one name for each.")
    if not (rows >= 0).any():
        raise ParameterError(
            f"No row of the table belongs to a sample: its first row is called {names[0] if names else ''!r}, and the "
            f"first sample {str(next(iter(ids)))!r}."
        )
    return rows


def _of_samples(values: Array, rows: Ints, absent: Any) -> Array:
    """Return the values of samples, ``absent`` for those without a row."""
    chosen = values[np.maximum(rows, 0)]
    chosen[rows < 0] = absent
    return chosen


# Tests


def _association(name: str, column: Any, rows: Ints, codes: Ints, k: int, coded: bool) -> Association | str:
    """Return how a column is associated with the clusters, or why there is no test."""
    held = read_column(name, column)
    if held.kind == "date":
        dates = _of_samples(held.values, rows, np.datetime64("NaT", "us"))
        if np.isnat(dates).all():
            return "no values"
        earliest = dates[~np.isnat(dates)].min()
        days = np.where(np.isnat(dates), np.nan, (dates - earliest) / np.timedelta64(1, "D"))
        return _kruskal_wallis(name, "date", days, codes, k, earliest)
    if held.kind in ("number", "ordered", "boolean"):
        values = _of_samples(held.values, rows, np.nan)
        there = values[~np.isnan(values)]
        if not coded and len(np.unique(there)) > 2:
            return _kruskal_wallis(name, "number", values, codes, k)
        texts = [None if math.isnan(value) else _code_text(value, held) for value in values.tolist()]
        return _chi_squared(name, texts, codes, k)
    if held.kind == "category":
        return _chi_squared(name, _of_samples(held.values, rows, None).tolist(), codes, k)
    return f"of type {held.kind}"


def _code_text(value: float, held: Any) -> str:
    if held.kind == "ordered":
        return str(held.categories[int(value)])
    if held.kind == "boolean":
        return "true" if value else "false"
    return f"{value:.6g}"


def _kruskal_wallis(
    name: str, kind: AnnotationKind, values: Floats, codes: Ints, k: int, earliest: Any = None
) -> Association | str:
    there = ~np.isnan(values)
    groups = [values[there & (codes == c)] for c in range(k)]
    filled = [group for group in groups if len(group)]
    if len(np.unique(values[there])) < 2:
        return "one value" if there.any() else "no values"
    if len(filled) < 2:
        return "values in one cluster only"
    result = stats.kruskal(*filled)
    n = int(there.sum())
    medians = [_median(group, earliest) for group in groups]
    return Association(
        column=name,
        kind=kind,
        effect=float(result.statistic) / (n - 1),
        adjusted_p=np.nan,
        clusters=tuple(medians),
        test="Kruskal-Wallis",
        statistic=float(result.statistic),
        p_value=float(result.pvalue),
        n_samples=n,
        n_missing=len(values) - n,
    )


def _median(group: Floats, earliest: Any) -> str:
    if not len(group):
        return ""
    median = float(np.median(group))
    if earliest is None:
        return f"{median:.4g}"
    return str((earliest + np.timedelta64(round(median * 86_400), "s")).astype("datetime64[D]"))


def _chi_squared(name: str, texts: Sequence[str | None], codes: Ints, k: int) -> Association | str:
    there: Bools = np.array([text is not None for text in texts], dtype=bool)
    if not there.any():
        return "no values"
    values, categories = np.unique([text for text in texts if text is not None], return_inverse=True)
    if len(values) < 2:
        return "one value"
    if len(values) > MOST_CATEGORIES or len(values) == len(categories) > 2:
        return f"{len(values)} different texts"
    counts = np.bincount(codes[there] * len(values) + categories, minlength=k * len(values)).reshape(k, len(values))
    filled = counts[counts.sum(axis=1) > 0]
    if len(filled) < 2:
        return "values in one cluster only"
    n = int(there.sum())
    statistic, p_value, test = _independence(filled)
    return Association(
        column=name,
        kind="category",
        effect=math.sqrt(statistic / (n * (min(filled.shape) - 1))),
        adjusted_p=np.nan,
        clusters=tuple(_most_frequent(row, values) for row in counts),
        test=test,
        statistic=statistic,
        p_value=p_value,
        n_samples=n,
        n_missing=len(texts) - n,
    )


def _independence(counts: Ints) -> tuple[float, float, str]:
    """Return chi-squared of a table, its p-value, and the test that gave it."""
    result = stats.chi2_contingency(counts, correction=False)
    statistic = float(result.statistic)
    expected = result.expected_freq
    if (expected < FEW_EXPECTED).mean() <= FEW_CELLS and expected.min() >= FEWEST_EXPECTED:
        return statistic, float(result.pvalue), "chi-squared"
    if counts.shape == (2, 2):
        return statistic, float(stats.fisher_exact(counts).pvalue), "Fisher's exact test"
    generator = streams(0, 1, "permuted tables")[0]
    tables = stats.random_table(counts.sum(axis=1), counts.sum(axis=0)).rvs(PERMUTATIONS, random_state=generator)
    permuted = ((tables - expected) ** 2 / expected).sum(axis=(1, 2))
    as_large = int((permuted >= statistic * (1.0 - 1e-9)).sum())  # sums of equal tables differ in their last digits
    return statistic, (as_large + 1) / (PERMUTATIONS + 1), f"chi-squared by {PERMUTATIONS:,} permutations"


def _most_frequent(counts: Ints, values: Array) -> str:
    total = int(counts.sum())
    return f"{values[counts.argmax()]} ({counts.max() / total:.0%})" if total else ""


# Survival


def _survival(columns: Mapping[str, Any], names: tuple[str, str], rows: Ints, codes: Ints, k: int) -> Association | str:
    if len(names) != 2 or any(name not in columns for name in names):
        raise ParameterError(
            f"survival={names!r} must name two columns of the table, a time and an event; it has {list(columns)[:8]}."
        )
    time_name, event_name = names
    held = read_column(time_name, columns[time_name])
    if held.kind != "number":
        raise ParameterError(f"survival: column {time_name!r} does not hold numbers, but a survival time is a number.")
    times = _of_samples(held.values, rows, np.nan)
    if (times < 0).any():
        raise ParameterError(
            f"survival: column {time_name!r} holds {np.nanmin(times):.6g}, but times are not negative."
        )
    events = _of_samples(_read_events(event_name, columns[event_name]), rows, np.nan)
    there = ~(np.isnan(times) | np.isnan(events))
    happened = events[there] > 0
    if len(np.unique(codes[there])) < 2:
        return "values in one cluster only" if there.any() else "no values"
    statistic, p_value = log_rank(times[there], happened, codes[there], k)
    if math.isnan(p_value):
        return "no event while samples of two clusters were at risk"
    medians = [median_survival(times[there & (codes == c)], events[there & (codes == c)] > 0) for c in range(k)]
    return Association(
        column=f"{time_name}, {event_name}",
        kind="survival",
        effect=np.nan,
        adjusted_p=np.nan,
        clusters=tuple("not reached" if math.isnan(median) else f"{median:.4g}" for median in medians),
        test="log-rank",
        statistic=statistic,
        p_value=p_value,
        n_samples=int(there.sum()),
        n_missing=int((~there).sum()),
    )


def _read_events(name: str, column: Any) -> Floats:
    """Return 1 where the event happened, 0 where the time is censored, and NaN where nothing is known."""
    held = read_column(name, column)
    if held.kind in ("number", "boolean"):
        events = np.array(held.values, dtype=np.float64)
        strange = events[~np.isnan(events) & (events != 0) & (events != 1)]
    else:
        strange = [text for text in held.values if text is not None and str(text).lower() not in _EVENTS]
        events = np.array(
            [np.nan if text is None else float(_EVENTS.get(str(text).lower(), False)) for text in held.values]
        )
    if len(strange):
        raise ParameterError(
            f"survival: column {name!r} holds {str(strange[0])!r}; an event is 1 (happened) or 0 (the time is "
            "censored)."
        )
    return events
