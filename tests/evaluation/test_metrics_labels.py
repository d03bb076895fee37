import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from kernelweave import metrics
from kernelweave.foundation.errors import ParameterError
from tests.reference import metrics as oracle

NAMES = [
    "normalized_mutual_info",
    "adjusted_rand_index",
    "average_entropy",
    "clustering_accuracy",
    "misclassification_error",
]
BEST = {"average_entropy": 0.0, "misclassification_error": 0.0}

quick = settings(max_examples=30, deadline=None)
measures = pytest.mark.parametrize("name", NAMES)


@st.composite
def two_labellings(draw):
    n = draw(st.integers(2, 14))
    labels = st.lists(st.integers(0, 4), min_size=n, max_size=n)
    return draw(labels), draw(labels)


@measures
@quick
@given(pair=two_labellings())
def test_measure_equals_its_definition_in_loops(name, pair):
    assert getattr(metrics, name)(*pair) == pytest.approx(getattr(oracle, name)(*pair), abs=1e-9)


@measures
@quick
@given(pair=two_labellings(), seed=st.integers(0, 2**16))
def test_renaming_and_reordering_change_nothing(name, pair, seed):
    true, pred = map(np.array, pair)
    rng = np.random.default_rng(seed)
    order, renamed = rng.permutation(len(true)), rng.permutation(5)
    words = np.array(["oak", "elm", "ash", "fir", "yew"])
    measure = getattr(metrics, name)
    assert measure(words[true[order]], renamed[pred[order]] - 2) == pytest.approx(measure(true, pred), abs=1e-9)


@measures
def test_equal_partitions_reach_the_best_value(name):
    value = getattr(metrics, name)(["a", "b", "b", "c"], [2, 0, 0, 1])
    assert value == pytest.approx(BEST.get(name, 1.0), abs=1e-12)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("normalized_mutual_info", 0.0),
        ("adjusted_rand_index", 0.0),
        ("average_entropy", math.log(2)),
        ("clustering_accuracy", 0.5),
        ("misclassification_error", 0.5),
    ],
)
def test_one_cluster_tells_nothing_about_two_equal_classes(name, expected):
    assert getattr(metrics, name)([0, 0, 1, 1], [5, 5, 5, 5]) == pytest.approx(expected, abs=1e-12)


def test_nmi_divides_by_the_arithmetic_mean_of_the_entropies():
    # clusters {0,1}, {2}, {3}: mutual information log 2, entropies log 2 and 1.5 log 2
    assert metrics.normalized_mutual_info([0, 0, 1, 1], [0, 0, 1, 2]) == pytest.approx(2 / (1 + 1.5))


def test_average_entropy_weights_clusters_by_size_with_the_natural_logarithm():
    # cluster of 4 with classes 2 and 2: log 2; pure cluster of 2: 0
    result = metrics.average_entropy([0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1])
    assert result == pytest.approx(4 / 6 * math.log(2))


def test_average_entropy_in_bits_is_the_natural_one_over_log_two():
    assert metrics.average_entropy([0, 0, 1, 1], [0, 0, 0, 0], base=2) == pytest.approx(1.0)


def test_accuracy_counts_spare_clusters_as_wrong_but_majority_vote_does_not():
    true, pred = [0, 0, 0, 0, 1, 1], [0, 0, 2, 2, 1, 1]
    assert metrics.clustering_accuracy(true, pred) == pytest.approx(4 / 6)  # one of clusters 0 and 2 is spare
    assert metrics.misclassification_error(true, pred) == 0.0


def test_accuracy_counts_spare_classes_as_wrong():
    assert metrics.clustering_accuracy([0, 0, 1, 2], [0, 0, 1, 1]) == pytest.approx(3 / 4)


def test_accuracy_finds_the_match_that_a_greedy_choice_misses():
    # n_kh = [[3, 2], [2, 0]]: greedy takes 3 + 0, the best match is 2 + 2
    true, pred = [0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1, 1]
    assert metrics.clustering_accuracy(true, pred) == pytest.approx(4 / 7)


