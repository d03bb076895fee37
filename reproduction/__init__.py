"""Published tables recomputed by the library: declared, run, reported.

::

    rows/<method>.py           functions that compute the rows of tables
            │
            ▼
    experiments/<table>.py     EXPERIMENTS: data, protocol, printed figures with source, spread and runs
            │ catalogue, select
            ▼
    run_experiments            cells in parallel, each kept on disk as soon as it ends
            │ ExperimentResult: ours, theirs, verdict
            ▼
    as_table · as_markdown · as_json
            │
            ▼
    command.py                 ``python -m reproduction``, or ``kernelweave reproduce`` in a checkout

This package is part of the repository and not of the wheel: it needs data that users of the library lack. It uses the
library; the library does not use it. A new table is a new module in ``experiments/`` and nothing else.
"""

from reproduction.experiment import Cell, Experiment, Printed, Verdict, mean_and_std
from reproduction.experiments import catalogue, select
from reproduction.report import as_json, as_markdown, as_table, list_json, list_markdown, list_table
from reproduction.runner import (
    CacheWarning,
    CellError,
    CellResult,
    ExperimentResult,
    Figure,
    default_cache_dir,
    run_experiment,
    run_experiments,
)

__all__ = [
    "CacheWarning",
    "Cell",
    "CellError",
    "CellResult",
    "Experiment",
    "ExperimentResult",
    "Figure",
    "Printed",
    "Verdict",
    "as_json",
    "as_markdown",
    "as_table",
    "catalogue",
    "default_cache_dir",
    "list_json",
    "list_markdown",
    "list_table",
    "mean_and_std",
    "run_experiment",
    "run_experiments",
    "select",
]
