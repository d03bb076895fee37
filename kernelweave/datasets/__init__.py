"""Data to try the methods on: synthetic sets of the source documents, digits in five views, benchmark files, graphs.

Generators and loaders return a :class:`sklearn.utils.Bunch` with ``data`` or ``views``, ``target`` and
``DESCR``; the rings return ``(X, y)``, edge lists a ``graph``. Benchmark files are read from the directory
named by the environment variable ``KERNELWEAVE_DATA``; :func:`fetch` downloads those that are public.
"""

from kernelweave.datasets.benchmark import list_benchmarks, load_benchmark
from kernelweave.datasets.digits import load_multiview_digits
from kernelweave.datasets.fetching import fetch
from kernelweave.datasets.graphml import load_graphml, load_market_graph
from kernelweave.datasets.graphs import load_edge_list
from kernelweave.datasets.images import make_tissue_image, pixel_features
from kernelweave.datasets.metis import load_metis
from kernelweave.datasets.rings import make_ten_rings, make_two_rings
from kernelweave.datasets.scaling import standardize, unit_rows
from kernelweave.datasets.views import (
    make_corrupted_views,
    make_mvksc_synth1,
    make_mvksc_synth2,
    make_two_view_toy,
)

__all__ = [
    "fetch",
    "list_benchmarks",
    "load_benchmark",
    "load_edge_list",
    "load_graphml",
    "load_market_graph",
    "load_metis",
    "load_multiview_digits",
    "make_corrupted_views",
    "make_mvksc_synth1",
    "make_mvksc_synth2",
    "make_ten_rings",
    "make_tissue_image",
    "make_two_rings",
    "make_two_view_toy",
    "pixel_features",
    "standardize",
    "unit_rows",
]
