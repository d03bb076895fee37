"""What a careless or hostile user does to the commands: nothing is guessed, nothing of value is overwritten."""

import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave import ParameterError
from kernelweave.cli import catalogue, main
from kernelweave.cli.wording import with_options
from kernelweave.persistence.models import load_with_notes, save_model
from tests.command_server import programs
from tests.estimators.discovery import blobs

pytestmark = pytest.mark.filterwarnings("ignore:View .* has no scatter left")

X, Y = blobs(12)
NAMES = [f"s{i:02}" for i in range(len(X))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with two views in different orders, true labels, a kernel matrix and a graph."""
    monkeypatch.chdir(tmp_path)
    index = pd.Index(NAMES, name="id")
    pd.DataFrame(X[:, :3], index, ["x", "y", "z"]).to_csv("a.csv")
    pd.DataFrame(X[:, 2:], index, ["u", "v"]).iloc[np.random.default_rng(0).permutation(len(X))].to_csv("b.csv")
    pd.DataFrame({"id": NAMES, "label": Y}).to_csv("truth.csv", index=False)
    K = rbf_kernel(X, gamma=0.01)
    pd.DataFrame(K, index, NAMES).to_csv("k.csv")
    edges = [f"{NAMES[i]} {NAMES[j]}\n" for i in range(len(K)) for j in range(i) if K[i, j] > 0.5]
    (tmp_path / "net.txt").write_text("".join(edges))
    return tmp_path


def run(capsys, *arguments):
    """Run the command line; return exit code, standard output and standard error."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys, *arguments):
    """Run a command that must be refused in one line, leaving every file as it is; return the line."""
    before = contents()
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, ""), err
    assert err.count("\n") == 1, err
    assert "[Errno" not in err
    assert ".partial" not in err
    assert contents() == before
    return err


