"""The multi-view sets of the data folder, as the scoreboard takes them.

Values are those of the files: each method scales them as its setting says. Of a set with more samples than the limit,
rows are drawn at random, the same ones for all methods and seeds. Rows come in an order that is drawn for every seed,
the same for all methods: many files are sorted by class, which a method must not profit from.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelweave.datasets import list_benchmarks, load_benchmark
from kernelweave.foundation.errors import DataError

_SEED_OF_ROWS = 0
#: Sets with a view that was made with the classes, as its number of columns shows.
MADE_WITH_CLASSES = ("coil20_3view", "mnist4")


@dataclass(frozen=True)
class DataSet:
    """Views of the same samples, and their classes."""

    name: str
    views: list[Any]
    target: npt.NDArray[np.int64]

    @property
    def n_samples(self) -> int:
        """The number of samples."""
        return len(self.target)

    @property
    def n_clusters(self) -> int:
        """As many as there are classes."""
        return len(np.unique(self.target))


@dataclass(frozen=True)
class Size:
    """What is known of a set before it is clustered."""

    name: str
    n_samples: int
    n_views: int
    n_clusters: int


def load_set(name: str, limit: int, *, seed: int = 0, data_dir: str | None = None) -> DataSet:
    """Read a set, at most ``limit`` samples of it, in the order of this seed."""
    bunch = _multi_view(name, data_dir)
    rows = _rows(len(bunch.target), limit, seed)
    return DataSet(name, [view[rows] for view in bunch.views.values()], bunch.target[rows])


def sizes(names: Iterable[str], limit: int) -> list[Size]:
    """Return the sizes of these sets, the smallest first."""
    return _smallest_first(_size(name, _multi_view(name), limit) for name in names)


def all_sizes(limit: int) -> list[Size]:
    """Return the sizes of all sets of the data folder that have several views and classes; each file is read once."""
    read = ((name, load_benchmark(name)) for name in list_benchmarks())
    return _smallest_first(_size(name, bunch, limit) for name, bunch in read if _is_multi_view(bunch))


def _multi_view(name: str, data_dir: str | None = None) -> Any:
    bunch = load_benchmark(name, data_dir=data_dir)
    if not _is_multi_view(bunch):
        raise DataError(f"The set {name!r} is not one of several views with classes: name another one.")
    return bunch


def _is_multi_view(bunch: Any) -> bool:
    return len(bunch.get("views", ())) > 1 and "target" in bunch


def _rows(n_samples: int, limit: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the rows to keep, in the order of this seed."""
    kept = np.random.default_rng(_SEED_OF_ROWS).permutation(n_samples)[:limit]
    return np.random.default_rng(seed).permutation(np.sort(kept))


def _size(name: str, bunch: Any, limit: int) -> Size:
    kept = bunch.target[_rows(len(bunch.target), limit, seed=0)]
    return Size(name, len(kept), len(bunch.views), len(np.unique(kept)))


def _smallest_first(found: Iterable[Size]) -> list[Size]:
    return sorted(found, key=lambda size: (size.n_samples, size.name))
