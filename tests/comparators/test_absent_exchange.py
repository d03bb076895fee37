"""MultiViewKMeans and MultiViewEM with samples that are absent from views: oracles, laws, new samples and faults."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import get_tags

from kernelweave import (
    MultiViewEM,
    MultiViewKMeans,
    ParameterError,
    ViewError,
    ViewWarning,
    load_model,
    save_model,
)
from kernelweave.backends import Assignment, get_backend
from kernelweave.estimators.comparators.view_features import spread_start
from kernelweave.kernels.features import FeatureKernel
from kernelweave.partitions.empty import reseed_empty
from kernelweave.solvers.comparators.exchange import next_to_learn
from kernelweave.solvers.comparators.multi_view_em import (
    COVARIANCES,
    GaussianView,
    MultinomialView,
    exchange_em,
    mean_posteriors,
)
from kernelweave.solvers.comparators.multi_view_kmeans import exchange_kmeans, joint_distances
from tests.persistence.stored_models import FOLDER, FORMS, NEW
from tests.reference import masked_exchange as oracle
from tests.strategies import generators, partitions, sample_weights, views

CLASSES = {"k-means": MultiViewKMeans, "EM": MultiViewEM}
both = pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)
K = 3
N = 60
NAMES = ("a", "b", "c")


def groups(seed=0, n=N, noise=0.6):
    """Return three views of three groups, and the groups."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    return [5.0 * np.eye(K, width)[y] + noise * rng.normal(size=(n, width)) for width in (4, 5, 3)], y


def with_absent(blocks, rate=0.3, seed=0):
    """Return the views with rows of NaN, and who is there."""
    rng = np.random.default_rng([seed, 1])
    mask = rng.random((len(blocks[0]), len(blocks))) >= rate
    mask[~mask.any(axis=1), 0] = True
    return [np.where(mask[:, [v]], X, np.nan) for v, X in enumerate(blocks)], mask


COMPLETE, Y = groups()
VIEWS, MASK = with_absent(COMPLETE)
BLURRED = with_absent(groups(noise=3.0)[0])[0]


def fitted(cls, X=VIEWS, n_clusters=K, sample_weight=None, **parameters):
    settled = {"n_init": 4, "random_state": 0} | ({"covariance": "shared_spherical"} if cls is MultiViewEM else {})
    return cls(n_clusters, **settled | parameters).fit(X, sample_weight=sample_weight)


# --- solvers ---------------------------------------------------------------------------------------------------------


@st.composite
def masked_problems(draw, max_views=3, min_n=6):
    """Draw views, who is where, starting labels (-1 where the first view lacks a sample), weights and clusters."""
    blocks = draw(views(min_views=2, max_views=max_views, min_n=min_n))
    n, rng = len(blocks[0]), draw(generators())
    if draw(st.booleans()):
        mask = rng.random((n, len(blocks))) >= draw(st.sampled_from([0.2, 0.5, 0.8]))
        mask[~mask.any(axis=1), 0] = True
    else:  # views as a chain: each shares samples with the next alone
        ends = np.linspace(0, n, len(blocks) + 1).astype(int)
        starts = np.maximum(ends[:-1] - 2, 0)
        mask = np.array([[starts[v] <= i < ends[v + 1] for v in range(len(blocks))] for i in range(n)])
    labels, k = draw(partitions(n, max_clusters=3))
    weights = draw(sample_weights(n))
    counted = mask[weights > 0].astype(int)
    shared = counted.T @ counted
    assume((np.linalg.matrix_power(shared, len(blocks)) > 0).all())
    if draw(st.sampled_from([True, True, False])):
        labels = np.where(mask[:, 0], labels, -1)
    assume(all((weights[labels == c] > 0).any() for c in range(k)))
    return blocks, mask, labels, weights, k


def rows_of(mask):
    return [np.flatnonzero(there) for there in mask.T]


def present(blocks, mask):
    return [X[there] for X, there in zip(blocks, rows_of(mask), strict=True)]


