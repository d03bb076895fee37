"""Files that look right and are not: labels, graphs and matrices the command line refuses in one line."""

import io
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave import ParameterError
from kernelweave.cli import catalogue, main
from kernelweave.cli.fitting import scaled
from kernelweave.cli.input_data import Data, read_data, read_truth
from kernelweave.inputs import TextFormat
from tests.estimators.discovery import blobs

X, Y = blobs(12)
NAMES = [f"s{i:02}" for i in range(len(X))]
CLASSES = [f"class {c}" for c in Y]
EDGES = [(NAMES[i], NAMES[i - 1]) for i in range(len(X))]


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Return a function that writes a file into a folder with a table, a kernel matrix and distances."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(X, index=pd.Index(NAMES, name="id"), columns=list("abcd")).to_csv("table.csv")
    for name, matrix in (("similar", rbf_kernel(X, gamma=0.01)), ("far", cdist(X, X))):
        pd.DataFrame(matrix, index=NAMES, columns=NAMES).to_csv(f"{name}.csv", index_label="id")

    def write(name, content):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    return write


@pytest.fixture
def refused(capsys, tmp_path):
    """Return a function that runs ``cluster``, sees that it ends well, and gives what it says."""

    def run(*arguments, command="cluster"):
        before = sorted(tmp_path.rglob("*"))
        code = main([command, *map(str, arguments), "-k", "3"])
        out, err = capsys.readouterr()
        assert (code, out) == (2, "")
        assert err.count("\n") == 1, err
        assert sorted(tmp_path.rglob("*")) == before
        return err.removeprefix(f"kernelweave {command}: ").rstrip("\n")

    return run


def lines(*rows, mark=","):
    return "".join(mark.join(row) + "\n" for row in rows)


PAIRS = list(zip(NAMES, CLASSES, strict=True))


# Labels


def truth(place, **text):
    data = Data("table", matrix=X, ids=tuple(NAMES))
    return read_truth(place, data, TextFormat(**text)).labels.tolist()


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("y.csv", lines(("id", "label"), *PAIRS), {}),
        ("y.csv", lines(*PAIRS), {}),
        ("y.csv", lines(("cell", "what"), *PAIRS[::-1]), {}),
        ("y.tsv", lines(("id", "label"), *PAIRS, mark="\t"), {}),
        ("y.txt", lines(("id", "label"), *PAIRS, mark="\t"), {}),
        ("y.csv", lines(("id", "label"), *PAIRS, mark=";"), {"delimiter": ";"}),
        ("y.csv", lines(*((f'" {name}"', f" {label} ") for name, label in PAIRS)), {}),
        ("y.csv", lines(*zip(CLASSES, strict=True)), {}),
        ("y.csv", lines(("patient_id", "label"), *PAIRS), {}),
        ("y.csv", lines(("label",), *zip(CLASSES, strict=True)) + "\n\n", {}),
        ("y.csv", lines(("grower",), *zip(CLASSES, strict=True)), {}),
        ("y.csv", lines(("nothing",), *zip(CLASSES, strict=True)), {"header": True}),
        ("y.csv", lines(*PAIRS, ("other", "class 9")), {}),
    ],
)
def test_labels_are_read_however_they_are_written(put, name, content, text):
    assert truth(put(name, content), **text) == CLASSES


def test_a_first_label_that_occurs_again_is_no_header(put):
    answers = ["y", "n"] * 18
    assert truth(put("y.csv", lines(*zip(answers, strict=True)))) == answers
    numbers = [str(c) for c in Y]
    assert truth(put("y.csv", lines(("kind",), *zip(numbers, strict=True)))) == numbers


def test_ids_with_quoted_line_breaks_and_unusual_separators_are_kept_whole(put):
    names = ("a\nb", "c\u2028d", "e")
    data = Data("table", matrix=X[:3], ids=names)
    put("y.csv", 'id,label\n"a\nb",1\nc\u2028d,2\ne,1\n')
    assert read_truth("y.csv", data, TextFormat()).labels.tolist() == ["1", "2", "1"]


def test_labels_come_from_standard_input_once(put, refused, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines(*PAIRS).encode())))
    assert truth("-") == CLASSES
    assert refused("-", "-") == "Standard input (-) can be used only once; write the other table to a file."
    with open("table.csv", "rb") as table:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(table))
        assert refused("-", "--labels", "-").startswith("--labels -: standard input (-) can be used only once")


