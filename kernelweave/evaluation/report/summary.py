"""A few lines of HTML about a model, for notebooks."""

from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from kernelweave.evaluation.describe import final_step
from kernelweave.evaluation.describe.results import progress_of, sizes_of, verdict_of, warnings_of, weights_of
from kernelweave.evaluation.report.charts import tiny_bars
from kernelweave.evaluation.report.text import esc, fixed, number, parameters

BOX = "font:13px/1.5 system-ui,sans-serif;border:1px solid rgba(128,128,128,.4);border-radius:8px;padding:8px 12px;"
TERM = "opacity:.65;padding-right:12px;vertical-align:top;text-align:left;font-weight:400"
# Clusters and weights that are named; more are counted.
MOST = 40


def summary_html(estimator: Any, *, folded: str = "") -> str:
    """Return a small HTML fragment about an estimator, fitted or not.

    Parameters
    ----------
    estimator : estimator
        An estimator of the library, or a pipeline that ends in one.
    folded : str, default=""
        HTML to fold away below the summary, in the same box.

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
    model = final_step(estimator)
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
        f'<table style="border-collapse:collapse;margin-top:4px;font-size:inherit">{lines}</table>'
        f"{_folded(folded)}</div>"
    )


def _folded(html: str) -> str:
    """Return a part that opens on a click, nothing where there is none."""
    if not html:
        return ""
    title = '<summary style="cursor:pointer">All parameters</summary>'
    return f'<details style="margin-top:4px">{title}{html}</details>'


def _fitted_rows(model: Any) -> list[tuple[str, str]]:
    """Return what is known once a model is fitted."""
    rows = []
    if len(getattr(model, "labels_", ())):
        sizes = sizes_of(model).tolist()
        listed = ", ".join(f"{size:,}" for size in sizes[:MOST]) + (", …" if len(sizes) > MOST else "")
        rows += [("samples", f"{sum(sizes):,}"), ("clusters", f"{len(sizes):,}")]
        rows.append(("sizes", f"{tiny_bars(sizes[:MOST])}<br>{listed}"))
    if verdict_of(model):
        rows.append(("verdict", esc(verdict_of(model))))
    for weights in weights_of(model):
        if weights.attribute != "kernel_coefficients_":
            listed = ", ".join(f"{esc(name)} {fixed(value)}" for name, value in weights.items[:MOST])
            rows.append((weights.title.lower(), listed))
    progress = progress_of(model)
    if progress.objective is not None:
        rows.append(("objective", number(progress.objective)))
    if progress.converged is not None:
        rows.append(("converged", "yes" if progress.converged else "no"))
    if warnings_of(model):
        rows.append(("warnings", "<br>".join(map(esc, warnings_of(model)))))
    return rows
