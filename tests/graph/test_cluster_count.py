"""The number of clusters of a graph: clearness, gaps and valleys by their formulas, and the choice among them."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from kernelweave.kernels.neighbors import nearest_others, self_tuned_graph
from kernelweave.kernels.structureless import StructurelessGraph, StructurelessTable
from kernelweave.solvers.graph import cluster_count
from kernelweave.solvers.graph.cluster_count import (
    NULLS,
    Sweep,
    choose_count,
    counts_to_try,
    cut_shares,
    sweep,
    valley_of,
)
from kernelweave.solvers.graph.fusion import graph_eigenvectors
from tests.reference import graph_cuts
from tests.reference import graph_fusion as oracle

seeds = pytest.mark.parametrize("seed", [0, 1, 2])


def block_model(sizes, inside, between, seed=0):
    """Return a random graph whose nodes are joined more often within a block, and the blocks."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    n = len(y)
    A = np.triu(rng.random((n, n)) < np.where(y[:, None] == y, inside, between), 1).astype(float)
    return sp.csr_array(A + A.T), y


def neighbour_graph(X, m=10):
    return self_tuned_graph(nearest_others(X, m, np.random.default_rng(0)))


def of_table(X):
    """Return the graph of a table and what draws graphs of tables without clusters."""
    null = StructurelessTable(X)
    n = len(X)

    def draw(rng):
        return neighbour_graph(null.draw(rng.standard_normal((n, n)), rng))

    return neighbour_graph(X), draw


def of_graph(A):
    """Return the graph and what draws rewired ones."""
    null = StructurelessGraph(A)
    return A, lambda rng: null.draw(np.empty(0), rng)


def blobs(k, n=120, d=4, apart=8.0, seed=0):
    """Return groups of equal size around corners of a simplex."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    centers = apart * np.eye(max(k, d))[:k, :d] if k <= d else apart * rng.standard_normal((k, d))
    return centers[y] + rng.standard_normal((n, d)), y


def chosen(graph_and_null, largest=10, seed=0, smallest=1):
    return choose_count(*graph_and_null, counts_to_try(largest), seed, smallest=smallest)


def strips(n=30, gap=3.0):
    """Return two clusters side by side on a line, and their graph."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 10, n), 10 + gap + rng.uniform(0, 10, n + 4)])
    X = np.stack([x, rng.uniform(0, 2, len(x))], axis=1)
    return neighbour_graph(X, 6), (x > 10 + gap / 2).astype(int)


# --- numbers to try --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("largest", [1, 2, 7, 20, 21, 22, 23, 33, 100])
def test_every_number_up_to_twenty_is_tried_and_then_steps_of_an_eighth(largest):
    counts = counts_to_try(largest).tolist()
    assert counts[: min(largest, 20)] == list(range(1, min(largest, 20) + 1))
    assert counts[-1] == largest
    for before, after in itertools.pairwise(counts[19:]):
        assert before < after <= before * 1.125 + 1


def test_numbers_beyond_those_tried_one_by_one_grow_by_steps():
    assert counts_to_try(20, every=4).tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 17, 20]


@pytest.mark.parametrize(
    ("largest", "kept"),
    [(1, [1]), (4, [1, 2, 3, 4]), (12, [1, 2, 3, 4, 5, 6, 8, 10, 12]), (9, [1, 2, 3, 4, 5, 6, 8, 9])],
)
def test_nulls_are_cut_at_fewer_numbers_with_the_first_and_the_last(largest, kept):
    cut_at = []

    def null_graph(rng):
        cut_at.append("drawn")
        return A

    A, _ = block_model((8, 8), 0.8, 0.1)
    seen = []
    original = cluster_count.sweep
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            cluster_count, "sweep", lambda W, counts, *rest: seen.append(counts) or original(W, counts, *rest)
        )
        choose_count(A, null_graph, counts_to_try(largest), 0)
    assert len(cut_at) in (NULLS, NULLS + cluster_count.MORE_NULLS)
    assert seen[1].tolist() == kept


# --- clearness, gaps, valleys ----------------------------------------------------------------------------------------


@seeds
def test_clearness_and_cuts_are_those_of_the_formula(seed):
    A, _ = block_model((12, 9, 14), 0.5, 0.1, seed)
    result = sweep(A, counts_to_try(4), 2, np.random.default_rng(seed))
    for k, labels, clear, lost in zip(result.counts, result.labels, result.clearness, result.loss(), strict=True):
        assert len(np.unique(labels)) == k
        wanted = oracle.clearness(A.toarray(), labels, k)
        assert clear == pytest.approx(wanted)
        assert lost == pytest.approx(np.log(max(1 - wanted, 0.0) + oracle.SOFTENING))


