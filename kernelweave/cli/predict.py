"""``kernelweave predict``: clusters of new samples by a saved model."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kernelweave.cli import messages, options


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model saved by 'kernelweave cluster'.")],
    files: options.Files = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write labels here instead of to standard output."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    transpose: options.Transpose = False,
    transpose_views: options.TransposeViews = None,
    header: options.Header = None,
    ids: options.Ids = None,
    rows: options.KeptRows = options.Rows.SAME,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing but labels.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Assign new samples to the clusters of a saved model.

    Files must hold the same views with the same columns as those the model was made from; a view is matched by its
    name, which is that of the file unless NAME=FILE says otherwise. Where the method takes absent samples, as
    graph-fusion does, files of some of the views are enough, and --rows all takes samples that are in some of them.

    Exit codes: 0 done, 2 bad input (nothing is written) or not enough space for the result.
    """
    with messages.guarded("predict"):
        from kernelweave.cli import input_data, output_files, saved_models
        from kernelweave.foundation.files import write_atomically
        from kernelweave.inputs import read_tables
        from kernelweave.persistence.models import load_with_notes

        written = [] if output is None else [output]
        output_files.check_distinct({"--output": written}, options.input_paths([model, *(files or ())]))
        output_files.check_labels_format("--output", output)
        output_files.check_file(output, overwrite=overwrite)
        saved_models.check_model("predict", model)
        fitted, notes = load_with_notes(model)
        notes = saved_models.notes_for(model, notes)
        if not hasattr(fitted, "predict"):
            messages.fail(
                "predict", f"{model}: {type(fitted).__name__} cannot assign new samples; cluster all samples again."
            )
        if not files:
            messages.fail("predict", "There are no samples: give files.")
        known = saved_models.SavedFiles(fitted, notes).encoders
        form = replace(
            options.text_format(delimiter, header, ids, decimal, transpose, transpose_views),
            mixed=None if known is None else True,
            data_columns=saved_models.data_columns(notes),
        )
        tables = [table for place in files for table in read_tables(place, form)]
        new = saved_models.new_samples(fitted, notes, tables, rows.value)
        names = new.ids
        labels = fitted.predict(new.X)
        text = output_files.labels_csv(names, labels)
        if output is not None:
            write_atomically(output, text)
    if as_json:
        messages.put("predict", json.dumps(dict(zip(names, labels.tolist(), strict=True)), indent=2) + "\n")
    elif output is None:
        messages.put("predict", text)
    if not quiet:
        for note in input_data.assumptions(tables):
            messages.tell(f"note: {note}")
        for warning in new.warnings:
            messages.tell(f"warning: {warning}")
        if new.absent_views:
            given = ", ".join(f"{table.name} ({table.place})" for table in tables)
            messages.tell(f"absent views: {', '.join(new.absent_views)}; files: {given}")
    if output is not None and not quiet:
        messages.tell(f"labels: {output}")
