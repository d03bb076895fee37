import json
import math

import pytest
from rich.console import Console

from reproduction import (
    Cell,
    Experiment,
    Printed,
    as_json,
    as_markdown,
    as_table,
    catalogue,
    list_json,
    list_markdown,
    list_table,
    run_experiment,
)


def figures(restarts, seed):
    return {"ce_min": 1485.207, "nmi": 0.7, "extra": math.nan}


EXPERIMENT = Experiment(
    id="toy-1",
    title="Toy",
    source="Toy table 1 | left",
    data=("pendigits",),
    preprocessing="None.",
    protocol="One run.",
    cells={
        "row": Cell(
            "Row | one",
            figures,
            printed={
                "ce_min": Printed(1485.2, decimals=1, rule="at most", source="Toy table 1, column 2"),
                "nmi": Printed(0.754, decimals=3),
            },
        )
    },
)


@pytest.fixture
def results(monkeypatch):
    monkeypatch.setattr("reproduction.runner.check_data", lambda *_: None)
    return [run_experiment(EXPERIMENT)]


def rendered(content):
    console = Console(width=200, color_system=None)
    with console.capture() as page:
        console.print(content)
    return page.get()


def test_the_terminal_table_shows_ours_printed_tolerance_and_verdict(results):
    text = rendered(as_table(results))
    rows = [[entry.strip() for entry in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]
    assert rows == [
        ["ce_min", "1485.21", "1485.2", "±0.05", "agrees"],
        ["nmi", "0.7000", "0.754", "±0.0005", "differs"],
        ["extra", "nan", "-", "-", "not printed"],
    ]
    assert "toy-1" in text
    assert "1 agrees, 1 differs, 1 not printed" in text


def test_markdown_carries_date_commit_source_protocol_and_a_row_for_each_figure(results):
    text = as_markdown(results, date="2031-02-03", commit="abc123")
    for expected in (
        "Date: 2031-02-03",
        "Commit: `abc123`",
        "Versions: python ",
        "1 agrees, 1 differs, 1 not printed.",
        "## Toy (`toy-1`)",
        "- Data: pendigits",
        "- Preprocessing: None.",
        "- Protocol: One run.",
        "**Row | one (1 run, seed 0, ",
        "| ce_min | 1485.21 | 1485.2 | ±0.05 | agrees |",
        "| nmi | 0.7000 | 0.754 | ±0.0005 | differs |",
        "| extra | nan | - | - | not printed |",
    ):
        assert expected in text


def test_markdown_without_date_and_commit_names_neither(results):
    text = as_markdown(results)
    assert "Date" not in text
    assert "Commit" not in text


def test_json_holds_every_figure_with_its_source_and_no_number_json_does_not_know(results):
    content = json.loads(as_json(results, date="2031-02-03", commit="abc123"))
    (experiment,) = content["experiments"]
    (cell,) = experiment["cells"]
    assert (content["date"], content["commit"]) == ("2031-02-03", "abc123")
    assert (experiment["id"], experiment["data"]) == ("toy-1", ["pendigits"])
    assert (cell["id"], cell["restarts"], cell["seed"], cell["cached"]) == ("row", 1, 0, False)
    assert "kernelweave" in cell["versions"]
    assert cell["figures"][0] == {
        "metric": "ce_min",
        "ours": 1485.207,
        "printed": 1485.2,
        "tolerance": 0.05,
        "rule": "at most",
        "source": "Toy table 1, column 2",
        "verdict": "agrees",
    }
    assert cell["figures"][1]["source"] == "Toy table 1 | left"
    assert cell["figures"][2]["ours"] is None
    assert cell["figures"][2]["printed"] is None


def test_cells_taken_from_the_cache_say_when_they_were_computed(tmp_path, monkeypatch):
    monkeypatch.setattr("reproduction.runner.check_data", lambda *_: None)
    fresh, kept = (as_markdown([run_experiment(EXPERIMENT, cache_dir=tmp_path)]) for _ in range(2))
    assert "computed" not in fresh
    assert "computed" in kept


def test_several_cells_are_told_apart_in_the_terminal_table():
    cells = {"a": Cell("Upper", figures), "b": Cell("Lower", figures)}
    result = run_experiment(Experiment(id="two", title="", source="", cells=cells))
    text = rendered(as_table([result]))
    assert text.index("Upper (1 run") < text.index("nmi") < text.index("Lower (1 run") < text.rindex("nmi")


def test_the_list_names_id_source_data_and_cells_in_every_form():
    for text in (rendered(list_table([EXPERIMENT])), list_markdown([EXPERIMENT]), list_json([EXPERIMENT])):
        for expected in ("toy-1", "Toy table 1", "pendigits"):
            assert expected in text
    assert r"Toy table 1 \| left | no: pendigits | row |" in list_markdown([EXPERIMENT])
    assert json.loads(list_json([EXPERIMENT]))[0]["cells"] == ["row"]


def test_the_list_tells_what_runs_without_data():
    generated = Experiment(id="toy-2", title="", source="Toy table 2", cells=EXPERIMENT.cells)
    both = [EXPERIMENT, generated]
    rows = [line.split() for line in rendered(list_table(both)).splitlines()[1:]]
    assert [row[-3:] for row in rows] == [["no:", "pendigits", "1"], ["2", "yes", "1"]]
    assert [each["without_data"] for each in json.loads(list_json(both))] == [False, True]
    assert "| toy-2 | Toy table 2 | yes | row |" in list_markdown(both)


def test_the_list_of_all_experiments_fits_80_columns_and_cuts_no_id():
    console = Console(width=80, color_system=None)
    with console.capture() as page:
        console.print(list_table(catalogue().values()))
    assert set(catalogue()) <= set(page.get().split())
    assert max(map(len, page.get().splitlines())) <= 80
    assert "…" not in page.get()
