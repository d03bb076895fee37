"""From a kernel's name, object or function to operators: one place where kernel specifications are understood.

``fit_kernel`` fixes a specification on the training samples; what it returns makes the operator a solver works
on (``operator``) and the cross-kernel to new samples (``cross``).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state

from kernelweave.backends.tiling import tiling_within
from kernelweave.foundation.array_types import Array, Floats, Ints, Matrix
from kernelweave.foundation.errors import KernelError, ParameterError
from kernelweave.foundation.memory import (
    FREE,
    PASSING,
    check_matrices,
    matrices_mib,
    return_freed_memory,
    room_beside,
    rows_within,
)
from kernelweave.kernels.blockwise import PIECE_ENTRIES, BlockwiseKernel
from kernelweave.kernels.checks import check_kernel_matrix, check_kernel_part
from kernelweave.kernels.dense import DenseCross, DenseKernel
from kernelweave.kernels.device import device_backend, place_features, place_formula, place_graph, place_matrix
from kernelweave.kernels.features import FeatureKernel, MappedCross
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.lean import LeanKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.part import PartKernel
from kernelweave.kernels.spec import bandwidths, formulas
from kernelweave.kernels.spec.distances import METRICS
from kernelweave.kernels.spec.neighbors import NeighborGraph, check_graph

Storage = Literal["auto", "dense", "blockwise"]
KernelSpec = str | Callable[[Array, Array], Array] | Any
# Arrays of the size of some rows of approximating features that are there until these are computed.
MAPPED_HELD = 3
# Entries of new samples' features up to which they are computed together.
PASSING_ENTRIES = 2**18
# Matrices of n_components samples that are there while the root of their kernel is computed, less what is free.
NYSTROEM_MATRICES = 7.4
# Singular values below this are taken for it, as scikit-learn does.
NYSTROEM_LEAST = 1e-12


class FittedKernel(ABC):
    """A kernel with every parameter fixed, and the training samples it was fixed on."""

    @abstractmethod
    def operator(self, storage: Storage = "auto", memory_limit: float = 2048) -> KernelOperator:
        """Return the kernel of the training samples; ``memory_limit`` in MiB bounds a stored matrix."""

    @abstractmethod
    def cross(self, X: Matrix) -> KernelOperator:
        """Return the kernel between new samples (rows) and the training samples (columns)."""

    @property
    def is_graph(self) -> bool:
        """Whether the kernel of the training samples has few entries in a row."""
        return False

    @property
    def neighbor_recall(self) -> float:
        """The share of the nearest neighbours that a graph was made of; NaN for kernels that are none."""
        return np.nan

    @property
    def kept_mib(self) -> float:
        """MiB of what is kept of dense samples."""
        return 0.0

    def for_new_samples(self) -> "FittedKernel":
        """Return what ``cross`` needs and a fitted model keeps."""
        return self

    def with_features(self, features: Matrix) -> "FittedKernel":
        """Return it with its features in another place of memory; kernels without features stay as they are."""
        return self

    def is_stored_within(self, memory_limit: float) -> bool:
        """Whether so many MiB hold the kernel's matrix, where one is made of it."""
        return False

    def unprepared(self, X: Matrix, memory_limit: float) -> "FittedKernel":
        """Return it without what it keeps of the samples ``X`` it was fitted on, where that can be computed anew.

        Of ``memory_limit`` MiB a share is for tiles.
        """
        return self

    def after_fit(self) -> "FittedKernel":
        """Return it as a model keeps it, with what a fit had no room for."""
        return self

    def kept_here(self, memory_limit: float) -> "FittedKernel":
        """Return it with the training samples in this process, where they were elsewhere and fit into so many MiB."""
        return self

    def at_means(self, op: Any, labels: Ints, weights: Floats, totals: Floats) -> tuple["FittedKernel", Ints, Floats]:
        """Return what new samples meet, with labels and weights: the training samples, or what stands for them."""
        return self.for_new_samples(), labels, weights


def _dense_mib(prepared: Matrix) -> float:
    """Return the MiB that prepared samples take, none where they are sparse and small."""
    return prepared.nbytes / 2**20 if isinstance(prepared, np.ndarray) else 0.0


def _taken_mib(prepared: Matrix) -> float:
    """Return the MiB of the samples that are copied to compute a tile: those of a piece, on both sides."""
    return 2 * min(PIECE_ENTRIES, prepared.size) * 8 / 2**20 if isinstance(prepared, np.ndarray) else 0.0


