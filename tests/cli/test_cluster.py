"""Clustering files from the command line: files, messages, and what happens when input is bad."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave import estimators, load_model
from kernelweave.cli import main
from kernelweave.cli.catalogue import DEFAULTS, METHODS
from kernelweave.foundation import checkpoints
from tests.command_server import programs
from tests.estimators.discovery import blobs

# Distant groups make graphs of neighbours fall apart, and there is a warning.
pytestmark = pytest.mark.filterwarnings("ignore:View .* has no scatter left")

X, Y = blobs(12)
OWN = [method for method in METHODS if not method.baseline]
NAMES = [f"s{i:02}" for i in range(len(X))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with three views in different orders, true labels, a kernel matrix and a graph."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    blocks = {"genes": X[:, :2], "text": X[:, 2:], "links": X @ rng.standard_normal((4, 3))}
    for name, block in blocks.items():
        frame = pd.DataFrame(
            block, index=pd.Index(NAMES, name="id"), columns=[f"{name}{j}" for j in range(block.shape[1])]
        )
        frame.iloc[rng.permutation(len(frame))].to_csv(f"{name}.csv")
    pd.DataFrame({"id": NAMES, "label": [f"class {c}" for c in Y]}).to_csv("truth.csv", index=False)
    K = rbf_kernel(X, gamma=0.01)
    pd.DataFrame(K, index=NAMES, columns=NAMES).to_csv("similar.csv", index_label="id")
    np.save("similar.npy", K)
    edges = [f"{NAMES[i]} {NAMES[j]} {K[i, j]:.6f}" for i in range(len(K)) for j in range(i) if K[i, j] > 0.5]
    (tmp_path / "net.txt").write_text("\n".join(edges) + "\n")
    return tmp_path


def run(capsys, *arguments):
    """Run the command line; return exit code, standard output and standard error."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def labels_of(text):
    """Return the labels of a CSV text in the order of the samples."""
    rows = [line.split(",") for line in text.strip().splitlines()]
    assert rows[0][:2] == ["id", "label"]
    result = {row[0]: row[1] for row in rows[1:]}
    return [int(result[name]) for name in NAMES]


VIEWS = ("genes.csv", "text.csv", "links.csv")


# What a person wants


def test_three_tables_give_labels_weights_a_model_and_a_report(folder, capsys):
    code, out, err = run(capsys, "cluster", *VIEWS, "-k", 3, "-o", "out", "--report", "r.html", "--labels", "truth.csv")
    assert code == 0
    assert out == ""
    assert adjusted_rand_score(labels_of((folder / "out" / "labels.csv").read_text()), Y) == 1.0
    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert summary["sizes"] == [12, 12, 12]
    assert summary["scores"]["nmi"] == pytest.approx(1.0)
    assert sum(summary["view_weights"].values()) == pytest.approx(1.0)
    assert list(summary["view_weights"]) == ["genes", "text", "links"]
    assert summary["scale"] is None  # graph fusion scales by itself
    assert summary["estimator"] == "GraphFusionClustering"
    assert set(summary["view_agreement"]) == {"genes", "text", "links"}
    assert "Views: weight" in err
    assert "report: r.html" in err
    assert "<html" in (folder / "r.html").read_text()
    assert len(load_model(folder / "out" / "model.kwm").labels_) == len(X)
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["labels.csv", "model.kwm", "summary.json"]


def test_a_similarity_matrix_and_an_edge_list_work_in_the_same_way(folder, capsys):
    for arguments in (("--kernel-matrix", "similar.csv"), ("--kernel-matrix", "similar.npy"), ("--graph", "net.txt")):
        code, out, _ = run(capsys, "cluster", *arguments, "-k", 3, "--quiet", "--report", "r.html", "--overwrite")
        assert code == 0
        plain = [int(line.split(",")[1]) for line in out.splitlines()[1:]]
        result = plain if "npy" in arguments[1] else labels_of(out)
        assert adjusted_rand_score(result, Y) == 1.0
        assert "<html" in (folder / "r.html").read_text()


def test_the_code_of_the_summary_repeats_the_clustering(folder, capsys):
    for arguments in (
        (*VIEWS,),
        ("genes.csv", "--kernel", "rbf"),
        ("--kernel-matrix", "similar.csv"),
        ("--graph", "net.txt"),
    ):
        code, out, _ = run(capsys, "cluster", *arguments, "-k", 3, "--json", "--quiet", "--seed", 4)
        assert code == 0
        result = json.loads(out)
        scope = {}
        exec(result["code"], scope)
        assert scope["labels"].tolist() == list(result["labels"].values())


