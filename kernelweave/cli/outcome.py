"""What a clustering came to: as JSON, as tables on the screen, as files, and as code that repeats it."""

import csv
import io
import json
import os
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table as Screen
from rich.text import Text

from kernelweave.cli import catalogue
from kernelweave.cli.input_data import Data, with_scaler
from kernelweave.foundation.errors import DataError

#: Files in the output folder.
LABELS = "labels.csv"
SUMMARY = "summary.json"
MODEL = "model.kwm"
# Bytes of ids that a model keeps; its whole description may take twice as many.
LARGEST_IDS = 32 * 2**20


@dataclass
class Outcome:
    """A fitted clustering and all that is told of it."""

    data: Data
    method: catalogue.Method
    model: Any
    scaler: Any
    seen: Any  # what the model was fitted on
    seconds: float
    silhouette: float | None
    messages: list[str]
    scale: str = "none"
    seed: int = 0
    tried: dict[int, float | None] = field(default_factory=dict)
    interrupted: bool = False
    truth: np.ndarray | None = None
    command: str = ""
    code: str = ""

    @property
    def labels(self) -> np.ndarray:
        """Cluster of every row."""
        return np.asarray(self.model.labels_)

    @property
    def sizes(self) -> list[int]:
        """Number of samples in every cluster."""
        return np.bincount(self.labels, minlength=int(self.model.n_clusters)).tolist()

    @property
    def judged(self) -> int:
        """Number of samples the silhouette is computed on."""
        from kernelweave.evaluation.sampling import MOST_JUDGED

        return min(self.data.n_samples, MOST_JUDGED)

    @property
    def drawn(self) -> str:
        """What stands beside a silhouette that is not of all samples."""
        return "" if self.judged == self.data.n_samples else f" ({self.judged:,} samples drawn)"

    def scores(self) -> dict[str, float]:
        """Return agreement with the true labels, where there are some."""
        from kernelweave.metrics import adjusted_rand_index, clustering_accuracy, normalized_mutual_info

        if self.truth is None:
            return {}
        return {
            "nmi": normalized_mutual_info(self.truth, self.labels),
            "ari": adjusted_rand_index(self.truth, self.labels),
            "accuracy": clustering_accuracy(self.truth, self.labels),
        }

    def weights(self) -> dict[str, float] | None:
        """Return the weight of every view or kernel, where the method has some."""
        model = self.model
        if hasattr(model, "kernel_weights_"):
            names = getattr(model, "kernel_names_", None)
            names = [str(i + 1) for i in range(len(model.kernel_weights_))] if names is None else names
            return dict(zip(map(str, names), map(float, model.kernel_weights_), strict=True))
        if hasattr(model, "view_weights_") and len(model.view_weights_) > 1:
            return dict(zip(model.view_names_, map(float, model.view_weights_), strict=True))
        return None

    def summary(self) -> dict[str, Any]:
        """Return everything but the labels, as JSON holds it."""
        from kernelweave import __version__

        model = self.model
        return {
            "kernelweave": __version__,
            "method": self.method.name,
            "estimator": type(model).__name__,
            "parameters": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
            "input": {"kind": self.data.kind, "samples": self.data.n_samples, "files": self.data.sources},
            "scale": _scaling(self.scaler),
            "clusters": len(self.sizes),
            "sizes": self.sizes,
            "view_weights": self.weights(),
            "objective": _plain(model.objective_),
            "iterations": int(model.n_iter_),
            "converged": bool(model.converged_),
            "silhouette": self.silhouette,
            "silhouette_samples": None if self.silhouette is None else self.judged,
            "tried": [{"clusters": k, "silhouette": score} for k, score in self.tried.items()] or None,
            "scores": self.scores() or None,
            "seconds": round(self.seconds, 3),
            "seed": self.seed,
            "interrupted": self.interrupted,
            "warnings": self.messages,
            "command": self.command,
            "code": self.code,
        }


def _plain(value: Any) -> Any:
    """Return a value JSON can hold, or its text."""
    if isinstance(value, np.generic):
        value = value.item()
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return repr(value)
    return value


def _scaling(scaler: Any) -> dict[str, str] | None:
    return None if scaler is None else dict(zip(scaler.view_names_, scaler.methods_, strict=True))


def timed_fit(model: Any, X: Any) -> tuple[Any, float, list[str]]:
    """Fit; return the model, the seconds and the warnings, each once."""
    import time

    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    messages = list(dict.fromkeys(" ".join(str(each.message).split()) for each in caught))
    return model, time.perf_counter() - begun, messages


# Screen


