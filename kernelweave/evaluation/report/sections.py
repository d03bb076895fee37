"""The answers of the page, from the facts: clusters, numbers tried, views, edges, classes, samples, warnings."""

import re
from collections.abc import Sequence

import numpy as np

from kernelweave.evaluation.explain import ColumnEffect
from kernelweave.evaluation.report.charts import bar, bar_rows, line_chart
from kernelweave.evaluation.report.clearness import edges_beside_chance
from kernelweave.evaluation.report.facts import VIEW_WEIGHTS, ReportFacts, ViewFacts
from kernelweave.evaluation.report.maps import colour, scatter, small_map, swatch
from kernelweave.evaluation.report.markup import cluster, named, signed, table
from kernelweave.evaluation.report.text import MINUS, breakable, count, esc, fixed, number, one_line, percent

#: What a view holds, in words.
KINDS = {
    "features": "features",
    "kernel": "kernel matrix",
    "distances": "distances between samples",
    "divergences": "divergences between samples",
    "graph": "graph",
}
# Classes a table of clusters by classes shows; the rarest beyond it are added up.
MOST_CLASSES = 20
# A hyphen before a figure is a minus sign.
NEGATIVE = re.compile(r"-(?=\d)")
# Typical samples that a card names, and clusters whose edges are shown as a table.
MOST_TYPICAL = 3
MOST_LINKED = 40
# Up to so many cards all stand beside the map, in two columns.
FEW_CARDS = 6
# Views with a small map; pictures of more would hide the rest.
MOST_MAPS = 12


def clusters(facts: ReportFacts) -> str:
    """Return the map, and a card for every cluster."""
    cards = "".join(_card(facts, c) for c in range(facts.n_clusters))
    few = f' style="--beside:{-(-facts.n_clusters // 2)}"' if facts.n_clusters <= FEW_CARDS else ""
    return f'<div class="board{" few" if few else ""}"{few}>{_map(facts)}{cards}</div>{_about_cards(facts)}'


