"""The page of results and the counts in the README, made of a small store of its own."""

from dataclasses import replace

import pytest

from reproduction import (
    Cell,
    Experiment,
    ExperimentResult,
    Printed,
    command,
    experiments,
    page,
    run_experiment,
    stored,
    stored_files,
)
from reproduction.page import END, MARKS, NOTES, PARTS, START, WIDEST, counts_for_readme, not_run, results_page
from reproduction.tables import table_of
from reproduction.unavailable import UNAVAILABLE

ROW = {
    "error_mean": 10.0,
    "error_std": 2.0,
    "nmi": 0.75,
    "ari": 0.5,
    "accuracy": 1234.5,
    "found": 1.0,
}


def row(restarts, seed):
    return ROW


def claims(restarts, seed):
    return {"holds": 1.0, "fails": 0.25}


def wide(restarts, seed):
    return {f"figure_{i}": float(i) for i in range(WIDEST + 1)}


PRINTED = {
    "error_mean": Printed(10.1, statistic="mean", spread=2.0, runs=100, decimals=1),
    "error_std": Printed(4.0, statistic="deviation", runs=100, decimals=1),
    "nmi": Printed(0.7, rule="at least"),
    "ari": Printed(0.5, fitted=True),
    "accuracy": Printed(1300.0, decimals=0),
}
TOY = Experiment(
    id="toy",
    title="Toy | left",
    source="PhD table 2.5",
    preprocessing="None.",
    protocol="Four restarts.",
    cells={
        "row": Cell("Row | one", row, printed=PRINTED, restarts=4),
        "other": Cell("Other", row, printed=PRINTED, restarts=1),
        "claims": Cell(
            "Claims",
            claims,
            printed={
                "holds": Printed(1.0, statistic="claim", source="PhD 2.5, text on table 2.5: it holds"),
                "fails": Printed(1.0, statistic="claim", source="PhD table 2.5, rows compared"),
            },
        ),
        "unprinted": Cell("Unprinted", row),
        "wide": Cell("Wide", wide),
        "not-stored": Cell("Not stored", row, printed=PRINTED),
    },
)
EMPTY = Experiment(id="empty", title="Never stored", source="PhD table 2.6", cells={"row": Cell("Row", row)})


def module(name):
    return [TOY, EMPTY] if name == "minmax" else []


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_files, "FOLDER", tmp_path / "stored")
    monkeypatch.setattr(page, "NOTES", tmp_path / "notes")
    computed = run_experiment(TOY)
    stored.store([ExperimentResult(TOY, computed.cells[:-1])], "abc123")
    return tmp_path


@pytest.fixture
def catalogue(monkeypatch):
    monkeypatch.setattr(experiments, "catalogue", lambda: {each.id: each for each in (TOY, EMPTY)})
    monkeypatch.setattr(experiments, "by_module", lambda: {name: module(name) for name in PARTS})


def written():
    return results_page({name: module(name) for name in PARTS})


def lines(start):
    return [line for line in written().splitlines() if line.startswith(start)]


def test_every_module_of_the_catalogue_has_its_place_on_the_page():
    assert set(PARTS) == set(experiments.by_module())


def test_the_page_is_the_same_whenever_it_is_written():
    first = written()
    stored_files.forget()
    assert written() == first
    assert first.endswith("\n")
    assert not first.endswith("\n\n")
    assert "\n\n\n" not in first


def test_an_entry_has_ours_with_its_mark_and_the_printed_figure_in_brackets():
    (line,) = lines("| Row \\| one")
    assert line == (
        "| Row \\| one (4 runs) | 10.00 ± 2.00\\* (10.1 ± 4.0) | 0.750+ (0.70) | 0.500~ (0.50) | 1,234.5\\* (1,300) |"
    )
    assert lines("| Other (1 run)")
    assert "|  | error | nmi | ari | accuracy |" in written()


def test_every_mark_is_explained():
    text = written()
    for mark in MARKS.values():
        assert f"| {mark or 'none'} |" in text


