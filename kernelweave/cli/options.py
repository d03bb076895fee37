"""Options and arguments that several commands share, and what their values mean."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelweave.cli import catalogue
from kernelweave.cli.messages import fail
from kernelweave.cli.names import KERNEL_ALIASES, METHOD_ALIASES, find_kernel, find_method, suggestion

LARGEST_SEED = 2**32 - 1


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
    ALL = "all"


class Criterion(StrEnum):
    """What decides among several numbers of clusters."""

    AUTO = "auto"
    SILHOUETTE = "silhouette"
    MODULARITY = "modularity"
    CLEARNESS = "clearness"
    BLF = "blf"
    BAF = "baf"


class Missing(StrEnum):
    """What becomes of missing cells."""

    ERROR = "error"
    DROP = "drop"
    MEAN = "mean"
    MEDIAN = "median"
    KNN = "knn"


Files = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME=]FILE[:KEY]...",
        help="Tables, one per view: CSV, TSV, XLSX, Parquet, NPY, NPZ, MAT, MTX, h5ad, h5mu; - is standard input.",
        show_default=False,
    ),
]
KernelMatrix = Annotated[
    str | None, typer.Option("--kernel-matrix", metavar="FILE", help="A square similarity matrix instead of tables.")
]
Graph = Annotated[
    Path | None,
    typer.Option(
        "--graph",
        metavar="FILE",
        help="A graph instead of tables: edges, one per line; or .graphml, .mtx, .graph, .metis.",
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(metavar="MARK", help="What separates the cells of text files; 'tab' for a tab.")
]
Decimal = Annotated[
    str | None,
    typer.Option(metavar="SIGN", help="Decimal sign in text files, ',' or '.'; the other may separate thousands."),
]
Transpose = Annotated[
    bool, typer.Option("--transpose", help="Samples are the columns of the tables, as in tables of genes.")
]
TransposeViews = Annotated[
    list[str] | None,
    typer.Option("--transpose-views", metavar="VIEWS", help="The same for some views, separated by commas."),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether text files begin with column names; default: decided by the first line."
    ),
]
Ids = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of row ids, by name or number; 'none' for none; default: decided by the first column.",
    ),
]
KeptRows = Annotated[
    Rows,
    typer.Option("--rows", help="Rows of several files: the same in all, only common ones, or all that occur in any."),
]
MissingCells = Annotated[
    Missing,
    typer.Option(
        "--missing", help="Missing cells: refuse them, fill them in, or remove the sample from the view (drop)."
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns", metavar="[VIEW:]NAMES", help="Columns to use, separated by commas; * and ? are wildcards."
    ),
]
Drop = Annotated[list[str] | None, typer.Option("--drop", metavar="[VIEW:]NAMES", help="Columns to leave out.")]
Categorical = Annotated[
    list[str] | None, typer.Option("--categorical", metavar="[VIEW:]NAMES", help="Columns to read as categories.")
]
Dates = Annotated[
    list[str] | None,
    typer.Option("--dates", metavar="[VIEW:]NAMES", help="Columns of dates to read as days since the earliest."),
]
Ordered = Annotated[
    list[str] | None,
    typer.Option("--ordered", metavar="[VIEW:]NAME=A<B<C", help="Columns of categories in this order; quote the <."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary on the screen.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write the result as JSON to standard output.")]
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed for all random choices.")]


def cluster_counts(command: str, text: str) -> Sequence[int]:
    """Return the numbers of clusters that ``3``, ``2:8`` or ``2,3,5`` means; a range stays a ``range``."""
    ends = [end.strip() for end in re.split("[:,]", text)]
    ranged = ":" in text
    if (ranged and ("," in text or len(ends) != 2)) or not all(re.fullmatch("[0-9]{1,15}", end) for end in ends):
        fail(command, f"-k {text}: give a number, a range such as 2:8, or a list such as 2,3,5.")
    numbers = [int(end) for end in ends]
    counts: Sequence[int] = range(numbers[0], numbers[1] + 1) if ranged else numbers
    if not counts or min(numbers) < 1:
        fail(command, f"-k {text}: numbers of clusters must be 1 or more, with the smaller end of a range first.")
    if len(counts) > 1 and min(numbers) < 2:
        fail(command, f"-k {text}: one cluster cannot be compared with others; start at 2.")
    return counts


def chosen_by_method(text: str) -> bool:
    """Whether ``-k`` leaves the number of clusters to the method: ``auto``, or a range."""
    return text == "auto" or ":" in text


def check_counts(command: str, text: str, counts: Sequence[int], n_samples: int) -> None:
    """Refuse more clusters than samples."""
    if (counts[-1] if isinstance(counts, range) else max(counts)) > n_samples:
        many = "is only 1 sample" if n_samples == 1 else f"are only {n_samples} samples"
        fail(command, f"-k {text}: there {many}; ask for fewer clusters.")


def input_paths(places: Iterable[str | os.PathLike[str] | None]) -> list[Path]:
    """Return the files that ``FILE``, ``NAME=FILE`` or ``FILE:KEY`` name and that exist."""
    paths = []
    for place in places:
        if place is None or str(place) == "-":
            continue
        whole = str(place)
        file = whole.partition("=")[2] or whole
        candidates = (Path(each) for each in (whole, file, file.rpartition(":")[0]) if each)
        paths += [each for each in candidates if each.is_file()][:1]
    return paths


def text_format(
    delimiter: str | None,
    header: bool | None,
    ids: str | None,
    decimal: str | None = None,
    transpose: bool = False,
    transpose_views: Sequence[str] | None = None,
) -> Any:
    """Return how to read text files."""
    from kernelweave.cli.reading import names
    from kernelweave.inputs import TextFormat

    views = names(transpose_views or ())
    mark = {"tab": "\t", "space": " ", "blank": " ", "comma": ",", "semicolon": ";"}.get(delimiter or "", delimiter)
    sign = {"comma": ",", "point": "."}.get(decimal or "", decimal)
    return TextFormat(mark, header, ids, decimal=sign, transpose=transpose or views or False)


def reading(
    columns: list[str] | None,
    drop: list[str] | None,
    categorical: list[str] | None,
    dates: list[str] | None,
    ordered: list[str] | None,
    missing: str,
    set_: Sequence[str] = (),
) -> Any:
    """Return what options say about columns and cells; tables that ``--set`` calls precomputed stay as they are."""
    from kernelweave.cli.reading import Reading, names

    return Reading(
        columns=names(columns or ()),
        drop=names(drop or ()),
        categorical=names(categorical or ()),
        dates=names(dates or ()),
        ordered=names(ordered or ()),
        missing=str(missing),
        as_it_is=any(pair in ("metric=precomputed", "kernel=precomputed") for pair in set_),
    )


def settings(command: str, pairs: list[str]) -> dict[str, Any]:
    """Return ``name=value`` pairs, values in JSON or plain text."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            fail(command, f"{pair!r}: write NAME=VALUE.")
        if name in values:
            fail(command, f"{pair!r}: {name} is given twice; give it once.")
        try:
            values[name] = json.loads(text)
        except json.JSONDecodeError:
            values[name] = text
    return values


