"""Partitions: what they know of their clusters, in both forms, computed anew and kept through moves."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.backends import get_backend
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.transforms import ScaledKernel
from kernelweave.partitions.algebra import TIE_TOLERANCE
from kernelweave.partitions.means import MeansPartition
from kernelweave.partitions.sums import SumsPartition
from tests.strategies import generators, moves, partitions, sample_weights, samples

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
    out, own, lead = labels.copy(), np.empty(len(labels)), np.inf
    for i, row in enumerate(values):
        others = np.delete(np.arange(len(row)), labels[i])
        low = row[others].min(initial=np.inf)
        if low < row[labels[i]] - tolerance:
            out[i] = next(c for c in others if row[c] <= low + tolerance)
        else:
            lead = min(lead, low - row[labels[i]] + tolerance)
        own[i] = row[out[i]]
    return out, own, lead


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
    own = np.where(weights > 0, table[np.arange(len(X)), labels], 0.0)
    variances = np.bincount(labels, weights * own, k)
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
    result, distances, lead = partition.nearest(coefs)
    table = plain(X, labels, weights, k)[2]
    values = table if coefs is None else coefs * table
    wanted, own, least = plain_nearest(values, labels, partition.tolerance)
    np.testing.assert_array_equal(result, wanted)
    np.testing.assert_allclose(distances, own, rtol=0, atol=1e-12 * max(partition.scale, 1e-300))
    assert lead == pytest.approx(least, rel=0, abs=1e-11 * max(partition.scale, 1e-300))
    assert (partition.totals[result] > 0).all()


@cases
@given(case=clusterings())
def test_coefficients_of_one_change_nothing(case):
    X, labels, weights, k = case
    for make in FORMS.values():
        partition = make(X).partition(labels, weights, k)
        for plain_part, scaled in zip(partition.nearest(), partition.nearest(np.ones(k)), strict=True):
            np.testing.assert_allclose(plain_part, scaled, rtol=0, atol=1e-13 * max(partition.scale, 1e-300))


@forms
@cases
@given(data=st.data())
def test_moving_samples_leads_to_the_state_of_the_new_partition(make, data):
    X, labels, weights, k = data.draw(clusterings())
    op = make(X)
    partition = op.partition(labels, weights, k)
    for _ in range(3):
        moved, new = data.draw(moves(partition.labels, k))
        after = partition.labels.copy()
        after[moved] = new
        partition.move(after)
    anew = op.partition(partition.labels, weights, k)
    noise = 1e-12 * max(partition.scale, 1e-300)
    np.testing.assert_array_equal(partition.members, anew.members)
    np.testing.assert_array_equal(partition.totals > 0, anew.totals > 0)
    np.testing.assert_allclose(partition.totals, anew.totals, rtol=1e-13)
    np.testing.assert_allclose(partition.within, anew.within, rtol=0, atol=noise * weights.sum() ** 2)
    np.testing.assert_allclose(partition.scatter(), anew.scatter(), rtol=0, atol=noise * weights.sum())
    np.testing.assert_array_equal(partition.nearest()[0], anew.nearest()[0])
    assert anew.exact


@forms
def test_distances_kept_through_many_moves_stay_within_the_error_bound_that_certainty_relies_on(make):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((300, 3)), rng.uniform(0.5, 2.0, 300)
    partition = make(X).partition(rng.integers(4, size=300), weights, 4)
    for _ in range(14):
        labels = partition.labels.copy()
        labels[rng.choice(300, 20, replace=False)] = rng.integers(4, size=20)
        partition.move(labels)
    assert not partition.exact
    bound = 3.0 * partition._rounding / partition.totals.min()
    kept = partition.nearest()[1]
    partition.refresh()
    assert partition.exact
    assert np.abs(kept - partition.nearest()[1]).max() <= bound


@forms
def test_everything_is_computed_anew_once_as_many_samples_moved_as_there_are(make):
    X = np.random.default_rng(0).standard_normal((10, 2))
    partition = make(X).partition(np.zeros(10, dtype=int), np.ones(10), 2)
    assert partition.exact
    for turn in range(10):
        partition.move(np.array([turn % 2 == 0, *[False] * 9], dtype=int))
        assert not partition.exact
    partition.move(partition.labels.copy())  # nobody moves: nothing is computed
    assert not partition.exact
    partition.move(np.array([1, *[0] * 9]))
    assert partition.exact


@forms
def test_only_a_lead_above_the_rounding_of_the_moves_is_certain(make):
    X = np.random.default_rng(0).standard_normal((6, 2))
    partition = make(X).partition(np.array([0, 0, 0, 1, 1, 1]), np.ones(6), 2)
    assert partition.certain(0.0)  # straight from the data: nothing to doubt
    partition.move(np.array([0, 0, 1, 1, 1, 1]))
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
    partition.move(after)
    partition.refresh()
    np.testing.assert_array_equal(after, later)


@forms
def test_clusters_with_equal_centres_are_merged_under_the_lowest_number(make):
    x = np.array([[1.0], [1.0], [0.0], [2.0], [5.0], [5.0], [9.0]])
    labels = np.array([3, 1, 0, 0, 2, 4, 5])  # 3, 1 and the mean of 0 coincide, and so do 2 and 4
    partition = make(x).partition(labels, np.ones(7), 7)  # the last one is empty
    assert partition.merged(partition.labels).tolist() == [0, 0, 0, 0, 2, 2, 5]


@forms
def test_centres_that_all_differ_stay_apart(make):
    X = np.random.default_rng(0).standard_normal((9, 2))
    labels = np.arange(9) % 3
    partition = make(X).partition(labels, np.ones(9), 4)
    np.testing.assert_array_equal(partition.merged(partition.labels), labels)


def test_the_slack_of_a_tie_follows_the_size_of_the_kernel():
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
    np.testing.assert_array_equal(partition.nearest()[0], wide.nearest()[0])
    np.testing.assert_allclose(partition.scatter(), wide.scatter(), rtol=1e-5)
