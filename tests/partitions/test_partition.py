"""Partitions: what they know of their clusters, in both forms, computed anew and kept through moves."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.backends import get_backend
from kernelweave.backends.compiled.steps import CLOSED
from kernelweave.backends.host import HostBackend
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.transforms import ScaledKernel
from kernelweave.kernels.weighted_sum import CompositeKernel, composite
from kernelweave.partitions.algebra import TIE_TOLERANCE
from kernelweave.partitions.means import MeansPartition
from kernelweave.partitions.sums import SumsPartition
from tests.reference import global_search as search_oracle
from tests.reference import kernel_kmeans as oracle
from tests.strategies import generators, indefinite_kernels, moves, partitions, sample_weights, samples

cases = settings(max_examples=25, deadline=None)
FORMS = {
    "means": FeatureKernel,
    "means, plain loops": lambda X: FeatureKernel(X, backend=get_backend("numpy")),
    "means, sparse": lambda X: FeatureKernel(sp.csr_array(X)),
    "sums": lambda X: DenseKernel(X @ X.T),
    "sums, plain loops": lambda X: DenseKernel(X @ X.T, backend=get_backend("numpy")),
    "sums, sparse": lambda X: GraphKernel(sp.csr_array(X @ X.T)),
}
forms = pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())


@st.composite
def clusterings(draw):
    """Draw samples, a partition one of whose clusters may be left empty, and weights."""
    X = draw(samples(max_n=16))
    labels, k = draw(partitions(len(X)))
    return X, labels, draw(sample_weights(len(X))), k + draw(st.integers(0, 1))


def plain(X, labels, weights, k):
    """Return totals, means and squared distances to them, infinite where a cluster has no weight."""
    totals = np.array([weights[labels == c].sum() for c in range(k)])
    means, table = np.zeros((k, X.shape[1])), np.full((len(X), k), np.inf)
    for c in np.flatnonzero(totals > 0):
        means[c] = weights[labels == c] @ X[labels == c] / totals[c]
        table[:, c] = ((X - means[c]) ** 2).sum(axis=1)
    return totals, means, table


def plain_nearest(values, labels, tolerance):
    """Return the labels by the rule on ties, their values, and the least lead of those that stay."""
    out, chosen, lead = labels.copy(), np.empty(len(labels)), np.inf
    for i, row in enumerate(values):
        others = np.delete(np.arange(len(row)), labels[i])
        low = row[others].min(initial=np.inf)
        if low < row[labels[i]] - tolerance:
            out[i] = next(c for c in others if row[c] <= low + tolerance)
        else:
            lead = min(lead, low - row[labels[i]] + tolerance)
        chosen[i] = row[out[i]]
    return out, chosen, lead


def test_features_get_the_form_that_stores_nothing_of_samples_times_clusters_and_other_kernels_the_sums():
    X, labels = np.random.default_rng(0).standard_normal((12, 2)), np.arange(12) % 3
    for op in (FeatureKernel(X), FeatureKernel(sp.csr_array(X))):
        partition = op.partition(labels, np.ones(12), 3)
        assert isinstance(partition, MeansPartition)
        assert partition.sums.shape == (3, 2)
    fitted = fit_kernel(X, "rbf", {"sigma": 1.0})
    others = (DenseKernel(X @ X.T), fitted.operator("blockwise"), ScaledKernel(FeatureKernel(X), 2.0))
    for op in others:
        partition = op.partition(labels, np.ones(12), 3)
        assert isinstance(partition, SumsPartition)
        assert partition.sums.shape == (3, 12)


@forms
@cases
@given(case=clusterings())
def test_weights_centres_and_variances_are_those_of_their_definition(make, case):
    X, labels, weights, k = case
    partition = make(X).partition(labels, weights, k)
    totals, means, table = plain(X, labels, weights, k)
    filled, size = totals > 0, max((X**2).sum(axis=1).max(), 1e-300)
    np.testing.assert_allclose(partition.totals, totals, rtol=1e-12)
    np.testing.assert_allclose(partition.norms[filled], (means[filled] ** 2).sum(axis=1), rtol=0, atol=1e-12 * size)
    assert np.isinf(partition.norms[~filled]).all()
    distances = np.where(weights > 0, table[np.arange(len(X)), labels], 0.0)
    variances = np.bincount(labels, weights * distances, k)
    noise = 1e-12 * size * weights.sum()
    np.testing.assert_allclose(partition.scatter(), variances, rtol=0, atol=noise)
    assert partition.objective == pytest.approx(variances.sum(), rel=0, abs=noise)
    assert (partition.scatter()[~filled] == 0.0).all()
    if isinstance(partition, MeansPartition):
        np.testing.assert_allclose(partition.means, means, rtol=0, atol=1e-12 * np.sqrt(size))


@forms
@cases
@given(case=clusterings(), rng=generators(), scaled=st.booleans())
def test_the_nearest_cluster_is_that_of_least_scaled_distance_with_ties_by_rule(make, case, rng, scaled):
    X, labels, weights, k = case
    partition = make(X).partition(labels, weights, k)
    coefs = rng.choice([0.25, 0.5, 1.0], size=k) if scaled else None
    nearest = partition.nearest(coefs)
    table = plain(X, labels, weights, k)[2]
    values = table if coefs is None else coefs * table
    wanted, distances, least = plain_nearest(values, labels, partition.tolerance)
    np.testing.assert_array_equal(nearest.labels, wanted)
    np.testing.assert_allclose(nearest.distances, distances, rtol=0, atol=1e-12 * max(partition.scale, 1e-300))
    assert nearest.lead == pytest.approx(least, rel=0, abs=1e-11 * max(partition.scale, 1e-300))
    assert (partition.totals[nearest.labels] > 0).all()


@forms
@cases
@given(case=clusterings())
def test_distances_to_centres_are_those_to_the_weighted_mean_of_the_cluster_each_is_in(make, case):
    X, labels, weights, k = case
    partition = make(X).partition(labels, weights, k)
    table = plain(X, labels, weights, k)[2]
    wanted = table[np.arange(len(X)), labels]  # infinite in a cluster without weight
    atol = 1e-12 * max(partition.scale, 1e-300)
    np.testing.assert_allclose(partition.distances_to_centers(), wanted, rtol=0, atol=atol)


@cases
@given(case=clusterings())
def test_coefficients_of_one_change_nothing(case):
    X, labels, weights, k = case
    for make in FORMS.values():
        partition = make(X).partition(labels, weights, k)
        unscaled, scaled = partition.nearest(), partition.nearest(np.ones(k))
        atol = 1e-13 * max(partition.scale, 1e-300)
        np.testing.assert_array_equal(unscaled.labels, scaled.labels)
        np.testing.assert_allclose(unscaled.distances, scaled.distances, rtol=0, atol=atol)
        np.testing.assert_allclose(unscaled.lead, scaled.lead, rtol=0, atol=atol)


@forms
@cases
@given(data=st.data())
def test_moving_samples_leads_to_what_the_new_partition_knows(make, data):
    X, labels, weights, k = data.draw(clusterings())
    op = make(X)
    partition = op.partition(labels, weights, k)
    for _ in range(3):
        if data.draw(st.booleans()):
            partition.nearest(data.draw(st.sampled_from([None, np.ones(k)])))
        moved, new = data.draw(moves(partition.labels, k))
        after = partition.labels.copy()
        after[moved] = new
        changes = partition.moves_to(after)
        assert changes.count == len(changes.samples) == np.count_nonzero(after != partition.labels)
        partition.move(changes)
        np.testing.assert_array_equal(partition.host_labels(), after)
    anew = op.partition(partition.labels, weights, k)
    noise = 1e-12 * max(partition.scale, 1e-300)
    np.testing.assert_array_equal(partition.members, anew.members)
    np.testing.assert_array_equal(partition.totals > 0, anew.totals > 0)
    np.testing.assert_allclose(partition.totals, anew.totals, rtol=1e-13)
    np.testing.assert_allclose(partition.within, anew.within, rtol=0, atol=noise * weights.sum() ** 2)
    np.testing.assert_allclose(partition.scatter(), anew.scatter(), rtol=0, atol=noise * weights.sum())
    np.testing.assert_array_equal(partition.nearest().labels, anew.nearest().labels)
    assert anew.exact


@forms
def test_distances_kept_through_many_moves_stay_within_the_error_bound_that_certainty_relies_on(make):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((300, 3)), rng.uniform(0.5, 2.0, 300)
    partition = make(X).partition(rng.integers(4, size=300), weights, 4)
    for _ in range(14):
        labels = partition.labels.copy()
        labels[rng.choice(300, 20, replace=False)] = rng.integers(4, size=20)
        partition.go_to(labels)
    assert not partition.exact
    bound = 3.0 * partition._rounding / partition.totals.min()
    kept = partition.nearest().distances
    partition.refresh()
    assert partition.exact
    assert np.abs(kept - partition.nearest().distances).max() <= bound


@forms
def test_everything_is_computed_anew_once_as_many_samples_moved_as_there_are(make):
    X = np.random.default_rng(0).standard_normal((10, 2))
    partition = make(X).partition(np.zeros(10, dtype=int), np.ones(10), 2)
    assert partition.exact
    for turn in range(10):
        partition.go_to(np.array([turn % 2 == 0, *[False] * 9], dtype=int))
        assert not partition.exact
    partition.go_to(partition.labels.copy())  # nobody moves: nothing is computed
    assert not partition.exact
    partition.go_to(np.array([1, *[0] * 9]))
    assert partition.exact


def test_more_than_half_of_the_samples_are_moved_by_a_pass():
    X = np.random.default_rng(0).standard_normal((10, 2))
    for make, exact in ((FORMS["sums"], [False, True]), (FORMS["sums, sparse"], [False, True])):
        partition = make(X).partition(np.zeros(10, dtype=int), np.ones(10), 2)
        for count, anew in zip((5, 6), exact, strict=True):
            partition.go_to(np.zeros(10, dtype=int))
            partition.refresh()
            partition.go_to((np.arange(10) < count).astype(int))
            assert partition.exact == anew


def test_moves_of_a_stored_kernel_find_the_next_nearest_clusters_too_where_these_were_asked_for(monkeypatch):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((40, 3)), rng.uniform(0.5, 2.0, 40)
    op = FORMS["sums"](X)
    asked = []
    usual = HostBackend.nearest

    def nearest(*args):
        asked.append(args)
        return usual(*args)

    monkeypatch.setattr(HostBackend, "nearest", nearest)
    labels = np.arange(40) % 4
    partition = op.partition(labels, weights, 4)

    def moved(sample):
        """Move a sample; return how often nearest clusters are then looked for, and whether they are the right ones."""
        partition.go_to(np.where(np.arange(40) == sample, 0, partition.labels))
        anew = op.partition(partition.labels, weights, 4).nearest()
        asked.clear()
        found = partition.nearest()
        np.testing.assert_allclose(found.distances, anew.distances, rtol=1e-10)
        return len(asked), np.array_equal(found.labels, anew.labels)

    assert moved(1) == (1, True)  # nobody had asked
    assert moved(2) == (0, True)
    assert moved(3) == (0, True)
    partition.nearest(np.ones(4))
    assert len(asked) == 1  # those with coefficients are others
    assert moved(5) == (1, True)
    assert moved(6) == (0, True)
    partition.refresh()
    partition.nearest()
    assert len(asked) == 1
    partition.go_to(partition.labels.copy())  # nobody moves
    assert moved(7) == (0, True)


def test_a_pass_over_the_data_ends_the_steps_on_the_sums_before_it():
    partition = FORMS["sums"](np.random.default_rng(0).standard_normal((40, 3))).partition(
        np.arange(40) % 4, np.ones(40), 4
    )
    partition.nearest()
    partition.go_to(np.where(np.arange(40) == 1, 0, partition.labels))
    before = partition._steps
    assert before._board[CLOSED] == 0
    partition.refresh()
    assert before._board[CLOSED] == 1  # helpers go home
    partition.nearest()
    partition.go_to(np.where(np.arange(40) == 2, 0, partition.labels))
    assert partition._steps is not before


@forms
def test_only_a_lead_above_the_rounding_of_the_moves_is_certain(make):
    X = np.random.default_rng(0).standard_normal((6, 2))
    partition = make(X).partition(np.array([0, 0, 0, 1, 1, 1]), np.ones(6), 2)
    assert partition.certain(0.0)  # straight from the data: nothing to doubt
    partition.go_to(np.array([0, 0, 1, 1, 1, 1]))
    assert not partition.certain(0.0)
    assert partition.certain(1.0)


@forms
def test_labels_of_the_caller_are_neither_kept_nor_changed(make):
    X = np.random.default_rng(0).standard_normal((8, 2))
    labels, after = np.arange(8) % 2, (np.arange(8) // 2) % 2
    first, later = labels.copy(), after.copy()
    partition = make(X).partition(labels, np.ones(8), 2)
    labels[:] = 1
    np.testing.assert_array_equal(partition.labels, first)
    partition.go_to(after)
    partition.refresh()
    partition.go_to(first)
    np.testing.assert_array_equal(after, later)


@forms
def test_clusters_with_equal_centres_are_merged_under_the_lowest_number(make):
    x = np.array([[1.0], [1.0], [0.0], [2.0], [5.0], [5.0], [9.0]])
    labels = np.array([3, 1, 0, 0, 2, 4, 5])  # 3, 1 and the mean of 0 coincide, and so do 2 and 4
    partition = make(x).partition(labels, np.ones(7), 7)  # the last one is empty
    assert partition.merged().tolist() == [0, 0, 0, 0, 2, 2, 5]


@forms
def test_centres_that_all_differ_stay_apart(make):
    X = np.random.default_rng(0).standard_normal((9, 2))
    labels = np.arange(9) % 3
    partition = make(X).partition(labels, np.ones(9), 4)
    np.testing.assert_array_equal(partition.merged(), labels)


def test_the_tolerance_of_a_tie_follows_the_size_of_the_kernel():
    X = np.random.default_rng(0).standard_normal((8, 2))
    for factor in (1e-3, 1.0, 1e3):
        partition = FeatureKernel(factor * X).partition(np.arange(8) % 2, np.ones(8), 2)
        assert partition.tolerance == pytest.approx(TIE_TOLERANCE * factor**2 * (X**2).sum(axis=1).max())


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_features_of_any_type_of_number_can_be_clustered(dtype):
    X = (4.0 * np.random.default_rng(0).standard_normal((20, 2))).astype(dtype)
    labels = np.arange(20) % 3
    partition = FeatureKernel(X).partition(labels, np.ones(20), 3)
    wide = FeatureKernel(X.astype(np.float64)).partition(labels, np.ones(20), 3)
    np.testing.assert_array_equal(partition.nearest().labels, wide.nearest().labels)
    np.testing.assert_allclose(partition.scatter(), wide.scatter(), rtol=1e-5)


# --- empty clusters --------------------------------------------------------------------------------------------------


@forms
@cases
@given(case=clusterings(), n_empty=st.integers(0, 3))
def test_empty_clusters_take_the_farthest_samples_that_can_be_spared(make, case, n_empty):
    X, labels, weights, k = case
    partition = make(X).partition(labels, weights, k + n_empty)
    nearest = partition.nearest()
    before = nearest.labels.copy()
    tolerance = max(partition.tolerance, 1e-300)
    wanted = oracle.fill_empty(nearest.labels, nearest.distances, weights, k + n_empty, tolerance)
    reseeded = partition.reseeded(nearest)
    np.testing.assert_array_equal(reseeded, wanted)
    np.testing.assert_array_equal(nearest.labels, before)  # the assignment itself is left as it was
    objective = partition.objective
    partition.go_to(reseeded)
    assert partition.objective <= objective + partition.noise


@forms
def test_of_samples_equally_far_the_first_opens_the_empty_cluster(make):
    x = np.array([[-1.0], [1.0], [-1.0], [1.0], [0.0]])
    partition = make(x).partition(np.zeros(5, dtype=int), np.ones(5), 3)
    assert partition.reseeded(partition.nearest()).tolist() == [1, 2, 0, 0, 0]


@forms
def test_the_last_sample_of_a_cluster_is_not_taken_from_it(make):
    x = np.array([[0.0], [4.0], [9.0]])
    partition = make(x).partition(np.array([0, 0, 1]), np.ones(3), 3)
    assert partition.reseeded(partition.nearest()).tolist() == [2, 0, 1]
    assert make(x[:2]).partition(np.array([0, 1]), np.ones(2), 3).merged().tolist() == [0, 1]


@forms
def test_a_lone_sample_far_from_the_centre_it_was_given_to_stays_there(make):
    x = np.array([[0.0], [2.0], [10.0], [100.0]])
    partition = make(x).partition(np.array([0, 0, 1, 1]), np.ones(4), 3)  # centres at 1 and 55
    nearest = partition.nearest()
    assert nearest.labels.tolist() == [0, 0, 0, 1]
    assert partition.reseeded(nearest).tolist() == [0, 0, 2, 1]  # 100 is farther from its centre, but alone


@forms
def test_samples_that_open_clusters_are_counted_off_those_they_leave(make):
    x = np.array([[0.0], [2.0], [10.0], [100.0], [101.0]])
    partition = make(x).partition(np.array([0, 0, 1, 1, 1]), np.ones(5), 4)  # centres at 1 and 70.3
    nearest = partition.nearest()
    assert nearest.labels.tolist() == [0, 0, 0, 1, 1]
    assert partition.reseeded(nearest).tolist() == [0, 0, 3, 1, 2]


@forms
def test_equal_samples_open_no_cluster_and_neither_do_those_without_weight(make):
    x = np.array([[3.0], [3.0], [3.0], [99.0]])
    partition = make(x).partition(np.zeros(4, dtype=int), np.array([1.0, 1.0, 1.0, 0.0]), 2)
    assert partition.reseeded(partition.nearest()).tolist() == [0, 0, 0, 0]


# --- steps cut back --------------------------------------------------------------------------------------------------


def partition_forms(K, labels, weights, k):
    """Return the partition of a kernel matrix in every form that needs no features."""
    kernels = [DenseKernel(K), DenseKernel(K, backend=get_backend("numpy")), GraphKernel(sp.csr_array(K))]
    views = CompositeKernel([DenseKernel(0.5 * K), DenseKernel(0.5 * K)], [1.0, 1.0])
    kernels += [ScaledKernel(DenseKernel(0.5 * K), 2.0), views]
    return [*(op.partition(labels, weights, k) for op in kernels), views.view_partition(labels, weights, k)]


def plain_cut_back(K, before, nearest, new, weights, k, noise):
    """Return the labels that remain of a step, tried from its most useful half on, and whether the objective fell.

    ``nearest`` are the nearest clusters, ``new`` the same after empty ones took a sample.
    """
    table = np.array([[oracle.distance(K, before, weights, i, c) for c in range(k)] for i in range(len(K))])
    moved = np.flatnonzero(new != before)
    gains = np.round((table[moved, nearest[moved]] - table[moved, before[moved]]) / np.abs(K).max(), 9)
    order = moved[np.argsort(gains, kind="stable")]
    size = len(order) // 2
    while size:
        labels = before.copy()
        labels[order[:size]] = new[order[:size]]
        if oracle.objective(K, labels, weights) < oracle.objective(K, before, weights) - noise:
            return labels, True
        size //= 2
    return before, False


@settings(max_examples=45, deadline=None)
@given(K=indefinite_kernels(min_n=4), data=st.data())
def test_a_step_on_an_indefinite_kernel_is_cut_back_until_the_objective_falls(K, data):
    labels, k = data.draw(partitions(len(K)))
    weights = np.ones(len(K)) if data.draw(st.booleans()) else data.draw(generators()).uniform(0.5, 2.0, len(K))
    for partition in partition_forms(K, labels, weights, k):
        objective, before = partition.objective, partition.labels
        nearest = partition.nearest()
        changes = partition.moves_to(partition.reseeded(nearest))
        partition.move(changes)
        fell = partition.cut_back(before, changes, nearest.distances, objective)
        wanted, falls = plain_cut_back(K, labels, nearest.labels, changes.labels, weights, k, partition.noise)
        np.testing.assert_array_equal(partition.labels, wanted)
        assert fell == falls
        expected = oracle.objective(K, partition.labels, weights)
        assert partition.objective == pytest.approx(expected, rel=1e-9, abs=1e-9 * np.abs(K).max())
        assert (partition.objective < objective - partition.noise) == fell
        np.testing.assert_array_equal(before, labels)


@pytest.mark.parametrize("new", [[0, 0, 0, 1], [0, 1, 0, 1], [1, 1, 0, 1]])
def test_a_step_of_which_nothing_helps_is_undone(new):
    x = np.array([[0.0], [0.1], [10.0], [10.1]])
    for partition in partition_forms(x @ x.T, np.array([0, 0, 1, 1]), np.ones(4), 2):
        before, objective = partition.labels, partition.objective
        changes = partition.moves_to(np.array(new))
        distances = ((x - np.array([[0.05], [10.05]])[new]) ** 2).sum(axis=1)
        partition.move(changes)
        assert partition.objective > objective
        assert not partition.cut_back(before, changes, distances, objective)
        assert partition.host_labels().tolist() == [0, 0, 1, 1]
        assert partition.objective == pytest.approx(objective)


# --- new clusters ----------------------------------------------------------------------------------------------------


def candidate_gains(X, labels, weights, k):
    """Return what every sample of positive weight is sure to gain as a new centre, pair by pair."""
    table = plain(X, labels, weights, k)[2]
    distances = np.where(weights > 0, table[np.arange(len(X)), labels], 0.0)
    pairs = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.where(weights > 0, np.maximum(distances - pairs, 0.0) @ weights, -np.inf)


@forms
@cases
@given(case=clusterings())
def test_the_best_candidate_is_the_first_of_largest_sure_gain_and_has_a_weight(make, case):
    X, labels, weights, k = case
    gains = candidate_gains(X, labels, weights, k)
    partition = make(X).partition(labels, weights, k)
    best = partition.best_candidate()
    assert weights[best] > 0
    noise = 1e-11 * max(partition.scale, 1e-300) * weights.sum()
    assert gains[best] >= gains.max() - noise
    earlier = gains[:best]
    assert (earlier <= gains.max() + noise).all()
    if np.ptp(gains[weights > 0]) > 1e3 * noise:  # where rounding decides nothing it is the very first
        assert best == int(np.argmax(gains >= gains.max() - noise))


@forms
@cases
@given(case=clusterings())
def test_a_candidate_becomes_the_last_cluster_and_the_objective_falls_by_at_least_its_gain(make, case):
    X, labels, weights, k = case
    gains = candidate_gains(X, labels, weights, k)
    partition = make(X).partition(labels, weights, k)
    sample = partition.best_candidate()
    more = partition.with_candidate(sample)
    assert type(more) is type(partition)
    assert more.n_clusters == k + 1
    wanted = labels.copy()
    wanted[sample] = k
    np.testing.assert_array_equal(more.host_labels(), wanted)
    np.testing.assert_array_equal(partition.host_labels(), labels)
    assert more.totals[k] == weights[sample]
    if partition.totals[labels[sample]] > 0:
        more.go_to(more.nearest().labels)
        noise = 1e-11 * max(partition.scale, 1e-300) * weights.sum()
        assert more.objective <= partition.objective - gains[sample] + noise


def test_runs_from_many_candidates_are_offered_on_stored_kernels_by_compiled_loops_alone():
    X = np.random.default_rng(0).standard_normal((30, 2))
    K, labels, weights = X @ X.T, np.zeros(30, dtype=int), np.ones(30)
    runs = DenseKernel(K).partition(labels, weights, 1).run_candidates(np.arange(30), 300)
    ends = np.array([search_oracle.run_from(K, labels, weights, 2, c).objective for c in range(30)])
    np.testing.assert_allclose(runs.objectives[runs.ends], ends, rtol=1e-9)
    without = (FORMS["means"], FORMS["sums, plain loops"], FORMS["sums, sparse"])
    for op in (*(make(X) for make in without), ScaledKernel(DenseKernel(K), 1.0)):
        assert op.partition(labels, weights, 1).run_candidates(np.arange(30), 300) is None


# --- partitions to come back to --------------------------------------------------------------------------------------


@forms
@cases
@given(data=st.data())
def test_a_snapshot_leads_back_to_the_partition_it_was_taken_of(make, data):
    X, labels, weights, k = data.draw(clusterings())
    op = make(X)
    partition = op.partition(labels, weights, k)
    snapshot, fingerprint = partition.snapshot(), partition.fingerprint()
    moved, new = data.draw(moves(labels, k))
    after = labels.copy()
    after[moved] = new
    partition.go_to(after)
    assert (partition.fingerprint() == fingerprint) == np.array_equal(after, labels)
    partition.restore(snapshot)
    np.testing.assert_array_equal(partition.host_labels(), labels)
    assert partition.labels.dtype == np.intp
    assert partition.fingerprint() == fingerprint == op.partition(labels, weights, k).fingerprint()
    noise = 1e-12 * max(partition.scale, 1e-300) * weights.sum()
    np.testing.assert_allclose(partition.scatter(), op.partition(labels, weights, k).scatter(), rtol=0, atol=noise)


@pytest.mark.parametrize(("k", "size"), [(2, 1), (255, 1), (256, 2), (300, 2)])
def test_snapshots_take_no_more_room_than_the_number_of_clusters_asks_for(k, size):
    X = np.random.default_rng(0).standard_normal((600, 2))
    partition = FeatureKernel(X).partition(np.arange(600) % k, np.ones(600), k)
    assert partition.snapshot().nbytes == 600 * size
    partition.restore(partition.snapshot())
    np.testing.assert_array_equal(partition.host_labels(), np.arange(600) % k)


# --- several views ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [FeatureKernel, lambda X: DenseKernel(X @ X.T)], ids=["means", "sums"])
@cases
@given(data=st.data())
def test_distances_and_candidates_of_several_views_are_those_of_their_weighted_sum(make, data):
    X, labels, weights, k = data.draw(clusterings())
    op = composite([make(X[:, :2]), make(X[:, 2:])], [1.0, 1.0])
    partition = op.view_partition(labels, weights, k)
    partition.reweigh(np.array([4.0, 0.25]))
    weighted = X * np.array([2.0, 2.0, 0.5])
    table = plain(weighted, labels, weights, k)[2]
    atol = 1e-12 * max(partition.scale, 1e-300)
    wanted = table[np.arange(len(X)), labels]
    np.testing.assert_allclose(partition.distances_to_centers(), wanted, rtol=0, atol=atol)
    gains = candidate_gains(weighted, labels, weights, k)
    best = partition.best_candidate()
    assert gains[best] >= gains.max() - 10 * atol * weights.sum()
    assert partition.with_candidate(best).objective == pytest.approx(
        op.with_weights([4.0, 0.25]).partition(labels, weights, k).with_candidate(best).objective, abs=10 * atol
    )