def test_the_command_of_the_summary_repeats_the_clustering(folder, capsys):
    arguments = [
        "cluster",
        *VIEWS,
        "-k",
        "3",
        "--method",
        "multi-view-kernel-kmeans",
        "--p",
        "1.5",
        "--kernel",
        "linear",
    ]
    code, out, _ = run(capsys, *arguments, "--json", "--quiet")
    assert code == 0
    first = json.loads(out)
    words = first["command"].split()
    assert words[0] == "kernelweave"
    assert first["parameters"]["p"] == 1.5
    code, out, _ = run(capsys, *words[1:], "--json", "--quiet")
    assert json.loads(out)["labels"] == first["labels"]


@pytest.mark.parametrize("number", [[], ["-k", "auto"], ["-k", "2:5"]])
def test_the_number_of_clusters_is_chosen_and_explained(folder, capsys, number):
    code, out, err = run(capsys, "cluster", *VIEWS, *number, "--json")
    result = json.loads(out)
    assert code == 0
    assert result["clusters"] == 3
    assert result["confidence"] in ("high", "moderate", "low")
    assert result["verdict"].startswith(f"3 clusters, {result['confidence']} confidence: ")
    assert "answer" in err
    assert result["tried"] is None


def test_noise_has_no_clusters_which_is_an_answer(folder, capsys):
    noise = np.random.default_rng(3).normal(size=(150, 6))
    pd.DataFrame(noise, columns=list("abcdef")).to_csv("noise.csv", index=False)
    code, out, _ = run(capsys, "cluster", "noise.csv", "--json", "--report", "r.html")
    result = json.loads(out)
    assert code == 0
    assert result["clusters"] == 1
    assert result["confidence"] == "none"
    assert "No cl" in result["verdict"]
    assert "No clusters in 150 samples" in (folder / "r.html").read_text()


def test_other_methods_judge_a_range_of_numbers_by_silhouettes(folder, capsys):
    code, out, err = run(capsys, "cluster", *VIEWS, "-k", "2:5", "--json", "--method", "multi-view-spectral")
    result = json.loads(out)
    assert code == 0
    assert result["clusters"] == 3
    assert [entry["clusters"] for entry in result["tried"]] == [2, 3, 4, 5]
    assert result["silhouette"] == max(entry["silhouette"] for entry in result["tried"])
    assert "Numbers of clusters" in err


def test_kernels_and_parameters_reach_the_estimator(folder, capsys):
    kernels = ["--kernel", "genes=linear", "--kernel", "text=rbf", "--kernel", "links=cosine"]
    others = ["--set", "n_init=2", "--set", "view_weights=uniform", "--scale", "none", "--json", "--quiet"]
    code, out, _ = run(capsys, "cluster", *VIEWS, "-k", 3, *kernels, *others)
    result = json.loads(out)
    assert code == 0
    assert result["estimator"] == "MultiViewKernelKMeans"
    assert result["parameters"]["kernel"] == {"genes": "linear", "text": "rbf", "links": "cosine"}
    assert (result["parameters"]["n_init"], result["parameters"]["view_weights"]) == (2, "uniform")
    assert result["scale"] is None


def test_standard_input_is_read_as_csv(folder):
    command = [programs() / "kernelweave", "cluster", "-", "-k", "3", "--quiet"]
    with open("genes.csv", "rb") as table:
        done = subprocess.run(command, stdin=table, capture_output=True, text=True, check=True)
    assert adjusted_rand_score(labels_of(done.stdout), Y) == 1.0


@pytest.mark.parametrize("method", OWN, ids=lambda method: method.name)
def test_every_method_of_the_list_clusters_what_it_says_it_takes(folder, capsys, method):
    if method.scale == "none":  # negative numbers are refused
        for name in VIEWS:
            pd.read_csv(name, index_col=0).abs().to_csv(name)
    places = {"table": ["text.csv"], "views": list(VIEWS), "kernel matrix": ["--kernel-matrix", "similar.csv"]}
    places["graph"] = ["--graph", "net.txt"]
    for kind in method.takes:
        k = 2 if "two clusters" in method.when else 3
        code, out, err = run(capsys, "cluster", *places[kind], "-k", k, "--method", method.name, "--quiet")
        assert code == 0, err
        assert set(labels_of(out)) <= set(range(k))


