"""``kernelweave cluster``: labels, view weights, a model and a report from files."""

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from kernelweave.cli import messages, options

if TYPE_CHECKING:
    from kernelweave.cli.catalogue import Method
    from kernelweave.cli.explaining import Wishes
    from kernelweave.cli.input_data import Data, Truth
    from kernelweave.cli.outcome import Outcome


def cluster(
    context: typer.Context,
    files: options.Files = None,
    clusters: Annotated[
        str,
        typer.Option("-k", "--clusters", metavar="K|LOW:HIGH|auto", help="Clusters, a range, or auto."),
    ] = "auto",
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A method listed by 'kernelweave methods'; default: chosen by the input."),
    ] = None,
    kernel_matrix: options.KernelMatrix = None,
    graph: options.Graph = None,
    criterion: Annotated[
        options.Criterion,
        typer.Option(
            help="What decides between several numbers of clusters; auto: silhouette, or modularity for graphs."
        ),
    ] = options.Criterion.AUTO,
    kernel: Annotated[
        list[str] | None,
        typer.Option(metavar="[VIEW=]NAME", help="Kernel of all views, or of one; may be repeated."),
    ] = None,
    kernel_param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Parameter of the kernel; may be repeated.")
    ] = None,
    p: Annotated[
        float | None,
        typer.Option(metavar="P", help="Exponent of the view weights: 1 picks one view, larger values even them out."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter of the estimator; may be repeated."),
    ] = None,
    scale: Annotated[
        options.Scale,
        typer.Option(help="Scale columns to mean 0 and deviation 1, or rows to length 1; auto: by the table."),
    ] = options.Scale.AUTO,
    labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="True labels, for comparison: lines of 'id,label' or 'label'.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Folder for labels, summary and model.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a report here: .html, or .pdf if Chromium is installed.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the state of the fit here, and resume from it after an interruption."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Describe what distinguishes every cluster: clusters.csv in the folder.")
    ] = False,
    annotate: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A table that is not clustered; annotations.csv shows how it relates to clusters."
        ),
    ] = None,
    survival: Annotated[
        str | None, typer.Option(metavar="TIME,EVENT", help="Columns of --annotate: survival time, and 1 for an event.")
    ] = None,
    embedding: Annotated[
        bool, typer.Option("--embedding", help="Write joint coordinates of the samples: embedding.csv in the folder.")
    ] = False,
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
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=options.LARGEST_SEED, help="Seed for all random choices; default: 0."),
    ] = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Cluster tables, a similarity matrix or a graph.

    Several tables are several views of the same samples: their rows are matched by ids, or by order where no file has
    ids. Text is read as categories, and a summary says what was done to rows, columns and missing cells. Without
    --output and --json, labels are written to standard output as CSV.

    Exit codes: 0 done, 2 bad input (nothing is written) or not enough space for the result, 130 stopped by Ctrl-C (the
    best result so far is written).
    """
    arguments = {
        "-k": None if clusters.strip() == "auto" else clusters,
        "--method": method,
        "--criterion": None if criterion == options.Criterion.AUTO else criterion.value,
        "--kernel-matrix": kernel_matrix,
        "--graph": graph,
        "--kernel": kernel or [],
        "--kernel-param": kernel_param or [],
        "--p": p,
        "--set": set_ or [],
        "--scale": None if scale == options.Scale.AUTO else scale.value,
        "--delimiter": delimiter,
        "--decimal": decimal,
        "--transpose": transpose,
        "--transpose-views": transpose_views or [],
        "--header": header is True,
        "--no-header": header is False,
        "--ids": ids,
        "--rows": None if rows == options.Rows.SAME else rows.value,
        "--missing": None if missing == options.Missing.ERROR else missing.value,
        "--columns": columns or [],
        "--drop": drop or [],
        "--categorical": categorical or [],
        "--dates": dates or [],
        "--ordered": ordered or [],
        "--seed": seed,
        "--explain": explain,
        "--annotate": annotate,
        "--survival": survival,
        "--embedding": embedding,
    }
    with messages.guarded("cluster"):
        from kernelweave.cli import fitting, output_files
        from kernelweave.cli.explaining import Wishes, answers_for, read_annotations

        fitting.compile_clock()  # imports the compiler now, so that its import counts as set-up
        ready = time.perf_counter()
        wishes = Wishes(explain, annotate, survival, embedding)
        wishes.check(output)
        names = wishes.file_names()
        output_files.check_folder(output, overwrite=overwrite, names=names)
        outputs = {"--output": output_files.files_of(output, names), "--report": [] if report is None else [report]}
        outputs["--checkpoint"] = [] if checkpoint is None else [checkpoint]
        output_files.check_distinct(
            outputs, options.input_paths([*(files or ()), kernel_matrix, graph, labels, annotate])
        )
        output_files.check_file(report, overwrite=overwrite, folder=output)
        output_files.check_report_format(report)
        annotations = read_annotations(wishes, options.text_format(delimiter, header, ids, decimal))
        outcome = _clustered(
            files, arguments, wishes, labels=labels, scale=scale.value, checkpoint=checkpoint, quiet=quiet
        )
        outcome.answers = answers_for(outcome, wishes, annotations)
        outcome.set_up += ready - context.obj
        outcome.waited = time.perf_counter() - context.obj
        places = _write(outcome, output, report)
        outcome.waited = time.perf_counter() - context.obj
    _show(outcome, places, quiet=quiet, as_json=as_json)
    if outcome.interrupted:
        raise typer.Exit(130)


def _clustered(
    files: list[str] | None,
    arguments: dict[str, Any],
    wishes: "Wishes",
    *,
    labels: str | None,
    scale: str,
    checkpoint: Path | None,
    quiet: bool,
) -> "Outcome":
    """Read the data, fit the method for every number of clusters, and return the best."""
    from kernelweave.cli import fitting, input_data
    from kernelweave.cli.outcome import Outcome, code_for, command_for

    wanted = "auto" if arguments["-k"] is None else arguments["-k"].strip()
    counts = [] if wanted == "auto" else options.cluster_counts("cluster", wanted)
    header = True if arguments["--header"] else False if arguments["--no-header"] else None
    form = options.text_format(
        arguments["--delimiter"],
        header,
        arguments["--ids"],
        arguments["--decimal"],
        arguments["--transpose"],
        arguments["--transpose-views"],
    )
    rows = arguments["--rows"] or "same"
    reading = options.reading(
        arguments["--columns"],
        arguments["--drop"],
        arguments["--categorical"],
        arguments["--dates"],
        arguments["--ordered"],
        arguments["--missing"] or "error",
        [*arguments["--set"], *(f"kernel={name}" for name in arguments["--kernel"])],
    )
    data = input_data.read_data(files, arguments["--kernel-matrix"], arguments["--graph"], form, rows, reading)
    if counts:
        options.check_counts("cluster", wanted, counts, data.n_samples)
    parameters = _parameters(arguments, data)
    method = options.method_for("cluster", arguments["--method"], data.kind, parameters)
    wishes.check_method(method, data.kind)
    parameters |= fitting.for_missing_values(method, data, reading.missing)
    truth = None if labels is None else input_data.read_truth(labels, data, form)
    drawn = parameters.get("random_state")
    seed = drawn if type(drawn) is int else arguments["--seed"] or 0
    X, scaler = fitting.scaled(data, scale, method, parameters)
    numbers = _numbers(method, wanted, counts, arguments["--criterion"])
    criterion = fitting.criterion_for(arguments["--criterion"] or "auto", data.kind)
    score = fitting.score_for(criterion, data, X, seed, reading.missing)
    kept = {} if checkpoint is None else _checkpoint(checkpoint, len(numbers), wanted)
    models = {k: fitting.build(method, data.kind, n, parameters | kept, seed) for k, n in numbers}
    fits = fitting.fit_all(models, X, data.kind, seed, score, quiet=quiet)
    if kept:
        fits.best.model.set_params(checkpoint=None)  # the fit has ended and the file is gone
    outcome = Outcome(data, method, fits.best, X, scaler, scale, seed, truth, fits.tried, fits.interrupted, criterion)
    outcome.set_up = fits.compiling
    outcome.notes = _notes(arguments, method, data, truth)
    outcome.command = command_for("cluster", files or [], arguments)
    places = files or [str(arguments["--kernel-matrix"] or arguments["--graph"])]
    text = {name: each for name, each in vars(form).items() if each not in (None, False, frozenset())}
    outcome.code = code_for(outcome, places, text, rows, reading)
    return outcome


def _notes(arguments: dict[str, Any], method: "Method", data: "Data", truth: "Truth | None") -> tuple[str, ...]:
    """Return what was assumed of names and files."""
    from kernelweave.cli.names import is_alias, plain

    notes = []
    if arguments["--method"] is not None and is_alias(arguments["--method"], method):
        notes.append(f"--method {arguments['--method']} is {method.name} here")
    for value in arguments["--kernel"]:
        asked = value.rpartition("=")[2]
        name = options.kernel_name("cluster", asked)
        notes += [f"--kernel {asked} is {name} here"] if plain(asked) != plain(name) else []
    return (*notes, *data.account.assumed, *(() if truth is None else truth.notes))


def _numbers(
    method: "Method", wanted: str, counts: Sequence[int], criterion: str | None = None
) -> list[tuple[Any, Any]]:
    """Return what is fitted: a number of clusters each, or one fit that chooses among them."""
    if criterion is not None and len(counts) < 2:
        messages.fail(
            "cluster",
            f"--criterion {criterion} decides between several numbers of clusters; give a range such as -k 2:8.",
        )
    judged = criterion is not None and not (criterion == "clearness" and method.ranges)  # else the method does it
    if not options.chosen_by_method(wanted) or (counts and (judged or not method.ranges)):
        return [(k, k) for k in counts]
    if not method.chooses:
        messages.fail(
            "cluster",
            f"-k {wanted}: {method.name} does not choose the number of clusters; give one, such as -k 3, or leave "
            "--method out.",
        )
    return [("auto", (min(counts), max(counts)) if counts else "auto")]


def _checkpoint(path: Path, n_fits: int, wanted: str) -> dict[str, Any]:
    """Return the parameter of the estimator; a file keeps one fit."""
    if n_fits > 1:
        messages.fail(
            "cluster", f"--checkpoint holds a single fit, but -k {wanted} asks for {n_fits}; give one number."
        )
    return {"checkpoint": str(path)}


def _parameters(arguments: dict[str, Any], data: "Data") -> dict[str, Any]:
    """Return the estimator's parameters that options name."""
    from kernelweave.cli.wording import PARAMETERS

    parameters = options.settings("cluster", arguments["--set"])
    for name, option in PARAMETERS.items():
        if name in parameters and (name == "n_clusters" or arguments[option] not in (None, [])):
            messages.fail("cluster", f"--set {name}: {option} sets this parameter; use {option} instead.")
    if arguments["--p"] is not None:
        parameters["p"] = arguments["--p"]
    kernel_params = options.settings("cluster", arguments["--kernel-param"])
    if kernel_params:
        parameters["kernel_params"] = kernel_params
    if arguments["--kernel"]:
        parameters["kernel"] = _kernels(arguments["--kernel"], [table.name for table in data.tables])
    return parameters


