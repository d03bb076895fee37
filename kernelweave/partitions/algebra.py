"""Formulas on any operator, each written once: fit, predict, measures and tests all call these.

S is the (k, n) matrix of cluster sums, W the total weight of each cluster, Q_c = sum of w_i S[c, i] over the
members i of c. Then ||m_c||^2 = Q_c / W_c^2 and ||phi(x_i) - m_c||^2 = K_ii - 2 S[c, i] / W_c + Q_c / W_c^2.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave.backends.registry import get_engine
from kernelweave.foundation.array_types import Array, Floats, Ints
from kernelweave.foundation.errors import KernelError
from kernelweave.foundation.threads import for_ranges, single_threaded_blas
from kernelweave.kernels.checks import check_kernel_matrix
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.operator import KernelOperator

EPS = float(np.finfo(np.float64).eps)


def as_operator(kernel: Any, name: str = "K") -> KernelOperator:
    """Return an operator as it is, or a checked dense or sparse kernel matrix as one."""
    if isinstance(kernel, KernelOperator):
        return kernel
    K = sp.csr_array(kernel) if sp.issparse(kernel) else np.asarray(kernel)
    if K.dtype.kind not in "biuf":
        raise KernelError(f"{name} holds values of type {K.dtype}; a kernel holds real numbers.")
    K = K if K.dtype in (np.float32, np.float64) else K.astype(np.float64)
    check_kernel_matrix(K, name)
    return GraphKernel(K) if sp.issparse(K) else DenseKernel(K)


def cluster_weights(labels: Ints, weights: Floats, n_clusters: int) -> Floats:
    """Return W, the total weight of every cluster."""
    return np.asarray(np.bincount(labels, weights, n_clusters), dtype=np.float64)


def within_sums(sums: Floats, labels: Ints, weights: Floats) -> Floats:
    """Return Q_c, the weighted sum of the kernel over all pairs of members of each cluster."""
    own = sums[labels, np.arange(len(labels))]
    return np.asarray(np.bincount(labels, weights * own, sums.shape[0]), dtype=np.float64)


def center_norms(within: Floats, totals: Floats) -> Floats:
    """Return ||m_c||^2; infinite for a cluster without weight, which is then never the nearest."""
    norms = np.full(len(totals), np.inf)
    filled = totals > 0
    norms[filled] = within[filled] / totals[filled] ** 2
    return norms


def cluster_scatter(within: Floats, totals: Floats, masses: Floats) -> Floats:
    """Return the weighted squared distances to each cluster's mean, summed; ``masses`` are sums of w_i K_ii."""
    filled = totals > 0
    return np.where(filled, masses - within / np.where(filled, totals, 1.0), 0.0)


def squared_distances(op: KernelOperator, sums: Floats, totals: Floats, norms: Floats) -> Floats:
    """Return ||phi(x_i) - m_c||^2, shape (n_rows, k)."""
    filled = totals > 0
    slopes = np.where(filled, 2.0 / np.where(filled, totals, 1.0), 0.0)
    return op.diag()[:, None] - slopes * sums.T + norms


def distances_to_samples(op: KernelOperator, samples: Ints, diag: Floats) -> Floats:
    """Return ||phi(x_i) - phi(x_s)||^2 for the chosen samples s, shape (n, len(samples))."""
    return diag[:, None] + diag[samples][None, :] - 2.0 * op.block(slice(None), samples)


def nearest_clusters(
    sums: Floats, totals: Floats, norms: Floats, labels: Ints, slack: float = 0.0
) -> tuple[Ints, Floats, float]:
    """Return the nearest cluster of every sample, its ||m||^2 - 2 <phi, m>, and the least lead of a kept label.

    A sample leaves its cluster only for one nearer by more than ``slack``; otherwise ties would make it wander.
    """
    out = np.empty_like(labels)
    own = np.empty(sums.shape[1])
    filled = totals > 0
    slopes = np.where(filled, 2.0 / np.where(filled, totals, 1.0), 0.0)
    loop = get_engine().nearest
    leads = for_ranges(
        lambda lo, hi: loop(sums, slopes, norms, labels, slack, out, own, lo, hi),
        sums.shape[1],
        elements=sums.size,
    )
    return out, own, min(float(lead) for lead in leads)  # type: ignore[arg-type]


def nearest_scaled(
    sums: Floats, totals: Floats, norms: Floats, labels: Ints, slack: float, coefs: Floats, diag: Floats
) -> tuple[Ints, Floats, float]:
    """Return the cluster with least coefs[c] ||phi(x_i) - m_c||^2 of every sample, that value, and the least lead.

    Ties as in :func:`nearest_clusters`.
    """
    out = np.empty_like(labels)
    own = np.empty(sums.shape[1])
    filled = totals > 0
    slopes = np.where(filled, 2.0 / np.where(filled, totals, 1.0), 0.0)
    loop = get_engine().nearest_scaled
    leads = for_ranges(
        lambda lo, hi: loop(sums, slopes, norms, coefs, diag, labels, slack, out, own, lo, hi),
        sums.shape[1],
        elements=sums.size,
    )
    return out, own, min(float(lead) for lead in leads)  # type: ignore[arg-type]


