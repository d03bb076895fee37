"""``kernelweave reproduce``: published tables, ours beside theirs."""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

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

from kernelweave.cli import common

if TYPE_CHECKING:
    from reproduction import CellResult, Experiment, ExperimentResult

_WIDE = 200  # columns for files and pipes, where nothing should be cut to fit a screen


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


def reproduce(
    ids: Annotated[list[str], typer.Argument(metavar="list|all|ID", help="What to run, or show.")],
    restarts: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Random starts per cell; default: as in the source."),
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Cells computed at a time; -1 for all cores.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="The quick subset, with few restarts.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random starts.")] = 0,
    format: Annotated[Format, typer.Option(help="Form of the results.")] = Format.TABLE,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the results here, not to the screen.")
    ] = None,
    commit: Annotated[
        str | None, typer.Option(help="Commit to name in Markdown and JSON, beside today's date.")
    ] = None,
    cache_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of finished cells; default: the user's cache.")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Neither read nor keep finished cells.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Compute again what the cache holds.")] = False,
) -> None:
    """Compute published tables again and show ours beside theirs, with a verdict for each figure.

    'reproduce list' shows what can be run. Finished cells are kept on disk: a run that was killed goes on
    where it stopped. The data sets are read from the folder that KERNELWEAVE_DATA names.

    Exit code: 0 when everything ran and nothing differs, 1 when a figure differs from the printed one,
    2 for bad input or missing data, 3 when a cell failed with an error.
    """
    from reproduction import default_cache_dir

    _check_output(output)
    if ids == ["list"]:
        _show_list(format, output)
        return
    folder = None if no_cache else cache_dir or default_cache_dir()
    options = {"restarts": restarts, "quick": quick, "seed": seed, "n_jobs": jobs, "force": force}
    results = _results(ids, {**options, "cache_dir": folder})
    _write(_rendered(results, format, commit), output)
    if any(verdict == "differs" for result in results for verdict in result.verdicts):
        raise typer.Exit(1)


def _results(ids: Sequence[str], options: dict[str, Any]) -> "list[ExperimentResult]":
    """Run what ``ids`` name; whatever stands in the way is told in a line and ends the command."""
    from kernelweave.foundation.errors import DataError, ParameterError
    from reproduction import CellError, experiments, run_experiments

    try:
        chosen = experiments.select(ids, quick=options["quick"])
        with _progress(chosen, quick=options["quick"]) as on_cell:
            return run_experiments(chosen, on_cell=on_cell, **options)
    except (ParameterError, DataError) as error:
        _fail(str(error), 2)
    except OSError as error:
        _fail(common.said_by_system(error), 2)
    except CellError as error:
        typer.echo("\n".join(error.__notes__), err=True)
        _fail(str(error), 3)


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(f"kernelweave reproduce: {' '.join(message.split())}", err=True)
    raise typer.Exit(code)


def _check_output(output: Path | None) -> None:
    """Find out before the work, not after it, that the results cannot be written."""
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        _fail(f"cannot write {output}: it is a folder or lies in one that does not exist.", 2)


@contextmanager
def _progress(chosen: "Sequence[Experiment]", *, quick: bool) -> "Iterator[Callable[[CellResult], None]]":
    """Yield a function that counts finished cells on a bar, shown where standard error is a terminal."""
    screen = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=screen, disable=not screen.is_terminal, transient=True) as bar:
        task = bar.add_task("cells", total=sum(len(each.selected(quick=quick)) for each in chosen))
        yield lambda cell: bar.update(task, advance=1, description=f"{cell.experiment}/{cell.cell}")


def _show_list(format: Format, output: Path | None) -> None:
    import reproduction as package

    known = package.experiments.catalogue().values()
    as_text = {Format.JSON: package.list_json, Format.MARKDOWN: package.list_markdown}
    _write(as_text[format](known) if format in as_text else package.list_table(known), output)


def _rendered(results: "Sequence[ExperimentResult]", format: Format, commit: str | None) -> RenderableType:
    from reproduction import as_json, as_markdown, as_table

    if format == Format.TABLE:
        return as_table(results)
    as_text = as_json if format == Format.JSON else as_markdown
    return as_text(results, date=date.today().isoformat(), commit=commit)


def _write(content: RenderableType, output: Path | None) -> None:
    """Write text as it is, and tables as wide as they need unless a terminal says otherwise."""
    if isinstance(content, str):
        text = content
    elif output is None and Console().is_terminal:
        text = common.rendered(None, content)
    else:
        text = _plain(content)
    if output is None:
        common.put("reproduce", text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        _fail(common.said_by_system(error), 2)


def _plain(content: RenderableType) -> str:
    page = io.StringIO()
    Console(file=page, width=_WIDE, color_system=None).print(content)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()) + "\n"
