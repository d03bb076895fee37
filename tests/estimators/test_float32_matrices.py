"""Matrices of float32 stay what they are: they are not copied, and their labels are those of float64."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave import (
    ConvexMixture,
    CoRegularizedSpectralClustering,
    CoTrainedSpectralClustering,
    KMedoids,
    MultiViewKernelKMeans,
    MultiViewSpectralClustering,
)
from tests.peak_memory import peak_of

N = 700  # a matrix of float64 takes 3.7 MiB


def features(seed):
    """Return samples of three groups, and the groups."""
    rng = np.random.default_rng(seed)
    y = np.arange(N) % 3
    return 4.0 * np.eye(3)[y] + 0.7 * rng.normal(size=(N, 3)), y


def kernels(dtype):
    return [rbf_kernel(features(v)[0], gamma=0.1).astype(dtype) for v in range(2)]


def distances(dtype):
    X = features(0)[0]
    return np.square(X[:, None] - X[None]).sum(axis=2).astype(dtype)


def first(matrix):
    """Return the matrix of the first 90 samples."""
    return matrix[:90, :90].copy()


OPTIONS = {"memory_limit": 3.0, "random_state": 0}
SEVERAL = {"kernel": "precomputed", "n_init": 1, "max_iter": 5, "memory_limit": 4.0, "random_state": 0}
CASES = {
    "kernel k-means": (lambda: MultiViewKernelKMeans(3, init="k-means++", **SEVERAL), kernels),
    "spectral": (lambda: MultiViewSpectralClustering(3, **SEVERAL), kernels),
    "co-trained": (lambda: CoTrainedSpectralClustering(3, **SEVERAL), kernels),
    "co-regularized": (lambda: CoRegularizedSpectralClustering(3, **SEVERAL), kernels),
    "medoids": (lambda: KMedoids(3, metric="precomputed", init="build", **OPTIONS), distances),
    "mixture": (lambda: ConvexMixture(3, divergence="precomputed", **OPTIONS), distances),
}


@pytest.mark.parametrize("case", CASES)
def test_matrices_of_float32_are_not_copied_and_have_the_labels_of_float64(case):
    make, matrices = CASES[case]
    wide = make().fit(matrices(np.float64)).labels_
    X = matrices(np.float32)
    given = (sum(matrix.nbytes for matrix in X) if isinstance(X, list) else X.nbytes) / 2**20
    make().fit([first(matrix) for matrix in X] if isinstance(X, list) else first(X))  # compiled before it is measured
    model, peak = peak_of(lambda: make().fit(X))
    assert peak < 0.15 * given + 1.15 * model.memory_limit
    assert adjusted_rand_score(model.labels_, wide) == 1.0
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(model.predict(X), model.labels_)