def _same_kind(X: Matrix, *, sparse: bool) -> Matrix:
    """Return new samples dense or sparse, as the training samples were."""
    X = _in_double(X) if sp.issparse(X) else X
    if sp.issparse(X) == sparse:
        return X
    return sp.csr_array(_in_double(X)) if sparse else X.toarray()


@dataclass(frozen=True)
class FormulaKernel(FittedKernel):
    """Kernel values computed from features by a formula."""

    formula: formulas.Formula
    prepared: Matrix

    @property
    def kept_mib(self) -> float:
        """MiB of the prepared samples, and of those that the formula keeps."""
        return _dense_mib(self.prepared) + self.formula.kept_mib

    def operator(self, storage: Storage = "auto", memory_limit: float = 2048) -> KernelOperator:
        """Return a stored matrix where it fits, else the blockwise operator."""
        n = self.prepared.shape[0]
        computed = storage == "blockwise" or (storage == "auto" and not self.is_stored_within(memory_limit))
        there = place_formula(self.formula, self.prepared, stored=not computed)
        if there is not None:
            return there
        if computed:
            # Half of the limit is for tiles, the rest for what solvers keep besides them; less where samples take more.
            left = max(PASSING * memory_limit, memory_limit - self.kept_mib)
            tiling = tiling_within(min(memory_limit / 2, left), _taken_mib(self.prepared))
            return BlockwiseKernel(self.formula, self.prepared, tiling=tiling)
        passing = max(PASSING * memory_limit, memory_limit - n**2 * 8 / 2**20)
        K = BlockwiseKernel(
            self.formula, self.prepared, tiling=tiling_within(passing, _taken_mib(self.prepared))
        ).dense()
        if isinstance(self.formula, formulas.Given):
            check_kernel_matrix(K, "The matrix returned by the callable kernel")
        return place_matrix(K, psd=self.formula.psd) or DenseKernel(K, psd=self.formula.psd)

    def is_stored_within(self, memory_limit: float) -> bool:
        """Whether the matrix fits beside what is kept of the samples."""
        return matrices_mib(1, self.prepared.shape[0]) <= room_beside(self.kept_mib, memory_limit)

    def unprepared(self, X: Matrix, memory_limit: float) -> FittedKernel:
        """Return the kernel of samples that are prepared when they are needed."""
        anew = self.formula.prepared_anew and isinstance(self.prepared, np.ndarray) and isinstance(X, np.ndarray)
        return UnpreparedKernel(self.formula, X, memory_limit) if anew and device_backend() is None else self

    def cross(self, X: Matrix) -> KernelOperator:
        """Return a blockwise cross-kernel."""
        X = _same_kind(X, sparse=sp.issparse(self.prepared))
        return BlockwiseKernel(self.formula, _in_double(self.formula.prepare(X)), self.prepared)


@dataclass(frozen=True)
class UnpreparedKernel(FittedKernel):
    """Kernel values computed by a formula from samples as they were given; for a fit, not for a model that is kept."""

    formula: formulas.Formula
    samples: Array
    memory_limit: float  # MiB

    def operator(self, storage: Storage = "auto", memory_limit: float = 2048) -> KernelOperator:
        """Return the operator that prepares samples tile by tile, whatever is asked for.

        Views do so one after another: each has the tiles of the whole limit.
        """
        return LeanKernel(self.formula, self.samples, self.memory_limit)

    def after_fit(self) -> FormulaKernel:
        """Return it with the samples prepared."""
        return_freed_memory()  # they come in the place of tiles and of what else a fit had instead of them
        return FormulaKernel(self.formula, _in_double(self.formula.prepare(self.samples)))

    def cross(self, X: Matrix) -> KernelOperator:
        """Return a blockwise cross-kernel."""
        return self.after_fit().cross(X)


@dataclass(frozen=True)
class FeatureMap(FittedKernel):
    """Inner products of explicit features: linear kernels and approximations."""

    transform: Callable[[Matrix], Matrix]
    features: Matrix
    #: Whether the operator takes the features as they lie in memory.
    in_place: ClassVar[bool] = False

    @property
    def kept_mib(self) -> float:
        """MiB of the features."""
        return _dense_mib(self.features)

    def operator(self, storage: Storage = "auto", memory_limit: float = 2048) -> KernelOperator:
        """Return the low-rank operator, or the stored matrix where there are more features than samples."""
        n, d = self.features.shape
        fits = matrices_mib(1, n) <= room_beside(self.kept_mib, memory_limit)
        wide = not sp.issparse(self.features) and d > n and fits
        if storage == "dense" or (storage == "auto" and wide):
            K = self.features @ self.features.T
            matrix = K.toarray() if sp.issparse(K) else K
            return place_matrix(matrix, psd=True) or DenseKernel(matrix, psd=True)
        return place_features(self.features) or FeatureKernel(self.features, in_place=self.in_place)

    def with_features(self, features: Matrix) -> "FeatureMap":
        """Return it with equal features that are stored elsewhere."""
        return replace(self, features=features)

    def cross(self, X: Matrix) -> KernelOperator:
        """Return the low-rank cross-kernel, with features of many new samples computed when they are read."""
        X = _same_kind(X, sparse=sp.issparse(self.features))
        if sp.issparse(self.features):
            return FeatureKernel(self.transform(X), self.features)
        few = X.shape[0] * self.features.shape[1] <= PASSING_ENTRIES
        if few and self.features.flags.c_contiguous:
            return FeatureKernel(self.transform(X), self.features)
        return MappedCross(self.transform, X, self.features)


