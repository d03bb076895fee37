import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis.strategies import booleans, integers
from sklearn.cluster import KMeans

from kernelweave.backends import get_backend
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.transforms import ScaledKernel
from kernelweave.kernels.weighted_sum import CompositeKernel
from kernelweave.solvers.kmeans.kernel_kmeans import descend, descend_from, kernel_kmeans
from kernelweave.solvers.kmeans.starts import INITS, extended_labels, random_partition, start_labels
from kernelweave.solvers.shared.best_run import best_of
from tests.emptied_clusters import watched_for_emptied_clusters
from tests.reference import kernel_kmeans as oracle

cases = settings(max_examples=30, deadline=None)


def gaussian_kernel(rng, n):
    X = rng.standard_normal((n, 3)) * rng.uniform(0.5, 3.0)
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.exp(-distances / 4.0)


def start(rng, n, k):
    labels = rng.integers(k, size=n)
    labels[:k] = np.arange(k)
    return labels


def test_two_pairs_on_a_line_reach_the_partition_worked_out_by_hand():
    x = np.array([[0.0], [1.0], [10.0], [11.0]])
    result = kernel_kmeans(DenseKernel(x @ x.T), np.array([0, 1, 0, 1]), np.ones(4), n_clusters=2)
    assert result.labels.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    assert result.objective == pytest.approx(4 * 0.5**2)  # each sample lies 0.5 from its mean
    assert result.scatter == pytest.approx([0.5, 0.5])


@cases
@given(seed=integers(0, 2**16), n=integers(5, 24), k=integers(1, 4), weighted=booleans())
def test_labels_and_every_objective_equal_the_plain_oracle(seed, n, k, weighted):
    rng = np.random.default_rng(seed)
    K = gaussian_kernel(rng, n)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], size=n) if weighted else np.ones(n)
    weights[:k] = 1.0
    labels = start(rng, n, k)
    result = kernel_kmeans(DenseKernel(K), labels, weights, n_clusters=k)
    expected, path = oracle.kernel_kmeans(K, labels, weights, k)
    np.testing.assert_array_equal(result.labels, expected)
    np.testing.assert_allclose(result.history, path, rtol=1e-9, atol=1e-9)


@cases
@given(seed=integers(0, 2**16), n=integers(5, 20), k=integers(2, 4))
def test_an_indefinite_kernel_gives_the_oracles_partition_and_never_rises(seed, n, k):
    rng = np.random.default_rng(seed)
    K = rng.standard_normal((n, n))
    K = K + K.T
    labels = start(rng, n, k)
    result = kernel_kmeans(DenseKernel(K), labels, np.ones(n), n_clusters=k)
    expected, path = oracle.kernel_kmeans(K, labels, np.ones(n), k)
    np.testing.assert_array_equal(result.labels, expected)
    np.testing.assert_allclose(result.history, path, rtol=1e-9, atol=1e-8)
    assert all(later < earlier + 1e-9 for earlier, later in zip(result.history, result.history[1:], strict=False))
    assert result.converged


@cases
@given(seed=integers(0, 2**16), n=integers(10, 80), k=integers(1, 6))
def test_the_objective_never_rises(seed, n, k):
    rng = np.random.default_rng(seed)
    K = gaussian_kernel(rng, n)
    path = kernel_kmeans(DenseKernel(K), start(rng, n, k), rng.uniform(0.1, 2.0, n), n_clusters=k).history
    assert all(later <= earlier + 1e-12 * n for earlier, later in itertools.pairwise(path))


@cases
@given(seed=integers(0, 2**16), n=integers(6, 40), k=integers(1, 4))
def test_a_weight_is_the_same_as_repetition(seed, n, k):
    rng = np.random.default_rng(seed)
    K, labels, counts = gaussian_kernel(rng, n), start(rng, n, k), rng.integers(1, 4, n)
    rows = np.repeat(np.arange(n), counts)
    with watched_for_emptied_clusters() as emptied:
        weighted = kernel_kmeans(DenseKernel(K), labels, counts.astype(float), n_clusters=k)
        repeated = kernel_kmeans(DenseKernel(K[np.ix_(rows, rows)]), labels[rows], np.ones(len(rows)), n_clusters=k)
    assume(not emptied)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(weighted.labels[rows], repeated.labels)


