"""``kernelweave predict``: clusters of new samples by a saved model."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelweave.cli import _common as common


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
    as_json: common.AsJson = False,
) -> None:
    """Assign new samples to the clusters of a saved model.

    Files must hold the same views with the same columns as those the model was made from; a view is matched by its
    name, which is that of the file unless NAME=FILE says otherwise.

    Exit codes: 0 done, 2 bad input (nothing is written).
    """
    with common.guarded("predict"):
        from kernelweave.cli import _outcome
        from kernelweave.estimators._saved import load_with_notes
        from kernelweave.inputs import align_tables, read_tables

        _outcome.check_file(output, overwrite=overwrite)
        fitted, notes = load_with_notes(model)
        if not hasattr(fitted, "predict"):
            common.fail("predict", f"{model}: {type(fitted).__name__} cannot assign new samples; cluster them anew.")
        if not files:
            common.fail("predict", "There are no samples: give files.")
        form = common.text_format(delimiter, header, ids)
        tables = align_tables([table for place in files for table in read_tables(place, form)], rows.value)
        labels = fitted.predict(_samples(fitted, tables, notes))
        names = tables[0].ids or tuple(str(i) for i in range(1, tables[0].n_samples + 1))
        if as_json:
            text = json.dumps(dict(zip(names, labels.tolist(), strict=True)), indent=2) + "\n"
        else:
            text = _outcome.labels_csv(names, labels)
        if output is not None:
            _outcome.write_text(output, text)
    if output is None:
        typer.echo(text, nl=False)


def _samples(fitted: Any, tables: list[Any], notes: dict[str, Any]) -> Any:
    """Return the tables as the model knows them, or say how they differ."""
    from kernelweave.evaluation.model_selection._criteria import last_step
    from kernelweave.foundation._errors import DataError

    final = last_step(fitted)
    columns = notes.get("columns") or {}
    if notes.get("kind") == "views":
        known = list(final.view_names_)
        found = {table.name: table for table in tables}
        if set(found) != set(known):
            raise DataError(
                f"The model knows the views {', '.join(known)}, and the files are {', '.join(found)}; name them as "
                f"{known[0]}=FILE."
            )
        for name in known:
            _same_columns(found[name], columns.get(name))
        return {name: found[name].values for name in known}
    if len(tables) > 1:
        raise DataError(f"The model knows one table, and there are {len(tables)}.")
    _same_columns(tables[0], next(iter(columns.values()), None))
    return tables[0].values


def _same_columns(table: Any, known: list[str] | None) -> None:
    from kernelweave.foundation._errors import DataError

    if known is None or table.columns is None or list(table.columns) == known:
        return
    missing = [name for name in known if name not in table.columns]
    if missing:
        raise DataError(f"{table.source}: {len(missing)} column(s) of the model are missing, such as {missing[0]!r}.")
    more = [name for name in table.columns if name not in known]
    if more:
        raise DataError(f"{table.source}: {len(more)} column(s) are unknown to the model, such as {more[0]!r}.")
    raise DataError(f"{table.source}: the columns are in another order than those of the model.")