def takes(encoding: str | None, signs: str) -> bool:
    """Whether a screen of this encoding can show some signs."""
    try:
        signs.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def tables(outcome: Outcome, encoding: str | None = "utf-8") -> list[Screen | str]:
    """Return what is shown on a screen, in signs it can show."""
    bar, arrow = ("█", "←") if takes(encoding, "█←") else ("#", "<-")
    found = outcome.summary()
    about = Screen(show_header=False, box=None, pad_edge=False)
    about.add_row("method", f"{found['method']} ({found['estimator']})")
    about.add_row("samples", f"{found['input']['samples']:,}")
    about.add_row("clusters", f"{found['clusters']}, sizes {', '.join(f'{size:,}' for size in outcome.sizes)}")
    if found["silhouette"] is not None:
        about.add_row("silhouette", f"{found['silhouette']:.3f}{outcome.drawn}")
    for name, score in outcome.scores().items():
        about.add_row(name, f"{score:.3f}")
    about.add_row("time", f"{found['seconds']:.2f} s, {'converged' if found['converged'] else 'not converged'}")
    shown: list[Screen | str] = [about]
    weights = outcome.weights()
    if weights is not None:
        table = Screen(box=None, pad_edge=False, show_header=False)
        for name, weight in sorted(weights.items(), key=lambda item: -item[1])[:20]:
            length = round(30 * weight / max(*weights.values(), 1e-12))
            table.add_row(Text(name), f"{weight:.3f}", bar * length)
        shown += ["Weights", table]
    if len(outcome.tried) > 1:
        table = Screen(box=None, pad_edge=False)
        table.add_column("k", justify="right")
        table.add_column("silhouette", justify="right")
        table.add_column("")
        for k, value in outcome.tried.items():
            mark = f"{arrow} chosen" if k == len(outcome.sizes) else ""
            table.add_row(str(k), "none" if value is None else f"{value:.3f}", mark)
        shown += ["Numbers of clusters", table]
    return shown


# Files


def labels_csv(ids: Sequence[str], labels: Any) -> str:
    """Return ids and labels as CSV."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(["id", "label"])
    writer.writerows(zip(ids, np.asarray(labels).tolist(), strict=True))
    return page.getvalue()


def check_folder(folder: Path | None, *, overwrite: bool) -> None:
    """Find out before the work, not after it, that results cannot be written."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: this is a file; --output names a folder.")
    if not folder.exists():
        if not folder.absolute().parent.is_dir():
            raise DataError(f"{folder}: the folder above it does not exist.")
        try:
            folder.mkdir()
            folder.rmdir()
        except OSError as error:
            raise DataError(f"{folder}: this folder cannot be made: {error.strerror}; choose another place.") from error
        return
    there = [name for name in (LABELS, SUMMARY, MODEL) if (folder / name).exists()]
    if there and not overwrite:
        raise DataError(f"{folder / there[0]} exists already; choose another folder or add --overwrite.")
    for name in (LABELS, SUMMARY, MODEL):
        check_file(folder / name, overwrite=True)


def check_file(path: Path | None, *, overwrite: bool, folder: Path | None = None) -> None:
    """Find out before the work that a file cannot be written; a folder that is made for it need not exist yet."""
    if path is None:
        return
    made = folder is not None and not folder.exists() and path.absolute().parent == folder.absolute()
    if path.is_dir() or not (made or path.absolute().parent.is_dir()):
        raise DataError(f"{path}: it is a folder or lies in one that does not exist.")
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: this is no ordinary file and cannot be replaced; choose another name.")
    if path.exists() and not overwrite:
        raise DataError(f"{path} exists already; choose another name or add --overwrite.")
    if not made:
        _try_to_write(path)


def _try_to_write(path: Path) -> None:
    """Begin the file as it will be begun, and leave nothing behind."""
    partial = partial_of(path)
    there = os.path.lexists(partial)
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT, 0o666))
    except OSError as error:
        raise DataError(f"{path}: this file cannot be written: {error.strerror}; choose another place.") from error
    if not there:
        partial.unlink()


def check_apart(outputs: dict[str, list[Path]], inputs: Sequence[Path]) -> None:
    """Refuse to write over a file that is read, or twice to one place; outputs go by the option that names them."""
    places: dict[str, str] = {}
    for option, paths in outputs.items():
        for path in paths:
            if any(_same_file(path, each) or _same_file(partial_of(path), each) for each in inputs):
                raise DataError(f"{option}: {path} is one of the files to read; choose another place.")
            other = places.setdefault(os.path.realpath(path), option)
            if other != option:
                raise DataError(f"{option}: {path} is written by {other} too; choose another place.")


def files_of(folder: Path | None) -> list[Path]:
    """Return the output folder and the files written into it."""
    return [] if folder is None else [folder, *(folder / name for name in (LABELS, SUMMARY, MODEL))]


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def notes_for(outcome: Outcome) -> dict[str, Any]:
    """Return what a model has to know of its files, so that later ones can be matched with them."""
    data = outcome.data
    columns: dict[str, list[str] | None] = data.columns
    widths = {table.name: int(table.values.shape[1]) for table in data.tables}
    if data.kind == catalogue.KERNEL:
        columns = {"kernel": None if data.ids is None else list(data.ids)}
        widths = {"kernel": data.n_samples}
    return {
        "kind": data.kind,
        "method": outcome.method.name,
        "views": [table.name for table in data.tables],
        "columns": columns,
        "widths": widths,
        "rows": None if data.ids is None else list(data.ids),
        "digest": digest(data),
    }