def test_misclassification_error_counts_all_but_the_majority():
    # cluster 0 has 2 of class 0 and 1 of class 1; cluster 1 has 1 of class 0 and 2 of class 1
    assert metrics.misclassification_error([0, 0, 1, 0, 1, 1], [0, 0, 0, 1, 1, 1]) == pytest.approx(2 / 6)


@measures
def test_lengths_that_differ_are_named(name):
    with pytest.raises(ParameterError, match="labels_true has 3 entries and labels_pred has 2"):
        getattr(metrics, name)([0, 1, 1], [0, 1])


@pytest.mark.parametrize(
    ("labels", "fault"),
    [
        ([[0], [1]], r"labels_pred has shape \(2, 1\).*ravel"),
        ([], "labels_pred is empty"),
        ([0.0, np.nan], "labels_pred holds .*nan.* at position 1"),
        ([0.0, 0.5], "labels_pred holds .*0.5.* at position 1"),
        (np.array(["a", None], dtype=object), "labels_pred holds None at position 1"),
        (np.array([3, "a"], dtype=object), "labels_pred holds 'a' at position 1"),
        ([1j, 2j], "labels_pred holds"),
    ],
)
def test_arrays_that_are_no_labels_are_refused(labels, fault):
    with pytest.raises(ParameterError, match=fault):
        metrics.normalized_mutual_info([0, 1], labels)


@pytest.mark.parametrize("base", [1, 0, -2, math.nan, math.inf, "e"])
def test_a_logarithm_needs_a_base_above_one(base):
    with pytest.raises(ParameterError, match="base="):
        metrics.average_entropy([0, 1], [0, 0], base=base)


@measures
def test_object_strings_booleans_and_whole_floats_are_labels(name):
    measure = getattr(metrics, name)
    expected = measure([0, 0, 1], [0, 1, 1])
    assert measure(np.array(["x", "x", "y"], dtype=object), [False, True, True]) == pytest.approx(expected)
    assert measure([0.0, 0.0, 1.0], [0, 1, 1]) == pytest.approx(expected)


def test_the_facade_offers_exactly_the_measures_of_the_package():
    from kernelweave.evaluation import metrics as package

    assert metrics.__all__ == package.__all__ == sorted(package.__all__)
    assert all(getattr(metrics, name) is getattr(package, name) for name in metrics.__all__)


@pytest.mark.parametrize(
    ("name", "theirs"),
    [("normalized_mutual_info", normalized_mutual_info_score), ("adjusted_rand_index", adjusted_rand_score)],
)
@pytest.mark.parametrize("seed", range(3))
def test_agreement_is_that_of_scikit_learn_to_the_last_bit(name, theirs, seed):
    rng = np.random.default_rng(seed)
    for groups in (2, 7, 40):
        true = rng.integers(groups, size=300)
        pred = np.where(rng.random(300) < 0.5, true, rng.integers(groups + 3, size=300))
        assert getattr(metrics, name)(true, pred) == theirs(true, pred)


@pytest.mark.parametrize("name", ["normalized_mutual_info", "adjusted_rand_index"])
def test_groups_of_single_samples_take_no_table_of_all_pairs_of_groups(name):
    labels = np.random.default_rng(0).permutation(20_000)
    tracemalloc.start()
    try:
        assert getattr(metrics, name)(np.arange(20_000), labels) == pytest.approx(1.0, abs=1e-12)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * 8 * 20_000


@pytest.mark.parametrize("shape", [(2, 8, 2), (3, 5, 2), (3, 9, 3)])
def test_independent_labellings_have_exactly_nothing_in_common(shape):
    true, pred, _ = (labels.ravel() for labels in np.indices(shape))  # every class in every cluster, equally often
    assert metrics.normalized_mutual_info(true, pred) == 0.0
