"""Distances between samples as the model measures them, and where to draw the samples in a plane.

View        d_ij^2 = K_ii + K_jj - 2 K_ij with the model's kernel, squares of its metric's distances, ||x_i - x_j||^2
            without either, given divergences, or squared distances in the spectral embedding of a graph
Several     every view is divided by its mean squared distance, so that all count alike; distances are then averaged
views
Plane       the two main axes of the squared distances (classical scaling): kernel PCA, and PCA where the kernel is
            linear; the first two eigenvectors of a graph; the first two scores of kernel spectral clustering
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, LinearOperator
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS, euclidean_distances
from sklearn.utils.extmath import randomized_svd

from kernelweave.evaluation.principal import centred, leading, principal_components, turned
from kernelweave.evaluation.report.seen import Seen, SeenView
from kernelweave.foundation.array_types import Floats, Ints, Matrix
from kernelweave.kernels.spec.fitting import fit_kernel

# Squared distances below this share of the squared norms are rounding errors.
ROUNDING = 1e-13
# Kernels are settled on all samples up to this many, as the model does, and on the samples drawn beyond it.
SETTLED = 20_000


def squared_distances(view: SeenView, rows: Ints, places: Floats | None = None) -> Floats:
    """Return the squared distances among ``rows`` in one view; in a graph, those of the nodes' ``places``."""
    if places is not None:
        return _cleaned(euclidean_distances(places, squared=True), 0.0)
    if view.kind == "divergences":
        return _of_divergences(view.block[rows][:, rows])
    if view.metric is not None:
        return _of_metric(view, rows, *view.metric)
    if not view.kernels:
        return _of_features(view.block[rows])
    parts = [_of_kernel(view.block, rows, *kernel) for kernel in view.kernels]
    if view.shares is None or len(parts) == 1:
        return parts[0]
    return np.asarray(sum(share * scaled(part) for share, part in zip(view.shares, parts, strict=True)))


def node_places(seen: Seen, rows: Ints) -> Floats | None:
    """Return where the nodes of a graph lie, None for other data."""
    if seen.views[0].kind != "graph":
        return None
    return graph_places(seen.views[0].block, max(2, seen.n_clusters - 1))[rows]


def _of_kernel(block: Matrix, rows: Ints, kernel: Any, params: Any) -> Floats:
    if isinstance(kernel, str) and kernel == "precomputed":
        own = block[rows][:, rows]
        K = np.asarray(own.toarray() if sp.issparse(own) else own, dtype=np.float64)
    else:
        whole = block.shape[0] <= SETTLED
        op = fit_kernel(block if whole else block[rows], kernel, params, centre_features=True).operator("blockwise")
        at = rows if whole else np.arange(len(rows))
        K = np.asarray(op.block(at, at), dtype=np.float64)
    diag = np.diagonal(K).copy()
    return _cleaned(diag[:, None] + diag - 2.0 * K, float(np.abs(diag).max()))


def _of_features(block: Matrix) -> Floats:
    if sp.issparse(block):
        largest = float(block.multiply(block).sum(axis=1).max())
        return _cleaned(euclidean_distances(block, squared=True), largest)
    largest = float((block**2).sum(axis=1).max())
    return _cleaned(euclidean_distances(block - block.mean(axis=0), squared=True), largest)


def _of_metric(view: SeenView, rows: Ints, metric: Any, params: Any) -> Floats:
    if view.kind == "distances":
        D = np.asarray(view.block[rows][:, rows], dtype=np.float64)
    elif isinstance(metric, str) and metric in ("euclidean", "l2"):
        return _of_features(view.block[rows])
    else:
        boolean = isinstance(metric, str) and metric in PAIRWISE_BOOLEAN_FUNCTIONS
        block = view.block[rows] != 0 if boolean else view.block[rows]
        D = np.asarray(pairwise_distances(block, metric=metric, **(params or {})), dtype=np.float64)
    return _cleaned(np.maximum(D, 0.0) ** 2, 0.0)


def _of_divergences(D: Floats) -> Floats:
    """Return both directions averaged; infinite ones count as the largest of the others."""
    finite = np.isfinite(D)
    D = np.where(finite, D, D[finite].max(initial=0.0))
    return _cleaned((D + D.T) / 2.0, 0.0)


def _cleaned(squared: Floats, scale: float) -> Floats:
    squared[squared <= ROUNDING * scale] = 0.0
    np.fill_diagonal(squared, 0.0)
    return np.asarray(squared)


def scaled(squared: Floats) -> Floats:
    """Return squared distances divided by their mean over pairs; all zero where samples are alike."""
    pairs = max(1, len(squared) * (len(squared) - 1))
    mean = squared.sum() / pairs
    return squared / mean if mean > 0 else squared


def main_axes(squared: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the main coordinates of samples with these squared distances, and their shares of the scatter."""
    return principal_components(-0.5 * centred(squared), count)


def graph_places(A: sp.csr_array, count: int) -> Floats:
    """Return ``count`` coordinates of the nodes: leading eigenvectors of the random walk after the constant one.

    A node without edges lies at the origin.
    """
    n = A.shape[0]
    degrees = np.asarray(A.sum(axis=1)).ravel()
    roots = np.sqrt(degrees)
    inverse = np.divide(1.0, roots, out=np.zeros(n), where=roots > 0)
    D = sp.dia_array((inverse[None], [0]), shape=(n, n))
    N = sp.csr_array(D @ A @ D)
    constant = roots / max(float(np.linalg.norm(roots)), np.finfo(float).tiny)
    found = min(count, n - 1)

    def product(v: Floats) -> Floats:
        v = v.reshape(n, -1)
        return np.asarray(N @ v - constant[:, None] * (constant @ v))

    operator = LinearOperator((n, n), matvec=lambda v: product(v).ravel(), matmat=product, dtype=np.float64)
    try:
        vectors = leading(operator, found, tol=1e-5, maxiter=3000)[1]
    except ArpackError:  # eigenvalues too close to each other: a good subspace will do
        vectors = randomized_svd(N + sp.eye_array(n), found + 1, n_iter=30, random_state=0)[0][:, 1:]
    places = np.zeros((n, count))
    places[:, :found] = turned(vectors) * inverse[:, None] * roots.mean()
    return places
