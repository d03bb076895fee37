"""MinMax k-means on any kernel: against the plain oracle, k-means as its special case, its laws and its guarantees."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from kernelweave.backends import get_backend
from kernelweave.foundation import threads
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.transforms import ScaledKernel
from kernelweave.kernels.weighted_sum import CompositeKernel
from kernelweave.solvers.kmeans.kernel_kmeans import kernel_kmeans
from kernelweave.solvers.kmeans.minmax import (
    DRAWS,
    ExponentSchedule,
    balanced_weights,
    best_minmax,
    coefficients,
    drawn_minmax,
    minmax_kmeans,
)
from tests.reference import minmax as oracle
from tests.strategies import generators, indefinite_kernels, sample_weights, samples

cases = settings(max_examples=30, deadline=None)
SIGMA = 1.5


@st.composite
def options(draw, max_iter=(1, 2, 3, 10, 100)):
    """Draw parameters: exponents that rise slowly, at once or never, and all kinds of memory."""
    p_init = draw(st.sampled_from([0.0, 0.0, 0.2, 0.5]))
    return {
        "p_init": p_init,
        "p_max": max(p_init, draw(st.sampled_from([0.0, 0.3, 0.5, 0.7, 0.9]))),
        "p_step": draw(st.sampled_from([0.02, 0.1, 0.25, 2.0])),
        "memory": draw(st.sampled_from([0.0, 0.1, 0.3, 1.0])),
        "tol": draw(st.sampled_from([1e-6, 1e-3])),
        "max_iter": draw(st.sampled_from(max_iter)),
    }


@st.composite
def problems(draw, max_n=14, kinds=("general", "grid", "duplicates", "constant feature", "zero row")):
    """Draw samples, labels of a start, weights, the number of clusters."""
    X, rng = draw(samples(max_n=max_n, n_features=2, kinds=kinds)), draw(generators())
    k = draw(st.integers(1, 4))
    return X, draw(starts(X, k, rng)), draw(sample_weights(len(X))), k


@st.composite
def starts(draw, X, k, rng):
    """Draw labels: those of random samples as centres, as a fit begins, or any."""
    if draw(st.booleans()):
        return oracle.nearest_centres(X, X[rng.choice(len(X), k, replace=False)])
    return rng.integers(k, size=len(X))


def gaussian(X):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * SIGMA**2))


def kernels(X, kind):
    """Return a kernel matrix and its operators in every storage."""
    if kind == "linear":
        plain_loops = FeatureKernel(X, backend=get_backend("numpy"))
        return X @ X.T, [FeatureKernel(X), FeatureKernel(sp.csr_array(X)), plain_loops, DenseKernel(X @ X.T)]
    fitted = fit_kernel(X, "rbf", {"sigma": SIGMA})
    K = gaussian(X)
    return K, [DenseKernel(K), fitted.operator("blockwise"), GraphKernel(sp.csr_array(K))]


def blobs(seed, n=60, k=4, spread=1.5, d=2):
    """Return overlapping groups and the labels of a random start."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-6, 6, (k, d))[rng.integers(k, size=n)] + spread * rng.standard_normal((n, d))
    return X, nearest(X, X[rng.choice(n, k, replace=False)])


