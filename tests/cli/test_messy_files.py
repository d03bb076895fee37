"""Incomplete and mixed files on the command line: missing patients, empty cells, text, dates, and new patients."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from kernelweave.cli import main

pytestmark = pytest.mark.filterwarnings("ignore:.*which views the samples are in")

N = 60
GROUP = np.repeat([0, 1, 2], N // 3)
IDS = [f"p{i:02}" for i in range(N)]
FILES = ("clinical.csv", "genes.csv")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Go to a folder with a clinical table and one of genes, each without some patients and cells."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    index = pd.Index(IDS, name="patient")
    clinical = pd.DataFrame(
        {
            "age": (40 + 12 * GROUP + rng.normal(0, 2, N)).round(1),
            "sex": np.where(rng.random(N) < 0.5, "male", "female"),
            "smokes": np.where(rng.random(N) < 0.5, "TRUE", "FALSE"),
            "seen": (pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.permutation(N), unit="D")).strftime("%Y-%m-%d"),
            "ward": "B",
        },
        index=index,
    )
    clinical.loc["p05", "age"] = np.nan
    clinical.loc["p06", "sex"] = None
    genes = pd.DataFrame(rng.normal(size=(N, 3)) + 8.0 * np.eye(3)[GROUP], index=index, columns=["g1", "g2", "g3"])
    genes.loc["p10", "g2"] = np.nan
    clinical.drop(["p00", "p20", "p40"]).to_csv("clinical.csv", na_rep="NA")
    genes.drop(["p01", "p59"]).sample(frac=1, random_state=0).to_csv("genes.csv")
    pd.Series(GROUP, index=index, name="label").to_csv("truth.csv")
    return tmp_path


def run(capsys, *arguments):
    """Run the command line; return exit code, standard output and standard error."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys, *arguments):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err


def labels_of(text):
    rows = [line.split(",") for line in text.strip().splitlines()]
    return {name: int(label) for name, label, *_ in rows[1:]}


@pytest.fixture
def model(folder, capsys):
    """Return a model of both files, with all patients and missing cells filled."""
    code, _, err = run(
        capsys, "cluster", *FILES, "-k", 3, "--rows", "all", "--missing", "median", "-o", "out", "--report", "r.html"
    )
    assert code == 0, err
    return "out/model.kwm"


def test_all_patients_get_labels_and_the_summary_tells_what_was_done(folder, model):
    labels = labels_of((folder / "out" / "labels.csv").read_text())
    assert sorted(labels) == IDS
    assert adjusted_rand_score(GROUP, [labels[name] for name in IDS]) > 0.85
    told = json.loads((folder / "out" / "summary.json").read_text())["input"]
    assert told["left_out"] == 0
    assert told["missing"] == "median"
    notes = told["views"]["clinical"].pop("notes")
    assert told["views"] == {
        "clinical": {"rows": 57, "used": 57, "absent": 3, "filled": 2},
        "genes": {"rows": 58, "used": 58, "absent": 2, "filled": 1, "notes": []},
    }
    assert notes == [
        "sex as categories (female, male)",
        "smokes as 1 (true) and 0 (false)",
        "seen set aside (a date; --dates seen makes days of it)",
        "ward set aside (the same in all rows)",
    ]


def test_the_report_tells_what_was_done(folder, model):
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "clinical: 57 rows read, 57 used, 3 absent, 2 missing cells filled (median)." in page
    assert "clinical: seen set aside (a date; --dates seen makes days of it)" in page


def test_the_screen_shows_rows_absent_samples_filled_cells_and_notes(folder, capsys):
    _, _, err = run(capsys, "cluster", *FILES, "-k", 3, "--rows", "all", "--missing", "mean", "--dates", "seen")
    lines = [" ".join(line.split()) for line in err.splitlines()]
    assert "left out 0 of 60 samples" in lines
    assert "clinical 57 57 3 2 (mean)" in lines
    assert "genes 58 58 2 1 (mean)" in lines
    assert "note: clinical: seen as days since 2021-01-01" in lines


def test_complete_files_are_called_complete(folder, capsys):
    pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), index=IDS[:20]).to_csv("whole.csv", index_label="id")
    _, _, err = run(capsys, "cluster", "whole.csv", "-k", 2)
    assert "20, all used and complete" in err


def test_common_rows_and_dropped_samples_are_counted(folder, capsys):
    _, out, _ = run(capsys, "cluster", *FILES, "-k", 3, "--rows", "common", "--missing", "drop", "--json")
    told = json.loads(out)
    assert len(told["labels"]) == 55
    assert told["input"]["left_out"] == 5
    assert {name: each["absent"] for name, each in told["input"]["views"].items()} == {"clinical": 2, "genes": 1}
    _, out, _ = run(capsys, "cluster", "clinical.csv", "-k", 2, "--missing", "drop", "--json")
    told = json.loads(out)
    assert not {"p05", "p06"} & set(told["labels"])
    assert (told["input"]["left_out"], told["input"]["views"]["clinical"]["used"]) == (2, 55)


