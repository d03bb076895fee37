"""Running declared experiments: cells in parallel, each finished cell kept on disk at once.

Input       experiments, the number of restarts, a seed
Result      per cell ours beside theirs with a verdict, seconds, restarts, versions
Cache       one JSON file per cell, ``<cache>/<experiment>/<cell>-<hash>.json``, written whole or not at all
            as soon as the cell ends. The hash covers experiment, cell, restarts, seed and library version,
            and in a development version the source code, which changes while the version stays the same.
Guarantee   a killed run loses at most the cell each worker was computing; a cell that fails does not affect
            others; figures do not depend on the number of workers. Verdicts are never stored: they follow
            from the present declaration.
"""

import hashlib
import inspect
import json
import os
import platform
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

import kernelweave
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.files import write_atomically
from reproduction.experiment import HIDDEN, Cell, CellFunction, Experiment, Printed, Verdict, spread_of

_LIBRARY = Path(kernelweave.__file__).parent
Name = tuple[str, str]  # of a cell: experiment and cell
_RECORDED = ("kernelweave", "numpy", "scipy", "scikit-learn", "numba")


class CellError(RuntimeError):
    """Cells that raised an error; finished ones are on disk where there is a cache."""


class CacheWarning(UserWarning):
    """A cached cell that cannot be used and is computed again."""


@dataclass(frozen=True)
class Figure:
    """One number: ours beside the printed one."""

    metric: str
    ours: float
    printed: Printed | None
    allowed: float | None  # tolerance for the number of restarts made
    verdict: Verdict


@dataclass(frozen=True)
class CellResult:
    """The figures of a cell beside those of the table."""

    experiment: str
    cell: str
    label: str
    figures: tuple[Figure, ...]
    ours: dict[str, float]  # all figures, also those that are not shown
    restarts: int
    seed: int
    seconds: float
    finished: str  # date and time, UTC
    versions: dict[str, str]
    cached: bool  # read from disk, not computed now


@dataclass(frozen=True)
class ExperimentResult:
    """The results of the cells of an experiment."""

    experiment: Experiment
    cells: tuple[CellResult, ...]

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Verdicts of all figures, cell by cell."""
        return tuple(figure.verdict for cell in self.cells for figure in cell.figures)


@dataclass(frozen=True)
class Task:
    """A cell to be computed: everything a worker needs."""

    experiment: str
    cell: str
    work: Cell
    restarts: int
    seed: int
    version: str  # of the library
    source: str  # digest of the code in a development version, else empty

    @property
    def name(self) -> Name:
        """The experiment and the cell."""
        return self.experiment, self.cell

    @property
    def key(self) -> dict[str, str | int]:
        """What decides the cell's figures; equal keys share a cache file."""
        return {name: value for name, value in vars(self).items() if name != "work"}

    def file(self, cache_dir: Path) -> Path:
        """Return the path of the cell's cache file."""
        digest = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:16]
        return cache_dir / self.experiment / f"{self.cell}-{digest}.json"


@dataclass(frozen=True)
class Record:
    """What is kept of a computed cell."""

    key: dict[str, str | int]
    ours: dict[str, float]
    seconds: float
    finished: str
    versions: dict[str, str]


@dataclass(frozen=True)
class Outcome:
    """What a worker sends back: a record, or what went wrong, in a line and as a traceback."""

    task: Task
    record: Record | None
    reason: str = ""
    trace: str = ""


def run_experiment(experiment: Experiment, **options: Any) -> ExperimentResult:
    """Run one experiment; options as in :func:`run_experiments`."""
    return run_experiments([experiment], **options)[0]