def contents():
    return {path: path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


def saved(capsys, *arguments):
    assert run(capsys, "cluster", *arguments, "-k", 3, "-o", "m", "--quiet")[0] == 0
    return "m/model.kwm"


def figures(path):
    """Return a report without the names of its files."""
    return re.sub(r"\w+\.(csv|txt)", "FILE", path.read_text(encoding="utf-8"))


def process(*arguments, **options):
    command = [programs() / "kernelweave", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **options)


# Rows, views and columns of a saved model


def test_a_report_matches_views_by_name_and_rows_by_id(folder, capsys):
    model = saved(capsys, "a.csv", "b.csv")
    for output, files in {"one.html": ("a.csv", "b.csv"), "two.html": ("b.csv", "a.csv")}.items():
        assert run(capsys, "report", model, *files, "--labels", "truth.csv", "-o", output)[0] == 0
    assert figures(folder / "one.html") == figures(folder / "two.html")


@pytest.mark.parametrize("kind", ["table", "matrix", "graph"])
def test_a_report_of_rows_in_another_order_is_the_same(folder, capsys, kind):
    option, place = {
        "table": ([], "a.csv"),
        "matrix": (["--kernel-matrix"], "k.csv"),
        "graph": (["--graph"], "net.txt"),
    }[kind]
    model = saved(capsys, *option, place)
    assert run(capsys, "report", model, *option, place, "-o", "one.html")[0] == 0
    if kind == "graph":
        (folder / place).write_text("".join(reversed((folder / place).read_text().splitlines(keepends=True))))
    else:
        table = pd.read_csv(place, index_col=0).iloc[::-1]
        (table[table.index] if kind == "matrix" else table).to_csv(place)
    assert run(capsys, "report", model, *option, place, "-o", "two.html")[0] == 0
    assert figures(folder / "one.html") == figures(folder / "two.html")


def test_labels_without_ids_go_with_the_rows_of_the_files_given(folder, capsys):
    model = saved(capsys, "a.csv")
    pd.read_csv("a.csv").iloc[::-1].to_csv("r.csv", index=False)
    (folder / "plain.csv").write_text("".join(f"class {c}\n" for c in reversed(Y)))
    pd.DataFrame({"id": NAMES, "label": [f"class {c}" for c in Y]}).to_csv("named.csv", index=False)
    assert run(capsys, "report", model, "r.csv", "--labels", "plain.csv", "-o", "one.html")[0] == 0
    assert run(capsys, "report", model, "r.csv", "--labels", "named.csv", "-o", "two.html")[0] == 0
    assert figures(folder / "one.html") == figures(folder / "two.html")


def test_a_report_of_other_samples_is_refused_with_an_example(folder, capsys):
    model = saved(capsys, "a.csv")
    pd.read_csv("a.csv", index_col=0).rename(index={"s05": "t05"}).to_csv("other.csv")
    err = refused(capsys, "report", model, "other.csv", "-o", "r.html")
    assert "1 id(s) of the model are missing from the files, such as 's05'" in err
    assert "and others appear instead, such as 't05'" in err


def test_a_report_of_other_views_or_columns_names_them(folder, capsys):
    model = saved(capsys, "a.csv", "b.csv")
    err = refused(capsys, "report", model, "a.csv", "c=b.csv")
    assert "has the views a, b, but the files are a (a.csv), c (b.csv); missing: b; name them as b=FILE" in err
    assert "b.csv: 3 column(s) of the model are missing, such as 'x'" in refused(
        capsys, "report", model, "a=b.csv", "b=a.csv"
    )
    assert "give a file for each of the views a, b" in refused(capsys, "report", model)
    assert "was fitted on several views, not on a graph" in refused(capsys, "report", model, "--graph", "net.txt")
    assert "not on a kernel matrix" in refused(capsys, "report", model, "--kernel-matrix", "k.csv")


def test_a_report_without_files_asks_for_those_of_the_model(folder, capsys):
    for arguments, asked in (
        (("a.csv",), "give one table, as FILE"),
        (("--kernel-matrix", "k.csv"), "give --kernel-matrix FILE"),
        (("--graph", "net.txt"), "give --graph FILE"),
    ):
        model = saved(capsys, *arguments, "--overwrite")
        assert asked in refused(capsys, "report", model)


def test_files_without_ids_are_taken_in_their_order_and_that_is_told(folder, capsys):
    model = saved(capsys, "a.csv")
    np.save("a.npy", X[:, :3])
    code, _, err = run(capsys, "report", model, "a.npy", "-o", "r.html")
    assert code == 0
    assert "warning: The files have no ids" in err
    assert run(capsys, "cluster", "a.npy", "-k", 3, "-o", "n", "--quiet")[0] == 0
    code, _, err = run(capsys, "report", "n/model.kwm", "a.npy", "-o", "s.html")
    assert (code, err) == (0, "report: s.html\n")


def with_notes(path, change):
    """Change the notes of a saved model."""
    model, notes = load_with_notes(path)
    save_model(model, path, notes=change(notes))


def test_models_saved_before_ids_were_kept_still_load(folder, capsys):
    model = saved(capsys, "a.csv", "b.csv")
    with_notes(model, lambda notes: {name: notes[name] for name in ("columns", "kind", "method")})
    assert run(capsys, "report", model, "a.csv", "b.csv", "-o", "r.html")[0] == 0
    assert run(capsys, "predict", model, "b.csv", "a.csv")[0] == 0
    assert "made from 36 samples, but the files hold 2" in refused(capsys, "report", model, few(folder), "-o", "s.html")


def few(folder):
    (folder / "few.csv").write_text("id,x\nq,1\nr,2\n")
    return "few.csv"


def test_ids_too_long_to_keep_are_left_out_of_the_model_and_that_is_told(folder, capsys, monkeypatch):
    monkeypatch.setattr("kernelweave.cli.output_files.LARGEST_IDS", 100)
    code, _, err = run(capsys, "cluster", "a.csv", "-k", 3, "-o", "m")
    assert code == 0
    assert "warning: The ids are too long to be kept in the model" in err
    assert run(capsys, "report", "m/model.kwm", "a.csv", "-o", "r.html")[0] == 0


@pytest.mark.parametrize("notes", [{}, {"columns": ["x", "y"]}, {"kind": "of my own", "rows": 5}])
def test_notes_that_others_wrote_say_nothing(folder, capsys, notes):
    model = saved(capsys, "a.csv")
    with_notes(model, lambda _: notes)
    assert run(capsys, "predict", model, "a.csv")[0] == 0
    assert run(capsys, "report", model, "a.csv", "-o", "r.html")[0] == 0
    assert "b.csv: there are 2 column(s), but the model has 3" in refused(capsys, "predict", model, "b.csv")


@pytest.mark.parametrize("name", ["columns", "rows", "views"])
@pytest.mark.parametrize("value", [5, "x", [5], {"a": 5}])
def test_damaged_notes_are_refused(folder, capsys, name, value):
    model = saved(capsys, "a.csv", "b.csv")
    with_notes(model, lambda notes: notes | {name: value})
    for command in ("predict", "report"):
        assert f"its notes on {name}" in refused(capsys, command, model, "a.csv", "b.csv")


def test_similarities_to_old_samples_are_put_into_their_order(folder, capsys):
    model = saved(capsys, "--kernel-matrix", "k.csv")
    table = pd.read_csv("k.csv", index_col=0)
    code, known, _ = run(capsys, "predict", model, "k.csv")
    assert code == 0
    table[np.random.default_rng(0).permutation(NAMES)].to_csv("mixed.csv")
    assert run(capsys, "predict", model, "mixed.csv") == (0, known, "")
    table.rename(columns={"s05": "t05"}).to_csv("other.csv")
    assert "1 column(s) of the model are missing, such as 's05'" in refused(capsys, "predict", model, "other.csv")
    table.drop(columns="s05").to_csv("fewer.csv")
    err = refused(capsys, "predict", model, "fewer.csv")
    assert "fitted on a kernel matrix of 36 samples" in err
    assert "35 column(s) and none for 's05'" in err


def test_tables_of_another_width_are_named_with_the_columns_of_the_model(folder, capsys):
    model = saved(capsys, "a.csv", "b.csv")
    np.save("a.npy", X[:, :2])
    np.save("b.npy", X[:, 2:])
    pd.DataFrame(X[:, :2], NAMES).to_csv("a_bare.csv", header=False)
    for command in ("predict", "report"):
        assert "a.npy: there are 2 column(s), but view 'a' of the model has 3 (x, y, z)" in refused(
            capsys, command, model, "a.npy", "b.npy"
        )
        assert "a_bare.csv: there are 2 column(s), but view 'a'" in refused(
            capsys, command, model, "a=a_bare.csv", "b.csv"
        )


def test_columns_in_another_order_are_refused_with_the_first(folder, capsys):
    model = saved(capsys, "a.csv")
    pd.read_csv("a.csv", index_col=0)[["x", "z", "y"]].to_csv("reordered.csv")
    for command in ("predict", "report"):
        assert "another order than those of the model: 'y' belongs where 'z' is" in refused(
            capsys, command, model, "reordered.csv"
        )


# Options


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["--set", "n_clusters=5"], "-k"),
        (["--set", "random_state=5", "--seed", "3"], "--seed"),
        (["--set", "random_state=5", "--seed", "0"], "--seed"),
        (["--set", "p=5", "--p", "3"], "--p"),
        (["--set", "kernel=rbf", "--kernel", "linear"], "--kernel"),
        (["--set", 'kernel_params={"sigma": 1}', "--kernel-param", "sigma=2"], "--kernel-param"),
    ],
)
def test_what_an_option_says_cannot_be_set_otherwise(folder, capsys, arguments, option):
    assert f"{option} sets this parameter" in refused(capsys, "cluster", "a.csv", "b.csv", "-k", 3, *arguments)


