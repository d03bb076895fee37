"""Whether there are clusters, in words; and what single views have to do with them."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from kernelweave import GraphFusionClustering, KernelKMeans
from kernelweave.estimators.graph import graph_fusion, structure
from kernelweave.estimators.graph.structure import (
    JUDGED,
    LEAST_JUDGED,
    Judge,
    ViewReport,
    as_asked,
    judged_within,
    verdict,
    view_warnings,
)
from kernelweave.foundation.errors import ParameterError
from kernelweave.inputs import Views, observed_views
from kernelweave.solvers.graph.cluster_count import ClusterCount
from tests.peak_memory import peak_of

N = 90
GROUPS = np.arange(N) % 3


def count(**changes):
    """Return an answer of 3 clusters; ``changes`` are those of its fields."""
    fields = {
        "n_clusters": 3,
        "confidence": "high",
        "strength": 4.26,
        "unweighed": 0.0,
        "counts": np.arange(1, 9),
        "gaps": np.zeros(8),
        "votes": (3, 3, 4, 3, 3),
        "stability": 0.9,
        "plausible": (3,),
        "runner_up": 5,
        "candidate": 3,
        "labels": np.zeros(9, dtype=int),
    }
    return ClusterCount(**(fields | changes))


def grouped(seed=0, d=4, y=GROUPS, apart=8.0):
    """Return samples around the corners of a simplex."""
    return apart * np.eye(d)[y] + np.random.default_rng(seed).standard_normal((len(y), d))


def noise(seed=9, d=4):
    return np.random.default_rng(seed).standard_normal((N, d))


def judge(types=None, seed=0, **blocks):
    return Judge(Views(tuple(blocks), tuple(blocks.values())), types or ["table"] * len(blocks), seed)


# --- the verdict -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            "3 clusters, high confidence: the split is 4.3 times as clear as the clearest in structureless data of the "
            "same shape; 4 of 5 subsamples agree; next best 5.",
        ),
        (
            {"found_in": ("a", "b")},
            "3 clusters, high confidence: in views 'a' and 'b' the split is 4.3 times as clear as the clearest in "
            "structureless data of the same shape; 4 of 5 subsamples agree; next best 5.",
        ),
        (
            {"confidence": "low", "strength": 12.6, "plausible": (3, 4, 6), "votes": (2, 6, 3, 9, 9)},
            "3 clusters, low confidence: the split is 13 times as clear as the clearest in structureless data of the "
            "same shape; 1 of 5 subsamples agree; 3 to 6 clusters are about as clear.",
        ),
        (
            {"confidence": "moderate", "strength": 9.4, "runner_up": None},
            "3 clusters, moderate confidence: the split is 9.4 times as clear as the clearest in structureless data of "
            "the same shape; 4 of 5 subsamples agree; no other number was tried.",
        ),
        (
            {"n_clusters": 1, "confidence": "none", "strength": 0.84, "votes": (), "candidate": 4},
            "No clusters found: the clearest split (4 clusters) is 0.8 times as clear as the clearest in structureless "
            "data of the same shape.",
        ),
        (
            {"n_clusters": 1, "confidence": "none", "strength": 0.0, "votes": (), "candidate": 1},
            "No clusters found: no split is clearer than those of structureless data of the same shape.",
        ),
        (
            {"n_clusters": 1, "confidence": "none", "strength": 1.2, "votes": (4, 2, 7, 2, 2), "candidate": 4},
            "No clear clusters: the clearest split (4 clusters) is 1.2 times as clear as the clearest in structureless "
            "data of the same shape, and subsamples chose 2, 2, 2, 4 and 7.",
        ),
        (
            {"n_clusters": 1, "confidence": "none", "strength": 0.3, "unweighed": 2.76, "votes": ()},
            "No clear clusters: a split is 2.8 times as clear as the clearest in structureless data of the same shape, "
            "but its clusters merge into each other: this looks like a continuum.",
        ),
        (
            {"n_clusters": 2, "confidence": "none", "strength": 0.6, "candidate": 2},
            "No clear clusters: the clearest split (2 clusters) is 0.6 times as clear as the clearest in structureless "
            "data of the same shape. The 2 clusters are the best of the numbers allowed.",
        ),
        (
            {"n_clusters": 1, "confidence": "none", "counts": np.array([1]), "gaps": np.zeros(1), "votes": ()},
            "No search for clusters: 9 samples are too few to tell clusters from chance. Give n_clusters to cluster "
            "them anyway.",
        ),
    ],
)
def test_the_verdict_says_what_speaks_for_the_number(changes, sentence):
    assert verdict(count(**changes), 9) == sentence


@pytest.mark.parametrize(("k", "sentence"), [(1, "1 cluster, as requested."), (2, "2 clusters, as requested.")])
def test_a_number_that_was_given_is_said_to_be(k, sentence):
    assert as_asked(k) == sentence


# --- views that mislead ----------------------------------------------------------------------------------------------


def report(name, follows, has_groups=True):
    return ViewReport(name, follows, has_groups, own_count=4, similarity=0.0)


@pytest.mark.parametrize(
    ("reports", "messages"),
    [
        ([report("a", 0.9), report("b", 0.5)], []),
        ([report("a", 0.9), report("b", 0.31)], []),
        (
            [report("a", 0.9), report("b", 0.5), report("c", 0.29)],
            ["View 'c' has groups of its own (about 4) that contradict the joint clusters."],
        ),
        (
            [report("a", 0.9), report("b", 0.5), report("c", 0.29, has_groups=False)],
            ["View 'c' shows no groups and does not support the joint clusters."],
        ),
        (
            [report("a", 0.1, has_groups=False), report("b", 0.9)],
            [
                "View 'a' shows no groups and does not support the joint clusters.",
                "The clusters are those of view 'b' alone.",
            ],
        ),
        ([report("a", 0.49), report("b", 0.4)], ["No view by itself shows the joint clusters well."]),
    ],
)
def test_views_that_mislead_are_named(reports, messages):
    assert view_warnings(reports, 3) == messages


def test_views_with_groups_are_named_where_there_are_none_together():
    reports = [report("a", 0.0), report("b", 0.0, has_groups=False)]
    assert view_warnings(reports, 1) == ["View 'a' alone has groups (about 4), but not together with the other views."]


# --- the judge -------------------------------------------------------------------------------------------------------


def test_the_judge_counts_clusters_of_all_views_together():
    answer = judge(one=grouped(0), two=grouped(1)).count(1, None)
    assert answer.n_clusters == 3
    assert answer.confidence in ("high", "moderate")


def test_clusters_of_one_view_count_where_noise_in_the_others_hides_them(monkeypatch):
    y = np.arange(240) % 3
    rng = np.random.default_rng(0)
    noisy = {name: rng.standard_normal((240, d)) for name, d in (("two", 12), ("three", 30), ("four", 8))}
    views = judge(one=grouped(3, d=12, y=y, apart=7.0), **noisy)
    counts = {}
    count_in = views._count_in
    monkeypatch.setattr(
        views, "_count_in", lambda among, *rest: counts.setdefault(tuple(among), count_in(among, *rest))
    )
    answer = views.count(1, None)
    assert counts[0, 1, 2, 3].confidence == "none"
    assert (answer.n_clusters, answer.found_in) == (3, ("one",))
    assert adjusted_rand_score(answer.labels, y) > 0.95


def test_views_are_not_judged_again_where_all_have_groups_or_none_has(monkeypatch):
    crossed = judge(one=grouped(0, y=np.arange(N) % 3), two=grouped(1, y=np.arange(N) // 30))
    nothing = judge(one=noise(1), two=noise(2))
    for views, telling in ((crossed, [True, True]), (nothing, [False, False])):
        judged = []

        def unclear(positions, *_, judged=judged):
            judged.append(list(positions))
            return count(n_clusters=1, confidence="none")

        monkeypatch.setattr(views, "_count_in", unclear)
        assert views.count(1, None).found_in == ()
        assert judged == [[0, 1]]
        assert [views._own_groups(position).has_groups for position in (0, 1)] == telling


def test_views_that_agree_count_where_another_contradicts_them():
    y = np.arange(240) % 3
    other = np.random.default_rng(5).permutation(240) % 4
    views = judge(one=grouped(0, d=12, y=y), two=grouped(1, d=10, y=y), sites=grouped(2, d=6, y=other, apart=40.0))
    assert [views._own_groups(position).has_groups for position in range(3)] == [True] * 3
    assert views._agreeing([0, 1, 2]) == [0, 1]
    assert views._agreeing([0, 2]) == []  # nobody can say which of two is right
    assert views._agreeing([2]) == [2]
    assert views._agreeing([]) == []


def test_groups_are_compared_over_the_samples_that_two_views_share():
    y = np.arange(240) % 3
    blocks = [grouped(v, d=8, y=y) for v in range(2)]
    blocks[0][:60] = np.nan
    blocks[1][200:] = np.nan
    views = Judge(observed_views(dict(zip("ab", blocks, strict=True))), ["table"] * 2, 0)
    assert views._same_groups(0, 1)


def test_a_view_among_others_is_judged_as_if_it_were_the_only_one():
    X = grouped(0, apart=4.0)
    among = judge(one=X, two=noise(2))._count_in([0], 1, None)
    alone = judge(one=X)._count_in([0], 1, None)
    np.testing.assert_allclose(among.gaps, alone.gaps)
    assert among.strength == alone.strength


def test_a_view_has_groups_only_beyond_three_times_the_spread_of_nulls(monkeypatch):
    monkeypatch.setattr(structure, "VIEW_GAP", 0.0)
    of_noise = [judge(one=noise(seed), seed=seed)._own_groups(0).has_groups for seed in range(12)]
    assert sum(of_noise) <= 2  # 7 have a gap above zero
    assert judge(one=grouped(0))._own_groups(0).has_groups


def test_groups_that_the_joint_graph_does_not_have_are_not_counted(monkeypatch):
    views = judge(one=grouped(0), two=noise(2))
    unclear = count(n_clusters=1, confidence="none")
    answers = {(0, 1): unclear, (0,): count(labels=np.roll(GROUPS, 1))}
    monkeypatch.setattr(views, "_count_in", lambda positions, *_: answers[tuple(positions)])
    assert views.count(1, None).found_in == ("one",)
    shuffled = np.random.default_rng(0).permutation(GROUPS)
    answers[0,] = count(labels=shuffled)
    assert views.count(1, None) is unclear


def test_the_judge_counts_no_more_than_allowed_and_no_fewer():
    views = judge(one=grouped(0))
    assert views.count(1, 2).counts.tolist() == [1, 2]
    assert views.count(4, 6).n_clusters >= 4


def test_the_limit_doubles_while_the_answer_is_close_to_it(monkeypatch):
    y = np.arange(140) % 7
    limits = []
    original = structure.counts_to_try
    monkeypatch.setattr(structure, "counts_to_try", lambda limit: limits.append(limit) or original(limit))
    monkeypatch.setattr(structure, "FIRST_LIMIT", 8)
    answer = judge(one=grouped(0, d=7, y=y)).count(1, None)
    assert answer.n_clusters == 7
    assert limits == [8, 16]
    limits.clear()
    judge(one=grouped(0, d=7, y=y)).count(1, 8)  # as asked for
    assert limits == [8]


def test_the_limit_ends_where_a_cluster_would_have_fewer_than_six_samples():
    assert judge(one=grouped(0)).most_clusters == 15
    assert judge(one=np.arange(5.0)[:, None]).most_clusters == 0
    assert judge(one=np.arange(5.0)[:, None]).count(1, None).counts.tolist() == [1]


def test_a_view_that_follows_one_of_noise_and_one_that_contradicts_are_told_apart():
    other = np.random.default_rng(3).permutation(GROUPS)
    views = judge(one=grouped(0), two=grouped(1), noise=noise(), other=grouped(2, y=other))
    one, two, lost, contrary = views.view_reports(GROUPS, 3)
    assert [each.name for each in (one, two, lost, contrary)] == ["one", "two", "noise", "other"]
    assert min(one.follows, two.follows) > 0.9
    assert one.has_groups
    assert one.own_count == 3
    assert one.similarity > 0.9
    assert lost.follows < 0.3
    assert not lost.has_groups
    assert contrary.follows < 0.3
    assert contrary.has_groups
    assert contrary.own_count == 3
    assert contrary.similarity < 0.2


def test_joint_clusters_follow_a_view_no_more_than_in_full():
    (only,) = judge(one=grouped(0)).view_reports(GROUPS, 3)
    assert 0.95 < only.follows <= 1.0


def test_null_graphs_of_views_are_those_of_one_draw():
    X = grouped(0)
    views = judge(one=X, two=X)
    one, two = views.null_graphs(np.random.default_rng(0))
    assert abs(one - two).max() == 0.0
    fused = views.null_graph(np.random.default_rng(0))
    assert abs(fused - (one + two)).max() == 0.0


@pytest.mark.parametrize("kind", ["table", "counts", "kernel", "graph"])
def test_data_of_every_type_have_a_null_of_the_same_type(kind):
    X = np.abs(grouped(0, d=30)) * (np.random.default_rng(1).random((N, 30)) < 0.3)
    link = (GROUPS[:, None] == GROUPS) & (np.random.default_rng(2).random((N, N)) < 0.3)
    blocks = {"table": X, "counts": sp.csr_array(X), "kernel": X @ X.T, "graph": (link | link.T).astype(float)}
    views = judge(types=[kind], one=blocks[kind])
    (graph,) = views.null_graphs(np.random.default_rng(0))
    assert graph.shape == (N, N)
    assert abs(graph - graph.T).max() < 1e-12
    assert graph.nnz > N


def test_of_many_samples_a_part_is_judged_rows_and_columns_of_kernels_and_graphs(monkeypatch):
    monkeypatch.setattr(structure, "JUDGED", 40)
    X = grouped(0)
    A = (GROUPS[:, None] == GROUPS).astype(float)
    views = judge(types=["table", "kernel", "graph"], table=X, kernel=X @ X.T, graph=A)
    assert len(views.samples) == 40
    assert len(np.unique(views.samples)) == 40
    assert (np.diff(views.samples) > 0).all()
    np.testing.assert_array_equal(views.views["table"], X[views.samples])
    np.testing.assert_array_equal(views.views["kernel"], (X @ X.T)[np.ix_(views.samples, views.samples)])
    np.testing.assert_array_equal(views.views["graph"], A[np.ix_(views.samples, views.samples)])
    assert judge(one=X, seed=1).samples.tolist() != views.samples.tolist()
    assert views.count(1, 5).n_clusters == 3


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("widths", "types"), [([5000], ["kernel"]), ([20, 900], ["table", "table"])])
def test_fewer_samples_are_judged_where_memory_is_short(widths, types):
    assert judged_within(5000, widths, types, np.inf) == JUDGED
    counts = [judged_within(5000, widths, types, room) for room in (20, 32, 64, 4096)]
    assert LEAST_JUDGED <= counts[0] < counts[1] < counts[2] <= counts[3] == JUDGED
    with pytest.raises(ParameterError, match=r"leaves 2 MiB .* 300 samples take .* give n_clusters .* would fit"):
        judged_within(5000, widths, types, 2.0)
    assert judged_within(100, [100], ["kernel"], 1.0) == 100


def test_as_many_graphs_are_looked_at_at_a_time_as_matrices_fit(monkeypatch):
    batches = []
    real = structure.parallel_map

    def watch(work, tasks, **options):
        batches.append(len(tasks))
        return real(work, tasks, **options)

    monkeypatch.setattr(structure, "parallel_map", watch)
    n = 600  # a decomposition takes 5.5 MiB
    y = np.arange(n) % 3
    X = [grouped(seed, y=y) for seed in range(2)]
    found = []
    for spare in (0.0, 6.0, np.inf):
        room = structure.judging_mib(n, [4, 4], ["table", "table"]) + spare
        judge = Judge(Views(("a", "b"), tuple(X)), ["table", "table"], 0, room)
        batches.clear()
        reports = judge.view_reports(y, 3)
        found.append((max(batches), sum(batches), [(one.follows, one.similarity) for one in reports]))
    few, more, all_at_once = found
    assert (few[0], more[0], all_at_once[0]) == (2, 3, all_at_once[1])
    assert few[1:] == more[1:] == all_at_once[1:]


@pytest.mark.parametrize("n", [700, 420])
def test_looking_for_clusters_stays_within_the_limit(n):
    X = grouped(0, y=np.arange(n) % 3)
    KernelKMeans("auto", n_init=1, random_state=0).fit(X[:60])
    model = KernelKMeans("auto", n_init=1, memory_limit=14, random_state=0)
    _, peak = peak_of(lambda: model.fit(X))
    assert peak < 1.15 * 14
    assert model.n_clusters_ == 3


def test_wide_views_are_judged_beside_what_the_fit_keeps():
    X = [np.random.default_rng(v).standard_normal((1500, 400)) for v in range(2)]
    for block in X:
        block[np.arange(1500), np.arange(1500) % 3] += 9.0
    given = sum(block.nbytes for block in X) / 2**20
    model = GraphFusionClustering(3, memory_limit=24, random_state=0)
    model.fit([block[:90] for block in X])
    refusal, peak = peak_of(lambda: model.fit(X))
    assert peak < 0.15 * given + 1.15 * 24
    fitting = int(re.search(r"([\d,]+) samples would fit", str(refusal)).group(1).replace(",", ""))
    some = [block[:fitting] for block in X]
    accepted, peak = peak_of(lambda: model.fit(some))
    assert accepted is model
    assert peak < 0.15 * given * fitting / 1500 + 1.15 * 24


def test_tables_that_leave_no_room_to_judge_views_are_refused_before_any_is_judged(monkeypatch):
    monkeypatch.setattr(graph_fusion, "Judge", lambda *arguments: pytest.fail("views are judged"))
    X = [np.random.default_rng(v).standard_normal((1500, 400)) for v in range(2)]
    with pytest.raises(ParameterError, match=r"memory_limit=24.* samples would fit"):
        GraphFusionClustering(3, memory_limit=24, random_state=0).fit(X)
