"""An index of rows that finds nearly all nearest ones, by the library Faiss (extra ``neighbors``).

Hierarchical navigable small worlds: a graph of the rows in several layers that a search walks along. Rows are entered
one after the other on one thread, since several would decide by chance who is joined to whom; searches do not disturb
each other and may run side by side. The same order of rows gives the same index and the same answers at any number of
threads. Few rows are compared with all, which is exact but for single precision.

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
# Rows in hand during a search for each one that is wanted.
BREADTH_PER_NEIGHBOR = 3


def build_index(rows: Array) -> Any:
    """Return the index of some rows, entered in their order."""
    faiss = library()
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    if len(rows) < FEW_ROWS:
        index = faiss.IndexFlatL2(rows.shape[1])
    else:
        index = faiss.IndexHNSWFlat(rows.shape[1], LINKS)
        index.hnsw.efConstruction = BUILD_BREADTH
    with _one_thread(faiss):
        index.add(rows)
    return index


def search_index(index: Any, rows: Array, count: int) -> Ints:
    """Return the places of the nearest rows of the index, nearest first; -1 where fewer were reached."""
    faiss = library()
    breadth = max(SEARCH_BREADTH, BREADTH_PER_NEIGHBOR * count)
    options = {"params": faiss.SearchParametersHNSW(efSearch=breadth)} if hasattr(index, "hnsw") else {}
    with _one_thread(faiss):
        _, places = index.search(np.ascontiguousarray(rows, dtype=np.float32), count, **options)
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
