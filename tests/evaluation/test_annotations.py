"""Columns that were not used: tests against scipy, the log-rank test against a plain one and by hand, matched rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kernelweave import KernelKMeans, ParameterError
from kernelweave.evaluation.explain.survival import log_rank, median_survival
from kernelweave.explain import explain_annotations, explain_clusters
from tests.reference import log_rank as reference

RNG = np.random.default_rng(0)
LABELS = np.repeat([0, 1, 2], [40, 30, 20])


def only(table, name=None):
    return next(row for row in table.rows if name in (None, row.column))


# Survival


def test_the_log_rank_statistic_of_two_small_groups_is_the_one_worked_out_by_hand():
    # group 0 dies at 1 and 2, group 1 dies at 3 and is censored at 4
    # t=1: 2 of 4 in group 0: E 1/2, V 1/4; t=2: 1 of 3: E 1/3, V 2/9; t=3: group 0 is gone
    times = np.array([1.0, 2.0, 3.0, 4.0])
    events = np.array([True, True, True, False])
    statistic, p_value = log_rank(times, events, np.array([0, 0, 1, 1]), 2)
    expected = (2 - 5 / 6) ** 2 / (1 / 4 + 2 / 9)
    assert statistic == pytest.approx(expected)
    assert p_value == pytest.approx(stats.chi2.sf(expected, 1))


def test_the_log_rank_test_of_leukemia_patients_is_the_one_of_textbooks():
    # remission times of Freireich and others (1963), 6-MP and placebo: chi-squared 16.79
    drug = [6, 6, 6, 7, 10, 13, 16, 22, 23, 6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    placebo = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
    times = np.array([*drug, *placebo], dtype=float)
    events = np.array([True] * 9 + [False] * 12 + [True] * 21)
    statistic, p_value = log_rank(times, events, np.repeat([0, 1], 21), 2)
    assert statistic == pytest.approx(16.79, abs=0.005)
    assert p_value < 1e-4
    assert median_survival(times[:21], events[:21]) == 23.0
    assert median_survival(times[21:], events[21:]) == 8.0


@given(seed=st.integers(0, 2**16), k=st.integers(2, 4))
def test_statistic_and_medians_are_those_of_the_plain_implementation(seed, k):
    rng = np.random.default_rng(seed)
    times = rng.integers(1, 9, 25).astype(float)
    events = rng.random(25) < 0.7
    groups = np.append(np.arange(k), rng.integers(k, size=25 - k))
    events[:k] = True
    expected = reference.log_rank(times.tolist(), events.tolist(), groups.tolist())
    assert log_rank(times, events, groups, k) == pytest.approx(expected, abs=1e-8)
    median = reference.median_survival(times.tolist(), events.tolist())
    assert median_survival(times, events) == pytest.approx(np.nan if median is None else median, nan_ok=True)


def test_groups_without_anybody_at_risk_count_for_nothing():
    times = np.array([1.0, 2.0, 3.0, 4.0, 0.5])
    events = np.array([True, True, True, False, False])  # the last one is censored before anything happens
    groups = np.array([0, 0, 1, 1, 2])
    assert log_rank(times, events, groups, 4) == pytest.approx(log_rank(times[:4], events[:4], groups[:4], 2))
    assert np.isnan(log_rank(times, np.zeros(5, dtype=bool), groups, 3)).all()
    assert np.isnan(log_rank(times, events, np.zeros(5, dtype=int), 1)).all()


def test_survival_is_one_row_with_medians_and_without_an_effect():
    table = {"time": [1.0, 2.0, 3.0, 4.0, None], "dead": ["yes", "yes", "yes", "no", "no"], "age": [1, 2, 3, 4, 5]}
    result = explain_annotations([0, 0, 1, 1, 1], table, survival=("time", "dead"))
    row = only(result, "time, dead")
    assert (row.test, row.n_samples, row.n_missing) == ("log-rank", 4, 1)
    assert row.clusters == ("1", "3")
    assert np.isnan(row.effect)
    assert {each.column for each in result.rows} == {"time, dead", "age"}
    late = explain_annotations([0, 0, 1, 1], {"t": [1, 2, 9, 9], "e": [1, 1, 0, 0]}, survival=("t", "e"))
    assert late.rows[0].clusters == ("1", "not reached")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"t": [1, 2]}, "must name two columns of the table"),
        ({"t": ["a", "b"], "e": [1, 0]}, "column 't' does not hold numbers"),
        ({"t": [-1, 2], "e": [1, 0]}, "column 't' holds -1, but times are not negative"),
        ({"t": [1, 2], "e": [1, 2]}, "column 'e' holds '2.0'; an event is 1"),
        ({"t": [1, 2], "e": ["dead", "alive"]}, "column 'e' holds 'dead'; an event is 1"),
    ],
)
def test_bad_survival_columns_are_refused(table, message):
    with pytest.raises(ParameterError, match=message):
        explain_annotations([0, 1], table, survival=("t", "e"))


# Numbers, categories, dates


def test_numbers_are_tested_by_kruskal_and_wallis():
    age = RNG.normal(50 + 5 * LABELS, 4)
    age[::9] = np.nan
    row = only(explain_annotations(LABELS, {"age": age}))
    there = ~np.isnan(age)
    expected = stats.kruskal(*(age[there & (c == LABELS)] for c in range(3)))
    assert (row.statistic, row.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert row.effect == pytest.approx(expected.statistic / (there.sum() - 1))
    assert row.clusters[1] == f"{np.median(age[there & (LABELS == 1)]):.4g}"
    assert (row.kind, row.n_samples, row.n_missing) == ("number", 80, 10)


def test_the_effect_of_numbers_that_separate_two_clusters_is_between_0_and_1():
    apart = only(explain_annotations([0] * 30 + [1] * 30, {"x": np.arange(60.0)}))
    assert 0.7 < apart.effect <= 1.0


def test_categories_are_tested_by_chi_squared():
    grade = np.where(RNG.random(90) < 0.2 + 0.3 * LABELS, "high", "low")
    row = only(explain_annotations(LABELS, {"grade": grade}))
    counts = pd.crosstab(LABELS, grade).to_numpy()
    expected = stats.chi2_contingency(counts, correction=False)
    assert (row.statistic, row.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert row.effect == pytest.approx(stats.contingency.association(counts, method="cramer"))
    assert row.test == "chi-squared"
    share = (grade[LABELS == 2] == "high").mean()
    assert row.clusters[2] == f"high ({share:.0%})"


def test_few_samples_are_tested_exactly_or_by_permutations():
    table = {"cure": ["yes"] * 4 + ["no"] * 4}
    row = only(explain_annotations([0, 0, 0, 0, 1, 1, 1, 1], table))
    assert row.test == "Fisher's exact test"
    assert row.p_value == pytest.approx(2 / 70)  # of C(8, 4) tables of these margins, two are as far apart
    three = explain_annotations([0, 0, 1, 1, 2, 2], {"cure": list("aabbcc")})
    assert only(three).test == "chi-squared by 9,999 permutations"
    assert only(three).p_value == pytest.approx(6 / 90, abs=0.008)  # 3! of 6! / 2!^3 tables; three deviations
    assert only(three).effect == pytest.approx(1.0)
    assert explain_annotations([0, 0, 1, 1, 2, 2], {"cure": list("aabbcc")}).rows == three.rows


def test_dates_are_numbers_and_shown_as_dates():
    days = pd.date_range("2020-01-01", periods=90)
    for column in (days, [str(day.date()) for day in days]):
        row = only(explain_annotations(LABELS, {"seen": column}))
        assert row.kind == "date"
        assert row.clusters[1] == str(days[40 + 14].date())  # days 40 to 69 have their median half a day later
        assert row.p_value == pytest.approx(stats.kruskal(*(np.arange(90)[c == LABELS] for c in range(3))).pvalue)


def test_two_values_booleans_and_codes_are_categories():
    table = {"event": RNG.integers(0, 2, 90), "smokes": RNG.random(90) < 0.5, "site": RNG.integers(0, 4, 90)}
    result = explain_annotations(LABELS, table, categorical=["site"])
    assert {row.kind for row in result.rows} == {"category"}
    assert only(result, "smokes").clusters[0].startswith(("true", "false"))


def test_columns_without_a_test_are_listed_with_the_reason():
    table = {
        "id": [f"p{i}" for i in range(90)],
        "same": ["x"] * 90,
        "one": [1.0] * 90,
        "none": [None] * 90,
        "first": np.where(LABELS == 0, np.arange(90.0), np.nan),
        "age": np.arange(90.0),
    }
    result = explain_annotations(LABELS, table)
    assert result.set_aside == {
        "id": "90 different texts",
        "same": "one value",
        "one": "one value",
        "none": "no values",
        "first": "values in one cluster only",
    }
    assert "same: not tested (one value)" in result.summary()


def test_p_values_are_adjusted_for_all_columns_and_the_smallest_comes_first():
    table = {f"c{j}": RNG.normal(size=90) + 0.2 * j * LABELS for j in range(6)}
    result = explain_annotations(LABELS, table)
    p = [row.p_value for row in result.rows]
    assert p == sorted(p)
    np.testing.assert_allclose([row.adjusted_p for row in result.rows], stats.false_discovery_control(p))


# Rows


def test_rows_are_matched_by_name_and_what_does_not_match_is_counted(tmp_path):
    frame = pd.DataFrame({"age": [30.0, 40.0, 50.0, 60.0]}, index=["d", "a", "b", "z"])
    result = explain_annotations([0, 0, 1, 1], frame, ids=["a", "b", "c", "d"])
    row = only(result)
    assert row.clusters == ("45", "30")
    assert (result.n_without, result.n_unused, row.n_missing) == (1, 1, 1)
    assert "1 of 4 samples have no row in the table." in result.summary()
    assert "1 rows of the table belong to no sample." in result.summary()
    text = result.to_csv(tmp_path / "a.csv").read_text()
    assert text.splitlines()[0].endswith("n_samples,n_missing,cluster_0,cluster_1")
    assert text.splitlines()[1].endswith(",3,1,45,30")
    assert result.to_frame()["clusters"].tolist() == [("45", "30")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "table has 2 rows for 3 samples"),
        ({"ids": ["a", "b", "c"]}, "the rows of table have no names"),
        ({"ids": ["a", "b"], "table_ids": ["a", "b"]}, "ids has 2 entries for 3 samples"),
        ({"ids": ["a", "b", "c"], "table_ids": ["a", "a"]}, "several rows called 'a'"),
        ({"ids": ["a", "b", "c"], "table_ids": ["x", "y"]}, "No row of the table belongs to a sample"),
    ],
)
def test_rows_that_cannot_be_matched_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        explain_annotations([0, 1, 1], {"age": [1, 2]}, **arguments)


def test_the_explanation_of_clusters_matches_annotations_by_the_index():
    names = [f"p{i}" for i in range(20)]
    X = pd.DataFrame({"x": np.repeat([0.0, 9.0], 10) + RNG.random(20)}, index=names)
    model = KernelKMeans(2, kernel="linear", random_state=0).fit(X)
    ages = pd.DataFrame({"age": np.repeat([30.0, 60.0], 10) + np.arange(20)}, index=names).iloc[::-1]
    by_name = explain_clusters(model, X, annotations=ages).annotations.rows[0]
    assert by_name.p_value < 1e-3
    first = model.labels_[0]
    assert by_name.clusters[first] == "34.5"
    by_order = explain_clusters(model, X, annotations={"age": ages["age"].to_numpy()}).annotations.rows[0]
    assert by_order.clusters[first] == "74.5"


def test_survival_that_cannot_be_tested_is_set_aside_with_the_reason():
    labels = [0, 0, 1, 1]
    one = explain_annotations(labels, {"t": [1.0, 2.0, np.nan, np.nan], "e": [1, 1, 0, 0]}, survival=("t", "e"))
    assert (one.rows, one.set_aside) == ((), {"t, e": "values in one cluster only"})
    none = explain_annotations(labels, {"t": [np.nan] * 4, "e": [1, 1, 0, 0]}, survival=("t", "e"))
    assert none.set_aside == {"t, e": "no values"}
    still = explain_annotations(labels, {"t": [1.0, 2.0, 3.0, 4.0], "e": [0, 0, 0, 0]}, survival=("t", "e"))
    assert still.set_aside == {"t, e": "no event while samples of two clusters were at risk"}
