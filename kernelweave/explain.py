"""What sets clusters apart: columns, words, hubs, typical samples, and columns that were not used."""

from kernelweave.evaluation.explain import (
    AnnotationTable,
    Association,
    ClusterExplanation,
    ColumnEffect,
    GraphExplanation,
    ViewExplanation,
    explain_annotations,
    explain_clusters,
)

__all__ = [
    "AnnotationTable",
    "Association",
    "ClusterExplanation",
    "ColumnEffect",
    "GraphExplanation",
    "ViewExplanation",
    "explain_annotations",
    "explain_clusters",
]
