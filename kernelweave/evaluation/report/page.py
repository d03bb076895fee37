"""The page: head, key figures, contents, and its sections in order."""

from collections.abc import Sequence

from kernelweave.evaluation.report import sections
from kernelweave.evaluation.report.charts import marker_definitions
from kernelweave.evaluation.report.facts import ReportFacts
from kernelweave.evaluation.report.style import CSS, JS, policy
from kernelweave.evaluation.report.text import count, esc, fixed, number

#: Headings by the id of their section.
HEADINGS = {
    "summary": "Data",
    "method": "Method",
    "weights": "Weights",
    "convergence": "Convergence",
    "clusters": "Clusters",
    "silhouette": "Silhouettes",
    "embedding": "Picture",
    "typical": "Typical and doubtful samples",
    "agreement": "Agreement of the views",
    "truth": "Known classes",
    "warnings": "Warnings",
    "repeat": "How to repeat it",
}
# Shorter words for the contents.
SHORT = {"typical": "Samples", "agreement": "Views", "truth": "Classes", "repeat": "Repeat"}
# Sections that may be broken over pages in print.
LONG = {"method", "typical", "truth", "repeat", "silhouette", "clusters"}
# Characters that fit into a tile in large letters.
TILE = 7


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
    what = "node" if facts.views[0].kind == "graph" else "sample"
    found = count(facts.n_clusters, "cluster") if facts.n_clusters > 1 or not facts.verdict else "No clusters"
    title = title or f"{found} in {count(facts.n_samples, what)}"
    bodies = {
        "summary": sections.summary(facts, reading),
        "method": sections.method(facts),
        "weights": sections.weights(facts),
        "convergence": sections.convergence(facts),
        "clusters": sections.clusters(facts),
        "silhouette": sections.silhouette(facts),
        "embedding": sections.embedding(facts),
        "typical": sections.typical(facts),
        "agreement": sections.agreement(facts),
        "truth": sections.truth(facts),
        "warnings": sections.warnings(messages),
        "repeat": sections.repeat(facts, code, command),
    }
    bodies = {name: body for name, body in bodies.items() if body}
    body = "\n".join(_section(name, body) for name, body in bodies.items())
    links = "".join(f'<li><a href="#{name}">{SHORT.get(name, HEADINGS[name])}</a></li>' for name in bodies)
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
<div class="page">
<header>
<h1>{esc(title)}</h1>
<p>{esc(_subtitle(facts))}</p>
{_tiles(facts, len(messages))}
</header>
<nav aria-label="Contents"><ul>{links}</ul></nav>
<main>
{body}
</main>
<footer>Written by kernelweave {esc(facts.versions["kernelweave"])}.</footer>
</div>
<script>{JS}</script>
</body>
</html>
"""


def _section(name: str, body: str) -> str:
    style = ' class="long"' if name in LONG else ""
    heading = f'<h2 id="h-{name}">{HEADINGS[name]}</h2>'
    return f'<section id="{name}"{style} aria-labelledby="h-{name}">{heading}{body}</section>'


def _subtitle(facts: ReportFacts) -> str:
    views = facts.views
    if views[0].kind == "graph":
        return f"{facts.method.name} on a graph"
    names = ", ".join(view.name for view in views)
    return f"{facts.method.name} on {len(views)} views: {names}" if len(views) > 1 else facts.method.name


def _tile(name: str, value: str) -> str:
    long = ' class="long"' if len(value) > TILE else ""
    return f"<div><dt>{esc(name)}</dt><dd{long}>{esc(value)}</dd></div>"


def _of_some(facts: ReportFacts) -> str:
    """Return on how many samples a figure was computed, where these are not all."""
    return "" if facts.n_judged == facts.n_samples else f" of {count(facts.n_judged, 'sample')}"


def _tiles(facts: ReportFacts, n_warnings: int) -> str:
    """Return the figures that come first."""
    what = "nodes" if facts.views[0].kind == "graph" else "samples"
    tiles = {what: f"{facts.n_samples:,}", "clusters": f"{facts.n_clusters:,}"}
    if facts.mean_silhouette is not None:
        tiles[f"silhouette{_of_some(facts)}"] = fixed(facts.mean_silhouette)
    elif facts.mean_model_silhouette is not None:
        tiles[f"model silhouette{_of_some(facts)}"] = fixed(facts.mean_model_silhouette)
    if facts.truth is not None:
        tiles["NMI"] = fixed(facts.truth.nmi)
    if facts.objective is not None:
        tiles["objective"] = number(facts.objective)
    if facts.converged is not None:
        tiles["converged"] = "yes" if facts.converged else "no"
    tiles["warnings"] = f"{n_warnings:,}"
    items = "".join(_tile(name, value) for name, value in tiles.items())
    return f'<dl class="tiles">{items}</dl>'