LABELS = {
    "id twice": (lines(*PAIRS, ("s00", "class 0")), r"y\.csv:37: the id 's00' was already that of line 1"),
    "id twice by spaces": (
        lines(*PAIRS, ('"s00 "', "class 1")),
        r"y\.csv:37: .* line 1; spaces around ids do not count",
    ),
    "empty labels": (lines(*((name, " ") for name in NAMES)), r"y\.csv: no sample has a label; add some"),
    "NA": (lines(*((name, "N/A") for name in NAMES)), r"y\.csv: no sample has a label; add some"),
    "blanks": (
        lines(*((name, str(c)) for name, c in zip(NAMES, Y, strict=True)), mark=" "),
        r"y\.csv:1: there is no ',' .* a blank seems to separate id and label in all of them; "
        r"use --delimiter ' '",
    ),
    "too few": (
        lines(("label",), *zip(CLASSES[:30], strict=True)),
        r"y\.csv: there are 30 labels below the header 'label' ",
    ),
    "too many": (
        lines(*zip(CLASSES + CLASSES[:1], strict=True)),
        r"y\.csv: there are 37 labels for 36 samples; write one",
    ),
    "other ids": (
        lines(*((f"t{i}", "x") for i in range(36))),
        r"y\.csv: none of its ids belongs to a sample: it begins with 't0', the samples with 's00'; write ids as",
    ),
    "three cells": (lines(*PAIRS, ("a", "b", "c")), r"y\.csv:37: lines of true labels are 'label' or 'id,label'"),
    "binary": (b"a\x00b", r"y\.csv:1: this is not a text file"),
}


@pytest.mark.parametrize("fault", sorted(LABELS))
def test_faults_of_labels_are_told_with_their_line(put, refused, fault):
    content, message = LABELS[fault]
    assert re.match(message, refused("table.csv", "--labels", put("y.csv", content)))


def test_labels_for_samples_without_ids_say_how_these_are_called(put, refused):
    np.save("plain.npy", X)
    assert "(without ids they are called 1, 2, 3 ...)" in refused("plain.npy", "--labels", put("y.csv", lines(*PAIRS)))


# Graphs

GRAPHS = {
    "commas in names": (
        lines(*((f"{u},x", f"{v},x") for u, v in EDGES), mark=" "),
        (),
        r"g\.csv:1: there is ',' in this line; name the separator with --delimiter ','",
    ),
    "commas and blanks": ("a,x b,y\nc d\n", (), r"g\.csv:1: there is ',' in this line"),
    "no edge": (
        "a b\nc\n",
        (),
        r"g\.csv:2: this line does not hold an edge of 2 entries: 'c'\. Say .* with --delimiter,",
    ),
    "weight": ("a b x\n", (), r"g\.csv:1: the weight is 'x'; .* Remove the third entry from all lines"),
    "header": (
        lines(("source", "target"), *EDGES, ("source", "s00")),
        ("--delimiter", ","),
        r"g\.csv:1: this line may be a header or",
    ),
    "directed": ("a b 1\nb a 2\n", (), r"g\.csv:2: the edge b - a has the weight 2, and line 1 gave it 1"),
    "Matrix Market": ("%%MatrixMarket matrix\n", (), r"g\.csv:1: this is a Matrix Market file.*--kernel-matrix"),
    "nothing": ("# nothing\n", (), r"g\.csv: there is no edge in it"),
}


@pytest.mark.parametrize("fault", sorted(GRAPHS))
def test_faults_of_graphs_are_told_with_their_line_and_options(put, refused, fault):
    content, options, message = GRAPHS[fault]
    result = refused("--graph", put("g.csv", content), *options)
    assert re.match(message, result), result
    assert "weighted" not in result


def test_the_delimiter_holds_for_graphs(put):
    for content, mark in (
        (lines(*EDGES), ","),
        (lines(("from", "to", "weight"), *((u, v, "2") for u, v in EDGES), mark=";"), ";"),
        (lines(*((f"{u},x", f"{v},x") for u, v in EDGES), mark=" "), " "),
    ):
        data = read_data(None, None, Path(put("g.csv", content)), TextFormat(mark), "same")
        assert data.n_samples == len(X)


def test_header_and_no_header_decide_for_graphs(put, refused):
    def nodes(content, header, mark=","):
        return read_data(None, None, Path(put("g.csv", content)), TextFormat(mark, header), "same").ids

    assert nodes('"from","to"\n"a","b"\n', True) == ("a", "b")
    assert nodes("from,to\na,b\n", False) == ("from", "to", "a", "b")
    assert nodes("# net\nx,y,z,more\na,b,2\n", True) == ("a", "b")
    assert nodes("c,a\na,b\n", None) == ("c", "a", "b")
    assert nodes("from,to\na,b\n", None) == ("a", "b")
    assert nodes("from, to\na, b\n", None, None) == ("a", "b")
    result = refused("--graph", put("g.csv", "from to\na from\n"))
    assert result.endswith("'from to'. Use --header or --no-header.")


def test_graphs_are_read_from_files(put, refused, tmp_path):
    (tmp_path / "folder.txt").mkdir()
    assert refused("--graph", "-").startswith("--graph -: graphs are read from files")
    assert refused("--graph", "folder.txt") == "folder.txt: this is a folder; name a file in it."
    assert refused("--graph", put("g.graph", "99 1\n2\n1\n")).startswith("g.graph:1: the first line announces 99 nodes")


# Similarity matrices


