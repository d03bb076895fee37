"""Sparse features on a device: few entries in a row, as texts have them. A table is never made dense as a whole.

Products with thin dense blocks go by the entries alone. Kernels between pairs of rows need inner products of sparse
rows with sparse rows: some of the rows at a time are made dense for that.
"""

import warnings
from typing import Any

import numpy as np
import torch

from kernelweave.backends.torch.array import TorchArray, as_tensor, ranges
from kernelweave.foundation.array_types import Array, Ints

# Numbers of the rows that are made dense together: 512 MiB.
DENSE_AT_ONCE = 2**26
# Bytes of an entry: a float64 and the number of its column.
ENTRY_BYTES = 16


class Rows:
    """Rows of few entries on a device, in double precision: those of a table, a range of them, or some."""

    def __init__(self, ends: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, width: int) -> None:
        self._ends = ends
        self._columns = columns
        self._values = values
        self._known: Ints | None = None
        self.shape = (len(ends) - 1, width)

    @classmethod
    def of(cls, entries: Any, device: torch.device) -> "Rows":
        """Return a table of the host on a device."""
        ends = as_tensor(entries.indptr, device, torch.int64)
        columns = as_tensor(entries.indices, device, torch.int64)
        return cls(ends, columns, as_tensor(entries.data, device, torch.float64), entries.shape[1])

    @property
    def device(self) -> torch.device:
        """Where the entries are."""
        return self._values.device

    @property
    def is_cuda(self) -> bool:
        """Whether that is a GPU."""
        return bool(self._values.is_cuda)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | torch.Tensor) -> "Rows":
        """Return a range of rows, or chosen ones."""
        if isinstance(rows, slice):
            lo, hi, step = rows.indices(len(self))
            if step != 1:
                return self[torch.arange(lo, hi, step, device=self.device)]
            first = int(self._host_ends[lo])
            last = int(self._host_ends[max(lo, hi)])
            ends = self._ends[lo : max(lo, hi) + 1] - first
            return Rows(ends, self._columns[first:last], self._values[first:last], self.shape[1])
        starts = self._ends[rows]
        counts = self._ends[rows + 1] - starts
        ends = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        places = torch.arange(int(ends[-1]), device=self.device)
        places += torch.repeat_interleave(starts - ends[:-1], counts, output_size=len(places))
        return Rows(ends, self._columns[places], self._values[places], self.shape[1])

    def squared_lengths(self) -> torch.Tensor:
        """Return the squared length of every row."""
        return self._sums(self._values.square())

    def times(self, right: torch.Tensor) -> torch.Tensor:
        """Return the product with a dense matrix."""
        return self._csr(self._values) @ right.contiguous()

    def inner(self, others: "Rows") -> torch.Tensor:
        """Return the inner products with other rows; some of these at a time are made dense."""
        parts = []
        for lo, hi in ranges(len(others), max(1, DENSE_AT_ONCE // max(self.shape[1], 1))):
            parts.append(self.times(others[lo:hi]._dense_columns()))
        return torch.cat(parts, dim=1) if parts else self._values.new_zeros(len(self), 0)

    def products_with_own(self, vectors: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """Return the inner product of every row with the one of the vectors that is chosen for it."""
        return self._sums(self._values * vectors[chosen[self._row_of_entry()], self._columns])

    def _dense_columns(self) -> torch.Tensor:
        """Return the rows as the columns of a dense matrix."""
        dense = self._values.new_zeros(self.shape[1], len(self))
        dense[self._columns, self._row_of_entry()] = self._values
        return dense

    def _row_of_entry(self) -> torch.Tensor:
        rows = torch.arange(len(self), device=self.device)
        return torch.repeat_interleave(rows, self._ends.diff(), output_size=len(self._values))

    def _sums(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum of what belongs to the entries of every row."""
        return (self._csr(values) @ values.new_ones(self.shape[1], 1))[:, 0]

    def _csr(self, values: torch.Tensor) -> torch.Tensor:
        with warnings.catch_warnings():  # that torch may still change these tensors
            warnings.simplefilter("ignore")
            return torch.sparse_csr_tensor(self._ends, self._columns, values, size=self.shape, check_invariants=False)

    @property
    def _host_ends(self) -> Ints:
        if self._known is None:
            self._known = self._ends.cpu().numpy()
        return self._known


class SparseTable:
    """Sparse features on a device. The entries also stay on the host, for blocks that are asked for."""

    def __init__(self, entries: Any, device: torch.device) -> None:
        self.entries = entries
        if not entries.has_canonical_format:  # entries of one place would overwrite each other in a dense row
            self.entries = entries.copy()
            self.entries.sum_duplicates()
        self.shape: tuple[int, int] = entries.shape
        self.rows = Rows.of(self.entries, device)
        self._columns: Rows | None = None

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def columns(self) -> Rows:
        """The transpose, as rows of its own."""
        if self._columns is None:
            self._columns = Rows.of(self.entries.T.tocsr(), self.rows.device)
        return self._columns

    def at(self, samples: Ints) -> Array:
        """Return a few rows as a dense array of the host."""
        return np.asarray(self.entries[samples].toarray(), dtype=np.float64)

    def squared_lengths(self) -> TorchArray:
        """Return the squared length of every row."""
        return TorchArray(self.rows.squared_lengths())

    @staticmethod
    def bytes_needed(entries: Any) -> int:
        """Return the bytes that a table takes, by rows and by columns."""
        return 2 * ENTRY_BYTES * int(entries.nnz) + 8 * sum(entries.shape)