def _map(facts: ReportFacts) -> str:
    picture = facts.picture
    labels = facts.labels[picture.rows]
    shown = facts.model_silhouettes if facts.model_silhouettes is not None else facts.silhouettes
    known = (
        {}
        if shown is None or facts.graph is not None
        else dict(zip(shown.rows.tolist(), shown.values.tolist(), strict=True))
    )
    name = "model silhouette" if facts.two_silhouettes else "silhouette"
    texts = []
    for row, c in zip(picture.rows.tolist(), labels.tolist(), strict=True):
        lines = [one_line(facts.ids[row]), f"cluster {c}"]
        texts.append("\n".join([*lines, f"{name} {fixed(known[row])}"] if row in known else lines))
    n = len(labels)
    drawn = "" if n == facts.n_samples else f" {count(n, facts.noun)} of {facts.n_samples:,} are drawn."
    made_by = f"{picture.made_by[0].upper()}{picture.made_by[1:]}"
    across, up = picture.axes
    axes = f" Across: {across}; up: {up}." if across else " The directions have no meaning."
    text = f"{made_by}.{axes}{drawn}"
    hint = f"Point at a {facts.noun}, or tap it, for its name; press a cluster's name to highlight it."
    rows = 2 if facts.has_columns else 4  # of cards, about as high as the map
    if facts.n_clusters <= FEW_CARDS:
        rows = -(-facts.n_clusters // 2) + 1
    return (
        f'<figure class="map" id="map" style="--rows:{rows}"><div class="pinned"><div class="frame">'
        f'{scatter(picture.points, labels, texts)}<div class="tip" role="status" hidden></div></div>'
        f'<figcaption>{esc(text)} <span class="screen">{hint}</span></figcaption></div></figure>'
    )


def _card(facts: ReportFacts, c: int) -> str:
    """Return what there is to say about a cluster: size, what distinguishes it, typical samples, how sure it is."""
    size = int(facts.sizes[c])
    share = size / facts.n_samples
    figures = f"{count(size, facts.noun)}, {percent(share)}" if size else "empty"
    head = (
        f'<h3><button type="button" class="pick" aria-pressed="false" data-c="{c}">{swatch(c)}Cluster {c}</button>'
        f'<span class="quiet">{figures}</span></h3>{bar(share, colour(c))}'
    )
    body = "" if not size else _traits(facts, c) + _typical(facts, c) + _sureness(facts, c)
    return f'<article class="card">{head}{body}</article>'


def _traits(facts: ReportFacts, c: int) -> str:
    effects = facts.effects[c]
    if not effects:
        none = facts.has_columns and facts.n_clusters > 1
        return '<p class="quiet">No column distinguishes it.</p>' if none else ""
    items = "".join(_trait(effect, with_view=len(facts.views) > 1) for effect in effects)
    return f'<ul class="traits">{items}</ul>'


def _trait(effect: ColumnEffect, *, with_view: bool) -> str:
    """Return a column in words: what it is like first, the figures after."""
    name, _, figures = effect.text(with_view=with_view).rpartition(" (")
    direction, _, column = name.partition(" ")
    figures = NEGATIVE.sub(MINUS, figures.removesuffix(")"))
    return (
        f'<li><span class="way">{esc(direction)}</span> <strong>{breakable(column)}</strong> '
        f'<span class="quiet">{esc(figures)}</span></li>'
    )


def _typical(facts: ReportFacts, c: int) -> str:
    """Return typical samples, or the hubs of a graph."""
    rows = facts.typical[c] if facts.graph is None else facts.graph.hubs[c]
    word = "Typical" if facts.graph is None else "Hubs"
    if not len(rows):
        return ""
    names = ", ".join(f'<span class="name">{breakable(facts.ids[row])}</span>' for row in rows[:MOST_TYPICAL])
    return f'<p class="typical"><span class="quiet">{word}:</span> {names}</p>'


def _sureness(facts: ReportFacts, c: int) -> str:
    """Return how well a cluster stands apart: its conductance in a graph, its silhouettes elsewhere."""
    if facts.graph is not None:
        text = f"conductance {fixed(float(facts.graph.conductance[c]))}"
        return f'<p class="quiet">{text}</p>' if facts.n_clusters > 1 else ""
    if facts.model_silhouettes is None:
        return ""
    name = "model silhouette" if facts.two_silhouettes else "silhouette"
    nearer = percent(float(facts.negative_shares[c]))
    mean = signed(facts.cluster_model_silhouettes[c])
    return f'<p class="quiet">{name} {mean}, {nearer} nearer to another cluster</p>'


def _about_cards(facts: ReportFacts) -> str:
    """Return what the cards say, and what they do not."""
    notes = []
    if any(facts.effects):
        of = "" if facts.n_explained == facts.n_samples else f" of {facts.n_explained:,} samples drawn at random"
        notes.append(
            f"High and low: inside a cluster compared with outside, in values{of} {facts.values_taken}. "
            "The clusters were "
            "made from these columns, so that their differences are not evidence that the clusters exist."
        )
    if facts.graph is not None:
        notes.append(
            "Hubs are the nodes with the most ties within their cluster. Conductance is the share of a cluster's ties "
            "that lead out of it; 0 means that the cluster is isolated."
        )
    else:
        notes.append("Typical samples are those nearest to the mean of their cluster.")
    empty = int((facts.sizes == 0).sum())
    if empty:
        notes.append(f"{count(empty, 'cluster')} stayed empty.")
    return f'<p class="note">{esc(" ".join(notes))}</p>'


#: What scores of numbers of clusters are, in words.
SCORES = {
    "silhouette": "the mean silhouette of each",
    "clearness": "how much the cut into this many clusters stands out against data without clusters",
    "modularity": "the share of edges within clusters, minus the share expected by chance",
    "blf": "the balanced line fit of the scores",
    "baf": "the balanced angular fit of the scores",
}


def counts(facts: ReportFacts) -> str:
    """Return the numbers of clusters that were tried, and what speaks for the one chosen."""
    tried = facts.tried
    if tried is None and facts.verdict is None:
        return ""
    text = f"<p>{esc(facts.verdict)}</p>" if facts.verdict else ""
    if tried is None:
        return text
    known = np.isfinite(tried.scores)
    if known.sum() > 1:
        values = tried.scores[known]
        text += line_chart(values, tried.counts[known], "number of clusters", tried.score, tried.chosen)
    what = SCORES.get(tried.score, tried.score)
    return f'{text}<p class="note">Higher is better: {what}. {tried.chosen:,} was chosen.</p>'


def views(facts: ReportFacts) -> str:
    """Return weights of views and kernels, what single views say about the clusters, and a small map of each."""
    several = len(facts.views) > 1
    text = [_table_of_views(facts)] if several else []
    for title, rows in facts.weights.items():
        if len(rows) > 1 and not (several and title == VIEW_WEIGHTS):
            text.append(f"<h3>{esc(title)}</h3>")
            text.append(bar_rows([(name, value, fixed(value, 3)) for name, value in rows]))
    if several:
        text.append(_small_maps(facts))
    return "".join(text)


def _table_of_views(facts: ReportFacts) -> str:
    weights = dict(facts.weights.get(VIEW_WEIGHTS, []))
    largest = max(weights.values(), default=0.0) or 1.0
    follows = facts.view_agreement if len(facts.view_agreement) == len(facts.views) else []
    head = ["view", *(["|weight", "#"] if weights else []), *(["#follows"] if follows else []), "#silhouette", "#NMI"]
    rows = [
        [
            named(view.name),
            *([bar(weights[view.name] / largest), fixed(weights[view.name], 3)] if weights else []),
            *([fixed(follows[v])] if follows else []),
            signed(facts.view_silhouettes[v]),
            fixed(facts.view_nmi[v]),
        ]
        for v, view in enumerate(facts.views)
    ]
    notes = ["Follows: how well a view shows the joint clusters, from 0 to 1."] if follows else []
    notes.append("Silhouette: how well the clusters are separated in a single view.")
    notes.append("NMI: how well k-means on that view alone, with the same number of clusters, finds the same clusters.")
    return f'{table(head, rows)}<p class="note">{" ".join(notes)}</p>'


def _small_maps(facts: ReportFacts) -> str:
    maps = "".join(
        f"<figure>{small_map(picture.points, facts.labels[picture.rows], one_line(view.name))}"
        f"<figcaption>{named(view.name)}</figcaption></figure>"
        for view, picture in list(zip(facts.views, facts.view_pictures, strict=True))[:MOST_MAPS]
        if len(picture.rows)
    )
    made_by = sorted({picture.made_by for picture in facts.view_pictures})
    n = max((len(picture.rows) for picture in facts.view_pictures), default=0)
    some = "" if n == facts.n_samples else f", of {count(n, 'sample')} drawn at random"
    note = f"Every view on its own: {' or '.join(made_by)}{some}."
    return f'<div class="small-maps">{maps}</div><p class="note">{esc(note)}</p>'


def edges(facts: ReportFacts) -> str:
    """Return what the edges of a graph say about its clusters: the cut, and who is tied to whom."""
    graph = facts.graph
    if graph is None or facts.n_clusters < 2:
        return ""
    total = float(np.triu(graph.links).sum())
    between = total - float(np.trace(graph.links))
    degrees = graph.links.sum(axis=1)
    leaving = degrees - np.diagonal(graph.links)
    degrees = degrees + np.diagonal(graph.links)
    cut = float(np.divide(leaving, degrees, out=np.zeros(len(degrees)), where=degrees > 0).sum())
    beside = edges_beside_chance(graph)
    text = (
        f"Edges between clusters have weight {number(between)} of {number(total)} "
        f"({percent(between / total if total else np.nan)}), "
        f"{percent(beside)} of what is expected by chance with the same "
        f"degrees. The normalized cut is {number(cut)}."
    )
    if facts.n_clusters > MOST_LINKED:
        return f"<p>{text}</p>"
    head = "".join(f'<th scope="col">{c}</th>' for c in range(facts.n_clusters))
    most = np.maximum(graph.links.sum(axis=1, keepdims=True), 1e-300)
    body = "".join(
        f'<tr><th scope="row">{cluster(c)}</th>'
        + "".join(_cell(w, s) for w, s in zip(row.tolist(), (row / most[c]).tolist(), strict=True))
        + f"<td>{fixed(float(graph.conductance[c]))}</td></tr>"
        for c, row in enumerate(graph.links)
    )
    matrix = _matrix(f"{head}<th scope='col'>conductance</th>", body)
    note = "Weight of the edges between two clusters, and within one on the diagonal; every edge counts once."
    return f'<p>{text}</p>{matrix}<p class="note">{note}</p>'


def _matrix(head: str, body: str) -> str:
    """Return a table of numbers by cluster that scrolls by itself."""
    return (
        f'<div class="scroll" tabindex="0"><table class="matrix"><thead><tr><th scope="col">cluster</th>{head}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )


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
    matrix = _matrix(head, body)
    bars = bar_rows([(name, value, fixed(value, 3)) for name, value in figures.items()], full=1.0)
    return f"{bars}<h3>Clusters by classes</h3>{matrix}<p class='note'>Rows are clusters, columns are classes.</p>"


def _cell(value: float, share: float) -> str:
    return f'<td style="--heat:{70 * share:.0f}%">{number(value)}</td>' if value else '<td class="quiet">0</td>'


def samples(facts: ReportFacts, reading: Sequence[str] = ()) -> str:
    """Return what was read and left out, what the views hold, and the most doubtful samples."""
    views = facts.views
    text = f"{count(facts.n_samples, 'sample')} in {count(len(views), 'view')}."
    if facts.graph is not None:
        stored = round((views[0].density or 0.0) * facts.n_samples**2)
        text = f"A graph of {count(facts.n_samples, 'node')} with {count(stored, 'stored edge weight')}."
    if facts.left_out:
        text += f" {count(facts.left_out, facts.noun)} of the input were left out."
    sourced = any(view.source for view in views)
    lacking = any(view.n_absent for view in views)
    head = ["view", "#columns", "holds", *(["#absent"] if lacking else []), *(["source"] if sourced else [])]
    rows = [
        [
            named(view.name),
            f"{view.n_features:,}",
            _holds(view),
            *([f"{view.n_absent:,}"] if lacking else []),
            *([named(view.source)] if sourced else []),
        ]
        for view in views
    ]
    absent = '<p class="note">Absent: samples that a view lacks; the other views decide on them.</p>' if lacking else ""
    return f"<p>{text}</p>{table(head, rows)}{absent}{_reading(reading)}{_doubtful(facts)}"


def _reading(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return f"<h3>As they were read</h3><ul>{''.join(f'<li>{esc(line)}</li>' for line in lines)}</ul>"


def _holds(view: ViewFacts) -> str:
    stored = "dense" if view.density is None else f"sparse with {percent(view.density)} of the entries"
    return f"{KINDS[view.kind]}, {stored}"


def _doubtful(facts: ReportFacts) -> str:
    doubts = facts.model_silhouettes
    if doubts is None or facts.graph is not None:
        return ""
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
    return (
        f'<h3>Most doubtful</h3><p class="note">The lowest {name}s: samples that may belong to another cluster.</p>'
        f"{table(['sample', 'cluster', 'next best', f'#{name}'], lines)}"
    )


def warnings(messages: Sequence[str]) -> str:
    """Return the warnings."""
    if not messages:
        return "<p>None were raised.</p>"
    items = "".join(f"<li>{esc(text)}</li>" for text in messages)
    return f'<ul class="warnings">{items}</ul>'
