"""Which engine runs the loops: ``"numba"`` (default) or ``"numpy"``, its plain twin."""

from functools import cache
from importlib import import_module
from typing import Protocol

from kernelweave.foundation.array_types import Array, Floats, Ints

ENGINES = ("numba", "numpy")


class Engine(Protocol):
    """The loops an operator may ask for; each engine is a module that has them all."""

    def scatter_rows(
        self, K: Array, rows: Ints, groups: Ints, weights: Floats, out: Floats, lo: int, hi: int, left: int
    ) -> None:
        """Add weighted rows of K to the rows of ``out`` named by their groups."""

    def move_rows(
        self,
        K: Array,
        rows: Ints,
        old: Ints,
        new: Ints,
        weights: Floats,
        out: Floats,
        lo: int,
        hi: int,
        left: int,
    ) -> None:
        """Move weighted rows of K from one row of ``out`` to another."""

    def nearest(
        self,
        sums: Floats,
        slopes: Floats,
        norms: Floats,
        labels: Ints,
        slack: float,
        out: Ints,
        own: Floats,
        lo: int,
        hi: int,
    ) -> float:
        """Write the nearest cluster of every sample."""

    def nearest_scaled(
        self,
        sums: Floats,
        slopes: Floats,
        norms: Floats,
        coefs: Floats,
        diag: Floats,
        labels: Ints,
        slack: float,
        out: Ints,
        own: Floats,
        lo: int,
        hi: int,
    ) -> float:
        """Write the cluster of least scaled distance of every sample."""

    def nearest_means(
        self,
        Phi: Array,
        diag: Floats,
        turned: Floats,
        norms: Floats,
        coefs: Floats,
        labels: Ints,
        slack: float,
        out: Ints,
        own: Floats,
        lo: int,
        hi: int,
    ) -> float:
        """Write the mean of least scaled distance of every row of features."""

    def add_rows(self, Phi: Array, labels: Ints, weights: Floats, out: Floats, lo: int, hi: int) -> None:
        """Add weighted rows of features to the rows of ``out`` named by their labels."""

    def shift_rows(
        self, Phi: Array, moved: Ints, old: Ints, new: Ints, weights: Floats, out: Floats, lo: int, hi: int
    ) -> None:
        """Move weighted rows of features from one row of ``out`` to another."""

    def assign_by_size(
        self, values: Floats, weights: Floats, sizes: Floats, labels: Ints, slack: float, out: Ints
    ) -> None:
        """Assign samples one after the other by the size of the cluster times the distance."""

    def founding_gains(
        self, K: Array, diag: Floats, distances: Floats, weights: Floats, out: Floats, lo: int, hi: int, left: int
    ) -> None:
        """Write the gain each sample is sure of if it founds a cluster."""

    def worst_asymmetry(self, K: Array, lo: int, hi: int) -> tuple[float, float, int, int]:
        """Return the largest difference between K and its transpose, and the largest entry."""


@cache
def get_engine(name: str = "numba") -> Engine:
    """Return the engine called ``name``; imported on first use, so that importing the library stays quick."""
    return import_module(
        {"numpy": "kernelweave.backends.numpy_loops", "numba": "kernelweave.backends.compiled.row_loops"}[name]
    )
