"""What is left to do, and doing it: method x set x seed, less what the results file holds."""

import os
import subprocess
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from joblib import effective_n_jobs

from kernelweave.foundation.errors import ParameterError
from reproduction.runner import library_version
from reproduction.scoreboard.data_sets import Size
from reproduction.scoreboard.fits import Job, Outcome, run_fit
from reproduction.scoreboard.methods import Method, library_versions
from reproduction.scoreboard.records import Key, Record, append_record, cut_unfinished_line

_CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Task:
    """A fit that the results file does not hold."""

    job: Job
    size: Size

    @property
    def key(self) -> Key:
        """The key of its record."""
        return self.job.method.name, self.job.set, self.job.seed, self.size.n_samples


def plan(methods: Sequence[Method], sizes: Sequence[Size], seeds: int, limit_samples: int) -> list[Task]:
    """Return all fits: a seed on all sets, the smallest first, before the next seed.

    A run that is stopped has then finished whole sets, which can be ranked.
    """
    # Processes may have been forked from one that was started with other variables.
    data_dir = os.environ.get("KERNELWEAVE_DATA")
    return [
        Task(Job(method, size.name, seed, limit_samples, data_dir), size)
        for seed in range(seeds)
        for size in sizes
        for method in methods
    ]


def remaining(
    tasks: Iterable[Task], known: dict[Key, Record], *, force: bool = False, retry_failed: bool = False
) -> list[Task]:
    """Return the fits to be made."""
    done = {key for key, record in known.items() if not force and not (retry_failed and record.failed)}
    return [task for task in tasks if task.key not in done]


def run_tasks(
    tasks: Collection[Task], path: Path, *, limit_s: float, jobs: int, on_record: Callable[[Record], None]
) -> list[Record]:
    """Run fits, append each to the results file as it ends, and return their records."""
    cut_unfinished_line(path)
    about = _About(library_version(), checkout_commit(), library_versions(task.job.method for task in tasks), limit_s)
    stop = threading.Event()
    records = []
    with ThreadPoolExecutor(effective_n_jobs(jobs)) as pool:
        futures = {pool.submit(run_fit, task.job, limit_s, stop): task for task in tasks}
        try:
            for future in as_completed(futures):
                record = about.record(futures[future], future.result())
                append_record(path, record)
                records.append(record)
                on_record(record)
        except BaseException:
            _stop(pool, futures, stop)
            raise
    return records


def check_jobs(jobs: int) -> None:
    """Raise where there would be no worker."""
    if jobs == 0:
        raise ParameterError("--jobs 0 leaves no worker; give a positive number, or -1 for all cores.")


def _stop(pool: ThreadPoolExecutor, futures: Iterable[Future[Outcome]], stop: threading.Event) -> None:
    """End the fits under way, without records, and begin no others."""
    stop.set()
    for future in futures:
        future.cancel()
    pool.shutdown(cancel_futures=True)


def checkout_commit() -> str:
    """Return the commit of the checkout, with a plus sign where files have changed since; ``unknown`` without git."""
    try:
        commit = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}+" if changed else commit


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(_CHECKOUT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@dataclass(frozen=True)
class _About:
    """What all records of a run share."""

    version: str
    commit: str
    library_versions: dict[str, str]
    limit_s: float

    def record(self, task: Task, outcome: Outcome) -> Record:
        method = task.job.method
        return Record(
            method=method.name,
            library=method.library,
            library_version=self.library_versions[method.library],
            set=task.size.name,
            seed=task.job.seed,
            n_samples=task.size.n_samples,
            n_views=task.size.n_views,
            n_clusters=task.size.n_clusters,
            status="failed" if outcome.error else "ok",
            nmi=outcome.nmi,
            ari=outcome.ari,
            acc=outcome.acc,
            n_found=outcome.n_found,
            seconds=outcome.seconds,
            memory_mib=outcome.memory_mib,
            error=outcome.error,
            limit_s=self.limit_s,
            version=self.version,
            commit=self.commit,
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
        )