def test_the_list_of_methods_names_every_estimator_once():
    assert sorted(method.estimator for method in OWN if method.name != "k-means") == sorted(estimators.__all__)
    assert set(DEFAULTS.values()) <= {method.name for method in METHODS}


# New samples


def test_a_saved_model_assigns_new_samples_by_name_of_the_view(folder, capsys):
    assert run(capsys, "cluster", *VIEWS, "-k", 3, "-o", "out", "--quiet")[0] == 0
    known = labels_of((folder / "out" / "labels.csv").read_text())
    code, out, _ = run(capsys, "predict", "out/model.kwm", "links.csv", "genes.csv", "text.csv")
    assert code == 0
    assert labels_of(out) == known
    for name in VIEWS:
        (folder / f"new_{name}").write_text((folder / name).read_text())
    moved = [f"{name.removesuffix('.csv')}=new_{name}" for name in VIEWS]
    assert run(capsys, "predict", "out/model.kwm", *moved, "-o", "labels.csv")[0] == 0
    assert labels_of((folder / "labels.csv").read_text()) == known
    code, out, _ = run(capsys, "predict", "out/model.kwm", *moved, "--json")
    assert [json.loads(out)[name] for name in NAMES] == known


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x=genes.csv"], r"has the views genes, text, links, but the files are x \(genes\.csv\); missing: "),
        (
            ["genes=text.csv", "text=genes.csv", "links.csv"],
            r"2 column\(s\) of the model are missing, such as",
        ),
        ([], r"There are no samples"),
    ],
)
def test_new_samples_of_other_views_or_columns_are_refused(folder, capsys, arguments, message):
    run(capsys, "cluster", *VIEWS, "-k", 3, "-o", "out", "--quiet")
    code, out, err = run(capsys, "predict", "out/model.kwm", *arguments, "-o", "new.csv")
    assert (code, out) == (2, "")
    assert re.search(message, err)
    assert err.count("\n") == 1
    assert not (folder / "new.csv").exists()


def test_models_that_cannot_assign_say_so(folder, capsys):
    run(capsys, "cluster", "--graph", "net.txt", "-k", 3, "--method", "graph-cut", "-o", "out", "--quiet")
    code, _, err = run(capsys, "predict", "out/model.kwm", "genes.csv")
    assert code == 2
    assert "GraphCut cannot assign new samples" in err


def test_a_report_tells_columns_by_name_and_shows_the_numbers_tried(folder, capsys):
    assert run(capsys, "cluster", "genes.csv", "--method", "kernel-kmeans", "-k", "2:4", "--report", "r.html")[0] == 0
    text = (folder / "r.html").read_text(encoding="utf-8")
    assert re.search(r"<strong>genes[01]</strong>", text)
    assert 'id="counts"' in text
    assert "was chosen" in text


def test_a_pdf_is_refused_before_the_work_where_nothing_prints_it(folder, capsys, monkeypatch):
    monkeypatch.setenv("KERNELWEAVE_CHROMIUM", "/no/such/program")
    code, _, err = run(capsys, "cluster", *VIEWS, "-k", 3, "-o", "out", "--report", "r.pdf")
    assert code == 2
    assert err.count("A PDF needs Chromium") == 1
    assert not (folder / "out").exists()
    assert not (folder / "r.pdf").exists()
    assert run(capsys, "cluster", *VIEWS, "-k", 3, "-o", "out", "--quiet")[0] == 0
    code, _, err = run(capsys, "report", "out/model.kwm", *VIEWS, "-o", "r.pdf")
    assert code == 2
    assert "A PDF needs Chromium" in err


def test_a_report_of_a_saved_model(folder, capsys):
    run(capsys, "cluster", *VIEWS, "-k", 3, "-o", "out", "--quiet")
    code, _, err = run(capsys, "report", "out/model.kwm", *VIEWS, "-o", "r.html", "--labels", "truth.csv")
    assert code == 0, err
    assert "NMI" in (folder / "r.html").read_text()
    (folder / "few.csv").write_text("id,x\na,1\nb,2\n")
    code, _, err = run(capsys, "report", "out/model.kwm", "few.csv", "-o", "s.html")
    assert code == 2
    assert "was made from 36 samples, but the files hold 2" in err
    assert not (folder / "s.html").exists()


# Comparisons