@cases
@given(seed=integers(0, 2**16), n=integers(6, 40), k=integers(1, 4))
def test_reordering_the_samples_reorders_the_labels(seed, n, k):
    rng = np.random.default_rng(seed)
    K, labels, order = gaussian_kernel(rng, n), start(rng, n, k), rng.permutation(n)
    plain = kernel_kmeans(DenseKernel(K), labels, np.ones(n), n_clusters=k)
    shuffled = kernel_kmeans(DenseKernel(K[np.ix_(order, order)].copy()), labels[order], np.ones(n), n_clusters=k)
    np.testing.assert_array_equal(plain.labels[order], shuffled.labels)


@cases
@given(seed=integers(0, 2**16), n=integers(6, 40), k=integers(1, 4))
def test_scaling_the_kernel_scales_the_objective(seed, n, k):
    rng = np.random.default_rng(seed)
    op, labels = DenseKernel(gaussian_kernel(rng, n)), start(rng, n, k)
    plain = kernel_kmeans(op, labels, np.ones(n), n_clusters=k)
    scaled = kernel_kmeans(ScaledKernel(op, 7.0), labels, np.ones(n), n_clusters=k)
    np.testing.assert_array_equal(plain.labels, scaled.labels)
    np.testing.assert_allclose(np.array(plain.history) * 7.0, scaled.history, rtol=1e-9, atol=1e-9)


@cases
@given(seed=integers(0, 2**16), n=integers(6, 40), k=integers(1, 4))
def test_one_view_is_the_single_view_method_and_giving_it_twice_changes_nothing(seed, n, k):
    rng = np.random.default_rng(seed)
    op, labels = DenseKernel(gaussian_kernel(rng, n)), start(rng, n, k)
    plain = kernel_kmeans(op, labels, np.ones(n), n_clusters=k)
    for composite in (CompositeKernel([op], [1.0]), CompositeKernel([op, op], [0.5, 0.5])):
        result = kernel_kmeans(composite, labels, np.ones(n), n_clusters=k)
        np.testing.assert_array_equal(plain.labels, result.labels)


