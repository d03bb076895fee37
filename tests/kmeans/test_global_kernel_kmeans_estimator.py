import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave import ConvergenceWarning, GlobalKernelKMeans
from kernelweave.foundation.errors import NotPSDWarning, ParameterError
from tests.estimators.discovery import blobs

SEARCHES = ("exact", "fast", "exemplars")
SIGMA = {"kernel_params": {"sigma": 6.0}}
searches = pytest.mark.parametrize("search", SEARCHES)


def same_partition(one, other):
    return adjusted_rand_score(one, other) == 1.0


@pytest.fixture(scope="module")
def overlapping():
    """Groups that overlap: the searches and the numbers of clusters have something to decide."""
    return blobs(40, spread=5.0)[0]


@searches
def test_the_fitted_attributes_describe_the_largest_solution_and_the_path_to_it(search, overlapping):
    model = GlobalKernelKMeans(6, search=search, **SIGMA).fit(overlapping)
    assert model.labels_path_.shape == (6, 120)
    assert model.inertia_path_.shape == (6,)
    np.testing.assert_array_equal(model.labels_path_[-1], model.labels_)
    assert model.inertia_ == model.objective_ == model.inertia_path_[-1] == model.objective_path_[-1]
    assert model.cluster_variances_.sum() == pytest.approx(model.inertia_)
    assert [len(np.unique(labels)) for labels in model.labels_path_] == [1, 2, 3, 4, 5, 6]
    assert (np.diff(model.inertia_path_) < 0).all()
    assert len(model.objective_path_) == model.n_iter_ + 1
    assert model.converged_
    assert hasattr(model, "exemplar_indices_") == (search == "exemplars")


@searches
def test_every_row_of_the_path_has_the_objective_stored_for_it(search, overlapping):
    model = GlobalKernelKMeans(5, search=search, **SIGMA).fit(overlapping)
    K = rbf_kernel(overlapping, gamma=1.0 / 72.0)
    for labels, inertia in zip(model.labels_path_, model.inertia_path_, strict=True):
        Z = (labels[:, None] == np.unique(labels)) / np.sqrt(np.bincount(labels))
        assert inertia == pytest.approx(np.trace(K) - np.trace(Z.T @ K @ Z))


@searches
def test_a_fit_with_fewer_clusters_is_a_row_of_the_path(search, overlapping):
    options = {"search": search, "n_exemplars": 10 if search == "exemplars" else None, **SIGMA}
    longer = GlobalKernelKMeans(6, **options).fit(overlapping)
    for k in range(1, 6):
        shorter = GlobalKernelKMeans(k, **options).fit(overlapping)
        np.testing.assert_array_equal(shorter.labels_, longer.labels_path_[k - 1])
        assert shorter.inertia_ == longer.inertia_path_[k - 1]


@searches
def test_predict_gives_the_training_samples_their_labels(search, overlapping):
    model = GlobalKernelKMeans(6, search=search, **SIGMA).fit(overlapping)
    np.testing.assert_array_equal(model.predict(overlapping), model.labels_)
    assert -model.score(overlapping) == pytest.approx(model.inertia_)
    K = rbf_kernel(overlapping, gamma=1.0 / 72.0)
    precomputed = GlobalKernelKMeans(6, search=search, kernel="precomputed").fit(K)
    np.testing.assert_array_equal(precomputed.predict(K), precomputed.labels_)


@pytest.mark.parametrize("seed", range(5))
def test_with_two_clusters_no_other_search_ends_below_the_exact_one(seed):
    # All start from the same single cluster; from three clusters on their paths may go either way.
    X = blobs(40, seed=seed, spread=5.0)[0]
    inertias = {search: GlobalKernelKMeans(2, search=search, **SIGMA).fit(X).inertia_ for search in SEARCHES}
    assert inertias["exact"] <= min(inertias.values()) * (1 + 1e-10)