@settings(max_examples=30, deadline=None)
@given(problem=masked_problems())
def test_rounds_of_k_means_are_those_of_the_plain_loop(problem):
    blocks, mask, labels, weights, k = problem
    ops = [FeatureKernel(X) for X in present(blocks, mask)]
    result = exchange_kmeans(ops, labels, weights, n_clusters=k, max_iter=100, samples=rows_of(mask))
    path, kept, centres, scatters = oracle.exchange_kmeans(blocks, mask, labels, weights, k)
    assert result.history == pytest.approx(path[:kept], abs=1e-9)
    assert result.n_iter == len(path)
    assert result.objective <= min(path) + 1e-9  # no round of all is better
    np.testing.assert_allclose(result.view_scatters, scatters, atol=1e-9)
    if any(m is None for at in centres for m in at):
        return  # fewer distinct samples than clusters
    table = oracle.joint_distances(blocks, mask, centres)
    wanted = (table <= table.min(axis=1, keepdims=True) + 1e-9).argmax(axis=1)
    if len(set(wanted[weights > 0])) == k:  # else a cluster is founded anew
        for mine, plain in zip(result.means, centres, strict=True):
            np.testing.assert_allclose(mine, np.array(plain), atol=1e-9)
        found = joint_distances(ops, result.means, result.filled, rows_of(mask), len(labels))
        np.testing.assert_allclose(found, table, atol=1e-9)
        assert result.labels.tolist() == wanted.tolist()


@settings(max_examples=25, deadline=None)
@given(
    problem=masked_problems(max_views=2, min_n=8), covariance=st.sampled_from(COVARIANCES), counts=st.booleans()
)  # fmt: skip
def test_rounds_of_em_are_those_of_the_plain_loop(problem, covariance, counts):
    blocks, mask, labels, weights, k = problem
    # No feature is constant: mixtures have a stand-in for its variance that the plain loop lacks.
    blocks = [block + np.random.default_rng(0).normal(size=block.shape) for block in blocks]
    blocks = [np.round(4.0 * np.abs(block)) + 1.0 for block in blocks] if counts else blocks
    kinds = ["multinomial" if counts and v == 0 else covariance for v in range(len(blocks))]
    rows = rows_of(mask)
    there = present(blocks, mask)
    own = [weights[each] for each in rows]
    assume(all((X[w > 0].var(axis=0) > 1e-9).all() for X, w in zip(there, own, strict=True)))
    models = [
        MultinomialView(X, w) if kind == "multinomial" else GaussianView(X, w, kind)
        for X, w, kind in zip(there, own, kinds, strict=True)
    ]
    result = exchange_em(models, labels, n_clusters=k, max_iter=5, samples=rows)
    path, kept, proba = oracle.exchange_em(blocks, kinds, mask, labels, weights, k, max_iter=5)
    assert result.objective >= max(path) - 1e-6  # no round of all is better
    assert result.history[0] == pytest.approx(path[0], abs=1e-6)
    if kept == len(result.history):  # rounding may choose between equally good rounds
        assert result.history == pytest.approx(path[:kept], abs=1e-6)
        np.testing.assert_allclose(mean_posteriors(result.densities, there, rows, len(labels)), proba, atol=1e-5)


@settings(max_examples=10, deadline=None)
@given(problem=masked_problems())
def test_where_every_view_has_all_samples_nothing_changes_to_the_last_bit(problem):
    blocks, _, labels, weights, k = problem
    labels = np.where(labels < 0, 0, labels)
    everyone = [np.arange(len(labels))] * len(blocks)
    ops = [FeatureKernel(X) for X in blocks]
    plain, told = (
        exchange_kmeans(ops, labels, weights, n_clusters=k, max_iter=20, samples=samples)
        for samples in (None, everyone)
    )
    assert plain.history == told.history
    assert plain.labels.tolist() == told.labels.tolist()
    np.testing.assert_array_equal(np.hstack(plain.means), np.hstack(told.means))
    models = [GaussianView(X, weights, "diagonal") for X in blocks]
    plain, told = (
        exchange_em(models, labels, n_clusters=k, max_iter=5, samples=samples) for samples in (None, everyone)
    )
    assert plain.history == told.history
    proba = [mean_posteriors(each.densities, blocks, everyone, len(labels)) for each in (plain, told)]
    np.testing.assert_array_equal(*proba)


def test_a_start_goes_on_through_the_view_whose_known_samples_weigh_most():
    samples = [np.array([0, 1]), np.array([1, 2, 3]), np.array([0, 1, 3]), np.array([3, 4])]
    known = np.array([True, True, False, False, False])
    assert next_to_learn(known, samples, np.ones(5)) == 2
    assert next_to_learn(known, samples, np.array([0.0, 1, 1, 1, 1])) == 1  # the first of equals
    assert next_to_learn(np.array([True, True, True, True, False]), samples, np.ones(5)) == 3
    assert next_to_learn(np.ones(5, dtype=bool), samples, np.ones(5)) is None
    with pytest.raises(AssertionError, match="no sample of positive weight connects"):
        next_to_learn(known, samples, np.array([0.0, 0, 1, 1, 1]))


