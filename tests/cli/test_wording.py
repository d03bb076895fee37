"""Arguments of Python become options of the command line, and lower layers know none of these."""

import re
from pathlib import Path

import pytest

import kernelweave
from kernelweave.cli import main, wording
from kernelweave.cli.wording import error_text, with_options
from kernelweave.datasets import graphs
from kernelweave.foundation.errors import Argument, DataError, ParameterError, Remedy

PACKAGE = Path(kernelweave.__file__).parent
LOWER = (
    "foundation",
    "inputs",
    "datasets",
    "backends",
    "kernels",
    "partitions",
    "solvers",
    "estimators",
    "preprocessing",
)


@pytest.mark.parametrize("layer", LOWER)
def test_lower_layers_name_no_options(layer):
    for path in (PACKAGE / layer).rglob("*.py"):
        assert not re.search(r"--[a-z]", path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(
    ("argument", "option"),
    [
        (Argument("delimiter", ";"), "--delimiter ';'"),
        (Argument("delimiter", " "), "--delimiter ' '"),
        (Argument("delimiter", "\t"), "--delimiter tab"),
        (Argument("header", True), "--header"),
        (Argument("header", False), "--no-header"),
        (Argument("ids", "none"), "--ids none"),
        (Argument("rows", "common"), "--rows common"),
    ],
    ids=str,
)
def test_arguments_of_readers_are_written_as_options(argument, option):
    assert error_text(DataError("x.csv: use ", argument, ".")) == f"x.csv: use {option}."


def test_text_around_arguments_is_left_as_it_is():
    name = "delimiter=';'.csv"
    assert error_text(DataError(f"{name}: use ", Argument("delimiter", ","), ".")) == f"{name}: use --delimiter ','."
    assert error_text(DataError(f"{name}: there is no such file.")) == f"{name}: there is no such file."
    assert error_text(ParameterError(Argument("comments", "#"), " is new.")) == "comments='#' is new."


def test_every_remedy_for_edge_lists_has_its_words_here():
    assert set(wording.GRAPH_REMEDIES) == set(graphs.REMEDIES)
    for fault, text in graphs.REMEDIES.items():
        assert error_text(DataError("x: ", Remedy(fault, text))) == f"x: {wording.GRAPH_REMEDIES[fault]}"
    assert error_text(DataError("x: ", Remedy("unknown", "Do this."))) == "x: Do this."


def test_parameters_of_estimators_are_written_as_options():
    assert with_options("Set p=2.5 or kernel='rbf'.") == "Set --p 2.5 or --kernel rbf."
    assert with_options("Or set tol=0.1.") == "Or --set tol=0.1."


FILES = {
    "counts": (
        "0,1\n1,2\n3,4\n",
        r"x\.csv:1: .* use --header if it names the columns, or --no-header if it is a sample\.",
    ),
    "ids alone": ("id\na\nb\n", r"x\.csv:2: .* add some, or use --ids none if it is data\."),
    "thousands": ("a;b\n1,000;2\n3;4\n", r"x\.csv:2: '1,000' may have .*; use --decimal ',' or --decimal '\.'\."),
}


@pytest.mark.parametrize("command", ["cluster", "compare"])
@pytest.mark.parametrize("fault", FILES)
def test_faults_of_files_are_explained_in_options_by_every_command(tmp_path, monkeypatch, capsys, fault, command):
    monkeypatch.chdir(tmp_path)
    content, message = FILES[fault]
    Path("x.csv").write_text(content)
    assert main([command, "x.csv", "-k", "2"]) == 2
    assert re.fullmatch(rf"kernelweave {command}: {message}\n", capsys.readouterr().err)


def test_rows_and_delimiters_are_explained_in_options(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,x\na,1\nb,2\n")
    Path("b.csv").write_text("id,y\na,1\nc,2\n")
    assert main(["cluster", "a.csv", "b.csv", "-k", "2"]) == 2
    assert capsys.readouterr().err.endswith(
        "keep the samples they have in common with --rows common, or keep all samples with --rows all.\n"
    )
    assert main(["cluster", "a.csv", "-k", "2", "--delimiter", ";;"]) == 2
    expected = "--delimiter ';;': give one character, such as --delimiter ';' or --delimiter tab."
    assert capsys.readouterr().err == f"kernelweave cluster: {expected}\n"
