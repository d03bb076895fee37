"""Sums of kernels in one pass that never writes a kernel value to memory.

Columns are sorted by the cluster they count for, so that no indicators of clusters are multiplied: a program of the GPU
takes some rows, forms a tile of inner products on the tensor cores, takes the exponentials and adds along the rows.
Sums over all pairs take each pair once, and add along the columns, too. Sums of a tile are added in double precision.
``add_plain`` is the same in plain torch, for a processor and to check the GPU against.

For the Gaussian kernel samples are scaled so that it is 2^(x.y - |x|^2 / 2 - |y|^2 / 2). All terms of a sum are
positive, so that it is off by no larger a share than its terms are. Other kernels are summed in double precision alone.

In single precision, numbers are split into halves of 11 bits each, as tf32 has them, and three of the four products of
halves are added. A common scaling by a power of two makes them fit float16, which tensor cores multiply twice as fast.
"""

import math
from dataclasses import dataclass

import torch

from kernelweave.backends.torch import shapes
from kernelweave.backends.torch.array import ranges

# Values of a tile that are added in single precision.
COLUMNS = 128
# Features that are multiplied together; more are taken in pieces.
WIDEST = 128
# Rows and columns of a tile in plain torch.
PLAIN_COLUMNS = 4096
PLAIN_ROWS = 4096
# Rows that are split at a time.
SPLIT_ROWS = 2**16
# The largest number lies below this after scaling; float16 goes up to 2^16.
LARGEST_HALF = 2.0**13
# An exponent whose power is 0.
NOTHING = -1e30
# Halves that are multiplied, and the relative error of a product: both halves are rounded to 11 bits, the smaller ones
# are not multiplied with each other, and numbers far below the largest are rounded in units of float16's smallest.
PARTS = {"tf32x3": 3, "tf32": 1}
SPLIT = {"tf32x3": 3 * 2.0**-22 + 2.0**-30, "tf32": 2.0**-10 + 2.0**-22}
ROUNDED = 2.0**-24
POWER = 2.0**-22
# Sums of all pairs at once pad clusters to whole tiles: they pay where this adds no larger a share of samples.
MOST_PADDING = 0.2
# Few rows: their sums are taken by cluster without sorting, for so many clusters.
MOST_CLUSTERS = 128


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


class Padded:
    """Where the columns of groups lie when every group is padded to whole tiles."""

    def __init__(self, groups: Groups, multiple: int) -> None:
        device = groups.columns.device
        self.columns = groups.columns
        whole = (groups.counts + multiple - 1) // multiple
        self.blocks = torch.zeros(len(whole) + 1, dtype=torch.int32, device=device)  # the first tile of every group
        self.blocks[1:] = whole.cumsum(0)
        self.starts = self.blocks * multiple
        self.size = int(self.starts[-1])
        before = groups.counts.cumsum(0) - groups.counts
        shift = torch.repeat_interleave(self.starts[:-1] - before, groups.counts, output_size=len(self.columns))
        self.place = torch.arange(len(self.columns), device=device) + shift
        self._groups = whole

    def groups_of_blocks(self) -> torch.Tensor:
        """Return the group of every tile."""
        return torch.repeat_interleave(
            torch.arange(len(self._groups), dtype=torch.int32, device=self.place.device), self._groups
        )

    def padded(self, values: torch.Tensor, nothing: float = 0.0) -> torch.Tensor:
        """Return values of samples in their places."""
        shape = (self.size, *values.shape[1:])
        out = torch.full(shape, nothing, dtype=values.dtype, device=values.device)
        out[self.place] = values[self.columns]
        return out


