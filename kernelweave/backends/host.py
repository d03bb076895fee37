"""Backends on this machine: arrays are NumPy's (features may be sparse), loops are compiled or plain.

Both share everything but the loops over rows: ``"numba"`` runs compiled ones on ranges of rows over threads,
``"numpy"`` runs their plain twins. Ranges are chosen so that results do not depend on the number of threads.
"""

import hashlib
from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import qr

from kernelweave.backends.numpy_loops import PART
from kernelweave.backends.preparing import cluster_pieces, order_of, order_of_ways, read_only, slopes_of, writable
from kernelweave.backends.protocol import Assignment, CandidateRuns, Moves, Steps, Tile
from kernelweave.backends.tiling import MOST_COLUMNS, PIECES, READ_MEANWHILE, ROWS, WIDEST, Tiling
from kernelweave.foundation.array_types import Array, Bools, Floats, Index, Ints, Matrix
from kernelweave.foundation.threads import SMALL_PRODUCT, for_ranges, share_pieces, single_threaded_blas, worthwhile

# Rows of a stored kernel multiplied together, and entries from which on BLAS could use threads of its own.
PRODUCT_ROWS = 512
LARGE_PRODUCT = 2**16
# A tile where nothing limits memory.
TILE_ROWS = ROWS
TILE_COLS = MOST_COLUMNS
# Rows of features multiplied together: the products stay in the second-level cache. Ranges of threads end at multiples
# of it, so that every product has the same shape whatever the number of threads.
FEATURE_TILE = 256
# Rows of features added up by themselves; the sums are added in their order.
SUMMED_ROWS = 16384
# The same of thin blocks, where a row takes longer: so many ranges that many threads end together.
THIN_ROWS = 4096
# Columns of such rows that are weighted together: no copy of all features.
GRAM_COLUMNS = 64
# Rows of several thin blocks laid side by side: they stay in the second-level cache.
JOINED_ROWS = 1024
# Samples whose distances are held at a time where they are assigned one after the other.
SEQUENTIAL_ROWS = 4096
# Candidates whose gains are computed together: the plain loops add up by products, which depend on their shape.
GAIN_ROWS = 256
# Rows looked at together for asymmetry.
MIRRORED_ROWS = 128
# Rows of a sum of kernels that are made together: they stay near the caches. They are at most this share of the sum,
# beside which they lie, unless they are of so few entries that it does not matter.
PAIR_ROWS = 256
PAIR_SHARE = 1 / 64
FEW_PAIRS = 2**15
# With fewer samples than this a kernel matrix is decomposed as a whole.
DIRECT_LIMIT = 1200
# Digits to which gains and distances are compared: equal ones then keep the order of the samples.
GAIN_DIGITS = 9
# A direction adds nothing to a basis where this share of its length is left outside of it.
NOTHING_ADDED = 1e-10


