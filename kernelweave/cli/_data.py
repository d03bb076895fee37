"""What a command works on: tables, a kernel matrix or a graph, with the ids of its rows."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelweave.cli import _catalogue as catalogue
from kernelweave.foundation._errors import DataError, ParameterError
from kernelweave.inputs import Table, TextFormat, align_tables, read_tables


@dataclass(frozen=True)
class Data:
    """Samples as the command line got them."""

    kind: str
    tables: tuple[Table, ...] = ()
    matrix: Any = None
    ids: tuple[str, ...] | None = None
    sources: dict[str, str] = field(default_factory=dict)

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
        """Column names of every view, where it has some."""
        return {table.name: None if table.columns is None else list(table.columns) for table in self.tables}


def read_data(
    files: list[str] | None, kernel_matrix: str | None, graph: Path | None, text: TextFormat, rows: Any
) -> Data:
    """Read whichever of the three was given."""
    given = [bool(files), kernel_matrix is not None, graph is not None]
    if sum(given) != 1:
        what = "nothing to cluster" if not any(given) else "too much"
        raise ParameterError(f"There is {what}: give tables, or --kernel-matrix FILE, or --graph FILE.")
    if graph is not None:
        return _graph(graph)
    if kernel_matrix is not None:
        return _kernel_matrix(kernel_matrix, text)
    tables = [table for place in files or () for table in read_tables(place, text)]
    tables = align_tables(tables, rows)
    kind = catalogue.TABLE if len(tables) == 1 else catalogue.VIEWS
    return Data(kind, tuple(tables), None, tables[0].ids, {table.name: table.source for table in tables})


def _graph(path: Path) -> Data:
    from kernelweave.datasets import load_edge_list, load_metis

    if not path.is_file():
        raise DataError(f"{path}: there is no such file.")
    metis = path.name.removesuffix(".gz").endswith((".graph", ".metis"))
    found = load_metis(path) if metis else load_edge_list(path)
    ids = tuple(str(node) for node in found.node_ids)
    return Data(catalogue.GRAPH, (), found.graph, ids, {"graph": str(path)})


def _kernel_matrix(place: str, text: TextFormat) -> Data:
    tables = read_tables(place, text)
    if len(tables) > 1:
        names = ", ".join(table.name for table in tables)
        raise DataError(f"{place}: there are several matrices ({names}); choose one as {place}:{tables[0].name}.")
    table = tables[0]
    if table.values.shape[0] != table.values.shape[1]:
        raise DataError(f"{table.source}: a kernel matrix is square, and this one has shape {table.values.shape}.")
    ids = table.ids
    if ids is None and table.columns is not None:
        ids = table.columns
    elif ids is not None and table.columns is not None and tuple(ids) != tuple(table.columns):
        at = next(i for i, (a, b) in enumerate(zip(ids, table.columns, strict=True)) if a != b)
        raise DataError(
            f"{table.source}: row {at + 1} is called {ids[at]!r} and column {at + 1} {table.columns[at]!r}; a kernel "
            "matrix has the same names in the same order."
        )
    return Data(catalogue.KERNEL, (), table.values, ids, {"kernel": table.source})


def read_truth(place: str, data: Data, text: TextFormat) -> np.ndarray:
    """Return true labels from a text file of ids and labels, or of labels alone in the order of the rows."""
    import csv

    path = Path(place)
    if not path.is_file():
        raise DataError(f"{place}: there is no such file.")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{place}: this is no UTF-8 text.") from error
    mark = text.delimiter or ("\t" if path.suffix == ".tsv" else ",")
    rows = [(i, row) for i, row in enumerate(csv.reader(lines, delimiter=mark), 1) if row]
    if not rows:
        raise DataError(f"{place}:1: the file is empty.")
    width = len(rows[0][1])
    if width not in (1, 2) or any(len(row) != width for _, row in rows):
        bad = next((i for i, row in rows if len(row) not in (1, 2) or len(row) != width), rows[0][0])
        raise DataError(f"{place}:{bad}: lines of true labels are 'label' or 'id,label'.")
    if text.header or (text.header is None and len(rows) == data.n_samples + 1):
        rows = rows[1:]
    if width == 1:
        if len(rows) != data.n_samples:
            raise DataError(f"{place}: there are {len(rows)} labels for {data.n_samples} samples.")
        return np.array([row[0].strip() for _, row in rows])
    known = {row[0].strip(): row[1].strip() for _, row in rows}
    missing = [name for name in data.row_ids if name not in known]
    if missing:
        raise DataError(f"{place}: {len(missing)} sample(s) have no label, such as {missing[0]!r}.")
    return np.array([known[name] for name in data.row_ids])


# Estimators


def build(method: catalogue.Method, kind: str, n_clusters: int | None, options: dict[str, Any], seed: int) -> Any:
    """Return the estimator of a method with its settings; options of the user go first."""
    import kernelweave

    cls = getattr(kernelweave, method.estimator)
    known = cls._get_param_names()
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ParameterError(f"{method.name} has no parameter {unknown[0]!r}; it has {', '.join(known)}.")
    found = {name: value for name, value in method.settings.items() if name in known}
    if kind == catalogue.KERNEL:
        found = {"kernel": "precomputed"} | ({"divergence": "kernel"} if "divergence" in known else {})
    if options.get("kernel", found.get("kernel")) != found.get("kernel"):
        found.pop("kernel_params", None)  # they belong to the usual kernel
    found |= options
    if "random_state" in known:
        found.setdefault("random_state", seed)
    if n_clusters is not None:
        found["n_clusters"] = n_clusters
    return cls(**found)


def scaled(data: Data, scale: str, method: catalogue.Method) -> tuple[Any, Any]:
    """Return what the estimator is to see, and the scaler that made it (None where nothing is done)."""
    from kernelweave.preprocessing import ViewScaler

    scale = method.scale if scale == "auto" else scale
    if data.kind in (catalogue.KERNEL, catalogue.GRAPH) or scale == "none":
        return data.samples, None
    scaler = ViewScaler(method=scale.replace("-", "_")).fit(data.samples)
    return scaler.transform(data.samples), scaler


def with_scaler(model: Any, scaler: Any) -> Any:
    """Return the fitted model behind the scaler."""
    return model if scaler is None else Pipeline([("scale", scaler), ("model", model)])


def silhouette(model: Any, X: Any, kind: str, seed: int) -> float | None:
    """Return the mean silhouette, or None where there is none: graphs, one cluster."""
    from kernelweave.model_selection import score_clustering

    if kind == catalogue.GRAPH or len(np.unique(model.labels_)) < 2:
        return None
    return float(score_clustering(model, X, random_state=seed))
