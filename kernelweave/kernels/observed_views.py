"""The kernels of several views, each among the samples that the view has.

Sample i of the joint set is row ``position`` of the kernel of view v where ``samples[v][position] == i``. Nothing is
known about samples that are absent from a view, so that its kernel has no rows for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelweave.backends.host import indices
from kernelweave.foundation.array_types import Array, Bools, Floats, Index, Ints
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.operator import GAIN_ENTRIES, KernelOperator


@dataclass(frozen=True)
class ObservedViews:
    """Kernels of views that lack samples, in the order of the views."""

    operators: tuple[KernelOperator, ...]
    samples: tuple[Ints, ...]  # which samples each view has, ascending
    n_samples: int  # of all views together

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.operators)

    @property
    def observed(self) -> Bools:
        """Which samples each view has, shape (n_samples, n_views)."""
        mask = np.zeros((self.n_samples, self.n_views), dtype=bool)
        for v, samples in enumerate(self.samples):
            mask[samples, v] = True
        return mask

    def totals(self, weights: Floats) -> Floats:
        """Return the weight of the samples of every view."""
        return np.array([weights[samples].sum() for samples in self.samples])

    def take(self, chosen: Ints) -> "ObservedViews":
        """Return the kernels among chosen samples (ascending), stored."""
        operators: list[KernelOperator] = []
        samples = []
        for op, known in zip(self.operators, self.samples, strict=True):
            there = np.flatnonzero(np.isin(known, chosen))
            operators.append(DenseKernel(np.ascontiguousarray(op.block(there, there), dtype=np.float64), psd=op.psd))
            samples.append(np.searchsorted(chosen, known[there]))
        return ObservedViews(tuple(operators), tuple(samples), len(chosen))

    def only(self, views: Sequence[int]) -> "ObservedViews":
        """Return some of the views."""
        operators = tuple(self.operators[v] for v in views)
        return ObservedViews(operators, tuple(self.samples[v] for v in views), self.n_samples)

    def telling(self, weights: Floats, n_clusters: int) -> list[int]:
        """Return the views of more samples than clusters, or all if there are none.

        The others have no scatter left and would take all the weight.
        """
        counts = [np.count_nonzero(weights[samples]) for samples in self.samples]
        return [v for v, count in enumerate(counts) if count > n_clusters] or list(range(self.n_views))


class AveragedDistances(KernelOperator):
    """-1/2 times the squared distances averaged over the views that pairs of samples have in common.

    As a kernel it has these distances. A pair without a common view gets the mean of the others. Values are computed
    from the kernels of the views when they are asked for; ``stored`` keeps them.
    """

    def __init__(
        self, views: ObservedViews, coefficients: Floats, chosen: Ints | None = None, held: int = GAIN_ENTRIES
    ) -> None:
        self._samples = np.arange(views.n_samples) if chosen is None else chosen
        self._views = views
        self._coefficients = coefficients.tolist()
        self._diagonals = [op.backend.host(op.diag()) for op in views.operators]
        self._places = []
        for known in views.samples:
            place = np.full(views.n_samples, -1)
            place[known] = np.arange(len(known))
            self._places.append(place)
        self.held_entries = held
        self.shape = (len(self._samples), len(self._samples))
        self._mean: float | None = None
        self._largest = 0.0

    @property
    def recomputed(self) -> bool:
        """True: no value is stored."""
        return True

    def stored(self) -> DenseKernel:
        """Return it as a matrix."""
        K = np.empty(self.shape)
        self._over_rows(K)
        return DenseKernel(K)

    def diag(self) -> Floats:
        """Return zeros."""
        return np.zeros(self.n_samples)

    def scale(self) -> float:
        """Return the size of the largest entry; all are computed once."""
        self._measure()
        return self._largest

    def matmat(self, H: Array) -> Floats:
        """Return the product, some rows at a time."""
        return np.concatenate([self.block(rows, slice(None)) @ H for rows in self._ranges()])

    def block(self, rows: Index, cols: Index) -> Array:
        """Return the block, computed."""
        values, _, _ = self._averages(rows, cols)
        unknown = np.isnan(values)
        if unknown.any():
            values[unknown] = -0.5 * self._measure()
        return values

    def _measure(self) -> float:
        """Return the mean squared distance of the pairs that are known."""
        return self._over_rows() if self._mean is None else self._mean

    def _over_rows(self, K: Floats | None = None) -> float:
        """Compute all values once, write them into ``K`` where it is given, and return the mean squared distance."""
        total = 0.0
        shared = 0.0
        largest = 0.0
        gaps = []
        for rows in self._ranges():
            values, distances, weight = self._averages(rows, slice(None))
            total += distances
            shared += weight
            largest = max(largest, float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0)))
            if np.isnan(values).any():
                gaps.append(rows)
            if K is not None:
                K[rows] = values
        self._mean = total / shared
        self._largest = max(largest, 0.5 * abs(self._mean)) if gaps else largest
        if K is not None:
            for rows in gaps:
                part = K[rows]
                part[np.isnan(part)] = -0.5 * self._mean
        return self._mean

    def _ranges(self) -> list[slice]:
        """Return ranges of rows of which, with all columns, so many entries are held as may be."""
        step = max(1, self.held_entries // max(1, self.n_samples))
        return [slice(start, min(start + step, self.n_samples)) for start in range(0, self.n_samples, step)]

    def _averages(self, rows: Index, cols: Index) -> tuple[Floats, float, float]:
        """Return a block, NaN where no view has both samples, and the sums of its squared distances and weights."""
        asked = self._samples[indices(rows, self.n_samples)]
        others = self._samples[indices(cols, self.n_samples)]
        total = np.zeros((len(asked), len(others)))
        shared = np.zeros((len(asked), len(others)))
        parts = zip(self._views.operators, self._places, self._diagonals, self._coefficients, strict=True)
        for op, place, diag, coefficient in parts:
            here = np.flatnonzero(place[asked] >= 0)
            there = np.flatnonzero(place[others] >= 0)
            r = place[asked[here]]
            c = place[others[there]]
            squared = diag[r][:, None] + diag[c][None, :]
            every = len(c) == op.shape[1] and bool((c == np.arange(len(c))).all())  # not copied where all are asked for
            squared -= 2.0 * op.block(r, slice(None) if every else c)
            squared *= coefficient
            pairs = np.ix_(here, there)
            total[pairs] += squared
            shared[pairs] += coefficient
        sums = float(total.sum()), float(shared.sum())
        known = shared > 0
        np.divide(total, shared, out=total, where=known)
        total *= -0.5
        total[~known] = np.nan
        total[asked[:, None] == others[None, :]] = 0.0
        return total, *sums
