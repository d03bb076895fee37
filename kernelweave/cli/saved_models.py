"""Files matched with the model that is applied to them: same views, same columns, same samples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernelweave.cli import catalogue
from kernelweave.cli.input_data import Data
from kernelweave.cli.messages import fail
from kernelweave.cli.reading import check_cells
from kernelweave.evaluation.describe import final_step
from kernelweave.foundation.errors import DataError
from kernelweave.inputs import align_tables, takes_absent
from kernelweave.inputs.files.tables import Table, short
from kernelweave.preprocessing import TableEncoder
from kernelweave.preprocessing.file_tables import encode_as_fitted

# How many names a message lists.
MOST_NAMES = 5
TABULAR = (catalogue.TABLE, catalogue.VIEWS)


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
            raise DataError(f"{model}: the saved model is damaged: its notes on {name} are not lists of names.")
    return notes


def _is_list_of_names(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def input_wanted(notes: dict[str, Any]) -> str:
    """Return what to give with a model, as messages put it."""
    kind = notes.get("kind", catalogue.TABLE)
    if kind == catalogue.VIEWS and notes.get("views"):
        return f"a file for each of the views {', '.join(notes['views'])}"
    return {catalogue.KERNEL: "--kernel-matrix FILE", catalogue.GRAPH: "--graph FILE"}.get(kind, "one table, as FILE")


@dataclass(frozen=True)
class SavedFiles:
    """What a saved model says about the files that go with it."""

    fitted: Any
    notes: dict[str, Any]
    model: Path | None = None  # whose training samples the files must hold

    @property
    def missing(self) -> str:
        """What becomes of missing cells."""
        return str(getattr(final_step(self.fitted), "missing", "error"))

    @property
    def encoders(self) -> dict[str, TableEncoder | None] | None:
        """How columns become numbers, by view; None for models of versions that knew numbers only."""
        saved = self.notes.get("encoders")
        if not isinstance(saved, dict) or self.notes.get("kind") not in TABULAR:
            return None
        return {name: None if each is None else TableEncoder.from_notes(each) for name, each in saved.items()}

    def matched(self, tables: list[Table]) -> list[Table]:
        """Return the tables, if their columns are those of the model, and as many rows where they are its samples."""
        if self.model is not None:
            check_count(self.model, self.fitted, tables[0].n_samples)
        return as_fitted(self.fitted, self.notes, tables) if self.notes.get("kind") in TABULAR else tables


# New samples


def data_columns(notes: dict[str, Any]) -> frozenset[str]:
    """Return the names of the columns that a model was fitted on."""
    return frozenset(str(name) for names in (notes.get("columns") or {}).values() for name in names or ())


@dataclass(frozen=True)
class NewSamples:
    """Samples to assign: as the model takes them, their names, views without a file, and warnings."""

    X: Any
    ids: tuple[str, ...]
    absent_views: tuple[str, ...]
    warnings: tuple[str, ...]


def new_samples(fitted: Any, notes: dict[str, Any], tables: Sequence[Table], rows: Any) -> NewSamples:
    """Return the samples of files as numbers, in the order of the model's views."""
    saved = SavedFiles(fitted, notes)
    encoders = saved.encoders
    matched = as_fitted(fitted, notes, tables, some_views=takes_absent(final_step(fitted)))
    known = {} if encoders is None else encoders
    alone = next(iter(known.values()), None) if notes.get("kind") == catalogue.TABLE else None
    pairs = [encode_as_fitted(table, known.get(table.name, alone)) for table in matched]
    for each, _ in pairs:
        whose = "the model was made with --missing error"
        check_cells(each, saved.missing, absent_allowed=takes_absent(final_step(fitted)), whose=whose)
    aligned = align_tables([each.table for each, _ in pairs], rows)
    n_samples = aligned[0].n_samples
    ids = aligned[0].ids or tuple(str(i) for i in range(1, n_samples + 1))
    messages = tuple(message for _, each in pairs for message in each)
    if notes.get("kind") != catalogue.VIEWS:
        return NewSamples(aligned[0].values, ids, (), messages)
    X = {table.name: table.values for table in aligned}
    views = [str(name) for name in final_step(fitted).view_names_]
    absent = tuple(name for name in views if name not in X)
    widths = dict(zip(views, final_step(fitted)._view_widths, strict=True)) if absent else {}
    X |= {name: np.full((n_samples, widths[name]), np.nan) for name in absent}
    return NewSamples({name: X[name] for name in views}, ids, absent, messages)


def as_fitted(fitted: Any, notes: dict[str, Any], tables: Sequence[Table], *, some_views: bool = False) -> list[Table]:
    """Return the tables in the order of the model's views, or raise where views or columns differ.

    Columns that the model does not use are left out. ``some_views`` takes files for some of the views.
    """
    columns = notes.get("columns") or {}
    if notes.get("kind") == catalogue.VIEWS:
        return _views_as_fitted(fitted, notes, tables, some_views)
    if len(tables) > 1:
        kind = catalogue.KINDS[notes.get("kind", catalogue.TABLE)]
        raise DataError(f"The model was fitted on {kind}, but the files hold {len(tables)} tables; give one.")
    names = next(iter(columns.values()), None)
    width = _width(fitted, notes, None)
    if notes.get("kind") == catalogue.KERNEL:
        return [_columns_of_training_samples(tables[0], names, width)]
    table = _without_unused(tables[0], next(iter((notes.get("encoders") or {}).values()), None))
    _check_columns(table, names, width, "the model")
    return [table]


