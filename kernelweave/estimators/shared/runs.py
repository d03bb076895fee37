"""Runs from several starts: what each starts from, how they are computed, and which is kept."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.foundation.progress import track
from kernelweave.foundation.random_streams import streams
from kernelweave.foundation.threads import cluster_map, parallel_map
from kernelweave.inputs import read_labels
from kernelweave.kernels.operator import KernelOperator
from kernelweave.solvers.kmeans.starts import start_labels

Start = TypeVar("Start")
Result = TypeVar("Result")


def run_starts(
    estimator: Any,
    op: KernelOperator,
    run: Callable[[Start, Keeper], Result],
    starts: Sequence[Start],
    X: Any,
    y: Any,
    kind: type[Result] | None = None,
) -> Iterator[Result]:
    """Yield the result of every start in order, computed side by side, with progress reported.

    A run gets what it starts from and a keeper; of results of a ``kind``, a dataclass, the ends are kept. Kernels
    computed again at every pass use all threads for one start already, and hold a tile for each. Inside
    ``joblib.parallel_config("dask")`` starts go to the workers of a cluster, unless a checkpoint is kept here.
    """
    keeper = estimator._keeper
    kept = kept_run(keeper, run, kind)
    tasks = list(enumerate(starts))
    if op.recomputed or op.backend.one_run_at_a_time:
        results: Iterator[Result] = map(kept, tasks)
    else:
        results = (cluster_map if keeper is NOTHING else parallel_map)(kept, tasks)
    return track(estimator, results, total=len(starts), what="starts", X=X, y=y)


def kept_run(
    keeper: Keeper, run: Callable[[Start, Keeper], Result], kind: type[Result] | None
) -> Callable[[tuple[int, Start]], Result]:
    """Return the function of number and start that runs a start, or returns what is known about its end."""

    def kept(task: tuple[int, Start]) -> Result:
        number, start = task
        part = keeper.part(f"start {number}")
        return run(start, part) if kind is None else part.once(kind, lambda: run(start, part))

    return kept


def label_starts(init: Any, n_init: int, random_state: Any, n_samples: int, n_clusters: int) -> list[Any]:
    """Return what each run starts from: a generator for each draw of a named ``init``, or the labels it holds."""
    if isinstance(init, str):
        return list(streams(random_state, n_init))
    return [read_labels(init, n_samples, n_clusters)]


def first_labels(
    op: KernelOperator, init: Any, weights: Floats, n_clusters: int
) -> Callable[[np.random.Generator | Ints], Ints]:
    """Return the function that makes labels of what a run starts from: a generator draws them, labels stay."""

    def labels(start: np.random.Generator | Ints) -> Ints:
        if isinstance(start, np.random.Generator):
            return start_labels(op, init, weights, n_clusters, start)
        return start

    return labels
