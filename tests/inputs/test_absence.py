"""Samples that are absent from views, and cells that were not measured."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.impute import KNNImputer, SimpleImputer

from kernelweave import GraphFusionClustering, MultiViewKernelKMeans, SimilarityNetworkFusion, ViewError, ViewWarning
from kernelweave.inputs import absent_rows, observed_views
from kernelweave.inputs.arrays.absence import FILLING_COPIES, CellFiller, check_observed, find_holes, weak_links

RNG = np.random.default_rng(0)
N = 60
GROUPS = np.arange(N) % 3
FRONT = 6.0 * np.eye(3)[GROUPS] + RNG.standard_normal((N, 3))
BACK = 6.0 * np.eye(4)[GROUPS] + RNG.standard_normal((N, 4))


def without(X, rows):
    X = X.copy()
    X[rows] = np.nan
    return X


def fitted(X, **parameters):
    return GraphFusionClustering(3, check_views=False, random_state=0, **parameters).fit(X)


# --- what is not there -----------------------------------------------------------------------------------------------


def test_a_complete_view_has_no_holes():
    assert find_holes(FRONT) is None
    assert find_holes(sp.csr_array(FRONT)) is None
    assert not absent_rows(FRONT).any()


def test_huge_values_that_sum_to_nothing_finite_are_no_holes():
    huge = np.array([[1e308, 1e308], [-1e308, -1e308], [1e308, -1e308]])
    holes = find_holes(huge)
    assert holes is None or not (holes.absent.any() or holes.any_cell)


def test_rows_of_nan_are_absent_and_other_nan_are_cells():
    X = without(FRONT, [3, 7])
    X[5, 1] = np.nan
    X[6, :2] = np.nan
    holes = find_holes(X)
    assert np.flatnonzero(holes.absent).tolist() == [3, 7]
    assert holes.cells[[5, 6]].tolist() == [1, 2]
    assert holes.cells.sum() == 3


def test_a_sparse_row_without_entries_is_observed_and_one_of_nan_alone_absent():
    X = sp.csr_array(np.array([[0.0, 0.0, 0.0], [np.nan, 0.0, np.nan], [1.0, np.nan, 0.0], [1.0, 0.0, 2.0]]))
    holes = find_holes(X)
    assert holes.absent.tolist() == [False, True, False, False]
    assert holes.cells.tolist() == [0, 0, 1, 0]


def test_in_a_kernel_row_and_column_of_an_absent_sample_are_nan():
    K = FRONT @ FRONT.T
    K[[2, 5]] = np.nan
    K[:, [2, 5]] = np.nan
    holes = find_holes(K)
    assert np.flatnonzero(holes.absent).tolist() == [2, 5]
    assert not holes.any_cell
    K[8, 9] = np.nan
    assert find_holes(K).cells.sum() == 1


def test_new_rows_of_a_kernel_have_nan_where_training_samples_were_absent():
    known = np.arange(6) != 4
    rows = RNG.standard_normal((3, 6))
    rows[:, 4] = np.nan
    rows[1] = np.nan
    holes = find_holes(rows, known)
    assert holes.absent.tolist() == [False, True, False]
    assert not holes.any_cell
    rows[0, 2] = np.nan
    assert find_holes(rows, known).cells.tolist() == [1, 0, 0]


def test_observed_views_say_who_is_there_and_leave_the_tables_alone():
    X = without(FRONT, [1])
    kept = X.copy()
    views = observed_views({"a": X, "b": BACK})
    assert views.observed.tolist() == [[row != 1, True] for row in range(N)]
    np.testing.assert_array_equal(X, kept)
    assert observed_views([FRONT, BACK]).observed is None
    assert observed_views([FRONT, BACK]).mask().all()


def test_samples_taken_from_views_keep_what_is_known_of_them():
    views = observed_views([without(FRONT, [1, 2]), BACK]).take([2, 0])
    assert views.observed.tolist() == [[False, True], [True, True]]
    assert views.present(0).tolist() == [1]


def test_copies_are_absent_from_the_same_views():
    front = without(FRONT, [0, 1, 4])
    back = BACK.copy()
    back[1] = back[0]
    back[4] = back[3] = back[2]
    number = observed_views([front, back]).copies()
    assert number[0] == number[1]
    assert len({number[2], number[3], number[4]}) == 3
    assert len(np.unique(number)) == N - 1


# --- cells -----------------------------------------------------------------------------------------------------------


def test_missing_cells_are_an_error_that_counts_them_and_names_the_remedy():
    X = without(FRONT, [9])
    X[5, 1] = X[6, 0] = X[6, 2] = np.nan
    with pytest.raises(ViewError, match=r"'view_0' contains NaN in 3 cells of 2 rows.*missing='mean'"):
        fitted([X, BACK])


def test_samples_with_missing_cells_are_dropped_from_the_view_on_request():
    X = without(FRONT, [9])
    X[5, 1] = np.nan
    kept = X.copy()
    model = fitted([X, BACK], missing="drop")
    assert np.flatnonzero(~model.observed_[:, 0]).tolist() == [5, 9]
    np.testing.assert_array_equal(X, kept)
    whole = fitted([without(FRONT, [5, 9]), BACK])
    np.testing.assert_array_equal(model.labels_, whole.labels_)
    new = FRONT[20:24] + 0.1
    new[1, 2] = np.nan
    places = model.transform([new, BACK[20:24] + 0.1])
    np.testing.assert_array_equal(places, model.transform([without(new, [1]), BACK[20:24] + 0.1]))
    assert np.isfinite(places).all()


def test_neighbours_that_cells_are_filled_from_are_searched_within_the_limit():
    X = np.random.default_rng(0).standard_normal((1000, 4))
    X[np.arange(1000), np.arange(1000) % 4] = np.nan
    filler = CellFiller.fitted("knn", X, "X")
    wanted = filler.filled(X)
    for limit, most in ((4, 4), (0.01, 1.5)):  # all pairs take 8 MiB, more than once
        tracemalloc.start()
        filled = filler.filled(X, limit)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        assert peak < 1.15 * most + FILLING_COPIES * X.nbytes / 2**20
        np.testing.assert_allclose(filled, wanted, rtol=1e-12)


def test_estimators_fill_cells_within_their_limit():
    X = np.random.default_rng(0).standard_normal((1000, 4))
    X[np.arange(1000), np.arange(1000) % 4] = np.nan
    model = MultiViewKernelKMeans(2, missing="knn", init="random", random_state=0)
    wanted = model.fit([X, X]).labels_
    model.set_params(memory_limit=4).fit([X, X])  # what is imported and compiled at first use is not counted
    tracemalloc.start()
    model.fit([X, X])
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    assert peak < 1.15 * (2 * X.nbytes / 2**20 + 4)
    np.testing.assert_array_equal(model.labels_, wanted)


@pytest.mark.parametrize("kind", ["mean", "median", "knn"])
def test_cells_are_filled_as_scikit_learn_does_from_the_samples_that_are_there(kind):
    X = without(FRONT, [9])
    X[5, 1] = X[6, 0] = np.nan
    there = np.arange(N) != 9
    imputer = KNNImputer(n_neighbors=5) if kind == "knn" else SimpleImputer(strategy=kind)
    by_hand = X.copy()
    by_hand[there] = imputer.fit_transform(X[there])
    model = fitted([X, BACK], missing=kind)
    other = fitted([by_hand, BACK])
    np.testing.assert_array_equal(model.labels_, other.labels_)
    np.testing.assert_array_equal(model.embedding_, other.embedding_)
    new = FRONT[:4].copy()
    new[2, 0] = np.nan
    filled = imputer.transform(new) + 0.0
    places = model.transform([new, BACK[:4] + 0.1])
    np.testing.assert_array_equal(places, other.transform([filled, BACK[:4] + 0.1]))


def test_a_column_without_any_value_cannot_be_filled():
    X = FRONT.copy()
    X[:, 1] = np.nan
    with pytest.raises(ViewError, match=r"'view_0' has no value at all in column 1"):
        fitted([X, BACK], missing="median")


def test_sparse_views_are_not_filled():
    X = sp.csr_array(FRONT)
    X.data[0] = np.nan
    with pytest.raises(ViewError, match="fills dense views only"):
        fitted([X, BACK], missing="mean")
    assert fitted([X, BACK], missing="drop").observed_[:, 0].sum() == N - 1


def test_an_unknown_way_is_refused():
    with pytest.raises(ValueError, match="missing"):
        fitted([FRONT, BACK], missing="magic")


def test_a_filler_says_which_view_it_could_not_learn_from():
    with pytest.raises(ViewError, match="'age'"):
        CellFiller.fitted("mean", np.full((3, 1), np.nan), "age")


# --- views that cannot be related ------------------------------------------------------------------------------------


def test_samples_that_are_nowhere_are_an_error_in_fit_and_predict():
    with pytest.raises(ViewError, match=r"2 of 60 samples are absent from every view \(rows 3, 8\)"):
        fitted([without(FRONT, [3, 8]), without(BACK, [3, 8])])
    model = fitted([FRONT, BACK])
    with pytest.raises(ViewError, match="absent from every view"):
        model.predict([without(FRONT, [1])[:3], without(BACK, [1])[:3]])


def test_one_table_is_one_view_and_its_absent_samples_are_nowhere():
    with pytest.raises(ViewError, match="absent from every view"):
        fitted(without(FRONT, [3]))


def test_views_that_share_no_sample_are_an_error():
    first = np.arange(N) < 30
    with pytest.raises(ViewError, match=r"split into \{'a'\} and \{'b'\}"):
        fitted({"a": without(FRONT, ~first), "b": without(BACK, first)})


def test_a_view_of_one_sample_is_an_error():
    with pytest.raises(ViewError, match=r"'view_1' has 1 sample"):
        fitted([FRONT, without(BACK, np.arange(1, N))])


def test_views_that_hang_together_through_a_third_are_related():
    observed = np.zeros((12, 3), dtype=bool)
    observed[:6, 0] = observed[6:, 1] = observed[3:9, 2] = True
    check_observed(observed, ("a", "b", "c"))  # no error, but one without the third:
    with pytest.raises(ViewError, match=r"split into \{'a'\} and \{'b'\}"):
        check_observed(observed[:, :2], ("a", "b"))


def test_views_that_share_few_samples_are_named():
    observed = np.zeros((100, 2), dtype=bool)
    observed[:52, 0] = observed[48:, 1] = True
    (first, second) = weak_links(observed, ("a", "b"))
    assert "'a' shares at most 4 of its 52 samples" in first
    assert "'b'" in second
    observed[:, 1] = True
    assert weak_links(observed, ("a", "b")) == []
    mask = without(np.zeros((N, 1)), np.arange(32, N)), without(np.zeros((N, 1)), np.arange(28))
    with pytest.warns(ViewWarning, match="hardly be matched"):
        fitted([FRONT + mask[0], BACK + mask[1]])


def test_estimators_that_need_whole_views_say_so():
    message = r"'view_0' contains NaN: 2 absent samples.*SimilarityNetworkFusion takes complete views"
    with pytest.raises(ViewError, match=message):
        SimilarityNetworkFusion(3).fit([without(FRONT, [1, 2]), BACK])
