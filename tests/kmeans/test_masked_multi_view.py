"""Multi-view kernel k-means of samples that are absent from views: the solver beside its oracle, and its laws."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.observed_views import AveragedDistances, ObservedViews
from kernelweave.kernels.transforms import ScaledKernel
from kernelweave.kernels.weighted_sum import composite
from kernelweave.partitions.observed import ObservedPartition
from kernelweave.solvers.kmeans.masked_multi_view import (
    extended_observed_labels,
    masked_multi_view_kernel_kmeans,
)
from kernelweave.solvers.kmeans.multi_view_kernel_kmeans import multi_view_kernel_kmeans
from tests.emptied_clusters import watched_for_emptied_clusters
from tests.reference import masked_multi_view as oracle
from tests.reference import multi_view
from tests.strategies import generators

cases = settings(max_examples=30, deadline=None)
exponents = st.sampled_from([1.0, 1.3, 2.0, 5.0, np.inf])

#: Ways to hold the kernel of one view, with the factor that it is multiplied by.
FORMS = {
    "dense": lambda X: DenseKernel(X @ X.T),
    "features": FeatureKernel,
    "sparse features": lambda X: FeatureKernel(sp.csr_array(X)),
    "graph": lambda X: GraphKernel(sp.csr_array(X @ X.T)),
    "scaled": lambda X: ScaledKernel(FeatureKernel(0.5 * X), 4.0),
}
forms = pytest.mark.parametrize("form", FORMS)


def drawn_mask(rng, n, n_views, rate=0.4):
    """Return who is in which view: every view has two samples or more, every sample a view."""
    mask = rng.random((n, n_views)) >= rate
    lost = ~mask.any(axis=1)
    mask[lost, rng.integers(n_views, size=lost.sum())] = True
    for v in range(n_views):
        mask[rng.permutation(n)[:2], v] = True
    return mask


@st.composite
def problems(draw, min_n=8, max_n=16):
    """Draw features of several views, a mask, labels, weights and the number of clusters."""
    rng = draw(generators())
    n = draw(st.integers(min_n, max_n))
    n_views = draw(st.integers(1, 3))
    k = draw(st.integers(1, 3))
    y = rng.integers(k, size=n)
    features = [rng.normal(size=(n, 2)) + 2.0 * rng.normal(size=(k, 2))[y] for _ in range(n_views)]
    labels = rng.permutation(np.concatenate([np.arange(k), rng.integers(k, size=n - k)]))
    weights = draw(st.sampled_from([np.ones(n), rng.integers(1, 4, size=n).astype(float)]))
    return features, drawn_mask(rng, n, n_views), labels, weights, k


def observed(features, mask, make=FORMS["dense"]):
    samples = tuple(np.flatnonzero(mask[:, v]) for v in range(len(features)))
    return ObservedViews(tuple(make(X[there]) for X, there in zip(features, samples, strict=True)), samples, len(mask))


def equal(n_views):
    return np.full(n_views, 1.0 / n_views)


def run(views, labels, weights, k, p=2.0, **options):
    options = {"view_weights": equal(views.n_views)} | options
    return masked_multi_view_kernel_kmeans(views, labels, weights, n_clusters=k, p=p, **options)


def never_rises(history):
    assert (np.diff(history) <= 1e-12 * max(1.0, abs(history[0]))).all(), np.diff(history).max()


# --- beside the oracle -----------------------------------------------------------------------------------------------


@forms
@settings(max_examples=12, deadline=None)
@given(problem=problems(), p=exponents)
def test_objective_scatters_costs_and_one_step_equal_the_plain_ones(form, problem, p):
    features, mask, labels, weights, k = problem
    views = observed(features, mask, FORMS[form])
    shares = np.random.default_rng(0).dirichlet(np.full(len(features), 3.0))
    shares = equal(len(features)) if np.isinf(p) else shares
    power = 1.0 if np.isinf(p) else p
    partition = ObservedPartition(views, labels, weights, k, shares**power)
    plain = (features, mask, labels, weights, k)
    np.testing.assert_allclose(partition.objective, oracle.objective(*plain, shares, p), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(partition.view_scatters(), oracle.scatters(*plain), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(partition.costs().T, oracle.costs(*plain, shares, p), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(partition.nearest().labels, oracle.step(*plain, shares, p))
    np.testing.assert_allclose(partition.scatter().sum(), partition.objective)


@cases
@given(problem=problems(), p=st.sampled_from([1.3, 2.0, 5.0]))
def test_a_run_ends_where_neither_samples_nor_weights_would_change(problem, p):
    features, mask, labels, weights, k = problem
    result = run(observed(features, mask), labels, weights, k, p)
    never_rises(result.history)
    assert result.converged
    plain = (features, mask, result.labels, weights, k)
    np.testing.assert_allclose(result.view_scatters, oracle.scatters(*plain), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(result.view_weights, multi_view.view_weights(oracle.scatters(*plain), p), rtol=1e-6)
    np.testing.assert_allclose(result.objective, oracle.objective(*plain, result.view_weights, p), atol=1e-12)
    np.testing.assert_array_equal(result.labels, oracle.step(*plain, result.view_weights, p))


def test_four_samples_in_two_views_end_where_worked_out_by_hand():
    # View 0 has samples 0-3, pairs (0, 1) and (2, 3) a step of 2 wide: D_0 / 4 = 4 / 4 = 1. View 1 lacks sample 3:
    # samples 0 and 1 are 4 apart, and 2 is alone: D_1 / 3 = 8 / 3. At p = 2 weights go as 1 / D: 8 to 3.
    features = [np.array([[0.0], [2.0], [20.0], [22.0]]), np.array([[0.0], [4.0], [30.0], [np.nan]])]
    mask = np.array([[1, 1], [1, 1], [1, 1], [1, 0]], dtype=bool)
    result = run(observed(features, mask), np.array([0, 0, 1, 1]), np.ones(4), 2)
    assert result.labels.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(result.view_scatters, [1.0, 8.0 / 3.0])
    np.testing.assert_allclose(result.view_weights, [8.0 / 11.0, 3.0 / 11.0])
    np.testing.assert_allclose(result.objective, (64.0 + 9.0 * 8.0 / 3.0) / 121.0)


def test_a_cluster_that_a_view_knows_nobody_of_coincides_with_the_mean_of_the_view():
    # All are equal in view 0. View 1 has samples 0 and 1, of mean 4, which is where the unknown cluster 1 is, too.
    features = [np.ones((4, 1)), np.array([[3.0], [5.0], [np.nan], [np.nan]])]
    mask = np.array([[1, 1], [1, 1], [1, 0], [1, 0]], dtype=bool)
    for labels, merged in (([0, 0, 1, 1], [0, 0, 0, 0]), ([0, 2, 1, 1], [0, 2, 1, 1])):
        partition = ObservedPartition(observed(features, mask), np.array(labels), np.ones(4), 3, equal(2))
        assert partition.merged().tolist() == merged


# --- laws ------------------------------------------------------------------------------------------------------------


@cases
@given(problem=problems(), p=exponents)
def test_with_everybody_in_every_view_the_run_is_that_of_complete_views(problem, p):
    features, mask, labels, weights, k = problem
    complete = observed(features, np.ones_like(mask))
    result = run(complete, labels, weights, k, p)
    op = composite([DenseKernel(X @ X.T) for X in features], equal(len(features)))
    expected = multi_view_kernel_kmeans(op, labels, weights, n_clusters=k, p=p, view_weights=equal(len(features)))
    np.testing.assert_array_equal(result.labels, expected.labels)
    np.testing.assert_allclose(result.view_weights, expected.view_weights, rtol=1e-7)
    np.testing.assert_allclose(np.array(result.history) * weights.sum(), expected.history, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(result.view_norms, expected.view_norms, rtol=1e-8, atol=1e-10)


@cases
@given(problem=problems(), seed=st.integers(0, 1000))
def test_the_order_of_samples_and_views_plays_no_part(problem, seed):
    features, mask, labels, weights, k = problem
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(mask))
    order = rng.permutation(len(features))
    first = run(observed(features, mask), labels, weights, k)
    shuffled = observed([features[v][rows] for v in order], mask[np.ix_(rows, order)])
    second = run(shuffled, labels[rows], weights[rows], k)
    np.testing.assert_array_equal(second.labels, first.labels[rows])
    np.testing.assert_allclose(second.view_weights, first.view_weights[order], rtol=1e-7)


@cases
@given(problem=problems())
def test_a_weight_equals_repetition(problem):
    features, mask, labels, _, k = problem
    times = np.arange(len(mask)) % 3 + 1
    repeated = observed([np.repeat(X, times, axis=0) for X in features], np.repeat(mask, times, axis=0))
    with watched_for_emptied_clusters() as emptied:
        weighted = run(observed(features, mask), labels, times.astype(float), k)
        plain = run(repeated, np.repeat(labels, times), np.ones(times.sum()), k)
    assume(not emptied)
    np.testing.assert_array_equal(plain.labels, np.repeat(weighted.labels, times))
    np.testing.assert_allclose(plain.view_weights, weighted.view_weights, rtol=1e-7)
    np.testing.assert_allclose(plain.objective, weighted.objective, rtol=1e-8, atol=1e-12)


@cases
@given(problem=problems())
def test_a_sample_of_weight_zero_gets_a_label_and_has_no_say(problem):
    features, mask, labels, weights, k = problem
    n = len(mask)
    extra = [np.vstack([X, X[:3] + 0.1]) for X in features]
    everywhere = np.vstack([mask, np.ones((3, len(features)), dtype=bool)])
    with_extra = run(observed(extra, everywhere), np.append(labels, [0, 0, 0]), np.append(weights, np.zeros(3)), k)
    without = run(observed(features, mask), labels, weights, k)
    np.testing.assert_array_equal(with_extra.labels[:n], without.labels)
    np.testing.assert_allclose(with_extra.objective, without.objective, rtol=1e-9, atol=1e-12)


@cases
@given(rng=generators())
def test_the_objective_never_rises_for_kernels_without_a_feature_space(rng):
    n, k = 14, 3
    mask = drawn_mask(rng, n, 2)
    kernels = []
    for v in range(2):
        A = rng.normal(size=(n, n))
        kernels.append(DenseKernel((A + A.T)[np.ix_(mask[:, v], mask[:, v])]))
    samples = tuple(np.flatnonzero(mask[:, v]) for v in range(2))
    views = ObservedViews(tuple(kernels), samples, n)
    result = run(views, rng.permutation(np.arange(n) % k), np.ones(n), k)
    never_rises(result.history)
    fixed = run(views, rng.permutation(np.arange(n) % k), np.ones(n), k, learned=False)
    never_rises(fixed.history)
    partition = ObservedPartition(views, fixed.labels, np.ones(n), k, equal(2) ** 2.0)
    np.testing.assert_allclose(fixed.objective, partition.objective)


def test_sums_that_followed_moves_equal_those_computed_anew():
    rng = np.random.default_rng(3)
    features = [rng.normal(size=(40, 3)) for _ in range(2)]
    mask = drawn_mask(rng, 40, 2)
    for make in FORMS.values():
        views = observed(features, mask, make)
        labels = rng.integers(4, size=40)
        partition = ObservedPartition(views, labels, np.ones(40), 4, equal(2))
        labels = labels.copy()
        labels[[1, 5, 9, 30]] = (labels[[1, 5, 9, 30]] + 1) % 4
        partition.move(partition.moves_to(labels))
        assert not partition.certain(1.0)
        anew = ObservedPartition(views, labels, np.ones(40), 4, equal(2))
        np.testing.assert_allclose(partition.costs(), anew.costs(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(partition.objective, anew.objective)


# --- clusters that nobody is in --------------------------------------------------------------------------------------


def test_a_cluster_that_nobody_of_a_view_is_in_has_the_views_mean_as_its_centre():
    features = [np.array([[0.0], [1.0], [8.0], [9.0]]), np.array([[0.0], [6.0], [np.nan], [np.nan]])]
    mask = np.array([[1, 1], [1, 1], [1, 0], [1, 0]], dtype=bool)
    labels = np.array([0, 0, 1, 1])
    partition = ObservedPartition(observed(features, mask), labels, np.ones(4), 2, np.array([0.0, 1.0]))
    # Cluster 1 has no sample of view 1, whose mean is 3: both samples of the view are 3 away from both centres.
    np.testing.assert_allclose(partition.costs()[:, :2], 9.0 / 2.0)
    assert partition.nearest().labels.tolist() == labels.tolist()  # ties stay


def test_an_empty_cluster_takes_the_costliest_sample():
    features = [np.array([[0.0], [1.0], [2.0], [50.0]])]
    result = run(observed(features, np.ones((4, 1), dtype=bool)), np.zeros(4, dtype=int), np.ones(4), 2)
    assert result.labels.tolist() == [0, 0, 0, 1]
    assert (result.totals > 0).all()


def test_equal_samples_split_by_the_start_come_together():
    features = [np.array([[0.0], [0.0], [5.0], [9.0]]), np.array([[1.0], [1.0], [7.0], [np.nan]])]
    mask = np.array([[1, 1], [1, 1], [1, 1], [1, 0]], dtype=bool)
    result = run(observed(features, mask), np.array([0, 1, 2, 2]), np.ones(4), 3, learned=False)
    assert result.labels[0] == result.labels[1]
    assert len(np.unique(result.labels)) == 3


def test_clusters_stay_empty_where_there_are_fewer_distinct_samples():
    features = [np.array([[0.0], [0.0], [1.0], [1.0]])]
    result = run(observed(features, np.ones((4, 1), dtype=bool)), np.array([0, 0, 1, 2]), np.ones(4), 3)
    assert len(np.unique(result.labels)) == 2
    assert result.objective == pytest.approx(0.0, abs=1e-15)


def test_moves_that_do_not_lower_the_objective_are_undone():
    # Samples 4 and 5 count nothing: wherever they go, the objective stays.
    x = np.array([[0.0], [1.0], [8.0], [9.0], [0.5], [8.5]])
    weights = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    before = np.array([0, 0, 1, 1, 1, 0])
    views = observed([x], np.ones((6, 1), dtype=bool))
    partition = ObservedPartition(views, before, weights, 2, np.ones(1))
    objective, assignment = partition.objective, partition.nearest()
    moves = partition.moves_to(assignment.labels)
    assert moves.count == 2
    partition.move(moves)
    assert not partition.cut_back(before, moves, assignment.distances, objective)
    np.testing.assert_array_equal(partition.labels, before)


# --- starts ----------------------------------------------------------------------------------------------------------


def test_averaged_distances_are_those_of_common_views_and_their_mean_elsewhere():
    features = [np.array([[0.0], [1.0], [3.0]]), np.array([[0.0], [5.0], [7.0]])]
    mask = np.array([[1, 1], [1, 0], [0, 1]], dtype=bool)
    near = AveragedDistances(observed(features, mask), np.array([1.0, 3.0]))
    D = -2.0 * near.block(slice(None), slice(None))
    # (0, 1) is in view 0, (0, 2) in view 1, (1, 2) in none: the mean over all known ordered pairs, weighted, is
    # (2 * 1 * 1 + 2 * 3 * 49) / (4 * 1 + 4 * 3).
    np.testing.assert_allclose(D, [[0, 1, 49], [1, 0, 296 / 16], [49, 296 / 16, 0]])
    np.testing.assert_allclose(near.diag(), 0.0)


def test_averaged_distances_are_the_same_stored_or_computed_again_some_rows_at_a_time():
    rng = np.random.default_rng(0)
    mask = np.ones((30, 3), dtype=bool)
    mask[::5, 0] = False
    mask[1::5, 1:] = False  # these have no view in common with those before
    views = observed([rng.normal(size=(30, d)) for d in (2, 3, 4)], mask)
    chosen = np.flatnonzero(rng.random(30) < 0.8)
    coefficients = np.array([0.2, 0.5, 0.3])
    stored = AveragedDistances(views, coefficients).stored()
    part = stored.block(chosen, chosen)
    computed = AveragedDistances(views, coefficients, chosen, held=70)
    near = computed.stored()
    known = (mask[chosen] @ mask[chosen].T) > 0
    np.testing.assert_allclose(near.K[known], part[known])
    assert not known.all()
    np.testing.assert_allclose(near.K[~known], near.K[~known][0])
    np.testing.assert_allclose(computed.block(slice(None), np.array([3, 1])), near.K[:, [3, 1]])
    np.testing.assert_allclose(computed.matmat(np.eye(len(chosen))), near.K)
    assert computed.scale() == pytest.approx(near.scale())


def test_samples_beside_the_chosen_ones_begin_where_they_cost_least():
    features = [np.array([[0.0], [1.0], [10.0], [11.0], [np.nan]]), np.array([[0.0], [1.0], [9.0], [10.0], [8.0]])]
    mask = np.array([[1, 1], [1, 1], [1, 1], [1, 1], [0, 1]], dtype=bool)
    views = observed(features, mask)
    labels = extended_observed_labels(views, np.array([1, 0]), np.array([0, 2]), np.ones(5), 2, equal(2))
    assert labels.tolist() == [1, 1, 0, 0, 0]
    everyone = np.arange(5)
    known = np.array([0, 0, 1, 1, 1])
    assert extended_observed_labels(views, known, everyone, np.ones(5), 2, equal(2)) is known


def test_labels_of_some_samples_are_extended_by_weighted_centres():
    features = [np.array([[0.0], [4.0], [10.0], [6.2]])]
    views = observed(features, np.ones((4, 1), dtype=bool))
    weights = np.array([1.0, 9.0, 1.0, 1.0])  # centres at 3.6 and 10; without weights the first would be at 2
    labels = extended_observed_labels(views, np.array([0, 0, 1]), np.arange(3), weights, 2, np.ones(1))
    assert labels.tolist() == [0, 0, 1, 0]


def test_views_with_no_more_samples_of_weight_than_clusters_tell_nothing_unless_there_are_no_others():
    features = [np.arange(6.0)[:, None]] * 3
    mask = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 1], [1, 0, 1], [1, 0, 0], [1, 0, 0]], dtype=bool)
    views = observed(features, mask)  # of six, three and four samples
    assert views.telling(np.ones(6), 2) == [0, 1, 2]
    assert views.telling(np.ones(6), 3) == [0, 2]
    assert views.telling(np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0]), 3) == [0]
    assert views.telling(np.ones(6), 6) == [0, 1, 2]


def test_views_of_chosen_samples_are_the_views_of_these():
    rng = np.random.default_rng(0)
    features = [rng.normal(size=(9, 2)) for _ in range(2)]
    mask = drawn_mask(rng, 9, 2)
    chosen = np.array([0, 3, 4, 8])
    views = observed(features, mask)
    part = views.take(chosen)
    np.testing.assert_array_equal(part.observed, mask[chosen])
    np.testing.assert_array_equal(views.observed, mask)
    for v in range(2):
        X = features[v][chosen][mask[chosen, v]]
        np.testing.assert_allclose(part.operators[v].block(slice(None), slice(None)), X @ X.T)
    np.testing.assert_allclose(views.totals(np.arange(9.0)), [np.arange(9.0)[mask[:, v]].sum() for v in range(2)])