def run_experiments(
    experiments: Sequence[Experiment],
    *,
    restarts: int | None = None,
    quick: bool = False,
    seed: int = 0,
    cache_dir: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    force: bool = False,
    on_cell: Callable[[CellResult], None] | None = None,
) -> list[ExperimentResult]:
    """Run the cells of several experiments, all in one pool of workers.

    Parameters
    ----------
    experiments : sequence of Experiment
        What to run.
    restarts : int or None
        Random starts per cell; None takes the number each cell declares.
    quick : bool
        Run the quick subset alone, with its fewer restarts.
    seed : int
        Seed from which each cell derives its starts.
    cache_dir : path or None
        Folder that keeps finished cells; None keeps nothing.
    n_jobs : int
        Cells computed at the same time, in separate processes where more than one; -1 for all cores.
    force : bool
        Compute again what the cache holds, and replace it.
    on_cell : callable or None
        Called with the :class:`CellResult` of each cell as it becomes known.

    Returns
    -------
    list of ExperimentResult
        In the order of ``experiments``.

    Raises
    ------
    CellError
        After all cells have ended, if any of them raised.
    """
    _check_options(restarts, n_jobs)
    tasks = [task for experiment in experiments for task in _tasks(experiment, restarts, quick, seed)]
    folder = None if cache_dir is None else Path(cache_dir)
    known = {} if force or folder is None else _cached_records(tasks, folder)
    pending = [task for task in tasks if task.name not in known]
    check_data(experiments, pending)
    _check_folder(folder)
    results: dict[Name, CellResult] = {}
    failed: list[Outcome] = []
    for outcome in _outcomes(tasks, known, pending, folder, n_jobs):
        if outcome.record is None:
            failed.append(outcome)
            continue
        name = outcome.task.name
        results[name] = _compare(outcome.task, outcome.record, cached=name in known)
        if on_cell is not None:
            on_cell(results[name])
    if failed:
        raise _cell_error(failed)
    return [_gather(experiment, tasks, results) for experiment in experiments]


def default_cache_dir() -> Path:
    """Return the folder for finished cells in the user's cache: XDG_CACHE_HOME, or ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kernelweave" / "reproduce"


def check_data(experiments: Iterable[Experiment], tasks: Iterable[Task]) -> None:
    """Load each benchmark that ``tasks`` need once, so that a missing one stops the run before it begins."""
    waiting = {task.experiment for task in tasks}
    names = {name for experiment in experiments if experiment.id in waiting for name in experiment.data}
    if names:
        from kernelweave.datasets import load_benchmark

        for name in sorted(names):
            load_benchmark(name)


def library_version() -> str:
    """Return the installed version of kernelweave."""
    return metadata.version("kernelweave")


def _check_options(restarts: int | None, n_jobs: int) -> None:
    if restarts is not None and restarts < 1:
        raise ParameterError(f"restarts={restarts} must be at least 1.")
    if n_jobs == 0:
        raise ParameterError("n_jobs=0 leaves no worker; give a positive number, or -1 for all cores.")


def _check_folder(folder: Path | None) -> None:
    """Raise before the work where its results could not be kept."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ParameterError(f"cache_dir={str(folder)!r} cannot be written to: {error.strerror}.") from error


def _tasks(experiment: Experiment, restarts: int | None, quick: bool, seed: int) -> list[Task]:
    tasks = []
    version = library_version()
    for name, cell in experiment.selected(quick=quick).items():
        source = _source_digest(cell.run) if ".dev" in version else ""
        planned = cell.planned_restarts(restarts=restarts, quick=quick)
        tasks.append(Task(experiment.id, name, cell, planned, seed, version, source))
    return tasks


def _outcomes(
    tasks: Sequence[Task],
    known: dict[Name, Record],
    pending: Sequence[Task],
    folder: Path | None,
    n_jobs: int,
) -> Iterator[Outcome]:
    """Yield what the cache knows, then what is computed, as it ends."""
    for task in tasks:
        if task.name in known:
            yield Outcome(task, known[task.name])
    workers = min(effective_n_jobs(n_jobs), len(pending))
    if workers <= 1:
        yield from (_execute(task, folder) for task in pending)
    else:
        pool = Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered")
        yield from pool(delayed(_execute)(task, folder) for task in pending)


def _execute(task: Task, folder: Path | None) -> Outcome:
    """Compute a cell and keep it; an error is returned in the outcome, so that other cells go on."""
    started = time.perf_counter()
    try:
        ours = {name: float(value) for name, value in _figures_of(task).items()}
        seconds = time.perf_counter() - started
        record = Record(task.key, ours, seconds, datetime.now(UTC).isoformat(timespec="seconds"), _versions())
        if folder is not None:
            _write(task.file(folder), json.dumps(asdict(record), indent=1))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return Outcome(task, None, reason, traceback.format_exc())
    return Outcome(task, record)


