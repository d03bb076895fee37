"""The demonstration: five views of handwritten digits, clustered one by one and together.

The digits ship with scikit-learn; nothing is downloaded and no file is written.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.cluster import KMeans

from kernelweave.datasets import load_multiview_digits, standardize
from kernelweave.estimators import GlobalKernelKMeans, KernelKMeans
from kernelweave.foundation._random import streams
from kernelweave.foundation._typing import Array, Ints
from kernelweave.metrics import adjusted_rand_index, normalized_mutual_info
from kernelweave.operators import CompositeKernel, fit_kernel, unit_distance
from kernelweave.solvers import best_of, kernel_kmeans, start_labels

K, STARTS, SEED = 10, 10, 0
#: Kernel width: the median distance between samples.
WIDTH = {"gamma": "median"}


@dataclass(frozen=True)
class Outcome:
    """One line of the table."""

    method: str
    nmi: float
    ari: float
    seconds: float


def demo(quiet: bool = False) -> None:
    """Cluster the digits with every method there is and print how well each finds the ten classes."""
    console, digits = Console(), load_multiview_digits()
    views = {name: standardize(block) for name, block in digits.views.items()}
    if not quiet:
        sizes = ", ".join(f"{name} {block.shape[1]}" for name, block in views.items())
        console.print(
            f"[bold]{len(digits.target):,} handwritten digits[/bold] in {len(views)} views ({sizes} features)"
        )
    outcomes = list(_run(views, digits.target, quiet))
    console.print(_table(outcomes))
    if not quiet:
        best = max(outcomes, key=lambda outcome: outcome.nmi)
        console.print(f"Best: {best.method}. NMI and ARI compare with the true digits; 1 is perfect, ARI 0 is chance.")


def methods(views: dict[str, Array]) -> dict[str, Callable[[], Ints]]:
    """Return what the demonstration runs, by name."""
    joined = np.hstack(list(views.values()))
    table: dict[str, Callable[[], Ints]] = {
        f"kernel k-means, {name}": lambda X=block: _kernel_kmeans(X)  # type: ignore[misc]
        for name, block in views.items()
    }
    table["k-means (scikit-learn), all views joined"] = lambda: (
        KMeans(K, n_init=STARTS, random_state=SEED).fit(joined).labels_
    )
    table["kernel k-means, all views joined"] = lambda: _kernel_kmeans(joined)
    table["global kernel k-means, all views joined"] = lambda: _global_kernel_kmeans(joined)
    table["kernel k-means, mean of the views' kernels"] = lambda: _mean_kernel(list(views.values()))
    return table


def _run(views: dict[str, Array], target: Ints, quiet: bool) -> Iterator[Outcome]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as progress:
        task = progress.add_task("")
        for name, cluster in methods(views).items():
            progress.update(task, description=name)
            start = time.perf_counter()
            labels = cluster()
            spent = time.perf_counter() - start
            yield Outcome(name, normalized_mutual_info(target, labels), adjusted_rand_index(target, labels), spent)


def _kernel_kmeans(X: Array) -> Ints:
    return KernelKMeans(K, kernel="rbf", kernel_params=WIDTH, n_init=STARTS, random_state=SEED).fit(X).labels_


def _global_kernel_kmeans(X: Array) -> Ints:
    return GlobalKernelKMeans(K, search="fast", kernel="rbf", kernel_params=WIDTH).fit(X).labels_


def _mean_kernel(views: list[Array]) -> Ints:
    """Cluster by the mean of the views' kernels, each scaled to unit mean squared distance."""
    parts = [unit_distance(fit_kernel(X, "rbf", WIDTH).operator()) for X in views]
    op, weights = CompositeKernel(parts, np.full(len(parts), 1.0 / len(parts))), np.ones(len(views[0]))
    starts = (start_labels(op, "k-means++", weights, K, rng) for rng in streams(SEED, STARTS))
    return best_of(kernel_kmeans(op, labels, weights, n_clusters=K) for labels in starts).labels


def _table(outcomes: list[Outcome]) -> Table:
    table = Table("method")
    for heading in ("NMI", "ARI", "seconds"):
        table.add_column(heading, justify="right")
    best = max(outcome.nmi for outcome in outcomes)
    for outcome in outcomes:
        style = "bold green" if outcome.nmi == best else None
        table.add_row(outcome.method, f"{outcome.nmi:.3f}", f"{outcome.ari:.3f}", f"{outcome.seconds:.2f}", style=style)
    return table
