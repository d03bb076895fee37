"""Files that commands write: checked before the work, written whole or not at all."""

import csv
import io
import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.cli import catalogue
from kernelweave.cli.fitting import with_scaler
from kernelweave.cli.input_data import Data
from kernelweave.cli.outcome import Outcome
from kernelweave.evaluation.describe.samples import NO_CLUSTER, describe_samples
from kernelweave.evaluation.explain.records import as_csv
from kernelweave.foundation.errors import DataError, ParameterError
from kernelweave.foundation.files import write_atomically

#: Files in the output folder.
LABELS = "labels.csv"
SUMMARY = "summary.json"
MODEL = "model.kwm"
FILES = (LABELS, SUMMARY, MODEL)
#: Columns of the labels.
SAMPLE_COLUMNS = ("id", "label", "silhouette", "runner_up", "confidence", "disagreeing_view")
# Endings of files that are neither CSV nor a page.
OTHER_FORMATS = frozenset(
    {
        ".xlsx",
        ".xls",
        ".ods",
        ".docx",
        ".doc",
        ".odt",
        ".pptx",
        ".parquet",
        ".json",
        ".npy",
        ".npz",
        ".mat",
        ".gz",
        ".zip",
    }
    | {".tsv", ".png", ".jpg", ".svg", ".kwm", ".h5ad", ".h5mu", ".mtx", ".pkl"}
)
TEXT_FORMATS = (".csv", ".txt", ".md")
# Bytes of ids that a model keeps; its whole description may take twice as many.
LARGEST_IDS = 32 * 2**20


def labels_csv(ids: Sequence[str], labels: Any) -> str:
    """Return ids and labels as CSV."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(["id", "label"])
    writer.writerows(zip(ids, np.asarray(labels).tolist(), strict=True))
    return page.getvalue()


def samples_csv(outcome: Outcome) -> str:
    """Return ids, labels and what the model says about every sample as CSV; cells without a value are empty."""
    said = describe_samples(outcome.model, outcome.X, random_state=outcome.seed)
    rows = zip(
        outcome.data.row_ids,
        outcome.labels.tolist(),
        (_number(value) for value in said.silhouettes),
        ("" if cluster == NO_CLUSTER else cluster for cluster in said.runners_up.tolist()),
        (_number(value) for value in said.confidences),
        said.disagreeing_views,
        strict=True,
    )
    return as_csv(SAMPLE_COLUMNS, rows)


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4f}"


def check_folder(folder: Path | None, *, overwrite: bool, names: Sequence[str] = ()) -> None:
    """Raise before the work, not after it, where results cannot be written."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: this is a file; --output names a folder.")
    if not folder.exists():
        if not folder.absolute().parent.is_dir():
            raise DataError(f"{folder}: its parent folder does not exist; create it, or choose another place.")
        try:
            folder.mkdir()
            folder.rmdir()
        except OSError as error:
            raise DataError(
                f"{folder}: this folder cannot be created: {error.strerror}; choose another place."
            ) from error
        return
    names = (*FILES, *names)
    there = [name for name in names if (folder / name).exists()]
    if there and not overwrite:
        raise DataError(f"{folder / there[0]} exists already; choose another folder or add --overwrite.")
    for name in names:
        check_file(folder / name, overwrite=True)


def check_file(path: Path | None, *, overwrite: bool, folder: Path | None = None) -> None:
    """Raise before the work where a file cannot be written; a folder that is made for it need not exist yet."""
    if path is None:
        return
    made = folder is not None and not folder.exists() and path.absolute().parent == folder.absolute()
    if path.is_dir() or not (made or path.absolute().parent.is_dir()):
        raise DataError(f"{path}: it is a folder, or its folder does not exist; choose another place.")
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: this is not a regular file and cannot be replaced; choose another name.")
    if path.exists() and not overwrite:
        raise DataError(f"{path} exists already; choose another name or add --overwrite.")
    if not made:
        _try_to_write(path)


def report_format(path: Path) -> str:
    """Return what a report is written as, by the end of its name."""
    return "pdf" if path.suffix.lower() == ".pdf" else "html"


