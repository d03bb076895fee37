"""The page: the verdict, the answers in order, and the rest folded up."""

import math
from collections.abc import Sequence

from kernelweave.evaluation.report import details, sections
from kernelweave.evaluation.report.facts import ReportFacts
from kernelweave.evaluation.report.maps import marker_definitions
from kernelweave.evaluation.report.style import CSS, JS, policy
from kernelweave.evaluation.report.text import count, esc, fixed, percent
from kernelweave.evaluation.report.verdict import answer, distrust

#: Headings of the answers by the id of their section.
HEADINGS = {
    "clusters": "Clusters",
    "counts": "Numbers of clusters tried",
    "views": "Views and weights",
    "edges": "Edges between clusters",
    "truth": "Known classes",
    "samples": "Samples",
    "warnings": "Warnings",
}
#: Headings of what is folded up.
FOLDED = {
    "silhouette": "Silhouettes",
    "method": "Method and parameters",
    "convergence": "Convergence",
    "repeat": "How to repeat it",
}
# Shorter words for the contents.
SHORT = {
    "counts": "Numbers tried",
    "views": "Views",
    "edges": "Edges",
    "truth": "Classes",
    "method": "Method",
    "repeat": "Repeat",
}
# Sections that may be broken over pages in print.
LONG = {"clusters", "truth", "samples", "edges", *FOLDED}


def page(
    facts: ReportFacts,
    *,
    title: str | None = None,
    code: str | None = None,
    command: str | None = None,
    warnings: Sequence[str] = (),
    reading: Sequence[str] = (),
) -> str:
    """Return the report as one HTML document."""
    messages = tuple(dict.fromkeys([*warnings, *facts.stored_warnings]))
    found = count(facts.n_clusters, "cluster") if facts.n_clusters > 1 or not facts.verdict else "No clusters"
    title = title or f"{found} in {count(facts.n_samples, facts.noun)}"
    answers = {
        "clusters": sections.clusters(facts),
        "counts": sections.counts(facts),
        "views": sections.views(facts),
        "edges": sections.edges(facts),
        "truth": sections.truth(facts),
        "samples": sections.samples(facts, reading),
        "warnings": sections.warnings(messages),
    }
    folded = {
        "silhouette": details.silhouette(facts),
        "method": details.method(facts),
        "convergence": details.convergence(facts),
        "repeat": details.repeat(facts, code, command),
    }
    answers = {name: body for name, body in answers.items() if body}
    folded = {name: body for name, body in folded.items() if body}
    body = "\n".join(
        [
            *(_section(name, body) for name, body in answers.items()),
            *(_folded(name, body) for name, body in folded.items()),
        ]
    )
    headings = HEADINGS | FOLDED
    links = "".join(f'<li><a href="#{name}">{SHORT.get(name, headings[name])}</a></li>' for name in [*answers, *folded])
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{esc(title)}</title>
<style>{CSS}</style>
</head>
<body>
{marker_definitions()}
<header class="page">
<h1>{esc(title)}</h1>
<p class="method">{esc(_subtitle(facts))}</p>
<div class="verdict" id="verdict">
<p>{esc(answer(facts))}</p>
<p>{esc(distrust(facts, len(messages)))}</p>
</div>
{_figures(facts, len(messages))}
</header>
<nav aria-label="Contents"><ul class="page">{links}</ul></nav>
<main class="page">
{body}
</main>
<footer class="page">Written by kernelweave {esc(facts.versions["kernelweave"])}.</footer>
<script>{JS}</script>
</body>
</html>
"""


def _section(name: str, body: str) -> str:
    style = ' class="long"' if name in LONG else ""
    heading = f'<h2 id="h-{name}">{HEADINGS[name]}</h2>'
    return f'<section id="{name}"{style} aria-labelledby="h-{name}">{heading}{body}</section>'


def _folded(name: str, body: str) -> str:
    heading = f'<summary><h2 id="h-{name}">{FOLDED[name]}</h2></summary>'
    return (
        f'<section id="{name}" class="folded long" aria-labelledby="h-{name}"><details>{heading}'
        f'<div class="inner">{body}</div></details></section>'
    )


def _subtitle(facts: ReportFacts) -> str:
    views = facts.views
    if facts.graph is not None:
        return f"{facts.method.name} on a graph"
    names = ", ".join(view.name for view in views)
    return f"{facts.method.name} on {len(views)} views: {names}" if len(views) > 1 else facts.method.name


def _figures(facts: ReportFacts, n_warnings: int) -> str:
    """Return the key figures in a line."""
    some = "" if facts.n_judged == facts.n_samples else f" (of {count(facts.n_judged, facts.noun)})"
    figures = {}
    by_model = facts.clearness is not None and facts.clearness.judged_by == "confidence"
    if facts.mean_silhouette is not None and not by_model:
        figures[f"silhouette{some}"] = fixed(facts.mean_silhouette)
    if facts.truth is not None:
        figures["NMI with known classes"] = fixed(facts.truth.nmi)
    if math.isfinite(facts.doubtful_share):
        tied = "nearer" if facts.graph is None else "with stronger ties"
        figures[f"{tied} to another cluster"] = percent(facts.doubtful_share)
    if facts.converged is not None:
        figures["converged"] = "yes" if facts.converged else "no"
    figures["warnings"] = f"{n_warnings:,}"
    items = "".join(f"<div><dt>{esc(name)}</dt><dd>{esc(value)}</dd></div>" for name, value in figures.items())
    return f'<dl class="figures">{items}</dl>'
