"""From an estimator, a shape and a machine to a plan."""

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from os import PathLike, fspath
from os.path import isdir
from typing import Any

from kernelweave.evaluation.plan import blocks, spreading, streaming, trained
from kernelweave.evaluation.plan.costs import METHODS, Costs, added
from kernelweave.evaluation.plan.machine import Tables, Workers, machine_memory, workers
from kernelweave.evaluation.plan.paths import BLOCKWISE, FEATURES, Job, ways
from kernelweave.evaluation.plan.result import Plan, duration, size
from kernelweave.foundation.errors import ParameterError

# Clusters where the fit chooses their number.
CHOSEN = 10
DAY = 86400.0
# The process of a fit without workers, and those with.
HERE = "this process"
WORKER = "each worker"


def plan(
    estimator: Any,
    n_samples: int,
    n_features: int | Sequence[int],
    *,
    n_workers: int | None = None,
    worker_memory: float | None = None,
    worker_threads: int = 1,
    client: Any = None,
    from_disk: bool | str | PathLike[str] = False,
    disk_rate: float | None = None,
    value_bytes: int = 8,
) -> Plan:
    """Predict what a fit will need before it is run.

    The path is the one that ``fit`` takes. Memory follows from the shape. Time follows from the shape and from the
    speed of this machine with the current number of threads, which is measured in a second or two; the number of
    iterations depends on the data and is assumed.

    Parameters
    ----------
    estimator : estimator
        What is to be fitted, with its parameters; it is not fitted.
    n_samples : int
        Number of samples.
    n_features : int or sequence of int
        Number of columns; a sequence has one for each view.
    n_workers : int, default=None
        Number of Dask workers; None for the client's, or for a fit in this process.
    worker_memory : float, default=None
        Bytes of memory of each worker.
    worker_threads : int, default=1
        Threads of each worker.
    client : distributed.Client, default=None
        The Dask client the fit will run on; by default that of the settings in force.
    from_disk : bool or path-like, default=False
        Whether the tables are files, mapped into memory (``np.load`` with ``mmap_mode="r"``) or Zarr arrays, that are
        read in blocks where one is larger than ``memory_limit``. A path names the folder that they are in, whose disk
        is then measured.
    disk_rate : float, default=None
        Bytes per second read from the disk, or by each worker; by default it is measured here and assumed
        for workers.
    value_bytes : int, default=8
        Bytes of a stored value: 4 in single precision.

    Returns
    -------
    plan : Plan
        Path, memory, traffic, time and warnings; ``print`` shows them.

    Examples
    --------
    >>> from kernelweave import KernelKMeans, plan
    >>> planned = plan(KernelKMeans(10), 1_000_000, 50)
    >>> planned.path.partition(": ")[2]
    'kernel values are recomputed in every pass, tile by tile'
    >>> planned.seconds > 600
    True
    """
    name = type(estimator).__name__
    n, widths = _shape(n_samples, n_features)
    asked = getattr(estimator, "n_clusters", None)
    k = int(asked) if isinstance(asked, Integral) else CHOSEN
    there = workers(n_workers, worker_memory, worker_threads, client)
    tables = _tables(from_disk, disk_rate, value_bytes)
    known: dict[str, Any] = {
        "method": name,
        "n_samples": n,
        "n_features": widths,
        "n_clusters": k if asked == k else None,
    }
    if name not in METHODS:
        return Plan(**known, path=f"unknown; there are estimates for {', '.join(METHODS)}")
    estimator._validate_params()
    faults = _faults(estimator, n, widths, k, there)
    spreadable = estimator._takes_blocks and name not in blocks.WITHOUT_ESTIMATE
    job = Job(estimator, n, widths, min(k, n), there if spreadable else None, tables)
    if job.workers is not None:
        return _spread_plan(known, job, job.workers, faults + _without_sample(job))
    per_step = 0.0
    if job.streams and spreadable:
        faults += _without_sample(job)
        costs, per_step = streaming.stream(job)
    else:
        costs = METHODS[name](job)
        if tables.on_disk:
            costs.assumptions.append(_why_loaded(job))
    memory = {HERE: _whole(costs.memory)}
    warnings = (*faults, *_too_large(job, memory[HERE]), *_too_long(job, costs))
    return replace(_filled(known, costs, memory, {HERE: costs.memory}, warnings), bytes_read_per_step=int(per_step))


