"""What a fitted model says about itself: cluster sizes, weights, the objective and its path, warnings."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints

#: Attributes that hold weights, what they are called, and the attribute with the names.
WEIGHTS = {
    "view_weights_": ("Weights of the views", "view_names_"),
    "kernel_weights_": ("Weights of the basis kernels", "kernel_names_"),
    "kernel_coefficients_": ("Shares of the kernels in the sum", "view_names_"),
}


@dataclass(frozen=True)
class Weights:
    """Weights of views or kernels: the attribute they come from, what they are, and each with its name."""

    attribute: str
    title: str
    items: tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class Progress:
    """How a fit went; None where the estimator does not say."""

    objective: float | None
    objective_path: Floats | None
    path_of: str  # what the path runs over: "steps" or "clusters"
    n_iter: int | None
    converged: bool | None


def n_clusters_of(model: Any) -> int:
    """Return the number of clusters of a fitted model: what it chose, or what it was asked for, at least 1."""
    asked = getattr(model, "n_clusters_", getattr(model, "n_clusters", None))
    return int(asked) if isinstance(asked, Integral) and asked else 1


def verdict_of(model: Any) -> str | None:
    """Return what a model says about the number of clusters that it chose; None where it was given."""
    return model.verdict_ if getattr(model, "confidence_", "given") != "given" else None


def sizes_of(model: Any) -> Ints:
    """Return the number of samples in every cluster, 0 for clusters that stayed empty."""
    labels = np.asarray(model.labels_, dtype=np.intp)
    return np.bincount(labels, minlength=n_clusters_of(model))


def weights_of(model: Any) -> list[Weights]:
    """Return the weights a model has, those of its views first; numbers from 0 on where nothing names them."""
    known = []
    for attribute, (title, names_attribute) in WEIGHTS.items():
        values = getattr(model, attribute, None)
        if values is not None:
            names = getattr(model, names_attribute, range(len(values)))
            items = zip(map(str, names), map(float, values), strict=True)
            known.append(Weights(attribute, title, tuple(items)))
    return known


def progress_of(model: Any) -> Progress:
    """Return the objective, its path and what the path runs over, the steps, and whether the run converged."""
    path = getattr(model, "objective_path_", None)
    adds_clusters = hasattr(model, "cut_path_") and getattr(model, "init", None) is None
    objective = getattr(model, "objective_", None)
    steps = getattr(model, "n_iter_", None)
    converged = getattr(model, "converged_", None)
    return Progress(
        objective=None if objective is None else float(objective),
        objective_path=None if path is None else np.asarray(path, dtype=np.float64).ravel(),
        path_of="clusters" if adds_clusters else "steps",
        n_iter=None if steps is None else int(steps),
        converged=None if converged is None else bool(converged),
    )


def warnings_of(model: Any) -> tuple[str, ...]:
    """Return the warnings of the fit, which a model keeps."""
    return tuple(str(message) for message in getattr(model, "warnings_", ()))


def joint_embedding(model: Any) -> Floats | None:
    """Return the joint embedding of a model; None where it has none, or not of all samples."""
    embedding = getattr(model, "embedding_", None)
    if embedding is None:
        return None
    coordinates = np.asarray(embedding, dtype=np.float64)
    return coordinates if coordinates.ndim == 2 and np.isfinite(coordinates).all() else None