def test_the_cut_is_a_share_of_the_edges_and_of_what_a_random_graph_cuts():
    A = sp.csr_array(graph_cuts.cliques(4, 4))
    labels = np.repeat([0, 1], 4)
    cut, expected = cut_shares(A.tocoo(), A.sum(axis=1), labels, 2)
    assert cut == pytest.approx(2 / 26)  # one of 13 edges
    assert expected == pytest.approx(0.5)


def test_a_graph_without_edges_cuts_nothing():
    assert cut_shares(sp.coo_array((4, 4)), np.zeros(4), np.array([0, 0, 1, 1]), 2) == (0.0, 0.0)


def test_the_best_of_several_runs_has_the_largest_modularity():
    A, _ = block_model((10,) * 6, 0.6, 0.15, 3)
    qs = [sweep(A, np.array([1, 6]), runs, np.random.default_rng(1)).clearness[1] for runs in (1, 8)]
    assert qs[1] >= qs[0]


@seeds
def test_gaps_are_mean_losses_of_nulls_less_the_loss(seed):
    graph, null_graph = of_graph(block_model((15, 15, 15), 0.5, 0.05, seed)[0])
    drawn = []

    def null(rng):
        drawn.append(null_graph(rng))
        return drawn[-1]

    sweeps = {}
    original = cluster_count.sweep

    def watched(W, counts, *rest):
        sweeps[id(W)] = (W, original(W, counts, *rest))
        return sweeps[id(W)][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster_count, "sweep", watched)
        count = choose_count(graph, null, counts_to_try(5), seed)
    assert count.strength > cluster_count.SURE  # else valleys weigh gaps
    for position, k in enumerate(count.counts):
        q = oracle.clearness(graph.toarray(), sweeps[id(graph)][1].labels[position], k)
        nulls = [oracle.clearness(W.toarray(), sweeps[id(W)][1].labels[position], k) for W in drawn]
        plain = oracle.gap(q, nulls) if k > 1 else 0.0
        assert count.gaps[position] <= plain + 1e-9 or plain < 0  # valleys may take something away
        if position == count.gaps.argmax():
            assert count.gaps[position] == pytest.approx(plain)


def test_losses_between_numbers_tried_are_interpolated():
    A, _ = block_model((10, 10), 0.6, 0.1)
    result = sweep(A, np.array([1, 2, 4]), 1, np.random.default_rng(0))
    losses = result.loss(counts=np.array([1, 2, 3, 4]))
    assert losses[2] == pytest.approx((losses[1] + losses[3]) / 2)
    np.testing.assert_array_equal(losses[[0, 1, 3]], result.loss())


@pytest.mark.parametrize("gap", [0.0, 0.5, 1.0, 2.0])
def test_the_valley_of_two_clusters_is_that_of_the_formula(gap):
    W, labels = strips(gap=gap)
    U = graph_eigenvectors(W, 2).vectors
    edges = sp.coo_array(sp.triu(W, 1))
    assert valley_of(edges, U, labels, 2) == pytest.approx(oracle.valley_of_two(W.toarray(), U, labels), abs=1e-9)
    assert valley_of(edges, U, 1 - labels, 2) <= 1.0


@seeds
def test_links_between_far_ends_are_chance_and_taken_off_a_valley(seed):
    X, labels = blobs(2, n=60, d=3, apart=5.0, seed=seed)
    strewn = np.triu(np.random.default_rng(seed).random((60, 60)) < 0.1, 1) * 0.1
    W = neighbour_graph(X, 8) + sp.csr_array(strewn + strewn.T)
    U = graph_eigenvectors(W, 2).vectors
    depth = valley_of(sp.coo_array(sp.triu(W, 1)), U, labels, 2)
    assert depth == pytest.approx(oracle.valley_of_two(W.toarray(), U, labels), abs=1e-9)
    assert 0.1 < depth < 0.5


def test_a_valley_is_deep_between_clusters_and_shallow_within_one():
    depths = []
    for gap in (0.0, 1.0):
        W, labels = strips(gap=gap)
        depths.append(valley_of(sp.coo_array(sp.triu(W, 1)), graph_eigenvectors(W, 2).vectors, labels, 2))
    assert depths[0] > 0.6
    assert depths[1] < 0.4


