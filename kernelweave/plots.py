"""Plots of results, in the style of scikit-learn's displays."""

from kernelweave.evaluation.plots import (
    BoundaryDisplay,
    ClusterCountDisplay,
    ClusterHeatmapDisplay,
    ConfusionDisplay,
    DecisionDisplay,
    EmbeddingDisplay,
    ExemplarDisplay,
    ExponentDisplay,
    InertiaPathDisplay,
    KernelMatrixDisplay,
    ObjectivePathDisplay,
    ScoreDisplay,
    SearchTraceDisplay,
    SilhouetteDisplay,
    StartComparisonDisplay,
    ViewWeightsDisplay,
)

__all__ = [
    "BoundaryDisplay",
    "ClusterCountDisplay",
    "ClusterHeatmapDisplay",
    "ConfusionDisplay",
    "DecisionDisplay",
    "EmbeddingDisplay",
    "ExemplarDisplay",
    "ExponentDisplay",
    "InertiaPathDisplay",
    "KernelMatrixDisplay",
    "ObjectivePathDisplay",
    "ScoreDisplay",
    "SearchTraceDisplay",
    "SilhouetteDisplay",
    "StartComparisonDisplay",
    "ViewWeightsDisplay",
]