def _without_unused(table: Table, encoder: Any) -> Table:
    """Return a table without the columns that the model set aside."""
    if not isinstance(encoder, dict) or table.columns is None or table.raw is None:
        return table
    unused = set(encoder["set_aside"])
    keep = [j for j, name in enumerate(table.columns) if name not in unused]
    texts = {keep.index(j): cells for j, cells in table.raw.texts.items() if j in keep}
    places = [table.raw.places[j] for j in keep] if len(table.raw.places) else keep
    raw = replace(table.raw, texts=texts, places=places)
    return replace(table, values=table.values[:, keep], columns=tuple(table.columns[j] for j in keep), raw=raw)


def _views_as_fitted(fitted: Any, notes: dict[str, Any], tables: Sequence[Table], some_views: bool) -> list[Table]:
    columns = notes.get("columns") or {}
    known = list(notes.get("views") or final_step(fitted).view_names_)
    encoders = notes.get("encoders") or {}
    by_name = {table.name: _without_unused(table, encoders.get(table.name)) for table in tables}
    unknown = set(by_name) - set(known)
    if unknown or (set(by_name) != set(known) and not some_views):
        complete = "" if some_views or unknown else f" {type(final_step(fitted)).__name__} needs all of them."
        missing = [name for name in known if name not in by_name]
        lacks = f"; missing: {', '.join(missing)}" if missing else ""
        files = ", ".join(f"{name} ({table.place})" for name, table in by_name.items())
        example = missing[0] if missing else known[0]
        raise DataError(
            f"The model has the views {', '.join(known)}, but the files are {files}{lacks}; name them as "
            f"{example}=FILE.{complete}"
        )
    here = [name for name in known if name in by_name]
    for name in here:
        _check_columns(by_name[name], columns.get(name), _width(fitted, notes, name), f"view {name!r} of the model")
    return [by_name[name] for name in here]


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
            f"where {short(table.columns[at])} is; put them in its order."
        )
    n_columns = int(table.values.shape[1])
    if width is not None and n_columns != width:
        names = "" if known is None else f" ({_some(known)})"
        hint = " If the first column holds no ids, use --ids none." if table.ids and n_columns == width - 1 else ""
        raise DataError(
            f"{table.place}: there are {n_columns} column(s), but {whose} has {width}{names}; give the same.{hint}"
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
        hint = f" If it holds ids, use --ids {more[0]}." if len(more) == 1 else ""
        raise DataError(
            f"{table.place}: {len(more)} column(s) are unknown to the model, such as {short(more[0])}.{hint}"
        )
    if len(columns) != len(known):
        twice = next(name for name in columns if columns.count(name) != known.count(name))
        raise DataError(f"{table.place}: the column {short(twice)} occurs {columns.count(twice)} times.")


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
        raise DataError(f"{table.place}: the columns are not in the order of the model.")
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
    if kind != data.kind and not (kind in TABULAR and data.kind in TABULAR):
        raise DataError(
            f"{model} was fitted on {catalogue.KINDS[kind]}, not on {catalogue.KINDS[data.kind]}; give "
            f"{input_wanted(notes)}."
        )
    n_fitted = check_count(model, fitted, data.n_samples)
    if kind == catalogue.VIEWS and notes:  # in the order of the model
        order_of = [str(name) for name in final_step(fitted).view_names_]
        data = replace(data, tables=tuple(sorted(data.tables, key=lambda table: order_of.index(table.name))))
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


def check_count(model: Path, fitted: Any, n_samples: int) -> int:
    """Return the number of training samples, or raise where there are more or fewer."""
    n_fitted = len(final_step(fitted).labels_)
    if n_samples != n_fitted:
        raise DataError(f"{model} was made from {n_fitted} samples, but the files hold {n_samples}.")
    return n_fitted


def _order_of_training(model: Path, known: list[str], ids: Sequence[str]) -> list[int]:
    """Return where the samples of the model are among ``ids``, or raise where the two differ."""
    place = {name: i for i, name in enumerate(ids)}
    missing = [name for name in known if name not in place]
    if missing:
        other = [name for name in ids if name not in set(known)]
        more = f", and others appear instead, such as {short(other[0])}" if other else ""
        raise DataError(
            f"{len(missing)} id(s) of the model are missing from the files, such as {short(missing[0])}{more}; "
            f"give the files that {model} was made from."
        )
    if len(set(known)) < len(known):
        twice = next(name for name in known if known.count(name) > 1)
        raise DataError(f"The id {short(twice)} occurs more than once, so rows must be in the order of the model.")
    return [place[name] for name in known]
