"""Which way the kernel of a view goes: stored, computed again tile by tile, explicit features, or a graph.

The rules are those of ``kernels/spec/fitting.py``, asked with a few samples of noise where the kernel decides, and its
limits for the size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kernelweave.estimators.shared.elsewhere import limit_of
from kernelweave.evaluation.plan import rates
from kernelweave.evaluation.plan.machine import Tables, Workers
from kernelweave.foundation.errors import KernelError, ParameterError
from kernelweave.foundation.threads import thread_count
from kernelweave.kernels.spec.fitting import FeatureMap, GraphFit, fit_kernel

STORED = "stored"
BLOCKWISE = "blockwise"
FEATURES = "features"
GRAPH = "graph"
GIVEN = "given"
# Columns of the samples that a kernel is tried with.
_TRIED = 8


@dataclass(frozen=True)
class Job:
    """A fit to be planned."""

    estimator: Any
    n: int
    widths: tuple[int, ...]
    k: int
    workers: Workers | None = None
    tables: Tables | None = None

    def setting(self, name: str, default: Any = None) -> Any:
        """Return a parameter of the estimator."""
        return getattr(self.estimator, name, default)

    @property
    def views(self) -> int:
        """Number of views."""
        return len(self.widths)

    @property
    def width(self) -> int:
        """Columns of all views together."""
        return sum(self.widths)

    @property
    def input_bytes(self) -> int:
        """Bytes of the samples, in double precision."""
        return 8 * self.n * self.width

    @property
    def stored_bytes(self) -> int:
        """Bytes of the samples as they are stored."""
        return self.n * self.width * self.value_bytes

    @property
    def value_bytes(self) -> int:
        """Bytes of a stored value."""
        return 8 if self.tables is None else self.tables.value_bytes

    @property
    def in_blocks(self) -> bool:
        """Whether rows are in blocks: on workers, or in files larger than the memory limit."""
        return self.workers is not None or self.streams

    @property
    def streams(self) -> bool:
        """Whether rows are read from files at every pass: where all tables are larger than the memory limit."""
        if self.workers is not None or self.tables is None or not self.tables.on_disk:
            return False
        together = self.n * sum(self.widths) * self.value_bytes
        return bool(self.estimator._takes_blocks) and together > self.block_limit

    @property
    def block_limit(self) -> float:
        """Bytes that rows in blocks and their features may take in memory."""
        return limit_of(self.estimator) * 2**20

    @property
    def threads(self) -> int:
        """Threads in force."""
        return thread_count()

    @property
    def starts(self) -> int:
        """Number of runs."""
        named = isinstance(self.setting("init", "k-means++"), str)
        return int(self.setting("n_init", 1)) if named else 1

    @cached_property
    def limit(self) -> float:
        """Bytes that ``memory_limit`` allows."""
        limit = self.setting("memory_limit", np.inf)
        return (np.inf if limit is None else float(limit)) * 2**20


@dataclass(frozen=True)
class Way:
    """How the kernel of a view, or of several views side by side, is kept."""

    kind: str
    kernel: Any
    params: tuple[tuple[str, Any], ...]
    width: int  # of features: after the map; else columns of the view
    psd: bool = True

    @property
    def pairs(self) -> bool:
        """Whether all pairs of samples count."""
        return self.kind in (STORED, BLOCKWISE, GIVEN)

    def kernel_bytes(self, n: int) -> int:
        """Return what keeping it takes besides the samples."""
        if self.kind == STORED:
            return 8 * n * n
        if self.kind == FEATURES:
            return 8 * n * self.width
        return 24 * 2 * 30 * n if self.kind == GRAPH else 0

    def map_seconds(self, job: Job) -> float:
        """Return the seconds of the features of a sample where they approximate a kernel, else 0."""
        method = job.setting("approximation")
        if method is None:
            return 0.0
        return rates.map_seconds(method, self.kernel, self.params, job.width, self.width)

    def units(self, n: int) -> float:
        """Return by what the rates of sums and moves are multiplied."""
        return float(n) * n if self.pairs else float(n)

    def rates(self, n: int, k: int) -> rates.KernelRates:
        """Return measured rates."""
        if self.kind == FEATURES:
            return rates.feature_rates(self.width, k, n)
        if self.kind == GRAPH:
            return rates.graph_rates(self.kernel, self.params, self.width, k, n)
        if self.kind == GIVEN:
            return rates.given_rates(k, n)
        found: rates.KernelRates = rates.pair_rates(self.kernel, self.params, self.width, k, n, self.kind == STORED)
        return found


def ways(job: Job, shared_limit: bool = False) -> list[Way]:
    """Return how the kernel of every view is kept; features of several views are one matrix.

    ``shared_limit`` divides the memory limit among the views.
    """
    if not hasattr(job.estimator, "kernel"):  # of vectors
        return [Way(FEATURES, "linear", (), job.width)]
    limit = job.limit / job.views if shared_limit else job.limit
    found = [
        _way(job, width, kernel, params, limit)
        for width, kernel, params in zip(
            job.widths, _each(job, "kernel", "rbf"), _each(job, "kernel_params", None), strict=True
        )
    ]
    if len(found) > 1 and all(way.kind == FEATURES for way in found):
        return [Way(FEATURES, found[0].kernel, found[0].params, sum(way.width for way in found))]
    return found


def _each(job: Job, name: str, default: Any) -> Sequence[Any]:
    """Return a parameter view by view."""
    value = job.setting(name, default)
    if isinstance(value, list | tuple):
        if len(value) != job.views:
            raise ParameterError(f"{name} has {len(value)} entries for {job.views} views; give one per view, or one.")
        return value
    if name == "kernel" and isinstance(value, Mapping):
        return list(value.values())
    return [value] * job.views


def _way(job: Job, width: int, kernel: Any, params: Any, limit: float) -> Way:
    options = tuple((params or {}).items())
    storage = job.setting("storage", "auto")
    if isinstance(kernel, str) and kernel == "precomputed":
        return Way(GIVEN, kernel, (), width)
    if job.setting("approximation") is not None:
        return Way(FEATURES, kernel, options, min(int(job.setting("n_components", 200)), job.n))
    fits = 8.0 * job.n**2 <= limit
    kind, wide = _kind_of(kernel, options, width)
    if kind == FEATURES:
        stored = storage == "dense" or (storage == "auto" and width > job.n and fits)
        return Way(STORED if stored else FEATURES, kernel, options, wide)
    if kind == STORED:
        stored = not job.in_blocks and (storage == "dense" or (storage == "auto" and fits))
        return Way(STORED if stored else BLOCKWISE, kernel, options, width)
    return Way(GRAPH, kernel, options, width)


def _kind_of(kernel: Any, params: tuple[tuple[str, Any], ...], width: int) -> tuple[str, int]:
    """Return what kind of kernel a name, object or function is, and how many features it has."""
    tried = min(width, _TRIED)
    samples = np.random.default_rng(0).random((_TRIED, tried))
    neighbors = {"n_neighbors": 3} if kernel in ("nearest_neighbors", "self_tuning") else {}
    try:
        fitted = fit_kernel(samples, kernel, dict(params) | neighbors)
    except (KernelError, ParameterError) as error:
        if "unknown" in str(error) or "not understood" in str(error):
            raise
        return STORED, width  # parameters that belong to the columns of the data
    if isinstance(fitted, FeatureMap):
        return FEATURES, width + fitted.features.shape[1] - tried
    return (GRAPH if isinstance(fitted, GraphFit) else STORED), width
