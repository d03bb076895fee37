"""The kernels of several views, each among the samples that the view has.

Sample i of the joint set is row ``position`` of the kernel of view v where ``samples[v][position] == i``. Nothing is
known about samples that are absent from a view, so that its kernel has no rows for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.operator import KernelOperator


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
