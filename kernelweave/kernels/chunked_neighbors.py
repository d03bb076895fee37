"""Nearest neighbours of samples that are in blocks elsewhere.

The rows of some blocks at a time travel to all places, where those of every block are compared with them; what comes
back are a few candidates for each sample, and the nearest ones so far are kept here.

exact           candidates by the products, tolerances and turns of the search in memory, so that neighbours are the
                same, also between equally far samples
approximate     every block of many rows has an index, which travels with its rows and is asked about those of all

Memory here: the neighbours of all samples, and the rows of some blocks.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave.backends.blocks.nodes import Block
from kernelweave.backends.neighbor_index import FEW_ROWS, build_index, packed, unpacked
from kernelweave.foundation.array_types import Array, Bools, Floats, Ints
from kernelweave.foundation.threads import for_ranges, single_threaded_blas
from kernelweave.kernels.chunked_representations import PresentRows
from kernelweave.kernels.neighbors import (
    ASKED_ROWS,
    Neighbors,
    RowIndex,
    Search,
    answers,
    distances_to,
    limits,
    recall_by_distances,
    recall_rows,
    sorted_by_distance,
    tile_rows,
    without_own,
)
from kernelweave.kernels.representations import Representation

# Rows of small blocks that travel together in an exact search.
TRAVELLING_ROWS = 8192


@dataclass(frozen=True)
class Candidates:
    """Training samples that may be among the nearest of every row; infinitely far where there are fewer."""

    indices: Ints  # (n, w)
    squares: Floats  # (n, w) squared distances less the squared length of the row
    distances: Floats  # (n, w)

    @classmethod
    def none(cls, n: int) -> "Candidates":
        """Return no candidates of n rows."""
        return cls(np.empty((n, 0), dtype=np.intp), np.empty((n, 0)), np.empty((n, 0)))

    def chosen(self, keep: Bools) -> "Candidates":
        """Return some of them, in as few columns as they fit into."""
        width = int(np.count_nonzero(keep, axis=1).max(initial=0))
        order = np.argsort(~keep, axis=1, kind="stable")[:, :width]
        kept = np.take_along_axis(keep, order, axis=1)
        squares = np.where(kept, np.take_along_axis(self.squares, order, axis=1), np.inf)
        distances = np.where(kept, np.take_along_axis(self.distances, order, axis=1), np.inf)
        return Candidates(np.take_along_axis(self.indices, order, axis=1), squares, distances)


@dataclass(frozen=True)
class Sources:
    """Rows of some blocks on their way to all others."""

    blocks: range  # which blocks they are of
    first: int  # the number of the first row
    rows: Floats
    turn: Ints  # of every row
    index: Array | None = None  # as bytes, where the block has one

    def has(self, block: int) -> bool:
        """Whether the rows of a block are among these."""
        return block in self.blocks


def nearest_in_blocks(
    rows: PresentRows, representation: Representation, m: int, rng: np.random.Generator, search: Search
) -> Neighbors:
    """Return the m nearest other samples of every sample; the arguments are those of ``nearest_others``."""
    n = rows.n_samples
    m = min(m, n - 1)
    turn = rng.permutation(n)
    if search == "approximate":
        return _approximately(rows, representation, m, turn)
    lengths = np.concatenate(rows.asked(_squared_lengths, representation))
    known = Candidates.none(n)
    for sources in _travelling(rows, representation, turn, TRAVELLING_ROWS):
        args = (rows.each(range(len(rows.sizes))), rows.each(rows.starts[:-1].tolist()), rows.divided(turn))
        parts = rows.asked(_candidates, representation, *args, sources, m, n)
        known = _merged(known, parts, lengths, m, turn)
    return sorted_by_distance(known.indices, known.distances, lengths)


def recall_in_blocks(
    rows: PresentRows, representation: Representation, near: Neighbors, rng: np.random.Generator
) -> float:
    """Return the share of the nearest neighbours of some samples that were found."""
    chosen = recall_rows(rows.n_samples, rng)
    m = near.indices.shape[1]
    starts = rows.starts
    wanted = [chosen[(chosen >= lo) & (chosen < hi)] - lo for lo, hi in itertools.pairwise(starts)]
    asked = np.concatenate(rows.asked(_picked, representation, rows.each(wanted)))
    own = [np.where((chosen >= lo) & (chosen < hi), chosen - lo, -1) for lo, hi in itertools.pairwise(starts)]
    parts = rows.asked(_nearest_distances, representation, asked, rows.each(own), m)
    exact = np.sort(np.concatenate(parts, axis=1), axis=1)[:, :m]
    return recall_by_distances(near.distances[chosen], exact)


def compared_rows(rows: PresentRows, representation: Representation) -> Floats:
    """Return all present samples here, as they are compared."""
    return np.concatenate(rows.asked(_compared, representation))


# --- here -------------------------------------------------------------------------------------------------------------


def _approximately(rows: PresentRows, representation: Representation, m: int, turn: Ints) -> Neighbors:
    """Return approximate neighbours: those that the indexes of all blocks find, merged."""
    n = rows.n_samples
    backend = rows.X.backend
    orders = rows.divided(turn)
    indexes = backend.made(_indexed, rows.X, rows.places, representation, orders, shape=(n,))
    lengths = np.concatenate(rows.asked(_squared_lengths, representation))
    near = Neighbors(np.empty((n, 0), dtype=np.intp), np.empty((n, 0)))
    for sources in _travelling(rows, representation, turn, FEW_ROWS, indexes):
        numbers = (rows.each(range(len(rows.sizes))), rows.each(rows.starts[:-1].tolist()))
        parts = rows.asked(_by_index, representation, *numbers, sources, m)
        near = _joined(near, parts, lengths, m)
    return near


def _travelling(rows: PresentRows, representation: Representation, turn: Ints, most: int, indexes: Any = None) -> Any:
    """Yield the rows of one block after another; small ones travel together, up to so many rows."""
    starts = rows.starts.tolist()
    for blocks in _groups(rows.sizes, most):
        wanted = rows.each([block in blocks for block in range(len(rows.sizes))])
        parts = rows.asked(_wanted, representation, wanted)
        known = np.concatenate([part for part in parts if part is not None])
        index = None
        if indexes is not None and len(known) >= FEW_ROWS:
            (index,) = (part for part in rows.X.backend.asked(_packed, indexes, wanted) if part is not None)
        first = starts[blocks[0]]
        yield Sources(blocks, first, known, turn[first : starts[blocks[-1] + 1]], index)


def _groups(sizes: tuple[int, ...], most: int) -> list[range]:
    """Return ranges of blocks of fewer rows than ``most`` together, or of a single block; none without rows."""
    groups: list[range] = []
    begin = 0
    rows = 0
    for block, size in enumerate(sizes):
        if rows and rows + size >= most:
            groups.append(range(begin, block))
            rows = 0
        if rows == 0:
            begin = block
        rows += size
    if rows:
        groups.append(range(begin, len(sizes)))
    return groups


def _merged(known: Candidates, parts: list[Candidates], lengths: Floats, m: int, turn: Ints) -> Candidates:
    """Return the candidates known so far with those of other rows, as far as they may be among the nearest."""
    width = max(part.indices.shape[1] for part in parts)
    added = [np.concatenate([_padded(values, width) for values in column]) for column in _columns(parts)]
    joined = Candidates(*(np.hstack(pair) for pair in zip(_fields(known), added, strict=True)))
    n = len(lengths)
    if joined.indices.shape[1] == 0:
        return joined
    return joined.chosen(_nearest(joined.squares, joined.indices, lengths, m, np.arange(n), turn, n))


def _fields(candidates: Candidates) -> tuple[Array, Array, Array]:
    return candidates.indices, candidates.squares, candidates.distances


def _columns(parts: list[Candidates]) -> Any:
    return zip(*map(_fields, parts), strict=True)


def _padded(values: Array, width: int) -> Array:
    """Return values in so many columns; what is added is infinitely far."""
    missing = width - values.shape[1]
    fill = np.inf if values.dtype.kind == "f" else 0
    return np.pad(values, ((0, 0), (0, missing)), constant_values=fill)


def _joined(near: Neighbors, parts: list[Neighbors], lengths: Floats, m: int) -> Neighbors:
    """Return the nearest of the neighbours known so far and of others."""
    width = max(part.indices.shape[1] for part in parts)
    indices = np.concatenate([_padded(part.indices, width) for part in parts])
    distances = np.concatenate([_padded(part.distances, width) for part in parts])
    joined = np.hstack([near.distances, distances])
    return sorted_by_distance(np.hstack([near.indices, indices]), joined, lengths).first(m)


def _nearest(squares: Floats, samples: Ints, lengths: Floats, m: int, own: Ints, turn: Ints, n: int) -> Bools:
    """Return which candidates are the m nearest of every row; rows with fewer candidates keep all they have.

    Between equal ones at the limit turns decide, as in memory: whoever has no turn among some candidates has none among
    more of them. ``samples`` and ``own`` are places in ``turn``, and n is the number of all samples.
    """
    there = np.isfinite(squares)
    if squares.shape[1] <= m:
        return there
    last, tolerance = limits(squares, lengths, m)
    enough = np.isfinite(last)
    last = np.where(enough, last, 0.0)
    tolerance = np.where(enough, tolerance, 0.0)
    keep = np.where(enough[:, None], squares <= (last + tolerance)[:, None], there)
    for row in np.flatnonzero(enough & (np.count_nonzero(keep, axis=1) > m)):
        nearer = squares[row] < last[row] - tolerance[row]
        tied = np.flatnonzero(keep[row] & ~nearer)
        waiting = (turn[samples[row, tied]] - turn[own[row]]) % n
        nearer[tied[np.argsort(waiting, kind="stable")[: m - np.count_nonzero(nearer)]]] = True
        keep[row] = nearer
    return keep


# --- what is done to one block ----------------------------------------------------------------------------------------


def _compared(rows: Floats, representation: Representation) -> Floats:
    return np.ascontiguousarray(representation.transform(rows))


def _squared_lengths(rows: Floats, representation: Representation) -> Floats:
    Z = _compared(rows, representation)
    return np.einsum("ij,ij->i", Z, Z)


def _wanted(rows: Floats, representation: Representation, wanted: bool) -> Floats | None:
    return _compared(rows, representation) if wanted else None


def _picked(rows: Floats, representation: Representation, places: Ints) -> Floats:
    return _compared(rows[places], representation)


def _candidates(
    rows: Floats, representation: Representation, block: int, first: int, turn: Ints, sources: Sources, m: int, n: int
) -> Candidates:
    """Return the sources that may be among the m nearest of the rows of a block."""
    Z = _compared(rows, representation)
    known = sources.rows
    same = sources.has(block)
    count = min(m, len(known) - same)
    if count == 0 or len(Z) == 0:
        return Candidates.none(len(Z))
    lengths = np.einsum("ij,ij->i", known, known)
    # Turns of the rows behind those of the sources, so that both are found by a number.
    turns = np.concatenate([sources.turn, turn])
    numbers = np.arange(len(known))

    def search(start: int, stop: int) -> Candidates:
        part = Z[start:stop]
        squares = lengths - 2.0 * (part @ known.T)
        if same:
            squares[np.arange(stop - start), np.arange(start, stop) + first - sources.first] = np.inf
        own = len(known) + np.arange(start, stop)
        samples = np.broadcast_to(numbers, squares.shape)
        keep = _nearest(squares, samples, np.einsum("ij,ij->i", part, part), count, own, turns, n)
        found = Candidates(samples, squares, np.empty(squares.shape)).chosen(keep)
        distances = np.where(np.isfinite(found.squares), distances_to(part, known, found.indices), np.inf)
        return Candidates(found.indices + sources.first, found.squares, distances)

    with single_threaded_blas():
        parts: Any = for_ranges(search, len(Z), width=tile_rows(len(known)), elements=len(Z) * len(known))
    width = max(part.indices.shape[1] for part in parts)
    return Candidates(*(np.concatenate([_padded(values, width) for values in column]) for column in _columns(parts)))


def _indexed(block: Block, X: Array, places: Ints | None, representation: Representation, turn: Ints) -> Any:
    """Return the index of a block's rows, entered by their turns; None of few rows."""
    if len(turn) < FEW_ROWS:
        return None
    rows = np.asarray(X if places is None else X[places], dtype=np.float64)
    return packed(build_index(_compared(rows, representation), np.argsort(turn)))