def test_a_matrix_that_is_not_symmetric_is_told_by_file_and_ids(put, refused):
    K = rbf_kernel(X, gamma=0.01)
    K[3, 5] += 1e-9
    pd.DataFrame(K, index=NAMES, columns=NAMES).to_csv("skew.csv", index_label="id")
    np.save("skew.npy", K)
    expected = r"skew\.csv: the matrix is not symmetric: row '(s03|s05)', column '(s05|s03)' holds 0\.\d+, and .*"
    assert re.match(
        expected + r"a difference of 1e-09 where 1e-10 is allowed; average", refused("--kernel-matrix", "skew.csv")
    )
    assert re.match(r"skew\.npy: .* row [46], column [46] holds", refused("--kernel-matrix", "skew.npy"))


@pytest.mark.parametrize("half", ["upper", "lower"])
def test_a_triangle_is_to_be_mirrored(put, refused, half):
    K = (np.triu if half == "upper" else np.tril)(rbf_kernel(X, gamma=0.01))
    np.save("half.npy", K)
    scipy.io.mmwrite("half.mtx", sp.coo_array(K))
    for name in ("half.npy", "half.mtx"):
        result = refused("--kernel-matrix", name)
        assert f"only the {half} triangle is filled in; mirror it" in result
        assert "average" not in result


@pytest.mark.parametrize("columns", [[f"V{i}" for i in range(1, 37)], range(36), range(1, 37)])
def test_columns_that_are_only_counted_have_no_names(put, columns):
    pd.DataFrame(rbf_kernel(X, gamma=0.01), index=NAMES, columns=columns).to_csv("k.csv")
    assert read_data(None, "k.csv", None, TextFormat(), "same").ids == tuple(NAMES)


def test_tables_that_are_precomputed_are_not_scaled(put):
    data = read_data(["far.csv"], None, None, TextFormat(), "same")
    method = next(each for each in catalogue.METHODS if each.name == "kmedoids")
    for scale in ("auto", "none"):
        X, scaler = scaled(data, scale, method, {"metric": "precomputed"})
        assert scaler is None
        np.testing.assert_array_equal(X, data.samples)
    with pytest.raises(ParameterError, match=r"^--scale standard does not go with metric 'precomputed'"):
        scaled(data, "standard", method, {"metric": "precomputed"})
    assert scaled(data, "auto", method, {"metric": "euclidean"})[1] is not None


@pytest.mark.parametrize(
    ("options", "start"),
    [
        (("--kernel", "rbf"), "--kernel 'rbf'"),
        (("--set", "kernel=rbf"), "--kernel 'rbf'"),
        (("--kernel-param", "sigma=2"), "--kernel-param"),
        (("--method", "convex-mixture", "--set", "divergence=sqeuclidean"), "--set divergence"),
    ],
)
def test_a_kernel_besides_the_matrix_is_refused(put, refused, options, start):
    result = refused("--kernel-matrix", "similar.csv", *options)
    assert result.startswith(start)
    assert "cannot be combined with --kernel-matrix" in result


def test_distances_are_no_similarities(put, refused, capsys):
    assert refused("--kernel-matrix", "far.csv").startswith("far.csv: this looks like distances, not similarities")
    twins = cdist(X[[0, 0, 1, 2]], X[[0, 0, 1, 2]])
    np.save("twins.npy", twins)
    assert "looks like distances" in refused("--kernel-matrix", "twins.npy")
    options = ["--method", "kmedoids", "--set", "metric=precomputed", "--scale", "none"]
    assert main(["cluster", "far.csv", "-k", "2:4", *options]) == 0
    assert "clusters    3" in capsys.readouterr().err


def test_the_links_of_a_graph_are_similarities(put, capsys):
    A = np.kron(np.eye(3), np.ones((12, 12)) - np.eye(12))
    A[0, 12] = A[12, 0] = A[12, 24] = A[24, 12] = 0.1
    np.save("links.npy", A)
    assert main(["cluster", "--kernel-matrix", "links.npy", "-k", "3", "--method", "ng-spectral"]) == 0


def test_names_of_columns_that_are_ids_occur_once(put, refused):
    put("k.csv", "a,a,b\n1,.5,.5\n.5,1,.5\n.5,.5,1\n")
    assert refused("--kernel-matrix", "k.csv") == "k.csv: two columns are called 'a'; names of samples must be unique."


# Options


@pytest.mark.parametrize("mark", ["ab", "", "\\t"])
@pytest.mark.parametrize("command", ["cluster", "compare"])
def test_a_delimiter_of_no_or_several_characters_is_refused(put, refused, mark, command):
    assert refused("table.csv", "--delimiter", mark, command=command).startswith(
        f"--delimiter {mark!r}: give one character"
    )


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_table_whose_rows_are_all_the_same_is_refused(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    same, other = np.tile([1.0, 0.0, 2.0], (12, 1)), np.arange(24.0).reshape(12, 2)
    for name, X in (("same", same), ("other", other)):
        if kind == "dense":
            np.save(f"{name}.npy", X)
        else:
            scipy.io.mmwrite(f"{name}.mtx", sp.coo_array(X))
    end = ".npy" if kind == "dense" else ".mtx"
    for files in ([f"same{end}"], [f"other{end}", f"same{end}"]):
        assert main(["cluster", *files, "-k", "2"]) == 2
        assert capsys.readouterr().err.startswith(f"kernelweave cluster: same{end}: all 12 rows are the same")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"other{end}", f"same{end}"]
