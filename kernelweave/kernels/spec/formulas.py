"""Kernel formulas bound to their parameters: what fills a tile of the kernel matrix.

A formula prepares samples once (``prepare``) and then turns two sets of prepared samples into the dense tile of
kernel values between them (``tile``). Prepared samples are sliceable by row, so any block of the matrix can be
computed alone. Parameters that depend on the training data (a bandwidth rule, local scales) are fixed
when the formula is made, so that new samples meet the same function.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from kernelweave.foundation.array_types import Array, Floats, Matrix
from kernelweave.foundation.errors import KernelError
from kernelweave.foundation.memory import room_beside
from kernelweave.kernels.spec import distances
from kernelweave.kernels.spec.searches import farthest_of_nearest, mib_of

# Entries of samples whose neighbours are searched together: 4 MiB of them.
SEARCHED = 2**19


class Formula(ABC):
    """A kernel function with all its parameters fixed."""

    psd: bool | None = None
    #: True where k(x, x) of one sample differs from k(x, y) of two equal ones (white noise).
    fixes_diagonal: bool = False
    #: MiB of training samples that the formula keeps, beside prepared ones.
    kept_mib: float = 0.0
    #: Whether samples can be prepared a few at a time, and again whenever they are needed, at little cost.
    prepared_anew: bool = False

    def prepare(self, X: Matrix) -> Matrix:
        """Return the samples in the form ``tile`` and ``diag`` take."""
        return X

    @abstractmethod
    def tile(self, X: Matrix, Y: Matrix) -> Array:
        """Return k(x_i, y_j) for prepared samples, a new array."""

    def tile_in_place(self, X: Matrix, Y: Matrix) -> Array:
        """Return the same tile; ``Y`` may be overwritten, which saves a copy of it."""
        return self.tile(X, Y)

    @abstractmethod
    def diag(self, X: Matrix) -> Floats:
        """Return k(x_i, x_i) for prepared samples."""

    def bound(self, X: Matrix) -> float:
        """Return a bound on |k(x, y)| over prepared samples; the diagonal bounds a semidefinite kernel."""
        return float(np.abs(self.diag(X)).max(initial=0.0))


def _inner(X: Matrix, Y: Matrix) -> Floats:
    product: Matrix = X @ Y.T
    return product.toarray() if sp.issparse(product) else product


def _squared_norms(X: Matrix) -> Floats:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)


@dataclass(frozen=True)
class Gaussian(Formula):
    """exp(-gamma ||x - y||^2), of samples moved by ``centre``: distances stay, cancellation does not."""

    gamma: float
    centre: Floats | None
    psd = True
    prepared_anew = True

    def prepare(self, X: Matrix) -> Matrix:
        """Return [sqrt(2 gamma) x, -gamma ||x||^2, 1]: one product then gives the whole exponent."""
        if sp.issparse(X):
            moved = X if self.centre is None else X - self.centre
            half = -self.gamma * _squared_norms(moved)
            last = sp.csr_array(np.column_stack([half, np.ones_like(half)]))  # csr beside csr is joined fastest
            return sp.hstack([moved * np.sqrt(2.0 * self.gamma), last], format="csr")
        n, d = X.shape
        out = np.empty((n, d + 2))
        samples = out[:, :d]
        np.subtract(X, 0.0 if self.centre is None else self.centre, out=samples)
        np.multiply(_squared_norms(samples), -self.gamma, out=out[:, d])
        out[:, d + 1] = 1.0
        samples *= np.sqrt(2.0 * self.gamma)
        return out

    def tile(self, X: Matrix, Y: Matrix) -> Array:
        """Return the exponentials; rounding may push an exponent above 0, where it is cut."""
        d = Y.shape[1] - 2
        swapped = sp.hstack([Y[:, :d], Y[:, [d + 1, d]]]) if sp.issparse(Y) else Y[:, [*range(d), d + 1, d]]
        return self._exponentials(X, swapped)

    def tile_in_place(self, X: Matrix, Y: Matrix) -> Array:
        """Return the exponentials; the last two columns of Y change places."""
        Y[:, -2:] = Y[:, [-1, -2]]
        return self._exponentials(X, Y)

    def _exponentials(self, X: Matrix, swapped: Matrix) -> Array:
        exponent = _inner(X, swapped)
        np.minimum(exponent, 0.0, out=exponent)
        return np.exp(exponent, out=exponent)

    def diag(self, X: Matrix) -> Floats:
        """Return ones."""
        return np.ones(X.shape[0])


@dataclass(frozen=True)
class Polynomial(Formula):
    """(gamma x.y + coef0)^degree."""

    gamma: float
    coef0: float
    degree: float
    prepared_anew = True

    @property
    def psd(self) -> bool | None:  # type: ignore[override]
        """Positive semidefinite for whole degrees and coef0 >= 0."""
        return True if self.coef0 >= 0 and float(self.degree).is_integer() else None

    def tile(self, X: Matrix, Y: Matrix) -> Array:
        """Return the powers."""
        product = _inner(X, Y)
        product *= self.gamma
        product += self.coef0
        return np.power(product, self.degree, out=product)

    def diag(self, X: Matrix) -> Floats:
        """Return (gamma ||x||^2 + coef0)^degree."""
        return (self.gamma * _squared_norms(X) + self.coef0) ** self.degree

    def bound(self, X: Matrix) -> float:
        """Return (gamma max ||x||^2 + |coef0|)^degree."""
        return float((self.gamma * _squared_norms(X).max(initial=0.0) + abs(self.coef0)) ** self.degree)


@dataclass(frozen=True)
class NormalizedPolynomial(Formula):
    """((x.y + t^2) / sqrt((x.x + t^2)(y.y + t^2)))^degree: a power of the cosine between [x, t] and [y, t]."""

    degree: int
    t: float
    psd = True
    prepared_anew = True

    def prepare(self, X: Matrix) -> Matrix:
        """Return [x, t] scaled to unit length."""
        if sp.issparse(X):
            return normalize(sp.hstack([X, np.full((X.shape[0], 1), self.t)], format="csr"))
        out = np.empty((X.shape[0], X.shape[1] + 1))
        out[:, :-1] = X
        out[:, -1] = self.t
        return normalize(out, copy=False)

    def tile(self, X: Matrix, Y: Matrix) -> Array:
        """Return the powers of the cosines."""
        product = _inner(X, Y)
        return np.power(product, self.degree, out=product)

    def diag(self, X: Matrix) -> Floats:
        """Return ones, and zeros for samples of length zero where t is zero."""
        return _squared_norms(X) ** self.degree


@dataclass(frozen=True)
class IntensityHistogram(Formula):
    """exp(-gamma ||I - J||^2) sum_z sqrt(P_z Q_z): likeness of intensities times that of histograms (MSc 5.1).

    The first ``n_intensities`` columns are intensities, the others a histogram, which is divided by its sum.
    """

    gamma: float
    n_intensities: int
    psd = True
    prepared_anew = True

    def prepare(self, X: Matrix) -> Matrix:
        """Return intensities in units of the width, and roots of probabilities."""
        counts = X[:, self.n_intensities :]
        if counts.size and counts.min() < 0:
            raise KernelError(
                f"kernel='intensity_histogram' takes histograms, all entries >= 0; X holds {counts.min():g}."
            )
        totals = counts.sum(axis=1, keepdims=True, dtype=np.float64)
        out = np.zeros(X.shape)
        out[:, : self.n_intensities] = X[:, : self.n_intensities]
        out[:, : self.n_intensities] *= np.sqrt(self.gamma)
        shares = out[:, self.n_intensities :]
        np.divide(counts, totals, out=shares, where=totals > 0)
        np.sqrt(shares, out=shares)
        return out

    def tile(self, X: Matrix, Y: Matrix) -> Array:
        """Return the products."""
        m = self.n_intensities
        values = np.exp(-distances.between(X[:, :m], Y[:, :m], "sqeuclidean"))
        values *= _inner(X[:, m:], Y[:, m:])
        return values

    def diag(self, X: Matrix) -> Floats:
        """Return ones, and zeros for empty histograms."""
        return _squared_norms(X[:, self.n_intensities :])


@dataclass(frozen=True)
class Sigmoid(Formula):
    """tanh(gamma x.y + coef0); not positive semidefinite in general."""

    gamma: float
    coef0: float
    prepared_anew = True

    def tile(self, X: Matrix, Y: Matrix) -> Array:
        """Return the hyperbolic tangents."""
        product = _inner(X, Y)
        product *= self.gamma
        product += self.coef0
        return np.tanh(product, out=product)

    def diag(self, X: Matrix) -> Floats:
        """Return tanh(gamma ||x||^2 + coef0)."""
        return np.tanh(self.gamma * _squared_norms(X) + self.coef0)

    def bound(self, X: Matrix) -> float:
        """Return tanh(gamma max ||x||^2 + |coef0|)."""
        return float(np.tanh(self.gamma * _squared_norms(X).max(initial=0.0) + abs(self.coef0)))


@dataclass(frozen=True)
class Laplacian(Formula):
    """exp(-gamma ||x - y||_1)."""

    gamma: float
    psd = True

    def tile(self, X: Matrix, Y: Matrix) -> Array:
        """Return the exponentials."""
        return laplacian_kernel(X, Y, gamma=self.gamma)

    def diag(self, X: Matrix) -> Floats:
        """Return ones."""
        return np.ones(X.shape[0])


@dataclass(frozen=True)
class ChiSquared(Formula):
    """exp(-gamma sum (x - y)^2 / (x + y)), for features that are not negative."""

    gamma: float
    psd = True

    def prepare(self, X: Matrix) -> Matrix:
        """Refuse negative features."""
        if X.min() < 0:
            raise KernelError(
                f"kernel='chi2' needs features >= 0, but X holds {X.min():.6g}. Shift or clip the features, "
                "or choose another kernel."
            )
        return X

    def tile(self, X: Matrix, Y: Matrix) -> Array:
        """Return the exponentials."""
        return chi2_kernel(X, Y, gamma=self.gamma)

    def diag(self, X: Matrix) -> Floats:
        """Return ones."""
        return np.ones(X.shape[0])


@dataclass(frozen=True)
class Gower(Formula):
    """The mean over columns of how similar two values are: 1 - |x - y| / range, or whether they are the same.

    Columns in which either value is NaN are left out of the mean; samples without a common column have similarity 1/2.
    New samples may lie beyond the range; their similarity is then 0. Positive semidefinite where nothing is missing.

    Source: Gower, Biometrics 1971.
    """

    ranges: Floats  # (d,) of numbers; 0 where a column is constant
    categorical: Floats  # (d,) 1 for columns that are compared by equality
    weights: Floats  # (d,)

    def tile(self, X: Matrix, Y: Matrix) -> Array:
        """Return the weighted means."""
        alike = np.zeros((X.shape[0], Y.shape[0]))
        known = np.zeros((X.shape[0], Y.shape[0]))
        for column in np.flatnonzero(self.weights).tolist():
            x = X[:, column][:, None]
            y = Y[:, column]
            same = self._alike(x, y, column)
            there = ~(np.isnan(x) | np.isnan(y))
            alike += self.weights[column] * np.where(there, same, 0.0)
            known += self.weights[column] * there
        return np.divide(alike, known, out=np.full(alike.shape, 0.5), where=known > 0)

    def _alike(self, x: Floats, y: Floats, column: int) -> Floats:
        if self.categorical[column] or self.ranges[column] == 0:
            return np.asarray(x == y, dtype=np.float64)
        return np.asarray(np.maximum(1.0 - np.abs(x - y) / self.ranges[column], 0.0))

    def diag(self, X: Matrix) -> Floats:
        """Return ones: a sample is as similar to itself as possible."""
        return np.ones(X.shape[0])

    def bound(self, X: Matrix) -> float:
        """Return 1."""
        return 1.0


class SelfTuning(Formula):
    """exp(-||x - y||^2 / (s(x) s(y))), s(x) the distance to the (n_neighbors + 1)-th nearest training sample.

    A training sample is its own nearest neighbour, so its scale is the distance to the n_neighbors-th other one,
    as in Zelnik-Manor and Perona (2004); a new sample meets the same function.
    """

    def __init__(self, X: Matrix, n_neighbors: int, metric: str, memory_limit: float = 2048) -> None:
        self.metric = metric
        self.memory_limit = memory_limit  # MiB, for new samples too
        self._centre = distances.centre(X, metric)
        self._index = NearestNeighbors(n_neighbors=n_neighbors + 1, metric=metric).fit(distances.moved(X, self._centre))
        self.kept_mib = 0.0 if sp.issparse(X) else 8.0 * X.size / 2**20

    def prepare(self, X: Matrix) -> Matrix:
        """Return [x, s(x)]."""
        room = room_beside(mib_of(X), self.memory_limit)
        if sp.issparse(X):
            return sp.hstack([X, farthest_of_nearest(self._index, X, room)], format="csr")
        n, d = X.shape
        out = np.empty((n, d + 1))
        step = max(1, SEARCHED // d)
        for lo in range(0, n, step):
            rows = distances.moved(X[lo : lo + step], self._centre)
            out[lo : lo + step, :d] = rows
            out[lo : lo + step, d:] = farthest_of_nearest(self._index, rows, room)
        return out

    def tile(self, X: Matrix, Y: Matrix) -> Array:
        """Return the exponentials; where a scale is 0, equal samples get 1 and others 0, the limit."""
        s = X[:, [-1]]
        t = Y[:, [-1]]
        if sp.issparse(X):
            s = s.toarray()
            t = t.toarray()
        exponents = distances.between(X[:, :-1], Y[:, :-1], self.metric)
        exponents *= exponents
        with np.errstate(divide="ignore", invalid="ignore"):
            exponents /= s * t.T
        exponents[np.isnan(exponents)] = 0.0
        return np.exp(-exponents)

    def diag(self, X: Matrix) -> Floats:
        """Return ones."""
        return np.ones(X.shape[0])


@dataclass(frozen=True)
class Given(Formula):
    """A function of two sample arrays that returns the matrix between them."""

    function: Callable[[Array, Array], Array]

    def tile(self, X: Matrix, Y: Matrix) -> Array:
        """Call the function and check what it returned."""
        values = np.array(self.function(X, Y), dtype=np.float64)
        if values.shape != (X.shape[0], Y.shape[0]):
            raise KernelError(
                f"The callable kernel returned shape {values.shape} for {X.shape[0]} and {Y.shape[0]} samples; it must "
                f"take two sample arrays X, Y and return the ({X.shape[0]}, {Y.shape[0]}) matrix between them."
            )
        if not np.isfinite(values).all():
            raise KernelError("The callable kernel returned NaN or infinite values; return finite numbers.")
        return values

    def diag(self, X: Matrix) -> Floats:
        """Return k(x, x), one small square at a time."""
        step = 64
        pieces = [np.diagonal(self.tile(X[s : s + step], X[s : s + step])) for s in range(0, X.shape[0], step)]
        return np.concatenate(pieces)


_SEMIDEFINITE = {"RBF", "Matern", "RationalQuadratic", "DotProduct", "ConstantKernel", "WhiteKernel"}


def _semidefinite(kernel: Any) -> bool:
    if type(kernel).__name__ in ("Sum", "Product"):
        return _semidefinite(kernel.k1) and _semidefinite(kernel.k2)
    return type(kernel).__name__ in _SEMIDEFINITE


@dataclass(frozen=True)
class ProcessKernel(Formula):
    """A ``sklearn.gaussian_process.kernels.Kernel`` object with its hyperparameters as they are."""

    kernel: Any
    fixes_diagonal = True

    @property
    def psd(self) -> bool | None:  # type: ignore[override]
        """Known for sums and products of kernels that are positive semidefinite in any dimension."""
        return True if _semidefinite(self.kernel) else None

    def tile(self, X: Matrix, Y: Matrix) -> Array:
        """Return kernel(X, Y)."""
        return np.array(self.kernel(X, Y), dtype=np.float64)

    def diag(self, X: Matrix) -> Floats:
        """Return kernel.diag(X)."""
        return np.array(self.kernel.diag(X), dtype=np.float64)
