"""From read data to a fitted model: scaling, the estimator with its parameters, one fit or several."""

import math
import signal
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from sklearn.pipeline import Pipeline

from kernelweave.cli import catalogue
from kernelweave.cli.input_data import Data
from kernelweave.cli.names import suggestion
from kernelweave.cli.wording import PARAMETERS
from kernelweave.evaluation.metrics.cuts import Cut, cut_of
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.registry import provided

#: What an estimator that takes views of several types is told of a file.
VIEW_TYPES = {catalogue.KERNEL: "kernel", catalogue.GRAPH: "graph"}


@dataclass(frozen=True)
class Fit:
    """A fitted model, and how the fit went."""

    model: Any
    seconds: float
    warnings: list[str]
    silhouette: float | None
    cut: Cut | None = None  # of a graph
    compiling: float = 0.0  # of the seconds


@dataclass
class Fits:
    """Fits for several numbers of clusters: the best, what speaks for each, and whether the user stopped them."""

    best: Fit
    tried: dict[int, "Trial"] = field(default_factory=dict)
    interrupted: bool = False
    seconds: float = 0.0
    compiling: float = 0.0  # of the seconds


@dataclass(frozen=True)
class Trial:
    """A number of clusters that was tried: the silhouette or the cut, and the score by the criterion."""

    score: float | None
    silhouette: float | None
    cut: Cut | None


# Estimators


def build(method: catalogue.Method, kind: str, n_clusters: Any, parameters: dict[str, Any], seed: int) -> Any:
    """Return the estimator of a method; ``parameters`` of the user replace the settings of the method."""
    cls = catalogue.estimator_of(method)
    known = cls._get_param_names()
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        near = suggestion(unknown[0], known)
        raise ParameterError(f"{method.name} has no parameter {unknown[0]!r}; it has {', '.join(known)}.{near}")
    settings = {name: value for name, value in method.settings.items() if name in known}
    if method.baseline and kind in VIEW_TYPES:
        settings["affinity"] = "precomputed"
    elif "view_types" in known and kind in VIEW_TYPES:
        settings["view_types"] = VIEW_TYPES[kind]
    elif kind == catalogue.KERNEL:
        settings = {"kernel": "precomputed"} | ({"divergence": "kernel"} if "divergence" in known else {})
        _check_with_kernel_matrix(parameters, settings)
    if parameters.get("kernel", settings.get("kernel")) != settings.get("kernel"):
        settings.pop("kernel_params", None)  # they belong to the kernel of the method
    settings |= parameters
    if "random_state" in known:
        settings.setdefault("random_state", seed)
    settings["n_clusters"] = n_clusters
    return cls(**settings)


def for_missing_values(method: catalogue.Method, data: Data, missing: str) -> dict[str, Any]:
    """Return the parameter of the estimator for missing cells; a method may take complete samples only."""
    cls = catalogue.estimator_of(method)
    if "missing" in cls._get_param_names():
        return {} if missing == "error" else {"missing": missing}
    obstacle = obstacle_to(method, data)
    if obstacle:
        takers = [each.name for each in catalogue.METHODS if catalogue.suits(each, data.kind) and _takes_absent(each)]
        raise ParameterError(
            f"--method {method.name}: {obstacle} Use --rows common, or --method {' or '.join(takers)}."
        )
    return {}


def obstacle_to(method: catalogue.Method, data: Data) -> str:
    """Return why a method does not take samples of which values are missing, or nothing."""
    if data.complete or _takes_absent(method):
        return ""
    absent = sum(each.absent for each in data.account.views.values())
    cells = sum(each.filled for each in data.account.views.values())
    what = f"{absent:,} sample(s) are absent from a view" if absent else f"{cells:,} cell(s) are missing"
    return f"it takes complete samples only, and {what}."


def _takes_absent(method: catalogue.Method) -> bool:
    from kernelweave.inputs import takes_absent

    return takes_absent(catalogue.estimator_of(method))


def _check_with_kernel_matrix(parameters: dict[str, Any], settings: dict[str, Any]) -> None:
    """Refuse parameters that would make another kernel of a kernel matrix."""
    for name in ("kernel", "kernel_params", "divergence"):
        if name in parameters and parameters[name] != settings.get(name):
            option = PARAMETERS.get(name, f"--set {name}")
            raise ParameterError(
                f"{option} {parameters[name]!r} cannot be combined with --kernel-matrix, which is the kernel; leave "
                "one of them out."
            )