def nearest(X, centres):
    return ((X[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)


def variances_of(X, labels, weights, k):
    """Return the variance of every cluster and its number of samples with a weight, without any kernel."""
    variances = np.zeros(k)
    for c in range(k):
        inside, mass = X[labels == c], weights[labels == c]
        if mass.sum() > 0:
            variances[c] = mass @ ((inside - mass @ inside / mass.sum()) ** 2).sum(axis=1)
    return variances, np.bincount(labels[weights > 0], minlength=k)


# --- against the oracle ----------------------------------------------------------------------------------------------


def assert_follows(result, expected, K, weights):
    """Compare a run with the oracle, which never stops early in a circle."""
    np.testing.assert_array_equal(result.labels, expected.labels)
    assert result.p == pytest.approx(expected.p, rel=0, abs=1e-12)
    assert result.converged == expected.converged
    noise = 1e-9 * np.abs(np.diagonal(K)).max() * weights.sum()
    np.testing.assert_allclose(result.cluster_weights, expected.weights, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(result.scatter, expected.variances, rtol=1e-7, atol=noise)
    np.testing.assert_allclose(result.history, expected.path[: result.n_iter], rtol=1e-7, atol=noise)
    assert result.n_iter == len(expected.path) or (result.circling and result.n_iter < len(expected.path))


@settings(max_examples=100, deadline=None)
@given(problem=problems(), option=options(), kind=st.sampled_from(["linear", "rbf"]))
def test_every_storage_ends_where_the_plain_oracle_ends_after_all_its_steps(problem, option, kind):
    X, labels, weights, k = problem
    K, ops = kernels(X, kind)
    expected = oracle.minmax(K, labels, weights, k, **option)
    for op in ops:
        result = minmax_kmeans(op, labels, weights, n_clusters=k, **option)
        assert result.collapsed == expected.collapsed
        if not result.collapsed:
            assert_follows(result, expected, K, weights)


@cases
@given(problem=problems(), option=options(), kind=st.sampled_from(["linear", "rbf"]))
def test_a_start_that_cannot_be_followed_ends_as_k_means_from_the_same_start(problem, option, kind):
    X, labels, weights, k = problem
    K, ops = kernels(X, kind)
    expected = oracle.minmax(K, labels, weights, k, **option)
    assume(expected.collapsed)
    for op in ops:
        result = minmax_kmeans(op, labels, weights, n_clusters=k, **option)
        plain = kernel_kmeans(op, labels, weights, n_clusters=k, max_iter=option["max_iter"])
        assert result.collapsed
        assert not result.circling
        np.testing.assert_array_equal(result.labels, plain.labels)
        assert (result.history, result.converged) == (plain.history, plain.converged)
        assert result.p == option["p_init"]
        np.testing.assert_array_equal(result.cluster_weights, np.full(k, 1.0 / k))
        np.testing.assert_array_equal(result.scatter, plain.scatter)
        assert result.history[0] == pytest.approx(expected.path[0], abs=1e-9 * np.abs(K).max() * weights.sum())


def test_a_start_that_cannot_be_followed_ends_the_same_in_every_storage():
    # A cluster of two has both its samples at the same distance from its centre: which of them opens an empty
    # cluster must follow from a rule and not from rounding.
    different = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, labels = rng.standard_normal((7, 2)), rng.permutation([0, 0, 1, 1, 2, 2, 2])
        ops = [FeatureKernel(X), FeatureKernel(sp.csr_array(X)), DenseKernel(X @ X.T)]
        runs = [minmax_kmeans(op, labels, np.ones(7), n_clusters=4) for op in ops]
        assert all(run.collapsed for run in runs)
        different += [seed] * any(not np.array_equal(runs[0].labels, run.labels) for run in runs[1:])
    assert different == []


@cases
@given(K=indefinite_kernels(min_n=4, max_n=12), rng=generators(), k=st.integers(1, 3), option=options())
def test_an_indefinite_kernel_is_followed_as_the_oracle_follows_it(K, rng, k, option):
    labels, weights = rng.integers(k, size=len(K)), np.ones(len(K))
    expected = oracle.minmax(K, labels, weights, k, **option)
    result = minmax_kmeans(DenseKernel(K), labels, weights, n_clusters=k, **option)
    assert result.collapsed == expected.collapsed
    if not result.collapsed:
        assert_follows(result, expected, K, weights)


def test_a_run_in_a_circle_is_not_followed_further_and_ends_where_all_steps_would_have_ended():
    circles = 0
    for seed in range(25):
        X, labels = blobs(seed, n=18, k=3)
        for max_iter in (60, 61, 65):
            option = {"p_step": 0.1, "max_iter": max_iter}
            result = minmax_kmeans(FeatureKernel(X), labels, np.ones(18), n_clusters=3, **option)
            if not result.circling:
                break
            circles += result.n_iter < max_iter
            assert result.ended
            assert not result.converged
            expected = oracle.minmax(X @ X.T, labels, np.ones(18), 3, **option)
            assert_follows(result, expected, X @ X.T, np.ones(18))
    assert circles >= 6


# --- p stays at zero: k-means ----------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**16), n=st.integers(20, 120), k=st.integers(1, 5), memory=st.sampled_from([0.0, 0.3, 1.0]))
def test_without_an_exponent_every_step_is_one_of_k_means(seed, n, k, memory):
    X = blobs(seed, n=n, k=k, spread=2.5)[0]
    op, weights = FeatureKernel(X), np.ones(n)
    centres = X[np.random.default_rng(seed).choice(n, k, replace=False)]
    labels = nearest(X, centres)

    def minmax(steps):
        return minmax_kmeans(op, labels, weights, n_clusters=k, p_max=0.0, memory=memory, tol=0.0, max_iter=steps)

    whole = minmax(300)
    assume(not whole.collapsed)
    np.testing.assert_array_equal(minmax(1).labels, labels)
    for steps in range(1, 6):  # the first partition is that of the centres: one step ahead
        result = minmax(steps + 1)
        plain = kernel_kmeans(op, labels, weights, n_clusters=k, max_iter=steps)
        lloyd = KMeans(k, init=centres, n_init=1, max_iter=steps, tol=0, algorithm="lloyd").fit(X)
        np.testing.assert_array_equal(result.labels, plain.labels)
        np.testing.assert_array_equal(result.labels, lloyd.labels_)
        assert result.inertia == pytest.approx(plain.objective, rel=1e-9)
    lloyd = KMeans(k, init=centres, n_init=1, tol=0, algorithm="lloyd").fit(X)
    np.testing.assert_array_equal(whole.labels, lloyd.labels_)
    assert whole.converged
    assert whole.objective == whole.inertia == pytest.approx(lloyd.inertia_)
    assert whole.n_iter == lloyd.n_iter_


@cases
@given(problem=problems(max_n=30), memory=st.sampled_from([0.0, 0.3]))
def test_with_all_memory_the_weights_stay_equal_and_the_partitions_are_those_of_k_means(problem, memory):
    X, labels, weights, k = problem
    common = {"labels": labels, "weights": weights, "n_clusters": k}
    result = minmax_kmeans(FeatureKernel(X), memory=1.0, p_step=0.1, p_max=0.7, tol=0.0, **common)
    plain = minmax_kmeans(FeatureKernel(X), memory=memory, p_max=0.0, tol=0.0, **common)
    assume(not (result.collapsed or plain.collapsed))
    np.testing.assert_array_equal(result.labels, plain.labels)
    np.testing.assert_array_equal(result.cluster_weights, np.full(k, 1.0 / k))


# --- no cluster without variance -------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    problem=problems(max_n=25, kinds=("general", "grid", "duplicates")),
    option=options(max_iter=(1, 2, 3, 4, 8, 25, 500)),
    far=st.booleans(),
)
def test_no_empty_single_or_equal_cluster_ever_survives(problem, option, far):
    X, labels, weights, k = problem
    X = X.copy()
    X[0] += 30.0 * far
    result = minmax_kmeans(FeatureKernel(X), labels, weights, n_clusters=k, **option)
    if result.collapsed:
        return
    variances, members = variances_of(X, result.labels, weights, k)
    assert (members >= 2).all()
    assert (variances > 0).all()
    assert (result.scatter > 0).all()
    for c in range(k):
        assert len(np.unique(X[(result.labels == c) & (weights > 0)], axis=0)) >= 2


@pytest.mark.parametrize(
    ("x", "start"),
    [
        ([0.0, 1.0, 2.0, 3.0], [0, 0, 0, 0]),  # empty
        ([0.0, 1.0, 2.0, 9.0], [0, 0, 0, 1]),  # a single sample
        ([0.0, 1.0, 5.0, 5.0], [0, 0, 1, 1]),  # equal samples
    ],
    ids=["empty", "single", "equal"],
)
@pytest.mark.parametrize("max_iter", [1, 2, 500])
def test_a_start_with_such_a_cluster_is_given_to_k_means(x, start, max_iter):
    x = np.array(x)[:, None]
    result = minmax_kmeans(FeatureKernel(x), np.array(start), np.ones(4), n_clusters=2, max_iter=max_iter)
    assert result.collapsed
    plain = kernel_kmeans(FeatureKernel(x), np.array(start), np.ones(4), n_clusters=2, max_iter=max_iter)
    np.testing.assert_array_equal(result.labels, plain.labels)
    assert result.inertia == pytest.approx(plain.objective)


def test_rounding_left_behind_by_samples_of_great_weight_is_no_variance_of_a_single_sample():
    # Samples 0 and 1 leave cluster 0 for the clusters at -10 and 10; sample 6 remains, and what is left of their sums.
    for seed in range(20):
        heavy = np.array([-1.0, 1.0, -1.0, 1.0]) * np.random.default_rng(seed).uniform(9.0, 11.0, 4)
        x = 20.0 + np.array([*heavy, -8.0, 8.5, 0.0])[:, None]
        weights, labels = np.array([1e8, 1e8, 1e8, 1e8, 1.0, 1.0, 1.0]), np.array([0, 0, 1, 2, 1, 2, 0])
        result = minmax_kmeans(DenseKernel(x @ x.T), labels, weights, n_clusters=3)
        assert result.collapsed
        assert result.labels.tolist() == [1, 2, 1, 2, 1, 2, 0]


def test_a_second_sample_without_weight_does_not_make_a_cluster():
    x = np.array([[0.0], [1.0], [8.0], [9.0]])
    weights = np.array([1.0, 1.0, 1.0, 0.0])
    assert minmax_kmeans(FeatureKernel(x), np.array([0, 0, 1, 1]), weights, n_clusters=2).collapsed


# --- going back ------------------------------------------------------------------------------------------------------


def prefixes(op, labels, k, option, steps):
    """Return the runs cut after 1, 2, ... steps; cut runs show the state of every step."""
    weights = np.ones(op.n_samples)
    cut = [minmax_kmeans(op, labels, weights, n_clusters=k, **{**option, "max_iter": t + 1}) for t in range(steps)]
    return [None, *cut]


def reductions(runs):
    return [t for t in range(2, len(runs)) if runs[t].p < runs[t - 1].p - 1e-12]


@pytest.mark.parametrize("memory", [0.0, 0.3])
def test_going_back_restores_exactly_the_labels_and_weights_stored_for_that_exponent(memory):
    # Step t stores the labels it found, and the weights it found them with, for the t-th value of p.
    checked = 0
    for seed in range(25):
        X, labels = blobs(seed, n=20, k=4, spread=2.5)
        option = {"p_max": 0.9, "p_step": 0.05, "memory": memory, "tol": 0.0}
        schedule = ExponentSchedule(0.0, 0.9, 0.05)
        op = FeatureKernel(X)
        whole = minmax_kmeans(op, labels, np.ones(20), n_clusters=4, max_iter=30, **option)
        if whole.collapsed:
            continue
        runs = prefixes(op, labels, 4, option, 30)
        back = reductions(runs)
        for t in back:
            level = round(runs[t].p / 0.05)
            assert runs[t].p == schedule.p(level) == pytest.approx(runs[t - 1].p - 0.05)
            stored = runs[level + 1]
            np.testing.assert_array_equal(runs[t].labels, stored.labels)
            used = runs[level].cluster_weights if level else np.full(4, 0.25)
            fresh = balanced_weights(stored.scatter, runs[t].p)
            np.testing.assert_allclose(runs[t].cluster_weights, memory * used + (1 - memory) * fresh, rtol=1e-9)
            checked += 1
        falling = [one.p for one in runs[back[0] :]] if back else []
        assert falling == sorted(falling, reverse=True)  # p never rises again
    assert checked >= 15


def test_the_weights_restored_decide_the_steps_that_follow():
    # With memory the stored weights enter the next ones; equal paths show that they were the right ones.
    followed = 0
    for seed in range(40):
        X, labels = blobs(seed, n=14, k=3, spread=2.5)
        option = {"p_max": 0.9, "p_step": 0.1, "memory": 0.5, "max_iter": 30}
        expected = oracle.minmax(X @ X.T, labels, np.ones(14), 3, **option)
        if expected.collapsed or expected.p > 0.85:
            continue
        followed += 1
        for op in (FeatureKernel(X), DenseKernel(X @ X.T)):
            result = minmax_kmeans(op, labels, np.ones(14), n_clusters=3, **option)
            assert_follows(result, expected, X @ X.T, np.ones(14))
    assert followed >= 5


# --- the exponents and the weights -----------------------------------------------------------------------------------


def test_the_exponent_rises_in_whole_steps_and_ends_at_its_largest_value():
    schedule = ExponentSchedule(0.0, 0.5, 0.01)
    assert schedule.top == 50
    assert [schedule.p(level) for level in range(52)] == pytest.approx([0.01 * t for t in range(51)] + [0.5])
    assert schedule.p(50) == 0.5


@pytest.mark.parametrize(
    ("limits", "values"),
    [
        ((0.0, 0.5, 0.2), [0.0, 0.2, 0.4, 0.5]),
        ((0.1, 0.4, 0.3), [0.1, 0.4]),
        ((0.0, 0.3, 0.1), [0.0, 0.1, 0.2, 0.3]),  # 0.3 / 0.1 is below 3
        ((0.3, 0.3, 0.1), [0.3]),
        ((0.0, 0.0, 0.1), [0.0]),
        ((0.2, 0.5, 7.0), [0.2, 0.5]),
        ((0.0, 0.9, 0.3), [0.0, 0.3, 0.6, 0.9]),  # three steps of 0.3 are not quite 0.9
    ],
)
def test_the_last_step_is_cut_at_the_largest_exponent(limits, values):
    schedule = ExponentSchedule(*limits)
    assert [schedule.p(level) for level in range(schedule.top + 1)] == pytest.approx(values, rel=1e-12)
    assert schedule.p(schedule.top) == limits[1]


@cases
@given(seed=st.integers(0, 2**16), k=st.integers(2, 6), p=st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.99]))
def test_the_balanced_weights_make_the_objective_largest_over_the_simplex(seed, k, p):
    rng = np.random.default_rng(seed)
    variances = 10.0 ** rng.uniform(-2, 2, k)
    shares = balanced_weights(variances, p)
    top = float(np.sum(shares**p * variances))
    others = np.concatenate([rng.dirichlet(np.full(k, alpha), 300) for alpha in (0.2, 1.0, 5.0)])
    near = np.abs(shares + 0.01 * shares.min() * rng.standard_normal((100, k)))
    others = np.concatenate([others, near / near.sum(axis=1, keepdims=True)])
    assert ((others**p * variances).sum(axis=1) <= top * (1 + 1e-12)).all()


