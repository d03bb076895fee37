"""Views from files: what is read, what is matched, and every fault with its file and line."""

import gzip
import io
import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import mmwrite, savemat

from kernelweave import DataError, ParameterError
from kernelweave.inputs import Table, TextFormat, align_tables, read_tables

VALUES = np.array([[1.0, 2.5], [-3.0, 4e3], [0.0, 1e-3]])
TEXT = "id,height,width\na,1,2.5\nb,-3,4e3\nc,0,0.001\n"


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Return a function that writes a file into the working folder and gives its name."""
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    return write


def read(place, **text):
    (table,) = read_tables(place, TextFormat(**text))
    return table


# What is read


def test_a_csv_file_gives_ids_columns_and_numbers(put):
    result = read(put("data.csv", TEXT))
    assert (result.name, result.ids, result.columns) == ("data", ("a", "b", "c"), ("height", "width"))
    np.testing.assert_array_equal(result.values, VALUES)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("tabs.tsv", TEXT.replace(",", "\t"), {}),
        ("tabs.txt", TEXT.replace(",", "\t"), {}),
        ("semicolons.csv", TEXT.replace(",", ";"), {"delimiter": ";"}),
        ("windows.csv", TEXT.replace("\n", "\r\n"), {}),
        ("mark.csv", "\ufeff" + TEXT, {}),
        ("blank.csv", TEXT.replace("\nb", "\n\n\nb") + "\n\n", {}),
        ("quotes.csv", TEXT.replace("a,", '"a",').replace("2.5", '" 2.5"'), {}),
        ("unnamed.csv", TEXT.replace("id,", ","), {}),
        ("spaces.csv", TEXT.replace(",", ", "), {}),
        ("last.csv", "height,width,key\n1,2.5,a\n-3,4e3,b\n0,0.001,c\n", {"ids": "key"}),
        ("third.csv", "1,2.5,a\n-3,4e3,b\n0,0.001,c\n", {"ids": "3"}),
        ("bare.csv", "a,1,2.5\nb,-3,4e3\nc,0,0.001\n", {}),
    ],
)
def test_other_ways_to_write_it_give_the_same(put, name, content, text):
    result = read(put(name, content), **text)
    np.testing.assert_array_equal(result.values, VALUES)
    assert result.ids == ("a", "b", "c")


def test_files_without_names_and_ids_are_numbers_alone(put):
    result = read(put("plain.csv", "1,2.5\n-3,4e3\n0,0.001\n"))
    assert (result.ids, result.columns) == (None, None)
    np.testing.assert_array_equal(result.values, VALUES)
    assert read(put("one.csv", "1\n2\n3\n")).values.tolist() == [[1.0], [2.0], [3.0]]


def test_numeric_ids_are_ids_where_the_first_column_says_so(put):
    assert read(put("a.csv", "id,x\n7,1\n8,2\n")).ids == ("7", "8")
    assert read(put("b.csv", "x,y\n7,1\n8,2\n")).ids is None
    assert read(put("c.csv", "id,x\n7,1\n8,2\n"), ids="none").values.tolist() == [[7.0, 1.0], [8.0, 2.0]]


def test_a_header_of_numbers_can_be_told(put):
    name = put("years.csv", "2001,2002\n1,2\n3,4\n")
    assert read(name).values.shape == (3, 2)
    assert read(name, header=True).columns == ("2001", "2002")
    assert read(put("words.csv", "1,2\n3,4\n"), header=False).values.shape == (2, 2)


def test_a_first_line_that_counts_many_cells_is_a_header(put):
    values = np.arange(27.0).reshape(3, 9) + 0.5
    put("x.txt", "")
    pd.DataFrame(values).to_csv("x.csv", index=False)
    result = read("x.csv")
    assert (result.ids, result.columns) == (None, tuple("012345678"))
    np.testing.assert_array_equal(result.values, values)
    assert read("x.csv", header=False).values.shape == (4, 9)
    assert read(put("y.csv", "1,2,3,4,5,6,7,8,9\n2,3,4,5,6,7,8,9,9\n")).values.shape == (2, 9)


def test_whether_a_line_that_counts_few_cells_is_a_header_must_be_said(put):
    put("x.csv", "0,1\n5,6\n7,8\n")
    with pytest.raises(DataError, match=r"x\.csv:1: the first line counts its cells .* header=True .* header=False"):
        read("x.csv")
    assert read("x.csv", header=True).columns == ("0", "1")
    assert read("x.csv", header=False).values.shape == (3, 2)
    for line in ("0", "0,2", "1,2", "0.0,1.0"):
        text = f"{line}\n{line.replace('0', '5')}\n"
        assert read(put("y.csv", text)).values.shape == (2, line.count(",") + 1)


@pytest.mark.parametrize("name", ["patient_id", "Sample ID", "cell.barcode", "row-key", "my_ids", "PATIENT_INDEX"])
def test_a_first_column_that_ends_like_ids_holds_them(put, name):
    result = read(put("x.csv", f"{name},a\n7,1\n8,2\n"))
    assert (result.ids, result.columns) == (("7", "8"), ("a",))
    assert read(put("x.csv", f"{name},2001\n7,1\n8,2\n")).columns == ("2001",)
    assert read(put("x.csv", f"{name},a\n7,1\n8,2\n"), ids="none").ids is None


def test_names_that_only_look_like_ids_are_those_of_data(put):
    for name in ("acid", "humid", "monkey"):
        assert read(put("x.csv", f"{name},a\n7,1\n8,2\n")).ids is None
    assert read(put("x.csv", "body_mass_index,a\n23,1\n24.5,2\n")).ids is None
    assert read(put("x.csv", "body_mass_index\n23\n24\n")).ids is None


def test_compressed_text_is_read(put):
    result = read(put("data.csv.gz", gzip.compress(TEXT.encode())))
    assert (result.name, result.ids) == ("data", ("a", "b", "c"))
    np.testing.assert_array_equal(result.values, VALUES)
    with pytest.raises(DataError, match=r"^x\.tsv\.gz: this is not a readable gzip file"):
        read_tables(put("x.tsv.gz", TEXT))
    with pytest.raises(DataError, match=r"^x\.csv\.gz: this is not a readable gzip file"):
        read_tables(put("x.csv.gz", gzip.compress(TEXT.encode())[:-9]))


def test_standard_input_is_csv(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    result = read("-")
    assert result.name == "stdin"
    np.testing.assert_array_equal(result.values, VALUES)


def test_arrays_of_numpy_matlab_and_matrix_market(put, tmp_path):
    put("x.txt", "")
    np.save("a.npy", VALUES)
    np.testing.assert_array_equal(read("a.npy").values, VALUES)
    np.savez("b.npz", first=VALUES, second=2 * VALUES, ids=np.array(["p", "q ", "r"]))
    both = read_tables("b.npz")
    assert [(table.name, table.ids) for table in both] == [(n, ("p", "q", "r")) for n in ("first", "second")]
    np.testing.assert_array_equal(read("b.npz:second").values, 2 * VALUES)
    assert read("mine=b.npz:first").name == "mine"
    savemat("c.mat", {"X": VALUES, "S": sp.csc_array(VALUES)})
    dense, sparse = read_tables("c.mat")
    np.testing.assert_array_equal(dense.values, VALUES)
    assert sp.issparse(sparse.values)
    mmwrite("d.mtx", sp.coo_array(VALUES))
    np.testing.assert_array_equal(read("d.mtx").values.toarray(), VALUES)
    (tmp_path / "e.mtx.gz").write_bytes(gzip.compress((tmp_path / "d.mtx").read_bytes()))
    np.testing.assert_array_equal(read("e.mtx.gz").values.toarray(), VALUES)


def test_parquet_files_and_their_ids(put):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow, from kernelweave[io]")
    put("x.txt", "")
    frame = pd.DataFrame(VALUES, columns=["u", "v"])
    frame.to_parquet("plain.parquet")
    assert read("plain.parquet").ids is None
    frame.set_index(pd.Index(["a", "b", "c"])).to_parquet("index.parquet")
    assert read("index.parquet").ids == ("a", "b", "c")
    frame.assign(name=["a", "b", "c"])[["name", "u", "v"]].to_parquet("column.parquet")
    result = read("column.parquet")
    assert (result.ids, result.columns) == (("a", "b", "c"), ("u", "v"))
    frame.assign(w=["x", "y", "z"]).to_parquet("text.parquet")
    with pytest.raises(DataError, match=r"text\.parquet: column 'w' holds .*, not numbers"):
        read("text.parquet")


def test_only_the_index_that_nobody_made_is_no_ids(put):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow, from kernelweave[io]")
    put("x.txt", "")
    frame = pd.DataFrame(VALUES, columns=["u", "v"])
    for index, expected in (
        (pd.RangeIndex(3), None),
        (pd.RangeIndex(5, 8), ("5", "6", "7")),
        (pd.RangeIndex(0, 6, 2), ("0", "2", "4")),
        (pd.RangeIndex(2, -1, -1), ("2", "1", "0")),
        (pd.RangeIndex(3, name="id"), ("0", "1", "2")),
        (pd.Index([0, 1, 2], name="id"), ("0", "1", "2")),
    ):
        frame.set_axis(index).to_parquet("index.parquet")
        assert read("index.parquet").ids == expected
        assert read("index.parquet", ids="none").ids is None
    first, second = (frame.set_axis(pd.RangeIndex(start, start + 3)) for start in (1, 2))
    first.to_parquet("p.parquet")
    second.to_parquet("q.parquet")
    with pytest.raises(DataError, match=r"1 id\(s\) of p\.parquet are missing from q\.parquet, such as '1'"):
        align_tables([read("p.parquet"), read("q.parquet")])


def test_an_index_of_parquet_with_gaps_or_several_levels_is_refused(put):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow, from kernelweave[io]")
    put("x.txt", "")
    frame = pd.DataFrame(VALUES, columns=["u", "v"])
    for names in ([1, None, 3], ["a", None, "c"]):
        frame.set_axis(pd.Index(names, name="key")).to_parquet("missing.parquet")
        with pytest.raises(DataError, match=r"^missing\.parquet: the id of row 2 \('key'\) is missing; fill it in"):
            read("missing.parquet")
        frame.assign(key=names)[["key", "u", "v"]].to_parquet("missing.parquet")
        with pytest.raises(DataError, match=r"^missing\.parquet: the id of row 2 \('key'\) is missing"):
            read("missing.parquet")
    levels = pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 3)], names=["site", "plot"])
    frame.set_axis(levels).to_parquet("levels.parquet")
    with pytest.raises(
        DataError, match=r"^levels\.parquet: the index has 2 levels \('site', 'plot'\); name one column"
    ):
        read("levels.parquet")
    assert read("levels.parquet", ids="plot").ids == ("1", "2", "3")
    with pytest.raises(DataError, match=r"the id 'x' occurs more than once, in rows 1 and 2"):
        read("levels.parquet", ids="site")
    frame.set_axis(pd.Index([" a", "a", "b"])).to_parquet("spaces.parquet")
    with pytest.raises(DataError, match=r"the id 'a' occurs more than once, in rows 1 and 2; spaces around ids"):
        read("spaces.parquet")


def test_annotated_data_with_faults_is_told_without_warnings(put):
    anndata = pytest.importorskip("anndata", reason="h5ad needs anndata, from kernelweave[io]")
    mudata = pytest.importorskip("mudata", reason="h5mu needs mudata, from kernelweave[io]")
    h5py = pytest.importorskip("h5py", reason="h5ad needs h5py, from kernelweave[io]")
    put("x.txt", "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twice = anndata.AnnData(VALUES, obs=pd.DataFrame(index=["a", "b", "a"]))
        twice.write_h5ad("twice.h5ad")
        modalities = {"one": anndata.AnnData(VALUES, obs=pd.DataFrame(index=["a", "b", "c"]))}
        modalities["two"] = anndata.AnnData(VALUES, obs=pd.DataFrame(index=["a", "b", "d"]))
        mudata.MuData(modalities).write("apart.h5mu")
    with pytest.raises(DataError, match=r"^twice\.h5ad: the id 'a' occurs more than once, in rows 1 and 3"):
        read_tables("twice.h5ad")
    with pytest.raises(DataError, match=r"1 id\(s\) of apart\.h5mu:one are missing from apart\.h5mu:two, such as 'c'"):
        align_tables(read_tables("apart.h5mu"))
    for name, kind in (("plain.h5ad", "AnnData"), ("plain.h5mu", "MuData")):
        with h5py.File(name, "w") as file:
            file["foo"] = VALUES
        with pytest.raises(DataError, match=rf"^{name}: this is not a {kind} file: there is no "):
            read_tables(name)
        put(name, b"nothing of HDF5")
        with pytest.raises(DataError, match=rf"^{name}: this is not a readable {kind} file"):
            read_tables(name)


def test_tables_of_one_file_are_told_apart(put):
    put("x.txt", "")
    np.savez("both.npz", p=VALUES, q=VALUES[:2])
    with pytest.raises(DataError, match=r"both\.npz:p has 3, both\.npz:q has 2"):
        align_tables(read_tables("both.npz"))
    with pytest.raises(DataError, match=r"both\.npz:p has 3, both\.npz:q has 2"):
        align_tables([*read_tables("one=both.npz:p"), *read_tables("two=both.npz:q")])


@pytest.mark.filterwarnings("ignore::FutureWarning")  # mudata, about defaults of later versions
def test_annotated_data_of_one_and_several_kinds(put):
    anndata = pytest.importorskip("anndata", reason="h5ad needs anndata, from kernelweave[io]")
    mudata = pytest.importorskip("mudata", reason="h5mu needs mudata, from kernelweave[io]")
    put("x.txt", "")
    one = anndata.AnnData(VALUES, obs=pd.DataFrame(index=["a", "b", "c"]), var=pd.DataFrame(index=["u", "v"]))
    one.write_h5ad("cells.h5ad")
    result = read("cells.h5ad")
    assert (result.ids, result.columns) == (("a", "b", "c"), ("u", "v"))
    two = anndata.AnnData(sp.csr_matrix(VALUES), obs=pd.DataFrame(index=["c", "a", "b"]))
    mudata.MuData({"rna": one, "protein": two}).write("both.h5mu")
    rna, protein = align_tables(read_tables("both.h5mu"))
    assert (rna.name, protein.name, protein.ids) == ("rna", "protein", ("a", "b", "c"))
    np.testing.assert_array_equal(protein.values.toarray(), VALUES[[1, 2, 0]])


def test_files_can_be_named_and_strange_names_are_taken_as_they_are(put):
    assert read("left=" + put("data.csv", TEXT)).name == "left"
    assert read(put("a=b.csv", TEXT)).name == "a=b"


# Faults


class Trap:
    def __reduce__(self):
        return print, ("sprung",)


HUGE = ",".join(f"column{i}" for i in range(20_000))
FAULTS = {
    "blank after a quote": ("x.csv", '"id" ,a\n"p",1\n', r"^x\.csv:1: ',' expected after"),
    "short row": ("x.csv", TEXT.replace("-3,4e3", "-3"), r"^x\.csv:3: this row has 2 cell\(s\), the first one has 3"),
    "long row": ("x.csv", TEXT + "d,1,2,3\n", r"^x\.csv:5: this row has 4"),
    "text": ("x.csv", TEXT.replace("4e3", "tall"), r"^x\.csv:3: column 3 \('width'\) holds 'tall', which is not a"),
    "missing": ("x.csv", TEXT.replace("4e3", ""), r"^x\.csv:3: column 3 \('width'\) has no value"),
    "NA": ("x.csv", TEXT.replace("4e3", "NA"), r"^x\.csv:3: column 3 \('width'\) has no value"),
    "NaN": ("x.csv", TEXT.replace("4e3", "nan"), r"^x\.csv:3: column 3 \('width'\) has no value"),
    "infinity": ("x.csv", TEXT.replace("4e3", "inf"), r"^x\.csv:3: column 3 \('width'\) holds 'inf'"),
    "duplicate id": ("x.csv", TEXT + "a,5,6\n", r"^x\.csv:5: the id 'a' was already that of line 2"),
    "empty id": ("x.csv", TEXT + ",5,6\n", r"^x\.csv:5: the id of this row is empty"),
    "empty": ("x.csv", "", r"^x\.csv:1: the file is empty"),
    "blank": ("x.csv", "\n \n\n", r"^x\.csv:1: the file is empty"),
    "header alone": ("x.csv", "id,a,b\n", r"^x\.csv:1: there is a header of 3 column\(s\) and no rows"),
    "huge header": ("x.csv", HUGE + "\n1,2\n", r"^x\.csv:2: this row has 2 cell\(s\), the first one has 20000"),
    "huge cell": ("x.csv", "id," + "x" * 200_000 + "\na,1\n", r"^x\.csv:1: field larger"),
    "zero bytes": ("x.csv", b"id,a\nq,\x00\n", r"^x\.csv:2: this is not a text file"),
    "garbage": ("x.csv", bytes(range(128, 256)), r"^x\.csv:1: byte 0x80 is not valid UTF-8"),
    "open quote": ("x.csv", TEXT + '"d,1,2\n', r"^x\.csv:5: a quoted cell starts here and is never closed; add the"),
    "open quote early": ("x.csv", TEXT.replace("b,", '"b,'), r"^x\.csv:3: a quoted cell starts here"),
    "open quote, others closed": ("x.csv", 'id,a\n"p,1\n"q",2\n', r"^x\.csv:2: a quoted cell starts here"),
    "open quote after one of two lines": ("x.csv", 'id,a\n"p\nq","1\nr,2\n', r"^x\.csv:3: a quoted cell starts here"),
    "open quote, much text": ("x.csv", 'id,a\n"p,1\n' + "q,2\n" * 60_000, r"^x\.csv:2: a quoted cell starts here"),
    "text after a quote": ("x.csv", 'id,a\n"p"x,1\n', r"^x\.csv:2: ',' expected after"),
    "underscore": (
        "x.csv",
        TEXT.replace("4e3", "4_000"),
        r"^x\.csv:3: column 3 \('width'\) holds "
        r"'4_000'.* as in 4000",
    ),
    "underscore first": ("x.csv", "1_0,2\n3,4\n", r"^x\.csv:1: column 1 holds '1_0'; write it without '_', as in 10"),
    "other digits": ("x.csv", TEXT.replace("4e3", "\u0664"), r"^x\.csv:3: column 3 .* in the digits 0 to 9"),
    "other digits, other fault": ("x.csv", "id,a,b\np,\u0664,red\n", r"^x\.csv:2: column 2 .* in the digits 0 to 9"),
    "other minus": ("x.csv", "\u22122,1\n3,4\n", r"^x\.csv:1: column 1 holds '\u22122'; .* with '-' for minus"),
    "thousands": ("x.csv", 'id,a\np,"1,000"\n', r"^x\.csv:2: '1,000' may .*; use decimal=',' or decimal='\.'"),
    "both decimal signs": ("x.tsv", "a\tb\n1,5\t2.5\n", r"^x\.tsv:2: column 1 \('a'\) holds '1,5'; write a point"),
    "percent": ("x.csv", "id,a\np,10%\nq,20\n", r"^x\.csv:2: column 2 .* '10%'; other cells .* have no percent sign"),
    "spaces in thousands": ("x.csv", "id,a\np,1 000\n", r"^x\.csv:2: column 2 .* '1 000'; write nothing between"),
    "ids alone": ("x.csv", "id\na\nb\n", r"^x\.csv:2: there is a column of ids and no column of numbers"),
    "words alone": ("x.csv", "p\nq\nr\n", r"^x\.csv:2: there is no column of numbers: the only one holds 'q'"),
    "empty line among numbers": ("x.csv", "a\n1\n\n2\n\n", r"^x\.csv:3: column 1 \('a'\) has no value"),
    "ids apart by spaces": ("x.csv", 'id,a\n" p",1\np,2\n', r"^x\.csv:3: the id 'p' was already .* spaces around ids"),
    "npy garbage": ("x.npy", b"\x93NUMPY garbage", r"^x\.npy: this is not a readable NumPy array"),
    "npy of objects": ("x.npy", None, r"^x\.npy: this is not a readable NumPy array \(.*allow_pickle"),
    "npz cut short": ("x.npz", None, r"^x\.npz: this is not a readable NumPy archive"),
    "npz garbage": ("x.npz", b"PK\x03\x04 and so on", r"^x\.npz: this is not a readable NumPy archive"),
    "mat garbage": ("x.mat", b"nothing of MATLAB", r"^x\.mat: this is not a readable MATLAB file"),
    "mtx garbage": ("x.mtx", "no matrix", r"^x\.mtx: this is not a readable Matrix Market file"),
    "pickle": ("x.pkl", pickle.dumps(Trap()), r"^x\.pkl: files of type '\.pkl' are not supported"),
    "pickle called csv": ("x.csv", pickle.dumps(Trap()), r"^x\.csv:1: "),
    "pickle called npy": ("x.npy", pickle.dumps(Trap()), r"^x\.npy: this is not a readable NumPy array"),
    "skops": ("x.skops", b"PK\x03\x04", r"^x\.skops: files of type '\.skops' are not supported"),
    "no ending": ("x", TEXT, r"^x: its name has no extension that says what it holds; use one of \.csv,"),
}


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_every_fault_is_told_in_one_line_with_its_place(put, fault, capsys):
    name, content, message = FAULTS[fault]
    if content is None:
        whole = io.BytesIO()
        if name == "x.npy":
            np.save(whole, np.array([Trap()], dtype=object), allow_pickle=True)
            content = whole.getvalue()
        else:
            np.savez(whole, X=VALUES)
            content = whole.getvalue()[:-40]
    put(name, content)
    with pytest.raises(DataError, match=message) as caught:
        read_tables(name)
    assert "\n" not in str(caught.value)
    assert capsys.readouterr().out == ""


def test_a_file_that_is_not_there_is_named(put):
    put("x.csv", TEXT)
    with pytest.raises(DataError, match=r"^none\.csv: there is no such file"):
        read_tables("none.csv")
    with pytest.raises(DataError, match=r"^x\.csv: there is no table called 'key'"):
        read_tables("x.csv:key")


def test_a_folder_is_called_a_folder(put, tmp_path):
    put("x.txt", "")
    for name in ("folder.csv", "folder"):
        (tmp_path / name).mkdir()
        with pytest.raises(DataError, match=rf"^{name}/: this is a folder"):
            read_tables(f"{name}/")


def test_standard_input_that_was_read_before_is_told(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    read("-")
    with pytest.raises(DataError, match=r"^standard input: it is empty; note that it can be used only once"):
        read("-")


@pytest.mark.parametrize("mark", ["", "ab", "\n", '"', "\\t"])
def test_a_delimiter_is_one_character(mark):
    with pytest.raises(
        ParameterError, match=r"^delimiter=.*: give one character, such as delimiter=';' or delimiter='\\t'\.$"
    ):
        TextFormat(mark)


def test_ids_asked_for_must_be_there(put):
    with pytest.raises(DataError, match=r"^x\.csv:1: there is no column 'name' for ids"):
        read(put("x.csv", TEXT), ids="name")
    with pytest.raises(DataError, match="number from 1 to 3"):
        read("x.csv", ids="4")
    with pytest.raises(DataError, match="a column of ids and no column of numbers"):
        read(put("y.csv", "a\nb\n"), ids="1")


def test_arrays_that_are_no_tables_are_refused(put):
    put("x.txt", "")
    for name, array, message in (
        ("flat.npy", np.arange(3.0), "shape"),
        ("text.npy", np.array([["a", "b"]]), "not numbers"),
        ("void.npy", np.empty((0, 3)), "empty"),
        ("hole.npy", np.array([[1.0, 2.0], [np.nan, 1.0]]), "missing or infinite values in row 2"),
    ):
        np.save(name, array)
        with pytest.raises(DataError, match=message):
            read_tables(name)
    np.savez("ids.npz", X=VALUES, ids=np.array(["a", "b"]))
    with pytest.raises(DataError, match=r"2 ids for the 3 rows of 'X'"):
        read_tables("ids.npz")
    np.savez("none.npz", y=np.arange(3))
    with pytest.raises(DataError, match="not a table of numbers"):
        read_tables("none.npz")
    np.savez("names.npz", X=VALUES, ids=np.array([1.5, 2.5, 3.5]))
    with pytest.raises(
        DataError,
        match=r"^names\.npz: the array 'ids' of shape \(3,\) and "
        r"type float64 does not hold ids",
    ):
        read_tables("names.npz")


def test_arrays_that_are_no_tables_are_told_unless_a_table_is_named(put):
    put("x.txt", "")
    np.savez("some.npz", X=VALUES, y=np.arange(3), column=VALUES[:, :1])
    with pytest.raises(
        DataError, match=r"^some\.npz: the array 'y' of shape \(3,\) and type int64 .* as in some\.npz:X\."
    ):
        read_tables("some.npz")
    np.testing.assert_array_equal(read("some.npz:X").values, VALUES)
    np.testing.assert_array_equal(read("some.npz:column").values, VALUES[:, :1])
    savemat("some.mat", {"X": VALUES, "y": np.arange(3)})
    with pytest.raises(DataError, match=r"^some\.mat: the array 'y' of shape \(1, 3\) .* as in some\.mat:X\."):
        read_tables("some.mat")
    np.testing.assert_array_equal(read("some.mat:X").values, VALUES)


def test_the_table_that_is_named_is_read_whatever_else_there_is(put):
    put("x.txt", "")
    words = np.array(["a", "b", "c"], dtype=object)
    np.savez("some.npz", X=VALUES, y=words)
    np.testing.assert_array_equal(read("some.npz:X").values, VALUES)
    for place in ("some.npz", "some.npz:y"):
        with pytest.raises(DataError, match=r"^some\.npz: the array 'y' is of type object, .* as in some\.npz:NAME"):
            read_tables(place)
    np.savez("ids.npz", X=VALUES, ids=words)
    for place in ("ids.npz", "ids.npz:X"):
        with pytest.raises(DataError, match=r"'ids' is of type object, which cannot be read; save ids\.astype\(str\)"):
            read_tables(place)


def test_a_table_that_is_not_there_is_told_with_those_that_are(put):
    put("x.txt", "")
    np.savez("some.npz", X=VALUES, y=np.arange(3))
    savemat("some.mat", {"X": VALUES, "y": np.arange(3)})
    for name in ("some.npz", "some.mat"):
        with pytest.raises(DataError, match=rf"^{name}: there is no table called 'Z' in it; it has 'X', 'y'\."):
            read_tables(f"{name}:Z")
    put("a.h5ad", "")
    with pytest.raises(DataError, match=r"^a\.h5ad: there is no table called 'X' in it; .* give a\.h5ad alone"):
        read_tables("a.h5ad:X")


def test_a_vector_beside_cells_of_views_is_not_recommended_as_a_table(put):
    put("x.txt", "")
    views = np.empty((1, 2), dtype=object)
    views[0, 0], views[0, 1] = VALUES, 2 * VALUES
    savemat("cell.mat", {"views": views, "y": np.arange(3)})
    with pytest.raises(
        DataError, match=r"^cell\.mat: the array 'views' .* the cells of 'views' as a variable"
    ) as caught:
        read_tables("cell.mat")
    assert "cell.mat:" not in str(caught.value)[9:]


def test_ids_of_matlab_files_are_text_numbers_or_cells(put):
    put("x.txt", "")
    cells = np.array(["a", "bb", "c"], dtype=object)
    for ids, expected in (
        (["a", "bb", "c"], ("a", "bb", "c")),
        ([7, 8, 9], ("7", "8", "9")),
        (cells, ("a", "bb", "c")),
    ):
        savemat("some.mat", {"X": VALUES, "ids": ids})
        assert read("some.mat").ids == expected


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, sp.coo_array, sp.dia_array])
def test_sparse_tables_saved_by_scipy_are_read(put, form):
    put("x.txt", "")
    sp.save_npz("sparse.npz", form(VALUES))
    result = read("sparse.npz")
    assert result.name == "sparse"
    assert sp.issparse(result.values)
    np.testing.assert_array_equal(result.values.toarray(), VALUES)


def test_sparse_tables_with_indices_outside_are_refused(put):
    put("x.txt", "")
    arrays = {"format": np.array(b"csr"), "shape": np.array([2, 2]), "data": np.ones(2)}
    np.savez("bad.npz", **arrays, indices=np.array([0, 99]), indptr=np.array([0, 1, 2]))
    with pytest.raises(DataError, match=r"^bad\.npz: this is not a readable NumPy archive"):
        read_tables("bad.npz")


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary(max_size=200), suffix=st.sampled_from(["csv", "tsv", "npy", "npz", "mat", "mtx"]))
def test_whatever_the_bytes_there_is_a_table_or_a_clear_error(tmp_path, content, suffix):
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(content)
    try:
        result, message = read_tables(str(path)), None
    except DataError as error:
        result, message = [], str(error)
    assert message is None or str(path) in message
    for table in result:
        assert np.isfinite(table.values.data if sp.issparse(table.values) else table.values).all()


# Several tables


def table(name, ids, values=None):
    values = np.arange(float(len(ids) if ids else 3))[:, None] if values is None else values
    return Table(name, values, None if ids is None else tuple(ids), None, f"{name}.csv")


def test_rows_are_matched_by_id_in_the_order_of_the_first_file():
    first, second = align_tables([table("p", "abc"), table("q", "cab")])
    assert first.ids == second.ids == ("a", "b", "c")
    assert second.values.ravel().tolist() == [1.0, 2.0, 0.0]


def test_ids_of_one_file_alone_are_reported_with_examples():
    with pytest.raises(
        DataError,
        match=r"2 id\(s\) of p\.csv are missing from q\.csv, such as 'c', "
        r"'d'.*rows='common'",
    ):
        align_tables([table("p", "abcd"), table("q", "ab")])
    with pytest.raises(DataError, match=r"1 id\(s\) of q\.csv are missing from p\.csv, such as 'z'"):
        align_tables([table("p", "ab"), table("q", "abz")])


def test_rows_in_common_are_kept_where_that_is_asked():
    first, second = align_tables([table("p", "abcd"), table("q", "dxb")], rows="common")
    assert first.ids == second.ids == ("b", "d")
    assert first.values.ravel().tolist() == [1.0, 3.0]
    assert second.values.ravel().tolist() == [2.0, 0.0]
    with pytest.raises(DataError, match="No id occurs in all files"):
        align_tables([table("p", "ab"), table("q", "xy")], rows="common")


def test_files_without_ids_must_be_of_one_length_and_all_without():
    same = [table("p", None), table("q", None)]
    assert align_tables(same) == same
    with pytest.raises(DataError, match=r"differ in the number of rows: p\.csv has 3, q\.csv has 2"):
        align_tables([table("p", None), table("q", None, np.ones((2, 1)))])
    with pytest.raises(DataError, match=r"p\.csv has ids and q\.csv has none"):
        align_tables([table("p", "abc"), table("q", None)])


def test_files_that_cannot_have_ids_are_told_what_can():
    for source, remedy in (
        ("q.npy", r"Save q\.npy as CSV with a column of ids, or as NPZ with an array 'ids'"),
        ("q.npz", r"Add an array 'ids' to q\.npz"),
        ("q.csv", r"Give q\.csv a column of ids"),
    ):
        with pytest.raises(DataError, match=rf"{source} has none, .* needs ids in all files\. {remedy}") as caught:
            align_tables([table("p", "abc"), Table("q", VALUES, None, None, source)])
        assert "none)" not in str(caught.value)


def test_two_views_of_one_name_are_refused():
    with pytest.raises(DataError, match=r"would both be view 'p'; name them"):
        align_tables([table("p", "ab"), table("p", "ab")])
