"""What distinguishes clusters: columns, words, hubs, columns that were not used, and a line on every sample."""

from kernelweave.evaluation.describe import SampleDescriptions, describe_samples
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
    "SampleDescriptions",
    "ViewExplanation",
    "describe_samples",
    "explain_annotations",
    "explain_clusters",
]
