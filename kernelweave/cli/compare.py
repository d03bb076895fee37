"""``kernelweave compare``: several methods on the same data."""

import json
import math
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kernelweave.cli import catalogue, messages, options

if TYPE_CHECKING:
    from kernelweave.cli.outcome import Outcome
    from kernelweave.cli.ranking import Standing


def compare(
    context: typer.Context,
    files: options.Files = None,
    clusters: Annotated[str, typer.Option("-k", "--clusters", metavar="K", help="Number of clusters, 2 or more.")] = "",
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A method; may be repeated. Default: all methods that accept the input."),
    ] = None,
    kernel_matrix: options.KernelMatrix = None,
    graph: options.Graph = None,
    scale: Annotated[options.Scale, typer.Option(help="As in 'kernelweave cluster'.")] = options.Scale.AUTO,
    labels: Annotated[str | None, typer.Option(metavar="FILE", help="True labels: adds NMI, ARI and accuracy.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.csv", help="Write the labels of all methods here.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    transpose: options.Transpose = False,
    transpose_views: options.TransposeViews = None,
    header: options.Header = None,
    ids: options.Ids = None,
    rows: options.KeptRows = options.Rows.SAME,
    missing: options.MissingCells = options.Missing.ERROR,
    columns: options.Columns = None,
    drop: options.Drop = None,
    categorical: options.Categorical = None,
    dates: options.Dates = None,
    ordered: options.Ordered = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Run several methods on the same data and compare them: with each other, by clearness, and with true labels.

    Methods are ranked by their mean agreement with the others and by how clear their clusters are compared with those
    of data without clusters, both above chance.

    Methods that do not accept the data, such as those for non-negative numbers, are left out and named; with --method
    they fail instead.

    Exit codes: 0 done, 1 a method failed (the others are shown), 2 bad input, 130 stopped by Ctrl-C (finished methods
    are shown and written).
    """
    with messages.guarded("compare"):
        from kernelweave.cli import fitting, input_data, output_files
        from kernelweave.foundation.errors import KernelError
        from kernelweave.foundation.files import write_atomically

        fitting.compile_clock()  # imports the compiler now, so that its import counts as set-up
        ready = time.perf_counter()
        k = _number(clusters)
        written = [] if output is None else [output]
        inputs = options.input_paths([*(files or ()), kernel_matrix, graph, labels])
        output_files.check_distinct({"--output": written}, inputs)
        output_files.check_labels_format("--output", output)
        output_files.check_file(output, overwrite=overwrite)
        form = options.text_format(delimiter, header, ids, decimal, transpose, transpose_views)
        reading = options.reading(columns, drop, categorical, dates, ordered, missing.value)
        data = input_data.read_data(files, kernel_matrix, graph, form, rows.value, reading)
        truth = None if labels is None else input_data.read_truth(labels, data, form)
        options.check_counts("compare", clusters, [k], data.n_samples)
        chosen, left_out = _chosen(method, data, scale.value)
        outcomes, errors, interrupted = _run(chosen, data, scale.value, truth, k, seed, reading.missing, quiet=quiet)
        if not method:  # a method that nobody named and that does not take the data has not failed
            others = {each.name for each in chosen if each.baseline}
            left_out |= {
                name: " ".join(str(error).split())
                for name, error in errors.items()
                if isinstance(error, KernelError) or name in others
            }
        failed = {name: " ".join(str(error).split()) for name, error in errors.items() if name not in left_out}
        outcomes, ranked = _ranked(outcomes, data, k, seed, reading.missing)
        if output is not None and outcomes:
            write_atomically(output, _labels_csv(outcomes))
    _show(outcomes, ranked, failed, left_out, as_json=as_json, quiet=quiet)
    if not quiet:
        waited = time.perf_counter() - context.obj
        set_up = ready - context.obj + sum(outcome.set_up for outcome in outcomes)
        messages.tell(f"time: {waited:.2f} s, {set_up:.2f} s of it to set up")
    if not quiet and not data.account.plain:
        for line in data.account.lines():
            messages.tell(line)
    elif not quiet:
        for note in data.account.assumed:
            messages.tell(f"note: {note}")
    for note in () if quiet or truth is None else truth.notes:
        messages.tell(f"note: {note}")
    if output is not None and outcomes and not quiet:
        messages.tell(f"labels: {output}")
    if interrupted:
        messages.tell("Stopped early; finished methods are shown.")
        raise typer.Exit(130)
    if failed:
        raise typer.Exit(1)


def _number(text: str) -> int:
    if not text:
        messages.fail("compare", "-k is missing: give the number of clusters, such as -k 3.")
    if not re.fullmatch("[0-9]{1,15}", text.strip()) or int(text) < 2:
        messages.fail("compare", f"-k {text}: give one number, 2 or more.")
    return int(text)


def _chosen(names: list[str] | None, data: Any, scale: str) -> tuple[list[catalogue.Method], dict[str, str]]:
    """Return the methods to run, and why others that take this kind of input are left out."""
    if names:
        named = [options.method_for("compare", name, data.kind) for name in names]
        return list({method.name: method for method in named}.values()), {}
    suited = [method for method in catalogue.METHODS if catalogue.suits(method, data.kind)]
    reasons = {method.name: _obstacle(method, data, scale) for method in suited}
    left_out = {name: reason for name, reason in reasons.items() if reason}
    return [method for method in suited if method.name not in left_out], left_out


def _obstacle(method: catalogue.Method, data: Any, scale: str) -> str:
    """Return what in the data a method does not take, or nothing."""
    from kernelweave.cli.fitting import obstacle_to

    absent = obstacle_to(method, data)
    if absent:
        return absent
    if method.negative:
        return ""
    if scale == options.Scale.STANDARD:
        return "it takes non-negative numbers only, and --scale standard makes some negative."
    for table in data.tables:
        least = _least(table.values)
        if least < 0:
            return f"it takes non-negative numbers only, and {table.place} holds {least:.6g}."
    return ""


def _least(values: Any) -> float:
    import numpy as np
    import scipy.sparse as sp

    return float(min(values.min(), 0.0) if sp.issparse(values) else np.nanmin(values))


def _run(
    chosen: list[catalogue.Method],
    data: Any,
    scale: str,
    truth: Any,
    k: int,
    seed: int,
    missing: str,
    *,
    quiet: bool,
) -> "tuple[list[Outcome], dict[str, Exception], bool]":
    """Fit one method after the other; a method that refuses the data is noted."""
    from kernelweave.cli import baselines, fitting
    from kernelweave.cli.outcome import Outcome

    outcomes: list[Outcome] = []
    failed: dict[str, Exception] = {}
    screen = Console(stderr=True)
    with fitting.Interrupt() as interrupt:
        for method in chosen:
            if not quiet and screen.is_terminal:
                screen.print(f"{method.name} ...", highlight=False)
            begun = time.perf_counter()
            catalogue.estimator_of(method)  # imported apart, as set-up
            imported = time.perf_counter() - begun
            try:
                with fitting.compile_clock() as compiling:
                    X, scaler = fitting.scaled(data, scale, method)
                    parameters = fitting.for_missing_values(method, data, missing)
                    X = baselines.side_by_side(X) if method.baseline else X
                    fit = fitting.fit(fitting.build(method, data.kind, k, parameters, seed), X, seed, data.kind)
                outcome = Outcome(data, method, fit, X, scaler, seed=seed, truth=truth)
                outcome.waited = time.perf_counter() - begun
                outcome.set_up = imported + compiling.seconds
                outcomes.append(outcome)
            except (ValueError, MemoryError) as error:
                failed[method.name] = error
            if interrupt.requested:
                break
    return outcomes, failed, interrupt.requested


def _ranked(
    outcomes: "list[Outcome]", data: Any, k: int, seed: int, missing: str
) -> "tuple[list[Outcome], list[Standing]]":
    """Return the outcomes in order, and what speaks for each."""
    from kernelweave.cli.ranking import in_order, standings

    if not outcomes:
        return [], []
    found = standings([outcome.labels for outcome in outcomes], data.samples, data.kind, k, seed, missing)
    order = in_order(found)
    return [outcomes[i] for i in order], [found[i] for i in order]


def _agreement(outcomes: "list[Outcome]") -> list[list[float]]:
    from kernelweave.metrics import normalized_mutual_info

    return [[normalized_mutual_info(one.labels, other.labels) for other in outcomes] for one in outcomes]


def _labels_csv(outcomes: "list[Outcome]") -> str:
    import csv
    import io

    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(["id", *(outcome.method.name for outcome in outcomes)])
    columns = (outcome.labels.tolist() for outcome in outcomes)
    writer.writerows(zip(outcomes[0].data.row_ids, *columns, strict=True))
    return page.getvalue()


def _show(
    outcomes: "list[Outcome]",
    ranked: "list[Standing]",
    failed: dict[str, str],
    left_out: dict[str, str],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from kernelweave.cli.ranking import verdict

    agreement = _agreement(outcomes)
    sentence = verdict([outcome.method.name for outcome in outcomes], ranked)
    if as_json:
        names = [outcome.method.name for outcome in outcomes]
        methods = [
            outcome.summary() | {"agreement": _finite(each.agreement), "clearness": each.clearness}
            for outcome, each in zip(outcomes, ranked, strict=True)
        ]
        whole: dict[str, Any] = {"methods": methods, "agreement": {"names": names, "nmi": agreement}}
        whole |= {"verdict": sentence or None, "failed": failed, "left_out": left_out}
        messages.put("compare", json.dumps(whole, indent=2, allow_nan=False) + "\n")
        return
    tables: list[Any] = [_methods_table(outcomes, ranked)]
    if sentence:
        tables += [f"\n{sentence}"]
    if len(outcomes) > 1:
        tables += ["\nAgreement (NMI)", _agreement_table(outcomes, agreement)]
    messages.put("compare", messages.rendered(None if Console().is_terminal else messages.WIDE, *tables))
    for name, reason in failed.items():
        messages.tell(f"{name} failed: {reason}")
    for name, reason in ({} if quiet else left_out).items():
        messages.tell(f"{name} left out: {reason}")


def _methods_table(outcomes: "list[Outcome]", ranked: "list[Standing]") -> Table:
    table = Table(box=None, pad_edge=False)
    scores = list(outcomes[0].scores()) if outcomes else []
    cuts = ["cut"] if outcomes and outcomes[0].fit.cut is not None else []
    for name in ("method", "clusters", "agreement", "clearness", *cuts, *scores, "waited", "set-up"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for outcome, each in zip(outcomes, ranked, strict=True):
        n_clusters = sum(size > 0 for size in outcome.sizes)
        agreement = "none" if _finite(each.agreement) is None else f"{each.agreement:.2f}"
        cells = [] if outcome.fit.cut is None else [f"{outcome.fit.cut.normalized:.4g}"]
        cells += [f"{score:.3f}" for score in outcome.scores().values()]
        times = (f"{outcome.waited or 0.0:.2f} s", f"{outcome.set_up:.2f} s")
        table.add_row(outcome.method.name, str(n_clusters), agreement, f"{each.clearness:.2f}", *cells, *times)
    return table


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _agreement_table(outcomes: "list[Outcome]", agreement: list[list[float]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for i in range(len(outcomes)):
        table.add_column(str(i + 1), justify="right")
    for i, outcome in enumerate(outcomes):
        table.add_row(f"{i + 1} {outcome.method.name}", *(f"{value:.2f}" for value in agreement[i]))
    return table
