"""The textbook loop of kernel k-means with array operations: for cases too large for the entry-wise oracle."""

import numpy as np


def plain_kernel_kmeans(K, labels, k, max_iter=500):
    """Return (labels, error) of unweighted kernel k-means from ``labels``; no cluster may run empty."""
    diag = np.diagonal(K)
    for _ in range(max_iter):
        Z = np.eye(k)[labels]
        sizes = Z.sum(axis=0)
        sums = K @ Z
        within = (Z * sums).sum(axis=0)
        distances = diag[:, None] - 2 * sums / sizes + within / sizes**2
        new = distances.argmin(axis=1)
        if np.array_equal(new, labels):
            break
        labels = new
    return labels, float(diag.sum() - (within / sizes).sum())
