"""What older files hold, turned into what today's classes hold.

A file carries the version of its format. Objects of an older version pass through the upgrades of every version since,
each of which gets the fields of one object, as values, and returns those of the next version. Then the object is made
and checked like any other. What an object holds is made before it, so an upgrade sees arrays and finished objects.

To add one
----------
You have changed the fields of a class in ``names.CLASSES``: a parameter has another name, a fitted attribute went into
a composed object. Files of the older version must keep loading, so write a function of the fields and register it in
``UPGRADES`` under the version the files were written in and the name of the class::

    def _some_kernel_clustering(fields: Fields) -> Fields:
        fields = renamed(fields, weights="view_weights", view_weights="init_view_weights", ridge="regularization")
        fields.setdefault("random_state", None)  # new, and without effect on what was fitted
        sources = {"kernel": "_kernel", "weights": "_weights", "totals": "_totals", "norms": "_norms"}
        return composed(fields, "_model", "model/KernelMeans", **sources)

    UPGRADES = {1: {"estimator/SomeKernelClustering": _some_kernel_clustering, ...}}

``model/KernelMeans`` is a frozen dataclass (without slots) with the fields kernel, weights, totals and norms; what else
it may cache does not go into a file. It needs

- a line in ``names.CLASSES``;
- type hints, which are checked: a field of another type is refused;
- a line in ``fields.SIZES``, ``"model/KernelMeans": {"weights": "n", "totals": "k", "norms": "k"}``, in place of those
  of ``_weights``, ``_totals`` and ``_norms``;
- a line in ``fields.SUMMED_KERNELS``, ``"model/KernelMeans": ("kernel",)``, where sums over clusters are taken of it.

Then run ``pytest tests/persistence``: files of all versions are kept in ``tests/fixtures/models``, must load and must
give the results they gave. They are never saved again.

What to write, and what not:

- An upgrade tells what the file meant. Where a version had no such field, put in the value under which today's code
  does what that version did, and say so; where nobody can know it, leave it out.
- An older file may lack what was added within a version: ask ``if "_x" in fields``.
- The fields come from a file, and are checked only after the upgrade: use NumPy and plain Python on them, never
  compiled loops, ``predict`` or a constructor. :func:`composed` makes objects without one and checks them.
- While no release has written the present version, change its upgrades freely. After that, raise ``names.VERSION``,
  add a table for the version before, and leave the older ones as they are.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelweave.persistence.fields import assembled
from kernelweave.persistence.names import VERSION, names_since

Fields = dict[str, Any]
Upgrade = Callable[[Fields], Fields]


def renamed(fields: Fields, **names: str) -> Fields:
    """Return the fields under new names, ``old="new"``, all at once, so that names can be passed on."""
    return {names.get(key, key): value for key, value in fields.items()}


def composed(fields: Fields, field: str, name: str, **sources: str) -> Fields:
    """Return the fields with some of them in an object of the class ``name``, itself in ``field``.

    ``sources`` says where the fields of the object are, ``new="old"``.
    """
    missing = [old for old in sources.values() if old not in fields]
    if missing:
        raise ValueError(f"it has no {missing[0]!r}")
    rest = {key: value for key, value in fields.items() if key not in sources.values()}
    return rest | {field: assembled(name, {new: fields[old] for new, old in sources.items()})}


def _scores_without_floor(fields: Fields) -> Fields:
    """Early models of scores had no floor: every score above zero counted as positive."""
    if "_floor" in fields:
        return fields
    return fields | {"_floor": np.zeros(np.shape(fields["codebook_"])[1])}


#: By version and name, what turns the fields of an object of that version into those of the next.
UPGRADES: dict[int, dict[str, Upgrade]] = {
    1: {
        "estimator/KernelSpectralClustering": _scores_without_floor,
        "estimator/MultiViewKernelSpectralClustering": _scores_without_floor,
    },
}


def upgraded(written: str, fields: Fields, version: int) -> Fields:
    """Return the fields of an object in a file of some version as the class that it is today has them."""
    for step, name in zip(range(version, VERSION), names_since(written, version), strict=False):
        if name in UPGRADES[step]:
            fields = UPGRADES[step][name](fields)
    return fields
