"""Sums of the Gaussian kernel in single precision, in one pass that never writes a kernel value to memory.

Columns are sorted by the cluster they count for, so that no indicators of clusters are multiplied: a program of the GPU
takes some rows, forms a tile of inner products on the tensor cores, takes the exponentials and adds along the rows.
Sums of a tile are added in double precision. ``add_plain`` is the same in plain torch, for a processor and as a twin to
compare with.

Samples are scaled so that the kernel is 2^(x.y - |x|^2 / 2 - |y|^2 / 2). All terms of a sum are positive, so that it is
off by no larger a share than its terms are.
"""

import math
from dataclasses import dataclass

import torch

# Columns of a tile in single precision: as many values are added in it.
COLUMNS = 128
# Features that are multiplied together; more are taken in pieces.
WIDEST = 128
# Columns of a tile in plain torch.
PLAIN_COLUMNS = 4096
PLAIN_ROWS = 4096
# An exponent whose power is 0 in single precision.
NOTHING = -1e30
# How inner products are formed: three products of halves in tf32, one of them, or single precision throughout. Relative
# error of a product of two numbers that were split, its products, and errors of a sum and of a power of two.
SPLIT = {"tf32x3": 3 * 2.0**-22, "tf32": 2.0**-10, "ieee": 2.0**-24}
PARTS = {"tf32x3": 3, "tf32": 1, "ieee": 1}
ROUNDED = 2.0**-24
POWER = 2.0**-22


@dataclass(frozen=True)
class Shape:
    """Rows and columns of a tile, features multiplied together, threads in units of 32, and tiles loaded ahead."""

    rows: int
    columns: int
    piece: int
    warps: int
    stages: int


#: Tiles in single precision, and those in double.
TILE = Shape(128, COLUMNS, WIDEST, 8, 2)
WIDE_TILE = Shape(64, 64, 32, 4, 2)


