"""Mistakes that the tests must notice: one-line mutations of the library, each run against the tests of its room.

``python scripts/mutants.py [--jobs N] [--only PATTERN]`` copies package and tests to a temporary folder, runs the test
files there as they are, and then once for every mutation of the catalogue (``mutants/*.toml``). A mutation is killed
when a test fails or the time limit passes. Without ``--only`` the outcome is written to ``mutants/RESULTS.md``. The
exit status is 1 if fewer than 95 % are killed, or if one survives for which the catalogue gives no reason.
"""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CATALOGUE = ROOT / "mutants"
#: The least share of mutations that tests must notice.
LEAST_SHARE = 0.95
# A run that takes longer than this many times the unmutated one, and longer than so many seconds, does not end.
SLOWDOWN = 5.0
SHORTEST_LIMIT = 120.0
COPIED = ("kernelweave", "tests", "pyproject.toml")
COMPILED = "kernelweave/backends/"
# pytest's exit statuses: tests passed, tests failed, tests could not be imported.
PASSED = 0
FAILED = (1, 2)


@dataclass(frozen=True)
class Mutation:
    """A line changed, and the test files that must notice."""

    file: str
    before: str
    after: str
    what: str
    tests: tuple[str, ...]
    survives: str  # why no test need notice; empty: one must

    @property
    def name(self) -> str:
        return f"{self.file.removeprefix('kernelweave/')}: {self.what}"

    @property
    def key(self) -> str:
        return f"{self.file}: {self.before} -> {self.after}"

    def applied(self, text: str) -> str:
        """Return the source with the mutation; the place must be the only one of its kind."""
        count = text.count(self.before)
        if count != 1:
            raise ValueError(f"{self.file} holds {self.before!r} {count} times, not once. Correct the catalogue.")
        return text.replace(self.before, self.after)

    def line(self, text: str) -> int:
        """Return the number of the line that changes."""
        return text[: text.index(self.before)].count("\n") + 1


@dataclass(frozen=True)
class Outcome:
    """What came of one run of tests."""

    mutation: Mutation
    result: str  # killed, timed out, survived
    seconds: float
    noticed: str  # the first test that failed


