"""What commands write: faults in one line on standard error, results on standard output."""

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import typer
from rich.console import Console

# Columns of a page where no terminal has a width.
WIDE = 160


def fail(command: str, message: str, code: int = 2) -> NoReturn:
    """Write in one line on standard error what is wrong, and end with a code."""
    tell(f"kernelweave {command}: {in_one_line(message)}")
    raise typer.Exit(code)


def in_one_line(message: str) -> str:
    """Return a message in one line, without signs that act on a terminal."""
    line = " ".join(str(message).split())
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)


def tell(line: str) -> None:
    """Write a line to standard error, where it can be written."""
    with suppress(OSError):
        typer.echo(line, err=True)


@contextmanager
def guarded(command: str) -> Iterator[None]:
    """End with one line and exit code 2 at errors that users can correct."""
    from kernelweave.cli.wording import error_text, with_options
    from kernelweave.foundation.errors import DataError, KernelError, MissingPackageError, ParameterError, ViewError

    about_parameters = with_options if command == "cluster" else str
    try:
        yield
    except OSError as error:
        fail(command, system_error_text(error))
    except MemoryError as error:
        fail(command, f"Not enough memory: {error or 'the data are too large'}.")
    except DataError as error:
        fail(command, error_text(error))
    except (KernelError, MissingPackageError, ParameterError, ViewError) as error:
        fail(command, about_parameters(error_text(error)) or type(error).__name__)
    except ValueError as error:  # of scikit-learn, whose first line is enough
        first = next(iter(str(error).splitlines()), "")
        fail(command, about_parameters(first) or type(error).__name__)


def system_error_text(error: OSError) -> str:
    """Return an error of the operating system as file and reason."""
    reason = error.strerror or re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
    name = "" if error.filename is None else f"{error.filename}: "
    return f"{name}{reason}."


def put(command: str, text: str) -> None:
    """Write to standard output; a reader that closed the pipe needs no more, any other failure is a fault."""
    try:
        typer.echo(text, nl=False)
    except BrokenPipeError:
        drop_output()
    except OSError as error:
        drop_output()
        fail(command, f"Cannot write to standard output: {error.strerror or error}.")
    except UnicodeEncodeError as error:
        sign = ascii(error.object[error.start])
        fail(command, f"Standard output takes {error.encoding} only, and there is {sign}; set PYTHONIOENCODING=utf-8.")


def rendered(width: int | None, *items: Any) -> str:
    """Return what rich would print on standard output; without a width, as wide as the terminal."""
    screen = Console()
    page = io.StringIO()
    console = Console(file=page, width=width or screen.width, force_terminal=screen.is_terminal)
    for item in items:
        console.print(item, highlight=not isinstance(item, str))
    return page.getvalue()


def drop_output() -> None:
    """Send what is still to be written to standard output nowhere, or Python would try again when it ends."""
    try:
        output = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, output)
    os.close(nowhere)