def test_a_cluster_that_samples_outside_a_view_have_takes_none_of_its_samples():
    # The last two samples are in view 0 alone and are cluster 1; view 1 has nobody of it.
    front = np.array([[0.0], [0.1], [0.2], [9.0], [9.1]])
    back = np.array([[0.0], [1.0], [5.0]])
    samples = [np.arange(5), np.arange(3)]
    ops = [FeatureKernel(front), FeatureKernel(back)]
    result = exchange_kmeans(
        ops, np.array([0, 0, 0, 1, 1]), np.ones(5), n_clusters=2, max_iter=9, samples=samples
    )  # fmt: skip
    assert result.labels.tolist() == [0, 0, 0, 1, 1]
    np.testing.assert_allclose(result.means[1], [[2.0], [2.0]])  # that of cluster 1 is the mean of the view
    np.testing.assert_allclose(result.view_scatters, [0.02 + 0.005, 14.0])


def test_a_cluster_that_is_empty_everywhere_takes_the_farthest_sample_of_the_view():
    # Nobody is nearest to the mean of cluster 1, between the others: the first sample opens it again.
    x = np.array([[-10.0], [-9.0], [9.0], [10.0], [-9.0]])
    result = exchange_kmeans(
        [FeatureKernel(x), FeatureKernel(x[:4])],
        np.array([1, 0, 2, 1, 0]),
        np.ones(5),
        n_clusters=3,
        max_iter=9,
        samples=[np.arange(5), np.arange(4)],
    )
    assert result.history == pytest.approx([200.5, 1.0])
    assert result.labels.tolist() == [1, 0, 2, 2, 0]


def test_a_cluster_with_samples_outside_can_spare_those_inside():
    assignment = Assignment(np.array([0, 1]), np.array([9.0, 4.0]), 0.0)
    options = (get_backend(), assignment, np.ones(2), 3, 1e-12)
    assert reseed_empty(*options, np.array([0, 0, 0])).tolist() == [0, 1]  # both are the last of their clusters
    assert reseed_empty(*options, np.array([0, 1, 0])).tolist() == [0, 2]
    assert reseed_empty(*options, np.array([5, 5, 1])).tolist() == [0, 1]  # nothing is empty


def test_a_cluster_founded_anew_has_the_mean_of_views_that_lack_its_sample():
    # Three clusters, but two distinct places in view 1; the last sample, in view 0 alone, is the farthest.
    front = np.array([[0.0], [0.1], [1.0], [1.1], [7.0]])
    back = np.array([[0.0], [0.0], [3.0], [3.0]])
    result = exchange_kmeans(
        [FeatureKernel(front), FeatureKernel(back)],
        np.array([0, 0, 1, 1, 1]),
        np.ones(5),
        n_clusters=3,
        max_iter=1,
        samples=[np.arange(5), np.arange(4)],
    )
    assert result.labels.tolist() == [0, 0, 1, 1, 2]
    assert result.means[0][2] == pytest.approx(7.0)
    assert result.means[1][2] == pytest.approx(1.5)


def test_samples_whose_start_is_known_keep_it_while_others_learn_theirs():
    labels = np.where(MASK[:, 0], Y, -1)
    rows = rows_of(MASK)
    models = [GaussianView(X[there], np.ones(len(there)), "spherical") for X, there in zip(BLURRED, rows, strict=True)]
    result = exchange_em(models, labels, n_clusters=K, max_iter=1, samples=rows)
    path, _, proba = oracle.exchange_em(BLURRED, ["spherical"] * 3, MASK, labels, np.ones(N), K, max_iter=1)
    assert result.history == pytest.approx(path)
    np.testing.assert_allclose(mean_posteriors(result.densities, present(BLURRED, MASK), rows, N), proba, atol=1e-9)


def test_starts_that_are_drawn_say_nothing_of_samples_that_the_view_lacks():
    first = spread_start(lambda _: np.array([1, 0]), np.array([0, 3]), 4)
    assert first(np.random.default_rng(0)).tolist() == [1, -1, -1, 0]
    assert first(np.array([0, 1, 1, 0])).tolist() == [0, 1, 1, 0]


# --- fit -------------------------------------------------------------------------------------------------------------


