"""Multi-view kernel k-means: against the plain oracle in every storage of the kernels, laws, ends and limits."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.transforms import ScaledKernel
from kernelweave.kernels.weighted_sum import CompositeKernel, JoinedFeatures, composite
from kernelweave.partitions import algebra
from kernelweave.partitions.views import ViewMeansPartition, ViewSumsPartition
from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
from kernelweave.solvers.kmeans.multi_view_kernel_kmeans import multi_view_kernel_kmeans
from kernelweave.solvers.kmeans.starts import extended_labels
from tests.emptied_clusters import watched_for_emptied_clusters
from tests.reference import kernel_kmeans as single
from tests.reference import multi_view as oracle
from tests.strategies import generators, indefinite_kernels, partitions, sample_weights, views

cases = settings(max_examples=20, deadline=None)
EXPONENTS = (1.0, 1.2, 1.5, 2.0, 4.0, np.inf)
exponents = st.sampled_from(EXPONENTS)
WIDTH = 1.5  # of Gaussian kernels


def gaussian(X):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2.0 * WIDTH**2))


def linear(X):
    return X @ X.T


def lazy(X):
    return fit_kernel(X, "rbf", {"sigma": WIDTH}).operator("blockwise")


def in_turn(makers):
    """Return the function that makes one view's operator after the other, each by the next maker in turn."""
    return lambda data: composite([make(X) for make, X in zip(itertools.cycle(makers), data, strict=False)], ones(data))


def ones(data):
    return np.ones(len(data))


#: Ways to hold several kernels, each with the functions that fill their plain matrices in turn.
FORMS = {
    "dense": (in_turn([lambda X: DenseKernel(gaussian(X))]), [gaussian]),
    "graph": (in_turn([lambda X: GraphKernel(sp.csr_array(gaussian(X)))]), [gaussian]),
    "blockwise": (in_turn([lazy]), [gaussian]),
    "features": (in_turn([FeatureKernel]), [linear]),
    "scaled features": (in_turn([lambda X: ScaledKernel(FeatureKernel(X), 3.0)]), [lambda X: 3.0 * linear(X)]),
    "sparse features": (in_turn([lambda X: FeatureKernel(sp.csr_array(X))]), [linear]),
    "mixed": (
        in_turn([FeatureKernel, lazy, lambda X: ScaledKernel(GraphKernel(sp.csr_array(gaussian(X))), 0.5)]),
        [linear, gaussian, lambda X: 0.5 * gaussian(X)],
    ),
}
forms = pytest.mark.parametrize("form", FORMS)


def made(form, data):
    """Return the operator of a form and its plain matrices."""
    make, matrices = FORMS[form]
    return make(data), [fill(X) for fill, X in zip(itertools.cycle(matrices), data, strict=False)]


def equal_weights(n_views):
    return np.full(n_views, 1.0 / n_views)


def run(op, labels, weights, k, p, first=None, **options):
    first = equal_weights(len(op.coefficients)) if first is None else first
    return multi_view_kernel_kmeans(op, labels, weights, n_clusters=k, p=p, view_weights=first, **options)


def start(rng, n, k):
    """Return labels in which every cluster has a member."""
    return rng.permutation(np.concatenate([np.arange(k), rng.integers(k, size=n - k)]))


def never_rises(history):
    steps = np.diff(history)
    assert (steps <= 1e-12 * np.abs(history[0])).all(), steps.max()