def test_clusters_without_links_have_no_valley_to_fill():
    A = sp.csr_array(graph_cuts.cliques(6, 6, chain=False))
    labels = np.repeat([0, 1], 6)
    assert valley_of(sp.coo_array(sp.triu(A, 1)), graph_eigenvectors(A, 2).vectors, labels, 2) == 0.0


def test_the_shallowest_of_several_valleys_counts():
    W, two = strips(gap=1.0)
    labels = two.copy()
    first = np.flatnonzero(two == 0)
    labels[first[:15]] = 2  # a cluster divided at random
    edges = sp.coo_array(sp.triu(W, 1))
    vectors = graph_eigenvectors(W, 3).vectors
    assert valley_of(edges, vectors, labels, 3) > valley_of(edges, vectors, two, 2) + 0.3


# --- the choice ------------------------------------------------------------------------------------------------------


@seeds
@pytest.mark.parametrize("k", [2, 3, 5])
def test_blocks_of_a_random_graph_are_counted_and_found(k, seed):
    A, y = block_model((25,) * k, 0.5, 0.04, seed)
    count = chosen(of_graph(A), seed=seed)
    assert count.n_clusters == k
    assert count.confidence == "high"
    assert count.votes == (k,) * 5
    assert adjusted_rand_score(y, count.labels) > 0.9


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_blobs_are_counted_and_found(k):
    X, y = blobs(k, n=30 * k, d=6)
    count = chosen(of_table(X))
    assert count.n_clusters == k
    assert count.confidence in ("high", "moderate")
    assert adjusted_rand_score(y, count.labels) > 0.95


@seeds
def test_noise_has_no_clusters(seed):
    X = np.random.default_rng(seed).standard_normal((120, 4))
    count = chosen(of_table(X), seed=seed)
    assert count.n_clusters == 1
    assert count.confidence == "none"
    assert count.plausible == (1,)
    assert not count.labels.any()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_random_graph_has_no_clusters(seed):
    A, _ = block_model((100,), 0.15, 0.15, seed)
    assert chosen(of_graph(A), seed=seed).n_clusters == 1


@seeds
@pytest.mark.parametrize("shape", ["arc", "line"])
def test_a_curve_is_not_clusters(shape, seed):
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 4.5, 150)
    curve = np.stack([np.cos(t), np.sin(t)] if shape == "arc" else [t, 0.5 * t], axis=1)
    X = curve + 0.05 * rng.standard_normal((150, 2))
    assert chosen(of_table(X), seed=seed).n_clusters == 1


def test_pieces_without_edges_between_them_are_the_clusters():
    A = sp.csr_array(graph_cuts.cliques(15, 15, 15, chain=False))
    count = chosen(of_graph(A))
    assert count.n_clusters == 3
    assert count.confidence == "high"


def test_a_graph_without_edges_has_no_clusters():
    count = chosen(of_graph(sp.csr_array((30, 30))), largest=5)
    assert count.n_clusters == 1
    assert count.confidence == "none"


def test_one_number_to_try_is_the_answer():
    count = chosen(of_graph(block_model((5, 5), 0.9, 0.1)[0]), largest=1)
    assert count.n_clusters == 1
    assert count.counts.tolist() == [1]
    assert count.runner_up is None
    assert count.votes == ()
    assert np.isnan(count.stability)


@pytest.mark.parametrize("smallest", [2, 4])
def test_no_fewer_clusters_than_the_smallest_number_allowed(smallest):
    X = np.random.default_rng(0).standard_normal((90, 4))
    count = chosen(of_table(X), largest=6, smallest=smallest)
    assert count.n_clusters >= smallest
    assert len(np.unique(count.labels)) == count.n_clusters
    assert count.confidence == "none"
    assert len(count.votes) == 5


def test_the_smallest_number_allowed_changes_nothing_where_it_is_no_limit():
    graph = of_graph(block_model((25,) * 3, 0.5, 0.04)[0])
    counts = [chosen(graph, smallest=smallest) for smallest in (1, 2, 3)]
    assert [count.n_clusters for count in counts] == [3, 3, 3]
    np.testing.assert_array_equal(counts[0].labels, counts[2].labels)


def test_the_same_seed_gives_the_same_answer():
    graph = of_graph(block_model((15,) * 3, 0.5, 0.05)[0])
    one, same = (chosen(graph, largest=6, seed=4) for _ in range(2))
    np.testing.assert_array_equal(one.gaps, same.gaps)
    assert one.votes == same.votes
    assert not np.array_equal(one.gaps, chosen(graph, largest=6, seed=5).gaps)


