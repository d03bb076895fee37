"""Seconds of the pieces that fits are made of, measured on this machine at the number of threads in force.

Every piece is the loop that a fit runs, on a few thousand samples of noise.
"""

import itertools
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import eigh

from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.config import config_context
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.neighbors import nearest_others
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import approximate_kernel, fit_kernel
from kernelweave.kernels.weighted_sum import composite
from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
from kernelweave.solvers.spectral.eigenvectors import spectrum

# Samples of a measurement where all pairs are computed, and numbers of one where features are.
PAIRED_ROWS = 3000
FEATURE_NUMBERS = 2**21
MOST_ROWS = 2**16
# Columns beyond which the time of a kernel value is proportional to them.
WIDE = 512
# Clusters beyond which the time of an assignment is proportional to them.
MANY = 256
# Seconds a measurement may go on being repeated.
PATIENCE = 0.12
PILOT_PATIENCE = 0.3
# Samples of the measurement of what a step costs besides its arithmetic, of eigenvectors and of neighbours.
FEW_ROWS = 60
SPECTRAL_ROWS = 1500
DECOMPOSED = 400
SEARCHED = 1500
# Samples of the measurement of features that approximate a kernel, and bytes of that of the disk.
MAPPED = 2000
DISK_BYTES = 2**25


@dataclass(frozen=True)
class KernelRates:
    """Seconds for each kernel value of a kernel of all pairs, or for each sample of a kernel of features.

    The time of ``assign`` is for each sample in both cases.
    """

    fill: float
    sweep: float  # sums of all clusters, recomputed
    gains: float  # of all samples as new centres; always for each pair of samples
    move: float  # update of the sums; for each value in the rows of moved samples
    assign: float
    columns: float  # some columns, for each of their values


