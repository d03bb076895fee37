"""Text, booleans, dates and categories as numbers, in training and for new samples."""

import json
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from kernelweave import GraphFusionClustering, ParameterError, ViewError, ViewWarning
from kernelweave.preprocessing import TableEncoder

NAN = np.nan


def encoded(frame, **options):
    return TableEncoder(**options).fit_transform(pd.DataFrame(frame))


def test_text_becomes_a_column_for_each_value_and_missing_text_stays_missing():
    result = encoded({"sex": ["male", " female", "male", "NA", None, ""]})
    assert list(result.columns) == ["sex=female", "sex=male"]
    np.testing.assert_array_equal(result, [[0, 1], [1, 0], [0, 1], [NAN, NAN], [NAN, NAN], [NAN, NAN]])


@given(st.lists(st.sampled_from(["a", "b", "c d", "none", "É"]), min_size=6, max_size=20))
def test_categories_are_those_of_scikit_learn(values):
    if len(set(values)) < 2:
        values = [*values, "x", "y"]
    frame = pd.DataFrame({"v": values})
    expected = OneHotEncoder(sparse_output=False).fit_transform(frame)
    np.testing.assert_array_equal(encoded(frame, categorical=["v"]), expected)


@pytest.mark.parametrize("cells", [["TRUE", "FALSE", "NA"], ["True", "False", ""], [True, False, None]])
def test_booleans_are_1_and_0_whoever_wrote_them(cells):
    np.testing.assert_array_equal(encoded({"b": cells}), [[1], [0], [NAN]])


def test_booleans_of_pandas_with_na_are_1_and_0():
    frame = pd.DataFrame({"b": pd.array([True, None, False], dtype="boolean"), "n": pd.array([1, 5, None], "Int64")})
    np.testing.assert_array_equal(encoded(frame), [[1, 1], [NAN, 5], [0, NAN]])


def test_ordered_categories_become_their_place_and_others_a_column_each():
    sizes = pd.Categorical(["small", "large", None, "medium"], ["small", "medium", "large"], ordered=True)
    frame = pd.DataFrame({"size": sizes, "site": pd.Categorical(["x", "y", "x", "y"])})
    result = encoded(frame)
    assert list(result.columns) == ["size", "site=x", "site=y"]
    np.testing.assert_array_equal(result["size"], [0, 2, NAN, 1])


def test_the_user_can_give_the_order_of_categories():
    frame = pd.DataFrame({"stage": ["II", "I", None, "III", "I"], "grade": [3, 1, 2, 2, 1]})
    encoder = TableEncoder(ordered={"stage": ["I", "II", "III", "IV"], "gr*": ["3", "2", "1"]}).fit(frame)
    np.testing.assert_array_equal(encoder.transform(frame), [[1, 0], [0, 2], [NAN, 1], [2, 1], [0, 2]])
    again = TableEncoder.from_notes(encoder.notes())
    np.testing.assert_array_equal(again.transform({"stage": ["IV"], "grade": [1]}), [[3, 2]])


@pytest.mark.parametrize(
    "cells",
    [
        ["2021-03-04", "2021-03-01", None],
        ["2021-03-04 00:00:00", "2021-03-01T00:00", "NA"],
        ["2021-03-04T02:00:00+02:00", "2021-03-01 00:00:00Z", ""],
        [date(2021, 3, 4), date(2021, 3, 1), None],
        [datetime(2021, 3, 4, tzinfo=UTC), datetime(2021, 3, 1, tzinfo=UTC), None],
        pd.to_datetime(["2021-03-04", "2021-03-01", None]),
        pd.to_datetime(["2021-03-04", "2021-03-01", None], utc=True),
    ],
)
def test_dates_that_are_asked_for_are_days_since_the_earliest(cells):
    np.testing.assert_allclose(encoded({"seen": cells}, dates=["seen"]), [[3], [0], [NAN]])


