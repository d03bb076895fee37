"""What is done to one block; every function runs where the block lies and returns what is of its size or small."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelweave.backends.blocks.nodes import Block
from kernelweave.backends.blocks.opened import Opened
from kernelweave.backends.blocks.promised import TILED, Promised
from kernelweave.backends.host import GAIN_DIGITS
from kernelweave.backends.protocol import Assignment, Moves
from kernelweave.backends.registry import get_backend
from kernelweave.foundation.array_types import Array, Floats, Ints

# Bytes of kernel values that are formed together for a product.
PRODUCT_BYTES = 2**23


def given(block: Block, piece: Any) -> Any:
    """Return what came with the question."""
    return piece


def widened(block: Block, piece: Array) -> Floats:
    """Return small counts that came with the question as numbers."""
    return piece.astype(np.float64)


def loaded(block: Block, load: Callable[[], Array]) -> Array:
    """Return the rows of a block from where they come from, in memory."""
    rows = load()
    return rows if rows.base is None else rows.copy()


def opened(block: Block, load: Callable[[], Array], width: int) -> Opened:
    """Return rows that are loaded when they are read."""
    return Opened(load, block.rows, width)


def full(block: Block, value: Any, dtype: Any) -> Array:
    """Return one value for every sample."""
    return np.full(block.rows, value, dtype=dtype)


def verb(block: Block, name: str, *args: Any) -> Any:
    """Return what a verb of this machine's backend makes of a block."""
    host: Any = get_backend()
    if args and isinstance(args[0], Promised):
        return TILED[name](host, *args)
    return getattr(host, name)(*args)


def field(block: Block, thing: Any, name: str) -> Any:
    """Return one field of what an earlier step returned."""
    return getattr(thing, name)


def as_labels(block: Block, labels: Array) -> Ints:
    """Return labels as indices."""
    return labels.astype(np.intp)


def small(block: Block, values: Array) -> Array:
    """Return values as they travel: whole numbers in the fewest bytes."""
    if values.dtype.kind not in "iu" or values.size == 0:
        return values
    return values.astype(np.promote_types(np.min_scalar_type(values.min()), np.min_scalar_type(values.max())))


def first(block: Block, condition: Array) -> int:
    """Return the number of the first sample for which the condition holds, -1 where there is none."""
    place = get_backend().first(condition)
    return place + block.start if place >= 0 else -1


def picked(block: Block, values: Array, places: Ints) -> Array:
    """Return the values of some samples of the block."""
    return values.rows(places) if isinstance(values, Promised) else np.asarray(values[places])


def located(block: Block, mass: Floats, before: float, goals: Floats) -> Ints:
    """Return the samples at which the mass cumulated from ``before`` on passes each goal."""
    drawn = np.searchsorted(before + np.cumsum(mass), goals, side="right")
    return np.minimum(drawn, len(mass) - 1) + block.start


def without(block: Block, mass: Floats, places: Ints) -> Floats:
    """Return the mass without that of some samples."""
    mass = mass.copy()
    mass[places] = 0.0
    return mass


def changed(block: Block, old: Ints, new: Ints) -> Moves:
    """Return where labels differ; samples are counted within the block."""
    return get_backend().moves(old, new)


def carried(block: Block, samples: Ints, old: Ints, new: Ints, values: Array, n_clusters: int) -> Floats:
    """Return what each cluster wins less what it loses."""
    return get_backend().moved_sums(Moves(len(samples), samples, old, new, None), values, n_clusters)


def carried_features(
    block: Block, Phi: Array, samples: Ints, old: Ints, new: Ints, weights: Floats, n_clusters: int
) -> Floats:
    """Return by how much the sums of rows change."""
    rows = picked(block, Phi, samples)
    moves = Moves(len(samples), np.arange(len(samples)), old, new, None)
    return get_backend().moved_features(rows, moves, weights[samples], n_clusters)


def ranked(block: Block, samples: Ints, gains: Floats) -> Floats:
    """Return the gains of the moved samples, rounded."""
    return np.round(gains[samples], GAIN_DIGITS)


