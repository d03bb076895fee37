"""From read data to a fitted model: scaling, the estimator with its parameters, one fit or several."""

import signal
import threading
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from sklearn.pipeline import Pipeline

from kernelweave.cli import catalogue
from kernelweave.cli.input_data import Data
from kernelweave.cli.wording import PARAMETERS
from kernelweave.foundation.errors import ParameterError

#: What an estimator that takes views of several types is told of a file.
VIEW_TYPES = {catalogue.KERNEL: "kernel", catalogue.GRAPH: "graph"}


@dataclass(frozen=True)
class Fit:
    """A fitted model, and how the fit went."""

    model: Any
    seconds: float
    warnings: list[str]
    silhouette: float | None


@dataclass
class Fits:
    """Fits for several numbers of clusters: the best, the silhouette of each, and whether the user stopped them."""

    best: Fit
    silhouettes: dict[int, float | None] = field(default_factory=dict)
    interrupted: bool = False


# Estimators


def build(method: catalogue.Method, kind: str, n_clusters: Any, parameters: dict[str, Any], seed: int) -> Any:
    """Return the estimator of a method; ``parameters`` of the user replace the settings of the method."""
    import kernelweave

    cls = getattr(kernelweave, method.estimator)
    known = cls._get_param_names()
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise ParameterError(f"{method.name} has no parameter {unknown[0]!r}; it has {', '.join(known)}.")
    settings = {name: value for name, value in method.settings.items() if name in known}
    if "view_types" in known and kind in VIEW_TYPES:
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
    import kernelweave

    cls = getattr(kernelweave, method.estimator)
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
    import kernelweave
    from kernelweave.inputs import takes_absent

    return takes_absent(getattr(kernelweave, method.estimator))


def _check_with_kernel_matrix(parameters: dict[str, Any], settings: dict[str, Any]) -> None:
    """Refuse parameters that would make another kernel of a kernel matrix."""
    for name in ("kernel", "kernel_params", "divergence"):
        if name in parameters and parameters[name] != settings.get(name):
            option = PARAMETERS.get(name, f"--set {name}")
            raise ParameterError(
                f"{option} {parameters[name]!r} does not go with --kernel-matrix, which is the kernel already; leave "
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


def fit(model: Any, X: Any, seed: int) -> Fit:
    """Fit a model; return it with the seconds, the warnings, each once, and the silhouette."""
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    seconds = time.perf_counter() - begun
    messages = list(dict.fromkeys(" ".join(str(each.message).split()) for each in caught))
    return Fit(model, seconds, messages, silhouette(model, X, seed))


def fit_all(models: dict[Any, Any], X: Any, kind: str, seed: int, *, quiet: bool) -> Fits:
    """Fit a model for every number of clusters, and choose the one with the largest silhouette.

    A model that chooses the number by itself is the only one, under the key ``"auto"``.
    """
    if len(models) > 1 and kind == catalogue.GRAPH:
        raise ParameterError("-k: a range is judged by silhouettes, which graphs do not have; give one number.")
    best: Any = None
    silhouettes: dict[int, float | None] = {}
    screen = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    hidden = quiet or not screen.is_terminal
    with (
        Interrupt() as interrupt,
        Progress(*columns, TimeElapsedColumn(), console=screen, disable=hidden, transient=True) as bar,
    ):
        task = bar.add_task("clustering", total=len(models))
        for k, model in models.items():
            bar.update(task, description="clusters" if k == "auto" else f"{k} clusters")
            latest = fit(model, X, seed)
            silhouettes[k] = latest.silhouette
            bar.update(task, advance=1)
            if best is None or _rank(latest.silhouette) > _rank(best.silhouette):
                best = latest
            if interrupt.requested:
                break
    return Fits(best, silhouettes if len(models) > 1 else {}, interrupt.requested)


def _rank(score: float | None) -> float:
    return -2.0 if score is None else score  # below every silhouette


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
        typer.echo("Stopping after what is being computed; press Ctrl-C again to stop at once.", err=True)

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