@dataclass(frozen=True)
class SharedFeatures(FeatureMap):
    """Features that are some columns of an array which holds those of all views, where these are added up."""

    in_place = True

    def for_new_samples(self) -> FeatureMap:
        """Return it as new samples and files know it."""
        return FeatureMap(self.transform, self.features)


@dataclass(frozen=True)
class GraphFit(FittedKernel):
    """Affinities of a nearest-neighbour graph."""

    graph: NeighborGraph

    @property
    def is_graph(self) -> bool:
        """True."""
        return True

    @property
    def neighbor_recall(self) -> float:
        """The share of the nearest neighbours that were found."""
        return self.graph.recall

    @property
    def kept_mib(self) -> float:
        """MiB of the samples that new ones are compared with, where they are a copy."""
        return self.graph.samples_mib

    def operator(self, storage: Storage = "auto", memory_limit: float = 2048) -> KernelOperator:
        """Return the sparse operator, whatever the storage asked for."""
        return place_graph(self.graph.operator())

    def cross(self, X: Matrix) -> KernelOperator:
        """Return the sparse affinities to the training samples."""
        return self.graph.cross(_same_kind(X, sparse=self.graph.sparse))


@dataclass(frozen=True)
class Precomputed(FittedKernel):
    """A kernel matrix given by the user, dense or sparse."""

    K: Matrix | None
    name: str = "X"

    @property
    def is_graph(self) -> bool:
        """Whether the matrix is sparse."""
        return sp.issparse(self.K)

    def for_new_samples(self) -> "Precomputed":
        """Return it without the matrix: new samples bring their own rows."""
        return Precomputed(None)

    def operator(self, storage: Storage = "auto", memory_limit: float = 2048) -> KernelOperator:
        """Return the checked matrix as an operator, without copying it."""
        if self.K is None:
            raise KernelError("The training kernel matrix was not kept; fit again to use it.")
        largest = check_kernel_matrix(self.K, self.name)
        if sp.issparse(self.K):
            return place_graph(GraphKernel(self.K))
        return place_matrix(self.K, psd=None, largest=largest) or DenseKernel(self.K, largest=largest)

    def cross(self, X: Matrix) -> KernelOperator:
        """Return a given matrix of shape (new, training) as a cross-kernel."""
        return GraphKernel(X, cross=True) if sp.issparse(X) else DenseCross(X)


@dataclass(frozen=True)
class PartOfPrecomputed(Precomputed):
    """Rows and columns of some samples of a given dense matrix; the others are absent."""

    samples: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def operator(self, storage: Storage = "auto", memory_limit: float = 2048) -> KernelOperator:
        """Return a copy of the part as an operator where it fits, else what reads the part where it lies."""
        K: Any = self.K
        copied = storage != "blockwise" and len(self.samples) ** 2 * K.itemsize <= memory_limit * 2**20
        if copied or device_backend() is not None:
            return Precomputed(K[np.ix_(self.samples, self.samples)], self.name).operator(storage, memory_limit)
        largest = check_kernel_part(K, self.samples, self.name)
        return PartKernel(K, self.samples, largest=largest, tiling=tiling_within(memory_limit / 2))


