"""Choosing what an estimator leaves open: parameters and the number of clusters, without true labels."""

from kernelweave.evaluation.model_selection.annealing import AnnealingSearch
from kernelweave.evaluation.model_selection.choice import ChosenClusters, choose_n_clusters
from kernelweave.evaluation.model_selection.criteria import score_clustering
from kernelweave.evaluation.model_selection.number_of_clusters import (
    SuggestedClusters,
    reference_inertia_paths,
    suggest_n_clusters,
)
from kernelweave.evaluation.model_selection.scorer import SilhouetteScorer

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