def _figures_of(task: Task) -> Mapping[str, float]:
    ours = task.work.run(restarts=task.restarts, seed=task.seed)
    missing = sorted(set(task.work.printed) - set(ours))
    if missing:
        raise KeyError(f"the cell has no figure {', '.join(missing)}, which its table prints")
    return ours


def _cell_error(failed: Sequence[Outcome]) -> CellError:
    reasons = (f"{each.task.experiment}/{each.task.cell} failed: {each.reason}" for each in failed)
    error = CellError("; ".join(reasons))
    for each in failed:
        error.add_note(each.trace)
    return error


def _gather(experiment: Experiment, tasks: Iterable[Task], results: dict[Name, CellResult]) -> ExperimentResult:
    cells = (results[task.name] for task in tasks if task.experiment == experiment.id)
    return ExperimentResult(experiment, tuple(cells))


def _compare(task: Task, record: Record, *, cached: bool) -> CellResult:
    result = judged(task.experiment, task.cell, task.work, record, task.restarts, task.seed)
    return replace(result, cached=cached)


def judged(experiment: str, name: str, cell: Cell, record: Record, restarts: int, seed: int) -> CellResult:
    """Set our figures beside the printed ones, which come first and in the table's order."""
    printed = cell.printed
    others = (name for name in record.ours if name not in printed and not name.endswith(HIDDEN))
    metrics = [*printed, *others]
    return CellResult(
        experiment=experiment,
        cell=name,
        label=cell.label,
        figures=tuple(_figure(metric, record.ours, printed.get(metric), restarts) for metric in metrics),
        ours=dict(record.ours),
        restarts=restarts,
        seed=seed,
        seconds=record.seconds,
        finished=record.finished,
        versions=record.versions,
        cached=False,
    )


def _figure(metric: str, figures: Mapping[str, float], printed: Printed | None, restarts: int) -> Figure:
    ours = figures[metric]
    if printed is None:
        return Figure(metric, ours, None, None, Verdict.NO_FIGURE)
    spread = figures.get(spread_of(metric))
    allowed = printed.allowed(ours, restarts=restarts, spread=spread)
    return Figure(metric, ours, printed, allowed, printed.judge(ours, restarts=restarts, spread=spread))


def _cached_records(tasks: Iterable[Task], folder: Path) -> dict[Name, Record]:
    records = {task.name: _read(task, folder) for task in tasks}
    return {name: record for name, record in records.items() if record is not None}


def _read(task: Task, folder: Path) -> Record | None:
    """Return the kept record of ``task``, or None where there is none that can be trusted."""
    file = task.file(folder)
    if not file.exists():
        return None
    try:
        record = Record(**json.loads(file.read_text(encoding="utf-8")))
        _check_record(record, task)
    except (ValueError, TypeError, AttributeError, OSError) as error:
        warnings.warn(f"Ignored the cached cell {file}: {error}. It is computed again.", CacheWarning, stacklevel=2)
        return None
    return record


def _check_record(record: Record, task: Task) -> None:
    if record.key != task.key:
        raise ValueError("it belongs to another cell")
    numbers = [record.seconds, *record.ours.values()]
    if not all(isinstance(number, float) for number in numbers) or not isinstance(record.versions, dict):
        raise ValueError("it does not hold figures")
    if not set(task.work.printed) <= set(record.ours):
        raise ValueError("it lacks a figure that the table prints")


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all, in a folder that is made for it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, text)


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in _RECORDED}}


def _source_digest(function: CellFunction) -> str:
    """Return a digest of the code that decides a cell's figures: the library and the module of the function."""
    while isinstance(function, partial):
        function = function.func
    file = inspect.getsourcefile(function)
    module = Path(file).read_bytes() if file else b""
    return hashlib.sha256(_library_digest() + module).hexdigest()[:16]


@cache
def _library_digest() -> bytes:
    digest = hashlib.sha256()
    for file in sorted(_LIBRARY.rglob("*.py")):
        if file.relative_to(_LIBRARY).parts[0] != "cli":
            digest.update(file.read_bytes())
    return digest.digest()
