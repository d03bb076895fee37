"""The page docs/scoreboard.md, written from the results file and never by hand."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernelweave.foundation.files import write_atomically
from reproduction.scoreboard.board import DIGITS, Board, Cell, best_score, shortfalls
from reproduction.scoreboard.data_sets import MADE_WITH_CLASSES
from reproduction.scoreboard.methods import LEFT_OUT, METHODS, OURS
from reproduction.scoreboard.pictures import HEAT, RANKS, TIMES, draw_all
from reproduction.scoreboard.ranking import ALPHA
from reproduction.scoreboard.records import Record
from reproduction.scoreboard.screen import row_texts

PAGE = "scoreboard.md"
FAR = 0.05  # NMI below the best that is worth a line

_SETTINGS = {method.name: method.setting for method in METHODS}
_MEANS = ("method", "library", "NMI", "ARI", "ACC", "mean rank", "best or tied", "failed", "seconds", "MiB")


def write_page(board: Board, docs: Path) -> Path:
    """Write the page and its pictures into the folder of the documentation; return the path of the page."""
    draw_all(board, docs / "_static")
    return write_atomically(docs / PAGE, page_text(board))


def page_text(board: Board) -> str:
    """Return the page."""
    sections = [
        "<!-- Written by `kernelweave scoreboard --write-page`; changes made by hand are lost. -->",
        "# Scoreboard: multi-view methods side by side",
        *_opening(board),
        *_introduction(board),
        *_means(board),
        *_table_of_sets(board),
        *_far_from_best(board),
        *_failures(board),
        *_unfinished(board),
        *_settings(board),
        *_how_it_was_run(board),
    ]
    return "\n\n".join(sections) + "\n"


# --- sections ---------------------------------------------------------------------------------------------------------


def _opening(board: Board) -> Iterable[str]:
    """Yield the first method of every library, before anything else, and the picture of all ranks."""
    first = {row.library: row for row in reversed(board.rows)}  # rows are sorted by rank: the best one stays
    best = board.rows[0]
    yield (
        f"Of {len(board.rows)} methods of {len(first)} {'library' if len(first) == 1 else 'libraries'} on "
        f"{len(board.ranked_sets)} sets, `{best.method}` of {best.library} has the best mean rank, {best.rank:.2f}. "
        "The best method of each library:"
    )
    rows = [row_texts(row) for row in board.rows if first[row.library] is row]
    yield _table(_MEANS, rows, n_text=2)
    yield f"![Mean ranks of all methods, with bars over those that do not differ](_static/{RANKS})"
    links = "[All methods](#means-and-ranks), [every set](#nmi-by-set), [failures](#failures) and [settings](#settings)"
    yield f"{links} follow."


def _introduction(board: Board) -> Iterable[str]:
    libraries = Counter(row.library for row in board.rows)
    listed = ", ".join(f"{count} of {library}" for library, count in libraries.items())
    yield "## What was compared"
    yield (
        f"{len(board.rows)} methods ({listed}) on {len(board.sets)} sets of two or more views, {_seeds(board)}. Every "
        "method has one setting for all sets, which it can have without labels, and is told the number of classes. "
        "Labels are used to judge the clusters and for nothing else."
    )
    yield (
        "Defaults of kernelweave were developed with sets of this collection at hand, those of other libraries were "
        "not: a small lead of ours means little."
    )
    easy = [name for name in board.sets if name in MADE_WITH_CLASSES]
    if easy:
        yield f"Sets with a view that was made with the classes, and that are easy for that reason: {', '.join(easy)}."


def _seeds(board: Board) -> str:
    counts = {cell.n_seeds for cell in board.cells.values()}
    low, high = min(counts), max(counts)
    if low == high:
        return "one seed" if low == 1 else f"{low} seeds"
    return f"{low} to {high} seeds"


def _means(board: Board) -> Iterable[str]:
    yield "## Means and ranks"
    yield (
        f"Means over {len(board.ranked_sets)} sets. A failure counts as 0 in NMI, ARI and ACC (accuracy of the best "
        "matching of clusters and classes) and as the last rank; seconds and memory are means over the other sets. "
        f"Ranks are by NMI; scores that agree to {DIGITS} decimals share a rank, and all that share the first are best "
        "or tied."
    )
    yield _table(_MEANS, [row_texts(row) for row in board.rows], n_text=2)
    yield from _differences(board)
    yield f"![Mean NMI of all methods against mean seconds of a fit](_static/{TIMES})"


def _differences(board: Board) -> Iterable[str]:
    if math.isnan(board.difference):
        return
    test = ""
    if board.test is not None:
        p = "below 0.001" if board.test.p_value < 0.001 else f"{board.test.p_value:.3f}"
        test = f"Friedman's test that all methods are equally good: chi-square {board.test.statistic:.1f}, p {p}. "
    yield (
        f"{test}Two methods differ at level {ALPHA:g} where their mean ranks are at least "
        f"{board.difference:.2f} apart (Nemenyi's critical difference, after Demšar, JMLR 2006). In the picture "
        "at the top, bars join methods that do not differ. Names of kernelweave are blue."
    )


def _table_of_sets(board: Board) -> Iterable[str]:
    yield "## NMI by set"
    yield (
        "Mean NMI over the seeds; the best of a set is bold, ✗ is a failure, a dash a fit that has not been made. "
        "Under each name: samples, views, classes."
    )
    best = {name: round(best_score(board, name)[0], DIGITS) for name in board.sets if _has_labels(board, name)}
    heads = [
        f"{name}<br>{facts.n_samples:,}, {facts.n_views}, {facts.n_clusters}" for name, facts in board.sets.items()
    ]
    rows = [
        (row.method, *(_score_text(board.cells.get((row.method, name)), best.get(name)) for name in board.sets))
        for row in board.rows
    ]
    yield _table(("method", *heads), rows, n_text=1)
    yield f"![NMI of every method on every set](_static/{HEAT})"


def _has_labels(board: Board, name: str) -> bool:
    return best_score(board, name)[1] != ""


def _score_text(cell: Cell | None, best: float | None) -> str:
    if cell is None:
        return "-"
    if cell.failed:
        return "✗"
    text = f"{cell.nmi:.{DIGITS}f}"
    return f"**{text}**" if round(cell.nmi, DIGITS) == best else text


def _far_from_best(board: Board) -> Iterable[str]:
    yield "## Where the first method is not the best"
    first = board.rows[0]
    yield from _shortfall_table(board, first.method, "is first by mean rank")
    our_first = next((row for row in board.rows if row.library == OURS), None)
    if our_first is not None and our_first is not first:
        yield from _shortfall_table(board, our_first.method, "is the first of kernelweave")


def _shortfall_table(board: Board, method: str, reason: str) -> Iterable[str]:
    behind = shortfalls(board, method, FAR)
    if not behind:
        yield f"`{method}` {reason}. On no set is it more than {FAR:g} in NMI below the best."
        return
    count = f"{len(behind)} of {len(board.sets)} sets"
    yield f"`{method}` {reason}. It is more than {FAR:g} in NMI below the best on {count}:"
    rows = [
        (each.set, "failed" if each.failed else f"{each.nmi:.3f}", f"{each.best:.3f}", each.best_method)
        for each in behind
    ]
    yield _table(("set", method, "best", "by"), rows, n_text=1)


def _failures(board: Board) -> Iterable[str]:
    yield "## Failures"
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in board.rows:
        for name in board.sets:
            cell = board.cells.get((row.method, name))
            if cell is not None and cell.failed:
                reasons.setdefault((row.method, cell.error), []).append(name)
    if not reasons:
        yield "No fit failed."
        return
    yield "The first line of what was raised, and the sets on which it was."
    rows = [(method, _cell_text(error), ", ".join(names)) for (method, error), names in reasons.items()]
    yield _table(("method", "reason", "sets"), rows, n_text=3)


def _unfinished(board: Board) -> Iterable[str]:
    missing = {row.method: [name for name in board.sets if (row.method, name) not in board.cells] for row in board.rows}
    rows = [(method, ", ".join(names)) for method, names in missing.items() if names]
    never = [method.name for method in METHODS if method.name not in missing]
    if not rows and not never:
        return
    yield "## Not finished"
    if never:
        yield f"Methods without any fit: {', '.join(never)}."
    if not rows:
        return
    unranked = [name for name in board.sets if name not in board.ranked_sets]
    yield f"These fits have not been made. Sets that lack one are in no mean and no rank: {', '.join(unranked)}."
    yield _table(("method", "sets"), rows, n_text=2)


def _settings(board: Board) -> Iterable[str]:
    yield "## Settings"
    yield (
        "Scaled views have columns of mean 0 and standard deviation 1, or rows of length 1 where they are sparse or "
        "hold counts or links. Libraries that take no sparse arrays get the same numbers as dense ones."
    )
    rows = [(row.method, row.library, _SETTINGS.get(row.method, "")) for row in board.rows]
    yield _table(("method", "library", "setting, and why it needs no labels"), rows, n_text=3)
    yield "Other clusterers of these libraries have no row:"
    yield _table(("clusterer", "why"), list(LEFT_OUT.items()), n_text=2)


def _how_it_was_run(board: Board) -> Iterable[str]:
    records = board.records
    limits = sorted({record.limit_s for record in records})
    limit = " or ".join(f"{each:g}" for each in limits)
    days = sorted({record.finished[:10] for record in records})
    dates = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    yield "## How it was run"
    yield (
        "`kernelweave scoreboard`, in a checkout, makes every fit in a process of its own on one thread, with a limit "
        f"of {limit} seconds. The clock starts after imports, reading and a run on a few made-up samples, and covers "
        "scaling. Rows come in an order drawn for every seed. Memory is the peak of the process, with the interpreter, "
        "libraries and data in it."
    )
    yield f"Dates: {dates}. Commits: {_commits(records)}. Versions: {_versions(records)}."
    yield "`kernelweave scoreboard --write-page` writes this page from the results file."


def _commits(records: Iterable[Record]) -> str:
    return ", ".join(f"`{commit}`" for commit in dict.fromkeys(record.commit for record in records))


def _versions(records: Iterable[Record]) -> str:
    versions = dict.fromkeys((record.library, record.library_version) for record in records)
    return ", ".join(f"{library} {version}" for library, version in sorted(versions))


# --- Markdown ---------------------------------------------------------------------------------------------------------


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, n_text: int) -> str:
    """Return a table; columns after the first ``n_text`` are numbers."""
    rule = ["---"] * n_text + ["---:"] * (len(heads) - n_text)
    return "\n".join("| " + " | ".join(line) + " |" for line in [heads, rule, *rows])


def _cell_text(text: str) -> str:
    """Return text that a table can hold, signs of Markdown and HTML as they are."""
    for sign, plain in (("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;"), ("*", "\\*"), ("_", "\\_"), ("`", "\\`")):
        text = text.replace(sign, plain)
    return text
