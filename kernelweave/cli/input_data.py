"""The data a command works on: tables, a kernel matrix or a graph, with the ids of its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from kernelweave.cli import catalogue
from kernelweave.cli.reading import (
    Account,
    Reading,
    account_for,
    check_cells,
    samples_without_view,
    without_rows,
)
from kernelweave.cli.wording import note_text
from kernelweave.foundation.errors import DataError, ParameterError
from kernelweave.inputs import Table, TextFormat, align_tables, read_tables
from kernelweave.inputs.files.text import read_label_lines
from kernelweave.preprocessing import TableEncoder
from kernelweave.preprocessing.file_tables import EncodedTable, encode_as_fitted, encode_tables

# Entries of a matrix of distances, as a share of the largest one, that count as 0.
ZERO_DISTANCE = 1e-8
# Sums of squares of larger numbers are infinite.
LARGEST = 1e150


@dataclass(frozen=True)
class Data:
    """Samples as they were read from files."""

    kind: str
    tables: tuple[Table, ...] = ()
    matrix: Any = None
    ids: tuple[str, ...] | None = None
    sources: dict[str, str] = field(default_factory=dict)
    encoded: dict[str, EncodedTable] = field(default_factory=dict)  # every view as its file holds it
    account: Account = field(default_factory=Account)  # what was done to rows and cells
    warnings: tuple[str, ...] = ()  # of encoding new files as a model did
    loader: tuple[str, dict[str, Any]] = ("", {})  # of a graph: the function that reads it, and its arguments

    @property
    def samples(self) -> Any:
        """What estimators take: one array, a dict of views, or a matrix."""
        if self.matrix is not None:
            return self.matrix
        if self.kind == catalogue.TABLE:
            return self.tables[0].values
        return {table.name: table.values for table in self.tables}

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0] if self.matrix is not None else self.tables[0].n_samples)

    @property
    def row_ids(self) -> tuple[str, ...]:
        """Ids, or the numbers of the rows from 1."""
        return self.ids or tuple(str(i) for i in range(1, self.n_samples + 1))

    @property
    def columns(self) -> dict[str, list[str] | None]:
        """Names of the columns of every file that are in use, where it has some."""
        return {name: each.used_columns for name, each in self.encoded.items()}

    @property
    def complete(self) -> bool:
        """Whether no value is missing."""
        return not any(_has_nan(table) for table in self.tables)


class Fitted(Protocol):
    """What a saved model says about the files that go with it."""

    @property
    def missing(self) -> str:
        """What becomes of missing cells."""

    @property
    def encoders(self) -> Mapping[str, TableEncoder | None] | None:
        """How columns become numbers, by view; None for models that know numbers only."""

    def matched(self, tables: list[Table]) -> list[Table]:
        """Return the tables, if their columns are those of the model."""


def _check_size(encoded: EncodedTable) -> None:
    """Refuse numbers whose squares would be infinite."""
    values: Any = encoded.table.values
    entries = values.tocoo() if sp.issparse(values) else values
    large = np.abs(entries.data if sp.issparse(values) else entries) > LARGEST
    if not large.any():
        return
    at = np.argwhere(large)[0]
    row, column = (int(entries.row[at[0]]), int(entries.col[at[0]])) if sp.issparse(values) else map(int, at)
    where = f"{encoded.source.place}: row {row + 1}"
    if encoded.encoder is None or encoded.table.values.shape == encoded.source.values.shape:
        where = encoded.source.cell(row, column)
    number = float(entries.data[at[0]] if sp.issparse(values) else entries[row, column])
    raise DataError(f"{where} holds {number:.3g}, whose square overflows; rescale the column or remove the cell.")


def _check_differences(table: Table) -> None:
    """Refuse a table in which all samples are the same."""
    values: Any = table.values
    if _has_nan(table):
        present = values.toarray() if sp.issparse(values) else values
        present = present[~np.isnan(present).all(axis=1)]
        spread: Any = np.array([np.ptp(column[~np.isnan(column)]) if len(column) else 0.0 for column in present.T])
    else:
        spread = values.max(axis=0) - values.min(axis=0)
        spread = spread.toarray() if sp.issparse(spread) else spread
    if table.n_samples > 1 and not np.any(spread):
        raise DataError(
            f"{table.place}: all {table.n_samples} rows are the same, so it carries no information. Leave it out."
        )


def _has_nan(table: Table) -> bool:
    values: Any = table.values
    values = values.data if sp.issparse(values) else values
    return bool(np.isnan(values).any())


def read_data(
    files: list[str] | None,
    kernel_matrix: str | None,
    graph: Path | None,
    text: TextFormat,
    rows: Any,
    reading: Reading | None = None,
    model: Fitted | None = None,
) -> Data:
    """Read the tables, the kernel matrix or the graph, whichever is there.

    Where there is a saved ``model``, it decides on columns and cells in place of ``reading``.
    """
    reading = reading or Reading()
    if model is not None:
        reading = replace(reading, missing=model.missing, as_it_is=model.encoders is None)
    sources = [bool(files), kernel_matrix is not None, graph is not None]
    if sum(sources) != 1:
        what = "nothing to cluster" if not any(sources) else "too much"
        raise ParameterError(f"There is {what}: give tables, --kernel-matrix FILE or --graph FILE.")
    if graph is not None:
        return _graph(graph, text)
    if kernel_matrix is not None:
        return _kernel_matrix(kernel_matrix, text)
    if sum(place == "-" or place.endswith("=-") for place in files or ()) > 1:
        raise ParameterError("Standard input (-) can be used only once; write the other table to a file.")
    text = replace(text, mixed=None if reading.as_it_is else True)
    tables = [table for place in files or () for table in read_tables(place, text)]
    if model is None:
        return tables_data(tables, rows, reading)
    return tables_data(model.matched(tables), rows, reading, model.encoders)


def tables_data(
    tables: list[Table], rows: Any, reading: Reading, encoders: Mapping[str, TableEncoder | None] | None = None
) -> Data:
    """Turn tables as they were read into samples: numbers, rows matched, samples without any value left out."""
    read, warned = _encoded(tables, reading, encoders)
    for each in read:
        _check_size(each)
        check_cells(each, reading.missing, absent_allowed=rows == "all")
    _check_orientation(tables)
    encoded = {each.table.name: each for each in read}
    aligned = align_tables([each.table for each in read], rows)
    every = {name for table in tables for name in table.ids or ()}
    n_ids = len(every) or aligned[0].n_samples
    aligned = _without_empty_samples(aligned, encoded, reading.missing)
    for table in aligned:
        _check_differences(table)
    kind = catalogue.TABLE if len(aligned) == 1 else catalogue.VIEWS
    assumed = (*assumptions(tables), *(() if reading.as_it_is else _square_tables(tables)))
    account = replace(account_for(encoded, aligned, reading.missing, n_ids), assumed=assumed)
    sources = {table.name: table.source for table in aligned}
    return Data(kind, tuple(aligned), None, aligned[0].ids, sources, encoded, account, tuple(warned))


def _check_orientation(tables: Sequence[Table]) -> None:
    """Refuse a table that has the samples of another one as columns."""
    for table in reversed(tables):
        for other in tables:
            columns = set(table.columns or ())
            samples = set(other.ids or ())
            if table is other or not columns or not samples or 2 * len(columns & samples) < len(samples):
                continue
            if not samples & set(table.ids or ()):
                raise DataError(
                    f"{table.place}: its columns are the samples of {other.place}, such as "
                    f"{min(columns & samples)!r}; use --transpose-views {table.name}."
                )


def _square_tables(tables: Sequence[Table]) -> tuple[str, ...]:
    """Return a note for tables whose columns have the names of their rows, as those of similarities do."""
    square = (table for table in tables if table.ids is not None and table.ids == table.columns)
    return tuple(
        f"{table.place}: the columns have the names of the rows and count as columns of a table; if they are "
        "similarities, use --kernel-matrix"
        for table in square
    )


def assumptions(tables: Sequence[Table]) -> tuple[str, ...]:
    """Return what was assumed of the files of tables, in words."""
    return tuple(f"{table.place}: {note_text(note)}" for table in tables for note in table.notes)


def _encoded(
    tables: list[Table], reading: Reading, encoders: Mapping[str, TableEncoder | None] | None
) -> tuple[list[EncodedTable], list[str]]:
    """Return the tables as numbers, by what their columns hold or as a model did, and warnings."""
    if encoders is None:
        return encode_tables(tables, **reading.choices), []
    known = list(encoders.values())
    alone = known[0] if len(known) == 1 and len(tables) == 1 else None  # one table may have another name
    pairs = [encode_as_fitted(table, encoders.get(table.name, alone)) for table in tables]
    return [each for each, _ in pairs], [message for _, messages in pairs for message in messages]


def _without_empty_samples(tables: list[Table], encoded: Mapping[str, EncodedTable], missing: str) -> list[Table]:
    """Leave out samples of which no view knows anything; rows without ids are numbered before."""
    empty = np.all([samples_without_view(table, encoded[table.name], missing) for table in tables], axis=0)
    if not empty.any():
        return tables
    if empty.all():
        raise DataError(f"{tables[0].place}: no sample is complete; fill in cells, or use --missing median.")
    numbered = tuple(str(i) for i in range(1, tables[0].n_samples + 1))
    return [without_rows(replace(table, ids=table.ids or numbered), empty) for table in tables]


def _graph(path: Path, text: TextFormat) -> Data:
    from kernelweave.cli.graph_files import read_graph

    if text.transpose:
        raise ParameterError("--transpose is for tables; leave it out, as edges have no direction.")
    read = read_graph(path, text)
    account = Account(assumed=tuple(read.notes))
    return Data(
        catalogue.GRAPH,
        (),
        read.graph,
        read.ids,
        {"graph": str(path)},
        account=account,
        loader=(read.loader, read.arguments),
    )


def _kernel_matrix(place: str, text: TextFormat) -> Data:
    if text.transpose:
        raise ParameterError("--transpose is for tables; leave it out, as a kernel matrix is symmetric.")
    tables = read_tables(place, text)
    if len(tables) > 1:
        names = ", ".join(table.name for table in tables)
        raise DataError(f"{place}: there are several matrices ({names}); choose one as {place}:{tables[0].name}.")
    table = tables[0]
    if table.values.shape[0] != table.values.shape[1]:
        raise DataError(
            f"{table.source}: a kernel matrix is square, and this one has shape {table.values.shape}; give it as a "
            "table, without --kernel-matrix, or correct it."
        )
    ids = table.ids
    if ids is None and table.columns is not None:
        ids = table.columns
        for i, name in enumerate(ids if len(set(ids)) < len(ids) else ()):
            if name in ids[:i]:
                raise DataError(f"{table.place}: two columns are called {name!r}; names of samples must be unique.")
    elif (
        ids is not None and table.columns is not None and tuple(ids) != table.columns and not _is_counted(table.columns)
    ):
        at = next(i for i, (a, b) in enumerate(zip(ids, table.columns, strict=True)) if a != b)
        raise DataError(
            f"{table.source}: row {at + 1} is called {ids[at]!r} and column {at + 1} {table.columns[at]!r}; a kernel "
            "matrix has the same names in the same order."
        )
    _check_symmetric(table, ids)
    _check_similarities(table)
    account = Account(assumed=assumptions(tables))
    return Data(catalogue.KERNEL, (), table.values, ids, {"kernel": table.source}, account=account)


def _is_counted(columns: tuple[str, ...]) -> bool:
    """Whether columns have names that programs make up: V1, V2 ..., or X1, X2 ..., or 0, 1 ..., or 1, 2 ..."""
    begins = (("V", 1), ("X", 1), ("", 0), ("", 1))
    return any(columns == tuple(f"{word}{start + i}" for i in range(len(columns))) for word, start in begins)


def _check_symmetric(table: Table, ids: tuple[str, ...] | None) -> None:
    """Refuse a matrix that is not symmetric, with the two entries that differ most."""
    from kernelweave.foundation.errors import KernelError
    from kernelweave.kernels.checks import RELATIVE_ASYMMETRY, check_kernel_matrix

    K = table.values
    try:
        check_kernel_matrix(K)
    except KernelError as error:
        i, j = _least_symmetric_pair(K)
        one, other = (repr(ids[at]) if ids is not None else str(at + 1) for at in (i, j))
        peak = float(abs(K).max())
        entries = sp.coo_array(K)
        halves = (("upper", sp.tril(entries, -1)), ("lower", sp.triu(entries, 1)))
        half = next(
            (name for name, rest in halves if not rest.count_nonzero()),
            None,
        )
        if half is not None:
            raise DataError(
                f"{table.place}: the matrix is not symmetric: only the {half} triangle is filled in; mirror it at the "
                "diagonal, as K + K.T - diag(diag(K))."
            ) from error
        raise DataError(
            f"{table.place}: the matrix is not symmetric: row {one}, column {other} holds {K[i, j]:.12g}, and row "
            f"{other}, column {one} {K[j, i]:.12g}, a difference of {abs(K[i, j] - K[j, i]):.2g} where "
            f"{RELATIVE_ASYMMETRY[str(K.dtype)] * peak:.2g} is allowed; average the matrix with its transpose."
        ) from error


def _least_symmetric_pair(K: Any) -> tuple[int, int]:
    if sp.issparse(K):
        differences = abs(K - K.T).tocoo()
        at = int(differences.data.argmax())
        return int(differences.row[at]), int(differences.col[at])
    worst = [float(abs(K[i] - K[:, i]).max()) for i in range(len(K))]
    i = int(np.argmax(worst))
    return i, int(abs(K[i] - K[:, i]).argmax())


def _check_similarities(table: Table) -> None:
    """Refuse distances: zeros on the diagonal, positive entries elsewhere except between samples that are equal."""
    K: Any = table.values
    n = table.n_samples
    if sp.issparse(K):
        if K.nnz < n * (n - 1):
            return
        K = K.toarray()
    peak = float(K.max())
    if n < 2 or K.min() < 0 or peak <= 0 or np.diagonal(K).max() > ZERO_DISTANCE * peak:
        return
    equal = ((i, j) for i in range(n) for j in np.flatnonzero(K[i] <= ZERO_DISTANCE * peak) if i != j)
    if all(np.allclose(K[i], K[j], rtol=0, atol=2 * ZERO_DISTANCE * peak) for i, j in equal):
        raise DataError(
            f"{table.place}: this looks like distances, not similarities: the diagonal is 0 and the rest positive. "
            "Turn them into similarities, such as exp(-d / m) with m their median, or give the file as a table with "
            "--method kmedoids --set metric=precomputed. If they are similarities, write those of "
            "samples with themselves on the diagonal."
        )


@dataclass(frozen=True)
class Truth:
    """True labels of the samples, None where one is unknown, and what was assumed of their file."""

    labels: np.ndarray
    notes: tuple[str, ...] = ()

    @property
    def known(self) -> np.ndarray:
        """Which samples have a label."""
        return np.array([label is not None for label in self.labels])


def read_truth(place: str, data: Data, text: TextFormat) -> Truth:
    """Return true labels from a text file of ids and labels, or of labels alone in the order of the rows."""
    if place == "-" and "standard input" in data.sources.values():
        raise ParameterError("--labels -: standard input (-) can be used only once; write the labels to a file.")
    shown = "standard input" if place == "-" else place
    read = read_label_lines(place, replace(text, decimal=None), data.n_samples)
    labels: tuple[str | None, ...] = read.labels
    if read.ids is not None:
        by_id = dict(zip(read.ids, read.labels, strict=True))
        labels = tuple(by_id.get(name) for name in data.row_ids)
        if not set(by_id) & set(data.row_ids):
            numbered = "" if data.ids is not None else " (without ids they are called 1, 2, 3 ...)"
            raise DataError(
                f"{shown}: none of its ids belongs to a sample: it begins with {read.ids[0]!r}, the samples with "
                f"{data.row_ids[0]!r}{numbered}; write ids as in the other files."
            )
    known = sum(label is not None for label in labels)
    if not known:
        raise DataError(f"{shown}: no sample has a label; add some.")
    notes = [f"{shown}: {note_text(note)}" for note in read.notes]
    if known < len(labels):
        notes.append(f"{shown}: {known:,} of {len(labels):,} samples have a label; scores use these")
        return Truth(np.array(labels, dtype=object), tuple(notes))
    return Truth(np.array(labels), tuple(notes))
