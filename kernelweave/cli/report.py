"""``kernelweave report``: the HTML report of a saved model and the files it was made from."""

from pathlib import Path
from typing import Annotated

import typer

from kernelweave.cli import messages, options


def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model saved by 'kernelweave cluster'.")],
    files: options.Files = None,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FILE", help="The report: .html, or .pdf if Chromium is installed."),
    ] = Path("report.html"),
    kernel_matrix: options.KernelMatrix = None,
    graph: options.Graph = None,
    labels: Annotated[str | None, typer.Option(metavar="FILE", help="True labels, for comparison.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    transpose: options.Transpose = False,
    transpose_views: options.TransposeViews = None,
    header: options.Header = None,
    ids: options.Ids = None,
    rows: options.KeptRows = options.Rows.SAME,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Write a report on a saved model: a verdict, a map, what distinguishes clusters, views, samples, warnings.

    Give the files that the model was made from: views are matched by name and rows by ids, in any order; without ids,
    rows must be in their original order.

    Exit codes: 0 done, 2 bad input (nothing is written).
    """
    with messages.guarded("report"):
        from kernelweave.cli import input_data, output_files, saved_models
        from kernelweave.cli.explaining import column_names
        from kernelweave.evaluation.describe import final_step
        from kernelweave.evaluation.report import write_report
        from kernelweave.persistence.models import load_with_notes

        inputs = options.input_paths([model, *(files or ()), kernel_matrix, graph, labels])
        output_files.check_distinct({"--output": [output]}, inputs)
        output_files.check_file(output, overwrite=overwrite)
        output_files.check_report_format(output)
        saved_models.check_model("report", model)
        fitted, notes = load_with_notes(model)
        notes = saved_models.notes_for(model, notes)
        if not (files or kernel_matrix or graph):
            messages.fail(
                "report", f"The files that {model} was made from are missing: give {saved_models.input_wanted(notes)}."
            )
        form = options.text_format(delimiter, header, ids, decimal, transpose, transpose_views)
        counted = rows == options.Rows.SAME and final_step(fitted).get_params().get("missing") != "drop"
        saved = saved_models.SavedFiles(fitted, notes, model if counted else None)
        data = input_data.read_data(files, kernel_matrix, graph, form, rows.value, model=saved)
        truth = None if labels is None else input_data.read_truth(labels, data, form)
        data, order = saved_models.data_as_fitted(model, fitted, notes, data)
        classes = None if truth is None else truth.labels if order is None else truth.labels[order]
        warnings = list(data.warnings)
        if order is None and notes.get("rows") is not None:
            warnings.append("The files have no ids; their rows are assumed to be in the order of the model.")
        if notes.get("digest") not in (None, output_files.digest(data)):
            warnings.append(
                "The files hold different values from those the model was made from; "
                "the report shows its clusters on these files."
            )
        write_report(
            output,
            fitted,
            data.samples,
            ids=data.row_ids,
            labels_true=classes,
            sources=data.sources,
            warnings=warnings,
            reading=[*data.account.lines(), *(() if truth is None else truth.notes)],
            feature_names=column_names(data),
            left_out=data.account.left_out,
            random_state=seed,
        )
    if not quiet:
        for note in (*data.account.assumed, *(() if truth is None else truth.notes)):
            messages.tell(f"note: {note}")
        for warning in warnings:
            messages.tell(f"warning: {warning}")
        messages.tell(f"report: {output}")