@cases
@given(seed=st.integers(0, 2**16), k=st.integers(1, 6), p=st.floats(0.0, 0.95))
def test_the_balanced_weights_are_those_of_the_formula_and_a_stationary_point(seed, k, p):
    variances = np.random.default_rng(seed).uniform(0.1, 10.0, k)
    shares = balanced_weights(variances, p)
    powers = variances ** (1.0 / (1.0 - p))
    np.testing.assert_allclose(shares, powers / powers.sum(), rtol=1e-9)
    assert shares.sum() == pytest.approx(1.0, rel=1e-14)
    if shares.min() > 1e-12:
        slopes = shares ** (p - 1.0) * variances  # the derivative over p: the same for every cluster
        np.testing.assert_allclose(slopes, slopes[0], rtol=1e-6)
    step = 1e-6 * shares.min()
    for c in range(k if p > 0.05 else 0):
        for d in range(c):
            move = np.zeros(k)
            move[c], move[d] = step, -step
            rise, fall = (np.sum((shares + sign * move) ** p * variances) for sign in (1, -1))
            assert rise - fall == pytest.approx(0.0, abs=1e-7 * np.sum(shares**p * variances))


@pytest.mark.parametrize("p", [0.0, 0.5, 0.99, 1 - 1e-9, np.nextafter(1.0, 0.0)])
def test_no_variance_however_small_or_large_overflows(p):
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for variances in ([1e-300, 1.0, 1e300], [1e300, 1e300], [1e-300, 1e-300], [5e-324, 1.7e308], [3.0]):
            shares = balanced_weights(np.array(variances), p)
            assert np.isfinite(shares).all()
            assert shares.sum() == pytest.approx(1.0)
            assert (np.diff(shares) >= 0).all()  # never less for more variance
            coefs = coefficients(shares, p)
            assert coefs.max() == 1.0
            assert (coefs >= 0).all()
    np.testing.assert_array_equal(balanced_weights(np.full(4, 1e300), p), 0.25)


