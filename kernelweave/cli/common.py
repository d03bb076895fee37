"""What commands share: options of input files, errors told in a line, what a saved model was made from."""

import io
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from kernelweave.cli import catalogue


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

#: Options of ``cluster`` by the parameter of estimators that they set.
OPTIONS = {
    "n_clusters": "-k",
    "random_state": "--seed",
    "kernel": "--kernel",
    "kernel_params": "--kernel-param",
    "p": "--p",
}
LARGEST_SEED = 2**32 - 1
# Columns of a page where no terminal says how wide it is.
WIDE = 160

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
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of all random choices.")]


# Messages


def fail(command: str, message: str, code: int = 2) -> NoReturn:
    """Tell in one line on standard error what is wrong, and end with a code."""
    line = " ".join(str(message).split())
    seen = "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)
    tell(f"kernelweave {command}: {seen}")
    raise typer.Exit(code)


def tell(line: str) -> None:
    """Write a line to standard error, where it can be written."""
    with suppress(OSError):
        typer.echo(line, err=True)


@contextmanager
def guarded(command: str) -> Iterator[None]:
    """Turn what users can mend into one line and exit code 2."""
    from kernelweave.foundation.errors import DataError, KernelError, ParameterError, ViewError

    said = in_options if command == "cluster" else str
    try:
        yield
    except OSError as error:
        fail(command, said_by_system(error))
    except MemoryError as error:
        fail(command, f"There is not enough memory: {error or 'the data are too large'}.")
    except DataError as error:
        fail(command, str(error))
    except (KernelError, ParameterError, ViewError) as error:
        fail(command, said(str(error)) or type(error).__name__)
    except ValueError as error:  # scikit-learn's own checks
        fail(command, said(next(iter(str(error).splitlines()), "")) or type(error).__name__)


def said_by_system(error: OSError) -> str:
    """Return an error of the operating system as file and reason."""
    reason = error.strerror or re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
    name = "" if error.filename is None else re.sub(r"(\.partial)+$", "", str(error.filename)) + ": "
    return f"{name}{reason}."


def put(command: str, text: str) -> None:
    """Write to standard output; a reader that closed the pipe wanted no more, and anything else is told in a line."""
    try:
        typer.echo(text, nl=False)
    except BrokenPipeError:
        drop_output()
    except OSError as error:
        drop_output()
        fail(command, f"Standard output cannot be written: {error.strerror or error}.")
    except UnicodeEncodeError as error:
        sign = ascii(error.object[error.start])
        fail(command, f"Standard output takes {error.encoding} only, and there is {sign}; set PYTHONIOENCODING=utf-8.")


def rendered(width: int | None, *parts: Any) -> str:
    """Return what rich would print on standard output; as wide as the terminal where no width is given."""
    screen = Console()
    page = io.StringIO()
    console = Console(file=page, width=width or screen.width, force_terminal=screen.is_terminal)
    for part in parts:
        console.print(part, highlight=not isinstance(part, str))
    return page.getvalue()


def drop_output() -> None:
    """Let what is still to be written to standard output go nowhere, or Python would try again at its end."""
    try:
        output = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, output)
    os.close(nowhere)


_BAD_VALUE = re.compile(r"The '(\w+)' parameter of \w+ must be (.*)\. Got (.*) instead\.")
_ASSIGNED = re.compile(r"(?<![^\s(])(?<!--set )(set )?\b(\w+)=('[^']*'|[\w+-][\w.+-]*\w|\w)")


def in_options(text: str) -> str:
    """Return a message about parameters of estimators in the words of the command line."""
    found = _BAD_VALUE.fullmatch(text)
    if found is not None:
        name, wanted, got = found.groups()
        return f"{OPTIONS.get(name, f'--set {name}')} must be {_wanted(wanted, null=name not in OPTIONS)}; got {got}."
    found = re.search(r"^(\S+) has no parameter '(\w+)'", text)
    if found is not None and found[2] in OPTIONS:
        return f"{found[1]} takes no {OPTIONS[found[2]]}."
    return re.sub(r"(?<![\w'-])kernel_params\b", OPTIONS["kernel_params"], _ASSIGNED.sub(_as_option, text))


