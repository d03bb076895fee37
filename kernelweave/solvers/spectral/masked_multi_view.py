"""Multi-view spectral clustering of samples that are absent from some views.

Affinity    A_ij = sum_v c_v K_v,ij / C_ij over the views that have both samples, c_v = w_v^p and C_ij the share of
            these views in sum_v c_v; a pair that no view has together gets the (weighted) mean of the others, since
            with zeros clusters would say who was measured where
Objective   J(Y, w) = sum_v w_v^p D_v, Y the leading eigenvectors of A and w on the simplex. D_v = (t_v - tr(Q_v^T K_v
            Q_v)) / W_v, with Q_v an orthonormal basis of the rows of Y that view v has, t_v the trace of K_v and W_v
            the weight of its samples; for kernels divided by degrees t_v is the number of vectors and W_v is 1
Input       the kernel of every view among its samples (ObservedViews), view weights to begin with
Cost        an outer step is one set of leading eigenvectors of a matrix of all samples, stored; of graphs the edges
Guarantee   with every sample in every view the run is that of ``multi_view_spectral``. Otherwise A is not the sum that
            minimises J, so that a step might raise it: such a step is not taken, and the run ends
Source      none; A averages over pairs as Overlap in ``solvers.graph.fusion`` does
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from kernelweave.backends import Backend, BackendArray
from kernelweave.foundation.array_types import Array, Bools, Floats
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.foundation.memory import FREE, matrices_mib
from kernelweave.foundation.threads import single_threaded_blas
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.observed_views import ObservedViews
from kernelweave.kernels.operator import KernelOperator
from kernelweave.partitions.views import without_rounding
from kernelweave.solvers.graph.fusion import Background, Overlap
from kernelweave.solvers.shared.view_weights import best_view_weights, start_of_weights
from kernelweave.solvers.spectral.eigenvectors import SMALL, StoredBlock, extension, leading_of, leading_vectors
from kernelweave.solvers.spectral.multi_view_spectral import FINE, MultiViewSpectrum, begun_at, state_of

# Relative residual of eigenvectors on the way: nothing of a search is kept for the next one but its vectors, so that
# finer ones would cost a block of products each.
ROUGH = 1e-4
# Directions of the eigenvectors that hold less than this share of the longest say nothing about a view.
NO_DIRECTION = 1e-10
# A copy of the averaged sum, and one that is decomposed.
DECOMPOSED = 2


@dataclass(frozen=True)
class _Affinity:
    """The averaged sum of the kernels: a matrix and, beside a sparse one, what pairs without a common view have."""

    known: KernelOperator  # of all samples; a stored one holds the pairs without a common view, too
    beside: Background | None
    level: float  # the mean of the known values

    @property
    def backend(self) -> Backend:
        """Where the matrix is, and blocks that it is multiplied with."""
        return self.known.backend

    def times(self, H: BackendArray) -> BackendArray:
        """Return the product with a block."""
        product = self.known.matmat(H)
        if self.beside is None:
            return product
        # Background.times by the verbs of a backend: sums by pattern, and what every pattern makes of them.
        pattern = self.backend.labels(self.beside.pattern)
        sums = self.backend.feature_sums(H, pattern, self.backend.ones(len(H)), len(self.beside.unknown))
        return product + self.backend.relabel(pattern, self.beside.level * (self.beside.unknown @ sums))

    def dense(self) -> Floats:
        """Return it as one matrix on the host."""
        stored = self.known.block(slice(None), slice(None))
        return stored if self.beside is None else stored + self.beside.dense()


@dataclass(frozen=True)
class ObservedPairs:
    """Leading eigenpairs of the averaged sum, largest first."""

    values: Floats  # (k,)
    traces: Floats  # (V,) tr(Q_v^T K_v Q_v)
    ranks: Floats  # (V,) columns of Q_v
    residual: float
    vectors: Floats  # (n, k) Y
    root: Floats  # (n,) w^1/2
    affinity: _Affinity
    block: BackendArray | None  # where the next search may start

    @property
    def level(self) -> float:
        """The affinity of samples that no view has together."""
        return self.affinity.level

    def embedding(self) -> Floats:
        """Return f at every sample, shape (n, k), from one product, as new samples get it."""
        backend = self.affinity.backend
        return backend.host(self.affinity.times(backend.array(self.sources())))

    def sources(self) -> Floats:
        """Return w^1/2 Y / lambda, shape (n, k): f(x) of a new sample is its row of affinities times this."""
        return np.asarray(self.root[:, None] * self.vectors * extension(self.values))


@dataclass(frozen=True)
class _Start:
    """Vectors that a search may start from; they leave the affinity behind that they were found in."""

    block: BackendArray | None
    backend: Backend

    @property
    def host_block(self) -> Floats | None:
        """The block as NumPy."""
        return None if self.block is None else self.backend.host(self.block)


class _RowsOf:
    """The rows of a kernel on the host that is not one stored matrix, as sums over pairs read them."""

    def __init__(self, op: KernelOperator) -> None:
        self._op = op

    def __getitem__(self, rows: slice) -> Array:
        return self._op.block(rows, slice(None))


def _parts(operators: Sequence[KernelOperator], room: float) -> list[KernelOperator]:
    """Return the kernels as they are summed: matrices are not copied, and others are stored where they fit.

    On a device all are stored: that is where they are summed, and where scaled ones have no rows to be read.
    """
    parts: list[KernelOperator] = []
    for op in operators:
        matrix = op.stored_matrix()
        if matrix is not None:
            parts.append(DenseKernel(matrix, backend=op.backend))
        elif not isinstance(op.diag(), np.ndarray):
            parts.append(DenseKernel(op.columns(np.arange(op.n_samples)), backend=op.backend))
        elif op.reads_a_matrix:
            parts.append(op)  # read as it is; what it is scaled by is multiplied in for every sum
        elif matrices_mib(1, op.n_samples) <= room:
            parts.append(_filled(op))
            room -= matrices_mib(1, op.n_samples)
        else:
            parts.append(op)
    return parts


def _filled(op: KernelOperator) -> DenseKernel:
    """Return a kernel of the host as a matrix, some rows at a time."""
    K = np.empty(op.shape)
    step = max(1, op.held_entries // op.n_samples)
    for start in range(0, op.n_samples, step):
        rows = slice(start, min(start + step, op.n_samples))
        K[rows] = op.block(rows, slice(None))
    return DenseKernel(K, backend=op.backend)


def shares_in_common(patterns: Bools, others: Bools, coefficients: Floats) -> Floats:
    """Return the share of the coefficients of the views that two patterns have in common."""
    return np.asarray((patterns * coefficients) @ others.T / coefficients.sum())


class ObservedSpectrum:
    """Eigenvectors of the averaged sum, for one set of coefficients after another.

    Stored kernels are summed where they are, others are stored within ``room`` MiB or computed for every sum. Sums of
    graphs are made on the host, of their edges, and go where ``place`` puts them.
    """

    def __init__(
        self,
        views: ObservedViews,
        weights: Floats,
        place: Callable[[KernelOperator], KernelOperator] | None = None,
        room: float = np.inf,
    ) -> None:
        self._views = views
        self._place = place
        self._weights = weights
        self._root = np.sqrt(weights)
        self._overlap = Overlap.of(views.observed)
        graphs = [op.sparse_matrix() for op in views.operators]
        self._sparse = all(graph is not None for graph in graphs)
        self._parts: list[Any] = list(map(GraphKernel, graphs)) if self._sparse else _parts(views.operators, room)
        held = sum(matrices_mib(1, K.n_samples) for K in self._parts if K.stored_matrix() is not None)
        known = sum(matrices_mib(1, op.n_samples) for op in views.operators if op.stored_matrix() is not None)
        self._room = room - held + known

    def traces(self) -> Floats:
        """Return sum_i w_i K_v(x_i, x_i) of every view."""
        pairs = zip(self._views.operators, self._views.samples, strict=True)
        return np.array([float(self._weights[samples] @ op.backend.host(op.diag())) for op, samples in pairs])

    def leading(
        self, coefficients: Floats, count: int, tol: float, start: _Start | StoredBlock | None
    ) -> ObservedPairs:
        """Return the leading ``count`` pairs; ``start`` may hold those of other coefficients."""
        n = self._views.n_samples
        count = min(count, n)
        affinity = self._affinity(coefficients)
        if n <= SMALL and matrices_mib(DECOMPOSED, n) <= max(self._room, FREE):
            matrix = affinity.dense()
            matrix *= self._root[:, None]
            matrix *= self._root
            values, vectors = leading_of(matrix, count)
            return self._pairs(values, vectors, 0.0, affinity, None)
        backend = affinity.backend
        root = backend.array(self._root)

        def product(block: BackendArray) -> BackendArray:
            return root[:, None] * affinity.times(root[:, None] * block)

        first = None if start is None or start.block is None else backend.array(start.block)
        values, block, residual = leading_vectors(product, n, count, tol, first, backend=backend)
        return self._pairs(values[:count], backend.host(block[:, :count]), residual, affinity, block)

    def _pairs(
        self, values: Floats, vectors: Floats, residual: float, affinity: _Affinity, block: BackendArray | None
    ) -> ObservedPairs:
        bases = [_orthonormal(vectors[samples]) for samples in self._views.samples]
        triples = zip(self._parts, self._views.samples, bases, strict=True)
        spread = [(K, K.backend.array(self._root[samples][:, None] * Q)) for K, samples, Q in triples]
        traces = np.array([K.backend.total(H * K.matmat(H)) for K, H in spread])
        ranks = np.array([float(Q.shape[1]) for Q in bases])
        return ObservedPairs(values, traces, ranks, residual, vectors, self._root, affinity, block)

    def _affinity(self, coefficients: Floats) -> _Affinity:
        """Return the averaged sum at these coefficients."""
        patterns = self._overlap.patterns
        shares = shares_in_common(patterns, patterns, coefficients)
        unknown = (shares <= 0).astype(np.float64)
        total: KernelOperator = self._graph(coefficients) if self._sparse else self._stored(coefficients, shares)
        sizes = np.bincount(self._overlap.pattern, self._weights, len(patterns))
        mass = float(sizes @ (1.0 - unknown) @ sizes)
        weights = total.backend.array(self._weights)
        level = total.backend.dot(weights, total.matmat(weights[:, None])[:, 0]) / mass if mass > 0 else 0.0
        if not unknown.any():
            return _Affinity(total, None, level)
        if self._sparse:
            return _Affinity(total, Background(self._overlap.pattern, unknown, level), level)
        matrix: Any = total.stored_matrix()
        total.backend.add_to_pairs(matrix, total.backend.labels(self._overlap.pattern), level * unknown)
        return _Affinity(total, None, level)

    def _stored(self, coefficients: Floats, shares: Floats) -> DenseKernel:
        backend = self._parts[0].backend
        factors = np.divide(1.0, shares, out=np.zeros_like(shares), where=shares > 0)
        stored = [part.stored_matrix() for part in self._parts]
        matrices = [_RowsOf(K) if matrix is None else matrix for K, matrix in zip(self._parts, stored, strict=True)]
        samples = [backend.labels(known) for known in self._views.samples]
        pattern = backend.labels(self._overlap.pattern)
        return DenseKernel(backend.sum_of_pairs(matrices, samples, coefficients, pattern, factors), backend=backend)

    def _graph(self, coefficients: Floats) -> KernelOperator:
        graph = GraphKernel(self._sparse_sum(coefficients))
        return graph if self._place is None else self._place(graph)

    def _sparse_sum(self, coefficients: Floats) -> sp.csr_array:
        n = self._views.n_samples
        total = sp.csr_array((n, n))
        for K, samples, c in zip(self._parts, self._views.samples, coefficients.tolist(), strict=True):
            if c != 0.0:  # edges of other views would be divided by a share of nothing
                edges = sp.coo_array(K.A)
                places = (samples[edges.row], samples[edges.col])
                total = total + sp.csr_array((c * edges.data, places), shape=(n, n))
        return self._overlap.averaged(sp.csr_array(total), coefficients)


def masked_multi_view_spectral(
    spectrum: ObservedSpectrum,
    *,
    totals: Floats,
    by_degrees: bool,
    n_vectors: int,
    p: float,
    view_weights: Floats,
    learned: bool = True,
    max_iter: int = 100,
    tol: float = 1e-6,
    keeper: Keeper = NOTHING,
    on_step: Callable[[float], object] | None = None,
) -> MultiViewSpectrum:
    """Alternate from ``view_weights`` until J falls by at most ``tol * J`` or would rise.

    ``totals`` are the W_v; ``by_degrees`` says that kernels were divided by degrees. Other options as in
    ``multi_view_spectral``.
    """
    p, view_weights, learned = start_of_weights(p, view_weights, learned)
    traces = spectrum.traces()

    def scatters_of(pairs: ObservedPairs) -> Floats:
        of_all = pairs.ranks if by_degrees else traces
        left = without_rounding(of_all - pairs.traces, np.abs(of_all) + np.abs(pairs.traces))
        return np.asarray(left if by_degrees else left / totals)

    begun = begun_at(keeper.known(), view_weights)
    view_weights = begun.view_weights
    history = begun.history
    converged = begun.converged
    pairs: ObservedPairs | None = None
    start: Any = begun.start
    while not converged and len(history) < max_iter:
        pairs = None  # its affinity would lie beside the next one
        pairs = spectrum.leading(view_weights**p, n_vectors, ROUGH if learned else FINE, start)
        start = _Start(pairs.block, pairs.affinity.backend)
        scatters = scatters_of(pairs)
        weights = best_view_weights(scatters, p) if learned else view_weights
        objective = float(weights**p @ scatters)
        if history and objective > history[-1]:
            converged = True
            break
        converged = not learned or (bool(history) and history[-1] - objective <= tol * abs(objective))
        view_weights = weights
        history.append(objective)
        if on_step is not None:
            on_step(objective)
        if learned:
            keeper.keep(state_of, view_weights, history, converged, start)
    if learned:  # eigenvectors of the weights reported
        pairs = None
        pairs = spectrum.leading(view_weights**p, n_vectors, FINE, start)
    assert pairs is not None  # max_iter is at least 1
    return MultiViewSpectrum(view_weights, scatters_of(pairs), pairs.values, tuple(history), converged, pairs)


def _orthonormal(rows: Floats) -> Floats:
    """Return an orthonormal basis of the columns, fewer where some depend on others."""
    with single_threaded_blas():
        U, lengths, _ = scipy.linalg.svd(rows, full_matrices=False, check_finite=False)
    return np.asarray(U[:, lengths > NO_DIRECTION * max(float(lengths.max(initial=0.0)), NO_DIRECTION)])