def mean_seconds(work: Callable[[], object], patience: float) -> float:
    """Return the mean seconds of some repetitions without the slowest; the first, which may compile, does not count.

    The mean, not the least: what else the machine is busy with slows a fit down as well.
    """
    work()
    taken: list[float] = []
    while not taken or sum(taken) < patience:
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    kept = sorted(taken)[: max(1, len(taken) - len(taken) // 4)]
    return sum(kept) / len(kept)


def noise(rows: int, width: int) -> Floats:
    """Return samples without structure, positive so that every kernel takes them."""
    return np.random.default_rng(0).random((rows, width))


@cache
def pair_rates(kernel: Any, params: tuple[tuple[str, Any], ...], width: int, k: int, rows: int, kept: bool) -> Any:
    """Return the rates of a kernel of all pairs that is stored (``kept``) or computed again at every pass."""
    rows = min(rows, PAIRED_ROWS)
    wide = min(width, WIDE)
    fitted = fit_kernel(noise(rows, wide), kernel, dict(params))
    op = fitted.operator("dense" if kept else "blockwise")
    fill = mean_seconds(lambda: fitted.operator("dense"), PATIENCE) / rows**2 if kept else 0.0
    found = _operator_rates(op, k, rows, rows**2, fill)
    if kept:
        return _wider(found, width / wide, ("fill",))
    return _wider(found, width / wide, ("sweep", "gains", "move", "columns"))


@cache
def given_rates(k: int, rows: int) -> KernelRates:
    """Return the rates of a kernel matrix that the user gives."""
    rows = min(rows, PAIRED_ROWS)
    op = fit_kernel(noise(rows, 8), "rbf", {"gamma": 1.0}).operator("dense")
    return _operator_rates(op, k, rows, rows**2, 0.0)


@cache
def feature_rates(width: int, k: int, rows: int) -> KernelRates:
    """Return the rates of inner products of features."""
    wide = min(width, 4 * WIDE)
    few = min(k, MANY)
    rows = max(2, few, min(rows, MOST_ROWS, FEATURE_NUMBERS // wide))
    Phi = noise(rows, wide)
    found = _operator_rates(FeatureKernel(Phi), few, rows, rows, 0.0, FeatureKernel(Phi[:SEARCHED]))
    copy = mean_seconds(lambda: Phi - Phi.mean(axis=0), PATIENCE) / rows
    found = KernelRates(copy, found.sweep, found.gains, found.move, found.assign * k / few, found.columns)
    return _wider(found, width / wide, ("fill", "sweep", "gains", "move", "assign", "columns"))


@cache
def graph_rates(kernel: str, params: tuple[tuple[str, Any], ...], width: int, k: int, rows: int) -> KernelRates:
    """Return the rates of a neighbour graph; ``fill`` is for each pair of samples, the others for each sample."""
    rows = min(rows, SEARCHED)
    wide = min(width, WIDE)
    X = noise(rows, wide)
    fill = mean_seconds(lambda: fit_kernel(X, kernel, dict(params)), PATIENCE) / rows**2
    op = fit_kernel(X, kernel, dict(params)).operator()
    return _wider(_operator_rates(op, k, rows, rows, fill), width / wide, ("fill",))


def _wider(rates: KernelRates, factor: float, names: tuple[str, ...]) -> KernelRates:
    """Return rates for more columns than were measured."""
    changed = {name: getattr(rates, name) * factor for name in names}
    return KernelRates(**(vars(rates) | changed))


def _operator_rates(
    op: KernelOperator, k: int, rows: int, unit: int, fill: float, small: KernelOperator | None = None
) -> KernelRates:
    """Return the rates of an operator; sums and moves for each of ``unit``.

    ``small`` is the operator of fewer samples, where gains of all pairs would take too long.
    """
    k = min(k, rows)
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.arange(k), rng.integers(k, size=rows - k)])
    weights = np.ones(rows)
    moved = rng.permutation(rows)[: max(1, rows // 20)]
    other = labels.copy()
    other[moved] = (labels[moved] + 1) % k
    sweep = mean_seconds(lambda: op.partition(labels, weights, k), PATIENCE) / unit
    partition = op.partition(labels, weights, k)
    assign = mean_seconds(partition.nearest, PATIENCE) / rows
    pair = itertools.cycle([other, labels])

    def move() -> None:
        partition.move(partition.moves_to(next(pair)))

    move_seconds = mean_seconds(move, PATIENCE / 2) / (unit * len(moved) / rows)
    few = np.arange(min(4, rows))
    columns = mean_seconds(lambda: op.columns(few), PATIENCE / 2) / (rows * len(few))
    return KernelRates(fill, sweep, _gain_seconds(small or op), move_seconds, assign, columns)


def _gain_seconds(op: KernelOperator) -> float:
    """Return the seconds of the gains of all samples as new centres, for each pair of samples."""
    far = np.ones(op.n_samples)
    diag = op.diag()
    return mean_seconds(lambda: op.candidate_gains(far, far, diag), PATIENCE / 4) / op.n_samples**2


@cache
def step_seconds() -> float:
    """Return what a step of a run costs besides its arithmetic."""
    op = FeatureKernel(noise(FEW_ROWS, 2))
    labels = np.arange(FEW_ROWS) % 5
    weights = np.ones(FEW_ROWS)
    steps = max(1, kernel_kmeans(op, labels, weights, n_clusters=5).n_iter)
    return mean_seconds(lambda: kernel_kmeans(op, labels, weights, n_clusters=5), PATIENCE / 2) / (steps + 1)


@cache
def eigenvector_seconds(kernel: Any, params: tuple[tuple[str, Any], ...], width: int, count: int, rows: int) -> Any:
    """Return the seconds of leading eigenvectors, for each kernel value where all pairs count, else each sample.

    Returns (seconds, True for all pairs).
    """
    rows = min(rows, SPECTRAL_ROWS)
    op = fit_kernel(noise(rows, min(width, WIDE)), kernel, dict(params)).operator("auto", np.inf)
    pairs = op.stored_matrix() is not None
    ways = spectrum(composite([op], np.ones(1)), np.ones(rows))
    taken = mean_seconds(lambda: ways.leading(np.ones(1), min(count, rows - 1), 1e-4), PATIENCE)
    return taken / (rows**2 if pairs else rows), pairs


@cache
def decomposition_seconds() -> float:
    """Return the seconds of all eigenvectors of a matrix, for each of its rows cubed; one thread."""
    A = noise(DECOMPOSED, DECOMPOSED)
    A = A + A.T
    with single_threaded_blas():
        return mean_seconds(lambda: eigh(A, check_finite=False), PATIENCE) / DECOMPOSED**3


@cache
def product_seconds() -> float:
    """Return the seconds of a product of a stored matrix with a vector, for each of its entries."""
    rows = PAIRED_ROWS
    A = noise(rows, rows)
    x = np.ones(rows)
    return max(mean_seconds(lambda: A @ x, PATIENCE / 2), mean_seconds(lambda: A.T @ x, PATIENCE / 2)) / rows**2


@cache
def multiply_seconds() -> float:
    """Return the seconds of a multiplication and addition in a product of matrices."""
    A = noise(DECOMPOSED, DECOMPOSED)
    return mean_seconds(lambda: A @ A, PATIENCE / 4) / DECOMPOSED**3


@cache
def map_seconds(method: Any, kernel: Any, params: tuple[tuple[str, Any], ...], width: int, n_components: int) -> float:
    """Return the seconds of the features of one sample that approximate a kernel."""
    wide = min(width, WIDE)
    few = min(n_components, SEARCHED)
    rows = noise(max(few, MAPPED), wide)
    fitted: Any = approximate_kernel(rows, kernel, dict(params), method=method, n_components=few, random_state=0)
    taken = mean_seconds(lambda: fitted.transform(rows[:MAPPED]), PATIENCE / 2) / len(rows[:MAPPED])
    return taken * width / wide * n_components / few


@cache
def disk_rate(folder: str | None) -> float:
    """Return the bytes per second read from a file in a folder that the system has not cached in memory."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".kernelweave-") as file:
        file.write(np.random.default_rng(0).bytes(DISK_BYTES))
        file.flush()
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        begun = time.perf_counter()
        with open(file.name, "rb", buffering=0) as again:
            while again.read(2**20):
                pass
        return DISK_BYTES / (time.perf_counter() - begun)


@cache
def copy_rate() -> float:
    """Return the bytes per second copied in memory."""
    values = np.ones(2**20)
    return values.nbytes / mean_seconds(values.copy, PATIENCE / 4)


@cache
def neighbor_seconds(width: int, rows: int) -> float:
    """Return the seconds of an exact search of nearest neighbours, for each pair of samples."""
    rows = min(rows, SEARCHED)
    wide = min(width, WIDE)
    X = noise(rows, wide)
    taken = mean_seconds(lambda: nearest_others(X, min(30, rows - 1), np.random.default_rng(0)), PATIENCE)
    return taken / rows**2 * width / wide


@cache
def pilot_seconds(make: Any, settings: tuple[tuple[str, Any], ...], widths: tuple[int, ...], rows: int) -> float:
    """Return the seconds of a small fit of an estimator."""
    import warnings

    rng = np.random.default_rng(0)
    member = rng.integers(4, size=rows)
    views: Any = [rng.standard_normal((4, width))[member] + rng.standard_normal((rows, width)) for width in widths]
    X = views if len(views) > 1 else views[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with config_context(client=None):  # rates are those of this machine
            return mean_seconds(lambda: make(**dict(settings)).fit(X), PILOT_PATIENCE)
