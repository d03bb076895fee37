import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from kernelweave import GlobalKernelKMeans, ParameterError
from kernelweave.foundation.random_streams import streams
from kernelweave.model_selection import reference_inertia_paths, suggest_n_clusters

CORNERS = [[0, 0], [8, 0], [0, 8], [8, 8]]


def blobs(n=80, seed=0, centers=CORNERS):
    return make_blobs(n, centers=centers, random_state=seed)[0]


def fitted(X, n_clusters=7, **options):
    return GlobalKernelKMeans(n_clusters, kernel="linear", **options).fit(X)


# Elbow


def test_an_elbow_worked_out_by_hand():
    result = suggest_n_clusters([10.0, 4.0, 3.0, 2.0])
    # Scaled to [0, 1] the path is 1, 1/4, 1/8, 0; the line through its ends is 1, 2/3, 1/3, 0.
    assert result.scores == pytest.approx([0, 2 / 3 - 1 / 4, 1 / 3 - 1 / 8, 0])
    assert result.n_clusters == 2
    assert result.method == "elbow"
    assert result.gap is None
    assert result.gap_error is None


@given(
    path=st.lists(st.floats(-100, 100), min_size=3, max_size=12),
    factor=st.sampled_from([2.0**-10, 0.5, 4.0, 2.0**20]),
    constant=st.sampled_from([0.0, 1024.0]),
)
def test_scaling_and_shifting_a_path_moves_no_elbow(path, factor, constant):
    path = np.round(np.sort(path)[::-1], 3)
    result, changed = suggest_n_clusters(path), suggest_n_clusters(path * factor + constant)
    if path[0] - path[-1] > 1e-2:
        assert changed.scores == pytest.approx(result.scores, abs=1e-6)
        if result.n_clusters is not None:
            assert changed.scores[result.n_clusters - 1] == pytest.approx(changed.scores.max(), abs=1e-6)


@given(k=st.integers(2, 8), more=st.integers(1, 6), steep=st.floats(2.0, 50.0))
def test_a_path_with_one_bend_has_its_elbow_there(k, more, steep):
    falls = [steep] * (k - 1) + [1.0] * more
    path = 100.0 - np.concatenate([[0.0], np.cumsum(falls)])
    assert suggest_n_clusters(path).n_clusters == k


@pytest.mark.parametrize(
    "path",
    [[5.0, 5.0, 5.0], [0.0, 0.0, 0.0], [4.0, 3.0, 2.0, 1.0], [9.0, 8.0, 5.0, 0.0], [1.0, 2.0, 3.0]],
    ids=["flat", "zero", "straight", "bent the other way", "rising"],
)
def test_a_path_without_a_point_below_its_line_has_no_elbow(path):
    assert suggest_n_clusters(path).n_clusters is None


def test_the_first_of_equally_deep_points_is_taken():
    assert suggest_n_clusters([4.0, 2.0, 1.0, 0.0]).scores.tolist() == pytest.approx([0, 1 / 6, 1 / 12, 0])
    assert suggest_n_clusters([6.0, 3.0, 1.0, 0.0]).n_clusters == 2  # both inner points lie 1/6 deep


def test_an_elbow_of_a_negative_objective_is_found():
    assert suggest_n_clusters([-1.0, -7.0, -8.0, -9.0]).n_clusters == 2  # indefinite kernels have such paths


@pytest.mark.parametrize("seed", range(5))
def test_separate_groups_are_counted_by_elbow_and_highest_gap(seed):
    X = blobs(seed=seed)
    model = fitted(X)
    references = reference_inertia_paths(model, X, random_state=seed)
    assert suggest_n_clusters(model).n_clusters == 4
    assert suggest_n_clusters(model, method="gap_max", reference_paths=references).n_clusters == 4


# Gap


