"""Peaks under ``memory_limit``: every estimator that has it, fitted at two sizes with a limit that binds.

At the smaller size the kernels of all views just fit into the limit, at the larger one they take twice as much. Tables
are fitted, and kernel matrices or distances where the estimator takes them, which the limit does not count. Where the
smaller size is refused, the number of samples that would fit, as the refusal says, is fitted too.

All fits run one after the other in a fresh process. What the process holds already (imports, compiled code, buffers of
the linear algebra) is its baseline: it is measured after small fits of the same kind and before the data are made, and
subtracted. So a peak is what the data and the fit take together.
"""

import contextlib
import gc
import json
import re
import warnings
from dataclasses import asdict, dataclass
from inspect import isclass, signature

import numpy as np
from scipy.linalg import cho_factor, eigh
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

import kernelweave
from benchmarks._harness import Row, in_fresh_process
from kernelweave.foundation.errors import DataError, ParameterError
from kernelweave.foundation.memory import return_freed_memory
from kernelweave.foundation.threads import for_ranges

SUITE = "memory_limit"
LIMIT = 16  # MiB
#: What a peak may be above inputs and limit.
SLACK = 0.15
N_VIEWS = 2
N_COLUMNS = 4
#: What kernels take at the two sizes, as a share of the limit.
SHARES = {"small": 0.9, "large": 2.0}
KINDS = ("table", "kernel matrix")
#: Arguments of every fit, where the constructor takes them; all that a fit stores is there after a few steps.
ARGUMENTS = {"n_clusters": 3, "n_init": 1, "max_iter": 5, "random_state": 0}
CODE = """
import sys, json
from benchmarks.memory import measured_here
result = measured_here(json.loads(sys.argv[1]))
"""


@dataclass(frozen=True)
class Peak:
    """What one fit took."""

    estimator: str
    kind: str  # of input
    n_samples: int
    limit: float  # MiB, as all below
    inputs: float
    peak: float  # inputs included
    outcome: str  # "fit", or "refused: " and the message

    @property
    def allowed(self):
        return (self.inputs + self.limit) * (1 + SLACK)

    @property
    def refused(self):
        return self.outcome != "fit"

    @property
    def fitting(self):
        """The number of samples that would fit, as a refusal says."""
        said = re.search(r"([\d,]+) samples would fit", self.outcome)
        return int(said.group(1).replace(",", "")) if said else None


def estimators():
    """Return the public estimators with the parameter, by name."""
    exported = {name: getattr(kernelweave, name) for name in sorted(kernelweave.__all__)}
    return {name: item for name, item in exported.items() if _is_estimator(item) and _has(item, "memory_limit")}


def _is_estimator(item):
    return isclass(item) and issubclass(item, BaseEstimator)


def _has(cls, parameter):
    return parameter in signature(cls).parameters


def _matrix_argument(cls):
    """Return the parameter that says that X is a matrix of similarities or distances, None where there is none."""
    return next((name for name in ("kernel", "metric") if _has(cls, name)), None)


def _settings(cls, kind):
    chosen = {name: value for name, value in ARGUMENTS.items() if _has(cls, name)}
    if kind == "table":
        return chosen
    if _has(cls, "divergence"):
        chosen["divergence"] = "kernel"
        if _has(cls, "weighted"):
            chosen["weighted"] = False
    return chosen | {_matrix_argument(cls): "precomputed"}


def _table(n, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, N_COLUMNS)) + 6.0 * np.eye(3, N_COLUMNS)[np.arange(n) % 3]


def _matrix(n, seed, distances):
    """Return the similarities or the distances of a table, with nothing else of that size on the way."""
    X = _table(n, seed)
    K = np.empty((n, n))
    np.matmul(X, X.T, out=K)
    K *= -2.0
    squares = np.square(X).sum(axis=1)
    K += squares[:, None]
    K += squares
    np.fill_diagonal(K, 0.0)
    np.maximum(K, 0.0, out=K)
    if distances:
        return np.sqrt(K, out=K)
    K *= -1.0 / K.mean()
    return np.exp(K, out=K)


def inputs(cls, kind, n):
    count = N_VIEWS if _has(cls, "views") else 1
    if kind == "table":
        blocks = [_table(n, seed) for seed in range(count)]
    else:
        blocks = [_matrix(n, seed, _matrix_argument(cls) == "metric") for seed in range(count)]
    return blocks if _has(cls, "views") else blocks[0]


def _mib(X):
    return sum(block.nbytes for block in (X if isinstance(X, list) else [X])) / 2**20