def grouped(seed, n=120, k=3, widths=(2, 3, 2), noise=(0.8, 1.5, 4.0)):
    """Return views of the same groups, the later the noisier."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    data = [
        4.0 * rng.standard_normal((k, d))[y] + s * rng.standard_normal((n, d))
        for d, s in zip(widths, noise, strict=True)
    ]
    return data, rng


# --- against the plain oracle ----------------------------------------------------------------------------------------


@forms
@cases
@given(data=st.data())
def test_labels_weights_and_every_objective_equal_the_plain_oracle(form, data):
    data_views = data.draw(views(min_n=6, max_n=13))
    n = len(data_views[0])
    labels, k = data.draw(partitions(n, max_clusters=3))
    weights, p, rng = data.draw(sample_weights(n)), data.draw(exponents), data.draw(generators())
    first = data.draw(st.sampled_from([None, rng.dirichlet(np.full(len(data_views), 2.0))]))
    op, kernels = made(form, data_views)
    result = run(op, labels, weights, k, p, None if np.isinf(p) else first)
    if np.isinf(p):
        expected, path = single.kernel_kmeans(oracle.composite(kernels, ones(kernels), p), labels, weights, k)
        shares = equal_weights(len(kernels))
    else:
        expected, shares, path = oracle.mvkkm(kernels, labels, weights, k, p, first)
    np.testing.assert_array_equal(result.labels, expected)
    np.testing.assert_allclose(result.view_weights, shares, rtol=1e-7, atol=1e-10)
    size = weights.sum() * sum(np.abs(K).max() for K in kernels)
    np.testing.assert_allclose(result.history, path, rtol=0, atol=1e-11 * size)
    np.testing.assert_allclose(result.view_scatters, oracle.scatters(kernels, expected, weights), atol=1e-12 * size)
    assert result.converged
    assert not result.rose


def test_two_views_of_four_points_end_where_worked_out_by_hand():
    # The first view sees pairs (0, 1) and (2, 3), the second the same pairs, twice as wide: D = (1, 4).
    data = [np.array([[0.0], [1.0], [10.0], [11.0]]), np.array([[0.0], [2.0], [30.0], [32.0]])]
    op = composite([FeatureKernel(X) for X in data], [0.5, 0.5])
    result = run(op, np.array([0, 1, 0, 1]), np.ones(4), 2, 2.0)
    assert result.labels.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    np.testing.assert_allclose(result.view_scatters, [1.0, 4.0])
    np.testing.assert_allclose(result.view_weights, [0.8, 0.2])
    assert result.objective == pytest.approx(0.8**2 * 1.0 + 0.2**2 * 4.0)
    assert result.scatter == pytest.approx([0.4, 0.4])
    np.testing.assert_array_equal(result.totals, [2.0, 2.0])


@cases
@given(data=st.data())
def test_indefinite_kernels_end_at_the_oracles_partition_and_never_rise(data):
    K = data.draw(indefinite_kernels(min_n=5, max_n=12))
    labels, k = data.draw(partitions(len(K), max_clusters=3))
    p, rng = data.draw(st.sampled_from([1.0, 1.5, 2.0, 4.0])), data.draw(generators())
    other = rng.standard_normal(K.shape)
    kernels = [K, np.abs(K).max() * (other + other.T), np.abs(K).max() * gaussian(rng.standard_normal((len(K), 2)))]
    op = CompositeKernel([DenseKernel(matrix) for matrix in kernels], np.ones(3))
    result = run(op, labels, np.ones(len(K)), k, p, max_iter=8)
    expected, shares, path = oracle.mvkkm(kernels, labels, np.ones(len(K)), k, p, max_iter=8)
    # A run ends where clusters only change their names; the oracle goes on changing them.
    together = result.labels[:, None] == result.labels[None, :]
    np.testing.assert_array_equal(together, np.equal.outer(expected, expected))
    np.testing.assert_allclose(result.view_weights, shares, rtol=1e-7, atol=1e-10)
    noise = 1e-11 * len(K) * np.abs(kernels[1]).max()
    steps = len(result.history)
    np.testing.assert_allclose(result.history, path[:steps], rtol=1e-8, atol=10 * noise)
    np.testing.assert_allclose(path[steps:], result.objective, rtol=1e-8, atol=10 * noise)
    assert (np.diff(result.history) <= noise).all()
    assert result.converged or steps > 8


@pytest.mark.parametrize("n_views", [1, 2])
def test_a_run_ends_where_clusters_only_change_their_names(n_views):
    K = np.array([[0.0, 1.0], [1.0, 0.0]])  # each sample is nearer to the other one than to itself
    op = CompositeKernel([DenseKernel(K)] * n_views, np.ones(n_views))
    result = run(op, np.array([0, 1]), np.ones(2), 2, 2.0)
    assert kernel_kmeans(op, np.array([0, 1]), np.ones(2), n_clusters=2).converged
    assert result.converged
    assert result.n_iter < 10


def test_a_negative_scatter_takes_all_the_weight():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 12))
    op = CompositeKernel([DenseKernel(A + A.T - 3.0 * np.eye(12)), DenseKernel(gaussian(A))], [0.5, 0.5])
    result = run(op, start(rng, 12, 3), np.ones(12), 3, 2.0)
    assert result.view_scatters[0] < 0 < result.view_scatters[1]
    assert result.view_weights.tolist() == [1.0, 0.0]
    assert result.objective == pytest.approx(result.view_scatters[0])
    assert result.converged


# --- laws ------------------------------------------------------------------------------------------------------------


@forms
@pytest.mark.parametrize("p", [*EXPONENTS, 1.0 + 1e-9, 100.0])
def test_the_objective_never_rises_and_is_that_of_weights_and_scatters(form, p):
    for seed in range(4):
        data, rng = grouped(seed, n=60)
        op, _ = made(form, data)
        result = run(op, start(rng, 60, 5), rng.uniform(0.1, 2.0, 60), 5, p)
        never_rises(result.history)
        assert result.view_weights.sum() == pytest.approx(1.0, abs=1e-12)
        coefficients = np.array(oracle.coefficients(result.view_weights, p))
        assert result.objective == pytest.approx(coefficients @ result.view_scatters, rel=1e-9)
        assert result.scatter.sum() == pytest.approx(result.objective, rel=1e-9)
        assert result.n_iter == len(result.history) - 1
        assert result.n_steps >= 1
        assert result.converged


@forms
@pytest.mark.parametrize("p", EXPONENTS)
def test_the_end_is_a_fixed_point_of_labels_and_weights(form, p):
    for seed in range(3):
        data, rng = grouped(seed)
        op, _ = made(form, data)
        first = run(op, start(rng, 120, 5), np.ones(120), 5, p)
        again = run(op, first.labels, np.ones(120), 5, p, first.view_weights)
        np.testing.assert_array_equal(again.labels, first.labels)
        np.testing.assert_allclose(again.view_weights, first.view_weights, rtol=1e-9)
        assert again.objective == pytest.approx(first.objective, rel=1e-12)
        assert again.n_steps == 0
        total = op.with_weights(oracle.coefficients(first.view_weights, p))
        assert kernel_kmeans(total, first.labels, np.ones(120), n_clusters=5).n_iter == 0


@forms
@cases
@given(data=st.data())
def test_a_weight_is_the_same_as_repetition(form, data):
    data_views, p = data.draw(views(min_n=5, max_n=12)), data.draw(exponents)
    n = len(data_views[0])
    (labels, k), rng = data.draw(partitions(n, max_clusters=3)), data.draw(generators())
    counts = rng.integers(1, 4, n)
    rows = np.repeat(np.arange(n), counts)
    with watched_for_emptied_clusters() as emptied:
        weighted = run(made(form, data_views)[0], labels, counts.astype(float), k, p)
        repeated = run(made(form, [X[rows] for X in data_views])[0], labels[rows], np.ones(len(rows)), k, p)
    assume(not emptied)
    size = sum((X**2).sum(axis=1).max() + 1.0 for X in data_views) * len(rows)
    assert weighted.objective == pytest.approx(repeated.objective, abs=1e-11 * size)
    np.testing.assert_array_equal(weighted.labels[rows], repeated.labels)
    np.testing.assert_allclose(weighted.view_weights, repeated.view_weights, atol=1e-7)


@pytest.mark.parametrize("form", sorted(set(FORMS) - {"mixed"}))  # where another order gives every view another kernel
@pytest.mark.parametrize("p", EXPONENTS)
def test_the_order_of_samples_and_views_does_not_matter(form, p):
    for seed in range(3):
        data, rng = grouped(seed)
        labels, weights = start(rng, 120, 4), rng.uniform(0.1, 2.0, 120)
        first = rng.dirichlet(np.ones(3))
        plain = run(made(form, data)[0], labels, weights, 4, p, first)
        order, views_order = rng.permutation(120), rng.permutation(3)
        op, _ = made(form, [data[v][order] for v in views_order])
        mixed = run(op, labels[order], weights[order], 4, p, first[views_order])
        np.testing.assert_array_equal(mixed.labels, plain.labels[order])
        np.testing.assert_allclose(mixed.view_weights, plain.view_weights[views_order], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(mixed.history, plain.history, rtol=1e-9)


@forms
@pytest.mark.parametrize("p", EXPONENTS)
def test_one_view_is_kernel_k_means(form, p):
    for seed in range(3):
        data, rng = grouped(seed)
        labels, weights = start(rng, 120, 4), rng.uniform(0.1, 2.0, 120)
        op, (K, *_) = made(form, data[:1])
        result = run(op, labels, weights, 4, p)
        expected = kernel_kmeans(DenseKernel(K), labels, weights, n_clusters=4)
        np.testing.assert_array_equal(result.labels, expected.labels)
        assert result.view_weights.tolist() == [1.0]
        assert result.objective == pytest.approx(expected.objective)
        assert result.history[0] == pytest.approx(expected.history[0])
        assert result.n_steps == expected.n_iter


@forms
@pytest.mark.parametrize("p", EXPONENTS)
def test_a_view_given_twice_counts_a_half_each_time_and_leaves_the_labels(form, p):
    for seed in range(3):
        data, rng = grouped(seed)
        labels, weights = start(rng, 120, 4), rng.uniform(0.1, 2.0, 120)
        once = run(made(form, data[:1])[0], labels, weights, 4, p)
        maker = FORMS[form][0]
        op = composite([maker(data[:1]), maker(data[:1])], [0.5, 0.5])
        twice = run(op, labels, weights, 4, p)
        np.testing.assert_allclose(twice.view_weights, [0.5, 0.5], rtol=1e-9)
        np.testing.assert_array_equal(twice.labels, once.labels)


@pytest.mark.parametrize("p", [1.0, 1.5, 3.0])
def test_weights_that_are_not_learned_stay_and_the_path_is_that_of_kernel_k_means(p):
    data, rng = grouped(0)
    labels, fixed = start(rng, 120, 4), np.array([0.2, 0.5, 0.3])
    for form in ("dense", "features", "mixed"):
        op, kernels = made(form, data)
        result = run(op, labels, np.ones(120), 4, p, fixed, learned=False)
        total = oracle.composite(kernels, fixed, p)
        expected = kernel_kmeans(DenseKernel(total), labels, np.ones(120), n_clusters=4)
        np.testing.assert_array_equal(result.view_weights, fixed)
        np.testing.assert_array_equal(result.labels, expected.labels)
        np.testing.assert_allclose(result.history, expected.history, rtol=1e-9)
        assert result.n_steps == result.n_iter == expected.n_iter


def test_an_infinite_exponent_is_equal_weights_whatever_they_began_as():
    data, rng = grouped(1)
    labels = start(rng, 120, 4)
    op, _ = made("dense", data)
    result = run(op, labels, np.ones(120), 4, np.inf, np.array([0.7, 0.2, 0.1]))
    fixed = run(op, labels, np.ones(120), 4, 1.0, learned=False)
    np.testing.assert_array_equal(result.view_weights, [1 / 3] * 3)
    np.testing.assert_array_equal(result.labels, fixed.labels)
    assert result.history == fixed.history


@pytest.mark.parametrize("form", ["dense", "features", "sparse features"])
def test_an_exponent_of_one_ends_in_kernel_k_means_on_a_single_view(form):
    for seed in range(4):
        data, rng = grouped(seed)
        op, kernels = made(form, data)
        result = run(op, start(rng, 120, 4), np.ones(120), 4, 1.0)
        assert sorted(result.view_weights.tolist()) == [0.0, 0.0, 1.0]
        chosen = int(result.view_weights.argmax())
        assert chosen == int(result.view_scatters.argmin())
        assert result.objective == pytest.approx(result.view_scatters.min())
        alone = kernel_kmeans(DenseKernel(kernels[chosen]), result.labels, np.ones(120), n_clusters=4)
        assert alone.n_iter == 0


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_features_and_their_stored_kernels_take_the_same_steps(p):
    data, rng = grouped(2, n=300)
    labels, weights = start(rng, 300, 6), rng.uniform(0.1, 2.0, 300)
    joined = run(made("features", data)[0], labels, weights, 6, p)
    sparse = run(made("sparse features", data)[0], labels, weights, 6, p)
    stored = run(composite([DenseKernel(linear(X)) for X in data], ones(data)), labels, weights, 6, p)
    for other in (sparse, stored):
        np.testing.assert_array_equal(other.labels, joined.labels)
        np.testing.assert_allclose(other.history, joined.history, rtol=1e-9)
        np.testing.assert_allclose(other.view_weights, joined.view_weights, rtol=1e-8)
        assert other.n_steps == joined.n_steps


@pytest.mark.parametrize("form", ["dense", "graph", "blockwise", "features", "mixed"])
def test_the_size_of_all_kernels_together_does_not_matter(form):
    data, rng = grouped(3)
    labels, (op, _) = start(rng, 120, 4), made(form, data)
    plain = run(op, labels, np.ones(120), 4, 2.0)
    parts = op.parts if isinstance(op, CompositeKernel) else [FeatureKernel(X) for X in data]
    for factor in (1e-12, 1e12):
        total = composite([ScaledKernel(part, factor) for part in parts], ones(parts))
        scaled = run(total, labels, np.ones(120), 4, 2.0)
        np.testing.assert_array_equal(scaled.labels, plain.labels)
        np.testing.assert_allclose(scaled.view_weights, plain.view_weights, rtol=1e-8)
        assert scaled.objective == pytest.approx(factor * plain.objective)


# --- the partition ---------------------------------------------------------------------------------------------------


def fresh(partition):
    return partition.op.view_partition(partition.labels, partition.weights, partition.n_clusters)


@forms
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_kept_through_many_moves_and_reweighings_equal_fresh_ones(form, weighted):
    data, rng = grouped(4, n=100)
    op, kernels = made(form, data)
    weights = rng.uniform(0.0, 2.0, 100) * (np.arange(100) % 7 > 0) if weighted else np.ones(100)
    partition = op.view_partition(start(rng, 100, 4), weights, 4)
    assert type(partition) is (ViewMeansPartition if isinstance(op, JoinedFeatures) else ViewSumsPartition)
    for turn in range(9):
        labels = partition.labels.copy()
        labels[rng.choice(100, 9, replace=False)] = rng.integers(4, size=9)
        partition.go_to(labels)
        partition.reweigh(rng.dirichlet(np.ones(3)) if turn % 3 else np.array([0.0, 1.0, 0.0]))
    assert not partition.exact
    anew, size = fresh(partition), weights.sum() * max(np.abs(K).max() for K in kernels)
    np.testing.assert_allclose(partition.sums, anew.sums, atol=1e-12 * size)
    np.testing.assert_allclose(partition.within, anew.within, atol=1e-12 * size * weights.sum())
    np.testing.assert_allclose(partition.norms, anew.norms, rtol=1e-10, atol=1e-12 * size)
    np.testing.assert_allclose(partition.totals, anew.totals, rtol=1e-12)
    np.testing.assert_allclose(partition.scatter(), anew.scatter(), atol=1e-12 * size)
    np.testing.assert_allclose(partition.view_scatters(), anew.view_scatters(), atol=1e-12 * size)
    np.testing.assert_array_equal(partition.nearest().labels, anew.nearest().labels)
    np.testing.assert_allclose(partition.nearest().distances, anew.nearest().distances, atol=1e-12 * size)
    expected = [single.objective(K, partition.labels, weights) for K in kernels]
    np.testing.assert_allclose(partition.view_scatters(), expected, atol=1e-11 * size)
    assert partition.objective == pytest.approx(partition.op.coefficients @ expected, abs=1e-11 * size)


@pytest.mark.parametrize("form", ["dense", "features"])
def test_errors_of_kept_sums_stay_within_their_bound_after_reweighing(form):
    data, rng = grouped(5, n=300)
    op, _ = made(form, data)
    partition = op.view_partition(start(rng, 300, 4), np.ones(300), 4)
    for _ in range(14):
        labels = partition.labels.copy()
        labels[rng.choice(300, 20, replace=False)] = rng.integers(4, size=20)
        partition.go_to(labels)
        partition.reweigh(rng.dirichlet(np.ones(3)) ** 2)
    assert not partition.exact
    bound, kept = 3.0 * partition._rounding / partition.totals.min(), partition.nearest().distances
    partition.refresh()
    assert partition.exact
    assert np.abs(kept - partition.nearest().distances).max() <= bound


# --- empty clusters, samples without weight, views without scatter ---------------------------------------------------


@forms
@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_clusters_that_begin_empty_are_filled(form, p):
    data, _ = grouped(0, n=20)
    op, kernels = made(form, data)
    result = run(op, np.zeros(20, dtype=int), np.ones(20), 3, p)
    assert (result.totals > 0).all()
    assert result.converged
    if not np.isinf(p):
        expected, shares, _ = oracle.mvkkm(kernels, np.zeros(20, dtype=int), np.ones(20), 3, p)
        np.testing.assert_array_equal(result.labels, expected)
        np.testing.assert_allclose(result.view_weights, shares, rtol=1e-7)


@forms
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_with_fewer_distinct_samples_than_clusters_the_rest_stay_empty_and_views_share_the_weight(form, p):
    data, rng = grouped(0, n=2)
    rows = np.repeat([0, 1], 6)
    op, _ = made(form, [X[rows] for X in data])
    result = run(op, start(rng, 12, 4), np.ones(12), 4, p)
    assert np.count_nonzero(result.totals) == 2
    assert (result.labels.reshape(2, 6) == result.labels.reshape(2, 6)[:, :1]).all()
    assert result.view_scatters.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(result.view_weights, [1 / 3] * 3)
    assert result.objective == pytest.approx(0.0, abs=1e-12)
    assert result.converged


@pytest.mark.parametrize("form", ["dense", "graph", "features", "sparse features"])
@pytest.mark.parametrize("p", [1.0, 1.0 + 1e-9, 1.5, 2.0, 100.0])
@pytest.mark.parametrize("n_clean", [1, 2])
def test_views_in_which_the_clusters_have_no_scatter_share_all_the_weight(form, p, n_clean):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(200) % 4)
    clean = [rng.standard_normal((4, 3))[y] for _ in range(n_clean)]
    op, _ = made(form, [*clean, rng.standard_normal((200, 3))])
    labels = np.where(rng.random(200) < 0.1, rng.integers(4, size=200), y)
    result = run(op, labels, np.ones(200), 4, p, np.r_[np.full(n_clean, 0.9 / n_clean), 0.1])
    np.testing.assert_array_equal(result.labels, y)
    np.testing.assert_allclose(result.view_weights, [*[1.0 / n_clean] * n_clean, 0.0], atol=1e-12)
    assert result.objective == pytest.approx(0.0, abs=1e-9)
    assert result.converged


@forms
def test_samples_without_weight_change_nothing_and_go_to_the_nearest_centre(form):
    data, rng = grouped(1, n=60)
    labels, weights = start(rng, 60, 3), np.r_[np.ones(50), np.zeros(10)]
    labels[:3] = np.arange(3)
    op, kernels = made(form, data)
    result = run(op, labels, weights, 3, 2.0)
    without = run(made(form, [X[:50] for X in data])[0], labels[:50], np.ones(50), 3, 2.0)
    np.testing.assert_array_equal(result.labels[:50], without.labels)
    np.testing.assert_allclose(result.view_weights, without.view_weights, rtol=1e-9)
    assert result.objective == pytest.approx(without.objective)
    K = oracle.composite(kernels, result.view_weights, 2.0)
    expected = oracle.nearest_centres(K[50:, :50], K[:50, :50], without.labels, np.ones(50), 3)
    np.testing.assert_array_equal(result.labels[50:], expected)


# --- how a run ends --------------------------------------------------------------------------------------------------


def test_the_bound_on_outer_steps_ends_a_run_and_says_so():
    data, rng = grouped(2)
    labels, (op, _) = start(rng, 120, 6), made("dense", data)
    whole = run(op, labels, np.ones(120), 6, 1.5)
    assert whole.n_iter > 3
    for steps in (1, 2):
        result = run(op, labels, np.ones(120), 6, 1.5, max_iter=steps)
        assert result.n_iter == steps
        assert not result.converged
        assert result.history == whole.history[: steps + 1]
    assert run(op, labels, np.ones(120), 6, 1.5, max_iter=whole.n_iter).converged


def test_the_bound_on_inner_steps_holds_in_every_outer_step():
    data, rng = grouped(2)
    labels, (op, _) = start(rng, 120, 6), made("dense", data)
    result = run(op, labels, np.ones(120), 6, 1.5, max_steps=1)
    assert result.converged
    assert result.n_steps <= result.n_iter
    never_rises(result.history)
    short = run(op, labels, np.ones(120), 6, 1.5, learned=False, max_steps=2)
    assert short.n_steps == 2
    assert not short.converged


@pytest.mark.parametrize("learned", [True, False])
def test_a_tolerance_ends_a_run_early(learned):
    data, rng = grouped(2, n=300)
    labels, (op, _) = start(rng, 300, 8), made("dense", data)
    strict = run(op, labels, np.ones(300), 8, 2.0, learned=learned)
    loose = run(op, labels, np.ones(300), 8, 2.0, learned=learned, tol=1e-2)
    assert loose.converged
    assert loose.n_steps < strict.n_steps
    assert loose.history[-2] - loose.history[-1] <= 1e-2 * loose.history[-1]
    assert loose.objective >= strict.objective


def test_a_run_says_that_a_step_of_any_round_would_have_raised_the_objective():
    rose, forgotten = 0, []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        kernels = [A + A.T for A in rng.standard_normal((2, 20, 20))]
        op, labels = composite([DenseKernel(K) for K in kernels], np.ones(2)), start(rng, 20, 3)
        first, whole = (run(op, labels, np.ones(20), 3, 2.0, max_iter=rounds) for rounds in (1, 100))
        rose += first.rose
        forgotten += [seed] * (first.rose and not whole.rose)
    assert rose >= 6
    assert forgotten == []


def test_every_outer_step_is_reported_with_its_objective():
    data, rng = grouped(2)
    labels, (op, _), reported = start(rng, 120, 4), made("features", data), []
    result = run(op, labels, np.ones(120), 4, 2.0, on_step=reported.append)
    assert tuple(reported) == result.history[1:]
    reported.clear()
    fixed = run(op, labels, np.ones(120), 4, 2.0, learned=False, on_step=reported.append)
    assert tuple(reported) == fixed.history[1:]


@forms
def test_arguments_are_left_as_they_were(form):
    data, rng = grouped(2, n=40)
    labels, weights, first = start(rng, 40, 3), rng.uniform(0.5, 1.0, 40), np.array([0.2, 0.3, 0.5])
    copies, (op, _) = (labels.copy(), weights.copy(), first.copy()), made(form, data)
    before = op.coefficients.copy()
    for options in ({}, {"learned": False}):
        run(op, labels, weights, 3, 2.0, first, **options).labels[:] = 0
        for value, copy in zip((labels, weights, first), copies, strict=True):
            np.testing.assert_array_equal(value, copy)
        np.testing.assert_array_equal(op.coefficients, before)


# --- labels of some samples, extended --------------------------------------------------------------------------------


@forms
def test_labels_of_some_samples_are_extended_to_the_nearest_of_their_centres(form):
    data, rng = grouped(0, n=60)
    op, kernels = made(form, data)
    op = op.with_weights([0.5, 0.3, 0.2])
    K, weights = 0.5 * kernels[0] + 0.3 * kernels[1] + 0.2 * kernels[2], rng.uniform(0.5, 2.0, 60)
    chosen = np.sort(rng.choice(60, 25, replace=False))
    result = kernel_kmeans(op.take(chosen), start(rng, 25, 3), weights[chosen], n_clusters=3).labels
    labels = extended_labels(op, result, chosen, weights, 3)
    expected = oracle.nearest_centres(K[:, chosen], K[np.ix_(chosen, chosen)], result, weights[chosen], 3)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(labels[chosen], result)
    assert algebra.cluster_weights(labels, weights, 3).min() > 0