def test_a_seed_that_is_set_is_the_seed_of_the_summary(folder, capsys):
    code, out, _ = run(capsys, "cluster", "a.csv", "-k", 3, "--set", "random_state=5", "--json", "--quiet")
    assert code == 0
    assert (json.loads(out)["seed"], json.loads(out)["parameters"]["random_state"]) == (5, 5)


def test_parameters_and_kernels_of_views_are_given_once(folder, capsys):
    assert "given twice" in refused(capsys, "cluster", "a.csv", "-k", 3, "--set", "n_init=2", "--set", "n_init=3")
    kernels = ["--kernel", "a=rbf", "--kernel", "a=linear"]
    assert "names a view twice" in refused(capsys, "cluster", "a.csv", "b.csv", "-k", 3, *kernels)


@pytest.mark.parametrize("text", ["2:200000000", "2:99999999999", "999999999999999"])
def test_more_clusters_than_samples_are_refused_before_they_are_counted_out(folder, capsys, text):
    assert f"-k {text}: there are only 36 samples" in refused(capsys, "cluster", "a.csv", "-k", text)


@pytest.mark.parametrize("text", ["٣", "2:٣", "³", "1_0", "+3", "3.0", "2:3:4", "2:3,4", ":", "", "9" * 5000])
def test_numbers_of_clusters_are_written_in_plain_digits(folder, capsys, text):
    for command in ("cluster", "compare"):
        assert "-k" in refused(capsys, command, "a.csv", "-k", text)