@pytest.mark.parametrize("seed", range(5))
def test_a_linear_kernel_is_lloyds_k_means_from_the_same_start(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 4)) + 4.0 * rng.integers(0, 3, (300, 1))
    centres = X[rng.choice(300, 5, replace=False)]
    labels = ((X[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    result = kernel_kmeans(FeatureKernel(X), labels, np.ones(300), n_clusters=5)
    lloyd = KMeans(5, init=centres, n_init=1, tol=0, algorithm="lloyd").fit(X)
    np.testing.assert_array_equal(result.labels, lloyd.labels_)
    assert result.objective == pytest.approx(lloyd.inertia_)


@pytest.mark.parametrize("seed", range(3))
def test_every_storage_of_a_kernel_gives_the_same_labels(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((700, 4)) + 3.0 * rng.integers(0, 3, (700, 1))
    fitted = fit_kernel(X, "rbf", {"sigma": 2.0})
    labels = start(rng, 700, 6)
    dense = fitted.operator("dense")
    runs = [
        kernel_kmeans(op, labels, np.ones(700), n_clusters=6)
        for op in (
            dense,
            fitted.operator("blockwise"),
            DenseKernel(dense.K, backend=get_backend("numpy")),
            GraphKernel(dense.K),
        )
    ]
    for run in runs[1:]:
        np.testing.assert_array_equal(runs[0].labels, run.labels)
        np.testing.assert_allclose(runs[0].history, run.history, rtol=1e-10)


def test_the_labels_found_are_a_fixed_point():
    rng = np.random.default_rng(3)
    op = DenseKernel(gaussian_kernel(rng, 200))
    first = kernel_kmeans(op, start(rng, 200, 5), np.ones(200), n_clusters=5)
    again = kernel_kmeans(op, first.labels, np.ones(200), n_clusters=5)
    assert again.n_iter == 0
    np.testing.assert_array_equal(first.labels, again.labels)


def test_sums_kept_through_many_moves_stay_within_their_error_bound():
    rng = np.random.default_rng(0)
    op = DenseKernel(gaussian_kernel(rng, 300))
    partition = op.partition(start(rng, 300, 4), np.ones(300), 4)
    for _ in range(14):
        labels = partition.labels.copy()
        labels[rng.choice(300, 20, replace=False)] = rng.integers(4, size=20)
        partition.go_to(labels)
    assert not partition.exact
    kept, bound = partition.sums.copy(), partition._rounding
    partition.refresh()
    assert np.abs(kept - partition.sums).max() <= bound
    assert partition.exact


def test_sums_are_computed_anew_once_as_many_samples_moved_as_there_are():
    partition = DenseKernel(np.eye(10)).partition(np.zeros(10, dtype=int), np.ones(10), 2)
    for count in (5, 10):
        partition.go_to((np.arange(10) < count).astype(int))
        assert not partition.exact
    partition.go_to((np.arange(10) < 9).astype(int))
    assert partition.exact


def test_an_uncertain_fixed_point_is_checked_against_exact_sums():
    partition = DenseKernel(np.eye(6) + 1.0).partition(np.array([0, 0, 0, 1, 1, 1]), np.ones(6), 2)
    assert partition.certain(0.0)  # straight from the kernel: nothing to doubt
    partition.go_to(np.array([0, 0, 1, 1, 1, 1]))
    assert not partition.certain(0.0)
    assert partition.certain(1.0)


def test_rounding_left_behind_by_samples_of_great_weight_does_not_end_a_run():
    # Samples 0 and 1 leave cluster 0 for the clusters at -10 and 10. What is left of their sums hides that sample 5 is
    # nearer to sample 4 than to the centre at -10, by a hair.
    wrong = []
    for seed in range(20):
        heavy = np.array([-1.0, 1.0, -1.0, 1.0]) * np.random.default_rng(seed).uniform(9.0, 11.0, 4)
        between = (heavy[0] + heavy[2]) / 4 + 1e-6
        x = 20.0 + np.array([*heavy, 0.0, between])[:, None]
        weights = np.array([1e10, 1.5e10, 1e10, 1e10, 1.0, 1.0])
        result = kernel_kmeans(DenseKernel(x @ x.T), np.array([0, 0, 1, 2, 0, 1]), weights, n_clusters=3)
        wrong += [seed] * (result.labels.tolist() != [1, 2, 1, 2, 0, 0])
    assert wrong == []


def test_a_cluster_that_runs_empty_takes_the_farthest_sample():
    x = np.array([[0.0], [0.1], [0.2], [9.0]])
    result = kernel_kmeans(DenseKernel(x @ x.T), np.zeros(4, dtype=int), np.ones(4), n_clusters=2)
    assert result.labels[3] != result.labels[0]
    assert (result.totals > 0).all()


def test_with_fewer_distinct_samples_than_clusters_the_rest_stay_empty():
    x = np.array([[1.0], [1.0], [5.0], [5.0]])
    result = kernel_kmeans(DenseKernel(x @ x.T), np.array([0, 1, 2, 0]), np.ones(4), n_clusters=3)
    assert np.count_nonzero(result.totals) == 2
    assert result.objective == pytest.approx(0.0, abs=1e-12)
    assert result.converged


def test_a_partition_taken_down_ends_as_a_run_from_its_labels_and_its_path_is_the_history():
    rng = np.random.default_rng(2)
    op, labels = DenseKernel(gaussian_kernel(rng, 150)), start(rng, 150, 5)
    run = kernel_kmeans(op, labels, np.ones(150), n_clusters=5)
    partition = op.partition(labels, np.ones(150), 5)
    again = descend_from(partition)
    np.testing.assert_array_equal(again.labels, run.labels)
    assert again.history == run.history
    assert (again.converged, again.rose) == (run.converged, run.rose) == (True, False)
    np.testing.assert_array_equal(partition.host_labels(), run.labels)
    reported = []
    path = descend(op.partition(labels, np.ones(150), 5), max_iter=300, on_step=reported.append)
    assert tuple(path.history) == run.history
    assert tuple(reported) == run.history[1:]
    assert path.converged
    assert not path.rose


def test_a_run_on_an_indefinite_kernel_says_that_a_full_step_would_have_raised_the_objective():
    rose = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        K = rng.standard_normal((30, 30))
        rose.append(kernel_kmeans(DenseKernel(K + K.T), start(rng, 30, 4), np.ones(30), n_clusters=4).rose)
    assert any(rose)


def test_max_iter_ends_a_run_and_says_so():
    rng = np.random.default_rng(1)
    op = DenseKernel(gaussian_kernel(rng, 200))
    result = kernel_kmeans(op, start(rng, 200, 6), np.ones(200), n_clusters=6, max_iter=1)
    assert not result.converged
    assert result.n_iter == 1


def test_a_tolerance_ends_a_run_early():
    rng = np.random.default_rng(1)
    op, labels = DenseKernel(gaussian_kernel(rng, 300)), start(rng, 300, 6)
    strict = kernel_kmeans(op, labels, np.ones(300), n_clusters=6)
    loose = kernel_kmeans(op, labels, np.ones(300), n_clusters=6, tol=1e-2)
    assert loose.converged
    assert loose.n_iter < strict.n_iter
    assert loose.history == strict.history[: len(loose.history)]


def test_storage_does_not_decide_between_candidates_that_are_nearest_to_each_other():
    different = []
    for seed in range(300):  # as many centres as samples: in the end two are left, which serve equally well
        rng = np.random.default_rng(seed)
        k = int(rng.integers(3, 7))
        X = rng.standard_normal((k, 4))
        labels = [
            start_labels(op, "k-means++", np.ones(k), k, np.random.default_rng(seed))
            for op in (FeatureKernel(X), DenseKernel(X @ X.T))
        ]
        if (labels[0] != labels[1]).any():
            different.append(seed)
    assert not different


@pytest.mark.parametrize("init", INITS)
def test_every_start_fills_its_labels_and_follows_its_seed(init):
    rng = np.random.default_rng(0)
    op, weights = DenseKernel(gaussian_kernel(rng, 60)), rng.uniform(0, 2, 60)
    one, two = (start_labels(op, init, weights, 5, np.random.default_rng(9)) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert set(one.tolist()) == set(range(5))


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_samples_of_weight_zero_are_never_drawn_as_centres(init):
    x = np.array([[0.0], [1.0], [100.0], [200.0]])
    weights = np.array([1.0, 1.0, 0.0, 0.0])
    for seed in range(20):
        labels = start_labels(DenseKernel(x @ x.T), init, weights, 2, np.random.default_rng(seed))
        assert labels[0] != labels[1]


@cases
@given(seed=integers(0, 10**6), k=integers(2, 6))
def test_k_means_plusplus_is_the_plain_loop_with_weights_and_the_best_of_several_draws(seed, k):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 2))
    weights = rng.exponential(size=20) ** 2
    result = start_labels(FeatureKernel(X), "k-means++", weights, k, np.random.default_rng(seed))
    wanted = oracle.spread_out(X, weights, k, np.random.default_rng(seed))
    np.testing.assert_array_equal(result, wanted)


@cases
@given(seed=integers(0, 10**6), k=integers(2, 6))
def test_random_samples_are_drawn_by_their_weights(seed, k):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 2))
    weights = rng.exponential(size=20) ** 2
    result = start_labels(FeatureKernel(X), "random", weights, k, np.random.default_rng(seed))
    chosen = np.random.default_rng(seed).choice(20, k, replace=False, p=weights / weights.sum())
    np.testing.assert_array_equal(result, oracle.nearest_chosen(X, chosen))


def test_a_random_partition_of_as_many_samples_as_clusters_fills_all():
    for seed in range(20):
        assert sorted(random_partition(5, 5, np.random.default_rng(seed)).tolist()) == [0, 1, 2, 3, 4]


def test_labels_of_some_samples_are_extended_by_weighted_centres():
    x = np.array([[0.0], [4.0], [10.0], [6.2]])
    weights = np.array([1.0, 9.0, 1.0, 1.0])  # centres at 3.6 and 10; without weights the first would be at 2
    labels = extended_labels(DenseKernel(x @ x.T), np.array([0, 0, 1]), np.arange(3), weights, 2)
    assert labels.tolist() == [0, 0, 1, 0]


def test_k_means_plusplus_spreads_centres_over_far_groups():
    rng = np.random.default_rng(0)
    X = np.repeat(np.eye(4) * 50.0, 25, axis=0) + rng.standard_normal((100, 4))
    for seed in range(20):
        labels = start_labels(FeatureKernel(X), "k-means++", np.ones(100), 4, np.random.default_rng(seed))
        assert all(len(set(labels[25 * g : 25 * g + 25])) == 1 for g in range(4))


def test_the_earliest_of_equal_runs_is_kept():
    op = DenseKernel(np.eye(4))
    runs = [kernel_kmeans(op, np.array(start), np.ones(4), n_clusters=2) for start in ([0, 0, 1, 1], [1, 1, 0, 0])]
    assert best_of(runs) is runs[0]


def test_the_run_of_least_objective_is_kept_wherever_it_comes():
    for objectives in itertools.permutations([3.0, 4.0, 5.0]):
        assert best_of(objectives, value=float) == 3.0


def test_a_graph_without_self_loops_is_clustered_by_the_size_of_its_edges():
    rng = np.random.default_rng(0)
    A = np.triu(rng.random((60, 60)) < 0.1, 1).astype(float)
    A = A + A.T  # a diagonal of zeros says nothing of the scale
    result = kernel_kmeans(GraphKernel(A), start(rng, 60, 3), np.ones(60), n_clusters=3)
    assert result.converged
    assert result.objective < result.history[0]
