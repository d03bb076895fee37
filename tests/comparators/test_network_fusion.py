"""NEMO and SimilarityNetworkFusion: plain oracles, laws, absent samples and new ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from kernelweave import NEMO, SimilarityNetworkFusion, ViewError, ViewWarning
from kernelweave.solvers.comparators import network_fusion as solver
from tests import strategies
from tests.reference import network_fusion as oracle

quick = settings(max_examples=30, deadline=None)
methods = pytest.mark.parametrize("cls", [NEMO, SimilarityNetworkFusion])
TRUTH = np.repeat([0, 1, 2], 30)


def three_groups(seed=0, spread=1.0):
    """Return two views of three groups."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [3.0, 5.0]])
    front = centres[TRUTH] + rng.normal(0, spread, (len(TRUTH), 2))
    back = centres[TRUTH] @ rng.normal(size=(2, 4)) + rng.normal(0, spread, (len(TRUTH), 4))
    return [front, back]


def with_absent(views, share=0.25, seed=1):
    """Return the views with rows of NaN, none of them of one sample in all views."""
    rng = np.random.default_rng(seed)
    absent = rng.random(len(views[0])) < share
    which = rng.integers(len(views), size=len(views[0]))
    return [np.where((absent & (which == v))[:, None], np.nan, view) for v, view in enumerate(views)]


VIEWS = three_groups()
ABSENT = with_absent(VIEWS)
NEW = three_groups(seed=5)


def same_partition(one, other):
    return adjusted_rand_score(one, other) == 1.0


def every_other(blocks):
    """Return the views of half of the samples: the oracles go from entry to entry."""
    return [X[::2] for X in blocks]


def distances(X):
    """Return the distances that the solvers get."""
    return oracle.distances(oracle.standardized(X))


