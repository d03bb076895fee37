"""A number of clusters by a criterion of the fitted clustering."""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from tqdm import tqdm

from kernelweave.estimators.graph.fusion_views import view_types
from kernelweave.estimators.graph.structure import Judge, verdict
from kernelweave.evaluation.describe.clustering import final_step
from kernelweave.evaluation.describe.views import given_views, is_text
from kernelweave.evaluation.model_selection.criteria import check_clusterer, judge_for
from kernelweave.evaluation.sampling import MOST_JUDGED
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.random_streams import RandomState
from kernelweave.inputs import Views

# What the choice by clearness is told of a view, by what the view holds.
_TYPES = {"features": "auto", "kernel": "kernel", "graph": "graph"}


@dataclass(frozen=True, eq=False)
class ChosenClusters:
    """A number of clusters chosen by a criterion, with the scores of the others.

    Attributes
    ----------
    n_clusters : int
        The number with the best score, the smallest in case of ties; with ``criterion="clearness"`` 1 if no clusters
        were found.
    candidates : ndarray of int
        The numbers tried.
    scores : ndarray of float
        Their scores, NaN where the estimator refused the number.
    criterion : str
        The criterion's name.
    best_estimator : estimator
        The fitted estimator with the best score.
    confidence : {"high", "moderate", "low", "none"} or None
        How certain the number is; only with ``criterion="clearness"``.
    verdict : str or None
        The same in a sentence.
    """

    n_clusters: int
    candidates: Ints
    scores: Floats
    criterion: str
    best_estimator: Any
    confidence: str | None = None
    verdict: str | None = None


def choose_n_clusters(
    estimator: Any,
    X: Any,
    n_clusters: Iterable[int] = range(2, 11),
    *,
    criterion: Any = "silhouette",
    eta: float = 0.75,
    metric: str = "euclidean",
    sample_size: int | None = MOST_JUDGED,
    random_state: RandomState = None,
    verbose: int = 0,
) -> ChosenClusters:
    """Fit an estimator with several numbers of clusters and choose one by a criterion.

    Parameters
    ----------
    estimator : estimator
        Any clusterer with ``n_clusters``, or a pipeline that ends in one. It is cloned, never changed.
    X : array-like or views
        What the estimator takes.
    n_clusters : iterable of int, default=range(2, 11)
        The numbers to try, each at least 2.
    criterion : str or callable, default="silhouette"
        As in :func:`score_clustering`, or ``"clearness"``: how much the cut of a neighbour graph stands out against
        data without clusters, as in :class:`~kernelweave.GraphFusionClustering`. It uses only X, fits the estimator
        once, distinguishes noise from clusters, and is not misled by the silhouettes of one view.
    eta, metric, sample_size, random_state
        As in :func:`score_clustering`.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    chosen : ChosenClusters
        The number, the scores and the fitted estimator.

    See Also
    --------
    AnnealingSearch : Searches the number of clusters together with other parameters.
    suggest_n_clusters : Reads the number off an inertia path.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from kernelweave import KernelKMeans
    >>> from kernelweave.model_selection import choose_n_clusters
    >>> X, _ = make_blobs(90, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    >>> choose_n_clusters(KernelKMeans(random_state=0), X, range(2, 7)).n_clusters
    3
    """
    check_clusterer(estimator)
    if not isinstance(n_clusters, Iterable):
        raise ParameterError(f"n_clusters={n_clusters!r} is one number; give several, such as range(2, 11).")
    candidates = list(n_clusters)
    bad = [k for k in candidates if isinstance(k, bool) or not isinstance(k, Integral) or k < 2]
    if bad or not candidates:
        fault = f"n_clusters holds {bad[0]!r}" if bad else "n_clusters is empty"
        raise ParameterError(f"{fault}; give integers of at least 2: one cluster cannot be judged.")
    candidates = sorted({int(k) for k in candidates})
    if is_text(criterion, "clearness"):
        return _by_clearness(estimator, X, candidates, random_state)
    judge = judge_for(estimator, X, criterion, eta, metric, sample_size, random_state)
    scores = np.full(len(candidates), np.nan)
    best: Any = None
    refused: ValueError | None = None
    for i, k in enumerate(tqdm(candidates, desc="numbers of clusters", disable=not verbose)):
        model = clone(estimator)
        final_step(model).set_params(n_clusters=k)
        try:
            scores[i] = judge(model.fit(X))
        except ValueError as error:
            refused = refused or error
            continue
        if best is None or scores[i] > np.nanmax(scores[:i], initial=-np.inf):
            best = model
    if best is None:
        raise refused if refused is not None else ParameterError("n_clusters could not be chosen.")
    name = criterion if isinstance(criterion, str) else getattr(criterion, "__name__", "criterion")
    chosen = candidates[int(np.nanargmax(scores))]
    return ChosenClusters(chosen, np.array(candidates), scores, name, best)


def _by_clearness(estimator: Any, X: Any, candidates: list[int], random_state: RandomState) -> ChosenClusters:
    """Choose the number from a graph of neighbours, and fit the estimator with it."""
    model = clone(estimator)
    prepared = model[:-1].fit_transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X
    given = given_views(final_step(model), prepared)
    types = [_TYPES.get(view.kind) for view in given]
    if None in types:
        raise ParameterError(
            f"criterion='clearness' needs features, kernels or a graph, and X holds {given[types.index(None)].kind}. "
            "Use criterion='silhouette'."
        )
    views = Views(tuple(view.name for view in given), tuple(view.block for view in given))
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    count = Judge(views, view_types(types, views), seed).count(1, max(candidates))
    tried = dict(zip(count.counts.tolist(), count.gaps.tolist(), strict=True))
    scores = np.array([tried.get(k, np.nan) for k in candidates])
    final_step(model).set_params(n_clusters=count.n_clusters)
    sentence = verdict(count, views.n_samples)
    fitted = model.fit(X)
    return ChosenClusters(
        count.n_clusters, np.array(candidates), scores, "clearness", fitted, count.confidence, sentence
    )
