"""Files matched with the model that is applied to them: same views, same columns, same samples."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelweave.cli import catalogue
from kernelweave.cli.input_data import Data
from kernelweave.cli.messages import fail
from kernelweave.evaluation.describe import final_step
from kernelweave.foundation.errors import DataError
from kernelweave.inputs.files.tables import Table, short

# How many names a message lists.
MOST_NAMES = 5


def check_model(command: str, model: Path) -> None:
    """Refuse a folder, and name the model in it."""
    if model.is_dir():
        inside = sorted(model.glob("*.kwm"))
        fail(command, f"{model}: this is a folder; {f'give {inside[0]}' if inside else 'there is no model in it'}.")


def notes_for(model: Path, notes: dict[str, Any]) -> dict[str, Any]:
    """Return the notes of ``cluster`` in a saved model, checked; notes of others count as none."""
    if notes.get("kind") not in catalogue.KINDS:
        return {}
    lists = {"columns": notes.get("columns"), "rows": {"": notes.get("rows")}, "views": {"": notes.get("views")}}
    for name, values in lists.items():
        if not (values is None or (isinstance(values, dict) and all(map(_is_list_of_names, values.values())))):
            raise DataError(f"{model}: the saved model is damaged: its notes on {name} are no lists of names.")
    return notes


def _is_list_of_names(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def input_wanted(notes: dict[str, Any]) -> str:
    """Return what to give with a model, as messages put it."""
    kind = notes.get("kind", catalogue.TABLE)
    if kind == catalogue.VIEWS and notes.get("views"):
        return f"a file for each of the views {', '.join(notes['views'])}"
    return {catalogue.KERNEL: "--kernel-matrix FILE", catalogue.GRAPH: "--graph FILE"}.get(kind, "one table, as FILE")


# New samples


def as_fitted(fitted: Any, notes: dict[str, Any], tables: Sequence[Table]) -> list[Table]:
    """Return the tables in the order of the model's views, or raise where views or columns differ."""
    columns = notes.get("columns") or {}
    if notes.get("kind") == catalogue.VIEWS:
        return _views_as_fitted(fitted, notes, tables)
    if len(tables) > 1:
        kind = catalogue.KINDS[notes.get("kind", catalogue.TABLE)]
        raise DataError(f"The model was fitted on {kind}, and the files hold {len(tables)} tables; give one.")
    names = next(iter(columns.values()), None)
    width = _width(fitted, notes, None)
    if notes.get("kind") == catalogue.KERNEL:
        return [_columns_of_training_samples(tables[0], names, width)]
    _check_columns(tables[0], names, width, "the model")
    return list(tables)


def _views_as_fitted(fitted: Any, notes: dict[str, Any], tables: Sequence[Table]) -> list[Table]:
    columns = notes.get("columns") or {}
    known = list(notes.get("views") or final_step(fitted).view_names_)
    by_name = {table.name: table for table in tables}
    if set(by_name) != set(known):
        raise DataError(
            f"The model knows the views {', '.join(known)}, and the files are {', '.join(by_name)}; name them as "
            f"{known[0]}=FILE."
        )
    for name in known:
        _check_columns(by_name[name], columns.get(name), _width(fitted, notes, name), f"view {name!r} of the model")
    return [by_name[name] for name in known]


def _width(fitted: Any, notes: dict[str, Any], view: str | None) -> int | None:
    """Return the number of columns the model was fitted on, where it can be known."""
    widths = notes.get("widths")
    if isinstance(widths, dict) and widths:
        return widths.get(view) if view is not None else next(iter(widths.values()))
    first = fitted[0] if hasattr(fitted, "steps") else fitted
    return None if view is not None else getattr(first, "n_features_in_", None)


def _check_columns(table: Table, known: list[str] | None, width: int | None, whose: str) -> None:
    """Refuse columns other than those of training: by name where both have names, else by number."""
    if known is not None and table.columns is not None:
        if list(table.columns) == known:
            return
        _check_names(table, known)
        at = next(i for i, (ours, theirs) in enumerate(zip(known, table.columns, strict=True)) if ours != theirs)
        raise DataError(
            f"{table.place}: the columns are in another order than those of the model: {short(known[at])} belongs "
            f"where {short(table.columns[at])} is."
        )
    n_columns = int(table.values.shape[1])
    if width is not None and n_columns != width:
        names = "" if known is None else f" ({_some(known)})"
        raise DataError(
            f"{table.place}: there are {n_columns} column(s), and {whose} has {width}{names}; give the same."
        )


