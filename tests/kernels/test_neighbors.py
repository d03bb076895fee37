"""The nearest samples: of those equally far away the first ones, at any number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from kernelweave.foundation.errors import ParameterError
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.spec.neighbors import CHUNK, nearest

GRID = np.stack(np.meshgrid(*[np.arange(5.0)] * 3), axis=-1).reshape(-1, 3)


def plainly(X, Y, count, metric):
    """Sort all samples by distance, then by place; distances that rounding moved apart are the same."""
    D = np.round(pairwise_distances(Y, X, metric=metric), 6)
    order = np.lexsort((np.broadcast_to(np.arange(len(X)), D.shape), D), axis=-1)[:, :count]
    return np.sort(order, axis=1)


def neighbors(X, Y, count, metric, **options):
    index = NearestNeighbors(n_neighbors=count, metric=metric, **options).fit(X)
    return nearest(index, Y)


@pytest.mark.parametrize("count", [1, 2, 5, 7, 20, 124, 125])
@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree"])
def test_of_samples_equally_far_away_the_first_are_nearest(count, algorithm):
    distances, others = neighbors(GRID, GRID, count, "euclidean", algorithm=algorithm)
    np.testing.assert_array_equal(np.sort(others, axis=1), plainly(GRID, GRID, count, "euclidean"))
    assert (np.diff(distances, axis=1) >= 0).all()
    wanted = np.linalg.norm(GRID[:, None] - GRID[others], axis=2)
    np.testing.assert_allclose(distances, wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("metric", "sparse"),
    [("chebyshev", False), *((name, kind) for name in ("manhattan", "cosine", "euclidean") for kind in (False, True))],
)
def test_every_metric_breaks_ties_in_the_same_way(metric, sparse):
    X = GRID + 1.0
    given_ = sp.csr_array(X) if sparse else X
    _, others = neighbors(given_, given_, 6, metric)
    np.testing.assert_array_equal(np.sort(others, axis=1), plainly(X, X, 6, metric))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from([1.0, 1e-6, 1e6]))
def test_few_distinct_values_give_what_a_plain_sort_gives(seed, count, unit):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(40, 2)).astype(float)
    Y = rng.integers(0, 3, size=(9, 2)).astype(float)
    _, others = neighbors(X * unit, Y * unit, count, "euclidean")
    np.testing.assert_array_equal(np.sort(others, axis=1), plainly(X, Y, count, "euclidean"))


def test_equal_samples_without_end_have_the_first_ones_as_neighbours():
    X = np.zeros((CHUNK + 50, 2))
    distances, others = neighbors(X, X, 4, "euclidean")
    np.testing.assert_array_equal(others, np.broadcast_to(np.arange(4), (len(X), 4)))
    np.testing.assert_array_equal(distances, 0.0)


def test_the_graph_of_digits_is_the_same_at_any_number_of_threads():
    X = load_digits().data
    graphs = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads):
            graphs.append(fit_kernel(X, "nearest_neighbors", {"n_neighbors": 10}).operator().A)
    for other in graphs[1:]:
        assert (abs(graphs[0] - other)).sum() == 0.0


@pytest.mark.parametrize("name", ["nearest_neighbors", "self_tuning"])
def test_few_samples_are_neighbours_of_all_others_unless_a_number_is_asked_for(name):
    X = np.arange(8.0).reshape(4, 2)
    usual, all_others = (
        fit_kernel(X, name, params).operator().block(slice(None), slice(None)) for params in ({}, {"n_neighbors": 3})
    )
    np.testing.assert_array_equal(usual, all_others)
    with pytest.raises(
        ParameterError, match=r"n_neighbors=4 in kernel_params must be .* below the number of samples, 4"
    ):
        fit_kernel(X, name, {"n_neighbors": 4})
    with pytest.raises(ParameterError, match="below the number of samples, 1"):
        fit_kernel(X[:1], name)