def partly_moved(block: Block, old: Ints, samples: Ints, new: Ints, chosen: Ints) -> Ints:
    """Return the old labels with the chosen moves made."""
    labels = old.copy()
    labels[samples[chosen]] = new[chosen]
    return labels


def replaced(block: Block, labels: Ints, places: Ints, new: Ints) -> Ints:
    """Return the labels with those of some samples replaced."""
    labels = labels.copy()
    labels[places] = new
    return labels


def farthest(block: Block, labels: Ints, distances: Floats, weights: Floats, unit: float, count: int) -> Any:
    """Return the farthest samples of the block, by their numbers among all."""
    samples, far, clusters = get_backend().farthest(Assignment(labels, distances, 0.0), weights, unit, count)
    return samples + block.start, far, clusters


def digest(block: Block, labels: Array) -> bytes:
    """Return a digest of the block's labels."""
    return hashlib.blake2b(np.ascontiguousarray(labels).tobytes(), digest_size=16).digest()


def brought(block: Block) -> Array:
    """Stand for rows that a place gets from elsewhere before it is asked for anything."""
    raise RuntimeError(f"The rows of block {block.index} were not brought.")


def column_sums(block: Block, X: Array) -> Floats:
    """Return the sum of every column."""
    if isinstance(X, Promised):
        return verb(block, "column_sums", X)
    return np.asarray(X).sum(axis=0, dtype=np.float64)


def weighted_entries(block: Block, X: Array, weights: Floats, centre: float, power: int) -> float:
    """Return the sum of all (entry - centre)^power, each with its sample's weight."""
    return float(weights @ ((np.asarray(X, dtype=np.float64) - centre) ** power).sum(axis=1))


def faults(block: Block, X: Array) -> tuple[int, int, bool]:
    """Return row and column of the first value that is not finite and whether it is NaN; (-1, -1, False) if all are."""
    X = np.asarray(X)
    with np.errstate(invalid="ignore", over="ignore"):
        if np.isfinite(X.sum(dtype=np.float64)):
            return -1, -1, False
    bad = np.argwhere(~np.isfinite(X))
    if len(bad) == 0:
        return -1, -1, False
    row, column = bad[0]
    return int(row) + block.start, int(column), bool(np.isnan(X[row, column]))


def mapped(block: Block, X: Array, transform: Callable[[Array], Array], width: int) -> Floats:
    """Return features of the samples of a block, as float64."""
    return Promised(((X, transform, width),)).rows(slice(None))


def promised(block: Block, X: Array, transform: Callable[[Array], Array], width: int) -> Promised:
    """Return features that are computed whenever they are read."""
    return Promised(((X, transform, width),))


def tile_sums(
    block: Block,
    sums: Floats | None,
    X: Array,
    tile: Callable[[Array, Array], Array],
    sources: Array,
    labels: Ints,
    weights: Floats,
    n_clusters: int,
) -> Floats:
    """Return the cluster sums of a block's samples with those of some sources added."""
    host = get_backend()

    def part(chosen: Any, rows: Any) -> Array:
        return tile(sources[chosen], X[rows])

    added = host.tiled_cluster_sums(part, (block.rows, len(sources)), labels.astype(np.intp), weights, n_clusters)
    return added if sums is None else sums + added