def test_days_of_new_samples_count_from_the_earliest_date_of_training():
    encoder = TableEncoder(dates=["seen"]).fit(pd.DataFrame({"seen": ["2021-03-04", "2021-03-01"]}))
    new = encoder.transform(pd.DataFrame({"seen": ["2021-02-27 12:00", "2021-03-11"]}))
    np.testing.assert_allclose(new, [[-1.5], [10]])


def test_what_says_nothing_of_groups_is_set_aside_with_a_reason_and_a_warning():
    n = 60
    frame = pd.DataFrame(
        {
            "row": np.arange(1, n + 1),
            "zero": np.arange(n),
            "name": [f"p{i}" for i in range(n)],
            "hospital": "Mary",
            "same": 3.0,
            "nothing": None,
            "seen": pd.date_range("2021-01-01", periods=n),
            "street": [f"s{i % 55}" for i in range(n)],
            "age": np.arange(n)[::-1],
        }
    )
    encoder = TableEncoder()
    with pytest.warns(
        ViewWarning,
        match=r"set aside: 'row', 'zero' \(it numbers the rows\); "
        r"'name' \(a different text",
    ):
        encoder.fit(frame)
    assert encoder.set_aside_ == {
        "row": "it numbers the rows",
        "zero": "it numbers the rows",
        "name": "a different text in every row",
        "hospital": "the same in all rows",
        "same": "the same in all rows",
        "nothing": "without any value",
        "seen": "a date",
        "street": "text of 55 different values",
    }
    assert list(encoder.get_feature_names_out()) == ["age"]


def test_the_user_decides_over_what_is_set_aside():
    n = 60
    frame = pd.DataFrame({"row": np.arange(n), "street": [f"s{i % 55}" for i in range(n)], "code": [1.0, 2.0] * 30})
    result = encoded(frame, columns=["row", "street", "code"], categorical=["street", "co*"])
    assert result.shape == (n, 1 + 55 + 2)
    assert list(result.columns[-2:]) == ["code=1", "code=2"]
    assert list(encoded(frame, drop=["street", "row"]).columns) == ["code"]
    assert list(encoded(frame, columns=["c*"]).columns) == ["code"]


def test_new_categories_are_zero_everywhere_with_a_warning():
    encoder = TableEncoder().fit(pd.DataFrame({"sex": ["male", "female"], "age": [1.0, 2.0]}))
    with pytest.warns(ViewWarning, match="'sex' holds 'diverse', which did not occur in training: this is 0 in all"):
        new = encoder.transform(pd.DataFrame({"age": [3.0], "sex": ["diverse"]}))
    np.testing.assert_array_equal(new, [[0, 0, 3]])


def test_new_samples_need_the_columns_in_use_and_no_others():
    train = pd.DataFrame({"sex": ["male", "female"], "seen": ["2021-01-01", "2021-01-02"], "age": [1.0, 2.0]})
    with pytest.warns(ViewWarning, match="'seen'"):
        encoder = TableEncoder().fit(train)
    assert encoder.transform(train[["age", "sex"]]).shape == (2, 3)
    with pytest.raises(ViewError, match="1 column\\(s\\) of training are missing, such as 'sex'"):
        encoder.transform(train[["age"]])
    with pytest.raises(ViewError, match="1 column\\(s\\) were not in the training data, such as 'extra'"):
        encoder.transform(train.assign(extra=1))
    with pytest.raises(ViewError, match="'age' was a number in training and holds 'old'"):
        encoder.transform(train.assign(age=["old", "young"]))


def test_one_new_sample_is_read_as_in_training_though_it_looks_otherwise():
    train = pd.DataFrame({"code": ["1", "2", "x1"], "b": ["TRUE", "FALSE", "TRUE"], "x": [1.5, 2.5, 3.5]})
    encoder = TableEncoder(categorical=["code"]).fit(train)
    new = encoder.transform(pd.DataFrame({"code": [2], "b": [1], "x": [None]}))
    np.testing.assert_array_equal(new, [[0, 1, 0, 1, NAN]])