def _n_samples(cls, share, limit):
    views = N_VIEWS if _has(cls, "views") else 1
    return int(np.sqrt(share * limit * 2**20 / 8 / views))


def _status(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024


def _reset_peak():
    """Make the process's present size its peak (Linux)."""
    gc.collect()
    return_freed_memory()
    with open("/proc/self/clear_refs", "w") as switch:
        switch.write("5")


def _shares(kind):
    """Return the sizes of tables, and the larger one of matrices, which alone would be noticed if it were copied."""
    return SHARES.values() if kind == "table" else [SHARES["large"]]


def _warm_up(cls, kind):
    """Fit a few samples, within a limit and beyond it, so that code is compiled and buffers are there."""
    for limit in (LIMIT, 1e-3):
        with contextlib.suppress(ParameterError, DataError):
            cls(**_settings(cls, kind), memory_limit=limit).fit(inputs(cls, kind, 90))


def _warm_up_linear_algebra():
    """Have BLAS and LAPACK take the buffers that they keep, on all threads and on one."""
    K = _matrix(800, 0, distances=False)
    for limit in (None, 1):
        with threadpool_limits(limit):
            K @ K
            eigh(K)
            eigh(K, subset_by_index=[790, 799])
            cho_factor(K + np.eye(len(K)))
            np.linalg.svd(K[:, :50], full_matrices=False)
            np.linalg.qr(K[:, :50])
            # Of long and wide tables parts are copied into buffers that smaller ones leave untouched.
            np.ones((6000, 1000)) @ np.ones((1000, 10))
            np.ones((20_000, 500)) @ np.ones((500, 10))
    # Threads of the library have buffers of their own, whatever the data.
    with threadpool_limits(1, user_api="blas"):
        for_ranges(lambda start, stop: K[start:stop] @ K, len(K), width=50, elements=10**9)
    X = np.random.default_rng(0).standard_normal((6000, 300))
    kernelweave.KernelKMeans(10, kernel="linear", n_init=1, max_iter=2, random_state=0).fit(X)


def measured_here(names):
    """Return the peaks of all fits of these estimators, in this process."""
    warnings.simplefilter("ignore")
    known = estimators()
    _warm_up_linear_algebra()
    peaks = []
    for name in names:
        cls = known[name]
        for kind in KINDS:
            if kind != "table" and _matrix_argument(cls) is None:
                continue
            _warm_up(cls, kind)
            gc.freeze()  # what was imported or compiled is not looked through again and again
            sized = [_measured(cls, kind, _n_samples(cls, share, LIMIT), LIMIT) for share in _shares(kind)]
            if sized[0].fitting:
                sized.insert(0, _measured(cls, kind, sized[0].fitting, LIMIT))
            peaks += sized
    return [asdict(peak) for peak in peaks]


def _measured(cls, kind, n, limit):
    """Return what the data and one fit take above what the process holds before."""
    _reset_peak()
    baseline = _status("VmRSS")
    X = inputs(cls, kind, n)
    try:
        cls(**_settings(cls, kind), memory_limit=limit).fit(X)
        outcome = "fit"
    except (ParameterError, DataError) as refusal:
        outcome = f"refused: {refusal}"
    return Peak(cls.__name__, kind, n, float(limit), _mib(X), _status("VmHWM") - baseline, outcome)


def measured(names):
    """Return the peaks of these estimators, measured one after the other in a fresh process."""
    found, _ = in_fresh_process(CODE, argv=(json.dumps(list(names)),))
    return [Peak(**peak) for peak in found]


def run():
    rows = []
    for peak in measured(estimators()):
        what = f"{peak.estimator}, {peak.kind} of {peak.n_samples:,} samples, {peak.inputs:.1f} MiB"
        result = f"{peak.outcome.split(':')[0]}, peak {peak.peak:.1f} MiB"
        rows.append(Row(SUITE, what, result, f"at most {peak.allowed:.1f} MiB", peak.peak <= peak.allowed))
    return rows


def table(peaks):
    """Return the peaks as a table in Markdown."""
    head = "| estimator | input | samples | limit, MiB | inputs, MiB | peak, MiB | allowed, MiB | outcome |"
    lines = [head, "|---|---|---:|---:|---:|---:|---:|---|"]
    for peak in peaks:
        sizes = f"{peak.limit:g} | {peak.inputs:.1f} | {peak.peak:.1f} | {peak.allowed:.1f}"
        outcome = peak.outcome.split(":")[0]
        lines.append(f"| `{peak.estimator}` | {peak.kind} | {peak.n_samples:,} | {sizes} | {outcome} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measured(estimators())))