def test_numbers_about_as_clear_are_plausible_and_the_runner_up_is_not_close():
    for sizes, between in [((25,) * 3, 0.04), ((12,) * 8, 0.08)]:
        count = chosen(of_graph(block_model(sizes, 0.6, between)[0]), largest=16)
        assert count.n_clusters in count.plausible
        assert list(count.plausible) == sorted(set(count.plausible))
        near = count.counts[(count.gaps >= 0.95 * count.gaps.max()) & (count.counts > 1)]
        assert set(count.plausible) == {count.n_clusters, *near.tolist()}
        assert abs(count.runner_up - count.n_clusters) > max(1.0, 0.2 * count.n_clusters)
        far = np.abs(count.counts - count.n_clusters) > max(1.0, 0.2 * count.n_clusters)
        far &= count.counts > 1
        assert count.gaps[count.counts == count.runner_up] == count.gaps[far].max()


def test_a_subsample_has_four_fifths_of_the_samples():
    sizes = []
    original = cluster_count.sweep
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster_count, "sweep", lambda W, *rest: sizes.append(W.shape[0]) or original(W, *rest))
        chosen(of_graph(block_model((25,) * 3, 0.5, 0.04)[0]), largest=4)
    assert sizes == [75] * (1 + NULLS) + [60] * 5


@pytest.mark.parametrize(
    ("strength", "n_nulls"), [(0.4, NULLS), (0.7, NULLS + 4), (1.9, NULLS + 4), (2.5, NULLS), (9.0, NULLS)]
)
def test_more_nulls_are_drawn_where_the_first_do_not_decide(strength, n_nulls, monkeypatch):
    drawn = []
    A, null = of_graph(block_model((10, 10), 0.6, 0.1)[0])
    gaps = np.array([0.0, strength * cluster_count.CLEAR, 0.0])
    evidence = cluster_count._Evidence(gaps, np.ones(3), np.zeros(3))
    monkeypatch.setattr(cluster_count, "_evidence", lambda whole, nulls: drawn.append(len(nulls)) or evidence)
    choose_count(A, null, counts_to_try(3), 0)
    assert drawn[-1] == n_nulls


def test_subsamples_that_chose_the_same_number_within_a_tenth_agree():
    count = chosen(of_graph(block_model((25,) * 3, 0.5, 0.04)[0]))
    assert replace(count, n_clusters=10, votes=(9, 10, 11, 12, 8)).agreeing == 3
    assert replace(count, n_clusters=3, votes=(3, 3, 2, 4, 3)).agreeing == 3


# --- every way to a choice, on sweeps made by hand -----------------------------------------------------------------


def made_sweep(clearness, valleys, cut=None, smallest=20):
    """Return a sweep with given clearness and valleys at 1, 2, 3, ... clusters of 100 samples."""
    counts = np.arange(1, len(clearness) + 1)
    expected = np.where(counts > 1, 1 - 1 / counts, 0.0)
    cut = expected * (1 - np.array(clearness)) if cut is None else np.array(cut)
    labels = []
    for k in counts:
        sizes = [smallest if k > 1 else 100] + [1] * (k - 1)
        assignment = np.repeat(np.arange(k), sizes)
        labels.append(np.concatenate([assignment, np.arange(100 - len(assignment)) % k]))
    result = Sweep(counts, tuple(labels), cut, expected, sp.coo_array((100, 100)), np.zeros((100, 1)))
    result.__dict__["valleys"] = np.array([1.0, *valleys])
    return result


def small_cluster(position, size, n=100):
    """Return labels of position + 1 clusters, the last of which has ``size`` samples."""
    labels = np.arange(n) % position
    labels[:size] = position
    return labels


FLAT = (0.0, 0.1, 0.1, 0.1, 0.1)


def test_gaps_that_are_not_large_count_as_far_as_there_are_valleys():
    nulls = [made_sweep(FLAT, (1.0,) * 4) for _ in range(5)]
    whole = made_sweep((0.0, 0.15, 0.11, 0.11, 0.11), (0.9, 0.9, 0.9, 0.9))
    plain = cluster_count._compared(whole, nulls, "cut")
    assert 1.0 < plain.strength < 3.0
    weighed = cluster_count._evidence(whole, nulls)
    sure = np.clip((plain.gaps / plain.limits - 1.0) / 3.0, 0.0, 1.0) ** 2
    np.testing.assert_allclose(weighed.gaps[1:], ((1.0 - 0.9 * (1.0 - sure)) * plain.gaps)[1:])
    assert weighed.strength < cluster_count.CLEAR


