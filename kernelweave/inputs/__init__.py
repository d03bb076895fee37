"""The one gate through which data enter: samples, views, weights and labels."""

from kernelweave.inputs.arrays.absence import MISSING, absent_rows, connected_views, takes_absent, takes_missing_cells
from kernelweave.inputs.arrays.graphs import as_edges, read_affinity
from kernelweave.inputs.arrays.samples import check_cluster_count, read_centers, read_labels, read_samples, read_weights
from kernelweave.inputs.arrays.views import (
    Views,
    as_table,
    as_views,
    is_multi_view,
    observed_views,
    per_view,
    read_view_weights,
    read_views,
    row_digests,
    split_columns,
    take_rows,
    views_as_seen,
)
from kernelweave.inputs.files.reading import read_tables
from kernelweave.inputs.files.tables import Table, TextFormat, align_tables

__all__ = [
    "MISSING",
    "Table",
    "TextFormat",
    "Views",
    "absent_rows",
    "align_tables",
    "as_edges",
    "as_table",
    "as_views",
    "check_cluster_count",
    "connected_views",
    "is_multi_view",
    "observed_views",
    "per_view",
    "read_affinity",
    "read_centers",
    "read_labels",
    "read_samples",
    "read_tables",
    "read_view_weights",
    "read_views",
    "read_weights",
    "row_digests",
    "split_columns",
    "take_rows",
    "takes_absent",
    "takes_missing_cells",
    "views_as_seen",
]