@cases
@given(problem=problems(max_n=25), option=options())
def test_what_a_run_tells_of_its_partition_fits_together(problem, option):
    X, labels, weights, k = problem
    result = minmax_kmeans(FeatureKernel(X), labels, weights, n_clusters=k, **option)
    variances, _ = variances_of(X, result.labels, weights, k)
    noise = 1e-11 * (X**2).sum(axis=1).max() * weights.sum()
    np.testing.assert_allclose(result.scatter, variances, rtol=0, atol=noise)
    assert result.inertia == pytest.approx(variances.sum(), abs=noise)
    assert result.max_variance == pytest.approx(variances.max(), abs=noise)
    assert result.cluster_weights.sum() == pytest.approx(1.0)
    assert (result.cluster_weights >= 0).all()
    assert option["p_init"] <= result.p <= option["p_max"] + 1e-12
    assert result.objective == result.history[-1]
    if not result.collapsed:
        assert result.n_iter == len(result.history) <= option["max_iter"]
        ew = float(np.sum(result.cluster_weights**result.p * result.scatter))
        assert result.objective == pytest.approx(ew, rel=1e-9, abs=noise)
        raw = result.cluster_weights**result.p
        np.testing.assert_allclose(result.coefs, raw / raw.max(), rtol=1e-12)


