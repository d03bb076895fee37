"""Silhouettes of labelled samples: the formula, from distances, and in the feature space of a kernel.

Formula     s_i = (b_i - a_i) / max(a_i, b_i), with a_i the mean distance to the other samples of i's cluster and b_i
            the smallest mean distance to the samples of another cluster
Kernel      d_ij = sqrt(K_ii + K_jj - 2 K_ij)
Cost        O(m n k) for m samples among n, one block of rows of a kernel in memory
Source      P. J. Rousseeuw, J. Computational and Applied Mathematics 20, 1987
"""

import numpy as np
from sklearn.utils import gen_batches

from kernelweave.foundation.array_types import Bools, Floats, Ints
from kernelweave.partitions.kernel import Kernel

#: Entries of a block of rows: 4 MiB as float64, small enough to stay near the caches.
BLOCK_ELEMENTS = 2**19


def silhouettes(kernel: Kernel, labels: Ints, n_clusters: int, rows: Ints | None = None) -> Floats:
    """Return the silhouette of every sample, or of ``rows``; labels are 0..n_clusters-1, clusters may be empty."""
    rows = np.arange(kernel.n_samples) if rows is None else rows
    membership = np.eye(n_clusters)[labels]
    sizes = np.bincount(labels, minlength=n_clusters)
    diag = kernel.diag()
    values = np.empty(len(rows))
    for batch in gen_batches(len(rows), max(1, BLOCK_ELEMENTS // max(1, kernel.n_samples))):
        distances = _distances(kernel, diag, rows[batch])
        values[batch] = coefficients(distances @ membership, labels[rows[batch]], sizes)
    return values


def silhouettes_from_distances(distances: Floats, labels: Ints, n_clusters: int) -> Floats:
    """Return the silhouettes of samples among each other from all distances between them, shape (m, m)."""
    sums = distances @ np.eye(n_clusters)[labels]
    return coefficients(sums, labels, np.bincount(labels, minlength=n_clusters))


def silhouettes_from_sums(sums: Floats, labels: Ints, sizes: Ints, counted: Bools) -> Floats:
    """Return the silhouettes of any samples from sums of their distances to the reference samples of every cluster.

    ``sums`` has shape (m, k), ``sizes`` are the numbers of references, and ``counted`` says who is a reference.
    """
    return coefficients(sums, labels, sizes, counted)


def nearest_other_clusters(distances: Floats, labels: Ints, n_clusters: int) -> Ints:
    """Return for every sample the cluster that is nearest on average, other than its own."""
    sums = distances @ np.eye(n_clusters)[labels]
    return np.asarray(_means_of_others(sums, labels, np.bincount(labels, minlength=n_clusters)).argmin(axis=1))


def coefficients(sums: Floats, labels: Ints, sizes: Ints, counted: Bools | None = None) -> Floats:
    """Turn sums of distances to every cluster, shape (m, k), into silhouettes; the only sample of a cluster has 0.

    ``counted`` says which of the samples are themselves among those summed over; all by default.
    """
    others = sizes[labels] - (1 if counted is None else counted)
    within = sums[np.arange(len(labels)), labels] / np.maximum(others, 1)
    between = _means_of_others(sums, labels, sizes).min(axis=1)
    larger = np.maximum(within, between)
    defined = (larger > 0) & (others > 0)
    return np.divide(between - within, larger, out=np.zeros(len(labels)), where=defined)


def _means_of_others(sums: Floats, labels: Ints, sizes: Ints) -> Floats:
    """Return the mean distances to every cluster, infinite for empty ones and for the sample's own."""
    means = np.divide(sums, sizes, out=np.full(sums.shape, np.inf), where=sizes > 0)
    means[np.arange(len(labels)), labels] = np.inf
    return means


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
