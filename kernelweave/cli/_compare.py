"""``kernelweave compare``: several methods on the same data."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from kernelweave.cli import _catalogue as catalogue
from kernelweave.cli import _common as common

if TYPE_CHECKING:
    from kernelweave.cli._outcome import Outcome


def compare(
    files: common.Files = None,
    clusters: Annotated[int, typer.Option("-k", "--clusters", min=2, metavar="K", help="Number of clusters.")] = 0,
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

    Exit codes: 0 done, 1 a method failed (the others are shown), 2 bad input, 130 stopped by Ctrl-C (finished methods
    are shown and written).
    """
    with common.guarded("compare"):
        from kernelweave.cli import _data, _outcome

        _outcome.check_file(output, overwrite=overwrite)
        if not clusters:
            common.fail("compare", "-k is missing: say how many clusters.")
        form = common.text_format(delimiter, header, ids)
        data = _data.read_data(files, kernel_matrix, graph, form, rows.value)
        truth = None if labels is None else _data.read_truth(labels, data, form)
        if clusters > data.n_samples:
            common.fail("compare", f"-k {clusters}: there are {data.n_samples} samples only.")
        chosen = _chosen(method, data.kind)
        found, failed, stopped = _run(chosen, data, scale.value, truth, clusters, seed, quiet=quiet)
        if output is not None and found:
            _outcome.write_text(output, _labels_table(found))
    _show(found, failed, as_json=as_json)
    if output is not None and found and not quiet:
        typer.echo(f"labels: {output}", err=True)
    if stopped:
        typer.echo("Stopped before the end; finished methods are shown.", err=True)
        raise typer.Exit(130)
    if failed:
        raise typer.Exit(1)


def _chosen(names: list[str] | None, kind: str) -> list[catalogue.Method]:
    if names:
        return [common.method_for("compare", name, kind) for name in dict.fromkeys(names)]
    return [method for method in catalogue.METHODS if catalogue.suits(method, kind)]


def _run(
    chosen: list[catalogue.Method],
    data: Any,
    scale: str,
    truth: Any,
    k: int,
    seed: int,
    *,
    quiet: bool,
) -> "tuple[list[Outcome], dict[str, str], bool]":
    """Fit one method after the other; a method that refuses the data is noted."""
    from kernelweave.cli import _data, _outcome

    found: list[Outcome] = []
    failed: dict[str, str] = {}
    screen = Console(stderr=True)
    with common.Interrupt() as interrupt:
        for method in chosen:
            if not quiet and screen.is_terminal:
                screen.print(f"{method.name} ...", highlight=False)
            try:
                seen, scaler = _data.scaled(data, scale, method)
                model, seconds, messages = _outcome.timed_fit(_data.build(method, data.kind, k, {}, seed), seen)
                score = _data.silhouette(model, seen, data.kind, seed)
                one = _outcome.Outcome(data, method, model, scaler, seen, seconds, score, messages, seed=seed)
                one.truth = truth
                found.append(one)
            except (ValueError, MemoryError) as error:
                failed[method.name] = " ".join(str(error).split())
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


def _show(found: "list[Outcome]", failed: dict[str, str], *, as_json: bool) -> None:
    agreement = _agreement(found)
    if as_json:
        names = [one.method.name for one in found]
        whole = {"methods": [one.summary() for one in found], "agreement": {"names": names, "nmi": agreement}}
        typer.echo(json.dumps({**whole, "failed": failed}, indent=2, allow_nan=False))
        return
    console = Console() if Console().is_terminal else Console(width=160)
    table = Table(box=None, pad_edge=False)
    scores = list(found[0].scores()) if found else []
    for name in ("method", "clusters", "silhouette", *scores, "seconds"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for one in found:
        own = one.scores()
        shown = "none" if one.silhouette is None else f"{one.silhouette:.3f}"
        cells = [f"{own[name]:.3f}" for name in scores]
        table.add_row(one.method.name, str(sum(size > 0 for size in one.sizes)), shown, *cells, f"{one.seconds:.2f}")
    console.print(table)
    if len(found) > 1:
        console.print("\nAgreement (NMI)", highlight=False)
        square = Table(box=None, pad_edge=False)
        square.add_column("")
        for i in range(len(found)):
            square.add_column(str(i + 1), justify="right")
        for i, one in enumerate(found):
            square.add_row(f"{i + 1} {one.method.name}", *(f"{value:.2f}" for value in agreement[i]))
        console.print(square)
    for name, reason in failed.items():
        typer.echo(f"{name} failed: {reason}", err=True)
