"""``kernelweave predict``: clusters of new samples by a saved model."""

import json
from pathlib import Path
from typing import Annotated

import typer

from kernelweave.cli import catalogue, common


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model saved by 'kernelweave cluster'.")],
    files: common.Files = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write labels here, not to standard output.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
    delimiter: common.Delimiter = None,
    header: common.Header = None,
    ids: common.Ids = None,
    rows: common.KeptRows = common.Rows.SAME,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on the screen but labels.")] = False,
    as_json: common.AsJson = False,
) -> None:
    """Assign new samples to the clusters of a saved model.

    Files must hold the same views with the same columns as those the model was made from; a view is matched by its
    name, which is that of the file unless NAME=FILE says otherwise.

    Exit codes: 0 done, 2 bad input (nothing is written) or no room for the result.
    """
    with common.guarded("predict"):
        from kernelweave.cli import outcome
        from kernelweave.inputs import align_tables, read_tables
        from kernelweave.persistence.models import load_with_notes

        written = [] if output is None else [output]
        outcome.check_apart({"--output": written}, common.input_paths([model, *(files or ())]))
        outcome.check_file(output, overwrite=overwrite)
        common.check_model("predict", model)
        fitted, notes = load_with_notes(model)
        notes = common.notes_for(model, notes)
        if not hasattr(fitted, "predict"):
            common.fail("predict", f"{model}: {type(fitted).__name__} cannot assign new samples; cluster them anew.")
        if not files:
            common.fail("predict", "There are no samples: give files.")
        form = common.text_format(delimiter, header, ids)
        tables = align_tables([table for place in files for table in read_tables(place, form)], rows.value)
        matched = common.as_fitted(fitted, notes, tables)
        several = notes.get("kind") == catalogue.VIEWS
        labels = fitted.predict({table.name: table.values for table in matched} if several else matched[0].values)
        names = tables[0].ids or tuple(str(i) for i in range(1, tables[0].n_samples + 1))
        text = outcome.labels_csv(names, labels)
        if output is not None:
            outcome.write_text(output, text)
    if as_json:
        common.put("predict", json.dumps(dict(zip(names, labels.tolist(), strict=True)), indent=2) + "\n")
    elif output is None:
        common.put("predict", text)
    if output is not None and not quiet:
        common.tell(f"labels: {output}")
