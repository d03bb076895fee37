"""What distinguishes clusters, as small records, a table, a file and plain words."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kernelweave.evaluation.describe.samples import SampleDescriptions
from kernelweave.evaluation.explain.annotations import AnnotationTable
from kernelweave.evaluation.explain.graphs import GraphExplanation
from kernelweave.evaluation.explain.rank_tests import ColumnStatistics
from kernelweave.evaluation.explain.records import as_csv, as_frame
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.files import write_atomically

Kind = Literal["number", "two values", "counts"]
#: Columns whose adjusted p-value is below this come first and are the ones put into words.
SIGNIFICANT = 0.05
#: What p-values of these columns do not say.
CAUTION = (
    "The clusters were made from these columns, so p-values describe how clearly a column separates a cluster; they "
    "are not evidence that the clusters exist."
)
# Columns, typical samples and hubs of a cluster that are put into words.
WORDED = 5
NAMED = 3


@dataclass(frozen=True, slots=True)
class ColumnEffect:
    """One column of one view, inside a cluster compared with outside.

    Attributes
    ----------
    cluster : int
        The cluster.
    view, column : str
        The view and the column.
    effect : float
        Cliff's delta, in [-1, 1]: the chance that a value inside is larger than one outside, less the chance that it is
        smaller. For a column of two values it is the difference of the shares.
    mean_inside, mean_outside : float
        Means.
    adjusted_p : float
        p-value of the Mann-Whitney test, adjusted by Benjamini and Hochberg for all clusters, views and columns.
    direction : {"high", "low", "same"}
        How values inside compare with those outside.
    median_inside, median_outside : float
        Medians.
    difference : float
        Difference of the means in standard deviations of the column.
    share_inside, share_outside : float
        Share of samples whose value is not zero, for counts of words and the like; share of the larger of two values.
        NaN for other columns.
    log_odds : float
        Logarithm of the ratio of the odds of not being zero, inside to outside, with half a count added to each number;
        NaN where values are not counts.
    p_value : float
        p-value before it is adjusted.
    kind : {"number", "two values", "counts"}
        What the column holds.
    n_inside, n_outside : int
        Number of values that were observed.
    """

    cluster: int
    view: str
    column: str
    effect: float
    mean_inside: float
    mean_outside: float
    adjusted_p: float
    direction: Literal["high", "low", "same"]
    median_inside: float
    median_outside: float
    difference: float
    share_inside: float
    share_outside: float
    log_odds: float
    p_value: float
    kind: Kind
    n_inside: int
    n_outside: int

    @property
    def separates(self) -> bool:
        """Whether its adjusted p-value is below 0.05."""
        return self.adjusted_p < SIGNIFICANT

    def text(self, *, with_view: bool = False) -> str:
        """Return the effect in words: ``high alcohol (median 13.2 against 12.3)``."""
        name = f"{self.column} of {self.view}" if with_view else self.column
        return f"{self.direction} {name} ({self._values()})"

    def _values(self) -> str:
        shares = [f"{share:.0%}" for share in (self.share_inside, self.share_outside)]
        if not math.isnan(self.share_inside) and shares[0] != shares[1]:
            return f"{shares[0]} against {shares[1]}"
        if self.median_inside != self.median_outside:
            return f"median {self.median_inside:.3g} against {self.median_outside:.3g}"
        return f"mean {self.mean_inside:.3g} against {self.mean_outside:.3g}"


@dataclass(frozen=True, eq=False)
class ViewExplanation:
    """All columns of a view in all clusters, as arrays.

    Attributes
    ----------
    name : str
        Name of the view.
    columns : tuple of str
        Names of its columns.
    kinds : tuple of {"number", "two values", "counts"}
        What each column holds.
    statistics : ColumnStatistics
        Arrays of shape (columns, clusters): ``effects``, ``differences``, ``means_inside`` and the like.
    adjusted_p : ndarray of shape (columns, clusters)
        Adjusted p-values.
    """

    name: str
    columns: tuple[str, ...]
    kinds: tuple[Kind, ...]
    statistics: ColumnStatistics
    adjusted_p: Floats

    def standardized_means(self) -> Floats:
        """Return cluster means minus the mean of the column, in standard deviations, shape (columns, clusters)."""
        stats = self.statistics
        gaps = stats.means_inside - stats.means[:, None]
        spread = stats.deviations[:, None]
        return np.divide(gaps, spread, out=np.where(np.isnan(gaps), np.nan, 0.0), where=spread > 0)


@dataclass(frozen=True, eq=False)
class ClusterExplanation:
    """What distinguishes the clusters.

    :func:`~kernelweave.explain.explain_clusters` makes it.

    Attributes
    ----------
    rows : tuple of ColumnEffect
        For every cluster and view the columns that distinguish it: those with an adjusted p-value below 0.05 first, the
        largest effect first.
    sizes : ndarray of shape (n_clusters,)
        Number of samples of every cluster.
    typical : tuple of ndarray
        For every cluster the samples nearest to its mean, nearest first.
    borderline : tuple of ndarray
        For every cluster its samples of lowest confidence, lowest first.
    samples : SampleDescriptions
        Silhouette, runner-up, confidence and disagreeing view of every sample.
    views : tuple of ViewExplanation
        All columns as arrays; empty for kernels, distances and graphs.
    graph : GraphExplanation or None
        Hubs, conductance and links, for graphs.
    annotations : AnnotationTable or None
        How columns that were not used are associated with the clusters.
    ids : tuple of str
        Names of the samples.
    values_taken : str
        Which values of the tables these are: "as passed", or "after" a step of the pipeline.
    """

    rows: tuple[ColumnEffect, ...]
    sizes: Ints
    typical: tuple[Ints, ...]
    borderline: tuple[Ints, ...]
    samples: SampleDescriptions
    views: tuple[ViewExplanation, ...]
    graph: GraphExplanation | None
    annotations: AnnotationTable | None
    ids: tuple[str, ...]
    values_taken: str

    @property
    def n_clusters(self) -> int:
        """Number of clusters, with those that stayed empty."""
        return len(self.sizes)

    def top(self, cluster: int, n: int = 5, view: str | None = None) -> tuple[ColumnEffect, ...]:
        """Return the columns that distinguish a cluster most, from all views or from one.

        Parameters
        ----------
        cluster : int
            The cluster.
        n : int, default=5
            Most columns.
        view : str, default=None
            Name of a view; all views by default.

        Returns
        -------
        effects : tuple of ColumnEffect
            In the order of ``rows``: adjusted p-values below 0.05 first, the largest effect first.
        """
        if not 0 <= cluster < self.n_clusters:
            raise ParameterError(
                f"cluster={cluster!r} is not one of the {self.n_clusters} clusters, which are 0, 1, ..."
            )
        names = [each.name for each in self.views]
        if view is not None and view not in names:
            raise ParameterError(f"view={view!r} is not one of the views with columns: {names}.")
        chosen = [row for row in self.rows if row.cluster == cluster and view in (None, row.view)]
        return tuple(sorted(chosen, key=_rank)[:n])

    def to_frame(self) -> Any:
        """Return ``rows`` as a data frame, one column for each field; needs pandas."""
        return as_frame(self.rows, _FIELDS)

    def csv_text(self) -> str:
        """Return ``rows`` as CSV; cells without a number are empty."""
        return as_csv(_FIELDS, ([getattr(row, name) for name in _FIELDS] for row in self.rows))

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write ``rows`` as CSV, whole or not at all, and return the path."""
        return write_atomically(path, self.csv_text())

    def summary(self, *, samples: bool = True) -> str:
        """Return a description of every cluster in words; without ``samples``, one line each."""
        lines = [line for c in range(self.n_clusters) for line in self._cluster_lines(c)[: None if samples else 1]]
        if self.rows:
            lines.append(f"Values are those of the tables {self.values_taken}. {CAUTION}")
        if self.annotations is not None:
            lines += ["", self.annotations.summary()]
        return "\n".join(lines)

    def _cluster_lines(self, c: int) -> list[str]:
        size = int(self.sizes[c])
        head = f"cluster {c} ({size:,} sample{'' if size == 1 else 's'})"
        if not size:
            return [f"{head}: empty"]
        told = [row.text(with_view=self._in_several(row.column)) for row in self.top(c, WORDED) if row.separates]
        about = ", ".join(told) if told else "no column distinguishes it" if self.rows else ""
        if self.graph is not None:
            hubs = ", ".join(self.ids[i] for i in self.graph.hubs[c][:NAMED])
            about = f"hubs {hubs}; conductance {self.graph.conductance[c]:.3g}{self._strongest_link(c)}"
        lines = [f"{head}: {about}" if about else head]
        lines.append(f"  typical: {self._named(self.typical[c])}")
        if len(self.borderline[c]):
            lines.append(f"  borderline: {self._borderline(self.borderline[c])}")
        return lines

    def _strongest_link(self, c: int) -> str:
        """Return the cluster with most edges to this one, in words."""
        links = np.zeros(self.n_clusters) if self.graph is None else self.graph.links[c].copy()
        links[c] = 0.0
        other = int(links.argmax())
        return f"; most edges to cluster {other} (weight {links[other]:.4g})" if links[other] > 0 else ""

    def _in_several(self, column: str) -> bool:
        """Whether several views have a column of this name."""
        return sum(column in view.columns for view in self.views) > 1

    def _named(self, samples: Ints) -> str:
        return ", ".join(self.ids[i] for i in samples[:NAMED])

    def _borderline(self, samples: Ints) -> str:
        return ", ".join(f"{self.ids[i]} (or cluster {self.samples.runners_up[i]})" for i in samples[:NAMED])


_FIELDS = [each.name for each in fields(ColumnEffect)]


def _rank(row: ColumnEffect) -> tuple[bool, float, float]:
    return (not row.separates, -abs(row.effect), -abs(row.difference))


def ordered(rows: Sequence[ColumnEffect]) -> list[ColumnEffect]:
    """Return effects with those that separate first, the largest first."""
    return sorted(rows, key=_rank)
