"""Operators made of another one: scaled, shifted on the diagonal, centred, with unit diagonal.

Each holds its base and a few vectors; nothing of size n x n is formed. Each knows how to treat a cross-kernel
(``cross``) so that new samples meet the kernel the model was trained on.
"""

import numpy as np

from kernelweave.foundation.array_types import Array, Floats, Index, Ints
from kernelweave.foundation.errors import KernelError
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.operator import KernelOperator, indices

# Rows looked at together.
ROWS = 256
#: A spread of samples below this share of the kernel's values is what rounding leaves of none.
FLAT = 1e-13
# Degrees below this share of what the kernel's largest value could make them are rounding, where some are negative.
ROUNDING = 1e-14


class ScaledKernel(KernelOperator):
    """factor * K."""

    def __init__(self, base: KernelOperator, factor: float) -> None:
        self.base = base
        self.factor = float(factor)
        self.shape = base.shape
        self.psd = base.psd if factor >= 0 else None

    def cross(self, new: KernelOperator) -> "ScaledKernel":
        """Return the cross-kernel with the same factor."""
        return ScaledKernel(new, self.factor)

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
        return self.factor * self.base.block(rows, cols)

    def cluster_sums(self, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the scaled sums."""
        return self.base.cluster_sums(labels, self.factor * weights, n_clusters)

    def move_sums(self, sums: Floats, moved: Ints, old: Ints, new: Ints, weights: Floats) -> None:
        """Update with scaled weights."""
        self.base.move_sums(sums, moved, old, new, self.factor * weights)


class ShiftedKernel(KernelOperator):
    """K + diag(shift): distances between different samples grow, the best partition of a weighted set with
    shift proportional to 1 / weight stays.
    """  # noqa: D205

    def __init__(self, base: KernelOperator, shift: float | Floats, *, psd: bool | None = None) -> None:
        self.base = base
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

    def move_sums(self, sums: Floats, moved: Ints, old: Ints, new: Ints, weights: Floats) -> None:
        """Update the base's part and carry each moved sample's own shift along."""
        self.base.move_sums(sums, moved, old, new, weights)
        sums[old, moved] -= weights * self.shift[moved]
        sums[new, moved] += weights * self.shift[moved]


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

    def move_sums(self, sums: Floats, moved: Ints, old: Ints, new: Ints, weights: Floats) -> None:
        """Update the base's part and the terms that follow the clusters' total weights."""
        self.base.move_sums(sums, moved, old, new, weights)
        k = sums.shape[0]
        own = weights * self.column_means[moved]
        totals = np.bincount(new, weights, k) - np.bincount(old, weights, k)
        means = np.bincount(new, own, k) - np.bincount(old, own, k)
        for c in np.union1d(old, new):
            sums[c] += self.grand_mean * totals[c] - means[c] - totals[c] * self.row_means


class TwoSidedKernel(KernelOperator):
    """D K D': rows and columns multiplied by numbers of their own."""

    def __init__(self, base: KernelOperator, row_scale: Floats, column_scale: Floats) -> None:
        self.base = base
        self.shape = base.shape
        self.psd = base.psd
        self.row_scale = row_scale
        self.column_scale = column_scale

    @property
    def recomputed(self) -> bool:
        """Whether those of the base are."""
        return self.base.recomputed

    def diag(self) -> Floats:
        """Return the diagonal, scaled from both sides (on one sample set both scales are the same)."""
        return self.row_scale**2 * self.base.diag()

    def scale(self) -> float:
        """Return the size of the largest entry, found block by block where the diagonal may not hold it."""
        if self.base.psd:
            return super().scale()
        if isinstance(self.base, GraphKernel):
            edges = self.base.A.tocoo()
            values = self.row_scale[edges.row] * edges.data * self.column_scale[edges.col]
            return float(np.abs(values).max(initial=0.0))
        blocks = (slice(lo, lo + ROWS) for lo in range(0, self.shape[0], ROWS))
        return max(float(np.abs(self.block(rows, slice(None))).max(initial=0.0)) for rows in blocks)

    def matmat(self, H: Array) -> Floats:
        """Return D K D' H."""
        return self.row_scale[:, None] * self.base.matmat(self.column_scale[:, None] * H)

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the scaled block."""
        return self.row_scale[rows][:, None] * self.base.block(rows, cols) * self.column_scale[cols][None, :]

    def cluster_sums(self, labels: Ints, weights: Floats, n_clusters: int) -> Floats:
        """Return the sums, both scales folded in."""
        return self.row_scale * self.base.cluster_sums(labels, weights * self.column_scale, n_clusters)

    def move_sums(self, sums: Floats, moved: Ints, old: Ints, new: Ints, weights: Floats) -> None:
        """Update through unscaled changes: the rows' scale applies to what is added only."""
        change = np.zeros_like(sums)
        self.base.move_sums(change, moved, old, new, weights * self.column_scale[moved])
        change *= self.row_scale
        sums += change


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
        self.weights = np.ones(base.shape[1]) if weights is None else weights
        rows = np.sqrt(inverse_degrees(base, self.weights, name))
        super().__init__(base, rows, rows if column_scale is None else column_scale)

    def cross(self, new: KernelOperator) -> "DegreeKernel":
        """Return the cross-kernel: new samples by their degrees among the training samples, columns as in training."""
        return DegreeKernel(new, self.weights, self.column_scale)


def inverse_degrees(op: KernelOperator, weights: Floats | None = None, name: str = "") -> Floats:
    """Return 1 / (weighted row sum) of every sample; zero for a sample that is like none, which then takes no part."""
    weights = np.ones(op.shape[1]) if weights is None else weights
    degrees = op.matmat(weights[:, None])[:, 0]
    if (degrees < 0).any():
        least = ROUNDING * float(weights.sum()) * (op.scale() if op.shape[0] == op.shape[1] else np.abs(degrees).max())
        degrees[np.abs(degrees) <= least] = 0.0
    bad = np.flatnonzero(degrees < 0)
    if len(bad):
        raise KernelError(
            f"Sample {bad[0]}{name} has a degree (sum of similarities) of {degrees[bad[0]]:.6g}; dividing by degrees "
            "needs similarities that are not negative on the whole. Choose another kernel or another normalisation."
        )
    return np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)


def mean_squared_distance(op: KernelOperator, weights: Floats | None = None) -> float:
    """Return the (weighted) mean of K_ii - 2 K_ij + K_jj over all pairs (PhD 4.2.3), from one product."""
    n = op.n_samples
    shares = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    grand = float(shares @ op.matmat(shares[:, None])[:, 0])
    return 2.0 * (float(shares @ op.diag()) - grand)


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
            "samples look alike to it. Drop the view or choose another kernel."
        )
    return spread