def digest(data: Data) -> str:
    """Return a number that tells data from others; values that differ by rounding alone have the same."""
    import scipy.sparse as sp

    found = sha256()
    for values in [table.values for table in data.tables] or [data.matrix]:
        found.update(repr(values.shape).encode())
        if sp.issparse(values):
            entries = sp.csr_array(values)
            entries.sum_duplicates()
            found.update(entries.indices.astype(np.int64).tobytes() + entries.indptr.astype(np.int64).tobytes())
            values = entries.data
        found.update(np.ascontiguousarray(values, dtype=np.float32).tobytes())
    return found.hexdigest()


def write_files(outcome: Outcome, folder: Path) -> dict[str, Path]:
    """Write labels, summary and, where it can be saved, the model."""
    from kernelweave.foundation.errors import ParameterError
    from kernelweave.persistence.models import save_model

    folder.mkdir(exist_ok=True)
    written = {"labels": folder / LABELS, "summary": folder / SUMMARY}
    try:
        notes = notes_for(outcome)
        if len(json.dumps(notes["rows"])) > LARGEST_IDS:
            notes["rows"] = None
            outcome.messages.append("The model does not keep the ids, which are too long; reports go by order.")
        written["model"] = save_model(with_scaler(outcome.model, outcome.scaler), folder / MODEL, notes=notes)
    except ParameterError as error:
        outcome.messages.append(f"The model was not saved: {error}")
    write_text(written["labels"], labels_csv(outcome.data.row_ids, outcome.labels))
    write_text(written["summary"], json.dumps(outcome.summary(), indent=2, allow_nan=False) + "\n")
    return written


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    from kernelweave.foundation.files import write_atomically

    write_atomically(path, text)


def partial_of(path: Path) -> Path:
    """Return the name a file has until it is complete."""
    return Path(f"{path}.partial")


# Code


def code_for(outcome: Outcome, places: Sequence[str], text: dict[str, Any], rows: str) -> str:
    """Return Python code that repeats the clustering."""
    data = outcome.data
    model = outcome.model
    lines = [f"from kernelweave import {type(model).__name__}"]
    if data.kind == catalogue.GRAPH:
        loader = "load_metis" if places[0].removesuffix(".gz").endswith((".graph", ".metis")) else "load_edge_list"
        mark = f", delimiter={text['delimiter']!r}" if loader == "load_edge_list" and "delimiter" in text else ""
        lines += [f"from kernelweave.datasets import {loader}", "", f"X = {loader}({places[0]!r}{mark}).graph"]
    else:
        options = f", TextFormat({', '.join(f'{k}={v!r}' for k, v in text.items())})" if text else ""
        names = "align_tables, read_tables" if not text else "TextFormat, align_tables, read_tables"
        lines += [f"from kernelweave.inputs import {names}"]
        if outcome.scaler is not None:
            lines.append("from kernelweave.preprocessing import ViewScaler")
        lines += ["", f"files = {list(places)!r}"]
        lines.append(f"tables = [table for file in files for table in read_tables(file{options})]")
        if data.kind == catalogue.KERNEL:
            lines.append("X = tables[0].values")
        else:
            lines.append(f"tables = align_tables(tables{'' if rows == 'same' else f', {rows!r}'})")
            whole = "tables[0].values" if data.kind == catalogue.TABLE else "{t.name: t.values for t in tables}"
            lines.append(f"X = {whole}")
        if outcome.scaler is not None:
            lines.append(f"X = ViewScaler(method={outcome.scale.replace('-', '_')!r}).fit_transform(X)")
    lines += [f"model = {_constructor(model)}", "labels = model.fit(X).labels_"]
    return "\n".join(lines) + "\n"


def _constructor(model: Any) -> str:
    """Return the call that makes an estimator, with what differs from the defaults."""
    from inspect import signature

    usual = {name: each.default for name, each in signature(type(model).__init__).parameters.items()}
    changed = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name != "n_clusters" and not (type(value) is type(usual[name]) and value == usual[name])
    }
    parts = [repr(model.n_clusters), *(f"{name}={value!r}" for name, value in changed.items())]
    return f"{type(model).__name__}({', '.join(parts)})"


def command_for(name: str, places: Sequence[str], options: dict[str, Any]) -> str:
    """Return the command line, options that were not given left out."""
    parts = ["kernelweave", name, *places]
    for option, value in options.items():
        if value is None or value is False or value == []:
            continue
        for each in value if isinstance(value, list) else [value]:
            parts += [option] if each is True else [option, str(each)]
    return shlex.join(parts)