def _why_loaded(job: Job) -> str:
    """Return why tables in files are read into memory as a whole."""
    if job.estimator._takes_blocks:
        return f"files are read into memory: they are within memory_limit, {size(job.block_limit)}"
    return f"files are read into memory: {type(job.estimator).__name__} needs all samples there"


def _tables(from_disk: Any, disk_rate: float | None, value_bytes: int) -> Tables:
    """Return how samples are stored."""
    if disk_rate is not None and not disk_rate > 0:
        raise ParameterError(
            f"disk_rate={disk_rate!r} must be above 0, in bytes per second; leave it out to measure it."
        )
    if not isinstance(value_bytes, Integral) or not 1 <= int(value_bytes) <= 8:
        raise ParameterError(f"value_bytes={value_bytes!r} must be 1 to 8: 4 for single precision, 8 for double.")
    folder = None if isinstance(from_disk, bool) else fspath(from_disk)
    if folder is not None and not isdir(folder):
        raise ParameterError(f"from_disk={folder!r} is not a folder; name the one that holds the tables, or give True.")
    return Tables(int(value_bytes), from_disk is not False, folder, disk_rate)


def _shape(n_samples: Any, n_features: Any) -> tuple[int, tuple[int, ...]]:
    widths = (n_features,) if isinstance(n_features, Integral) else tuple(n_features)
    for name, values in (("n_samples", (n_samples,)), ("n_features", widths)):
        if not values or not all(isinstance(value, Integral) and int(value) >= 1 for value in values):
            shown = values[0] if len(values) == 1 else values
            raise ParameterError(f"{name}={shown!r} must be a whole number of at least 1, or one for each view.")
    return int(n_samples), tuple(int(width) for width in widths)


def _whole(parts: dict[str, float]) -> int:
    return int(sum(parts.values()))


def _filled(
    known: dict[str, Any],
    costs: Costs,
    memory: dict[str, int],
    parts: dict[str, dict[str, float]],
    warnings: Sequence[str],
    per_step: float = 0.0,
    per_start: float = 0.0,
) -> Plan:
    """Return the plan of what was added up."""
    usual, least, most = added(costs)
    return Plan(
        **known,
        path=costs.path,
        memory=memory,
        memory_parts={process: {what: int(share) for what, share in own.items()} for process, own in parts.items()},
        bytes_per_step=int(per_step),
        bytes_per_start=int(per_start),
        seconds=usual,
        seconds_range=(least, most),
        seconds_parts={what: work[0] for what, work in costs.work.items()},
        assumptions=tuple(costs.assumptions),
        warnings=tuple(warnings),
    )


def _spread_plan(known: dict[str, Any], job: Job, there: Workers, faults: list[str]) -> Plan:
    """Return the plan of a fit on workers."""
    found = spreading.spread(job, there)
    parts = {WORKER: found.costs.memory, HERE: found.here}
    memory = {process: _whole(own) for process, own in parts.items()}
    warnings = list(faults)
    if there.memory is not None and memory[WORKER] > there.memory:
        need = spreading.enough_workers(job, there)
        remedy = "Use workers with more memory" if need is None else f"Use {need:,} such workers"
        needed = f"each worker needs {size(memory[WORKER])} and has {size(there.memory)}."
        single = "" if job.value_bytes < 8 else ", or tables in single precision (float32)"
        warnings.append(f"{needed} {remedy}{single}.")
    warnings += _too_large(job, memory[HERE])
    warnings += _too_long(job, found.costs)
    return _filled(known, found.costs, memory, parts, warnings, found.per_step, found.per_start)


# --- warnings ---------------------------------------------------------------------------------------------------------


