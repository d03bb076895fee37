"""Arrays on a torch device, a GPU in the first place: every verb runs where the data lie.

Numbers of samples are float64, and so are all sums. Sums by cluster are products with indicators of the clusters, some
rows at a time: additions in an order of their own, as indexed additions on a GPU are, would make the last bit, and with
it a tie, a matter of chance.
"""

import hashlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch

from kernelweave.backends.protocol import Assignment, CandidateRuns, Moves
from kernelweave.backends.torch.array import DTYPES, TorchArray, as_tensor, ranges
from kernelweave.backends.torch.shapes import MEANS_TILE, STORED_TILE
from kernelweave.backends.torch.sparse import SparseTable
from kernelweave.foundation.array_types import Array, Floats, Index, Ints

# Features of samples: dense or sparse.
Features: TypeAlias = Any

# Numbers of a temporary: 2^26 of float64 are 512 MiB.
HELD = 2**26
# Columns up to which a product with a kernel in single precision is fused: it reads the kernel once.
MOST_FUSED = 64
# Clusters up to which sums by label are taken in one program: it passes over its samples once for each.
MOST_SEGMENTS = 256
# Share of the free memory of a device that one array may take; a larger one stays in main memory.
KEPT_SHARE = 0.7
# Digits to which gains and distances are compared: equal ones then keep the order of the samples.
GAIN_DIGITS = 9
# A direction adds nothing to a basis where this share of its length is left outside of it.
NOTHING_ADDED = 1e-10


