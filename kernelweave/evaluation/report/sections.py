"""The text of every section of the page, from the facts."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelweave.evaluation.describe.silhouettes import Silhouettes
from kernelweave.evaluation.report.charts import bar, bar_rows, line_chart, scatter, silhouette_chart, swatch
from kernelweave.evaluation.report.facts import ReportFacts, ViewFacts
from kernelweave.evaluation.report.markup import chips, cluster, copied, named, pairs, signed, table
from kernelweave.evaluation.report.text import count, esc, fixed, number, one_line, percent
from kernelweave.foundation.array_types import Floats

#: What a view holds, in words.
KINDS = {
    "features": "features",
    "kernel": "kernel matrix",
    "distances": "distances between samples",
    "divergences": "divergences between samples",
    "graph": "graph",
}
#: What distances the model works with, in words.
MEASURES = {
    "kernel": "Distances are those of the feature space of the model's kernel.",
    "metric": "Distances are those of the model's metric.",
    "features": "Distances are Euclidean, between the features.",
}
#: What distances between the samples as they are given are, in words.
DISTANCES = {
    "features": "Euclidean between the features",
    "kernel": "those of the feature space of the kernel matrix",
    "distances": "those of the matrix, the model's metric",
    "divergences": "square roots of the divergences, both directions averaged",
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
    judged = len(facts.view_agreement) == len(views)
    lacking = any(view.n_absent for view in views)
    head = [
        "view",
        "#columns",
        "holds",
        *(["#absent"] if lacking else []),
        *(["#follows"] if judged else []),
        *(["source"] if sourced else []),
    ]
    rows = [
        [
            named(view.name),
            f"{view.n_features:,}",
            _holds(view),
            *([f"{view.n_absent:,}"] if lacking else []),
            *([fixed(facts.view_agreement[v])] if judged else []),
            *([named(view.source)] if sourced else []),
        ]
        for v, view in enumerate(views)
    ]
    answer = f"<p><strong>{esc(facts.verdict)}</strong></p>" if facts.verdict else ""
    note = "<p>follows: how far a view shows the joint clusters, 0 to 1.</p>" if judged else ""
    absent = "<p>absent: samples that a view lacks; they are judged by the other views.</p>" if lacking else ""
    return f"{answer}<p>{text}</p>{table(head, rows)}{absent}{note}"


def _holds(view: ViewFacts) -> str:
    stored = "dense" if view.density is None else f"sparse with {percent(view.density)} of the entries"
    return f"{KINDS[view.kind]}, {stored}"


def method(facts: ReportFacts) -> str:
    """Return name, purpose and parameters of the method."""
    about = facts.method
    text = [f"<p><strong>{esc(about.name)}</strong>. {esc(about.sentence)}</p>"]
    if about.steps:
        text += ["<h3>Steps before it</h3>", pairs({name: _arguments(values) for name, values in about.steps})]
    text.append("<h3>Parameters that were set</h3>")
    text.append(pairs(about.changed) if about.changed else '<p class="note">All have their default values.</p>')
    if about.others:
        folded = count(len(about.others), "parameter")
        text.append(f"<details><summary>{folded} at their defaults</summary>{pairs(about.others)}</details>")
    return "".join(text)


def _arguments(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "defaults"


def weights(facts: ReportFacts) -> str:
    """Return the weights of views and kernels as bars."""
    if not facts.weights:
        return "<p>This method has no weights of views or kernels.</p>"
    text = []
    for title, rows in facts.weights.items():
        text.append(f"<h3>{esc(title)}</h3>")
        text.append(bar_rows([(name, value, fixed(value, 3)) for name, value in rows]))
    return "".join(text)


def convergence(facts: ReportFacts) -> str:
    """Return the path of the objective, and how the run ended."""
    path = facts.objective_path
    path = np.empty(0) if path is None else path[np.isfinite(path)]
    sentences = []
    if len(path) > 1:
        way = "fell" if path[-1] < path[0] else "rose" if path[-1] > path[0] else "stayed"
        ends = f"from {number(path[0])} to {number(path[-1])}" if way != "stayed" else f"at {number(path[-1])}"
        over = f"in {count(len(path) - 1, 'recorded step')}" if facts.path_of == "steps" else "as clusters were added"
        sentences.append(f"The objective {way} {ends} {over}.")
    elif facts.objective is not None:
        sentences.append(f"The objective is {number(facts.objective)}; there are no steps to show.")
    if facts.n_iter is not None and len(path) > 1:
        sentences.append(f"<code>n_iter_</code> is {facts.n_iter:,}.")
    ended = {
        True: "The run ended by itself: it converged.",
        False: '<strong class="neg">The run stopped before it converged.</strong>',
        None: "The method does not say whether it converged.",
    }
    sentences.append(ended[facts.converged])
    chart = ""
    if len(path) > 1:
        first, over = (1, "number of clusters") if facts.path_of == "clusters" else (0, "step")
        chart = line_chart(path, first, over)
    return f"<p>{' '.join(sentences)}</p>{chart}"


def clusters(facts: ReportFacts) -> str:
    """Return sizes and silhouettes of the clusters."""
    largest = max(1, int(facts.sizes.max()))
    names, columns = _silhouette_columns(facts)
    rows = [
        [
            cluster(c),
            bar(size / largest),
            f'{size:,} <span class="quiet">({percent(size / facts.n_samples)})</span>',
            *(signed(values[c]) for values in columns),
            percent(float(facts.negative_shares[c])),
        ]
        for c, size in enumerate(facts.sizes.tolist())
    ]
    head = ["cluster", "|size", "#samples", *(f"#mean {name}" for name in names), "#negative"]
    note = f"<p class='note'>Negative: share of samples that lie nearer to another cluster, by their {names[0]}.</p>"
    empty = np.flatnonzero(facts.sizes == 0)
    if len(empty):
        note += f"<p>{count(len(empty), 'cluster')} stayed empty.</p>"
    return table(head, rows) + note


def _silhouette_columns(facts: ReportFacts) -> tuple[list[str], list[Floats]]:
    """Return the names and the cluster means of the silhouettes there are, the first of them the main one."""
    if not facts.two_silhouettes:
        return ["silhouette"], [facts.cluster_silhouettes]
    if facts.silhouettes is None:
        return ["model silhouette"], [facts.cluster_model_silhouettes]
    return ["silhouette", "model silhouette"], [facts.cluster_silhouettes, facts.cluster_model_silhouettes]


def silhouette(facts: ReportFacts) -> str:
    """Return the silhouettes, sorted within clusters."""
    if facts.silhouettes is None and facts.model_silhouettes is None:
        return "<p>All samples are in one cluster, where the silhouette is not defined.</p>"
    explained = "A sample near 1 lies well within its cluster, one below 0 nearer to another."
    text = []
    if facts.silhouettes is not None:
        mean = f"The mean silhouette is <strong>{fixed(facts.mean_silhouette)}</strong> (dashed)."
        text.append(f"<p>{mean} {explained}{_drawn(facts)}</p>{_chart(facts, facts.silhouettes, 'Silhouettes')}")
        text.append(f'<p class="note">{_distances_as_given(facts)}</p>')
    if facts.model_silhouettes is not None and facts.two_silhouettes:
        mean = f"The mean model silhouette is <strong>{fixed(facts.mean_model_silhouette)}</strong> (dashed)."
        if facts.silhouettes is None:
            mean = f"{mean} {explained}{_drawn(facts)}"
        else:
            text.append("<h3>Model silhouettes</h3>")
            mean += " It tells samples of this model apart; models with other kernels are compared by the silhouette."
        text.append(f"<p>{mean}</p>{_chart(facts, facts.model_silhouettes, 'Model silhouettes')}")
        text.append(f'<p class="note">{_distances_of_model(facts)}</p>')
    return "".join(text)


def _chart(facts: ReportFacts, silhouettes: Silhouettes, what: str) -> str:
    labels = facts.labels[silhouettes.rows]
    present = [int(c) for c in np.unique(labels)]
    return silhouette_chart([silhouettes.values[labels == c] for c in present], present, silhouettes.mean, what)


def _drawn(facts: ReportFacts) -> str:
    if facts.n_judged == facts.n_samples:
        return ""
    shown = facts.silhouettes if facts.silhouettes is not None else facts.model_silhouettes
    added = 0 if shown is None else len(shown.rows) - facts.n_judged
    more = f" {count(added, 'sample')} of small clusters are shown beside them." if added else ""
    return f" Computed on {count(facts.n_judged, 'sample')} of {facts.n_samples:,}, drawn at random.{more}"


def _distances_as_given(facts: ReportFacts) -> str:
    """Return which distances silhouettes are made of."""
    kinds = sorted({view.kind for view in facts.views})
    text = f"Distances between the samples are {' or '.join(DISTANCES[kind] for kind in kinds)}."
    if facts.method.steps:
        text += " Samples are measured after the steps before the method."
    if len(facts.views) > 1:
        text += " Every view is measured by itself; a sample has the mean over the views."
    if facts.two_silhouettes:
        text += " The model's kernel or metric does not matter for it."
    return text


def _distances_of_model(facts: ReportFacts) -> str:
    """Return which distances model silhouettes are made of."""
    if facts.views[0].kind == "graph":
        return "Distances are those of the nodes in the spectral embedding of the graph."
    measures = {view.measure for view in facts.views}
    text = "Distances are those of the feature space of a view's kernel, and Euclidean in views without one."
    if {view.kind for view in facts.views} == {"divergences"}:
        text = "Distances are square roots of the divergences, both directions averaged."
    elif len(measures) == 1:
        text = MEASURES[measures.pop()]
    if len(facts.views) > 1:
        text += " They are the mean over the views, each divided by its mean size so that all count the same."
    return text


def embedding(facts: ReportFacts) -> str:
    """Return the picture of the samples, with its legend."""
    picture = facts.picture
    labels = facts.labels[picture.rows]
    name = "model silhouette" if facts.silhouettes is None else "silhouette"
    shown = facts.model_silhouettes if facts.silhouettes is None else facts.silhouettes
    known = {} if shown is None else dict(zip(shown.rows.tolist(), shown.values.tolist(), strict=True))
    texts = []
    for row, c in zip(picture.rows.tolist(), labels.tolist(), strict=True):
        lines = [one_line(facts.ids[row]), f"cluster {c}"]
        texts.append("\n".join([*lines, f"{name} {fixed(known[row])}"] if row in known else lines))
    n = len(labels)
    drawn = "" if n == facts.n_samples else f" {count(n, 'sample')} of {facts.n_samples:,} are drawn."
    legend = "".join(
        f'<li><button type="button" aria-pressed="false" data-c="{c}">{swatch(c)}cluster {c}</button></li>'
        for c in np.unique(labels).tolist()
    )
    axes = f"Across: {esc(picture.axes[0])}. Up: {esc(picture.axes[1])}."
    text = f"{picture.made_by[0].upper()}{picture.made_by[1:]}.{drawn} Point at a sample, or tap it, for its name."
    return (
        f"<p>{esc(text)}</p>"
        f'<div class="frame">{scatter(picture.points, labels, texts)}<div class="tip" role="status" hidden></div></div>'
        f'<ul class="legend">{legend}</ul><p class="note">{axes}</p>'
    )


def typical(facts: ReportFacts) -> str:
    """Return the most typical samples of every cluster and the most doubtful of all."""
    listed = [(c, rows) for c, rows in enumerate(facts.typical) if len(rows)]
    clusters_and_samples = [[cluster(c), chips(facts.ids[row] for row in rows)] for c, rows in listed]
    text = [
        "<h3>Most typical</h3>",
        '<p class="note">Nearest to the mean of their cluster, nearest first.</p>',
        table(["cluster", "samples"], clusters_and_samples),
    ]
    doubts = facts.model_silhouettes
    if doubts is not None:
        name = "model silhouette" if facts.two_silhouettes else "silhouette"
        lines = [
            [
                named(facts.ids[doubts.rows[i]]),
                cluster(int(facts.labels[doubts.rows[i]])),
                cluster(int(doubts.others[i])),
                signed(doubts.values[i]),
            ]
            for i in facts.doubtful
        ]
        text += ["<h3>Most doubtful</h3>", f'<p class="note">Lowest {name}s.</p>']
        text.append(table(["sample", "cluster", "next best", f"#{name}"], lines))
    return "".join(text)


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
        "How well the clusters stand apart in each view by itself (its mean silhouette), and how far k-means on that "
        "view alone, with the same number of clusters, finds the same ones (NMI)."
    )
    return f"<p>{text}</p>{table(['view', '|silhouette', '#', '|NMI with k-means', '#'], rows)}"


def truth(facts: ReportFacts) -> str:
    """Return agreement with the known classes, and the table of clusters by classes."""
    comparison = facts.truth
    if comparison is None:
        return ""
    figures = {"NMI": comparison.nmi, "adjusted Rand index": comparison.ari, "accuracy": comparison.accuracy}
    counts = comparison.table
    names = list(comparison.classes)
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


def warnings(messages: Sequence[str]) -> str:
    """Return the warnings."""
    if not messages:
        return "<p>None were raised.</p>"
    items = "".join(f"<li>{esc(text)}</li>" for text in messages)
    return f'<ul class="warnings">{items}</ul>'


def repeat(facts: ReportFacts, code: str | None, command: str | None) -> str:
    """Return what it takes to get the same result again."""
    text = []
    if command:
        text += ["<h3>Command</h3>", copied(command)]
    text += ["<h3>Code</h3>", copied(facts.code if code is None else code)]
    if code is None:
        text.append('<p class="note">X stands for the data. Arrays among the parameters are shown by their shape.</p>')
    text += ["<h3>Versions</h3>", pairs(facts.versions)]
    text += ["<h3>Seeds</h3>", pairs({f"random_state of the {name}": seed for name, seed in facts.seeds.items()})]
    return "".join(text)