# --- laws ------------------------------------------------------------------------------------------------------------

runs_of_groups = given(
    seed=st.integers(0, 2**16), n=st.integers(20, 60), k=st.integers(1, 4), memory=st.sampled_from([0.0, 0.3])
)


def run(op, labels, k, weights=None, **option):
    """Return a run with large steps of p, which many of these cases must take back."""
    weights = np.ones(op.n_samples) if weights is None else weights
    return minmax_kmeans(op, labels, weights, n_clusters=k, **{"p_step": 0.05, "p_max": 0.7, "max_iter": 120, **option})


@cases
@runs_of_groups
def test_a_weight_is_the_same_as_repetition(seed, n, k, memory):
    X, labels = blobs(seed, n=n, k=k)
    counts = np.random.default_rng(seed).integers(1, 4, n)
    weighted = run(FeatureKernel(X), labels, k, counts.astype(float), memory=memory)
    rows = np.repeat(np.arange(n), counts)
    repeated = run(FeatureKernel(X[rows]), labels[rows], k, memory=memory)
    assert weighted.collapsed == repeated.collapsed
    assume(not weighted.collapsed)
    np.testing.assert_array_equal(weighted.labels[rows], repeated.labels)
    np.testing.assert_allclose(weighted.history, repeated.history, rtol=1e-7)
    assert weighted.p == repeated.p


