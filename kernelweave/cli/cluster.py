"""``kernelweave cluster``: labels, view weights, a model and a report from files."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from kernelweave.cli import common

if TYPE_CHECKING:
    from kernelweave.cli.outcome import Outcome


def cluster(
    files: common.Files = None,
    clusters: Annotated[
        str, typer.Option("-k", "--clusters", metavar="K|LOW:HIGH", help="Clusters, or a range to choose from.")
    ] = "",
    method: Annotated[
        str | None, typer.Option(metavar="NAME", help="A method of 'kernelweave methods'; default: by the input.")
    ] = None,
    kernel_matrix: common.KernelMatrix = None,
    graph: common.Graph = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(metavar="[VIEW=]NAME", help="Kernel of all views, or of one; may be repeated."),
    ] = None,
    kernel_param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Parameter of the kernel; may be repeated.")
    ] = None,
    p: Annotated[float | None, typer.Option(metavar="P", help="How alike view weights are: 1 picks one view.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter of the estimator; may be repeated."),
    ] = None,
    scale: Annotated[
        common.Scale, typer.Option(help="Columns to mean 0 and deviation 1, or rows to length 1; auto: by the table.")
    ] = common.Scale.AUTO,
    labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="True labels to compare with: 'id,label' or 'label' lines.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Folder for labels, summary and model.")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a report here.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
    delimiter: common.Delimiter = None,
    header: common.Header = None,
    ids: common.Ids = None,
    rows: common.KeptRows = common.Rows.SAME,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=common.LARGEST_SEED, help="Seed of all random choices; 0 if nothing is said."),
    ] = None,
    quiet: common.Quiet = False,
    as_json: common.AsJson = False,
) -> None:
    """Cluster tables, a similarity matrix or a graph.

    Several tables are several views of the same samples: their rows are matched by ids, or by order where no file has
    ids. Without --output and --json, labels are written to standard output as CSV.

    Exit codes: 0 done, 2 bad input (nothing is written) or no room for the result, 130 stopped by Ctrl-C (what was
    found so far is written).
    """
    given = {
        "-k": clusters,
        "--method": method,
        "--kernel-matrix": kernel_matrix,
        "--graph": graph,
        "--kernel": kernel or [],
        "--kernel-param": kernel_param or [],
        "--p": p,
        "--set": set_ or [],
        "--scale": None if scale == common.Scale.AUTO else scale.value,
        "--delimiter": delimiter,
        "--header": header is True,
        "--no-header": header is False,
        "--ids": ids,
        "--rows": None if rows == common.Rows.SAME else rows.value,
        "--seed": seed,
    }
    with common.guarded("cluster"):
        from kernelweave.cli import outcome

        outcome.check_folder(output, overwrite=overwrite)
        outputs = {"--output": outcome.files_of(output), "--report": [] if report is None else [report]}
        outcome.check_apart(outputs, common.input_paths([*(files or ()), kernel_matrix, graph, labels]))
        outcome.check_file(report, overwrite=overwrite, folder=output)
        found = _clustered(files, given, labels=labels, scale=scale.value, quiet=quiet)
        places = _written(found, output, report)
    _tell(found, places, quiet=quiet, as_json=as_json)
    if found.interrupted:
        raise typer.Exit(130)


def _clustered(
    files: list[str] | None, given: dict[str, Any], *, labels: str | None, scale: str, quiet: bool
) -> "Outcome":
    from kernelweave.cli import input_data, outcome

    if not given["-k"]:
        common.fail("cluster", "-k is missing: say how many clusters, or give a range as -k 2:8.")
    wanted = common.counts("cluster", given["-k"])
    header = True if given["--header"] else False if given["--no-header"] else None
    form = common.text_format(given["--delimiter"], header, given["--ids"])
    data = input_data.read_data(files, given["--kernel-matrix"], given["--graph"], form, given["--rows"] or "same")
    common.check_counts("cluster", given["-k"], wanted, data.n_samples)
    method = common.method_for("cluster", given["--method"], data.kind, with_kernel=bool(given["--kernel"]))
    truth = None if labels is None else input_data.read_truth(labels, data, form)
    options = _options(given, data)
    asked = options.get("random_state")
    seed = asked if type(asked) is int else given["--seed"] or 0
    seen, scaler = input_data.scaled(data, scale, method, options)
    models = {k: input_data.build(method, data.kind, k, options, seed) for k in wanted}
    best, tried, stopped = _search(models, seen, data.kind, seed, quiet=quiet)
    model, seconds, messages, score = best
    found = outcome.Outcome(data, method, model, scaler, seen, seconds, score, messages, scale, seed)
    found.tried = tried
    found.interrupted = stopped
    found.truth = truth
    places = files or [str(given["--kernel-matrix"] or given["--graph"])]
    found.command = outcome.command_for("cluster", files or [], given)
    chosen = {name: value for name, value in vars(form).items() if value is not None}
    found.code = outcome.code_for(found, places, chosen, given["--rows"] or "same")
    return found


def _options(given: dict[str, Any], data: Any) -> dict[str, Any]:
    """Return the estimator's parameters that options name."""
    options = common.settings("cluster", given["--set"])
    for name, option in common.OPTIONS.items():
        if name in options and (name == "n_clusters" or given[option] not in (None, [])):
            common.fail("cluster", f"--set {name}: this is what {option} says; give {option} alone.")
    if given["--p"] is not None:
        options["p"] = given["--p"]
    params = common.settings("cluster", given["--kernel-param"])
    if params:
        options["kernel_params"] = params
    if given["--kernel"]:
        pairs = [each.partition("=")[::2] for each in given["--kernel"] if "=" in each]
        named = dict(pairs)
        plain = [each for each in given["--kernel"] if "=" not in each]
        if len(named) < len(pairs):
            common.fail("cluster", f"--kernel names a view twice: {', '.join(view for view, _ in pairs)}.")
        if len(plain) > 1 or (plain and named):
            common.fail("cluster", "--kernel: give one kernel for all views, or VIEW=NAME for every view.")
        views = [table.name for table in data.tables]
        if named and set(named) != set(views):
            common.fail("cluster", f"--kernel names views {sorted(named)}, but the views are {views}.")
        options["kernel"] = plain[0] if plain else named
    return options


