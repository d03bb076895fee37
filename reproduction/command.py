"""The command ``kernelweave reproduce``, or ``python -m reproduction``: published tables, ours next to theirs."""

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from kernelweave.cli import messages, run_app
from kernelweave.datasets import list_benchmarks
from kernelweave.datasets.folders import VARIABLE
from kernelweave.foundation.errors import DataError, ParameterError
from kernelweave.foundation.files import write_atomically
from reproduction import experiments
from reproduction.experiment import Experiment
from reproduction.page import END, START, counts_for_readme, results_page
from reproduction.report import as_json, as_markdown, as_table, list_json, list_markdown, list_table
from reproduction.runner import CellError, CellResult, ExperimentResult, default_cache_dir, run_experiments
from reproduction.stored import pin
from reproduction.stored import store as keep
from reproduction.stored_files import stored_cells

_WIDE = 200  # columns for files and pipes, where nothing should be cut to fit a screen


def main(argv: Sequence[str] | None = None, program: str = "python -m reproduction") -> int:
    """Run the command with ``argv`` (default: the process's arguments) and return the exit code."""
    app = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
    app.command()(reproduce)
    return run_app(app, argv, program)


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


def reproduce(
    ids: Annotated[list[str], typer.Argument(metavar="list|page|all|ID", help="What to run, or show.")],
    restarts: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Random starts per cell; default: as in the source."),
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Cells computed at a time; -1 for all cores.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="The quick subset, with few restarts.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed for all random starts.")] = 0,
    format: Annotated[Format, typer.Option(help="Form of the results.")] = Format.TABLE,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the results here instead of to the screen.")
    ] = None,
    commit: Annotated[
        str | None, typer.Option(help="Commit to name in Markdown and JSON, along with today's date.")
    ] = None,
    cache_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of finished cells; default: the user's cache.")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Neither read nor store finished cells.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Recompute cells that are in the cache.")] = False,
    store: Annotated[
        bool,
        typer.Option("--store", help="Keep the results with the code (of a checkout); 'page' makes a page of them."),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of the data sets; default: KERNELWEAVE_DATA, or the user's data folder."
        ),
    ] = None,
) -> None:
    """Recompute published tables and show our figures next to theirs, with a verdict for each.

    'list' shows what can be run, 'page' writes docs/results.md from stored results. Finished cells are kept on
    disk: a run that was killed resumes where it stopped. The data sets are read from the folder that --data or
    KERNELWEAVE_DATA names; 'kernelweave data fetch' downloads those that are public, and 'list' shows what runs
    without any.

    Exit code: 0 when everything ran and nothing differs, 1 when a figure differs from the printed one,
    2 for bad input or missing data, 3 when a cell failed with an error.
    """
    _check_output(output)
    if ids == ["list"]:
        _show_list(format, output)
        return
    if ids == ["page"]:
        _write_page(output)
        return
    _check_store(store, quick, ids, commit)
    folder = None if no_cache else cache_dir or default_cache_dir()
    options = {"restarts": restarts, "quick": quick, "seed": seed, "n_jobs": jobs, "force": force}
    with _data_folder(data):
        results = _results(ids, {**options, "cache_dir": folder})
    if store:
        pin(results) if quick else keep(results, str(commit))
    _write(_rendered(results, format, commit), output)
    if any(verdict == "differs" for result in results for verdict in result.verdicts):
        raise typer.Exit(1)


def _check_store(store: bool, quick: bool, ids: Sequence[str], commit: str | None) -> None:
    """End the command before the work where its results could not be kept, or would replace those of others."""
    if store and not quick and commit is None:
        messages.fail("reproduce", "--store needs --commit, the commit that the results belong to.")
    if store and quick and list(ids) != ["all"]:
        messages.fail("reproduce", "--store --quick keeps the verdicts of the whole quick subset: give 'all', not ids.")


def _write_page(output: Path | None) -> None:
    """Write the page of stored results and the counts in the README, or the page alone to another place."""
    if not any(stored_cells(each) for each in experiments.catalogue()):
        messages.fail("reproduce", "no results are stored; 'reproduce all --store --commit COMMIT' computes them.")
    page = results_page(experiments.by_module())
    if output is not None:
        _write(page, output)
        return
    root = Path(__file__).parent.parent
    readme = root / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    if START not in text:
        messages.fail(
            "reproduce", "'page' writes files in a checkout of kernelweave, and this is not one; use --output."
        )
    before, _, rest = text.partition(START)
    counts = counts_for_readme(experiments.catalogue().values())
    write_atomically(readme, f"{before}{counts}{rest.partition(END)[2]}")
    write_atomically(root / "docs" / "results.md", page)