class HostBackend:
    """NumPy arrays, and loops over rows that are compiled or plain. See the protocol for what the verbs mean."""

    direct_limit = DIRECT_LIMIT
    one_run_at_a_time = False

    def __init__(self, name: str) -> None:
        if name not in ("numba", "numpy"):
            raise ValueError(f"There is no backend called {name!r}; use 'numba' or 'numpy'.")
        self.name = name

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return HostBackend, (self.name,)

    @cached_property
    def _loops(self) -> ModuleType:
        """The loops over rows, imported on first use: numba takes a second to load."""
        if self.name == "numpy":
            from kernelweave.backends import numpy_loops

            return numpy_loops
        from kernelweave.backends.compiled import row_loops

        return row_loops

    @property
    def run_candidates(self) -> Callable[..., CandidateRuns] | None:
        """Runs of kernel k-means from many candidates; compiled only."""
        if self.name == "numpy":
            return None
        from kernelweave.backends.compiled.candidate_search import run_candidates

        return run_candidates

    @property
    def steps(self) -> Callable[..., Steps] | None:
        """Steps on a stored kernel by threads that stay; compiled only."""
        if self.name == "numpy":
            return None
        from kernelweave.backends.compiled.step_team import StepTeam

        return StepTeam

    @property
    def graph_moves(self) -> ModuleType | None:
        """Growing and moving clusters of a graph; compiled only."""
        if self.name == "numpy":
            return None
        from kernelweave.backends.compiled import graph_search

        return graph_search

    @property
    def margin_dual(self) -> ModuleType | None:
        """Steps on the dual of a support vector machine; compiled only."""
        if self.name == "numpy":
            return None
        from kernelweave.backends.compiled import margin_dual

        return margin_dual

    @property
    def gaussian_sums(self) -> ModuleType | None:
        """Cluster sums of a Gaussian kernel that is not stored; compiled only."""
        if self.name == "numpy":
            return None
        from kernelweave.backends.compiled import gaussian_sums

        return gaussian_sums

    # Arrays

    def array(self, values: Any, dtype: Any = np.float64) -> Array:
        """Return the values as NumPy, without a copy where they are so already."""
        return np.asarray(values, dtype=dtype)

    def labels(self, values: Any) -> Ints:
        """Return a copy of labels."""
        return np.array(values, dtype=np.intp)

    def host(self, values: Array) -> Array:
        """Return the array itself."""
        return values

    def ones(self, n: int) -> Floats:
        """Return n ones."""
        return np.ones(n)

    def where(self, condition: Bools, values: Any, others: Any) -> Array:
        """Return values by a condition."""
        return np.where(condition, values, others)

    def minimum(self, values: Array, others: Any) -> Array:
        """Return the smaller of two."""
        return np.minimum(values, others)

    def maximum(self, values: Array, others: Any) -> Array:
        """Return the larger of two."""
        return np.maximum(values, others)

    # Numbers of all samples

    def total(self, values: Array) -> float:
        """Return the sum."""
        return float(values.sum())

    def dot(self, vector: Floats, values: Array) -> Any:
        """Return the weighted sum of rows."""
        product = vector @ values
        return float(product) if values.ndim == 1 else product

    def extremes(self, values: Array) -> tuple[float, float]:
        """Return the smallest and the largest value."""
        return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))

    def first(self, condition: Bools) -> int:
        """Return the first place where the condition holds."""
        place = int(np.argmax(condition)) if len(condition) else 0
        return place if len(condition) and condition[place] else -1

    def at(self, values: Matrix, samples: Ints) -> Array:
        """Return the values of a few samples."""
        chosen = values[samples]
        return chosen.toarray() if sp.issparse(chosen) else np.asarray(chosen)

    def take(self, values: Array, samples: Ints) -> Array:
        """Return the values of many samples."""
        return values[samples]

    def draw(self, mass: Floats, uniforms: Floats) -> Ints:
        """Return samples by their cumulated mass."""
        cumulative = np.cumsum(mass)
        drawn = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
        return np.minimum(drawn, len(mass) - 1)

    def draw_distinct(self, mass: Floats, count: int, rng: np.random.Generator) -> Ints:
        """Return different samples by their mass."""
        return rng.choice(len(mass), count, replace=False, p=mass / mass.sum())

    # Labels

    def segment_sums(self, labels: Ints, values: Array, n_clusters: int) -> Floats:
        """Return sums by cluster."""
        return np.asarray(np.bincount(labels, values, n_clusters), dtype=np.float64)

    def moves(self, old: Ints, new: Ints) -> Moves:
        """Return where labels differ."""
        samples = np.flatnonzero(new != old)
        return Moves(len(samples), samples, old[samples], new[samples], new)

    def moved_sums(self, moves: Moves, values: Array, n_clusters: int) -> Floats:
        """Return what clusters win less what they lose."""
        carried = values[moves.samples]
        return self.segment_sums(moves.new, carried, n_clusters) - self.segment_sums(moves.old, carried, n_clusters)

    def moved_sums_of(self, moves: Moves, several: list[Array], n_clusters: int) -> list[Floats]:
        """Return the same for several values."""
        return [self.moved_sums(moves, values, n_clusters) for values in several]

    def best_moves(self, old: Ints, moves: Moves, gains: Floats, count: int) -> Ints:
        """Return labels after the most useful moves."""
        rounded = np.round(gains[moves.samples], GAIN_DIGITS)
        chosen = np.argsort(rounded, kind="stable")[:count]
        labels = old.copy()
        labels[moves.samples[chosen]] = moves.new[chosen]
        return labels

    def relabel(self, labels: Ints, target: Array) -> Array:
        """Return target[labels]."""
        return target[labels]

    def replace(self, labels: Ints, samples: Ints, new: Ints) -> Ints:
        """Return labels with a few replaced."""
        labels = labels.copy()
        labels[samples] = new
        return labels

    def farthest(self, assignment: Assignment, weights: Floats, unit: float, count: int) -> tuple[Ints, Floats, Ints]:
        """Return the farthest samples that count."""
        distances = assignment.distances
        rounded = np.round(distances / unit, GAIN_DIGITS) if unit > 0 else distances
        order = np.argsort(-np.where(weights > 0, rounded, -np.inf), kind="stable")[:count]
        order = order[weights[order] > 0]
        return order, distances[order], assignment.labels[order]

    def first_nearest(self, distances: Floats, tolerance: float) -> Ints:
        """Return the first of the least columns."""
        return np.asarray(distances <= distances.min(axis=1, keepdims=True) + tolerance).argmax(axis=1)

    def compact(self, labels: Ints, n_clusters: int) -> Array:
        """Return labels in small indices."""
        return labels.astype(np.min_scalar_type(n_clusters))

    def fingerprint(self, labels: Array) -> bytes:
        """Return a digest of compact labels."""
        return hashlib.blake2b(labels.tobytes(), digest_size=16).digest()

    # Stored kernels

    def diagonal(self, K: Array) -> Floats:
        """Return the diagonal."""
        return np.diagonal(K).astype(np.float64)

    def largest_entry(self, K: Array) -> float:
        """Return the largest absolute value."""
        return float(max(K.max(), -K.min()))

    def asymmetry(self, K: Array) -> tuple[float, float, int, int]:
        """Return the largest difference from the transpose."""
        take = self._loops.asymmetry_pieces
        found = np.empty((-(-len(K) // MIRRORED_ROWS), 4))
        share_pieces(
            lambda tickets, width, waits: take(K, found, tickets, width, waits),
            len(K),
            elements=K.size,
            width=MIRRORED_ROWS,
        )
        gap, _, row, col = max(found.tolist(), key=lambda piece: (np.isinf(piece[1]), piece[0]))
        return gap, float(found[:, 1].max()), int(row), int(col)

    def block(self, K: Array, rows: Index, cols: Index) -> Array:
        """Return a copy of a block."""
        if isinstance(rows, slice) and isinstance(cols, slice):
            return np.array(K[rows, cols])
        return K[np.ix_(indices(rows, K.shape[0]), indices(cols, K.shape[1]))]

    def columns(self, K: Array, samples: Ints) -> Array:
        """Return some columns."""
        return self.block(K, slice(None), samples)

    def product(self, K: Array, H: Array) -> Floats:
        """Return K @ H; a float32 kernel is widened a few rows at a time.

        Ranges of fixed size, each by one thread, so that the last bit does not depend on the number of threads.
        """
        H = np.asarray(H, dtype=np.float64)
        out = np.empty((K.shape[0], H.shape[1]))

        def work(lo: int, hi: int) -> None:
            np.matmul(K[lo:hi].astype(np.float64, copy=False), H, out=out[lo:hi])

        with single_threaded_blas() if K.size >= LARGE_PRODUCT else nullcontext():
            for_ranges(work, K.shape[0], width=PRODUCT_ROWS, elements=K.size)
        return out

    def cluster_sums(self, K: Array, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the cluster sums in one pass over the matrix."""
        order = order_of(labels, n_clusters)
        groups = labels[order]
        ordered = weights[order]
        sums = np.zeros((n_clusters, K.shape[0]))
        take = self._loops.scatter_pieces
        given = read_only(K)
        pieces = cluster_pieces(groups, sums.shape[1], worthwhile(K.size))
        share_pieces(
            lambda tickets, width, waits: take(given, order, groups, ordered, sums, pieces, tickets, waits),
            len(pieces),
            elements=K.size,
            width=1,
        )
        return sums

    def move_sums(self, sums: Floats, K: Array, moves: Moves, weights: Floats) -> None:
        """Update cluster sums from the rows of the moved samples."""
        take = self._loops.move_pieces
        given = read_only(K)
        order = order_of_ways(moves, len(sums))
        rows = moves.samples[order]
        carried = weights[rows]
        old = moves.old[order]
        new = moves.new[order]
        share_pieces(
            lambda tickets, width, waits: take(given, rows, old, new, carried, sums, tickets, width, waits),
            sums.shape[1],
            elements=3 * moves.count * sums.shape[1],
        )

    def candidate_gains(self, K: Array, diag: Floats, distances: Floats, weights: Floats) -> Floats:
        """Return the gain every sample is sure of as a new centre."""
        gains = np.empty(len(K))
        loop = self._loops.candidate_gains
        given = read_only(K)
        for_ranges(
            lambda lo, hi: loop(given, diag, distances, weights, gains, lo, hi, 0),
            len(K),
            width=GAIN_ROWS,
            elements=K.size,
        )
        return gains

    def candidate_gains_of_rows(
        self, rows: Array, start: int, diag: Floats, distances: Floats, weights: Floats
    ) -> Floats:
        """Return the same for the samples of some rows of a kernel, the first of which is ``start``."""
        gains = np.empty(len(diag))
        stop = start + len(rows)
        contiguous = read_only(np.ascontiguousarray(rows))
        self._loops.candidate_gains(contiguous, diag, distances, weights, gains, start, stop, start)
        return gains[start:stop]

    # Kernels computed tile by tile

    def tiled_product(self, tile: Tile, shape: tuple[int, int], H: Array, tiling: Tiling | None = None) -> Floats:
        """Return K @ H, a tile at a time."""
        H = np.asarray(H, dtype=np.float64)
        out = np.zeros((shape[0], H.shape[1]))

        def work(lo: int, hi: int) -> None:
            for start in range(0, shape[1], TILE_ROWS):
                sources = slice(start, min(start + TILE_ROWS, shape[1]))
                out[lo:hi] += tile(sources, slice(lo, hi)).T @ H[sources]

        with single_threaded_blas():
            elements = READ_MEANWHILE * shape[0] * shape[1]
            for_ranges(work, shape[0], elements=elements, **_ranges(tiling, shape[1], shape[0]))
        return out

    def tiled_cluster_sums(
        self,
        tile: Tile,
        shape: tuple[int, int],
        labels: Ints,
        weights: Floats,
        n_clusters: int,
        tiling: Tiling | None = None,
    ) -> Floats:
        """Return the cluster sums; every tile is computed once and added at once."""
        sums = np.zeros((n_clusters, shape[0]))
        scatter = self._loops.scatter_rows
        order = order_of(labels, n_clusters)
        groups = labels[order]
        ordered = weights[order]
        rows = np.arange(min(TILE_ROWS, len(order)))

        def add(places: slice, lo: int, hi: int) -> None:
            values = read_only(tile(order[places], slice(lo, hi)))
            scatter(values, rows[: len(values)], groups[places], ordered[places], sums, lo, hi, lo)

        _over_tiles(len(order), shape[0], add, tiling)
        return sums

    def tiled_move_sums(
        self, sums: Floats, tile: Tile, moves: Moves, weights: Floats, tiling: Tiling | None = None
    ) -> None:
        """Update cluster sums; computes the rows of the moved samples only."""
        move = self._loops.move_rows
        order = order_of_ways(moves, len(sums))
        samples = moves.samples[order]
        old = moves.old[order]
        new = moves.new[order]
        carried = weights[samples]
        rows = np.arange(min(TILE_ROWS, len(order)))

        def add(places: slice, lo: int, hi: int) -> None:
            values = read_only(tile(samples[places], slice(lo, hi)))
            move(values, rows[: len(values)], old[places], new[places], carried[places], sums, lo, hi, lo)

        _over_tiles(len(order), sums.shape[1], add, tiling)

    def filled(
        self, tile: Tile, shape: tuple[int, int], dtype: Any = np.float64, tiling: Tiling | None = None
    ) -> Array:
        """Return the whole matrix, filled tile by tile on all threads."""
        out = np.empty(shape, dtype=dtype)
        width = TILE_COLS if tiling is None else tiling.columns
        most = None if tiling is None else tiling.most_at_once

        def work(lo: int, hi: int) -> None:
            for start in range(0, shape[1], width):
                cols = slice(start, min(start + width, shape[1]))
                out[lo:hi, cols] = tile(slice(lo, hi), cols)

        with single_threaded_blas():
            for_ranges(work, shape[0], width=TILE_ROWS, elements=READ_MEANWHILE * out.size, most_at_once=most)
        return out

    # Kernels of several views that lack samples

    def sum_of_pairs(
        self, kernels: list[Array], samples: list[Ints], coefficients: Floats, pattern: Ints, factors: Floats
    ) -> Floats:
        """Return the weighted sum of kernels, each among its samples, some rows at a time."""
        n = len(pattern)
        step = _pair_rows(n)
        total = np.zeros((n, n))
        for K, known, c in zip(kernels, samples, coefficients.tolist(), strict=True):
            for lo in range(0, len(known) if c != 0.0 else 0, step):
                rows = slice(lo, lo + step)
                total[np.ix_(known[rows], known)] += c * K[rows].astype(np.float64, copy=False)
        for lo in range(0, n, step):
            total[lo : lo + step] *= factors[np.ix_(pattern[lo : lo + step], pattern)]
        return total

    def add_to_pairs(self, K: Floats, pattern: Ints, values: Floats) -> None:
        """Add values of pairs of patterns, some rows at a time."""
        step = _pair_rows(len(K))
        for lo in range(0, len(K), step):
            K[lo : lo + step] += values[np.ix_(pattern[lo : lo + step], pattern)]

    # Cluster sums

    def within_sums(self, sums: Floats, labels: Ints, weights: Floats) -> Floats:
        """Return the kernel summed over the pairs inside each cluster."""
        parts = np.empty((-(-len(labels) // PART), len(sums)))
        self._loops.add_within(sums, labels, weights, parts, 0, len(labels))
        return self._sum_of_parts(parts)

    def _sum_of_parts(self, parts: Floats) -> Floats:
        total = np.empty(parts.shape[1])
        self._loops.add_parts(parts, total)
        return total

    def cluster_products(self, sums: Floats, labels: Ints, weights: Floats) -> Floats:
        """Return the kernel summed over the pairs of two clusters."""
        return np.stack([self.segment_sums(labels, weights * row, len(sums)) for row in sums])

    def nearest(
        self,
        sums: Floats,
        totals: Floats,
        norms: Floats,
        labels: Ints,
        tolerance: float,
        diag: Floats,
        coefs: Floats | None = None,
    ) -> Assignment:
        """Return the nearest cluster of every sample."""
        out = np.empty_like(labels)
        values = np.empty(sums.shape[1])
        slopes = slopes_of(totals)
        squares = writable(norms)
        if coefs is None:
            loop = self._loops.nearest

            def work(lo: int, hi: int) -> float:
                return float(loop(sums, slopes, squares, labels, tolerance, out, values, lo, hi))
        else:
            scaled = self._loops.nearest_scaled
            factors = writable(coefs)

            def work(lo: int, hi: int) -> float:
                return float(scaled(sums, slopes, squares, factors, diag, labels, tolerance, out, values, lo, hi))

        leads = for_ranges(work, sums.shape[1], elements=sums.size)
        distances = diag + values if coefs is None else values
        return Assignment(out, distances, _least(leads))

    def distances_to_clusters(self, sums: Floats, totals: Floats, norms: Floats, labels: Ints, diag: Floats) -> Floats:
        """Return the squared distance to the centre of the own cluster."""
        filled = np.where(totals > 0, totals, 1.0)
        inside = sums[labels, np.arange(len(labels))]
        return diag - 2.0 * inside / filled[labels] + norms[labels]

    def add_to_clusters(self, sums: Floats, clusters: Ints, values: Floats) -> None:
        """Add to the sums of some clusters."""
        sums[clusters] += values

    def add_to_samples(self, sums: Floats, samples: Ints, values: Floats) -> None:
        """Add to the columns of some samples."""
        sums[:, samples] += values

    def stack(self, arrays: list[Array]) -> Array:
        """Return arrays along a new first axis."""
        return np.stack(arrays)

    def weighted_sum(self, coefficients: Floats, stack: Array) -> Array:
        """Return the weighted sum over the first axis."""
        return np.tensordot(coefficients, stack, axes=1)

    # Features

    def squared_lengths(self, Phi: Matrix) -> Floats:
        """Return the squared length of every row."""
        if sp.issparse(Phi):
            return np.asarray(Phi.multiply(Phi).sum(axis=1), dtype=np.float64).ravel()
        return np.einsum("ij,ij->i", Phi, Phi)

    def feature_products(self, Phi: Matrix, H: Array) -> Floats:
        """Return Phi^T H."""
        return np.asarray(Phi.T @ np.asarray(H, dtype=np.float64))

    def spread(self, Phi: Matrix, vectors: Floats) -> Floats:
        """Return Phi @ vectors."""
        return np.asarray(Phi @ vectors)

    def spread_rows(self, Phi: Matrix, vectors: Floats) -> Floats:
        """Return vectors @ Phi^T."""
        if sp.issparse(Phi):
            return np.ascontiguousarray((Phi @ vectors.T).T)
        return vectors @ Phi.T

    def feature_sums(self, Phi: Matrix, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the sums of rows by cluster."""
        if sp.issparse(Phi):
            return _sparse_sums(Phi, np.arange(Phi.shape[0]), labels, weights, n_clusters)
        add = self._loops.add_rows
        given = (read_only(Phi), read_only(labels), read_only(weights))
        return _added_ranges(lambda out, lo, hi: add(*given, out, lo, hi), len(labels), (n_clusters, Phi.shape[1]))

    def moved_features(self, Phi: Matrix, moves: Moves, weights: Floats, n_clusters: int) -> Floats:
        """Return by how much the sums of rows change."""
        carried = weights[moves.samples]
        if sp.issparse(Phi):
            rows = np.concatenate([moves.samples, moves.samples])
            signed = np.concatenate([carried, -carried])
            return _sparse_sums(Phi, rows, np.concatenate([moves.new, moves.old]), signed, n_clusters)
        shift = self._loops.shift_rows
        given = read_only(Phi)
        return _added_ranges(
            lambda out, lo, hi: shift(given, moves.samples, moves.old, moves.new, carried, out, lo, hi),
            moves.count,
            (n_clusters, Phi.shape[1]),
        )

    def nearest_means(
        self,
        Phi: Matrix,
        means: Floats,
        norms: Floats,
        labels: Ints,
        tolerance: float,
        diag: Floats,
        coefs: Floats,
    ) -> Assignment:
        """Return the nearest mean of every row in one pass, dense ones tile by tile: nothing n x k is stored."""
        out = np.empty_like(labels)
        values = np.empty(len(labels))
        columns = np.ascontiguousarray(means.T)
        norms = writable(norms)
        coefs = writable(coefs)
        if sp.issparse(Phi):
            products = np.ascontiguousarray((Phi @ columns).T)
            slopes = np.full(len(norms), 2.0)
            loop = self._loops.nearest_scaled
            lead = loop(products, slopes, norms, coefs, diag, labels, tolerance, out, values, 0, len(labels))
            return Assignment(out, values, float(lead))
        dense_loop = self._loops.nearest_means
        given = read_only(Phi)
        large = FEATURE_TILE * means.size > SMALL_PRODUCT
        with single_threaded_blas() if large else nullcontext():
            leads = for_ranges(
                lambda lo, hi: dense_loop(given, diag, columns, norms, coefs, labels, tolerance, out, values, lo, hi),
                len(labels),
                elements=Phi.size + len(labels) * len(norms),
                multiple=FEATURE_TILE,
            )
        return Assignment(out, values, _least(leads))

    def distances_to_means(self, Phi: Matrix, means: Floats, norms: Floats, labels: Ints, diag: Floats) -> Floats:
        """Return the squared distance to the mean of the own cluster, some rows at a time."""
        distances = np.empty(len(labels))
        for start in range(0, len(labels), SEQUENTIAL_ROWS):
            rows = slice(start, start + SEQUENTIAL_ROWS)
            centres = means[labels[rows]]
            block = Phi[rows]
            products = block.multiply(centres).sum(axis=1) if sp.issparse(block) else (block * centres).sum(axis=1)
            distances[rows] = diag[rows] - 2.0 * np.asarray(products).ravel() + norms[labels[rows]]
        return distances

    def assign_by_size(
        self,
        Phi: Matrix,
        means: Floats,
        norms: Floats,
        labels: Ints,
        tolerance: float,
        diag: Floats,
        weights: Floats,
        totals: Floats,
    ) -> Ints:
        """Return labels given one after the other; one thread, since every sample waits for the one before it."""
        out = np.empty_like(labels)
        sizes = totals.copy()
        columns = np.ascontiguousarray(means.T)
        for start in range(0, len(labels), SEQUENTIAL_ROWS):
            rows = slice(start, start + SEQUENTIAL_ROWS)
            values = np.ascontiguousarray((norms - 2.0 * (Phi[rows] @ columns)) + diag[rows, None])
            self._loops.assign_by_size(values, weights[rows], sizes, labels[rows], tolerance, out[rows])
        return out

    def gram(self, Phi: Floats, weights: Floats) -> Floats:
        """Return Phi^T W Phi, added up over fixed ranges."""

        def work(lo: int, hi: int) -> Floats:
            rows = Phi[lo:hi]
            out = np.empty((Phi.shape[1], Phi.shape[1]))
            for start in range(0, Phi.shape[1], GRAM_COLUMNS):
                some = slice(start, start + GRAM_COLUMNS)
                out[:, some] = rows.T @ (weights[lo:hi, None] * rows[:, some])
            return out

        with single_threaded_blas():
            sums = for_ranges(work, len(Phi), elements=Phi.size, width=SUMMED_ROWS)
        return _added(sums, (Phi.shape[1], Phi.shape[1]))

    # Thin blocks. One thread of BLAS gives the same vectors, to the last bit, for any number of threads.

    def start_block(self, n: int, width: int) -> Floats:
        """Return random directions, always the same."""
        with single_threaded_blas():  # threads of the linear algebra would add up in another order
            block = np.random.default_rng(0).standard_normal((n, width))
            return np.linalg.qr(block)[0] if n <= THIN_ROWS else self._orthonormal_columns(block)[0]

    def inner(self, blocks: list[Floats], others: list[Floats]) -> Floats:
        """Return B^T C, added up over fixed ranges of rows."""

        def work(lo: int, hi: int) -> Floats:
            total = np.zeros(shape)
            for start in range(lo, hi, JOINED_ROWS):
                stop = min(start + JOINED_ROWS, hi)
                total += _side_by_side(blocks, start, stop).T @ _side_by_side(others, start, stop)
            return total

        shape = (_width(blocks), _width(others))
        n = len(blocks[0])
        with single_threaded_blas():
            sums = for_ranges(work, n, elements=n * shape[0] * shape[1], width=THIN_ROWS)
        return _added(sums, shape)

    def combine(self, blocks: list[Floats], matrix: Floats) -> Floats:
        """Return B @ matrix, a range of rows at a time."""
        out = np.empty((len(blocks[0]), matrix.shape[1]))

        def work(lo: int, hi: int) -> None:
            np.matmul(_side_by_side(blocks, lo, hi), matrix, out=out[lo:hi])

        with single_threaded_blas():
            for_ranges(work, len(out), elements=len(out) * matrix.size, width=JOINED_ROWS)
        return out

    def column_norms(self, block: Floats) -> Floats:
        """Return the length of every column."""
        return np.asarray(np.linalg.norm(block, axis=0))

    def join(self, blocks: list[Floats]) -> Floats:
        """Return blocks side by side."""
        return np.hstack(blocks)

    def together(self, blocks: list[Floats]) -> list[Floats]:
        """Return the blocks as they are: joining them would be one more copy."""
        return blocks

    def orthonormal(self, block: Floats, basis: list[Floats]) -> Floats:
        """Return what a block adds to a basis."""
        size = np.sqrt(np.diagonal(self.inner([block], [block])).max(initial=0.0))
        for _ in range(2):
            block = self._outside(block, basis)
        Q, R = self._orthonormal_columns(block)
        keep = np.abs(np.diagonal(R)) > NOTHING_ADDED * size
        if keep.all():
            return Q
        if not keep.any():
            return Q[:, keep]
        # A direction that adds nothing leaves rounding in its place; once more against the basis tells what is left.
        return self._orthonormal_columns(self._outside(np.ascontiguousarray(Q[:, keep]), basis))[0]

    def _outside(self, block: Floats, basis: list[Floats]) -> Floats:
        """Return what is left of a block outside of a basis."""
        coefficients = self.inner(basis, [block])
        out = np.empty(block.shape)

        def work(lo: int, hi: int) -> None:
            np.matmul(_side_by_side(basis, lo, hi), coefficients, out=out[lo:hi])
            np.subtract(block[lo:hi], out[lo:hi], out=out[lo:hi])

        with single_threaded_blas():
            for_ranges(work, len(out), elements=len(out) * coefficients.size, width=JOINED_ROWS)
        return out

    def _orthonormal_columns(self, block: Floats) -> tuple[Floats, Floats]:
        """Return Q and R: a decomposition of every range of rows, then one of their small factors.

        With pivots, directions that add nothing come last and spoil no others.
        """
        n = len(block)
        with single_threaded_blas():
            pieces: list[Any] = for_ranges(
                lambda lo, hi: np.linalg.qr(block[lo:hi]), n, elements=block.size * block.shape[1], width=THIN_ROWS
            )
            small, R, _ = qr(np.vstack([r for _, r in pieces]), mode="economic", pivoting=True, check_finite=False)
            ends = np.cumsum([0, *(len(r) for _, r in pieces)])
            Q = np.empty((n, small.shape[1]))

            def rotate(lo: int, hi: int) -> None:
                piece = lo // THIN_ROWS
                np.matmul(pieces[piece][0], small[ends[piece] : ends[piece + 1]], out=Q[lo:hi])

            for_ranges(rotate, n, elements=block.size * block.shape[1], width=THIN_ROWS)
        return Q, R


def indices(index: Index, n: int) -> Ints:
    """Return a slice or an integer array as integers below ``n``."""
    return np.arange(n)[index] if isinstance(index, slice) else np.asarray(index, dtype=np.intp)


def _pair_rows(n: int) -> int:
    """Return how many rows of a sum of kernels of n samples are made together."""
    return min(PAIR_ROWS, max(1, int(PAIR_SHARE * n), FEW_PAIRS // max(1, n)))


def _least(leads: list[object]) -> float:
    return min(float(lead) for lead in leads)  # type: ignore[arg-type]


def _ranges(tiling: Tiling | None, n_sources: int, n_rows: int) -> dict[str, Any]:
    """Return the ranges of rows that threads take, and how many at a time; wider ones where a tile is not full."""
    columns = TILE_COLS if tiling is None else tiling.columns
    widest = min(max(WIDEST, columns), max(columns, -(-n_rows // PIECES)))
    width = min(widest, columns * max(1, TILE_ROWS // max(n_sources, 1)))
    return {"width": width, "most_at_once": None if tiling is None else tiling.most_at_once}


def _over_tiles(
    n_sources: int, n_rows: int, add: Callable[[slice, int, int], None], tiling: Tiling | None = None
) -> None:
    """Call ``add(some sources, lo, hi)`` for every tile; one thread owns a range of rows."""

    def work(lo: int, hi: int) -> None:
        for start in range(0, n_sources, TILE_ROWS):
            add(slice(start, start + TILE_ROWS), lo, hi)

    with single_threaded_blas():
        elements = READ_MEANWHILE * n_sources * n_rows
        for_ranges(work, n_rows, elements=elements, **_ranges(tiling, n_sources, n_rows))


def _added_ranges(add: Callable[[Floats, int, int], None], n: int, shape: tuple[int, int]) -> Floats:
    """Return what ``add`` adds up over fixed ranges: the same for any number of threads."""

    def work(lo: int, hi: int) -> Floats:
        out = np.zeros(shape)
        add(out, lo, hi)
        return out

    return _added(for_ranges(work, n, elements=n * shape[1], width=SUMMED_ROWS), shape)


def _added(sums: list[object], shape: tuple[int, int]) -> Floats:
    """Return the sum of arrays in their order, the first of which is overwritten."""
    total, *others = sums or [np.zeros(shape)]
    for other in others:
        total += other  # type: ignore[operator]
    return np.asarray(total)


def _sparse_sums(Phi: Any, rows: Ints, groups: Ints, weights: Floats, n_clusters: int) -> Floats:
    """Return the weighted sums of sparse rows by group."""
    pick = sp.csr_array((weights, (groups, rows)), shape=(n_clusters, Phi.shape[0]))
    return np.asarray((pick @ Phi).todense())


def _side_by_side(blocks: list[Floats], lo: int, hi: int) -> Floats:
    """Return some rows of blocks side by side."""
    return blocks[0][lo:hi] if len(blocks) == 1 else np.hstack([block[lo:hi] for block in blocks])


def _width(blocks: list[Floats]) -> int:
    return sum(block.shape[1] for block in blocks)
