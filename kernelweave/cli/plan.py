"""``kernelweave plan``: the path, the memory and the time of a clustering before it is run."""

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelweave.cli import catalogue, messages, options

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def plan(
    shape: Annotated[
        list[str],
        typer.Argument(
            metavar="N D [D2...] | FILE...",
            help="Samples and columns of every view; or tables (NPY, CSV, TSV, Parquet) to read both from.",
            show_default=False,
        ),
    ],
    clusters: Annotated[
        str, typer.Option("-k", "--clusters", metavar="K|auto", help="Number of clusters, or auto.")
    ] = "auto",
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A method listed by 'kernelweave methods'; default: that of 'cluster'."),
    ] = None,
    kernel: Annotated[str | None, typer.Option(metavar="NAME", help="Kernel of all views.")] = None,
    memory_limit: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory for a stored kernel, such as 4GB; a plain number is MiB.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter of the estimator; may be repeated."),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, metavar="W", help="Dask workers that the fit runs on.")] = None,
    worker_memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory of each worker, such as 4GB.")
    ] = None,
    worker_threads: Annotated[int, typer.Option(min=1, metavar="T", help="Threads of each worker.")] = 1,
    from_disk: Annotated[
        bool, typer.Option("--from-disk", help="Tables stay in files and are read in blocks where memory is short.")
    ] = False,
    disk_rate: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Bytes per second from the disk, such as 500MB; default: measured."),
    ] = None,
    single: Annotated[bool, typer.Option("--float32", help="Values are stored in single precision.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Predict which path a clustering takes, the memory of each process, the data sent to workers, and the time.

    Nothing is clustered. The speed of this machine is measured in a second or two; the number of iterations depends
    on the data and is assumed, so times are given as a range.

    Exit codes: 0 done, also with warnings; 2 bad input.
    """
    with messages.guarded("plan"):
        n, widths = _shape(shape)
        from kernelweave.cli import fitting
        from kernelweave.evaluation.plan import plan as planned

        parameters = options.settings("plan", set_ or [])
        if kernel is not None:
            parameters["kernel"] = kernel
        if memory_limit is not None:
            parameters["memory_limit"] = _bytes("--memory-limit", memory_limit, plain=2**20) / 2**20
        kind = catalogue.TABLE if len(widths) == 1 else catalogue.VIEWS
        chosen = options.method_for("plan", method, kind, parameters)
        estimator = fitting.build(chosen, kind, _count(clusters, chosen), parameters, 0)
        memory = None if worker_memory is None else _bytes("--worker-memory", worker_memory)
        if memory is not None and workers is None:
            messages.fail("plan", f"--worker-memory {worker_memory}: give the number of workers with --workers.")
        tables: dict[str, Any] = {
            "from_disk": _folder(shape) if from_disk else False,
            "disk_rate": None if disk_rate is None else _bytes("--disk-rate", disk_rate),
            "value_bytes": 4 if single else _value_bytes(shape),
        }
        there: dict[str, Any] = {"n_workers": workers, "worker_memory": memory, "worker_threads": worker_threads}
        found = planned(estimator, n, widths, **there, **tables)
    if as_json:
        messages.put("plan", json.dumps(found.to_dict(), indent=2) + "\n")
    else:
        messages.put("plan", f"{found}\n")


def _count(text: str, method: catalogue.Method) -> Any:
    """Return the number of clusters, or ``"auto"`` where the method chooses it."""
    if text.strip() != "auto":
        counts = options.cluster_counts("plan", text)
        if len(counts) > 1:
            messages.fail("plan", f"-k {text}: give one number; the plan for a range is the sum over its numbers.")
        return counts[0]
    if not method.chooses:
        messages.fail("plan", f"-k is missing: {method.name} does not choose the number of clusters; give -k 3.")
    return "auto"


def _bytes(option: str, text: str, plain: int = 1) -> float:
    """Return the bytes that a size such as ``4GB`` means; ``plain`` is the unit of a number alone."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2].upper() not in _UNITS or float(match[1]) <= 0:
        messages.fail("plan", f"{option} {text}: write a size, such as 4GB or 500MiB.")
    return float(match[1]) * (_UNITS[match[2].upper()] if match[2] else plain)


# --- the shape --------------------------------------------------------------------------------------------------------


def _shape(places: list[str]) -> tuple[int, list[int]]:
    """Return the number of samples and the columns of every view, as given or of files."""
    numbers = [_number(place) for place in places]
    if numbers[0] is not None or all(number is not None for number in numbers):
        wrong = [place for place, number in zip(places, numbers, strict=True) if number is None]
        if wrong:
            messages.fail("plan", f"{wrong[0]}: give whole numbers of samples and columns, such as 10000 50.")
        values = [number for number in numbers if number is not None]
        if len(values) < 2 or min(values) < 1:
            messages.fail("plan", f"{' '.join(places)}: give samples and columns, both 1 or more, such as 10000 50.")
        return values[0], values[1:]
    shapes = {place: _file_shape(Path(place)) for place in places}
    rows = {shape[0] for shape in shapes.values()}
    if len(rows) > 1:
        each = ", ".join(f"{place} has {shape[0]:,}" for place, shape in shapes.items())
        messages.fail("plan", f"all tables must hold the same samples, but {each}.")
    return rows.pop(), [shape[1] for shape in shapes.values()]


def _number(text: str) -> int | None:
    """Return a whole number such as 1000, 1,000 or 1e9; None if it is not one."""
    match = re.fullmatch("([0-9]{1,15})(?:[eE]([0-9]{1,2}))?", text.replace(",", "").replace("_", ""))
    return None if match is None else int(match[1]) * 10 ** int(match[2] or 0)


def _file_shape(path: Path) -> tuple[int, int]:
    """Return rows and columns of a table without reading its values."""
    ending = path.suffix.lower()
    if ending == ".npy":
        import numpy as np

        shape = np.load(path, mmap_mode="r", allow_pickle=False).shape
        if len(shape) != 2:
            messages.fail("plan", f"{path} has {len(shape)} dimension(s); a table has two: samples and columns.")
        return int(shape[0]), int(shape[1])
    if ending == ".parquet":
        try:
            from pyarrow import parquet
        except ModuleNotFoundError:
            messages.fail(
                "plan", f"{path}: Parquet needs pyarrow (pip install pyarrow), or give numbers, such as 10000 50."
            )
        known = parquet.read_metadata(path)
        return int(known.num_rows), int(known.num_columns)
    if ending in (".csv", ".tsv"):
        return _text_shape(path)
    messages.fail("plan", f"{path}: give numbers, such as 10000 50, or tables in NPY, CSV, TSV or Parquet.")


def _text_shape(path: Path) -> tuple[int, int]:
    """Return lines and columns of a text file, less a header and a column of ids, as far as the first lines tell."""
    import tempfile

    from kernelweave.inputs import read_tables

    with path.open(encoding="utf-8-sig") as file:
        head = [line for _, line in zip(range(20), file, strict=False)]
        lines = len(head) + sum(1 for line in file if line.strip())
    with tempfile.TemporaryDirectory() as folder:
        start = Path(folder) / path.name
        start.write_text("".join(head), encoding="utf-8")
        (table,) = read_tables(str(start))
    return lines - (len([line for line in head if line.strip()]) - table.values.shape[0]), int(table.values.shape[1])


def _files(places: list[str]) -> list[Path]:
    """Return the files among what describes the shape."""
    return [Path(place) for place in places if Path(place).is_file()]


def _folder(places: list[str]) -> Any:
    """Return the folder of the files, or True where numbers are given."""
    found = _files(places)
    return found[0].resolve().parent if found else True


def _value_bytes(places: list[str]) -> int:
    """Return the bytes of a stored value: those of NPY files, else of double precision."""
    import numpy as np

    tables = [path for path in _files(places) if path.suffix.lower() == ".npy"]
    widths = [np.load(path, mmap_mode="r", allow_pickle=False).dtype.itemsize for path in tables]
    return min(8, max(widths, default=8))
