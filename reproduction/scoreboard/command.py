"""The command ``kernelweave scoreboard``: every multi-view method on every multi-view set, ranked."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from kernelweave.cli import messages, run_app
from kernelweave.foundation.errors import DataError, ParameterError
from reproduction.scoreboard.board import Board, build_board
from reproduction.scoreboard.data_sets import Size, all_sizes, sizes
from reproduction.scoreboard.methods import Method, select_methods, why_missing
from reproduction.scoreboard.page import write_page
from reproduction.scoreboard.plan import check_jobs, plan, remaining, run_tasks
from reproduction.scoreboard.records import Record, read_records
from reproduction.scoreboard.screen import board_table, methods_table, sets_table

_NAME = "scoreboard"
_WIDE = 200  # columns for files and pipes, where nothing should be cut to fit a screen
_DOCS = Path(__file__).parents[2] / "docs"


def main(argv: Sequence[str] | None = None, program: str = "kernelweave scoreboard") -> int:
    """Run the command with ``argv`` (default: the process's arguments) and return the exit code."""
    app = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
    app.command()(scoreboard)
    return run_app(app, argv, program)


def scoreboard(
    methods: Annotated[
        str, typer.Option(metavar="NAMES", help="Names, patterns or libraries, separated by commas; default: all.")
    ] = "",
    sets: Annotated[str, typer.Option(metavar="NAMES", help="Sets, separated by commas; default: all.")] = "",
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Seeds 0 to N - 1.")] = 5,
    jobs: Annotated[int, typer.Option(metavar="N", help="Fits at a time, each on one thread; -1 for all cores.")] = 1,
    time_limit: Annotated[float, typer.Option(min=1.0, metavar="S", help="Time limit of a fit, in seconds.")] = 300.0,
    limit_samples: Annotated[
        int, typer.Option(min=50, metavar="N", help="Largest number of samples; more are reduced at random.")
    ] = 5000,
    results: Annotated[Path, typer.Option(metavar="FILE", help="Where fits are kept, one JSON line each.")] = Path(
        "scoreboard.jsonl"
    ),
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Repeat fits that failed.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Repeat fits that are in the file.")] = False,
    show_list: Annotated[bool, typer.Option("--list", help="Show methods and sets, and run nothing.")] = False,
    page: Annotated[
        bool, typer.Option("--write-page", help="Write docs/scoreboard.md from the file, and run nothing.")
    ] = False,
    docs: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the page.")] = _DOCS,
) -> None:
    """Run every multi-view method, with settings that need no labels, on every multi-view set, and rank them.

    Sets are read from the folder that KERNELWEAVE_DATA names. Fits are kept in a file: those in it are not run again.

    Exit code: 0 when every fit gave labels, 2 for bad input or missing data, 3 when a fit failed; failed ones are
    kept and ranked last.
    """
    try:
        check_jobs(jobs)
        chosen = select_methods(methods)
        if show_list and page:
            raise ParameterError("--list and --write-page cannot be combined: leave one of them out.")
        if show_list:
            _show(Group(methods_table(chosen), *_sets_of_list(sets, limit_samples)))
        elif page:
            _write(_board_of_file(results, chosen, sets), docs)
        else:
            _check_results(results)
            available = _available(chosen)
            tasks = plan(available, _sizes(sets, limit_samples), seeds, limit_samples)
            left = remaining(tasks, read_records(results), force=force, retry_failed=retry_failed)
            with _progress(len(left)) as on_record:
                made = run_tasks(left, results, limit_s=time_limit, jobs=jobs, on_record=on_record)
            _show(board_table(_board_of_file(results, chosen, sets)))
            _end(made)
    except (ParameterError, DataError) as error:
        messages.fail(_NAME, str(error))
    except OSError as error:
        messages.fail(_NAME, messages.system_error_text(error))


# --- what to run ------------------------------------------------------------------------------------------------------


def _available(chosen: Sequence[Method]) -> list[Method]:
    """Return the methods that can be run here; a line on standard error names each of the others."""
    available = []
    for method in chosen:
        reason = why_missing(method)
        if reason:
            messages.tell(f"kernelweave {_NAME}: skipped {method.name}: {reason}.")
        else:
            available.append(method)
    if not available:
        raise ParameterError("None of these methods can be run here: install their libraries, or name others.")
    return available


def _sizes(wanted: str, limit: int) -> list[Size]:
    names = _names(wanted)
    found = sizes(names, limit) if names else all_sizes(limit)
    if not found:
        raise DataError("The data folder holds no set of several views with classes: name another one.")
    return found


def _names(wanted: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in wanted.split(",") if name.strip()))


def _check_results(results: Path) -> None:
    """Raise before the work where its results could not be kept."""
    if results.is_dir() or not results.absolute().parent.is_dir():
        raise ParameterError(f"--results {results} cannot be written: it is a folder, or its folder does not exist.")


# --- what to show -----------------------------------------------------------------------------------------------------


def _sets_of_list(wanted: str, limit: int) -> list[RenderableType]:
    """Return the table of sets, or why there is none: the methods can be listed without data."""
    try:
        return [sets_table(_sizes(wanted, limit))]
    except DataError as error:
        if wanted:
            raise
        return [str(error)]


def _board_of_file(results: Path, chosen: Sequence[Method], wanted: str) -> Board:
    """Return the board of the chosen methods and sets; records of methods that have no row any more are left out."""
    methods = {method.name for method in chosen}
    sets = set(_names(wanted))
    records = [
        record
        for record in read_records(results).values()
        if record.method in methods and (not sets or record.set in sets)
    ]
    if not records:
        raise DataError(f"{results} holds no fit of these methods and sets: run 'kernelweave scoreboard' first.")
    return build_board(records)


def _write(board: Board, docs: Path) -> None:
    if not docs.is_dir():
        raise ParameterError(f"--docs {docs} is not a folder: name the one that the page goes into.")
    try:
        path = write_page(board, docs)
    except ImportError as error:
        raise ParameterError("The pictures need matplotlib: install kernelweave[plots].") from error
    messages.put(_NAME, f"{path}\n")


def _show(content: RenderableType) -> None:
    width = None if Console().is_terminal else _WIDE
    messages.put(_NAME, messages.rendered(width, content))


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Record], None]]:
    """Yield a function that tells of every finished fit: a bar on a terminal, a line for each elsewhere."""
    screen = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=screen, disable=not screen.is_terminal, transient=True) as bar:
        task = bar.add_task("fits", total=total)
        count = 0

        def tell(record: Record) -> None:
            nonlocal count
            count += 1
            bar.update(task, advance=1, description=f"{record.set}, {record.method}")
            if record.failed or not screen.is_terminal:
                bar.console.print(f"{count}/{total} {_line(record)}", markup=False, highlight=False, soft_wrap=True)

        yield tell


def _line(record: Record) -> str:
    about = f"{record.set}, {record.method}, seed {record.seed}"
    if record.nmi is None or record.seconds is None:
        return f"{about}: failed, {record.error}"
    return f"{about}: NMI {record.nmi:.3f} in {record.seconds:.2f} s"


def _end(made: Sequence[Record]) -> None:
    failed = [record for record in made if record.failed]
    if failed:
        messages.fail(_NAME, f"{len(failed)} of {len(made)} fits failed; they are kept and ranked last.", code=3)
