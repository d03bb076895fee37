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
from typing import Any

import numpy as np

from kernelweave.backends import BackendArray
from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.foundation.checkpoints import NOTHING, Keeper
from kernelweave.kernels.weighted_sum import MultiViewKernel
from kernelweave.partitions.observed import ObservedPartition
from kernelweave.partitions.views import ViewPartition
from kernelweave.solvers.kmeans.kernel_kmeans import PATIENCE, Descent, DescentPath, descend
from kernelweave.solvers.shared.view_weights import best_view_weights, start_of_weights


@dataclass(frozen=True)
class MultiViewDescent(Descent):
    """The end of one run; ``history`` holds J at the start and after every outer step.

    With fixed view weights there are no outer steps, and it is that of kernel k-means.
    """

    view_weights: Floats  # (V,) add up to 1
    view_scatters: Floats  # (V,) D_v
    n_steps: int  # of kernel k-means, over all outer steps
    view_norms: Floats  # (V, k) squared lengths of the centres in every view, infinite for an empty cluster


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
    keeper: Keeper = NOTHING,
    on_step: Callable[[float], object] | None = None,
) -> MultiViewDescent:
    """Descend from ``labels`` and ``view_weights`` until nothing changes, or J falls by at most ``tol * J``.

    ``max_iter`` bounds the outer steps, ``max_steps`` those of kernel k-means within each. With ``learned=False`` the
    view weights stay; infinite ``p`` stands for equal weights that stay.
    """
    p, view_weights, learned = start_of_weights(p, view_weights, learned)
    partition = op.with_weights(view_weights**p).view_partition(labels, weights, n_clusters)
    options: dict[str, Any] = {"p": p, "learned": learned, "max_iter": max_iter, "max_steps": max_steps, "tol": tol}
    return alternate(partition, view_weights, keeper=keeper, on_step=on_step, **options)


def alternate(
    partition: ViewPartition | ObservedPartition,
    view_weights: Floats,
    *,
    p: float,
    learned: bool,
    max_iter: int,
    max_steps: int,
    tol: float,
    keeper: Keeper = NOTHING,
    on_step: Callable[[float], object] | None = None,
) -> MultiViewDescent:
    """Descend from a partition whose coefficients are ``view_weights ** p``; see ``multi_view_kernel_kmeans``."""
    if not learned:
        path = descend(partition, max_iter=max_steps, tol=tol, keeper=keeper, on_step=on_step)
        return _end(partition, path, view_weights, len(path.history) - 1)
    path = DescentPath([partition.objective])
    history = path.history
    n_steps = 0
    weighted: BackendArray | None = None  # the labels the weights were computed for
    known = keeper.known()
    if known is not None:
        path = DescentPath(**known["path"])
        history = path.history
        n_steps = known["n_steps"]
        view_weights = known["view_weights"]
        weighted = partition.backend.labels(known["weighted"])
        partition.move(partition.moves_to(partition.backend.labels(known["labels"])))
        partition.reweigh(view_weights**p)
    while not path.converged and len(history) <= max_iter:
        inner = descend(partition, max_iter=max_steps, tol=tol, keeper=keeper.part(f"step {len(history)}"))
        n_steps += len(inner.history) - 1
        path.rose = path.rose or inner.rose
        if weighted is not None and partition.moves_to(weighted).count == 0:
            path.converged = inner.converged
        else:
            weighted = partition.labels
            view_weights = best_view_weights(partition.view_scatters(), p)
            partition.reweigh(view_weights**p)
            fall = history[-1] - partition.objective
            path.idle = path.idle + 1 if fall <= partition.noise else 0  # clusters may change their names for ever
            path.converged = path.idle >= PATIENCE or (tol > 0 and fall <= tol * abs(partition.objective))
        history.append(partition.objective)
        if keeper is not NOTHING:  # labels that are elsewhere stay there
            keeper.store(
                {
                    "labels": partition.host_labels(),
                    "path": path,
                    "n_steps": n_steps,
                    "view_weights": view_weights,
                    "weighted": partition.backend.host(weighted),
                }
            )
        if on_step is not None:
            on_step(history[-1])
    return _end(partition, path, view_weights, n_steps)


def _end(
    partition: ViewPartition | ObservedPartition, path: DescentPath, view_weights: Floats, n_steps: int
) -> MultiViewDescent:
    """Return the end of a run."""
    return MultiViewDescent(
        partition.host_labels(),
        tuple(path.history),
        path.converged,
        path.rose,
        partition.scatter(),
        partition.totals,
        partition.norms,
        np.array(view_weights),
        partition.view_scatters(),
        n_steps,
        partition.view_norms(),
    )
