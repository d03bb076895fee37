"""Kernels of tables that are not in memory as a whole: rows are in blocks in files or on the workers of a cluster.

Features of linear kernels and of approximations are computed block by block; they are kept where they fit and computed
again at every pass where they do not. Kernels of all pairs of samples are exact: the rows of one block after another
travel to all places.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelweave.backends import BackendArray, Moves
from kernelweave.backends.blocks import BlockArray, BlocksBackend, Here, Places, work
from kernelweave.foundation.array_types import Array, Floats, Index, Ints, Matrix
from kernelweave.foundation.config import get_config
from kernelweave.foundation.errors import KernelError, ParameterError
from kernelweave.foundation.logged_warnings import warn
from kernelweave.inputs.arrays.chunks import Chunks, DaskRows
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.operator import KernelOperator
from kernelweave.kernels.spec import bandwidths, formulas
from kernelweave.kernels.spec.fitting import (
    FeatureMap,
    FittedKernel,
    FormulaKernel,
    LinearFeatures,
    approximate_kernel,
    fit_kernel,
)

NOT_HERE = (
    "would have to be compared with all training samples, which are elsewhere and exceed memory_limit. Raise it, or "
    "use approximation='nystroem', whose centres are small."
)
WHY_NOT_SAVED = f"After loading, new samples {NOT_HERE} labels_ and other arrays can be saved as they are."


def in_blocks(X: Any) -> bool:
    """Whether samples are in blocks elsewhere."""
    return isinstance(X, BlockArray)


def some_samples(X: Any, samples: Ints) -> Floats:
    """Return some samples here, as float64."""
    return np.asarray(X.backend.at(X, samples), dtype=np.float64)


def contents_digest(X: BlockArray) -> str:
    """Return a digest of the samples, which depends on how they are divided."""
    return X.backend.fingerprint(X).hex()


# --- bringing tables to their places ---------------------------------------------------------------------------------


def placed(tables: Sequence[Chunks], names: Sequence[str], memory_limit: float) -> list[BlockArray]:
    """Return tables as arrays of one backend: on the workers of a Dask client where there is one, else here.

    Here rows stay in memory while those of all tables fit into ``memory_limit`` MiB, and are read at every pass where
    they do not.
    """
    places = _places(tables, memory_limit)
    backend = BlocksBackend(places, several=len(tables) > 1)
    try:
        arrays = [_array(backend, table) for table in tables]
        for array, name in zip(arrays, names, strict=True):
            _check_finite(backend, array, name)
    except BaseException:
        backend.close()
        raise
    return arrays


def _places(tables: Sequence[Chunks], memory_limit: float) -> Places:
    client = _client(tables)
    sizes = tables[0].sizes
    n_bytes = sum(table.nbytes for table in tables)
    room = memory_limit * 2**20 - n_bytes
    if client is None:
        return Here(sizes, room=room, streams=room < 0)
    from kernelweave.backends.blocks.dask_workers import DaskWorkers

    workers = max(1, len(client.nthreads()))
    return DaskWorkers(client, sizes, room=memory_limit * 2**20 - n_bytes / workers)


def _client(tables: Sequence[Chunks]) -> Any:
    """Return the client of the settings, or the one that Dask tables are computed with by default."""
    client = get_config().client
    if client is None and any(isinstance(table.loaders[0], DaskRows) for table in tables):
        import sys

        if "distributed" in sys.modules:
            try:
                return sys.modules["distributed"].default_client()
            except ValueError:  # there is none
                return None
    return client


def _array(backend: BlocksBackend, table: Chunks) -> BlockArray:
    shape = (table.n_samples, table.width)
    brought = backend.places.bring(table.loaders)
    if brought is None:
        loaders = backend.each(table.loaders)
        if backend.places.streams:
            array = backend.made(work.opened, loaders, table.width, shape=shape, kept=False)
        else:
            array = backend.made(work.loaded, loaders, shape=shape)
    else:
        array = backend.made(work.brought, shape=shape)
        brought(array.node.number)
    array.dtype = table.dtype
    return array


def _check_finite(backend: BlocksBackend, X: BlockArray, name: str) -> None:
    for row, column, missing in backend.asked(work.faults, X):
        if row >= 0:
            what = "NaN" if missing else "infinity"
            raise ParameterError(
                f"{name} contains {what} (row {row}, column {column}). Tables in blocks must be complete: fill or drop "
                "such rows first."
            )


# --- fitting ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChunkedFeatures(FittedKernel):
    """Explicit features in blocks."""

    transform: Any
    features: BlockArray

    def operator(self, storage: Any = "auto", memory_limit: float = 2048) -> KernelOperator:
        """Return the inner products."""
        if storage == "dense":
            raise ParameterError(
                "storage='dense' stores all pairs of samples, which is not possible for tables in blocks."
            )
        return FeatureKernel(self.features, backend=self.features.backend)

    def cross(self, X: Matrix) -> KernelOperator:
        """Refuse: the training samples are too many to be kept here, where new samples would have to meet them."""
        raise KernelError(f"New samples {NOT_HERE}")

    @property
    def why_not_saved(self) -> str:
        """Say why a model with this kernel is not saved."""
        return WHY_NOT_SAVED

    def at_means(self, op: Any, labels: Ints, weights: Floats, totals: Floats) -> tuple[FittedKernel, Ints, Floats]:
        """Return the kernel with the means of clusters, their labels and weights in place of the training samples."""
        sums = op.feature_sums(op.backend.labels(labels), op.backend.array(weights), len(totals))
        means = sums / np.where(totals > 0, totals, 1.0)[:, None]
        return self.centres(means), np.arange(len(totals)), totals

    def kept_here(self, memory_limit: float) -> FittedKernel:
        """Return the kernel with the features of all training samples here, where they fit."""
        if not _fits_here(self.features, memory_limit):
            return replace(self, features=None)  # type: ignore[arg-type]
        return FeatureMap(self.transform, _computed(self.features))

    def centres(self, means: Floats) -> FeatureMap:
        """Return the kernel between new samples and centres that stand for the training samples."""
        return FeatureMap(self.transform, means)


@dataclass(frozen=True)
class ChunkedFormula(FittedKernel):
    """Kernel values of all pairs of samples in blocks, computed from features by a formula."""

    formula: formulas.Formula
    prepared: BlockArray

    def operator(self, storage: Any = "auto", memory_limit: float = 2048) -> KernelOperator:
        """Return the kernel, computed tile by tile."""
        if storage == "dense":
            raise ParameterError(
                "storage='dense' stores all pairs of samples, which is not possible for tables in blocks."
            )
        return PairKernel(self.formula, self.prepared, memory_limit)

    def cross(self, X: Matrix) -> KernelOperator:
        """Refuse: the training samples are too many to be kept here."""
        raise KernelError(f"New samples {NOT_HERE}")

    @property
    def why_not_saved(self) -> str:
        """Say why a model with this kernel is not saved."""
        return WHY_NOT_SAVED

    def at_means(self, op: Any, labels: Ints, weights: Floats, totals: Floats) -> tuple[FittedKernel, Ints, Floats]:
        """Return the kernel with all training samples here, where they fit, their labels and weights."""
        return self.kept_here(op.memory_limit), labels, weights

    def kept_here(self, memory_limit: float) -> FittedKernel:
        """Return the kernel with all training samples here, where they fit."""
        if not _fits_here(self.prepared, memory_limit):
            return replace(self, prepared=None)  # type: ignore[arg-type]
        return FormulaKernel(self.formula, _computed(self.prepared))


def _fits_here(array: BlockArray, memory_limit: float) -> bool:
    """Whether training samples may be kept in this process for new ones; a warning where not."""
    n, width = array.shape
    if 8 * n * width <= memory_limit * 2**20:
        return True
    warn(f"The model has labels, but it cannot be saved and cannot predict: new samples {NOT_HERE}", UserWarning)
    return False


def _computed(array: BlockArray) -> Floats:
    """Return features of all samples here, computed now where they were promised."""
    backend: BlocksBackend = array.backend
    return np.asarray(backend.host(backend.made(work.computed, array, shape=array.shape, kept=False)))


def fit_chunked_kernel(
    X: BlockArray,
    kernel: Any,
    params: Mapping[str, Any] | None,
    *,
    centre_features: bool,
    weights: Floats | None,
    approximation: str | None,
    n_components: int,
    random_state: Any,
) -> FittedKernel:
    """Fix every parameter of a kernel on samples in blocks; the arguments are those of ``fit_kernel``."""
    if not isinstance(kernel, str):
        raise ParameterError("Tables in blocks need kernels by name, such as 'linear' or 'rbf'.")
    params = _with_gamma(X, kernel, dict(params or {}), weights)
    few = X.backend.at(X, np.array([0, X.shape[0] - 1])).astype(np.float64)
    if approximation is not None:
        return _approximated(X, few, kernel, params, approximation, n_components, random_state)
    fitted = fit_kernel(few, kernel, params)
    if isinstance(fitted, FeatureMap) and isinstance(fitted.transform, LinearFeatures):
        plain = fitted.transform
        centre = column_means(_mapped(X, plain, few)) if centre_features else None
        transform = replace(plain, centre=centre)
        return ChunkedFeatures(transform, _mapped(X, transform, few))
    if isinstance(fitted, FormulaKernel) and fitted.formula.psd and not fitted.formula.fixes_diagonal:
        formula = fitted.formula
        if isinstance(formula, formulas.Gaussian):
            formula = replace(formula, centre=column_means(X))
        return ChunkedFormula(formula, _mapped(X, formula.prepare, few, whole=True))
    raise ParameterError(
        f"kernel={kernel!r} is not available for tables in blocks. Use 'linear', 'cosine', 'rbf', 'laplacian' or "
        "'poly', or an approximation such as approximation='nystroem'."
    )


def _with_gamma(X: BlockArray, kernel: str, params: dict[str, Any], weights: Floats | None) -> dict[str, Any]:
    """Return parameters with a rule for gamma replaced by its number."""
    rule = params.get("gamma", "scale" if kernel == "rbf" and params.get("sigma") is None else None)
    if rule == "scale":
        spread = X.shape[1] * _variance(X, weights)
        return params | {"gamma": 1.0 / spread if spread > 0 else 1.0}
    if rule == "median":
        usable = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights)
        size = min(len(usable), bandwidths.MEDIAN_SAMPLES)
        rows = usable[np.unique(np.linspace(0, len(usable) - 1, size).astype(np.intp))]
        return params | {"gamma": bandwidths.gamma(X.backend.at(X, rows).astype(np.float64), "median")}
    return params


def _variance(X: BlockArray, weights: Floats | None) -> float:
    """Return the variance of all entries, each counted with its sample's weight."""
    backend: BlocksBackend = X.backend
    share = backend.ones(X.shape[0]) if weights is None else backend.array(weights)
    total = backend.total(share)
    mean = backend.summed(work.weighted_entries, X, share, 0.0, 1) / (total * X.shape[1])
    variance = backend.summed(work.weighted_entries, X, share, mean, 2) / (total * X.shape[1])
    return variance if variance > 1e-28 * mean**2 else 0.0


