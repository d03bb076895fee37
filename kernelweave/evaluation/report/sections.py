"""What each part of the page says, from the facts."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelweave.evaluation.report.charts import bar, bar_rows, line_chart, scatter, silhouette_chart, swatch
from kernelweave.evaluation.report.facts import ReportFacts, ViewFacts
from kernelweave.evaluation.report.markup import chips, cluster, copied, named, pairs, signed, table
from kernelweave.evaluation.report.words import count, esc, fixed, number, one_line, percent

#: What a view holds, in words.
KINDS = {
    "features": "features",
    "kernel": "kernel matrix",
    "distances": "distances between samples",
    "divergences": "divergences between samples",
    "graph": "graph",
}
#: What distances are taken from, in words.
MEASURES = {
    "kernel": "Distances are those of the feature space of the model's kernel.",
    "metric": "Distances are those of the model's metric.",
    "features": "Distances are Euclidean, between the features.",
}
# Classes a table of clusters by classes shows; the rarest beyond it are added up.
MOST_CLASSES = 20


def summary(facts: ReportFacts) -> str:
    """Return what the data are."""
    views = facts.views
    samples = count(facts.n_samples, "sample")
    clusters = count(facts.n_clusters, "cluster")
    text = f"{samples}, {count(len(views), 'view')}, {clusters}."
    if views[0].kind == "graph":
        edges = round((views[0].density or 0.0) * facts.n_samples**2)
        text = f"A graph of {count(facts.n_samples, 'node')} with {count(edges, 'stored edge weight')}; {clusters}."
    sourced = any(view.source for view in views)
    head = ["view", "#columns", "holds", *(["source"] if sourced else [])]
    rows = [
        [named(view.name), f"{view.n_features:,}", _holds(view), *([named(view.source)] if sourced else [])]
        for view in views
    ]
    return f"<p>{text}</p>{table(head, rows)}"


def _holds(view: ViewFacts) -> str:
    stored = "dense" if view.density is None else f"sparse with {percent(view.density)} of the entries"
    return f"{KINDS[view.kind]}, {stored}"


def method(facts: ReportFacts) -> str:
    """Return name, purpose and parameters of the method."""
    found = facts.method
    parts = [f"<p><strong>{esc(found.name)}</strong>. {esc(found.sentence)}</p>"]
    if found.steps:
        parts += ["<h3>Steps before it</h3>", pairs({name: _arguments(given) for name, given in found.steps})]
    parts.append("<h3>Parameters that were set</h3>")
    parts.append(pairs(found.changed) if found.changed else '<p class="note">All have their default values.</p>')
    if found.others:
        folded = count(len(found.others), "parameter")
        parts.append(f"<details><summary>{folded} at their defaults</summary>{pairs(found.others)}</details>")
    return "".join(parts)


def _arguments(given: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in given.items()) or "defaults"


def weights(facts: ReportFacts) -> str:
    """Return the weights of views and kernels as bars."""
    if not facts.weights:
        return "<p>This method has no weights of views or kernels.</p>"
    parts = []
    for title, rows in facts.weights.items():
        parts.append(f"<h3>{esc(title)}</h3>")
        parts.append(bar_rows([(name, value, fixed(value, 3)) for name, value in rows]))
    return "".join(parts)


def convergence(facts: ReportFacts) -> str:
    """Return the path of the objective, and how the run ended."""
    path = facts.objective_path
    path = np.empty(0) if path is None else path[np.isfinite(path)]
    said = []
    if len(path) > 1:
        way = "fell" if path[-1] < path[0] else "rose" if path[-1] > path[0] else "stayed"
        ends = f"from {number(path[0])} to {number(path[-1])}" if way != "stayed" else f"at {number(path[-1])}"
        over = f"in {count(len(path) - 1, 'recorded step')}" if facts.path_of == "steps" else "as clusters were added"
        said.append(f"The objective {way} {ends} {over}.")
    elif facts.objective is not None:
        said.append(f"The objective is {number(facts.objective)}; there are no steps to show.")
    if facts.n_iter is not None and len(path) > 1:
        said.append(f"<code>n_iter_</code> is {facts.n_iter:,}.")
    ended = {
        True: "The run ended by itself: it converged.",
        False: '<strong class="neg">The run stopped before it converged.</strong>',
        None: "The method does not say whether it converged.",
    }
    said.append(ended[facts.converged])
    chart = ""
    if len(path) > 1:
        first, over = (1, "number of clusters") if facts.path_of == "clusters" else (0, "step")
        chart = line_chart(path, first, over)
    return f"<p>{' '.join(said)}</p>{chart}"


def clusters(facts: ReportFacts) -> str:
    """Return sizes and silhouettes of the clusters."""
    largest = max(1, int(facts.sizes.max()))
    rows = [
        [
            cluster(c),
            bar(size / largest),
            f'{size:,} <span class="quiet">({percent(size / facts.n_samples)})</span>',
            signed(facts.cluster_silhouettes[c]),
            percent(float(facts.negative_shares[c])),
        ]
        for c, size in enumerate(facts.sizes.tolist())
    ]
    head = ["cluster", "|size", "#samples", "#mean silhouette", "#negative"]
    note = "<p class='note'>Negative: share of samples that lie nearer to another cluster, by their silhouette.</p>"
    empty = np.flatnonzero(facts.sizes == 0)
    if len(empty):
        note += f"<p>{count(len(empty), 'cluster')} stayed empty.</p>"
    return table(head, rows) + note


def silhouette(facts: ReportFacts) -> str:
    """Return the silhouettes, sorted within clusters."""
    found = facts.silhouettes
    if found is None or facts.mean_silhouette is None:
        return "<p>All samples are in one cluster, where the silhouette is not defined.</p>"
    own = facts.labels[found.rows]
    present = [int(c) for c in np.unique(own)]
    chart = silhouette_chart([found.values[own == c] for c in present], present, facts.mean_silhouette)
    drawn = ""
    if len(found.rows) < facts.n_samples:
        drawn = (
            f" Computed on {count(len(found.rows), 'sample')} of {facts.n_samples:,}, drawn at random with some of "
            "every cluster among them."
        )
    text = (
        f"The mean is <strong>{fixed(facts.mean_silhouette)}</strong> (dashed). A sample near 1 lies well within its "
        f"cluster, one below 0 nearer to another.{drawn}"
    )
    return f'<p>{text}</p>{chart}<p class="note">{_distance_words(facts)}</p>'


def _distance_words(facts: ReportFacts) -> str:
    kinds = {view.kind for view in facts.views}
    if kinds == {"graph"}:
        return "Distances are those of the nodes in the spectral embedding of the graph."
    if kinds == {"divergences"}:
        return "Distances are square roots of the divergences, both directions averaged."
    measures = {view.measure for view in facts.views}
    text = "Distances are those of the feature space of a view's kernel, and Euclidean in views without one."
    if len(measures) == 1:
        text = MEASURES[measures.pop()]
    if len(facts.views) > 1:
        text += " They are the mean over the views, each divided by its own mean size so that all count alike."
    return text


def embedding(facts: ReportFacts) -> str:
    """Return the picture of the samples, with its legend."""
    picture = facts.picture
    own = facts.labels[facts.picture.rows]
    known = {}
    if facts.silhouettes is not None:
        known = dict(zip(facts.silhouettes.rows.tolist(), facts.silhouettes.values.tolist(), strict=True))
    texts = []
    for row, c in zip(picture.rows.tolist(), own.tolist(), strict=True):
        lines = [one_line(facts.ids[row]), f"cluster {c}"]
        texts.append("\n".join([*lines, f"silhouette {fixed(known[row])}"] if row in known else lines))
    drawn = "" if len(own) == facts.n_samples else f" {count(len(own), 'sample')} of {facts.n_samples:,} are drawn."
    legend = "".join(
        f'<li><button type="button" aria-pressed="false" data-c="{c}">{swatch(c)}cluster {c}</button></li>'
        for c in np.unique(own).tolist()
    )
    axes = f"Across: {esc(picture.axes[0])}. Up: {esc(picture.axes[1])}."
    text = f"{picture.made_by[0].upper()}{picture.made_by[1:]}.{drawn} Point at a sample, or tap it, for its name."
    return (
        f"<p>{esc(text)}</p>"
        f'<div class="frame">{scatter(picture.points, own, texts)}<div class="tip" role="status" hidden></div></div>'
        f'<ul class="legend">{legend}</ul><p class="note">{axes}</p>'
    )


def typical(facts: ReportFacts) -> str:
    """Return the most typical samples of every cluster and the most doubtful of all."""
    rows = [[cluster(c), chips(facts.ids[row] for row in found)] for c, found in enumerate(facts.typical) if len(found)]
    parts = [
        "<h3>Most typical</h3>",
        '<p class="note">Nearest to the mean of their cluster, nearest first.</p>',
        table(["cluster", "samples"], rows),
    ]
    found = facts.silhouettes
    if found is not None:
        doubts = [
            [
                named(facts.ids[found.rows[i]]),
                cluster(int(facts.labels[found.rows[i]])),
                cluster(int(found.others[i])),
                signed(found.values[i]),
            ]
            for i in facts.doubtful
        ]
        parts += ["<h3>Most doubtful</h3>", '<p class="note">Lowest silhouettes.</p>']
        parts.append(table(["sample", "cluster", "next best", "#silhouette"], doubts))
    return "".join(parts)


def agreement(facts: ReportFacts) -> str:
    """Return what single views say of the clusters."""
    if len(facts.views) < 2:
        return "<p>There is one view only, so there is nothing to compare.</p>"
    rows = [
        [
            named(view.name),
            bar(abs(width), "low" if width < 0 else "plain"),
            signed(width),
            bar(nmi),
            fixed(nmi),
        ]
        for view, width, nmi in zip(facts.views, facts.view_silhouettes, facts.view_nmi, strict=True)
    ]
    text = (
        "How well the clusters stand apart in each view by itself (mean silhouette), and how far k-means on that view "
        "alone, with the same number of clusters, finds the same ones (NMI)."
    )
    return f"<p>{text}</p>{table(['view', '|silhouette', '#', '|NMI with k-means', '#'], rows)}"


def truth(facts: ReportFacts) -> str:
    """Return agreement with the classes given, and the table of clusters by classes."""
    found = facts.truth
    if found is None:
        return ""
    figures = {"NMI": found.nmi, "adjusted Rand index": found.ari, "accuracy": found.accuracy}
    counts = found.table
    names = list(found.classes)
    if len(names) > MOST_CLASSES:
        order = np.argsort(-counts.sum(axis=0), kind="stable")
        kept = np.sort(order[:MOST_CLASSES])
        rest = order[MOST_CLASSES:]
        names = [*(names[i] for i in kept), f"{len(rest)} others"]
        counts = np.column_stack([counts[:, kept], counts[:, rest].sum(axis=1)])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    body = "".join(
        f'<tr><th scope="row">{cluster(c)}</th>'
        + "".join(_cell(n, share) for n, share in zip(row.tolist(), shares[c].tolist(), strict=True))
        + "</tr>"
        for c, row in enumerate(counts)
    )
    head = "".join(f'<th scope="col">{esc(one_line(name))}</th>' for name in names)
    matrix = (
        f'<div class="scroll" tabindex="0"><table class="matrix"><thead><tr><th scope="col"></th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
    bars = bar_rows([(name, value, fixed(value, 3)) for name, value in figures.items()], full=1.0)
    return f"{bars}<h3>Clusters by classes</h3>{matrix}<p class='note'>Rows are clusters, columns are classes.</p>"


def _cell(n: int, share: float) -> str:
    return f'<td style="--heat:{70 * share:.0f}%">{n:,}</td>' if n else '<td class="quiet">0</td>'


def warnings(found: Sequence[str]) -> str:
    """Return the warnings."""
    if not found:
        return "<p>None were raised.</p>"
    items = "".join(f"<li>{esc(text)}</li>" for text in found)
    return f'<ul class="warnings">{items}</ul>'


def repeat(facts: ReportFacts, code: str | None, command: str | None) -> str:
    """Return what it takes to get the same result again."""
    parts = []
    if command:
        parts += ["<h3>Command</h3>", copied(command)]
    parts += ["<h3>Code</h3>", copied(facts.code if code is None else code)]
    if code is None:
        parts.append('<p class="note">X stands for the data. Arrays among the parameters are given by their shape.</p>')
    parts += ["<h3>Versions</h3>", pairs(facts.versions)]
    parts += ["<h3>Seeds</h3>", pairs({f"random_state of the {name}": seed for name, seed in facts.seeds.items()})]
    return "".join(parts)
