"""The order of methods in a comparison: how far each agrees with the others, and how clear its clusters are.

Silhouettes decide nothing here: they favour the narrowest view, and data without clusters have them as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_mutual_info_score

from kernelweave.estimators.graph.fusion_views import view_types
from kernelweave.estimators.graph.structure import Judge
from kernelweave.foundation.random_streams import streams
from kernelweave.inputs import observed_views
from kernelweave.solvers.graph.cluster_count import NULL_RUNS, NULLS, SOFTENING, cut_shares, sweep

# Differences below this decide nothing.
CLOSE = 0.02
# A mean agreement below this is little more than chance.
LITTLE = 0.2


@dataclass(frozen=True)
class Standing:
    """What speaks for the clusters of one method."""

    agreement: float  # mean adjusted mutual information with the clusters of the other methods; NaN for one method
    clearness: float  # gap of the cut against data without clusters; 0 is no clearer than chance


def standings(
    labels: Sequence[np.ndarray], samples: Any, kind: str, n_clusters: int, seed: int, missing: str = "error"
) -> list[Standing]:
    """Return the standing of every labelling of the same samples; ``missing`` is what becomes of missing cells."""
    judge = Judge(*_judged(samples, kind, missing), seed)
    rngs = streams(seed, NULLS, "reference data")
    counts = np.array([1, n_clusters])
    nulls = [sweep(judge.null_graph(rng), counts, NULL_RUNS, rng).loss()[1] for rng in rngs]
    base = float(np.mean(nulls))
    return [Standing(_agreement(labels, i), base - _loss(judge, labels[i])) for i in range(len(labels))]


def in_order(found: Sequence[Standing]) -> list[int]:
    """Return the positions by agreement and clearness, half each, by rank; the first of equals first."""
    agreement = np.argsort(np.argsort([-each.agreement for each in found], kind="stable"), kind="stable")
    clearness = np.argsort(np.argsort([-each.clearness for each in found], kind="stable"), kind="stable")
    return np.argsort(agreement + clearness, kind="stable").tolist()


def verdict(names: Sequence[str], found: Sequence[Standing]) -> str:
    """Return what the order is worth, in a sentence; names and standings are in order."""
    if len(found) < 2:
        return ""
    mean = float(np.mean([each.agreement for each in found]))
    if mean < LITTLE:
        return f"No clear winner: the methods hardly agree with each other (mean agreement {mean:.2f})."
    first = found[0]
    rivals = [
        name
        for name, each in zip(names[1:], found[1:], strict=True)
        if each.agreement > first.agreement - CLOSE or each.clearness > first.clearness - CLOSE
    ]
    if rivals:
        return f"No clear winner between {', '.join([names[0], *rivals[:-1]])} and {rivals[-1]}."
    return f"{names[0]} comes first: its clusters agree most with the others and are the clearest."


def _agreement(labels: Sequence[np.ndarray], position: int) -> float:
    others = [adjusted_mutual_info_score(labels[position], each) for i, each in enumerate(labels) if i != position]
    return float(np.mean(others)) if others else float("nan")


def _loss(judge: Judge, labels: np.ndarray) -> float:
    """Return log(1 - q + e) of clusters on the judged graph."""
    graph = judge.fused
    codes = np.unique(labels[judge.samples], return_inverse=True)[1]
    k = int(codes.max()) + 1
    if k == 1:
        return float(np.log(1.0 + SOFTENING))
    cut, expected = cut_shares(graph.tocoo(), np.asarray(graph.sum(axis=1)).ravel(), codes, k)
    return float(np.log(max(1.0 - (expected - cut) / (1.0 - 1.0 / k), 0.0) + SOFTENING))


def _judged(samples: Any, kind: str, missing: str) -> tuple[Any, Any]:
    from kernelweave.cli.fitting import VIEW_TYPES

    views = observed_views(samples, missing=missing)
    return views, view_types(VIEW_TYPES.get(kind, "auto"), views)