def founding_gains(op: KernelOperator, distances: Floats, weights: Floats, diag: Floats) -> Floats:
    """Return b_n = sum_i w_i max(d_i - ||phi(x_n) - phi(x_i)||^2, 0) of every sample n (MSc 4.3).

    A sample that founds a cluster of its own lowers the objective by at least b_n, d being the present distances.
    """
    if isinstance(op, GraphKernel):
        return _graph_gains(op, distances, weights, diag)
    gains = np.empty(op.n_samples)
    loop = get_engine().founding_gains
    if isinstance(op, DenseKernel):
        for_ranges(
            lambda lo, hi: loop(op.K, diag, distances, weights, gains, lo, hi, 0), op.n_samples, elements=op.K.size
        )
        return gains
    step = max(1, 2**22 // op.n_samples)
    for lo in range(0, op.n_samples, step):
        hi = min(lo + step, op.n_samples)
        loop(np.ascontiguousarray(op.block(slice(lo, hi), slice(None))), diag, distances, weights, gains, lo, hi, lo)
    return gains


def _graph_gains(op: GraphKernel, distances: Floats, weights: Floats, diag: Floats) -> Floats:
    """Return the founding gains from the edges alone: pairs without one depend on K_nn only.

    They add up to a sum over all i of w_i max(e_i - K_nn, 0) with e = d - diag, read off sorted values; edges then
    replace their own term.
    """
    excess = distances - diag
    order = np.argsort(-excess, kind="stable")
    falling = excess[order]
    weight = np.concatenate([[0.0], np.cumsum(weights[order])])
    mass = np.concatenate([[0.0], np.cumsum(weights[order] * falling)])
    above = np.searchsorted(-falling, -diag, side="left")
    gains = mass[above] - diag * weight[above]
    edges = op.A.tocoo()
    slack = excess[edges.col] - diag[edges.row]
    change = weights[edges.col] * (np.maximum(slack + 2.0 * edges.data, 0.0) - np.maximum(slack, 0.0))
    return gains + np.bincount(edges.row, change, op.n_samples)


def cluster_links(op: KernelOperator, labels: Ints, n_clusters: int) -> tuple[Floats, Floats]:
    """Return links(V_c, V_c) and links(V_c, V minus V_c) of every cluster of a graph's nodes.

    Each is summed by itself: taking one from the degree would leave rounding where the answer is 0.
    """
    if isinstance(op, GraphKernel):
        edges = op.A.tocoo()
        ends = labels[edges.row]
        inside = labels[edges.row] == labels[edges.col]
        both = (cluster_weights(ends, np.where(side, edges.data, 0.0), n_clusters) for side in (inside, ~inside))
        within, between = both
        return within, between
    sums = op.cluster_sums(labels, np.ones(op.shape[1]), n_clusters)
    within = within_sums(sums, labels, np.ones(op.shape[0]))
    sums[labels, np.arange(op.shape[0])] = 0.0
    return within, np.asarray(sums.sum(axis=1))


def negative_eigenvalue(op: KernelOperator, *, n_rows: int = 400, n_steps: int = 12) -> float | None:
    """Return an eigenvalue bound that proves the kernel indefinite, or None where no proof was found.

    Every Ritz value lies above the smallest eigenvalue, and so does every eigenvalue of a principal block: a
    clearly negative one is proof. None is no proof of the contrary. Costs a block of ``n_rows`` and, where
    products are cheap, ``n_steps`` of them.
    """
    if op.psd:
        return None
    n = op.n_samples
    rows = np.unique(np.linspace(0, n - 1, min(n, n_rows)).astype(np.intp))
    block = np.asarray(op.block(rows, rows), dtype=np.float64)
    with single_threaded_blas():  # waking threads takes longer than a block of this size
        values = np.linalg.eigvalsh(block)
    scale = max(abs(values[-1]), abs(values[0]))
    lowest = float(values[0])
    if n > len(rows) and isinstance(op, DenseKernel | GraphKernel):
        ritz = _lanczos(op, n_steps)
        scale = max(scale, abs(ritz[0]), abs(ritz[-1]))
        lowest = min(lowest, float(ritz[0]))
    resolution = 1e-4 if _is_float32(op) else 1e-9
    return lowest if lowest < -resolution * scale else None


def _is_float32(op: KernelOperator) -> bool:
    return isinstance(op, DenseKernel) and op.K.dtype == np.float32


def _lanczos(op: KernelOperator, n_steps: int) -> Array:
    """Return the Ritz values of a short Lanczos run with full reorthogonalisation and a fixed start."""
    n = op.n_samples
    basis = np.empty((n_steps, n))
    vector = np.random.default_rng(0).standard_normal(n)
    images = np.empty_like(basis)
    used = 0
    size = 0.0
    for step in range(n_steps):
        for _ in range(2):
            vector -= basis[:step].T @ (basis[:step] @ vector)
        length = float(np.linalg.norm(vector))
        if length <= 1e-10 * size:
            break
        basis[step] = vector / length
        images[step] = op.matmat(basis[step][:, None])[:, 0]
        vector = images[step].copy()
        size = float(np.linalg.norm(vector))
        used = step + 1
    projected = basis[:used] @ images[:used].T
    return np.linalg.eigvalsh(0.5 * (projected + projected.T))
