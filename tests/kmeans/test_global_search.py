"""Global search against an exhaustive oracle, and against itself: other storage, threads, tables and clocks."""

import itertools
import time
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from kernelweave.backends import get_backend, numpy_loops
from kernelweave.backends.compiled import candidate_search, row_loops
from kernelweave.backends.host import HostBackend
from kernelweave.kernels.dense import DenseKernel
from kernelweave.kernels.divergences import KernelDivergence
from kernelweave.kernels.features import FeatureKernel
from kernelweave.kernels.graph import GraphKernel
from kernelweave.kernels.sharpness import graph_beta, kernel_beta, reference_beta
from kernelweave.kernels.spec.fitting import fit_kernel
from kernelweave.kernels.transforms import ScaledKernel
from kernelweave.solvers.kmeans import global_search
from kernelweave.solvers.kmeans.global_search import global_kernel_kmeans
from kernelweave.solvers.kmeans.kernel_kmeans import descend_from, kernel_kmeans
from kernelweave.solvers.mixtures.exemplars import exemplars
from tests.reference import global_search as oracle
from tests.reference import kernel_kmeans as entrywise
from tests.strategies import generators, indefinite_kernels, psd_kernels, sample_weights

quick = settings(max_examples=30, deadline=None)
PROBLEMS = 25  # of each of the eight families: 200 in all
SEARCHES = ("exact", "fast", "exemplars")


# --- generated problems ----------------------------------------------------------------------------------------------


def gaussian(X, width=4.0):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / width)


def symmetric(A):
    return np.triu(A) + np.triu(A, 1).T


def with_signs(B, signs):
    """Return the kernel of features some of which count negatively: of low rank, and indefinite."""
    return symmetric((B * signs) @ B.T)


FAMILIES = {
    "cloud": lambda rng, n: gaussian(rng.standard_normal((n, 3)) * rng.uniform(0.5, 3.0)),
    "groups, linear": lambda rng, n: FeatureKernel(
        rng.standard_normal((n, 2)) + 4.0 * rng.integers(0, 4, (n, 1))
    ).block(slice(None), slice(None)),
    "grid, linear": lambda rng, n: with_signs(rng.integers(-2, 3, (n, 2)).astype(float), np.ones(2)),
    "repeated samples": lambda rng, n: gaussian(rng.standard_normal((8, 2))[rng.integers(8, size=n)]),
    "random, indefinite": lambda rng, n: symmetric(rng.standard_normal((n, n))),
    "signs, indefinite": lambda rng, n: symmetric(np.triu(rng.integers(-1, 2, (n, n)), 1).astype(float)),
    "low rank, indefinite": lambda rng, n: with_signs(rng.standard_normal((n, 4)), np.array([3.0, 2.0, 1.0, -2.5])),
    "cloud with noise, indefinite": lambda rng, n: (
        gaussian(2.0 * rng.standard_normal((n, 2))) + 0.2 * symmetric(rng.standard_normal((n, n)))
    ),
}
PSD = [name for name in FAMILIES if "indefinite" not in name]
INDEFINITE = [name for name in FAMILIES if "indefinite" in name]


