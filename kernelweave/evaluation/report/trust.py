"""What carries the clusters, and what to distrust: views, samples, small clusters, absence, numbers tried."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_mutual_info_score

from kernelweave.estimators.graph.structure import IGNORED, SUPPORTED
from kernelweave.estimators.shared.fit_warnings import AGREES_WITH_ABSENCE
from kernelweave.evaluation.describe.silhouettes import Silhouettes
from kernelweave.evaluation.describe.views import View
from kernelweave.foundation.array_types import Floats, Ints, Matrix

#: Clusters of fewer samples than this are tiny, and those below this share of an equal one.
TINY = 5
TINY_SHARE = 0.1
#: A cluster with more than this share of all samples leaves to the others but fringes.
DOMINANT = 0.9
#: Share of samples nearer to another cluster that is worth a word.
MANY_DOUBTFUL = 0.05


@dataclass(frozen=True, eq=False)
class Tried:
    """Numbers of clusters that were tried.

    Attributes
    ----------
    counts : ndarray of int
        The numbers.
    scores : ndarray of float
        Their scores, larger is better; NaN where there is none.
    score : str
        What the scores are.
    chosen : int
        The number that was chosen.
    """

    counts: Ints
    scores: Floats
    score: str
    chosen: int


def numbers_tried(
    model: Any, given: Mapping[int, float | None] | None, criterion: str, n_clusters: int
) -> Tried | None:
    """Return the numbers of clusters that the caller tried, or the model; None where there are fewer than two."""
    if given is not None and len(given) > 1:
        counts = sorted(given)
        scores = [np.nan if given[k] is None else float(given[k]) for k in counts]  # type: ignore[arg-type]
        return Tried(np.array(counts), np.array(scores), criterion, n_clusters)
    path = getattr(model, "n_clusters_path_", None)
    if not path or len(path["n_clusters"]) < 2:
        return None
    return Tried(np.asarray(path["n_clusters"]), np.asarray(path["gap"], dtype=np.float64), "clearness", n_clusters)


def tiny_clusters(sizes: Ints) -> tuple[int, ...]:
    """Return the clusters that are small in absolute terms or compared with an equal share."""
    least = max(TINY, TINY_SHARE * sizes.sum() / len(sizes))
    return tuple(np.flatnonzero((sizes > 0) & (sizes < least)).tolist()) if len(sizes) > 1 else ()


def doubtful_share(silhouettes: Silhouettes | None) -> float:
    """Return the share of judged samples that lie nearer to another cluster; NaN where none were judged."""
    if silhouettes is None or not silhouettes.judged.any():
        return np.nan
    return float((silhouettes.values[silhouettes.judged] < 0).mean())


def share_tied_elsewhere(A: Matrix, labels: Ints, n_clusters: int) -> float:
    """Return the share of the nodes of a graph whose ties to some other cluster weigh more than those to their own."""
    n = len(labels)
    members = sp.csr_array((np.ones(n), (np.arange(n), labels)), shape=(n, n_clusters))
    ties = sp.csr_array(sp.csr_array(A) @ members).tocoo()
    own = np.zeros(n)
    most = np.zeros(n)
    inside = ties.col == labels[ties.row]
    own[ties.row[inside]] = ties.data[inside]
    np.maximum.at(most, ties.row[~inside], ties.data[~inside])
    return float((most > own).mean())


def views_for_and_against(
    agreement: Sequence[float], weights: Sequence[float], silhouettes: Sequence[float]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the views that carry the clusters and those that do not show them.

    By the model's own account of how far each view follows the clusters where it gives one, with the bounds of its
    warnings. Otherwise views carry clusters with at least an equal share of learned weights, or with at least half the
    largest silhouette where weights are equal or there are none; clusters do not show in views where their mean
    silhouette is negative.
    """
    count = len(silhouettes)
    if count < 2:
        return (), ()
    if len(agreement) == count and np.isfinite(agreement).all():
        follows = np.asarray(agreement)
        return _places(follows >= SUPPORTED), _places(follows < IGNORED)
    width = np.asarray(silhouettes, dtype=np.float64)
    against = width < 0
    learned = len(weights) == count and np.ptp(weights) > 1e-9
    carried = np.asarray(weights) >= 1.0 / count if learned else width >= 0.5 * np.nanmax(width, initial=0.0)
    return _places(carried & ~against), _places(against)


def _places(chosen: Any) -> tuple[int, ...]:
    return tuple(np.flatnonzero(chosen).tolist())


def follows_absence(views: Sequence[View], labels: Ints) -> float | None:
    """Return the adjusted mutual information of clusters and of which views samples are in; None where it is small."""
    observed = [view.observed for view in views if view.observed is not None]
    if not observed or len(np.unique(labels)) < 2:
        return None
    pattern = np.unique(np.column_stack(observed), axis=0, return_inverse=True)[1].ravel()
    agreement = float(adjusted_mutual_info_score(pattern, labels))
    return agreement if agreement > AGREES_WITH_ABSENCE else None
