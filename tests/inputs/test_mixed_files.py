"""Files of numbers, text and gaps as pandas, R and people write them, and tables of which samples are missing."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from kernelweave import DataError
from kernelweave.inputs import Table, TextFormat, align_tables, read_tables
from kernelweave.inputs.files.text import check_text_columns

MIXED = TextFormat(mixed=True)
NAN = np.nan


@pytest.fixture
def read(tmp_path):
    """Return a function that writes a text file and reads it with text and gaps allowed."""

    def written(content, name="t.csv", text=MIXED):
        (tmp_path / name).write_text(content)
        return read_tables(str(tmp_path / name), text)[0]

    return written


def test_a_file_of_r_with_quoted_text_and_na(read):
    table = read('"","age","sex","smokes"\n"p1",63,"male, retired",TRUE\n"p2",NA,NA,FALSE\n')
    assert table.ids == ("p1", "p2")
    assert table.columns == ("age", "sex", "smokes")
    np.testing.assert_array_equal(table.values, [[63, NAN, NAN], [NAN, NAN, NAN]])
    assert {j: list(cells) for j, cells in table.raw.texts.items()} == {
        1: ["male, retired", "NA"],
        2: ["TRUE", "FALSE"],
    }


@pytest.mark.parametrize("gap", ["", "NA", "NaN", "nan", "N/A", "null", "None", "?", "-", " NA ", "n/a"])
def test_gaps_in_numbers_are_nan_however_they_are_written(read, gap):
    table = read(f"id,x,y\na,1,2\nb,{gap},3\n")
    np.testing.assert_array_equal(table.values, [[1, 2], [NAN, 3]])
    assert table.raw.texts == {}


def test_a_frame_of_pandas_comes_back_as_it_was(read):
    frame = pd.DataFrame({"x": [1.5, NAN, 2.0], "s": ["a", "b", None]}, index=pd.Index(["p", "q", "r"], name="id"))
    table = read(frame.to_csv())
    np.testing.assert_array_equal(table.values[:, 0], frame["x"])
    assert list(table.raw.texts[1]) == ["a", "b", ""]


def test_a_first_column_whose_text_repeats_is_no_column_of_ids(read):
    table = read("sex,x\n" + "".join(f"{'m' if i % 2 else 'f'},{i}\n" for i in range(6)))
    assert table.ids is None
    assert table.columns == ("sex", "x")


def test_an_id_that_slipped_in_twice_is_still_refused(read):
    with pytest.raises(DataError, match=r"t.csv:7: the id 'p1' was already that of line 3"):
        read("patient,x\np0,1\np1,2\np2,3\np3,4\np4,5\np1,6\n")


@pytest.mark.parametrize("body", ["a,male,1\nb,female,2\nc,male,3\n", "a,1.5,m\nb,2.5,f\nc,3.5,m\n"])
def test_a_first_line_that_may_be_a_sample_is_refused(read, body):
    with pytest.raises(DataError, match=r"t.csv:1: the first line may be a sample.*header=True.*header=False"):
        read(body)
    assert read(body, text=TextFormat(mixed=True, header=False)).n_samples == 3


def test_a_cell_among_numbers_that_is_none_is_refused_with_its_place(read):
    table = read("id,x,ash\na,1,2.5\nb,2,red\n")
    with pytest.raises(
        DataError, match=r"t.csv:3: column 3 \('ash'\) holds 'red', which is not a finite.*categorical='ash'"
    ):
        check_text_columns(table, set())
    check_text_columns(table, {1})
    with pytest.raises(DataError, match="write a point for the decimal comma"):
        check_text_columns(read('id,x\na,"1,5"\nb,2.5\n'), set())


def test_parquet_keeps_text_dates_booleans_and_gaps(tmp_path):
    frame = pd.DataFrame(
        {"x": [1.0, NAN], "s": ["a", "b"], "b": [True, False], "d": pd.to_datetime(["2021-01-01", "2021-01-02"])},
        index=pd.Index(["p", "q"], name="id"),
    )
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_tables(str(tmp_path / "t.parquet"), MIXED)[0]
    assert table.ids == ("p", "q")
    assert sorted(table.raw.texts) == [1, 2, 3]
    np.testing.assert_array_equal(table.values[:, 0], [1, NAN])
    with pytest.raises(DataError, match="column 's' holds"):
        read_tables(str(tmp_path / "t.parquet"))


def test_arrays_may_have_gaps_but_nothing_infinite(tmp_path):
    np.save(tmp_path / "a.npy", [[1.0, NAN], [2.0, 3.0]])
    np.testing.assert_array_equal(read_tables(str(tmp_path / "a.npy"), MIXED)[0].values, [[1, NAN], [2, 3]])
    np.save(tmp_path / "b.npy", [[1.0, np.inf], [2.0, 3.0]])
    with pytest.raises(DataError, match="infinite values in row 1"):
        read_tables(str(tmp_path / "b.npy"), MIXED)


# Samples that files lack


def tables(first, *others):
    return [
        Table(f"t{v}", np.array([[10.0 * v + int(name[1:]), v] for name in ids]), tuple(ids), None, f"t{v}.csv")
        for v, ids in enumerate((first, *others))
    ]


def test_all_samples_are_kept_in_order_of_first_occurrence_with_rows_of_nan():
    one, two = align_tables(tables(["p3", "p1"], ["p1", "p2"]), "all")
    assert one.ids == two.ids == ("p3", "p1", "p2")
    np.testing.assert_array_equal(one.values, [[3, 0], [1, 0], [NAN, NAN]])
    np.testing.assert_array_equal(two.values, [[NAN, NAN], [11, 1], [12, 1]])


def test_absent_samples_of_a_sparse_table_store_one_nan():
    dense, other = tables(["p1", "p2"], ["p2", "p3"])
    sparse = Table("s", sp.csr_array(np.array([[0.0, 5.0], [7.0, 0.0]])), ("p1", "p2"), None, "s.mtx")
    aligned = align_tables([sparse, other], "all")[0]
    assert aligned.values.nnz == 3
    np.testing.assert_array_equal(aligned.values.toarray(), [[0, 5], [7, 0], [NAN, 0]])
    assert dense.values.shape == (2, 2)


def test_a_file_that_shares_no_id_is_refused():
    with pytest.raises(
        DataError, match=r"t0.csv shares no id with any other file.*begins with 'p1', and t1.csv with 'p2'"
    ):
        align_tables(tables(["p1"], ["p2"]), "all")


def test_missing_ids_are_named_with_both_remedies():
    with pytest.raises(
        DataError, match=r"1 id\(s\) of t0.csv are missing from t1.csv, such as 'p3'.*rows='common'.*'all'"
    ):
        align_tables(tables(["p3", "p1"], ["p1"]))
