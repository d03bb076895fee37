"""Operators made of another one: scaled, shifted on the diagonal, centred, with unit diagonal.

Each holds its base and a few vectors; nothing of size n x n is formed. Each knows how to treat a cross-kernel
(``cross``) so that new samples meet the kernel the model was trained on.
"""

import numpy as np
import scipy.sparse as sp

from kernelweave.backends import BackendArray, Moves
from kernelweave.backends.host import indices
from kernelweave.foundation.array_types import Array, Floats, Index, Ints
from kernelweave.foundation.errors import KernelError
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.operator import KernelOperator

# Columns looked at together.
COLUMNS = 256
#: A spread of samples below this share of the kernel's values is what rounding leaves of none.
FLAT = 1e-13
# Degrees below this share of what the kernel's largest value could make them are rounding, where some are negative.
NEGATIVE_DEGREE = 1e-14


class ScaledKernel(KernelOperator):
    """factor * K."""

    def __init__(self, base: KernelOperator, factor: float) -> None:
        self.base = base
        self.backend = base.backend
        self.factor = float(factor)
        self.spare_vectors = base.spare_vectors
        self.held_entries = base.held_entries
        self.shape = base.shape
        self.psd = base.psd if factor >= 0 else None

    def cross(self, new: KernelOperator) -> "ScaledKernel":
        """Return the cross-kernel with the same factor."""
        return ScaledKernel(new, self.factor)

    @property
    def reads_a_matrix(self) -> bool:
        """Whether the base does."""
        return self.base.reads_a_matrix

    @property
    def recomputed(self) -> bool:
        """Whether those of the base are."""
        return self.base.recomputed

    def diag(self) -> Floats:
        """Return the scaled diagonal."""
        return self.factor * self.base.diag()

    def scale(self) -> float:
        """Return the scaled scale."""
        return abs(self.factor) * self.base.scale()

    def matmat(self, H: Array) -> Floats:
        """Return the scaled product."""
        return self.factor * self.base.matmat(H)

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the scaled block."""
        block = self.base.block(rows, cols)
        block *= self.factor
        return block

    def columns(self, samples: Ints) -> BackendArray:
        """Return the scaled columns."""
        return self.factor * self.base.columns(samples)

    def cluster_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> BackendArray:
        """Return the scaled sums."""
        return self.base.cluster_sums(labels, self.factor * weights, n_clusters)

    def move_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update with scaled weights."""
        self.base.move_sums(sums, moves, self.factor * weights)

    def sparse_matrix(self) -> sp.csr_array | None:
        """Return the scaled graph."""
        graph = self.base.sparse_matrix()
        return None if graph is None else self.factor * graph

    def for_products(self) -> KernelOperator:
        """Return a stored matrix or a graph with the factor multiplied in."""
        matrix = self.base.stored_matrix()
        if isinstance(matrix, np.ndarray):
            return DenseKernel(self.factor * matrix)
        return _as_graph(self)


