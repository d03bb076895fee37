"""The verbs of the protocol on arrays in blocks.

A verb that returns an array writes down what it is; a verb that returns numbers to the host has everything computed
that was written down and is still in use, in one round to all places, and adds up what the blocks return along a fixed
tree. Results depend on the blocks, which follow the data, and neither on where they lie nor on how many places there
are. What travels in a round are numbers of clusters, views and features, never of samples, but for moved labels,
labels that start a run and those that end it.
"""

import hashlib
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg import qr

from kernelweave.backends.blocks import work
from kernelweave.backends.blocks.array import BlockArray, Hold, applied
from kernelweave.backends.blocks.merging import Merge
from kernelweave.backends.blocks.nodes import Node, PerBlock
from kernelweave.backends.blocks.places import Places
from kernelweave.backends.host import GAIN_DIGITS, NOTHING_ADDED
from kernelweave.backends.protocol import Assignment, Moves
from kernelweave.foundation.array_types import Array, Floats, Ints

# Rows of sources that travel to all blocks together, where every pair of samples meets.
SOURCE_ROWS = 8192


class BlocksBackend:
    """Arrays in blocks of rows at some places. See the protocol for what the verbs mean."""

    name = "blocks"
    #: Rounds of two runs would wait for each other.
    one_run_at_a_time = True
    direct_limit = 0
    run_candidates = None
    gaussian_sums = None
    steps = None
    graph_moves = None
    margin_dual = None

    def __init__(self, places: Places, *, several: bool = False) -> None:
        self.places = places
        self.several = several  # whether samples have several views
        self.sizes = [block.rows for block in places.blocks]
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)
        self._count = itertools.count()
        self._pending: dict[int, Node] = {}
        self._held: set[int] = set()
        self._dropped: list[int] = []

    @property
    def n_samples(self) -> int:
        """Number of samples in all blocks."""
        return int(self.starts[-1])

    # Writing down and computing

    def held(self, node: Node) -> Hold:
        """Return what keeps the value of a node as long as it is held itself."""
        self._held.add(node.number)
        self._pending[node.number] = node
        return Hold(node, self._let_go)

    def _let_go(self, number: int) -> None:
        self._held.discard(number)
        self._pending.pop(number, None)
        self._dropped.append(number)

    def written(self, function: Callable[..., Any], *args: Any, kept: bool = True) -> Node:
        """Return a node; arrays among the arguments stand for their blocks."""
        nodes = tuple(arg.node if isinstance(arg, BlockArray) else arg for arg in args)
        return Node(next(self._count), function, nodes, kept)

    def made(
        self, function: Callable[..., Any], *args: Any, shape: tuple[int, ...], axis: int = 0, kept: bool = True
    ) -> BlockArray:
        """Return an array that is a function of blocks."""
        return BlockArray(self, self.written(function, *args, kept=kept), shape, axis)

    def asked(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return what a function makes of every block."""
        return self._values([self.written(function, *args)])[0]

    def _values(self, wanted: Sequence[Node]) -> list[list[Any]]:
        """Return the values of nodes, block by block."""
        values = self.places.evaluate(wanted, *self._state())
        self._pending.clear()
        return values

    def _merged(self, wanted: Sequence[Node], merge: Merge) -> list[Any]:
        """Return the values of nodes, those of all blocks merged where they lie."""
        values = self.places.evaluate_merged(wanted, *self._state(), merge)
        self._pending.clear()
        return values

    def _state(self) -> tuple[list[Node], set[int], list[int]]:
        """Return what is to be computed and kept, what is in use, and what may go."""
        pending = [node for node in self._pending.values() if node.kept]
        dropped = self._dropped
        self._dropped = []
        return pending, set(self._held), dropped

    def summed(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return what a function makes of the blocks, added up along the tree."""
        return self._merged([self.written(function, *args)], operator.add)[0]

    def each(self, pieces: Sequence[Any]) -> PerBlock:
        """Return an argument that differs from block to block."""
        return PerBlock(pieces)

    def _divided(self, values: Array) -> PerBlock:
        """Return values of the host, one for every sample, block by block."""
        return PerBlock([values[lo:hi] for lo, hi in itertools.pairwise(self.starts)])

    def _by_block(self, samples: Ints, *values: Array) -> list[PerBlock]:
        """Return the places of some samples in every block, and values that go with them."""
        owners = np.searchsorted(self.starts, samples, side="right") - 1
        chosen = [np.flatnonzero(owners == b) for b in range(len(self.sizes))]
        places = [samples[where] - self.starts[b] for b, where in enumerate(chosen)]
        return [PerBlock(places), *(PerBlock([value[where] for where in chosen]) for value in values)]

    def close(self) -> None:
        """Give back what is kept at the places."""
        self.places.close()

    # Arrays

    def array(self, values: Any, dtype: Any = np.float64) -> BlockArray:
        """Return values of the host in blocks; equal ones do not travel, and small counts in one byte each."""
        if isinstance(values, BlockArray):
            return values
        values = np.asarray(values, dtype=dtype)
        if values.ndim == 1 and len(values) and values.min() == values.max():
            return self.made(work.full, values[0], dtype, shape=values.shape, kept=False)
        if values.dtype == np.float64 and values.ndim == 1 and len(values) and _small_counts(values):
            return self.made(work.widened, self._divided(values.astype(np.uint8)), shape=values.shape)
        array = self.made(work.given, self._divided(values), shape=values.shape)
        array.dtype = values.dtype
        return array

    def labels(self, values: Any) -> BlockArray:
        """Return labels in blocks; they travel in the fewest bytes."""
        if not isinstance(values, BlockArray):
            values = np.asarray(values)
            compact = values.astype(np.min_scalar_type(int(values.max(initial=0))))
            values = self.array(compact, compact.dtype)
        return self.made(work.as_labels, values, shape=values.shape)

    def host(self, values: BlockArray) -> Any:
        """Return an array as NumPy."""
        parts = self.asked(work.small, values)
        whole = np.concatenate(parts, axis=values.axis)
        return whole.astype(np.intp) if whole.dtype.kind in "iu" else whole

    def ones(self, n: int) -> BlockArray:
        """Return n ones."""
        return self.made(work.full, 1.0, np.float64, shape=(n,), kept=False)

    def where(self, condition: BlockArray, values: Any, others: Any) -> BlockArray:
        """Return values by a condition."""
        return self.made(applied, np.where, condition, values, others, shape=condition.shape)

    def minimum(self, values: BlockArray, others: Any) -> BlockArray:
        """Return the smaller of two; of two arrays that are available it is not kept."""
        return values._binary(others, np.minimum, kept=not isinstance(others, BlockArray))

    def maximum(self, values: BlockArray, others: Any) -> BlockArray:
        """Return the larger of two."""
        return values._binary(others, np.maximum)

    # Numbers of all samples

    def total(self, values: BlockArray) -> float:
        """Return the sum."""
        return float(self.summed(work.verb, "total", values))

    def dot(self, vector: BlockArray, values: BlockArray) -> Any:
        """Return the weighted sum of rows."""
        return self.summed(work.verb, "dot", vector, values)

    def extremes(self, values: BlockArray) -> tuple[float, float]:
        """Return the smallest and the largest value."""
        pairs = self.asked(work.verb, "extremes", values)
        return min(low for low, _ in pairs), max(high for _, high in pairs)

    def first(self, condition: BlockArray) -> int:
        """Return the first sample for which the condition holds."""
        return next((place for place in self.asked(work.first, condition) if place >= 0), -1)

    def at(self, values: BlockArray, samples: Ints) -> Array:
        """Return the values of a few samples."""
        samples = np.asarray(samples, dtype=np.intp)
        order = np.arange(len(samples))
        places, origin = self._by_block(samples, order)
        parts = self.asked(work.picked, values, places)
        found = np.concatenate([part for part in parts if len(part)] or parts[:1])
        back = np.empty_like(found)
        back[np.concatenate(origin.pieces)] = found
        return back

    def draw(self, mass: BlockArray, uniforms: Floats) -> Ints:
        """Return samples by their cumulated mass."""
        totals = np.array(self.asked(work.verb, "total", mass))
        ends = np.cumsum(totals)
        goals = uniforms * ends[-1]
        filled = np.flatnonzero(totals > 0)
        owners = filled[np.minimum(np.searchsorted(ends[filled], goals, side="right"), len(filled) - 1)]
        order = [np.flatnonzero(owners == b) for b in range(len(totals))]
        before = PerBlock((ends - totals).tolist())
        parts = self.asked(work.located, mass, before, PerBlock([goals[where] for where in order]))
        drawn = np.empty(len(goals), dtype=np.intp)
        for where, part in zip(order, parts, strict=True):
            drawn[where] = part
        return drawn

    def draw_distinct(self, mass: BlockArray, count: int, rng: np.random.Generator) -> Ints:
        """Return different samples by their mass, as NumPy's generator draws them."""
        chosen = np.empty(0, dtype=np.intp)
        left = mass
        while len(chosen) < count:
            drawn = self.draw(left, rng.random(count - len(chosen)))
            chosen = np.array(list(dict.fromkeys([*chosen.tolist(), *drawn.tolist()])), dtype=np.intp)
            (places,) = self._by_block(chosen)
            left = self.made(work.without, mass, places, shape=mass.shape)
        return chosen

    # Labels

    def segment_sums(self, labels: BlockArray, values: BlockArray, n_clusters: int) -> Floats:
        """Return sums by cluster."""
        return self.summed(work.verb, "segment_sums", labels, values, n_clusters)

    def moves(self, old: BlockArray, new: BlockArray) -> Moves:
        """Return where labels differ."""
        node = self.written(work.changed, old, new)
        names = ("samples", "old", "new")
        samples, before, after = (BlockArray(self, self.written(work.field, node, name), (-1,)) for name in names)
        (count,) = self._merged([self.written(work.field, node, "count")], operator.add)
        return Moves(count, samples, before, after, new)

    def moved_sums(self, moves: Moves, values: BlockArray, n_clusters: int) -> Floats:
        """Return what clusters win less what they lose."""
        return self.summed(work.carried, moves.samples, moves.old, moves.new, values, n_clusters)

    def moved_sums_of(self, moves: Moves, several: list[BlockArray], n_clusters: int) -> list[Floats]:
        """Return the same for several values, in one round."""
        arrays = (moves.samples, moves.old, moves.new)
        nodes = [self.written(work.carried, *arrays, values, n_clusters) for values in several]
        return self._merged(nodes, operator.add)

    def best_moves(self, old: BlockArray, moves: Moves, gains: BlockArray, count: int) -> BlockArray:
        """Return labels after the most useful moves."""
        parts = self.asked(work.ranked, moves.samples, gains)
        chosen = np.sort(np.argsort(np.concatenate(parts), kind="stable")[:count])
        starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        pieces = [chosen[(chosen >= lo) & (chosen < hi)] - lo for lo, hi in itertools.pairwise(starts)]
        return self.made(work.partly_moved, old, moves.samples, moves.new, PerBlock(pieces), shape=old.shape)

    def relabel(self, labels: BlockArray, target: Ints) -> BlockArray:
        """Return target[labels]."""
        return self.made(work.verb, "relabel", labels, target, shape=labels.shape)

    def replace(self, labels: BlockArray, samples: Ints, new: Ints) -> BlockArray:
        """Return labels with a few replaced."""
        places, values = self._by_block(np.asarray(samples, dtype=np.intp), np.asarray(new))
        return self.made(work.replaced, labels, places, values, shape=labels.shape)

    def farthest(
        self, assignment: Assignment, weights: BlockArray, unit: float, count: int
    ) -> tuple[Ints, Floats, Ints]:
        """Return the farthest samples that count."""
        parts = self.asked(work.farthest, assignment.labels, assignment.distances, weights, unit, count)
        samples, distances, clusters = (np.concatenate(column) for column in zip(*parts, strict=True))
        rounded = np.round(distances / unit, GAIN_DIGITS) if unit > 0 else distances
        order = np.argsort(-rounded, kind="stable")[:count]
        return samples[order], distances[order], clusters[order]

    def first_nearest(self, distances: BlockArray, tolerance: float) -> BlockArray:
        """Return the first of the least columns."""
        return self.made(work.verb, "first_nearest", distances, tolerance, shape=distances.shape[:1])

    def compact(self, labels: BlockArray, n_clusters: int) -> BlockArray:
        """Return labels in small indices."""
        return self.made(work.verb, "compact", labels, n_clusters, shape=labels.shape)

    def fingerprint(self, labels: BlockArray) -> bytes:
        """Return a digest of the digests of all blocks."""
        return hashlib.blake2b(b"".join(self.asked(work.digest, labels)), digest_size=16).digest()

    # Stored kernels, in blocks of their rows

    def diagonal(self, K: BlockArray) -> BlockArray:
        """Return the diagonal."""
        return self.made(work.diagonal, K, shape=K.shape[:1])

    def largest_entry(self, K: BlockArray) -> float:
        """Return the largest absolute value."""
        return self._merged([self.written(work.verb, "largest_entry", K)], max)[0]

    def block(self, K: BlockArray, rows: Ints, cols: Ints) -> Array:
        """Return a dense block as NumPy."""
        return self.at(K, rows)[:, cols]

    def columns(self, K: BlockArray, samples: Ints) -> BlockArray:
        """Return some columns."""
        return self.made(work.chosen_columns, K, samples, shape=(K.shape[0], len(samples)))

    def product(self, K: BlockArray, H: BlockArray) -> BlockArray:
        """Return K @ H; H travels to all places."""
        whole = self.host(self.array(H))
        return self.made(work.verb, "product", K, whole, shape=(K.shape[0], whole.shape[1]))

    def cluster_sums(self, K: BlockArray, labels: BlockArray, weights: BlockArray, n_clusters: int) -> BlockArray:
        """Return the cluster sums; labels and weights travel to all places."""
        everyone = (self.host(labels), self.host(weights), n_clusters)
        return self.made(work.row_sums, K, *everyone, shape=(n_clusters, K.shape[0]), axis=1)

    def move_sums(self, sums: BlockArray, K: BlockArray, moves: Moves, weights: BlockArray) -> None:
        """Update cluster sums; the moves travel to all places."""
        nodes = [
            self.written(work.numbered, moves.samples),
            self.written(applied, np.asarray, moves.old),
            self.written(applied, np.asarray, moves.new),
            self.written(work.picked, weights, moves.samples),
        ]
        parts = [np.concatenate(part) for part in self._values(nodes)]
        sums.become(self.written(work.moved_row_sums, sums, K, *parts))

    def candidate_gains(
        self, K: BlockArray, diag: BlockArray, distances: BlockArray, weights: BlockArray
    ) -> BlockArray:
        """Return the gain every sample is sure of as a new centre."""
        everyone = (self.host(diag), self.host(distances), self.host(weights))
        return self.made(work.row_gains, K, *everyone, shape=K.shape[:1])

    # Kernels of all pairs, computed tile by tile

    def pair_sums(
        self, tile: Callable[[Array, Array], Array], X: BlockArray, labels: BlockArray, weights: BlockArray, k: int
    ) -> BlockArray:
        """Return the cluster sums; all samples travel to all places, some rows at a time."""
        sums: Any = None
        for lo in range(0, self.n_samples, SOURCE_ROWS):
            samples = np.arange(lo, min(lo + SOURCE_ROWS, self.n_samples))
            sources = (self.at(X, samples), self.at(labels, samples), self.at(weights, samples))
            sums = self.made(work.tile_sums, sums, X, tile, *sources, k, shape=(k, self.n_samples), axis=1)
            self._values([])  # now, so that no more than these rows travel at a time
        return sums

    def pair_products(self, tile: Callable[[Array, Array], Array], X: BlockArray, H: BlockArray) -> BlockArray:
        """Return the kernel of all pairs times a thin matrix; all samples travel as for the cluster sums."""
        products: Any = None
        for lo in range(0, self.n_samples, SOURCE_ROWS):
            samples = np.arange(lo, min(lo + SOURCE_ROWS, self.n_samples))
            sources = (self.at(X, samples), self.at(H, samples))
            products = self.made(work.tile_products, products, X, tile, *sources, shape=H.shape)
            self._values([])
        return products

    def pair_moves(
        self,
        sums: BlockArray,
        tile: Callable[[Array, Array], Array],
        X: BlockArray,
        moves: Moves,
        weights: BlockArray,
    ) -> None:
        """Update cluster sums in place; the rows of moved samples travel to all places."""
        nodes = [
            self.written(work.picked, X, moves.samples),
            self.written(applied, np.asarray, moves.old),
            self.written(applied, np.asarray, moves.new),
            self.written(work.picked, weights, moves.samples),
        ]
        parts = [np.concatenate(part) for part in self._values(nodes)]
        sums.become(self.written(work.tile_moves, sums, X, tile, *parts))

    # Cluster sums

    def within_sums(self, sums: BlockArray, labels: BlockArray, weights: BlockArray) -> Floats:
        """Return the kernel summed over the pairs inside each cluster."""
        return self.summed(work.within, sums, labels, weights)

    def cluster_products(self, sums: BlockArray, labels: BlockArray, weights: BlockArray) -> Floats:
        """Return the kernel summed over the pairs of two clusters."""
        return self.summed(work.verb, "cluster_products", sums, labels, weights)

    def _assignment(self, node: Node, shape: tuple[int, ...]) -> Assignment:
        """Return an assignment of which the places keep labels and distances."""
        labels, distances = (
            BlockArray(self, self.written(work.field, node, name), shape) for name in ("labels", "distances")
        )
        (lead,) = self._merged([self.written(work.field, node, "lead")], min)
        return Assignment(labels, distances, lead)

    def nearest(
        self,
        sums: BlockArray,
        totals: Floats,
        norms: Floats,
        labels: BlockArray,
        tolerance: float,
        diag: BlockArray,
        coefs: Floats | None = None,
    ) -> Assignment:
        """Return the nearest cluster of every sample."""
        node = self.written(work.verb, "nearest", sums, totals, norms, labels, tolerance, diag, coefs)
        return self._assignment(node, labels.shape)

    def distances_to_clusters(
        self, sums: BlockArray, totals: Floats, norms: Floats, labels: BlockArray, diag: BlockArray
    ) -> BlockArray:
        """Return the squared distance to the centre of the own cluster."""
        return self.made(work.verb, "distances_to_clusters", sums, totals, norms, labels, diag, shape=labels.shape)

    def add_to_clusters(self, sums: BlockArray, clusters: Ints, values: BlockArray) -> None:
        """Add to the sums of some clusters."""
        sums.become(self.written(work.added_to, sums, clusters, values))

    def stack(self, arrays: list[BlockArray]) -> list[BlockArray]:
        """Return the arrays as a list."""
        return list(arrays)

    def weighted_sum(self, coefficients: Floats, stack: list[BlockArray]) -> BlockArray:
        """Return the weighted sum."""
        first = stack[0]
        return self.made(work.weighted, np.asarray(coefficients), *stack, shape=first.shape, axis=first.axis)

    # Features

    def squared_lengths(self, Phi: BlockArray) -> BlockArray:
        """Return the squared length of every row."""
        return self.made(work.verb, "squared_lengths", Phi, shape=Phi.shape[:1])

    def feature_products(self, Phi: BlockArray, H: BlockArray) -> Floats:
        """Return Phi^T H."""
        return self.summed(work.verb, "feature_products", Phi, self.array(H))

    def spread(self, Phi: BlockArray, vectors: Floats) -> BlockArray:
        """Return Phi @ vectors."""
        return self.made(work.verb, "spread", Phi, vectors, shape=(Phi.shape[0], *vectors.shape[1:]))

    def spread_rows(self, Phi: BlockArray, vectors: Floats) -> BlockArray:
        """Return vectors @ Phi^T."""
        return self.made(work.verb, "spread_rows", Phi, vectors, shape=(len(vectors), Phi.shape[0]), axis=1)

    def feature_sums(self, Phi: BlockArray, labels: BlockArray, weights: BlockArray, n_clusters: int) -> Floats:
        """Return the sums of rows by cluster."""
        return self.summed(work.verb, "feature_sums", Phi, labels, weights, n_clusters)

    def moved_features(self, Phi: BlockArray, moves: Moves, weights: BlockArray, n_clusters: int) -> Floats:
        """Return by how much the sums of rows change."""
        return self.summed(work.carried_features, Phi, moves.samples, moves.old, moves.new, weights, n_clusters)

    def nearest_means(
        self,
        Phi: BlockArray,
        means: Floats,
        norms: Floats,
        labels: BlockArray,
        tolerance: float,
        diag: BlockArray,
        coefs: Floats,
    ) -> Assignment:
        """Return the nearest mean of every row."""
        node = self.written(work.verb, "nearest_means", Phi, means, norms, labels, tolerance, diag, coefs)
        return self._assignment(node, labels.shape)

    def distances_to_means(
        self, Phi: BlockArray, means: Floats, norms: Floats, labels: BlockArray, diag: BlockArray
    ) -> BlockArray:
        """Return the squared distance to the mean of the own cluster."""
        return self.made(work.verb, "distances_to_means", Phi, means, norms, labels, diag, shape=labels.shape)

    def gram(self, Phi: BlockArray, weights: BlockArray) -> Floats:
        """Return Phi^T W Phi."""
        return self.summed(work.verb, "gram", Phi, weights)

    # Thin blocks

    def start_block(self, n: int, width: int) -> BlockArray:
        """Return random directions, always the same for the same blocks."""
        return self._orthonormal_columns(self.made(work.directions, width, shape=(n, width)))[0]

    def inner(self, blocks: list[BlockArray], others: list[BlockArray]) -> Floats:
        """Return B^T C, where B has the first blocks side by side and C the others."""
        return self.summed(work.inner, self._joined(blocks), self._joined(others))

    def combine(self, blocks: list[BlockArray], matrix: Floats) -> BlockArray:
        """Return B @ matrix, where B has the blocks side by side."""
        block = self._joined(blocks)
        return self.made(work.combined, block, matrix, shape=(block.shape[0], matrix.shape[1]))

    def together(self, blocks: list[BlockArray]) -> list[BlockArray]:
        """Return one block that joins them."""
        return [self._joined(blocks)]

    def _joined(self, blocks: list[BlockArray]) -> BlockArray:
        return blocks[0] if len(blocks) == 1 else self.join(blocks)

    def column_norms(self, block: BlockArray) -> Floats:
        """Return the length of every column."""
        return np.sqrt(self.summed(applied, _squared_columns, block))

    def join(self, blocks: list[BlockArray]) -> BlockArray:
        """Return blocks side by side, kept where there is room for them and computing them is not cheap."""
        n = blocks[0].shape[0]
        width = sum(block.shape[1] for block in blocks)
        cheap = all(block.cheap for block in blocks)
        kept = not cheap and self.places.has_room_for(8 * n * width)
        joined = self.made(work.side_by_side, *blocks, shape=(n, width), kept=False)
        return self.made(work.computed, joined, shape=(n, width)) if kept else joined

    def orthonormal(self, block: Any, basis: list[BlockArray]) -> BlockArray:
        """Return what a block adds to a basis."""
        basis = [self._joined(basis)]
        size = self.column_norms(block).max(initial=0.0)
        for _ in range(2):
            block = block - self.combine(basis, self.inner(basis, [block]))
        Q: Any
        Q, R = self._orthonormal_columns(block)
        keep = np.abs(np.diagonal(R)) > NOTHING_ADDED * size
        if keep.all():
            return Q
        Q = self.combine([Q], np.eye(len(keep))[:, keep])
        if not keep.any():
            return Q
        return self._orthonormal_columns(Q - self.combine(basis, self.inner(basis, [Q])))[0]

    def _orthonormal_columns(self, block: BlockArray) -> tuple[BlockArray, Floats]:
        """Return Q and R: a decomposition of every block, then one of their small factors."""
        triangles = self.asked(work.triangle, block)
        small, R, _ = qr(np.vstack(triangles), mode="economic", pivoting=True)
        ends = np.cumsum([0, *map(len, triangles)])
        pieces = PerBlock([small[lo:hi] for lo, hi in itertools.pairwise(ends)])
        return self.made(work.rotated, block, pieces, shape=(block.shape[0], small.shape[1])), R


def _small_counts(values: Floats) -> bool:
    """Whether all values are whole numbers below 256, as weights often are."""
    if not (values.min() >= 0.0 and values.max() <= 255.0):
        return False
    return bool(np.array_equal(values, np.floor(values)))


def _squared_columns(values: Floats) -> Floats:
    return np.square(values).sum(axis=0)
