"""Representations of a view whose rows are in blocks elsewhere: fitted by sums over blocks, applied where rows are.

Sums are added block after block, so means can differ from those of one table in the last digit.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave.backends.blocks import BlockArray
from kernelweave.backends.blocks.nodes import Block, PerBlock
from kernelweave.foundation.array_types import Array, Bools, Floats, Ints
from kernelweave.inputs import row_digests
from kernelweave.kernels.representations import (
    FEW_COLUMNS,
    Hellinger,
    Representation,
    Standardized,
    ViewKind,
    kind_by_sums,
    kind_sums,
    root_shares,
    standardized,
)


@dataclass(frozen=True)
class PresentRows:
    """The samples of a view that it describes, in blocks."""

    X: BlockArray
    places: PerBlock  # those of every block, None where it is all of them
    sizes: tuple[int, ...]  # how many of every block

    @property
    def n_samples(self) -> int:
        """How many of all blocks."""
        return sum(self.sizes)

    @property
    def starts(self) -> Ints:
        """Return the number of the first one of every block, and that of all."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)

    @property
    def samples(self) -> Ints:
        """Return which of all samples these are."""
        starts = self.X.backend.starts[:-1].tolist()
        parts = [
            start + (np.arange(size) if places is None else places)
            for start, size, places in zip(starts, self.sizes, self.places.pieces, strict=True)
        ]
        return np.concatenate(parts)

    def asked(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return what a function makes of the rows of every block, as float64."""
        answers: list[Any] = self.X.backend.asked(_of_present, self.X, self.places, function, *args)
        return answers

    def each(self, pieces: Sequence[Any]) -> PerBlock:
        """Return an argument that differs from block to block."""
        return PerBlock(pieces)

    def divided(self, values: Array) -> PerBlock:
        """Return values of all present samples block by block."""
        ends = self.starts.tolist()
        return PerBlock([values[lo:hi] for lo, hi in itertools.pairwise(ends)])


def all_rows(X: BlockArray) -> PresentRows:
    """Return all samples of a view as present."""
    sizes = X.backend.sizes
    return PresentRows(X, PerBlock([None] * len(sizes)), tuple(sizes))


def kind_in_blocks(X: BlockArray) -> ViewKind:
    """Return whether a view holds counts or other numbers."""
    return kind_by_sums(np.sum(all_rows(X).asked(_kind_sums), axis=0), X.shape)  # type: ignore[arg-type]


def present_in_blocks(X: BlockArray) -> PresentRows:
    """Return the samples that a table describes; a row of zeros among values >= 0 says nothing, as in one table."""
    every = all_rows(X)
    if X.shape[1] < FEW_COLUMNS:
        return every
    parts = every.asked(_filled)
    if min(least for least, _ in parts) < 0:
        return every
    masks: list[Bools] = [mask for _, mask in parts]
    if sum(int(mask.sum()) for mask in masks) < 2 or all(mask.all() for mask in masks):
        return every
    places = [None if mask.all() else np.flatnonzero(mask) for mask in masks]
    return PresentRows(X, PerBlock(places), tuple(int(mask.sum()) for mask in masks))


def representations_in_blocks(rows: PresentRows) -> tuple[Representation, ...]:
    """Return how the rows of a table are compared, fitted on the samples that are present."""
    parts = [part for part in rows.asked(_first_sums) if part is not None]
    n = rows.n_samples
    mean = np.sum([total for total, _, _, _ in parts], axis=0) / n
    squares = [part for part in rows.asked(_squares_about, mean) if part is not None]
    spread = np.sqrt(np.sum(squares, axis=0) / n)
    plain = standardized(mean, spread, max(largest for _, _, largest, _ in parts))
    if rows.X.shape[1] < FEW_COLUMNS:
        return (plain,)
    if min(least for _, least, _, _ in parts) < 0:
        return (plain, Standardized(plain.center, plain.factor, unit=True))
    return (plain, Hellinger(np.sum([shares for _, _, _, shares in parts], axis=0) / n))


def digests_in_blocks(views: Sequence[BlockArray]) -> Ints:
    """Return the digests of all samples over several views."""
    first, *others = views
    parts = first.backend.asked(_digests, first, *others)
    return np.concatenate(parts)


# --- what is done to one block ----------------------------------------------------------------------------------------


def _of_present(block: Block, X: Array, places: Ints | None, function: Callable[..., Any], *args: Any) -> Any:
    rows = np.asarray(X if places is None else X[places], dtype=np.float64)
    return function(rows, *args)


def _kind_sums(rows: Floats) -> Floats:
    return kind_sums(rows)


def _filled(rows: Floats) -> tuple[float, Bools]:
    return float(rows.min(initial=0.0)), (rows != 0).any(axis=1)


def _first_sums(rows: Floats) -> tuple[Floats, float, float, Floats] | None:
    """Return sums, least and largest absolute value, and the sums of root shares; None of a block without rows."""
    if len(rows) == 0:
        return None
    return rows.sum(axis=0), float(rows.min()), float(np.abs(rows).max()), root_shares(rows).sum(axis=0)


def _squares_about(rows: Floats, mean: Floats) -> Floats | None:
    return np.asarray(np.square(rows - mean).sum(axis=0)) if len(rows) else None


def _digests(block: Block, *views: Array) -> Ints:
    return row_digests([np.asarray(view, dtype=np.float64) for view in views])