class FusedSums:
    """Samples as a pass takes them, and sums of a kernel between them; in plain torch of the Gaussian kernel only.

    With ``precision="float64"`` everything is in double precision. ``form`` is gamma, coef0, kind and degree.
    """

    def __init__(
        self,
        X: torch.Tensor,
        precision: str = "tf32x3",
        form: tuple[float, float, str, int] = (1.0, 0.0, "gaussian", 1),
    ) -> None:
        self.precision = precision
        self.wide = precision == "float64"
        self.dtype = torch.float64 if self.wide else torch.float32
        self.form = (torch.tensor(form[:2], dtype=torch.float64, device=X.device), *form[2:])
        n = len(X)
        self.width = _padded(X.shape[1])
        empty = {"dtype": torch.float64 if self.wide else torch.float16, "device": X.device}
        self.high = torch.zeros(n, self.width, **empty)  # the whole number in double precision
        self.low = self.high if self.wide or PARTS[precision] == 1 else torch.zeros_like(self.high)
        self._lengths = torch.empty(n, dtype=torch.float64, device=X.device)
        stretch = math.sqrt(math.log2(math.e)) if form[2] == "gaussian" else 1.0
        largest = float(X.abs().max()) * stretch if X.numel() else 0.0
        scale = 1.0 if self.wide or largest == 0.0 else 2.0 ** math.floor(math.log2(LARGEST_HALF / largest))
        self.unit = scale**-2
        for lo, hi in ranges(n, SPLIT_ROWS):
            rows = X[lo:hi] * (stretch * scale)
            self._lengths[lo:hi] = torch.linalg.vector_norm(rows, dim=1) / scale
            self.high[lo:hi, : X.shape[1]] = rows
            if self.low is not self.high:
                self.low[lo:hi, : X.shape[1]] = rows - self.high[lo:hi, : X.shape[1]]
        self.half = (-0.5 * self._lengths.square()).to(self.dtype)

    def relative_errors(self) -> torch.Tensor:
        """Return for every row by how much a sum in single precision may be off, as a share of it."""
        longest = self._lengths.max()
        steps = PARTS[self.precision] * self.width / 8
        exponents = (SPLIT[self.precision] + 2 * ROUNDED * steps) * self._lengths * longest
        exponents += 3 * ROUNDED * (self._lengths + longest).square()
        return math.log(2.0) * exponents + 2 * POWER + COLUMNS * ROUNDED

    def all_sums(self, labels: torch.Tensor, n_clusters: int, weights: torch.Tensor | None) -> torch.Tensor:
        """Return the (k, n) sums of all rows over clusters."""
        groups = Groups.by_cluster(labels, n_clusters)
        if self.high.is_cuda and not self.wide:
            shape = shapes.ROUND_TILE
            padded = Padded(groups, shape.rows)
            if padded.size <= (1.0 + MOST_PADDING) * len(labels):
                return self._sums_of_pairs(padded, weights, shape)
        sums = torch.zeros(n_clusters, len(labels), dtype=torch.float64, device=labels.device)
        self.add_sums(sums, groups, weights)
        return sums

    def add_sums(
        self, sums: torch.Tensor, groups: Groups, weights: torch.Tensor | None, rows: torch.Tensor | None = None
    ) -> None:
        """Add the sums of groups of columns to the (k, n) sums of clusters, in place.

        ``rows`` are the samples that the sums are of, by default all.
        """
        if len(groups.columns):
            add = self._add_fused if self.high.is_cuda else self.add_plain
            add(sums, groups, weights, rows)

    def sums_of(self, rows: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor, n_clusters: int) -> torch.Tensor:
        """Return the (k, rows) sums of some rows over clusters, in double precision."""
        if self.high.is_cuda and n_clusters <= MOST_CLUSTERS and 8 * len(rows) <= len(labels) and len(rows):
            from kernelweave.backends.torch.triton_kernels import sums_of_few_rows

            some = (self.high[rows], self.half[rows])
            every = (self.high, self.half)
            shape = shapes.FEW_ROWS_TILE
            return sums_of_few_rows(
                some, every, labels, weights, n_clusters, form=self.form, programs=shapes.PROGRAMS, shape=shape
            )
        sums = torch.zeros(n_clusters, len(rows), dtype=torch.float64, device=labels.device)
        self.add_sums(sums, Groups.by_cluster(labels, n_clusters), weights, rows)
        return sums

    def within_sums(self, labels: torch.Tensor, weights: torch.Tensor, n_clusters: int) -> torch.Tensor:
        """Return the kernel summed over the pairs inside each cluster, each pair computed once, in double precision."""
        from kernelweave.backends.torch.triton_kernels import pairs_within

        shape = shapes.WITHIN_TILE
        groups = Groups.by_cluster(labels, n_clusters)
        padded = Padded(groups, shape.rows)
        samples = (padded.padded(self.high), padded.padded(self.half, NOTHING), padded.padded(weights))
        totals = pairs_within(samples, (padded.blocks, padded.groups_of_blocks()), form=self.form, shape=shape)
        return torch.segment_reduce(totals, "sum", lengths=padded.blocks.diff().to(torch.int64), unsafe=True)

    def add_plain(
        self, sums: torch.Tensor, groups: Groups, weights: torch.Tensor | None, rows: torch.Tensor | None = None
    ) -> None:
        """Add the sums of groups in plain torch, where halves are put together before they are multiplied."""
        n_groups = len(groups.counts)
        member = torch.repeat_interleave(torch.arange(n_groups, device=sums.device), groups.counts)
        found = torch.zeros(n_groups, sums.shape[1], dtype=torch.float64, device=sums.device)
        places = torch.arange(len(self.high), device=sums.device) if rows is None else rows
        for left in range(0, len(groups.columns), PLAIN_COLUMNS):
            columns = groups.columns[left : left + PLAIN_COLUMNS]
            here = member[left : left + PLAIN_COLUMNS]
            carried = 1.0 if weights is None else weights[columns].to(self.dtype).to(torch.float64)
            indicators = torch.zeros(n_groups, len(columns), dtype=torch.float64, device=sums.device)
            indicators[here, torch.arange(len(columns), device=sums.device)] = carried
            for lo, hi in ranges(len(places), PLAIN_ROWS):
                exponents = (self._whole(columns) @ self._whole(places[lo:hi]).T).mul_(self.unit)
                exponents += self.half[columns][:, None] + self.half[places[lo:hi]]
                found[:, lo:hi] += indicators @ exponents.exp2_().to(torch.float64)
        for g, (plus, minus) in enumerate(zip(groups.plus.tolist(), groups.minus.tolist(), strict=True)):
            sums[plus] += found[g]
            if minus >= 0:
                sums[minus] -= found[g]

    def _whole(self, samples: torch.Tensor) -> torch.Tensor:
        """Return some samples, halves put together: single precision holds both."""
        high = self.high[samples].to(self.dtype)
        return high if self.low is self.high else high + self.low[samples]

    def _sums_of_pairs(self, padded: Padded, weights: torch.Tensor | None, shape: shapes.Shape) -> torch.Tensor:
        """Return the sums of all rows, each pair computed once."""
        from kernelweave.backends.torch.triton_kernels import all_sums_of_halves

        high = padded.padded(self.high)
        half = padded.padded(self.half, NOTHING)
        found = all_sums_of_halves(
            (
                high,
                high if self.low is self.high else padded.padded(self.low),
                half,
                half if weights is None else padded.padded(weights.to(self.dtype)),
            ),
            (padded.blocks, padded.groups_of_blocks()),
            unit=self.unit,
            parts=PARTS[self.precision],
            weighted=weights is not None,
            shape=shape,
        )
        sums = torch.empty(len(found), len(self.high), dtype=torch.float64, device=found.device)
        sums[:, padded.columns] = found[:, padded.place]
        return sums

    def _add_fused(
        self, sums: torch.Tensor, groups: Groups, weights: torch.Tensor | None, rows: torch.Tensor | None = None
    ) -> None:
        """Add the sums of groups by a program of the GPU."""
        from kernelweave.backends.torch import triton_kernels

        shape = shapes.WIDE_TILE if self.wide else shapes.TILE
        padded = Padded(groups, shape.columns)
        into = (padded.starts, groups.plus.to(torch.int32), groups.minus.to(torch.int32))
        half = padded.padded(self.half, NOTHING)
        carried = half if weights is None else padded.padded(weights.to(self.dtype))
        x = self.high if rows is None else self.high[rows]
        y = padded.padded(self.high)
        half_x = self.half if rows is None else self.half[rows]
        weighted = weights is not None
        if self.wide:
            triton_kernels.add_group_sums(
                (x, half_x), (y, half, carried), into, sums, form=self.form, weighted=weighted, shape=shape
            )
            return
        low_x = x
        low_y = y
        if self.low is not self.high:
            low_x = self.low if rows is None else self.low[rows]
            low_y = padded.padded(self.low)
        triton_kernels.add_group_sums_of_halves(
            (x, low_x, half_x),
            (y, low_y, half, carried),
            into,
            sums,
            unit=self.unit,
            parts=PARTS[self.precision],
            weighted=weighted,
            shape=shape,
        )


def _padded(width: int) -> int:
    """Return the number of features as tiles take it: a power of two from 16 on, or a multiple of the widest piece."""
    if width > WIDEST:
        return math.ceil(width / WIDEST) * WIDEST
    return max(16, 1 << (width - 1).bit_length())
