"""Data without clusters that look like given data: what a clustering has to beat.

table     one Gaussian with the covariance of the columns, within and across views (the same random matrix serves all
          views), then every column bent to the shape that it has (skew, heavy or light tails, steps), but never to two
          modes
kernel    a table of vectors whose inner products are the kernel goes the way of a table
counts    entries shuffled: every row keeps its values, every column its number of entries, which goes where is chance
graph     edges rewired: every node keeps its number of edges, as far as chance allows, and weights are shuffled
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr, ndtri

from kernelweave.foundation.array_types import Bools, Floats, Ints, Matrix
from kernelweave.kernels.representations import entries

# Quantiles from which the shape of a column is read, and their places under the Gaussian.
OUTER = 0.975
INNER = 0.9
Z_OUTER = float(ndtri(OUTER))
Z_INNER = float(ndtri(INNER))
# A column is taken as it is where one value has this share, or where it has few values.
PILED = 0.2
FEW_VALUES = 11
# Bounds of skew and of tail weight; beyond them quantiles say too little.
MOST_SKEW = 1.2
HEAVIEST = 0.3
# Eigenvalues of a kernel below this share of the largest are rounding, or negative.
SMALLEST_EIGENVALUE = 1e-10
# Columns that are bent together.
TOGETHER = 64
# Spread of the uniform distribution's outer over its inner quantiles; that of the Gaussian is Z_OUTER / Z_INNER.
UNIFORM_RATIO = (OUTER - 0.5) / (INNER - 0.5)


@dataclass(frozen=True)
class ColumnShapes:
    """The shape of every column, from quantiles: skew and tails, never two modes."""

    kept: Bools  # columns of few values or with a pile of one value: their values are dealt by rank
    skew: Floats
    tails: Floats
    flat: Floats  # 0 Gaussian .. 1 uniform
    values: Floats  # (n, number kept) their sorted values

    @classmethod
    def of(cls, Z: Floats) -> "ColumnShapes":
        """Read the shapes off z-scores."""
        n = len(Z)
        values = np.sort(Z, axis=0)
        upper = _quantile(values, INNER) - _quantile(values, 0.5)
        lower = _quantile(values, 0.5) - _quantile(values, 1 - INNER)
        outer = _quantile(values, OUTER) - _quantile(values, 1 - OUTER)
        inner = upper + lower
        noise = 1.7 / np.sqrt(n)  # standard error of these estimates
        with np.errstate(divide="ignore", invalid="ignore"):
            skew = np.clip(
                np.nan_to_num(np.log(upper / lower) / Z_INNER, posinf=0.0, neginf=0.0), -MOST_SKEW, MOST_SKEW
            )
            skew = np.where(np.abs(skew) < 2 * noise, 0.0, skew)
            bent = np.where(skew == 0.0, 1e-3, skew)
            scale_outer = bent * outer / (np.exp(bent * Z_OUTER) - np.exp(-bent * Z_OUTER))
            scale_inner = bent * inner / (np.exp(bent * Z_INNER) - np.exp(-bent * Z_INNER))
            tails = 2 * np.log(scale_outer / scale_inner) / (Z_OUTER**2 - Z_INNER**2)
            ratio = outer / inner
        tails = np.clip(np.nan_to_num(tails, posinf=0.0, neginf=0.0), 0.0, HEAVIEST)
        tails = np.where(tails < 2 * noise, 0.0, tails)
        gaussian_ratio = Z_OUTER / Z_INNER
        flat = np.clip(np.nan_to_num((gaussian_ratio - ratio) / (gaussian_ratio - UNIFORM_RATIO)), 0.0, 1.0)
        flat = np.where((flat < 4 * noise) | (tails > 0), 0.0, flat)
        kept = _piled(values)
        return cls(kept, skew, tails, flat, values[:, kept])

    def bend(self, Z: Floats) -> Floats:
        """Return Gaussian columns bent to these shapes, in z-scores; they are overwritten."""
        spread = Z.std(axis=0)
        _divide(Z, spread)
        for flat in _some_together(np.flatnonzero(~self.kept & (self.flat > 0))):
            uniform = np.sqrt(3.0) * (2.0 * ndtr(Z[:, flat]) - 1.0)
            Z[:, flat] += self.flat[flat] * (uniform - Z[:, flat])
        for bent in _some_together(np.flatnonzero(~self.kept & ((self.skew != 0) | (self.tails != 0)))):
            y = np.clip(Z[:, bent], -4.0, 4.0)
            g = np.where(self.skew[bent] == 0, 1e-6, self.skew[bent])
            y = np.expm1(g * y) / g * np.exp(0.5 * self.tails[bent] * y * y)
            Z[:, bent] = (y - y.mean(axis=0)) / y.std(axis=0)
        for place, column in enumerate(np.flatnonzero(self.kept)):
            Z[np.argsort(Z[:, column], kind="stable"), column] = self.values[:, place]
        return Z


class StructurelessTable:
    """Tables of one mode with the covariance and the columns' shapes of a table."""

    def __init__(self, X: Floats) -> None:
        self._center = X.mean(axis=0)
        spread = X.std(axis=0)
        self._spread = spread
        Z = X - self._center
        _divide(Z, spread)
        del X
        self._shapes = ColumnShapes.of(Z)
        scores = shrunk(Z)
        self._scores = scores / np.sqrt(len(scores))  # scaled once, not for every table

    def draw(self, mixing: Floats, rng: np.random.Generator) -> Floats:
        """Return a table; ``mixing`` is an n x n matrix of standard normal numbers, the same for all views."""
        Z = self._shapes.bend(mixing @ self._scores)
        Z *= self._spread
        Z += self._center
        return Z