@cases
@runs_of_groups
def test_weights_count_only_next_to_each_other(seed, n, k, memory):
    X, labels = blobs(seed, n=n, k=k)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, n)
    one, other = (run(FeatureKernel(X), labels, k, factor * weights, memory=memory) for factor in (1.0, 37.0))
    assume(not one.collapsed)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.cluster_weights, other.cluster_weights, rtol=1e-6, atol=1e-12)


@cases
@runs_of_groups
def test_samples_of_weight_zero_change_nothing(seed, n, k, memory):
    X, labels = blobs(seed, n=n, k=k)
    weights = (np.random.default_rng(seed).random(n) < 0.7).astype(float)
    assume(weights.sum() >= 2)
    kept = weights > 0
    whole = run(FeatureKernel(X), labels, k, weights, memory=memory)
    alone = run(DenseKernel(X[kept] @ X[kept].T), labels[kept], k, memory=memory)
    assert whole.collapsed == alone.collapsed
    assume(not whole.collapsed)
    np.testing.assert_array_equal(whole.labels[kept], alone.labels)


@cases
@runs_of_groups
def test_reordering_the_samples_reorders_the_labels(seed, n, k, memory):
    X, labels = blobs(seed, n=n, k=k)
    order = np.random.default_rng(seed).permutation(n)
    plain = run(FeatureKernel(X), labels, k, memory=memory)
    shuffled = run(FeatureKernel(X[order]), labels[order], k, memory=memory)
    assert plain.collapsed == shuffled.collapsed
    assume(not plain.collapsed)
    np.testing.assert_array_equal(plain.labels[order], shuffled.labels)


