"""MultiViewNMF of samples that are absent from views: objective, updates, start, faults and saved models."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize
from sklearn.utils import get_tags

from kernelweave import MultiViewNMF, ViewError, ViewWarning, load_model, save_model
from kernelweave.kernels.features import FeatureKernel
from kernelweave.solvers.comparators.multi_view_nmf import FactoredView, joint_factors
from kernelweave.solvers.comparators.observed_starts import SharedDistances, masked_start
from tests.persistence.stored_models import FOLDER
from tests.reference import masked_nmf as oracle
from tests.strategies import generators, partitions, views

cases = settings(max_examples=30, deadline=None)
few = settings(max_examples=12, deadline=None)
N = 60
K = 3
Y = np.arange(N) % K


def topics(seed=0, n=N):
    """Return counts of words in three views whose topics are the groups."""
    rng = np.random.default_rng(seed)
    tables = []
    for width in (9, 12, 6):
        shares = np.where(np.arange(width) % K == np.arange(K)[:, None], 5.0, 1.0)
        shares /= shares.sum(axis=1, keepdims=True)
        tables.append(np.array([rng.multinomial(40, shares[c]) for c in np.arange(n) % K], dtype=float))
    return tables


def with_absent(tables, rate=0.3, seed=0):
    """Return the views with rows of NaN, and who is there."""
    rng = np.random.default_rng([seed, 1])
    mask = rng.random((len(tables[0]), len(tables))) >= rate
    mask[~mask.any(axis=1), 0] = True
    return [np.where(mask[:, [v]], X, np.nan) for v, X in enumerate(tables)], mask


COMPLETE = topics()
VIEWS, MASK = with_absent(COMPLETE)


def fitted(X=VIEWS, n_clusters=K, **parameters):
    return MultiViewNMF(n_clusters, **{"random_state": 0, "n_init": 2} | parameters).fit(X)


@st.composite
def problems(draw):
    """Draw views without zeros, NaN for absent samples, who is in them, weights of the views, and a start."""
    tables = [np.abs(X) + 0.1 * (1.0 + np.abs(X).mean()) for X in draw(views(min_views=2, max_views=3, min_n=5))]
    n = len(tables[0])
    rng = draw(generators())
    mask = rng.random((n, len(tables))) < draw(st.sampled_from([0.4, 0.7, 1.0]))
    mask[np.arange(n), rng.integers(len(tables), size=n)] = True
    mask[0] = True
    labels, k = draw(partitions(n, max_clusters=3))
    weights = [10.0 ** draw(st.integers(-3, 1)) for _ in tables]
    tables = [np.where(mask[:, [v]], X, np.nan) for v, X in enumerate(tables)]
    return oracle.scaled(tables, mask), mask, weights, labels, k


def factors(tables, mask, weights, labels, k, **options):
    """Return the factors of the solver, which gets the rows of each view alone."""
    known = [np.flatnonzero(mask[:, v]) for v in range(len(tables))]
    rows = [X[there] for X, there in zip(tables, known, strict=True)]
    return joint_factors(rows, weights, labels, known, n_clusters=k, **{"max_iter": 40, "tol": 0.0} | options)


def of_all(parts, mask):
    """Return the sample factors with rows of NaN for absent samples."""
    result = []
    for v, part in enumerate(parts):
        rows = np.full((len(mask), part.shape[1]), np.nan)
        rows[mask[:, v]] = part
        result.append(rows)
    return result


# --- objective and updates -------------------------------------------------------------------------------------------


@cases
@given(problem=problems())
def test_no_update_raises_the_objective_over_what_was_observed(problem):
    tables, mask, weights, _, _ = problem
    result = factors(*problem)
    size = sum(float((X[mask[:, v]] ** 2).sum()) for v, X in enumerate(tables))
    assert (np.diff(result.history) <= 1e-13 * (size + result.history[0])).all()
    assert all((part >= 0).all() for part in (result.consensus, *result.samples, *result.features))
    Vs = of_all(result.samples, mask)
    wanted = oracle.objective(tables, mask, result.features, Vs, result.consensus, weights)
    assert result.objective == pytest.approx(wanted, rel=1e-6, abs=1e-12 * size)
    np.testing.assert_allclose(result.consensus, oracle.consensus(mask, result.features, Vs, weights), rtol=1e-9)


@few
@given(problem=problems())
def test_a_round_is_that_of_the_source_over_the_samples_of_each_view(problem):
    tables, mask, weights, labels, k = problem
    start = []
    for v, (X, weight) in enumerate(zip(tables, weights, strict=True)):
        there = np.flatnonzero(mask[:, v])
        start.append(FactoredView(X[there], weight, labels, k, there))
    Us = [view.U for view in start]
    Vs = of_all([view.V for view in start], mask)
    heavy = np.nansum(Vs, axis=2)[mask.T]
    np.testing.assert_allclose(heavy, heavy[0])  # every sample is as heavy in one view as in another
    common = oracle.consensus(mask, Us, Vs, weights)
    result = factors(*problem, max_iter=2)
    for _ in range(result.n_iter):
        Us, Vs, common = oracle.one_round(tables, mask, Us, Vs, common, weights)
    np.testing.assert_allclose(result.consensus, common, rtol=1e-6, atol=1e-15)
    for mine, plain in zip((*result.features, *of_all(result.samples, mask)), (*Us, *Vs), strict=True):
        there = ~np.isnan(mine)
        np.testing.assert_allclose(mine[there], plain[there], rtol=1e-6, atol=1e-15)


@few
@given(problem=problems())
def test_a_mask_that_lacks_nobody_changes_no_bit(problem):
    tables, mask, weights, labels, k = problem
    tables = oracle.scaled([np.where(np.isnan(X), 1.0, X) for X in tables], np.ones_like(mask))
    masked = factors(tables, np.ones_like(mask), weights, labels, k)
    plain = joint_factors(tables, weights, labels, n_clusters=k, max_iter=40, tol=0.0)
    assert masked.history == plain.history
    np.testing.assert_array_equal(masked.consensus, plain.consensus)
    for mine, other in zip((*masked.samples, *masked.features), (*plain.samples, *plain.features), strict=True):
        np.testing.assert_array_equal(mine, other)


@few
@given(problem=problems(), seed=st.integers(0, 100))
def test_the_order_of_samples_and_views_plays_no_part(problem, seed):
    tables, mask, weights, labels, k = problem
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(labels))
    order = rng.permutation(len(tables))
    plain = factors(*problem, max_iter=10)
    moved_tables = [tables[v][rows] for v in order]
    moved_weights = [weights[v] for v in order]
    moved = factors(moved_tables, mask[np.ix_(rows, order)], moved_weights, labels[rows], k, max_iter=10)
    np.testing.assert_allclose(moved.consensus, plain.consensus[rows], rtol=1e-6, atol=1e-12)
    for place, v in enumerate(order):
        np.testing.assert_allclose(moved.features[place], plain.features[v], rtol=1e-6, atol=1e-12)


# --- start -----------------------------------------------------------------------------------------------------------


@few
@given(problem=problems())
def test_distances_of_the_start_are_means_over_the_views_of_both(problem):
    tables, mask, *_ = problem
    rows = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in tables]
    known = [np.flatnonzero(mask[:, v]) for v in range(len(tables))]
    ops = [FeatureKernel(X[there]) for X, there in zip(rows, known, strict=True)]
    distances = SharedDistances(ops, known)
    every = np.arange(len(mask))
    np.testing.assert_allclose(distances(every), oracle.shared_distances(rows, mask), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(distances.n_views, mask.sum(axis=1))


@pytest.mark.parametrize("seed", range(4))
def test_the_start_separates_no_equal_samples_and_is_that_of_its_seed(seed):
    twice = [np.vstack([X, X[:20]]) for X in VIEWS]
    mask = np.vstack([MASK, MASK[:20]])
    known = [np.flatnonzero(there) for there in mask.T]
    ops = [FeatureKernel(normalize(X[there])) for X, there in zip(twice, known, strict=True)]
    distances = SharedDistances(ops, known)
    labels = masked_start(distances, 6, np.random.default_rng(seed))
    np.testing.assert_array_equal(labels[N:], labels[:20])
    assert len(np.unique(labels)) == 6
    np.testing.assert_array_equal(labels, masked_start(distances, 6, np.random.default_rng(seed)))


class Drawn:
    """Draws the same number every time."""

    def __init__(self, number):
        self.number = number

    def random(self, count):
        return np.full(count, self.number)


class Stored:
    """Distances of a matrix, in the place of those of views."""

    slack = 1e-9

    def __init__(self, matrix, n_views):
        self.matrix = np.array(matrix)
        self.n_views = np.array(n_views, dtype=float)

    def __call__(self, chosen):
        return self.matrix[chosen]


def test_samples_of_many_views_are_drawn_rather_and_ties_go_to_the_first():
    near = 1.0 - 1e-12
    matrix = [[0.0, 2.0, 1.0, 1.0], [2.0, 0.0, near, 1.0], [1.0, near, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]]
    labels = masked_start(Stored(matrix, [3, 1, 1, 1]), 2, Drawn(0.45))
    assert labels.tolist() == [0, 1, 0, 0]  # half of the draws are sample 0; 1 is the one far from it
    assert masked_start(Stored(matrix, [1, 1, 1, 1]), 2, Drawn(0.45)).tolist()[1] == 0


# --- estimator -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_the_groups_are_seen_although_samples_are_absent(rate):
    tables, mask = with_absent(COMPLETE, rate)
    model = fitted(tables)
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    np.testing.assert_array_equal(model.observed_, mask)
    assert (np.diff(model.objective_path_) <= 1e-15).all()


def test_attributes_are_those_of_the_formula():
    strengths = [0.01, 0.1, 0.02]
    model = fitted(regularization=strengths)
    np.testing.assert_array_equal(np.isnan(np.stack(model.sample_factors_, axis=1)).all(axis=2), ~MASK)
    Us = [part.T for part in model.components_]
    plain = (MASK, Us, model.sample_factors_)
    np.testing.assert_allclose(model.consensus_, oracle.consensus(*plain, strengths))
    wanted = oracle.objective(oracle.scaled(VIEWS, MASK), *plain, model.consensus_, strengths)
    assert model.objective_ == pytest.approx(wanted)
    np.testing.assert_allclose([part.sum(axis=1) for part in model.components_], 1.0)
    assert not np.isnan(model.consensus_).any()


def test_complete_views_take_no_notice_of_the_parameter():
    plain = fitted(COMPLETE)
    dropping = fitted(COMPLETE, missing="drop")
    np.testing.assert_array_equal(plain.labels_, dropping.labels_)
    np.testing.assert_array_equal(plain.consensus_, dropping.consensus_)
    assert plain.observed_.all()
    assert plain.observed_.shape == (N, 3)


def test_sparse_views_give_the_factors_of_dense_ones():
    dense = fitted()
    sparse = fitted([sp.csr_array(X) for X in VIEWS])
    np.testing.assert_array_equal(sparse.observed_, MASK)
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_allclose(sparse.consensus_, dense.consensus_, rtol=1e-6, atol=1e-12)


def test_equal_samples_with_the_same_views_have_the_same_label():
    model = fitted([np.vstack([X, X[:20]]) for X in VIEWS], n_clusters=5)
    np.testing.assert_array_equal(model.labels_[N:], model.labels_[:20])


def test_what_is_wrong_with_a_view_is_told_of_the_samples_it_has():
    negative = [X.copy() for X in VIEWS]
    negative[1][np.flatnonzero(MASK[:, 1])[3], 2] = -4.0
    with pytest.raises(ViewError, match=r"Negative values in data passed to MultiViewNMF: view 'view_1' holds -4"):
        fitted(negative)
    nowhere = [X.copy() for X in VIEWS]
    for X in nowhere:
        X[4] = np.nan
    with pytest.raises(ViewError, match=r"1 of 60 samples are absent from every view \(rows 4\)"):
        fitted(nowhere)
    apart = [X.copy() for X in COMPLETE[:2]]
    apart[0][:30] = np.nan
    apart[1][30:] = np.nan
    with pytest.raises(ViewError, match="share no sample"):
        fitted(apart)


def test_cells_are_filled_or_their_samples_dropped():
    holed = [X.copy() for X in COMPLETE]
    holed[0][3, 0] = np.nan
    with pytest.raises(ViewError, match=r"contains NaN in 1 cells of 1 rows"):
        fitted(holed)
    dropped = fitted(holed, missing="drop")
    assert not dropped.observed_[3, 0]
    by_hand = [X.copy() for X in COMPLETE]
    by_hand[0][3] = np.nan
    np.testing.assert_array_equal(dropped.consensus_, fitted(by_hand).consensus_)
    by_hand[0][3] = COMPLETE[0][3]
    by_hand[0][3, 0] = np.delete(COMPLETE[0][:, 0], 3).mean()
    np.testing.assert_allclose(fitted(holed, missing="mean").consensus_, fitted(by_hand).consensus_)
    assert not get_tags(MultiViewNMF()).input_tags.allow_nan
    assert get_tags(MultiViewNMF(missing="knn")).input_tags.allow_nan


def test_a_group_and_a_view_of_nothing_do_no_harm():
    empty = np.where(MASK[:, [0]], 0.0, np.nan) * np.ones(2)
    assert np.isfinite(fitted([*VIEWS, empty]).consensus_).all()
    lacking = [COMPLETE[0], np.where((Y == 2)[:, None], np.nan, COMPLETE[1])]
    with pytest.warns(ViewWarning, match="clusters agree with which views"):
        model = fitted(lacking)
    assert adjusted_rand_score(Y, model.labels_) > 0.9


def test_models_come_back_from_files(tmp_path):
    model = fitted(dict(zip("abc", VIEWS, strict=True)), missing="median")
    again = load_model(save_model(model, tmp_path / "model.kwm"))
    for name in ("labels_", "consensus_", "observed_", "objective_path_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    for mine, other in zip(again.sample_factors_, model.sample_factors_, strict=True):
        np.testing.assert_array_equal(mine, other)
    assert again.get_params() == model.get_params()
    older = load_model(FOLDER / "v2-MultiViewNMF-views.kwm")  # of before there was the parameter
    assert older.missing == "error"