def test_what_was_learned_survives_json():
    frame = pd.DataFrame({"sex": ["m", "f", "m"], "seen": ["2021-01-01", "2021-01-09", None], "x": [1.0, 2.0, 4.0]})
    frame["size"] = pd.Categorical(["s", "l", "s"], ["s", "l"], ordered=True)
    encoder = TableEncoder(dates=["seen"]).fit(frame)
    again = TableEncoder.from_notes(json.loads(json.dumps(encoder.notes())))
    pd.testing.assert_frame_equal(again.transform(frame), encoder.transform(frame))
    assert again.n_features_in_ == 4


@pytest.mark.parametrize(
    "damage", [{"columns": None}, {"columns": [{"name": "x"}]}, {"set_aside": []}, {"names": 3}], ids=str
)
def test_damaged_notes_are_refused(damage):
    notes = TableEncoder().fit(pd.DataFrame({"x": [1.0, 2.0]})).notes()
    with pytest.raises(ViewError, match="damaged"):
        TableEncoder.from_notes(notes | damage)


@pytest.mark.parametrize(
    ("frame", "options", "error", "message"),
    [
        (
            {"x": [1.0, 2.0]},
            {"drop": ["y"]},
            ParameterError,
            "drop names 'y', but there is no such column; the columns are 'x'",
        ),
        ({"x": [1.0, 2.0]}, {"drop": "x"}, ParameterError, r"drop='x' must be a list of names: write \['x'\]"),
        ({"x": [1.0, 2.0]}, {"drop": ["x"]}, ViewError, "No column is left.*'x' \\(left out on request\\)"),
        ({"x": ["1", "red"]}, {}, ViewError, r"'x' holds numbers, such as '1', and text, such as 'red'.*categorical="),
        ({"x": ["4.3.2021", "x"]}, {"dates": ["x"]}, ViewError, "'4.3.2021', which is not a date.*2021-03-04"),
        (
            {"x": ["I", "V"]},
            {"ordered": {"x": ["I", "II"]}},
            ViewError,
            "'x' holds 'V', which is not in its order I < II",
        ),
        ({"x": ["I", "V"]}, {"ordered": {"x": ["I", "I"]}}, ParameterError, "two or more different categories"),
        ({"x": ["I", "V"]}, {"ordered": ["x"]}, ParameterError, "must be a dict of columns"),
        ({"x": ["I", "V"]}, {"ordered": {"y": ["I", "V"]}}, ParameterError, "ordered names 'y', but there is no such"),
        ({"x": ["2021-02-30", "2021-03-01"]}, {"dates": ["x"]}, ViewError, "'2021-02-30', which is not a date"),
    ],
)
def test_what_cannot_be_meant_is_refused(frame, options, error, message):
    with pytest.raises(error, match=message):
        TableEncoder(**options).fit(pd.DataFrame(frame))


def test_arrays_are_refused_and_dicts_of_columns_taken():
    with pytest.raises(ViewError, match="X is of type ndarray"):
        TableEncoder().fit(np.eye(3))
    columns = {"x": np.array([1.0, 2.0]), "t": np.array(["a", "b"])}
    np.testing.assert_array_equal(TableEncoder().fit_transform(columns), [[1, 1, 0], [2, 0, 1]])


def test_it_stands_in_pipelines_and_can_be_cloned():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": [*rng.normal(0, 1, 30), *rng.normal(20, 1, 30)], "s": ["a"] * 30 + ["b"] * 30})
    model = make_pipeline(TableEncoder(), GraphFusionClustering(2, random_state=0))
    labels = clone(model).fit(frame)[-1].labels_
    assert len(set(labels[:30])) == len(set(labels[30:])) == 1


def test_the_frame_passed_stays_as_it_is():
    frame = pd.DataFrame({"x": [1.0, 2.0], "s": ["a", "b"]})
    before = frame.copy()
    encoded(frame)
    pd.testing.assert_frame_equal(frame, before)