@both
def test_the_groups_are_seen_although_samples_are_absent(cls):
    model = fitted(cls)
    assert adjusted_rand_score(Y, model.labels_) > 0.95
    np.testing.assert_array_equal(model.observed_, MASK)
    best = min if cls is MultiViewKMeans else max
    assert model.objective_ == best(model.objective_path_) == model.objective_path_[-1]
    np.testing.assert_array_equal(model.predict(VIEWS), model.labels_)


@both
def test_complete_views_take_no_notice_of_the_parameter(cls):
    plain = fitted(cls, COMPLETE)
    dropping = fitted(cls, COMPLETE, missing="drop")
    np.testing.assert_array_equal(plain.labels_, dropping.labels_)
    np.testing.assert_array_equal(plain.objective_path_, dropping.objective_path_)
    assert plain.observed_.all()
    assert plain.observed_.shape == (N, 3)


def test_centres_scatters_and_distances_are_those_of_the_samples_there():
    model = fitted(MultiViewKMeans, init=Y)
    assert model.labels_.tolist() == Y.tolist()
    scatters = []
    for v, X in enumerate(VIEWS):
        means = np.stack([np.nanmean(X[c == Y], axis=0) for c in range(K)])
        np.testing.assert_allclose(model.cluster_centers_[v], means)
        scatters.append(np.nansum((X - means[Y]) ** 2))
    np.testing.assert_allclose(model.view_scatters_, scatters)
    table = oracle.joint_distances(COMPLETE, MASK, model.cluster_centers_)
    np.testing.assert_allclose(model.transform(VIEWS) ** 2, table, atol=1e-9)
    assert model.score(VIEWS) == pytest.approx(-table.min(axis=1).sum())


def test_the_score_of_mixtures_is_the_mean_over_pairs_of_a_sample_and_a_view():
    model = fitted(MultiViewEM, BLURRED)
    weights = np.arange(N) % 3 + 1.0
    assert model.score(BLURRED) == pytest.approx(model.objective_)
    single = [np.full_like(X, np.nan) for X in BLURRED]
    total = pairs = 0.0
    for v in range(3):
        for i in np.flatnonzero(MASK[:, v]):
            alone = [BLURRED[v][[i]] if u == v else single[u][[i]] for u in range(3)]
            total += weights[i] * model.score(alone)
            pairs += weights[i]
    assert model.score(BLURRED, sample_weight=weights) == pytest.approx(total / pairs)
    only_here = (MASK == [True, False, False]).all(axis=1)  # then the other views have nobody of positive weight
    assert model.score(BLURRED, sample_weight=only_here) == pytest.approx(
        model.score([BLURRED[0][only_here], *(X[only_here] for X in single[1:])])
    )