def catalogue(folder: Path = CATALOGUE) -> list[Mutation]:
    """Read all mutations, in the order of their files."""
    mutations = []
    for path in sorted(folder.glob("*.toml")):
        for module in tomllib.loads(path.read_text(encoding="utf-8"))["module"]:
            tests = tuple(f"tests/{name}" for name in module["tests"])
            for before, after, what, *survives in module["mutations"]:
                mutations.append(
                    Mutation(f"kernelweave/{module['file']}", before, after, what, tests, "".join(survives))
                )
    return mutations


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of a run: the copy is what Python imports, one thread, no data, no caches elsewhere."""
    left_out = ("KERNELWEAVE_DATA", "NUMBA_CACHE_DIR", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS")
    variables = {name: value for name, value in os.environ.items() if name not in left_out}
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return variables | one | {"PYTHONPATH": str(folder), "SCIPY_ARRAY_API": "1", "MPLBACKEND": "agg"}


def run_tests(folder: Path, tests: Sequence[str], limit: float) -> tuple[int | None, float, str]:
    """Run test files in a copy; return the exit status (None: out of time), the seconds, and what was printed."""
    options = ["-x", "-q", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"]
    command = [sys.executable, "-m", "pytest", *options, "-m", "not timing and not golden", *tests]
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, time.monotonic() - began, ""
    return process.returncode, time.monotonic() - began, text


def fresh_copy(folder: Path) -> None:
    """Copy package and tests, without anything compiled."""
    folder.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"))
        else:
            shutil.copy2(ROOT / name, folder / name)


def mutated_copy(base: Path, folder: Path, mutation: Mutation) -> None:
    """Copy the copy that the unmutated tests ran in, with what they compiled, and change one line."""
    shutil.copytree(base, folder, ignore=shutil.ignore_patterns(".hypothesis"))
    path = folder / mutation.file
    path.write_text(mutation.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
    # A change within the second that keeps the size would look like the file that was compiled.
    for stale in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        stale.unlink()
    if mutation.file.startswith(COMPILED):  # machine code may hold functions of other files
        for stale in [*folder.rglob("*.nbi"), *folder.rglob("*.nbc")]:
            stale.unlink()


def check_import(base: Path) -> None:
    """Refuse to go on where Python imports another copy of the package."""
    code = "import kernelweave; print(kernelweave.__file__)"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=base, env=environment(base), capture_output=True, text=True, check=True)
    if not Path(result.stdout.strip()).resolve().is_relative_to(base.resolve()):
        raise SystemExit(f"Tests would run on {result.stdout.strip()} instead of the copy in {base}.")


def baseline(base: Path, tests: Iterable[str], jobs: int) -> dict[str, float]:
    """Run every test file unmutated and return its seconds; a test that fails is an error."""

    def run(test: str) -> tuple[str, int | None, float, str]:
        return test, *run_tests(base, [test], 1200.0)

    seconds = {}
    with ThreadPoolExecutor(jobs) as pool:
        for test, status, taken, text in pool.map(run, sorted(tests)):
            if status != PASSED:
                print(text[-3000:])
                raise SystemExit(f"{test} fails without any mutation (exit status {status}).")
            seconds[test] = taken
            print(f"  unmutated {taken:6.1f} s  {test}", flush=True)
    return seconds


def attempt(base: Path, scratch: Path, number: int, mutation: Mutation, seconds: dict[str, float]) -> Outcome:
    """Run the tests of one mutation, the quickest file first."""
    folder = scratch / f"mutant{number}"
    mutated_copy(base, folder, mutation)
    tests = sorted(mutation.tests, key=seconds.__getitem__)
    limit = max(SHORTEST_LIMIT, SLOWDOWN * sum(seconds[test] for test in tests))
    status, taken, text = run_tests(folder, tests, limit)
    shutil.rmtree(folder)
    if status is None:
        return Outcome(mutation, "timed out", taken, "")
    if status == PASSED:
        return Outcome(mutation, "survived", taken, "")
    if status > 0 and status not in FAILED:
        print(text[-3000:])
        raise SystemExit(f"pytest ended with status {status} for {mutation.name}.")
    noticed = re.search(r"^(?:FAILED|ERROR) (\S+?)(?:\[| |$)", text, re.MULTILINE)
    return Outcome(mutation, "killed", taken, noticed.group(1) if noticed else "crashed")


class Record:
    """Outcomes in a file, one line each, so that a run that was cut short can be taken up again."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        if path is not None and path.exists():
            entries = map(json.loads, path.read_text(encoding="utf-8").splitlines())
            self.known = {entry["mutation"]: entry for entry in entries}

    def outcome(self, mutation: Mutation) -> Outcome | None:
        """Return what is known of a mutation."""
        entry = self.known.get(mutation.key)
        return None if entry is None else Outcome(mutation, entry["result"], entry["seconds"], entry["noticed"])

    def add(self, outcome: Outcome) -> None:
        """Write an outcome down at once."""
        if self.path is not None:
            entry = {"mutation": outcome.mutation.key, "result": outcome.result}
            entry |= {"seconds": round(outcome.seconds, 1), "noticed": outcome.noticed}
            with self._lock, self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def run_all(mutations: Sequence[Mutation], jobs: int, record: Record | None = None) -> list[Outcome]:
    """Run the unmutated tests, then every mutation of which the record knows nothing."""
    record = Record(None) if record is None else record
    left = [mutation for mutation in mutations if record.outcome(mutation) is None]
    done = {outcome.mutation.key: outcome for outcome in run_unknown(left, jobs, record)} if left else {}
    return [done.get(mutation.key) or record.outcome(mutation) for mutation in mutations]  # type: ignore[misc]