class TorchBackend:
    """Tensors of one device. See the protocol for what the verbs mean."""

    direct_limit = 0
    one_run_at_a_time = True
    graph_moves = None
    margin_dual = None
    gaussian_sums = None
    steps = None

    def __init__(self, device: str) -> None:
        self.name = f"torch:{device}"
        self.device = torch.device(device)

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return TorchBackend, (str(self.device),)

    @property
    def run_candidates(self) -> Callable[..., CandidateRuns]:
        """Runs of kernel k-means from many candidates, in batches."""
        from kernelweave.backends.torch.candidates import run_candidates

        return run_candidates

    # To and from the device

    def tensor(self, values: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Return values as a tensor of the device, without a copy where they are one."""
        return as_tensor(values, self.device, dtype)

    def kept(self, values: Array) -> TorchArray:
        """Return a large array on the device, or, where that has no room for it, in main memory: rows are then brought
        to the device whenever they are read.
        """  # noqa: D205
        if values.nbytes > self._room():
            return TorchArray(torch.as_tensor(values))
        return self.array(values, values.dtype)

    def kept_sparse(self, entries: Any) -> SparseTable | None:
        """Return sparse features on the device, None where that has no room for them."""
        return None if SparseTable.bytes_needed(entries) > self._room() else SparseTable(entries, self.device)

    def _room(self) -> float:
        """Return the bytes that one array may take."""
        if self.device.type != "cuda":
            return np.inf
        return KEPT_SHARE * torch.cuda.mem_get_info(self.device)[0]

    def _streams(self, array: TorchArray) -> bool:
        """Whether rows of an array are brought to the device when they are read."""
        return array.tensor.device.type != self.device.type

    def _rows(self, array: TorchArray, lo: int, hi: int) -> torch.Tensor:
        """Return some rows on the device, in double precision."""
        return array.tensor[lo:hi].to(self.device, torch.float64)

    def _some_rows(self, array: TorchArray, samples: torch.Tensor) -> torch.Tensor:
        """Return chosen rows on the device, in double precision."""
        return array.tensor[samples.to(array.tensor.device)].to(self.device, torch.float64)

    def array(self, values: Any, dtype: Any = np.float64) -> TorchArray:
        """Return values on the device."""
        if isinstance(values, TorchArray):
            return values
        return TorchArray(self.tensor(np.asarray(values, dtype=dtype), DTYPES[np.dtype(dtype)]))

    def labels(self, values: Any) -> TorchArray:
        """Return a copy of labels."""
        if isinstance(values, TorchArray):
            return TorchArray(values.tensor.to(torch.int64, copy=True))
        return TorchArray(torch.tensor(np.asarray(values, dtype=np.int64), device=self.device))

    def host(self, values: Any) -> Array:
        """Return an array as NumPy; one that is so already as it is."""
        if isinstance(values, np.ndarray):
            return values
        return np.asarray(values.tensor.cpu().numpy())

    def ones(self, n: int) -> TorchArray:
        """Return n ones."""
        return TorchArray(torch.ones(n, dtype=torch.float64, device=self.device))

    def where(self, condition: TorchArray, values: Any, others: Any) -> TorchArray:
        """Return values by a condition."""
        return TorchArray(torch.where(condition.tensor, condition._like(values), condition._like(others)))

    def minimum(self, values: TorchArray, others: Any) -> TorchArray:
        """Return the smaller of two."""
        return TorchArray(torch.clamp(values.tensor, max=values._like(others)))

    def maximum(self, values: TorchArray, others: Any) -> TorchArray:
        """Return the larger of two."""
        return TorchArray(torch.clamp(values.tensor, min=values._like(others)))

    # Numbers of all samples

    def total(self, values: TorchArray) -> float:
        """Return the sum."""
        return float(values.tensor.sum(dtype=torch.float64))

    def dot(self, vector: TorchArray, values: TorchArray) -> Any:
        """Return the weighted sum of rows."""
        product = vector.tensor @ values.tensor.to(torch.float64)
        return float(product) if values.ndim == 1 else _small(product)

    def extremes(self, values: TorchArray) -> tuple[float, float]:
        """Return the smallest and the largest value."""
        if values.tensor.numel() == 0:
            return np.inf, -np.inf
        low, high = torch.aminmax(values.tensor)
        return float(low), float(high)

    def first(self, condition: TorchArray) -> int:
        """Return the first place where the condition holds."""
        if len(condition) == 0:
            return -1
        place = int(condition.tensor.to(torch.uint8).argmax())
        return place if bool(condition.tensor[place]) else -1

    def at(self, values: TorchArray | SparseTable, samples: Ints) -> Array:
        """Return the values of a few samples."""
        if isinstance(values, SparseTable):
            return values.at(samples)
        return _small(values.tensor[torch.as_tensor(np.asarray(samples, dtype=np.int64), device=values.tensor.device)])

    def take(self, values: TorchArray, samples: TorchArray) -> TorchArray:
        """Return the values of many samples."""
        return TorchArray(values.tensor[samples.tensor])

    def draw(self, mass: TorchArray, uniforms: Floats) -> Ints:
        """Return samples by their cumulated mass."""
        cumulative = torch.cumsum(mass.tensor, 0)
        goals = self.tensor(uniforms) * cumulative[-1]
        return _small(torch.searchsorted(cumulative, goals, right=True).clamp(max=len(mass) - 1)).astype(np.intp)

    def draw_distinct(self, mass: TorchArray, count: int, rng: np.random.Generator) -> Ints:
        """Return different samples by their mass: drawn on the host, as those of arrays there are."""
        shares = self.host(mass)
        return rng.choice(len(shares), count, replace=False, p=shares / shares.sum())

    # Labels

    def segment_sums(self, labels: TorchArray, values: TorchArray, n_clusters: int) -> Floats:
        """Return sums by cluster."""
        if labels.tensor.is_cuda and n_clusters <= MOST_SEGMENTS:
            from kernelweave.backends.torch.triton_sums import segment_sums

            return _small(segment_sums(labels.tensor, values.tensor.to(torch.float64).contiguous(), n_clusters))
        return _small(self._sums_by_cluster(labels.tensor, values.tensor[:, None], n_clusters)[:, 0])

    def moves(self, old: TorchArray, new: TorchArray) -> Moves:
        """Return where labels differ."""
        samples = torch.nonzero(new.tensor != old.tensor)[:, 0]
        before = TorchArray(old.tensor[samples])
        after = TorchArray(new.tensor[samples])
        return Moves(len(samples), TorchArray(samples), before, after, new)

    def moved_sums(self, moves: Moves, values: TorchArray, n_clusters: int) -> Floats:
        """Return what clusters win less what they lose."""
        return self.moved_sums_of(moves, [values], n_clusters)[0]

    def moved_sums_of(self, moves: Moves, several: list[TorchArray], n_clusters: int) -> list[Floats]:
        """Return the same for several values, which travel to the host together."""
        samples = moves.samples.tensor
        carried = torch.stack([values.tensor[samples].to(torch.float64) for values in several], dim=1)
        won = self._sums_by_cluster(moves.new.tensor, carried, n_clusters)
        lost = self._sums_by_cluster(moves.old.tensor, carried, n_clusters)
        return list(_small(won - lost).T)

    def best_moves(self, old: TorchArray, moves: Moves, gains: TorchArray, count: int) -> TorchArray:
        """Return labels after the most useful moves."""
        samples = moves.samples.tensor
        rounded = torch.round(gains.tensor[samples], decimals=GAIN_DIGITS)
        chosen = torch.argsort(rounded, stable=True)[:count]
        labels = old.tensor.clone()
        labels[samples[chosen]] = moves.new.tensor[chosen]
        return TorchArray(labels)

    def relabel(self, labels: TorchArray, target: Array) -> TorchArray:
        """Return target[labels]."""
        return TorchArray(self.tensor(target)[labels.tensor])

    def replace(self, labels: TorchArray, samples: Ints, new: Ints) -> TorchArray:
        """Return labels with a few replaced."""
        replaced = labels.tensor.clone()
        replaced[self.tensor(samples)] = self.tensor(new)
        return TorchArray(replaced)

    def farthest(
        self, assignment: Assignment, weights: TorchArray, unit: float, count: int
    ) -> tuple[Ints, Floats, Ints]:
        """Return the farthest samples that count."""
        distances = assignment.distances.tensor
        rounded = torch.round(distances / unit, decimals=GAIN_DIGITS) if unit > 0 else distances
        ranked = torch.where(weights.tensor > 0, rounded, -torch.inf)
        order = torch.argsort(ranked, descending=True, stable=True)[:count]
        order = order[weights.tensor[order] > 0]
        return _small(order), _small(distances[order]), _small(assignment.labels.tensor[order])

    def first_nearest(self, distances: TorchArray, tolerance: float) -> TorchArray:
        """Return the first of the least columns."""
        low = distances.tensor.amin(dim=1, keepdim=True)
        return TorchArray((distances.tensor <= low + tolerance).to(torch.uint8).argmax(dim=1))

    def compact(self, labels: TorchArray, n_clusters: int) -> TorchArray:
        """Return labels in small indices."""
        return TorchArray(labels.tensor.to(DTYPES[np.dtype(np.min_scalar_type(n_clusters))]))

    def fingerprint(self, labels: TorchArray) -> bytes:
        """Return a digest of compact labels."""
        return hashlib.blake2b(labels.tensor.cpu().numpy().tobytes(), digest_size=16).digest()

    # Stored kernels

    def diagonal(self, K: TorchArray) -> TorchArray:
        """Return the diagonal."""
        return TorchArray(K.tensor.diagonal().to(self.device, torch.float64, copy=True))

    def largest_entry(self, K: TorchArray) -> float:
        """Return the largest absolute value."""
        low, high = self.extremes(K)
        return max(high, -low)

    def asymmetry(self, K: TorchArray) -> tuple[float, float, int, int]:
        """Return the largest difference from the transpose."""
        worst = (-1.0, 0, 0)
        peak = 0.0
        n = len(K)
        for lo, hi in ranges_within(n, n):
            part = K.tensor[lo:hi].to(torch.float64)
            finite = torch.isfinite(part)
            if not bool(finite.all()):
                i, j = torch.nonzero(~finite)[0].tolist()
                return np.inf, np.inf, i + lo, j
            gaps = torch.triu((part - K.tensor[:, lo:hi].T).abs(), lo)
            place = int(gaps.argmax())
            gap = float(gaps.flatten()[place])
            if gap > worst[0]:
                worst = (gap, place // n + lo, place % n)
            peak = max(peak, float(part.abs().max()))
        return worst[0], peak, worst[1], worst[2]

    def block(self, K: TorchArray, rows: Index, cols: Index) -> Array:
        """Return a copy of a block."""
        return np.array(_small(self.picked(self.picked(K.tensor, rows).T, cols).T))

    def columns(self, K: TorchArray, samples: Ints) -> TorchArray:
        """Return some columns: rows, since the matrix is symmetric."""
        return TorchArray(self.picked(K.tensor, samples).to(self.device).T)

    def product(self, K: TorchArray, H: Any) -> TorchArray:
        """Return K @ H; a float32 kernel is widened some rows at a time."""
        right = self.tensor(H, torch.float64)
        if K.tensor.dtype == torch.float64 and not self._streams(K):
            return TorchArray(K.tensor @ right)
        if K.tensor.is_cuda and K.tensor.is_contiguous() and right.shape[1] <= MOST_FUSED:
            from kernelweave.backends.torch.triton_kernels import stored_products

            return TorchArray(stored_products(K.tensor, right, STORED_TILE))
        parts = [self._rows(K, lo, hi) @ right for lo, hi in ranges_within(len(K), K.shape[1])]
        return TorchArray(torch.cat(parts))

    def cluster_sums(self, K: TorchArray, labels: TorchArray, weights: TorchArray, n_clusters: int) -> TorchArray:
        """Return the cluster sums in one pass over the matrix."""
        if K.tensor.is_cuda and K.tensor.dtype == torch.float32 and n_clusters <= MOST_FUSED:
            from kernelweave.backends.torch.triton_kernels import stored_sums

            return TorchArray(stored_sums(K.tensor, labels.tensor, weights.tensor, n_clusters, STORED_TILE))
        return TorchArray(self.product(K, self.indicators(labels, weights, n_clusters)).tensor.T.contiguous())

    def move_sums(self, sums: TorchArray, K: TorchArray, moves: Moves, weights: TorchArray) -> None:
        """Update cluster sums from the rows of the moved samples."""
        for lo, hi in ranges_within(moves.count, K.shape[1]):
            rows = self._some_rows(K, moves.samples.tensor[lo:hi])
            sums.tensor += self.signed_moves(moves, weights, len(sums), lo, hi) @ rows

    def candidate_gains(
        self, K: TorchArray, diag: TorchArray, distances: TorchArray, weights: TorchArray
    ) -> TorchArray:
        """Return the gain every sample is sure of as a new centre."""
        parts = [
            self.candidate_gains_of_rows(TorchArray(self._rows(K, lo, hi)), lo, diag, distances, weights).tensor
            for lo, hi in ranges_within(len(K), K.shape[1])
        ]
        return TorchArray(torch.cat(parts))

    def candidate_gains_of_rows(
        self, rows: Any, start: int, diag: TorchArray, distances: TorchArray, weights: TorchArray
    ) -> TorchArray:
        """Return the same for the samples of some rows of a kernel, the first of which is ``start``."""
        values = self.tensor(rows).to(torch.float64)
        own = diag.tensor[start : start + len(values), None]
        won = distances.tensor - (own + diag.tensor - 2.0 * values)
        return TorchArray(won.clamp_(min=0.0) @ weights.tensor)

    # Kernels of several views that lack samples

    def sum_of_pairs(
        self,
        kernels: list[TorchArray],
        samples: list[TorchArray],
        coefficients: Floats,
        pattern: TorchArray,
        factors: Floats,
    ) -> TorchArray:
        """Return the weighted sum of kernels, each among its samples, some rows at a time."""
        n = len(pattern)
        total = torch.zeros(n, n, dtype=torch.float64, device=self.device)
        for K, known, c in zip(kernels, samples, coefficients.tolist(), strict=True):
            for lo, hi in ranges_within(len(known) if c != 0.0 else 0, len(known)):
                rows = torch.zeros(hi - lo, n, dtype=torch.float64, device=self.device)
                rows[:, known.tensor] = c * self._rows(K, lo, hi)
                total[known.tensor[lo:hi]] += rows
        table = self.tensor(factors, torch.float64)
        for lo, hi in ranges_within(n, n):
            total[lo:hi] *= table[pattern.tensor[lo:hi]][:, pattern.tensor]
        return TorchArray(total)

    def add_to_pairs(self, K: TorchArray, pattern: TorchArray, values: Floats) -> None:
        """Add values of pairs of patterns, some rows at a time."""
        table = self.tensor(values, torch.float64)
        for lo, hi in ranges_within(len(K), len(K)):
            K.tensor[lo:hi] += table[pattern.tensor[lo:hi]][:, pattern.tensor]

    # Cluster sums

    def within_sums(self, sums: TorchArray, labels: TorchArray, weights: TorchArray) -> Floats:
        """Return the kernel summed over the pairs inside each cluster."""
        inside = sums.tensor.gather(0, labels.tensor[None])[0]
        return self.segment_sums(labels, TorchArray(weights.tensor * inside), len(sums))

    def cluster_products(self, sums: TorchArray, labels: TorchArray, weights: TorchArray) -> Floats:
        """Return the kernel summed over the pairs of two clusters."""
        rows = self._sums_by_cluster(labels.tensor, weights.tensor[:, None] * sums.tensor.T, len(sums))
        return _small(rows.T)

    def nearest(
        self,
        sums: TorchArray,
        totals: Floats,
        norms: Floats,
        labels: TorchArray,
        tolerance: float,
        diag: TorchArray,
        coefs: Floats | None = None,
    ) -> Assignment:
        """Return the nearest cluster of every sample."""
        slopes = np.where(totals > 0, 2.0 / np.where(totals > 0, totals, 1.0), 0.0)
        filled = ~np.isinf(norms)
        if sums.tensor.is_cuda and sums.tensor.stride(1) == 1:
            from kernelweave.backends.torch.triton_sums import nearest_sums

            weighed = coefs is not None
            known = self.tensor(np.stack([norms, slopes, norms if coefs is None else coefs]), torch.float64)
            clusters = (known[0], known[1], known[2])
            here = nearest_sums(sums.tensor, clusters, diag.tensor, labels.tensor, tolerance, weighed=weighed)
            return Assignment(TorchArray(here[0]), TorchArray(here[1]), float(here[2]))

        def values(lo: int, hi: int) -> torch.Tensor:
            found = self._column(np.where(filled, norms, 0.0)) - self._column(slopes) * sums.tensor[:, lo:hi]
            return found if coefs is None else self._column(coefs) * (found + diag.tensor[lo:hi])

        assignment = self._nearest_of(values, filled, labels.tensor, tolerance)
        if coefs is not None:
            return assignment
        return Assignment(assignment.labels, diag + assignment.distances, assignment.lead)

    def distances_to_clusters(
        self, sums: TorchArray, totals: Floats, norms: Floats, labels: TorchArray, diag: TorchArray
    ) -> TorchArray:
        """Return the squared distance to the centre of the own cluster."""
        filled = self.tensor(np.where(totals > 0, totals, 1.0))
        inside = sums.tensor.gather(0, labels.tensor[None])[0]
        own = self.tensor(norms)[labels.tensor]
        return TorchArray(diag.tensor - 2.0 * inside / filled[labels.tensor] + own)

    def add_to_clusters(self, sums: TorchArray, clusters: Ints, values: TorchArray) -> None:
        """Add to the sums of some clusters."""
        sums.tensor[self.tensor(clusters)] += values.tensor

    def add_to_samples(self, sums: TorchArray, samples: TorchArray, values: TorchArray) -> None:
        """Add to the columns of some samples; no two additions meet, so that their order plays no part."""
        sums.tensor[:, samples.tensor] += values.tensor

    def stack(self, arrays: list[TorchArray]) -> TorchArray:
        """Return arrays along a new first axis."""
        return TorchArray(torch.stack([array.tensor for array in arrays]))

    def weighted_sum(self, coefficients: Floats, stack: TorchArray) -> TorchArray:
        """Return the weighted sum over the first axis."""
        return TorchArray(torch.tensordot(self.tensor(coefficients), stack.tensor, dims=1))

    # Features, in double or single precision, or sparse; what is made of them is in double

    def squared_lengths(self, Phi: Features) -> TorchArray:
        """Return the squared length of every row."""
        if isinstance(Phi, SparseTable):
            return Phi.squared_lengths()
        parts = [self._rows(Phi, lo, hi).square().sum(dim=1) for lo, hi in ranges_within(*Phi.shape)]
        return TorchArray(torch.cat(parts))

    def feature_products(self, Phi: Features, H: Any) -> Floats:
        """Return Phi^T H."""
        right = self.tensor(H, torch.float64)
        if isinstance(Phi, SparseTable):
            return _small(Phi.columns.times(right))
        return _small(sum(self._rows(Phi, lo, hi).T @ right[lo:hi] for lo, hi in ranges_within(*Phi.shape)))

    def spread(self, Phi: Features, vectors: Floats) -> TorchArray:
        """Return Phi @ vectors."""
        right = self.tensor(vectors, torch.float64)
        if isinstance(Phi, SparseTable):
            return TorchArray(Phi.rows.times(right))
        return TorchArray(torch.cat([self._rows(Phi, lo, hi) @ right for lo, hi in ranges_within(*Phi.shape)]))

    def spread_rows(self, Phi: Features, vectors: Floats) -> TorchArray:
        """Return vectors @ Phi^T."""
        left = self.tensor(vectors, torch.float64)
        if isinstance(Phi, SparseTable):
            return TorchArray(Phi.rows.times(left.T).T.contiguous())
        return TorchArray(torch.cat([left @ self._rows(Phi, lo, hi).T for lo, hi in ranges_within(*Phi.shape)], dim=1))

    def feature_sums(self, Phi: Features, labels: TorchArray, weights: TorchArray, n_clusters: int) -> Floats:
        """Return the sums of rows by cluster."""
        if isinstance(Phi, SparseTable):
            return self._sparse_sums(Phi, [(weights.tensor, labels.tensor)], slice(None), n_clusters)
        return _small(self._sums_by_cluster(labels.tensor, Phi.tensor, n_clusters, weights.tensor))

    def moved_features(self, Phi: Features, moves: Moves, weights: TorchArray, n_clusters: int) -> Floats:
        """Return by how much the sums of rows change."""
        if isinstance(Phi, SparseTable):
            samples = moves.samples.tensor
            carried = weights.tensor[samples]
            signed = [(-carried, moves.old.tensor), (carried, moves.new.tensor)]
            return self._sparse_sums(Phi, signed, samples, n_clusters)
        change = torch.zeros(n_clusters, Phi.shape[1], dtype=torch.float64, device=self.device)
        for lo, hi in ranges_within(moves.count, Phi.shape[1]):
            rows = self._some_rows(Phi, moves.samples.tensor[lo:hi])
            change += self.signed_moves(moves, weights, n_clusters, lo, hi) @ rows
        return _small(change)

    def nearest_means(
        self,
        Phi: Features,
        means: Floats,
        norms: Floats,
        labels: TorchArray,
        tolerance: float,
        diag: TorchArray,
        coefs: Floats,
    ) -> Assignment:
        """Return the nearest mean of every row in one pass, some rows at a time."""
        filled = ~np.isinf(norms)
        centres = self.tensor(means, torch.float64)
        sparse = isinstance(Phi, SparseTable)
        if not sparse and Phi.tensor.is_cuda and Phi.tensor.is_contiguous() and len(filled) <= MOST_FUSED:
            from kernelweave.backends.torch.triton_kernels import nearest_means

            there = (self.tensor(norms, torch.float64), self.tensor(coefs, torch.float64), diag.tensor, labels.tensor)
            chosen, least, lead = nearest_means(Phi.tensor, centres, *there, tolerance, MEANS_TILE)
            return Assignment(TorchArray(chosen), TorchArray(least), float(lead))
        finite = self._column(np.where(filled, norms, 0.0))

        def values(lo: int, hi: int) -> torch.Tensor:
            products = Phi.rows[lo:hi].times(columns).T if sparse else centres @ self._rows(Phi, lo, hi).T
            return self._column(coefs) * ((finite - 2.0 * products) + diag.tensor[lo:hi])

        columns = centres.T.contiguous() if sparse else None
        return self._nearest_of(values, filled, labels.tensor, tolerance, 0 if sparse else Phi.shape[1])

    def distances_to_means(
        self, Phi: Features, means: Floats, norms: Floats, labels: TorchArray, diag: TorchArray
    ) -> TorchArray:
        """Return the squared distance to the mean of the own cluster."""
        centres = self.tensor(means, torch.float64)
        own = self.tensor(norms)[labels.tensor]
        if isinstance(Phi, SparseTable):
            return TorchArray(diag.tensor - 2.0 * Phi.rows.products_with_own(centres, labels.tensor) + own)
        products = [
            (self._rows(Phi, lo, hi) * centres[labels.tensor[lo:hi]]).sum(dim=1) for lo, hi in ranges_within(*Phi.shape)
        ]
        return TorchArray(diag.tensor - 2.0 * torch.cat(products) + own)

    def assign_by_size(
        self,
        Phi: Features,
        means: Floats,
        norms: Floats,
        labels: TorchArray,
        tolerance: float,
        diag: TorchArray,
        weights: TorchArray,
        totals: Floats,
    ) -> TorchArray:
        """Return labels given one after the other, by the host's loop: every sample waits for the one before it."""
        from kernelweave.backends.registry import get_backend

        host = get_backend()
        chosen = host.assign_by_size(
            Phi.entries if isinstance(Phi, SparseTable) else self.host(Phi).astype(np.float64, copy=False),
            means,
            norms,
            self.host(labels),
            tolerance,
            self.host(diag),
            self.host(weights),
            totals,
        )
        return self.labels(chosen)

    def gram(self, Phi: TorchArray, weights: TorchArray) -> Floats:
        """Return Phi^T W Phi."""
        total = torch.zeros(Phi.shape[1], Phi.shape[1], dtype=torch.float64, device=self.device)
        for lo, hi in ranges_within(*Phi.shape):
            rows = self._rows(Phi, lo, hi)
            total += rows.T @ (weights.tensor[lo:hi, None] * rows)
        return _small(total)

    # Neighbours

    def nearest_rows(self, X: Any, known: Any, count: int) -> Ints:
        """Return the ``count`` known rows that are nearest to every row, in any order, as NumPy."""
        there = self.tensor(known, torch.float64)
        lengths = there.square().sum(dim=1)
        found = np.empty((len(X), count), dtype=np.intp)
        for lo, hi in ranges_within(len(X), len(there)):
            squares = torch.addmm(lengths, self.tensor(X[lo:hi], torch.float64), there.T, alpha=-2.0)
            found[lo:hi] = _small(torch.topk(squares, count, dim=1, largest=False, sorted=False).indices)
        return found

    # Thin blocks

    def start_block(self, n: int, width: int) -> TorchArray:
        """Return random directions, always the same."""
        block = np.random.default_rng(0).standard_normal((n, width))
        return TorchArray(torch.linalg.qr(self.tensor(block))[0])

    def inner(self, blocks: list[TorchArray], others: list[TorchArray]) -> Floats:
        """Return B^T C."""
        return _small(self.join(blocks).tensor.T @ self.join(others).tensor)

    def combine(self, blocks: list[TorchArray], matrix: Floats) -> TorchArray:
        """Return B @ matrix."""
        return TorchArray(self.join(blocks).tensor @ self.tensor(matrix, torch.float64))

    def column_norms(self, block: TorchArray) -> Floats:
        """Return the length of every column."""
        return _small(torch.linalg.vector_norm(block.tensor, dim=0))

    def join(self, blocks: list[Any]) -> Any:
        """Return blocks, or sparse features, side by side."""
        if isinstance(blocks[0], SparseTable):
            return SparseTable(sp.hstack([block.entries for block in blocks], format="csr"), self.device)
        return blocks[0] if len(blocks) == 1 else TorchArray(torch.cat([block.tensor for block in blocks], dim=1))

    def together(self, blocks: list[TorchArray]) -> list[TorchArray]:
        """Return one block that joins them."""
        return [self.join(blocks)]

    def orthonormal(self, block: TorchArray, basis: list[TorchArray]) -> TorchArray:
        """Return what a block adds to a basis."""
        size = self.column_norms(block).max(initial=0.0)
        joined = self.join(basis).tensor
        left = block.tensor
        for _ in range(2):
            left = left - joined @ (joined.T @ left)
        Q, keep = self._orthonormal_columns(left, NOTHING_ADDED * size)
        if keep.all() or not keep.any():
            return TorchArray(Q[:, self.tensor(keep)])
        # A direction that adds nothing leaves rounding in its place; once more against the basis tells what is left.
        left = Q[:, self.tensor(keep)]
        return TorchArray(torch.linalg.qr(left - joined @ (joined.T @ left))[0])

    def _orthonormal_columns(self, block: torch.Tensor, least: float) -> tuple[torch.Tensor, Any]:
        """Return Q, and which of its columns stand for more than ``least``; the small factor is pivoted on the host."""
        from scipy.linalg import qr

        Q, R = torch.linalg.qr(block)
        small, pivoted, _ = qr(R.cpu().numpy(), mode="economic", pivoting=True, check_finite=False)
        return Q @ self.tensor(small), np.abs(np.diagonal(pivoted)) > least

    # Pieces

    def indicators(self, labels: TorchArray, weights: TorchArray, n_clusters: int) -> torch.Tensor:
        """Return the (n, k) matrix with the weight of every sample at its cluster."""
        indicators = torch.zeros(len(labels), n_clusters, dtype=torch.float64, device=self.device)
        indicators[torch.arange(len(labels), device=self.device), labels.tensor] = weights.tensor
        return indicators

    def picked(self, values: torch.Tensor, index: Index) -> torch.Tensor:
        """Return some rows."""
        if isinstance(index, slice):
            return values[index]
        return values[torch.as_tensor(np.asarray(index, dtype=np.int64), device=values.device)]

    def signed_moves(self, moves: Moves, weights: TorchArray, n_clusters: int, lo: int, hi: int) -> torch.Tensor:
        """Return for some of the moved samples what each adds to every cluster, shape (k, hi - lo)."""
        samples = moves.samples.tensor[lo:hi]
        carried = weights.tensor[samples]
        signed = torch.zeros(n_clusters, len(samples), dtype=torch.float64, device=self.device)
        places = torch.arange(len(samples), device=self.device)
        signed[moves.new.tensor[lo:hi], places] = carried
        signed[moves.old.tensor[lo:hi], places] = -carried
        return signed

    def _sums_by_cluster(
        self, labels: torch.Tensor, values: torch.Tensor, n_clusters: int, weights: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the (weighted) sums of rows by cluster, shape (k, width)."""
        total = torch.zeros(n_clusters, values.shape[1], dtype=torch.float64, device=self.device)
        for lo, hi in ranges_within(len(labels), n_clusters + values.shape[1]):
            indicators = torch.zeros(n_clusters, hi - lo, dtype=torch.float64, device=self.device)
            ones = 1.0 if weights is None else weights[lo:hi]
            indicators[labels[lo:hi], torch.arange(hi - lo, device=self.device)] = ones
            total += indicators @ values[lo:hi].to(self.device, torch.float64)
        return total

    def _sparse_sums(self, Phi: SparseTable, signed: list[Any], samples: Any, n_clusters: int) -> Floats:
        """Return sums of sparse rows by cluster, from pairs of weights and clusters of some samples."""
        places = torch.arange(len(Phi), device=self.device)[samples]
        parts = []
        for lo, hi in ranges_within(n_clusters, len(Phi)):
            # One column more is for clusters that are not among these.
            indicators = torch.zeros(len(Phi), hi - lo + 1, dtype=torch.float64, device=self.device)
            for weights, clusters in signed:
                here = (clusters >= lo) & (clusters < hi)
                indicators[places, torch.where(here, clusters - lo, hi - lo)] = weights
            parts.append(Phi.columns.times(indicators[:, :-1]))
        return _small(torch.cat(parts, dim=1).T.contiguous())

    def _column(self, values: Floats) -> torch.Tensor:
        return self.tensor(values, torch.float64)[:, None]

    def _nearest_of(
        self, values: Any, filled: Any, labels: torch.Tensor, tolerance: float, width: int = 0
    ) -> Assignment:
        """Return the assignment by ``values(lo, hi)`` of shape (k, hi - lo), some samples at a time."""
        n = len(labels)
        empty = self.tensor(~filled)
        chosen = torch.empty_like(labels)
        least = torch.empty(n, dtype=torch.float64, device=self.device)
        lead = torch.full((), torch.inf, dtype=torch.float64, device=self.device)
        for lo, hi in ranges_within(n, len(filled) + width):
            found = values(lo, hi)
            found[empty] = torch.inf
            own = labels[None, lo:hi]
            kept = found.gather(0, own)[0]
            found.scatter_(0, own, torch.inf)
            low = found.amin(dim=0)
            moves = low < kept - tolerance
            first = (found <= low + tolerance).to(torch.uint8).argmax(dim=0)
            chosen[lo:hi] = torch.where(moves, first, own[0])
            least[lo:hi] = torch.where(moves, found.gather(0, first[None])[0], kept)
            leads = torch.where(moves, torch.inf, low - kept + tolerance)
            lead = torch.minimum(lead, leads.amin())
        return Assignment(TorchArray(chosen), TorchArray(least), float(lead))


def ranges_within(n: int, width: int) -> list[tuple[int, int]]:
    """Return ranges of rows so that ``width`` numbers for each stay within what is held."""
    return ranges(n, max(1, HELD // max(width, 1))) or [(0, 0)]


def _small(values: Any) -> Any:
    """Return a small tensor as NumPy."""
    return values.cpu().numpy()
