"""Ours beside theirs: a table for the terminal, Markdown for the documentation, JSON for programs.

All three show the same rows: metric, our figure, the printed one, the tolerance used and the verdict. Our
figure carries one digit more than the printed one, so that a rounding difference can be seen as such.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from reproduction.experiment import Experiment, Verdict
from reproduction.runner import CellResult, ExperimentResult, Figure

_LIST_COLUMNS = ("id", "source", "runs without data", "cells")
_MOST_NAMED = 2  # data sets in a table for the terminal
_COLUMNS = ("metric", "ours", "printed", "tolerance", "verdict")
_COLOURS = {Verdict.AGREES: "green", Verdict.BETTER: "cyan", Verdict.DIFFERS: "bold red"}


def as_table(results: Sequence[ExperimentResult]) -> Group:
    """Return the results as tables for a rich console."""
    return Group(*(_terminal_section(result) for result in results), Text(summary(results)))


def as_markdown(results: Sequence[ExperimentResult], *, date: str | None = None, commit: str | None = None) -> str:
    """Return the results as Markdown sections, headed by the date and commit they belong to."""
    about = [f"Date: {date}" if date else "", f"Commit: `{commit}`" if commit else "", _versions(results)]
    head = ["# Published figures, reproduced", "  \n".join(filter(None, about)), f"{summary(results)}."]
    return "\n\n".join([*head, *(_markdown_section(result) for result in results)]) + "\n"


def as_json(results: Sequence[ExperimentResult], *, date: str | None = None, commit: str | None = None) -> str:
    """Return the results as a JSON document; figures that are not finite become null."""
    content = {"date": date, "commit": commit, "experiments": [_plain_experiment(each) for each in results]}
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def list_table(experiments: Iterable[Experiment]) -> Table:
    """Return the declared experiments as a table for a rich console: 80 columns are enough, and no id is cut."""
    listed = list(experiments)
    table = Table(*_LIST_COLUMNS, box=None, pad_edge=False)
    # Columns of a fixed width leave what is lacking to the source alone, which is wrapped.
    table.columns[0].width = max((len(each.id) for each in listed), default=None)
    table.columns[1].overflow = "fold"
    table.columns[2].width = max(len(name) for name in (_LIST_COLUMNS[2], *(n for each in listed for n in each.data)))
    table.columns[3].width = len(_LIST_COLUMNS[3])
    table.columns[3].justify = "right"
    for each in listed:
        more = len(each.data) - _MOST_NAMED
        named = ", ".join(each.data[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        table.add_row(each.id, each.source, f"no: {named}" if each.data else "yes", str(len(each.cells)))
    return table


def list_markdown(experiments: Iterable[Experiment]) -> str:
    """Return the declared experiments as a Markdown table."""
    rows = [_LIST_COLUMNS, ("---",) * len(_LIST_COLUMNS), *(_list_row(each) for each in experiments)]
    return _markdown_rows(rows) + "\n"


def list_json(experiments: Iterable[Experiment]) -> str:
    """Return the declared experiments as a JSON document."""
    listed = [{**_facts(each), "without_data": not each.data, "cells": list(each.cells)} for each in experiments]
    return json.dumps(listed, indent=2, ensure_ascii=False) + "\n"


def _list_row(experiment: Experiment) -> tuple[str, ...]:
    needs = f"no: {', '.join(experiment.data)}" if experiment.data else "yes"
    return experiment.id, experiment.source, needs, ", ".join(experiment.cells)


def summary(results: Iterable[ExperimentResult]) -> str:
    """Return the counts of the verdicts, in words."""
    counts = Counter(verdict for result in results for verdict in result.verdicts)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def _row(figure: Figure) -> tuple[str, str, str, str, str]:
    if figure.printed is None or figure.allowed is None:
        return figure.metric, f"{figure.ours:.6g}", "-", "-", str(figure.verdict)
    digits = figure.printed.decimals
    return (
        figure.metric,
        f"{figure.ours:.{digits + 1}f}",
        f"{figure.printed.value:.{digits}f}",
        f"±{figure.allowed:.3g}",
        str(figure.verdict),
    )


def _heading(cell: CellResult) -> str:
    starts = "1 run" if cell.restarts == 1 else f"{cell.restarts} runs"
    kept = f", computed {cell.finished}" if cell.cached else ""
    return f"{cell.label} ({starts}, seed {cell.seed}, {cell.seconds:.1f} s{kept})"


def _versions(results: Sequence[ExperimentResult]) -> str:
    """Return the versions behind the results; more than one of a package where old cells were reused."""
    by_package: dict[str, set[str]] = {}
    for cell in (cell for result in results for cell in result.cells):
        for name, version in cell.versions.items():
            by_package.setdefault(name, set()).add(version)
    listed = ", ".join(f"{name} {'/'.join(sorted(versions))}" for name, versions in by_package.items())
    return f"Versions: {listed}" if listed else ""


def _terminal_section(result: ExperimentResult) -> Group:
    experiment = result.experiment
    head = Text.assemble((experiment.id, "bold"), f"\n{experiment.title}\n{experiment.source}")
    blocks = (block for cell in result.cells for block in (Text(_heading(cell), "dim"), _terminal_table(cell)))
    return Group(head, *blocks, Text())


def _terminal_table(cell: CellResult) -> Table:
    table = Table(*_COLUMNS)
    for column in table.columns[1:4]:
        column.justify = "right"
    for figure in cell.figures:
        *entries, verdict = _row(figure)
        table.add_row(*entries, Text(verdict, _COLOURS.get(figure.verdict, "dim")))
    return table


def _markdown_section(result: ExperimentResult) -> str:
    experiment = result.experiment
    facts = {
        "Source": experiment.source,
        "Data": ", ".join(experiment.data) or "generated",
        "Preprocessing": experiment.preprocessing,
        "Protocol": experiment.protocol,
    }
    listed = "\n".join(f"- {name}: {fact}" for name, fact in facts.items() if fact)
    tables = (_markdown_table(cell) for cell in result.cells)
    return "\n\n".join([f"## {experiment.title} (`{experiment.id}`)", listed, *tables])


def _markdown_table(cell: CellResult) -> str:
    rows = [_COLUMNS, ("---", "---:", "---:", "---:", "---"), *(_row(figure) for figure in cell.figures)]
    return f"**{_heading(cell)}**\n\n{_markdown_rows(rows)}"


def _markdown_rows(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(entry.replace("|", "\\|") for entry in row) + " |" for row in rows)


def _plain_experiment(result: ExperimentResult) -> dict[str, Any]:
    return {
        **_facts(result.experiment),
        "cells": [_plain_cell(cell, result.experiment) for cell in result.cells],
    }


def _facts(experiment: Experiment) -> dict[str, Any]:
    names = ("id", "title", "source", "data", "preprocessing", "protocol")
    return {name: getattr(experiment, name) for name in names}


def _plain_cell(cell: CellResult, experiment: Experiment) -> dict[str, Any]:
    facts = ("label", "restarts", "seed", "seconds", "finished", "versions", "cached")
    plain = {"id": cell.cell, **{name: getattr(cell, name) for name in facts}}
    return {**plain, "figures": [_plain_figure(figure, experiment.source) for figure in cell.figures]}


def _plain_figure(figure: Figure, source: str) -> dict[str, Any]:
    printed = figure.printed
    return {
        "metric": figure.metric,
        "ours": figure.ours if math.isfinite(figure.ours) else None,
        "printed": None if printed is None else printed.value,
        "tolerance": figure.allowed,
        "rule": None if printed is None else printed.rule,
        "source": None if printed is None else printed.source or source,
        "verdict": str(figure.verdict),
    }