def _results(ids: Sequence[str], options: dict[str, Any]) -> list[ExperimentResult]:
    """Run the experiments of these ids; an error ends the command with a one-line message."""
    chosen: list[Experiment] = []
    try:
        chosen += experiments.select(ids, quick=options["quick"])
        if not chosen:
            raise ParameterError("the quick subset is empty because no results are stored; leave --quick out.")
        with _progress(chosen, quick=options["quick"]) as on_cell:
            return run_experiments(chosen, on_cell=on_cell, **options)
    except DataError as error:
        messages.fail("reproduce", _what_to_fetch(chosen) or str(error))
    except ParameterError as error:
        messages.fail("reproduce", str(error))
    except OSError as error:
        messages.fail("reproduce", messages.system_error_text(error))
    except CellError as error:
        typer.echo("\n".join(error.__notes__), err=True)
        messages.fail("reproduce", str(error), code=3)


@contextmanager
def _data_folder(data: Path | None) -> Iterator[None]:
    """Let all that reads data sets, in other processes too, read them from this folder."""
    if data is None:
        yield
        return
    if not data.is_dir():
        messages.fail("reproduce", f"--data {data} is not a folder: name the one that holds the .npz files.")
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(data.absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def _what_to_fetch(chosen: Sequence[Experiment]) -> str:
    """Return what to do about data sets that are not here; nothing where the fault is another one."""
    folder = os.environ.get(VARIABLE)
    if folder and not Path(folder).is_dir():
        return ""
    try:
        here = {path.rpartition("/")[2] for path in list_benchmarks()}
    except DataError:
        here = set()
    missing = sorted({name for each in chosen for name in each.data} - here)
    if not missing:
        return ""
    to = f" --data {folder}" if folder else ""
    what = "A data set is not here" if len(missing) == 1 else f"{len(missing)} data sets are not here"
    return (
        f"{what}: run 'kernelweave data fetch {' '.join(missing)}{to}', or name the data folder with --data DIR or the "
        f"environment variable {VARIABLE}."
    )


def _check_output(output: Path | None) -> None:
    """End the command before the work, not after it, where the results cannot be written."""
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        messages.fail("reproduce", f"cannot write {output}: it is a folder, or its folder does not exist.")


@contextmanager
def _progress(chosen: Sequence[Experiment], *, quick: bool) -> Iterator[Callable[[CellResult], None]]:
    """Yield a function that counts finished cells on a bar, shown if standard error is a terminal."""
    screen = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=screen, disable=not screen.is_terminal, transient=True) as bar:
        task = bar.add_task("cells", total=sum(len(each.selected(quick=quick)) for each in chosen))
        yield lambda cell: bar.update(task, advance=1, description=f"{cell.experiment}/{cell.cell}")


def _show_list(format: Format, output: Path | None) -> None:
    known = experiments.catalogue().values()
    as_text = {Format.JSON: list_json, Format.MARKDOWN: list_markdown}
    _write(as_text[format](known) if format in as_text else list_table(known), output)


def _rendered(results: Sequence[ExperimentResult], format: Format, commit: str | None) -> RenderableType:
    if format == Format.TABLE:
        return as_table(results)
    as_text = as_json if format == Format.JSON else as_markdown
    return as_text(results, date=date.today().isoformat(), commit=commit)


def _write(content: RenderableType, output: Path | None) -> None:
    """Write text as it is, and tables at full width unless a terminal is narrower."""
    if isinstance(content, str):
        text = content
    elif output is None and Console().is_terminal:
        text = messages.rendered(None, content)
    else:
        text = _plain(content)
    if output is None:
        messages.put("reproduce", text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        messages.fail("reproduce", messages.system_error_text(error))


def _plain(content: RenderableType) -> str:
    page = io.StringIO()
    Console(file=page, width=_WIDE, color_system=None).print(content)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()) + "\n"
