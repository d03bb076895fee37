"""The one gate through which data enter: samples, views, weights and labels."""

from kernelweave.inputs._files import read_tables
from kernelweave.inputs._graphs import read_affinity
from kernelweave.inputs._samples import check_cluster_count, read_centers, read_labels, read_samples, read_weights
from kernelweave.inputs._tables import Table, TextFormat, align_tables
from kernelweave.inputs._views import (
    Views,
    as_views,
    is_multi_view,
    per_view,
    read_view_weights,
    read_views,
    split_columns,
)

__all__ = [
    "Table",
    "TextFormat",
    "Views",
    "align_tables",
    "as_views",
    "check_cluster_count",
    "is_multi_view",
    "per_view",
    "read_affinity",
    "read_centers",
    "read_labels",
    "read_samples",
    "read_tables",
    "read_view_weights",
    "read_views",
    "read_weights",
    "split_columns",
]