def test_a_gap_worked_out_by_hand():
    path = np.exp([3.0, 1.0, 0.9])
    references = np.exp([[3.0, 2.4, 2.0], [3.2, 2.6, 2.0]])
    result = suggest_n_clusters(path, method="gap", reference_paths=references)
    # Means of the logarithms are 3.1, 2.5, 2.0; their deviations, dividing by B = 2, are 0.1, 0.1, 0.
    error = np.array([0.1, 0.1, 0.0]) * np.sqrt(1.5)
    assert result.gap == pytest.approx([0.1, 1.5, 1.1])
    assert result.gap_error == pytest.approx(error)
    assert result.scores[:2] == pytest.approx([0.1 - 1.5 + error[1], 1.5 - 1.1 + error[2]])
    assert np.isnan(result.scores[2])
    assert result.n_clusters == 2
    assert result.method == "gap"


def test_the_first_peak_of_the_gap_is_not_always_the_highest():
    gap = np.array([0.5, 0.3, 1.0, 0.9])
    references = np.exp([np.zeros(4), np.zeros(4)])
    options = {"reference_paths": references}
    first = suggest_n_clusters(np.exp(-gap), method="gap", **options)
    highest = suggest_n_clusters(np.exp(-gap), method="gap_max", **options)
    assert (first.n_clusters, highest.n_clusters) == (1, 3)
    assert first.gap == pytest.approx(gap)
    assert highest.scores == pytest.approx(gap - 1.0)  # equal references leave no error
    assert highest.method == "gap_max"


def test_the_largest_gap_is_reached_within_its_own_error():
    gap = np.array([0.2, 0.9, 1.0, 0.5])
    deviations = np.array([0.5, 0.0, 0.2, 0.3])
    references = np.exp([2.0 + deviations, 2.0 - deviations])
    result = suggest_n_clusters(np.exp(2.0 - gap), method="gap_max", reference_paths=references)
    error = deviations * np.sqrt(1.5)
    assert result.gap_error == pytest.approx(error)
    assert result.scores == pytest.approx(gap - 1.0 + error[2])
    assert result.n_clusters == 2  # 0.9 is less than one error of 0.24 below the largest gap, which is at 3


@pytest.mark.parametrize("seed", range(3))
def test_two_groups_are_counted_by_every_rule(seed):
    X = blobs(seed=seed, centers=CORNERS[:2])
    model = fitted(X)
    references = reference_inertia_paths(model, X, random_state=seed)
    result = [suggest_n_clusters(model, method=rule, reference_paths=references) for rule in ("gap", "gap_max")]
    assert [each.n_clusters for each in (suggest_n_clusters(model), *result)] == [2, 2, 2]


@pytest.mark.parametrize("method", ["gap", "gap_max"])
def test_a_gap_that_rises_to_the_end_settles_nothing(method):
    references = np.exp([[3.0, 2.9, 2.8], [3.0, 2.9, 2.8]])
    assert suggest_n_clusters(np.exp([3.0, 2.0, 1.0]), method=method, reference_paths=references).n_clusters is None


@pytest.mark.parametrize("seed", range(5))
def test_data_without_groups_are_one_cluster_by_the_gap_and_have_an_elbow_all_the_same(seed):
    X = np.random.default_rng(seed).standard_normal((120, 3))
    model = fitted(X)
    references = reference_inertia_paths(model, X, random_state=seed)
    for rule in ("gap", "gap_max"):
        assert suggest_n_clusters(model, method=rule, reference_paths=references).n_clusters == 1
    assert suggest_n_clusters(model).n_clusters is not None


@given(factor=st.floats(1e-3, 1e3))
def test_the_unit_of_the_objective_moves_no_gap(factor):
    rng = np.random.default_rng(0)
    path, references = np.sort(rng.random(6) + 0.1)[::-1], np.sort(rng.random((4, 6)) + 0.1)[:, ::-1]
    result = suggest_n_clusters(path, method="gap", reference_paths=references)
    scaled = suggest_n_clusters(path * factor, method="gap", reference_paths=references * factor)
    assert scaled.gap == pytest.approx(result.gap)
    assert scaled.gap_error == pytest.approx(result.gap_error)


# Reference paths