def _as_option(found: re.Match[str]) -> str:
    asked, name, value = found.groups()
    plain = value.strip("'")
    if name in OPTIONS:
        return f"{OPTIONS[name]} {plain}"
    return f"--set {name}={plain}" if asked else found[0]


def _wanted(text: str, *, null: bool) -> str:
    """Return what scikit-learn says a value must be, without what only Python can give, names sorted."""
    parts = re.split(r"(?:, | or )(?![^{\[(]*[}\])])", text)  # not within brackets
    shown = []
    for part in parts:
        if part == "a callable" or part.startswith("an instance of") or (part == "None" and not null):
            continue
        names = sorted(re.findall(r"'([^']*)'", part)) if part.startswith("a str among") else []
        part = "null" if part == "None" else part
        part = re.sub(r"^an? (int|float) ", lambda kind: "a whole number " if kind[1] == "int" else "a number ", part)
        shown.append(part if not names else names[0] if len(names) == 1 else f"one of {', '.join(names)}")
    return " or ".join(shown) or text


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


# Options


def counts(command: str, text: str) -> Sequence[int]:
    """Return the numbers of clusters that ``3``, ``2:8`` or ``2,3,5`` means; ranges are not written out."""
    parts = [part.strip() for part in re.split("[:,]", text)]
    ranged = ":" in text
    if (ranged and ("," in text or len(parts) != 2)) or not all(re.fullmatch("[0-9]{1,15}", part) for part in parts):
        fail(command, f"-k {text}: give a number, a range as 2:8, or a list as 2,3,5.")
    numbers = [int(part) for part in parts]
    found: Sequence[int] = range(numbers[0], numbers[1] + 1) if ranged else numbers
    if not found or min(numbers) < 1:
        fail(command, f"-k {text}: numbers of clusters are 1 or more, the smaller end of a range first.")
    if len(found) > 1 and min(numbers) < 2:
        fail(command, f"-k {text}: one cluster cannot be compared with others; begin with 2.")
    return found


def check_counts(command: str, text: str, wanted: Sequence[int], n_samples: int) -> None:
    """Refuse more clusters than samples."""
    if (wanted[-1] if isinstance(wanted, range) else max(wanted)) > n_samples:
        fail(command, f"-k {text}: there are {n_samples} samples only.")


def input_paths(places: Iterable[str | os.PathLike[str] | None]) -> list[Path]:
    """Return the files that ``FILE``, ``NAME=FILE`` or ``FILE:KEY`` name, as far as they exist."""
    found = []
    for place in places:
        if place is None or str(place) == "-":
            continue
        whole = str(place)
        path = whole.partition("=")[2] or whole
        tries = (Path(each) for each in (whole, path, path.rpartition(":")[0]) if each)
        found += [each for each in tries if each.is_file()][:1]
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
        if name in found:
            fail(command, f"{pair!r}: {name} was given before; give it once.")
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


# Saved models


def check_model(command: str, model: Path) -> None:
    """Refuse a folder, with the model that may be in it."""
    if model.is_dir():
        inside = sorted(model.glob("*.kwm"))
        fail(command, f"{model}: this is a folder; {f'give {inside[0]}' if inside else 'there is no model in it'}.")


def notes_for(model: Path, notes: dict[str, Any]) -> dict[str, Any]:
    """Return the notes of ``cluster`` in a saved model, checked; other notes say nothing here."""
    from kernelweave.foundation.errors import DataError

    if notes.get("kind") not in SAID:
        return {}
    texts = {"columns": notes.get("columns"), "rows": {"": notes.get("rows")}, "views": {"": notes.get("views")}}
    for name, lists in texts.items():
        if not (lists is None or (isinstance(lists, dict) and all(map(_are_texts, lists.values())))):
            raise DataError(f"{model}: the saved model is damaged: its notes on {name} are no lists of names.")
    return notes


def _are_texts(found: Any) -> bool:
    return found is None or (isinstance(found, list) and all(isinstance(each, str) for each in found))