@dataclass(frozen=True)
class Groups:
    """Columns that count together: where each group starts, and the clusters that its sums are added to and taken from.

    ``minus`` is -1 where they are taken from none.
    """

    columns: torch.Tensor  # (m,) samples, group by group
    counts: torch.Tensor  # (g,)
    plus: torch.Tensor  # (g,)
    minus: torch.Tensor  # (g,)

    @classmethod
    def by_cluster(cls, labels: torch.Tensor, n_clusters: int) -> "Groups":
        """Return all samples by their clusters."""
        counts = torch.bincount(labels, minlength=n_clusters)
        clusters = torch.arange(n_clusters, device=labels.device)
        return cls(torch.argsort(labels, stable=True), counts, clusters, torch.full_like(clusters, -1))

    @classmethod
    def of_moves(cls, samples: torch.Tensor, old: torch.Tensor, new: torch.Tensor, n_clusters: int) -> "Groups":
        """Return moved samples by where they come from and go to."""
        pairs, place = torch.unique(old * n_clusters + new, return_inverse=True)
        order = torch.argsort(place, stable=True)
        counts = torch.bincount(place, minlength=len(pairs))
        return cls(samples[order], counts, pairs % n_clusters, pairs // n_clusters)


class FusedGaussian:
    """Samples as the pass takes them, and sums of the Gaussian kernel between them.

    With ``precision="float64"`` everything is in double precision.
    """

    def __init__(self, X: torch.Tensor, precision: str = "tf32x3") -> None:
        self.precision = precision
        self.dtype = torch.float64 if precision == "float64" else torch.float32
        width = _padded(X.shape[1])
        self.X = torch.zeros(len(X), width, dtype=self.dtype, device=X.device)
        self.X[:, : X.shape[1]] = X * math.sqrt(math.log2(math.e))
        squares = self.X.to(torch.float64).square().sum(dim=1)
        self.half = (-0.5 * squares).to(self.dtype)
        self._lengths = squares.sqrt()

    def relative_errors(self) -> torch.Tensor:
        """Return for every row by how much a sum in single precision may be off, as a share of it."""
        longest = self._lengths.max()
        steps = PARTS[self.precision] * self.X.shape[1] / 8
        exponents = (SPLIT[self.precision] + 2 * ROUNDED * steps) * self._lengths * longest
        exponents += 3 * ROUNDED * (self._lengths + longest).square()
        return math.log(2.0) * exponents + 2 * POWER + COLUMNS * ROUNDED

    def add_sums(
        self, sums: torch.Tensor, groups: Groups, weights: torch.Tensor | None, rows: torch.Tensor | None = None
    ) -> None:
        """Add the sums of groups of columns to the (k, n) sums of clusters, in place.

        ``rows`` are the samples that the sums are of, by default all.
        """
        if len(groups.columns) == 0:
            return
        X = self.X if rows is None else self.X[rows]
        half = self.half if rows is None else self.half[rows]
        add = self._add_fused if self.X.is_cuda else self.add_plain
        add(X, half, sums, groups, weights)

    def add_plain(
        self, X: torch.Tensor, half: torch.Tensor, sums: torch.Tensor, groups: Groups, weights: torch.Tensor | None
    ) -> None:
        """Add the sums of groups in plain torch, where products in single precision are not split."""
        n_groups = len(groups.counts)
        member = torch.repeat_interleave(torch.arange(n_groups, device=sums.device), groups.counts)
        found = torch.zeros(n_groups, len(X), dtype=torch.float64, device=sums.device)
        for left in range(0, len(groups.columns), PLAIN_COLUMNS):
            columns = groups.columns[left : left + PLAIN_COLUMNS]
            here = member[left : left + PLAIN_COLUMNS]
            carried = 1.0 if weights is None else weights[columns].to(self.dtype).to(torch.float64)
            indicators = torch.zeros(n_groups, len(columns), dtype=torch.float64, device=sums.device)
            indicators[here, torch.arange(len(columns), device=sums.device)] = carried
            for lo in range(0, len(X), PLAIN_ROWS):
                rows = slice(lo, lo + PLAIN_ROWS)
                exponents = self.X[columns] @ X[rows].T
                exponents += self.half[columns][:, None] + half[rows]
                found[:, rows] += indicators @ exponents.clamp_(max=0.0).exp2_().to(torch.float64)
        for g, (plus, minus) in enumerate(zip(groups.plus.tolist(), groups.minus.tolist(), strict=True)):
            sums[plus] += found[g]
            if minus >= 0:
                sums[minus] -= found[g]

    def _add_fused(
        self, X: torch.Tensor, half: torch.Tensor, sums: torch.Tensor, groups: Groups, weights: torch.Tensor | None
    ) -> None:
        """Add the sums of groups by the kernel of the GPU."""
        from kernelweave.backends.torch.triton_kernels import launch

        shape = WIDE_TILE if self.dtype == torch.float64 else TILE
        device = sums.device
        padded = (groups.counts + shape.columns - 1) // shape.columns * shape.columns
        starts = torch.zeros(len(padded) + 1, dtype=torch.int32, device=device)
        starts[1:] = padded.cumsum(0)
        size = int(starts[-1])
        before = groups.counts.cumsum(0) - groups.counts
        shift = torch.repeat_interleave(starts[:-1].to(torch.int64) - before, groups.counts)
        place = torch.arange(len(groups.columns), device=device) + shift
        Y = torch.zeros(size, self.X.shape[1], dtype=self.dtype, device=device)
        Y[place] = self.X[groups.columns]
        halves = torch.full((size,), NOTHING, dtype=self.dtype, device=device)
        halves[place] = self.half[groups.columns]
        carried = halves if weights is None else torch.zeros(size, dtype=self.dtype, device=device)
        if weights is not None:
            carried[place] = weights[groups.columns].to(self.dtype)
        launch(
            (X, half),
            (Y, halves, carried),
            (starts, groups.plus.to(torch.int32), groups.minus.to(torch.int32)),
            sums,
            weighted=weights is not None,
            precision="ieee" if self.dtype == torch.float64 else self.precision,
            shape=shape,
        )


def _padded(width: int) -> int:
    """Return the number of features as tiles take it: a power of two from 16 on, or a multiple of the widest piece."""
    if width > WIDEST:
        return math.ceil(width / WIDEST) * WIDEST
    return max(16, 1 << (width - 1).bit_length())