def test_reference_paths_depend_on_the_seed_and_their_number_alone_and_leave_the_estimator_as_it_was():
    X, model = blobs(), GlobalKernelKMeans(4)
    few = reference_inertia_paths(model, X, n_references=2, random_state=3)
    more = reference_inertia_paths(model, X, n_references=4, random_state=3)
    assert few.shape == (2, 4)
    np.testing.assert_array_equal(more[:2], few)
    assert not np.array_equal(reference_inertia_paths(model, X, n_references=2, random_state=4), few)
    assert not hasattr(model, "labels_")
    assert (np.diff(more, axis=1) <= 0).all()


class Remembering(GlobalKernelKMeans):
    """Keeps the samples it was fitted to."""

    fits = ()

    def fit(self, X, y=None, sample_weight=None):
        type(self).fits += ((X, sample_weight),)
        return super().fit(X, y, sample_weight)


@pytest.fixture
def remembering(monkeypatch):
    monkeypatch.setattr(Remembering, "fits", ())
    return Remembering(2, kernel="linear")


def test_the_feature_box_is_filled_between_the_extremes_of_every_feature(remembering):
    X = blobs(200)
    reference_inertia_paths(remembering, X, n_references=5, box="features", random_state=0)
    drawn = np.vstack([X for X, _ in remembering.fits])
    assert drawn.shape == (1000, 2)
    assert (drawn >= X.min(axis=0)).all()
    assert (drawn <= X.max(axis=0)).all()
    assert drawn.min(axis=0) == pytest.approx(X.min(axis=0), abs=0.1)
    assert drawn.max(axis=0) == pytest.approx(X.max(axis=0), abs=0.1)


def test_reference_data_have_a_stream_of_their_own(remembering):
    X = blobs(50)
    reference_inertia_paths(remembering, X, n_references=3, box="features", random_state=4)
    for (drawn, _), rng in zip(remembering.fits, streams(4, 3, "reference data"), strict=True):
        np.testing.assert_array_equal(drawn, rng.uniform(X.min(axis=0), X.max(axis=0), size=X.shape))


def test_the_principal_box_follows_the_shape_of_the_data_and_turns_with_it(remembering):
    rng = np.random.default_rng(0)
    flat = rng.uniform(-1, 1, size=(300, 2)) * [5.0, 0.5]
    turn = np.array([[np.cos(0.6), -np.sin(0.6)], [np.sin(0.6), np.cos(0.6)]])
    reference_inertia_paths(remembering, flat @ turn.T + 7.0, n_references=5, random_state=0)
    drawn = (np.vstack([X for X, _ in remembering.fits]) - 7.0) @ turn
    assert np.abs(drawn).max(axis=0) == pytest.approx([5.0, 0.5], rel=0.15)


def test_samples_of_no_weight_do_not_widen_the_box_and_weights_reach_every_fit(remembering):
    X = np.vstack([blobs(40), [[1e6, 1e6]]])
    weights = np.append(np.full(40, 2.0), 0.0)
    reference_inertia_paths(remembering, X, n_references=2, sample_weight=weights, random_state=0)
    for drawn, given_weights in remembering.fits:
        assert np.abs(drawn).max() < 100
        assert drawn.shape == X.shape
        np.testing.assert_array_equal(given_weights, weights)


@settings(max_examples=20)
@given(n=st.integers(2, 12), d=st.integers(1, 15), constant=st.booleans())
def test_boxes_exist_around_few_wide_and_constant_samples(n, d, constant):
    X = np.random.default_rng(n * d).standard_normal((n, d)) * (not constant)
    for box in ("principal", "features"):
        paths = reference_inertia_paths(
            GlobalKernelKMeans(1, kernel="linear"), X, n_references=2, box=box, random_state=0
        )
        assert paths.shape == (2, 1)
        assert np.isfinite(paths).all()


def test_non_negative_features_stay_so_in_the_feature_box():
    X = np.random.default_rng(0).random((30, 4))
    paths = reference_inertia_paths(GlobalKernelKMeans(3, kernel="chi2"), X, n_references=2, box="features")
    assert paths.shape == (2, 3)