@cases
@runs_of_groups
def test_renumbering_the_clusters_of_the_start_renumbers_those_of_the_end(seed, n, k, memory):
    X, labels = blobs(seed, n=n, k=k)
    names = np.random.default_rng(seed).permutation(k)
    plain = run(FeatureKernel(X), labels, k, memory=memory)
    renamed = run(FeatureKernel(X), names[labels], k, memory=memory)
    assert plain.collapsed == renamed.collapsed
    assume(not plain.collapsed)
    np.testing.assert_array_equal(names[plain.labels], renamed.labels)
    np.testing.assert_allclose(renamed.cluster_weights[names], plain.cluster_weights, rtol=1e-6, atol=1e-12)


@cases
@runs_of_groups
def test_size_and_place_of_the_data_do_not_matter(seed, n, k, memory):
    X, labels = blobs(seed, n=n, k=k)
    plain = run(FeatureKernel(X), labels, k, memory=memory)
    larger = run(FeatureKernel(1e4 * X), labels, k, memory=memory)
    smaller = run(ScaledKernel(DenseKernel(X @ X.T), 1e-9), labels, k, memory=memory)
    moved = run(FeatureKernel(X + np.array([20.0, -7.0])), labels, k, memory=memory)
    assume(not plain.collapsed)
    for other in (larger, smaller, moved):
        np.testing.assert_array_equal(plain.labels, other.labels)
        assert plain.p == other.p
    np.testing.assert_allclose(1e8 * np.array(plain.history), larger.history, rtol=1e-7)
    np.testing.assert_allclose(plain.history, moved.history, rtol=1e-7)


@cases
@runs_of_groups
def test_every_storage_of_a_kernel_and_a_view_given_twice_end_equally(seed, n, k, memory):
    X, labels = blobs(seed, n=n, k=k)
    for kind in ("linear", "rbf"):
        ops = kernels(X, kind)[1]
        ops.append(CompositeKernel([ops[0], ops[0]], [0.5, 0.5]))
        result = [run(op, labels, k, memory=memory) for op in ops]
        assert len({one.collapsed for one in result}) == 1
        if not result[0].collapsed:
            for other in result[1:]:
                np.testing.assert_array_equal(result[0].labels, other.labels)
                np.testing.assert_allclose(result[0].history, other.history, rtol=1e-7)


@cases
@given(problem=problems(), option=options())
def test_one_cluster_is_everything_at_once(problem, option):
    X, _, weights, _ = problem
    result = minmax_kmeans(FeatureKernel(X), np.zeros(len(X), dtype=int), weights, n_clusters=1, **option)
    assert (result.labels == 0).all()
    np.testing.assert_array_equal(result.cluster_weights, [1.0])
    if not result.collapsed and option["max_iter"] > 1:
        assert result.converged
        assert result.n_iter == 2


def test_labels_of_any_integer_type_are_taken_and_left_as_they_were():
    X, labels = blobs(0)
    wanted = run(FeatureKernel(X), labels, 4).labels
    for dtype in (np.int8, np.uint16, np.int32):
        narrow = labels.astype(dtype)
        np.testing.assert_array_equal(run(FeatureKernel(X), narrow, 4).labels, wanted)
        np.testing.assert_array_equal(narrow, labels)