def test_a_comparison_without_a_number_says_what_is_missing(folder, capsys):
    assert "-k is missing" in refused(capsys, "compare", "a.csv")
    for text in ("1", "2:3"):
        assert f"-k {text}: give one number, 2 or more" in refused(capsys, "compare", "a.csv", "-k", text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--kernel", "rbff"],
            r"--kernel rbff: there is no such kernel\. Did you mean rbf\? There are chi2, .*sigmoid\.$",
        ),
        (["--p", "0.5"], r"--p must be a number in the range \[1\.0, 100\.0\] or auto; got 0\.5\.$"),
        (["--seed", "4294967296"], r"'--seed'"),
        (["--set", "random_state=-5"], r"--seed must be a whole number in the range \[0, 4294967295\]; got -5\.$"),
        (["--set", "n_init=none"], r"--set n_init must be a whole number in the range \[1, inf\); got 'none'\.$"),
        (["--kernel", "rbf", "--kernel-param", "size=1"], r"--kernel-param holds size, unknown to --kernel rbf"),
        (["--method", "multi-view-kmeans", "--p", "2"], r"multi-view-kmeans takes no --p\.$"),
    ],
)
def test_bad_parameters_are_told_with_options(folder, capsys, arguments, message):
    assert re.search(message, refused(capsys, "cluster", "a.csv", "b.csv", "-k", 3, *arguments))


def test_advice_of_warnings_reads_as_options():
    advice = "Leave it out, or set view_weights='uniform'."
    assert with_options(advice) == "Leave it out, or --set view_weights=uniform."
    assert with_options("n_clusters=3 is too many.") == "-k 3 is too many."
    for plain in ("Add --set view_weights=uniform.", "View 'kernel=a' is empty.", "a/p=2.csv is not a table."):
        assert with_options(plain) == plain


# Outputs


def test_inputs_are_never_written_over(folder, capsys):
    model = saved(capsys, "a.csv")
    (folder / "linked.csv").symlink_to("a.csv")
    (folder / "in").mkdir()
    (folder / "in" / "labels.csv").write_text((folder / "a.csv").read_text())
    for arguments in (
        ("cluster", "a.csv", "-k", 3, "--report", "a.csv"),
        ("cluster", "view=a.csv", "-k", 3, "--report", folder / "a.csv"),
        ("cluster", "a.csv", "-k", 3, "--report", "linked.csv"),
        ("cluster", "a.csv", "-k", 3, "--labels", "truth.csv", "--report", "truth.csv"),
        ("cluster", "in/labels.csv", "-k", 3, "-o", "in"),
        ("cluster", "--kernel-matrix", "k.csv", "-k", 3, "--report", "k.csv"),
        ("cluster", "--graph", "net.txt", "-k", 3, "--report", "net.txt"),
        ("predict", model, "a.csv", "-o", "a.csv"),
        ("predict", model, "a.csv", "-o", model),
        ("report", model, "a.csv", "-o", "a.csv"),
        ("compare", "a.csv", "-k", 3, "-o", "a.csv"),
    ):
        assert "is one of the files to read; choose another place" in refused(capsys, *arguments, "--overwrite")