def _search(
    models: dict[int, Any], X: Any, kind: str, seed: int, *, quiet: bool
) -> tuple[Any, dict[int, float | None], bool]:
    """Fit every number of clusters; return the best, all silhouettes, and whether the user stopped it."""
    from kernelweave.cli import input_data, outcome
    from kernelweave.foundation.errors import ParameterError

    if len(models) > 1 and kind == "graph":
        raise ParameterError("-k: a range is judged by silhouettes, which graphs do not have; give one number.")
    best: Any = None
    tried: dict[int, float | None] = {}
    screen = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    hidden = quiet or not screen.is_terminal
    with (
        common.Interrupt() as interrupt,
        Progress(*columns, TimeElapsedColumn(), console=screen, disable=hidden, transient=True) as bar,
    ):
        task = bar.add_task("clustering", total=len(models))
        for k, model in models.items():
            bar.update(task, description=f"{k} clusters")
            fitted = outcome.timed_fit(model, X)
            tried[k] = input_data.silhouette(fitted[0], X, seed)
            bar.update(task, advance=1)
            if best is None or _worth(tried[k]) > _worth(best[3]):
                best = (*fitted, tried[k])
            if interrupt.asked:
                break
    return best, tried if len(models) > 1 else {}, interrupt.asked


def _worth(score: float | None) -> float:
    return -2.0 if score is None else score


def _written(found: "Outcome", folder: Path | None, report: Path | None) -> dict[str, Path]:
    """Write all or nothing: the report, which may be refused, is made before anything is put in its place."""
    from kernelweave.cli import outcome

    made = folder is not None and not folder.exists()
    if made and folder is not None:
        folder.mkdir()
    waiting = None if report is None else outcome.partial_of(report)
    try:
        if waiting is not None:
            _write_report(found, waiting)
        places = {} if folder is None else outcome.write_files(found, folder)
        if report is not None and waiting is not None:
            os.replace(waiting, report)
            places["report"] = report
    except BaseException:
        if waiting is not None:
            waiting.unlink(missing_ok=True)
        if made and folder is not None and not any(folder.iterdir()):
            folder.rmdir()
        raise
    return places


def _write_report(found: "Outcome", path: Path) -> Path:
    from kernelweave.evaluation.report import write_report

    return write_report(
        path,
        found.model,
        found.seen,
        ids=found.data.row_ids,
        labels_true=found.truth,
        code=found.code,
        command=found.command,
        sources=found.data.sources,
        warnings=found.messages,
        random_state=found.seed,
    )


def _tell(found: "Outcome", places: dict[str, Path], *, quiet: bool, as_json: bool) -> None:
    """Show the result: JSON or labels on standard output, the summary on standard error."""
    from kernelweave.cli import outcome

    if as_json:
        labels = dict(zip(found.data.row_ids, found.labels.tolist(), strict=True))
        files = {name: str(path) for name, path in places.items()}
        whole = {**found.summary(), "files": files, "labels": labels}
        common.put("cluster", json.dumps(whole, indent=2, allow_nan=False) + "\n")
    elif "labels" not in places:
        common.put("cluster", outcome.labels_csv(found.data.row_ids, found.labels))
    if quiet:
        return
    screen = Console(stderr=True)
    for table in outcome.tables(found, screen.encoding):
        screen.print(table)
    for message in found.messages:
        screen.print(f"warning: {common.in_options(message)}", markup=False)
    for name, path in places.items():
        screen.print(f"{name}: {path}", markup=False)
    if found.interrupted:
        screen.print("Stopped before the end; the files hold what was found so far." if places else "Stopped early.")