def scaled(
    data: Data, scale: str, method: catalogue.Method, parameters: dict[str, Any] | None = None
) -> tuple[Any, Any]:
    """Return the samples to fit on, and the scaler they went through (None where nothing is done).

    Tables that ``parameters`` of the estimator call precomputed are distances or similarities, and stay as they are.
    """
    from kernelweave.preprocessing import ViewScaler

    precomputed = [name for name in ("metric", "kernel") if (parameters or {}).get(name) == "precomputed"]
    if precomputed and scale not in ("auto", "none"):
        raise ParameterError(
            f"--scale {scale} does not go with {precomputed[0]} 'precomputed': distances and similarities are taken as "
            "they are; leave it out."
        )
    if precomputed:
        return data.samples, None
    scale = method.scale if scale == "auto" else scale
    if data.kind in (catalogue.KERNEL, catalogue.GRAPH) or scale == "none":
        return data.samples, None
    scaler = ViewScaler(method=scale.replace("-", "_")).fit(data.samples)
    return scaler.transform(data.samples), scaler


def with_scaler(model: Any, scaler: Any) -> Any:
    """Return the fitted model behind the scaler."""
    return model if scaler is None else Pipeline([("scale", scaler), ("model", model)])


# Fits


def fit(model: Any, X: Any, seed: int, kind: str = "") -> Fit:
    """Fit a model; return it with the seconds, the warnings, each once, and the silhouette, or the cut of a graph."""
    clock = compile_clock()
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, clock as compiling:
        warnings.simplefilter("always")
        model.fit(X)
    seconds = time.perf_counter() - begun
    messages = list(dict.fromkeys(" ".join(str(each.message).split()) for each in caught))
    if kind == catalogue.GRAPH:
        return Fit(model, seconds, messages, None, cut_of(X, np.asarray(model.labels_)), compiling.seconds)
    return Fit(model, seconds, messages, silhouette(model, X, seed), None, compiling.seconds)


def compile_clock() -> Any:
    """Return a context whose ``seconds`` are those spent on compiling."""
    return provided("clock of compilation")()


def criterion_for(asked: str, kind: str) -> str:
    """Return what decides among several numbers of clusters; graphs have no silhouettes, and only they modularity."""
    usual = "modularity" if kind == catalogue.GRAPH else "silhouette"
    if asked in ("silhouette", "modularity") and asked != usual:
        raise ParameterError(f"--criterion {asked} does not apply to {catalogue.KINDS[kind]}; use --criterion {usual}.")
    return usual if asked == "auto" else asked


def score_for(criterion: str, data: Data, X: Any, seed: int, missing: str) -> Callable[[Fit], float | None]:
    """Return the function that scores a fit, larger for better."""
    if criterion == "silhouette":
        return lambda latest: latest.silhouette
    if criterion == "modularity":
        return lambda latest: None if latest.cut is None else latest.cut.modularity
    if criterion == "clearness":
        from kernelweave.cli.ranking import standings

        def clearness(latest: Fit) -> float:
            labels = np.asarray(latest.model.labels_)
            k = len(np.unique(labels))
            return standings([labels], data.samples, data.kind, k, seed, missing)[0].clearness

        return clearness
    from kernelweave.evaluation.model_selection import score_clustering

    return lambda latest: score_clustering(latest.model, X, criterion=criterion, random_state=seed)  # type: ignore[arg-type]


def fit_all(
    models: dict[Any, Any], X: Any, kind: str, seed: int, score: Callable[[Fit], float | None], *, quiet: bool
) -> Fits:
    """Fit a model for every number of clusters, and choose the one with the largest score.

    A model that chooses the number itself is the only one, under the key ``"auto"``.
    """
    best: Any = None
    best_score: float | None = None
    tried: dict[int, Trial] = {}
    seconds = 0.0
    compiling = 0.0
    screen = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    hidden = quiet or not screen.is_terminal
    screen.quiet = hidden  # rich before 14.3 ends a hidden bar with an empty line
    with (
        Interrupt() as interrupt,
        Progress(*columns, TimeElapsedColumn(), console=screen, disable=hidden, transient=True) as bar,
    ):
        task = bar.add_task("clustering", total=len(models))
        for k, model in models.items():
            bar.update(task, description="clusters" if k == "auto" else f"{k} clusters")
            latest = fit(model, X, seed, kind)
            seconds += latest.seconds
            compiling += latest.compiling
            reached = score(latest) if len(models) > 1 else None
            tried[k] = Trial(reached, latest.silhouette, latest.cut)
            bar.update(task, advance=1)
            if best is None or _rank(reached) > _rank(best_score):
                best = latest
                best_score = reached
            if interrupt.requested:
                break
    return Fits(best, tried if len(models) > 1 else {}, interrupt.requested, seconds, compiling)


def _rank(score: float | None) -> float:
    return -math.inf if score is None or math.isnan(score) else score


def silhouette(model: Any, X: Any, seed: int) -> float | None:
    """Return the mean silhouette, or None where there is none: graphs, one cluster."""
    from kernelweave.evaluation.describe import describe

    return describe(model, X, random_state=seed).silhouette


class Interrupt:
    """Whether the user pressed Ctrl-C; pressing it a second time ends the program at once."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> "Interrupt":
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_: Any) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        typer.echo("Stopping after the current step; press Ctrl-C again to stop at once.", err=True)

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