def test_files_that_look_like_unfinished_ones_are_left_alone(folder, capsys):
    truth = (folder / "truth.csv").read_text()
    (folder / "r.html.partial").write_text(truth)
    assert run(capsys, "cluster", "a.csv", "-k", 3, "--labels", "r.html.partial", "--report", "r.html", "-q")[0] == 0
    assert (folder / "r.html.partial").read_text() == truth


def test_two_outputs_do_not_share_a_place(folder, capsys):
    for place in ("new", "new/labels.csv"):
        err = refused(capsys, "cluster", "a.csv", "-k", 3, "-o", "new", "--report", place)
        assert f"--report: {place} is written by --output too" in err


def test_a_report_may_lie_in_the_folder_that_is_made(folder, capsys):
    assert run(capsys, "cluster", "a.csv", "-k", 3, "-o", "new", "--report", "new/r.html", "--quiet")[0] == 0
    assert (folder / "new" / "r.html").exists()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no folder that takes no files")
def test_nothing_is_written_where_one_of_the_outputs_cannot_be(folder, capsys):
    err = refused(capsys, "cluster", "a.csv", "-k", 3, "-o", "new", "--report", "/proc/r.html")
    assert "/proc/r.html: this file cannot be written" in err
    assert "this folder cannot be created" in refused(
        capsys, "cluster", "a.csv", "-k", 3, "-o", "/proc/new", "--report", "r.html"
    )
    assert "cannot be written" in refused(capsys, "compare", "a.csv", "-k", 3, "-o", "/proc/all.csv")


def test_devices_and_folders_are_not_replaced(folder, capsys):
    model = saved(capsys, "a.csv")
    (folder / "new").mkdir()
    (folder / "new" / "model.kwm").mkdir()
    assert "it is a folder" in refused(capsys, "cluster", "a.csv", "-k", 3, "-o", "new", "--overwrite")
    err = refused(capsys, "predict", model, "a.csv", "-o", os.devnull, "--overwrite")
    assert "not a regular file" in err
    too_long = "x" * 300
    assert "name too long" in refused(capsys, "predict", model, "a.csv", "-o", too_long).lower()


