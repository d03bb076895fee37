"""Commands as people type them, on files as they come: each works and says what it assumed, or says what to do."""

import gzip
import io
import json
import re
import shlex
import shutil
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from kernelweave.cli import main

N = 24
GROUP = np.repeat([0, 1], N // 2)
IDS = [f"s{i:02}" for i in range(N)]
NAMES = ("a", "b", "c")
X = (np.random.default_rng(0).normal(size=(N, 3)) + 6.0 * GROUP[:, None]).round(2)
TABLE = pd.DataFrame(X, IDS, NAMES).rename_axis("id")
PLAIN = TABLE.to_csv()
LINES = PLAIN.splitlines()


def with_cell(cell, line=4, column=1):
    """Return the table with another cell."""
    rows = [row.split(",") for row in LINES]
    rows[line][column] = cell
    return "\n".join(map(",".join, rows)) + "\n"


def graphml(edges, head="", key="", nodes=range(10), kind="undirected"):
    named = "".join(f'<node id="n{i}"/>' for i in nodes)
    inside = "".join(f'<edge source="n{i}" target="n{j}">{data}</edge>' for i, j, data in edges)
    namespace = 'xmlns="http://graphml.graphdrawing.org/xmlns"'
    graph = f'<graph edgedefault="{kind}">{named}{inside}</graph>'
    return f'<?xml version="1.0"?>{head}<graphml {namespace}>{key}{graph}</graphml>'


#: Two groups of five nodes with all edges inside, and one between them.
PAIRS = [(i, j) for c in (0, 5) for i in range(c, c + 5) for j in range(i + 1, c + 5)] + [(0, 5)]
WEIGHT = '<key id="d0" for="edge" attr.name="weight" attr.type="double"/>'
WEIGHTED = [(i, j, '<data key="d0">2.5</data>') for i, j in PAIRS]
BOMB = '<!DOCTYPE g [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'

TEXTS = {
    # tables as programs write them
    "plain.csv": PLAIN,
    "semicolon.csv": TABLE.to_csv(sep=";", decimal=","),
    "semicolon_points.csv": TABLE.to_csv(sep=";"),
    "no_header_comma.csv": TABLE.to_csv(sep=";", decimal=",", header=False),
    "bar.csv": TABLE.to_csv(sep="|"),
    "tab.csv": TABLE.to_csv(sep="\t"),
    "comma.txt": PLAIN,
    "blank.txt": TABLE.to_csv(sep=" "),
    "aligned.txt": "\n".join("".join(f"{value:10.3f}" for value in row) for row in X) + "\n",
    "r_table.txt": "\n".join(["a b c", *(line.replace(",", " ") for line in LINES[1:])]) + "\n",
    "r_quoted.csv": TABLE.to_csv(quoting=2),
    "sheets_export.csv": TABLE.to_csv(decimal=",", quoting=1),
    "crlf.csv": PLAIN.replace("\n", "\r\n"),
    "bom.csv": b"\xef\xbb\xbf" + PLAIN.encode(),
    "utf16.csv": PLAIN.encode("utf-16"),
    "latin.csv": PLAIN.replace("s01", "M\u00fcller").encode("latin-1"),
    "trailing.csv": "\n".join(line + "," for line in LINES) + "\n",
    "counted.csv": TABLE.to_csv(index=False, header=["0", "1", "2"]),
    "notebook.csv": TABLE.reset_index(drop=True).to_csv(),
    "quoted_newline.csv": PLAIN.replace("s05", '"s\n05"'),
    "numbers.csv": "\n".join(",".join(map(str, row)) for row in X) + "\n",
    "one_column.csv": "x\n" + "\n".join(map(str, X[:, 0])) + "\n",
    "constant.csv": TABLE.assign(one=1.0).to_csv(),
    "comments.csv": TABLE.assign(note=[f"remark {i}" for i in range(N)]).to_csv(),
    "thousands.csv": TABLE.assign(d=[f"{1000 + 500 * i:,}" for i in range(N)]).drop(columns=list(NAMES)).to_csv(),
    "genes.csv": TABLE.T.rename_axis("gene").to_csv(),
    "ensembl.tsv": TABLE.T.set_axis(["ENSG01", "ENSG02", "ENSG03"]).rename_axis("").to_csv(sep="\t"),
    "times.csv": TABLE.set_axis(["0.5", "1.0", "1.5"], axis=1).to_csv(),
    "packed.csv.gz": gzip.compress(PLAIN.encode()),
    # two views
    "first.csv": TABLE.drop(["s03", "s04"]).to_csv(),
    "second.csv": TABLE.drop("s10").iloc[::-1].to_csv(),
    "turned.csv": TABLE.iloc[::-1].to_csv(),
    "elsewhere.csv": TABLE.rename(lambda name: f"other_{name}").to_csv(),
    # cells
    **{
        f"{name}.csv": with_cell(cell)
        for name, cell in {
            "na": "NA",
            "nan": "NaN",
            "question": "?",
            "dash": "-",
            "gap": "",
            "infinite": "inf",
            "huge": "1e200",
            "word": "high",
            "percent": "12%",
            "error": "#DIV/0!",
            "two_points": "1.2.3",
            "spaced": "1 234",
        }.items()
    },
    "percentages.csv": TABLE.assign(
        a=[f"{value} %" for value in X[:, 0]], b=[f"{value}%" for value in X[:, 1]]
    ).to_csv(),
    "percentages_comma.csv": TABLE.map(lambda value: f"{value}\u00a0%").to_csv(sep=";").replace(".", ","),
    "kilos.csv": TABLE.assign(a=[f"{value} kg" for value in X[:, 0]]).to_csv(),
    "euros.csv": TABLE.assign(a=[f"\u20ac{value}" for value in np.arange(N)]).to_csv(),
    "doses.csv": TABLE.assign(a=np.where(GROUP, "10 mg", "20 mg")).to_csv(),
    "codes.csv": TABLE.assign(a=[f"{i}A" for i in range(N)]).to_csv(),
    "german_days.csv": TABLE.assign(day=[f"{i + 1:02}.01.2021" for i in range(N)]).to_csv(),
    "both_signs.csv": "id;a;b\n" + "".join(f"{name};1,{i}5;2.5\n" for i, name in enumerate(IDS)),
    "titled.csv": "Hips of dogs,,,\n" + PLAIN,
    "remarks.csv": "# by machine 7\n" + PLAIN,
    "total.csv": PLAIN + "Total,1,2,3\n",
    "same_names.csv": TABLE.set_axis(["a", "b", "a"], axis=1).to_csv(),
    "similar.csv": pd.DataFrame(np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2)), IDS, IDS)
    .rename_axis("id")
    .to_csv(),
    "no_ending": PLAIN,
    # bad tables
    "empty.csv": "",
    "blank_lines.csv": "\n\n\n",
    "header_only.csv": "id,a,b\n",
    "short_row.csv": PLAIN.replace(LINES[3], LINES[3].rpartition(",")[0]),
    "twice.csv": PLAIN + LINES[3] + "\n",
    "no_id.csv": PLAIN.replace("s05", ""),
    "one_row.csv": "id,a\ns1,1\n",
    "same.csv": "id,a,b\n" + "".join(f"{name},1,2\n" for name in IDS),
    "words.csv": "hello\nworld\n",
    "open_quote.csv": PLAIN.replace("s05", '"s05'),
    "garbage.csv": bytes(range(256)) * 4,
    "noise.csv": bytes([200, 1, 129, 7, 10, 255, 3]) * 9,
    "cut.csv.gz": gzip.compress(PLAIN.encode())[:70],
    "not_packed.csv.gz": PLAIN,
    "table.pdf": "%PDF",
    "cut.xlsx": b"PK\x03\x04",
    # matrices and graphs
    "skew.csv": "a,b\n1,2\n3,4\n",
    "commas.csv": "from;to;weight\n" + "".join(f"n{i};n{j};1,5\n" for i, j in PAIRS),
    "edges.csv": "source,target\n" + "".join(f"n{i},n{j}\n" for i, j in PAIRS),
    "weighted.tsv": "from\tto\tweight\n" + "".join(f"n{i}\tn{j}\t2\n" for i, j in PAIRS),
    "semicolons.txt": "".join(f"n{i};n{j}\n" for i, j in PAIRS),
    "loops.txt": "".join(f"n{i} n{j}\n" for i, j in [*PAIRS, (0, 0)]),
    "net.graphml": graphml(WEIGHTED, key=WEIGHT, nodes=range(11)),
    "net.graphml.gz": gzip.compress(graphml(WEIGHTED, key=WEIGHT).encode()),
    "directed.graphml": graphml([(i, j, "") for i, j in PAIRS], kind="directed"),
    "unweighted.graphml": graphml([(i, j, "") for i, j in PAIRS], key=WEIGHT.replace('"weight"', '"strength"')),
    "net.mtx": "%%MatrixMarket matrix coordinate pattern symmetric\n10 10 21\n"
    + "".join(f"{j + 1} {i + 1}\n" for i, j in PAIRS),
    "one_way.mtx": "%%MatrixMarket matrix coordinate real general\n10 10 21\n"
    + "".join(f"{i + 1} {j + 1} 2\n" for i, j in PAIRS),
    "two_ways.mtx": "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n2 1 3\n",
    "oblong.mtx": "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 2 1\n",
    "negative.mtx": "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 -1\n",
    "negative.txt": "a b -1\nb c 2\n",
    "lonely.graph": "4 1\n2\n1\n\n\n",
    "bomb.graphml": graphml([(0, 1, "")], head=BOMB),
    "cut.graphml": graphml([(0, 1, "")])[:-30],
    "nowhere.graphml": graphml([(0, 99, "")]),
    "heavy.graphml": graphml([(0, 1, '<data key="d0">much</data>')], key=WEIGHT),
    "other.graphml": "<svg/>",
    # labels
    "truth.csv": "id,label\n" + "".join(f"{name},g{g}\n" for name, g in zip(IDS, GROUP, strict=True)),
    "partial.csv": "id;label\n"
    + "".join(f"{name};{'' if i % 4 == 0 else f'g{g}'}\n" for i, (name, g) in enumerate(zip(IDS, GROUP, strict=True))),
    "some.csv": "id,label\n" + "".join(f"{name},g{g}\n" for name, g in list(zip(IDS, GROUP, strict=True))[6:]),
    "others.csv": "id,label\n" + "".join(f"z{i},g\n" for i in range(N)),
    "unknown.csv": "id,label\n" + "".join(f"{name},\n" for name in IDS),
    "wide.csv": "id,label,sex\n" + "".join(f"{name},g,m\n" for name in IDS),
    "too_few.csv": "label\ng0\ng1\n",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder with all files."""
    folder = tmp_path_factory.mktemp("everyday")
    for name, text in TEXTS.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    np.savez(folder / "views.npz", one=X, two=X[::-1].copy())
    np.save(folder / "wide.npy", X.T)
    with pd.ExcelWriter(folder / "book.xlsx") as book:
        TABLE.to_excel(book, sheet_name="first")
        TABLE.assign(day=pd.date_range("2021-01-01", periods=N)).to_excel(book, sheet_name="second")
    TABLE.to_excel(folder / "single.xlsx")
    (folder / "folder").mkdir()
    (folder / "full").mkdir()
    (folder / "full" / "labels.csv").write_text("id,label\n")
    return folder


@pytest.fixture
def here(home, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setenv("COLUMNS", "200")
    return home


def run(capsys, command):
    code = main(shlex.split(command))
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


# Everyday files and commands: what is typed after 'cluster', and what is said of it.

KMEANS = "-k 2 --method kmeans"
TABLES = {
    "plain.csv": (),
    "semicolon.csv": (
        "separated by semicolons; if not, use --delimiter ','",
        "decimal comma; if not, use --decimal '.'",
    ),
    "semicolon_points.csv": ("separated by semicolons",),
    "no_header_comma.csv": ("separated by semicolons", "decimal comma"),
    "bar.csv": ("separated by bars",),
    "tab.csv": ("separated by tabs",),
    "comma.txt": ("separated by commas; if not, use --delimiter tab",),
    "blank.txt": ("separated by blanks",),
    "aligned.txt": ("separated by blanks",),
    "r_table.txt": ("lacks a name for the first column, which is read as ids; if not, use --ids none",),
    "r_quoted.csv": (),
    "sheets_export.csv": ("decimal comma",),
    "crlf.csv": (),
    "bom.csv": (),
    "utf16.csv": ("the text is in UTF-16",),
    "latin.csv": ("byte 0xfc in line 3 is not valid UTF-8, so the text is read as cp1252",),
    "trailing.csv": ("all lines end in a delimiter",),
    "counted.csv": ("the first line numbers the columns and is not a sample; if it is one, use --no-header",),
    "notebook.csv": (),
    "quoted_newline.csv": (),
    "numbers.csv": (),
    "one_column.csv": (),
    "times.csv": (),
    "constant.csv": ("one set aside (the same in all rows)",),
    "comments.csv": ("note set aside (a different text in every row",),
    "packed.csv.gz": (),
    "doses.csv": ("a as categories (10 mg, 20 mg)",),
    "codes.csv": ("a set aside (a different text in every row",),
    "german_days.csv": ("day set aside (a different text in every row",),
    "same_names.csv": ("several columns are called 'a', and all of them count",),
    "similar.csv": ("the columns have the names of the rows", "if they are similarities, use --kernel-matrix"),
    "percentages.csv": (f"columns a, b: percentages are read as numbers ('{X[0, 0]} %' as {X[0, 0]})",),
    "percentages_comma.csv": ("columns a, b, c: percentages are read as numbers", "numbers have a decimal comma"),
    "single.xlsx": (),
    "book.xlsx": ("there are 2 sheets, of which the first is read; name another with book.xlsx:second",),
    "book.xlsx:second": ("day set aside (a date",),
    "gap.csv --missing median --method graph-fusion": (),
    "na.csv --drop a": (),
    "infinite.csv --columns b,c": (),
    "genes.csv --transpose": (),
    "ensembl.tsv --transpose": (),
    "wide.npy --transpose": (),
    "semicolon.csv --delimiter semicolon --decimal comma": (),
    "plain.csv --labels partial.csv": ("labels 18 of 24 known", "accuracy 1.000", "18 of 24 samples have a label"),
    "plain.csv --labels some.csv": ("labels 18 of 24 known", "accuracy 1.000"),
    "plain.csv --method K_Means": (),
    "plain.csv --method Spectral": ("--method Spectral is ng-spectral here",),
    "plain.csv --kernel Gaussian --method kernel_kmeans": ("--kernel Gaussian is rbf here",),
    "plain.csv -k 2:4": ("2 0.", "chosen"),
    "plain.csv -k 2,3 --criterion clearness": ("clearness", "chosen"),
    "plain.csv turned.csv --method kmeans": ("--method kmeans is multi-view-kmeans here", "24 in each of 2 files"),
    "a=genes.csv plain.csv --transpose-views a --method graph-fusion": ("24 in each of 2 files",),
    "first.csv second.csv --rows common --method graph-fusion": (
        "left out 3 of 24 samples",
        "first: 1 row left out (s10)",
        "second: 2 rows left out (s04, s03)",
    ),
    "first.csv second.csv --rows all --method graph-fusion": ("left out 0 of 24 samples",),
}


@pytest.mark.parametrize("typed", TABLES)
def test_everyday_tables_are_clustered_and_what_was_assumed_is_said(here, capsys, typed):
    code, out, err = run(
        capsys,
        f"cluster {typed if '-k 2' in typed else '-k 2 ' + typed}"
        + ("" if "--method" in typed or "--kernel" in typed else " --method kmeans"),
    )
    assert code == 0, err
    labels = [line.rpartition(",")[2] for line in out.replace("s\n05", "s05").splitlines()[1:]]
    truth = np.delete(GROUP, [3, 4, 10]) if "--rows common" in typed else GROUP
    if "--rows all" not in typed:  # another order
        assert adjusted_rand_score(truth, labels) == 1.0
    words = " ".join(err.split())
    assert all(each in words for each in TABLES[typed]), err
    assert TABLES[typed] or "note:" not in err


GRAPHS = {
    "edges.csv": ("entries are separated by ','", "the first line names the columns (source,target)"),
    "weighted.tsv": (),
    "semicolons.txt": ("entries are separated by ';'",),
    "loops.txt": (),
    "net.graphml": (),
    "net.graphml.gz": (),
    "directed.graphml": ("edges have a direction, which is ignored",),
    "unweighted.graphml": ("edges have no attribute 'weight', so all weights are 1 (attributes: strength)",),
    "net.mtx": (),
    "one_way.mtx": ("edges have a direction, which is ignored",),
    "lonely.graph": (),
    "edges.csv -k 2:4": ("k cut share modularity 2 0.09524 4.76 % 0.452 ", "chosen"),
    "edges.csv -k 2,3 --criterion clearness": ("k cut share clearness 2 0.09524",),
}


@pytest.mark.parametrize("typed", GRAPHS)
def test_everyday_graphs_are_cut_and_the_cut_is_told(here, capsys, typed):
    name, _, more = typed.partition(" ")
    code, out, err = run(capsys, f"cluster --graph {name} --method graph-cut {more or '-k 2'} --json")
    assert code == 0, err
    words = " ".join(err.split())
    assert all(each in words for each in GRAPHS[typed]), err
    assert GRAPHS[typed] or "note:" not in err
    summary = json.loads(out)
    assert summary["cut"]["normalized"] == pytest.approx(summary["objective"])
    if "lonely" not in name and "loops" not in name:
        assert summary["cut"]["normalized"] == pytest.approx(2 / 21)
        assert "cut 0.09524 normalized, 4.76 % of all weight, modularity 0.452" in words
    namespace = {}
    exec(summary["code"], namespace)
    assert namespace["labels"].tolist() == list(summary["labels"].values())


# What is refused: the rest of the command, and what is said.

REFUSED = {
    # files
    "none.csv": r"none\.csv: there is no such file; check its name\.",
    "plane.csv": r"plane\.csv: there is no such file; is it plain\.csv\?",
    "away/plain.csv": r"away/plain\.csv: there is no such file; nor is there a folder 'away'",
    "folder": r"folder: this is a folder; name a file in it",
    "table.pdf": r"table\.pdf: files of type '\.pdf' are not supported; use one of .*\.xlsx",
    "empty.csv": r"empty\.csv:1: the file is empty; give a table",
    "blank_lines.csv": r"blank_lines\.csv:1: the file is empty",
    "header_only.csv": r"header_only\.csv:1: there is a header of 3 column\(s\) and no rows; add some",
    "garbage.csv": r"garbage\.csv:1: this is not a text file: it holds a zero byte; save it as text",
    "noise.csv": r"noise\.csv:1: byte 0xc8 is not valid UTF-8; save the file as UTF-8",
    "cut.csv.gz": r"cut\.csv\.gz: this is not a readable gzip file .*; write or copy it again",
    "not_packed.csv.gz": r"not_packed\.csv\.gz: this is not a readable gzip file .*; write or copy it again",
    "cut.xlsx": r"cut\.xlsx: this is not a readable Excel file .*; write or copy it again",
    "book.xlsx:third": r"book\.xlsx: there is no table called 'third' in it; it has 'first', 'second'",
    "views.npz:three": r"views\.npz: there is no table called 'three' in it; it has 'one', 'two'",
    "short_row.csv": r"short_row\.csv:4: this row has 3 cell\(s\), the first one has 4; give all rows the same number",
    "plain.csv --delimiter tab": r"plain\.csv:2: there is no column of numbers.* name the separator with --delimiter",
    "plain.csv --delimiter ,,": r"--delimiter ',,': give one character",
    "open_quote.csv": r"open_quote\.csv:7: a quoted cell starts here and is never closed; add the closing quote",
    "twice.csv": r"twice\.csv:26: the id 's02' was already that of line 4; give each row one of its own",
    "no_id.csv": r"no_id\.csv:7: the id of this row is empty; fill it in, or remove the row",
    "words.csv": r"words\.csv:2: there is no column of numbers: the only one holds 'world'; .* or add numbers",
    "same.csv": r"same\.csv: .*the same",
    "one_row.csv": r"-k 2: there is only 1 sample; ask for fewer clusters",
    # cells
    **{
        f"{name}.csv": rf"{name}\.csv:5: column 2 \('a'\) has no value; fill it in, or .* --missing median"
        for name in ("na", "nan", "question", "dash", "gap")
    },
    "infinite.csv": r"infinite\.csv:5: column 2 \('a'\) holds 'inf', .*; leave the cell empty and use --missing median",
    "huge.csv": r"huge\.csv:5: column 2 \('a'\) holds 1e\+200, whose square overflows; rescale the column",
    "word.csv": r"word\.csv:5: column 2 \('a'\) holds 'high', .*; if the column holds categories, use --categorical a",
    "error.csv": r"error\.csv:5: column 2 \('a'\) holds '#DIV/0!', which is not a finite number",
    "two_points.csv": r"two_points\.csv:5: column 2 \('a'\) holds '1\.2\.3'",
    "kilos.csv": r"kilos\.csv:2: column 2 \('a'\) holds '.* kg', a number with a unit; write only the numbers, or use "
    r"--drop a or --categorical a",
    "euros.csv": r"euros\.csv:2: column 2 \('a'\) holds '\u20ac0', a number with a unit",
    "titled.csv": r"titled\.csv:1: the first line has one cell, 'Hips of dogs', and 3 empty ones; if it is a title, "
    r"remove it, and if it is a sample, use --no-header",
    "remarks.csv": r"remarks\.csv:2: this row has 4 cell\(s\), the first one has 1; remove the lines that "
    r"begin with '#'",
    "no_ending": r"no_ending: its name has no extension that says what it holds; use one of \.csv",
    "net.graphml": r"net\.graphml: this is a graph, not a table\. Give it with --graph",
    "plain.csv --delimiter ;": r"name the separator with --delimiter ','",
    "plain.csv --report out.docx": r"out\.docx: reports are HTML or PDF; the name must end in \.html or \.pdf",
    "plain.csv --annotate plain.csv": r"--annotate plain\.csv: all its columns were clustered",
    "plain.csv --annotate plain.csv --columns a,b --survival c,b": r"--survival c,b: column 'b' was clustered",
    "--graph single.xlsx": r"single\.xlsx: this cannot be read \(it is not UTF-8 text\); name a text file",
    "--graph commas.csv": r"commas\.csv:2: the weight is '1,5'; weights are finite numbers of 0 or more, with a "
    r"decimal point",
    "percent.csv": r"percent\.csv:5: column 2 \('a'\) holds '12%'; other cells of the column have no percent sign",
    "spaced.csv": r"spaced\.csv:5: column 2 \('a'\) holds '1 234'; write nothing between thousands",
    "thousands.csv": r"thousands\.csv:2: '1,000' may have a decimal comma, or one between .*; use --decimal ',' or",
    "both_signs.csv": r"both_signs\.csv:2: column 2 \('a'\) holds '1,05'; write a point for the decimal comma",
    "both_signs.csv --decimal ,": r"both_signs\.csv:2: column 3 \('b'\) holds '2\.5', which has a decimal point",
    "plain.csv --decimal x": r"--decimal 'x': give --decimal ',' or --decimal '\.'",
    "plain.csv --decimal , --delimiter ,": r"--decimal ',' cannot be combined with --delimiter ','; change one",
    # several files
    "plain.csv plain.csv": r"plain\.csv and plain\.csv would both be view 'plain'; name them: plain_2=plain\.csv",
    "first.csv second.csv": r"1 id\(s\) of first\.csv are missing from second\.csv, such as 's10'; .*--rows common",
    "first.csv elsewhere.csv --rows common": r"No id occurs in all files: first\.csv begins with 's00'",
    "plain.csv genes.csv": r"genes\.csv: its columns are the samples of plain\.csv, .*; use --transpose-views genes",
    "plain.csv numbers.csv": r"plain\.csv has ids and numbers\.csv has none, .* Give numbers\.csv a column of ids",
    # options
    "plain.csv -k 0": r"-k 0: numbers of clusters must be 1 or more",
    "plain.csv -k x": r"-k x: give a number, a range such as 2:8, or a list",
    "plain.csv -k 5:2": r"-k 5:2: .* the smaller end of a range first",
    "plain.csv -k 99": r"-k 99: there are only 24 samples; ask for fewer clusters",
    "plain.csv --method kmean": r"--method kmean: there is no such method\. Did you mean k-?means\? For one table",
    "plain.csv --method graph-fuson": r"there is no such method\. Did you mean graph-fusion\?",
    "plain.csv --method graph-cut": r"--method graph-cut takes a graph, not one table; use graph-fusion",
    "plain.csv --method sklearn-kmeans": r"is only for 'kernelweave compare'; use --method k-means",
    "plain.csv --kernel gausian": r"--kernel gausian: there is no such kernel\. Did you mean gaussian\? There are chi2",
    "plain.csv --set n_int=3": r"graph-fusion has no parameter 'n_int'; .* Did you mean n_init\?",
    "plain.csv --set n_init": r"'n_init': write NAME=VALUE",
    "plain.csv --criterion silhouette": r"--criterion silhouette decides between several numbers .*; "
    r"give a range such as -k 2:8",
    "plain.csv --criterion modularity -k 2:3": r"--criterion modularity does not apply to one table; "
    r"use --criterion sil",
    "plain.csv --columns z": r"--columns z: there is no such column; the columns are 'a', 'b', 'c'",
    "plain.csv --drop bb": r"--drop bb: there is no such column; the columns are 'a', 'b', 'c'",
    "plain.csv --ids name": r"plain\.csv:1: there is no column 'name' for ids; give a name of the header",
    "plain.csv --graph edges.csv": r"There is too much: give tables, --kernel-matrix FILE or --graph FILE",
    "": r"There is nothing to cluster: give tables",
    # results
    "plain.csv -o full": r"full/labels\.csv exists already; choose another folder or add --overwrite",
    "plain.csv -o plain.csv": r"plain\.csv.* (is one of the files to read|this is a file)",
    "plain.csv -o a/b": r"a/b: its parent folder does not exist; create it",
    "plain.csv --report a/b.html": r"a/b\.html: .* does not exist; choose another place",
    "plain.csv --report truth.csv": r"truth\.csv exists already; choose another name or add --overwrite",
    # labels
    "plain.csv --labels others.csv": r"others\.csv: none of its ids belongs to a sample: .*; write ids as in the other",
    "plain.csv --labels unknown.csv": r"unknown\.csv: no sample has a label; add some",
    "plain.csv --labels wide.csv": r"wide\.csv:1: lines of true labels are 'label' or 'id,label', .*; remove other",
    "plain.csv --labels too_few.csv": r"too_few\.csv: there are 2 labels below the header 'label' for 24 samples; ",
    "plain.csv --labels nothing.csv": r"nothing\.csv: there is no such file; check its name",
    # matrices and graphs
    "--kernel-matrix plain.csv": r"plain\.csv: a kernel matrix is square, and this one has shape \(24, 3\); give it as",
    "--kernel-matrix skew.csv": r"skew\.csv: the matrix is not symmetric: .*; average the matrix with its transpose",
    "--kernel-matrix skew.csv --transpose": r"--transpose is for tables; leave it out",
    "--graph negative.txt": r"negative\.txt:1: the weight is '-1'; weights are finite numbers of 0 or more",
    "--graph negative.mtx": r"negative\.mtx: some weights are negative, or not finite; write finite numbers",
    "--graph two_ways.mtx": r"two_ways\.mtx: row 1, column 2 holds 1, and row 2, column 1 3: .* sum or average",
    "--graph oblong.mtx": r"oblong\.mtx: the matrix of a graph must be square, but this one has shape \(2, 3\)",
    "--graph bomb.graphml": r"bomb\.graphml:1: .* it declares a document type; remove <!DOCTYPE>",
    "--graph cut.graphml": r"cut\.graphml:1: this is not readable GraphML \(.*\); write it again",
    "--graph other.graphml": r"other\.graphml: there is no <graph> in it, so it is not GraphML; name another file",
    "--graph nowhere.graphml": r"nowhere\.graphml:1: there is no node 'n99'; add it, or remove the edge",
    "--graph heavy.graphml": r"heavy\.graphml:1: the weight is 'much'; weights are finite numbers",
    "--graph none.txt": r"none\.txt: there is no such file; check its name",
    "--graph edges.csv --criterion silhouette -k 2:3": r"--criterion silhouette does not apply to a graph; use",
}


@pytest.mark.parametrize("typed", REFUSED)
def test_hostile_commands_get_one_line_with_a_remedy_and_write_nothing(here, capsys, typed):
    before = sorted(here.rglob("*"))
    code, out, err = run(capsys, f"cluster {typed}{'' if '-k ' in typed else ' -k 2'}")
    assert (code, out) == (2, ""), err
    assert err.count("\n") == 1, err
    assert err.startswith("kernelweave cluster: ")
    assert_matches(REFUSED[typed], err)
    assert sorted(here.rglob("*")) == before


OTHER_COMMANDS = {
    "clutser plain.csv": r"No such command 'clutser'\. Did you mean 'cluster'\?",
    # Words of click, which differ between its versions.
    "cluster plain.csv --clsters 2": r"No such option:? '?--clsters'?\.? \((Possible options:|Did you.*:) '?--clusters",
    "cluster plain.csv --zzz": r"No such option:? '?--zzz'?\. See 'kernelweave COMMAND --help'",
    "cluster plain.csv --scale big": r"Invalid value for '--scale': .*'big' is not one of 'auto', 'standard'",
    "cluster plain.csv --seed x": r"Invalid value for '--seed': .* See 'kernelweave COMMAND --help'",
    "methods kernl-kmeans": r"kernl-kmeans: there is no such method; .* Did you mean kernel-kmeans\?",
    "compare plain.csv": r"-k is missing: give the number of clusters, such as -k 3",
    "compare plain.csv -k 2 --method foo": r"--method foo: there is no such method\..* For one table there are",
    "predict plain.csv plain.csv": r"plain\.csv: this is not a saved model",
    "predict none.kwm plain.csv -o labels.xlsx": r"--output labels\.xlsx: labels are written as CSV; the name "
    r"must end in \.csv",
    "compare plain.csv -k 2 -o labels.parquet": r"--output labels\.parquet: labels are written as CSV",
    "predict folder plain.csv": r"folder: this is a folder; there is no model in it",
    "report none.kwm plain.csv": r"none\.kwm",
}


@pytest.mark.parametrize("typed", OTHER_COMMANDS)
def test_other_commands_are_as_plain(here, capsys, typed):
    before = sorted(here.rglob("*"))
    code, out, err = run(capsys, typed)
    assert (code, out) == (2, ""), err
    assert err.count("\n") == 1, err
    assert_matches(OTHER_COMMANDS[typed], err)
    assert sorted(here.rglob("*")) == before


def assert_matches(pattern, text):
    with pytest.raises(ValueError, match=pattern):
        raise ValueError(text)


# Results


def test_thousands_are_read_once_the_decimal_sign_is_said(here, capsys):
    for sign, largest in ((".", 12500.0), (",", 12.5)):
        from kernelweave.inputs import TextFormat, read_tables

        (table,) = read_tables("thousands.csv", TextFormat(decimal=sign))
        assert table.values.max() == largest
    assert run(capsys, f"cluster thousands.csv --decimal . {KMEANS}")[0] == 0


def test_the_summary_tells_what_was_assumed_and_who_was_left_out(here, tmp_path, capsys):
    code, out, _ = run(capsys, f"cluster semicolon.csv {KMEANS} --json")
    assert code == 0
    told = json.loads(out)
    assert [note.partition(";")[0] for note in told["input"]["assumed"]] == [
        "semicolon.csv: cells are separated by semicolons",
        "semicolon.csv: numbers have a decimal comma",
    ]
    namespace = {}
    exec(told["code"], namespace)
    assert namespace["labels"].tolist() == list(told["labels"].values())
    _, out, _ = run(capsys, "cluster first.csv second.csv -k 2 --rows common --json")
    told = json.loads(out)["input"]
    assert {name: each["left_out"] for name, each in told["views"].items()} == {
        "first": ["s10"],
        "second": ["s04", "s03"],
    }
    assert told["left_out"] == 3


def test_the_command_in_the_summary_repeats_new_options(here, capsys):
    _, out, _ = run(
        capsys, "cluster genes.csv --transpose --decimal . -k 2,3 --criterion clearness --method kmeans --json"
    )
    told = json.loads(out)
    assert "--criterion clearness" in told["command"]
    assert "--transpose" in told["command"]
    assert "--decimal ." in told["command"]
    _, again, _ = run(capsys, told["command"].removeprefix("kernelweave ") + " --json")
    assert json.loads(again)["labels"] == told["labels"]


def test_the_time_is_that_of_the_whole_command_with_set_up_apart(here, capsys):
    _, out, err = run(capsys, f"cluster plain.csv {KMEANS} --json")
    told = json.loads(out)
    assert told["seconds_waited"] >= told["seconds_set_up"] >= 0
    assert told["seconds_waited"] >= told["seconds"]
    assert " s of it to set up; converged" in err


def test_comparisons_tell_the_time_waited_for_every_method_with_set_up_apart(here, capsys):
    chosen = "--method k-means --method kernel-kmeans"
    _, out, err = run(capsys, f"compare plain.csv -k 2 {chosen}")
    assert out.splitlines()[0].split()[-2:] == ["waited", "set-up"]
    for row in (line.split() for line in out.splitlines()[1:3]):
        assert row[-3::2] == ["s", "s"]
        assert float(row[-4]) >= float(row[-2]) >= 0
    assert re.search(r"^time: [0-9.]+ s, [0-9.]+ s of it to set up$", err, re.MULTILINE)
    assert "time:" not in run(capsys, f"compare plain.csv -k 2 {chosen} -q")[2]
    _, out, _ = run(capsys, f"compare plain.csv -k 2 {chosen} --json")
    for told in json.loads(out)["methods"]:
        assert told["seconds_waited"] >= told["seconds"]
        assert told["seconds_waited"] >= told["seconds_set_up"] >= 0


def test_partial_labels_are_those_the_report_compares_with(here, tmp_path, capsys):
    code, _, err = run(capsys, f"cluster plain.csv {KMEANS} --labels partial.csv --report {tmp_path}/r.html")
    assert code == 0, err
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "18 of 24 samples have a label; scores use these" in page
    assert "None" not in page.partition('id="truth"')[2].partition("</section>")[0]


def test_predict_names_the_views_that_are_missing_with_the_files_that_are_there(here, tmp_path, capsys):
    shutil.copy("plain.csv", tmp_path / "left.csv")
    shutil.copy("turned.csv", tmp_path / "right.csv")
    files = f"{tmp_path}/left.csv {tmp_path}/right.csv"
    assert run(capsys, f"cluster {files} -k 2 --method snf -o {tmp_path}/out -q")[0] == 0
    code, out, err = run(capsys, f"predict {tmp_path}/out/model.kwm left=plain.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "but the files are left (plain.csv); missing: right; name them as right=FILE" in err
    code, out, err = run(capsys, f"predict {tmp_path}/out/model.kwm left=semicolon.csv right=turned.csv")
    assert code == 0
    assert "note: semicolon.csv: numbers have a decimal comma" in err
    labels = [int(line.rpartition(",")[2]) for line in out.splitlines()[1:]]
    assert adjusted_rand_score(GROUP, labels) == 1.0


def test_comparisons_have_the_methods_of_scikit_learn_beside_them(here, capsys):
    code, out, err = run(
        capsys,
        "compare plain.csv turned.csv -k 2 --method sklearn-kmeans --method SKLEARN_spectral "
        "--method multi-view-kmeans --labels partial.csv",
    )
    assert code == 0, err
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.strip()}
    assert rows["sklearn-kmeans"][1] == rows["sklearn-spectral"][1] == "2"
    assert rows["sklearn-kmeans"][-5] == "1.000"
    assert "18 of 24 samples have a label" in err
    code, out, _ = run(capsys, "compare --graph edges.csv -k 2 --json")
    assert code == 0
    found = {each["method"]: each["cut"]["normalized"] for each in json.loads(out)["methods"]}
    assert set(found) == {"graph-fusion", "graph-cut", "sklearn-spectral"}
    assert found["sklearn-spectral"] == pytest.approx(2 / 21)


def test_a_method_is_explained_with_what_cluster_sets_and_which_option_sets_what(capsys):
    _, out, _ = run(capsys, "methods spectral")
    assert out.startswith("ng-spectral: kernelweave.NgSpectralClustering\n\n")
    words = " ".join(out.split())
    assert (
        "'kernelweave cluster' sets, in addition to the defaults below: one table kernel='nearest_neighbors'" in words
    )
    assert "a kernel matrix kernel='precomputed'" in words
    assert "--kernel-param Parameters of a named kernel" in words
    assert "changed with --set NAME=VALUE" in words
    assert "----" not in out
    assert max(map(len, out.splitlines())) <= 120
    for name in ("graph-fusion", "graph-cut", "sklearn-kmeans", "kmeans"):
        assert run(capsys, f"methods {name}")[0] == 0


def test_standard_input_may_have_semicolons(here, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXTS["semicolon.csv"].encode())))
    code, _, err = run(capsys, f"cluster - {KMEANS}")
    assert code == 0
    assert "note: standard input: numbers have a decimal comma" in err


def test_a_last_row_that_adds_up_the_others_is_pointed_out(here, capsys):
    code, out, err = run(capsys, f"cluster total.csv {KMEANS}")
    assert (code, len(out.splitlines())) == (0, N + 2)
    assert "note: total.csv: the last row is called 'Total' and counts as a sample; if it is not one, remove it" in err


def test_columns_that_were_clustered_are_no_annotations_of_the_clusters(here, capsys):
    code, out, err = run(capsys, f"cluster plain.csv --columns a,b --annotate plain.csv {KMEANS} --json")
    assert code == 0, err
    assert [row["column"] for row in json.loads(out)["annotations"]] == ["c"]
    assert "note: a: not tested (it was clustered)" in err


def test_a_table_of_features_is_told_how_to_be_turned(here, capsys):
    for name in ("genes.csv", "ensembl.tsv"):
        _, _, err = run(capsys, f"cluster {name} -k 2 --method kmeans")
        assert "if samples are the columns, use --transpose" in err
