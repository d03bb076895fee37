"""What ``cluster`` says beyond labels: a line on every sample, what sets clusters apart, annotations, coordinates."""

import csv
import json
from inspect import cleandoc

import numpy as np
import pandas as pd
import pytest

from kernelweave import load_model
from kernelweave.cli import main
from kernelweave.cli.catalogue import METHODS, estimator_of
from kernelweave.estimators.shared.scores import ScoreClusterer
from kernelweave.evaluation.describe import describe_samples
from tests.estimators.discovery import blobs

pytestmark = pytest.mark.filterwarnings("ignore:View .* has no scatter left")

X, Y = blobs(12)
NAMES = [f"s{i:02}" for i in range(len(X))]
FILES = ("genes.csv", "text.csv")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with two views, a clinical table of other columns, and the clusters as a graph."""
    monkeypatch.chdir(tmp_path)
    index = pd.Index(NAMES, name="id")
    pd.DataFrame(X[:, :2], index=index, columns=["g1", "g2"]).to_csv("genes.csv")
    pd.DataFrame(X[:, 2:], index=index, columns=["t1", "t2"]).to_csv("text.csv")
    clinic = {"age": 40.0 + 10 * Y + np.arange(len(Y)) % 5, "months": 1.0 + np.arange(len(Y)), "dead": Y == 0}
    pd.DataFrame(clinic, index=index).iloc[::-1].iloc[1:].to_csv("clinic.csv")
    return tmp_path


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_labels_come_with_a_line_on_every_sample(folder, capsys):
    assert run(capsys, "cluster", *FILES, "-k", 3, "-o", "out")[0] == 0
    rows = rows_of("out/labels.csv")
    assert list(rows[0]) == ["id", "label", "silhouette", "runner_up", "confidence", "disagreeing_view"]
    model = load_model("out/model.kwm")
    views = {"genes": X[:, :2], "text": X[:, 2:]}
    expected = describe_samples(model, views)
    assert [row["silhouette"] for row in rows] == [f"{value:.4f}" for value in expected.silhouettes]
    assert [row["runner_up"] for row in rows] == [str(value) for value in expected.runners_up]
    assert [row["confidence"] for row in rows] == [f"{value:.4f}" for value in expected.confidences]
    assert [row["disagreeing_view"] for row in rows] == list(expected.disagreeing_views)
    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert np.mean([float(row["silhouette"]) for row in rows]) == pytest.approx(summary["silhouette"], abs=1e-4)


def test_one_cluster_leaves_cells_empty_and_its_labels_can_be_compared_with(folder, capsys):
    assert run(capsys, "cluster", "genes.csv", "-k", 1, "-o", "out", "--method", "kernel-kmeans")[0] == 0
    assert {tuple(row.values())[1:] for row in rows_of("out/labels.csv")} == {("0", "", "", "", "")}
    assert run(capsys, "cluster", "genes.csv", "-k", 3, "-o", "three")[0] == 0
    code, _, err = run(capsys, "cluster", "text.csv", "-k", 3, "-o", "again", "--labels", "three/labels.csv")
    assert code == 0
    assert "nmi         1.000" in err


def test_explain_writes_a_table_and_words_and_prints_a_line_for_every_cluster(folder, capsys):
    code, out, err = run(capsys, "cluster", *FILES, "-k", 3, "-o", "out", "--explain")
    assert (code, out) == (0, "")
    rows = rows_of("out/clusters.csv")
    assert {row["view"] for row in rows} == {"genes", "text"}
    assert {row["column"] for row in rows} == {"g1", "g2", "t1", "t2"}
    labels = np.array([int(row["label"]) for row in rows_of("out/labels.csv")])
    row = next(row for row in rows if row["column"] == "t1" and row["cluster"] == "1")
    assert float(row["mean_inside"]) == pytest.approx(X[labels == 1, 2].mean())  # as in the file, not scaled
    words = (folder / "out" / "clusters.txt").read_text()
    assert "  typical: s" in words
    assert "not evidence that the clusters exist" in words
    assert "cluster 2 (12 samples): " in err
    assert "clusters: out/clusters.csv" in err


def test_annotations_are_matched_by_id_and_tested_and_survival_too(folder, capsys):
    arguments = ("cluster", *FILES, "-k", 3, "-o", "out", "--annotate", "clinic.csv", "--survival", "months,dead")
    code, _, err = run(capsys, *arguments)
    assert code == 0
    rows = {row["column"]: row for row in rows_of("out/annotations.csv")}
    assert set(rows) == {"age", "months, dead"}
    assert rows["age"]["test"] == "Kruskal-Wallis"
    assert float(rows["age"]["adjusted_p"]) < 1e-6
    assert rows["age"]["n_missing"] == "1"
    assert rows["months, dead"]["test"] == "log-rank"
    assert "1 of 36 samples have no row in the table." in err
    assert "were not used for clustering" in err
    command = json.loads((folder / "out" / "summary.json").read_text())["command"]
    assert command.endswith("--annotate clinic.csv --survival months,dead")


def test_a_kernel_matrix_is_explained_by_typical_samples(folder, capsys):
    pd.DataFrame(X @ X.T, index=NAMES, columns=NAMES).to_csv("similar.csv", index_label="id")
    code, _, err = run(capsys, "cluster", "--kernel-matrix", "similar.csv", "-k", 3, "-o", "out", "--explain")
    assert code == 0
    assert "  typical: s" in err
    assert rows_of("out/clusters.csv") == []


def test_the_embedding_is_written_with_the_ids(folder, capsys):
    assert run(capsys, "cluster", *FILES, "-k", 3, "-o", "out", "--embedding")[0] == 0
    rows = rows_of("out/embedding.csv")
    assert [row["id"] for row in rows] == NAMES
    coordinates = np.array([[float(value) for value in list(row.values())[1:]] for row in rows])
    np.testing.assert_allclose(coordinates, load_model("out/model.kwm").embedding_)


def test_json_holds_what_was_asked_for(folder, capsys):
    code, out, _ = run(capsys, "cluster", *FILES, "-k", 3, "--json", "-q", "--explain", "--annotate", "clinic.csv")
    whole = json.loads(out)
    assert code == 0
    assert {row["column"] for row in whole["explanation"]} == {"g1", "g2", "t1", "t2"}
    assert whole["explanation"][0]["share_inside"] is None
    assert {row["column"] for row in whole["annotations"]} == {"age", "months", "dead"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--embedding",), "--embedding writes embedding.csv into a folder; name it with --output."),
        (("--survival", "a,b"), "--survival names columns of an annotation file; give it with --annotate FILE."),
        (
            ("--annotate", "clinic.csv", "--survival", "months"),
            "--survival months: name two columns, such as time,event.",
        ),
        (("--annotate", "clinic.csv", "--survival", "months,alive"), "clinic.csv has no column 'alive'."),
        (("--annotate", "nowhere.csv"), "nowhere.csv: there is no such file"),
        (
            ("-o", "new", "--embedding", "--method", "kernel-kmeans"),
            "--embedding: kernel-kmeans has no joint coordinates of the samples. For one table these methods have "
            "some: graph-fusion, multi-view-spectral,",
        ),
        (("-o", "new", "--annotate", "clinic.csv", "--survival", "months,age"), "column 'age' holds"),
    ],
)
def test_wishes_that_cannot_be_met_end_in_one_line_and_nothing_is_written(folder, capsys, arguments, message):
    before = sorted(folder.iterdir())
    code, out, err = run(capsys, "cluster", "genes.csv", "-k", 3, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_an_embedding_that_a_method_does_not_have_is_refused_before_the_fit(folder, capsys, monkeypatch):
    def fitted(*_, **__):
        raise AssertionError("the fit began")

    monkeypatch.setattr("kernelweave.cli.fitting.fit", fitted)
    code, _, err = run(capsys, "cluster", "genes.csv", "-k", 3, "-o", "new", "--embedding", "--kernel", "rbf")
    assert code == 2
    assert err.endswith("nemo, similarity-network-fusion; name one with --method.\n")


def test_the_methods_said_to_have_an_embedding_are_those_that_document_one():
    for method in METHODS:
        cls = estimator_of(method)
        has = "\nembedding_ : " in cleandoc(cls.__doc__ or "") or issubclass(cls, ScoreClusterer)
        assert method.embeds == has, method.name


def test_files_that_exist_are_not_replaced_and_those_that_are_read_never(folder, capsys):
    (folder / "out").mkdir()
    (folder / "out" / "clusters.csv").write_text("mine\n")
    code, _, err = run(capsys, "cluster", "genes.csv", "-k", 3, "-o", "out", "--explain")
    assert code == 2
    assert "out/clusters.csv exists already" in err
    (folder / "out" / "clusters.csv").rename(folder / "out" / "annotations.csv")
    (folder / "out" / "annotations.csv").write_text((folder / "clinic.csv").read_text())
    arguments = ("-o", "out", "--annotate", "out/annotations.csv", "--overwrite")
    code, _, err = run(capsys, "cluster", "genes.csv", "-k", 3, *arguments)
    assert code == 2
    assert "out/annotations.csv is one of the files to read" in err
