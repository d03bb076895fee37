"""Which classes may occur in a saved model, and what their fields must be."""

from collections.abc import Mapping
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from inspect import getmembers, isclass, signature
from numbers import Integral, Real
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.kernels.spec.fitting import FittedKernel, Precomputed

# Modules whose classes may occur in a model.
HOMES = (
    "kernelweave.kernels.spec.neighbors",
    "kernelweave.kernels.divergences",
    "kernelweave.kernels.spec.fitting",
    "kernelweave.kernels.spec.formulas",
    "kernelweave.estimators.margin.dividing",
    "kernelweave.estimators.shared.multi_view",
    "kernelweave.estimators.spectral.multi_view_kernel_spectral",
    "kernelweave.estimators.margin.ratio_clustering",
    "kernelweave.preprocessing.view_scaler",
    "sklearn.gaussian_process.kernels",
)
# Steps of scikit-learn that may stand before an estimator in a pipeline.
STEPS = (MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler)
# Kinds of arrays: numbers, truth values and text.
KINDS = "biufcSU"
# What fitted attributes hold, where many estimators have them.
FITTED: dict[str, Any] = {
    "labels_": Ints,
    "n_features_in_": int,
    "n_iter_": int,
    "converged_": bool,
    "objective_": float,
    "objective_path_": Floats,
    "view_names_": list[str],
    "view_weights_": Floats,
    "_view_widths": tuple,
    "methods_": list[str],
    "means_": list[Floats],
    "scales_": list[Floats],
    "_weights": Floats,
    "_totals": Floats,
    "_norms": Floats,
    "_refined_totals": Floats,
    "_refined_norms": Floats,
    "_coefs": Floats | None,
    "_filled": Bools,
    "_centers": Floats,
}
# Sizes of arrays that must agree, with letters for the numbers of samples, clusters, features and others: compiled
# loops do not look where an array ends.
SIZES = {
    "labels_": "n",
    "_weights": "n",
    "_totals": "k",
    "_norms": "k",
    "_refined_totals": "r",
    "_refined_norms": "r",
    "_coefs": "k",
    "_filled": "k",
    "_centers": "kd",
    "cluster_centers_": "kf",
    "_offset": "f",
}
# Fitted attributes with one entry for every view.
PER_VIEW = ("view_names_", "_view_widths", "methods_", "means_", "scales_")


@cache
def our_estimators() -> dict[str, type]:
    """Return our estimators by name."""
    package = import_module("kernelweave.estimators")
    return {name: getattr(package, name) for name in package.__all__}


@cache
def known_classes() -> dict[str, type]:
    """Return every class that may occur in a model, by module and name."""
    found = {f"kernelweave.estimators.{name}": cls for name, cls in our_estimators().items()}
    for home in HOMES:
        for name, cls in getmembers(import_module(home), isclass):
            if cls.__module__ == home:
                found[f"{home}.{name}"] = cls
    return found | {f"sklearn.preprocessing.{cls.__name__}": cls for cls in STEPS}


@cache
def class_names() -> dict[type, str]:
    """Return the stored name of every class that may occur in a model."""
    return {cls: name for name, cls in known_classes().items()}


def fault_of(found: Any) -> str | None:
    """Say what an object has that it cannot have, or has not and must, if there is anything."""
    cls = type(found)
    has = vars(found)
    for key in has:
        if callable(getattr(cls, key, None)):
            return f"has {key!r}, which is no field"
    must: list[str] = []
    hints: Mapping[str, Any] = {}
    if isinstance(found, BaseEstimator):
        must = cls._get_param_names()
        hints = FITTED
    elif isinstance(found, Kernel):
        must = [name for name in signature(cls).parameters if name not in ("args", "kwargs")]
    elif is_dataclass(cls):
        must = [field.name for field in fields_of(cls)]
        hints = _hints(cls)
    for key in must:
        if key not in has:
            return f"has no {key!r}"
    for key, hint in hints.items():
        if key in has and not _fits(has[key], hint):
            return f"has {key!r} of a wrong kind"
    return _estimator_fault(found) if isinstance(found, BaseEstimator) else None


def _estimator_fault(found: Any) -> str | None:
    """Say which parameter is invalid or which fitted attributes do not agree in size, if any."""
    has = vars(found)
    try:
        found._validate_params()
    except (TypeError, ValueError) as error:
        return f"has an invalid parameter: {told(error)}"
    if type(found) in set(our_estimators().values()) and "labels_" not in has:
        return "has no 'labels_'"
    if "feature_names_in_" in has and np.shape(has["feature_names_in_"]) != (has.get("n_features_in_"),):
        return "has 'feature_names_in_' and 'n_features_in_' that do not agree"
    if len({len(has[key]) for key in PER_VIEW if key in has}) > 1:
        return "has attributes of different numbers of views"
    return _size_fault(has) or (_kernel_fault(has) if "_totals" in has else None)


def _size_fault(has: Mapping[str, Any]) -> str | None:
    sizes = {"f": has["n_features_in_"]} if "n_features_in_" in has else {}
    for key, letters in SIZES.items():
        value = has.get(key)
        of_views = key == "cluster_centers_" and isinstance(value, list) and "_offset" not in has
        if value is None or of_views:
            continue
        if not isinstance(value, np.ndarray) or value.ndim != len(letters):
            return f"has {key!r} of a wrong shape"
        if any(sizes.setdefault(letter, size) != size for letter, size in zip(letters, value.shape, strict=True)):
            return f"has {key!r} of a wrong size"
    labels = has.get("labels_", np.zeros(0))
    if labels.size and not 0 <= labels.min() <= labels.max() < sizes.get("k", np.inf):
        return "has 'labels_' of clusters that are not there"
    return None


def _kernel_fault(has: Mapping[str, Any]) -> str | None:
    """Say whether a kernel is of other samples than the labels, where sums over clusters are taken of it."""
    kernels = has["_kernels"] if "_kernels" in has else [has["_kernel"]]
    widths = has.get("_view_widths", (has["n_features_in_"],))
    for kernel, width in zip(kernels, widths, strict=True):
        inner = kernel if isinstance(kernel, FittedKernel) else kernel.kernel
        samples = getattr(inner, "features", getattr(inner, "prepared", None))
        rows = width if isinstance(inner, Precomputed) else getattr(samples, "shape", [None])[0]
        if not isinstance(inner, FittedKernel) or rows not in (None, len(has["labels_"])):
            return "has a kernel of other samples"
    return None


@cache
def _hints(cls: type) -> dict[str, Any]:
    found = get_type_hints(cls)
    return {field.name: found[field.name] for field in fields_of(cls)}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind a type hint says; types that say nothing at run time fit everything."""
    origin = get_origin(hint)
    parts = get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is np.ndarray:
        wanted = get_args(parts[1])[0]
        kinds = KINDS if wanted is Any else {"i": "iu", "u": "iu"}.get(np.dtype(wanted).kind, np.dtype(wanted).kind)
        return isinstance(value, np.ndarray) and value.dtype.kind in kinds
    if origin is list:
        return isinstance(value, list) and all(_fits(part, parts[0]) for part in value)
    kind = {float: Real, int: Integral, bool: bool | np.bool_}.get(hint, origin or hint)
    return isinstance(value, kind) and (hint is bool or not isinstance(value, bool))


def told(error: Exception) -> str:
    """Return the message of an error in one line of moderate length."""
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."
