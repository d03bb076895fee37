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

#: How inner products are formed: three products of halves in tf32, one of them, or single precision throughout.
PRECISIONS = ("tf32x3", "tf32", "ieee")
# Rows and columns of a tile, threads in units of 32, and tiles that are loaded ahead.
ROWS = 128
COLUMNS = 128
WARPS = 8
STAGES = 2
# Features that are multiplied together; more are taken in pieces.
WIDEST = 128
# Columns of a tile in plain torch.
PLAIN_COLUMNS = 4096
PLAIN_ROWS = 4096
# An exponent whose power is 0 in single precision.
NOTHING = -1e30
# Relative error of a product of two numbers that were split, of a sum in single precision, and of a power of two.
SPLIT = {"tf32x3": 3 * 2.0**-22, "tf32": 2.0**-10, "ieee": 2.0**-24}
PARTS = {"tf32x3": 3, "tf32": 1, "ieee": 1}
ROUNDED = 2.0**-24
POWER = 2.0**-22


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


class RoughGaussian:
    """Samples in single precision, and sums of the Gaussian kernel between them."""

    def __init__(self, X: torch.Tensor, precision: str = "tf32x3") -> None:
        self.precision = precision
        scaled = X * math.sqrt(math.log2(math.e))
        width = _padded(X.shape[1])
        self.X = torch.zeros(len(X), width, dtype=torch.float32, device=X.device)
        self.X[:, : X.shape[1]] = scaled
        squares = self.X.to(torch.float64).square().sum(dim=1)
        self.half = (-0.5 * squares).to(torch.float32)
        self.lengths = squares.sqrt()

    def relative_errors(self) -> torch.Tensor:
        """Return for every row by how much a sum may be off, as a share of it."""
        longest = self.lengths.max()
        steps = PARTS[self.precision] * self.X.shape[1] / 8
        exponents = (SPLIT[self.precision] + 2 * ROUNDED * steps) * self.lengths * longest
        exponents += 3 * ROUNDED * (self.lengths + longest).square()
        return math.log(2.0) * exponents + 2 * POWER + COLUMNS * ROUNDED

    def add_sums(self, sums: torch.Tensor, groups: Groups, weights: torch.Tensor | None) -> None:
        """Add the sums of groups of columns to the (k, n) sums of clusters, in place."""
        if len(groups.columns) == 0:
            return
        if self.X.is_cuda:
            _add_fused(self, sums, groups, weights)
        else:
            add_plain(self, sums, groups, weights)


def add_plain(rough: RoughGaussian, sums: torch.Tensor, groups: Groups, weights: torch.Tensor | None) -> None:
    """Add the sums of groups in plain torch, where float32 products are not split."""
    n_groups = len(groups.counts)
    member = torch.repeat_interleave(torch.arange(n_groups, device=sums.device), groups.counts)
    found = torch.zeros(n_groups, sums.shape[1], dtype=torch.float64, device=sums.device)
    for left in range(0, len(groups.columns), PLAIN_COLUMNS):
        columns = groups.columns[left : left + PLAIN_COLUMNS]
        here = member[left : left + PLAIN_COLUMNS]
        carried = 1.0 if weights is None else weights[columns].to(torch.float32).to(torch.float64)
        indicators = torch.zeros(n_groups, len(columns), dtype=torch.float64, device=sums.device)
        indicators[here, torch.arange(len(columns), device=sums.device)] = carried
        for lo in range(0, len(rough.X), PLAIN_ROWS):
            rows = slice(lo, lo + PLAIN_ROWS)
            exponents = rough.X[columns] @ rough.X[rows].T
            exponents += rough.half[columns][:, None] + rough.half[rows]
            found[:, rows] += indicators @ exponents.clamp_(max=0.0).exp2_().to(torch.float64)
    for g, (plus, minus) in enumerate(zip(groups.plus.tolist(), groups.minus.tolist(), strict=True)):
        sums[plus] += found[g]
        if minus >= 0:
            sums[minus] -= found[g]


def _add_fused(rough: RoughGaussian, sums: torch.Tensor, groups: Groups, weights: torch.Tensor | None) -> None:
    """Add the sums of groups by the kernel of the GPU."""
    from kernelweave.backends.torch.triton_kernels import launch

    device = sums.device
    padded = (groups.counts + COLUMNS - 1) // COLUMNS * COLUMNS
    starts = torch.zeros(len(padded) + 1, dtype=torch.int32, device=device)
    starts[1:] = padded.cumsum(0)
    size = int(starts[-1])
    before = groups.counts.cumsum(0) - groups.counts
    shift = torch.repeat_interleave(starts[:-1].to(torch.int64) - before, groups.counts)
    place = torch.arange(len(groups.columns), device=device) + shift
    Y = torch.zeros(size, rough.X.shape[1], dtype=torch.float32, device=device)
    Y[place] = rough.X[groups.columns]
    half = torch.full((size,), NOTHING, dtype=torch.float32, device=device)
    half[place] = rough.half[groups.columns]
    carried = half if weights is None else torch.zeros(size, dtype=torch.float32, device=device)
    if weights is not None:
        carried[place] = weights[groups.columns].to(torch.float32)
    launch(
        (rough.X, rough.half),
        (Y, half, carried),
        (starts, groups.plus.to(torch.int32), groups.minus.to(torch.int32)),
        sums,
        weighted=weights is not None,
        precision=rough.precision,
        tile=(ROWS, COLUMNS, min(WIDEST, rough.X.shape[1])),
        warps=WARPS,
        stages=STAGES,
    )


def _padded(width: int) -> int:
    """Return the number of features as tiles take it: a power of two from 16 on, or a multiple of the widest piece."""
    if width > WIDEST:
        return math.ceil(width / WIDEST) * WIDEST
    return max(16, 1 << (width - 1).bit_length())
