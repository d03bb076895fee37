"""What commands share: options of input files, errors told in a line, interruptions."""

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from kernelweave.cli import _catalogue as catalogue


class Scale(StrEnum):
    """What is done to the columns of tables."""

    AUTO = "auto"
    STANDARD = "standard"
    UNIT_ROWS = "unit-rows"
    NONE = "none"


class Rows(StrEnum):
    """Which rows of several files are kept."""

    SAME = "same"
    COMMON = "common"


#: Kinds of input, in words.
SAID = {
    catalogue.TABLE: "one table",
    catalogue.VIEWS: "several views",
    catalogue.KERNEL: "a kernel matrix",
    catalogue.GRAPH: "a graph",
}

Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME=]FILE[:KEY]...",
        help="Tables, one per view: CSV, TSV, Parquet, NPY, NPZ, MAT, MTX, h5ad, h5mu; - is CSV from standard input.",
        show_default=False,
    ),
]
KernelMatrix = Annotated[
    str | None, typer.Option("--kernel-matrix", metavar="FILE", help="A square matrix of similarities instead.")
]
Graph = Annotated[
    Path | None,
    typer.Option("--graph", metavar="FILE", help="A graph instead: edges, one a line, or METIS (.graph, .metis)."),
]
Delimiter = Annotated[
    str | None, typer.Option(metavar="MARK", help="What parts the cells of text files; 'tab' for a tab.")
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether text files begin with names; default: as it looks."),
]
Ids = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of row ids, by name or number; 'none' for none; default: as it looks."),
]
KeptRows = Annotated[Rows, typer.Option("--rows", help="Rows of several files: the same in all, or those in common.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary on the screen.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write the result as JSON to standard output.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random choices.")]


def fail(command: str, message: str, code: int = 2) -> NoReturn:
    """Tell in one line on standard error what is wrong, and end with a code."""
    typer.echo(f"kernelweave {command}: {' '.join(str(message).split())}", err=True)
    raise typer.Exit(code)


@contextmanager
def guarded(command: str) -> Iterator[None]:
    """Turn what users can mend into one line and exit code 2."""
    from kernelweave.foundation._errors import DataError, KernelError, ParameterError, ViewError

    try:
        yield
    except (DataError, KernelError, ParameterError, ViewError, OSError, MemoryError) as error:
        fail(command, str(error) or type(error).__name__)
    except ValueError as error:  # scikit-learn's own checks
        fail(command, str(error).splitlines()[0])


class Interrupt:
    """Whether the user asked to stop; a second time ends the program at once."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> "Interrupt":
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        typer.echo("Stopping after what is being computed; press Ctrl-C again to stop at once.", err=True)

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


def counts(command: str, text: str) -> list[int]:
    """Return the numbers of clusters that ``3``, ``2:8`` or ``2,3,5`` means."""
    try:
        if ":" in text:
            low, high = (int(part) for part in text.split(":"))
            found = list(range(low, high + 1))
        else:
            found = [int(part) for part in text.split(",")]
    except ValueError:
        fail(command, f"-k {text}: give a number, a range as 2:8, or a list as 2,3,5.")
    if not found or min(found) < 1:
        fail(command, f"-k {text}: numbers of clusters are 1 or more, the smaller end of a range first.")
    if len(found) > 1 and min(found) < 2:
        fail(command, f"-k {text}: one cluster cannot be compared with others; begin with 2.")
    return found


def text_format(delimiter: str | None, header: bool | None, ids: str | None) -> Any:
    """Return how text files are to be read."""
    from kernelweave.inputs import TextFormat

    return TextFormat("\t" if delimiter == "tab" else delimiter, header, ids)


def settings(command: str, pairs: list[str]) -> dict[str, Any]:
    """Return ``name=value`` pairs, values in JSON or plain text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            fail(command, f"{pair!r}: write NAME=VALUE.")
        try:
            found[name] = json.loads(text)
        except json.JSONDecodeError:
            found[name] = text
    return found


def method_for(command: str, name: str | None, kind: str, *, with_kernel: bool = False) -> catalogue.Method:
    """Return the method asked for, or the one for this kind of input; who names a kernel has k-means in mind."""
    usual = catalogue.WITH_KERNEL if with_kernel else catalogue.DEFAULTS
    method = catalogue.find_method(name or usual[kind])
    if method is None:
        known = ", ".join(each.name for each in catalogue.METHODS if catalogue.suits(each, kind))
        fail(command, f"--method {name}: there is no such method; for {SAID[kind]} there are {known}.")
    if not catalogue.suits(method, kind):
        known = ", ".join(each.name for each in catalogue.METHODS if catalogue.suits(each, kind))
        takes = " or ".join(SAID[each] for each in method.takes)
        fail(command, f"--method {method.name} takes {takes}, not {SAID[kind]}; use {known}.")
    return method