# --- input -----------------------------------------------------------------------------------------------------------


@searches
def test_a_precomputed_kernel_gives_the_labels_of_its_features(search, overlapping):
    features = GlobalKernelKMeans(5, search=search, **SIGMA).fit(overlapping)
    K = rbf_kernel(overlapping, gamma=1.0 / 72.0)
    precomputed = GlobalKernelKMeans(5, search=search, kernel="precomputed").fit(K)
    np.testing.assert_array_equal(precomputed.labels_path_, features.labels_path_)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@searches
def test_sparse_features_give_the_labels_of_dense_ones(search, kernel, overlapping):
    X = np.where(np.abs(overlapping) < 2.0, 0.0, overlapping)
    params = SIGMA if kernel == "rbf" else {}
    dense = GlobalKernelKMeans(5, search=search, kernel=kernel, **params).fit(X)
    sparse = GlobalKernelKMeans(5, search=search, kernel=kernel, **params).fit(sp.csr_array(X))
    np.testing.assert_array_equal(sparse.labels_path_, dense.labels_path_)
    np.testing.assert_allclose(sparse.inertia_path_, dense.inertia_path_)


@searches
def test_a_sparse_precomputed_kernel_gives_the_labels_of_the_dense_one(search, overlapping):
    K = rbf_kernel(overlapping, gamma=1.0 / 72.0)
    one, other = (GlobalKernelKMeans(5, search=search, kernel="precomputed").fit(form) for form in (K, sp.csr_array(K)))
    np.testing.assert_array_equal(one.labels_path_, other.labels_path_)


@searches
def test_a_linear_kernel_gives_the_same_path_stored_and_from_features(search, overlapping):
    paths = [
        GlobalKernelKMeans(5, search=search, kernel="linear", storage=storage).fit(overlapping).labels_path_
        for storage in ("auto", "dense", "blockwise")
    ]
    np.testing.assert_array_equal(paths[0], paths[1])
    np.testing.assert_array_equal(paths[0], paths[2])


@searches
def test_a_kernel_that_is_not_stored_gives_the_path_of_the_stored_one(search, overlapping):
    dense = GlobalKernelKMeans(4, search=search, storage="dense", **SIGMA).fit(overlapping)
    lazy = GlobalKernelKMeans(4, search=search, storage="blockwise", **SIGMA).fit(overlapping)
    np.testing.assert_array_equal(dense.labels_path_, lazy.labels_path_)


def test_an_indefinite_kernel_is_searched_with_a_warning():
    A = np.random.default_rng(0).standard_normal((40, 40))
    with pytest.warns(NotPSDWarning):
        model = GlobalKernelKMeans(4, search="exact", kernel="precomputed").fit(A + A.T)
    assert len(np.unique(model.labels_)) == 4


# --- weights ---------------------------------------------------------------------------------------------------------


@searches
def test_a_whole_weight_is_the_same_as_repeated_rows(search):
    X, y = blobs(15)
    counts = np.random.default_rng(0).integers(1, 4, len(X))
    weighted = GlobalKernelKMeans(3, search=search, **SIGMA).fit(X, sample_weight=counts)
    repeated = GlobalKernelKMeans(3, search=search, **SIGMA).fit(np.repeat(X, counts, axis=0))
    assert same_partition(weighted.labels_, y)
    for k in range(3):
        assert same_partition(np.repeat(weighted.labels_path_[k], counts), repeated.labels_path_[k])
    np.testing.assert_allclose(weighted.inertia_path_, repeated.inertia_path_)


@searches
def test_rows_of_weight_zero_get_a_label_and_change_nothing(search):
    X, y = blobs(15)
    weights = np.ones(len(X))
    weights[::5] = 0.0
    model = GlobalKernelKMeans(3, search=search, **SIGMA).fit(X, sample_weight=weights)
    assert same_partition(model.labels_, y)
    alone = GlobalKernelKMeans(3, search=search, **SIGMA).fit(X[weights > 0])
    np.testing.assert_allclose(model.inertia_path_, alone.inertia_path_)


