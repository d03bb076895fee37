import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from kernelweave import ParameterError
from kernelweave.inputs import check_cluster_count, read_centers, read_labels, read_samples, read_weights

X = np.arange(12.0).reshape(4, 3)


# Samples


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
def test_sparse_samples_stay_sparse_as_csr(form):
    result = read_samples(BaseEstimator(), form(X), reset=True)
    assert isinstance(result, sp.csr_array)
    np.testing.assert_array_equal(result.toarray(), X)


def test_features_become_float64_and_kernels_may_stay_float32():
    small = X.astype(np.float32)
    assert read_samples(BaseEstimator(), small, reset=True).dtype == np.float64
    assert read_samples(BaseEstimator(), small, reset=True, keep_float32=True).dtype == np.float32
    assert read_samples(BaseEstimator(), X.astype(int), reset=True, keep_float32=True).dtype == np.float64


def test_float64_samples_are_not_copied():
    assert np.shares_memory(read_samples(BaseEstimator(), X, reset=True), X)


def test_number_and_names_of_features_are_remembered_and_compared():
    reader, frame = BaseEstimator(), pd.DataFrame(X, columns=["a", "b", "c"])
    read_samples(reader, frame, reset=True)
    assert reader.n_features_in_ == 3
    assert reader.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        read_samples(reader, frame[["b", "a", "c"]], reset=False)
    read_samples(reader, X, reset=True)
    with pytest.raises(ValueError, match=r"X has 2 features.*expecting 3"):
        read_samples(reader, X[:, :2], reset=False)


def test_one_sample_is_too_few_to_fit_and_enough_to_predict():
    reader = BaseEstimator()
    with pytest.raises(ValueError, match=r"1 sample\(s\).*minimum of 2"):
        read_samples(reader, X[:1], reset=True)
    read_samples(reader, X, reset=True)
    assert read_samples(reader, X[:1], reset=False).shape == (1, 3)


@pytest.mark.parametrize(
    "bad",
    [
        np.array([["red", "1"], ["blue", "2"]]),
        pd.DataFrame({"size": [1, 2], "colour": ["red", "blue"]}),
        [["red", 1], ["blue", 2]],
    ],
    ids=["array", "frame", "list"],
)
def test_text_is_refused_with_the_value_and_a_remedy(bad):
    with pytest.raises(ParameterError, match=r"X holds text \(.*red.*Encode"):
        read_samples(BaseEstimator(), bad, reset=True)


@pytest.mark.parametrize(("value", "match"), [(np.nan, "X contains NaN"), (np.inf, "X contains infinity")])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_samples_that_are_not_finite_are_refused(value, match, form):
    with pytest.raises(ValueError, match=match):
        read_samples(BaseEstimator(), form(np.where(X == 5, value, X)), reset=True)


# Weights


def test_weights_are_ones_by_default():
    np.testing.assert_array_equal(read_weights(None, 3), [1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    "weights",
    [[1, 0, 2], (1, 0, 2), np.array([1, 0, 2], dtype=np.float32), pd.Series([1, 0, 2], index=[7, 8, 9])],
    ids=["list", "tuple", "float32", "series"],
)
def test_weights_of_any_kind_become_float64(weights):
    result = read_weights(weights, 3)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, [1.0, 0.0, 2.0])


def test_one_number_is_the_weight_of_every_sample():
    np.testing.assert_array_equal(read_weights(2, 3), [2.0, 2.0, 2.0])


def test_the_weights_returned_are_a_copy():
    weights = np.ones(3)
    read_weights(weights, 3)[0] = 5.0
    np.testing.assert_array_equal(weights, 1.0)


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ([1.0, -0.5, 1.0], r"sample_weight\[1\] = -0\.5"),
        ([1.0, 1.0, np.nan], r"sample_weight\[2\] = nan"),
        ([np.inf, 1.0, 1.0], r"sample_weight\[0\] = inf"),
        ([0.0, 0.0, 0.0], r"sample_weight is zero for every sample"),
        (0.0, r"sample_weight is zero for every sample"),
        (-1.0, r"sample_weight\[0\] = -1\.0"),
        ([1.0, 1.0], r"sample_weight\.shape == \(2,\), expected \(3,\)"),
        (np.ones((3, 1)), r"sample_weight\.shape == \(3, 1\), expected \(3,\)"),
        ([], r"sample_weight\.shape == \(0,\), expected \(3,\)"),
        (["a", "b", "c"], r"sample_weight holds text \(.*a.*\)"),
    ],
    ids=["negative", "nan", "inf", "zeros", "zero", "minus one", "short", "column", "empty", "text"],
)
def test_weights_that_cannot_be_used_are_refused_by_name_and_value(weights, match):
    with pytest.raises(ParameterError, match=match):
        read_weights(weights, 3)


# Number of clusters


def test_as_many_clusters_as_samples_that_count_are_allowed_and_no_more():
    weights = np.array([1.0, 0.0, 2.0, 0.5])
    for n_clusters in (1, 2, 3):
        check_cluster_count(n_clusters, weights)
    with pytest.raises(ParameterError, match=r"Only 3 samples have a positive weight.*n_clusters=4"):
        check_cluster_count(4, weights)


