"""A few lines of HTML about a model, for notebooks."""

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kernelweave.evaluation.report.charts import tiny_bars
from kernelweave.evaluation.report.facts import WEIGHTS
from kernelweave.evaluation.report.words import esc, fixed, number, parameters

BOX = "font:13px/1.5 system-ui,sans-serif;border:1px solid rgba(128,128,128,.4);border-radius:8px;padding:8px 12px;"
TERM = "opacity:.65;padding-right:12px;vertical-align:top;text-align:left;font-weight:400"
# Clusters and weights that are named; more are counted.
MOST = 40


def summary_html(estimator: Any) -> str:
    """Return a small HTML fragment about an estimator, fitted or not.

    Parameters
    ----------
    estimator : estimator
        An estimator of the library, or a pipeline that ends in one.

    Returns
    -------
    html : str
        Method, number of clusters and their sizes, view weights, objective and whether the run converged; for a model
        that is not fitted, the parameters that were set. Styles are inline, there is no script, and colours follow the
        text around it.

    Examples
    --------
    >>> from kernelweave import KernelKMeans
    >>> from kernelweave.report import summary_html
    >>> "not fitted" in summary_html(KernelKMeans(3))
    True
    """
    model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    changed = ", ".join(f"{name}={value}" for name, value in parameters(model)[0].items())
    rows = [("parameters", esc(changed or "defaults"))]
    try:
        check_is_fitted(model)
    except NotFittedError:
        state = "not fitted"
    else:
        state = "fitted"
        rows = rows + _fitted_rows(model)
    lines = "".join(f'<tr><th style="{TERM}">{name}</th><td style="text-align:left">{v}</td></tr>' for name, v in rows)
    head = f'<strong>{esc(type(model).__name__)}</strong> <span style="opacity:.65">{state}</span>'
    return (
        f'<div style="{BOX}display:inline-block;max-width:100%;overflow-wrap:anywhere">{head}'
        f'<table style="border-collapse:collapse;margin-top:4px;font-size:inherit">{lines}</table></div>'
    )


def _fitted_rows(model: Any) -> list[tuple[str, str]]:
    """Return what is known once a model is fitted."""
    labels = np.asarray(getattr(model, "labels_", np.empty(0)), dtype=np.intp)
    asked = getattr(model, "n_clusters", None)
    rows = []
    if labels.size:
        sizes = np.bincount(labels, minlength=int(asked or 1)).tolist()
        told = ", ".join(f"{size:,}" for size in sizes[:MOST]) + (", …" if len(sizes) > MOST else "")
        rows += [("samples", f"{labels.size:,}"), ("clusters", f"{len(sizes):,}")]
        rows.append(("sizes", f"{tiny_bars(sizes[:MOST])}<br>{told}"))
    for attribute, (title, names) in WEIGHTS.items():
        values = getattr(model, attribute, None)
        if values is None or attribute == "kernel_coefficients_":
            continue
        called = [str(name) for name in getattr(model, names, range(len(values)))]
        told = ", ".join(f"{esc(name)} {fixed(float(v))}" for name, v in list(zip(called, values, strict=True))[:MOST])
        rows.append((title.lower(), told))
    if getattr(model, "objective_", None) is not None:
        rows.append(("objective", number(model.objective_)))
    if getattr(model, "converged_", None) is not None:
        rows.append(("converged", "yes" if model.converged_ else "no"))
    if getattr(model, "warnings_", ()):
        rows.append(("warnings", "<br>".join(map(esc, model.warnings_))))
    return rows
