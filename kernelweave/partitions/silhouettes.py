"""Silhouettes of labelled samples with the distances of a kernel's feature space.

Formula     d_ij = sqrt(K_ii + K_jj - 2 K_ij), s_i = (b_i - a_i) / max(a_i, b_i)
Cost        O(m n k) for m samples, one block of rows in memory
Source      P. J. Rousseeuw, J. Computational and Applied Mathematics 20, 1987
"""

import numpy as np
from sklearn.utils import gen_batches

from kernelweave.foundation.array_types import Floats, Ints
from kernelweave.partitions.kernel import Kernel

#: Entries of a block of rows: 4 MiB as float64, small enough to stay near the caches.
BLOCK_ELEMENTS = 2**19


def silhouettes(kernel: Kernel, labels: Ints, n_clusters: int, rows: Ints | None = None) -> Floats:
    """Return the silhouette of every sample, or of ``rows``; labels are 0..n_clusters-1, clusters may be empty."""
    rows = np.arange(kernel.n_samples) if rows is None else rows
    membership = np.eye(n_clusters)[labels]
    sizes = np.bincount(labels, minlength=n_clusters)
    diag = kernel.diag()
    found = np.empty(len(rows))
    for part in gen_batches(len(rows), max(1, BLOCK_ELEMENTS // max(1, kernel.n_samples))):
        distances = _distances(kernel, diag, rows[part])
        found[part] = coefficients(distances @ membership, labels[rows[part]], sizes)
    return found


def coefficients(sums: Floats, own: Ints, sizes: Ints) -> Floats:
    """Turn sums of distances to every cluster, shape (m, k), into silhouettes; the only sample of a cluster has 0."""
    at = np.arange(len(own))
    a = sums[at, own] / np.maximum(sizes[own] - 1, 1)
    means = np.divide(sums, sizes, out=np.full(sums.shape, np.inf), where=sizes > 0)
    means[at, own] = np.inf
    b = means.min(axis=1)
    widest = np.maximum(a, b)
    return np.divide(b - a, widest, out=np.zeros(len(own)), where=(widest > 0) & (sizes[own] > 1))


def _distances(kernel: Kernel, diag: Floats, rows: Ints) -> Floats:
    """Return the distances from ``rows`` to all samples, in the memory of the kernel's block."""
    block = np.array(kernel.block(rows, slice(None)), dtype=np.float64)
    block *= -2.0
    block += diag
    block += diag[rows, None]
    # a computed diagonal may differ from diag() in the last digit, and a root makes much of that
    block[np.arange(len(rows)), rows] = 0.0
    np.maximum(block, 0.0, out=block)
    np.sqrt(block, out=block)
    return block
