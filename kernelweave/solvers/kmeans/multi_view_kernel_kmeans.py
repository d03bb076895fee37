"""Multi-view kernel k-means: clusters and view weights in turn.

Objective   J(labels, w) = sum_v w_v^p D_v(labels), D_v the kernel k-means objective in view v, w on the simplex
Input       a weighted sum of kernels (composite), a starting partition and view weights
Cost        that of kernel k-means on each view, in all outer steps together: sums of every view are kept, so that new
            weights need no pass over the data. O(n d) memory on features, O(V k n) beside the kernels otherwise
Guarantee   J never rises; without ``tol`` the run ends where neither labels nor weights change
Source      PhD 4.2, (4.4)-(4.10); Tzortzis and Likas, ICDM 2012
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.kernels.weighted_sum import CompositeKernel, JoinedFeatures
from kernelweave.partitions import algebra
from kernelweave.partitions.state import ClusterMeans, ClusterSums
from kernelweave.solvers.kmeans.kernel_kmeans import PATIENCE, Descent, descend
from kernelweave.solvers.shared.view_weights import best_view_weights, start_of_weights, without_rounding

MultiViewKernel = CompositeKernel | JoinedFeatures


@dataclass(frozen=True)
class MultiViewDescent(Descent):
    """What one run found; ``history`` holds J at the start and after every outer step.

    With fixed view weights there are no outer steps, and it is that of kernel k-means.
    """

    view_weights: Floats  # (V,) add up to 1
    view_scatters: Floats  # (V,) D_v
    n_steps: int  # of kernel k-means, over all outer steps


class ViewSums(ClusterSums):
    """Clusters of any kernels, through the cluster sums of every view."""

    op: CompositeKernel
    view_sums: Floats  # (V, k, n)

    def reweigh(self, coefficients: Floats) -> None:
        """Change the coefficients of the views, from the sums alone."""
        self._measure(self.op.with_weights(coefficients))
        self._cluster_masses = algebra.cluster_weights(self.labels, self._masses, self.n_clusters)
        self.sums = self.op.combine(self.view_sums)
        self._settle()

    def view_scatters(self) -> Floats:
        """Return the objective of the partition in every view."""
        masses = np.array([self.weights @ part.diag() for part in self.op.parts])
        within = np.stack([algebra.within_sums(sums, self.labels, self.weights) for sums in self.view_sums])
        return _scatters(masses, within, self.totals)

    def _compute(self) -> None:
        self.view_sums = self.op.view_sums(self.labels, self.weights, self.n_clusters)
        self.sums = self.op.combine(self.view_sums)

    def _update(self, moved: Ints, old: Ints, new: Ints) -> None:
        for part, sums in zip(self.op.parts, self.view_sums, strict=True):
            part.move_sums(sums, moved, old, new, self.weights[moved])
        self.sums = self.op.combine(self.view_sums)


class ViewMeans(ClusterMeans):
    """Clusters of features of several views, through their means."""

    op: JoinedFeatures

    def reweigh(self, coefficients: Floats) -> None:
        """Change the coefficients of the views; sums of features do not depend on them."""
        self._measure(self.op.with_weights(coefficients))
        self._cluster_masses = algebra.cluster_weights(self.labels, self._masses, self.n_clusters)
        self._settle()

    def view_scatters(self) -> Floats:
        """Return the objective of the partition in every view."""
        return _scatters(self.op.view_diags @ self.weights, self.op.view_lengths(self.sums), self.totals)


def _scatters(masses: Floats, within: Floats, totals: Floats) -> Floats:
    """Return masses - within / totals summed over the clusters, zero where rounding is all that is left."""
    filled = totals > 0
    found = masses - (within[:, filled] / totals[filled]).sum(axis=1)
    size = np.abs(masses) + np.abs(within[:, filled] / totals[filled]).sum(axis=1)
    return without_rounding(found, size)


def multi_view_kernel_kmeans(
    op: MultiViewKernel,
    labels: Ints,
    weights: Floats,
    *,
    n_clusters: int,
    p: float,
    view_weights: Floats,
    learned: bool = True,
    max_iter: int = 100,
    max_steps: int = 300,
    tol: float = 0.0,
    on_step: Callable[[float], object] | None = None,
) -> MultiViewDescent:
    """Descend from ``labels`` and ``view_weights`` until nothing changes, or J falls by at most ``tol * J``.

    ``max_iter`` bounds the outer steps, ``max_steps`` those of kernel k-means within each. With ``learned=False`` the
    view weights stay; infinite ``p`` stands for equal weights that stay.
    """
    p, view_weights, learned = start_of_weights(p, view_weights, learned)
    labels = np.array(labels, dtype=np.intp)
    op = op.with_weights(view_weights**p)
    state: ViewSums | ViewMeans = (
        ViewMeans(op, labels, weights, n_clusters)
        if isinstance(op, JoinedFeatures)
        else ViewSums(op, labels, weights, n_clusters)
    )
    history = [state.objective]
    converged = False
    rose = False
    n_steps = 0
    if not learned:
        history, converged, rose = descend(state, max_iter=max_steps, tol=tol, on_step=on_step)
        n_steps = len(history) - 1
    settled: Ints | None = None  # the labels the weights were found for
    idle = 0
    while learned and not converged and len(history) <= max_iter:
        inner, ended, raised = descend(state, max_iter=max_steps, tol=tol)
        n_steps = n_steps + len(inner) - 1
        rose = rose or raised
        if settled is not None and np.array_equal(settled, state.labels):
            converged = ended
        else:
            settled = state.labels.copy()
            view_weights = best_view_weights(state.view_scatters(), p)
            state.reweigh(view_weights**p)
            fall = history[-1] - state.objective
            idle = idle + 1 if fall <= state.noise else 0  # clusters may change their names for ever
            converged = idle >= PATIENCE or (tol > 0 and fall <= tol * abs(state.objective))
        history.append(state.objective)
        if on_step is not None:
            on_step(history[-1])
    return MultiViewDescent(
        state.labels,
        tuple(history),
        converged,
        rose,
        state.scatter(),
        state.totals,
        state.norms,
        np.array(view_weights),
        state.view_scatters(),
        n_steps,
    )
