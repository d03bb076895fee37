"""Divergences d(x_i, x_j) of samples from the components of a mixture: Bregman, of a feature space, or a matrix.

A Bregman divergence of phi is phi(x) - phi(y) - <phi'(y), x - y> = a(x) + b(y) - <x, g(y)>: one matrix product for a
whole block. Rows are samples, columns the components; a divergence need not be symmetric. Values are never negative
and may be infinite, where a component leaves no probability to a sample.

fit_divergence ──▶ FittedDivergence ──▶ .divergence              among the training samples
                                    ──▶ .placement(components)   of new samples from chosen components
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

from kernelweave.backends.host import indices
from kernelweave.foundation.array_types import Array, Bools, Floats, Index, Ints, Matrix
from kernelweave.foundation.config import config_context
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.memory import Copies, check_copies
from kernelweave.kernels.blockwise import PIECE_ENTRIES, chosen_rows, pieces
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec.fitting import FittedKernel, Precomputed, fit_kernel

#: Divergences computed from features.
BREGMAN = ("sqeuclidean", "bernoulli", "poisson", "exponential")
#: All names of divergences.
DIVERGENCES = (*BREGMAN, "kernel", "precomputed")
# Rows whose logarithms are taken at a time.
ROWS = 1024


class Divergence(ABC):
    """The divergences of samples (rows) from components (columns), computed block by block."""

    shape: tuple[int, int]
    #: Bytes of what is copied to compute a block, beside arrays of its size.
    taken: float = 0.0

    @abstractmethod
    def block(self, rows: Index, cols: Index) -> Floats:
        """Return the dense block of divergences, as a new array."""

    @abstractmethod
    def self_divergence(self, samples: Ints) -> Floats:
        """Return the divergence of each sample from the component at that sample."""


class DivergenceMatrix(Divergence):
    """A stored matrix of divergences."""

    def __init__(self, D: Array) -> None:
        self.D = D
        self.shape = (D.shape[0], D.shape[1])

    def block(self, rows: Index, cols: Index) -> Floats:
        """Return a copy of the block."""
        where = (indices(rows, self.shape[0])[:, None], indices(cols, self.shape[1])[None, :])
        return np.array(self.D[where], dtype=np.float64)

    def self_divergence(self, samples: Ints) -> Floats:
        """Return the diagonal."""
        return np.array(self.D[samples, samples], dtype=np.float64)


class KernelDivergence(Divergence):
    """Squared distances in the feature space of a kernel."""

    def __init__(self, op: KernelOperator) -> None:
        self.op = op
        self.shape = op.shape
        self._diag = np.maximum(op.backend.host(op.diag()), 0.0)

    def block(self, rows: Index, cols: Index) -> Floats:
        """Return k(x, x) + k(y, y) - 2 k(x, y); an indefinite kernel may make it negative, which counts as zero."""
        squared = self._diag[rows][:, None] + self._diag[cols][None, :] - 2.0 * self.op.block(rows, cols)
        return np.maximum(squared, 0.0, out=squared)

    def self_divergence(self, samples: Ints) -> Floats:
        """Return zeros."""
        return np.zeros(len(samples))


class BregmanDivergence(Divergence):
    """The Bregman divergence of an exponential family between rows ``X`` and components ``Y`` (by default ``X``)."""

    def __init__(self, name: str, X: Matrix, Y: Matrix | None = None) -> None:
        self.name = name
        self.X = X
        Y = X if Y is None else Y
        self.shape = (X.shape[0], Y.shape[0])
        self._a = _sample_term(name, X)
        self._b, self._g = _component_terms(name, Y)
        self._low, self._high = _bounds(name, Y)
        self._sparse = sp.issparse(X) or sp.issparse(self._g)
        if not self._sparse:
            self.taken = 2.0 * min(PIECE_ENTRIES, X.size) * 8

    def block(self, rows: Index, cols: Index) -> Floats:
        """Return a(x) + b(y) - <x, g(y)>, infinite where the component excludes the sample.

        It is computed piece by piece where samples of many features would be copied for the whole.
        """
        rows = _as_range(rows)
        cols = _as_range(cols)
        here = self._pieces(rows, self.X)
        there = self._pieces(cols, self._g)
        if len(here) == len(there) == 1:
            return self._piece(rows, cols)
        values = np.empty((here[-1][0].stop, there[-1][0].stop))
        for place, samples in here:
            for other, components in there:
                values[place, other] = self._piece(samples, components)
        return values

    def _pieces(self, samples: Index, values: Matrix) -> list[tuple[slice, Index]]:
        """Return samples in pieces; a range is not copied, and marks of excluded features are as large as the range."""
        if self._sparse or (isinstance(samples, slice) and self._low is None and self._high is None):
            first, last, _ = samples.indices(values.shape[0]) if isinstance(samples, slice) else (0, len(samples), 1)
            return [(slice(0, max(0, last - first)), samples)]
        return pieces(samples, values, max(1, PIECE_ENTRIES // max(1, values.shape[1])))

    def _piece(self, rows: Index, cols: Index) -> Floats:
        X = chosen_rows(self.X, rows)
        g = chosen_rows(self._g, cols)
        product = X @ g.T
        product = product.toarray() if sp.issparse(product) else np.asarray(product)
        if self.name == "sqeuclidean":
            product *= 2.0
        values = self._a[rows][:, None] + self._b[cols][None, :]
        values -= product
        np.maximum(values, 0.0, out=values)
        if self._low is not None:
            values[_share_feature(X > 0, self._low[cols])] = np.inf
        if self._high is not None:
            values[_share_feature(X < 1, self._high[cols])] = np.inf
        return values

    def self_divergence(self, samples: Ints) -> Floats:
        """Return the divergences row by row; without smoothing they are zero."""
        if sp.issparse(self.X) and sp.issparse(self._g):  # to cut out a sparse row takes as long as the sums of many
            products = self.X[samples].multiply(self._g[samples]).tocsr()
            added = products @ np.ones(products.shape[1])  # in the order of a product of two rows
            added *= 2.0
            return np.maximum(self._a[samples] + self._b[samples] - added, 0.0)
        return np.array([self.block(samples[i : i + 1], samples[i : i + 1])[0, 0] for i in range(len(samples))])


def _as_range(samples: Index) -> Index:
    """Return samples that follow each other as a slice, which takes no copy of them."""
    if isinstance(samples, slice) or len(samples) == 0:
        return samples
    first = int(samples[0])
    if int(samples[-1]) - first != len(samples) - 1 or not bool((samples[1:] > samples[:-1]).all()):
        return samples
    return slice(first, first + len(samples))


def _sample_term(name: str, X: Matrix) -> Floats:
    """Return a(x)."""
    if name == "sqeuclidean":
        return _squared_lengths(X)
    out = np.empty(X.shape[0])
    step = _rows_together(X.shape[1])
    for start in range(0, len(out), step):  # terms of all samples would be several tables
        out[start : start + step] = _sample_terms(name, X[start : start + step]).sum(axis=1)
    return out


def _rows_together(n_columns: int) -> int:
    """Return the rows whose logarithms are taken at a time, fewer of wide tables."""
    return max(1, min(ROWS, PIECE_ENTRIES // max(1, n_columns)))


def _sample_terms(name: str, X: Floats) -> Floats:
    """Return what is added up over features to a(x)."""
    if name == "poisson":
        return np.asarray(xlogy(X, X) - X)
    if name == "bernoulli":
        return np.asarray(xlogy(X, X) + xlogy(1.0 - X, 1.0 - X))
    return np.asarray(-(np.log(X) + 1.0))


def _component_terms(name: str, Y: Matrix) -> tuple[Floats, Matrix]:
    """Return b(y) and g(y); logarithms of zero are left out, ``_bounds`` marks where they stand.

    Half of g for squared distances: these are the components themselves, and doubling a product changes no digit.
    """
    if name == "sqeuclidean":
        return _squared_lengths(Y), Y
    b = np.empty(Y.shape[0])
    g = np.empty_like(Y, subok=False)
    step = _rows_together(Y.shape[1])
    for start in range(0, len(b), step):  # of all components there would be several tables
        rows = slice(start, start + step)
        if name == "poisson":
            b[rows] = Y[rows].sum(axis=1)
            g[rows] = _safe_log(Y[rows])
        elif name == "bernoulli":
            log_complement = _safe_log(1.0 - Y[rows])
            b[rows] = -log_complement.sum(axis=1)
            np.subtract(_safe_log(Y[rows]), log_complement, out=g[rows])
        else:
            b[rows] = np.log(Y[rows]).sum(axis=1)
            np.divide(-1.0, Y[rows], out=g[rows])
    return b, g


def _bounds(name: str, Y: Matrix) -> tuple[Bools | None, Bools | None]:
    """Return where features of components lie at the lower and the upper end of their range, None where nowhere."""
    low = Y == 0 if name in ("poisson", "bernoulli") else None
    high = Y == 1 if name == "bernoulli" else None
    return (low if low is not None and low.any() else None), (high if high is not None and high.any() else None)


def _share_feature(samples: Bools, components: Bools) -> Bools:
    """Return which sample and component have a marked feature in common."""
    return np.asarray(samples.astype(np.float64) @ components.astype(np.float64).T > 0)


def _safe_log(values: Floats) -> Floats:
    return np.log(np.where(values > 0, values, 1.0))


def _squared_lengths(X: Matrix) -> Floats:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)


class Placement(ABC):
    """What a fitted mixture keeps of its components: enough to compute the divergences of new samples from them."""

    #: Whether the divergences are known as such, not only up to a constant for every sample.
    absolute = True

    @abstractmethod
    def divergences(self, X: Matrix) -> Floats:
        """Return the divergences of new samples from the components, shape (n_new, n_components)."""


class FittedDivergence(ABC):
    """A divergence with every parameter fixed on the training samples."""

    divergence: Divergence

    @property
    def kernel(self) -> FittedKernel | None:
        """The kernel whose squared distances in feature space the divergences are, None where they are others."""
        return None

    @property
    def stored_mib(self) -> float:
        """MiB of a matrix that was computed and is kept."""
        return 0.0

    @property
    def table_mib(self) -> float:
        """MiB of tables that were computed and are kept."""
        return 0.0

    @abstractmethod
    def placement(self, components: Ints) -> Placement:
        """Return what a model keeps of the chosen components."""


class FittedBregman(FittedDivergence):
    """A Bregman divergence of features; components move towards the mean by ``smoothing`` times their distance."""

    def __init__(self, name: str, X: Matrix, shares: Floats, smoothing: float, label: str) -> None:
        _check_domain(name, X, label)
        self.name = name
        converted = X.dtype != np.float64
        X = X.astype(np.float64) if converted else X
        # Squared distances do not change with the origin, their rounding does.
        self._origin = None if sp.issparse(X) or name != "sqeuclidean" else shares @ X
        if self._origin is not None:
            X = np.subtract(X, self._origin, out=X if converted else None)
        self._samples = X
        self._made = _tables_made(name, sp.issparse(X), converted, smoothing)
        self._components = X if smoothing == 0 else _smoothed(X, shares, smoothing)
        self.divergence = BregmanDivergence(name, X, self._components)

    @property
    def table_mib(self) -> float:
        """MiB of the tables that were made of the samples: moved ones, components, and what products need of them."""
        return self._made * 8.0 * self._samples.shape[0] * self._samples.shape[1] / 2**20

    def placement(self, components: Ints) -> "FeaturePlacement":
        """Return the features of the chosen components; those of all samples are not there twice."""
        everyone = len(components) == self._components.shape[0]
        kept = self._components if everyone else self._components[components]
        return FeaturePlacement(self.name, kept, self._origin)


@dataclass(frozen=True)
class FeaturePlacement(Placement):
    """Components known by their features."""

    name: str
    components: Matrix
    origin: Floats | None

    def divergences(self, X: Matrix) -> Floats:
        """Return the Bregman divergences."""
        _check_domain(self.name, X, "X")
        if sp.issparse(X) and not sp.issparse(self.components):
            X = X.toarray()
        X = X.astype(np.float64, copy=False)
        X = X if self.origin is None else X - self.origin
        everything = slice(None)
        return BregmanDivergence(self.name, X, self.components).block(everything, everything)


class FittedFeatureSpace(FittedDivergence):
    """Squared distances in the feature space of a kernel."""

    def __init__(self, kernel: FittedKernel, storage_limit: float) -> None:
        self._kernel = kernel
        with config_context(device=None):  # similarities are what a mixture passes over; they are placed
            self.op = kernel.operator("auto", storage_limit)
        self.divergence = KernelDivergence(self.op)

    @property
    def stored_mib(self) -> float:
        """MiB of a kernel that was computed and is kept."""
        matrix = self.op.stored_matrix()
        return 0.0 if matrix is None or isinstance(self._kernel, Precomputed) else matrix.nbytes / 2**20

    @property
    def kernel(self) -> FittedKernel:
        """The kernel."""
        return self._kernel

    def placement(self, components: Ints) -> "KernelPlacement":
        """Return the kernel with k(y, y) of the chosen components."""
        return KernelPlacement(self._kernel.for_new_samples(), components, np.maximum(self.op.diag(), 0.0)[components])


@dataclass(frozen=True)
class KernelPlacement(Placement):
    """Components known by their kernel values."""

    kernel: FittedKernel
    components: Ints
    diag: Floats

    @property
    def absolute(self) -> bool:  # type: ignore[override]
        """False for precomputed kernels, which do not hold k(x, x) of new samples."""
        return not isinstance(self.kernel, Precomputed)

    def divergences(self, X: Matrix) -> Floats:
        """Return the squared distances, without k(x, x) where it is not known."""
        cross = self.kernel.cross(X)
        relative = self.diag[None, :] - 2.0 * cross.block(slice(None), self.components)
        return np.maximum(relative + cross.diag()[:, None], 0.0) if self.absolute else relative


class FittedMatrix(FittedDivergence):
    """A precomputed matrix of divergences, checked."""

    def __init__(self, D: Array, label: str) -> None:
        check_divergences(D, label)
        if D.shape[0] != D.shape[1]:
            raise ParameterError(
                f"{label} has shape {D.shape}; divergence='precomputed' takes the square matrix of divergences of "
                "every sample (row) from every sample as a component (column)."
            )
        self.divergence = DivergenceMatrix(D)

    def placement(self, components: Ints) -> "ColumnPlacement":
        """Return the numbers of the chosen columns."""
        return ColumnPlacement(components)


@dataclass(frozen=True)
class ColumnPlacement(Placement):
    """Components known as columns of the rows of divergences that stand for new samples."""

    components: Ints

    def divergences(self, X: Matrix) -> Floats:
        """Return the chosen columns."""
        check_divergences(X, "X")
        return np.array(X[:, self.components], dtype=np.float64)


@dataclass(frozen=True)
class ObservedPlacement(Placement):
    """Components of which a view lacks some: no sample can come from these, their divergences are infinite."""

    placement: Placement  # of those the view has
    known: Bools  # (m,) which components these are
    columns: Ints | None  # of a matrix: the training samples that the view has, among which components are numbered

    @property
    def absolute(self) -> bool:  # type: ignore[override]
        """Whether the divergences are known as such."""
        return self.placement.absolute

    def divergences(self, X: Matrix) -> Floats:
        """Return the divergences, infinite from components that the view lacks."""
        out = np.full((X.shape[0], len(self.known)), np.inf)
        out[:, self.known] = self.placement.divergences(X if self.columns is None else X[:, self.columns])
        return out


def fit_divergence(
    X: Matrix,
    name: str,
    shares: Floats,
    *,
    smoothing: float = 0.0,
    kernel: Any = "rbf",
    kernel_params: Mapping[str, Any] | None = None,
    memory_limit: float = 2048,
    label: str = "X",
) -> FittedDivergence:
    """Fix a divergence on the training samples ``X``, which errors call ``label``."""
    if name == "precomputed":
        return FittedMatrix(X, label)
    if name == "kernel":
        fitted = fit_kernel(
            X, kernel, kernel_params, centre_features=True, weights=shares, name=label, memory_limit=memory_limit
        )
        return FittedFeatureSpace(fitted, memory_limit)
    return FittedBregman(name, X, shares, smoothing, label)


def check_divergences(D: Array, label: str) -> None:
    """Raise where a matrix cannot hold divergences; infinite ones are allowed."""
    lowest = float(D.min()) if D.size else 0.0  # NaN where there is one
    if not lowest >= 0:
        i, j = np.argwhere(np.isnan(D) | (D < 0))[0]
        raise ParameterError(
            f"{label}[{i}, {j}] = {D[i, j]}: divergences must be non-negative and not NaN. Use inf where a component "
            "leaves no probability to a sample."
        )


_RANGES: dict[str, tuple[Callable[[Array], Bools], str, str]] = {
    "poisson": (lambda X: X >= 0, "not negative", "counts"),
    "bernoulli": (lambda X: (X >= 0) & (X <= 1), "between 0 and 1", "probabilities or zeros and ones"),
    "exponential": (lambda X: X > 0, "positive", "waiting times or amounts"),
}


def _check_domain(name: str, X: Matrix, label: str) -> None:
    """Raise where features lie outside the range of the family."""
    if name == "sqeuclidean":
        return
    if sp.issparse(X):
        raise ParameterError(
            f"{label} is sparse, but divergence={name!r} takes dense features. Convert it with toarray() if it fits, "
            "or use divergence='sqeuclidean'."
        )
    inside, what, example = _RANGES[name]
    bad = np.argwhere(~inside(X))
    if len(bad):
        i, j = bad[0]
        raise ParameterError(
            f"{label}[{i}, {j}] = {X[i, j]}: divergence={name!r} takes values that are {what} ({example}). Scale the "
            "feature, or choose divergence='sqeuclidean'."
        )


def _smoothed(X: Matrix, shares: Floats, smoothing: float) -> Array:
    """Return components moved towards the mean; they are dense even where the samples are sparse."""
    X = X.toarray() if sp.issparse(X) else X
    mean = shares @ X
    components = (1.0 - smoothing) * X
    components += smoothing * mean
    return components


def _tables_made(name: str, sparse: bool, converted: bool, smoothing: float) -> int:
    """Return how many dense tables are made of the samples: moved or converted ones, components, and g of these."""
    if sparse:
        return int(smoothing > 0)
    if name == "sqeuclidean":
        return 1 + (smoothing > 0)
    return converted + (smoothing > 0) + 1


def check_tables(X: Matrix, name: str, smoothing: float, memory_limit: float) -> None:
    """Raise where the tables that a divergence makes of samples are more than the limit, before any of them is there.

    A model keeps the components that have a prior, which may be all. Tiles of divergences take what is free beside the
    limit.
    """
    if name not in BREGMAN:
        return
    sparse = sp.issparse(X)
    made = _tables_made(name, sparse, X.dtype != np.float64, smoothing) + (not sparse)
    tables = Copies("tables of the components", X.shape[0], made * 8 * X.shape[1])
    check_copies([tables], memory_limit, remedy="cluster some of the samples and predict the others")
