"""``kernelweave compare``: several methods on the same data."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kernelweave.cli import catalogue, common

if TYPE_CHECKING:
    from kernelweave.cli.outcome import Outcome


def compare(
    files: common.Files = None,
    clusters: Annotated[str, typer.Option("-k", "--clusters", metavar="K", help="Number of clusters, 2 or more.")] = "",
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A method; may be repeated. Default: all that take the input."),
    ] = None,
    kernel_matrix: common.KernelMatrix = None,
    graph: common.Graph = None,
    scale: Annotated[common.Scale, typer.Option(help="As in 'kernelweave cluster'.")] = common.Scale.AUTO,
    labels: Annotated[str | None, typer.Option(metavar="FILE", help="True labels: adds NMI, ARI and accuracy.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.csv", help="Write the labels of all methods here.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
    delimiter: common.Delimiter = None,
    header: common.Header = None,
    ids: common.Ids = None,
    rows: common.KeptRows = common.Rows.SAME,
    seed: common.Seed = 0,
    quiet: common.Quiet = False,
    as_json: common.AsJson = False,
) -> None:
    """Run several methods on the same data: silhouettes, agreement with each other and with true labels.

    Methods that do not take the data, such as those for numbers that are not negative, are left out and named; asked
    for by --method, they fail.

    Exit codes: 0 done, 1 a method failed (the others are shown), 2 bad input, 130 stopped by Ctrl-C (finished methods
    are shown and written).
    """
    with common.guarded("compare"):
        from kernelweave.cli import input_data, outcome
        from kernelweave.foundation.errors import KernelError

        k = _number(clusters)
        written = [] if output is None else [output]
        inputs = common.input_paths([*(files or ()), kernel_matrix, graph, labels])
        outcome.check_apart({"--output": written}, inputs)
        outcome.check_file(output, overwrite=overwrite)
        form = common.text_format(delimiter, header, ids)
        data = input_data.read_data(files, kernel_matrix, graph, form, rows.value)
        truth = None if labels is None else input_data.read_truth(labels, data, form)
        common.check_counts("compare", clusters, [k], data.n_samples)
        chosen, left_out = _chosen(method, data, scale.value)
        found, errors, stopped = _run(chosen, data, scale.value, truth, k, seed, quiet=quiet)
        if not method:  # who was not asked for and does not take the data has not failed
            left_out |= {name: str(error) for name, error in errors.items() if isinstance(error, KernelError)}
        failed = {name: " ".join(str(error).split()) for name, error in errors.items() if name not in left_out}
        if output is not None and found:
            outcome.write_text(output, _labels_table(found))
    _show(found, failed, left_out, as_json=as_json, quiet=quiet)
    if output is not None and found and not quiet:
        common.tell(f"labels: {output}")
    if stopped:
        common.tell("Stopped before the end; finished methods are shown.")
        raise typer.Exit(130)
    if failed:
        raise typer.Exit(1)


def _number(text: str) -> int:
    if not text:
        common.fail("compare", "-k is missing: say how many clusters, as -k 3.")
    if not re.fullmatch("[0-9]{1,15}", text.strip()) or int(text) < 2:
        common.fail("compare", f"-k {text}: give one number, 2 or more.")
    return int(text)


def _chosen(names: list[str] | None, data: Any, scale: str) -> tuple[list[catalogue.Method], dict[str, str]]:
    """Return the methods to run, and why others that take this kind of input are left out."""
    if names:
        return [common.method_for("compare", name, data.kind) for name in dict.fromkeys(names)], {}
    suited = [method for method in catalogue.METHODS if catalogue.suits(method, data.kind)]
    reasons = {method.name: _obstacle(method, data, scale) for method in suited}
    left_out = {name: reason for name, reason in reasons.items() if reason}
    return [method for method in suited if method.name not in left_out], left_out


def _obstacle(method: catalogue.Method, data: Any, scale: str) -> str:
    """Return what in the data a method does not take, or nothing."""
    if method.negative:
        return ""
    if scale == common.Scale.STANDARD:
        return "it takes numbers that are not negative, and --scale standard makes some so."
    for table in data.tables:
        least = float(table.values.min())
        if least < 0:
            return f"it takes numbers that are not negative, and {table.place} holds {least:.6g}."
    return ""


def _run(
    chosen: list[catalogue.Method],
    data: Any,
    scale: str,
    truth: Any,
    k: int,
    seed: int,
    *,
    quiet: bool,
) -> "tuple[list[Outcome], dict[str, Exception], bool]":
    """Fit one method after the other; a method that refuses the data is noted."""
    from kernelweave.cli import input_data, outcome

    found: list[Outcome] = []
    failed: dict[str, Exception] = {}
    screen = Console(stderr=True)
    with common.Interrupt() as interrupt:
        for method in chosen:
            if not quiet and screen.is_terminal:
                screen.print(f"{method.name} ...", highlight=False)
            try:
                seen, scaler = input_data.scaled(data, scale, method)
                model, seconds, messages = outcome.timed_fit(input_data.build(method, data.kind, k, {}, seed), seen)
                score = input_data.silhouette(model, seen, seed)
                one = outcome.Outcome(data, method, model, scaler, seen, seconds, score, messages, seed=seed)
                one.truth = truth
                found.append(one)
            except (ValueError, MemoryError) as error:
                failed[method.name] = error
            if interrupt.asked:
                break
    return found, failed, interrupt.asked


def _agreement(found: "list[Outcome]") -> list[list[float]]:
    from kernelweave.metrics import normalized_mutual_info

    return [[normalized_mutual_info(one.labels, other.labels) for other in found] for one in found]


def _labels_table(found: "list[Outcome]") -> str:
    import csv
    import io

    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(["id", *(one.method.name for one in found)])
    writer.writerows(zip(found[0].data.row_ids, *(one.labels.tolist() for one in found), strict=True))
    return page.getvalue()


def _show(
    found: "list[Outcome]", failed: dict[str, str], left_out: dict[str, str], *, as_json: bool, quiet: bool
) -> None:
    agreement = _agreement(found)
    if as_json:
        names = [one.method.name for one in found]
        whole = {"methods": [one.summary() for one in found], "agreement": {"names": names, "nmi": agreement}}
        whole |= {"failed": failed, "left_out": left_out}
        common.put("compare", json.dumps(whole, indent=2, allow_nan=False) + "\n")
        return
    table = Table(box=None, pad_edge=False)
    scores = list(found[0].scores()) if found else []
    drawn = found[0].drawn if found else ""
    for name in ("method", "clusters", f"silhouette{drawn}", *scores, "seconds"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for one in found:
        own = one.scores()
        shown = "none" if one.silhouette is None else f"{one.silhouette:.3f}"
        cells = [f"{own[name]:.3f}" for name in scores]
        table.add_row(one.method.name, str(sum(size > 0 for size in one.sizes)), shown, *cells, f"{one.seconds:.2f}")
    parts: list[Any] = [table]
    if len(found) > 1:
        square = Table(box=None, pad_edge=False)
        square.add_column("")
        for i in range(len(found)):
            square.add_column(str(i + 1), justify="right")
        for i, one in enumerate(found):
            square.add_row(f"{i + 1} {one.method.name}", *(f"{value:.2f}" for value in agreement[i]))
        parts += ["\nAgreement (NMI)", square]
    common.put("compare", common.rendered(None if Console().is_terminal else common.WIDE, *parts))
    for name, reason in failed.items():
        common.tell(f"{name} failed: {reason}")
    for name, reason in ({} if quiet else left_out).items():
        common.tell(f"{name} left out: {reason}")