def check_labels_format(option: str, path: Path | None) -> None:
    """Refuse a name for a label file whose suffix is not that of a CSV file."""
    if path is not None and path.suffix.lower() in OTHER_FORMATS:
        raise ParameterError(f"{option} {path}: labels are written as CSV; the name must end in .csv.")


def check_report_format(path: Path | None) -> None:
    """Raise before the work where a report has the name of something else, or nothing can print it as a PDF."""
    if path is not None and path.suffix.lower() in (*OTHER_FORMATS, *TEXT_FORMATS):
        raise ParameterError(f"{path}: reports are HTML or PDF; the name must end in .html or .pdf.")
    if path is not None and report_format(path) == "pdf":
        from kernelweave.evaluation.report.pdf import find_chromium

        find_chromium()


def _try_to_write(path: Path) -> None:
    """Make another file in the folder, as writing will, and leave nothing behind."""
    try:
        with NamedTemporaryFile(dir=path.absolute().parent):
            pass
    except OSError as error:
        raise DataError(f"{path}: this file cannot be written: {error.strerror}; choose another place.") from error


def check_distinct(outputs: dict[str, list[Path]], inputs: Sequence[Path]) -> None:
    """Refuse to replace a file that is read, or to write one twice; outputs are listed by the option naming them."""
    places: dict[str, str] = {}
    for option, paths in outputs.items():
        for path in paths:
            if any(_same_file(path, each) for each in inputs):
                raise DataError(f"{option}: {path} is one of the files to read; choose another place.")
            other = places.setdefault(os.path.realpath(path), option)
            if other != option:
                raise DataError(f"{option}: {path} is written by {other} too; choose another place.")


def files_of(folder: Path | None, names: Sequence[str] = ()) -> list[Path]:
    """Return the output folder and the files written into it, those asked for (``names``) among them."""
    return [] if folder is None else [folder, *(folder / name for name in (*FILES, *names))]


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def notes_for(outcome: Outcome) -> dict[str, Any]:
    """Return notes on the files of a model, so that later files can be matched with them."""
    data = outcome.data
    columns: dict[str, list[str] | None] = data.columns
    widths = {name: int(each.source.values.shape[1]) for name, each in data.encoded.items()}
    encoders = {name: each.encoder for name, each in data.encoded.items()}
    if data.kind == catalogue.KERNEL:
        columns = {"kernel": None if data.ids is None else list(data.ids)}
        widths = {"kernel": data.n_samples}
    return {
        "kind": data.kind,
        "method": outcome.method.name,
        "views": [table.name for table in data.tables],
        "columns": columns,
        "widths": widths,
        "encoders": {name: None if each is None else each.notes() for name, each in encoders.items()},
        "rows": None if data.ids is None else list(data.ids),
        "digest": digest(data),
    }


def digest(data: Data) -> str:
    """Return a hash of the values, the same for values that differ by rounding alone."""
    hashed = sha256()
    for values in [table.values for table in data.tables] or [data.matrix]:
        hashed.update(repr(values.shape).encode())
        if sp.issparse(values):
            entries = sp.csr_array(values)
            entries.sum_duplicates()
            hashed.update(entries.indices.astype(np.int64).tobytes() + entries.indptr.astype(np.int64).tobytes())
            values = entries.data
        hashed.update(np.ascontiguousarray(values, dtype=np.float32).tobytes())
    return hashed.hexdigest()


def write_files(outcome: Outcome, folder: Path) -> dict[str, Path]:
    """Write labels, summary and, where it can be saved, the model."""
    from kernelweave.persistence.models import save_model

    folder.mkdir(exist_ok=True)
    written = {"labels": folder / LABELS, "summary": folder / SUMMARY}
    try:
        notes = notes_for(outcome)
        if len(json.dumps(notes["rows"])) > LARGEST_IDS:
            notes["rows"] = None
            outcome.warnings.append("The ids are too long to be kept in the model; reports match rows by order.")
        written["model"] = save_model(with_scaler(outcome.model, outcome.scaler), folder / MODEL, notes=notes)
    except ParameterError as error:
        outcome.warnings.append(f"The model was not saved: {error}")
    write_atomically(written["labels"], samples_csv(outcome))
    write_atomically(written["summary"], json.dumps(outcome.summary(), indent=2, allow_nan=False) + "\n")
    return written | outcome.answers.write(folder, outcome.data.row_ids)