def _packed(block: Block, index: Array | None, wanted: bool) -> Array | None:
    return index if wanted else None


def _by_index(
    rows: Floats, representation: Representation, block: int, first: int, sources: Sources, m: int
) -> Neighbors:
    """Return the sources that their index says are the m nearest of the rows of a block."""
    Z = _compared(rows, representation)
    known = sources.rows
    same = sources.has(block)
    count = min(m + same, len(known))
    if count - same <= 0 or len(Z) == 0:
        return Neighbors(np.empty((len(Z), 0), dtype=np.intp), np.empty((len(Z), 0)))
    order = np.arange(len(known)) if sources.index is None else np.argsort(sources.turn)
    index = RowIndex(build_index(known, order) if sources.index is None else unpacked(sources.index), order)
    parts: Any = for_ranges(
        lambda start, stop: answers([index], Z[start:stop], known, count),
        len(Z),
        width=ASKED_ROWS,
        elements=len(Z) * ASKED_ROWS,
    )
    indices = np.concatenate([part.indices for part in parts])
    near = Neighbors(indices, np.concatenate([part.distances for part in parts]))
    if same:
        near = without_own(near, np.arange(len(Z)) + first - sources.first)
    return Neighbors(near.indices + sources.first, near.distances)


def _nearest_distances(rows: Floats, representation: Representation, asked: Floats, own: Ints, m: int) -> Floats:
    """Return the distances of some samples from the m nearest rows of a block, themselves left out."""
    Z = _compared(rows, representation)
    if len(Z) == 0:
        return np.empty((len(asked), 0))
    found = np.full((len(asked), m), np.inf)
    every = np.arange(len(Z))
    step = max(1, tile_rows(len(Z)))
    for start in range(0, len(asked), step):
        part = slice(start, min(start + step, len(asked)))
        squares = np.einsum("ij,ij->i", Z, Z) - 2.0 * (asked[part] @ Z.T)
        mine = np.flatnonzero(own[part] >= 0)
        squares[mine, own[part][mine]] = np.inf
        near = np.argsort(squares, axis=1)[:, : m + 1] if len(Z) <= m + 1 else np.argpartition(squares, m, axis=1)
        near = every[near[:, : m + 1]]
        distances = distances_to(asked[part], Z, near)
        distances[~np.isfinite(np.take_along_axis(squares, near, axis=1))] = np.inf
        nearest = np.sort(distances, axis=1)[:, :m]
        found[part, : nearest.shape[1]] = nearest
    return found