def as_fitted(fitted: Any, notes: dict[str, Any], tables: Sequence[Any]) -> list[Any]:
    """Return the tables in the order of the model's views, their columns checked, or say how they differ."""
    from kernelweave.evaluation.describe import final_step
    from kernelweave.foundation.errors import DataError

    columns = notes.get("columns") or {}
    if notes.get("kind") == catalogue.VIEWS:
        known = list(notes.get("views") or final_step(fitted).view_names_)
        found = {table.name: table for table in tables}
        if set(found) != set(known):
            raise DataError(
                f"The model knows the views {', '.join(known)}, and the files are {', '.join(found)}; name them as "
                f"{known[0]}=FILE."
            )
        for name in known:
            _same_columns(found[name], columns.get(name), _width(fitted, notes, name), f"view {name!r} of the model")
        return [found[name] for name in known]
    if len(tables) > 1:
        what = SAID[notes.get("kind", catalogue.TABLE)]
        raise DataError(f"The model was fitted on {what}, and the files hold {len(tables)} tables; give one.")
    names = next(iter(columns.values()), None)
    width = _width(fitted, notes, None)
    if notes.get("kind") == catalogue.KERNEL:
        return [_old_samples(tables[0], names, width)]
    _same_columns(tables[0], names, width, "the model")
    return list(tables)


def _width(fitted: Any, notes: dict[str, Any], view: str | None) -> int | None:
    """Return the number of columns the model was fitted on, where it can be known."""
    widths = notes.get("widths")
    if isinstance(widths, dict) and widths:
        return widths.get(view) if view is not None else next(iter(widths.values()))
    first = fitted[0] if hasattr(fitted, "steps") else fitted
    return None if view is not None else getattr(first, "n_features_in_", None)


def _same_columns(table: Any, known: list[str] | None, width: int | None, whose: str) -> None:
    from kernelweave.foundation.errors import DataError
    from kernelweave.inputs.files.tables import short

    if known is not None and table.columns is not None:
        if list(table.columns) == known:
            return
        _same_names(table, known)
        at = next(i for i, (ours, theirs) in enumerate(zip(known, table.columns, strict=True)) if ours != theirs)
        raise DataError(
            f"{table.place}: the columns are in another order than those of the model: {short(known[at])} belongs "
            f"where {short(table.columns[at])} is."
        )
    found = int(table.values.shape[1])
    if width is not None and found != width:
        names = "" if known is None else f" ({_some(known)})"
        raise DataError(f"{table.place}: there are {found} column(s), and {whose} has {width}{names}; give the same.")


def _same_names(table: Any, known: list[str]) -> None:
    """Refuse columns that are missing, unknown to the model, or there twice."""
    from kernelweave.foundation.errors import DataError
    from kernelweave.inputs.files.tables import short

    missing = [name for name in known if name not in set(table.columns)]
    if missing:
        raise DataError(
            f"{table.place}: {len(missing)} column(s) of the model are missing, such as {short(missing[0])}."
        )
    more = [name for name in table.columns if name not in set(known)]
    if more:
        hint = f" If it holds ids, say --ids {more[0]}." if len(more) == 1 else ""
        raise DataError(
            f"{table.place}: {len(more)} column(s) are unknown to the model, such as {short(more[0])}.{hint}"
        )
    if len(table.columns) != len(known):
        twice = next(name for name in table.columns if table.columns.count(name) != known.count(name))
        raise DataError(f"{table.place}: the column {short(twice)} is there {table.columns.count(twice)} times.")


def _old_samples(table: Any, known: list[str] | None, width: int | None) -> Any:
    """Return similarities to the old samples with a column for each of them, in the order of the model."""
    from dataclasses import replace

    from kernelweave.foundation.errors import DataError
    from kernelweave.inputs.files.tables import short

    found = int(table.values.shape[1])
    if width is not None and found != width:
        missing = (
            [] if known is None or table.columns is None else [name for name in known if name not in table.columns]
        )
        none = f" and none for {short(missing[0])}" if missing else ""
        raise DataError(
            f"{table.place}: the model was fitted on a kernel matrix of {width} samples, so give a row for each new "
            f"sample and a column for each of those {width}; this table has {found} column(s){none}."
        )
    if known is None or table.columns is None or list(table.columns) == known:
        return table
    _same_names(table, known)
    if len(set(known)) < len(known):
        raise DataError(f"{table.place}: the columns are in another order than those of the model.")
    place = {name: i for i, name in enumerate(table.columns)}
    order = [place[name] for name in known]
    return replace(table, values=table.values[:, order], columns=tuple(known))


def _some(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