class ShiftedKernel(KernelOperator):
    """K + diag(shift): distances between different samples grow, the best partition of a weighted set with
    shift proportional to 1 / weight stays.
    """  # noqa: D205

    def __init__(self, base: KernelOperator, shift: float | Floats, *, psd: bool | None = None) -> None:
        self.base = base
        self.backend = base.backend
        self.spare_vectors = base.spare_vectors
        self.shape = base.shape
        self.shift = np.broadcast_to(np.asarray(shift, dtype=np.float64), (base.shape[0],))
        self.psd = psd if psd is not None else (True if base.psd and (self.shift >= 0).all() else None)

    def cross(self, new: KernelOperator) -> KernelOperator:
        """Return the cross-kernel as it is: a new sample is not on the diagonal."""
        return new

    @property
    def recomputed(self) -> bool:
        """Whether those of the base are."""
        return self.base.recomputed

    def diag(self) -> Floats:
        """Return the shifted diagonal."""
        return self.base.diag() + self.shift

    def sparse_matrix(self) -> sp.csr_array | None:
        """Return the shifted graph."""
        graph = self.base.sparse_matrix()
        return None if graph is None else sp.csr_array(graph + diagonal_matrix(self.shift))

    def for_products(self) -> KernelOperator:
        """Return one graph where the base is a graph."""
        return _as_graph(self)

    def scale(self) -> float:
        """Return the base's scale and the largest shift together."""
        return self.base.scale() + float(np.abs(self.shift).max(initial=0.0))

    def matmat(self, H: Array) -> Floats:
        """Return K @ H + shift * H."""
        return self.base.matmat(H) + self.shift[:, None] * H

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the block, shifted where a row meets its own column."""
        r = indices(rows, self.shape[0])
        c = indices(cols, self.shape[1])
        return self.base.block(rows, cols) + np.where(r[:, None] == c[None, :], self.shift[r][:, None], 0.0)

    def cluster_sums(self, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the sums; a sample adds its shift to its own cluster's sum."""
        sums = self.base.cluster_sums(labels, weights, n_clusters)
        sums[labels, np.arange(self.shape[1])] += weights * self.shift
        return sums

    def move_sums(self, sums: Floats, moves: Moves, weights: Floats) -> None:
        """Update the base's sums and take the shift of each moved sample along."""
        self.base.move_sums(sums, moves, weights)
        carried = (weights * self.shift)[moves.samples]
        sums[moves.old, moves.samples] -= carried
        sums[moves.new, moves.samples] += carried


class CentredKernel(KernelOperator):
    """Inner products of features moved so that the (weighted) mean of the training samples is the origin.

    K_ij - r_i - r_j + g, with r the mean of each row over the training samples and g their grand mean.
    """

    def __init__(
        self,
        base: KernelOperator,
        weights: Floats | None = None,
        *,
        column_means: Floats | None = None,
        grand_mean: float | None = None,
    ) -> None:
        self.base = base
        self.backend = base.backend
        self.shape = base.shape
        self.psd = True if base.psd else None  # centring may remove the only negative direction
        n = base.shape[1]
        self.shares = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
        self.row_means = base.matmat(self.shares[:, None])[:, 0]
        self.column_means = self.row_means if column_means is None else column_means
        self.grand_mean = float(self.shares @ self.column_means) if grand_mean is None else grand_mean

    @property
    def rank_bound(self) -> int:
        """The bound of the base: centring adds no direction."""
        return self.base.rank_bound

    def gram_factor(self) -> Floats:
        """Return the factor of the base less its mean row."""
        F = self.base.gram_factor()
        return F - self.shares @ F

    def cross(self, new: KernelOperator) -> "CentredKernel":
        """Return the cross-kernel centred with the training means."""
        return CentredKernel(new, self.shares, column_means=self.column_means, grand_mean=self.grand_mean)

    @property
    def recomputed(self) -> bool:
        """Whether those of the base are."""
        return self.base.recomputed

    def diag(self) -> Floats:
        """Return k(x, x) - 2 r + g."""
        return self.base.diag() - 2.0 * self.row_means + self.grand_mean

    def scale(self) -> float:
        """Return the base's scale: rounding is that of the values before centring."""
        return self.base.scale()

    def matmat(self, H: Array) -> Floats:
        """Return the centred product from one product with the base."""
        H = np.asarray(H, dtype=np.float64)
        totals = H.sum(axis=0)
        offset = self.grand_mean * totals - self.column_means @ H
        return self.base.matmat(H) - self.row_means[:, None] * totals + offset

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the centred block."""
        means = self.row_means[rows][:, None] + self.column_means[cols][None, :]
        return self.base.block(rows, cols) - means + self.grand_mean

    def cluster_sums(self, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the centred sums."""
        totals = np.bincount(labels, weights, n_clusters)
        offset = self.grand_mean * totals - np.bincount(labels, weights * self.column_means, n_clusters)
        sums = self.base.cluster_sums(labels, weights, n_clusters)
        sums += offset[:, None] - totals[:, None] * self.row_means[None, :]
        return sums

    def move_sums(self, sums: Floats, moves: Moves, weights: Floats) -> None:
        """Update the base's sums and the terms that follow the clusters' total weights."""
        self.base.move_sums(sums, moves, weights)
        totals = self.backend.moved_sums(moves, weights, sums.shape[0])
        means = self.backend.moved_sums(moves, weights * self.column_means, sums.shape[0])
        for c in np.union1d(moves.old, moves.new):
            sums[c] += self.grand_mean * totals[c] - means[c] - totals[c] * self.row_means