# --- exemplars -------------------------------------------------------------------------------------------------------


def test_twice_as_many_exemplars_as_clusters_are_tried_unless_told_otherwise(overlapping):
    usual = GlobalKernelKMeans(4, search="exemplars", **SIGMA).fit(overlapping)
    fewer = GlobalKernelKMeans(4, search="exemplars", n_exemplars=3, **SIGMA).fit(overlapping)
    assert usual.exemplar_indices_.shape == (8,)
    assert fewer.exemplar_indices_.shape == (3,)
    assert len(set(usual.exemplar_indices_.tolist())) == 8


def test_few_samples_are_all_exemplars_by_default():
    X = blobs(2)[0]
    model = GlobalKernelKMeans(6, search="exemplars", **SIGMA).fit(X)
    assert len(model.exemplar_indices_) <= 6
    assert model.inertia_ == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("weights", "usable"), [(None, 15), ([0.0] * 5 + [1.0] * 10, 10)])
def test_more_exemplars_than_samples_are_refused_by_name_and_number(weights, usable):
    X = blobs(5)[0]
    with pytest.raises(ParameterError, match=rf"n_exemplars=16 is more than the {usable} samples"):
        GlobalKernelKMeans(3, search="exemplars", n_exemplars=16).fit(X, sample_weight=weights)


# --- limits and progress ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["exact", "exemplars"])
def test_a_time_budget_that_runs_out_gives_a_whole_path_with_a_warning(search, overlapping):
    model = GlobalKernelKMeans(6, search=search, time_budget=1e-6, **SIGMA)
    with pytest.warns(ConvergenceWarning, match=r"time_budget=1e-06 seconds ran out"):
        model.fit(overlapping)
    assert not model.converged_
    assert model.labels_path_.shape == (6, 120)
    assert [len(np.unique(labels)) for labels in model.labels_path_] == [1, 2, 3, 4, 5, 6]


@searches
def test_a_generous_time_budget_changes_nothing(search, overlapping):
    free = GlobalKernelKMeans(5, search=search, **SIGMA).fit(overlapping)
    timed = GlobalKernelKMeans(5, search=search, time_budget=600, **SIGMA).fit(overlapping)
    np.testing.assert_array_equal(free.labels_path_, timed.labels_path_)
    assert timed.converged_


@pytest.mark.parametrize("budget", [0, -1.0, "long"])
def test_a_time_budget_that_is_no_positive_number_is_refused_by_name(budget):
    with pytest.raises(ValueError, match="time_budget"):
        GlobalKernelKMeans(2, time_budget=budget).fit(blobs(5)[0])


@searches
def test_a_last_run_cut_by_max_iter_gives_a_warning(search, overlapping):
    model = GlobalKernelKMeans(6, search=search, max_iter=1, **SIGMA)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model.fit(overlapping)
    assert not model.converged_


@searches
def test_equal_samples_end_in_one_cluster_with_a_warning(search):
    model = GlobalKernelKMeans(3, search=search, **SIGMA)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\) found smaller than n_clusters \(3\)"):
        model.fit(np.full((12, 2), 0.3))
    assert model.labels_.tolist() == [model.labels_[0]] * 12
    np.testing.assert_allclose(model.inertia_path_, 0.0, atol=1e-12)


@searches
def test_a_bar_over_the_stages_goes_to_standard_error_when_asked_for(search, overlapping, capsys):
    GlobalKernelKMeans(4, search=search, verbose=1, **SIGMA).fit(overlapping)
    out, err = capsys.readouterr()
    assert out == ""
    assert "clusters" in err
    assert "/3" in err  # stages from two to four clusters
    GlobalKernelKMeans(4, search=search, **SIGMA).fit(overlapping)
    assert capsys.readouterr() == ("", "")
