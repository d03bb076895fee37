"""Choosing what an estimator leaves open: here the number of clusters."""

from kernelweave.evaluation.model_selection._number_of_clusters import (
    SuggestedClusters,
    reference_inertia_paths,
    suggest_n_clusters,
)

__all__ = ["SuggestedClusters", "reference_inertia_paths", "suggest_n_clusters"]