def test_methods_are_compared_with_each_other_and_with_the_truth(folder, capsys):
    chosen = ["--method", "multi-view-spectral", "--method", "multi-view-kernel-kmeans"]
    code, out, _ = run(capsys, "compare", *VIEWS, "-k", 3, *chosen, "--labels", "truth.csv", "-o", "all.csv", "--json")
    result = json.loads(out)
    assert code == 0
    assert [entry["method"] for entry in result["methods"]] == ["multi-view-spectral", "multi-view-kernel-kmeans"]
    assert [entry["scores"]["nmi"] for entry in result["methods"]] == pytest.approx([1.0, 1.0])
    assert np.allclose(result["agreement"]["nmi"], 1.0)
    table = pd.read_csv("all.csv")
    assert list(table.columns) == ["id", "multi-view-spectral", "multi-view-kernel-kmeans"]
    code, out, _ = run(capsys, "compare", *VIEWS, "-k", 3, *chosen)
    assert "Agreement (NMI)" in out


def test_a_method_that_fails_is_named_and_the_others_are_shown(folder, capsys):
    table = pd.read_csv("genes.csv").assign(genes0=np.repeat([0.0, 1.0], 18), genes1=1.0)  # two values, three clusters
    table.to_csv("flat.csv", index=False)
    code, out, err = run(
        capsys, "compare", "flat.csv", "-k", 3, "--method", "kernel-kmeans", "--method", "kernel-spectral"
    )
    assert code == 1
    assert "kernel-kmeans" in out
    assert "kernel-spectral failed: n_clusters=3" in err


def test_methods_are_listed_and_explained(capsys):
    code, out, _ = run(capsys, "methods")
    assert code == 0
    assert all(method.name in out for method in METHODS)
    first = json.loads(run(capsys, "methods", "--json")[1])[0]
    assert first["default_for"] == ["table", "views", "kernel matrix", "graph"]
    code, out, _ = run(capsys, "methods", "graph-cut")
    assert "kernelweave.GraphCut" in out
    assert "objective" in out
    assert run(capsys, "methods", "GraphCut", "--json")[0] == 0
    code, _, err = run(capsys, "methods", "magic")
    assert code == 2
    assert "there is no such method" in err


# Bad input: one line, exit code 2, nothing written

BAD = {
    "no number for a method that needs one": ((*VIEWS, "--method", "multi-view-em"), r"does not choose"),
    "k in words": ((*VIEWS, "-k", "many"), r"-k many: give a number"),
    "k zero": ((*VIEWS, "-k", "0"), r"-k 0: numbers of clusters must be 1 or more"),
    "k from one": ((*VIEWS, "-k", "1:3"), r"start at 2"),
    "range upside down": ((*VIEWS, "-k", "5:2"), r"the smaller end"),
    "too many clusters": ((*VIEWS, "-k", "37"), r"-k 37: there are only 36 samples"),
    "nothing": (("-k", "3"), r"There is nothing to cluster"),
    "two kinds": ((*VIEWS, "--graph", "net.txt", "-k", "3"), r"There is too much"),
    "no such file": (("none.csv", "-k", "3"), r"none\.csv: there is no such file"),
    "no such graph": (("--graph", "none.txt", "-k", "3"), r"none\.txt: there is no such file"),
    "no such method": (
        (*VIEWS, "-k", "3", "--method", "magic"),
        r"--method magic: there is no such method",
    ),
    "wrong kind": (
        (*VIEWS, "-k", "3", "--method", "kernel-kmeans"),
        r"takes one table or a kernel matrix, not several views",
    ),
    "parameter": ((*VIEWS, "-k", "3", "--set", "speed=9"), r"has no parameter 'speed'"),
    "parameter form": ((*VIEWS, "-k", "3", "--set", "speed"), r"'speed': write NAME=VALUE"),
    "parameter value": ((*VIEWS, "-k", "3", "--set", "n_init=none"), r"n_init"),
    "kernel": ((*VIEWS, "-k", "3", "--kernel", "magic"), r"kernel.*magic"),
    "kernel of a view": (
        (*VIEWS, "-k", "3", "--kernel", "genes=rbf"),
        r"--kernel names views \['genes'\], but",
    ),
    "kernels": (
        (*VIEWS, "-k", "3", "--kernel", "rbf", "--kernel", "linear"),
        r"one kernel for all views, or VIEW=",
    ),
    "not square": (("--kernel-matrix", "genes.csv", "-k", "3"), r"genes\.csv: a kernel matrix is square"),
    "graph silhouette": (
        ("--graph", "net.txt", "-k", "2:3", "--method", "graph-cut", "--criterion", "silhouette"),
        r"--criterion silhouette does not apply to a graph; use --criterion modularity",
    ),
    "output is a file": ((*VIEWS, "-k", "3", "-o", "genes.csv"), r"genes\.csv: this is a file"),
    "output nowhere": ((*VIEWS, "-k", "3", "-o", "a/b"), r"its parent folder does not exist"),
    "report nowhere": ((*VIEWS, "-k", "3", "--report", "a/b.html"), r"its folder does not exist"),
    "report exists": ((*VIEWS, "-k", "3", "--report", "truth.csv"), r"truth\.csv exists already"),
    "truth": ((*VIEWS, "-k", "3", "--labels", "none.csv"), r"none\.csv: there is no such file"),
    "truth of others": ((*VIEWS, "-k", "3", "--labels", "genes.csv"), r"genes\.csv:1: lines of true labels are"),
    "unknown option": ((*VIEWS, "--magic"), r"No such option"),
}


