"""Searches of neighbours in chunks of rows that a limit of memory has room for.

scikit-learn compares sparse samples, and samples by the cosine, in chunks of its own, of a GiB. Chunks here follow the
limit alone, so that results do not depend on the number of threads.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from kernelweave.foundation.array_types import Floats, Matrix
from kernelweave.foundation.memory import FREE, PASSING, rows_within

#: Rows that scikit-learn's loops over pairs take at a time. Chunks are multiples of it where they can be, so that
#: rounding does not depend on where one ends.
CHUNK = 256
# Bytes of a sample that a search finds: as it is found, joined and put in order.
FOUND_BYTES = 72
# Bytes of a pair where a chunk is compared with all samples at once: its distance, its place in order, and for sparse
# samples the product that the distance comes from.
PAIR_BYTES = 24
SPARSE_PAIR_BYTES = 40


def mib_of(X: Matrix) -> float:
    """Return the MiB of samples."""
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
    return float(size / 2**20)


def passing_room(kept: float, memory_limit: float) -> float:
    """Return the MiB that work may take for a while beside what is kept."""
    return max(FREE, PASSING * memory_limit, memory_limit - kept)


def searched_rows(index: NearestNeighbors, X: Matrix, count: int, room: float) -> int:
    """Return for how many rows at a time ``count`` nearest samples are searched within ``room`` MiB."""
    row_bytes = FOUND_BYTES * count
    if sp.issparse(X) or index.effective_metric_ == "cosine":  # there is no tree, and no loop over tiles
        row_bytes += (SPARSE_PAIR_BYTES if sp.issparse(X) else PAIR_BYTES) * index.n_samples_fit_
        room = passing_room(mib_of(index._fit_X), room)  # beside a copy of the samples, scaled or transposed
    rows = rows_within(room, row_bytes, X.shape[0])
    return rows if rows == X.shape[0] or rows < CHUNK else rows - rows % CHUNK


def chunks(n: int, size: int) -> Iterator[slice]:
    """Yield ranges of rows."""
    for start in range(0, n, size):
        yield slice(start, min(n, start + size))


def part(X: Matrix, rows: slice) -> Matrix:
    """Return some rows, or the samples themselves where these are all."""
    return X if rows == slice(0, X.shape[0]) else X[rows]


def farthest_of_nearest(index: NearestNeighbors, X: Matrix, memory_limit: float) -> Floats:
    """Return the distance of the last of the nearest samples, as one column; the search takes so many MiB."""
    farthest = np.empty((X.shape[0], 1))
    for rows in chunks(X.shape[0], searched_rows(index, X, index.n_neighbors, memory_limit)):
        farthest[rows] = index.kneighbors(part(X, rows))[0][:, -1:]
    return farthest