def _check_names(table: Table, known: list[str]) -> None:
    """Refuse columns that are missing, unknown to the model, or there twice."""
    columns = table.columns or ()
    missing = [name for name in known if name not in set(columns)]
    if missing:
        raise DataError(
            f"{table.place}: {len(missing)} column(s) of the model are missing, such as {short(missing[0])}."
        )
    more = [name for name in columns if name not in set(known)]
    if more:
        hint = f" If it holds ids, say --ids {more[0]}." if len(more) == 1 else ""
        raise DataError(
            f"{table.place}: {len(more)} column(s) are unknown to the model, such as {short(more[0])}.{hint}"
        )
    if len(columns) != len(known):
        twice = next(name for name in columns if columns.count(name) != known.count(name))
        raise DataError(f"{table.place}: the column {short(twice)} is there {columns.count(twice)} times.")


def _columns_of_training_samples(table: Table, known: list[str] | None, width: int | None) -> Table:
    """Return similarities to the training samples with a column for each of them, in the order of the model."""
    n_columns = int(table.values.shape[1])
    if width is not None and n_columns != width:
        named = known is not None and table.columns is not None
        missing = [name for name in known or () if name not in (table.columns or ())] if named else []
        without = f" and none for {short(missing[0])}" if missing else ""
        raise DataError(
            f"{table.place}: the model was fitted on a kernel matrix of {width} samples, so give a row for each new "
            f"sample and a column for each of those {width}; this table has {n_columns} column(s){without}."
        )
    if known is None or table.columns is None or list(table.columns) == known:
        return table
    _check_names(table, known)
    if len(set(known)) < len(known):
        raise DataError(f"{table.place}: the columns are in another order than those of the model.")
    place = {name: i for i, name in enumerate(table.columns)}
    order = [place[name] for name in known]
    return replace(table, values=table.values[:, order], columns=tuple(known))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")


# Training samples


def data_as_fitted(model: Path, fitted: Any, notes: dict[str, Any], data: Data) -> tuple[Data, list[int] | None]:
    """Return the training data with views, columns and rows in the order of the model, and the order of the rows.

    The order is None where rows have no ids to be matched by.
    """
    kind = notes.get("kind", data.kind)
    tabular = (catalogue.TABLE, catalogue.VIEWS)
    if kind != data.kind and not (kind in tabular and data.kind in tabular):
        raise DataError(
            f"{model} was fitted on {catalogue.KINDS[kind]}, not on {catalogue.KINDS[data.kind]}; give "
            f"{input_wanted(notes)}."
        )
    n_fitted = len(final_step(fitted).labels_)
    if data.n_samples != n_fitted:
        raise DataError(f"{model} was made from {n_fitted} samples, and the files hold {data.n_samples}.")
    if kind in tabular and notes:
        data = replace(data, tables=tuple(as_fitted(fitted, notes, data.tables)))
    known = notes.get("rows")
    if known is None or data.ids is None:
        return data, None
    if len(known) != n_fitted:
        raise DataError(f"{model}: the saved model is damaged: it has {n_fitted} samples and {len(known)} ids.")
    if list(data.ids) == known:
        return data, list(range(n_fitted))
    order = _order_of_training(model, known, data.ids)
    tables = tuple(replace(table, values=table.values[order], ids=tuple(known)) for table in data.tables)
    matrix = None if data.matrix is None else data.matrix[order][:, order]
    return replace(data, tables=tables, matrix=matrix, ids=tuple(known)), order


def _order_of_training(model: Path, known: list[str], ids: Sequence[str]) -> list[int]:
    """Return where the samples of the model are among ``ids``, or raise where the two differ."""
    place = {name: i for i, name in enumerate(ids)}
    missing = [name for name in known if name not in place]
    if missing:
        other = [name for name in ids if name not in set(known)]
        more = f", and others are there, such as {short(other[0])}" if other else ""
        raise DataError(
            f"{len(missing)} id(s) of the model are missing in the files, such as {short(missing[0])}{more}; "
            f"give the files that {model} was made from."
        )
    if len(set(known)) < len(known):
        twice = next(name for name in known if known.count(name) > 1)
        raise DataError(f"The id {short(twice)} occurs more than once, so rows must be in the order of the model.")
    return [place[name] for name in known]
