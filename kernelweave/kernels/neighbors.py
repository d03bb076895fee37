"""Nearest neighbours of samples, and the self-tuned graph that they make.

Dense rows are compared by Euclidean distance, sparse rows of unit length by cosine: there, rows that share no column
are not neighbours at all. Between samples equally far away drawn turns decide, for new samples their order.

Dense rows are searched in one of three ways:

exact           reads all pairs
in cells        rows are put into cells around sampled centres, and only the cells nearest to a cell are searched;
                where that misses many, rows meet the neighbours of their neighbours, round after round
approximate     asks indexes of a library, among which rows are divided, entered in a drawn order

"auto" is exact up to about ten thousand rows and looks into cells beyond. Sparse rows are always searched exactly. How
many neighbours the last two find is measured on some rows.

Source      of the rounds: W. Dong, C. Moses and K. Li, Efficient k-nearest neighbor graph construction for generic
            similarity measures, WWW 2011. Here all rows take a step at once: no thread sees what another one writes
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from kernelweave.backends.graphs import (
    NeighborRounds,
    index_type,
    largest_finite,
    least_columns,
    mutual_graph,
    row_distances,
)
from kernelweave.backends.neighbor_index import build_index, index_bytes, index_count, library, search_index
from kernelweave.backends.preparing import order_of
from kernelweave.foundation.array_types import Array, Floats, Ints, Matrix
from kernelweave.foundation.memory import Batches, batches_within
from kernelweave.foundation.threads import for_ranges, parallel_map, single_threaded_blas, thread_count

Search = Literal["auto", "exact", "approximate"]
#: How neighbours can be searched.
SEARCHES = ("auto", "exact", "approximate")
#: Dense rows up to this number are searched exactly where nothing else is asked for.
EXACT_LIMIT = 10_000
#: Rows whose neighbours are compared with the exact ones, and the share below which too few were found.
RECALL_ROWS = 300
ENOUGH_RECALL = 0.9
# Rows of a tile of dense products, of one with the rows of cells, and of a sparse product: many enough that threads
# hardly meet at the interpreter, which they share.
TILE_ROWS = 256
CELL_TILE_ROWS = 256
SPARSE_ROWS = 500
# Most entries of a tile of dense products; among so many rows tiles have fewer.
TILE_ENTRIES = 2**25
# Columns that are multiplied while one number of such a tile is read.
COLUMNS_OF_A_PAIR = 8
# Least rows of such a tile where memory is short, and what a thread holds of one: itself, and what is marked in it.
LEAST_TILE_ROWS = 16
TILES_HELD = 1.5
# Entries of a tile among which the last of the nearest is looked for at a time: 1 MiB of them is copied.
LIMIT_ENTRIES = 2**17
# Entries of a matrix of distances that are sorted together.
ENTRIES_HELD = 2**17
# Rows that an index is asked about at a time.
ASKED_ROWS = 4096
# Squared distances that differ by no more than this share of a row's squared length are equal: rounding of products.
TIE = 64.0 * float(np.finfo(np.float64).eps)
# Cosines below this are rounding.
NO_COSINE = 1e-9
# Rows that a cell holds, the cells searched for the neighbours of one, and the rounds that place their centres.
CELL_ROWS = 400
CELLS_SEARCHED = 10
CELL_ROUNDS = 5
# Sampled rows per cell that place its centre.
CELL_SAMPLE = 50
# Neighbours of a row that are kept for rounds in which it meets theirs. Rounds end when this share of the neighbours
# wanted is found, when a round replaces no more than this share of them, or after so many. The first is what counts as
# enough and three times what it may be off by, measured on 300 rows.
KEPT = 24
AIM = 0.93
HARDLY = 0.01
ROUNDS = 20
# Bytes that each neighbour that is kept takes in a round, copies of rows in single precision, tiles of products with
# the rows of cells that a thread holds, and matrices of distances between cells.
ROUND_BYTES = 42
ROUGH_COPIES = 3
TILES_OF_CELLS = 2
CELL_DISTANCES = 3
# Columns in single precision that a processor compares at a time.
COLUMNS_AT_A_TIME = 8
# Rows compared at a time with those that recall is measured on.
RECALL_TILE_ROWS = 4096
# Rows whose neighbours are put in order at a time.
SORTED_ROWS = 1024
# Rows whose edges are weighed at a time, and the numbers that a weight costs as much as.
EDGE_ROWS = 2048
EXPONENTIAL = 8
# Distances from rounding alone, as a share of the largest one.
SMALLEST_RADIUS = 1e-12
# A neighbour is as near as another one if it is farther by no more than this share.
AS_NEAR = 1.0 + 1e-9


@dataclass(frozen=True)
class Neighbors:
    """The nearest training samples of every row, nearest first; infinitely far where there are not so many."""

    indices: Ints  # (n, m)
    distances: Floats  # (n, m)

    def first(self, m: int) -> "Neighbors":
        """Return the nearest m."""
        return Neighbors(self.indices[:, :m], self.distances[:, :m])

    @property
    def radii(self) -> Floats:
        """Distance of the last neighbour there is, zero for a sample that has none."""
        return largest_finite(self.distances)


def nearest_others(
    Z: Matrix,
    m: int,
    rng: np.random.Generator,
    exact_limit: int = EXACT_LIMIT,
    search: Search = "auto",
    room: float = np.inf,
) -> Neighbors:
    """Return the m nearest other samples of every sample; ``rng`` draws turns, places of cells and orders of rows.

    ``exact_limit`` is that of "auto". Distances of dense samples from all others take ``room`` MiB, or as few as they
    can.
    """
    n = Z.shape[0]
    m = min(m, n - 1)
    turn = rng.permutation(n)
    if sp.issparse(Z):
        return _sparse_neighbors(Z, Z, m, turn)
    if search == "approximate":
        return _by_indexes(Z, m, _indexes([Z], [turn])[0])
    if search == "auto" and n > exact_limit:
        return _in_cells(Z, m, rng)
    return _dense_neighbors(Z, Z, m, turn, room)


def nearest_in_all(
    tables: Sequence[Matrix], counts: Sequence[int], rng: np.random.Generator, search: Search, room: float = np.inf
) -> Any:
    """Yield the nearest others of the rows of several tables, with the same draws for all of them.

    The indexes of all tables are built side by side. ``room`` as for one table.
    """
    if search != "approximate":
        pairs = zip(tables, counts, strict=True)
        yield from (nearest_others(Z, m, deepcopy(rng), search=search, room=room) for Z, m in pairs)
        return
    turns = [deepcopy(rng).permutation(Z.shape[0]) for Z in tables]
    for Z, m, turn, indexes in zip(tables, counts, turns, _indexes(tables, turns), strict=True):
        m = min(m, Z.shape[0] - 1)
        yield _by_indexes(Z, m, indexes) if indexes else _sparse_neighbors(Z, Z, m, turn)


def check_search(search: Search) -> None:
    """Raise ImportError where the library that a search needs is missing."""
    if search == "approximate":
        library()


def is_exact(Z: Matrix, search: Search) -> bool:
    """Whether a search finds all nearest neighbours, whatever the values."""
    return sp.issparse(Z) or search == "exact" or (search == "auto" and Z.shape[0] <= EXACT_LIMIT)


def measured_recall(Z: Floats, near: Neighbors, rng: np.random.Generator) -> float:
    """Return the share of the nearest neighbours of some rows that were found."""
    rows = recall_rows(len(Z), rng)
    return recall_by_distances(near.distances[rows], _least_distances(Z, rows, near.indices.shape[1]))


def _least_distances(Z: Floats, rows: Ints, m: int) -> Floats:
    """Return the distances of some rows from the m nearest others among all, from products a tile at a time."""
    asked = np.ascontiguousarray(Z[rows])
    lengths = np.einsum("ij,ij->i", Z, Z)

    def search(start: int, stop: int) -> Ints:
        products = asked @ Z[start:stop].T
        own = np.flatnonzero((rows >= start) & (rows < stop))
        products[own, rows[own] - start] = -np.inf
        return start + least_columns(products, lengths[start:stop], min(m, stop - start))

    with single_threaded_blas():
        parts = for_ranges(search, len(Z), width=RECALL_TILE_ROWS, elements=len(rows) * Z.size)
    candidates: Ints = np.hstack(parts)  # type: ignore[arg-type]
    distances = distances_to(asked, Z, candidates)
    distances[candidates == rows[:, None]] = np.inf
    return np.sort(distances, axis=1)[:, :m]


def recall_rows(n: int, rng: np.random.Generator) -> Ints:
    """Return the rows that recall is measured on."""
    return np.sort(rng.choice(n, min(n, RECALL_ROWS), replace=False))


def recall_by_distances(found: Floats, wanted: Floats) -> float:
    """Return the share of neighbours that are as near as the wanted ones: of equally far samples any will do."""
    if wanted.size == 0:
        return 1.0
    last = wanted.max(axis=1, keepdims=True)
    return float(np.mean(found <= last * AS_NEAR))


def nearest_known(Z: Matrix, known: Matrix, m: int) -> Neighbors:
    """Return the m nearest training samples of new ones, by exact search."""
    if sp.issparse(known):
        return _sparse_neighbors(sp.csr_array(Z), known, m)
    return _dense_neighbors(Z, known, min(m, len(known)))


def nearest_by_distances(rows_of: Callable[[slice], Floats], n: int, m: int) -> Neighbors:
    """Return the m nearest other ones of n samples from their rows of a matrix of distances, some at a time."""
    indices = np.empty((n, min(m, n - 1)), dtype=np.intp)
    distances = np.empty(indices.shape)
    step = max(1, ENTRIES_HELD // max(1, n))
    for start in range(0, n, step):
        D = rows_of(slice(start, min(start + step, n)))
        for i, row in enumerate(D, start):
            order = np.argsort(row, kind="stable")
            indices[i] = order[order != i][: indices.shape[1]]
            distances[i] = row[indices[i]]
    return Neighbors(indices, distances)


def self_tuned_edges(neighbors: Neighbors, radii: Floats, shape: tuple[int, int]) -> sp.csr_array:
    """Return exp(-d_ij^2 / (s_i s_j)) from every row to its neighbours; s_i is its radius, s_j that of ``radii``."""
    values = _self_tuned_weights(neighbors, radii)
    rows = np.repeat(np.arange(shape[0]), neighbors.indices.shape[1])
    A = sp.csr_array((values.ravel(), (rows, neighbors.indices.ravel())), shape=shape)
    A.eliminate_zeros()
    return A


def _self_tuned_weights(neighbors: Neighbors, radii: Floats) -> Floats:
    """Return the weight of the edge from every row to each of its neighbours, zero where there is none."""
    smallest = max(SMALLEST_RADIUS * float(radii.max(initial=0.0)), np.finfo(np.float64).tiny ** 0.25)
    here = np.maximum(neighbors.radii, smallest)
    there = np.maximum(radii, smallest)
    values = np.empty(neighbors.distances.shape)

    def weigh(start: int, stop: int) -> None:
        squares = np.square(neighbors.distances[start:stop])
        scales = here[start:stop, None] * there[neighbors.indices[start:stop]]
        values[start:stop] = np.exp(-squares / scales)

    for_ranges(weigh, len(values), width=EDGE_ROWS, elements=EXPONENTIAL * values.size)
    return values


def self_tuned_graph(neighbors: Neighbors) -> sp.csr_array:
    """Return the symmetric graph of the samples: the mean of the edges found from both ends."""
    return mutual_graph(neighbors.indices, _self_tuned_weights(neighbors, neighbors.radii))


# --- exact -----------------------------------------------------------------------------------------------------------


def _dense_neighbors(Z: Floats, known: Floats, m: int, turn: Ints | None = None, room: float = np.inf) -> Neighbors:
    """Return neighbours from all pairs, a tile at a time; with ``turn`` rows are the known ones, and not their own."""
    n = len(Z)
    indices = np.empty((n, m), dtype=np.intp)
    distances = np.empty((n, m))
    known = np.ascontiguousarray(known)
    lengths = np.einsum("ij,ij->i", known, known)
    tiles = _tiles(len(known), room)

    def search(start: int, stop: int) -> None:
        own = None if turn is None else np.arange(start, stop)
        rows = slice(start, stop)
        indices[rows], distances[rows] = _nearest_of(Z[rows], known, lengths, m, own, turn)

    with single_threaded_blas():
        pairs = n * len(known) * -(-Z.shape[1] // COLUMNS_OF_A_PAIR)
        for_ranges(search, n, width=tiles.size, elements=pairs, most_at_once=tiles.at_once)
    return Neighbors(indices, distances)


def _tiles(n_known: int, room: float) -> Batches:
    """Return the tiles of distances from so many known rows that fit into ``room`` MiB."""
    most = tile_rows(n_known)
    return batches_within(room, 8 * TILES_HELD * n_known, most, min(most, LEAST_TILE_ROWS))


def least_tile_bytes(n_known: int) -> float:
    """Return the bytes that a search among so many rows takes at least."""
    return 8.0 * TILES_HELD * min(tile_rows(n_known), LEAST_TILE_ROWS) * n_known


def tile_rows(n_known: int) -> int:
    """Return the rows of a tile of products with so many known ones."""
    return max(1, min(TILE_ROWS, TILE_ENTRIES // n_known))


def _sparse_neighbors(Z: sp.csr_array, known: sp.csr_array, m: int, turn: Ints | None = None) -> Neighbors:
    """Return neighbours by the cosine of sparse rows of unit length; with ``turn`` a row is not its own neighbour."""
    n = Z.shape[0]
    m = min(m, known.shape[0])
    columns = sp.csr_array(known.T)
    indices = np.zeros((n, m), dtype=np.intp)
    cosines = np.zeros((n, m))

    def search(start: int, stop: int) -> None:
        products = sp.csr_array(Z[start:stop] @ columns)
        for row in range(stop - start):
            entries = slice(products.indptr[row], products.indptr[row + 1])
            there = products.indices[entries]
            values = products.data[entries]
            keep = values > NO_COSINE
            if turn is not None:
                keep &= there != start + row
            there = there[keep]
            values = values[keep]
            if len(values) > m:
                least = np.partition(values, len(values) - m)[len(values) - m]
                nearer = values > least + NO_COSINE
                tied = np.flatnonzero(~nearer & (values >= least - NO_COSINE))
                own = None if turn is None else start + row
                nearer[tied[_tied(there[tied], m - np.count_nonzero(nearer), own, turn)]] = True
                there = there[nearer]
                values = values[nearer]
            order = np.lexsort((there, -values))[:m]
            indices[start + row, : len(order)] = there[order]
            cosines[start + row, : len(order)] = values[order]

    for_ranges(search, n, width=SPARSE_ROWS, elements=Z.nnz * SPARSE_ROWS)
    distances = np.sqrt(np.maximum(2.0 - 2.0 * cosines, 0.0))
    distances[cosines == 0.0] = np.inf
    return Neighbors(indices, distances)


# --- approximate -----------------------------------------------------------------------------------------------------


def indexes_bytes(n: int, widths: Sequence[int]) -> float:
    """Return the bytes that the indexes of tables of such widths take, which are there at the same time."""
    return sum(index_bytes(n, width) for width in widths)


@dataclass(frozen=True)
class RowIndex:
    """An index of some rows, and their numbers in the order in which they were entered."""

    index: Any
    rows: Ints


def _indexes(tables: Sequence[Matrix], turns: Sequence[Ints]) -> list[list[RowIndex]]:
    """Return the indexes of every table, none of sparse ones; each is built on one thread, all of them side by side.

    Rows are entered by their turns, since those of a file may be sorted.
    """
    parts = [
        (table, rows)
        for table, (Z, turn) in enumerate(zip(tables, turns, strict=True))
        if not sp.issparse(Z)
        for rows in np.array_split(turn, index_count(len(turn)))
    ]

    def build(part: tuple[int, Ints]) -> RowIndex:
        table, rows = part
        return RowIndex(build_index(tables[table], rows), rows)

    built = list(parallel_map(build, parts, even_few=True))
    return [[made for made, part in zip(built, parts, strict=True) if part[0] == table] for table in range(len(tables))]


def _by_indexes(Z: Floats, m: int, indexes: Sequence[RowIndex]) -> Neighbors:
    """Return approximate neighbours by the indexes of all rows."""
    indices = np.empty((len(Z), m), dtype=np.intp)
    distances = np.empty((len(Z), m))

    def search(start: int, stop: int) -> None:
        rows = np.arange(start, stop)
        near = without_own(answers(indexes, Z[start:stop], Z, m + 1), rows)
        indices[start:stop] = near.indices
        distances[start:stop] = near.distances

    for_ranges(search, len(Z), width=ASKED_ROWS, elements=len(Z) * ASKED_ROWS)
    return Neighbors(indices, distances)


def answers(indexes: Sequence[RowIndex], Z: Floats, known: Floats, count: int) -> Neighbors:
    """Return what indexes of known rows say is nearest; infinitely far where they are silent."""
    found = []
    for each in indexes:
        places = search_index(each.index, Z, count, len(indexes))
        found.append(np.where(places >= 0, each.rows[places], -1))
    chosen = np.hstack(found)
    there = chosen >= 0
    chosen = np.where(there, chosen, 0)
    distances = np.where(there, distances_to(Z, known, chosen), np.inf)
    return sorted_by_distance(chosen, distances, np.einsum("ij,ij->i", Z, Z)).first(count)


def without_own(near: Neighbors, rows: Ints) -> Neighbors:
    """Return all but the row itself, and all but the last where it is not among them."""
    m = near.indices.shape[1] - 1
    own = near.indices == rows[:, None]
    own[~own.any(axis=1), m] = True
    own &= np.cumsum(own, axis=1) == 1  # entries without a neighbour may have the number of the row, too
    return Neighbors(near.indices[~own].reshape(-1, m), near.distances[~own].reshape(-1, m))


def cells_bytes(n: int, width: int, m: int) -> float:
    """Return the bytes that a search in cells takes, rounds included, besides what it returns."""
    rows = 4.0 * ROUGH_COPIES * (width + COLUMNS_AT_A_TIME)
    tiles = thread_count() * 4.0 * TILES_OF_CELLS * CELL_TILE_ROWS * CELL_ROWS * CELLS_SEARCHED
    return n * (rows + ROUND_BYTES * max(m, KEPT)) + tiles + 8.0 * CELL_DISTANCES * (n / CELL_ROWS) ** 2


def _in_cells(Z: Floats, m: int, rng: np.random.Generator) -> Neighbors:
    """Return approximate neighbours: those in the cells nearest to the cell of a sample, and whom these know."""
    n = len(Z)
    rough = Z.astype(np.float32)
    order, ends, between = _cells(Z, rng)
    chosen = _in_nearest_cells(rough, order, ends, between, min(max(m, KEPT), n - 1))
    chosen = _met_by_neighbors(Z, rough, chosen, m, order, recall_rows(n, rng))[:, :m]
    indices = np.empty((n, m), dtype=np.intp)
    distances = np.empty((n, m))

    def sort(start: int, stop: int) -> None:
        rows = slice(start, stop)
        indices[rows], distances[rows] = _in_order(Z[rows], Z, chosen[rows])

    for_ranges(sort, n, width=SORTED_ROWS, elements=m * Z.size)
    return Neighbors(indices, distances)


def _cells(Z: Floats, rng: np.random.Generator) -> tuple[Ints, Ints, Floats]:
    """Return samples in the order of their cells, where each cell ends, and squared distances between cells."""
    n = len(Z)
    count = max(1, n // CELL_ROWS)
    centers = _cell_centers(Z[rng.choice(n, min(n, count * CELL_SAMPLE), replace=False)], count)
    cell = _nearest_center(Z, centers)
    ends = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=count))])
    return order_of(cell, count), ends, _squared_distances(centers, centers)


def _in_nearest_cells(rough: Array, order: Ints, ends: Ints, between: Floats, m: int) -> Ints:
    """Return the m nearest samples of every sample in the cells nearest to its own, by products in single precision."""
    n = len(rough)
    lengths = np.einsum("ij,ij->i", rough, rough)
    chosen: Ints = np.empty((n, m), dtype=index_type(n))

    def search(start: int, stop: int) -> None:
        for c in range(start, stop):
            candidates = _candidates(np.argsort(between[c], kind="stable"), order, ends, m)
            known = rough[candidates]
            sizes = lengths[candidates]
            for first in range(ends[c], ends[c + 1], CELL_TILE_ROWS):  # equal samples share a cell, however many
                rows = order[first : min(first + CELL_TILE_ROWS, ends[c + 1])]
                own = np.searchsorted(candidates, rows)
                chosen[rows] = candidates[_roughly_nearest(rough[rows], known, sizes, own, m)]

    with single_threaded_blas():
        for_ranges(search, len(between), width=1, elements=n * CELL_ROWS * CELLS_SEARCHED)
    return chosen


def _met_by_neighbors(Z: Floats, rough: Array, chosen: Ints, m: int, order: Ints, asked: Ints) -> Ints:
    """Return nearer neighbours than those chosen, among the neighbours of neighbours, round after round.

    Rounds end when the first m hold nearly all that are nearest to the samples asked, or hardly change any more. In the
    order of their cells, samples that meet are near each other in memory, too; columns of zeros make up the number that
    a processor compares at a time.
    """
    n = len(Z)
    wanted = _least_distances(Z, asked, m)

    def share(near: Ints) -> float:
        return recall_by_distances(distances_to(Z[asked], Z, near[:, :m]), wanted)

    if share(chosen[asked]) >= AIM:
        return chosen
    place = np.empty(n, dtype=chosen.dtype)
    place[order] = np.arange(n, dtype=chosen.dtype)
    rows = np.zeros((n, -(-rough.shape[1] // COLUMNS_AT_A_TIME) * COLUMNS_AT_A_TIME), dtype=rough.dtype)
    neighbors = np.empty_like(chosen)
    squares = np.empty(chosen.shape, dtype=rough.dtype)

    def begin(start: int, stop: int) -> None:
        there = order[start:stop]
        rows[start:stop, : rough.shape[1]] = rough[there]
        neighbors[start:stop] = place[chosen[there]]

    def measure(start: int, stop: int) -> None:
        squares[start:stop] = np.square(distances_to(rows[start:stop], rows, neighbors[start:stop]))

    def end(start: int, stop: int) -> None:
        chosen[order[start:stop]] = order[rounds.neighbors[start:stop]]

    parts: dict[str, Any] = {"width": SORTED_ROWS, "elements": squares.size * rows.shape[1]}
    for_ranges(begin, n, **parts)
    for_ranges(measure, n, **parts)
    rounds = NeighborRounds(rows, neighbors, squares, KEPT)
    for _ in range(ROUNDS):
        rounds.take()
        if np.mean(rounds.fresh[:, :m]) < HARDLY or share(order[rounds.neighbors[place[asked]]]) >= AIM:
            break
    for_ranges(end, n, **parts)
    return chosen


def _candidates(cells: Ints, order: Ints, ends: Ints, m: int) -> Ints:
    """Return the samples of the nearest cells, as many cells as it takes to have more than m."""
    sizes = np.cumsum(ends[cells + 1] - ends[cells])
    used = max(CELLS_SEARCHED, int(np.searchsorted(sizes, m + 1)) + 1)
    return np.sort(np.concatenate([order[ends[c] : ends[c + 1]] for c in cells[:used]]))


def _nearest_of(
    Z: Floats, known: Floats, lengths: Floats, m: int, own: Ints | None, turn: Ints | None
) -> tuple[Ints, Floats]:
    """Return the m nearest known rows of every row; ``own`` is the row itself, ``turn`` decides between equals."""
    squares = Z @ known.T
    squares *= -2.0
    squares += lengths  # less the squared length of the row itself
    if own is not None:
        squares[np.arange(len(own)), own] = np.inf
    return _in_order(Z, known, _first_nearest(squares, np.einsum("ij,ij->i", Z, Z), m, own, turn))


def _in_order(Z: Floats, known: Floats, chosen: Ints) -> tuple[Ints, Floats]:
    """Return the chosen samples of every row in order of distance, and the distances."""
    near = sorted_by_distance(chosen, distances_to(Z, known, chosen), np.einsum("ij,ij->i", Z, Z))
    return near.indices, near.distances


def sorted_by_distance(indices: Ints, distances: Floats, lengths: Floats) -> Neighbors:
    """Return neighbours in order of distance; those equally far, except for rounding, in the order of the data."""
    order = np.lexsort((indices, distances), axis=-1)
    distances = np.take_along_axis(distances, order, axis=1)
    indices = np.take_along_axis(indices, order, axis=1)
    if distances.shape[1] < 2:
        return Neighbors(indices, distances)
    nearer = distances[:, :-1]
    there = np.isfinite(nearer)
    steps = np.where(there, distances[:, 1:] - np.where(there, nearer, 0.0), 0.0)
    apart = (steps > TIE * (np.sqrt(lengths)[:, None] + np.where(there, nearer, 0.0))) & there
    tied = np.flatnonzero(~apart.all(axis=1))
    if len(tied):
        groups = np.zeros((len(tied), distances.shape[1]), dtype=np.intp)
        np.cumsum(apart[tied], axis=1, out=groups[:, 1:])
        order = np.lexsort((indices[tied], groups), axis=-1)
        indices[tied] = np.take_along_axis(indices[tied], order, axis=1)
        distances[tied] = np.take_along_axis(distances[tied], order, axis=1)
    return Neighbors(indices, distances)


def distances_to(Z: Floats, known: Floats, chosen: Ints) -> Floats:
    """Return the distances of every row from its chosen known ones.

    Products lose digits where samples lie close together, so distances are taken from differences.
    """
    return row_distances(Z, known, chosen)


def _roughly_nearest(Z: Array, known: Array, lengths: Array, own: Ints, m: int) -> Ints:
    """Return the places of the m nearest known rows of every row but itself, from products in single precision."""
    products = Z @ known.T
    products[np.arange(len(own)), own] = -np.inf
    return least_columns(products, lengths, m)


def _first_nearest(squares: Floats, lengths: Floats, m: int, own: Ints | None, turn: Ints | None) -> Ints:
    """Return the places of the m least values of every row, in order; between equal ones at the limit see ``_tied``."""
    last, tolerance = limits(squares, lengths, m)
    rows, columns = np.divmod(np.flatnonzero(squares <= (last + tolerance)[:, None]), squares.shape[1])
    ends = np.cumsum(np.bincount(rows, minlength=len(squares)))
    clear = np.diff(ends, prepend=0) == m
    near = np.empty((len(squares), m), dtype=np.intp)
    near[clear] = columns[clear[rows]].reshape(-1, m)
    for row in np.flatnonzero(~clear):
        there = columns[ends[row - 1] if row else 0 : ends[row]]
        nearer = squares[row, there] < last[row] - tolerance[row]
        tied = np.flatnonzero(~nearer)
        chosen = _tied(there[tied], m - np.count_nonzero(nearer), None if own is None else own[row], turn)
        nearer[tied[chosen]] = True
        near[row] = there[nearer]
    return near


def limits(squares: Floats, lengths: Floats, m: int) -> tuple[Floats, Floats]:
    """Return the m-th least value of every row, and how far others may be from it to count as equal."""
    nothing = np.zeros(squares.shape[1])
    last = np.empty(len(squares))
    step = max(1, LIMIT_ENTRIES // max(1, squares.shape[1]))
    for start in range(0, len(squares), step):
        some = squares[start : start + step]
        places = least_columns(-0.5 * some, nothing, m)[:, m - 1 :]
        last[start : start + step] = np.take_along_axis(some, places, axis=1)[:, 0]
    return last, TIE * (lengths + np.maximum(last + lengths, 0.0))


def _tied(samples: Ints, count: Any, own: int | None, turn: Ints | None) -> Ints:
    """Return the places of ``count`` among equally far samples: the first, or those whose turn follows the row's own.

    If all took the same ones, those would become hubs: a view with many equal rows (of zeros, say) has many ties. Turns
    are drawn, as rows next to each other in a file often belong together.
    """
    if own is None or turn is None:
        return np.arange(count)
    return np.argsort((turn[samples] - turn[own]) % len(turn), kind="stable")[:count]


def _cell_centers(sample: Floats, count: int) -> Floats:
    """Return centres of cells: rows of the sample, moved to the means of their cells a few times."""
    centers = sample[:count].copy()
    for _ in range(CELL_ROUNDS):
        cell = _nearest_center(sample, centers)
        sizes = np.bincount(cell, minlength=count)
        members = sp.csr_array((np.ones(len(cell)), (cell, np.arange(len(cell)))), shape=(count, len(cell)))
        filled = sizes > 0
        centers[filled] = (members @ sample)[filled] / sizes[filled, None]
    return centers


def _nearest_center(Z: Floats, centers: Floats) -> Ints:
    cell = np.empty(len(Z), dtype=np.intp)
    lengths = np.einsum("ij,ij->i", centers, centers)

    def assign(start: int, stop: int) -> None:
        cell[start:stop] = least_columns(Z[start:stop] @ centers.T, lengths, 1)[:, 0]

    with single_threaded_blas():
        for_ranges(assign, len(Z), width=TILE_ROWS, elements=len(Z) * len(centers))
    return cell


def _squared_distances(A: Floats, B: Floats) -> Floats:
    squares = np.einsum("ij,ij->i", A, A)[:, None] + np.einsum("ij,ij->i", B, B)
    squares -= 2.0 * (A @ B.T)
    return np.asarray(np.maximum(squares, 0.0, out=squares))