def tile_products(
    block: Block,
    products: Floats | None,
    X: Array,
    tile: Callable[[Array, Array], Array],
    sources: Array,
    H: Floats,
) -> Floats:
    """Return the products of a block's rows of a kernel and a thin matrix, with those of some sources added."""
    added = np.empty((block.rows, H.shape[1]))
    step = max(1, PRODUCT_BYTES // (8 * len(sources)))
    for lo in range(0, block.rows, step):
        added[lo : lo + step] = tile(sources, X[lo : lo + step]).T @ H
    return added if products is None else products + added


def tile_moves(
    block: Block,
    sums: Floats,
    X: Array,
    tile: Callable[[Array, Array], Array],
    sources: Array,
    old: Ints,
    new: Ints,
    weights: Floats,
) -> Floats:
    """Return the cluster sums of a block's samples after some sources moved."""
    sums = sums.copy()

    def part(chosen: Any, rows: Any) -> Array:
        return tile(sources[chosen], X[rows])

    moves = Moves(len(sources), np.arange(len(sources)), old.astype(np.intp), new.astype(np.intp), None)
    get_backend().tiled_move_sums(sums, part, moves, weights)
    return sums


def within(block: Block, sums: Floats, labels: Ints, weights: Floats) -> Floats:
    """Return for each cluster the weighted sum over its members in the block of their sum with the cluster."""
    return get_backend().within_sums(sums, labels, weights)


def added_to(block: Block, sums: Floats, clusters: Ints, values: Floats) -> Floats:
    """Return sums with values added to those of some clusters."""
    sums = sums.copy()
    sums[clusters] += values
    return sums


def weighted(block: Block, coefficients: Floats, *arrays: Array) -> Array:
    """Return the weighted sum of arrays."""
    total = coefficients[0] * arrays[0]
    for coefficient, array in zip(coefficients[1:], arrays[1:], strict=True):
        total += coefficient * array
    return total


def inner(block: Block, rows: Floats, others: Floats) -> Floats:
    """Return the products of columns, over the rows of a block."""
    return get_backend().inner([rows], [others])


def combined(block: Block, rows: Floats, matrix: Floats) -> Any:
    """Return the rows of a thin block times a small matrix."""
    return get_backend().combine([rows], matrix)


def side_by_side(block: Block, *arrays: Any) -> Any:
    """Return arrays joined along their columns; promised ones stay promised."""
    if not any(isinstance(array, Promised) for array in arrays):
        return np.hstack(arrays)
    parts = [array.parts if isinstance(array, Promised) else _kept_part(array) for array in arrays]
    return Promised(tuple(part for each in parts for part in each))


def computed(block: Block, Phi: Any) -> Array:
    """Return features as an array, computed now where they were promised."""
    return Phi.rows(slice(None)) if isinstance(Phi, Promised) else Phi


def _kept_part(array: Array) -> Any:
    """Return features that are kept as a part of promised ones."""
    return ((array, np.asarray, array.shape[1]),)


def directions(block: Block, width: int) -> Floats:
    """Return random directions of a block, always the same."""
    return np.random.default_rng([0, block.start]).standard_normal((block.rows, width))


def triangle(block: Block, values: Floats) -> Floats:
    """Return R of the block's decomposition into Q and R."""
    R: Floats = np.linalg.qr(values, mode="r")  # type: ignore[assignment]
    return R


def rotated(block: Block, values: Floats, small_q: Floats) -> Floats:
    """Return Q of the block's decomposition times a small matrix."""
    return np.linalg.qr(values)[0] @ small_q


def diagonal(block: Block, K: Array) -> Floats:
    """Return the diagonal entries of some rows of a matrix."""
    rows = np.arange(block.rows)
    return np.asarray(K[rows, rows + block.start], dtype=np.float64)


def numbered(block: Block, samples: Ints) -> Ints:
    """Return samples of the block by their numbers among all."""
    return samples + block.start


def chosen_columns(block: Block, K: Array, samples: Ints) -> Array:
    """Return some columns."""
    return K[:, samples]


def row_sums(block: Block, K: Array, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
    """Return the cluster sums of some rows of a matrix."""
    members = np.zeros((len(labels), n_clusters))
    members[np.arange(len(labels)), labels] = weights
    return np.ascontiguousarray(get_backend().product(K, members).T)


def moved_row_sums(
    block: Block, sums: Floats, K: Array, samples: Ints, old: Ints, new: Ints, weights: Floats
) -> Floats:
    """Return the cluster sums of some rows after samples moved."""
    places = np.arange(len(samples))
    signed = np.zeros((len(samples), len(sums)))
    signed[places, new] += weights
    signed[places, old] -= weights
    return sums + get_backend().product(K[:, samples], signed).T


def row_gains(block: Block, K: Array, diag: Floats, distances: Floats, weights: Floats) -> Floats:
    """Return the gains of the samples of a block as new centres."""
    return get_backend().candidate_gains_of_rows(K, block.start, diag, distances, weights)