def test_the_code_in_the_summary_repeats_the_labels(folder, model):
    summary = json.loads((folder / "out" / "summary.json").read_text())
    namespace = {}
    exec(summary["code"], namespace)
    labels = labels_of((folder / "out" / "labels.csv").read_text())
    assert namespace["labels"].tolist() == list(labels.values())
    assert "--rows all --missing median" in summary["command"]


# Decisions of the user


def test_missing_patients_and_cells_are_errors_without_a_decision(folder, capsys):
    assert "column 4 ('smokes')" not in refused(capsys, "cluster", *FILES, "-k", 3)
    err = refused(capsys, "cluster", *FILES, "-k", 3, "--rows", "all")
    assert "clinical.csv:6: column 2 ('age') has no value" in err
    assert "--missing median" in err
    err = refused(capsys, "cluster", *FILES, "-k", 3, "--missing", "median")
    assert "--rows common" in err
    assert "--rows all" in err


def test_an_empty_cell_of_a_column_that_is_not_used_does_not_matter(folder, capsys):
    code, out, err = run(capsys, "cluster", *FILES, "-k", 3, "--rows", "all", "--drop", "age,sex", "--drop", "genes:g2")
    assert code == 0, err
    assert sorted(labels_of(out)) == IDS


def test_columns_are_chosen_by_name_pattern_and_view(folder, capsys):
    arguments = ("--rows", "all", "--missing", "knn", "--columns", "clinical:age,clinical:s*,genes:g?")
    code, _, err = run(capsys, "cluster", *FILES, "-k", 3, *arguments, "--categorical", "clinical:smokes")
    assert code == 0, err
    assert "smokes as categories (FALSE, TRUE)" in err
    assert "ward" not in err
    err = refused(capsys, "cluster", *FILES, "-k", 3, "--drop", "clinical:g1")
    assert "--drop clinical:g1: there is no such column; the columns are 'age', 'sex'" in err


def test_categories_can_have_an_order(folder, capsys):
    pd.read_csv("clinical.csv").assign(stage=lambda t: np.resize(["I", "III", "II"], len(t))).to_csv(
        "c.csv", index=False
    )
    options = ("-k", 3, "--missing", "median", "-o", "ordered", "--ordered", "c:stage=I<II<III")
    code, _, err = run(capsys, "cluster", "c.csv", *options)
    assert code == 0, err
    assert "stage by the order of its categories (I, II, III)" in err
    summary = json.loads((folder / "ordered" / "summary.json").read_text())
    assert "--ordered 'c:stage=I<II<III'" in summary["command"]
    namespace = {}
    exec(summary["code"], namespace)
    labels = labels_of((folder / "ordered" / "labels.csv").read_text())
    assert namespace["labels"].tolist() == list(labels.values())
    assert "'III', which is not in its order I < II" in refused(capsys, "cluster", "c.csv", "--ordered", "stage=I<II")
    assert "write the column and its categories" in refused(capsys, "cluster", "c.csv", "--ordered", "stage")
    assert "there is no such column" in refused(capsys, "cluster", "c.csv", "--ordered", "stge=I<II")


def test_a_word_among_numbers_is_refused_and_can_be_called_a_category(folder, capsys):
    text = (folder / "genes.csv").read_text().splitlines()
    name, _, *rest = text[1].split(",")
    (folder / "bad.csv").write_text("\n".join([text[0], ",".join([name, "high", *rest]), *text[2:]]) + "\n")
    err = refused(capsys, "cluster", "bad.csv", "-k", 3)
    assert "bad.csv:2: column 2 ('g1') holds 'high', which is not a finite number" in err
    assert "use --categorical g1" in err
    assert run(capsys, "cluster", "bad.csv", "-k", 3, "--drop", "g1", "--missing", "mean")[0] == 0


def test_methods_that_take_complete_samples_say_so_in_one_line(folder, capsys):
    err = refused(
        capsys,
        "cluster",
        *FILES,
        "-k",
        3,
        "--rows",
        "all",
        "--missing",
        "mean",
        "--method",
        "similarity-network-fusion",
    )
    assert "--method similarity-network-fusion: it takes complete samples only, and 5 sample(s) are absent" in err
    assert "--rows common" in err
    assert "graph-fusion" in err


