"""Kernels of all pairs of samples, computed on the device whenever they are needed and never stored.

Every sum exists twice. Exact ones are products of tiles in float64, for every form of kernel. Rough ones are those of
the Gaussian kernel in single precision (``fused.py``), many times faster on a GPU, with a bound on the error of every
sample; partitions decide in float64 what the bound leaves open.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from kernelweave.backends.protocol import Moves
from kernelweave.backends.torch.array import TorchArray, ranges
from kernelweave.backends.torch.backend import TorchBackend, ranges_within
from kernelweave.backends.torch.fused import FusedSums, Groups
from kernelweave.backends.torch.sparse import Rows
from kernelweave.foundation.array_types import Array, Floats, Index, Ints

# Rows and columns of a tile in float64: three of them are alive at a time, 128 MiB each.
TILE_ROWS = 2048
TILE_COLS = 8192
# Powers up to this are products in a fused pass.
MOST_FACTORS = 8


@dataclass(frozen=True)
class PairForm:
    """A kernel function of prepared samples.

    ``"gaussian"`` is exp(-||x - y||^2 / 2) of samples that are scaled already, ``"laplacian"`` exp(-gamma ||x - y||_1),
    ``"polynomial"`` (gamma x.y + coef0)^degree and ``"sigmoid"`` tanh(gamma x.y + coef0).
    """

    kind: str
    gamma: float = 1.0
    coef0: float = 0.0
    degree: float = 1.0

    def values(self, X: Any, Y: Any) -> torch.Tensor:
        """Return the kernel between rows of X and rows of Y, a new tensor."""
        if self.kind == "laplacian":
            return torch.cdist(X, Y, p=1.0).mul_(-self.gamma).exp_()
        if self.kind == "gaussian":
            half = 0.5 * _squared_lengths(X)[:, None] + 0.5 * _squared_lengths(Y)
            exponents = half.neg_().add_(X.inner(Y)) if isinstance(X, Rows) else torch.addmm(half.neg_(), X, Y.T)
            return exponents.clamp_(max=0.0).exp_()
        products = X.inner(Y) if isinstance(X, Rows) else X @ Y.T
        products.mul_(self.gamma).add_(self.coef0)
        if self.kind == "sigmoid":
            return products.tanh_()
        return products.pow_(int(self.degree) if float(self.degree).is_integer() else self.degree)

    def diagonal(self, X: Any) -> torch.Tensor:
        """Return the kernel of every row with itself."""
        if self.kind in ("gaussian", "laplacian"):
            return torch.ones(len(X), dtype=torch.float64, device=X.device)
        products = self.gamma * _squared_lengths(X) + self.coef0
        return products.tanh() if self.kind == "sigmoid" else products**self.degree

    @property
    def fused(self) -> tuple[float, float, str, int] | None:
        """Gamma, coef0, kind and degree as a fused pass takes them, None where there is none."""
        if self.kind == "gaussian":
            return (1.0, 0.0, "gaussian", 1)
        if self.kind == "laplacian":
            return (-self.gamma * math.log2(math.e), 0.0, "laplacian", 1)
        whole = float(self.degree).is_integer() and 1 <= self.degree <= MOST_FACTORS
        return (self.gamma, self.coef0, "polynomial", int(self.degree)) if self.kind == "polynomial" and whole else None

    @property
    def has_rough_sums(self) -> bool:
        """Whether sums in single precision are known, with a bound on their error."""
        return self.kind == "gaussian"


class Pairs:
    """Samples on a device and the kernel between all pairs of them, or between them and others (``sources``).

    Samples are dense, or sparse as :class:`Rows`.
    """

    def __init__(
        self, backend: TorchBackend, form: PairForm, X: Any, sources: Any = None, *, fused: bool | None = None
    ) -> None:
        self.backend = backend
        self.form = form
        sparse = isinstance(X, Rows)
        self.X = X if sparse else backend.tensor(X, torch.float64)
        self.Y = self.X if sources is None else sources if sparse else backend.tensor(sources, torch.float64)
        self.shape = (len(self.X), len(self.Y))
        #: Whether sums in single precision are known, with a bound on their error.
        self.has_rough_sums = form.has_rough_sums and not sparse
        # On a GPU a fused pass is faster than tiles that are written to memory, in double precision too.
        wanted = self.X.is_cuda and sources is None and not sparse if fused is None else fused
        self._fused = FusedSums(self.X, "float64", form.fused) if wanted and form.fused is not None else None

    def diagonal(self) -> TorchArray:
        """Return k(x_i, x_i) of every row."""
        return TorchArray(self.form.diagonal(self.X))

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the kernel between some rows and columns as NumPy."""
        X = self.backend.picked(self.X, rows)
        Y = self.backend.picked(self.Y, cols)
        return np.asarray(self.form.values(X, Y).cpu().numpy())

    def columns(self, samples: Ints) -> TorchArray:
        """Return the kernel between all rows and some columns."""
        chosen = self.backend.picked(self.Y, samples)
        held = TILE_ROWS * TILE_COLS // max(len(chosen), 1)
        parts = [self.form.values(self.X[lo:hi], chosen) for lo, hi in ranges(len(self.X), max(held, 1))]
        return TorchArray(torch.cat(parts))

    def product(self, H: Any) -> TorchArray:
        """Return K @ H."""
        return TorchArray(self._products(self.X, self.Y, self.backend.tensor(H, torch.float64)))

    def matrix(self) -> TorchArray:
        """Return the whole kernel, stored."""
        out = torch.empty(self.shape, dtype=torch.float64, device=self.X.device)
        for lo, hi in ranges(self.shape[0], TILE_ROWS):
            for left, right in ranges(self.shape[1], TILE_COLS):
                out[lo:hi, left:right] = self.form.values(self.X[lo:hi], self.Y[left:right])
        return TorchArray(out)

    def candidate_gains(self, distances: TorchArray, weights: TorchArray, diag: TorchArray) -> TorchArray:
        """Return sum_i w_i max(d_i - ||phi(x_n) - phi(x_i)||^2, 0) of every sample n."""
        gains = torch.zeros(len(self.X), dtype=torch.float64, device=self.X.device)
        for lo, hi in ranges(len(self.X), TILE_ROWS):
            for first, last in ranges(len(self.Y), TILE_COLS):
                values = self.form.values(self.X[lo:hi], self.Y[first:last])
                gaps = (diag.tensor[lo:hi, None] + diag.tensor[first:last]).sub_(values, alpha=2.0)
                won = torch.sub(distances.tensor[first:last], gaps, out=gaps).clamp_(min=0.0)
                gains[lo:hi] += won @ weights.tensor[first:last]
        return TorchArray(gains)

    # Sums by cluster, in float64

    def exact_sums(self, labels: TorchArray, weights: TorchArray, n_clusters: int) -> TorchArray:
        """Return the cluster sums of all rows, shape (k, n)."""
        if self._fused is not None:
            return TorchArray(self._fused.all_sums(labels.tensor, n_clusters, weights.tensor))
        indicators = self.backend.indicators(labels, weights, n_clusters)
        return TorchArray(self._products(self.X, self.Y, indicators).T.contiguous())

    def exact_sums_of(
        self, samples: torch.Tensor, labels: TorchArray, weights: TorchArray, n_clusters: int
    ) -> torch.Tensor:
        """Return the cluster sums of some rows, shape (k, len(samples))."""
        if self._fused is not None:
            return self._fused.sums_of(samples, labels.tensor, weights.tensor, n_clusters)
        indicators = self.backend.indicators(labels, weights, n_clusters)
        return self._products(self.X[samples], self.Y, indicators).T

    def move_exact_sums(self, sums: TorchArray, moves: Moves, weights: TorchArray) -> None:
        """Update cluster sums of all rows in place."""
        for lo, hi in ranges(moves.count, TILE_COLS):
            signed = self.backend.signed_moves(moves, weights, len(sums), lo, hi)
            moved = self.Y[moves.samples.tensor[lo:hi]]
            for first, last in ranges(len(self.X), TILE_ROWS):
                sums.tensor[:, first:last] += signed @ self.form.values(moved, self.X[first:last])

    def within_sums(self, labels: TorchArray, weights: TorchArray, n_clusters: int) -> Floats:
        """Return the kernel summed over the pairs inside each cluster, each pair computed once."""
        if self._fused is not None and self.X.is_cuda:
            return np.asarray(self._fused.within_sums(labels.tensor, weights.tensor, n_clusters).cpu().numpy())
        order = torch.argsort(labels.tensor, stable=True)
        counts = torch.bincount(labels.tensor, minlength=n_clusters).tolist()
        ends = np.cumsum([0, *counts])
        within = torch.zeros(n_clusters, dtype=torch.float64, device=self.X.device)
        for c in range(n_clusters):
            members = order[ends[c] : ends[c + 1]]
            within[c] = self._within(members, weights.tensor)
        return np.asarray(within.cpu().numpy())

    def within_change(self, moves: Moves, weights: TorchArray, n_clusters: int) -> Floats:
        """Return by how much these sums change with moves: 2 d^T K u - d^T K d, u being the clusters after the moves.

        d holds for every cluster what it wins and loses.
        """
        samples = moves.samples.tensor
        signed = self.backend.signed_moves(moves, weights, n_clusters, 0, moves.count)
        after = self.exact_sums_of(samples, moves.labels, weights, n_clusters)
        among = self._products(self.X[samples], self.X[samples], signed.T.contiguous()).T
        return np.asarray((signed * (2.0 * after - among)).sum(dim=1).cpu().numpy())

    def _within(self, members: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Return sum_ij w_i w_j K_ij over some samples; tiles off the diagonal count twice."""
        own = weights[members]
        X = self.X[members]
        total = torch.zeros((), dtype=torch.float64, device=X.device)
        for lo, hi in ranges(len(X), TILE_ROWS):
            total += own[lo:hi] @ (self.form.values(X[lo:hi], X[lo:hi]) @ own[lo:hi])
            for left, right in ranges(len(X) - hi, TILE_COLS):
                others = slice(hi + left, hi + right)
                total += 2.0 * (own[lo:hi] @ (self.form.values(X[lo:hi], X[others]) @ own[others]))
        return total

    def _products(self, X: torch.Tensor, Y: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Return K(X, Y) @ right, a tile at a time."""
        out = torch.zeros(len(X), right.shape[1], dtype=torch.float64, device=X.device)
        for lo, hi in ranges(len(X), TILE_ROWS):
            for first, last in ranges(len(Y), TILE_COLS):
                out[lo:hi] += self.form.values(X[lo:hi], Y[first:last]) @ right[first:last]
        return out


def _squared_lengths(X: Any) -> torch.Tensor:
    return X.squared_lengths() if isinstance(X, Rows) else X.square().sum(dim=1)


class RoughPairs:
    """The same samples in single precision: sums by cluster that are off by a known share."""

    def __init__(self, pairs: Pairs, precision: str) -> None:
        self.pairs = pairs
        self.precision = precision
        self._rough = FusedSums(pairs.X, precision)
        self._errors = self._rough.relative_errors()
        self.largest_error = float(self._errors.max())

    def sums(self, labels: TorchArray, weights: TorchArray, n_clusters: int) -> TorchArray:
        """Return the cluster sums of all rows."""
        return TorchArray(self._rough.all_sums(labels.tensor, n_clusters, self._unequal(weights)))

    def move_sums(self, sums: TorchArray, moves: Moves, weights: TorchArray) -> None:
        """Update cluster sums in place."""
        groups = Groups.of_moves(moves.samples.tensor, moves.old.tensor, moves.new.tensor, len(sums))
        self._rough.add_sums(sums.tensor, groups, self._unequal(weights))

    def undecided(
        self, sums: TorchArray, totals: Floats, norms: Floats, tolerance: float, carried: float
    ) -> torch.Tensor:
        """Return the samples of which the two nearest clusters are no farther apart than errors and ``tolerance``."""
        filled = np.flatnonzero(totals > 0)
        device = sums.tensor.device
        if len(filled) < 2:
            return torch.empty(0, dtype=torch.int64, device=device)
        index = torch.as_tensor(filled, device=device)
        weight = torch.as_tensor(totals[filled], device=device)[:, None]
        norm = torch.as_tensor(norms[filled], device=device)[:, None]
        found = []
        for lo, hi in ranges_within(sums.shape[1], len(filled)):
            shares = sums.tensor[index, lo:hi] / weight
            # Either of two distances may be off by twice the error of a share.
            off = 4.0 * self._errors[lo:hi] * (shares.amax(dim=0) + carried / weight.min())
            distances = torch.sub(norm, shares, alpha=2.0, out=shares)
            least, nearest = distances.min(dim=0)
            second = distances.scatter_(0, nearest[None], torch.inf).amin(dim=0)
            found.append(torch.nonzero(second - least <= off + tolerance)[:, 0] + lo)
        return torch.cat(found)

    def _unequal(self, weights: TorchArray) -> torch.Tensor | None:
        """Return weights, None where all are 1."""
        return None if self.pairs.backend.extremes(weights) == (1.0, 1.0) else weights.tensor