def test_more_clusters_than_a_byte_can_number_are_stored_and_restored():
    rng = np.random.default_rng(0)
    X = rng.uniform(-6, 6, (280, 2))[np.repeat(np.arange(280), 4)] + 0.05 * rng.standard_normal((1120, 2))
    labels = np.repeat(np.arange(280), 4)
    op = FeatureKernel(X)
    result = minmax_kmeans(op, labels, np.ones(1120), n_clusters=280, p_max=0.9, p_step=0.3, memory=0.0, max_iter=8)
    again = minmax_kmeans(op, labels, np.ones(1120), n_clusters=280, p_max=0.9, p_step=0.3, memory=0.0, max_iter=8)
    assert not result.collapsed
    assert result.p < 0.9  # went back
    assert result.labels.max() == 279
    np.testing.assert_array_equal(result.labels, again.labels)


@pytest.mark.parametrize("d", [2, 40])
def test_labels_and_history_are_bit_identical_on_any_number_of_threads(d, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9000, d)) + 4.0 * rng.integers(0, 5, (9000, 1))
    labels = nearest(X, X[rng.choice(9000, 6, replace=False)])
    runs = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        with threadpool_limits(2, user_api="blas"):
            runs.append(minmax_kmeans(FeatureKernel(X), labels, np.ones(9000), n_clusters=6, p_step=0.1, max_iter=12))
    for other in runs[1:]:
        np.testing.assert_array_equal(runs[0].labels, other.labels)
        assert runs[0].history == other.history


# --- the best of several ---------------------------------------------------------------------------------------------


def drawn(labels):
    """Run from one drawn start after the other; return the run and how many were drawn."""
    x, draws = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.5]]), iter(labels)
    count = []

    def draw():
        count.append(1)
        return np.array(next(draws))

    return drawn_minmax(FeatureKernel(x), draw, np.ones(6), n_clusters=2), len(count)


def test_a_start_without_variance_is_drawn_again_until_one_can_be_followed():
    empty, single, good = [0] * 6, [0] * 5 + [1], [0, 0, 0, 1, 1, 1]
    result, count = drawn([empty, single, good, empty])
    assert count == 3
    assert not result.collapsed
    assert result.labels.tolist() == good
    assert drawn([good])[1] == 1


def test_after_so_many_draws_the_best_solution_of_k_means_is_returned():
    result, count = drawn([[0] * 6, [1, 0, 0, 0, 0, 0]] * DRAWS)
    assert count == DRAWS
    assert result.collapsed
    assert result.inertia == pytest.approx(2.0 + 3.1666666666666665)


def candidate(variance, *, collapsed=False):
    """Return a run of which only the largest variance and the collapse matter."""
    X, labels = blobs(0)
    result = minmax_kmeans(FeatureKernel(X), labels, np.ones(len(X)), n_clusters=4, max_iter=3)
    return replace(result, scatter=np.array([variance, 1.0, 1.0, 1.0]), collapsed=collapsed)


def refinement(objective):
    X, labels = blobs(0)
    result = kernel_kmeans(FeatureKernel(X), labels, np.ones(len(X)), n_clusters=4)
    return replace(result, history=(objective,))


def test_the_run_of_least_largest_variance_is_kept_and_the_earliest_of_equals():
    runs = [(candidate(value), None) for value in (5.0, 3.0, 3.0 * (1 + 1e-13), 4.0)]
    assert best_minmax(runs) is runs[1]
    assert best_minmax(iter(runs[::-1])) is runs[2]


def test_a_run_that_fell_back_on_k_means_counts_only_where_all_did():
    fallen = [(candidate(2.0, collapsed=True), None), (candidate(1.5, collapsed=True), None)]
    whole = [(candidate(9.0), None), (candidate(8.0), None)]
    assert best_minmax(fallen + whole) is whole[1]
    assert best_minmax(whole[:1] + fallen) is whole[0]
    assert best_minmax(fallen) is fallen[1]


def test_after_refinement_the_least_objective_is_kept():
    runs = [(candidate(2.0), refinement(8.0)), (candidate(9.0), refinement(7.0)), (candidate(1.0), refinement(7.5))]
    assert best_minmax(runs) is runs[1]
    fallen = [*runs, (candidate(5.0, collapsed=True), refinement(6.0))]
    assert best_minmax(fallen) is fallen[3]