@pytest.mark.filterwarnings("ignore::kernelweave.ConvergenceWarning")
@both
@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_the_samples_makes_no_difference_from_a_given_start(cls, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(N)
    start = np.where(rng.random(N) < 0.2, rng.integers(K, size=N), Y)
    model = fitted(cls, BLURRED, init=start)
    moved = fitted(cls, [X[order] for X in BLURRED], init=start[order])
    assert moved.labels_.tolist() == model.labels_[order].tolist()
    assert moved.objective_ == pytest.approx(model.objective_)


@both
@pytest.mark.parametrize("seed", range(2))
def test_a_weight_counts_as_repetition(cls, seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, size=N)
    start = np.where(rng.random(N) < 0.2, rng.integers(K, size=N), Y)
    order = rng.permutation(np.repeat(np.arange(N), counts))
    weighted = fitted(cls, BLURRED, sample_weight=counts, init=start)
    repeated = fitted(cls, [X[order] for X in BLURRED], init=start[order])
    assert repeated.labels_.tolist() == weighted.labels_[order].tolist()
    assert repeated.objective_ == pytest.approx(weighted.objective_)


@both
def test_sparse_views_give_the_clusters_of_dense_ones(cls):
    tables = [np.abs(X) for X in VIEWS]
    dense = fitted(cls, tables)
    sparse = fitted(cls, [sp.csr_array(X) for X in tables])
    assert adjusted_rand_score(dense.labels_, sparse.labels_) == 1.0
    np.testing.assert_array_equal(sparse.observed_, MASK)
    np.testing.assert_array_equal(sparse.predict([sp.csr_array(X) for X in tables]), sparse.labels_)
    named = fitted(cls, {name: sp.csr_array(X) for name, X in zip(NAMES, tables, strict=True)})
    assert named.predict({"b": sp.csr_array(np.abs(COMPLETE[1][:4]))}).tolist() == named.labels_[:4].tolist()


def test_counts_may_lack_samples_and_negative_ones_are_still_found():
    rng = np.random.default_rng(0)
    tables = [rng.dirichlet(np.full(20, 0.2), size=K) for _ in range(2)]
    counts, mask = with_absent([np.stack([rng.multinomial(60, table[y]) for y in Y]).astype(float) for table in tables])
    model = fitted(MultiViewEM, counts, distribution="multinomial")
    assert adjusted_rand_score(Y, model.labels_) == 1.0
    there = [X[mask[:, v]] for v, X in enumerate(counts)]
    for v, X in enumerate(there):
        topics = np.stack([X[Y[mask[:, v]] == y].sum(axis=0) + X.mean(axis=0) for y in Y[:K]])
        at = [model.labels_[y] for y in range(K)]
        np.testing.assert_allclose(model.cluster_centers_[v][at], topics / topics.sum(axis=1, keepdims=True), atol=1e-6)
    counts[0][np.flatnonzero(mask[:, 0])[0], 0] = -1.0
    with pytest.raises(ViewError, match="'view_0' holds -1"):
        fitted(MultiViewEM, counts, distribution="multinomial")


@both
@pytest.mark.filterwarnings("ignore:View .* shares")
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_starts_are_drawn_where_there_are_enough_samples_and_reach_all_others(cls, init):
    # The first view has too few samples, and shares none of them with the third.
    mask = np.zeros((N, 3), dtype=bool)
    mask[:2, 0] = True
    mask[:40, 1] = True
    mask[20:, 2] = True
    chain = [np.where(mask[:, [v]], X, np.nan) for v, X in enumerate(COMPLETE)]
    model = fitted(cls, chain, init=init)
    assert adjusted_rand_score(Y, model.labels_) > 0.95
    few = [np.where(mask[:, [v]], X, np.nan)[:6] for v, X in enumerate(COMPLETE)]
    few[2][:] = np.nan
    few[2][4:] = COMPLETE[2][4:6]
    few[1][5] = np.nan
    with pytest.raises(ParameterError, match=r"n_clusters=6 is more than the 5 samples .* that view 'view_1' has"):
        fitted(cls, few, n_clusters=6, init=init)


@both
@pytest.mark.filterwarnings("ignore:View .* shares", "ignore:The clusters agree")
def test_a_view_with_as_many_samples_as_clusters_is_enough_for_a_start(cls):
    few = [X[:5].copy() for X in COMPLETE[:2]]
    few[0][3:] = np.nan
    few[1][:2] = np.nan
    assert set(fitted(cls, few).labels_) == {0, 1, 2}
    with pytest.raises(ParameterError, match=r"n_clusters=4 is more than the 3 samples .* that view 'view_0' has"):
        fitted(cls, few, n_clusters=4)


@both
def test_a_cluster_that_nobody_of_a_view_is_in(cls):
    blocks = [COMPLETE[0], np.where((Y == 2)[:, None], np.nan, COMPLETE[1])]
    with pytest.warns(ViewWarning, match="clusters agree with which views"):
        model = fitted(cls, blocks, init=Y)
    np.testing.assert_array_equal(model.labels_, Y)
    mean = COMPLETE[1][Y != 2].mean(axis=0, keepdims=True)
    np.testing.assert_allclose(model.cluster_centers_[1][[2]], mean)
    alone = [np.full((1, 4), np.nan), mean]
    if cls is MultiViewKMeans:  # the mean of the view stands for the cluster
        assert model.predict(alone).tolist() == [2]
        np.testing.assert_allclose(model.transform(alone)[0, 2], 0.0, atol=1e-6)
    else:  # the mixture of the view does not have it
        assert model.predict_proba(alone)[0, 2] == 0.0
        assert model.mixing_weights_[1, 2] == 0.0


@both
def test_cells_are_filled_or_their_samples_dropped(cls):
    holed = [X.copy() for X in COMPLETE]
    holed[0][3, 0] = np.nan
    with pytest.raises(ViewError, match=r"contains NaN in 1 cells of 1 rows"):
        fitted(cls, holed)
    dropped = fitted(cls, holed, missing="drop")
    assert not dropped.observed_[3, 0]
    assert dropped.observed_.sum() == N * 3 - 1
    filled = fitted(cls, holed, missing="mean")
    assert filled.observed_.all()
    assert filled.predict([X[3:4] for X in holed]).tolist() == [filled.labels_[3]]
    assert not get_tags(cls()).input_tags.allow_nan
    assert get_tags(cls(missing="knn")).input_tags.allow_nan


# --- new samples -----------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("training", ["complete", "with absent"])
def test_new_samples_may_lack_views(cls, training):
    model = fitted(cls, COMPLETE if training == "complete" else VIEWS)
    new, y = groups(seed=3, n=30, noise=0.3)
    names = {c: np.bincount(model.labels_[c == Y]).argmax() for c in range(K)}
    expected = [names[c] for c in y]
    some, _ = with_absent(new, seed=7)
    assert model.predict(some).tolist() == expected
    values = model.transform if cls is MultiViewKMeans else model.predict_proba
    for v in range(3):
        alone = [X if u == v else np.full_like(X, np.nan) for u, X in enumerate(new)]
        assert model.predict(alone).tolist() == expected
        assert np.isfinite(values(alone)).all()
    one_by_one = np.concatenate([values([X[i : i + 1] for X in some]) for i in range(30)])
    np.testing.assert_allclose(one_by_one, values(some), atol=1e-9)
    if cls is MultiViewEM:
        np.testing.assert_allclose(values(some).sum(axis=1), 1.0)


@both
def test_views_may_be_left_out_of_a_dict(cls):
    model = fitted(cls, dict(zip(NAMES, VIEWS, strict=True)))
    whole = {name: X[:5] for name, X in zip(NAMES, COMPLETE, strict=True)}
    alone = model.predict({"b": whole["b"]})
    as_nan = model.predict(whole | {"a": np.full((5, 4), np.nan), "c": np.full((5, 3), np.nan)})
    np.testing.assert_array_equal(alone, as_nan)
    with pytest.raises(ViewError, match=r"fitted on views \['a', 'b', 'c'\]"):
        model.predict({"d": whole["b"]})


# --- what is refused, and saved models -------------------------------------------------------------------------------


@both
def test_samples_absent_from_every_view_are_named(cls):
    nowhere = [X.copy() for X in VIEWS]
    for X in nowhere:
        X[4] = np.nan
    with pytest.raises(ViewError, match=r"1 of 60 samples are absent from every view \(rows 4\)"):
        fitted(cls, nowhere)
    with pytest.raises(ViewError, match=r"absent from every view \(the first is row 4\)"):
        fitted(cls).predict(nowhere)
    with pytest.raises(ViewError, match="absent from every view"):
        fitted(cls, [nowhere[0]])


@both
def test_samples_without_weight_connect_no_views(cls):
    blocks = [X.copy() for X in COMPLETE[:2]]
    blocks[0][40:] = np.nan
    blocks[1][:20] = np.nan
    weights = np.ones(N)
    weights[20:40] = 0.0
    with pytest.raises(ViewError, match=r"Without the samples of weight 0, views 'view_0' and 'view_1' share no"):
        fitted(cls, blocks, sample_weight=weights)
    weights[20:] = 0.0
    with pytest.raises(ViewError, match=r"All 40 samples that view 'view_1' has are of weight 0"):
        fitted(cls, blocks, sample_weight=weights)


@both
def test_models_come_back_from_files(cls, tmp_path):
    holed = [X.copy() for X in VIEWS]
    holed[1][np.flatnonzero(MASK[:, 1])[0], 0] = np.nan
    for data, missing in ((VIEWS, "error"), (holed, "knn")):
        model = fitted(cls, data, missing=missing)
        again = load_model(save_model(model, tmp_path / f"{missing}.kwm"))
        assert again.missing == missing
        np.testing.assert_array_equal(again.observed_, MASK)
        np.testing.assert_array_equal(again.predict(data), model.labels_)
        values = "transform" if cls is MultiViewKMeans else "predict_proba"
        np.testing.assert_array_equal(getattr(again, values)(data), getattr(model, values)(data))


@both
@pytest.mark.parametrize("version", [1, 2])
def test_models_of_older_files_place_samples_that_lack_views(cls, version):
    model = load_model(FOLDER / f"v{version}-{cls.__name__}-views.kwm")
    assert model.missing == "error"
    new = FORMS["views"](NEW)
    lacking = {"front": new["front"], "back": np.full_like(new["back"], np.nan)}
    found = model.predict(lacking)
    np.testing.assert_array_equal(model.predict({"front": new["front"]}), found)
    if cls is MultiViewKMeans:
        gaps = ((new["front"][:, None] - model.cluster_centers_[0]) ** 2).sum(axis=2)
        np.testing.assert_array_equal(found, gaps.argmin(axis=1))