# --- plain oracles ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [VIEWS, VIEWS[:1], ABSENT], ids=["views", "one view", "absent"])
@pytest.mark.parametrize("m", [1, 7, None])
def test_nemo_is_the_plain_oracle(blocks, m):
    blocks = every_other(blocks)
    model = NEMO(3, n_neighbors=m, random_state=0).fit(blocks)
    present = [int((~np.isnan(X).all(axis=1)).sum()) for X in blocks]
    counts = [m or max(10, n // 3) for n in present]
    assert model.n_neighbors_.tolist() == counts
    expected = oracle.average_similarity(blocks, counts)
    np.testing.assert_allclose(model.affinity_.toarray(), expected, rtol=1e-7, atol=1e-14)
    assert model.objective_ == model.objective_path_[-1] == pytest.approx(3 - model.eigenvalues_.sum())
    assert model.n_iter_ == 1


@pytest.mark.parametrize("blocks", [VIEWS, VIEWS[:1], [*VIEWS, NEW[0]]], ids=["two views", "one view", "three views"])
@pytest.mark.parametrize("rounds", [1, 5])
def test_similarity_network_fusion_is_the_plain_oracle(blocks, rounds):
    blocks = every_other(blocks)
    model = SimilarityNetworkFusion(3, n_neighbors=6, mu=0.4, max_iter=rounds, random_state=0).fit(blocks)
    expected = oracle.fused(blocks, 6, mu=0.4, rounds=rounds)
    np.testing.assert_allclose(model.affinity_, expected, rtol=1e-7, atol=1e-14)
    assert model.n_iter_ == rounds
    assert model.n_neighbors_ == 6


@pytest.mark.parametrize(("n", "expected"), [(3, 1), (11, 5), (90, 20)])
def test_few_samples_have_fewer_neighbours_unless_their_number_is_given(n, expected):
    blocks = [np.random.default_rng(n).normal(size=(n, 3))]
    assert SimilarityNetworkFusion(1, random_state=0).fit(blocks).n_neighbors_ == expected
    assert SimilarityNetworkFusion(1, n_neighbors=2, random_state=0).fit(blocks).n_neighbors_ == 2
    assert SimilarityNetworkFusion(1, n_neighbors=500, random_state=0).fit(blocks).n_neighbors_ == n - 1


@methods
def test_both_find_groups_and_leave_columns_alone_on_request(cls):
    model = cls(3, random_state=0).fit(VIEWS)
    assert same_partition(model.labels_, TRUTH)
    scaled = [oracle.standardized(X) for X in VIEWS]
    plain = cls(3, standardize=False, random_state=0).fit(scaled)
    np.testing.assert_allclose(dense(plain.affinity_), dense(model.affinity_), rtol=1e-9, atol=1e-14)
    unscaled = cls(3, standardize=False, random_state=0).fit([VIEWS[0] * [1.0, 100.0], VIEWS[1]])
    assert np.abs(dense(unscaled.affinity_) - dense(model.affinity_)).max() > 1e-3


@methods
@pytest.mark.parametrize("seed", range(4))
def test_clusters_are_numbered_by_their_first_samples(cls, seed):
    order = np.random.default_rng(seed).permutation(len(TRUTH))
    model = cls(3, random_state=seed).fit([X[order] for X in VIEWS])
    first = [int(np.argmax(model.labels_ == c)) for c in range(3)]
    assert first == sorted(first)
    assert same_partition(model.labels_, TRUTH[order])


@methods
def test_what_a_sample_has_with_itself_plays_no_part(cls):
    model = cls(3, random_state=0).fit(VIEWS)
    A = dense(model.affinity_)
    A = A - np.diag(A.diagonal())
    degrees = A.sum(axis=1)
    expected = np.linalg.eigvalsh(A / np.sqrt(np.outer(degrees, degrees)))[:-4:-1]
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-6)


def dense(A):
    return A.toarray() if sp.issparse(A) else A


# --- laws ------------------------------------------------------------------------------------------------------------


@quick
@given(strategies.views(min_views=1, max_views=3, min_n=5), strategies.generators(), st.integers(1, 4))
def test_neither_the_order_of_samples_nor_that_of_views_matters(blocks, rng, m):
    order = rng.permutation(len(blocks[0]))
    turned = [X[order] for X in reversed(blocks)]
    for cls in (NEMO, SimilarityNetworkFusion):
        one = fitted_affinity(cls, blocks, m)
        other = fitted_affinity(cls, turned, m)
        np.testing.assert_allclose(other, one[np.ix_(order, order)], rtol=1e-6, atol=1e-12)


def fitted_affinity(cls, blocks, m):
    return dense(cls(1, n_neighbors=m, n_init=1, random_state=0).fit(blocks).affinity_)


@quick
@given(strategies.samples(min_n=5, max_n=14), st.integers(1, 4))
def test_shares_and_networks_add_up(X, m):
    D = distances(X)
    near = solver.neighborhoods(D, m, among=True)
    S = solver.neighbor_shares(D, near, near.means, 0.5, among=True)
    np.testing.assert_allclose(S.sum(axis=1), 1.0)
    assert (np.diff(S.indptr) >= m).all()
    assert not S.diagonal().any()
    P = solver.full_shares(D, near.means, 0.5)
    np.testing.assert_array_equal(P, P.T)
    np.testing.assert_array_equal(P.diagonal(), 0.5)
    assert P.sum() == pytest.approx(len(X))
    fused = solver.fuse_networks([P, P], [S, S], 3)
    np.testing.assert_array_equal(fused, fused.T)
    assert fused.sum() == pytest.approx(len(X))


@quick
@given(strategies.views(min_views=1, max_views=3, min_n=5), st.integers(1, 4))
def test_a_full_mask_is_no_mask(blocks, m):
    shares = []
    for X in blocks:
        D = distances(X)
        near = solver.neighborhoods(D, m, among=True)
        shares.append(solver.neighbor_shares(D, near, near.means, 0.5, among=True))
    mask = np.ones((len(blocks[0]), len(blocks)), dtype=bool)
    plain = solver.average_similarity(shares)
    masked = solver.average_similarity(shares, mask)
    np.testing.assert_allclose(masked.toarray(), plain.toarray(), rtol=1e-12)


@methods
def test_one_view_twice_is_one_view(cls):
    once = cls(3, random_state=0).fit(VIEWS[:1])
    twice = cls(3, random_state=0).fit([VIEWS[0], VIEWS[0]])
    np.testing.assert_allclose(dense(twice.affinity_), dense(once.affinity_), rtol=1e-9, atol=1e-14)
    assert same_partition(once.labels_, twice.labels_)


def test_the_rounds_change_less_and_less_and_leave_their_input_alone():
    D = [distances(X) for X in VIEWS]
    near = [solver.neighborhoods(each, 10, among=True) for each in D]
    S = [solver.neighbor_shares(d, m, m.means, 0.5, among=True) for d, m in zip(D, near, strict=True)]
    P = [solver.full_shares(d, m.means, 0.5) for d, m in zip(D, near, strict=True)]
    before = [each.copy() for each in P]
    changes = []
    solver.fuse_networks(P, S, 20, on_round=changes.append)
    assert len(changes) == 20
    assert changes[-1] < 0.05 * changes[0]
    for each, copy in zip(P, before, strict=True):
        np.testing.assert_array_equal(each, copy)


@methods
def test_distances_far_too_large_for_exponentials_still_have_shares(cls):
    model = cls(3, standardize=False, random_state=0).fit([X * 1e5 for X in VIEWS])
    affinity = dense(model.affinity_)
    assert np.isfinite(affinity).all()
    assert (affinity.sum(axis=1) > 0.5).all()


def two_topics():
    """Return two views of word counts, mostly zeros: one half of the words for each half of the texts."""
    rates = np.kron(np.eye(2), np.full((20, 30), 0.14)) + 0.01
    return [np.random.default_rng(v).poisson(rates).astype(float) for v in range(2)]


@methods
@pytest.mark.parametrize("standardize", [True, "auto"])
def test_sparse_views_have_the_networks_of_dense_ones(cls, standardize):
    counts = two_topics()
    one = cls(2, n_neighbors=5, standardize=standardize, random_state=0).fit(counts)
    other = cls(2, n_neighbors=5, standardize=standardize, random_state=0).fit([sp.csr_array(X) for X in counts])
    np.testing.assert_allclose(dense(other.affinity_), dense(one.affinity_), rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(other.predict(counts), other.labels_)
    np.testing.assert_array_equal(one.predict([sp.csr_array(X) for X in counts]), one.labels_)


@methods
def test_rows_of_counts_are_compared_at_unit_length_unless_something_else_is_asked_for(cls):
    counts = two_topics()
    numbers = VIEWS
    scaled = [X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12) for X in counts]
    of_counts = cls(2, n_neighbors=5, random_state=0).fit(counts)
    as_it_is = cls(2, n_neighbors=5, standardize=False, random_state=0).fit(scaled)
    np.testing.assert_allclose(dense(of_counts.affinity_), dense(as_it_is.affinity_), rtol=1e-6, atol=1e-12)
    by_columns = cls(2, n_neighbors=5, standardize=True, random_state=0).fit(numbers)
    np.testing.assert_array_equal(
        dense(cls(2, n_neighbors=5, random_state=0).fit(numbers).affinity_), dense(by_columns.affinity_)
    )
    assert not np.allclose(
        dense(cls(2, n_neighbors=5, standardize=True, random_state=0).fit(counts).affinity_), dense(of_counts.affinity_)
    )


# --- absent samples --------------------------------------------------------------------------------------------------


def test_nemo_groups_samples_that_are_absent_from_views():
    model = NEMO(3, random_state=0).fit(ABSENT)
    np.testing.assert_array_equal(model.observed_, np.stack([~np.isnan(X).all(axis=1) for X in ABSENT], axis=1))
    assert not model.observed_.all()
    assert adjusted_rand_score(model.labels_, TRUTH) > 0.9


def test_samples_that_no_view_has_together_have_the_mean_affinity():
    views = [X.copy() for X in VIEWS]
    views[0][::9] = np.nan
    views[1][4::9] = np.nan
    model = NEMO(3, random_state=0).fit(views)
    assert model.affinity_[::9][:, 4::9].nnz == 0
    assert model.affinity_[::9][:, 5::9].nnz > 0
    A = model.affinity_.toarray()
    common = model.observed_.astype(int) @ model.observed_.T.astype(int) > 0
    others = common & ~np.eye(len(A), dtype=bool)
    A[~common] = A[others].mean()
    degrees = A.sum(axis=1)
    np.testing.assert_allclose(
        model.eigenvalues_, np.linalg.eigvalsh(A / np.sqrt(np.outer(degrees, degrees)))[:-4:-1], rtol=1e-6
    )


def test_clusters_that_follow_absence_are_warned_of():
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(60, 2)), rng.normal(size=(60, 2))]
    views[0][:30] += 8.0
    views[1][31:] = np.nan
    with pytest.warns(ViewWarning, match="which views the samples are in"):
        NEMO(2, n_neighbors=5, random_state=0).fit(views)