def _kernels(values: list[str], views: list[str]) -> str | dict[str, str]:
    """Return one kernel for all views, or that of each by its name."""
    pairs = [value.partition("=")[::2] for value in values if "=" in value]
    plain = [value for value in values if "=" not in value]
    by_view = dict(pairs)
    if len(by_view) < len(pairs):
        messages.fail("cluster", f"--kernel names a view twice: {', '.join(view for view, _ in pairs)}.")
    if len(plain) > 1 or (plain and by_view):
        messages.fail("cluster", "--kernel: give one kernel for all views, or VIEW=NAME for each view.")
    if by_view and set(by_view) != set(views):
        messages.fail("cluster", f"--kernel names views {sorted(by_view)}, but the views are {views}.")
    if plain:
        return options.kernel_name("cluster", plain[0])
    return {view: options.kernel_name("cluster", name) for view, name in by_view.items()}


def _write(outcome: "Outcome", folder: Path | None, report: Path | None) -> dict[str, Path]:
    """Write all or nothing: the report, which may be refused, is made before anything is put in its place."""
    from kernelweave.cli import output_files
    from kernelweave.foundation.files import replacement

    made = folder is not None and not folder.exists()
    if made and folder is not None:
        folder.mkdir()
    try:
        with ExitStack() as stack:
            if report is not None:
                _write_report(outcome, stack.enter_context(replacement(report)), output_files.report_format(report))
            places = {} if folder is None else output_files.write_files(outcome, folder)
    except BaseException:
        if made and folder is not None and not any(folder.iterdir()):
            folder.rmdir()
        raise
    return places if report is None else {**places, "report": report}