def test_errors_of_the_system_while_writing_are_told_in_a_line(folder, capsys, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device", str(source))

    monkeypatch.setattr(os, "replace", full)
    code, _, err = run(capsys, "compare", "a.csv", "-k", 3, "--method", "kernel-kmeans", "-o", "all.csv")
    assert (code, err) == (2, "kernelweave compare: all.csv: No space left on device.\n")
    assert not [each.name for each in folder.iterdir() if "partial" in each.name or "all.csv" in each.name]


def test_files_that_cannot_be_written_leave_the_older_report_in_place(folder, capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "new/labels.csv")

    monkeypatch.setattr("kernelweave.cli.output_files.write_files", full)
    (folder / "r.html").write_text("older")
    err = refused(capsys, "cluster", "a.csv", "-k", 3, "-o", "new", "--report", "r.html", "--overwrite")
    assert err == "kernelweave cluster: new/labels.csv: No space left on device.\n"


@pytest.mark.parametrize("report", ["r.html", "new/r.html"])
def test_a_report_that_cannot_be_made_leaves_no_folder_behind(folder, capsys, monkeypatch, report):
    def refuse(*_, **__):
        raise ParameterError("no report of this")

    monkeypatch.setattr("kernelweave.evaluation.report.write_report", refuse)
    assert "no report of this" in refused(capsys, "cluster", "a.csv", "-k", 3, "-o", "new", "--report", report)


def test_labels_of_new_samples_go_to_the_file_and_json_to_standard_output(folder, capsys):
    model = saved(capsys, "a.csv")
    code, out, err = run(capsys, "predict", model, "a.csv", "--json", "-o", "p.csv")
    assert (code, err) == (0, "labels: p.csv\n")
    table = pd.read_csv("p.csv")
    assert dict(zip(table["id"], table["label"], strict=True)) == json.loads(out)
    for option in ("-q", "--quiet"):
        assert run(capsys, "predict", model, "a.csv", "-o", "p.csv", "--overwrite", option) == (0, "", "")


# Standard output


def printing(model):
    """Return commands that write to standard output."""
    return (
        ("cluster", "a.csv", "-k", "3", "--quiet"),
        ("predict", model, "a.csv"),
        ("methods",),
        ("compare", "a.csv", "-k", "3", "--method", "kernel-kmeans", "-q"),
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
def test_a_full_disk_behind_standard_output_is_told_in_a_line(folder, capsys):
    model = saved(capsys, "a.csv")
    for arguments in printing(model):
        with open("/dev/full", "w") as full:
            done = process(*arguments, stdout=full)
        assert done.returncode == 2
        assert done.stderr == (
            f"kernelweave {arguments[0]}: Cannot write to standard output: No space left on device.\n"
        )


@pytest.mark.skipif(os.name == "nt", reason="pipes are closed in another way there")
def test_a_reader_that_has_enough_does_not_change_the_exit_code(folder, capsys):
    model = saved(capsys, "a.csv")
    for arguments in (
        *printing(model),
        ("reproduce", "list"),
        ("scoreboard", "--list"),
        ("--help",),
    ):
        reader, writer = os.pipe()
        os.close(reader)
        done = process(*arguments, stdout=writer)
        os.close(writer)
        assert (done.returncode, done.stderr) == (0, ""), arguments


def test_screens_without_block_signs_get_plain_ones(folder):
    method = ("--method", "multi-view-spectral", "--set", "view_weights=uniform")
    arguments = ("cluster", "a.csv", "b.csv", "-k", "2:3", *method)
    done = process(*arguments, stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert re.search(r"^a +0\.500 +#{30}", done.stderr, flags=re.MULTILINE)
    assert "<- chosen" in done.stderr
    assert "\\u" not in done.stderr


def test_ids_that_standard_output_cannot_take_are_told_in_a_line(folder):
    (folder / "a.csv").write_text((folder / "a.csv").read_text().replace("s05", "Ж5"), encoding="utf-8")
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = process("cluster", "a.csv", "-k", "3", "--quiet", stdout=subprocess.PIPE, env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith("kernelweave cluster: Standard output takes latin-1 only, and there is '\\u0416'")
    assert done.stderr.count("\n") == 1


def test_names_of_views_are_no_markup(folder, capsys):
    code, _, err = run(capsys, "cluster", "[/x]=a.csv", "[red]=b.csv", "-k", 3, "--set", "view_weights=uniform")
    assert code == 0
    assert re.search(r"^\[/x\] +0\.500", err, flags=re.MULTILINE)


def test_signs_that_steer_terminals_are_written_out_in_messages(folder, capsys):
    err = refused(capsys, "cluster", "\x1b[31m\u202ea.csv", "-k", 3)
    assert r"\x1b[31m\u202ea.csv" in err


def test_methods_are_listed_within_the_width_asked_for(capsys, monkeypatch):
    for columns in (40, 79, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        code, out, _ = run(capsys, "methods")
        assert code == 0
        assert max(map(len, out.splitlines())) <= columns
        assert "multi-view-kernel-spectral" in out


def test_the_code_of_a_graph_knows_what_parts_its_entries(folder, capsys):
    (folder / "net.csv").write_text((folder / "net.txt").read_text().replace(" ", ","))
    code, out, _ = run(capsys, "cluster", "--graph", "net.csv", "--delimiter", ",", "-k", 3, "--json", "--quiet")
    assert code == 0
    result, scope = json.loads(out), {}
    exec(result["code"], scope)
    assert scope["labels"].tolist() == list(result["labels"].values())


# Comparisons


def test_methods_that_do_not_take_the_numbers_are_left_out_unless_named(folder, capsys, monkeypatch):
    code, out, err = run(capsys, "compare", "a.csv", "b.csv", "-k", 3, "-o", "all.csv")
    assert code == 0, err
    assert "multi-view-nmf" not in out
    least = pd.read_csv("a.csv", index_col=0).to_numpy().min()
    assert f"multi-view-nmf left out: it takes non-negative numbers only, and a.csv holds {least:.6g}." in err
    assert "multi-view-nmf" not in pd.read_csv("all.csv").columns
    code, out, _ = run(capsys, "compare", "a.csv", "-k", 3, "--json", "--method", "multi-view-nmf")
    assert code == 1
    assert list(json.loads(out)["failed"]) == ["multi-view-nmf"]


def test_methods_that_are_left_out_are_in_the_json(folder, capsys, monkeypatch):
    few = [method for method in catalogue.METHODS if method.name in ("multi-view-kernel-kmeans", "multi-view-nmf")]
    monkeypatch.setattr(catalogue, "METHODS", few)
    code, out, _ = run(capsys, "compare", "a.csv", "b.csv", "-k", 3, "--json")
    assert code == 0
    assert list(json.loads(out)["left_out"]) == ["multi-view-nmf"]
    for name in ("a.csv", "b.csv"):
        pd.read_csv(name, index_col=0).abs().to_csv(name)
    code, out, _ = run(capsys, "compare", "a.csv", "b.csv", "-k", 3, "--json")
    result = json.loads(out)
    assert (code, result["left_out"]) == (0, {})
    assert "multi-view-nmf" in [one["method"] for one in result["methods"]]
    code, out, _ = run(capsys, "compare", "a.csv", "b.csv", "-k", 3, "--json", "--scale", "standard")
    assert (code, list(json.loads(out)["left_out"])) == (0, ["multi-view-nmf"])


# Everyday trials


@pytest.fixture
def wines(tmp_path, monkeypatch):
    """Go to a folder with a table, a kernel matrix with negative values, and a model of each."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(np.repeat([[0.0, 0.0], [4.0, 1.0], [0.0, 5.0]], 8, axis=0) + rng.normal(0, 0.3, (24, 2)))
    table.columns, table.index = ["a", "b"], pd.Index([f"w{i}" for i in range(24)], name="id")
    table.to_csv("wine.csv")
    pd.DataFrame(np.corrcoef(rng.normal(size=(24, 9)))).to_csv("similar.csv", index=False, header=False)
    assert main(["cluster", "wine.csv", "-k", "3", "-o", "out", "-q"]) == 0
    return table


def test_a_folder_in_place_of_a_model_is_told_with_the_model_in_it(wines, capsys):
    for command in ("predict", "report"):
        assert main([command, "out", "wine.csv"]) == 2
        assert capsys.readouterr().err == f"kernelweave {command}: out: this is a folder; give out/model.kwm.\n"


def test_a_report_on_other_values_says_so(wines, capsys, tmp_path):
    assert main(["report", "out/model.kwm", "wine.csv", "-o", "same.html"]) == 0
    assert "warning" not in capsys.readouterr().err
    wines.iloc[::-1].round(9).to_csv("wine.csv")
    assert main(["report", "out/model.kwm", "wine.csv", "-o", "reordered.html"]) == 0
    assert "warning" not in capsys.readouterr().err
    (wines + 1.0).to_csv("wine.csv")
    assert main(["report", "out/model.kwm", "wine.csv", "-o", "other.html"]) == 0
    assert "warning: The files hold different values from those the model was made from" in capsys.readouterr().err
    assert "The files hold different values" in (tmp_path / "other.html").read_text(encoding="utf-8")


def test_a_column_the_model_does_not_know_may_be_one_of_ids(wines, capsys):
    wines.reset_index(drop=True).assign(bottle=range(24))[["a", "b", "bottle"]].to_csv("new.csv", index=False)
    assert main(["predict", "out/model.kwm", "new.csv"]) == 2
    assert capsys.readouterr().err.rstrip().endswith("If it holds ids, use --ids bottle.")
    assert main(["predict", "out/model.kwm", "new.csv", "--ids", "bottle"]) == 0


def test_methods_that_refuse_a_kernel_are_left_out_unless_they_are_named(wines, capsys):
    assert main(["compare", "--kernel-matrix", "similar.csv", "-k", "2"]) == 0
    err = capsys.readouterr().err
    assert "ng-spectral left out: Sample" in err
    assert "failed" not in err
    assert main(["compare", "--kernel-matrix", "similar.csv", "-k", "2", "--method", "ng-spectral"]) == 1
    assert "ng-spectral failed" in capsys.readouterr().err