# What is refused


@pytest.mark.parametrize(
    ("path", "options", "says"),
    [
        ([3.0, 2.0, 1.0], {"method": "knee"}, "method='knee'.*'elbow', 'gap' or 'gap_max'"),
        ([3.0, 2.0], {}, "inertia_path has 2 entries.*n_clusters=3"),
        ([], {}, r"inertia_path=\[\] is empty"),
        ([[3.0, 2.0, 1.0]], {}, r"inertia_path has shape \(1, 3\)"),
        ([3.0, np.nan, 1.0], {}, "inertia_path holds nan"),
        (["a", "b", "c"], {}, "inertia_path of type list cannot be read as numbers"),
        (GlobalKernelKMeans(3), {}, r"inertia_path=GlobalKernelKMeans\(...\) has no inertia_path_. Fit it first"),
        ([3.0, 2.0, 1.0], {"reference_paths": [[3.0, 2.0, 1.0]] * 2}, "reference_paths are not used by method='elbow'"),
        ([3.0, 2.0, 1.0], {"method": "gap"}, r"reference_paths=None.*'gap'.*reference_inertia_paths"),
        ([3.0, 2.0, 1.0], {"method": "gap", "reference_paths": [[3.0, 2.0]] * 2}, r"shape \(2, 2\).*3 entries"),
        ([3.0, 2.0, 1.0], {"method": "gap", "reference_paths": [[3.0, 2.0, 1.0]]}, r"shape \(1, 3\).*at least 2"),
        ([3.0, 2.0, 1.0], {"method": "gap", "reference_paths": [3.0, 2.0]}, r"reference_paths has shape \(2,\)"),
        ([3.0], {"method": "gap", "reference_paths": [[3.0]] * 2}, "inertia_path has 1 entry"),
        ([3.0, 0.0], {"method": "gap", "reference_paths": [[3.0, 2.0]] * 2}, "inertia_path holds 0, which has no log"),
        ([3.0, 1.0], {"method": "gap", "reference_paths": [[3.0, -2.0]] * 2}, "reference_paths holds -2"),
    ],
)
def test_a_path_that_cannot_be_read_is_refused_with_a_remedy(path, options, says):
    with pytest.raises(ParameterError, match=says):
        suggest_n_clusters(path, **options)


@pytest.mark.parametrize(
    ("estimator", "X", "options", "says"),
    [
        (GlobalKernelKMeans(2, kernel="precomputed"), np.eye(5), {}, "takes a precomputed kernel.*'elbow'"),
        (GlobalKernelKMeans(2), sp.csr_array(np.eye(5)), {}, r"X is sparse.*X.toarray\(\)"),
        (GlobalKernelKMeans(2), np.eye(5), {"n_references": 1}, "n_references=1 must be an integer of at least 2"),
        (GlobalKernelKMeans(2), np.eye(5), {"n_references": 2.5}, "n_references=2.5"),
        (GlobalKernelKMeans(2), np.eye(5), {"box": "round"}, "box='round'.*'principal' or 'features'"),
        (GlobalKernelKMeans(2), np.eye(5), {"sample_weight": -np.ones(5)}, "sample_weight"),
        (KMeans(2, n_init=1), np.eye(5), {}, r"estimator=KMeans\(...\) has no inertia_path_.*GlobalKernelKMeans"),
        ("kmeans", np.eye(5), {}, "estimator='kmeans' is not an estimator"),
    ],
)
def test_reference_data_that_cannot_be_made_are_refused_with_a_remedy(estimator, X, options, says):
    with pytest.raises(ParameterError, match=says):
        reference_inertia_paths(estimator, X, **options)


def test_a_suggestion_cannot_be_changed_and_travels():
    result = suggest_n_clusters([10.0, 4.0, 3.0, 2.0])
    with pytest.raises(AttributeError):
        result.n_clusters = 3
    assert pickle.loads(pickle.dumps(result)).n_clusters == 2