def moved_features(X: BlockArray, offset: Floats) -> FeatureKernel:
    """Return the inner products of samples less an offset."""
    transform = LinearFeatures(centre=offset)
    return FeatureKernel(_mapped(X, transform, offset[None, :]), backend=X.backend)


def column_means(X: BlockArray) -> Floats:
    """Return the mean of every column."""
    return np.asarray(X.backend.summed(work.column_sums, X)) / X.shape[0]


def _mapped(X: BlockArray, transform: Any, few: Floats, *, whole: bool = False) -> BlockArray:
    """Return features of the samples, kept where they and the samples fit, else computed when they are read.

    Samples less a vector are never kept: reading the samples again costs less.

    With ``whole`` those of a block are then computed together, not some rows at a time.
    """
    width = transform(few).shape[1]
    backend: BlocksBackend = X.backend
    cheap = getattr(transform, "only_shifts", False)
    # Features of several views are kept side by side, if at all.
    kept = not cheap and not backend.several and backend.places.has_room_for(8 * X.shape[0] * width)
    make = work.mapped if kept or whole else work.promised
    array = backend.made(make, X, transform, width, shape=(X.shape[0], width), kept=kept)
    array.cheap = cheap
    return array


def _approximated(
    X: BlockArray, few: Floats, kernel: str, params: Any, method: Any, n_components: int, random_state: Any
) -> FittedKernel:
    """Return the features of an approximation, fitted on the rows that scikit-learn would draw."""
    rows = few
    size = n_components
    if method == "nystroem":
        size = min(n_components, X.shape[0])
        chosen = check_random_state(random_state).permutation(X.shape[0])[:size]
        rows = X.backend.at(X, chosen).astype(np.float64)
    fitted = approximate_kernel(
        rows,
        kernel,
        params,
        method=method,
        n_components=size,
        random_state=random_state,
    )
    assert isinstance(fitted, FeatureMap)
    return ChunkedFeatures(fitted.transform, _mapped(X, fitted.transform, few))


