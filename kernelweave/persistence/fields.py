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

from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.kernels.spec.fitting import FittedKernel, Precomputed
from kernelweave.persistence.names import CLASSES, ESTIMATORS, name_of

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
    "_weights": Floats,
    "_totals": Floats,
    "_norms": Floats,
    "_refined_totals": Floats,
    "_refined_norms": Floats,
    "_coefs": Floats | None,
    "_filled": Bools,
    "_centers": Floats,
}
# Sizes of arrays that must agree, as compiled loops do not check where an array ends. Letters stand for the numbers of
# samples (n), clusters (k), features (f) and others, and mean the same in an estimator and in all objects it holds.
# The first entry is about attributes of estimators; others are about classes, by their name in ``names.CLASSES``.
SIZES: dict[str, dict[str, str]] = {
    "estimator": {
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
    },
}
# Fields with fitted kernels, alone or one for every view, that sums over the clusters of all samples are taken of: the
# kernels must know as many samples as there are labels. Again for estimators, where they have totals, and for classes.
SUMMED_KERNELS: dict[str, tuple[str, ...]] = {
    "estimator": ("_kernel", "_kernels", "_refiners"),
}
TOTALS = ("_totals", "_refined_totals")
# Fitted attributes with one entry for every view.
PER_VIEW = ("view_names_", "_view_widths", "methods_", "means_", "scales_")


def assembled(name: str, fields: Mapping[str, Any]) -> Any:
    """Return an object of a class of ``names.CLASSES`` with these fields, made without its constructor, and checked."""
    cls = CLASSES[name]
    value: Any = object.__new__(cls)
    for key, field in fields.items():
        object.__setattr__(value, key, field)
    unknown = sorted(fields.keys() - fields_in(value).keys())
    fault = f"has {unknown[0]!r}, which is no field" if unknown else fault_of(value)
    if fault is not None:
        raise ValueError(f"{cls.__name__} {fault}")
    return value


def fields_in(value: Any) -> Mapping[str, Any]:
    """Return what of an object belongs into a file: all attributes, of a dataclass only its fields."""
    if not is_dataclass(value):
        return {key: field for key, field in vars(value).items() if not key.startswith("_skl_")}
    return {field.name: vars(value)[field.name] for field in fields_of(value) if field.name in vars(value)}


def fault_of(value: Any) -> str | None:
    """Describe a field that an object cannot have, or lacks, or that is wrong; None where there is no fault."""
    cls: Any = type(value)
    present = fields_in(value)
    for key in present:
        if callable(getattr(cls, key, None)):
            return f"has {key!r}, which is no field"
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
        model._validate_params()
    except (TypeError, ValueError) as error:
        return f"has an invalid parameter: {one_line(error)}"
    if type(model) in ESTIMATORS and "labels_" not in present:
        return "has no 'labels_'"
    if "feature_names_in_" in present and np.shape(present["feature_names_in_"]) != (present.get("n_features_in_"),):
        return "has 'feature_names_in_' and 'n_features_in_' that do not agree"
    if len({len(present[key]) for key in PER_VIEW if key in present}) > 1:
        return "has attributes of different numbers of views"
    return _size_fault(model)


def _size_fault(model: Any) -> str | None:
    """Describe the first size in an estimator, or in an object it holds, that does not agree with the others."""
    present = vars(model)
    sizes = {"f": present["n_features_in_"]} if "n_features_in_" in present else {}
    for name, fields in _sized(model):
        for key, letters in SIZES.get(name, {}).items():
            fault = _array_fault(fields.get(key), letters, sizes)
            if fault is not None:
                return f"has {key!r} {fault}"
    labels = present.get("labels_", np.zeros(0))
    n_clusters = sizes.get("k", sizes.get("r", np.inf))
    if labels.size and not 0 <= labels.min() <= labels.max() < n_clusters:
        return "has 'labels_' of clusters that are not there"
    return _kernel_fault(model)


def _array_fault(value: Any, letters: str, sizes: dict[str, int]) -> str | None:
    """Describe how an array disagrees with the sizes known so far, if it does, and add its sizes to them."""
    if value is None:
        return None
    if not isinstance(value, np.ndarray) or value.ndim != len(letters):
        return "of a wrong shape"
    pairs = zip(letters, value.shape, strict=True)
    return "of a wrong size" if any(sizes.setdefault(letter, size) != size for letter, size in pairs) else None


def _sized(value: Any, name: str = "estimator") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and fields of an estimator, then of the objects in its fields, alone or in lists, and in theirs."""
    fields = fields_in(value)
    if isinstance(fields.get("cluster_centers_"), list) and "_offset" not in fields:  # those of every view
        fields = {key: field for key, field in fields.items() if key != "cluster_centers_"}
    yield name, fields
    for field in fields.values():
        for item in field if isinstance(field, list | tuple) else (field,):
            if is_dataclass(item):
                yield from _sized(item, name_of(type(item)) or "")


def _kernel_fault(model: Any) -> str | None:
    """Say whether a kernel is of other samples than the labels, where sums over clusters are taken of it."""
    present = vars(model)
    widths = present.get("_view_widths", (present.get("n_features_in_"),))
    for name, fields in _sized(model):
        keys = [key for key in SUMMED_KERNELS.get(name, ()) if key in fields]
        if name == "estimator":
            has_totals = any(key in fields for key in TOTALS)
            if has_totals and not keys:
                return "has no kernel"
            keys = keys if has_totals else []
        for key in keys:
            kernels = fields[key] if isinstance(fields[key], list | tuple) else [fields[key]]
            pairs = zip(kernels, widths, strict=True)
            if not all(_is_kernel_of(kernel, len(present["labels_"]), width) for kernel, width in pairs):
                return "has a kernel of other samples"
    return None


def _is_kernel_of(kernel: Any, n_samples: int, width: int | None) -> bool:
    """Whether a fitted kernel, alone or in an object that scales it, is of so many samples.

    Of a precomputed kernel nothing is kept; the width of its view is the number of samples.
    """
    fitted = kernel if isinstance(kernel, FittedKernel) else kernel.kernel
    samples = getattr(fitted, "features", getattr(fitted, "prepared", None))
    known = width if isinstance(fitted, Precomputed) else getattr(samples, "shape", [None])[0]
    return isinstance(fitted, FittedKernel) and known in (None, n_samples)


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
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and value.dtype.kind in _dtype_kinds(get_args(arguments[1])[0])
    if origin is list or (origin is tuple and arguments[1:] == (Ellipsis,)):
        return isinstance(value, origin) and all(_fits(item, arguments[0]) for item in value)
    kind = {float: Real, int: Integral, bool: bool | np.bool_}.get(hint, origin or hint)
    return isinstance(value, kind) and (hint is bool or not isinstance(value, bool))


def _dtype_kinds(scalar: Any) -> str:
    """Return the kinds of arrays that fit the scalar type of a type hint."""
    if scalar is Any:
        return KINDS
    kind = np.dtype(scalar).kind
    return "iu" if kind in "iu" else kind


def one_line(error: Exception) -> str:
    """Return the message of an error in one line of moderate length."""
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return text if len(text) <= 200 else f"{text[:200]}..."