def run_unknown(mutations: Sequence[Mutation], jobs: int, record: Record) -> list[Outcome]:
    """Run the unmutated tests, then every mutation."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        base = scratch / "unmutated"
        fresh_copy(base)
        check_import(base)
        for mutation in mutations:  # before any time is spent
            mutation.applied((base / mutation.file).read_text(encoding="utf-8"))
        seconds = baseline(base, {test for mutation in mutations for test in mutation.tests}, jobs)

        def run(task: tuple[int, Mutation]) -> Outcome:
            outcome = attempt(base, scratch, *task, seconds)
            record.add(outcome)
            print(f"{outcome.result:>10} {outcome.seconds:6.1f} s  {outcome.mutation.name}", flush=True)
            return outcome

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(run, enumerate(mutations)))


def commit() -> str:
    """Return the commit of the checkout, and whether it was changed since."""
    try:
        git = ["git", "-C", str(ROOT)]
        name = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name.stdout.strip() + (" with changes" if changed.stdout.strip() else "")


def cell(text: str) -> str:
    """Return code as it can stand in a table."""
    return "`" + text.replace("|", "\\|") + "`" if text else ""


def report(outcomes: Sequence[Outcome], at: str, minutes: float, jobs: int) -> str:
    """Return the outcome as Markdown: the share, the survivors with their reasons, and every mutation."""
    survivors = [each for each in outcomes if each.result == "survived"]
    late = [each for each in outcomes if each.result == "timed out"]
    n_killed = len(outcomes) - len(survivors)
    today = datetime.datetime.now(datetime.UTC).date()
    lines = [
        "# Mutations",
        "",
        f"Written by `make mutants` on {today}, commit {at}, Python {platform.python_version()}, {jobs} processes, "
        f"{minutes:.1f} minutes.",
        "",
        f"**{n_killed} of {len(outcomes)} mutations killed ({100.0 * n_killed / len(outcomes):.1f} %)**, {len(late)} "
        "of them by the time limit. A time-out counts as killed: the mutated loop does not end.",
        "",
        "## Survivors",
        "",
    ]
    if survivors:
        lines += ["| file | before | after | why no test notices |", "|---|---|---|---|"]
        for each in survivors:
            m = each.mutation
            lines.append(f"| {m.file} | {cell(m.before)} | {cell(m.after)} | {m.survives or '**no reason**'} |")
    else:
        lines.append("None.")
    lines += [
        "",
        "## All mutations",
        "",
        "| file | mistake | outcome | seconds | noticed by |",
        "|---|---|---|---:|---|",
    ]
    for each in outcomes:
        m = each.mutation
        noticed = each.noticed.removeprefix("tests/")
        lines.append(f"| {m.file} | {m.what} | {each.result} | {each.seconds:.0f} | {cell(noticed)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the catalogue and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--only", metavar="PATTERN", help="run mutations whose file or name matches this expression")
    parser.add_argument("--list", action="store_true", help="show the mutations and run nothing")
    parser.add_argument("--output", type=Path, help="file for the results; by default mutants/RESULTS.md, if all run")
    parser.add_argument("--record", type=Path, help="file of outcomes as they come; what it holds is not run again")
    parser.add_argument("--commit", help="name of the commit in the results, where git does not know it")
    options = parser.parse_args()
    mutations = [m for m in catalogue() if options.only is None or re.search(options.only, f"{m.file} {m.name}")]
    if not mutations:
        raise SystemExit(f"No mutation matches {options.only!r}.")
    if options.list:
        print("\n".join(mutation.name for mutation in mutations))
        return 0
    began = time.monotonic()
    outcomes = run_all(mutations, options.jobs, Record(options.record))
    minutes = (time.monotonic() - began) / 60.0
    survivors = [each.mutation for each in outcomes if each.result == "survived"]
    share = 1.0 - len(survivors) / len(outcomes)
    print(
        f"{len(outcomes) - len(survivors)} of {len(outcomes)} killed ({100.0 * share:.1f} %) in {minutes:.1f} minutes"
    )
    for mutation in survivors:
        print(f"  survived: {mutation.name}: {mutation.survives or 'NO REASON'}")
    for each in outcomes:
        if each.mutation.survives and each.result != "survived":
            print(f"  killed, although the catalogue says that it survives: {each.mutation.name}")
    target = options.output or (CATALOGUE / "RESULTS.md" if options.only is None else None)
    if target is not None:
        target.write_text(report(outcomes, options.commit or commit(), minutes, options.jobs), encoding="utf-8")
    return int(share < LEAST_SHARE or any(not mutation.survives for mutation in survivors))


if __name__ == "__main__":
    raise SystemExit(main())