class TwoSidedKernel(KernelOperator):
    """D K D': rows and columns multiplied by numbers of their own."""

    def __init__(self, base: KernelOperator, row_scale: Floats, column_scale: Floats) -> None:
        self.base = base
        self.backend = base.backend
        self.spare_vectors = base.spare_vectors
        self.shape = base.shape
        self.psd = base.psd
        self.row_scale = row_scale
        self.column_scale = column_scale

    @property
    def reads_a_matrix(self) -> bool:
        """Whether the base does."""
        return self.base.reads_a_matrix

    @property
    def recomputed(self) -> bool:
        """Whether those of the base are."""
        return self.base.recomputed

    def diag(self) -> Floats:
        """Return the diagonal, scaled from both sides (on one sample set both scales are the same)."""
        return self.row_scale**2 * self.base.diag()

    def scale(self) -> float:
        """Return the size of the largest entry, read column by column where the diagonal may not hold it."""
        if self.base.psd:
            return super().scale()
        graph = self.sparse_matrix()
        if graph is not None:
            return float(np.abs(graph.data).max(initial=0.0))
        largest = 0.0
        for start in range(0, self.shape[1], COLUMNS):
            samples = np.arange(start, min(start + COLUMNS, self.shape[1]))
            low, high = self.backend.extremes(self.columns(samples))
            largest = max(largest, abs(low), abs(high))
        return largest

    def matmat(self, H: Array) -> Floats:
        """Return D K D' H."""
        return self.row_scale[:, None] * self.base.matmat(self.column_scale[:, None] * H)

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the scaled block."""
        r = indices(rows, self.shape[0])
        c = indices(cols, self.shape[1])
        row_scale = self.backend.at(self.row_scale, r)
        return row_scale[:, None] * self.base.block(rows, cols) * self.backend.at(self.column_scale, c)[None, :]

    def columns(self, samples: Ints) -> BackendArray:
        """Return the scaled columns."""
        return self.row_scale[:, None] * self.base.columns(samples) * self.backend.at(self.column_scale, samples)

    def cluster_sums(self, labels: BackendArray, weights: BackendArray, n_clusters: int) -> BackendArray:
        """Return the sums, both scales folded in."""
        return self.row_scale * self.base.cluster_sums(labels, weights * self.column_scale, n_clusters)

    def move_sums(self, sums: BackendArray, moves: Moves, weights: BackendArray) -> None:
        """Update through unscaled changes: the rows' scale applies to what is added only."""
        change = 0.0 * sums
        self.base.move_sums(change, moves, weights * self.column_scale)
        change *= self.row_scale
        sums += change

    def sparse_matrix(self) -> sp.csr_array | None:
        """Return the graph with both scales multiplied in."""
        graph = self.base.sparse_matrix()
        if graph is None:
            return None
        return sp.csr_array(diagonal_matrix(self.row_scale) @ graph @ diagonal_matrix(self.column_scale))

    def for_products(self) -> KernelOperator:
        """Return one graph where the base is a graph."""
        return _as_graph(self)


class UnitDiagonalKernel(TwoSidedKernel):
    """K_ij / sqrt(K_ii K_jj): every sample on the unit sphere of the feature space."""

    def __init__(self, base: KernelOperator, column_scale: Floats | None = None) -> None:
        diag = base.diag()
        bad = np.flatnonzero(~(diag > 0))
        if len(bad):
            raise KernelError(
                f"A unit diagonal needs k(x, x) > 0, but sample {bad[0]} has {diag[bad[0]]:.6g}. Remove such samples "
                "(all-zero rows, for most kernels) or leave the kernel as it is."
            )
        rows = 1.0 / np.sqrt(diag)
        super().__init__(base, rows, rows if column_scale is None else column_scale)

    def cross(self, new: KernelOperator) -> "UnitDiagonalKernel":
        """Return the cross-kernel, its columns scaled as in training."""
        return UnitDiagonalKernel(new, self.column_scale)

    def diag(self) -> Floats:
        """Return ones."""
        return np.ones(self.shape[0])