@dataclass(frozen=True)
class LinearFeatures:
    """x, optionally scaled to unit length, extended by a constant and moved by the training mean."""

    unit_length: bool = False
    constant: float | None = None
    centre: Floats | None = None

    def __call__(self, X: Matrix) -> Matrix:
        """Return the features of samples."""
        if not sp.issparse(X):
            if self.only_shifts and self.centre is None:
                return np.asarray(X, dtype=np.float64)
            return self.fill(X, np.empty((X.shape[0], X.shape[1] + (self.constant is not None))))
        if self.constant is not None:
            X = sp.hstack([X, np.full((X.shape[0], 1), self.constant)], format="csr")
        X = normalize(X) if self.unit_length else X
        return X if self.centre is None else X - self.centre

    def fill(self, X: Array, out: Floats) -> Floats:
        """Write the features of dense samples into an array of double precision and return it."""
        out[:, : X.shape[1]] = X
        if self.constant is not None:
            out[:, -1] = self.constant
        if self.unit_length:
            normalize(out, copy=False)
        if self.centre is not None:
            out -= self.centre
        return out

    @property
    def only_shifts(self) -> bool:
        """Whether the features are the samples less a vector."""
        return not self.unit_length and self.constant is None

    @property
    def shift(self) -> Floats | float:
        """What is subtracted."""
        return 0.0 if self.centre is None else self.centre


@dataclass(frozen=True)
class FourierFeatures:
    """Random Fourier features, as scikit-learn's RBFSampler draws them."""

    weights: Floats
    offset: Floats

    def __call__(self, X: Matrix) -> Floats:
        """Return the features of samples."""
        angles = np.asarray(X @ self.weights, dtype=np.float64)
        angles += self.offset
        np.cos(angles, out=angles)
        angles *= np.sqrt(2.0 / len(self.offset))
        return angles


@dataclass(frozen=True)
class NystroemFeatures:
    """Kernel values with some samples, whitened, as scikit-learn's Nystroem computes them."""

    kernel: str
    params: dict[str, float]
    components: Matrix
    normalization: Floats

    def __call__(self, X: Matrix) -> Floats:
        """Return the features of samples."""
        X = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)  # two tables of one precision are compared in it
        K = pairwise_kernels(X, self.components, metric=self.kernel, filter_params=True, **self.params)
        return np.asarray(K @ self.normalization.T)


def is_graph_of(X: Any, kernel: Any) -> bool:
    """Whether a kernel specification makes a graph of samples, which can be said before it is fitted."""
    if not isinstance(kernel, str):
        return False
    return KERNELS.get(kernel, (None,))[0] is _nearest_neighbors or (kernel == "precomputed" and sp.issparse(X))


def fit_kernel(
    X: Matrix,
    kernel: KernelSpec = "rbf",
    params: Mapping[str, Any] | None = None,
    *,
    centre_features: bool = False,
    weights: Floats | None = None,
    name: str = "X",
    memory_limit: float = 2048,
    n_kernels: int = 1,
    out: Floats | None = None,
) -> FittedKernel:
    """Fix every parameter of a kernel on the training samples ``X``.

    Parameters
    ----------
    X : (n, d) array or CSR matrix of floats, or the kernel matrix for ``kernel="precomputed"``. All that is computed of
        samples is float64.
    kernel : a name of ``KERNELS``, a ``sklearn.gaussian_process.kernels.Kernel``, or a function (X, Y) -> matrix.
    params : parameters of a named kernel.
    centre_features : allow the features of a linear kernel to be moved by their mean. The kernel then changes
        but distances do not: for solvers that use distances alone this removes cancellation.
    weights : weights of the samples, for the rules that set a bandwidth.
    name : what errors call ``X``.
    memory_limit : MiB for searches of neighbours and their graphs, now and for new samples.
    n_kernels : how many kernels share the limit.
    out : where the features of a linear kernel of dense samples are written, of ``kept_columns`` columns; by default
        they get an array of their own.
    """
    params = dict(params or {})
    if sp.issparse(X):
        given = isinstance(kernel, str) and kernel == "precomputed"
        X = sp.csr_array(X) if given else _in_double(sp.csr_array(X))
    if isinstance(kernel, str):
        context: dict[str, Any] = {"centre_features": centre_features, "weights": weights, "name": name, "out": out}
        return _named(X, kernel, params, **context, memory_limit=memory_limit, n_kernels=n_kernels)
    if hasattr(kernel, "diag") and callable(kernel) and not isinstance(kernel, type):
        _allow(params, (), "a kernel object, which carries its own parameters")
        formula: formulas.Formula = formulas.ProcessKernel(kernel)
        return FormulaKernel(formula, formula.prepare(_in_double(_dense_only(X, "a kernel object"))))
    if callable(kernel) and not isinstance(kernel, type):
        function = _with_params(kernel, params)
        return FormulaKernel(formulas.Given(function), _in_double(X))
    raise ParameterError(
        f"kernel={kernel!r} is not valid. Give one of {sorted(KERNELS)}, a scikit-learn kernel object, or a "
        "function of two sample arrays that returns the matrix between them."
    )


