"""Compiled runs of k-means against the general solver, from the same draws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from kernelweave.backends.kmeans_runs import descended, spread_out
from kernelweave.kernels.features import FeatureKernel
from kernelweave.partitions.algebra import EPS, TIE_TOLERANCE
from kernelweave.solvers.kmeans.kernel_kmeans import PATIENCE, kernel_kmeans
from kernelweave.solvers.kmeans.starts import draws_of_a_center, start_labels
from tests.strategies import generators

laws = settings(max_examples=60, deadline=None)
STEPS = 100


def rows_of(rng, n, d, clusters=0):
    X = rng.standard_normal((n, d))
    return X + 3.0 * rng.standard_normal((clusters, d))[rng.integers(clusters, size=n)] if clusters else X


def drawn(X, k, seed):
    diag = np.einsum("ij,ij->i", X, X)
    return spread_out(X, diag, k, draws_of_a_center(k), TIE_TOLERANCE * diag.max(), np.random.default_rng(seed))


def ended(X, start, k, steps=STEPS, patience=PATIENCE):
    diag = np.einsum("ij,ij->i", X, X)
    scale = diag.max()
    return descended(X, diag, start, k, TIE_TOLERANCE * scale, 16 * EPS * len(X) * scale, steps, patience)


def general(X, start, k, steps=STEPS):
    return kernel_kmeans(FeatureKernel(X), start, np.ones(len(X)), n_clusters=k, max_iter=steps)


@laws
@given(generators(), st.integers(2, 150), st.integers(1, 8), st.integers(1, 7), st.integers(0, 4))
def test_centres_are_drawn_as_for_any_kernel(rng, n, d, k, clusters):
    X = rows_of(rng, n, d, clusters)
    seed = int(rng.integers(1000))
    wanted = start_labels(FeatureKernel(X), "k-means++", np.ones(n), k, np.random.default_rng(seed))
    np.testing.assert_array_equal(drawn(X, k, seed), wanted)


def test_rounding_does_not_decide_between_draws_that_are_nearest_to_each_other():
    different = []
    for seed in range(300):  # as many centres as rows: in the end two rows are left, which leave the same total
        rng = np.random.default_rng(seed)
        k = int(rng.integers(3, 7))
        X = rows_of(rng, k, 4)
        wanted = start_labels(FeatureKernel(X), "k-means++", np.ones(k), k, np.random.default_rng(seed))
        if (drawn(X, k, seed) != wanted).any():
            different.append(seed)
    assert not different


def test_equal_rows_are_drawn_like_any_others():
    X = np.ones((6, 2))
    wanted = start_labels(FeatureKernel(X), "k-means++", np.ones(6), 3, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn(X, 3, 0), wanted)
    np.testing.assert_array_equal(drawn(X, 3, 0), np.zeros(6))


def test_a_run_takes_as_many_numbers_as_the_general_start():
    X = rows_of(np.random.default_rng(0), 40, 3)
    ours = np.random.default_rng(1)
    theirs = np.random.default_rng(1)
    diag = np.einsum("ij,ij->i", X, X)
    spread_out(X, diag, 5, draws_of_a_center(5), 0.0, ours)
    start_labels(FeatureKernel(X), "k-means++", np.ones(40), 5, theirs)
    assert ours.random() == theirs.random()


@laws
@given(generators(), st.integers(5, 300), st.integers(1, 8), st.integers(1, 6), st.integers(0, 4))
def test_runs_end_where_the_general_solver_does(rng, n, d, k, clusters):
    X = rows_of(rng, n, d, clusters)
    start = drawn(X, k, int(rng.integers(1000)))
    before = start.copy()
    labels = ended(X, start, k)
    if labels is not None:
        np.testing.assert_array_equal(labels, general(X, start, k).labels)
    np.testing.assert_array_equal(start, before)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_runs_take_no_more_steps_than_allowed(steps):
    X = rows_of(np.random.default_rng(0), 400, 2)
    start = drawn(X, 6, 0)
    wanted = general(X, start, 6, steps)
    assert wanted.n_iter == steps  # more would follow
    np.testing.assert_array_equal(ended(X, start, 6, steps), wanted.labels)


def test_a_cluster_without_rows_is_left_to_the_general_solver():
    X = rows_of(np.random.default_rng(0), 30, 2)
    assert ended(X, np.zeros(30, dtype=np.intp), 2) is None
    far = np.array([[0.0], [1.0], [10.0], [11.0], [0.5], [10.5]])  # the last two leave their cluster in the first step
    assert ended(far, np.array([0, 0, 1, 1, 2, 2]), 3) is None


def test_centres_that_coincide_are_left_to_the_general_solver():
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert ended(X, np.array([0, 0, 1, 1]), 2) is None


def test_runs_are_the_same_at_any_number_of_threads():
    X = rows_of(np.random.default_rng(0), 3000, 60)
    results = []
    for count in (1, 2):
        with threadpool_limits(count):
            results.append(ended(X, drawn(X, 30, 0), 30))
    np.testing.assert_array_equal(*results)