@pytest.mark.parametrize("fault", sorted(BAD))
def test_bad_arguments_get_one_line_and_nothing_is_written(folder, capsys, fault):
    arguments, message = BAD[fault]
    before = sorted(path.name for path in folder.rglob("*"))
    code, out, err = run(capsys, "cluster", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("kernelweave")
    assert err.count("\n") == 1, err
    assert re.search(message, err), err
    assert sorted(path.name for path in folder.rglob("*")) == before


ONES = "id,a\n" + "".join(f"{name},1\n" for name in NAMES)
FILES = {
    "missing rows": ("id,a\ns00,1\ns01,2\n", r"34 id\(s\) of genes\.csv are missing from bad\.csv, such as '"),
    "text": (
        "id,a\n" + "".join(f"{n},{'red' if n == 's05' else 1}\n" for n in NAMES),
        r"bad\.csv:7: column 2 \('a'\) holds 'red'",
    ),
    "NaN": (
        "id,a\n" + "".join(f"{n},{'NaN' if n == 's05' else n[1:]}\n" for n in NAMES[::-1]),
        r"bad\.csv:32: column 2 \('a'\) has no value",
    ),
    "duplicate ids": ("id,a\n" + "s00,1\n" * 36, r"bad\.csv:3: the id 's00' was already that of line 2"),
    "empty": ("", r"bad\.csv:1: the file is empty"),
    "binary": (b"\x00\x01\x02", r"bad\.csv:1: this is not a text file"),
}


@pytest.mark.parametrize("fault", sorted(FILES))
def test_bad_files_get_one_line_with_file_and_line_and_nothing_is_written(folder, capsys, fault):
    content, message = FILES[fault]
    (folder / "bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    for command in (("cluster", "-o", "out", "--report", "r.html"), ("compare", "-o", "out.csv")):
        code, out, err = run(capsys, command[0], "genes.csv", "bad.csv", "-k", 3, *command[1:])
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert re.search(message, err), err
        assert not {"out", "r.html", "out.csv"} & {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04N.", b"{}"])
def test_files_that_are_no_models_are_refused(folder, capsys, content):
    (folder / "model.kwm").write_bytes(content)
    for command in ("predict", "report"):
        code, out, err = run(capsys, command, "model.kwm", "genes.csv")
        assert (code, out) == (2, "")
        assert re.match(r"kernelweave \w+: model\.kwm: this is not a saved model", err)


def test_files_that_exist_are_kept_unless_told_otherwise(folder, capsys):
    assert run(capsys, "cluster", *VIEWS, "-k", 3, "-o", "out", "--quiet")[0] == 0
    before = (folder / "out" / "labels.csv").read_text()
    code, _, err = run(capsys, "cluster", *VIEWS, "-k", 2, "-o", "out", "--quiet")
    assert code == 2
    assert "exists already; choose another folder or add --overwrite" in err
    assert (folder / "out" / "labels.csv").read_text() == before
    assert run(capsys, "cluster", *VIEWS, "-k", 2, "-o", "out", "--quiet", "--overwrite")[0] == 0
    assert (folder / "out" / "labels.csv").read_text() != before


def test_rows_in_common_are_clustered_where_that_is_asked(folder, capsys):
    pd.read_csv("text.csv").query("id != 's03'").to_csv("text.csv", index=False)
    assert run(capsys, "cluster", *VIEWS, "-k", 3)[0] == 2
    code, out, _ = run(capsys, "cluster", *VIEWS, "-k", 3, "--rows", "common", "--quiet")
    assert code == 0
    assert len(out.splitlines()) == 36


def test_warnings_of_the_method_are_told_and_kept(folder, capsys):
    pd.DataFrame({"id": NAMES, "x": np.repeat([0.0, 1.0], 18)}).to_csv("two.csv", index=False)
    code, out, err = run(capsys, "cluster", "two.csv", "-k", 3, "--kernel", "linear", "--json")
    assert code == 0
    assert any("distinct clusters" in message for message in json.loads(out)["warnings"])
    assert "warning: Number of distinct clusters" in err


def test_a_report_made_later_knows_the_warnings_of_the_fit(folder, capsys):
    pd.DataFrame({"id": NAMES, "x": np.repeat([0.0, 1.0], 18)}).to_csv("two.csv", index=False)
    assert run(capsys, "cluster", "two.csv", "-k", 3, "--kernel", "linear", "-o", "out", "--quiet")[0] == 0
    assert run(capsys, "report", "out/model.kwm", "two.csv", "-o", "later.html")[0] == 0
    assert (folder / "later.html").read_text(encoding="utf-8").count("<li>Number of distinct clusters") == 1


# Interruptions


SLOW = """
import sys, time
from kernelweave.cli import fitting, main
plain = fitting.fit
def slow(*arguments):
    fit = plain(*arguments)
    print("fitted", flush=True)
    time.sleep(1.0)
    return fit
fitting.fit = slow
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are sent in another way there")
def test_ctrl_c_leaves_the_best_result_so_far_and_says_where(folder):
    options = ["-k", "2:30", "-o", "out", "--method", "multi-view-spectral"]
    command = [sys.executable, "-c", SLOW, "cluster", *VIEWS, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert [process.stdout.readline() for _ in range(2)] == ["fitted\n"] * 2
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert summary["interrupted"] is True
    assert 2 <= len(summary["tried"]) < 29
    assert "Stopped early" in err
    assert "labels: out/labels.csv" in err


# Fits that were stopped


STOPPED = ("cluster", *VIEWS, "-k", 3, "--method", "multi-view-kernel-kmeans", "--checkpoint", "run.ckpt")


def test_a_fit_that_was_stopped_goes_on_from_its_checkpoint(folder, capsys, monkeypatch):
    expected = run(capsys, *STOPPED[:-2])[1]
    monkeypatch.setattr(checkpoints, "INTERVAL", 0.0)
    write = checkpoints.write_atomically
    with monkeypatch.context() as killing:

        def killed(path, content):
            write(path, content)
            raise KeyboardInterrupt

        killing.setattr(checkpoints, "write_atomically", killed)
        run(capsys, *STOPPED)
    assert (folder / "run.ckpt").exists()
    code, out, err = run(capsys, *STOPPED, "--set", "n_init=3")
    assert code == 2
    assert out == ""
    assert "--checkpoint run.ckpt belongs to another run: n_init was" in err
    assert err.rstrip().endswith("Delete the file, or choose another name.")
    code, out, _ = run(capsys, *STOPPED, "-o", "out")
    assert code == 0
    assert labels_of((folder / "out" / "labels.csv").read_text()) == labels_of(expected)
    assert not (folder / "run.ckpt").exists()
    assert json.loads((folder / "out" / "summary.json").read_text())["parameters"]["checkpoint"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("genes.csv", "-k", "2:4", "--method", "kernel-kmeans", "--checkpoint", "c"),
            "--checkpoint holds a single fit",
        ),
        (("genes.csv", "-k", 3, "--checkpoint", "genes.csv"), "--checkpoint: genes.csv is one of the files to read"),
        (("genes.csv", "-k", 3, "--checkpoint", "no/c"), "--checkpoint no/c lies in a folder that does not exist"),
        (("genes.csv", "-k", 3, "--method", "kernel-spectral", "--checkpoint", "c"), "takes no --checkpoint"),
        (("genes.csv", "-k", 3, "--checkpoint", "."), "--checkpoint . is a folder. Name a file in it."),
    ],
)
def test_checkpoints_that_cannot_be_kept_are_refused(folder, capsys, arguments, message):
    code, out, err = run(capsys, "cluster", *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert len(err.strip().splitlines()) == 1