def _named(X: Matrix, kernel: str, params: dict[str, Any], **context: Any) -> FittedKernel:
    if kernel not in KERNELS:
        raise ParameterError(f"kernel={kernel!r} is unknown. Choose one of {', '.join(sorted(KERNELS))}.")
    make, allowed = KERNELS[kernel]
    _allow(params, allowed, f"kernel={kernel!r}")
    return make(X, kernel, **params, **{key: context[key] for key in CONTEXT.get(make, ())})


def _allow(params: Mapping[str, Any], allowed: tuple[str, ...], what: str) -> None:
    unknown = sorted(set(params) - set(allowed))
    if unknown:
        choice = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
        raise ParameterError(f"kernel_params holds {', '.join(unknown)}, unknown to {what}: {choice}.")


def _with_params(kernel: Callable[..., Array], params: Mapping[str, Any]) -> Callable[[Array, Array], Array]:
    from functools import partial

    return partial(kernel, **params) if params else kernel


def _dense_only(X: Matrix, what: str) -> Array:
    if sp.issparse(X):
        raise KernelError(f"{what} takes dense features, but X is sparse. Convert it with X.toarray() if it fits.")
    return X


def _in_double(X: Matrix) -> Matrix:
    """Return samples as formulas read them that prepare none."""
    return X if X.dtype == np.float64 else X.astype(np.float64)


def _linear(
    X: Matrix,
    kernel: str,
    *,
    centre_features: bool = False,
    t: float = 1.0,
    degree: int = 1,
    out: Floats | None = None,
) -> FittedKernel:
    constant = t if kernel == "normalized_poly" else None
    plain = LinearFeatures(unit_length=kernel != "linear", constant=constant)
    if sp.issparse(X):
        return FeatureMap(plain, plain(X))
    if out is None and not centre_features:
        return FeatureMap(plain, plain(X))
    width = X.shape[1] + (constant is not None)
    features = plain.fill(X, np.empty((X.shape[0], width)) if out is None else out)
    if not centre_features:
        return _map(plain, features, shared=out is not None)
    mean = features.mean(axis=0)
    features -= mean
    return _map(LinearFeatures(plain.unit_length, constant, mean), features, shared=out is not None)


def _map(transform: Callable[[Matrix], Matrix], features: Floats, *, shared: bool) -> FeatureMap:
    return SharedFeatures(transform, features) if shared else FeatureMap(transform, features)


def _rbf(
    X: Matrix, kernel: str, *, gamma: Any = None, sigma: Any = None, weights: Floats | None = None
) -> FittedKernel:
    formula = _gaussian(X, gamma=gamma, sigma=sigma, weights=weights)
    return FormulaKernel(formula, formula.prepare(X))


def _gaussian(X: Matrix, *, gamma: Any = None, sigma: Any = None, weights: Floats | None = None) -> formulas.Gaussian:
    if gamma is not None and sigma is not None:
        raise ParameterError(
            f"kernel_params gives gamma={gamma!r} and sigma={sigma!r}; give one: gamma = 1 / (2 sigma^2)."
        )
    if sigma is not None:
        gamma = 0.5 / bandwidths.positive("sigma", sigma) ** 2
    centre = None if sp.issparse(X) else X.mean(axis=0, dtype=np.float64)
    return formulas.Gaussian(bandwidths.gamma(X, "scale" if gamma is None else gamma, weights), centre)


def _poly(
    X: Matrix,
    kernel: str,
    *,
    gamma: Any = None,
    coef0: float = 1.0,
    degree: float = 3,
    weights: Floats | None = None,
) -> FittedKernel:
    value = 1.0 / X.shape[1] if gamma is None else bandwidths.gamma(X, gamma, weights)
    return FormulaKernel(
        formulas.Polynomial(value, bandwidths.finite("coef0", coef0), bandwidths.whole("degree", degree)),
        _in_double(X),
    )


def _normalized_poly(
    X: Matrix, kernel: str, *, degree: int = 2, t: float = 1.0, out: Floats | None = None
) -> FittedKernel:
    power = bandwidths.whole("degree", degree)
    offset = bandwidths.finite("t", t)
    if power == 1:
        return _linear(X, kernel, t=offset, out=out)
    formula = formulas.NormalizedPolynomial(power, offset)
    return FormulaKernel(formula, formula.prepare(X))


def _sigmoid(
    X: Matrix, kernel: str, *, gamma: Any = None, coef0: float = 1.0, weights: Floats | None = None
) -> FittedKernel:
    value = 1.0 / X.shape[1] if gamma is None else bandwidths.gamma(X, gamma, weights)
    return FormulaKernel(formulas.Sigmoid(value, bandwidths.finite("coef0", coef0)), _in_double(X))