def method_for(
    command: str, name: str | None, kind: str, parameters: Mapping[str, Any] | None = None
) -> catalogue.Method:
    """Return the method of a name, or the default for this kind of input and the parameters that are given."""
    method = find_method(name or catalogue.default_for(kind, parameters or {}), kind)
    suited = [each for each in catalogue.METHODS if catalogue.suits(each, kind)]
    known = ", ".join(each.name for each in suited if command == "compare" or not each.baseline)
    if method is None:
        near = suggestion(name or "", [*(each.name for each in catalogue.METHODS), *METHOD_ALIASES])
        fail(
            command,
            f"--method {name}: there is no such method.{near} For {catalogue.KINDS[kind]} there are {known}.",
        )
    if method.baseline and command != "compare":
        other = {"sklearn-kmeans": "k-means"}.get(method.name, "ng-spectral")
        fail(command, f"--method {method.name} is only for 'kernelweave compare'; use --method {other}.")
    if not catalogue.suits(method, kind):
        takes = " or ".join(catalogue.KINDS[each] for each in method.takes)
        fail(command, f"--method {method.name} takes {takes}, not {catalogue.KINDS[kind]}; use {known}.")
    return method


def kernel_name(command: str, name: str) -> str:
    """Return a kernel by any of its names."""
    from kernelweave.kernels.spec.fitting import KERNELS

    known = sorted(KERNELS)
    found = find_kernel(name, known)
    if found is None:
        fail(
            command,
            f"--kernel {name}: there is no such kernel.{suggestion(name, [*known, *KERNEL_ALIASES])} There are "
            f"{', '.join(known)}.",
        )
    return found
