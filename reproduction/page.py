"""``docs/results.md`` and the counts in the README, made of the stored results and the notes beside them.

``notes/coverage.md``   which table of the sources is where, and why some cannot be run
``notes/<module>.md``   what people should know of the experiments of one module, above their tables
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from reproduction.experiment import Experiment, Printed, Verdict
from reproduction.runner import CellResult, ExperimentResult, Figure
from reproduction.stored import stored_result
from reproduction.stored_files import stored_cells
from reproduction.tables import CLAIMS, OURS, foreign, table_order, tally
from reproduction.unavailable import UNAVAILABLE

NOTES = Path(__file__).parent / "notes"
#: Modules of the catalogue in the order of the page, with their titles.
PARTS = {
    "kernel_kmeans": "Kernel k-means",
    "global_search": "Global kernel k-means",
    "olivetti": "Global kernel k-means on faces",
    "graph_cuts": "Graph cuts",
    "minmax": "MinMax k-means",
    "convex_mixture": "Convex mixtures",
    "multi_view": "Multi-view kernel k-means and spectral clustering",
    "ratio_mkc": "Ratio-based multiple kernel clustering",
    "kernel_spectral": "Kernel spectral clustering of several views (MVKSC)",
}
#: The source documents in the order of the opening table, by the word that the names of their tables begin with.
SOURCES = {"MSc": "MSc thesis", "PhD": "PhD thesis", "MVKSC": "paper on MVKSC"}
MARKS = {Verdict.AGREES: "", Verdict.BETTER: "+", Verdict.DIFFERS: "\\*", Verdict.FITTED: "~"}
COUNTED = (Verdict.AGREES, Verdict.BETTER, Verdict.DIFFERS, Verdict.FITTED)
# Columns of figures that no source prints, beyond which they are left to the stored files.
WIDEST = 10
START = "<!-- counts of docs/results.md, written by `kernelweave reproduce page` -->"
END = "<!-- end of counts -->"


def results_page(parts: dict[str, list[Experiment]]) -> str:
    """Return the page: what came out, counts, how to read them, coverage, then the tables of every part."""
    results = {part: [stored_result(each) for each in experiments] for part, experiments in parts.items()}
    every = [result for of_part in results.values() for result in of_part]
    sections = [_head(every), _scoreboard(every), _waiting(every), _reading(every), _foreign(every), _note("coverage")]
    sections += [_part(part, results[part]) for part in PARTS]
    return "\n\n".join(filter(None, sections)) + "\n"


def counts_for_readme(experiments: Iterable[Experiment]) -> str:
    """Return the counts of the README, between the lines that mark them."""
    counts = _totals(tally(stored_result(each) for each in experiments), claims=False)
    total = sum(counts.values())
    told = ", ".join(f"{counts[verdict]:,} {_words(verdict)}" for verdict in COUNTED)
    text = f"Of {total:,} printed figures that were computed again, {told}; {not_run():,} more cannot be run"
    return f"{START}\n{text}: [table by table](docs/results.md).\n{END}"


def _words(verdict: Verdict) -> str:
    words = {
        Verdict.AGREES: "agree",
        Verdict.BETTER: "are better here",
        Verdict.DIFFERS: "differ",
        Verdict.FITTED: "agree because something was fitted to them",
    }
    return words[verdict]


def _head(results: Sequence[ExperimentResult]) -> str:
    """Return the opening: what came out, by source document, before anything else."""
    counts = tally(results)
    totals = _totals(counts, claims=False)
    claims = _totals(counts, claims=True)
    computed = sum(totals.values())
    shares = ", ".join(f"{totals[verdict]:,} {_words(verdict)}" for verdict in COUNTED)
    holds = f"{claims[Verdict.AGREES]:,} of {sum(claims.values()):,} claims of the texts hold"
    head = ["source", "printed figures", *map(str, COUNTED), "cannot be run", "share that agrees or is better"]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for source, title in SOURCES.items():
        of_source = _of_source(counts, source)
        cannot = sum(count for table, (count, _) in UNAVAILABLE.items() if table.startswith(f"{source} "))
        if of_source or cannot:
            rows.append([*_count_row(title, of_source, cannot), _share(of_source)])
    rows.append([*_count_row("**all**", totals, not_run()), _share(totals)])
    return f"""# Results: every published figure

Of {computed:,} printed figures that were computed again, {shares}. {not_run():,} more cannot be run, because
their data are not available. {holds}.

{_markdown(rows)}