def _laplacian(X: Matrix, kernel: str, *, gamma: Any = None, weights: Floats | None = None) -> FittedKernel:
    value = 1.0 / X.shape[1] if gamma is None else bandwidths.gamma(X, gamma, weights)
    return FormulaKernel(formulas.Laplacian(value), _in_double(X))


def _chi2(X: Matrix, kernel: str, *, gamma: float = 1.0) -> FittedKernel:
    formula = formulas.ChiSquared(bandwidths.positive("gamma", gamma))
    return FormulaKernel(formula, formula.prepare(_in_double(_dense_only(X, "kernel='chi2'"))))


def _gower(X: Matrix, kernel: str, *, categorical: Any = (), weights: Any = None) -> FittedKernel:
    X = _in_double(_dense_only(X, "kernel='gower'"))
    shares = np.ones(X.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (X.shape[1],) or not np.isfinite(shares).all() or (shares < 0).any() or not shares.any():
        raise ParameterError(
            f"weights={weights!r} must hold a number >= 0 for each of the {X.shape[1]} columns, not all zero."
        )
    ranges = np.nan_to_num(np.fmax.reduce(X, axis=0) - np.fmin.reduce(X, axis=0), nan=0.0)  # NaN of empty columns
    return FormulaKernel(formulas.Gower(ranges, _column_mask(categorical, X.shape[1]), shares), X)


def _column_mask(columns: Any, n_columns: int) -> Floats:
    """Return 1 for the columns that a user names by numbers or booleans, 0 for others."""
    chosen = np.atleast_1d(np.asarray(columns)) if np.size(columns) else np.empty(0, dtype=np.intp)
    whole = chosen.dtype.kind in "iu" and bool(((chosen >= -n_columns) & (chosen < n_columns)).all())
    if not whole and not (chosen.dtype.kind == "b" and len(chosen) == n_columns):
        raise ParameterError(
            f"categorical={columns!r} must hold column numbers from 0 to {n_columns - 1}, or one boolean for each of "
            f"the {n_columns} columns."
        )
    mask = np.zeros(n_columns)
    mask[chosen] = 1.0
    return mask


def _intensity_histogram(X: Matrix, kernel: str, *, sigma: float = 0.7, n_intensities: int = 1) -> FittedKernel:
    X = _dense_only(X, f"kernel={kernel!r}")
    count = bandwidths.whole("n_intensities", n_intensities)
    if not count < X.shape[1]:
        raise ParameterError(
            f"n_intensities={count} in kernel_params leaves no histogram: X has {X.shape[1]} column(s). Put "
            "intensities first and the bins after them."
        )
    formula = formulas.IntensityHistogram(0.5 / bandwidths.positive("sigma", sigma) ** 2, count)
    return FormulaKernel(formula, formula.prepare(X))


def _self_tuning(
    X: Matrix,
    kernel: str,
    *,
    n_neighbors: int | None = None,
    metric: str = "euclidean",
    memory_limit: float = 2048,
    n_kernels: int = 1,
) -> FittedKernel:
    bandwidths.one_of("metric", metric, METRICS)
    formula = formulas.SelfTuning(X, _neighbors(X, n_neighbors, 7), metric, memory_limit / n_kernels)
    return FormulaKernel(formula, formula.prepare(X))


def _nearest_neighbors(
    X: Matrix,
    kernel: str,
    *,
    n_neighbors: int | None = None,
    metric: str = "euclidean",
    weights: str = "connectivity",
    symmetrize: str = "mean",
    neighbor_search: str = "exact",
    memory_limit: float = 2048,
    n_kernels: int = 1,
) -> FittedKernel:
    bandwidths.one_of("metric", metric, METRICS)
    bandwidths.one_of("neighbor_search", neighbor_search, ("exact", "approximate"))
    if neighbor_search == "approximate" and (sp.issparse(X) or metric != "euclidean"):
        raise ParameterError(
            "neighbor_search='approximate' in kernel_params compares dense samples by metric='euclidean'; use "
            "neighbor_search='exact' for sparse ones and other metrics."
        )
    bandwidths.one_of("weights", weights, ("connectivity", "self_tuning"))
    bandwidths.one_of("symmetrize", symmetrize, ("mean", "max"))
    options: dict[str, Any] = {
        "metric": metric,
        "weights": weights,
        "symmetrize": symmetrize,
        "search": neighbor_search,
        "memory_limit": memory_limit / n_kernels,
    }
    count = _neighbors(X, n_neighbors, 10)
    check_graph(X, count, metric, memory_limit, n_kernels, neighbor_search)
    return GraphFit(NeighborGraph(X, n_neighbors=count, **options))


def _neighbors(X: Matrix, n_neighbors: int | None, usual: int) -> int:
    """Return how many neighbours: as asked for, or the usual number, all others where there are fewer."""
    if n_neighbors is None:
        n_neighbors = max(1, min(usual, X.shape[0] - 1))
    if not isinstance(n_neighbors, int | np.integer) or not 1 <= n_neighbors < X.shape[0]:
        raise ParameterError(
            f"n_neighbors={n_neighbors!r} in kernel_params must be a whole number, at least 1 and below the number of "
            f"samples, {X.shape[0]}."
        )
    return int(n_neighbors)


def _precomputed(X: Matrix, kernel: str, *, name: str = "X") -> FittedKernel:
    return Precomputed(X, name)


_NEIGHBOR_PARAMS = ("n_neighbors", "metric")
#: What every kernel name means: the function that fits it and the parameters it takes.
KERNELS: dict[str, tuple[Callable[..., FittedKernel], tuple[str, ...]]] = {
    "linear": (_linear, ()),
    "cosine": (_linear, ()),
    "rbf": (_rbf, ("gamma", "sigma")),
    "poly": (_poly, ("gamma", "coef0", "degree")),
    "normalized_poly": (_normalized_poly, ("degree", "t")),
    "sigmoid": (_sigmoid, ("gamma", "coef0")),
    "laplacian": (_laplacian, ("gamma",)),
    "chi2": (_chi2, ("gamma",)),
    "gower": (_gower, ("categorical", "weights")),
    "intensity_histogram": (_intensity_histogram, ("sigma", "n_intensities")),
    "nearest_neighbors": (_nearest_neighbors, (*_NEIGHBOR_PARAMS, "weights", "symmetrize", "neighbor_search")),
    "self_tuning": (_self_tuning, _NEIGHBOR_PARAMS),
    "precomputed": (_precomputed, ()),
}


#: What a kernel has to know besides its parameters.
CONTEXT: dict[Callable[..., FittedKernel], tuple[str, ...]] = {
    _linear: ("centre_features", "out"),
    _normalized_poly: ("out",),
    _rbf: ("weights",),
    _poly: ("weights",),
    _sigmoid: ("weights",),
    _laplacian: ("weights",),
    _precomputed: ("name",),
    _nearest_neighbors: ("memory_limit", "n_kernels"),
    _self_tuning: ("memory_limit", "n_kernels"),
}


def feature_columns(
    shape: tuple[int, int], kernel: KernelSpec, params: Mapping[str, Any] | None, method: str | None, n_components: int
) -> int | None:
    """Return the columns of dense features that stand for a kernel of samples, None where none do."""
    if method is not None:
        return n_components if method == "random_features" else min(n_components, shape[0])
    if not isinstance(kernel, str):
        return None
    if kernel in ("linear", "cosine"):
        return shape[1]
    return shape[1] + 1 if kernel == "normalized_poly" and dict(params or {}).get("degree") == 1 else None


def kept_columns(
    X: Matrix,
    kernel: KernelSpec,
    params: Mapping[str, Any] | None,
    *,
    centre_features: bool,
    method: str | None = None,
    n_components: int = 200,
) -> int:
    """Return how many float64 numbers a fitted kernel keeps of every sample, beside the samples; about, for graphs."""
    width = feature_columns(X.shape, kernel, params, method, n_components)
    if method is not None:
        return width or 0
    if sp.issparse(X) or (isinstance(kernel, str) and kernel == "precomputed"):
        return 0
    d = X.shape[1]
    converted = 0 if X.dtype == np.float64 else d
    if width is not None:
        return width if centre_features or kernel != "linear" else converted
    if kernel == "nearest_neighbors":
        return converted if dict(params or {}).get("metric") == "cosine" else d
    own = {"rbf": d + 2, "normalized_poly": d + 1, "intensity_histogram": d, "self_tuning": 2 * d + 1}
    return own.get(kernel, converted) if isinstance(kernel, str) else converted


def approximate_kernel(
    X: Matrix,
    kernel: KernelSpec,
    params: Mapping[str, Any] | None,
    *,
    method: Literal["nystroem", "random_features"],
    n_components: int,
    random_state: Any = None,
    weights: Floats | None = None,
    memory_limit: float = np.inf,
    out: Floats | None = None,
) -> FittedKernel:
    """Return explicit features whose inner products approximate a named kernel, as scikit-learn's maps compute them.

    ``"nystroem"`` works for rbf, laplacian, poly, sigmoid and chi2; ``"random_features"`` (random Fourier
    features) for rbf. Features are computed some rows at a time, so that what they are computed from is a small share
    of ``memory_limit`` MiB; they are written to ``out``, where it is given.
    """
    X = _in_double(sp.csr_array(X)) if sp.issparse(X) else X
    name, arguments = _sklearn_kernel(_approximated_formula(X, kernel, params, weights))
    allowed = ("rbf",) if method == "random_features" else ("rbf", "laplacian", "poly", "sigmoid", "chi2")
    if name not in allowed:
        raise ParameterError(
            f"approximation={method!r} is available for kernels {', '.join(allowed)}, not for kernel={kernel!r}."
        )
    transform: Callable[[Matrix], Matrix]
    if method == "random_features":
        size = n_components
        fourier = RBFSampler(n_components=size, random_state=random_state, **arguments).fit(_in_double(X[:1]))
        transform = FourierFeatures(fourier.random_weights_, fourier.random_offset_)
    else:
        size = min(n_components, X.shape[0])
        # The rows that scikit-learn draws: it would keep single precision.
        chosen = check_random_state(random_state).permutation(X.shape[0])[:size]
        transform = _nystroem(_in_double(X[chosen]), str(name), arguments)
        if matrices_mib(NYSTROEM_MATRICES, size) > PASSING * memory_limit:
            return_freed_memory()  # features come in the place of what was decomposed
    features = np.empty((X.shape[0], size)) if out is None else out
    step = rows_within(PASSING * memory_limit, MAPPED_HELD * 8 * size, X.shape[0])
    for lo in range(0, X.shape[0], step):
        features[lo : lo + step] = transform(X[lo : lo + step])
    if step < X.shape[0]:
        return_freed_memory()  # pieces of features are a part of the limit, and more comes beside all of them
    return _map(transform, features, shared=out is not None)


def check_components(n_samples: int, method: str | None, n_components: int, memory_limit: float) -> None:
    """Raise where the matrices of the components of an approximation are more than the limit, before they are there."""
    size = min(n_components, n_samples)
    if method == "nystroem" and matrices_mib(NYSTROEM_MATRICES, size) > FREE:
        check_matrices(
            NYSTROEM_MATRICES,
            size,
            memory_limit,
            what="Decompositions of the kernel matrix of approximation='nystroem'",
            remedy="lower n_components",
        )


def _approximated_formula(
    X: Matrix, kernel: KernelSpec, params: Mapping[str, Any] | None, weights: Floats | None
) -> formulas.Formula | None:
    """Return the formula of a kernel, None where it has none; samples are not prepared for it."""
    if isinstance(kernel, str) and kernel == "rbf":
        params = dict(params or {})
        _allow(params, KERNELS[kernel][1], f"kernel={kernel!r}")
        return _gaussian(X, weights=weights, **params)
    fitted = fit_kernel(X, kernel, params, weights=weights)
    return fitted.formula if isinstance(fitted, FormulaKernel) else None


def _nystroem(components: Matrix, kernel: str, params: dict[str, float]) -> NystroemFeatures:
    """Return the map of some samples, with the inverse root of their kernel as scikit-learn's Nystroem computes it."""
    K = pairwise_kernels(components, metric=kernel, filter_params=True, **params)
    U, S, V = np.linalg.svd(K)
    return NystroemFeatures(kernel, params, components, (U / np.sqrt(np.maximum(S, NYSTROEM_LEAST))) @ V)


def _sklearn_kernel(formula: formulas.Formula | None) -> tuple[str | None, dict[str, float]]:
    """Return scikit-learn's name and parameters of a formula, or (None, {}) where it has none."""
    match formula:
        case formulas.Gaussian(gamma=gamma):
            return "rbf", {"gamma": gamma}
        case formulas.Laplacian(gamma=gamma):
            return "laplacian", {"gamma": gamma}
        case formulas.ChiSquared(gamma=gamma):
            return "chi2", {"gamma": gamma}
        case formulas.Sigmoid(gamma=gamma, coef0=coef0):
            return "sigmoid", {"gamma": gamma, "coef0": coef0}
        case formulas.Polynomial(gamma=gamma, coef0=coef0, degree=degree):
            return "poly", {"gamma": gamma, "coef0": coef0, "degree": degree}
    return None, {}


def kernel_with_gaps(X: Matrix, present: Ints, kernel: Any, params: Any) -> Floats:
    """Return the kernel among all rows of X, fitted on those that are present; NaN for the others, row and column."""
    whole = slice(None)
    block = np.full((X.shape[0], X.shape[0]), np.nan)
    block[np.ix_(present, present)] = fit_kernel(X[present], kernel, params).operator("dense").block(whole, whole)
    return block
