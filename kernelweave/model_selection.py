"""Choosing parameters and the number of clusters without true labels: annealing, criteria, inertia paths."""

from kernelweave.evaluation.model_selection import (
    AnnealingSearch,
    ChosenClusters,
    SilhouetteScorer,
    SuggestedClusters,
    choose_n_clusters,
    reference_inertia_paths,
    score_clustering,
    suggest_n_clusters,
)

__all__ = [
    "AnnealingSearch",
    "ChosenClusters",
    "SilhouetteScorer",
    "SuggestedClusters",
    "choose_n_clusters",
    "reference_inertia_paths",
    "score_clustering",
    "suggest_n_clusters",
]
