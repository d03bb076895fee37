"""Representations of a view: how its rows are compared, decided from the values alone.

Every view is read in one or two ways, and the neighbour graphs of both are averaged:

table of numbers     z-scores, where the length of a row counts, and rows of unit length, where it does not: Hellinger
                     (square roots of shares of the row's total) for values >= 0, scaled z-scores else. A table of few
                     columns is read in the first way only: unit length takes away one of its few dimensions
counts or links      rows of square roots, unit length, with and without rare columns counting more (idf); a row
                     without entries is absent

Nothing here sees labels. Which reading suits a set is not known beforehand; the mean of both was better than either on
the multi-view sets of the benchmarks, and so was the limit of columns chosen.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp

from kernelweave.foundation.array_types import Array, Floats, Matrix

ViewKind = Literal["table", "counts"]

#: Tables with fewer columns are not scaled to unit length: a unit row has one dimension less, and among so few columns
#: that may be the one that tells clusters apart (the radius of rings, the height of moons).
FEW_COLUMNS = 10
# Counts or links: at most this share of entries is not zero, the second where there are so many columns or more.
COUNTS_FILLED = 0.1
COUNTS_FILLED_WIDE = 0.5
WIDE = 1000
# Share of the sum of squares that may come from negative values: some sources subtract from frequent words.
NEGATIVE_SHARE = 0.05
# Values that are added up, or divided, at a time: 1 MiB of them.
SUMMED = 2**17
# A column whose spread is below this share of the largest value is constant.
CONSTANT = 1e-12


def view_kind(X: Matrix) -> ViewKind:
    """Return whether a view holds counts (or links: practically no negative values, mostly zeros) or other numbers."""
    return kind_by_sums(kind_sums(entries(X).data if sp.issparse(X) else X), X.shape)


def kind_sums(values: Array) -> Floats:
    """Return what tells the kind of a view and can be added up: entries that are not zero, squares, negative ones."""
    sums = np.zeros(3)
    step = max(1, SUMMED // max(1, values.size // max(1, len(values))))
    for start in range(0, len(values), step):
        some = np.asarray(values[start : start + step], dtype=np.float64)
        sums += [np.count_nonzero(some), np.square(some).sum(), np.square(np.minimum(some, 0.0)).sum()]
    return sums


def kind_by_sums(sums: Floats, shape: tuple[int, int]) -> ViewKind:
    """Return the kind of a view of this shape."""
    filled, squares, negative = sums
    if squares == 0.0:
        return "table"
    limit = COUNTS_FILLED_WIDE if shape[1] >= WIDE else COUNTS_FILLED
    few = filled / (shape[0] * shape[1]) < limit
    return "counts" if few and negative <= NEGATIVE_SHARE * squares else "table"


@dataclass(frozen=True)
class Standardized:
    """z-scores of the training columns; constant columns become zero."""

    center: Floats
    factor: Floats
    unit: bool  # rows scaled to unit length

    @property
    def name(self) -> str:
        """Name for people."""
        return "z-scores of unit length" if self.unit else "z-scores"

    def transform(self, X: Matrix) -> Matrix:
        """Return the rows as they are compared."""
        Z = np.subtract(X.toarray() if sp.issparse(X) else X, self.center, dtype=np.float64)
        Z *= self.factor
        return _unit_rows(Z) if self.unit else Z


@dataclass(frozen=True)
class Hellinger:
    """Square roots of the shares of a row's total, centred, unit length."""

    center: Floats

    name = "Hellinger"

    def transform(self, X: Matrix) -> Matrix:
        """Return the rows as they are compared; a new value below zero counts as zero."""
        Z = root_shares(_dense(X))
        Z -= self.center
        return _unit_rows(Z)


@dataclass(frozen=True)
class Counts:
    """Square roots times the weight of the column, rows of unit length, sparse."""

    column_weights: Floats

    @property
    def name(self) -> str:
        """Name for people."""
        return "cosine" if (self.column_weights == 1.0).all() else "cosine with idf"

    def transform(self, X: Matrix) -> Matrix:
        """Return the rows as they are compared; values below zero count as zero."""
        Z = entries(X)
        Z.data = np.sqrt(np.maximum(Z.data, 0.0))
        Z.data *= self.column_weights[Z.indices]
        Z.eliminate_zeros()
        lengths = np.sqrt(np.asarray(Z.multiply(Z).sum(axis=1)).ravel())
        Z.data /= np.repeat(lengths, np.diff(Z.indptr))
        return Z


Representation = Standardized | Hellinger | Counts


def representations(X: Matrix, kind: ViewKind) -> tuple[Representation, ...]:
    """Return how the rows of a view are compared, fitted on its training samples."""
    if kind == "counts":
        return (Counts(_inverse_frequencies(X)), Counts(np.ones(X.shape[1])))
    table = _dense(X)
    plain = standardized(table.mean(axis=0), table.std(axis=0), float(np.abs(table).max()))
    if X.shape[1] < FEW_COLUMNS:
        return (plain,)
    if table.min() < 0:
        return (plain, Standardized(plain.center, plain.factor, unit=True))
    return (plain, Hellinger(root_shares(table).mean(axis=0)))


def entries(X: Matrix) -> sp.csr_array:
    """Return a sparse copy of a table that has every entry once, and none that is zero."""
    Z = sp.csr_array(X, dtype=np.float64, copy=True)
    Z.sum_duplicates()
    Z.eliminate_zeros()
    return Z


def standardized(mean: Floats, spread: Floats, largest: float) -> Standardized:
    """Return z-scores by mean and spread of the columns, of which the largest value says which are constant."""
    varies = spread > CONSTANT * max(largest, np.finfo(np.float64).tiny)
    factor = np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)
    return Standardized(mean, factor, unit=False)


def _inverse_frequencies(X: Matrix) -> Floats:
    """Return log((1 + n) / (1 + rows that have the column)) + 1 of every column."""
    present = entries(X)
    rows = np.bincount(present.indices[present.data > 0], minlength=X.shape[1])
    return np.asarray(np.log((1 + X.shape[0]) / (1 + rows)) + 1.0)


def root_shares(X: Floats) -> Floats:
    """Return square roots of the shares of every row's total."""
    X = np.maximum(X, 0.0)
    totals = X.sum(axis=1, keepdims=True)
    np.divide(X, totals, out=X, where=totals > 0)  # rows without a total are zeros
    return np.sqrt(X, out=X)


def _unit_rows(Z: Floats) -> Floats:
    """Return rows divided by their lengths, in place: another table would be a large part of what a fit takes."""
    step = max(1, SUMMED // max(1, Z.shape[1]))
    for start in range(0, len(Z), step):
        some = Z[start : start + step]
        lengths = np.linalg.norm(some, axis=1, keepdims=True)
        np.divide(some, lengths, out=some, where=lengths > 0)
        some[~(lengths[:, 0] > 0)] = 0.0
    return Z


def _dense(X: Matrix) -> Floats:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