def test_more_clusters_than_samples_are_refused():
    with pytest.raises(ParameterError, match=r"n_samples=3 should be >= n_clusters=4"):
        check_cluster_count(4, np.ones(3))


def test_more_clusters_than_samples_with_a_weight_are_refused():
    with pytest.raises(ParameterError, match=r"Only 2 samples have a positive weight.*n_clusters=3"):
        check_cluster_count(3, np.array([1.0, 0.0, 1.0, 0.0]))


# Labels


@pytest.mark.parametrize(
    "labels", [[0, 2, 1, 0], (0, 2, 1, 0), np.array([0.0, 2.0, 1.0, 0.0]), np.array([0, 2, 1, 0], dtype=np.uint8)]
)
def test_whole_numbers_of_any_type_become_labels(labels):
    result = read_labels(labels, 4, 3)
    assert result.dtype == np.intp
    assert result.tolist() == [0, 2, 1, 0]


def test_the_labels_returned_are_a_copy():
    labels = np.array([0, 1, 1], dtype=np.intp)
    read_labels(labels, 3, 2)[0] = 1
    assert labels.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        ([0, 1], r"start has shape \(2,\).*\(4,\)"),
        ([[0, 1, 0, 1]], r"start has shape \(1, 4\).*\(4,\)"),
        ([0, 1, 2, 3], r"start holds labels from 0 to 3.*n_clusters=3"),
        ([0, 1, 2, -1], r"start holds labels from -1 to 2.*n_clusters=3"),
        ([0, 1, 2, 0.5], r"start must hold whole numbers 0\.\.2"),
        ([0, 1, 2, np.nan], r"start must hold whole numbers 0\.\.2"),
        ([0, 1, 2, np.inf], r"start "),
        (["a", "b", "c", "a"], r"start must hold whole numbers 0\.\.2"),
        ([True, False, True, False], r"start must hold whole numbers 0\.\.2"),
    ],
    ids=["short", "2-D", "too large", "negative", "fraction", "nan", "inf", "text", "boolean"],
)
def test_labels_that_cannot_be_used_are_refused_by_name(labels, match):
    with pytest.raises(ParameterError, match=match):
        read_labels(labels, 4, 3, name="start")


# Centres


@pytest.mark.parametrize(
    "centers",
    [
        [[0, 1, 2], [3, 4, 5]],
        ((0.0, 1.0, 2.0), (3.0, 4.0, 5.0)),
        X[:2].astype(np.float32),
        X[:2].astype(np.uint8),
        np.asfortranarray(X[:2]),
        pd.DataFrame(X[:2], columns=["a", "b", "c"], index=[7, 9]),
    ],
    ids=["list", "tuple", "float32", "bytes", "column order", "frame"],
)
def test_numbers_of_any_type_become_centres(centers):
    result = read_centers(centers, 2, 3)
    assert result.dtype == np.float64
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, X[:2])


def test_the_centres_given_are_left_as_they_were():
    centers = X[:2].copy()
    centers.flags.writeable = False
    np.testing.assert_array_equal(read_centers(centers, 2, 3), X[:2])


@pytest.mark.parametrize(
    ("centers", "match"),
    [
        (X[:3], r"start has shape \(3, 3\).*\(2, 3\)"),
        (X[:1], r"start has shape \(1, 3\).*\(2, 3\)"),
        (X[:2, :2], r"start has shape \(2, 2\).*\(2, 3\)"),
        (X[:2].T, r"start has shape \(3, 2\).*\(2, 3\)"),
        (np.empty((0, 3)), r"start has shape \(0, 3\).*\(2, 3\)"),
        ([["red", "1", "2"], ["3", "4", "5"]], r"start holds text \(.*red.*Encode"),
    ],
    ids=["too many", "too few", "narrow", "transposed", "none", "text"],
)
def test_centres_that_cannot_be_used_are_refused_by_name_and_shape(centers, match):
    with pytest.raises(ParameterError, match=match):
        read_centers(centers, 2, 3, name="start")


@pytest.mark.parametrize(
    ("centers", "match"),
    [
        (np.where(X[:2] == 4, np.nan, X[:2]), r"start contains NaN"),
        (np.where(X[:2] == 4, np.inf, X[:2]), r"start contains infinity"),
        (X[0], r"start\b"),
        (3.0, r"start\b"),
        (np.zeros((2, 3, 1)), r"start\b"),
        (np.zeros((2, 0)), r"start\b"),
        ([[0, 1, 2], [3, 4]], r"start\b"),
    ],
    ids=["nan", "inf", "1-D", "number", "3-D", "no features", "ragged"],
)
def test_centres_that_are_no_finite_table_are_refused_by_name(centers, match):
    with pytest.raises(ValueError, match=match):
        read_centers(centers, 2, 3, name="start")


def test_sparse_centres_are_taken_as_dense_ones():
    np.testing.assert_array_equal(read_centers(sp.csr_array(X[:2]), 2, 3, name="start"), X[:2])
