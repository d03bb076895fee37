"""Data frames brought to the same samples: union or intersection of ids, in a fixed order."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave import GraphFusionClustering, ParameterError, ViewError, align

BLOOD = pd.DataFrame({"iron": [1.0, 2.0, 3.0], "zinc": [4, 5, 6]}, index=["ann", "bob", "cid"])
SCAN = pd.DataFrame({"size": [7.0, 8.0]}, index=["eve", "bob"])


def test_all_keeps_every_id_in_order_of_first_occurrence_and_absent_samples_are_nan():
    views = align({"blood": BLOOD, "scan": SCAN})
    for view in views.values():
        assert list(view.index) == ["ann", "bob", "cid", "eve"]
    assert views["blood"].loc["bob"].tolist() == [2.0, 5.0]
    assert views["blood"].loc["eve"].isna().all()
    assert views["scan"]["size"].isna().tolist() == [True, False, True, False]


def test_common_keeps_shared_ids_in_the_order_of_the_first_table():
    views = align({"scan": SCAN, "blood": BLOOD}, rows="common")
    assert list(views["scan"].index) == ["bob"]
    assert views["blood"].loc["bob", "zinc"] == 5
    assert views["blood"]["zinc"].dtype == BLOOD["zinc"].dtype


def test_the_frames_passed_stay_as_they_are():
    before = BLOOD.copy(), SCAN.copy()
    blood = align({"blood": BLOOD, "scan": SCAN})["blood"]
    blood.loc["ann", "iron"] = 99.0
    pd.testing.assert_frame_equal(BLOOD, before[0])
    pd.testing.assert_frame_equal(SCAN, before[1])


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=8, unique=True), min_size=1, max_size=4))
def test_rows_hold_what_the_plain_dictionaries_say(lists):
    lists = [[0, *(i for i in ids if i)] for ids in lists]  # at least one id in common
    frames = {f"v{v}": pd.DataFrame({"x": [10.0 * v + i for i in ids]}, index=ids) for v, ids in enumerate(lists)}
    union = list(dict.fromkeys(i for ids in lists for i in ids))
    common = [i for i in lists[0] if all(i in ids for ids in lists)]
    for rows, wanted in (("all", union), ("common", common)):
        aligned = align(frames, rows=rows)
        for v, ids in enumerate(lists):
            expected = [10.0 * v + i if i in ids else np.nan for i in wanted]
            assert list(aligned[f"v{v}"].index) == wanted
            np.testing.assert_array_equal(aligned[f"v{v}"]["x"], expected)


def test_an_id_that_occurs_twice_is_named_with_its_table():
    twice = SCAN.set_axis(["bob", "bob"])
    with pytest.raises(ViewError, match=r"id 'bob' occurs 2 times in table 'scan'.*groupby"):
        align({"blood": BLOOD, "scan": twice})


def test_an_id_that_is_missing_is_refused():
    with pytest.raises(ViewError, match="'scan' has a row without an id"):
        align({"scan": SCAN.set_axis(["bob", None])})


def test_ids_of_different_types_are_refused_with_examples():
    numbers = pd.DataFrame({"x": [1.0, 2.0]}, index=[7, 8])
    texts = pd.DataFrame({"y": [1.0, 2.0]}, index=["7", "8"])
    for rows in ("all", "common"):
        with pytest.raises(ViewError, match=r"'a' shares no id .* 7 in 'a' and '7' in 'b'.*astype\(str\)"):
            align({"a": numbers, "b": texts}, rows=rows)


def test_no_id_in_common_is_refused_with_the_remedy():
    frames = {f"v{v}": pd.DataFrame({"x": [1.0, 2.0]}, index=[v, (v + 1) % 3]) for v in range(3)}
    with pytest.raises(ViewError, match=r"No id occurs in all of the tables 'v0', 'v1', 'v2'.*rows='all'"):
        align(frames, rows="common")


@pytest.mark.parametrize(
    ("tables", "rows", "error", "message"),
    [
        ({"a": np.eye(2)}, "all", ViewError, "'a' is of type ndarray"),
        ({"a": BLOOD["iron"]}, "all", ViewError, "'a' is of type Series"),
        ([BLOOD], "all", ViewError, "dict of data frames by name, got list"),
        ({}, "all", ViewError, "at least one"),
        ({"a": BLOOD}, "union", ParameterError, "rows='union' is not known: use 'all' or 'common'"),
    ],
)
def test_what_cannot_be_aligned_is_refused(tables, rows, error, message):
    with pytest.raises(error, match=message):
        align(tables, rows=rows)


def test_aligned_frames_are_what_estimators_take():
    rng = np.random.default_rng(0)
    group = np.repeat([0.0, 9.0], 30)
    ids = [f"p{i:02}" for i in range(60)]
    frames = {
        "one": pd.DataFrame(rng.normal(size=(60, 3)) + group[:, None], index=ids).drop(ids[::10]),
        "two": pd.DataFrame(rng.normal(size=(60, 2)) - group[:, None], index=ids).drop(ids[5::10]).sample(frac=1.0),
    }
    views = align(frames)
    labels = pd.Series(GraphFusionClustering(2, random_state=0).fit_predict(views), index=views["one"].index)
    assert len(labels) == 60
    assert labels[ids[:30]].nunique() == labels[ids[30:]].nunique() == 1
    assert labels[ids[0]] != labels[ids[-1]]


def test_it_can_be_imported_where_pandas_is_not_installed():
    code = "import sys; sys.modules['pandas'] = None; from kernelweave import align; print(align.__name__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "align"
