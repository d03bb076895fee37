"""What makes a cluster, and what goes with it.

rank_tests   columns inside clusters compared with outside, from one sort for each column
columns      the tables and the names of their columns, as the person knows them
graphs       hubs, conductance and links
records      as a data frame, and as CSV
annotations  columns that were not used           survival   log-rank test and median survival
explanation  the result: records, table, words    explaining the function that makes it

Which samples are typical or borderline comes from :mod:`kernelweave.evaluation.describe`.
"""

from kernelweave.evaluation.explain.annotations import AnnotationTable, Association, explain_annotations
from kernelweave.evaluation.explain.explaining import explain_clusters
from kernelweave.evaluation.explain.explanation import ClusterExplanation, ColumnEffect, ViewExplanation
from kernelweave.evaluation.explain.graphs import GraphExplanation

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