def test_the_tables_of_an_experiment_open_under_a_line_that_says_what_came_out():
    text = written()
    summary = next(line for line in text.splitlines() if line.startswith("<summary>"))
    assert summary.startswith("<summary>5 rows; of 12 figures and claims in print, ")
    assert summary.endswith("2 agree because something was fitted to them</summary>")
    assert "3 agree, 2 are better here, 5 differ, " in summary
    # Blank lines around the marks: without them the tables would be read as HTML.
    assert f"<details>\n{summary}\n\n- Source: PhD table 2.5." in text
    assert "|\n\n</details>\n" in text or ".\n\n</details>\n" in text


def test_claims_stand_in_their_own_words_with_how_often_they_hold():
    assert lines("| Claims:") == [
        "| Claims: it holds (`holds`) | 100% | agrees |",
        "| Claims: fails (`fails`) | 25% | differs |",
    ]


def test_figures_that_no_source_prints_are_shown_unless_there_are_too_many():
    (line,) = lines("| Unprinted")
    assert line == "| Unprinted (1 run) | 10 ± 2 | 0.75 | 0.5 | 1234 | 1 |"
    assert "Not printed, in `reproduction/stored`: Wide." in written()
    assert "figure_3" not in written()


def test_what_is_not_stored_is_not_on_the_page():
    assert "| Not stored (" not in written()
    assert "Never stored" not in written()


def test_counts_are_those_of_the_tables_claims_apart():
    # Two rows with five printed figures: means agree, deviations, of which four restarts tell little, differ.
    text = written()
    cannot = sum(count for count, _ in UNAVAILABLE.values())
    assert "| table | figures | agrees | better | differs | fitted | cannot be run |" in text
    assert "| PhD table 2.2 | 60 |  |  |  |  | 60 |" in text
    assert "| PhD table 2.5 | 10 | 2 | 2 | 4 | 2 |  |" in text
    assert "| PhD table 2.5, claims of the text | 2 | 1 |  | 1 |  |  |" in text
    assert f"| **all figures** | {10 + cannot} | 2 | 2 | 4 | 2 | {cannot} |" in text
    assert "| **all claims** | 2 | 1 |  | 1 |  |  |" in text


def test_the_page_opens_with_what_came_out_by_source_document():
    head = written().split("\n## ")[0]
    cannot = not_run()
    of_thesis = sum(count for table, (count, _) in UNAVAILABLE.items() if table.startswith("PhD"))
    told = "2 agree, 2 are better here, 4 differ, 2 agree because something was fitted to them"
    assert f"Of 10 printed figures that were computed again, {told}. {cannot} more cannot be run" in head
    assert "1 of 2 claims of the texts hold." in head
    # 4 of the 8 that were not fitted
    assert f"| PhD thesis | {10 + of_thesis} | 2 | 2 | 4 | 2 | {of_thesis} | 50% |" in head
    assert f"| **all** | {10 + cannot} | 2 | 2 | 4 | 2 | {cannot} | 50% |" in head
    assert head.count("| MSc thesis |") == 1  # it has figures that cannot be run, and none that were


def test_what_cannot_be_run_is_said_with_its_reason_and_is_in_no_experiment():
    coverage = (NOTES / "coverage.md").read_text(encoding="utf-8")
    assert all(reason.split(",")[0] in coverage for _, reason in UNAVAILABLE.values())
    known = experiments.catalogue().values()
    cells = [(experiment, cell) for experiment in known for cell in experiment.cells.values()]
    printed = [(each.source or experiment.source) for experiment, cell in cells for each in cell.printed.values()]
    assert {*map(table_of, printed)} & {*UNAVAILABLE} == {"PhD table 5.1"}  # five rows of its seven are run


def test_the_page_says_when_and_from_what_it_was_computed():
    (cell, *_) = stored_files.stored_cells("toy").values()
    head = written().split("## Would")[0]
    assert "commit\n`abc123`" in head
    assert f"Computed {cell.finished[:10]}" in head
    assert f"numpy {cell.versions['numpy']}" in head