def test_large_gaps_need_no_valleys():
    nulls = [made_sweep(FLAT, (1.0,) * 4) for _ in range(5)]
    whole = made_sweep((0.0, 0.3, 0.5, 0.3, 0.3), (0.9, 0.9, 0.9, 0.9))
    np.testing.assert_array_equal(
        cluster_count._evidence(whole, nulls).gaps, cluster_count._compared(whole, nulls, "cut").gaps
    )


def test_deep_valleys_give_clusters_away_that_are_cut_no_more_clearly_than_nulls():
    nulls = [made_sweep(FLAT, (1.0,) * 4) for _ in range(5)]
    deep = cluster_count._evidence(made_sweep(FLAT, (0.9, 0.1, 0.3, 0.9)), nulls)
    assert deep.measure == "valley"
    assert deep.best == 2
    assert deep.strength > 1.0
    assert np.count_nonzero(deep.gaps) == 1  # the valley of 0.3 is not deep
    shallow = cluster_count._evidence(made_sweep(FLAT, (0.9, 0.3, 0.3, 0.9)), nulls)
    assert shallow.measure == "cut"


def test_deep_valleys_around_few_samples_say_nothing():
    nulls = [made_sweep(FLAT, (1.0,) * 4) for _ in range(5)]
    whole = made_sweep(FLAT, (0.9, 0.1, 0.9, 0.9))
    tiny = replace(whole, labels=(*whole.labels[:2], small_cluster(2, 4), *whole.labels[3:]))
    tiny.__dict__["valleys"] = whole.valleys
    assert cluster_count._evidence(whole, nulls).measure == "valley"
    assert cluster_count._evidence(tiny, nulls).measure == "cut"


def test_the_limit_is_the_spread_of_nulls_among_themselves_or_the_floor():
    same = [made_sweep(FLAT, (1.0,) * 4) for _ in range(5)]
    whole = made_sweep((0.0, 0.3, 0.5, 0.3, 0.3), (0.9,) * 4)
    np.testing.assert_allclose(cluster_count._compared(whole, same, "cut").limits, 0.03)
    apart = [made_sweep(np.array(FLAT) * factor, (1.0,) * 4) for factor in (0, 1, 2, 3, 4)]
    losses = np.array([np.log(1 - 0.1 * factor + 0.05) for factor in (0, 1, 2, 3, 4)])
    among = [np.mean(np.delete(losses, i)) - losses[i] for i in range(5)]
    wanted = 3.0 * np.sqrt(np.mean(np.square(among)))
    np.testing.assert_allclose(cluster_count._compared(whole, apart, "cut").limits, wanted)


def position_of(whole, gaps, stability=None):
    return cluster_count._clearest(whole, np.array(gaps), None if stability is None else np.array(stability))


def test_the_finest_number_whose_clusters_lie_in_valleys_is_taken():
    whole = made_sweep((0.0, 0.5, 0.5, 0.5, 0.5), (0.1, 0.3, 0.39, 0.6))
    assert position_of(whole, [0, 1.0, 0.9, 0.71, 0.95]) == 3
    assert position_of(whole, [0, 1.0, 0.9, 0.69, 0.95]) == 2


def test_clusters_in_valleys_that_subsamples_repeat_are_taken_at_any_gap():
    whole = made_sweep((0.0, 0.5, 0.5, 0.5, 0.5), (0.1, 0.3, 0.39, 0.41))
    gaps = [0, 1.0, 0.1, -0.2, 0.1]
    assert position_of(whole, gaps, [1, 0.9, 0.5, 0.95, 1.0]) == 3
    assert position_of(whole, gaps, [1, 0.9, 0.5, 0.94, 1.0]) == 1
    assert position_of(whole, [0, -np.inf, 1.0, -np.inf, -np.inf], [1, 0.9, 0.5, 0.95, 1.0]) == 2  # not allowed


def test_coarser_clusters_that_subsamples_repeat_are_taken_only_where_they_do_not_repeat_the_clearest():
    whole = made_sweep((0.0, 0.5, 0.5, 0.5, 0.5), (0.1, 0.9, 0.9, 0.9), cut=(0.0, 0.1, 0.2, 0.3, 0.4))
    gaps = [0, 0.1, 0.2, 1.0, 0.3]
    assert position_of(whole, gaps, [1, 1.0, 0.5, 0.84, 0.5]) == 1
    assert position_of(whole, gaps, [1, 1.0, 0.5, 0.85, 0.5]) == 3


