"""Steps that upgrades are made of: fields with other names, in other places, new ones and those that are gone."""

from collections.abc import Callable, Collection
from typing import Any

from kernelweave.persistence.fields import assembled

Fields = dict[str, Any]
Upgrade = Callable[[Fields], Fields]


def renamed(fields: Fields, **names: str) -> Fields:
    """Return the fields under new names, ``old="new"``, all at once, so that names can be passed on."""
    return {names.get(key, key): value for key, value in fields.items()}


def without(fields: Fields, *names: str) -> Fields:
    """Return the fields less some, which need not be there."""
    return {key: value for key, value in fields.items() if key not in names}


def taken(fields: Fields, *names: str) -> list[Any]:
    """Return the values of some fields, which must be there."""
    missing = [name for name in names if name not in fields]
    if missing:
        raise ValueError(f"it has no {missing[0]!r}")
    return [fields[name] for name in names]


def composed(fields: Fields, field: str, name: str, *, kept: Collection[str] = (), **sources: str) -> Fields:
    """Return the fields with some of them in an object of the class ``name``, itself in ``field``.

    ``sources`` says where the fields of the object are, ``new="old"``; those of ``kept`` also stay where they are.
    """
    values = taken(fields, *sources.values())
    rest = without(fields, *(old for old in sources.values() if old not in kept))
    return rest | {field: assembled(name, dict(zip(sources, values, strict=True)))}


def weighted_kernels(kernels: Any, coefficients: Any) -> Any:
    """Return the weighted sum of the kernels of several views, each a ``kernel/ViewKernel``."""
    views = assembled("kernel/ViewKernels", {"kernels": tuple(kernels)})
    return assembled("kernel/WeightedViewKernels", {"kernels": views, "coefficients": coefficients})


def view_kernel(kernel: Any, factor: Any = 1.0) -> Any:
    """Return the kernel of one view, multiplied by a factor."""
    nothing = dict.fromkeys(("degree_weights", "column_scale", "columns"))
    return assembled("kernel/ViewKernel", {"kernel": kernel, "factor": factor} | nothing)