def test_notes_stand_above_the_tables_of_their_part(folder):
    (folder / "notes").mkdir()
    for name in ("coverage", "before", "minmax"):
        (folder / "notes" / f"{name}.md").write_text(f"Note on {name}.\n")
    text = written()
    order = ["Note on before.", "Note on coverage.", f"## {PARTS['minmax']}", "Note on minmax.", "### Toy"]
    assert [text.index(each) for each in order] == sorted(text.index(each) for each in order)


def test_the_counts_of_the_readme_are_between_their_marks_and_leave_claims_out():
    text = counts_for_readme([TOY, EMPTY])
    assert text.splitlines() == [
        START,
        "Of 10 printed figures that were computed again, 2 agree, 2 are better here, 4 differ, 2 agree because "
        f"something was fitted to them; {not_run()} more cannot be run: [table by table](docs/results.md).",
        END,
    ]


# --- the command -----------------------------------------------------------------------------------------------------


def checkout(folder, monkeypatch, readme):
    """A folder that looks like a checkout, with the command in it."""
    (folder / "checkout" / "reproduction").mkdir(parents=True)
    (folder / "checkout" / "docs").mkdir()
    (folder / "checkout" / "README.md").write_text(readme, encoding="utf-8")
    monkeypatch.setattr(command, "__file__", str(folder / "checkout" / "reproduction" / "command.py"))
    return folder / "checkout"


def test_page_with_an_output_writes_the_page_there_and_nothing_else(folder, catalogue, monkeypatch):
    root = checkout(folder, monkeypatch, "No marks.\n")
    assert command.main(["page", "--output", str(folder / "page.md")]) == 0
    assert (folder / "page.md").read_text(encoding="utf-8") == written()
    assert (root / "README.md").read_text(encoding="utf-8") == "No marks.\n"
    assert not (root / "docs" / "results.md").exists()


def test_page_replaces_the_counts_in_the_readme_and_the_page_and_changes_nothing_when_repeated(
    folder, catalogue, monkeypatch
):
    root = checkout(folder, monkeypatch, f"# Before\n\n{START}\nOf 3 figures.\n{END}\n\nAfter.\n")
    expected = f"# Before\n\n{counts_for_readme([TOY, EMPTY])}\n\nAfter.\n"
    for _ in range(2):
        assert command.main(["page"]) == 0
        assert (root / "README.md").read_text(encoding="utf-8") == expected
        assert (root / "docs" / "results.md").read_text(encoding="utf-8") == written()


def test_page_outside_of_a_checkout_asks_for_an_output(folder, catalogue, monkeypatch, capsys):
    root = checkout(folder, monkeypatch, "No marks.\n")
    assert command.main(["page"]) == 2
    assert "--output" in capsys.readouterr().err
    assert not (root / "docs" / "results.md").exists()


def test_page_of_an_empty_store_says_what_to_run(folder, catalogue, monkeypatch, capsys):
    monkeypatch.setattr(stored_files, "FOLDER", folder / "nothing")
    assert command.main(["page", "--output", str(folder / "page.md")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "reproduce all --store" in line
    assert not (folder / "page.md").exists()


# --- storing by the command ------------------------------------------------------------------------------------------


def test_store_keeps_what_was_computed_for_the_page(folder, catalogue):
    assert command.main(["empty", "--no-cache", "--store", "--commit", "fedcba"]) == 0
    assert stored_files.stored_cells("empty")["row"].commit == "fedcba"
    assert stored_files.stored_cells("toy")["row"].commit == "abc123"


def test_store_of_the_quick_subset_pins_its_verdicts_and_leaves_full_results(folder, catalogue, monkeypatch):
    cells = {"row": replace(TOY.cells["row"], quick=True)}
    monkeypatch.setattr(experiments, "catalogue", lambda: {"toy": replace(TOY, cells=cells)})
    before = stored_files.stored_cells("toy")
    assert command.main(["all", "--quick", "--no-cache", "--store"]) == 1  # a figure differs
    assert stored.pinned()["toy/row"]["nmi"] == "better"
    assert stored.pinned()["toy/row"]["accuracy"] == "differs"
    assert stored_files.stored_cells("toy") == before