def test_clusters_in_valleys_have_five_samples_at_least():
    whole = made_sweep((0.0, 0.5, 0.5, 0.5, 0.5), (0.1, 0.3, 0.9, 0.9))
    few = replace(whole, labels=(*whole.labels[:2], small_cluster(2, 4), *whole.labels[3:]))
    few.__dict__["valleys"] = whole.valleys
    assert position_of(whole, [0, 1.0, 0.9, 0.1, 0.1]) == 2
    assert position_of(few, [0, 1.0, 0.9, 0.1, 0.1]) == 1


def test_without_valleys_the_most_stable_of_numbers_about_as_clear_is_taken():
    whole = made_sweep((0.0, 0.5, 0.5, 0.5, 0.5), (0.9,) * 4, cut=(0.0, 0.2, 0.3, 0.4, 0.5))
    gaps = [0, 0.97, 1.0, 0.96, 0.9]
    assert position_of(whole, gaps) == 2
    assert position_of(whole, gaps, [1, 0.9, 0.5, 0.7, 1.0]) == 1
    assert position_of(whole, gaps, [1, 0.9, 0.5, 0.895, 1.0]) == 3  # as stable within a hundredth, and finer
    assert position_of(whole, gaps, [1, 0.5, 0.9, 0.5, 1.0]) == 2


def test_a_finer_number_that_cuts_no_more_is_preferred():
    whole = made_sweep((0.0, 0.5, 0.5, 0.5, 0.5), (0.9,) * 4, cut=(0.0, 0.0, 0.0, 0.0007, 0.2))
    assert position_of(whole, [0, 1.0, 0.8, 0.7, 0.6]) == 3
    shares = whole.relative_cut
    assert shares[3] <= 0.002 < shares[4]


@pytest.mark.parametrize(
    ("none", "agreement", "stability", "strength", "confidence"),
    [
        (True, 1.0, 1.0, 9.0, "none"),
        (False, 0.8, 0.85, 2.0, "high"),
        (False, 0.6, 0.85, 2.0, "moderate"),
        (False, 0.8, 0.84, 2.0, "moderate"),
        (False, 0.8, 0.85, 1.9, "moderate"),
        (False, 0.4, 0.6, 1.0, "moderate"),
        (False, 0.2, 0.6, 5.0, "low"),
        (False, 1.0, 0.5, 5.0, "low"),
    ],
)
def test_every_confidence_follows_from_agreement_stability_and_strength(
    none, agreement, stability, strength, confidence
):
    assert cluster_count._confidence(none, agreement, stability, strength) == confidence


class Votes:
    """What subsamples are asked."""

    def __init__(self, votes, stability):
        self._votes = votes
        self.stability = np.array(stability)

    def votes(self):
        return self._votes


@pytest.mark.parametrize(
    ("gain", "votes", "stability", "answer", "confidence"),
    [
        (0.4, (3, 3, 3, 3, 2), 0.9, 3, "high"),
        (0.4, (3, 3, 2, 2, 2), 0.9, 3, "moderate"),
        (0.4, (3, 2, 2, 2, 2), 0.9, 3, "low"),
        (0.4, (3, 3, 3, 3, 3), 0.5, 3, "low"),
        (0.15, (3, 3, 3, 2, 2), 0.9, 3, "moderate"),
        (0.15, (3, 3, 2, 2, 2), 0.9, 1, "none"),  # a gap that is not large needs three of five
        (0.11, (3, 3, 3, 3, 3), 0.9, 1, "none"),
    ],
)
def test_the_answer_needs_a_gap_and_subsamples_that_agree(gain, votes, stability, answer, confidence):
    nulls = [made_sweep(FLAT, (1.0,) * 4) for _ in range(5)]
    whole = made_sweep((0.0, 0.1, gain, 0.1, 0.1), (0.45, 0.3, 0.45, 0.45))
    evidence = cluster_count._evidence(whole, nulls)
    subsamples = Votes(votes, [1.0, 0.3, stability, 0.3, 0.3])
    count = cluster_count._decide(whole, evidence, subsamples, 1)
    assert count.n_clusters == answer
    assert count.confidence == confidence
    assert count.candidate == 3
    assert count.votes == votes
    assert count.stability == pytest.approx(stability)
    np.testing.assert_array_equal(count.labels, whole.labels[answer - 1])