def test_cells_are_filled_or_their_samples_dropped_on_request():
    views = [X.copy() for X in VIEWS]
    views[1][4, 0] = np.nan
    with pytest.raises(ViewError, match=r"contains NaN in 1 cells.*missing='mean'"):
        NEMO(3).fit(views)
    dropped = NEMO(3, missing="drop", random_state=0).fit(views)
    assert np.argwhere(~dropped.observed_).tolist() == [[4, 1]]
    filled = NEMO(3, missing="mean", random_state=0).fit(views)
    assert filled.observed_.all()
    assert same_partition(filled.labels_, TRUTH)


def test_fusion_refuses_absent_samples():
    with pytest.raises(ViewError, match=r"SimilarityNetworkFusion takes complete views only"):
        SimilarityNetworkFusion(3).fit(ABSENT)


# --- new samples -----------------------------------------------------------------------------------------------------


@methods
def test_training_samples_have_their_labels_and_new_ones_those_of_their_group(cls):
    model = cls(3, random_state=0).fit(VIEWS)
    np.testing.assert_array_equal(model.predict(VIEWS), model.labels_)
    moved = [X + 1e-9 for X in VIEWS]  # not recognised: labels come from neighbours
    assert (model.predict(moved) == model.labels_).mean() > 0.97
    near = [X + 0.1 for X in VIEWS]
    assert adjusted_rand_score(model.predict(near), TRUTH) > 0.95