The share is that of the figures that were computed again and not fitted. Below are the
[counts for each table](#how-many-agree), [how a figure is judged](#how-to-read-the-tables), and then the tables
themselves, ours beside theirs."""


def _of_source(counts: dict[str, Counter[Verdict]], source: str) -> Counter[Verdict]:
    """Return the verdicts on the figures of one source document, claims left out."""
    chosen = [each for table, each in counts.items() if table.startswith(f"{source} ") and not table.endswith(CLAIMS)]
    return sum(chosen, Counter())


def _share(verdicts: Counter[Verdict]) -> str:
    judged = sum(verdicts.values()) - verdicts[Verdict.FITTED]
    good = verdicts[Verdict.AGREES] + verdicts[Verdict.BETTER]
    return f"{good / judged:.0%}" if judged else ""


def _reading(results: Sequence[ExperimentResult]) -> str:
    """Return how figures are judged, and when and from what they were computed."""
    stored = [cell for result in results for cell in stored_cells(result.experiment.id).values()]
    commits = sorted({cell.commit for cell in stored})
    days = sorted({cell.finished[:10] for cell in stored})
    packages = sorted({f"{name} {version}" for cell in stored for name, version in cell.versions.items()})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"""## How to read the tables

Every entry is our figure, then in brackets the printed one; ± is the standard deviation over runs. A figure agrees
where it differs from print by no more than rounding and chance: half a unit of the last printed digit, and 2.576
standard errors of the difference, which follow from the spread of a single run and the numbers of runs (binomial for
shares). Of figures of the very same method, one in a hundred would differ. Marks:

| mark | verdict |
|---|---|
| none | agrees |
| + | better than printed by more than chance explains, where more (or less) is better |
| \\* | differs |
| ~ | agrees, and something of the experiment was chosen with this figure in sight: no evidence |

A claim of the text holds where it does in nine of ten draws of ours, a threshold of ours.

The page is written by `kernelweave reproduce page` from the results stored in `reproduction/stored`;
`kernelweave reproduce all --store` computes them again. Computed {when}, commit
{", ".join(f"`{commit}`" for commit in commits)}, {", ".join(packages)}."""


# --- counts ----------------------------------------------------------------------------------------------------------


def _scoreboard(results: Sequence[ExperimentResult]) -> str:
    counts = tally(results)
    head = ["table", "figures", *map(str, COUNTED), "cannot be run"]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for table in sorted({*counts, *UNAVAILABLE}, key=lambda name: (table_order(name), name)):
        cannot, _ = UNAVAILABLE.get(table, (0, ""))
        rows.append(_count_row(table, counts.get(table, Counter()), cannot))
    rows.append(_count_row("**all figures**", _totals(counts, claims=False), not_run()))
    rows.append(_count_row("**all claims**", _totals(counts, claims=True), 0))
    missing = "Figures that cannot be run are of data that are not available; what they are is said below."
    return f"## How many agree\n\n{_markdown(rows)}\n\n{missing}"


def not_run() -> int:
    """Return how many printed figures cannot be run."""
    return sum(count for count, _ in UNAVAILABLE.values())


def _count_row(table: str, verdicts: Counter[Verdict], cannot: int) -> list[str]:
    total = sum(verdicts.values()) + cannot
    return [table, str(total), *(str(verdicts[verdict] or "") for verdict in COUNTED), str(cannot or "")]


def _totals(counts: dict[str, Counter[Verdict]], *, claims: bool) -> Counter[Verdict]:
    """Return the sums over tables of publications, of claims or of figures."""
    chosen = [each for table, each in counts.items() if table.endswith(CLAIMS) == claims and not table.startswith(OURS)]
    return sum(chosen, Counter())


def waiting_cells(results: Iterable[ExperimentResult]) -> dict[str, list[str]]:
    """Return the declared cells of which nothing is stored, by experiment."""
    waiting = {}
    for result in results:
        stored = {cell.cell for cell in result.cells}
        missing = [name for name in result.experiment.cells if name not in stored]
        if missing:
            waiting[result.experiment.id] = missing
    return waiting


def _waiting(results: Sequence[ExperimentResult]) -> str:
    waiting = waiting_cells(results)
    if not waiting:
        return ""
    rows = [["experiment", "cells", "printed figures"], ["---", "---:", "---:"]]
    known = {result.experiment.id: result.experiment for result in results}
    for name, cells in waiting.items():
        printed = sum(len(known[name].cells[cell].printed) for cell in cells)
        rows.append([f"`{name}`", f"{len(cells)} of {len(known[name].cells)}", str(printed)])
    return f"""## Not computed again yet

These cells are declared, nothing is stored of them, and they are not in the counts above.

{_markdown(rows)}"""


def _foreign(results: Sequence[ExperimentResult]) -> str:
    rows = [["table", "pairs", "accepted", "share"], ["---", "---:", "---:", "---:"]]
    counts = foreign(results)
    for table, each in counts.items():
        rows.append([table, str(each.pairs), str(each.accepted), f"{each.share:.0%}"])
    pairs = sum(each.pairs for each in counts.values())
    accepted = sum(each.accepted for each in counts.values())
    rows.append(["**all**", str(pairs), str(accepted), f"{accepted / max(pairs, 1):.0%}"])
    return f"""## Would the figure of another method pass?

A tolerance that accepts everything says nothing. For every two methods of a table whose printed figures differ by more
than rounding and their standard errors, the figure of one is judged as if we had computed it for the other.

{_markdown(rows)}

{_note("before")}""".rstrip()


# --- parts -----------------------------------------------------------------------------------------------------------


def _part(part: str, results: Sequence[ExperimentResult]) -> str:
    sections = [f"## {PARTS[part]}", _note(part)]
    sections += [_experiment(result) for result in results if result.cells]
    return "\n\n".join(filter(None, sections))


def _experiment(result: ExperimentResult) -> str:
    experiment = result.experiment
    told = {"Source": f"{experiment.source}.", "Data": experiment.preprocessing, "Protocol": experiment.protocol}
    facts = "\n".join(f"- {name}: {fact}" for name, fact in told.items() if fact)
    blocks = [f"### {experiment.title} (`{experiment.id}`)", f"<details>\n<summary>{_outcome(result)}</summary>", facts]
    by_columns: dict[tuple[str, ...], list[CellResult]] = {}
    for cell in result.cells:
        by_columns.setdefault(_columns(cell), []).append(cell)
    blocks += [_table(columns, cells) for columns, cells in by_columns.items()]
    return "\n\n".join(filter(None, [*blocks, "</details>"]))


def _outcome(result: ExperimentResult) -> str:
    """Return what came of an experiment, in the line that opens and shuts its tables."""
    rows = "1 row" if len(result.cells) == 1 else f"{len(result.cells)} rows"
    counts = Counter(figure.verdict for cell in result.cells for figure in cell.figures if figure.printed is not None)
    if not counts:
        return f"{rows}; no source prints figures of them"
    told = ", ".join(f"{counts[verdict]:,} {_words(verdict)}" for verdict in COUNTED if counts[verdict])
    return f"{rows}; of {sum(counts.values()):,} figures and claims in print, {told}"


def _columns(cell: CellResult) -> tuple[str, ...]:
    """Return the columns of a cell: its printed figures, or all where none is printed; a deviation has none."""
    shown = [figure for figure in cell.figures if figure.printed is not None] or list(cell.figures)
    return tuple(dict.fromkeys(_name(figure.metric) for figure in shown))


def _name(metric: str) -> str:
    return metric.removesuffix("_mean").removesuffix("_std")


def _table(columns: tuple[str, ...], cells: Sequence[CellResult]) -> str:
    figures = [figure for cell in cells for figure in cell.figures if figure.printed is not None]
    if figures and all(figure.printed is not None and figure.printed.statistic == "claim" for figure in figures):
        return _claims(cells)
    if not figures and len(columns) > WIDEST:
        names = ", ".join(cell.label for cell in cells)
        return f"Not printed, in `reproduction/stored`: {names}."
    rows = [["", *columns], ["---", *["---:"] * len(columns)]]
    for cell in cells:
        known = {figure.metric: figure for figure in cell.figures}
        rows.append([f"{cell.label} ({_runs(cell)})", *(_entry(known, name) for name in columns)])
    return _markdown(rows)


def _runs(cell: CellResult) -> str:
    return "1 run" if cell.restarts == 1 else f"{cell.restarts} runs"


def _claims(cells: Sequence[CellResult]) -> str:
    rows = [["claim", "holds in", "verdict"], ["---", "---:", "---"]]
    for cell in cells:
        for figure in cell.figures:
            if figure.printed is not None:
                text = (figure.printed.source or "").partition(": ")[2] or figure.metric
                told = f"{cell.label}: {text} (`{figure.metric}`)"
                rows.append([told, f"{figure.ours:.0%}", str(figure.verdict)])
    return _markdown(rows)


def _entry(known: dict[str, Figure], name: str) -> str:
    """Return one entry: ours with its mark, and the printed figure in brackets; with deviations where there are."""
    mean = known.get(f"{name}_mean") or known.get(name)
    deviation = known.get(f"{name}_std")
    if mean is None:
        return ""
    spread = "" if deviation is None or not math.isfinite(deviation.ours) else f" ± {_ours(deviation)}"
    if mean.printed is None:
        return f"{_ours(mean)}{spread}"
    printed = _theirs(mean.printed)
    if deviation is not None and deviation.printed is not None:
        printed += f" ± {_theirs(deviation.printed)}"
    return f"{_ours(mean)}{spread} ({printed})"


def _ours(figure: Figure) -> str:
    if figure.printed is None:
        return f"{figure.ours:.4g}"
    return f"{figure.ours:,.{figure.printed.decimals + 1}f}{MARKS[figure.verdict]}"


def _theirs(printed: Printed) -> str:
    return f"{printed.value:,.{printed.decimals}f}"


def _note(name: str) -> str:
    file = NOTES / f"{name}.md"
    return file.read_text(encoding="utf-8").strip() if file.exists() else ""


def _markdown(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(entry.replace("|", "\\|") for entry in row) + " |" for row in rows)
