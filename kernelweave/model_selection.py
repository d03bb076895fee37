"""Choosing the number of clusters from an inertia path."""

from kernelweave.evaluation.model_selection import (
    SuggestedClusters,
    reference_inertia_paths,
    suggest_n_clusters,
)

__all__ = ["SuggestedClusters", "reference_inertia_paths", "suggest_n_clusters"]
