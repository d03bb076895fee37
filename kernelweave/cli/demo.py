"""The demonstration: five views of handwritten digits, clustered one by one and together, with weights of the views.

The digits ship with scikit-learn; nothing is downloaded and no file is written.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.cluster import KMeans, SpectralClustering

from kernelweave.datasets import load_multiview_digits, standardize
from kernelweave.estimators import (
    GraphFusionClustering,
    KernelKMeans,
    MultiViewKernelKMeans,
    MultiViewSpectralClustering,
)
from kernelweave.evaluation.describe.results import verdict_of
from kernelweave.foundation.array_types import Array, Floats
from kernelweave.metrics import adjusted_rand_index, normalized_mutual_info

K = 10
SEED = 0
#: Kernel width: the median distance between samples.
WIDTH = {"gamma": "median"}
#: Graphs of neighbours, divided by degrees: what the guide recommends where nothing is known about the views.
GRAPHS: dict[str, Any] = {
    "kernel": "nearest_neighbors",
    "kernel_params": {"weights": "self_tuning", "symmetrize": "max"},
    "normalize": "degrees",
}


@dataclass(frozen=True)
class Row:
    """One row of the tables."""

    method: str
    nmi: float
    ari: float
    seconds: float
    view_weights: Floats | None = None
    verdict: str | None = None


def demo(quiet: bool = False) -> None:
    """Cluster the digits by single views and by all, and print how well each does and the weights of the views."""
    console = Console()
    digits = load_multiview_digits()
    views = digits.views
    if not quiet:
        sizes = ", ".join(f"{name} {block.shape[1]}" for name, block in views.items())
        console.print(
            f"[bold]{len(digits.target):,} handwritten digits[/bold] in {len(views)} views ({sizes} features)"
        )
    rows = list(_run(views, digits.target, quiet))
    console.print(_table(rows))
    console.print(_weights(rows, list(views)))
    if not quiet:
        console.print("NMI and ARI measure agreement with the true digits; 1 is perfect, ARI 0 is chance.")
        verdicts = [row.verdict for row in rows if row.verdict]
        if verdicts:
            console.print(f"The number of clusters according to graph fusion: {verdicts[-1]}")


def methods(views: dict[str, Array]) -> dict[str, Callable[[], Any]]:
    """Return the fits of the demonstration, by name."""
    raw = views
    views = {name: standardize(block) for name, block in raw.items()}
    joined = np.hstack(list(views.values()))
    options: dict[str, Any] = {"random_state": SEED}
    table: dict[str, Callable[[], Any]] = {
        f"kernel k-means, {name}": lambda X=block: KernelKMeans(K, kernel_params=WIDTH, **options).fit(X)  # type: ignore[misc]
        for name, block in views.items()
    }
    table["k-means (scikit-learn), all views joined"] = lambda: KMeans(K, n_init=10, **options).fit(joined)
    table["spectral (scikit-learn), neighbours of all views joined"] = lambda: SpectralClustering(
        K, affinity="nearest_neighbors", **options
    ).fit(joined)
    table["kernel k-means, all views joined"] = lambda: KernelKMeans(K, kernel_params=WIDTH, **options).fit(joined)
    multi = {"kernel_params": WIDTH, **options}
    table["multi-view kernel k-means, equal weights"] = lambda: MultiViewKernelKMeans(
        K, view_weights="uniform", **multi
    ).fit(views)
    table["multi-view kernel k-means, learned weights"] = lambda: MultiViewKernelKMeans(K, p=1.5, **multi).fit(views)
    table["multi-view spectral clustering of graphs"] = lambda: MultiViewSpectralClustering(
        K, p=5, **GRAPHS, **options
    ).fit(views)
    table["graph fusion, the default"] = lambda: GraphFusionClustering(K, **options).fit(raw)
    table["graph fusion, number of clusters chosen"] = lambda: GraphFusionClustering(**options).fit(raw)
    return table


def _run(views: dict[str, Array], target: Any, quiet: bool) -> Iterator[Row]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True, quiet=quiet), transient=True, disable=quiet) as progress:
        task = progress.add_task("")
        for name, fit in methods(views).items():
            progress.update(task, description=name)
            start = time.perf_counter()
            model = fit()
            seconds = time.perf_counter() - start
            scores = normalized_mutual_info(target, model.labels_), adjusted_rand_index(target, model.labels_)
            yield Row(name, *scores, seconds, getattr(model, "view_weights_", None), verdict_of(model))


def _table(rows: list[Row]) -> Table:
    table = Table("method")
    for heading in ("NMI", "ARI", "seconds"):
        table.add_column(heading, justify="right")
    best = max(row.nmi for row in rows)
    for row in rows:
        style = "bold green" if row.nmi == best else None
        table.add_row(row.method, f"{row.nmi:.3f}", f"{row.ari:.3f}", f"{row.seconds:.2f}", style=style)
    return table


def _weights(rows: list[Row], names: list[str]) -> Table:
    with_weights = [row for row in rows if row.view_weights is not None]
    table = Table("weight of view", *(row.method for row in with_weights))
    for name, weights in zip(names, zip(*(row.view_weights for row in with_weights), strict=True), strict=False):
        table.add_row(name, *(f"{weight:.2f}" for weight in weights))
    return table
