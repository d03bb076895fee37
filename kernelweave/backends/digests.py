"""Digests of many dense rows on this machine, by compiled loops laid over threads."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelweave.foundation.array_types import Ints
from kernelweave.foundation.threads import for_ranges

#: Fewer rows are left to the standard library, which hashes them before the loops are loaded.
FEW_ROWS = 10_000
# Rows that a thread takes at a time, and the numbers that hashing an entry costs as much as.
DIGESTED_ROWS = 1024
HASHING = 16


def dense_digests(blocks: Sequence[Any]) -> Ints | None:
    """Return the digests of rows of tables side by side, None of few rows and of other tables than dense ones.

    They are those of ``kernelweave.inputs.row_digests``.
    """
    tables = all(isinstance(block, np.ndarray) and block.dtype == np.float64 for block in blocks)
    if not blocks or not tables or len(blocks[0]) < FEW_ROWS or sys.byteorder != "little":
        return None
    from kernelweave.backends.compiled.digests import row_digests

    n = len(blocks[0])
    widths = np.array([block.shape[1] for block in blocks])
    out = np.empty(n, dtype=np.int64)

    def work(lo: int, hi: int) -> None:
        rows = np.hstack([block[lo:hi] for block in blocks])
        rows[np.isnan(rows)] = np.nan  # there are many NaN, and they are all the same here
        row_digests(rows, rows.view(np.uint64), widths, out[lo:hi])

    for_ranges(work, n, width=DIGESTED_ROWS, elements=HASHING * n * int(widths.sum()))
    return out
