"""The parts below the answers, folded up: silhouettes, method, convergence, and how to repeat it."""

from collections.abc import Mapping

import numpy as np

from kernelweave.evaluation.describe.silhouettes import Silhouettes
from kernelweave.evaluation.report.charts import line_chart, silhouette_chart
from kernelweave.evaluation.report.facts import ReportFacts
from kernelweave.evaluation.report.markup import copied, pairs
from kernelweave.evaluation.report.text import count, esc, fixed, number

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


def silhouette(facts: ReportFacts) -> str:
    """Return the silhouettes, sorted within clusters."""
    if facts.graph is not None or (facts.silhouettes is None and facts.model_silhouettes is None):
        return ""  # edges judge a graph, and one cluster has none
    explained = "A sample near 1 lies well within its cluster; one below 0 is nearer to another cluster."
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
            mean += " It compares samples of this model; to compare models with different kernels, use the silhouette."
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
    more = f" {count(added, 'sample')} of small clusters are shown as well." if added else ""
    return f" Computed on {count(facts.n_judged, 'sample')} of {facts.n_samples:,}, drawn at random.{more}"


def _distances_as_given(facts: ReportFacts) -> str:
    """Return which distances silhouettes are made of."""
    kinds = sorted({view.kind for view in facts.views})
    text = f"Distances between the samples are {' or '.join(DISTANCES[kind] for kind in kinds)}."
    if facts.method.steps:
        text += " They are measured after the preceding steps of the pipeline."
    if len(facts.views) > 1:
        text += " Every view is measured separately; a sample has the mean over the views."
    if facts.two_silhouettes:
        text += " They do not depend on the model's kernel or metric."
    return text


def _distances_of_model(facts: ReportFacts) -> str:
    """Return which distances model silhouettes are made of."""
    if facts.embedded:
        return "Distances are those of the joint embedding of the samples, in which the model found the clusters."
    measures = {view.measure for view in facts.views}
    text = "Distances are those of the feature space of a view's kernel, and Euclidean in views without one."
    if {view.kind for view in facts.views} == {"divergences"}:
        text = "Distances are square roots of the divergences, both directions averaged."
    elif len(measures) == 1:
        text = MEASURES[measures.pop()]
    if len(facts.views) > 1:
        text += " They are the mean over the views, each divided by its mean size so that all have equal weight."
    return text


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
        sentences.append(f"The objective is {number(facts.objective)}; there are no iterations to show.")
    if facts.n_iter is not None and len(path) > 1:
        sentences.append(f"<code>n_iter_</code> is {facts.n_iter:,}.")
    ended = {
        True: "The run converged.",
        False: '<strong class="neg">The run stopped before it converged.</strong>',
        None: "The method does not say whether it converged.",
    }
    sentences.append(ended[facts.converged])
    chart = ""
    if len(path) > 1:
        first, over = (1, "number of clusters") if facts.path_of == "clusters" else (0, "step")
        chart = line_chart(path, np.arange(first, first + len(path)), over)
    return f"<p>{' '.join(sentences)}</p>{chart}"


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