def view_means(op: Any, labels: Ints, weights: Floats, totals: Floats) -> list[Floats] | None:
    """Return the means of clusters in every view, where the features of all views are in blocks; None elsewhere."""
    if not in_blocks(getattr(op, "Phi", None)):
        return None
    sums = op.feature_sums(op.backend.labels(labels), op.backend.array(weights), len(totals))
    means = sums / np.where(totals > 0, totals, 1.0)[:, None]
    return np.split(means, np.cumsum(op.widths)[:-1], axis=1)


class PairKernel(KernelOperator):
    """k(x_i, x_j) of samples in blocks: every value is computed when it is needed, where the row lies."""

    def __init__(self, formula: formulas.Formula, X: BlockArray, memory_limit: float = 2048) -> None:
        self.backend = X.backend
        self.formula = formula
        self.X = X
        self.memory_limit = memory_limit  # MiB of training samples that may be kept for new ones
        self.shape = (X.shape[0], X.shape[0])
        self.psd = formula.psd

    @property
    def recomputed(self) -> bool:
        """True: no value is stored."""
        return True

    def diag(self) -> BackendArray:
        """Return k(x_i, x_i)."""
        return self.X.of(self.formula.diag, shape=self.shape[:1])

    def matmat(self, H: BackendArray) -> BackendArray:
        """Return K @ H; all samples travel to all places."""
        return self.X.backend.pair_products(self.formula.tile, self.X, H)

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the kernel between some samples."""
        return self.formula.tile(self._taken(rows), self._taken(cols))

    def columns(self, samples: Ints) -> BackendArray:
        """Return the kernel between all samples and some, which travel to all places."""
        sources = self.X.backend.at(self.X, samples)
        return self.X.of(self.formula.tile, sources, shape=(self.shape[0], len(samples)))

    def cluster_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> BackendArray:
        """Return the (k, n) cluster sums."""
        return self.X.backend.pair_sums(self.formula.tile, self.X, labels, weights, n_clusters)

    def move_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update the sums; the rows of moved samples travel."""
        self.X.backend.pair_moves(sums, self.formula.tile, self.X, moves, weights)

    def _taken(self, index: Index) -> Array:
        rows = np.arange(self.shape[0])[index] if isinstance(index, slice) else np.asarray(index)
        return self.X.backend.at(self.X, rows)
