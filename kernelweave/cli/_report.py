"""``kernelweave report``: the HTML report of a saved model and the files it was made from."""

from pathlib import Path
from typing import Annotated

import typer

from kernelweave.cli import _common as common


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

    Exit codes: 0 done, 2 bad input (nothing is written).
    """
    with common.guarded("report"):
        from kernelweave import load_model
        from kernelweave.cli import _data, _outcome
        from kernelweave.evaluation.model_selection._criteria import last_step
        from kernelweave.evaluation.report import write_report
        from kernelweave.foundation._errors import DataError

        _outcome.check_file(output, overwrite=overwrite)
        fitted = load_model(model)
        form = common.text_format(delimiter, header, ids)
        data = _data.read_data(files, kernel_matrix, graph, form, rows.value)
        n_fitted = len(last_step(fitted).labels_)
        if data.n_samples != n_fitted:
            raise DataError(f"{model} was made from {n_fitted} samples, and the files hold {data.n_samples}.")
        truth = None if labels is None else _data.read_truth(labels, data, form)
        write_report(
            output, fitted, data.samples, ids=data.row_ids, labels_true=truth, sources=data.sources, random_state=seed
        )
    if not quiet:
        typer.echo(f"report: {output}", err=True)
