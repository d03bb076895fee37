"""What the fields of an object in a saved model must be: kinds, valid parameters, and sizes that agree."""

from collections.abc import Iterator, Mapping
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from functools import cache
from inspect import signature
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel

from kernelweave.estimators.mixtures.mixture_clusterer import MixtureClusterer
from kernelweave.estimators.shared.models import CenterModel, ObservedCenters
from kernelweave.foundation.array_types import Array, Bools, Floats, Ints
from kernelweave.persistence.names import CLASSES, ESTIMATORS, MODELS, name_of
from kernelweave.persistence.sizes import size_fault

# Kinds of arrays: numbers, truth values and text.
KINDS = "biufcSU"
# What fitted attributes hold, where many estimators have them. Fields of other objects have type hints in their class.
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
}
# Fitted attributes with one entry for every view.
PER_VIEW = ("view_names_", "_view_widths", "methods_", "means_", "scales_")


def assembled(name: str, fields: Mapping[str, Any]) -> Any:
    """Return an object of a class of ``names.CLASSES`` with these fields, made without its constructor, and checked."""
    cls = CLASSES[name]
    value: Any = object.__new__(cls)
    for key, field in fields.items():
        object.__setattr__(value, key, field)
    unknown = sorted(fields.keys() - fields_in(value).keys())
    fault = f"has {unknown[0]!r}, which is not a field" if unknown else fault_of(value)
    if fault is not None:
        raise ValueError(f"{cls.__name__} {fault}")
    return value


def fields_in(value: Any) -> Mapping[str, Any]:
    """Return what of an object belongs into a file: all attributes, of a dataclass only its fields.

    Where a fit kept its checkpoint is of no use elsewhere.
    """
    if not is_dataclass(value):
        kept = {key: field for key, field in vars(value).items() if not key.startswith("_skl_")}
        return kept | {"checkpoint": None} if "checkpoint" in kept else kept
    return {field.name: vars(value)[field.name] for field in fields_of(value) if field.name in vars(value)}


def fault_of(value: Any) -> str | None:
    """Describe a field that an object cannot have, or lacks, or that is wrong; None where there is no fault."""
    cls: Any = type(value)
    present = fields_in(value)
    for key in present:
        if callable(getattr(cls, key, None)):
            return f"has {key!r}, which is not a field"
    required, hints = _expected(cls)
    for key in required:
        if key not in present:
            return f"has no {key!r}"
    for key, hint in hints.items():
        if key in present and not _fits(present[key], hint):
            return f"has {key!r} of a wrong kind"
    return _estimator_fault(value) if isinstance(value, BaseEstimator) else None


@cache
def _expected(cls: Any) -> tuple[list[str], Mapping[str, Any]]:
    """Return the names of fields that objects of a class must have, and the types of fields that are known."""
    if issubclass(cls, BaseEstimator):
        return cls._get_param_names(), FITTED
    if issubclass(cls, Kernel):
        return [name for name in signature(cls).parameters if name not in ("args", "kwargs")], {}
    if is_dataclass(cls):
        types = get_type_hints(cls)
        names = [field.name for field in fields_of(cls)]
        return names, {name: types[name] for name in names}
    return [], {}


def _estimator_fault(model: Any) -> str | None:
    """Describe a parameter that is invalid or fitted attributes whose sizes do not agree, if there are any."""
    present = vars(model)
    try:
        if hasattr(model, "_parameter_constraints"):  # a few classes of scikit-learn check theirs later
            model._validate_params()
    except (TypeError, ValueError) as error:
        return f"has an invalid parameter: {one_line(error)}"
    for key, kind in _state(type(model)).items():
        if key not in present:
            return f"has no {key!r}"
        if not _fits(present[key], kind):
            return f"has {key!r} of a wrong kind"
    if "feature_names_in_" in present and np.shape(present["feature_names_in_"]) != (present.get("n_features_in_"),):
        return "has 'feature_names_in_' and 'n_features_in_' that do not agree"
    if len({len(present[key]) for key in PER_VIEW if key in present}) > 1:
        return "has attributes of different numbers of views"
    return size_fault(list(_held(model, name_of(type(model)) or "")))


def _state(cls: type) -> dict[str, Any]:
    """Return the fitted attributes that an estimator of ours has in any case, and their types."""
    if cls not in ESTIMATORS:
        return {}
    model = {"_model": MODELS[cls]} if cls in MODELS else {}
    centers = {"_centers": CenterModel | ObservedCenters | None} if issubclass(cls, MixtureClusterer) else {}
    return {"labels_": Ints, **model, **centers}


def _held(value: Any, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and fields of an object, then of the objects in its fields, alone or in lists, and in theirs."""
    fields = fields_in(value)
    yield name, fields
    for field in fields.values():
        for item in field if isinstance(field, list | tuple) else (field,):
            if is_dataclass(item):
                yield from _held(item, name_of(type(item)) or "")


#: Kinds of the arrays that type hints name.
ARRAY_KINDS = ((Array, KINDS), (Floats, "f"), (Ints, "iu"), (Bools, "b"))


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind a type hint says; types that say nothing at run time fit everything."""
    origin = get_origin(hint)
    arguments = get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, choice) for choice in arguments)
    if origin is Literal:
        return value in arguments
    for alias, kinds in ARRAY_KINDS:  # what stands behind these names differs between versions of NumPy
        if hint == alias:
            return isinstance(value, np.ndarray) and value.dtype.kind in kinds
    if origin is list or (origin is tuple and arguments[1:] == (Ellipsis,)):
        return isinstance(value, origin) and all(_fits(item, arguments[0]) for item in value)
    kind = {float: Real, int: Integral, bool: bool | np.bool_}.get(hint, origin or hint)
    return isinstance(value, kind) and (hint is bool or not isinstance(value, bool))


def one_line(error: Exception) -> str:
    """Return the message of an error in one line of moderate length."""
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."
