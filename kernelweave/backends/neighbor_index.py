"""An index of rows that finds nearly all nearest ones, by the library Faiss (extra ``neighbors``).

Hierarchical navigable small worlds: a graph of the rows in several layers that a search walks along. Rows are entered
one after the other on one thread, since several would decide by chance who is joined to whom; searches do not disturb
each other and may run side by side. The same order of rows gives the same index and the same answers at any number of
threads. Few rows are compared with all, which is exact but for single precision.

Many rows are divided among several indexes, which threads build side by side, and every search asks all of them. Each
is smaller and holds only a share of the nearest rows, so that it is asked for fewer and searched less broadly.

Source      Y. Malkov and D. Yashunin, Efficient and robust approximate nearest neighbor search using hierarchical
            navigable small world graphs, IEEE TPAMI 42, 2020
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kernelweave.foundation.array_types import Array, Ints
from kernelweave.foundation.errors import MissingPackageError
from kernelweave.foundation.registry import package

#: Fewer rows than this are compared with all.
FEW_ROWS = 1000
# Links of a row in every layer, rows in hand while one is entered, and the least of them during a search.
LINKS = 16
BUILD_BREADTH = 60
SEARCH_BREADTH = 32
# Bytes of the links of a row in all layers, with what tells where they are.
LINKED_BYTES = 8 * LINKS + 24
# Rows that are rounded to single precision at a time.
ROUNDED_ROWS = 10_000
# Rows in hand during a search for each one that is wanted.
BREADTH_PER_NEIGHBOR = 3
#: Rows beyond which there are several indexes, and the most of them. Four of 50,000 rows of 30 columns took 7 s to
#: build on one thread, one of 200,000 took 12; but the time of a search grows with their number.
PART_ROWS = 50_000
MOST_PARTS = 8
# Each of several indexes is asked for so many standard deviations more than its mean share of the nearest rows.
SPREAD = 3.0
# Rows of one of several indexes that is searched as broadly as one alone. Breadth grows with the root of the rows: 93
# to 95 % of the neighbours of 100,000 to 300,000 rows of 30 columns were found so, in two to six indexes.
BROAD_ROWS = 150_000


def index_count(n: int) -> int:
    """Return among how many indexes so many rows are divided."""
    return min(MOST_PARTS, -(-n // PART_ROWS))


def asked_of_each(count: int, parts: int) -> int:
    """Return how many rows each of several indexes is asked for; since rows are drawn, hardly any has more of them."""
    mean = count / parts
    return min(count, int(np.ceil(mean + SPREAD * np.sqrt(mean * (1.0 - 1.0 / parts)))))


def index_bytes(n: int, width: int) -> float:
    """Return the bytes that indexes of all rows of a table take while they are built."""
    return float(n) * (2 * 4 * width + LINKED_BYTES)


def build_index(table: Array, order: Ints) -> Any:
    """Return the index of some rows of a table, entered in this order."""
    faiss = library()
    rows = np.empty((len(order), table.shape[1]), dtype=np.float32)
    for start in range(0, len(order), ROUNDED_ROWS):  # without a copy of all in double precision
        part = slice(start, start + ROUNDED_ROWS)
        rows[part] = table[order[part]]
    if len(rows) < FEW_ROWS:
        index = faiss.IndexFlatL2(rows.shape[1])
    else:
        index = faiss.IndexHNSWFlat(rows.shape[1], LINKS)
        index.hnsw.efConstruction = BUILD_BREADTH
    with _one_thread(faiss):
        index.add(rows)
    return index


def search_index(index: Any, rows: Array, count: int, parts: int = 1) -> Ints:
    """Return the places of the nearest rows of the index, nearest first; -1 where fewer were reached.

    If the index is one of several ``parts``, these are as many as it may have of the ``count`` nearest.
    """
    faiss = library()
    asked = asked_of_each(count, parts)
    share = 1.0 if parts == 1 else float(np.sqrt(index.ntotal / BROAD_ROWS))
    breadth = max(asked, int(np.ceil(share * max(SEARCH_BREADTH, BREADTH_PER_NEIGHBOR * count))))
    options = {"params": faiss.SearchParametersHNSW(efSearch=breadth)} if hasattr(index, "hnsw") else {}
    with _one_thread(faiss):
        _, places = index.search(np.ascontiguousarray(rows, dtype=np.float32), asked, **options)
    return np.asarray(places, dtype=np.intp)


def packed(index: Any) -> Array:
    """Return an index as bytes that can travel."""
    return np.asarray(library().serialize_index(index))


def unpacked(content: Array) -> Any:
    """Return the index of such bytes."""
    return library().deserialize_index(content)


def library() -> Any:
    """Return Faiss, or say how to get it."""
    try:
        return package("faiss")
    except ImportError as error:
        raise MissingPackageError(
            "neighbor_search='approximate' needs Faiss, which is not installed: install kernelweave[neighbors], or "
            "use neighbor_search='exact'."
        ) from error


@contextmanager
def _one_thread(faiss: Any) -> Iterator[None]:
    """Keep the loops that this thread starts in Faiss to one thread; the earlier number comes back."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
