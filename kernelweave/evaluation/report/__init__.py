"""A fitted clustering as one HTML file that needs nothing else: opens from disk, loads nothing, prints, fits a phone.

The page answers first, in two sentences; then come clusters, views, samples and warnings, and the rest is folded up.

facts      everything it says as numbers, from what evaluation/describe and evaluation/explain know about the model
clearness  how clearly clusters stand apart               trust      what carries them, and what to distrust
measures   typical and doubtful samples and the like      picture    samples in a plane
names      names of samples and views                     text       numbers and parameters as text
verdict    the two sentences                              sections   the text of every answer
details    the text of what is folded up                  maps       samples as inline SVG
charts     other inline SVG                               markup     tables and the like
page       the document                                   style      style sheet and script
pdf        the page as PDF, by Chromium                   summary    a few lines for notebooks
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kernelweave.evaluation.report.facts import ReportFacts
from kernelweave.evaluation.report.page import page
from kernelweave.evaluation.report.pdf import as_pdf, find_chromium
from kernelweave.evaluation.report.summary import summary_html
from kernelweave.foundation.errors import ParameterError
from kernelweave.foundation.files import write_atomically
from kernelweave.foundation.random_streams import RandomState

__all__ = ["ReportFacts", "summary_html", "write_report"]


def write_report(
    path: str | os.PathLike[str],
    estimator: Any,
    X: Any,
    *,
    ids: Any = None,
    labels_true: Any = None,
    title: str | None = None,
    code: str | None = None,
    command: str | None = None,
    sources: Any = None,
    warnings: Iterable[Any] = (),
    reading: Iterable[str] = (),
    feature_names: Any = None,
    tried: Mapping[int, float | None] | None = None,
    criterion: str = "silhouette",
    left_out: int = 0,
    file_format: str | None = None,
    random_state: RandomState = 0,
) -> Path:
    """Write a report on a fitted clustering to one HTML file, or to a PDF.

    Parameters
    ----------
    path : str or path
        File to write; an existing one is replaced once the new one is complete. A name that ends in ``.pdf`` gives
        a PDF, printed by Chromium: found on the path, or named by ``KERNELWEAVE_CHROMIUM``.
    estimator : estimator
        A fitted estimator of the library, or a pipeline that ends in one.
    X : array-like, sparse matrix, views or graph, as in ``fit``
        The samples it was fitted on, in the same order.
    ids : sequence, default=None
        Names of the samples; the row labels of a DataFrame by default, else numbers from 0 on.
    labels_true : array-like of shape (n_samples,), default=None
        Known classes, for comparison; samples whose class is None are left out of the comparison.
    title : str, default=None
        Heading of the page.
    code : str, default=None
        Code to show for repeating the result; made from the estimator's parameters by default.
    command : str, default=None
        Command line to show, if there was one.
    sources : str, list or dict, default=None
        Where the data came from: for all, or one for each view, in a dict by their names. A dict of one source also
        names the view of a single table.
    warnings : iterable of str or of warnings, default=()
        Warnings to show in addition to those of the model (``warnings_``), such as a list from
        ``warnings.catch_warnings(record=True)``.
    reading : iterable of str, default=()
        What was done to the data beforehand: rows matched or left out, cells filled, columns turned into numbers.
    feature_names : sequence of str, or dict of view to sequence of str, default=None
        Names of the columns, as in :func:`~kernelweave.explain.explain_clusters`; those of data frames are known.
    tried : dict of int to float, default=None
        Scores of the numbers of clusters that were tried before this one was chosen; None where there is none.
    criterion : str, default="silhouette"
        What these scores are: ``"silhouette"``, ``"modularity"``, ``"clearness"``, ``"blf"``, ``"baf"`` or another.
    left_out : int, default=0
        Number of samples of the input that were not clustered; ``reading`` can say why.
    file_format : {"html", "pdf"}, default=None
        What to write; by default decided by the extension of ``path``.
    random_state : int, RandomState instance or None, default=0
        Seed for drawing samples if there are many, and for k-means on single views. The same seed and data give the
        same file.

    Returns
    -------
    path : Path
        The file.

    See Also
    --------
    ReportFacts : The same as numbers.
    summary_html : A few lines for a notebook.

    Notes
    -----
    The silhouette is that of :func:`~kernelweave.model_selection.score_clustering`, with distances between the samples
    as they are given (after the steps of a pipeline). Model silhouettes, the picture and the typical samples use the
    distances that the model works with: of its kernel's feature space, of its metric, or Euclidean; of a graph, those
    of its spectral embedding. All views have equal weight, whatever weights the model gave them. Where a model has a
    joint embedding, model silhouettes and the picture use it.

    Silhouettes are computed on at most 2,000 samples, 3,000 are drawn, and columns are compared on at most 20,000;
    these numbers bound the cost, which beyond them does not grow with the number of samples except for fitting the
    kernel and for one pass over the edges of a graph. The file loads nothing from elsewhere and holds no date.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kernelweave import KernelKMeans
    >>> from kernelweave.datasets import make_two_rings
    >>> from kernelweave.report import write_report
    >>> X, y = make_two_rings(random_state=0)
    >>> model = KernelKMeans(2, kernel_params={"sigma": 0.5}, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(Path(folder) / "rings.html", model, X, labels_true=y)
    ...     "silhouette" in path.read_text(encoding="utf-8")
    True
    """
    ending = file_format or ("pdf" if Path(path).suffix.lower() == ".pdf" else "html")
    if ending not in ("html", "pdf"):
        raise ParameterError(f"file_format={file_format!r} must be 'html' or 'pdf', or None for the end of path.")
    if ending == "pdf":
        find_chromium()  # before the work
    facts = ReportFacts.from_estimator(
        estimator,
        X,
        ids=ids,
        labels_true=labels_true,
        sources=sources,
        feature_names=feature_names,
        tried=tried,
        criterion=criterion,
        left_out=left_out,
        random_state=random_state,
    )
    messages = [_message(warning) for warning in ([warnings] if isinstance(warnings, str) else warnings)]
    text = page(facts, title=title, code=code, command=command, warnings=messages, reading=tuple(reading))
    return write_atomically(path, as_pdf(text) if ending == "pdf" else text)


def _message(warning: Any) -> str:
    """Return the text of a warning, whether it is text, a warning, or the record of one."""
    return str(getattr(warning, "message", warning))
