"""``kernelweave report``: the HTML report of a saved model and the files it was made from."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelweave.cli import catalogue, common

if TYPE_CHECKING:
    from kernelweave.cli.input_data import Data


def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model saved by 'kernelweave cluster'.")],
    files: common.Files = None,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.html", help="The report to write.")] = Path(
        "report.html"
    ),
    kernel_matrix: common.KernelMatrix = None,
    graph: common.Graph = None,
    labels: Annotated[str | None, typer.Option(metavar="FILE", help="True labels to compare with.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
    delimiter: common.Delimiter = None,
    header: common.Header = None,
    ids: common.Ids = None,
    rows: common.KeptRows = common.Rows.SAME,
    seed: common.Seed = 0,
    quiet: common.Quiet = False,
) -> None:
    """Write a report of a saved model: weights, convergence, clusters, silhouettes, a map of the samples.

    Files are those the model was made from: views are matched by name and rows by ids, whatever their order; where
    files have no ids, rows must be in the order they had.

    Exit codes: 0 done, 2 bad input (nothing is written).
    """
    with common.guarded("report"):
        from kernelweave.cli import input_data, outcome
        from kernelweave.evaluation.report import write_report
        from kernelweave.persistence.models import load_with_notes

        inputs = common.input_paths([model, *(files or ()), kernel_matrix, graph, labels])
        outcome.check_apart({"--output": [output]}, inputs)
        outcome.check_file(output, overwrite=overwrite)
        common.check_model("report", model)
        fitted, notes = load_with_notes(model)
        notes = common.notes_for(model, notes)
        if not (files or kernel_matrix or graph):
            common.fail("report", f"The files that {model} was made from are missing: give {_asked(notes)}.")
        form = common.text_format(delimiter, header, ids)
        data = input_data.read_data(files, kernel_matrix, graph, form, rows.value)
        truth = None if labels is None else input_data.read_truth(labels, data, form)
        data, order = _as_fitted(model, fitted, notes, data)
        truth = truth if truth is None or order is None else truth[order]
        warnings = []
        if order is None and notes.get("rows") is not None:
            warnings.append("The files have no ids; their rows are taken to be in the order of the model.")
        if notes.get("digest") not in (None, outcome.digest(data)):
            warnings.append(
                "The files hold other values than those the model was made from; the report shows its clusters on them."
            )
        write_report(
            output,
            fitted,
            data.samples,
            ids=data.row_ids,
            labels_true=truth,
            sources=data.sources,
            warnings=warnings,
            random_state=seed,
        )
    if not quiet:
        for warning in warnings:
            common.tell(f"warning: {warning}")
        common.tell(f"report: {output}")


def _asked(notes: dict[str, Any]) -> str:
    """Return what to give for a model."""
    kind = notes.get("kind", catalogue.TABLE)
    if kind == catalogue.VIEWS and notes.get("views"):
        return f"a file for each of the views {', '.join(notes['views'])}"
    return {catalogue.KERNEL: "--kernel-matrix FILE", catalogue.GRAPH: "--graph FILE"}.get(kind, "one table, as FILE")


def _as_fitted(model: Path, fitted: Any, notes: dict[str, Any], data: "Data") -> "tuple[Data, Any]":
    """Return the data with views, rows and columns as the model knows them, and the order of rows where ids gave it."""
    from dataclasses import replace

    from kernelweave.evaluation.describe import final_step
    from kernelweave.foundation.errors import DataError
    from kernelweave.inputs.files.tables import short

    kind = notes.get("kind", data.kind)
    tabular = (catalogue.TABLE, catalogue.VIEWS)
    if kind != data.kind and not (kind in tabular and data.kind in tabular):
        said = common.SAID
        raise DataError(f"{model} was fitted on {said[kind]}, not on {said[data.kind]}; give {_asked(notes)}.")
    n_fitted = len(final_step(fitted).labels_)
    if data.n_samples != n_fitted:
        raise DataError(f"{model} was made from {n_fitted} samples, and the files hold {data.n_samples}.")
    if kind in tabular and notes:
        data = replace(data, tables=tuple(common.as_fitted(fitted, notes, data.tables)))
    known = notes.get("rows")
    if known is None or data.ids is None:
        return data, None
    if len(known) != n_fitted:
        raise DataError(f"{model}: the saved model is damaged: it has {n_fitted} samples and {len(known)} ids.")
    if list(data.ids) == known:
        return data, list(range(n_fitted))
    place = {name: i for i, name in enumerate(data.ids)}
    missing = [name for name in known if name not in place]
    if missing:
        other = [name for name in data.ids if name not in set(known)]
        more = f", and others are there, such as {short(other[0])}" if other else ""
        raise DataError(
            f"{len(missing)} id(s) of the model are missing in the files, such as {short(missing[0])}{more}; "
            f"give the files that {model} was made from."
        )
    if len(set(known)) < n_fitted:
        twice = next(name for name in known if known.count(name) > 1)
        raise DataError(
            f"The id {short(twice)} occurs more than once, so rows can only be matched in the model's own order."
        )
    order = [place[name] for name in known]
    tables = tuple(replace(table, values=table.values[order], ids=tuple(known)) for table in data.tables)
    matrix = None if data.matrix is None else data.matrix[order][:, order]
    return replace(data, tables=tables, matrix=matrix, ids=tuple(known)), order