@methods
def test_a_training_sample_keeps_its_label_although_its_neighbours_have_another(cls):
    noise = list(np.random.default_rng(0).normal(size=(2, 60, 2)))
    model = cls(3, n_neighbors=20, mu=5.0, random_state=0).fit(noise)
    assert (model._model.votes(noise).argmax(axis=1) != model.labels_).any()
    np.testing.assert_array_equal(model.predict(noise), model.labels_)


def test_votes_are_shares_of_the_nearest_training_samples():
    model = SimilarityNetworkFusion(3, n_neighbors=4, random_state=0).fit(VIEWS[:1])
    centre = VIEWS[0].mean(axis=0)
    spread = VIEWS[0].std(axis=0)
    known = (VIEWS[0] - centre) / spread
    new = (NEW[0][:1] - centre) / spread
    d = np.sqrt(((known - new) ** 2).sum(axis=1))
    near = np.argsort(d)[:4]
    D = oracle.distances(known)
    means = np.array([oracle.mean_distance(D, j, 4) for j in near])
    values = np.exp(-(d[near] ** 2) / (0.5 * (d[near].mean() + means + d[near]) / 3))
    expected = np.bincount(model.labels_[near], weights=values / values.sum(), minlength=3)
    np.testing.assert_allclose(model._model.votes([NEW[0][:1]])[0], expected)


def test_new_samples_of_nemo_may_lack_views():
    named = dict(zip("ab", ABSENT, strict=True))
    model = NEMO(3, random_state=0).fit(named)
    np.testing.assert_array_equal(model.predict(named), model.labels_)
    alone = model.predict({"b": VIEWS[1]})
    assert adjusted_rand_score(alone, TRUTH) > 0.9
    gone = {"a": np.full((1, 2), np.nan), "b": np.full((1, 4), np.nan)}
    with pytest.raises(ViewError, match="absent from every view"):
        model.predict(gone)