class DegreeKernel(TwoSidedKernel):
    """K_ij / sqrt(d_i d_j) with d the weighted sum of a row: affinities as normalised spectral methods use them."""

    def __init__(
        self,
        base: KernelOperator,
        weights: Floats | None = None,
        column_scale: Floats | None = None,
        name: str = "",
    ) -> None:
        self.weights = base.backend.ones(base.shape[1]) if weights is None else weights
        rows = inverse_degrees(base, self.weights, name) ** 0.5
        super().__init__(base, rows, rows if column_scale is None else column_scale)

    def cross(self, new: KernelOperator) -> "DegreeKernel":
        """Return the cross-kernel: new samples by their degrees among the training samples, columns as in training."""
        return DegreeKernel(new, self.weights, self.column_scale)


def inverse_degrees(op: KernelOperator, weights: BackendArray | None = None, name: str = "") -> BackendArray:
    """Return 1 / (weighted row sum) of every sample; zero for a sample that is like none, which then takes no part."""
    backend = op.backend
    weights = backend.ones(op.shape[1]) if weights is None else weights
    degrees = op.matmat(weights[:, None])[:, 0]
    low, high = backend.extremes(degrees)
    if low < 0:
        size = op.scale() if op.shape[0] == op.shape[1] else max(-low, high)
        least = NEGATIVE_DEGREE * backend.total(weights) * size
        degrees = backend.where(abs(degrees) <= least, 0.0, degrees)
    sample = backend.first(degrees < 0)
    if sample >= 0:
        degree = backend.at(degrees, np.array([sample]))[0]
        raise KernelError(
            f"Sample {sample}{name} has a degree (sum of similarities) of {degree:.6g}; dividing by degrees "
            "needs degrees of at least 0. Choose another kernel or another normalisation."
        )
    positive = degrees > 0
    return backend.where(positive, 1.0 / backend.where(positive, degrees, 1.0), 0.0)


def diagonal_matrix(values: Floats) -> sp.dia_array:
    """Return a sparse diagonal matrix."""
    return sp.dia_array((values[None], [0]), shape=(len(values),) * 2)


def _as_graph(op: KernelOperator) -> KernelOperator:
    """Return a kernel that is a graph as one, others as they are."""
    graph = op.sparse_matrix()
    return op if graph is None else GraphKernel(graph)


def mean_squared_distance(op: KernelOperator, weights: BackendArray | None = None) -> float:
    """Return the (weighted) mean of K_ii - 2 K_ij + K_jj over all pairs (PhD 4.2.3), from one product."""
    backend = op.backend
    n = op.n_samples
    masses = backend.ones(n) if weights is None else backend.array(weights)
    shares = masses * (1.0 / n) if weights is None else masses / backend.total(masses)
    grand = backend.dot(shares, op.matmat(shares[:, None])[:, 0])
    return 2.0 * (backend.dot(shares, op.diag()) - grand)


def feature_space_variance(op: KernelOperator) -> float:
    """Return mean(diag) - mean(all), the divisor of multiplicative normalisation (PhD 5.2)."""
    return 0.5 * mean_squared_distance(op)


def unit_distance(op: KernelOperator, weights: Floats | None = None, name: str = "") -> ScaledKernel:
    """Return the kernel divided by its (weighted) mean squared feature-space distance (PhD 4.2.3)."""
    return ScaledKernel(op, 1.0 / _positive(mean_squared_distance(op, weights), op.scale(), name))


def unit_variance(op: KernelOperator) -> ScaledKernel:
    """Return the kernel after multiplicative normalisation, K / (mean(diag) - mean(all)) (PhD 5.2)."""
    return ScaledKernel(op, 1.0 / _positive(feature_space_variance(op), op.scale(), ""))


def _positive(spread: float, scale: float, name: str) -> float:
    if not spread > FLAT * scale:
        where = f" of {name}" if name else ""
        raise KernelError(
            f"The samples{where} have spread {spread:.6g} in feature space, so the kernel cannot be normalised: all "
            "samples look the same to it. Drop the view or choose another kernel."
        )
    return spread