def _faults(estimator: Any, n: int, widths: tuple[int, ...], k: int, there: Workers | None) -> list[str]:
    """Return why the fit would end with an error."""
    found = []
    if n == 1:
        found.append("n_samples=1: the fit ends with an error, since it needs at least 2 samples.")
    if getattr(estimator, "kernel", None) == "precomputed" and set(widths) != {n}:
        found.append(
            f"kernel='precomputed' takes matrices of {n:,} x {n:,} values, and n_features has {min(widths):,}: the fit "
            f"ends with an error. Give {n} columns, or another kernel."
        )
    if k > n:
        found.append(f"n_clusters={k} is more than the {n:,} samples: the fit ends with an error. Lower it.")
    if there is None:
        return found
    name = type(estimator).__name__
    if not estimator._takes_blocks:
        found.append(
            f"{name} works in one process and refuses a client: these figures are for this process. On workers run "
            "KernelKMeans, MinMaxKMeans, MinMaxKernelKMeans, MultiViewKernelKMeans, GraphFusionClustering and, trained "
            "on a sample, KernelSpectralClustering and MultiViewKernelSpectralClustering."
        )
    elif name in blocks.WITHOUT_ESTIMATE:
        found.append(
            f"there is no estimate for {name} on workers: these figures are for this process, which keeps the graphs "
            "also where neighbours are searched on workers."
        )
    elif getattr(estimator, "storage", "auto") == "dense":
        found.append(
            "storage='dense' stores all pairs of samples, which is not possible for tables on workers; leave it out."
        )
    return found


def _without_sample(job: Job) -> list[str]:
    """Return why a method that is trained on samples in memory refuses rows that are elsewhere."""
    if not trained.on_a_sample(job) or trained.training_samples(job) < job.n:
        return []
    wanted = job.setting("n_train_samples")
    text = f"n_train_samples={wanted} trains on all samples, which are elsewhere: the fit ends with an error."
    return [f"{text} Train on some of them, for example with n_train_samples=5000."]


def _too_large(job: Job, needed: int) -> list[str]:
    """Return what to do where this process needs more memory than there is."""
    there = machine_memory()
    if there is None or needed <= there:
        return []
    text = f"this process needs {size(needed)}, but the machine has {size(there)}."
    return [f"{text} {_remedy(job, there)}"]


def _remedy(job: Job, there: int) -> str:
    """Return how a fit takes less memory."""
    if job.workers is not None:
        return "Run the client on a machine with more memory: labels and weights of all samples are kept there."
    if job.streams:
        return "Labels and other results of all samples stay in memory: use workers, or fit on a sample of the rows."
    square = 8.0 * job.n**2 * job.views
    if job.setting("storage", "auto") == "dense" and square > 0.5 * there:
        return f"storage='dense' keeps {size(square)}; use storage='auto', or approximation='nystroem'."
    if job.input_bytes > 0.5 * there and job.estimator._takes_blocks:
        return "Give the tables as files mapped into memory (np.load with mmap_mode='r'), or as Dask arrays on workers."
    if there < job.limit and getattr(job.estimator, "memory_limit", None) is not None:
        return f"Lower memory_limit, which allows {size(job.limit)}."
    if hasattr(job.estimator, "n_train_samples"):
        return "Train on some of the samples, for example with n_train_samples=5000; the others are assigned."
    if hasattr(job.estimator, "approximation"):
        return "Use approximation='nystroem', or fit on a sample and predict the others."
    return "Fit on a sample of the data and predict the others."


def _too_long(job: Job, costs: Costs) -> list[str]:
    """Return what to do where a fit takes more than a day."""
    usual, _, _ = added(costs)
    if usual <= DAY:
        return []
    text = f"the fit takes about {duration(usual)}."
    return [f"{text} {_shortcut(job)}"]


def _shortcut(job: Job) -> str:
    """Return how a fit takes less time."""
    if hasattr(job.estimator, "n_train_samples"):
        return "Train on some of the samples, for example with n_train_samples=5000; the others are assigned."
    if getattr(job.estimator, "search", None) == "exact":
        return "Use search='fast', or set time_budget."
    if getattr(job.estimator, "approximation", "") is None:
        kinds = {way.kind for way in ways(job, shared_limit=job.views > 1)}
        if kinds & {BLOCKWISE}:
            return "Its time grows with n^2: use approximation='nystroem', or fit on a sample and predict the others."
        if kinds == {FEATURES}:
            more = "Run it on workers" if job.workers is None else "Take more workers"
            return f"{more}, use fewer starts (n_init), or fit on a sample and predict the others."
    return "Fit on a sample of the data and predict the others."
