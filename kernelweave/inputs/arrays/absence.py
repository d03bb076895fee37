"""Samples that are absent from a view, and cells that were not measured.

absent     a row of NaN throughout: the sample has nothing in this view. In a kernel or graph row and column are NaN. In
           a sparse view a row is absent where all its stored values are NaN; a row that stores none is observed
cell       any other NaN. It is an error unless ``missing`` says what to do: "drop" makes the sample absent from the
           view, "mean", "median" and "knn" fill the cell from the training samples that are there (scikit-learn's
           imputers). Kernels that compare samples by the columns that both have take cells as they are
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.impute import KNNImputer, SimpleImputer

from kernelweave.foundation.array_types import Array, Bools, Floats, Ints
from kernelweave.foundation.errors import ViewError
from kernelweave.foundation.memory import FREE, PASSING, rows_within

MISSING = ("error", "drop", "mean", "median", "knn")
#: Kernels that compare samples by the columns that both have.
COMPARE_CELLS = ("gower",)
#: What becomes of cells in views with such a kernel: they stay.
KEEP = "keep"
#: Neighbours that a cell is filled from.
FILLING_NEIGHBORS = 5
# Bytes of a pair while neighbours are found: scikit-learn's distance, what it is corrected by, and its place in order.
PAIR_BYTES = 40
# Copies of the rows that are made for that: as they are kept, read, filled, and without NaN.
FILLING_COPIES = 6
# Two views should share at least this many samples, and this share of the smaller one.
FEW_SHARED = 10
SMALL_SHARE = 0.05


@dataclass(frozen=True)
class Holes:
    """What is not there in one view."""

    absent: Bools  # (n,) samples without anything
    cells: Ints  # (n,) number of NaN in the rows of the others

    @property
    def any_cell(self) -> bool:
        """Whether a row is NaN in part."""
        return bool(self.cells.any())


def find_holes(block: Array, known_columns: Bools | None = None) -> Holes | None:
    """Return what is not there in a view, None where it is complete.

    ``known_columns`` says for the values with training samples, which a kernel's new rows hold, which are there.
    """
    if sp.issparse(block):
        return _sparse_holes(block)
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isnan(block.sum(dtype=np.float64)):  # one pass without a temporary; infinities were refused before
            return None
    nan = np.isnan(block)
    absent = np.asarray(nan.all(axis=1))
    expected = _columns_of_absent(nan, absent, known_columns)
    cells = nan.sum(axis=1) if expected is None else nan[:, ~expected].sum(axis=1)
    cells[absent] = 0
    return Holes(absent, cells)


def _columns_of_absent(nan: Bools, absent: Bools, known_columns: Bools | None) -> Bools | None:
    """Return the columns that are NaN because a sample of a kernel is absent, None where it is not a kernel."""
    if known_columns is not None and len(known_columns) == nan.shape[1]:
        return ~known_columns if nan[:, ~known_columns].all() else None
    if nan.shape[0] == nan.shape[1] and absent.any() and nan[:, absent].all():
        return absent
    return None


def _sparse_holes(block: sp.csr_array) -> Holes | None:
    nan = np.isnan(block.data)
    if not nan.any():
        return None
    stored = np.diff(block.indptr)
    rows = np.repeat(np.arange(block.shape[0]), stored)
    missing = np.bincount(rows[nan], minlength=block.shape[0])
    absent = (missing == stored) & (stored > 0)
    return Holes(absent, np.where(absent, 0, missing))


@dataclass(frozen=True)
class CellFiller:
    """How the missing cells of one view are filled, learned from the training samples."""

    kind: str  # "mean", "median" or "knn"
    known: Floats  # (1, d) statistics, or for "knn" the training rows

    @classmethod
    def fitted(cls, kind: str, rows: Floats, name: str) -> "CellFiller":
        """Learn from the rows that are there."""
        empty = np.flatnonzero(np.isnan(rows).all(axis=0))
        if len(empty):
            raise ViewError(
                f"View {name!r} has no value at all in column {empty[0]} ({len(empty)} such columns in all), so "
                f"missing={kind!r} cannot fill it. Remove these columns."
            )
        if kind == "knn":
            return cls(kind, rows.copy())
        return cls(kind, SimpleImputer(strategy=kind).fit(rows).statistics_[None])

    def filled(self, rows: Floats, memory_limit: float | None = None) -> Floats:
        """Return the rows with their missing cells filled; where neighbours are searched, within so many MiB."""
        if self.kind == "knn":
            with sklearn.config_context(working_memory=self._working_memory(rows, memory_limit)):
                return np.asarray(KNNImputer(n_neighbors=FILLING_NEIGHBORS).fit(self.known).transform(rows))
        return np.where(np.isnan(rows), self.known, rows)

    def _working_memory(self, rows: Floats, memory_limit: float | None) -> float:
        """Return the MiB of distances that scikit-learn computes at a time: whole rows, at least one."""
        usual: float = sklearn.get_config()["working_memory"]
        if memory_limit is None:
            return usual
        copies = FILLING_COPIES * rows.nbytes / 2**20
        room = max(FREE, PASSING * memory_limit, memory_limit - copies)
        at_once = rows_within(room, PAIR_BYTES * len(self.known), len(rows))
        return min(usual, at_once * len(self.known) * 8 / 2**20)


def without_cells(
    name: str, block: Array, holes: Holes, missing: str, filler: CellFiller | None, memory_limit: float | None = None
) -> tuple[Array, Bools, CellFiller | None]:
    """Return a view without missing cells, which samples it has, and what filled it (new where ``filler`` is None).

    ``memory_limit`` in MiB is that of a search for neighbours that cells are filled from; None for scikit-learn's own.
    """
    present = ~holes.absent
    if missing == KEEP or not holes.any_cell:
        return block, present, filler
    if missing == "error":
        rows = int(np.count_nonzero(holes.cells))
        raise ViewError(
            f"View {name!r} contains NaN in {int(holes.cells.sum()):,} cells of {rows:,} rows. A row that is NaN "
            "throughout means that the sample is absent; missing='mean', 'median' or 'knn' fills single cells, and "
            "missing='drop' removes these samples from the view."
        )
    if missing == "drop":
        present &= holes.cells == 0
        return _emptied(block, ~present), present, filler
    if sp.issparse(block):
        raise ViewError(
            f"View {name!r} is sparse and contains NaN in some rows: missing={missing!r} fills dense views only. Use "
            "missing='drop', or pass the view dense."
        )
    if filler is None:
        filler = CellFiller.fitted(missing, block[present].astype(np.float64, copy=False), name)
    filled = np.array(block, dtype=np.float64)  # what fills cells is computed in it
    filled[present] = filler.filled(filled[present], memory_limit)
    return filled, present, filler


def _emptied(block: Array, absent: Bools) -> Array:
    """Return a copy whose absent samples are NaN throughout."""
    if not sp.issparse(block):
        emptied = np.array(block, dtype=np.float64)
        emptied[absent] = np.nan
        return emptied
    emptied = sp.csr_array(block, copy=True)
    emptied.data[np.repeat(absent, np.diff(emptied.indptr))] = np.nan
    return emptied


def absent_rows(block: Array) -> Bools:
    """Return which samples a view lacks."""
    holes = find_holes(block)
    return np.zeros(block.shape[0], dtype=bool) if holes is None else holes.absent


# --- Whether views can be related -------------------------------------------------------------------------------------


def check_observed(observed: Bools, names: Sequence[str]) -> None:
    """Raise ViewError for samples without any view, for views without samples, and for views that share no sample."""
    nowhere = np.flatnonzero(~observed.any(axis=1))
    if len(nowhere):
        shown = ", ".join(map(str, nowhere[:5].tolist())) + (", ..." if len(nowhere) > 5 else "")
        raise ViewError(
            f"{len(nowhere)} of {len(observed)} samples are absent from every view (rows {shown}): all their values "
            "are NaN. Remove them."
        )
    counts = observed.sum(axis=0)
    for name, count in zip(names, counts.tolist(), strict=True):
        if count < 2:
            raise ViewError(
                f"View {name!r} has {count} sample(s); all others are absent (NaN throughout). A view needs at least "
                "2: leave it out."
            )
    parts = connected_views(observed)
    if len(parts) > 1:
        told = " and ".join("{" + ", ".join(repr(names[v]) for v in part) + "}" for part in parts[:3])
        raise ViewError(
            f"The views split into {told}, which share no sample, so their clusters cannot be matched. "
            "Cluster them separately, or add samples that are in both."
        )


def check_new_samples(observed: Bools) -> None:
    """Raise ViewError for new samples that are in no view."""
    nowhere = np.flatnonzero(~observed.any(axis=1))
    if len(nowhere):
        raise ViewError(
            f"{len(nowhere)} of {len(observed)} samples are absent from every view (the first is row {nowhere[0]}): "
            "nothing is known about them. Remove them."
        )


def weak_links(observed: Bools, names: Sequence[str]) -> list[str]:
    """Return a sentence for every view that shares few samples with each of the others."""
    shared = observed.T.astype(np.int64) @ observed.astype(np.int64)
    counts = np.diagonal(shared)
    messages = []
    for v, name in enumerate(names):
        others = np.delete(shared[v], v)
        if len(others) == 0:
            continue
        nearest = int(others.max())
        if nearest < max(FEW_SHARED, SMALL_SHARE * counts[v]) and nearest < counts[v]:
            messages.append(
                f"View {name!r} shares at most {nearest} of its {counts[v]} samples with any other view: its clusters "
                "can hardly be matched with theirs."
            )
    return messages


def connected_views(observed: Bools) -> list[list[int]]:
    """Return the groups of views that samples connect."""
    shared = observed.T.astype(np.int64) @ observed.astype(np.int64) > 0
    n_parts, part = sp.csgraph.connected_components(sp.csr_array(shared), directed=False)
    return [np.flatnonzero(part == p).tolist() for p in range(n_parts)]


def takes_absent(estimator: Any) -> bool:
    """Return whether an estimator takes samples that are absent from some views."""
    return bool(getattr(estimator, "_takes_absent", False))


def takes_missing_cells(kernel: Any) -> bool:
    """Return whether a kernel compares samples by the columns that both have."""
    return isinstance(kernel, str) and kernel in COMPARE_CELLS


def keeps_nan(estimator: Any) -> bool:
    """Return whether an estimator leaves NaN where it is, as scalers do."""
    return bool(getattr(estimator, "_keeps_nan", False))
