"""What ``cluster`` says about clusters and samples beyond their labels: columns, annotations, coordinates."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table as ScreenTable
from rich.text import Text

from kernelweave.cli import catalogue
from kernelweave.cli.fitting import with_scaler
from kernelweave.evaluation.describe.samples import joint_coordinates
from kernelweave.evaluation.explain import AnnotationTable, ClusterExplanation, explain_annotations, explain_clusters
from kernelweave.evaluation.explain.annotations import MEANING
from kernelweave.evaluation.explain.records import as_csv
from kernelweave.foundation.array_types import Floats
from kernelweave.foundation.errors import DataError, ParameterError
from kernelweave.foundation.files import write_atomically
from kernelweave.inputs import Table, TextFormat, read_tables
from kernelweave.preprocessing.file_tables import named_cells

if TYPE_CHECKING:
    from kernelweave.cli.input_data import Data
    from kernelweave.cli.outcome import Outcome

#: Files in the output folder.
CLUSTERS = "clusters.csv"
CLUSTER_TEXT = "clusters.txt"
ANNOTATIONS = "annotations.csv"
EMBEDDING = "embedding.csv"


@dataclass(frozen=True)
class Wishes:
    """What the user asks for."""

    explain: bool = False
    annotate: str | None = None
    survival: str | None = None
    embedding: bool = False

    def check(self, folder: Path | None) -> None:
        """Refuse requests that cannot be combined."""
        if self.embedding and folder is None:
            raise ParameterError(f"--embedding writes {EMBEDDING} into a folder; name it with --output.")
        if self.survival is not None and self.annotate is None:
            raise ParameterError("--survival names columns of an annotation file; give it with --annotate FILE.")
        if self.survival is not None and len(self.survival_columns or ()) != 2:
            raise ParameterError(f"--survival {self.survival}: name two columns, such as time,event.")

    def check_method(self, method: catalogue.Method, kind: str) -> None:
        """Refuse a method without coordinates where these are asked for, before it is fitted."""
        if self.embedding and not method.embeds:
            others = [each.name for each in catalogue.METHODS if each.embeds and catalogue.suits(each, kind)]
            raise ParameterError(
                f"--embedding: {method.name} has no joint coordinates of the samples. For {catalogue.KINDS[kind]} "
                f"these methods have some: {', '.join(others)}; name one with --method."
            )

    @property
    def survival_columns(self) -> tuple[str, ...] | None:
        """Names of the columns with time and event."""
        return None if self.survival is None else tuple(name.strip() for name in self.survival.split(","))

    def file_names(self) -> tuple[str, ...]:
        """Return the names of the files that are written into the folder."""
        wished = {
            CLUSTERS: self.explain,
            CLUSTER_TEXT: self.explain,
            ANNOTATIONS: self.annotate is not None,
            EMBEDDING: self.embedding,
        }
        return tuple(name for name, wanted in wished.items() if wanted)


@dataclass(frozen=True, eq=False)
class Answers:
    """What was computed."""

    clusters: ClusterExplanation | None = None
    annotations: AnnotationTable | None = None
    coordinates: Floats | None = None

    def write(self, folder: Path, ids: tuple[str, ...]) -> dict[str, Path]:
        """Write files and return them by what they hold."""
        written = {}
        if self.clusters is not None:
            written["clusters"] = self.clusters.to_csv(folder / CLUSTERS)
            written["words"] = write_atomically(folder / CLUSTER_TEXT, self.clusters.summary() + "\n")
        if self.annotations is not None:
            written["annotations"] = self.annotations.to_csv(folder / ANNOTATIONS)
        if self.coordinates is not None:
            header = ["id", *(f"x{j}" for j in range(self.coordinates.shape[1]))]
            rows = ([name, *row] for name, row in zip(ids, self.coordinates.tolist(), strict=True))
            written["embedding"] = write_atomically(folder / EMBEDDING, as_csv(header, rows))
        return written

    def summary(self) -> dict[str, Any]:
        """Return what there is as JSON holds it."""
        told = {}
        if self.clusters is not None:
            told["explanation"] = [_plain(asdict(row)) for row in self.clusters.rows]
        if self.annotations is not None:
            told["annotations"] = [_plain(asdict(row)) for row in self.annotations.rows]
        return told

    def show(self, screen: Console) -> None:
        """Print a line for every cluster, and a short table of annotations."""
        if self.clusters is not None:
            has_columns = bool(self.clusters.rows) or self.clusters.graph is not None
            screen.print(Text(self.clusters.summary(samples=not has_columns)))
        if self.annotations is not None:
            screen.print(_annotation_table(self.annotations))
            for line in self.annotations.notes():
                screen.print(f"note: {line}", markup=False, highlight=False)
            screen.print(MEANING, markup=False, highlight=False)


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value != value else value for name, value in record.items()}


def _annotation_table(annotations: AnnotationTable) -> ScreenTable:
    table = ScreenTable(box=None, pad_edge=False)
    for name in ("annotation", "test", "effect", "adjusted p"):
        table.add_column(name, justify="right" if name in ("effect", "adjusted p") else "left")
    for row in annotations.rows:
        effect = "" if np.isnan(row.effect) else f"{row.effect:.2f}"
        table.add_row(Text(row.column), row.test, effect, f"{row.adjusted_p:.2g}")
    return table


def read_annotations(wishes: Wishes, text: TextFormat) -> Table | None:
    """Return the annotation file as it was read; None without one."""
    if wishes.annotate is None:
        return None
    tables = read_tables(wishes.annotate, replace(text, mixed=True))
    if len(tables) != 1:
        raise DataError(f"--annotate {wishes.annotate}: there are {len(tables)} tables; name one with FILE:KEY.")
    names = [name for name, _ in named_cells(tables[0])]
    for name in wishes.survival_columns or ():
        if name not in names:
            raise ParameterError(f"--survival {wishes.survival}: {tables[0].place} has no column {name!r}.")
    return tables[0]


def answers_for(outcome: "Outcome", wishes: Wishes, table: Table | None) -> Answers:
    """Compute what the user asks for."""
    data = outcome.data
    pipeline = with_scaler(outcome.model, outcome.scaler)
    annotations = None if table is None else _annotations(outcome, wishes, table)
    clusters = None
    if wishes.explain:
        clusters = explain_clusters(
            pipeline,
            data.samples,
            feature_names=column_names(data),
            ids=data.row_ids,
            random_state=outcome.seed,
        )
    coordinates = joint_coordinates(outcome.model, outcome.X) if wishes.embedding else None
    return Answers(clusters, annotations, coordinates)


def column_names(data: "Data") -> Any:
    """Return the names of the columns of every view, of one table alone; None where no file has any."""
    names = {each.name: each.columns for each in data.tables if each.columns is not None}
    return next(iter(names.values()), None) if data.kind == catalogue.TABLE else names or None


def _annotations(outcome: "Outcome", wishes: Wishes, table: Table) -> AnnotationTable:
    data = outcome.data
    named = data.ids is not None and table.ids is not None
    columns: Any = wishes.survival_columns
    used = _clustered_columns(data, table)
    cells = {name: column for name, column in named_cells(table) if name not in used}
    if used and not cells:
        raise ParameterError(
            f"--annotate {table.place}: all its columns were clustered, so they say nothing new about the clusters; "
            "name a file with other columns, or use --explain."
        )
    clustered = [name for name in columns or () if name in used]
    if clustered:
        raise ParameterError(
            f"--survival {wishes.survival}: column {clustered[0]!r} was clustered; leave it out there."
        )
    try:
        found = explain_annotations(
            outcome.labels,
            cells,
            ids=data.ids if named else None,
            table_ids=table.ids if named else None,
            survival=columns,
            n_clusters=len(outcome.sizes),
        )
    except ParameterError as error:
        raise ParameterError(f"--annotate {table.place}: {error}") from error
    return replace(found, set_aside={**found.set_aside, **dict.fromkeys(used, "it was clustered")})


def _clustered_columns(data: "Data", table: Table) -> list[str]:
    """Return the columns of an annotation file that were clustered, because the same file was given for both."""
    same = [
        each for each in data.encoded.values() if Path(each.source.source).resolve() == Path(table.source).resolve()
    ]
    return [name for each in same for name in each.used_columns or ()]
