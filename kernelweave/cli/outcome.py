"""The outcome of a clustering: as JSON, as tables on the screen, and as code that repeats it."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from kernelweave.cli import catalogue
from kernelweave.cli.explaining import Answers
from kernelweave.cli.fitting import Fit, Trial
from kernelweave.cli.input_data import Data, Truth
from kernelweave.cli.reading import Account, Reading
from kernelweave.evaluation.describe.results import sizes_of, verdict_of
from kernelweave.evaluation.metrics.cuts import Cut

# Weights shown on the screen, and signs of the longest bar.
MOST_WEIGHTS = 20
BAR = 30


@dataclass
class Outcome:
    """A fitted clustering with its data, and what is reported of it."""

    data: Data
    method: catalogue.Method
    fit: Fit
    X: Any  # what the model was fitted on
    scaler: Any
    scale: str = "none"
    seed: int = 0
    truth: Truth | None = None
    tried: dict[int, Trial] = field(default_factory=dict)  # by number of clusters
    interrupted: bool = False
    criterion: str = "silhouette"  # what decides among several numbers of clusters
    waited: float | None = None  # seconds since the command was called
    set_up: float = 0.0  # of these, for imports and compiling
    notes: tuple[str, ...] = ()  # on names and files
    command: str = ""
    code: str = ""
    answers: Answers = field(default_factory=Answers)  # what the user asked for beyond labels

    @property
    def model(self) -> Any:
        """The fitted estimator."""
        return self.fit.model

    @property
    def warnings(self) -> list[str]:
        """Warnings of the fit, and of writing its files."""
        return self.fit.warnings

    @property
    def labels(self) -> np.ndarray:
        """Cluster of every row."""
        return np.asarray(self.model.labels_)

    @property
    def sizes(self) -> list[int]:
        """Number of samples in every cluster."""
        return sizes_of(self.model).tolist()

    @property
    def judged(self) -> int:
        """Number of samples the silhouette is computed on."""
        from kernelweave.evaluation.sampling import MOST_JUDGED

        return min(self.data.n_samples, MOST_JUDGED)

    @property
    def drawn(self) -> str:
        """What is shown next to a silhouette that is not of all samples."""
        return "" if self.judged == self.data.n_samples else f" ({self.judged:,} samples drawn)"

    def scores(self) -> dict[str, float]:
        """Return agreement with the true labels, where there are some."""
        from kernelweave.metrics import adjusted_rand_index, clustering_accuracy, normalized_mutual_info

        if self.truth is None:
            return {}
        known = self.truth.known
        truth = self.truth.labels[known].astype(str)
        labels = self.labels[known]
        return {
            "nmi": normalized_mutual_info(truth, labels),
            "ari": adjusted_rand_index(truth, labels),
            "accuracy": clustering_accuracy(truth, labels),
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

    def agreement(self) -> dict[str, float | None] | None:
        """Return how far each view follows the joint clusters, where the method says so."""
        values = getattr(self.model, "view_agreement_", ())
        if len(values) < 2:
            return None
        return {name: _finite(value) for name, value in zip(self.model.view_names_, values, strict=True)}

    def summary(self) -> dict[str, Any]:
        """Return everything but the labels, as JSON holds it."""
        from kernelweave import __version__

        model = self.model
        return {
            "kernelweave": __version__,
            "method": self.method.name,
            "estimator": type(model).__name__,
            "parameters": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
            "input": {
                "kind": self.data.kind,
                "samples": self.data.n_samples,
                "files": self.data.sources,
                **self.data.account.summary(),
            },
            "scale": _scaling(self.scaler),
            "clusters": len(self.sizes),
            "verdict": verdict_of(model),
            "confidence": getattr(model, "confidence_", None),
            "sizes": self.sizes,
            "view_weights": self.weights(),
            "view_agreement": self.agreement(),
            "objective": _plain(model.objective_),
            "iterations": int(model.n_iter_),
            "converged": bool(model.converged_),
            "silhouette": self.fit.silhouette,
            "silhouette_samples": None if self.fit.silhouette is None else self.judged,
            "cut": None if self.fit.cut is None else vars(self.fit.cut),
            "criterion": self.criterion if self.tried else None,
            "tried": [_trial(k, trial, self.criterion) for k, trial in self.tried.items()] or None,
            "scores": self.scores() or None,
            "labelled": None if self.truth is None else int(self.truth.known.sum()),
            "notes": list(self.notes),
            "seconds": round(self.fit.seconds, 3),
            "seconds_waited": None if self.waited is None else round(self.waited, 3),
            "seconds_set_up": None if self.waited is None else round(self.set_up, 3),
            "seed": self.seed,
            "interrupted": self.interrupted,
            "warnings": self.warnings,
            "command": self.command,
            "code": self.code,
        }


def _trial(k: int, trial: Trial, criterion: str) -> dict[str, Any]:
    """Return what speaks for a number of clusters, as JSON holds it."""
    told: dict[str, Any] = {"clusters": k}
    told |= {"silhouette": trial.silhouette} if trial.cut is None else {"cut": vars(trial.cut)}
    return told if criterion == "silhouette" else told | {criterion: trial.score}


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


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


# Screen


def tables(outcome: Outcome, encoding: str | None = "utf-8") -> list[Table | str]:
    """Return what is shown on a screen, in signs that its encoding has."""
    bar, arrow = ("█", "←") if _has_signs(encoding, "█←") else ("#", "<-")
    shown: list[Table | str] = [_facts_table(outcome)]
    if not outcome.data.account.plain:
        shown += ["Files: rows read and used, samples absent, missing cells filled", _files_table(outcome.data.account)]
    weights = outcome.weights()
    if weights is not None:
        follows = outcome.agreement()
        shown += ["Weights" if follows is None else "Views: weight, and how far each follows the clusters"]
        shown += [_weights_table(weights, bar, follows)]
    if len(outcome.tried) > 1:
        shown += ["Numbers of clusters", _tried_table(outcome, arrow)]
    return shown


def _has_signs(encoding: str | None, signs: str) -> bool:
    try:
        signs.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _facts_table(outcome: Outcome) -> Table:
    summary = outcome.summary()
    table = Table(show_header=False, box=None, pad_edge=False)
    if summary["verdict"]:
        table.add_row("answer", summary["verdict"])
    table.add_row("method", f"{summary['method']} ({summary['estimator']})")
    table.add_row("samples", f"{summary['input']['samples']:,}")
    account = outcome.data.account
    if account.views:
        left = f"{account.left_out:,} of {account.left_out + account.samples:,} samples"
        table.add_row(*(("rows", account.complete()) if account.plain else ("left out", left)))
    table.add_row("clusters", f"{summary['clusters']}, sizes {', '.join(f'{size:,}' for size in summary['sizes'])}")
    if summary["silhouette"] is not None:
        table.add_row("silhouette", f"{summary['silhouette']:.3f}{outcome.drawn}")
    if outcome.fit.cut is not None:
        table.add_row("cut", cut_text(outcome.fit.cut))
        if getattr(outcome.model, "objective", "normalized_cut") != "normalized_cut":
            table.add_row(str(outcome.model.objective).replace("_", " "), f"{outcome.model.objective_:.4g}")
    if outcome.truth is not None and not outcome.truth.known.all():
        table.add_row("labels", f"{summary['labelled']:,} of {outcome.data.n_samples:,} known")
    for name, score in (summary["scores"] or {}).items():
        table.add_row(name, f"{score:.3f}")
    ended = "converged" if summary["converged"] else "not converged"
    waited = outcome.fit.seconds if outcome.waited is None else outcome.waited
    set_up = f", {outcome.set_up:.2f} s of it to set up" if outcome.waited is not None else ""
    table.add_row("time", f"{waited:.2f} s{set_up}; {ended}")
    return table


def cut_text(cut: Cut) -> str:
    """Return a cut in words."""
    return f"{cut.normalized:.4g} normalized, {100 * cut.share:.3g} % of all weight, modularity {cut.modularity:.3f}"


def _files_table(account: Account) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("", "rows", "used", "absent", "filled"):
        table.add_column(name, justify="left" if not name else "right")
    for name, each in account.views.items():
        filled = f"{each.filled:,} ({account.missing})" if each.filled else "0"
        table.add_row(Text(name), f"{each.rows:,}", f"{each.used:,}", f"{each.absent:,}", filled)
    return table


def _weights_table(weights: dict[str, float], bar: str, follows: dict[str, float | None] | None) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    largest = max(*weights.values(), 1e-12)
    for name, weight in sorted(weights.items(), key=lambda item: -item[1])[:MOST_WEIGHTS]:
        share = None if follows is None else follows[name]
        told = [] if follows is None else ["" if share is None else f"{share:.2f}"]
        table.add_row(Text(name), f"{weight:.3f}", *told, bar * round(BAR * weight / largest))
    return table


def _tried_table(outcome: Outcome, arrow: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("k", justify="right")
    graph = outcome.fit.cut is not None
    measured = ["cut", "share"] if graph else ["silhouette"]
    for name in [*measured, *([] if outcome.criterion in measured else [outcome.criterion])]:
        table.add_column(name, justify="right")
    table.add_column("")
    for k, trial in outcome.tried.items():
        mark = f"{arrow} chosen" if k == outcome.model.n_clusters else ""
        cells = [_three(trial.silhouette)]
        if trial.cut is not None:
            cells = [f"{trial.cut.normalized:.4g}", f"{100 * trial.cut.share:.3g} %"]
        cells += [] if outcome.criterion in measured else [_three(trial.score)]
        table.add_row(str(k), *cells, mark)
    return table


def _three(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


# Code


def code_for(
    outcome: Outcome, places: Sequence[str], text: dict[str, Any], rows: str, reading: Reading | None = None
) -> str:
    """Return Python code that repeats the clustering."""
    data = outcome.data
    encoded = bool(data.encoded) and not data.account.plain
    text = text | ({"mixed": True} if encoded else {})
    model = outcome.model
    lines = [f"from kernelweave import {type(model).__name__}"]
    if data.kind == catalogue.GRAPH:
        loader, arguments = data.loader
        more = "".join(f", {name}={value!r}" for name, value in arguments.items())
        lines += [f"from kernelweave.datasets import {loader}", "", f"X = {loader}({places[0]!r}{more}).graph"]
    else:
        options = f", TextFormat({', '.join(f'{k}={v!r}' for k, v in text.items())})" if text else ""
        names = "align_tables, read_tables" if not text else "TextFormat, align_tables, read_tables"
        lines += [f"from kernelweave.inputs import {names}"]
        if outcome.scaler is not None:
            lines.append("from kernelweave.preprocessing import ViewScaler")
        if encoded:
            lines.append("from kernelweave.preprocessing.file_tables import encode_tables")
        lines += ["", f"files = {list(places)!r}"]
        lines.append(f"tables = [table for file in files for table in read_tables(file{options})]")
        if data.kind == catalogue.KERNEL:
            lines.append("X = tables[0].values")
        else:
            if encoded:
                lines.append(f"tables = [each.table for each in encode_tables(tables{_chosen(reading)})]")
            lines.append(f"tables = align_tables(tables{'' if rows == 'same' else f', {rows!r}'})")
            whole = "tables[0].values" if data.kind == catalogue.TABLE else "{t.name: t.values for t in tables}"
            lines.append(f"X = {whole}")
        if outcome.scaler is not None:
            lines.append(f"X = ViewScaler(method={outcome.scale.replace('-', '_')!r}).fit_transform(X)")
    lines += [f"model = {_constructor(model)}", "labels = model.fit(X).labels_"]
    return "\n".join(lines) + "\n"


def _chosen(reading: Reading | None) -> str:
    chosen = {} if reading is None else {name: list(each) for name, each in reading.choices.items() if each}
    return "".join(f", {name}={each!r}" for name, each in chosen.items())


def _constructor(model: Any) -> str:
    """Return the call that makes an estimator, with the parameters that differ from the defaults."""
    from inspect import signature

    defaults = {name: each.default for name, each in signature(type(model).__init__).parameters.items()}
    changed = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name != "n_clusters" and not (type(value) is type(defaults[name]) and value == defaults[name])
    }
    arguments = [repr(model.n_clusters), *(f"{name}={value!r}" for name, value in changed.items())]
    return f"{type(model).__name__}({', '.join(arguments)})"


def command_for(name: str, places: Sequence[str], options: dict[str, Any]) -> str:
    """Return the command line with the options that have a value."""
    words = ["kernelweave", name, *places]
    for option, value in options.items():
        if value is None or value is False or value == []:
            continue
        for each in value if isinstance(value, list) else [value]:
            words += [option] if each is True else [option, str(each)]
    return shlex.join(words)
