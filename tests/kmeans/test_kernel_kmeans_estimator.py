"""Kernel k-means as an estimator: weights, starts and the samples that a number of clusters is judged by."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from kernelweave import KernelKMeans
from kernelweave.estimators.graph.structure import JUDGED

X, Y = make_blobs(90, centers=9, cluster_std=1.5, random_state=3)


def test_a_weight_counts_as_repetition():
    weights = np.random.default_rng(0).integers(1, 5, size=90)
    start = np.arange(90) % 4
    options = {"kernel": "linear", "n_init": 1}
    weighted = KernelKMeans(4, init=start, **options).fit(X, sample_weight=weights)
    repeated = KernelKMeans(4, init=np.repeat(start, weights), **options).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_array_equal(np.repeat(weighted.labels_, weights), repeated.labels_)
    assert weighted.objective_ == pytest.approx(repeated.objective_)
    plain = KernelKMeans(4, init=start, **options).fit(X)
    assert plain.objective_ != pytest.approx(weighted.objective_ / weights.mean(), rel=1e-3)


def test_the_best_of_several_starts_is_kept():
    options = {"kernel": "linear", "init": "random"}
    falls = []
    for seed in range(5):
        one, many = (KernelKMeans(9, n_init=n, random_state=seed, **options).fit(X).objective_ for n in (1, 10))
        falls.append(one - many)
    assert min(falls) >= 0.0
    assert max(falls) > 1.0


def test_a_number_of_clusters_is_found_from_the_kernel():
    points, truth = make_blobs(120, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)
    model = KernelKMeans("auto", random_state=0).fit(points)
    assert model.n_clusters_ == 3
    assert model.confidence_ in ("high", "moderate")
    assert all(len(set(model.labels_[truth == group])) == 1 for group in range(3))
    assert len(points) < JUDGED