def some_weights(rng, n, kind):
    if kind == "ones":
        return np.ones(n)
    if kind == "counts":
        return rng.integers(1, 4, n).astype(float)
    weights = rng.uniform(0.1, 3.0, n)
    weights[rng.permutation(n)[: n // 3]] *= kind != "a third zero"
    return weights


def problem(family, seed, n=None, max_clusters=6):
    """Return a kernel, weights (by turns equal, positive, with zeros, whole) and a number of clusters.

    There are more distinct samples of positive weight than clusters, so that no stage leaves nothing to explain.
    """
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    n = int(rng.integers(8, 20)) if n is None else n
    K = FAMILIES[family](rng, n)
    weights = some_weights(rng, n, ("ones", "positive", "a third zero", "counts")[seed % 4])
    distinct = len(np.unique(np.round(K[weights > 0], 9), axis=0))
    return K, weights, int(min(rng.integers(2, max_clusters + 1), distinct - 1))


def groups(n, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    return 6.0 * rng.integers(0, 3, (n, 2)) + spread * rng.standard_normal((n, 2))


def assert_same_path(path, solutions, K, weights):
    """Labels and objectives of every stage are equal; objectives up to their rounding."""
    assert len(path.stages) == len(solutions)
    rounding = 1e-12 * weights.sum() * np.abs(K).max()
    for stage, solution in zip(path.stages, solutions, strict=True):
        np.testing.assert_array_equal(stage.labels, solution.labels)
        assert stage.objective == pytest.approx(solution.objective, rel=1e-9, abs=rounding)


def identical(one, other):
    return all(
        np.array_equal(a.labels, b.labels) and a.history == b.history
        for a, b in zip(one.stages, other.stages, strict=True)
    )


# --- the oracle itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_the_oracles_runs_are_those_of_the_entrywise_oracle(family):
    for seed in range(4):
        K, weights, k = problem(family, seed, n=14, max_clusters=4)
        labels = np.random.default_rng(seed).integers(k, size=14)
        result, path = oracle.kernel_kmeans(K, labels, weights, k)
        expected, expected_path = entrywise.kernel_kmeans(K, labels, weights, k)
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_allclose(path, expected_path, rtol=1e-9, atol=1e-10)


# --- every search against its oracle ---------------------------------------------------------------------------------


def test_there_are_two_hundred_problems():
    assert PROBLEMS * len(FAMILIES) == 200


@pytest.mark.parametrize("family", FAMILIES)
def test_exact_search_ends_as_if_every_sample_had_been_tried_to_its_end(family):
    for seed in range(PROBLEMS):
        K, weights, k = problem(family, seed)
        result = global_kernel_kmeans(DenseKernel(K), weights, n_clusters=k, how="exact")
        assert_same_path(result, oracle.exact_search(K, weights, k), K, weights)
        assert result.complete


@pytest.mark.parametrize("family", FAMILIES)
def test_fast_search_starts_each_stage_from_the_sample_of_largest_gain(family):
    for seed in range(8):
        K, weights, k = problem(family, seed)
        result = global_kernel_kmeans(DenseKernel(K), weights, n_clusters=k, how="fast")
        assert_same_path(result, oracle.fast_search(K, weights, k), K, weights)


@pytest.mark.parametrize("family", FAMILIES)
def test_exemplar_search_tries_its_exemplars_and_no_other_sample(family):
    for seed in range(8):
        K, weights, k = problem(family, seed)
        result = global_kernel_kmeans(DenseKernel(K), weights, n_clusters=k, how="exemplars", n_exemplars=5)
        assert 1 <= len(result.exemplars) <= 5
        assert_same_path(result, oracle.exemplar_search(K, weights, k, result.exemplars), K, weights)


@pytest.mark.parametrize("seed", range(6))
def test_where_a_stage_leaves_nothing_to_explain_the_first_of_equal_candidates_is_taken(seed):
    # Every candidate ends at an objective of 0 and a little rounding, which must not choose among them.
    rng = np.random.default_rng(seed)
    K = gaussian(rng.standard_normal((3, 2))[rng.integers(3, size=12)])
    weights = rng.uniform(0.1, 3.0, 12)
    distinct = len(np.unique(np.round(K, 9), axis=0))
    result = global_kernel_kmeans(DenseKernel(K), weights, n_clusters=distinct, how="exact")
    assert result.stages[-1].objective == pytest.approx(0.0, abs=1e-12)
    assert_same_path(result, oracle.exact_search(K, weights, distinct), K, weights)


@pytest.mark.parametrize("max_iter", [1, 2, 4])
def test_runs_cut_short_by_max_iter_end_where_plain_runs_cut_short_do(max_iter):
    for seed in range(12):
        K = gaussian(2.0 * np.random.default_rng(seed).standard_normal((30, 3)))
        result = global_kernel_kmeans(DenseKernel(K), np.ones(30), n_clusters=5, how="exact", max_iter=max_iter)
        assert_same_path(result, oracle.exact_search(K, np.ones(30), 5, max_iter), K, np.ones(30))


def global_kmeans(X, n_clusters):
    """Return the objectives of global k-means on vectors: each sample in turn leaves its cluster to open one."""
    labels, objectives = np.zeros(len(X), dtype=int), []
    for k in range(2, n_clusters + 1):
        runs = []
        for candidate in range(len(X)):
            new, old = labels.copy(), None
            new[candidate] = k - 1
            while not np.array_equal(new, old):
                old = new
                centres = np.stack([X[old == c].mean(axis=0) for c in range(k)])
                distances = ((X[:, None] - centres[None]) ** 2).sum(axis=2)
                new = distances.argmin(axis=1)
            runs.append((distances.min(axis=1).sum(), new))
        objective, labels = min(runs, key=lambda run: run[0])
        objectives.append(objective)
    return labels, objectives


@pytest.mark.parametrize("seed", range(3))
def test_with_a_linear_kernel_exact_search_is_global_k_means_on_vectors(seed):
    X = groups(60, seed, spread=1.5)
    labels, objectives = global_kmeans(X, 5)
    for op in (FeatureKernel(X), DenseKernel(X @ X.T)):
        result = global_kernel_kmeans(op, np.ones(60), n_clusters=5, how="exact")
        assert [stage.objective for stage in result.stages[1:]] == pytest.approx(objectives)
        ours = result.stages[-1].labels
        np.testing.assert_array_equal(labels[:, None] == labels, ours[:, None] == ours)


# --- following runs together changes nothing -------------------------------------------------------------------------


def objectives_together_and_apart(K, weights, labels, k):
    """Return where the runs from every sample of positive weight end: followed together, and run one by one."""
    partition = DenseKernel(K).partition(labels, weights, k)
    candidates = np.flatnonzero(weights > 0)
    together = global_search._objectives(partition, candidates, 300, np.inf)
    apart = [descend_from(partition.with_candidate(c)) for c in candidates]
    return together, np.array([run.objective for run in apart]), apart[int(np.argmin([r.objective for r in apart]))]


@pytest.mark.parametrize("seed", range(2))
def test_a_run_that_meets_another_ends_where_it_would_have_ended_by_itself(seed):
    X = np.random.default_rng(seed).standard_normal((150, 4)) + groups(150, seed)[:, :1]
    K, weights = gaussian(X), np.ones(150)
    labels = np.zeros(150, dtype=np.intp)
    for k in range(1, 6):
        together, apart, best = objectives_together_and_apart(K, weights, labels, k)
        np.testing.assert_allclose(together, apart, rtol=1e-11)
        labels = best.labels


@pytest.mark.parametrize("family", INDEFINITE)
def test_a_run_that_would_rise_onto_the_path_of_another_is_cut_back_first(family):
    # A step onto a partition that another run has seen is taken by a plain run only if the objective falls with it.
    for seed in range(4):
        K, weights, _ = problem(family, seed, n=20)
        labels = np.zeros(20, dtype=np.intp)
        for k in range(1, 4):
            together, apart, best = objectives_together_and_apart(K, weights, labels, k)
            np.testing.assert_allclose(together, apart, rtol=1e-9, atol=1e-9 * np.abs(K).max())
            labels = best.labels


@pytest.mark.parametrize("family", FAMILIES)
def test_a_table_that_remembers_nothing_changes_nothing(family, monkeypatch):
    K, weights, k = problem(family, 0, n=40)
    usual = global_kernel_kmeans(DenseKernel(K), weights, n_clusters=k, how="exact")
    monkeypatch.setattr(candidate_search, "_table_size", lambda n: 1)
    assert identical(usual, global_kernel_kmeans(DenseKernel(K), weights, n_clusters=k, how="exact"))


def test_runs_do_meet_and_a_chain_of_meetings_leads_to_a_run_that_ended():
    K, n = gaussian(groups(300)), 300
    partition = DenseKernel(K).partition(np.zeros(n, dtype=np.intp), np.ones(n), 1)
    runs = partition.run_candidates(np.arange(n), 300)
    ends = np.unique(runs.ends)
    assert len(ends) < n / 3
    np.testing.assert_array_equal(runs.ends[ends], ends)
    assert np.isfinite(runs.objectives[ends]).all()


@pytest.mark.parametrize("how", SEARCHES)
@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_runs_and_the_general_solver_find_the_same_path(family, how, monkeypatch):
    K, weights, k = problem(family, 1, n=24)
    options = {"n_clusters": k, "how": how, "n_exemplars": 8}
    compiled = global_kernel_kmeans(DenseKernel(K), weights, **options)
    wrapped = global_kernel_kmeans(ScaledKernel(DenseKernel(K), 1.0), weights, **options)
    monkeypatch.setattr(HostBackend, "run_candidates", None)
    assert identical(compiled, global_kernel_kmeans(DenseKernel(K), weights, **options))
    assert_same_path(wrapped, compiled.stages, K, weights)


@pytest.mark.parametrize("family", ["cloud", "grid, linear", "low rank, indefinite"])
def test_every_storage_finds_the_same_path(family):
    K, weights, k = problem(family, 0, n=24)
    expected = global_kernel_kmeans(DenseKernel(K), weights, n_clusters=k, how="exact")
    for op in (
        GraphKernel(sp.csr_array(K)),
        DenseKernel(np.asfortranarray(K)),
        DenseKernel(K, backend=get_backend("numpy")),
    ):
        assert_same_path(global_kernel_kmeans(op, weights, n_clusters=k, how="exact"), expected.stages, K, weights)


@pytest.mark.parametrize("how", SEARCHES)
def test_a_float32_kernel_is_searched_as_its_float64_copy_is(how):
    K = gaussian(groups(150)).astype(np.float32)
    narrow, wide = (
        global_kernel_kmeans(DenseKernel(matrix), np.ones(150), n_clusters=6, how=how, n_exemplars=12)
        for matrix in (K, K.astype(np.float64))
    )
    assert_same_path(narrow, wide.stages, K, np.ones(150))


# --- nothing depends on threads or on the run ------------------------------------------------------------------------


def test_any_number_of_threads_finds_the_same_path(monkeypatch):
    rng = np.random.default_rng(0)
    K, weights = gaussian(groups(700), 8.0), rng.uniform(0.2, 2.0, 700)
    with threadpool_limits(2):
        usual = global_kernel_kmeans(DenseKernel(K), weights, n_clusters=6, how="exact")
    with threadpool_limits(1):
        assert identical(usual, global_kernel_kmeans(DenseKernel(K), weights, n_clusters=6, how="exact"))
    for n_threads in (1, 2, 5):
        monkeypatch.setattr(candidate_search, "thread_count", lambda count=n_threads: count)
        with threadpool_limits(2, user_api="blas"):
            assert identical(usual, global_kernel_kmeans(DenseKernel(K), weights, n_clusters=6, how="exact")), n_threads


def backwards_run(work, tasks, threads):
    """Stand in for a pool of threads whose last piece of work is always done first."""
    return [work(task) for task in reversed(tasks)]


# With a small max_iter most runs are cut: where they end must depend on their start alone even then.
@pytest.mark.parametrize("max_iter", [2, 4, 300])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_order_in_which_candidates_are_worked_on_changes_nothing(family, max_iter, monkeypatch):
    monkeypatch.setattr(candidate_search, "BLOCK", 1)
    for seed in range(4):  # each kind of weights once
        K, weights, k = problem(family, seed, n=14)
        options = {"n_clusters": k, "how": "exact", "max_iter": max_iter}
        with monkeypatch.context() as patch:
            patch.setattr(candidate_search, "thread_count", lambda: 1)
            forwards = global_kernel_kmeans(DenseKernel(K), weights, **options)
            patch.setattr(candidate_search, "run", backwards_run)
            backwards = global_kernel_kmeans(DenseKernel(K), weights, **options)
        assert identical(forwards, backwards)


@pytest.mark.parametrize("how", SEARCHES)
@pytest.mark.parametrize("family", ["cloud", "grid, linear", "repeated samples", "low rank, indefinite"])
def test_a_search_repeated_finds_the_same_path(family, how):
    K, weights, k = problem(family, 3, n=24)
    options = {"n_clusters": k, "how": how, "n_exemplars": 8}
    first = global_kernel_kmeans(DenseKernel(K), weights, **options)
    assert all(identical(first, global_kernel_kmeans(DenseKernel(K), weights, **options)) for _ in range(3))


# --- laws ------------------------------------------------------------------------------------------------------------


@quick
@given(data=st.data(), K=psd_kernels(min_n=3, max_n=14), how=st.sampled_from(SEARCHES))
def test_one_more_cluster_never_raises_the_objective_of_a_semidefinite_kernel(data, K, how):
    # A sample that leaves its cluster takes w d^2 W / (W - w) >= 0 off the objective, and the run from there descends.
    weights = data.draw(sample_weights(len(K)))
    k = int(np.count_nonzero(weights))
    result = global_kernel_kmeans(DenseKernel(K), weights, n_clusters=k, how=how, n_exemplars=min(4, k))
    rounding = 1e-12 * weights.sum() * np.abs(K).max()
    objectives = [stage.objective for stage in result.stages]
    assert all(later <= earlier + rounding for earlier, later in itertools.pairwise(objectives))


@quick
@given(K=st.one_of(psd_kernels(4, 14), indefinite_kernels(4, 14)), how=st.sampled_from(SEARCHES))
def test_the_path_to_fewer_clusters_is_the_beginning_of_the_path_to_more(K, how):
    options = {"how": how, "n_exemplars": 3}
    longer = global_kernel_kmeans(DenseKernel(K), np.ones(len(K)), n_clusters=4, **options)
    shorter = global_kernel_kmeans(DenseKernel(K), np.ones(len(K)), n_clusters=2, **options)
    assert all(np.array_equal(a.labels, b.labels) for a, b in zip(shorter.stages, longer.stages, strict=False))


@quick
@given(rng=generators(), how=st.sampled_from(SEARCHES), factor=st.sampled_from([2.0**-20, 0.25, 2.0**20]))
def test_scaling_the_kernel_scales_the_objectives(rng, how, factor):
    K = gaussian(rng.standard_normal((25, 2)))
    plain, scaled = (
        global_kernel_kmeans(DenseKernel(matrix), np.ones(25), n_clusters=4, how=how, n_exemplars=4)
        for matrix in (K, factor * K)
    )
    for one, other in zip(plain.stages, scaled.stages, strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
        assert factor * one.objective == pytest.approx(other.objective)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("how", ["exact", "fast"])
def test_every_stage_of_a_weighted_search_is_a_fixed_point_of_the_repeated_samples(how, seed):
    rng = np.random.default_rng(seed)
    K, counts = gaussian(rng.standard_normal((30, 3))), rng.integers(1, 4, 30)
    rows = np.repeat(np.arange(30), counts)
    weighted = global_kernel_kmeans(DenseKernel(K), counts.astype(float), n_clusters=3, how=how)
    # Candidates differ: a sample of weight 2 leaves its cluster as a whole, of two equal samples one. So the paths may
    # part, but each stage must be an end of the other search's runs too.
    repeated = DenseKernel(K[np.ix_(rows, rows)].copy())
    for stage in weighted.stages:
        again = kernel_kmeans(repeated, stage.labels[rows], np.ones(len(rows)), n_clusters=len(stage.totals))
        assert again.n_iter == 0
        assert again.objective == pytest.approx(stage.objective)


# --- deadlines and limits --------------------------------------------------------------------------------------------


class Clock:
    """A clock that moves on by one second each time it is read."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1.0
        return self.now


def with_clock(monkeypatch):
    clock = SimpleNamespace(monotonic=Clock().monotonic)
    for module in (candidate_search, global_search):
        monkeypatch.setattr(module, "time", clock)


@pytest.mark.parametrize("how", ["exact", "exemplars"])
def test_after_the_deadline_every_stage_is_a_fast_step(how):
    K, weights = gaussian(groups(120)), np.ones(120)
    late = global_kernel_kmeans(DenseKernel(K), weights, n_clusters=6, how=how, n_exemplars=9, deadline=0.0)
    fast = global_kernel_kmeans(DenseKernel(K), weights, n_clusters=6, how="fast")
    assert not late.complete
    assert identical(late, fast)


def test_a_fast_search_misses_nothing_by_a_deadline():
    fast = global_kernel_kmeans(DenseKernel(gaussian(groups(50))), np.ones(50), n_clusters=4, deadline=0.0)
    assert fast.complete
    assert len(fast.stages) == 4


@pytest.mark.parametrize("follows", [True, False], ids=["compiled", "general"])
def test_a_stage_cut_by_the_deadline_takes_the_best_candidate_tried(follows, monkeypatch):
    # The clock is read once as the stage begins, then before every 8 candidates (compiled) or every one (general).
    K, weights, n_tried = gaussian(groups(300)), np.ones(300), 128 if follows else 5
    monkeypatch.setattr(candidate_search, "thread_count", lambda: 1)
    if not follows:
        monkeypatch.setattr(HostBackend, "run_candidates", None)
    with_clock(monkeypatch)
    result = global_kernel_kmeans(DenseKernel(K), weights, n_clusters=2, how="exact", deadline=17.0 if follows else 6.0)
    assert not result.complete
    tried = oracle.search(K, weights, 2, range(n_tried))
    every = oracle.search(K, weights, 2, range(300))
    assert_same_path(result, tried, K, weights)
    assert tried[-1].objective >= every[-1].objective


def test_a_deadline_that_comes_in_the_midst_leaves_a_whole_path():
    K = gaussian(groups(1200))
    began = time.monotonic()
    result = global_kernel_kmeans(DenseKernel(K), np.ones(1200), n_clusters=25, how="exact", deadline=began + 0.05)
    assert not result.complete
    assert [len(stage.totals) for stage in result.stages] == list(range(1, 26))
    assert all((stage.totals > 0).all() for stage in result.stages)


@pytest.mark.parametrize("how", SEARCHES)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_least_max_iter_still_gives_a_whole_path(family, how):
    K, weights, _ = problem(family, 2, n=40)
    result = global_kernel_kmeans(DenseKernel(K), weights, n_clusters=5, how=how, n_exemplars=6, max_iter=1)
    assert len(result.stages) == 5
    assert all(stage.n_iter <= 1 for stage in result.stages)


# --- weights of zero, equal samples, as many clusters as samples -----------------------------------------------------


@pytest.mark.parametrize("how", SEARCHES)
def test_samples_of_weight_zero_never_open_a_cluster_and_change_nothing(how):
    X = groups(60)
    X[::4] += 40.0  # the farthest of all, and of no weight
    weights = np.ones(60)
    weights[::4] = 0.0
    op, used = DenseKernel(gaussian(X, 30.0)), weights > 0
    result = global_kernel_kmeans(op, weights, n_clusters=6, how=how, n_exemplars=10)
    alone = global_kernel_kmeans(DenseKernel(op.K[used][:, used]), np.ones(45), n_clusters=6, how=how, n_exemplars=10)
    for stage, without in zip(result.stages, alone.stages, strict=True):
        assert (stage.totals > 0).all()
        np.testing.assert_array_equal(stage.labels[used], without.labels)
        assert stage.objective == pytest.approx(without.objective)


@pytest.mark.parametrize("seed", range(10))
def test_an_indefinite_kernel_with_weights_of_zero_is_searched_as_the_oracle_does(seed):
    # Cut-back steps may leave samples of weight zero alone in a cluster; they have no distance to its centre.
    rng = np.random.default_rng(seed)
    K = symmetric(np.triu(rng.integers(-1, 2, (20, 20)), 1).astype(float))
    weights = rng.uniform(0.1, 3.0, 20) * (rng.random(20) < 0.5)
    k = int(np.count_nonzero(weights))
    result = global_kernel_kmeans(DenseKernel(K), weights, n_clusters=k, how="fast")
    assert_same_path(result, oracle.fast_search(K, weights, k), K, weights)


@pytest.mark.parametrize("how", SEARCHES)
@pytest.mark.parametrize("n", [2, 9, 20])
def test_as_many_clusters_as_samples_leave_nothing_to_explain(how, n):
    K = gaussian(np.random.default_rng(n).standard_normal((n, 2)))
    result = global_kernel_kmeans(DenseKernel(K), np.ones(n), n_clusters=n, how=how, n_exemplars=n)
    assert result.stages[-1].objective == pytest.approx(0.0, abs=1e-12)
    assert sorted(result.stages[-1].labels) == list(range(n))


@pytest.mark.parametrize("how", SEARCHES)
@pytest.mark.parametrize("n", [5, 40])
def test_equal_samples_stay_one_cluster_at_every_stage(how, n):
    K = np.full((n, n), 0.09)
    result = global_kernel_kmeans(DenseKernel(K), np.ones(n), n_clusters=4, how=how, n_exemplars=4)
    assert all(len(np.unique(stage.labels)) == 1 for stage in result.stages)
    assert [stage.objective for stage in result.stages] == pytest.approx([0.0] * 4, abs=1e-12)


@pytest.mark.parametrize("how", SEARCHES)
def test_one_cluster_needs_no_search(how):
    K = gaussian(groups(20))
    result = global_kernel_kmeans(DenseKernel(K), np.ones(20), n_clusters=1, how=how, n_exemplars=3)
    assert len(result.stages) == 1
    assert result.complete
    assert result.exemplars is None
    assert result.stages[0].objective == pytest.approx(20 - K.mean() * 20)


# --- gains of candidates ---------------------------------------------------------------------------------------------


def gains_by_double_loop(K, distances, weights):
    gains = np.zeros(len(K))
    for n, i in itertools.product(range(len(K)), repeat=2):
        gains[n] += weights[i] * max(distances[i] - (K[n, n] + K[i, i] - 2.0 * K[n, i]), 0.0)
    return gains


@quick
@given(data=st.data(), K=st.one_of(psd_kernels(), indefinite_kernels()), rng=generators())
def test_gains_of_candidates_on_stored_and_wrapped_kernels_equal_a_double_loop(data, K, rng):
    weights, distances = data.draw(sample_weights(len(K))), rng.uniform(0.0, 3.0, len(K)) * np.abs(K).max()
    wanted = gains_by_double_loop(K, distances, weights)
    for op in (DenseKernel(K), ScaledKernel(DenseKernel(0.5 * K), 2.0), GraphKernel(sp.csr_array(K))):
        result = op.candidate_gains(distances, weights, op.diag())
        np.testing.assert_allclose(result, wanted, rtol=1e-10, atol=1e-10 * np.abs(K).max())


@quick
@given(rng=generators(), density=st.sampled_from([0.0, 0.1, 0.5]), loops=st.booleans(), whole=st.booleans())
def test_gains_of_candidates_on_a_graph_equal_a_double_loop(rng, density, loops, whole):
    # Whole numbers make many differences zero; without loops the diagonal is zero, and negative edges may occur.
    n = int(rng.integers(2, 20))
    A = rng.integers(-2, 4, (n, n)).astype(float) if whole else rng.standard_normal((n, n))
    A = symmetric(A * (rng.random((n, n)) < density))
    np.fill_diagonal(A, loops * rng.integers(0, 4, n))
    distances = rng.integers(-1, 5, n).astype(float) if whole else rng.uniform(-1.0, 4.0, n)
    weights = rng.integers(0, 3, n).astype(float)
    op = GraphKernel(sp.csr_array(A))
    result = op.candidate_gains(distances, weights, op.diag())
    np.testing.assert_allclose(result, gains_by_double_loop(A, distances, weights), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("storage", ["dense", "blockwise", "features"])
def test_gains_of_candidates_among_many_samples_equal_the_sums_row_by_row(storage):
    # 2,100 samples: rows that are not stored are formed in two blocks.
    rng = np.random.default_rng(0)
    X, weights, distances = rng.standard_normal((2100, 3)), rng.uniform(0.0, 2.0, 2100), rng.uniform(0.0, 1.0, 2100)
    fitted = fit_kernel(X, "rbf", {"sigma": 2.0})
    op = FeatureKernel(X) if storage == "features" else fitted.operator(storage)
    result = op.candidate_gains(distances, weights, op.diag())
    K = X @ X.T if storage == "features" else fitted.operator("dense").K
    diag = np.diagonal(K)
    wanted = [weights @ np.maximum(distances - (diag[n] + diag - 2.0 * K[n]), 0.0) for n in range(2100)]
    np.testing.assert_allclose(result, wanted, rtol=1e-9, atol=1e-9)


@quick
@given(K=st.one_of(psd_kernels(), indefinite_kernels()), rng=generators(), narrow=st.booleans())
def test_the_compiled_gains_equal_their_twin_and_stay_in_their_range(K, rng, narrow):
    K = K.astype(np.float32) if narrow else K
    n = len(K)
    lo = int(rng.integers(n))
    hi = int(rng.integers(lo, n)) + 1
    left = int(rng.choice([0, lo]))
    diag, distances, weights = np.diagonal(K).astype(np.float64), rng.uniform(0.0, 2.0, n), rng.uniform(0.0, 2.0, n)
    outs = []
    for loops in (row_loops, numpy_loops):
        out = np.full(n, -1.0)
        loops.candidate_gains(np.ascontiguousarray(K[left:]), diag, distances, weights, out, lo, hi, left)
        assert (np.delete(out, np.s_[lo:hi]) == -1.0).all()
        outs.append(out)
    np.testing.assert_allclose(outs[0], outs[1], rtol=1e-10, atol=1e-10 * np.abs(K).max())


# --- exemplars -------------------------------------------------------------------------------------------------------


@quick
@given(data=st.data(), K=psd_kernels(min_n=2, max_n=14))
def test_the_reference_beta_is_that_of_msc_4_11_by_loops(data, K):
    weights = data.draw(sample_weights(len(K)))
    assume(np.count_nonzero(weights) > 1)  # a single sample has no distances
    shares, expected = weights / weights.sum(), oracle.reference_beta(K, weights)
    assert kernel_beta(DenseKernel(K), shares) == pytest.approx(expected, rel=1e-8)
    assert reference_beta(KernelDivergence(DenseKernel(K)), shares) == pytest.approx(expected, rel=1e-6)


@quick
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_on_a_graph_the_reference_beta_comes_from_its_edges(data, seed):
    rng = np.random.default_rng(seed)
    n = data.draw(st.integers(2, 14))
    A = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.4))  # negative affinities and self-affinities too
    A = A + A.T
    weights = data.draw(sample_weights(n))
    assume(np.count_nonzero(weights) > 1)
    shares, op = weights / weights.sum(), GraphKernel(sp.csr_array(A))
    expected = reference_beta(KernelDivergence(DenseKernel(A)), shares)
    assume(np.isfinite(expected))
    assert graph_beta(op, shares) == pytest.approx(expected, rel=1e-8)


def mixture_problem(seed, n=60):
    rng = np.random.default_rng(seed)
    weights = some_weights(rng, n, ("ones", "positive", "a third zero", "counts")[seed % 4])
    X = groups(n, seed)
    return (X @ X.T if seed % 2 else gaussian(X, 8.0)), weights


@pytest.mark.parametrize("seed", range(8))
def test_the_leading_exemplars_are_those_of_the_best_priors(seed):
    K, weights = mixture_problem(seed)
    best = oracle.best_priors(K, weights, shortfall=1e-7)
    result = exemplars(DenseKernel(K), weights, 6)
    assert best[result].min() >= np.sort(best)[-len(result)] - 1e-3
    assert np.diff(best[result]).max(initial=0.0) <= 1e-3


@pytest.mark.parametrize("weight", [0.0, 1e-9])
def test_a_far_sample_of_no_or_little_weight_does_not_disturb_the_exemplars(weight):
    X = np.vstack([groups(300), [[1e4, 1e4]]])
    weights = np.append(np.ones(300), weight)
    result = exemplars(FeatureKernel(X), weights, 9)
    assert 300 not in result
    assert 1 <= len(result) <= 9


def test_exemplars_are_distinct_samples_of_positive_weight():
    K, weights = mixture_problem(2)
    result, more = exemplars(DenseKernel(K), weights, 5), exemplars(DenseKernel(K), weights, 40)
    assert len(set(result.tolist())) == 5
    assert (weights[more] > 0).all()


def test_distances_that_nearly_cancel_do_not_overflow_the_similarities_of_an_indefinite_kernel():
    # (4.11) divides by the sum of all squared distances; with both signs among them it can be close to zero.
    n, weights = 40, np.ones(40)
    K = symmetric(np.random.default_rng(0).standard_normal((n, n)))
    total = 2.0 * np.trace(K) - 2.0 * K.sum() / n  # a constant c on the diagonal adds 2 c (n - 1)
    K += (0.01 - total) / (2.0 * (n - 1)) * np.eye(n)
    assert oracle.reference_beta(K, weights) == pytest.approx(n * np.log(n) / 0.01, rel=1e-6)
    result = exemplars(DenseKernel(K), weights, 6)
    assert 1 <= len(set(result.tolist())) == len(result)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_scaling_an_affinity_without_loops_leaves_its_exemplars(factor):
    A = symmetric(np.triu(np.random.default_rng(1).random((30, 30)) < 0.2, 1).astype(float))
    result = exemplars(GraphKernel(sp.csr_array(factor * A)), np.ones(30), 5)
    np.testing.assert_array_equal(result, exemplars(GraphKernel(sp.csr_array(A)), np.ones(30), 5))