def test_methods_that_take_complete_samples_are_left_out_of_comparisons(folder, capsys):
    code, out, err = run(capsys, "compare", "genes.csv", "-k", 3, "--missing", "drop", "--method", "graph-fusion")
    assert code == 0, err
    assert "graph-fusion" in out
    arguments = (
        "-k",
        3,
        "--rows",
        "all",
        "--missing",
        "mean",
        "--method",
        "graph-fusion",
        "--method",
        "similarity-network-fusion",
    )
    code, out, err = run(capsys, "compare", *FILES, *arguments)
    assert code == 1
    assert "graph-fusion" in out
    assert "similarity-network-fusion failed: --method similarity-network-fusion: it takes complete samples only" in err


# New patients


def test_a_patient_with_one_file_gets_a_cluster(folder, model, capsys):
    (folder / "new").mkdir()
    (folder / "new" / "genes.csv").write_text("patient,g1,g2,g3\nnew,0.1,8.2,-0.3\n")
    code, out, err = run(capsys, "predict", model, "new/genes.csv")
    assert code == 0, err
    labels = labels_of((folder / "out" / "labels.csv").read_text())
    assert labels_of(out) == {"new": labels["p25"]}
    assert err == "absent views: clinical; files: genes (new/genes.csv)\n"


def test_a_column_of_the_model_is_no_column_of_ids_in_a_short_file(folder, capsys):
    pd.read_csv("clinical.csv")[["sex", "age"]].dropna().to_csv("c.csv", index=False)
    assert run(capsys, "cluster", "c.csv", "-k", 3, "-o", "few")[0] == 0
    pd.read_csv("c.csv").drop_duplicates("sex").to_csv("new.csv", index=False)
    code, out, err = run(capsys, "predict", "few/model.kwm", "new.csv")
    assert (code, list(labels_of(out))) == (0, ["1", "2"]), err
    pd.read_csv("new.csv").to_csv("bare.csv", index=False, header=False)
    assert "use --ids none" in refused(capsys, "predict", "few/model.kwm", "bare.csv")
    assert run(capsys, "predict", "few/model.kwm", "bare.csv", "--ids", "none")[:2] == (0, out)


def test_new_files_are_encoded_as_the_old_ones(folder, model, capsys):
    line = "new,52.0,diverse,TRUE\nold,64.0,female,\n"
    (folder / "n.csv").write_text(f"patient,age,sex,smokes\n{line}")
    code, out, err = run(capsys, "predict", model, "clinical=n.csv")
    assert code == 0, err
    assert sorted(labels_of(out)) == ["new", "old"]
    assert "warning: n.csv: Column 'sex' holds 'diverse', which did not occur in training" in err
    (folder / "n.csv").write_text("patient,age,smokes\nnew,52.0,TRUE\n")
    assert "1 column(s) of the model are missing, such as 'sex'" in refused(capsys, "predict", model, "clinical=n.csv")
    (folder / "n.csv").write_text("patient,age,sex,smokes\nnew,old,male,TRUE\n")
    assert "'age'" in refused(capsys, "predict", model, "clinical=n.csv")


def test_training_samples_get_their_labels_from_the_same_files(folder, model, capsys):
    code, out, err = run(capsys, "predict", model, *FILES, "--rows", "all")
    assert code == 0, err
    labels = labels_of((folder / "out" / "labels.csv").read_text())
    again = labels_of(out)
    assert np.mean([again[name] == labels[name] for name in IDS]) > 0.95


def test_the_report_of_a_saved_model_reads_its_files_in_the_same_way(folder, model, capsys):
    code, _, err = run(capsys, "report", model, *FILES, "--rows", "all", "-o", "again.html")
    assert code == 0, err
    assert "warning" not in err
    assert "3 absent" in (folder / "again.html").read_text(encoding="utf-8")


def test_a_model_that_knows_no_missing_cells_refuses_them_with_their_place(folder, capsys):
    assert run(capsys, "cluster", *FILES, "-k", 3, "--rows", "all", "--drop", "age,sex,g2", "-o", "out")[0] == 0
    (folder / "n.csv").write_text("patient,g1,g3\nnew,,1.0\n")
    err = refused(capsys, "predict", "out/model.kwm", "genes=n.csv")
    assert "n.csv:2: column 2 ('g1') has no value, and the model was made with --missing error" in err


def test_models_that_need_all_views_say_so(folder, capsys):
    arguments = (
        "-k",
        3,
        "--rows",
        "common",
        "--drop",
        "age,sex,g2",
        "--method",
        "similarity-network-fusion",
        "-o",
        "out",
    )
    code, _, err = run(capsys, "cluster", *FILES, *arguments)
    assert code == 0, err
    (folder / "genes.csv").write_text("patient,g1,g3\nnew,2.0,1.0\n")
    err = refused(capsys, "predict", "out/model.kwm", "genes.csv")
    assert "The model has the views clinical, genes, but the files are genes" in err
    assert "needs all of them" in err