class StructurelessKernel:
    """Kernels of vectors of one mode."""

    def __init__(self, K: Floats) -> None:
        self._table = StructurelessTable(_vectors_of(K))

    def draw(self, mixing: Floats, rng: np.random.Generator) -> Floats:
        """Return a kernel matrix."""
        X = self._table.draw(mixing, rng)
        return np.asarray(X @ X.T)


class StructurelessCounts:
    """Sparse tables whose entries are shuffled."""

    def __init__(self, X: Matrix) -> None:
        self._entries = sp.coo_array(entries(X))

    def draw(self, mixing: Floats, rng: np.random.Generator) -> sp.csr_array:
        """Return a table; entries that fall into the same place add up."""
        order = rng.permutation(self._entries.nnz)
        places = (self._entries.row, self._entries.col[order])
        return sp.csr_array((self._entries.data, places), shape=self._entries.shape)


class StructurelessGraph:
    """Graphs with the degrees of a graph and edges at random."""

    def __init__(self, A: sp.csr_array) -> None:
        self._edges = sp.coo_array(sp.triu(A, 1))
        self._n = A.shape[0]

    def draw(self, mixing: Floats, rng: np.random.Generator) -> sp.csr_array:
        """Return a graph; loops and double edges that chance makes are left out."""
        ends = np.concatenate([self._edges.row, self._edges.col])
        rng.shuffle(ends)
        half = len(ends) // 2
        first = np.minimum(ends[:half], ends[half : 2 * half])
        second = np.maximum(ends[:half], ends[half : 2 * half])
        pairs, place = np.unique(first * np.int64(self._n) + second, return_index=True)
        weights = rng.permutation(self._edges.data)[:half][place]
        proper = pairs // self._n != pairs % self._n
        shape = (self._n, self._n)
        A = sp.csr_array((weights[proper], (pairs[proper] // self._n, pairs[proper] % self._n)), shape=shape)
        return sp.csr_array(A + A.T)


Structureless = StructurelessTable | StructurelessKernel | StructurelessCounts | StructurelessGraph


def _vectors_of(K: Floats) -> Floats:
    """Return vectors that have a kernel's values as their products."""
    symmetric = K + K.T
    symmetric *= 0.5
    values, vectors = np.linalg.eigh(symmetric)
    values = np.maximum(values, 0.0)
    kept = values > SMALLEST_EIGENVALUE * values[-1]
    kept[-1] = True  # a kernel of zeros has one column, of zeros
    vectors = vectors[:, kept]
    vectors *= np.sqrt(values[kept])
    return np.asarray(vectors)


def _some_together(columns: Ints) -> list[Ints]:
    """Return columns in groups of about ``TOGETHER``: work on all of them would take several tables."""
    return np.array_split(columns, -(-len(columns) // TOGETHER)) if len(columns) else []


def _divide(Z: Floats, spread: Floats) -> None:
    """Divide columns by their spread in place; columns without one become zeros."""
    np.divide(Z, spread, out=Z, where=spread > 0)
    Z[:, ~(spread > 0)] = 0.0


def _quantile(values: Floats, share: float) -> Floats:
    """Return a quantile of sorted columns."""
    return np.asarray(values[round(share * (len(values) - 1))])


def _piled(values: Floats) -> Bools:
    """Return the columns that have few values, or one value with a large share, from sorted columns."""
    n, d = values.shape
    piled = np.zeros(d, dtype=bool)
    for column in range(d):
        breaks = np.flatnonzero(np.diff(values[:, column]) > 1e-12)
        runs = np.diff(np.concatenate([[-1], breaks, [n - 1]]))
        piled[column] = len(runs) < FEW_VALUES or runs.max() > PILED * n
    return piled


def shrunk(Z: Floats) -> Floats:
    """Return centred columns, changed so that their covariance is shrunk, after Ledoit and Wolf, to equal variances.

    The directions stay, their variances come closer to the mean: combinations of the rows then have the covariance that
    the columns probably have, and columns of several tables that go together still do, as independent noise would not.
    A table with more columns than rows has no variance beyond the space of its rows.
    """
    n, d = Z.shape
    gram = Z.T @ Z if d <= n else Z @ Z.T
    gram /= n
    values, vectors = np.linalg.eigh(gram)
    del gram
    kept = values > SMALLEST_EIGENVALUE * values[-1]
    if not kept.any():
        return Z
    values = values[kept]
    vectors = vectors[:, kept]
    share = _shrinkage(Z, values)
    factors = np.sqrt((1.0 - share) + share * values.mean() / values)
    change = (vectors * factors) @ vectors.T
    return np.asarray(Z @ change if d <= n else change @ Z)


def _shrinkage(Z: Floats, values: Floats) -> float:
    """Return how far the covariance of centred columns is shrunk to equal variances, from its eigenvalues above zero.

    Ledoit and Wolf, J. Multivariate Analysis 2004; scikit-learn's forms the covariance, which wide tables do not allow.
    """
    n, d = Z.shape
    squares = float(values @ values)
    spread = squares - float(values.sum()) ** 2 / d
    lengths = np.einsum("ij,ij->i", Z, Z)
    error = (float(lengths @ lengths) / n - squares) / n
    return float(np.clip(error / spread, 0.0, 1.0)) if spread > 0 else 1.0