def _write_report(outcome: "Outcome", path: Path, file_format: str) -> Path:
    from kernelweave.cli.explaining import column_names
    from kernelweave.cli.fitting import with_scaler
    from kernelweave.evaluation.report import write_report

    account = outcome.data.account
    return write_report(
        path,
        with_scaler(outcome.model, outcome.scaler),
        outcome.data.samples,
        ids=outcome.data.row_ids,
        labels_true=None if outcome.truth is None else outcome.truth.labels,
        code=outcome.code,
        command=outcome.command,
        sources=outcome.data.sources,
        reading=[*account.lines(), *(() if outcome.truth is None else outcome.truth.notes)],
        warnings=outcome.warnings,
        feature_names=column_names(outcome.data),
        tried={k: trial.score for k, trial in outcome.tried.items()},
        criterion=outcome.criterion,
        left_out=account.left_out,
        file_format=file_format,
        random_state=outcome.seed,
    )


def _show(outcome: "Outcome", places: dict[str, Path], *, quiet: bool, as_json: bool) -> None:
    """Write JSON or labels to standard output, and the summary to standard error."""
    from kernelweave.cli.outcome import tables
    from kernelweave.cli.output_files import labels_csv
    from kernelweave.cli.wording import with_options

    if as_json:
        labels = dict(zip(outcome.data.row_ids, outcome.labels.tolist(), strict=True))
        files = {name: str(path) for name, path in places.items()}
        whole = {**outcome.summary(), **outcome.answers.summary(), "files": files, "labels": labels}
        messages.put("cluster", json.dumps(whole, indent=2, allow_nan=False) + "\n")
    elif "labels" not in places:
        messages.put("cluster", labels_csv(outcome.data.row_ids, outcome.labels))
    if quiet:
        return
    screen = Console(stderr=True)
    for table in tables(outcome, screen.encoding):
        screen.print(table)
    outcome.answers.show(screen)
    for note in (*outcome.data.account.notes(), *outcome.notes):
        screen.print(f"note: {note}", markup=False, highlight=False, soft_wrap=True)
    for warning in outcome.warnings:
        screen.print(f"warning: {with_options(warning)}", markup=False)
    for name, path in places.items():
        screen.print(f"{name}: {path}", markup=False)
    if outcome.interrupted:
        screen.print("Stopped early; the files hold the best result so far." if places else "Stopped early.")
