import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.foundation.errors import ParameterError
from kernelweave.metrics import balanced_angular_fit, balanced_line_fit
from tests.reference import metrics as oracle

quick = settings(max_examples=30, deadline=None)
cases = given(seed=st.integers(0, 2**16), k=st.integers(2, 5), eta=st.floats(0, 1))
both = pytest.mark.parametrize("measure", [balanced_line_fit, balanced_angular_fit])

THREE_LINES = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0], [-1.0, -1.0], [-2.0, -2.0]])
THREE = np.array([0, 0, 1, 1, 2, 2])


def case(seed, k):
    """Draw scores of about four samples per cluster, none of them empty."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), rng.integers(k, size=3 * k)])
    return rng.standard_normal((4 * k, k - 1)), labels, rng.random(4 * k)


def test_degenerate_cases_of_the_oracle_are_those_of_the_formula():
    assert oracle.line_fit([[1, 2], [2, 4]]) == pytest.approx(1.0)
    assert oracle.line_fit([[1, 0], [0, 1]]) == pytest.approx(0.0)


@quick
@cases
def test_line_fit_equals_its_definition_in_loops(seed, k, eta):
    scores, labels, sums = case(seed, k)
    points = np.column_stack([scores, sums]) if k == 2 else scores
    result = balanced_line_fit(scores, labels, eta=eta, kernel_row_sums=sums)
    assert result == pytest.approx(oracle.balanced_line_fit(points.tolist(), labels, eta), abs=1e-3)
    assert 0 <= result <= 1


@quick
@cases
def test_line_fit_equals_the_eigenvalues_of_the_uncentred_covariance(seed, k, eta):
    scores, labels, sums = case(seed, k)
    points = np.column_stack([scores, sums]) if k == 2 else scores
    d, fits = points.shape[1], []
    for c in range(k):
        P = points[labels == c]
        z = np.linalg.eigvalsh(P.T @ P / len(P))
        fits.append(d / (d - 1) * (z[-1] / z.sum() - 1 / d))
    sizes = np.bincount(labels)
    expected = eta * np.mean(fits) + (1 - eta) * sizes.min() / sizes.max()
    assert balanced_line_fit(scores, labels, eta=eta, kernel_row_sums=sums) == pytest.approx(expected, abs=1e-9)


@quick
@cases
def test_angular_fit_equals_its_definition_in_loops(seed, k, eta):
    scores, labels, _ = case(seed, k)
    result = balanced_angular_fit(scores, labels, eta=eta)
    assert result == pytest.approx(oracle.balanced_angular_fit(scores.tolist(), labels, eta), abs=1e-9)
    assert -eta <= result <= 1


@both
@quick
@given(seed=st.integers(0, 2**16), k=st.integers(3, 5), scale=st.sampled_from([1e-170, 1e-9, 7.0, 1e170]))
def test_renaming_reordering_and_scaling_change_nothing(measure, seed, k, scale):
    scores, labels, _ = case(seed, k)
    order = np.random.default_rng(seed).permutation(len(labels))
    words = np.array(["oak", "elm", "ash", "fir", "yew"])
    moved = measure(scale * scores[order], words[labels[order]])
    assert moved == pytest.approx(measure(scores, labels), abs=1e-9)


@both
def test_equal_clusters_on_rays_from_the_origin_reach_one(measure):
    assert measure(THREE_LINES, THREE) == pytest.approx(1.0)


@both
def test_eta_weighs_the_fit_against_the_balance(measure):
    scores, labels = THREE_LINES[:5], THREE[:5]  # sizes 2, 2, 1: balance 1/2, fit 1
    assert measure(scores, labels, eta=1) == pytest.approx(1.0)
    assert measure(scores, labels, eta=0) == pytest.approx(0.5)
    assert measure(scores, labels, eta=0.8) == pytest.approx(0.8 + 0.2 / 2)


def test_scores_spread_alike_in_all_directions_have_no_line_fit():
    cross = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    assert balanced_line_fit(np.tile(cross, (3, 1)), np.repeat([0, 1, 2], 4), eta=1) == pytest.approx(0.0)


def test_line_fit_with_unequal_eigenvalues_is_worked_out_by_hand():
    # each cluster has z = (4, 1) / 2: 2 (4/5 - 1/2)
    scores = np.tile([[2.0, 0.0], [0.0, 1.0]], (3, 1))
    assert balanced_line_fit(scores, [0, 0, 1, 1, 2, 2], eta=1) == pytest.approx(0.6)


def test_line_fit_of_two_clusters_pairs_the_score_with_the_row_sum():
    # cluster 0: (1, 1), (2, 2) on a line; cluster 1: (-2, 0), (0, 1), z = (4, 1) / 2
    result = balanced_line_fit([[1], [2], [-2], [0]], [0, 0, 1, 1], eta=1, kernel_row_sums=[1, 2, 0, 1])
    assert result == pytest.approx((1 + 0.6) / 2)


def test_row_sums_play_no_part_with_more_than_two_clusters():
    plain = balanced_line_fit(THREE_LINES, THREE)
    assert balanced_line_fit(THREE_LINES, THREE, kernel_row_sums=np.arange(6)) == plain


def test_only_the_angular_fit_sees_points_on_the_other_side_of_the_origin():
    scores = THREE_LINES.copy()
    scores[1] = -0.5 * scores[0]  # same line, other way: cosines 1 and -1
    assert balanced_line_fit(scores, THREE, eta=1) == pytest.approx(1.0)
    assert balanced_angular_fit(scores, THREE, eta=1) == pytest.approx((0 + 1 + 1) / 3)


def test_angular_fit_can_be_negative():
    # cluster 0: mean 7 / 4 > 0, cosines 1, -1, -1, -1; cluster 1: cosine 1
    result = balanced_angular_fit([[10], [-1], [-1], [-1], [-5]], [0, 0, 0, 0, 1], eta=1)
    assert result == pytest.approx((-0.5 + 1) / 2)


@both
def test_a_cluster_of_zero_scores_has_fit_zero(measure):
    scores = THREE_LINES.copy()
    scores[:2] = 0
    assert measure(scores, THREE, eta=1) == pytest.approx(2 / 3)
    assert measure(np.zeros((6, 2)), THREE, eta=1) == 0.0


def test_a_zero_mean_gives_cosines_of_zero():
    assert balanced_angular_fit([[1], [-1], [-2], [-3]], [0, 0, 1, 1], eta=1) == pytest.approx(1 / 2)


@both
def test_an_empty_cluster_has_fit_and_balance_zero(measure):
    scores, labels = THREE_LINES[:4], THREE[:4]
    assert measure(scores, labels, eta=1, n_clusters=3) == pytest.approx(2 / 3)
    assert measure(scores, labels, eta=0, n_clusters=3) == 0.0


@both
def test_arguments_are_left_as_they_were(measure):
    scores, labels = THREE_LINES.copy(), THREE.copy()
    scores.setflags(write=False)
    labels.setflags(write=False)
    assert np.isfinite(measure(scores, labels))
    np.testing.assert_array_equal(scores, THREE_LINES)
    np.testing.assert_array_equal(labels, THREE)


def test_line_fit_of_two_clusters_without_row_sums_says_what_is_missing():
    with pytest.raises(ParameterError, match=r"kernel_row_sums=None.*K.sum\(axis=1\)"):
        balanced_line_fit([[1.0], [-1.0]], [0, 1])


def test_row_sums_of_another_length_are_refused():
    with pytest.raises(ParameterError, match=r"kernel_row_sums has shape \(3,\) for 2 samples"):
        balanced_line_fit([[1.0], [-1.0]], [0, 1], kernel_row_sums=[1, 2, 3])


@both
@pytest.mark.parametrize(
    ("scores", "labels", "options", "fault"),
    [
        (THREE_LINES, THREE[:5], {}, "labels has 5 entries but scores describes 6 samples"),
        (THREE_LINES, [0, 0, 0, 1, 1, 1], {}, "scores has 2 columns for 2 clusters.*n_clusters=3"),
        (THREE_LINES, np.zeros(6, dtype=int), {}, "number of clusters is 1, taken from labels"),
        (
            THREE_LINES,
            np.zeros(6, dtype=int),
            {"n_clusters": 1},
            "number of clusters is 1, taken from n_clusters",
        ),
        (THREE_LINES[:, 0], THREE, {}, r"scores has shape \(6,\).*reshape\(-1, 1\)"),
        (np.full((6, 2), np.nan), THREE, {}, r"scores holds nan at index \(0, 0\)"),
        (THREE_LINES, THREE, {"eta": 1.5}, "eta=1.5 cannot be used"),
        (THREE_LINES, THREE, {"eta": "high"}, "eta='high' cannot be used"),
    ],
)
def test_input_that_cannot_be_used_is_named(measure, scores, labels, options, fault):
    with pytest.raises(ParameterError, match=fault):
        measure(scores, labels, **options)
