"""How text files are written is read off them: a table is the same however it is written."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.foundation.errors import DataError, ParameterError
from kernelweave.inputs import TextFormat, read_tables
from kernelweave.inputs.files.conventions import decimal_of, delimiter_of

MIXED = {"mixed": True}


@pytest.fixture
def read(tmp_path):
    def from_text(content, name="t.csv", **text):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        (table,) = read_tables(str(path), TextFormat(**{**MIXED, **text}))
        return table

    return from_text


def notes(table):
    return ["".join(map(str, note)) for note in table.notes]


NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3))


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=2, max_size=6),
    mark=st.sampled_from([",", ";", "\t", "|", " "]),
    decimal=st.sampled_from([".", ","]),
    ending=st.sampled_from([".csv", ".tsv", ".txt"]),
    header=st.booleans(),
    named=st.booleans(),
)
def test_a_table_is_the_same_whatever_separates_cells_and_decimals(
    tmp_path_factory, rows, mark, decimal, ending, header, named
):
    values = np.array(rows) + 0.0625  # so that every number has decimals, and not three of them
    if mark == "," and decimal == ",":
        mark = ";"
    frame = pd.DataFrame(values, [f"s{i}" for i in range(len(rows))], ["a", "b", "c"])
    path = tmp_path_factory.mktemp("law") / f"t{ending}"
    frame.to_csv(path, sep=mark, decimal=decimal, header=header, index=named, index_label="id")
    (table,) = read_tables(str(path), TextFormat(mixed=True))
    np.testing.assert_array_equal(table.values, values)
    assert table.ids == (tuple(frame.index) if named else None)
    assert table.columns == (tuple(frame.columns) if header else None)
    usual = {".csv": ","}.get(ending, "\t")
    assert any("separated" in note for note in notes(table)) == (mark != usual)
    assert any("decimal comma" in note for note in notes(table)) == (decimal == ",")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_names_are_the_same_in_every_encoding(read, encoding):
    table = read("id,größe\nMuñoz,1\nÉmile,2\n".encode(encoding))
    assert table.ids == ("Muñoz", "Émile")
    assert table.columns == ("größe",)
    assert bool(table.notes) == (encoding in ("utf-16", "cp1252"))


def test_what_is_said_is_not_read_off(read):
    content = "id;a\np;1,5\nq;2,5\n"
    assert read(content).values.ravel().tolist() == [1.5, 2.5]
    assert read(content, delimiter=";", decimal=",").notes == ()
    assert 0 in read(content, delimiter=";", decimal=".").raw.texts
    assert 0 in read("id;a\np;0,5\nq;1.234,5\n").raw.texts  # refused later: nobody said what the point is


def test_a_sign_between_thousands_is_read_where_the_decimal_sign_is_said(read):
    german = "id;a\np;1.234,5\nq;1.234\nr;7\n"
    assert read(german, decimal=",").values.ravel().tolist() == [1234.5, 1234.0, 7.0]
    english = 'id,a\np,"1,234.5"\nq,"1,234"\nr,7\n'
    assert read(english, decimal=".").values.ravel().tolist() == [1234.5, 1234.0, 7.0]
    with pytest.raises(DataError, match=r"holds '2\.5', which has a decimal point"):
        read("id;a\np;2.5\n", decimal=",")


def test_columns_of_percentages_alone_are_numbers(read):
    table = read("id,a,b,c\np,12.5 %,4%,7\nq,NA,-3%,8\nr,0%,,9\n")
    np.testing.assert_array_equal(table.values, [[12.5, 4.0, 7.0], [np.nan, -3.0, 8.0], [0.0, np.nan, 9.0]])
    assert notes(table) == ["columns a, b: percentages are read as numbers ('12.5 %' as 12.5)"]
    bare = read("1;12,5 %\n2;13,5 %\n", mixed=None)  # as many commas as semicolons in every line
    assert bare.values.tolist() == [[1.0, 12.5], [2.0, 13.5]]
    assert notes(bare)[1:] == [
        "column 2: percentages are read as numbers ('12,5 %' as 12,5)",
        "numbers have a decimal comma; if not, use decimal='.'",
    ]
    many = read("id,a,b,c,d\np,1%,2%,3%,4%\nq,1%,2%,3%,4%\n")
    assert notes(many) == ["columns a, b, c and 1 more: percentages are read as numbers ('1%' as 1)"]
    assert 0 in read("id,a\np,10%\nq,20\n").raw.texts  # refused later: is 20 a share or a percentage?
    assert 0 in read("id,a\np,10%\nq,high\n").raw.texts


def test_commas_that_may_be_either_are_refused():
    rows = [(2, ["1,234"]), (3, ["5,678"])]
    with pytest.raises(DataError, match="x:2: '1,234' may have a decimal comma, or one between thousands"):
        decimal_of("x", rows)
    assert decimal_of("x", [*rows, (4, ["0,5"])]) == ","
    assert decimal_of("x", [*rows, (4, ["0.5"])]) == "."
    assert decimal_of("x", [(2, ["Smith, John"])]) == "."


def test_the_usual_delimiter_counts_first():
    assert delimiter_of("a,b;c\n1,2;3\n", ",") == ","
    assert delimiter_of("id,text\n1,x; y\n2,u; v\n", ",") == ","
    assert delimiter_of("id;text\n1;x, y\n2;u, v\n", ",") == ";"
    assert delimiter_of("1,5;2,5\n3,5;4,5\n", ",") == ";"
    assert delimiter_of("1,5 2,5\n3,5 4,5\n", ",") == " "
    assert delimiter_of("1,5 2,5\n3,5 4,5\n", ",", blanks=False) == ","
    assert delimiter_of("x\n1,5\n2,5\n", ";") == ";"
    assert delimiter_of("New York\nSan Jose\n", ",") == ","
    assert delimiter_of("id,a\n1,2,3\n4,5\n", ",") == ","
    assert delimiter_of("a;b;c\n1;2;3\n4;5\n", ",") == ";"
    assert delimiter_of("id,a;b\np;1;9\nq;2,3\nr;4\n", ",") == ","


def test_a_header_of_r_stands_above_ids_and_a_trailing_delimiter_above_nothing(read):
    table = read("a,b\np,1,2\nq,3,4\n")
    assert (table.ids, table.columns) == (("p", "q"), ("a", "b"))
    assert "read as ids" in notes(table)[0]
    table = read("id,a\np,1,\nq,2,\n")
    assert (table.ids, table.columns) == (("p", "q"), ("a",))
    assert "end in a delimiter" in notes(table)[0]
    assert read("id,a,b\np,1,\nq,2,\n", header=True).columns == ("a", "b")
    with pytest.raises(DataError, match="this row has 3"):
        read("1,2\n3,4,5\n6,7,8\n")


def test_a_table_whose_samples_are_columns_is_turned(read, tmp_path):
    table = read("gene,101,102\ng1,1,2\ng2,3,4\ng3,5,6\n", transpose=True)
    assert (table.ids, table.columns) == (("101", "102"), ("g1", "g2", "g3"))
    np.testing.assert_array_equal(table.values, [[1, 3, 5], [2, 4, 6]])
    r = read("p,q\ng1,1,2\ng2,3,4\n", transpose=True)
    assert (r.ids, r.columns) == (("p", "q"), ("g1", "g2"))
    with pytest.raises(DataError, match=r"t\.csv:3: this row has 2 cell"):
        read("gene,p,q\ng1,1,2\ng2,3\n", transpose=True)
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(2, 3))
    (array,) = read_tables(str(tmp_path / "x.npy"), TextFormat(transpose=("x",)))
    np.testing.assert_array_equal(array.values, [[0, 3], [1, 4], [2, 5]])
    (same,) = read_tables(str(tmp_path / "x.npy"), TextFormat(transpose=("y",)))
    assert same.values.shape == (2, 3)


def test_sheets_are_read_as_their_text_would_be(tmp_path):
    frame = pd.DataFrame(
        {"x": [1.5, None], "n": [1, 2], "ok": [True, False], "day": pd.to_datetime(["2021-01-01"] * 2)}
    )
    frame.index = pd.Index(["p", "q"], name="id")
    path = tmp_path / "b.xlsx"
    frame.to_excel(path, startrow=2)
    (table,) = read_tables(str(path), TextFormat(mixed=True))
    assert table.ids == ("p", "q")
    np.testing.assert_array_equal(table.values[:, :2], [[1.5, 1], [np.nan, 2]])
    assert table.raw.texts[2].tolist() == ["TRUE", "FALSE"]
    assert table.raw.texts[3].tolist() == ["2021-01-01 00:00:00"] * 2
    assert list(table.raw.lines) == [4, 5]


def test_sheets_need_a_package_that_the_message_names(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("kernelweave.inputs.files.binary.package", missing)
    (tmp_path / "b.xlsx").write_bytes(b"")
    with pytest.raises(DataError, match=r"b\.xlsx: reading this needs openpyxl; install it with kernelweave\[io\]"):
        read_tables(str(tmp_path / "b.xlsx"))


def test_a_decimal_sign_is_a_comma_or_a_point():
    with pytest.raises(ParameterError, match=r"decimal='x': give decimal=',' or decimal='\.'"):
        TextFormat(decimal="x")
    with pytest.raises(ParameterError, match="decimal=',' cannot be combined with delimiter=','"):
        TextFormat(delimiter=",", decimal=",")
